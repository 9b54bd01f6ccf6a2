//! A cluster of one replica, all of whose writes are durable at once: what its clients and the requests beside them hear.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_consensus::{Members, Recovered, ReplicaId, Settings, SnapshotMeta};
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::DelaySettings;
use walras_gateway::session::{ClientEvent, ClientSettings, ReportSettings, ServerSettings, SessionClient};
use walras_gateway::{Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Rate, SourceId, generate_nonce};
use walras_replica::{
    Effect, NoOutcome, Number, NumberedOutcome, Probe, Replica, ReplicaDisk, ReplicaSettings, State, StreamId, WaiterAnswer,
    WaiterId,
};
use walras_sequencer::{ForwardSettings, GatewayTime, IntakeSettings, ReplicatedSettings};
use walras_types::{AccountId, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{Copies, EntryVersion};
use walras_wire::{AccountCommand, Command, MassCancel, OrderCommand, content_digest};

const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
const ACCOUNT: AccountId = AccountId(0);

struct Nothing;

impl Probe for Nothing {}

impl ReplicaDisk for Nothing {
    fn read_snapshot(&mut self, meta: &SnapshotMeta) -> Result<Vec<u8>, String> {
        Err(format!("there is no snapshot {meta:?}"))
    }

    fn keep_introductions(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// With or without fair access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Fair,
    AtOnce,
}

struct Venue {
    replica: Replica<Nothing, Nothing>,
    gateway: Gateway,
    now_ns: u64,
    answers: BTreeMap<u64, WaiterAnswer>,
    next_waiter: u64,
}

fn at(now_ns: u64) -> GatewayTime {
    let time_ns = START + now_ns;
    GatewayTime { now_ns, now: TimeNs(time_ns), time_ns, status: ClockStatus::Good }
}

fn key() -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[7; ClientKey::ENTROPY_LEN])
}

fn cancel() -> Command {
    Command::Order(OrderCommand::MassCancel(MassCancel { account: ACCOUNT, instrument: None, side: None }))
}

impl Venue {
    /// One that leads and has an account.
    fn new(access: Access) -> Self {
        let me = ReplicaId::new(1).expect("it is not 0");
        let members = Members::of_voters([me]);
        let intake = IntakeSettings::new(4, DelaySettings::Static { delay_ns: MS }, 1);
        let settings = ReplicaSettings {
            sequencing: ReplicatedSettings::new(Settings::new(1, me)),
            entry: ServerSettings::default(),
            fair: (access == Access::Fair).then(|| (ForwardSettings::default(), intake)),
            publish: None,
            addresses: BTreeMap::new(),
            clock_error_ns_max: 0,
            tick_every_ns: 1_000 * MS,
            threads: NonZero::<usize>::MIN,
        };
        let state = State::genesis(ReportSettings::default());
        let mut replica = Replica::start(at(0), settings, Recovered::genesis(members), state, 1, (Nothing, Nothing))
            .expect("an empty log starts");
        replica.go_live();
        let rate = Rate::new(1_000, 1_000).expect("it is not 0");
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(START) });
        let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
        let record = key().record(Some(ACCOUNT), permissions).expect("a trader has an account");
        gateway.add_key(record).expect("it is the only one");
        let mut venue = Self { replica, gateway, now_ns: 0, answers: BTreeMap::new(), next_waiter: 0 };
        while !venue.replica.sequencer().is_leading() {
            venue.pass(10 * MS);
            assert!(venue.now_ns < 60_000 * MS, "nobody leads");
        }
        let created = venue.submit(Command::Account(AccountCommand::Create(ACCOUNT)));
        venue.pass(5 * MS);
        assert!(matches!(venue.answers.remove(&created), Some(WaiterAnswer::Command(Ok(outcome))) if outcome.rejected().is_none()));
        venue
    }

    /// Time passes, and what is due happens.
    fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while self.now_ns < until_ns {
            self.settle();
            let due_ns = self.replica.deadline_ns(at(self.now_ns));
            self.now_ns = due_ns.clamp(self.now_ns + 1, until_ns);
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.replica.round(at(self.now_ns), || None).expect("it goes on");
        loop {
            let mut effects = Vec::new();
            self.replica.take_effects(&mut effects);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Persist(write) => self.replica.on_persisted(at(self.now_ns), write.ticket).expect("it goes on"),
                    Effect::Answer { waiter, answer } => {
                        assert_eq!(self.answers.insert(waiter.0, answer), None, "a request is answered once");
                    }
                    Effect::Role(_) | Effect::Leading(_) | Effect::Members(_) => {}
                    other => panic!("a cluster of one does not want {other:?}"),
                }
            }
        }
    }

    fn waiter(&mut self) -> WaiterId {
        self.next_waiter += 1;
        WaiterId(self.next_waiter)
    }

    fn submit(&mut self, command: Command) -> u64 {
        let waiter = self.waiter();
        self.replica.submit(at(self.now_ns), command, None, Some(waiter));
        waiter.0
    }

    fn submit_numbered(&mut self, ordinal: Ordinal, command: &Command) -> u64 {
        let waiter = self.waiter();
        let content = content_digest(command, &mut Vec::new());
        self.replica.submit_numbered(at(self.now_ns), Number { account: ACCOUNT, ordinal, content }, command, waiter);
        waiter.0
    }
}

