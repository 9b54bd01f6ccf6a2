//! Dead man's switches: accounts whose orders are cancelled at a time of the log, unless they say otherwise before.
//!
//! What is set follows from the log, so every replica knows it, and a snapshot has it. Whoever leads enters the cancel when its time has
//! come. The cancel has a fingerprint that follows from the entry that set the switch, and the state takes a fingerprint once: so a switch
//! fires once, whoever leads and however often it is tried, and it is forgotten when the log has its cancel.

use std::collections::BTreeMap;

use walras_consensus::Term;
use walras_engine::Numbered;
use walras_sequencer::{Entry, GatewayTime, NotTaken, ReplicatedSequencer, SignedBy};
use walras_types::{AccountId, KeyTag, LogIndex, NonceFingerprint, NonceUse, RejectReason, TimeNs};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{CancelAfter, Command, DecodeError, Event, OrderCommand};

use crate::Origin;
use crate::pending_cancels::all_of;

/// A cancel that was not taken is entered again after this.
const RETRY_NS: u64 = 1_000_000;
/// A cancel is remembered for so long, by the log's time.
const REMEMBERED_NS: u64 = 60_000_000_000;

/// A switch that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    /// By which entry.
    set: LogIndex,
    /// When it fires.
    due: TimeNs,
}

/// The switches that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelTimers(BTreeMap<AccountId, Timer>);

/// By which the cancel of a switch is known in the log: no nonce and no cancel on disconnect begins so.
fn fingerprint(account: AccountId, set: LogIndex) -> NonceFingerprint {
    let mut bytes = [0xff; 16];
    bytes[4..8].copy_from_slice(&account.0.to_le_bytes());
    bytes[8..].copy_from_slice(&set.0.to_le_bytes());
    NonceFingerprint(bytes)
}

impl CancelTimers {
    /// An entry was applied, with these events.
    pub(crate) fn on_entry(&mut self, entry: &Entry, numbered: Option<Numbered>, events: &[Event]) {
        let Some(Command::Order(command)) = entry.content.command() else { return };
        let is_refused = matches!(numbered, Some(Numbered::Refused(_) | Numbered::Repeated(_)));
        match command {
            OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }) => {
                if is_refused || events.iter().any(|event| matches!(event, Event::Rejected(_))) {
                    return;
                }
                let due = TimeNs(entry.time.0.saturating_add(timeout_ms.saturating_mul(1_000_000)));
                match timeout_ms {
                    0 => self.0.remove(account),
                    _ => self.0.insert(*account, Timer { set: entry.log_index, due }),
                };
            }
            OrderCommand::MassCancel(cancel) => {
                let used = entry.nonce.as_ref().map(|nonce| nonce.fingerprint);
                let is_it = |timer: &Timer| used == Some(fingerprint(cancel.account, timer.set));
                if !is_refused && self.0.get(&cancel.account).is_some_and(is_it) {
                    self.0.remove(&cancel.account);
                }
            }
            OrderCommand::New(_)
            | OrderCommand::NewNamed(_)
            | OrderCommand::NewLinked(_)
            | OrderCommand::Cancel(_)
            | OrderCommand::Amend(_) => {}
        }
    }

    /// When an account's switch fires, if it is set.
    #[must_use]
    pub fn due(&self, account: AccountId) -> Option<TimeNs> {
        self.0.get(&account).map(|timer| timer.due)
    }

    /// When the next one fires.
    fn next(&self) -> Option<TimeNs> {
        self.0.values().map(|timer| timer.due).min()
    }

    /// Appends all of it to a snapshot.
    pub(crate) fn snapshot(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        w.u32(u32::try_from(self.0.len()).expect("accounts are numbered in 32 bits"));
        for (account, Timer { set, due }) in &self.0 {
            account.put(w);
            set.put(w);
            due.put(w);
        }
    }

    /// Reads what [`CancelTimers::snapshot`] wrote, and nothing else.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let mut timers = BTreeMap::new();
        for _ in 0..r.u32()? {
            let (account, set, due) = (AccountId::get(r)?, Wire::get(r)?, Wire::get(r)?);
            if timers.last_key_value().is_some_and(|(last, _)| account <= *last) {
                return Err(r.expected("an account above the one before"));
            }
            timers.insert(account, Timer { set, due });
        }
        r.clone().finish()?;
        Ok(Self(timers))
    }
}

/// What this replica, as the leader, has entered of the cancels that are due.
#[derive(Debug, Default)]
pub(crate) struct Firing {
    entered: BTreeMap<AccountId, (LogIndex, Term)>,
    next_ns: u64,
}

