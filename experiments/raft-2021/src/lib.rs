//! The order-book experiments of the Raft matching engine dissertation (2021), section 4.2, on three books: the dissertation's baseline,
//! rebuilt from its description, and Walras's own book with each of its price indexes.
//!
//! *Deliberately absent*: the dissertation's optimised book (radix tree over growable arrays; ours has the same tree over linked orders),
//! its cluster experiments, and anything that asserts a time.
//!
//! *Invariants*
//! - Within an iteration all books get the same orders, and must give the same trades and the same book: [`answers`] fails the run
//!   otherwise, so that no figure is drawn of books that disagree.
//! - Only the operation is timed. Drawing orders, building the book, clearing it and looking at the answer are not.
//! - The same seed gives the same orders everywhere.
//!
//! *Start reading* at [`matching_pair`] (fig-4.2), [`peer`] (fig-4.3) and [`large_sell`] (fig-4.5, fig-4.6), then [`books`]. Source: sections 3.3.1 and 4.2.

pub mod answers;
pub mod baseline;
pub mod books;
pub mod draw;
pub mod failover;
pub mod large_sell;
pub mod matching_pair;
pub mod measure;
pub mod peer;
pub mod plot;
pub mod record;
pub mod stats;

/// Seed of every experiment; an iteration's orders follow from it, the experiment and the iteration's number alone.
pub const SEED: u64 = 2021;
