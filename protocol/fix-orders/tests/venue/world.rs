//! One log, and replicas that serve FIX from it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use walras_engine::{Engine, Numbered};
use walras_fix_orders::{Catalog, FixServer, FixSettings, Memory, Secrecy};
use walras_gateway::session::{Host, LogonRequest, OrderNames, ReportSettings, Reports, Resend, SessionStart, TransactionFrame};
use walras_gateway::{
    Algorithm, Allowance, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Rate, Refusal, SourceId,
};
use walras_types::{
    AccountId, Allocation, Amount, AssetId, ClientOrderName, EngineVersion, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderId, Ordinal, PriceTicks, RejectReason, RiskLimits, Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{
    AccountCommand, AssetSpec, Command, Event, InstrumentCommand, OpenSession, OrderEvent, SessionCommand, SessionEvent,
    SetTradingPhase, Transfer, VenueCommand,
};

use crate::client::Client;

/// The begin of 2026.
pub(crate) const DAY_NS: u64 = 1_767_225_600_000_000_000;

/// What a replica was asked.
enum Asked {
    Open { line: usize, account: AccountId, token: u64 },
    Submit { ordinal: Ordinal, command: Command },
}

/// A connection of one client.
struct Line {
    server: FixServer,
    replica: usize,
    session: Option<Ordinal>,
    account: Option<AccountId>,
}

pub(crate) struct World {
    pub(crate) now_ns: u64,
    engine: Engine,
    pub(crate) reports: Reports,
    /// What the owners of orders call them by, where that is a text.
    names: BTreeMap<OrderId, ClientOrderName>,
    /// The version that connections know of.
    pub(crate) version: EngineVersion,
    /// The log takes nothing of a later version.
    pub(crate) in_force: EngineVersion,
    /// Commands of sessions, as the log has them.
    pub(crate) commands: Vec<Command>,
    log_index: LogIndex,
    gateway: Gateway,
    /// By client.
    lines: BTreeMap<usize, Line>,
    /// Connections that are gone, whose commands may yet come.
    pipeline: VecDeque<Asked>,
    memories: BTreeMap<(usize, AccountId, u64), Memory>,
    /// The log takes nothing.
    pub(crate) is_full: bool,
    pub(crate) is_throttled: bool,
    pub(crate) secrecy: Secrecy,
    settings: FixSettings,
}

struct Notes<'a> {
    line: usize,
    pipeline: &'a mut VecDeque<Asked>,
    logons: Vec<LogonRequest>,
    account: &'a mut Option<AccountId>,
    is_throttled: bool,
}

impl Host for Notes<'_> {
    fn authenticate(&mut self, logon: LogonRequest) {
        self.logons.push(logon);
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, _: ReportsWanted) {
        *self.account = account;
        self.pipeline.push_back(Asked::Open { line: self.line, account: account.unwrap(), token });
    }

    fn charge(&mut self, _: u64, _: &Principal, _: Permission, from: Allowance) -> Result<(), Refusal> {
        match (self.is_throttled, from) {
            (true, Allowance::Requests) => {
                Err(Refusal { reason: RejectReason::Throttled, detail: None, retry_after_ns: Some(1_000_000) })
            }
            _ => Ok(()),
        }
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        assert_eq!(walras_wire::decode_command(bytes).as_ref(), Ok(command));
        self.pipeline.push_back(Asked::Submit { ordinal, command: *command });
    }

    fn transactions(&mut self, _: TransactionFrame) {
        unreachable!("FIX has no message for it");
    }
}

pub(crate) fn key(account: u8) -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[account; ClientKey::ENTROPY_LEN])
}

pub(crate) fn signing_key() -> ClientKey {
    ClientKey::generate(Algorithm::Ed25519, &[9; ClientKey::ENTROPY_LEN])
}

/// Username and Password of an account.
pub(crate) fn password(account: u8) -> String {
    let token = key(account).to_token().to_string();
    let (id, secret) = token.split_once('.').unwrap();
    format!("553={id}|554={secret}|")
}

