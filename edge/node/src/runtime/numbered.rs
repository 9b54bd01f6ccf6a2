//! Commands that come over HTTP under a number of a session, so that whoever did not hear the answer may send them again: who waits for which.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use walras_engine::{Engine, Numbered, Standing};
use walras_types::{AccountId, ContentDigest, LogIndex, Ordinal, RejectReason};

use super::{NoOutcome, Outcome, Reply};

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
    fn told(numbered: Numbered, content: ContentDigest, outcome: impl FnOnce() -> Outcome) -> Result<Self, NoOutcome> {
        let told = match numbered {
            Numbered::Done(answer) => answer.to(content).map(|_| Self::Done(outcome())),
            Numbered::Repeated(answer) => answer.to(content).map(Self::Repeated),
            Numbered::Refused(reason) => Err(reason),
        };
        told.map_err(NoOutcome::Refused)
    }
}

/// Who waits for a session's command.
pub(super) type NumberedReply = oneshot::Sender<Result<NumberedOutcome, NoOutcome>>;

/// Whose command it is, under which number of which session, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) account: AccountId,
    pub(super) ordinal: Ordinal,
    /// What the command says.
    pub(super) content: ContentDigest,
}

impl Number {
    /// What the state knows of it: `None` when it is still to come.
    ///
    /// # Errors
    /// The session is not open, or not this account's; it is too long ago; or another command has this number.
    pub(super) fn known(&self, engine: &Engine) -> Result<Option<walras_types::Answer>, RejectReason> {
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
            (Self::Numbered(number, reply), Some(numbered)) => {
                drop(reply.send(NumberedOutcome::told(numbered, number.content, outcome)));
            }
            (Self::Numbered(..), None) => unreachable!("it was logged under its number"),
        }
    }
}

/// Those who wait at a replica, until the log holds their command or this replica can not tell them.
#[derive(Debug, Default)]
pub(super) struct NumberedWaits(BTreeMap<Ordinal, Vec<(ContentDigest, NumberedReply)>>);

impl NumberedWaits {
    /// Somebody waits, besides others perhaps who sent the same, or something else under the same number.
    pub(super) fn wait(&mut self, number: Number, reply: NumberedReply) {
        let waiting = self.0.entry(number.ordinal).or_default();
        waiting.retain(|(_, reply)| !reply.is_closed());
        waiting.push((number.content, reply));
    }

    /// The log holds it.
    pub(super) fn applied(&mut self, ordinal: Ordinal, numbered: Numbered, outcome: impl Fn() -> Outcome) {
        for (content, reply) in self.0.remove(&ordinal).unwrap_or_default() {
            let _ = reply.send(NumberedOutcome::told(numbered, content, &outcome));
        }
    }

    /// The leader does not take it.
    pub(super) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        for (_, reply) in self.0.remove(&ordinal).unwrap_or_default() {
            let _ = reply.send(Err(NoOutcome::Refused(reason)));
        }
    }

    /// Another replica leads, or the state came from elsewhere: what is here may be in the log or may yet be.
    pub(super) fn lose_all(&mut self) {
        for (_, reply) in std::mem::take(&mut self.0).into_values().flatten() {
            let _ = reply.send(Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{SessionId, SessionSeq, TimeNs};

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
        let mut wait = |session_seq, content| {
            let (reply, answer) = oneshot::channel();
            let content = ContentDigest(content);
            waits.wait(Number { account: AccountId(0), ordinal: ordinal(session_seq), content }, reply);
            answer
        };
        let (mut first, mut again, mut other, mut refused) = (wait(1, 5), wait(1, 5), wait(2, 5), wait(3, 5));
        let mut differs = wait(1, 6);
        drop(wait(4, 5));
        let answer = walras_types::Answer { log_index: LogIndex(9), rejected: None, content: ContentDigest(5) };
        waits.applied(ordinal(1), Numbered::Done(answer), outcome);
        for told in [&mut first, &mut again] {
            assert_eq!(told.try_recv().unwrap(), Ok(NumberedOutcome::Done(outcome())));
        }
        assert_eq!(differs.try_recv().unwrap(), Err(NoOutcome::Refused(RejectReason::SessionSeqReused)), "it sent something else");
        waits.refused(ordinal(3), RejectReason::SessionSeqGap);
        assert_eq!(refused.try_recv().unwrap(), Err(NoOutcome::Refused(RejectReason::SessionSeqGap)));
        assert!(other.try_recv().is_err(), "it waits");
        waits.lose_all();
        assert_eq!(other.try_recv().unwrap(), Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
        assert!(waits.0.is_empty());
    }
}
