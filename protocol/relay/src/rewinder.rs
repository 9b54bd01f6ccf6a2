//! The latest messages of a channel, for readers that missed some: at the sender, or at any node that has read them all.
//!
//! *Deliberately absent*: who may ask, and how often; the host's throttles know.

use std::collections::VecDeque;

use crate::packet::{Header, Kind, MESSAGE_BYTES_MAX, PACKET_BYTES_MAX, PacketWriter, TreeKey};
use crate::reader::{Message, Request};

/// What a stored message costs beside its bytes.
const MESSAGE_OVERHEAD_BYTES: usize = 64;
/// Packets in one answer at most. A reader asks again for the rest.
pub const ANSWER_PACKETS_MAX: usize = 16;

/// What a reader is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Packets were written.
    Sent,
    /// The first messages are no longer here, those from this number on are: the reader needs a snapshot.
    GoneBefore(u64),
    /// There are no such messages yet, or not here: the reader asks again later.
    Unknown,
}

#[derive(Debug)]
struct Stored {
    sent_ns: u64,
    release_ns: u64,
    bytes: Box<[u8]>,
}

/// The latest messages of one channel, in bounded memory.
#[derive(Debug)]
pub struct Rewinder {
    channel: u32,
    /// Number of the first stored message.
    first: u64,
    stored: VecDeque<Stored>,
    bytes: usize,
    bytes_max: usize,
    packet_bytes: usize,
}

impl Rewinder {
    /// An empty one, whose first message will be `next`. It keeps about `bytes_max` bytes.
    #[must_use]
    pub const fn new(channel: u32, next: u64, bytes_max: usize) -> Self {
        Self { channel, first: next, stored: VecDeque::new(), bytes: 0, bytes_max, packet_bytes: PACKET_BYTES_MAX }
    }

    /// The same one, which answers with packets of so many bytes at most.
    #[must_use]
    pub fn in_packets_of(self, packet_bytes: usize) -> Self {
        Self { packet_bytes, ..self }
    }

    /// Its channel.
    #[must_use]
    pub const fn channel(&self) -> u32 {
        self.channel
    }

    /// Bytes that it keeps, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + self.stored.len() as u64
    }

    /// Stores the next message.
    ///
    /// # Panics
    /// Where the message is not the next one, or longer than a packet: nobody could have sent it.
    pub fn push(&mut self, message: &Message<'_>) {
        assert!(message.number == self.next() && message.bytes.len() <= MESSAGE_BYTES_MAX, "the next message of the channel");
        self.bytes += message.bytes.len() + MESSAGE_OVERHEAD_BYTES;
        let Message { sent_ns, release_ns, .. } = *message;
        self.stored.push_back(Stored { sent_ns, release_ns, bytes: message.bytes.into() });
        while self.bytes > self.bytes_max
            && let Some(gone) = self.stored.pop_front()
        {
            self.bytes -= gone.bytes.len() + MESSAGE_OVERHEAD_BYTES;
            self.first += 1;
        }
    }

    /// Answers a reader: writes the packets that have what it asked for, or as much of it as an answer may have.
    pub fn answer(&self, request: &Request, tree: u32, key: &TreeKey, packets: &mut Vec<Vec<u8>>) -> Answer {
        if request.channel != self.channel || request.first >= self.next() || request.count == 0 {
            return Answer::Unknown;
        }
        let Some(from) = request.first.checked_sub(self.first) else {
            return Answer::GoneBefore(self.first);
        };
        let mut asked = self.stored.range(from as usize..).take(request.count.into()).peekable();
        let (mut number, mut written) = (request.first, 0);
        let mut writer = PacketWriter::up_to(self.packet_bytes);
        // Messages of one packet have one release time: none comes out earlier than it may.
        while let Some((sent_ns, release_ns)) = asked.peek().map(|next| (next.sent_ns, next.release_ns))
            && written < ANSWER_PACKETS_MAX
        {
            while asked
                .next_if(|next| (next.sent_ns, next.release_ns) == (sent_ns, release_ns) && writer.push(&next.bytes))
                .is_some()
            {}
            let count = writer.count();
            let header =
                Header { kind: Kind::Again, count, channel: self.channel, tree, packet: 0, first: number, sent_ns, release_ns };
            let mut bytes = Vec::new();
            writer.finish(&header, key, &mut bytes);
            packets.push(bytes);
            number += u64::from(count);
            written += 1;
        }
        Answer::Sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn message(number: u64, bytes: &[u8]) -> Message<'_> {
        Message { number, sent_ns: number / 3, release_ns: number / 3 + 10, bytes }
    }

    #[test]
    fn it_answers_with_what_it_has() {
        let key = TreeKey::new([5; 32]);
        let mut rewinder = Rewinder::new(3, 10, 100 * (MESSAGE_OVERHEAD_BYTES + 1));
        let ask = |rewinder: &Rewinder, first, count| {
            let mut packets = Vec::new();
            let answer = rewinder.answer(&Request { channel: 3, first, count }, 1, &key, &mut packets);
            let numbers: Vec<u64> = packets
                .iter()
                .flat_map(|bytes| {
                    let packet = Packet::decode(bytes, &key).unwrap();
                    let (header, messages) = (*packet.header(), packet.messages());
                    messages.map(move |(number, bytes)| {
                        assert_eq!((header.sent_ns, header.release_ns, bytes), (number / 3, number / 3 + 10, &[number as u8][..]));
                        number
                    })
                })
                .collect();
            (answer, numbers)
        };
        assert_eq!(ask(&rewinder, 10, 1), (Answer::Unknown, vec![]));
        for number in 10..210 {
            rewinder.push(&message(number, &[number as u8]));
        }
        assert_eq!((rewinder.first, rewinder.next()), (110, 210), "as many as there is room for");
        assert_eq!(ask(&rewinder, 109, 5), (Answer::GoneBefore(110), vec![]));
        assert_eq!(ask(&rewinder, 110, 0), (Answer::Unknown, vec![]));
        assert_eq!(ask(&rewinder, 110, 7), (Answer::Sent, (110..117).collect()));
        assert_eq!(ask(&rewinder, 208, 9), (Answer::Sent, vec![208, 209]));
        assert_eq!(ask(&rewinder, 210, 1), (Answer::Unknown, vec![]));
        assert_eq!(ask(&rewinder, u64::MAX, u16::MAX), (Answer::Unknown, vec![]));
        let (answer, numbers) = ask(&rewinder, 111, u16::MAX);
        assert_eq!((answer, numbers), (Answer::Sent, (111..111 + 3 * ANSWER_PACKETS_MAX as u64).collect()), "a bounded answer");
        assert_eq!(rewinder.answer(&Request { channel: 4, first: 110, count: 1 }, 1, &key, &mut Vec::new()), Answer::Unknown);
    }

    #[test]
    fn answers_are_as_short_as_the_packets_that_were_sent() {
        let key = TreeKey::new([5; 32]);
        let mut rewinder = Rewinder::new(3, 1, 1 << 16).in_packets_of(512);
        for number in 1..=20 {
            rewinder.push(&Message { number, sent_ns: 1, release_ns: 2, bytes: &[number as u8; 98] });
        }
        let mut packets = Vec::new();
        assert_eq!(rewinder.answer(&Request { channel: 3, first: 1, count: 20 }, 1, &key, &mut packets), Answer::Sent);
        assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [460; 5], "four messages each");
    }

    #[test]
    #[should_panic(expected = "the next message")]
    fn a_number_is_not_left_out() {
        Rewinder::new(3, 10, 1_000).push(&message(11, b""));
    }
}
