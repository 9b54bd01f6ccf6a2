//! What comes of a command.

use tokio::sync::oneshot;
use walras_access::Refusal;
use walras_types::{LogIndex, RejectReason, TimeNs};
use walras_wire::{BatchEvent, Event, TransactionCollected};

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its place in the log.
    pub log_index: LogIndex,
    /// Its time there.
    pub time: TimeNs,
    /// What happened.
    pub events: Vec<Event>,
}

impl Outcome {
    /// Why the command was refused, if it was.
    #[must_use]
    pub fn rejected(&self) -> Option<RejectReason> {
        self.events.iter().find_map(|event| if let Event::Rejected(r) = event { Some(r.reason) } else { None })
    }

    /// Into which batch a transaction was taken, or why not.
    pub fn collected(&self) -> Result<TransactionCollected, RejectReason> {
        let collected = self
            .events
            .iter()
            .find_map(|event| if let Event::Batch(BatchEvent::TransactionCollected(c)) = event { Some(*c) } else { None });
        collected.ok_or(self.rejected().unwrap_or(RejectReason::VenueNotReady))
    }
}

/// Why a command has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOutcome {
    /// It is not in the log and never will be.
    #[error("{0}")]
    Refused(RejectReason),
    /// It may be in the log, for this reason nobody knows: a crash before the log is whole again can bring it back.
    #[error("{reason} {detail}", reason = .0, detail = NoOutcome::IN_DOUBT)]
    InDoubt(RejectReason),
}

impl NoOutcome {
    /// What the sender of a command in doubt is advised to do.
    pub const IN_DOUBT: &str = "The outcome of this command is unknown: it was being written and may yet take effect. Before sending it \
        again, wait until /v1/status shows storage \"ok\", then look for its client_order_id in GET /v1/orders and GET /v1/fills (an \
        operator's command: for what it would have changed).";

    /// The same for one that came under a session's number.
    pub const IN_DOUBT_NUMBERED: &str = "The outcome of this command is not known here. Send the same again under the same session and number, \
        here or to the replica that leads, until it is answered: it takes effect once.";

    /// Its reason.
    #[must_use]
    pub fn reason(self) -> RejectReason {
        let (Self::Refused(reason) | Self::InDoubt(reason)) = self;
        reason
    }

    /// Nobody is left to answer: whether the command reached the log is unknown.
    pub const GONE: Self = Self::InDoubt(RejectReason::VenueNotReady);
}

impl From<RejectReason> for NoOutcome {
    fn from(reason: RejectReason) -> Self {
        Self::Refused(reason)
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

/// Who waits for a command's outcome.
pub type Reply = oneshot::Sender<Result<Outcome, NoOutcome>>;

/// Where a command's outcome comes.
pub type Answer = oneshot::Receiver<Result<Outcome, NoOutcome>>;
