//! The ledger: who has how much of what, and how much of that is reserved. The only code that changes a balance.
//!
//! *Deliberately absent*: orders, prices and fees' rates (the engine computes every amount and the ledger moves it), whether an
//! account may trade, names of assets, and overdrafts.
//!
//! *Invariants*, after every call:
//! - Per asset, the sum over all accounts of available and reserved, plus the fees collected, is the supply issued.
//! - The supply of an asset is at most [`walras_types::limits::AMOUNT_MAX`]. So no balance can overflow: each is a part of it.
//! - A call that returns an error has changed nothing.
//!
//! *Start reading* at [`Ledger`], then [`Ledger::settle`].
#![deny(clippy::float_arithmetic)]

mod ledger;
mod snapshot;

pub use ledger::{Balance, Ledger, LedgerError, Settlement};
pub use snapshot::RestoreError;
