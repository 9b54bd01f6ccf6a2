//! Books by order: after every message a client's copy has the engine's orders in the order of their queues.

use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_random::Random;
use walras_types::{Display, Side, SizeLots, TradingPhase};

use crate::world::{Queue, Received, World, number};

/// A book by order, as a client keeps it that knows orders by OrderID(37).
#[derive(Debug, Default)]
struct Copy {
    /// Bids, asks.
    sides: [Queue; 2],
    update: u64,
    wholes: u64,
}

impl Copy {
    fn take(&mut self, message: &Received) {
        let is_whole = message.get(35) == Some("W");
        if is_whole {
            self.sides = Default::default();
            self.wholes += 1;
        } else {
            assert_eq!(message.get(5084), Some(self.update.to_string().as_str()), "a gap before {message:?}");
        }
        self.update = message.get(5083).unwrap().parse().unwrap();
        for entry in message.entries() {
            let is_bid = entry[&269] == "0";
            let queue = &mut self.sides[usize::from(!is_bid)];
            let (id, price) = (entry[&37].clone(), entry[&270].clone());
            let at = queue.iter().position(|(known, _, _)| *known == id);
            let action = if is_whole { "0" } else { entry[&279].as_str() };
            assert_eq!(entry.get(&278), (!is_whole).then_some(&id), "{message:?}");
            match (action, at) {
                ("0", None) => {
                    let is_ahead =
                        |other: &str| if is_bid { number(&price) > number(other) } else { number(&price) < number(other) };
                    let behind = queue.iter().position(|(_, other, _)| is_ahead(other)).unwrap_or(queue.len());
                    queue.insert(behind, (id, price, entry[&271].clone()));
                }
                ("1", Some(at)) => queue[at].2 = entry[&271].clone(),
                ("2", Some(at)) => drop(queue.remove(at)),
                other => panic!("{other:?} in {message:?}"),
            }
        }
        for entry in message.entries().iter().filter(|entry| is_whole || entry[&279] != "2") {
            let place: usize = entry[&290].parse().unwrap();
            assert_eq!(self.sides[usize::from(entry[&269] == "1")][place - 1].0, entry[&37], "its place is that after the update");
        }
    }
}

#[test]
fn a_copy_has_the_engines_queues_after_every_message() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut world = World::new(1);
        let wishes = [("FIX.4.4", 0, 1), ("FIX.4.4", 1, 1), ("FIX.5.0SP2", 4, 1), ("FIX.4.2", 3, 0)];
        let mut clients = Vec::new();
        for (id, (version, depth, form)) in (1..).zip(wishes) {
            let mut client = world.connect(id, version);
            world.hear(&mut client);
            let asked = format!("262=r{id}|263=1|264={depth}|265={form}|266=N|267=2|269=0|269=1|146=1|55=BTC0/USD|5083=Y|");
            world.send(&mut client, "V", &asked);
            clients.push((client, if depth == 0 { usize::MAX } else { depth }, Copy::default()));
        }
        let mut open: Vec<(u64, Side)> = Vec::new();
        for step in 0..200_u64 {
            let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
            let price = 97 + i64::try_from(random.below(5)).unwrap() + if side == Side::Sell { 2 } else { 0 };
            let chosen = (!open.is_empty()).then(|| usize::try_from(random.below(open.len() as u64)).unwrap());
            match (random.below(6), chosen) {
                (0, Some(chosen)) => {
                    let (id, side) = open.swap_remove(chosen);
                    world.cancel(0, id, side);
                }
                (1, Some(chosen)) => world.amend(0, open[chosen].0, open[chosen].1, (None, Some(1 + random.below(20)))),
                (2, Some(chosen)) => world.amend(0, open[chosen].0, open[chosen].1, (Some(price), None)),
                (kind, _) => {
                    // Icebergs stand behind the others again with each slice, and what is hidden is in no message.
                    let display = match kind {
                        3 => Display::Iceberg { peak: SizeLots::new(1 + random.below(4)) },
                        4 => Display::Hidden,
                        _ => Display::Full,
                    };
                    world.enter(0, step + 1, side, (price, 1 + random.below(20), display));
                    open.push((step + 1, side));
                }
            }
            if random.below(40) == 0 {
                world.lose_feeds();
            }
            let is_published = random.below(2) == 0;
            if is_published {
                world.publish(0, random.below(8) == 0);
            }
            for (client, depth, copy) in &mut clients {
                world.hear(client).iter().for_each(|message| copy.take(message));
                if is_published {
                    assert_eq!(copy.sides, world.queues(0, *depth), "seed {seed}, step {step}");
                }
            }
        }
        assert!(clients.iter().all(|(_, _, copy)| copy.wholes > 0 && copy.update > 0));
    }
}

