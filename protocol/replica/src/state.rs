//! Everything that follows from the log, and the one form in which a replica's snapshot holds it.

use walras_engine::Engine;
use walras_feed::publisher::Publisher;
use walras_gateway::session::{ReportSettings, Reports};
use walras_market_data::{AccountDelta, AccountRecord, EndedOrders, Fills, Inconsistency, MarketData, OrderHistories, Recorded};
use walras_sequencer::Entry;
use walras_types::{AccountId, ClientOrderName, OrderId};
use walras_wire::{BatchEvent, Event, OrderEvent};

use crate::entry_names::EntryNames;
use crate::frozen::{FrozenState, split_parts};

/// The last part of a snapshot: so many dead man's switches it had, before the engine kept them.
const NO_SWITCHES: [u8; 4] = [0; 4];

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
    /// Each account's last orders that have ended.
    pub ended: EndedOrders,
    /// The binary feed, where it is published.
    pub feed: Option<Publisher>,
    /// What the last entry recorded of accounts.
    pub records: Vec<Recorded>,
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
                && let Some(view) = engine.batch_market(cleared.market)
                && let Some(last) = view.last
            {
                self.market.on_block(&last.header, last.roots, last.touched, view.outcomes);
            }
            self.market.private_deltas(event, deltas);
        }
        self.records.clear();
        self.histories.on_entry(log_index, time, entry.content.command(), events, &mut self.records);
        // Those who hear of fills are told the text, too: both are in the order of the trades.
        let mut heard =
            deltas.iter_mut().filter_map(|(_, delta)| if let AccountDelta::Filled(fill) = delta { Some(fill) } else { None });
        for Recorded { record, .. } in &self.records {
            if let AccountRecord::Fill(fill) = record
                && let Some(heard) = heard.next()
            {
                heard.name = fill.name;
            }
        }
        for Recorded { id, account, record } in &self.records {
            match record {
                AccountRecord::Fill(fill) => self.fills.push(*account, *id, *fill),
                AccountRecord::Ended(order) => self.ended.push(*account, *id, *order),
            }
        }
        for level in engine.changed_levels() {
            done = done.and(self.market.on_changed_level(level.instrument, level.side, level.price));
        }
        done
    }
}

impl Derived {
    /// Of the orders that the last entry's events are about, those whose owners name them by a text.
    pub(crate) fn names(&self, events: &[Event]) -> Vec<(OrderId, ClientOrderName)> {
        let over = self.records.iter().filter_map(|recorded| match recorded.record {
            AccountRecord::Fill(fill) => Some((fill.order_id, fill.name?)),
            AccountRecord::Ended(order) => Some((order.order_id, order.name?)),
        });
        let mut names: Vec<_> = over.collect();
        let open = events.iter().filter_map(|event| match event {
            Event::Order(OrderEvent::Accepted(e)) => Some(e.order_id),
            Event::Order(OrderEvent::Amended(e)) => Some(e.order_id),
            Event::Order(OrderEvent::Triggered(e)) => Some(e.order_id),
            Event::Order(OrderEvent::Reduced(e)) => Some(e.order_id),
            _ => None,
        });
        names.extend(open.filter_map(|id| Some((id, self.histories.get(id)?.about?.name?))));
        names
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
        let (mut events, mut deltas, mut names) = (Vec::new(), Vec::new(), EntryNames::default());
        entry.apply(&mut self.engine, &mut events);
        names.take(self.engine.version(), &self.derived.histories, entry.content.command(), &events);
        for (event, names) in names.with(&events) {
            self.reports.on_named_event(entry.log_index, entry.time, event, names, |_, _, _| ());
        }
        self.derived.on_entry(&self.engine, entry, &events, &mut deltas)
    }

    /// As it is now, to be made into a snapshot's bytes.
    #[must_use]
    pub fn freeze(engine: &mut Engine, derived: &mut Derived, reports: &mut Reports) -> FrozenState {
        let (fills, ended, reports) = (derived.fills.share(), derived.ended.share(), reports.share());
        let (histories, feed) = (derived.histories.clone(), derived.feed.clone());
        let others: Vec<crate::frozen::WritePart> = vec![
            Box::new(move |out| fills.snapshot(out)),
            Box::new(move |out| reports.snapshot(out)),
            Box::new(move |out| histories.snapshot(out)),
            Box::new(move |out| feed.iter().for_each(|feed| feed.save(out))),
            Box::new(move |out| ended.snapshot(out)),
            Box::new(|out| out.extend_from_slice(&NO_SWITCHES)),
        ];
        FrozenState::new(engine, &mut derived.market, others)
    }

