//! Faults planted in what surrounds the product's state machines: in the replica's host, in its disk, in its clients.

use crate::common::planted::mutations;

mutations! {
    /// A command is answered when the leader takes it.
    AcknowledgeBeforeCommit,
    /// The consensus is told that a write is durable when it was handed to the operating system.
    PersistedBeforeSync,
    /// The disk does not sync segments.
    SkipLogSync,
    /// The disk does not sync snapshots.
    SkipSnapshotSync,
    /// The log lets go of slots before the snapshot that replaces them is written.
    LetGoBeforeSnapshot,
    /// Sessions are lost where a state is restored from a snapshot.
    ForgetSessions,
    /// A client gives what is unanswered another number when it sends it again.
    RetryRenumbered,
    /// A replica starts without the vote that it wrote down.
    ForgetVote,
    /// A replica starts from its snapshot without the slots that follow it.
    ForgetTail,
    /// One replica's state is not what the log makes of it, after a restart from a snapshot.
    Diverge,
    /// Reports are numbered anew after a restart from a snapshot.
    ReportsForgotten,
    /// A report is lost between two others.
    LoseReport,
    /// An answer is another command's.
    AnswerMixedUp,
    /// Market data starts empty after a restart from a snapshot.
    ForgetMarketData,
    /// A snapshot from another replica is gone on from although its end did not come.
    TakeHalfASnapshot,
    /// The leader never hears what became of a snapshot that it sent.
    ForgetSnapshotSent,
    /// Reads are answered at once by whoever is asked.
    ReadAtOnce,
    /// A replica starts with the members that the cluster began with.
    ForgetMembers,
    /// Where memory counts, a replica that did not stop in good order goes on under its id.
    RejoinAsItself,
    /// A replica whose disk was lost begins under its id with an empty one, and takes part without asking the others.
    RejoinWithEmptyDisk,
}
