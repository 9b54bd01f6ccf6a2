//! The words of the dialect for what an order says.

use walras_types::{OrderTerms, OrderType, PostOnly, SelfTrade, Side, TimeInForce, TradingPhase};

pub(crate) fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

pub(crate) fn order_type(terms: &OrderTerms) -> &'static str {
    match terms.order_type {
        OrderType::Limit { post_only: PostOnly::Off, .. } => "LIMIT",
        OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. } => "LIMIT_MAKER",
        OrderType::Market => "MARKET",
        OrderType::Stop { .. } | OrderType::TrailingStop { .. } => "STOP_LOSS",
        OrderType::StopLimit { .. } | OrderType::TrailingStopLimit { .. } => "STOP_LOSS_LIMIT",
        OrderType::TakeProfit { .. } => "TAKE_PROFIT",
        OrderType::TakeProfitLimit { .. } => "TAKE_PROFIT_LIMIT",
    }
}

/// The dialect knows three. An order that leaves the book at a time was entered by another way, and rests until then.
pub(crate) fn time_in_force(terms: &OrderTerms) -> &'static str {
    match (terms.time_in_force, terms.order_type) {
        (_, OrderType::Market | OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. }) => "GTC",
        (TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_), _) => "GTC",
        (TimeInForce::ImmediateOrCancel, _) => "IOC",
        (TimeInForce::FillOrKill, _) => "FOK",
    }
}

pub(crate) fn self_trade(mode: SelfTrade) -> &'static str {
    match mode {
        SelfTrade::Allow => "NONE",
        SelfTrade::CancelNewest => "EXPIRE_TAKER",
        SelfTrade::CancelOldest => "EXPIRE_MAKER",
        SelfTrade::CancelBoth => "EXPIRE_BOTH",
        SelfTrade::Decrement => "DECREMENT",
    }
}

pub(crate) fn parse_self_trade(text: &str) -> Option<SelfTrade> {
    [SelfTrade::Allow, SelfTrade::CancelNewest, SelfTrade::CancelOldest, SelfTrade::CancelBoth, SelfTrade::Decrement]
        .into_iter()
        .find(|mode| self_trade(*mode) == text)
}

pub(crate) fn symbol_status(phase: TradingPhase) -> &'static str {
    match phase {
        TradingPhase::Closed => "BREAK",
        TradingPhase::PreOpen => "PRE_TRADING",
        TradingPhase::OpeningAuction | TradingPhase::ClosingAuction => "AUCTION_MATCH",
        TradingPhase::Continuous => "TRADING",
        TradingPhase::Halt => "HALT",
    }
}
