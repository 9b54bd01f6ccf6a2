//! Order entry at a replica: clients' connections, each with the product's end of a session.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use walras_consensus::ReplicaId;
use walras_gateway::session::{Host as EntryHost, LogonRequest, Reports, Resend, ServerSettings, SessionServer, SessionStart};
use walras_gateway::{Gateway, Permission, Principal, Refusal, SourceId};
use walras_sequencer::{FairAccess, GatewayTime, NotTaken, ReplicatedSequencer};
use walras_types::{AccountId, Answer, ContentDigest, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{ByeReason, Report, ReportsWanted};
use walras_wire::{Command, MassCancel, OpenSession};

use super::{Origin, StreamId, fair};
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;

struct Connection {
    server: SessionServer,
    source: SourceId,
    account: Option<AccountId>,
    wanted: ReportsWanted,
    session: Option<SessionId>,
    /// When the client signed its logon, by its own clock.
    stamp_ns: u64,
    /// Whether its client sends by other replicas too.
    has_copies: bool,
    /// The session that it waits for, where others pass that on.
    opening: Option<OpenSession>,
}

impl Connection {
    /// Whether there is something to write, or it is over.
    fn has_something(&self) -> bool {
        self.server.is_over() || !self.server.output().is_empty()
    }
}

/// All connections, and who may make one.
pub(super) struct Desk {
    gateway: Gateway,
    settings: ServerSettings,
    connections: BTreeMap<StreamId, Connection>,
    by_session: BTreeMap<SessionId, StreamId>,
    /// Who waits for a session, by its account and token.
    waiting: Waiting,
    immediate: Vec<Immediate>,
}

type Waiting = BTreeMap<(Option<AccountId>, u64), Vec<StreamId>>;

/// What is said at once.
enum Immediate {
    Command(Ordinal, NotTaken),
    Open(NotTaken),
    Logon(Box<Result<Principal, Refusal>>),
    /// As [`Mutation::AcknowledgeBeforeCommit`] has it.
    TooEarly(Ordinal, Answer),
}

/// What connections need of the replica.
pub(super) struct Clerk<'a> {
    pub(super) sequencer: &'a mut ReplicatedSequencer<Origin>,
    /// The time of day.
    pub(super) clock_ns: u64,
    pub(super) now_ns: u64,
    pub(super) leader: &'a str,
    pub(super) mutation: Option<Mutation>,
    pub(super) me: ReplicaId,
    pub(super) checks: &'a RefCell<Checks>,
    /// Whoever passes on to the leader what comes here.
    pub(super) fair: Option<&'a mut FairAccess<Origin>>,
}

impl Clerk<'_> {
    fn at(&self) -> GatewayTime {
        fair::time(self.now_ns, self.clock_ns)
    }
}

impl Desk {
    pub(super) fn new(gateway: Gateway, settings: ServerSettings) -> Self {
        let (connections, by_session, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { gateway, settings, connections, by_session, waiting, immediate: Vec::new() }
    }

    pub(super) fn accept(&mut self, stream: StreamId, client: usize, now_ns: u64) {
        let address = Ipv4Addr::from_bits(u32::try_from(client).expect("there are few clients"));
        let connection = Connection {
            server: SessionServer::new(self.settings, now_ns),
            source: SourceId::of(IpAddr::V4(address)),
            account: None,
            wanted: ReportsWanted::None,
            session: None,
            stamp_ns: 0,
            has_copies: false,
            opening: None,
        };
        self.connections.insert(stream, connection);
    }

    pub(super) fn on_bytes(&mut self, stream: StreamId, bytes: &[u8], clerk: &mut Clerk<'_>) {
        let Self { gateway, connections, immediate, waiting, .. } = self;
        let Some(connection) = connections.get_mut(&stream) else { return };
        let Connection { server, source, account, wanted, stamp_ns, has_copies, opening, .. } = connection;
        let source = *source;
        let mut host =
            Doorkeeper { clerk, gateway, source, stream, account, wanted, stamp_ns, has_copies, opening, waiting, immediate };
        server.on_bytes(host.clerk.now_ns, bytes, &mut host);
        while !host.immediate.is_empty() {
            for one in std::mem::take(host.immediate) {
                match one {
                    Immediate::Logon(verdict) => server.authenticated(*verdict, &mut host),
                    Immediate::Open(NotTaken::NotLeader { .. }) | Immediate::Command(_, NotTaken::NotLeader { .. }) => {
                        server.not_leader(host.clerk.leader);
                    }
                    Immediate::Open(NotTaken::Refused(reason)) => server.bye(ByeReason::Rejected(reason), ""),
                    Immediate::Open(NotTaken::Repeated(_) | NotTaken::OnItsWay) => server.bye(ByeReason::VenueFault, ""),
                    Immediate::Command(ordinal, NotTaken::Repeated(answer)) => server.answer(ordinal, answer, None),
                    Immediate::Command(_, NotTaken::OnItsWay) => {}
                    Immediate::Command(ordinal, NotTaken::Refused(reason)) => server.refused(ordinal, reason, None),
                    Immediate::TooEarly(ordinal, answer) => server.answer(ordinal, answer, None),
                }
            }
        }
        self.end_if_over(stream, clerk);
    }

    /// The client is gone.
    pub(super) fn lose(&mut self, stream: StreamId, clerk: &mut Clerk<'_>) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.server.on_disconnect();
            self.end_if_over(stream, clerk);
            self.connections.remove(&stream);
        }
    }

