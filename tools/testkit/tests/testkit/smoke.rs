//! Every fuzz target, on any compiler: see [`walras_testkit::smoke`].

use walras_market_data::{MarketData, PublicBooks};
use walras_testkit::fuzz::TARGETS;
use walras_testkit::smoke::{check_programs, seeds, smoke};

#[test]
fn decoders() {
    smoke(TARGETS, |name| !name.starts_with("engine_apply") && name != "order_book");
}

#[test]
fn order_book() {
    smoke(TARGETS, |name| name == "order_book");
}

#[test]
fn engine_apply() {
    smoke(TARGETS, |name| name == "engine_apply");
}

/// Any commands between the steps of blocks: orders, funds, keys, restarts, steps that are wrong.
#[test]
fn engine_apply_in_steps() {
    for seed in 0..80_u64 {
        let mut state = seed;
        let mut next = || {
            // Steele and Vigna's SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as u8
        };
        let bytes: Vec<u8> = (0..800 + 40 * seed).map(|_| next()).collect();
        walras_testkit::fuzz::engine::apply_in_steps(&bytes);
    }
}

#[test]
fn every_target_has_seeds_and_a_program() {
    check_programs(TARGETS);
}

/// Formats change; a fuzzer that sets out from snapshots of another version finds nothing.
#[test]
fn seeds_of_market_data_restore() {
    for (number, seed) in seeds("market_data_restore").iter().enumerate() {
        let restores = MarketData::restore(seed).is_ok() || PublicBooks::restore(seed).is_ok();
        assert!(restores, "seed {number} is of another version: run `cargo run -p walras-testkit --example make_seeds`");
    }
}
