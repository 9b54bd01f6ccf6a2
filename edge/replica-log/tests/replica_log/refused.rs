//! What does not open, and what it says; and damaged snapshots that cost only time.

use crate::common::*;
use walras_consensus::{Body, HardState, Members, Slot, SlotEntry, Term, Ticket, Write};
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_log_store::{LogError, LogOptions, LogWriter};
use walras_replica_log::{Dump, Identity, OpenError, Options, ReplicaLog, ReplicaLogError, SnapshotError, SnapshotInfo, Stop};
use walras_types::LogIndex;

fn options() -> Options {
    tiny(8, 0)
}

/// Writes slots one by one, all decided at once, from `from` on.
fn fill(log: &mut ReplicaLog<SimDisk>, ticket: u64, slots: std::ops::RangeInclusive<u64>) {
    for (at, slot) in slots.enumerate() {
        log.write(&write(ticket + at as u64, 1, slot, vec![slot_entry(slot, 1, 200)])).unwrap();
        log.sync().unwrap();
    }
}

fn open_as(disk: &SimDisk, identity: Identity) -> Result<(), OpenError> {
    ReplicaLog::open(disk.clone(), &dir(), identity, options()).map(drop)
}

#[test]
fn another_cluster_and_another_replica_are_refused_and_nothing_is_changed() {
    let disk = sim(1);
    fill(&mut open(&disk, &options()).unwrap().log, 1, 1..=3);
    let paths = disk.paths();
    let bytes: Vec<_> = paths.iter().map(|path| disk.bytes_of(path)).collect();
    let other = open_as(&disk, Identity { cluster_id: 9, ..identity() }).unwrap_err();
    assert!(matches!(other, OpenError::OtherCluster { found: CLUSTER, expected: 9, .. }), "{other}");
    let other = open_as(&disk, Identity { replica: id(3), ..identity() }).unwrap_err();
    assert!(matches!(other, OpenError::OtherReplica { found: 2, .. }), "{other}");
    assert!(other.to_string().contains("swapped"), "{other}");
    let others = Identity { genesis: Members::of_voters([id(2), id(9)]), ..identity() };
    let other = open_as(&disk, others.clone()).unwrap_err();
    assert!(matches!(other, OpenError::OtherGenesis { .. }) && other.to_string().contains("began with [2, 9]"), "{other}");
    assert_eq!(disk.paths(), paths);
    assert_eq!(paths.iter().map(|path| disk.bytes_of(path)).collect::<Vec<_>>(), bytes);
    // Also when the first records were let go long ago.
    let mut opened = open(&disk, &options()).unwrap();
    for round in 1..=6 {
        fill(&mut opened.log, round * 20, round * 20 - 16..=round * 20 + 3);
        let slot = round * 20 + 3;
        opened.log.let_go(&take_snapshot(&opened, slot, 1).unwrap().meta).unwrap();
        opened.snapshots.remove_before(opened.log.oldest_snapshot()).unwrap();
    }
    assert!(opened.log.slots().start > Slot(50));
    drop(opened);
    assert!(matches!(open_as(&disk, Identity { replica: id(3), ..identity() }), Err(OpenError::OtherReplica { .. })));
    open_as(&disk, identity()).unwrap();
    // The log and its snapshots know by now who belongs to the cluster.
    assert!(ReplicaLog::open(disk.clone(), &dir(), others, options()).is_ok());
}

#[test]
fn without_descriptors_a_write_waits_and_is_durable_later() {
    let disk = sim(7);
    let mut log = open(&disk, &options()).unwrap().log;
    disk.set_more_descriptors(Some(0));
    let (mut slot, mut refused) = (0, 0);
    while refused < 3 {
        slot += 1;
        log.write(&write(slot, 1, slot, vec![slot_entry(slot, 1, 200)])).unwrap();
        if let Err(error) = log.sync() {
            assert!(error.is_retryable() && !error.to_string().contains("must stop"), "{error}");
            refused += 1;
        }
        assert!(slot < 200, "a segment ends at some time");
    }
    let durable = log.slots().end;
    assert!(durable <= Slot(slot - 2), "what was refused is not called durable");
    disk.set_more_descriptors(None);
    assert_eq!(log.sync().unwrap(), Ticket(slot));
    drop(log);
    disk.crash();
    assert_eq!(open(&disk, &options()).unwrap().log.slots().end, Slot(slot + 1));
}

