//! The attacks.

use serde::Serialize;
use serde_json::json;
use walras_gateway::ClientKey;

use crate::crowd::{Crowd, Plan, Tally};
use crate::limits::FLOOD_OPEN_MAX;
use crate::venue::Venue;
use crate::wire::{frame, request, subscriber, upgrade};

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
    /// Whether it needs what only a cluster has.
    pub needs_cluster: bool,
    plans: fn(&Field<'_>) -> Vec<Plan>,
}

/// What an attack is aimed at, and how large it is.
struct Field<'a> {
    http: &'a str,
    orders: &'a str,
    peers: &'a str,
    key: &'a ClientKey,
    /// Of the full size.
    percent: usize,
}

impl Field<'_> {
    fn of(&self, full: usize) -> usize {
        (full * self.percent).div_ceil(100).max(1)
    }

    fn rate(&self, full: usize) -> u32 {
        u32::try_from(self.of(full)).unwrap_or(u32::MAX)
    }
}

/// An attack that goes on; it ends when this is dropped.
#[derive(Debug)]
pub struct Running(Vec<Crowd>);

impl Running {
    /// What it has done so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.0.iter().map(Crowd::tally).fold(Tally::default(), Tally::and)
    }
}

impl Attack {
    /// Begins it, at so much of its full size; returns once it stands.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn begin(&self, venue: &Venue, percent: usize) -> anyhow::Result<Running> {
        let place = &venue.places[0];
        let key = &venue.participants[venue.participants.len() - 1].key;
        let peers = place.peers.as_deref().unwrap_or_default();
        let field = Field { http: &place.http, orders: &place.orders, peers, key, percent };
        Ok(Running((self.plans)(&field).into_iter().map(Crowd::begin).collect::<Result<_, _>>()?))
    }
}

/// All of them.
pub const ATTACKS: [Attack; 18] = [
    Attack { name: "nothing", group: Group::Control, about: "no attack", needs_cluster: false, plans: |_| Vec::new() },
    Attack {
        name: "idle_http",
        group: Group::Idle,
        about: "1,500 connections to HTTP that send nothing",
        needs_cluster: false,
        plans: |field| vec![Plan::standing(field.http, field.of(1_500), Vec::new())],
    },
    Attack {
        name: "idle_websocket",
        group: Group::Idle,
        about: "1,500 WebSockets that ask nothing",
        needs_cluster: false,
        plans: |field| vec![Plan::standing(field.http, field.of(1_500), upgrade())],
    },
    Attack {
        name: "idle_entry",
        group: Group::Idle,
        about: "1,500 connections to order entry that send nothing",
        needs_cluster: false,
        plans: |field| vec![Plan::standing(field.orders, field.of(1_500), Vec::new())],
    },
    Attack {
        name: "slow_head",
        group: Group::Idle,
        about: "500 requests whose head comes a byte a second",
        needs_cluster: false,
        plans: |field| {
            vec![Plan { drip: request("GET", "/v1/status", "", None), ..Plan::standing(field.http, field.of(500), b"G".to_vec()) }]
        },
    },
    Attack {
        name: "slow_body",
        group: Group::Idle,
        about: "500 requests whose body comes a byte a second",
        needs_cluster: false,
        plans: |field| {
            let head = b"POST /v1/orders HTTP/1.1\r\nhost: venue\r\ncontent-length: 10000\r\n\r\n".to_vec();
            vec![Plan { drip: vec![b' '; 10_000], ..Plan::standing(field.http, field.of(500), head) }]
        },
    },
    Attack {
        name: "slow_entry",
        group: Group::Idle,
        about: "500 logons to order entry that come a byte a second",
        needs_cluster: false,
        plans: |field| vec![Plan { drip: vec![0; 1_000], ..Plan::standing(field.orders, field.of(500), vec![200, 0]) }],
    },
    Attack {
        name: "silent",
        group: Group::Idle,
        about: "100 subscribers that read and answer no ping",
        needs_cluster: false,
        plans: |field| {
            // Reading costs the attackers' machine, which is the venue's here: so they ask for little.
            let mut opening = upgrade();
            opening.extend(frame(1, br#"{"op":"subscribe","channel":"status"}"#));
            vec![Plan { reads: true, ..Plan::standing(field.http, field.of(100), opening) }]
        },
    },
    Attack {
        name: "deaf",
        group: Group::Deaf,
        about: "300 subscribers to everything that never read",
        needs_cluster: false,
        plans: |field| vec![Plan::standing(field.http, field.of(300), subscriber())],
    },
    Attack {
        name: "malformed_http",
        group: Group::Malformed,
        about: "200 connections a second with bytes that are no request",
        needs_cluster: false,
        plans: |field| vec![garbage(field.http, field.rate(200), of_http())],
    },
    Attack {
        name: "malformed_websocket",
        group: Group::Malformed,
        about: "200 WebSockets a second with frames that are none",
        needs_cluster: false,
        plans: |field| vec![garbage(field.http, field.rate(200), of_websocket())],
    },
    Attack {
        name: "malformed_entry",
        group: Group::Malformed,
        about: "200 connections a second to order entry with bytes that are no message",
        needs_cluster: false,
        plans: |field| vec![garbage(field.orders, field.rate(200), of_entry())],
    },
    Attack {
        name: "malformed_peer",
        group: Group::Malformed,
        about: "200 connections a second to the replicas' port with bytes that are no TLS",
        needs_cluster: true,
        plans: |field| vec![garbage(field.peers, field.rate(200), of_peer())],
    },
    Attack {
        name: "flood_connect",
        group: Group::Flood,
        about: "500 connections a second to each port, closed again",
        needs_cluster: false,
        plans: |field| {
            let ports = [field.http, field.orders, field.peers].into_iter().filter(|port| !port.is_empty());
            ports.map(|port| Plan { replaced_per_second: field.rate(500), ..Plan::standing(port, 16, Vec::new()) }).collect()
        },
    },
    Attack {
        name: "flood_requests",
        group: Group::Flood,
        about: "3,000 requests a second without a key",
        needs_cluster: false,
        plans: |field| {
            let message = || request("GET", "/v1/instruments/BTC-USD/book", "", None);
            vec![talk(field.http, 32, message(), Box::new(message), field.rate(3_000))]
        },
    },
    Attack {
        name: "flood_signed",
        group: Group::Flood,
        about: "2,000 signed orders a second of one key, which is throttled at 1,000",
        needs_cluster: false,
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
    },
    Attack {
        name: "flood_subscribe",
        group: Group::Flood,
        about: "2,000 subscriptions a second over 32 WebSockets",
        needs_cluster: false,
        plans: |field| {
            let message = || frame(1, br#"{"op":"subscribe","channel":"book","instrument":"BTC-USD"}"#);
            vec![talk(field.http, 32, upgrade(), Box::new(message), field.rate(2_000))]
        },
    },
    Attack {
        name: "flood_logon",
        group: Group::Flood,
        about: "200 logons a second to order entry with a key that is none",
        needs_cluster: false,
        plans: |field| vec![garbage(field.orders, field.rate(200), vec![logon()])],
    },
];

fn garbage(address: &str, per_second: u32, openings: Vec<Vec<u8>>) -> Plan {
    let standing = Plan::standing(address, FLOOD_OPEN_MAX, Vec::new());
    Plan { openings, replaced_per_second: per_second, reads: true, ..standing }
}

fn talk(address: &str, count: usize, opening: Vec<u8>, message: crate::crowd::Message, per_second: u32) -> Plan {
    Plan { talk: Some((message, per_second)), reads: true, ..Plan::standing(address, count, opening) }
}

/// Bytes without a pattern, the same in each run.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    walras_random::Random::new(seed).fill(&mut bytes);
    bytes
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

fn of_entry() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..8_u64).map(|seed| noise(1 << seed, seed)).collect();
    for length in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
        all.push([length.to_le_bytes().to_vec(), noise(64, u64::from(length) | 1)].concat());
        all.push([length.to_be_bytes().to_vec(), noise(64, u64::from(length) | 1)].concat());
    }
    let logon = logon();
    all.push(logon[..logon.len() / 2].to_vec());
    all.push([logon.clone(), logon].concat());
    all.extend(of_transactions());
    all
}

