//! The `[cluster]` section: parsed and checked for a replica.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use walras_access::connections::Doors;
use walras_consensus::{Durability, Members, ReplicaId, Settings};
use walras_peer_link::{PeerAddress, Security, TlsIdentity};
use walras_sequencer::ReleaseRules;

use super::{Config, ConfigError, FairAccessOptions, Fix, OrderEntry};

/// The addresses of a replica for participants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// HTTP and WebSocket, as `host:port`; empty if unknown.
    pub http: String,
    /// Binary order entry, likewise.
    pub order_entry: String,
}

/// Options of the links with other replicas.
#[derive(Debug)]
pub struct LinkOptions {
    /// The address on which this replica listens for links.
    pub listen: SocketAddr,
    /// Keys of the links.
    pub security: Security,
    /// The other replicas, and the gateways below this one.
    pub peers: BTreeMap<ReplicaId, PeerAddress>,
    /// Which of them are gateways.
    pub gateways: BTreeSet<ReplicaId>,
}

/// Where order entry listens, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOptions {
    /// The address.
    pub listen: SocketAddr,
    /// Whether it speaks TLS.
    pub tls: EntryTlsOptions,
}

/// Whether order entry speaks TLS, and with whose certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryTlsOptions {
    /// It does not.
    Off,
    /// With one that the venue makes for itself.
    Own,
    /// With the operator's.
    Files {
        /// Its file.
        certificate: PathBuf,
        /// The file of its key.
        private_key: PathBuf,
    },
}

/// Where FIX is spoken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixOptions {
    /// The address, and whether it speaks TLS.
    pub port: EntryOptions,
    /// The venue's name in sessions.
    pub comp_id: String,
}

/// Options of a replica in its cluster, which may be a cluster of one.
#[derive(Debug)]
pub struct ClusterOptions {
    /// Consensus: names, times, durability.
    pub consensus: Settings,
    /// The cluster's first members.
    pub genesis: Members,
    /// Addresses for participants of all replicas, including this one.
    pub addresses: BTreeMap<ReplicaId, Addresses>,
    /// The links; `None` where no other replica is configured.
    pub links: Option<LinkOptions>,
    /// Binary order entry; `None` for none.
    pub order_entry: Option<EntryOptions>,
    /// FIX; `None` for none.
    pub fix: Option<FixOptions>,
    /// Market data by FIX; `None` for none.
    pub fix_market_data: Option<FixOptions>,
    /// Options of fair access; `None` if it is off.
    pub fair_access: Option<FairAccessOptions>,
    /// The clock of the section `[clock]`.
    pub clock_source: Option<walras_clock_sync::Source>,
    /// Admission of order entry's connections.
    pub doors: Doors,
    /// Entries between snapshots; 0 for never.
    pub snapshot_every: u64,
    /// The rules for holding market data; `None` if it is not held.
    pub release: Option<ReleaseRules>,
    /// A leader hands over if its clock differs by more than this from most voters' clocks; 0 for never.
    pub clock_error_ns_max: u64,
    /// Whether the operator may inject faults into links: for tests.
    pub faults_allowed: bool,
}

const MS: u64 = 1_000_000;

/// Longest time that can be set.
const TIME_MS_MAX: u64 = 3_600_000;

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Cluster { key, detail: detail.into() }
}

/// Checks the section.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    order_entry(config)?;
    fix(config)?;
    fix_market_data(config)?;
    let Parts { addresses, .. } = parts(config)?;
    super::gateway::known(config, &addresses.into_keys().collect()).map(|_| ())
}

pub(super) fn order_entry(config: &Config) -> Result<Option<EntryOptions>, ConfigError> {
    let Some(listen) = entry_address(config)? else { return Ok(None) };
    let tls = tls_of_port(config, ("order_entry.tls", &config.order_entry.tls), listen)?;
    Ok(Some(EntryOptions { listen, tls }))
}

