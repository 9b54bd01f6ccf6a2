//! Attacks on several ports at a time, and on those of REST, WebSocket and order entry.

use serde_json::json;
use walras_client::headers;
use walras_gateway::{AuthFields, ClientKey, Request};

use super::{Attack, Field, Group, Needs, garbage, in_turn, talk};
use crate::barrage::Shots;
use crate::binance::{now_ms, signed_text};
use crate::crowd::Plan;
use crate::fix::{DATA, DROP_COPY, ORDERS, logon, logon_at, message, stamp_of};
use crate::wire::{auth, frame, request, upgrade, upgrade_to};

/// An hour.
const HOUR_NS: u64 = 3_600_000_000_000;

pub(super) const IDLE_SESSIONS: Attack = Attack {
    name: "idle_sessions",
    group: Group::Idle,
    about: "10,000 sessions of market data by FIX that log on, one after the other, and say nothing more",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let count = field.of(10_000);
        let openings = (0..count).map(|number| logon(field.key, DATA, &format!("IDLE-{number}"), 600)).collect();
        vec![Plan { openings, opened_times: 1, ..Plan::standing(field.fix_data, count, Vec::new()) }]
    },
};

pub(super) const CROWD_OF_ONE_KEY: Attack = Attack {
    name: "crowd_of_one_key",
    group: Group::Idle,
    about: "2,000 sessions of market data, 500 drop copies and 1,000 WebSockets that log on with one key and stay",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let sessions = |port: &str, target: &str, count: usize| {
            let openings = (0..count).map(|number| logon(field.key, target, &format!("CROWD-{number}"), 600)).collect();
            Plan { openings, opened_times: 4, ..Plan::standing(port, count, Vec::new()) }
        };
        let sockets = field.of(1_000);
        let openings = (0..sockets).map(|_| [upgrade(), frame(1, auth(field.key).to_string().as_bytes())].concat()).collect();
        vec![
            sessions(field.fix_data, DATA, field.of(2_000)),
            sessions(field.fix, DROP_COPY, field.of(500)),
            Plan { openings, opened_times: 4, ..Plan::standing(field.http, sockets, Vec::new()) },
        ]
    },
};

pub(super) const HALF_CLOSED: Attack = Attack {
    name: "half_closed",
    group: Group::Idle,
    about: "100 connections to each port that close their side at once, and stay",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let ports = [field.http, field.operator, field.orders, field.fix, field.fix_data, field.facade, field.peers];
        let of_port = |port| Plan { closes_its_side: true, opened_times: 4, ..Plan::standing(port, field.of(100), Vec::new()) };
        ports.map(of_port).into()
    },
};

pub(super) const HALF_TLS: Attack = Attack {
    name: "half_tls",
    group: Group::Idle,
    about: "200 connections to the replicas' port that begin a handshake of TLS and never go on",
    needs: Needs::Peers,
    shots: |_| Vec::new(),
    plans: |field| vec![Plan::standing(field.peers, field.of(200), client_hello())],
};

pub(super) const CRUMBS: Attack = Attack {
    name: "crumbs",
    group: Group::Malformed,
    about: "1,000 single bytes a second to each port: of heads, frames and messages that never end",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let head = b"GET / HTTP/1.1\r\nx: ".to_vec();
        let of_port = |(port, opening): (&str, Vec<u8>)| talk(port, 16, opening, Box::new(|| vec![b'x']), field.rate(1_000));
        let ports = [
            (field.http, head.clone()),
            (field.operator, head.clone()),
            (field.facade, head),
            (field.http, [upgrade(), vec![0x81, 0xfe, 0x3f, 0xff, 0, 0, 0, 0]].concat()),
            (field.facade, [upgrade_to("/ws-api/v3"), vec![0x81, 0xfe, 0x3f, 0xff, 0, 0, 0, 0]].concat()),
            (field.orders, vec![0xff, 0x0f, 0, 0]),
            (field.fix, b"8=FIX.4.4\x019=5\x01".to_vec()),
            (field.fix_data, b"8=FIX.4.4\x019=5\x01".to_vec()),
        ];
        ports.into_iter().map(of_port).collect()
    },
};

