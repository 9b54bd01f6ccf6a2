//! A small log cut at every byte, and with every byte changed: it holds the first so many of the writes, or refuses.

use crate::common::*;
use std::path::PathBuf;
use walras_consensus::{DurableLog, MemoryLog, Recovered, Write};
use walras_log_store::LogError;
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_replica_log::OpenError;

/// Writes of all kinds; the third takes several groups and crosses from one segment into the next.
fn writes() -> Vec<Write> {
    let long = |slot| slot_entry(slot, 2, 900);
    vec![
        write(1, 1, 0, vec![slot_entry(1, 1, 10), slot_entry(2, 1, 0)]),
        write(2, 2, 1, vec![slot_entry(2, 2, 30)]),
        write(3, 2, 2, (3..=9).map(long).collect()),
        write(4, 3, 9, vec![]),
        write(5, 4, 9, vec![slot_entry(10, 4, 0), slot_entry(11, 4, 0)]),
    ]
}

/// What is there after each of the writes, none first.
fn after_each() -> Vec<Recovered> {
    let mut memory = MemoryLog::new(identity().genesis);
    let mut all = vec![memory.recover().unwrap()];
    for write in writes() {
        memory.write(write).unwrap();
        memory.sync().unwrap();
        all.push(memory.recover().unwrap());
    }
    all
}

fn written() -> SimDisk {
    let disk = sim(1);
    let mut log = open(&disk, &tiny(8, 0)).unwrap().log;
    for write in writes() {
        log.write(&write).unwrap();
        log.sync().unwrap();
    }
    drop(log);
    disk.kill();
    disk
}

fn segments(disk: &SimDisk) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "seg")).collect()
}

#[test]
fn a_log_cut_at_any_byte_holds_a_prefix_of_the_writes_or_refuses() {
    let whole = written();
    let states = after_each();
    let paths = segments(&whole);
    assert!(paths.len() >= 3, "it crosses segments: {paths:?}");
    let mut counts = vec![0; states.len()];
    let mut refused = 0;
    for (number, path) in paths.iter().enumerate() {
        let len = whole.bytes_of(path).unwrap().len();
        for keep in 0..len {
            let disk = whole.fork();
            // Later segments were not begun.
            disk.edit(path, |bytes| bytes[keep..].fill(0));
            paths[number + 1..].iter().for_each(|later| disk.lose(later));
            match open(&disk, &tiny(8, 0)) {
                Ok(opened) => {
                    let at = states.iter().position(|state| *state == opened.recovered);
                    counts[at.unwrap_or_else(|| panic!("cut at {keep} of {path:?}: {:?}", opened.recovered))] += 1;
                }
                // The first segment without its header or first records was never whole.
                Err(OpenError::Store(LogError::Corrupt { .. }) | OpenError::NoReplicaLog { .. }) => refused += 1,
                Err(error) => panic!("cut at {keep} of {path:?}: {error}"),
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 100) && refused > 0, "{counts:?}, {refused} refused");
}

#[test]
fn a_log_with_any_byte_changed_holds_a_prefix_of_the_writes_or_refuses() {
    let whole = written();
    let states = after_each();
    let (mut complete, mut shorter, mut refused) = (0, 0, 0);
    for path in segments(&whole) {
        let bytes = whole.bytes_of(&path).unwrap();
        for at in (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 37 == 0) {
            let disk = whole.fork();
            disk.flip(&path, at, 4);
            match open(&disk, &tiny(8, 0)) {
                Ok(opened) if opened.recovered == states[states.len() - 1] => complete += 1,
                Ok(opened) if states.contains(&opened.recovered) => shorter += 1,
                Ok(opened) => panic!("byte {at} of {path:?}: {:?}", opened.recovered),
                Err(OpenError::Store(LogError::Corrupt { .. })) => refused += 1,
                Err(error) => panic!("byte {at} of {path:?}: {error}"),
            }
        }
    }
    assert!(complete > 100 && shorter > 10 && refused > 1_000, "{complete} {shorter} {refused}");
}

#[test]
fn a_crash_at_any_operation_of_making_a_log_leaves_none_or_an_empty_one() {
    let (mut made, mut done) = (0, 0);
    for crash_in_ops in 0..60 {
        for seed in 0..10 {
            let disk = sim(seed);
            disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
            let mut acknowledged = 0;
            if let Ok(mut opened) = open(&disk, &tiny(8, 0)) {
                made += 1;
                for (number, write) in writes().iter().enumerate() {
                    opened.log.write(write).unwrap();
                    match opened.log.sync() {
                        Ok(_) => acknowledged = number + 1,
                        Err(_) => break,
                    }
                }
                done += u32::from(acknowledged == writes().len());
            }
            disk.crash();
            let opened = open(&disk, &tiny(8, 0)).unwrap_or_else(|error| panic!("op {crash_in_ops} seed {seed}: {error}"));
            let at = after_each().iter().rposition(|state| *state == opened.recovered);
            assert!(at.is_some_and(|at| at >= acknowledged), "op {crash_in_ops} seed {seed}: {at:?} {acknowledged}");
        }
    }
    assert!(made > 100 && done > 10, "{made} {done}");
}
