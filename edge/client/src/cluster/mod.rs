//! Load on a cluster's binary order entry: order flow ([`Flow`]) over several sessions from one thread, at an offered rate or with
//! a fixed number of unanswered commands. Each command's latency counts from when it was due. Commands go to the leader or, with
//! fair access, through one or several gateways ([`Ways`]).
//!
//! Checks: each command is answered once, in the order of its session, with its own log entry, later than that of the session's
//! previous command.
//!
//! The flow is generated (`walras-market-history`'s churn) or recorded by an exchange, as commands of a venue's accounts
//! ([`walras_replay::venue`]): limit and immediate-or-cancel orders, moves, cancels. It is prepared in advance; at its end it
//! starts again with other order numbers. Sessions progress independently, so commands of different sessions may be reordered, and
//! some are rejected. A reject counts as an answer.

mod entries;
mod fair;
mod line;
mod market;
mod reached;
mod transactions;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use walras_access::now;
use walras_gateway::ClientKey;
use walras_gateway::session::{AnyClient, ClientSettings, CopiedClient, SessionClient};
use walras_market_history::workload::{Churn, ChurnConfig};
use walras_market_history::workload_file::INFO;
use walras_market_history::{Format, HistoryEvent};
use walras_replay::Loaded;
use walras_replay::venue::{VenueOptions, commands, setup};
use walras_types::AccountId;
use walras_wire::Command;
use walras_wire::order_entry::Role;

use crate::entry_stream::EntryTrust;
use crate::error::LoadError;
use crate::http::Client;
use crate::latency::LatencyReport;
pub use fair::{DIFFERENCES_NS, FairOptions, FairPhase, FairReport, Pairs, measure_fairness, measure_fairness_through};
use line::{Line, Tally};
pub use market::account_key;
use market::{is_market, options, rename, settings};
pub use reached::{Reached, ReplicaAddress, replicas};
pub use transactions::{TransactionLoad, TransactionReport, measure_transactions};

/// Number of prepared commands; then they start again.
const FLOW_COMMANDS: u64 = 400_000;
/// Target number of orders in the books together.
const RESTING_ORDERS: u64 = 1_000;
/// Minimum target per book.
const RESTING_ORDERS_MIN: u64 = 10;
/// Offset of order numbers between markets.
const MARKET_IDS: u64 = 1 << 24;
/// Offset of order numbers between rounds.
const ROUND_IDS: u64 = 1 << 40;
/// Interval at which due commands are sent, as by a program that waits and does not spin.
const GRAIN_NS: u64 = 100_000;
/// Interval at which clients check their timers.
const TIMERS_EVERY_NS: u64 = 10_000_000;
/// Within this time every gateway knows a new key.
const KEYS_KNOWN_NS: u64 = 2_000_000_000;
/// Timeout for what should happen at once.
const PATIENCE_NS: u64 = 20_000_000_000;

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// A fixed rate of commands per second (open loop).
    PerSecond(u64),
    /// A fixed number of unanswered commands (closed loop).
    Outstanding(usize),
}

/// The result of a measurement.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ClusterReport {
    /// Offered commands per second; `None` for a closed loop.
    pub offered_per_second: Option<u64>,
    /// Number of unanswered commands, if it was fixed.
    pub outstanding: Option<usize>,
    /// Sessions, each on a connection of its own.
    pub sessions: usize,
    /// Duration in seconds.
    pub seconds: f64,
    /// Commands answered while it was measured.
    pub acknowledged: u64,
    /// Commands answered in all: those of warming up, and those answered after the end, count as well.
    pub answered: u64,
    /// Of them those that changed nothing.
    pub rejected: u64,
    /// Commands answered a second.
    pub acknowledged_per_second: f64,
    /// Mean time from when a command was due to its answer.
    pub mean_ns: f64,
    /// Distribution of that time.
    pub latency: LatencyReport,
    /// Connections lost meanwhile.
    pub reconnects: u64,
}

impl std::fmt::Display for ClusterReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let load = match (self.offered_per_second, self.outstanding) {
            (Some(rate), _) => format!("{rate}/s offered"),
            (None, count) => format!("{} outstanding", count.unwrap_or(0)),
        };
        writeln!(f, "{load}, {} sessions, {:.1} s", self.sessions, self.seconds)?;
        writeln!(f, "  acknowledged  {:.0}/s ({} of them rejected)", self.acknowledged_per_second, self.rejected)?;
        writeln!(f, "  from due to acknowledged  mean {:.0} us, {}", self.mean_ns / 1e3, self.latency)?;
        if self.reconnects > 0 {
            writeln!(f, "  {} connections were lost and made again", self.reconnects)?;
        }
        Ok(())
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Generated, from a seed: a book that is held near a size.
    Generated(u64),
    /// Recorded: a file of an exchange's messages, such as LOBSTER's. Orders that it leaves open stay when it begins again.
    Recorded(PathBuf),
}

