//! The driver's steps: history in which each aggressor is one order again.

use walras_market_history::Lasting;
use walras_types::{PriceTicks, Side, SizeLots};

/// A recorded execution of a resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFill {
    /// The resting order.
    pub maker: u64,
    /// The price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// Whether the file adds that order, or it was made up because the file names it without having added it.
    pub origin: Origin,
}

/// Where an order came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file adds it.
    Added,
    /// Made up: see [`crate::reconstruct`].
    MadeUp,
}

/// A recorded pair of an auction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPair {
    /// The buying order.
    pub buy: u64,
    /// The selling order.
    pub sell: u64,
    /// Size in lots.
    pub size: SizeLots,
}

/// An incoming order, reconstructed from the executions that it must have caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggressor {
    /// Its number, where the file says or its rest is added.
    pub order_ref: Option<u64>,
    /// Its side.
    pub side: Side,
    /// Its limit: that of its rest, or, where nothing rested, the worst price it traded at.
    pub limit: PriceTicks,
    /// All of it.
    pub size: SizeLots,
    /// What rested of it; zero if nothing.
    pub rest: SizeLots,
    /// The executions that it caused.
    pub fills: Vec<RecordedFill>,
    /// Orders that these prove gone, each with the index of that execution in `fills`; see [`crate::record`]. Separate steps after
    /// the aggressor presume them deleted.
    pub gone: Vec<(usize, u64)>,
}

/// Why an order leaves the book without a line for it; see [`crate::record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presumption {
    /// The file never names it again, and it would be in the way.
    Deleted,
    /// The file names it again, but another order rests that contradicts it.
    SetAside {
        /// The other order.
        by: u64,
    },
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An order rests, and by the record did not trade.
    Rest {
        /// The order.
        order_ref: u64,
        /// Its side.
        side: Side,
        /// Its price.
        price: PriceTicks,
        /// What rests.
        size: SizeLots,
        /// Whether the file adds it.
        origin: Origin,
    },
    /// An order arrives; the record does not say with whom it trades.
    Submit {
        /// The order.
        order_ref: u64,
        /// Its side.
        side: Side,
        /// Its limit.
        price: PriceTicks,
        /// Size in lots.
        size: SizeLots,
        /// Whether the rest stays in the book.
        lasting: Lasting,
    },
    /// An order leaves without a line for it.
    Presume {
        /// The order.
        order_ref: u64,
        /// The reason.
        why: Presumption,
    },
    /// A reconstructed aggressor arrives.
    Sweep(Aggressor),
    /// An order shrinks and keeps its place.
    Reduce {
        /// The order.
        order_ref: u64,
        /// The reduction.
        by: SizeLots,
    },
    /// An order leaves.
    Delete {
        /// The order.
        order_ref: u64,
        /// What it has left, where the record says.
        open: Option<SizeLots>,
    },
    /// An order's open size is now this, by trade or by cancel; zero when it is gone.
    SetOpen {
        /// The order.
        order_ref: u64,
        /// The remaining size.
        open: SizeLots,
    },
    /// An order is removed, and its rest submitted again at this price.
    Move {
        /// The order.
        order_ref: u64,
        /// The new price.
        price: PriceTicks,
    },
    /// An order gives way to a new one.
    Replace {
        /// The order that leaves.
        old_ref: u64,
        /// The one that comes.
        new_ref: u64,
        /// Its price.
        price: PriceTicks,
        /// Its size.
        size: SizeLots,
    },
    /// A trade is reported without its orders.
    Tape {
        /// At what price, if it is a whole number of ticks.
        price: Option<PriceTicks>,
        /// Size in lots.
        size: SizeLots,
    },
    /// Orders collect from now on.
    CollectForOpen,
    /// Orders collect from now on.
    CollectForClose,
    /// The collected orders trade at one price.
    Uncross {
        /// The recorded price.
        price: PriceTicks,
        /// The recorded size.
        size: SizeLots,
        /// The recorded pairs.
        pairs: Vec<RecordedPair>,
    },
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, as the history counts.
    pub time_ns: u64,
    /// Number of its (first) message in the file.
    pub index: u64,
    /// Number of its last message: after it the book stands as the file says. Of a step that comes before its message, that of the
    /// message before.
    pub until: u64,
    /// The action.
    pub action: Action,
}

/// The exchange's way of choosing an auction's price where volume, imbalance and market pressure leave several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuctionReference {
    /// The nearest to this price.
    Price(PriceTicks),
    /// The middle of them: Shanghai's rule. On 2023-02-07 at 09:15:11 it showed 600519 at 1788.04, with as much bid as offered at
    /// every price from 1781.21 to 1794.87. Where the middle lies between two ticks, the upper one; no known file shows which it
    /// should be.
    Middle,
}

/// Messages that make no step, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Price or size no whole number of ticks or lots, or out of range.
    pub off_scale: u64,
    /// They name an order that the file never added, and say too little to make it up.
    pub unknown_order: u64,
    /// Executions among those.
    pub unknown_executions: u64,
    /// Phases, names, auction totals without orders: nothing for a book.
    pub no_order: u64,
}

/// Messages by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MessageCounts {
    /// Events of the instrument, snapshots included.
    pub events: u64,
    /// Orders added or submitted.
    pub adds: u64,
    /// Partial cancels and changes of size.
    pub reduces: u64,
    /// Deletions.
    pub deletes: u64,
    /// Moves and replacements.
    pub replaces: u64,
    /// Executions of resting visible orders.
    pub executions: u64,
    /// Executions of hidden orders: they have no counterpart in a visible book.
    pub hidden_executions: u64,
    /// Trades of auctions.
    pub auction_trades: u64,
    /// Trades without orders, in feeds that report all trades so.
    pub tape_trades: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Everything else.
    pub others: u64,
}

/// Totals of a history, once all steps were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// What the messages were.
    pub messages: MessageCounts,
    /// What makes no step.
    pub left_out: LeftOut,
    /// Orders made up.
    pub made_up: u64,
    /// Orders presumed deleted beyond the file's levels; see [`crate::record`].
    pub presumed_deleted: u64,
    /// Orders set aside, because two lines contradict each other.
    pub set_aside: u64,
}
