//! The inputs and outputs of a book.

use walras_types::{ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, Trail};

use crate::trails::trigger_of;

/// The owner of an order: a number that the book only compares, for self-trade prevention and mass cancels.
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
    /// The owner.
    pub owner: OwnerId,
    /// Buy or sell.
    pub side: Side,
    /// The limit price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// How long it stays open. For a stop, also how long it waits; an immediate-or-cancel or fill-or-kill stop waits until
    /// cancelled.
    pub time_in_force: TimeInForce,
    /// Whether it may trade on entry.
    pub post_only: PostOnly,
    /// How much of it is displayed while it rests.
    pub display: Display,
    /// Trade at least this much on entry, or nothing.
    pub min_size: Option<SizeLots>,
    /// Self-trade prevention.
    pub self_trade: SelfTrade,
    /// The trigger of a stop or take-profit; `None` for an order that enters now.
    pub trigger: Option<Trigger>,
}

impl Entry {
    /// A good-till-cancel limit order that is displayed whole and is cancelled where it would trade with its owner's. `name` says whose it
    /// is, and what its owner calls it.
    #[must_use]
    #[inline]
    pub const fn limit(order_id: OrderId, name: (OwnerId, ClientOrderId), side: Side, price: PriceTicks, size: SizeLots) -> Self {
        let (owner, client_order_id) = name;
        Self {
            order_id,
            client_order_id,
            owner,
            side,
            price,
            size,
            time_in_force: TimeInForce::GoodTillCancel,
            post_only: PostOnly::Off,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
            trigger: None,
        }
    }

    /// What a stop or take-profit enters as once it is touched.
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

/// The trigger of an order that waits: its price, the side of it from which a trade touches it, and the order that enters then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The trigger price itself touches it.
    pub price: PriceTicks,
    /// Which prices beyond it do.
    pub condition: Condition,
    /// The order that enters then.
    pub becomes: Becomes,
    /// Of a trailing stop, what its price follows; `None` of a trigger that stays.
    pub trailing: Option<Trailing>,
    /// Whether no price touches it before [`crate::OrderBook::release`].
    pub is_held: bool,
}

impl Trigger {
    /// A trigger that stays.
    #[must_use]
    pub const fn fixed(price: PriceTicks, condition: Condition, becomes: Becomes) -> Self {
        Self { price, condition, becomes, trailing: None, is_held: false }
    }

    /// The same trigger, which no price touches before [`crate::OrderBook::release`].
    #[must_use]
    pub const fn held(self) -> Self {
        Self { is_held: true, ..self }
    }

    /// The trigger of a trailing stop of `side`, or the price nearest to it.
    #[must_use]
    pub fn trailing(side: Side, by: Trail, best: PriceTicks, becomes: Becomes) -> Self {
        let price = trigger_of(side, by, best);
        Self { price, condition: Condition::Stop, becomes, trailing: Some(Trailing { by, best }), is_held: false }
    }
}

/// What the trigger of a trailing stop follows. The price that is followed is that of the last trade, whenever an order has ended its
/// matching or an uncross has traded: what lies between the first and the last trade of one order is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailing {
    /// How far behind the best price the trigger stays.
    pub by: Trail,
    /// The best price since it entered: the highest for a sell, the lowest for a buy. An order that enters begins at the last trade; what
    /// it says counts before the first.
    pub best: PriceTicks,
}

/// An order that [`crate::OrderBook::take_triggered`] took out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggered {
    /// What it enters as.
    pub entry: Entry,
    /// Where the trigger of a trailing stop was.
    pub trailed_to: Option<PriceTicks>,
}

/// Which trades touch a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Condition {
    /// The market moved against the order: a buy is touched by a trade at or above its trigger, a sell by one at or below it.
    Stop = 0,
    /// The market moved in the order's favour: a buy is touched by a trade at or below its trigger, a sell by one at or above it.
    TakeProfit = 1,
}

impl Condition {
    /// Whether a trade at `last` touches the trigger of an order of `side`.
    #[inline]
    #[must_use]
    pub fn is_touched(self, side: Side, trigger: PriceTicks, last: PriceTicks) -> bool {
        match (self, side) {
            (Self::Stop, Side::Buy) | (Self::TakeProfit, Side::Sell) => last >= trigger,
            (Self::Stop, Side::Sell) | (Self::TakeProfit, Side::Buy) => last <= trigger,
        }
    }
}

/// What a stop or take-profit becomes once it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Becomes {
    /// A market order: it trades up to its limit, the end of its collar, and never rests. Its time in force says how long the stop
    /// waits; fill-or-kill means that it trades in full or not at all.
    Market = 0,
    /// A limit order of its time in force.
    Limit = 1,
    /// The rest of an order that has met the maximum number of orders in one step, see [`crate::OrderBook::with_step_max`]. It has
    /// no trigger condition and enters before every stop; its trigger price is its own limit.
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

/// The outcome of an order's entry, after the trades reported meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It rests in the book.
    Rested {
        /// The remaining size.
        open: SizeLots,
        /// The displayed size.
        shown: SizeLots,
    },
    /// It waits for its trigger.
    Parked,
    /// It traded in full.
    Filled,
    /// The rest found no match, and its time in force does not let it rest.
    Unfilled {
        /// The size that did not trade.
        open: SizeLots,
    },
    /// The rest would have traded with its own owner.
    SelfTraded {
        /// The size that did not trade.
        open: SizeLots,
    },
    /// The rest would have traded outside the [`Band`].
    Banded {
        /// The size that did not trade.
        open: SizeLots,
    },
    /// It has met the maximum number of orders in one step. The rest waits; [`crate::OrderBook::take_triggered`] returns it next.
    Paused {
        /// The size that has not traded yet.
        open: SizeLots,
    },
}

