//! A replica's end of the links with leaf gateways ([`crate::leaf`]): it takes what their participants send as it takes what its own
//! do, and sends back what came of it.
//!
//! What is known of a leaf is from its last question on, and is lost with the link: the leaf says it again, here or elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_fair_access::resequence::Stamp;
use walras_gateway::session::{Reports, Resend, SessionStart};
use walras_sequencer::GatewayMessage;
use walras_types::{AccountId, Answer, ClientOrderName, NonceFingerprint, Ordinal, RejectReason, SessionId, TimeNs};
use walras_wire::order_entry::{Report, ReportsWanted};
use walras_wire::{Event, InstrumentEvent, OpenSession, VenueEvent};

use crate::effect::Effect;
use crate::leaf::{LeafMessage, LeafSession, PublicationMark};
use crate::resends::Resends;

/// Sessions of one leaf.
const SESSIONS_MAX: usize = 1 << 16;

/// A leaf that asked.
#[derive(Debug)]
struct Linked {
    epoch: u64,
    /// The state has come as far as it must have; what the leaf says before that does not count.
    is_attached: bool,
    sessions: BTreeMap<SessionId, LeafSession>,
    /// How many of the sessions want reports of an account.
    accounts: BTreeMap<AccountId, usize>,
    /// Cancels that the log does not have yet, by the session that was lost.
    cancels: BTreeMap<SessionId, (AccountId, Option<NonceFingerprint>)>,
    /// Its last watermark.
    shown: Option<Stamp>,
    /// It has asked for the lists.
    lists: bool,
    /// It has asked for the texts of orders.
    names: bool,
}

impl Linked {
    fn forget(&mut self, session: SessionId) -> Option<LeafSession> {
        let gone = self.sessions.remove(&session)?;
        if let Some(account) = reports_of(&gone)
            && let Some(count) = self.accounts.get_mut(&account)
        {
            *count -= 1;
            if *count == 0 {
                self.accounts.remove(&account);
            }
        }
        Some(gone)
    }
}

/// The account whose reports a session wants.
fn reports_of(session: &LeafSession) -> Option<AccountId> {
    session.account.filter(|_| session.wanted != ReportsWanted::None)
}

/// All leaves.
#[derive(Debug)]
pub(crate) struct Leaves {
    known: BTreeSet<ReplicaId>,
    linked: BTreeMap<ReplicaId, Linked>,
    /// Counts up whenever another leaf stands below this replica, or one has more sessions or fewer.
    changes: u64,
    /// Logons that wait for a session, by its account and token: of which leaves, with the clients' numbers.
    opening: Opening,
    /// When leaves are to hear again that orders come.
    next_wake_ns: u64,
}

/// Leaves hear this often that orders come somewhere in the venue, so that their watermarks go on.
const WAKE_NS: u64 = 1_000_000;

type Opening = BTreeMap<(Option<AccountId>, u64), Vec<(ReplicaId, u64)>>;

impl Leaves {
    /// These may be linked.
    pub(crate) fn new(known: BTreeSet<ReplicaId>) -> Self {
        Self { known, linked: BTreeMap::new(), changes: 0, opening: BTreeMap::new(), next_wake_ns: 0 }
    }

    /// These may be linked from now on.
    pub(crate) fn set_known(&mut self, known: BTreeSet<ReplicaId>) {
        let gone: Vec<ReplicaId> = self.known.difference(&known).copied().collect();
        gone.into_iter().for_each(|leaf| self.forget(leaf));
        self.known = known;
    }

    /// Whether this is a leaf, and no replica.
    pub(crate) fn is_one(&self, id: ReplicaId) -> bool {
        self.known.contains(&id)
    }

    /// How often those below changed; a number seen before says that they did not.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Those below this replica, with how many sessions each has.
    pub(crate) fn below(&self) -> BTreeMap<ReplicaId, usize> {
        let attached = self.linked.iter().filter(|(_, linked)| linked.is_attached);
        attached.map(|(leaf, linked)| (*leaf, linked.sessions.len())).collect()
    }