    fn end_if_over(&mut self, stream: StreamId, clerk: &mut Clerk<'_>) {
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        let Some(ended) = connection.server.take_ended() else { return };
        if let Some(open) = connection.opening.take()
            && let Some(streams) = self.waiting.get_mut(&(open.account, open.token))
        {
            streams.retain(|other| *other != stream);
            if streams.is_empty() {
                self.waiting.remove(&(open.account, open.token));
                if let Some(fair) = &mut clerk.fair {
                    fair.give_up_opening(open);
                }
            }
        }
        if let Some(account) = ended.cancel {
            let (at, cancel) = (clerk.at(), MassCancel { account, instrument: None, side: None });
            match (&mut clerk.fair, ended.session) {
                (Some(fair), Some(session)) => {
                    fair.cancel_behind(at, session, cancel);
                    clerk.checks.borrow_mut().on_behind(clerk.me, at, session);
                }
                // Without a leader here nobody can cancel; the client's next logon, at the leader, may.
                _ => drop(clerk.sequencer.submit(TimeNs(clerk.clock_ns), None, &Command::MassCancel(cancel), None)),
            }
        }
        if let Some(session) = connection.session.take()
            && self.by_session.get(&session) == Some(&stream)
        {
            self.by_session.remove(&session);
        }
    }

    /// The log has opened a connection's session.
    pub(super) fn opened(&mut self, stream: StreamId, now_ns: u64, session: SessionId, next: SessionSeq, reports: &Reports) {
        let Some(stamp_ns) = self.connections.get(&stream).map(|connection| connection.stamp_ns) else { return };
        let current = self.by_session.get(&session).and_then(|current| self.connections.get(current));
        if current.is_some_and(|current| current.stamp_ns > stamp_ns) {
            // The logon of a connection that its client has given up was late: it may not take the session from the one that followed.
            if let Some(connection) = self.connections.get_mut(&stream) {
                connection.server.replaced();
            }
            return;
        }
        if let Some(older) = self.by_session.insert(session, stream)
            && older != stream
            && let Some(connection) = self.connections.get_mut(&older)
        {
            connection.session = None;
            connection.server.replaced();
        }
        let Some(connection) = self.connections.get_mut(&stream) else { return };
        connection.session = Some(session);
        let start = SessionStart::new(session, next, connection.account, connection.wanted, reports);
        connection.server.opened(now_ns, start);
        if let Some(account) = connection.account
            && let Resend::Found(missed) = reports.resend(account, start.reports_from - 1)
        {
            for report in missed {
                // They follow each other from the one that was announced.
                let _ = connection.server.report(&report);
            }
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
        for stream in self.waiting.remove(&(open.account, open.token)).unwrap_or_default() {
            if let Some(connection) = self.connections.get_mut(&stream) {
                connection.opening = None;
            }
            self.opened(stream, now_ns, session, next, reports);
        }
    }

    pub(super) fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason) {
        for stream in self.waiting.remove(&(open.account, open.token)).unwrap_or_default() {
            self.not_opened(stream, reason);
        }
    }

    /// A client has logged on at another replica: one that did so before has lost the session.
    pub(super) fn replaced_before(&mut self, session: SessionId, logged_on_ns: u64) {
        let Some(stream) = self.by_session.get(&session).copied() else { return };
        if let Some(connection) = self.connections.get_mut(&stream).filter(|connection| connection.stamp_ns < logged_on_ns) {
            connection.session = None;
            connection.server.replaced();
            self.by_session.remove(&session);
        }
    }

    /// What connections were told does not follow from the state any more.
    pub(super) fn fail_all(&mut self) {
        self.connections.values_mut().for_each(|connection| connection.server.bye(ByeReason::VenueFault, ""));
    }

