//! The `[cluster]` section as a replica takes it: addresses parsed, impossible ones refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use walras_access::connections::Doors;
use walras_consensus::{Durability, Members, ReplicaId, Settings};
use walras_peer_link::{PeerAddress, Security, TlsIdentity};
use walras_sequencer::ReleaseRules;

use super::{Config, ConfigError, FairAccessOptions};

/// Where a replica is reached by participants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// HTTP and WebSocket, as `host:port`; empty where that is not known.
    pub http: String,
    /// Binary order entry, likewise.
    pub order_entry: String,
}

/// Another replica.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where its links are.
    pub link: PeerAddress,
    /// Where participants reach it.
    pub addresses: Addresses,
}

/// How a replica takes part in its cluster.
#[derive(Debug)]
pub struct ClusterOptions {
    /// Consensus: names, times, durability.
    pub consensus: Settings,
    /// Who began the cluster.
    pub genesis: Members,
    /// All replicas, this one too.
    pub peers: BTreeMap<ReplicaId, Peer>,
    /// Where this replica's links are.
    pub listen: SocketAddr,
    /// Keys of the links.
    pub security: Security,
    /// Where orders come in binary; `None` for nowhere.
    pub order_entry: Option<SocketAddr>,
    /// How orders are put in the order of stamps; `None` where they are not.
    pub fair_access: Option<FairAccessOptions>,
    /// The clock of the section `[clock]`.
    pub clock_source: Option<walras_clock_sync::Source>,
    /// Where connections of order entry have their places.
    pub doors: Doors,
    /// Entries between checkpoints.
    pub checkpoint_every: u64,
    /// How long market data is held; `None`: it is not.
    pub release: Option<ReleaseRules>,
    /// A leader whose clock differs by more from those of most voters hands over; 0 for never.
    pub clock_error_ns_max: u64,
    /// Whether faults of the network may be asked for: tests.
    pub weather_allowed: bool,
}

const MS: u64 = 1_000_000;

/// Longest time that can be set.
const TIME_MS_MAX: u64 = 3_600_000;

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Cluster { key, detail: detail.into() }
}

/// Whether the section is one that a replica can start with.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let order_entry = order_entry(config)?;
    if config.cluster.replica == 0 {
        return match order_entry {
            None => Ok(()),
            Some(_) => Err(wrong(
                "order_entry.listen",
                "binary order entry needs a replica: set cluster.replica (a cluster of one will do), or leave this empty",
            )),
        };
    }
    parts(config).map(|_| ())
}

fn order_entry(config: &Config) -> Result<Option<SocketAddr>, ConfigError> {
    let listen = &config.order_entry.listen;
    if listen.is_empty() {
        return Ok(None);
    }
    let advice = || wrong("order_entry.listen", format!("{listen:?} is no address to listen on: give one like 0.0.0.0:7272"));
    listen.parse().map(Some).map_err(|_| advice())
}

/// What the section says, without its keys' files.
struct Parts {
    settings: Settings,
    genesis: Members,
    peers: BTreeMap<ReplicaId, Peer>,
    listen: SocketAddr,
}

