//! The durable log of a replica: what [`walras_consensus`] asks to be stored, in the segments of [`walras_log_store`], and the
//! replica's snapshots.
//!
//! ```
//! use walras_consensus::{Members, ReplicaId, Ticket, Write};
//! use walras_log_store::RealDisk;
//! use walras_replica_log::{Identity, Options, ReplicaLog, Stop};
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! # let mut options = Options::default();
//! # options.log.segment_bytes = 1 << 20;
//! let replica = ReplicaId::new(1).expect("not 0");
//! let identity = Identity { cluster_id: 7, replica, genesis: Members::of_voters([replica]) };
//! let mut opened = ReplicaLog::open(RealDisk, dir, identity, options)?;
//! assert_eq!(opened.report.stop, Stop::Never);
//! // Start a replica from `opened.recovered`; for each of its writes:
//! let write = Write { ticket: Ticket(1), hard_state: opened.recovered.hard_state, installed: None, entries: vec![] };
//! opened.log.write(&write)?;
//! let durable = opened.log.sync()?; // one write, one sync, for all that was written since the last one
//! assert_eq!(durable, Ticket(1)); // now Replica::on_persisted(durable)
//! opened.log.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Deliberately absent*: threads and clocks (the caller decides which thread syncs, writes snapshots and runs [`Upkeep`]), the
//! network between replicas, the meaning of entries and states, repair (a replica whose disk lost data is added again under a new
//! id).
//!
//! *Invariants*
//! 1. After any crash the log holds a prefix of the writes, each complete, with at least all that a [`ReplicaLog::sync`] reported.
//! 2. What [`ReplicaLog::let_go`] drops is never needed: the oldest retained snapshot and the rest of the log lead to the newest
//!    slot.
//! 3. A snapshot is on the disk completely, with the announced hash, or not at all. Concurrent transfers do not affect each other.
//! 4. After a failure a [`ReplicaLog`] accepts nothing more.
//! 5. A log opens only for the cluster and the replica that wrote it.
//! 6. Whatever fails, a [`DurableWriter`] makes accepted writes durable as soon as the disk allows. At any time the disk holds what
//!    was reported durable and a prefix of the later writes.
//!
//! # The format
//!
#![doc = include_str!("format.md")]
//!
//! # Design decisions
//!
//! *A conflicting suffix is not truncated.* The slots that replace it override it. Nothing is rewritten, and the replacement is
//! atomic.
//!
//! *The start of the log is dropped* in whole segments, by moving one index in memory: the cost does not depend on the number of
//! slots.
//!
//! *Two snapshots* and the log between them are retained, so that a damaged snapshot costs time and not the replica.
//!
//! *A lost log is detected* as far as one machine can. Each snapshot records how far the log was durable when it was written. So an
//! older copy of the log, or one without its newest file, does not open together with that snapshot
//! ([`walras_log_store::LogError::BelowFloor`], [`OpenError::LogLost`]). The other replicas must detect what was lost after the
//! newest snapshot ([`walras_consensus::StepError::LostSlots`]).
//!
//! # Disk failures
//!
//! A replica's promises are never undone, because other replicas may already know what the consensus asked to be written. So
//! [`DurableWriter`] keeps each write until it is durable. After a failure it opens the log again, which cuts an unfinished write,
//! and writes the pending writes as one ([`walras_consensus::Write::absorb`]). The result is the same whichever of them had reached
//! the disk. The folder stays locked meanwhile. The replica ends only if the log lost durable data, or cannot be opened for a
//! reason other than lack of space. As a rule a full disk is noticed before a group is written, because segments are filled ahead
//! of time.
//!
//! *Start reading* at [`ReplicaLog`] and [`DurableWriter`], then `content.rs` (the meaning of records) and `open.rs`.
//! In `tests/replica_log`, `model.rs` compares invariants 1 and 2 with [`walras_consensus::MemoryLog`]; `every_byte.rs` cuts a log at
//! every byte; `refused.rs` has the logs that do not open.
//!
//! *Sources*: Ongaro, "Consensus: Bridging Theory and Practice", 2014 (chapters 3.8, 5 and 11.1).
#![deny(clippy::float_arithmetic)]

mod content;
mod durable_writer;
mod error;
mod identity;
mod incoming;
mod log;
mod note;
mod open;
mod record;
mod slots;
mod snapshots;
mod upkeep;

pub use durable_writer::{Attempt, DurableWriter, Failure, Trouble};
pub use error::{OpenError, ReplicaLogError, SnapshotError};
pub use identity::Identity;
pub use incoming::{INCOMING_MAX, Incoming, IncomingId};
pub use log::ReplicaLog;
pub use note::Note;
pub use open::{Dump, OpenReport, Opened, Options, Stop};
pub use record::REPLICA_LOG_VERSION;
pub use slots::{DecidedReader, SlotReader};
pub use snapshots::{REPLICA_SNAPSHOT_VERSION, SnapshotInfo, SnapshotReader, SnapshotWriter, Snapshots};
pub use upkeep::Upkeep;
