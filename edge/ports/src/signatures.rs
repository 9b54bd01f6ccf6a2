//! Signatures of transactions, checked before they are submitted: many in one sum, by one thread, so that a burst of them costs the
//! handlers nothing and the engine's thread neither.

use std::collections::HashMap;
use std::num::NonZero;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, never, select, unbounded};
use tokio::sync::oneshot;
use tracing::error;
use walras_batch_signatures::{CHUNK_MAX, KeyCache, SignedItem, Verifier, check_key};
use walras_types::{AccountId, BatchMarketId, BatchOperation, PublicKey, RejectReason};
use walras_wire::batch::{SignedTransaction, SigningDomain, encode_signed_transaction};

/// Requests that wait for the thread.
const JOBS_MAX: usize = 1_024;

/// Where the engine's thread puts keys of accounts and domains of markets as it applies them. It never blocks: they go through a
/// queue, which the thread that checks signatures empties before each check. So every check that is requested after a key was
/// applied knows the key.
#[derive(Clone, Debug)]
pub struct KeyRing(Sender<Change>);

/// A message of the engine's thread.
#[derive(Debug)]
enum Change {
    Key(AccountId, PublicKey),
    Domain(BatchMarketId, [u8; 32]),
    Clear,
}

/// The other end of a [`KeyRing`].
#[derive(Debug)]
pub struct Changes(Receiver<Change>);

/// What is known.
#[derive(Debug, Default)]
struct Known {
    keys: KeyCache,
    domains: HashMap<BatchMarketId, [u8; 32]>,
}

impl KeyRing {
    /// A queue. There are never more keys in it than the log sets before the next check.
    pub fn new() -> (Self, Changes) {
        let (changes_in, changes) = unbounded();
        (Self(changes_in), Changes(changes))
    }

    /// An account has a key.
    pub fn set_key(&self, account: AccountId, key: PublicKey) {
        self.tell(Change::Key(account, key));
    }

    /// A market was created.
    pub fn set_domain(&self, market: BatchMarketId, domain: [u8; 32]) {
        self.tell(Change::Domain(market, domain));
    }

    /// The state is another.
    pub fn clear(&self) {
        self.tell(Change::Clear);
    }

    fn tell(&self, change: Change) {
        // Nobody checks any more when the venue stops.
        let _ = self.0.send(change);
    }
}

impl Known {
    fn follow(&mut self, change: Change) {
        match change {
            Change::Clear => *self = Self::default(),
            Change::Domain(market, domain) => drop(self.domains.insert(market, domain)),
            Change::Key(account, key) => {
                if self.keys.insert(account, key).is_err() {
                    error!("account {account} is beyond the last that a venue may have, and its key is not kept");
                }
            }
        }
    }
}

/// Of each transaction, that it is signed as it must be, or why not.
pub type Verdicts = Vec<Result<(), RejectReason>>;

/// Signed transactions for one market, and who wants to know.
struct Job {
    market: BatchMarketId,
    transactions: Vec<SignedTransaction>,
    reply: Box<dyn FnOnce(Vec<SignedTransaction>, Verdicts) + Send>,
}

impl Job {
    fn answer(self, verdicts: Verdicts) {
        (self.reply)(self.transactions, verdicts);
    }

    /// The same of all.
    fn refuse(self, reason: RejectReason) {
        let verdicts = vec![Err(reason); self.transactions.len()];
        self.answer(verdicts);
    }
}

/// Checks signatures; clone it freely. The thread ends when the last clone is gone.
#[derive(Clone, Debug)]
pub struct Signatures {
    jobs: Sender<Job>,
}

impl Signatures {
    /// Starts the thread; sums are shared among so many.
    pub fn start(changes: Changes, threads: NonZero<usize>) -> std::io::Result<Self> {
        let (jobs_in, jobs) = bounded(JOBS_MAX);
        std::thread::Builder::new().name("walras-signatures".to_owned()).spawn(move || run(&changes, &jobs, threads))?;
        Ok(Self { jobs: jobs_in })
    }

    /// Whether each transaction is signed for this market by its account.
    pub fn check(&self, market: BatchMarketId, transactions: Vec<SignedTransaction>) -> oneshot::Receiver<Verdicts> {
        let (reply, answer) = oneshot::channel();
        self.check_then(market, transactions, move |_, verdicts| {
            // The waiter may have gone away.
            let _ = reply.send(verdicts);
        });
        answer
    }

    /// The same for who does not wait: `reply` is called with the transactions, by the thread that checks signatures, or at once where that
    /// has too much to do.
    pub fn check_then(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
        reply: impl FnOnce(Vec<SignedTransaction>, Verdicts) + Send + 'static,
    ) {
        match self.jobs.try_send(Job { market, transactions, reply: Box::new(reply) }) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => job.refuse(RejectReason::Overloaded),
            Err(TrySendError::Disconnected(job)) => job.refuse(RejectReason::VenueNotReady),
        }
    }
}

