//! Connections, replicas and commands are lost: each order takes effect once, and each report comes once.

use std::collections::{BTreeMap, BTreeSet};

use walras_random::Random;

use crate::client::Client;
use crate::world::{World, password};

fn one(says_next: bool) -> (World, Vec<Client>) {
    let mut world = World::new();
    let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0))];
    clients[0].says_next = says_next;
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    assert!(clients[0].is_logged_on, "{:?}", clients[0].logouts);
    (world, clients)
}

fn order(number: u64) -> String {
    format!("11=A{number}|55=BTC/USD|54=2|38=0.001|40=2|44=30000|59=1|")
}

/// Tries to log on with a key that the venue does not know.
fn try_wrong_key(world: &mut World, clients: &mut [Client], replica: usize) {
    let known = std::mem::replace(&mut clients[0].credentials, password(7));
    clients[0].logouts.clear();
    world.wait(1_000_000_000);
    world.connect(0, &mut clients[0], replica, "");
    world.settle(clients);
    assert!(!clients[0].is_logged_on);
    assert!(clients[0].logouts.len() == 1 && clients[0].logouts[0].contains("UnknownKey"), "{:?}", clients[0].logouts);
    clients[0].credentials = known;
}

#[test]
fn a_client_that_counts_refused_logons_begins_all_the_same() {
    // The last ones find no number of the beginning any more.
    for (says_next, refusals) in [(true, 1), (true, 3), (false, 1), (false, 3), (true, 1_030)] {
        let mut world = World::new();
        let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0)), Client::new("AL", "WALRAS", &password(0))];
        clients[0].says_next = says_next;
        // The account has reports from before the session.
        world.connect(1, &mut clients[1], 0, "");
        world.settle(&mut clients);
        for number in 1..=5 {
            clients[1].send(world.now_ns, "D", &order(number));
        }
        world.settle(&mut clients);
        for attempt in 0..refusals {
            try_wrong_key(&mut world, &mut clients, attempt % 3);
        }
        world.wait(1_000_000_000);
        world.connect(0, &mut clients[0], 1, "");
        clients[0].send(world.now_ns, "D", &order(6));
        world.settle(&mut clients);
        assert!(clients[0].is_logged_on, "after {refusals}: {:?}", clients[0].logouts);
        clients[0].send(world.now_ns, "D", &order(7));
        clients[1].send(world.now_ns, "D", &order(8));
        world.settle(&mut clients);
        let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
        assert_eq!(names, ["A6", "A7", "A8"], "after {refusals}, 789: {says_next}");
    }
}

/// Whatever number a client expects next, refusals do not move it from one report to another.
#[test]
fn refused_logons_lose_and_double_no_report() {
    for says_next in [true, false] {
        let (mut world, mut clients) = one(says_next);
        let mut names = Vec::new();
        for round in 0..4 {
            // One report is received, and the next one is lost.
            clients[0].send(world.now_ns, "D", &order(2 * round));
            world.settle(&mut clients);
            clients[0].send(world.now_ns, "D", &order(2 * round + 1));
            let bytes = std::mem::take(&mut clients[0].output);
            world.receive(0, &bytes);
            while world.decide() {}
            names.extend([format!("A{}", 2 * round), format!("A{}", 2 * round + 1)]);
            for attempt in 0..round {
                try_wrong_key(&mut world, &mut clients, usize::try_from(attempt).unwrap());
            }
            world.wait(1_000_000_000);
            world.connect(0, &mut clients[0], 1, "");
            world.settle(&mut clients);
            assert!(clients[0].is_logged_on, "round {round}: {:?}", clients[0].logouts);
            let said: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
            assert_eq!(said, names, "789: {says_next}");
            // A heartbeat's number is of another kind.
            clients[0].heartbeat(world.now_ns);
            world.settle(&mut clients);
        }
    }
}

