//! A step done to a book: the same code when it is compared and when it is timed.

use walras_market_history::Lasting;
use walras_order_book::{
    Amended, Band, BookEvents, DepthLevel, Entry, Fate, Fill, Handle, OpenOrder, OrderBook, OwnerId, Party, Placed, Refusal,
    RemovalCause, Uncross,
};
use walras_types::{ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

use crate::plan::{Action, AuctionReference, Step};

/// History does not say whose an order is: all belong to one owner, who may trade with itself.
pub(crate) const OWNER: OwnerId = OwnerId(0);

/// Names of aggressors whose number nobody says: no exchange numbers its orders that high.
const NAMELESS: u64 = 1 << 63;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// An order came.
    Placed(Placed),
    /// An order did not come.
    Refused(Refusal),
    /// An order left or changed; as it stood before.
    Was(OpenOrder),
    /// The order is not in the book.
    Missing,
    /// An order's open size is to grow, which no book does to a resting order.
    Grew(OpenOrder),
    /// An auction, or `None` where no bid reaches an offer.
    Uncrossed(Option<Uncross>),
    /// Nothing for the book.
    Nothing,
}

/// Whether orders match as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Continuous,
    Collecting,
}

pub(crate) fn entry(order_id: u64, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots, lasting: Lasting) -> Entry {
    Entry {
        order_id: OrderId(order_id),
        client_order_id: ClientOrderId(order_ref),
        owner: OWNER,
        side,
        price,
        size,
        time_in_force: match lasting {
            Lasting::GoodTillCancel => TimeInForce::GoodTillCancel,
            Lasting::ImmediateOrCancel => TimeInForce::ImmediateOrCancel,
        },
        post_only: PostOnly::Off,
        display: Display::Full,
        min_size: None,
        self_trade: SelfTrade::Allow,
        trigger: None,
    }
}

/// A book and what it is doing.
pub(crate) struct Market {
    pub(crate) book: OrderBook,
    pub(crate) mode: Mode,
    pub(crate) reference: AuctionReference,
}

impl Market {
    pub(crate) fn new(reference: AuctionReference) -> Self {
        Self { book: OrderBook::new(walras_types::Allocation::PriceTime), mode: Mode::Continuous, reference }
    }

    fn find(&self, order_ref: u64) -> Option<Handle> {
        self.book.find(OWNER, ClientOrderId(order_ref))
    }

    fn enter(&mut self, entry: &Entry, events: &mut impl BookEvents) -> Applied {
        let placed = match self.mode {
            Mode::Continuous => self.book.submit(entry, Band::OPEN, events),
            Mode::Collecting => self.book.collect(entry),
        };
        placed.map_or_else(Applied::Refused, Applied::Placed)
    }

    /// Does the step.
    pub(crate) fn apply(&mut self, step: &Step, events: &mut impl BookEvents) -> Applied {
        let id = step.index;
        match &step.action {
            &Action::Rest { order_ref, side, price, size, .. } => {
                self.enter(&entry(id, order_ref, side, price, size, Lasting::GoodTillCancel), events)
            }
            &Action::Submit { order_ref, side, price, size, lasting } => {
                self.enter(&entry(id, order_ref, side, price, size, lasting), events)
            }
            Action::Sweep(aggressor) => {
                let lasting = if aggressor.rest.is_zero() { Lasting::ImmediateOrCancel } else { Lasting::GoodTillCancel };
                let order_ref = aggressor.order_ref.unwrap_or(NAMELESS | id);
                // A call phase has no aggressors; a file that says otherwise is matched all the same.
                let order = entry(id, order_ref, aggressor.side, aggressor.limit, aggressor.size, lasting);
                self.book.submit(&order, Band::OPEN, events).map_or_else(Applied::Refused, Applied::Placed)
            }
            &Action::Reduce { order_ref, by } => match self.find(order_ref) {
                Some(handle) => {
                    let order = self.book.view(handle);
                    self.shrink(handle, order, order.open.saturating_sub(by), events)
                }
                None => Applied::Missing,
            },
            &Action::Delete { order_ref, .. } | &Action::Presume { order_ref, .. } => match self.find(order_ref) {
                Some(handle) => Applied::Was(self.book.cancel(handle)),
                None => Applied::Missing,
            },
            &Action::SetOpen { order_ref, open } => match self.find(order_ref) {
                Some(handle) => {
                    let order = self.book.view(handle);
                    if open > order.open { Applied::Grew(order) } else { self.shrink(handle, order, open, events) }
                }
                None => Applied::Missing,
            },
            &Action::Move { order_ref, price } => match self.find(order_ref) {
                Some(handle) => self.requeue(handle, price, events),
                None => Applied::Missing,
            },
            &Action::Replace { old_ref, new_ref, price, size } => match self.find(old_ref) {
                Some(handle) => {
                    let old = self.book.cancel(handle);
                    self.enter(&entry(id, new_ref, old.side, price, size, Lasting::GoodTillCancel), events)
                }
                None => Applied::Missing,
            },
            Action::Tape { .. } => Applied::Nothing,
            Action::CollectForOpen | Action::CollectForClose => {
                self.mode = Mode::Collecting;
                Applied::Nothing
            }
            Action::Uncross { .. } => {
                let uncross = indicative(&self.book, self.reference);
                if let Some(uncross) = &uncross {
                    self.book.uncross(uncross, events);
                }
                self.mode = Mode::Continuous;
                Applied::Uncrossed(uncross)
            }
        }
    }

