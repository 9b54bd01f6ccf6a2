//! Events: what happened. The events of one command follow each other in the order in which they took effect, so that a reader who
//! applies them one by one holds the venue's books and balances.

use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, EngineVersion, InstrumentId, InstrumentSpec, OrderId, PriceTicks, RejectReason,
    RiskLimits, SessionId, Side, SizeLots, TradeId, TradingPhase, TransferId,
};

use crate::batch_event::{AccountKeySet, BatchEvent, BatchMarketEvent, IssuerSet};
use crate::command::{AccessDelays, AccountStatus, AssetSpec};
use crate::shards::ShardEvent;

/// One thing that happened. Grouped by what it happened to; [`Event::accounts`] says which accounts it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command was refused and changed nothing.
    Rejected(Rejected),
    /// To an order.
    Order(OrderEvent),
    /// To an instrument of continuous trading.
    Instrument(InstrumentEvent),
    /// To an account, its funds or its limits.
    Account(AccountEvent),
    /// To a session of order entry.
    Session(SessionEvent),
    /// To the rules of a batch market.
    BatchMarket(BatchMarketEvent),
    /// In a batch of a batch market.
    Batch(BatchEvent),
    /// To one of several shards.
    Shard(ShardEvent),
    /// To the venue as a whole.
    Venue(VenueEvent),
}

/// What happened to an order. Its tag is its own byte, as that of [`crate::OrderCommand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OrderEvent {
    /// It was taken. Its trades, if any, follow.
    Accepted(OrderAccepted),
    /// It was changed. Its trades, if any, follow.
    Amended(OrderAmended),
    /// Two orders traded.
    Traded(Traded),
    /// It, or what was left of it, is gone without a trade.
    Cancelled(OrderCancelled),
    /// A resting order shrank without a trade (self-trade prevention by decrement).
    Reduced(OrderReduced),
    /// An iceberg shows its next slice, at the back of its price level.
    Replenished(OrderReplenished),
    /// A stop order's trigger was touched: it enters the book now. Its trades, if any, follow.
    Triggered(StopTriggered),
}

impl OrderEvent {
    /// The order that comes in by this event and takes from the book: it is the taker of trades that follow in the entry, until another one
    /// comes in. In an uncross nobody does. Nor does an order that keeps its place as it is amended: such are the exits that grow as their
    /// entry trades.
    #[must_use]
    pub const fn comes_in(&self) -> Option<OrderId> {
        match self {
            Self::Accepted(e) => Some(e.order_id),
            Self::Triggered(e) => Some(e.order_id),
            Self::Amended(e) => match e.priority {
                Priority::Lost => Some(e.order_id),
                Priority::Kept => None,
            },
            Self::Traded(_) | Self::Cancelled(_) | Self::Reduced(_) | Self::Replenished(_) => None,
        }
    }
}

/// What happened to an instrument of continuous trading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentEvent {
    /// It was defined.
    Created(InstrumentSpec),
    /// It is in another phase.
    PhaseChanged(PhaseChanged),
    /// Its auction uncrossed; the auction's trades precede this.
    Uncrossed(Uncrossed),
}

/// What happened to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountEvent {
    /// It was opened, by the operator or by a transaction of a batch.
    Created(AccountId),
    /// It was suspended or reinstated.
    StatusChanged(AccountStatusChanged),
    /// It has a key for its transactions.
    KeySet(AccountKeySet),
    /// It was credited.
    Deposited(Transferred),
    /// It was debited.
    Withdrawn(Transferred),
    /// Collected fees went to it.
    FeesCollected(FeesCollected),
    /// Its limits in an instrument changed.
    RiskLimitsChanged(RiskLimitsChanged),
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It is open: a new one, or the one that was open under that account and token.
    Opened(SessionOpened),
    /// It is closed: somebody asked, or a new one of its account took its room.
    Closed(SessionClosed),
}

/// What happened to the venue as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueEvent {
    /// An asset was defined.
    AssetCreated(AssetSpec),
    /// An asset has an issuer.
    IssuerSet(IssuerSet),
    /// The delays of fair access changed.
    AccessDelaysChanged(AccessDelays),
    /// The rules of this version apply from this entry on.
    EngineVersionSet(EngineVersion),
}

/// A command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Whose command; `None` for the operator's.
    pub account: Option<AccountId>,
    /// The instrument that it named, if any.
    pub instrument: Option<InstrumentId>,
    /// The order that it named, if any.
    pub client_order_id: Option<ClientOrderId>,
    /// Why.
    pub reason: RejectReason,
}

/// What is left of an order after its own trades: in the book, or, of a stop, waiting for its trigger (then nothing is shown). Both are
/// zero when nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resting {
    /// All that is left of it, shown or not.
    pub open: SizeLots,
    /// What others see of it.
    pub shown: SizeLots,
}

