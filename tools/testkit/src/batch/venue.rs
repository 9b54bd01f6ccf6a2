//! The state that blocks change.

use std::collections::{BTreeMap, BTreeSet};

use walras_clearing::{AssetIndex, Edition, LeastRatio, OfferKey, Pair, PartLimit, Rules};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, IssuedAmount, OfferName,
    Payment, PublicKey,
};

/// What an account has of an asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Free to be used.
    pub available: u128,
    /// In offers that stand, and in what the closed batch takes from it or gives back to it.
    pub reserved: u128,
}

/// An offer that stands, beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The limit as its account stated it.
    pub stated: BatchPrice,
    /// What is left to be sold.
    pub amount: Amount,
}

/// A batch that is closed: what takes effect when it is cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    /// The transactions that are kept.
    pub(super) kept: Vec<BatchTransaction>,
    /// What cancelled offers had left.
    pub(super) refunds: Vec<(AccountId, AssetId, Amount)>,
    /// What each of its accounts costs.
    pub(super) account_fee: Option<AccountFee>,
    /// Accounts whose keys were replaced since: it sets none of theirs.
    pub(super) keys_kept: BTreeSet<AccountId>,
}

/// A venue with one batch market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Venue {
    /// The market.
    pub market: BatchMarketId,
    /// Its assets, by [`AssetIndex`].
    pub assets: Vec<AssetId>,
    /// What proposals are measured by.
    pub rules: Rules,
    /// What an account costs that a transaction of the next batch opens.
    pub account_fee: Option<AccountFee>,
    /// Accounts have the ids below.
    pub account_count: u32,
    /// Assets have the ids below, whether they are in the market or not.
    pub asset_count: u32,
    /// Who has what; what is not here is nothing.
    pub holdings: BTreeMap<(AccountId, AssetId), Holding>,
    /// What there is of each asset.
    pub supply: BTreeMap<AssetId, u128>,
    /// What of that is the venue's.
    pub fees: BTreeMap<AssetId, u128>,
    /// Who may make and destroy units.
    pub issuers: BTreeMap<AssetId, AccountId>,
    /// Who may do nothing.
    pub suspended: BTreeSet<AccountId>,
    /// The keys of accounts.
    pub keys: BTreeMap<AccountId, PublicKey>,
    /// Accounts whose keys were replaced since a transaction was collected that sets them, or a moment before: the next batch sets none of
    /// theirs.
    pub(super) keys_kept: BTreeSet<AccountId>,
    /// The highest number that each account used; 0 if it is not here.
    pub last: BTreeMap<AccountId, u64>,
    /// The number of the block that is next to be cleared.
    pub block: u64,
    /// What stands.
    pub offers: BTreeMap<(Pair, OfferKey), Standing>,
    /// The batch that waits to be cleared.
    pub(super) pending: Option<Pending>,
}

impl Venue {
    /// A venue without accounts and with so many assets, of which the market has some.
    #[must_use]
    pub fn new(market: BatchMarketId, asset_count: u32, assets: Vec<AssetId>, rules: Rules) -> Self {
        Self {
            market,
            assets,
            rules,
            account_fee: None,
            account_count: 0,
            asset_count,
            holdings: BTreeMap::new(),
            supply: BTreeMap::new(),
            fees: BTreeMap::new(),
            issuers: BTreeMap::new(),
            suspended: BTreeSet::new(),
            keys: BTreeMap::new(),
            keys_kept: BTreeSet::new(),
            last: BTreeMap::new(),
            block: 1,
            offers: BTreeMap::new(),
            pending: None,
        }
    }

    /// The operator replaces an account's key. Neither these transactions, which are collected, nor those of the closed batch set another.
    pub fn replace_key(&mut self, account: AccountId, key: PublicKey, collected: &[BatchTransaction]) {
        self.keys.insert(account, key);
        let sets_key = |t: &BatchTransaction| t.account == account && matches!(t.operation, BatchOperation::SetKey(_));
        self.keys_kept.extend(collected.iter().any(sets_key).then_some(account));
        if let Some(pending) = &mut self.pending {
            pending.keys_kept.insert(account);
        }
    }

    /// A transaction came that sets an account's key, a moment after the operator replaced it: the next batch sets none of that account's.
    pub fn keep_key(&mut self, account: AccountId) {
        self.keys_kept.insert(account);
    }

    /// What an account has.
    #[must_use]
    pub fn holding(&self, account: AccountId, asset: AssetId) -> Holding {
        self.holdings.get(&(account, asset)).copied().unwrap_or_default()
    }

