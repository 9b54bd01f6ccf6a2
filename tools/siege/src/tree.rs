//! The ports of the relay tree and of a leaf gateway: where they are, what attackers send there, and a well-behaved reader.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_client::local_cluster::LocalCluster;
use walras_feed::control::Control;
use walras_relay::deadline::Maximum;
use walras_relay::keeping::Keeping;
use walras_relay::packet::{Header, Kind, PACKET_BYTES_MAX, PacketWriter, TreeKey};
use walras_relay::reader::Request;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, Leaf};

use crate::limits::{PATIENCE, SOURCES};
use crate::ports::fix_of;
use crate::wire::noise;

/// KiB of the latest messages of each channel that the leaf keeps: so few that most of what attackers ask for is with the replicas.
const KEPT_KIB: i64 = 4;

/// A reader repeats a request after this.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A relay, and the first leaf gateway.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where the relay receives.
    pub relay: String,
    /// Where the leaf receives market data.
    pub leaf: String,
    /// Where the leaf's participants ask for what they missed.
    pub leaf_requests: String,
    /// Where readers of the venue's tree ask.
    pub venue_requests: String,
    /// Where the leaf takes binary orders.
    pub leaf_orders: String,
    /// Where it takes orders by FIX.
    pub leaf_fix: String,
    /// Where it gives market data by FIX.
    pub leaf_fix_data: String,
    /// The venue's tree, whose key outsiders do not have.
    pub venue: Layout,
    /// The tree of the leaf's participants.
    pub own: Layout,
    /// Of these, the attackers: all but the first.
    pub deaf: Vec<SocketAddr>,
}

/// Adds receivers to the participants of a gateway that does not run yet, one at each of the attackers' addresses.
pub(crate) fn add_receivers(local: &LocalCluster) -> anyhow::Result<()> {
    let path = local.gateways.first().context("a leaf gateway")?.dir.join("participants.toml");
    let mut table: toml::Table = std::fs::read_to_string(&path)?.parse()?;
    let layers = table.get_mut("layers").and_then(toml::Value::as_array_mut);
    let layer = layers.and_then(|layers| layers.last_mut()).and_then(toml::Value::as_array_mut);
    let receivers = layer.context("a layer of receivers")?;
    for number in 0..SOURCES {
        receivers.push(free_at(Ipv4Addr::new(127, 0, 0, 2 + number))?.into());
    }
    Ok(std::fs::write(&path, table.to_string())?)
}

/// Adds ports where readers ask for missed messages to the configurations of a cluster that does not run yet. The gateway keeps few
/// messages, and asks the replicas for what it keeps no more.
pub(crate) fn open_requests(local: &LocalCluster) -> anyhow::Result<(String, String)> {
    let of_leaf = free()?;
    let leaf = local.gateways.first().context("a leaf gateway")?;
    // Each replica has a port of its own, and the first one usually leads at the beginning.
    let mut of_replicas = Vec::new();
    for replica in &local.replicas {
        let address = free()?;
        set(&replica.dir, ("feed", "requests"), address.clone().into())?;
        of_replicas.push(address);
    }
    let of_venue = of_replicas.first().context("a replica")?.clone();
    set(&leaf.dir, ("gateway", "requests"), of_leaf.clone().into())?;
    set(&leaf.dir, ("gateway", "venue_requests"), of_replicas.into())?;
    set(&leaf.dir, ("feed", "kept_kib"), toml::Value::Integer(KEPT_KIB))?;
    Ok((of_leaf, of_venue))
}

fn free() -> anyhow::Result<String> {
    free_at(Ipv4Addr::LOCALHOST)
}

fn free_at(ip: Ipv4Addr) -> anyhow::Result<String> {
    Ok(UdpSocket::bind((ip, 0))?.local_addr()?.to_string())
}

fn set(dir: &Path, (section, key): (&str, &str), value: toml::Value) -> anyhow::Result<()> {
    let path = dir.join("walras.toml");
    let mut table: toml::Table = std::fs::read_to_string(&path)?.parse()?;
    let of_section = table.entry(section).or_insert_with(|| toml::Table::new().into());
    of_section.as_table_mut().with_context(|| format!("a section [{section}]"))?.insert(key.to_owned(), value);
    std::fs::write(&path, table.to_string())?;
    Ok(())
}

/// The ports of a running cluster.
pub(crate) fn ports(local: &LocalCluster, (leaf_requests, venue_requests): (String, String)) -> anyhow::Result<Ports> {
    let leaf = local.gateways.first().context("a leaf gateway")?;
    let (venue, own) = (Layout::read(&local.tree())?, Layout::read(&leaf.dir.join("participants.toml"))?);
    let at = |layer: usize| venue.layers.get(layer).and_then(|nodes| nodes.first()).map(ToString::to_string);
    let (relay, receives) = (at(0).context("a relay")?, at(1).context("a receiver")?);
    let table: toml::Table = std::fs::read_to_string(leaf.dir.join("walras.toml"))?.parse()?;
    let (leaf_fix, leaf_fix_data) = fix_of(&table).context("a leaf gateway with the ports of FIX")?;
    let leaf_orders = leaf.orders.clone();
    let deaf = own.layers.last().and_then(|receivers| receivers.get(1..)).unwrap_or_default().to_vec();
    Ok(Ports { relay, leaf: receives, leaf_requests, venue_requests, leaf_orders, leaf_fix, leaf_fix_data, venue, own, deaf })
}

