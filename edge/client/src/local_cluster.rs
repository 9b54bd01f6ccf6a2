//! A whole cluster on one machine: one process per replica, on loopback, with its own keys. For trials, tests and measurements; a
//! cluster that must survive the loss of a machine needs several.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use walras_access::{Access, AccessError, Clock, OperatorKeyError, Rates, Start, generate, now, operator_key_file, write_secret};
use walras_consensus::ReplicaId;
use walras_gateway::{Algorithm, Permission};
use walras_peer_link::keys;
use walras_types::TimeNs;

use crate::http::Client;

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A file or a process.
    #[error("{what}: {source}; check the folder given with --dir and its disk")]
    Io {
        /// The attempted operation.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The links' keys.
    #[error(transparent)]
    Keys(#[from] keys::KeysError),
    /// The operator's key.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The operator's key, likewise.
    #[error(transparent)]
    OperatorKey(#[from] OperatorKeyError),
    /// No free ports.
    #[error("no {0} ports next to each other are free on 127.0.0.1: name another first one with --port")]
    Ports(u16),
    /// A port that the cluster was to have cannot be had.
    #[error(
        "could not listen on 127.0.0.1:{port}: {source}; the cluster needs the ports {first} to {last}: give another --port, or none \
         for free ones"
    )]
    Taken {
        /// The port.
        port: u16,
        /// The first port of the cluster.
        first: u16,
        /// The last one.
        last: u16,
        /// The system's error.
        source: std::io::Error,
    },
    /// The cluster's ports end above the last one that there is.
    #[error("the cluster needs {count} ports, and from {first} on there are fewer: give a lower --port, or none for free ones")]
    TooHigh {
        /// The first port.
        first: u16,
        /// How many it needs.
        count: u16,
    },
    /// A replica, gateway or relay ended at once.
    #[error("{what} {id} did not start, and its log {} ends with: {said}", log.display())]
    NotStarted {
        /// Which of them.
        what: &'static str,
        /// Its id.
        id: u64,
        /// The last line of its log.
        said: String,
        /// Its log file.
        log: PathBuf,
    },
    /// No replica leads.
    #[error("no replica leads after {0:?}: see the files replica.log under --dir")]
    NoLeader(Duration),
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> LocalError {
    let what = what.into();
    move |source| LocalError::Io { what, source }
}

/// Options of a local cluster. The default is three replicas on free ports, and nothing else.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// How many replicas.
    pub replicas: u16,
    /// The first of its ports; 0 looks for free ones. Replicas and gateways have three each, and two more with FIX, relays have one.
    pub first_port: u16,
    /// Replicas that are configured but not members at the start.
    pub later: u16,
    /// Leaf gateways below the replicas.
    pub gateways: u16,
    /// Relays of market data between the replicas and the gateways: at most as many as gateways.
    pub relays: u16,
    /// Whether replicas and gateways speak FIX: orders, and market data where they have it.
    pub fix: bool,
    /// Further keys of the configuration: section, key, value.
    pub settings: Vec<(&'static str, &'static str, toml::Value)>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { replicas: 3, first_port: 0, later: 0, gateways: 0, relays: 0, fix: false, settings: Vec::new() }
    }
}

/// The range of ports to try, below the system's ephemeral ports.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// The id of the first gateway, which is greater than those of all replicas.
pub const FIRST_GATEWAY: u64 = 101;

/// The number of the first relay.
pub const FIRST_RELAY: u64 = 1_001;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Replica,
    Gateway,
    Relay,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Gateway => "gateway",
            Self::Relay => "relay",
        }
    }
}

/// One replica, gateway or relay, running or not.
#[derive(Debug)]
pub struct LocalReplica {
    /// Its id.
    pub id: u64,
    role: Role,
    /// Its folder: `walras.toml`, `data/`, `replica.log`. Relays have one folder together.
    pub dir: PathBuf,
    /// Its HTTP address.
    pub http: String,
    /// Its address for binary order entry.
    pub orders: String,
    /// Its address for orders by FIX, if it takes them.
    pub fix: Option<String>,
    /// Its address for market data by FIX, if it has that.
    pub fix_market_data: Option<String>,
    child: Option<Child>,
}

