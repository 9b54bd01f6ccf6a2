//! FIX at leaf gateways as processes: sessions and readers of market data that know no replica, while replicas are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY};
use walras_gateway::ClientKey;

use super::fix_trading::{Message, Session, fair, fix_data_of, fix_of, is_accepted, log_on_anywhere, reads_bid};
use super::leaf::wait_above;
use super::{Cluster, PATIENCE, Shape, until};

/// Starts a gateway, and waits until it knows a key.
fn start_gateway(cluster: &mut Cluster, gateway: usize, key: &ClientKey) {
    cluster.local.start(FIRST_GATEWAY + gateway as u64).unwrap();
    knows_key(&cluster.local.gateways[gateway].data(), key);
}

/// Waits until the gateway with this data folder knows a key.
pub(super) fn knows_key(data: &Path, key: &ClientKey) {
    let (file, id) = (data.join("keys.json"), key.key_id().to_string());
    until("a gateway knows the key", || std::fs::read_to_string(&file).unwrap_or_default().contains(&id));
}

/// Orders are on their way when the replica above is killed, and then when the leader is. The connection stays, and each report comes once.
#[test]
fn a_session_at_a_gateway_survives_the_replica_above_and_the_leader() {
    let mut cluster = Cluster::of(Shape { gateways: 1, fix: true, more: fair(), ..Shape::default() });
    let (_, key) = cluster.market(1).remove(0);
    start_gateway(&mut cluster, 0, &key);
    let mut session = Session::new(&key, "WALRAS");
    log_on_anywhere(&mut session, &[fix_of(&cluster.local.gateways[0])], None);
    let (mut names, mut heard): (Vec<String>, Vec<(u64, String)>) = (Vec::new(), Vec::new());
    for round in 0..2 {
        let killed =
            if round == 0 { wait_above(&cluster, 0, &BTreeSet::new()) } else { cluster.local.wait_for_leader(PATIENCE).unwrap() };
        let mut order = |session: &mut Session, what: &str| {
            let name = format!("{what}-{round}");
            session.order(&name, "29000");
            names.push(name);
        };
        order(&mut session, "before");
        loop {
            let report = session.hear_of(&["8"]);
            heard.push((report[&17].parse().unwrap(), report[&11].clone()));
            if is_accepted(&report, &format!("before-{round}")) {
                break;
            }
        }
        order(&mut session, "unread");
        cluster.kill(killed);
        order(&mut session, "after");
        while heard.last().is_none_or(|(_, name)| *name != format!("after-{round}")) {
            let report = session.hear_of(&["8"]);
            assert_eq!(report[&150], "0", "{report:?}");
            heard.push((report[&17].parse().unwrap(), report[&11].clone()));
        }
        cluster.local.start(killed).unwrap();
        cluster.catches_up(killed);
    }
    assert!(heard.is_sorted(), "{heard:?}");
    assert_eq!(heard.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), names);
    // Each is open once: a mass cancel ends as many.
    session.send("q", "11=all|530=7|60=NOW|");
    let mut ended = BTreeSet::new();
    while ended.len() < names.len() {
        let report = session.hear_of(&["8"]);
        assert_eq!(report[&150], "4", "{report:?}");
        assert!(ended.insert(report[&11].clone()), "{report:?}");
    }
    assert_eq!(ended, names.into_iter().collect::<BTreeSet<_>>());
}

/// The best bids that a reader hears, by the number of their update.
fn follow(reader: &mut Session, until: &str, seen: &mut BTreeMap<u64, (String, String)>) {
    loop {
        let message: Message = reader.hear_of(&["W", "Y", "5"]);
        assert_eq!(message[&35], "W", "{message:?}");
        let Some(price) = message.get(&270) else { continue };
        seen.insert(message[&5083].parse().unwrap(), (price.clone(), message[&271].clone()));
        if price == until {
            return;
        }
    }
}

/// Waits until a reader by order sees that this order is the best bid.
fn reads_order(address: &str, key: &ClientKey, order_id: &str) {
    let mut reader = Session::new(key, "WALRAS-MD");
    log_on_anywhere(&mut reader, &[address.to_owned()], None);
    reader.send("V", "262=orders|263=1|264=1|265=0|266=N|267=1|269=0|146=1|55=BTC/USD|");
    loop {
        let message = reader.hear_of(&["W", "Y", "5"]);
        assert_eq!(message[&35], "W", "{message:?}");
        if message.get(&37).is_some_and(|best| best == order_id) {
            return;
        }
    }
}

/// Readers at a gateway have what readers at a replica have of the same updates, while another replica is killed, and a gateway that begins
/// then has it too.
#[test]
fn market_data_at_gateways_is_that_of_replicas_whichever_dies() {
    let mut more = fair();
    more.extend([("fair_access", "release", "5ms".into()), ("feed", "heartbeat_ms", toml::Value::Integer(50))]);
    let mut cluster = Cluster::of(Shape { gateways: 2, relays: 2, fix: true, more, ..Shape::default() });
    let (_, key) = cluster.market(1).remove(0);
    for relay in [FIRST_RELAY, FIRST_RELAY + 1] {
        cluster.local.start(relay).unwrap();
    }
    start_gateway(&mut cluster, 0, &key);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let follower = leader % 3 + 1;
    let mut session = Session::new(&key, "WALRAS");
    log_on_anywhere(&mut session, &[fix_of(&cluster.local.gateways[0])], None);
    session.order("first", "29000.00");
    assert!(is_accepted(&session.hear_of(&["8"]), "first"));
    let at_follower = fix_data_of(&cluster.local.replicas[follower as usize - 1]);
    let [at_gateway, at_other] = [0, 1].map(|gateway: usize| fix_data_of(&cluster.local.gateways[gateway]));
    let mut readers = [&at_gateway, &at_follower].map(|address| {
        let mut reader = Session::new(&key, "WALRAS-MD");
        log_on_anywhere(&mut reader, std::slice::from_ref(address), None);
        reader.send("V", "262=book|263=1|264=1|265=0|267=1|269=0|146=1|55=BTC/USD|5083=Y|");
        (reader, BTreeMap::new())
    });
    let mut best = String::new();
    for round in 0..12 {
        let price = format!("{}.25", 29_001 + round);
        if round == 6 {
            cluster.kill(leader);
        }
        session.order(&format!("bid-{round}"), &price);
        best = loop {
            let report = session.hear_of(&["8"]);
            if is_accepted(&report, &format!("bid-{round}")) {
                break report[&37].clone();
            }
        };
        for (reader, seen) in &mut readers {
            follow(reader, &price, seen);
        }
    }
    let [(_, here), (_, there)] = &readers;
    let both: Vec<u64> = here.keys().filter(|update| there.contains_key(update)).copied().collect();
    assert!(both.len() >= 8, "{here:?} {there:?}");
    assert!(both.iter().all(|update| here[update] == there[update]), "{here:?} {there:?}");
    start_gateway(&mut cluster, 1, &key);
    reads_bid(&at_other, &key, None, "29012.25");
    for data in [&at_other, &at_follower] {
        reads_order(data, &key, &best);
    }
    cluster.local.start(leader).unwrap();
    cluster.catches_up(leader);
}
