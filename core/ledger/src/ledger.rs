//! Balances and what moves them.

use walras_types::limits::{ACCOUNTS_MAX, ASSETS_MAX};
use walras_types::{AccountId, Amount, AssetId};

use crate::parts::Parts;

/// What an account has of one asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Free to withdraw or reserve.
    pub available: Amount,
    /// Set aside for what the account has promised.
    pub reserved: Amount,
}

/// Why the ledger refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// The account was never created.
    UnknownAccount,
    /// The asset was never created.
    UnknownAsset,
    /// As many accounts or assets as the limits allow.
    Full,
    /// Less is available than asked.
    InsufficientAvailable,
    /// Less is reserved than asked.
    InsufficientReserved,
    /// Less is in transit than asked.
    InsufficientInTransit,
    /// The supply would exceed an amount's range.
    SupplyOverflow,
    /// What a trade moves does not add up: see [`Settlement`].
    SettlementInvalid,
}

impl std::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownAccount => f.write_str("there is no such account: create it first"),
            Self::UnknownAsset => f.write_str("there is no such asset: create it first"),
            Self::Full => f.write_str("the ledger holds as many accounts or assets as it can: see the limits in walras-types"),
            Self::InsufficientAvailable => f.write_str("the available balance does not cover the amount: ask for less, or deposit"),
            Self::InsufficientReserved => {
                f.write_str("less is reserved than the amount: the caller's reserves and the ledger's disagree")
            }
            Self::InsufficientInTransit => {
                f.write_str("less is in transit than the amount: the caller's transfers and the ledger's disagree")
            }
            Self::SupplyOverflow => f.write_str("the asset's supply would exceed the largest amount: deposit less"),
            Self::SettlementInvalid => f.write_str(
                "the trade's value and fees do not fit what it reserved, or its assets are the same: compute them again",
            ),
        }
    }
}

impl std::error::Error for LedgerError {}

/// One trade: `base_amount` of `base` goes from the seller to the buyer, `value` of `quote` the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What is bought; not `quote`.
    pub base: AssetId,
    /// What it is paid with.
    pub quote: AssetId,
    /// Who gets base.
    pub buyer: AccountId,
    /// Who gets quote. May be the buyer.
    pub seller: AccountId,
    /// How much base; the seller has reserved it.
    pub base_amount: Amount,
    /// How much quote, before fees.
    pub value: Amount,
    /// How much quote the buyer had reserved for this trade: at least `value + buyer_fee`. What is left becomes available.
    pub buyer_reserved: Amount,
    /// The buyer's fee in quote, in addition to the value; negative for a rebate.
    pub buyer_fee: i64,
    /// The seller's fee in quote, out of the value and at most that; negative for a rebate.
    pub seller_fee: i64,
}

/// One asset's balances, dense by account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) balances: Parts<Balance>,
    pub(crate) supply: Amount,
    pub(crate) fees: Amount,
    /// Left accounts for another ledger, which was not yet seen to take it; a part of the supply.
    pub(crate) in_transit: Amount,
    /// What batch markets hold, in pools and on its way from sellers to buyers while a block's moves go on; a part of the supply.
    pub(crate) pooled: Amount,
    /// Taken from other ledgers less what they were seen to take. What was issued here is the supply less this.
    pub(crate) moved_in: i128,
}

/// All balances of a venue: per asset a column indexed by account, so that a look-up is two indexings and no search.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) columns: Vec<Column>,
    pub(crate) account_count: u32,
    /// A bit for each account whose balances changed; without a word, nothing is tracked. No part of the state.
    pub(crate) dirty: Vec<u64>,
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        (&self.columns, self.account_count) == (&other.columns, other.account_count)
    }
}

impl Eq for Ledger {}

impl Ledger {
    /// A ledger without accounts and assets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy for a snapshot: it has balances in common with this one until they change, and tracks no changes. O(assets * accounts /
    /// [`crate::PART_ACCOUNTS`]).
    #[must_use]
    pub fn share(&mut self) -> Self {
        let share = |column: &mut Column| Column { balances: column.balances.share(), ..*column };
        Self { columns: self.columns.iter_mut().map(share).collect(), account_count: self.account_count, dirty: Vec::new() }
    }

    /// How many accounts there are; their ids are below.
    #[must_use]
    #[inline]
    pub fn account_count(&self) -> u32 {
        self.account_count
    }

    /// How many assets there are; their ids are below.
    #[must_use]
    #[inline]
    pub fn asset_count(&self) -> u32 {
        u32::try_from(self.columns.len()).expect("at most ASSETS_MAX assets are created")
    }

    /// Adds the next account, with nothing on it.
    pub fn create_account(&mut self) -> Result<AccountId, LedgerError> {
        if self.account_count == ACCOUNTS_MAX {
            return Err(LedgerError::Full);
        }
        for column in &mut self.columns {
            column.balances.push(Balance::default());
        }
        self.account_count += 1;
        if !self.dirty.is_empty() {
            // A word more than there are accounts, as `track_changes` says.
            self.dirty.resize(self.account_count.div_ceil(64) as usize + 1, 0);
            self.mark(AccountId(self.account_count - 1));
        }
        Ok(AccountId(self.account_count - 1))
    }

