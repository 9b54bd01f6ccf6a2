//! The ledger's interface for a block of a batch market: split by accounts or by assets, so that threads move funds in parallel
//! without locks.
//!
//! A block first reserves what its accounts promise. This touches only each account's own balances, so the ledger is split into
//! ranges of accounts ([`AccountsPart`]). At its end, reserved funds go to other accounts: the ledger is split by assets
//! ([`AssetsPart`]), and for each asset the credits to accounts and pools equal the spending, less the venue's fees ([`AssetMoves`]). No
//! balance is visible to two threads, so the result does not depend on their number.

use walras_types::{AccountId, Amount, AssetId};

use crate::ledger::{Balance, Column, Ledger, LedgerError, add, minus, plus};
use crate::parts::{PART_ACCOUNTS, PartsRange};

/// A set of accounts, one bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSet(pub(crate) Vec<u64>);

impl AccountSet {
    /// Without members, with room for this many accounts.
    #[must_use]
    pub fn with_room(account_count: u32) -> Self {
        Self(vec![0; account_count.div_ceil(64) as usize])
    }

    /// Adds an account.
    ///
    /// # Panics
    /// When there is no room for it.
    #[inline]
    pub fn insert(&mut self, account: AccountId) {
        self.0[account.0 as usize / 64] |= 1 << (account.0 % 64);
    }

    /// Adds an account, and room for it.
    pub fn insert_anew(&mut self, account: AccountId) {
        let words = account.0 as usize / 64 + 1;
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        self.insert(account);
    }

    /// Whether an account is in it.
    #[must_use]
    pub fn contains(&self, account: AccountId) -> bool {
        self.0.get(account.0 as usize / 64).is_some_and(|word| word >> (account.0 % 64) & 1 == 1)
    }

    /// Adds the members of another.
    pub fn insert_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// How many members it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = AccountId> {
        (0_u32..).zip(&self.0).flat_map(|(at, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(AccountId(at * 64 + bit))
            })
        })
    }
}

/// A range of accounts with all their balances, for one thread.
#[derive(Debug)]
pub struct AccountsPart<'l> {
    first: u32,
    columns: Vec<PartsRange<'l, Balance>>,
    dirty: &'l mut [u64],
}

impl AccountsPart<'_> {
    /// The balance of an account of this part; `None` if the asset does not exist or the account is not in this part.
    #[must_use]
    #[inline]
    pub fn balance(&self, account: AccountId, asset: AssetId) -> Option<Balance> {
        self.columns.get(asset.0 as usize)?.get(account.0.checked_sub(self.first)? as usize).copied()
    }

    /// Sets `amount` of the available balance aside.
    ///
    /// # Errors
    /// As [`Ledger::reserve`].
    #[inline]
    pub fn reserve(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let row = account.0.wrapping_sub(self.first) as usize;
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.get_mut(row).ok_or(LedgerError::UnknownAccount)?;
        balance.available = balance.available.checked_sub(amount).ok_or(LedgerError::InsufficientAvailable)?;
        balance.reserved = plus(balance.reserved, amount);
        if let Some(word) = self.dirty.get_mut(row / 64) {
            *word |= 1 << (row % 64);
        }
        Ok(())
    }
}

/// Some assets with the balances of all accounts, for one thread.
#[derive(Debug)]
pub struct AssetsPart<'l> {
    columns: Vec<(AssetId, &'l mut Column)>,
    touched: AccountSet,
}

impl<'l> AssetsPart<'l> {
    /// The assets of this part, in ascending order.
    pub fn assets(&self) -> impl Iterator<Item = AssetId> {
        self.columns.iter().map(|(asset, _)| *asset)
    }

    /// Starts to move the asset that has this place among [`Self::assets`].
    ///
    /// # Panics
    /// When there are not so many.
    pub fn moves(&mut self, place: usize) -> AssetMoves<'_> {
        let (_, column) = &mut self.columns[place];
        AssetMoves { column, touched: &mut self.touched, spent: 0, credited: 0 }
    }

    /// The accounts whose balances were moved.
    #[must_use]
    pub fn into_touched(self) -> AccountSet {
        self.touched
    }
}

/// Balanced moves of one asset: spent funds go to the credited accounts, and the rest to the venue's fees.
///
/// Every move uses reserved funds, so it cannot fail, and each has an inverse that undoes it.
#[derive(Debug)]
#[must_use = "finish the moves, or the asset's balances are not its supply"]
pub struct AssetMoves<'p> {
    column: &'p mut Column,
    touched: &'p mut AccountSet,
    spent: i128,
    credited: i128,
}

/// The guarantee of the callers of moves.
const RESERVED: &str = "a block moves what it reserved";