    /// A leaf asks this replica to be the one above.
    pub(crate) fn ask(&mut self, leaf: ReplicaId, epoch: u64) {
        self.forget(leaf);
        let (sessions, accounts, cancels) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (is_attached, shown, lists, names) = (false, None, false, false);
        self.linked.insert(leaf, Linked { epoch, is_attached, sessions, accounts, cancels, shown, lists, names });
    }

    /// Nothing more is known of a leaf.
    pub(crate) fn forget(&mut self, leaf: ReplicaId) {
        self.changes += 1;
        self.linked.remove(&leaf);
        self.opening.retain(|_, leaves| {
            leaves.retain(|(other, _)| *other != leaf);
            !leaves.is_empty()
        });
    }

    /// The state has come so far that a leaf may begin.
    pub(crate) fn attach(&mut self, leaf: ReplicaId, epoch: u64, effects: &mut Vec<Effect>) {
        if let Some(linked) = self.linked.get_mut(&leaf).filter(|linked| linked.epoch == epoch) {
            linked.is_attached = true;
            self.changes += 1;
            send(effects, leaf, &LeafMessage::Attached { epoch });
        }
    }

    /// Whether what a leaf says counts.
    pub(crate) fn is_attached(&self, leaf: ReplicaId) -> bool {
        self.linked.get(&leaf).is_some_and(|linked| linked.is_attached)
    }

    /// A leaf says that it has sent all that it has stamped up to this time, since it asked in this epoch; or that it stamps nothing.
    pub(crate) fn show(&mut self, leaf: ReplicaId, epoch: u64, until: Stamp) {
        if let Some(linked) = self.linked.get_mut(&leaf).filter(|linked| linked.epoch == epoch) {
            linked.shown = Some(until);
        }
    }

    /// All leaves that stand below have sent their orders with stamps up to this time.
    pub(crate) fn sent_until_ns(&self) -> u64 {
        let shown = self.linked.values().filter(|linked| linked.is_attached).map(|linked| match linked.shown {
            None => 0,
            Some(Stamp::Gateway(until_ns)) => until_ns,
            Some(Stamp::OnArrival) => u64::MAX,
        });
        shown.min().unwrap_or(u64::MAX)
    }

    /// Lets leaves know now and then that orders come, so that their watermarks go on: they hear of no orders but their own. The last order
    /// somewhere in the venue came `quiet_ns` ago.
    pub(crate) fn wake(&mut self, now_ns: u64, quiet_ns: u64, effects: &mut Vec<Effect>) {
        if now_ns < self.next_wake_ns {
            return;
        }
        self.next_wake_ns = now_ns.saturating_add(WAKE_NS.max(quiet_ns / 4));
        for (leaf, _) in self.linked.iter().filter(|(_, linked)| linked.is_attached) {
            send(effects, *leaf, &LeafMessage::Busy);
        }
    }

    /// A leaf is to go elsewhere, to this replica if it is known.
    pub(crate) fn detach(&mut self, leaf: ReplicaId, to: Option<ReplicaId>, effects: &mut Vec<Effect>) {
        if let Some(Linked { epoch, .. }) = self.linked.get(&leaf) {
            send(effects, leaf, &LeafMessage::Detached { epoch: *epoch, to });
            self.forget(leaf);
        }
    }

    /// All are to go elsewhere.
    pub(crate) fn detach_all(&mut self, to: Option<ReplicaId>, effects: &mut Vec<Effect>) {
        let leaves: Vec<ReplicaId> = self.linked.keys().copied().collect();
        leaves.into_iter().for_each(|leaf| self.detach(leaf, to, effects));
    }

    /// A logon at a leaf waits for this session.
    pub(crate) fn wait(&mut self, leaf: ReplicaId, open: &OpenSession, logon_seq: u64) {
        let leaves = self.opening.entry((open.account, open.token)).or_default();
        leaves.retain(|(other, _)| *other != leaf);
        leaves.push((leaf, logon_seq));
    }

