//! A naive judge of blocks of a batch market, and random blocks to be judged.
//!
//! [`Venue`] is written from the definition of a block alone, in sorted maps and 128-bit sums, one transaction at a time; it shares
//! nothing with the crate that it judges but the vocabulary: the types, an offer's key and effective limit, and what a rate pays
//! ([`walras_types::NetRate`]), each of which is judged elsewhere.
//!
//! - [`Venue::judge`] says which transactions of a batch are kept, and everything that is wrong with each of the others.
//! - [`Venue::close`] reserves what they spend, lets new offers stand and takes cancelled ones away.
//! - [`Venue::clear`] trades as a proposal says and lets all else take effect, or tells everything that is wrong with it.
//!
//! *Deliberately absent*: hashes, proofs, bytes, speed. Which of several faults is reported is the other side's choice; that it is one
//! of those that are there is not.
//!
//! *Start reading* at [`Venue`], then [`Fault`] and [`Objection`].

mod clear;
mod close;
mod generate;
mod venue;

pub use clear::Objection;
pub use close::{Fault, Intake, Verdict};
pub use generate::{account_fee, lie, proposal, transactions, venue};
pub use venue::{Holding, Standing, Venue};