    /// Adds the next asset, with nothing issued.
    pub fn create_asset(&mut self) -> Result<AssetId, LedgerError> {
        let asset = self.asset_count();
        if asset == ASSETS_MAX {
            return Err(LedgerError::Full);
        }
        let balances = Parts::filled(Balance::default(), self.account_count as usize);
        self.columns.push(Column { balances, ..Column::default() });
        Ok(AssetId(asset))
    }

    /// What `account` has of `asset`; `None` when either does not exist.
    #[must_use]
    #[inline]
    pub fn balance(&self, account: AccountId, asset: AssetId) -> Option<Balance> {
        self.columns.get(asset.0 as usize)?.balances.get(account.0 as usize).copied()
    }

    /// How much of `asset` was issued here and not withdrawn, and came from other ledgers and did not go to them.
    #[must_use]
    pub fn supply(&self, asset: AssetId) -> Option<Amount> {
        Some(self.columns.get(asset.0 as usize)?.supply)
    }

    /// The fees collected in `asset` and not yet paid out.
    #[must_use]
    pub fn fees(&self, asset: AssetId) -> Option<Amount> {
        Some(self.columns.get(asset.0 as usize)?.fees)
    }

    /// How much of `asset` left accounts for another ledger that was not yet seen to take it.
    #[must_use]
    pub fn in_transit(&self, asset: AssetId) -> Option<Amount> {
        Some(self.columns.get(asset.0 as usize)?.in_transit)
    }

    /// How much of `asset` batch markets hold: in pools, and while a block moves funds in steps what it took and has not given yet.
    #[must_use]
    pub fn pooled(&self, asset: AssetId) -> Option<Amount> {
        Some(self.columns.get(asset.0 as usize)?.pooled)
    }

    /// How much of `asset` was deposited or issued here and neither withdrawn nor burnt here. Below zero where more went out here
    /// than came in, after other ledgers sent it. The sum over all ledgers of a venue is what the venue owes.
    #[must_use]
    pub fn issued_here(&self, asset: AssetId) -> Option<i128> {
        let column = self.columns.get(asset.0 as usize)?;
        Some(i128::from(column.supply.get()) - column.moved_in)
    }

    /// Takes `amount` out of an account's available balance and sends it to another ledger: until [`Self::sent_was_taken`] or
    /// [`Self::sent_came_back`], it is in transit.
    pub fn send(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        balance.available = balance.available.checked_sub(amount).ok_or(LedgerError::InsufficientAvailable)?;
        column.in_transit = plus(column.in_transit, amount);
        self.mark(account);
        Ok(())
    }

    /// The other ledger took `amount` that was in transit: it is no part of this one's supply any more.
    pub fn sent_was_taken(&mut self, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        column.in_transit = column.in_transit.checked_sub(amount).ok_or(LedgerError::InsufficientInTransit)?;
        column.supply = minus(column.supply, amount);
        column.moved_in -= i128::from(amount.get());
        Ok(())
    }

    /// The other ledger refused `amount` that was in transit: it is its account's again.
    pub fn sent_came_back(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        column.in_transit = column.in_transit.checked_sub(amount).ok_or(LedgerError::InsufficientInTransit)?;
        balance.available = plus(balance.available, amount);
        self.mark(account);
        Ok(())
    }

    /// Takes `amount` that another ledger sent: it is a part of this one's supply now.
    pub fn receive(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        self.deposit(account, asset, amount)?;
        self.columns[asset.0 as usize].moved_in += i128::from(amount.get());
        Ok(())
    }

    /// Issues `amount` to an account.
    pub fn deposit(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        column.supply = column.supply.checked_add(amount).ok_or(LedgerError::SupplyOverflow)?;
        balance.available = plus(balance.available, amount);
        self.mark(account);
        Ok(())
    }

    /// Takes `amount` out of an account's available balance and out of the venue.
    pub fn withdraw(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        balance.available = balance.available.checked_sub(amount).ok_or(LedgerError::InsufficientAvailable)?;
        column.supply = minus(column.supply, amount);
        self.mark(account);
        Ok(())
    }

    /// Sets `amount` of the available balance aside.
    #[inline]
    pub fn reserve(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let balance = self.balance_mut(account, asset)?;
        balance.available = balance.available.checked_sub(amount).ok_or(LedgerError::InsufficientAvailable)?;
        balance.reserved = plus(balance.reserved, amount);
        self.mark(account);
        Ok(())
    }

    /// Makes `amount` of the reserved balance available again.
    #[inline]
    pub fn release(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let balance = self.balance_mut(account, asset)?;
        balance.reserved = balance.reserved.checked_sub(amount).ok_or(LedgerError::InsufficientReserved)?;
        balance.available = plus(balance.available, amount);
        self.mark(account);
        Ok(())
    }

