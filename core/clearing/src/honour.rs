//! Which parts of an offer whole units can honour.
//!
//! A part of an offer sells `s` for `b`, whole numbers with `limit <= b / s <= rate`. There may be none such: at a rate of 3/2, an offer
//! with the limit 3/2 can sell 2 for 3, and not 1 or 3. If `b / s` is such a fraction, so is every multiple of it; the one with the
//! smallest parts is the first that the Stern-Brocot tree reaches.

use walras_types::{Amount, BatchPrice, NetRate};

use crate::pair_offers::{LeastRatio, Stands};
use crate::proposal::Edition;

/// Parts that are tried one by one from the top before multiples are taken.
const TRIES_MAX: u64 = 32;

/// The limit that a part of an offer must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartLimit {
    /// That of its key.
    OfKey(BatchPrice),
    /// Its effective limit, before it was rounded.
    Exact(LeastRatio),
}

impl PartLimit {
    /// That of an offer.
    #[must_use]
    pub fn of(offer: &impl Stands, edition: Edition) -> Self {
        match edition {
            Edition::First => Self::OfKey(offer.key().limit),
            Edition::Second => Self::Exact(offer.least_ratio()),
        }
    }

    /// Whether a part that sells and buys so much keeps it, exactly.
    #[must_use]
    pub fn is_honoured_by(&self, sold: Amount, bought: Amount) -> bool {
        match self {
            Self::OfKey(limit) => limit.is_honoured_by(sold, bought),
            Self::Exact(ratio) => ratio.is_honoured_by(sold, bought),
        }
    }

    /// Whether it holds at this rate: of an exact limit, whether a full fill keeps it in whole units.
    #[must_use]
    pub fn holds_at(&self, rate: &NetRate) -> bool {
        match self {
            Self::OfKey(limit) => rate.holds(*limit),
            Self::Exact(LeastRatio { bought, sold }) => rate.pays_at_least(sold.get().into(), bought.get().into()),
        }
    }

    /// Whether `bought / sold` is at least the limit, for any two numbers.
    fn is_at_most_ratio(&self, bought: u64, sold: u64) -> bool {
        match self {
            Self::OfKey(limit) => limit.is_at_most_ratio(bought, sold),
            // 63 + 64 bits.
            Self::Exact(ratio) => {
                u128::from(ratio.bought.get()) * u128::from(sold) <= u128::from(bought) * u128::from(ratio.sold.get())
            }
        }
    }
}

/// A part, at most `part`, that an offer with this limit can sell at this rate and get its limit in whole units; zero when there is none.
/// The largest, or less than the smallest such part below it. The limit must hold at the rate.
#[must_use]
pub fn honourable_sold(limit: PartLimit, rate: &NetRate, part: Amount) -> Amount {
    let is_honoured = |&sold: &u64| {
        let sold = Amount::new(sold).expect("at most the part");
        rate.bought_down(sold).is_some_and(|bought| limit.is_honoured_by(sold, bought))
    };
    let first = part.get().saturating_sub(TRIES_MAX);
    let near = (first + 1..=part.get()).rev().find(is_honoured);
    near.map_or_else(
        || simplest_within(limit, rate, part.get()).map_or(Amount::ZERO, |(_, sold)| multiple(sold, part)),
        |sold| Amount::new(sold).expect("at most the part"),
    )
}

/// A part, at most `part`, that a buy offer with this limit can buy at this rate and sell in whole units no more than its limit allows;
/// zero when there is none. The largest, or less than the smallest such part below it. The limit must hold at the rate.
#[must_use]
pub fn honourable_bought(limit: PartLimit, rate: &NetRate, part: Amount) -> Amount {
    let is_honoured = |&bought: &u64| {
        let bought = Amount::new(bought).expect("at most the part");
        rate.sold_up(bought).is_some_and(|sold| limit.is_honoured_by(sold, bought))
    };
    let first = part.get().saturating_sub(TRIES_MAX);
    let near = (first + 1..=part.get()).rev().find(is_honoured);
    near.map_or_else(
        || simplest_within(limit, rate, Amount::MAX.get()).map_or(Amount::ZERO, |(bought, _)| multiple(bought, part)),
        |bought| Amount::new(bought).expect("at most the part"),
    )
}

/// The largest multiple of `unit` that is at most `part`.
fn multiple(unit: u64, part: Amount) -> Amount {
    part.get().checked_rem(unit).and_then(|rest| Amount::new(part.get() - rest)).unwrap_or(Amount::ZERO)
}

/// `(b, s)`, the fraction with the smallest parts such that `limit <= b / s <= rate` and `1 <= s <= sold_max`, if there is one.
///
/// Steps of one direction are taken together, by doubling: O(log^2) questions. Numbers that would overflow stop at the maximum,
/// where they are above every limit and rate that an amount can meet.
fn simplest_within(limit: PartLimit, rate: &NetRate, sold_max: u64) -> Option<(u64, u64)> {
    let is_low = |&(bought, sold): &(u64, u64)| !limit.is_at_most_ratio(bought, sold);
    let is_high = |&(bought, sold): &(u64, u64)| !rate.pays_at_least(u128::from(sold), u128::from(bought));
    // low < limit and rate < high, neighbours in the tree: everything between is a sum of multiples of them.
    let (mut low, mut high) = ((0_u64, 1_u64), (1_u64, 0_u64));
    loop {
        let middle = step(low, high, 1);
        if middle.1 > sold_max || middle.0 == u64::MAX {
            return None;
        } else if is_low(&middle) {
            low = furthest(low, high, sold_max, is_low);
        } else if is_high(&middle) {
            high = furthest(high, low, sold_max, is_high);
        } else {
            return Some(middle);
        }
    }
}

/// `from + count * by`, part by part.
fn step(from: (u64, u64), by: (u64, u64), count: u64) -> (u64, u64) {
    let part = |from: u64, by: u64| from.saturating_add(by.saturating_mul(count));
    (part(from.0, by.0), part(from.1, by.1))
}

/// The furthest `from + count * by` that is on this side, given that one step is.
fn furthest(from: (u64, u64), by: (u64, u64), sold_max: u64, is_here: impl Fn(&(u64, u64)) -> bool) -> (u64, u64) {
    let reaches = |count: u64| {
        let there = step(from, by, count);
        there.1 <= sold_max && there.0 < u64::MAX && is_here(&there)
    };
    let mut count = 1_u64;
    while count < 1 << 62 && reaches(count * 2) {
        count *= 2;
    }
    let mut bit = count;
    while bit > 1 {
        bit /= 2;
        if reaches(count + bit) {
            count += bit;
        }
    }
    step(from, by, count)
}
