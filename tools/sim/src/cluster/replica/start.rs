//! A start: the log and its snapshots, then the sequencer.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use walras_consensus::{Body, Durability, Members, Recovered, ReplicaId, Settings, SnapshotMeta};
use walras_engine::Engine;
use walras_engine::versions::{NEWEST, REHEARSAL};
use walras_feed::publisher::Views;
use walras_fix_orders::FixSettings;
use walras_gateway::session::{ReportSettings, Reports, ServerSettings, VenueKeys};
use walras_gateway::{Gateway, GatewayConfig, KeyRecord, Rate};
use walras_log_store::sim_disk::SimDisk;
use walras_log_store::{DiskFile, LogError, LogOptions};
use walras_market_data::MarketData;
use walras_replica::{PublishSettings, Replica, ReplicaSettings, State};
use walras_replica_log::{Dump, Identity, Note, OpenError, Opened, Options, ReplicaLog, SlotReader, SnapshotError};
use walras_sequencer::{BadStart, Content, DiskId, Entry, Introductions, ReplicatedSettings, StartHalt, decode_entry};
use walras_testkit::Random;
use walras_types::{EngineVersion, LogIndex, TimeNs};
use walras_wire::order_entry::Sealing;
use walras_wire::{AccountEvent, Command, Event};

use super::moment::Moment;
use super::process::{Disk, Process};
use super::storage::Storage;
use super::watch::Watch;
use super::{fair, releases};
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;
use crate::cluster::places::leaf_ids;
use crate::cluster::tempo::Density;
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
    /// Whether, with fair access, stamps of replicas whose clocks are apart from the others' are discarded.
    pub(crate) has_outliers: bool,
    /// Whether clients may speak FIX.
    pub(crate) has_fix: bool,
    /// Whether, with fair access, orders are merged by watermarks.
    pub(crate) merges: bool,
    /// Whether a leader whose clock is far off hands over.
    pub(crate) compares_clocks: bool,
    /// How dense work is.
    pub(crate) density: Density,
    /// The newest version of the engine that its program knows.
    pub(crate) engine_newest: EngineVersion,
    /// Under which a new venue begins, if that stands in its log.
    pub(crate) engine_at_start: Option<EngineVersion>,
    pub(crate) keys: &'a [KeyRecord],
    pub(crate) checks: Rc<RefCell<Checks>>,
    pub(crate) mutation: Option<Mutation>,
}

/// A process that began.
pub(crate) struct Started {
    pub(crate) process: Process,
    /// The entry of the snapshot that it began from.
    pub(crate) snapshot_index: LogIndex,
    /// Slots that its log held after that.
    pub(crate) tail_slots: usize,
    pub(crate) tail_was_torn: bool,
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
    #[error("the note next to the log: {0}")]
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

impl StartError {
    /// Whether bytes that were there are others.
    pub(crate) fn is_of_damage(&self) -> bool {
        matches!(
            self,
            Self::Open(
                OpenError::Store(LogError::Corrupt { .. } | LogError::BelowFloor { .. })
                    | OpenError::SnapshotMissing { .. }
                    | OpenError::Snapshot(SnapshotError::Damaged { .. })
            )
        )
    }