/// A logon that breaks a rule takes no number either, and what it would have been sent comes with the next one.
#[test]
fn a_logon_with_a_wrong_heartbeat_loses_no_report() {
    for says_next in [true, false] {
        let (mut world, mut clients) = one(says_next);
        clients[0].send(world.now_ns, "D", &order(1));
        let bytes = std::mem::take(&mut clients[0].output);
        world.receive(0, &bytes);
        while world.decide() {}
        world.lose(0);
        clients[0].heart_bt_secs = 0;
        for replica in 0..2 {
            world.wait(1_000_000_000);
            world.connect(0, &mut clients[0], replica, "");
            world.settle(&mut clients);
            assert!(!clients[0].is_logged_on && clients[0].logouts[replica].contains("HeartBtInt"), "{:?}", clients[0].logouts);
        }
        clients[0].heart_bt_secs = 30;
        world.wait(1_000_000_000);
        world.connect(0, &mut clients[0], 0, "");
        world.settle(&mut clients);
        let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
        assert_eq!(names, ["A1"], "789: {says_next}, {:?}", clients[0].logouts);
    }
}

#[test]
fn a_client_goes_on_at_another_replica() {
    let (mut world, mut clients) = one(true);
    clients[0].send(world.now_ns, "D", &order(1));
    world.settle(&mut clients);
    // The second order's report is lost, the third order itself, and of the fourth nobody knows.
    clients[0].send(world.now_ns, "D", &order(2));
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    while world.decide() {}
    clients[0].send(world.now_ns, "D", &order(3));
    world.wait(1_000_000_000);
    world.restart(0);
    world.connect(0, &mut clients[0], 1, "");
    clients[0].send(world.now_ns, "D", &order(4));
    world.settle(&mut clients);
    let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["A1", "A2", "A3", "A4"]);
    assert_eq!(world.open_orders(0), 4);
}

/// A ClOrdID that is no name is known where a replace gave it. Elsewhere the venue's own name leads to the order.
#[test]
fn a_replaced_order_is_found_by_its_order_id_at_another_replica() {
    let (mut world, mut clients) = one(true);
    clients[0].send(world.now_ns, "D", &order(1));
    clients[0].send(world.now_ns, "G", "11=A 2|41=A1|55=BTC/USD|54=2|38=0.002|40=2|44=30000|");
    world.settle(&mut clients);
    let order_id = clients[0].last().text(37).to_owned();
    world.wait(1_000_000_000);
    world.restart(0);
    world.connect(0, &mut clients[0], 1, "");
    world.settle(&mut clients);
    clients[0].send(world.now_ns, "F", "11=C1|41=A 2|55=BTC/USD|54=2|38=0.002|");
    world.settle(&mut clients);
    let last = clients[0].last();
    assert_eq!((last.text(35), last.text(102)), ("9", "1"));
    assert!(last.text(58).contains("OrderID(37)"), "{last:?}");
    clients[0].send(world.now_ns, "F", &format!("11=C2|41=A 2|37={order_id}|55=BTC/USD|54=2|38=0.002|"));
    world.settle(&mut clients);
    let last = clients[0].last();
    assert_eq!((last.text(35), last.text(11), last.text(41), last.text(150)), ("8", "C2", "A1", "4"));
    assert_eq!(world.open_orders(0), 0);
}

#[test]
fn a_client_without_789_goes_on_at_the_replica_that_remembers_it() {
    let (mut world, mut clients) = one(false);
    clients[0].send(world.now_ns, "D", &order(1));
    world.settle(&mut clients);
    clients[0].send(world.now_ns, "D", &order(2));
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    while world.decide() {}
    // Its report is sent, and lost.
    assert!(!world.output(0).is_empty());
    world.wait(1_000_000_000);
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["A1", "A2"]);
    // Numbers that begin again: nothing of the past comes, and what is open stays open.
    clients[0].reset();
    world.wait(1_000_000_000);
    world.connect(0, &mut clients[0], 1, "141=Y|");
    world.settle(&mut clients);
    assert!(clients[0].is_logged_on, "{:?}", clients[0].logouts);
    assert_eq!(clients[0].executions().count(), 2);
    clients[0].send(world.now_ns, "D", &order(3));
    clients[0].send(world.now_ns, "F", "11=C1|41=A1|55=BTC/USD|54=2|38=0.001|");
    world.settle(&mut clients);
    let said: Vec<(&str, &str)> = clients[0].executions().skip(2).map(|message| (message.text(11), message.text(150))).collect();
    assert_eq!(said, [("A3", "0"), ("C1", "4")]);
}

