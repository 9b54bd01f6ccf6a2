//! An upgrade to a program under whose newest rules a trade costs something else: under load, there, back and there again, and then to
//! the new rules, everywhere at one entry of the log.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;
use walras_engine::Engine;
use walras_engine::versions::{NEWEST, REHEARSAL};
use walras_sequencer::Entry;
use walras_types::RejectReason;
use walras_wire::{Command, Event, OrderEvent, VenueCommand};

use super::client::{Diary, Participant};
use super::operate::Cli;
use super::{Cluster, PATIENCE, Shape, check, entries, participants, progress, stop_in_order, until};

const NOW: &str = env!("CARGO_BIN_EXE_walras");

/// The program of the next release: an example, which `cargo test` builds beside the tests.
fn next_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/rehearsal");
    assert!(program.exists(), "{} is missing: cargo build -p walras-node --example rehearsal", program.display());
    program
}

fn versions(cluster: &Cluster, id: u64) -> (Option<u64>, Option<u64>) {
    let view = cluster.local.status(id).unwrap_or_default();
    (view["engine_version"].as_u64(), view["engine_newest"].as_u64())
}

/// Stops a replica in good order, the leader after it has handed over, and starts it with another program.
fn exchange(cluster: &mut Cluster, id: u64, program: &Path) {
    let replica = &mut cluster.local.replicas[id as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0), "replica {id} stopped in good order");
    cluster.local.set_program(program);
    cluster.local.start(id).unwrap();
    cluster.catches_up(id);
}

#[test]
fn an_upgrade_changes_the_rules_everywhere_at_one_entry_and_can_be_taken_back_before() {
    let (now, next) = (Path::new(NOW), next_program());
    let mut cluster = Cluster::of(Shape { checkpoint_every: 400, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 200);
    let (newest, rehearsal) = (Some(u64::from(NEWEST.0)), Some(u64::from(REHEARSAL.0)));
    until("the venue began under the newest version", || (1..=3).all(|id| versions(&cluster, id) == (newest, newest)));
    let (_, why) = Cli::at(&cluster, 1).fails(&["finish-upgrade"]);
    assert!(why.contains("the newest that the replicas know"), "{why}");

    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let order = [leader % 3 + 1, (leader + 1) % 3 + 1, leader];
    for id in order {
        // While one does not know it nobody goes there, whoever is asked.
        let (_, why) = Cli::at(&cluster, id).fails(&["finish-upgrade"]);
        assert!(why.contains("the newest that the replicas know") || why.contains("upgrade the others"), "{why}");
        let asked = json!({"engine_version": REHEARSAL.0});
        until("the leader says who does not know it", || {
            let refused = cluster.operator(id).signed("POST", "/v1/admin/cluster/engine-version", Some(&asked)).unwrap_err();
            refused.is(RejectReason::EngineVersionInvalid) && refused.to_string().contains("knows engine versions up to")
        });
        exchange(&mut cluster, id, &next);
        progress(&participants, 150);
    }
    // And back, as long as the version in force is one that the former program knows.
    exchange(&mut cluster, order[0], now);
    progress(&participants, 150);
    let (_, why) = Cli::at(&cluster, 1).fails(&["finish-upgrade"]);
    assert!(why.contains("upgrade the others"), "{why}");
    exchange(&mut cluster, order[0], &next);

    let (was, knows) = (newest, rehearsal);
    until("all know the next version", || (1..=3).all(|id| versions(&cluster, id) == (was, knows)));
    assert!(Cli::at(&cluster, 2).text(&["upgrade-check"]).contains("walras cluster finish-upgrade"));
    Cli::at(&cluster, 2).done(&["finish-upgrade"]);
    until("its rules are in force everywhere", || (1..=3).all(|id| versions(&cluster, id) == (rehearsal, rehearsal)));
    progress(&participants, 500);

    the_former_program_refuses(&mut cluster, order[1], &next);
    progress(&participants, 200);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let longest = diaries.iter().map(|diary| diary.longest_pause).max().unwrap();
    println!("the longest pause between two answers: {longest:?}");
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    let logs: Vec<Vec<Entry>> = (1..=3).map(|id| entries(&cluster.folder(id))).collect();
    let whole = logs.iter().find(|log| log.first().is_some_and(|entry| entry.log_index.0 == 1)).expect("one has all of its log");
    assert_fees(whole);
    check(&cluster, &[1, 2, 3], &diaries, end);
}

/// A replica whose program does not know the version in force does not go on, says what to do, and loses nothing.
fn the_former_program_refuses(cluster: &mut Cluster, id: u64, next: &Path) {
    let replica = &mut cluster.local.replicas[id as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));
    cluster.local.set_program(Path::new(NOW));
    let is_refused = cluster.local.start(id).is_err() || {
        until("it has stopped by itself", || cluster.local.replicas[id as usize - 1].has_ended().is_some());
        true
    };
    assert!(is_refused && cluster.said(id).contains("start this replica with the program of the others"), "{}", cluster.said(id));
    cluster.local.set_program(next);
    cluster.local.start(id).unwrap();
    cluster.catches_up(id);
}

/// Fees are of any number of units before the entry that changes the rules, and of an even one after it.
fn assert_fees(log: &[Entry]) {
    let (mut engine, mut events) = (Engine::new(), Vec::new());
    let (mut odd_before, mut trades_after, mut set) = (0, 0, Vec::new());
    for entry in log {
        events.clear();
        entry.apply(&mut engine, &mut events);
        if let Some(Command::Venue(VenueCommand::SetEngineVersion(version))) = entry.content.command() {
            set.push(*version);
        }
        for event in &events {
            let Event::Order(OrderEvent::Traded(trade)) = event else { continue };
            let odd = [trade.maker.fee, trade.taker.fee].iter().filter(|fee| *fee % 2 != 0).count();
            if engine.version() == REHEARSAL {
                assert_eq!(odd, 0, "{trade:?}");
                trades_after += 1;
            } else {
                odd_before += odd;
            }
        }
    }
    assert_eq!(set, [NEWEST, REHEARSAL], "two entries set a version: the first, and the one that was asked for");
    assert!(odd_before > 0 && trades_after > 0, "the rules can be told apart: {odd_before} odd fees, {trades_after} trades after");
}
