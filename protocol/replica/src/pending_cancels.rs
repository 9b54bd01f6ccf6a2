//! Cancels on disconnect that the log does not have yet, where fair access is switched off.
//!
//! A replica that saw a connection end keeps the request while the log does not take it, and submits it again where it leads, now or later.
//! Each session has one request. Each has a fingerprint, and the replicated state takes a fingerprint once
//! (`walras_types::NonceUse`): what was ordered later is not cancelled.
//!
//! *Deliberately absent*: other replicas that lead. They may know what this one does not, that the client is back and has ordered again.

use std::collections::BTreeMap;

use walras_consensus::Term;
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{GatewayTime, NotTaken, ReplicatedSequencer, behind_fingerprint, behind_nonce};
use walras_types::{AccountId, NonceFingerprint, RejectReason, SessionId};
use walras_wire::{Command, MassCancel, OrderCommand};

use crate::Origin;

/// A request that was not taken is submitted again after this.
const RETRY_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Pending {
    /// When the connection ended, by the time of day here.
    ended: Stamp,
    /// The term in which this replica, as the leader, took it to the log.
    taken: Option<Term>,
}

/// By account and session.
#[derive(Debug, Default)]
pub(crate) struct PendingCancels {
    waiting: BTreeMap<(AccountId, SessionId), Pending>,
    next_ns: u64,
}

impl PendingCancels {
    /// A connection has ended whose client wanted its orders cancelled then.
    pub(crate) fn wait(&mut self, account: AccountId, session: SessionId, ended: Stamp) {
        self.next_ns = 0;
        self.waiting.entry((account, session)).or_insert(Pending { ended, taken: None });
    }

    /// Submits what waits, where this replica leads.
    pub(crate) fn round(&mut self, at: GatewayTime, sequencer: &mut ReplicatedSequencer<Origin>) {
        if self.waiting.is_empty() || at.now_ns < self.next_ns || !sequencer.is_leading() {
            return;
        }
        self.next_ns = at.now_ns.saturating_add(RETRY_NS);
        let term = sequencer.status().term;
        self.waiting.retain(|(account, session), pending| {
            if pending.taken == Some(term) {
                return true;
            }
            let signed = behind_nonce(*account, *session, pending.ended, sequencer.engine().time().max(at.now));
            let cancel = Command::Order(OrderCommand::MassCancel(all_of(*account)));
            match sequencer.submit_urgent(at.now, &signed, &cancel, None) {
                Ok(()) => pending.taken = Some(term),
                // The log has it already.
                Err((NotTaken::Refused(RejectReason::NonceReused), _)) => return false,
                Err(_) => {}
            }
            true
        });
    }

    /// The log has the request with this fingerprint. Another session's stays: it may have ordered since.
    pub(crate) fn on_done(&mut self, account: AccountId, fingerprint: NonceFingerprint) {
        let is_it = |session: SessionId, pending: &Pending| behind_fingerprint(session, pending.ended) == Some(fingerprint);
        self.waiting.retain(|(of, session), pending| *of != account || !is_it(*session, pending));
    }

    /// An account has opened a session: it is back.
    pub(crate) fn on_back(&mut self, account: AccountId) {
        self.waiting.retain(|(of, _), _| *of != account);
    }

    /// The state did not take a request: it remembers as many as it may.
    pub(crate) fn on_refused(&mut self, account: AccountId) {
        self.waiting.iter_mut().filter(|((of, _), _)| *of == account).for_each(|(_, pending)| pending.taken = None);
    }

    /// The state is another one: it may have cancelled already, and the account may be back.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// When [`Self::round`] has something to do, where this replica leads that term.
    pub(crate) fn deadline_ns(&self, term: Option<Term>) -> u64 {
        let is_waiting = term.is_some() && self.waiting.values().any(|pending| pending.taken != term);
        if is_waiting { self.next_ns } else { u64::MAX }
    }
}

pub(crate) fn all_of(account: AccountId) -> MassCancel {
    MassCancel { account, instrument: None, side: None }
}
