//! A venue that begins on one machine and grows to three while it runs and is traded at; then the first machine is lost.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, Shape, check_told, member, participants, progress, stop_in_order, until};

/// The configuration of replica 1 without a word of others, as somebody begins; and with all of them.
struct Configurations {
    alone: String,
    grown: String,
}

impl Configurations {
    fn of(folder: &Path) -> Self {
        let grown = std::fs::read_to_string(file(folder)).unwrap();
        let mut table: toml::Table = grown.parse().unwrap();
        let cluster = table["cluster"].as_table_mut().unwrap();
        for key in ["peers", "genesis", "listen", "keys"] {
            cluster.remove(key).unwrap();
        }
        Self { alone: table.to_string(), grown }
    }
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("replica-1").join("walras.toml")
}

/// Has replica 1 read this configuration, and waits for what it says then.
fn reload(cluster: &Cluster, folder: &Path, text: &str, says: &str) {
    let before = cluster.said(1).len();
    std::fs::write(file(folder), text).unwrap();
    cluster.local.replicas[0].signal(Signal::HUP).unwrap();
    until(says, || cluster.said(1)[before..].contains(says));
}

/// A replica gets the log first, and votes when it has caught up; before, it is refused.
fn add(cluster: &Cluster, id: u64) {
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let operator = cluster.operator(leader);
    let post = |learner: bool| {
        let body = json!({"replica": id, "learner": learner});
        operator.signed("POST", "/v1/admin/cluster/add", Some(&body)).is_ok()
    };
    until(&format!("replica {id} may learn"), || post(true));
    until(&format!("replica {id} learns"), || member(cluster, leader, id) == "learner");
    until(&format!("replica {id} may vote"), || post(false));
    until(&format!("replica {id} votes"), || member(cluster, leader, id) == "voter");
}

#[test]
fn a_venue_that_began_alone_grows_to_three_under_load_and_survives_the_loss_of_its_first_machine() {
    let mut configurations = None;
    let shape = Shape { replicas: 1, later: 2, checkpoint_every: 400, ..Shape::default() };
    let mut cluster = Cluster::of_program(Path::new(env!("CARGO_BIN_EXE_walras")), shape, |folder| {
        let of = Configurations::of(folder);
        std::fs::write(file(folder), &of.alone).unwrap();
        configurations = Some((folder.to_path_buf(), of));
    });
    let (folder, Configurations { grown, .. }) = configurations.unwrap();
    assert_eq!(cluster.local.status(1).unwrap()["replicas"].as_array().unwrap().len(), 1);
    let participants: Vec<Participant> = participants(&cluster, 2);
    progress(&participants, 200);

    // What can not be is said, and changes nothing.
    let forgets = grown.replace("genesis = [1]", "genesis = [1, 2, 3]");
    assert_ne!(forgets, grown);
    reload(&cluster, &folder, &forgets, "set cluster.genesis = [1]");
    reload(&cluster, &folder, "[cluster]\nreplica = \"one\"\n", "was not read again");
    progress(&participants, 100);

    // The others begin, are named, and join.
    cluster.local.start(2).unwrap();
    cluster.local.start(3).unwrap();
    reload(&cluster, &folder, &grown, "the replicas are 1, 2, 3");
    add(&cluster, 2);
    progress(&participants, 300);
    add(&cluster, 3);
    progress(&participants, 1_000);
    // A member is not forgotten by mistake.
    let mut table: toml::Table = grown.parse().unwrap();
    let peers = table["cluster"].as_table_mut().unwrap()["peers"].as_array_mut().unwrap();
    peers.pop().unwrap();
    reload(&cluster, &folder, &table.to_string(), "leaves out replica 3");
    std::fs::write(file(&folder), &grown).unwrap();

    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    assert_eq!(leader, 1, "nobody took its place");
    cluster.kill(1);
    until("another one leads", || cluster.other_leader(1).is_some());
    progress(&participants, 1_000);
    cluster.local.start(1).unwrap();
    cluster.catches_up(1);
    progress(&participants, 1_000);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    assert!(diaries.iter().all(|diary| !diary.lost.is_empty()), "everybody had to go to another machine");
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_told(&cluster, &[1, 2, 3], &diaries, end);
}
