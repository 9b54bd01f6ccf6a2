//! How many threads a block is worth.
//!
//! A block forks and joins some six times, and each thread that it begins costs what some thousand payments do. What there is to do is known before, nearly: so much for
//! each transaction, more if it is an offer, which stands in a book and in a tree, and most for each account that is touched, which is hashed.

use std::num::NonZero;

use walras_types::{AccountId, BatchOperation, BatchTransaction};

use crate::batch::Batch;
use crate::effects::Then;

/// What an offer takes, in payments.
const OFFER_WORK: u64 = 3;

/// What an account that is touched takes, in payments.
const ACCOUNT_WORK: u64 = 5;

/// Of so much work a thread is worth what it costs to begin it. Two threads took a quarter longer than one for 10,000 payments among 1,000 accounts and twice as long for
/// 6,400 among 100, as long for 10,000 among 10,000, and were a fifth faster with 64,000 among 1,000 (`experiments/speedex-2023/fig-7`).
const WORK_PER_THREAD: u64 = 8_192;

/// As many of these threads as it takes to close a batch of these transactions soonest, at least one: O(transactions).
/// [`Batch`] takes the number it is given, since the result does not depend on it.
#[must_use]
pub fn threads_worth(threads: NonZero<usize>, transactions: &[BatchTransaction]) -> NonZero<usize> {
    // Each touches two accounts at most.
    let work_max = (OFFER_WORK + 2 * ACCOUNT_WORK) * transactions.len() as u64;
    if is_for_one(threads, work_max) { NonZero::<usize>::MIN } else { Work::of(transactions).threads_worth(threads) }
}

impl Batch {
    /// As many of these threads as it takes to clear the closed batch soonest, at least one: O(transactions). What stands already and trades is not known before: it
    /// counts as nothing.
    #[must_use]
    pub fn threads_worth_clearing(&self, threads: NonZero<usize>) -> NonZero<usize> {
        let Some(closed) = &self.closed else { return NonZero::<usize>::MIN };
        let offer_count = closed.added.records.len() + closed.removed.records.len();
        // Each effect touches one account at most, besides the senders'.
        let work_max = OFFER_WORK * offer_count as u64
            + (1 + ACCOUNT_WORK) * closed.effects.len() as u64
            + ACCOUNT_WORK * closed.senders.len() as u64;
        if is_for_one(threads, work_max) {
            return NonZero::<usize>::MIN;
        }
        let mut work = Work::default();
        closed.senders.iter().for_each(|(account, _)| work.touch(*account));
        closed.effects.iter().for_each(|effect| match effect.then {
            Then::Paid(to) => work.touch(to),
            Then::Cancelled { .. } | Then::Issued | Then::Burnt | Then::AccountFee => {}
        });
        work.add_offers(offer_count as u64);
        work.add_others(closed.effects.len() as u64);
        work.threads_worth(threads)
    }
}

/// Whether so much work at most is for one of these threads, so that nobody has to count.
const fn is_for_one(threads: NonZero<usize>, work_max: u64) -> bool {
    threads.get() == 1 || work_max < 2 * WORK_PER_THREAD
}

/// Marks for accounts: as many as may be touched before how many there are makes no difference.
const MARKS: usize = 1 << 14;

/// What there is to do.
struct Work {
    transactions: u64,
    /// A mark for each account, which some may share: fewer are counted than there are, never more.
    touched: Box<[u64; MARKS / 64]>,
}

impl Default for Work {
    fn default() -> Self {
        Self { transactions: 0, touched: Box::new([0; MARKS / 64]) }
    }
}

impl Work {
    fn of(transactions: &[BatchTransaction]) -> Self {
        let mut work = Self::default();
        for BatchTransaction { account, operation, .. } in transactions {
            work.touch(*account);
            match operation {
                BatchOperation::CreateOffer(_) | BatchOperation::CancelOffer(_) => work.add_offers(1),
                BatchOperation::Payment(payment) => {
                    work.touch(payment.to);
                    work.add_others(1);
                }
                BatchOperation::CreateAccount(_)
                | BatchOperation::Issue(_)
                | BatchOperation::Burn(_)
                | BatchOperation::CreatePool(_)
                | BatchOperation::DepositToPool(_)
                | BatchOperation::WithdrawFromPool(_)
                | BatchOperation::SetKey(_) => work.add_others(1),
            }
        }
        work
    }

