//! Commands that come over HTTP under a number of a session, so that whoever did not hear the answer may send them again: who waits for which.

use tokio::sync::oneshot;
use walras_engine::{Engine, Numbered, Standing};
use walras_types::{AccountId, ContentDigest, LogIndex, Ordinal, RejectReason};

use crate::outcome::{NoOutcome, Outcome, Reply};

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

    /// What somebody is told who sent this command, which may be another one than the log has under its number.
    pub fn told(numbered: Numbered, content: ContentDigest, outcome: impl FnOnce() -> Outcome) -> Result<Self, NoOutcome> {
        let told = match numbered {
            Numbered::Done(answer) => answer.to(content).map(|_| Self::Done(outcome())),
            Numbered::Repeated(answer) => answer.to(content).map(Self::Repeated),
            Numbered::Refused(reason) => Err(reason),
        };
        told.map_err(NoOutcome::Refused)
    }
}

/// Who waits for a session's command.
pub type NumberedReply = oneshot::Sender<Result<NumberedOutcome, NoOutcome>>;

/// Whose command it is, under which number of which session, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Whose.
    pub account: AccountId,
    /// Which number of which session.
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

/// Who sent a command, and waits.
pub enum Asker {
    /// Under no number.
    Reply(Reply),
    /// Under this one.
    Numbered(Number, NumberedReply),
}

impl Asker {
    /// Its number, if it has one.
    pub fn number(&self) -> Option<Number> {
        match self {
            Self::Reply(_) => None,
            Self::Numbered(number, _) => Some(*number),
        }
    }

    /// There is no outcome. (Whoever asked may have gone away, here and below.)
    pub fn refuse(self, why: NoOutcome) {
        match self {
            Self::Reply(reply) => drop(reply.send(Err(why))),
            Self::Numbered(_, reply) => drop(reply.send(Err(why))),
        }
    }

    /// It was known before it was logged.
    pub fn repeat(self, answer: walras_types::Answer) {
        match self {
            Self::Reply(_) => unreachable!("only a number is known before"),
            Self::Numbered(_, reply) => drop(reply.send(Ok(NumberedOutcome::Repeated(answer)))),
        }
    }

    /// It was applied.
    pub fn answer(self, numbered: Option<Numbered>, outcome: impl FnOnce() -> Outcome) {
        match (self, numbered) {
            (Self::Reply(reply), _) => drop(reply.send(Ok(outcome()))),
            (Self::Numbered(number, reply), Some(numbered)) => {
                drop(reply.send(NumberedOutcome::told(numbered, number.content, outcome)));
            }
            (Self::Numbered(..), None) => unreachable!("it was logged under its number"),
        }
    }
}
