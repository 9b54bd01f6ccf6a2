//! What the book reports, turned into moved funds, changed exposures and events. It borrows everything but the book.

use walras_ledger::{Ledger, Settlement};
use walras_order_book::{BookEvents, Fill, OpenOrder, Party, RemovalCause};
use walras_types::{AccountId, Amount, OrderId, PriceTicks, Rounding, Side, SizeLots, parts_per_million};
use walras_wire::{CancelReason, Event, OrderCancelled, OrderEvent, OrderReduced, OrderReplenished, Resting, TradeParty, Traded};

use crate::market::{Incoming, MarketState, Stake};

/// Listens to one book through one operation.
pub(crate) struct Settler<'a> {
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) market: &'a mut MarketState,
    pub(crate) events: &'a mut Vec<Event>,
    /// The order that comes in, reserved for and counted as open already.
    taker: Option<&'a Incoming>,
}

impl<'a> Settler<'a> {
    /// For operations without an incoming order.
    #[inline]
    pub(crate) fn new(ledger: &'a mut Ledger, market: &'a mut MarketState, events: &'a mut Vec<Event>) -> Self {
        Self { ledger, market, events, taker: None }
    }

    /// For an order that comes in.
    #[inline]
    pub(crate) fn taking(
        taker: &'a Incoming,
        ledger: &'a mut Ledger,
        market: &'a mut MarketState,
        events: &'a mut Vec<Event>,
    ) -> Self {
        Self { ledger, market, events, taker: Some(taker) }
    }

    /// Moves the funds of one trade. `bought` and `sold` are the orders with what is left of each after it.
    #[inline]
    fn settle(&mut self, price: PriceTicks, size: SizeLots, bought: &Party, sold: &Party, fees: [i32; 2]) -> [i64; 2] {
        let fits = "a trade's value is at most that of the buy order, which was checked when it entered";
        let value = self.market.value(price, size).expect(fits);
        let base_amount = self.market.spec.base_amount(size).expect("a trade's base is part of what the seller reserved");
        // What the buyer had reserved for this: f(L, a) - f(L, a - q), where f(L, a) = V(L, a) + ceil(w * V(L, a)) with limit L, open
        // lots a, value V and w the higher of both fee rates, or zero. It covers V(p, q) + floor(r * V(p, q)) for every p <= L and
        // r <= w: V is linear in the lots, hence V(L, a) - V(L, a - q) = V(L, q) >= V(p, q), and ceil(x + y) - ceil(x) >= floor(y),
        // because ceil(x + y) >= ceil(x + floor(y)) = ceil(x) + floor(y). A rebate pays even less.
        let had = self.market.reserved(Side::Buy, bought.limit, bought.open + size);
        let keeps = self.market.reserved(Side::Buy, bought.limit, bought.open);
        let (buyer, seller) = (AccountId(bought.owner.0), AccountId(sold.owner.0));
        let is_even = self.market.has_even_fees;
        let [buyer_fee, seller_fee] = fees.map(|ppm| fee(value, ppm, is_even));
        let trade = Settlement {
            base: self.market.spec.base,
            quote: self.market.spec.quote,
            buyer,
            seller,
            base_amount,
            value,
            buyer_reserved: had.checked_sub(keeps).expect("a reserve grows with the open size"),
            buyer_fee,
            seller_fee,
        };
        self.ledger.settle(&trade).expect("both orders reserved what the trade moves");
        self.market.exposure_of(bought.owner).traded(Side::Buy, size, bought.open);
        self.market.exposure_of(sold.owner).traded(Side::Sell, size, sold.open);
        if bought.open.is_zero() {
            self.market.names.remove(buyer, bought.order_id);
        }
        if sold.open.is_zero() {
            self.market.names.remove(seller, sold.order_id);
        }
        [buyer_fee, seller_fee]
    }

    fn cancelled(&mut self, order: &OpenOrder, reason: CancelReason) {
        self.events.push(Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: self.market.spec.instrument,
            account: AccountId(order.owner.0),
            client_order_id: order.client_order_id,
            order_id: order.order_id,
            open: order.open,
            reason,
        })));
    }

    /// Accounts for and tells of an order that left the book without a trade.
    #[inline]
    pub(crate) fn gone(&mut self, order: &OpenOrder, reason: CancelReason) {
        if self.market.links.is_empty() || !self.market.linked_is_gone(self.ledger, order) {
            let stood = Stake { limit: order.price, open: order.open };
            let gone = Stake { open: SizeLots::ZERO, ..stood };
            self.market.shrink(self.ledger, order.order_id, order.owner, order.side, stood, gone);
        }
        self.market.shows(order.side, order.price, order.shown);
        self.cancelled(order, reason);
    }
}

