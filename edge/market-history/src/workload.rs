//! Streams of commands to measure a book with, each with the answer that a right book gives.
//!
//! [`Churn`] follows the description of exchange-core's own test generator (a book held near a target number of orders, mostly
//! moves of the oldest ones toward the last trade), rewritten: its mix and its shape are alike, its numbers are not. With
//! [`ChurnConfig::sweeps`] its immediate orders each trade with about 26 others. [`Deep`] is ours: random cancels all over a deep
//! book in which nothing trades, so that what is measured is finding an order in memory.
//!
//! Both are functions of their configuration: integers only, no clock, the same on every machine.

use std::collections::VecDeque;

use walras_types::Side;

use crate::model_book::{Fill, ModelBook};
use crate::random::{Random, exp2_q32};
use crate::workload_file::{WorkloadCommand, WorkloadOp, WorkloadResult, level_hash};

/// Runs commands through a plain price-time book: what a `.expect` file should say. `fill_commands` of them fill the book first.
/// A command for an order that is not live does nothing.
#[must_use]
pub fn solve(commands: impl IntoIterator<Item = WorkloadCommand>, fill_commands: u64) -> WorkloadResult {
    let mut answer = Answer::default();
    for command in commands {
        answer.apply(&command, |_| {});
    }
    answer.result(fill_commands)
}

/// A book and what its commands came to.
#[derive(Clone, Debug, Default)]
struct Answer {
    book: ModelBook,
    result: WorkloadResult,
}

impl Answer {
    fn apply(&mut self, command: &WorkloadCommand, mut on_fill: impl FnMut(Fill)) {
        let result = &mut self.result;
        result.mix.count(&command.op);
        let id = command.order_id;
        let (side, price_ticks, size_lots, rests) = match command.op {
            WorkloadOp::Limit { side, price_ticks, size_lots } => (side, price_ticks, size_lots.unsigned_abs(), true),
            WorkloadOp::Immediate { side, price_ticks, size_lots } => (side, price_ticks, size_lots.unsigned_abs(), false),
            WorkloadOp::Cancel => {
                self.book.remove(id);
                return;
            }
            WorkloadOp::Move { price_ticks } => match self.book.remove(id) {
                Some(order) => (order.side, price_ticks, order.size_lots, true),
                None => return,
            },
            WorkloadOp::Reduce { size_lots } => {
                self.book.reduce(id, size_lots.unsigned_abs());
                return;
            }
        };
        let trades_before = result.trades;
        let left = self.book.take(side, price_ticks, size_lots, |fill| {
            result.trades += 1;
            result.volume_lots += fill.size_lots;
            on_fill(fill);
        });
        result.commands_with_trade += u64::from(result.trades > trades_before);
        if rests {
            let known = result.price_max_ticks != 0;
            result.price_min_ticks = if known { result.price_min_ticks.min(price_ticks) } else { price_ticks };
            result.price_max_ticks = result.price_max_ticks.max(price_ticks);
            if left > 0 {
                self.book.rest(id, side, price_ticks, left);
            }
        }
    }

    fn result(&self, fill_commands: u64) -> WorkloadResult {
        let (asks, bids) = (self.book.levels(Side::Sell), self.book.levels(Side::Buy));
        WorkloadResult {
            fill_commands,
            ask_levels: asks.len() as u64,
            bid_levels: bids.len() as u64,
            ask_orders: self.book.order_count(Side::Sell),
            bid_orders: self.book.order_count(Side::Buy),
            level_hash: level_hash(asks.iter().copied(), bids.iter().copied()),
            best_ask: asks.first().copied(),
            best_bid: bids.first().copied(),
            ..self.result
        }
    }
}

