//! The experiments of the Raft matching engine dissertation (2021). Section 4.2, order books: the dissertation's baseline, rebuilt
//! from its description, and Walras's own book with each of its price indexes. Sections 4.1 and 4.3, clusters: the death of a
//! leader, in a simulation of our replicas and with processes, and load on clusters of processes.
//!
//! *Deliberately absent*: the dissertation's optimised book (radix tree over growable arrays; ours has the same tree over linked
//! orders), Aeron Cluster for comparison (`make bench NAME=replication` has it), and anything that asserts a time.
//!
//! *Invariants*
//! - Within an iteration all books get the same orders, and must give the same trades and the same book: [`answers`] fails the run
//!   otherwise, so that no figure is drawn of books that disagree.
//! - Only the operation is timed. Drawing orders, building the book, clearing it and looking at the answer are not.
//! - The same seed gives the same orders everywhere, and the same simulated elections.
//!
//! *Start reading* at [`matching_pair`] (fig-4.2), [`peer`] (fig-4.3), [`profile`] (fig-4.4) and [`large_sell`] (fig-4.5, fig-4.6),
//! then [`books`]; at [`failover`] (fig-4.1) and [`cluster`] (fig-4.1, fig-4.7, fig-4.9), with [`etcd`] for comparison; at
//! [`streaming`] (sec-3.4). Source: sections 3.3.1, 3.4 and 4.1 to 4.3.

pub mod answers;
pub mod baseline;
pub mod books;
pub mod cluster;
pub mod draw;
pub mod etcd;
pub mod failover;
pub mod large_sell;
pub mod matching_pair;
pub mod measure;
pub mod peer;
pub mod plot;
pub mod plot_cluster;
pub mod plot_profile;
pub mod profile;
pub mod record;
pub mod record_cluster;
pub mod stats;
pub mod streaming;

/// Seed of every experiment; an iteration's orders follow from it, the experiment and the iteration's number alone.
pub const SEED: u64 = 2021;
