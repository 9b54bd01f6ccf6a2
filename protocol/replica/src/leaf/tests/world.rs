//! Three replicas with fair access, a leaf gateway, the links between them, and connections of FIX clients at any of these.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZero;
use std::sync::Arc;

use bytes::Bytes;
use walras_consensus::{Members, Recovered, ReplicaId, Settings, SnapshotMeta};
use walras_engine::versions::NEWEST;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::DelaySettings;
use walras_fix_orders::{FixSettings, Secrecy};
use walras_gateway::session::{LogonRequest, ReportSettings, ServerSettings, VenueKeys};
use walras_gateway::{Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Rate, Refusal, SourceId};
use walras_sequencer::{ForwardSettings, GatewayTime, IntakeSettings, ReplicatedSettings, SignedBy};
use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, Display, InstrumentId, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, Side,
    SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, Command, InstrumentCommand, NewOrder, OrderCommand, SetTradingPhase, Transfer, VenueCommand,
};

use super::client::{Client, stamp};
use super::spec;
use crate::{
    Effect, EntryProtocol, Leaf, LeafEffect, LeafMessage, LeafSettings, Probe, Replica, ReplicaDisk, ReplicaSettings, State,
    StreamId,
};

/// The begin of 2026.
pub(super) const DAY_NS: u64 = 1_767_225_600_000_000_000;
/// When the process's time is 0.
const START_NS: u64 = DAY_NS + 3_600_000_000_000;
pub(super) const MS: u64 = 1_000_000;

/// The leaf's id.
pub(super) const LEAF: u64 = 40;

pub(super) struct Nothing;

impl Probe for Nothing {}

impl ReplicaDisk for Nothing {
    fn read_snapshot(&mut self, meta: &SnapshotMeta) -> Result<Vec<u8>, String> {
        Err(format!("there is no snapshot {meta:?}"))
    }

    fn keep_introductions(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A connection.
struct Line {
    id: StreamId,
    /// The leaf or a replica.
    at: u64,
    output: Vec<u8>,
    is_over: bool,
}

pub(super) struct World {
    pub(super) replicas: BTreeMap<u64, Replica<Nothing, Nothing>>,
    pub(super) leaf: Leaf,
    /// Replicas with which the leaf is linked.
    linked: BTreeSet<u64>,
    /// From whom, to whom, what.
    on_the_way: VecDeque<(u64, u64, Bytes)>,
    pub(super) now_ns: u64,
    gateway: Gateway,
    lines: BTreeMap<u64, Line>,
    /// Messages of links with the leaf that are lost.
    pub(super) loses: fn(&LeafMessage) -> bool,
}

fn id(number: u64) -> ReplicaId {
    ReplicaId::new(number).unwrap()
}

fn at(now_ns: u64) -> GatewayTime {
    let time_ns = START_NS + now_ns;
    GatewayTime { now_ns, now: TimeNs(time_ns), time_ns, status: ClockStatus::Good }
}

/// The key of an account.
pub(super) fn key(account: u8) -> ClientKey {
    ClientKey::generate(Algorithm::Ed25519, &[account + 1; ClientKey::ENTROPY_LEN])
}

fn replica(number: u64, entry: ServerSettings) -> Replica<Nothing, Nothing> {
    let others: BTreeSet<ReplicaId> = (1..=3).filter(|other| *other != number).map(id).collect();
    let intake = IntakeSettings::new(4, DelaySettings::Static { delay_ns: MS }, 1);
    let settings = ReplicaSettings {
        sequencing: ReplicatedSettings {
            engine_newest: NEWEST,
            engine_at_start: Some(NEWEST),
            peers: others,
            ..ReplicatedSettings::new(Settings::new(1, id(number)))
        },
        entry,
        entry_keys: Arc::new(VenueKeys::new(&[9; VenueKeys::ENTROPY_LEN])),
        fair: Some((ForwardSettings::default(), intake)),
        publish: None,
        feed: None,
        leaves: BTreeSet::from([id(LEAF)]),
        addresses: BTreeMap::new(),
        clock_error_ns_max: 0,
        tick_every_ns: 1_000 * MS,
        threads: NonZero::<usize>::MIN,
        snapshot_every_ns: None,
    };
    let recovered = Recovered::genesis(Members::of_voters((1..=3).map(id)));
    let state = State::genesis(ReportSettings::default());
    let mut replica = Replica::start(at(0), settings, recovered, state, number, (Nothing, Nothing)).unwrap();
    replica.entry_mut().set_fix(FixSettings::of("WALRAS"));
    replica.go_live();
    replica
}

fn new_leaf() -> Leaf {
    let mut leaf = Leaf::new(LeafSettings {
        entry: ServerSettings::default(),
        entry_keys: Arc::new(VenueKeys::new(&[8; VenueKeys::ENTROPY_LEN])),
        forwards: ForwardSettings::default(),
        replicas: vec![id(2), id(3), id(1)],
        lists: true,
    });
    leaf.entry_mut().set_fix(FixSettings::of("WALRAS"));
    leaf
}

impl World {
    /// BTC/USD in ticks of 0.5 and lots of 0.001; accounts 0 and 1. The leaf stands below a replica.
    pub(super) fn new() -> Self {
        Self::with(ServerSettings::default())
    }

    /// The same where replicas have these limits of connections.
    pub(super) fn with(entry: ServerSettings) -> Self {
        let rate = Rate::new(1_000_000, 1_000_000).unwrap();
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(START_NS) });
        for account in 0..2 {
            let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
            gateway.add_key(key(account).record(Some(AccountId(u32::from(account))), permissions).unwrap()).unwrap();
        }
        let mut world = Self {
            replicas: (1..=3).map(|number| (number, replica(number, entry))).collect(),
            leaf: new_leaf(),
            linked: BTreeSet::new(),
            on_the_way: VecDeque::new(),
            now_ns: 0,
            gateway,
            lines: BTreeMap::new(),
            loses: |_| false,
        };
        for (one, other) in [(1, 2), (1, 3), (2, 3)] {
            for (here, there) in [(one, other), (other, one)] {
                let replica = world.replicas.get_mut(&here).unwrap();
                replica.on_linked(at(0), id(there));
                replica.note_program(id(there), Some(NEWEST));
            }
        }
        world.wait("a replica leads", |world| world.leader().is_some());
        opening().into_iter().for_each(|command| world.apply(command));
        [1, 2, 3].into_iter().for_each(|number| world.link(number));
        world.wait("the leaf stands below a replica", |world| world.leaf.above().is_some());
        world
    }