fn opening() -> Vec<Command> {
    let symbol = |name| Symbol::new(name).unwrap();
    let mut commands = Vec::new();
    for (asset, name, decimals) in [(0, "BTC", 8), (1, "USD", 6)] {
        commands.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(asset),
            symbol: symbol(name),
            decimals,
        })));
    }
    for account in [0, 1].map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for asset in [0, 1] {
            let (amount, transfer_id) = (Amount::new(1 << 50).unwrap(), TransferId(u64::from(asset) + 1));
            commands.push(Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset: AssetId(asset),
                amount,
                transfer_id,
            })));
        }
    }
    let instrument = InstrumentId(0);
    commands.push(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
        instrument,
        symbol: symbol("BTC/USD"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 100_000,
        tick_value_units: 500,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 100 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: PriceTicks::new(60_000).unwrap(),
        default_limits: RiskLimits::NONE,
    })));
    commands
        .push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase: TradingPhase::Continuous })));
    commands
}

impl World {
    /// BTC/USD in ticks of 0.5 and lots of 0.001; accounts 0 and 1.
    pub(crate) fn new() -> Self {
        let rate = Rate::new(1_000_000, 1_000_000).unwrap();
        let now_ns = DAY_NS + 3_600_000_000_000;
        let mut gateway = Gateway::new(GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(now_ns) });
        let permissions = || Permissions::from_iter([Permission::Trade, Permission::Read]);
        for account in 0..2 {
            gateway.add_key(key(account).record(Some(AccountId(u32::from(account))), permissions()).unwrap()).unwrap();
        }
        gateway.add_key(signing_key().record(Some(AccountId(0)), permissions()).unwrap()).unwrap();
        let mut world = Self {
            now_ns,
            engine: Engine::new(),
            reports: Reports::new(ReportSettings::default()),
            names: BTreeMap::new(),
            version: walras_engine::versions::NEWEST,
            in_force: EngineVersion(u16::MAX),
            commands: Vec::new(),
            log_index: LogIndex(0),
            gateway,
            lines: BTreeMap::new(),
            pipeline: VecDeque::new(),
            memories: BTreeMap::new(),
            is_full: false,
            is_throttled: false,
            secrecy: Secrecy::Private,
            settings: FixSettings::of("WALRAS"),
        };
        world.apply(None, &Command::Venue(VenueCommand::SetEngineVersion(walras_engine::versions::NEWEST)));
        for command in opening() {
            world.apply(None, &command);
        }
        world
    }

    fn apply(&mut self, ordinal: Option<Ordinal>, command: &Command) -> (Option<Numbered>, Vec<Event>) {
        self.log_index = LogIndex(self.log_index.0 + 1);
        let (mut events, time) = (Vec::new(), TimeNs(self.now_ns));
        let numbered = match ordinal {
            Some(ordinal) => Some(self.engine.apply_numbered(self.log_index, time, ordinal, command, &mut events)),
            None => {
                self.engine.apply(self.log_index, time, command, &mut events);
                None
            }
        };
        if let (Some(ordinal), Some(numbered)) = (ordinal, numbered) {
            self.commands.push(*command);
            for line in self.lines.values_mut() {
                match numbered {
                    Numbered::Done(answer) => line.server.answer(ordinal, answer, Some(time)),
                    Numbered::Repeated(answer) => line.server.answer(ordinal, answer, None),
                    Numbered::Refused(reason) => line.server.refused(ordinal, reason, None),
                }
            }
        }
        for event in &events {
            let names = self.names_of(command, event);
            let Self { reports, lines, log_index, .. } = self;
            reports.on_named_event(*log_index, time, event, names, |account, report, name| {
                for line in lines.values_mut().filter(|line| line.account == Some(account)) {
                    line.server.report(report, name);
                }
            });
            if let Event::Session(SessionEvent::Closed(closed)) = event {
                for line in lines.values_mut().filter(|line| line.session.is_some_and(|of| of.session == closed.session)) {
                    line.server.closed();
                }
            }
        }
        (numbered, events)
    }

    /// What an event's orders are called: by the command that enters them, and then as long as there is something to tell of them.
    fn names_of(&mut self, command: &Command, event: &Event) -> OrderNames {
        let of = |names: &BTreeMap<OrderId, ClientOrderName>, order_id: OrderId| names.get(&order_id).copied();
        match event {
            Event::Order(OrderEvent::Accepted(e)) => {
                self.names.extend(command.name().map(|name| (e.order_id, name)));
                [command.name(), None]
            }
            Event::Order(OrderEvent::Traded(e)) => [&e.maker, &e.taker].map(|party| of(&self.names, party.order_id)),
            Event::Order(OrderEvent::Amended(e)) => {
                let given = match command {
                    Command::Order(order) if order.client_order_id() == Some(e.client_order_id) => order.replacement_name(),
                    _ => None,
                };
                [given.or_else(|| of(&self.names, e.order_id)), None]
            }
            Event::Order(OrderEvent::Cancelled(e)) => [of(&self.names, e.order_id), None],
            Event::Order(OrderEvent::Reduced(e)) => [of(&self.names, e.order_id), None],
            Event::Order(OrderEvent::Triggered(e)) => [of(&self.names, e.order_id), None],
            Event::Rejected(_) => [command.name(), None],
            _ => [None, None],
        }
    }

    /// A client connects to a replica and logs on.
    pub(crate) fn connect(&mut self, client: usize, of: &mut Client, replica: usize, extra: &str) {
        self.lose(client);
        let catalog = Catalog::of(self.engine.instruments().map(|view| view.spec), self.engine.assets()).under(self.version);
        let server = FixServer::new(self.settings.clone(), self.secrecy, Arc::new(catalog), self.now_ns - DAY_NS, self.now_ns);
        self.lines.insert(client, Line { server, replica, session: None, account: None });
        of.log_on(self.now_ns, extra);
    }

    /// A connection breaks. What it handed to the log may come there yet.
    pub(crate) fn lose(&mut self, client: usize) {
        if let Some(mut line) = self.lines.remove(&client) {
            line.server.on_disconnect();
            self.keep(line.replica, &mut line.server);
        }
    }

    fn keep(&mut self, replica: usize, server: &mut FixServer) {
        if let Some((account, token, memory)) = server.take_memory() {
            self.memories.insert((replica, account, token), memory);
        }
    }

    /// A replica starts again: it remembers nothing.
    pub(crate) fn restart(&mut self, replica: usize) {
        self.memories.retain(|(of, ..), _| *of != replica);
    }

    fn serve(&mut self, client: usize, act: impl FnOnce(&mut FixServer, &mut Notes<'_>, u64)) {
        let (now_ns, is_throttled) = (self.now_ns, self.is_throttled);
        let Some(line) = self.lines.get_mut(&client) else { return };
        let mut notes =
            Notes { line: client, pipeline: &mut self.pipeline, logons: Vec::new(), account: &mut line.account, is_throttled };
        act(&mut line.server, &mut notes, now_ns);
        for logon in std::mem::take(&mut notes.logons) {
            let verdict = logon.authorize(&mut self.gateway, now_ns, SourceId::of("10.0.0.1".parse().unwrap()));
            line.server.authenticated(verdict, &mut notes);
        }
    }

    /// Bytes of a client come.
    pub(crate) fn receive(&mut self, client: usize, bytes: &[u8]) {
        self.serve(client, |server, notes, now_ns| server.on_bytes(now_ns - DAY_NS, now_ns, bytes, notes));
    }

    /// What a client is sent.
    pub(crate) fn output(&mut self, client: usize) -> Vec<u8> {
        self.serve(client, |server, notes, now_ns| server.go_on(now_ns - DAY_NS, notes));
        let Some(line) = self.lines.get_mut(&client) else { return Vec::new() };
        let output = line.server.output().to_vec();
        line.server.consume(output.len());
        output
    }

    pub(crate) fn is_over(&self, client: usize) -> bool {
        self.lines.get(&client).is_none_or(|line| line.server.is_over())
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        let now_ns = self.now_ns - DAY_NS;
        for line in self.lines.values_mut() {
            if line.server.deadline_ns().is_some_and(|at| at <= now_ns) {
                line.server.on_timer(now_ns);
            }
        }
    }

    /// How long a client's connection has nothing to do.
    pub(crate) fn pause_ns(&self, client: usize) -> u64 {
        self.lines[&client].server.deadline_ns().unwrap_or(u64::MAX).saturating_sub(self.now_ns - DAY_NS)
    }

    /// The next of what waits comes into the log.
    pub(crate) fn decide(&mut self) -> bool {
        let Some(asked) = self.pipeline.pop_front() else { return false };
        match asked {
            Asked::Open { line, account, token } => {
                let open = Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token }));
                let (_, events) = self.apply(None, &open);
                let session = events.iter().find_map(|event| match event {
                    Event::Session(SessionEvent::Opened(opened)) => Some(opened.session),
                    _ => None,
                });
                let session = session.expect("accounts may open sessions");
                let next = self.engine.session(session).unwrap().next;
                let start = SessionStart::new(session, next, Some(account), ReportsWanted::After(0), &self.reports);
                let Some(of) = self.lines.get_mut(&line) else { return true };
                of.session = Some(Ordinal { session, session_seq: next });
                let name = of.server.remembered_as().map(|(account, token)| (of.replica, account, token));
                let memory = name.and_then(|name| self.memories.remove(&name));
                of.server.opened(self.now_ns - DAY_NS, start, memory);
                if let Resend::Found(reports) = self.reports.resend_named(account, start.reports_from - 1) {
                    for (report, name) in reports {
                        of.server.report(&report, name);
                    }
                }
            }
            Asked::Submit { ordinal, command } if self.is_full => {
                assert!(command.account() == Some(AccountId(0)) || command.account() == Some(AccountId(1)));
                for line in self.lines.values_mut() {
                    line.server.refused(ordinal, RejectReason::Overloaded, None);
                }
            }
            Asked::Submit { ordinal, command } if command.since() > self.in_force => {
                for line in self.lines.values_mut() {
                    line.server.refused(ordinal, RejectReason::NeedsLaterVersion, None);
                }
            }
            Asked::Submit { ordinal, command } => {
                self.apply(Some(ordinal), &command);
            }
        }
        true
    }

    /// Commands that are on their way are lost.
    pub(crate) fn lose_pipeline(&mut self) {
        self.pipeline.clear();
    }

    /// Lots bought less lots sold.
    pub(crate) fn position(&self, account: u32) -> i64 {
        self.engine.position(AccountId(account), InstrumentId(0)).net_lots
    }

    pub(crate) fn open_orders(&self, account: u32) -> u32 {
        self.engine.position(AccountId(account), InstrumentId(0)).open_orders
    }

    /// All that is on its way comes, both ways, until nothing does.
    pub(crate) fn settle(&mut self, clients: &mut [Client]) {
        for _ in 0..1_000 {
            let mut is_quiet = true;
            for (at, client) in clients.iter_mut().enumerate() {
                let bytes = std::mem::take(&mut client.output);
                if !bytes.is_empty() && self.lines.contains_key(&at) {
                    is_quiet = false;
                    self.receive(at, &bytes);
                }
            }
            while self.decide() {
                is_quiet = false;
            }
            for (at, client) in clients.iter_mut().enumerate() {
                let output = self.output(at);
                if !output.is_empty() {
                    is_quiet = false;
                    client.on_bytes(self.now_ns, &output);
                }
                if self.is_over(at) {
                    client.is_logged_on = false;
                }
            }
            self.wait(1_000_000);
            if is_quiet && self.pipeline.is_empty() {
                return;
            }
        }
        panic!("it never settles");
    }
}