    /// The segment that is damaged.
    pub(crate) fn damaged_file(&self) -> Option<PathBuf> {
        match self {
            Self::Open(OpenError::Store(LogError::Corrupt { path, .. })) => Some(path.clone()),
            _ => None,
        }
    }
}

fn is_transient(error: &LogError) -> bool {
    matches!(error, LogError::Io { .. } | LogError::DiskFull { .. } | LogError::Poisoned)
}

const CLUSTER_ID: u64 = 0xC1A5;
/// A leader whose clock is further off most others' hands over.
const CLOCK_ERROR_NS_MAX: u64 = 1_000_000_000;
/// Where nothing else is logged, the time is.
const TICK_NS: u64 = 500_000_000;
const RETAINED_SLOTS: u64 = 24;
/// As many slots as [`Mutation::ForgetEndOfTail`] reads.
const TAIL_SLOTS_MAX: usize = 256;
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

thread_local! {
    /// Its dictionaries are read once in each thread.
    static FIX: FixSettings = FixSettings::of("WALRAS");
}

/// How order entry by FIX is set.
pub(crate) fn fix_settings() -> FixSettings {
    FIX.with(Clone::clone)
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
        probation_ns: if from.mutation == Some(Mutation::NoProbation) { 0 } else { common.probation_ns },
        // A forgotten vote shows where several stand at once, which followers that hear of a death at once take care not to do.
        fast_fail_over: from.mutation != Some(Mutation::ForgetVote),
        ..common
    };
    ReplicatedSettings {
        waiting_max: 48,
        packs_max: 4,
        checkpoint_every: from.density.checkpoint_every,
        engine_newest: from.engine_newest,
        engine_at_start: from.engine_at_start,
        peers: from.peers.clone(),
        release: from.is_fair.then(releases::rules),
        ..ReplicatedSettings::new(consensus)
    }
}

/// So many reports of an account are kept.
pub(crate) fn report_settings(per_account_max: u32) -> ReportSettings {
    ReportSettings { per_account_max, ..ReportSettings::default() }
}

fn server_settings(mutation: Option<Mutation>) -> ServerSettings {
    // The fault is in what the client says, which it would seal.
    let sealing = if mutation == Some(Mutation::RetryAltered) { Sealing::Off } else { Sealing::Required };
    ServerSettings {
        window: 16,
        idle_timeout_ns: 4_000_000_000,
        logon_timeout_ns: 1_500_000_000,
        output_bytes_max: 1 << 16,
        sealing,
        ..ServerSettings::default()
    }
}

