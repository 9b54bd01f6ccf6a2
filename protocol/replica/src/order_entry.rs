//! Order entry, binary and by FIX, without its sockets: the connections of a replica, the sessions that they have, and what each hears.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use walras_engine::Engine;
use walras_fix_orders::{Catalog, FixServer, FixSettings, Memory, Secrecy};
use walras_gateway::session::{
    FrameOutcome, Host, LogonRequest, Reports, Resend, ServerSettings, SessionServer, SessionStart, TransactionFrame, VenueKeys,
};
use walras_gateway::{Allowance, Permission, Principal, Refusal};
use walras_sequencer::{GatewayTime, NotTaken, SessionUse};
use walras_types::{AccountId, Answer, ClientOrderName, EngineVersion, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{ByeReason, Report, ReportsWanted};
use walras_wire::{Command, OpenSession};

use crate::StreamId;
use crate::entry_server::EntryServer;
use crate::leaf::LeafSession;
use crate::resends::{Resends, TOO_MANY};

/// Whether a key may send one more command now.
pub type Charge<'a> = dyn FnMut(&Principal, Permission, Allowance) -> Result<(), Refusal> + 'a;

/// What order entry hands commands to: a replica's own sequencer, or the replica above a leaf gateway.
pub(crate) trait EntryBackend {
    /// When the input came.
    fn at(&self) -> GatewayTime;
    /// Where the leader takes orders, as far as it is known.
    fn leader(&self) -> &str;
    /// A connection asks for its session.
    fn open(&mut self, asked: AskedSession) -> Opens;
    /// Nobody here waits for this session any more.
    fn give_up_opening(&mut self, open: OpenSession);
    /// A connection's command.
    ///
    /// # Errors
    /// What is known of it already, or why it is not taken.
    fn submit(&mut self, ordinal: Ordinal, command: &Command, content: &[u8], has_copies: bool) -> Result<(), NotTaken>;
    /// A participant is lost, who wanted his orders cancelled then.
    fn cancel_behind(&mut self, session: Option<SessionId>, account: AccountId);
}

/// The session that a connection asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedSession {
    /// Which connection.
    pub(crate) stream: StreamId,
    /// Which session.
    pub(crate) open: OpenSession,
    /// The client's number of its logon.
    pub(crate) logon_seq: u64,
    /// What the logon asks of it.
    pub(crate) usage: SessionUse,
}

/// What becomes of the wish for a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opens {
    /// Its connection is told by name.
    Direct,
    /// All connections that wait for this session are told together.
    Together,
    /// Not taken.
    Not(NotTaken),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// Which.
    pub stream: StreamId,
    /// Whose it was, from its logon on.
    pub account: Option<AccountId>,
    /// The reason that the client was given; `None` where it was given none.
    pub reason: Option<ByeReason>,
    /// Whether the connection broke first.
    pub loss: Loss,
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The client closed it, or it broke.
    Lost,
    /// The venue ended it.
    Ended,
}

struct Connection {
    stream: StreamId,
    server: EntryServer,
    /// From its logon on.
    account: Option<AccountId>,
    wanted: ReportsWanted,
    session: Option<SessionId>,
    /// The client's number of its logon.
    logon_seq: u64,
    /// Whether other connections keep its session too.
    has_copies: bool,
    /// Whether its logon is good once.
    is_once: bool,
    /// The session that it waits for, where others pass that on.
    opening: Option<OpenSession>,
    is_dirty: bool,
}

