//! Bursts of orders at relays that pass on less than comes: figures 12 and 13, and order-matching unfairness (section 8.8).
//!
//! Participants send orders at random times to two relays, whose queues are those of `protocol/relay`. A relay passes on one order
//! after another at the rate that pacing leaves it. The engine holds an order for d_s, then takes them by their stamps into a book.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use walras_random::Random;
use walras_relay::merge::Merge;
use walras_relay::order_queue::{Discipline, OrderQueue, Terms};

use crate::Extent;
use crate::network::{Network, exponential_ns};
use crate::rows::{Check, Curve, Findings, Row};
use crate::stats::{Samples, Sorted};

const RELAYS: usize = 2;
/// Orders a second of all participants outside bursts; in a burst twice as many.
const BASE: f64 = 70_000.0;
/// Between two orders that a relay passes on: 73,000/s of both, a little more than comes outside bursts.
const EGRESS_NS: u64 = 27_400;
const MS: u64 = 1_000_000;
const FROM_NS: u64 = 1_000_000_000;

/// The limit order queue as published: nothing but prices in turn.
const AS_PUBLISHED: Discipline = Discipline::LimitOrders { oldest_one_of: 0 };
/// Ours: one turn in sixteen is the oldest's. No venue queues orders so (`docs/adr/0040-inbound-half-of-the-tree.md`).
const OLDEST_NOW_AND_THEN: Discipline = Discipline::LimitOrders { oldest_one_of: 16 };

/// Whose commands keep their order at a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// Each order's own: its cancels and amendments stay behind it. Orders of one participant may overtake each other, as published.
    Order,
    /// A participant's.
    Participant,
}

/// What is offered.
#[derive(Clone, Copy, Debug)]
struct Load {
    participants: u32,
    /// Prices that cross, of so many on each side.
    crossing: u32,
    prices: u32,
    /// Without bursts, between and after them.
    quiet_ns: u64,
    burst_ns: u64,
    bursts: u64,
    seed: u64,
}

impl Load {
    const fn of(extent: Extent, participants: u32, prices: u32, seed: u64) -> Self {
        let (quiet_ns, burst_ns, bursts) = match extent {
            Extent::Full => (2_500 * MS, 1_000 * MS, 1),
            Extent::Small => (50 * MS, 100 * MS, 1),
        };
        Self { participants, crossing: 1, prices, quiet_ns, burst_ns, bursts, seed }
    }

    const fn period_ns(&self) -> u64 {
        self.quiet_ns + self.burst_ns
    }

    const fn is_burst(&self, at_ns: u64) -> bool {
        let since_ns = at_ns.saturating_sub(FROM_NS);
        since_ns < self.bursts * self.period_ns() && since_ns % self.period_ns() >= self.quiet_ns
    }

    const fn ends_ns(&self) -> u64 {
        FROM_NS + self.bursts * self.period_ns() + self.quiet_ns
    }
}

#[derive(Clone, Copy, Debug)]
struct Order {
    participant: u32,
    stamp_ns: u64,
    terms: Terms,
}

impl Order {
    /// Its side and price, as the place in a table.
    fn level(&self, load: &Load) -> (bool, usize) {
        match self.terms {
            Terms::Bid(price) => (true, price as usize),
            Terms::Ask(price) => (false, price as usize),
            Terms::Unpriced => (true, load.prices as usize * 2),
        }
    }
}

/// All orders by their stamps.
fn orders(load: &Load) -> Vec<Order> {
    let random = &mut Random::new(load.seed).fork(12);
    let (mut orders, mut at_ns) = (Vec::new(), FROM_NS);
    while at_ns < load.ends_ns() {
        let price = random.below(load.prices.into()) as i64;
        // The highest prices to buy are the lowest to sell.
        let terms = match random.below(2) {
            0 => Terms::Bid(price),
            _ => Terms::Ask(price + i64::from(load.prices - load.crossing)),
        };
        orders.push(Order { participant: random.below(load.participants.into()) as u32, stamp_ns: at_ns, terms });
        let rate = if load.is_burst(at_ns) { 2.0 * BASE } else { BASE };
        at_ns += exponential_ns(random, 1e9 / rate);
    }
    orders
}

