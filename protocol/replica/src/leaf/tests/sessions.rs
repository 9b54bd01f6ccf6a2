//! Sessions that go on while the replica above the leaf is another one.

use std::collections::BTreeMap;

use walras_gateway::Rate;
use walras_gateway::session::ServerSettings;
use walras_random::Random;
use walras_sequencer::GatewayMessage;
use walras_types::{AccountId, OrderId};

use super::client::{Client, Received};
use super::world::{LEAF, MS, World, asset, deposit, listing, opens};
use crate::LeafMessage;

fn desk() -> Client {
    Client::new("DESK", "WALRAS", "")
}

/// Logs on, and waits until that is answered.
fn log_on(world: &mut World, to: u64, client: &mut Client, resets: bool) -> u64 {
    let line = world.connect(to, client, 0, resets);
    for _ in 0..400 {
        world.exchange(line, client);
        if client.is_logged_on || world.is_over(line) {
            break;
        }
    }
    line
}

fn new_order(name: &str, price: &str) -> String {
    format!("11={name}|55=BTC/USD|54=1|38=0.01|40=2|44={price}|59=1|")
}

/// ExecType, ClOrdID and OrigClOrdID of execution reports, and what was said of changes that were not made.
fn heard(client: &Client) -> Vec<(String, String, String)> {
    let of = |message: &Received| {
        let text = |tag: u32| message.get(tag).unwrap_or_default().to_owned();
        let kind = if message.text(35) == "8" { text(150) } else { message.text(35).to_owned() };
        (kind, text(11), text(41))
    };
    client.received.iter().map(of).collect()
}

fn said(of: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    of.iter().map(|(kind, name, orig)| ((*kind).to_owned(), (*name).to_owned(), (*orig).to_owned())).collect()
}

#[test]
fn orders_go_by_a_leaf_and_reports_come_back() {
    let mut world = World::new();
    let (mut client, mut copy) = (desk(), Client::new("DESK", "WALRAS-DROP", ""));
    let line = log_on(&mut world, LEAF, &mut client, false);
    let listens = log_on(&mut world, LEAF, &mut copy, false);
    assert!(client.is_logged_on && copy.is_logged_on, "{:?} {:?}", client.logouts, copy.logouts);
    client.send(world.time_ns(), "D", &new_order("wrong", "29000.1"));
    client.send(world.time_ns(), "D", "11=nowhere|55=ETH/USD|54=1|38=1|40=2|44=1|59=1|");
    client.send(world.time_ns(), "D", &new_order("first", "29000"));
    // A question waits for the reports of what comes before it.
    client.send(world.time_ns(), "H", "11=first|55=BTC/USD|54=1|");
    client.send(world.time_ns(), "F", "11=last|41=first|55=BTC/USD|54=1|38=0.01|");
    client.send(world.time_ns(), "q", "11=all|530=7|");
    client.send(world.time_ns(), "H", "11=first|55=BTC/USD|54=1|");
    for _ in 0..4 {
        world.exchange(line, &mut client);
    }
    let expected = [
        ("8", "wrong", ""),
        ("8", "nowhere", ""),
        ("0", "first", ""),
        ("I", "first", ""),
        ("4", "last", "first"),
        ("r", "all", ""),
        ("I", "first", ""),
    ];
    assert_eq!(heard(&client), said(&expected));
    let report = &client.received[2];
    assert_eq!([55, 38, 44, 151].map(|tag| report.text(tag)), ["BTC/USD", "0.010", "29000.0", "0.010"]);
    world.give(listens, &mut copy);
    assert_eq!(heard(&copy)[2], said(&[("0", "first", "")])[0]);
    // Its own sessions only listen.
    copy.send(world.time_ns(), "D", &new_order("second", "29000"));
    world.exchange(listens, &mut copy);
    assert!(copy.last().text(58).contains("WALRAS"), "{:?}", copy.last());
}

