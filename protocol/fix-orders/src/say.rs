//! What the venue says of orders, as messages.

use walras_fix::{Body, Version};
use walras_types::{AccountId, OrderType, RejectReason, Side, TimeInForce, TimeNs, Trail};
use walras_wire::order_entry::TradeRole;

use crate::catalog::Catalog;
use crate::orders::{CancelRejected, ExecKind, Execution, Order, Said, Status, Trade};
use crate::reasons::{cxl_rej_reason, mass_cancel_rej_reason, ord_rej_reason};
use crate::request::{Asked, Change};
use crate::tags;

/// What to do about an order that a cancel or a replace does not find.
const UNKNOWN_ORDER: &str = "no open order has this OrigClOrdID(41): it was filled or cancelled, or it was replaced since, more than \
                             32 times or by a ClOrdID that is no name: then name it by OrderID(37) too";

/// How things are said on one connection.
#[derive(Clone, Copy)]
pub(crate) struct Speaker<'a> {
    pub(crate) version: Version,
    pub(crate) account: AccountId,
    pub(crate) catalog: &'a Catalog,
}

/// Of which report it is said.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    /// ExecID(17).
    pub(crate) exec_id: &'a str,
    pub(crate) time: TimeNs,
    /// What is wrong with what was asked, beyond its reason.
    pub(crate) detail: Option<&'a str>,
}

fn is_before_43(version: Version) -> bool {
    version <= Version::Fix42
}

/// Reason, number, and what to do.
pub(crate) fn refusal_text(reason: RejectReason, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => format!("{} ({}): {detail}", reason.name(), reason.number()),
        None => reason.to_string(),
    }
}

