//! An answer says what the log says, in the order of the session, and is the same however often it is given.

use walras_engine::Numbered;
use walras_types::{LogIndex, RejectReason, SessionSeq, TimeNs};

use super::sessions::Sessions;
use crate::common::checks::replay::Replay;
use crate::common::checks::{Checked, Violation};

/// How many answers each client was given.
#[derive(Debug)]
pub(super) struct Answers {
    given: Vec<u64>,
}

const CHECK: &str = "answers";

impl Answers {
    pub(super) fn new(clients: usize) -> Self {
        Self { given: vec![0; clients] }
    }

    pub(super) fn count(&self) -> u64 {
        self.given.iter().sum()
    }

    #[expect(clippy::too_many_arguments, reason = "an answer, and all that it is held against")]
    pub(super) fn on_answer(
        &mut self,
        client: usize,
        session_seq: SessionSeq,
        log_index: LogIndex,
        time: Option<TimeNs>,
        rejected: Option<RejectReason>,
        sessions: &Sessions,
        replay: &Replay,
    ) -> Checked {
        let violation = |text: String| Err(Violation::new(CHECK, format!("client {client}, command {session_seq}: {text}")));
        self.given[client] += 1;
        if session_seq.0 != self.given[client] {
            return violation(format!("it is answered where {} comes next", self.given[client]));
        }
        let done = sessions.done_at(client, session_seq);
        if done != Some(log_index) {
            return violation(format!("it is said to be done by entry {log_index}, and was by {done:?}"));
        }
        let replayed = replay.get(log_index).expect("something was done by it");
        let Some(Numbered::Done(answer)) = replayed.numbered else {
            return violation(format!("entry {log_index} is {:?}", replayed.numbered));
        };
        if answer.rejected != rejected || time.is_some_and(|time| time != replayed.entry.time) {
            return violation(format!("it is answered {rejected:?} at {time:?}, and entry {log_index} is {:?}", replayed.entry));
        }
        Ok(())
    }
}