    /// The log has opened a session, or refused to, for each leaf that waits for it.
    pub(crate) fn opened(&mut self, open: &OpenSession, outcome: Result<SessionId, RejectReason>, effects: &mut Vec<Effect>) {
        for (leaf, logon_seq) in self.opening.remove(&(open.account, open.token)).unwrap_or_default() {
            let open = *open;
            let message = match outcome {
                Ok(session) => LeafMessage::Opened { open, logon_seq, session },
                Err(reason) => LeafMessage::Gateway(GatewayMessage::NotOpened { open, reason }),
            };
            send(effects, leaf, &message);
        }
    }

    /// A leaf wants to know the venue's assets and instruments, which it hears once, and then of each new one.
    pub(crate) fn list(&mut self, leaf: ReplicaId, engine: &Engine, effects: &mut Vec<Effect>) {
        let is_first = self.linked.get_mut(&leaf).is_some_and(|linked| !std::mem::replace(&mut linked.lists, true));
        if !is_first {
            return;
        }
        engine.assets().iter().for_each(|spec| send(effects, leaf, &LeafMessage::Asset(*spec)));
        engine.instruments().for_each(|view| send(effects, leaf, &LeafMessage::Instrument(Box::new(view.spec))));
        send(effects, leaf, &LeafMessage::Listed);
    }

    /// A leaf wants its reports with the texts of orders from now on, and to know the engine's version.
    pub(crate) fn name(&mut self, leaf: ReplicaId, engine: &Engine, effects: &mut Vec<Effect>) {
        if let Some(linked) = self.linked.get_mut(&leaf) {
            linked.names = true;
            send(effects, leaf, &LeafMessage::Version(engine.version()));
        }
    }

    /// An entry's events: leaves that know the lists hear what is new in them, and those that know the version hear of another one.
    pub(crate) fn list_new(&self, events: &[Event], effects: &mut Vec<Effect>) {
        for (leaf, linked) in &self.linked {
            if linked.lists {
                events.iter().filter_map(listed).for_each(|message| send(effects, *leaf, &message));
            }
            if linked.names {
                events.iter().filter_map(version_set).for_each(|message| send(effects, *leaf, &message));
            }
        }
    }

    /// Market data is published at an entry: leaves that give it out merge over the same entries.
    pub(crate) fn published(&self, mark: PublicationMark, effects: &mut Vec<Effect>) {
        for (leaf, _) in self.linked.iter().filter(|(_, linked)| linked.lists) {
            send(effects, *leaf, &LeafMessage::Published(mark));
        }
    }

    /// A leaf serves a session: it gets what the session begins with, and the reports that its connection lacks.
    pub(crate) fn begin(
        &mut self,
        leaf: ReplicaId,
        begin: LeafSession,
        (engine, reports): (&Engine, &Reports),
        (now_ns, resends): (u64, &mut Resends),
        effects: &mut Vec<Effect>,
    ) {
        let LeafSession { session, account, logon_seq, wanted, .. } = begin;
        let Some(linked) = self.linked.get_mut(&leaf) else { return };
        let view = engine.session(session).filter(|view| view.account == account);
        let reason = match view {
            None => Some(RejectReason::UnknownSession),
            Some(_) if linked.sessions.len() >= SESSIONS_MAX => Some(RejectReason::Overloaded),
            Some(_) => None,
        };
        let (Some(view), None) = (view, reason) else {
            let reason = reason.unwrap_or(RejectReason::UnknownSession);
            return send(effects, leaf, &LeafMessage::NotBegun { session, logon_seq, reason });
        };
        let start = SessionStart::new(session, view.next, account, wanted, reports);
        if !resends.allow(now_ns, account, &start) {
            let reason = RejectReason::Throttled;
            return send(effects, leaf, &LeafMessage::NotBegun { session, logon_seq, reason });
        }
        let has_names = linked.names;
        let before = linked.forget(session);
        // Of two connections that share it, one may want reports.
        let wanted_before = before.map_or(ReportsWanted::None, |before| before.wanted);
        let kept = if wanted == ReportsWanted::None { wanted_before } else { wanted };
        let held = LeafSession { wanted: kept, ..begin };
        linked.sessions.insert(session, held);
        self.changes += 1;
        if let Some(account) = reports_of(&held) {
            *linked.accounts.entry(account).or_default() += 1;
        }
        send(effects, leaf, &LeafMessage::Begun { logon_seq, start });
        if let Some(account) = account.filter(|_| start.reports_from <= start.report_seq)
            && let Resend::Found(missed) = reports.resend_named(account, start.reports_from - 1)
        {
            missed.for_each(|(report, name)| reported(effects, leaf, account, &report, name.filter(|_| has_names)));
        }
    }

