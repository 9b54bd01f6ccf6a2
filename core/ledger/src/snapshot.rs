//! A ledger as bytes and back: little endian, one encoding per state.
//!
//! `account_count: u32, asset_count: u32`, then per asset `supply: u64, fees: u64, in_transit: u64, moved_in: i128, pooled: u64` and per
//! account `available: u64, reserved: u64`.
//! Dense, so that no count in damaged bytes can ask for more memory than the bytes themselves take.

use walras_types::Amount;
use walras_types::limits::{ACCOUNTS_MAX, ASSETS_MAX};

use crate::ledger::{Balance, Column, Ledger};
use crate::parts::Parts;

/// Why bytes are not a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// Too few or too many bytes for the counts they announce.
    Length,
    /// A count or amount beyond its limit.
    OutOfRange,
    /// The balances, fees, what is in transit and what is pooled of an asset are not its supply.
    Unbalanced,
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length => f.write_str("the ledger's bytes are cut, or longer than they say: use another snapshot"),
            Self::OutOfRange => f.write_str("the ledger's bytes hold a number beyond its limit: use another snapshot"),
            Self::Unbalanced => f.write_str("the ledger's balances do not add up to the supply: use another snapshot"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Ledger {
    /// How many bytes [`Self::snapshot`] gives.
    #[must_use]
    pub fn snapshot_len(&self) -> usize {
        8 + self.columns.len() * column_len(self.account_count, HEAD_LEN)
    }

    /// Gives the ledger's bytes to `sink`, piece by piece.
    pub fn snapshot(&self, sink: &mut impl FnMut(&[u8])) {
        self.put(HEAD_LEN, sink);
    }

    /// The same as before there were pools: none may hold anything.
    pub fn snapshot_without_pools(&self, sink: &mut impl FnMut(&[u8])) {
        self.put(HEAD_LEN_WITHOUT_POOLS, sink);
    }

    fn put(&self, head_len: usize, sink: &mut impl FnMut(&[u8])) {
        sink(&self.account_count.to_le_bytes());
        sink(&self.asset_count().to_le_bytes());
        for column in &self.columns {
            sink(&pair(column.supply, column.fees));
            sink(&column.in_transit.get().to_le_bytes());
            sink(&column.moved_in.to_le_bytes());
            if head_len == HEAD_LEN {
                sink(&column.pooled.get().to_le_bytes());
            }
            for balance in column.balances.iter() {
                sink(&pair(balance.available, balance.reserved));
            }
        }
    }

    /// The ledger that [`Self::snapshot`] gave.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::read(bytes, HEAD_LEN)
    }

    /// The ledger that [`Self::snapshot_without_pools`] gave.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn restore_without_pools(bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::read(bytes, HEAD_LEN_WITHOUT_POOLS)
    }

    fn read(bytes: &[u8], head_len: usize) -> Result<Self, RestoreError> {
        let (counts, rows) = bytes.split_at_checked(8).ok_or(RestoreError::Length)?;
        let count = |at: usize| u32::from_le_bytes(counts[at..at + 4].try_into().expect("four of eight bytes"));
        let (account_count, asset_count) = (count(0), count(4));
        if account_count > ACCOUNTS_MAX || asset_count > ASSETS_MAX {
            return Err(RestoreError::OutOfRange);
        }
        let column_len = column_len(account_count, head_len);
        if rows.len() != column_len * asset_count as usize {
            return Err(RestoreError::Length);
        }
        let columns = rows.chunks_exact(column_len).map(|column| restore_column(column, head_len)).collect::<Result<_, _>>()?;
        Ok(Self { columns, account_count, dirty: Vec::new() })
    }
}

/// What moves between ledgers in 2^63 entries of the log, each of the largest amount.
const MOVED_MAX: u128 = (walras_types::limits::AMOUNT_MAX as u128) << 63;

/// Bytes of an asset before its balances.
const HEAD_LEN: usize = 48;
const HEAD_LEN_WITHOUT_POOLS: usize = 40;

fn column_len(account_count: u32, head_len: usize) -> usize {
    head_len + 16 * account_count as usize
}

fn restore_column(bytes: &[u8], head_len: usize) -> Result<Column, RestoreError> {
    let (short, rows) = bytes.split_at_checked(head_len).ok_or(RestoreError::Length)?;
    let mut head = [0; HEAD_LEN];
    head[..head_len].copy_from_slice(short);
    let (supply, fees) = unpair(&head[..16])?;
    let amount = |at: usize| {
        let units = u64::from_le_bytes(head[at..at + 8].try_into().expect("eight of forty-eight bytes"));
        Amount::new(units).ok_or(RestoreError::OutOfRange)
    };
    let (in_transit, pooled) = (amount(16)?, amount(40)?);
    let moved_in = i128::from_le_bytes(head[24..40].try_into().expect("sixteen of forty-eight bytes"));
    if moved_in.unsigned_abs() > MOVED_MAX {
        return Err(RestoreError::OutOfRange);
    }
    let mut held = [fees, in_transit, pooled].iter().map(|part| u128::from(part.get())).sum::<u128>();
    let mut balances = Parts::default();
    for row in rows.chunks_exact(16) {
        let (available, reserved) = unpair(row)?;
        held += u128::from(available.get()) + u128::from(reserved.get());
        balances.push(Balance { available, reserved });
    }
    if held != u128::from(supply.get()) {
        return Err(RestoreError::Unbalanced);
    }
    Ok(Column { balances, supply, fees, in_transit, pooled, moved_in })
}

fn pair(a: Amount, b: Amount) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.get().to_le_bytes());
    bytes[8..].copy_from_slice(&b.get().to_le_bytes());
    bytes
}

fn unpair(bytes: &[u8]) -> Result<(Amount, Amount), RestoreError> {
    let amount = |at: usize| {
        let units = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight of sixteen bytes"));
        Amount::new(units).ok_or(RestoreError::OutOfRange)
    };
    Ok((amount(0)?, amount(8)?))
}
