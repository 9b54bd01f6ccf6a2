//! Fig-4.4: where the time of a random order goes, by samples of the call stack.
//!
//! An iteration is a new book and 1,000 orders, on either side at prices of one range, so that most of them trade. A timer of the
//! system interrupts the process after every few milliseconds of processor time and the call stack is written down; functions that
//! the compiler inlined are told apart by the debug information. Drawing the orders and building the books is not counted.
//!
//! The baseline adds an order and checks for trades after that, so its two parts are timed by the clock too, over the same orders:
//! the two measurements should agree.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pprof::{Frames, ProfilerGuardBuilder};
use walras_order_book::{Art, Ladder, OrderBook};
use walras_types::Side;

use crate::baseline::Baseline;
use crate::books::{Book, Contender, LimitOrder, Trade};
use crate::draw::Draw;
use crate::measure::Stopwatch;

/// What is compared.
pub const CONTENDERS: [Contender; 3] = [Contender::Baseline, Contender::Ladder, Contender::Art];

const EXPERIMENT: u64 = 44;
const PRICES: (u64, u64) = (951, 1_050);
const SIZES: (u64, u64) = (1, 20);
/// Orders of an iteration, as published.
pub const ORDERS: u64 = 1_000;
/// Iterations that are drawn; they are repeated for as long as is sampled.
const DRAWN: u64 = 64;
/// Most samples a second that are asked for; the system's timer may be slower.
const SAMPLES_PER_S: i32 = 997;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How long each book is sampled.
    pub sampled: Duration,
}

impl Setup {
    /// Some thousand samples of each book.
    pub const FULL: Self = Self { sampled: Duration::from_secs(20) };
    /// For tests.
    pub const SMALL: Self = Self { sampled: Duration::from_millis(400) };
}

/// A function, how many samples were taken in it or in what it called, and in what it called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Samples.
    pub samples: u64,
    /// By name.
    pub calls: BTreeMap<String, Function>,
}

impl Function {
    /// Counts a stack, outermost function first.
    pub fn add(&mut self, stack: &[String], samples: u64) {
        self.samples += samples;
        if let Some((first, rest)) = stack.split_first() {
            self.calls.entry(first.clone()).or_default().add(rest, samples);
        }
    }

    /// Samples in functions whose name ends so, wherever they are called.
    #[must_use]
    pub fn samples_in(&self, name: &str) -> u64 {
        self.calls.iter().map(|(one, called)| if one.ends_with(name) { called.samples } else { called.samples_in(name) }).sum()
    }

    /// The functions in which most samples were taken themselves, not in what they called.
    #[must_use]
    pub fn busiest(&self) -> Vec<(String, u64)> {
        let mut own = BTreeMap::new();
        self.collect_own(&mut own);
        let mut own: Vec<(String, u64)> = own.into_iter().filter(|(_, samples)| *samples > 0).collect();
        own.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        own
    }

    fn collect_own(&self, own: &mut BTreeMap<String, u64>) {
        for (name, called) in &self.calls {
            let deeper: u64 = called.calls.values().map(|it| it.samples).sum();
            *own.entry(name.clone()).or_default() += called.samples - deeper;
            called.collect_own(own);
        }
    }
}

/// A book's profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The book.
    pub contender: Contender,
    /// All that an order did.
    pub order: Function,
    /// Mean time of an order by the clock.
    pub ns_per_order: f64,
    /// Of the baseline: the share of adding the order in all its time, by the clock.
    pub adding_share: Option<f64>,
    /// Trades an order, on average.
    pub trades_per_order: f64,
}

/// Runs it, and fails when two books trade otherwise or nothing was sampled.
pub fn run(setup: &Setup, seed: u64, stopwatch: &Stopwatch) -> anyhow::Result<Vec<Profile>> {
    let iterations: Vec<Vec<LimitOrder>> =
        (0..DRAWN).map(|iteration| orders(&mut Draw::new(seed, EXPERIMENT, iteration))).collect();
    let adding_share = adding_share(&iterations, stopwatch);
    let profiles = vec![
        Profile { adding_share: Some(adding_share), ..sample::<Baseline>(Contender::Baseline, setup, &iterations)? },
        sample::<OrderBook<Ladder>>(Contender::Ladder, setup, &iterations)?,
        sample::<OrderBook<Art>>(Contender::Art, setup, &iterations)?,
    ];
    for profile in &profiles[1..] {
        let (one, other) = (profiles[0].trades_per_order, profile.trades_per_order);
        ensure!((one - other).abs() < f64::EPSILON, "the books trade otherwise: {one} and {other} trades an order");
    }
    Ok(profiles)
}

fn orders(draw: &mut Draw) -> Vec<LimitOrder> {
    let order = |id| {
        let side = if draw.bits().is_multiple_of(2) { Side::Buy } else { Side::Sell };
        draw.order(id, side, PRICES, SIZES)
    };
    (1..=ORDERS).map(order).collect()
}

/// The root of what is counted.
#[inline(never)]
fn one_order<B: Book>(book: &mut B, order: &LimitOrder, trades: &mut Vec<Trade>) {
    book.submit(order, trades);
    // Something after the call: a jump in its place would leave no frame of this function.
    black_box(&trades);
}

