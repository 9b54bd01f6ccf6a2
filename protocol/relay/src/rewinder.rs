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

/// What is known of a message without its bytes.
#[derive(Clone, Copy, Debug)]
struct Stored {
    sent_ns: u64,
    release_ns: u64,
    /// Bytes of all messages up to this one, those that are no longer here included.
    end: u64,
}

/// The latest messages of one channel, in bounded memory. Once it is full it allocates nothing more, however many messages follow.
#[derive(Debug)]
pub struct Rewinder {
    channel: u32,
    /// Number of the first stored message.
    first: u64,
    stored: VecDeque<Stored>,
    /// The stored messages, one after the other.
    contents: VecDeque<u8>,
    /// Bytes of the messages that are no longer here.
    gone: u64,
    bytes: usize,
    bytes_max: usize,
    packet_bytes: usize,
}

impl Rewinder {
    /// An empty one, whose first message will be `next`. It keeps about `bytes_max` bytes.
    #[must_use]
    pub const fn new(channel: u32, next: u64, bytes_max: usize) -> Self {
        Self {
            channel,
            first: next,
            stored: VecDeque::new(),
            contents: VecDeque::new(),
            gone: 0,
            bytes: 0,
            bytes_max,
            packet_bytes: PACKET_BYTES_MAX,
        }
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
        let Message { number, sent_ns, release_ns, bytes } = *message;
        assert!(number == self.next() && bytes.len() <= MESSAGE_BYTES_MAX, "the next message of the channel");
        self.bytes += bytes.len() + MESSAGE_OVERHEAD_BYTES;
        self.contents.extend(bytes);
        self.stored.push_back(Stored { sent_ns, release_ns, end: self.gone + self.contents.len() as u64 });
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.stored.pop_front()
        {
            let length = (oldest.end - self.gone) as usize;
            drop(self.contents.drain(..length));
            self.gone = oldest.end;
            self.bytes -= length + MESSAGE_OVERHEAD_BYTES;
            self.first += 1;
        }
    }

    /// Gives up what it keeps, and the memory of it: others need that more. The next message is the same one.
    pub fn forget(&mut self) {
        self.first = self.next();
        (self.stored, self.contents) = (VecDeque::new(), VecDeque::new());
        (self.gone, self.bytes) = (0, 0);
    }

    /// Answers a reader: writes the packets that have what it asked for, or as much of it as an answer may have.
    pub fn answer(&self, request: &Request, tree: u32, key: &TreeKey, packets: &mut Vec<Vec<u8>>) -> Answer {
        if request.channel != self.channel || request.first >= self.next() || request.count == 0 {
            return Answer::Unknown;
        }
        let Some(from) = request.first.checked_sub(self.first) else {
            return Answer::GoneBefore(self.first);
        };
        let mut at = from as usize;
        let end = self.stored.len().min(at + usize::from(request.count));
        let (mut writer, mut room, mut written) = (PacketWriter::up_to(self.packet_bytes), [0; MESSAGE_BYTES_MAX], 0);
        // Messages of one packet have one release time: none comes out earlier than it may.
        while at < end && written < ANSWER_PACKETS_MAX {
            let (Stored { sent_ns, release_ns, .. }, first) = (self.stored[at], self.first + at as u64);
            let is_of_packet = |stored: &Stored| (stored.sent_ns, stored.release_ns) == (sent_ns, release_ns);
            while at < end && is_of_packet(&self.stored[at]) && writer.push(self.content(at, &mut room)) {
                at += 1;
            }
            let count = writer.count();
            let header = Header { kind: Kind::Again, count, channel: self.channel, tree, packet: 0, first, sent_ns, release_ns };
            let mut bytes = Vec::new();
            writer.finish(&header, key, &mut bytes);
            packets.push(bytes);
            written += 1;
        }
        Answer::Sent
    }

    /// The bytes of a stored message, which may lie in two pieces: they are copied to `room`.
    fn content<'r>(&self, at: usize, room: &'r mut [u8; MESSAGE_BYTES_MAX]) -> &'r [u8] {
        let start = at.checked_sub(1).map_or(self.gone, |before| self.stored[before].end);
        let [start, end] = [start, self.stored[at].end].map(|place| (place - self.gone) as usize);
        let room = &mut room[..end - start];
        room.iter_mut().zip(self.contents.range(start..end)).for_each(|(to, byte)| *to = *byte);
        room
    }
}

#[cfg(test)]
mod tests {
    use walras_random::Random;

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

    /// Next to a list of all messages: they have any length, so that some lie over the end of the room in which all are kept.
    #[test]
    fn messages_of_any_length_come_back_as_they_were() {
        let (key, draw) = (TreeKey::new([5; 32]), &mut Random::new(3));
        let (mut rewinder, mut all) = (Rewinder::new(3, 1, 5_000), Vec::<Vec<u8>>::new());
        for number in 1..=3_000_u64 {
            let bytes: Vec<u8> = (0..draw.below(200)).map(|at| (number + at) as u8).collect();
            rewinder.push(&message(number, &bytes));
            all.push(bytes);
            let (first, mut packets) = (rewinder.first + draw.below(number + 1 - rewinder.first), Vec::new());
            assert_eq!(rewinder.answer(&Request { channel: 3, first, count: 9 }, 1, &key, &mut packets), Answer::Sent);
            let came = packets.iter().flat_map(|bytes| Packet::decode(bytes, &key).unwrap().messages());
            let mut next = first;
            for (number, bytes) in came {
                assert_eq!((number, bytes), (next, &all[number as usize - 1][..]));
                next += 1;
            }
            assert_eq!(next, (first + 9).min(number + 1));
            let kept: usize = all[rewinder.first as usize - 1..].iter().map(|bytes| bytes.len() + MESSAGE_OVERHEAD_BYTES).sum();
            assert!(kept == rewinder.bytes() && kept <= 5_000, "{kept} bytes, {} counted", rewinder.bytes());
        }
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
    fn what_is_forgotten_is_gone_and_later_messages_are_kept() {
        let key = TreeKey::new([5; 32]);
        let mut rewinder = Rewinder::new(3, 1, 10 * (MESSAGE_OVERHEAD_BYTES + 1));
        (1..=25).for_each(|number| rewinder.push(&message(number, &[number as u8])));
        rewinder.forget();
        assert_eq!((rewinder.bytes(), rewinder.next(), rewinder.contents.capacity()), (0, 26, 0));
        let answer = |rewinder: &Rewinder, first, packets: &mut Vec<Vec<u8>>| {
            rewinder.answer(&Request { channel: 3, first, count: 9 }, 1, &key, packets)
        };
        assert_eq!(answer(&rewinder, 25, &mut Vec::new()), Answer::GoneBefore(26));
        (26..=40).for_each(|number| rewinder.push(&message(number, &[number as u8])));
        let mut packets = Vec::new();
        assert_eq!(answer(&rewinder, 35, &mut packets), Answer::Sent);
        let came = packets.iter().flat_map(|bytes| Packet::decode(bytes, &key).unwrap().messages());
        let came: Vec<(u64, u8)> = came.map(|(number, bytes)| (number, bytes[0])).collect();
        assert_eq!(came, (35..=40).map(|number| (number, number as u8)).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "the next message")]
    fn a_number_is_not_left_out() {
        Rewinder::new(3, 10, 1_000).push(&message(11, b""));
    }
}
