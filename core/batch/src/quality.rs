//! How good a clearing is, as every validator finds it: which parts of the market it prices, how much more could have traded there, and how
//! much of what clearly wanted to trade did not.
//!
//! A clearing that keeps all rules of [`walras_clearing::verify`] may still leave offers aside: by trading less than could trade, by prices at
//! which those offers do not want to trade or have no counterpart, by leaving an asset without a price. So a block states two numbers,
//! which every validator works out anew and compares, and a market's rules say how large they may be ([`QualityMax`]):
//!
//! - the **gap**: of what could trade at the block's prices the share that does not, proven by potentials ([`crate::Certificate`]). Of each part,
//!   and the largest of them counts.
//! - the **unserved** share: of what offers *clearly in the money* want to sell (their limit is more than mu below the rate, so that by all
//!   prices that nearly clear the market they trade in full), the share that does not trade. For each asset twice, of the offers that sell it
//!   and, in value, of those that buy it; the largest of all counts, so that an asset in which little trades is no less protected
//!   than the others, and trading to and fro elsewhere hides nothing.
//!
//! A pool counts as the offers that it is like: what it sells at the rate less mu is clearly in the money.
//!
//! Skewed prices make the first small and the second large: whoever would buy what is too cheap, or sell what is too dear, finds no
//! counterpart. Good prices make both small.
//!
//! No asset of a part may be left out, not even one whose offers others could hardly take anything of. An offer that others can take a
//! thousandth of loses next to nothing by it, but those who would buy from it lose everything. A leader in league with a large holder
//! could keep them from trading, block after block, while the rest of the market goes on and nobody looks.
//!
//! A part ([`walras_clearing::Parts`]) is priced in full or **set aside** in full: then nothing of it trades, and it stays as it was. That is
//! always allowed, for prices are found by a heuristic, and whatever somebody sends, a block has to be possible; it delays and harms no
//! offer, and is counted. Where nothing at all is priced that could be, both numbers are everything.
//!
//! Amounts that are too small to measure in whole units do not count. For each pair that is as many units as make one of them half of the
//! share mu, and at most what a few single offers offer (`Dust`).

use walras_clearing::{
    AssetIndex, BatchMarket, Edition, Offer, Pair, PairOffers, PartLimit, Parts, PoolIndex, PoolSide, Proposal, Rules,
};
use walras_types::{Amount, BatchPrice, Mu, NetRate, PPB_ALL, QualityMax};

use crate::certificate::{Certificate, CertificateError, potentials_gap_ppb};
use crate::value::Unit;

/// How good a clearing is. In a block's header, so in its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Of what could trade at the prices, the share that does not, in parts per billion.
    pub gap_ppb: u32,
    /// Of what offers clearly in the money want to sell, the share that does not trade, in parts per billion: of the asset that is worst off.
    pub unserved_ppb: u32,
    /// Assets that could have traded with others and were left without a price, with their whole part.
    pub set_aside: u16,
}

/// Why a clearing is not good enough, or not as good as it is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QualityError {
    /// An asset has no price, and another that it can trade with has one.
    #[error(
        "asset {0} has no price, and assets that it could trade with have one: price all assets that lead to each other by offers, or none of them"
    )]
    Unpriced(AssetIndex),
    /// The evidence is none, or does not say what it is said to.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Another share is unserved than stated.
    #[error("{found} ppb of what is clearly in the money are unserved, and {stated} are stated: state what Certificate::find does")]
    Unserved {
        /// What the block says.
        stated: u32,
        /// What is so.
        found: u32,
    },
    /// More could trade than the market's rules allow to leave.
    #[error(
        "of what could trade {found} ppb do not, and the market's rules allow {most}: trade more, or leave the part without prices"
    )]
    GapBeyond {
        /// What is so.
        found: u32,
        /// What may be.
        most: u32,
    },
    /// More is unserved than the market's rules allow.
    #[error(
        "{found} ppb of what is clearly in the money are unserved, and the market's rules allow {most}: find better prices, or leave the part without"
    )]
    UnservedBeyond {
        /// What is so.
        found: u32,
        /// What may be.
        most: u32,
    },
}