/// The ways by which sessions send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// To the leader.
    #[default]
    Leader,
    /// With fair access: each session uses several of these gateways (addresses of order entry); the first one rotates.
    Gateways {
        /// Addresses of their order entry.
        gateways: Vec<String>,
        /// Number of gateways by which a session sends each command.
        copies: usize,
    },
}

/// A load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Sessions, each an account's.
    pub sessions: u32,
    /// Markets among which generated flow is spread evenly, from 1; recorded flow has one.
    pub markets: u32,
    /// The order flow.
    pub flow: Flow,
    /// The way by which sessions send.
    pub ways: Ways,
}

impl Flow {
    /// The flow of one of several markets.
    fn load(&self, market: u32, markets: u32) -> Result<Loaded, LoadError> {
        match self {
            Self::Generated(seed) => {
                let share = |all: u64| (all / u64::from(markets)).max(RESTING_ORDERS_MIN);
                let (commands, target_orders) = (share(FLOW_COMMANDS), share(RESTING_ORDERS));
                let config = ChurnConfig { commands, target_orders, ..ChurnConfig::standard(*seed + u64::from(market)) };
                let events: Vec<HistoryEvent> =
                    (0..).zip(Churn::new(config)).map(|(index, command)| command.event(index)).collect();
                Ok(Loaded::from_events(Format::Workload, INFO, events))
            }
            Self::Recorded(path) => Ok(Loaded::open(path, &walras_replay::Options::default(), &mut |_| {})?),
        }
    }
}

/// Sessions that are logged on, and the flow that they send.
pub struct ClusterLoad {
    lines: Vec<Line>,
    flow: Vec<(usize, Command)>,
    next: usize,
    round: u64,
    begun: Instant,
    epoch_ns: u64,
    buffer: Vec<u8>,
    tally: Tally,
    timers_ns: u64,
    trust: Option<EntryTrust>,
}

impl ClusterLoad {
    /// Sets up a market and accounts of its own, and logs their sessions on. `key` is an operator's that all replicas know.
    pub fn prepare(replicas: &[ReplicaAddress], key: &ClientKey, sessions: u32, seed: u64) -> Result<Self, LoadError> {
        Self::prepare_flow(replicas, key, sessions, &Flow::Generated(seed))
    }

    /// The same with any flow.
    pub fn prepare_flow(replicas: &[ReplicaAddress], key: &ClientKey, sessions: u32, flow: &Flow) -> Result<Self, LoadError> {
        let options = LoadOptions { sessions, markets: 1, flow: flow.clone(), ways: Ways::Leader };
        Self::prepare_with(replicas, key, &options)
    }

    /// The same with any load. All replicas that it uses must be in `replicas`, because they need the accounts' keys.
    pub fn prepare_with(replicas: &[ReplicaAddress], key: &ClientKey, load: &LoadOptions) -> Result<Self, LoadError> {
        let LoadOptions { sessions, markets, flow, ways } = load;
        let clients: Vec<Client> = replicas.iter().map(|replica| Client::new(&replica.url, Some(key.clone()))).collect();
        let first = clients.first().ok_or_else(|| LoadError::Cluster("no replica is named".to_owned()))?;
        let markets = if matches!(flow, Flow::Recorded(_)) { 1 } else { (*markets).max(1) };
        let options = options(first, (*sessions).max(2), markets)?;
        let loaded = (0..markets).map(|market| flow.load(market, markets)).collect::<Result<Vec<_>, _>>()?;

        let orders: Vec<String> = replicas.iter().map(|replica| replica.orders.clone()).collect();
        let mut load = Self::idle(replicas);
        let operator = ClientSettings { role: Role::Operator, ..settings(&orders) };
        load.log_on(vec![client(operator, key.clone(), load.now_ns())])?;
        for (market, (loaded, options)) in loaded.iter().zip(&options).enumerate() {
            // Accounts and assets are the same in all of them.
            for command in setup(loaded, options)?.into_iter().filter(|command| market == 0 || is_market(command)) {
                load.enter(0, load.now_ns(), command);
            }
        }
        load.drain()?;
        if load.tally.rejected > 0 {
            return Err(LoadError::Cluster(
                "the venue rejected the market of the measurement: is another one being set up?".to_owned(),
            ));
        }
        load.lines.clear();
        let VenueOptions { first_account, accounts: count, .. } = options[0];
        let accounts = (first_account.0..).take(count as usize).map(AccountId);
        let keys = accounts.map(|account| account_key(&clients, account)).collect::<Result<Vec<_>, _>>()?;
        load.log_on_by(ways, &orders, &keys)?;
        load.flow = mixed(&loaded, &options)?;
        Ok(load)
    }

