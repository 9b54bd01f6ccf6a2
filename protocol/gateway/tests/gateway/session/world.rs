//! A venue of three replicas with one log, and clients whose connections break at any byte.

use std::collections::{BTreeMap, VecDeque};

use walras_gateway::Gateway;
use walras_gateway::session::{
    ClientEvent, ClientSettings, ReportSettings, Reports, Resend, ServerSettings, SessionClient, SessionServer, SessionStart, Wish,
};
use walras_types::{
    AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, Ordinal, PriceTicks, RejectReason, SessionId, SessionSeq, Side,
    SizeLots, TimeNs,
};
use walras_wire::order_entry::{ClientMessage, Sealing, VenueMessage};
use walras_wire::order_entry::{ReportEvent, ReportsWanted, decode_client, decode_venue, encode_client, encode_venue, split_frame};
use walras_wire::{AccountEvent, Command, Event, OrderAccepted, OrderCommand, OrderEvent, Rejected, Resting, content_digest};

use super::setup::{Asked, Notes, Random, START, entropy, gate, greeting, key, order, source};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// A client gives new numbers to resent commands.
    ClientRenumbers,
    /// The venue accepts more unanswered commands than the window allows.
    WindowForgotten,
    /// One report is skipped.
    ReportSkipped,
    /// An answer carries another command's result.
    AnswerMixedUp,
    /// The replicated state forgets which commands it has applied.
    DedupeForgotten,
    /// A new leader restarts the numbers of the reports.
    ReportsForgotten,
}

/// The result of a command.
type Outcome = (LogIndex, TimeNs, Option<RejectReason>);

const REPLICAS: usize = 3;
pub(crate) const WINDOW: u32 = 5;

struct Connection {
    replica: usize,
    server: SessionServer,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// The client, if its side of the connection is still open.
    client: Option<usize>,
    shift: Option<u64>,
}

struct Client {
    end: SessionClient,
    account: AccountId,
    connection: Option<usize>,
    asked: Vec<u64>,
    answered: Vec<(SessionSeq, LogIndex, Option<RejectReason>)>,
    reports: Vec<u64>,
    report_next: u64,
}

enum Item {
    Open { connection: usize, account: AccountId, token: u64, reports: ReportsWanted },
    Submit { ordinal: Ordinal, command: Command },
}

#[derive(Clone)]
struct Session {
    id: SessionId,
    account: AccountId,
    answers: Vec<Outcome>,
}