pub(super) const DEAF_HTTP: Attack = Attack {
    name: "deaf_http",
    group: Group::Deaf,
    about: "64 connections to HTTP that ask for 500 large answers a second and never read",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let asks =
            ["/openapi.yaml", "/v1/instruments/BTC-USD/book?depth=1000", "/v1/instruments/BTC-USD/trades?limit=1000", "/metrics"];
        let asks = in_turn(asks.map(|path| request("GET", path, "", None)).into());
        vec![Plan { reads: false, ..talk(field.http, 64, Vec::new(), asks, field.rate(500)) }]
    },
};

pub(super) const DEAF_ENTRY: Attack = Attack {
    name: "deaf_entry",
    group: Group::Deaf,
    about: "a participant in 8 sessions of order entry, who sends as many orders as their windows take and reads no answer",
    needs: Needs::Nothing,
    plans: |_| Vec::new(),
    shots: |aim| {
        let (address, participant) = (aim.orders.to_owned(), Box::new(aim.participant.clone()));
        vec![Shots::Deaf { address, participant, sessions: aim.of(8) }]
    },
};

pub(super) const FLOOD_INSTRUMENTS: Attack = Attack {
    name: "flood_instruments",
    group: Group::Flood,
    about: "16,000 messages a second over 1,000 WebSockets that subscribe to the list of instruments and unsubscribe again, as many as \
            the 8 addresses may send",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let message = |op: &str| frame(1, format!(r#"{{"op":"{op}","channel":"instruments"}}"#).as_bytes());
        let both = [message("subscribe"), message("unsubscribe")].concat();
        vec![talk(field.http, field.of(1_000), upgrade(), in_turn(vec![both]), field.rate(8_000))]
    },
};

pub(super) const FLOOD_EXITS: Attack = Attack {
    name: "flood_exits",
    group: Group::Flood,
    about: "64 requests of one key at once, and then 17 a second, of 20 orders with two exits each: 1,020 commands a second",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let order = json!({
            "op": "order", "instrument": "BTC-USD", "side": "buy", "type": "limit", "size": "0.001", "price": "29000",
            "time_in_force": "ioc", "take_profit": {"trigger": "31000"}, "stop_loss": {"trigger": "28000"},
        });
        let (key, body) = (field.key.clone(), json!({"commands": vec![order; 20]}).to_string());
        let message = move || request("POST", "/v1/orders/batch", &body, Some(&key));
        let count = field.of(64);
        let openings = (0..count).map(|_| message()).collect();
        vec![Plan { openings, ..talk(field.http, count, Vec::new(), Box::new(message), field.rate(17)) }]
    },
};

pub(super) const STOLEN: Attack = Attack {
    name: "stolen",
    group: Group::Malformed,
    about: "100 requests and 50 logons by FIX a second that somebody signed before, for something else, an hour ago, or with a \
            key that was revoked or has expired",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        vec![
            talk(field.http, 8, Vec::new(), in_turn(stolen_requests(field)), field.rate(100)),
            talk(field.facade, 8, Vec::new(), in_turn(stolen_facade(field)), field.rate(100)),
            garbage(field.fix, field.rate(50), stolen_logons(field, ORDERS)),
            garbage(field.fix_data, field.rate(50), stolen_logons(field, DATA)),
        ]
    },
};

pub(super) const HUGE: Attack = Attack {
    name: "huge",
    group: Group::Malformed,
    about: "20 connections a second to each port with requests that are as large as they may be, larger, or empty",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        vec![
            garbage(field.http, field.rate(20), huge_requests(field.key)),
            garbage(field.facade, field.rate(20), huge_facade(field.key)),
            garbage(field.fix, field.rate(20), huge_fix(field, ORDERS)),
            garbage(field.fix_data, field.rate(20), huge_fix(field, DATA)),
        ]
    },
};