/// All connections.
pub struct OrderEntry {
    settings: ServerSettings,
    keys: Arc<VenueKeys>,
    /// How many connections there were: each has a challenge of its own.
    greeted: u64,
    /// By place.
    connections: Vec<Option<Connection>>,
    /// The place of one connection, or of several where all have copies.
    by_session: BTreeMap<SessionId, Vec<usize>>,
    by_account: BTreeMap<AccountId, Vec<usize>>,
    /// Connections that wait for a session, by its account and token.
    waiting: Waiting,
    /// Connections that have something to write, or are over.
    dirty: VecDeque<StreamId>,
    logons: VecDeque<(StreamId, LogonRequest)>,
    /// Frames of transactions that came.
    transactions: VecDeque<(StreamId, TransactionFrame)>,
    ends: VecDeque<ConnectionEnd>,
    /// Empty.
    immediate: Vec<Immediate>,
    fix: Option<FixSettings>,
    catalog: Arc<Catalog>,
    /// Instruments and assets in `catalog`, and under which version of the engine.
    listed: (usize, usize, EngineVersion),
    /// FIX sessions between their connections, each with how many were remembered before it.
    remembered: BTreeMap<(AccountId, u64), (u64, Memory)>,
    /// How many were ever remembered.
    remembered_count: u64,
    /// When a FIX connection has something to do without input.
    fix_look_ns: u64,
    /// Past reports that logons may still be sent.
    pub(crate) resends: Resends,
}

/// FIX sessions that are remembered between their connections, under 4 MiB each: half of it for what was sent, at most 8,192 messages, and
/// half for orders ([`walras_fix_orders::REMEMBERED_BYTES_MAX`]).
const REMEMBERED_MAX: usize = 256;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryProtocol {
    /// Binary order entry.
    Binary,
    /// FIX, where others can read what is sent or cannot.
    Fix(Secrecy),
}

type Waiting = BTreeMap<(Option<AccountId>, u64), Vec<StreamId>>;

/// What the sequencer answers at once.
enum Immediate {
    Command(Ordinal, NotTaken),
    Open(NotTaken),
}

impl OrderEntry {
    /// Without connections.
    pub(crate) fn new(settings: ServerSettings, keys: Arc<VenueKeys>) -> Self {
        Self {
            settings,
            keys,
            greeted: 0,
            connections: Vec::new(),
            by_session: BTreeMap::new(),
            by_account: BTreeMap::new(),
            waiting: BTreeMap::new(),
            dirty: VecDeque::new(),
            logons: VecDeque::new(),
            transactions: VecDeque::new(),
            ends: VecDeque::new(),
            immediate: Vec::new(),
            fix: None,
            catalog: Arc::new(Catalog::default()),
            listed: (0, 0, EngineVersion(0)),
            remembered: BTreeMap::new(),
            remembered_count: 0,
            fix_look_ns: u64::MAX,
            resends: Resends::new(settings.resends),
        }
    }

    /// Clients may connect that speak FIX.
    pub fn set_fix(&mut self, settings: FixSettings) {
        self.fix = Some(settings);
    }

    /// Follows the engine's instruments, which are never taken away, and its version.
    pub(crate) fn follow_instruments(&mut self, engine: &Engine) {
        let listed = (engine.instruments().len(), engine.assets().len(), engine.version());
        if listed != self.listed && self.fix.is_some() {
            self.listed = listed;
            let catalog = Catalog::of(engine.instruments().map(|view| view.spec), engine.assets());
            self.set_catalog(&Arc::new(catalog.under(engine.version())));
        }
    }

    /// The instruments are these now.
    pub(crate) fn set_catalog(&mut self, catalog: &Arc<Catalog>) {
        self.catalog = Arc::clone(catalog);
        for connection in self.connections.iter_mut().flatten() {
            connection.server.set_catalog(catalog);
        }
    }

    /// A client has connected. With binary order entry it is sent a welcome. Its place must be free.
    pub(crate) fn accept(&mut self, stream: StreamId, at: GatewayTime, protocol: EntryProtocol) {
        let server = match (protocol, &self.fix) {
            (EntryProtocol::Fix(secrecy), Some(settings)) => {
                let catalog = Arc::clone(&self.catalog);
                EntryServer::Fix(Box::new(FixServer::new(settings.clone(), secrecy, catalog, at.now_ns, at.now.0)))
            }
            (EntryProtocol::Binary | EntryProtocol::Fix(_), _) => {
                self.greeted += 1;
                EntryServer::Binary(SessionServer::new(self.settings, self.keys.greeting(self.greeted), at.now_ns))
            }
        };
        if self.connections.len() <= stream.place {
            self.connections.resize_with(stream.place + 1, || None);
        }
        let connection = Connection {
            stream,
            server,
            account: None,
            wanted: ReportsWanted::None,
            session: None,
            logon_seq: 0,
            has_copies: false,
            is_once: false,
            opening: None,
            is_dirty: false,
        };
        let before = self.connections[stream.place].replace(connection);
        assert!(before.is_none(), "a place holds one connection at a time");
        self.mark_dirty(stream);
    }

