//! Load on a running venue: orders over its WebSocket on a fixed schedule, and how long each took to be answered.
//!
//! The schedule is open-loop: a command is due at its time whether or not earlier ones were answered, and its latency counts from
//! then. So a venue that falls behind shows it; a client that waits for each answer before the next command would hide it. The
//! answer comes when the command is durable and applied.
//!
//! Commands come in pairs on one connection: an order, and the command that removes it (see [`Mode`]). So the account holds few
//! orders during the load, and none after a run without failures.

mod market;
mod report;
mod socket;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use walras_access::now;
use walras_gateway::ClientKey;
use walras_terminal::progress::Slow;

use self::market::{Quote, quote};
pub use self::report::LoadReport;
use self::socket::{Connection, Received};
use crate::error::LoadError;
use crate::http::{Client, ClientError};
use crate::latency::Latencies;

/// How long to wait for answers after the last command was due.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between opening all connections and the first command.
const LEAD: Duration = Duration::from_millis(20);
/// Longest sleep of a sender before it checks whether to stop.
const NAP: Duration = Duration::from_millis(20);
/// Number of retries of a throttled cancel in the clean-up; the next constant is their interval.
const CLEANUP_TRIES: u32 = 40;
const CLEANUP_PAUSE: Duration = Duration::from_millis(50);
/// Remembered orders of a connection, to be cancelled if bids took other connections' offers.
const RECENT_MAX: usize = 64;
/// The reject reason of a throttled request.
const THROTTLED: u64 = walras_types::RejectReason::Throttled.number() as u64;
/// The reject reason of a cancel for an order that is already gone.
const UNKNOWN_ORDER: u64 = walras_types::RejectReason::UnknownOrder.number() as u64;

/// What the orders do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A bid of one lot far below the market, post-only; then its cancel. Nothing trades.
    Resting,
    /// An offer of one lot inside the spread; then a bid that takes it, from the same account. It pays the fees of both, and on a
    /// market where others trade they may take the offer first.
    Matching,
}

/// Options of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The venue, such as `http://127.0.0.1:7070`.
    pub url: String,
    /// The key that signs the orders.
    pub key: ClientKey,
    /// The instrument's symbol.
    pub instrument: String,
    /// Number of connections.
    pub connections: u32,
    /// Commands a second, over all connections.
    pub rate_per_second: u32,
    /// Duration.
    pub time: Duration,
    /// What the orders do.
    pub mode: Mode,
}

/// The schedule and content of the commands.
#[derive(Debug)]
struct Plan {
    quote: Quote,
    mode: Mode,
    pairs: u64,
    connections: u64,
    rate_per_second: u64,
    /// Of the first order; the others follow.
    first_id: u64,
}

impl Plan {
    fn new(options: &LoadOptions, quote: Quote) -> Self {
        let rate_per_second = u64::from(options.rate_per_second.max(1));
        let commands = u128::from(rate_per_second) * options.time.as_nanos() / 1_000_000_000;
        Self {
            quote,
            mode: options.mode,
            pairs: u64::try_from(commands / 2).unwrap_or(u64::MAX).max(1),
            connections: u64::from(options.connections.max(1)),
            rate_per_second,
            first_id: now().0,
        }
    }

    fn commands(&self) -> u64 {
        2 * self.pairs
    }

    /// Pairs of a connection, in order.
    fn pairs_of(&self, connection: u64) -> impl Iterator<Item = u64> {
        (connection..self.pairs).step_by(usize::try_from(self.connections).unwrap_or(usize::MAX))
    }