#[test]
fn a_client_without_789_asks_another_replica_for_what_it_lacks() {
    let (mut world, mut clients) = one(false);
    for number in 1..=3 {
        clients[0].send(world.now_ns, "D", &order(number));
        if number < 3 {
            world.settle(&mut clients);
        }
    }
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    while world.decide() {}
    // It has seen two reports; the third one is lost.
    for replica in 1..4 {
        world.wait(1_000_000_000);
        world.restart(replica - 1);
        world.connect(0, &mut clients[0], replica, "");
        world.settle(&mut clients);
        clients[0].send(world.now_ns, "D", &order(3 + replica as u64));
        world.settle(&mut clients);
        assert!(clients[0].is_logged_on, "{:?}", clients[0].logouts);
    }
    let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["A1", "A2", "A3", "A4", "A5", "A6"]);
    // So many messages that no number is surely above all that were sent.
    clients[0].next_out = 20_000;
    world.wait(1_000_000_000);
    world.restart(3);
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    assert!(clients[0].logouts[0].contains("NextExpectedMsgSeqNum(789)"), "{:?}", clients[0].logouts);
}

/// A replica has answered its logon, and it has not said yet what it lacks.
#[test]
fn a_client_without_789_asks_again_where_the_answer_to_its_logon_was_lost() {
    let (mut world, mut clients) = one(false);
    clients[0].send(world.now_ns, "D", &order(1));
    // The report is lost, and then the answer of another replica.
    for _ in 0..2 {
        let bytes = std::mem::take(&mut clients[0].output);
        world.receive(0, &bytes);
        while world.decide() {}
        assert!(!world.output(0).is_empty());
        world.wait(1_000_000_000);
        world.connect(0, &mut clients[0], 1, "");
    }
    world.settle(&mut clients);
    let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["A1"]);
}

#[test]
fn a_logon_is_good_once() {
    let (mut world, mut clients) = one(true);
    world.lose(0);
    let logon = {
        clients[0].log_on(world.now_ns, "");
        clients[0].output.clone()
    };
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    assert!(clients[0].is_logged_on);
    let mut other = Client::new("ALICE", "WALRAS", "");
    world.connect(1, &mut other, 0, "");
    world.lose(0);
    other.output = logon;
    let mut both = vec![clients.remove(0), other];
    world.settle(&mut both);
    assert!(both[1].logouts[0].contains("good once"), "{:?}", both[1].logouts);
}

#[test]
fn a_refused_change_is_no_rejected_order_at_another_replica() {
    let (mut world, mut clients) = one(true);
    clients[0].send(world.now_ns, "D", &order(1));
    world.settle(&mut clients);
    // A price that is no whole number of ticks. The answer is lost, and the other replica does not know who asked for what.
    clients[0].send(world.now_ns, "G", "11=A2|41=A1|55=BTC/USD|54=2|38=0.001|40=2|44=30000.3|");
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    while world.decide() {}
    world.wait(1_000_000_000);
    world.restart(0);
    world.connect(0, &mut clients[0], 1, "");
    world.settle(&mut clients);
    let last = clients[0].last();
    assert_eq!((last.text(35), last.text(41), last.text(39)), ("9", "A1", "0"), "{last:?}");
    assert_eq!((clients[0].executions().count(), world.open_orders(0)), (1, 1));
}

/// A message that may have been sent before, under another number.
fn may_come_again(world: &World, client: &mut Client, body: &str) {
    let seq = client.next_out;
    client.next_out += 1;
    let bytes = client.message("D", seq, "97=Y|", &format!("{body}60={}|", crate::client::stamp(world.now_ns)));
    client.output.extend(bytes);
}

#[test]
fn an_order_that_may_have_come_before_is_not_taken_twice() {
    let (mut world, mut clients) = one(true);
    clients[0].send(world.now_ns, "D", &order(1));
    world.settle(&mut clients);
    may_come_again(&world, &mut clients[0], &order(1));
    world.settle(&mut clients);
    assert_eq!((clients[0].last().text(150), clients[0].last().text(39), world.open_orders(0)), ("I", "0", 1));
}

/// The first one is on its way when the second one comes, and gone when that would enter.
#[test]
fn an_order_that_may_be_on_its_way_is_not_taken_twice() {
    let (mut world, mut clients) = one(true);
    clients.push(Client::new("BOB", "WALRAS", &password(1)));
    world.connect(1, &mut clients[1], 0, "");
    world.settle(&mut clients);
    clients[1].send(world.now_ns, "D", "11=b|55=BTC/USD|54=1|38=0.002|40=2|44=30000|59=1|");
    world.settle(&mut clients);
    let taker = "11=a|55=BTC/USD|54=2|38=0.001|40=2|44=30000|59=3|";
    clients[0].send(world.now_ns, "D", taker);
    may_come_again(&world, &mut clients[0], taker);
    world.settle(&mut clients);
    assert_eq!((clients[0].last().text(150), clients[0].last().text(39), world.position(0)), ("I", "2", -1));
}

