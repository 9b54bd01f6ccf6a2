//! The list of instruments as its readers are sent it. What it says of an instrument changes where the instrument is defined or changes its
//! phase, and not with each trade. So the list is made once for all who begin to read it until the next such change.

use walras_engine::{Engine, InstrumentView};
use walras_market_data::{InstrumentFeed, MarketData};
use walras_types::{InstrumentId, LogIndex, TradingPhase};
use walras_wire::{PhaseCause, Uncrossed};

/// An instrument in a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedInstrument {
    /// As the engine has it.
    pub view: InstrumentView,
    /// Why it is in its phase; `None` where that is not known any more.
    pub phase_cause: Option<PhaseCause>,
    /// Its latest uncross.
    pub last_uncross: Option<Uncrossed>,
}

impl ListedInstrument {
    /// An instrument as it stands.
    #[must_use]
    pub fn of(engine: &Engine, market: &MarketData, instrument: InstrumentId) -> Option<Self> {
        let ticker = market.instrument(instrument).map(|feed| *feed.ticker());
        let (phase_cause, last_uncross) = ticker.map_or((None, None), |ticker| (ticker.phase_cause, ticker.last_uncross));
        Some(Self { view: engine.instrument(instrument)?, phase_cause, last_uncross })
    }
}

/// The list of instruments, or those of it that were defined or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentsPush {
    /// Whether all instruments are here.
    pub snapshot: bool,
    /// The entry after which they were so.
    pub log_index: LogIndex,
    /// By id.
    pub instruments: Vec<ListedInstrument>,
}

impl InstrumentsPush {
    fn of(snapshot: bool, engine: &Engine, market: &MarketData, instruments: impl Iterator<Item = InstrumentId>) -> Self {
        let log_index = engine.last_applied();
        let instruments = instruments.filter_map(|instrument| ListedInstrument::of(engine, market, instrument)).collect();
        Self { snapshot, log_index, instruments }
    }
}

/// What of an instrument changes: the reference price follows from uncrosses, and the rest of the definition stays.
type Changing = (TradingPhase, Option<PhaseCause>, Option<Uncrossed>);

fn changing(feed: &InstrumentFeed) -> Changing {
    let ticker = feed.ticker();
    (ticker.phase, ticker.phase_cause, ticker.last_uncross)
}

/// The list, and what its readers have been sent of it: snapshots as `S`, which readers share.
#[derive(Debug)]
pub(super) struct InstrumentList<S> {
    /// By instrument; `None` of those that were not sent.
    sent: Vec<Option<Changing>>,
    /// Since the last publication, by id.
    changed: Vec<InstrumentId>,
    /// Made for an earlier reader, as long as nothing changed.
    snapshot: Option<S>,
}

impl<S> Default for InstrumentList<S> {
    fn default() -> Self {
        Self { sent: Vec::new(), changed: Vec::new(), snapshot: None }
    }
}

impl<S: Clone> InstrumentList<S> {
    /// Counts what is there as sent.
    pub(super) fn prime(&mut self, market: &MarketData) {
        self.sent.clear();
        self.sent.extend(market.instruments().iter().map(|feed| Some(changing(feed))));
        self.changed.clear();
        self.snapshot = None;
    }

    /// Looks at an instrument that was touched since the last publication. Call it by id, once for each between two publications.
    pub(super) fn look(&mut self, feed: &InstrumentFeed) {
        let (instrument, now) = (feed.spec().instrument, changing(feed));
        let index = instrument.0 as usize;
        if self.sent.len() <= index {
            self.sent.resize(index + 1, None);
        }
        if self.sent[index].replace(now) != Some(now) {
            self.changed.push(instrument);
        }
    }

    /// Those that were defined or changed since the last publication, if there are any.
    pub(super) fn publish(&mut self, engine: &Engine, market: &MarketData) -> Option<InstrumentsPush> {
        if self.changed.is_empty() {
            return None;
        }
        self.snapshot = None;
        Some(InstrumentsPush::of(false, engine, market, self.changed.drain(..)))
    }

    /// What a reader begins with: what the readers before it began with, if nothing was published since.
    pub(super) fn snapshot(&mut self, engine: &Engine, market: &MarketData, share: impl FnOnce(InstrumentsPush) -> S) -> S {
        let all = market.instruments().iter().map(|feed| feed.spec().instrument);
        self.snapshot.get_or_insert_with(|| share(InstrumentsPush::of(true, engine, market, all))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use walras_types::Side;

    use super::*;
    use crate::feed::trial::Trial;

    type List = InstrumentList<Arc<InstrumentsPush>>;

    /// Each instrument that a push has, with its phase.
    fn shown(list: &InstrumentsPush) -> (bool, Vec<(u32, TradingPhase)>) {
        let one = |listed: &ListedInstrument| (listed.view.spec.instrument.0, listed.view.phase);
        (list.snapshot, list.instruments.iter().map(one).collect())
    }

    fn publish(list: &mut List, trial: &Trial) -> Option<Vec<(u32, TradingPhase)>> {
        trial.market.instruments().iter().for_each(|feed| list.look(feed));
        list.publish(&trial.engine, &trial.market).map(|push| {
            let (is_snapshot, instruments) = shown(&push);
            assert!(!is_snapshot);
            instruments
        })
    }

    #[test]
    fn those_that_are_new_or_changed_are_published_once_and_trades_change_none() {
        let (mut trial, mut list) = (Trial::collecting(2), List::default());
        let pre_open = TradingPhase::PreOpen;
        assert_eq!(publish(&mut list, &trial), Some(vec![(0, pre_open), (1, pre_open)]), "both are new");
        assert_eq!(publish(&mut list, &trial), None);
        trial.phase(1, TradingPhase::OpeningAuction);
        trial.phase(1, TradingPhase::Continuous);
        assert_eq!(publish(&mut list, &trial), Some(vec![(1, TradingPhase::Continuous)]), "as it is by then");
        trial.order(1, 1, Side::Buy, 100);
        trial.order(1, 2, Side::Sell, 100);
        assert_eq!(trial.market.trade_count(), 1);
        assert_eq!(publish(&mut list, &trial), None);
        trial.phase(0, TradingPhase::Closed);
        list.prime(&trial.market);
        assert_eq!(publish(&mut list, &trial), None, "it counts as sent");
    }

    #[test]
    fn a_snapshot_is_made_once_for_all_until_something_changes() {
        let (mut trial, mut list) = (Trial::collecting(1), List::default());
        list.prime(&trial.market);
        let snapshot = |list: &mut List, trial: &Trial| list.snapshot(&trial.engine, &trial.market, Arc::new);
        let first = snapshot(&mut list, &trial);
        assert_eq!(shown(&first), (true, vec![(0, TradingPhase::PreOpen)]));
        trial.order(0, 1, Side::Buy, 100);
        assert_eq!(publish(&mut list, &trial), None);
        assert!(Arc::ptr_eq(&snapshot(&mut list, &trial), &first));
        trial.phase(0, TradingPhase::OpeningAuction);
        assert!(Arc::ptr_eq(&snapshot(&mut list, &trial), &first), "the change follows it");
        assert_eq!(publish(&mut list, &trial), Some(vec![(0, TradingPhase::OpeningAuction)]));
        assert_eq!(shown(&snapshot(&mut list, &trial)), (true, vec![(0, TradingPhase::OpeningAuction)]));
    }
}
