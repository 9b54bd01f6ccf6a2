//! Who a replica is: an emptied folder, two processes under one id, and keys that all replicas know.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use walras_client::ClientError;
use walras_types::RejectReason;

use super::client::{Diary, Participant};
use super::{Cluster, Shape, check_told, participants, progress, stop_in_order, until};

/// The status of a replica that must not go on by itself.
const HALTED: Option<i32> = Some(6);

fn stop(cluster: &mut Cluster, id: u64) {
    let replica = &mut cluster.local.replicas[id as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));
}

/// Everybody is linked with everybody.
fn all_linked(cluster: &Cluster) {
    let linked = |id| {
        let said = cluster.local.status(id);
        said.is_some_and(|said| said["replicas"].as_array().is_some_and(|rows| rows.iter().all(|row| row["is_linked"] == true)))
    };
    until("all are linked", || (1..=3).all(linked));
}

/// A second process under a replica's id, on another folder and at other addresses.
pub(crate) fn second_process(cluster: &Cluster, id: u64, data: &Path) -> Child {
    let replica = &cluster.local.replicas[id as usize - 1];
    let mut table: toml::Table = std::fs::read_to_string(replica.dir.join("walras.toml")).unwrap().parse().unwrap();
    let mut set = |section: &str, key: &str, value: String| {
        table[section].as_table_mut().unwrap().insert(key.to_owned(), value.into());
    };
    set("venue", "data", data.display().to_string());
    for section in ["http", "order_entry", "cluster"] {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        set(section, "listen", free.to_string());
    }
    std::fs::create_dir_all(data).unwrap();
    let path = data.with_extension("toml");
    std::fs::write(&path, table.to_string()).unwrap();
    let said = std::fs::File::create(data.with_extension("log")).unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_walras"))
        .arg("serve")
        .arg("--config")
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(said)
        .spawn();
    program.unwrap()
}

/// It ends by itself with the status of one that must not go on; what it said.
fn ends_by_itself(mut process: Child, data: &Path) -> String {
    let mut status = None;
    until("the second process stops", || {
        status = process.try_wait().unwrap();
        status.is_some()
    });
    let said = std::fs::read_to_string(data.with_extension("log")).unwrap();
    assert_eq!(status.and_then(|status| status.code()), HALTED, "{said}");
    said
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let place = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &place);
        } else {
            std::fs::copy(file.path(), place).unwrap();
        }
    }
}

#[test]
fn a_replica_with_another_folder_under_its_id_never_takes_part() {
    let mut cluster = Cluster::start(0);
    all_linked(&cluster);
    // A second process with a folder of its own, beside the first.
    let data = cluster.local.replicas[2].dir.join("second");
    let second = second_process(&cluster, 3, &data);
    let said = ends_by_itself(second, &data);
    assert!(said.contains("with another disk") && said.contains("replica-3/second") && said.contains("replica-3/data"), "{said}");
    all_linked(&cluster);

    // The folder is lost, and somebody starts the replica again.
    stop(&mut cluster, 3);
    std::fs::remove_dir_all(cluster.folder(3)).unwrap();
    cluster.local.start(3).unwrap();
    let (replica, mut status) = (&mut cluster.local.replicas[2], None);
    until("it has stopped by itself", || {
        status = replica.has_ended();
        status.is_some()
    });
    assert_eq!(status.flatten(), HALTED);
    let said = cluster.said(3);
    assert!(said.contains("the data folder was lost or emptied") && said.contains("under a new id"), "{said}");
    // Its log alone.
    cluster.local.wait_for_leader(super::PATIENCE).unwrap();
    stop(&mut cluster, 2);
    std::fs::remove_dir_all(cluster.folder(2).join("log")).unwrap();
    cluster.local.start(2).unwrap_err();
    assert!(cluster.said(2).contains("its log is gone"), "{}", cluster.said(2));
}

/// Under load, since a second process that said that it holds what the first one does not would cost the first one its place.
#[test]
fn of_two_processes_on_copies_of_one_folder_the_later_one_does_no_harm_and_stops() {
    // Longer than this machine may stand still while it is busy with other tests.
    let more = vec![("cluster", "probation_ms", toml::Value::Integer(3_000))];
    let mut cluster = Cluster::of(Shape { checkpoint_every: 300, more, ..Shape::default() });
    all_linked(&cluster);
    stop(&mut cluster, 3);
    let data = cluster.local.replicas[2].dir.join("copy");
    copy(&cluster.local.replicas[2].data(), &data);
    cluster.local.start(3).unwrap();
    all_linked(&cluster);
    let participants = participants(&cluster, 3);
    progress(&participants, 200);
    cluster.catches_up(3);

    let said = ends_by_itself(second_process(&cluster, 3, &data), &data);
    assert!(said.contains("two processes run as replica 3") && said.contains("has to stop"), "{said}");
    // The one that was there first goes on, with all that was decided meanwhile.
    all_linked(&cluster);
    progress(&participants, 200);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_told(&cluster, &[1, 2, 3], &diaries, end);
}