#[test]
fn other_versions_and_other_logs_are_refused() {
    let disk = sim(2);
    let log_options = LogOptions { owner_id: CLUSTER, ..options().log };
    let (mut log, _) = LogWriter::open(disk.clone(), &dir().join("log"), log_options.clone()).unwrap();
    log.append(&[0, 99, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3]).unwrap();
    log.append(b"whatever that version writes").unwrap();
    log.close().unwrap();
    let error = open(&disk, &options()).unwrap_err();
    assert!(matches!(error, OpenError::Version { found: 99, supported: 1, .. }), "{error}");
    let disk = sim(3);
    let (mut log, _) = LogWriter::open(disk.clone(), &dir().join("log"), log_options).unwrap();
    log.append(&[1; 25]).unwrap();
    log.close().unwrap();
    assert!(matches!(open(&disk, &options()), Err(OpenError::NoReplicaLog { .. })));
    let disk = sim(4);
    drop(open(&disk, &options()).unwrap());
    let path = dir().join("log/log.id");
    disk.edit(&path, |bytes| {
        bytes[8] = 1;
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    });
    let error = open(&disk, &options()).unwrap_err();
    assert!(matches!(error, OpenError::Store(LogError::Version { found: 1, supported: 2, .. })), "{error}");
}

#[test]
fn a_log_in_use_is_refused_also_by_upkeep_that_is_out() {
    let disk = sim(5);
    let mut opened = open(&disk, &options()).unwrap();
    assert!(matches!(open(&disk, &options()), Err(OpenError::Store(LogError::Locked { .. }))));
    let upkeep = opened.log.upkeep(0).unwrap();
    assert!(opened.log.upkeep(u64::MAX).is_none(), "one at a time");
    drop(opened);
    assert!(matches!(open(&disk, &options()), Err(OpenError::Store(LogError::Locked { .. }))));
    upkeep.run().unwrap();
    drop(open(&disk, &options()).unwrap());
}

#[test]
fn upkeep_that_fails_or_is_dropped_is_handed_out_again_after_a_second() {
    const MS: u64 = 1_000_000;
    let disk = sim(8);
    let mut log = open(&disk, &options()).unwrap().log;
    let first = log.upkeep(0).expect("there is no spare segment yet");
    assert!(log.upkeep(2_000 * MS).is_none(), "one at a time");
    disk.set_faults(SimFaults { gone_in_ops: Some(0), ..SimFaults::default() });
    assert!(matches!(first.run(), Err(LogError::Io { .. })));
    assert!(log.upkeep(999 * MS).is_none(), "it failed");
    drop(log.upkeep(1_000 * MS).unwrap());
    assert!(log.upkeep(1_999 * MS).is_none(), "it was dropped");
    disk.set_faults(SimFaults::default());
    log.upkeep(2_000 * MS).unwrap().run().unwrap();
    assert!(log.upkeep(2_001 * MS).is_none(), "nothing is due");
}

#[test]
fn opening_again_waits_for_upkeep_on_another_thread() {
    let temporary = tempfile::tempdir().unwrap();
    let options = Options { log: LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() }, retained_slots: 0 };
    let open = || ReplicaLog::open(walras_log_store::RealDisk, temporary.path(), identity(), options.clone());
    let mut opened = open().unwrap();
    let mut ticket = 0;
    for round in 0..20 {
        if let Some(upkeep) = opened.log.upkeep(round * 2_000_000_000) {
            std::thread::spawn(move || upkeep.run());
        }
        for _ in 0..30 {
            ticket += 1;
            opened.log.write(&write(ticket, 1, 0, vec![slot_entry(opened.log.slots().end.0.max(1), 1, 5_000)])).unwrap();
            opened.log.sync().unwrap();
        }
        let slots = opened.log.slots();
        opened = opened.log.reopen().unwrap();
        assert_eq!(opened.log.slots(), slots);
        ticket = 0;
    }
    opened.log.close().unwrap();
    drop(opened.snapshots);
    let opened = open().unwrap();
    assert_eq!((opened.report.stop, opened.recovered.entries.len()), (Stop::Orderly, 600));
}

