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
fn an_order_that_may_have_come_before_is_not_taken_twice() {
    let (mut world, mut clients) = one(true);
    clients[0].send(world.now_ns, "D", &order(1));
    world.settle(&mut clients);
    let body = order(1);
    let seq = clients[0].next_out;
    clients[0].next_out += 1;
    let bytes = clients[0].message("D", seq, "97=Y|", &format!("{body}60={}|", crate::client::stamp(world.now_ns)));
    clients[0].output.extend(bytes);
    world.settle(&mut clients);
    assert_eq!((clients[0].last().text(150), clients[0].last().text(39), world.open_orders(0)), ("I", "0", 1));
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
    let (mut sent, mut faults) = ([0_u64; 2], 0);
    for step in 0..400 {
        for at in 0..2 {
            let of = &mut clients[at];
            if world.is_over(at) {
                assert!(of.logouts.is_empty(), "seed {seed}, step {step}: {:?}", of.logouts);
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
