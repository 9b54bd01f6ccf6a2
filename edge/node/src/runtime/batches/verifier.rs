//! Signatures of transactions, checked before they are submitted: many in one sum, by one thread, so that a burst of them costs the
//! handlers nothing and the engine's thread neither.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Arc, PoisonError, RwLock};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tokio::sync::oneshot;
use tracing::error;
use walras_batch_signatures::{CHUNK_MAX, KeyCache, SignedItem, Verifier};
use walras_types::{AccountId, BatchMarketId, PublicKey, RejectReason};
use walras_wire::batch::{SignedTransaction, SigningDomain, encode_signed_transaction};

/// Requests that wait for the thread.
const JOBS_MAX: usize = 1_024;

/// The keys of accounts and the domains of markets, as far as the engine has applied them. Its thread writes, the verifier reads.
#[derive(Clone, Debug, Default)]
pub(in crate::runtime) struct KeyRing(Arc<RwLock<Known>>);

#[derive(Debug, Default)]
struct Known {
    keys: KeyCache,
    /// Who has one, by id.
    has_key: Vec<bool>,
    domains: HashMap<BatchMarketId, [u8; 32]>,
}

impl KeyRing {
    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Known> {
        // Whole after every change, so a panic elsewhere does not spoil it.
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// An account has a key.
    pub(in crate::runtime) fn set_key(&self, account: AccountId, key: PublicKey) {
        let mut known = self.write();
        if known.keys.insert(account, key).is_err() {
            error!("account {account} is beyond the last that a venue may have, and its key is not kept");
            return;
        }
        let place = account.0 as usize;
        if known.has_key.len() <= place {
            known.has_key.resize(place + 1, false);
        }
        known.has_key[place] = true;
    }

    /// A market was created.
    pub(in crate::runtime) fn set_domain(&self, market: BatchMarketId, domain: [u8; 32]) {
        self.write().domains.insert(market, domain);
    }

    /// The state is another.
    pub(in crate::runtime) fn clear(&self) {
        *self.write() = Known::default();
    }
}

/// Signed transactions for one market, and who wants to know.
struct Job {
    market: BatchMarketId,
    transactions: Vec<SignedTransaction>,
    reply: oneshot::Sender<Vec<Result<(), RejectReason>>>,
}

/// Checks signatures; clone it freely. The thread ends when the last clone is gone.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct Signatures {
    jobs: Sender<Job>,
}

impl Signatures {
    /// Starts the thread; sums are shared among so many.
    pub(in crate::runtime) fn start(keys: KeyRing, threads: NonZero<usize>) -> std::io::Result<Self> {
        let (jobs_in, jobs) = bounded(JOBS_MAX);
        std::thread::Builder::new().name("walras-signatures".to_owned()).spawn(move || run(&keys, &jobs, threads))?;
        Ok(Self { jobs: jobs_in })
    }

    /// Whether each transaction is signed for this market by its account.
    pub(in crate::runtime) fn check(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
    ) -> Result<oneshot::Receiver<Vec<Result<(), RejectReason>>>, RejectReason> {
        let (reply, answer) = oneshot::channel();
        match self.jobs.try_send(Job { market, transactions, reply }) {
            Ok(()) => Ok(answer),
            Err(TrySendError::Full(_)) => Err(RejectReason::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(RejectReason::VenueNotReady),
        }
    }
}

fn run(keys: &KeyRing, jobs: &Receiver<Job>, threads: NonZero<usize>) {
    let mut verifiers: HashMap<BatchMarketId, ([u8; 32], Verifier)> = HashMap::new();
    while let Ok(first) = jobs.recv() {
        // All of one market that wait, as long as they fit a sum.
        let mut together = vec![first];
        let mut count = together[0].transactions.len();
        while count < CHUNK_MAX
            && let Ok(job) = jobs.try_recv()
        {
            count += job.transactions.len();
            together.push(job);
        }
        let known = keys.0.read().unwrap_or_else(PoisonError::into_inner);
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
        for Job { transactions, reply, .. } in jobs {
            // Whoever asked may have gone away.
            let _ = reply.send(vec![Err(RejectReason::UnknownBatchMarket); transactions.len()]);
        }
        return;
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
    for Job { transactions, reply, .. } in jobs {
        let judged = transactions.iter().map(|signed| {
            let has_key = known.has_key.get(signed.transaction.account.0 as usize).is_some_and(|has| *has);
            match holds.next() {
                Some(true) => Ok(()),
                Some(false) | None => Err(if has_key { RejectReason::SignatureInvalid } else { RejectReason::NoTransactionKey }),
            }
        });
        let _ = reply.send(judged.collect());
    }
}

#[cfg(test)]
mod tests {
    use walras_batch_signatures::SigningKey;
    use walras_types::{Amount, AssetId, BatchOperation, BatchTransaction, Payment, TransactionSeq};

    use super::*;

    #[test]
    fn each_is_judged_by_its_market_and_key() {
        let ring = KeyRing::default();
        let key = |account: u32| SigningKey::from_seed(&[account as u8 + 1; 32]);
        for account in 0..4 {
            ring.set_key(AccountId(account), key(account).public_key());
        }
        let (main, other) = (BatchMarketId(0), BatchMarketId(1));
        ring.set_domain(main, [1; 32]);
        ring.set_domain(other, [2; 32]);
        let signatures = Signatures::start(ring, NonZero::<usize>::MIN).unwrap();
        let signed = |domain: [u8; 32], account: u32, by: u32| {
            let payment = Payment { to: AccountId(9), asset: AssetId(0), amount: Amount::new(5).unwrap() };
            let transaction = BatchTransaction {
                account: AccountId(account),
                sequence: TransactionSeq(1),
                operation: BatchOperation::Payment(payment),
            };
            key(by).sign(&SigningDomain::new(&domain), &transaction)
        };
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push((
                signatures.check(main, vec![signed([1; 32], 0, 0), signed([1; 32], 1, 0), signed([2; 32], 2, 2)]).unwrap(),
                vec![Ok(()), Err(RejectReason::SignatureInvalid), Err(RejectReason::SignatureInvalid)],
            ));
            let of_other = vec![signed([2; 32], 3, 3), signed([2; 32], 4, 3)];
            asked.push((signatures.check(other, of_other).unwrap(), vec![Ok(()), Err(RejectReason::NoTransactionKey)]));
            let of_none = vec![signed([1; 32], 0, 0)];
            asked.push((signatures.check(BatchMarketId(2), of_none).unwrap(), vec![Err(RejectReason::UnknownBatchMarket)]));
        }
        for (answer, expected) in asked {
            assert_eq!(answer.blocking_recv().unwrap(), expected);
        }
    }
}
