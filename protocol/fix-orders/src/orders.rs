//! An account's orders as its reports tell of them: what the fields of execution reports need.

use std::collections::{BTreeMap, VecDeque};

use walras_types::{
    ClientOrderId, InstrumentId, OrderId, OrderTerms, OrderType, PriceTicks, RejectReason, Side, SizeLots, TimeInForce, TradeId,
};
use walras_wire::order_entry::{Filled, ReportEvent, TradeRole};
use walras_wire::{
    CancelReason, Event, OrderAccepted, OrderAmended, OrderCancelled, OrderEvent, OrderReduced, Rejected, StopTriggered,
};

use crate::ids::{id_of, text_of};
use crate::request::{Asked, Change};

/// Orders that are gone and remembered, for status requests and for messages that may have been sent before.
const GONE_MAX: usize = 4_096;

/// Names of orders that were not accepted yet.
const NAMES_MAX: usize = 65_536;

/// How an order stands: OrdStatus(39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    New,
    PartiallyFilled,
    Filled,
    Cancelled,
    Expired,
    Rejected,
}

impl Status {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::New => "0",
            Self::PartiallyFilled => "1",
            Self::Filled => "2",
            Self::Cancelled => "4",
            Self::Rejected => "8",
            Self::Expired => "C",
        }
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
    /// Its ClOrdID now.
    pub(crate) cl_ord_id: Box<str>,
    pub(crate) instrument: InstrumentId,
    /// `None` where no report that is kept says it.
    pub(crate) side: Option<Side>,
    pub(crate) open: SizeLots,
    /// Lots that have traded.
    pub(crate) cum: u64,
    /// The sum over its trades of price in ticks times size in lots.
    pub(crate) tick_lots: u128,
    /// OrderQty(38): what was asked, as amended.
    pub(crate) size: SizeLots,
    /// The limit in force.
    pub(crate) price: Option<PriceTicks>,
    pub(crate) trigger: Option<PriceTicks>,
    pub(crate) time_in_force: Option<TimeInForce>,
    pub(crate) order_type: Option<OrderType>,
    /// A stop that waits.
    pub(crate) is_waiting: bool,
    pub(crate) status: Status,
}

impl Order {
    pub(crate) fn is_gone(&self) -> bool {
        !matches!(self.status, Status::New | Status::PartiallyFilled)
    }

    fn of(e: &OrderAccepted, cl_ord_id: Box<str>, terms: Option<&OrderTerms>) -> Self {
        let trigger = terms.and_then(|terms| terms.order_type.trigger());
        Self {
            order_id: e.order_id,
            client_order_id: e.client_order_id,
            cl_ord_id,
            instrument: e.instrument,
            side: Some(e.side),
            open: e.size,
            cum: 0,
            tick_lots: 0,
            size: e.size,
            price: e.price,
            trigger,
            time_in_force: terms.map(|terms| terms.time_in_force),
            order_type: terms.map(|terms| terms.order_type),
            is_waiting: e.price.is_none(),
            status: Status::New,
        }
    }

    /// An order whose earlier reports are not kept any more: what traded before is not known, nor how it was entered.
    fn unknown((order_id, client_order_id, instrument): Names, side: Option<Side>, open: SizeLots) -> Self {
        Self {
            order_id,
            client_order_id,
            cl_ord_id: text_of(client_order_id).into(),
            instrument,
            side,
            open,
            cum: 0,
            tick_lots: 0,
            size: open,
            price: None,
            trigger: None,
            time_in_force: None,
            order_type: None,
            is_waiting: false,
            status: Status::New,
        }
    }
}

/// What a report calls an order.
type Names = (OrderId, ClientOrderId, InstrumentId);

/// What a report says to the account's FIX clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// ExecutionReport.
    Execution(Box<Execution>),
    /// OrderCancelReject.
    CancelRejected(Box<CancelRejected>),
    /// OrderMassCancelReport: its ClOrdID, its type, why not.
    MassCancelRejected(Box<str>, char, RejectReason),
}

