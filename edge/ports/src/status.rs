//! Figures about the venue that change all the time and are read without stopping it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use walras_engine::Engine;
use walras_market_data::MarketData;
use walras_replica::Storage;
use walras_types::{LogIndex, TimeNs};

/// How far a market is, as anybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Last entry applied.
    pub log_index: LogIndex,
    /// Its time.
    pub time: TimeNs,
    /// Trades since the log began.
    pub trades_total: u64,
}

impl Progress {
    /// As these have it.
    #[must_use]
    pub fn of(engine: &Engine, market: &MarketData) -> Self {
        Self { log_index: engine.last_applied(), time: engine.time(), trades_total: market.trade_count() }
    }
}

/// What the demo is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoStatus {
    /// Its pace, such as `10x`.
    pub speed: String,
    /// What it replays.
    pub source: String,
    /// How far it is in its stream, of 1000.
    pub progress_permille: u16,
}

/// Stands in an atomic for nothing.
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug)]
struct Inner {
    name: String,
    started: TimeNs,
    ready: AtomicBool,
    fair_access: AtomicBool,
    storage: AtomicU8,
    progress: Mutex<Progress>,
    accounts: AtomicU64,
    commands_total: AtomicU64,
    rejects_total: AtomicU64,
    snapshots_total: AtomicU64,
    connections: AtomicU64,
    dropped_readers_total: AtomicU64,
    feed_messages_total: AtomicU64,
    feed_encoded_total: AtomicU64,
    release_delay_ns: AtomicU64,
    release_bound_ns: AtomicU64,
    history_bytes: AtomicU64,
    history_segments: AtomicU64,
    disk_free_bytes: AtomicU64,
    demo: Mutex<Option<DemoStatus>>,
}

/// The figures; clone it freely.
#[derive(Clone, Debug)]
pub struct Status(Arc<Inner>);

macro_rules! figures {
    ($($(#[doc = $doc:literal])+ $get:ident, $set:ident: $outer:ty, $into:expr, $from:expr;)*) => {
        impl Status { $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $get(&self) -> $outer { ($from)(self.0.$get.load(Relaxed)) }
            /// Sets it.
            pub fn $set(&self, value: $outer) { self.0.$get.store(($into)(value), Relaxed); }
        )* }
    };
}

figures! {
    /// Whether commands are taken: recovery is over and no stop was asked for.
    ready, set_ready: bool, |v| v, |v| v;
    /// Whether orders or market data wait so that nobody is early by being near.
    fair_access, set_fair_access: bool, |v| v, |v| v;
    /// Accounts.
    accounts, set_accounts: u64, |v| v, |v| v;
    /// How long market data waits before anybody may see it; 0 where it does not.
    release_delay_ns, set_release_delay_ns: u64, |v| v, |v| v;
    /// How far release times here may be from those of other replicas, by the venue's clock; 0 where that is not known and this machine's own clock
    /// counts.
    release_bound_ns, set_release_bound_ns: u64, |v| v, |v| v;
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $get:ident, $add:ident;)*) => {
        impl Status { $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $get(&self) -> u64 { self.0.$get.load(Relaxed) }
            /// Adds to it.
            pub fn $add(&self, by: u64) { self.0.$get.fetch_add(by, Relaxed); }
        )* }
    };
}

counters! {
    /// Commands applied since the start of this process.
    commands_total, add_commands;
    /// Of them, commands that were rejected.
    rejects_total, add_rejects;
    /// Snapshots written since the start of this process.
    snapshots_total, add_snapshots;
    /// Readers dropped because they were too slow.
    dropped_readers_total, add_dropped_readers;
    /// Messages of feeds that were given to readers' connections.
    feed_messages_total, add_feed_messages;
    /// Messages of feeds that were encoded: one for all readers of a publication.
    feed_encoded_total, add_feed_encoded;
}

impl Status {
    /// A venue that has just started.
    pub fn new(name: &str, started: TimeNs) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            started,
            ready: AtomicBool::new(false),
            fair_access: AtomicBool::new(false),
            storage: AtomicU8::new(0),
            progress: Mutex::new(Progress { log_index: LogIndex(0), time: TimeNs(0), trades_total: 0 }),
            accounts: AtomicU64::new(0),
            commands_total: AtomicU64::new(0),
            rejects_total: AtomicU64::new(0),
            snapshots_total: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            dropped_readers_total: AtomicU64::new(0),
            feed_messages_total: AtomicU64::new(0),
            feed_encoded_total: AtomicU64::new(0),
            release_delay_ns: AtomicU64::new(0),
            release_bound_ns: AtomicU64::new(0),
            history_bytes: AtomicU64::new(0),
            history_segments: AtomicU64::new(0),
            disk_free_bytes: AtomicU64::new(UNKNOWN),
            demo: Mutex::new(None),
        }))
    }

    /// The venue's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// When this process had the data folder for itself.
    #[must_use]
    pub fn started(&self) -> TimeNs {
        self.0.started
    }

    /// Whether the log can be written.
    #[must_use]
    pub fn storage(&self) -> Storage {
        let known = [Storage::Ok, Storage::Full, Storage::NoDescriptors];
        let stored = self.0.storage.load(Relaxed);
        known.into_iter().find(|storage| *storage as u8 == stored).unwrap_or(Storage::Full)
    }

    /// Whether the log can be written.
    pub fn set_storage(&self, storage: Storage) {
        self.0.storage.store(storage as u8, Relaxed);
    }

    /// How far the market is; where market data is held, how far of what is released.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.0.progress.lock().expect("nobody panics while holding this lock")
    }

    /// From now on this is known.
    pub fn show(&self, progress: Progress) {
        *self.0.progress.lock().expect("nobody panics while holding this lock") = progress;
    }

    /// What is kept of the log's past, and what is free on its disk.
    pub fn set_history(&self, bytes: u64, segments: u64, disk_free_bytes: Option<u64>) {
        self.0.history_bytes.store(bytes, Relaxed);
        self.0.history_segments.store(segments, Relaxed);
        self.0.disk_free_bytes.store(disk_free_bytes.unwrap_or(UNKNOWN), Relaxed);
    }

    /// Bytes of segments that are kept though the log has let go of them.
    #[must_use]
    pub fn history_bytes(&self) -> u64 {
        self.0.history_bytes.load(Relaxed)
    }

    /// How many they are.
    #[must_use]
    pub fn history_segments(&self) -> u64 {
        self.0.history_segments.load(Relaxed)
    }

    /// What is free on the log's disk, where that is known.
    #[must_use]
    pub fn disk_free_bytes(&self) -> Option<u64> {
        Some(self.0.disk_free_bytes.load(Relaxed)).filter(|bytes| *bytes != UNKNOWN)
    }

    /// Open HTTP and WebSocket connections.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.0.connections.load(Relaxed)
    }

    /// Counts a connection that was opened.
    pub fn connection_opened(&self) {
        self.0.connections.fetch_add(1, Relaxed);
    }

    /// Counts it as closed.
    pub fn connection_closed(&self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }

    /// What the demo is doing, if there is one.
    #[must_use]
    pub fn demo(&self) -> Option<DemoStatus> {
        self.0.demo.lock().expect("nobody panics while holding this lock").clone()
    }

    /// Sets what the demo is doing.
    pub fn set_demo(&self, demo: Option<DemoStatus>) {
        *self.0.demo.lock().expect("nobody panics while holding this lock") = demo;
    }
}