impl Firing {
    /// Enters the cancels that are due, where this replica leads.
    pub(crate) fn round(&mut self, at: GatewayTime, timers: &CancelTimers, sequencer: &mut ReplicatedSequencer<Origin>) {
        if timers.0.is_empty() || at.now_ns < self.next_ns || !sequencer.is_leading() {
            return;
        }
        let term = sequencer.status().term;
        self.entered.retain(|account, (set, _)| timers.0.get(account).is_some_and(|timer| timer.set == *set));
        for (account, timer) in timers.0.iter().filter(|(_, timer)| timer.due <= at.now) {
            if self.entered.get(account) == Some(&(timer.set, term)) {
                continue;
            }
            let until = TimeNs(sequencer.engine().time().max(at.now).0.saturating_add(REMEMBERED_NS));
            let nonce = NonceUse { key: KeyTag(account.0.into()), fingerprint: fingerprint(*account, timer.set), until };
            let signed = SignedBy { key: None, nonce: Some(Box::new(nonce)) };
            let cancel = Command::Order(OrderCommand::MassCancel(all_of(*account)));
            match sequencer.submit_urgent(at.now, &signed, &cancel, None) {
                Ok(()) | Err((NotTaken::Refused(RejectReason::NonceReused), _)) => {
                    self.entered.insert(*account, (timer.set, term));
                }
                Err(_) => self.next_ns = at.now_ns.saturating_add(RETRY_NS),
            }
        }
    }

    /// A cancel that was entered was not carried out: it is entered again.
    pub(crate) fn on_refused(&mut self, account: AccountId) {
        self.entered.remove(&account);
    }

    /// When [`Self::round`] has something to do.
    pub(crate) fn deadline_ns(&self, at: GatewayTime, timers: &CancelTimers, term: Option<Term>) -> u64 {
        let Some(term) = term else { return u64::MAX };
        let waits = |(account, timer): (&AccountId, &Timer)| self.entered.get(account) != Some(&(timer.set, term));
        if !timers.0.iter().any(waits) {
            return u64::MAX;
        }
        let due = timers.0.iter().filter(|one| waits((one.0, one.1))).map(|(_, timer)| timer.due).min();
        let due_ns = due.or(timers.next()).map_or(u64::MAX, |due| at.now_ns.saturating_add(due.0.saturating_sub(at.now.0)));
        due_ns.max(self.next_ns)
    }
}

#[cfg(test)]
mod tests {
    use walras_types::RejectReason;
    use walras_wire::Rejected;

    use super::*;

    fn entry(log_index: u64, time: u64, command: OrderCommand, nonce: Option<NonceFingerprint>) -> Entry {
        let nonce = nonce.map(|fingerprint| Box::new(NonceUse { key: KeyTag(0), fingerprint, until: TimeNs(u64::MAX) }));
        let content = Command::Order(command).into();
        Entry { log_index: LogIndex(log_index), time: TimeNs(time), ordinal: None, key: None, nonce, content }
    }

    fn after(account: u32, timeout_ms: u64) -> OrderCommand {
        OrderCommand::CancelAfter(CancelAfter { account: AccountId(account), timeout_ms })
    }

    #[test]
    fn a_switch_is_set_moved_switched_off_and_fires_once() {
        let mut timers = CancelTimers::default();
        timers.on_entry(&entry(1, 100, after(3, 2), None), None, &[]);
        timers.on_entry(&entry(2, 100, after(4, 5), None), None, &[]);
        assert_eq!((timers.due(AccountId(3)), timers.next()), (Some(TimeNs(2_000_100)), Some(TimeNs(2_000_100))));
        let mut bytes = Vec::new();
        timers.snapshot(&mut bytes);
        assert_eq!(CancelTimers::restore(&bytes), Ok(timers.clone()));
        assert!(CancelTimers::restore(&bytes[..bytes.len() - 1]).is_err());
        // Said again: the cancel of the first time is of no switch any more.
        timers.on_entry(&entry(3, 200, after(3, 9), None), None, &[]);
        let cancel = OrderCommand::MassCancel(all_of(AccountId(3)));
        let fires = |set| Some(fingerprint(AccountId(3), LogIndex(set)));
        timers.on_entry(&entry(4, 300, cancel, fires(1)), None, &[]);
        timers.on_entry(&entry(5, 300, cancel, None), None, &[]);
        assert_eq!(timers.due(AccountId(3)), Some(TimeNs(9_000_200)), "the account's own cancel leaves it set");
        let refused = Some(Numbered::Refused(RejectReason::Throttled));
        timers.on_entry(&entry(6, 300, cancel, fires(3)), refused, &[]);
        assert!(timers.due(AccountId(3)).is_some(), "it was not carried out");
        timers.on_entry(&entry(7, 300, cancel, fires(3)), None, &[]);
        timers.on_entry(&entry(8, 300, after(4, 0), None), None, &[]);
        assert_eq!(timers, CancelTimers::default());
        let rejected = Event::Rejected(Rejected {
            account: Some(AccountId(9)),
            instrument: None,
            client_order_id: None,
            reason: RejectReason::UnknownAccount,
        });
        timers.on_entry(&entry(9, 300, after(9, 1), None), None, &[rejected]);
        assert_eq!(timers, CancelTimers::default());
    }
}
