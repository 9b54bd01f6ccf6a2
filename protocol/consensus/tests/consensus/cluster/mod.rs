//! Whole clusters from seeds, with faults: nothing decided is ever lost or changed, and after healing everything goes on.

mod checks;
mod log;
mod rng;
#[allow(dead_code, reason = "the example uses the rest")]
mod world;

use walras_consensus::{Durability, MemberChange, ReplicaId};
use world::{Bug, MS, Options, World};

const SEEDS: u64 = 200;

fn run(options: Options) -> World {
    let mut world = World::new(options);
    world.safety_phase(2_500 * MS);
    if world.checks.violation.is_none() {
        world.healing_phase(3_000 * MS);
    }
    world
}

#[test]
fn nothing_decided_is_lost_or_changed_and_everything_goes_on_after_healing() {
    let mut totals = world::Counts::default();
    for seed in 0..SEEDS {
        let voters = if seed % 2 == 0 { 3 } else { 5 };
        let world = run(Options::new(seed, voters));
        if let Some(violation) = &world.checks.violation {
            panic!("seed {seed}, {voters} replicas, at {} ns: {violation}", world.now_ns);
        }
        totals.crashes += world.counts.crashes;
        totals.lost_writes += world.counts.lost_writes;
        totals.partitions += world.counts.partitions;
        totals.lost_links += world.counts.lost_links;
        totals.elections += world.counts.elections;
        totals.installed += world.counts.installed;
        totals.reads += world.counts.reads;
        totals.acknowledged += world.counts.acknowledged;
        totals.events += world.counts.events;
    }
    println!("{totals:?}");
    assert!(totals.crashes > SEEDS && totals.lost_writes > SEEDS && totals.partitions > SEEDS && totals.installed > SEEDS / 2);
    assert!(totals.lost_links > SEEDS);
    assert!(totals.elections > SEEDS * 2 && totals.reads > SEEDS * 10 && totals.acknowledged > SEEDS * 100);
}

#[test]
fn the_same_with_changes_of_members() {
    let (mut changes, mut installed) = (0, 0);
    for seed in 1_000..1_000 + SEEDS {
        let world = run(Options { spares: 2, ..Options::new(seed, 3) });
        if let Some(violation) = &world.checks.violation {
            panic!("seed {seed}, at {} ns: {violation}", world.now_ns);
        }
        changes += world.counts.member_changes;
        installed += world.counts.installed;
    }
    println!("{changes} changes of members, {installed} snapshots installed");
    assert!(changes > SEEDS && installed > SEEDS);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let runs = [0, 1].map(|_| run(Options { spares: 1, ..Options::new(seed, 3) }));
        assert_eq!(runs[0].trace, runs[1].trace, "seed {seed}: something but the seed decides");
        assert_eq!(runs[0].counts.events, runs[1].counts.events);
    }
    assert_ne!(run(Options::new(1, 3)).trace, run(Options::new(2, 3)).trace);
}

/// The first of the seeds that finds something, be it by a check or by a replica that refuses to go on; and what it says.
fn found(seeds: u64, options: impl Fn(u64) -> Options) -> Option<String> {
    (0..seeds).find_map(|seed| run(options(seed)).checks.violation.map(|violation| format!("seed {seed}: {violation}")))
}

#[test]
fn planted_bugs_are_found() {
    // A forgotten vote shows when several stand for election at once: no pre-vote, timeouts that hardly differ, a slow network.
    let crowded = |seed| Options {
        settings: |settings| {
            settings.pre_vote = false;
            settings.election_timeout_max_ns = settings.election_timeout_min_ns + MS;
        },
        latency_ns: (MS, 25 * MS),
        sync_ns: (10_000, 100_000),
        ..Options::new(seed, 3)
    };
    assert_eq!(found(SEEDS, crowded), None, "without a bug");
    for bug in [Bug::AcknowledgesBeforeSync, Bug::ForgetsItsVote, Bug::KeepsReplacedSlots, Bug::ReadsAtOnce] {
        let options = |seed| if bug == Bug::ForgetsItsVote { crowded(seed) } else { Options::new(seed, 3) };
        let violation = found(SEEDS, |seed| Options { bug: Some(bug), ..options(seed) });
        println!("{bug:?}: {violation:?}");
        assert!(violation.is_some(), "{bug:?} is not found");
    }
}

#[test]
fn in_memory_a_killed_process_costs_nothing_and_lost_power_does() {
    let in_memory = |seed| Options { settings: |settings| settings.durability = Durability::Memory, ..Options::new(seed, 3) };
    assert_eq!(found(SEEDS / 2, |seed| Options { keeps_written: true, ..in_memory(seed) }), None);
    let violation = found(SEEDS, in_memory);
    println!("power lost: {violation:?}");
    assert!(violation.is_some(), "the warning in `Durability::Memory` would be wrong");
}

fn calm(voters: u64) -> Options {
    Options { loss_per_mille: 0, duplicate_per_mille: 0, ..Options::new(7, voters) }
}

fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

