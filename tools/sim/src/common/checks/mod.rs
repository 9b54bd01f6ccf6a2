//! What must hold in both worlds.

pub(crate) mod conservation;
pub(crate) mod depth;
pub(crate) mod log_time;
pub(crate) mod replay;

/// Something that must hold and did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {detail}")]
pub struct Violation {
    /// Which checker says so.
    pub check: &'static str,
    /// What it saw.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, detail: detail.into() }
    }
}

pub(crate) type Checked = Result<(), Violation>;
