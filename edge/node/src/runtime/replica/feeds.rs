//! What is made of a replica's entries at this node beside its state: feeds, figures, the catalog, the archive.

use std::time::{Duration, Instant};

use tracing::error;
use walras_engine::Engine;
use walras_fair_access::publications::ReleaseTime;
use walras_feed::publisher::PublishError;
use walras_market_data::Inconsistency;
use walras_ports::{Feed, ReleaseSource, SharedCatalog};
use walras_replica::{Applied, Derived, PassedOn, Probe, Publication, Route};
use walras_sequencer::Timed;

use super::traces::Traces;
use crate::runtime::listeners::Listeners;

/// All of it.
pub(super) struct Feeds {
    pub(super) listeners: Listeners,
    pub(super) feed: Feed,
    pub(super) traces: Traces,
    /// The clock by which market data is released.
    pub(super) release_source: ReleaseSource,
    pub(super) shared_catalog: SharedCatalog,
    /// Entries applied since this was asked before.
    pub(super) applied_count: u64,
    /// Entries were applied that readers were not sent yet.
    pub(super) is_unsent: bool,
    /// Entries were applied since progress was shown.
    pub(super) is_unshown: bool,
    /// The state was replaced: readers have to connect again.
    pub(super) is_replaced: bool,
    /// How long it stood still for the last snapshot.
    pub(super) freezing: Freezing,
}

/// How long the replica stands still for a snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Freezing {
    /// It does since then.
    Since(Instant),
    /// It did for so long.
    Took(Duration),
}

impl Probe for Feeds {
    fn passed_on(&mut self, passed: &PassedOn<'_>) {
        self.traces.received(passed.ordinal);
        match passed.route {
            Route::Sequencer => self.traces.sequenced(passed.ordinal),
            Route::Stamped { .. } => {}
        }
    }

    fn timed(&mut self, timed: Timed) {
        self.traces.released(timed);
    }

    fn decided(&mut self) {
        self.traces.decided();
    }

    fn applied(&mut self, applied: &mut Applied<'_>) {
        let Applied { engine, derived, entry, deltas, known_from, .. } = applied;
        self.traces.applied(entry.entry.ordinal, entry.origin.as_ref());
        self.applied_count += 1;
        (self.is_unsent, self.is_unshown) = (true, true);
        if let Some(known_from) = *known_from {
            self.feed.set_known_from(known_from);
        }
        if self.listeners.on_events(entry.entry, engine, entry.events, deltas, &derived.records, Some(&mut self.feed)) {
            self.shared_catalog.set(self.listeners.catalog.clone());
        }
    }

    fn publish(&mut self, publication: Publication<'_>) -> Option<i64> {
        let Publication { engine, market, ahead_ns, .. } = publication;
        self.feed.publish(engine, market);
        let transit_ns = self.release_source.ago_ns(engine.time(), ahead_ns);
        self.traces.published(transit_ns);
        Some(transit_ns)
    }

    fn inconsistent(&mut self, defect: Inconsistency) {
        error!("market data: {defect}");
    }

    fn feed_stopped(&mut self, defect: PublishError) {
        error!("the binary feed is published no more: {defect}");
    }

    fn begun(&mut self, _: &Engine, _: &Derived, known_from: Option<ReleaseTime>) {
        if let Some(known_from) = known_from {
            self.feed.set_known_from(known_from);
        }
    }

    fn installed(&mut self, engine: &Engine, derived: &Derived, known_from: Option<ReleaseTime>) {
        self.begun(engine, derived, known_from);
        self.listeners.begin_from(engine);
        if let Some(archive) = &mut self.listeners.archive {
            archive.start_over(engine);
        }
        self.shared_catalog.set(self.listeners.catalog.clone());
        self.is_replaced = true;
    }

    fn freezes(&mut self) {
        self.freezing = Freezing::Since(Instant::now());
    }

    fn frozen(&mut self) {
        if let Freezing::Since(begun) = self.freezing {
            self.freezing = Freezing::Took(begun.elapsed());
        }
    }
}
