//! The replicated log behind one interface: a cluster of replicas that agree on one sequence of entries, by Raft.
//!
//! A [`Replica`] is a state machine without I/O. Messages, time, proposals and completions from the disk go in; [`Effect`]s come
//! out: what to send, what to make durable, what is decided. It is built on the library `raft` (raft-rs, used by TiKV) and adds
//! what a venue needs:
//!
//! - *one slot for many entries*: a [`Pack`] is replicated, logged and decided as one, and its entries get dense log indexes when
//!   it is;
//! - *asynchronous disk writes*: a leader sends a slot while its own disk still syncs it, and collects the next write meanwhile; a
//!   follower's promises wait for its disk ([`Durability`] says when a slot counts as held);
//! - *probation*: a process that was just linked neither votes nor acknowledges for a moment, so that its peers first detect
//!   whether another process runs under its id (`probation.rs`, `incarnations.rs`);
//! - *replay from a seed*: no clock, no randomness of its own, no hash order: the same inputs give the same effects;
//! - *its own encoding* on the network and on the disk, checked before the library sees it.
//!
//! *Deliberately absent*:
//! - sockets, disks, threads;
//! - the transfer of a snapshot's state, which the host does separately from the messages;
//! - exactly-once (the sequencer);
//! - authentication of peers (the host): a peer that is let in can stop the cluster;
//! - forwarding of proposals (clients ask the leader);
//! - reading old slots from the disk: all slots since the newest snapshot and some before it are in memory, so the host bounds them
//!   by taking snapshots, and a follower that lacks more gets a snapshot;
//! - the library's election priorities, which make it panic together with pre-vote in this release.
//!
//! *Invariants*
//! 1. At most one leader in a term.
//! 2. All replicas deliver the same [`Committed`] content at a slot. Each delivers slots in order, none twice in an incarnation,
//!    and log indexes are dense.
//! 3. With [`Durability::Disk`], everything delivered anywhere is on the disks of a majority of the voters, whatever crashes.
//! 4. No message promises what is not durable: terms, votes and snapshots under any [`Durability`], slots under
//!    [`Durability::Disk`].
//! 5. Every write carries the known commit index, so a durable change of members implies that the one before it was decided.
//! 6. No bytes from a peer cause a panic.
//!
//! *Start reading* at [`Replica`] and [`Effect`], then `pump.rs` (the order of effects), `durable.rs` (what a host stores) and
//! `wire.rs`. `tests/consensus/cluster` runs whole clusters from seeds, with faults, and shows that planted bugs are found.
//!
//! *Sources*: Ongaro, "Consensus: Bridging Theory and Practice", 2014 (chapters 3, 4, 6, 9.6 and 10.2.1).
#![deny(clippy::float_arithmetic)]

mod alone;
mod durable;
mod effect;
mod fast_fail_over;
#[cfg(test)]
mod hostile;
mod ids;
mod incarnations;
mod members;
mod memory_log;
mod pack;
mod probation;
mod pump;
mod replica;
mod settings;
mod timeouts;
mod window;
mod wire;

pub use durable::{Body, DurableLog, HardState, Recovered, SlotEntry, SnapshotMeta, Write};
pub use effect::{Committed, Effect, Refused, Role, RoleChange, StartError, StepError};
pub use ids::{ReadToken, ReplicaId, Slot, Term, Ticket};
pub use incarnations::{GreetingVerdict, Incarnations};
pub use members::{MEMBERS_MAX, MemberChange, Members};
pub use memory_log::MemoryLog;
pub use pack::{Pack, Packed};
pub use replica::{Replica, Status};
pub use settings::{BadSettings, Durability, Settings};
pub use wire::{BadMessage, MESSAGE_VERSION, said_sender};
