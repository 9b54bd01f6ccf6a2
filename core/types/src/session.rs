//! A session's commands and what came of them.

use crate::{LogIndex, RejectReason, SessionId, SessionSeq};

/// Which of a session's commands: what a retry has in common with what it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal {
    /// The session.
    pub session: SessionId,
    /// The place in it.
    pub session_seq: SessionSeq,
}

/// What came of an ordinal: where in the log it was applied, and whether it took effect. What happened there is told by events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Place of the one entry that was applied under the ordinal.
    pub log_index: LogIndex,
    /// Why it was rejected; `None` when it took effect.
    pub rejected: Option<RejectReason>,
}
