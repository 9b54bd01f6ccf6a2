//! A cluster of one replica, all of whose writes are durable at once: what its clients and the requests beside them hear.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use walras_consensus::{Members, Recovered, ReplicaId, Settings, SnapshotMeta, Ticket};
use walras_engine::versions::NEWEST;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::DelaySettings;
use walras_gateway::session::{ClientEvent, ClientSettings, ReportSettings, ServerSettings, SessionClient, VenueKeys};
use walras_gateway::{Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Rate, SourceId};
use walras_replica::{
    Effect, EntryProtocol, NoOutcome, Number, NumberedOutcome, OrderWait, Probe, Replica, ReplicaDisk, ReplicaSettings, State,
    Storage, StreamId, WaiterAnswer, WaiterId,
};
use walras_sequencer::{ForwardSettings, GatewayTime, IntakeSettings, ReplicatedSettings, SignedBy};
use walras_types::limits::{AMOUNT_MAX, MEETINGS_PER_ENTRY_MAX};
use walras_types::{
    AccountId, Allocation, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, ClientOrderId,
    Commission, CreateOffer, CreatePool, DepositToPool, FeeSchedule, InstrumentId, InstrumentSpec, Intake, IssuedAmount, LogIndex,
    LowerBounds, Mu, OfferName, OrderTerms, Ordinal, Payment, PoolRule, PriceTicks, PublicKey, QualityMax, RejectReason,
    RiskLimits, SessionId, SessionSeq, Side, SizeLots, Symbol, TimeNs, TradingPhase, TransactionSeq, TransferId, WithdrawFromPool,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction, encode_signed_transaction};
use walras_wire::order_entry::{Copies, OnDisconnect, push_signed_bytes};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchMarketCommand, BatchMarketSpec, CancelAfter, Command, InstrumentCommand,
    MassCancel, NewOrder, OrderCommand, SetAccountKey, SetBatchPhase, SetTradingPhase, Transfer, VenueCommand, content_digest,
};

