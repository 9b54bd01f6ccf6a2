//! Blocks of transactions for a batch market, made by the data model of the SPEEDEX papers.
//!
//! Offers come from [`walras_price_solver::synthetic`]: hidden valuations that drift from block to block, cycles of offers near the true
//! ratios, and one bad offer in ten. Here they get accounts and numbers, cancels some blocks later, payments, new accounts, and, where
//! asked for, the faults that a filter has to find.
//!
//! ```
//! use walras_batch_workload::{Model, Workload, stands_in};
//! use walras_clearing::BatchMarket;
//!
//! let mut workload = Workload::new(Model::standard(50, 100_000, 1_000), 0);
//! // Every account begins with so much of every asset.
//! let endowment = workload.endowment();
//! # let market = BatchMarket::build(50, &[], &[], Vec::new())?;
//! // For each block: make it, close the batch with it, and say what became of it. Then clear the batch.
//! let transactions = workload.block(stands_in(&market));
//! assert_eq!(transactions.len(), 1_000);
//! let (batch_hash, dropped) = ([7; 32], []);
//! workload.closed(&batch_hash, dropped);
//! # assert!(endowment.get() > 0);
//! # Ok::<(), walras_clearing::MarketError>(())
//! ```
//!
//! *Deliberately absent*: balances (the endowment lasts long; a small one makes accounts overdraw), signatures and real keys, the state
//! that blocks change, prices.
//!
//! *Invariants*
//! - The same model, seed and answers give the same blocks on one machine (logarithms may differ in the last bit between machines).
//! - Without [`Faults`], and with an endowment that lasts, no transaction of a block has anything wrong, in any order.
//!
//! *Start reading* at [`Model`], then [`Workload::block`]. *Sources*: SPEEDEX 2021, section 7 and appendix G; SPEEDEX (NSDI 2023),
//! sections 7 and 7.1, appendix I.

mod model;
mod planned;
mod workload;

pub use model::{AccountChoice, Faults, Mix, Model, PaidAssets};
pub use workload::{Workload, stands_in};
