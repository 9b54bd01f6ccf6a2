//! A leaf gateway: it serves participants as a replica does, and holds no ledger. What they send is stamped here and passed on to the
//! replica above, which has it sequenced and sends back what came of it ([`crate::leaves`] is that end).
//!
//! Of the replicas that are linked one is the one above. When it is lost, or nothing comes of what was sent there, the leaf goes to
//! another one: that one first makes sure that its state has all that was acknowledged before, then the leaf names the sessions that
//! it serves, and sends what is unanswered again, with its first stamps. Numbers of commands make each take effect once, and numbers
//! of reports say which are still to come. So participants do not notice.
//!
//! *Deliberately absent*: sockets, keys, clocks (the driver's), balances, books, the log.
//!
//! *Invariants*
//! - What a participant sent is kept until its answer came, and goes to each replica above until then.
//! - Nothing counts that comes from another replica than the one above, or from before it was asked to be that.

mod backend;
mod message;
mod uplink;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use walras_consensus::{ReplicaId, Term};
use walras_gateway::session::{FrameOutcome, ServerSettings, SessionStart, VenueKeys};
use walras_gateway::{Principal, Refusal};
use walras_sequencer::{ForwardCounts, ForwardSettings, Forwards, GatewayMessage, GatewayTime};
use walras_types::{AccountId, RejectReason, SessionId};
use walras_wire::OpenSession;
use walras_wire::order_entry::ReportsWanted;

use crate::StreamId;
use crate::order_entry::{Charge, EntryProtocol, OrderEntry};

pub use message::{LEAF, LeafMessage, LeafSession, OwnedReport};

use backend::LeafBackend;
use uplink::Uplinks;

/// How often sessions are looked for that nobody here has any more.
const TIDY_NS: u64 = 1_000_000_000;

/// What a leaf is set to.
#[derive(Clone, Debug)]
pub struct LeafSettings {
    /// Binary order entry.
    pub entry: ServerSettings,
    /// Its keys, made new for each start.
    pub entry_keys: Arc<VenueKeys>,
    /// What is kept until it is answered.
    pub forwards: ForwardSettings,
    /// The replicas, the preferred one first.
    pub replicas: Vec<ReplicaId>,
}

/// What a leaf wants to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafEffect {
    /// Send this to a replica, if it is linked. It may be lost with the link alone.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        bytes: Vec<u8>,
    },
    /// This replica is the one above from now on: for the log of the process.
    Attached(ReplicaId),
    /// This replica is it no more: for the log of the process.
    Detached(ReplicaId),
}

/// A leaf gateway. After inputs, say [`round`](Self::round), then carry out what [`take_effects`](Self::take_effects) gives and write
/// what [`next_dirty`](Self::next_dirty) names.
pub struct Leaf {
    entry: OrderEntry,
    forwards: Forwards,
    uplinks: Uplinks,
    /// Sessions that the replica above is to know.
    sessions: BTreeMap<SessionId, Option<AccountId>>,
    /// Connections whose sessions are open and have not begun here.
    beginning: BTreeMap<SessionId, Vec<StreamId>>,
    /// Of accounts with reports, the last one that was passed on.
    reported: BTreeMap<AccountId, u64>,
    tidy_at_ns: u64,
    entry_look_ns: u64,
    effects: Vec<LeafEffect>,
}

impl Leaf {
    /// One that is linked with nobody.
    #[must_use]
    pub fn new(settings: LeafSettings) -> Self {
        let LeafSettings { entry, entry_keys, forwards, replicas } = settings;
        Self {
            entry: OrderEntry::new(entry, entry_keys),
            forwards: Forwards::new(forwards),
            uplinks: Uplinks::new(replicas),
            sessions: BTreeMap::new(),
            beginning: BTreeMap::new(),
            reported: BTreeMap::new(),
            tidy_at_ns: 0,
            entry_look_ns: 0,
            effects: Vec::new(),
        }
    }

    /// The replica above, once it is.
    #[must_use]
    pub fn above(&self) -> Option<ReplicaId> {
        self.uplinks.above()
    }

