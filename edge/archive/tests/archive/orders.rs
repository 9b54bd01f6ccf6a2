//! What happened to orders: as the feed says it, as a reader of DBN rebuilds the book from it, and where it is not known.

use std::collections::BTreeMap;

use dbn::decode::DecodeRecord;
use dbn::decode::dbn::Decoder;
use walras_archive::{Day, Files, History, Keeper, Settings, verify_day};
use walras_engine::Engine;
use walras_feed::channel::{ChannelId, View};
use walras_feed::message::Message;
use walras_feed::publisher::{Publisher, Views};
use walras_testkit::plain::{bracket, opening, with_exits_in_between};
use walras_types::{InstrumentId, LogIndex, Side, TimeNs};
use walras_wire::{Command, Event, VenueCommand};

use super::formats::{Row, closed_until, files, rows};
use super::plain::plain;
use super::world::{BEGIN_NS, Entry, Script, Venue, archive, settings};

/// What the feed's view by order says of each instrument up to a time.
fn said_by_the_feed(entries: &[Entry], end: TimeNs) -> BTreeMap<u32, Vec<String>> {
    let (mut engine, mut publisher) = (Engine::new(), Publisher::new(Views::of(&[View::Orders])));
    let mut said: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (log_index, time, command) in entries.iter().filter(|(_, time, _)| *time < end) {
        let mut events = Vec::new();
        engine.apply(*log_index, *time, command, &mut events);
        publisher.begin(*log_index, *time).unwrap();
        events.iter().for_each(|event| publisher.on_event(event).unwrap());
        publisher.end();
        publisher.take(|run| {
            for bytes in run.messages() {
                let (head, message) = Message::decode(bytes).unwrap();
                let at = format!("{} {}", head.log_index, head.time_ns);
                let line = match message {
                    Message::Traded(m) => {
                        let side = m.taker_side.map_or("none", side_name);
                        format!("traded {} {} {} {side}", m.trade_id, m.price.get(), m.size.get())
                    }
                    Message::OrderAdded(m) => {
                        format!("added {} {} {} {}", m.order_id, side_name(m.side), m.price.get(), m.shown.get())
                    }
                    Message::OrderExecuted(m) => format!("executed {} {}", m.order_id, m.shown.get()),
                    Message::OrderReduced(m) => format!("resized {} {}", m.order_id, m.shown.get()),
                    Message::OrderCancelled(m) => format!("cancelled {} 0", m.order_id),
                    Message::OrderReplaced(m) => format!("replaced {} {} {}", m.order_id, m.price.get(), m.shown.get()),
                    // Of the instrument, not of its orders.
                    _ => continue,
                };
                said.entry(instrument_of(run.channel)).or_default().push(format!("{at} {line}"));
            }
        });
    }
    said
}

