//! What goes into a book and what comes out of it.

use walras_types::{ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

/// Whose order it is: a number that the book only compares, to prevent self-trades and to cancel many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct OwnerId(pub u32);

/// An order about to enter. Every order has a limit: a market order comes with the price at which its collar ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it; unique among the owner's orders in this book.
    pub client_order_id: ClientOrderId,
    /// Whose.
    pub owner: OwnerId,
    /// Buy or sell.
    pub side: Side,
    /// Worst price.
    pub price: PriceTicks,
    /// How much.
    pub size: SizeLots,
    /// For how long it stands; of a stop, also how long it waits: an immediate-or-cancel or fill-or-kill one until cancelled.
    pub time_in_force: TimeInForce,
    /// Whether it may take.
    pub post_only: PostOnly,
    /// How visibly it rests.
    pub display: Display,
    /// Trade at least this much on entry, or nothing.
    pub min_size: Option<SizeLots>,
    /// Against its own owner.
    pub self_trade: SelfTrade,
    /// What it waits for; `None` enters now.
    pub trigger: Option<Trigger>,
}

impl Entry {
    /// What a stop enters as once it is touched.
    #[must_use]
    pub fn once_triggered(self) -> Self {
        let time_in_force = match (self.trigger.map(|trigger| trigger.becomes), self.time_in_force) {
            (
                Some(Becomes::Market),
                TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) | TimeInForce::ImmediateOrCancel,
            ) => TimeInForce::ImmediateOrCancel,
            (Some(Becomes::Market), TimeInForce::FillOrKill) => TimeInForce::FillOrKill,
            (Some(Becomes::Limit | Becomes::Rest) | None, time_in_force) => time_in_force,
        };
        Self { time_in_force, trigger: None, ..self }
    }
}

/// What a stop waits for, and what it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// A buy is touched by a trade at or above it, a sell at or below it.
    pub price: PriceTicks,
    /// What enters then.
    pub becomes: Becomes,
}

/// What a stop becomes once it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Becomes {
    /// A market order: it trades what it can up to its limit, which is where its collar ends, and never rests. Its time in force says
    /// how long it waits, and fill-or-kill that it trades in full or not at all.
    Market = 0,
    /// A limit order of its time in force.
    Limit = 1,
    /// The rest of an order that has met as many others as one step may, see [`crate::OrderBook::with_step_max`]. It waits for no price,
    /// and enters before every stop; its trigger's price is its own limit.
    Rest = 2,
}

/// The prices between which the market may trade now. An order that would trade beyond either end stops there, see
/// [`Fate::Banded`]; one that is fill-or-kill, or whose minimum lies beyond, is refused instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Lowest.
    pub low: PriceTicks,
    /// Highest.
    pub high: PriceTicks,
}

impl Band {
    /// Any price.
    pub const OPEN: Self = Self { low: PriceTicks::MIN, high: PriceTicks::MAX };
}

/// What became of an order on entry, after the trades reported meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stands in the book.
    Rested {
        /// All that is left of it.
        open: SizeLots,
        /// What others see.
        shown: SizeLots,
    },
    /// It waits for its trigger.
    Parked,
    /// It traded in full.
    Filled,
    /// The rest found no match, and its time in force lets it not stand.
    Unfilled {
        /// What did not trade.
        open: SizeLots,
    },
    /// The rest would have traded with its own owner.
    SelfTraded {
        /// What did not trade.
        open: SizeLots,
    },
    /// The rest would have traded outside the [`Band`].
    Banded {
        /// What did not trade.
        open: SizeLots,
    },
    /// It has met as many orders as one step may. The rest waits, and is the next to be taken by [`crate::OrderBook::take_triggered`].
    Paused {
        /// What did not trade yet.
        open: SizeLots,
    },
}

/// An order that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The limit in force; differs from the one asked for only by a post-only reprice.
    pub price: PriceTicks,
    /// What became of it.
    pub fate: Fate,
}

/// Why a book takes no order. Nothing changed, nothing was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The owner has an order of that name here.
    DuplicateClientOrderId,
    /// It would take, and is post-only (or could only be repriced outside the price range).
    PostOnlyWouldTrade,
    /// Not all of it can be filled. Only trades count: lots that self-trade prevention would take off it do not.
    FillOrKillUnfillable,
    /// Less than its minimum can be filled. Only trades count, and only those before self-trade prevention ends the order.
    MinSizeUnfillable,
    /// What may be looked at does not decide whether all of it, or its minimum, can be filled:
    /// [`walras_types::limits::FILL_CHECK_LEVELS_MAX`] prices of an order with [`SelfTrade::Allow`],
    /// [`walras_types::limits::FILL_CHECK_ORDERS_MAX`] orders of others.
    FillCheckTooDeep,
    /// The book holds [`walras_types::limits::ORDERS_PER_BOOK_MAX`] orders.
    BookFull,
}