/// Whether a port of order entry speaks TLS.
fn tls_of_port(config: &Config, (key, tls): (&'static str, &str), listen: SocketAddr) -> Result<EntryTlsOptions, ConfigError> {
    let OrderEntry { certificate, private_key, .. } = &config.order_entry;
    let is_on = match tls {
        "auto" => !listen.ip().is_loopback(),
        "on" => true,
        "off" => false,
        _ => return Err(wrong(key, format!("{tls:?} is none of auto, on and off"))),
    };
    match (is_on, certificate.as_str(), private_key.as_str()) {
        (_, "", key) if !key.is_empty() => {
            Err(wrong("order_entry.certificate", "a private key without its certificate: give both files, or neither"))
        }
        (_, file, "") if !file.is_empty() => {
            Err(wrong("order_entry.private_key", "a certificate without its private key: give both files, or neither"))
        }
        (false, ..) => Ok(EntryTlsOptions::Off),
        (true, "", _) => Ok(EntryTlsOptions::Own),
        (true, certificate, private_key) => {
            Ok(EntryTlsOptions::Files { certificate: certificate.into(), private_key: private_key.into() })
        }
    }
}

pub(super) fn fix(config: &Config) -> Result<Option<FixOptions>, ConfigError> {
    fix_port(config, ("fix.listen", &config.fix.listen, "0.0.0.0:7373"))
}

pub(super) fn fix_market_data(config: &Config) -> Result<Option<FixOptions>, ConfigError> {
    fix_port(config, ("fix.market_data_listen", &config.fix.market_data_listen, "0.0.0.0:7374"))
}

fn fix_port(config: &Config, (key, listen, example): (&'static str, &str, &str)) -> Result<Option<FixOptions>, ConfigError> {
    let Fix { comp_id, tls, .. } = &config.fix;
    if listen.is_empty() {
        return Ok(None);
    }
    let advice = || wrong(key, format!("{listen:?} is no address to listen on: give one like {example}"));
    let listen: SocketAddr = listen.parse().map_err(|_| advice())?;
    if comp_id.is_empty() || comp_id.len() > 32 || !comp_id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("fix.comp_id", format!("{comp_id:?} is no name: give 1 to 32 visible ASCII characters")));
    }
    let tls = tls_of_port(config, ("fix.tls", tls), listen)?;
    Ok(Some(FixOptions { port: EntryOptions { listen, tls }, comp_id: comp_id.clone() }))
}

fn entry_address(config: &Config) -> Result<Option<SocketAddr>, ConfigError> {
    let listen = &config.order_entry.listen;
    if listen.is_empty() {
        return Ok(None);
    }
    let http: Option<SocketAddr> = config.http.listen.parse().ok();
    if *listen == OrderEntry::default().listen && http.is_some_and(|http| http.port() == 0) {
        // Any free port, so that several venues can run on one machine.
        return Ok(Some(SocketAddr::from(([127, 0, 0, 1], 0))));
    }
    let advice = || wrong("order_entry.listen", format!("{listen:?} is no address to listen on: give one like 0.0.0.0:7272"));
    listen.parse().map(Some).map_err(|_| advice())
}

/// The parsed section, without its key files.
struct Parts {
    settings: Settings,
    genesis: Members,
    addresses: BTreeMap<ReplicaId, Addresses>,
    /// Addresses of this replica's links and of all others'; `None` if it is alone.
    links: Option<(SocketAddr, BTreeMap<ReplicaId, PeerAddress>)>,
}

