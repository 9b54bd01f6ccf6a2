//! Measures how long the service is down after the leader of a cluster of processes dies: from the signal to the first answer that
//! a participant under light load gets from the new leader.
//!
//! There are two kinds of failure ([`Manner`]). If a process is killed, its system closes its connections, so followers and
//! participant know at once. If it falls silent, like a machine that loses power or network, no connection ends, and all have to
//! wait for a timeout.
//!
//! The participant is a [`walras_gateway::session::SessionClient`], as any program would use it. When it loses its connection, it
//! tries one replica after the other until one accepts its session, and resends unanswered commands. Answers that the dead leader
//! had sent do not count.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::{Value, json};
use walras_access::{now, random_bytes, random_u64};
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, Wish};
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, Side, SizeLots};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{CancelOrder, Command, NewOrder, OrderCommand};

use crate::cluster::account_key;
use crate::error::LoadError;
use crate::http::{Client, read_key};
use crate::local_cluster::{LocalCluster, LocalError, LocalOptions};

const MS: u64 = 1_000_000;

/// Delay before the participant tries the next replica.
const RETRY_NS: u64 = 2 * MS;
/// Interval of its orders, if the previous one is answered.
const ORDER_EVERY_NS: u64 = 2 * MS;
/// Load before each failure, to reach a steady state; a random part of a heartbeat period is added.
const USUAL_NS: u64 = 50 * MS;
/// In a silent failure: it gives up a replica that accepted its connection or order and then sends nothing for this time.
const SILENCE_NS: u64 = 50 * MS;
/// Timeout for what should happen within a second or two.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a leader dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Its process is killed: its system closes all its connections.
    Killed,
    /// Its process is stopped and its connections stay open, as if its machine had lost power. Afterwards it continues.
    Silent,
}

/// A cluster, and how often its leader dies.
#[derive(Clone, Debug)]
pub struct FailoverOptions {
    /// Replicas, at least 3.
    pub replicas: u16,
    /// Shortest and longest election timeout, in milliseconds.
    pub election_timeout_ms: (u64, u64),
    /// Time between heartbeats.
    pub heartbeat_ms: u64,
    /// How many leaders die, one after the other; each comes back.
    pub deaths: u32,
    /// How the failure is caused.
    pub manner: Manner,
    /// Whether followers use fast fail-over (the default); otherwise only their random timeouts count.
    pub fast: bool,
}

impl FailoverOptions {
    /// Three replicas with this range of election timeouts and a heartbeat of a fifth of the shorter; their leaders are killed.
    #[must_use]
    pub fn new(min_ms: u64, max_ms: u64, deaths: u32) -> Self {
        Self {
            replicas: 3,
            election_timeout_ms: (min_ms, max_ms),
            heartbeat_ms: (min_ms / 5).max(1),
            deaths,
            manner: Manner::Killed,
            fast: true,
        }
    }
}

/// The downtime of one failure.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// From the signal until a replica accepted the participant's session.
    pub logged_on: Duration,
    /// From the signal until the participant got an answer from it.
    pub acknowledged: Duration,
}

/// Lays out a cluster in `dir`, which should be empty, and lets its leaders die. `program` is the file of `walras`.
pub fn failover(program: &Path, dir: &Path, options: &FailoverOptions) -> Result<Vec<Death>, LoadError> {
    let mut local = LocalCluster::prepare(program, dir, &layout(options)).map_err(load_error)?;
    for id in 1..=u64::from(options.replicas) {
        local.start(id).map_err(load_error)?;
    }
    local.wait_for_leader(PATIENCE).map_err(load_error)?;
    let mut trader = Trader::enter(&local, options.manner)?;
    let mut deaths = Vec::new();
    let mut missed = 0;
    while deaths.len() < options.deaths as usize {
        match kill_one(&mut local, &mut trader, options)? {
            Some(death) => deaths.push(death),
            None => missed += 1,
        }
        if missed > options.deaths {
            return Err(LoadError::Cluster(
                "leadership moves on by itself more often than not: wait longer for signs of life, or on a machine that does less"
                    .to_owned(),
            ));
        }
    }
    local.stop().map_err(load_error)?;
    Ok(deaths)
}