const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
const ACCOUNT: AccountId = AccountId(0);
const MARKET: BatchMarketId = BatchMarketId(0);
/// A signature that holds here.
const SOUND: [u8; SIGNATURE_BYTES] = [7; SIGNATURE_BYTES];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// While the disk fails: what is owed to it.
    owed: Option<Option<Ticket>>,
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
        Self::with_queue(access, 1 << 16)
    }

    /// The same where so many commands may wait for the log.
    fn with_queue(access: Access, waiting_max: usize) -> Self {
        let me = ReplicaId::new(1).expect("it is not 0");
        let members = Members::of_voters([me]);
        let intake = IntakeSettings::new(4, DelaySettings::Static { delay_ns: MS }, 1);
        let settings = ReplicaSettings {
            sequencing: ReplicatedSettings { waiting_max, ..ReplicatedSettings::new(Settings::new(1, me)) },
            entry: ServerSettings::default(),
            entry_keys: Arc::new(VenueKeys::new(&[9; VenueKeys::ENTROPY_LEN])),
            fair: (access == Access::Fair).then(|| (ForwardSettings::default(), intake)),
            publish: None,
            feed: None,
            leaves: BTreeSet::new(),
            addresses: BTreeMap::new(),
            clock_error_ns_max: 0,
            tick_every_ns: 1_000 * MS,
            threads: NonZero::<usize>::MIN,
            snapshot_every_ns: None,
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
        let mut venue = Self { replica, gateway, now_ns: 0, answers: BTreeMap::new(), next_waiter: 0, owed: None };
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
                    Effect::Persist(write) => match &mut self.owed {
                        Some(owed) => *owed = Some(write.ticket),
                        None => self.replica.on_persisted(at(self.now_ns), write.ticket).expect("it goes on"),
                    },
                    Effect::Answer { waiter, answer } => {
                        assert_eq!(self.answers.insert(waiter.0, answer), None, "a request is answered once");
                    }
                    // What is not [`SOUND`] is a bad signature here.
                    Effect::Verify(job) => {
                        let verdict = |signed: &SignedTransaction| match signed.signature {
                            SOUND => Ok(()),
                            _ => Err(RejectReason::SignatureInvalid),
                        };
                        let verdicts: Vec<_> = job.transactions.iter().map(verdict).collect();
                        self.replica.on_verified(at(self.now_ns), job, &verdicts);
                    }
                    // The batches of these tests are not cleared.
                    Effect::Solve(_) => {}
                    Effect::Run(job) => job.run(std::num::NonZero::<usize>::MIN),
                    Effect::Role(_) | Effect::Leading(_) | Effect::Members(_) => {}
                    other => panic!("a cluster of one does not want {other:?}"),
                }
            }
        }
    }

    /// From now on nothing becomes durable. The replica hears of it with the first write that fails.
    fn fail_disk(&mut self, storage: Storage) {
        self.owed.get_or_insert(None);
        self.replica.on_storage(at(self.now_ns), storage);
    }

    /// What is owed becomes durable.
    fn mend_disk(&mut self) {
        if let Some(Some(ticket)) = self.owed.take() {
            self.replica.on_persisted(at(self.now_ns), ticket).expect("it goes on");
        }
        self.replica.on_storage(at(self.now_ns), Storage::Ok);
    }

    fn command_answer(&mut self, waiter: u64) -> Option<Result<LogIndex, NoOutcome>> {
        match self.answers.remove(&waiter)? {
            WaiterAnswer::Command(answer) => Some(answer.map(|outcome| outcome.log_index)),
            other => panic!("{other:?} answers no command"),
        }
    }

    fn waiter(&mut self) -> WaiterId {
        self.next_waiter += 1;
        WaiterId(self.next_waiter)
    }

    fn submit(&mut self, command: Command) -> u64 {
        let waiter = self.waiter();
        self.replica.submit(at(self.now_ns), command, SignedBy::NOBODY, Some(waiter));
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
        Self::open_with(venue, place, serial, copies, OnDisconnect::Keep)
    }

    /// The same with what becomes of its orders when it is lost.
    fn open_with(venue: &mut Venue, place: usize, serial: u64, copies: Copies, on_disconnect: OnDisconnect) -> Self {
        let settings = ClientSettings { copies, on_disconnect, ..ClientSettings::new(vec!["here".to_owned()], 5) };
        let client = SessionClient::new(settings, key(), START + venue.now_ns).expect("it has an address");
        let id = StreamId { place, serial };
        let mut connection = Self { id, client, events: Vec::new(), is_over: false };
        venue.replica.on_connected(at(venue.now_ns), id, EntryProtocol::Binary);
        connection.client.on_connecting();
        connection.client.on_connected(START + venue.now_ns, &[serial as u8; 32]);
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
            replica.on_bytes(at(*now_ns), connection.id, &bytes, &mut |principal, permission, from| {
                gateway.charge(clock_ns, principal, permission, from, 1)
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

#[test]
fn while_the_log_can_not_be_written_nobody_waits_for_long_and_what_was_taken_is_done_afterwards() {
    for (access, storage, reason) in [
        (Access::AtOnce, Storage::Full, RejectReason::StorageFull),
        (Access::AtOnce, Storage::NoDescriptors, RejectReason::Overloaded),
        (Access::Fair, Storage::Full, RejectReason::StorageFull),
    ] {
        let mut venue = Venue::new(access);
        let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
        exchange(&mut venue, &mut [&mut connection]);
        let session = connection.session().unwrap();
        let ordinal = |session_seq| Ordinal { session, session_seq: SessionSeq(session_seq) };
        venue.owed = Some(None);
        let taken = [venue.submit(cancel()), venue.submit_numbered(ordinal(1), &cancel())];
        venue.pass(5 * MS);
        venue.fail_disk(storage);
        let later = [venue.submit(cancel()), venue.submit_numbered(ordinal(2), &cancel())];
        venue.pass(5 * MS);
        assert_eq!(venue.command_answer(later[0]), Some(Err(NoOutcome::Refused(reason))), "{access:?}");
        let numbered = Some(WaiterAnswer::Numbered(Err(NoOutcome::Refused(reason))));
        assert_eq!(venue.answers.remove(&later[1]), numbered, "{access:?}");
        let reader = venue.waiter();
        venue.replica.read(reader);
        venue.pass(100 * MS);
        assert_eq!(venue.answers.remove(&reader.0), Some(WaiterAnswer::Read), "reading goes on");
        assert!(venue.answers.is_empty(), "it may yet pass: {:?}", venue.answers);
        venue.pass(500 * MS);
        assert_eq!(venue.command_answer(taken[0]), Some(Err(NoOutcome::InDoubt(reason))), "{access:?}");
        let numbered = Some(WaiterAnswer::Numbered(Err(NoOutcome::InDoubt(reason))));
        assert_eq!(venue.answers.remove(&taken[1]), numbered, "{access:?}");
        let last = venue.replica.engine().last_applied();
        venue.pass(3_000 * MS);
        assert_eq!(venue.replica.engine().last_applied(), last, "nothing is applied that is not durable");
        venue.mend_disk();
        venue.pass(5 * MS);
        assert!(venue.replica.engine().last_applied() >= LogIndex(last.0 + 2), "what was taken is done");
        let again = venue.submit_numbered(ordinal(1), &cancel());
        let after = venue.submit_numbered(ordinal(2), &cancel());
        venue.pass(5 * MS);
        let done = |answer| matches!(answer, Some(WaiterAnswer::Numbered(Ok(_))));
        assert!(done(venue.answers.remove(&again)) && done(venue.answers.remove(&after)));
        assert!(venue.answers.is_empty(), "each is answered once: {:?}", venue.answers);
    }
}

#[test]
fn a_client_s_commands_wait_for_the_log_and_logons_are_refused_meanwhile() {
    for access in [Access::Fair, Access::AtOnce] {
        let mut venue = Venue::new(access);
        let mut first = Connection::open(&mut venue, 0, 1, Copies::One);
        exchange(&mut venue, &mut [&mut first]);
        venue.owed = Some(None);
        first.client.submit(START + venue.now_ns, &cancel()).unwrap();
        exchange(&mut venue, &mut [&mut first]);
        venue.fail_disk(Storage::Full);
        first.client.submit(START + venue.now_ns, &cancel()).unwrap();
        let mut second = Connection::open(&mut venue, 1, 2, Copies::One);
        exchange(&mut venue, &mut [&mut first, &mut second]);
        assert!(second.is_over && second.session().is_none(), "{access:?}");
        venue.pass(1_000 * MS);
        assert_eq!((first.answers(), first.is_over), (0, false));
        venue.mend_disk();
        // The client repeats what was refused after a while.
        for _ in 0..40 {
            venue.pass(50 * MS);
            first.client.on_timer(START + venue.now_ns, &mut |_| ());
            exchange(&mut venue, &mut [&mut first]);
        }
        assert_eq!((first.answers(), first.is_over), (2, false), "{access:?}");
        let mut third = Connection::open(&mut venue, 1, 3, Copies::One);
        exchange(&mut venue, &mut [&mut first, &mut third]);
        assert!(third.session().is_some(), "{access:?}");
    }
}

/// An instrument that trades, and funds for the account.
fn market() -> Vec<Command> {
    let symbol = |text| Symbol::new(text).expect("it is a symbol");
    let asset =
        |id, text| Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(id), symbol: symbol(text), decimals: 2 }));
    let (instrument, amount) = (InstrumentId(0), Amount::new(1_000_000_000).expect("it is an amount"));
    let deposit = |id| {
        let transfer = Transfer { account: ACCOUNT, asset: AssetId(id), amount, transfer_id: TransferId(u64::from(id) + 1) };
        Command::Account(AccountCommand::Deposit(transfer))
    };
    let spec = InstrumentSpec {
        instrument,
        symbol: symbol("BTC/USD"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 500_000,
        band_ppm: 500_000,
        reference_price: PriceTicks::saturating(100),
        default_limits: RiskLimits::STANDARD,
    };
    let phase = SetTradingPhase { instrument, phase: TradingPhase::Continuous };
    vec![
        asset(0, "BTC"),
        asset(1, "USD"),
        Command::Instrument(InstrumentCommand::Create(spec)),
        deposit(0),
        deposit(1),
        Command::Instrument(InstrumentCommand::SetPhase(phase)),
    ]
}

/// One that rests.
fn resting(client_order_id: u64) -> Command {
    let terms = OrderTerms::limit(Side::Sell, PriceTicks::saturating(100), SizeLots::new(1));
    let order = NewOrder { account: ACCOUNT, instrument: InstrumentId(0), client_order_id: ClientOrderId(client_order_id), terms };
    Command::Order(OrderCommand::New(order))
}

/// Where an open order waited.
fn waited(venue: &Venue, client_order_id: u64) -> Option<OrderWait> {
    let open = venue.replica.engine().open_order(ACCOUNT, InstrumentId(0), ClientOrderId(client_order_id)).expect("it rests");
    venue.replica.waits().of(ACCOUNT, open.order_id)
}

#[test]
fn it_is_known_where_an_order_waited_that_came_in_here_and_was_held() {
    for access in [Access::Fair, Access::AtOnce] {
        let mut venue = Venue::new(access);
        for command in market() {
            venue.submit(command);
            venue.pass(5 * MS);
        }
        let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
        exchange(&mut venue, &mut [&mut connection]);
        let session = connection.session().unwrap();
        // Its bytes lay in the socket for so long; d_s is a millisecond. The disk takes until the fifth.
        for (client_order_id, waited_ns, held_ns, late_ns) in [(1, 20_000, MS - 20_000, 0), (2, 3 * MS, 0, 2 * MS)] {
            connection.client.submit(START + venue.now_ns, &resting(client_order_id)).unwrap();
            let bytes = connection.client.output().to_vec();
            connection.client.consume(bytes.len());
            let now = at(venue.now_ns);
            let came = GatewayTime { time_ns: now.time_ns - waited_ns, ..now };
            venue.owed = Some(None);
            venue.replica.on_bytes(came, connection.id, &bytes, &mut |_, _, _| Ok(()));
            venue.pass(5 * MS);
            venue.mend_disk();
            venue.settle();
            let expected = OrderWait {
                leaf_ns: None,
                gateway_ns: Some(waited_ns),
                decided_ns: 5 * MS,
                sequencer_ns: Some(held_ns),
                report_ns: None,
                late_ns,
            };
            let expected = (access == Access::Fair).then_some(expected);
            assert_eq!(waited(&venue, client_order_id), expected, "{access:?} {client_order_id}");
            assert_eq!(venue.replica.has_unreported(), access == Access::Fair);
            venue.replica.reported(at(venue.now_ns + 7));
            let expected = expected.map(|expected| OrderWait { report_ns: Some(7), ..expected });
            assert_eq!(waited(&venue, client_order_id), expected, "{access:?} {client_order_id}");
            exchange(&mut venue, &mut [&mut connection]);
        }
        assert_eq!(connection.answers(), 2);
        // Over HTTP, with a number and without one.
        let ordinal = Ordinal { session, session_seq: SessionSeq(3) };
        venue.submit_numbered(ordinal, &resting(3));
        venue.submit(resting(4));
        venue.pass(5 * MS);
        for client_order_id in [3, 4] {
            let stages = waited(&venue, client_order_id).map(|waits| (waits.gateway_ns, waits.sequencer_ns, waits.log_ns()));
            assert_eq!(stages, (access == Access::Fair).then_some((Some(0), Some(MS), Some(0))), "{access:?} {client_order_id}");
        }
    }
}

/// What keeps the log from taking a cancel on disconnect when the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hindrance {
    /// As many commands wait as may.
    Overload,
    /// The log cannot be written.
    FullDisk,
}

