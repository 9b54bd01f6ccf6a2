//! The client side of a venue: the REST client, the signing of requests, local clusters of processes, and load generators that
//! measure latency.
//!
//! The command line, the transfer relays of shards, tests, benchmarks and experiments use it against a running venue.
//!
//! *Deliberately absent*: the venue. A cluster on one machine is made of processes of the program `walras`, whose file the caller
//! names.
//!
//! *Invariants*
//! - A request that the venue may have executed is not sent again under another nonce, unless it was refused for its stamp.
//! - A load measures the time from when a command was due.
//!
//! *Start reading* at [`http::Client`], then [`load`] and [`cluster`].

pub mod cluster;
mod entry_session;
mod entry_stream;
mod error;
pub mod failover;
pub mod http;
mod latency;
pub mod load;
pub mod local_cluster;
pub mod signing;

pub use entry_session::EntrySession;
pub use entry_stream::{EntryStream, EntryTrust};
pub use error::LoadError;
pub use http::{Client, ClientError, Trust, read_key};
pub use latency::{Latencies, LatencyReport};
pub use signing::{headers, sign, sign_at};