impl LocalReplica {
    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The file of what it says.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        match self.role {
            Role::Replica | Role::Gateway => self.dir.join("replica.log"),
            Role::Relay => self.dir.join(format!("relay-{}.log", self.id)),
        }
    }

    /// The address of its HTTP server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Whether its process is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Its process.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends its process a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), LocalError> {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        pid.map_or(Ok(()), |pid| {
            kill_process(pid, signal).map_err(|e| io(format!("could not signal replica {}", self.id))(e.into()))
        })
    }

    /// Waits until its process has ended; its exit status.
    pub fn wait(&mut self) -> Result<Option<i32>, LocalError> {
        let Some(mut child) = self.child.take() else { return Ok(None) };
        let status = child.wait().map_err(io(format!("could not wait for replica {}", self.id)))?;
        Ok(status.code())
    }

    /// Whether its process has ended by itself; its exit status then.
    pub fn has_ended(&mut self) -> Option<Option<i32>> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status.code())
    }
}

/// The cluster.
#[derive(Debug)]
pub struct LocalCluster {
    program: PathBuf,
    dir: PathBuf,
    /// Replica 1 first.
    pub replicas: Vec<LocalReplica>,
    /// The gateways, of which [`FIRST_GATEWAY`] is the first.
    pub gateways: Vec<LocalReplica>,
    /// The relays, of which [`FIRST_RELAY`] is the first.
    pub relays: Vec<LocalReplica>,
}

impl LocalCluster {
    /// Makes a cluster in `dir`. If there is one already, uses that and ignores `options`. `program` is the program's file.
    pub fn prepare(program: &Path, dir: &Path, options: &LocalOptions) -> Result<Self, LocalError> {
        let count = options.replicas + options.later;
        let place = |id: u16| dir.join(format!("replica-{id}"));
        if !place(1).join("walras.toml").exists() {
            lay_out(dir, options)?;
        }
        let (mut replicas, mut gateways) = (Vec::new(), Vec::new());
        let all = (1..=count).map(|id| (Role::Replica, u64::from(id), place(id)));
        for (role, id, dir) in all.chain(places_of_gateways(dir, options)) {
            let path = dir.join("walras.toml");
            let text = std::fs::read_to_string(&path).map_err(io(format!("could not read {}", path.display())))?;
            let table: toml::Table = text.parse().unwrap_or_default();
            let address = |section: &str, key: &str| Some(table.get(section)?.get(key)?.as_str()?.to_owned());
            let listen = |section: &str| address(section, "listen").unwrap_or_default();
            let process = LocalReplica {
                id,
                role,
                dir,
                http: listen("http"),
                orders: listen("order_entry"),
                fix: address("fix", "listen"),
                fix_market_data: address("fix", "market_data_listen"),
                child: None,
            };
            match role {
                Role::Replica => replicas.push(process),
                Role::Gateway => gateways.push(process),
                Role::Relay => {}
            }
        }
        let relay = |id: u64| LocalReplica {
            id,
            role: Role::Relay,
            dir: dir.join("relays"),
            http: String::new(),
            orders: String::new(),
            fix: None,
            fix_market_data: None,
            child: None,
        };
        let relays = (FIRST_RELAY..).take(options.relays.into()).map(relay).collect();
        Ok(Self { program: program.to_path_buf(), dir: dir.to_path_buf(), replicas, gateways, relays })
    }

    /// File of the operator's key, which all replicas know.
    #[must_use]
    pub fn operator_key(&self) -> PathBuf {
        operator_key_file(&self.dir)
    }

    /// The file of the relay tree, where there is one.
    #[must_use]
    pub fn tree(&self) -> PathBuf {
        self.dir.join("relays").join("tree.toml")
    }

