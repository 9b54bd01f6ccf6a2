//! The binary order-entry port, on the replica's own thread: bytes in, commands to the sequencer, answers and reports out.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender};
use mio::event::Event as Ready;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use tracing::debug;
use walras_gateway::session::{Host as EntryHost, LogonRequest, Reports, Resend, ServerSettings, SessionServer, SessionStart};
use walras_gateway::{Permission, Principal, Refusal, SourceId};
use walras_peer_link::listener::Listener;
use walras_sequencer::{GatewayTime, NotTaken, ReplicatedSequencer};
use walras_types::{AccountId, Answer, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{ByeReason, Report, ReportsWanted};
use walras_wire::{Command, MassCancel, OpenSession};

use super::Origin;
use super::doorbell::Doorbell;
use super::fair::Fair;
use super::read_turns::{ReadTurns, TURN_BYTES};
use super::traces::Traces;
use crate::access::Access;
use crate::connections::{Doors, Guest, Kind, tell_shortage};

/// A connection's name; never used again in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionKey {
    place: usize,
    serial: u64,
}

struct Connection {
    stream: TcpStream,
    serial: u64,
    server: SessionServer,
    source: SourceId,
    /// From its logon on.
    account: Option<AccountId>,
    wanted: ReportsWanted,
    session: Option<SessionId>,
    /// Of its logon.
    stamp_ns: u64,
    /// Whether other connections keep its session too.
    has_copies: bool,
    /// The session that it waits for, where others pass that on.
    opening: Option<OpenSession>,
    /// The socket took less than there was.
    is_blocked: bool,
    is_dirty: bool,
    /// Given back when the connection goes.
    guest: Guest,
    /// Since when it is over, and only what the client was told last is to be written.
    over_since_ns: Option<u64>,
}

/// All connections.
pub(super) struct OrderEntry {
    registry: Registry,
    tokens: Range<usize>,
    listener: Listener,
    /// There once the keys are read; before, nobody is let in.
    access: Arc<OnceLock<Arc<Access>>>,
    settings: ServerSettings,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    next_serial: u64,
    /// One place, or several where all have copies.
    by_session: BTreeMap<SessionId, Vec<usize>>,
    /// Who waits for a session, by its account and token.
    waiting: Waiting,
    by_account: BTreeMap<AccountId, Vec<usize>>,
    /// Connections that have something to write.
    dirty: Vec<usize>,
    read_turns: ReadTurns,
    immediate: Vec<Immediate>,
    buffer: Box<[u8]>,
    doors: Doors,
    doorbell: Doorbell,
    /// Connections whose places others need.
    displaced: (Sender<ConnectionKey>, Receiver<ConnectionKey>),
}

/// A client that does not read what it was told last is waited for so long.
const FAREWELL_NS: u64 = 5_000_000_000;

type Waiting = BTreeMap<(Option<AccountId>, u64), Vec<ConnectionKey>>;

/// What the sequencer says at once.
enum Immediate {
    Command(Ordinal, NotTaken),
    Open(NotTaken),
    Logon(Box<Result<Principal, Refusal>>),
}

/// What connections need of the replica's thread.
pub(super) struct Desk<'a> {
    pub(super) sequencer: &'a mut ReplicatedSequencer<Origin>,
    pub(super) now: TimeNs,
    pub(super) now_ns: u64,
    /// Where the leader takes orders, as far as it is known.
    pub(super) leader: &'a str,
    /// Whoever passes on to the leader what comes here; without it only a leader takes orders.
    pub(super) fair: Option<&'a mut Fair>,
    pub(super) traces: &'a mut Traces,
}