/// Parameters of [`Churn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChurnConfig {
    /// Another seed, another stream.
    pub seed: u64,
    /// Orders that the book is held near, both sides together; at least 2.
    pub target_orders: u64,
    /// Commands after the `target_orders` that fill the book.
    pub commands: u64,
    /// Users, numbered from 1; at least 1.
    pub users: u32,
    /// Price to begin at, in ticks, 100 to 10^12; `None` draws one between 2,000 and 2,000,000.
    pub start_price_ticks: Option<i64>,
    /// Whether immediate orders take up to a fifth of what stands on the other side (of 1,000 orders about 26), rather than one or
    /// two orders.
    pub sweeps: bool,
}

impl ChurnConfig {
    /// The stream on which books are compared: 1,000 resting orders, 3,000,000 commands.
    #[must_use]
    pub fn standard(seed: u64) -> Self {
        let start_price_ticks = Some(30_754);
        Self { seed, target_orders: 1_000, commands: 3_000_000, users: 1_000, start_price_ticks, sweeps: false }
    }

    /// The same with sweeps, 1,000,000 commands.
    #[must_use]
    pub fn sweeps(seed: u64) -> Self {
        Self { commands: 1_000_000, sweeps: true, ..Self::standard(seed) }
    }
}

/// How many of the oldest live orders are acted on.
const WINDOW: usize = 512;
/// A sweep takes at most one part in so many of the other side. (Taking all of it leaves a book that is mostly empty.)
const SWEEP_SHARE: u64 = 5;
/// Commands between two looks at how many orders stand.
const LOOK_EVERY: u64 = 512;

/// Commands of a book held near a target size. See the module.
#[derive(Clone, Debug)]
pub struct Churn {
    config: ChurnConfig,
    random: Random,
    answer: Answer,
    emitted: u64,
    next_id: u64,
    /// The oldest live orders, in any order.
    window: Vec<u64>,
    /// The younger ones, oldest first; some are gone already.
    younger: VecDeque<u64>,
    start_ticks: i64,
    last_trade_ticks: i64,
    deviation_ticks: i64,
    low_ticks: i64,
    high_ticks: i64,
    seen_orders: [u64; 2],
}

impl Churn {
    /// The stream of `config`, whose out-of-range values are taken as the nearest in range.
    #[must_use]
    pub fn new(config: ChurnConfig) -> Self {
        let mut random = Random::new(config.seed);
        let config = ChurnConfig { target_orders: config.target_orders.max(2), users: config.users.max(1), ..config };
        let start_ticks = match config.start_price_ticks {
            Some(ticks) => ticks.clamp(100, 1_000_000_000_000),
            None => {
                // 10^(3.3 + 1.5 u + 1.5 v), as a power of two.
                const LOG2_10_Q32: u64 = 14_267_572_527;
                let uniforms_q32 = (random.bits() >> 32) + (random.bits() >> 32);
                let spread_q32 = (u128::from(LOG2_10_Q32 * 15 / 10) * u128::from(uniforms_q32)) >> 32;
                exp2_q32(LOG2_10_Q32 * 33 / 10 + spread_q32 as u64).cast_signed()
            }
        };
        let deviation_ticks = (start_ticks / 20).min(10_000);
        Self {
            config,
            random,
            answer: Answer::default(),
            emitted: 0,
            next_id: 1,
            window: Vec::with_capacity(WINDOW),
            younger: VecDeque::new(),
            start_ticks,
            last_trade_ticks: start_ticks,
            deviation_ticks,
            low_ticks: start_ticks - 5 * deviation_ticks,
            high_ticks: start_ticks + 5 * deviation_ticks,
            seen_orders: [0; 2],
        }
    }

    /// What a right book makes of the commands so far.
    #[must_use]
    pub fn result(&self) -> WorkloadResult {
        self.answer.result(self.config.target_orders)
    }

    fn random_side(&mut self) -> Side {
        if self.random.chance(1, 2) { Side::Buy } else { Side::Sell }
    }

