//! A leaf gateway: it serves participants as a replica does, and holds no ledger. What they send is stamped here and passed on to the
//! replica above, which has it sequenced and sends back what came of it ([`crate::leaves`] is that end).
//!
//! Of the replicas that are linked one is the one above. When it is lost, or nothing comes of what was sent there, the leaf goes to
//! another one: that one first makes sure that its state has all that was acknowledged before, then the leaf names the sessions that
//! it serves, and sends what is unanswered again, with its first stamps. Numbers of commands make each take effect once, and numbers
//! of reports say which are still to come. So participants do not notice.
//!
//! Participants speak binary order entry or FIX. FIX writes symbols and decimals: the replica above names the assets and instruments.
//!
//! *Deliberately absent*: sockets, keys, clocks (the driver's), balances, books, the log.
//!
//! *Invariants*
//! - What a participant sent is kept until its answer came, and goes to each replica above until then.
//! - Nothing counts that comes from another replica than the one above, or from before it was asked to be that.

mod backend;
mod listing;
mod message;
#[cfg(test)]
mod tests;
mod uplink;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use walras_consensus::{ReplicaId, Term};
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::resequence::Stamp;
use walras_fix_orders::unlisted;
use walras_gateway::session::{FrameOutcome, ServerSettings, SessionStart, VenueKeys};
use walras_gateway::{Principal, Refusal};
use walras_sequencer::{ForwardCounts, ForwardSettings, Forwards, GatewayMessage, GatewayTime, Promise};
use walras_types::{AccountId, RejectReason, SessionId};
use walras_wire::OpenSession;
use walras_wire::order_entry::{ByeReason, ReportsWanted};

use crate::StreamId;
use crate::order_entry::{Charge, EntryProtocol, OrderEntry};
use crate::resends::TOO_MANY;

pub use listing::Listing;
pub use message::{LEAF, LeafMessage, LeafSession, OwnedReport, PublicationMark};

use backend::LeafBackend;
use listing::Listed;
use uplink::Uplinks;

/// How often sessions are looked for that nobody here has any more.
const TIDY_NS: u64 = 1_000_000_000;

/// The number of the logon of a session that a replica is to know before its reports are asked for: no client's logon.
const KNOWN_ONLY: u64 = u64::MAX;

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
    /// Whether it needs the venue's assets and instruments: for FIX.
    pub lists: bool,
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
    /// Market data is published at this entry: for those who give it out here.
    Published(PublicationMark),
}

/// A leaf gateway. After inputs, say [`round`](Self::round), then carry out what [`take_effects`](Self::take_effects) gives and write
/// what [`next_dirty`](Self::next_dirty) names.
pub struct Leaf {
    entry: OrderEntry,
    forwards: Forwards,
    promise: Promise,
    /// Orders were passed on since the last round.
    has_sent: bool,
    uplinks: Uplinks,
    /// Sessions that the replica above is to know.
    sessions: BTreeMap<SessionId, Option<AccountId>>,
    /// Connections whose sessions are open and have not begun here.
    beginning: BTreeMap<SessionId, Vec<StreamId>>,
    /// Whether the replica above is asked for the lists.
    lists: bool,
    listed: Listed,
    tidy_at_ns: u64,
    entry_look_ns: u64,
    effects: Vec<LeafEffect>,
}