    /// Bytes came, cut anywhere. Afterwards ask for [`next_logon`](Self::next_logon).
    pub(crate) fn on_bytes(&mut self, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>, backend: &mut impl EntryBackend) {
        let at = backend.at();
        self.serve(stream, charge, backend, |server, host| server.on_bytes(at, bytes, host));
    }

    /// A logon whose signature is to be checked; then say [`crate::Replica::on_authenticated`].
    pub fn next_logon(&mut self) -> Option<(StreamId, LogonRequest)> {
        self.logons.pop_front()
    }

    /// A frame of transactions that came; then say [`Self::transactions_done`].
    pub(crate) fn next_transactions(&mut self) -> Option<(StreamId, TransactionFrame)> {
        self.transactions.pop_front()
    }

    /// What came of a frame of transactions.
    pub(crate) fn transactions_done(&mut self, stream: StreamId, outcome: &FrameOutcome) {
        if let Some(connection) = connection_at(&mut self.connections, stream) {
            connection.server.transactions_done(outcome);
            self.mark_dirty(stream);
        }
    }

    /// The verdict on a logon.
    pub(crate) fn on_authenticated(
        &mut self,
        stream: StreamId,
        verdict: Result<Principal, Refusal>,
        backend: &mut impl EntryBackend,
    ) {
        self.serve(stream, &mut |_, _, _| Ok(()), backend, |server, host| server.authenticated(verdict, host));
    }

    /// Lets a connection's session act, then gives it what the sequencer answered at once.
    fn serve<B: EntryBackend>(
        &mut self,
        stream: StreamId,
        charge: &mut Charge<'_>,
        backend: &mut B,
        act: impl FnOnce(&mut EntryServer, &mut Serving<'_, '_, B>),
    ) {
        let Self { connections, waiting, logons, transactions, immediate, .. } = self;
        let Some(connection) = connection_at(connections, stream) else { return };
        let Connection { server, account, wanted, logon_seq, has_copies, is_once, opening, .. } = connection;
        let notes = Notes { account, wanted, logon_seq, has_copies, is_once, opening };
        let mut host = Serving { backend, charge, stream, notes, waiting, logons, transactions, immediate };
        act(server, &mut host);
        for one in host.immediate.drain(..) {
            match one {
                Immediate::Open(NotTaken::NotLeader { .. }) | Immediate::Command(_, NotTaken::NotLeader { .. }) => {
                    server.not_leader(host.backend.leader());
                }
                Immediate::Open(NotTaken::Refused(reason)) => server.bye(ByeReason::Rejected(reason), ""),
                Immediate::Open(NotTaken::Repeated(_) | NotTaken::OnItsWay) => server.bye(ByeReason::VenueFault, ""),
                // The state remembers what came of it, not when.
                Immediate::Command(ordinal, NotTaken::Repeated(answer)) => server.answer(ordinal, answer, None),
                Immediate::Command(_, NotTaken::OnItsWay) => {}
                Immediate::Command(ordinal, NotTaken::Refused(reason)) => server.refused(ordinal, reason, None),
            }
        }
        self.mark_dirty(stream);
        self.end_if_over(stream, Loss::Ended, backend);
    }

    /// The client closed the connection, or it broke: the connection is gone.
    pub(crate) fn on_lost(&mut self, stream: StreamId, backend: &mut impl EntryBackend) {
        let Some(connection) = connection_at(&mut self.connections, stream) else { return };
        connection.server.on_disconnect();
        self.end_if_over(stream, Loss::Lost, backend);
        self.remove(stream);
    }

