//! The campaign in small: processes of the venue's own code, a tenth of each attack and less, and no figure is asserted.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use walras_siege::attack::{ATTACKS, Attack, NamedError, named_errors};
use walras_siege::campaign::{Ground, Size, run};
use walras_siege::good::{Good, Pace, others_log_on};
use walras_siege::venue::{Shape, Venue};
use walras_siege::watch::{Phase, Service, Watch};
use walras_siege::wire::Asker;

const SIZE: Size = Size {
    percent: 5,
    rounds: 1,
    block: Duration::from_millis(150),
    pace: Pace {
        every: Duration::from_millis(10),
        connect_every: Duration::from_millis(20),
        dialects_every: Duration::from_millis(20),
        made_per_second: 200,
    },
};

/// On a busy machine a service may have no turn in a block as short as [`SIZE`] has: what did not survive is tried again in longer ones.
fn survives(shape: Shape, names: &[&str], descriptors: Option<u32>) {
    let failed = attacked(shape, names, descriptors, &SIZE);
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let block = 6 * SIZE.block;
        let failed = attacked(shape, &names, descriptors, &Size { block, ..SIZE });
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

/// The attacks that a venue did not survive, each with why.
fn attacked<'n>(shape: Shape, names: &[&'n str], descriptors: Option<u32>, size: &Size) -> Vec<(&'n str, String)> {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege")).to_path_buf();
    let ground = Ground { program, dir: dir.path().join("venue"), shape, descriptors };
    let attacks: Vec<Attack> = ATTACKS.into_iter().filter(|attack| names.contains(&attack.name)).collect();
    assert_eq!(attacks.len(), names.len());
    let outcomes = run(&ground, &attacks, size, |_| ()).unwrap();
    assert_eq!(outcomes.len(), names.len());
    let mut failed = Vec::new();
    for outcome in outcomes {
        assert!(names == ["nothing"] || outcome.attackers.opened > 0, "{outcome:#?}");
        let is_unserved = |service: &Service| {
            let is_measured = !matches!(service, Service::Again | Service::LeafConnect) || shape == Shape::Tree;
            let seen = outcome.services.iter().find(|seen| seen.service == *service);
            is_measured && seen.map_or(0, |seen| seen.attacked.served) == 0
        };
        let unserved = Service::ALL.into_iter().find(is_unserved).map(|service| format!("{} was not served", service.name()));
        let why = outcome.not_survived.clone().or(unserved);
        let name = names.iter().find(|name| **name == outcome.attack).copied().expect("it was asked for");
        failed.extend(why.map(|why| (name, format!("{why}: {outcome:#?}"))));
    }
    failed
}

#[test]
fn a_venue_on_one_machine_survives() {
    let attacks = [
        "idle_http",
        "idle_entry",
        "slow_head",
        "slow_body",
        "slow_entry",
        "silent",
        "deaf",
        "malformed_http",
        "malformed_websocket",
        "malformed_entry",
        "flood_connect",
        "flood_signed",
        "flood_logon",
    ];
    survives(Shape::Single, &attacks, None);
}

#[test]
fn a_venue_survives_attacks_by_fix_and_by_the_binance_dialect() {
    let attacks = [
        "idle_fix",
        "slow_fix",
        "silent_fix",
        "deaf_fix",
        "deaf_fix_books",
        "malformed_fix",
        "numbers_fix",
        "flood_fix_logon",
        "flood_fix_resend",
        "flood_fix_replays",
        "deaf_facade",
        "malformed_facade",
        "flood_facade",
        "deaf_fix_orders",
        "flood_fix_orders",
        "flood_fix_replaces",
        "flood_fix_data",
        "deaf_facade_socket",
        "errors_facade",
        "flood_facade_orders",
        "flood_facade_socket",
    ];
    survives(Shape::Single, &attacks, None);
}

#[test]
fn a_venue_survives_attacks_on_all_ports_its_batch_market_and_its_operators_port() {
    let attacks = [
        "idle_sessions",
        "crowd_of_one_key",
        "half_closed",
        "crumbs",
        "deaf_http",
        "deaf_entry",
        "flood_instruments",
        "flood_exits",
        "stolen",
        "huge",
        "idle_operator",
        "malformed_operator",
        "flood_operator",
        "resting_offers",
        "forged_transactions",
        "giant_transactions",
        "unfinished_joined",
        "flood_dropped",
    ];
    survives(Shape::Single, &attacks, None);
}

#[test]
fn a_cluster_survives() {
    let attacks = [
        "idle_entry",
        "slow_entry",
        "deaf",
        "malformed_entry",
        "malformed_peer",
        "half_tls",
        "forged_mesh",
        "flood_connect",
        "flood_logon",
        "malformed_fix",
    ];
    survives(Shape::Cluster, &attacks, None);
}

