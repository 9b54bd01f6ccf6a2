//! An account as its content says.

use walras_ledger::Balance;
use walras_types::limits::{ASSETS_MAX, TRANSACTION_SEQ_END};
use walras_types::{AccountId, Amount, AssetId, PublicKey, TransactionSeq};

/// What an account was when a block ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Its key, if it has one.
    pub key: Option<PublicKey>,
    /// The highest number that it used; zero before its first transaction.
    pub last: TransactionSeq,
    /// What it had of each asset of which it had something, in ascending order of the assets.
    pub balances: Vec<(AssetId, Balance)>,
}

impl AccountState {
    /// What it had of an asset; nothing of those that it does not name.
    #[must_use]
    pub fn balance(&self, asset: AssetId) -> Balance {
        self.balances.binary_search_by_key(&asset, |(of, _)| *of).map(|at| self.balances[at].1).unwrap_or_default()
    }

    /// Of the bytes that stand for an account, see [`crate::Accounts::content`].
    pub(super) fn read(account: AccountId, content: &[u8]) -> Option<Self> {
        let mut rest = content;
        if u32::from_le_bytes(take(&mut rest)?) != account.0 {
            return None;
        }
        let key = match take(&mut rest)? {
            [0] => None,
            [1] => Some(PublicKey(take(&mut rest)?)),
            _ => return None,
        };
        let last = Some(u64::from_le_bytes(take(&mut rest)?)).filter(|last| *last < TRANSACTION_SEQ_END).map(TransactionSeq)?;
        let mut balances = Vec::new();
        while !rest.is_empty() {
            let asset = AssetId(u16::from_le_bytes(take(&mut rest)?).into());
            let [lengths] = take(&mut rest)?;
            let (available, reserved) = (amount(&mut rest, lengths & 15)?, amount(&mut rest, lengths >> 4)?);
            let is_next = balances.last().is_none_or(|(last, _)| *last < asset);
            if lengths == 0 || !is_next || asset.0 >= ASSETS_MAX {
                return None;
            }
            balances.push((asset, Balance { available, reserved }));
        }
        Some(Self { key, last, balances })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

/// A number without leading zeros.
fn amount(rest: &mut &[u8], length: u8) -> Option<Amount> {
    let (taken, left) = rest.split_at_checked(length.into())?;
    *rest = left;
    let mut bytes = [0; 8];
    bytes.get_mut(..taken.len())?.copy_from_slice(taken);
    Amount::new(u64::from_le_bytes(bytes)).filter(|_| taken.last() != Some(&0))
}
