//! The attacks.

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::json;
use walras_gateway::ClientKey;
use walras_relay_link::Layout;
use walras_wire::order_entry::ByeReason;

use crate::barrage::{Barrage, Shots};
use crate::batch::Batch;
use crate::crowd::{Crowd, Plan, Tally};
use crate::limits::FLOOD_OPEN_MAX;
use crate::ports::Mesh;
use crate::tree::{self, Ports};
use crate::venue::{Participant, Shape, Venue};
use crate::wire::{frame, noise, request, subscriber, upgrade};

mod dialects;
mod entry;
mod facade;
mod many;
mod ports;
mod transactions;

pub(crate) use entry::logon;
pub use facade::{NamedError, named_errors};

/// Which figure an attack counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// None: no attack at all, which shows how far the figures are the machine's own.
    Control,
    /// Connections that do nothing, or next to nothing.
    Idle,
    /// Subscribers that do not read.
    Deaf,
    /// Bytes that are no message.
    Malformed,
    /// More of what is allowed than is allowed.
    Flood,
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Idle => "idle",
            Self::Deaf => "deaf",
            Self::Malformed => "malformed",
            Self::Flood => "flood",
        }
    }
}

/// An attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// Which figure it counts in.
    pub group: Group,
    /// What it does.
    pub about: &'static str,
    /// What the venue has to have for it.
    pub needs: Needs,
    plans: fn(&Field<'_>) -> Vec<Plan>,
    /// What attackers send that are no crowd of connections.
    shots: fn(&Aim<'_>) -> Vec<Shots>,
}

/// What an attack needs of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Only what every venue has.
    Nothing,
    /// The replicas' port.
    Peers,
    /// A mesh that measures clocks.
    Mesh,
    /// A batch market, which has to go on afterwards.
    Batch,
    /// A relay tree and a leaf gateway.
    Tree,
    /// A leaf gateway, whose ports it is aimed at.
    Leaf,
}

impl Needs {
    /// Whether a venue of this shape has it.
    #[must_use]
    pub fn are_met_by(self, shape: Shape) -> bool {
        match self {
            Self::Nothing | Self::Batch => true,
            Self::Peers => shape != Shape::Single,
            Self::Mesh => shape == Shape::Cluster,
            Self::Tree | Self::Leaf => shape == Shape::Tree,
        }
    }
}

/// What attackers aim at that are no crowd, and the size of the attack.
struct Aim<'a> {
    /// Where the target serves HTTP; empty where it does not.
    http: &'a str,
    /// Where it takes binary orders.
    orders: &'a str,
    /// The ports of the tree, where there is one.
    ports: Option<&'a Ports>,
    /// What measures clocks, where anything does.
    mesh: Option<&'a Mesh>,
    batch: &'a Batch,
    /// The attackers' participant.
    participant: &'a Participant,
    /// Of the full size.
    percent: usize,
}

impl Aim<'_> {
    fn of(&self, full: u64) -> u64 {
        (full * self.percent as u64).div_ceil(100).max(1)
    }

    fn at(&self, address: &str, datagrams: Vec<Vec<u8>>, full_per_second: usize) -> Shots {
        Shots::Datagrams { address: address.to_owned(), datagrams, per_second: self.per_second(full_per_second) }
    }

    fn asks(&self, address: &str, tree: &Layout, full_per_second: usize) -> Shots {
        let per_second = self.per_second(full_per_second);
        Shots::Asks { address: address.to_owned(), tree: Box::new(tree.clone()), per_second }
    }

    fn per_second(&self, full: usize) -> u32 {
        u32::try_from((full * self.percent).div_ceil(100)).unwrap_or(u32::MAX)
    }
}

/// The ports of the target, empty where it has none, and how large the attack is.
struct Field<'a> {
    http: &'a str,
    orders: &'a str,
    peers: &'a str,
    fix: &'a str,
    fix_data: &'a str,
    facade: &'a str,
    operator: &'a str,
    batch: &'a Batch,
    key: &'a ClientKey,
    /// Some that were revoked, or have expired.
    ended: &'a [ClientKey],
    /// Of the full size.
    percent: usize,
}