fn run(Changes(changes): &Changes, jobs: &Receiver<Job>, threads: NonZero<usize>) {
    let mut known = Known::default();
    let mut verifiers: HashMap<BatchMarketId, ([u8; 32], Verifier)> = HashMap::new();
    let mut changes = changes.clone();
    loop {
        let first = select! {
            recv(jobs) -> job => match job {
                Ok(job) => job,
                Err(_) => return,
            },
            recv(changes) -> change => {
                match change {
                    Ok(change) => known.follow(change),
                    // The engine's thread is gone; what is asked yet is answered.
                    Err(_) => changes = never(),
                }
                continue;
            }
        };
        // All of one market that wait, as long as they fit a sum.
        let mut together = vec![first];
        let mut count = together[0].transactions.len();
        while count < CHUNK_MAX
            && let Ok(job) = jobs.try_recv()
        {
            count += job.transactions.len();
            together.push(job);
        }
        // What came before the first of these requests.
        changes.try_iter().for_each(|change| known.follow(change));
        together.sort_by_key(|job| job.market);
        while let Some(market) = together.first().map(|job| job.market) {
            let rest = together.split_off(together.partition_point(|job| job.market == market));
            let of_market = std::mem::replace(&mut together, rest);
            let domain = known.domains.get(&market);
            // A snapshot may have brought another state.
            if verifiers.get(&market).map(|(of, _)| of) != domain {
                verifiers.remove(&market);
                match domain.map(|domain| (*domain, Verifier::new(SigningDomain::new(domain)))) {
                    Some((domain, Ok(verifier))) => drop(verifiers.insert(market, (domain, verifier))),
                    Some((_, Err(e))) => error!("the operating system gives no random bytes: {e}"),
                    None => {}
                }
            }
            judge(verifiers.get(&market).map(|(_, verifier)| verifier), &known, of_market, threads);
        }
    }
}

/// Answers all jobs of one market.
fn judge(verifier: Option<&Verifier>, known: &Known, jobs: Vec<Job>, threads: NonZero<usize>) {
    let Some(verifier) = verifier else {
        return jobs.into_iter().for_each(|job| job.refuse(RejectReason::UnknownBatchMarket));
    };
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for signed in jobs.iter().flat_map(|job| &job.transactions) {
        encode_signed_transaction(signed, &mut bytes);
        ends.push(bytes.len());
    }
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let items: Vec<SignedItem<'_>> = begins
        .zip(&ends)
        .map(|(begin, end)| SignedItem::decode(&bytes[begin..*end]).expect("it was read from such bytes").1)
        .collect();
    let mut holds = verifier.verify(&known.keys, &items, threads).into_iter();
    for job in jobs {
        let judged = job.transactions.iter().map(|SignedTransaction { transaction, .. }| {
            let has_key = known.keys.key(transaction.account).is_some();
            match (holds.next(), &transaction.operation) {
                // An account with such a key could never do anything.
                (Some(true), BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key)) if check_key(key).is_err() => {
                    Err(RejectReason::Malformed)
                }
                (Some(true), _) => Ok(()),
                (Some(false) | None, _) if has_key => Err(RejectReason::SignatureInvalid),
                (Some(false) | None, _) => Err(RejectReason::NoTransactionKey),
            }
        });
        let judged = judged.collect();
        job.answer(judged);
    }
}

#[cfg(test)]
mod tests {
    use walras_batch_signatures::SigningKey;
    use walras_types::{Amount, AssetId, BatchTransaction, Payment, TransactionSeq};

    use super::*;

    #[test]
    fn each_is_judged_by_its_market_and_key() {
        let (ring, changes) = KeyRing::new();
        let key = |account: u32| SigningKey::from_seed(&[account as u8 + 1; 32]);
        for account in 0..4 {
            ring.set_key(AccountId(account), key(account).public_key());
        }
        let (main, other) = (BatchMarketId(0), BatchMarketId(1));
        ring.set_domain(main, [1; 32]);
        ring.set_domain(other, [2; 32]);
        let signatures = Signatures::start(changes, NonZero::<usize>::MIN).unwrap();
        let signed = |domain: [u8; 32], account: u32, by: u32| {
            let payment = Payment { to: AccountId(9), asset: AssetId(0), amount: Amount::new(5).unwrap() };
            let transaction = BatchTransaction::new(AccountId(account), TransactionSeq(1), BatchOperation::Payment(payment));
            key(by).sign(&SigningDomain::new(&domain), &transaction)
        };
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push((
                signatures.check(main, vec![signed([1; 32], 0, 0), signed([1; 32], 1, 0), signed([2; 32], 2, 2)]),
                vec![Ok(()), Err(RejectReason::SignatureInvalid), Err(RejectReason::SignatureInvalid)],
            ));
            let of_other = vec![signed([2; 32], 3, 3), signed([2; 32], 4, 3)];
            asked.push((signatures.check(other, of_other), vec![Ok(()), Err(RejectReason::NoTransactionKey)]));
            let of_none = vec![signed([1; 32], 0, 0)];
            asked.push((signatures.check(BatchMarketId(2), of_none), vec![Err(RejectReason::UnknownBatchMarket)]));
        }
        for (answer, expected) in asked {
            assert_eq!(answer.blocking_recv().unwrap(), expected);
        }
    }
}