impl Leaf {
    /// One that is linked with nobody.
    #[must_use]
    pub fn new(settings: LeafSettings) -> Self {
        let LeafSettings { entry, entry_keys, forwards, replicas, lists } = settings;
        Self {
            entry: OrderEntry::new(entry, entry_keys),
            forwards: Forwards::new(forwards),
            promise: Promise::new(forwards.watermark_ns),
            has_sent: false,
            uplinks: Uplinks::new(replicas),
            sessions: BTreeMap::new(),
            beginning: BTreeMap::new(),
            lists,
            listed: Listed::default(),
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

    /// The venue's assets and instruments, as far as they are known here: another one whenever there are more.
    #[must_use]
    pub fn listing(&self) -> &Arc<Listing> {
        self.listed.listing()
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
        if !matches!(message, LeafMessage::Asset(_) | LeafMessage::Instrument(_) | LeafMessage::Listed | LeafMessage::Version(_)) {
            // What comes now may be about what was named just before.
            self.follow_listing();
        }
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
            LeafMessage::Reported { account, report } => self.entry.report(account, &report.as_report(), report.name),
            LeafMessage::Cancelled { session } => self.forwards.cancel_done(session),
            LeafMessage::Busy => self.promise.on_order(at.now_ns),
            LeafMessage::Asset(spec) => self.listed.asset(spec),
            LeafMessage::Instrument(spec) => self.listed.instrument(*spec),
            LeafMessage::Listed => self.listed.whole(),
            LeafMessage::Version(version) => self.listed.under(version),
            LeafMessage::Published(mark) => self.effects.push(LeafEffect::Published(mark)),
            LeafMessage::Attached { .. } | LeafMessage::Detached { .. } => {}
            LeafMessage::Attach { .. } | LeafMessage::Begin(_) | LeafMessage::Leave { .. } => {}
            LeafMessage::List | LeafMessage::Names => {}
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
                self.forwards.on_late(ordinal, late_ns);
                self.entry.late(ordinal, late_ns);
            }
            GatewayMessage::Replaced { session, logon_seq } => self.entry.replaced_before(session, logon_seq),
            GatewayMessage::Opened { .. } | GatewayMessage::Leading { .. } | GatewayMessage::Watermark { .. } => {}
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

    /// The replica above knows all that was acknowledged. It hears of the sessions here and of what is unanswered, then what reports their
    /// connections lack: so what came of a command is known here before the reports of its entry, which FIX says by what was asked.
    fn attached(&mut self, at: GatewayTime, replica: ReplicaId, epoch: u64) {
        self.uplinks.attached(at.now_ns);
        self.effects.push(LeafEffect::Attached(replica));
        let Self { sessions, beginning, entry, forwards, .. } = self;
        let (mut known, mut begins) = (Vec::new(), Vec::new());
        for (&session, &account) in sessions.iter() {
            let before = begins.len();
            let waiting = beginning.get(&session).into_iter().flatten();
            begins.extend(waiting.filter_map(|stream| entry.terms(*stream, session)));
            begins.extend(entry.terms_of(session).map(|terms| {
                let wanted = entry.reports_had(session).map_or(ReportsWanted::None, ReportsWanted::After);
                LeafSession { wanted, ..terms }
            }));
            // Where nobody has it any more, what came of its last commands is still of interest.
            if forwards.is_unanswered(session) || begins.len() == before {
                known.push(LeafSession { session, account, logon_seq: KNOWN_ONLY, has_copies: true, wanted: ReportsWanted::None });
            }
        }
        if self.lists {
            // First, so that it says the version before the lists are whole.
            self.send(replica, Some(LeafMessage::Names));
            self.send(replica, Some(LeafMessage::List));
        }
        known.into_iter().for_each(|session| self.send(replica, Some(LeafMessage::Begin(session))));
        let again = self.forwards.on_leading(at.now_ns, replica, Term(epoch));
        self.pass_on(again);
        begins.into_iter().for_each(|session| self.send(replica, Some(LeafMessage::Begin(session))));
    }

    /// A session begins for a connection that waits for it, or goes on with another replica above.
    fn begun(&mut self, at: GatewayTime, logon_seq: u64, start: SessionStart) {
        let session = start.session;
        if !self.sessions.contains_key(&session) {
            return;
        }
        match self.take_beginning(session, logon_seq) {
            Some(stream) => {
                self.entry.begin(stream, at.now_ns, start);
            }
            None if logon_seq == KNOWN_ONLY => {}
            // The replica may not keep all that came meanwhile: who logs on again hears from where on there are some.
            None => self.entry.lose_reports_before(session, start.reports_from),
        }
    }

    fn not_begun(&mut self, session: SessionId, logon_seq: u64, reason: RejectReason) {
        let has_too_many = reason == RejectReason::Throttled;
        if let Some(stream) = self.take_beginning(session, logon_seq) {
            return if has_too_many {
                self.entry.bye(stream, ByeReason::Rejected(reason), TOO_MANY);
            } else {
                self.entry.not_opened(stream, reason);
            };
        }
        if self.sessions.remove(&session).is_some() {
            self.forwards.forget(session);
            if has_too_many {
                // It is open in the log, and its clients say what they lack when they log on again.
                self.entry.interrupt(session, TOO_MANY);
            } else {
                self.entry.closed(session);
            }
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
        let before = self.effects.len();
        self.effects.extend(messages.into_iter().map(|message| LeafEffect::Send { to, bytes: message.encode() }));
        self.has_sent |= self.effects.len() > before;
    }

    /// All that reached the edge here up to this time, by the venue's clock, has been taken in: what is read from now on counts as having
    /// come later. The host calls it before [`Leaf::round`].
    pub fn taken_in(&mut self, at: GatewayTime, until_ns: u64) {
        self.promise.taken_in(if at.status == ClockStatus::Good { Stamp::Gateway(until_ns) } else { Stamp::OnArrival });
    }

    /// Tells the replica above up to where it has all orders, behind those that were passed on.
    fn show_watermark(&mut self, at: GatewayTime) {
        let has_sent = std::mem::take(&mut self.has_sent);
        let Some((to, term)) = self.forwards.leading().filter(|(to, _)| self.uplinks.above() == Some(*to)) else { return };
        if let Some(until) = self.promise.due(at.now_ns, has_sent) {
            self.send(to, Some(LeafMessage::Gateway(GatewayMessage::Watermark { term, until })));
        }
    }

    /// The replica above is it no more.
    fn detach(&mut self, at: GatewayTime, to: Option<ReplicaId>) {
        if let Some(above) = self.uplinks.above() {
            self.effects.push(LeafEffect::Detached(above));
        }
        self.forwards.on_term(Term(self.uplinks.detach(at.now_ns, to)));
    }

    /// FIX connections follow what was named.
    fn follow_listing(&mut self) {
        if let Some(listing) = self.listed.follow() {
            self.entry.set_catalog(&listing.catalog);
        }
    }

    /// What follows from the inputs before, and from time.
    pub fn round(&mut self, at: GatewayTime) {
        self.follow_listing();
        if self.uplinks.is_stuck(at.now_ns, self.forwards.is_waiting()) {
            self.detach(at, None);
        }
        if let Some((to, epoch)) = self.uplinks.ask(at.now_ns) {
            self.send(to, Some(LeafMessage::Attach { epoch }));
        }
        let again = self.forwards.on_timer(at.now_ns);
        self.pass_on(again);
        self.show_watermark(at);
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
        let Self { entry, forwards, beginning, sessions, uplinks, effects, .. } = self;
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
    }

    /// When [`round`](Self::round) has something to do, if nothing comes in before.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        let is_idle = self.sessions.is_empty() && self.beginning.is_empty();
        let tidy_ns = if is_idle { u64::MAX } else { self.tidy_at_ns };
        let entry_ns =
            if self.entry.deadline_ns() == u64::MAX { u64::MAX } else { self.entry_look_ns.min(self.entry.fix_look_ns()) };
        let uplink_ns = self.uplinks.deadline_ns(self.forwards.is_waiting());
        let promise_ns = if self.uplinks.above().is_some() { self.promise.next_ns() } else { u64::MAX };
        [self.forwards.next_look_ns(), tidy_ns, entry_ns, uplink_ns, promise_ns].into_iter().min().unwrap_or(u64::MAX)
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
        let is_unlisted = !self.listed.is_whole() && self.entry.is_fix(stream);
        let verdict = verdict.and_then(|principal| if is_unlisted { Err(unlisted()) } else { Ok(principal) });
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
        let at = self.promise.keep(at);
        let Self { entry, forwards, uplinks, .. } = self;
        let was_waiting = forwards.is_waiting();
        let result = act(entry, &mut LeafBackend { forwards, at, messages: &mut messages });
        match (was_waiting, forwards.is_waiting()) {
            (false, true) => uplinks.on_waiting(at.now_ns),
            (true, false) => uplinks.on_given_up(at.now_ns),
            (false, false) | (true, true) => {}
        }
        if !messages.is_empty() {
            self.promise.on_stamped(at);
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