impl OrderEntry {
    pub(super) fn new(
        registry: &Registry,
        tokens: Range<usize>,
        listen: SocketAddr,
        settings: ServerSettings,
        access: Arc<OnceLock<Arc<Access>>>,
        (doors, doorbell): (Doors, Doorbell),
    ) -> io::Result<Self> {
        let listener = Listener::bind(registry, Token(tokens.start), listen)?;
        Ok(Self {
            registry: registry.try_clone()?,
            tokens,
            listener,
            access,
            settings,
            connections: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            by_session: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_account: BTreeMap::new(),
            dirty: Vec::new(),
            read_turns: ReadTurns::default(),
            immediate: Vec::new(),
            buffer: vec![0; TURN_BYTES].into_boxed_slice(),
            doors,
            doorbell,
            displaced: crossbeam_channel::unbounded(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    pub(super) fn owns(&self, token: Token) -> bool {
        self.tokens.contains(&token.0)
    }

    pub(super) fn on_ready(&mut self, ready: &Ready, desk: &mut Desk<'_>) {
        let at = ready.token().0 - self.tokens.start;
        if at == 0 {
            self.accept(desk.now_ns);
            return;
        }
        let place = at - 1;
        if ready.is_writable()
            && let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut)
        {
            connection.is_blocked = false;
            self.soil(place);
        }
        let is_ending = ready.is_read_closed() || ready.is_error();
        if (ready.is_readable() || is_ending) && !self.read_turns.waits(place) {
            self.read(place, is_ending, desk);
        }
    }

    /// Whether there is something to read of which the poll does not tell.
    pub(super) fn has_unread(&self) -> bool {
        !self.read_turns.is_empty()
    }

    /// When connections are to be looked for that the poll will not tell of.
    pub(super) fn look_at_ns(&self) -> Option<u64> {
        self.listener.look_at_ns()
    }

    /// Begins a round, with what was left in the one before.
    pub(super) fn read_on(&mut self, desk: &mut Desk<'_>) {
        while let Ok(key) = self.displaced.1.try_recv() {
            self.displace(key, desk);
        }
        if self.listener.look_at_ns().is_some_and(|at| at <= desk.now_ns) {
            self.accept(desk.now_ns);
        }
        self.read_turns.begin_round();
        while let Some(place) = self.read_turns.call() {
            // Whether its end came meanwhile is not known here.
            self.read(place, true, desk);
        }
    }

    fn accept(&mut self, now_ns: u64) {
        while let Some((mut stream, remote)) = self.listener.accept(now_ns) {
            let place = self.free.pop().unwrap_or(self.connections.len());
            let token = Token(self.tokens.start + 1 + place);
            let is_welcome = token.0 < self.tokens.end
                && self.registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_ok();
            if !is_welcome {
                if place < self.connections.len() {
                    self.free.push(place);
                }
                continue;
            }
            if place == self.connections.len() {
                self.connections.push(None);
            }
            self.next_serial += 1;
            let key = ConnectionKey { place, serial: self.next_serial };
            let (displaced, doorbell) = (self.displaced.0.clone(), self.doorbell.clone());
            let guest = self.doors.enter(remote.ip(), move || {
                let _ = displaced.send(key);
                doorbell.ring();
            });
            debug!("order entry: {remote} connected");
            self.connections[place] = Some(Connection {
                stream,
                serial: self.next_serial,
                server: SessionServer::new(self.settings, now_ns),
                source: SourceId::of(remote.ip()),
                account: None,
                wanted: ReportsWanted::None,
                session: None,
                stamp_ns: 0,
                has_copies: false,
                opening: None,
                is_blocked: false,
                is_dirty: false,
                guest,
                over_since_ns: None,
            });
        }
        if let Some(news) = self.listener.take_news() {
            tell_shortage("order entry", news);
        }
    }

    /// Reads what is there, as far as it is the connection's turn, and with `to_the_end` whether anything may still come.
    fn read(&mut self, place: usize, to_the_end: bool, desk: &mut Desk<'_>) {
        let mut taken = 0;
        loop {
            let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
            let room = self.read_turns.room(taken);
            if room == 0 {
                return self.read_turns.wait(place, taken);
            }
            match connection.stream.read(&mut self.buffer[..room]) {
                Ok(0) => return self.lose(place, desk),
                Ok(len) => {
                    taken += len;
                    self.read_turns.has_read(len);
                    self.take(place, len, desk);
                    // A short read has emptied the socket, and what comes later is told again; but an end may already have been told.
                    if len < room && !to_the_end {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(place, desk),
            }
        }
    }

    fn take(&mut self, place: usize, len: usize, desk: &mut Desk<'_>) {
        let Self { connections, buffer, immediate, access, waiting, .. } = self;
        let Some(connection) = connections.get_mut(place).and_then(Option::as_mut) else { return };
        let Connection { server, source, serial, account, wanted, stamp_ns, has_copies, opening, guest, .. } = connection;
        let key = ConnectionKey { place, serial: *serial };
        let logon = LogonNotes { account, wanted, stamp_ns, has_copies, opening };
        let read_at = desk.fair.as_mut().map(|fair| fair.at(desk.now_ns));
        let mut host = Doorkeeper { desk, read_at, access, source: *source, key, logon, waiting, immediate };
        server.on_bytes(host.desk.now_ns, &buffer[..len], &mut host);
        loop {
            let told: Vec<Immediate> = std::mem::take(host.immediate);
            if told.is_empty() {
                break;
            }
            for one in told {
                match one {
                    Immediate::Logon(verdict) => {
                        if matches!(&*verdict, Ok(principal) if !guest.has_shown(principal.permissions())) {
                            server.bye(ByeReason::Rejected(RejectReason::Overloaded), "All places for participants are taken.");
                        } else {
                            server.authenticated(*verdict, &mut host);
                        }
                    }
                    Immediate::Open(NotTaken::NotLeader { .. }) | Immediate::Command(_, NotTaken::NotLeader { .. }) => {
                        server.not_leader(host.desk.leader);
                    }
                    Immediate::Open(NotTaken::Refused(reason)) => server.bye(ByeReason::Rejected(reason), ""),
                    Immediate::Open(_) => server.bye(ByeReason::VenueFault, ""),
                    Immediate::Command(ordinal, NotTaken::Repeated(answer)) => {
                        // The state remembers what came of it, not when.
                        server.answer(ordinal, answer, None);
                    }
                    Immediate::Command(_, NotTaken::OnItsWay) => {}
                    Immediate::Command(ordinal, NotTaken::Refused(reason)) => server.refused(ordinal, reason, None),
                }
            }
        }
        self.soil(place);
        self.end_if_over(place, desk);
    }

    /// The connection has something to write.
    fn soil(&mut self, place: usize) {
        if let Some(connection) = &mut self.connections[place]
            && !connection.is_dirty
        {
            connection.is_dirty = true;
            self.dirty.push(place);
        }
    }

    /// The client is gone.
    fn lose(&mut self, place: usize, desk: &mut Desk<'_>) {
        if let Some(connection) = &mut self.connections[place] {
            connection.server.on_disconnect();
        }
        self.end(place, desk, "the client closed the connection, or it broke");
        self.remove(place);
    }

    /// Another connection needs the place.
    fn displace(&mut self, key: ConnectionKey, desk: &mut Desk<'_>) {
        let Some(place) = self.place_of(key) else { return };
        if let Some(connection) = &mut self.connections[place] {
            connection.server.bye(ByeReason::Rejected(RejectReason::Overloaded), "Another connection needs the place.");
            // What the socket does not take now is not waited for.
            let _ = connection.write();
        }
        self.lose(place, desk);
    }

    /// Follows up on a connection that has ended.
    fn end_if_over(&mut self, place: usize, desk: &mut Desk<'_>) {
        self.end(place, desk, "another replica leads");
    }

    /// The same, and why it ended where the client was given no reason.
    fn end(&mut self, place: usize, desk: &mut Desk<'_>, otherwise: &str) {
        let Some(connection) = &mut self.connections[place] else { return };
        let Some(ended) = connection.server.take_ended() else { return };
        let (kind, account) =
            (if connection.account.is_some() { Kind::AccountEnded } else { Kind::StrangerEnded }, connection.account);
        self.doors.say(kind, || farewell(account, ended.reason, otherwise));
        if let Some(open) = connection.opening.take() {
            let key = ConnectionKey { place, serial: connection.serial };
            self.stop_waiting(key, open, desk);
        }
        if let Some(account) = ended.cancel {
            let cancel = MassCancel { account, instrument: None, side: None };
            match (&mut desk.fair, ended.session) {
                (Some(fair), Some(session)) => fair.cancel_behind(desk.now_ns, session, cancel),
                // Without a leader here nobody can cancel; the client's next logon, at the leader, may.
                _ => drop(desk.sequencer.submit(desk.now, None, &Command::MassCancel(cancel), None)),
            }
        }
        self.forget(place);
    }

    /// Nobody is told at this connection any more.
    fn forget(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if let Some(session) = connection.session.take()
            && let Some(places) = self.by_session.get_mut(&session)
        {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.by_session.remove(&session);
            }
        }
        if let Some(account) = connection.account
            && let Some(places) = self.by_account.get_mut(&account)
        {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.by_account.remove(&account);
            }
        }
    }

    /// Nobody opens a session for a connection that is gone.
    fn stop_waiting(&mut self, key: ConnectionKey, open: OpenSession, desk: &mut Desk<'_>) {
        let name = (open.account, open.token);
        let Some(keys) = self.waiting.get_mut(&name) else { return };
        keys.retain(|other| *other != key);
        if keys.is_empty() {
            self.waiting.remove(&name);
            if let Some(fair) = &mut desk.fair {
                fair.access.give_up_opening(open);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.forget(place);
        if let Some(mut connection) = self.connections[place].take() {
            let _ = self.registry.deregister(&mut connection.stream);
            self.free.push(place);
        }
    }

    fn place_of(&self, key: ConnectionKey) -> Option<usize> {
        let connection = self.connections.get(key.place)?.as_ref()?;
        (connection.serial == key.serial).then_some(key.place)
    }

    /// The log has opened a connection's session.
    pub(super) fn opened(&mut self, key: ConnectionKey, now_ns: u64, session: SessionId, next: SessionSeq, reports: &Reports) {
        let Some(place) = self.place_of(key) else { return };
        let look =
            |entry: &Self, at: usize| entry.connections[at].as_ref().map(|connection| (connection.stamp_ns, connection.has_copies));
        let others = self.by_session.get(&session).cloned().unwrap_or_default();
        for other in others.into_iter().filter(|other| *other != place) {
            let (Some((theirs_ns, theirs)), Some((ours_ns, ours))) = (look(self, other), look(self, place)) else { continue };
            if theirs && ours {
                continue;
            }
            // The later logon has the session, not the one that the log opened last: a client gives a connection up before the venue knows.
            let loser = if theirs_ns > ours_ns { place } else { other };
            self.replace(loser);
            if loser == place {
                return;
            }
        }
        let places = self.by_session.entry(session).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
        let Some(connection) = &mut self.connections[place] else { return };
        connection.session = Some(session);
        let start = SessionStart::new(session, next, connection.account, connection.wanted, reports);
        connection.server.opened(now_ns, start);
        if let Some(account) = connection.account {
            if let Resend::Found(missed) = reports.resend(account, start.reports_from - 1) {
                for report in missed {
                    // They follow each other from the one that was announced.
                    let _ = connection.server.report(&report);
                }
            }
            self.by_account.entry(account).or_default().push(place);
        }
        self.soil(place);
    }

    fn replace(&mut self, loser: usize) {
        self.forget(loser);
        if let Some(connection) = &mut self.connections[loser] {
            connection.server.replaced();
            self.soil(loser);
        }
    }

    /// The log has opened a session for whoever waits for it here.
    pub(super) fn open_applied(
        &mut self,
        now_ns: u64,
        open: &OpenSession,
        session: SessionId,
        next: SessionSeq,
        reports: &Reports,
    ) {
        for key in self.waiting.remove(&(open.account, open.token)).unwrap_or_default() {
            if let Some(place) = self.place_of(key)
                && let Some(connection) = &mut self.connections[place]
            {
                connection.opening = None;
            }
            self.opened(key, now_ns, session, next, reports);
        }
    }

    /// The leader does not open a session.
    pub(super) fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        for key in self.waiting.remove(&(open.account, open.token)).unwrap_or_default() {
            self.not_opened(key, reason);
        }
    }

    /// A client has logged on at another replica: those that did so before have lost the session.
    pub(super) fn replaced_before(&mut self, session: SessionId, logged_on_ns: u64) {
        for place in self.by_session.get(&session).cloned().unwrap_or_default() {
            if self.connections[place].as_ref().is_some_and(|connection| connection.stamp_ns < logged_on_ns) {
                self.replace(place);
            }
        }
    }

    /// What connections were told does not follow from the state any more: they begin anew.
    pub(super) fn fail_all(&mut self) {
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                connection.server.bye(ByeReason::VenueFault, "");
                self.soil(place);
            }
        }
    }

    /// A session could not be opened.
    pub(super) fn not_opened(&mut self, key: ConnectionKey, reason: RejectReason) {
        let Some(place) = self.place_of(key) else { return };
        if let Some(connection) = &mut self.connections[place] {
            connection.server.bye(ByeReason::Rejected(reason), "");
            self.soil(place);
        }
    }

    /// Another replica leads, or nobody: everybody is sent there.
    pub(super) fn not_leader(&mut self, leader: &str) {
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                connection.server.not_leader(leader);
                self.soil(place);
            }
        }
    }