impl AssetMoves<'_> {
    #[inline]
    fn balance(&mut self, account: AccountId) -> &mut Balance {
        self.touched.insert(account);
        &mut self.column.balances[account.0 as usize]
    }

    /// Takes a reserved amount from an account.
    #[inline]
    pub fn spend(&mut self, account: AccountId, amount: Amount) {
        self.spent += i128::from(amount.get());
        let balance = self.balance(account);
        balance.reserved = balance.reserved.checked_sub(amount).expect(RESERVED);
    }

    /// Undoes [`Self::spend`].
    #[inline]
    pub fn unspend(&mut self, account: AccountId, amount: Amount) {
        self.spent -= i128::from(amount.get());
        add(&mut self.balance(account).reserved, amount);
    }

    /// Credits an account with spent funds.
    #[inline]
    pub fn credit(&mut self, account: AccountId, amount: Amount) {
        self.credited += i128::from(amount.get());
        // At most what all accounts had reserved and this one has available: a part of the supply.
        add(&mut self.balance(account).available, amount);
    }

    /// Undoes [`Self::credit`].
    #[inline]
    pub fn uncredit(&mut self, account: AccountId, amount: Amount) {
        self.credited -= i128::from(amount.get());
        let balance = self.balance(account);
        balance.available = minus(balance.available, amount);
    }

    /// Makes a reserved amount available again.
    #[inline]
    pub fn release(&mut self, account: AccountId, amount: Amount) {
        let balance = self.balance(account);
        balance.reserved = balance.reserved.checked_sub(amount).expect(RESERVED);
        add(&mut balance.available, amount);
    }

    /// Undoes [`Self::release`].
    #[inline]
    pub fn unrelease(&mut self, account: AccountId, amount: Amount) {
        let balance = self.balance(account);
        balance.available = minus(balance.available, amount);
        add(&mut balance.reserved, amount);
    }

    /// Puts spent funds into pools. Undoes [`Self::unpool`].
    #[inline]
    pub fn pool(&mut self, amount: Amount) {
        self.credited += i128::from(amount.get());
        add(&mut self.column.pooled, amount);
    }

    /// Takes funds out of pools, to be credited. Undoes [`Self::pool`].
    #[inline]
    pub fn unpool(&mut self, amount: Amount) {
        self.spent += i128::from(amount.get());
        self.column.pooled = self.column.pooled.checked_sub(amount).expect("a block takes from pools what they have");
    }

    /// Destroys a reserved amount.
    #[inline]
    pub fn burn(&mut self, account: AccountId, amount: Amount) {
        self.column.supply = minus(self.column.supply, amount);
        let balance = self.balance(account);
        balance.reserved = balance.reserved.checked_sub(amount).expect(RESERVED);
    }

    /// Undoes [`Self::burn`].
    #[inline]
    pub fn unburn(&mut self, account: AccountId, amount: Amount) {
        add(&mut self.column.supply, amount);
        add(&mut self.balance(account).reserved, amount);
    }

    /// Gives the rest to the venue's fees, or takes it back from them if moves were undone.
    ///
    /// # Panics
    /// If more was credited than spent and the fees cannot cover it: no asset is created from nothing.
    pub fn finish(self) {
        let fees = i128::from(self.column.fees.get()) + self.spent - self.credited;
        let fees = u128::try_from(fees).ok().and_then(Amount::from_wide);
        self.column.fees = fees.expect("what is credited was spent");
    }
}

