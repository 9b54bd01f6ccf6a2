//! Blocks of a batch market on the ledger: transactions that commute, one clearing, one hash.
//!
//! A block has two halves. [`Batch::close`] decides which of a batch's transactions are kept, reserves what they spend, puts new offers
//! into the market and takes cancelled ones out. Then somebody finds a clearing of [`Batch::market`], while the continuous markets on the same
//! ledger go on. [`Batch::clear`] checks it, trades, pays, creates accounts and hashes the state. A validator does the same with the clearing
//! that a proposer found, and never runs a solver.
//!
//! *Deliberately absent*: finding prices (the edge's), signatures (checked before), the bytes of transactions and blocks (the wire's), clocks,
//! the market's place among others and when it closes (the engine's).
//!
//! *Invariants*, each a property test
//! - The state after a block depends neither on the order of its transactions nor on the number of threads.
//! - Whatever accounts send, no balance falls below zero, and of each asset the supply is what accounts and fees have.
//! - A block that is rejected leaves no trace, and whatever is wrong with it is found: each field is checked, and each hash.
//! - A block leaves no more undone than its market's rules allow, or sets whole parts of the market aside and says so ([`Quality`]): who proposes
//!   it can not leave out offers that its prices are clearly good for.
//! - Whoever opens accounts by transactions pays what its batch costs, reserved when it is closed and the venue's when it is cleared; whoever can not
//!   opens none.
//! - Who gives shares of a pool back gets at most its part of what the pool has, and a share is never worth less after a block.
//! - No transaction takes effect twice. What [`Intake::Reserve`] keeps, [`Intake::Filter`] keeps whole.
//! - A block keeps all of a chain or nothing ([`walras_types::Joined`]), whatever part of it the batch has.
//!
//! *Start reading* at [`Batch`], then [`Batch::close`] and [`Batch::clear`]. How threads share the work: [`walras_ledger::AccountsPart`] (a
//! block reserves account by account), [`walras_clearing::BatchMarket::change_sells`] (pair by pair), [`walras_ledger::AssetMoves`] (it settles
//! asset by asset). Sources: SPEEDEX (NSDI 2023), section 3 (what commutes), 9.3 (one hashing per block), appendices I (the filter) and K
//! (sequence numbers, marginal keys, reservation).
#![deny(clippy::float_arithmetic)]

mod accounts;
mod batch;
mod certificate;
mod clear;
mod close;
mod closed;
mod effects;
mod gather;
mod header;
mod intake;
mod joined;
mod keys;
pub mod light;
mod outcomes;
mod pool_entries;
mod pools;
mod proofs;
mod proposed;
mod quality;
mod settings;
mod snapshot;
mod steps;
mod threads;
mod trees;
mod value;
mod wire_form;

pub use accounts::{AccountError, Accounts};
pub use batch::Batch;
pub use certificate::{Certificate, CertificateError, GAP_PPB_ALL, POTENTIAL_MAX, POTENTIAL_ONE, gap_ppb};
pub use clear::Cleared;
pub use close::{CloseError, Closed};
pub use effects::{Effect, Then};
pub use header::{BlockHeader, LIGHT_HEADER_BYTES, LightHeader};
pub use outcomes::{BlockOutcome, OfferTraded, Outcomes, PoolMoved};
pub use pools::{PoolChange, PoolChangeKind, PoolView};
pub use proposed::{BlockPlace, BlockRejected, ProposedClearing, Roots};
pub use quality::{Assessed, Quality, QualityError, assess};
pub use settings::{BatchSettings, SettingsError};
pub use snapshot::{MarketForm, RestoreError, check_restored};
pub use steps::{BlockDone, BlockJob, Collected, FillMove, Moved, NextStep, Stepped};
pub use threads::threads_worth;
pub use walras_clearing::Pairs;
pub use walras_types::{DropReason, Intake, QualityMax};
