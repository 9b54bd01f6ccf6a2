//! What clients sent and what they were told: the outside's own record, against which the checkers hold the log.

use std::collections::BTreeMap;

use walras_types::RejectReason;

use crate::single::messages::{Answer, AttemptId};

#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) body: Vec<u8>,
    /// Somebody replayed it: what the client was told of its own copy says nothing of the other.
    pub(crate) was_replayed: bool,
    pub(crate) answer: Option<Answer>,
}

/// How often some bytes were sent, and how often a sender was told for certain that they were not taken (one in doubt was not).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) attempts: u64,
    pub(crate) refused: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Traffic {
    attempts: BTreeMap<AttemptId, Attempt>,
    by_body: BTreeMap<Vec<u8>, Sent>,
}

impl Traffic {
    pub(crate) fn sent(&mut self, body: &[u8]) -> AttemptId {
        let id = AttemptId(self.attempts.len() as u64);
        self.attempts.insert(id, Attempt { body: body.to_vec(), was_replayed: false, answer: None });
        self.by_body.entry(body.to_vec()).or_default().attempts += 1;
        id
    }

    pub(crate) fn replayed(&mut self, id: AttemptId) {
        self.attempts.get_mut(&id).expect("only what was sent is replayed").was_replayed = true;
    }

    /// The node answers an attempt. What it was told before, if anything.
    pub(crate) fn answered(&mut self, id: AttemptId, answer: &Answer) -> Option<Answer> {
        let attempt = self.attempts.get_mut(&id).expect("only what was sent is answered");
        let before = attempt.answer.replace(answer.clone());
        let certain = !attempt.was_replayed && !matches!(answer, Answer::Refused(RejectReason::NonceReused));
        if certain && before.is_none() && matches!(answer, Answer::Refused(_)) {
            self.by_body.get_mut(&attempt.body).expect("it was counted when it was sent").refused += 1;
        }
        before
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> &Attempt {
        &self.attempts[&id]
    }

    pub(crate) fn of_body(&self, body: &[u8]) -> Sent {
        self.by_body.get(body).copied().unwrap_or_default()
    }

    pub(crate) fn attempt_count(&self) -> u64 {
        self.attempts.len() as u64
    }
}