#[test]
fn leadership_goes_where_it_is_sent_without_an_election_timeout() {
    let mut world = World::new(calm(3));
    world.run_until(500 * MS);
    for _ in 0..5 {
        let before = world.leader().unwrap();
        let to = (1..=3).map(id).find(|to| *to != before).unwrap();
        assert!(world.transfer(before, to));
        assert!(!world.transfer(to, before), "it does not lead yet");
        world.run_until(world.now_ns + 39 * MS);
        assert_eq!(world.leader(), Some(to));
    }
    world.healing_phase(1_000 * MS);
    assert_eq!(world.checks.violation, None);
}

#[test]
fn a_cluster_grows_from_one_to_five_and_moves_to_other_machines() {
    let mut world = World::new(Options { spares: 4, ..calm(1) });
    world.run_until(400 * MS);
    let change = |world: &mut World, changes: &[MemberChange]| {
        let leader = world.leader().unwrap();
        assert!(world.change_members(leader, changes));
        assert!(!world.change_members(leader, &[MemberChange::Remove(id(1))]), "one change at a time");
        world.run_until(world.now_ns + 400 * MS);
        assert_eq!(world.checks.violation, None);
    };
    change(&mut world, &[MemberChange::AddLearner(id(2))]);
    change(&mut world, &[MemberChange::AddVoter(id(2))]);
    change(&mut world, &[3, 4, 5].map(|n| MemberChange::AddLearner(id(n))));
    change(&mut world, &[3, 4, 5].map(|n| MemberChange::AddVoter(id(n))));
    let leader = world.leader().unwrap();
    assert_eq!(world.members(leader).voters, (1..=5).map(id).collect());
    // Also when the leader is among those who leave.
    change(&mut world, &[MemberChange::Remove(id(1)), MemberChange::Remove(id(2))]);
    let leader = world.leader().unwrap();
    assert_eq!(world.members(leader).voters, (3..=5).map(id).collect());
    world.healing_phase(1_000 * MS);
    assert_eq!(world.checks.violation, None);
}

/// A majority of those who vote after it could not decide anything, nor take it back.
#[test]
fn a_change_after_which_nothing_could_be_decided_is_refused() {
    let mut world = World::new(Options { spares: 2, ..calm(1) });
    world.run_until(400 * MS);
    let first = id(1);
    assert!(!world.change_members(first, &[MemberChange::AddVoter(id(2))]), "nobody knows whether it is there");
    assert!(world.change_members(first, &[MemberChange::AddLearner(id(2))]));
    world.run_until(world.now_ns + 400 * MS);
    (1..=3).map(id).for_each(|other| world.cut(id(2), other));
    world.run_until(world.now_ns + 1_000 * MS);
    assert!(!world.change_members(first, &[MemberChange::AddVoter(id(2))]), "it is not heard any more");
    assert!(world.change_members(first, &[MemberChange::Remove(id(2))]), "it did not vote");
    world.run_until(world.now_ns + 400 * MS);
    assert!(world.change_members(first, &[MemberChange::AddLearner(id(3))]));
    world.run_until(world.now_ns + 400 * MS);
    assert!(world.change_members(first, &[MemberChange::AddVoter(id(3))]));
    world.run_until(world.now_ns + 400 * MS);
    assert_eq!(world.members(first).voters, [1, 3].map(id).into());

    let mut world = World::new(calm(3));
    world.run_until(500 * MS);
    let leader = world.leader().unwrap();
    let [dead, alive] = [1, 2, 3].map(id).into_iter().filter(|at| *at != leader).collect::<Vec<_>>()[..] else {
        panic!("of three")
    };
    (1..=3).map(id).for_each(|other| world.cut(dead, other));
    world.run_until(world.now_ns + 1_000 * MS);
    assert!(!world.change_members(leader, &[MemberChange::Remove(alive)]), "two would be left, and one of them is down");
    assert!(world.change_members(leader, &[MemberChange::Remove(dead)]));
    world.run_until(world.now_ns + 400 * MS);
    assert_eq!(world.members(leader).voters, [leader, alive].into());
    assert_eq!(world.checks.violation, None);
}

#[test]
fn a_leader_that_is_not_heard_resigns_and_one_that_cannot_hear_does_not_disturb() {
    let mut world = World::new(calm(5));
    world.run_until(500 * MS);
    let leader = world.leader().unwrap();
    let term_of = |world: &World| world.status(world.leader().unwrap()).unwrap().term;
    let term = term_of(&world);
    // A follower that hears nobody asks again and again whether it would be elected, and nobody says yes.
    let deaf = (1..=5).map(id).find(|at| *at != leader).unwrap();
    (1..=5).map(id).for_each(|other| world.cut(other, deaf));
    world.run_until(world.now_ns + 1_000 * MS);
    assert_eq!((world.leader(), term_of(&world)), (Some(leader), term));
    // A leader that hears nobody.
    (1..=5).map(id).for_each(|other| world.cut(other, leader));
    world.run_until(world.now_ns + 1_000 * MS);
    assert_ne!(world.leader(), Some(leader));
    world.healing_phase(1_000 * MS);
    assert_eq!(world.checks.violation, None);
}
