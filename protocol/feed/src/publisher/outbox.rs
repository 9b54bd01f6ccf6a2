//! What is to be sent in one channel: encoded messages, each after its length, as packets have them.

use walras_wire::DecodeError;
use walras_wire::codec::Reader;

use crate::channel::ChannelId;
use crate::message::{Head, Message, is_last, mark_last};

/// Bytes of a message's length.
const LENGTH_BYTES: usize = 2;

/// Appends a message after its length.
pub(crate) fn append(message: &Message, head: &Head, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    message.encode(head, out);
    let length = (out.len() - at - LENGTH_BYTES) as u16;
    out[at..at + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Messages of a channel that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    /// The channel.
    pub channel: ChannelId,
    /// The number of the first message.
    pub first: u64,
    /// The messages, each after its length.
    pub(crate) bytes: &'r [u8],
}

impl<'r> Run<'r> {
    /// Messages of a channel, each after its length, as a publisher gave them.
    #[must_use]
    pub const fn new(channel: ChannelId, first: u64, bytes: &'r [u8]) -> Self {
        Self { channel, first, bytes }
    }

    /// The messages, each after its length.
    #[must_use]
    pub const fn bytes(&self) -> &'r [u8] {
        self.bytes
    }

    /// Its messages, encoded.
    pub fn messages(&self) -> Messages<'r> {
        Messages(self.bytes)
    }
}

/// Encoded messages, each after its length.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'r>(pub(crate) &'r [u8]);

impl<'r> Messages<'r> {
    /// Those of these bytes.
    #[must_use]
    pub const fn of(bytes: &'r [u8]) -> Self {
        Self(bytes)
    }
}

impl<'r> Iterator for Messages<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_BYTES>()?;
        let (message, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        self.0 = rest;
        Some(message)
    }
}

impl<'r> Messages<'r> {
    /// The messages of the next entry, how many they are, and how many bytes they take in a packet. What is cut short is an entry too.
    pub(crate) fn next_entry(&mut self) -> Option<(Messages<'r>, u64, usize)> {
        let (whole, mut count) = (self.0, 0);
        for message in self.by_ref() {
            count += 1;
            if is_last(message) {
                break;
            }
        }
        let bytes = whole.len() - self.0.len();
        (count > 0).then_some((Messages(&whole[..bytes]), count, bytes))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    channel: ChannelId,
    /// The number of the next message.
    next: u64,
    /// The number of the first message in `bytes`.
    first: u64,
    bytes: Vec<u8>,
    /// Where the last message of the entry that goes on begins, if it has one.
    last_at: Option<usize>,
    is_listed: bool,
}

impl Outbox {
    /// An empty one.
    pub(crate) fn new(channel: ChannelId, next: u64) -> Self {
        Self { channel, next, first: next, bytes: Vec::new(), last_at: None, is_listed: false }
    }

    /// One that has nothing to send, out of a saved publisher.
    pub(crate) fn restore(r: &mut Reader<'_>, channel: ChannelId) -> Result<Self, DecodeError> {
        let next = r.u64()?;
        r.checked((next > 0).then_some(()), "the number of a message")?;
        Ok(Self::new(channel, next))
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(crate) fn push(&mut self, message: &Message, head: &Head) {
        self.last_at = Some(self.bytes.len() + LENGTH_BYTES);
        append(message, head, &mut self.bytes);
        self.next += 1;
    }

    /// The entry has ended. Whether the channel is to be listed as one that has something to send.
    pub(crate) fn end_entry(&mut self) -> bool {
        let Some(at) = self.last_at.take() else { return false };
        mark_last(&mut self.bytes[at..]);
        !std::mem::replace(&mut self.is_listed, true)
    }

    /// Gives what is to be sent, and forgets it.
    pub(crate) fn take(&mut self, mut with: impl FnMut(Run<'_>)) {
        with(Run { channel: self.channel, first: self.first, bytes: &self.bytes });
        self.bytes.clear();
        (self.first, self.is_listed) = (self.next, false);
    }
}