#[test]
fn a_lost_log_is_detected_by_its_snapshots() {
    let disk = sim(6);
    let mut opened = open(&disk, &options()).unwrap();
    fill(&mut opened.log, 1, 1..=30);
    let old = disk.fork();
    fill(&mut opened.log, 31, 31..=60);
    let snapshot = take_snapshot(&opened, 55, 1).unwrap();
    opened.log.let_go(&snapshot.meta).unwrap();
    drop(opened);
    // An older copy of the log, with today's snapshots.
    let mixed = old.fork();
    mixed.kill();
    let snapshot_path = dir().join("snapshots/00000000000000000055.snap");
    let whole = disk.bytes_of(&snapshot_path).unwrap();
    let mut older = ReplicaLog::open(mixed.clone(), &dir(), identity(), options()).unwrap();
    take_snapshot(&older, 25, 1).unwrap();
    fill(&mut older.log, 1, 31..=33);
    drop(older);
    mixed.edit(&dir().join("snapshots/00000000000000000025.snap"), |bytes| bytes.clone_from(&whole));
    // A file under a wrong name is no snapshot, so give it its own.
    use walras_log_store::Disk;
    mixed.rename(&dir().join("snapshots/00000000000000000025.snap"), &snapshot_path).unwrap();
    assert!(matches!(open(&mixed, &options()), Err(OpenError::Store(LogError::BelowFloor { .. }))));
    // No log at all.
    let gone = disk.fork();
    gone.paths().iter().filter(|path| path.starts_with(dir().join("log"))).for_each(|path| gone.lose(path));
    for _ in 0..2 {
        assert!(matches!(open(&gone, &options()), Err(OpenError::LogLost { slot: Slot(55), .. })));
    }
    open(&disk, &options()).unwrap();
}

#[test]
fn a_damaged_snapshot_costs_time_and_two_cost_the_replica() {
    let disk = sim(7);
    let mut opened = open(&disk, &options()).unwrap();
    for round in 1..=5 {
        fill(&mut opened.log, round * 20 - 19, round * 20 - 19..=round * 20);
        opened.log.let_go(&take_snapshot(&opened, round * 20, 1).unwrap().meta).unwrap();
        opened.snapshots.remove_before(opened.log.oldest_snapshot()).unwrap();
    }
    fill(&mut opened.log, 101, 101..=104);
    assert_eq!(opened.snapshots.list(), [info(80, 1), info(100, 1)]);
    assert!((Slot(60)..=Slot(80)).contains(&opened.log.slots().start), "{:?}", opened.log.slots());
    drop(opened);
    let path = |slot: u64| dir().join(format!("snapshots/{slot:020}.snap"));
    for (at, by) in [(0, 0), (30, 0), (4096, 0), (4700, 0), (0, 1), (0, 4097)] {
        let damaged = disk.fork();
        damaged.edit(&path(100), |bytes| {
            bytes[at] ^= u8::from(by == 0);
            bytes.truncate(bytes.len() - by);
        });
        let opened = open(&damaged, &options()).unwrap();
        assert_eq!((opened.recovered.snapshot.slot, opened.recovered.entries.len()), (Slot(80), 24));
        assert_eq!(opened.report.damaged_snapshots, [path(100)]);
        assert_eq!(opened.state, Some(state(80)));
        assert_eq!(opened.log.oldest_snapshot(), Slot(80));
        drop(opened);
        damaged.flip(&path(80), 5000, 1);
        let error = open(&damaged, &options()).unwrap_err();
        assert!(matches!(error, OpenError::SnapshotMissing { .. }) && error.to_string().contains("0080.snap"), "{error}");
    }
    let foreign = disk.fork();
    foreign.edit(&path(100), |bytes| {
        bytes[16] ^= 1;
        let crc = crc32c::crc32c(&bytes[..4092]);
        bytes[4092..4096].copy_from_slice(&crc.to_le_bytes());
    });
    assert!(matches!(open(&foreign, &options()), Err(OpenError::Snapshot(SnapshotError::OtherCluster { .. }))));
}

