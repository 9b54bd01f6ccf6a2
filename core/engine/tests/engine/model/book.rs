//! The naive engine's matching: scan all orders for the best one, trade, repeat.

use walras_types::*;
use walras_wire::*;

use super::{Market, Model, Order, ensure, price};

/// How an order ended its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the book, or waiting for its trigger.
    Stands,
    Filled,
    Unfilled,
    SelfTraded,
    Banded,
}

pub type Outcome = Result<State, RejectReason>;

impl Order {
    /// What it is once its trigger was touched.
    fn triggered(self) -> Self {
        let waits = self.trigger.is_some() && self.becomes_market && super::rules::can_rest(self.time_in_force);
        let time_in_force = if waits { TimeInForce::ImmediateOrCancel } else { self.time_in_force };
        Self { trigger: None, trail: None, time_in_force, ..self }
    }
}

impl Market {
    pub fn named(&self, account: AccountId, name: ClientOrderId) -> Option<&Order> {
        self.orders.iter().find(|o| o.account == account && o.name == name)
    }

    /// The order of `side` that trades first.
    fn first(&self, side: Side) -> Option<Order> {
        let rank = |o: &Order| (if side == Side::Buy { -o.price } else { o.price }, o.display == Display::Hidden, o.turn);
        self.orders.iter().filter(|o| o.side == side && o.trigger.is_none()).min_by_key(|o| rank(o)).copied()
    }

    fn by_id(&mut self, id: OrderId) -> &mut Order {
        self.orders.iter_mut().find(|o| o.id == id).unwrap()
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn crosses(&self, order: &Order) -> bool {
        let opposite = self.first(order.side.opposite());
        opposite.is_some_and(|o| order.side.accepts(price(order.price), price(o.price)))
    }

    fn touches(&self, order: &Order) -> bool {
        let Some((trigger, last)) = order.trigger.zip(self.last).filter(|_| !order.is_held) else { return false };
        match (order.side == Side::Buy) != order.takes_profit {
            true => last >= trigger,
            false => last <= trigger,
        }
    }

    /// Every trailing stop compares the last price with the best that it has seen.
    fn follow(&mut self) {
        let Some(last) = self.last else { return };
        for order in &mut self.orders {
            if let Some((trail, best)) = order.trail {
                let best = if order.side == Side::Buy { best.min(last) } else { best.max(last) };
                order.trail = Some((trail, best));
                order.trigger = Some(trails(order.side, trail, best));
            }
        }
    }

    /// The limit of an order that triggers: a trailing stop's is at least that of the collar around its trigger, if its value there is one.
    fn limit_there(&self, order: &Order) -> i64 {
        let Some(trigger) = order.trigger.filter(|_| order.trail.is_some()) else { return order.price };
        let (low, high) = self.around(trigger, self.spec.collar_ppm);
        let better = if order.side == Side::Buy { order.price.min(high) } else { order.price.max(low) };
        if self.value(better, order.open) > limits::AMOUNT_MAX.into() { order.price } else { better }
    }

    /// Takes out the order that triggers next: stops before take-profits before trailing stops, buys before sells, the trigger
    /// touched first, the smaller distance, who came first.
    pub fn take_touched(&mut self) -> Option<Order> {
        let rank = |o: &Order| {
            let trigger = o.trigger.unwrap();
            let rises = (o.side == Side::Buy) != o.takes_profit;
            let distance = o.trail.map(|(trail, _)| match trail {
                Trail::Ticks(ticks) => (0, ticks),
                Trail::Ppm(ppm) => (1, ppm),
            });
            (o.trail.is_some(), o.takes_profit, o.side, if rises { trigger } else { -trigger }, distance, o.turn)
        };
        let id = self.orders.iter().filter(|o| self.touches(o)).min_by_key(|o| rank(o))?.id;
        let at = self.orders.iter().position(|o| o.id == id).unwrap();
        let order = self.orders.remove(at);
        Some(Order { price: self.limit_there(&order), ..order.triggered() })
    }

    /// Puts an order at the back of its queue.
    pub fn stand(&mut self, mut order: Order) {
        order.turn = self.next_turn();
        order.slice = peak(&order).min(order.open);
        self.orders.push(order);
    }

    pub fn resting(&self, id: OrderId) -> Resting {
        let Some(order) = self.orders.iter().find(|o| o.id == id) else { return Resting::default() };
        let is_seen = order.trigger.is_none() && order.display != Display::Hidden;
        let shown = if is_seen { order.slice } else { 0 };
        Resting { open: SizeLots::new(order.open), shown: SizeLots::new(shown) }
    }

    pub fn cancelled(&self, order: &Order, reason: CancelReason) -> Event {
        Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: self.spec.instrument,
            account: order.account,
            client_order_id: order.name,
            order_id: order.id,
            open: SizeLots::new(order.open),
            reason,
        }))
    }
}

/// The trigger of a trailing stop: a share of the price is rounded up to whole ticks.
pub fn trails(side: Side, trail: Trail, best: i64) -> i64 {
    let distance = match trail {
        Trail::Ticks(ticks) => i64::from(ticks),
        Trail::Ppm(ppm) => (best * i64::from(ppm) + 999_999) / 1_000_000,
    };
    if side == Side::Buy { best + distance } else { best - distance }
}

