//! Under faults, each command is applied once, each answer is delivered once and in order, and no report is missing. Planted bugs
//! are found.

use walras_gateway::session::ReportSettings;

use super::world::{Bug, World, small_ring};

const SEEDS: u64 = 60;
const STEPS: u64 = 20_000;

#[test]
fn every_command_is_applied_once_and_answered_in_order_whatever_breaks() {
    let (mut applied, mut faults) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Bug::None, ReportSettings::default());
        world.run(STEPS).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        applied += world.applied_count();
        faults += world.faults;
    }
    assert!(applied > 5_000 && faults > 2_000, "{applied} commands and {faults} faults show too little");
}

#[test]
fn reports_that_are_not_kept_are_announced_as_missing_and_no_other() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Bug::None, small_ring());
        world.run(STEPS).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
}

/// The failures that the checks report for a bug, over some seeds.
fn found(bug: Bug) -> Vec<String> {
    (0..12).filter_map(|seed| World::new(seed, bug, ReportSettings::default()).run(STEPS).err()).collect()
}

#[test]
fn planted_bugs_are_found() {
    for (bug, violation) in [
        (Bug::ClientRenumbers, "applied twice"),
        (Bug::WindowForgotten, "than the window allows"),
        (Bug::ReportSkipped, "a report is missing"),
        (Bug::AnswerMixedUp, "another command's"),
        (Bug::DedupeForgotten, "applied twice"),
        (Bug::ReportsForgotten, "but has already sent"),
    ] {
        let found = found(bug);
        assert!(found.iter().any(|text| text.contains(violation)), "{bug:?} was found as {found:?}");
    }
}
