//! Application messages of clients as commands.

use walras_fix::Message;
use walras_gateway::{ClientOrder, QuantityError};
use walras_types::{
    AccountId, Amendment, ClientOrderId, ClientOrderName, ContentDigest, Display, EngineVersion, InstrumentId, OrderTerms,
    OrderType, PostOnly, PriceTicks, RejectReason, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail,
};
use walras_wire::{
    AmendOrder, CancelOrder, Command, InvalidCommand, LinkedOrder, MassCancel, NamedAmend, NamedOrder, NewOrder, OrderCommand,
};

use crate::catalog::{Catalog, Listed};
use crate::ids::{CL_ORD_ID_BYTES_MAX, client_order_under, id_under, replacement_under};
use crate::orders::{Order, Orders};
use crate::tags;

/// What a client asked with a command: what its answer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// NewOrderSingle.
    New(Box<NewAsked>),
    /// OrderCancelRequest, or OrderCancelReplaceRequest.
    Change(Box<ChangeAsked>),
    /// OrderMassCancelRequest, with its ClOrdID and MassCancelRequestType.
    Mass(Box<str>, char),
    /// No command: the number of another message.
    Filler,
}

/// A new order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewAsked {
    pub(crate) cl_ord_id: Box<str>,
    /// The engine's name of it.
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) symbol: Box<str>,
    pub(crate) side: char,
    pub(crate) ord_qty: Box<str>,
    pub(crate) terms: Option<OrderTerms>,
}

/// A change of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeAsked {
    pub(crate) cl_ord_id: Box<str>,
    pub(crate) orig_cl_ord_id: Box<str>,
    /// The engine's name of the order.
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) kind: Change,
    /// The new open size.
    pub(crate) open: Option<SizeLots>,
    /// The text that the log has with it: the report of a replacement has it too.
    pub(crate) gives: Option<ClientOrderName>,
}

/// Which change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Cancel,
    Replace,
}

/// A command for the log, with what was asked.
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) asked: Asked,
    /// What is wrong, where the command is invalid.
    pub(crate) text: Option<String>,
}

/// Why something cannot be carried out.
struct Fault {
    reason: RejectReason,
    text: String,
}

impl Fault {
    fn new(reason: RejectReason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

impl From<QuantityError> for Fault {
    fn from(error: QuantityError) -> Self {
        Self::new(error.reason(), error.to_string())
    }
}

/// Reads requests of one account.
pub(crate) struct Requests<'a> {
    pub(crate) account: AccountId,
    pub(crate) catalog: &'a Catalog,
    pub(crate) orders: &'a Orders,
}

impl Requests<'_> {
    /// The command of a message; `None` for one of another type.
    pub(crate) fn read(&self, message: &Message) -> Option<Request> {
        match message.msg_type() {
            b"D" => Some(self.new_order(message)),
            b"F" => Some(self.change(message, Change::Cancel)),
            b"G" => Some(self.change(message, Change::Replace)),
            b"q" => Some(self.mass_cancel(message)),
            _ => None,
        }
    }

    /// What was asked takes its number in the log all the same, and is rejected there.
    fn invalid(&self, message: &Message, instrument: Option<InstrumentId>, fault: Fault, asked: Asked) -> Request {
        let Fault { reason, text } = fault;
        let content = ContentDigest::of_bytes(message.get(tags::CL_ORD_ID).unwrap_or_default());
        let (client_order_id, name) = match &asked {
            Asked::New(asked) => named_invalid(&asked.cl_ord_id, self.catalog.version()),
            Asked::Change(asked) => (Some(asked.client_order_id), None),
            Asked::Mass(..) | Asked::Filler => (None, None),
        };
        let account = Some(self.account);
        let command = Command::Invalid(InvalidCommand { account, instrument, client_order_id, reason, content, name });
        Request { command, asked, text: Some(text) }
    }

    fn listed(&self, message: &Message) -> Result<&Listed, Fault> {
        let symbol = message.text(tags::SYMBOL).unwrap_or_default();
        let unknown = || Fault::new(RejectReason::UnknownInstrument, format!("Symbol(55) {symbol:?} is none of this venue"));
        self.catalog.find(symbol).ok_or_else(unknown)
    }

