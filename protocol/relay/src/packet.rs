//! A packet: messages of one channel that travel together, in the bytes in which the sender made it.
//!
//! All numbers are little endian:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version, 1 |
//! | 1 | kind: 0 data, 1 heartbeat, 2 end of the channel, 3 data that was asked for again |
//! | 2 | how many messages |
//! | 4 | channel |
//! | 4 | number of the tree and its view, which say how relays pass it on ([`crate::live`]) |
//! | 8 | number of the packet in its channel, from 1; 0 where no relay passes it on |
//! | 8 | number of the first message; of the next one where there is none |
//! | 8 | when it was sent, in ns since the Unix epoch |
//! | 8 | when it may be released, in ns since the Unix epoch |
//! | | each message: 2 bytes of length, then its bytes |
//! | 16 | seal: keyed BLAKE3 of all before, cut |
//!
//! A message's number is that of the message before plus 1; channels begin with 1.

/// Version of the frame.
pub const VERSION: u8 = 1;
/// Bytes before the first message.
pub const HEADER_BYTES: usize = 44;
/// Bytes of the seal.
pub const SEAL_BYTES: usize = 16;
/// Longest packet: what an Ethernet frame has room for beneath IPv4 and UDP.
pub const PACKET_BYTES_MAX: usize = 1_472;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = PACKET_BYTES_MAX - HEADER_BYTES - SEAL_BYTES - 2;
/// Shortest packet.
const PACKET_BYTES_MIN: usize = HEADER_BYTES + SEAL_BYTES;
/// Bytes between the messages.
const LENGTH_BYTES: usize = 2;

/// The secret that a tree's nodes share.
#[derive(Clone)]
pub struct TreeKey([u8; 32]);

impl TreeKey {
    /// From bytes that nobody can guess.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    fn seal(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let hash = blake3::keyed_hash(&self.0, bytes);
        *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    /// Whether it is the seal of these bytes. Takes as long for a seal that is nearly right as for any other.
    fn has_sealed(&self, bytes: &[u8], seal: &[u8]) -> bool {
        let right = self.seal(bytes);
        right.len() == seal.len() && right.iter().zip(seal).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl std::fmt::Debug for TreeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TreeKey")
    }
}

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New messages.
    Data,
    /// No message: how far the channel is.
    Heartbeat,
    /// No message, and none will follow.
    End,
    /// Messages that a reader asked for again.
    Again,
}

/// What stands before the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is for.
    pub kind: Kind,
    /// Number of messages.
    pub count: u16,
    /// Whose messages.
    pub channel: u32,
    /// The tree that it travels by.
    pub tree: u32,
    /// The packet's number in its channel; 0 where no relay passes it on.
    pub packet: u64,
    /// Number of the first message, or of the next one.
    pub first: u64,
    /// When it was sent, in ns since the Unix epoch.
    pub sent_ns: u64,
    /// When it may be released, in ns since the Unix epoch.
    pub release_ns: u64,
}

impl Header {
    /// Number of the message after its last.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.first + self.count as u64
    }
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Too short or too long.
    #[error("a packet has {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX} bytes, this one {0}")]
    Length(usize),
    /// Another version.
    #[error("packets of version {0} are not known: run the same version of walras on all machines of a tree")]
    Version(u8),
    /// Somebody else made it, or it was damaged.
    #[error("the seal does not fit: all machines of a tree need the same key")]
    Seal,
    /// Its parts do not fit together.
    #[error("sealed, but malformed: its sender errs")]
    Malformed,
}

/// A packet that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'b> {
    header: Header,
    messages: &'b [u8],
}

impl<'b> Packet<'b> {
    /// Reads and checks all of it.
    pub fn decode(bytes: &'b [u8], key: &TreeKey) -> Result<Self, PacketError> {
        if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes.len()) {
            return Err(PacketError::Length(bytes.len()));
        }
        if bytes[0] != VERSION {
            return Err(PacketError::Version(bytes[0]));
        }
        let (sealed, seal) = bytes.split_at(bytes.len() - SEAL_BYTES);
        if !key.has_sealed(sealed, seal) {
            return Err(PacketError::Seal);
        }
        Self::read(sealed)
    }

    /// Reads one that this process has sealed, whose seal is not checked again. `None` for bytes that are none.
    #[must_use]
    pub fn of_own(bytes: &'b [u8]) -> Option<Self> {
        let is_one = (PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes.len()) && bytes[0] == VERSION;
        if is_one { Self::read(&bytes[..bytes.len() - SEAL_BYTES]).ok() } else { None }
    }

    /// Reads and checks all before the seal.
    fn read(sealed: &'b [u8]) -> Result<Self, PacketError> {
        let (head, messages) = sealed.split_at(HEADER_BYTES);
        let header = read_header(head).ok_or(PacketError::Malformed)?;
        let packet = Self { header, messages };
        let mut lengths = messages;
        for _ in 0..header.count {
            let (_, rest) = split_message(lengths).ok_or(PacketError::Malformed)?;
            lengths = rest;
        }
        if lengths.is_empty() { Ok(packet) } else { Err(PacketError::Malformed) }
    }

    /// What stands before the messages.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Its messages with their numbers.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &'b [u8])> + use<'b> {
        let mut rest = self.messages;
        (self.header.first..self.header.next()).map_while(move |number| {
            let (message, after) = split_message(rest)?;
            rest = after;
            Some((number, message))
        })
    }
}