fn load_error(error: LocalError) -> LoadError {
    LoadError::Cluster(error.to_string())
}

fn layout(options: &FailoverOptions) -> LocalOptions {
    let number = |n: u64| toml::Value::Integer(n.cast_signed());
    let (min, max) = options.election_timeout_ms;
    let mut settings = vec![
        ("cluster", "heartbeat_ms", number(options.heartbeat_ms)),
        ("cluster", "election_timeout_min_ms", number(min)),
        ("cluster", "election_timeout_max_ms", number(max)),
        ("cluster", "fast_fail_over", toml::Value::Boolean(options.fast)),
    ];
    for key in ["requests_per_second", "burst", "source_requests_per_second", "source_burst"] {
        settings.push(("throttle", key, number(1_000_000_000)));
    }
    LocalOptions { replicas: options.replicas, settings, ..LocalOptions::default() }
}

/// `None` when leadership had moved on by itself, so that the one killed was not the leader.
fn kill_one(local: &mut LocalCluster, trader: &mut Trader, options: &FailoverOptions) -> Result<Option<Death>, LoadError> {
    let leader = local.wait_for_leader(PATIENCE).map_err(load_error)?;
    wait_until_even(local)?;
    let into_period_ns = random_u64() % (options.heartbeat_ms * MS);
    trader.trade(USUAL_NS + into_period_ns)?;
    trader.losses = 0;
    let Some(replica) = local.replicas.iter_mut().find(|replica| replica.id == leader) else {
        return Err(LoadError::Cluster(format!("replica {leader} leads and is none of this cluster's")));
    };
    let death_ns = trader.now_ns();
    let served = match options.manner {
        Manner::Killed => {
            replica.signal(Signal::KILL).map_err(load_error)?;
            let served = if trader.is_cut_off()? { Some(trader.until_served_again()?) } else { None };
            replica.wait().map_err(load_error)?;
            local.start(leader).map_err(load_error)?;
            served
        }
        Manner::Silent => {
            replica.signal(Signal::STOP).map_err(load_error)?;
            let served = if trader.is_cut_off()? { Some(trader.until_served_again()?) } else { None };
            replica.signal(Signal::CONT).map_err(load_error)?;
            served
        }
    };
    let since = |moment_ns: u64| Duration::from_nanos(moment_ns.saturating_sub(death_ns));
    Ok(served.map(|(logged_on_ns, acknowledged_ns)| Death { logged_on: since(logged_on_ns), acknowledged: since(acknowledged_ns) }))
}