    /// Gives a client the reason why its connection is over.
    pub fn bye(&mut self, stream: StreamId, reason: ByeReason, text: &str) {
        if let Some(connection) = connection_at(&mut self.connections, stream) {
            connection.server.bye(reason, text);
            self.mark_dirty(stream);
        }
    }

    /// The next connection that has something to write or is over, each once.
    pub(crate) fn next_dirty(&mut self, backend: &mut impl EntryBackend) -> Option<StreamId> {
        while let Some(stream) = self.dirty.pop_front() {
            if let Some(connection) = connection_at(&mut self.connections, stream) {
                if connection.server.is_fix() {
                    // What waited for an answer or for room. Its rate was checked when it came.
                    let now_ns = backend.at().now_ns;
                    self.serve(stream, &mut |_, _, _| Ok(()), backend, |server, host| server.go_on(now_ns, host));
                }
                if let Some(connection) = connection_at(&mut self.connections, stream) {
                    connection.is_dirty = false;
                    self.fix_look_ns = self.fix_look_ns.min(connection.fix_deadline_ns());
                    // What was asked was known already, so no answer will come.
                    if connection.server.has_turn() {
                        connection.mark_dirty(&mut self.dirty);
                    }
                }
                self.end_if_over(stream, Loss::Ended, backend);
                return Some(stream);
            }
        }
        None
    }