#[test]
fn a_cancel_on_disconnect_waits_until_the_log_takes_it() {
    for (access, hindrance) in [
        (Access::AtOnce, Hindrance::Overload),
        (Access::AtOnce, Hindrance::FullDisk),
        (Access::Fair, Hindrance::Overload),
        (Access::Fair, Hindrance::FullDisk),
    ] {
        let mut venue = Venue::with_queue(access, 8);
        let terms = OrderTerms::limit(Side::Sell, PriceTicks::saturating(100), SizeLots::new(1));
        let order = NewOrder { account: ACCOUNT, instrument: InstrumentId(0), client_order_id: ClientOrderId(1), terms };
        for command in market().into_iter().chain([Command::Order(OrderCommand::New(order))]) {
            venue.submit(command);
            venue.pass(5 * MS);
        }
        let open_orders = |venue: &Venue| {
            let mut open = Vec::new();
            venue.replica.engine().open_orders(ACCOUNT, InstrumentId(0), &mut open);
            open.len()
        };
        let mut connection = Connection::open_with(&mut venue, 0, 1, Copies::One, OnDisconnect::Cancel);
        exchange(&mut venue, &mut [&mut connection]);
        assert!(connection.session().is_some());
        match hindrance {
            Hindrance::Overload => {
                venue.owed = Some(None);
                (0..20).for_each(|_| _ = venue.submit(Command::Venue(VenueCommand::Tick)));
            }
            Hindrance::FullDisk => venue.fail_disk(Storage::Full),
        }
        venue.replica.on_disconnected(at(venue.now_ns), connection.id);
        venue.pass(100 * MS);
        assert_eq!(open_orders(&venue), 1, "{access:?} {hindrance:?}: the log takes nothing");
        venue.mend_disk();
        venue.pass(3_000 * MS);
        assert_eq!(open_orders(&venue), 0, "{access:?} {hindrance:?}");
        // Once: what is ordered afterwards stays.
        venue.submit(Command::Order(OrderCommand::New(order)));
        venue.pass(10_000 * MS);
        assert_eq!(open_orders(&venue), 1, "{access:?} {hindrance:?}");
    }
}