fn parts(config: &Config) -> Result<Parts, ConfigError> {
    let cluster = &config.cluster;
    let me = ReplicaId::new(cluster.replica).ok_or_else(|| {
        let advice =
            "0 is no replica's id: a venue on one machine is replica 1 (the default) and lists no cluster.peers; leave this out";
        wrong("cluster.replica", advice)
    })?;
    let settings = settings(config, me)?;
    let founders = cluster.genesis.iter().map(|n| id("cluster.genesis", *n)).collect::<Result<Vec<_>, _>>()?;
    if cluster.peers.is_empty() {
        if !cluster.gateways.is_empty() {
            return Err(wrong(
                "cluster.gateways",
                "gateways need links: list this replica in cluster.peers, and make keys for the links",
            ));
        }
        if founders.iter().any(|id| *id != me) {
            let advice = "the cluster began with other replicas than this one: list all of them in cluster.peers";
            return Err(wrong("cluster.genesis", advice));
        }
        let genesis = Members::of_voters([me]);
        return Ok(Parts { settings, genesis, addresses: BTreeMap::from([(me, Addresses::default())]), links: None });
    }
    let peers = peers(&cluster.peers)?;
    if !peers.contains_key(&me) {
        let advice = format!("replica {me}, this one, is not listed; list every replica, the same on all");
        return Err(wrong("cluster.peers", advice));
    }
    let genesis = match founders.as_slice() {
        [] => Members::of_voters(peers.keys().copied()),
        ids => Members::of_voters(ids.iter().copied()),
    };
    if genesis.voters.len() < founders.len() {
        return Err(wrong("cluster.genesis", "an id stands there twice"));
    }
    let bad_listen = || wrong("cluster.listen", format!("{:?}: give an address with a port, like 0.0.0.0:7171", cluster.listen));
    let listen: SocketAddr = cluster.listen.parse().map_err(|_| bad_listen())?;
    if listen.port() == 0 {
        return Err(bad_listen());
    }
    match (cluster.keys.is_empty(), cluster.insecure_loopback) {
        (true, false) => {
            Err(wrong("cluster.keys", "links need keys: make them with `walras cluster keys`, and name the folder here"))
        }
        (false, true) => Err(wrong("cluster.insecure_loopback", "with keys the links use them: leave one of the two out")),
        (true, true) | (false, false) => Ok(()),
    }?;
    let (mut addresses, mut others) = (BTreeMap::new(), BTreeMap::new());
    for (id, Peer { link, addresses: reached }) in peers {
        addresses.insert(id, reached);
        if id != me {
            others.insert(id, link);
        }
    }
    Ok(Parts { settings, genesis, addresses, links: Some((listen, others)) })
}

/// Where replicas listen for the links of a gateway, which is none of them.
pub(super) fn gateway_peers(config: &Config) -> Result<BTreeMap<ReplicaId, PeerAddress>, ConfigError> {
    if config.cluster.peers.is_empty() {
        return Err(wrong("cluster.peers", "list every replica, as their own configurations do"));
    }
    Ok(peers(&config.cluster.peers)?.into_iter().map(|(id, peer)| (id, peer.link)).collect())
}

fn settings(config: &Config, me: ReplicaId) -> Result<Settings, ConfigError> {
    let cluster = &config.cluster;
    let durability = match cluster.durability.as_str() {
        "disk" => Durability::Disk,
        "memory" => Durability::Memory,
        other => return Err(wrong("cluster.durability", format!("{other:?}: give \"disk\" or \"memory\""))),
    };
    let (heartbeat, min, max) = (cluster.heartbeat_ms, cluster.election_timeout_min_ms, cluster.election_timeout_max_ms);
    if heartbeat == 0 || max > TIME_MS_MAX {
        return Err(wrong("cluster.heartbeat_ms", format!("times are 1 to {TIME_MS_MAX} ms")));
    }
    if min < heartbeat.saturating_mul(2) {
        let advice =
            format!("{min} ms is less than twice heartbeat_ms ({heartbeat}): one lost sign of life would elect another leader");
        return Err(wrong("cluster.election_timeout_min_ms", advice));
    }
    if max < min {
        return Err(wrong("cluster.election_timeout_max_ms", format!("{max} ms is less than election_timeout_min_ms ({min})")));
    }
    if cluster.probation_ms > TIME_MS_MAX {
        return Err(wrong("cluster.probation_ms", format!("give 0 to {TIME_MS_MAX} ms")));
    }
    Ok(Settings {
        // Short timeouts need a finer resolution.
        tick_ns: if min < 50 { MS / 4 } else { MS },
        heartbeat_ns: heartbeat * MS,
        election_timeout_min_ns: min * MS,
        election_timeout_max_ns: max * MS,
        fast_fail_over: cluster.fast_fail_over,
        probation_ns: cluster.probation_ms * MS,
        durability,
        ..Settings::new(cluster.cluster_id, me)
    })
}

fn id(key: &'static str, number: u64) -> Result<ReplicaId, ConfigError> {
    ReplicaId::new(number).ok_or_else(|| wrong(key, format!("{number} is no replica's id; they are numbered from 1")))
}