/// An order was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAccepted {
    /// Where.
    pub instrument: InstrumentId,
    /// Whose.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// How much was asked.
    pub size: SizeLots,
    /// The limit in force (a reprice or a market order's collar included); `None` for a stop that waits for its trigger.
    pub price: Option<PriceTicks>,
    /// What stands in the book after the trades that follow.
    pub resting: Resting,
}

/// How an amended order stands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Priority {
    /// Where it was.
    Kept = 0,
    /// At the back of its (possibly new) price level.
    Lost = 1,
}

/// An order was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAmended {
    /// Where.
    pub instrument: InstrumentId,
    /// Whose.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it, unchanged.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// The limit now in force.
    pub price: Option<PriceTicks>,
    /// Its place in the queue.
    pub priority: Priority,
    /// What stands in the book after the trades that follow.
    pub resting: Resting,
}

/// One side of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradeParty {
    /// Whose order.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// What is left of the order, shown or not.
    pub open: SizeLots,
    /// Paid in quote; negative for a rebate.
    pub fee: i64,
}

/// Two orders traded. In an uncross, the maker is the buy order and the taker the sell order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traded {
    /// Where.
    pub instrument: InstrumentId,
    /// Which trade.
    pub trade_id: TradeId,
    /// At what price.
    pub price: PriceTicks,
    /// How much.
    pub size: SizeLots,
    /// The side of the order that came in (the taker).
    pub taker_side: Side,
    /// The order that stood in the book.
    pub maker: TradeParty,
    /// The order that came in.
    pub taker: TradeParty,
}

/// Why an order is gone without a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    /// Its owner asked.
    Requested = 0,
    /// Its owner cancelled many.
    MassCancelled = 1,
    /// Immediate-or-cancel, or a market order: the rest found no match within its limit.
    Unfilled = 2,
    /// Its time came.
    Expired = 3,
    /// The day ended.
    DayEnded = 4,
    /// It would have traded with its own account.
    SelfTrade = 5,
    /// Its account was suspended.
    AccountSuspended = 6,
    /// A triggered stop's funds, or the market's state, no longer allowed it.
    TriggerRefused = 7,
    /// It would have traded outside the price band: the instrument halted instead.
    PriceBand = 8,
    /// The order with which it was linked traded, triggered, shrank or is gone.
    Linked = 9,
    /// An exit: the account lacked the funds for what its entry had filled.
    Unfunded = 10,
}

/// An order, or what was left of it, is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderCancelled {
    /// Where.
    pub instrument: InstrumentId,
    /// Whose.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// What did not trade.
    pub open: SizeLots,
    /// Why.
    pub reason: CancelReason,
}

/// A resting order shrank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderReduced {
    /// Where.
    pub instrument: InstrumentId,
    /// Whose.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// By how much.
    pub by: SizeLots,
    /// What stands after.
    pub resting: Resting,
}

/// An iceberg shows its next slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderReplenished {
    /// Where.
    pub instrument: InstrumentId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// What it shows now.
    pub shown: SizeLots,
}

/// A stop order enters the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTriggered {
    /// Where.
    pub instrument: InstrumentId,
    /// Whose.
    pub account: AccountId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// The limit now in force.
    pub price: PriceTicks,
    /// What stands in the book after the trades that follow.
    pub resting: Resting,
}

/// Why a phase changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PhaseCause {
    /// The operator, or the venue's schedule.
    Operator = 0,
    /// A trade would have left the price band.
    PriceBand = 1,
}

/// An instrument is in another phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseChanged {
    /// Which.
    pub instrument: InstrumentId,
    /// To what.
    pub phase: TradingPhase,
    /// Why.
    pub cause: PhaseCause,
}

/// An auction uncrossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncrossed {
    /// Where.
    pub instrument: InstrumentId,
    /// The one price of all its trades; `None` when nothing crossed.
    pub price: Option<PriceTicks>,
    /// How much traded.
    pub volume: SizeLots,
    /// How much more was bid (positive) or offered (negative) at the price than traded.
    pub imbalance_lots: i64,
}

/// An account was suspended or reinstated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountStatusChanged {
    /// Which.
    pub account: AccountId,
    /// To what.
    pub status: AccountStatus,
}

/// Funds came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
    /// The operator's name for it.
    pub transfer_id: TransferId,
}

/// Collected fees went to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeesCollected {
    /// To whom.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

/// An account's limits in an instrument changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskLimitsChanged {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// To what.
    pub limits: RiskLimits,
}

/// A session is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOpened {
    /// Which: the log index of the command that opened it first.
    pub session: SessionId,
    /// Whose; `None` for the operator's.
    pub account: Option<AccountId>,
    /// The client's name for it.
    pub token: u64,
}

/// A session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionClosed {
    /// Which.
    pub session: SessionId,
    /// Whose; `None` for the operator's.
    pub account: Option<AccountId>,
}