impl<'a> Field<'a> {
    /// At the ports of a replica, or of a leaf gateway.
    fn new(venue: &'a Venue, target: Needs, percent: usize) -> anyhow::Result<Self> {
        let (batch, ended) = (venue.batch.as_ref().context("a venue without a market")?, &venue.ended[..]);
        let key = &venue.participants.last().context("a venue without participants")?.key;
        let (http, orders, peers, fix, fix_data, facade, operator) = ("", "", "", "", "", "", "");
        let nowhere = Self { http, orders, peers, fix, fix_data, facade, operator, batch, key, ended, percent };
        if target == Needs::Leaf {
            let ports = venue.tree.as_ref().context("a venue without a leaf gateway")?;
            return Ok(Self { orders: &ports.leaf_orders, fix: &ports.leaf_fix, fix_data: &ports.leaf_fix_data, ..nowhere });
        }
        let place = &venue.places[0];
        Ok(Self {
            http: &place.http,
            orders: &place.orders,
            peers: place.peers.as_deref().unwrap_or_default(),
            fix: &place.fix,
            fix_data: &place.fix_data,
            facade: &place.facade,
            operator: &place.operator,
            ..nowhere
        })
    }

    fn of(&self, full: usize) -> usize {
        (full * self.percent).div_ceil(100).max(1)
    }

    fn rate(&self, full: usize) -> u32 {
        u32::try_from(self.of(full)).unwrap_or(u32::MAX)
    }
}

/// An attack that goes on; it ends when this is dropped.
#[derive(Debug)]
pub struct Running(Vec<Crowd>, Vec<Barrage>);

impl Running {
    /// What it has done so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.0.iter().map(Crowd::tally).chain(self.1.iter().map(Barrage::tally)).fold(Tally::default(), Tally::and)
    }
}

impl Attack {
    /// The same on the ports of a leaf gateway.
    const fn at_leaf(self, name: &'static str, about: &'static str) -> Self {
        Self { name, about, needs: Needs::Leaf, ..self }
    }

    /// Why a venue has to end the attackers' connections; `None` where it may let them stay. At less than its full size an attack may
    /// be too small for it.
    #[must_use]
    pub fn has_to_end_by(&self) -> Option<ByeReason> {
        self.name.starts_with(dialects::DEAF_FIX_BOOKS.name).then_some(ByeReason::SlowReader)
    }

    /// Begins it, at so much of its full size; returns once it stands.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn begin(&self, venue: &Venue, percent: usize) -> anyhow::Result<Running> {
        let participant = venue.participants.last().context("a venue without participants")?;
        let field = Field::new(venue, self.needs, percent)?;
        let (ports, mesh) = (venue.tree.as_ref(), venue.mesh.as_ref());
        let aim = Aim { http: field.http, orders: field.orders, ports, mesh, batch: field.batch, participant, percent };
        // A port that the target does not have is not attacked.
        let plans = (self.plans)(&field).into_iter().filter(|plan| !plan.address.is_empty());
        let crowds = plans.map(Crowd::begin).collect::<anyhow::Result<Vec<_>>>()?;
        let barrages = (self.shots)(&aim).into_iter().map(Barrage::begin).collect::<anyhow::Result<Vec<_>>>()?;
        let is_aimed = self.group == Group::Control || !(crowds.is_empty() && barrages.is_empty());
        ensure!(is_aimed, "{} finds no port to attack", self.name);
        Ok(Running(crowds, barrages))
    }
}

