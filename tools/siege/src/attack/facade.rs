//! Attacks by signed requests of the Binance dialect, by its WebSocket API, and calls that Binance answers with an error of a name.

use serde_json::json;
use walras_gateway::ClientKey;

use super::{Attack, Group, Needs, talk};
use crate::binance::{now_ms, resting_parameters, sent, sign_parameters, signature, signed, signed_text};
use crate::crowd::Plan;
use crate::venue::Venue;
use crate::wire::{frame, request, upgrade_to};

pub(super) const DEAF_FACADE_SOCKET: Attack = Attack {
    name: "deaf_facade_socket",
    group: Group::Deaf,
    about: "32 connections of the Binance dialect's WebSocket API that ask for 300 books a second and never read",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let ask = || frame(1, br#"{"id":1,"method":"depth","params":{"symbol":"BTCUSD","limit":1000}}"#);
        let plan = talk(field.facade, 32, upgrade_to("/ws-api/v3"), Box::new(ask), field.rate(300));
        vec![Plan { reads: false, ..plan }]
    },
};

pub(super) const ERRORS_FACADE: Attack = Attack {
    name: "errors_facade",
    group: Group::Malformed,
    about: "200 calls a second of the Binance dialect that are answered with an error of a name, each in turn",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let (key, mut left) = (field.key.clone(), Vec::new());
        let call = move || {
            if left.is_empty() {
                left = calls(&key);
            }
            left.pop().map(|call: NamedError| call.request).unwrap_or_default()
        };
        vec![talk(field.facade, 16, Vec::new(), Box::new(call), field.rate(200))]
    },
};

pub(super) const FLOOD_FACADE_ORDERS: Attack = Attack {
    name: "flood_facade_orders",
    group: Group::Flood,
    about: "2,000 signed orders a second of one key in the Binance dialect, whose key is throttled at 1,000",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let (key, mut id) = (field.key.clone(), 0_u64);
        let order = move || {
            id += 1;
            let order =
                format!("symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=IOC&quantity=0.001&price=29000&newClientOrderId=f{id}");
            signed(&key, "POST", "/api/v3/order", &order)
        };
        vec![talk(field.facade, 32, Vec::new(), Box::new(order), field.rate(2_000))]
    },
};

pub(super) const FLOOD_FACADE_SOCKET: Attack = Attack {
    name: "flood_facade_socket",
    group: Group::Flood,
    about: "2,000 signed orders a second of one key by the Binance dialect's WebSocket API, over 16 connections",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let (key, mut id) = (field.key.clone(), 0_u64);
        let order = move || {
            id += 1;
            let mut parameters = resting_parameters(id);
            parameters["timeInForce"] = "IOC".into();
            parameters["newClientOrderId"] = format!("s{id}").into();
            sign_parameters(&key, &mut parameters);
            frame(1, json!({"id": id, "method": "order.place", "params": parameters}).to_string().as_bytes())
        };
        vec![talk(field.facade, 16, upgrade_to("/ws-api/v3"), Box::new(order), field.rate(2_000))]
    },
};

/// A call that Binance answers with an error of a name.
#[derive(Clone, Debug)]
pub struct NamedError {
    /// What is wrong, in a few words.
    pub what: &'static str,
    /// The dialect's number of the error.
    pub code: i64,
    /// The request.
    pub request: Vec<u8>,
}

/// Such calls to a venue: each is wrong in one way. They are stamped, and so they are to be sent soon.
#[must_use]
pub fn named_errors(venue: &Venue) -> Vec<NamedError> {
    venue.participants.last().map(|attackers| calls(&attackers.key)).unwrap_or_default()
}

fn calls(key: &ClientKey) -> Vec<NamedError> {
    const ORDER: &str = "symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.001&price=29000";
    let path = "/api/v3/order";
    let call = |what, code, request| NamedError { what, code, request };
    let order = |what, code, from: &str, to: &str| call(what, code, signed(key, "POST", path, &ORDER.replace(from, to)));
    let more = |what, code, more: &str| call(what, code, signed(key, "POST", path, &format!("{ORDER}&{more}")));
    let get = |what, code, path: &str| call(what, code, request("GET", path, "", None));
    let id = key.key_id();
    let stale = format!("{ORDER}&timestamp={}", now_ms() - 10_000);
    let early = format!("{ORDER}&timestamp={}", now_ms() + 5_000);
    let changed = format!("{path}?{ORDER}&timestamp={}&signature={}", now_ms(), signature(key, ORDER));
    vec![
        order("illegal characters", -1100, "29000", "1e5"),
        more("a parameter twice", -1101, "quantity=1"),
        more("too many parameters", -1101, &"a&b&".repeat(99)),
        order("a parameter that is missing", -1102, "&quantity=0.001", ""),
        more("a parameter that nobody reads", -1104, "what=1"),
        order("an empty parameter", -1105, "price=29000", "price="),
        more("a parameter that is not required", -1106, "trailingDelta=150"),
        order("a time in force that there is not", -1115, "=GTC", "=GTX"),
        order("an order type that there is not", -1116, "=LIMIT", "=PEG"),
        order("a side that there is not", -1117, "=BUY", "=HOLD"),
        get("an interval that there is not", -1120, "/api/v3/klines?symbol=BTCUSD&interval=7y"),
        order("a symbol that there is not", -1121, "BTCUSD", "NOPE"),
        more("a window that is too long", -1131, "recvWindow=60001"),
        order("a price that is no tick", -1013, "29000", "29000.001"),
        order("more than the account has", -2010, "0.001", "90000"),
        call("a cancel of no order", -2011, signed(key, "DELETE", path, "symbol=BTCUSD&origClientOrderId=nobody")),
        call("a query of no order", -2013, signed(key, "GET", path, "symbol=BTCUSD&origClientOrderId=nothing")),
        call("a stamp that is old", -1021, signed_text(key, "POST", path, &stale)),
        call("a stamp of the future", -1021, signed_text(key, "POST", path, &early)),
        call("a signature of something else", -1022, sent(id.as_str(), "POST", &changed)),
        call("no signature", -1102, sent(id.as_str(), "POST", &format!("{path}?{ORDER}"))),
        call("no key", -2014, request("POST", &format!("{path}?{ORDER}&signature=00"), "", None)),
        call("a key that there is not", -2015, sent("ed_nobody", "POST", &changed)),
        get("an address that there is not", -1020, "/api/v3/nothing"),
    ]
}
