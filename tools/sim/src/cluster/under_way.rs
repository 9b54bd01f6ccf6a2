//! What is under way in a cluster: snapshots and keys from one replica to another, replicas in the place of lost ones, second
//! processes on copies of a folder.

use std::collections::BTreeMap;

use bytes::Bytes;
use walras_consensus::{Durability, Incarnations};
use walras_gateway::KeyRecord;
use walras_replica_log::SnapshotInfo;

use super::mutation::Mutation;
use super::replica::{Process, ReplicaTimer};
use crate::common::disk::VenueDisk;

/// A snapshot on its way.
pub(super) struct Transfer {
    pub(super) from: usize,
    pub(super) from_generation: u64,
    pub(super) to: usize,
    pub(super) to_generation: u64,
    pub(super) info: SnapshotInfo,
    /// What announces it to the consensus.
    pub(super) message: Bytes,
    pub(super) state: Vec<u8>,
    /// Bytes that have come; `None` before it begins.
    pub(super) come: Option<usize>,
}

/// What one replica sends another of API keys.
pub(super) struct KeyNews {
    pub(super) keys: Vec<KeyRecord>,
    /// Ids.
    pub(super) revoked: Vec<String>,
}

/// One that is lost, and one that comes in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replacement {
    pub(super) lost: usize,
    pub(super) new: usize,
}

/// Which of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Later,
}

pub(super) enum ForkEvent {
    /// A folder is copied, and the copy is started.
    Begin,
    /// For the later process of that fork.
    Timer(u64, ReplicaTimer),
    /// One of the two calls one of the others, or looks whether it is still linked with it.
    Call { fork: u64, side: Side, peer: usize },
    /// Between one of the others and one of the two.
    Message { fork: u64, link: LinkOf, to_peer: bool, bytes: Vec<u8> },
}

/// A link of one of the others with one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkOf {
    pub(super) peer: usize,
    pub(super) side: Side,
    pub(super) number: u64,
}

/// What one of the others knows of the two.
pub(super) struct Peer {
    pub(super) generation: u64,
    pub(super) incarnations: Incarnations,
    pub(super) linked: Option<Side>,
    /// Of links that it had.
    pub(super) number: u64,
    /// Refusals in a row.
    pub(super) refusals: u32,
}

pub(super) struct Fork {
    pub(super) number: u64,
    pub(super) of: usize,
    /// The first one reaches nobody before.
    pub(super) parted_until_ns: u64,
    pub(super) is_parted: bool,
    pub(super) disk: VenueDisk,
    pub(super) process: Process,
    pub(super) peers: BTreeMap<usize, Peer>,
    /// The next deadline planned for it.
    pub(super) wake_ns: Option<u64>,
}

impl Fork {
    /// The disk of the one that takes part as this replica in place of the other, if that is the later one.
    pub(super) fn disk_in_place_of(&self, replica: usize) -> Option<&VenueDisk> {
        (self.is_parted && self.of == replica).then_some(&self.disk)
    }
}

impl Peer {
    pub(super) fn new(generation: u64, linked: Option<Side>) -> Self {
        let mut incarnations = Incarnations::default();
        if let Some(side) = linked {
            incarnations.on_greeting(stamp(side));
        }
        Self { generation, incarnations, linked, number: 0, refusals: 0 }
    }
}

/// The number by which a peer that is linked with both distinguishes them.
pub(super) fn stamp(side: Side) -> u64 {
    match side {
        Side::First => 1,
        Side::Later => 2,
    }
}

/// Whether a venue has forks, where it may: nobody looks after one that is lost, and gateways are not modelled for the second
/// process.
pub(super) fn may_fork(
    replicas: usize,
    durability: Durability,
    loses_disks: bool,
    is_fair: bool,
    mutation: Option<Mutation>,
) -> bool {
    let is_for_it = matches!(mutation, None | Some(Mutation::NoProbation | Mutation::FormerGoesOn));
    is_for_it && replicas >= 3 && durability == Durability::Disk && !loses_disks && !is_fair
}