/// Others for each start: of the seed, which is that of the start.
fn entry_keys(from: &StartFrom<'_>) -> VenueKeys {
    let mut entropy = [0; VenueKeys::ENTROPY_LEN];
    Random::new(from.seed).fork(0x5ea1).fill(&mut entropy);
    VenueKeys::new(&entropy)
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

/// Checks requests that are signed by themselves. Its nonces end with the process, so it takes none that an earlier one may have
/// taken.
fn signed_gateway(from: &StartFrom<'_>) -> Gateway {
    let rate = Rate::new(2_000, 2_000).expect("it is not zero");
    let (clock_ns, ahead_ns) = (from.at.clock_ns, 1_000_000_000);
    let mut gateway = Gateway::new(GatewayConfig {
        stamps_from_ns: match from.mutation {
            Some(Mutation::ForgetNonces) => 0,
            Some(Mutation::TakeStampsFromStart) => clock_ns,
            _ => clock_ns + ahead_ns,
        },
        stamp_age_ns_max: 2_000_000_000,
        stamp_ahead_ns_max: ahead_ns,
        key_rate: rate,
        source_rate: rate,
        ..GatewayConfig::new(clock_ns)
    });
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
    pub(crate) fn start(from: &StartFrom<'_>) -> Result<Started, StartError> {
        let (note, introductions) = introduce(from)?;
        let opened = ReplicaLog::open(from.disk.clone(), dir(), identity(from.me, &from.genesis), log_options())?;
        let Opened { log, snapshots, mut recovered, state, report } = opened;
        let may_have_promised = introductions.is_settled();
        if may_have_promised && !report.has_all_promises(from.durability) && from.mutation != Some(Mutation::RejoinAsItself) {
            return Err(StartError::MayHaveForgotten);
        }
        let disk = Disk { snapshots: snapshots.clone(), note };
        let storage = Storage::new(log, snapshots, from.durability, from.mutation);
        let meta = recovered.snapshot.clone();
        let broken = |why| StartError::Snapshot(meta.log_index, why);
        let kept = report_settings(match from.mutation {
            Some(Mutation::ReportsDroppedEarly) => 4,
            _ => from.reports_kept,
        });
        let mut state = match state {
            None => State::genesis(kept),
            Some(bytes) => State::decode(&bytes, kept).map_err(broken)?,
        };
        let tail_slots = recovered.entries.len();
        let last_signed = recovered.entries.iter().rev().find_map(|slot| last_signed(&slot.body));
        from.checks.borrow_mut().on_recovered(from.named, recovered.hard_state.commit, &recovered.entries);
        spoil(from, &mut recovered, &mut state);
        let watch = Watch::new(from.named, from.at, from.checks.clone(), from.mutation, from.is_fair);
        let decided = recovered.entries.partition_point(|entry| entry.slot <= recovered.hard_state.commit);
        from.checks.borrow_mut().on_decided(from.named, &recovered.entries[..decided]);
        let readers = from.checks.borrow().readers_after(meta.log_index);
        from.checks.borrow_mut().on_start(from.named, &state.engine, (&state.derived.market, readers.as_ref()));
        let sequencing = ReplicatedSettings { introductions: Some(introductions), ..settings(from) };
        let addresses = from.peers.iter().chain([&from.me]).map(|id| (*id, super::address(*id).into()));
        let settings = ReplicaSettings {
            entry: server_settings(from.mutation),
            entry_keys: Arc::new(entry_keys(from)),
            fair: from.is_fair.then(|| fair::settings(from.seed, from.has_outliers, from.merges)),
            publish: from
                .is_fair
                .then_some(PublishSettings { every_ns: releases::PUBLISH_EVERY_NS, delay_ns_max: releases::DELAY_NS_MAX }),
            feed: Some(Views::ALL),
            leaves: leaf_ids().collect(),
            addresses: addresses.collect(),
            clock_error_ns_max: if from.compares_clocks { CLOCK_ERROR_NS_MAX } else { 0 },
            tick_every_ns: TICK_NS,
            threads: NonZero::<usize>::MIN,
            snapshot_every_ns: from.density.state_every_ns.and_then(NonZero::new),
            sequencing,
        };
        let mut replica = Replica::start(from.at.time(), settings, recovered, state, from.seed, (watch, disk))?;
        if from.has_fix {
            replica.entry_mut().set_fix(fix_settings());
        }
        replica.go_live();
        let gateways = [gateway(from), signed_gateway(from)];
        let mut process = Self::new((from.named, from.at), replica, (storage, gateways), from.density, from.merges, from.mutation);
        process.last_signed = last_signed;
        let (snapshot_index, tail_was_torn) = (meta.log_index, report.store.torn_tail.is_some());
        Ok(Started { process, snapshot_index, tail_slots, tail_was_torn })
    }
}

/// The last order in a slot that was signed by itself.
fn last_signed(body: &Body) -> Option<Command> {
    let Body::Pack(bytes) = body else { return None };
    let pack = walras_consensus::Packed::decode(bytes.clone())?;
    let commands = pack.entries().filter_map(|bytes| decode_entry(LogIndex(1), bytes).ok()?.content.command().copied());
    commands.filter(crate::cluster::signed_order::is_signed).last()
}

/// As the product's replicas do before they open their logs.
fn introduce(from: &StartFrom<'_>) -> Result<(Note<VenueDisk>, Introductions), StartError> {
    let note = Note::of_log(from.disk.clone(), dir());
    // Without introductions every folder was taken at its word.
    let has_log = note.has_log()? || from.mutation == Some(Mutation::RejoinWithEmptyDisk);
    let kept = note.read()?;
    let number = DiskId::of_random(Random::new(from.seed).fork(77).next_u64());
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
        Some(Mutation::ForgetEndOfTail) => {
            recovered.entries.truncate(TAIL_SLOTS_MAX);
            let last = recovered.entries.last().map_or(recovered.snapshot.slot, |entry| entry.slot);
            recovered.hard_state.commit = recovered.hard_state.commit.min(last);
        }
        Some(Mutation::ForgetMembers) => recovered.snapshot.members = from.genesis.clone(),
        Some(Mutation::ForgetMarketData) => state.derived.market = MarketData::new(),
        Some(Mutation::ReportsForgotten) => {
            state.reports = Reports::new(state.reports.settings());
            let time = TimeNs(0);
            for account in (0..state.engine.account_count()).map(walras_types::AccountId) {
                state.reports.on_event(
                    recovered.snapshot.log_index,
                    time,
                    &Event::Account(AccountEvent::Created(account)),
                    |_, _| (),
                );
            }
        }
        Some(Mutation::ForgetSessions) => state.engine = replayed_otherwise(from, &recovered.snapshot, Otherwise::WithoutSessions),
        Some(Mutation::Diverge) if from.me.get() == 2 => {
            state.engine = replayed_otherwise(from, &recovered.snapshot, Otherwise::WithMoreMoney);
        }
        Some(Mutation::RulesWithoutEntry) if from.engine_newest > NEWEST => {
            state.engine = replayed_otherwise(from, &recovered.snapshot, Otherwise::UnderNextRules);
        }
        _ => {}
    }
}

