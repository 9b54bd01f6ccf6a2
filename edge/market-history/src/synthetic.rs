//! A made market: order-by-order history from a documented model and a seed, for demos and tests that may not ship real data.
//!
//! *The model.* Traders without intelligence, after Smith, Farmer, Gillemot and Krishnamurthy, "Statistical theory of the continuous
//! double auction" (Quantitative Finance 3, 2003), and Cont, Stoikov and Talreja, "A stochastic model for order book dynamics"
//! (Operations Research 58, 2010):
//! - Limit orders, marketable orders and cancels arrive at random. Cancels are proportional to the orders that stand, so the book
//!   keeps a size; an order `d` ticks behind its best price is cancelled 16 / (16 + d) times as often as one at the best.
//! - Limit orders stand `k` or more ticks behind their side's best price with a probability that falls as a power of `k`, so levels
//!   near the touch are busier; some improve the best price when the spread has room.
//! - Marketable orders take what stands within a few ticks of the best price; what is left of them is cancelled. Sizes follow a
//!   power law.
//! - Arrivals cluster: each order raises the rate of the next ones for a while (a Hawkes process with an exponential kernel, drawn by
//!   Ogata's thinning).
//! - A fundamental price walks at random, pulled weakly back to where it began. Orders lean to the side that moves the market toward
//!   it.
//!
//! *Not modelled*: strategies, hidden and iceberg orders, auctions, news, the shape of a day, several instruments, the long memory
//! of order signs. Its figures are nobody's market.
//!
//! *Exact*: integers only (logarithms and powers too, bit by bit), so a seed gives the same stream everywhere. Prices
//! are in ten-thousandths, as in LOBSTER files.

use std::collections::{HashMap, VecDeque};
use std::io::Write;

use walras_types::Side;

use crate::error::HistoryError;
use crate::event::{HistoryEvent, HistoryInfo, HistoryKind, Lasting, OrderRef, PriceUnits, SizeUnits, Stated, TimeOrigin};
use crate::lobster::{LobsterMessage, LobsterWriter};
use crate::model_book::ModelBook;
use crate::random::{ONE_Q32, Random, decay_q32};

/// What holds for all made markets.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 10_000, size_scale: 1, time_origin: TimeOrigin::Midnight };

/// Which side of the venue the stream shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What participants send: [`HistoryKind::Submit`], [`HistoryKind::Reduce`], [`HistoryKind::Delete`]. To drive a venue. The model
    /// goes by the book of its own orders; where others trade too, some of its orders will be gone when it cancels them.
    Orders,
    /// What a venue would publish: [`HistoryKind::Add`], [`HistoryKind::Execute`], [`HistoryKind::Reduce`], [`HistoryKind::Delete`]. To
    /// replay as history.
    Feed,
}

/// Parameters. [`SyntheticConfig::default`] is a lively stock at 100.00 with a tick of 0.01: some 25 orders and as many cancels a
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticConfig {
    /// Another seed, another market.
    pub seed: u64,
    /// What is shown.
    pub view: View,
    /// Since midnight.
    pub start_ns: u64,
    /// From the start to the end of the stream.
    pub duration_ns: u64,
    /// Price units of a tick; at least 1.
    pub units_per_tick: i64,
    /// Where the price begins, in ticks; at least 1,000.
    pub start_price_ticks: i64,
    /// Orders a side with which the book opens, all at the start.
    pub opening_orders: u32,
    /// Mean rate of limit orders, per 1,000 seconds.
    pub limit_orders_per_ks: u64,
    /// Mean rate of marketable orders, per 1,000 seconds.
    pub marketable_orders_per_ks: u64,
    /// Mean life of an order at the best price until it is cancelled.
    pub lifetime_ns: u64,
    /// Orders that stand at most, both sides together.
    pub orders_max: u32,
    /// Of 100 orders, how many come because of earlier ones; at most 95.
    pub clustering_percent: u64,
    /// How soon the excitement of an order halves.
    pub clustering_half_life_ns: u64,
    /// Tenths of the power with which the distance behind the best price falls off.
    pub distance_tail_tenths: u64,
    /// Largest distance behind the best price.
    pub distance_max_ticks: u64,
    /// Of 100 limit orders that find room in the spread, how many go there.
    pub improving_percent: u64,
    /// Tenths of the power with which sizes fall off.
    pub size_tail_tenths: u64,
    /// Sizes are multiples of this.
    pub size_step: u64,
    /// Largest size, in steps.
    pub size_steps_max: u64,
    /// How far from the best price a marketable order reaches.
    pub reach_ticks: u64,
    /// Of 1,000 cancels, how many only reduce the order.
    pub reduce_permille: u64,
    /// Time between two steps of the fundamental price.
    pub fundamental_step_ns: u64,
    /// Largest step, in thousandths of a tick; steps are uniform.
    pub fundamental_step_milliticks: u64,
    /// How much of its distance from the start the fundamental price loses each step, in millionths.
    pub fundamental_reversion_ppm: u64,
    /// How many more of 1,000 orders lean toward the fundamental price for each tick that it is away; at most 450 do.
    pub lean_permille_per_tick: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            view: View::Feed,
            start_ns: 34_200 * SECOND_NS,
            duration_ns: 3_600 * SECOND_NS,
            units_per_tick: 100,
            start_price_ticks: 10_000,
            opening_orders: 300,
            limit_orders_per_ks: 22_000,
            marketable_orders_per_ks: 2_500,
            lifetime_ns: 15 * SECOND_NS,
            orders_max: 20_000,
            clustering_percent: 65,
            clustering_half_life_ns: SECOND_NS / 4,
            distance_tail_tenths: 12,
            distance_max_ticks: 400,
            improving_percent: 35,
            size_tail_tenths: 15,
            size_step: 10,
            size_steps_max: 500,
            reach_ticks: 4,
            reduce_permille: 12,
            fundamental_step_ns: SECOND_NS,
            fundamental_step_milliticks: 900,
            fundamental_reversion_ppm: 150,
            lean_permille_per_tick: 20,
        }
    }
}

