//! The naive engine's rules: what an order may say, cost and risk.

use walras_types::limits::*;
use walras_types::*;
use walras_wire::*;

use super::book::{State, trails};
use super::{Market, Model, Order, Outcomes, ensure, price};

pub fn can_rest(time_in_force: TimeInForce) -> bool {
    !matches!(time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill)
}

fn check_terms(terms: &OrderTerms, now: TimeNs) -> Outcomes {
    let (size, rests) = (terms.size.get(), can_rest(terms.time_in_force));
    ensure((1..=SIZE_LOTS_MAX).contains(&size), RejectReason::SizeOutOfRange)?;
    let limit = matches!(
        terms.order_type,
        OrderType::Limit { .. }
            | OrderType::StopLimit { .. }
            | OrderType::TakeProfitLimit { .. }
            | OrderType::TrailingStopLimit { .. }
    );
    match terms.display {
        Display::Full => {}
        Display::Hidden => ensure(limit && rests, RejectReason::DisplayInvalid)?,
        Display::Iceberg { peak } => {
            ensure((1..size).contains(&peak.get()) && limit && rests, RejectReason::DisplayInvalid)?;
            ensure(size <= peak.get() * 1_000, RejectReason::DisplayInvalid)?;
        }
    }
    let post_only = matches!(terms.order_type, OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. });
    if let Some(min_size) = terms.min_size {
        ensure((1..=size).contains(&min_size.get()), RejectReason::MinSizeInvalid)?;
        ensure(!post_only && terms.time_in_force != TimeInForce::FillOrKill, RejectReason::MinSizeInvalid)?;
    }
    ensure(!post_only || rests, RejectReason::PostOnlyInvalid)?;
    ensure(terms.order_type != OrderType::Market || !rests, RejectReason::TimeInForceInvalid)?;
    ensure(!matches!(terms.time_in_force, TimeInForce::GoodTill(until) if until <= now), RejectReason::AlreadyExpired)
}

impl Market {
    pub fn new(spec: InstrumentSpec) -> Self {
        Self {
            spec,
            phase: TradingPhase::Closed,
            reference: spec.reference_price.get(),
            last: None,
            trades: 0,
            turns: 0,
            orders: Vec::new(),
            pairs: Vec::new(),
            brackets: Vec::new(),
            net: Default::default(),
            limits: Default::default(),
        }
    }

    /// The lowest and highest price within `ppm` of `center`.
    pub fn around(&self, center: i64, ppm: u32) -> (i64, i64) {
        let distance = center * i64::from(ppm) / 1_000_000;
        ((center - distance).max(1), (center + distance).min(PRICE_TICKS_MAX))
    }

    pub fn value(&self, price: i64, size: u64) -> i128 {
        i128::from(price) * i128::from(size) * i128::from(self.spec.tick_value_units)
    }

    fn base(&self, size: u64) -> i128 {
        i128::from(size) * i128::from(self.spec.lot_units)
    }

    pub fn reserve_asset(&self, side: Side) -> AssetId {
        if side == Side::Buy { self.spec.quote } else { self.spec.base }
    }

    pub fn reserve(&self, side: Side, price: i64, open: u64) -> i128 {
        if side == Side::Sell {
            return self.base(open);
        }
        let worst = i128::from(self.spec.fees.maker_ppm.max(self.spec.fees.taker_ppm).max(0));
        let value = self.value(price, open);
        value + (value * worst + 999_999) / 1_000_000
    }

    fn open_lots(&self, account: AccountId, side: Side) -> i128 {
        let open = self.orders.iter().filter(|o| o.account == account && o.side == side);
        open.filter(|o| o.counts && !self.is_second(o.id)).map(|o| i128::from(o.open)).sum()
    }

    fn limits(&self, account: AccountId) -> RiskLimits {
        self.limits.get(&account).copied().unwrap_or(self.spec.default_limits)
    }

