//! Refusals of requests, with details.

use walras_replica::NoOutcome;
use walras_types::RejectReason;

/// A refusal with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: RejectReason,
    /// The field, and what would be accepted.
    pub detail: Option<String>,
}

impl From<RejectReason> for Refusal {
    fn from(reason: RejectReason) -> Self {
        Self { reason, detail: None }
    }
}

impl From<walras_gateway::Refusal> for Refusal {
    fn from(refusal: walras_gateway::Refusal) -> Self {
        Self { reason: refusal.reason, detail: refusal.detail.map(std::borrow::Cow::into_owned) }
    }
}

impl Refusal {
    /// A refusal with details.
    #[must_use]
    pub fn new(reason: RejectReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: Some(detail.into()) }
    }

    /// The same for something that cannot be parsed.
    #[must_use]
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(RejectReason::Malformed, detail)
    }
}

impl From<NoOutcome> for Refusal {
    fn from(why: NoOutcome) -> Self {
        match why {
            NoOutcome::Refused(reason) => reason.into(),
            NoOutcome::InDoubt(reason) => Self::new(reason, NoOutcome::IN_DOUBT),
        }
    }
}
