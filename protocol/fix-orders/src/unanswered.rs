//! Commands that are on their way to the log, and those that wait to be.

use std::collections::VecDeque;

use walras_fix::Message;
use walras_types::{ContentDigest, EngineVersion, LogIndex, RejectReason};
use walras_wire::{Command, InvalidCommand, OrderCommand};

use crate::request::{Asked, named_invalid};

/// Something a client asked, in its turn.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A command with its number.
    Command(Numbered),
    /// A question, which is answered once all before it are.
    Question(Message),
}

impl Turn {
    fn question_bytes(&self) -> usize {
        match self {
            Self::Command(_) => 0,
            Self::Question(message) => message.bytes().len(),
        }
    }
}

/// A command with its number.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) seq: u64,
    pub(crate) command: Command,
    pub(crate) asked: Asked,
    pub(crate) text: Option<String>,
}

impl Numbered {
    /// The log does not take it now, or under its version of the engine: it becomes its own rejection. A cancel goes on.
    pub(crate) fn refuse(&mut self, reason: RejectReason, version: EngineVersion) {
        let is_of_later = reason == RejectReason::NeedsLaterVersion;
        // The version is an earlier one than what is known of it here.
        let version = if is_of_later { EngineVersion(0) } else { version };
        let (account, instrument) = (self.command.account(), self.command.instrument());
        let (reason, content) = match &self.command {
            Command::Order(
                OrderCommand::New(_)
                | OrderCommand::NewNamed(_)
                | OrderCommand::NewLinked(_)
                | OrderCommand::Amend(_)
                | OrderCommand::AmendNamed(_),
            ) => (reason, ContentDigest(self.seq)),
            Command::Invalid(invalid) if is_of_later => (invalid.reason, invalid.content),
            _ => return,
        };
        let (client_order_id, name) = match &self.asked {
            Asked::New(asked) => named_invalid(&asked.cl_ord_id, version),
            Asked::Change(_) | Asked::Mass(..) | Asked::Filler => (self.command.client_order_id(), None),
        };
        self.command = Command::Invalid(InvalidCommand { account, instrument, client_order_id, reason, content, name });
    }
}

/// A command that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) numbered: Numbered,
    pub(crate) is_answered: bool,
}

/// What an answered command asked, for the reports of its entry.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) log_index: LogIndex,
    pub(crate) asked: Asked,
    pub(crate) text: Option<String>,
}

/// All of them, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered {
    /// From the first unanswered one on, without gaps.
    sent: VecDeque<Sent>,
    waiting: VecDeque<Turn>,
    recent: VecDeque<Recent>,
    /// The entry of the last report.
    reported: LogIndex,
    /// Bytes of the questions in `waiting`.
    question_bytes: usize,
    /// An entry that was answered and whose reports have not begun to come, and how long a question waits for them.
    awaited: Option<(LogIndex, u64)>,
}

/// Reports of an entry follow its answer; so many entries may be between.
const RECENT_MAX: usize = 1_024;

impl Unanswered {
    pub(crate) fn len(&self) -> usize {
        self.sent.len() + self.waiting.len()
    }

    pub(crate) fn on_their_way(&self) -> usize {
        self.sent.len()
    }

    /// Bytes of the questions that wait.
    pub(crate) fn question_bytes(&self) -> usize {
        self.question_bytes
    }

    pub(crate) fn push(&mut self, turn: Turn) {
        self.question_bytes += turn.question_bytes();
        self.waiting.push_back(turn);
    }

    /// Whether an order with this ClOrdID waits, is on its way, or is in the log and not reported yet.
    pub(crate) fn has_new(&self, cl_ord_id: &str) -> bool {
        let is_it = |asked: &Asked| matches!(asked, Asked::New(asked) if *asked.cl_ord_id == *cl_ord_id);
        let is_turn = |turn: &Turn| matches!(turn, Turn::Command(numbered) if is_it(&numbered.asked));
        let mut unreported = self.recent.iter().rev().take_while(|recent| recent.log_index > self.reported);
        self.waiting.iter().any(is_turn)
            || self.sent.iter().any(|sent| is_it(&sent.numbered.asked))
            || unreported.any(|recent| is_it(&recent.asked))
    }

