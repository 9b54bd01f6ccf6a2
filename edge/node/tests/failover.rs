//! The measurement of fail-over on real processes: that every leader has a successor who answers.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::path::Path;
use std::time::Duration;

use walras_client::failover::{FailoverOptions, Manner, failover};

fn every_death_has_a_successor(options: &FailoverOptions) {
    let dir = tempfile::tempdir().unwrap();
    let deaths = failover(Path::new(env!("CARGO_BIN_EXE_walras")), &dir.path().join("cluster"), options).unwrap();
    assert_eq!(deaths.len(), 2);
    for death in deaths {
        assert!(death.logged_on > Duration::ZERO, "{death:?}: nobody took the session");
        assert!(death.acknowledged >= death.logged_on, "{death:?}");
    }
}

#[test]
fn every_leader_that_is_killed_has_a_successor_who_answers() {
    every_death_has_a_successor(&FailoverOptions::new(150, 300, 2));
}

#[test]
fn so_has_every_leader_that_falls_silent() {
    every_death_has_a_successor(&FailoverOptions { manner: Manner::Silent, ..FailoverOptions::new(150, 300, 2) });
}