    fn choose(&mut self) -> WorkloadCommand {
        if self.emitted < self.config.target_orders {
            let side = self.random_side();
            return self.limit(side);
        }
        if (self.emitted - self.config.target_orders).is_multiple_of(LOOK_EVERY) {
            self.seen_orders = Side::BOTH.map(|side| self.answer.book.order_count(side));
        }
        let side = self.random_side();
        let target = self.config.target_orders / 2;
        let seen = self.seen_orders[side as usize];
        let is_short = seen < target;
        // Only new orders while under half of the target stands; more of them while short of it; mostly moves otherwise.
        let kinds = match (is_short, seen < target / 2) {
            (_, true) => 2,
            (true, false) => 10,
            (false, false) => 40,
        };
        let kind = self.random.below(kinds);
        if kind < 2 && is_short || self.window.is_empty() {
            self.limit(side)
        } else if kind < 2 {
            self.immediate(side)
        } else {
            self.act_on_old(kind)
        }
    }

    fn limit(&mut self, side: Side) -> WorkloadCommand {
        // Distances from the last trade concentrate near it: the width itself is random, mostly small.
        let uniform_q32 = self.random.bits() >> 32;
        let square_q32 = (uniform_q32 * uniform_q32) >> 32;
        let width = 1 + ((square_q32 * self.deviation_ticks.unsigned_abs()) >> 32);
        let sum: u64 = (0..4).map(|_| self.random.below(width)).sum();
        let offset = (sum / 4 * 2).abs_diff(width).cast_signed();
        let price_ticks = match side {
            Side::Buy => self.last_trade_ticks - offset,
            Side::Sell => self.last_trade_ticks + offset,
        };
        let price_ticks = price_ticks.clamp(self.low_ticks, self.high_ticks);
        let op = WorkloadOp::Limit { side, price_ticks, size_lots: self.small_size() };
        self.new_order(op)
    }

    fn immediate(&mut self, side: Side) -> WorkloadCommand {
        let away_ticks = self.last_trade_ticks - self.start_ticks;
        let side = match self.config.sweeps {
            // A sweep moves the last trade price far, and new orders follow it: left alone it would end at an end of the range.
            true if away_ticks > self.deviation_ticks => Side::Sell,
            true if away_ticks < -self.deviation_ticks => Side::Buy,
            _ => side,
        };
        let opposite_lots = self.answer.book.open_lots(side.opposite());
        let size_lots = match self.config.sweeps && opposite_lots > 0 {
            true => 1 + self.random.below(opposite_lots.div_ceil(SWEEP_SHARE)).cast_signed(),
            false => self.small_size(),
        };
        let price_ticks = match side {
            Side::Buy => self.high_ticks,
            Side::Sell => self.low_ticks,
        };
        self.new_order(WorkloadOp::Immediate { side, price_ticks, size_lots })
    }

    fn small_size(&mut self) -> i64 {
        (1 + self.random.below(6) * self.random.below(6) * self.random.below(6)).cast_signed()
    }

    fn new_order(&mut self, op: WorkloadOp) -> WorkloadCommand {
        let order_id = self.next_id;
        self.next_id += 1;
        WorkloadCommand { user: self.owner(order_id), order_id, op }
    }

    /// Users are drawn from the order id, so that who acts on an order is its owner.
    fn owner(&self, order_id: u64) -> u32 {
        let user = Random::new(self.config.seed ^ order_id.rotate_left(32)).below(u64::from(self.config.users));
        1 + u32::try_from(user).expect("a user is below a 32-bit number of users")
    }

    fn act_on_old(&mut self, kind: u64) -> WorkloadCommand {
        let order_id = self.window[self.random.below(self.window.len() as u64) as usize];
        let order = *self.answer.book.get(order_id).expect("the window holds live orders");
        let op = match kind {
            2 => WorkloadOp::Cancel,
            3 => WorkloadOp::Reduce { size_lots: 1 + self.random.below(order.size_lots).cast_signed() },
            _ => {
                let distance = self.last_trade_ticks - order.price_ticks;
                let step = match distance.signum() {
                    0 => self.random.between(0, 1) * 2 - 1,
                    sign => sign * (distance.abs() / 100).max(1),
                };
                WorkloadOp::Move { price_ticks: (order.price_ticks + step).clamp(self.low_ticks, self.high_ticks) }
            }
        };
        WorkloadCommand { user: self.owner(order_id), order_id, op }
    }