fn peak(order: &Order) -> u64 {
    if let Display::Iceberg { peak } = order.display { peak.get() } else { u64::MAX }
}

impl Model {
    /// Enters an order while orders match.
    pub fn submit(&mut self, m: usize, order: &mut Order, events: &mut Vec<Event>) -> Outcome {
        let market = &mut self.markets[m];
        ensure(market.named(order.account, order.name).is_none(), RejectReason::DuplicateClientOrderId)?;
        if order.trigger.is_some() && !market.touches(order) {
            market.stand(*order);
            return Ok(State::Stands);
        }
        *order = order.triggered();
        if market.crosses(order) && order.post_only != PostOnly::Off {
            ensure(order.post_only == PostOnly::Reprice, RejectReason::PostOnlyWouldTrade)?;
            let opposite = market.first(order.side.opposite()).unwrap().price;
            let behind = if order.side == Side::Buy { opposite - 1 } else { opposite + 1 };
            ensure(PriceTicks::new(behind).is_some(), RejectReason::PostOnlyWouldTrade)?;
            order.price = behind;
        }
        let asked = *order;
        let (state, traded) = self.match_order(m, order, events);
        self.markets[m].follow();
        if asked.time_in_force == TimeInForce::FillOrKill {
            ensure(traded == asked.open, RejectReason::FillOrKillUnfillable)?;
        }
        if let Some(min_size) = asked.min_size {
            ensure(traded >= min_size.get(), RejectReason::MinSizeUnfillable)?;
        }
        if state != State::Unfilled || !super::rules::can_rest(order.time_in_force) {
            return Ok(state);
        }
        self.markets[m].stand(Order { min_size: None, ..*order });
        Ok(State::Stands)
    }

    /// Matches until nothing can, and says how much traded: what a decrement takes does not count.
    fn match_order(&mut self, m: usize, taker: &mut Order, events: &mut Vec<Event>) -> (State, u64) {
        let mut traded = 0;
        loop {
            if taker.open == 0 {
                return (State::Filled, traded);
            }
            let market = &mut self.markets[m];
            if !market.crosses(taker) {
                return (State::Unfilled, traded);
            }
            let maker = market.first(taker.side.opposite()).unwrap();
            let (low, high) = market.around(market.reference, market.spec.band_ppm);
            if !(low..=high).contains(&maker.price) {
                return (State::Banded, traded);
            }
            if maker.account == taker.account && taker.self_trade != SelfTrade::Allow {
                if taker.self_trade == SelfTrade::Decrement {
                    self.decrement(m, taker, &maker, events);
                    if taker.open == 0 {
                        return (State::SelfTraded, traded);
                    }
                    continue;
                }
                if taker.self_trade != SelfTrade::CancelNewest {
                    self.cancel(m, maker.id, CancelReason::SelfTrade, events);
                }
                if taker.self_trade != SelfTrade::CancelOldest {
                    return (State::SelfTraded, traded);
                }
                continue;
            }
            let size = maker.slice.min(taker.open);
            taker.open -= size;
            traded += size;
            let fees = self.markets[m].spec.fees;
            let maker = self.consume(m, maker.id, size);
            self.trade(m, maker.price, size, (&maker, fees.maker_ppm), (taker, fees.taker_ppm), events);
            self.after_trade(m, &maker, events);
        }
    }

    fn decrement(&mut self, m: usize, taker: &mut Order, maker: &Order, events: &mut Vec<Event>) {
        let by = maker.open.min(taker.open);
        taker.open -= by;
        if by == maker.open {
            return self.cancel(m, maker.id, CancelReason::SelfTrade, events);
        }
        let market = &mut self.markets[m];
        let order = market.by_id(maker.id);
        order.open -= by;
        order.slice = order.slice.min(order.open);
        events.push(Event::Order(OrderEvent::Reduced(OrderReduced {
            instrument: market.spec.instrument,
            account: maker.account,
            client_order_id: maker.name,
            order_id: maker.id,
            by: SizeLots::new(by),
            resting: market.resting(maker.id),
        })));
    }

    /// Takes `size` off an order in the book, and gives the order as it is then.
    fn consume(&mut self, m: usize, id: OrderId, size: u64) -> Order {
        let order = self.markets[m].by_id(id);
        order.open -= size;
        order.slice -= size;
        *order
    }

    /// Removes an order that traded in full; shows an iceberg's next slice.
    fn after_trade(&mut self, m: usize, order: &Order, events: &mut Vec<Event>) {
        let market = &mut self.markets[m];
        if order.open == 0 {
            market.orders.retain(|o| o.id != order.id);
        } else if order.slice == 0 {
            market.orders.retain(|o| o.id != order.id);
            market.stand(*order);
            let Resting { shown, .. } = market.resting(order.id);
            let instrument = market.spec.instrument;
            events.push(Event::Order(OrderEvent::Replenished(OrderReplenished { instrument, order_id: order.id, shown })));
        }
    }

