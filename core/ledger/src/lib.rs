//! The ledger: who has how much of what, and how much of that is reserved. The only code that changes a balance.
//!
//! *Deliberately absent*: orders, prices and fees' rates (the engine computes every amount and the ledger moves it), whether an
//! account may trade, names of assets, and overdrafts.
//!
//! *Invariants*, after every call, and of an asset whose [`AssetMoves`] are under way after [`AssetMoves::finish`]:
//! - Per asset, the sum over all accounts of available and reserved, plus the fees collected, plus what is in transit to other ledgers and what
//!   pools hold, is the supply: what was issued here less what was withdrawn, plus what was received from other ledgers less what they took.
//! - The supply of an asset is at most [`walras_types::limits::AMOUNT_MAX`]. So no balance can overflow: each is a part of it.
//! - A call that returns an error has changed nothing.
//!
//! *Start reading* at [`Ledger`], then [`Ledger::settle`]; for blocks of a batch market [`AccountsPart`], then [`AssetMoves`].
#![deny(clippy::float_arithmetic)]

mod block;
mod ledger;
mod parts;
mod snapshot;

pub use block::{AccountSet, AccountsPart, AssetMoves, AssetsPart};
pub use ledger::{Balance, Ledger, LedgerError, Settlement};
pub use parts::{PART_ACCOUNTS, Parts, PartsRange};
pub use snapshot::RestoreError;