#[test]
fn a_leader_goes_on_with_an_order_that_is_carried_out_in_steps() {
    let mut venue = Venue::new(Access::AtOnce);
    let order = |id, side, lots| {
        let self_trade = walras_types::SelfTrade::Allow;
        let terms = OrderTerms { self_trade, ..OrderTerms::limit(side, PriceTicks::saturating(100), SizeLots::new(lots)) };
        let client_order_id = ClientOrderId(id);
        Command::Order(OrderCommand::New(NewOrder { account: ACCOUNT, instrument: InstrumentId(0), client_order_id, terms }))
    };
    let lots = 5 * u64::from(MEETINGS_PER_ENTRY_MAX);
    for command in market().into_iter().chain((1..=lots).map(|id| order(id, Side::Sell, 1))) {
        let asked = venue.submit(command);
        venue.settle();
        venue.settle();
        assert!(matches!(venue.answers.remove(&asked), Some(WaiterAnswer::Command(Ok(outcome))) if outcome.rejected().is_none()));
    }
    let before = venue.replica.sequencer().engine().last_applied();
    venue.submit(order(lots + 1, Side::Buy, lots));
    // Far less than the time after which a leader logs a tick of its own accord.
    venue.pass(MS);
    let engine = venue.replica.sequencer().engine();
    let mut open = Vec::new();
    engine.open_orders(ACCOUNT, InstrumentId(0), &mut open);
    assert_eq!((open.len(), engine.has_work()), (0, false), "all of it traded");
    assert!(engine.last_applied().0 - before.0 >= 5, "in steps");
    // Nothing is left to go on with, so nothing more is logged.
    let after = engine.last_applied();
    venue.pass(MS);
    assert_eq!(venue.replica.sequencer().engine().last_applied(), after);
}