    fn apply(&mut self, command: &WorkloadCommand) {
        let window = &mut self.window;
        let last_trade_ticks = &mut self.last_trade_ticks;
        let mut leave = |id: u64| {
            if let Some(at) = window.iter().position(|&old| old == id) {
                window.swap_remove(at);
            }
        };
        self.answer.apply(command, |fill| {
            *last_trade_ticks = fill.price_ticks;
            if fill.maker_done {
                leave(fill.maker_id);
            }
        });
        let is_live = self.answer.book.get(command.order_id).is_some();
        match command.op {
            WorkloadOp::Limit { .. } if is_live => self.younger.push_back(command.order_id),
            _ if !is_live => leave(command.order_id),
            _ => {}
        }
        while self.window.len() < WINDOW {
            let Some(id) = self.younger.pop_front() else { break };
            if self.answer.book.get(id).is_some() {
                self.window.push(id);
            }
        }
    }
}

impl Iterator for Churn {
    type Item = WorkloadCommand;

    fn next(&mut self) -> Option<WorkloadCommand> {
        if self.emitted == self.config.target_orders.saturating_add(self.config.commands) {
            return None;
        }
        let command = self.choose();
        self.apply(&command);
        self.emitted += 1;
        Some(command)
    }
}

/// Parameters of [`Deep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepConfig {
    /// Another seed, another stream.
    pub seed: u64,
    /// Orders that fill the book first.
    pub resting_orders: u64,
    /// Commands after them.
    pub commands: u64,
    /// Users, numbered from 1; at least 1.
    pub users: u32,
    /// Ticks on each side over which orders are spread, more of them near the middle; at least 1.
    pub levels_per_side: u64,
}

impl DeepConfig {
    /// 10,000 resting orders that grow to about 67,000 in 3,000,000 commands.
    #[must_use]
    pub fn growing(seed: u64) -> Self {
        Self { seed, resting_orders: 10_000, commands: 3_000_000, users: 1_000, levels_per_side: 2_000 }
    }

    /// The same with 1,000,000 resting orders: bound by memory.
    #[must_use]
    pub fn million(seed: u64) -> Self {
        Self { resting_orders: 1_000_000, ..Self::growing(seed) }
    }
}

/// Middle of the book, where nothing stands.
const DEEP_MIDDLE_TICKS: i64 = 1_000_000;
/// Largest order.
const DEEP_SIZE_LOTS_MAX: u64 = 500;

#[derive(Clone, Copy, Debug)]
struct DeepOrder {
    id: u64,
    side: Side,
    price_ticks: i64,
    size_lots: u64,
}

/// Of 100 commands 48 add, 46 cancel a uniformly random live order, 6 reduce one by at least 1 and at most all of it. Sizes are
/// uniform up to 500 lots; bids stand below a middle and asks above it, so nothing trades.
#[derive(Clone, Debug)]
pub struct Deep {
    config: DeepConfig,
    random: Random,
    result: WorkloadResult,
    live: Vec<DeepOrder>,
    next_id: u64,
}

impl Deep {
    /// The stream of `config`, whose out-of-range values are taken as the nearest in range.
    #[must_use]
    pub fn new(config: DeepConfig) -> Self {
        let levels_per_side = config.levels_per_side.clamp(1, DEEP_MIDDLE_TICKS.unsigned_abs() - 1);
        let config = DeepConfig { users: config.users.max(1), levels_per_side, ..config };
        Self {
            config,
            random: Random::new(config.seed),
            result: WorkloadResult { fill_commands: config.resting_orders, ..WorkloadResult::default() },
            live: Vec::new(),
            next_id: 1,
        }
    }

