//! One courier: from this shard to one other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde_json::{Value, json};
use tracing::warn;
use walras_engine::{InTransit, TransferNumbers, TransferOutcome};
use walras_types::{RejectReason, ShardId, TransferSeq};
use walras_wire::{Command, ShardCommand, ShardPlace, TransferPlace, TransfersTaken};

use super::agreement::{self, Agreement};
use super::{CourierReport, ShardPlan, ShardSite, take_place};
use crate::cli::client::{Client, ClientError, Trust, read_key};
use crate::json::names;
use crate::runtime::{NoOutcome, VenueHandle};

/// Transfers that are brought at once.
pub(crate) const TRANSFERS_AT_ONCE: usize = 64;

/// Longest wait for an answer of the other shard.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where transfers are brought.
pub(crate) const PATH: &str = "/v1/admin/transfers/in";

/// Where a shard tells its numbers, and how it is asked for those that it acknowledged, whichever of its replicas answers.
const DIRECTORY: (&str, (&str, &str)) = ("/v1/shards", ("walras-consistency", "linearizable"));

/// Why transfers were not brought, or not settled here.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("bringing transfers to shard {shard} failed: {source}")]
    There { shard: ShardId, source: ClientError },
    #[error("shard {shard} answered with something that says nothing of the transfers: it may be of another version")]
    Unclear { shard: ShardId },
    #[error("the addresses of shard {shard} lead to shard {found}: correct them in the [[shard]] list")]
    Elsewhere { shard: ShardId, found: ShardId },
    #[error(
        "UnknownShard: shard {shard} was not told of this one, or its addresses lead elsewhere: compare the [[shard]] lists of both"
    )]
    Stranger { shard: ShardId },
    #[error("{}", agreement::tell(*shard, *found))]
    SetBack { shard: ShardId, found: walras_engine::SetBack },
    #[error("this shard did not take a command of its courier: {0}")]
    Here(NoOutcome),
}

impl From<NoOutcome> for Trouble {
    fn from(no: NoOutcome) -> Self {
        Self::Here(no)
    }
}

impl From<RejectReason> for Trouble {
    fn from(reason: RejectReason) -> Self {
        Self::Here(reason.into())
    }
}

/// What came of a transfer, as the other shard says.
type Told = (TransferSeq, TransferOutcome);

/// See the module's documentation.
pub(super) struct Courier {
    venue: VenueHandle,
    place: ShardPlace,
    to: ShardId,
    urls: Vec<String>,
    key_file: PathBuf,
    ca_file: Option<PathBuf>,
    /// One for each replica there. Made anew after a failure, for the key may have been replaced, or not have been there yet.
    clients: Vec<Client>,
    /// Which of them answered last.
    at: usize,
    poll: Duration,
    retry_max: Duration,
    report: Arc<Mutex<CourierReport>>,
    agreement: Agreement,
}

impl Courier {
    pub(super) fn new(venue: VenueHandle, plan: &ShardPlan, site: &ShardSite, report: Arc<Mutex<CourierReport>>) -> Self {
        Self {
            venue,
            place: plan.place,
            to: site.shard,
            urls: site.urls.clone(),
            key_file: site.key_file.clone(),
            ca_file: site.ca_file.clone(),
            clients: Vec::new(),
            at: 0,
            poll: plan.poll,
            retry_max: plan.retry_max,
            report,
            agreement: Agreement::default(),
        }
    }

    /// Notes what is sent next, before anybody can send anything.
    pub(super) fn begin(&mut self) -> Result<(), NoOutcome> {
        // First: what was sent in a later term may be more.
        let term = self.term();
        if let Some(numbers) = self.numbers()? {
            self.agreement.begin(term, numbers.next_out);
        }
        Ok(())
    }

    /// While who leads: what it has sent, others may have brought.
    fn term(&self) -> u64 {
        self.venue.cluster().map_or(0, |cluster| cluster.view().term.0)
    }

    fn numbers(&self) -> Result<Option<TransferNumbers>, RejectReason> {
        let to = self.to;
        self.venue.read_blocking(move |v| v.engine.transfer_numbers(to))
    }

    /// Works until it is told to stop.
    pub(super) fn run(&mut self, rings: &Receiver<()>, stopping: &AtomicBool) {
        let is_stopping = || stopping.load(Ordering::Acquire);
        let mut retry = self.poll;
        while !is_stopping() {
            match self.round() {
                Ok(0) => {
                    retry = self.poll;
                    // A ring, or the time: either is a reason to look.
                    let _ = rings.recv_timeout(self.poll);
                }
                Ok(brought) => {
                    retry = self.poll;
                    self.tell(|report| report.brought += brought as u64);
                }
                Err(trouble) => {
                    self.clients.clear();
                    self.agreement.doubt();
                    self.failed(&trouble);
                    rest(rings, vary(retry), is_stopping);
                    retry = (retry * 2).min(self.retry_max).max(self.poll);
                }
            }
        }
    }