    fn check_position(&self, account: AccountId, side: Side, more: u64) -> Outcomes {
        let net = i128::from(self.net.get(&account).copied().unwrap_or(0));
        let open = self.open_lots(account, side) + i128::from(more);
        let worst = if side == Side::Buy { net + open } else { open - net };
        let limit = i128::from(self.limits(account).position_lots_max.get()).min(1 << 62);
        ensure(worst <= limit, RejectReason::PositionLimit)
    }

    fn check_amount(&self, amount: i128) -> Outcomes {
        ensure(amount <= i128::from(AMOUNT_MAX), RejectReason::ValueOverflow)
    }

    /// An offer that is repriced is worth more than it said.
    fn check_repriced(&self, order: &Order) -> Outcomes {
        let is_repriced =
            order.post_only == PostOnly::Reprice && order.side == Side::Sell && self.phase == TradingPhase::Continuous;
        let bids = self.orders.iter().filter(|o| o.side == Side::Buy && o.trigger.is_none());
        let behind = bids.map(|o| o.price + 1).max().filter(|behind| *behind > order.price && *behind <= PRICE_TICKS_MAX);
        behind.filter(|_| is_repriced).map_or(Ok(()), |behind| self.check_amount(self.value(behind, order.open)))
    }

    /// Whether a stop or take-profit would wait: the last trade, of whatever phase, has not reached its trigger.
    fn check_waits(&self, side: Side, takes_profit: bool, trigger: Option<i64>) -> Outcomes {
        // A stop to buy and a take-profit to sell wait for a higher price.
        let would_trigger = match (trigger, self.last) {
            (Some(trigger), Some(last)) if (side == Side::Buy) != takes_profit => trigger <= last,
            (Some(trigger), Some(last)) => trigger >= last,
            _ => false,
        };
        ensure(!would_trigger, RejectReason::StopWouldTrigger)
    }

    fn check_collar(&self, trigger: Option<i64>, at: i64) -> Outcomes {
        let (low, high) = self.around(trigger.or(self.last).unwrap_or(self.reference), self.spec.collar_ppm);
        ensure((low..=high).contains(&at), RejectReason::PriceOutsideCollar)
    }
}