/// The owner of an order sees what its way from the leaf took apart from what it waited at the replica above.
#[test]
fn the_way_from_the_leaf_is_known_at_the_replica_above() {
    let mut world = World::new();
    let mut client = desk();
    let line = log_on(&mut world, LEAF, &mut client, false);
    client.send(world.time_ns(), "D", &new_order("first", "29000"));
    world.receive(line, &mut client);
    // What the leaf has sent is on its way for so long.
    world.now_ns += 300_000;
    for _ in 0..4 {
        world.exchange(line, &mut client);
    }
    let order_id = OrderId(client.received[0].text(37).parse().unwrap());
    let (above, account) = (world.above(), AccountId(0));
    let wait = world.replicas[&above].waits().of(account, order_id).unwrap();
    assert_eq!((wait.leaf_ns, wait.gateway_ns), (Some(300_000), Some(0)), "{wait:?}");
    for (_, replica) in world.replicas.iter().filter(|(number, _)| **number != above) {
        assert_eq!(replica.waits().of(account, order_id), None);
    }
}

/// A leader's clock was an hour ahead. The log's time stands still until the clocks have caught up, and logons are judged by the clocks.
#[test]
fn signed_logons_are_taken_while_the_log_is_ahead_of_the_clocks() {
    for to in [LEAF, 1, 2, 3] {
        let mut world = World::new();
        world.stamp_ahead(3_600_000 * MS);
        let mut client = desk();
        let first = log_on(&mut world, to, &mut client, false);
        assert!(client.is_logged_on && !world.is_over(first), "at {to}: {:?}", client.logouts);
        let mut other = Client::new("OTHER", "WALRAS", "");
        log_on(&mut world, to, &mut other, true);
        assert!(other.is_logged_on, "at {to}: {:?}", other.logouts);
    }
}

/// Each logon is sent all reports of its account that are kept.
#[test]
fn logons_that_are_sent_too_many_past_reports_wait_and_others_do_not() {
    for to in [LEAF, 1] {
        let resends = Rate::new(5, 40).unwrap();
        let mut world = World::with(ServerSettings { resends, ..ServerSettings::default() });
        let mut client = desk();
        let line = log_on(&mut world, to, &mut client, false);
        for order in 0..10 {
            client.send(world.time_ns(), "D", &new_order(&format!("order-{order}"), "29000"));
        }
        for _ in 0..4 {
            world.exchange(line, &mut client);
        }
        assert_eq!(heard(&client).len(), 10, "at {to}");
        let is_let_in = |world: &mut World, name| {
            let mut other = Client::new(name, "WALRAS", "");
            log_on(world, to, &mut other, false);
            (other.is_logged_on, other.logouts)
        };
        let outcomes = ["ONE", "TWO", "THREE", "FOUR", "FIVE"].map(|name| is_let_in(&mut world, name));
        assert!(outcomes[0].0, "at {to}: {:?}", outcomes[0]);
        let (is_fifth_in, why) = &outcomes[4];
        assert!(!is_fifth_in && why.iter().any(|text| text.contains("too many past reports")), "at {to}: {why:?}");
        // Another account has its own, and this one is let in again later. Its first session was there all the while.
        let mut other = Client::new("OTHER", "WALRAS", "");
        let others = world.connect(to, &mut other, 1, false);
        for _ in 0..10 {
            world.exchange(others, &mut other);
        }
        assert!(other.is_logged_on, "at {to}: {:?}", other.logouts);
        world.pass(4_000 * MS);
        let (is_in, why) = is_let_in(&mut world, "LATER");
        assert!(is_in, "at {to}: {why:?}");
        client.send(world.time_ns(), "F", "11=last|41=order-0|55=BTC/USD|54=1|38=0.01|");
        world.exchange(line, &mut client);
        assert_eq!(heard(&client).last(), said(&[("4", "last", "order-0")]).last(), "at {to}");
    }
}

