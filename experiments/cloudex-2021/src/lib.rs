//! Figures 4, 5 and 6 and table 1 of `CloudEx` (Ghalayini et al., `HotOS` 2021) on our fair access, compared with the published
//! ones: unfairness against delay, for static and dynamic delays, and latencies in the simulated cloud of [`walras_cloud_model`];
//! throughput and processor time of real processes.
//!
//! *Start reading* at [`record`] and [`published`]; for what is simulated at [`figure`], for processes at [`processes`].

pub mod engines;
pub mod plot;
pub mod processes;
pub mod published;
pub mod record;
pub mod record_processes;
pub mod replicated;
pub mod sharded;

pub use walras_cloud_model::{draw, figure, frontier, inbound, network, outbound, policy, workload};