#[test]
fn a_relay_and_a_leaf_gateway_survive() {
    let attacks = [
        "idle_leaf",
        "idle_fix_leaf",
        "slow_fix_leaf",
        "silent_fix_leaf",
        "crowd_of_one_key_leaf",
        "deaf_leaf",
        "deaf_fix_leaf",
        "deaf_fix_books_leaf",
        "deaf_fix_orders_leaf",
        "malformed_leaf",
        "malformed_fix_leaf",
        "numbers_fix_leaf",
        "stolen_leaf",
        "flood_fix_orders_leaf",
        "flood_fix_replaces_leaf",
        "flood_fix_replays_leaf",
        "flood_fix_data_leaf",
        "forged_feed",
        "cut_feed",
        "flood_asks",
        "deaf_feed",
    ];
    survives(Shape::Tree, &attacks, None);
}

#[test]
fn a_reader_at_a_leaf_gateway_that_never_reads_is_ended_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    let venue = Venue::start(program, &dir.path().join("venue"), Shape::Tree, None).unwrap();
    let attack = ATTACKS.iter().find(|attack| attack.name == "deaf_fix_books_leaf").unwrap();
    let reason = attack.has_to_end_by().unwrap();
    // There is a market, and others read it at the gateway.
    let watch = Arc::new(Watch::default());
    let good = Good::begin(&venue, &watch, SIZE.pace).unwrap();
    assert_eq!(venue.ended_by(reason), 0);
    watch.set(Phase::Attacked);
    let running = attack.begin(&venue, 100).unwrap();
    walras_wait::until("the gateway ends the attackers' session, and says why", || venue.ended_by(reason) > 0);
    let mut seen = 0;
    walras_wait::until("another participant reads books", || {
        let services = watch.take();
        seen += services.iter().find(|(service, ..)| *service == Service::FixData).map_or(0, |(.., attacked)| attacked.served);
        seen >= 5
    });
    drop(running);
    let (_, gaps) = good.finish();
    assert_eq!(gaps, 0, "the feed of a subscriber that reads is whole");
    venue.stop().unwrap();
}

#[test]
fn each_attack_by_fix_is_made_at_a_leaf_gateway_too() {
    let names: BTreeSet<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
    assert_eq!(names.len(), ATTACKS.len(), "a name is one attack's");
    let at_leaf = |name: &str| names.contains(format!("{name}_leaf").as_str());
    let by_fix = names.iter().copied().filter(|name| name.contains("_fix") && !name.ends_with("_leaf"));
    let missing: Vec<&str> = by_fix.filter(|name| !at_leaf(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_document_names_every_attack() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/siege.md");
    let text = std::fs::read_to_string(path).unwrap();
    let missing: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn each_wrong_call_of_the_binance_dialect_is_answered_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    let venue = Venue::start(program, &dir.path().join("venue"), Shape::Single, None).unwrap();
    let mut asker = Asker::new(&venue.places[0].facade).unwrap();
    let calls = named_errors(&venue);
    assert!(calls.len() > 20);
    for NamedError { what, code, request } in calls {
        let answer = asker.ask(&request).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["code"], code, "{what}: {said}");
        assert!(answer.status >= 400 && said["msg"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {said}");
    }
    venue.stop().unwrap();
}

#[test]
fn a_crowd_of_one_key_keeps_nobody_else_out() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    // Fewer places than the crowd has sessions.
    let venue = Venue::start(program, &dir.path().join("venue"), Shape::Single, Some(256)).unwrap();
    let crowd = ATTACKS.iter().find(|attack| attack.name == "crowd_of_one_key").unwrap();
    let running = crowd.begin(&venue, 5).unwrap();
    walras_wait::until("most of the crowd is refused", || running.tally().closed_by_venue > 100);
    // Who has not logged on yet shares places with the crowd's connections that have not either: it may have to come again.
    walras_wait::until_ok("sessions of another key log on", || others_log_on(&venue));
    drop(running);
    venue.stop().unwrap();
}

#[test]
fn a_venue_whose_orders_were_lost_does_not_pass() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    let venue = Venue::start(program, &dir.path().join("venue"), Shape::Single, Some(256)).unwrap();
    let why = venue.has_orders(&[7]).unwrap_err().to_string();
    assert!(why.contains("not in the book: [7]"), "{why}");
    venue.stop().unwrap();
}

#[test]
fn nothing_that_is_sent_again_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    let replayed = walras_siege::replays::run(program, &dir.path().join("venue")).unwrap();
    assert_eq!(replayed.accepted, Vec::<String>::new());
    assert!(replayed.sent >= 30 && replayed.readers <= 3, "{replayed:?}");
}
