//! Attacks on the ports of FIX and of the Binance dialect.

use walras_gateway::ClientKey;

use super::{Attack, Group, Needs, garbage, noise, of_http, talk};
use crate::crowd::Plan;
use crate::fix::{DATA, ORDERS, logon, message, unknown_logon};
use crate::wire::{request, upgrade_to};

pub(super) const IDLE_FIX: Attack = Attack {
    name: "idle_fix",
    group: Group::Idle,
    about: "750 connections to each port of FIX that send nothing",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| [field.fix, field.fix_data].map(|port| Plan::standing(port, field.of(750), Vec::new())).into(),
};

pub(super) const SLOW_FIX: Attack = Attack {
    name: "slow_fix",
    group: Group::Idle,
    about: "500 logons by FIX that come a byte a second",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let drip = unknown_logon();
        vec![Plan { drip: drip[1..].to_vec(), ..Plan::standing(field.fix, field.of(500), drip[..1].to_vec()) }]
    },
};

pub(super) const SILENT_FIX: Attack = Attack {
    name: "silent_fix",
    group: Group::Idle,
    about: "100 sessions of market data by FIX that log on, read, and send nothing more",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let openings = (0..100).map(|number| logon(field.key, DATA, &format!("SILENT-{number}"), 1));
        vec![Plan { reads: true, openings: openings.collect(), ..Plan::standing(field.fix_data, field.of(100), Vec::new()) }]
    },
};

pub(super) const DEAF_FIX: Attack = Attack {
    name: "deaf_fix",
    group: Group::Deaf,
    about: "100 readers of the whole book by FIX, by level and by order, that never read",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let openings = (0..100).map(|number| {
            let name = format!("DEAF-{number}");
            let mut bytes = logon(field.key, DATA, &name, 600);
            let asks = "262=all|263=1|264=0|265=0|267=3|269=0|269=1|269=2|146=1|55=*|";
            bytes.extend(message(DATA, &name, ("V", 2), asks));
            let by_order = "262=orders|263=1|264=0|265=0|266=N|267=2|269=0|269=1|146=1|55=*|";
            bytes.extend(message(DATA, &name, ("V", 3), by_order));
            bytes
        });
        vec![Plan { openings: openings.collect(), ..Plan::standing(field.fix_data, field.of(100), Vec::new()) }]
    },
};

pub(super) const DEAF_FIX_BOOKS: Attack = Attack {
    name: "deaf_fix_books",
    group: Group::Deaf,
    about: "a session of market data by FIX that asks for 800 whole books a second and never reads: it has to be ended",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![Plan { reads: false, opened_times: 1, ..books(field, "DEAF-B", 800) }],
};

pub(super) const MALFORMED_FIX: Attack = Attack {
    name: "malformed_fix",
    group: Group::Malformed,
    about: "100 connections a second to each port of FIX with bytes that are no message, and messages that are no logon",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| [field.fix, field.fix_data].map(|port| garbage(port, field.rate(100), of_fix())).into(),
};

pub(super) const NUMBERS_FIX: Attack = Attack {
    name: "numbers_fix",
    group: Group::Malformed,
    about: "50 signed logons a second by FIX, the first eight good: their numbers leap, go back, and ask for what never was",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![garbage(field.fix, field.rate(50), of_numbers(field.key))],
};

pub(super) const FLOOD_FIX_LOGON: Attack = Attack {
    name: "flood_fix_logon",
    group: Group::Flood,
    about: "200 logons a second by FIX with a key that is none",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![garbage(field.fix, field.rate(200), vec![unknown_logon()])],
};

pub(super) const FLOOD_FIX_RESEND: Attack = Attack {
    name: "flood_fix_resend",
    group: Group::Flood,
    about: "1,000 requests a second in one session of FIX to send everything again",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let mut seq = 1;
        let ask = move || {
            seq += 1;
            message(ORDERS, "AGAIN", ("2", seq), "7=1|16=0|")
        };
        vec![talk(field.fix, 1, logon(field.key, ORDERS, "AGAIN", 600), Box::new(ask), field.rate(1_000))]
    },
};