/// Checks what a block says of its quality, and that it is good enough: O(pairs * log offers), of a proposal that was verified.
///
/// # Errors
/// See [`QualityError`].
pub(crate) fn check(
    certificate: &Certificate,
    market: &BatchMarket,
    proposal: &Proposal,
    rules: &Rules,
    most: &QualityMax,
) -> Result<Quality, QualityError> {
    let looks = Looks::new(market, proposal, rules);
    if let Some(asset) = looks.partly_priced {
        return Err(QualityError::Unpriced(asset));
    }
    let gap_ppb = potentials_gap_ppb(&certificate.potentials, &looks, rules)?;
    if certificate.gap_ppb != gap_ppb {
        return Err(CertificateError::Gap { stated: certificate.gap_ppb, proven: gap_ppb }.into());
    }
    let unserved_ppb = looks.unserved_ppb();
    if certificate.unserved_ppb != unserved_ppb {
        return Err(QualityError::Unserved { stated: certificate.unserved_ppb, found: unserved_ppb });
    }
    let quality = Quality { gap_ppb, unserved_ppb, set_aside: looks.set_aside };
    // What is empty has nothing to be measured.
    if looks.priced_parts().next().is_none() {
        return Ok(quality);
    }
    if gap_ppb > most.gap_ppb {
        return Err(QualityError::GapBeyond { found: gap_ppb, most: most.gap_ppb });
    }
    if unserved_ppb > most.unserved_ppb {
        return Err(QualityError::UnservedBeyond { found: unserved_ppb, most: most.unserved_ppb });
    }
    Ok(quality)
}

/// A verified clearing as its proposer judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessed {
    /// What a block of it states: [`Certificate::find`].
    pub certificate: Certificate,
    /// The parts that it prices and in which more is left undone than allowed, or of which it prices only some assets: they have to be set aside,
    /// or something better found. A block of it is accepted where there are none.
    pub beyond: Vec<usize>,
}

/// Judges a verified clearing, for its proposer: O(assets * pairs + pairs * log offers).
#[must_use]
pub fn assess(market: &BatchMarket, proposal: &Proposal, rules: &Rules, most: &QualityMax) -> Assessed {
    let looks = Looks::new(market, proposal, rules);
    let proofs = crate::certificate::find_parts(&looks, rules);
    let mut gaps = vec![0; looks.parts.count()];
    looks.priced_parts().zip(&proofs).for_each(|(part, (gap_ppb, _))| gaps[part] = *gap_ppb);
    let of_asset = |asset: AssetIndex| proposal.prices.get(asset.index()).copied().flatten();
    let is_partly = |part: usize| looks.parts.assets(part).any(|asset| of_asset(asset).is_none());
    let is_beyond = |part: usize| gaps[part] > most.gap_ppb || looks.only(part).unserved_ppb() > most.unserved_ppb;
    let is_any = |part: usize| looks.parts.assets(part).any(|asset| of_asset(asset).is_some());
    let beyond = (0..looks.parts.count()).filter(|&part| is_any(part) && (is_partly(part) || is_beyond(part))).collect();
    Assessed { certificate: Certificate::of_parts(&looks, &proofs), beyond }
}

/// A pair within a part that is priced, as its offers see it or as one pool does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairLook {
    pub(crate) part: usize,
    pub(crate) pair: Pair,
    pub(crate) price: BatchPrice,
    /// What offers clearly in the money sell.
    pub(crate) wanted: Amount,
    /// What offers sell whose limits hold, but for what whole units can not tell from what is sold.
    pub(crate) upper: Amount,
    pub(crate) sold: Amount,
    /// Of what is wanted, what is not sold, but for what whole units can not tell.
    pub(crate) missing: Amount,
}

/// A pair between parts that are priced, or of an asset that is in none: it can trade no more than what the commission leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) pair: Pair,
    pub(crate) price: BatchPrice,
    pub(crate) sold: Amount,
}

/// What a validator looks at of a clearing that was verified.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    pub(crate) parts: Parts,
    pub(crate) asset_count: usize,
    pub(crate) pairs: Vec<PairLook>,
    pub(crate) crossing: Vec<Crossing>,
    is_priced: Vec<bool>,
    set_aside: u16,
    /// The first asset without a price in a part where another has one.
    partly_priced: Option<AssetIndex>,
}