/// Frames of transactions for a batch market, from somebody who did not log on: full of noise, one that announces more than it has, one
/// that never ends, and one of a length that no frame has.
fn of_transactions() -> Vec<Vec<u8>> {
    use walras_types::BatchMarketId;
    use walras_wire::order_entry::{
        ClientMessage, SIGNED_TRANSACTION_BYTES_MAX, SignedTransactions, TRANSACTIONS_PER_FRAME_MAX, encode_client,
        push_signed_bytes,
    };
    let mut items = Vec::new();
    for seed in 0..TRANSACTIONS_PER_FRAME_MAX as u64 {
        push_signed_bytes(&noise(SIGNED_TRANSACTION_BYTES_MAX, seed), &mut items);
    }
    let Ok(frame) = SignedTransactions::new(1, BatchMarketId(0), &items) else { return Vec::new() };
    let mut whole = Vec::new();
    encode_client(&ClientMessage::Transactions(frame), &mut whole);
    let cut = whole[..whole.len() / 2].to_vec();
    // Its length, its kind, its number and its market are before the count.
    let count_at = 4 + 1 + 8 + 2;
    let (mut more, mut longer) = (whole.clone(), whole.clone());
    more[count_at..count_at + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    longer[..4].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
    vec![whole.repeat(4), cut, more, longer]
}

fn of_peer() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..12_u64).map(|seed| noise(1 << seed, seed)).collect();
    // The record of a handshake, with a length that is none and with one that never comes; and a request of HTTP.
    all.push([&[22, 3, 1, 0xff, 0xff], &noise(2_000, 7)[..]].concat());
    all.push(vec![22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3]);
    all.push(request("GET", "/v1/status", "", None));
    all
}

/// A logon as a program sends it, to the challenge of another venue, with a key that no venue has.
pub(crate) fn logon() -> Vec<u8> {
    use std::sync::Arc;

    use walras_gateway::session::{ClientSettings, SessionClient, VenueKeys};
    use walras_wire::order_entry::{Sealing, VenueMessage, encode_venue};
    let key = walras_access::generate(walras_gateway::Algorithm::Ed25519);
    let now_ns = walras_access::now().0;
    let client = SessionClient::new(ClientSettings::new(vec!["127.0.0.1:1".to_owned()], 1), key, now_ns);
    client.map_or_else(Vec::new, |mut client| {
        let _ = client.wish(now_ns);
        client.on_connecting();
        client.on_connected(now_ns, &[7; 32]);
        let (keys, mut welcome) = (Arc::new(VenueKeys::new(&[7; VenueKeys::ENTROPY_LEN])), Vec::new());
        encode_venue(&VenueMessage::Welcome(keys.greeting(1).welcome(Sealing::Required)), &mut welcome);
        client.on_bytes(now_ns, &welcome, &mut |_| ());
        client.output().to_vec()
    })
}