fn instrument_of(channel: ChannelId) -> u32 {
    channel.get() & 0x00ff_ffff
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

/// A row in the words of the feed; nothing of those with which a day begins.
fn as_said(row: &Row) -> Option<String> {
    let text = |name: &str| row[name].as_str();
    let order = format!("{} {}", text("action"), text("order_id"));
    let line = match text("action") {
        "cleared" | "standing" => return None,
        "traded" => format!("traded {} {} {} {}", text("trade_id"), text("price_ticks"), text("size_lots"), text("side")),
        "added" => format!("{order} {} {} {}", text("side"), text("price_ticks"), text("shown_lots")),
        "replaced" => format!("{order} {} {}", text("price_ticks"), text("shown_lots")),
        "executed" | "resized" | "cancelled" => format!("{order} {}", text("shown_lots")),
        other => panic!("{other}"),
    };
    Some(format!("{} {} {line}", text("log_index"), text("time_ns")))
}

#[test]
fn orders_are_as_the_feed_says_them() {
    for seed in [21, 22, 23] {
        let script = Script::of_seed(seed, 4_000);
        let folder = tempfile::tempdir().unwrap();
        archive(&settings(folder.path()), &script);
        let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        // By day, and of each day by instrument: `DAY/SYMBOL.ID.orders.parquet`.
        for path in files(folder.path(), ".orders.parquet") {
            let name = path.file_name().unwrap().to_str().unwrap();
            let instrument = name.rsplit('.').nth(2).unwrap().parse().unwrap();
            found.entry(instrument).or_default().extend(rows(&path).iter().filter_map(as_said));
        }
        let expected = said_by_the_feed(&script.entries, closed_until(folder.path()));
        let count: usize = expected.values().map(Vec::len).sum();
        assert!(expected.len() > 1 && count > 300, "seed {seed}: {count}");
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (instrument, lines) in &expected {
            for (at, (found, expected)) in found[instrument].iter().zip(lines).enumerate() {
                assert_eq!(found, expected, "seed {seed}, instrument {instrument}, record {at}");
            }
            assert_eq!(found[instrument].len(), lines.len(), "seed {seed}, instrument {instrument}");
        }
    }
}

/// A book of orders by the rules of Databento's documentation: each side's orders by price, and at each price in their queue.
#[derive(Default)]
struct Read {
    queues: BTreeMap<(Side, i64), Vec<(u64, u32)>>,
}

impl Read {
    fn apply(&mut self, record: &dbn::MboMsg) {
        let side = match record.side().unwrap() {
            dbn::Side::Bid => Some(Side::Buy),
            dbn::Side::Ask => Some(Side::Sell),
            dbn::Side::None => None,
        };
        let (id, size) = (record.order_id, record.size);
        match record.action().unwrap() {
            dbn::Action::Clear => self.queues.clear(),
            dbn::Action::Add => self.queues.entry((side.unwrap(), record.price)).or_default().push((id, size)),
            dbn::Action::Cancel => {
                let queue = self.queues.get_mut(&(side.unwrap(), record.price)).expect("a cancel says the order's price");
                let at = queue.iter().position(|(order, _)| *order == id).expect("it stands there");
                queue[at].1 -= size;
                if queue[at].1 == 0 {
                    queue.remove(at);
                }
                self.queues.retain(|_, queue| !queue.is_empty());
            }
            dbn::Action::Modify => {
                let found = self.queues.iter_mut().find_map(|(level, queue)| {
                    let at = queue.iter().position(|(order, _)| *order == id)?;
                    Some((*level, queue, at))
                });
                let (level, queue, at) = found.expect("what is modified stands");
                // Another price or a greater size costs its place.
                if level == (side.unwrap(), record.price) && size <= queue[at].1 {
                    queue[at].1 = size;
                } else {
                    queue.remove(at);
                    self.queues.entry((side.unwrap(), record.price)).or_default().push((id, size));
                }
                self.queues.retain(|_, queue| !queue.is_empty());
            }
            dbn::Action::Trade | dbn::Action::Fill => {}
            dbn::Action::None => panic!("nothing happened"),
        }
    }

    /// Of a side: order, price and what it shows, from the best price on and in their queues.
    fn side(&self, side: Side) -> Vec<(u64, i64, u64)> {
        let mut levels: Vec<_> = self.queues.iter().filter(|((of, _), _)| *of == side).collect();
        if side == Side::Buy {
            levels.reverse();
        }
        let order = |price: i64| move |&(id, size): &(u64, u32)| (id, price, u64::from(size));
        levels.iter().flat_map(|((_, price), queue)| queue.iter().map(order(*price))).collect()
    }
}

/// All that an engine shows of a side, as a reader has it.
fn side_of(engine: &Engine, instrument: u32, side: Side, unit: i64) -> Vec<(u64, i64, u64)> {
    let mut orders = Vec::new();
    engine.displayed_orders(InstrumentId(instrument), side, usize::MAX, &mut orders);
    orders.iter().map(|order| (order.order_id.0, order.price.get() * unit, order.shown.get())).collect()
}

#[test]
fn a_reader_of_a_day_of_orders_has_the_book_at_its_end() {
    // An instrument whose tick is no decimal has no such files.
    let compared: usize = (24..28).map(|seed| compare_days(&Script::of_seed(seed, 4_000))).sum();
    assert!(compared > 20, "{compared}");
}

/// How many orders stood where days of a script ended.
fn compare_days(script: &Script) -> usize {
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), script);
    let (mut engine, mut next, mut compared) = (Engine::new(), script.entries.iter().peekable(), 0);
    for view in History::new(folder.path()).days().unwrap() {
        while let Some((log_index, time, command)) = next.next_if(|(_, time, _)| *time < view.day.end()) {
            engine.apply(*log_index, *time, command, &mut Vec::new());
        }
        if view.manifest.is_none() {
            continue;
        }
        let dir = folder.path().join(view.day.to_string());
        verify_day(&dir).unwrap();
        for path in files(folder.path(), ".mbo.dbn").iter().filter(|path| path.starts_with(&dir)) {
            let instrument = path.file_name().unwrap().to_str().unwrap().rsplit('.').nth(2).unwrap().parse().unwrap();
            let mut definitions = Decoder::from_file(path.with_extension("").with_extension("definition.dbn")).unwrap();
            let unit = definitions.decode_record::<dbn::InstrumentDefMsg>().unwrap().unwrap().min_price_increment;
            let steps = rows(&path.with_extension("").with_extension("orders.parquet"));
            let mut records = Decoder::from_file(path).unwrap();
            let (mut book, mut steps, mut is_second, mut numbers) = (Read::default(), steps.iter().peekable(), false, 1..);
            while let Some(record) = records.decode_record::<dbn::MboMsg>().unwrap() {
                assert_eq!(Some(record.sequence), numbers.next(), "each record has a number of its own");
                // A step is one record or two.
                let step = steps.peek().expect("a record is of a step");
                let comes_again = match (step["action"].as_str(), record.action().unwrap()) {
                    ("executed", _) | ("replaced", dbn::Action::Cancel) => !is_second,
                    _ => false,
                };
                let entry = step["log_index"].clone();
                if !comes_again {
                    steps.next();
                }
                is_second = comes_again;
                let goes_on = steps.peek().is_some_and(|next| next["log_index"] == entry);
                assert_eq!(record.flags.is_last(), !goes_on, "the last record of an entry says so");
                assert_eq!(Day::of(TimeNs(record.hd.ts_event)), view.day);
                book.apply(record);
            }
            assert_eq!(steps.next(), None);
            for side in Side::BOTH {
                let expected = side_of(&engine, instrument, side, unit);
                assert_eq!(book.side(side), expected, "{}: {side:?}", path.display());
                compared += expected.len();
            }
        }
    }
    compared
}