    pub(super) fn wait(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun_ns = self.now_ns;
        while !is_so(self) {
            self.pass(5 * MS);
            assert!(self.now_ns < begun_ns + 60_000 * MS, "never: {what}");
        }
    }

    pub(super) fn time_ns(&self) -> u64 {
        START_NS + self.now_ns
    }

    fn leader(&self) -> Option<u64> {
        self.replicas.iter().find(|(_, replica)| replica.sequencer().is_leading()).map(|(number, _)| *number)
    }

    /// The operator has this applied.
    pub(super) fn apply(&mut self, command: Command) {
        let leader = self.leader().unwrap();
        let replica = self.replicas.get_mut(&leader).unwrap();
        replica.submit(at(self.now_ns), command, SignedBy::NOBODY, None);
        self.pass(5 * MS);
    }

    /// The leader stamps an entry by a clock that is so far ahead, and which is right again after that.
    pub(super) fn stamp_ahead(&mut self, ns: u64) {
        let (leader, now) = (self.leader().unwrap(), at(self.now_ns));
        let replica = self.replicas.get_mut(&leader).unwrap();
        let ahead = GatewayTime { now: TimeNs(now.now.0 + ns), ..now };
        replica.submit(ahead, Command::Venue(VenueCommand::Tick), SignedBy::NOBODY, None);
        let log = ahead.now;
        self.wait("the log is ahead", |world| world.replicas.values().all(|replica| replica.engine().time() >= log));
    }

