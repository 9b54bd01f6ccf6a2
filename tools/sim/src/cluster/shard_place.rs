//! Which shard a cluster is, and what those hear who wait at it for something.

use walras_testkit::Random;
use walras_wire::ShardPlace;

use super::replica::Disposition;

/// Which shard a cluster is.
#[derive(Debug)]
pub(crate) struct OfShards {
    pub(crate) place: ShardPlace,
    /// What its operator sets up, which is the same at all of them but for funds.
    pub(crate) setup: Random,
}

/// Numbers under which somebody of the venue waits for something here are not below this one.
pub(crate) const NUMBERS_FROM: u64 = 1 << 32;

/// An answer to what was asked under a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The state of the replica that was asked has all that was acknowledged before.
    Read(u64),
    /// What came of a command.
    Command(u64, Disposition),
}