    /// What of a snapshot's bytes an archive needs that goes on from it.
    ///
    /// # Errors
    /// As [`State::decode`].
    pub fn decode_for_archive(bytes: &[u8]) -> Result<(Engine, OrderHistories), String> {
        let Parts { engine, histories, ended, .. } = Parts::of(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let histories = match ended {
            Some(_) => OrderHistories::restore(histories),
            None => OrderHistories::restore_without_terms(histories),
        };
        Ok((engine, histories.map_err(|e| e.to_string())?))
    }

    /// Out of a snapshot's bytes. Those of versions before hold less: nothing is known of what their open orders said, or were, and of
    /// orders that had ended.
    ///
    /// # Errors
    /// They are none of a version that is known.
    pub fn decode(bytes: &[u8], settings: ReportSettings) -> Result<Self, String> {
        let Parts { engine, market, fills, reports, histories, feed, ended } = Parts::of(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let market = MarketData::restore(market).map_err(|e| e.to_string())?;
        let reports = Reports::restore(reports, settings).map_err(|e| e.to_string())?;
        let feed = feed.map(Publisher::restore).transpose().map_err(|e| e.to_string())?;
        let (fills, histories, ended) = match ended {
            Some(ended) => (Fills::restore(fills), OrderHistories::restore(histories), EndedOrders::restore(ended)),
            None => {
                (Fills::restore_without_places(fills), OrderHistories::restore_without_terms(histories), Ok(EndedOrders::default()))
            }
        };
        let fills = fills.map_err(|e| e.to_string())?;
        let histories = histories.map_err(|e| e.to_string())?;
        let ended = ended.map_err(|e| e.to_string())?;
        Ok(Self { engine, derived: Derived { market, fills, histories, ended, feed, records: Vec::new() }, reports })
    }
}

/// The parts of a snapshot. The version before had no ended orders, and that of the feed only where it is published; the version before
/// that had no histories either.
struct Parts<'b> {
    engine: &'b [u8],
    market: &'b [u8],
    fills: &'b [u8],
    reports: &'b [u8],
    histories: &'b [u8],
    feed: Option<&'b [u8]>,
    ended: Option<&'b [u8]>,
}

impl<'b> Parts<'b> {
    fn of(bytes: &'b [u8]) -> Result<Self, String> {
        if let Ok([engine, market, fills, reports, histories, feed, ended, _]) = split_parts(bytes) {
            let feed = (!feed.is_empty()).then_some(feed);
            return Ok(Self { engine, market, fills, reports, histories, feed, ended: Some(ended) });
        }
        if let Ok([engine, market, fills, reports, histories, feed]) = split_parts(bytes) {
            return Ok(Self { engine, market, fills, reports, histories, feed: Some(feed), ended: None });
        }
        if let Ok([engine, market, fills, reports, histories]) = split_parts(bytes) {
            return Ok(Self { engine, market, fills, reports, histories, feed: None, ended: None });
        }
        let [engine, market, fills, reports] = split_parts(bytes)?;
        Ok(Self { engine, market, fills, reports, histories: &[0; 8], feed: None, ended: None })
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{EngineVersion, LogIndex, OrderTerms, PriceTicks, SizeLots, TimeNs};
    use walras_wire::{
        AccountCommand, CancelReason, Command, NamedOrder, NewOrder, OrderAccepted, OrderCancelled, OrderCommand, Resting,
        VenueCommand,
    };

    use super::*;
    use crate::frozen::split_part;

    fn joined(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().flat_map(|part| [&(part.len() as u64).to_le_bytes()[..], part].concat()).collect()
    }

    /// The parts of a snapshot.
    fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut parts = Vec::new();
        while let Ok((part, rest)) = split_part(bytes) {
            parts.push(part);
            bytes = rest;
        }
        parts
    }

    /// Takes an order, and cancels the one before it.
    fn enter(derived: &mut Derived, order_id: u64, ends: Option<u64>) {
        let (instrument, account) = (walras_types::InstrumentId(0), AccountId(0));
        let name = walras_types::ClientOrderId;
        let accepted = OrderAccepted {
            instrument,
            account,
            client_order_id: name(order_id),
            order_id: OrderId(order_id),
            side: walras_types::Side::Buy,
            size: SizeLots::new(5),
            price: None,
            resting: Resting { open: SizeLots::new(5), shown: SizeLots::ZERO },
        };
        let cancelled = ends.map(|order_id| OrderCancelled {
            instrument,
            account,
            client_order_id: name(order_id),
            order_id: OrderId(order_id),
            open: SizeLots::new(5),
            reason: CancelReason::Requested,
        });
        let mut events: Vec<Event> = cancelled.into_iter().map(|e| Event::Order(OrderEvent::Cancelled(e))).collect();
        events.push(Event::Order(OrderEvent::Accepted(accepted)));
        let Derived { histories, ended, records, .. } = derived;
        records.clear();
        histories.on_entry(LogIndex(order_id), TimeNs(order_id), None, &events, records);
        for Recorded { id, account, record } in records {
            if let AccountRecord::Ended(order) = record {
                ended.push(*account, *id, *order);
            }
        }
    }