    /// Without sessions and without a flow.
    fn idle(replicas: &[ReplicaAddress]) -> Self {
        Self {
            lines: Vec::new(),
            flow: Vec::new(),
            next: 0,
            round: 0,
            begun: Instant::now(),
            epoch_ns: now().0,
            buffer: vec![0; 256 << 10],
            tally: Tally::default(),
            timers_ns: 0,
            trust: replicas.iter().find_map(|replica| replica.trust.clone()),
        }
    }

    fn now_ns(&self) -> u64 {
        self.epoch_ns + u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn log_on(&mut self, clients: Vec<AnyClient>) -> Result<(), LoadError> {
        let now_ns = self.now_ns();
        self.lines = clients.into_iter().map(|client| Line::new(client, self.trust.clone())).collect();
        let give_up_ns = now_ns + PATIENCE_NS;
        while !self.lines.iter().all(|line| line.client.is_logged_on()) {
            self.turn(5_000_000)?;
            if self.now_ns() > give_up_ns {
                return Err(LoadError::Cluster(
                    "not all sessions could log on: does a replica lead, do all know the keys?".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Logs accounts on by these ways. A leaf gateway hears of their keys a moment after the replicas.
    fn log_on_by(&mut self, ways: &Ways, orders: &[String], keys: &[ClientKey]) -> Result<(), LoadError> {
        let give_up_ns = self.now_ns() + KEYS_KNOWN_NS;
        loop {
            let now_ns = self.now_ns();
            let clients = keys.iter().enumerate().map(|(at, key)| ways.client(at, orders, key.clone(), now_ns)).collect();
            match self.log_on(clients) {
                Err(_) if *ways != Ways::Leader && self.now_ns() < give_up_ns => {
                    self.tally = Tally::default();
                    std::thread::sleep(Duration::from_millis(5)); // pause: another process has to hear of the keys
                }
                done => return done,
            }
        }
    }

    /// Runs the load; commands due in `warm_up` do not count.
    pub fn run(&mut self, offered: Offered, warm_up: Duration, time: Duration) -> Result<ClusterReport, LoadError> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let begin_ns = self.now_ns();
        let (from_ns, end_ns) = (begin_ns + ns(warm_up), begin_ns + ns(warm_up) + ns(time));
        self.tally = Tally { from_ns, entries: std::mem::take(&mut self.tally.entries), ..Tally::default() };
        let mut sent = 0_u64;
        let mut now_ns = begin_ns;
        while now_ns < end_ns {
            let wait_ns = match offered {
                Offered::PerSecond(rate) => {
                    let due_ns = |n: u64| begin_ns + (u128::from(n) * 1_000_000_000 / u128::from(rate.max(1))) as u64;
                    while due_ns(sent) <= now_ns {
                        self.enter_next(due_ns(sent));
                        sent += 1;
                    }
                    (due_ns(sent) - now_ns).max(GRAIN_NS)
                }
                Offered::Outstanding(count) => {
                    while self.tally.unanswered < count {
                        self.enter_next(now_ns);
                    }
                    TIMERS_EVERY_NS
                }
            };
            self.turn(wait_ns)?;
            now_ns = self.now_ns();
        }
        // Only commands answered until now count; the remaining ones are not slower.
        let (acknowledged, seconds) = (self.tally.acknowledged, (now_ns - from_ns) as f64 / 1e9);
        self.drain()?;
        let Tally { latencies, sum_ns, answered, rejected, reconnects, .. } = &self.tally;
        let latency = latencies.report();
        let (offered_per_second, outstanding) = match offered {
            Offered::PerSecond(rate) => (Some(rate), None),
            Offered::Outstanding(count) => (None, Some(count)),
        };
        Ok(ClusterReport {
            offered_per_second,
            outstanding,
            sessions: self.lines.len(),
            seconds,
            acknowledged,
            answered: *answered,
            rejected: *rejected,
            acknowledged_per_second: acknowledged as f64 / seconds,
            mean_ns: *sum_ns as f64 / latency.count.max(1) as f64,
            latency,
            reconnects: *reconnects,
        })
    }

    /// Number of answered commands of the last run, including those answered after its end.
    #[must_use]
    pub fn answered_count(&self) -> u64 {
        self.tally.answered
    }

    /// Number of commands of the last run that missed d_s, as the venue reported.
    #[must_use]
    pub fn late_count(&self) -> u64 {
        self.tally.late
    }

    fn drain(&mut self) -> Result<(), LoadError> {
        let give_up_ns = self.now_ns() + PATIENCE_NS;
        while self.tally.unanswered > 0 {
            self.turn(TIMERS_EVERY_NS)?;
            if self.now_ns() > give_up_ns {
                return Err(LoadError::Cluster(format!("{} commands were not answered", self.tally.unanswered)));
            }
        }
        Ok(())
    }

    fn enter_next(&mut self, due_ns: u64) {
        let (line, mut command) = self.flow[self.next];
        rename(&mut command, self.round * ROUND_IDS);
        self.next += 1;
        if self.next == self.flow.len() {
            (self.next, self.round) = (0, self.round + 1);
        }
        self.enter(line, due_ns, command);
    }

    fn enter(&mut self, line: usize, due_ns: u64, command: Command) {
        self.tally.unanswered += 1;
        let line = &mut self.lines[line];
        line.waiting.push_back((due_ns, command));
        line.send_waiting(due_ns);
    }

    /// Writes, waits so long at most, reads.
    fn turn(&mut self, wait_ns: u64) -> Result<(), LoadError> {
        let now_ns = self.now_ns();
        let is_time = now_ns >= self.timers_ns;
        if is_time {
            self.timers_ns = now_ns + TIMERS_EVERY_NS;
        }
        for line in &mut self.lines {
            if is_time || line.wires.iter().any(|wire| wire.stream.is_none()) {
                line.on_timer(now_ns, &mut self.tally);
            }
            line.write(now_ns, &mut self.tally);
        }
        let mut places = Vec::with_capacity(self.lines.len());
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.lines.len());
        for (line, wires) in self.lines.iter().map(|line| &line.wires).enumerate() {
            for (at, wire) in wires.iter().enumerate() {
                let flags = if wire.is_blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                if let Some(stream) = &wire.stream {
                    places.push((line, at));
                    fds.push(PollFd::new(stream, flags));
                }
            }
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait_ns.min(999_999_999).cast_signed() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(LoadError::Cluster(format!("waiting for sockets: {e}"))),
        }
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        let now_ns = self.now_ns();
        for ((line, at), ready) in places.into_iter().zip(ready) {
            let line = &mut self.lines[line];
            if ready.contains(PollFlags::OUT) {
                line.wires[at].is_blocked = false;
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                line.read(at, now_ns, &mut self.buffer, &mut self.tally);
            }
        }
        self.tally.failed.take().map_or(Ok(()), |why| Err(LoadError::Cluster(why)))
    }
}

fn client(settings: ClientSettings, key: ClientKey, now_ns: u64) -> AnyClient {
    AnyClient::One(Box::new(SessionClient::new(settings, key, now_ns).expect("there is a replica's address")))
}

impl Ways {
    /// The client of a session, given its index.
    fn client(&self, session: usize, orders: &[String], key: ClientKey, now_ns: u64) -> AnyClient {
        let Self::Gateways { gateways, copies } = self else { return client(settings(orders), key, now_ns) };
        let own: Vec<String> = gateways.iter().cycle().skip(session % gateways.len()).take(*copies).cloned().collect();
        if own.len() == 1 {
            return client(settings(&own), key, now_ns);
        }
        let client = CopiedClient::new(&settings(&[]), &own, &key, now_ns);
        AnyClient::Several(Box::new(client.expect("there is a gateway's address")))
    }
}

/// The commands of all markets, interleaved, each with its session.
fn mixed(loaded: &[Loaded], options: &[VenueOptions]) -> Result<Vec<(usize, Command)>, LoadError> {
    let flows = loaded.iter().zip(options).zip(0_u64..).map(|((loaded, options), market)| {
        Ok(commands(loaded, options)?.filter_map(move |(_, mut command)| {
            let account = command.account()?;
            rename(&mut command, market * MARKET_IDS);
            Some(((account.0 - options.first_account.0) as usize, command))
        }))
    });
    let mut flows: Vec<_> = flows.collect::<Result<_, LoadError>>()?;
    let mut all = Vec::new();
    while !flows.is_empty() {
        flows.retain_mut(|flow| flow.next().map(|one| all.push(one)).is_some());
    }
    Ok(all)
}