/// The beginning of a handshake of TLS 1.3 as a client sends it.
fn client_hello() -> Vec<u8> {
    let with_length = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let extension = |kind: u16, bytes: &[u8]| [&kind.to_be_bytes()[..], &with_length(bytes)].concat();
    let extensions = [
        // Versions: 1.3. Groups: x25519. Signatures: ECDSA, Ed25519 and RSA. The share of a key: any 32 bytes are one.
        extension(0x002b, &[2, 3, 4]),
        extension(0x000a, &with_length(&[0, 0x1d])),
        extension(0x000d, &with_length(&[4, 3, 8, 7, 8, 4])),
        extension(0x0033, &with_length(&[&[0, 0x1d, 0, 32][..], &[9; 32]].concat())),
    ];
    // A version, random bytes, a session, one cipher and no compression.
    let fixed = [&[3, 3][..], &[7; 32], &[32], &[8; 32], &[0, 2, 0x13, 1, 1, 0]].concat();
    let hello = [fixed, with_length(&extensions.concat())].concat();
    let handshake = [vec![1, 0], with_length(&hello)].concat();
    [vec![22, 3, 1], with_length(&handshake)].concat()
}

/// Requests that are signed, and not good.
fn stolen_requests(field: &Field<'_>) -> Vec<Vec<u8>> {
    let of = |key: &ClientKey, stamp_ns: u64, method: &str, path: &str| {
        let fields = key.sign(&Request { method: "GET", path: "/v1/account", body: b"" }, stamp_ns, "siege");
        with_fields(method, path, &fields)
    };
    let now_ns = walras_access::now().0;
    let mut all = vec![
        // Recorded: it is good once, while it is fresh.
        of(field.key, now_ns, "GET", "/v1/account"),
        of(field.key, now_ns, "GET", "/v1/orders"),
        of(field.key, now_ns, "DELETE", "/v1/account"),
        of(field.key, now_ns - HOUR_NS, "GET", "/v1/account"),
        of(field.key, now_ns + HOUR_NS, "GET", "/v1/account"),
        of(field.key, now_ns, "GET", "/v1/admin/accounts"),
    ];
    all.extend(field.ended.iter().map(|key| of(key, now_ns, "GET", "/v1/account")));
    all
}

fn with_fields(method: &str, path: &str, fields: &AuthFields) -> Vec<u8> {
    let signed: String = headers(fields).into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nhost: venue\r\n{signed}\r\n").into_bytes()
}

fn stolen_facade(field: &Field<'_>) -> Vec<Vec<u8>> {
    let at = |key: &ClientKey, stamp_ms: u64| signed_text(key, "GET", "/api/v3/account", &format!("timestamp={stamp_ms}"));
    let now_ms = now_ms();
    let mut all: Vec<Vec<u8>> =
        [now_ms, now_ms - HOUR_NS / 1_000_000, now_ms + HOUR_NS / 1_000_000].map(|at_ms| at(field.key, at_ms)).into();
    all.extend(field.ended.iter().map(|key| at(key, now_ms)));
    all
}

/// Logons that are signed, and not good but for the first: it is for one connection.
fn stolen_logons(field: &Field<'_>, target: &str) -> Vec<Vec<u8>> {
    let now_ns = walras_access::now().0;
    let good = logon(field.key, target, "STOLEN", 30);
    let other = if target == ORDERS { DATA } else { ORDERS };
    let id = field.key.key_id();
    let mut all = vec![
        good.clone(),
        good,
        logon(field.key, other, "STOLEN", 30),
        logon_at(&stamp_of(now_ns - HOUR_NS), field.key, (target, "STOLEN"), 30),
        logon_at(&stamp_of(now_ns + HOUR_NS), field.key, (target, "STOLEN"), 30),
        // The name of a key, with a secret and with a signature that are not its own.
        message(target, "STOLEN", ("A", 1), &format!("98=0|108=30|141=Y|553={id}|554={}|", "A".repeat(43))),
        message(target, "STOLEN", ("A", 1), &format!("98=0|108=30|141=Y|95=86|96={}|553={id}|", "A".repeat(86))),
    ];
    all.extend(field.ended.iter().map(|key| logon(key, target, "STOLEN", 30)));
    all
}

