//! A session over several connections at once, to gateways that apply one log at different speeds and fail.

use proptest::prelude::*;
use walras_gateway::Gateway;
use walras_gateway::session::{
    ClientError, ClientEvent, ClientSettings, CopiedClient, ReportSettings, Reports, ServerSettings, SessionServer, SessionStart,
    SubmitError, Wish,
};
use walras_types::{AccountId, Answer, LogIndex, Ordinal, SessionId, SessionSeq};
use walras_wire::order_entry::{ByeReason, ReportsWanted};
use walras_wire::{Command, content_digest};

use super::setup::{Asked, Notes, Random, SECOND, START, entropy, gate, greeting, key, order, source};

const SESSION: SessionId = SessionId(40);
const GATEWAYS: usize = 3;

/// The replicated log: the session's commands, in order.
#[derive(Default)]
struct Log {
    commands: Vec<Command>,
}

impl Log {
    /// Appends the next command and ignores repeats, as the sequencer does. There must be no gap.
    fn take(&mut self, session_seq: SessionSeq, command: &Command) {
        let next = self.commands.len() as u64 + 1;
        assert!(session_seq.0 <= next, "{session_seq} came before {next}");
        if session_seq.0 == next {
            self.commands.push(*command);
        } else {
            assert_eq!(self.commands[session_seq.0 as usize - 1], *command, "the same under the same number");
        }
    }

    fn answer(&self, session_seq: u64) -> (Ordinal, Answer) {
        let content = content_digest(&self.commands[session_seq as usize - 1], &mut Vec::new());
        let answer = Answer { log_index: LogIndex(1_000 + session_seq), rejected: None, content };
        (Ordinal { session: SESSION, session_seq: SessionSeq(session_seq) }, answer)
    }
}

/// A replica: how much of the log it has applied, and the connection of the one client.
struct Replica {
    applied: u64,
    server: Option<SessionServer>,
}

struct World {
    gate: Gateway,
    log: Log,
    replicas: Vec<Replica>,
    client: CopiedClient,
    events: Vec<ClientEvent>,
    now_ns: u64,
    connected: u64,
    random: Random,
}

impl World {
    fn new(seed: u64) -> Self {
        let replicas = (0..GATEWAYS).map(|_| Replica { applied: 0, server: None }).collect();
        let addresses: Vec<String> = (0..GATEWAYS).map(|at| at.to_string()).collect();
        let settings = ClientSettings { reports: ReportsWanted::None, window: 16, ..ClientSettings::new(Vec::new(), 7) };
        let client = CopiedClient::new(&settings, &addresses, &key(0), START).unwrap();
        let (log, events) = (Log::default(), Vec::new());
        Self { gate: gate(1), log, replicas, client, events, now_ns: START, connected: 1, random: Random::new(seed) }
    }

    fn goes_on(&mut self) {
        let at = self.random.below(GATEWAYS as u64) as usize;
        match self.random.below(100) {
            0..25 => self.submits(),
            25..50 => self.talks(at),
            50..75 => self.listens(at),
            75..92 => self.applies(at),
            92..97 => self.now_ns += SECOND / 10,
            97 => self.dies(at),
            _ => self.fire_timers(),
        }
    }