    /// Starts a replica, a gateway or a relay, and returns once it serves.
    pub fn start(&mut self, id: u64) -> Result<(), LocalError> {
        let program = &self.program;
        let tree = self.tree();
        let mut all = self.replicas.iter_mut().chain(&mut self.gateways).chain(&mut self.relays);
        let Some(replica) = all.find(|replica| replica.id == id) else { return Ok(()) };
        let log_path = replica.log();
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(&log_path);
        let log = opened.map_err(io(format!("could not write {}", log_path.display())))?;
        let mut command = Command::new(program);
        match replica.role {
            Role::Replica => command.arg("serve").arg("--config").arg(replica.dir.join("walras.toml")),
            Role::Gateway => command.arg("gateway").arg("--config").arg(replica.dir.join("walras.toml")),
            Role::Relay => {
                let place = (id - FIRST_RELAY).to_string();
                command.args(["relay", "--layer", "0", "--place", &place]).arg("--tree").arg(tree)
            }
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(io(format!("could not start {}", program.display())))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        replica.child = Some(child);
        if matches!(read, Some(Ok(len)) if len > 0) {
            return Ok(());
        }
        replica.wait()?;
        Err(LocalError::NotStarted { what: replica.role.name(), id, said: last_line(&log_path), log: log_path })
    }

    /// Replicas that are started from now on run this program.
    pub fn set_program(&mut self, program: &Path) {
        self.program = program.to_path_buf();
    }

    /// A replica's view of the cluster.
    #[must_use]
    pub fn status(&self, id: u64) -> Option<Value> {
        let replica = self.replicas.iter().find(|replica| replica.id == id && replica.is_running())?;
        Client::new(&replica.url(), None).get("/v1/cluster").ok()
    }

    /// The replica that takes commands now.
    #[must_use]
    pub fn leader(&self) -> Option<u64> {
        self.replicas
            .iter()
            .map(|replica| replica.id)
            .find(|id| self.status(*id).is_some_and(|said| said["takes_commands"] == true))
    }

    /// Waits until one takes commands.
    pub fn wait_for_leader(&self, patience: Duration) -> Result<u64, LocalError> {
        let begun = Instant::now();
        loop {
            if let Some(leader) = self.leader() {
                return Ok(leader);
            }
            if begun.elapsed() > patience {
                return Err(LocalError::NoLeader(patience));
            }
            std::thread::sleep(Duration::from_millis(5)); // pause: other processes have an election
        }
    }

    /// Waits until all replicas have applied the same entry. Returns that entry, or each replica's at the timeout.
    pub fn wait_for_equal(&self, patience: Duration) -> Result<u64, Vec<u64>> {
        let begun = Instant::now();
        loop {
            let said = self.replicas.iter().filter_map(|replica| self.status(replica.id));
            let entries: Vec<u64> = said.filter_map(|said| said["log_index"].as_str()?.parse().ok()).collect();
            if let Some(first) = entries.first()
                && entries.len() == self.replicas.len()
                && entries.iter().all(|entry| entry == first)
            {
                return Ok(*first);
            }
            if begun.elapsed() > patience {
                return Err(entries);
            }
            std::thread::sleep(Duration::from_millis(20)); // pause: other processes have to catch up
        }
    }

    /// Stops all running replicas in an orderly way.
    pub fn stop(&mut self) -> Result<(), LocalError> {
        for replica in self.relays.iter().chain(&self.gateways).chain(&self.replicas) {
            replica.signal(Signal::CONT)?;
            replica.signal(Signal::TERM)?;
        }
        for replica in self.relays.iter_mut().chain(&mut self.gateways).chain(&mut self.replicas) {
            replica.wait()?;
        }
        Ok(())
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        for replica in self.relays.iter_mut().chain(&mut self.gateways).chain(&mut self.replicas) {
            if let Some(child) = &mut replica.child {
                // The owner dropped it without stopping it.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// What a process wrote last.
fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}

fn lay_out(dir: &Path, options: &LocalOptions) -> Result<(), LocalError> {
    let count = options.replicas + options.later;
    let ports = Ports::of(options)?;
    std::fs::create_dir_all(dir).map_err(io(format!("could not make {}", dir.display())))?;
    // As is usual for those that are made with it.
    let cluster_id = now().0 | 1;
    let keys_dir = dir.join("keys");
    keys::make(&keys_dir, cluster_id >> 1, count.into())?;
    let tree = dir.join("relays").join("tree.toml");
    if options.relays > 0 {
        lay_out_tree(&tree, ports, options)?;
    }
    let peer = |id: u16| {
        let [links, http, orders] =
            [ReplicaPort::Links, ReplicaPort::Http, ReplicaPort::Orders].map(|port| ports.replica(port, id));
        format!("{id}={links} http={http} orders={orders}")
    };
    let peers: Vec<String> = (1..=count).map(peer).collect();
    for id in 1..=count {
        let place = dir.join(format!("replica-{id}"));
        let data = place.join("data");
        std::fs::create_dir_all(&data).map_err(io(format!("could not make {}", data.display())))?;
        let mut table = toml::Table::new();
        let mut set = |section: &str, key: &str, value: toml::Value| {
            let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
            if let Some(section) = section.as_table_mut() {
                section.insert(key.to_owned(), value);
            }
        };
        let number = |n: u64| toml::Value::Integer(n.cast_signed());
        set("venue", "data", data.display().to_string().into());
        set("http", "listen", ports.replica(ReplicaPort::Http, id).into());
        set("order_entry", "listen", ports.replica(ReplicaPort::Orders, id).into());
        set("cluster", "listen", ports.replica(ReplicaPort::Links, id).into());
        if options.fix {
            set("fix", "listen", ports.replica(ReplicaPort::Fix, id).into());
            set("fix", "market_data_listen", ports.replica(ReplicaPort::FixMarketData, id).into());
        }
        set("cluster", "replica", number(id.into()));
        set("cluster", "cluster_id", number(cluster_id >> 1));
        set("cluster", "keys", keys_dir.display().to_string().into());
        set("cluster", "peers", peers.clone().into());
        if options.gateways > 0 {
            set("cluster", "gateways", gateway_ids(options).map(number).collect::<Vec<_>>().into());
        }
        set("cluster", "genesis", (1..=options.replicas).map(|id| number(id.into())).collect::<Vec<_>>().into());
        if options.relays > 0 {
            set("feed", "tree", tree.display().to_string().into());
            set("feed", "source", "127.0.0.1:0".into());
            set("feed", "requests", ports.replica(ReplicaPort::Orders, id).into());
        }
        for (section, key, value) in &options.settings {
            set(section, key, value.clone());
        }
        let path = place.join("walras.toml");
        std::fs::write(&path, table.to_string()).map_err(io(format!("could not write {}", path.display())))?;
    }
    for (at, (_, id, place)) in (0..).zip(places_of_gateways(dir, options)) {
        keys::add(&keys_dir, ReplicaId::new(id).expect("it is not 0"))?;
        lay_out_gateway(&place, (id, cluster_id >> 1), (&keys_dir, &peers), (ports, at, &tree), options)?;
    }
    operator(dir, count)
}

fn gateway_ids(options: &LocalOptions) -> impl Iterator<Item = u64> {
    (FIRST_GATEWAY..).take(options.gateways.into())
}

fn places_of_gateways(dir: &Path, options: &LocalOptions) -> impl Iterator<Item = (Role, u64, PathBuf)> {
    gateway_ids(options).map(|id| (Role::Gateway, id, dir.join(format!("gateway-{id}"))))
}

/// The tree's file and key: the relays, then the gateways.
fn lay_out_tree(tree: &Path, ports: Ports, options: &LocalOptions) -> Result<(), LocalError> {
    let list = |count: u16, of: &dyn Fn(u16) -> String| {
        let all: Vec<String> = (0..count).map(|at| format!("\"{}\"", of(at))).collect();
        all.join(", ")
    };
    let relays = list(options.relays, &|at| ports.relay(at));
    let gateways = list(options.gateways, &|at| ports.gateway(GatewayPort::MarketData, at));
    let hedge = u32::from(options.relays > 1);
    write_tree(tree, 1, hedge, &format!("layers = [[{relays}], [{gateways}]]"))
}

fn write_tree(path: &Path, number: u32, hedge: u32, layers: &str) -> Result<(), LocalError> {
    let written = |path: &Path| io(format!("could not write {}", path.display()));
    let (dir, key) = (path.parent().unwrap_or(path), path.with_extension("key"));
    std::fs::create_dir_all(dir).map_err(io(format!("could not make {}", dir.display())))?;
    let digits: String = walras_access::random_bytes::<32>().iter().map(|byte| format!("{byte:02x}")).collect();
    write_secret(&key, digits.as_bytes())?;
    let key_name = key.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    std::fs::write(path, format!("tree = {number}\nhedge = {hedge}\nkey_file = \"{key_name}\"\n{layers}\n")).map_err(written(path))
}

/// The folder and the configuration of a gateway. It stamps as the replicas do, and throttles as they do. Replicas ignore the section
/// `[gateway]`.
fn lay_out_gateway(
    place: &Path,
    (id, cluster_id): (u64, u64),
    (keys_dir, peers): (&Path, &[String]),
    (ports, at, tree): (Ports, u16, &Path),
    options: &LocalOptions,
) -> Result<(), LocalError> {
    let data = place.join("data");
    std::fs::create_dir_all(&data).map_err(io(format!("could not make {}", data.display())))?;
    let number = |n: u64| toml::Value::Integer(n.cast_signed());
    let keys_dir = keys_dir.display().to_string();
    let own: [(&str, &str, toml::Value); 6] = [
        ("venue", "data", data.display().to_string().into()),
        ("gateway", "id", number(id)),
        ("order_entry", "listen", ports.gateway(GatewayPort::Orders, at).into()),
        ("cluster", "cluster_id", number(cluster_id)),
        ("cluster", "keys", keys_dir.into()),
        ("cluster", "peers", peers.to_vec().into()),
    ];
    let shared = ["fair_access", "throttle", "http", "fix", "gateway"];
    let settings = options.settings.iter().filter(|(section, ..)| shared.contains(section)).cloned();
    let mut table = toml::Table::new();
    let mut of_fix = Vec::new();
    if options.fix {
        of_fix.push(("fix", "listen", ports.gateway(GatewayPort::Fix, at).into()));
    }
    if options.fix && options.relays > 0 {
        of_fix.push(("fix", "market_data_listen", ports.gateway(GatewayPort::FixMarketData, at).into()));
    }
    let mut of_feed = Vec::new();
    if options.relays > 0 {
        let participants = place.join("participants.toml");
        let layers = format!("layers = [[\"{}\"]]", ports.gateway(GatewayPort::Participant, at));
        write_tree(&participants, 2 + u32::from(at), 0, &layers)?;
        let of_replicas: Vec<String> = (1..=ports.replicas).map(|id| ports.replica(ReplicaPort::Orders, id)).collect();
        of_feed = vec![
            ("gateway", "requests", ports.gateway(GatewayPort::Orders, at).into()),
            ("gateway", "venue_requests", of_replicas.into()),
            ("gateway", "tree", tree.display().to_string().into()),
            ("gateway", "place", number(at.into())),
            ("gateway", "participants", participants.display().to_string().into()),
            ("gateway", "source", "127.0.0.1:0".into()),
        ];
    }
    for (section, key, value) in own.into_iter().chain(of_feed).chain(of_fix).chain(settings) {
        if let Some(section) = table.entry(section).or_insert_with(|| toml::Table::new().into()).as_table_mut() {
            section.insert(key.to_owned(), value);
        }
    }
    let path = place.join("walras.toml");
    std::fs::write(&path, table.to_string()).map_err(io(format!("could not write {}", path.display())))
}

/// Makes an operator's key known to all replicas, because each stores its own keys.
fn operator(dir: &Path, count: u16) -> Result<(), LocalError> {
    let data = |id: u16| dir.join(format!("replica-{id}")).join("data");
    let start = Start { started: now(), log_time: TimeNs(0) };
    let access = Access::open(&data(1), Rates::OFFLINE, Clock::system(), start)?;
    let key = generate(Algorithm::Ed25519);
    write_secret(&operator_key_file(dir), format!("{}\n", key.to_token().as_str()).as_bytes())?;
    let operator = [Permission::Operator].into_iter().collect();
    access.add(key.record(None, operator).map_err(OperatorKeyError::from)?).map_err(OperatorKeyError::Refused)?;
    for id in 2..=count {
        let text = std::fs::read(data(1).join(Access::FILE)).map_err(io("could not read the keys of replica 1"))?;
        write_secret(&data(id).join(Access::FILE), &text)?;
    }
    Ok(())
}

/// What a port of a replica is for. Each use has a group of ports, one of each replica.
#[derive(Clone, Copy, Debug)]
enum ReplicaPort {
    Http,
    /// By TCP; by UDP with the same number requests for messages of the feed.
    Orders,
    Links,
    Fix,
    FixMarketData,
}

/// What a port of a gateway is for, likewise.
#[derive(Clone, Copy, Debug)]
enum GatewayPort {
    /// Likewise.
    Orders,
    /// Where market data comes.
    MarketData,
    /// Where the gateway's one participant receives it.
    Participant,
    Fix,
    FixMarketData,
}

/// The cluster's ports: the groups of the replicas, then those of the gateways, then the relays.
#[derive(Clone, Copy, Debug)]
struct Ports {
    first: u16,
    /// In a group of the replicas.
    replicas: u16,
    /// In a group of the gateways.
    gateways: u16,
    relays: u16,
    /// Groups of the replicas, and as many of the gateways: those of FIX are the last two.
    groups: u16,
}

impl Ports {
    /// On ports that are free now: from the first one that is asked for, or anywhere where none is.
    fn of(options: &LocalOptions) -> Result<Self, LocalError> {
        let ports = Self::beginning_with(options.first_port, options);
        let count = ports.count();
        if ports.first == 0 {
            return Ok(Self { first: free_ports(count)?, ..ports });
        }
        let first = ports.first;
        let last = first.checked_add(count - 1).ok_or(LocalError::TooHigh { first, count })?;
        for port in first..=last {
            check_free(port).map_err(|source| LocalError::Taken { port, first, last, source })?;
        }
        Ok(ports)
    }

    fn beginning_with(first: u16, options: &LocalOptions) -> Self {
        let LocalOptions { replicas, later, gateways, relays, fix, .. } = *options;
        Self { first, replicas: replicas + later, gateways, relays, groups: if fix { 5 } else { 3 } }
    }

    fn count(self) -> u16 {
        self.groups * (self.replicas + self.gateways) + self.relays
    }

    fn address(self, offset: u16) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.first + offset)
    }

    /// Of the replica with this id; the first one is 1.
    fn replica(self, port: ReplicaPort, id: u16) -> String {
        self.address(port as u16 * self.replicas + id - 1)
    }

    /// Of the gateway at this place; the first one is 0.
    fn gateway(self, port: GatewayPort, at: u16) -> String {
        self.address(self.groups * self.replicas + port as u16 * self.gateways + at)
    }

    /// Likewise.
    fn relay(self, at: u16) -> String {
        self.address(self.groups * (self.replicas + self.gateways) + at)
    }
}

/// Whether nothing listens on a port: most are for TCP, those of market data for UDP.
fn check_free(port: u16) -> std::io::Result<()> {
    let address = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(address)?;
    UdpSocket::bind(address)?;
    Ok(())
}

/// The first of `count` consecutive free ports.
fn free_ports(count: u16) -> Result<u16, LocalError> {
    let span = u64::from(PORTS.end - PORTS.start - count);
    let start = u16::try_from(walras_access::random_u64() % span).unwrap_or(0);
    let firsts = (PORTS.start + start..PORTS.end - count).chain(PORTS.start..PORTS.start + start).step_by(usize::from(count));
    for first in firsts {
        if (first..first + count).all(|port| check_free(port).is_ok()) {
            return Ok(first);
        }
    }
    Err(LocalError::Ports(count))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Replicas, replicas that come later, gateways, relays.
    fn options((replicas, later, gateways, relays): (u16, u16, u16, u16), fix: bool) -> LocalOptions {
        LocalOptions { replicas, later, gateways, relays, fix, ..LocalOptions::default() }
    }

    /// Where all listen, whatever for.
    fn addresses(ports: Ports) -> Vec<String> {
        let of_replicas =
            [ReplicaPort::Http, ReplicaPort::Orders, ReplicaPort::Links, ReplicaPort::Fix, ReplicaPort::FixMarketData];
        let of_gateways =
            [GatewayPort::Orders, GatewayPort::MarketData, GatewayPort::Participant, GatewayPort::Fix, GatewayPort::FixMarketData];
        let (groups, mut all) = (usize::from(ports.groups), Vec::new());
        for port in of_replicas.into_iter().take(groups) {
            all.extend((1..=ports.replicas).map(|id| ports.replica(port, id)));
        }
        for port in of_gateways.into_iter().take(groups) {
            all.extend((0..ports.gateways).map(|at| ports.gateway(port, at)));
        }
        all.extend((0..ports.relays).map(|at| ports.relay(at)));
        all
    }

    #[test]
    fn no_two_ports_are_the_same_and_all_are_counted() {
        for shape in [(1, 0, 0, 0), (3, 0, 0, 0), (3, 2, 0, 0), (3, 0, 5, 2), (7, 0, 64, 64)] {
            for has_fix in [false, true] {
                let ports = Ports::beginning_with(15_000, &options(shape, has_fix));
                let all = addresses(ports);
                let expected: BTreeSet<String> = (0..ports.count()).map(|offset| ports.address(offset)).collect();
                assert_eq!(all.len(), expected.len(), "{shape:?}");
                assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), expected, "{shape:?}");
            }
        }
    }

