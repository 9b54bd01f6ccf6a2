//! The figures and tables of Jasper (Haseeb et al., 2024, arXiv 2402.09527) on this project's overlay tree and fair access, next to
//! the published ones.
//!
//! - [`latency`]: figures 4, 7, 8, 9, 10 and table 7: multicast latency by hedging and number of receivers. [`shape`]: tables 2 and 8:
//!   depth and fan-out.
//! - [`spraying`]: table 3: bursts over paths that queue.
//! - [`simultaneous`]: figure 11, tables 4 and 6: hold and release ([`released`]), with deadlines from delays that receivers report
//!   ([`held`]), and as the product steers ([`product`]); who profits. [`throughput`]: what one relay passes on, as the bench measured it.
//! - [`bursts`]: figures 12 and 13: limit order queues at relays in bursts of orders.
//! - [`pacing`]: table 5: pacing by one-way delay. [`incast`]: orders straight to the engine and over relays.
//! - [`monte_carlo`]: figure 14.
//!
//! The machines are the product's: `protocol/relay` (tree, relays, order queues, pacing, deadlines, lateness), `protocol/fair-access`
//! (hold and release, steered delays) and `protocol/sequencer` (what a leader steers). Links, machines' costs and participants are
//! simulated ([`network`], [`multicast`]).
//!
//! *Deliberately absent*: sockets and processor time (`make bench`), enclaves, the cloud's own multicast.
//!
//! *Invariants*
//! - The same seed gives the same figures on every machine; no figure depends on the speed of the machine.
//! - What was fitted, and to what, is said where it stands; agreement with that is no evidence.
//!
//! *Start reading* at [`multicast`], then [`latency`].
#![deny(unsafe_code)]

pub mod bursts;
pub mod held;
pub mod incast;
pub mod latency;
pub mod monte_carlo;
pub mod multicast;
pub mod network;
pub mod pacing;
pub mod plot;
pub mod product;
pub mod released;
pub mod rows;
pub mod shape;
pub mod simultaneous;
pub mod spraying;
pub mod stats;
pub mod throughput;

/// The extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As large as published, or as figures need.
    Full,
    /// For tests.
    Small,
}

impl Extent {
    /// One of two numbers.
    #[must_use]
    pub fn of<T>(self, full: T, small: T) -> T {
        match self {
            Self::Full => full,
            Self::Small => small,
        }
    }
}
