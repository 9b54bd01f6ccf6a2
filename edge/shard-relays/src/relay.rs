//! The thread of a transfer relay to one other shard: carries out the steps of `walras_transfer_relay`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde_json::{Value, json};
use tracing::warn;
use walras_api::json::names;
use walras_client::{Client, ClientError, Trust, read_key};
use walras_config::{ShardPlan, ShardSite};
use walras_engine::InTransit;
use walras_ports::{NoOutcome, RelayReport, TRANSFERS_AT_ONCE, VenueHandle};
use walras_transfer_relay::{Ended, Look, Pace, Pause, Reported, Step, Trouble};
use walras_types::{RejectReason, ShardId, TransferSeq};
use walras_wire::Command;

use crate::directory;

/// Longest wait for an answer of the other shard.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The path to which transfers are delivered.
pub(crate) const PATH: &str = "/v1/admin/transfers/in";

/// The path of a shard's numbers, with the header that asks for everything that it acknowledged, whichever replica answers.
const DIRECTORY: (&str, (&str, &str)) = ("/v1/shards", ("walras-consistency", "linearizable"));

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum Undone {
    #[error("delivering transfers to shard {shard} failed: {source}")]
    There { shard: ShardId, source: ClientError },
    #[error(transparent)]
    Trouble(Trouble),
    #[error("this shard did not take a command of its transfer relay: {0}")]
    Here(NoOutcome),
}

impl From<NoOutcome> for Undone {
    fn from(no: NoOutcome) -> Self {
        Self::Here(no)
    }
}

impl From<RejectReason> for Undone {
    fn from(reason: RejectReason) -> Self {
        Self::Here(reason.into())
    }
}

/// See the module's documentation.
pub(super) struct RelayThread {
    venue: VenueHandle,
    own: ShardId,
    to: ShardId,
    urls: Vec<String>,
    key_file: PathBuf,
    ca_file: Option<PathBuf>,
    /// One for each replica there. Created again after a failure, since the key file may have appeared or changed.
    clients: Vec<Client>,
    /// Index of the client that answered last.
    at: usize,
    report: Arc<Mutex<RelayReport>>,
    steps: walras_transfer_relay::TransferRelay,
}