impl Model {
    pub(super) fn new_order(&mut self, c: &NewOrder, id: OrderId, events: &mut Vec<Event>) -> Outcomes {
        self.active(c.account)?;
        let m = self.market(c.instrument)?;
        self.markets[m].check_entry(c)?;
        let mut order = self.markets[m].order(c, id, self.now, self.version)?;
        let market = &self.markets[m];
        let (side, size) = (order.side, order.open);
        market.check_repriced(&order)?;
        let reserve = market.check_limits(&order)?;
        market.check_position(c.account, side, size)?;
        ensure(self.available(c.account, market.reserve_asset(side)) >= reserve, RejectReason::InsufficientFunds)?;
        let (at, trades) = (events.len(), market.trades);
        events.push(Event::Account(AccountEvent::Created(c.account))); // Replaced below.
        let state = if market.phase == TradingPhase::Continuous {
            self.submit(m, &mut order, events)?
        } else {
            let market = &mut self.markets[m];
            ensure(market.named(c.account, c.client_order_id).is_none(), RejectReason::DuplicateClientOrderId)?;
            market.stand(order);
            State::Stands
        };
        let market = &self.markets[m];
        events[at] = Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: c.instrument,
            account: c.account,
            client_order_id: c.client_order_id,
            order_id: id,
            side,
            size: c.terms.size,
            price: order.trigger.is_none().then(|| price(order.price)),
            resting: market.resting(id),
        }));
        self.finish(m, &order, state, (at, trades), events);
        Ok(())
    }

    fn finish(&mut self, m: usize, order: &Order, state: State, (from, trades): (usize, u64), events: &mut Vec<Event>) {
        self.tell_end(m, order, state, from, events);
        if self.markets[m].trades > trades {
            self.trigger_stops(m, events);
        }
    }

    pub(super) fn amend(&mut self, c: &AmendOrder, events: &mut Vec<Event>) -> Outcomes {
        self.active(c.account)?;
        let m = self.market(c.instrument)?;
        let market = &self.markets[m];
        ensure(market.phase.takes_orders(), RejectReason::PhaseTakesNoOrders)?;
        let Amendment { client_order_id, price: new_price, trigger: new_trigger, size: new_size } = c.amendment;
        let old = *market.named(c.account, client_order_id).ok_or(RejectReason::UnknownOrder)?;
        ensure(market.pair_of(old.id).is_none(), RejectReason::LinkedOrderFixed)?;
        ensure(market.may_amend(old.id, new_size.is_some()), RejectReason::LinkedOrderFixed)?;
        ensure(old.trigger.is_some() || new_trigger.is_none(), RejectReason::AmendInvalid)?;
        let market_stop = old.trigger.is_some() && old.becomes_market;
        ensure(!(market_stop && new_price.is_some()), RejectReason::AmendInvalid)?;
        ensure(old.trail.is_none() || new_trigger.is_none(), RejectReason::AmendInvalid)?;
        let mut new = old;
        new.price = new_price.map_or(old.price, PriceTicks::get);
        new.open = new_size.map_or(old.open, SizeLots::get);
        new.trigger = new_trigger.map(PriceTicks::get).or(old.trigger);
        if let Some(trigger) = new.trigger.filter(|_| market_stop && old.trail.is_none()) {
            let (low, high) = market.around(trigger, market.spec.collar_ppm);
            new.price = if old.side == Side::Buy { high } else { low };
        }
        let says = |order: &Order| (order.price, order.open, order.trigger);
        ensure(says(&new) != says(&old), RejectReason::AmendInvalid)?;
        ensure((1..=SIZE_LOTS_MAX).contains(&new.open), RejectReason::SizeOutOfRange)?;
        ensure(old.min_size.is_none_or(|min| min.get() <= new.open), RejectReason::MinSizeInvalid)?;
        if let Display::Iceberg { peak } = old.display {
            ensure(new.open <= old.open.max(peak.get() * 1_000), RejectReason::DisplayInvalid)?;
        }
        if new.trigger != old.trigger {
            market.check_waits(old.side, old.takes_profit, new.trigger)?;
        }
        if new.price != old.price || new.trigger != old.trigger {
            market.check_collar(new.trigger, new.price)?;
        }
        let (value, had) = (market.value(new.price, new.open), market.value(old.price, old.open));
        market.check_amount(value)?;
        market.check_repriced(&new)?;
        let limits = market.limits(c.account);
        ensure(new.open <= old.open.max(limits.order_lots_max.get()), RejectReason::OrderTooLarge)?;
        ensure(value <= had.max(limits.order_value_max.get().into()), RejectReason::OrderValueTooLarge)?;
        if new.open > old.open {
            market.check_position(c.account, new.side, new.open - old.open)?;
        }
        let needs = market.reserve(new.side, new.price, new.open);
        market.check_amount(needs.max(market.base(new.open)))?;
        let more = needs - market.reserve(old.side, old.price, old.open);
        ensure(more <= 0 || self.available(c.account, market.reserve_asset(new.side)) >= more, RejectReason::InsufficientFunds)?;
        let (at, trades) = (events.len(), market.trades);
        events.push(Event::Account(AccountEvent::Created(c.account))); // Replaced below.
        let (priority, state) = self.requeue(m, &mut new, events)?;
        let market = &self.markets[m];
        events[at] = Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: c.instrument,
            account: c.account,
            client_order_id,
            order_id: old.id,
            side: old.side,
            price: old.trigger.is_none().then(|| price(new.price)),
            priority,
            resting: market.resting(old.id),
        }));
        self.finish(m, &new, state, (at, trades), events);
        Ok(())
    }
}