pub(super) const FLOOD_FIX_REPLAYS: Attack = Attack {
    name: "flood_fix_replays",
    group: Group::Flood,
    about: "200 logons a second by FIX with a good key, in new sessions that lack all past reports, next to 500 orders that make some",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let logons = (0..field.of(1_000)).map(|number| logon(field.key, ORDERS, &format!("PAST-{number}"), 30)).collect();
        vec![garbage(field.fix, field.rate(200), logons), orders(field, "PAST-O", 500)]
    },
};

pub(super) const DEAF_FACADE: Attack = Attack {
    name: "deaf_facade",
    group: Group::Deaf,
    about: "300 readers of all streams of the Binance dialect that never read",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let streams = "/stream?streams=btcusd@depth@100ms/btcusd@trade/btcusd@bookTicker/btcusd@kline_1m/btcusd@aggTrade";
        vec![Plan::standing(field.facade, field.of(300), upgrade_to(streams))]
    },
};

pub(super) const MALFORMED_FACADE: Attack = Attack {
    name: "malformed_facade",
    group: Group::Malformed,
    about: "200 connections a second to the Binance dialect with bytes that are no request, and requests with wrong parameters",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![garbage(field.facade, field.rate(200), [of_http(), of_facade()].concat())],
};

pub(super) const FLOOD_FACADE: Attack = Attack {
    name: "flood_facade",
    group: Group::Flood,
    about: "3,000 requests a second for the book in the Binance dialect",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let ask = || request("GET", "/api/v3/depth?symbol=BTCUSD&limit=100", "", None);
        vec![talk(field.facade, 32, ask(), Box::new(ask), field.rate(3_000))]
    },
};

pub(super) const DEAF_FIX_ORDERS: Attack = Attack {
    name: "deaf_fix_orders",
    group: Group::Deaf,
    about: "a session of FIX that sends 1,000 orders a second and reads no report",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![Plan { reads: false, ..orders(field, "DEAF-O", 1_000) }],
};

pub(super) const FLOOD_FIX_ORDERS: Attack = Attack {
    name: "flood_fix_orders",
    group: Group::Flood,
    about: "2,000 orders a second in one session of FIX, whose key is throttled at 1,000",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![orders(field, "FLOOD-O", 2_000)],
};

pub(super) const FLOOD_FIX_REPLACES: Attack = Attack {
    name: "flood_fix_replaces",
    group: Group::Flood,
    about: "a session of FIX that replaces one order 500 times a second, each time under another name, next to 400 orders that come and go",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let mut opening = logon(field.key, ORDERS, "QUOTE", 600);
        let order = "55=BTC/USD|54=1|60=20260101-00:00:00.000|38=0.001|40=2|";
        // Far from the others' prices: it stands, whatever they do.
        opening.extend(message(ORDERS, "QUOTE", ("D", 2), &format!("11=quote-2|{order}44=20000|59=1|")));
        let mut seq = 2;
        let replace = move || {
            seq += 1;
            let price = 20_000 + seq % 100;
            let body = format!("11=quote-{seq}|41=quote-{}|{order}44={price}|", seq - 1);
            message(ORDERS, "QUOTE", ("G", seq), &body)
        };
        vec![talk(field.fix, 1, opening, Box::new(replace), field.rate(500)), orders(field, "QUOTE-O", 400)]
    },
};

pub(super) const FLOOD_FIX_DATA: Attack = Attack {
    name: "flood_fix_data",
    group: Group::Flood,
    about: "1,000 requests for whole books a second in one session of market data by FIX",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![books(field, "FLOOD-D", 1_000)],
};

/// A session that asks for whole books.
fn books(field: &super::Field<'_>, name: &'static str, per_second: usize) -> Plan {
    let mut seq = 1;
    let ask = move || {
        seq += 1;
        message(DATA, name, ("V", seq), &format!("262={seq}|263=0|264=0|267=3|269=0|269=1|269=2|146=1|55=*|"))
    };
    talk(field.fix_data, 1, logon(field.key, DATA, name, 600), Box::new(ask), field.rate(per_second))
}

/// A session that sends orders which do not rest.
fn orders(field: &super::Field<'_>, name: &'static str, per_second: usize) -> Plan {
    let mut seq = 1;
    let order = move || {
        seq += 1;
        let body = format!("11={seq}|55=BTC/USD|54=1|60=20260101-00:00:00.000|38=0.001|40=2|44=29000|59=3|");
        message(ORDERS, name, ("D", seq), &body)
    };
    talk(field.fix, 1, logon(field.key, ORDERS, name, 600), Box::new(order), field.rate(per_second))
}