impl Looks {
    pub(crate) fn new(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Self {
        let parts = market.parts();
        let price = |asset: AssetIndex| proposal.prices.get(asset.index()).copied().flatten().filter(|price| !price.is_zero());
        let (mut is_priced, mut set_aside, mut partly_priced) = (vec![false; parts.count()], 0, None);
        for (part, is_priced) in is_priced.iter_mut().enumerate() {
            let (priced, unpriced): (Vec<_>, Vec<_>) = parts.assets(part).partition(|asset| price(*asset).is_some());
            *is_priced = unpriced.is_empty();
            if priced.is_empty() {
                // A market has at most `limits::ASSETS_MAX` assets.
                set_aside += unpriced.len() as u16;
            } else if let Some(first) = unpriced.first() {
                partly_priced = partly_priced.or(Some(*first));
            }
        }
        let mut crossing = Vec::new();
        let mut sides = Vec::with_capacity(market.books().len());
        for book in market.books() {
            let pair = book.pair();
            let (Some(of_sell), Some(of_buy)) = (price(pair.sell), price(pair.buy)) else { continue };
            let Some(rate) = NetRate::new(of_sell, of_buy, rules.commission) else { continue };
            let at = proposal.trades.binary_search_by_key(&pair, |trade| trade.pair);
            let sold = at.map_or(Amount::ZERO, |at| proposal.trades[at].sold);
            let Some(part) = parts.of_both(pair.sell, pair.buy).filter(|part| is_priced[*part]) else {
                crossing.push(Crossing { pair, price: of_sell, sold });
                continue;
            };
            let highest = rate.highest_limit();
            let clear = NetRate::less_mu(of_sell, of_buy, rules.mu).map_or(BatchPrice::ZERO, |rate| rate.highest_limit());
            let most = book.sells().units_holding(&rate, rules.edition, Amount::MAX);
            let clear = book.sells().units_at_or_below(clear.min(highest));
            let last = first_unfilled(book.sells(), &rate, rules.edition, sold);
            sides.push(Side { part, pair, price: of_sell, rate, last, offered: Offered { most, clear, sold } });
        }
        for (index, pool) in (0..).map(PoolIndex).zip(market.pools()) {
            let at = proposal.pools.binary_search_by_key(&index, |trade| trade.pool);
            let trade = at.ok().map(|at| proposal.pools[at]);
            for side in [PoolSide::First, PoolSide::Second] {
                let pair = pool.pair(side);
                let (Some(of_sell), Some(of_buy)) = (price(pair.sell), price(pair.buy)) else { continue };
                let Some(rate) = NetRate::new(of_sell, of_buy, rules.commission) else { continue };
                // A pool leads both ways, so its assets are in one part, and that is priced or partly so.
                let part = parts.of_both(pair.sell, pair.buy).filter(|part| is_priced[*part]);
                let sold = trade.filter(|trade| trade.side == side).map_or(Amount::ZERO, |trade| trade.sold);
                let most = pool.sold_most(side, &rate);
                if let Some(part) = part.filter(|_| !most.is_zero() || !sold.is_zero()) {
                    let clear =
                        NetRate::less_mu(of_sell, of_buy, rules.mu).map_or(Amount::ZERO, |rate| pool.sold_most(side, &rate));
                    let offered = Offered { most, clear: clear.min(most), sold };
                    // A pool sells any number of units: none of its offers is left in part.
                    sides.push(Side { part, pair, price: of_sell, rate, last: Amount::ZERO, offered });
                }
            }
        }
        let dust = Dust::new(market.asset_count(), &sides, rules);
        let pairs = sides.iter().map(|side| side.look(dust.of(side))).collect();
        let asset_count = market.asset_count();
        Self { parts, asset_count, pairs, crossing, is_priced, set_aside, partly_priced }
    }

    /// The parts that are priced.
    pub(crate) fn priced_parts(&self) -> impl Iterator<Item = usize> {
        (0..).zip(&self.is_priced).filter(|(_, is_priced)| **is_priced).map(|(part, _)| part)
    }

    /// As if only this part were priced.
    fn only(&self, part: usize) -> Self {
        let mut looks = self.clone();
        looks.pairs.retain(|look| look.part == part);
        looks.is_priced.iter_mut().enumerate().for_each(|(other, is_priced)| *is_priced &= other == part);
        looks
    }

    /// What both numbers are where no part is priced: everything, unless there is none.
    pub(crate) fn of_nothing_ppb(&self) -> Option<u32> {
        let is_any = self.priced_parts().next().is_some();
        (!is_any).then_some(if self.parts.count() == 0 { 0 } else { PPB_ALL })
    }

    /// The largest share of what is wanted that is missing, among the offers that sell an asset and among those that buy one. Rounded up.
    pub(crate) fn unserved_ppb(&self) -> u32 {
        if let Some(ppb) = self.of_nothing_ppb() {
            return ppb;
        }
        let of_asset = |asset: fn(&PairLook) -> AssetIndex, shown: fn(&PairLook, &Unit) -> [u128; 2]| {
            let mut tops = vec![Unit::LEAST; self.asset_count];
            for look in &self.pairs {
                let top = &mut tops[asset(look).index()];
                *top = (*top).max(Unit::of_one(look.wanted, look.price, SUM_BITS));
            }
            let mut sums = vec![[0_u128; 2]; self.asset_count];
            for look in &self.pairs {
                let at = asset(look).index();
                let [wanted, missing] = shown(look, &tops[at]);
                sums[at] = [sums[at][0] + wanted, sums[at][1] + missing];
            }
            sums.into_iter().map(|[wanted, missing]| share_ppb(missing, wanted)).max().unwrap_or(0)
        };
        let sold = of_asset(|look| look.pair.sell, |look, _| [look.wanted, look.missing].map(|units| units.get().into()));
        let worth = |look: &PairLook, unit: &Unit| {
            [look.wanted, look.missing].map(|units| unit.worth_down(units, look.price).unsigned_abs())
        };
        sold.max(of_asset(|look| look.pair.buy, worth))
    }
}

/// What sellers of a pair, or a pool, offer at a rate.
#[derive(Clone, Copy, Debug)]
struct Offered {
    most: Amount,
    /// Of that, what is clearly in the money.
    clear: Amount,
    sold: Amount,
}

/// The offers of a pair within a part that is priced, or a pool that sells in it.
#[derive(Clone, Copy, Debug)]
struct Side {
    part: usize,
    pair: Pair,
    price: BatchPrice,
    rate: NetRate,
    /// The size of the offer that trades in part, or else of the first offer that could trade and does not.
    last: Amount,
    offered: Offered,
}

impl Side {
    fn look(&self, dust: Amount) -> PairLook {
        let Self { part, pair, price, offered: Offered { most, clear: wanted, sold }, .. } = *self;
        let beyond_dust = |more: Amount| less(less(more, sold), dust);
        let upper = sold.checked_add(beyond_dust(most)).expect("at most what stands");
        PairLook { part, pair, price, wanted, upper, sold, missing: beyond_dust(wanted) }
    }
}

/// Bits of the largest value in a sum over the pairs of an asset: with 30 of a share and 16 of their count, fewer than 127.
const SUM_BITS: u32 = 80;

/// A share in parts per billion, rounded up; none of nothing.
pub(crate) fn share_ppb(part: u128, whole: u128) -> u32 {
    let part = part * u128::from(PPB_ALL);
    // At most everything.
    part.checked_div(whole).map_or(0, |share| (share + u128::from(share * whole < part)).min(u128::from(PPB_ALL)) as u32)
}

/// The amounts that are too small to measure in whole units.
///
/// In a pair, whole units may hinder only the one offer that trades in part, by up to `1 / mu` units of either asset: a full fill keeps
/// every limit that holds at the rate. What this offer can not trade leaves others without a counterpart, in pairs of the same assets.
/// So what does not count is bounded by the size of such offers. A leader that leaves fifteen hundred shares in small offers unserved
/// is caught, though they are fewer units than the share mu tells apart.
enum Dust {
    /// For each pair, as many units of either asset as make one of them half of the share mu.
    First(Mu),
    /// At most that, and at most the size of the last offers in the pairs of its assets: for each asset the largest of any pair, in its
    /// units, and at least two.
    Second(Mu, Vec<Amount>),
}

impl Dust {
    fn new(asset_count: usize, sides: &[Side], rules: &Rules) -> Self {
        if rules.edition == Edition::First {
            return Self::First(rules.mu);
        }
        let mut of_assets = vec![Amount::new(2).expect("it is small"); asset_count];
        for side in sides {
            let last = side.last.min(in_units(&side.rate, rules.mu));
            let bought = side.rate.bought_up(last).unwrap_or(Amount::MAX);
            for (asset, units) in [(side.pair.sell, last), (side.pair.buy, bought)] {
                let most = &mut of_assets[asset.index()];
                *most = units.max(*most);
            }
        }
        Self::Second(rules.mu, of_assets)
    }