/// Orders a side under which limit orders go to that side, so that there is always a market.
const ORDERS_A_SIDE_MIN: u64 = 8;
/// Ticks behind the best at which an order is cancelled half as often as at the best.
const PATIENCE_TICKS: u64 = 16;
/// Rates are in nanohertz, so that this divided by a rate is a mean gap in nanoseconds.
const NANOHERTZ_NS: u64 = 1_000_000_000_000_000_000;

/// The stream: an iterator of events in order of time.
#[derive(Clone, Debug)]
pub struct Synthetic {
    config: SyntheticConfig,
    random: Random,
    book: ModelBook,
    live: Vec<u64>,
    slots: HashMap<u64, usize>,
    pending: VecDeque<HistoryEvent>,
    index: u64,
    next_id: u64,
    now_ns: u64,
    end_ns: u64,
    /// Rate of orders that come by themselves.
    base_nhz: u64,
    /// Rate that earlier orders add now, and what an order adds.
    excitement_nhz: u64,
    excitement_step_nhz: u64,
    fundamental_milliticks: i64,
    fundamental_due_ns: u64,
}

impl Synthetic {
    /// The market of `config`, whose out-of-range values are taken as the nearest in range.
    #[must_use]
    pub fn new(config: SyntheticConfig) -> Self {
        let config = SyntheticConfig {
            units_per_tick: config.units_per_tick.clamp(1, 1_000_000),
            start_price_ticks: config.start_price_ticks.clamp(1_000, 1_000_000_000_000),
            limit_orders_per_ks: config.limit_orders_per_ks.clamp(1, 1_000_000_000),
            marketable_orders_per_ks: config.marketable_orders_per_ks.min(1_000_000_000),
            lifetime_ns: config.lifetime_ns.clamp(1_000_000, 1_000_000 * SECOND_NS),
            orders_max: config.orders_max.clamp(100, 1_000_000),
            opening_orders: config.opening_orders.min(config.orders_max.clamp(100, 1_000_000) / 2),
            clustering_percent: config.clustering_percent.min(95),
            clustering_half_life_ns: config.clustering_half_life_ns.clamp(1_000_000, 1_000 * SECOND_NS),
            distance_tail_tenths: config.distance_tail_tenths.clamp(1, 1_000),
            distance_max_ticks: config.distance_max_ticks.clamp(1, 1_000_000),
            size_tail_tenths: config.size_tail_tenths.clamp(1, 1_000),
            size_step: config.size_step.clamp(1, 1_000_000),
            size_steps_max: config.size_steps_max.clamp(1, 1_000_000),
            reach_ticks: config.reach_ticks.min(1_000_000),
            fundamental_step_ns: config.fundamental_step_ns.max(100_000_000),
            fundamental_step_milliticks: config.fundamental_step_milliticks.min(1_000_000),
            fundamental_reversion_ppm: config.fundamental_reversion_ppm.min(1_000_000),
            lean_permille_per_tick: config.lean_permille_per_tick.min(1_000),
            ..config
        };
        let mean_nhz = (config.limit_orders_per_ks + config.marketable_orders_per_ks) * 1_000_000;
        // A kernel of mass `clustering_percent / 100` and this half-life starts at mass * ln 2 / half-life.
        let step_nhz = u128::from(NANOHERTZ_NS) * u128::from(config.clustering_percent) * 693_147
            / (100 * 1_000_000 * u128::from(config.clustering_half_life_ns));
        let mut market = Self {
            config,
            random: Random::new(config.seed),
            book: ModelBook::default(),
            live: Vec::new(),
            slots: HashMap::new(),
            pending: VecDeque::new(),
            index: 0,
            next_id: 1,
            now_ns: config.start_ns,
            end_ns: config.start_ns.saturating_add(config.duration_ns),
            base_nhz: mean_nhz / 100 * (100 - config.clustering_percent),
            excitement_nhz: 0,
            excitement_step_nhz: u64::try_from(step_nhz).unwrap_or(NANOHERTZ_NS),
            fundamental_milliticks: config.start_price_ticks * 1_000,
            fundamental_due_ns: config.start_ns.saturating_add(config.fundamental_step_ns),
        };
        market.open();
        market
    }