/// A client's connection.
struct Connection {
    id: StreamId,
    client: SessionClient,
    events: Vec<ClientEvent>,
    is_over: bool,
}

impl Connection {
    /// One for the account's session, at a place that may have been another's.
    fn open(venue: &mut Venue, place: usize, serial: u64, copies: Copies) -> Self {
        let version = EntryVersion::Two { copies };
        let settings = ClientSettings { version, ..ClientSettings::new(vec!["here".to_owned()], 5) };
        let client = SessionClient::new(settings, key(), START + venue.now_ns).expect("it has an address");
        let id = StreamId { place, serial };
        let mut connection = Self { id, client, events: Vec::new(), is_over: false };
        venue.replica.on_connected(at(venue.now_ns), id);
        connection.client.on_connecting();
        connection.client.on_connected(START + venue.now_ns, &generate_nonce(&u128::from(serial).to_le_bytes()));
        connection
    }

    fn session(&self) -> Option<SessionId> {
        self.events.iter().find_map(|event| if let ClientEvent::LoggedOn { session } = event { Some(*session) } else { None })
    }

    fn answers(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, ClientEvent::Answer { .. })).count()
    }
}

/// Bytes go both ways until none are left, and time passes.
fn exchange(venue: &mut Venue, connections: &mut [&mut Connection]) {
    for _ in 0..8 {
        for connection in connections.iter_mut().filter(|connection| !connection.is_over) {
            let bytes = connection.client.output().to_vec();
            connection.client.consume(bytes.len());
            let Venue { replica, gateway, now_ns, .. } = venue;
            let clock_ns = START + *now_ns;
            replica.on_bytes(at(*now_ns), connection.id, &bytes, &mut |principal, permission| {
                gateway.charge(clock_ns, principal, permission, 1)
            });
            while let Some((id, logon)) = replica.entry_mut().next_logon() {
                let verdict = logon.authorize(gateway, clock_ns, SourceId::of([127, 0, 0, 1].into()));
                replica.on_authenticated(at(*now_ns), id, verdict);
            }
        }
        venue.pass(MS);
        while let Some(id) = venue.replica.next_dirty(at(venue.now_ns)) {
            let entry = venue.replica.entry_mut();
            let (bytes, is_over) = (entry.output(id).to_vec(), entry.is_over(id));
            entry.consume(id, bytes.len());
            if is_over {
                entry.remove(id);
            }
            let connection = connections.iter_mut().find(|connection| connection.id == id).expect("a client has it");
            let events = &mut connection.events;
            connection.client.on_bytes(START + venue.now_ns, &bytes, &mut |event| events.push(event));
            connection.is_over |= is_over;
        }
    }
}

