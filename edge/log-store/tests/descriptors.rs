//! A log in a process that has no descriptor left. A program of its own, because it lowers the process's limit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "log_store/common.rs"]
mod common;

use common::*;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs::File;
use walras_log_store::{LogError, LogOptions, LogWriter, RealDisk, hold_descriptors};
use walras_types::LogIndex;

/// Writes until something is refused.
fn write_until_refused(log: &mut LogWriter<RealDisk>) -> LogError {
    loop {
        let index = log.next_index().0;
        log.append(&entry(index)).unwrap();
        if let Err(error) = log.sync() {
            return error;
        }
        assert!(log.footprint().0 < 50, "each segment takes a descriptor");
    }
}

#[test]
fn a_process_full_of_connections_goes_on_writing_its_log_and_gets_an_error_when_it_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions {
        segment_bytes: 4096,
        first_segment_bytes: 4096,
        group_bytes_max: 1024,
        block_bytes: 512,
        ..LogOptions::default()
    };
    let (mut log, _) = LogWriter::open(RealDisk, dir.path(), options.clone()).unwrap();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(128);
    setrlimit(Resource::Nofile, limit).unwrap();
    assert_eq!(hold_descriptors(4), 4);
    let mut crowd: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();

    // The reserve carries the log over the ends of three segments: the last descriptor opens the folder, to sync it.
    let refused = write_until_refused(&mut log);
    assert!(refused.is_retryable(), "{refused}");
    assert_eq!(log.footprint().0, 4);
    assert!(log.sync().is_err() && log.append(b"").is_ok(), "refused again, and not poisoned");
    let last = log.next_index();
    // One that leaves is enough to go on, and the reserve is filled again when more do.
    crowd.truncate(crowd.len() - 8);
    assert_eq!(log.sync().unwrap(), last);
    assert_eq!(hold_descriptors(4), 4);
    drop(log);
    let (log, recovery) = LogWriter::open(RealDisk, dir.path(), options).unwrap();
    assert_eq!((recovery.end_index, log.first_index()), (last, LogIndex(1)));
}
