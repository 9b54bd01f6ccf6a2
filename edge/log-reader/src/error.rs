use walras_types::LogIndex;

/// Why a log was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum LogReadError {
    /// Its files cannot be read.
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// What they hold is not the log of a venue, or not the one that it was.
    #[error("{0}")]
    Damaged(String),
    /// An entry of the log.
    #[error("entry {index}: {detail}")]
    Entry {
        /// Its number.
        index: LogIndex,
        /// What is wrong with it.
        detail: String,
    },
    /// Signatures are checked with random weights.
    #[error("the operating system gave no random bytes: {0}")]
    Random(String),
}

impl LogReadError {
    /// Whether the log or a snapshot is damaged, so that reading it again fails again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Entry { .. } | Self::Log(walras_log_store::LogError::Corrupt { .. }))
    }

    pub(crate) fn damaged(why: &impl ToString) -> Self {
        Self::Damaged(why.to_string())
    }
}