    fn tell(&self, what: impl FnOnce(&mut CourierReport)) {
        what(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Once for each trouble: a shard that is down is tried often.
    fn failed(&self, trouble: &Trouble) {
        let said = trouble.to_string();
        self.tell(|report| {
            report.failures += 1;
            if matches!(trouble, Trouble::SetBack { .. }) {
                report.set_back = Some(said.clone());
            }
            if report.trouble.as_ref() != Some(&said) {
                warn!("{said}");
                report.trouble = Some(said);
            }
        });
    }

    /// Brings the oldest transfers, and settles here what came of them: of how many.
    fn round(&mut self) -> Result<usize, Trouble> {
        if !self.venue.takes_commands() {
            self.agreement = Agreement::default();
            self.tell(|report| (report.trouble, report.set_back) = (None, None));
            return Ok(0);
        }
        take_place(&self.venue, self.place)?;
        let to = self.to;
        if !self.agreement.holds() {
            self.agree()?;
            self.tell(|report| report.set_back = None);
        }
        let waiting: Vec<InTransit> =
            self.venue.read_blocking(move |v| v.engine.transfers_in_transit(to).take(TRANSFERS_AT_ONCE).collect())?;
        let Some(oldest) = waiting.first() else {
            self.tell(|report| report.trouble = None);
            return Ok(0);
        };
        let told = consecutive(oldest.transfer_seq, self.bring(&waiting)?);
        if told.is_empty() {
            return Err(Trouble::Unclear { shard: to });
        }
        for settled in settlements(to, &told) {
            match self.venue.command_blocking(Command::Shards(settled))?.rejected() {
                // Another courier, of the replica that led before, was faster.
                None | Some(RejectReason::TransferTaken) => {}
                Some(reason) => return Err(reason.into()),
            }
        }
        self.tell(|report| report.trouble = None);
        Ok(told.len())
    }

    /// Sees to it that neither shard has forgotten what the other remembers.
    fn agree(&mut self) -> Result<(), Trouble> {
        if self.compare()?.is_ok() {
            return Ok(());
        }
        // A replica that has not heard that another one leads knows less than that one, which the other shard heard: it takes no command.
        if let Some(reason) = self.venue.command_blocking(Command::Tick)?.rejected() {
            return Err(reason.into());
        }
        let shard = self.to;
        self.compare()?.map_err(|found| Trouble::SetBack { shard, found })
    }

    fn compare(&mut self) -> Result<Result<(), walras_engine::SetBack>, Trouble> {
        let shard = self.to;
        let unknown = || Trouble::Here(RejectReason::UnknownShard.into());
        self.begin()?;
        let before = self.numbers()?.ok_or_else(unknown)?;
        let directory = self.ask(|client| client.get_with(DIRECTORY.0, Some(DIRECTORY.1)))?;
        let (found, numbers) = agreement::read(&directory, self.place.own).ok_or(Trouble::Unclear { shard })?;
        let others = numbers.ok_or(Trouble::Stranger { shard })?;
        if found != shard {
            return Err(Trouble::Elsewhere { shard, found });
        }
        let after = self.numbers()?.ok_or_else(unknown)?;
        Ok(self.agreement.compare(before, others, after))
    }

    fn bring(&mut self, waiting: &[InTransit]) -> Result<Vec<Told>, Trouble> {
        let shard = self.to;
        let body = body(self.place.own, shard, waiting);
        let answer = self.ask(|client| {
            // A replica names who leads by an address without TLS.
            let is_private = client.url().starts_with("https://");
            if is_private { client.signed_here("POST", PATH, Some(&body)) } else { client.signed("POST", PATH, Some(&body)) }
        })?;
        outcomes(&answer).ok_or(Trouble::Unclear { shard })
    }

    /// Asks one replica after the other, beginning with the one that answered last.
    fn ask(&mut self, ask: impl Fn(&Client) -> Result<Value, ClientError>) -> Result<Value, Trouble> {
        let shard = self.to;
        if self.clients.is_empty() {
            let there = |source| Trouble::There { shard, source };
            let key = read_key(&self.key_file).map_err(there)?;
            let trust = self.ca_file.as_deref().map_or(Ok(Trust::default()), Trust::read).map_err(there)?;
            let client = |url: &String| Client::trusting(url, Some(key.clone()), PATIENCE, &trust);
            self.clients = self.urls.iter().map(client).collect();
        }
        let mut trouble = Trouble::Unclear { shard };
        for _ in 0..self.clients.len() {
            match ask(&self.clients[self.at]) {
                Ok(answer) => return Ok(answer),
                Err(source) => {
                    trouble = Trouble::There { shard, source };
                    self.at = (self.at + 1) % self.clients.len();
                }
            }
        }
        Err(trouble)
    }
}

/// Waits so long, whoever rings, unless it is to stop.
fn rest(rings: &Receiver<()>, time: Duration, is_stopping: impl Fn() -> bool) {
    let until = Instant::now() + time;
    while !is_stopping() && rings.recv_deadline(until) != Err(RecvTimeoutError::Timeout) {
        if Instant::now() >= until {
            return;
        }
    }
}

/// The time, give or take a half, so that couriers that failed together do not come back together.
fn vary(time: Duration) -> Duration {
    let mut bytes = [0; 4];
    // Without randomness they all come at the same time, and no harm is done.
    let _ = getrandom::fill(&mut bytes);
    time / 2 + time.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// What the other shard is sent.
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

/// What an answer says; `None` where it says nothing that can be understood.
fn outcomes(answer: &Value) -> Option<Vec<Told>> {
    let told = |of: &Value| {
        let outcome = names::parse_transfer_outcome(of["outcome"].as_str()?)?;
        Some((TransferSeq(of["transfer_seq"].as_str()?.parse().ok()?), outcome))
    };
    answer["outcomes"].as_array()?.iter().map(told).collect()
}

/// Those that follow each other from `first` on.
fn consecutive(first: TransferSeq, told: Vec<Told>) -> Vec<Told> {
    told.into_iter().zip(first.0..).take_while(|((seq, _), next)| seq.0 == *next).map(|(told, _)| told).collect()
}

/// What is to be told to the own shard: those that were taken, in runs, and those that were refused, one by one.
fn settlements(by_shard: ShardId, told: &[Told]) -> Vec<ShardCommand> {
    let of_one_kind = told.chunk_by(|(_, a), (_, b)| (a, b) == (&TransferOutcome::Taken, &TransferOutcome::Taken));
    let command = |run: &[Told]| {
        let (first, outcome) = run[0];
        match outcome {
            TransferOutcome::Taken => {
                let last = TransferSeq(first.0 + run.len() as u64 - 1);
                ShardCommand::ConfirmTransfers(TransfersTaken { by_shard, first, last })
            }
            TransferOutcome::Refused => ShardCommand::ReturnTransfer(TransferPlace { shard: by_shard, transfer_seq: first }),
        }
    };
    of_one_kind.map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: ShardId = ShardId(3);

    #[test]
    fn an_answer_is_read_as_far_as_it_follows() {
        let one = |seq: &str, outcome: &str| json!({"transfer_seq": seq, "outcome": outcome});
        let answer = |all: Vec<Value>| json!({"outcomes": all});
        let (taken, refused) = (TransferOutcome::Taken, TransferOutcome::Refused);
        let told = outcomes(&answer(vec![one("7", "taken"), one("8", "refused"), one("10", "taken")])).unwrap();
        assert_eq!(told, [(TransferSeq(7), taken), (TransferSeq(8), refused), (TransferSeq(10), taken)]);
        assert_eq!(consecutive(TransferSeq(7), told.clone()), told[..2]);
        assert_eq!(consecutive(TransferSeq(6), told), []);
        for wrong in [json!({}), answer(vec![one("7", "lost")]), answer(vec![one("x", "taken")]), json!({"outcomes": 7})] {
            assert_eq!(outcomes(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_was_taken_is_confirmed_in_runs_and_what_was_refused_comes_back() {
        let told: Vec<Told> = "TTRRT"
            .chars()
            .zip(5..)
            .map(|(kind, seq)| (TransferSeq(seq), if kind == 'T' { TransferOutcome::Taken } else { TransferOutcome::Refused }))
            .collect();
        let taken = |first, last| {
            let (first, last) = (TransferSeq(first), TransferSeq(last));
            ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: BY, first, last })
        };
        let back = |seq| ShardCommand::ReturnTransfer(TransferPlace { shard: BY, transfer_seq: TransferSeq(seq) });
        assert_eq!(settlements(BY, &told), [taken(5, 6), back(7), back(8), taken(9, 9)]);
        assert_eq!(settlements(BY, &[]), []);
    }

    #[test]
    fn waits_vary_by_a_half() {
        for _ in 0..100 {
            let time = vary(Duration::from_millis(100));
            assert!((50..=151).contains(&time.as_millis()), "{time:?}");
        }
    }
}