#[test]
fn several_connections_of_one_session_with_copies_all_hear_its_answers() {
    for access in [Access::Fair, Access::AtOnce] {
        let mut venue = Venue::new(access);
        let mut first = Connection::open(&mut venue, 0, 1, Copies::Several);
        exchange(&mut venue, &mut [&mut first]);
        let mut second = Connection::open(&mut venue, 1, 2, Copies::Several);
        exchange(&mut venue, &mut [&mut first, &mut second]);
        assert!(first.session().is_some() && first.session() == second.session());
        assert!(!first.is_over && !second.is_over, "both keep it");
        // The second one sends the same a moment later.
        for connection in [&mut first, &mut second] {
            connection.client.submit(START + venue.now_ns, &cancel()).unwrap();
        }
        exchange(&mut venue, &mut [&mut first, &mut second]);
        assert_eq!((first.answers(), second.answers()), (1, 1), "it was done once, and both hear of it");
        let done = venue.replica.engine().session(first.session().unwrap()).unwrap();
        assert_eq!(done.next, SessionSeq(2));
        // One that leaves takes nothing from the other.
        venue.replica.on_disconnected(at(venue.now_ns), first.id);
        first.is_over = true;
        second.client.submit(START + venue.now_ns, &cancel()).unwrap();
        exchange(&mut venue, &mut [&mut second]);
        assert_eq!((second.answers(), second.is_over), (2, false));
    }
}

#[test]
fn without_copies_the_later_logon_has_the_session() {
    for access in [Access::Fair, Access::AtOnce] {
        for copies in [[Copies::One, Copies::One], [Copies::Several, Copies::One], [Copies::One, Copies::Several]] {
            let mut venue = Venue::new(access);
            let mut first = Connection::open(&mut venue, 0, 1, copies[0]);
            exchange(&mut venue, &mut [&mut first]);
            let mut second = Connection::open(&mut venue, 1, 2, copies[1]);
            exchange(&mut venue, &mut [&mut first, &mut second]);
            assert!(first.is_over && !second.is_over && second.session().is_some());
            // Its place is another's: what waits for the first one finds nobody.
            let mut third = Connection::open(&mut venue, 0, 3, copies[1]);
            venue.replica.entry_mut().mark_dirty(first.id);
            exchange(&mut venue, &mut [&mut second, &mut third]);
            assert!(third.session().is_some() && !third.is_over);
        }
    }
}

#[test]
fn a_session_s_command_that_comes_twice_beside_it_is_answered_the_same() {
    for access in [Access::Fair, Access::AtOnce] {
        let mut venue = Venue::new(access);
        let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
        exchange(&mut venue, &mut [&mut connection]);
        let ordinal = Ordinal { session: connection.session().unwrap(), session_seq: SessionSeq(1) };
        let (first, again) = (venue.submit_numbered(ordinal, &cancel()), venue.submit_numbered(ordinal, &cancel()));
        assert!(!venue.answers.contains_key(&first), "it is not in the log yet");
        venue.pass(20 * MS);
        let outcome = |venue: &mut Venue, waiter| match venue.answers.remove(&waiter) {
            Some(WaiterAnswer::Numbered(outcome)) => outcome,
            other => panic!("{other:?} answers no number"),
        };
        let done = outcome(&mut venue, first).unwrap();
        assert!(matches!(done, NumberedOutcome::Done(_)));
        assert_eq!(outcome(&mut venue, again).unwrap().answer(), done.answer());
        let late = venue.submit_numbered(ordinal, &cancel());
        venue.settle();
        let repeated = outcome(&mut venue, late).unwrap();
        assert_eq!((repeated.answer(), matches!(repeated, NumberedOutcome::Repeated(_))), (done.answer(), true));
        let other = Command::Order(OrderCommand::MassCancel(MassCancel {
            account: ACCOUNT,
            instrument: None,
            side: Some(walras_types::Side::Buy),
        }));
        let reused = venue.submit_numbered(ordinal, &other);
        venue.settle();
        assert_eq!(outcome(&mut venue, reused), Err(NoOutcome::Refused(RejectReason::SessionSeqReused)));
    }
}

#[test]
fn a_read_is_answered_and_one_that_gave_up_is_not() {
    let mut venue = Venue::new(Access::AtOnce);
    let (served, gone) = (venue.waiter(), venue.waiter());
    venue.replica.read(served);
    venue.replica.read(gone);
    venue.replica.give_up(&[gone].into());
    venue.pass(100 * MS);
    assert_eq!(venue.answers.remove(&served.0), Some(WaiterAnswer::Read));
    assert_eq!(venue.answers.remove(&gone.0), None);
}