/// Names an open order until the book next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub(crate) crate::id_index::Named);

/// An open order as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// Whose.
    pub owner: OwnerId,
    /// Buy or sell.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// All that is left of it.
    pub open: SizeLots,
    /// What others see of it: zero for a hidden order and for a stop that waits.
    pub shown: SizeLots,
    /// For how long.
    pub time_in_force: TimeInForce,
    /// How visibly.
    pub display: Display,
    /// What it waits for, `None` when it stands in the queue.
    pub trigger: Option<Trigger>,
    /// Whether it may take, once triggered.
    pub post_only: PostOnly,
    /// Its minimum, once triggered; shrinking the order below it lowers it to the new size.
    pub min_size: Option<SizeLots>,
    /// Against its own owner, once triggered or amended.
    pub self_trade: SelfTrade,
    /// Whether it set its price.
    pub seniority: Seniority,
}

/// A plain open order, as far as moving it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// What is left of it, all of it shown.
    pub open: SizeLots,
}

/// Whether an order was the first at a price better than that of any displayed order of its side.
/// [`walras_types::Allocation::TopProRata`] favours it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Seniority {
    /// It joined, or its price was not the best.
    Joined,
    /// It set the price, and has not left its place since.
    SetThePrice,
}

/// One side of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The venue's name for the order.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// Whose.
    pub owner: OwnerId,
    /// The order's limit.
    pub limit: PriceTicks,
    /// What is left of it after this trade.
    pub open: SizeLots,
}

/// A trade between the order that came in and one that stood in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// At what price: the maker's.
    pub price: PriceTicks,
    /// How much.
    pub size: SizeLots,
    /// The side of the order that came in.
    pub taker_side: Side,
    /// The order that stood in the book.
    pub maker: Party,
    /// The order that came in.
    pub taker: Party,
}

/// Why the book removed an order that nobody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalCause {
    /// It stood in the way of an order of its own owner.
    SelfTrade,
    /// Its time came.
    Expired,
    /// The day ended.
    DayEnded,
    /// Its owner cancelled many.
    MassCancelled,
}

/// What happens to orders in the book, told as it happens. The receiver may not touch the book.
pub trait BookEvents {
    /// Two orders traded.
    fn traded(&mut self, fill: &Fill);
    /// Two collected orders traded at the uncrossing price; `buy.limit` and `sell.limit` are their own limits.
    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party);
    /// An order left the book without a trade. `order` is as it stood before.
    fn removed(&mut self, order: &OpenOrder, cause: RemovalCause);
    /// A resting order shrank by `by` without a trade; `order` is as it stands after.
    fn reduced(&mut self, order: &OpenOrder, by: SizeLots);
    /// The incoming order shrank by `by` to `open` without a trade, against a resting one of its own owner (which is told of by
    /// `reduced` or `removed`).
    fn taker_reduced(&mut self, by: SizeLots, open: SizeLots);
    /// An iceberg shows its next slice.
    fn replenished(&mut self, order_id: OrderId, shown: SizeLots);
    /// Trades, or a reduction, changed what a price shows; what else changes it, its caller knows from what comes back. Told at least
    /// once for each such price. Whoever publishes nothing leaves it as it is: then it costs nothing.
    #[inline]
    fn level_changed(&mut self, side: Side, price: PriceTicks) {
        let _ = (side, price);
    }
}

/// What a queue of orders at one price shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLevel {
    /// The price.
    pub price: PriceTicks,
    /// Lots that others see.
    pub shown: SizeLots,
    /// Displayed orders.
    pub order_count: u32,
}

/// An amended order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amended {
    /// It only shrank, or waits for its trigger, and kept its place or turn.
    Kept {
        /// As it stands now.
        order: OpenOrder,
    },
    /// It left its place and entered anew.
    Requeued {
        /// The limit in force, and what became of it.
        placed: Placed,
    },
}

/// What an auction would trade, and at which price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncross {
    /// The one price.
    pub price: PriceTicks,
    /// How much trades.
    pub volume: SizeLots,
    /// Bid (positive) or offered (negative) at the price beyond `volume`, in lots.
    pub imbalance_lots: i64,
}
