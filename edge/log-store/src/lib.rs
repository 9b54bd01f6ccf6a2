//! A durable log on one machine's disk, and the snapshots that let its old parts go.
//!
//! Opaque entries, each with an index (1, 2, 3, ...), appended by one writer to preallocated segment files; a group of entries costs
//! one write and one sync. Entries are addressed by index, and a prefix or a suffix can be removed, so that a Raft log fits on top.
//!
//! ```
//! use walras_log_store::{LogOptions, LogWriter, RealDisk};
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! # let options = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
//! let (mut log, recovery) = LogWriter::open(RealDisk, dir, options)?;
//! assert!(recovery.torn_tail.is_none());
//! let index = log.append(b"buy 3 at 100")?;
//! log.append_with(|buffer| buffer.extend_from_slice(b"sell 2 at 99"))?;
//! let end = log.sync()?; // what is before `end` may be acknowledged
//! assert!(index < end);
//! log.maintain()?; // prepares the next segment; may run on another thread
//! let mut reader = log.reader(log.first_index())?;
//! while let Some(entry) = reader.next()? {
//!     println!("{}: {} bytes", entry.index, entry.payload.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Deliberately absent*: threads and clocks (the caller decides which thread syncs, and which one does [`Maintenance`]),
//! replication, the meaning and version of entries, compression, encryption, direct I/O, repair of damage (a replica or a backup has
//! the bytes; this crate refuses and says where). Direct I/O saves processor time in large groups only (docs/tried.md).
//!
//! *Invariants*
//! 1. An entry before the index that [`LogWriter::sync`] returned is there after any crash, in order, once.
//! 2. After recovery nothing follows a gap, and nothing that was cut comes back.
//! 3. Damage that a crash does not explain refuses to open, names the place and changes nothing.
//! 4. No byte of a segment is written twice in the segment's life, and no sync writes to a block that holds synced bytes.
//! 5. After a failed write or sync the writer takes nothing more. What failed before it began ([`LogError::is_retryable`]) changed nothing.
//! 6. After a crash the entries of one [`LogWriter::sync`] or [`LogWriter::flush`] are all there or none of them is.
//!
//! # The format
//!
//! A segment is a file `<id>.seg` of fixed length. Ids only grow, and a later segment has a higher id.
//!
#![doc = include_str!("format.md")]
//!
//! # A torn tail told apart from damage
//!
//! One writer writes a group with one write, syncs, and only then writes the next one, further on. A segment's name, length and header
//! are durable before its first group is written. After a write or sync that failed it writes nothing more. Therefore:
//!
//! - *At any crash at most one group is not synced: the last one begun.* All before it were, entirely. ([`LogWriter::flush`] makes
//!   exceptions, and their headers say so: such a group is proved by nothing that follows it before the next sync.) The converse is what
//!   recovery uses: **a group header at a later place proves that everything before that place was synced**, even when that later group itself
//!   is torn. Only a group's header counts as proof, and only when its checksum, segment id and offset fit; records do not, because
//!   pages of one group that was not synced reach the disk in any order, so whole records may well follow a hole in their own group.
//! - A group is taken whole or not at all, and so is a row of groups that were written for one sync. The first group that is not whole is *torn* when nothing proves that it was synced, and
//!   *damage* when something does: a header further on in the segment, anything but zeros behind its end (in a file never used
//!   before), or a later segment, whose first group names the entry that it begins with.
//! - A segment that is not the last must reach the entry with which the next one begins. The oldest must reach back to the *floor*,
//!   which every group states: the first entry that had not been let go when the group was written. So a missing or unreadable file is
//!   noticed at either end of the log and in between, except for the newest.
//!
//! *What cannot be told*: the last group damaged at rest after its sync, with nothing written since, looks like a torn one, and a lost
//! newest file like one that never was. Recovery cuts, and reports what it cut. An empty group, written by [`LogWriter::seal`] when the
//! log is idle and by [`LogWriter::close`], takes the doubt away, and so does [`LogOptions::durable_floor`]; in a cluster the other
//! replicas do.
//!
//! # Cutting
//!
//! Nothing is overwritten to cut it. A new segment is begun with a group of kind *cut*: what older segments hold from its first index
//! on does not count. Recovery cuts a torn tail so, [`LogWriter::truncate_suffix`] cuts entries so (also in the middle of a group), and
//! [`LogWriter::reset_to`] adds the new floor. One sync makes it happen, and before that nothing has. Only where zeros follow the
//! last group does recovery go on in the same file.
//!
//! A prefix goes by stating a higher floor in an empty group; files wholly below it are then kept to serve again, or removed, in
//! any order.
//!
//! # History
//!
//! With [`LetGo::Keep`] a segment that was let go of is moved into the folder [`HISTORY_FOLDER`] instead, in full and for good:
//! [`open_whole`] reads the history and the log as one, and so does [`verify`]. The log's own opening does not look there. Whoever keeps a
//! history removes its oldest files; a gap ends it.
//!
//! # Files that serve again
//!
//! Up to [`LogOptions::spent_files_max`] files that no longer count stay under their names, and the next opening finds them. A new segment
//! takes one of them if it can and is not filled then: a log that lets go of as much as it takes makes no file. It never takes one that a
//! reader has open.
//!
//! Such a file still has its old bytes, which are never read as new ones:
//!
//! - Its name changes durably before a byte of it does. Until its new header is written the header names another segment, and it holds nothing.
//! - Every checksum, of a group's header and of each record, begins from a seed that differs between any two segments of a log. So a record
//!   that was sound before is not sound now, even where a torn group left it under a new header, in its place and with its index.
//! - A group's header also names its segment and offset, and a record its index.
//! - Only a group that is sound counts as proof of anything, so what is left behind the last one is no sign of damage. Recovery does not
//!   write over it either, because part of it may be a torn group without a header: it begins another segment.
//!
//! `reuse.rs` crashes at every operation while files serve again whose earlier life had the same indexes in the same places, and shows with
//! two planted faults that it would find an entry of that life; `tests/reuse.rs` tears a group at every byte.
//!
//! # Filling a new one
//!
//! Where no spent file is at hand the segment is filled with zeros: in small pieces past the page cache, with pauses between them
//! ([`Pace`]), synced once at its end, so that the log's own sync hardly waits. It makes none where it is not well ahead of the log, in
//! proportion, and where somebody waits for it. The first segments of a log may be short and double ([`LogOptions::first_segment_bytes`]), so
//! that it opens soon; a log that is busy from the start then waits for them.
//!
//! # Disks that say no
//!
//! A failed sync may leave bytes in memory that look clean and are not on the device, and no later sync writes them (Rebello and others,
//! "Can Applications Recover from fsync Failures?", USENIX ATC 2020). So the writer stops for good, and opening syncs the
//! newest files, has the kernel forget what it cached of them, and reads what the device has. Space is reserved and written with zeros
//! ahead of time: a full disk shows when the next segment is prepared, one segment early ([`Maintenance::run`]).
//!
//! A lack of descriptors is neither a full disk nor a failure of the log: [`LogError::OutOfDescriptors`] is answered before a byte is
//! written, because all segments that a group needs are made first. The same call may be made again, and [`hold_descriptors`] keeps
//! some back, so that a server full of connections is not short of the one that its log needs.
//!
//! `walras-replica-log` does that: its `DurableWriter` keeps what is not durable, and goes on as soon as the disk lets it. It is what the
//! node runs and what the simulator drives.
//!
//! *Start reading* at [`LogWriter`], then `format.rs`, `scan.rs` (one segment) and `plan.rs` (all of them); the seam below is
//! [`disk`], and [`sim_disk`] is the disk of the tests and of the simulator. `tests/model.rs` holds invariants 1, 2 and 6 against a
//! naive model.
//!
//! *Sources*: Pillai and others, "All File Systems Are Not Created Equal", OSDI 2014, and "Protocol-Aware Recovery for Consensus-Based
//! Storage", FAST 2018 (Alagappan and others), for telling a crash from corruption; the fsync paper above.
#![deny(clippy::float_arithmetic)]

mod cursor;
pub mod disk;
mod error;
mod format;
pub mod history;
mod identity;
mod maintenance;
mod open;
mod options;
mod pace;
mod pending;
mod plan;
mod reader;
mod real_disk;
mod report;
mod reserve;
#[cfg(test)]
mod reuse;
mod scan;
mod segment;
mod sim_bytes;
pub mod sim_disk;
mod snapshot;
mod verify;
mod writer;

pub use disk::{Disk, DiskFile, LockKind};
pub use error::{LogError, is_out_of_descriptors};
pub use format::FORMAT_VERSION;
pub use history::{HISTORY_FOLDER, LetGo};
pub use maintenance::Maintenance;
pub use options::LogOptions;
pub use pace::Pace;
pub use reader::{Entry, LogReader, Whole, open_beside, open_read_only, open_whole};
pub use real_disk::{RealDisk, RealFile, RealLock};
pub use report::{Recovery, SegmentReport, SegmentRole, TornTail, VerifyReport};
pub use reserve::{hold_descriptors, with_reserve};
pub use snapshot::{DamagedSnapshot, SNAPSHOT_VERSION, Snapshot, SnapshotStore};
pub use verify::verify;
pub use writer::{FailedLog, LogWriter};
