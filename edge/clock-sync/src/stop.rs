//! Ends the thread of a clock.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Signals a thread to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_asked: Mutex<bool>,
    bell: Condvar,
}

impl Stop {
    pub(crate) fn ask(&self) {
        *self.is_asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.is_asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; returns whether to end.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let guard = self.is_asked.lock().unwrap_or_else(PoisonError::into_inner);
        *self.bell.wait_timeout_while(guard, time, |is_asked| !*is_asked).unwrap_or_else(PoisonError::into_inner).0
    }
}
