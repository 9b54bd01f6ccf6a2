//! Whose the pools of a market are, and what comes into them and goes out.
//!
//! A pool's reserves are its providers', in the ratio of their shares. Who adds gets shares in the ratio of the reserves, who gives shares
//! back gets their part; both by the reserves that the last block left, so that transactions of one batch commute. What does not divide
//! stays in the pool, so a share is never worth less after a transaction. A pool begins with as many shares as its smaller reserve has
//! units, and its function is a mean of the reserves: so there are never more shares than units of the larger reserve.

use walras_clearing::{AssetIndex, BatchMarket, Pool, PoolIndex};
use walras_types::{AccountId, Amount, AssetId, OfferName, PoolRule};

/// The pools of a market, beside what [`BatchMarket::pools`] has of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pools {
    /// In ascending order of their names, which is that of the market's pools.
    pub(crate) heads: Vec<PoolHead>,
    /// In ascending order of (pool, account).
    pub(crate) providers: Vec<Provider>,
}

/// What a market's pool does not say of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolHead {
    /// The number of [`OfferName`] of the transaction that created it.
    pub(crate) name: u64,
    /// All its shares, at least 1.
    pub(crate) shares: Amount,
}

/// An account's part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) pool: u64,
    pub(crate) account: AccountId,
    /// At least 1.
    pub(crate) shares: Amount,
}

/// What came into a pool of an account's funds, or went out of it, or is left when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolChange {
    /// The pool.
    pub pool: OfferName,
    /// What happened.
    pub kind: PoolChangeKind,
    /// The transaction that did it; the pool's own where it ends.
    pub by: OfferName,
    /// The pool's assets.
    pub assets: [AssetId; 2],
    /// Units of each.
    pub amounts: [Amount; 2],
    /// Shares that came or went.
    pub shares: Amount,
}

/// What happened to a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolChangeKind {
    /// It was created.
    Created {
        /// Its rule.
        rule: PoolRule,
        /// Its fee.
        fee_ppm: u32,
    },
    /// A provider added to it.
    Deposited,
    /// A provider gave shares back.
    Withdrawn,
    /// Nobody has shares any more. What rounding left in it is the venue's.
    Closed,
}

impl PoolChange {
    /// Units of an asset that came into the pool, less what went out.
    pub(crate) fn flow(&self, asset: AssetId) -> i128 {
        let of_asset = self.assets.iter().zip(self.amounts).filter(|(of, _)| **of == asset);
        let units: i128 = of_asset.map(|(_, amount)| i128::from(amount.get())).sum();
        match self.kind {
            PoolChangeKind::Created { .. } | PoolChangeKind::Deposited => units,
            PoolChangeKind::Withdrawn | PoolChangeKind::Closed => -units,
        }
    }

    /// What its account gets of it when the block ends.
    pub(crate) fn given_back(&self) -> impl Iterator<Item = (AssetId, Amount)> {
        let comes_out = if self.kind == PoolChangeKind::Withdrawn { 2 } else { 0 };
        self.assets.into_iter().zip(self.amounts).take(comes_out)
    }

    /// What its account has reserved for it until the block ends: what comes into the pool.
    pub(crate) fn reserved(&self) -> impl Iterator<Item = (AssetId, Amount)> {
        let comes_in = match self.kind {
            PoolChangeKind::Created { .. } | PoolChangeKind::Deposited => 2,
            PoolChangeKind::Withdrawn | PoolChangeKind::Closed => 0,
        };
        self.assets.into_iter().zip(self.amounts).take(comes_in)
    }
}

/// A pool with its name and shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// The transaction that created it.
    pub name: OfferName,
    /// Its assets, rule, fee and reserves.
    pub pool: Pool,
    /// All its shares.
    pub shares: Amount,
}

impl PoolView {
    /// What so many shares are worth: units of each reserve, rounded down; the pool keeps the remainder.
    #[must_use]
    pub fn worth(&self, shares: Amount) -> [Amount; 2] {
        let part = |reserve: Amount| wide(reserve) * wide(shares.min(self.shares)) / wide(self.shares).max(1);
        self.pool.reserves.map(|reserve| Amount::from_wide(part(reserve)).expect("a part is at most the whole"))
    }

    /// The most shares that these amounts buy, and what they cost, rounded up: at most the amounts. `None` where they buy none.
    #[must_use]
    pub fn bought_by(&self, amounts: [Amount; 2]) -> Option<(Amount, [Amount; 2])> {
        let [first, second] = self.pool.reserves;
        // Both at least 1, as the pool stands.
        let shares = |amount: Amount, reserve: Amount| wide(amount) * wide(self.shares) / wide(reserve).max(1);
        let shares = Amount::from_wide(shares(amounts[0], first).min(shares(amounts[1], second)))?;
        let cost = |reserve: Amount| Amount::from_wide((wide(reserve) * wide(shares)).div_ceil(wide(self.shares).max(1)));
        let costs = [cost(first)?, cost(second)?];
        (!shares.is_zero()).then_some((shares, costs))
    }
}

fn wide(amount: Amount) -> u128 {
    amount.get().into()
}

