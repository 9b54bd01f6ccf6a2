//! Who brings transfers from one shard of a venue to one other: what it does next, as a state machine.
//!
//! A [`Courier`] works in rounds. It looks at its own shard's state; sees to it that the two shards agree on the numbers of what moved between
//! them; brings the oldest transfers in transit; tells its own shard what came of them. Each [`Step`] is for whoever drives it: a thread of a node with an
//! HTTP client, a simulated network. What comes of a step is told, and gives the next one.
//!
//! It keeps nothing that matters: what is in transit, which number the other takes next, and whether the two agree are in the two states. So it may
//! be given up at any step, and several may be at work for the same shard.
//!
//! *Deliberately absent*: connections, addresses, keys, JSON, time (`edge/node`, `tools/sim`); what a transfer does (`walras_engine`).
//!
//! *Invariants*
//! - Nothing is brought before the own log says that the two shards agree, since the last mark of a beginning in it; nor after a failure, before
//!   the numbers have been compared again.
//! - The own shard is told nothing of a transfer but what the other said of that very number.
//!
//! *Start reading* at [`Courier`].
#![deny(clippy::float_arithmetic)]

mod courier;
mod pace;
mod settle;
mod trouble;

pub use courier::{Courier, Directory, Ended, Look, Step, WithOther};
pub use pace::{Pace, Pause};
pub use settle::{Told, carried, outcomes};
pub use trouble::{Trouble, tell};
