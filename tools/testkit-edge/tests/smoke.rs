//! Every fuzz target of the edge, on any compiler: see [`walras_testkit::smoke`].

use walras_testkit::smoke::{check_programs, seeds, smoke};
use walras_testkit_edge::{TARGETS, disk};

#[test]
fn decoders() {
    smoke(TARGETS, |_| true);
}

#[test]
fn every_target_has_seeds_and_a_program() {
    check_programs(TARGETS);
}

/// The formats of its parts change; a fuzzer that sets out from snapshots of another version finds nothing.
#[test]
fn seeds_of_snapshots_restore() {
    for (number, seed) in seeds("node_snapshot").iter().enumerate() {
        let advice = "run make_seeds of walras-testkit, then `cargo run -p walras-testkit-edge --example make_edge_seeds`";
        assert_eq!(disk::restores(seed), Ok(()), "seed {number}: {advice}");
    }
}