    fn submits(&mut self) {
        let command = order(AccountId(0), self.now_ns + self.random.below(1 << 40));
        match self.client.submit(self.now_ns, &command) {
            Ok(_) | Err(SubmitError::NotLoggedOnYet | SubmitError::WindowFull(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Delivers the client's output to a gateway.
    fn talks(&mut self, at: usize) {
        let now_ns = self.now_ns;
        match self.client.wish(at, now_ns) {
            Wish::Close => return self.dies(at),
            Wish::Connect(_) => {
                self.client.on_connecting(at);
                self.connected += 1;
                self.client.on_connected(at, now_ns, &entropy(self.connected));
                self.replicas[at].server = Some(SessionServer::new(ServerSettings::default(), greeting(self.connected), now_ns));
            }
            Wish::Wait => {}
        }
        let Self { replicas, gate, client, log, .. } = self;
        let Replica { applied, server: Some(server) } = &mut replicas[at] else { return };
        let bytes = client.output(at).to_vec();
        client.consume(at, bytes.len());
        let mut notes = Notes { gateway: gate, throttled: false, asked: Vec::new() };
        server.on_bytes(now_ns, &bytes, &mut notes);
        loop {
            let asked = std::mem::take(&mut notes.asked);
            if asked.is_empty() {
                break;
            }
            for one in asked {
                match one {
                    Asked::Authenticate(logon) => {
                        let verdict = logon.authorize(notes.gateway, now_ns, source());
                        server.authenticated(verdict, &mut notes);
                    }
                    Asked::Open(account, _, wanted) => {
                        let reports = Reports::new(ReportSettings::default());
                        let start = SessionStart::new(SESSION, SessionSeq(*applied + 1), account, wanted, &reports);
                        server.opened(now_ns, start);
                    }
                    Asked::Submit(ordinal, _) if ordinal.session_seq.0 <= *applied => {
                        let (ordinal, answer) = log.answer(ordinal.session_seq.0);
                        server.answer(ordinal, answer, None);
                    }
                    Asked::Submit(ordinal, command) => log.take(ordinal.session_seq, &command),
                    Asked::Transactions(_) => unreachable!("none are sent"),
                }
            }
        }
    }

    /// Delivers a gateway's output to the client.
    fn listens(&mut self, at: usize) {
        let Some(server) = &mut self.replicas[at].server else { return };
        let bytes = server.output().to_vec();
        server.consume(bytes.len());
        let is_over = server.is_over();
        self.client.on_bytes(at, self.now_ns, &bytes, &mut |event| self.events.push(event));
        if is_over {
            self.dies(at);
        }
    }

    /// A gateway applies one more entry.
    fn applies(&mut self, at: usize) {
        let Replica { applied, server } = &mut self.replicas[at];
        if *applied < self.log.commands.len() as u64 {
            *applied += 1;
            if let Some(server) = server {
                let (ordinal, answer) = self.log.answer(*applied);
                server.answer(ordinal, answer, None);
            }
        }
    }

    /// A connection is lost with everything in flight.
    fn dies(&mut self, at: usize) {
        self.replicas[at].server = None;
        self.client.on_disconnected(at, self.now_ns);
    }

    fn fire_timers(&mut self) {
        self.client.on_timer(self.now_ns, &mut |event| self.events.push(event));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn each_command_is_logged_once_and_answered_once_in_order_whichever_gateway_fails(seed in any::<u64>()) {
        let mut world = World::new(seed);
        for _ in 0..4_000 {
            world.goes_on();
        }
        // From here on no connection is lost.
        for _ in 0..2_000 {
            for at in 0..GATEWAYS {
                world.talks(at);
                world.applies(at);
                world.listens(at);
            }
            world.now_ns += SECOND / 100;
            world.fire_timers();
        }
        prop_assert_eq!(world.client.unanswered_count(), 0);
        let answered: Vec<u64> = world.events.iter().filter_map(|event| match event {
            ClientEvent::Answer { session_seq, log_index, .. } => {
                assert_eq!(log_index.0, 1_000 + session_seq.0);
                Some(session_seq.0)
            }
            _ => None,
        }).collect();
        prop_assert_eq!(answered, (1..=world.log.commands.len() as u64).collect::<Vec<_>>());
        prop_assert!(world.log.commands.len() > 100, "{}", world.log.commands.len());
        prop_assert!(!world.events.iter().any(|event| matches!(event, ClientEvent::Ended(_))), "{:?}", world.events.last());
    }
}

#[test]
fn a_session_that_somebody_else_takes_ends_all_streams() {
    let mut world = World::new(1);
    // The venue speaks first, then the logon is answered.
    for at in (0..GATEWAYS).chain(0..GATEWAYS) {
        world.talks(at);
        world.listens(at);
    }
    assert!(world.client.is_logged_on());
    world.replicas[1].server.as_mut().unwrap().replaced();
    world.listens(1);
    assert_eq!(world.events.last(), Some(&ClientEvent::Ended(ClientError::Bye(ByeReason::Replaced))));
    assert_eq!(world.client.submit(START, &order(AccountId(0), 1)), Err(SubmitError::Ended));
}
