//! The papers' experiments on whole blocks: how fast they are proposed and validated, by how many threads, on how large a state.
//!
//! Shared by all of them: who is asked for which number of threads, what fits into memory, and how a result is summed up.

pub mod bare_book;
pub mod batches;
pub mod chain;
pub mod chain_record;
pub mod filter;
pub mod payments;
pub mod published;

use std::num::NonZero;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::ruler::{quantile, thousandths};

/// Powers of two up to the number of cores, and that number.
#[must_use]
pub fn threads_default() -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut threads: Vec<usize> = (0..usize::BITS).map(|bit| 1 << bit).take_while(|count| *count < cores).collect();
    threads.push(cores);
    threads
}

/// A list such as `1,2,4`.
pub fn threads_of(text: &str) -> anyhow::Result<Vec<usize>> {
    let count = |word: &str| word.trim().parse().ok().filter(|count| (1..=256).contains(count));
    let threads: Option<Vec<usize>> = text.split(',').map(count).collect();
    let mut threads = threads.with_context(|| format!("`{text}` is no list of numbers of threads, 1 to 256, such as 1,2,4"))?;
    threads.sort_unstable();
    threads.dedup();
    Ok(threads)
}

pub(crate) fn nonzero(threads: usize) -> NonZero<usize> {
    NonZero::new(threads).expect("lists of threads have none of zero")
}

/// What the system says is left; without an answer, all there may be.
pub(crate) fn memory_available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1_024)
}

/// About what a state of so many accounts takes, with what it hashes and what a block of it needs.
pub(crate) fn state_bytes(account_count: u32, asset_count: u16) -> u64 {
    u64::from(account_count) * (300 + 20 * u64::from(asset_count)) + (1 << 30)
}

/// How many states of so many accounts fit into what is left, two at most: those of a proposer and of a validator.
pub(crate) fn states_that_fit(account_count: u32, asset_count: u16) -> u64 {
    (memory_available_bytes() / state_bytes(account_count, asset_count)).min(2)
}

/// Some values summed up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) p10: f64,
    pub(crate) median: f64,
    pub(crate) p90: f64,
    pub(crate) count: usize,
}

impl Summary {
    pub(crate) fn of(values: &[f64]) -> anyhow::Result<Self> {
        ensure!(!values.is_empty(), "nothing was measured: ask for at least one round");
        let [p10, median, p90] = [0.1, 0.5, 0.9].map(|share| quantile(values, share));
        Ok(Self { p10, median, p90, count: values.len() })
    }

    pub(crate) fn to_json(self) -> Value {
        let [p10, median, p90] = [self.p10, self.median, self.p90].map(thousandths);
        json!({ "median": median, "p10": p10, "p90": p90, "count": self.count })
    }
}

/// Transactions in so many milliseconds, as transactions a second.
pub(crate) fn per_second(transactions: usize, ms: f64) -> f64 {
    (transactions as f64 / ms * 1e3).round()
}

/// So many threads.
pub(crate) fn threads_named(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// A rate in thousands with three digits.
pub(crate) fn thousands(rate: f64) -> String {
    match rate / 1e3 {
        rate if rate < 9.995 => format!("{rate:.2} k"),
        rate if rate < 99.95 => format!("{rate:.1} k"),
        rate => format!("{rate:.0} k"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_threads() {
        assert_eq!(threads_of("4,1,2,2").unwrap(), [1, 2, 4]);
        for wrong in ["", "0", "1;2", "two", "257"] {
            assert!(threads_of(wrong).is_err(), "{wrong}");
        }
        let found = threads_default();
        assert_eq!((found[0], found.is_sorted()), (1, true));
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!([1_234.0, 12_345.0, 123_456.0, 1_234_567.0].map(thousands), ["1.23 k", "12.3 k", "123 k", "1235 k"]);
        assert_eq!(per_second(500, 250.0), 2_000.0);
    }
}