/// The market of known numbers, record by record.
#[test]
fn a_small_day_is_as_written_down() {
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &plain());
    let mut records = Decoder::from_file(files(folder.path(), "BTC-USD.0.mbo.dbn").remove(0)).unwrap();
    let (mut found, mut names) = (Vec::new(), Vec::new());
    while let Some(record) = records.decode_record::<dbn::MboMsg>().unwrap() {
        if record.order_id > 0 && !names.contains(&record.order_id) {
            names.push(record.order_id);
        }
        // Orders by the sequence in which they are named.
        let name = names.iter().position(|name| *name == record.order_id);
        let (action, side) = (record.action as u8 as char, record.side as u8 as char);
        let ticks = if record.price == dbn::UNDEF_PRICE { 0 } else { record.price / 500_000_000 };
        let flags = record.flags.raw();
        let line =
            format!("{action}{side} {} {} at {ticks} {flags}", name.map_or("-".to_owned(), |name| name.to_string()), record.size);
        found.push(line);
    }
    let expected = [
        "RN - 0 at 0 160",
        "AA 0 5 at 60002 128",
        "AA 1 7 at 60003 128",
        "AB 2 4 at 59999 128",
        // Two of the five are bought: the order keeps its place.
        "TB - 2 at 60002 0",
        "FA 0 2 at 60002 0",
        "MA 0 3 at 60002 128",
        "TA - 1 at 59999 0",
        "FB 2 1 at 59999 0",
        "MB 2 3 at 59999 128",
        // Six are bought at two prices.
        "TB - 3 at 60002 0",
        "FA 0 3 at 60002 0",
        "CA 0 3 at 60002 0",
        "TB - 3 at 60003 0",
        "FA 1 3 at 60003 0",
        "MA 1 4 at 60003 128",
    ];
    assert_eq!(found, expected);
}

fn notes_of(folder: &std::path::Path) -> Vec<bool> {
    let days = History::new(folder).days().unwrap();
    let manifests = days.into_iter().filter_map(|day| day.manifest);
    manifests.map(|manifest| manifest.notes.iter().any(|note| note.starts_with("orders: not all"))).collect()
}

/// What is missing may have changed any book: the orders are known again once they are listed, at a start or where the log is read again.
#[test]
fn missing_entries_cost_the_orders_of_their_day_alone() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let cut = 400;
    let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
    let mut venue = Venue::new(&settings, LogIndex(0), Engine::new());
    for (at, some) in script.entries[..cut].chunks(100).enumerate() {
        some.iter().for_each(|entry| venue.apply(entry));
        venue.recorder.flush();
        // Not the second hundred.
        venue.batches.try_iter().filter(|_| at != 1).for_each(|batch| keeper.take(batch));
        keeper.commit().unwrap();
        while keeper.close_one().unwrap().is_some() {}
    }
    assert_eq!(keeper.missing(), 100);
    drop(keeper);
    // Another start: the state is known, and the archive has its entries.
    let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
    assert_eq!(keeper.durable(), LogIndex(cut as u64));
    let mut venue = Venue::new(&settings, keeper.durable(), venue.engine);
    script.entries[cut..].iter().for_each(|entry| venue.apply(entry));
    venue.hand_over(&mut keeper);
    keeper.commit().unwrap();
    while keeper.close_one().unwrap().is_some() {}
    let noted = notes_of(folder.path());
    let of_gap = noted.iter().filter(|is_noted| **is_noted).count();
    assert!(of_gap >= 1 && !noted[noted.len() - 1], "{noted:?}");
    let whole = tempfile::tempdir().unwrap();
    archive(&Settings { folder: whole.path().to_path_buf(), ..settings }, &script);
    let [found, expected] = [folder.path(), whole.path()].map(last_orders);
    assert!(found == expected, "the orders of a day do not depend on those of the days before");
}

