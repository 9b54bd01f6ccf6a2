//! Verification of many: sorted by key, cut in chunks, shared among threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use walras_types::{AccountId, BatchTransaction};
use walras_wire::DecodeError;
use walras_wire::batch::{SIGNATURE_BYTES, SigningDomain, decode_signed_transaction};

use crate::chunk::{CHUNK_MAX, Chunk, Claim};
use crate::key::{CachedKey, KeyCache};

/// Threads get chunks of at least so many signatures: below, a sum gains too little.
const CHUNK_MIN: usize = 128;

/// A transaction's bytes, and what is said to be its account's signature.
#[derive(Clone, Copy, Debug)]
pub struct SignedItem<'a> {
    /// Whose.
    pub account: AccountId,
    /// What was signed, after the venue's domain: the transaction's bytes.
    pub transaction_bytes: &'a [u8],
    /// The signature.
    pub signature: &'a [u8; SIGNATURE_BYTES],
}

impl<'a> SignedItem<'a> {
    /// The signed transaction that `bytes` are, and the parts to be checked.
    ///
    /// # Errors
    /// [`DecodeError`] where the bytes stop being one.
    pub fn decode(bytes: &'a [u8]) -> Result<(BatchTransaction, Self), DecodeError> {
        let transaction = decode_signed_transaction(bytes)?.transaction;
        let (transaction_bytes, signature) = bytes.split_last_chunk().expect("what was decoded ends with a signature");
        Ok((transaction, Self { account: transaction.account, transaction_bytes, signature }))
    }
}

/// Checks signatures for one venue.
#[derive(Clone)]
pub struct Verifier {
    domain: SigningDomain,
    secret: [u8; 32],
}

impl Verifier {
    /// With a secret of its own.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new(domain: SigningDomain) -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self::with_secret(domain, secret))
    }

    /// With a given secret, for runs that can be repeated. What it says does not depend on the secret.
    #[must_use]
    pub const fn with_secret(domain: SigningDomain, secret: [u8; 32]) -> Self {
        Self { domain, secret }
    }

    /// Whether an item's signature holds; never, where its account has no key of use.
    #[must_use]
    pub fn verify_one(&self, keys: &KeyCache, item: &SignedItem<'_>) -> bool {
        let Some(key) = keys.get(item.account) else { return false };
        self.claim(&key, item).is_some_and(|claim| claim.holds())
    }

    /// Whether each item's signature holds, in the order of the items. Starts `threads - 1` threads at most, and waits for them.
    #[must_use]
    pub fn verify(&self, keys: &KeyCache, items: &[SignedItem<'_>], threads: NonZeroUsize) -> Vec<bool> {
        // Neighbours of one key share its part of a sum.
        let mut order: Vec<(AccountId, usize)> = items.iter().enumerate().map(|(at, item)| (item.account, at)).collect();
        order.sort_unstable();
        let chunk_count = items.len().div_ceil(CHUNK_MAX).max(threads.get().min(items.len() / CHUNK_MIN)).max(1);
        let chunk_len = items.len().div_ceil(chunk_count).max(1);
        let chunks: Vec<&[(AccountId, usize)]> = order.chunks(chunk_len).collect();
        let next = AtomicUsize::new(0);
        // Each worker takes the next chunk until there is none, and says which items' signatures hold.
        let work = || {
            let mut holding = Vec::new();
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.judge(keys, items, chunk, &mut holding);
            }
            holding
        };
        let mut holds = vec![false; items.len()];
        let mut tell = |holding: Vec<usize>| holding.into_iter().for_each(|at| holds[at] = true);
        std::thread::scope(|scope| {
            // Where no more threads can be had, those that run do the work.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads.get().min(chunks.len())).filter_map(start).collect();
            tell(work());
            others.into_iter().for_each(|other| tell(other.join().expect("a worker does not panic")));
        });
        holds
    }

    fn claim<'a>(&self, key: &'a CachedKey, item: &SignedItem<'_>) -> Option<Claim<'a>> {
        Claim::read(key, self.domain.prefix(), item.transaction_bytes, item.signature)
    }

    fn judge(&self, keys: &KeyCache, items: &[SignedItem<'_>], chunk: &[(AccountId, usize)], holding: &mut Vec<usize>) {
        // Each key once, for those of its account.
        let by_account = || chunk.chunk_by(|a, b| a.0 == b.0);
        let held: Vec<Option<CachedKey>> = by_account().map(|of_one| keys.get(of_one[0].0)).collect();
        let with_key = by_account().zip(&held).filter_map(|(of_one, key)| Some((of_one, key.as_ref()?)));
        let all = with_key.flat_map(|(of_one, key)| of_one.iter().map(move |&(_, at)| (at, key)));
        let read = all.filter_map(|(at, key)| Some((at, self.claim(key, &items[at])?)));
        let (places, claims): (Vec<usize>, Vec<Claim<'_>>) = read.unzip();
        let holds = Chunk::judge(claims, &self.secret);
        holding.extend(places.into_iter().zip(holds).filter_map(|(at, holds)| holds.then_some(at)));
    }
}

/// Does not show the secret.
impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("domain", &self.domain).finish_non_exhaustive()
    }
}