fn read_header(head: &[u8]) -> Option<Header> {
    let u64_at = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let count = u16::from_le_bytes(*head.get(2..)?.first_chunk()?);
    let (kind, has_messages) = match head.get(1)? {
        0 => (Kind::Data, true),
        1 => (Kind::Heartbeat, false),
        2 => (Kind::End, false),
        3 => (Kind::Again, true),
        _ => return None,
    };
    let header = Header {
        kind,
        count,
        channel: u32_at(4)?,
        tree: u32_at(8)?,
        packet: u64_at(12)?,
        first: u64_at(20)?,
        sent_ns: u64_at(28)?,
        release_ns: u64_at(36)?,
    };
    let is_whole = has_messages == (count > 0) && header.first > 0 && header.first.checked_add(count.into()).is_some();
    is_whole.then_some(header)
}

fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

/// A packet that is being made.
#[derive(Debug)]
pub struct PacketWriter {
    bytes: Vec<u8>,
    count: u16,
    bytes_max: usize,
}

impl Default for PacketWriter {
    fn default() -> Self {
        Self::up_to(PACKET_BYTES_MAX)
    }
}

impl PacketWriter {
    /// One of packets of so many bytes at most. A message that needs more has a longer packet for itself alone.
    #[must_use]
    pub fn up_to(bytes_max: usize) -> Self {
        Self { bytes: vec![0; HEADER_BYTES], count: 0, bytes_max: bytes_max.min(PACKET_BYTES_MAX) }
    }

    /// Adds a message, or says that this packet has no room for it.
    #[must_use = "a message that has no room goes into the next packet"]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let bytes_max = if self.count == 0 { PACKET_BYTES_MAX } else { self.bytes_max };
        let has_room = self.bytes.len() + LENGTH_BYTES + message.len() + SEAL_BYTES <= bytes_max && self.count < u16::MAX;
        if has_room {
            self.bytes.extend_from_slice(&(message.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(message);
            self.count += 1;
        }
        has_room
    }

    /// Messages so far.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Writes the packet to the end of `out`, and begins the next one. The header's count is that of the messages.
    pub fn finish(&mut self, header: &Header, key: &TreeKey, out: &mut Vec<u8>) {
        let kind = match header.kind {
            Kind::Data => 0,
            Kind::Heartbeat => 1,
            Kind::End => 2,
            Kind::Again => 3,
        };
        let start = out.len();
        out.extend_from_slice(&[VERSION, kind]);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&header.channel.to_le_bytes());
        out.extend_from_slice(&header.tree.to_le_bytes());
        for number in [header.packet, header.first, header.sent_ns, header.release_ns] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.bytes[HEADER_BYTES..]);
        let seal = key.seal(&out[start..]);
        out.extend_from_slice(&seal);
        self.bytes.truncate(HEADER_BYTES);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> TreeKey {
        TreeKey::new([byte; 32])
    }

    fn header(kind: Kind, first: u64) -> Header {
        Header { kind, count: 0, channel: 7, tree: 2, packet: 9, first, sent_ns: 1_700_000_000_000_000_000, release_ns: 5 }
    }

