//! What a proposal trades.

use std::collections::{BTreeMap, BTreeSet};

use walras_clearing::{AssetIndex, LowerBounds, Offer, OfferKey, Pair, PairTrade, Proposal};
use walras_types::{AccountId, Amount, BatchPrice, NetRate, OfferName, PublicKey};

use super::venue::{Standing, Venue};

/// What can be wrong with a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objection {
    /// The clearing breaks a rule: a number of [`walras_clearing::Rejected`].
    Clearing(u16),
    /// The marginal keys are not those of the trades.
    Marginal,
    /// An asset has no price, and one has that it leads to and from by offers.
    Unpriced,
}

/// What one offer trades.
#[derive(Clone, Copy, Debug)]
struct Traded {
    pair: Pair,
    key: OfferKey,
    sold: Amount,
    bought: Amount,
}

fn wide(amount: Amount) -> u128 {
    u128::from(amount.get())
}

fn signed(amount: Amount) -> i128 {
    i128::from(amount.get())
}

fn amount(units: u128) -> Amount {
    Amount::from_wide(units).expect("a part of what there is")
}

impl Venue {
    /// The last offer that trades in each pair, when it trades as proposed. `None` when it can not.
    #[must_use]
    pub fn marginal(&self, proposal: &Proposal) -> Option<Vec<(Pair, OfferKey)>> {
        let (fills, objections) = self.fills(proposal);
        objections.is_empty().then(|| {
            let last: BTreeMap<Pair, OfferKey> = fills.iter().map(|fill| (fill.pair, fill.key)).collect();
            last.into_iter().collect()
        })
    }

    /// Clears the closed batch: trades as proposed, and lets all else that waited take effect. Says which accounts got which keys:
    /// those that were created, then those that set another.
    ///
    /// # Errors
    /// All that is wrong with the proposal. Nothing changed.
    ///
    /// # Panics
    /// When no batch is closed.
    pub fn clear(
        &mut self,
        proposal: &Proposal,
        marginal: &[(Pair, OfferKey)],
    ) -> Result<Vec<(AccountId, PublicKey)>, BTreeSet<Objection>> {
        let (fills, mut objections) = self.fills(proposal);
        // Of what can not trade no offer is the last that trades, so any key is wrong.
        if self.marginal(proposal).is_none_or(|expected| expected != marginal) {
            objections.insert(Objection::Marginal);
        }
        if self.prices_in_part(proposal) {
            objections.insert(Objection::Unpriced);
        }
        if !objections.is_empty() {
            return Err(objections);
        }
        fills.into_iter().for_each(|fill| self.trade(fill));
        let pending = self.pending.take().expect("a batch is closed before it is cleared");
        self.block += 1;
        Ok(self.finish(pending))
    }

    /// Whether of two assets that lead to each other by offers one has a price and the other has none.
    fn prices_in_part(&self, proposal: &Proposal) -> bool {
        let mut leads: BTreeSet<Pair> = self.pairs().into_iter().filter(|pair| self.standing(*pair).next().is_some()).collect();
        for via in (0..self.assets.len() as u16).map(AssetIndex) {
            for Pair { sell, buy } in self.pairs() {
                if leads.contains(&Pair { sell, buy: via }) && leads.contains(&Pair { sell: via, buy }) {
                    leads.insert(Pair { sell, buy });
                }
            }
        }
        let is_priced = |asset| proposal.prices.get(AssetIndex::index(asset)).copied().flatten().is_some();
        let mut both = leads.iter().filter(|pair| leads.contains(&Pair { sell: pair.buy, buy: pair.sell }));
        both.any(|pair| is_priced(pair.sell) != is_priced(pair.buy))
    }

    fn trade(&mut self, Traded { pair, key, sold, bought }: Traded) {
        let account = OfferName::of_number(key.id.0).account;
        let (sell, buy) = (self.assets[pair.sell.index()], self.assets[pair.buy.index()]);
        let Standing { stated, amount: whole } = self.offers.remove(&(pair, key)).expect("it was found standing");
        self.add_reserved(account, sell, -signed(sold));
        self.add_available(account, buy, signed(bought));
        // The venue gets what is sold and gives what is bought; in the end something is left of each asset, or nothing. In between it may
        // owe, so it is counted modulo 2^128.
        let fees = self.fees.entry(sell).or_default();
        *fees = fees.wrapping_add(wide(sold));
        let fees = self.fees.entry(buy).or_default();
        *fees = fees.wrapping_sub(wide(bought));
        let rest = amount(wide(whole) - wide(sold));
        if rest.is_zero() {
            return;
        }
        match Offer::new(stated, key.tie, key.id, rest) {
            Ok(offer) => drop(self.offers.insert((pair, offer.key()), Standing { stated, amount: rest })),
            Err(_) => {
                self.add_reserved(account, sell, -signed(rest));
                self.add_available(account, sell, signed(rest));
            }
        }
    }

    /// What each offer trades, as far as it can, and all that is wrong.
    fn fills(&self, proposal: &Proposal) -> (Vec<Traded>, BTreeSet<Objection>) {
        let mut objections = self.form(proposal);
        let mut fills = Vec::new();
        // From here on all trades are of pairs that have a rate; whatever else is wrong is found beside each other.
        if objections.iter().all(|objection| *objection > Objection::Clearing(6)) {
            for pair in self.pairs() {
                self.pair_fills(pair, proposal, &mut fills, &mut objections);
            }
            self.check_deficit(proposal, &mut objections);
        }
        (fills, objections)
    }

