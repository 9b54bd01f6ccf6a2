//! A session's commands and their answers.

use crate::{ContentDigest, LogIndex, RejectReason, SessionId, SessionSeq};

/// Identifies a command of a session. A retry has the same ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal {
    /// The session.
    pub session: SessionId,
    /// The command's number in it.
    pub session_seq: SessionSeq,
}

/// The result of a numbered command: where in the log it was applied, and whether it took effect. Events have the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Log index of the one entry that was applied under the ordinal.
    pub log_index: LogIndex,
    /// Why it was rejected; `None` when it took effect.
    pub rejected: Option<RejectReason>,
    /// Digest of its content: only a command with the same content is a repeat.
    pub content: ContentDigest,
}

impl Answer {
    /// The answer to a repeat with this content.
    ///
    /// # Errors
    /// If the content differs.
    #[inline]
    pub fn to(self, content: ContentDigest) -> Result<Self, RejectReason> {
        if self.content == content { Ok(self) } else { Err(RejectReason::SessionSeqReused) }
    }
}