/// Numbers of no command take entries of the log all the same, for which no rate is checked.
#[test]
fn who_leaves_out_numbers_again_and_again_is_logged_out() {
    let (mut world, mut clients) = one(true);
    for round in 0..20 {
        let seq = clients[0].next_out;
        clients[0].next_out += 1_000;
        let fill = clients[0].message("4", seq, "", &format!("123=Y|36={}|", seq + 1_000));
        clients[0].output.extend(fill);
        clients[0].send(world.now_ns, "D", &order(round));
        world.settle(&mut clients);
        if !clients[0].is_logged_on {
            break;
        }
    }
    assert!(clients[0].logouts.iter().any(|text| text.contains("left out")), "{:?}", clients[0].logouts);
    assert!(world.commands.len() > 15_000 && world.commands.len() < 17_000, "{} entries", world.commands.len());
}

#[test]
fn questions_that_wait_are_bounded_by_their_bytes() {
    let (mut world, mut clients) = one(true);
    world.is_full = true;
    clients[0].send(world.now_ns, "D", &order(1));
    for _ in 0..100 {
        clients[0].send(world.now_ns, "H", &format!("11=A1|55=BTC/USD|54=2|5000={}|", "x".repeat(12_000)));
    }
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    assert!(world.is_over(0));
    let output = world.output(0);
    clients[0].on_bytes(world.now_ns, &output);
    assert!(clients[0].logouts.iter().any(|text| text.contains("More requests wait")), "{:?}", clients[0].logouts);
}

/// Also where nothing more comes of the client, a replica has something to do only after each pause.
#[test]
fn what_is_refused_again_waits_for_another_pause() {
    let (mut world, mut clients) = one(true);
    world.is_full = true;
    clients[0].send(world.now_ns, "D", &order(1));
    let bytes = std::mem::take(&mut clients[0].output);
    world.receive(0, &bytes);
    for _ in 0..5 {
        while world.decide() {}
        assert!(world.pause_ns(0) > 1_000_000, "{} ns", world.pause_ns(0));
        world.wait(world.pause_ns(0));
        world.output(0);
    }
}

#[test]
fn what_the_log_does_not_take_is_rejected_once_it_can_say_so() {
    let (mut world, mut clients) = one(true);
    world.is_full = true;
    clients[0].send(world.now_ns, "D", &order(1));
    clients[0].send(world.now_ns, "D", &order(2));
    for _ in 0..5 {
        let bytes = std::mem::take(&mut clients[0].output);
        world.receive(0, &bytes);
        while world.decide() {}
        world.wait(50_000_000);
        let output = world.output(0);
        clients[0].on_bytes(world.now_ns, &output);
        assert_eq!(clients[0].executions().count(), 0);
    }
    world.is_full = false;
    world.settle(&mut clients);
    for _ in 0..3 {
        world.wait(50_000_000);
        world.settle(&mut clients);
    }
    let said: Vec<(&str, &str)> = clients[0].executions().map(|message| (message.text(11), message.text(150))).collect();
    assert_eq!(said, [("A1", "8"), ("A2", "8")]);
    assert!(clients[0].last().text(58).contains("Overloaded (112)"));
    clients[0].send(world.now_ns, "D", &order(3));
    world.settle(&mut clients);
    assert_eq!((clients[0].last().text(11), clients[0].last().text(150)), ("A3", "0"));
    world.is_throttled = true;
    clients[0].send(world.now_ns, "D", &order(4));
    clients[0].send(world.now_ns, "F", "11=C1|41=A3|55=BTC/USD|54=2|38=0.001|");
    world.settle(&mut clients);
    let said: Vec<(&str, &str)> = clients[0].executions().skip(3).map(|message| (message.text(11), message.text(150))).collect();
    assert_eq!(said, [("A4", "8"), ("C1", "4")]);
    assert_eq!(world.open_orders(0), 0);
}