    /// A leaf serves a session no more.
    pub(crate) fn leave(&mut self, leaf: ReplicaId, session: SessionId) {
        if let Some(linked) = self.linked.get_mut(&leaf) {
            self.changes += u64::from(linked.forget(session).is_some());
        }
    }

    /// The session of a command that a leaf sends, if it serves it.
    pub(crate) fn session(&self, leaf: ReplicaId, session: SessionId) -> Option<LeafSession> {
        self.linked.get(&leaf)?.sessions.get(&session).copied()
    }

    /// What came of a session's command.
    pub(crate) fn answer(&self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>, effects: &mut Vec<Effect>) {
        self.each_with(ordinal.session, |leaf, _| send(effects, leaf, &LeafMessage::Answered { ordinal, answer, time }));
    }

    /// A session's command is not taken.
    pub(crate) fn refused(&self, ordinal: Ordinal, reason: RejectReason, effects: &mut Vec<Effect>) {
        let message = LeafMessage::Gateway(GatewayMessage::Refused { ordinal, reason });
        self.each_with(ordinal.session, |leaf, _| send(effects, leaf, &message));
    }

    /// A session's command was late.
    pub(crate) fn late(&self, ordinal: Ordinal, late_ns: u64, effects: &mut Vec<Effect>) {
        let message = LeafMessage::Gateway(GatewayMessage::Late { ordinal, late_ns });
        self.each_with(ordinal.session, |leaf, _| send(effects, leaf, &message));
    }

    /// Connections of this session that logged on before have lost it.
    pub(crate) fn replaced_before(&self, session: SessionId, logon_seq: u64, effects: &mut Vec<Effect>) {
        let message = LeafMessage::Gateway(GatewayMessage::Replaced { session, logon_seq });
        self.each_with(session, |leaf, _| send(effects, leaf, &message));
    }

    /// A session is closed.
    pub(crate) fn closed(&mut self, session: SessionId, effects: &mut Vec<Effect>) {
        let reason = RejectReason::UnknownSession;
        self.each_with(session, |leaf, held| {
            send(effects, leaf, &LeafMessage::NotBegun { session, logon_seq: held.logon_seq, reason });
        });
        for linked in self.linked.values_mut() {
            self.changes += u64::from(linked.forget(session).is_some());
        }
    }

    fn each_with(&self, session: SessionId, mut with: impl FnMut(ReplicaId, &LeafSession)) {
        for (leaf, linked) in &self.linked {
            if let Some(held) = linked.sessions.get(&session) {
                with(*leaf, held);
            }
        }
    }

    /// Something concerns an account: an order perhaps, which its owner may call by a text.
    pub(crate) fn report(&self, account: AccountId, report: &Report<'_>, name: Option<ClientOrderName>, effects: &mut Vec<Effect>) {
        for (leaf, linked) in &self.linked {
            if linked.accounts.contains_key(&account) {
                reported(effects, *leaf, account, report, name.filter(|_| linked.names));
            }
        }
    }

    /// A leaf has lost a participant who wanted his orders cancelled then; it hears when the log has that.
    pub(crate) fn cancel_behind(
        &mut self,
        leaf: ReplicaId,
        session: SessionId,
        account: AccountId,
        fingerprint: Option<NonceFingerprint>,
    ) {
        if let Some(linked) = self.linked.get_mut(&leaf).filter(|linked| linked.cancels.len() < SESSIONS_MAX) {
            linked.cancels.insert(session, (account, fingerprint));
        }
    }