fn huge_requests(key: &ClientKey) -> Vec<Vec<u8>> {
    let order = |size: usize| {
        let body = format!(r#"{{"instrument":"BTC-USD","client_order_id":"{}"}}"#, "9".repeat(size));
        request("POST", "/v1/orders", &body, Some(key))
    };
    let framed = |length: usize| {
        let head = [&[0x81, 0xff][..], &(length as u64).to_be_bytes(), &[0; 4]].concat();
        [upgrade(), head, vec![b'"'; length]].concat()
    };
    vec![
        order(16_000),
        order(17_000),
        order(3_000_000),
        request("POST", "/v1/orders", "", Some(key)),
        request("POST", "/v1/orders", "{}", Some(key)),
        request("POST", "/v1/orders", "[]", Some(key)),
        request("GET", &format!("/v1/orders?cursor={}", "9".repeat(60_000)), "", Some(key)),
        request("GET", &format!("/v1/instruments?{}", "a=1&".repeat(10_000)), "", None),
        // As many headers as fit a head.
        [b"GET /v1/status HTTP/1.1\r\n".to_vec(), b"x: y\r\n".repeat(10_000), b"\r\n".to_vec()].concat(),
        framed(16_384),
        framed(16_385),
        framed(2_000_000),
        [upgrade(), vec![0x81, 0x80, 0, 0, 0, 0]].concat(),
        // A message in more pieces than one could keep.
        [upgrade(), vec![0x01, 0x81, 0, 0, 0, 0, b'x'], [0x00, 0x81, 0, 0, 0, 0, b'x'].repeat(20_000)].concat(),
    ]
}

fn huge_facade(key: &ClientKey) -> Vec<Vec<u8>> {
    let form = |body: &str| request("POST", "/api/v3/order", body, None);
    let signed = |text: &str| signed_text(key, "POST", "/api/v3/order", text);
    vec![
        form(&"a=1&".repeat(4_096)),
        form(&"x".repeat(16_385)),
        form(&"x".repeat(2_000_000)),
        form(""),
        signed(""),
        signed(&"%20".repeat(5_000)),
        signed(&format!("symbol={}", "B".repeat(16_000))),
        request("GET", &format!("/api/v3/ticker/price?symbols=[{}]", "%22A%22,".repeat(2_000)), "", None),
        upgrade_to(&format!("/stream?streams={}", "btcusd@trade/".repeat(1_200))),
    ]
}

/// A good logon, and then what is as large as it may be and larger.
fn huge_fix(field: &Field<'_>, target: &str) -> Vec<Vec<u8>> {
    let messages = [
        ("D", format!("11={}|", "x".repeat(15_000))),
        ("D", format!("11={}|", "x".repeat(17_000))),
        ("D", String::new()),
        ("D", "11=|55=|54=|".to_owned()),
        ("D", "9999=1|".repeat(2_000)),
        ("V", format!("262=huge|263=1|264=0|265=0|267=3|269=0|269=1|269=2|146=2000|{}", "55=BTC/USD|".repeat(2_000))),
        ("V", "262=huge|263=1|264=0|265=0|267=2|269=0|269=1|146=99999999|55=BTC/USD|".to_owned()),
        ("j", format!("58={}|", "y".repeat(1_000_000))),
    ];
    let all = messages.iter().enumerate().map(|(number, (msg_type, body))| {
        // A session of its own: each logon is good once.
        let name = format!("HUGE-{number}");
        [logon(field.key, target, &name, 30), message(target, &name, (msg_type, 2), body)].concat()
    });
    all.collect()
}