    /// Whether [`next_dirty`](Self::next_dirty) may find a connection.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self, stream: StreamId) -> &[u8] {
        self.connection(stream).map_or(&[], |connection| connection.server.output())
    }

    /// So many of them were written.
    pub fn consume(&mut self, stream: StreamId, len: usize) {
        if let Some(connection) = connection_at(&mut self.connections, stream) {
            connection.server.consume(len);
        }
    }

    /// Whether a connection is over: once its output is written, or not waited for any more, [`remove`](Self::remove) it.
    #[must_use]
    pub fn is_over(&self, stream: StreamId) -> bool {
        self.connection(stream).is_none_or(|connection| connection.server.is_over())
    }

    /// A connection is gone.
    pub fn remove(&mut self, stream: StreamId) {
        self.detach(stream.place);
        if let Some(place) = self.connections.get_mut(stream.place).filter(|place| is_of(place, stream)) {
            *place = None;
        }
    }

    /// The next connection that ended, for the log of the process.
    pub fn next_end(&mut self) -> Option<ConnectionEnd> {
        self.ends.pop_front()
    }

    /// The connection has something to write, or can be written again.
    pub fn mark_dirty(&mut self, stream: StreamId) {
        if let Some(connection) = connection_at(&mut self.connections, stream) {
            connection.mark_dirty(&mut self.dirty);
        }
    }

    /// Follows up on a connection that has ended, once.
    fn end_if_over(&mut self, stream: StreamId, loss: Loss, backend: &mut impl EntryBackend) {
        let Some(connection) = connection_at(&mut self.connections, stream) else { return };
        let Some(ended) = connection.server.take_ended() else { return };
        self.remember(stream.place);
        let Some(connection) = connection_at(&mut self.connections, stream) else { return };
        self.ends.push_back(ConnectionEnd { stream, account: connection.account, reason: ended.reason, loss });
        if let Some(open) = connection.opening.take() {
            self.stop_waiting(stream, open, backend);
        }
        if let Some(account) = ended.cancel {
            backend.cancel_behind(ended.session, account);
        }
        self.detach(stream.place);
    }

    /// A connection hears of its session and account no more.
    fn detach(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
        if let Some(session) = connection.session.take() {
            leave(&mut self.by_session, session, place);
        }
        if let Some(account) = connection.account {
            leave(&mut self.by_account, account, place);
        }
    }

    /// A connection that is gone waits for no session.
    fn stop_waiting(&mut self, stream: StreamId, open: OpenSession, backend: &mut impl EntryBackend) {
        let name = (open.account, open.token);
        let Some(streams) = self.waiting.get_mut(&name) else { return };
        streams.retain(|other| *other != stream);
        if streams.is_empty() {
            self.waiting.remove(&name);
            backend.give_up_opening(open);
        }
    }

    fn connection(&self, stream: StreamId) -> Option<&Connection> {
        self.connections.get(stream.place).filter(|place| is_of(place, stream)).and_then(Option::as_ref)
    }

    /// The log has opened a connection's session.
    pub(crate) fn opened(&mut self, stream: StreamId, now_ns: u64, session: SessionId, next: SessionSeq, reports: &Reports) {
        let Some(connection) = self.connection(stream) else { return };
        let (account, wanted) = (connection.account, connection.wants_now());
        let start = SessionStart::new(session, next, account, wanted, reports);
        if !self.resends.allow(now_ns, account, &start) {
            return self.bye(stream, ByeReason::Rejected(RejectReason::Throttled), TOO_MANY);
        }
        if !self.begin(stream, now_ns, start) {
            return;
        }
        if let (Some(account), Some(connection)) = (account, connection_at(&mut self.connections, stream))
            && start.reports_from <= start.report_seq
            && let Resend::Found(missed) = reports.resend_named(account, start.reports_from - 1)
        {
            for (report, name) in missed {
                connection.server.report(&report, name);
            }
        }
    }

    /// A connection's session begins: whether it did. The reports from the first one that is announced follow.
    pub(crate) fn begin(&mut self, stream: StreamId, now_ns: u64, start: SessionStart) -> bool {
        let session = start.session;
        let Some(ours) = self.connection(stream).map(Connection::claim) else { return false };
        let others = self.by_session.get(&session).cloned().unwrap_or_default();
        for other in others.into_iter().filter(|other| *other != stream.place) {
            let Some(theirs) = self.connections[other].as_ref().map(Connection::claim) else { continue };
            if theirs.has_copies && ours.has_copies {
                continue;
            }
            // The later logon has the session, not the one that the log opened last: a client gives a connection up before the
            // venue knows.
            // Of a logon that is good once, the first copy has it.
            if theirs.logon_seq > ours.logon_seq || (ours.is_once && theirs.logon_seq == ours.logon_seq) {
                self.replace(stream.place);
                return false;
            }
            self.replace(other);
        }
        let Self { by_session, by_account, connections, dirty, remembered, .. } = self;
        let Some(connection) = connection_at(connections, stream) else { return false };
        // A FIX session whose numbers begin again is another one.
        if let Some(before) = connection.session.filter(|before| *before != session) {
            leave(by_session, before, stream.place);
        }
        join(by_session, session, stream.place);
        connection.session = Some(session);
        let memory = connection.server.remembered_as().and_then(|name| remembered.remove(&name)).map(|(_, memory)| memory);
        connection.server.opened(now_ns, start, memory);
        if let Some(account) = connection.account {
            join(by_account, account, stream.place);
        }
        connection.mark_dirty(dirty);
        true
    }

    /// A later logon has the session.
    fn replace(&mut self, loser: usize) {
        self.detach(loser);
        let Self { connections, dirty, .. } = self;
        if let Some(connection) = connections.get_mut(loser).and_then(Option::as_mut) {
            // Open orders stay, because the session goes on elsewhere.
            connection.server.bye(ByeReason::Replaced, "");
            connection.mark_dirty(dirty);
        }
        self.remember(loser);
    }

    /// Keeps what a connection that is over leaves to the next one of its session.
    fn remember(&mut self, place: usize) {
        let Self { connections, remembered, remembered_count, .. } = self;
        let memory = connections.get_mut(place).and_then(Option::as_mut).and_then(|connection| connection.server.take_memory());
        if let Some((account, token, memory)) = memory {
            *remembered_count += 1;
            remembered.insert((account, token), (*remembered_count, memory));
            if remembered.len() > REMEMBERED_MAX {
                let oldest = remembered.iter().min_by_key(|(_, (count, _))| *count).map(|(name, _)| *name);
                if let Some(oldest) = oldest {
                    remembered.remove(&oldest);
                }
            }
        }
    }

    /// The log has opened a session, for each connection here that waits for it.
    pub(crate) fn open_applied(
        &mut self,
        now_ns: u64,
        open: &OpenSession,
        session: SessionId,
        next: SessionSeq,
        reports: &Reports,
    ) {
        for stream in self.take_waiting(open) {
            self.opened(stream, now_ns, session, next, reports);
        }
    }

    /// Connections that wait for a session, which wait for it to begin from now on.
    pub(crate) fn take_waiting(&mut self, open: &OpenSession) -> Vec<StreamId> {
        let streams = self.waiting.remove(&(open.account, open.token)).unwrap_or_default();
        for stream in &streams {
            if let Some(connection) = connection_at(&mut self.connections, *stream) {
                connection.opening = None;
            }
        }
        streams
    }

    /// What a connection, which is not over, has asked for in its logon, as of this session.
    pub(crate) fn terms(&self, stream: StreamId, session: SessionId) -> Option<LeafSession> {
        self.connection(stream).filter(|connection| !connection.server.is_over()).map(|connection| connection.terms(session))
    }

    /// The same of a connection that has this session.
    pub(crate) fn terms_of(&self, session: SessionId) -> Option<LeafSession> {
        let place = self.by_session.get(&session)?.first()?;
        self.connections[*place].as_ref().map(|connection| connection.terms(session))
    }

    /// Whether a connection has this session.
    pub(crate) fn has_session(&self, session: SessionId) -> bool {
        self.by_session.contains_key(&session)
    }

    /// Whether a connection speaks FIX.
    pub(crate) fn is_fix(&self, stream: StreamId) -> bool {
        self.connection(stream).is_some_and(|connection| connection.server.is_fix())
    }

    /// The last report that all connections of a session have which take reports; `None` where none does.
    pub(crate) fn reports_had(&self, session: SessionId) -> Option<u64> {
        let places = self.by_session.get(&session)?;
        places.iter().filter_map(|place| self.connections[*place].as_ref()?.server.reports_had()).min()
    }

    /// Reports before this one do not come any more: connections of the session that lack some are over.
    pub(crate) fn lose_reports_before(&mut self, session: SessionId, report_seq: u64) {
        self.with_session(session, |server| {
            if server.reports_had().is_some_and(|had| had + 1 < report_seq) {
                server.bye(ByeReason::VenueFault, "");
            }
        });
    }

    /// A session's connections are over, and may come again.
    pub(crate) fn interrupt(&mut self, session: SessionId, text: &str) {
        self.with_session(session, |server| server.bye(ByeReason::VenueFault, text));
    }

    /// The leader does not open a session.
    pub(crate) fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        for stream in self.waiting.remove(&(open.account, open.token)).unwrap_or_default() {
            self.not_opened(stream, reason);
        }
    }

    /// A session could not be opened.
    pub(crate) fn not_opened(&mut self, stream: StreamId, reason: RejectReason) {
        self.bye(stream, ByeReason::Rejected(reason), "");
    }

    /// A client has logged on at another replica: connections that did so before have lost the session.
    pub(crate) fn replaced_before(&mut self, session: SessionId, logon_seq: u64) {
        for place in self.by_session.get(&session).cloned().unwrap_or_default() {
            if self.connections[place].as_ref().is_some_and(|connection| connection.logon_seq < logon_seq) {
                self.replace(place);
            }
        }
    }

    /// What clients were sent does not follow from the state any more: all connections are over.
    pub(crate) fn fail_all(&mut self) {
        self.each(|server| server.bye(ByeReason::VenueFault, ""));
    }

    /// Nothing that comes in here is answered for a while: all connections are over, for this reason.
    pub(crate) fn refuse_all(&mut self, reason: RejectReason) {
        self.each(|server| server.bye(ByeReason::Rejected(reason), ""));
    }

    /// Another replica leads, or none: all clients are sent there.
    pub(crate) fn not_leader(&mut self, leader: &str) {
        self.each(|server| server.not_leader(leader));
    }

    fn each(&mut self, mut act: impl FnMut(&mut EntryServer)) {
        let Self { connections, dirty, .. } = self;
        for connection in connections.iter_mut().flatten() {
            act(&mut connection.server);
            connection.mark_dirty(dirty);
        }
    }

    /// As [`Self::not_leader`], for a connection whose session was not opened.
    pub(crate) fn sent_away(&mut self, stream: StreamId, leader: &str) {
        if let Some(connection) = connection_at(&mut self.connections, stream) {
            connection.server.not_leader(leader);
            self.mark_dirty(stream);
        }
    }

    /// What came of a session's command.
    pub fn answer(&mut self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>) {
        self.with_session(ordinal.session, |server| server.answer(ordinal, answer, time));
    }

    /// A session's command was in the log and not its session's next, or the leader does not take it.
    pub(crate) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        self.with_session(ordinal.session, |server| server.refused(ordinal, reason, None));
    }

    /// A session's command was late.
    pub(crate) fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.with_session(ordinal.session, |server| server.late(ordinal, late_ns));
    }

    /// A session is closed.
    pub(crate) fn closed(&mut self, session: SessionId) {
        self.with_session(session, EntryServer::closed);
    }

    /// For each connection that has the session.
    fn with_session(&mut self, session: SessionId, mut act: impl FnMut(&mut EntryServer)) {
        let Self { by_session, connections, dirty, .. } = self;
        for &place in by_session.get(&session).into_iter().flatten() {
            let Some(connection) = &mut connections[place] else { continue };
            act(&mut connection.server);
            connection.mark_dirty(dirty);
        }
    }

    /// Something concerns an account: an order perhaps, which its owner may call by a text.
    pub(crate) fn report(&mut self, account: AccountId, report: &Report<'_>, name: Option<ClientOrderName>) {
        let Self { by_account, connections, dirty, .. } = self;
        for &place in by_account.get(&account).into_iter().flatten() {
            let Some(connection) = &mut connections[place] else { continue };
            connection.server.report(report, name);
            connection.mark_dirty(dirty);
        }
    }

    /// Ends silent connections.
    pub(crate) fn on_timer(&mut self, now_ns: u64) {
        let Self { connections, dirty, .. } = self;
        let mut fix_look_ns = u64::MAX;
        for connection in connections.iter_mut().flatten() {
            if connection.server.deadline_ns().is_some_and(|at| at <= now_ns) {
                connection.server.on_timer(now_ns);
                connection.mark_dirty(dirty);
            }
            fix_look_ns = fix_look_ns.min(connection.fix_deadline_ns());
        }
        // What is due now is done where its connection is looked at as one that has something to write.
        self.fix_look_ns = fix_look_ns.max(now_ns.saturating_add(1_000_000));
    }

    /// When [`on_timer`](Self::on_timer) has something to do for a FIX connection.
    pub(crate) fn fix_look_ns(&self) -> u64 {
        self.fix_look_ns
    }

    /// When [`on_timer`](Self::on_timer) has something to do.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.connections.iter().flatten().filter_map(|connection| connection.server.deadline_ns()).min().unwrap_or(u64::MAX)
    }
}

