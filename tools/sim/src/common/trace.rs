//! The last things that happened, from which an engineer finds out why.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const LINES_MAX: usize = 400;

/// Lines about what happened, the last few hundred of them. Clones are the same trace.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Rc<RefCell<VecDeque<String>>>>);

impl Trace {
    /// Keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Keeps the last lines.
    #[must_use]
    pub fn on() -> Self {
        Self(Some(Rc::default()))
    }

    /// What was kept, oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |lines| lines.borrow().iter().cloned().collect())
    }

    /// Adds a line; `text` is not called when nothing is kept.
    pub(crate) fn line(&self, now_ns: u64, text: impl FnOnce() -> String) {
        let Some(lines) = &self.0 else { return };
        let mut lines = lines.borrow_mut();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(format!("{:>5}.{:09} {}", now_ns / 1_000_000_000, now_ns % 1_000_000_000, text()));
    }
}
