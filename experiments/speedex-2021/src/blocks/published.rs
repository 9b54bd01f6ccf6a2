//! What the papers say of blocks, and what the reference implementation was measured at. The copies at hand show no points of the figures: all
//! of it is from their text.

use serde_json::{Value, json};

/// Transactions a second and thread of SPEEDEX 2023, figure 3: 200,000 on 48 cores.
pub const RATE_PER_CORE_2023: f64 = 200_000.0 / 48.0;

/// The same of SPEEDEX 2021, figure 5: 120,000 on 32 cores, no signatures.
pub const RATE_PER_CORE_2021: f64 = 120_000.0 / 32.0;

/// SPEEDEX 2023, section 7.1: payments alone, 10 million accounts, 50 assets; threads and transactions a second. The first follows from the
/// speed-ups that are given (34.8, 20.0, 10.6, 5.6).
pub const PAYMENTS: [(usize, f64); 5] = [(1, 10_800.0), (6, 60_000.0), (12, 114_000.0), (24, 215_000.0), (48, 375_000.0)];

/// SPEEDEX 2023, section 7.1: a bare order book of two assets; accounts and transactions a second.
pub const BARE_BOOK: [(u32, f64); 2] = [(100, 1_700_000.0), (10_000_000, 210_000.0)];

/// SPEEDEX 2023, appendix I: the filter over 500,000 transactions; threads and seconds. The first follows from a speed-up of 21.0.
pub const FILTER: [(usize, f64); 3] = [(1, 2.73), (24, 0.13), (48, 0.07)];

/// The same where most of 10,000 accounts overdraw: seconds at the best number of threads, and the speed-up there.
pub const FILTER_CONTESTED: (f64, f64) = (0.10, 5.3);

/// The reference implementation on a machine like ours: 50 assets, 100,000 accounts, blocks of 100,000, no signatures, no disk.
pub fn reference() -> Value {
    json!({
        "machine": "2 cores, 2.6 GHz, 24 GiB; measured apart, 50 assets, 100,000 accounts, blocks of 100,000, no disk",
        "mixed_tx_per_s": {
            "1": { "propose": [53_000, 58_000], "validate": [107_000, 126_000] },
            "2": { "propose": [103_000, 113_000], "validate": [181_000, 213_000] },
        },
        "mixed_1m_accounts_2_threads_propose_tx_per_s": [53_000, 63_000],
        "mixed_signed_2_threads_tx_per_s": { "propose": [24_000, 27_000], "validate": [34_000, 35_000] },
        "payments_tx_per_s": {
            "1": { "propose": [64_000, 67_000], "validate": [77_000, 87_000] },
            "2": { "propose": [96_000, 105_000], "validate": [120_000, 144_000] },
        },
    })
}

/// The middle of what the reference implementation proposed and validated of mixed blocks by so many threads, transactions a second.
#[must_use]
pub fn reference_mixed(threads: usize) -> Option<(f64, f64)> {
    match threads {
        1 => Some((55_500.0, 116_500.0)),
        2 => Some((108_000.0, 197_000.0)),
        _ => None,
    }
}

/// The same of payments.
#[must_use]
pub fn reference_payments(threads: usize) -> Option<(f64, f64)> {
    match threads {
        1 => Some((65_500.0, 82_000.0)),
        2 => Some((100_500.0, 132_000.0)),
        _ => None,
    }
}