impl Connection {
    fn mark_dirty(&mut self, dirty: &mut VecDeque<StreamId>) {
        if !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push_back(self.stream);
        }
    }

    fn fix_deadline_ns(&self) -> u64 {
        if self.server.is_fix() { self.server.deadline_ns().unwrap_or(u64::MAX) } else { u64::MAX }
    }

    /// The reports that its session begins with.
    fn wants_now(&self) -> ReportsWanted {
        if self.server.closes_first() { ReportsWanted::None } else { self.wanted }
    }

    fn terms(&self, session: SessionId) -> LeafSession {
        let wanted = self.wants_now();
        let Self { account, logon_seq, has_copies, .. } = *self;
        LeafSession { session, account, logon_seq, has_copies, wanted }
    }

    fn claim(&self) -> Claim {
        Claim { logon_seq: self.logon_seq, has_copies: self.has_copies, is_once: self.is_once }
    }
}

/// A connection's claim to a session.
#[derive(Clone, Copy, Debug)]
struct Claim {
    logon_seq: u64,
    has_copies: bool,
    is_once: bool,
}

fn is_of(place: &Option<Connection>, stream: StreamId) -> bool {
    place.as_ref().is_some_and(|connection| connection.stream == stream)
}

fn connection_at(connections: &mut [Option<Connection>], stream: StreamId) -> Option<&mut Connection> {
    connections.get_mut(stream.place)?.as_mut().filter(|connection| connection.stream == stream)
}

