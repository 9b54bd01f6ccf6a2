//! No event is released before its entry would survive a power failure.

use walras_log_store::LogWriter;
use walras_log_store::sim_disk::SimDisk;
use walras_types::LogIndex;

use crate::common::checks::{Checked, Violation};
use crate::single::node::{Released, log_dir, log_options};

#[derive(Debug, Default)]
pub(super) struct DurableFirst {
    released: u64,
}

const CHECK: &str = "durable first";

/// How often the power is cut, on a copy of the disk, to see what is there.
const TRIED_EVERY: u64 = 24;

impl DurableFirst {
    pub(super) fn on_released(&mut self, released: &Released, log_end: LogIndex, disk: &SimDisk) -> Checked {
        let index = released.log_index;
        if index >= log_end {
            return Err(Violation::new(CHECK, format!("entry {index} was released, the log ends at {log_end}")));
        }
        self.released += 1;
        if !self.released.is_multiple_of(TRIED_EVERY) {
            return Ok(());
        }
        let copy = disk.fork();
        copy.crash();
        copy.set_capacity(u64::MAX);
        match LogWriter::open(copy, log_dir(), log_options()) {
            Ok((log, _)) if log.durable_end() > index => Ok(()),
            Ok((log, _)) => {
                let detail =
                    format!("entry {index} was released; after a power failure the log would end at {}", log.durable_end());
                Err(Violation::new(CHECK, detail))
            }
            Err(error) => Err(Violation::new(CHECK, format!("after a power failure the log would not open: {error}"))),
        }
    }
}