/// A batch market of two assets, with a key and funds for the account, in which so many transactions fit a batch.
fn open_batch_market(venue: &mut Venue, transactions_max: u32) {
    let asset = |id, name| {
        Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(id),
            symbol: Symbol::new(name).expect("a letter"),
            decimals: 2,
        }))
    };
    let spec = BatchMarketSpec {
        market: MARKET,
        symbol: Symbol::new("MAIN").expect("four letters"),
        commission: Commission::new(15).expect("an exponent"),
        mu: Mu::new(10).expect("an exponent"),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 3_600_000 * MS,
        transactions_max,
        domain: [3; 32],
    };
    let add = |id| Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset: AssetId(id) }));
    let phase = SetBatchPhase { market: MARKET, phase: BatchPhase::Open };
    let commands = [
        asset(0, "A"),
        asset(1, "B"),
        Command::Account(AccountCommand::SetKey(SetAccountKey { account: ACCOUNT, key: PublicKey([1; 32]) })),
        Command::Account(AccountCommand::Create(AccountId(1))),
        Command::BatchMarket(BatchMarketCommand::Create(spec)),
        add(0),
        add(1),
        Command::BatchMarket(BatchMarketCommand::SetPhase(phase)),
    ];
    for command in commands {
        let waiter = venue.submit(command);
        venue.pass(5 * MS);
        assert!(venue.command_answer(waiter).is_some_and(|answer| answer.is_ok()));
    }
}

/// A frame's item: a payment to account `to`, under a signature.
fn payment(sequence: u64, to: u32, units: u64, signature: [u8; SIGNATURE_BYTES]) -> Vec<u8> {
    let payment = Payment { to: AccountId(to), asset: AssetId(0), amount: Amount::new(units).expect("an amount") };
    item(sequence, BatchOperation::Payment(payment), signature)
}