    fn due(&self, start: Instant, command: u64) -> Instant {
        let ns = u128::from(command) * 1_000_000_000 / u128::from(self.rate_per_second);
        start + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// The name of the order that a command enters. Only the second of a pair that matches enters one of its own.
    fn order_id(&self, command: u64) -> String {
        self.first_id.saturating_add(command).to_string()
    }

    fn message(&self, command: u64) -> String {
        let Quote { instrument, price, size } = &self.quote;
        let is_first = command.is_multiple_of(2);
        let mut message = match (self.mode, is_first) {
            (Mode::Resting, false) => {
                json!({"op": "cancel", "instrument": instrument, "client_order_id": self.order_id(command - 1)})
            }
            (Mode::Resting, true) => self.order("buy", price, size, command),
            (Mode::Matching, true) => self.order("sell", price, size, command),
            (Mode::Matching, false) => self.order("buy", price, size, command),
        };
        message["id"] = command.to_string().into();
        match (self.mode, is_first) {
            (_, true) => message["post_only"] = "reject".into(),
            (Mode::Matching, false) => {
                message["time_in_force"] = "ioc".into();
                message["self_trade"] = "allow".into();
            }
            (Mode::Resting, false) => {}
        }
        message.to_string()
    }

    fn order(&self, side: &str, price: &str, size: &str, command: u64) -> Value {
        json!({
            "op": "order",
            "instrument": self.quote.instrument,
            "client_order_id": self.order_id(command),
            "side": side,
            "type": "limit",
            "price": price,
            "size": size,
        })
    }
}

/// State shared by all connections.
#[derive(Debug, Default)]
struct Shared {
    answered: AtomicU64,
    stop: AtomicBool,
    /// The venue's first throttling message.
    throttled: Mutex<Option<String>>,
}

impl Shared {
    fn on_throttled(&self, detail: &str) {
        let mut first = self.throttled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert_with(|| detail.to_owned());
        self.stop.store(true, Ordering::Release);
    }
}

/// The results of a connection.
#[derive(Debug, Default)]
struct Seen {
    sent: u64,
    replies: u64,
    order_replies: u64,
    statuses: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    latency: Latencies,
    lateness: Latencies,
    /// Commands whose orders were accepted while the other one of the pair was not.
    open: BTreeSet<u64>,
    /// The last commands whose orders were accepted.
    recent: VecDeque<u64>,
    last_answer: Option<Instant>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.replies += other.replies;
        self.order_replies += other.order_replies;
        for (mine, theirs) in [(&mut self.statuses, other.statuses), (&mut self.refused, other.refused)] {
            theirs.into_iter().for_each(|(name, count)| *mine.entry(name).or_default() += count);
        }
        self.latency.add(&other.latency);
        self.lateness.add(&other.lateness);
        self.open.extend(other.open);
        self.recent.extend(other.recent);
        self.last_answer = self.last_answer.max(other.last_answer);
    }
}

/// Runs the load.
pub fn run(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    let client = Client::new(&options.url, Some(options.key.clone()));
    let quote = quote(&client, &options.instrument, options.mode)?;
    let plan = Plan::new(options, quote);
    let connections = (0..plan.connections).map(|_| Connection::open(&options.url, &options.key)).collect::<Result<Vec<_>, _>>()?;
    let shared = Shared::default();
    let start = Instant::now() + LEAD;
    let total = plan.commands();
    let (done, all_done) = channel::<()>();
    let (mut seen, broken) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..)
            .zip(connections)
            .map(|(number, connection)| {
                scope.spawn({
                    let (plan, shared, done) = (&plan, &shared, done.clone());
                    move || {
                        // Dropped at the end, so that the last one wakes who waits below.
                        let _done = done;
                        let seen = serve(connection, number, plan, start, shared);
                        if seen.is_err() {
                            shared.stop.store(true, Ordering::Release);
                        }
                        seen
                    }
                })
            })
            .collect();
        drop(done);
        let mut bar = Slow::new("loading", Some(total));
        while matches!(all_done.recv_timeout(NAP), Err(RecvTimeoutError::Timeout)) {
            bar.tell(shared.answered.load(Ordering::Relaxed));
        }
        bar.finish();
        let mut all = Seen::default();
        let mut broken = None;
        for worker in workers {
            match worker.join().expect("the worker of a connection does not panic") {
                Ok(seen) => all.add(seen),
                Err(e) => broken = Some(e),
            }
        }
        (all, broken)
    });
    let left_open = clean_up(&client, &plan, &seen);
    if let Some(broken) = broken {
        return Err(broken);
    }
    let throttled = shared.throttled.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(detail) = throttled {
        return Err(LoadError::Throttled { acknowledged: seen.replies, setting: setting_of(&detail), detail });
    }
    if seen.replies == 0 {
        let refused = seen.refused.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ");
        let refused = if refused.is_empty() { "no answer came in time".to_owned() } else { refused };
        return Err(LoadError::NothingTaken { sent: seen.sent, refused });
    }
    let last = seen.last_answer.take().unwrap_or(start);
    Ok(LoadReport::new(options, &plan, seen, last.saturating_duration_since(start), left_open))
}

/// The setting that limits the rate, derived from the venue's message.
fn setting_of(detail: &str) -> &'static str {
    if detail.contains("address") {
        "`throttle.source_requests_per_second` and `throttle.source_burst`"
    } else if detail.contains("subscriptions") {
        "`websocket.subscriptions_max`"
    } else {
        "`throttle.requests_per_second` and `throttle.burst`"
    }
}

