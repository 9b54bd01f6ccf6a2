//! Reads that see everything acknowledged before they were asked for: local requests that wait for the consensus to say how far the
//! state must have come.

use std::collections::{BTreeSet, VecDeque};

use walras_consensus::{ReadToken, ReplicaId};

use crate::WaiterId;

/// A question is lost with a leader, with a link, and where nobody leads. Asked again, it is answered as soon as there is a leader.
const ASK_AGAIN_NS: u64 = 50_000_000;

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A local request.
    Waiter(WaiterId),
    /// A leaf gateway that is to begin here, in this epoch.
    Leaf(ReplicaId, u64),
}

/// Readers that wait. All that come in one round share a question.
#[derive(Debug, Default)]
pub(crate) struct ReadBarriers {
    /// Each with the first question asked after it came: that one's answer, or a later one's, serves it.
    waiting: VecDeque<(ReadToken, Reader)>,
    last: u64,
    has_new: bool,
    ask_again_ns: u64,
}

impl ReadBarriers {
    pub(crate) fn wait(&mut self, reader: Reader) {
        if let Reader::Leaf(leaf, _) = reader {
            // Its last question counts.
            self.waiting.retain(|(_, other)| !matches!(other, Reader::Leaf(before, _) if *before == leaf));
        }
        self.waiting.push_back((ReadToken(self.last + 1), reader));
        self.has_new = true;
    }

    /// The question to ask now, if there is one.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<ReadToken> {
        if self.waiting.is_empty() || !self.has_new && now_ns < self.ask_again_ns {
            return None;
        }
        (self.has_new, self.ask_again_ns) = (false, now_ns.saturating_add(ASK_AGAIN_NS));
        self.last += 1;
        Some(ReadToken(self.last))
    }

    /// When [`next`](Self::next) has a question.
    pub(crate) fn deadline_ns(&self) -> u64 {
        match (self.waiting.is_empty(), self.has_new) {
            (true, _) => u64::MAX,
            (false, true) => 0,
            (false, false) => self.ask_again_ns,
        }
    }

    /// The state has come as far as the answer to this question said.
    pub(crate) fn reached(&mut self, token: ReadToken, mut serve: impl FnMut(Reader)) {
        let served = self.waiting.partition_point(|(first, _)| *first <= token);
        self.waiting.drain(..served).for_each(|(_, reader)| serve(reader));
    }

    /// These do not wait any more.
    pub(crate) fn give_up(&mut self, gone: &BTreeSet<WaiterId>) {
        self.waiting.retain(|(_, reader)| !matches!(reader, Reader::Waiter(waiter) if gone.contains(waiter)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(barriers: &mut ReadBarriers, token: ReadToken) -> Vec<u64> {
        let mut waiters = Vec::new();
        barriers.reached(token, |reader| match reader {
            Reader::Waiter(waiter) => waiters.push(waiter.0),
            Reader::Leaf(..) => panic!("no leaf reads"),
        });
        waiters
    }

    #[test]
    fn an_answer_serves_the_readers_that_came_before_its_question_and_no_others() {
        let mut barriers = ReadBarriers::default();
        barriers.wait(Reader::Waiter(WaiterId(1)));
        barriers.wait(Reader::Waiter(WaiterId(2)));
        let asked = barriers.next(0).unwrap();
        assert_eq!(barriers.next(0), None, "it is on its way");
        barriers.wait(Reader::Waiter(WaiterId(3)));
        assert_eq!(served(&mut barriers, asked), [1, 2], "what was acknowledged meanwhile may be missing for the third");
        let asked = barriers.next(0).unwrap();
        assert_eq!(served(&mut barriers, asked), [3]);
        assert_eq!((barriers.next(u64::MAX), barriers.deadline_ns()), (None, u64::MAX), "none waits");
    }

    #[test]
    fn a_lost_question_is_asked_again_and_any_answer_to_it_counts() {
        let mut barriers = ReadBarriers::default();
        barriers.wait(Reader::Waiter(WaiterId(1)));
        let lost = barriers.next(7).unwrap();
        assert_eq!(barriers.next(7 + ASK_AGAIN_NS - 1), None);
        assert_eq!(barriers.deadline_ns(), 7 + ASK_AGAIN_NS);
        let again = barriers.next(7 + ASK_AGAIN_NS).unwrap();
        assert_ne!(lost, again, "a token is used once");
        assert_eq!(served(&mut barriers, lost), [1], "it was late and not lost");
        assert_eq!(served(&mut barriers, again), []);

        barriers.wait(Reader::Waiter(WaiterId(2)));
        barriers.next(7).unwrap();
        barriers.give_up(&BTreeSet::from([WaiterId(2)]));
        assert_eq!(barriers.next(u64::MAX), None, "nothing is asked for a reader that has gone");
    }
}
