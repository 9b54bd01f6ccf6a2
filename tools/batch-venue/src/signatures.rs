//! Who signs the transactions of a workload, and what checks them.

use std::num::NonZero;

use anyhow::{Context, ensure};
use walras_batch_signatures::{KeyCache, SignedItem, SigningKey, Verifier};
use walras_clearing::fork_join::fork_join;
use walras_types::{AccountId, BatchTransaction};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use crate::venue::timed;

/// Keys of all accounts of a workload. It holds what a venue holds: the public keys.
#[derive(Debug)]
pub struct Signatures {
    domain: SigningDomain,
    keys: KeyCache,
    verifier: Verifier,
}

/// Signed transactions as bytes, one after the other, and where each ends.
#[derive(Clone, Debug, Default)]
pub struct SignedBlock {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SignedBlock {
    /// The transactions, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Signatures {
    /// A key for each of so many accounts.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new(account_count: u32) -> anyhow::Result<Self> {
        let domain = SigningDomain::new(&[7; 32]);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get) as u32;
        let part_len = account_count.div_ceil(threads).max(1);
        let parts = (0..account_count).step_by(part_len as usize).map(|begin| begin..account_count.min(begin + part_len));
        let public_keys = fork_join(parts.collect(), |part| part.map(|account| signer(account).public_key()).collect::<Vec<_>>());
        let mut keys = KeyCache::default();
        for (account, key) in (0..).map(AccountId).zip(public_keys.into_iter().flatten()) {
            keys.insert(account, key)?;
        }
        let verifier = Verifier::new(domain).context("drawing a secret")?;
        Ok(Self { domain, keys, verifier })
    }

    /// Signs transactions, by so many threads.
    #[must_use]
    pub fn sign(&self, transactions: &[BatchTransaction], threads: NonZero<usize>) -> SignedBlock {
        let part_len = transactions.len().div_ceil(threads.get()).max(1);
        let parts = fork_join(transactions.chunks(part_len).collect(), |part| {
            let mut signed = SignedBlock::default();
            for transaction in part {
                let signer = signer(transaction.account.0);
                encode_signed_transaction(&signer.sign(&self.domain, transaction), &mut signed.bytes);
                signed.ends.push(signed.bytes.len());
            }
            signed
        });
        let mut all = SignedBlock::default();
        for part in parts {
            let begin = all.bytes.len();
            all.bytes.extend(part.bytes);
            all.ends.extend(part.ends.iter().map(|end| begin + end));
        }
        all
    }

    /// Decodes transactions and checks their signatures; in how many milliseconds.
    ///
    /// # Errors
    /// When one does not hold.
    pub fn check(&self, signed: &SignedBlock, threads: NonZero<usize>) -> anyhow::Result<(Vec<BatchTransaction>, f64)> {
        let mut check_ms = 0.0;
        let transactions = timed(&mut check_ms, || {
            let mut begin = 0;
            let mut transactions = Vec::with_capacity(signed.ends.len());
            let mut items = Vec::with_capacity(signed.ends.len());
            for &end in &signed.ends {
                let (transaction, item) = SignedItem::decode(&signed.bytes[begin..end])?;
                transactions.push(transaction);
                items.push(item);
                begin = end;
            }
            let held = self.verifier.verify(&self.keys, &items, threads);
            ensure!(held.iter().all(|held| *held), "a signature does not hold: what was signed has changed since");
            Ok(transactions)
        })?;
        Ok((transactions, check_ms))
    }
}

/// An account's secret key.
fn signer(account: u32) -> SigningKey {
    SigningKey::from_seed(&std::array::from_fn(|place| (account >> (8 * (place % 4))) as u8 ^ place as u8))
}

#[cfg(test)]
mod tests {
    use walras_batch_workload::{Model, Workload};

    use super::*;

    #[test]
    fn what_is_signed_is_read_and_what_is_changed_is_found() {
        let mut workload = Workload::new(Model::standard(3, 50, 300), 1);
        let transactions = workload.block(|_, _| false).to_vec();
        let signatures = Signatures::new(50).unwrap();
        let (one, three) = (NonZero::<usize>::MIN, NonZero::new(3).unwrap());
        let mut signed = signatures.sign(&transactions, three);
        let alone = signatures.sign(&transactions, one);
        assert_eq!((&signed.bytes, &signed.ends), (&alone.bytes, &alone.ends));
        assert_eq!(signatures.check(&signed, three).unwrap().0, transactions);
        let last = signed.bytes.len() - 1;
        signed.bytes[last] ^= 1;
        assert!(signatures.check(&signed, one).is_err());
    }
}
