//! Who waits at a replica for commands that came over HTTP under a number of a session.

use std::collections::BTreeMap;

use walras_engine::Numbered;
use walras_ports::{NoOutcome, Outcome};
pub(super) use walras_ports::{Number, NumberedOutcome, NumberedReply};
use walras_types::{ContentDigest, Ordinal, RejectReason};

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
    use tokio::sync::oneshot;
    use walras_types::{AccountId, LogIndex, SessionId, SessionSeq, TimeNs};

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