/// Reports from before a logon may be lost on their way to the leaf: the connection does not wait for them without end.
#[test]
fn a_logon_whose_reports_do_not_come_ends_in_time() {
    let mut world = World::new();
    world.loses = |message| matches!(message, LeafMessage::Reported { .. });
    let mut client = desk();
    let line = log_on(&mut world, LEAF, &mut client, false);
    assert!(!client.is_logged_on && !world.is_over(line), "it waits: {:?}", client.logouts);
    world.wait("the logon is given up", |world| world.is_over(line));
    world.give(line, &mut client);
    assert!(client.logouts.iter().any(|text| text.contains("110")), "{:?}", client.logouts);
    world.loses = |_| false;
    let mut other = Client::new("OTHER", "WALRAS", "");
    log_on(&mut world, LEAF, &mut other, false);
    assert!(other.is_logged_on, "{:?}", other.logouts);
}

/// A replica that is no member any more hears of no leader, so it answers no logon. Clients give up sooner than the leaf does.
#[test]
fn a_replica_that_answers_no_logon_is_left_though_clients_give_up_soon() {
    let mut world = World::new();
    let before = world.above();
    world.loses = |message| matches!(message, LeafMessage::Gateway(GatewayMessage::Open { .. }));
    for _ in 0..4 {
        let mut client = desk();
        let line = world.connect(LEAF, &mut client, 0, false);
        world.exchange(line, &mut client);
        assert!(!client.is_logged_on);
        world.pass(900 * MS);
        world.hang_up(line);
    }
    assert_ne!(world.above(), before);
    world.loses = |_| false;
    let mut client = desk();
    log_on(&mut world, LEAF, &mut client, false);
    assert!(client.is_logged_on, "{:?}", client.logouts);
}

/// Who is connected to a replica that hears of no leader may find one elsewhere.
#[test]
fn a_replica_without_a_leader_sends_participants_away() {
    let mut world = World::new();
    let mut client = desk();
    let line = log_on(&mut world, 1, &mut client, false);
    assert!(client.is_logged_on, "{:?}", client.logouts);
    [2, 3].into_iter().for_each(|number| world.kill(number));
    world.pass(9_000 * MS);
    assert!(!world.is_over(line), "an election may take a while");
    world.wait("the replica gives up", |world| world.is_over(line));
    world.give(line, &mut client);
    assert!(client.logouts.iter().any(|text| text.contains("110")), "{:?}", client.logouts);
}

/// What came of a change and of a cancel is known only at the replica that dies. The next one says what they came to, not just what
/// happened to the orders.
#[test]
fn what_was_on_its_way_is_said_by_what_was_asked() {
    let mut world = World::new();
    let mut client = desk();
    let line = log_on(&mut world, LEAF, &mut client, false);
    client.send(world.time_ns(), "D", &new_order("one", "29000"));
    world.exchange(line, &mut client);
    assert_eq!(heard(&client), said(&[("0", "one", "")]));
    let above = world.above();
    world.loses = |message| matches!(message, LeafMessage::Answered { .. } | LeafMessage::Reported { .. });
    client.send(world.time_ns(), "G", "11=two|41=one|55=BTC/USD|54=1|38=0.02|40=2|44=29001|59=1|");
    client.send(world.time_ns(), "F", "11=three|41=none|55=BTC/USD|54=1|38=0.01|");
    world.exchange(line, &mut client);
    world.pass(20 * MS);
    assert_eq!(heard(&client).len(), 1);
    world.loses = |_| false;
    world.kill(above);
    client.send(world.time_ns(), "F", "11=four|41=two|55=BTC/USD|54=1|38=0.02|");
    world.receive(line, &mut client);
    world.wait("another replica is above", |world| world.leaf.above().is_some());
    world.wait("all is answered", |world| world.leaf.unanswered() == 0);
    world.exchange(line, &mut client);
    let expected = [("0", "one", ""), ("5", "two", "one"), ("9", "three", "none"), ("4", "four", "two")];
    assert_eq!(heard(&client), said(&expected), "each once, in order");
    assert_ne!(world.above(), above);
    assert!(!world.is_over(line), "the connection stayed");
}

