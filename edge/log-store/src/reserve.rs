//! File descriptors reserved for the log: if the process has none left, the log's next file uses one of these.
//!
//! The limit on open files applies to the whole process, and so does the reserve. A server's connections may exhaust the limit;
//! without a reserve the log could then not open its next segment.

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

/// Reserves `count` descriptors for the log and the snapshots of this process; returns how many it could reserve. Used ones are
/// replaced as soon as others are free.
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

/// Opens a file, with a reserved descriptor if there is no other. For files that the venue cannot run without, never for
/// connections.
pub fn with_reserve<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut opened = open();
    loop {
        let is_short = opened.as_ref().is_err_and(is_out_of_descriptors);
        let mut reserve = reserve();
        if !is_short {
            reserve.fill();
            return opened;
        }
        // Another thread may take the released descriptor first; then the next one is released.
        let Some(file) = reserve.held.pop() else { return opened };
        drop(file);
        opened = open();
    }
}