/// One connection: this thread receives, another sends.
fn serve(connection: Connection, number: u64, plan: &Plan, start: Instant, shared: &Shared) -> Result<Seen, LoadError> {
    let (mut sender, mut receiver) = connection.split()?;
    let (sent, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let result = (|| {
                let mut lateness = Latencies::default();
                for command in plan.pairs_of(number).flat_map(|pair| [2 * pair, 2 * pair + 1]) {
                    let (message, due) = (plan.message(command), plan.due(start, command));
                    if !sleep_until(due, &shared.stop) {
                        break;
                    }
                    lateness.record(Instant::now().saturating_duration_since(due));
                    // Counted before sending, so that the answer never comes first.
                    sent.fetch_add(1, Ordering::AcqRel);
                    sender.send(message)?;
                }
                Ok::<_, LoadError>(lateness)
            })();
            is_done.store(true, Ordering::Release);
            result
        });
        let seen = receive(&mut receiver, plan, start, shared, || {
            // In this order: once `is_done` is set, the number is final.
            let is_done = is_done.load(Ordering::Acquire);
            (sent.load(Ordering::Acquire), is_done)
        });
        if seen.is_err() {
            shared.stop.store(true, Ordering::Release);
        }
        receiver.close();
        let lateness = sending.join().expect("the sender does not panic");
        let mut seen = seen?;
        seen.lateness = lateness?;
        seen.sent = sent.load(Ordering::Acquire);
        Ok(seen)
    })
}

/// Receives until all commands are answered, or no more answers are expected.
fn receive(
    receiver: &mut Connection,
    plan: &Plan,
    start: Instant,
    shared: &Shared,
    sent: impl Fn() -> (u64, bool),
) -> Result<Seen, LoadError> {
    let mut seen = Seen::default();
    let mut answers = 0;
    let mut give_up = plan.due(start, plan.commands()) + PATIENCE;
    loop {
        let (sent, is_done) = sent();
        if is_done && answers >= sent {
            return Ok(seen);
        }
        if shared.stop.load(Ordering::Acquire) {
            give_up = give_up.min(Instant::now() + PATIENCE / 5);
        }
        if Instant::now() > give_up {
            return Ok(seen);
        }
        let Received { kind, id, status, error } = match receiver.receive()? {
            Some(received) => received,
            None => continue,
        };
        let arrived = Instant::now();
        if let Some(error) = &error
            && error.code == THROTTLED
        {
            shared.on_throttled(error.detail.as_deref().unwrap_or(&error.message));
        }
        if kind != "reply" && kind != "error" {
            continue;
        }
        answers += 1;
        shared.answered.fetch_add(1, Ordering::Relaxed);
        seen.last_answer = Some(arrived);
        if let Some(error) = error {
            *seen.refused.entry(error.name).or_default() += 1;
            continue;
        }
        let Some(command) = id.as_deref().and_then(|id| id.parse::<u64>().ok()) else { continue };
        seen.latency.record(arrived.saturating_duration_since(plan.due(start, command)));
        seen.replies += 1;
        seen.order_replies += u64::from(command.is_multiple_of(2) || plan.mode == Mode::Matching);
        if command.is_multiple_of(2) {
            seen.open.insert(command);
            if seen.recent.len() == RECENT_MAX {
                seen.recent.pop_front();
            }
            seen.recent.push_back(command);
        } else {
            seen.open.remove(&(command - 1));
        }
        *seen.statuses.entry(status.unwrap_or_default()).or_default() += 1;
    }
}

/// Sleeps; returns whether to continue.
fn sleep_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP)); // pause: until the command is due
    }
}

/// Cancels orders that may be left; returns how many could not be cancelled.
fn clean_up(client: &Client, plan: &Plan, seen: &Seen) -> u64 {
    let cancel = |command: &u64| {
        let path = format!("/v1/orders/{}/{}", plan.quote.instrument.replace('/', "-"), plan.order_id(*command));
        for _ in 0..CLEANUP_TRIES {
            match client.signed("DELETE", &path, None) {
                Ok(_) | Err(ClientError::Refused { code: UNKNOWN_ORDER, .. }) => return true,
                Err(ClientError::Refused { code: THROTTLED, .. }) => std::thread::sleep(CLEANUP_PAUSE), // pause: the venue asks for it
                Err(_) => return false,
            }
        }
        false
    };
    // Resting orders are cancelled by name. In matching mode a bid takes the first offer in the queue: if one bid is missing, the
    // remaining offer may belong to another pair.
    let mut open = seen.open.clone();
    if plan.mode == Mode::Matching && !open.is_empty() {
        open.extend(&seen.recent);
    }
    open.iter().filter(|command| !cancel(command)).count() as u64
}

#[cfg(test)]
mod tests;