pub(crate) struct World {
    bug: Bug,
    random: Random,
    now_ns: u64,
    gateway: Gateway,
    leader: usize,
    log_index: LogIndex,
    /// Commands that the leader has accepted and that are not decided yet.
    pipeline: VecDeque<Item>,
    sessions: BTreeMap<(AccountId, u64), Session>,
    serving: BTreeMap<SessionId, usize>,
    reports: Reports,
    applied: Vec<(Ordinal, u64, LogIndex)>,
    connections: Vec<Option<Connection>>,
    clients: Vec<Client>,
    connected: u64,
    /// The leader logs every command; the engine ignores repeats and gaps. Other leaders check first.
    is_naive: bool,
    /// The leader logs repeats of decided commands instead of answering them at once.
    is_forgetful: bool,
    /// There is no room for the next command.
    is_full: bool,
    pub(crate) faults: u64,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Bug, report_settings: ReportSettings) -> Self {
        let mut reports = Reports::new(report_settings);
        for account in 0..2 {
            reports.on_event(LogIndex(1), TimeNs(START), &Event::Account(AccountEvent::Created(AccountId(account))), |_, _| ());
        }
        let clients = (0..3u64).map(|number| {
            let account = AccountId(number as u32 / 2);
            let replicas = (0..REPLICAS).map(|replica| format!("replica-{replica}")).collect();
            let mut settings = ClientSettings::new(replicas, number);
            settings.reports = ReportsWanted::After(0);
            // Losses are always signalled in this test, so recovery must not depend on a timeout.
            settings.answer_timeout_ns = u64::MAX;
            // The second client relies on the window that the venue announces.
            settings.window = if bug == Bug::WindowForgotten || number == 1 { 1_000 } else { WINDOW };
            Client {
                end: SessionClient::new(settings, key(account.0 as u8), START).unwrap(),
                account,
                connection: None,
                asked: Vec::new(),
                answered: Vec::new(),
                reports: Vec::new(),
                report_next: 1,
            }
        });
        Self {
            bug,
            random: Random::new(seed),
            now_ns: START,
            gateway: gate(2),
            leader: 0,
            log_index: LogIndex(1),
            pipeline: VecDeque::new(),
            sessions: BTreeMap::new(),
            serving: BTreeMap::new(),
            reports,
            applied: Vec::new(),
            connections: Vec::new(),
            clients: clients.collect(),
            connected: 0,
            is_naive: seed.is_multiple_of(3),
            is_forgetful: seed % 3 == 1,
            is_full: false,
            faults: 0,
        }
    }

    /// Runs with faults, then without until all commands are answered. All promises are checked throughout.
    pub(crate) fn run(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            self.step(true)?;
        }
        let mut patience = 60_000;
        while !self.is_quiet() {
            self.step(false)?;
            patience -= 1;
            if patience == 0 {
                return Err("no progress: an answer or a report never comes".to_owned());
            }
        }
        self.check()
    }

    fn is_quiet(&self) -> bool {
        self.clients.iter().all(|client| {
            client.end.is_logged_on()
                && client.end.unanswered_count() == 0
                && client.report_next > self.reports.report_seq(client.account)
        })
    }

    fn step(&mut self, with_faults: bool) -> Result<(), String> {
        self.now_ns += self.random.below(3_000_000);
        let number = self.random.below(self.clients.len() as u64) as usize;
        match self.random.below(1_000) {
            0..=11 if with_faults => self.cut(number),
            12..=14 if with_faults => self.change_leader(),
            15..=30 if with_faults => self.decide(true)?,
            31..=33 if with_faults => self.now_ns += 2_000_000_000,
            34..=40 if with_faults => self.restore_reports(),
            41..=180 if with_faults => self.submit(number),
            0..=420 => self.arrive_at_venue(number)?,
            421..=660 => self.arrive_at_client(number)?,
            661..=900 => self.decide(false)?,
            _ => self.timers()?,
        }
        Ok(())
    }

    fn submit(&mut self, number: usize) {
        let client = &mut self.clients[number];
        for _ in 0..=self.random.below(3) {
            let name = (number as u64) * 1_000_000 + client.asked.len() as u64;
            if client.end.submit(self.now_ns, &order(client.account, name)).is_ok() {
                client.asked.push(name);
            }
        }
    }

    fn timers(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            let mut events = Vec::new();
            let client = &mut self.clients[number];
            client.end.on_timer(self.now_ns, &mut |event| events.push(event));
            match client.end.wish(self.now_ns) {
                Wish::Wait => {}
                Wish::Close => {
                    client.end.on_disconnected(self.now_ns);
                    self.hang_up(number);
                }
                Wish::Connect(address) => {
                    let replica = address.strip_prefix("replica-").unwrap().parse().unwrap();
                    client.end.on_connecting();
                    self.connect(number, replica);
                }
            }
            self.hear(number, events)?;
        }
        for connection in self.connections.iter_mut().flatten() {
            connection.server.on_timer(self.now_ns);
        }
        Ok(())
    }

    fn connect(&mut self, number: usize, replica: usize) {
        self.connected += 1;
        self.clients[number].end.on_connected(self.now_ns, &entropy(self.connected));
        let server = SessionServer::new(self.server_settings(), greeting(self.connected), self.now_ns);
        let (to_server, to_client) = (VecDeque::new(), VecDeque::new());
        self.connections.push(Some(Connection { replica, server, to_server, to_client, client: Some(number), shift: None }));
        self.clients[number].connection = Some(self.connections.len() - 1);
    }

    fn server_settings(&self) -> ServerSettings {
        let window = if self.bug == Bug::WindowForgotten { 1_000 } else { WINDOW };
        // A client that spoils what it says would have to seal it.
        let sealing = if self.bug == Bug::ClientRenumbers { Sealing::Off } else { Sealing::Required };
        ServerSettings { window, sealing, ..ServerSettings::default() }
    }

    /// The client disconnects. The venue notices now, or only when another connection takes over the session.
    fn hang_up(&mut self, number: usize) {
        let Some(at) = self.clients[number].connection.take() else { return };
        let Some(connection) = &mut self.connections[at] else { return };
        connection.client = None;
        if self.random.one_in(2) {
            connection.server.on_disconnect();
            self.connections[at] = None;
        }
    }

    fn cut(&mut self, number: usize) {
        if self.clients[number].connection.is_some() {
            self.faults += 1;
            self.clients[number].end.on_disconnected(self.now_ns);
            self.hang_up(number);
        }
    }

    /// Another replica leads: undecided commands are lost from some position on.
    fn change_leader(&mut self) {
        self.faults += 1;
        self.leader = self.random.below(REPLICAS as u64) as usize;
        let kept = self.random.below(self.pipeline.len() as u64 + 1) as usize;
        let lost = self.pipeline.split_off(kept);
        let leader = format!("replica-{}", self.leader);
        let hint = if self.random.one_in(3) { "" } else { leader.as_str() };
        for connection in self.connections.iter_mut().flatten().filter(|connection| connection.replica != self.leader) {
            connection.server.not_leader(hint);
        }
        // A leader that is elected again knows which commands it has lost.
        for item in lost {
            match item {
                Item::Submit { ordinal, .. } => {
                    if let Some(server) = self.server_of(ordinal.session) {
                        server.refused(ordinal, RejectReason::VenueNotReady, None);
                    }
                }
                Item::Open { connection, .. } => {
                    if let Some(connection) = &mut self.connections[connection] {
                        connection.server.not_leader("");
                    }
                }
            }
        }
        if self.bug == Bug::ReportsForgotten {
            self.reports = Reports::new(ReportSettings::default());
            for account in 0..2 {
                self.reports.on_event(
                    LogIndex(1),
                    TimeNs(START),
                    &Event::Account(AccountEvent::Created(AccountId(account))),
                    |_, _| (),
                );
            }
        }
    }

    /// Restores a replica from a snapshot: its bytes and numbers must be the same.
    fn restore_reports(&mut self) {
        let mut bytes = Vec::new();
        self.reports.snapshot(&mut bytes);
        let settings = ReportSettings { per_account_max: 4_096, ..ReportSettings::default() };
        let settings = if self.reports.first_kept(AccountId(0)) > 1 { small_ring() } else { settings };
        self.reports = Reports::restore(&bytes, settings).unwrap();
        let mut again = Vec::new();
        self.reports.snapshot(&mut again);
        assert_eq!(bytes, again);
    }

    /// Delivers some bytes of a client to the venue.
    fn arrive_at_venue(&mut self, number: usize) -> Result<(), String> {
        let client = &mut self.clients[number];
        let Some(at) = client.connection else { return Ok(()) };
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        let sent = client.end.output().to_vec();
        client.end.consume(sent.len());
        let session = self.sessions.values().find(|session| connection.server.session() == Some(session.id));
        let next = session.map(|session| session.answers.len() as u64 + 1);
        connection.to_server.extend(spoil_client(self.bug, &sent, next, &mut connection.shift));
        let len = self.random.below(connection.to_server.len() as u64 + 1) as usize;
        let arrived: Vec<u8> = connection.to_server.drain(..len).collect();
        let throttled = self.random.one_in(30);
        let mut host = Notes { gateway: &mut self.gateway, throttled, asked: Vec::new() };
        connection.server.on_bytes(self.now_ns, &arrived, &mut host);
        let asked = host.asked;
        if connection.server.unanswered_count() > u64::from(WINDOW) {
            return Err("more commands are unanswered than the window allows".to_owned());
        }
        asked.into_iter().for_each(|asked| self.serve(at, asked));
        Ok(())
    }

    fn serve(&mut self, at: usize, asked: Asked) {
        let leader = format!("replica-{}", self.leader);
        let Some(connection) = &mut self.connections[at] else { return };
        match asked {
            Asked::Authenticate(logon) => {
                let verdict = logon.authorize(&mut self.gateway, self.now_ns, source());
                let mut host = Notes { gateway: &mut self.gateway, throttled: false, asked: Vec::new() };
                connection.server.authenticated(verdict, &mut host);
                host.asked.into_iter().for_each(|asked| self.serve(at, asked));
            }
            Asked::Open(account, token, reports) if connection.replica == self.leader => {
                let account = account.expect("all keys are accounts'");
                self.pipeline.push_back(Item::Open { connection: at, account, token, reports });
            }
            Asked::Submit(ordinal, command) if connection.replica == self.leader => {
                if self.is_naive {
                    return self.pipeline.push_back(Item::Submit { ordinal, command });
                }
                let session = self.sessions.values().find(|session| session.id == ordinal.session).expect("it was opened");
                let decided = session.answers.len() as u64;
                let ours = self.pipeline.iter().filter(|item| match item {
                    Item::Submit { ordinal: other, .. } => other.session == ordinal.session && other.session_seq.0 > decided,
                    Item::Open { .. } => false,
                });
                let next = decided + 1 + ours.count() as u64;
                let known = session.answers.get(ordinal.session_seq.0 as usize - 1).filter(|_| self.bug != Bug::DedupeForgotten);
                let is_known = known.is_some();
                if let Some(&(log_index, _, rejected)) = known.filter(|_| !self.is_forgetful) {
                    // Answers that are already known may overtake commands that are being decided.
                    let content = content_digest(&command, &mut Vec::new());
                    connection.server.answer(ordinal, walras_types::Answer { log_index, rejected, content }, None);
                } else if ordinal.session_seq.0 > next {
                    connection.server.refused(ordinal, RejectReason::SessionSeqGap, None);
                } else if std::mem::take(&mut self.is_full) {
                    connection.server.refused(ordinal, RejectReason::Overloaded, Some(5_000_000));
                } else if is_known || ordinal.session_seq.0 == next || self.bug == Bug::DedupeForgotten {
                    self.pipeline.push_back(Item::Submit { ordinal, command });
                }
            }
            Asked::Open(..) | Asked::Submit(..) | Asked::Transactions(_) => connection.server.not_leader(&leader),
        }
    }

    /// Decides the next item, or refuses it because the queue is full.
    fn decide(&mut self, is_full: bool) -> Result<(), String> {
        if is_full && !self.is_naive {
            self.is_full = true;
            return Ok(());
        }
        match self.pipeline.pop_front() {
            Some(Item::Submit { ordinal, .. }) if is_full => {
                if let Some(server) = self.server_of(ordinal.session) {
                    server.refused(ordinal, RejectReason::Overloaded, Some(5_000_000));
                }
                Ok(())
            }
            Some(Item::Open { connection, account, token, reports }) => {
                self.open(connection, account, token, reports);
                Ok(())
            }
            Some(Item::Submit { ordinal, command }) => self.apply(ordinal, &command),
            None => Ok(()),
        }
    }

    fn server_of(&mut self, session: SessionId) -> Option<&mut SessionServer> {
        let at = *self.serving.get(&session)?;
        Some(&mut self.connections[at].as_mut()?.server)
    }

    fn open(&mut self, at: usize, account: AccountId, token: u64, wanted: ReportsWanted) {
        self.log_index = self.log_index.next();
        let id = SessionId(self.log_index.0);
        let session = self.sessions.entry((account, token)).or_insert(Session { id, account, answers: Vec::new() }).clone();
        let is_another = self.serving.get(&session.id) != Some(&at);
        if let Some(server) = self.server_of(session.id).filter(|_| is_another) {
            server.replaced();
        }
        self.serving.insert(session.id, at);
        let next = SessionSeq(session.answers.len() as u64 + 1);
        let start = SessionStart::new(session.id, next, Some(account), wanted, &self.reports);
        let Some(connection) = &mut self.connections[at] else { return };
        connection.server.opened(self.now_ns, start);
        match self.reports.resend(account, start.reports_from - 1) {
            Resend::Found(reports) => reports.for_each(|report| connection.server.report(&report).unwrap()),
            Resend::OlderThanKept { .. } => panic!("a session starts from what is kept"),
        }
    }

    fn apply(&mut self, ordinal: Ordinal, command: &Command) -> Result<(), String> {
        let session = self.sessions.values_mut().find(|session| session.id == ordinal.session).expect("it was opened");
        let place = ordinal.session_seq.0 as usize - 1;
        let (account, known) = (session.account, session.answers.get(place).copied());
        if place > session.answers.len() {
            if let Some(server) = self.server_of(ordinal.session) {
                server.refused(ordinal, RejectReason::SessionSeqGap, None);
            }
            return Ok(());
        }
        let known = known.filter(|_| self.bug != Bug::DedupeForgotten);
        let (log_index, time, rejected) = match known {
            Some(known) => known,
            None => self.apply_once(ordinal, account, command)?,
        };
        let time = known.is_none().then_some(time);
        if let Some(server) = self.server_of(ordinal.session) {
            server.answer(
                ordinal,
                walras_types::Answer { log_index, rejected, content: content_digest(command, &mut Vec::new()) },
                time,
            );
        }
        Ok(())
    }

    fn apply_once(&mut self, ordinal: Ordinal, account: AccountId, command: &Command) -> Result<Outcome, String> {
        let Command::Order(OrderCommand::New(order)) = command else { panic!("only orders are sent") };
        self.log_index = self.log_index.next();
        let (log_index, time, name) = (self.log_index, TimeNs(self.now_ns), order.client_order_id);
        let rejected = name.0.is_multiple_of(7).then_some(RejectReason::InsufficientFunds);
        if self.applied.iter().any(|(_, applied, _)| *applied == name.0) {
            return Err("a command was applied twice".to_owned());
        }
        self.applied.push((ordinal, name.0, log_index));
        let session = self.sessions.values_mut().find(|session| session.id == ordinal.session).expect("it was opened");
        session.answers.push((log_index, time, rejected));
        let instrument = InstrumentId(0);
        let event = match rejected {
            Some(reason) => Event::Rejected(Rejected {
                account: Some(account),
                instrument: Some(instrument),
                client_order_id: Some(name),
                reason,
            }),
            None => accepted(account, name, log_index),
        };
        let connections = &mut self.connections;
        let serving: Vec<usize> = self.serving.values().copied().collect();
        let of_account = |at: &usize| self.sessions.values().any(|s| s.account == account && self.serving.get(&s.id) == Some(at));
        let listening: Vec<usize> = serving.into_iter().filter(of_account).collect();
        self.reports.on_event(log_index, time, &event, |_, report| {
            for &at in &listening {
                if let Some(connection) = &mut connections[at] {
                    connection.server.report(report).unwrap();
                }
            }
        });
        Ok((log_index, time, rejected))
    }

    /// Delivers some bytes of the venue to a client, then the close if the venue has closed the connection.
    fn arrive_at_client(&mut self, number: usize) -> Result<(), String> {
        let Some(at) = self.clients[number].connection else { return Ok(()) };
        let Some(connection) = &mut self.connections[at] else { return Ok(()) };
        let sent = connection.server.output().to_vec();
        connection.server.consume(sent.len());
        connection.to_client.extend(spoil_venue(self.bug, &sent, &mut self.random));
        let len = self.random.below(connection.to_client.len() as u64 + 1) as usize;
        let arrived: Vec<u8> = connection.to_client.drain(..len).collect();
        let is_end = connection.server.is_over() && connection.to_client.is_empty();
        let mut events = Vec::new();
        let client = &mut self.clients[number];
        client.end.on_bytes(self.now_ns, &arrived, &mut |event| events.push(event));
        if is_end {
            client.end.on_disconnected(self.now_ns);
            self.hang_up(number);
        }
        self.hear(number, events)
    }

    /// Checks the events that a client reports to its user.
    fn hear(&mut self, number: usize, events: Vec<ClientEvent>) -> Result<(), String> {
        let client = &mut self.clients[number];
        for event in events {
            match event {
                ClientEvent::LoggedOn { .. } | ClientEvent::Late { .. } | ClientEvent::Disconnected { .. } => {}
                ClientEvent::Answer { session_seq, log_index, rejected, .. } => {
                    client.answered.push((session_seq, log_index, rejected));
                }
                ClientEvent::Report { report_seq, event, .. } => {
                    if report_seq != client.report_next {
                        return Err(format!("a report is missing: {report_seq} came for {}", client.report_next));
                    }
                    client.report_next += 1;
                    if let ReportEvent::Event(Event::Order(OrderEvent::Accepted(e))) = event {
                        client.reports.push(e.client_order_id.0);
                    }
                }
                ClientEvent::ReportsMissing { from, next } => {
                    if from != client.report_next || next > self.reports.first_kept(client.account) {
                        return Err(format!("a report is missing that is kept: {from} to before {next}"));
                    }
                    client.report_next = next;
                }
                ClientEvent::Ended(error) => return Err(format!("a client gave up: {error}")),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let session = self.sessions[&(client.account, number as u64)].id;
            let applied: Vec<_> = self.applied.iter().filter(|(ordinal, _, _)| ordinal.session == session).collect();
            if applied.iter().map(|(_, name, _)| *name).ne(client.asked.iter().copied()) {
                return Err("a command was lost, or applied out of order".to_owned());
            }
            let expected = applied.iter().map(|(ordinal, name, log_index)| {
                let rejected = name.is_multiple_of(7).then_some(RejectReason::InsufficientFunds);
                (ordinal.session_seq, *log_index, rejected)
            });
            if expected.ne(client.answered.iter().copied()) {
                return Err("an answer is missing, doubled, out of order or another command's".to_owned());
            }
        }
        Ok(())
    }

    pub(crate) fn applied_count(&self) -> usize {
        self.applied.len()
    }
}

