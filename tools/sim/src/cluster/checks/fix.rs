//! Each message of a FIX client is done once, under its number, as it asked; each report of the account reaches it once, in the order of
//! ExecID(17), and says what the log says; each order has one outcome.
//!
//! Known from outside the product: what the client sent under which number, the log, a replay's reports, and what the client was sent.

use std::collections::BTreeMap;

use walras_engine::{Engine, Numbered};
use walras_fix_orders::{Catalog, client_order, id_before, id_of};
use walras_sequencer::Content;
use walras_types::{AccountId, ClientOrderId, ClientOrderName, ContentDigest, LogIndex, OrderId, SessionId, Side, SizeLots};
use walras_wire::order_entry::ReportEvent;
use walras_wire::{CancelReason, Command, Event, InvalidCommand, OrderCommand, OrderEvent, SessionCommand, SessionEvent};

use super::reports::Expected;
use crate::cluster::fix::asked::FixAsked;
use crate::cluster::fix::message::{Received, Spoken};
use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "fix";

/// All FIX clients.
#[derive(Debug, Default)]
pub(super) struct FixSessions {
    clients: Vec<Of>,
    of_session: BTreeMap<SessionId, usize>,
    /// How many reports of an account replicas keep.
    kept: u64,
    heard: u64,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Rejected,
}

#[derive(Debug)]
struct Of {
    account: AccountId,
    token: u64,
    /// Its messages that become commands, by MsgSeqNum(34).
    asked: BTreeMap<u64, FixAsked>,
    /// The next number of its session.
    next: u64,
    /// Its session was opened by this entry.
    opened: Option<LogIndex>,
    /// The last ExecID that it was sent; those of reports from before its session count as sent.
    heard: u64,
    /// What it was sent of its orders.
    outcomes: BTreeMap<ClientOrderId, Outcome>,
    /// Messages that are done.
    done: u64,
}

impl FixSessions {
    pub(super) fn new(kept: u32) -> Self {
        Self { kept: kept.into(), ..Self::default() }
    }

    /// There is a client of these names.
    pub(super) fn add(&mut self, account: AccountId, own: &str, venue: &str) {
        // As ADR 21 has it.
        let token = ContentDigest::of_bytes(format!("FIX\n{own}\n{venue}").as_bytes()).0;
        let (asked, outcomes) = (BTreeMap::new(), BTreeMap::new());
        self.clients.push(Of { account, token, asked, next: 1, opened: None, heard: 0, outcomes, done: 0 });
    }

    /// A client sends something under a number, for the first time.
    pub(super) fn on_asked(&mut self, client: usize, seq: u64, asked: FixAsked) {
        self.clients[client].asked.insert(seq, asked);
    }

    /// Whether an entry is of a FIX session.
    pub(super) fn is_of_one(&self, replayed: &Replayed) -> bool {
        let entry = &replayed.entry;
        match (entry.ordinal, &entry.content) {
            (Some(ordinal), _) => self.of_session.contains_key(&ordinal.session),
            (None, Content::Command(Command::Session(SessionCommand::Open(open)))) => {
                self.clients.iter().any(|of| (Some(of.account), of.token) == (open.account, open.token))
            }
            (None, _) => false,
        }
    }

    /// The next command of a session, if it is one of these.
    pub(super) fn next_of(&self, session: SessionId) -> Option<u64> {
        self.of_session.get(&session).map(|client| self.clients[*client].next)
    }