    /// Account 1 sells at this price or above.
    pub(super) fn sell(&mut self, order: u64, price: i64, size: u64) {
        let Some(leader) = self.leader() else { return };
        let order_type = OrderType::Limit { price: PriceTicks::new(price).unwrap(), post_only: PostOnly::Off };
        let terms = OrderTerms {
            side: Side::Sell,
            size: SizeLots::new(size),
            order_type,
            time_in_force: TimeInForce::ImmediateOrCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::Allow,
        };
        let (account, instrument, client_order_id) = (AccountId(1), InstrumentId(0), ClientOrderId(order));
        let order = Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }));
        let replica = self.replicas.get_mut(&leader).unwrap();
        replica.submit(at(self.now_ns), order, SignedBy::NOBODY, None);
    }

    /// Time passes, and what is due happens.
    pub(super) fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        loop {
            let all: Vec<u64> = self.replicas.keys().copied().chain([LEAF]).collect();
            all.into_iter().for_each(|of| self.act(of));
            while self.step() {}
            if self.now_ns >= until_ns {
                return;
            }
            let due_ns = self.replicas.values().map(|replica| replica.deadline_ns(at(self.now_ns))).min();
            let due_ns = due_ns.into_iter().chain([self.leaf.deadline_ns()]).min().unwrap();
            self.now_ns = due_ns.max(self.now_ns + MS / 20).min(until_ns);
        }
    }

    /// The next message arrives; whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let Some((from, to, bytes)) = self.on_the_way.pop_front() else { return false };
        let now = at(self.now_ns);
        if to == LEAF {
            self.leaf.on_message(now, id(from), &bytes);
        } else if let Some(replica) = self.replicas.get_mut(&to) {
            replica.on_message(now, id(from), bytes).unwrap();
        }
        self.act(to);
        true
    }

    /// What the leaf or a replica does by itself.
    fn act(&mut self, of: u64) {
        let now = at(self.now_ns);
        let mut sent = Vec::new();
        if of == LEAF {
            self.leaf.round(now);
            self.flush(of);
            let mut effects = Vec::new();
            self.leaf.take_effects(&mut effects);
            sent.extend(effects.into_iter().filter_map(|effect| match effect {
                LeafEffect::Send { to, bytes } => Some((to.get(), bytes)),
                LeafEffect::Attached(_) | LeafEffect::Detached(_) | LeafEffect::Published(_) => None,
            }));
        } else if let Some(replica) = self.replicas.get_mut(&of) {
            replica.round(now, || None).unwrap();
            loop {
                let mut effects = Vec::new();
                replica.take_effects(&mut effects);
                if effects.is_empty() {
                    break;
                }
                for effect in effects {
                    match effect {
                        Effect::Persist(write) => replica.on_persisted(now, write.ticket).unwrap(),
                        Effect::Send { to, bytes } => sent.push((to.get(), bytes)),
                        Effect::Role(_) | Effect::Leading(_) | Effect::Members(_) => {}
                        other => panic!("nobody here wants {other:?}"),
                    }
                }
            }
            self.flush(of);
        }
        for (to, bytes) in sent {
            let is_of_leaf = of == LEAF || to == LEAF;
            let is_linked = if is_of_leaf { self.linked.contains(&of.min(to)) } else { self.replicas.contains_key(&to) };
            let bytes = Bytes::from(bytes);
            let is_lost = is_of_leaf && LeafMessage::decode(&bytes).is_ok_and(|message| (self.loses)(&message));
            if is_linked && !is_lost {
                self.on_the_way.push_back((of, to, bytes));
            }
        }
    }

    /// What connections are sent.
    fn flush(&mut self, of: u64) {
        let now = at(self.now_ns);
        loop {
            let next = match self.replicas.get_mut(&of) {
                Some(replica) => replica.next_dirty(now),
                None => self.leaf.next_dirty(now),
            };
            let Some(stream) = next else { return };
            let entry = match self.replicas.get_mut(&of) {
                Some(replica) => replica.entry_mut(),
                None => self.leaf.entry_mut(),
            };
            let (bytes, is_over) = (entry.output(stream).to_vec(), entry.is_over(stream));
            entry.consume(stream, bytes.len());
            if is_over {
                entry.remove(stream);
            }
            if let Some(line) = self.lines.get_mut(&stream.serial) {
                line.output.extend(bytes);
                line.is_over |= is_over;
            }
        }
    }

    pub(super) fn link(&mut self, number: u64) {
        if let Some(replica) = self.replicas.get_mut(&number)
            && self.linked.insert(number)
        {
            replica.on_linked(at(self.now_ns), id(LEAF));
            self.leaf.on_linked(at(self.now_ns), id(number));
        }
    }

    /// A link of the leaf is lost, with all that is on its way.
    pub(super) fn cut(&mut self, number: u64) {
        if !self.linked.remove(&number) {
            return;
        }
        self.on_the_way.retain(|(from, to, _)| !(*from.max(to) == LEAF && *from.min(to) == number));
        self.leaf.on_link_lost(at(self.now_ns), id(number));
        if let Some(replica) = self.replicas.get_mut(&number) {
            replica.on_link_lost(at(self.now_ns), id(LEAF)).unwrap();
        }
    }

    /// A replica dies.
    pub(super) fn kill(&mut self, number: u64) {
        self.cut(number);
        self.replicas.remove(&number);
        self.on_the_way.retain(|(from, to, _)| *from != number && *to != number);
        for replica in self.replicas.values_mut() {
            replica.on_link_lost(at(self.now_ns), id(number)).unwrap();
        }
    }

    /// The leaf dies, and another process takes its place.
    pub(super) fn leaf_starts_again(&mut self) {
        (1..=3).for_each(|number| self.cut(number));
        self.leaf = new_leaf();
        (1..=3).for_each(|number| self.link(number));
        self.wait("the leaf stands below a replica", |world| world.leaf.above().is_some());
    }

    /// The replica above the leaf.
    pub(super) fn above(&self) -> u64 {
        self.leaf.above().unwrap().get()
    }

    /// A client connects to the leaf or a replica and sends a signed logon. The connection's number.
    pub(super) fn connect(&mut self, to: u64, client: &mut Client, account: u8, resets: bool) -> u64 {
        // Each logon has a time of its own.
        self.pass(2 * MS);
        let serial = self.lines.len() as u64 + 1;
        let stream = StreamId { place: serial as usize, serial };
        let now = at(self.now_ns);
        let protocol = EntryProtocol::Fix(Secrecy::Open);
        match self.replicas.get_mut(&to) {
            Some(replica) => replica.on_connected(now, stream, protocol),
            None => self.leaf.on_connected(now, stream, protocol),
        }
        self.lines.insert(serial, Line { id: stream, at: to, output: Vec::new(), is_over: false });
        if resets {
            client.reset();
        }
        let (reset, time) = (if resets { "Y" } else { "N" }, stamp(self.time_ns()));
        let names = format!("{}\n{}", client.name, client.target);
        let text =
            format!("walras-v1\nLOGON\n/fix\nFIX.4.4\n{names}\n{}\n{time}\n30\n{reset}\n{}", client.next_out, client.next_in);
        let (signature, key_id) = (key(account).sign_bytes(text.as_bytes()), key(account).key_id());
        let proof = format!("553={key_id}|95={}|96={signature}|141={reset}|", signature.len());
        client.log_on(self.time_ns(), &proof);
        serial
    }

    /// Bytes go both ways, and time passes.
    pub(super) fn exchange(&mut self, serial: u64, client: &mut Client) {
        self.receive(serial, client);
        self.pass(5 * MS);
        self.give(serial, client);
    }

    /// What a client sent reaches where it is connected.
    pub(super) fn receive(&mut self, serial: u64, client: &mut Client) {
        let bytes = std::mem::take(&mut client.output);
        let Line { id, at: of, is_over, .. } = &self.lines[&serial];
        let (stream, of, now) = (*id, *of, at(self.now_ns));
        if *is_over {
            return;
        }
        let mut logons: Vec<(StreamId, LogonRequest)> = Vec::new();
        match self.replicas.get_mut(&of) {
            Some(replica) => {
                replica.on_bytes(now, stream, &bytes, &mut |_, _, _| Ok(()));
                logons.extend(std::iter::from_fn(|| replica.entry_mut().next_logon()));
            }
            None => {
                self.leaf.on_bytes(now, stream, &bytes, &mut |_, _, _| Ok(()));
                logons.extend(std::iter::from_fn(|| self.leaf.entry_mut().next_logon()));
            }
        }
        for (stream, logon) in logons {
            let source = SourceId::of([127, 0, 0, 1].into());
            let verdict: Result<Principal, Refusal> = logon.authorize(&mut self.gateway, now.now.0, source);
            match self.replicas.get_mut(&of) {
                Some(replica) => replica.on_authenticated(now, stream, verdict),
                None => self.leaf.on_authenticated(now, stream, verdict),
            }
        }
        self.act(of);
    }

    /// A client of the leaf gives its connection up.
    pub(super) fn hang_up(&mut self, serial: u64) {
        let line = self.lines.get_mut(&serial).unwrap();
        line.is_over = true;
        let (stream, now) = (line.id, at(self.now_ns));
        self.leaf.on_disconnected(now, stream);
    }

    /// A client gets what was written to it.
    pub(super) fn give(&mut self, serial: u64, client: &mut Client) {
        let line = self.lines.get_mut(&serial).unwrap();
        let bytes = std::mem::take(&mut line.output);
        client.on_bytes(START_NS + self.now_ns, &bytes);
        client.is_logged_on &= !line.is_over;
    }

    pub(super) fn is_over(&self, serial: u64) -> bool {
        self.lines[&serial].is_over
    }
}

/// Lists an instrument of BTC in another asset.
pub(super) fn listing(instrument: u32, symbol: &str, quote: u32) -> Command {
    Command::Instrument(InstrumentCommand::Create(spec(instrument, symbol, quote)))
}

pub(super) fn opens(instrument: u32) -> Command {
    let (instrument, phase) = (InstrumentId(instrument), TradingPhase::Continuous);
    Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }))
}

pub(super) fn asset(asset: u32, name: &str, decimals: u8) -> Command {
    Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(asset), symbol: Symbol::new(name).unwrap(), decimals }))
}

pub(super) fn deposit(account: u32, asset: u32) -> Command {
    let (account, asset, amount) = (AccountId(account), AssetId(asset), Amount::new(1 << 50).unwrap());
    let transfer_id = TransferId(u64::from(asset.0) + 1);
    Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount, transfer_id }))
}

fn opening() -> Vec<Command> {
    let mut commands = vec![asset(0, "BTC", 8), asset(1, "USD", 6)];
    for account in 0..2 {
        commands.push(Command::Account(AccountCommand::Create(AccountId(account))));
        commands.extend([deposit(account, 0), deposit(account, 1)]);
    }
    commands.extend([listing(0, "BTC/USD", 1), opens(0)]);
    commands
}