impl RelayThread {
    pub(super) fn new(venue: VenueHandle, plan: &ShardPlan, site: &ShardSite, report: Arc<Mutex<RelayReport>>) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let pace = Pace { poll_ns: ns(plan.poll), retry_ns_max: ns(plan.retry_max) };
        Self {
            venue,
            own: plan.place.own,
            to: site.shard,
            urls: site.urls.clone(),
            key_file: site.key_file.clone(),
            ca_file: site.ca_file.clone(),
            clients: Vec::new(),
            at: 0,
            report,
            steps: walras_transfer_relay::TransferRelay::new(plan.place, site.shard, pace),
        }
    }

    /// Works until `stopping` is set.
    pub(super) fn run(&mut self, rings: &Receiver<()>, stopping: &AtomicBool) {
        let is_stopping = || stopping.load(Ordering::Acquire);
        while !is_stopping() {
            match self.round() {
                Ok(Ended::Elsewhere | Ended::Idle) => self.report(|report| report.trouble = None),
                Ok(Ended::Delivered(count)) => self.report(|report| {
                    report.delivered += count as u64;
                    report.trouble = None;
                }),
                Ok(Ended::Failed(trouble)) => self.failed(&trouble.to_string()),
                Err(undone) => {
                    self.steps.on_failed();
                    self.failed(&undone.to_string());
                }
            }
            match self.steps.pause(random()) {
                Pause::None => {}
                // Woken or not, it looks.
                Pause::UntilRung(ns) => drop(rings.recv_timeout(Duration::from_nanos(ns))),
                Pause::Whole(ns) => rest(rings, Duration::from_nanos(ns), is_stopping),
            }
        }
    }

    fn report(&self, what: impl FnOnce(&mut RelayReport)) {
        what(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Logs each trouble once, since a shard that is down is tried often. The next replica is asked first, in case this one's
    /// answer is useless.
    fn failed(&mut self, said: &str) {
        self.clients.clear();
        self.at = (self.at + 1) % self.urls.len().max(1);
        self.report(|report| {
            report.failures += 1;
            if report.trouble.as_deref() != Some(said) {
                warn!("{said}");
                report.trouble = Some(said.to_owned());
            }
        });
    }

    /// Carries out the steps of one round.
    fn round(&mut self) -> Result<Ended, Undone> {
        let mut step = self.steps.begin();
        loop {
            step = match step {
                Step::Look => {
                    let look = self.look()?;
                    self.steps.on_look(look)
                }
                Step::Command(command) => {
                    let rejected = self.command(command)?;
                    self.steps.on_done(rejected)
                }
                Step::Ask => {
                    let answer = self.ask(|client| client.get_with(DIRECTORY.0, Some(DIRECTORY.1)))?;
                    let unclear = Undone::Trouble(Trouble::Unclear { shard: self.to });
                    self.steps.on_directory(directory::read(&answer, self.own).ok_or(unclear)?)
                }
                Step::Deliver(waiting) => {
                    let reported = self.deliver(&waiting)?;
                    self.steps.on_outcomes(reported)
                }
                Step::Over(ended) => return Ok(ended),
            };
        }
    }

    fn look(&self) -> Result<Option<Look>, RejectReason> {
        if !self.venue.takes_commands() {
            return Ok(None);
        }
        let to = self.to;
        self.venue.read_blocking(move |v| Look::at(v.engine, to, TRANSFERS_AT_ONCE)).map(Some)
    }

    /// The reject reason, if the own shard rejected it.
    fn command(&self, command: Command) -> Result<Option<RejectReason>, NoOutcome> {
        Ok(self.venue.command_blocking(command)?.rejected())
    }

    fn deliver(&mut self, waiting: &[InTransit]) -> Result<Vec<Reported>, Undone> {
        let shard = self.to;
        let body = body(self.own, shard, waiting);
        let answer = self.ask(|client| {
            // A redirect to the leader has an address without TLS.
            let is_private = client.url().starts_with("https://");
            if is_private { client.signed_here("POST", PATH, Some(&body)) } else { client.signed("POST", PATH, Some(&body)) }
        })?;
        outcomes(&answer).ok_or(Undone::Trouble(Trouble::Unclear { shard }))
    }

    /// Asks one replica after the other, starting with the one that answered last.
    fn ask(&mut self, ask: impl Fn(&Client) -> Result<Value, ClientError>) -> Result<Value, Undone> {
        let shard = self.to;
        if self.clients.is_empty() {
            let there = |source| Undone::There { shard, source };
            let key = read_key(&self.key_file).map_err(there)?;
            let trust = self.ca_file.as_deref().map_or(Ok(Trust::default()), Trust::read).map_err(there)?;
            let client = |url: &String| Client::trusting(url, Some(key.clone()), TIMEOUT, &trust);
            self.clients = self.urls.iter().map(client).collect();
        }
        let mut undone = Undone::Trouble(Trouble::Unclear { shard });
        for _ in 0..self.clients.len() {
            match ask(&self.clients[self.at]) {
                Ok(answer) => return Ok(answer),
                Err(source) => {
                    undone = Undone::There { shard, source };
                    self.at = (self.at + 1) % self.clients.len();
                }
            }
        }
        Err(undone)
    }
}

/// Waits the whole time, woken or not, unless it has to stop.
fn rest(rings: &Receiver<()>, time: Duration, is_stopping: impl Fn() -> bool) {
    let until = Instant::now() + time;
    while !is_stopping() && rings.recv_deadline(until) != Err(RecvTimeoutError::Timeout) {
        if Instant::now() >= until {
            return;
        }
    }
}

/// Varies waits. If the system gives no randomness, all waits are equal, which does no harm.
fn random() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes)
}

/// The request's body.
fn body(from: ShardId, to: ShardId, waiting: &[InTransit]) -> Value {
    let transfer = |waits: &InTransit| {
        let transfer = &waits.transfer;
        json!({
            "transfer_seq": waits.transfer_seq.0.to_string(),
            "account_id": transfer.account.0,
            "asset_id": transfer.asset.0,
            "amount_units": transfer.amount.get().to_string(),
        })
    };
    json!({"from_shard": from.0, "to_shard": to.0, "transfers": waiting.iter().map(transfer).collect::<Vec<_>>()})
}

/// The results in an answer; `None` if it is malformed.
fn outcomes(answer: &Value) -> Option<Vec<Reported>> {
    let reported = |of: &Value| {
        let outcome = names::parse_transfer_outcome(of["outcome"].as_str()?)?;
        Some((TransferSeq(of["transfer_seq"].as_str()?.parse().ok()?), outcome))
    };
    answer["outcomes"].as_array()?.iter().map(reported).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_or_is_none() {
        use walras_engine::TransferOutcome::{Refused, Taken};
        let one = |seq: &str, outcome: &str| json!({"transfer_seq": seq, "outcome": outcome});
        let answer = |all: Vec<Value>| json!({"outcomes": all});
        let reported = outcomes(&answer(vec![one("7", "taken"), one("8", "refused"), one("10", "taken")])).unwrap();
        assert_eq!(reported, [(TransferSeq(7), Taken), (TransferSeq(8), Refused), (TransferSeq(10), Taken)]);
        for wrong in [json!({}), answer(vec![one("7", "lost")]), answer(vec![one("x", "taken")]), json!({"outcomes": 7})] {
            assert_eq!(outcomes(&wrong), None, "{wrong}");
        }
    }
}
