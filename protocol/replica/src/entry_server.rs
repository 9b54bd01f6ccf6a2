//! The venue's side of one connection, of either kind.

use std::sync::Arc;

use walras_fix_orders::{Catalog, FixServer, Memory};
use walras_gateway::session::{Ended, FrameOutcome, Host, SessionServer, SessionStart};
use walras_gateway::{Principal, Refusal};
use walras_sequencer::GatewayTime;
use walras_types::{AccountId, Answer, ClientOrderName, Ordinal, RejectReason, TimeNs};
use walras_wire::order_entry::{ByeReason, Report};

/// Binary order entry, or FIX.
#[expect(clippy::large_enum_variant, reason = "most connections are binary, and each of their commands comes by here")]
pub(crate) enum EntryServer {
    /// `docs/order-entry.md`.
    Binary(SessionServer),
    /// `docs/fix.md`.
    Fix(Box<FixServer>),
}

impl EntryServer {
    pub(crate) fn on_bytes(&mut self, at: GatewayTime, bytes: &[u8], host: &mut impl Host) {
        match self {
            Self::Binary(server) => server.on_bytes(at.now_ns, bytes, host),
            Self::Fix(server) => server.on_bytes(at.now_ns, at.now.0, bytes, host),
        }
    }

    pub(crate) fn authenticated(&mut self, verdict: Result<Principal, Refusal>, host: &mut impl Host) {
        match self {
            Self::Binary(server) => server.authenticated(verdict, host),
            Self::Fix(server) => server.authenticated(verdict, host),
        }
    }

    /// `memory` is what is remembered of a FIX session.
    pub(crate) fn opened(&mut self, now_ns: u64, start: SessionStart, memory: Option<Memory>) {
        match self {
            Self::Binary(server) => server.opened(now_ns, start),
            Self::Fix(server) => server.opened(now_ns, start, memory),
        }
    }

    pub(crate) fn answer(&mut self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>) {
        match self {
            Self::Binary(server) => server.answer(ordinal, answer, time),
            Self::Fix(server) => server.answer(ordinal, answer, time),
        }
    }

    pub(crate) fn transactions_done(&mut self, outcome: &FrameOutcome) {
        match self {
            Self::Binary(server) => server.transactions_done(outcome),
            Self::Fix(_) => unreachable!("FIX has no message for transactions"),
        }
    }

    pub(crate) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason, retry_after_ns: Option<u64>) {
        match self {
            Self::Binary(server) => server.refused(ordinal, reason, retry_after_ns),
            Self::Fix(server) => server.refused(ordinal, reason, retry_after_ns),
        }
    }

    pub(crate) fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        match self {
            Self::Binary(server) => server.late(ordinal, late_ns),
            // FIX has no message for it.
            Self::Fix(_) => {}
        }
    }

    /// They come in order from the logon on, so none is missing. Binary order entry has numbers of orders and no texts.
    pub(crate) fn report(&mut self, report: &Report<'_>, name: Option<ClientOrderName>) {
        match self {
            Self::Binary(server) => {
                let _ = server.report(report);
            }
            Self::Fix(server) => server.report(report, name),
        }
    }

    /// The last report that it has taken, or that came before its first one; `None` where it takes none.
    pub(crate) fn reports_had(&self) -> Option<u64> {
        match self {
            Self::Binary(server) => server.reports_had(),
            Self::Fix(server) => server.reports_had(),
        }
    }

    /// Whether its old session is closed before it begins: until then it takes no reports.
    pub(crate) fn closes_first(&self) -> bool {
        match self {
            Self::Binary(_) => false,
            Self::Fix(server) => server.closes_first(),
        }
    }

    pub(crate) fn not_leader(&mut self, leader: &str) {
        match self {
            Self::Binary(server) => server.not_leader(leader),
            Self::Fix(server) => server.not_leader(leader),
        }
    }

    pub(crate) fn closed(&mut self) {
        match self {
            Self::Binary(server) => {
                server.bye(ByeReason::Rejected(RejectReason::UnknownSession), "The session was closed.");
            }
            Self::Fix(server) => server.closed(),
        }
    }

    pub(crate) fn bye(&mut self, reason: ByeReason, text: &str) {
        match self {
            Self::Binary(server) => server.bye(reason, text),
            Self::Fix(server) => server.bye(reason, text),
        }
    }

    pub(crate) fn on_disconnect(&mut self) {
        match self {
            Self::Binary(server) => server.on_disconnect(),
            Self::Fix(server) => server.on_disconnect(),
        }
    }

    pub(crate) fn on_timer(&mut self, now_ns: u64) {
        match self {
            Self::Binary(server) => server.on_timer(now_ns),
            Self::Fix(server) => server.on_timer(now_ns),
        }
    }

    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Binary(server) => server.deadline_ns(),
            Self::Fix(server) => server.deadline_ns(),
        }
    }

    pub(crate) fn take_ended(&mut self) -> Option<Ended> {
        match self {
            Self::Binary(server) => server.take_ended(),
            Self::Fix(server) => server.take_ended(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Binary(server) => server.is_over(),
            Self::Fix(server) => server.is_over(),
        }
    }

    pub(crate) fn output(&self) -> &[u8] {
        match self {
            Self::Binary(server) => server.output(),
            Self::Fix(server) => server.output(),
        }
    }

    pub(crate) fn consume(&mut self, len: usize) {
        match self {
            Self::Binary(server) => server.consume(len),
            Self::Fix(server) => server.consume(len),
        }
    }

    pub(crate) fn set_catalog(&mut self, catalog: &Arc<Catalog>) {
        match self {
            Self::Binary(_) => {}
            Self::Fix(server) => server.set_catalog(Arc::clone(catalog)),
        }
    }

    pub(crate) fn is_fix(&self) -> bool {
        matches!(self, Self::Fix(_))
    }

    pub(crate) fn go_on(&mut self, now_ns: u64, host: &mut impl Host) {
        match self {
            Self::Binary(_) => {}
            Self::Fix(server) => server.go_on(now_ns, host),
        }
    }

    pub(crate) fn has_turn(&self) -> bool {
        match self {
            Self::Binary(_) => false,
            Self::Fix(server) => server.has_turn(),
        }
    }

    pub(crate) fn remembered_as(&self) -> Option<(AccountId, u64)> {
        match self {
            Self::Binary(_) => None,
            Self::Fix(server) => server.remembered_as(),
        }
    }

    pub(crate) fn take_memory(&mut self) -> Option<(AccountId, u64, Memory)> {
        match self {
            Self::Binary(_) => None,
            Self::Fix(server) => server.take_memory(),
        }
    }
}