/// An execution report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) kind: ExecKind,
    pub(crate) cl_ord_id: Box<str>,
    pub(crate) orig_cl_ord_id: Option<Box<str>>,
    /// As it stands after this; `None` for one that was not accepted.
    pub(crate) order: Option<Order>,
    /// Of one that was not accepted.
    pub(crate) asked: Option<Asked>,
    pub(crate) instrument: Option<InstrumentId>,
    pub(crate) text: Option<&'static str>,
}

/// What happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecKind {
    New,
    Trade(Trade),
    Cancelled,
    Expired,
    Replaced,
    Rejected(RejectReason),
    Restated,
    Triggered,
    Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    pub(crate) trade_id: TradeId,
    pub(crate) price: PriceTicks,
    pub(crate) size: SizeLots,
    pub(crate) fee: i64,
    pub(crate) role: TradeRole,
}

/// A change that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CancelRejected {
    pub(crate) cl_ord_id: Box<str>,
    pub(crate) orig_cl_ord_id: Box<str>,
    pub(crate) kind: Change,
    pub(crate) order: Option<Order>,
    pub(crate) reason: RejectReason,
}

/// An account's orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    by_order: BTreeMap<OrderId, Order>,
    /// The latest order of each name.
    by_client: BTreeMap<ClientOrderId, OrderId>,
    /// Texts that lead to an order otherwise than by their number: those of replaced orders.
    chain: BTreeMap<Box<str>, ClientOrderId>,
    /// Texts of numbers from which they cannot be found.
    names: BTreeMap<ClientOrderId, Box<str>>,
    gone: VecDeque<OrderId>,
    /// Orders as another connection knew them.
    before: BTreeMap<OrderId, Order>,
}

impl Orders {
    /// An order by the engine's name of it.
    pub(crate) fn get(&self, client_order_id: ClientOrderId) -> Option<&Order> {
        self.by_order.get(self.by_client.get(&client_order_id)?)
    }

    /// An order by its text, or by the venue's name of it.
    pub(crate) fn find(&self, cl_ord_id: &str, order_id: Option<&str>) -> Option<&Order> {
        let by_order_id = || self.by_order.get(&OrderId(order_id?.parse().ok()?));
        self.get(self.chained(cl_ord_id)).or_else(by_order_id)
    }

    fn chained(&self, text: &str) -> ClientOrderId {
        self.chain.get(text).copied().unwrap_or_else(|| id_of(text))
    }

    /// The engine's name of the order that OrigClOrdID(41) or OrderID(37) names.
    pub(crate) fn id_of(&self, orig_cl_ord_id: &str, order_id: Option<&str>) -> ClientOrderId {
        match self.find(orig_cl_ord_id, order_id) {
            Some(order) => order.client_order_id,
            None => self.chained(orig_cl_ord_id),
        }
    }

    /// Remembers what a client calls its order, where the number does not say it.
    fn name(&mut self, cl_ord_id: &str) {
        let id = id_of(cl_ord_id);
        if text_of(id) != cl_ord_id && self.names.len() < NAMES_MAX {
            self.names.insert(id, cl_ord_id.into());
        }
    }

    /// A command goes to the log: its names are known from here on, for requests that come before its report.
    pub(crate) fn expect(&mut self, asked: &Asked) {
        match asked {
            Asked::New(asked) => self.name(&asked.cl_ord_id),
            Asked::Change(asked) if asked.kind == Change::Replace => {
                self.chain.insert(asked.cl_ord_id.clone(), asked.client_order_id);
            }
            Asked::Change(_) | Asked::Mass(..) | Asked::Filler => {}
        }
    }

    /// Without orders yet, with the texts that another connection of the session knew: reports tell of the orders again.
    pub(crate) fn again(before: Self) -> Self {
        Self { names: before.names, chain: before.chain, before: before.by_order, ..Self::default() }
    }

