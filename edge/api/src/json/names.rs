//! The names that enums have in the API.

use walras_engine::TransferOutcome;
use walras_types::{
    Allocation, BatchPhase, Display, Intake, LowerBounds, OrderType, PoolRule, PostOnly, SelfTrade, Side, TimeInForce, TradingPhase,
};
use walras_wire::{AccountStatus, CancelReason, ClusterAction, PhaseCause, Priority};

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $function:ident, $parse:ident: $type:ty { $($variant:path = $name:literal),+ $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[must_use]
        pub fn $function(value: $type) -> &'static str {
            match value { $($variant => $name,)+ }
        }

        /// The value of a name.
        #[must_use]
        pub fn $parse(name: &str) -> Option<$type> {
            match name { $($name => Some($variant),)+ _ => None }
        }
    )+ };
}

names! {
    /// `buy` or `sell`.
    side, parse_side: Side { Side::Buy = "buy", Side::Sell = "sell" }
    /// A batch market's phase.
    batch_phase, parse_batch_phase: BatchPhase { BatchPhase::Closed = "closed", BatchPhase::Open = "open" }
    /// How a batch market decides which transactions are kept.
    intake, parse_intake: Intake { Intake::Filter = "filter", Intake::Reserve = "reserve" }
    /// Whether offers that are clearly in the money must trade.
    lower_bounds, parse_lower_bounds: LowerBounds {
        LowerBounds::Required = "required",
        LowerBounds::BestEffort = "best_effort",
    }
    /// A trading phase.
    phase, parse_phase: TradingPhase {
        TradingPhase::Closed = "closed",
        TradingPhase::PreOpen = "pre_open",
        TradingPhase::OpeningAuction = "opening_auction",
        TradingPhase::Continuous = "continuous",
        TradingPhase::Halt = "halt",
        TradingPhase::ClosingAuction = "closing_auction",
    }
    /// What a post-only order does instead of trading.
    post_only, parse_post_only: PostOnly {
        PostOnly::Off = "off", PostOnly::Reject = "reject", PostOnly::Reprice = "reprice",
    }
    /// Self-trade prevention.
    self_trade, parse_self_trade: SelfTrade {
        SelfTrade::CancelNewest = "cancel_newest",
        SelfTrade::CancelOldest = "cancel_oldest",
        SelfTrade::CancelBoth = "cancel_both",
        SelfTrade::Decrement = "decrement",
        SelfTrade::Allow = "allow",
    }
    /// What an operator asks of a cluster.
    cluster_action, parse_cluster_action: ClusterAction {
        ClusterAction::TransferLeadership = "transfer_leadership",
        ClusterAction::AddVoter = "add_voter",
        ClusterAction::AddLearner = "add_learner",
        ClusterAction::Remove = "remove",
    }
    /// Whether an account may trade.
    account_status, parse_account_status: AccountStatus {
        AccountStatus::Active = "active", AccountStatus::Suspended = "suspended",
    }
    /// Why an order is gone.
    cancel_reason, parse_cancel_reason: CancelReason {
        CancelReason::Requested = "requested",
        CancelReason::MassCancelled = "mass_cancelled",
        CancelReason::Unfilled = "unfilled",
        CancelReason::Expired = "expired",
        CancelReason::DayEnded = "day_ended",
        CancelReason::SelfTrade = "self_trade",
        CancelReason::AccountSuspended = "account_suspended",
        CancelReason::TriggerRefused = "trigger_refused",
        CancelReason::PriceBand = "price_band",
        CancelReason::Linked = "linked",
        CancelReason::Unfunded = "unfunded",
    }
    /// Place in the queue after an amendment.
    priority, parse_priority: Priority { Priority::Kept = "kept", Priority::Lost = "lost" }
    /// What came of a transfer from another shard.
    transfer_outcome, parse_transfer_outcome: TransferOutcome {
        TransferOutcome::Taken = "taken",
        TransferOutcome::Refused = "refused",
    }
    /// Why a phase changed.
    phase_cause, parse_phase_cause: PhaseCause { PhaseCause::Operator = "operator", PhaseCause::PriceBand = "price_band" }
}

/// `limit`, `market`, `stop`, `stop_limit`, `take_profit`, `take_profit_limit`, `trailing_stop` or `trailing_stop_limit`.
#[must_use]
pub fn order_type(value: &OrderType) -> &'static str {
    match value {
        OrderType::Limit { .. } => "limit",
        OrderType::Market => "market",
        OrderType::Stop { .. } => "stop",
        OrderType::StopLimit { .. } => "stop_limit",
        OrderType::TakeProfit { .. } => "take_profit",
        OrderType::TakeProfitLimit { .. } => "take_profit_limit",
        OrderType::TrailingStop { .. } => "trailing_stop",
        OrderType::TrailingStopLimit { .. } => "trailing_stop_limit",
    }
}

/// How a pool prices its assets.
#[must_use]
pub const fn pool_rule(value: &PoolRule) -> &'static str {
    match value {
        PoolRule::ConstantProduct => "constant_product",
        PoolRule::Weighted { .. } => "weighted",
        PoolRule::StableSwap { .. } => "stable_swap",
    }
}

/// `gtc`, `day`, `gtt`, `ioc` or `fok`.
#[must_use]
pub fn time_in_force(value: &TimeInForce) -> &'static str {
    match value {
        TimeInForce::GoodTillCancel => "gtc",
        TimeInForce::Day => "day",
        TimeInForce::GoodTill(_) => "gtt",
        TimeInForce::ImmediateOrCancel => "ioc",
        TimeInForce::FillOrKill => "fok",
    }
}

/// `full`, `iceberg` or `hidden`.
#[must_use]
pub fn display(value: &Display) -> &'static str {
    match value {
        Display::Full => "full",
        Display::Iceberg { .. } => "iceberg",
        Display::Hidden => "hidden",
    }
}

/// `price_time`, `pro_rata`, `top_pro_rata` or `split`.
#[must_use]
pub fn allocation(value: &Allocation) -> &'static str {
    match value {
        Allocation::PriceTime => "price_time",
        Allocation::ProRata { .. } => "pro_rata",
        Allocation::TopProRata { .. } => "top_pro_rata",
        Allocation::Split { .. } => "split",
    }
}
