//! The besieged: a venue on one machine, or a cluster of three on loopback, as processes with a limit of descriptors.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use walras_access::{now, operator_key_file};
use walras_client::cluster::account_key;
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY, LocalCluster, LocalOptions};
use walras_client::{Client, read_key};
use walras_gateway::ClientKey;
use walras_types::{AccountId, RejectReason};
use walras_wire::order_entry::ByeReason;

use crate::batch::{Batch, SENDERS};
use crate::limits::RECOVERY;
use crate::ports::{Mesh, MorePorts};
use crate::process::Process;
use crate::tree::{self, Ports};

/// What stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One process: a cluster of one, without links.
    Single,
    /// Three replicas, and the links between them.
    Cluster,
    /// The same with fair access, so that every replica lets participants in.
    Fair,
    /// Three replicas, a relay and a leaf gateway, which holds market data for a participant.
    Tree,
}

impl Shape {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Cluster => "cluster",
            Self::Fair => "fair",
            Self::Tree => "tree",
        }
    }
}

/// A replica, or the only process.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its process.
    pub process: Process,
    /// Where it serves HTTP and WebSocket.
    pub http: String,
    /// Where it takes binary orders.
    pub orders: String,
    /// Where it takes orders by FIX.
    pub fix: String,
    /// Where it gives market data by FIX.
    pub fix_data: String,
    /// Where it speaks the Binance dialect.
    pub facade: String,
    /// Where it serves operators alone.
    pub operator: String,
    /// Where its peers reach it; `None` where there are none.
    pub peers: Option<String>,
}

/// A participant.
#[derive(Clone, Debug)]
pub struct Participant {
    /// Its account.
    pub account: AccountId,
    /// Its key, which all replicas know.
    pub key: ClientKey,
}

/// How long after it was made a key expires: long next to the time that this takes.
const EXPIRES_AFTER_NS: u64 = 2_000_000_000;

/// Of a cluster.
const REPLICAS: usize = 3;

#[derive(Debug)]
enum Inner {
    Single(Child),
    Cluster(LocalCluster),
}

/// A venue that runs, with a market and participants.
#[derive(Debug)]
pub struct Venue {
    inner: Inner,
    program: PathBuf,
    dir: PathBuf,
    operator: ClientKey,
    /// The one that takes commands first.
    pub places: Vec<Place>,
    /// So many participants as there are parts.
    pub participants: Vec<Participant>,
    /// Relays and leaf gateways.
    others: Vec<Process>,
    /// Their ports, where there are any.
    pub tree: Option<Ports>,
    /// What measures the replicas' clocks, if anything does.
    pub(crate) mesh: Option<Mesh>,
    /// The batch market, once it is open.
    pub(crate) batch: Option<Batch>,
    /// Keys of the attackers that are good no more: one that was revoked, and one that has expired.
    pub(crate) ended: Vec<ClientKey>,
}

/// Accounts: two of who make the market, one of each service of the well-behaved client, one of FIX, one of the Binance dialect, one of the
/// attackers.
pub const PARTICIPANTS: u32 = 7;
/// All accounts, those of attackers in the batch market included.
pub const ACCOUNTS: u32 = PARTICIPANTS + SENDERS;