#[test]
fn a_snapshot_that_is_cut_short_or_differs_is_refused() {
    let disk = sim(8);
    let opened = open(&disk, &options()).unwrap();
    let (announced, state) = (info(9, 1), state(9));
    assert_eq!(SnapshotInfo::decode(&announced.encode()).unwrap(), announced);
    for cut in 0..announced.encode().len() {
        assert!(matches!(SnapshotInfo::decode(&announced.encode()[..cut]), Err(SnapshotError::Announcement)));
    }
    let receive = |pieces: &[&[u8]]| {
        let mut writer = opened.snapshots.receive(announced.clone())?;
        pieces.iter().try_for_each(|piece| writer.append(piece))?;
        writer.finish()
    };
    let (got, expected) = (state.len() as u64 - 1, state.len() as u64);
    let error = receive(&[&state[..100], &state[100..state.len() - 1]]).unwrap_err();
    assert!(matches!(error, SnapshotError::CutShort { got: g, expected: e, .. } if (g, e) == (got, expected)), "{error}");
    assert!(matches!(receive(&[&state, &[0]]), Err(SnapshotError::Differs { .. })));
    let mut wrong = state.clone();
    wrong[7] ^= 1;
    assert!(matches!(receive(&[&wrong]), Err(SnapshotError::Differs { .. })));
    drop(opened.snapshots.receive(announced.clone()).unwrap());
    assert!(opened.snapshots.list().is_empty());
    assert!(disk.paths().iter().all(|path| !path.starts_with(dir().join("snapshots"))), "{:?}", disk.paths());
    // And now as it should be.
    assert_eq!(receive(&[&state[..1], &state[1..]]).unwrap(), announced);
    let reader = opened.snapshots.read(Slot(9)).unwrap();
    assert_eq!(*reader.info(), announced);
    assert_eq!(reader.read_all().unwrap(), state);
    assert!(matches!(opened.snapshots.read(Slot(8)), Err(SnapshotError::Missing { slot: Slot(8) })));
}

#[test]
fn a_snapshot_that_was_received_and_not_installed_is_gone_on_from_only_where_the_log_has_its_slot() {
    for (term, slot) in [(1, Slot(12)), (2, Slot(0))] {
        let disk = sim(9);
        let mut opened = open(&disk, &options()).unwrap();
        fill(&mut opened.log, 1, 1..=15);
        take_snapshot(&opened, 12, term).unwrap();
        drop(opened);
        assert_eq!(open(&disk, &options()).unwrap().recovered.snapshot.slot, slot);
    }
}

#[test]
fn one_log_index_at_two_slots_is_two_snapshots() {
    let disk = sim(10);
    let mut opened = open(&disk, &options()).unwrap();
    fill(&mut opened.log, 1, 1..=8);
    // Slot 7 holds no entry.
    assert_eq!(log_index(Slot(6)), log_index(Slot(7)));
    for slot in [6, 7] {
        opened.log.let_go(&take_snapshot(&opened, slot, 1).unwrap().meta).unwrap();
    }
    drop(opened);
    let opened = open(&disk, &options()).unwrap();
    assert_eq!(opened.snapshots.list(), [info(6, 1), info(7, 1)]);
    assert_eq!((opened.recovered.snapshot, opened.log.oldest_snapshot()), (meta(7, 1), Slot(6)));
}

#[test]
fn an_installed_snapshot_lets_the_whole_log_before_it_go() {
    let disk = sim(11);
    let mut opened = open(&disk, &options()).unwrap();
    fill(&mut opened.log, 1, 1..=60);
    let (segments, _) = opened.log.footprint();
    assert!(segments > 5);
    let mut writer = opened.snapshots.receive(info(500, 3)).unwrap();
    writer.append(&state(500)).unwrap();
    writer.finish().unwrap();
    let hard_state = HardState { term: Term(3), vote: None, commit: Slot(500) };
    let install = Write { ticket: Ticket(61), hard_state, installed: Some(meta(500, 3)), entries: vec![] };
    opened.log.write(&install).unwrap();
    assert_eq!(opened.log.sync().unwrap(), Ticket(61));
    assert!(opened.log.footprint().0 <= 2, "{:?}", opened.log.footprint());
    assert_eq!((opened.log.slots(), opened.log.oldest_snapshot()), (Slot(501)..Slot(501), Slot(500)));
    fill(&mut opened.log, 62, 501..=502);
    drop(opened);
    disk.crash();
    let opened = open(&disk, &options()).unwrap();
    assert_eq!((opened.recovered.snapshot, opened.recovered.entries.len()), (meta(500, 3), 2));
    assert_eq!(opened.report.snapshot, Some(info(500, 3)));
    drop(opened.log);
    drop(opened.snapshots);
    // Without that snapshot there is nothing to go on from.
    disk.lose(&dir().join("snapshots/00000000000000000500.snap"));
    let error = open(&disk, &options()).unwrap_err();
    assert!(error.to_string().contains("a slot from 500 to 502"), "{error}");
}