/// An accepted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The limit in force; differs from the one asked for only by a post-only reprice.
    pub price: PriceTicks,
    /// The outcome.
    pub fate: Fate,
}

/// Why a book refused an order. Nothing was changed or reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The owner already has an order with that client order id here.
    DuplicateClientOrderId,
    /// It is post-only and would trade (or could only be repriced outside the price range).
    PostOnlyWouldTrade,
    /// Not all of it can be filled. Only trades count: lots that self-trade prevention would take off it do not.
    FillOrKillUnfillable,
    /// Less than its minimum can be filled. Only trades count, and only those before self-trade prevention ends the order.
    MinSizeUnfillable,
    /// The fill check reached its limit without deciding whether the order, or its minimum, can be filled:
    /// [`walras_types::limits::FILL_CHECK_LEVELS_MAX`] prices of an order with [`SelfTrade::Allow`],
    /// [`walras_types::limits::FILL_CHECK_ORDERS_MAX`] orders of others.
    FillCheckTooDeep,
    /// The book holds [`walras_types::limits::ORDERS_PER_BOOK_MAX`] orders.
    BookFull,
}

/// Refers to an open order until the book next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub(crate) crate::id_index::Named);

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The owner.
    pub owner: OwnerId,
    /// Buy or sell.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// The remaining size.
    pub open: SizeLots,
    /// The displayed size: zero for a hidden order and for a pending stop.
    pub shown: SizeLots,
    /// How long it stays open.
    pub time_in_force: TimeInForce,
    /// How much of it is displayed.
    pub display: Display,
    /// The trigger of a pending stop; `None` for a resting order.
    pub trigger: Option<Trigger>,
    /// Whether it may trade on entry, once triggered.
    pub post_only: PostOnly,
    /// Its minimum, once triggered; shrinking the order below it lowers it to the new size.
    pub min_size: Option<SizeLots>,
    /// Self-trade prevention, once triggered or amended.
    pub self_trade: SelfTrade,
    /// Whether it set its price.
    pub seniority: Seniority,
}

/// The part of a plain open order that is needed to move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// The remaining size, all of it displayed.
    pub open: SizeLots,
}

/// Whether an order was the first at a price better than that of any displayed order of its side.
/// [`walras_types::Allocation::TopProRata`] favours it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Seniority {
    /// It joined, or its price was not the best.
    Joined,
    /// It set the price and has kept its queue position since.
    SetThePrice,
}

/// One side of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The venue's name for the order.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The owner.
    pub owner: OwnerId,
    /// The order's limit.
    pub limit: PriceTicks,
    /// The remaining size after this trade.
    pub open: SizeLots,
}

/// A trade between the incoming order and a resting one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The price, which is the maker's.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// The side of the incoming order.
    pub taker_side: Side,
    /// The resting order.
    pub maker: Party,
    /// The incoming order.
    pub taker: Party,
}

/// Why the book removed an order without a cancel of that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalCause {
    /// Self-trade prevention: an order of its owner would have traded with it.
    SelfTrade,
    /// It expired.
    Expired,
    /// The day ended.
    DayEnded,
    /// Its owner cancelled many.
    MassCancelled,
}

/// Receives the events of a book as they happen. It must not access the book.
pub trait BookEvents {
    /// Two orders traded.
    fn traded(&mut self, fill: &Fill);
    /// Two collected orders traded at the uncrossing price; `buy.limit` and `sell.limit` are their own limits.
    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party);
    /// An order left the book without a trade. `order` is its state before.
    fn removed(&mut self, order: &OpenOrder, cause: RemovalCause);
    /// A resting order was reduced by `by` without a trade; `order` is its state after.
    fn reduced(&mut self, order: &OpenOrder, by: SizeLots);
    /// Self-trade prevention reduced the incoming order by `by` to `open` without a trade. The resting order is reported by
    /// `reduced` or `removed`.
    fn taker_reduced(&mut self, by: SizeLots, open: SizeLots);
    /// An iceberg shows its next slice.
    fn replenished(&mut self, order_id: OrderId, shown: SizeLots);
    /// Trades or a reduction changed the displayed size of a price level. Called at least once for each such level. Other changes
    /// follow from the results of the calls. A receiver that publishes nothing keeps this default, which costs nothing.
    #[inline]
    fn level_changed(&mut self, side: Side, price: PriceTicks) {
        let _ = (side, price);
    }
}

/// The displayed part of a price level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthLevel {
    /// The price.
    pub price: PriceTicks,
    /// The displayed size.
    pub shown: SizeLots,
    /// Displayed orders.
    pub order_count: u32,
}

/// A displayed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayedOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Its limit.
    pub price: PriceTicks,
    /// What it shows, at least 1.
    pub shown: SizeLots,
}

/// An amended order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amended {
    /// It only shrank, or is a pending stop, and kept its queue position.
    Kept {
        /// Its new state.
        order: OpenOrder,
    },
    /// It lost its queue position and entered again.
    Requeued {
        /// Its effective limit and the outcome.
        placed: Placed,
    },
}

/// The result that an auction would have now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncross {
    /// The uncrossing price.
    pub price: PriceTicks,
    /// The size that trades.
    pub volume: SizeLots,
    /// Bid (positive) or offered (negative) at the price beyond `volume`, in lots.
    pub imbalance_lots: i64,
}