    fn packed(header: &Header, messages: &[Vec<u8>], key: &TreeKey) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(messages.iter().all(|message| writer.push(message)));
        writer.finish(header, key, &mut bytes);
        bytes
    }

    /// Seals bytes that no sender would.
    fn resealed(mut bytes: Vec<u8>, key: &TreeKey) -> Vec<u8> {
        bytes.truncate(bytes.len() - SEAL_BYTES);
        let seal = key.seal(&bytes);
        bytes.extend_from_slice(&seal);
        bytes
    }

    #[test]
    fn a_packet_is_as_written_down() {
        let bytes = packed(&header(Kind::Data, 0x0102), &[b"ab".to_vec(), Vec::new()], &key(1));
        let (head, rest) = bytes.split_at(HEADER_BYTES);
        let expected = [
            &[1, 0, 2, 0, 7, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0][..],
            &1_700_000_000_000_000_000_u64.to_le_bytes(),
            &5_u64.to_le_bytes(),
        ];
        assert_eq!(head, expected.concat());
        let hash = blake3::keyed_hash(&[1; 32], &bytes[..bytes.len() - SEAL_BYTES]);
        assert_eq!(rest, [&[2, 0, b'a', b'b', 0, 0][..], &hash.as_bytes()[..SEAL_BYTES]].concat());
    }

    #[test]
    fn a_packet_has_room_for_what_fits_a_frame() {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(!writer.push(&[0; MESSAGE_BYTES_MAX + 1]));
        assert!(writer.push(&[0; MESSAGE_BYTES_MAX]));
        assert!(!writer.push(&[]));
        writer.finish(&header(Kind::Data, 1), &key(1), &mut bytes);
        assert_eq!(bytes.len(), PACKET_BYTES_MAX);
        assert_eq!(Packet::decode(&bytes, &key(1)).unwrap().messages().count(), 1);
        assert!(writer.push(&[]), "the next packet is empty");
    }

    #[test]
    fn packets_are_as_short_as_the_venue_wants_them() {
        let (mut writer, mut bytes) = (PacketWriter::up_to(200), Vec::new());
        assert!(writer.push(&[0; 68]) && writer.push(&[0; 68]) && !writer.push(&[]));
        writer.finish(&header(Kind::Data, 1), &key(1), &mut bytes);
        assert_eq!(bytes.len(), 200);
        assert!(writer.push(&[0; MESSAGE_BYTES_MAX]), "alone it has room");
        assert!(!writer.push(&[]));
        assert!(!PacketWriter::up_to(usize::MAX).push(&[0; MESSAGE_BYTES_MAX + 1]));
    }

    /// Every single byte counts, and what is sealed must fit together.
    #[test]
    fn damaged_and_forged_packets_are_refused() {
        let bytes = packed(&header(Kind::Data, 3), &[b"one".to_vec(), b"two".to_vec()], &key(1));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Packet::decode(&damaged, &key(1)).is_err(), "byte {at}");
            assert!(Packet::decode(&bytes[..at], &key(1)).is_err(), "cut at {at}");
        }
        assert_eq!(Packet::decode(&bytes, &key(2)), Err(PacketError::Seal));
        assert_eq!(
            Packet::decode(&[bytes.clone(), vec![0; PACKET_BYTES_MAX]].concat(), &key(1)),
            Err(PacketError::Length(bytes.len() + PACKET_BYTES_MAX))
        );
        let wrong = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Packet::decode(&resealed(bytes, &key(1)), &key(1)).unwrap_err()
        };
        assert_eq!(wrong(0, 2), PacketError::Version(2));
        // Kind, count, the first number and a length.
        for (at, byte) in [(1, 4), (1, 1), (2, 1), (2, 3), (20, 0), (HEADER_BYTES, 4), (HEADER_BYTES, 2)] {
            assert_eq!(wrong(at, byte), PacketError::Malformed, "byte {at} as {byte}");
        }
        let last = packed(&header(Kind::Data, u64::MAX), &[Vec::new()], &key(1));
        assert_eq!(Packet::decode(&last, &key(1)), Err(PacketError::Malformed), "there is no number after it");
        let none = packed(&header(Kind::Data, 1), &[], &key(1));
        assert_eq!(Packet::decode(&none, &key(1)), Err(PacketError::Malformed), "data without a message");
        assert_eq!(Packet::decode(&packed(&header(Kind::End, u64::MAX), &[], &key(1)), &key(1)).unwrap().header().next(), u64::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_packed_is_read(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..20),
            (channel, tree, packet, first) in (any::<u32>(), any::<u32>(), any::<u64>(), 1..u64::MAX / 2),
            again: bool,
        ) {
            let kind = if again { Kind::Again } else { Kind::Data };
            let header = Header { channel, tree, packet, ..header(kind, first) };
            let bytes = packed(&header, &messages, &key(3));
            let read = Packet::decode(&bytes, &key(3)).unwrap();
            prop_assert_eq!(read.header(), &Header { count: messages.len() as u16, ..header });
            let numbered = messages.iter().enumerate().map(|(at, message)| (first + at as u64, &message[..]));
            prop_assert!(read.messages().eq(numbered));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let sealed = resealed([&[VERSION, bytes.first().copied().unwrap_or(0) % 4][..], &bytes, &[0; SEAL_BYTES]].concat(), &key(1));
            for bytes in [&bytes, &sealed] {
                if let Ok(packet) = Packet::decode(bytes, &key(1)) {
                    prop_assert_eq!(packet.messages().count(), usize::from(packet.header().count));
                }
            }
        }
    }
}