    /// An entry of a FIX session.
    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let entry = &replayed.entry;
        for event in &replayed.events {
            if let Event::Session(SessionEvent::Opened(opened)) = event
                && let Some(client) = self.clients.iter().position(|of| of.token == opened.token)
            {
                // Who comes by another replica opens it again, and finds it.
                let is_another = self.of_session.insert(opened.session, client).is_none();
                if is_another && let Some(before) = self.clients[client].opened.replace(entry.log_index) {
                    let detail = format!("entry {}: FIX client {client} has a session since {before}", entry.log_index);
                    return Err(Violation::new(CHECK, detail));
                }
            }
        }
        let (Some(ordinal), Some(Numbered::Done(_))) = (entry.ordinal, replayed.numbered) else { return Ok(()) };
        let client = self.of_session[&ordinal.session];
        let of = &mut self.clients[client];
        let seq = ordinal.session_seq.0;
        let asked = of.asked.get(&seq);
        let command = entry.content.command();
        if seq != of.next || !command.is_some_and(|command| is_what(asked, command, of.account)) {
            let detail = format!(
                "entry {} does {command:?} as message {seq} of FIX client {client}, whose message {} is next and which asked {asked:?}",
                entry.log_index, of.next
            );
            return Err(Violation::new(CHECK, detail));
        }
        of.done += u64::from(asked.is_some());
        of.next += 1;
        Ok(())
    }

    /// A client takes a message: its account's reports are `expected`.
    pub(super) fn on_message(&mut self, client: usize, message: &Received, expected: &[Expected], engine: &Engine) -> Checked {
        let violation = |text: &str| Err(Violation::new(CHECK, format!("FIX client {client} gets {message:?}: {text}")));
        if message.text(35) != "8" || message.text(17).starts_with('S') {
            return Ok(());
        }
        let Some(number) = message.number(17) else { return violation("its ExecID is no number") };
        let of = &mut self.clients[client];
        let Some(opened) = of.opened else { return violation("it has no session") };
        of.heard = of.heard.max(from_before(expected, opened));
        if number <= of.heard {
            return violation(&format!("it had {} before", of.heard));
        }
        let Some(report) = at(expected, number) else { return violation("there is no such report yet") };
        let keeps_all = expected.len() as u64 <= self.kept;
        let skipped = (of.heard + 1..number).find(|number| at(expected, *number).is_some_and(must_be_told));
        if let Some(skipped) = skipped.filter(|_| keeps_all) {
            return violation(&format!("{skipped} is missing: {:?}", at(expected, skipped).map(|report| &report.event)));
        }
        of.heard = number;
        self.heard += 1;
        let catalog = Catalog::of(engine.instruments().map(|view| view.spec), engine.assets());
        let before = &expected[..usize::try_from(number).expect("it is a place in a list")];
        if let Err(text) = says(message, report, before, (&catalog, keeps_all)) {
            return violation(&format!("{text}: {:?}", report.event));
        }
        let outcome = match message.text(150) {
            "0" => Outcome::Accepted,
            "8" => Outcome::Rejected,
            _ => return Ok(()),
        };
        let id = id_of(message.text(11));
        if of.asked.values().any(|asked| matches!(asked, FixAsked::New { cl_ord_id, .. } if id_of(cl_ord_id) == id)) {
            // A change of an order that was rejected is, to a replica that does not know who asked for what, that order once more.
            match of.outcomes.insert(id, outcome) {
                None => {}
                Some(Outcome::Rejected) if outcome == Outcome::Rejected => {}
                // Nor does it know an order whose acceptance is not kept any more.
                Some(Outcome::Accepted) if outcome == Outcome::Rejected && !keeps_all => {
                    of.outcomes.insert(id, Outcome::Accepted);
                }
                Some(before) => return violation(&format!("its order was {before:?} already")),
            }
        }
        Ok(())
    }

    /// What a client still waits for. Replicas keep the account's reports from `first_kept` on: the venue fills the numbers of others.
    pub(super) fn waits_for(&self, client: usize, expected: &[Expected], first_kept: u64) -> Option<String> {
        let of = &self.clients[client];
        let Some(opened) = of.opened else { return Some("a session".to_owned()) };
        if let Some((seq, asked)) = of.asked.range(of.next..).next() {
            return Some(format!("its message {seq}, {asked:?}, to be done"));
        }
        let heard = of.heard.max(from_before(expected, opened)).max(first_kept - 1);
        let all = expected.len() as u64;
        if let Some(number) = (heard + 1..=all).find(|number| at(expected, *number).is_some_and(must_be_told)) {
            return Some(format!("report {number} of {all}"));
        }
        let unknown = of.asked.values().find(|asked| match asked {
            FixAsked::New { cl_ord_id, .. } => !of.outcomes.contains_key(&id_of(cl_ord_id)),
            FixAsked::Cancel | FixAsked::Replace { .. } | FixAsked::MassCancel => false,
        });
        unknown.filter(|_| all <= self.kept).map(|asked| format!("an outcome of {asked:?}"))
    }

    /// Execution reports that clients were sent, and messages that are done.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.heard, self.clients.iter().map(|of| of.done).sum()]
    }
}