    /// Replaces a reserve of `from`, which the account has, by one of `to`.
    // Every order that moves does this once; left to itself the compiler makes a call of it, which costs as much again.
    #[inline(always)]
    pub fn adjust_reserve(&mut self, account: AccountId, asset: AssetId, from: Amount, to: Amount) -> Result<(), LedgerError> {
        // Whether a reserve grows or shrinks is a coin toss to the processor, so both go the same way.
        let balance = self.balance_mut(account, asset)?;
        let others = balance.reserved.checked_sub(from).ok_or(LedgerError::InsufficientReserved)?;
        let released = plus(balance.available, from);
        balance.available = released.checked_sub(to).ok_or(LedgerError::InsufficientAvailable)?;
        balance.reserved = plus(others, to);
        self.mark(account);
        Ok(())
    }

    /// Moves what a trade moves, out of what its two orders had reserved.
    #[inline]
    pub fn settle(&mut self, trade: &Settlement) -> Result<(), LedgerError> {
        let (buyer, seller) = (trade.buyer.0 as usize, trade.seller.0 as usize);
        if buyer.max(seller) >= self.account_count as usize {
            return Err(LedgerError::UnknownAccount);
        }
        if trade.base.0.max(trade.quote.0) as usize >= self.columns.len() {
            return Err(LedgerError::UnknownAsset);
        }
        let [base, quote] = self
            .columns
            .get_disjoint_mut([trade.base.0 as usize, trade.quote.0 as usize])
            .map_err(|_| LedgerError::SettlementInvalid)?;

        // Everything that can fail, before anything changes.
        let invalid = LedgerError::SettlementInvalid;
        let paid = owed(trade.value, trade.buyer_fee).ok_or(invalid)?;
        let returned = trade.buyer_reserved.checked_sub(paid).ok_or(invalid)?;
        let proceeds = owed(trade.value, trade.seller_fee.checked_neg().ok_or(invalid)?).ok_or(invalid)?;
        let fees_due = trade.buyer_fee.checked_add(trade.seller_fee).ok_or(invalid)?;
        let fees = owed(quote.fees, fees_due).ok_or(invalid)?;
        // Balances are looked up once each, as far as buyer and seller may be one account.
        let short = LedgerError::InsufficientReserved;
        let of_seller = &mut base.balances[seller];
        let seller_left = of_seller.reserved.checked_sub(trade.base_amount).ok_or(short)?;
        let of_buyer = &mut quote.balances[buyer];
        let buyer_left = of_buyer.reserved.checked_sub(trade.buyer_reserved).ok_or(short)?;

        of_seller.reserved = seller_left;
        add(&mut base.balances[buyer].available, trade.base_amount);
        of_buyer.reserved = buyer_left;
        add(&mut of_buyer.available, returned);
        add(&mut quote.balances[seller].available, proceeds);
        quote.fees = fees;
        self.mark(trade.buyer);
        self.mark(trade.seller);
        Ok(())
    }

    /// Moves all fees collected in `asset` to an account, and says how much that was.
    pub fn collect_fees(&mut self, asset: AssetId, account: AccountId) -> Result<Amount, LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        let fees = std::mem::take(&mut column.fees);
        balance.available = plus(balance.available, fees);
        self.mark(account);
        Ok(fees)
    }

    /// Checks the whole ledger.
    ///
    /// # Panics
    /// When an invariant of this crate is broken.
    pub fn check_invariants(&self) {
        for (asset, column) in self.columns.iter().enumerate() {
            assert_eq!(
                column.balances.len(),
                self.account_count as usize,
                "asset {asset}: a column is not as long as the accounts"
            );
            let wide = |amount: Amount| u128::from(amount.get());
            let held: u128 = column.balances.iter().map(|b| wide(b.available) + wide(b.reserved)).sum();
            assert_eq!(
                held + wide(column.fees) + wide(column.in_transit) + wide(column.pooled),
                wide(column.supply),
                "asset {asset}: balances, fees, what is in transit and what pools hold are not the supply"
            );
        }
    }

    /// Notes that an account's balances changed, or what is hashed with them, where changes are tracked.
    #[inline]
    pub fn mark(&mut self, account: AccountId) {
        if let Some(word) = self.dirty.get_mut(account.0 as usize / 64) {
            *word |= 1 << (account.0 % 64);
        }
    }

    #[inline]
    fn balance_mut(&mut self, account: AccountId, asset: AssetId) -> Result<&mut Balance, LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)
    }
}

/// `amount` and a signed fee together, or `None` outside an amount's range.
#[inline]
fn owed(amount: Amount, fee: i64) -> Option<Amount> {
    Amount::new(amount.get().checked_add_signed(fee)?)
}

/// The sum of two parts of one supply.
#[inline]
pub(crate) fn plus(a: Amount, b: Amount) -> Amount {
    a.checked_add(b).expect("parts of one supply add up to at most the supply")
}

/// The difference of a whole and a part of it.
#[inline]
pub(crate) fn minus(whole: Amount, part: Amount) -> Amount {
    whole.checked_sub(part).expect("a part is at most the whole")
}

#[inline]
pub(crate) fn add(to: &mut Amount, amount: Amount) {
    *to = plus(*to, amount);
}
