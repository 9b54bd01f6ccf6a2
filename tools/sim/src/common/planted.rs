//! Faults that are planted on purpose: their names, and the search for one.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::common::checks::Violation;

/// A planted fault that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The seed that shows it.
    pub seed: u64,
    /// What the checker says.
    pub violation: Violation,
}

/// A planted fault that was not found as it has to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missed {
    /// No seed shows it.
    #[error("{mutation} was not found in the seeds {seeds:?}")]
    Unseen {
        /// The fault.
        mutation: String,
        /// The seeds that were simulated.
        seeds: RangeInclusive<u64>,
    },
    /// A checker found it that is there for something else.
    #[error("{mutation} was found by another checker: {violation}")]
    ByAnother {
        /// The fault.
        mutation: String,
        /// What that checker says.
        violation: Violation,
    },
}

/// Simulates seeds until one has a violation, which has to be by one of these checkers.
pub(crate) fn look(
    mutation: &dyn Debug,
    checkers: &[&str],
    mut seeds: RangeInclusive<u64>,
    simulate: impl Fn(u64) -> Option<Violation>,
) -> Result<Found, Missed> {
    let (mutation, all) = (format!("{mutation:?}"), seeds.clone());
    let found = seeds.find_map(|seed| simulate(seed).map(|violation| Found { seed, violation }));
    match found {
        Some(found) if checkers.contains(&found.violation.check) => Ok(found),
        Some(Found { violation, .. }) => Err(Missed::ByAnother { mutation, violation }),
        None => Err(Missed::Unseen { mutation, seeds: all }),
    }
}

/// An enum of planted faults, each with what it does, that knows all of them and reads their names.
macro_rules! mutations {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        /// A planted fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutation { $($(#[doc = $doc])* $name),* }

        impl Mutation {
            /// Every planted fault.
            pub const ALL: &[Mutation] = &[$(Mutation::$name),*];
        }

        impl std::str::FromStr for Mutation {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|mutation| format!("{mutation:?}") == text);
                found.ok_or_else(|| format!("no mutation {text}; there are: {:?}", Self::ALL))
            }
        }
    };
}

pub(crate) use mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_counts_as_found_by_the_checker_that_is_there_for_it() {
        let shows_at_3 = |seed| (seed == 3).then(|| Violation::new("answers", "two"));
        let found = look(&"It", &["answers"], 1..=5, shows_at_3).unwrap();
        assert_eq!((found.seed, found.violation.check), (3, "answers"));
        let missed = look(&"It", &["funds"], 1..=5, shows_at_3).unwrap_err();
        assert!(matches!(missed, Missed::ByAnother { .. }), "{missed}");
        let missed = look(&"It", &["answers"], 4..=5, shows_at_3).unwrap_err();
        assert_eq!(missed, Missed::Unseen { mutation: "\"It\"".to_owned(), seeds: 4..=5 });
    }
}
