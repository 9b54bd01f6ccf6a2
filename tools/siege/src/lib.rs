//! A hostile campaign against processes of `walras`: attacks of bounded size, well-behaved clients next to them, and what is so afterwards.
//!
//! ```text
//! connections, datagrams, participants that attack (127.0.0.2 and on) ---\
//!                                                                          >--- every port of a venue, one process or three
//! well-behaved clients of each interface (127.0.0.1 and .10), timed ------/
//! ```
//!
//! *Deliberately absent*: more traffic than a machine can make (loopback has no line to fill), several machines.
//!
//! *Invariants*
//! - Whatever is measured with an attack is measured without it too, in turn, on the same connections of the same venue.
//! - Every attack is bounded: connections, rate, time.
//! - An attack counts as survived when no process ended, every port serves, acknowledged orders are there, and descriptors, memory and log lines are
//!   within [`limits`].
//!
//! *Start reading* at [`campaign::run`], then [`attack::ATTACKS`]. `docs/siege.md` says what is promised. [`replays`] is a campaign of its
//! own: what participants sent, sent again by somebody else; the bench `promises` runs it.

pub mod attack;
pub mod barrage;
mod batch;
mod binance;
pub mod campaign;
pub mod crowd;
mod fix;
pub mod good;
pub mod limits;
mod ports;
pub mod process;
pub mod replays;
pub mod report;
pub mod tree;
pub mod venue;
pub mod watch;
pub mod wire;
