//! Commands that come over HTTP under a number of a session, so that whoever did not hear the answer may send them again: who waits for which.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use walras_engine::{Engine, Numbered};
use walras_types::{AccountId, Ordinal, RejectReason};

use super::{NoOutcome, Outcome, Reply};

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
    pub fn answer(&self) -> walras_types::Answer {
        match self {
            Self::Done(outcome) => walras_types::Answer { log_index: outcome.log_index, rejected: outcome.rejected() },
            Self::Repeated(answer) => *answer,
        }
    }

    fn told(numbered: Numbered, outcome: impl FnOnce() -> Outcome) -> Result<Self, NoOutcome> {
        match numbered {
            Numbered::Done(_) => Ok(Self::Done(outcome())),
            Numbered::Repeated(answer) => Ok(Self::Repeated(answer)),
            Numbered::Refused(reason) => Err(NoOutcome::Refused(reason)),
        }
    }
}

/// Who waits for a session's command.
pub(super) type NumberedReply = oneshot::Sender<Result<NumberedOutcome, NoOutcome>>;

/// Whose command it is, and under which number of which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) account: AccountId,
    pub(super) ordinal: Ordinal,
}

impl Number {
    /// What the state knows of it: `None` when it is still to come.
    ///
    /// # Errors
    /// The session is not open, or not this account's; or it is too long ago.
    pub(super) fn known(&self, engine: &Engine) -> Result<Option<walras_types::Answer>, RejectReason> {
        let session = engine.session(self.ordinal.session).filter(|session| session.account == Some(self.account));
        let next = session.ok_or(RejectReason::UnknownSession)?.next;
        if self.ordinal.session_seq >= next {
            return Ok(None);
        }
        engine.answer(self.ordinal).map(Some).ok_or(RejectReason::SessionSeqTooOld)
    }
}

/// Who sent a command, and waits.
pub(super) enum Asker {
    /// Under no number.
    Reply(Reply),
    /// Under this one.
    Numbered(Number, NumberedReply),
}

impl Asker {
    /// Its number, if it has one.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Self::Reply(_) => None,
            Self::Numbered(number, _) => Some(*number),
        }
    }

    /// There is no outcome. (Whoever asked may have gone away, here and below.)
    pub(super) fn refuse(self, why: NoOutcome) {
        match self {
            Self::Reply(reply) => drop(reply.send(Err(why))),
            Self::Numbered(_, reply) => drop(reply.send(Err(why))),
        }
    }

    /// It was known before it was logged.
    pub(super) fn repeat(self, answer: walras_types::Answer) {
        match self {
            Self::Reply(_) => unreachable!("only a number is known before"),
            Self::Numbered(_, reply) => drop(reply.send(Ok(NumberedOutcome::Repeated(answer)))),
        }
    }

    /// It was applied.
    pub(super) fn answer(self, numbered: Option<Numbered>, outcome: impl FnOnce() -> Outcome) {
        match (self, numbered) {
            (Self::Reply(reply), _) => drop(reply.send(Ok(outcome()))),
            (Self::Numbered(_, reply), Some(numbered)) => drop(reply.send(NumberedOutcome::told(numbered, outcome))),
            (Self::Numbered(..), None) => unreachable!("it was logged under its number"),
        }
    }
}

/// Those who wait at a replica, until the log holds their command or this replica can not tell them.
#[derive(Debug, Default)]
pub(super) struct NumberedWaits(BTreeMap<Ordinal, Vec<NumberedReply>>);

impl NumberedWaits {
    /// Somebody waits, besides others perhaps who sent the same.
    pub(super) fn wait(&mut self, ordinal: Ordinal, reply: NumberedReply) {
        let waiting = self.0.entry(ordinal).or_default();
        waiting.retain(|reply| !reply.is_closed());
        waiting.push(reply);
    }

    /// The log holds it.
    pub(super) fn applied(&mut self, ordinal: Ordinal, numbered: Numbered, outcome: impl Fn() -> Outcome) {
        for reply in self.0.remove(&ordinal).unwrap_or_default() {
            let _ = reply.send(NumberedOutcome::told(numbered, &outcome));
        }
    }

    /// The leader does not take it.
    pub(super) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        for reply in self.0.remove(&ordinal).unwrap_or_default() {
            let _ = reply.send(Err(NoOutcome::Refused(reason)));
        }
    }

    /// Another replica leads, or the state came from elsewhere: what is here may be in the log or may yet be.
    pub(super) fn lose_all(&mut self) {
        for reply in std::mem::take(&mut self.0).into_values().flatten() {
            let _ = reply.send(Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{LogIndex, SessionId, SessionSeq, TimeNs};

    use super::*;

    fn ordinal(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(7), session_seq: SessionSeq(session_seq) }
    }

    fn outcome() -> Outcome {
        Outcome { log_index: LogIndex(9), time: TimeNs(1), events: Vec::new() }
    }

    #[test]
    fn all_who_sent_the_same_are_told_the_same() {
        let mut waits = NumberedWaits::default();
        let mut wait = |session_seq| {
            let (reply, answer) = oneshot::channel();
            waits.wait(ordinal(session_seq), reply);
            answer
        };
        let (mut first, mut again, mut other, mut refused) = (wait(1), wait(1), wait(2), wait(3));
        drop(wait(4));
        let answer = walras_types::Answer { log_index: LogIndex(9), rejected: None };
        waits.applied(ordinal(1), Numbered::Done(answer), outcome);
        for told in [&mut first, &mut again] {
            assert_eq!(told.try_recv().unwrap(), Ok(NumberedOutcome::Done(outcome())));
        }
        waits.refused(ordinal(3), RejectReason::SessionSeqGap);
        assert_eq!(refused.try_recv().unwrap(), Err(NoOutcome::Refused(RejectReason::SessionSeqGap)));
        assert!(other.try_recv().is_err(), "it waits");
        waits.lose_all();
        assert_eq!(other.try_recv().unwrap(), Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
        assert!(waits.0.is_empty());
    }
}