fn join<K: Ord>(places: &mut BTreeMap<K, Vec<usize>>, key: K, place: usize) {
    let places = places.entry(key).or_default();
    if !places.contains(&place) {
        places.push(place);
    }
}

fn leave<K: Ord>(places: &mut BTreeMap<K, Vec<usize>>, key: K, place: usize) {
    if let Some(of_key) = places.get_mut(&key) {
        of_key.retain(|other| *other != place);
        if of_key.is_empty() {
            places.remove(&key);
        }
    }
}

/// What a connection keeps of its logon.
struct Notes<'a> {
    account: &'a mut Option<AccountId>,
    wanted: &'a mut ReportsWanted,
    logon_seq: &'a mut u64,
    has_copies: &'a mut bool,
    is_once: &'a mut bool,
    opening: &'a mut Option<OpenSession>,
}

/// What a connection's session asks for while it is served.
struct Serving<'s, 'c, B> {
    backend: &'s mut B,
    charge: &'s mut Charge<'c>,
    stream: StreamId,
    notes: Notes<'s>,
    waiting: &'s mut Waiting,
    logons: &'s mut VecDeque<(StreamId, LogonRequest)>,
    transactions: &'s mut VecDeque<(StreamId, TransactionFrame)>,
    immediate: &'s mut Vec<Immediate>,
}