#[test]
fn a_slot_that_is_too_long_is_refused_before_anything_of_its_write_is_taken() {
    let disk = sim(12);
    let mut opened = open(&disk, &options()).unwrap();
    fill(&mut opened.log, 1, 1..=2);
    let long = write(3, 5, 2, vec![slot_entry(3, 5, 10), slot_entry(4, 5, 4_000)]);
    assert!(matches!(opened.log.write(&long), Err(ReplicaLogError::SlotTooLong { slot: Slot(4), .. })));
    assert!(matches!(opened.log.sync(), Err(ReplicaLogError::Failed)));
    let opened = opened.log.reopen().unwrap();
    assert_eq!((opened.recovered.hard_state.term, opened.recovered.entries.len()), (Term(1), 2));
}

#[test]
fn the_longest_pack_that_options_allow_fits_and_a_longer_one_does_not() {
    let bytes_max = options().pack_bytes_max();
    let pack = |bytes: usize| SlotEntry { slot: Slot(1), term: Term(1), body: Body::Pack(vec![0; bytes].into()) };
    let is_taken = |bytes| open(&sim(14), &options()).unwrap().log.write(&write(1, 1, 0, vec![pack(bytes)])).is_ok();
    assert_eq!((is_taken(bytes_max), is_taken(bytes_max + 1)), (true, false));
}

#[test]
fn a_stopped_log_can_be_looked_at() {
    let disk = sim(13);
    assert!(matches!(Dump::open(&disk, &dir()), Err(OpenError::Store(_))));
    let mut opened = open(&disk, &options()).unwrap();
    for round in 1..=4 {
        fill(&mut opened.log, round * 20 - 19, round * 20 - 19..=round * 20);
        opened.log.let_go(&take_snapshot(&opened, round * 20, 1).unwrap().meta).unwrap();
        opened.snapshots.remove_before(opened.log.oldest_snapshot()).unwrap();
    }
    opened.log.write(&write(81, 1, 80, vec![slot_entry(81, 1, 5)])).unwrap();
    opened.log.sync().unwrap();
    let first = opened.log.slots().start;
    assert!(matches!(Dump::open(&disk, &dir()), Err(OpenError::Store(LogError::Locked { .. }))));
    let snapshots = opened.snapshots;
    opened.log.close().unwrap();
    drop(snapshots);
    let dump = Dump::open(&disk, &dir()).unwrap();
    assert_eq!((dump.cluster_id, dump.replica, dump.stop), (CLUSTER, 2, Stop::Orderly));
    assert_eq!((dump.slots, dump.hard_state.commit), (Some((first, Slot(81))), Slot(80)));
    let mut next = log_index(Slot(first.0 - 1)).next();
    let mut decided = dump.decided().unwrap().unwrap();
    while let Some(committed) = decided.next().unwrap() {
        assert_eq!(committed.first, next);
        next = LogIndex(next.0 + committed.pack.len() as u64);
    }
    assert_eq!(next, log_index(Slot(80)).next());
    assert_eq!(dump.places(), [meta(60, 1), meta(80, 1)]);
    assert_eq!(dump.state(&dump.snapshots[1]).unwrap(), state(80));
    for after in [80, 81, 90] {
        let mut held = dump.slots_after(Slot(after)).unwrap();
        assert_eq!(held.next().unwrap(), (after == 80).then(|| slot_entry(81, 1, 5)));
        assert_eq!(held.next().unwrap(), None);
    }
    assert_eq!(dump.slots_after(Slot(0)).unwrap().next().unwrap().map(|entry| entry.slot), Some(first));
    drop((decided, dump));
    // Looking changed nothing.
    assert_eq!(open(&disk, &options()).unwrap().report.stop, Stop::Orderly);
    assert_eq!(open(&disk, &options()).unwrap().report.stop, Stop::Crash, "it was open and not closed");
}