    /// Moves what is owned and tells of the trade.
    fn trade(&mut self, m: usize, at: i64, size: u64, maker: (&Order, i32), taker: (&Order, i32), events: &mut Vec<Event>) {
        let market = &mut self.markets[m];
        let InstrumentSpec { instrument, base, quote, lot_units, .. } = market.spec;
        market.last = Some(at);
        market.trades += 1;
        let trade_id = TradeId(market.trades);
        let value = market.value(at, size);
        let lots = size as i64;
        let [maker_fee, taker_fee] = [maker, taker].map(|(order, ppm)| {
            let units = value * i128::from(ppm.abs()) / 1_000_000;
            let kept = if self.version == u16::MAX { units - units % 2 } else { units };
            let fee = kept * i128::from(ppm.signum());
            let buys = if order.side == Side::Buy { 1 } else { -1 };
            *self.markets[m].net.entry(order.account).or_default() += buys * lots;
            self.own(order.account, base, i128::from(buys) * i128::from(size) * i128::from(lot_units));
            self.own(order.account, quote, -i128::from(buys) * value - fee);
            *self.fees.entry(quote).or_default() += fee;
            fee
        });
        let party = |order: &Order, fee: i128| TradeParty {
            account: order.account,
            client_order_id: order.name,
            order_id: order.id,
            open: SizeLots::new(order.open),
            fee: fee.try_into().unwrap(),
        };
        events.push(Event::Order(OrderEvent::Traded(Traded {
            instrument,
            trade_id,
            price: price(at),
            size: SizeLots::new(size),
            taker_side: taker.0.side,
            maker: party(maker.0, maker_fee),
            taker: party(taker.0, taker_fee),
        })));
    }

    /// Trades what crosses at the auction's price.
    pub fn uncross(&mut self, m: usize, events: &mut Vec<Event>) -> Option<Uncrossed> {
        let market = &self.markets[m];
        let (bid, ask) = (market.first(Side::Buy)?.price, market.first(Side::Sell)?.price);
        let lots = |side: Side, at: i64| -> i64 {
            let willing = market.orders.iter().filter(|o| o.side == side && o.trigger.is_none());
            willing.filter(|o| side.accepts(price(o.price), price(at))).map(|o| o.open as i64).sum()
        };
        let merit = |at: &i64| {
            let (demand, supply) = (lots(Side::Buy, *at), lots(Side::Sell, *at));
            (demand.min(supply), -(demand - supply).abs())
        };
        let best = (ask..=bid).map(|at| merit(&at)).max()?;
        let prices: Vec<i64> = (ask..=bid).filter(|at| merit(at) == best).collect();
        let pressure = |at: &i64| (lots(Side::Buy, *at) - lots(Side::Sell, *at)).signum();
        let at = if prices.iter().all(|at| pressure(at) > 0) {
            *prices.last()?
        } else if prices.iter().all(|at| pressure(at) < 0) {
            *prices.first()?
        } else {
            *prices.iter().min_by_key(|at| (at.abs_diff(market.reference), **at))?
        };
        let (volume, imbalance_lots) = (best.0 as u64, lots(Side::Buy, at) - lots(Side::Sell, at));
        let rate = market.spec.fees.maker_ppm.max(0);
        let instrument = market.spec.instrument;
        let mut left = volume;
        while left > 0 {
            let [buy, sell] = Side::BOTH.map(|side| self.markets[m].first(side).unwrap());
            let size = left.min(buy.slice).min(sell.slice);
            left -= size;
            let [buy, sell] = [buy, sell].map(|order| self.consume(m, order.id, size));
            self.trade(m, at, size, (&buy, rate), (&sell, rate), events);
            self.after_trade(m, &buy, events);
            self.after_trade(m, &sell, events);
        }
        self.markets[m].follow();
        self.markets[m].reference = at;
        Some(Uncrossed { instrument, price: Some(price(at)), volume: SizeLots::new(volume), imbalance_lots })
    }

    /// Changes a standing order, which is in the book under its id, into `new`.
    pub fn requeue(&mut self, m: usize, new: &mut Order, events: &mut Vec<Event>) -> Result<(Priority, State), RejectReason> {
        let market = &mut self.markets[m];
        let old = *market.by_id(new.id);
        if old.trigger != new.trigger {
            let turn = market.next_turn();
            let order = market.by_id(new.id);
            (order.trigger, order.price, order.open, order.turn) = (new.trigger, new.price, new.open, turn);
            return Ok((Priority::Lost, State::Stands));
        }
        if old.trigger.is_some() || (new.price == old.price && new.open <= old.open) {
            let order = market.by_id(new.id);
            (order.price, order.open) = (new.price, new.open);
            order.slice = order.slice.min(order.open);
            return Ok((Priority::Kept, State::Stands));
        }
        market.orders.retain(|o| o.id != new.id);
        if market.phase != TradingPhase::Continuous {
            market.stand(*new);
            return Ok((Priority::Lost, State::Stands));
        }
        Ok((Priority::Lost, self.submit(m, new, events)?))
    }
}
