//! Markets and proposals of a batch, beside the naive judge in rationals.

use walras_clearing::verify;

use crate::Choices;

// The judge and its cases belong to the tests of `core/clearing`. They are compiled here a second time.
#[allow(dead_code, clippy::unwrap_used, reason = "the fuzz target uses a part of it")]
#[path = "../../../../core/clearing/tests/clearing/generate.rs"]
mod generate;
#[allow(dead_code, clippy::unwrap_used, reason = "the fuzz target uses a part of it")]
#[path = "../../../../core/clearing/tests/clearing/greedy.rs"]
mod greedy;
#[allow(dead_code, clippy::unwrap_used, reason = "the model of a test")]
#[path = "../../../../core/clearing/tests/clearing/naive.rs"]
mod naive;
#[path = "../../../../core/clearing/tests/clearing/naive_pools.rs"]
mod naive_pools;

/// What the core accepts the judge accepts too, and why the core rejects is one of the judge's reasons.
pub fn verification(bytes: &[u8]) {
    let c = &mut Choices::of_bytes(bytes);
    let below = &mut |bound| c.below(bound);
    let prices = generate::prices(below);
    let parts = generate::parts(below, &prices);
    let (market, rules) = (generate::market(&parts), generate::rules(below));
    let mut proposal = generate::right_proposal(below, &market, &prices, &rules);
    for _ in 0..below(4) {
        generate::disturb(below, &mut proposal);
    }
    match (verify(&market, &proposal, &rules), parts.judge(&proposal, &rules)) {
        (Ok(verified), Ok(expected)) => {
            for (clearing, fills) in verified.pairs().iter().zip(&expected.fills) {
                let own = verified.fills(clearing);
                let own = (clearing.pair, own.sells().collect(), own.buys().collect());
                assert_eq!(own, *fills, "fills of a pair (left: the core, right: the judge)");
            }
            assert_eq!(verified.surplus(), expected.surplus, "what stays with the venue (left: the core, right: the judge)");
        }
        (Err(rejected), Err(broken)) => {
            assert!(broken.contains(&rejected.number()), "the core rejects because {rejected}; the judge found {broken:?}");
        }
        (core, judge) => panic!("the core: {:?}; the judge: {:?}", core.map(|_| "accepts"), judge.map(|_| "accepts")),
    }
}