impl BookEvents for Settler<'_> {
    #[inline]
    fn traded(&mut self, fill: &Fill) {
        let rates = self.market.spec.fees;
        let (maker_fee, taker_fee) = match fill.taker_side {
            Side::Buy => {
                let [taker, maker] =
                    self.settle(fill.price, fill.size, &fill.taker, &fill.maker, [rates.taker_ppm, rates.maker_ppm]);
                (maker, taker)
            }
            Side::Sell => {
                let [maker, taker] =
                    self.settle(fill.price, fill.size, &fill.maker, &fill.taker, [rates.maker_ppm, rates.taker_ppm]);
                (maker, taker)
            }
        };
        let trade_id = self.market.next_trade_id();
        self.events.push(Event::Order(OrderEvent::Traded(Traded {
            instrument: self.market.spec.instrument,
            trade_id,
            price: fill.price,
            size: fill.size,
            taker_side: fill.taker_side,
            maker: party(&fill.maker, maker_fee),
            taker: party(&fill.taker, taker_fee),
        })));
    }

    /// In an uncross nobody takes: both pay the maker's rate, and a rebate is not paid.
    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party) {
        let rate = self.market.spec.fees.maker_ppm.max(0);
        let [buy_fee, sell_fee] = self.settle(price, size, buy, sell, [rate, rate]);
        let trade_id = self.market.next_trade_id();
        self.events.push(Event::Order(OrderEvent::Traded(Traded {
            instrument: self.market.spec.instrument,
            trade_id,
            price,
            size,
            taker_side: Side::Sell,
            maker: party(buy, buy_fee),
            taker: party(sell, sell_fee),
        })));
    }

    fn removed(&mut self, order: &OpenOrder, cause: RemovalCause) {
        let reason = match cause {
            RemovalCause::SelfTrade => CancelReason::SelfTrade,
            RemovalCause::Expired => CancelReason::Expired,
            RemovalCause::DayEnded => CancelReason::DayEnded,
            // The engine finds an account's orders by their names, see `names`.
            RemovalCause::MassCancelled => CancelReason::MassCancelled,
        };
        self.gone(order, reason);
    }

    fn reduced(&mut self, order: &OpenOrder, by: SizeLots) {
        let stands = Stake { limit: order.price, open: order.open };
        let stood = Stake { open: order.open + by, ..stands };
        self.market.shrink(self.ledger, order.order_id, order.owner, order.side, stood, stands);
        self.events.push(Event::Order(OrderEvent::Reduced(OrderReduced {
            instrument: self.market.spec.instrument,
            account: AccountId(order.owner.0),
            client_order_id: order.client_order_id,
            order_id: order.order_id,
            by,
            resting: Resting { open: order.open, shown: order.shown },
        })));
    }

    /// The incoming order's own event says what stands of it in the end, so this only accounts.
    fn taker_reduced(&mut self, by: SizeLots, open: SizeLots) {
        let taker = self.taker.expect("only an order that comes in is a taker");
        let left = Stake { limit: taker.limit, open };
        self.market.shrink(self.ledger, taker.order_id, taker.owner, taker.side, Stake { open: open + by, ..left }, left);
    }

    fn replenished(&mut self, order_id: OrderId, shown: SizeLots) {
        let instrument = self.market.spec.instrument;
        self.events.push(Event::Order(OrderEvent::Replenished(OrderReplenished { instrument, order_id, shown })));
    }

    #[inline]
    fn level_changed(&mut self, side: Side, price: PriceTicks) {
        self.market.level_changed(side, price);
    }
}

/// What a trade of `value` costs at `ppm`, negative for a rebate; whoever pays keeps the remainder, the venue when it is a rebate. Of an odd
/// number of units one fewer, where it is to be even.
#[inline]
fn fee(value: Amount, ppm: i32, is_even: bool) -> i64 {
    let size = parts_per_million(value, ppm.unsigned_abs(), Rounding::Down).get() as i64;
    let size = if is_even { size & !1 } else { size };
    if ppm < 0 { -size } else { size }
}

#[inline]
fn party(party: &Party, fee: i64) -> TradeParty {
    TradeParty {
        account: AccountId(party.owner.0),
        client_order_id: party.client_order_id,
        order_id: party.order_id,
        open: party.open,
        fee,
    }
}
