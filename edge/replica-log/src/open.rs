//! Opening a log: its owner, its content, and the snapshot from which it continues.

use crate::content::{Content, Misfit, ScanError};
use crate::error::{OpenError, ReplicaLogError, SnapshotError};
use crate::identity::Identity;
use crate::log::ReplicaLog;
use crate::record::{Head, REPLICA_LOG_VERSION, put_head, put_installed, put_state, slot_record_bytes};
use crate::slots::{DecidedReader, SlotReader};
use crate::snapshots::{SnapshotInfo, SnapshotReader, Snapshots, read_infos};
use crate::upkeep::UpkeepOut;
use std::path::{Path, PathBuf};
use walras_consensus::{Body, Durability, HardState, Members, Recovered, Slot, SlotEntry, SnapshotMeta, Term, Ticket};
use walras_log_store::{
    Disk, LogError, LogOptions, LogReader, LogWriter, Recovery, open_live as open_log_live, open_read_only,
    open_whole as open_log_whole,
};
use walras_types::LogIndex;

pub(crate) const LOG_FOLDER: &str = "log";
const SNAPSHOT_FOLDER: &str = "snapshots";

/// How a replica's log is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Segments, blocks, groups. The log sets `owner_id` and `durable_floor` itself.
    pub log: LogOptions,
    /// Number of slots before the newest snapshot that stay on the disk for slow followers.
    pub retained_slots: u64,
}

impl Options {
    /// Longest pack for which a slot of such a log has room. A replica must not propose a longer one, and no other one to it.
    #[must_use]
    pub fn pack_bytes_max(&self) -> usize {
        let around = slot_record_bytes(&SlotEntry { slot: Slot(0), term: Term(0), body: Body::Empty });
        self.log.entry_bytes_max().saturating_sub(around)
    }
}

impl Default for Options {
    /// Segments of 64 MiB; 100,000 slots for slow followers.
    fn default() -> Self {
        Self { log: LogOptions::default(), retained_slots: 100_000 }
    }
}

/// An open log.
#[derive(Debug)]
pub struct Opened<D: Disk> {
    /// The log.
    pub log: ReplicaLog<D>,
    /// The replica's snapshots.
    pub snapshots: Snapshots<D>,
    /// The state from which the replica starts.
    pub recovered: Recovered,
    /// The state of its snapshot, which was read to check it; `None` if the replica starts from the genesis.
    pub state: Option<Vec<u8>>,
    /// What was found, for the operator.
    pub report: OpenReport,
}

/// How the replica stopped before this opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It never ran: the log was just made.
    Never,
    /// Orderly: everything that it wrote is there.
    Orderly,
    /// By a crash. Unsynced writes may be lost. Under [`walras_consensus::Durability::Memory`] the replica may not continue under
    /// its id and must be added again under a new one.
    Crash,
}

/// What opening found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReport {
    /// How the replica stopped before.
    pub stop: Stop,
    /// The snapshot from which the log continues; `None` for the genesis.
    pub snapshot: Option<SnapshotInfo>,
    /// Damaged snapshot files that may have been newer.
    pub damaged_snapshots: Vec<PathBuf>,
    /// What the store found, including an unfinished write that was cut.
    pub store: Recovery,
}

impl OpenReport {
    /// Whether the disk holds all that the replica may have promised. Otherwise it must not take part under its id: it could help
    /// elect a replica that lacks acknowledged entries, which would then be lost.
    #[must_use]
    pub fn has_all_promises(&self, durability: Durability) -> bool {
        match (durability, self.stop) {
            (Durability::Disk, _) | (Durability::Memory, Stop::Never | Stop::Orderly) => true,
            (Durability::Memory, Stop::Crash) => false,
        }
    }
}

pub(crate) fn open<D: Disk>(disk: D, dir: &Path, identity: Identity, options: Options) -> Result<Opened<D>, OpenError> {
    let (snapshots, log_floor) = Snapshots::open(disk.clone(), &dir.join(SNAPSHOT_FOLDER), &identity)?;
    snapshots.note_log_end(log_floor);
    open_live(disk, dir, identity, options, snapshots)
}

