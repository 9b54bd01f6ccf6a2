//! The binary order-entry port, on the replica's own thread: bytes in, commands to the sequencer, answers and reports out.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use mio::event::Event as Ready;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use tracing::{debug, info};
use walras_gateway::session::{Host as EntryHost, LogonRequest, Reports, Resend, ServerSettings, SessionServer, SessionStart};
use walras_gateway::{Permission, Principal, Refusal, SourceId};
use walras_sequencer::{NotTaken, ReplicatedSequencer};
use walras_types::{AccountId, Answer, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{ByeReason, Report, ReportsWanted};
use walras_wire::{Command, MassCancel, OpenSession};

use super::Origin;
use crate::access::Access;

/// Bytes read from one connection before the others have their turn.
const READ_MAX: usize = 256 << 10;
const BUFFER_BYTES: usize = 64 << 10;

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
    /// The socket took less than there was.
    is_blocked: bool,
    is_dirty: bool,
}

/// All connections.
pub(super) struct OrderEntry {
    registry: Registry,
    tokens: Range<usize>,
    listener: TcpListener,
    address: SocketAddr,
    /// There once the keys are read; before, nobody is let in.
    access: Arc<OnceLock<Arc<Access>>>,
    settings: ServerSettings,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    next_serial: u64,
    by_session: BTreeMap<SessionId, usize>,
    by_account: BTreeMap<AccountId, Vec<usize>>,
    dirty: Vec<usize>,
    /// Connections that have more to read than their share.
    unread: Vec<usize>,
    immediate: Vec<Immediate>,
    buffer: Box<[u8]>,
}

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
}