    fn name_of(&self, id: ClientOrderId) -> Box<str> {
        self.names.get(&id).cloned().unwrap_or_else(|| text_of(id).into())
    }

    /// Takes a report; says what clients hear of it. `asked` is what this session asked with the command whose report it is.
    pub(crate) fn on_event(&mut self, event: &ReportEvent, asked: Option<&Asked>) -> Option<Said> {
        match event {
            ReportEvent::Filled(e) => self.on_fill(e),
            ReportEvent::Event(Event::Rejected(e)) => self.on_rejected(e, asked),
            ReportEvent::Event(Event::Order(e)) => match e {
                OrderEvent::Accepted(e) => Some(self.on_accepted(e, asked)),
                OrderEvent::Amended(e) => self.on_amended(e, asked),
                OrderEvent::Cancelled(e) => self.on_cancelled(e, asked),
                OrderEvent::Reduced(e) => self.on_reduced(e),
                OrderEvent::Triggered(e) => self.on_triggered(e),
                OrderEvent::Replenished(_) | OrderEvent::Traded(_) => None,
            },
            ReportEvent::Event(
                Event::Account(_)
                | Event::Session(_)
                | Event::Instrument(_)
                | Event::BatchMarket(_)
                | Event::Batch(_)
                | Event::Shard(_)
                | Event::Venue(_),
            ) => None,
        }
    }

    /// An order as it stands.
    pub(crate) fn status(order: &Order) -> Said {
        execution(ExecKind::Status, order, None, None)
    }

    fn on_accepted(&mut self, e: &OrderAccepted, asked: Option<&Asked>) -> Said {
        let terms = match asked {
            Some(Asked::New(asked)) => asked.terms.as_ref(),
            _ => None,
        };
        let mut order = Order::of(e, self.name_of(e.client_order_id), terms);
        if let Some(before) = self.before.remove(&e.order_id) {
            order.cl_ord_id = before.cl_ord_id;
            (order.trigger, order.time_in_force, order.order_type) = (before.trigger, before.time_in_force, before.order_type);
        }
        let said = execution(ExecKind::New, &order, None, None);
        self.by_client.insert(e.client_order_id, e.order_id);
        self.by_order.insert(e.order_id, order);
        said
    }

    fn on_fill(&mut self, e: &Filled) -> Option<Said> {
        let before = SizeLots::new(e.open.get().saturating_add(e.size.get()));
        self.learn((e.order_id, e.client_order_id, e.instrument), Some(e.side), before);
        let order = self.by_order.get_mut(&e.order_id)?;
        order.cum = order.cum.saturating_add(e.size.get());
        order.tick_lots = order.tick_lots.saturating_add(u128::from(e.price.get().unsigned_abs()) * u128::from(e.size.get()));
        order.open = e.open;
        order.status = if e.open.is_zero() { Status::Filled } else { Status::PartiallyFilled };
        let trade = Trade { trade_id: e.trade_id, price: e.price, size: e.size, fee: e.fee, role: e.role };
        let said = execution(ExecKind::Trade(trade), order, None, None);
        if e.open.is_zero() {
            self.gone(e.order_id);
        }
        Some(said)
    }

    /// Makes an order from what a report says, where its earlier reports are not kept any more.
    fn learn(&mut self, names: Names, side: Option<Side>, open: SizeLots) {
        let (order_id, client_order_id, _) = names;
        if let Some(known) = self.by_order.get_mut(&order_id) {
            known.side = known.side.or(side);
            return;
        }
        let mut order = Order::unknown(names, side, open);
        order.cl_ord_id = self.name_of(client_order_id);
        if let Some(before) = self.before.remove(&order_id) {
            order.cl_ord_id = before.cl_ord_id;
            order.side = order.side.or(before.side);
            (order.trigger, order.time_in_force, order.order_type) = (before.trigger, before.time_in_force, before.order_type);
        }
        self.by_client.insert(client_order_id, order_id);
        self.by_order.insert(order_id, order);
    }