impl Ledger {
    /// Cuts the ledger into ranges of accounts that end before these ids, the last at the number of accounts.
    ///
    /// # Panics
    /// Unless the ends ascend and all but the last are multiples of [`PART_ACCOUNTS`].
    pub fn parts_by_account(&mut self, ends: &[u32]) -> Vec<AccountsPart<'_>> {
        assert_eq!(ends.last(), Some(&self.account_count), "the last part ends with the accounts");
        let mut columns: Vec<_> = self.columns.iter_mut().map(|column| column.balances.as_range()).collect();
        let mut dirty = &mut self.dirty[..];
        let mut first = 0;
        let mut parts = Vec::with_capacity(ends.len());
        for &end in ends {
            assert!(
                end == self.account_count || end.is_multiple_of(PART_ACCOUNTS),
                "accounts are cut where parts of balances and words of the set of accounts begin"
            );
            let rows = (end - first) as usize;
            let columns = columns.iter_mut().map(|column| column.split_off(rows)).collect();
            let words = ((end - first).div_ceil(64) as usize).min(dirty.len());
            parts.push(AccountsPart { first, columns, dirty: dirty.split_off_mut(..words).expect("no more than there are") });
            first = end;
        }
        parts
    }

    /// Cuts the ledger into parts of these assets, which are in ascending order in each group; those not named are left out.
    ///
    /// # Panics
    /// When an asset is named twice.
    pub fn parts_by_asset(&mut self, groups: &[Vec<AssetId>]) -> Vec<AssetsPart<'_>> {
        let touched = AccountSet::with_room(self.account_count);
        let mut columns: Vec<Option<&mut Column>> = self.columns.iter_mut().map(Some).collect();
        let mut part = |group: &Vec<AssetId>| {
            let mut column = |asset: &AssetId| (*asset, columns[asset.0 as usize].take().expect("an asset is named once"));
            AssetsPart { columns: group.iter().map(&mut column).collect(), touched: touched.clone() }
        };
        groups.iter().map(&mut part).collect()
    }

    /// Issues `amount` to an account and sets it aside, until [`Self::release`].
    ///
    /// # Errors
    /// As [`Self::deposit`].
    pub fn issue_reserved(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        self.deposit(account, asset, amount)?;
        self.reserve(account, asset, amount)
    }

    /// Takes a reserved amount from an account. Batch markets hold it until [`Self::give_held`] or [`Self::held_to_fees`]: so a block may
    /// move funds in steps, and what it took and has not given yet is a part of the supply.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn hold(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        balance.reserved = balance.reserved.checked_sub(amount).ok_or(LedgerError::InsufficientReserved)?;
        column.pooled = plus(column.pooled, amount);
        self.mark(account);
        Ok(())
    }

    /// Credits an account with what batch markets hold.
    ///
    /// # Errors
    /// [`LedgerError::InsufficientReserved`] when they hold less.
    pub fn give_held(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        column.pooled = column.pooled.checked_sub(amount).ok_or(LedgerError::InsufficientReserved)?;
        balance.available = plus(balance.available, amount);
        self.mark(account);
        Ok(())
    }

    /// Lets the venue's fees have what batch markets hold.
    ///
    /// # Errors
    /// [`LedgerError::InsufficientReserved`] when they hold less.
    pub fn held_to_fees(&mut self, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        column.pooled = column.pooled.checked_sub(amount).ok_or(LedgerError::InsufficientReserved)?;
        column.fees = plus(column.fees, amount);
        Ok(())
    }

    /// Destroys a reserved amount.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn burn_reserved(&mut self, account: AccountId, asset: AssetId, amount: Amount) -> Result<(), LedgerError> {
        let column = self.columns.get_mut(asset.0 as usize).ok_or(LedgerError::UnknownAsset)?;
        let balance = column.balances.get_mut(account.0 as usize).ok_or(LedgerError::UnknownAccount)?;
        balance.reserved = balance.reserved.checked_sub(amount).ok_or(LedgerError::InsufficientReserved)?;
        column.supply = minus(column.supply, amount);
        self.mark(account);
        Ok(())
    }

    /// Removes the last account, which must be empty: undoes [`Self::create_account`].
    ///
    /// # Panics
    /// When there is none or it has something.
    pub fn uncreate_account(&mut self) {
        self.account_count = self.account_count.checked_sub(1).expect("there is an account to take back");
        for column in &mut self.columns {
            assert_eq!(column.balances.pop(), Some(Balance::default()), "an account that has something stays");
        }
    }

    /// Starts to keep the set of accounts whose balances changed, all of them at first.
    pub fn track_changes(&mut self) {
        let words = self.account_count.div_ceil(64) as usize;
        // Room for accounts to come is a word more than there are, so that an empty ledger is tracked too.
        self.dirty = vec![u64::MAX; words + 1];
    }

    /// The accounts whose balances changed since this was asked, or since [`Self::track_changes`]; no more than there are. Empty
    /// when changes are not tracked.
    pub fn take_changed(&mut self) -> AccountSet {
        let words = self.dirty.len();
        let mut changed = AccountSet(std::mem::replace(&mut self.dirty, vec![0; words]));
        self.mask(&mut changed);
        changed
    }

    /// Counts accounts as changed, such as those that [`AssetsPart::into_touched`] says.
    pub fn mark_changed(&mut self, accounts: &AccountSet) {
        for (word, more) in self.dirty.iter_mut().zip(&accounts.0) {
            *word |= more;
        }
    }

    /// Whether changes are tracked.
    #[must_use]
    pub fn tracks_changes(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// An account's balances in the order of assets; all zero if there is no such account.
    #[inline]
    pub fn balances_of(&self, account: AccountId) -> impl Iterator<Item = (AssetId, Balance)> {
        let row = account.0 as usize;
        (0..).map(AssetId).zip(self.columns.iter().map(move |column| column.balances.get(row).copied().unwrap_or_default()))
    }

    /// The balances of some accounts, those of each in the order of assets, in place of what `rows` held; zero of accounts that
    /// there are not. They are read asset by asset, so that a processor waits for many of them at once: O(accounts * assets),
    /// nothing for no assets.
    pub fn balances_of_all(&self, accounts: impl Iterator<Item = AccountId> + Clone, rows: &mut Vec<Balance>) {
        let assets = self.columns.len();
        rows.clear();
        rows.resize(accounts.clone().count() * assets, Balance::default());
        for (asset, column) in self.columns.iter().enumerate() {
            // There is an asset, so a row is not empty.
            for (row, account) in rows.chunks_exact_mut(assets).zip(accounts.clone()) {
                row[asset] = column.balances.get(account.0 as usize).copied().unwrap_or_default();
            }
        }
    }

    /// Bytes of memory that the balances take, room to grow included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.balances.bytes()).sum::<usize>() + self.dirty.capacity() * 8
    }

    fn mask(&self, set: &mut AccountSet) {
        let (whole, rest) = (self.account_count as usize / 64, self.account_count % 64);
        for (at, word) in set.0.iter_mut().enumerate().skip(whole) {
            *word &= if at == whole { (1 << rest) - 1 } else { 0 };
        }
    }
}