    /// As [`Self::not_leader`], for one whose session was not opened.
    pub(super) fn sent_away(&mut self, key: ConnectionKey, leader: &str) {
        if let Some(place) = self.place_of(key)
            && let Some(connection) = &mut self.connections[place]
        {
            connection.server.not_leader(leader);
            self.soil(place);
        }
    }

    /// What came of a session's command.
    pub(super) fn answer(&mut self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>) {
        self.with_session(ordinal.session, |server| server.answer(ordinal, answer, time));
    }

    /// A session's command was in the log and not its session's next, or the leader does not take it.
    pub(super) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        self.with_session(ordinal.session, |server| server.refused(ordinal, reason, None));
    }

    /// A session's command was late.
    pub(super) fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.with_session(ordinal.session, |server| server.late(ordinal, late_ns));
    }

    /// For each connection that has the session.
    fn with_session(&mut self, session: SessionId, mut tell: impl FnMut(&mut SessionServer)) {
        let Self { by_session, connections, dirty, .. } = self;
        for &place in by_session.get(&session).into_iter().flatten() {
            let Some(connection) = &mut connections[place] else { continue };
            tell(&mut connection.server);
            if !connection.is_dirty {
                connection.is_dirty = true;
                dirty.push(place);
            }
        }
    }

    /// Something concerns an account.
    pub(super) fn report(&mut self, account: AccountId, report: &Report<'_>) {
        let Self { by_account, connections, dirty, .. } = self;
        for &place in by_account.get(&account).into_iter().flatten() {
            let Some(connection) = &mut connections[place] else { continue };
            // They come in order from the logon on, so none is missing.
            let _ = connection.server.report(report);
            if !connection.is_dirty {
                connection.is_dirty = true;
                dirty.push(place);
            }
        }
    }

    /// A session is closed.
    pub(super) fn closed(&mut self, session: SessionId) {
        let reason = ByeReason::Rejected(RejectReason::UnknownSession);
        self.with_session(session, |server| server.bye(reason, "The session was closed."));
    }

    /// Ends what is silent, and lets go of what has ended and is not read.
    pub(super) fn on_timer(&mut self, now_ns: u64) {
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            if connection.server.deadline_ns().is_some_and(|at| at <= now_ns) {
                connection.server.on_timer(now_ns);
                self.soil(place);
            } else if connection.server.is_over()
                && now_ns >= connection.over_since_ns.get_or_insert(now_ns).saturating_add(FAREWELL_NS)
            {
                self.remove(place);
            }
        }
    }

    /// Writes what there is.
    pub(super) fn flush(&mut self, desk: &mut Desk<'_>) {
        for at in 0..self.dirty.len() {
            let place = self.dirty[at];
            self.end_if_over(place, desk);
            let Some(connection) = &mut self.connections[place] else { continue };
            connection.is_dirty = false;
            let is_lost = !connection.is_blocked && connection.write().is_err();
            let is_done = connection.server.is_over() && connection.server.output().is_empty();
            if is_lost {
                self.lose(place, desk);
            } else if is_done {
                self.remove(place);
            }
        }
        self.dirty.clear();
    }
}

