//! What local requests are answered.

use walras_engine::{Engine, Numbered, Standing};
use walras_types::{AccountId, ClientOrderName, ContentDigest, LogIndex, OrderId, Ordinal, RejectReason, TimeNs};
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
    /// Of the orders that the events are about, those whose owners name them by a text.
    pub names: Vec<(OrderId, ClientOrderName)>,
}

impl Outcome {
    /// The text that its owner calls an order by, if it is one.
    #[must_use]
    pub fn name_of(&self, order_id: OrderId) -> Option<ClientOrderName> {
        self.names.iter().find(|(named, _)| *named == order_id).map(|(_, name)| *name)
    }

    /// Why the command was refused, if it was.
    #[must_use]
    pub fn rejected(&self) -> Option<RejectReason> {
        rejected(&self.events)
    }

    /// Into which batch a transaction was taken, or why not.
    ///
    /// # Errors
    /// Why it was not.
    pub fn collected(&self) -> Result<TransactionCollected, RejectReason> {
        let collected = self
            .events
            .iter()
            .find_map(|event| if let Event::Batch(BatchEvent::TransactionCollected(c)) = event { Some(*c) } else { None });
        collected.ok_or(self.rejected().unwrap_or(RejectReason::VenueNotReady))
    }
}

/// Why a command changed nothing, if that is so.
pub(crate) fn rejected(events: &[Event]) -> Option<RejectReason> {
    events.iter().find_map(|event| if let Event::Rejected(r) = event { Some(r.reason) } else { None })
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
    /// What the sender of a command that is in doubt should do.
    pub const IN_DOUBT: &str = "The outcome of this command is unknown: it was being written and may yet take effect. Before sending it \
        again, wait until /v1/status shows storage \"ok\", then look for its client_order_id in GET /v1/orders and GET /v1/fills (an \
        operator's command: for what it would have changed).";

    /// The same for one that came under a session's number.
    pub const IN_DOUBT_NUMBERED: &str = "The outcome of this command is not known here. Send the same again under the same session and number, \
        here or to the replica that leads, until it is answered: it takes effect once.";

    /// No process is left to answer: whether the command reached the log is unknown.
    pub const GONE: Self = Self::InDoubt(RejectReason::VenueNotReady);

    /// Its reason.
    #[must_use]
    pub fn reason(self) -> RejectReason {
        let (Self::Refused(reason) | Self::InDoubt(reason)) = self;
        reason
    }
}

impl From<RejectReason> for NoOutcome {
    fn from(reason: RejectReason) -> Self {
        Self::Refused(reason)
    }
}

/// What stands in the log for good about a session's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub log_index: LogIndex,
    /// Why it changed nothing; `None` when it was carried out.
    pub rejected: Option<RejectReason>,
}

/// What came of a session's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberedOutcome {
    /// It was carried out or rejected just now.
    Done(Outcome),
    /// That was before, and this is what the state remembers of it.
    Repeated(walras_types::Answer),
}

impl NumberedOutcome {
    /// What stands in the log for good: the same however often the command is sent.
    #[must_use]
    pub fn answer(&self) -> Kept {
        match self {
            Self::Done(outcome) => Kept { log_index: outcome.log_index, rejected: outcome.rejected() },
            Self::Repeated(answer) => Kept { log_index: answer.log_index, rejected: answer.rejected },
        }
    }

    /// The answer for the sender of this command, which may be another one than the log has under its number.
    ///
    /// # Errors
    /// It is another one, or the log refused it.
    pub fn of(numbered: Numbered, content: ContentDigest, outcome: impl FnOnce() -> Outcome) -> Result<Self, NoOutcome> {
        let answer = match numbered {
            Numbered::Done(answer) => answer.to(content).map(|_| Self::Done(outcome())),
            Numbered::Repeated(answer) => answer.to(content).map(Self::Repeated),
            Numbered::Refused(reason) => Err(reason),
        };
        answer.map_err(NoOutcome::Refused)
    }
}

/// Whose command it is, under which number of which session, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Whose.
    pub account: AccountId,
    /// Which.
    pub ordinal: Ordinal,
    /// What the command says.
    pub content: ContentDigest,
}

impl Number {
    /// What the state knows of it: `None` when it is still to come.
    ///
    /// # Errors
    /// The session is not open, or not this account's; it is too long ago; or another command has this number.
    pub fn known(&self, engine: &Engine) -> Result<Option<walras_types::Answer>, RejectReason> {
        let is_own = engine.session(self.ordinal.session).is_some_and(|session| session.account == Some(self.account));
        if !is_own {
            return Err(RejectReason::UnknownSession);
        }
        match engine.standing(self.ordinal) {
            Standing::Next { .. } => Ok(None),
            Standing::Known(answer) => answer.to(self.content).map(Some),
            Standing::TooOld => Err(RejectReason::SessionSeqTooOld),
            Standing::UnknownSession => Err(RejectReason::UnknownSession),
        }
    }
}