    fn new_order(&self, message: &Message) -> Request {
        let text = |tag: i32| message.text(tag).unwrap_or_default();
        let cl_ord_id = text(tags::CL_ORD_ID);
        let version = self.catalog.version();
        let ClientOrder { id, name } = client_order_under(cl_ord_id, version);
        let mut asked = NewAsked {
            cl_ord_id: cl_ord_id.into(),
            client_order_id: id,
            symbol: text(tags::SYMBOL).into(),
            side: text(tags::SIDE).chars().next().unwrap_or('7'),
            ord_qty: text(tags::ORDER_QTY).into(),
            terms: None,
        };
        let listed = self.listed(message);
        let instrument = listed.as_ref().ok().map(|listed| listed.spec.instrument);
        let is_taken = instrument.is_some_and(|instrument| self.orders.has_open(cl_ord_id, id, instrument));
        let terms = listed.and_then(|listed| terms_of(message, listed)).and_then(|terms| {
            check_cl_ord_id(cl_ord_id)?;
            let reason = RejectReason::DuplicateClientOrderId;
            if is_taken { Err(Fault::new(reason, reason.advice())) } else { Ok(terms) }
        });
        match (terms, instrument) {
            (Ok(terms), Some(instrument)) => {
                asked.terms = Some(terms);
                let order = NewOrder { account: self.account, instrument, client_order_id: id, terms };
                let command = match (message.text(tags::CL_ORD_LINK_ID), name) {
                    // It closes what an order that is to come opens.
                    (Some(entry), name) if message.text(tags::POSITION_EFFECT) == Some("C") => {
                        OrderCommand::NewLinked(LinkedOrder::exit(&order, id_under(entry, version), name))
                    }
                    (Some(other), name) => {
                        OrderCommand::NewLinked(LinkedOrder::new(&order, self.orders.id_of(other, None, version), name))
                    }
                    (None, Some(name)) => OrderCommand::NewNamed(NamedOrder::new(&order, name)),
                    // Its sender's reports have the text that is no name; the log has the number.
                    (None, None) => OrderCommand::New(order),
                };
                Request { command: Command::Order(command), asked: Asked::New(Box::new(asked)), text: None }
            }
            (Err(fault), _) => self.invalid(message, instrument, fault, Asked::New(Box::new(asked))),
            (Ok(_), None) => unreachable!("terms are those of an instrument"),
        }
    }

    fn change(&self, message: &Message, kind: Change) -> Request {
        let text = |tag: i32| message.text(tag).unwrap_or_default();
        let (cl_ord_id, orig) = (text(tags::CL_ORD_ID), text(tags::ORIG_CL_ORD_ID));
        let version = self.catalog.version();
        let client_order_id = self.orders.id_of(orig, message.text(tags::ORDER_ID), version);
        let mut asked = ChangeAsked {
            cl_ord_id: cl_ord_id.into(),
            orig_cl_ord_id: orig.into(),
            client_order_id,
            kind,
            open: None,
            gives: None,
        };
        let listed = self.listed(message);
        let instrument = listed.as_ref().ok().map(|listed| listed.spec.instrument);
        let command = listed.and_then(|listed| {
            check_cl_ord_id(cl_ord_id)?;
            let instrument = listed.spec.instrument;
            let command = match kind {
                Change::Cancel => OrderCommand::Cancel(CancelOrder { account: self.account, instrument, client_order_id }),
                Change::Replace => {
                    let amendment = self.amendment(message, listed, client_order_id)?;
                    asked.open = amendment.size;
                    let amend = AmendOrder { account: self.account, instrument, amendment };
                    asked.gives = replacement_under(cl_ord_id, version);
                    match asked.gives {
                        Some(name) => OrderCommand::AmendNamed(NamedAmend { amend, name }),
                        None => OrderCommand::Amend(amend),
                    }
                }
            };
            Ok(Command::Order(command))
        });
        let asked = Asked::Change(Box::new(asked));
        match command {
            Ok(command) => Request { command, asked, text: None },
            Err(fault) => self.invalid(message, instrument, fault, asked),
        }
    }

