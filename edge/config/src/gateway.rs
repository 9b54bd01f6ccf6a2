//! `[gateway]`, and the gateways that a replica's `[cluster]` section names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use walras_consensus::ReplicaId;
use walras_gateway::Places;

use super::cluster::{EntryOptions, FixOptions, LinkOptions, fix, fix_market_data, gateway_peers, order_entry};
use super::strategies::{self, StrategyOptions};
use super::{Config, ConfigError, FairClockOptions};

/// Options of a leaf gateway.
#[derive(Debug)]
pub struct GatewayOptions {
    /// Its id.
    pub id: ReplicaId,
    /// The cluster that it belongs to.
    pub cluster_id: u64,
    /// The links with the replicas.
    pub links: LinkOptions,
    /// Binary order entry.
    pub order_entry: EntryOptions,
    /// Orders by FIX; `None`: none.
    pub fix: Option<FixOptions>,
    /// Market data by FIX, which comes by the tree; `None`: none.
    pub fix_market_data: Option<FixOptions>,
    /// From one publication of the replicas to the next.
    pub publish_every: Duration,
    /// Whether the venue sequences orders by their stamps.
    pub stamps: bool,
    /// From one watermark to the next; 0 for none.
    pub watermark_ns: u64,
    /// The clock of its stamps, and of market data.
    pub clock: FairClockOptions,
    /// Places for connections of clients, as far as the limit of open files leaves them.
    pub places: Places,
    /// Market data for participants; `None`: none.
    pub market_data: Option<OutletOptions>,
    /// Programs of participants in its process.
    pub strategies: Vec<StrategyOptions>,
    /// How long orders and answers gather under load.
    pub gather: Duration,
    /// The thread that passes on orders and answers does not sleep.
    pub spin_orders: bool,
}

/// How a gateway gets market data, and gives it to its participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutletOptions {
    /// The file of the venue's tree.
    pub tree: PathBuf,
    /// The gateway's place in the last layer.
    pub place: u32,
    /// The file of the tree of one layer that its participants are; `None`: strategies alone get market data.
    pub participants: Option<PathBuf>,
    /// From where packets are sent to them.
    pub source: SocketAddr,
    /// Where they ask for what they missed.
    pub requests: Option<SocketAddr>,
    /// Where the replicas answer requests, for what the gateway itself misses. None: it does not ask.
    pub venue_requests: Vec<SocketAddr>,
    /// Bytes of a packet at most in answers to them.
    pub packet_bytes: usize,
    /// Requests of one address in a second, and of the gateway.
    pub requests_per_s: u32,
    /// Bytes of each channel that are kept for them.
    pub kept_bytes: usize,
    /// Bytes of all channels together.
    pub kept_total_bytes: usize,
    /// The longest that a packet may have to wait.
    pub wait_max_ns: u64,
    /// One thread receives and releases, and does not sleep.
    pub spin: bool,
}

/// The longest time for which input gathers.
const GATHER_US_MAX: u32 = 10_000;

/// How much the clocks of the venue and of a gateway may be apart, beside the longest delay.
const APART_NS: u64 = 1_000_000_000;

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Cluster { key, detail: detail.into() }
}

/// The ids of gateways that may link with a replica of these.
pub(super) fn known(config: &Config, replicas: &BTreeSet<ReplicaId>) -> Result<BTreeSet<ReplicaId>, ConfigError> {
    let last = replicas.last().map_or(0, |last| last.get());
    let id = |number: &u64| {
        let id = ReplicaId::new(*number).filter(|id| id.get() > last);
        id.ok_or_else(|| {
            wrong(
                "cluster.gateways",
                format!("{number}: ids of gateways are greater than those of all replicas, the last of which is {last}"),
            )
        })
    };
    config.cluster.gateways.iter().map(id).collect()
}

