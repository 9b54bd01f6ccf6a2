//! Figures 4 and 5 of `CloudEx` (Ghalayini et al., `HotOS` 2021) on our fair access: unfairness against delay, by static and dynamic delays, in
//! the simulated cloud of [`walras_cloud_model`], beside what was published; and figure 6a.
//!
//! *Start reading* at [`record`] and [`published`]; for what is simulated at [`figure`].

pub mod plot;
pub mod published;
pub mod record;
pub mod replicated;

pub use walras_cloud_model::{draw, figure, frontier, inbound, network, outbound, policy, workload};
