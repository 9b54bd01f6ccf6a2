//! Every planted fault is found, by the checkers that are there for it: so they can fail.

use std::ops::RangeInclusive;

use walras_sim::Trace;
use walras_sim::single::{Mutation, Settings, simulate};

/// Seeds within which each has to be found. Rare ones begin at a later seed, to save time.
fn seeds(mutation: Mutation) -> RangeInclusive<u64> {
    let first = if mutation == Mutation::RefuseBeforeUndone { 241 } else { 1 };
    first..=first + 239
}

/// Who may find it first.
fn checkers(mutation: Mutation) -> &'static [&'static str] {
    match mutation {
        Mutation::AcknowledgeBeforeSync | Mutation::IgnoreFailedSync | Mutation::ReleaseEventsEarly => &["durable first"],
        Mutation::SkipLogSync => &["durable first", "archive", "recovery"],
        Mutation::SkipSnapshotSync | Mutation::LetGoBeforeSnapshot => &["recovery"],
        Mutation::NeverReopen => &["progress"],
        Mutation::RefuseBeforeUndone
        | Mutation::ReplayTwice
        | Mutation::SubmitTwice
        | Mutation::ForgetNonces
        | Mutation::TakeStampsFromStart => &["applied once"],
        Mutation::ForgetCancel | Mutation::CreditTwice => &["replay"],
        Mutation::StampBackwards => &["log time"],
        Mutation::ForgetMarketData | Mutation::LoseLastEvent => &["depth"],
    }
}

#[test]
fn every_planted_fault_is_found() {
    for &mutation in Mutation::ALL {
        let settings = Settings { mutation: Some(mutation), ..Settings::default() };
        let found = seeds(mutation).find_map(|seed| Some((seed, simulate(seed, &settings, &Trace::off()).err()?)));
        let (seed, violation) = found.unwrap_or_else(|| panic!("{mutation:?} was not found in seeds {:?}", seeds(mutation)));
        println!("{mutation:?}: seed {seed}: {violation}");
        assert!(checkers(mutation).contains(&violation.check), "{mutation:?} was found by another checker: {violation}");
    }
}
