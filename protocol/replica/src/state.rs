//! Everything that follows from the log, and the one form in which a replica's snapshot holds it.

use walras_engine::Engine;
use walras_gateway::session::{ReportSettings, Reports};
use walras_market_data::{AccountDelta, Fills, Inconsistency, MarketData};
use walras_sequencer::Entry;
use walras_types::AccountId;
use walras_wire::{BatchEvent, Event};

use crate::frozen::{FrozenState, split_parts};

/// The state of a replica.
pub struct State {
    /// Books, balances, sessions.
    pub engine: Engine,
    /// Market data and each account's fills.
    pub derived: Derived,
    /// Each account's reports.
    pub reports: Reports,
}

/// What a venue derives from events, apart from reports.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    /// What is published.
    pub market: MarketData,
    /// Each account's last trades.
    pub fills: Fills,
}

impl Derived {
    /// An entry was applied: takes its events, and the levels that it changed. `deltas` gets what changed for whom. Whether all of
    /// it followed from what was before.
    ///
    /// # Errors
    /// The first thing that did not; the rest is taken all the same.
    pub fn on_entry(
        &mut self,
        engine: &Engine,
        entry: &Entry,
        events: &[Event],
        deltas: &mut Vec<(AccountId, AccountDelta)>,
    ) -> Result<(), Inconsistency> {
        let (log_index, time) = (entry.log_index, entry.time);
        let mut done = self.market.on_entry(log_index, time);
        deltas.clear();
        for event in events {
            done = done.and(self.market.on_event(log_index, time, event));
            if let Event::Batch(BatchEvent::Cleared(cleared)) = event
                && let Some(last) = engine.batch_market(cleared.market).and_then(|view| view.last)
            {
                self.market.on_block(&last.header, last.roots, last.touched);
            }
            let from = deltas.len();
            self.market.private_deltas(event, deltas);
            for (account, delta) in &deltas[from..] {
                if let AccountDelta::Filled(fill) = delta {
                    self.fills.push(*account, *fill);
                }
            }
        }
        for level in engine.changed_levels() {
            done = done.and(self.market.on_changed_level(level.instrument, level.side, level.price));
        }
        done
    }
}

impl State {
    /// Before the first entry.
    #[must_use]
    pub fn genesis(settings: ReportSettings) -> Self {
        Self { engine: Engine::new(), derived: Derived::default(), reports: Reports::new(settings) }
    }

    /// As it is now, to be made into a snapshot's bytes.
    #[must_use]
    pub fn freeze(engine: &Engine, derived: &Derived, reports: &Reports) -> FrozenState {
        let (fills, reports) = (derived.fills.clone(), reports.clone());
        let others: Vec<crate::frozen::WritePart> =
            vec![Box::new(move |out| fills.snapshot(out)), Box::new(move |out| reports.snapshot(out))];
        FrozenState::new(engine, &derived.market, others)
    }

    /// Out of a snapshot's bytes.
    ///
    /// # Errors
    /// They are none of this version's.
    pub fn decode(bytes: &[u8], settings: ReportSettings) -> Result<Self, String> {
        let [engine, market, fills, reports] = split_parts(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let market = MarketData::restore(market).map_err(|e| e.to_string())?;
        let fills = Fills::restore(fills).map_err(|e| e.to_string())?;
        let reports = Reports::restore(reports, settings).map_err(|e| e.to_string())?;
        Ok(Self { engine, derived: Derived { market, fills }, reports })
    }
}
