//! The durable log of a replica of the cluster: what [`walras_consensus`] asks to be kept, in the segments of [`walras_log_store`],
//! and the snapshots beside it.
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
//! *Deliberately absent*: threads and clocks (the caller decides which thread syncs, writes snapshots, and does [`Upkeep`]), the network
//! between replicas, what an entry or a state means, repair: a replica whose disk lost data is added anew under a new id.
//!
//! *Invariants*
//! 1. After any crash the log holds the first so many of the writes, each whole, and at least all that a [`ReplicaLog::sync`] reported.
//! 2. What [`ReplicaLog::let_go`] lets go of is never needed: with the oldest snapshot kept, what is left leads to the newest slot.
//! 3. A snapshot is there whole, with the hash that it was announced with, or not at all; of several that come at once none spoils another.
//! 4. After a failure a [`ReplicaLog`] takes nothing more.
//! 5. A log opens only for the cluster and the replica that wrote it.
//! 6. What a [`DurableWriter`] has taken is durable, or written again as soon as the disk lets it, whatever fails meanwhile. At any time
//!    the disk holds what was reported durable and the first so many of the writes after that.
//!
//! # The format
//!
#![doc = include_str!("format.md")]
//!
//! # Why it is so
//!
//! *A conflicting suffix is not truncated.* The slots that replace it override it: nothing is rewritten, a cut is atomic with what replaces
//! it, and costs nothing.
//!
//! *Letting go* drops whole segments, and one place of the index in memory: the same cost for one slot and for a million.
//!
//! *Two snapshots* are kept, and the log between them, so that a damaged one costs time and not the replica.
//!
//! *A lost log is noticed* as far as one machine can: each snapshot says how far the log was durable when it was written, so an older copy of
//! the log, or one without its newest file, does not open beside it ([`walras_log_store::LogError::BelowFloor`],
//! [`OpenError::LogLost`]). What was lost after the newest snapshot the other replicas must notice
//! ([`walras_consensus::StepError::LostSlots`]).
//!
//! # Disks that say no
//!
//! A replica's promises are not undone: what the consensus has asked to be written may be known to others already. So
//! [`DurableWriter`] keeps each write until it is durable. After a failure it opens the log again, which cuts an unfinished write,
//! and writes what is owed as one write ([`walras_consensus::Write::absorb`]): that comes to the same whichever of those writes
//! reached the disk. It keeps the folder's lock meanwhile. Only a log that lost something durable, or does not open for another
//! reason that no free space mends, ends the replica. A full disk shows before a group is written, as a rule: segments are filled
//! ahead of time.
//!
//! *Start reading* at [`ReplicaLog`] and [`DurableWriter`], then `content.rs` (what records amount to) and `open.rs`. `tests/model.rs` holds invariants 1 and 2
//! against [`walras_consensus::MemoryLog`]; `tests/every_byte.rs` cuts a log everywhere; `tests/refused.rs` has what does not open.
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
