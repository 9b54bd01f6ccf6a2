//! A signed request is taken once, whatever stops the venue and whatever happens to its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Value, json};
use tempfile::TempDir;
use walras_access::{Access, Clock, now, operator_key_file};
use walras_client::{headers, read_key};
use walras_gateway::{AuthFields, ClientKey, Request};
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_types::{RejectReason, TimeNs};

use crate::support::{Raw, RawAnswer, Socket, config, operator, restart_by};

const SECOND: u64 = 1_000_000_000;
const T: u64 = 1_800_000_000 * SECOND;
const ACCOUNT: (&str, &str) = ("/v1/admin/accounts", "{}");
const KEY: (&str, &str) = ("/v1/admin/keys", "{\"account_id\": null, \"permissions\": [\"operator\"]}");

/// A venue whose clock the test sets.
struct Venue {
    shown: Arc<AtomicU64>,
    dir: TempDir,
    node: Option<Node>,
    key: ClientKey,
}

impl Venue {
    fn start_at(at_ns: u64) -> Self {
        let (dir, shown) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(at_ns)));
        let node = restart_by(clock(&shown), RealDisk, dir.path(), &config());
        let key = read_key(&operator_key_file(dir.path())).unwrap();
        Self { shown, dir, node: Some(node), key }
    }

    fn set_clock(&self, at_ns: u64) {
        self.shown.store(at_ns, Relaxed);
    }

    fn stop(&mut self) {
        self.node.take().unwrap().stop();
    }

    fn start_again_at(&mut self, at_ns: u64) {
        self.set_clock(at_ns);
        self.node = Some(restart_by(clock(&self.shown), RealDisk, self.dir.path(), &config()));
    }

    fn url(&self) -> String {
        format!("http://{}", self.node.as_ref().unwrap().address())
    }

    fn sign(&self, (path, body): (&str, &str), stamp_ns: u64, nonce: &str) -> AuthFields {
        self.key.sign(&Request { method: "POST", path, body: body.as_bytes() }, stamp_ns, nonce)
    }

    fn send(&self, (path, body): (&str, &str), fields: &AuthFields) -> RawAnswer {
        Raw { method: "POST", path, body: body.as_bytes(), key: None }.send_with(&self.url(), headers(fields))
    }

    fn accepts_timestamps_from_ns(&self) -> u64 {
        let status = Raw { method: "GET", path: "/v1/status", body: b"", key: None }.send_with(&self.url(), []).json();
        status["accepts_timestamps_from_ns"].as_str().unwrap().parse().unwrap()
    }

    /// The same bytes again, at moments from the first at which their stamp is not too far ahead to the last at which it is not too old.
    fn assert_stale_at(&self, what: (&str, &str), fields: &AuthFields, moments: &[u64]) {
        for &at_ns in moments {
            self.set_clock(at_ns);
            let again = self.send(what, fields);
            assert_eq!((again.status, again.code()), (401, u64::from(RejectReason::TimestampStale.number())), "at {at_ns}");
        }
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop();
        }
    }
}

fn clock(shown: &Arc<AtomicU64>) -> Clock {
    let shown = Arc::clone(shown);
    Clock::new(move || TimeNs(shown.load(Relaxed)))
}

fn account_id(answer: &RawAnswer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["account_id"].clone()
}

#[test]
fn a_request_stamped_ahead_is_not_taken_again_after_a_restart() {
    let mut venue = Venue::start_at(T);
    let first = venue.sign(ACCOUNT, T, "first");
    assert_eq!(account_id(&venue.send(ACCOUNT, &first)), 0, "nobody waits for the first start of all");
    let ahead = venue.sign(ACCOUNT, T + SECOND * 9 / 10, "ahead");
    assert_eq!(account_id(&venue.send(ACCOUNT, &ahead)), 1);
    venue.stop();
    venue.start_again_at(T + 1);
    venue.assert_stale_at(ACCOUNT, &first, &[T + 1]);
    venue.assert_stale_at(ACCOUNT, &ahead, &[T + 1]);
    // Whoever signs by what the status says need not wait.
    let from_ns = venue.accepts_timestamps_from_ns();
    assert_eq!(from_ns, T + 1 + SECOND + 1);
    venue.set_clock(T + 2);
    let fresh = venue.sign(ACCOUNT, from_ns, "fresh");
    assert_eq!(account_id(&venue.send(ACCOUNT, &fresh)), 2, "the replays made no account");
    let moments = [T + SECOND / 2, T + SECOND * 9 / 10, T + SECOND, T + 2 * SECOND, T + SECOND * 59 / 10, T + 60 * SECOND];
    venue.assert_stale_at(ACCOUNT, &ahead, &moments);
}