    /// What there is of an asset.
    #[must_use]
    pub fn supply_of(&self, asset: AssetId) -> u128 {
        self.supply.get(&asset).copied().unwrap_or_default()
    }

    /// The index in the market of an asset, if it is there.
    #[must_use]
    pub fn index_of(&self, asset: AssetId) -> Option<AssetIndex> {
        let place = self.assets.iter().position(|&in_market| in_market == asset)?;
        Some(AssetIndex(u16::try_from(place).expect("a market has at most 256 assets")))
    }

    /// The pair of two assets of the market.
    #[must_use]
    pub fn pair(&self, sell: AssetId, buy: AssetId) -> Option<Pair> {
        Some(Pair { sell: self.index_of(sell)?, buy: self.index_of(buy)? })
    }

    /// What stands in a pair, by key.
    pub fn standing(&self, pair: Pair) -> impl Iterator<Item = (OfferKey, Standing)> {
        self.offers.iter().filter(move |((of, _), _)| *of == pair).map(|((_, key), standing)| (*key, *standing))
    }

    /// The limit that holds or not at a rate, and that a part of an offer must keep.
    pub(super) fn part_limit(&self, key: OfferKey, standing: Standing) -> PartLimit {
        match self.rules.edition {
            Edition::First => PartLimit::OfKey(key.limit),
            Edition::Second => {
                let bought = standing.stated.bought_at_least(standing.amount).expect("what stands can be filled");
                PartLimit::Exact(LeastRatio { bought, sold: standing.amount })
            }
        }
    }

    /// Adds to what is available, or takes from it.
    pub(super) fn add_available(&mut self, account: AccountId, asset: AssetId, units: i128) {
        let holding = self.holdings.entry((account, asset)).or_default();
        holding.available = holding.available.checked_add_signed(units).expect("what is kept never overdraws");
    }

    /// Adds to what is reserved, or takes from it.
    pub(super) fn add_reserved(&mut self, account: AccountId, asset: AssetId, units: i128) {
        let holding = self.holdings.entry((account, asset)).or_default();
        holding.reserved = holding.reserved.checked_add_signed(units).expect("an offer's amount is reserved");
    }

    /// Adds to what there is of an asset, or takes from it.
    pub(super) fn add_supply(&mut self, asset: AssetId, units: i128) {
        let supply = self.supply.entry(asset).or_default();
        *supply = supply.checked_add_signed(units).expect("only what is there is burnt");
    }

    /// Checks what holds of every state, by counting anew.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_invariants(&self) {
        let mut held: BTreeMap<AssetId, u128> = self.fees.clone();
        for ((account, asset), holding) in &self.holdings {
            assert!(account.0 < self.account_count && asset.0 < self.asset_count, "somebody unknown has something");
            *held.entry(*asset).or_default() += holding.available + holding.reserved;
        }
        let mut reserved: BTreeMap<(AccountId, AssetId), u128> = BTreeMap::new();
        for ((pair, key), standing) in &self.offers {
            let name = OfferName::of_number(key.id.0);
            *reserved.entry((name.account, self.assets[pair.sell.index()])).or_default() += u128::from(standing.amount.get());
        }
        if let Some(pending) = &self.pending {
            for BatchTransaction { account, operation, .. } in &pending.kept {
                if let BatchOperation::Payment(Payment { asset, amount, .. })
                | BatchOperation::Issue(IssuedAmount { asset, amount })
                | BatchOperation::Burn(IssuedAmount { asset, amount }) = operation
                {
                    *reserved.entry((*account, *asset)).or_default() += u128::from(amount.get());
                }
                if let (BatchOperation::CreateAccount(_), Some(fee)) = (operation, pending.account_fee) {
                    *reserved.entry((*account, fee.asset)).or_default() += u128::from(fee.amount.get());
                }
            }
            for (account, asset, amount) in &pending.refunds {
                *reserved.entry((*account, *asset)).or_default() += u128::from(amount.get());
            }
        }
        for asset in (0..self.asset_count).map(AssetId) {
            let supply = self.supply_of(asset);
            assert!(supply <= u128::from(AMOUNT_MAX), "more of asset {asset} than there may be");
            assert_eq!(held.get(&asset).copied().unwrap_or_default(), supply, "of asset {asset} held, and issued");
            for account in (0..self.account_count).map(AccountId) {
                let in_offers = reserved.get(&(account, asset)).copied().unwrap_or_default();
                assert_eq!(self.holding(account, asset).reserved, in_offers, "account {account}, asset {asset}");
            }
        }
        let keys: BTreeSet<_> = self.keys.values().collect();
        assert_eq!(keys.len(), self.keys.len(), "two accounts have one key");
    }
}