    fn pairs(&self) -> Vec<Pair> {
        let assets = || (0..self.assets.len() as u16).map(AssetIndex);
        assets().flat_map(|sell| assets().map(move |buy| Pair { sell, buy })).filter(|pair| pair.sell != pair.buy).collect()
    }

    /// Whether a proposal is one at all.
    fn form(&self, proposal: &Proposal) -> BTreeSet<Objection> {
        let mut objections = BTreeSet::new();
        let mut check = |is_right: bool, number| {
            if !is_right {
                objections.insert(Objection::Clearing(number));
            }
        };
        let asset_count = self.assets.len();
        check(proposal.prices.len() == asset_count, 1);
        check(!proposal.prices.contains(&Some(BatchPrice::ZERO)), 2);
        let pairs: Vec<Pair> = proposal.trades.iter().map(|trade| trade.pair).collect();
        check(pairs.windows(2).all(|two| two[0] < two[1]), 3);
        for PairTrade { pair, sold, bought_by_buy_offers } in &proposal.trades {
            let is_known = pair.sell.index() < asset_count && pair.buy.index() < asset_count;
            check(is_known, 4);
            check(pair.sell != pair.buy, 5);
            let is_priced = price(proposal, pair.sell).is_some() && price(proposal, pair.buy).is_some();
            check(is_priced || (sold.is_zero() && bought_by_buy_offers.is_zero()), 6);
            // Nobody offers to buy a fixed amount.
            check(bought_by_buy_offers.is_zero(), 10);
        }
        check(proposal.pools.windows(2).all(|two| two[0].pool < two[1].pool), 13);
        // There are no pools.
        check(proposal.pools.is_empty(), 14);
        objections
    }

    fn rate(&self, pair: Pair, proposal: &Proposal) -> Option<NetRate> {
        NetRate::new(price(proposal, pair.sell)?, price(proposal, pair.buy)?, self.rules.commission)
    }

    fn pair_fills(&self, pair: Pair, proposal: &Proposal, fills: &mut Vec<Traded>, objections: &mut BTreeSet<Objection>) {
        let Some(rate) = self.rate(pair, proposal) else { return };
        let clear_rate = price(proposal, pair.sell)
            .zip(price(proposal, pair.buy))
            .and_then(|(sell, buy)| NetRate::less_mu(sell, buy, self.rules.mu))
            .expect("both have a price");
        let sold: Amount = proposal.trades.iter().find(|trade| trade.pair == pair).map_or(Amount::ZERO, |trade| trade.sold);
        let sum_where = |is_wanted: &dyn Fn(BatchPrice) -> bool| -> u128 {
            self.standing(pair).filter(|(key, _)| is_wanted(key.limit)).map(|(_, standing)| wide(standing.amount)).sum()
        };
        let holds = |(key, standing): &(OfferKey, Standing)| self.part_limit(*key, *standing).holds_at(&rate);
        let most = self.standing(pair).take_while(holds).map(|(_, standing)| wide(standing.amount)).sum();
        let least = sum_where(&|limit| rate.holds(limit) && clear_rate.holds(limit));
        if wide(sold) > most {
            objections.insert(Objection::Clearing(7));
            return;
        }
        if wide(sold) < least && self.rules.lower_bounds == LowerBounds::Required {
            objections.insert(Objection::Clearing(8));
        }
        let mut left = wide(sold);
        for (key, standing) in self.standing(pair) {
            let part = left.min(wide(standing.amount));
            if part == 0 {
                break;
            }
            left -= part;
            let Some(bought) = rate.bought_down(amount(part)) else {
                objections.insert(Objection::Clearing(12));
                return;
            };
            if part < wide(standing.amount) && !self.part_limit(key, standing).is_honoured_by(amount(part), bought) {
                objections.insert(Objection::Clearing(9));
            }
            assert!(
                part < wide(standing.amount) || standing.stated.is_honoured_by(amount(part), bought),
                "an offer whose effective limit holds gets its stated limit: {key:?} sells {part} for {bought}"
            );
            fills.push(Traded { pair, key, sold: amount(part), bought });
        }
    }

    /// Of each asset at least as much is sold as bought, if each pair as a whole is paid.
    fn check_deficit(&self, proposal: &Proposal, objections: &mut BTreeSet<Objection>) {
        let mut left = vec![0_i128; self.assets.len()];
        for trade in &proposal.trades {
            let Some(rate) = self.rate(trade.pair, proposal) else { continue };
            let Some(bought) = rate.bought_down(trade.sold) else {
                objections.insert(Objection::Clearing(12));
                return;
            };
            left[trade.pair.sell.index()] += signed(trade.sold);
            left[trade.pair.buy.index()] -= signed(bought);
        }
        if left.iter().any(|&units| units < 0) {
            objections.insert(Objection::Clearing(18));
        }
    }
}

fn price(proposal: &Proposal, asset: AssetIndex) -> Option<BatchPrice> {
    proposal.prices.get(asset.index()).copied().flatten()
}