pub(crate) fn open_live<D: Disk>(
    disk: D,
    dir: &Path,
    identity: Identity,
    options: Options,
    snapshots: Snapshots<D>,
) -> Result<Opened<D>, OpenError> {
    let log_floor = snapshots.log_end();
    let durable_floor = (log_floor > 1).then(|| LogIndex(log_floor - 1));
    let log_options = LogOptions { owner_id: identity.cluster_id, durable_floor, ..options.log.clone() };
    let newest = snapshots.list().last().map(|info| info.meta.slot);
    let (mut log, store) =
        LogWriter::open(disk.clone(), &dir.join(LOG_FOLDER), log_options).map_err(|error| match (error, newest) {
            (LogError::WrongOwner { found, expected, .. }, _) if expected == identity.cluster_id => {
                OpenError::OtherCluster { dir: dir.to_path_buf(), found, expected }
            }
            // Left by an earlier attempt.
            (LogError::BelowFloor { last: LogIndex(0), .. }, Some(slot)) => OpenError::LogLost { dir: dir.to_path_buf(), slot },
            (other, _) => other.into(),
        })?;
    let is_new = store.end_index == LogIndex(1);
    if is_new {
        if let Some(slot) = newest {
            return Err(OpenError::LogLost { dir: dir.to_path_buf(), slot });
        }
        append_genesis(&mut log, &identity)?;
    }
    let content = scan_own(&log, dir, &identity)?;
    check_genesis(&content, dir, &identity)?;
    let stop = match (is_new, content.is_closed) {
        (true, _) => Stop::Never,
        (false, true) => Stop::Orderly,
        (false, false) => Stop::Crash,
    };
    let Found { recovered, state, snapshot, oldest_snapshot, damaged } = recovered(&log, dir, &content, &snapshots)?;
    if !is_new {
        // The log is now in use: the mark of an orderly stop is no longer the last record.
        log.append_with(|bytes| put_head(bytes, &identity))?;
        log.sync()?;
    }
    snapshots.note_log_end(log.durable_end().0);
    let log = ReplicaLog {
        disk,
        dir: dir.to_path_buf(),
        identity,
        options,
        log,
        content,
        snapshots: snapshots.clone(),
        newest: recovered.snapshot.clone(),
        oldest_snapshot,
        installing: None,
        last_ticket: Ticket(0),
        failed: false,
        upkeep: UpkeepOut::default(),
    };
    Ok(Opened { log, snapshots, recovered, state, report: OpenReport { stop, snapshot, damaged_snapshots: damaged, store } })
}

/// Writes the first records in one write. A log without all of them is made again.
fn append_genesis<D: Disk>(log: &mut LogWriter<D>, identity: &Identity) -> Result<(), LogError> {
    log.append_with(|bytes| put_head(bytes, identity))?;
    log.append_with(|bytes| put_state(bytes, &HardState::default()))?;
    log.append_with(|bytes| put_installed(bytes, &SnapshotMeta::genesis(identity.genesis.clone())))?;
    log.sync().map(drop)
}

/// Compares the cluster's first members, if the log still has its first records. Nothing depends on them later.
fn check_genesis(content: &Content, dir: &Path, identity: &Identity) -> Result<(), OpenError> {
    let beginning = content.installed.as_ref().map(|(meta, _)| meta).filter(|meta| meta.slot == Slot(0));
    match beginning.filter(|meta| meta.members != identity.genesis) {
        None => Ok(()),
        Some(meta) => Err(OpenError::OtherGenesis {
            dir: dir.to_path_buf(),
            found: listed(&meta.members),
            expected: listed(&identity.genesis),
        }),
    }
}

fn listed(members: &Members) -> String {
    let ids: Vec<String> = members.voters.iter().map(ToString::to_string).collect();
    format!("[{}]", ids.join(", "))
}

/// Reads the records of this replica's log.
pub(crate) fn scan_own<D: Disk>(log: &LogWriter<D>, dir: &Path, identity: &Identity) -> Result<Content, OpenError> {
    let replica = identity.replica.get();
    let is_ours = |head: &Head| (head.cluster_id, head.replica) == (identity.cluster_id, replica);
    let content = scan(log.reader(log.first_index())?, dir, is_ours)?;
    let head = content.head.expect("a scan without a head is refused");
    match (head.cluster_id == identity.cluster_id, head.replica == replica) {
        (true, true) => Ok(content),
        (false, _) => {
            Err(OpenError::OtherCluster { dir: dir.to_path_buf(), found: head.cluster_id, expected: identity.cluster_id })
        }
        (true, false) => Err(OpenError::OtherReplica { dir: dir.to_path_buf(), found: head.replica, expected: identity.replica }),
    }
}

fn scan<F: walras_log_store::DiskFile>(
    reader: LogReader<F>,
    dir: &Path,
    is_ours: impl Fn(&Head) -> bool,
) -> Result<Content, OpenError> {
    let dir = dir.to_path_buf();
    let content = Content::scan(reader, is_ours).map_err(|error| match error {
        ScanError::Store(error) => OpenError::Store(error),
        ScanError::Misfit(Misfit { record, detail }) => OpenError::Misfit { dir: dir.clone(), record, detail },
    })?;
    match content.head {
        None => Err(OpenError::NoReplicaLog { dir }),
        Some(head) if head.version != REPLICA_LOG_VERSION => {
            Err(OpenError::Version { dir, found: head.version, supported: REPLICA_LOG_VERSION })
        }
        Some(_) => Ok(content),
    }
}

