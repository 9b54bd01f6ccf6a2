//! A start: the log and the snapshots beside it, then the sequencer.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::rc::Rc;

use walras_consensus::{Body, Durability, Members, Recovered, ReplicaId, Settings, SnapshotMeta};
use walras_engine::Engine;
use walras_gateway::session::{Reports, ServerSettings};
use walras_gateway::{Gateway, GatewayConfig, KeyRecord, Rate};
use walras_log_store::sim_disk::SimDisk;
use walras_log_store::{LogError, LogOptions};
use walras_replica_log::{Identity, Note, OpenError, Opened, Options, ReplicaLog, SnapshotError};
use walras_sequencer::{BadStart, Content, DiskId, Entry, Introductions, ReplicatedSequencer, ReplicatedSettings, StartHalt};
use walras_testkit::Listener;
use walras_types::{LogIndex, TimeNs};
use walras_wire::Event;

use super::desk::Desk;
use super::fair;
use super::process::{Moment, Process};
use super::releases::{self, Releases};
use super::storage::Storage;
use super::surroundings::{State, Surroundings, report_settings};
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;
use crate::common::disk::VenueDisk;

/// What a process starts from.
pub(crate) struct StartFrom<'a> {
    pub(crate) me: ReplicaId,
    /// Under which id the checkers know it: another one for a second process under an id.
    pub(crate) named: ReplicaId,
    pub(crate) disk: VenueDisk,
    pub(crate) genesis: Members,
    /// All that there are or may be.
    pub(crate) peers: BTreeSet<ReplicaId>,
    pub(crate) at: Moment,
    /// For election timeouts.
    pub(crate) seed: u64,
    /// How far they differ.
    pub(crate) election_spread_ns: u64,
    /// When it counts as holding a command.
    pub(crate) durability: Durability,
    /// Reports of an account that it keeps.
    pub(crate) reports_kept: u32,
    /// Whether orders are stamped at every replica, and sequenced by that.
    pub(crate) is_fair: bool,
    /// Whether then stamps of replicas whose clocks are apart from the others' are discarded.
    pub(crate) has_strays: bool,
    pub(crate) keys: &'a [KeyRecord],
    pub(crate) checks: Rc<RefCell<Checks>>,
    pub(crate) mutation: Option<Mutation>,
}

/// Why a replica did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the snapshot of entry {0} does not restore: {1}")]
    Snapshot(LogIndex, String),
    /// A new replica takes its place.
    #[error("it did not stop in good order, and may have forgotten what it promised")]
    MayHaveForgotten,
    #[error("the note beside the log: {0}")]
    Note(#[from] std::io::Error),
    #[error(transparent)]
    Introductions(#[from] BadStart),
    #[error(transparent)]
    Halt(#[from] StartHalt),
}

impl StartError {
    /// Whether the disk of the moment explains it: then the next start may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Open(OpenError::Store(error) | OpenError::Snapshot(SnapshotError::Disk(error))) => is_transient(error),
            Self::Note(error) => error.kind() != std::io::ErrorKind::InvalidData,
            _ => false,
        }
    }
}

fn is_transient(error: &LogError) -> bool {
    matches!(error, LogError::Io { .. } | LogError::DiskFull { .. } | LogError::Poisoned)
}

const CLUSTER_ID: u64 = 0xC1A5;
/// Entries between two states that are compared and kept.
const CHECKPOINT_EVERY: u64 = 48;
const RETAINED_SLOTS: u64 = 24;
const BLOCK_BYTES: u32 = 512;

/// Few and small segments, so that all that happens to segments happens often.
fn log_options() -> Options {
    let log = LogOptions {
        segment_bytes: 40 * u64::from(BLOCK_BYTES),
        first_segment_bytes: 20 * u64::from(BLOCK_BYTES),
        spent_files_max: 2,
        block_bytes: BLOCK_BYTES,
        group_bytes_max: 8_192,
        ..LogOptions::default()
    };
    Options { log, retained_slots: RETAINED_SLOTS }
}