/// When each order reaches its relay, by relay; orders by their index.
fn at_relays(orders: &[Order], network: &Network, seed: u64) -> [Vec<(u64, u32)>; RELAYS] {
    let random = &mut Random::new(seed).fork(13);
    let mut arrivals: [Vec<(u64, u32)>; RELAYS] = Default::default();
    for (index, order) in orders.iter().enumerate() {
        let relay = order.participant as usize % RELAYS;
        let link = network.link(1, relay as u32, order.participant);
        let at_ns = order.stamp_ns + network.delay_ns(link, order.stamp_ns, random);
        arrivals[relay].push((at_ns, index as u32));
    }
    arrivals.iter_mut().for_each(|arrivals| arrivals.sort_unstable());
    arrivals
}

/// What a relay passes on: when, and which order.
fn passed_on(orders: &[Order], arrivals: &[(u64, u32)], discipline: Discipline, keeping: Keeping) -> Vec<(u64, u32)> {
    let mut queue = OrderQueue::new(discipline, usize::MAX);
    let (mut passed, mut coming, mut now_ns) = (Vec::with_capacity(arrivals.len()), arrivals.iter().peekable(), 0);
    while passed.len() < arrivals.len() {
        if queue.is_empty() {
            now_ns = u64::max(now_ns, coming.peek().map_or(0, |(at_ns, _)| *at_ns));
        }
        while let Some((_, index)) = coming.next_if(|(at_ns, _)| *at_ns <= now_ns) {
            let order = &orders[*index as usize];
            let key = match keeping {
                Keeping::Order => u64::from(*index),
                Keeping::Participant => order.participant.into(),
            };
            queue.push(key, order.stamp_ns, order.terms, *index).expect("the queue has no bound here");
        }
        passed.extend(queue.pop().map(|(_, index)| (now_ns, index)));
        now_ns += EGRESS_NS;
    }
    passed
}

/// When orders of all relays reach the engine.
fn at_engine(passed: &[Vec<(u64, u32)>; RELAYS], network: &Network, seed: u64) -> Vec<(u64, u32)> {
    let random = &mut Random::new(seed).fork(14);
    let mut arrivals = Vec::new();
    for (relay, passed) in passed.iter().enumerate() {
        let link = network.link(0, 0, relay as u32);
        arrivals.extend(passed.iter().map(|(at_ns, index)| (at_ns + network.delay_ns(link, *at_ns, random), *index)));
    }
    arrivals.sort_unstable();
    arrivals
}

/// The orders as the engine takes them: each was there for d_s, the earliest stamp first.
fn sequenced(orders: &[Order], arrivals: &[(u64, u32)], hold_ns: u64) -> Vec<(u64, u32)> {
    let mut taken = Vec::with_capacity(arrivals.len());
    // Stamp, index, and when it may leave.
    let mut held: BinaryHeap<Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    let mut last_ns = 0;
    let mut take = |held: &mut BinaryHeap<Reverse<(u64, u32, u64)>>, until_ns: u64| {
        while held.peek().is_some_and(|Reverse((.., due_ns))| *due_ns <= until_ns)
            && let Some(Reverse((_, index, due_ns))) = held.pop()
        {
            last_ns = due_ns.max(last_ns);
            taken.push((last_ns, index));
        }
    };
    for (at_ns, index) in arrivals {
        take(&mut held, *at_ns);
        held.push(Reverse((orders[*index as usize].stamp_ns, *index, at_ns + hold_ns)));
    }
    take(&mut held, u64::MAX);
    taken
}

/// What the book made of the orders.
#[derive(Debug, Default)]
struct Matched {
    /// When two orders matched.
    at_ns: Vec<u64>,
    /// From an order's stamp to its match, of orders matched in bursts.
    burst_latency: Samples,
    latency: Samples,
    /// Orders that came after a later one of the same side and price had matched.
    unfair: u64,
    /// The same, counted as `CloudEx` does: orders with an earlier stamp than that of the order before.
    out_of_order: u64,
    taken: u64,
}