    fn add_offers(&mut self, count: u64) {
        self.transactions += OFFER_WORK * count;
    }

    fn add_others(&mut self, count: u64) {
        self.transactions += count;
    }

    #[inline]
    fn touch(&mut self, account: AccountId) {
        // The highest bits of a product with 2^32 over the golden ratio: what follows each other is parted.
        let mark = (account.0.wrapping_mul(0x9e37_79b9) >> (32 - MARKS.trailing_zeros())) as usize;
        self.touched[mark / 64] |= 1 << (mark % 64);
    }

    fn threads_worth(&self, threads: NonZero<usize>) -> NonZero<usize> {
        let touched: u64 = self.touched.iter().map(|marks| u64::from(marks.count_ones())).sum();
        let worth = (self.transactions + ACCOUNT_WORK * touched) / WORK_PER_THREAD;
        // More than fit an index are more than there are threads.
        let worth = usize::try_from(worth).ok().and_then(NonZero::new).unwrap_or(NonZero::<usize>::MIN);
        threads.min(worth)
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{Amount, AssetId, BatchMarketId, BatchPrice, CreateOffer, Payment, TransactionSeq};

    use super::*;

    fn worth(threads: usize, transactions: &[BatchTransaction]) -> usize {
        threads_worth(NonZero::new(threads).unwrap(), transactions).get()
    }

    fn sent(account: u32, operation: BatchOperation) -> BatchTransaction {
        BatchTransaction::new(AccountId(account), TransactionSeq(1), operation)
    }

    /// So many payments of accounts that each pay the next.
    fn payments(count: u32, accounts: u32) -> Vec<BatchTransaction> {
        let pay = |to| BatchOperation::Payment(Payment { to: AccountId(to), asset: AssetId(0), amount: Amount::MAX });
        (0..count).map(|at| sent(at % accounts, pay((at + 1) % accounts))).collect()
    }

    fn offers(count: u32, accounts: u32) -> Vec<BatchTransaction> {
        let (market, sell, buy) = (BatchMarketId(0), AssetId(0), AssetId(1));
        let offer = BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount: Amount::MAX, limit: BatchPrice::ONE });
        (0..count).map(|at| sent(at % accounts, offer)).collect()
    }

    #[test]
    fn small_blocks_take_one_thread_and_large_ones_all() {
        assert_eq!([0, 1, 1_000, 2_000].map(|count| worth(4, &payments(count, 1_000_000))), [1; 4]);
        assert_eq!([100_000, 500_000].map(|count| worth(4, &payments(count, 10_000))), [4; 2]);
        assert_eq!(worth(1, &payments(500_000, 10_000)), 1);
    }

    #[test]
    fn few_accounts_are_less_work_than_many_and_payments_less_than_offers() {
        // 100 accounts have at most 6,400 transactions in a block.
        assert_eq!((worth(2, &payments(6_400, 100)), worth(2, &payments(10_000, 10_000))), (1, 2));
        assert_eq!((worth(2, &payments(6_400, 100)), worth(2, &offers(6_400, 100))), (1, 2));
    }

    #[test]
    fn nobody_counts_only_where_counting_would_make_no_difference() {
        let threads = NonZero::new(8).unwrap();
        for (count, accounts) in (0..6_000).step_by(50).flat_map(|count| [(count, 1), (count, 90), (count, 1_000_000)]) {
            for transactions in [payments(count, accounts), offers(count, accounts)] {
                assert_eq!(
                    threads_worth(threads, &transactions),
                    Work::of(&transactions).threads_worth(threads),
                    "{count}, {accounts}"
                );
            }
        }
    }

    #[test]
    fn accounts_side_by_side_are_told_apart() {
        let mut work = Work::default();
        (7_000_000..7_004_000).for_each(|account| work.touch(AccountId(account)));
        let marks: u32 = work.touched.iter().map(|marks| marks.count_ones()).sum();
        assert!((3_500..=4_000).contains(&marks), "{marks}");
    }
}