fn settings(from: &StartFrom<'_>) -> ReplicatedSettings {
    let common = Settings::new(CLUSTER_ID, from.me);
    let consensus = Settings {
        tick_ns: 5_000_000,
        pack_bytes_max: 4_096,
        message_bytes_max: 4_096,
        uncommitted_bytes_max: 1 << 16,
        retained_slots: RETAINED_SLOTS,
        election_timeout_max_ns: common.election_timeout_min_ns + from.election_spread_ns,
        durability: from.durability,
        newcomer_quiet_ns: if from.mutation == Some(Mutation::NewcomersTakePart) { 0 } else { common.newcomer_quiet_ns },
        // A forgotten vote shows where several stand at once, which followers that hear of a death at once take care not to do.
        fail_over_on_lost_link: from.mutation != Some(Mutation::ForgetVote),
        ..common
    };
    ReplicatedSettings {
        waiting_max: 48,
        packs_max: 4,
        checkpoint_every: CHECKPOINT_EVERY,
        peers: from.peers.clone(),
        release: from.is_fair.then(releases::rules),
        ..ReplicatedSettings::new(consensus)
    }
}

fn server_settings() -> ServerSettings {
    ServerSettings { window: 16, idle_timeout_ns: 4_000_000_000, logon_timeout_ns: 1_500_000_000, output_bytes_max: 1 << 16 }
}

fn gateway(from: &StartFrom<'_>) -> Gateway {
    let rate = Rate::new(2_000, 2_000).expect("it is not zero");
    let mut gateway =
        Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(super::STAMPS_FROM_NS) });
    for key in from.keys {
        gateway.add_key(key.clone()).expect("each client has a key of its own");
    }
    gateway
}

fn identity(me: ReplicaId, genesis: &Members) -> Identity {
    Identity { cluster_id: CLUSTER_ID, replica: me, genesis: genesis.clone() }
}

fn dir() -> &'static Path {
    Path::new("/replica")
}

impl Process {
    /// The process, from the snapshot of this entry; and whether its log had a torn tail.
    pub(crate) fn start(from: &StartFrom<'_>) -> Result<(Self, LogIndex, bool), StartError> {
        let (note, introductions) = introduce(from)?;
        let opened = ReplicaLog::open(from.disk.clone(), dir(), identity(from.me, &from.genesis), log_options())?;
        let Opened { log, snapshots, mut recovered, report } = opened;
        let may_have_promised = introductions.is_settled();
        if may_have_promised && !report.has_all_promises(from.durability) && from.mutation != Some(Mutation::RejoinAsItself) {
            return Err(StartError::MayHaveForgotten);
        }
        let storage = Storage::new(log, snapshots, note, from.durability, from.mutation);
        let meta = recovered.snapshot.clone();
        let broken = |why| StartError::Snapshot(meta.log_index, why);
        let kept = report_settings(match from.mutation {
            Some(Mutation::ReportsDroppedEarly) => 4,
            _ => from.reports_kept,
        });
        let mut state = match meta.slot.0 {
            0 => State::genesis(kept),
            _ => State::decode(&storage.read(meta.slot).map_err(broken)?, kept).map_err(broken)?,
        };
        spoil(from, &mut recovered, &mut state);
        let State { engine, listener, reports } = state;
        let decided = recovered.entries.partition_point(|entry| entry.slot <= recovered.hard_state.commit);
        from.checks.borrow_mut().on_decided(from.named, &recovered.entries[..decided]);
        from.checks.borrow_mut().on_start(from.named, &engine, &listener);
        let mut around = Surroundings {
            me: from.named,
            storage,
            listener,
            reports,
            state_bytes: 0,
            desk: Desk::new(gateway(from), server_settings()),
            leader: None,
            leader_address: Rc::from(""),
            vote: None,
            fair: from.is_fair.then(|| Box::new(fair::start(from.me, from.seed, from.has_strays))),
            releases: from.is_fair.then(Releases::new),
            now_ns: from.at.now_ns,
            clock_ns: from.at.clock_ns,
            sync_ns: 0,
            snapshot_ns: 0,
            solve_ns: 0,
            not_sent: Vec::new(),
            installed_count: 0,
            out: Vec::new(),
            checks: from.checks.clone(),
            mutation: from.mutation,
            solving: VecDeque::new(),
        };
        if let Some(releases) = &mut around.releases {
            releases.begin_from(from.me, &engine, &mut from.checks.borrow_mut(), from.mutation);
        }
        let settings = ReplicatedSettings { introductions: Some(introductions), ..settings(from) };
        let sequencer = ReplicatedSequencer::start(from.at.now_ns, settings, recovered, engine, from.seed, &mut around)?;
        // Nobody reads what was published of old.
        let _ = around.releases.as_mut().map(Releases::take_published);
        let mut process = Self::new(sequencer, around);
        process.at(from.at);
        Ok((process, meta.log_index, report.store.torn_tail.is_some()))
    }
}