#[test]
fn numbers_that_begin_again_survive_the_replica_above() {
    let mut world = World::new();
    let mut client = desk();
    let line = log_on(&mut world, LEAF, &mut client, false);
    client.send(world.time_ns(), "D", &new_order("one", "29000"));
    world.exchange(line, &mut client);
    // The log has closed the old session, and the leaf does not hear of it.
    world.loses = |message| matches!(message, LeafMessage::Answered { .. } | LeafMessage::NotBegun { .. });
    let line = world.connect(LEAF, &mut client, 0, true);
    for _ in 0..10 {
        world.exchange(line, &mut client);
    }
    assert!(!client.is_logged_on && world.leaf.unanswered() == 1);
    let above = world.above();
    world.loses = |_| false;
    world.kill(above);
    world.wait("another replica is above", |world| world.leaf.above().is_some());
    for _ in 0..400 {
        world.exchange(line, &mut client);
    }
    assert!(client.is_logged_on, "{:?}", client.logouts);
    client.send(world.time_ns(), "D", &new_order("two", "29000"));
    world.exchange(line, &mut client);
    assert_eq!(heard(&client).last(), said(&[("0", "two", "")]).last());
}

/// A client goes from the leaf to a replica and back, with its numbers alone. Its orders' names are too long for a number.
#[test]
fn a_session_goes_on_at_a_replica_and_at_the_leaf_again() {
    let mut world = World::new();
    let mut client = desk();
    for (round, to) in [LEAF, 1, LEAF, 3].into_iter().enumerate() {
        let line = log_on(&mut world, to, &mut client, false);
        assert!(client.is_logged_on, "round {round}: {:?}", client.logouts);
        client.send(world.time_ns(), "D", &new_order(&format!("order-of-round/{round}"), "29000"));
        // Its report is not read: the next one has it.
        world.receive(line, &mut client);
        world.pass(20 * MS);
    }
    let line = log_on(&mut world, LEAF, &mut client, false);
    world.exchange(line, &mut client);
    let names: Vec<String> = (0..4).map(|round| format!("order-of-round/{round}")).collect();
    let expected: Vec<_> = names.iter().map(|name| ("0", name.as_str(), "")).collect();
    assert_eq!(heard(&client), said(&expected));
}

#[test]
fn without_the_lists_fix_is_refused_with_what_to_do() {
    let mut world = World::new();
    // Replicas of an earlier program know no such message. The leaf has not heard the lists of anybody.
    world.loses = |message| matches!(message, LeafMessage::List);
    world.leaf_starts_again();
    let mut client = desk();
    log_on(&mut world, LEAF, &mut client, false);
    assert!(!client.is_logged_on && client.logouts[0].contains("upgraded first"), "{:?}", client.logouts);
    world.loses = |_| false;
    let above = world.above();
    world.cut(above);
    world.link(above);
    world.wait("a replica is above", |world| world.leaf.above().is_some());
    world.pass(20 * MS);
    // The client has counted the refusal.
    log_on(&mut world, LEAF, &mut client, false);
    assert!(client.is_logged_on, "{:?}", client.logouts);
}

#[test]
fn what_is_listed_later_can_be_traded_at_once() {
    let mut world = World::new();
    let mut client = desk();
    let line = log_on(&mut world, LEAF, &mut client, false);
    for command in [asset(2, "EUR", 2), deposit(0, 2), listing(1, "BTC/EUR", 2), opens(1)] {
        world.apply(command);
    }
    world.pass(5 * MS);
    client.send(world.time_ns(), "D", "11=euros|55=BTC/EUR|54=1|38=0.01|40=2|44=2900000|59=1|");
    world.exchange(line, &mut client);
    assert_eq!(heard(&client), said(&[("0", "euros", "")]));
    assert_eq!(client.received[0].text(55), "BTC/EUR");
}

/// The fields of a message without those that differ between connections.
fn body(message: &Received) -> Vec<(u32, String)> {
    let is_header = |tag: u32| matches!(tag, 8 | 9 | 10 | 34 | 43 | 49 | 52 | 56 | 122);
    message.fields.iter().filter(|(tag, _)| !is_header(*tag)).cloned().collect()
}