fn item(sequence: u64, operation: BatchOperation, signature: [u8; SIGNATURE_BYTES]) -> Vec<u8> {
    let transaction = BatchTransaction::new(ACCOUNT, TransactionSeq(sequence), operation);
    let (mut bytes, mut item) = (Vec::new(), Vec::new());
    encode_signed_transaction(&SignedTransaction { transaction, signature }, &mut bytes);
    assert!(push_signed_bytes(&bytes, &mut item));
    item
}

#[test]
fn transactions_of_a_frame_are_collected_once_and_each_has_its_result() {
    for access in [Access::AtOnce, Access::Fair] {
        let mut venue = Venue::new(access);
        open_batch_market(&mut venue, 3);
        let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
        exchange(&mut venue, &mut [&mut connection]);
        let mut send = |venue: &mut Venue, market: BatchMarketId, items: &[Vec<u8>]| {
            connection.client.submit_transactions(START + venue.now_ns, market, items.concat()).unwrap();
            exchange(venue, &mut [&mut connection]);
            connection.client.next_transactions().expect("the frame has its results")
        };
        let first = [
            payment(1, 1, 5, SOUND),
            payment(2, 1, 5, [8; SIGNATURE_BYTES]),
            payment(3, 1, 0, SOUND),
            payment(4, 9_999, 5, SOUND),
            payment(5, 0, 5, SOUND),
            vec![1, 0],
            payment(100, 1, 5, SOUND),
            payment(6, 1, 5, SOUND),
        ];
        let outcome = send(&mut venue, MARKET, &first);
        let expected = [
            None,
            Some(RejectReason::SignatureInvalid),
            Some(RejectReason::AmountOutOfRange),
            Some(RejectReason::UnknownAccount),
            Some(RejectReason::Malformed),
            Some(RejectReason::Malformed),
            Some(RejectReason::TransactionSeqOutOfWindow),
            None,
        ];
        assert_eq!((&outcome.results[..], outcome.blocks), (&expected[..], Some((1, 1))));
        // All of it once more, and what no longer fits.
        let again =
            send(&mut venue, MARKET, &[first[0].clone(), first[7].clone(), payment(7, 1, 5, SOUND), payment(8, 1, 5, SOUND)]);
        let twice = Some(RejectReason::DuplicateTransaction);
        assert_eq!(again.results, [twice, twice, None, Some(RejectReason::BatchFull)]);
        let elsewhere = send(&mut venue, BatchMarketId(4), &[payment(8, 1, 5, SOUND)]);
        assert_eq!((elsewhere.results, elsewhere.blocks), (vec![Some(RejectReason::UnknownBatchMarket)], None));
        let collected = venue.replica.engine().batch_market(MARKET).unwrap().collected;
        assert_eq!(collected, 3, "each is collected once");
    }
}

/// What no batch would keep is refused at once by binary entry, as by REST, and takes no number.
#[test]
fn what_no_batch_keeps_is_not_collected() {
    let mut venue = Venue::new(Access::AtOnce);
    open_batch_market(&mut venue, 100);
    venue.submit(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
    exchange(&mut venue, &mut [&mut connection]);
    let amount = |units| Amount::new(units).expect("an amount");
    let [a, b, none] = [0, 1, 2].map(AssetId);
    let offer = |sell, buy, units, limit| {
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(units), limit })
    };
    let pay = |to, asset, units| BatchOperation::Payment(Payment { to: AccountId(to), asset, amount: amount(units) });
    let pool = |assets, fee_ppm, units: [u64; 2]| {
        let (rule, amounts) = (PoolRule::ConstantProduct, units.map(amount));
        BatchOperation::CreatePool(CreatePool { market: MARKET, assets, rule, fee_ppm, amounts })
    };
    let unknown = OfferName { account: ACCOUNT, sequence: TransactionSeq(9) };
    let withdraw = WithdrawFromPool { market: MARKET, pool: unknown, shares: amount(5) };
    let deposit = DepositToPool { market: MARKET, pool: unknown, amounts: [amount(5), Amount::ZERO] };
    let issued = |asset, units| IssuedAmount { asset, amount: amount(units) };
    let cases = [
        (offer(a, b, 0, BatchPrice::ONE), RejectReason::AmountOutOfRange),
        (offer(a, b, AMOUNT_MAX, BatchPrice::MAX), RejectReason::AmountOutOfRange),
        (offer(a, a, 5, BatchPrice::ONE), RejectReason::Malformed),
        (offer(a, none, 5, BatchPrice::ONE), RejectReason::UnknownAsset),
        (pay(1, a, 0), RejectReason::AmountOutOfRange),
        (pay(1, none, 5), RejectReason::UnknownAsset),
        (pay(0, a, 5), RejectReason::Malformed),
        (pay(9_999, a, 5), RejectReason::UnknownAccount),
        (BatchOperation::Issue(issued(a, 5)), RejectReason::Forbidden),
        (BatchOperation::Burn(issued(b, 0)), RejectReason::AmountOutOfRange),
        (pool([a, a], 3_000, [5_000, 5_000]), RejectReason::Malformed),
        (pool([a, b], 900_000, [5_000, 5_000]), RejectReason::Malformed),
        (pool([a, b], 3_000, [5_000, 999]), RejectReason::AmountOutOfRange),
        (BatchOperation::DepositToPool(deposit), RejectReason::AmountOutOfRange),
        (BatchOperation::WithdrawFromPool(withdraw), RejectReason::Malformed),
    ];
    let mut items: Vec<Vec<u8>> = cases.iter().map(|(operation, _)| item(1, *operation, SOUND)).collect();
    items.push(payment(1, 1, 5, SOUND));
    connection.client.submit_transactions(START + venue.now_ns, MARKET, items.concat()).unwrap();
    exchange(&mut venue, &mut [&mut connection]);
    let outcome = connection.client.next_transactions().expect("the frame has its results");
    let expected: Vec<_> = cases.iter().map(|(_, reason)| Some(*reason)).chain([None]).collect();
    assert_eq!(outcome.results, expected);
    assert_eq!(venue.replica.engine().batch_market(MARKET).unwrap().collected, 1);
}