    /// What is new: OrderQty(38) is of the whole order, so what has traded is not open.
    fn amendment(&self, message: &Message, listed: &Listed, client_order_id: ClientOrderId) -> Result<Amendment, Fault> {
        let order = self.orders.get(client_order_id).filter(|order| order.instrument == listed.spec.instrument);
        let cum = order.map_or(0, |order| order.cum);
        let size = listed.scale.parse_size(message.text(tags::ORDER_QTY).unwrap_or_default())?;
        let new_open = size.get().checked_sub(cum).filter(|open| *open > 0).map(SizeLots::new);
        let too_small = || {
            let text = "OrderQty(38) must be above what has traded: send an OrderCancelRequest(F) to cancel the rest";
            Fault::new(RejectReason::SizeOutOfRange, text)
        };
        // What the order has need not be said again. But where another replace was asked for meanwhile, it may have something else by then,
        // whichever of its texts this one names.
        let orig = message.text(tags::ORIG_CL_ORD_ID);
        let is_latest = |order: &Order| orig.is_none_or(|orig| *order.cl_ord_id == *orig);
        let known = order.filter(|order| is_latest(order) && !self.orders.is_being_replaced(client_order_id));
        let size = Some(new_open.ok_or_else(too_small)?).filter(|new| known.is_none_or(|order| order.open != *new));
        let is_stop = order.is_some_and(|order| order.is_waiting);
        let optional = |tag: i32| message.text(tag).map(|text| listed.scale.parse_price(text)).transpose();
        let (price, trigger) = (optional(tags::PRICE)?, optional(tags::STOP_PX)?);
        let price = price.filter(|price| known.is_none_or(|order| order.price != Some(*price)));
        let trigger = trigger.filter(|trigger| is_stop && known.is_none_or(|order| order.trigger != Some(*trigger)));
        // Nothing is new: the engine is asked for what there is, so that the order gets its new ClOrdID.
        let size = if size.is_none() && price.is_none() && trigger.is_none() { new_open } else { size };
        Ok(Amendment { client_order_id, price, trigger, size })
    }

    fn mass_cancel(&self, message: &Message) -> Request {
        let text = |tag: i32| message.text(tag).unwrap_or_default();
        let kind = text(tags::MASS_CANCEL_REQUEST_TYPE).chars().next().unwrap_or('7');
        let asked = Asked::Mass(text(tags::CL_ORD_ID).into(), kind);
        let side = match text(tags::SIDE) {
            "1" => Some(Side::Buy),
            "2" => Some(Side::Sell),
            _ => None,
        };
        let instrument = match kind {
            '7' => Ok(None),
            '1' => self.listed(message).map(|listed| Some(listed.spec.instrument)),
            _ => {
                let text = "MassCancelRequestType(530) must be 1 (the orders of a Symbol) or 7 (all orders)";
                Err(Fault::new(RejectReason::Malformed, text))
            }
        };
        match instrument {
            Ok(instrument) => {
                let command = OrderCommand::MassCancel(MassCancel { account: self.account, instrument, side });
                Request { command: Command::Order(command), asked, text: None }
            }
            Err(fault) => self.invalid(message, None, fault, asked),
        }
    }
}

/// What the log has of the ClOrdID of an order that cannot be carried out, under a version of the engine. Without names that is a number
/// from which a short text comes back.
pub(crate) fn named_invalid(cl_ord_id: &str, version: EngineVersion) -> (Option<ClientOrderId>, Option<ClientOrderName>) {
    let ClientOrder { id, name } = client_order_under(cl_ord_id, version);
    (Some(id), name)
}

fn check_cl_ord_id(text: &str) -> Result<(), Fault> {
    if (1..=CL_ORD_ID_BYTES_MAX).contains(&text.len()) {
        return Ok(());
    }
    Err(Fault::new(RejectReason::Malformed, format!("ClOrdID(11) must have 1 to {CL_ORD_ID_BYTES_MAX} characters")))
}

/// Side(54) as the venue has it.
pub(crate) fn side_of(text: &str) -> Option<Side> {
    match text {
        "1" => Some(Side::Buy),
        "2" => Some(Side::Sell),
        _ => None,
    }
}

/// The distance of a trailing stop. FIX adds the offset, so that of a sell may be negative.
fn trail_of(message: &Message, listed: &Listed) -> Result<Trail, Fault> {
    let unsupported = |text: &str| Fault::new(RejectReason::Malformed, text);
    if message.text(tags::STOP_PX).is_some() {
        return Err(unsupported("StopPx(99) does not go with ExecInst(18)=a (trailing stop): its trigger follows the market"));
    }
    let offset = message.text(tags::PEG_OFFSET_VALUE);
    let offset = offset.ok_or_else(|| unsupported("PegOffsetValue(211) is missing: ExecInst(18)=a (trailing stop) needs it"))?;
    let offset = offset.strip_prefix('-').unwrap_or(offset);
    let ticks = |ticks: i64| u32::try_from(ticks).map(Trail::Ticks).ok();
    let trail = match message.text(tags::PEG_OFFSET_TYPE).unwrap_or("0") {
        "0" => ticks(listed.scale.parse_price(offset)?.get()),
        "1" => ppm_of_basis_points(offset).map(Trail::Ppm),
        "2" => offset.parse().ok().map(Trail::Ticks),
        _ => return Err(unsupported("PegOffsetType(836) must be 0 (price), 1 (basis points) or 2 (ticks)")),
    };
    trail.ok_or_else(|| Fault::new(RejectReason::TrailInvalid, RejectReason::TrailInvalid.advice()))
}