#[test]
fn nor_when_the_clock_was_set_back_meanwhile() {
    let mut venue = Venue::start_at(T);
    let taken = venue.sign(ACCOUNT, T + SECOND / 2, "taken");
    assert_eq!(account_id(&venue.send(ACCOUNT, &taken)), 0);
    venue.stop();
    venue.start_again_at(T - 3600 * SECOND);
    let from_ns = venue.accepts_timestamps_from_ns();
    assert_eq!(from_ns, T + SECOND + 1, "the log knows that the venue was running at T");
    let fresh = venue.sign(ACCOUNT, T - 3600 * SECOND, "fresh");
    let refused = venue.send(ACCOUNT, &fresh);
    assert!(refused.text.contains("wait 3600001 ms"), "{}", refused.text);
    venue.assert_stale_at(ACCOUNT, &taken, &[T - SECOND / 2, T, T + SECOND / 2, T + SECOND * 11 / 2]);
    let fresh = venue.sign(ACCOUNT, T + SECOND * 11 / 2, "fresh");
    assert_eq!(account_id(&venue.send(ACCOUNT, &fresh)), 1);
}

#[test]
fn nor_when_it_made_a_key_which_leaves_nothing_in_the_log() {
    let mut venue = Venue::start_at(T);
    venue.set_clock(T + 60 * SECOND);
    let taken = venue.sign(KEY, T + 60 * SECOND, "taken");
    assert_eq!(venue.send(KEY, &taken).status, 200);
    venue.stop();
    venue.start_again_at(T);
    assert_eq!(venue.accepts_timestamps_from_ns(), T + 61 * SECOND + 1, "the key file knows that the venue was running then");
    venue.assert_stale_at(KEY, &taken, &[T + 59 * SECOND, T + 60 * SECOND, T + 65 * SECOND]);
}

#[test]
fn nor_when_it_opened_a_connection_that_may_trade() {
    let mut venue = Venue::start_at(T);
    let account = venue.sign(ACCOUNT, T, "account");
    assert_eq!(account_id(&venue.send(ACCOUNT, &account)), 0);
    let trader = ("/v1/admin/keys", "{\"account_id\": 0, \"permissions\": [\"trade\"]}");
    let made = venue.send(trader, &venue.sign(trader, T, "key")).json();
    let key = ClientKey::from_token(made["key"].as_str().unwrap()).unwrap();
    venue.set_clock(T + 60 * SECOND);
    let fields = key.sign(&Request::WEB_SOCKET, T + 60 * SECOND, "socket");
    let (key, timestamp, nonce, signature) = (fields.key, fields.timestamp, fields.nonce, fields.signature);
    let auth = json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature});
    Socket::connect(&venue.url()).ask(&auth, "authenticated");
    venue.stop();
    venue.start_again_at(T);
    for at_ns in [T + 59 * SECOND, T + 60 * SECOND, T + 65 * SECOND] {
        venue.set_clock(at_ns);
        let refused = Socket::connect(&venue.url()).ask(&auth, "error");
        assert_eq!(refused["error"]["code"], RejectReason::TimestampStale.number(), "at {at_ns}");
    }
}

#[test]
fn new_keys_need_not_wait_for_a_clock_that_was_set_back() {
    let mut venue = Venue::start_at(T);
    let taken = venue.sign(ACCOUNT, T, "taken");
    assert_eq!(account_id(&venue.send(ACCOUNT, &taken)), 0);
    venue.stop();
    std::fs::remove_file(venue.dir.path().join(Access::FILE)).unwrap();
    venue.start_again_at(T - 3600 * SECOND);
    venue.key = read_key(&operator_key_file(venue.dir.path())).unwrap();
    assert_eq!(venue.accepts_timestamps_from_ns(), T - 3600 * SECOND);
    let fresh = venue.sign(ACCOUNT, T - 3600 * SECOND, "fresh");
    assert_eq!(account_id(&venue.send(ACCOUNT, &fresh)), 1);
}

#[test]
fn whose_clock_is_off_is_told_by_how_much() {
    let dir = tempfile::tempdir().unwrap();
    // Half a second more than what is looked for: the answer's way counts half, in either direction.
    let ahead = Clock::new(|| TimeNs(now().0 + 60 * SECOND + SECOND / 2));
    let node = restart_by(ahead, RealDisk, dir.path(), &config());
    let refused =
        operator(&format!("http://{}", node.address()), dir.path()).signed("POST", "/v1/admin/accounts", Some(&json!({})));
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("TimestampStale (105)") && said.contains("This computer's clock is 60"), "{said}");
    assert!(said.contains("ms behind the venue's: set it."), "{said}");
    node.stop();
}
