//! An answer says what the log says, and what was acknowledged is never lost.

use std::collections::BTreeMap;

use walras_sequencer::{decode_entry, encode_entry};
use walras_types::LogIndex;
use walras_wire::encode_command;

use crate::common::checks::{Checked, Violation};
use crate::single::messages::{Answer, AttemptId, Done};
use crate::single::node::Process;

/// Which attempt was told of which entry, and the entry's bytes as they follow from what it was told.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    by_index: BTreeMap<LogIndex, (AttemptId, Vec<u8>)>,
}

const CHECK: &str = "acknowledged";

impl Acknowledged {
    pub(super) fn on_answer(
        &mut self,
        attempt: AttemptId,
        body: &[u8],
        answer: &Answer,
        before: Option<&Answer>,
        log_end: LogIndex,
    ) -> Checked {
        if let Some(before) = before {
            return Err(Violation::new(CHECK, format!("{attempt:?} was answered twice: {before:?}, then {answer:?}")));
        }
        let Answer::Done(Done { log_index, time, command, events: _ }) = answer else { return Ok(()) };
        let mut told = Vec::new();
        encode_command(command, &mut told);
        if told != body {
            return Err(Violation::new(CHECK, format!("{attempt:?} was told of a command that it did not send: {command:?}")));
        }
        if *log_index >= log_end {
            return Err(Violation::new(CHECK, format!("entry {log_index} is acknowledged, the log ends at {log_end}")));
        }
        let mut bytes = Vec::new();
        encode_entry(*time, None, command, &mut bytes);
        match self.by_index.insert(*log_index, (attempt, bytes)) {
            None => Ok(()),
            Some((other, _)) => {
                Err(Violation::new(CHECK, format!("{attempt:?} and {other:?} were both told of entry {log_index}")))
            }
        }
    }

    /// After recovery the log shows every acknowledged entry that it has not let go of, and the rest is in the snapshot.
    pub(super) fn check_recovered(&self, process: &Process, snapshot_index: LogIndex) -> Checked {
        let entries = match process.log_entries_from(LogIndex(1)) {
            None => return Ok(()),
            Some(Ok(entries)) => entries,
            Some(Err(error)) => return Err(Violation::new(CHECK, format!("the open log does not read: {error}"))),
        };
        let held: BTreeMap<LogIndex, Vec<u8>> = entries.into_iter().collect();
        let first = held.keys().next().copied().unwrap_or(snapshot_index.next());
        for (index, (attempt, told)) in self.by_index.range(first..) {
            match held.get(index) {
                Some(bytes) if bytes == told => {}
                Some(bytes) => {
                    let found = decode_entry(*index, bytes);
                    return Err(Violation::new(CHECK, format!("entry {index} is not what {attempt:?} was told: {found:?}")));
                }
                None => return Err(Violation::new(CHECK, format!("entry {index}, of which {attempt:?} was told, is lost"))),
            }
        }
        if first > snapshot_index.next() {
            return Err(Violation::new(CHECK, format!("the log begins at {first}, the snapshot ends at {snapshot_index}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, RejectReason, TimeNs};
    use walras_wire::{AccountCommand, Command};

    use super::*;

    fn done(index: u64) -> Answer {
        let command = Command::Account(AccountCommand::Create(AccountId(1)));
        Answer::Done(Done { log_index: LogIndex(index), time: TimeNs(1), command, events: Vec::new() })
    }

    #[test]
    fn wrong_answers_are_found() {
        let mut body = Vec::new();
        encode_command(&Command::Account(AccountCommand::Create(AccountId(1))), &mut body);
        let mut acknowledged = Acknowledged::default();
        let mut tell = |attempt, body: &[u8], answer: Answer, before: Option<&Answer>| {
            acknowledged.on_answer(AttemptId(attempt), body, &answer, before, LogIndex(9)).is_ok()
        };
        assert!(tell(1, &body, done(3), None));
        assert!(!tell(2, &body, done(3), None), "two were told of one entry");
        assert!(!tell(3, &body, done(9), None), "an entry that is not durable");
        assert!(!tell(4, &body[1..], done(4), None), "another command");
        assert!(!tell(5, &body, done(5), Some(&Answer::Refused(RejectReason::Overloaded))), "two answers");
    }
}