    /// In units of what is sold.
    fn of(&self, side: &Side) -> Amount {
        match self {
            Self::First(mu) => in_units(&side.rate, *mu),
            Self::Second(mu, of_assets) => {
                let [sold, bought] = [side.pair.sell, side.pair.buy].map(|asset| of_assets[asset.index()]);
                let units = sold.max(side.rate.sold_up(bought).unwrap_or(Amount::MAX));
                units.min(in_units(&side.rate, *mu))
            }
        }
    }
}

/// As many units of either asset as make one of them half of the share mu, in units of what is sold.
fn in_units(rate: &NetRate, mu: Mu) -> Amount {
    let units = Amount::new(2 << mu.exponent()).expect("at most 2^31");
    rate.sold_up(units).unwrap_or(Amount::MAX).max(units)
}

/// The size of the first offer that is not sold in full, if its limit holds; else zero.
fn first_unfilled(offers: &PairOffers<Offer>, rate: &NetRate, edition: Edition, sold: Amount) -> Amount {
    let Some(split) = offers.split(sold) else { return Amount::ZERO };
    let first = offers.as_slice().get(split.full_count);
    first.filter(|offer| PartLimit::of(*offer, edition).holds_at(rate)).map_or(Amount::ZERO, Offer::amount)
}

fn less(amount: Amount, by: Amount) -> Amount {
    amount.checked_sub(by).unwrap_or(Amount::ZERO)
}
