//! Paths that work badly: links of five replicas that carry one way only, late, or not everything; and a participant's way to its replica that is cut,
//! swallows, stands still or is slow. Nothing that anybody was told may turn out otherwise.

use std::collections::BTreeMap;

use walras_peer_link::PathFaults;

use super::client::{Diary, Participant};
use super::proxy::{Passing, Proxy};
use super::{BLOCKED, Cluster, FAIR, PATIENCE, Shape, check, participants, progress, stop_in_order, until};

#[test]
fn five_replicas_lose_nothing_on_links_that_work_one_way_late_or_not_always() {
    let mut cluster = Cluster::of(Shape { replicas: 5, checkpoint_every: 400, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 200);

    // What the leader is sent does not come: it hears of no majority and gives up, though all others hear it.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.faults(leader, FAIR, BLOCKED);
    until("one whom others reach leads", || cluster.other_leader(leader).is_some());
    progress(&participants, 200);
    cluster.faults(leader, FAIR, FAIR);
    cluster.catches_up(leader);

    // What the leader sends does not come.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.faults(leader, BLOCKED, FAIR);
    until("one who reaches the others leads", || cluster.other_leader(leader).is_some());
    progress(&participants, 200);
    cluster.faults(leader, FAIR, FAIR);
    cluster.catches_up(leader);

    // A follower is heard by nobody: the others go on as if it were not there, and it takes nobody's place.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let mute = leader % 5 + 1;
    cluster.faults(mute, BLOCKED, FAIR);
    progress(&participants, 300);
    cluster.faults(mute, FAIR, FAIR);
    cluster.catches_up(mute);

    // A fifth of all messages is lost on the leader's links, and the rest is late.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let bad = PathFaults { lost_per_million: 200_000, delay_ns: 2_000_000 };
    cluster.faults(leader, bad, bad);
    progress(&participants, 100);
    // Nobody else leads by now, or somebody does: either way all links are good again.
    cluster.faults(leader, FAIR, FAIR);
    cluster.catches_up(leader);

    // Two of five die, the leader being one of them.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let other = leader % 5 + 1;
    cluster.kill(leader);
    cluster.kill(other);
    progress(&participants, 300);
    for id in [leader, other] {
        cluster.local.start(id).unwrap();
        cluster.catches_up(id);
    }

    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let all = [1, 2, 3, 4, 5];
    let end = stop_in_order(&mut cluster, &all);
    check(&cluster, &all, &diaries, end);
}

#[test]
fn a_participant_whose_way_to_its_replica_is_bad_is_told_everything_once() {
    let mut cluster = Cluster::start(0);
    let orders: Vec<String> = cluster.local.replicas.iter().map(|replica| replica.orders.clone()).collect();
    let proxies: Vec<Proxy> = orders.iter().map(|address| Proxy::start(address)).collect();
    let routes: BTreeMap<String, String> = orders.iter().cloned().zip(proxies.iter().map(|proxy| proxy.address.clone())).collect();
    let two: [_; 2] = cluster.market(2).try_into().map_err(|_| "two were asked for").unwrap();
    let [(one, its_key), (other, others_key)] = two;
    let far = Participant::by_way_of(routes, one, its_key, orders.clone(), 0x5eed);
    let near = Participant::start(other, others_key, orders, 0xfeed);
    let both = [far, near];
    let [far, near] = &both;
    progress(&both, 200);
    let connections = || proxies.iter().map(Proxy::connection_count).sum::<u64>();

    // Cut, many times.
    for _ in 0..5 {
        proxies.iter().for_each(Proxy::cut);
        progress(std::slice::from_ref(far), 40);
    }
    // What it sends is swallowed, then what it is sent, then both: it gives each connection up and tries another.
    for (up, down) in [(Passing::Lost, Passing::Open), (Passing::Open, Passing::Lost), (Passing::Lost, Passing::Lost)] {
        let before = connections();
        proxies.iter().for_each(|proxy| proxy.set(up, down));
        until("it has connected anew", || connections() > before);
        progress(std::slice::from_ref(near), 100);
        proxies.iter().for_each(|proxy| proxy.set(Passing::Open, Passing::Open));
        progress(std::slice::from_ref(far), 100);
    }
    // It does not read, or the venue seems not to: nobody else is held up.
    for (up, down) in [(Passing::Open, Passing::Stands), (Passing::Stands, Passing::Open)] {
        let before = connections();
        proxies.iter().for_each(|proxy| proxy.set(up, down));
        progress(std::slice::from_ref(near), 300);
        until("it has connected anew", || connections() > before);
        proxies.iter().for_each(|proxy| proxy.set(Passing::Open, Passing::Open));
        progress(std::slice::from_ref(far), 100);
    }
    // Slow.
    proxies.iter().for_each(|proxy| proxy.set(Passing::Late, Passing::Late));
    progress(std::slice::from_ref(far), 60);
    // Meanwhile its leader dies.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.kill(leader);
    progress(&both, 60);
    proxies.iter().for_each(|proxy| proxy.set(Passing::Open, Passing::Open));
    cluster.local.start(leader).unwrap();
    cluster.catches_up(leader);
    progress(&both, 100);

    let diaries: Vec<Diary> = both.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check(&cluster, &[1, 2, 3], &diaries, end);
}