impl Market {
    /// Whether an order is within what amounts and its account's limits allow, its position aside. What it reserves.
    pub fn check_limits(&self, order: &Order) -> Result<i128, RejectReason> {
        let (side, size) = (order.side, order.open);
        let value = self.value(order.price, size);
        self.check_amount(value)?;
        let reserve = self.reserve(side, order.price, size);
        self.check_amount(reserve.max(self.base(size)))?;
        let limits = self.limits(order.account);
        ensure(size <= limits.order_lots_max.get(), RejectReason::OrderTooLarge)?;
        ensure(value <= limits.order_value_max.get().into(), RejectReason::OrderValueTooLarge)?;
        let open_orders = self.orders.iter().filter(|o| o.account == order.account).count();
        let may_stay = can_rest(order.time_in_force) || order.trigger.is_some();
        ensure(!may_stay || open_orders < limits.open_orders_max as usize, RejectReason::TooManyOpenOrders)?;
        Ok(reserve)
    }

    /// The order that a command asks for, if it may.
    pub fn order(&self, c: &NewOrder, id: OrderId, now: TimeNs, version: u16) -> Result<Order, RejectReason> {
        let terms = &c.terms;
        check_terms(terms, now)?;
        ensure(self.phase.takes_orders(), RejectReason::PhaseTakesNoOrders)?;
        let takes_profit = matches!(terms.order_type, OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. });
        let trail = match terms.order_type {
            OrderType::TrailingStop { trail } | OrderType::TrailingStopLimit { trail, .. } => Some(trail),
            _ => None,
        };
        let is_stop = matches!(terms.order_type, OrderType::Stop { .. } | OrderType::StopLimit { .. });
        let waits = takes_profit || trail.is_some() || is_stop;
        let immediate = !can_rest(terms.time_in_force) || terms.min_size.is_some();
        let continuous = self.phase == TradingPhase::Continuous;
        ensure(continuous || waits || !immediate, RejectReason::PhaseNoImmediate)?;
        let trigger = match terms.order_type {
            OrderType::Stop { trigger } | OrderType::StopLimit { trigger, .. } => Some(trigger.get()),
            OrderType::TakeProfit { trigger } | OrderType::TakeProfitLimit { trigger, .. } => Some(trigger.get()),
            OrderType::TrailingStop { trail } | OrderType::TrailingStopLimit { trail, .. } => {
                Some(trails(terms.side, trail, self.last.unwrap_or(self.reference)))
            }
            OrderType::Limit { .. } | OrderType::Market => None,
        };
        ensure(!(takes_profit || trail.is_some()) || version >= 13, RejectReason::NeedsLaterVersion)?;
        let possible = match trail {
            Some(Trail::Ticks(ticks)) => ticks > 0,
            Some(Trail::Ppm(ppm)) => (1..1_000_000).contains(&ppm),
            None => true,
        };
        let reached = trail.is_none() || trigger.is_some_and(|trigger| (1..=PRICE_TICKS_MAX).contains(&trigger));
        ensure(possible && reached, RejectReason::TrailInvalid)?;
        self.check_waits(terms.side, takes_profit, trigger)?;
        let (low, high) = self.around(trigger.or(self.last).unwrap_or(self.reference), self.spec.collar_ppm);
        let (price, post_only) = match terms.order_type {
            OrderType::Limit { price, post_only } => (price.get(), post_only),
            OrderType::StopLimit { price, .. }
            | OrderType::TakeProfitLimit { price, .. }
            | OrderType::TrailingStopLimit { price, .. } => (price.get(), PostOnly::Off),
            OrderType::Market | OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. } => {
                (if terms.side == Side::Buy { high } else { low }, PostOnly::Off)
            }
        };
        self.check_collar(trigger, price)?;
        Ok(Order {
            id,
            name: c.client_order_id,
            account: c.account,
            side: terms.side,
            price,
            open: terms.size.get(),
            slice: 0,
            time_in_force: terms.time_in_force,
            display: terms.display,
            post_only,
            min_size: terms.min_size,
            self_trade: terms.self_trade,
            trigger,
            trail: trail.map(|trail| (trail, self.last.unwrap_or(self.reference))),
            takes_profit,
            becomes_market: matches!(
                terms.order_type,
                OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. }
            ),
            counts: true,
            is_held: false,
            turn: 0,
        })
    }
}