impl Venue {
    /// Starts one in a folder, which is emptied first, with at most so many descriptors.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(program: &Path, dir: &Path, shape: Shape, descriptors: Option<u32>) -> anyhow::Result<Self> {
        ensure!(program.is_file(), "{} is not built: cargo build --release -p walras-node", program.display());
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).with_context(|| format!("making {}: is its parent writable?", dir.display()))?;
        let dir = dir.canonicalize()?;
        let program = program.canonicalize()?;
        let limited = limited(&program, &dir, descriptors)?;
        let (mut others, mut tree) = (Vec::new(), None);
        let mesh = if shape == Shape::Cluster { Some(Mesh::new(&dir, REPLICAS)?) } else { None };
        let (inner, places, operator) = match shape {
            Shape::Single => start_single(&limited, &dir)?,
            Shape::Cluster => start_cluster(&limited, &dir, Vec::new(), mesh.as_ref())?,
            Shape::Tree => {
                let started = start_tree(&limited, &dir)?;
                (others, tree) = (started.1, Some(started.2));
                started.0
            }
            Shape::Fair => {
                let number = toml::Value::Integer;
                let fair = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", number(10))];
                start_cluster(&limited, &dir, fair, None)?
            }
        };
        let (participants, batch, ended) = (Vec::new(), None, Vec::new());
        let mut venue = Self { inner, program, dir, operator, places, participants, others, tree, mesh, batch, ended };
        venue.open_market()?;
        Ok(venue)
    }

    /// The operator's client of the one that takes commands.
    #[must_use]
    pub fn operator(&self) -> Client {
        self.client(&self.places[0], &self.operator)
    }

    /// A client of a replica.
    #[must_use]
    pub fn client(&self, place: &Place, key: &ClientKey) -> Client {
        Client::with_patience(&format!("http://{}", place.http), Some(key.clone()), RECOVERY)
    }

    fn open_market(&mut self) -> anyhow::Result<()> {
        let operator = self.operator();
        let post = |path: &str, body: Value| {
            operator.signed("POST", path, Some(&body)).with_context(|| format!("making the market of the campaign: {path}"))
        };
        post("/v1/admin/assets", json!({"symbol": "BTC", "decimals": 8}))?;
        post("/v1/admin/assets", json!({"symbol": "USD", "decimals": 6}))?;
        post(
            "/v1/admin/instruments",
            json!({
                "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001",
                "reference_price": "30000",
            }),
        )?;
        post("/v1/admin/phases", json!({"instrument": "BTC-USD", "phase": "continuous"}))?;
        let clients: Vec<Client> = self.places.iter().map(|place| self.client(place, &self.operator)).collect();
        for account in 0..PARTICIPANTS {
            post("/v1/admin/accounts", json!({}))?;
            for (asset, amount, transfer) in [("USD", "1000000000", "1"), ("BTC", "100000", "2")] {
                let body = json!({"account_id": account, "asset": asset, "amount": amount, "transfer_id": transfer});
                post("/v1/admin/deposits", body)?;
            }
            let account = AccountId(account);
            self.participants.push(Participant { account, key: account_key(&clients, account)? });
        }
        let attackers = self.participants.last().context("participants")?;
        let revoked = account_key(&clients, attackers.account)?;
        operator.signed("DELETE", &format!("/v1/admin/keys/{}", revoked.key_id().as_str()), None).context("revoking a key")?;
        let batch = Batch::prepare(&operator, attackers, PARTICIPANTS)?;
        let expired = self.expired_key(attackers.account)?;
        (self.ended, self.batch) = (vec![revoked, expired], Some(batch));
        clients.iter().try_for_each(wait_for_stamps)?;
        self.wait_for_keys()
    }

    /// A key of an account that has expired at every replica.
    fn expired_key(&self, account: AccountId) -> anyhow::Result<ClientKey> {
        let expires = (now().0 + EXPIRES_AFTER_NS).to_string();
        let body = json!({
            "account_id": account.0, "permissions": ["read", "trade"], "algorithm": "ed25519", "expire_time_ns": expires,
        });
        let made = self.operator().signed("POST", "/v1/admin/keys", Some(&body)).context("making a key that expires")?;
        let key = ClientKey::from_token(made["key"].as_str().context("a key in the answer")?)?;
        for place in &self.places {
            let client = self.client(place, &key);
            walras_wait::within(RECOVERY, || match client.signed("GET", "/v1/account", None) {
                Err(refused) if refused.is(RejectReason::KeyExpired) => Ok(()),
                other => bail!("a key that has expired is not refused for that at {}: {other:?}", place.http),
            })?;
        }
        Ok(key)
    }

    /// Waits until leaf gateways know the participants' keys, which reach them a moment after the replicas.
    fn wait_for_keys(&self) -> anyhow::Result<()> {
        let Inner::Cluster(local) = &self.inner else { return Ok(()) };
        for gateway in &local.gateways {
            let file = gateway.data().join("keys.json");
            walras_wait::within(RECOVERY, || {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let knows = |participant: &Participant| {
                    participant.key.to_token().as_str().split('.').next().is_some_and(|id| text.contains(id))
                };
                ensure!(self.participants.iter().all(knows), "{} does not have all participants' keys", file.display());
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The operator's key.
    #[must_use]
    pub fn operator_key(&self) -> &ClientKey {
        &self.operator
    }

    /// Kills the replica that takes commands and waits until another one does, which is the first of the places then; the dead one's
    /// number, with which [`Venue::start_again`] starts it.
    ///
    /// # Errors
    /// When it is no cluster, or no other replica leads.
    pub fn kill_leader(&mut self) -> anyhow::Result<u64> {
        let Inner::Cluster(local) = &mut self.inner else { bail!("one process alone has nobody to follow it") };
        let leader = local.wait_for_leader(RECOVERY)?;
        let replica = local.replicas.iter_mut().find(|replica| replica.id == leader).context("a leader among the replicas")?;
        replica.signal(Signal::KILL)?;
        replica.wait()?;
        let next = local.wait_for_leader(RECOVERY)?;
        self.places = places(local, next)?;
        Ok(leader)
    }

    /// Starts a replica that was killed, and waits until it lets in whoever signs now; its place.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_again(&mut self, id: u64) -> anyhow::Result<Place> {
        let Inner::Cluster(local) = &mut self.inner else { bail!("one process alone is not started again") };
        local.start(id)?;
        let leader = local.wait_for_leader(RECOVERY)?;
        self.places = places(local, leader)?;
        let http = &local.replicas.iter().find(|replica| replica.id == id).context("a replica of that number")?.http;
        let place = self.places.iter().find(|place| place.http == *http).context("a replica that runs")?.clone();
        wait_for_stamps(&self.client(&place, &self.operator))?;
        Ok(place)
    }

    /// Waits until the batch market has a payment in a block.
    ///
    /// # Errors
    /// When it does not.
    pub fn batch_settles(&self) -> anyhow::Result<()> {
        let (batch, attackers) = self.batch.as_ref().zip(self.participants.last()).context("a venue without a batch market")?;
        batch.settles(&self.client(&self.places[0], &attackers.key)).context("the batch market does not go on")
    }

    /// Waits until the mesh has a time for each replica, and excludes none.
    ///
    /// # Errors
    /// When it has not.
    pub fn clocks_agree(&self) -> anyhow::Result<()> {
        for place in &self.places {
            let client = self.client(place, &self.operator);
            walras_wait::within(RECOVERY, || {
                let clock = client.get("/v1/clock")?;
                let excluded = clock["mesh"]["excluded"].as_array().map_or(0, Vec::len);
                let is_good = clock["bound_ns"].is_string() && clock["trouble"].is_null() && excluded == 0;
                ensure!(is_good, "the mesh has no time for the replica at {}: {clock}", place.http);
                Ok::<_, anyhow::Error>(())
            })?;
        }
        Ok(())
    }

    /// What each process holds.
    ///
    /// # Errors
    /// When one has ended.
    pub fn holdings(&self) -> anyhow::Result<Vec<crate::process::Holdings>> {
        self.processes().map(Process::holdings).collect()
    }

    /// The replicas, in the order of their places, then relays and gateways.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.places.iter().map(|place| &place.process).chain(&self.others)
    }

    /// How often its processes wrote that they ended a connection for this reason.
    #[must_use]
    pub fn ended_by(&self, reason: ByeReason) -> usize {
        let said = format!("{} ({})", reason.advice(), reason.number());
        self.processes().map(|process| process.says(&said)).sum()
    }

    /// Waits until all replicas stand at the same entry.
    ///
    /// # Errors
    /// When they do not.
    pub fn replicas_agree(&self) -> anyhow::Result<()> {
        let Inner::Cluster(local) = &self.inner else { return Ok(()) };
        local
            .wait_for_equal(RECOVERY)
            .map_err(|entries| anyhow::anyhow!("the replicas do not come to the same entry: {entries:?}"))?;
        Ok(())
    }

    /// Looks for acknowledged orders of the participant who sends them over REST.
    ///
    /// # Errors
    /// When one is missing.
    pub fn has_orders(&self, acknowledged: &[u64]) -> anyhow::Result<()> {
        let client = self.client(&self.places[0], &self.participants[2].key);
        let answer = client.signed_pages("/v1/orders", "orders")?;
        let open: Vec<u64> = answer["orders"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|order| order["client_order_id"].as_str()?.parse().ok())
            .collect();
        let missing: Vec<_> = acknowledged.iter().filter(|id| !open.contains(id)).collect();
        ensure!(missing.is_empty(), "orders that were acknowledged are not in the book: {missing:?}");
        Ok(())
    }

    /// Stops it in good order, and has its logs verified by the program.
    ///
    /// # Errors
    /// When a process does not end well, or a log does not verify.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let folders: Vec<PathBuf> = match &mut self.inner {
            Inner::Single(child) => {
                terminate(child)?;
                vec![self.dir.join("data")]
            }
            Inner::Cluster(local) => {
                local.stop()?;
                local.replicas.iter().map(walras_client::local_cluster::LocalReplica::data).collect()
            }
        };
        for folder in folders {
            let verified = Command::new(&self.program).args(["log", "verify"]).arg(&folder).output()?;
            ensure!(
                verified.status.success(),
                "the log in {} does not verify: {}",
                folder.display(),
                String::from_utf8_lossy(&verified.stderr)
            );
        }
        Ok(())
    }
}