    pub(crate) fn front(&self) -> Option<&Turn> {
        self.waiting.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Turn> {
        let turn = self.waiting.pop_front()?;
        self.question_bytes -= turn.question_bytes();
        Some(turn)
    }

    pub(crate) fn is_sent(&mut self, numbered: Numbered) {
        self.sent.push_back(Sent { numbered, is_answered: false });
    }

    /// What a command asked that is answered now; `None` for one that does not wait for its answer.
    pub(crate) fn answered(&mut self, seq: u64, log_index: Option<LogIndex>) -> Option<Asked> {
        let first = self.sent.front()?.numbered.seq;
        let sent = self.sent.get_mut(usize::try_from(seq.checked_sub(first)?).ok()?)?;
        if std::mem::replace(&mut sent.is_answered, true) {
            return None;
        }
        let asked = sent.numbered.asked.clone();
        if let Some(log_index) = log_index {
            let recent = Recent { log_index, asked: asked.clone(), text: sent.numbered.text.take() };
            if self.recent.len() >= RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back(recent);
        }
        while self.sent.front().is_some_and(|sent| sent.is_answered) {
            self.sent.pop_front();
        }
        Some(asked)
    }

    /// An entry was answered that has reports. At a gateway they come after the answer: a question waits for them so long.
    pub(crate) fn await_reports(&mut self, log_index: LogIndex, until_ns: u64) {
        if log_index > self.reported {
            self.awaited = Some((log_index, until_ns));
        }
    }

    /// A report of this entry came.
    pub(crate) fn reported(&mut self, log_index: LogIndex) {
        self.reported = log_index;
        self.awaited = self.awaited.filter(|(awaited, _)| *awaited > log_index);
    }

    /// Whether a question may be answered: all that was asked before it is answered and reported.
    pub(crate) fn is_settled(&self, now_ns: u64) -> bool {
        self.sent.is_empty() && self.awaited.is_none_or(|(_, until_ns)| now_ns >= until_ns)
    }

    /// Whether the first of what waits can go on, although no answer is to come.
    pub(crate) fn has_turn(&self, now_ns: u64) -> bool {
        match self.waiting.front() {
            Some(Turn::Command(_)) => self.sent.is_empty(),
            Some(Turn::Question(_)) => self.is_settled(now_ns),
            None => false,
        }
    }

    /// When a question waits for no report any more.
    pub(crate) fn question_ns(&self) -> u64 {
        match (self.waiting.front(), self.awaited) {
            (Some(Turn::Question(_)), Some((_, until_ns))) if self.sent.is_empty() => until_ns,
            _ => u64::MAX,
        }
    }

    /// What this session asked with the entry of a report.
    pub(crate) fn asked_at(&self, log_index: LogIndex) -> Option<&Recent> {
        self.recent.iter().rev().find(|recent| recent.log_index == log_index)
    }

    /// A command is not in the log, and none after it: all of them are to be sent again. The number from which on.
    pub(crate) fn set_back(&mut self, seq: u64, reason: RejectReason, version: EngineVersion) -> Option<u64> {
        let first = self.sent.front()?.numbered.seq;
        let at = usize::try_from(seq.checked_sub(first)?).ok().filter(|at| *at < self.sent.len())?;
        for sent in self.sent.drain(at..).rev() {
            let mut numbered = sent.numbered;
            // Of a later version is only the one that was refused.
            if reason != RejectReason::NeedsLaterVersion || numbered.seq == seq {
                numbered.refuse(reason, version);
            }
            self.waiting.push_front(Turn::Command(numbered));
        }
        Some(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_is_settled_with_its_reports_or_after_a_while() {
        let mut unanswered = Unanswered::default();
        unanswered.reported(LogIndex(5));
        unanswered.await_reports(LogIndex(4), 100);
        assert!(unanswered.is_settled(0), "that was reported before");
        unanswered.await_reports(LogIndex(7), 100);
        assert!(!unanswered.is_settled(99) && unanswered.is_settled(100));
        unanswered.reported(LogIndex(6));
        assert!(!unanswered.is_settled(99), "another session's");
        unanswered.reported(LogIndex(7));
        assert!(unanswered.is_settled(0));
        assert_eq!((unanswered.has_turn(0), unanswered.question_ns()), (false, u64::MAX), "nothing waits");
    }
}
