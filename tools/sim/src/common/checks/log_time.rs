//! Time in the log never goes back, whatever clocks do.

use walras_sequencer::Entry;
use walras_types::TimeNs;

use super::{Checked, Violation};

#[derive(Debug, Default)]
pub(crate) struct LogTime {
    last: TimeNs,
}

impl LogTime {
    pub(crate) fn on_entry(&mut self, entry: &Entry) -> Checked {
        if entry.time < self.last {
            let detail = format!("entry {} is stamped {}, the one before it {}", entry.log_index, entry.time, self.last);
            return Err(Violation::new("log time", detail));
        }
        self.last = entry.time;
        Ok(())
    }
}
