//! Measures the log of a replica: one write with one sync, compared with the store alone, alternating on the same disk.
//!
//! `cargo run --release -p walras-replica-log --example replica_log_write -- DIR [WRITES]`: DIR must be empty or absent and is left
//! empty; WRITES (default 2,000) is the number of writes of each kind. Run it on an idle machine: a sync competes with all else on
//! the disk. What it leaves out: the replica, and handing writes between threads. At the end the log is opened again and its slots
//! are counted.

use std::path::Path;
use std::time::{Duration, Instant};
use walras_consensus::{Body, HardState, Members, ReplicaId, Slot, SlotEntry, Term, Ticket, Write};
use walras_log_store::{LogOptions, LogWriter, Maintenance, RealDisk};
use walras_replica_log::{Identity, Options, ReplicaLog};

const ENTRY: [u8; 64] = [0x5A; 64];
const ENTRIES: usize = 64;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("say where to write: replica_log_write DIR [WRITES]")?;
    let writes: usize = arguments.next().map_or(Ok(2_000), |count| count.parse())?;
    let dir = Path::new(&dir);
    if dir.exists() && std::fs::read_dir(dir)?.next().is_some() {
        return Err("DIR is not empty: give one that is, or that does not exist".into());
    }
    let replica = ReplicaId::new(1).ok_or("1 is an id")?;
    let identity = Identity { cluster_id: 1, replica, genesis: Members::of_voters([replica]) };
    let options = || Options { log: LogOptions::default(), retained_slots: 0 };
    let (mut store, _) = LogWriter::open(RealDisk, &dir.join("store"), LogOptions::default())?;
    let mut log = ReplicaLog::open(RealDisk, &dir.join("replica"), identity.clone(), options())?.log;
    store.maintain()?;
    let (mut ticket, mut slot) = (0, 0);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..writes {
        let begun = Instant::now();
        for _ in 0..ENTRIES {
            store.append(&ENTRY)?;
        }
        store.sync()?;
        times[0].push(begun.elapsed());
        // One slot that packs them, and as many slots.
        for (at, slots) in [(1, 1), (2, ENTRIES)] {
            ticket += 1;
            let write = one_write(ticket, slot, slots);
            slot += slots as u64;
            let begun = Instant::now();
            log.write(&write)?;
            log.sync()?;
            times[at].push(begun.elapsed());
        }
        // Between two measurements, so that it does not disturb the next one.
        store.maintenance().map_or(Ok(()), Maintenance::run)?;
        log.upkeep(0).map_or(Ok(()), |upkeep| upkeep.run())?;
    }
    println!("{writes} writes of {ENTRIES} entries of {} bytes, synced one by one", ENTRY.len());
    println!("{:>34} {:>10} {:>10} {:>10}", "", "p50 us", "p99 us", "max us");
    for (name, times) in ["the store alone", "a replica's log, one slot", "a replica's log, 64 slots"].iter().zip(&mut times) {
        times.sort_unstable();
        let at = |per_mille: usize| {
            let time = times[(times.len() - 1) * per_mille / 1000];
            format!("{}.{}", time.as_micros(), time.subsec_nanos() / 100 % 10)
        };
        println!("{name:>34} {:>10} {:>10} {:>10}", at(500), at(990), at(1000));
    }
    log.close()?;
    let begun = Instant::now();
    let opened = ReplicaLog::open(RealDisk, &dir.join("replica"), identity, options())?;
    println!("opened again with {} slots in {} ms", opened.recovered.entries.len(), begun.elapsed().as_millis());
    if opened.recovered.entries.len() as u64 != slot {
        return Err("the log does not hold what was written".into());
    }
    drop((store, opened));
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn one_write(ticket: u64, last: u64, slots: usize) -> Write {
    let entry = |slot: u64| {
        let in_slot = ENTRIES / slots;
        let mut pack = (in_slot as u32).to_le_bytes().to_vec();
        for _ in 0..in_slot {
            pack.extend_from_slice(&(ENTRY.len() as u32).to_le_bytes());
            pack.extend_from_slice(&ENTRY);
        }
        SlotEntry { slot: Slot(slot), term: Term(1), body: Body::Pack(pack.into()) }
    };
    let entries = (last + 1..=last + slots as u64).map(entry).collect();
    let hard_state = HardState { term: Term(1), vote: ReplicaId::new(1), commit: Slot(last) };
    Write { ticket: Ticket(ticket), hard_state, installed: None, entries }
}