    /// What a right book makes of the commands so far.
    #[must_use]
    pub fn result(&self) -> WorkloadResult {
        let mut sides = [ModelLevels::new(), ModelLevels::new()];
        let mut orders = [0u64; 2];
        for order in &self.live {
            *sides[order.side as usize].entry(order.price_ticks).or_default() += order.size_lots;
            orders[order.side as usize] += 1;
        }
        let [bids, asks] = &sides;
        let level = |(&price_ticks, &size_lots): (&i64, &u64)| (price_ticks, size_lots);
        WorkloadResult {
            ask_levels: asks.len() as u64,
            bid_levels: bids.len() as u64,
            ask_orders: orders[Side::Sell as usize],
            bid_orders: orders[Side::Buy as usize],
            level_hash: level_hash(asks.iter().map(level), bids.iter().rev().map(level)),
            best_ask: asks.first_key_value().map(level),
            best_bid: bids.last_key_value().map(level),
            ..self.result
        }
    }

    fn add(&mut self) -> (u64, WorkloadOp) {
        let side = if self.random.chance(1, 2) { Side::Buy } else { Side::Sell };
        let uniform_q32 = self.random.bits() >> 32;
        let square_q32 = (uniform_q32 * uniform_q32) >> 32;
        let distance = 1 + ((square_q32 * self.config.levels_per_side) >> 32).cast_signed();
        let price_ticks = match side {
            Side::Buy => DEEP_MIDDLE_TICKS - distance,
            Side::Sell => DEEP_MIDDLE_TICKS + distance,
        };
        let size_lots = 1 + self.random.below(DEEP_SIZE_LOTS_MAX);
        let id = self.next_id;
        self.next_id += 1;
        self.live.push(DeepOrder { id, side, price_ticks, size_lots });
        let known = self.result.price_max_ticks != 0;
        self.result.price_min_ticks = if known { self.result.price_min_ticks.min(price_ticks) } else { price_ticks };
        self.result.price_max_ticks = self.result.price_max_ticks.max(price_ticks);
        (id, WorkloadOp::Limit { side, price_ticks, size_lots: size_lots.cast_signed() })
    }

    fn cancel(&mut self) -> (u64, WorkloadOp) {
        let at = self.random.below(self.live.len() as u64) as usize;
        (self.live.swap_remove(at).id, WorkloadOp::Cancel)
    }

    fn reduce(&mut self) -> (u64, WorkloadOp) {
        let at = self.random.below(self.live.len() as u64) as usize;
        let order = &mut self.live[at];
        let less = 1 + self.random.below(order.size_lots);
        order.size_lots -= less;
        let id = order.id;
        if order.size_lots == 0 {
            self.live.swap_remove(at);
        }
        (id, WorkloadOp::Reduce { size_lots: less.cast_signed() })
    }
}

type ModelLevels = std::collections::BTreeMap<i64, u64>;

impl Iterator for Deep {
    type Item = WorkloadCommand;

