//! Scenarios as transcripts: what a participant does at the margin, what the book says indented below it.
//!
//! ```text
//! a1 sell 5@101 peak=2      order 1 of owner a; also: ioc fok day till=TIME post reprice hidden min=LOTS stop=TRIGGER band=LOW..HIGH
//!                           and newest oldest both decrement allow, for self-trades; stop-market=TRIGGER becomes a market order
//!                           trail=TICKS trail-ppm=MILLIONTHS trail-market=TICKS: a stop that follows the market
//! a1 amend size=3 price=100
//! a1 cancel
//! a1 retrigger 105 5@101      of a stop that waits
//! a cancel-all buy
//! expire 10 / end-day / collect / uncross 100 / trigger / restart / book
//! ```
//!
//! A transcript is run by executing its commands and writing it again; the two are compared.

use std::collections::BTreeMap;
use std::fmt::Write;

use walras_order_book::{
    Amended, Art, Band, Becomes, Condition, Entry, Fate, Ladder, OpenOrder, OrderBook, OwnerId, Party, Placed, Refusal, Trigger,
    Triggered,
};
use walras_types::{
    Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail,
};

use crate::driver::{Book, Name};
use crate::naive::NaiveBook;
use crate::tape::{Event, Tape};

/// Runs a transcript on the naive model and on the book over each index.
#[track_caller]
pub(crate) fn check(allocation: Allocation, transcript: &str) {
    let expected = dedent(transcript);
    for (of, written) in [
        ("the model", run(NaiveBook::new(allocation), &expected)),
        ("the book over a ladder", run(OrderBook::<Ladder>::new(allocation), &expected)),
        ("the book over a radix tree", run(OrderBook::<Art>::new(allocation), &expected)),
    ] {
        assert!(written == expected, "{of} wrote:\n{written}\ninstead of:\n{expected}");
    }
}

fn dedent(text: &str) -> String {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let margin = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines().fold(String::new(), |text, line| text + line[margin..].trim_end() + "\n")
}

fn run(book: impl Book, transcript: &str) -> String {
    let mut clerk = Clerk { book, names: BTreeMap::new(), entered: 0, is_collecting: false, written: String::new() };
    for line in transcript.lines().filter(|line| !line.starts_with(' ')) {
        clerk.written.push_str(line);
        clerk.written.push('\n');
        let words: Vec<&str> = line.split_whitespace().collect();
        clerk.obey(&words);
        clerk.book.check_invariants();
    }
    clerk.written
}

/// Reads commands, and writes what comes of them.
struct Clerk<B> {
    book: B,
    names: BTreeMap<OrderId, String>,
    entered: u64,
    is_collecting: bool,
    written: String,
}

impl<B: Book> Clerk<B> {
    fn say(&mut self, what: impl std::fmt::Display) {
        writeln!(self.written, "  {what}").expect("a string takes all");
    }

    fn obey(&mut self, words: &[&str]) {
        let mut tape = Tape::default();
        match words {
            ["book"] => self.list(),
            ["collect"] => self.is_collecting = true,
            ["restart"] => self.book.restart(99),
            ["end-day"] => {
                self.book.end_day(&mut tape);
                self.write_events(&tape);
            }
            ["expire", now] => {
                self.book.expire(TimeNs(number(now)), &mut tape);
                self.write_events(&tape);
            }
            ["uncross", reference] => {
                self.is_collecting = false;
                match self.book.auction(price(reference)) {
                    None => self.say("nothing crosses"),
                    Some(uncross) => {
                        self.say(format!("{} at {}, imbalance {}", uncross.volume, uncross.price, uncross.imbalance_lots));
                        self.book.uncross(&uncross, &mut tape);
                        self.write_events(&tape);
                    }
                }
            }
            ["trigger"] => self.trigger(),
            [owner, "cancel-all", side @ ..] => {
                let side = side.first().map(|side| if *side == "buy" { Side::Buy } else { Side::Sell });
                self.book.cancel_all(owner_of(owner), side, &mut tape);
                self.write_events(&tape);
            }
            [name, "cancel"] => match self.book.cancel(name_of(name)) {
                Some(order) => self.say(format!("cancelled {}", order.open)),
                None => self.say("unknown"),
            },
            [name, "retrigger", trigger, what] => {
                let (size, limit) = what.split_once('@').expect("SIZE@PRICE");
                let order = self.book.retrigger(name_of(name), price(trigger), price(limit), SizeLots::new(number(size)));
                self.say(format!("waits with {} at {}", order.open, order.price));
            }
            [name, "amend", options @ ..] => self.amend(name, options),
            [name, side, what, options @ ..] => {
                let side = match *side {
                    "buy" => Side::Buy,
                    "sell" => Side::Sell,
                    other => panic!("neither buy nor sell: {other}"),
                };
                self.enter(name, side, what, options);
            }
            _ => panic!("not a command: {words:?}"),
        }
    }