/// What is wrong about a state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    WithoutSessions,
    WithMoreMoney,
    UnderNextRules,
}

/// The log up to a snapshot, with something wrong about it.
fn replayed_otherwise(from: &StartFrom<'_>, snapshot: &SnapshotMeta, wrong: Otherwise) -> Engine {
    use walras_types::Amount;
    use walras_wire::{AccountCommand, Command, SessionCommand, Transfer, VenueCommand};
    let (mut engine, mut events) = (Engine::new(), Vec::new());
    let checks = from.checks.borrow();
    for mut entry in checks.entries_up_to(snapshot.log_index) {
        match entry.content {
            Content::Command(Command::Session(SessionCommand::Open(_))) if wrong == Otherwise::WithoutSessions => {
                entry.content = Command::Venue(VenueCommand::Tick).into()
            }
            Content::Command(Command::Venue(VenueCommand::SetEngineVersion(_))) if wrong == Otherwise::UnderNextRules => {
                entry.content = Command::Venue(VenueCommand::SetEngineVersion(REHEARSAL)).into();
            }
            Content::Command(Command::Account(AccountCommand::Deposit(transfer))) if wrong == Otherwise::WithMoreMoney => {
                let amount = Amount::new(transfer.amount.get() + 1).unwrap_or(transfer.amount);
                entry.content = Command::Account(AccountCommand::Deposit(Transfer { amount, ..transfer })).into();
            }
            _ => {}
        }
        if wrong == Otherwise::WithoutSessions {
            entry.ordinal = None;
        }
        entry.apply(&mut engine, &mut events);
        events.clear();
    }
    engine
}

/// Whether a replica would have an entry if its power failed now. `None` where that is unknown: its disk would not open.
///
/// The product reads of a copy of the disk what it reads at a start; but states of snapshots only where nothing else has the entry,
/// since all else of them is in their headers.
pub(crate) fn holds(disk: &SimDisk, me: ReplicaId, entry: &Entry) -> Option<bool> {
    let copy = disk.fork();
    copy.crash();
    let dump = match Dump::open(&copy, dir()) {
        Ok(dump) => dump,
        // It would begin again.
        Err(OpenError::NoReplicaLog { .. } | OpenError::Store(LogError::NotFound { .. })) => return Some(false),
        Err(_) => return None,
    };
    if (dump.cluster_id, dump.replica) != (CLUSTER_ID, me.get()) {
        return None;
    }
    for place in dump.places().into_iter().rev() {
        if entry.log_index > place.log_index {
            return is_among(&mut dump.slots_after(place.slot).ok()?, place.log_index, entry);
        }
        let snapshot = dump.snapshots.iter().find(|info| info.meta == place);
        if snapshot.is_some_and(|info| dump.state(info).is_ok()) {
            return Some(true);
        }
    }
    None
}

