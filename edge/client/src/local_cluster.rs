//! A whole cluster on one machine: one process per replica, on loopback, with its own keys. For trials, tests and measurements; a
//! cluster that must survive the loss of a machine needs several.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
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
    /// A replica ended at once.
    #[error("replica {id} did not start: see {}", log.display())]
    NotStarted {
        /// The replica.
        id: u64,
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

/// Options of a local cluster.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// How many replicas.
    pub replicas: u16,
    /// The first of its ports, three for each replica; 0 looks for free ones.
    pub first_port: u16,
    /// Replicas that are configured but not members at the start.
    pub later: u16,
    /// Leaf gateways below the replicas.
    pub gateways: u16,
    /// Relays of market data between the replicas and the gateways: at most as many as gateways.
    pub relays: u16,
    /// Further keys of the configuration: section, key, value.
    pub settings: Vec<(&'static str, &'static str, toml::Value)>,
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

/// One replica, gateway or relay, running or not.
#[derive(Debug)]
pub struct LocalReplica {
    /// Its id.
    pub id: u64,
    role: Role,
    /// Its folder: `walras.toml`, `data/`, `replica.log`.
    pub dir: PathBuf,
    /// Its HTTP address.
    pub http: String,
    /// Its address for binary order entry.
    pub orders: String,
    child: Option<Child>,
}

impl LocalReplica {
    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
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
            let listen = |section: &str| {
                let address = table.get(section).and_then(|section| section.get("listen"));
                address.and_then(toml::Value::as_str).unwrap_or_default().to_owned()
            };
            let (http, orders) = (listen("http"), listen("order_entry"));
            let process = LocalReplica { id, role, dir, http, orders, child: None };
            match role {
                Role::Replica => replicas.push(process),
                Role::Gateway => gateways.push(process),
                Role::Relay => {}
            }
        }
        let relay = |id: u64| {
            let (http, orders) = (String::new(), String::new());
            LocalReplica { id, role: Role::Relay, dir: dir.join("relays"), http, orders, child: None }
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
        let log_path = match replica.role {
            Role::Replica | Role::Gateway => replica.dir.join("replica.log"),
            Role::Relay => replica.dir.join(format!("relay-{id}.log")),
        };
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
        Err(LocalError::NotStarted { id, log: log_path })
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

fn lay_out(dir: &Path, options: &LocalOptions) -> Result<(), LocalError> {
    let count = options.replicas + options.later;
    let first = match options.first_port {
        0 => free_ports(3 * count + 3 * options.gateways + options.relays)?,
        port => port,
    };
    let at = |offset: u16, id: u16| format!("127.0.0.1:{}", first + offset * count + id - 1);
    std::fs::create_dir_all(dir).map_err(io(format!("could not make {}", dir.display())))?;
    // As is usual for those that are made with it.
    let cluster_id = now().0 | 1;
    let keys_dir = dir.join("keys");
    keys::make(&keys_dir, cluster_id >> 1, count.into())?;
    let ports = GatewayPorts { first: first + 3 * count, gateways: options.gateways };
    let tree = dir.join("relays").join("tree.toml");
    if options.relays > 0 {
        lay_out_tree(&tree, ports, options)?;
    }
    let peers: Vec<String> = (1..=count).map(|id| format!("{id}={} http={} orders={}", at(2, id), at(0, id), at(1, id))).collect();
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
        set("http", "listen", at(0, id).into());
        set("order_entry", "listen", at(1, id).into());
        set("cluster", "listen", at(2, id).into());
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

/// Ports of gateways and relays, behind those of the replicas.
#[derive(Clone, Copy)]
struct GatewayPorts {
    first: u16,
    gateways: u16,
}

impl GatewayPorts {
    fn at(self, group: u16, at: u16) -> String {
        format!("127.0.0.1:{}", self.first + group * self.gateways + at)
    }

    fn orders(self, at: u16) -> String {
        self.at(0, at)
    }

    /// Where market data comes.
    fn market_data(self, at: u16) -> String {
        self.at(1, at)
    }

    /// Where the gateway's one participant receives it.
    fn participant(self, at: u16) -> String {
        self.at(2, at)
    }

    fn relay(self, at: u16) -> String {
        self.at(3, at)
    }
}

/// The tree's file and key: the relays, then the gateways.
fn lay_out_tree(tree: &Path, ports: GatewayPorts, options: &LocalOptions) -> Result<(), LocalError> {
    let list = |count: u16, of: &dyn Fn(u16) -> String| {
        let all: Vec<String> = (0..count).map(|at| format!("\"{}\"", of(at))).collect();
        all.join(", ")
    };
    let (relays, gateways) = (list(options.relays, &|at| ports.relay(at)), list(options.gateways, &|at| ports.market_data(at)));
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

/// The folder and the configuration of a gateway. It stamps as the replicas do, and throttles as they do.
fn lay_out_gateway(
    place: &Path,
    (id, cluster_id): (u64, u64),
    (keys_dir, peers): (&Path, &[String]),
    (ports, at, tree): (GatewayPorts, u16, &Path),
    options: &LocalOptions,
) -> Result<(), LocalError> {
    let data = place.join("data");
    std::fs::create_dir_all(&data).map_err(io(format!("could not make {}", data.display())))?;
    let number = |n: u64| toml::Value::Integer(n.cast_signed());
    let keys_dir = keys_dir.display().to_string();
    let own: [(&str, &str, toml::Value); 6] = [
        ("venue", "data", data.display().to_string().into()),
        ("gateway", "id", number(id)),
        ("order_entry", "listen", ports.orders(at).into()),
        ("cluster", "cluster_id", number(cluster_id)),
        ("cluster", "keys", keys_dir.into()),
        ("cluster", "peers", peers.to_vec().into()),
    ];
    let shared = ["fair_access", "throttle", "http"];
    let settings = options.settings.iter().filter(|(section, ..)| shared.contains(section)).cloned();
    let mut table = toml::Table::new();
    let mut of_feed = Vec::new();
    if options.relays > 0 {
        let participants = place.join("participants.toml");
        let layers = format!("layers = [[\"{}\"]]", ports.participant(at));
        write_tree(&participants, 2 + u32::from(at), 0, &layers)?;
        of_feed = vec![
            ("gateway", "tree", tree.display().to_string().into()),
            ("gateway", "place", number(at.into())),
            ("gateway", "participants", participants.display().to_string().into()),
            ("gateway", "source", "127.0.0.1:0".into()),
        ];
    }
    for (section, key, value) in own.into_iter().chain(of_feed).chain(settings) {
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

/// The first of `count` consecutive free ports.
fn free_ports(count: u16) -> Result<u16, LocalError> {
    let span = u64::from(PORTS.end - PORTS.start - count);
    let start = u16::try_from(walras_access::random_u64() % span).unwrap_or(0);
    let firsts = (PORTS.start + start..PORTS.end - count).chain(PORTS.start..PORTS.start + start).step_by(usize::from(count));
    for first in firsts {
        let free: Result<Vec<TcpListener>, _> = (first..first + count).map(|port| TcpListener::bind(("127.0.0.1", port))).collect();
        if free.is_ok() {
            return Ok(first);
        }
    }
    Err(LocalError::Ports(count))
}