impl OrderEntry {
    pub(super) fn new(
        registry: &Registry,
        tokens: Range<usize>,
        listen: SocketAddr,
        settings: ServerSettings,
        access: Arc<OnceLock<Arc<Access>>>,
    ) -> io::Result<Self> {
        let mut listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        registry.register(&mut listener, Token(tokens.start), Interest::READABLE)?;
        Ok(Self {
            registry: registry.try_clone()?,
            tokens,
            listener,
            address,
            access,
            settings,
            connections: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            by_session: BTreeMap::new(),
            by_account: BTreeMap::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            immediate: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
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
        if ready.is_readable() || is_ending {
            self.read(place, is_ending, desk);
        }
    }

    /// Whether [`Self::read_on`] has something to do.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Goes on with what was left in the round before.
    pub(super) fn read_on(&mut self, desk: &mut Desk<'_>) {
        for place in std::mem::take(&mut self.unread) {
            // Whether its end came meanwhile is not known here.
            self.read(place, true, desk);
        }
    }

    fn accept(&mut self, now_ns: u64) {
        loop {
            let (mut stream, remote) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // Of others, such as too many open files, the next event tells again.
                Err(_) => return,
            };
            let place = self.free.pop().unwrap_or(self.connections.len());
            let token = Token(self.tokens.start + 1 + place);
            let is_welcome = token.0 < self.tokens.end
                && stream.set_nodelay(true).is_ok()
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
                is_blocked: false,
                is_dirty: false,
            });
        }
    }

    /// Reads what is there, and with `to_the_end` whether anything may still come.
    fn read(&mut self, place: usize, to_the_end: bool, desk: &mut Desk<'_>) {
        let mut left = READ_MAX;
        loop {
            let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
            match connection.stream.read(&mut self.buffer) {
                Ok(0) => return self.lose(place, desk),
                Ok(len) => {
                    self.take(place, len, desk);
                    // A short read has emptied the socket, and what comes later is told again; but an end may already have been told.
                    if len < self.buffer.len() && !to_the_end {
                        return;
                    }
                    left = left.saturating_sub(len);
                    if left == 0 {
                        // The poll does not tell again what was left unread.
                        self.unread.push(place);
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
        let Self { connections, buffer, immediate, access, .. } = self;
        let Some(connection) = connections.get_mut(place).and_then(Option::as_mut) else { return };
        let Connection { server, source, serial, account, wanted, stamp_ns, .. } = connection;
        let key = ConnectionKey { place, serial: *serial };
        let mut host = Doorkeeper { desk, access, source: *source, key, account, wanted, stamp_ns, immediate };
        server.on_bytes(host.desk.now_ns, &buffer[..len], &mut host);
        loop {
            let told: Vec<Immediate> = std::mem::take(host.immediate);
            if told.is_empty() {
                break;
            }
            for one in told {
                match one {
                    Immediate::Logon(verdict) => server.authenticated(*verdict, &mut host),
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
        self.end_if_over(place, desk);
        self.remove(place);
    }

    /// Follows up on a connection that has ended.
    fn end_if_over(&mut self, place: usize, desk: &mut Desk<'_>) {
        let Some(connection) = &mut self.connections[place] else { return };
        let Some(ended) = connection.server.take_ended() else { return };
        info!("order entry: a connection of account {:?} ended: {:?}", connection.account, ended.reason);
        if let Some(account) = ended.cancel {
            let command = Command::MassCancel(MassCancel { account, instrument: None, side: None });
            // Without a leader here nobody can cancel; the client's next logon, at the leader, may.
            let _ = desk.sequencer.submit(desk.now, None, &command, None);
        }
        self.forget(place);
    }

    /// Nobody is told at this connection any more.
    fn forget(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if let Some(session) = connection.session.take()
            && self.by_session.get(&session) == Some(&place)
        {
            self.by_session.remove(&session);
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
        let stamp_of = |entry: &Self, at: usize| entry.connections[at].as_ref().map(|connection| connection.stamp_ns);
        if let Some(&other) = self.by_session.get(&session)
            && other != place
        {
            // The later logon has the session, not the one that the log opened last: a client gives a connection up before the venue knows.
            let loser = if stamp_of(self, other) > stamp_of(self, place) { place } else { other };
            self.forget(loser);
            if let Some(connection) = &mut self.connections[loser] {
                connection.server.replaced();
                self.soil(loser);
            }
            if loser == place {
                return;
            }
        }
        self.by_session.insert(session, place);
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
        if let Some(&place) = self.by_session.get(&ordinal.session)
            && let Some(connection) = &mut self.connections[place]
        {
            connection.server.answer(ordinal, answer, time);
            self.soil(place);
        }
    }

    /// A session's command was in the log and not its session's next.
    pub(super) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        if let Some(&place) = self.by_session.get(&ordinal.session)
            && let Some(connection) = &mut self.connections[place]
        {
            connection.server.refused(ordinal, reason, None);
            self.soil(place);
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
        if let Some(&place) = self.by_session.get(&session)
            && let Some(connection) = &mut self.connections[place]
        {
            connection.server.bye(ByeReason::Rejected(RejectReason::UnknownSession), "The session was closed.");
            self.soil(place);
        }
    }

    /// Ends what is silent.
    pub(super) fn on_timer(&mut self, now_ns: u64) {
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place]
                && connection.server.deadline_ns().is_some_and(|at| at <= now_ns)
            {
                connection.server.on_timer(now_ns);
                self.soil(place);
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

/// What a connection's session asks for while it reads.
struct Doorkeeper<'a, 'd> {
    desk: &'a mut Desk<'d>,
    access: &'a OnceLock<Arc<Access>>,
    source: SourceId,
    key: ConnectionKey,
    account: &'a mut Option<AccountId>,
    wanted: &'a mut ReportsWanted,
    stamp_ns: &'a mut u64,
    immediate: &'a mut Vec<Immediate>,
}

impl EntryHost for Doorkeeper<'_, '_> {
    fn authenticate(&mut self, logon: LogonRequest) {
        // What is no time is refused.
        *self.stamp_ns = logon.fields.timestamp.parse().unwrap_or(0);
        let verdict = match self.access.get() {
            Some(access) => access.authorize_logon(&logon, self.source),
            None => Err(Refusal { reason: RejectReason::VenueNotReady, detail: None, retry_after_ns: None }),
        };
        self.immediate.push(Immediate::Logon(Box::new(verdict)));
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted) {
        (*self.account, *self.wanted) = (account, reports);
        let command = Command::OpenSession(OpenSession { account, token });
        if let Err((why, _)) = self.desk.sequencer.submit(self.desk.now, None, &command, Some(Origin::Opens(self.key))) {
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

    fn submit(&mut self, ordinal: Ordinal, command: &Command, _: &[u8]) {
        if let Err((why, _)) = self.desk.sequencer.submit(self.desk.now, Some(ordinal), command, None) {
            self.immediate.push(Immediate::Command(ordinal, why));
        }
    }
}
