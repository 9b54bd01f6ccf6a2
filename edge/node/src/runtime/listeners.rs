//! What of a venue follows from events and stands beside its state: the catalog, the keys of signatures, counts, the archive.

use walras_archive::Recorder;
use walras_engine::Engine;
use walras_market_data::{AccountDelta, Recorded};
use walras_ports::{Catalog, Feed, KeyRing};
use walras_sequencer::Entry;
use walras_types::AccountId;
use walras_wire::{AccountEvent, BatchMarketEvent, Event, InstrumentEvent, VenueEvent};

/// All of it.
pub(super) struct Listeners {
    pub(super) catalog: Catalog,
    /// For those who check signatures.
    pub(super) keys: KeyRing,
    /// Where the past is kept.
    pub(super) archive: Option<Recorder>,
    accounts: u64,
    rejects: u64,
}

impl Listeners {
    /// As it follows from a state.
    pub(super) fn new(engine: &Engine, keys: KeyRing) -> Self {
        let mut listeners = Self { catalog: Catalog::default(), keys, archive: None, accounts: 0, rejects: 0 };
        listeners.begin_from(engine);
        listeners
    }

    /// Goes on from another state. The archive is not touched.
    pub(super) fn begin_from(&mut self, engine: &Engine) {
        let Self { catalog, keys, accounts, .. } = self;
        *catalog = Catalog::default();
        engine.assets().iter().for_each(|asset| catalog.add_asset(*asset));
        engine.instruments().for_each(|instrument| catalog.add_instrument(instrument.spec));
        keys.clear();
        for view in engine.batch_markets() {
            catalog.add_batch(view.spec);
            view.assets.iter().for_each(|asset| catalog.add_batch_asset(view.spec.market, *asset));
            keys.set_domain(view.spec.market, view.spec.domain);
        }
        for account in (0..engine.account_count()).map(AccountId) {
            if let Some(key) = engine.transaction_key(account) {
                keys.set_key(account, key);
            }
        }
        *accounts = u64::from(engine.account_count());
    }

    /// Accounts.
    pub(super) fn accounts(&self) -> u64 {
        self.accounts
    }

    /// Commands rejected since this was asked before.
    pub(super) fn take_rejects(&mut self) -> u64 {
        std::mem::take(&mut self.rejects)
    }

    /// Takes the events of one entry and what they changed for accounts, of which no feed need hear in a replay; whether the
    /// catalog changed.
    pub(super) fn on_events(
        &mut self,
        entry: &Entry,
        engine: &Engine,
        events: &[Event],
        deltas: &[(AccountId, AccountDelta)],
        records: &[Recorded],
        feed: Option<&mut Feed>,
    ) -> bool {
        let Entry { log_index, time, ordinal: _, key: _, nonce: _, content } = entry;
        let mut catalog_changed = false;
        for event in events {
            catalog_changed |= self.take(event);
        }
        if let Some(feed) = feed {
            let watch = feed.accounts();
            deltas.iter().for_each(|(account, delta)| watch.note(*account, delta, content.command(), engine));
        }
        if let Some(archive) = &mut self.archive {
            archive.on_entry(*log_index, *time, events, records, engine);
        }
        catalog_changed
    }

    /// Notes what the catalog, the keys and the counts hold of an event. Returns whether the catalog changed.
    fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::Rejected(_) => self.rejects += 1,
            Event::Account(AccountEvent::Created(_)) => self.accounts += 1,
            Event::Account(AccountEvent::KeySet(set)) => self.keys.set_key(set.account, set.key),
            Event::Venue(VenueEvent::AssetCreated(spec)) => {
                self.catalog.add_asset(*spec);
                return true;
            }
            Event::Instrument(InstrumentEvent::Created(spec)) => {
                self.catalog.add_instrument(*spec);
                return true;
            }
            Event::BatchMarket(BatchMarketEvent::Created(spec)) => {
                self.catalog.add_batch(spec);
                self.keys.set_domain(spec.market, spec.domain);
                return true;
            }
            Event::Account(AccountEvent::StatusChanged(_) | AccountEvent::RiskLimitsChanged(_)) => {}
            Event::Account(AccountEvent::Deposited(_) | AccountEvent::Withdrawn(_) | AccountEvent::FeesCollected(_)) => {}
            Event::Venue(VenueEvent::IssuerSet(_) | VenueEvent::AccessDelaysChanged(_) | VenueEvent::EngineVersionSet(_)) => {}
            Event::Instrument(InstrumentEvent::PhaseChanged(_) | InstrumentEvent::Uncrossed(_)) => {}
            Event::BatchMarket(BatchMarketEvent::AssetAdded(added)) => {
                self.catalog.add_batch_asset(added.market, added.asset);
                return true;
            }
            Event::BatchMarket(BatchMarketEvent::PhaseChanged(_)) => {}
            Event::BatchMarket(BatchMarketEvent::IntervalChanged(_) | BatchMarketEvent::AccountFeeChanged(_)) => {}
            Event::BatchMarket(BatchMarketEvent::CurrenciesSet(_)) => {}
            Event::Order(_) | Event::Session(_) | Event::Batch(_) | Event::Shard(_) => {}
        }
        false
    }

    /// The archive gets what was recorded.
    pub(super) fn flush_archive(&mut self) {
        if let Some(archive) = &mut self.archive {
            archive.flush();
        }
    }
}
