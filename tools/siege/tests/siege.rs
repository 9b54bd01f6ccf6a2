//! The campaign in small: processes of the venue's own code, a tenth of each attack and less, and no figure is asserted.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::path::Path;
use std::time::Duration;

use walras_siege::attack::{ATTACKS, Attack};
use walras_siege::campaign::{Ground, Size, run};
use walras_siege::good::Pace;
use walras_siege::venue::Shape;
use walras_siege::watch::Service;

const SIZE: Size = Size {
    percent: 5,
    rounds: 1,
    block: Duration::from_millis(150),
    pace: Pace { every: Duration::from_millis(10), connect_every: Duration::from_millis(20), made_per_second: 200 },
};

fn survives(shape: Shape, names: &[&str], descriptors: Option<u32>) {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege")).to_path_buf();
    let ground = Ground { program, dir: dir.path().join("venue"), shape, descriptors };
    let attacks: Vec<Attack> = ATTACKS.into_iter().filter(|attack| names.contains(&attack.name)).collect();
    assert_eq!(attacks.len(), names.len());
    let outcomes = run(&ground, &attacks, &SIZE, |_| ()).unwrap();
    assert_eq!(outcomes.len(), names.len());
    for outcome in outcomes {
        assert_eq!(outcome.not_survived, None, "{outcome:#?}");
        assert!(names == ["nothing"] || outcome.attackers.opened > 0, "{outcome:#?}");
        let entry = outcome.services.iter().find(|seen| seen.service == Service::Entry);
        assert!(entry.is_some_and(|entry| entry.attacked.served > 0), "binary order entry was not served: {outcome:#?}");
    }
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
fn a_cluster_survives() {
    let attacks = ["idle_entry", "slow_entry", "deaf", "malformed_entry", "malformed_peer", "flood_connect", "flood_logon"];
    survives(Shape::Cluster, &attacks, None);
}

#[test]
fn a_venue_whose_orders_were_lost_does_not_pass() {
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_walras-siege"));
    let venue = walras_siege::venue::Venue::start(program, &dir.path().join("venue"), Shape::Single, Some(256)).unwrap();
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
