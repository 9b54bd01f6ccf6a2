//! A session's commands and what came of them.

use crate::{ContentDigest, LogIndex, RejectReason, SessionId, SessionSeq};

/// Which of a session's commands: what a retry has in common with what it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal {
    /// The session.
    pub session: SessionId,
    /// The place in it.
    pub session_seq: SessionSeq,
}

/// The result of a numbered command: where in the log it was applied, and whether it took effect. Events have the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Place of the one entry that was applied under the ordinal.
    pub log_index: LogIndex,
    /// Why it was rejected; `None` when it took effect.
    pub rejected: Option<RejectReason>,
    /// What it said: only the same is a repeat of it.
    pub content: ContentDigest,
}

impl Answer {
    /// The answer to a repeat that says this.
    ///
    /// # Errors
    /// It says something else.
    #[inline]
    pub fn to(self, content: ContentDigest) -> Result<Self, RejectReason> {
        if self.content == content { Ok(self) } else { Err(RejectReason::SessionSeqReused) }
    }
}
