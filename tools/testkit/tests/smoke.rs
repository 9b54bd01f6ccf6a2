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