    fn shrink(&mut self, handle: Handle, order: OpenOrder, open: SizeLots, events: &mut impl BookEvents) -> Applied {
        if open.is_zero() {
            self.book.cancel(handle);
        } else if open != order.open {
            let amended = match self.mode {
                Mode::Continuous => self.book.amend(handle, None, Some(open), Band::OPEN, events),
                Mode::Collecting => self.book.amend_collected(handle, None, Some(open)),
            };
            if let Err(refusal) = amended {
                return Applied::Refused(refusal);
            }
        }
        Applied::Was(order)
    }

    fn requeue(&mut self, handle: Handle, price: PriceTicks, events: &mut impl BookEvents) -> Applied {
        let order = self.book.view(handle);
        let amended = match self.mode {
            Mode::Continuous => self.book.amend(handle, Some(price), None, Band::OPEN, events),
            Mode::Collecting => self.book.amend_collected(handle, Some(price), None),
        };
        match amended {
            Ok(Amended::Kept { .. }) => Applied::Was(order),
            Ok(Amended::Requeued { placed }) => Applied::Placed(placed),
            Err(refusal) => Applied::Refused(refusal),
        }
    }
}

/// What an auction would trade now. The middle is found by asking for the nearest to either end.
pub(crate) fn indicative(book: &OrderBook, reference: AuctionReference) -> Option<Uncross> {
    match reference {
        AuctionReference::Price(price) => book.auction(price),
        AuctionReference::Middle => {
            let low = book.auction(PriceTicks::MIN)?;
            let high = book.auction(PriceTicks::MAX)?;
            if low == high {
                return Some(low);
            }
            book.auction(PriceTicks::saturating((low.price.get() + high.price.get() + 1).div_euclid(2)))
        }
    }
}

/// What a step traded.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) fills: Vec<Fill>,
    pub(crate) pairs: Vec<(u64, u64, SizeLots)>,
    pub(crate) pair_price: Option<PriceTicks>,
}

impl Recorder {
    pub(crate) fn clear(&mut self) {
        self.fills.clear();
        self.pairs.clear();
    }
}

impl BookEvents for Recorder {
    fn traded(&mut self, fill: &Fill) {
        self.fills.push(*fill);
    }
    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party) {
        self.pair_price = Some(price);
        self.pairs.push((buy.client_order_id.0, sell.client_order_id.0, size));
    }
    fn removed(&mut self, _: &OpenOrder, _: RemovalCause) {}
    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}
    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}
    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

/// Counts what a book says, so that a timed run is not optimised away and its answer can be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) trades: u64,
    pub(crate) volume_lots: u64,
}

impl BookEvents for Tally {
    #[inline]
    fn traded(&mut self, fill: &Fill) {
        self.trades += 1;
        self.volume_lots += fill.size.get();
    }
    #[inline]
    fn uncrossed(&mut self, _: PriceTicks, size: SizeLots, _: &Party, _: &Party) {
        self.trades += 1;
        self.volume_lots += size.get();
    }
    fn removed(&mut self, _: &OpenOrder, _: RemovalCause) {}
    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}
    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}
    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

/// What stands of an order that came.
pub(crate) fn rested(applied: &Applied) -> SizeLots {
    match applied {
        Applied::Placed(Placed { fate: Fate::Rested { open, .. }, .. }) => *open,
        _ => SizeLots::ZERO,
    }
}

/// All displayed lots of a side.
pub(crate) fn side_lots(book: &OrderBook, side: Side, levels: &mut Vec<DepthLevel>) -> u64 {
    levels.clear();
    book.depth(side, usize::MAX, levels);
    levels.iter().map(|level| level.shown.get()).sum()
}
