//! The operator's keys: the last one stays, and one that was lost is replaced without anybody else losing theirs.

use serde_json::Value;
use walras_access::operator_key_file;
use walras_client::Client;
use walras_log_store::RealDisk;
use walras_types::RejectReason as R;

use crate::cli::Cli;
use crate::support::{Venue, code, config, operator, restart};

fn key_ids(operator: &Client) -> Vec<String> {
    let listed = operator.signed("GET", "/v1/admin/keys", None).unwrap();
    listed["keys"].as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_last_operators_key_can_not_be_revoked() {
    let venue = Venue::start();
    let market = venue.market();
    let revoke = |client: &Client, id: &str| client.signed("DELETE", &format!("/v1/admin/keys/{id}"), None);
    let own = walras_client::read_key(&operator_key_file(&venue.dir)).unwrap();
    assert_eq!(code(revoke(&market.operator, own.key_id().as_str())), u64::from(R::LastOperatorKey.number()));
    // The command line says what to do.
    let cli = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let (status, said) = cli.fails(&["admin", "revoke", own.key_id().as_str()]);
    assert!(status == 1 && said.contains("create another operator's key first"), "{status}: {said}");
    // With another one it goes, and then that one is the last.
    let second = venue.dir.join("second.key");
    cli.text(&["admin", "key", "--permissions", "operator", "--out", second.to_str().unwrap()]);
    let second = Client::new(&venue.url(), Some(walras_client::read_key(&second).unwrap()));
    revoke(&second, own.key_id().as_str()).unwrap();
    let ids = key_ids(&second);
    let refused = ids.iter().filter(|id| revoke(&second, id).is_err()).count();
    assert_eq!((refused, key_ids(&second).len()), (1, 1));
}

#[test]
fn a_lost_operators_key_is_replaced_and_nobody_else_loses_theirs() {
    let mut venue = Venue::start();
    let market = venue.market();
    let cli = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let dir = venue.dir.to_str().unwrap().to_owned();
    // Not while it runs: it would not see the new key and would write over it.
    let (status, said) = cli.fails(&["keys", "recover", &dir]);
    assert!(status == 4 && said.contains("in use"), "{status}: {said}");
    let (status, said) = cli.fails(&["keys", "recover", "no-such-folder"]);
    assert!(status == 4 && said.contains("no venue's data folder"), "{status}: {said}");
    let before = key_ids(&market.operator);
    venue.stop();
    std::fs::remove_file(operator_key_file(&venue.dir)).unwrap();
    let made: Value = cli.json(&["keys", "recover", &dir]);
    assert_eq!(made["other_operators"].as_array().unwrap().len(), 1);
    venue.node = Some(restart(RealDisk, &venue.dir, &config()));
    let operator = venue.operator();
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    let ready = venue.node().access().accepts_timestamps_from();
    crate::support::until("signed requests are taken", || venue.node().venue().clock().now() > ready);
    let after = key_ids(&operator);
    assert!(before.iter().all(|id| after.contains(id)) && after.contains(&made["key_id"].as_str().unwrap().to_owned()));
    alice.signed("GET", "/v1/account", None).unwrap();
    operator.signed("DELETE", &format!("/v1/admin/keys/{}", made["other_operators"][0].as_str().unwrap()), None).unwrap();
}

#[test]
fn a_venue_that_nobody_could_administer_makes_a_key_at_its_start() {
    let mut venue = Venue::start();
    let market = venue.market();
    let before = key_ids(&market.operator);
    let own = walras_client::read_key(&operator_key_file(&venue.dir)).unwrap();
    venue.stop();
    // As a version before this one could leave it.
    let path = venue.dir.join("keys.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["keys"].as_array_mut().unwrap().retain(|key| key["key_id"] != own.key_id().as_str());
    file["revoked"].as_array_mut().unwrap().push(own.key_id().as_str().into());
    std::fs::write(&path, file.to_string()).unwrap();
    venue.node = Some(restart(RealDisk, &venue.dir, &config()));
    let ready = venue.node().access().accepts_timestamps_from();
    crate::support::until("signed requests are taken", || venue.node().venue().clock().now() > ready);
    let after = key_ids(&operator(&venue.url(), &venue.dir));
    assert_eq!(after.len(), before.len());
    assert!(before.iter().filter(|id| *id != own.key_id().as_str()).all(|id| after.contains(id)));
    assert!(venue.dir.join("operator.key.old").exists());
}