/// Whether an entry is in slots that come after the entry `before`.
fn is_among<F: DiskFile>(slots: &mut SlotReader<F>, before: LogIndex, entry: &Entry) -> Option<bool> {
    let mut expected = Vec::new();
    entry.encode(&mut expected).expect("it was read from a log");
    let mut next = before.next();
    while let Some(slot) = slots.next().ok()? {
        let Body::Pack(bytes) = slot.body else { continue };
        let pack = walras_consensus::Packed::decode(bytes)?;
        let len = pack.len() as u64;
        if entry.log_index.0 < next.0 + len {
            let at = usize::try_from(entry.log_index.0 - next.0).expect("a pack is short");
            return Some(pack.entries().nth(at) == Some(&expected[..]));
        }
        next = LogIndex(next.0 + len);
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use walras_consensus::{Pack, Slot, SlotEntry, Term, Ticket, Write};
    use walras_log_store::sim_disk::SimDiskConfig;
    use walras_wire::{Command, VenueCommand};

    use super::*;

    fn entry(index: u64) -> Entry {
        Entry {
            log_index: LogIndex(index),
            time: TimeNs(index),
            ordinal: None,
            key: None,
            nonce: None,
            content: Command::Venue(VenueCommand::Tick).into(),
        }
    }

    /// Entries up to this one, in a slot.
    fn slot(slot: u64, entries: std::ops::RangeInclusive<u64>) -> SlotEntry {
        let mut pack = Pack::new();
        for index in entries {
            let mut bytes = Vec::new();
            entry(index).encode(&mut bytes).unwrap();
            pack.push(&bytes);
        }
        SlotEntry { slot: Slot(slot), term: Term(1), body: Body::Pack(pack.into_bytes()) }
    }

    #[test]
    fn an_entry_is_held_by_the_log_or_by_a_snapshot_once_it_is_durable() {
        let disk = SimDisk::new(1, SimDiskConfig::default());
        let me = ReplicaId::new(2).unwrap();
        assert_eq!(holds(&disk, me, &entry(1)), Some(false), "there is nothing");
        let genesis = Members::of_voters([me]);
        let mut opened = ReplicaLog::open(disk.clone(), dir(), identity(me, &genesis), log_options()).unwrap();
        assert_eq!(holds(&disk, me, &entry(1)), Some(false), "there is nothing in the log");
        let hard_state = walras_consensus::HardState { term: Term(1), ..opened.recovered.hard_state };
        let entries = vec![slot(1, 1..=2), slot(2, 3..=5)];
        opened.log.write(&Write { ticket: Ticket(1), hard_state, installed: None, entries }).unwrap();
        assert_eq!(holds(&disk, me, &entry(1)), Some(false), "it is not durable");
        opened.log.sync().unwrap();
        let meta = SnapshotMeta { slot: Slot(1), term: Term(1), log_index: LogIndex(2), members: genesis };
        let check = |what: &str| {
            assert!((1..=5).all(|index| holds(&disk, me, &entry(index)) == Some(true)), "{what}");
            let other = Entry { time: TimeNs(9), ..entry(3) };
            assert_eq!([&other, &entry(6)].map(|entry| holds(&disk, me, entry)), [Some(false); 2], "{what}");
        };
        check("in the log");
        let mut writer = opened.snapshots.begin(meta).unwrap();
        writer.append(&[7; 3_000]).unwrap();
        writer.finish().unwrap();
        check("next to a snapshot");
        assert_eq!(holds(&disk, me, &Entry { time: TimeNs(9), ..entry(2) }), Some(true), "a snapshot does not say which it was");
        let path = disk.paths().into_iter().find(|path| path.extension().is_some_and(|end| end == "snap")).unwrap();
        disk.flip(&path, 5_000, 1);
        assert_eq!(holds(&disk, me, &Entry { time: TimeNs(9), ..entry(2) }), Some(false), "the snapshot is damaged");
        check("next to a damaged snapshot");
        assert_eq!(holds(&disk, ReplicaId::new(1).unwrap(), &entry(1)), None, "it is another's");
    }
}