/// A line of `cluster.peers`.
struct Peer {
    /// Address of its links.
    link: PeerAddress,
    /// Its addresses for participants.
    addresses: Addresses,
}

fn peers(lines: &[String]) -> Result<BTreeMap<ReplicaId, Peer>, ConfigError> {
    const KEY: &str = "cluster.peers";
    let mut peers = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for line in lines {
        let (number, peer) = peer(line).map_err(|detail| wrong(KEY, format!("{line:?}: {detail}")))?;
        let id = id(KEY, number)?;
        let addresses = [peer.link.to_string(), peer.addresses.http.clone(), peer.addresses.order_entry.clone()];
        for address in addresses.into_iter().filter(|address| !address.is_empty()) {
            if let Some(other) = taken.insert(address.clone(), id) {
                return Err(wrong(KEY, format!("{address} stands there twice, for replicas {other} and {id}; each needs its own")));
            }
        }
        if peers.insert(id, peer).is_some() {
            return Err(wrong(KEY, format!("replica {id} is listed twice; give each replica an id of its own")));
        }
    }
    Ok(peers)
}

fn peer(line: &str) -> Result<(u64, Peer), String> {
    let form = "write \"1=10.0.0.1:7171 http=10.0.0.1:7070 orders=10.0.0.1:7272\"";
    let mut words = line.split_whitespace();
    let (number, link) = words.next().and_then(|first| first.split_once('=')).ok_or(form)?;
    let number = number.parse().map_err(|_| form)?;
    let link = PeerAddress::from_str(link).map_err(|e| e.to_string())?;
    let mut addresses = Addresses::default();
    for word in words {
        match word.split_once('=') {
            Some(("http", address)) => addresses.http = reached(address)?,
            Some(("orders", address)) => addresses.order_entry = reached(address)?,
            _ => return Err(format!("{word:?} is neither http= nor orders=; {form}")),
        }
    }
    Ok((number, Peer { link, addresses }))
}

/// Checks an address to which participants are redirected: the order-entry protocol must be able to encode it.
fn reached(address: &str) -> Result<String, String> {
    PeerAddress::from_str(address).map_err(|e| e.to_string())?;
    if address.len() <= 255 { Ok(address.to_owned()) } else { Err("an address has at most 255 bytes".to_owned()) }
}

impl Config {
    /// The options of this replica. Reads the key files, if it has links.
    pub fn cluster_options(&self) -> Result<ClusterOptions, ConfigError> {
        let cluster = &self.cluster;
        let Parts { settings, genesis, addresses, links } = parts(self)?;
        let gateways = super::gateway::known(self, &addresses.keys().copied().collect())?;
        let links = links.map(|(listen, mut peers)| {
            peers.extend(super::gateway::expected(&gateways));
            Ok(LinkOptions { listen, security: self.security(settings.id)?, peers, gateways })
        });
        Ok(ClusterOptions {
            consensus: settings,
            genesis,
            addresses,
            links: links.transpose()?,
            order_entry: order_entry(self)?,
            fix: fix(self)?,
            fix_market_data: fix_market_data(self)?,
            fair_access: self.fair_access_options()?,
            clock_source: None,
            doors: Doors::new(self.places()),
            snapshot_every: self.log.snapshot_every_entries,
            release: self.release_rules()?,
            clock_error_ns_max: cluster.clock_error_max_ms.saturating_mul(MS),
            faults_allowed: cluster.test_faults,
        })
    }

    pub(super) fn security(&self, me: ReplicaId) -> Result<Security, ConfigError> {
        if self.cluster.insecure_loopback {
            return Ok(Security::PlainOnLoopback);
        }
        let dir = Path::new(&self.cluster.keys);
        let (certificate, key) = (dir.join(format!("replica-{me}.crt")), dir.join(format!("replica-{me}.key")));
        let identity = TlsIdentity::load(&dir.join("ca.crt"), &certificate, &key);
        Ok(Security::Tls(identity.map_err(|e| wrong("cluster.keys", e.to_string()))?))
    }

    /// The replicas of the cluster, including this one, without reading key files.
    pub(super) fn replicas(&self) -> Result<BTreeSet<ReplicaId>, ConfigError> {
        parts(self).map(|parts| parts.addresses.into_keys().collect())
    }

