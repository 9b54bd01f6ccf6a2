//! A naive exchange of one instrument: standing orders in one vector, searched from end to end. It emits events as the engine promises
//! to (see the crate's documentation) and knows the true book, so that what is rebuilt from its events can be compared with it.

use std::collections::BTreeMap;

use walras_types::{
    AccountId, Allocation, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, OrderId, PriceTicks, RiskLimits,
    Side, SizeLots, Symbol, TradeId, TradingPhase,
};
use walras_wire::{
    CancelReason, Event, InstrumentEvent, OrderAccepted, OrderAmended, OrderCancelled, OrderEvent, OrderReduced, OrderReplenished,
    PhaseCause, PhaseChanged, Priority, Resting, StopTriggered, TradeParty, Traded, Uncrossed,
};

pub(crate) const INSTRUMENT: InstrumentId = InstrumentId(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Full,
    Iceberg(u64),
    Hidden,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    New { account: u32, side: Side, price: i64, size: u64, show: Show, ioc: bool, trigger: Option<i64> },
    Cancel { nth: usize },
    Amend { nth: usize, price: Option<i64>, size: Option<u64> },
    MassCancel { account: u32 },
    Phase(TradingPhase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) account: u32,
    pub(crate) side: Side,
    pub(crate) price: i64,
    pub(crate) open: u64,
    pub(crate) shown: u64,
    pub(crate) show: Show,
    pub(crate) trigger: Option<i64>,
    pub(crate) seq: u64,
}

/// A trade as the model remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelTrade {
    pub(crate) id: u64,
    pub(crate) price: i64,
    pub(crate) size: u64,
    pub(crate) taker_side: Option<Side>,
}

pub(crate) struct Model {
    pub(crate) standing: Vec<Order>,
    pub(crate) parked: Vec<Order>,
    pub(crate) trades: Vec<ModelTrade>,
    pub(crate) phase: TradingPhase,
    seq: u64,
    log_index: u64,
}

fn ticks(n: i64) -> PriceTicks {
    PriceTicks::new(n).unwrap()
}

fn lots(n: u64) -> SizeLots {
    SizeLots::new(n)
}

pub(crate) fn spec() -> InstrumentSpec {
    InstrumentSpec {
        instrument: INSTRUMENT,
        symbol: Symbol::new("BTC/USD").unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: ticks(100),
        default_limits: RiskLimits::NONE,
    }
}

impl Order {
    fn resting(&self) -> Resting {
        Resting { open: lots(self.open), shown: lots(self.shown) }
    }

    fn shows_now(&self) -> u64 {
        match self.show {
            Show::Full => self.open,
            Show::Iceberg(peak) => peak.min(self.open),
            Show::Hidden => 0,
        }
    }

    fn party(&self) -> TradeParty {
        TradeParty {
            account: AccountId(self.account),
            client_order_id: ClientOrderId(self.id),
            order_id: OrderId(self.id),
            open: lots(self.open),
            fee: 0,
        }
    }

