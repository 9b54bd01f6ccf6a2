//! A batch market on a ledger, to which the blocks of a workload are applied and timed: what the benchmark and the experiments share.
//!
//! A block is *proposed* by closing a batch (filter, reserve, new offers stand), finding prices and amounts, and clearing it (check, trade,
//! hash); it is *validated* by closing and clearing with what the proposer found, every root compared.
//!
//! ```
//! use std::num::NonZero;
//! use walras_batch_venue::Venue;
//! use walras_batch_workload::{Model, Workload, stands_in};
//!
//! let mut workload = Workload::new(Model::standard(5, 100, 1_000), 0);
//! let mut proposer = Venue::new(workload.model(), workload.endowment(), NonZero::<usize>::MIN)?;
//! let mut validator = proposer.clone();
//! let transactions = workload.block(stands_in(proposer.batch.market())).to_vec();
//! let proposed = proposer.propose(&transactions, None)?;
//! let validate_ms = validator.validate(&transactions, &proposed.block)?;
//! println!("proposed in {} ms, validated in {validate_ms} ms", proposed.times.total());
//! # assert_eq!(proposer.batch.parent(), validator.batch.parent());
//! # anyhow::Ok(())
//! ```
//!
//! *Deliberately absent*: what is summarised and compared with whom (each bench and experiment knows that), disks, networks.
//!
//! *Invariants*
//! - Only what a venue would do with a block is in its times: making and signing transactions is not.
//! - A block that its proposer's own clearing does not survive, or whose roots differ at a validator, is an error.
//!
//! *Start reading* at [`Venue`], then [`Signatures`]. *Sources*: SPEEDEX (NSDI 2023), section 7.
#![deny(unsafe_code)]

mod signatures;
mod venue;

pub use signatures::{Signatures, SignedBlock};
pub use venue::{Proposed, Times, Venue, rules};