#[test]
fn orders_trades_and_an_auctions_price_come_by_one_request() {
    let mut world = World::new(1);
    let mut client = world.connect(1, "FIX.5.0SP2");
    world.hear(&mut client);
    let kinds = "267=4|269=1|269=2|269=A|269=Q|";
    world.send(&mut client, "V", &format!("262=a|263=1|264=0|265=1|266=N|{kinds}146=1|55=BTC0/USD|5083=Y|"));
    let heard = world.hear(&mut client);
    assert_eq!((heard.len(), heard[0].get(35), heard[0].get(1021)), (1, Some("W"), Some("3")));
    // Bids are not asked for.
    world.order(0, 1, Side::Buy, 90, 2);
    world.order(0, 2, Side::Sell, 100, 5);
    let sell = world.engine.last_applied().0.to_string();
    world.publish(0, false);
    let heard = world.hear(&mut client);
    assert_eq!((heard.len(), heard[0].get(1021)), (1, Some("3")));
    let entry = &heard[0].entries()[0];
    let found = [279, 269, 278, 37, 270, 271, 290].map(|tag| entry[&tag].as_str());
    assert_eq!(found, ["0", "1", sell.as_str(), sell.as_str(), "50.0", "0.005", "1"]);
    world.order(0, 3, Side::Buy, 100, 2);
    world.publish(0, false);
    let entries: Vec<_> = world.hear(&mut client).iter().flat_map(Received::entries).collect();
    let of = |kind: &str| entries.iter().find(|entry| entry[&269] == kind).unwrap_or_else(|| panic!("no {kind} in {entries:?}"));
    assert_eq!((of("1")[&279].as_str(), of("1")[&37].as_str(), of("1")[&271].as_str()), ("1", sell.as_str(), "0.003"));
    assert_eq!((of("2")[&271].as_str(), of("2").contains_key(&37)), ("0.002", false), "whose order traded, the venue does not say");
    world.phase(0, TradingPhase::ClosingAuction);
    world.order(0, 4, Side::Buy, 110, 7);
    world.publish(0, false);
    let entries: Vec<_> = world.hear(&mut client).iter().flat_map(Received::entries).collect();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry[&269].as_str()).collect();
    assert_eq!(kinds, ["A", "Q"], "no bid, and no level: {entries:?}");
}

#[test]
fn a_reader_of_levels_and_one_of_orders_have_what_they_asked_for() {
    let mut world = World::new(1);
    let mut clients = [1, 2].map(|id| world.connect(id, "FIX.4.4"));
    for (client, aggregated) in clients.iter_mut().zip(["Y", "N"]) {
        world.hear(client);
        world.send(client, "V", &format!("262=a|263=1|264=0|265=1|266={aggregated}|267=2|269=0|269=1|146=1|55=BTC0/USD|"));
        world.hear(client);
    }
    for id in 1..=3 {
        world.order(0, id, Side::Buy, 100, 5);
    }
    world.publish(0, false);
    let [levels, orders] =
        clients.each_mut().map(|client| world.hear(client).iter().flat_map(Received::entries).collect::<Vec<_>>());
    assert_eq!((levels.len(), levels[0][&346].as_str(), levels[0].contains_key(&37)), (1, "3", false));
    assert_eq!((orders.len(), orders.iter().any(|order| order.contains_key(&346))), (3, false));
    // As many orders as a look has, and no more.
    for id in 4..=BOOK_ORDERS_MAX as u64 + 9 {
        world.order(0, id, Side::Buy, 99, 1);
    }
    world.publish(0, false);
    let added = world.hear(&mut clients[1]).iter().map(|message| message.entries().len()).sum::<usize>();
    assert_eq!(added, BOOK_ORDERS_MAX - 3);
}
