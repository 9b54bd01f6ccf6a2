//! Public trades, one by one and aggregated: those of one incoming order at one price.

use serde_json::{Value, json};
use walras_market_data::PublicTrade;
use walras_ports::InstrumentScale;
use walras_types::{PriceTicks, Side, SizeLots, TimeNs, TradeId};

use crate::report::{quote, tick_lots};
use crate::values::ms;

/// Whether the order that came in sold. In an auction none came in, and this says no.
pub(crate) fn is_buyer_maker(taker_side: Option<Side>) -> bool {
    taker_side == Some(Side::Sell)
}

pub(crate) fn public_trade(scale: &InstrumentScale, trade: &PublicTrade) -> Value {
    json!({
        "id": trade.trade_id.0,
        "price": scale.price(trade.price),
        "qty": scale.size(trade.size),
        "quoteQty": quote(scale, tick_lots(trade.price, trade.size)),
        "time": ms(trade.time),
        "isBuyerMaker": is_buyer_maker(trade.taker_side),
        "isBestMatch": true,
    })
}

/// Trades of one entry of the log, at one price and of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aggregate {
    pub(crate) first: TradeId,
    pub(crate) last: TradeId,
    pub(crate) time: TimeNs,
    pub(crate) price: PriceTicks,
    pub(crate) size: SizeLots,
    pub(crate) taker_side: Option<Side>,
}

/// Aggregates trades in their order or against it: at most `limit` of them.
pub(crate) fn aggregate<'t>(trades: impl Iterator<Item = &'t PublicTrade>, limit: usize) -> Vec<Aggregate> {
    let mut all: Vec<Aggregate> = Vec::new();
    for trade in trades {
        let PublicTrade { trade_id, time, price, size, taker_side } = *trade;
        let is_full = all.len() == limit;
        match all.last_mut() {
            Some(last) if (last.time, last.price, last.taker_side) == (time, price, taker_side) => {
                last.first = last.first.min(trade_id);
                last.last = last.last.max(trade_id);
                last.size = SizeLots::new(last.size.get().saturating_add(size.get()));
            }
            _ if is_full => break,
            _ => all.push(Aggregate { first: trade_id, last: trade_id, time, price, size, taker_side }),
        }
    }
    all
}

pub(crate) fn aggregated(scale: &InstrumentScale, trade: &Aggregate) -> Value {
    json!({
        "a": trade.first.0,
        "p": scale.price(trade.price),
        "q": scale.size(trade.size),
        "f": trade.first.0,
        "l": trade.last.0,
        "T": ms(trade.time),
        "m": is_buyer_maker(trade.taker_side),
        "M": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_of_one_order_at_one_price_are_one() {
        let trade = |id: u64, time: u64, price: i64, side| PublicTrade {
            trade_id: TradeId(id),
            time: TimeNs(time),
            price: PriceTicks::saturating(price),
            size: SizeLots::new(id),
            taker_side: Some(side),
        };
        let trades = [
            trade(1, 5, 10, Side::Buy),
            trade(2, 5, 10, Side::Buy),
            trade(3, 5, 11, Side::Buy),
            trade(4, 6, 11, Side::Buy),
            trade(5, 6, 11, Side::Sell),
        ];
        let shape = |all: Vec<Aggregate>| all.iter().map(|a| (a.first.0, a.last.0, a.size.get())).collect::<Vec<_>>();
        let expected = [(1, 2, 3), (3, 3, 3), (4, 4, 4), (5, 5, 5)];
        assert_eq!(shape(aggregate(trades.iter(), 9)), expected);
        assert_eq!(shape(aggregate(trades.iter(), 1)), expected[..1]);
        let mut backwards = aggregate(trades.iter().rev(), 9);
        backwards.reverse();
        assert_eq!(shape(backwards), expected);
    }
}