/// Why a connection ended, for people.
fn farewell(account: Option<AccountId>, told: Option<ByeReason>, otherwise: &str) -> String {
    let who = account.map_or_else(|| "a connection that had not logged on".to_owned(), |account| format!("account {}", account.0));
    match told {
        Some(reason) => format!("order entry: {who}: the connection was ended: {} ({})", reason.advice(), reason.number()),
        None => format!("order entry: {who}: {otherwise}"),
    }
}

impl Connection {
    fn write(&mut self) -> io::Result<()> {
        while !self.server.output().is_empty() {
            match self.stream.write(self.server.output()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => self.server.consume(len),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// What a connection keeps of its logon.
struct LogonNotes<'a> {
    account: &'a mut Option<AccountId>,
    wanted: &'a mut ReportsWanted,
    stamp_ns: &'a mut u64,
    has_copies: &'a mut bool,
    opening: &'a mut Option<OpenSession>,
}

/// What a connection's session asks for while it reads.
struct Doorkeeper<'a, 'd> {
    desk: &'a mut Desk<'d>,
    /// With fair access, when the bytes reached this replica.
    read_at: Option<GatewayTime>,
    access: &'a OnceLock<Arc<Access>>,
    source: SourceId,
    key: ConnectionKey,
    logon: LogonNotes<'a>,
    waiting: &'a mut Waiting,
    immediate: &'a mut Vec<Immediate>,
}

impl EntryHost for Doorkeeper<'_, '_> {
    fn authenticate(&mut self, logon: LogonRequest) {
        // What is no time is refused.
        *self.logon.stamp_ns = logon.fields.timestamp.parse().unwrap_or(0);
        *self.logon.has_copies = logon.terms.version.has_copies();
        let verdict = match self.access.get() {
            Some(access) => access.authorize_logon(&logon, self.source),
            None => Err(Refusal { reason: RejectReason::VenueNotReady, detail: None, retry_after_ns: None }),
        };
        self.immediate.push(Immediate::Logon(Box::new(verdict)));
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted) {
        (*self.logon.account, *self.logon.wanted) = (account, reports);
        let open = OpenSession { account, token };
        let Desk { sequencer, now, now_ns, fair, .. } = &mut *self.desk;
        if let Some(fair) = fair {
            *self.logon.opening = Some(open);
            self.waiting.entry((account, token)).or_default().push(self.key);
            return fair.open(*now_ns, open, *self.logon.stamp_ns, *self.logon.has_copies);
        }
        if let Err((why, _)) = sequencer.submit(*now, None, &Command::OpenSession(open), Some(Origin::Opens(self.key))) {
            self.immediate.push(Immediate::Open(why));
        }
    }

    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission) -> Result<(), Refusal> {
        let _ = now_ns;
        match self.access.get() {
            Some(access) => access.charge_entry(self.desk.now, principal, permission),
            None => Ok(()),
        }
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        let Desk { sequencer, now, fair, traces, .. } = &mut *self.desk;
        let taken = match fair.as_mut().zip(self.read_at) {
            Some((fair, read_at)) => {
                let taken = fair.submit(read_at, sequencer.engine(), ordinal, bytes);
                traces.received(ordinal);
                taken
            }
            None => {
                let taken = sequencer.submit(*now, Some(ordinal), command, None).map_err(|(why, _)| why);
                traces.received(ordinal);
                traces.sequenced(ordinal);
                taken
            }
        };
        if let Err(why) = taken {
            self.immediate.push(Immediate::Command(ordinal, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_in_plain_words_why_a_connection_ended() {
        let lost = "the client closed the connection, or it broke";
        let said = farewell(Some(AccountId(3)), None, lost);
        assert_eq!(said, "order entry: account 3: the client closed the connection, or it broke");
        let said = farewell(None, Some(ByeReason::Malformed), lost);
        assert!(
            said.starts_with(
                "order entry: a connection that had not logged on: the connection was ended: The bytes are no message"
            ),
            "{said}"
        );
        assert!(said.ends_with("(1007)"), "{said}");
        for reason in ByeReason::ALL {
            assert!(!farewell(None, Some(*reason), lost).contains("Some("));
        }
    }
}