impl Config {
    /// The options of `walras gateway`. Reads the key files.
    pub fn gateway_options(&self) -> Result<GatewayOptions, ConfigError> {
        let peers = gateway_peers(self)?;
        let last = peers.keys().last().map_or(0, |last| last.get());
        let id = ReplicaId::new(self.gateway.id).filter(|id| id.get() > last).ok_or_else(|| {
            let advice = format!(
                "{}: give a gateway an id that is greater than those of all replicas, the last of which is {last}",
                self.gateway.id
            );
            wrong("gateway.id", advice)
        })?;
        let order_entry =
            order_entry(self)?.ok_or_else(|| wrong("order_entry.listen", "a gateway takes orders there: give an address"))?;
        let fix_market_data = fix_market_data(self)?;
        if fix_market_data.is_some() && self.gateway.tree.is_empty() {
            let advice = "a gateway has market data of the venue's relay tree: name its file in gateway.tree";
            return Err(wrong("fix.market_data_listen", advice));
        }
        if self.gateway.gather_us > GATHER_US_MAX {
            let value = self.gateway.gather_us.to_string();
            return Err(ConfigError::Range { key: "gateway.gather_us", value, advice: "give 0 to 10000 (10 ms)" });
        }
        // Nobody connects to it: the greater id does.
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(GatewayOptions {
            id,
            cluster_id: self.cluster.cluster_id,
            links: LinkOptions { listen, security: self.security(id)?, peers, gateways: BTreeSet::new() },
            order_entry,
            fix: fix(self)?,
            fix_market_data,
            publish_every: Duration::from_micros(1_000_000 / self.websocket.updates_per_second),
            stamps: self.fair_access.sequencing != "off",
            watermark_ns: self.watermark_ns(),
            clock: self.fair_clock()?,
            places: self.places(),
            market_data: self.outlet_options()?,
            strategies: strategies::options(self)?,
            gather: Duration::from_micros(self.gateway.gather_us.into()),
            spin_orders: self.gateway.spin_orders,
        })
    }

    /// Where orders are not in the order of stamps, nobody waits for watermarks.
    fn watermark_ns(&self) -> u64 {
        let is_off = self.fair_access.sequencing == "off";
        if is_off { 0 } else { self.fair_access.watermark_us.saturating_mul(1_000) }
    }

    fn outlet_options(&self) -> Result<Option<OutletOptions>, ConfigError> {
        let gateway = &self.gateway;
        match (gateway.tree.is_empty(), gateway.participants.is_empty()) {
            (true, true) => return Ok(None),
            (false, false) => {}
            (true, false) => return Err(wrong("gateway.tree", "participants get market data of a tree: name its file")),
            (false, true) if !self.strategies.is_empty() || !self.fix.market_data_listen.is_empty() => {}
            (false, true) => return Err(wrong("gateway.participants", "name the file of the tree whose receivers they are")),
        }
        let address = |key: &'static str, text: &str| {
            text.parse().map_err(|_| ConfigError::Address { key, value: text.to_owned(), example: "0.0.0.0:7420" })
        };
        let requests = (!gateway.requests.is_empty()).then(|| address("gateway.requests", &gateway.requests)).transpose()?;
        let venue_requests = gateway.venue_requests.iter().map(|text| address("gateway.venue_requests", text));
        let venue_requests = venue_requests.collect::<Result<Vec<SocketAddr>, ConfigError>>()?;
        Ok(Some(OutletOptions {
            tree: gateway.tree.clone().into(),
            place: gateway.place,
            participants: (!gateway.participants.is_empty()).then(|| gateway.participants.clone().into()),
            source: address("gateway.source", &gateway.source)?,
            requests,
            venue_requests,
            packet_bytes: self.feed.packet_bytes,
            requests_per_s: self.feed.requests_per_second,
            kept_bytes: self.feed.kept_bytes(),
            kept_total_bytes: self.feed.kept_total_bytes(),
            wait_max_ns: self.fair_access.release_max_us.saturating_mul(1_000).saturating_add(APART_NS),
            spin: gateway.spin_market_data,
        }))
    }
}