    /// Commands passed on and unanswered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.forwards.unanswered()
    }

    /// What was passed on.
    #[must_use]
    pub fn forwarded(&self) -> ForwardCounts {
        self.forwards.counts()
    }

    /// A link with a replica is up, again perhaps.
    pub fn on_linked(&mut self, at: GatewayTime, replica: ReplicaId) {
        if self.uplinks.target() == Some(replica) {
            self.detach(at, None);
        }
        self.uplinks.on_linked(replica);
    }

    /// A link is lost.
    pub fn on_link_lost(&mut self, at: GatewayTime, replica: ReplicaId) {
        self.uplinks.on_lost(replica);
        if self.uplinks.target() == Some(replica) {
            self.detach(at, None);
        }
    }

    /// A message by the link of a replica. What is none counts for nothing.
    pub fn on_message(&mut self, at: GatewayTime, from: ReplicaId, bytes: &Bytes) {
        let Ok(message) = LeafMessage::decode(bytes) else { return };
        match message {
            LeafMessage::Attached { epoch } if self.uplinks.is_asked(from, epoch) => self.attached(at, from, epoch),
            LeafMessage::Detached { epoch, to } if self.uplinks.is_of(from, epoch) => self.detach(at, to),
            _ if self.uplinks.above() != Some(from) => {}
            LeafMessage::Gateway(message) => self.on_gateway_message(at, from, message),
            LeafMessage::Opened { open, logon_seq, session } => self.opened(at, from, open, logon_seq, session),
            LeafMessage::Begun { logon_seq, start } => self.begun(at, logon_seq, start),
            LeafMessage::NotBegun { session, logon_seq, reason } => self.not_begun(session, logon_seq, reason),
            LeafMessage::Answered { ordinal, answer, time } => {
                self.uplinks.on_progress(at.now_ns);
                self.forwards.on_applied(ordinal);
                self.entry.answer(ordinal, answer, time);
            }
            LeafMessage::Reported { account, report } => {
                if let Some(last) = self.reported.get_mut(&account) {
                    *last = report.report_seq.max(*last);
                }
                self.entry.report(account, &report.as_report());
            }
            LeafMessage::Cancelled { session } => self.forwards.cancel_done(session),
            LeafMessage::Attached { .. } | LeafMessage::Detached { .. } => {}
            LeafMessage::Attach { .. } | LeafMessage::Begin(_) | LeafMessage::Leave { .. } => {}
        }
    }

    fn on_gateway_message(&mut self, at: GatewayTime, from: ReplicaId, message: GatewayMessage) {
        match message {
            GatewayMessage::Refused { ordinal, reason } => {
                self.uplinks.on_progress(at.now_ns);
                if self.forwards.on_refused(from, ordinal, reason) {
                    self.entry.refused(ordinal, reason);
                }
            }
            GatewayMessage::NotOpened { open, reason } => {
                self.uplinks.on_progress(at.now_ns);
                self.forwards.give_up_opening(open);
                self.entry.opening_refused(&open, reason);
            }
            GatewayMessage::Late { ordinal, late_ns } => {
                self.forwards.on_late();
                self.entry.late(ordinal, late_ns);
            }
            GatewayMessage::Replaced { session, logon_seq } => self.entry.replaced_before(session, logon_seq),
            GatewayMessage::Opened { .. } | GatewayMessage::Leading { .. } => {}
            GatewayMessage::Order { .. } | GatewayMessage::Behind { .. } | GatewayMessage::Open { .. } => {}
        }
    }

    /// The log has opened a session: it is to begin for the connections that wait for it.
    fn opened(&mut self, at: GatewayTime, from: ReplicaId, open: OpenSession, logon_seq: u64, session: SessionId) {
        if !self.forwards.is_opening(open, logon_seq) {
            return;
        }
        self.uplinks.on_progress(at.now_ns);
        self.forwards.give_up_opening(open);
        self.sessions.insert(session, open.account);
        for stream in self.entry.take_waiting(&open) {
            self.beginning.entry(session).or_default().push(stream);
            let begin = self.entry.terms(stream, session).map(LeafMessage::Begin);
            self.send(from, begin);
        }
    }

    /// The replica above knows all that was acknowledged: it is told of the sessions here, then of what is unanswered.
    fn attached(&mut self, at: GatewayTime, replica: ReplicaId, epoch: u64) {
        self.uplinks.attached(at.now_ns);
        self.effects.push(LeafEffect::Attached(replica));
        let Self { sessions, beginning, reported, entry, .. } = self;
        let mut begins = Vec::new();
        for (&session, &account) in sessions.iter() {
            let waiting = beginning.get(&session).into_iter().flatten();
            begins.extend(waiting.filter_map(|stream| entry.terms(*stream, session)));
            let after = account.and_then(|account| reported.get(&account));
            let wanted = after.map_or(ReportsWanted::None, |after| ReportsWanted::After(*after));
            // Where nobody has it any more, what came of its last commands is still of interest.
            let gone = LeafSession { session, account, logon_seq: 0, has_copies: true, wanted };
            let served = entry.terms_of(session);
            begins.push(served.map_or(gone, |terms| LeafSession { wanted, ..terms }));
        }
        for begin in begins {
            self.send(replica, Some(LeafMessage::Begin(begin)));
        }
        let again = self.forwards.on_leading(at.now_ns, replica, Term(epoch));
        self.pass_on(again);
    }

    /// A session begins for a connection that waits for it, or goes on with another replica above.
    fn begun(&mut self, at: GatewayTime, logon_seq: u64, start: SessionStart) {
        let session = start.session;
        let Some(&account) = self.sessions.get(&session) else { return };
        let Some(stream) = self.take_beginning(session, logon_seq) else {
            let Some(account) =
                account.filter(|account| self.reported.get(account).is_some_and(|last| last + 1 < start.reports_from))
            else {
                return;
            };
            // The replica does not keep what came meanwhile: whoever logs on again hears from where on there are some.
            self.entry.fail_account(account);
            return;
        };
        if let Some(account) = account
            && self.entry.terms(stream, session).is_some_and(|terms| terms.wanted != ReportsWanted::None)
        {
            self.reported.entry(account).or_insert(start.reports_from - 1);
        }
        self.entry.begin(stream, at.now_ns, start);
    }

    fn not_begun(&mut self, session: SessionId, logon_seq: u64, reason: RejectReason) {
        if let Some(stream) = self.take_beginning(session, logon_seq) {
            return self.entry.not_opened(stream, reason);
        }
        if self.sessions.remove(&session).is_some() {
            self.forwards.forget(session);
            self.entry.closed(session);
        }
    }

    /// A connection of this logon that waits for its session to begin, if it is there still.
    fn take_beginning(&mut self, session: SessionId, logon_seq: u64) -> Option<StreamId> {
        let Self { beginning, entry, .. } = self;
        let streams = beginning.get_mut(&session)?;
        streams.retain(|stream| entry.terms(*stream, session).is_some());
        let place =
            streams.iter().position(|stream| entry.terms(*stream, session).is_some_and(|terms| terms.logon_seq == logon_seq));
        let stream = place.map(|place| streams.remove(place));
        if streams.is_empty() {
            beginning.remove(&session);
        }
        stream
    }

    fn send(&mut self, to: ReplicaId, message: Option<LeafMessage>) {
        self.effects.extend(message.map(|message| LeafEffect::Send { to, bytes: message.encode() }));
    }

    /// To the replica above, if there is one; it is all sent again otherwise.
    fn pass_on(&mut self, messages: impl IntoIterator<Item = GatewayMessage>) {
        let Some(to) = self.uplinks.above() else { return };
        self.effects.extend(messages.into_iter().map(|message| LeafEffect::Send { to, bytes: message.encode() }));
    }

    /// The replica above is it no more.
    fn detach(&mut self, at: GatewayTime, to: Option<ReplicaId>) {
        if let Some(above) = self.uplinks.above() {
            self.effects.push(LeafEffect::Detached(above));
        }
        self.forwards.on_term(Term(self.uplinks.detach(at.now_ns, to)));
    }

    /// What follows from the inputs before, and from time.
    pub fn round(&mut self, at: GatewayTime) {
        if self.uplinks.is_stuck(at.now_ns, self.forwards.is_waiting()) {
            self.detach(at, None);
        }
        if let Some((to, epoch)) = self.uplinks.ask(at.now_ns) {
            self.send(to, Some(LeafMessage::Attach { epoch }));
        }
        let again = self.forwards.on_timer(at.now_ns);
        self.pass_on(again);
        if at.now_ns >= self.entry_look_ns.min(self.entry.fix_look_ns()) {
            self.entry.on_timer(at.now_ns);
            self.entry_look_ns =
                self.entry.deadline_ns().clamp(at.now_ns.saturating_add(TIDY_NS / 50), at.now_ns.saturating_add(TIDY_NS));
        }
        if at.now_ns >= self.tidy_at_ns {
            self.tidy_at_ns = at.now_ns.saturating_add(TIDY_NS);
            self.tidy();
        }
    }

    /// Lets go of sessions that nobody here has and of which nothing is unanswered.
    fn tidy(&mut self) {
        let Self { entry, forwards, beginning, sessions, reported, uplinks, effects, .. } = self;
        beginning.retain(|session, streams| {
            streams.retain(|stream| entry.terms(*stream, *session).is_some());
            !streams.is_empty()
        });
        sessions.retain(|&session, _| {
            let is_served = entry.has_session(session) || beginning.contains_key(&session) || forwards.is_unanswered(session);
            if let Some(to) = uplinks.above().filter(|_| !is_served) {
                effects.push(LeafEffect::Send { to, bytes: LeafMessage::Leave { session }.encode() });
            }
            is_served
        });
        let accounts: BTreeSet<AccountId> = sessions.values().flatten().copied().collect();
        reported.retain(|account, _| accounts.contains(account));
    }

    /// When [`round`](Self::round) has something to do, if nothing comes in before.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        let is_idle = self.sessions.is_empty() && self.beginning.is_empty();
        let tidy_ns = if is_idle { u64::MAX } else { self.tidy_at_ns };
        let entry_ns =
            if self.entry.deadline_ns() == u64::MAX { u64::MAX } else { self.entry_look_ns.min(self.entry.fix_look_ns()) };
        let uplink_ns = self.uplinks.deadline_ns(self.forwards.is_waiting());
        [self.forwards.next_look_ns(), tidy_ns, entry_ns, uplink_ns].into_iter().min().unwrap_or(u64::MAX)
    }

    /// What is to be done, in this order. `effects` should be empty.
    pub fn take_effects(&mut self, effects: &mut Vec<LeafEffect>) {
        std::mem::swap(&mut self.effects, effects);
    }

    /// A client has connected. Its place must be free.
    pub fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol) {
        self.entry.accept(stream, at, protocol);
        self.entry_look_ns = self.entry_look_ns.min(at.now_ns.saturating_add(TIDY_NS));
    }

    /// Bytes of a client came, cut anywhere: the stamps of commands that come at once are the same. `charge` says whether a key may
    /// send one more command. Afterwards ask order entry for logons ([`OrderEntry::next_logon`]).
    pub fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>) {
        self.with_entry(at, |entry, backend| entry.on_bytes(stream, bytes, charge, backend));
        while let Some((stream, frame)) = self.entry.next_transactions() {
            // They gain nothing by a stamp, so a leaf does not pass them on.
            let refused = |one: Result<_, RejectReason>| Some(one.err().unwrap_or(RejectReason::NotLeader));
            let results = frame.transactions.into_iter().map(refused).collect();
            let (number, retry_after_ns) = (frame.number, frame.retry_after_ns);
            self.entry.transactions_done(stream, &FrameOutcome { number, results, blocks: None, retry_after_ns });
        }
    }

    /// The verdict on a logon.
    pub fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>) {
        self.with_entry(at, |entry, backend| entry.on_authenticated(stream, verdict, backend));
    }

    /// A client closed its connection, or it broke: the connection is gone.
    pub fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId) {
        self.with_entry(at, |entry, backend| entry.on_lost(stream, backend));
    }

    /// The next connection that has something to write or is over, each once: see [`OrderEntry::output`] and
    /// [`OrderEntry::is_over`].
    pub fn next_dirty(&mut self, at: GatewayTime) -> Option<StreamId> {
        if !self.entry.is_dirty() {
            return None;
        }
        self.with_entry(at, |entry, backend| entry.next_dirty(backend))
    }

    fn with_entry<R>(&mut self, at: GatewayTime, act: impl FnOnce(&mut OrderEntry, &mut LeafBackend<'_>) -> R) -> R {
        let mut messages = Vec::new();
        let Self { entry, forwards, uplinks, .. } = self;
        let was_waiting = forwards.is_waiting();
        let result = act(entry, &mut LeafBackend { forwards, at, messages: &mut messages });
        if !was_waiting && forwards.is_waiting() {
            uplinks.on_progress(at.now_ns);
        }
        self.pass_on(messages);
        result
    }

    /// The connections.
    #[must_use]
    pub fn entry(&self) -> &OrderEntry {
        &self.entry
    }

    /// The same, to write what they have to say.
    pub fn entry_mut(&mut self) -> &mut OrderEntry {
        &mut self.entry
    }
}