    pub(super) fn not_opened(&mut self, stream: StreamId, reason: RejectReason) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.server.bye(ByeReason::Rejected(reason), "");
        }
    }

    /// Another replica leads, or nobody: everybody is sent there.
    pub(super) fn not_leader(&mut self, leader: &str) {
        self.connections.values_mut().for_each(|connection| connection.server.not_leader(leader));
    }

    pub(super) fn sent_away(&mut self, stream: StreamId, leader: &str) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.server.not_leader(leader);
        }
    }

    fn server_of(&mut self, session: SessionId) -> Option<&mut SessionServer> {
        let stream = self.by_session.get(&session)?;
        self.connections.get_mut(stream).map(|connection| &mut connection.server)
    }

    pub(super) fn answer(&mut self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>) {
        if let Some(server) = self.server_of(ordinal.session) {
            server.answer(ordinal, answer, time);
        }
    }

    pub(super) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        if let Some(server) = self.server_of(ordinal.session) {
            server.refused(ordinal, reason, None);
        }
    }

    pub(super) fn report(&mut self, account: AccountId, report: &Report<'_>) {
        for connection in self.connections.values_mut().filter(|connection| connection.account == Some(account)) {
            // They come in order from the logon on, so none is missing.
            let _ = connection.server.report(report);
        }
    }

    pub(super) fn closed(&mut self, session: SessionId) {
        if let Some(server) = self.server_of(session) {
            server.bye(ByeReason::Rejected(RejectReason::UnknownSession), "The session was closed.");
        }
    }

    pub(super) fn on_timer(&mut self, now_ns: u64) {
        self.connections.values_mut().for_each(|connection| connection.server.on_timer(now_ns));
    }

    pub(super) fn deadline_ns(&self) -> u64 {
        self.connections.values().filter_map(|connection| connection.server.deadline_ns()).min().unwrap_or(u64::MAX)
    }

    /// Whether [`Self::flush`] would do anything.
    pub(super) fn has_something(&self) -> bool {
        self.connections.values().any(Connection::has_something)
    }

    /// Gives what there is to write to `write`, and whether the connection ends after it.
    pub(super) fn flush(&mut self, clerk: &mut Clerk<'_>, mut write: impl FnMut(StreamId, Vec<u8>, bool)) {
        let streams = self.connections.iter().filter(|(_, connection)| connection.has_something());
        let streams: Vec<StreamId> = streams.map(|(stream, _)| *stream).collect();
        for stream in streams {
            self.end_if_over(stream, clerk);
            let Some(Connection { server, .. }) = self.connections.get_mut(&stream) else { continue };
            let (bytes, is_over) = (server.output().to_vec(), server.is_over());
            server.consume(bytes.len());
            if is_over {
                self.connections.remove(&stream);
            }
            if is_over || !bytes.is_empty() {
                write(stream, bytes, is_over);
            }
        }
    }
}

/// What a connection's session asks for while it reads.
struct Doorkeeper<'a, 'd> {
    clerk: &'a mut Clerk<'d>,
    gateway: &'a mut Gateway,
    source: SourceId,
    stream: StreamId,
    account: &'a mut Option<AccountId>,
    wanted: &'a mut ReportsWanted,
    stamp_ns: &'a mut u64,
    has_copies: &'a mut bool,
    opening: &'a mut Option<OpenSession>,
    waiting: &'a mut Waiting,
    immediate: &'a mut Vec<Immediate>,
}

impl Doorkeeper<'_, '_> {
    fn time(&self) -> TimeNs {
        TimeNs(self.clerk.clock_ns)
    }
}

impl EntryHost for Doorkeeper<'_, '_> {
    fn authenticate(&mut self, logon: LogonRequest) {
        *self.stamp_ns = logon.fields.timestamp.parse().unwrap_or(0);
        *self.has_copies = logon.terms.version.has_copies();
        let verdict = logon.authorize(self.gateway, self.clerk.clock_ns, self.source);
        self.immediate.push(Immediate::Logon(Box::new(verdict)));
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted) {
        (*self.account, *self.wanted) = (account, reports);
        let (at, open) = (self.clerk.at(), OpenSession { account, token });
        if let Some(fair) = &mut self.clerk.fair {
            *self.opening = Some(open);
            self.waiting.entry((account, token)).or_default().push(self.stream);
            return fair.open(at, open, *self.stamp_ns, *self.has_copies);
        }
        let command = Command::OpenSession(open);
        if let Err((why, _)) = self.clerk.sequencer.submit(self.time(), None, &command, Some(Origin::Opens(self.stream))) {
            self.immediate.push(Immediate::Open(why));
        }
    }

    fn charge(&mut self, _: u64, principal: &Principal, permission: Permission) -> Result<(), Refusal> {
        self.gateway.charge(self.clerk.clock_ns, principal, permission, 1)
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        let at = self.clerk.at();
        let Clerk { sequencer, fair, checks, me, mutation, .. } = &mut *self.clerk;
        if let Some(fair) = fair {
            if *self.has_copies && *mutation == Some(Mutation::CopiesUnnumbered) {
                let _ = sequencer.submit(at.now, None, command, None);
            }
            match fair.submit(at, sequencer.engine(), ordinal, bytes) {
                Ok(()) => checks.borrow_mut().on_stamped(*me, at, ordinal, sequencer.is_leading()),
                Err(why) => self.immediate.push(Immediate::Command(ordinal, why)),
            }
            return;
        }
        match self.clerk.sequencer.submit(self.time(), Some(ordinal), command, None) {
            Err((why, _)) => self.immediate.push(Immediate::Command(ordinal, why)),
            Ok(()) if self.clerk.mutation == Some(Mutation::AcknowledgeBeforeCommit) => {
                let Clerk { sequencer, .. } = &*self.clerk;
                let log_index = sequencer.engine().last_applied().0 + sequencer.waiting() as u64;
                let answer = Answer { log_index: LogIndex(log_index), rejected: None, content: ContentDigest::of_bytes(bytes) };
                self.immediate.push(Immediate::TooEarly(ordinal, answer));
            }
            Ok(()) => {}
        }
    }
}
