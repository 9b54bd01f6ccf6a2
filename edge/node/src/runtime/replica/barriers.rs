//! Reads that see everything acknowledged before they were asked for: who waits for the consensus to say how far the state must have come.

use std::collections::BTreeMap;

use tokio::sync::oneshot::Sender;
use walras_consensus::ReadToken;
use walras_types::RejectReason;

type Waiting = Sender<Result<(), RejectReason>>;

/// Who waits. All that come in one round share a question.
#[derive(Default)]
pub(super) struct Barriers {
    new: Vec<Waiting>,
    asked: BTreeMap<ReadToken, Vec<Waiting>>,
    last: u64,
}

impl Barriers {
    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.new.push(waiting);
    }

    /// The question of those who came in this round, if there are any. It counts as asked.
    pub(super) fn next(&mut self) -> Option<ReadToken> {
        if self.new.is_empty() {
            return None;
        }
        self.last += 1;
        let token = ReadToken(self.last);
        self.asked.insert(token, std::mem::take(&mut self.new));
        Some(token)
    }

    /// What came of a question.
    pub(super) fn end(&mut self, token: ReadToken, outcome: Result<(), RejectReason>) {
        for waiting in self.asked.remove(&token).into_iter().flatten() {
            // Whoever asked may have gone away.
            let _ = waiting.send(outcome);
        }
    }

    /// A question may be lost with a leader; then those who asked give up.
    pub(super) fn forget_the_impatient(&mut self) {
        self.asked.retain(|_, waiting| waiting.iter().any(|waiting| !waiting.is_closed()));
    }
}
