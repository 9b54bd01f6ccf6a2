//! Faults planted in the node, to show that the checkers find them. They are in the simulator's node, around the product's keeper of
//! the log, and in the disk, not in the product.

use crate::common::planted::mutations;

mutations! {
    /// Small batches are acknowledged when they are buffered; they are written and synced with a later one.
    AcknowledgeBeforeSync,
    /// The disk does not sync segments.
    SkipLogSync,
    /// The disk does not sync snapshots.
    SkipSnapshotSync,
    /// A failed write or sync of the log counts as done.
    IgnoreFailedSync,
    /// Senders of a batch in doubt are told that it was refused, before it is known to be off the disk.
    RefuseBeforeUndone,
    /// After a failed write nothing is written any more, as if the log were never opened again.
    NeverReopen,
    /// The log lets go of entries before the snapshot that replaces them is written.
    LetGoBeforeSnapshot,
    /// Events are released, and answers sent, when a batch is handed to the log.
    ReleaseEventsEarly,
    /// The last entry of the log is submitted again after recovery.
    ReplayTwice,
    /// Every request is submitted twice.
    SubmitTwice,
    /// Requests from before the start are taken again.
    ForgetNonces,
    /// Requests stamped after the start are taken, although a client's clock, or the node's own before it was set back, may have been
    /// ahead of the start's.
    TakeStampsFromStart,
    /// A cancel frees neither the order nor what it reserved.
    ForgetCancel,
    /// A deposit credits twice what the log says.
    CreditTwice,
    /// Entries are stamped by the clock alone, which may go back.
    StampBackwards,
    /// Market data starts empty after a restart from a snapshot.
    ForgetMarketData,
    /// Market data does not hear of the last event of an entry.
    LoseLastEvent,
}
