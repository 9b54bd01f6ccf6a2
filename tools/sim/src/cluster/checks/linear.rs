//! What is asked after an answer was had comes after it in the log, and a read sees all that was answered before it. The log is one
//! order, which everybody applies; with this it is one in which each command lies between its question and its answer.

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_types::{LogIndex, SessionSeq};

use crate::common::checks::{Checked, Violation};

/// By client and command: the last entry that any client had an answer of when it was asked.
#[derive(Debug)]
pub(super) struct Linear {
    floors: Vec<Vec<LogIndex>>,
    answered: LogIndex,
}

const CHECK: &str = "linearizable";

impl Linear {
    pub(super) fn new(clients: usize) -> Self {
        Self { floors: vec![Vec::new(); clients], answered: LogIndex(0) }
    }

    pub(super) fn on_asked(&mut self, client: usize) {
        self.floors[client].push(self.answered);
    }

    /// The last entry that any client has an answer of.
    pub(super) fn answered(&self) -> LogIndex {
        self.answered
    }

    pub(super) fn on_answer(&mut self, client: usize, session_seq: SessionSeq, log_index: LogIndex) -> Checked {
        let at = usize::try_from(session_seq.0 - 1).expect("commands are few");
        let floor = self.floors[client].get(at).copied().unwrap_or(log_index);
        if log_index <= floor {
            let detail = format!(
                "command {session_seq} of client {client} was done by entry {log_index}, although it was asked when {floor} had been answered"
            );
            return Err(Violation::new(CHECK, detail));
        }
        self.answered = self.answered.max(log_index);
        Ok(())
    }
}

pub(super) fn check_read(replica: ReplicaId, floor: LogIndex, engine: &Engine) -> Checked {
    let applied = engine.last_applied();
    if applied >= floor {
        return Ok(());
    }
    let detail = format!("replica {replica} answers a read after entry {applied}; {floor} had been answered when it was asked");
    Err(Violation::new(CHECK, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_against_time_is_found() {
        let mut linear = Linear::new(2);
        linear.on_asked(0);
        linear.on_asked(1);
        linear.on_answer(0, SessionSeq(1), LogIndex(7)).unwrap();
        linear.on_answer(1, SessionSeq(1), LogIndex(5)).unwrap();
        linear.on_asked(1);
        assert!(linear.on_answer(1, SessionSeq(2), LogIndex(6)).is_err());
        assert!(check_read(ReplicaId::new(1).unwrap(), linear.answered(), &Engine::new()).is_err());
    }
}