/// Keeps a few dozen reports of an account.
pub(crate) fn small_ring() -> ReportSettings {
    ReportSettings { per_account_max: 60, bytes_max: 1 << 20 }
}

fn accepted(account: AccountId, client_order_id: ClientOrderId, log_index: LogIndex) -> Event {
    Event::Order(OrderEvent::Accepted(OrderAccepted {
        instrument: InstrumentId(0),
        account,
        client_order_id,
        order_id: OrderId(log_index.0),
        side: Side::Buy,
        size: SizeLots::new(5),
        price: Some(PriceTicks::saturating(100)),
        resting: Resting { open: SizeLots::new(5), shown: SizeLots::new(5) },
    }))
}

fn spoil_client(bug: Bug, mut bytes: &[u8], next: Option<u64>, shift: &mut Option<u64>) -> Vec<u8> {
    if bug != Bug::ClientRenumbers {
        return bytes.to_vec();
    }
    let mut spoiled = Vec::new();
    while let Some((frame, rest)) = split_frame(bytes).unwrap() {
        let message = match decode_client(frame).unwrap() {
            ClientMessage::Submit { session_seq, command } => {
                let shift = *shift.get_or_insert(next.unwrap_or(1).wrapping_sub(session_seq.0));
                ClientMessage::Submit { session_seq: SessionSeq(session_seq.0.wrapping_add(shift)), command }
            }
            message => message,
        };
        encode_client(&message, &mut spoiled);
        bytes = rest;
    }
    spoiled
}

fn spoil_venue(bug: Bug, mut bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut spoiled = Vec::new();
    while let Some((frame, rest)) = split_frame(bytes).unwrap() {
        bytes = rest;
        let mut message = decode_venue(frame).unwrap();
        match &mut message {
            VenueMessage::Report(_) if bug == Bug::ReportSkipped && random.one_in(20) => continue,
            VenueMessage::Answer(answer) if bug == Bug::AnswerMixedUp && random.one_in(20) => {
                answer.log_index = LogIndex(answer.log_index.0 + 1);
            }
            // A repeat is not a bug: the client drops it.
            VenueMessage::Answer(_) | VenueMessage::Report(_) if random.one_in(10) => encode_venue(&message, &mut spoiled),
            _ => {}
        }
        encode_venue(&message, &mut spoiled);
    }
    spoiled
}
