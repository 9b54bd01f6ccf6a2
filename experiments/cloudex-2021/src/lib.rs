//! Figures 4 and 5 of `CloudEx` (Ghalayini et al., `HotOS` 2021) on our fair access: unfairness against delay, by static and dynamic delays, in
//! a simulated cloud.
//!
//! *Deliberately absent*: sockets and real processes; participants' links (a stamp is made at the gateway); books (the engine takes a
//! constant time for an order).
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
pub mod plot;
pub mod policy;
pub mod published;
pub mod record;
pub mod replicated;
pub mod workload;