/// Report of this number, from 1 on.
fn at(expected: &[Expected], number: u64) -> Option<&Expected> {
    expected.get(usize::try_from(number.checked_sub(1)?).ok()?)
}

/// How many reports are from before a session.
fn from_before(expected: &[Expected], opened: LogIndex) -> u64 {
    expected.partition_point(|report| report.log_index <= opened) as u64
}

/// Whether FIX has an execution report for it, by whatever way it was asked for.
fn must_be_told(report: &Expected) -> bool {
    match &report.event {
        ReportEvent::Filled(_) => true,
        ReportEvent::Event(Event::Order(event)) => match event {
            OrderEvent::Accepted(_)
            | OrderEvent::Amended(_)
            | OrderEvent::Cancelled(_)
            | OrderEvent::Reduced(_)
            | OrderEvent::Triggered(_) => true,
            OrderEvent::Replenished(_) | OrderEvent::Traded(_) => false,
        },
        // What it is in FIX depends on what was asked.
        ReportEvent::Event(_) => false,
    }
}

/// Whether a command is what a message asks.
fn is_what(asked: Option<&FixAsked>, command: &Command, account: AccountId) -> bool {
    // What the log does not take becomes its own rejection.
    let is_refused = |cl_ord_id: Option<&str>| {
        let Command::Invalid(invalid) = command else { return false };
        let is_it = |text: &str| invalid.client_order_id.is_some_and(|id| is_named(text, id, invalid.name));
        invalid.account == Some(account) && cl_ord_id.is_none_or(is_it)
    };
    match (asked, command) {
        (None, Command::Invalid(InvalidCommand { account: of, content: ContentDigest(0), .. })) => *of == Some(account),
        (None, _) => false,
        (
            Some(FixAsked::New { cl_ord_id, side, size }),
            Command::Order(order @ (OrderCommand::New(_) | OrderCommand::NewNamed(_))),
        ) => order.entered().is_some_and(|new| {
            let is_it = is_named(cl_ord_id, new.client_order_id, order.name());
            is_it && (new.account, new.terms.side, new.terms.size) == (account, *side, *size)
        }),
        (Some(FixAsked::New { cl_ord_id, .. }), _) => is_refused(Some(cl_ord_id.as_str())),
        (Some(FixAsked::Cancel), Command::Order(OrderCommand::Cancel(cancel))) => cancel.account == account,
        (Some(FixAsked::Replace { cl_ord_id }), Command::Order(order @ (OrderCommand::Amend(_) | OrderCommand::AmendNamed(_)))) => {
            // While FIX gives no names, the log has none of a replacement either.
            order.account() == account && order.replacement_name().is_none_or(|name| name.as_str() == cl_ord_id)
        }
        (Some(FixAsked::Replace { .. }), _) => is_refused(None),
        (Some(FixAsked::MassCancel), Command::Order(OrderCommand::MassCancel(mass))) => mass.account == account,
        (Some(FixAsked::Cancel | FixAsked::MassCancel), _) => false,
    }
}