#[test]
fn transactions_whose_entries_are_not_written_have_a_result_all_the_same() {
    let mut venue = Venue::new(Access::AtOnce);
    open_batch_market(&mut venue, 100);
    let mut connection = Connection::open(&mut venue, 0, 1, Copies::One);
    exchange(&mut venue, &mut [&mut connection]);
    venue.fail_disk(Storage::Full);
    let items: Vec<u8> = (1..=3).flat_map(|sequence| payment(sequence, 1, 5, SOUND)).collect();
    connection.client.submit_transactions(START + venue.now_ns, MARKET, items.clone()).unwrap();
    exchange(&mut venue, &mut [&mut connection]);
    venue.pass(5_000 * MS);
    exchange(&mut venue, &mut [&mut connection]);
    let outcome = connection.client.next_transactions().expect("nobody waits for ever");
    assert_eq!(outcome.results, [Some(RejectReason::StorageFull); 3]);
    // They may be in the log or not: sent again they are collected once.
    venue.mend_disk();
    venue.pass(50 * MS);
    connection.client.submit_transactions(START + venue.now_ns, MARKET, items).unwrap();
    exchange(&mut venue, &mut [&mut connection]);
    assert!(connection.client.next_transactions().is_some());
    assert_eq!(venue.replica.engine().batch_market(MARKET).unwrap().collected, 3);
}

/// What a dead man's switch did to an order.
#[derive(Debug, PartialEq, Eq)]
enum Switch {
    Waits,
    Fired,
}

#[test]
fn a_switch_that_was_set_again_in_the_log_does_not_fire() {
    let mut venue = Venue::new(Access::AtOnce);
    venue.submit(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    for command in market() {
        venue.pass(5 * MS);
        venue.submit(command);
    }
    venue.pass(5 * MS);
    let account = ACCOUNT;
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(90).unwrap(), SizeLots::new(1));
    let (instrument, client_order_id) = (InstrumentId(0), ClientOrderId(1));
    venue.submit(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })));
    let set = |timeout_ms| Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }));
    venue.submit(set(100));
    let state = |venue: &Venue| match venue.replica.engine().open_order(account, instrument, client_order_id) {
        Some(_) => Switch::Waits,
        None => Switch::Fired,
    };
    venue.pass(90 * MS);
    // It is set again in time, and the entry is written slowly: it is in the log, and not applied, when the first time comes.
    venue.owed = Some(None);
    venue.submit(set(100));
    venue.pass(20 * MS);
    venue.mend_disk();
    venue.pass(20 * MS);
    assert_eq!(state(&venue), Switch::Waits, "it was set again before its time came");
    venue.pass(50 * MS);
    assert_eq!(state(&venue), Switch::Waits);
    venue.pass(20 * MS);
    assert_eq!(state(&venue), Switch::Fired, "nobody set it again");
}