    /// Where the model thinks the price belongs, in thousandths of a tick.
    #[must_use]
    pub fn fundamental_milliticks(&self) -> i64 {
        self.fundamental_milliticks
    }

    fn open(&mut self) {
        for at in 0..self.config.opening_orders {
            for side in Side::BOTH {
                // Spread over both sides' first ticks; the first ones so that the market opens two ticks wide.
                let behind = if at == 0 { 1 } else { self.distance() };
                let price_ticks = match side {
                    Side::Buy => self.config.start_price_ticks - behind,
                    Side::Sell => self.config.start_price_ticks + behind,
                };
                let size = self.size();
                self.rest(side, price_ticks.max(1), size);
            }
        }
    }

    fn distance(&mut self) -> i64 {
        self.random.power_law(self.config.distance_tail_tenths, self.config.distance_max_ticks).cast_signed()
    }

    fn size(&mut self) -> u64 {
        self.random.power_law(self.config.size_tail_tenths, self.config.size_steps_max) * self.config.size_step
    }

    fn units(&self, price_ticks: i64) -> PriceUnits {
        PriceUnits(price_ticks * self.config.units_per_tick)
    }

    fn emit(&mut self, kind: HistoryKind) {
        self.index += 1;
        self.pending.push_back(HistoryEvent { time_ns: self.now_ns, index: self.index, sequence: None, instrument: 0, kind });
    }

    fn rest(&mut self, side: Side, price_ticks: i64, size: u64) {
        let id = self.next_id;
        self.next_id += 1;
        self.book.rest(id, side, price_ticks, size);
        self.slots.insert(id, self.live.len());
        self.live.push(id);
        let (order_ref, price, size) = (OrderRef(id), self.units(price_ticks), SizeUnits(size));
        self.emit(match self.config.view {
            View::Orders => HistoryKind::Submit { order_ref, side, price, size, lasting: Lasting::GoodTillCancel },
            View::Feed => HistoryKind::Add { order_ref, side, price, size },
        });
    }

    fn forget(&mut self, id: u64) {
        if let Some(slot) = self.slots.remove(&id) {
            self.live.swap_remove(slot);
            if let Some(&moved) = self.live.get(slot) {
                self.slots.insert(moved, slot);
            }
        }
    }

    /// Advances to the next event that comes of the model; `false` at the end.
    fn advance(&mut self) -> bool {
        while self.pending.is_empty() {
            let orders_nhz = self.base_nhz + self.excitement_nhz;
            let cancels_nhz = self.live.len() as u64 * (NANOHERTZ_NS / self.config.lifetime_ns);
            // A rate of over one a nanosecond cannot be; the floor keeps time going.
            let total_nhz = orders_nhz.saturating_add(cancels_nhz).max(1);
            let gap_ns = self.random.exponential(NANOHERTZ_NS / total_nhz).max(1);
            let Some(next_ns) = self.now_ns.checked_add(gap_ns).filter(|&ns| ns <= self.end_ns) else { return false };
            self.now_ns = next_ns;
            self.walk_fundamental();
            let left_q32 = decay_q32(gap_ns, self.config.clustering_half_life_ns);
            self.excitement_nhz = ((u128::from(self.excitement_nhz) * u128::from(left_q32)) >> 32) as u64;
            // The rate has fallen since the gap was drawn: a point between the new rate and the old is no event.
            let point_nhz = self.random.below(total_nhz);
            if point_nhz >= orders_nhz {
                self.cancel_some();
            } else if point_nhz < self.base_nhz + self.excitement_nhz {
                self.excitement_nhz = self.excitement_nhz.saturating_add(self.excitement_step_nhz).min(NANOHERTZ_NS);
                self.send_order();
            }
        }
        true
    }

