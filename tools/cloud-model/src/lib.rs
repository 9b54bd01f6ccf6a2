//! A cloud in simulation: orders in and market data out over links with measured delays, and every way to set a delay on the same of them.
//! The experiments on `CloudEx` and the bench share it.
//!
//! *Deliberately absent*: sockets and real processes; participants' links (a stamp is made at the gateway); books (the engine takes a
//! constant time for an order); what was published (the experiments have it).
//!
//! *Invariants*
//! - The hold and the delays are the product's, unchanged: [`walras_fair_access`].
//! - All ways to set a delay meet the same orders and the same network.
//! - The same seed and the same data give the same figures everywhere.
//!
//! *Start reading* at [`figure`], then [`inbound`], [`outbound`] and [`network`].

pub mod draw;
pub mod figure;
pub mod frontier;
pub mod inbound;
pub mod network;
pub mod outbound;
pub mod policy;
pub mod workload;
