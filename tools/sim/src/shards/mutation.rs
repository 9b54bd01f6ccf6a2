//! Faults planted in what surrounds couriers, and in who answers them.

use crate::common::planted::mutations;

mutations! {
    /// A courier makes up what the other shard would tell of its numbers, so that the two agree.
    NeverAsks,
    /// Directories are told as the replica that is asked has them, without asking whether it is behind.
    StaleDirectory,
    /// A courier that hears nothing of what it brought believes that it was taken.
    SilenceIsTaken,
    /// A courier tells its shard that what was refused was taken.
    RefusedIsTaken,
    /// A courier tells its shard, now and then, that what was taken was refused.
    TakenIsRefused,
    /// A courier brings a unit more than was sent.
    BringsMore,
    /// A courier brings a transfer to another account.
    BringsToAnother,
    /// Whoever takes what is brought forgets which numbers came before, and gives each the next one.
    ReceiverForgets,
    /// A shard sends a transfer twice that was asked for once.
    SendsTwice,
    /// A courier that failed once does not try again.
    GivesUp,
}