/// As the product's replicas do before they open their logs.
fn introduce(from: &StartFrom<'_>) -> Result<(Note<VenueDisk>, Introductions), StartError> {
    let note = Note::beside(from.disk.clone(), dir());
    // Without introductions every folder was taken at its word.
    let has_log = note.has_log()? || from.mutation == Some(Mutation::RejoinWithEmptyDisk);
    let kept = note.read()?;
    let number = DiskId::of_random(walras_testkit::Random::new(from.seed).fork(77).next_u64());
    let introductions = Introductions::at_start(kept.as_deref(), has_log, from.me, from.genesis.voters.clone(), number, "")?;
    note.write(&introductions.encode())?;
    Ok((note, introductions))
}

/// What a planted fault makes of what was recovered.
fn spoil(from: &StartFrom<'_>, recovered: &mut Recovered, state: &mut State) {
    let is_from_snapshot = recovered.snapshot.slot.0 > 0;
    match from.mutation {
        Some(Mutation::ForgetVote) => recovered.hard_state.vote = None,
        Some(Mutation::ForgetTail) if is_from_snapshot => {
            recovered.entries.clear();
            recovered.hard_state.commit = recovered.snapshot.slot;
        }
        Some(Mutation::ForgetMembers) => recovered.snapshot.members = from.genesis.clone(),
        Some(Mutation::ForgetMarketData) => state.listener = Listener::default(),
        Some(Mutation::ReportsForgotten) => {
            state.reports = Reports::new(state.reports.settings());
            let time = TimeNs(0);
            for account in (0..state.engine.account_count()).map(walras_types::AccountId) {
                state.reports.on_event(recovered.snapshot.log_index, time, &Event::AccountCreated(account), |_, _| ());
            }
        }
        Some(Mutation::ForgetSessions) => state.engine = replayed_otherwise(from, &recovered.snapshot, true),
        Some(Mutation::Diverge) if from.me.get() == 2 => state.engine = replayed_otherwise(from, &recovered.snapshot, false),
        _ => {}
    }
}

/// The log up to a snapshot, without sessions, or with a little more money.
fn replayed_otherwise(from: &StartFrom<'_>, snapshot: &SnapshotMeta, forgets_sessions: bool) -> Engine {
    use walras_types::Amount;
    use walras_wire::{Command, Transfer};
    let (mut engine, mut events) = (Engine::new(), Vec::new());
    let checks = from.checks.borrow();
    for mut entry in checks.entries_up_to(snapshot.log_index) {
        match entry.content {
            Content::Command(Command::OpenSession(_)) if forgets_sessions => entry.content = Command::Tick.into(),
            Content::Command(Command::Deposit(transfer)) if !forgets_sessions => {
                let amount = Amount::new(transfer.amount.get() + 1).unwrap_or(transfer.amount);
                entry.content = Command::Deposit(Transfer { amount, ..transfer }).into();
            }
            _ => {}
        }
        if forgets_sessions {
            entry.ordinal = None;
        }
        entry.apply(&mut engine, &mut events);
        events.clear();
    }
    engine
}

/// Whether a replica would have an entry if its power failed now. `None` where that can not be said: its disk would not open.
pub(crate) fn holds(disk: &SimDisk, me: ReplicaId, genesis: &Members, entry: &Entry) -> Option<bool> {
    let copy = disk.fork();
    copy.crash();
    copy.set_capacity(u64::MAX);
    let opened = ReplicaLog::open(copy, dir(), identity(me, genesis), log_options()).ok()?;
    let Recovered { snapshot, entries, .. } = &opened.recovered;
    if entry.log_index <= snapshot.log_index {
        return Some(true);
    }
    let mut expected = Vec::new();
    entry.encode(&mut expected).expect("it was read from a log");
    let mut next = snapshot.log_index.next();
    for slot in entries {
        let Body::Pack(bytes) = &slot.body else { continue };
        let pack = walras_consensus::Packed::decode(bytes.clone())?;
        let len = pack.len() as u64;
        if entry.log_index.0 < next.0 + len {
            let at = usize::try_from(entry.log_index.0 - next.0).expect("a pack is short");
            return Some(pack.entries().nth(at) == Some(&expected[..]));
        }
        next = LogIndex(next.0 + len);
    }
    Some(false)
}