impl Pools {
    /// The place of a pool, in the market too.
    pub(crate) fn place(&self, name: OfferName) -> Option<usize> {
        self.heads.binary_search_by_key(&name.number(), |head| head.name).ok()
    }

    /// The name of a pool of the market.
    pub(crate) fn name(&self, pool: PoolIndex) -> OfferName {
        OfferName::of_number(self.heads[pool.0 as usize].name)
    }

    pub(crate) fn view(&self, market: &BatchMarket, place: usize) -> PoolView {
        let PoolHead { name, shares } = self.heads[place];
        PoolView { name: OfferName::of_number(name), pool: market.pools()[place], shares }
    }

    /// The shares of an account.
    pub(crate) fn shares(&self, pool: OfferName, account: AccountId) -> Amount {
        let of_account = |provider: &Provider| (provider.pool, provider.account);
        let found = self.providers.binary_search_by_key(&(pool.number(), account), of_account);
        found.map_or(Amount::ZERO, |place| self.providers[place].shares)
    }

    /// The providers of a pool, in ascending order of their accounts.
    pub(crate) fn providers_of(&self, pool: OfferName) -> &[Provider] {
        let of_pool = |from: &[Provider], end: u64| from.partition_point(|provider| provider.pool < end);
        let from = of_pool(&self.providers, pool.number());
        let count = of_pool(&self.providers[from..], pool.number() + 1);
        &self.providers[from..from + count]
    }

    /// Lets come and go what a batch's transactions asked, in any order, and takes out pools in which nobody has shares any more, which it
    /// appends to the changes: O(changes log changes + providers).
    pub(crate) fn change(
        &mut self,
        market: &mut BatchMarket,
        changes: &mut Vec<PoolChange>,
        index: &dyn Fn(AssetId) -> AssetIndex,
    ) {
        let mut pools = market.pools().to_vec();
        changes.iter().for_each(|change| self.change_pool(&mut pools, change, index));
        self.change_providers(changes);
        let mut kept = Vec::with_capacity(pools.len());
        for (head, pool) in self.heads.iter().zip(pools) {
            if !head.shares.is_zero() {
                kept.push(pool);
                continue;
            }
            let name = OfferName::of_number(head.name);
            let last = changes.iter().find(|change| change.pool == name).expect("who gave the last shares back changed the pool");
            let (assets, amounts, shares) = (last.assets, pool.reserves, Amount::ZERO);
            changes.push(PoolChange { pool: name, kind: PoolChangeKind::Closed, by: name, assets, amounts, shares });
        }
        self.heads.retain(|head| !head.shares.is_zero());
        market.set_pools(kept).expect("what is in pools was reserved, and a pool that somebody has shares of has both assets");
    }

    fn change_pool(&mut self, pools: &mut Vec<Pool>, change: &PoolChange, index: &dyn Fn(AssetId) -> AssetIndex) {
        let name = change.pool.number();
        let place = self.heads.binary_search_by_key(&name, |head| head.name);
        let add = |to: &mut Amount, more: Amount| *to = to.checked_add(more).expect("at most the supply, or a mean of it");
        let take = |from: &mut Amount, less: Amount| *from = from.checked_sub(less).expect("at most what was there");
        match (change.kind, place) {
            (PoolChangeKind::Created { rule, fee_ppm }, Err(place)) => {
                let pool = Pool { assets: change.assets.map(index), rule, reserves: change.amounts, fee_ppm };
                self.heads.insert(place, PoolHead { name, shares: change.shares });
                pools.insert(place, pool);
            }
            (PoolChangeKind::Deposited, Ok(place)) => {
                add(&mut self.heads[place].shares, change.shares);
                pools[place].reserves.iter_mut().zip(change.amounts).for_each(|(reserve, amount)| add(reserve, amount));
            }
            (PoolChangeKind::Withdrawn, Ok(place)) => {
                take(&mut self.heads[place].shares, change.shares);
                pools[place].reserves.iter_mut().zip(change.amounts).for_each(|(reserve, amount)| take(reserve, amount));
            }
            (kind, place) => {
                panic!("{kind:?} of the pool at {place:?}: a new pool has a new name, and one stands until all is given back")
            }
        }
    }

    fn change_providers(&mut self, changes: &[PoolChange]) {
        let of_change = |change: &PoolChange| {
            let shares = i128::from(change.shares.get());
            let sign = if change.kind == PoolChangeKind::Withdrawn { -1 } else { 1 };
            (change.pool.number(), change.by.account, sign * shares)
        };
        let before = self.providers.iter().map(|of| (of.pool, of.account, i128::from(of.shares.get())));
        let mut all: Vec<(u64, AccountId, i128)> = before.chain(changes.iter().map(of_change)).collect();
        // Stable: what is in order already takes one pass.
        all.sort_by_key(|(pool, account, _)| (*pool, *account));
        let provider = |group: &[(u64, AccountId, i128)]| {
            let shares = u128::try_from(group.iter().map(|(.., shares)| shares).sum::<i128>()).ok().and_then(Amount::from_wide);
            let shares = shares.expect("nobody gives back more shares than it has, nor has more than there are");
            Provider { pool: group[0].0, account: group[0].1, shares }
        };
        let groups = all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        self.providers = groups.map(provider).filter(|provider| !provider.shares.is_zero()).collect();
    }
}
