//! The checker finds each planted bug, by the properties that it should break; without the bug the same bounds hold. The three
//! properties that no bug here breaks within small bounds are shown to fail on a state made for that.

use std::sync::Arc;

use stateright::{Checker, HasDiscoveries, Model};
use walras_model::properties::{
    ALL_APPLIED, ANSWER_TRUE, ANSWERED, CALM_ENDS, DECIDED_STAYS, IN_ORDER, LEADER_COMPLETE, ONCE, ONE_LEADER, REMEMBERED,
    SAME_STATE,
};
use walras_model::replica::{Applied, Content, Role, Slot};
use walras_model::venue::Venue;
use walras_model::{Bug, Settings, story};

const PLAIN: Settings =
    Settings { clients: 1, commands: 1, window: 1, repeats: 0, elections: 0, crashes: 0, snapshots: 0, altered: 0, bug: None };

/// The steps to the property that breaks.
fn finds(bug: Bug, property: &'static str, settings: Settings) {
    let sound = settings.clone().checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(sound.discovery(property).is_none(), "{property} breaks without {bug:?}: the test shows nothing");
    let checker = Settings { bug: Some(bug), ..settings }.checker();
    let checker = checker.finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    let path = checker.discovery(property);
    assert!(path.is_some(), "{bug:?} was not found by \"{property}\" in {} states", checker.unique_state_count());
    if let Some(path) = path {
        println!("{bug:?} breaks \"{property}\":\n{}", story(checker.model(), property, path));
    }
}

#[test]
fn a_snapshot_without_the_window_forgets_who_waits() {
    finds(Bug::SnapshotWithoutWindow, REMEMBERED, Settings { snapshots: 1, crashes: 1, ..PLAIN });
}

#[test]
fn a_snapshot_without_sessions_applies_twice() {
    finds(Bug::SnapshotWithoutSessions, ONCE, Settings { repeats: 1, snapshots: 1, crashes: 1, ..PLAIN });
    finds(Bug::SnapshotWithoutSessions, SAME_STATE, Settings { repeats: 1, snapshots: 1, crashes: 1, ..PLAIN });
}

#[test]
fn a_memory_that_outlives_its_term_drops_for_ever() {
    finds(Bug::MemoryOutlivesTerm, ANSWERED, Settings { elections: 2, ..PLAIN });
}

#[test]
fn an_origin_known_by_its_slot_alone_gets_another_result() {
    finds(Bug::OriginBySlotAlone, ANSWER_TRUE, Settings { commands: 2, window: 2, elections: 1, ..PLAIN });
}

#[test]
fn a_retry_under_a_new_number_applies_twice() {
    finds(Bug::RetryRenumbered, ONCE, Settings { repeats: 1, ..PLAIN });
    finds(Bug::RetryRenumbered, ALL_APPLIED, Settings { repeats: 1, ..PLAIN });
}

#[test]
fn an_answer_before_the_decision_is_of_nothing() {
    finds(Bug::AcknowledgedBeforeDecided, ANSWER_TRUE, PLAIN);
}

#[test]
fn a_number_ahead_of_its_turn_keeps_out_the_one_before_it() {
    finds(Bug::GapsTaken, ANSWERED, Settings { commands: 2, window: 2, ..PLAIN });
}

#[test]
fn a_window_of_counts_forgets_the_oldest() {
    finds(Bug::WindowOfCounts, REMEMBERED, Settings { commands: 3, window: 2, ..PLAIN });
}

#[test]
fn an_answer_known_by_its_place_alone_is_another_commands() {
    finds(Bug::AnswerByPlaceAlone, ANSWER_TRUE, Settings { altered: 1, ..PLAIN });
}

#[test]
fn a_vote_for_anybody_loses_what_was_decided() {
    finds(Bug::VoteForAnybody, LEADER_COMPLETE, Settings { elections: 1, ..PLAIN });
    finds(Bug::VoteForAnybody, DECIDED_STAYS, Settings { elections: 1, ..PLAIN });
}

#[test]
fn a_state_made_wrong_is_seen() {
    let holds = |name, venue: &_| (PLAIN.property(name).condition)(&PLAIN, venue);
    let good = PLAIN.init_states().remove(0);
    let breaks = |name, spoil: fn(&mut Venue)| {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert!(holds(name, &good) && !holds(name, &bad), "{name}");
    };
    breaks(ONE_LEADER, |venue| venue.replicas.iter_mut().for_each(|replica| Arc::make_mut(replica).role = Role::Leader));
    breaks(CALM_ENDS, |venue| Arc::make_mut(&mut venue.truth).slots = vec![Slot { term: 1, pack: Vec::new() }; 100]);
    breaks(IN_ORDER, |venue| {
        let applied = |command| Applied { log_index: 1, client: 0, command, content: Content::Asked };
        Arc::make_mut(&mut venue.replicas[0]).engine.history = vec![applied(2), applied(1)];
    });
}
