//! Local requests that sent a session's command and wait for its outcome, over HTTP for example: by its number, so that a sender
//! that did not hear the answer may send the same again.

use std::collections::{BTreeMap, BTreeSet};

use walras_engine::Numbered;
use walras_types::{ContentDigest, Ordinal, RejectReason};

use crate::WaiterId;
use crate::effect::{Effect, WaiterAnswer};
use crate::outcome::{NoOutcome, Number, NumberedOutcome, Outcome};

/// Those that wait until the log holds their command, or this replica cannot say.
#[derive(Debug, Default)]
pub(crate) struct NumberedWaiters(BTreeMap<Ordinal, Vec<(ContentDigest, WaiterId)>>);

impl NumberedWaiters {
    /// One more request. Others may have sent the same, or something else under the same number.
    pub(crate) fn wait(&mut self, number: Number, waiter: WaiterId) {
        self.0.entry(number.ordinal).or_default().push((number.content, waiter));
    }

    /// The log holds it.
    pub(crate) fn applied(
        &mut self,
        ordinal: Ordinal,
        numbered: Numbered,
        outcome: impl Fn() -> Outcome,
        effects: &mut Vec<Effect>,
    ) {
        if self.0.is_empty() {
            return;
        }
        for (content, waiter) in self.0.remove(&ordinal).unwrap_or_default() {
            effects.push(answer(waiter, NumberedOutcome::of(numbered, content, &outcome)));
        }
    }

    /// The leader does not take it.
    pub(crate) fn refused(&mut self, ordinal: Ordinal, reason: RejectReason, effects: &mut Vec<Effect>) {
        for (_, waiter) in self.0.remove(&ordinal).unwrap_or_default() {
            effects.push(answer(waiter, Err(NoOutcome::Refused(reason))));
        }
    }

    /// Nobody can say for a while what becomes of it: what waits here may be in the log or may yet be.
    pub(crate) fn lose_all(&mut self, reason: RejectReason, effects: &mut Vec<Effect>) {
        for (_, waiter) in std::mem::take(&mut self.0).into_values().flatten() {
            effects.push(answer(waiter, Err(NoOutcome::InDoubt(reason))));
        }
    }

    /// These do not wait any more.
    pub(crate) fn give_up(&mut self, gone: &BTreeSet<WaiterId>) {
        self.0.retain(|_, waiting| {
            waiting.retain(|(_, waiter)| !gone.contains(waiter));
            !waiting.is_empty()
        });
    }
}

fn answer(waiter: WaiterId, outcome: Result<NumberedOutcome, NoOutcome>) -> Effect {
    Effect::Answer { waiter, answer: WaiterAnswer::Numbered(outcome) }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, LogIndex, SessionId, SessionSeq, TimeNs};

    use super::*;

    fn ordinal(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(7), session_seq: SessionSeq(session_seq) }
    }

    fn outcome() -> Outcome {
        Outcome { log_index: LogIndex(9), time: TimeNs(1), events: Vec::new(), names: Vec::new() }
    }

    fn answers(effects: &mut Vec<Effect>) -> Vec<(u64, Result<NumberedOutcome, NoOutcome>)> {
        let answer = |effect| match effect {
            Effect::Answer { waiter, answer: WaiterAnswer::Numbered(outcome) } => (waiter.0, outcome),
            other => panic!("{other:?} is no answer"),
        };
        effects.drain(..).map(answer).collect()
    }

    #[test]
    fn all_that_sent_the_same_get_the_same_answer() {
        let (mut waiters, mut effects) = (NumberedWaiters::default(), Vec::new());
        for (waiter, session_seq, content) in [(1, 1, 5), (2, 1, 5), (3, 2, 5), (4, 3, 5), (5, 1, 6), (6, 4, 5)] {
            let number = Number { account: AccountId(0), ordinal: ordinal(session_seq), content: ContentDigest(content) };
            waiters.wait(number, WaiterId(waiter));
        }
        waiters.give_up(&BTreeSet::from([WaiterId(6)]));
        let answer = walras_types::Answer { log_index: LogIndex(9), rejected: None, content: ContentDigest(5) };
        waiters.applied(ordinal(1), Numbered::Done(answer), outcome, &mut effects);
        let done = || Ok(NumberedOutcome::Done(outcome()));
        let reused = Err(NoOutcome::Refused(RejectReason::SessionSeqReused));
        assert_eq!(answers(&mut effects), [(1, done()), (2, done()), (5, reused)], "the last one sent something else");
        waiters.refused(ordinal(3), RejectReason::SessionSeqGap, &mut effects);
        assert_eq!(answers(&mut effects), [(4, Err(NoOutcome::Refused(RejectReason::SessionSeqGap)))]);
        waiters.lose_all(RejectReason::NotLeader, &mut effects);
        assert_eq!(answers(&mut effects), [(3, Err(NoOutcome::InDoubt(RejectReason::NotLeader)))]);
        assert!(waiters.0.is_empty());
    }
}