    fn enter(&mut self, name: &str, side: Side, what: &str, options: &[&str]) {
        let (size, limit) = what.split_once('@').expect("SIZE@PRICE");
        self.entered += 1;
        let mut entry = Entry::limit(OrderId(self.entered), name_of(name), side, price(limit), SizeLots::new(number(size)));
        let mut band = Band::OPEN;
        for option in options {
            match option.split_once('=').unwrap_or((option, "")) {
                ("ioc", _) => entry.time_in_force = TimeInForce::ImmediateOrCancel,
                ("fok", _) => entry.time_in_force = TimeInForce::FillOrKill,
                ("day", _) => entry.time_in_force = TimeInForce::Day,
                ("till", time) => entry.time_in_force = TimeInForce::GoodTill(TimeNs(number(time))),
                ("post", _) => entry.post_only = PostOnly::Reject,
                ("reprice", _) => entry.post_only = PostOnly::Reprice,
                ("hidden", _) => entry.display = Display::Hidden,
                ("peak", peak) => entry.display = Display::Iceberg { peak: SizeLots::new(number(peak)) },
                ("min", lots) => entry.min_size = Some(SizeLots::new(number(lots))),
                ("stop", trigger) => entry.trigger = Some(waits(trigger, Condition::Stop, Becomes::Limit)),
                ("stop-market", trigger) => entry.trigger = Some(waits(trigger, Condition::Stop, Becomes::Market)),
                ("profit", trigger) => entry.trigger = Some(waits(trigger, Condition::TakeProfit, Becomes::Limit)),
                ("profit-market", trigger) => entry.trigger = Some(waits(trigger, Condition::TakeProfit, Becomes::Market)),
                ("trail", ticks) => entry.trigger = Some(trails(side, Trail::Ticks(number(ticks) as u32), Becomes::Limit)),
                ("trail-ppm", ppm) => entry.trigger = Some(trails(side, Trail::Ppm(number(ppm) as u32), Becomes::Limit)),
                ("trail-market", ticks) => entry.trigger = Some(trails(side, Trail::Ticks(number(ticks) as u32), Becomes::Market)),
                ("newest", _) => entry.self_trade = SelfTrade::CancelNewest,
                ("oldest", _) => entry.self_trade = SelfTrade::CancelOldest,
                ("both", _) => entry.self_trade = SelfTrade::CancelBoth,
                ("decrement", _) => entry.self_trade = SelfTrade::Decrement,
                ("allow", _) => entry.self_trade = SelfTrade::Allow,
                ("band", prices) => band = band_of(prices),
                _ => panic!("not an option: {option}"),
            }
        }
        self.names.insert(entry.order_id, name.to_owned());
        let mut tape = Tape::default();
        let placed = if self.is_collecting { self.book.collect(&entry) } else { self.book.submit(&entry, band, &mut tape) };
        self.write_events(&tape);
        self.write_placed(placed, entry.price);
    }

    fn amend(&mut self, name: &str, options: &[&str]) {
        let (mut limit, mut size, mut band) = (None, None, Band::OPEN);
        for option in options {
            match option.split_once('=').expect("price=, size= or band=") {
                ("price", text) => limit = Some(price(text)),
                ("size", text) => size = Some(SizeLots::new(number(text))),
                ("band", prices) => band = band_of(prices),
                _ => panic!("not an option: {option}"),
            }
        }
        let mut tape = Tape::default();
        let amended = match self.is_collecting {
            true => self.book.amend_collected(name_of(name), (limit, size)),
            false => self.book.amend(name_of(name), (limit, size), band, &mut tape),
        };
        self.write_events(&tape);
        match amended {
            None => self.say("unknown"),
            Some(Err(refusal)) => self.say(format!("refused: {refusal:?}")),
            Some(Ok(Amended::Kept { order })) => self.say(format!("keeps its place with {}, shows {}", order.open, order.shown)),
            Some(Ok(Amended::Requeued { placed })) => self.write_placed(Ok(placed), limit.unwrap_or(placed.price)),
        }
    }

    fn trigger(&mut self) {
        while let Some(Triggered { entry, trailed_to }) = self.book.take_triggered() {
            let name = self.names[&entry.order_id].clone();
            self.say(format!("{name} triggers{}", trailed_to.map_or(String::new(), |trigger| format!(" at {trigger}"))));
            let mut tape = Tape::default();
            let placed = self.book.submit(&entry, Band::OPEN, &mut tape);
            self.write_events(&tape);
            self.write_placed(placed, entry.price);
        }
    }

