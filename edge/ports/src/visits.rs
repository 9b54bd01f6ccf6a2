//! Reads in visits: what one look at the state costs is bounded, whatever is in it, and so is how many there are in a round of the
//! thread that applies commands. What a reader wants beyond that is a further visit.
//!
//! A list that is read in several visits is not of one moment. What is in it from the first visit to the last is read once; what comes or
//! goes meanwhile may be.

use std::str::FromStr;

use walras_engine::{Engine, OpenOrder, Position};
use walras_market_data::{Offers, OrderHistories, OrderHistory, StandingOffer};
use walras_types::{AccountId, InstrumentId, OrderId, TransactionSeq};

/// Orders that a visit looks at: each is some cache misses in a large book.
pub const ORDERS_PER_VISIT: usize = 128;

/// Standing offers that a visit takes: they lie side by side.
pub const OFFERS_PER_VISIT: usize = 512;

/// Instruments that a visit looks at.
pub const INSTRUMENTS_PER_VISIT: u32 = 256;

/// An open order, with what the engine does not keep of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOrder {
    /// Where.
    pub instrument: InstrumentId,
    /// As it stands.
    pub order: OpenOrder,
    /// What it was; `None` of one that entered before histories were kept.
    pub history: Option<OrderHistory>,
}

impl ListedOrder {
    /// An open order of an engine. Where the trigger of a trailing stop is tells of trades, so while the venue holds market data back it is
    /// not said.
    pub(crate) fn of(engine: &Engine, instrument: InstrumentId, mut order: OpenOrder, histories: &OrderHistories) -> Self {
        if order.terms.order_type.trail().is_some() && engine.access_delays().release_ns > 0 {
            order.trigger = None;
        }
        Self { instrument, order, history: histories.get(order.order_id).copied() }
    }
}

/// Where a list of an account's open orders goes on. They are listed by instrument, then in the order in which they entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderCursor {
    /// In this instrument.
    pub instrument: InstrumentId,
    /// With the orders above this id.
    pub after: OrderId,
}

impl OrderCursor {
    /// From the first order of an instrument on.
    #[must_use]
    pub const fn begin(instrument: InstrumentId) -> Self {
        Self { instrument, after: OrderId(0) }
    }
}

impl std::fmt::Display for OrderCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.instrument.0, self.after.0)
    }
}

/// A text is none that [`OrderCursor`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCursor;

impl FromStr for OrderCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (instrument, after) = text.split_once('-').ok_or(NoCursor)?;
        let cursor = Self {
            instrument: InstrumentId(instrument.parse().map_err(|_| NoCursor)?),
            after: OrderId(after.parse().map_err(|_| NoCursor)?),
        };
        if cursor.to_string() == text { Ok(cursor) } else { Err(NoCursor) }
    }
}

/// An account's open orders, or those of `only` one instrument, from a cursor on: as many as `looks` orders and instruments show. Where
/// the list goes on, if there may be more.
pub fn orders_from(
    engine: &Engine,
    histories: &OrderHistories,
    account: AccountId,
    only: Option<InstrumentId>,
    mut at: OrderCursor,
    mut looks: usize,
) -> (Vec<ListedOrder>, Option<OrderCursor>) {
    let (mut listed, mut some) = (Vec::new(), Vec::new());
    let is_last = |instrument: InstrumentId| {
        only.is_some_and(|only| instrument >= only) || instrument.0 as usize + 1 >= engine.instruments().len()
    };
    loop {
        let instrument = at.instrument;
        // An instrument counts as a look, also one in which the account has nothing.
        looks = looks.saturating_sub(1);
        some.clear();
        let next = engine.open_orders_after(account, instrument, at.after, &mut looks, &mut some);
        listed.extend(some.iter().map(|order| ListedOrder::of(engine, instrument, *order, histories)));
        at = match next {
            Some(after) => OrderCursor { instrument, after },
            None if is_last(instrument) => return (listed, None),
            None => OrderCursor::begin(InstrumentId(instrument.0 + 1)),
        };
        if looks == 0 {
            return (listed, Some(at));
        }
    }
}

/// An account's standing offers with numbers from `first` on, at most `max`, oldest first. The number with which the list goes on, if
/// there are more.
pub fn offers_from(
    offers: &Offers,
    account: AccountId,
    first: TransactionSeq,
    max: usize,
) -> (Vec<StandingOffer>, Option<TransactionSeq>) {
    let mut rest = offers.from(account, first);
    let listed = rest.by_ref().take(max).collect();
    (listed, rest.next().map(|offer| offer.sequence))
}

/// Instruments from one on, as many as a visit looks at, and the one with which the next visit goes on.
pub fn instruments_from(engine: &Engine, from: InstrumentId) -> (impl Iterator<Item = InstrumentId> + use<>, Option<InstrumentId>) {
    let count = u32::try_from(engine.instruments().len()).unwrap_or(u32::MAX);
    let end = from.0.saturating_add(INSTRUMENTS_PER_VISIT).min(count);
    ((from.0..end).map(InstrumentId), (end < count).then_some(InstrumentId(end)))
}

/// Whether an account has something at stake there.
#[must_use]
pub fn is_position(position: &Position) -> bool {
    position.net_lots != 0 || position.open_orders != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_writes_and_nothing_else() {
        let cursor = OrderCursor { instrument: InstrumentId(3), after: OrderId(u64::MAX) };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "3", "-", "3-", "-3", "3-4-5", "03-4", "3-+4", " 3-4", "3-18446744073709551616", "x-1"] {
            assert_eq!(text.parse::<OrderCursor>(), Err(NoCursor), "{text}");
        }
    }
}