    #[test]
    fn a_port_that_is_taken_is_named_and_nothing_is_laid_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cluster");
        let refused = |first_port: u16| {
            let options = LocalOptions { first_port, ..options((1, 0, 1, 1), true) };
            let refused = LocalCluster::prepare(Path::new("walras"), &folder, &options).unwrap_err().to_string();
            assert!(!folder.exists(), "another --port can be given");
            refused
        };
        let others = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for port in [others.0.local_addr().unwrap().port(), others.1.local_addr().unwrap().port()] {
            // Eleven, unless fewer are left.
            let says = if port <= u16::MAX - 10 { format!("127.0.0.1:{port}: ") } else { "a lower --port".to_owned() };
            let said = refused(port);
            assert!(said.contains(&says) && said.contains("--port"), "{said}");
        }
        let said = refused(u16::MAX - 3);
        assert!(said.contains("11 ports") && said.contains("a lower --port"), "{said}");
    }

    #[test]
    fn with_fix_replicas_and_gateways_have_ports_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let laid_out = LocalCluster::prepare(Path::new("walras"), dir.path(), &options((2, 0, 1, 1), true)).unwrap();
        let first: u16 = laid_out.replicas[0].http.rsplit_once(':').unwrap().1.parse().unwrap();
        let ports = Ports::beginning_with(first, &options((2, 0, 1, 1), true));
        let fix = |of: &LocalReplica| [of.fix.clone().unwrap(), of.fix_market_data.clone().unwrap()];
        for replica in &laid_out.replicas {
            let id = u16::try_from(replica.id).unwrap();
            assert_eq!(fix(replica), [ReplicaPort::Fix, ReplicaPort::FixMarketData].map(|port| ports.replica(port, id)));
        }
        let gateway = [GatewayPort::Fix, GatewayPort::FixMarketData].map(|port| ports.gateway(port, 0));
        assert_eq!(fix(&laid_out.gateways[0]), gateway);
    }

    #[test]
    fn without_relays_a_gateway_takes_orders_by_fix_and_has_no_market_data() {
        let dir = tempfile::tempdir().unwrap();
        let laid_out = LocalCluster::prepare(Path::new("walras"), dir.path(), &options((1, 0, 1, 0), true)).unwrap();
        let gateway = &laid_out.gateways[0];
        assert!(gateway.fix.is_some() && gateway.fix_market_data.is_none(), "{gateway:?}");
        let dir = tempfile::tempdir().unwrap();
        let laid_out = LocalCluster::prepare(Path::new("walras"), dir.path(), &options((1, 0, 1, 0), false)).unwrap();
        let mut processes = laid_out.replicas.iter().chain(&laid_out.gateways);
        assert!(processes.all(|process| process.fix.is_none() && process.fix_market_data.is_none()));
    }

    #[test]
    fn a_process_that_ends_at_once_is_reported_with_what_it_said_last() {
        let dir = tempfile::tempdir().unwrap();
        let program = Path::new("/bin/sh");
        let mut cluster = LocalCluster::prepare(program, dir.path(), &options((1, 0, 0, 0), false)).unwrap();
        // A shell has no file `serve`, and says so.
        let refused = cluster.start(1).unwrap_err();
        assert!(matches!(&refused, LocalError::NotStarted { id: 1, said, .. } if said.contains("serve")), "{refused}");
        assert!(refused.to_string().starts_with("replica 1 did not start"), "{refused}");
    }
}