    #[test]
    fn snapshots_of_the_versions_before_hold_less() {
        let settings = ReportSettings::default();
        let State { mut engine, mut derived, mut reports } = State::genesis(settings);
        let none = State::freeze(&mut engine, &mut derived, &mut reports).encode();
        enter(&mut derived, 9, None);
        enter(&mut derived, 10, Some(9));
        let bytes = State::freeze(&mut engine, &mut derived, &mut reports).encode();
        let with = State::decode(&bytes, settings).unwrap().derived;
        assert_eq!(with.histories.get(OrderId(10)).map(|history| history.entered), Some(TimeNs(10)));
        assert_eq!((with.ended.newest_first(AccountId(0)).count(), &with.ended), (1, &derived.ended));
        let parts = parts(&none);
        assert_eq!(parts.len(), 8);
        // One history of the version before, which did not keep what orders say.
        let history: Vec<u8> = [1_u64, 9, 5, 3, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        let mut older = parts.clone();
        older.truncate(5);
        older[4] = &history;
        let before = State::decode(&joined(&older), settings).unwrap().derived;
        assert_eq!(before.histories.get(OrderId(9)).map(|history| (history.entered, history.about)), Some((TimeNs(3), None)));
        assert_eq!(before.ended, EndedOrders::default());
        assert_eq!(State::decode(&joined(&parts[..4]), settings).unwrap().derived.histories, OrderHistories::default());
        assert!(State::decode(&none[..none.len() - 1], settings).is_err(), "a part is cut short");
        assert!(State::decode(&joined(&parts[..3]), settings).is_err());
    }

    /// Before version 14 is in force, programs that do not know it read them: those of replicas that wait for their upgrade, or go back.
    #[test]
    fn a_snapshot_is_written_as_programs_of_the_version_in_force_read_it() {
        let settings = ReportSettings::default();
        let instrument = walras_types::InstrumentId(0);
        let new = NewOrder {
            account: AccountId(0),
            instrument,
            client_order_id: walras_types::ClientOrderId(1 << 63),
            terms: OrderTerms::limit(walras_types::Side::Buy, PriceTicks::MIN, SizeLots::new(5)),
        };
        let named = NamedOrder::new(&new, ClientOrderName::new("bid-7").unwrap());
        let forms = [13, 14].map(|version| {
            let mut state = State::genesis(settings);
            let commands = [
                Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(version))),
                Command::Account(AccountCommand::Create(AccountId(0))),
                Command::Order(OrderCommand::NewNamed(named)),
            ];
            for (log_index, command) in (1..).zip(commands) {
                let (log_index, time) = (LogIndex(log_index), TimeNs(log_index));
                state.apply(&Entry { log_index, time, ordinal: None, key: None, nonce: None, content: command.into() }).unwrap();
            }
            let State { mut engine, mut derived, mut reports } = state;
            assert_eq!(reports.report_seq(AccountId(0)), 2, "it is there, and there is no such instrument");
            let bytes = State::freeze(&mut engine, &mut derived, &mut reports).encode();
            assert!(State::decode(&bytes, settings).is_ok());
            let parts = parts(&bytes);
            (parts[1][7], parts[3][..2].to_vec())
        });
        assert_eq!(forms, [(6, vec![1, 0]), (8, vec![2, 0])], "market data and reports");
    }

    #[test]
    fn the_feed_is_a_part_of_snapshots_where_it_is_published() {
        let settings = ReportSettings::default();
        let State { mut engine, mut derived, mut reports } = State::genesis(settings);
        derived.feed = Some(Publisher::new(walras_feed::publisher::Views::ALL));
        let with = State::freeze(&mut engine, &mut derived, &mut reports).encode();
        assert!(State::decode(&with, settings).unwrap().derived.feed.is_some());
        let before = joined(&parts(&with)[..6]);
        assert!(State::decode(&before, settings).unwrap().derived.feed.is_some(), "in the version before too");
        derived.feed = None;
        let without = State::freeze(&mut engine, &mut derived, &mut reports).encode();
        assert!(State::decode(&without, settings).unwrap().derived.feed.is_none());
        let mut cut = parts(&with);
        cut[5] = &cut[5][..cut[5].len() - 1];
        assert!(State::decode(&joined(&cut), settings).is_err(), "the feed's part is cut short");
    }
}