fn parts(config: &Config) -> Result<Parts, ConfigError> {
    let cluster = &config.cluster;
    let me = id("cluster.replica", cluster.replica)?;
    let peers = peers(&cluster.peers)?;
    if !peers.contains_key(&me) {
        let advice = format!("replica {me}, this one, is not listed; list every replica, the same on all");
        return Err(wrong("cluster.peers", advice));
    }
    let genesis = match cluster.genesis.as_slice() {
        [] => Members::of_voters(peers.keys().copied()),
        ids => Members::of_voters(ids.iter().map(|n| id("cluster.genesis", *n)).collect::<Result<Vec<_>, _>>()?),
    };
    if genesis.voters.len() < cluster.genesis.len() {
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
    Ok(Parts { settings: settings(config, me)?, genesis, peers, listen })
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
    if cluster.newcomer_quiet_ms > TIME_MS_MAX {
        return Err(wrong("cluster.newcomer_quiet_ms", format!("give 0 to {TIME_MS_MAX} ms")));
    }
    Ok(Settings {
        // Short times need a finer grain than the usual one.
        tick_ns: if min < 50 { MS / 4 } else { MS },
        heartbeat_ns: heartbeat * MS,
        election_timeout_min_ns: min * MS,
        election_timeout_max_ns: max * MS,
        fail_over_on_lost_link: cluster.fail_over_on_lost_link,
        newcomer_quiet_ns: cluster.newcomer_quiet_ms * MS,
        durability,
        ..Settings::new(cluster.cluster_id, me)
    })
}

fn id(key: &'static str, number: u64) -> Result<ReplicaId, ConfigError> {
    ReplicaId::new(number).ok_or_else(|| wrong(key, format!("{number} is no replica's id; they are numbered from 1")))
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

/// An address that participants are sent to, which the order-entry protocol can name.
fn reached(address: &str) -> Result<String, String> {
    PeerAddress::from_str(address).map_err(|e| e.to_string())?;
    if address.len() <= 255 { Ok(address.to_owned()) } else { Err("an address has at most 255 bytes".to_owned()) }
}

impl Config {
    /// How this replica takes part in its cluster; `None` for a venue of one machine. Reads the keys' files.
    pub fn cluster_options(&self) -> Result<Option<ClusterOptions>, ConfigError> {
        let cluster = &self.cluster;
        if cluster.replica == 0 {
            return Ok(None);
        }
        let Parts { settings, genesis, peers, listen } = parts(self)?;
        let security = if cluster.insecure_loopback {
            Security::PlainOnLoopback
        } else {
            let (dir, me) = (Path::new(&cluster.keys), settings.id);
            let (certificate, key) = (dir.join(format!("replica-{me}.crt")), dir.join(format!("replica-{me}.key")));
            let identity = TlsIdentity::load(&dir.join("ca.crt"), &certificate, &key);
            Security::Tls(identity.map_err(|e| wrong("cluster.keys", e.to_string()))?)
        };
        Ok(Some(ClusterOptions {
            consensus: settings,
            genesis,
            peers,
            listen,
            security,
            order_entry: order_entry(self)?,
            fair_access: self.fair_access_options()?,
            clock_source: None,
            doors: Doors::new(self.places()),
            checkpoint_every: cluster.checkpoint_every_entries,
            release: self.release_rules()?,
            clock_error_ns_max: cluster.clock_error_max_ms.saturating_mul(MS),
            weather_allowed: cluster.test_weather,
        }))
    }

    /// The replicas of the cluster, without reading their keys' files; `None` for a venue of one machine.
    pub(super) fn replicas(&self) -> Result<Option<BTreeMap<ReplicaId, Peer>>, ConfigError> {
        if self.cluster.replica == 0 { Ok(None) } else { parts(self).map(|parts| Some(parts.peers)) }
    }

    /// What is possible and probably not meant.
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
        let options = config(THREE).unwrap().cluster_options().unwrap().unwrap();
        assert_eq!((options.consensus.id.get(), options.peers.len(), options.genesis.voters.len()), (2, 3, 3));
        let first = &options.peers[&ReplicaId::new(1).unwrap()];
        assert_eq!((first.link.to_string(), first.addresses.http.as_str()), ("127.0.0.1:1".to_owned(), "127.0.0.1:11"));
        let options = config(&format!("{THREE}genesis = [1]\n")).unwrap().cluster_options().unwrap().unwrap();
        assert_eq!(options.genesis.voters.len(), 1, "the others are not members yet");
        assert_eq!(Config::default().cluster_options().unwrap().map(|_| ()), None);
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
            (format!("{THREE}newcomer_quiet_ms = 99999999\n"), "cluster.newcomer_quiet_ms", "give 0 to"),
            (format!("{THREE}genesis = [1, 1]\n"), "cluster.genesis", "twice"),
        ] {
            let said = config(&text).unwrap_err();
            assert!(said.contains(key) && said.contains(why), "{text}: {said}");
        }
        let said = Config::parse("[order_entry]\nlisten = \"127.0.0.1:0\"\n", Path::new("w")).unwrap_err().to_string();
        assert!(said.contains("order_entry.listen") && said.contains("cluster.replica"), "{said}");
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