/// All of them.
pub const ATTACKS: [Attack; 89] = [
    Attack {
        name: "nothing",
        group: Group::Control,
        about: "no attack",
        needs: Needs::Nothing,
        plans: |_| Vec::new(),
        shots: |_| Vec::new(),
    },
    Attack {
        name: "idle_http",
        group: Group::Idle,
        about: "1,500 connections to HTTP that send nothing",
        needs: Needs::Nothing,
        plans: |field| vec![Plan::standing(field.http, field.of(1_500), Vec::new())],
        shots: |_| Vec::new(),
    },
    Attack {
        name: "idle_websocket",
        group: Group::Idle,
        about: "1,500 WebSockets that ask nothing",
        needs: Needs::Nothing,
        plans: |field| vec![Plan::standing(field.http, field.of(1_500), upgrade())],
        shots: |_| Vec::new(),
    },
    entry::IDLE_ENTRY,
    Attack {
        name: "slow_head",
        group: Group::Idle,
        about: "500 requests whose head comes a byte a second",
        needs: Needs::Nothing,
        plans: |field| {
            vec![Plan { drip: request("GET", "/v1/status", "", None), ..Plan::standing(field.http, field.of(500), b"G".to_vec()) }]
        },
        shots: |_| Vec::new(),
    },
    Attack {
        name: "slow_body",
        group: Group::Idle,
        about: "500 requests whose body comes a byte a second",
        needs: Needs::Nothing,
        plans: |field| {
            let head = b"POST /v1/orders HTTP/1.1\r\nhost: venue\r\ncontent-length: 10000\r\n\r\n".to_vec();
            vec![Plan { drip: vec![b' '; 10_000], ..Plan::standing(field.http, field.of(500), head) }]
        },
        shots: |_| Vec::new(),
    },
    entry::SLOW_ENTRY,
    Attack {
        name: "silent",
        group: Group::Idle,
        about: "100 subscribers that read and answer no ping",
        needs: Needs::Nothing,
        plans: |field| {
            // Reading costs the attackers' machine, which is the venue's here: so they ask for little.
            let mut opening = upgrade();
            opening.extend(frame(1, br#"{"op":"subscribe","channel":"status"}"#));
            vec![Plan { reads: true, ..Plan::standing(field.http, field.of(100), opening) }]
        },
        shots: |_| Vec::new(),
    },
    Attack {
        name: "deaf",
        group: Group::Deaf,
        about: "300 subscribers to everything that never read",
        needs: Needs::Nothing,
        plans: |field| vec![Plan::standing(field.http, field.of(300), subscriber())],
        shots: |_| Vec::new(),
    },
    Attack {
        name: "malformed_http",
        group: Group::Malformed,
        about: "200 connections a second with bytes that are no request",
        needs: Needs::Nothing,
        plans: |field| vec![garbage(field.http, field.rate(200), of_http())],
        shots: |_| Vec::new(),
    },
    Attack {
        name: "malformed_websocket",
        group: Group::Malformed,
        about: "200 WebSockets a second with frames that are none",
        needs: Needs::Nothing,
        plans: |field| vec![garbage(field.http, field.rate(200), of_websocket())],
        shots: |_| Vec::new(),
    },
    entry::MALFORMED_ENTRY,
    Attack {
        name: "malformed_peer",
        group: Group::Malformed,
        about: "200 connections a second to the replicas' port with bytes that are no TLS",
        needs: Needs::Peers,
        plans: |field| vec![garbage(field.peers, field.rate(200), of_peer())],
        shots: |_| Vec::new(),
    },
    entry::FLOOD_CONNECT,
    Attack {
        name: "flood_requests",
        group: Group::Flood,
        about: "3,000 requests a second without a key",
        needs: Needs::Nothing,
        plans: |field| {
            let message = || request("GET", "/v1/instruments/BTC-USD/book", "", None);
            vec![talk(field.http, 32, message(), Box::new(message), field.rate(3_000))]
        },
        shots: |_| Vec::new(),
    },
    Attack {
        name: "flood_signed",
        group: Group::Flood,
        about: "2,000 signed orders a second of one key, which is throttled at 1,000",
        needs: Needs::Nothing,
        plans: |field| {
            let (key, mut id) = (field.key.clone(), 0_u64);
            let message = move || {
                id += 1;
                let body = json!({
                    "instrument": "BTC-USD", "client_order_id": id.to_string(), "side": "buy", "type": "limit", "size": "0.001",
                    "price": "29000", "time_in_force": "ioc",
                });
                request("POST", "/v1/orders", &body.to_string(), Some(&key))
            };
            vec![talk(field.http, 32, Vec::new(), Box::new(message), field.rate(2_000))]
        },
        shots: |_| Vec::new(),
    },
    Attack {
        name: "flood_subscribe",
        group: Group::Flood,
        about: "2,000 subscriptions a second over 32 WebSockets",
        needs: Needs::Nothing,
        plans: |field| {
            let message = || frame(1, br#"{"op":"subscribe","channel":"book","instrument":"BTC-USD"}"#);
            vec![talk(field.http, 32, upgrade(), Box::new(message), field.rate(2_000))]
        },
        shots: |_| Vec::new(),
    },
    entry::FLOOD_LOGON,
    Attack {
        name: "forged_feed",
        group: Group::Malformed,
        about: "1,000 datagrams a second without the tree's key to each port of the tree and to those for missed messages",
        needs: Needs::Tree,
        plans: |_| Vec::new(),
        shots: |aim| {
            let Some(ports) = aim.ports else { return Vec::new() };
            let Ports { relay, leaf, leaf_requests, venue_requests, .. } = ports;
            [relay, leaf, leaf_requests, venue_requests].map(|port| aim.at(port, tree::forged(ports), 1_000)).into()
        },
    },
    Attack {
        name: "cut_feed",
        group: Group::Malformed,
        about: "1,000 datagrams a second to each port of the tree: a sound packet or request cut at each length, or with one bit turned",
        needs: Needs::Tree,
        plans: |_| Vec::new(),
        shots: |aim| {
            let Some(ports) = aim.ports else { return Vec::new() };
            let Ports { relay, leaf, leaf_requests, venue_requests, venue, own, .. } = ports;
            let (packets, of_leaf, of_venue) = (tree::cut(ports), tree::cut_asks(own), tree::cut_asks(venue));
            let all = [(relay, packets.clone()), (leaf, packets), (leaf_requests, of_leaf), (venue_requests, of_venue)];
            all.map(|(port, datagrams)| aim.at(port, datagrams, 1_000)).into()
        },
    },
    Attack {
        name: "flood_asks",
        group: Group::Flood,
        about: "4,000 requests a second for missed messages, half of them old, with the key, at a replica and at a leaf, which asks replicas",
        needs: Needs::Tree,
        plans: |_| Vec::new(),
        shots: |aim| {
            let Some(Ports { leaf_requests, venue_requests, venue, own, .. }) = aim.ports else { return Vec::new() };
            vec![aim.asks(leaf_requests, own, 4_000), aim.asks(venue_requests, venue, 4_000)]
        },
    },
    Attack {
        name: "deaf_feed",
        group: Group::Deaf,
        about: "8 receivers of a leaf's market data in datagrams that never read",
        needs: Needs::Tree,
        plans: |_| Vec::new(),
        shots: |aim| aim.ports.map(|ports| Shots::Receivers { addresses: ports.deaf.clone() }).into_iter().collect(),
    },
    dialects::IDLE_FIX,
    dialects::SLOW_FIX,
    dialects::SILENT_FIX,
    dialects::DEAF_FIX,
    dialects::DEAF_FIX_BOOKS,
    dialects::MALFORMED_FIX,
    dialects::NUMBERS_FIX,
    dialects::FLOOD_FIX_LOGON,
    dialects::FLOOD_FIX_RESEND,
    dialects::FLOOD_FIX_REPLAYS,
    dialects::DEAF_FACADE,
    dialects::MALFORMED_FACADE,
    dialects::FLOOD_FACADE,
    dialects::DEAF_FIX_ORDERS,
    dialects::FLOOD_FIX_ORDERS,
    dialects::FLOOD_FIX_REPLACES,
    dialects::FLOOD_FIX_DATA,
    facade::DEAF_FACADE_SOCKET,
    facade::ERRORS_FACADE,
    facade::FLOOD_FACADE_ORDERS,
    facade::FLOOD_FACADE_SOCKET,
    many::IDLE_SESSIONS,
    many::CROWD_OF_ONE_KEY,
    many::HALF_CLOSED,
    many::HALF_TLS,
    many::CRUMBS,
    many::DEAF_HTTP,
    many::DEAF_ENTRY,
    many::FLOOD_INSTRUMENTS,
    many::FLOOD_EXITS,
    many::STOLEN,
    many::HUGE,
    ports::IDLE_OPERATOR,
    ports::MALFORMED_OPERATOR,
    ports::FLOOD_OPERATOR,
    ports::FORGED_MESH,
    transactions::RESTING_OFFERS,
    transactions::FORGED_TRANSACTIONS,
    transactions::GIANT_TRANSACTIONS,
    transactions::UNFINISHED_JOINED,
    transactions::FLOOD_DROPPED,
    // Of a leaf gateway's ports the attacks are those of a replica's.
    entry::IDLE_ENTRY.at_leaf("idle_leaf", "as idle_entry, at a leaf gateway"),
    entry::SLOW_ENTRY.at_leaf("slow_leaf", "as slow_entry, at a leaf gateway"),
    dialects::IDLE_FIX.at_leaf("idle_fix_leaf", "as idle_fix, at a leaf gateway"),
    dialects::SLOW_FIX.at_leaf("slow_fix_leaf", "as slow_fix, at a leaf gateway"),
    dialects::SILENT_FIX.at_leaf("silent_fix_leaf", "as silent_fix, at a leaf gateway"),
    many::IDLE_SESSIONS.at_leaf("idle_sessions_leaf", "as idle_sessions, at a leaf gateway"),
    many::CROWD_OF_ONE_KEY.at_leaf("crowd_of_one_key_leaf", "as crowd_of_one_key, at a leaf gateway: sessions by FIX"),
    many::HALF_CLOSED.at_leaf("half_closed_leaf", "as half_closed, at a leaf gateway: order entry and FIX"),
    many::DEAF_ENTRY.at_leaf("deaf_leaf", "as deaf_entry, at a leaf gateway"),
    dialects::DEAF_FIX.at_leaf("deaf_fix_leaf", "as deaf_fix, at a leaf gateway"),
    dialects::DEAF_FIX_BOOKS.at_leaf("deaf_fix_books_leaf", "as deaf_fix_books, at a leaf gateway"),
    dialects::DEAF_FIX_ORDERS.at_leaf("deaf_fix_orders_leaf", "as deaf_fix_orders, at a leaf gateway"),
    entry::MALFORMED_ENTRY.at_leaf("malformed_leaf", "as malformed_entry, at a leaf gateway"),
    dialects::MALFORMED_FIX.at_leaf("malformed_fix_leaf", "as malformed_fix, at a leaf gateway"),
    dialects::NUMBERS_FIX.at_leaf("numbers_fix_leaf", "as numbers_fix, at a leaf gateway"),
    many::CRUMBS.at_leaf("crumbs_leaf", "as crumbs, at a leaf gateway: order entry and FIX"),
    many::STOLEN.at_leaf("stolen_leaf", "as stolen, at a leaf gateway: logons by FIX"),
    many::HUGE.at_leaf("huge_leaf", "as huge, at a leaf gateway: messages by FIX"),
    entry::FLOOD_CONNECT.at_leaf("flood_connect_leaf", "as flood_connect, at a leaf gateway: order entry"),
    entry::FLOOD_LOGON.at_leaf("flood_logon_leaf", "as flood_logon, at a leaf gateway"),
    dialects::FLOOD_FIX_LOGON.at_leaf("flood_fix_logon_leaf", "as flood_fix_logon, at a leaf gateway"),
    dialects::FLOOD_FIX_ORDERS.at_leaf("flood_fix_orders_leaf", "as flood_fix_orders, at a leaf gateway"),
    dialects::FLOOD_FIX_REPLACES.at_leaf("flood_fix_replaces_leaf", "as flood_fix_replaces, at a leaf gateway"),
    dialects::FLOOD_FIX_RESEND.at_leaf("flood_fix_resend_leaf", "as flood_fix_resend, at a leaf gateway"),
    dialects::FLOOD_FIX_REPLAYS.at_leaf("flood_fix_replays_leaf", "as flood_fix_replays, at a leaf gateway"),
    dialects::FLOOD_FIX_DATA.at_leaf("flood_fix_data_leaf", "as flood_fix_data, at a leaf gateway"),
];

fn garbage(address: &str, per_second: u32, openings: Vec<Vec<u8>>) -> Plan {
    let standing = Plan::standing(address, FLOOD_OPEN_MAX, Vec::new());
    Plan { openings, replaced_per_second: per_second, reads: true, ..standing }
}

/// Messages that a talk goes through again and again.
fn in_turn(messages: Vec<Vec<u8>>) -> crate::crowd::Message {
    let mut at = 0;
    Box::new(move || {
        at += 1;
        messages.get((at - 1) % messages.len().max(1)).cloned().unwrap_or_default()
    })
}

fn talk(address: &str, count: usize, opening: Vec<u8>, message: crate::crowd::Message, per_second: u32) -> Plan {
    Plan { talk: Some((message, per_second)), reads: true, ..Plan::standing(address, count, opening) }
}

fn of_http() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 9] = [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /v1/status HTTP/9.9\r\n\r\n",
        b"POST /v1/orders HTTP/1.1\r\nhost: v\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST /v1/orders HTTP/1.1\r\nhost: v\r\ncontent-length: 9223372036854775807\r\n\r\n{",
        b"POST /v1/orders HTTP/1.1\r\nhost: v\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{",
        b"POST /v1/orders HTTP/1.1\r\nhost: v\r\ncontent-length: 4\r\n\r\n\xff\xfe\xff\xfe",
        b"GET /v1/instruments/%ff%fe%00/book HTTP/1.1\r\nhost: v\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nhost: v\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
    all.push([b"GET /".as_slice(), &vec![b'a'; 100_000], b" HTTP/1.1\r\n\r\n"].concat());
    all.push([b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'a'; 100_000]].concat());
    all.push(noise(4_000, 1));
    all
}

fn of_websocket() -> Vec<Vec<u8>> {
    let with = |frames: &[u8]| [upgrade(), frames.to_vec()].concat();
    let nested = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    vec![
        with(&frame(1, b"\xff\xfe\xff")),
        with(&frame(1, br#"{"op":"dance"}"#)),
        with(&frame(2, &noise(200, 2))),
        with(&frame(1, &nested)),
        // An opcode that is reserved, and reserved bits.
        with(&frame(11, b"x")),
        with(&[0xf1, 0x80, 0, 0, 0, 0]),
        // A length that is never sent, one of 2^63, and a frame without a mask.
        with(&[0x81, 0xfe, 0x3f, 0xff, 0, 0, 0, 0, b'{']),
        with(&[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        with(&[0x81, 0x01, b'x']),
        // A continuation of nothing, a ping that is too long, a close that is cut.
        with(&frame(0, b"x")),
        with(&frame(9, &[b'x'; 200])),
        with(&frame(8, &[3])),
        with(&noise(4_000, 3)),
    ]
}

fn of_peer() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..12_u64).map(|seed| noise(1 << seed, seed)).collect();
    // The record of a handshake, with a length that is none and with one that never comes; and a request of HTTP.
    all.push([&[22, 3, 1, 0xff, 0xff], &noise(2_000, 7)[..]].concat());
    all.push(vec![22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3]);
    all.push(request("GET", "/v1/status", "", None));
    all
}