/// A client whose connections break at any byte, at replicas that forget.
fn fails_over(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut world = World::new();
    let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0)), Client::new("BOB", "WALRAS", &password(1))];
    clients[1].says_next = !seed.is_multiple_of(3);
    let (keys, mut sent, mut faults) = ([0, 1], [0_u64; 2], 0);
    for step in 0..400 {
        for at in 0..2 {
            let of = &mut clients[at];
            if world.is_over(at) {
                let is_by_key = |text: &String| text.contains("UnknownKey");
                assert!(of.logouts.iter().all(is_by_key), "seed {seed}, step {step}: {:?}", of.logouts);
                // Now and then with a key that the venue does not know.
                of.credentials = password(if random.below(4) == 0 { 7 } else { keys[at] });
                world.connect(at, of, usize::try_from(random.below(3)).unwrap(), "");
            }
            if random.below(3) == 0 {
                sent[at] += 1;
                let (side, price) = (1 + (random.below(2)), 30_000 + random.below(3));
                let body = format!(
                    "11={}-{}|55=BTC/USD|54={side}|38=0.00{}|40=2|44={price}|59=1|",
                    of.name,
                    sent[at],
                    1 + random.below(5)
                );
                of.send(world.now_ns, "D", &body);
            }
            if random.below(10) == 0 && sent[at] > 0 {
                let of_order = 1 + random.below(sent[at]);
                let name = of.name.clone();
                of.send(world.now_ns, "F", &format!("11=C{step}|41={name}-{of_order}|55=BTC/USD|54=1|38=0.001|"));
            }
            if of.is_logged_on && random.below(10) == 0 {
                of.heartbeat(world.now_ns);
            }
            let bytes = std::mem::take(&mut of.output);
            let cut =
                if random.below(12) == 0 { usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap() } else { bytes.len() };
            world.receive(at, &bytes[..cut]);
            let mut is_broken = cut < bytes.len();
            for _ in 0..random.below(6) {
                world.decide();
            }
            let output = world.output(at);
            let cut =
                if random.below(12) == 0 { usize::try_from(random.below(output.len() as u64 + 1)).unwrap() } else { output.len() };
            of.on_bytes(world.now_ns, &output[..cut]);
            is_broken |= cut < output.len();
            if is_broken || random.below(40) == 0 {
                faults += 1;
                world.lose(at);
                of.is_logged_on = false;
                match random.below(3) {
                    0 => world.lose_pipeline(),
                    1 => world.restart(usize::try_from(random.below(3)).unwrap()),
                    _ => {}
                }
            }
        }
        world.wait(1_000_000 + random.below(60) * 100_000_000);
    }
    for at in 0..2 {
        world.lose(at);
        clients[at].is_logged_on = false;
        clients[at].credentials = password(keys[at]);
        world.wait(1_000_000_000);
        world.connect(at, &mut clients[at], 2, "");
    }
    world.settle(&mut clients);
    for (at, client) in clients.iter().enumerate() {
        check(&world, client, u32::try_from(at).unwrap(), sent[at], seed);
    }
    faults
}

/// Each order was accepted or rejected once, each report came once, and all trades together are the position.
fn check(world: &World, client: &Client, account: u32, sent: u64, seed: u64) {
    let (mut ids, mut outcomes, mut lots) = (BTreeSet::new(), BTreeMap::<&str, u64>::new(), 0);
    for message in client.executions() {
        assert!(ids.insert(message.text(17).parse::<u64>().unwrap()), "seed {seed}: twice: {message:?}");
        match message.text(150) {
            "0" | "8" => *outcomes.entry(message.text(11)).or_default() += 1,
            "F" => {
                let size: i64 = message.text(32).replace('.', "").parse().unwrap();
                lots += if message.text(54) == "1" { size } else { -size };
            }
            _ => {}
        }
    }
    assert!(ids.iter().is_sorted());
    let orders: Vec<String> = (1..=sent).map(|number| format!("{}-{number}", client.name)).collect();
    for order in &orders {
        assert_eq!(outcomes.get(order.as_str()), Some(&1), "seed {seed}: {order}");
    }
    assert_eq!(lots, world.position(account), "seed {seed}");
}

#[test]
fn nothing_is_lost_or_doubled_whatever_breaks() {
    let faults: u64 = (0..60).map(fails_over).sum();
    assert!(faults > 1_000, "{faults} faults are too few to find anything");
}
