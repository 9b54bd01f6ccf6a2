//! Where each fault planted around transfer relays has to show, as `cluster/planted.rs` says it of a cluster's.

use std::ops::RangeInclusive;

use super::{Mutation, Settings, simulate};
use crate::common::planted::{Found, Missed, look};
use crate::common::trace::Trace;

/// A planted fault, and where to look for it.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The venue, with the fault in it.
    pub settings: Settings,
    /// The checkers of which one has to find it first.
    pub checkers: &'static [&'static str],
    /// The seeds within which it has to be found.
    pub seeds: RangeInclusive<u64>,
}

impl Planted {
    /// Simulates these seeds until a checker finds the fault.
    ///
    /// # Errors
    /// No seed shows it, or another checker than these is the first.
    ///
    /// # Panics
    /// Where no fault is planted.
    pub fn find(&self) -> Result<Found, Missed> {
        let mutation = self.settings.mutation.expect("a fault is planted");
        look(&mutation, self.checkers, self.seeds.clone(), |seed| simulate(seed, &self.settings, &Trace::off()).err())
    }
}

/// Where this fault is looked for.
#[must_use]
pub fn planted(mutation: Mutation) -> Planted {
    let (checkers, seeds) = found_by(mutation);
    let settings = Settings {
        count: Some(2),
        replicas: Some(3),
        sets_back: Some(mutation == Mutation::NeverAsks),
        mutation: Some(mutation),
        ..Settings::default()
    };
    Planted { settings, checkers, seeds }
}

fn found_by(mutation: Mutation) -> (&'static [&'static str], RangeInclusive<u64>) {
    match mutation {
        Mutation::NeverAsks => (&["set back"], 1..=10),
        Mutation::StaleDirectory => (&["set back"], 1..=40),
        Mutation::SilenceIsTaken
        | Mutation::RefusedIsTaken
        | Mutation::TakenIsRefused
        | Mutation::DeliversMore
        | Mutation::DeliversToAnother
        | Mutation::ReceiverForgets => (&["arrives once"], 1..=10),
        Mutation::SendsTwice => (&["done once"], 1..=3),
        Mutation::GivesUp => (&["in transit"], 1..=10),
    }
}
