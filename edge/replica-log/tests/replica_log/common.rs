//! Shared by the tests: a made history of a replica's log, whose slots and snapshots show what they are.

use std::path::PathBuf;
use walras_consensus::{Body, HardState, MemberChange, Members, ReplicaId, Slot, SlotEntry, SnapshotMeta, Term, Ticket, Write};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
use walras_log_store::{Disk, LogOptions};
use walras_replica_log::{Identity, OpenError, Opened, Options, ReplicaLog, SnapshotInfo};
use walras_types::LogIndex;

pub(crate) const CLUSTER: u64 = 0xC1;

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

pub(crate) fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

pub(crate) fn identity() -> Identity {
    Identity { cluster_id: CLUSTER, replica: id(2), genesis: Members::of_voters([1, 2, 3].map(id)) }
}

/// Small segments of `blocks` blocks, and groups of at most 2 KiB.
pub(crate) fn tiny(blocks: u64, retained_slots: u64) -> Options {
    let log = LogOptions { segment_bytes: blocks * 512, block_bytes: 512, group_bytes_max: 2048, ..LogOptions::default() };
    Options { log, retained_slots }
}

pub(crate) fn dir() -> PathBuf {
    PathBuf::from("/venue")
}

pub(crate) fn sim(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() })
}

pub(crate) fn open<D: Disk>(disk: &D, options: &Options) -> Result<Opened<D>, OpenError> {
    ReplicaLog::open(disk.clone(), &dir(), identity(), options.clone())
}

/// How many entries a slot holds: known by its number, so that any two histories count alike.
pub(crate) fn entry_count(slot: Slot) -> u64 {
    match slot.0 {
        slot if slot.is_multiple_of(7) || slot.is_multiple_of(11) => 0,
        slot => 1 + slot % 3,
    }
}

/// The last entry at or before a slot.
pub(crate) fn log_index(slot: Slot) -> LogIndex {
    LogIndex((1..=slot.0).map(|slot| entry_count(Slot(slot))).sum())
}

/// A slot that shows its number and term; `len` bytes long, if it holds a pack.
pub(crate) fn slot_entry(slot: u64, term: u64, len: usize) -> SlotEntry {
    let count = entry_count(Slot(slot)) as usize;
    let body = if slot.is_multiple_of(7) {
        Body::Empty
    } else if slot.is_multiple_of(11) {
        Body::Members(vec![MemberChange::AddLearner(id(slot)), MemberChange::Remove(id(term + 10))])
    } else {
        let mut bytes = (count as u32).to_le_bytes().to_vec();
        for at in 0..count {
            let mut entry = [slot, term].map(u64::to_le_bytes).concat();
            entry.resize(16 + if at == 0 { len } else { 0 }, slot as u8);
            bytes.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&entry);
        }
        Body::Pack(bytes.into())
    };
    SlotEntry { slot: Slot(slot), term: Term(term), body }
}

pub(crate) fn meta(slot: u64, term: u64) -> SnapshotMeta {
    let learners = [id(4 + slot % 3)].into();
    let members = Members { learners, ..identity().genesis };
    SnapshotMeta { slot: Slot(slot), term: Term(term), log_index: log_index(Slot(slot)), members }
}

pub(crate) fn state(slot: u64) -> Vec<u8> {
    (0..slot * 37 % 3000).map(|at| (at * 31 + slot) as u8).collect()
}

pub(crate) fn info(slot: u64, term: u64) -> SnapshotInfo {
    let state = state(slot);
    SnapshotInfo { meta: meta(slot, term), state_bytes: state.len() as u64, state_hash: *blake3::hash(&state).as_bytes() }
}

pub(crate) fn write(ticket: u64, term: u64, commit: u64, entries: Vec<SlotEntry>) -> Write {
    let hard_state = HardState { term: Term(term), vote: ReplicaId::new(term % 4), commit: Slot(commit) };
    Write { ticket: Ticket(ticket), hard_state, installed: None, entries }
}

/// Writes a snapshot in pieces and finishes it.
pub(crate) fn take_snapshot<D: Disk>(
    opened: &Opened<D>,
    slot: u64,
    term: u64,
) -> Result<SnapshotInfo, walras_replica_log::SnapshotError> {
    let mut writer = opened.snapshots.begin(meta(slot, term))?;
    for piece in state(slot).chunks(700) {
        writer.append(piece)?;
    }
    writer.finish()
}