fn of_fix() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..10_u64).map(|seed| noise(1 << seed, seed)).collect();
    let whole = unknown_logon();
    all.extend([
        whole[..whole.len() - 1].to_vec(),
        b"8=FIX.4.4\x019=99999999\x01".to_vec(),
        b"8=FIX.4.4\x019=5\x0135=0\x0110=000\x01".to_vec(),
        b"8=FIX.9.9\x019=5\x0135=A\x0110=000\x01".to_vec(),
        b"8=FIX.4.4\x01".repeat(8_000),
        message(ORDERS, "NOBODY", ("D", 1), "11=1|55=BTC/USD|54=1|38=1|40=1|"),
        message(ORDERS, "NOBODY", ("A", 1), "98=0|108=30|"),
        message("NOBODY", "NOBODY", ("A", 1), "98=0|108=30|553=x|554=y|"),
        // A field as long as a message may be, and longer.
        message(ORDERS, "NOBODY", ("A", 1), &format!("98=0|108=30|553={}|", "x".repeat(15_000))),
        message(ORDERS, "NOBODY", ("A", 1), &format!("98=0|108=30|553={}|", "x".repeat(60_000))),
        message(ORDERS, &"n".repeat(10_000), ("A", 1), "98=0|108=30|553=x|554=y|"),
        // A length of raw data that is not there.
        message(ORDERS, "NOBODY", ("A", u64::MAX), "98=0|108=30|553=x|95=999999999|96=a|"),
        request("GET", "/api/v3/ping", "", None),
    ]);
    all
}

/// Sessions of a participant with a key, whose numbers are out of order. Each logon is good once.
fn of_numbers(key: &ClientKey) -> Vec<Vec<u8>> {
    let order = "11=1|55=BTC/USD|54=1|38=0.001|40=2|44=29000|60=20260101-00:00:00.000|";
    let games: [&[(&str, u64, &str)]; 8] = [
        &[("D", 1_000_000_000, order)],
        &[("D", u64::MAX, order)],
        &[("4", 2, "36=2000000000|"), ("D", 2_000_000_000, order)],
        &[("4", 2, "43=Y|122=20260101-00:00:00.000|123=Y|36=16000|"), ("D", 16_000, order)],
        &[("2", 2, "7=1|16=999999999|"), ("2", 3, "7=999999999|16=1|"), ("2", 4, "7=0|16=0|")],
        &[("D", 1, order), ("D", 0, order)],
        &[("A", 2, "98=0|108=30|141=Y|"), ("A", 1, "98=0|108=30|141=Y|")],
        &[("1", 500, "112=early|"), ("1", 400, "112=early|"), ("1", 300, "112=early|"), ("5", 2, "")],
    ];
    let sessions = games.iter().enumerate().map(|(number, game)| {
        // A session of its own: two logons of one session have to differ in SendingTime(52), and these are made in one moment.
        let name = format!("GAME-{number}");
        let mut bytes = logon(key, ORDERS, &name, 30);
        for (msg_type, seq, body) in *game {
            bytes.extend(message(ORDERS, &name, (msg_type, *seq), body));
        }
        bytes
    });
    sessions.collect()
}

/// Requests of the dialect with parameters that are wrong, missing, too many and too long.
fn of_facade() -> Vec<Vec<u8>> {
    let get = |path: &str| request("GET", path, "", None);
    let many: String = (0..3_000).map(|number| format!("p{number}=1&")).collect();
    vec![
        get("/api/v3/depth"),
        get("/api/v3/depth?symbol=%ff%fe"),
        get("/api/v3/depth?symbol=BTCUSD&symbol=BTCUSD"),
        get("/api/v3/klines?symbol=BTCUSD&interval=7y&limit=99999999999999999999"),
        get(&format!("/api/v3/depth?{many}")),
        get(&format!("/api/v3/depth?symbol={}", "B".repeat(50_000))),
        request("POST", "/api/v3/order", &many, None),
        request("POST", "/api/v3/order", "symbol=BTCUSD&signature=", None),
        request("DELETE", "/api/v3/order?symbol=BTCUSD&timestamp=1&signature=00", "", None),
        upgrade_to("/stream?streams=nothing@all/btcusd@depth@1ns"),
        upgrade_to("/ws/00000000000000000000000000000000"),
    ]
}