    fn walk_fundamental(&mut self) {
        while self.fundamental_due_ns <= self.now_ns {
            self.fundamental_due_ns = self.fundamental_due_ns.saturating_add(self.config.fundamental_step_ns);
            let step = self.config.fundamental_step_milliticks.cast_signed();
            let away = self.fundamental_milliticks - self.config.start_price_ticks * 1_000;
            let back = i128::from(away) * i128::from(self.config.fundamental_reversion_ppm) / 1_000_000;
            self.fundamental_milliticks += self.random.between(-step, step) - back as i64;
            self.fundamental_milliticks = self.fundamental_milliticks.max(100_000);
            if self.fundamental_due_ns == u64::MAX {
                break;
            }
        }
    }

    /// Buys more often while the market stands below the fundamental price.
    fn leaning_side(&mut self) -> Side {
        let middle_milliticks = match (self.book.best_ticks(Side::Buy), self.book.best_ticks(Side::Sell)) {
            (Some(bid), Some(ask)) => (bid + ask) * 500,
            _ => self.fundamental_milliticks,
        };
        let away = i128::from(self.fundamental_milliticks - middle_milliticks);
        let lean_permille = (away * i128::from(self.config.lean_permille_per_tick) / 1_000).clamp(-450, 450) as i64;
        if self.random.chance((500 + lean_permille).unsigned_abs(), 1_000) { Side::Buy } else { Side::Sell }
    }

    fn send_order(&mut self) {
        let is_marketable = {
            let all = self.config.limit_orders_per_ks + self.config.marketable_orders_per_ks;
            self.random.chance(self.config.marketable_orders_per_ks, all)
        };
        let side = self.leaning_side();
        let thin = Side::BOTH.into_iter().find(|&side| self.book.order_count(side) < ORDERS_A_SIDE_MIN);
        match (thin, is_marketable) {
            (Some(thin), _) => self.send_limit(thin),
            (None, true) => self.send_marketable(side),
            (None, false) if self.live.len() >= self.config.orders_max as usize => self.cancel_some(),
            (None, false) => self.send_limit(side),
        }
    }

    fn send_limit(&mut self, side: Side) {
        // Upward for bids, downward for asks: `sign` turns one into the other.
        let sign = match side {
            Side::Buy => 1,
            Side::Sell => -1,
        };
        let opposite = self.book.best_ticks(side.opposite());
        let own = self.book.best_ticks(side);
        let room = own.zip(opposite).map_or(0, |(own, opposite)| sign * (opposite - own) - 1);
        let price_ticks = match own {
            Some(own) if room > 0 && self.random.chance(self.config.improving_percent, 100) => {
                own + sign * self.random.between(1, room.min(self.config.reach_ticks.cast_signed().max(1)))
            }
            Some(own) => own - sign * (self.distance() - 1),
            None => self.fundamental_milliticks / 1_000 - sign * self.distance(),
        };
        // Without a best price of its own the side is placed by the fundamental price; it must not cross either.
        let price_ticks = match (side, opposite) {
            (Side::Buy, Some(ask)) => price_ticks.min(ask - 1),
            (Side::Sell, Some(bid)) => price_ticks.max(bid + 1),
            (_, None) => price_ticks,
        };
        if price_ticks < 1 {
            return;
        }
        let size = self.size();
        self.rest(side, price_ticks, size);
    }

