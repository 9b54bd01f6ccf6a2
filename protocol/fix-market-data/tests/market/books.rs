//! Random orders: after every message a client's copy is the engine's book of the publication that it is of.

use std::collections::BTreeMap;

use walras_random::Random;
use walras_types::Side;

use crate::world::{Received, Shown, World, number, symbol};

/// What a client has of one market.
#[derive(Debug, Default)]
struct Copy {
    bids: Shown,
    asks: Shown,
    trades: Vec<u64>,
    day: BTreeMap<String, String>,
    /// The last update's number.
    update: u64,
    wholes: u64,
}

impl Copy {
    fn take(&mut self, message: &Received) {
        let is_whole = message.get(35) == Some("W");
        let update = message.get(5083).map(|update| update.parse::<u64>().unwrap());
        if is_whole {
            (self.bids, self.asks) = (Shown::new(), Shown::new());
            self.day.clear();
            self.wholes += 1;
        } else if let Some(before) = message.get(5084) {
            assert_eq!(before, self.update.to_string(), "a gap before {message:?}");
        }
        self.update = update.unwrap_or(self.update);
        for entry in message.entries() {
            let action = if is_whole { "0" } else { entry[&279].as_str() };
            let (kind, price) = (entry[&269].clone(), entry.get(&270).cloned());
            match kind.as_str() {
                "0" | "1" => {
                    let levels = if kind == "0" { &mut self.bids } else { &mut self.asks };
                    let price = price.unwrap();
                    let at = levels.iter().position(|(known, _)| *known == price);
                    match (action, at) {
                        ("0", None) => levels.push((price, entry[&271].clone())),
                        ("1", Some(at)) => levels[at].1 = entry[&271].clone(),
                        ("2", Some(at)) => drop(levels.remove(at)),
                        other => panic!("{other:?} in {message:?}"),
                    }
                }
                "2" => match entry.get(&278) {
                    Some(id) if !is_whole => {
                        assert_eq!(action, "0");
                        self.trades.push(id.parse().unwrap());
                    }
                    _ => {}
                },
                _ if action == "2" => drop(self.day.remove(&kind)),
                _ => drop(self.day.insert(kind, entry.get(&270).or(entry.get(&271)).unwrap().clone())),
            }
        }
        self.bids.sort_by(|one, other| number(&other.0).total_cmp(&number(&one.0)));
        self.asks.sort_by(|one, other| number(&one.0).total_cmp(&number(&other.0)));
    }
}

#[test]
fn a_copy_is_the_engines_book_after_every_message() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut world = World::new(2);
        // Versions, depths and forms differ.
        let wishes = [("FIX.4.4", 0, 1), ("FIX.4.4", 1, 1), ("FIX.5.0SP2", 3, 1), ("FIX.4.2", 2, 0)];
        let mut clients = Vec::new();
        for (id, (version, depth, form)) in (1..).zip(wishes) {
            let mut client = world.connect(id, version);
            let logon = world.hear(&mut client);
            assert_eq!(logon[0].get(35), Some("A"), "{logon:?}");
            let kinds =
                if version == "FIX.4.2" { "267=6|269=0|269=1|269=2|269=4|269=7|269=8|" } else { "267=3|269=0|269=1|269=2|" };
            let both = format!("146=2|55={}|55={}|", symbol(0), symbol(1));
            world.send(&mut client, "V", &format!("262=r{id}|263=1|264={depth}|265={form}|{kinds}{both}5083=Y|"));
            clients.push((client, if depth == 0 { usize::MAX } else { depth }, [Copy::default(), Copy::default()]));
        }
        let mut open: Vec<(u32, u64, Side)> = Vec::new();
        for step in 0..150_u64 {
            let at = u32::try_from(random.below(2)).unwrap();
            let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
            if random.below(4) == 0 && !open.is_empty() {
                let gone = usize::try_from(random.below(open.len() as u64)).unwrap();
                let (at, id, side) = open.swap_remove(gone);
                world.cancel(at, id, side);
            } else {
                let price = 95 + i64::try_from(random.below(10)).unwrap() + if side == Side::Sell { 3 } else { 0 };
                world.order(at, step + 1, side, price, 1 + random.below(20));
                open.push((at, step + 1, side));
            }
            // Several entries may come before a publication, and whole books as well as changes.
            for at in 0..2 {
                match random.below(8) {
                    0 => {}
                    1 => world.publish(at, true),
                    _ => world.publish(at, false),
                }
            }
            if random.below(40) == 0 {
                world.lose_feeds();
            }
            let is_published = random.below(3) == 0;
            if is_published {
                (0..2).for_each(|at| world.publish(at, false));
            }
            for (client, depth, copies) in &mut clients {
                for message in world.hear(client) {
                    let of = message.0.iter().find(|(tag, _)| *tag == 55).unwrap().1.clone();
                    copies[usize::from(of == symbol(1))].take(&message);
                }
                for (at, copy) in (0..2).zip(copies.iter()).filter(|_| is_published) {
                    let [bids, asks] = world.book(at, *depth);
                    assert_eq!((&copy.bids, &copy.asks), (&bids, &asks), "seed {seed}, step {step}, {at}");
                }
            }
        }
        for (_, _, copies) in &clients {
            for copy in copies {
                assert!(copy.trades.is_sorted() && copy.wholes > 0);
            }
        }
    }
}