pub(crate) struct Found {
    pub(crate) recovered: Recovered,
    state: Option<Vec<u8>>,
    snapshot: Option<SnapshotInfo>,
    oldest_snapshot: Slot,
    damaged: Vec<PathBuf>,
}

/// The state from which a replica starts: the newest intact snapshot that the log reaches, and the slots after it.
pub(crate) fn recovered<D: Disk>(
    log: &LogWriter<D>,
    dir: &Path,
    content: &Content,
    snapshots: &Snapshots<D>,
) -> Result<Found, OpenError> {
    let mut damaged = snapshots.damaged();
    let mut reached: Vec<SnapshotInfo> = snapshots.list();
    reached.retain(|info| content.reaches(&info.meta));
    let chosen = loop {
        let Some(info) = reached.pop() else { break None };
        if let Some(state) = snapshots.sound_state(info.meta.slot)? {
            break Some((info, state));
        }
        damaged.push(snapshots.path(info.meta.slot));
    };
    let (chosen, state) = chosen.unzip();
    let genesis = content.installed.as_ref().map(|(meta, _)| meta).filter(|meta| meta.slot == Slot(0));
    let Some(snapshot) = chosen.as_ref().map(|info| &info.meta).or(genesis).cloned() else {
        return Err(OpenError::SnapshotMissing { dir: dir.to_path_buf(), detail: what_is_missing(content, snapshots, &damaged) });
    };
    let oldest_snapshot = reached.pop().map(|info| info.meta.slot).or(genesis.map(|meta| meta.slot)).unwrap_or(snapshot.slot);
    let after = snapshot.slot.next();
    let end = content.last_slot().map_or(after, Slot::next).max(after);
    let mut entries = Vec::new();
    let mut reader = SlotReader::new(content, after..end, &|from| log.reader(from)).map_err(|error| unreadable(dir, error))?;
    while let Some(entry) = reader.next().map_err(|error| unreadable(dir, error))? {
        entries.push(entry);
    }
    let recovered = Recovered { hard_state: content.hard_state, snapshot, entries };
    Ok(Found { recovered, state, snapshot: chosen, oldest_snapshot, damaged })
}

fn what_is_missing<D: Disk>(content: &Content, snapshots: &Snapshots<D>, damaged: &[PathBuf]) -> String {
    let needed = match (&content.installed, content.first_slot(), content.last_slot()) {
        (Some((meta, _)), _, None) => format!("slot {}", meta.slot),
        (Some((meta, _)), _, Some(last)) => format!("a slot from {} to {last}", meta.slot),
        (None, Some(first), Some(last)) => format!("a slot from {first} to {last}"),
        (None, _, _) => "any slot".to_owned(),
    };
    let there: Vec<String> = snapshots.list().iter().map(|info| info.meta.slot.to_string()).collect();
    let damaged: Vec<String> = damaged.iter().map(|path| path.display().to_string()).collect();
    format!("one of {needed} is needed; there are those of slots [{}], damaged are [{}]", there.join(", "), damaged.join(", "))
}

fn unreadable(dir: &Path, error: ReplicaLogError) -> OpenError {
    match error {
        ReplicaLogError::Store(error) => OpenError::Store(error),
        ReplicaLogError::Unreadable { record } => {
            OpenError::Misfit { dir: dir.to_path_buf(), record, detail: "it does not decode".to_owned() }
        }
        other => OpenError::Misfit { dir: dir.to_path_buf(), record: LogIndex(0), detail: other.to_string() },
    }
}

/// Points in the log where the number of entries is known, in ascending order.
pub(crate) fn anchors(content: &Content, snapshots: &[SnapshotInfo]) -> Vec<SnapshotMeta> {
    let mut anchors: Vec<SnapshotMeta> = snapshots.iter().map(|info| info.meta.clone()).collect();
    anchors.extend(content.installed.as_ref().map(|(meta, _)| meta.clone()));
    anchors.retain(|meta| content.reaches(meta));
    anchors.sort_by_key(|meta| meta.slot);
    anchors
}

/// A read-only view of a log that no replica has open, for `walras log dump`.
#[derive(Debug)]
pub struct Dump<D: Disk> {
    /// The cluster.
    pub cluster_id: u64,
    /// The replica.
    pub replica: u64,
    /// Its promises.
    pub hard_state: HardState,
    /// The slots held, first and last; those after `hard_state.commit` may not be decided.
    pub slots: Option<(Slot, Slot)>,
    /// How it stopped.
    pub stop: Stop,
    /// The snapshots with intact headers that the log reaches, oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    dir: PathBuf,
    content: Content,
    /// Reader of all records.
    records: LogReader<D::File>,
    disk: D,
    snapshot_dir: PathBuf,
    _lock: Option<D::Lock>,
}