    fn on_amended(&mut self, e: &OrderAmended, asked: Option<&Asked>) -> Option<Said> {
        self.learn((e.order_id, e.client_order_id, e.instrument), Some(e.side), e.resting.open.max(SizeLots::ZERO));
        let order = self.by_order.get_mut(&e.order_id)?;
        let orig = order.cl_ord_id.clone();
        let mut open = e.resting.open.max(SizeLots::ZERO);
        if let Some(Asked::Change(asked)) = asked.filter(|asked| is_of(asked, e.client_order_id)) {
            order.cl_ord_id = asked.cl_ord_id.clone();
            self.chain.insert(asked.cl_ord_id.clone(), e.client_order_id);
            open = asked.open.unwrap_or(order.open);
        }
        order.open = open;
        order.size = SizeLots::new(order.cum.saturating_add(open.get()));
        order.price = e.price.or(order.price);
        Some(execution(ExecKind::Replaced, order, Some(orig), None))
    }

    fn on_cancelled(&mut self, e: &OrderCancelled, asked: Option<&Asked>) -> Option<Said> {
        self.learn((e.order_id, e.client_order_id, e.instrument), None, e.open);
        let order = self.by_order.get_mut(&e.order_id)?;
        order.open = SizeLots::ZERO;
        let (kind, status, text) = match e.reason {
            CancelReason::Requested => (ExecKind::Cancelled, Status::Cancelled, None),
            CancelReason::MassCancelled => (ExecKind::Cancelled, Status::Cancelled, Some("Cancelled with others of the account")),
            CancelReason::Unfilled => (ExecKind::Cancelled, Status::Cancelled, Some("The rest found no match within its limit")),
            CancelReason::Expired => (ExecKind::Expired, Status::Expired, Some("Its time came")),
            CancelReason::DayEnded => (ExecKind::Expired, Status::Expired, Some("The day ended")),
            CancelReason::SelfTrade => {
                (ExecKind::Cancelled, Status::Cancelled, Some("It would have traded with an order of its own account"))
            }
            CancelReason::AccountSuspended => (ExecKind::Cancelled, Status::Cancelled, Some("The account was suspended")),
            CancelReason::TriggerRefused => {
                (ExecKind::Cancelled, Status::Cancelled, Some("Funds or the market's state did not allow it when it was triggered"))
            }
            CancelReason::Linked => {
                (ExecKind::Cancelled, Status::Cancelled, Some("The order with which it was linked traded, triggered or is gone"))
            }
            CancelReason::Unfunded => {
                (ExecKind::Cancelled, Status::Cancelled, Some("The account lacked the funds for what its entry had filled"))
            }
            CancelReason::PriceBand => {
                (ExecKind::Cancelled, Status::Cancelled, Some("It would have traded outside the price band: the instrument halted"))
            }
        };
        order.status = status;
        let requested = asked.filter(|asked| is_of(asked, e.client_order_id) && e.reason == CancelReason::Requested);
        let said = match requested {
            Some(Asked::Change(asked)) => {
                let mut after = order.clone();
                let orig = std::mem::replace(&mut after.cl_ord_id, asked.cl_ord_id.clone());
                execution(kind, &after, Some(orig), text)
            }
            _ => execution(kind, order, None, text),
        };
        self.gone(e.order_id);
        Some(said)
    }

    fn on_reduced(&mut self, e: &OrderReduced) -> Option<Said> {
        let before = SizeLots::new(e.resting.open.get().saturating_add(e.by.get()));
        self.learn((e.order_id, e.client_order_id, e.instrument), None, before);
        let order = self.by_order.get_mut(&e.order_id)?;
        order.open = SizeLots::new(order.open.get().saturating_sub(e.by.get()));
        order.size = SizeLots::new(order.cum.saturating_add(order.open.get()));
        let text = Some("Reduced instead of trading with an order of its own account");
        if e.resting.open.is_zero() {
            order.open = SizeLots::ZERO;
            order.status = Status::Cancelled;
            let said = execution(ExecKind::Cancelled, order, None, text);
            self.gone(e.order_id);
            return Some(said);
        }
        Some(execution(ExecKind::Restated, order, None, text))
    }