    fn next(&mut self) -> Option<WorkloadCommand> {
        let emitted = self.result.mix.total();
        if emitted == self.config.resting_orders.saturating_add(self.config.commands) {
            return None;
        }
        let is_filling = emitted < self.config.resting_orders;
        let percent = if is_filling || self.live.is_empty() { 0 } else { self.random.below(100) };
        let (order_id, op) = match percent {
            0..48 => self.add(),
            48..94 => self.cancel(),
            _ => self.reduce(),
        };
        self.result.mix.count(&op);
        let user = Random::new(self.config.seed ^ order_id.rotate_left(32)).below(u64::from(self.config.users));
        let user = 1 + u32::try_from(user).expect("a user is below a 32-bit number of users");
        Some(WorkloadCommand { user, order_id, op })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn churn_has_the_described_mix_and_its_own_answer() {
        let config = ChurnConfig { commands: 200_000, ..ChurnConfig::standard(7) };
        let mut churn = Churn::new(config);
        let commands: Vec<_> = churn.by_ref().collect();
        let result = churn.result();
        assert_eq!(solve(commands.iter().copied(), 1_000), result);
        let share = |count: u64| count * 1_000 / result.mix.total();
        let mix = result.mix;
        let permille = [mix.limit, mix.immediate, mix.cancel, mix.moves, mix.reduce].map(share);
        // The described generator's: 127, 18, 72, 711, 72.
        for (ours, (low, high)) in permille.iter().zip([(100, 160), (10, 26), (60, 85), (670, 750), (60, 85)]) {
            assert!((low..=high).contains(ours), "{permille:?}");
        }
        assert!((700..1_100).contains(&(result.ask_orders + result.bid_orders)), "{result}");
        assert!(result.trades > 2_000, "{result}");
        assert!(commands.iter().all(|command| (1..=1_000).contains(&command.user)));
    }

    #[test]
    fn sweeps_trade_with_many_orders() {
        let mut churn = Churn::new(ChurnConfig { commands: 200_000, ..ChurnConfig::sweeps(7) });
        let mut sweeper = Answer::default();
        let mut sweep_trades = 0;
        for command in churn.by_ref() {
            let before = sweeper.result.trades;
            sweeper.apply(&command, |_| {});
            if matches!(command.op, WorkloadOp::Immediate { .. }) {
                sweep_trades += sweeper.result.trades - before;
            }
        }
        let result = churn.result();
        assert_eq!(sweeper.result(1_000), result);
        let trades_per_sweep = sweep_trades / result.mix.immediate;
        // About 26.
        assert!((20..33).contains(&trades_per_sweep), "{trades_per_sweep} {result}");
    }

    #[test]
    fn owners_act_on_their_own_orders() {
        let mut owners = std::collections::HashMap::new();
        for command in Churn::new(ChurnConfig { commands: 20_000, ..ChurnConfig::standard(3) }) {
            assert_eq!(*owners.entry(command.order_id).or_insert(command.user), command.user);
        }
        assert!(owners.values().collect::<std::collections::HashSet<_>>().len() > 900);
    }

    #[test]
    fn deep_never_trades_and_has_its_own_answer() {
        let mut deep = Deep::new(DeepConfig { commands: 100_000, ..DeepConfig::growing(5) });
        let commands: Vec<_> = deep.by_ref().collect();
        let result = deep.result();
        assert_eq!(solve(commands, 10_000), result);
        assert_eq!((result.trades, result.mix.immediate, result.mix.moves), (0, 0, 0));
        let mix = result.mix;
        let added = mix.limit - 10_000;
        for (count, low, high) in [(added, 475, 485), (mix.cancel, 455, 465), (mix.reduce, 55, 65)] {
            assert!((low..=high).contains(&(count / 100)), "{mix:?}");
        }
    }

    #[test]
    fn a_drawn_start_price_is_in_the_documented_range() {
        for seed in 0..200 {
            let churn = Churn::new(ChurnConfig { start_price_ticks: None, ..ChurnConfig::standard(seed) });
            assert!((1_990..2_000_000).contains(&churn.last_trade_ticks), "{}", churn.last_trade_ticks);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_on_every_machine() {
        let hash = |commands: &mut dyn Iterator<Item = WorkloadCommand>| {
            commands
                .flat_map(|command| command.encode())
                .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
        };
        let churn = ChurnConfig { commands: 10_000, start_price_ticks: None, ..ChurnConfig::standard(1) };
        let deep = DeepConfig { resting_orders: 1_000, commands: 10_000, ..DeepConfig::growing(1) };
        let hashes = [
            hash(&mut Churn::new(churn)),
            hash(&mut Churn::new(ChurnConfig { sweeps: true, ..churn })),
            hash(&mut Deep::new(deep)),
        ];
        assert_eq!(hashes, [16_896_719_241_381_162_780, 12_186_767_723_690_041_970, 18_139_819_653_674_337_926]);
    }
}
