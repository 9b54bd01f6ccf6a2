//! How many threads a block is worth.

use std::num::NonZero;

/// Transactions that are as much work as it is to begin and end the threads of a block. Measured: blocks of some hundred are three to ten
/// times slower on two threads than on one.
const TRANSACTIONS_PER_THREAD: usize = 2_048;

/// As many of these threads as a block of so many transactions gains from, at least one: what to close and clear it with.
/// [`Batch`](crate::Batch) takes the number it is given, since the result does not depend on it.
#[must_use]
pub fn threads_worth(threads: NonZero<usize>, transactions: usize) -> NonZero<usize> {
    threads.min(NonZero::new(transactions / TRANSACTIONS_PER_THREAD).unwrap_or(NonZero::<usize>::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_take_one_thread_and_large_ones_all() {
        let worth = |threads, transactions| threads_worth(NonZero::new(threads).unwrap(), transactions).get();
        assert_eq!([0, 1, 2_048, 4_095, 4_096, 8_192, 500_000].map(|transactions| worth(4, transactions)), [1, 1, 1, 1, 2, 4, 4]);
        assert_eq!(worth(1, 500_000), 1);
    }
}
