//! Delivers transfers from one shard of a venue to another: the next step, as a state machine.
//!
//! A [`TransferRelay`] works in rounds. It looks at its own shard's state; makes sure that the two shards agree on the numbers of
//! past transfers; delivers the oldest transfers in transit; and reports the results to its own shard. A driver carries out each
//! [`Step`]: a thread of a node with an HTTP client, or a simulated network. The result of a step goes back in, and gives the next
//! one.
//!
//! It keeps nothing that matters: the two states know what is in transit, which number the other shard takes next, and whether the
//! two agree. So it may be dropped at any step, and several may work for the same shard.
//!
//! *Deliberately absent*: connections, addresses, keys, JSON, time (`edge/node`, `tools/sim`); what a transfer does
//! (`walras_engine`).
//!
//! *Invariants*
//! - Nothing is delivered before the own log says, since its last start, that the two shards agree; nor after a failure, before the
//!   numbers have been compared again.
//! - The own shard receives a result only for a transfer whose number the other shard answered for.
//!
//! *Start reading* at [`TransferRelay`].
#![deny(clippy::float_arithmetic)]

mod pace;
mod relay;
mod settle;
mod trouble;

pub use pace::{Pace, Pause};
pub use relay::{Directory, Ended, Look, Step, TransferRelay, WithOther};
pub use settle::{Reported, carried, outcomes};
pub use trouble::{Trouble, tell};
