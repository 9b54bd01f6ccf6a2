//! Two of three disks are lost: the replica that is left becomes a venue of its own with all that it had, and grows again.

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use walras_client::local_cluster::LocalCluster;
use walras_client::{Client, read_key};

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, participants, progress, until};

fn recover(config: &std::path::Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
    let done = command.args(["cluster", "recover", "--json", "--config"]).arg(config).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

fn balances(client: &Client) -> Vec<Value> {
    (0..2).map(|account| client.signed_here("GET", &format!("/v1/admin/accounts/{account}"), None).unwrap()).collect()
}

#[test]
fn one_replica_that_is_left_goes_on_alone_with_all_that_it_had() {
    let mut cluster = Cluster::start(0);
    let participants = participants(&cluster, 2);
    progress(&participants, 300);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let left = leader % 3 + 1;
    let index = diaries.iter().flat_map(|diary| &diary.answers).map(|(_, log_index, _)| log_index.0).max().unwrap();
    until("it has all that was answered", || cluster.log_index(left) >= index);
    let before = balances(&cluster.operator(leader));
    let url = cluster.local.replicas[left as usize - 1].url();
    for id in 1..=3 {
        cluster.local.replicas[id as usize - 1].signal(Signal::KILL).unwrap();
        cluster.local.replicas[id as usize - 1].wait().unwrap();
        if id != left {
            std::fs::remove_dir_all(cluster.folder(id)).unwrap();
        }
    }

    let config = cluster.local.replicas[left as usize - 1].dir.join("walras.toml");
    let (status, said) = recover(&config);
    assert!(status != Some(0) && said.contains("cluster.genesis"), "the others are still in it: {said}");
    let mut table: toml::Table = std::fs::read_to_string(&config).unwrap().parse().unwrap();
    let section = table["cluster"].as_table_mut().unwrap();
    let cluster_id = section.get("cluster_id").and_then(toml::Value::as_integer).unwrap_or(1);
    section.remove("peers");
    section.insert("genesis".into(), toml::Value::Array(vec![i64::try_from(left).unwrap().into()]));
    std::fs::write(&config, table.to_string()).unwrap();
    let (status, said) = recover(&config);
    assert!(status != Some(0) && said.contains("new cluster.cluster_id"), "{said}");
    table["cluster"].as_table_mut().unwrap().insert("cluster_id".into(), (cluster_id + 1).into());
    std::fs::write(&config, table.to_string()).unwrap();
    let (status, said) = recover(&config);
    assert_eq!(status, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert!(said["log_index"].as_str().unwrap().parse::<u64>().unwrap() >= index, "{said}");
    let (status, again) = recover(&config);
    assert!(status != Some(0) && again.contains("start it"), "{again}");

    cluster.local.start(left).unwrap();
    until("it leads alone", || LocalCluster::leader(&cluster.local) == Some(left));
    let operator = Client::new(&url, Some(read_key(&cluster.local.operator_key()).unwrap()));
    assert_eq!(balances(&operator), before, "nothing is lost or moved");
    operator.signed_here("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
    let view = cluster.local.status(left).unwrap();
    assert_eq!(
        (view["cluster_id"].as_str().unwrap().parse::<i64>().unwrap(), view["replica"].as_u64()),
        (cluster_id + 1, Some(left))
    );
}