#[test]
fn what_one_replica_learns_of_keys_all_know() {
    let cluster = Cluster::start(0);
    let key_ids = |id: u64| -> Vec<String> {
        let said = cluster.operator(id).signed_here("GET", "/v1/admin/keys", None).unwrap();
        said["keys"].as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()).collect()
    };
    let body = json!({"permissions": ["operator"]});
    let made: Value = cluster.operator(2).signed("POST", "/v1/admin/keys", Some(&body)).unwrap();
    let made = made["key_id"].as_str().unwrap().to_owned();
    until("all know the key", || (1..=3).all(|id| key_ids(id).contains(&made)));
    // An operator's key is revoked by the leader alone, to which the client goes.
    cluster.operator(3).signed("DELETE", &format!("/v1/admin/keys/{made}"), None).unwrap();
    until("nobody does", || (1..=3).all(|id| !key_ids(id).contains(&made)));
    // The last one stays, whoever is asked.
    let last = key_ids(1);
    for id in 1..=3 {
        let refused = cluster.operator(id).signed("DELETE", &format!("/v1/admin/keys/{}", last[0]), None);
        assert!(matches!(refused, Err(ClientError::Refused { code: 118, .. })), "{refused:?}");
    }
    assert_eq!((last.len(), key_ids(2)), (1, last));
}

const LINEARIZABLE: (&str, &str) = ("Walras-Consistency", "linearizable");

#[test]
fn a_linearizable_read_waits_for_an_election() {
    let mut cluster = Cluster::start(0);
    // The machine may stand still for longer than such a read waits. It does not do so again and again.
    let has_waited = (0..4).any(|_| {
        all_linked(&cluster);
        let leader = cluster.local.wait_for_leader(super::PATIENCE).unwrap();
        cluster.kill(leader);
        let seen = cluster.operator(leader % 3 + 1).get_with("/v1/assets", Some(LINEARIZABLE));
        cluster.local.start(leader).unwrap();
        seen.is_ok()
    });
    assert!(has_waited);
}

#[test]
fn a_linearizable_read_sees_what_was_acknowledged_elsewhere() {
    let cluster = Cluster::start(0);
    let get = |id: u64, with: Option<(&str, &str)>| cluster.operator(id).get_with("/v1/assets", with);
    let latest = |id: u64| get(id, Some(LINEARIZABLE));
    for round in 0..20 {
        let body = json!({"symbol": format!("A{round}"), "decimals": 2});
        // Another one may lead meanwhile; then this asset may be there already.
        until("it is there", || match cluster.operator(round % 3 + 1).signed("POST", "/v1/admin/assets", Some(&body)) {
            Err(error) if error.may_pass() => false,
            Err(error) => error.is(RejectReason::DuplicateSymbol),
            Ok(_) => true,
        });
        for id in 1..=3 {
            let mut seen = Ok(Value::Null);
            until("it is answered", || {
                seen = latest(id);
                !seen.as_ref().is_err_and(ClientError::may_pass)
            });
            let seen = seen.unwrap().to_string();
            assert!(seen.contains(&format!("\"A{round}\"")), "replica {id}, asset {round}: {seen}");
        }
    }
    assert!(get(1, Some(("Walras-Consistency", "always"))).unwrap_err().to_string().contains("linearizable"));
    let leader = cluster.local.wait_for_leader(super::PATIENCE).unwrap();
    // Nobody can confirm anything to one that is alone.
    for id in [leader % 3 + 1, leader] {
        let replica = &cluster.local.replicas[id as usize - 1];
        replica.signal(Signal::STOP).unwrap();
        let process = replica.process_id().unwrap();
        until("it stands still", || {
            let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
            threads
                .flatten()
                .all(|thread| std::fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| stat.contains(") T ")))
        });
    }
    let alone = (1..=3).find(|id| *id != leader && *id != leader % 3 + 1).unwrap();
    let refused = latest(alone).unwrap_err();
    assert!(refused.to_string().contains("nobody confirms"), "{refused}");
    assert!(get(alone, None).unwrap().to_string().contains("\"A19\""), "what it knows it tells");
}