/// The engine's book: orders of a price wait in the order in which they came.
fn matched(orders: &[Order], taken: &[(u64, u32)], load: &Load) -> Matched {
    let levels = 2 * load.prices as usize + 1;
    let (mut bids, mut asks) = (vec![VecDeque::<u32>::new(); levels], vec![VecDeque::<u32>::new(); levels]);
    let mut latest_ns = [vec![0_u64; levels], vec![0_u64; levels]];
    let (mut matched, mut before_ns) = (Matched::default(), 0);
    for (at_ns, index) in taken {
        let order = &orders[*index as usize];
        let (is_bid, level) = order.level(load);
        matched.taken += 1;
        matched.out_of_order += u64::from(order.stamp_ns < before_ns);
        before_ns = order.stamp_ns;
        matched.unfair += u64::from(order.stamp_ns < latest_ns[usize::from(is_bid)][level]);
        let best = if is_bid {
            (0..=level).find(|level| !asks[*level].is_empty())
        } else {
            (level..levels).rev().find(|level| !bids[*level].is_empty())
        };
        let other = best.and_then(|best| if is_bid { asks[best].pop_front() } else { bids[best].pop_front() });
        let Some(other) = other else {
            if is_bid {
                bids[level].push_back(*index)
            } else {
                asks[level].push_back(*index)
            }
            continue;
        };
        matched.at_ns.push(*at_ns);
        for index in [*index, other] {
            let order = &orders[index as usize];
            let (is_bid, level) = order.level(load);
            let latest_ns = &mut latest_ns[usize::from(is_bid)][level];
            *latest_ns = order.stamp_ns.max(*latest_ns);
            matched.latency.push(at_ns - order.stamp_ns);
            if load.is_burst(*at_ns) {
                matched.burst_latency.push(at_ns - order.stamp_ns);
            }
        }
    }
    matched
}

/// One way to queue, on one load.
#[derive(Debug)]
struct Outcome {
    /// Matches a second in bursts.
    burst_rate: f64,
    /// Orders a second that come to the engine in bursts.
    burst_input: f64,
    /// Matches a second over all.
    rate: f64,
    burst_latency: Sorted,
    /// Orders that were treated unfairly, in percent of those matched.
    unfair_percent: f64,
    /// Orders out of the order of stamps, in percent of all.
    out_of_order_percent: f64,
    at_ns: Vec<u64>,
    /// When orders came to the engine.
    reached_ns: Vec<u64>,
}

struct Way {
    discipline: Discipline,
    keeping: Keeping,
    hold_ns: u64,
}

const SIMPLE: Way = Way { discipline: Discipline::ByStamp, keeping: Keeping::Order, hold_ns: HOLD_NS };
const LIMIT: Way = Way { discipline: AS_PUBLISHED, keeping: Keeping::Order, hold_ns: HOLD_NS };
/// d_s where nothing else is said.
const HOLD_NS: u64 = 200_000;

fn outcome(network: &Network, load: &Load, way: &Way) -> Outcome {
    let orders = orders(load);
    let arrivals = at_relays(&orders, network, load.seed);
    let passed = arrivals.map(|arrivals| passed_on(&orders, &arrivals, way.discipline, way.keeping));
    let reached = at_engine(&passed, network, load.seed);
    let taken = sequenced(&orders, &reached, way.hold_ns);
    let mut matched = matched(&orders, &taken, load);
    let in_time: Vec<u64> = matched.at_ns.iter().copied().filter(|at_ns| *at_ns < load.ends_ns()).collect();
    let in_bursts = in_time.iter().filter(|at_ns| load.is_burst(**at_ns)).count() as f64;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let come_in_bursts = reached.iter().filter(|(at_ns, _)| load.is_burst(*at_ns)).count() as f64;
    let orders_matched = 2.0 * matched.at_ns.len().max(1) as f64;
    Outcome {
        burst_rate: in_bursts / seconds(load.bursts * load.burst_ns),
        burst_input: come_in_bursts / seconds(load.bursts * load.burst_ns),
        rate: in_time.len() as f64 / seconds(load.ends_ns() - FROM_NS),
        burst_latency: std::mem::take(&mut matched.burst_latency).sorted(),
        unfair_percent: 100.0 * matched.unfair as f64 / orders_matched,
        out_of_order_percent: 100.0 * matched.out_of_order as f64 / matched.taken.max(1) as f64,
        at_ns: in_time,
        reached_ns: reached.into_iter().map(|(at_ns, _)| at_ns).collect(),
    }
}