fn sample<B: Book>(contender: Contender, setup: &Setup, iterations: &[Vec<LimitOrder>]) -> anyhow::Result<Profile> {
    let mut trades = Vec::with_capacity(2 * ORDERS as usize);
    // Once without: caches and predictors, and the number of trades.
    let mut traded = 0;
    for orders in iterations {
        let mut book = B::with_room(orders.len());
        orders.iter().for_each(|order| one_order(&mut book, order, &mut trades));
        traded += trades.len();
        trades.clear();
    }
    let guard = ProfilerGuardBuilder::default().frequency(SAMPLES_PER_S).build().context("starting the timer of the samples")?;
    let (begun, mut spent, mut count) = (Instant::now(), Duration::ZERO, 0_u64);
    while begun.elapsed() < setup.sampled {
        for orders in iterations {
            let mut book = B::with_room(orders.len());
            let started = Instant::now();
            for order in orders {
                one_order(black_box(&mut book), order, black_box(&mut trades));
            }
            spent += started.elapsed();
            count += orders.len() as u64;
            trades.clear();
        }
    }
    let report = guard.report().build().context("reading the samples")?;
    let mut order = Function::default();
    for (frames, samples) in &report.data {
        if let Some(stack) = stack_of(frames) {
            order.add(&stack, u64::try_from(*samples).unwrap_or(0));
        }
    }
    ensure!(order.samples > 0, "no sample was taken in an order: is this a build with debug information?");
    Ok(Profile {
        contender,
        order,
        ns_per_order: spent.as_nanos() as f64 / count as f64,
        adding_share: None,
        trades_per_order: traded as f64 / (iterations.len() as f64 * ORDERS as f64),
    })
}

/// The functions of a sample below [`one_order`], outermost first; `None` if it is not below it.
fn stack_of(frames: &Frames) -> Option<Vec<String>> {
    // Innermost first, as are the functions that were inlined into one frame.
    let names: Vec<String> = frames.frames.iter().flatten().map(|symbol| short(&symbol.name())).collect();
    let root = names.iter().position(|name| name.ends_with("one_order"))?;
    Some(names[..root].iter().rev().cloned().collect())
}

/// The last two parts of a function's path, without type parameters.
#[must_use]
pub fn short(name: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for char in name.chars() {
        match char {
            '<' if plain.is_empty() || plain.ends_with("::") => {}
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '>' => {}
            _ if depth == 0 => plain.push(char),
            _ => {}
        }
    }
    let plain = plain.rsplit_once("::").filter(|(_, last)| is_hash(last)).map_or(&*plain, |(path, _)| path);
    // `impl Trait for Type` and `Type as Trait`: the type is what is looked for.
    let plain = plain.split(" for ").last().unwrap_or(plain);
    let plain = plain.trim_start_matches("impl ");
    let (of_type, after) = plain.split_once(" as ").map_or((plain, ""), |(of_type, rest)| (of_type, rest));
    let function = after.rsplit("::").next().unwrap_or("");
    let mut parts: Vec<&str> = of_type.split("::").filter(|part| !part.is_empty()).collect();
    if !function.is_empty() {
        parts.push(function);
    }
    let from = parts.len().saturating_sub(2);
    parts[from..].join("::")
}

fn is_hash(part: &str) -> bool {
    part.len() == 17 && part.starts_with('h') && part[1..].chars().all(|char| char.is_ascii_hexdigit())
}

/// The baseline's share of adding an order, by the clock.
fn adding_share(iterations: &[Vec<LimitOrder>], stopwatch: &Stopwatch) -> f64 {
    let (mut adding_ns, mut checking_ns) = (0.0, 0.0);
    let mut trades = Vec::with_capacity(2 * ORDERS as usize);
    for orders in iterations {
        let mut book = Baseline::with_room(orders.len());
        for order in orders {
            adding_ns += stopwatch.time_on(&mut book, &mut trades, |book, _| book.apply(order));
            checking_ns += stopwatch.time_on(&mut book, &mut trades, Baseline::check_for_trades);
        }
        trades.clear();
    }
    adding_ns / (adding_ns + checking_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_without_parameters() {
        for (name, expected) in [
            ("walras_order_book::matching::<impl walras_order_book::book::OrderBook<I>>::submit", "OrderBook::submit"),
            ("<walras_order_book::index::Ladder as walras_order_book::index::PriceIndex>::best::h0123456789abcdef", "Ladder::best"),
            ("alloc::collections::binary_heap::BinaryHeap<T,A>::push", "BinaryHeap::push"),
            ("core::ptr::write", "ptr::write"),
            ("main", "main"),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn samples_are_counted_where_they_were_taken_and_above() {
        let stack = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut root = Function::default();
        root.add(&stack(&["submit", "apply", "push"]), 3);
        root.add(&stack(&["submit", "apply"]), 1);
        root.add(&stack(&["submit", "check", "pop"]), 2);
        assert_eq!((root.samples, root.samples_in("apply"), root.samples_in("pop")), (6, 4, 2));
        assert_eq!(root.busiest(), [("push".to_owned(), 3), ("pop".to_owned(), 2), ("apply".to_owned(), 1)]);
    }
}
