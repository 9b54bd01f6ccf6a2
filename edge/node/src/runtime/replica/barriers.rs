//! Reads that see everything acknowledged before they were asked for: who waits for the consensus to say how far the state must have come.

use std::collections::VecDeque;

use tokio::sync::oneshot::Sender;
use walras_consensus::ReadToken;

/// A question is lost with a leader, with a link, and where nobody leads. Asked again, it is answered as soon as there is a leader.
const ASK_AGAIN_NS: u64 = 50_000_000;

/// Who waits until the state has come far enough; one who has gone away has given up.
type Waiting = Sender<()>;

/// Who waits. All that come in one round share a question.
#[derive(Default)]
pub(super) struct Barriers {
    /// With the first question asked after they came: its answer, or that of a later one, is theirs.
    waiting: VecDeque<(ReadToken, Waiting)>,
    last: u64,
    has_new: bool,
    ask_again_ns: u64,
}

impl Barriers {
    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting.push_back((ReadToken(self.last + 1), waiting));
        self.has_new = true;
    }

    /// The question to ask now, if there is one.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<ReadToken> {
        if self.waiting.is_empty() || !self.has_new && now_ns < self.ask_again_ns {
            return None;
        }
        (self.has_new, self.ask_again_ns) = (false, now_ns.saturating_add(ASK_AGAIN_NS));
        self.last += 1;
        Some(ReadToken(self.last))
    }

    /// The state has come as far as the answer to this question said.
    pub(super) fn reached(&mut self, token: ReadToken) {
        let served = self.waiting.partition_point(|(first, _)| *first <= token);
        for (_, waiting) in self.waiting.drain(..served) {
            // Whoever asked may have gone away.
            let _ = waiting.send(());
        }
    }

    /// Those who asked give up in time where nobody answers.
    pub(super) fn forget_the_impatient(&mut self) {
        self.waiting.retain(|(_, waiting)| !waiting.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::{self, Receiver};

    use super::*;

    fn comes(barriers: &mut Barriers) -> Receiver<()> {
        let (reply, answer) = oneshot::channel();
        barriers.wait(reply);
        answer
    }

    #[test]
    fn an_answer_is_for_all_who_came_before_its_question_and_for_nobody_else() {
        let mut barriers = Barriers::default();
        let (mut first, mut second) = (comes(&mut barriers), comes(&mut barriers));
        let asked = barriers.next(0).unwrap();
        assert_eq!(barriers.next(0), None, "it is on its way");
        let mut late = comes(&mut barriers);
        barriers.reached(asked);
        assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
        assert!(late.try_recv().is_err(), "what was acknowledged meanwhile may be missing");
        let asked = barriers.next(0).unwrap();
        barriers.reached(asked);
        assert!(late.try_recv().is_ok());
        assert_eq!(barriers.next(u64::MAX), None, "nobody waits");
    }

    #[test]
    fn a_lost_question_is_asked_again_and_any_answer_to_it_counts() {
        let mut barriers = Barriers::default();
        let mut waits = comes(&mut barriers);
        let lost = barriers.next(7).unwrap();
        assert_eq!(barriers.next(7 + ASK_AGAIN_NS - 1), None);
        let again = barriers.next(7 + ASK_AGAIN_NS).unwrap();
        assert_ne!(lost, again, "tokens are used once in a life");
        barriers.reached(lost);
        assert!(waits.try_recv().is_ok(), "it was late and not lost");
        barriers.reached(again);

        let gave_up = comes(&mut barriers);
        barriers.next(7).unwrap();
        drop(gave_up);
        barriers.forget_the_impatient();
        assert_eq!(barriers.next(u64::MAX), None, "nobody is asked for who has gone");
    }
}
