//! Recovery: the newest snapshot, then the log's entries after it.

use std::path::Path;

use walras_engine::{Engine, Frozen};
use walras_gateway::{Gateway, GatewayConfig, KeyRecord, Rate};
use walras_log_store::{LetGo, LogError, LogOptions, LogWriter, SnapshotStore};
use walras_sequencer::{EntryError, LogGap, Sequencer, decode_entry};
use walras_testkit::Listener;
use walras_types::LogIndex;

use super::keeper::Keeper;
use super::process::Process;
use crate::common::disk::VenueDisk;
use crate::common::parts;
use crate::single::mutation::Mutation;

/// What a process starts from.
pub(crate) struct StartFrom<'a> {
    pub(crate) disk: VenueDisk,
    pub(crate) clock_ns: u64,
    pub(crate) keys: &'a [KeyRecord],
    pub(crate) mutation: Option<Mutation>,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Store(#[from] LogError),
    #[error("entry {0}: {1}")]
    Entry(LogIndex, EntryError),
    #[error(transparent)]
    Gap(#[from] LogGap),
    #[error("the snapshot of entry {0} does not restore: {1}")]
    Snapshot(LogIndex, String),
}

impl StartError {
    /// Whether the disk of the moment explains it: then the next start may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Store(LogError::Io { .. } | LogError::DiskFull { .. } | LogError::Poisoned))
    }
}

/// What a start found.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) snapshot_index: LogIndex,
    pub(crate) tail_was_torn: bool,
}

/// Commands that may wait for the log.
const WAITING_MAX: usize = 24;
const BLOCK_BYTES: u32 = 512;

pub(crate) fn log_dir() -> &'static Path {
    Path::new("/venue/log")
}

/// Few and small segments, so that all that happens to segments happens often.
pub(crate) fn log_options() -> LogOptions {
    LogOptions {
        segment_bytes: 24 * u64::from(BLOCK_BYTES),
        first_segment_bytes: 10 * u64::from(BLOCK_BYTES),
        spent_files_max: 2,
        let_go: LetGo::Reuse,
        block_bytes: BLOCK_BYTES,
        group_bytes_max: 4096,
        owner_id: 3,
        durable_floor: None,
    }
}

fn gateway(from: &StartFrom<'_>) -> Gateway {
    let rate = Rate::new(2_000, 2_000).expect("it is not zero");
    let ahead_ns = 1_000_000_000;
    let mut gateway = Gateway::new(GatewayConfig {
        stamps_from_ns: match from.mutation {
            Some(Mutation::ForgetNonces) => 0,
            Some(Mutation::TakeStampsFromStart) => from.clock_ns,
            _ => from.clock_ns + ahead_ns,
        },
        stamp_age_ns_max: 2_000_000_000,
        stamp_ahead_ns_max: ahead_ns,
        key_rate: rate,
        source_rate: rate,
        ..GatewayConfig::new(from.clock_ns)
    });
    for key in from.keys {
        gateway.add_key(key.clone()).expect("each client has a key of its own");
    }
    gateway
}

/// A state that waits to be written, while the venue goes on.
pub(super) struct FrozenState {
    engine: Frozen,
    listener: Vec<u8>,
}

impl FrozenState {
    pub(super) fn new(engine: &Engine, listener: &Listener) -> Self {
        let mut bytes = Vec::new();
        listener.snapshot(&mut bytes);
        Self { engine: engine.freeze(), listener: bytes }
    }

    /// The engine's part and that of who hears its events.
    pub(super) fn encode(&self) -> Vec<u8> {
        parts::join(2 * self.listener.len(), &[&|out| self.engine.snapshot(out), &|out| out.extend_from_slice(&self.listener)])
    }
}

fn decode_snapshot(bytes: &[u8]) -> Result<(Engine, Listener), String> {
    let [engine, listener] = parts::split(bytes)?;
    let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
    Ok((engine, Listener::restore(listener)?))
}

impl Process {
    pub(crate) fn start(from: &StartFrom<'_>) -> Result<Started, StartError> {
        let options = log_options();
        let snapshots = SnapshotStore::open(from.disk.clone(), Path::new("/venue/snapshots"), options.owner_id)?;
        let (snapshot, _) = snapshots.load_newest()?;
        let (snapshot_index, engine, mut listener) = match snapshot {
            None => (LogIndex(0), Engine::new(), Listener::default()),
            Some(found) => {
                let (engine, listener) =
                    decode_snapshot(&found.bytes).map_err(|detail| StartError::Snapshot(found.log_index, detail))?;
                let forget = from.mutation == Some(Mutation::ForgetMarketData);
                (found.log_index, engine, if forget { Listener::default() } else { listener })
            }
        };
        let durable_floor = (snapshot_index.0 > 0).then_some(snapshot_index);
        let options = LogOptions { durable_floor, ..options };
        let (log, found) = LogWriter::open(from.disk.clone(), log_dir(), options)?;
        let mut sequencer = Sequencer::new(engine, WAITING_MAX);
        let mut last_command = None;
        if log.next_index() > snapshot_index.next() {
            let mut reader = log.reader(snapshot_index.next())?;
            while let Some(stored) = reader.next()? {
                let entry = decode_entry(stored.index, stored.payload).map_err(|e| StartError::Entry(stored.index, e))?;
                last_command = entry.content.command().copied();
                let events = sequencer.replay(&entry)?.1.to_vec();
                let _ = listener.on_applied(sequencer.engine(), entry.log_index, entry.time, &events);
            }
        }
        let keeper = Keeper::new(log, from.mutation);
        let mut process = Process::new(gateway(from), sequencer, listener, keeper, snapshots, snapshot_index, from.mutation);
        if from.mutation == Some(Mutation::ReplayTwice)
            && let Some(command) = last_command
        {
            process.submit_again(from.clock_ns, command);
        }
        Ok(Started { process, snapshot_index, tail_was_torn: found.torn_tail.is_some() })
    }
}