/// Whether the log has an order as its client calls it: by the venue's name, or while FIX gives no names by the number from before.
fn is_named(cl_ord_id: &str, id: ClientOrderId, name: Option<ClientOrderName>) -> bool {
    let order = client_order(cl_ord_id);
    (order.id, order.name) == (id, name) || (id_before(cl_ord_id), None) == (id, name)
}

/// Whether a message says what a report does; `before` are the account's reports up to it.
fn says(message: &Received, report: &Expected, before: &[Expected], (catalog, keeps_all): (&Catalog, bool)) -> Result<(), String> {
    let field = |tag: u32, name: &str, wanted: &str| match message.text(tag) {
        found if found == wanted => Ok(()),
        found => Err(format!("{name}({tag}) is {found}, not {wanted}")),
    };
    let order_is = |order_id: OrderId| field(37, "OrderID", &order_id.0.to_string());
    let spoken = message.spoken().ok_or_else(|| "it is of no version".to_owned())?;
    match &report.event {
        ReportEvent::Filled(e) => {
            order_is(e.order_id)?;
            let status = if e.open.is_zero() { "2" } else { "1" };
            field(150, "ExecType", if spoken == Spoken::Fix42 { status } else { "F" })?;
            field(39, "OrdStatus", status)?;
            field(54, "Side", if e.side == Side::Buy { "1" } else { "2" })?;
            // Of an instrument whose numbers are no decimals nothing more is said.
            let Some(listed) = catalog.get(e.instrument) else { return Ok(()) };
            field(32, "LastQty", &listed.scale.size(e.size).to_string())?;
            field(31, "LastPx", &listed.scale.price(e.price).to_string())?;
            field(151, "LeavesQty", &listed.scale.size(e.open).to_string())?;
            if !keeps_all {
                return Ok(());
            }
            let traded = before.iter().filter_map(|report| match &report.event {
                ReportEvent::Filled(of) if of.order_id == e.order_id => Some(of.size.get()),
                _ => None,
            });
            field(14, "CumQty", &listed.scale.size(SizeLots::new(traded.sum())).to_string())
        }
        ReportEvent::Event(Event::Order(OrderEvent::Accepted(e))) => {
            order_is(e.order_id)?;
            field(150, "ExecType", "0")?;
            field(54, "Side", if e.side == Side::Buy { "1" } else { "2" })
        }
        ReportEvent::Event(Event::Order(OrderEvent::Amended(e))) => {
            order_is(e.order_id)?;
            // At whichever replica or gateway. One that gives the ClOrdID of the entry again is no news but to its sender.
            if let Some(name) = report.replacement.filter(|name| id_of(name.as_str()) != e.client_order_id) {
                field(11, "ClOrdID", name.as_str())?;
            }
            field(150, "ExecType", "5")
        }
        ReportEvent::Event(Event::Order(OrderEvent::Cancelled(e))) => {
            order_is(e.order_id)?;
            let has_expired = matches!(e.reason, CancelReason::Expired | CancelReason::DayEnded);
            field(150, "ExecType", if has_expired { "C" } else { "4" })?;
            let is_nothing = message.text(151).trim_matches(['0', '.']).is_empty();
            if is_nothing { Ok(()) } else { field(151, "LeavesQty", "0") }
        }
        ReportEvent::Event(Event::Order(OrderEvent::Reduced(e))) => {
            order_is(e.order_id)?;
            field(150, "ExecType", if e.resting.open.is_zero() { "4" } else { "D" })
        }
        ReportEvent::Event(Event::Order(OrderEvent::Triggered(e))) => {
            order_is(e.order_id)?;
            field(150, "ExecType", if spoken == Spoken::Fix50Sp2 { "L" } else { "D" })
        }
        ReportEvent::Event(Event::Rejected(_)) => field(150, "ExecType", "8"),
        ReportEvent::Event(_) => Err("it is no report of an order".to_owned()),
    }
}