/// Events a second, by bins of 50 ms.
fn rates(at_ns: &[u64], until_ns: u64) -> Vec<(f64, f64)> {
    const BIN_NS: u64 = 50 * MS;
    let mut counts = vec![0_u64; ((until_ns - FROM_NS) / BIN_NS) as usize];
    for at_ns in at_ns {
        if let Some(count) = counts.get_mut(((at_ns - FROM_NS) / BIN_NS) as usize) {
            *count += 1;
        }
    }
    counts.iter().enumerate().map(|(bin, count)| (bin as f64 * 0.05, *count as f64 * 20.0)).collect()
}

/// Figure 12: match rates over time, and what other rules make of them.
#[must_use]
pub fn fig_12(network: &Network, extent: Extent) -> Findings {
    let load = Load::of(extent, 10, 7, 12);
    let (simple, limit) = (outcome(network, &load, &SIMPLE), outcome(network, &load, &LIMIT));
    let mut rows = vec![
        Row::own("J19", "SimplePQ: matches a second in bursts", simple.burst_rate, "1/s", Check::Shown),
        Row::own("J19", "LOQ: matches a second in bursts", limit.burst_rate, "1/s", Check::Shown),
        Row::own(
            "J19",
            "LOQ over SimplePQ: match rate in bursts",
            limit.burst_rate / simple.burst_rate,
            "ratio",
            Check::AtLeast(1.8),
        ),
        Row::own("J19", "SimplePQ: latency of orders matched in bursts, p50", simple.burst_latency.us(0.5), "us", Check::Shown),
        Row::own("J19", "LOQ: latency of orders matched in bursts, p50", limit.burst_latency.us(0.5), "us", Check::Shown),
        Row::own("J19", "LOQ over SimplePQ: latency in bursts, p50", latency_ratio(&limit, &simple), "ratio", Check::AtMost(0.02)),
        Row::own("J19", "SimplePQ: orders a second that come to the engine in bursts", simple.burst_input, "1/s", Check::Shown),
        Row::new(
            "J19",
            "LOQ over SimplePQ: orders that come to the engine in bursts",
            1.0,
            limit.burst_input / simple.burst_input,
            "ratio",
            Check::near(1.0, 0.02),
        ),
    ];
    for (name, way) in [
        ("one turn in 16 the oldest's", Way { discipline: OLDEST_NOW_AND_THEN, ..LIMIT }),
        ("a participant's orders in order", Way { keeping: Keeping::Participant, ..LIMIT }),
    ] {
        let outcome = outcome(network, &load, &way);
        let what = format!("LOQ, {name}, over SimplePQ: match rate in bursts");
        rows.push(Row::own("J19", what, outcome.burst_rate / simple.burst_rate, "ratio", Check::Shown));
        let what = format!("LOQ, {name}, over SimplePQ: latency in bursts, p50");
        rows.push(Row::own("J19", what, latency_ratio(&outcome, &simple), "ratio", Check::Shown));
    }
    let until_ns = load.ends_ns();
    let curves = vec![
        Curve::ours("LOQ: matches", rates(&limit.at_ns, until_ns)),
        Curve::ours("SimplePQ: matches", rates(&simple.at_ns, until_ns)),
        Curve::ours("orders that reach the engine", rates(&limit.reached_ns, until_ns)),
    ];
    Findings { name: "fig-12", title: "match rate around a burst from 2.5 s to 3.5 s", axes: ("s", "1/s"), rows, curves }
}

fn latency_ratio(limit: &Outcome, simple: &Outcome) -> f64 {
    limit.burst_latency.us(0.5) / simple.burst_latency.us(0.5)
}