    fn on_triggered(&mut self, e: &StopTriggered) -> Option<Said> {
        self.learn((e.order_id, e.client_order_id, e.instrument), Some(e.side), e.resting.open);
        let order = self.by_order.get_mut(&e.order_id)?;
        order.price = Some(e.price);
        order.is_waiting = false;
        Some(execution(ExecKind::Triggered, order, None, None))
    }

    fn on_rejected(&mut self, e: &Rejected, asked: Option<&Asked>) -> Option<Said> {
        let is_asked = |id: ClientOrderId| e.client_order_id == Some(id);
        match asked {
            Some(Asked::Filler) => None,
            Some(Asked::Mass(cl_ord_id, kind)) => Some(Said::MassCancelRejected(cl_ord_id.clone(), *kind, e.reason)),
            Some(Asked::Change(asked)) if is_asked(asked.client_order_id) => {
                if asked.kind == Change::Replace {
                    self.chain.remove(&asked.cl_ord_id);
                }
                Some(Said::CancelRejected(Box::new(CancelRejected {
                    cl_ord_id: asked.cl_ord_id.clone(),
                    orig_cl_ord_id: asked.orig_cl_ord_id.clone(),
                    kind: asked.kind,
                    order: self.get(asked.client_order_id).cloned(),
                    reason: e.reason,
                })))
            }
            asked => {
                let id = e.client_order_id?;
                // Only a change names an order that does not exist, or a known one: a new order with a known name is a duplicate.
                let is_known = self.get(id).is_some();
                let is_change = match e.reason {
                    RejectReason::UnknownOrder | RejectReason::AmendInvalid | RejectReason::LinkedOrderFixed => true,
                    RejectReason::DuplicateClientOrderId => false,
                    _ => is_known && asked.is_none(),
                };
                if is_change {
                    let name = self.name_of(id);
                    return Some(Said::CancelRejected(Box::new(CancelRejected {
                        cl_ord_id: name.clone(),
                        orig_cl_ord_id: name,
                        kind: Change::Cancel,
                        order: self.get(id).cloned(),
                        reason: e.reason,
                    })));
                }
                let cl_ord_id = self.name_of(id);
                if self.get(id).is_none() {
                    self.names.remove(&id);
                }
                Some(Said::Execution(Box::new(Execution {
                    kind: ExecKind::Rejected(e.reason),
                    cl_ord_id,
                    orig_cl_ord_id: None,
                    order: None,
                    asked: asked.cloned(),
                    instrument: e.instrument,
                    text: None,
                })))
            }
        }
    }

    /// Forgets the oldest of those that are gone.
    fn gone(&mut self, order_id: OrderId) {
        self.gone.push_back(order_id);
        if self.gone.len() <= GONE_MAX {
            return;
        }
        let Some(order) = self.gone.pop_front().and_then(|oldest| self.by_order.remove(&oldest)) else { return };
        if self.by_client.get(&order.client_order_id) == Some(&order.order_id) {
            self.by_client.remove(&order.client_order_id);
            self.names.remove(&order.client_order_id);
            self.chain.retain(|_, id| *id != order.client_order_id);
        }
    }
}

fn is_of(asked: &Asked, id: ClientOrderId) -> bool {
    matches!(asked, Asked::Change(asked) if asked.client_order_id == id)
}

fn execution(kind: ExecKind, order: &Order, orig_cl_ord_id: Option<Box<str>>, text: Option<&'static str>) -> Said {
    Said::Execution(Box::new(Execution {
        kind,
        cl_ord_id: order.cl_ord_id.clone(),
        orig_cl_ord_id,
        order: Some(order.clone()),
        asked: None,
        instrument: Some(order.instrument),
        text,
    }))
}
