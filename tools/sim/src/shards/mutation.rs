//! Faults planted around transfer relays, and in the shards that answer them.

use crate::common::planted::mutations;

mutations! {
    /// A relay makes up numbers of the other shard that agree with its own.
    NeverAsks,
    /// Directories are sent as the replica that is asked has them, without asking whether it is behind.
    StaleDirectory,
    /// A relay that gets no answer to a delivery reports the transfers as taken.
    SilenceIsTaken,
    /// A relay reports refused transfers as taken.
    RefusedIsTaken,
    /// A relay reports taken transfers as refused, now and then.
    TakenIsRefused,
    /// A relay delivers a unit more than was sent.
    DeliversMore,
    /// A relay delivers a transfer to another account.
    DeliversToAnother,
    /// The receiver forgets earlier numbers, and gives each delivery the next one.
    ReceiverForgets,
    /// A shard sends a transfer twice that was asked for once.
    SendsTwice,
    /// A relay that failed once does not try again.
    GivesUp,
}