impl<D: Disk> Dump<D> {
    /// Opens the log in `dir` for reading.
    pub fn open(disk: &D, dir: &Path) -> Result<Self, OpenError> {
        let (reader, lock) = open_read_only(disk, &dir.join(LOG_FOLDER), None)?;
        Self::look(disk, dir, reader, Some(lock))
    }

    /// Opens the log together with the retained history segments. Also works while a replica has the log open: see
    /// [`walras_log_store::open_whole`].
    pub fn open_whole(disk: &D, dir: &Path) -> Result<Self, OpenError> {
        let (reader, lock) = open_log_whole(disk, &dir.join(LOG_FOLDER), None)?;
        Self::look(disk, dir, reader, lock)
    }

    /// Opens the log while a replica writes to it. Sees at most what the log held at that time. After an error the caller opens it
    /// again; see [`walras_log_store::open_live`].
    pub fn open_live(disk: &D, dir: &Path) -> Result<Self, OpenError> {
        let reader = open_log_live(disk, &dir.join(LOG_FOLDER), None)?;
        Self::look(disk, dir, reader, None)
    }

    fn look(disk: &D, dir: &Path, records: LogReader<D::File>, lock: Option<D::Lock>) -> Result<Self, OpenError> {
        let all = records.again(records.first_index()).map_err(OpenError::Store)?;
        let content = scan(all, dir, |_| true)?;
        let head = content.head.expect("a scan without a head is refused");
        let snapshot_dir = dir.join(SNAPSHOT_FOLDER);
        let mut snapshots = read_infos(disk, &snapshot_dir, head.cluster_id)?;
        snapshots.retain(|info| content.reaches(&info.meta));
        Ok(Self {
            cluster_id: head.cluster_id,
            replica: head.replica,
            hard_state: content.hard_state,
            slots: content.first_slot().zip(content.last_slot()),
            stop: if content.is_closed { Stop::Orderly } else { Stop::Crash },
            snapshots,
            dir: dir.to_path_buf(),
            content,
            records,
            disk: disk.clone(),
            snapshot_dir,
            _lock: lock,
        })
    }

    /// The packs known to be decided, from the first one held. `None` if their log indexes cannot be known.
    pub fn decided(&self) -> Result<Option<DecidedReader<D::File>>, OpenError> {
        let end = self.slots.map_or(Slot(0), |(_, last)| last.next()).min(self.decided_slot()?.next());
        DecidedReader::from_the_first(&self.content, &self.places(), end, &|from| self.records.again(from))
            .map_err(|error| unreadable(&self.dir, error))
    }

    /// The last slot known to be decided: by the last written commit index, by a snapshot, or, for a replica that decides alone,
    /// the last slot before a change of members.
    fn decided_slot(&self) -> Result<Slot, OpenError> {
        let mut decided = self.hard_state.commit;
        let Some(newest) = self.places().pop() else { return Ok(decided) };
        decided = decided.max(newest.slot);
        let Members { voters, outgoing, .. } = &newest.members;
        if voters.len() > 1 || !outgoing.is_empty() || voters.iter().any(|id| id.get() != self.replica) {
            return Ok(decided);
        }
        let mut slots = self.slots_after(newest.slot)?;
        while let Some(entry) = slots.next().map_err(|error| unreadable(&self.dir, error))? {
            decided = decided.max(entry.slot);
            if matches!(entry.body, Body::Members(_)) {
                break;
            }
        }
        Ok(decided)
    }

    /// The points from which the log continues: its snapshots, and its start if that is known. Oldest first.
    #[must_use]
    pub fn places(&self) -> Vec<SnapshotMeta> {
        anchors(&self.content, &self.snapshots)
    }

    /// The slots held after this one, decided or not.
    pub fn slots_after(&self, slot: Slot) -> Result<SlotReader<D::File>, OpenError> {
        let after = slot.next();
        let slots = self.slots.map_or(after..after, |(first, last)| after.max(first)..last.next());
        SlotReader::new(&self.content, slots, &|from| self.records.again(from)).map_err(|error| unreadable(&self.dir, error))
    }

    /// The state of one of its snapshots.
    pub fn state(&self, snapshot: &SnapshotInfo) -> Result<Vec<u8>, SnapshotError> {
        SnapshotReader::open(&self.disk, &self.snapshot_dir, snapshot.clone())?.read_all()
    }
}
