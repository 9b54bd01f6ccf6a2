//! Signed requests without a number, recorded on their way and sent again to another leader: they are refused, and nothing happens
//! twice.

use serde_json::{Value, json};
use walras_access::now;
use walras_client::{headers, read_key, sign_at};
use walras_gateway::{AuthFields, ClientKey, Request};
use walras_types::{RejectReason, TimeNs};

use super::{Cluster, PATIENCE, Shape, until};

/// A request as it was recorded.
struct Recorded {
    path: &'static str,
    body: String,
    fields: AuthFields,
}

impl Recorded {
    /// Stamped as late as it may be: what is stale would be refused in any case.
    fn new(key: &ClientKey, path: &'static str, body: &Value) -> Self {
        let body = body.to_string();
        let stamp = TimeNs(now().0 + 800_000_000);
        let fields = sign_at(stamp, key, &Request { method: "POST", path, body: body.as_bytes() });
        Self { path, body, fields }
    }

    /// The status and the body of the answer.
    fn send(&self, cluster: &Cluster, to: u64) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.post(format!("{}{}", cluster.local.replicas[to as usize - 1].url(), self.path));
        for (name, value) in headers(&self.fields) {
            request = request.header(name, value);
        }
        let mut answer = request.send(self.body.as_str()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    fn is_refused_as_used(&self, cluster: &Cluster, to: u64) {
        let (status, answer) = self.send(cluster, to);
        let reused = u64::from(RejectReason::NonceReused.number());
        assert_eq!((status, answer["error"]["code"].as_u64()), (401, Some(reused)), "{answer}");
    }
}

/// Sends a recorded `auth` message over a WebSocket of its own; what the venue answers.
fn authenticate(cluster: &Cluster, to: u64, fields: &AuthFields) -> Value {
    let url = cluster.local.replicas[to as usize - 1].url().replace("http", "ws") + "/v1/ws";
    let (mut socket, _) = tungstenite::connect(url).unwrap();
    let AuthFields { key, timestamp, nonce, signature } = fields;
    let auth = json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature});
    socket.send(tungstenite::Message::text(auth.to_string())).unwrap();
    loop {
        if let tungstenite::Message::Text(text) = socket.read().unwrap() {
            let answer: Value = serde_json::from_str(text.as_str()).unwrap();
            if answer["type"] == "authenticated" || answer["type"] == "error" {
                return answer;
            }
        }
    }
}

fn sent_again_to_the_next_leader(mut cluster: Cluster) {
    let accounts = cluster.market(2);
    let first = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let operator = cluster.operator(first);
    let maker = operator.with_key(accounts[1].1.clone());
    let asks =
        json!({"instrument": "BTC-USD", "client_order_id": "1", "side": "sell", "type": "limit", "size": "100", "price": "30000"});
    maker.signed("POST", "/v1/orders", Some(&asks)).unwrap();
    for replica in &cluster.local.replicas {
        until("it takes what is stamped now", || {
            let status = operator.at(&replica.url()).get("/v1/status").unwrap();
            status["accepts_timestamps_from_ns"].as_str().is_none_or(|from| from.parse::<u64>().unwrap() <= now().0)
        });
    }

    // It trades at once and is gone, so that a second one would not be refused for its name.
    let take = json!({"instrument": "BTC-USD", "client_order_id": "5", "side": "buy", "type": "market", "size": "1"});
    let order = Recorded::new(&accounts[0].1, "/v1/orders", &take);
    let command = Recorded::new(&read_key(&cluster.local.operator_key()).unwrap(), "/v1/admin/accounts", &json!({}));
    let auth = sign_at(TimeNs(now().0 + 800_000_000), &accounts[0].1, &Request::WEB_SOCKET);
    assert_eq!(authenticate(&cluster, first, &auth)["type"], "authenticated");
    for recorded in [&order, &command] {
        let (status, answer) = recorded.send(&cluster, first);
        assert_eq!(status, 200, "{answer}");
        recorded.is_refused_as_used(&cluster, first);
    }
    cluster.kill(first);
    let second = cluster.local.wait_for_leader(PATIENCE).unwrap();
    assert_ne!(second, first);
    order.is_refused_as_used(&cluster, second);
    command.is_refused_as_used(&cluster, second);
    let refused = authenticate(&cluster, second, &auth);
    assert_eq!(refused["error"]["code"], RejectReason::NonceReused.number(), "{refused}");
    let account = |number: u32| cluster.operator(second).signed("GET", &format!("/v1/admin/accounts/{number}"), None);
    let taker = maker.at(&cluster.local.replicas[second as usize - 1].url()).with_key(accounts[0].1.clone());
    assert_eq!(taker.signed("GET", "/v1/account", None).unwrap()["positions"][0]["position"], "1.0000", "it traded once");
    assert!(account(2).is_ok(), "the first command made it");
    assert!(account(3).unwrap_err().is(RejectReason::UnknownAccount), "the copy made none");
}

#[test]
fn a_signed_request_is_carried_out_once_over_a_change_of_leader() {
    sent_again_to_the_next_leader(Cluster::start(0));
}

#[test]
fn the_same_with_fair_access() {
    let more = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    sent_again_to_the_next_leader(Cluster::of(Shape { more, ..Shape::default() }));
}
