//! Order-matching fairness (Jasper, section 5): an order is treated unfairly if it arrives when another one with a later stamp, of the
//! same instrument, side and price, has already matched. The share is that of such orders among those matched. `CloudEx`'s definition
//! (of [`crate::resequence::Sequence`]) counts every order that comes after a later one, whether that took anything from it or not.
//!
//! The order of arrival is that of the log. Each trade counts its two orders as matched.
//!
//! *Bounds*: an order whose stamp is so much older than the latest that none before it can come any more is forgotten, and the price at
//! which it matched with it. Beyond [`ORDERS_MAX`] the oldest are forgotten earlier; then a later order may be judged fair that was not.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashTable;
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

/// An order that entered the book, or lost its place there.
#[derive(Debug)]
struct Arrival {
    order: Order,
    level: Level,
    stamp_ns: u64,
    /// It traded since.
    has_matched: bool,
}

/// Judges orders as they enter the book.
#[derive(Debug)]
pub struct MatchingFairness {
    horizon_ns: u64,
    /// Recent arrivals, the oldest first.
    recent: VecDeque<Arrival>,
    /// The number of the first of them.
    first: u64,
    /// The number of each remembered order's last arrival. The venue numbers orders, no participant does, so the hash has no key.
    by_order: HashTable<u64>,
    /// The latest stamp of an order that matched at a level. The arrival that has it is remembered.
    latest: BTreeMap<Level, u64>,
    /// The latest stamp of all.
    latest_ns: u64,
    counts: MatchingCounts,
    /// Matched and unfair orders of this window and of the one before.
    windows: [(u64, u64); 2],
}

/// Spreads numbers that follow each other: by a multiplication with 2^64 over the golden ratio, and a fold of the wide product.
fn hash(order: Order) -> u64 {
    let wide = u128::from(order.1.0) * 0x9E37_79B9_7F4A_7C15;
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// An arrival by its number.
fn at(recent: &VecDeque<Arrival>, first: u64, number: u64) -> &Arrival {
    &recent[(number - first) as usize]
}

impl MatchingFairness {
    /// Nothing came. No order comes with a stamp that is more than `horizon_ns` before the latest one.
    #[must_use]
    pub fn new(horizon_ns: u64) -> Self {
        Self {
            horizon_ns,
            recent: VecDeque::new(),
            first: 0,
            by_order: HashTable::new(),
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
        let number = self.first + self.recent.len() as u64;
        self.recent.push_back(Arrival { order, level, stamp_ns, has_matched: false });
        let (recent, first) = (&self.recent, self.first);
        let is_it = |other: &u64| at(recent, first, *other).order == order;
        match self.by_order.find_mut(hash(order), is_it) {
            Some(before) => *before = number,
            None => drop(self.by_order.insert_unique(hash(order), number, |other| hash(at(recent, first, *other).order))),
        }
        self.forget();
        is_unfair
    }

    /// Two orders trade. O(log n).
    pub fn trades(&mut self, instrument: InstrumentId, orders: [OrderId; 2]) {
        for order in orders {
            // An order that is not remembered is older than any that comes.
            let order = (instrument, order);
            let is_it = |other: &u64| at(&self.recent, self.first, *other).order == order;
            if let Some(&number) = self.by_order.find(hash(order), is_it) {
                let arrival = &mut self.recent[(number - self.first) as usize];
                arrival.has_matched = true;
                let latest_ns = self.latest.entry(arrival.level).or_insert(arrival.stamp_ns);
                *latest_ns = arrival.stamp_ns.max(*latest_ns);
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
        self.recent.clear();
        self.by_order.clear();
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
        while let Some(&Arrival { order, level, stamp_ns, has_matched }) = self.recent.front()
            && (stamp_ns < oldest_ns || self.recent.len() > ORDERS_MAX)
        {
            // It may have come again since, having lost its place.
            let number = self.first;
            if let Ok(entry) = self.by_order.find_entry(hash(order), |other| *other == number) {
                entry.remove();
            }
            self.recent.pop_front();
            self.first += 1;
            // A later one that matched there is remembered itself, and takes the level with it.
            if has_matched && self.latest.get(&level).is_some_and(|latest_ns| *latest_ns <= stamp_ns) {
                self.latest.remove(&level);
            }
        }
    }
}
