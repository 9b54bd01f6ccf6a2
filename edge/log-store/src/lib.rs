//! A durable log on one machine's disk, and the snapshots that let its old parts go.
//!
//! Entries are opaque, have indexes 1, 2, 3, ..., and are appended by one writer to preallocated segment files. A group of entries
//! costs one write and one sync. A prefix or a suffix can be removed, so a Raft log can be built on top.
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
//! *Deliberately absent*: threads and clocks (the caller decides which thread syncs and which one runs [`Maintenance`]),
//! replication, the meaning and version of entries, compression, encryption, direct I/O, repair of damage (a replica or a backup
//! has the data; this crate refuses to open and names the place). Direct I/O saves processor time only for large groups
//! (docs/tried.md).
//!
//! *Invariants*
//! 1. An entry before the index that [`LogWriter::sync`] returned is there after any crash, in order, once.
//! 2. After recovery nothing follows a gap, and nothing that was cut comes back.
//! 3. Damage that a crash does not explain refuses to open, names the place and changes nothing.
//! 4. No byte of a segment is written twice in the segment's life, and no sync writes to a block that holds synced bytes.
//! 5. After a failed write or sync the writer accepts nothing more. A call that failed before it began ([`LogError::is_retryable`])
//!    has changed nothing.
//! 6. After a crash the entries of one [`LogWriter::sync`] or [`LogWriter::flush`] are all there or none of them is.
//!
//! # The format
//!
//! A segment is a file `<id>.seg` of fixed length. Ids only grow, and a later segment has a higher id.
//!
#![doc = include_str!("format.md")]
//!
//! # Distinguishing a torn tail from damage
//!
//! One writer writes a group with one write, syncs, and only then writes the next one, further on. A segment's name, length and
//! header are durable before its first group is written. After a write or sync that failed it writes nothing more. Therefore:
//!
//! - *At any crash at most one group is unsynced: the last one begun.* All earlier groups are synced completely. (Groups written by
//!   [`LogWriter::flush`] are exceptions and marked in their headers: nothing before the next sync proves that they were synced.)
//!   Recovery uses the converse: **a group header proves that everything before it was synced**, even if its own group is torn.
//!   Only a group's header counts as proof, and only if its checksum, segment id and offset match. Records do not count: the pages
//!   of an unsynced group reach the disk in any order, so complete records may follow a hole in their own group.
//! - A group counts completely or not at all, and so does a row of groups that were written for one sync. The first incomplete
//!   group is *torn* if nothing proves that it was synced. It is *damaged* if something does: a header further on in the segment,
//!   anything but zeros after its end (in a file that was never used before), or a later segment, whose first group states its
//!   first entry.
//! - A segment other than the last must reach the first entry of the next one. The oldest must reach back to the *floor*, which
//!   every group states: the first entry that had not been dropped when the group was written. So a missing or unreadable file is
//!   detected anywhere in the log, unless it is the newest.
//!
//! *What cannot be detected*: if the last group is damaged at rest after its sync and nothing was written since, it looks torn. If
//! the newest file is lost, it looks as if it never existed. Recovery cuts the tail and reports what it cut. An empty group, which
//! [`LogWriter::seal`] writes when the log is idle and [`LogWriter::close`] at the end, removes this ambiguity. So does
//! [`LogOptions::durable_floor`], and in a cluster the other replicas.
//!
//! # Cutting
//!
//! Cutting overwrites nothing. A new segment starts with a group of kind *cut*: entries of older segments from its first index on
//! no longer count. Recovery cuts a torn tail in this way, [`LogWriter::truncate_suffix`] cuts entries (also within a group), and
//! [`LogWriter::reset_to`] also sets a new floor. The cut takes effect with one sync. Recovery continues in the same file only if
//! zeros follow the last group.
//!
//! A prefix is dropped by stating a higher floor in an empty group. Files entirely below the floor are then reused or removed, in
//! any order.
//!
//! # History
//!
//! With [`LetGo::Keep`] a dropped segment is moved into the folder [`HISTORY_FOLDER`] and never changed again. [`open_whole`] and
//! [`verify`] read the history and the log as one. Opening the log does not look there. The operator removes the oldest files; the
//! history ends at the first gap.
//!
//! # Reused files
//!
//! Up to [`LogOptions::spent_files_max`] files that no longer count keep their names, and the next opening finds them. A new
//! segment reuses one of them if possible, and then need not be filled with zeros. So a log of constant size creates no files. A
//! file that a reader has open is never reused.
//!
//! Such a file still has its old bytes, which are never mistaken for new ones:
//!
//! - Its name changes durably before any of its bytes. Until its new header is written, the header names another segment, and the
//!   file counts as empty.
//! - Every checksum, of group headers and of records, starts from a seed that differs between any two segments of a log. So an old
//!   record never passes as new, even if a torn group left it under a new header, at the right place and with the right index.
//! - A group's header also names its segment and offset, and a record its index.
//! - Only an intact group proves anything, so old bytes after the last group are not a sign of damage. Recovery does not overwrite
//!   them, because they may include a torn group without a header. It starts another segment.
//!
//! `reuse.rs` crashes at every operation while files are reused that had the same indexes at the same places before. Two planted
//! faults show that it would find an old entry. `tests/log_store/reuse.rs` tears a group at every byte.
//!
//! # Filling a new file
//!
//! If no spent file is available, the segment is filled with zeros: in small pieces that bypass the page cache, with pauses between
//! them ([`Pace`]) and one sync at the end, so that the log's own sync hardly waits. There are no pauses if the filling is not well
//! ahead of the log, in proportion, or if the writer waits for it. The first segments of a log may be short and double in length
//! ([`LogOptions::first_segment_bytes`]). Such a log opens sooner, but if it is busy from the start it waits for the next segments.
//!
//! # Disk failures
//!
//! A failed sync may leave bytes in memory that look clean but are not on the device, and no later sync writes them (Rebello and
//! others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020). So the writer stops for good. Opening the log syncs
//! the newest files, drops their page cache, and reads what the device has. Space is reserved and filled with zeros ahead of time,
//! so a full disk is noticed one segment early, when the next segment is prepared ([`Maintenance::run`]).
//!
//! A lack of descriptors is neither a full disk nor a failure of the log. [`LogError::OutOfDescriptors`] is returned before a byte
//! is written, because all segments that a group needs are made first, and the call may be repeated. [`hold_descriptors`] reserves
//! some, so that a server full of connections can still open the files of its log.
//!
//! `walras-replica-log` does that: its `DurableWriter` keeps what is not durable, and goes on as soon as the disk lets it. It is what the
//! node runs and what the simulator drives.
//!
//! *Start reading* at [`LogWriter`], then `format.rs`, `scan.rs` (one segment) and `plan.rs` (all of them); the seam below is
//! [`disk`], and [`sim_disk`] is the disk of the tests and of the simulator. `tests/log_store/model.rs` holds invariants 1, 2 and 6
//! against a naive model.
//!
//! *Sources*: Pillai and others, "All File Systems Are Not Created Equal", OSDI 2014, and "Protocol-Aware Recovery for
//! Consensus-Based Storage", FAST 2018 (Alagappan and others), for distinguishing a crash from corruption; the fsync paper above.
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

pub use disk::{Disk, DiskFile, LockKind, read_full_at};
pub use error::{LogError, is_out_of_descriptors};
pub use format::FORMAT_VERSION;
pub use history::{HISTORY_FOLDER, LetGo};
pub use maintenance::Maintenance;
pub use options::LogOptions;
pub use pace::Pace;
pub use reader::{Entry, LogReader, Whole, open_live, open_read_only, open_whole};
pub use real_disk::{RealDisk, RealFile, RealLock};
pub use report::{Recovery, SegmentReport, SegmentRole, TornTail, VerifyReport};
pub use reserve::{hold_descriptors, with_reserve};
pub use snapshot::{DamagedSnapshot, SNAPSHOT_VERSION, Snapshot, SnapshotStore};
pub use verify::verify;
pub use writer::{FailedLog, LogWriter};
