//! Descriptors held back for the log: where the process has none left, the log's next file takes one of these.
//!
//! The limit of open files holds for the whole process, and so does the reserve. A server fills the limit with connections; without a
//! reserve the log would be refused its next segment by a crowd of strangers.

use crate::error::is_out_of_descriptors;
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Reserve {
    held: Vec<File>,
    wanted: usize,
}

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { held: Vec::new(), wanted: 0 });

fn reserve() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds so many descriptors back for the log and the snapshots of this process, from now on; how many it holds. Those that were used are
/// replaced as soon as there are others.
pub fn hold_descriptors(count: usize) -> usize {
    let mut reserve = reserve();
    reserve.wanted = count;
    reserve.fill();
    reserve.held.len()
}

impl Reserve {
    fn fill(&mut self) {
        self.held.truncate(self.wanted);
        while self.held.len() < self.wanted {
            let Ok(file) = File::open("/dev/null") else { return };
            self.held.push(file);
        }
    }
}

/// Opens something, with a descriptor of the reserve where there is no other. For files without which the venue can not go on, and for no
/// connection.
pub fn with_reserve<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut opened = open();
    loop {
        let is_short = opened.as_ref().is_err_and(is_out_of_descriptors);
        let mut reserve = reserve();
        if !is_short {
            reserve.fill();
            return opened;
        }
        // Another thread may take what is given back here before this one does: then the next.
        let Some(file) = reserve.held.pop() else { return opened };
        drop(file);
        opened = open();
    }
}
