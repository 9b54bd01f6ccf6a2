//! Everything that follows from the log, and the one form in which a replica's snapshot holds it.

use walras_engine::Engine;
use walras_feed::publisher::Publisher;
use walras_gateway::session::{ReportSettings, Reports};
use walras_market_data::{AccountDelta, Fills, Inconsistency, MarketData, OrderHistories};
use walras_sequencer::Entry;
use walras_types::AccountId;
use walras_wire::{BatchEvent, Event};

use crate::frozen::{FrozenState, split_parts};

/// The state of a replica.
pub struct State {
    /// Books, balances, sessions.
    pub engine: Engine,
    /// Market data, each account's fills and each open order's past.
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
    /// What the engine does not keep of open orders.
    pub histories: OrderHistories,
    /// The binary feed, where it is published.
    pub feed: Option<Publisher>,
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
            self.histories.on_event(time, event);
            if let Event::Batch(BatchEvent::Cleared(cleared)) = event
                && let Some(view) = engine.batch_market(cleared.market)
                && let Some(last) = view.last
            {
                self.market.on_block(&last.header, last.roots, last.touched, view.outcomes);
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

    /// Applies the next entry, where nobody is served and nothing is published.
    ///
    /// # Errors
    /// What is derived does not follow from what was before; the rest is applied all the same.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), Inconsistency> {
        let (mut events, mut deltas) = (Vec::new(), Vec::new());
        entry.apply(&mut self.engine, &mut events);
        for event in &events {
            self.reports.on_event(entry.log_index, entry.time, event, |_, _| ());
        }
        self.derived.on_entry(&self.engine, entry, &events, &mut deltas)
    }

    /// As it is now, to be made into a snapshot's bytes.
    #[must_use]
    pub fn freeze(engine: &Engine, derived: &Derived, reports: &Reports) -> FrozenState {
        let (fills, histories, reports) = (derived.fills.clone(), derived.histories.clone(), reports.clone());
        let mut others: Vec<crate::frozen::WritePart> = vec![
            Box::new(move |out| fills.snapshot(out)),
            Box::new(move |out| reports.snapshot(out)),
            Box::new(move |out| histories.snapshot(out)),
        ];
        if let Some(feed) = derived.feed.clone() {
            others.push(Box::new(move |out| feed.save(out)));
        }
        FrozenState::new(engine, &derived.market, others)
    }

    /// Out of a snapshot's bytes. Those of the version before have no histories: nothing is known of what its open orders were.
    ///
    /// # Errors
    /// They are none of this version's.
    pub fn decode(bytes: &[u8], settings: ReportSettings) -> Result<Self, String> {
        let ([engine, market, fills, reports, histories], feed) = parts(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let market = MarketData::restore(market).map_err(|e| e.to_string())?;
        let fills = Fills::restore(fills).map_err(|e| e.to_string())?;
        let reports = Reports::restore(reports, settings).map_err(|e| e.to_string())?;
        let histories = OrderHistories::restore(histories).map_err(|e| e.to_string())?;
        let feed = feed.map(Publisher::restore).transpose().map_err(|e| e.to_string())?;
        Ok(Self { engine, derived: Derived { market, fills, histories, feed }, reports })
    }
}

type Parts<'b> = ([&'b [u8]; 5], Option<&'b [u8]>);

/// The parts of a snapshot, and that of the feed, if it has one.
fn parts(bytes: &[u8]) -> Result<Parts<'_>, String> {
    if let Ok([engine, market, fills, reports, histories, feed]) = split_parts(bytes) {
        return Ok(([engine, market, fills, reports, histories], Some(feed)));
    }
    if let Ok(parts) = split_parts(bytes) {
        return Ok((parts, None));
    }
    let [engine, market, fills, reports] = split_parts(bytes)?;
    Ok(([engine, market, fills, reports, &[0; 8]], None))
}

#[cfg(test)]
mod tests {
    use walras_types::{OrderId, SizeLots, TimeNs};
    use walras_wire::{OrderAccepted, OrderEvent, Resting};

    use super::*;

    #[test]
    fn a_snapshot_of_the_version_before_has_no_histories() {
        let settings = ReportSettings::default();
        let State { engine, mut derived, reports } = State::genesis(settings);
        let bytes_of = |derived: &Derived| State::freeze(&engine, derived, &reports).encode();
        let without = bytes_of(&derived);
        let accepted = OrderAccepted {
            instrument: walras_types::InstrumentId(0),
            account: AccountId(0),
            client_order_id: walras_types::ClientOrderId(1),
            order_id: OrderId(9),
            side: walras_types::Side::Buy,
            size: SizeLots::new(5),
            price: None,
            resting: Resting { open: SizeLots::new(5), shown: SizeLots::ZERO },
        };
        derived.histories.on_event(TimeNs(3), &Event::Order(OrderEvent::Accepted(accepted)));
        let with = State::decode(&bytes_of(&derived), settings).unwrap();
        assert_eq!(with.derived.histories.get(OrderId(9)).map(|history| history.entered), Some(TimeNs(3)));
        // Its last part is a length and a count of none.
        let before = State::decode(&without[..without.len() - 16], settings).unwrap();
        assert_eq!(before.derived.histories, OrderHistories::default());
        assert!(State::decode(&without[..without.len() - 8], settings).is_err(), "a part is cut short");
    }
    #[test]
    fn the_feed_is_a_part_of_snapshots_where_it_is_published() {
        let settings = ReportSettings::default();
        let State { engine, mut derived, reports } = State::genesis(settings);
        derived.feed = Some(Publisher::new(walras_feed::publisher::Views::ALL));
        let with = State::freeze(&engine, &derived, &reports).encode();
        assert!(State::decode(&with, settings).unwrap().derived.feed.is_some());
        derived.feed = None;
        let without = State::freeze(&engine, &derived, &reports).encode();
        assert!(with.starts_with(&without));
        assert!(State::decode(&without, settings).unwrap().derived.feed.is_none());
        assert!(State::decode(&with[..with.len() - 1], settings).is_err(), "the feed's part is cut short");
    }
}