/// Figure 13: by the number of prices; a thousand participants; and who is treated unfairly.
#[must_use]
pub fn fig_13(network: &Network, extent: Extent) -> Findings {
    let (mut rows, mut rate_points, mut latency_points) = (Vec::new(), Vec::new(), Vec::new());
    let prices = extent.of(&[3, 5, 7, 9, 11][..], &[3, 11][..]);
    for prices in prices {
        let load = Load::of(extent, 10, *prices, 13);
        let (simple, limit) = (outcome(network, &load, &SIMPLE), outcome(network, &load, &LIMIT));
        let more = 100.0 * (limit.burst_rate / simple.burst_rate - 1.0);
        let less = 100.0 * (1.0 - latency_ratio(&limit, &simple));
        rate_points.push((f64::from(*prices), more));
        latency_points.push((f64::from(*prices), less));
        let of = |published: f64| (*prices == 11).then_some(published);
        let (what, check) = (format!("1/{prices} of prices cross: match rate more"), Check::AtLeast(80.0));
        rows.push(Row { claim: "J20", what, published: of(150.0), ours: more, unit: "percent", check });
        let (what, check) = (format!("1/{prices} of prices cross: latency less"), Check::AtLeast(98.0));
        rows.push(Row { claim: "J20", what, published: of(99.9), ours: less, unit: "percent", check });
    }
    rows.extend(thousand(network, extent));
    rows.extend(unfairness(network, extent));
    let curves = vec![Curve::ours("match rate more", rate_points), Curve::ours("latency less", latency_points)];
    Findings {
        name: "fig-13",
        title: "LOQ against SimplePQ in bursts",
        axes: ("prices, one of which crosses", "percent"),
        rows,
        curves,
    }
}

fn thousand(network: &Network, extent: Extent) -> Vec<Row> {
    let load = Load::of(extent, 1_000, 7, 21);
    let (simple, limit) = (outcome(network, &load, &SIMPLE), outcome(network, &load, &LIMIT));
    let in_order = outcome(network, &load, &Way { keeping: Keeping::Participant, ..LIMIT });
    let more = |a: f64, b: f64| 100.0 * (a / b - 1.0);
    let less = 100.0 * (1.0 - latency_ratio(&limit, &simple));
    let burst = more(limit.burst_rate, simple.burst_rate);
    vec![
        Row::new("J21", "1000 participants: latency less", 98.0, less, "percent", Check::near(98.0, 15.0)),
        Row::new("J21", "1000 participants: match rate in bursts more", 86.0, burst, "percent", Check::near(86.0, 15.0)),
        Row::new("J21", "1000 participants: match rate more", 10.0, more(limit.rate, simple.rate), "percent", Check::Shown),
        Row::own(
            "J21",
            "1000 participants, each one's orders in order: match rate in bursts more",
            more(in_order.burst_rate, simple.burst_rate),
            "percent",
            Check::Shown,
        ),
    ]
}

fn unfairness(network: &Network, extent: Extent) -> Vec<Row> {
    let mut rows = Vec::new();
    for (participants, published) in [(100, 5.0), (1_000, 13.0)] {
        for hold_us in [0, 20, 200, 2_000] {
            let load = Load::of(extent, participants, 7, 22);
            let way = |of: Way| outcome(network, &load, &Way { hold_ns: hold_us * 1_000, ..of });
            let (simple, limit) = (way(SIMPLE), way(LIMIT));
            let what = |name: &str| format!("{participants} participants, d_s = {hold_us} us, {name}: unfair of matched");
            rows.push(Row::new("J22", what("SimplePQ"), published, simple.unfair_percent, "percent", Check::Shown));
            let check = Check::AtMost(simple.unfair_percent + 1.0);
            rows.push(Row::new("J22", what("LOQ"), published, limit.unfair_percent, "percent", check));
            let what = format!("{participants} participants, d_s = {hold_us} us, LOQ: out of order as CloudEx counts");
            rows.push(Row::new("J22", what, 70.0, limit.out_of_order_percent, "percent", Check::Shown));
        }
        rows.push(merged(network, extent, participants));
    }
    rows
}