impl Speaker<'_> {
    /// The type and the body of a message.
    pub(crate) fn say(&self, said: &Said, of: Of<'_>) -> (&'static str, Body) {
        match said {
            Said::Execution(execution) => ("8", self.execution(execution, of)),
            Said::CancelRejected(rejected) => ("9", self.cancel_rejected(rejected, of)),
            Said::MassCancelRejected(cl_ord_id, kind, reason) => ("r", self.mass_cancel(cl_ord_id, *kind, Err(*reason), of)),
        }
    }

    fn execution(&self, e: &Execution, of: Of<'_>) -> Body {
        let mut body = Body::new();
        let listed = e.instrument.and_then(|instrument| self.catalog.get(instrument));
        match &e.order {
            Some(order) => body.number(tags::ORDER_ID, order.order_id.0),
            None => body.text(tags::ORDER_ID, "NONE"),
        };
        body.text(tags::CL_ORD_ID, &e.cl_ord_id);
        if let Some(orig) = &e.orig_cl_ord_id {
            body.text(tags::ORIG_CL_ORD_ID, orig);
        }
        body.text(tags::EXEC_ID, of.exec_id);
        if is_before_43(self.version) {
            body.text(tags::EXEC_TRANS_TYPE, if e.kind == ExecKind::Status { "3" } else { "0" });
        }
        let status = e.order.as_ref().map_or(Status::Rejected, |order| order.status);
        body.text(tags::EXEC_TYPE, self.exec_type(e.kind, status)).text(tags::ORD_STATUS, status.code());
        if let ExecKind::Rejected(reason) = e.kind {
            body.number(tags::ORD_REJ_REASON, ord_rej_reason(reason, self.version));
        }
        if e.kind == ExecKind::Restated || (e.kind == ExecKind::Triggered && is_before_43(self.version)) {
            // Partial decline of the quantity; repricing.
            body.text(tags::EXEC_RESTATEMENT_REASON, if e.kind == ExecKind::Restated { "5" } else { "3" });
        }
        body.number(tags::ACCOUNT, u64::from(self.account.0));
        let symbol = match (&listed, &e.asked) {
            (Some(listed), _) => listed.spec.symbol.as_str(),
            (None, Some(Asked::New(asked))) => &asked.symbol,
            (None, _) => "[N/A]",
        };
        body.text(tags::SYMBOL, symbol);
        match (&e.order, &e.asked) {
            (Some(order), _) => self.of_order(order, &mut body),
            (None, Some(Asked::New(asked))) => {
                body.text(tags::SIDE, &asked.side.to_string());
                if !asked.ord_qty.is_empty() {
                    body.text(tags::ORDER_QTY, &asked.ord_qty);
                }
                body.text(tags::LEAVES_QTY, "0").text(tags::CUM_QTY, "0").text(tags::AVG_PX, "0");
            }
            // Undisclosed: another session's.
            (None, _) => {
                body.text(tags::SIDE, "7").text(tags::LEAVES_QTY, "0").text(tags::CUM_QTY, "0").text(tags::AVG_PX, "0");
            }
        }
        if let ExecKind::Trade(trade) = e.kind {
            self.trade(e, &trade, &mut body);
        }
        body.time(tags::TRANSACT_TIME, of.time.0, self.version);
        match (e.kind, e.text) {
            (ExecKind::Rejected(reason), _) => {
                body.text(tags::TEXT, &refusal_text(reason, of.detail));
            }
            (_, Some(text)) => {
                body.text(tags::TEXT, text);
            }
            (_, None) => {}
        }
        body
    }

    fn exec_type(&self, kind: ExecKind, status: Status) -> &'static str {
        match kind {
            ExecKind::New => "0",
            ExecKind::Trade(_) if is_before_43(self.version) => status.code(),
            ExecKind::Trade(_) => "F",
            ExecKind::Cancelled => "4",
            ExecKind::Expired => "C",
            ExecKind::Replaced => "5",
            ExecKind::Rejected(_) => "8",
            ExecKind::Restated => "D",
            ExecKind::Triggered if self.version >= Version::Fix50 => "L",
            ExecKind::Triggered => "D",
            ExecKind::Status if is_before_43(self.version) => status.code(),
            ExecKind::Status => "I",
        }
    }

    fn of_order(&self, order: &Order, body: &mut Body) {
        // 7: undisclosed, since no report that says it is kept.
        body.text(tags::SIDE, order.side.map_or("7", |side| if side == Side::Buy { "1" } else { "2" }));
        let Some(listed) = self.catalog.get(order.instrument) else {
            body.text(tags::LEAVES_QTY, "0").text(tags::CUM_QTY, "0").text(tags::AVG_PX, "0");
            return;
        };
        let scale = &listed.scale;
        body.text(tags::ORDER_QTY, &scale.size(order.size).to_string());
        if let Some(order_type) = order.order_type {
            let code = match order_type {
                OrderType::Market => "1",
                OrderType::Limit { .. } => "2",
                OrderType::Stop { .. } | OrderType::TrailingStop { .. } => "3",
                OrderType::StopLimit { .. } | OrderType::TrailingStopLimit { .. } => "4",
                // The dialect has no type for a take-profit that becomes a limit order; Price(44) says that this one does.
                OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. } => "J",
            };
            body.text(tags::ORD_TYPE, code);
            if let Some(trail) = order_type.trail() {
                self.trail(trail, body);
            }
        }
        let price = match order.order_type {
            Some(
                OrderType::StopLimit { price, .. }
                | OrderType::TakeProfitLimit { price, .. }
                | OrderType::TrailingStopLimit { price, .. },
            ) => Some(order.price.unwrap_or(price)),
            Some(OrderType::Market | OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. }) => {
                None
            }
            Some(OrderType::Limit { .. }) | None => order.price,
        };
        if let Some(price) = price {
            body.text(tags::PRICE, &scale.price(price).to_string());
        }
        if let Some(trigger) = order.trigger {
            body.text(tags::STOP_PX, &scale.price(trigger).to_string());
        }
        if let Some(time_in_force) = order.time_in_force {
            let code = match time_in_force {
                TimeInForce::Day => "0",
                TimeInForce::GoodTillCancel => "1",
                TimeInForce::ImmediateOrCancel => "3",
                TimeInForce::FillOrKill => "4",
                TimeInForce::GoodTill(_) => "6",
            };
            body.text(tags::TIME_IN_FORCE, code);
        }
        let cum = walras_types::SizeLots::new(order.cum);
        let leaves = if order.is_gone() { walras_types::SizeLots::ZERO } else { order.open };
        body.text(tags::LEAVES_QTY, &scale.size(leaves).to_string()).text(tags::CUM_QTY, &scale.size(cum).to_string());
        let average = scale.average_price(order.tick_lots, cum);
        body.text(tags::AVG_PX, &average.map_or_else(|| "0".to_owned(), |average| average.to_string()));
    }

    /// How far behind the market a trailing stop's trigger stays. Versions before 4.4 have no such order.
    fn trail(&self, trail: Trail, body: &mut Body) {
        if self.version < Version::Fix44 {
            return;
        }
        body.text(tags::EXEC_INST, "a");
        match trail {
            Trail::Ticks(ticks) => body.text(tags::PEG_OFFSET_VALUE, &ticks.to_string()).text(tags::PEG_OFFSET_TYPE, "2"),
            Trail::Ppm(ppm) => {
                let basis_points = format!("{}.{:02}", ppm / 100, ppm % 100);
                body.text(tags::PEG_OFFSET_VALUE, &basis_points).text(tags::PEG_OFFSET_TYPE, "1")
            }
        };
    }

    fn trade(&self, e: &Execution, trade: &Trade, body: &mut Body) {
        let Some(listed) = e.instrument.and_then(|instrument| self.catalog.get(instrument)) else { return };
        let (price, size) = (listed.scale.price(trade.price).to_string(), listed.scale.size(trade.size).to_string());
        body.text(tags::LAST_QTY, &size).text(tags::LAST_PX, &price);
        if !is_before_43(self.version) {
            let fee = listed.fee(trade.fee);
            body.text(tags::COMMISSION, &fee).text(tags::COMM_TYPE, "3");
            body.text(tags::COMM_CURRENCY, listed.currency.as_str());
        }
        match (self.version, trade.role) {
            (Version::Fix44 | Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2, TradeRole::Maker) => {
                body.text(tags::LAST_LIQUIDITY_IND, "1");
            }
            (Version::Fix44 | Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2, TradeRole::Taker) => {
                body.text(tags::LAST_LIQUIDITY_IND, "2");
            }
            (Version::Fix50Sp2, TradeRole::Auction) => {
                body.text(tags::LAST_LIQUIDITY_IND, "4");
            }
            _ => {}
        }
        if self.version >= Version::Fix50Sp1 {
            body.number(tags::TRD_MATCH_ID, trade.trade_id.0);
        }
    }

    fn cancel_rejected(&self, e: &CancelRejected, of: Of<'_>) -> Body {
        let mut body = Body::new();
        match &e.order {
            Some(order) => body.number(tags::ORDER_ID, order.order_id.0),
            None => body.text(tags::ORDER_ID, "NONE"),
        };
        body.text(tags::CL_ORD_ID, &e.cl_ord_id).text(tags::ORIG_CL_ORD_ID, &e.orig_cl_ord_id);
        body.text(tags::ORD_STATUS, e.order.as_ref().map_or(Status::Rejected, |order| order.status).code());
        body.number(tags::ACCOUNT, u64::from(self.account.0)).time(tags::TRANSACT_TIME, of.time.0, self.version);
        body.text(tags::CXL_REJ_RESPONSE_TO, if e.kind == Change::Cancel { "1" } else { "2" });
        body.number(tags::CXL_REJ_REASON, cxl_rej_reason(e.reason, self.version));
        let unknown = (e.reason == RejectReason::UnknownOrder).then_some(UNKNOWN_ORDER);
        body.text(tags::TEXT, &refusal_text(e.reason, of.detail.or(unknown)));
        body
    }

    /// OrderMassCancelReport.
    pub(crate) fn mass_cancel(&self, cl_ord_id: &str, kind: char, done: Result<(), RejectReason>, of: Of<'_>) -> Body {
        let mut body = Body::new();
        body.text(tags::CL_ORD_ID, cl_ord_id).text(tags::ORDER_ID, of.exec_id);
        if self.version >= Version::Fix50Sp1 {
            body.text(tags::MASS_ACTION_REPORT_ID, of.exec_id);
        }
        body.text(tags::MASS_CANCEL_REQUEST_TYPE, &kind.to_string());
        match done {
            Ok(()) => body.text(tags::MASS_CANCEL_RESPONSE, &kind.to_string()),
            Err(reason) => {
                body.text(tags::MASS_CANCEL_RESPONSE, "0");
                body.number(tags::MASS_CANCEL_REJECT_REASON, mass_cancel_rej_reason(reason, self.version));
                body.text(tags::TEXT, &refusal_text(reason, of.detail))
            }
        };
        body.time(tags::TRANSACT_TIME, of.time.0, self.version);
        body
    }

    /// An order that is not known, to who asks for it.
    pub(crate) fn no_such_order(&self, cl_ord_id: &str, symbol: &str, side: &str, of: Of<'_>) -> Body {
        let reason = RejectReason::UnknownOrder;
        let mut body = Body::new();
        body.text(tags::ORDER_ID, "NONE").text(tags::CL_ORD_ID, cl_ord_id).text(tags::EXEC_ID, of.exec_id);
        if is_before_43(self.version) {
            body.text(tags::EXEC_TRANS_TYPE, "3");
        }
        body.text(tags::EXEC_TYPE, self.exec_type(ExecKind::Status, Status::Rejected)).text(tags::ORD_STATUS, "8");
        body.number(tags::ORD_REJ_REASON, ord_rej_reason(reason, self.version)).text(tags::SYMBOL, symbol).text(tags::SIDE, side);
        body.text(tags::LEAVES_QTY, "0").text(tags::CUM_QTY, "0").text(tags::AVG_PX, "0");
        body.time(tags::TRANSACT_TIME, of.time.0, self.version).text(tags::TEXT, &refusal_text(reason, of.detail));
        body
    }
}

/// BusinessMessageReject, or for versions before it the text of a session reject.
#[must_use]
pub fn business_reject(seq: u64, msg_type: &[u8], reason: u64, ref_id: Option<&str>, text: &str) -> Body {
    let mut body = Body::new();
    body.number(tags::REF_SEQ_NUM, seq).bytes(tags::REF_MSG_TYPE, msg_type);
    if let Some(ref_id) = ref_id.filter(|ref_id| !ref_id.is_empty()) {
        body.text(tags::BUSINESS_REJECT_REF_ID, ref_id);
    }
    body.number(tags::BUSINESS_REJECT_REASON, reason).text(tags::TEXT, text);
    body
}
