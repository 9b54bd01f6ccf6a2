//! A client's side of a venue: the REST client, the signing of requests, a cluster of processes on one machine, and loads whose
//! answers are timed.
//!
//! The command line, the transfer relays of shards, tests, benchmarks and experiments use it against a running venue.
//!
//! *Deliberately absent*: the venue. A cluster on one machine is made of processes of the program `walras`, whose file the caller
//! names.
//!
//! *Invariants*
//! - A request that the venue may have taken is not sent again under another nonce, except where it was refused for its stamp.
//! - A load measures what its participants waited, from when an order was due.
//!
//! *Start reading* at [`http::Client`], then [`load`] and [`cluster`].

pub mod cluster;
mod error;
pub mod failover;
pub mod http;
mod latency;
pub mod load;
pub mod local_cluster;
pub mod signing;

pub use error::LoadError;
pub use http::{Client, ClientError, Trust, read_key};
pub use latency::{Latencies, LatencyReport};
pub use signing::{headers, sign, sign_at};