/// The product's default: relays stamp and pass on by stamp, and the engine's merge waits for the other relay.
fn merged(network: &Network, extent: Extent, participants: u32) -> Row {
    let load = Load::of(extent, participants, 7, 22);
    let mut orders = orders(&load);
    let arrivals = at_relays(&orders, network, load.seed);
    for (at_ns, index) in arrivals.iter().flatten() {
        orders[*index as usize].stamp_ns = *at_ns;
    }
    let passed = arrivals.map(|arrivals| passed_on(&orders, &arrivals, Discipline::ByStamp, Keeping::Order));
    let random = &mut Random::new(load.seed).fork(14);
    let mut merge = Merge::new(0, RELAYS, u64::MAX, usize::MAX);
    let mut reaching: Vec<(u64, usize, u32)> = Vec::new();
    for (relay, passed) in passed.iter().enumerate() {
        let (link, mut last_ns) = (network.link(0, 0, relay as u32), 0);
        for (at_ns, index) in passed {
            // A stream keeps its order.
            last_ns = u64::max(last_ns, at_ns + network.delay_ns(link, *at_ns, random));
            reaching.push((last_ns, relay, *index));
        }
    }
    reaching.sort_by_key(|(at_ns, ..)| *at_ns);
    let mut taken = Vec::with_capacity(reaching.len());
    let mut now_ns = 0;
    for (at_ns, relay, index) in reaching {
        now_ns = at_ns;
        merge.order(at_ns, relay, orders[index as usize].stamp_ns, index).expect("the merge has no bound here");
        taken.extend(std::iter::from_fn(|| merge.next(at_ns)).map(|next| (at_ns, next.order)));
    }
    (0..RELAYS).for_each(|relay| merge.promise(now_ns, relay, u64::MAX).expect("it is one of the relays"));
    taken.extend(std::iter::from_fn(|| merge.next(now_ns)).map(|next| (now_ns, next.order)));
    assert_eq!(taken.len(), orders.len(), "the merge loses nothing");
    let matched = matched(&orders, &taken, &load);
    let what = format!("{participants} participants, merge by stamps: orders out of order");
    Row::own("J22", what, (matched.out_of_order + merge.late()) as f64, "", Check::Within(0.0, 0.0))
}

/// The match rate of the limit order queue over that of the queue by stamps, and its latency, in bursts.
#[must_use]
pub fn loq_ratios(fig_12: &Findings) -> (f64, f64) {
    (fig_12.figure("LOQ over SimplePQ: match rate in bursts"), fig_12.figure("LOQ over SimplePQ: latency in bursts, p50"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(stamp_ns: u64, terms: Terms) -> Order {
        Order { participant: 0, stamp_ns, terms }
    }

    const LOAD: Load = Load { participants: 1, crossing: 1, prices: 3, quiet_ns: 0, burst_ns: 1_000, bursts: 1, seed: 1 };

    #[test]
    fn the_book_matches_best_prices_first_and_counts_who_came_too_late() {
        use Terms::{Ask, Bid};
        let orders = [
            order(1, Bid(2)),
            order(5, Bid(2)),
            order(6, Bid(1)),
            order(7, Ask(2)),
            order(8, Ask(2)),
            order(9, Ask(4)),
            order(2, Bid(2)),
        ];
        let taken: Vec<(u64, u32)> = [1, 0, 2, 3, 6, 4, 5].into_iter().map(|index| (FROM_NS + 20, index)).collect();
        let matched = matched(&orders, &taken, &LOAD);
        // The order stamped 5 was there first and matched; the one stamped 2 comes after that.
        assert_eq!((matched.at_ns.len(), matched.unfair, matched.latency.len()), (2, 1, 4));
        // 1 after 5, 2 after 7.
        assert_eq!(matched.out_of_order, 2);
    }

    #[test]
    fn the_hold_sorts_what_is_there_together() {
        let orders = [order(10, Terms::Unpriced), order(20, Terms::Unpriced), order(30, Terms::Unpriced)];
        let arrivals = [(100, 2), (105, 0), (140, 1)];
        let order_of = |hold_ns: u64| -> Vec<(u64, u32)> { sequenced(&orders, &arrivals, hold_ns) };
        assert_eq!(order_of(0), [(100, 2), (105, 0), (140, 1)]);
        assert_eq!(order_of(10), [(115, 0), (115, 2), (150, 1)]);
        assert_eq!(order_of(50), [(155, 0), (190, 1), (190, 2)]);
    }

    #[test]
    fn a_relay_passes_on_at_its_rate() {
        let orders = [order(1, Terms::Bid(1)), order(2, Terms::Bid(2)), order(3, Terms::Bid(0))];
        let arrivals = [(10, 0), (11, 2), (12, 1)];
        let passed = passed_on(&orders, &arrivals, AS_PUBLISHED, Keeping::Order);
        assert_eq!(passed, [(10, 0), (10 + EGRESS_NS, 1), (10 + 2 * EGRESS_NS, 2)]);
        let passed = passed_on(&orders, &arrivals, AS_PUBLISHED, Keeping::Participant);
        assert_eq!(passed.iter().map(|(_, index)| *index).collect::<Vec<_>>(), [0, 2, 1]);
    }
}
