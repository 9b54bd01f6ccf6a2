//! Transactions brought together by account and cut for threads; records brought together by pair.
//!
//! Accounts are cut where about as many transactions lie on each side; a thread then has all transactions of its accounts and nobody
//! else's, so what it decides needs no lock and no atomic.

use std::num::NonZero;

use walras_clearing::fork_join::{cuts, fork_join};
use walras_ledger::PART_ACCOUNTS;
use walras_types::limits::TRANSACTION_SEQ_END;
use walras_types::{AccountId, BatchOperation, BatchTransaction, OfferName, PublicKey, TransactionSeq};

/// What a first look at a batch finds.
pub(crate) struct Look {
    /// The sender of each transaction.
    senders: Vec<u32>,
    /// Ends of the threads' accounts.
    pub(crate) ends: Vec<u32>,
    /// Keys that accounts are to have, new ones and others, and the transactions that ask for them.
    pub(crate) keys: Vec<(PublicKey, u32)>,
    /// Transactions that create a pool, in ascending order.
    pub(crate) pools: Vec<u32>,
    /// Transactions of senders that there are not, in ascending order.
    pub(crate) unknown: Vec<u32>,
}

/// Ranges of accounts whose transactions are counted together, at most.
const BUCKETS_MAX: u32 = 4_096;

/// Looks at senders and keys: O(transactions).
pub(crate) fn look(transactions: &[BatchTransaction], account_count: u32, threads: NonZero<usize>) -> Look {
    let bucket_accounts = account_count.div_ceil(BUCKETS_MAX).next_multiple_of(PART_ACCOUNTS).max(PART_ACCOUNTS);
    let bucket_count = account_count.div_ceil(bucket_accounts) as usize;
    let mut senders = vec![0; transactions.len()];
    let piece = transactions.len().div_ceil(threads.get()).max(1);
    let work: Vec<_> = transactions.chunks(piece).zip(senders.chunks_mut(piece)).zip(0..).collect();
    let found = fork_join(work, |((transactions, senders), number)| {
        let (mut counts, mut keys, mut unknown) = (vec![0_u64; bucket_count], Vec::new(), Vec::new());
        let mut pools = Vec::new();
        // A batch has fewer than 2^32 transactions.
        let first = (number * piece) as u32;
        for ((index, transaction), sender) in (first..).zip(transactions).zip(senders) {
            *sender = transaction.account.0;
            match counts.get_mut((transaction.account.0 / bucket_accounts) as usize) {
                Some(count) if transaction.account.0 < account_count => *count += 1,
                _ => unknown.push(index),
            }
            match transaction.operation {
                BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) => keys.push((key, index)),
                BatchOperation::CreatePool(_) => pools.push(index),
                _ => {}
            }
        }
        (counts, keys, pools, unknown)
    });
    let mut counts = vec![0; bucket_count];
    let (mut keys, mut pools, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (some, more_keys, more_pools, more_unknown) in found {
        counts.iter_mut().zip(some).for_each(|(count, more)| *count += more);
        keys.extend(more_keys);
        pools.extend(more_pools);
        unknown.extend(more_unknown);
    }
    let ends = cuts(counts.into_iter().collect::<Vec<u64>>().into_iter(), threads.get());
    let mut ends: Vec<u32> = ends.into_iter().map(|end| (end as u32).saturating_mul(bucket_accounts).min(account_count)).collect();
    if let Some(last) = ends.last_mut() {
        *last = account_count;
    }
    Look { senders, ends, keys, pools, unknown }
}

/// A transaction's name in one number, and where it is.
pub(crate) type Entry = (u64, u32);

/// The sender of an entry.
pub(crate) fn sender(entry: &Entry) -> AccountId {
    OfferName::of_number(entry.0).account
}

impl Look {
    /// The transactions of the accounts `first..end`, in the order in which they were given. Numbers that nobody may use count as the last.
    pub(crate) fn of_accounts(&self, transactions: &[BatchTransaction], first: u32, end: u32) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(transactions.len() / self.ends.len() + transactions.len() / 16);
        for (index, &account) in (0_u32..).zip(&self.senders) {
            if account.wrapping_sub(first) < end - first {
                let sequence = transactions[index as usize].sequence.0.min(TRANSACTION_SEQ_END - 1);
                let name = OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
                entries.push((name.number(), index));
            }
        }
        entries
    }
}

/// Records of pairs brought together: those of pair `n` are `records[starts[n]..starts[n + 1]]`.
#[derive(Clone, Debug)]
pub(crate) struct ByPair<T> {
    pub(crate) records: Vec<T>,
    pub(crate) starts: Vec<u32>,
}

impl<T> Default for ByPair<T> {
    fn default() -> Self {
        Self { records: Vec::new(), starts: Vec::new() }
    }
}

impl<T: Copy + Send + Sync> ByPair<T> {
    /// Brings records together and changes each: O(records * threads / threads). Keeps the order within a pair.
    pub(crate) fn of(place_count: u32, pieces: &[(&[u32], &[T])], change: impl Fn(T) -> T + Sync, threads: NonZero<usize>) -> Self {
        let mut starts = vec![0_u32; place_count as usize + 1];
        for pair in pieces.iter().flat_map(|(pairs, _)| pairs.iter()) {
            starts[*pair as usize + 1] += 1;
        }
        for pair in 0..place_count as usize {
            starts[pair + 1] += starts[pair];
        }
        let Some(&filler) = pieces.iter().find_map(|(_, records)| records.first()) else {
            return Self { records: Vec::new(), starts };
        };
        let mut records = vec![filler; starts[place_count as usize] as usize];
        let ends = cuts(starts.windows(2).map(|two| u64::from(two[1] - two[0])), threads.get());
        let (mut rest, mut from) = (&mut records[..], 0);
        let mut work = Vec::with_capacity(ends.len());
        for end in ends {
            let room = (starts[end] - starts[from]) as usize;
            let part = rest.split_off_mut(..room).expect("starts end with the records");
            work.push((from as u32, end as u32, part));
            from = end;
        }
        fork_join(work, |(from, end, part): (u32, u32, &mut [T])| {
            let base = starts[from as usize];
            let mut next: Vec<u32> = starts[from as usize..end as usize].iter().map(|start| start - base).collect();
            for (pairs, records) in pieces {
                for (pair, record) in pairs.iter().zip(*records) {
                    if pair.wrapping_sub(from) < end - from {
                        let place = &mut next[(pair - from) as usize];
                        part[*place as usize] = change(*record);
                        *place += 1;
                    }
                }
            }
        });
        Self { records, starts }
    }

    /// The records of a pair.
    pub(crate) fn of_pair(&self, pair: u32) -> &[T] {
        match self.starts.get(pair as usize..pair as usize + 2) {
            Some(&[start, end]) => &self.records[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The records of each pair, in the order of the pairs.
    pub(crate) fn pairs_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        let mut rest = &mut self.records[..];
        self.starts
            .windows(2)
            .map(move |two| rest.split_off_mut(..(two[1] - two[0]) as usize).expect("starts end with the records"))
    }
}
