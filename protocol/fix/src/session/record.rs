//! What a session keeps from one connection to the next: its numbers, and what was sent.

use std::collections::VecDeque;

/// The numbers of a session, and the application messages that it may have to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the next message from the other end.
    pub next_in: u64,
    /// Number of the next message to it.
    pub next_out: u64,
    sent: VecDeque<SentMessage>,
    /// Bytes of the messages in `sent`.
    bytes: usize,
}

/// An application message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) seq: u64,
    pub(crate) time_ns: u64,
    pub(crate) content: Content,
}

/// What a message says, besides its numbers and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) msg_type: Box<[u8]>,
    /// Header fields of its own.
    pub(crate) extra: Box<[(i32, Box<[u8]>)]>,
    pub(crate) body: Box<[u8]>,
}

impl Content {
    /// Its memory, roughly.
    fn bytes(&self) -> usize {
        self.body.len() + self.extra.iter().map(|(_, value)| value.len() + 32).sum::<usize>() + 64
    }
}

impl Default for Record {
    fn default() -> Self {
        Self { next_in: 1, next_out: 1, sent: VecDeque::new(), bytes: 0 }
    }
}

impl Record {
    /// A session whose next messages have these numbers, and of which nothing that was sent is known.
    #[must_use]
    pub fn at(next_in: u64, next_out: u64) -> Self {
        Self { next_in, next_out, ..Self::default() }
    }

    /// With other numbers for the next messages.
    pub(crate) fn going_on(self, next_in: u64, next_out: u64) -> Self {
        Self { next_in, next_out, ..self }
    }

    pub(crate) fn is_new(&self) -> bool {
        (self.next_in, self.next_out) == (1, 1)
    }

    /// Keeps a message that is being sent; drops the oldest beyond these bounds.
    pub(crate) fn keep(&mut self, message: SentMessage, messages_max: usize, bytes_max: usize) {
        self.bytes += message.content.bytes();
        self.sent.push_back(message);
        while self.sent.len() > messages_max || self.bytes > bytes_max {
            let Some(oldest) = self.sent.pop_front() else { break };
            self.bytes -= oldest.content.bytes();
        }
    }

    /// Keeps messages from before all that are kept.
    pub(crate) fn keep_before(&mut self, messages: Vec<SentMessage>) {
        for message in messages.into_iter().rev() {
            if self.sent.front().is_none_or(|first| first.seq > message.seq) {
                self.bytes += message.content.bytes();
                self.sent.push_front(message);
            }
        }
    }

    /// The first message kept with this number or a later one.
    pub(crate) fn kept_from(&self, seq: u64) -> Option<&SentMessage> {
        self.sent.get(self.sent.partition_point(|message| message.seq < seq))
    }
}