    fn write_events(&mut self, tape: &Tape) {
        for event in &tape.0 {
            let text = match event {
                Event::Traded(fill) => {
                    let (seller, buyer) = match fill.taker_side {
                        Side::Buy => (&fill.maker, &fill.taker),
                        Side::Sell => (&fill.taker, &fill.maker),
                    };
                    format!("{}@{} from {} to {}", fill.size, fill.price, self.party(seller), self.party(buyer))
                }
                Event::Uncrossed { price, size, buy, sell } => {
                    format!("{size}@{price} from {} to {}", self.party(sell), self.party(buy))
                }
                Event::Removed { order, cause } => {
                    format!("{} removed with {}: {cause:?}", self.names[&order.order_id], order.open)
                }
                Event::Reduced { order, by } => {
                    format!("{} reduced by {by} to {}, shows {}", self.names[&order.order_id], order.open, order.shown)
                }
                Event::TakerReduced { by, open } => format!("itself reduced by {by} to {open}"),
                Event::Replenished { order_id, shown } => format!("{} replenished, shows {shown}", self.names[order_id]),
            };
            self.say(text);
        }
    }

    fn party(&self, party: &Party) -> String {
        format!("{} ({} left)", self.names[&party.order_id], party.open)
    }

    fn write_placed(&mut self, placed: Result<Placed, Refusal>, asked: PriceTicks) {
        let text = match placed {
            Err(refusal) => format!("refused: {refusal:?}"),
            Ok(Placed { price, fate }) => {
                let fate = match fate {
                    Fate::Rested { open, shown } if open == shown => format!("rests with {open}"),
                    Fate::Rested { open, shown } => format!("rests with {open}, shows {shown}"),
                    Fate::Parked => "waits".to_owned(),
                    Fate::Filled => "filled".to_owned(),
                    Fate::Unfilled { open } => format!("unfilled {open}"),
                    Fate::SelfTraded { open } => format!("self-traded {open}"),
                    Fate::Banded { open } => format!("banded {open}"),
                    Fate::Paused { open } => format!("paused {open}"),
                };
                if price == asked { fate } else { format!("{fate} at {price}") }
            }
        };
        self.say(text);
    }

    /// The orders by price in queue order: hidden ones in brackets, of icebergs what they show and all they have.
    fn list(&mut self) {
        let orders = self.book.view().orders;
        for (title, side) in [("bids", Side::Buy), ("asks", Side::Sell)] {
            let mut levels: Vec<(PriceTicks, String)> = Vec::new();
            for order in orders.iter().filter(|order| order.side == side && order.trigger.is_none()) {
                let text = format!(" {}", self.brief(order));
                match levels.iter_mut().find(|(price, _)| *price == order.price) {
                    Some((_, level)) => level.push_str(&text),
                    None => levels.push((order.price, text)),
                }
            }
            let levels: Vec<String> = levels.into_iter().map(|(price, orders)| format!("{price}:{orders}")).collect();
            self.say(format!("{title} {}", if levels.is_empty() { "none".to_owned() } else { levels.join("; ") }));
        }
        let stops: Vec<String> = orders
            .iter()
            .filter_map(|order| order.trigger.map(|trigger| format!("{} at {}", self.brief(order), trigger.price)))
            .collect();
        if !stops.is_empty() {
            self.say(format!("stops {}", stops.join("; ")));
        }
    }

    fn brief(&self, order: &OpenOrder) -> String {
        let name = &self.names[&order.order_id];
        match order.display {
            Display::Iceberg { .. } if order.trigger.is_none() => format!("{name} {}/{}", order.shown, order.open),
            Display::Hidden if order.trigger.is_none() => format!("[{name} {}]", order.open),
            Display::Full | Display::Iceberg { .. } | Display::Hidden => format!("{name} {}", order.open),
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

fn price(text: &str) -> PriceTicks {
    text.parse().ok().and_then(PriceTicks::new).unwrap_or_else(|| panic!("not a price: {text}"))
}

fn waits(trigger: &str, condition: Condition, becomes: Becomes) -> Trigger {
    Trigger::fixed(price(trigger), condition, becomes)
}

/// Before the first trade, it follows a market at 100.
fn trails(side: Side, by: Trail, becomes: Becomes) -> Trigger {
    Trigger::trailing(side, by, PriceTicks::saturating(100), becomes)
}

fn band_of(text: &str) -> Band {
    let (low, high) = text.split_once("..").expect("LOW..HIGH");
    Band { low: price(low), high: price(high) }
}

fn owner_of(text: &str) -> OwnerId {
    OwnerId(u32::from(text.as_bytes()[0] - b'a'))
}

/// `b12` is order 12 of owner 1.
fn name_of(text: &str) -> Name {
    (owner_of(text), ClientOrderId(number(&text[1..])))
}