/// A gateway that has just started takes no stamp of the time before.
fn wait_for_stamps(client: &Client) -> anyhow::Result<()> {
    let status = client.get("/v1/status")?;
    let from_ns: u64 = status["accepts_timestamps_from_ns"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    while let Some(left_ns) = from_ns.checked_sub(now().0) {
        walras_wait::pause(Duration::from_nanos(left_ns + 1));
    }
    Ok(())
}

impl Drop for Venue {
    fn drop(&mut self) {
        if let Inner::Single(child) = &mut self.inner {
            // It was not stopped in good order: nobody wants it any more.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn terminate(child: &mut Child) -> anyhow::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
    kill_process(pid, Signal::TERM).context("stopping the venue")?;
    let status = child.wait()?;
    ensure!(status.success(), "the venue ended with {status}");
    Ok(())
}

/// A program that begins ours with so many descriptors at most, soft and hard.
fn limited(program: &Path, dir: &Path, descriptors: Option<u32>) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let Some(descriptors) = descriptors else { return Ok(program.to_path_buf()) };
    let path = dir.join("limited.sh");
    std::fs::write(&path, format!("#!/bin/sh\nulimit -n {descriptors} && exec '{}' \"$@\"\n", program.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

fn start_single(program: &Path, dir: &Path) -> anyhow::Result<(Inner, Vec<Place>, ClientKey)> {
    let (data, log, config) = (dir.join("data"), dir.join("replica.log"), dir.join("walras.toml"));
    let ports = MorePorts::free(1)?.pop().context("ports of a replica")?;
    let mut table = toml::Table::new();
    ports.add_to(&mut table);
    std::fs::write(&config, table.to_string())?;
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config).arg("--data").arg(&data);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?).spawn()?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    let (http, orders) =
        addresses(&line).with_context(|| format!("the venue did not say where it is: {line:?}; see {}", log.display()))?;
    let operator = read_key(&operator_key_file(&data))?;
    let MorePorts { fix, fix_data, facade, operator: operators } = ports;
    let process = Process { id: child.id(), log };
    let place = Place { process, http, orders, fix, fix_data, facade, operator: operators, peers: None };
    Ok((Inner::Single(child), vec![place], operator))
}

/// Where HTTP and binary order entry are, of the line that a venue prints when it is open.
fn addresses(line: &str) -> Option<(String, String)> {
    let http = line.split_once("http://")?.1.split('/').next()?;
    let orders = line.split_once("takes binary orders at ")?.1.split(',').next()?.trim_end();
    Some((http.to_owned(), orders.to_owned()))
}

fn start_cluster(
    program: &Path,
    dir: &Path,
    more: Vec<(&'static str, &'static str, toml::Value)>,
    mesh: Option<&Mesh>,
) -> anyhow::Result<(Inner, Vec<Place>, ClientKey)> {
    // A machine that is busy stands still now and then; an election that nobody meant would be measured as the attack's.
    let mut settings = more;
    settings.push(("cluster", "election_timeout_min_ms", toml::Value::Integer(600)));
    settings.push(("cluster", "election_timeout_max_ms", toml::Value::Integer(1_200)));
    let options = LocalOptions { replicas: 3, settings, ..LocalOptions::default() };
    let mut local = LocalCluster::prepare(program, &dir.join("cluster"), &options)?;
    open_more(&local, mesh)?;
    for id in 1..=REPLICAS as u64 {
        local.start(id)?;
    }
    let leader = local.wait_for_leader(RECOVERY)?;
    let operator = read_key(&local.operator_key())?;
    let places = places(&local, leader)?;
    Ok((Inner::Cluster(local), places, operator))
}

/// Adds more ports, the batch market and the mesh to the configuration of every replica, and FIX to that of every leaf gateway. None of
/// them runs yet.
fn open_more(local: &LocalCluster, mesh: Option<&Mesh>) -> anyhow::Result<()> {
    let mut ports = MorePorts::free(local.replicas.len() + local.gateways.len())?.into_iter();
    for (node, (replica, ports)) in local.replicas.iter().zip(&mut ports).enumerate() {
        configure(&replica.dir, |table| {
            ports.add_to(table);
            if let Some(mesh) = mesh {
                mesh.add_to(table, node);
            }
        })?;
    }
    local.gateways.iter().zip(ports).try_for_each(|(gateway, ports)| configure(&gateway.dir, |table| ports.add_fix_to(table)))
}

fn configure(dir: &Path, change: impl FnOnce(&mut toml::Table)) -> anyhow::Result<()> {
    let path = dir.join("walras.toml");
    let mut table: toml::Table = std::fs::read_to_string(&path)?.parse()?;
    change(&mut table);
    Ok(std::fs::write(&path, table.to_string())?)
}

type Started = (Inner, Vec<Place>, ClientKey);

/// A cluster of three, a relay, and a leaf below it.
fn start_tree(program: &Path, dir: &Path) -> anyhow::Result<(Started, Vec<Process>, Ports)> {
    let number = toml::Value::Integer;
    let settings = vec![
        ("cluster", "election_timeout_min_ms", number(600)),
        ("cluster", "election_timeout_max_ms", number(1_200)),
        ("fair_access", "release", "1ms".into()),
        ("feed", "heartbeat_ms", number(50)),
    ];
    let options = LocalOptions { replicas: 3, gateways: 1, relays: 1, settings, ..LocalOptions::default() };
    let mut local = LocalCluster::prepare(program, &dir.join("cluster"), &options)?;
    open_more(&local, None)?;
    let requests = tree::open_requests(&local)?;
    tree::add_receivers(&local)?;
    for id in [1, 2, 3, FIRST_RELAY, FIRST_GATEWAY] {
        local.start(id)?;
    }
    let leader = local.wait_for_leader(RECOVERY)?;
    let (operator, places, ports) = (read_key(&local.operator_key())?, places(&local, leader)?, tree::ports(&local, requests)?);
    let logs = (FIRST_RELAY..).map(|id| format!("relay-{id}.log")).take(local.relays.len());
    let logs = logs.chain(std::iter::repeat("replica.log".to_owned()));
    let others = local.relays.iter().chain(&local.gateways).zip(logs).map(|(other, log)| {
        let id = other.process_id().context("a relay or gateway that does not run")?;
        Ok(Process { id, log: other.dir.join(log) })
    });
    let others = others.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(((Inner::Cluster(local), places, operator), others, ports))
}

/// The replicas that run, the leader first.
fn places(local: &LocalCluster, leader: u64) -> anyhow::Result<Vec<Place>> {
    let mut places = Vec::new();
    for replica in local.replicas.iter().filter(|replica| replica.is_running()) {
        let text = std::fs::read_to_string(replica.dir.join("walras.toml"))?;
        let table: toml::Table = text.parse()?;
        let peers = table.get("cluster").and_then(|cluster| cluster.get("listen")).and_then(toml::Value::as_str);
        let process =
            Process { id: replica.process_id().context("a replica that does not run")?, log: replica.dir.join("replica.log") };
        let MorePorts { fix, fix_data, facade, operator } =
            MorePorts::of(&table).context("a configuration without the ports of FIX, the Binance dialect and operators")?;
        let (http, orders, peers) = (replica.http.clone(), replica.orders.clone(), peers.map(str::to_owned));
        let place = Place { process, http, orders, fix, fix_data, facade, operator, peers };
        if replica.id == leader { places.insert(0, place) } else { places.push(place) }
    }
    Ok(places)
}