/// Links with the leaf are lost at any message. A session at the leaf hears of each of its requests once, by its name. One that only
/// listens there hears what one at a replica hears.
#[test]
fn random_losses_of_links_lose_and_double_nothing() {
    let mut moves = 0;
    for seed in 0..24 {
        let (mut world, mut random) = (World::new(), Random::new(seed));
        let (mut client, mut copy) = (desk(), Client::new("DESK", "WALRAS-DROP", ""));
        let mut direct = Client::new("OTHER", "WALRAS-DROP", "");
        let line = log_on(&mut world, LEAF, &mut client, false);
        let listens = log_on(&mut world, LEAF, &mut copy, false);
        let at_replica = log_on(&mut world, 1, &mut direct, false);
        assert!(client.is_logged_on && copy.is_logged_on && direct.is_logged_on);
        let (mut asked, mut orders): (BTreeMap<String, &str>, u64) = (BTreeMap::new(), 0);
        for round in 0..60_u64 {
            for _ in 0..random.below(3) {
                let name = format!("n{}", asked.len());
                let price = 58_000 + random.below(20);
                let time_ns = world.time_ns();
                let change = |change: &str, random: &mut Random| {
                    let orig = random.below(asked.len() as u64);
                    format!("11={name}|41=n{orig}|55=BTC/USD|54=1|38=0.02|{change}")
                };
                let (kind, body) = match random.below(4) {
                    0 if !asked.is_empty() => ("F", change("", &mut random)),
                    1 if !asked.is_empty() => ("G", change(&format!("40=2|44={}.5|59=1|", price / 2), &mut random)),
                    _ => ("D", format!("11={name}|55=BTC/USD|54=1|38=0.01|40=2|44={}|59=1|", price / 2)),
                };
                client.send(time_ns, kind, &body);
                asked.insert(name, kind);
            }
            if random.below(6) == 0 {
                orders += 1;
                world.sell(orders, 58_010, 7);
            }
            world.receive(line, &mut client);
            for _ in 0..random.below(12) {
                world.step();
            }
            if random.below(3) == 0
                && let Some(above) = world.leaf.above()
            {
                world.cut(above.get());
                moves += 1;
            }
            world.pass(random.below(4) * MS);
            for number in 1..=3 {
                if random.below(2) == 0 {
                    world.link(number);
                }
            }
            for (line, client) in [(line, &mut client), (listens, &mut copy), (at_replica, &mut direct)] {
                world.give(line, client);
                assert!(!world.is_over(line), "seed {seed}, round {round}: {:?}", client.logouts);
            }
        }
        (1..=3).for_each(|number| world.link(number));
        world.wait("all is answered", |world| world.leaf.above().is_some() && world.leaf.unanswered() == 0);
        world.pass(50 * MS);
        for (line, client) in [(line, &mut client), (listens, &mut copy), (at_replica, &mut direct)] {
            world.exchange(line, client);
        }
        for (name, kind) in &asked {
            let answers: Vec<(&str, Option<&str>)> = client
                .received
                .iter()
                .filter(|message| message.get(11) == Some(name) && message.get(150) != Some("F"))
                .map(|message| (message.text(35), message.get(150)))
                .collect();
            let is_answer = match (*kind, &answers[..]) {
                // A new order may end with a cancel of a name of its own, or stay.
                ("D", [("8", Some("0" | "8"))]) => true,
                ("G", [("8", Some("5")) | ("9", None), ..]) => true,
                ("F", [("8", Some("4")) | ("9", None)]) => true,
                _ => false,
            };
            assert!(is_answer, "seed {seed}: {kind} {name}: {answers:?}");
        }
        let ids: Vec<u64> = client.executions().map(|message| message.text(17).parse().unwrap()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "seed {seed}: {ids:?}");
        let [here, there] = [&copy, &direct].map(|client| client.received.iter().map(body).collect::<Vec<_>>());
        assert_eq!(here, there, "seed {seed}");
    }
    assert!(moves > 100, "{moves} links were lost");
}