/// A replica that catches up by another's state knows all orders from there on, also where it sends its archive what it has before the next
/// entry comes.
#[test]
fn orders_of_a_state_that_replaced_another_are_known() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
    let mut venue = Venue::new(&settings, LogIndex(0), Engine::new());
    script.entries[..150].iter().for_each(|entry| venue.apply(entry));
    for (log_index, time, command) in &script.entries[150..250] {
        venue.engine.apply(*log_index, *time, command, &mut Vec::new());
    }
    venue.recorder.start_over(&venue.engine);
    venue.hand_over(&mut keeper);
    assert_eq!(keeper.seen(), LogIndex(150));
    for some in script.entries[250..].chunks(250) {
        some.iter().for_each(|entry| venue.apply(entry));
        venue.hand_over(&mut keeper);
        keeper.commit().unwrap();
        while keeper.close_one().unwrap().is_some() {}
    }
    assert_eq!(keeper.missing(), 100);
    let whole = tempfile::tempdir().unwrap();
    archive(&Settings { folder: whole.path().to_path_buf(), ..settings }, &script);
    assert!(last_orders(folder.path()) == last_orders(whole.path()));
}

/// The journal of orders of the last closed day.
fn last_orders(folder: &std::path::Path) -> Vec<u8> {
    let day = History::new(folder).days().unwrap().iter().rev().find(|day| day.manifest.is_some()).unwrap().day;
    std::fs::read(folder.join(day.to_string()).join("orders.journal")).unwrap()
}

#[test]
fn an_archive_may_begin_to_keep_orders_later_and_end_to() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let mut engine = Engine::new();
    // The journals of orders of the present day, after each part.
    let mut present = Vec::new();
    for (orders, part) in [false, true, false, true].into_iter().zip(script.entries.chunks(750)) {
        let settings = Settings { orders, ..settings(folder.path()) };
        let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
        let mut venue = Venue::new(&settings, keeper.durable(), engine);
        part.iter().for_each(|entry| venue.apply(entry));
        venue.hand_over(&mut keeper);
        keeper.commit().unwrap();
        while keeper.close_one().unwrap().is_some() {}
        assert_eq!(keeper.missing(), 0);
        let day = History::new(folder.path()).days().unwrap().pop().unwrap().day;
        present.push(folder.path().join(format!("{day}.partial/orders.journal")).exists());
        engine = venue.engine;
    }
    assert_eq!(present, [false, true, false, true]);
    for view in History::new(folder.path()).days().unwrap() {
        if view.manifest.is_some() {
            verify_day(&folder.path().join(view.day.to_string())).unwrap();
        }
    }
}

/// The exits of an order grow as it trades, and its trades stay its own.
#[test]
fn an_exit_that_grows_makes_no_auction_of_its_entrys_trades() {
    let commands = opening().into_iter().chain(bracket());
    let mut entries: Vec<Entry> = (1..).zip(commands).map(|(at, one)| (LogIndex(at), TimeNs(BEGIN_NS + at), one)).collect();
    let tomorrow = Day::of(TimeNs(BEGIN_NS)).end();
    entries.push((LogIndex(entries.len() as u64 + 1), tomorrow, Command::Venue(VenueCommand::Tick)));
    for is_in_between in [false, true] {
        let in_order = |events: &[Event]| if is_in_between { with_exits_in_between(events) } else { events.to_vec() };
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
        let mut venue = Venue::new(&settings, keeper.durable(), Engine::new());
        for (log_index, time, command) in &entries {
            let mut events = Vec::new();
            venue.engine.apply(*log_index, *time, command, &mut events);
            venue.recorder.on_entry(*log_index, *time, &in_order(&events), &[], &venue.engine);
        }
        venue.hand_over(&mut keeper);
        keeper.commit().unwrap();
        assert!(keeper.close_one().unwrap().is_some());
        let all = |ending: &str| rows(&files(folder.path(), ending)[0]);
        let (trades, orders) = (all(".trades.parquet"), all(".orders.parquet"));
        let takers: Vec<&str> = trades.iter().map(|row| row["taker_side"].as_str()).collect();
        assert_eq!(takers, ["buy"; 2]);
        let traded = orders.iter().filter(|row| row["action"] == "traded");
        assert_eq!(traded.map(|row| row["side"].as_str()).collect::<Vec<_>>(), ["buy"; 2]);
    }
}