/// Where a replica is asked to expect gateways: they connect.
pub(super) fn expected(gateways: &BTreeSet<ReplicaId>) -> BTreeMap<ReplicaId, walras_peer_link::PeerAddress> {
    gateways.iter().map(|id| (*id, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const THREE: &str = "[cluster]\ninsecure_loopback = true\n\
        peers = [\"1=127.0.0.1:1\", \"2=127.0.0.1:2\", \"3=127.0.0.1:3\"]\n";

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("walras.toml")).unwrap()
    }

    #[test]
    fn a_gateway_knows_the_replicas_and_they_know_it() {
        let options = config(&format!("{THREE}[gateway]\nid = 40\n")).gateway_options().unwrap();
        assert_eq!((options.id.get(), options.links.peers.len(), options.stamps), (40, 3, false));
        assert_eq!(options.fix, None);
        assert_eq!(options.fix_market_data, None);
        let fix = "[fix]\nlisten = \"127.0.0.1:7373\"\n";
        let options = config(&format!("{THREE}[gateway]\nid = 40\n{fix}")).gateway_options().unwrap();
        assert_eq!(options.fix.map(|fix| (fix.port.listen.port(), fix.comp_id)), Some((7_373, "WALRAS".to_owned())));
        // Market data by FIX needs the tree, and nobody else who reads of it.
        let fix = "tree = \"t\"\n[fix]\nmarket_data_listen = \"127.0.0.1:7374\"\n[websocket]\nupdates_per_second = 40\n";
        let options = config(&format!("{THREE}[gateway]\nid = 40\n{fix}")).gateway_options().unwrap();
        assert_eq!(options.fix_market_data.map(|fix| fix.port.listen.port()), Some(7_374));
        assert_eq!((options.fix, options.publish_every), (None, Duration::from_millis(25)));
        assert_eq!(options.market_data.unwrap().participants, None);
        let spins = |text: &str| {
            let options = config(&format!("{THREE}[gateway]\nid = 40\ntree = \"t\"\nparticipants = \"p\"\n{text}"))
                .gateway_options()
                .unwrap();
            (options.spin_orders, options.market_data.unwrap().spin)
        };
        assert_eq!([spins(""), spins("spin_orders = true\n")], [(false, false), (true, false)]);
        assert_eq!(spins("spin_market_data = true\n"), (false, true));
        let asks = "tree = \"t\"\nparticipants = \"p\"\nvenue_requests = [\"10.0.0.1:7410\", \"[::1]:7411\"]\n\
            [feed]\npacket_bytes = 1200\nkept_mib = 3\n";
        let options = config(&format!("{THREE}[gateway]\nid = 40\n{asks}")).gateway_options().unwrap().market_data.unwrap();
        assert_eq!((options.packet_bytes, options.kept_total_bytes), (1_200, 3 << 20));
        let ports: Vec<u16> = options.venue_requests.iter().map(SocketAddr::port).collect();
        assert_eq!((ports, options.requests_per_s), (vec![7_410, 7_411], 200));
        let replica = config(&format!("{THREE}replica = 2\ngateways = [40, 41]\n")).cluster_options().unwrap();
        let links = replica.links.unwrap();
        assert_eq!((links.peers.len(), links.gateways.len(), replica.addresses.len()), (4, 2, 3));
    }

    #[test]
    fn wrong_ids_are_refused_with_what_to_do() {
        let replica = |gateways: &str| Config::parse(&format!("{THREE}replica = 2\ngateways = {gateways}\n"), Path::new("w"));
        for gateways in ["[3]", "[0]"] {
            let error = replica(gateways).unwrap_err().to_string();
            assert!(error.contains("cluster.gateways") && error.contains("greater"), "{error}");
        }
        for (text, says) in [
            (THREE.to_owned(), "gateway.id"),
            (format!("{THREE}[gateway]\nid = 2\n"), "the last of which is 3"),
            ("[gateway]\nid = 2\n".to_owned(), "cluster.peers"),
            (format!("{THREE}[gateway]\nid = 9\n[order_entry]\nlisten = \"\"\n"), "order_entry.listen"),
            (format!("{THREE}[gateway]\nid = 9\ntree = \"t\"\n"), "gateway.participants"),
            (format!("{THREE}[gateway]\nid = 9\n[fix]\nmarket_data_listen = \"127.0.0.1:1\"\n"), "fix.market_data_listen"),
            (format!("{THREE}[gateway]\nid = 9\ntree = \"t\"\nparticipants = \"p\"\nrequests = \"7\"\n"), "gateway.requests"),
            (
                format!("{THREE}[gateway]\nid = 9\ntree = \"t\"\nparticipants = \"p\"\nvenue_requests = [\"a:1\"]\n"),
                "gateway.venue_requests",
            ),
        ] {
            let error = config(&text).gateway_options().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
