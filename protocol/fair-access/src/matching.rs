//! Order-matching fairness (Jasper, section 5): an order is treated unfairly if it arrives when another one with a later stamp, of the
//! same instrument, side and price, has already matched. The share is that of such orders among those matched. `CloudEx`'s definition
//! (of [`crate::resequence::Sequence`]) counts every order that comes after a later one, whether that took anything from it or not.
//!
//! The order of arrival is that of the log. Each trade counts its two orders as matched.
//!
//! *Bounds*: an order whose stamp is so much older than the latest that none before it can come any more is forgotten, and the price at
//! which it matched with it. Beyond [`ORDERS_MAX`] the oldest are forgotten earlier; then a later order may be judged fair that was not.

use std::collections::{BTreeMap, VecDeque};

use walras_types::{InstrumentId, OrderId, PriceTicks, Side};

/// Orders that are remembered.
pub const ORDERS_MAX: usize = 1 << 16;
/// Matched orders of a window of the recent share.
const WINDOW: u64 = 1_000;
const PPM: u64 = 1_000_000;

type Order = (InstrumentId, OrderId);
type Level = (InstrumentId, Side, PriceTicks);

/// What was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchingCounts {
    /// Orders matched: two for each trade.
    pub matched: u64,
    /// Orders that were treated unfairly.
    pub unfair: u64,
    /// The share of unfair orders in matched ones over the last 1,000 to 2,000 of these, in millionths.
    pub recent_ppm: u64,
}

/// Judges orders as they enter the book.
#[derive(Debug)]
pub struct MatchingFairness {
    horizon_ns: u64,
    /// Recent orders: their level and stamp.
    orders: BTreeMap<Order, (Level, u64)>,
    /// The same, the oldest first.
    recent: VecDeque<(u64, Order, Level)>,
    /// The latest stamp of an order that matched at a level.
    latest: BTreeMap<Level, u64>,
    /// The latest stamp of all.
    latest_ns: u64,
    counts: MatchingCounts,
    /// Matched and unfair orders of this window and of the one before.
    windows: [(u64, u64); 2],
}

impl MatchingFairness {
    /// Nothing came. No order comes with a stamp that is more than `horizon_ns` before the latest one.
    #[must_use]
    pub fn new(horizon_ns: u64) -> Self {
        Self {
            horizon_ns,
            orders: BTreeMap::new(),
            recent: VecDeque::new(),
            latest: BTreeMap::new(),
            latest_ns: 0,
            counts: MatchingCounts::default(),
            windows: [(0, 0); 2],
        }
    }

    /// An order enters the book, or loses its place there: whether it is treated unfairly. O(log n).
    pub fn arrives(&mut self, order: (InstrumentId, OrderId), (side, price): (Side, PriceTicks), stamp_ns: u64) -> bool {
        let level = (order.0, side, price);
        let is_unfair = self.latest.get(&level).is_some_and(|latest_ns| stamp_ns < *latest_ns);
        self.counts.unfair += u64::from(is_unfair);
        self.windows[0].1 += u64::from(is_unfair);
        self.latest_ns = self.latest_ns.max(stamp_ns);
        self.orders.insert(order, (level, stamp_ns));
        self.recent.push_back((stamp_ns, order, level));
        self.forget();
        is_unfair
    }

    /// Two orders trade. O(log n).
    pub fn trades(&mut self, instrument: InstrumentId, orders: [OrderId; 2]) {
        for order in orders {
            // An order that is not remembered is older than any that comes.
            if let Some(&(level, stamp_ns)) = self.orders.get(&(instrument, order)) {
                let latest_ns = self.latest.entry(level).or_insert(stamp_ns);
                *latest_ns = stamp_ns.max(*latest_ns);
            }
        }
        self.counts.matched += 2;
        self.windows[0].0 += 2;
        if self.windows[0].0 >= WINDOW {
            self.windows = [(0, 0), self.windows[0]];
        }
    }

    /// Orders of another leader follow: those from before are not compared with them. The counts stay.
    pub fn forget_all(&mut self) {
        self.orders.clear();
        self.recent.clear();
        self.latest.clear();
        self.latest_ns = 0;
    }

    /// What was judged.
    #[must_use]
    pub fn counts(&self) -> MatchingCounts {
        let [(matched, unfair), (matched_before, unfair_before)] = self.windows;
        let (matched, unfair) = (matched + matched_before, unfair + unfair_before);
        let recent_ppm = (unfair.saturating_mul(PPM)).checked_div(matched).unwrap_or(0);
        MatchingCounts { recent_ppm, ..self.counts }
    }

    /// Orders that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.recent.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    fn forget(&mut self) {
        let oldest_ns = self.latest_ns.saturating_sub(self.horizon_ns);
        while let Some(&(stamp_ns, order, level)) = self.recent.front()
            && (stamp_ns < oldest_ns || self.recent.len() > ORDERS_MAX)
        {
            self.recent.pop_front();
            // It may be there under a later stamp, having lost its place.
            if self.orders.get(&order).is_some_and(|(_, last_ns)| *last_ns == stamp_ns) {
                self.orders.remove(&order);
            }
            // A later one that matched there is remembered itself, and takes the level with it.
            if self.latest.get(&level).is_some_and(|latest_ns| *latest_ns <= stamp_ns) {
                self.latest.remove(&level);
            }
        }
    }
}