/// Waits until all replicas have applied the same entries and all are linked with each other. Lost links are dialled again within
/// half a second; a second failure before that would be a different experiment.
fn wait_until_even(local: &LocalCluster) -> Result<(), LoadError> {
    let begun = Instant::now();
    let linked = |said: &Value| {
        let rows = said["replicas"].as_array().map_or(&[][..], Vec::as_slice);
        rows.len() == local.replicas.len() && rows.iter().all(|row| row["is_linked"] == true)
    };
    loop {
        let said: Vec<Option<Value>> = local.replicas.iter().map(|replica| local.status(replica.id)).collect();
        let index = |said: &Option<Value>| said.as_ref().map(|said| said["log_index"].clone());
        if said.iter().all(|one| one.as_ref().is_some_and(linked) && index(one) == index(&said[0])) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(LoadError::Cluster("a replica that was started again does not catch up: see its replica.log".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(2)); // pause: other processes catch up
    }
}

/// A participant with one order on its way at most.
struct Trader {
    client: SessionClient,
    stream: Option<TcpStream>,
    account: AccountId,
    next_id: u64,
    /// The last order, until it is cancelled.
    open: Option<ClientOrderId>,
    order_due_ns: u64,
    losses: u32,
    /// Since the connection was lost last.
    logged_on_ns: Option<u64>,
    answered_ns: Option<u64>,
    ended: Option<String>,
    begun: Instant,
    epoch_ns: u64,
    buffer: Vec<u8>,
}

impl Trader {
    /// Makes a market and an account in it.
    fn enter(local: &LocalCluster, manner: Manner) -> Result<Self, LoadError> {
        let key = read_key(&local.operator_key())?;
        let clients: Vec<Client> = local.replicas.iter().map(|replica| Client::new(&replica.url(), Some(key.clone()))).collect();
        // The leader, which knows at once what the command before did.
        let leader = local.wait_for_leader(PATIENCE).map_err(load_error)?;
        let place = local.replicas.iter().position(|replica| replica.id == leader).unwrap_or(0);
        let post = |path: &str, body: Value| clients[place].signed("POST", path, Some(&body)).map(|_| ());
        post("/v1/admin/assets", json!({"symbol": "BTC", "decimals": 8}))?;
        post("/v1/admin/assets", json!({"symbol": "USD", "decimals": 6}))?;
        let instrument = json!({
            "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
        });
        post("/v1/admin/instruments", instrument)?;
        post("/v1/admin/phases", json!({"instrument": "BTC-USD", "phase": "continuous"}))?;
        post("/v1/admin/accounts", json!({}))?;
        post("/v1/admin/deposits", json!({"account_id": 0, "asset": "USD", "amount": "100000000", "transfer_id": "1"}))?;
        let account = AccountId(0);
        let key = account_key(&clients, account)?;
        let (begun, epoch_ns) = (Instant::now(), now().0);
        let orders = local.replicas.iter().map(|replica| replica.orders.clone()).collect();
        let settings =
            ClientSettings { reports: ReportsWanted::None, retry_delay_ns: RETRY_NS, ..ClientSettings::new(orders, random_u64()) };
        let settings = match manner {
            Manner::Killed => settings,
            Manner::Silent => ClientSettings { logon_timeout_ns: SILENCE_NS, answer_timeout_ns: SILENCE_NS, ..settings },
        };
        let client = SessionClient::new(settings, key, epoch_ns)
            .ok_or_else(|| LoadError::Cluster("the cluster has no order entry".to_owned()))?;
        let mut trader = Self {
            client,
            stream: None,
            account,
            next_id: 1,
            open: None,
            order_due_ns: 0,
            losses: 0,
            logged_on_ns: None,
            answered_ns: None,
            ended: None,
            begun,
            epoch_ns,
            buffer: vec![0; 64 << 10],
        };
        trader.until_served_again()?;
        Ok(trader)
    }

    /// Nanoseconds since the Unix epoch on its own clock, which does not jump.
    fn now_ns(&self) -> u64 {
        self.epoch_ns + u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn trade(&mut self, for_ns: u64) -> Result<(), LoadError> {
        let end_ns = self.now_ns() + for_ns;
        while self.now_ns() < end_ns {
            self.turn(end_ns)?;
        }
        Ok(())
    }

    /// Whether its connection went with the replica that died: closed by the system when the process is gone, or given up for its
    /// silence.
    fn is_cut_off(&mut self) -> Result<bool, LoadError> {
        let give_up_ns = self.now_ns() + 1_000 * MS;
        while self.losses == 0 && self.now_ns() < give_up_ns {
            self.turn(give_up_ns)?;
        }
        Ok(self.losses > 0)
    }

    /// When it was logged on again, and when it had the first answer after that.
    fn until_served_again(&mut self) -> Result<(u64, u64), LoadError> {
        let give_up_ns = self.now_ns() + u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        loop {
            if let (Some(logged_on_ns), Some(answered_ns)) = (self.logged_on_ns, self.answered_ns) {
                return Ok((logged_on_ns, answered_ns));
            }
            if self.now_ns() > give_up_ns {
                return Err(LoadError::Cluster(format!("no replica served the participant again within {PATIENCE:?}")));
            }
            self.turn(give_up_ns)?;
        }
    }

    /// Sends, waits for the next thing to do, `until_ns` at most, and reads.
    fn turn(&mut self, until_ns: u64) -> Result<(), LoadError> {
        let now_ns = self.now_ns();
        self.look_after(now_ns);
        if self.client.is_logged_on() && self.client.unanswered_count() == 0 && now_ns >= self.order_due_ns {
            self.order_due_ns = now_ns + ORDER_EVERY_NS;
            let command = self.next_command();
            self.client.submit(now_ns, &command).map_err(|e| LoadError::Cluster(e.to_string()))?;
        }
        self.write();
        let order_ns = if self.client.is_logged_on() { self.order_due_ns.max(now_ns + 1) } else { u64::MAX };
        let until_ns = until_ns.min(order_ns).min(self.client.deadline_ns().unwrap_or(u64::MAX));
        // A replica that takes the connection and says nothing is left when the clock says so.
        let wait_ns = until_ns.saturating_sub(now_ns).clamp(1, 100 * MS);
        let mut fds: Vec<PollFd<'_>> = self.stream.iter().map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait_ns.cast_signed() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(LoadError::Cluster(format!("waiting for a socket: {e}"))),
        }
        self.read();
        self.ended.take().map_or(Ok(()), |why| Err(LoadError::Cluster(why)))
    }

    /// An order that trades with nothing, or the cancel of the one before.
    fn next_command(&mut self) -> Command {
        let (account, instrument) = (self.account, InstrumentId(0));
        if let Some(client_order_id) = self.open.take() {
            return Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }));
        }
        let client_order_id = ClientOrderId(self.next_id);
        self.next_id += 1;
        self.open = Some(client_order_id);
        let price = PriceTicks::new(119_000).expect("a price like any");
        let terms = OrderTerms::limit(Side::Buy, price, SizeLots::new(1));
        Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
    }

    fn look_after(&mut self, now_ns: u64) {
        let mut ended = None;
        self.client.on_timer(now_ns, &mut |event| {
            if let ClientEvent::Ended(error) = event {
                ended = Some(error.to_string());
            }
        });
        self.ended = self.ended.take().or(ended);
        match self.client.wish(now_ns) {
            Wish::Wait => {}
            Wish::Close => self.lose(),
            Wish::Connect(address) => {
                let stream = connect(address);
                self.client.on_connecting();
                match stream {
                    Ok(stream) => {
                        self.client.on_connected(now_ns, &random_bytes());
                        self.stream = Some(stream);
                    }
                    Err(_) => self.client.on_disconnected(now_ns),
                }
            }
        }
    }

    fn lose(&mut self) {
        let now_ns = self.now_ns();
        (self.stream, self.logged_on_ns, self.answered_ns) = (None, None, None);
        self.losses += 1;
        self.client.on_disconnected(now_ns);
    }

    fn write(&mut self) {
        while let Some(stream) = &mut self.stream
            && !self.client.output().is_empty()
        {
            match stream.write(self.client.output()) {
                Ok(len) => self.client.consume(len),
                // A few bytes at a time: what does not fit goes with the next turn.
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.lose(),
            }
        }
    }

    fn read(&mut self) {
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut self.buffer) {
                Ok(0) => self.lose(),
                Ok(len) => {
                    let now_ns = self.now_ns();
                    let Self { client, buffer, logged_on_ns, answered_ns, ended, .. } = self;
                    client.on_bytes(now_ns, &buffer[..len], &mut |event| match event {
                        ClientEvent::LoggedOn { .. } => *logged_on_ns = Some(now_ns),
                        ClientEvent::Answer { .. } if logged_on_ns.is_some() => {
                            answered_ns.get_or_insert(now_ns);
                        }
                        ClientEvent::Ended(error) => *ended = Some(error.to_string()),
                        ClientEvent::Answer { .. }
                        | ClientEvent::Report { .. }
                        | ClientEvent::ReportsMissing { .. }
                        | ClientEvent::Late { .. }
                        | ClientEvent::Disconnected { .. } => {}
                    });
                    if matches!(self.client.wish(now_ns), Wish::Close) {
                        self.lose();
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.lose(),
            }
        }
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(|_| ErrorKind::InvalidInput)?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