    fn cancelled(&self, reason: CancelReason) -> Event {
        Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: INSTRUMENT,
            account: AccountId(self.account),
            client_order_id: ClientOrderId(self.id),
            order_id: OrderId(self.id),
            open: lots(self.open),
            reason,
        }))
    }

    /// Lower is better within a side; hidden orders come last at their price.
    fn rank(&self) -> (i64, bool, u64) {
        (if self.side == Side::Buy { -self.price } else { self.price }, self.show == Show::Hidden, self.seq)
    }
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { standing: vec![], parked: vec![], trades: vec![], phase: TradingPhase::Continuous, seq: 0, log_index: 0 }
    }

    /// Shown lots and displayed orders by level.
    pub(crate) fn depth(&self, side: Side) -> BTreeMap<i64, (u64, u32)> {
        let mut depth = BTreeMap::new();
        for order in self.standing.iter().filter(|o| o.side == side && o.shown > 0) {
            let level: &mut (u64, u32) = depth.entry(order.price).or_default();
            level.0 += order.shown;
            level.1 += 1;
        }
        depth
    }

    /// Shown orders in the order of priority, bids first.
    pub(crate) fn queue(&self) -> Vec<(u64, Side, i64, u64)> {
        let mut orders: Vec<&Order> = self.standing.iter().filter(|o| o.shown > 0).collect();
        orders.sort_by_key(|o| (o.side, o.rank()));
        orders.iter().map(|o| (o.id, o.side, o.price, o.shown)).collect()
    }

    /// Open orders of an account by id: price (none while parked), open, shown.
    pub(crate) fn account(&self, account: u32) -> BTreeMap<u64, (Option<i64>, u64, u64)> {
        let standing = self.standing.iter().map(|o| (o, Some(o.price)));
        let parked = self.parked.iter().map(|o| (o, None));
        standing.chain(parked).filter(|(o, _)| o.account == account).map(|(o, price)| (o.id, (price, o.open, o.shown))).collect()
    }

    /// Does it, as log entry `log_index`.
    pub(crate) fn act(&mut self, log_index: u64, action: Action) -> Vec<Event> {
        self.log_index = log_index;
        let mut events = Vec::new();
        let matching = self.phase == TradingPhase::Continuous;
        match action {
            Action::New { account, side, price, size, show, ioc, trigger } => {
                let order = Order { id: log_index, account, side, price, open: size, shown: 0, show, trigger, seq: 0 };
                let accepted = |price, resting| {
                    Event::Order(OrderEvent::Accepted(OrderAccepted {
                        instrument: INSTRUMENT,
                        account: AccountId(account),
                        client_order_id: ClientOrderId(log_index),
                        order_id: OrderId(log_index),
                        side,
                        size: lots(size),
                        price,
                        resting,
                    }))
                };
                if trigger.is_some() && matching {
                    events.push(accepted(None, order.resting()));
                    self.parked.push(order);
                } else {
                    self.enter(Order { trigger: None, ..order }, ioc && matching, |r| accepted(Some(ticks(price)), r), &mut events);
                }
            }
            Action::Cancel { nth } => {
                if let Some(order) = self.take(nth) {
                    events.push(order.cancelled(CancelReason::Requested));
                }
            }
            Action::MassCancel { account } => {
                for list in [&mut self.standing, &mut self.parked] {
                    list.retain(|order| {
                        if order.account == account {
                            events.push(order.cancelled(CancelReason::MassCancelled));
                        }
                        order.account != account
                    });
                }
            }
            Action::Amend { nth, price, size } => self.amend(nth, price, size, &mut events),
            Action::Phase(phase) => {
                if phase == TradingPhase::Continuous && self.phase != phase {
                    self.uncross(&mut events);
                }
                self.phase = phase;
                events.push(Event::Instrument(InstrumentEvent::PhaseChanged(PhaseChanged {
                    instrument: INSTRUMENT,
                    phase,
                    cause: PhaseCause::Operator,
                })));
            }
        }
        self.trigger_stops(&mut events);
        events
    }

    fn take(&mut self, nth: usize) -> Option<Order> {
        let count = self.standing.len() + self.parked.len();
        if count == 0 {
            return None;
        }
        let nth = nth % count;
        Some(if nth < self.standing.len() { self.standing.remove(nth) } else { self.parked.remove(nth - self.standing.len()) })
    }

    fn amend(&mut self, nth: usize, price: Option<i64>, size: Option<u64>, events: &mut Vec<Event>) {
        let Some(mut order) = self.take(nth) else { return };
        let amended = move |order: &Order, price, priority, resting| {
            Event::Order(OrderEvent::Amended(OrderAmended {
                instrument: INSTRUMENT,
                account: AccountId(order.account),
                client_order_id: ClientOrderId(order.id),
                order_id: OrderId(order.id),
                side: order.side,
                price,
                priority,
                resting,
            }))
        };
        if order.trigger.is_some() {
            order.open = size.unwrap_or(order.open);
            order.price = price.unwrap_or(order.price);
            events.push(amended(&order, None, Priority::Lost, order.resting()));
            self.parked.push(order);
        } else if price.is_none_or(|p| p == order.price) && size.is_none_or(|s| s <= order.open) {
            order.open = size.unwrap_or(order.open);
            order.shown = order.shown.min(order.open);
            events.push(amended(&order, Some(ticks(order.price)), Priority::Kept, order.resting()));
            self.standing.push(order);
        } else {
            order.open = size.unwrap_or(order.open);
            order.price = price.unwrap_or(order.price);
            self.enter(order, false, |r| amended(&order, Some(ticks(order.price)), Priority::Lost, r), events);
        }
    }

    /// Matches an order and rests what is left; `announce` is said first, with what will rest.
    fn enter(&mut self, mut order: Order, ioc: bool, announce: impl Fn(Resting) -> Event, events: &mut Vec<Event>) {
        let announced_at = events.len();
        events.push(announce(Resting::default()));
        order.shown = 0;
        if self.phase == TradingPhase::Continuous {
            self.match_incoming(&mut order, events);
        }
        if order.open == 0 {
            return;
        }
        if ioc {
            events.push(order.cancelled(CancelReason::Unfilled));
            return;
        }
        order.shown = order.shows_now();
        self.seq += 1;
        order.seq = self.seq;
        events[announced_at] = announce(order.resting());
        self.standing.push(order);
    }

    fn match_incoming(&mut self, order: &mut Order, events: &mut Vec<Event>) {
        while order.open > 0 {
            let crosses = |o: &Order| o.side != order.side && order.side.accepts(ticks(order.price), ticks(o.price));
            let best = (0..self.standing.len()).filter(|&k| crosses(&self.standing[k])).min_by_key(|&k| self.standing[k].rank());
            let Some(at) = best else { return };
            let maker = &mut self.standing[at];
            let size = order.open.min(if maker.shown > 0 { maker.shown } else { maker.open });
            order.open -= size;
            maker.open -= size;
            maker.shown = maker.shown.saturating_sub(size);
            if maker.account == order.account {
                // Both shrink without a trade. The incoming order's own event must not be counted twice.
                for (party, open, shown) in [(order.id, order.open, order.open), (maker.id, maker.open, maker.shown)] {
                    events.push(Event::Order(OrderEvent::Reduced(OrderReduced {
                        instrument: INSTRUMENT,
                        account: AccountId(order.account),
                        client_order_id: ClientOrderId(party),
                        order_id: OrderId(party),
                        by: lots(size),
                        resting: Resting { open: lots(open), shown: lots(shown) },
                    })));
                }
                if order.open == 0 {
                    events.push(order.cancelled(CancelReason::SelfTrade));
                }
            } else {
                let (price, taker_side) = (maker.price, order.side);
                let (maker, taker) = (maker.party(), order.party());
                self.trade(price, size, taker_side, maker, taker, Some(taker_side), events);
            }
            self.refresh(at, events);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn trade(
        &mut self,
        price: i64,
        size: u64,
        taker_side: Side,
        maker: TradeParty,
        taker: TradeParty,
        public_side: Option<Side>,
        events: &mut Vec<Event>,
    ) {
        let id = self.trades.len() as u64 + 1;
        self.trades.push(ModelTrade { id, price, size, taker_side: public_side });
        let (price, size) = (ticks(price), lots(size));
        events.push(Event::Order(OrderEvent::Traded(Traded {
            instrument: INSTRUMENT,
            trade_id: TradeId(id),
            price,
            size,
            taker_side,
            maker,
            taker,
        })));
    }

    /// After a standing order shrank: removes it, or shows an iceberg's next slice.
    fn refresh(&mut self, at: usize, events: &mut Vec<Event>) {
        let order = &mut self.standing[at];
        if order.open == 0 {
            self.standing.remove(at);
        } else if order.shown == 0 && order.show != Show::Hidden {
            order.shown = order.shows_now();
            self.seq += 1;
            order.seq = self.seq;
            let (order_id, shown) = (OrderId(order.id), lots(order.shown));
            events.push(Event::Order(OrderEvent::Replenished(OrderReplenished { instrument: INSTRUMENT, order_id, shown })));
        }
    }

    fn uncross(&mut self, events: &mut Vec<Event>) {
        let mut volume = 0;
        let mut at_price = None;
        loop {
            let best =
                |side| (0..self.standing.len()).filter(|&k| self.standing[k].side == side).min_by_key(|&k| self.standing[k].rank());
            let (Some(bid), Some(ask)) = (best(Side::Buy), best(Side::Sell)) else { break };
            if self.standing[bid].price < self.standing[ask].price {
                break;
            }
            // Reserves trade too: a fill may exceed what its order shows.
            let size = self.standing[bid].open.min(self.standing[ask].open);
            for at in [bid, ask] {
                let order = &mut self.standing[at];
                order.open -= size;
                order.shown = order.shown.saturating_sub(size).min(order.open);
            }
            let price = *at_price.get_or_insert(self.standing[ask].price);
            let (buy, sell) = (self.standing[bid].party(), self.standing[ask].party());
            self.trade(price, size, Side::Sell, buy, sell, None, events);
            volume += size;
            for at in [bid.max(ask), bid.min(ask)] {
                self.refresh(at, events);
            }
        }
        events.push(Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed {
            instrument: INSTRUMENT,
            price: at_price.map(ticks),
            volume: lots(volume),
            imbalance_lots: 0,
        })));
    }

    fn trigger_stops(&mut self, events: &mut Vec<Event>) {
        while self.phase == TradingPhase::Continuous {
            let Some(last) = self.trades.last().map(|t| t.price) else { return };
            let touched = |o: &Order| match (o.side, o.trigger) {
                (Side::Buy, Some(trigger)) => last >= trigger,
                (Side::Sell, Some(trigger)) => last <= trigger,
                (_, None) => false,
            };
            let Some(at) = self.parked.iter().position(touched) else { return };
            let order = Order { trigger: None, ..self.parked.remove(at) };
            let triggered = |resting| {
                Event::Order(OrderEvent::Triggered(StopTriggered {
                    instrument: INSTRUMENT,
                    account: AccountId(order.account),
                    client_order_id: ClientOrderId(order.id),
                    order_id: OrderId(order.id),
                    side: order.side,
                    price: ticks(order.price),
                    resting,
                }))
            };
            self.enter(order, false, triggered, events);
        }
    }
}
