//! An account's orders as its reports tell of them: what the fields of execution reports need.

use std::collections::{BTreeMap, VecDeque};

use walras_types::{
    ClientOrderId, ClientOrderName, EngineVersion, InstrumentId, OrderId, OrderTerms, OrderType, PriceTicks, RejectReason, Side,
    SizeLots, TimeInForce, TradeId,
};
use walras_wire::order_entry::{Filled, ReportEvent, TradeRole};
use walras_wire::{
    CancelReason, Event, OrderAccepted, OrderAmended, OrderCancelled, OrderEvent, OrderReduced, Rejected, StopTriggered,
};

use crate::ids::{id_before, id_of, id_under, text_of};
use crate::request::{Asked, Change, ChangeAsked, NewAsked};
use crate::texts::Texts;

/// Orders that are gone and remembered, for status requests and for messages that may have been sent before.
const GONE_MAX: usize = 4_096;

/// Texts of orders that were not accepted yet.
const NAMES_MAX: usize = 16_384;

/// Orders that are not known, of which replaces gave texts, and which replaces are on their way to.
const UNKNOWN_MAX: usize = 8_192;

/// Most memory that the orders of a session take between its connections, in bytes.
pub const REMEMBERED_BYTES_MAX: usize = 2 << 20;

/// Memory of an order, of one of its further texts, of an order that has such texts, and of a text before its order: more than they take.
const ORDER_BYTES: usize = 640;
const TEXT_BYTES: usize = 256;
const TEXTS_BYTES: usize = 128;
const NAME_BYTES: usize = 192;

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
    /// The ClOrdID that it entered with, where it has another one now.
    first: Option<Box<str>>,
    /// The one that it had at an earlier connection, until the report of that replacement comes again.
    later: Option<Box<str>>,
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
            first: None,
            later: None,
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
    fn unknown((order_id, client_order_id, instrument): Names, cl_ord_id: Box<str>, side: Option<Side>, open: SizeLots) -> Self {
        Self {
            order_id,
            client_order_id,
            cl_ord_id,
            first: None,
            later: None,
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
    texts: Texts,
    /// Texts of orders that were not accepted yet, where they cannot be found from their numbers.
    names: BTreeMap<ClientOrderId, Box<str>>,
    /// How many replaces of an order are on their way, on this connection.
    replacing: BTreeMap<ClientOrderId, usize>,
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
        self.named(cl_ord_id).or_else(by_order_id)
    }

    /// An order by a text: by one that a replace gave it, by its number, or by the number that its text had before the log took names. One
    /// that is open comes before one that is gone.
    fn named(&self, text: &str) -> Option<&Order> {
        let ids = [self.texts.get(text), Some(id_of(text)), Some(id_before(text))];
        let known = ids.map(|id| id.and_then(|id| self.get(id)));
        let open = known.into_iter().flatten().find(|order| !order.is_gone());
        open.or_else(|| known.into_iter().flatten().next())
    }

    /// The engine's name of the order that OrigClOrdID(41) or OrderID(37) names, under this version.
    pub(crate) fn id_of(&self, orig_cl_ord_id: &str, order_id: Option<&str>, version: EngineVersion) -> ClientOrderId {
        match self.find(orig_cl_ord_id, order_id) {
            Some(order) => order.client_order_id,
            None => self.texts.get(orig_cl_ord_id).unwrap_or_else(|| id_under(orig_cl_ord_id, version)),
        }
    }

    /// Whether an open order in this instrument has this ClOrdID although the engine calls it otherwise than `id`: so the engine would take
    /// another one with that.
    pub(crate) fn has_open(&self, cl_ord_id: &str, id: ClientOrderId, instrument: InstrumentId) -> bool {
        let has_it = |order: &Order| {
            // Where no report says its text, its number does.
            *order.cl_ord_id == *cl_ord_id || (order.first.is_none() && order.client_order_id == id_before(cl_ord_id))
        };
        let is_it =
            |order: &Order| !order.is_gone() && order.instrument == instrument && order.client_order_id != id && has_it(order);
        self.named(cl_ord_id).is_some_and(is_it)
    }

    /// Whether a replace of it was asked for that is not answered yet: by then it may have other terms.
    pub(crate) fn is_being_replaced(&self, id: ClientOrderId) -> bool {
        self.replacing.contains_key(&id)
    }

    /// A replace of it is answered.
    fn end_replace(&mut self, id: ClientOrderId) {
        if let Some(count) = self.replacing.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.replacing.remove(&id);
            }
        }
    }

    /// Remembers what a client calls its order until that is accepted, where the number does not say it.
    fn name(&mut self, asked: &NewAsked) {
        if text_of(asked.client_order_id) == *asked.cl_ord_id {
            return;
        }
        if self.names.len() >= NAMES_MAX {
            self.names.pop_first();
        }
        self.names.insert(asked.client_order_id, asked.cl_ord_id.clone());
    }

    /// A new order has this number and this text. Orders that are gone may have had them: further texts of the one do not lead to the new
    /// order, and the text does not lead to the other.
    fn begin_again(&mut self, id: ClientOrderId, text: &str) {
        let is_gone = |id: ClientOrderId| self.get(id).is_some_and(Order::is_gone);
        let is_used_again = is_gone(id) && !self.is_being_replaced(id);
        let is_of_another = self.texts.get(text).is_some_and(is_gone);
        if is_used_again {
            self.texts.forget(id);
        }
        if is_of_another {
            self.texts.release(text);
        }
    }

    /// A command goes to the log: its names are known from here on, for requests that come before its report.
    pub(crate) fn expect(&mut self, asked: &Asked) {
        match asked {
            Asked::New(asked) => {
                self.begin_again(asked.client_order_id, &asked.cl_ord_id);
                self.name(asked);
            }
            Asked::Change(asked) if asked.kind == Change::Replace => {
                let is_known = self.by_client.contains_key(&asked.client_order_id);
                if is_known || self.replacing.len() < UNKNOWN_MAX {
                    *self.replacing.entry(asked.client_order_id).or_default() += 1;
                }
                if is_known || self.texts.orders() < self.by_order.len() + UNKNOWN_MAX {
                    self.texts.ask(&asked.cl_ord_id, asked.client_order_id);
                }
            }
            Asked::Change(_) | Asked::Mass(..) | Asked::Filler => {}
        }
    }

    /// No report of what was asked will come.
    pub(crate) fn expect_no_more(&mut self, asked: &Asked) {
        match asked {
            Asked::New(asked) => {
                self.names.remove(&asked.client_order_id);
            }
            Asked::Change(asked) if asked.kind == Change::Replace => {
                self.end_replace(asked.client_order_id);
                self.texts.refuse(&asked.cl_ord_id, asked.client_order_id);
            }
            Asked::Change(_) | Asked::Mass(..) | Asked::Filler => {}
        }
    }

    /// Without orders yet, with the texts that another connection of the session knew: reports tell of the orders again.
    pub(crate) fn again(before: Self) -> Self {
        Self { names: before.names, texts: before.texts, before: before.by_order, ..Self::default() }
    }

    /// The memory that they take, roughly and at most.
    fn bytes(&self) -> usize {
        (self.by_order.len() + self.before.len()) * ORDER_BYTES
            + self.texts.len() * TEXT_BYTES
            + self.texts.orders() * TEXTS_BYTES
            + self.names.len() * NAME_BYTES
    }

    /// As much of them as takes no more memory than this: older texts go first, then orders that are gone. `None` where that is not enough.
    pub(crate) fn within(mut self, bytes_max: usize) -> Option<Self> {
        // The next connection does not hear which report answers which of them.
        self.replacing.clear();
        self.by_order.values_mut().for_each(|order| order.later = None);
        if self.bytes() > bytes_max {
            self.texts.thin();
        }
        while self.bytes() > bytes_max {
            self.forget_oldest()?;
        }
        Some(self)
    }

    /// The text of a number, where no report says it.
    fn name_of(&self, id: ClientOrderId) -> Box<str> {
        let of_order = || self.get(id).map(|order| order.first.as_ref().unwrap_or(&order.cl_ord_id));
        self.names.get(&id).or_else(of_order).cloned().unwrap_or_else(|| text_of(id).into())
    }

    /// Takes a report; says what clients hear of it. `asked` is what this session asked with the command whose report it is, `name` what
    /// the log has as the order's name.
    pub(crate) fn on_event(&mut self, event: &ReportEvent, asked: Option<&Asked>, name: Option<ClientOrderName>) -> Option<Said> {
        let name = name.map(|name| Box::from(name.as_str()));
        match event {
            ReportEvent::Filled(e) => self.on_fill(e, name),
            ReportEvent::Event(Event::Rejected(e)) => self.on_rejected(e, asked, name),
            ReportEvent::Event(Event::Order(e)) => match e {
                OrderEvent::Accepted(e) => Some(self.on_accepted(e, asked, name)),
                OrderEvent::Amended(e) => self.on_amended(e, asked, name),
                OrderEvent::Cancelled(e) => self.on_cancelled(e, asked, name),
                OrderEvent::Reduced(e) => self.on_reduced(e, name),
                OrderEvent::Triggered(e) => self.on_triggered(e, name),
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

    fn on_accepted(&mut self, e: &OrderAccepted, asked: Option<&Asked>, name: Option<Box<str>>) -> Said {
        let (terms, text) = match asked {
            Some(Asked::New(asked)) => (asked.terms.as_ref(), Some(asked.cl_ord_id.clone())),
            _ => (None, name),
        };
        let expected = self.names.remove(&e.client_order_id);
        let text = text.or(expected).unwrap_or_else(|| text_of(e.client_order_id).into());
        if !self.before.contains_key(&e.order_id) {
            self.begin_again(e.client_order_id, &text);
        }
        let mut order = Order::of(e, text, terms);
        if let Some(before) = self.before.remove(&e.order_id) {
            (order.cl_ord_id, order.later) = match before.first {
                Some(first) => (first, Some(before.cl_ord_id)),
                None => (before.cl_ord_id, None),
            };
            (order.trigger, order.time_in_force, order.order_type) = (before.trigger, before.time_in_force, before.order_type);
        }
        let said = execution(ExecKind::New, &order, None, None);
        self.by_client.insert(e.client_order_id, e.order_id);
        self.by_order.insert(e.order_id, order);
        said
    }

    fn on_fill(&mut self, e: &Filled, name: Option<Box<str>>) -> Option<Said> {
        let before = SizeLots::new(e.open.get().saturating_add(e.size.get()));
        self.learn((e.order_id, e.client_order_id, e.instrument), name, Some(e.side), before);
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
    fn learn(&mut self, names: Names, name: Option<Box<str>>, side: Option<Side>, open: SizeLots) {
        let (order_id, client_order_id, _) = names;
        if let Some(known) = self.by_order.get_mut(&order_id) {
            known.side = known.side.or(side);
            return;
        }
        let cl_ord_id = name.unwrap_or_else(|| self.name_of(client_order_id));
        let mut order = Order::unknown(names, cl_ord_id, side, open);
        if let Some(before) = self.before.remove(&order_id) {
            (order.cl_ord_id, order.first) = (before.cl_ord_id, before.first);
            order.side = order.side.or(before.side);
            (order.trigger, order.time_in_force, order.order_type) = (before.trigger, before.time_in_force, before.order_type);
        }
        self.by_client.insert(client_order_id, order_id);
        self.by_order.insert(order_id, order);
    }

    fn on_amended(&mut self, e: &OrderAmended, asked: Option<&Asked>, name: Option<Box<str>>) -> Option<Said> {
        // Before its command what was left to be done may have amended an order: an exit grows with what its entry trades.
        let is_it = |asked: &ChangeAsked| {
            let has_its_text = asked.gives.is_none_or(|gives| name.as_deref() == Some(gives.as_str()));
            (asked.kind, asked.client_order_id) == (Change::Replace, e.client_order_id) && has_its_text
        };
        let asked = match asked {
            Some(Asked::Change(asked)) if is_it(asked) => Some(asked),
            _ => None,
        };
        // The report of a replacement has the text that it gave; that of another amendment has the order's.
        let (name, given) = match name {
            Some(text) if id_of(&text) != e.client_order_id => (None, Some(text)),
            name => (name, None),
        };
        let names = (e.order_id, e.client_order_id, e.instrument);
        self.learn(names, name, Some(e.side), e.resting.open.max(SizeLots::ZERO));
        if asked.is_some() {
            self.end_replace(e.client_order_id);
        }
        let order = self.by_order.get_mut(&e.order_id)?;
        let orig = order.cl_ord_id.clone();
        let mut open = e.resting.open.max(SizeLots::ZERO);
        let text = match (asked, given) {
            (Some(asked), _) => {
                order.later = None;
                open = asked.open.unwrap_or(order.open);
                Some(asked.cl_ord_id.clone())
            }
            // Another connection asked for it. What an earlier one of the session knew is kept.
            (None, Some(given)) => {
                if order.later.is_none() {
                    self.texts.ask(&given, e.client_order_id);
                } else if order.later.as_ref() == Some(&given) {
                    order.later = None;
                }
                Some(given)
            }
            (None, None) => order.later.take(),
        };
        if let Some(text) = text {
            self.texts.take(&text, e.client_order_id);
            let before = std::mem::replace(&mut order.cl_ord_id, text);
            order.first.get_or_insert(before);
        }
        order.open = open;
        order.size = SizeLots::new(order.cum.saturating_add(open.get()));
        order.price = e.price.or(order.price);
        Some(execution(ExecKind::Replaced, order, Some(orig), None))
    }

    fn on_cancelled(&mut self, e: &OrderCancelled, asked: Option<&Asked>, name: Option<Box<str>>) -> Option<Said> {
        self.learn((e.order_id, e.client_order_id, e.instrument), name, None, e.open);
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

    fn on_reduced(&mut self, e: &OrderReduced, name: Option<Box<str>>) -> Option<Said> {
        let before = SizeLots::new(e.resting.open.get().saturating_add(e.by.get()));
        self.learn((e.order_id, e.client_order_id, e.instrument), name, None, before);
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

    fn on_triggered(&mut self, e: &StopTriggered, name: Option<Box<str>>) -> Option<Said> {
        self.learn((e.order_id, e.client_order_id, e.instrument), name, Some(e.side), e.resting.open);
        let order = self.by_order.get_mut(&e.order_id)?;
        order.price = Some(e.price);
        order.is_waiting = false;
        Some(execution(ExecKind::Triggered, order, None, None))
    }

    fn on_rejected(&mut self, e: &Rejected, asked: Option<&Asked>, name: Option<Box<str>>) -> Option<Said> {
        let is_asked = |id: ClientOrderId| e.client_order_id == Some(id);
        match asked {
            Some(Asked::Filler) => None,
            Some(Asked::Mass(cl_ord_id, kind)) => Some(Said::MassCancelRejected(cl_ord_id.clone(), *kind, e.reason)),
            Some(Asked::Change(asked)) if is_asked(asked.client_order_id) => {
                if asked.kind == Change::Replace {
                    self.end_replace(asked.client_order_id);
                    self.texts.refuse(&asked.cl_ord_id, asked.client_order_id);
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
                    let name = name.unwrap_or_else(|| self.name_of(id));
                    return Some(Said::CancelRejected(Box::new(CancelRejected {
                        cl_ord_id: name.clone(),
                        orig_cl_ord_id: name,
                        kind: Change::Cancel,
                        order: self.get(id).cloned(),
                        reason: e.reason,
                    })));
                }
                let expected = match asked {
                    Some(Asked::New(asked)) => {
                        self.names.remove(&asked.client_order_id);
                        Some(asked.cl_ord_id.clone())
                    }
                    _ => name,
                };
                let cl_ord_id = expected.unwrap_or_else(|| self.name_of(id));
                self.names.remove(&id);
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

    /// An order is gone, and the oldest of those that are is forgotten.
    fn gone(&mut self, order_id: OrderId) {
        self.gone.push_back(order_id);
        if self.gone.len() > GONE_MAX {
            self.forget_oldest();
        }
    }

    /// Forgets the oldest of those that are gone, if there is one.
    fn forget_oldest(&mut self) -> Option<()> {
        let oldest = self.gone.pop_front()?;
        let order = self.by_order.remove(&oldest);
        if let Some(order) = order.filter(|order| self.by_client.get(&order.client_order_id) == Some(&oldest)) {
            self.by_client.remove(&order.client_order_id);
            self.texts.forget(order.client_order_id);
            self.replacing.remove(&order.client_order_id);
        }
        Some(())
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

#[cfg(test)]
mod tests {
    use walras_types::AccountId;
    use walras_wire::{Priority, Resting};

    use super::*;
    use crate::texts::ASKED_MAX;

    const AT: InstrumentId = InstrumentId(0);
    const ACCOUNT: AccountId = AccountId(0);
    /// A standing quote.
    const QUOTE: u64 = 1;

    fn resting() -> Resting {
        Resting { open: SizeLots::new(5), shown: SizeLots::new(5) }
    }

    fn accepted(order: u64) -> ReportEvent {
        ReportEvent::Event(Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: ClientOrderId(order),
            order_id: OrderId(order),
            side: Side::Sell,
            size: SizeLots::new(5),
            price: Some(PriceTicks::MIN),
            resting: resting(),
        })))
    }

    fn cancelled(order: u64) -> ReportEvent {
        ReportEvent::Event(Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: ClientOrderId(order),
            order_id: OrderId(order),
            open: SizeLots::new(5),
            reason: CancelReason::Requested,
        })))
    }

    /// The quote is replaced: its next text, and what the venue says of it.
    fn replaced(number: u64) -> (Asked, ReportEvent) {
        let asked = ChangeAsked {
            cl_ord_id: format!("q{number}").into(),
            orig_cl_ord_id: format!("q{}", number - 1).into(),
            client_order_id: ClientOrderId(QUOTE),
            kind: Change::Replace,
            open: None,
            gives: None,
        };
        let amended = OrderAmended {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: ClientOrderId(QUOTE),
            order_id: OrderId(QUOTE),
            side: Side::Sell,
            price: Some(PriceTicks::MIN),
            priority: Priority::Lost,
            resting: resting(),
        };
        (Asked::Change(Box::new(asked)), ReportEvent::Event(Event::Order(OrderEvent::Amended(amended))))
    }

    /// A quote that is replaced again and again stands while other orders come and go: what is kept has bounds, and so has what a session
    /// keeps between its connections.
    #[test]
    fn what_is_kept_of_orders_is_bounded() {
        let mut orders = Orders::default();
        orders.on_event(&accepted(QUOTE), None, None);
        for number in 2..20_000 {
            let (asked, amended) = replaced(number);
            orders.expect(&asked);
            orders.on_event(&amended, Some(&asked), None);
            orders.on_event(&accepted(number), None, None);
            orders.on_event(&cancelled(number), None, None);
            assert!(orders.texts.len() <= ASKED_MAX + 1 && orders.by_order.len() <= GONE_MAX + 1, "at {number}");
        }
        assert_eq!((orders.by_order.len(), orders.names.len(), orders.replacing.len()), (GONE_MAX + 1, 0, 0));
        assert_eq!(orders.find("q19999", None).map(|order| order.order_id), Some(OrderId(QUOTE)));
        assert!(orders.find("q2", None).is_none() && orders.find("2", None).is_none(), "they are forgotten");
        let kept = orders.clone().within(REMEMBERED_BYTES_MAX).unwrap();
        assert!(kept.bytes() <= REMEMBERED_BYTES_MAX && kept.by_order.len() > 3_000, "{} orders", kept.by_order.len());
        assert!(kept.find("q19999", None).is_some() && kept.find("19999", None).is_some());
        // Open orders alone may be too many.
        (30_000..34_000).for_each(|number| {
            orders.on_event(&accepted(number), None, None);
        });
        assert!(orders.within(REMEMBERED_BYTES_MAX).is_none());
    }

    /// What other connections call an order is known from reports, within the same bounds.
    #[test]
    fn replacements_of_which_reports_tell_are_kept_like_those_asked_here() {
        let mut orders = Orders::default();
        orders.on_event(&accepted(QUOTE), None, None);
        let amended = |orders: &mut Orders, number: u64, name: Option<ClientOrderName>| {
            let (_, amended) = replaced(number);
            let Some(Said::Execution(said)) = orders.on_event(&amended, None, name) else { panic!("it is said") };
            (said.cl_ord_id.to_string(), said.orig_cl_ord_id.map(String::from))
        };
        for number in 2..1_000 {
            let [before, text] = [number - 1, number].map(|number| if number == 1 { "1".to_owned() } else { format!("q{number}") });
            let said = amended(&mut orders, number, ClientOrderName::new(&text));
            assert_eq!(said, (text, Some(before)));
            assert!(orders.texts.len() <= ASKED_MAX + 1, "at {number}");
        }
        assert_eq!(["q999", "q968", "1", "q967"].map(|text| orders.find(text, None).is_some()), [true, true, true, false]);
        // An amendment by another interface gives no text.
        assert_eq!(amended(&mut orders, 1_000, None), ("q999".to_owned(), Some("q999".to_owned())));
    }

    /// What was left to be done comes before the command of an entry, and its reports are of the same entry.
    #[test]
    fn a_cancel_is_not_answered_by_an_amendment() {
        let mut orders = Orders::default();
        orders.on_event(&accepted(QUOTE), None, None);
        let cancel = ChangeAsked {
            cl_ord_id: "c".into(),
            orig_cl_ord_id: "1".into(),
            client_order_id: ClientOrderId(QUOTE),
            kind: Change::Cancel,
            open: None,
            gives: None,
        };
        let (cancel, (_, amended)) = (Asked::Change(Box::new(cancel)), replaced(2));
        let said = [amended, cancelled(QUOTE)].map(|event| {
            let Some(Said::Execution(said)) = orders.on_event(&event, Some(&cancel), None) else { panic!("it is said") };
            (said.kind, said.cl_ord_id.to_string(), said.orig_cl_ord_id.map(String::from))
        });
        let of = |kind, cl_ord_id: &str| (kind, cl_ord_id.to_owned(), Some("1".to_owned()));
        assert_eq!(said, [of(ExecKind::Replaced, "1"), of(ExecKind::Cancelled, "c")]);
        assert_eq!(orders.texts.len(), 0);
    }

    /// Nor is a replace, which may be rejected after that.
    #[test]
    fn a_replace_is_answered_by_its_own_amendment() {
        let mut orders = Orders::default();
        orders.on_event(&accepted(QUOTE), None, None);
        let (Asked::Change(change), amended) = replaced(2) else { panic!("it is a change") };
        let gives = ClientOrderName::new("q2");
        let asked = Asked::Change(Box::new(ChangeAsked { gives, ..*change }));
        let mut said = |name: Option<ClientOrderName>| {
            let Some(Said::Execution(said)) = orders.on_event(&amended, Some(&asked), name) else { panic!("it is said") };
            said.cl_ord_id.to_string()
        };
        assert_eq!([said(None), said(gives)], ["1", "q2"]);
    }

    #[test]
    fn what_never_comes_leaves_nothing() {
        let mut orders = Orders::default();
        for number in 2..30_000 {
            let asked = NewAsked {
                cl_ord_id: format!("order number {number}").into(),
                client_order_id: id_of(&format!("order number {number}")),
                symbol: "BTC/USD".into(),
                side: '1',
                ord_qty: "1".into(),
                terms: None,
            };
            let (replace, _) = replaced(number);
            let new = Asked::New(Box::new(asked));
            for asked in [&new, &replace] {
                orders.expect(asked);
            }
            if number % 2 == 0 {
                for asked in [&new, &replace] {
                    orders.expect_no_more(asked);
                }
            }
            assert!(orders.names.len() <= NAMES_MAX && orders.texts.len() <= ASKED_MAX, "at {number}");
        }
        // Of orders that are not known, texts are kept of so many.
        for number in 0..20_000 {
            let (Asked::Change(change), _) = replaced(number + 1) else { panic!("it is a change") };
            orders.expect(&Asked::Change(Box::new(ChangeAsked { client_order_id: ClientOrderId(1_000_000 + number), ..*change })));
        }
        assert!(orders.texts.orders() <= UNKNOWN_MAX, "{}", orders.texts.orders());
    }
}
