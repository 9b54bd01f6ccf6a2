//! Every account's own standing offers in batch markets and the last fills of them: the engine keeps offers by pair and price, and could
//! find those of one account only by looking at all.

use std::collections::{BTreeMap, VecDeque};

use walras_types::{AccountId, Amount, AssetId, BatchMarketId, BatchPrice, DropReason, TimeNs, TransactionSeq, effective_limit};

use crate::limits::OFFER_FILLS_MAX;

/// An offer that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingOffer {
    /// Where.
    pub market: BatchMarketId,
    /// The number of the transaction that created it.
    pub sequence: TransactionSeq,
    /// What it sells.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// Units left.
    pub amount: Amount,
    /// The limit as its owner stated it.
    pub stated: BatchPrice,
    /// The limit as whole units can honour it, which changes when a part is sold: its place among others, to cancel it by.
    pub limit: BatchPrice,
    /// Its place among others of one limit, likewise.
    pub tie: u64,
    /// The block that it came with.
    pub block: u64,
}

/// What an offer sold in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferFill {
    /// Where.
    pub market: BatchMarketId,
    /// Which offer.
    pub sequence: TransactionSeq,
    /// In which block.
    pub block: u64,
    /// What it sold.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// Units sold.
    pub sold: Amount,
    /// Units bought.
    pub bought: Amount,
    /// When.
    pub time: TimeNs,
}

/// What became of one of an account's transactions or offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferChange {
    /// It stands.
    Opened(StandingOffer),
    /// It traded; what is left stands, if anything is.
    Traded {
        /// What it traded.
        fill: OfferFill,
        /// What is left.
        left: Amount,
    },
    /// Its owner took it out, or what was left.
    Cancelled {
        /// Where.
        market: BatchMarketId,
        /// Which.
        sequence: TransactionSeq,
        /// What it sold.
        sell: AssetId,
        /// Units that did not trade.
        amount: Amount,
    },
    /// The transaction was left out of its batch.
    Dropped {
        /// Where.
        market: BatchMarketId,
        /// Which.
        sequence: TransactionSeq,
        /// Why.
        reason: DropReason,
    },
}

/// All accounts' offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Numbers of transactions are an account's, whatever the market.
    pub(crate) standing: BTreeMap<AccountId, BTreeMap<TransactionSeq, StandingOffer>>,
    /// Oldest first.
    pub(crate) fills: BTreeMap<AccountId, VecDeque<OfferFill>>,
}

impl Offers {
    /// An account's standing offers, oldest first.
    pub fn of(&self, account: AccountId) -> impl Iterator<Item = &StandingOffer> {
        self.standing.get(&account).into_iter().flat_map(BTreeMap::values)
    }

    /// An account's last fills, newest first, [`OFFER_FILLS_MAX`] at most.
    pub fn fills_newest_first(&self, account: AccountId) -> impl Iterator<Item = &OfferFill> {
        self.fills.get(&account).into_iter().flat_map(|fills| fills.iter().rev())
    }

    /// How many more offers stand after this change.
    pub(crate) fn apply(&mut self, account: AccountId, change: &OfferChange) -> i64 {
        match change {
            OfferChange::Opened(offer) => {
                let before = self.standing.entry(account).or_default().insert(offer.sequence, *offer);
                i64::from(before.is_none())
            }
            OfferChange::Traded { fill, left } => {
                self.push_fill(account, *fill);
                if left.is_zero() {
                    return self.remove(account, fill.sequence);
                }
                if let Some(offer) = self.standing.get_mut(&account).and_then(|of| of.get_mut(&fill.sequence)) {
                    offer.amount = *left;
                    offer.limit = effective_limit(offer.stated, *left).unwrap_or(offer.limit);
                }
                0
            }
            OfferChange::Cancelled { sequence, .. } => self.remove(account, *sequence),
            OfferChange::Dropped { .. } => 0,
        }
    }

    pub(crate) fn push_fill(&mut self, account: AccountId, fill: OfferFill) {
        let fills = self.fills.entry(account).or_default();
        if fills.len() == OFFER_FILLS_MAX {
            fills.pop_front();
        }
        fills.push_back(fill);
    }

    fn remove(&mut self, account: AccountId, sequence: TransactionSeq) -> i64 {
        let Some(of) = self.standing.get_mut(&account) else { return 0 };
        let gone = of.remove(&sequence).is_some();
        if of.is_empty() {
            self.standing.remove(&account);
        }
        -i64::from(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(units: u64) -> Amount {
        Amount::new(units).unwrap()
    }

    #[test]
    fn an_offer_stands_until_it_is_sold_or_cancelled() {
        let (account, market, sequence) = (AccountId(4), BatchMarketId(1), TransactionSeq(9));
        let stated = BatchPrice::from_decimal("0.3", walras_types::Rounding::Up).unwrap();
        let offer = |sequence| StandingOffer {
            market,
            sequence,
            sell: AssetId(0),
            buy: AssetId(1),
            amount: amount(10),
            stated,
            limit: effective_limit(stated, amount(10)).unwrap(),
            tie: 5,
            block: 2,
        };
        let mut offers = Offers::default();
        assert_eq!(offers.apply(account, &OfferChange::Opened(offer(sequence))), 1);
        assert_eq!(offers.apply(account, &OfferChange::Opened(offer(TransactionSeq(10)))), 1);
        let fill = |sold| OfferFill {
            market,
            sequence,
            block: 2,
            sell: AssetId(0),
            buy: AssetId(1),
            sold: amount(sold),
            bought: amount(1),
            time: TimeNs(3),
        };
        assert_eq!(offers.apply(account, &OfferChange::Traded { fill: fill(8), left: amount(2) }), 0);
        let left = *offers.of(account).next().unwrap();
        assert_eq!((left.amount, Some(left.limit)), (amount(2), effective_limit(stated, amount(2))));
        assert_ne!(left.limit, offer(sequence).limit, "two units can not be honoured as finely as ten");
        assert_eq!(offers.apply(account, &OfferChange::Traded { fill: fill(2), left: Amount::ZERO }), -1);
        let cancelled = OfferChange::Cancelled { market, sequence: TransactionSeq(10), sell: AssetId(0), amount: amount(10) };
        assert_eq!(offers.apply(account, &cancelled), -1);
        assert_eq!(offers.apply(account, &cancelled), 0, "it is gone");
        assert_eq!(offers.of(account).count(), 0);
        assert_eq!(offers.fills_newest_first(account).map(|fill| fill.sold.get()).collect::<Vec<_>>(), [2, 8]);
        for _ in 0..OFFER_FILLS_MAX {
            offers.push_fill(account, fill(1));
        }
        assert_eq!(offers.fills_newest_first(account).count(), OFFER_FILLS_MAX);
    }
}