/// Datagrams of an attacker without the tree's key: noise, sound packets with another key's seal, and bytes that begin like a
/// packet.
pub(crate) fn forged(ports: &Ports) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (3..11_u64).map(|seed| noise(1 << seed, seed)).collect();
    let key = TreeKey::new([0x5e; 32]);
    for number in 1..8 {
        all.push(packet(&ports.venue, 0x0100_0000, number, &key));
    }
    let mut said = Vec::new();
    Keeping::Ping { question: 1 }.encode(ports.venue.tree_number, 1, &key, &mut said);
    all.push(std::mem::take(&mut said));
    let samples = vec![Maximum { packet: 1, delay_ns: i64::MAX }; 64];
    Keeping::Late { node: 1, samples }.encode(ports.venue.tree_number, 1, &key, &mut said);
    all.push(said);
    all.push([&[1, 0][..], &noise(PACKET_BYTES_MAX, 12)].concat());
    all
}

/// A packet with the tree's key, as an attacker may overhear it: cut at every length, made longer, and with one bit turned.
pub(crate) fn cut(ports: &Ports) -> Vec<Vec<u8>> {
    broken(&packet(&ports.venue, 0x0100_0000, u64::MAX, &ports.venue.key))
}

/// The same of a request for messages.
pub(crate) fn cut_asks(layout: &Layout) -> Vec<Vec<u8>> {
    broken(&ask(layout, 0))
}

fn broken(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    all.push([whole, &[0; 40]].concat());
    for bit in 0..whole.len() * 8 {
        let mut turned = whole.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        all.push(turned);
    }
    all
}

/// The request with this number for messages, in turn: of channels that exist and do not, from the beginning, from the end, for more than
/// an answer may hold, and for single ones, of which a leaf keeps the latest. Each has the time of now, and then once more one of long ago.
pub(crate) fn ask(layout: &Layout, number: usize) -> Vec<u8> {
    let odd = [(0x0100_0000, 1, 1), (0x0100_0000, 1, u16::MAX), (0x0100_0000, u64::MAX, 9), (7, 1, 1), (u32::MAX, 0, 0)];
    let single = (2..200).map(|first| (0x0100_0000, first, 1));
    let (channel, first, count) = odd.into_iter().chain(single).nth(number / 2 % (odd.len() + 198)).unwrap_or(odd[0]);
    let sent_ns = if number.is_multiple_of(2) { walras_access::now().0 } else { 1 };
    let mut bytes = Vec::new();
    Control::Ask(Request { channel, first, count }).encode(layout.tree_number, sent_ns, &layout.key, &mut bytes);
    bytes
}

fn packet(layout: &Layout, channel: u32, number: u64, key: &TreeKey) -> Vec<u8> {
    let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
    // A packet has room for it.
    let _ = writer.push(&noise(200, number));
    let (kind, tree) = (Kind::Data, layout.tree_number);
    let header = Header { kind, count: 1, channel, tree, packet: number, first: number, sent_ns: 1, release_ns: 1 };
    writer.finish(&header, key, &mut bytes);
    bytes
}

/// A participant of the leaf, who gets market data and asks for a message again.
pub(crate) struct Reader {
    leaf: Leaf,
    requests: SocketAddr,
    tree: u32,
    /// The latest message: channel and number.
    latest: Option<(u32, u64)>,
}

impl Reader {
    pub(crate) fn new(ports: &Ports) -> anyhow::Result<Self> {
        let address = ports.own.layers.first().and_then(|nodes| nodes.first()).context("a participant's address")?;
        let socket = Socket::bind(*address, Duration::from_millis(1), Offload::Segments).context("a participant's socket")?;
        let (leaf, requests) = (Leaf::new(socket, ports.own.key.clone()), ports.leaf_requests.parse()?);
        Ok(Self { leaf, requests, tree: ports.own.tree_number, latest: None })
    }

    /// Reads market data until then, as a participant does all the time: what is asked for comes behind what waits to be read.
    pub(crate) fn read_until(&mut self, until: Instant) -> anyhow::Result<()> {
        while Instant::now() < until {
            self.leaf.receive(|packet| note(&mut self.latest, packet.header()))?;
        }
        Ok(())
    }

    /// Asks for the latest message again; returns once it has it.
    pub(crate) fn ask(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while self.latest.is_none() {
            self.leaf.receive(|packet| note(&mut self.latest, packet.header()))?;
            ensure!(begun.elapsed() < PATIENCE, "no market data comes");
        }
        let (channel, first) = self.latest.context("a message")?;
        let (mut is_here, mut asked) = (false, None::<Instant>);
        while !is_here {
            // For a message that it keeps no more the leaf asks a replica, and answers when it is asked again.
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN) {
                self.leaf.ask(&Request { channel, first, count: 1 }, self.tree, walras_access::now().0, self.requests)?;
                asked = Some(Instant::now());
            }
            let latest = &mut self.latest;
            self.leaf.receive(|packet| {
                let header = packet.header();
                is_here |=
                    header.kind == Kind::Again && header.channel == channel && header.first <= first && first < header.next();
                note(latest, header);
            })?;
            ensure!(begun.elapsed() < PATIENCE, "message {first} was asked for and did not come");
        }
        Ok(())
    }
}

fn note(latest: &mut Option<(u32, u64)>, header: &Header) {
    if header.kind == Kind::Data && header.count > 0 && header.channel != 0 {
        *latest = Some((header.channel, header.next() - 1));
    }
}
