//! Commands that are on their way to the log, and those that wait to be.

use std::collections::VecDeque;

use walras_fix::Message;
use walras_types::{LogIndex, RejectReason};
use walras_wire::{Command, InvalidCommand, OrderCommand};

use crate::request::Asked;

/// Something a client asked, in its turn.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A command with its number.
    Command(Numbered),
    /// A question, which is answered once all before it are.
    Question(Message),
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
    /// The log does not take it now: it becomes its own rejection. A cancel goes on.
    pub(crate) fn refuse(&mut self, reason: RejectReason) {
        let (Command::Order(OrderCommand::New(_) | OrderCommand::Amend(_)), Some(account)) =
            (&self.command, self.command.account())
        else {
            return;
        };
        let (instrument, client_order_id) = (self.command.instrument(), self.command.client_order_id());
        let content = walras_types::ContentDigest(self.seq);
        self.command = Command::Invalid(InvalidCommand { account: Some(account), instrument, client_order_id, reason, content });
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

    pub(crate) fn push(&mut self, turn: Turn) {
        self.waiting.push_back(turn);
    }

    pub(crate) fn front(&self) -> Option<&Turn> {
        self.waiting.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Turn> {
        self.waiting.pop_front()
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

    /// What this session asked with the entry of a report.
    pub(crate) fn asked_at(&self, log_index: LogIndex) -> Option<&Recent> {
        self.recent.iter().rev().find(|recent| recent.log_index == log_index)
    }

    /// A command is not in the log, and none after it: all of them are to be sent again. The number from which on.
    pub(crate) fn set_back(&mut self, seq: u64, reason: RejectReason) -> Option<u64> {
        let first = self.sent.front()?.numbered.seq;
        let at = usize::try_from(seq.checked_sub(first)?).ok().filter(|at| *at < self.sent.len())?;
        for sent in self.sent.drain(at..).rev() {
            let mut numbered = sent.numbered;
            numbered.refuse(reason);
            self.waiting.push_front(Turn::Command(numbered));
        }
        Some(seq)
    }
}
