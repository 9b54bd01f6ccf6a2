//! Who sent a command to a venue, and how it is answered.

use tokio::sync::oneshot;
use walras_engine::Numbered;
use walras_replica::{NoOutcome, Number, NumberedOutcome, Outcome};

use crate::outcome::Reply;

/// Who waits for a session's command.
pub type NumberedReply = oneshot::Sender<Result<NumberedOutcome, NoOutcome>>;

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

    /// There is no outcome. (The caller may have gone, here and below.)
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
                drop(reply.send(NumberedOutcome::of(numbered, number.content, outcome)));
            }
            (Self::Numbered(..), None) => unreachable!("it was logged under its number"),
        }
    }
}