    fn send_marketable(&mut self, side: Side) {
        let Some(best_ticks) = self.book.best_ticks(side.opposite()) else { return };
        let reach = self.config.reach_ticks.cast_signed();
        let limit_ticks = match side {
            Side::Buy => best_ticks + reach,
            Side::Sell => (best_ticks - reach).max(1),
        };
        let size = self.size();
        if self.config.view == View::Orders {
            let order_ref = OrderRef(self.next_id);
            let (price, size) = (self.units(limit_ticks), SizeUnits(size));
            self.emit(HistoryKind::Submit { order_ref, side, price, size, lasting: Lasting::ImmediateOrCancel });
        }
        self.next_id += 1;
        let mut fills = Vec::new();
        self.book.take(side, limit_ticks, size, |fill| fills.push(fill));
        for fill in fills {
            if fill.maker_done {
                self.forget(fill.maker_id);
            }
            if self.config.view == View::Feed {
                let stated = Some(Stated { side: fill.maker_side, price: self.units(fill.price_ticks) });
                let (order_ref, size) = (OrderRef(fill.maker_id), SizeUnits(fill.size_lots));
                self.emit(HistoryKind::Execute { order_ref, size, stated });
            }
        }
    }

    /// A random order is cancelled, unless it stands far back and stays.
    fn cancel_some(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let id = self.live[self.random.below(self.live.len() as u64) as usize];
        let order = *self.book.get(id).expect("the list of live orders holds live orders");
        let best_ticks = self.book.best_ticks(order.side).unwrap_or(order.price_ticks);
        let behind = best_ticks.abs_diff(order.price_ticks);
        if !self.random.chance_q32(ONE_Q32 / (PATIENCE_TICKS + behind) * PATIENCE_TICKS) {
            return;
        }
        let order_ref = OrderRef(id);
        let stated = Some(Stated { side: order.side, price: self.units(order.price_ticks) });
        if order.size_lots > 1 && self.random.chance(self.config.reduce_permille, 1_000) {
            let less = 1 + self.random.below(order.size_lots - 1);
            self.book.reduce(id, less);
            self.emit(HistoryKind::Reduce { order_ref, size: SizeUnits(less), stated });
        } else {
            self.book.remove(id);
            self.forget(id);
            self.emit(HistoryKind::Delete { order_ref, open_size: Some(SizeUnits(order.size_lots)), stated });
        }
    }
}

impl Iterator for Synthetic {
    type Item = HistoryEvent;

    fn next(&mut self) -> Option<HistoryEvent> {
        if !self.advance() {
            return None;
        }
        self.pending.pop_front()
    }
}