    /// Warnings about valid settings that are probably unintended.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let Ok(Parts { genesis, .. }) = parts(self) else { return Vec::new() };
        let voters = genesis.voters.len();
        match voters {
            count if count % 2 == 0 => vec![format!(
                "{count} replicas vote: they survive the loss of no more than {} do; an odd number is better",
                count - 1
            )],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cluster: &str) -> Result<Config, String> {
        Config::parse(&format!("[cluster]\n{cluster}"), Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    const THREE: &str = "replica = 2\ninsecure_loopback = true\n\
        peers = [\"1=127.0.0.1:1 http=127.0.0.1:11\", \"2=127.0.0.1:2 orders=127.0.0.1:22\", \"3=c.example:3\"]\n";

    #[test]
    fn a_cluster_of_three() {
        let options = config(THREE).unwrap().cluster_options().unwrap();
        assert_eq!((options.consensus.id.get(), options.addresses.len(), options.genesis.voters.len()), (2, 3, 3));
        let first = ReplicaId::new(1).unwrap();
        let links = options.links.unwrap();
        assert_eq!((links.peers.len(), links.peers[&first].to_string()), (2, "127.0.0.1:1".to_owned()));
        assert_eq!(options.addresses[&first].http, "127.0.0.1:11");
        let options = config(&format!("{THREE}genesis = [1]\n")).unwrap().cluster_options().unwrap();
        assert_eq!(options.genesis.voters.len(), 1, "the others are not members yet");
    }

    #[test]
    fn order_entry_speaks_tls_wherever_others_may_listen() {
        let tls = |text: &str| config(text).unwrap().cluster_options().map(|options| options.order_entry.unwrap().tls);
        let file = |name: &str| PathBuf::from(name);
        let files = "certificate = \"a.crt\"\nprivate_key = \"a.key\"\n";
        let loaded = EntryTlsOptions::Files { certificate: file("a.crt"), private_key: file("a.key") };
        for (text, expected) in [
            (String::new(), EntryTlsOptions::Off),
            ("[order_entry]\nlisten = \"0.0.0.0:7272\"\n".to_owned(), EntryTlsOptions::Own),
            (format!("[order_entry]\nlisten = \"[::]:7272\"\n{files}"), loaded.clone()),
            (format!("[order_entry]\n{files}"), EntryTlsOptions::Off),
            (format!("[order_entry]\ntls = \"on\"\n{files}"), loaded),
            ("[order_entry]\nlisten = \"10.0.0.1:7272\"\ntls = \"off\"\n".to_owned(), EntryTlsOptions::Off),
        ] {
            assert_eq!(tls(&text).unwrap(), expected, "{text}");
        }
        for (text, key) in [
            ("[order_entry]\ntls = \"maybe\"\n", "order_entry.tls"),
            ("[order_entry]\ncertificate = \"a.crt\"\n", "order_entry.private_key"),
            ("[order_entry]\nprivate_key = \"a.key\"\n", "order_entry.certificate"),
        ] {
            let refused =
                config(text).and_then(|config| config.cluster_options().map(drop).map_err(|e| e.to_string())).unwrap_err();
            assert!(refused.contains(key), "{refused}");
        }
    }

    #[test]
    fn fix_listens_where_it_is_said() {
        let fix = |text: &str| config(text).unwrap().cluster_options().map(|options| options.fix);
        assert_eq!(fix("").unwrap(), None);
        let options = fix("[fix]\nlisten = \"0.0.0.0:7373\"\ncomp_id = \"X\"\n").unwrap().unwrap();
        assert_eq!((options.comp_id.as_str(), options.port.tls), ("X", EntryTlsOptions::Own));
        let options = fix("[fix]\nlisten = \"127.0.0.1:7373\"\n").unwrap().unwrap();
        assert_eq!((options.comp_id.as_str(), options.port.tls), ("WALRAS", EntryTlsOptions::Off));
        for (text, key) in [
            ("[fix]\nlisten = \"7373\"\n", "fix.listen"),
            ("[fix]\nmarket_data_listen = \"7374\"\n", "fix.market_data_listen"),
            ("[fix]\nlisten = \"127.0.0.1:7373\"\ncomp_id = \"a b\"\n", "fix.comp_id"),
            ("[fix]\nlisten = \"127.0.0.1:7373\"\ntls = \"maybe\"\n", "fix.tls"),
        ] {
            let error = config(text).and_then(|config| config.cluster_options().map(|_| config).map_err(|e| e.to_string()));
            let error = error.map(|_| ()).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn order_entry_takes_a_free_port_where_http_does_unless_it_is_said_which() {
        let port = |text: &str| {
            let config = Config::parse(text, Path::new("w")).unwrap();
            config.cluster_options().unwrap().order_entry.map(|entry| entry.listen.port())
        };
        assert_eq!(port(""), Some(7272));
        assert_eq!(port("[http]\nlisten = \"127.0.0.1:0\"\n"), Some(0));
        assert_eq!(port("[http]\nlisten = \"127.0.0.1:0\"\n[order_entry]\nlisten = \"127.0.0.1:9\"\n"), Some(9));
        assert_eq!(port("[order_entry]\nlisten = \"\"\n"), None);
    }

    #[test]
    fn without_anything_it_is_a_cluster_of_one_without_links_and_keys() {
        for text in ["", "genesis = [1]\n", "keys = \"no-such-folder\"\n", "replica = 7\n"] {
            let options = config(text).unwrap().cluster_options().unwrap();
            assert!(options.links.is_none(), "{text}");
            assert!(options.addresses.keys().eq([&options.consensus.id]), "{text}");
            assert!(options.genesis.voters.iter().eq([&options.consensus.id]), "{text}");
        }
    }

    #[test]
    fn impossible_ones_say_what_would_do() {
        for (text, key, why) in [
            (THREE.replace("= 2\n", "= 4\n"), "cluster.peers", "replica 4, this one, is not listed"),
            (THREE.replace("3=c", "2=c"), "cluster.peers", "listed twice"),
            (THREE.replace("c.example:3", "127.0.0.1:1"), "cluster.peers", "stands there twice"),
            (THREE.replace("3=", "0="), "cluster.peers", "numbered from 1"),
            (THREE.replace("orders", "order"), "cluster.peers", "neither http= nor orders="),
            (THREE.replace(":3", ""), "cluster.peers", "no address of a peer"),
            (THREE.replace("insecure_loopback = true\n", ""), "cluster.keys", "walras cluster keys"),
            (format!("{THREE}keys = \"k\"\n"), "cluster.insecure_loopback", "leave one of the two out"),
            (format!("{THREE}listen = \"127.0.0.1:0\"\n"), "cluster.listen", "with a port"),
            (format!("{THREE}durability = \"none\"\n"), "cluster.durability", "\"memory\""),
            (format!("{THREE}heartbeat_ms = 100\n"), "cluster.election_timeout_min_ms", "twice heartbeat_ms"),
            (format!("{THREE}election_timeout_max_ms = 100\n"), "cluster.election_timeout_max_ms", "less than"),
            (format!("{THREE}probation_ms = 99999999\n"), "cluster.probation_ms", "give 0 to"),
            (format!("{THREE}genesis = [1, 1]\n"), "cluster.genesis", "twice"),
            ("replica = 0\n".to_owned(), "cluster.replica", "leave this out"),
            ("genesis = [1, 2]\n".to_owned(), "cluster.genesis", "cluster.peers"),
            ("genesis = [0]\n".to_owned(), "cluster.genesis", "numbered from 1"),
        ] {
            let said = config(&text).unwrap_err();
            assert!(said.contains(key) && said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn an_even_number_of_voters_is_warned_of() {
        assert!(config(THREE).unwrap().advice().is_empty());
        let two = config(&format!("{THREE}genesis = [1, 2]\n")).unwrap();
        assert!(two.advice()[0].contains("2 replicas vote"), "{:?}", two.advice());
    }

    #[test]
    fn keys_that_are_not_there_are_named() {
        let text = THREE.replace("insecure_loopback = true", "keys = \"no-such-folder\"");
        let said = config(&text).unwrap().cluster_options().unwrap_err().to_string();
        assert!(said.contains("cluster.keys") && said.contains("no-such-folder"), "{said}");
    }
}