/// Hundredths of a percent, with up to two decimals, in millionths.
fn ppm_of_basis_points(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = !whole.is_empty() && part.len() <= 2 && whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
    let digits = is_number.then(|| format!("{whole}{part:0<2}"))?;
    digits.parse().ok()
}

fn terms_of(message: &Message, listed: &Listed) -> Result<OrderTerms, Fault> {
    let unsupported = |text: &str| Fault::new(RejectReason::Malformed, text);
    let text = |tag: i32| message.text(tag);
    let side = side_of(text(tags::SIDE).unwrap_or_default()).ok_or_else(|| unsupported("Side(54) must be 1 (buy) or 2 (sell)"))?;
    let Some(ord_qty) = text(tags::ORDER_QTY) else { return Err(unsupported("OrderQty(38) is missing")) };
    let size = listed.scale.parse_size(ord_qty)?;
    let price = |tag: i32, name: &str| -> Result<PriceTicks, Fault> {
        let text = message.text(tag).ok_or_else(|| unsupported(&format!("{name} is missing: this OrdType(40) needs it")))?;
        Ok(listed.scale.parse_price(text)?)
    };
    let (post_only, trails) = match text(tags::EXEC_INST) {
        None => (PostOnly::Off, false),
        Some("6") => (PostOnly::Reject, false),
        Some("a") => (PostOnly::Off, true),
        Some(_) => {
            let values = "6 (participate, do not initiate: post-only) or a (trailing stop)";
            return Err(unsupported(&format!("ExecInst(18) may be {values} only")));
        }
    };
    let order_type = match text(tags::ORD_TYPE).unwrap_or_default() {
        "3" if trails => OrderType::TrailingStop { trail: trail_of(message, listed)? },
        "4" if trails => {
            OrderType::TrailingStopLimit { trail: trail_of(message, listed)?, price: price(tags::PRICE, "Price(44)")? }
        }
        _ if trails => return Err(unsupported("ExecInst(18)=a (trailing stop) goes with OrdType(40) 3 (stop) or 4 (stop limit)")),
        "1" => OrderType::Market,
        "2" => OrderType::Limit { price: price(tags::PRICE, "Price(44)")?, post_only },
        "3" => OrderType::Stop { trigger: price(tags::STOP_PX, "StopPx(99)")? },
        "4" => OrderType::StopLimit { trigger: price(tags::STOP_PX, "StopPx(99)")?, price: price(tags::PRICE, "Price(44)")? },
        "J" => OrderType::TakeProfit { trigger: price(tags::STOP_PX, "StopPx(99)")? },
        _ => {
            let types = "1 (market), 2 (limit), 3 (stop), 4 (stop limit) or J (market if touched)";
            return Err(unsupported(&format!("OrdType(40) must be {types}")));
        }
    };
    let is_post_only = post_only != PostOnly::Off;
    if is_post_only && !matches!(order_type, OrderType::Limit { .. }) {
        return Err(Fault::new(RejectReason::PostOnlyInvalid, RejectReason::PostOnlyInvalid.advice()));
    }
    let time_in_force = match (text(tags::TIME_IN_FORCE), order_type) {
        // A market order does not rest.
        (None | Some("0"), OrderType::Market) => TimeInForce::ImmediateOrCancel,
        (None | Some("0"), _) => TimeInForce::Day,
        (Some("1"), _) => TimeInForce::GoodTillCancel,
        (Some("3"), _) => TimeInForce::ImmediateOrCancel,
        (Some("4"), _) => TimeInForce::FillOrKill,
        (Some("6"), _) => match message.time_ns(tags::EXPIRE_TIME) {
            Some(time_ns) => TimeInForce::GoodTill(TimeNs(time_ns)),
            None => return Err(unsupported("TimeInForce(59)=6 (good till date) needs an ExpireTime(126)")),
        },
        _ => {
            return Err(unsupported(
                "TimeInForce(59) must be 0 (day), 1 (good till cancel), 3 (immediate or cancel), 4 (fill or kill) or 6 (good till date)",
            ));
        }
    };
    let shown = text(tags::DISPLAY_QTY).or(text(tags::MAX_FLOOR));
    let display = match shown {
        None => Display::Full,
        Some(shown) if !shown.is_empty() && shown.bytes().all(|byte| byte == b'0' || byte == b'.') => Display::Hidden,
        Some(shown) => match listed.scale.parse_size(shown)? {
            peak if peak >= size => Display::Full,
            peak => Display::Iceberg { peak },
        },
    };
    let min_size = match text(tags::MIN_QTY) {
        None | Some("0") => None,
        Some(min_qty) => Some(listed.scale.parse_size(min_qty)?),
    };
    Ok(OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade: SelfTrade::CancelNewest })
}