    /// What was to be cancelled of an account is, or need not be.
    pub(crate) fn cancelled(&mut self, account: AccountId, by: CancelledBy, effects: &mut Vec<Effect>) {
        for (leaf, linked) in &mut self.linked {
            linked.cancels.retain(|&session, &mut (of, fingerprint)| {
                let is_over = of == account && (by == CancelledBy::Return || by == CancelledBy::Request(fingerprint));
                if is_over {
                    send(effects, *leaf, &LeafMessage::Cancelled { session });
                }
                !is_over
            });
        }
    }
}

/// Why a cancel on disconnect is waited for no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelledBy {
    /// The log has the request with this fingerprint, or one without.
    Request(Option<NonceFingerprint>),
    /// The account has opened a session: it is back.
    Return,
}

fn send(effects: &mut Vec<Effect>, to: ReplicaId, message: &LeafMessage) {
    effects.push(Effect::Send { to, bytes: message.encode() });
}

/// What leaves hear of an event that makes the lists longer.
fn listed(event: &Event) -> Option<LeafMessage> {
    if let Event::Venue(VenueEvent::AssetCreated(spec)) = event {
        return Some(LeafMessage::Asset(*spec));
    }
    let Event::Instrument(InstrumentEvent::Created(spec)) = event else { return None };
    Some(LeafMessage::Instrument(Box::new(*spec)))
}

/// What leaves hear of an event that sets the engine's version.
fn version_set(event: &Event) -> Option<LeafMessage> {
    let Event::Venue(VenueEvent::EngineVersionSet(version)) = event else { return None };
    Some(LeafMessage::Version(*version))
}

fn reported(effects: &mut Vec<Effect>, leaf: ReplicaId, account: AccountId, report: &Report<'_>, name: Option<ClientOrderName>) {
    effects.push(Effect::Send { to: leaf, bytes: LeafMessage::encode_report(account, report, name) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_promises_no_more_than_the_leaves_that_stand_below_it_have_shown() {
        let [one, two] = [40, 41].map(|n| ReplicaId::new(n).unwrap());
        let mut leaves = Leaves::new(BTreeSet::from([one, two]));
        let mut effects = Vec::new();
        assert_eq!(leaves.sent_until_ns(), u64::MAX, "nobody is linked");
        leaves.ask(one, 1);
        assert_eq!(leaves.sent_until_ns(), u64::MAX, "nothing that it says counts");
        leaves.attach(one, 1, &mut effects);
        assert_eq!(leaves.sent_until_ns(), 0, "its orders come, and it has shown nothing");
        leaves.show(one, 2, Stamp::Gateway(90));
        assert_eq!(leaves.sent_until_ns(), 0, "that is of another question");
        leaves.show(one, 1, Stamp::Gateway(70));
        leaves.ask(two, 1);
        leaves.attach(two, 1, &mut effects);
        leaves.show(two, 1, Stamp::OnArrival);
        assert_eq!(leaves.sent_until_ns(), 70, "the second stamps nothing");
        leaves.show(two, 1, Stamp::Gateway(60));
        assert_eq!(leaves.sent_until_ns(), 60);
        leaves.forget(two);
        assert_eq!(leaves.sent_until_ns(), 70);

        effects.clear();
        leaves.wake(5, 0, &mut effects);
        leaves.wake(WAKE_NS + 4, 0, &mut effects);
        assert_eq!(effects.len(), 1, "it hears once in a while that orders come");
        leaves.wake(WAKE_NS + 5, 8 * WAKE_NS, &mut effects);
        leaves.wake(2 * WAKE_NS + 5, 8 * WAKE_NS, &mut effects);
        assert_eq!(effects.len(), 2, "and ever more rarely after the last one");
        let busy =
            |effect: &Effect| matches!(effect, Effect::Send { to, bytes } if *to == one && *bytes == LeafMessage::Busy.encode());
        assert!(effects.iter().all(busy), "{} effects", effects.len());
    }
}