/// Writes the market of `config`, as its feed, as a LOBSTER message file; says how many messages.
pub fn write_lobster<W: Write>(config: SyntheticConfig, sink: W) -> Result<u64, HistoryError> {
    let mut writer = LobsterWriter::new(sink);
    let mut count = 0;
    for event in Synthetic::new(SyntheticConfig { view: View::Feed, ..config }) {
        writer.write(&LobsterMessage::from_event(&event)?)?;
        count += 1;
    }
    writer.finish()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(minutes: u64) -> SyntheticConfig {
        SyntheticConfig { duration_ns: minutes * 60 * SECOND_NS, ..SyntheticConfig::default() }
    }

    #[test]
    fn the_feed_is_what_the_orders_come_to() {
        let mut book = ModelBook::default();
        let mut from_orders = Vec::new();
        for event in Synthetic::new(SyntheticConfig { view: View::Orders, ..minutes(10) }) {
            let units = SyntheticConfig::default().units_per_tick;
            let stated = |side, ticks| Some(Stated { side, price: PriceUnits(ticks * units) });
            match event.kind {
                HistoryKind::Submit { order_ref, side, price, size, lasting } => {
                    let left = book.take(side, price.0 / units, size.0, |fill| {
                        from_orders.push((
                            event.time_ns,
                            HistoryKind::Execute {
                                order_ref: OrderRef(fill.maker_id),
                                size: SizeUnits(fill.size_lots),
                                stated: stated(fill.maker_side, fill.price_ticks),
                            },
                        ));
                    });
                    if lasting == Lasting::GoodTillCancel {
                        assert_eq!(left, size.0, "limit orders of the model do not cross");
                        book.rest(order_ref.0, side, price.0 / units, left);
                        from_orders.push((event.time_ns, HistoryKind::Add { order_ref, side, price, size }));
                    }
                }
                HistoryKind::Reduce { order_ref, size, .. } => {
                    assert_eq!(book.reduce(order_ref.0, size.0), Some(false));
                    from_orders.push((event.time_ns, event.kind));
                }
                HistoryKind::Delete { order_ref, .. } => {
                    assert!(book.remove(order_ref.0).is_some());
                    from_orders.push((event.time_ns, event.kind));
                }
                other => panic!("{other:?}"),
            }
        }
        let feed: Vec<_> = Synthetic::new(minutes(10)).map(|event| (event.time_ns, event.kind)).collect();
        assert_eq!(feed, from_orders);
    }

    #[test]
    fn an_hour_keeps_its_rates_and_its_market() {
        let mut market = Synthetic::new(minutes(60));
        let (mut adds, mut fills, mut cancels, mut reduces, mut spreads, mut last_ns) = (0u64, 0u64, 0u64, 0u64, Vec::new(), 0);
        let (mut lowest, mut highest) = (u64::MAX, 0);
        while let Some(event) = market.next() {
            assert!(event.time_ns >= last_ns);
            last_ns = event.time_ns;
            match event.kind {
                HistoryKind::Add { .. } => adds += 1,
                HistoryKind::Execute { .. } => fills += 1,
                HistoryKind::Delete { .. } => cancels += 1,
                HistoryKind::Reduce { .. } => reduces += 1,
                other => panic!("{other:?}"),
            }
            if event.index > 10_000 && market.pending.is_empty() {
                let (bid, ask) = (market.book.best_ticks(Side::Buy).unwrap(), market.book.best_ticks(Side::Sell).unwrap());
                spreads.push(ask - bid);
                lowest = lowest.min(market.live.len() as u64);
                highest = highest.max(market.live.len() as u64);
            }
        }
        spreads.sort_unstable();
        let summary = format!(
            "adds {adds} fills {fills} cancels {cancels} reduces {reduces} orders {lowest}..{highest} spread p50 {} p99 {} max {}",
            spreads[spreads.len() / 2],
            spreads[spreads.len() * 99 / 100],
            spreads[spreads.len() - 1]
        );
        // 22 a second, clustered: within a tenth over an hour.
        assert!((71_000..88_000).contains(&adds), "{summary}");
        assert!((5_000..30_000).contains(&fills), "{summary}");
        assert!(cancels > adds / 2 && reduces > 100, "{summary}");
        assert!(spreads[0] >= 1 && spreads[spreads.len() / 2] <= 4 && spreads[spreads.len() * 99 / 100] <= 15, "{summary}");
        assert!(lowest > 50 && highest < 5_000, "{summary}");
    }

    #[test]
    fn arrivals_cluster() {
        // The variance of the count of orders in windows of a second, over its mean: 1 without clustering.
        let dispersion_percent = |clustering_percent| {
            let mut counts = vec![0u64; 1_200];
            for event in Synthetic::new(SyntheticConfig { clustering_percent, view: View::Orders, ..minutes(20) }) {
                if let HistoryKind::Submit { .. } = event.kind {
                    let second = (event.time_ns - 34_200 * SECOND_NS) / SECOND_NS;
                    counts[(second as usize).min(1_199)] += 1;
                }
            }
            let counts = &counts[10..];
            let (count, sum) = (counts.len() as u64, counts.iter().sum::<u64>());
            let square_sum: u64 = counts.iter().map(|count| count * count).sum();
            (square_sum * count - sum * sum) * 100 / (sum * count)
        };
        let (plain, clustered) = (dispersion_percent(0), dispersion_percent(65));
        assert!((85..115).contains(&plain), "{plain}");
        assert!(clustered > 250, "{clustered}");
    }

    #[test]
    fn the_market_follows_the_fundamental_price() {
        let config = SyntheticConfig { fundamental_step_milliticks: 2_000, fundamental_reversion_ppm: 0, ..minutes(60) };
        let mut market = Synthetic::new(config);
        let (mut moved, mut away) = (0i64, Vec::new());
        while market.next().is_some() {
            let middle = (market.book.best_ticks(Side::Buy).unwrap() + market.book.best_ticks(Side::Sell).unwrap()) * 500;
            moved = moved.max((market.fundamental_milliticks - config.start_price_ticks * 1_000).abs());
            away.push((market.fundamental_milliticks - middle).abs());
        }
        away.sort_unstable();
        let median = away[away.len() / 2];
        assert!(moved > 30_000, "{moved}");
        assert!(median < moved / 2, "moved {moved}, median distance {median}");
    }

    #[test]
    fn the_same_seed_gives_the_same_file_on_every_machine() {
        let mut file = Vec::new();
        let count = write_lobster(minutes(2), &mut file).unwrap();
        let hash =
            file.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        assert_eq!((count, hash), (6_298, 10_864_958_160_040_923_035));
        let mut other = Vec::new();
        write_lobster(SyntheticConfig { seed: 2, ..minutes(2) }, &mut other).unwrap();
        assert_ne!(file, other);
    }
}