impl<B: EntryBackend> Host for Serving<'_, '_, B> {
    fn authenticate(&mut self, logon: LogonRequest) {
        *self.notes.logon_seq = logon.terms.logon_seq;
        *self.notes.has_copies = logon.terms.has_copies();
        *self.notes.is_once = logon.is_once;
        self.logons.push_back((self.stream, logon));
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted) {
        // A FIX session whose numbers begin again is opened a second time, by the same logon.
        let is_first = self.notes.account.is_none();
        (*self.notes.account, *self.notes.wanted) = (account, reports);
        let open = OpenSession { account, token };
        let usage = match (*self.notes.has_copies, *self.notes.is_once && is_first) {
            (true, _) => SessionUse::Shared,
            (false, true) => SessionUse::AloneOnce,
            (false, false) => SessionUse::Alone,
        };
        match self.backend.open(AskedSession { stream: self.stream, open, logon_seq: *self.notes.logon_seq, usage }) {
            Opens::Direct => {}
            Opens::Together => {
                *self.notes.opening = Some(open);
                self.waiting.entry((account, token)).or_default().push(self.stream);
            }
            Opens::Not(why) => self.immediate.push(Immediate::Open(why)),
        }
    }

    fn charge(&mut self, _: u64, principal: &Principal, permission: Permission, from: Allowance) -> Result<(), Refusal> {
        (self.charge)(principal, permission, from)
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, content: &[u8]) {
        if let Err(why) = self.backend.submit(ordinal, command, content, *self.notes.has_copies) {
            self.immediate.push(Immediate::Command(ordinal, why));
        }
    }

    fn transactions(&mut self, frame: TransactionFrame) {
        self.transactions.push_back((self.stream, frame));
    }
}