#[test]
fn a_slow_reader_gets_whole_books_and_no_more_than_it_reads() {
    let mut world = World::new(1);
    let mut client = world.connect(1, "FIX.4.4");
    world.hear(&mut client);
    world.send(&mut client, "V", &format!("262=r|263=1|264=0|265=1|267=3|269=0|269=1|269=2|146=1|55={}|", symbol(0)));
    let mut most = 0;
    for step in 0..4_000_u64 {
        world.order(0, step + 1, Side::Buy, 50 + i64::try_from(step % 40).unwrap(), 1);
        world.publish(0, false);
        most = most.max(world.server.output(1).len());
    }
    world.order(0, 10_000, Side::Sell, 80, 30);
    world.publish(0, false);
    assert!(most > 200_000 && most < 300_000, "{most} bytes wait");
    let mut copy = Copy::default();
    let messages = world.hear(&mut client);
    messages.iter().filter(|message| message.get(35) != Some("0")).for_each(|message| copy.take(message));
    assert_eq!(copy.wholes, 2, "the first one, and one for all that was left out");
    let [bids, asks] = world.book(0, usize::MAX);
    assert_eq!((copy.bids, copy.asks), (bids, asks));
    // From here on changes again.
    world.order(0, 10_001, Side::Buy, 40, 1);
    world.publish(0, false);
    assert_eq!(world.hear(&mut client)[0].get(35), Some("X"));
    // One that reads less than comes has some time to catch up; then it is logged out.
    for step in 0..4_000_u64 {
        world.order(0, 20_000 + step, Side::Buy, 10 + i64::try_from(step % 30).unwrap(), 1);
        world.publish(0, false);
    }
    for _ in 0..3 {
        assert!(!is_over_after(&mut world, 9));
        world.server.consume(1, 1);
    }
    assert!(is_over_after(&mut world, 9));
    let waiting = String::from_utf8_lossy(world.server.output(1));
    let last = waiting.rfind("\u{1}35=").map(|at| &waiting[at..]).unwrap();
    assert!(last.starts_with("\u{1}35=5\u{1}") && last.contains("read faster"), "{last}");
}

/// Whether the first connection is over when so many seconds have passed.
fn is_over_after(world: &mut World, seconds: u64) -> bool {
    world.now_ns += seconds * 1_000_000_000;
    world.server.at(world.now_ns - crate::world::DAY_NS, world.now_ns);
    world.server.on_timer();
    world.server.is_over(1)
}

#[test]
fn who_takes_nothing_at_all_is_logged_out_sooner() {
    let mut world = World::new(1);
    let mut client = world.connect(1, "FIX.4.4");
    world.hear(&mut client);
    world.send(&mut client, "V", &format!("262=r|263=1|264=0|265=1|267=2|269=0|269=1|146=1|55={}|", symbol(0)));
    world.hear(&mut client);
    assert!(!is_over_after(&mut world, 20), "nothing waits for it");
    for step in 0..4_000_u64 {
        world.order(0, step + 1, Side::Buy, 50 + i64::try_from(step % 40).unwrap(), 1);
        world.publish(0, false);
    }
    assert!(!is_over_after(&mut world, 9));
    assert!(is_over_after(&mut world, 2));
}

#[test]
fn much_that_is_asked_for_at_once_comes_as_it_is_read() {
    const MARKETS: u32 = 8;
    const REQUESTS: usize = 150;
    let mut world = World::new(MARKETS);
    for at in 0..MARKETS {
        for price in 10..=190_i64 {
            let side = if price < 100 { Side::Buy } else { Side::Sell };
            world.order(at, u64::try_from(price).unwrap(), side, price, 1);
        }
    }
    let mut client = world.connect(1, "FIX.4.4");
    world.hear(&mut client);
    for request in 0..REQUESTS {
        world.send(&mut client, "V", &format!("262=r{request}|263=0|264=0|267=2|269=0|269=1|146=1|55=*|"));
    }
    let waiting = world.server.output(1).len();
    assert!(waiting > 256 << 10 && waiting < 400 << 10, "{waiting} bytes wait");
    let heard = world.hear(&mut client);
    assert_eq!(heard.len(), REQUESTS * MARKETS as usize);
    assert!(heard.iter().all(|message| message.get(35) == Some("W") && message.entries().len() == 181));
    assert!(!world.server.is_over(1));
    world.feed_new();
    assert_eq!((world.needed(), world.server.counts()), (0, (1, 0)), "what asked once leaves nothing");
}
