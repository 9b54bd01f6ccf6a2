//! Frames: the units of the byte stream of a link.
//!
//! ```text
//! len u32 | kind u8 | payload        len counts kind and payload; integers are little-endian
//! 0 hello      magic u32, link u16, message u8, wire u16, engine u16, cluster u64, from u64, incarnation u64, software (text)
//! 1 refused    why (text)
//! 2 message    opaque
//! 3 ping       4 pong
//! 5 begin      id u32, total_bytes u64, meta
//! 6 chunk      id u32, bytes
//! 7 end        id u32, hash [u8; 32]
//! 8 aborted    id u32, why (text)
//! 9 credit     id u32, bytes u32
//! 10 answer    id u32, accepted u8, why (text)
//! 11 dismissed why (text)
//! ```

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use walras_consensus::{MESSAGE_VERSION, ReplicaId};

use crate::snapshot::SnapshotId;

/// Version of the frames.
pub const LINK_VERSION: u16 = 2;

/// `len` and `kind`.
pub(crate) const HEADER_BYTES: usize = 5;
/// No setting allows longer frames.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Maximum size of a greeting: its sender is not authenticated yet.
pub(crate) const HELLO_BYTES_MAX: usize = 1 << 10;
/// Maximum length of a text, which is for operators.
const TEXT_BYTES_MAX: usize = 512;
const MAGIC: u32 = u32::from_le_bytes(*b"wlrs");

/// What a replica runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Version of the frames: [`LINK_VERSION`]. Must be equal.
    pub link: u16,
    /// Version of the consensus messages. Must be equal.
    pub message: u8,
    /// Version of the commands and events in the messages. Must be equal.
    pub wire: u16,
    /// The newest version of the engine that the program knows; may differ.
    pub engine: u16,
    /// Version of the program, for operators and `walras cluster upgrade-check`; may differ.
    pub software: String,
}

impl Versions {
    /// The versions of this program.
    #[must_use]
    pub fn new(wire: u16, engine: u16, software: &str) -> Self {
        Self { link: LINK_VERSION, message: MESSAGE_VERSION, wire, engine, software: shortened(software) }
    }

    /// Whether replicas with these versions are compatible.
    #[must_use]
    pub fn go_with(&self, other: &Self) -> bool {
        (self.link, self.message, self.wire) == (other.link, other.message, other.wire)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link, message, wire, engine, software } = self;
        write!(f, "{software} (links {link}, messages {message}, wire {wire}, engine up to {engine})")
    }
}

/// Why bytes are not a valid frame here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than allowed.
    #[error(
        "a frame of {bytes} bytes came, and {bytes_max} are allowed; give all replicas the same limits, and let only replicas connect here"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Not a frame.
    #[error("a frame is not well-formed ({0}); let only replicas of this program connect here")]
    Malformed(&'static str),
    /// A frame at the wrong time.
    #[error("a frame came at the wrong time ({0}); let only replicas of this program connect here")]
    Unexpected(&'static str),
}

/// The identity in a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: Versions,
    pub(crate) cluster_id: u64,
    pub(crate) from: ReplicaId,
    pub(crate) incarnation: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Hello(Hello),
    Refused(String),
    Message(Bytes),
    Ping,
    Pong,
    Begin {
        id: SnapshotId,
        total_bytes: u64,
        meta: Bytes,
    },
    Chunk {
        id: SnapshotId,
        bytes: Bytes,
    },
    End {
        id: SnapshotId,
        hash: [u8; 32],
    },
    Aborted {
        id: SnapshotId,
        why: String,
    },
    Credit {
        id: SnapshotId,
        bytes: u32,
    },
    Answer {
        id: SnapshotId,
        accepted: bool,
        why: String,
    },
    /// Another process runs under the receiver's id, and ran before it.
    Dismissed(String),
}

/// An outgoing frame; the payload of a message is not copied.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) payload: Bytes,
}

impl Outgoing {
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

impl Frame {
    pub(crate) fn into_outgoing(self) -> Outgoing {
        let mut payload = BytesMut::new();
        let kind = match self {
            Self::Hello(Hello { versions, cluster_id, from, incarnation }) => {
                payload.put_u32_le(MAGIC);
                payload.put_u16_le(versions.link);
                payload.put_u8(versions.message);
                payload.put_u16_le(versions.wire);
                payload.put_u16_le(versions.engine);
                payload.put_u64_le(cluster_id);
                payload.put_u64_le(from.get());
                payload.put_u64_le(incarnation);
                payload.put_slice(shortened(&versions.software).as_bytes());
                0
            }
            Self::Refused(why) => {
                payload.put_slice(shortened(&why).as_bytes());
                1
            }
            Self::Message(bytes) => return outgoing(2, bytes),
            Self::Ping => 3,
            Self::Pong => 4,
            Self::Begin { id, total_bytes, meta } => {
                payload.put_u32_le(id.0);
                payload.put_u64_le(total_bytes);
                payload.put_slice(&meta);
                5
            }
            Self::Chunk { id, bytes } => {
                payload.reserve(4 + bytes.len());
                payload.put_u32_le(id.0);
                payload.put_slice(&bytes);
                6
            }
            Self::End { id, hash } => {
                payload.put_u32_le(id.0);
                payload.put_slice(&hash);
                7
            }
            Self::Aborted { id, why } => {
                payload.put_u32_le(id.0);
                payload.put_slice(shortened(&why).as_bytes());
                8
            }
            Self::Credit { id, bytes } => {
                payload.put_u32_le(id.0);
                payload.put_u32_le(bytes);
                9
            }
            Self::Answer { id, accepted, why } => {
                payload.put_u32_le(id.0);
                payload.put_u8(u8::from(accepted));
                payload.put_slice(shortened(&why).as_bytes());
                10
            }
            Self::Dismissed(why) => {
                payload.put_slice(shortened(&why).as_bytes());
                11
            }
        };
        outgoing(kind, payload.freeze())
    }

    fn decode(kind: u8, mut payload: Bytes) -> Result<Self, FrameError> {
        let at = &mut payload;
        let frame = match kind {
            0 => {
                if take(at, Buf::try_get_u32_le)? != MAGIC {
                    return Err(FrameError::Malformed("not the greeting of a replica"));
                }
                let (link, message, wire) =
                    (take(at, Buf::try_get_u16_le)?, take(at, Buf::try_get_u8)?, take(at, Buf::try_get_u16_le)?);
                let engine = take(at, Buf::try_get_u16_le)?;
                let cluster_id = take(at, Buf::try_get_u64_le)?;
                let from =
                    ReplicaId::new(take(at, Buf::try_get_u64_le)?).ok_or(FrameError::Malformed("a replica without an id"))?;
                let incarnation = take(at, Buf::try_get_u64_le)?;
                let versions = Versions { link, message, wire, engine, software: text(at)? };
                Self::Hello(Hello { versions, cluster_id, from, incarnation })
            }
            1 => Self::Refused(text(at)?),
            2 => Self::Message(std::mem::take(at)),
            3 => Self::Ping,
            4 => Self::Pong,
            5 => Self::Begin { id: snapshot(at)?, total_bytes: take(at, Buf::try_get_u64_le)?, meta: std::mem::take(at) },
            6 => Self::Chunk { id: snapshot(at)?, bytes: std::mem::take(at) },
            7 => {
                let id = snapshot(at)?;
                let hash = *at.first_chunk().ok_or(FrameError::Malformed("cut short"))?;
                at.advance(hash.len());
                Self::End { id, hash }
            }
            8 => Self::Aborted { id: snapshot(at)?, why: text(at)? },
            9 => Self::Credit { id: snapshot(at)?, bytes: take(at, Buf::try_get_u32_le)? },
            10 => {
                let id = snapshot(at)?;
                let accepted = match take(at, Buf::try_get_u8)? {
                    0 => false,
                    1 => true,
                    _ => return Err(FrameError::Malformed("a mark out of range")),
                };
                Self::Answer { id, accepted, why: text(at)? }
            }
            11 => Self::Dismissed(text(at)?),
            _ => return Err(FrameError::Malformed("unknown kind")),
        };
        if at.has_remaining() {
            return Err(FrameError::Malformed("bytes left over"));
        }
        Ok(frame)
    }
}

fn outgoing(kind: u8, payload: Bytes) -> Outgoing {
    let len = u32::try_from(payload.len() + 1).expect("makers of frames keep them below FRAME_BYTES_MAX");
    let [a, b, c, d] = len.to_le_bytes();
    Outgoing { header: [a, b, c, d, kind], payload }
}

fn take<T>(at: &mut Bytes, get: impl Fn(&mut Bytes) -> Result<T, bytes::TryGetError>) -> Result<T, FrameError> {
    get(at).map_err(|_| FrameError::Malformed("cut short"))
}

fn snapshot(at: &mut Bytes) -> Result<SnapshotId, FrameError> {
    take(at, Buf::try_get_u32_le).map(SnapshotId)
}

fn text(at: &mut Bytes) -> Result<String, FrameError> {
    let bytes = std::mem::take(at);
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(FrameError::Malformed("a text too long"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| FrameError::Malformed("a text that is not UTF-8"))?;
    if text.chars().any(char::is_control) {
        return Err(FrameError::Malformed("a text with control characters"));
    }
    Ok(text.to_owned())
}

/// Truncates a text and removes control characters.
fn shortened(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        if short.len() + c.len_utf8() > TEXT_BYTES_MAX {
            break;
        }
        short.push(c);
    }
    short
}

/// Assembles frames from bytes that arrive in arbitrary pieces.
#[derive(Debug)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    /// Maximum size of a frame, without its length.
    bytes_max: usize,
}

impl Decoder {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), bytes_max }
    }

    pub(crate) fn allow(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // Minimum size of a new buffer, so that small messages share one.
        const FRESH_BYTES: usize = 16 << 10;
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            self.buffer.reserve(bytes.len().max(FRESH_BYTES));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The received part of an incomplete frame.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// The next complete frame. After an error, the following bytes are meaningless.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(len) = self.buffer.first_chunk().map(|len| u32::from_le_bytes(*len) as usize) else { return Ok(None) };
        if len == 0 {
            return Err(FrameError::Malformed("an empty frame"));
        }
        if len > self.bytes_max {
            return Err(FrameError::TooLong { bytes: len, bytes_max: self.bytes_max });
        }
        if self.buffer.len() < 4 + len {
            // Reserved at once, to avoid repeated copying.
            self.buffer.reserve(4 + len - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(4);
        let mut frame = self.buffer.split_to(len).freeze();
        let kind = frame.get_u8();
        Frame::decode(kind, frame).map(Some)
    }
}

/// Decodes frames as a link does, from bytes in these pieces, and encodes them again. Also returns the error that ended decoding,
/// if any. Each frame has one encoding, so the result is a prefix of the input.
pub fn frames_again<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, bytes_max: usize) -> (Vec<u8>, Option<FrameError>) {
    let (mut decoder, mut again) = (Decoder::new(bytes_max), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => {
                    let Outgoing { header, payload } = frame.into_outgoing();
                    again.extend_from_slice(&header);
                    again.extend_from_slice(&payload);
                }
                Ok(None) => break,
                Err(error) => return (again, Some(error)),
            }
        }
    }
    (again, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let id = any::<u32>().prop_map(SnapshotId);
        let bytes = || prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
        let text = || "[a-zäß€ ]{0,40}";
        prop_oneof![
            (any::<(u16, u8, u16, u16, u64, u64)>(), 1..=u64::MAX, text()).prop_map(
                |((link, message, wire, engine, cluster_id, incarnation), from, software)| Frame::Hello(Hello {
                    versions: Versions { link, message, wire, engine, software },
                    cluster_id,
                    from: ReplicaId::new(from).unwrap(),
                    incarnation,
                })
            ),
            text().prop_map(Frame::Refused),
            text().prop_map(Frame::Dismissed),
            bytes().prop_map(Frame::Message),
            Just(Frame::Ping),
            Just(Frame::Pong),
            (id.clone(), any::<u64>(), bytes()).prop_map(|(id, total_bytes, meta)| Frame::Begin { id, total_bytes, meta }),
            (id.clone(), bytes()).prop_map(|(id, bytes)| Frame::Chunk { id, bytes }),
            (id.clone(), any::<[u8; 32]>()).prop_map(|(id, hash)| Frame::End { id, hash }),
            (id.clone(), text()).prop_map(|(id, why)| Frame::Aborted { id, why }),
            (id.clone(), any::<u32>()).prop_map(|(id, bytes)| Frame::Credit { id, bytes }),
            (id, any::<bool>(), text()).prop_map(|(id, accepted, why)| Frame::Answer { id, accepted, why }),
        ]
    }

    fn encode(frame: &Frame) -> Vec<u8> {
        let Outgoing { header, payload } = frame.clone().into_outgoing();
        [&header[..], &payload].concat()
    }

    /// All frames of `bytes`, which come in pieces that end at `cuts`, and the error at the end.
    fn decode(bytes: &[u8], cuts: &[prop::sample::Index]) -> (Vec<Frame>, Option<FrameError>) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let (mut decoder, mut frames, mut at) = (Decoder::new(1 << 10), Vec::new(), 0);
        for cut in cuts {
            decoder.push(&bytes[at..cut]);
            at = cut;
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
        }
        (frames, None)
    }

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(
            frames in prop::collection::vec(frame(), 0..8), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
            prop_assert_eq!(decode(&bytes, &cuts), (frames, None));
        }

        #[test]
        fn what_decodes_of_damaged_bytes_encodes_the_same(
            frames in prop::collection::vec(frame(), 1..6),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let (decoded, error) = decode(&bytes, &cuts);
            let again: Vec<u8> = decoded.iter().flat_map(encode).collect();
            prop_assert!(bytes.starts_with(&again));
            prop_assert_eq!((decoded, error), decode(&bytes, &[]), "the result does not depend on the pieces");
        }

        #[test]
        fn garbage_is_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
            let (decoded, _) = decode(&bytes, &[]);
            let again: Vec<u8> = decoded.iter().flat_map(encode).collect();
            prop_assert!(bytes.starts_with(&again));
        }
    }

    #[test]
    fn a_length_alone_reserves_no_more_than_the_limit() {
        let mut decoder = Decoder::new(1 << 10);
        decoder.push(&(FRAME_BYTES_MAX as u32).to_le_bytes());
        assert_eq!(decoder.next(), Err(FrameError::TooLong { bytes: FRAME_BYTES_MAX, bytes_max: 1 << 10 }));
        assert!(decoder.buffer.capacity() < 1 << 20);
    }

    #[test]
    fn texts_are_made_fit() {
        let long = "ä\u{1b}".repeat(TEXT_BYTES_MAX);
        let mut decoder = Decoder::new(1 << 10);
        decoder.push(&encode(&Frame::Refused(long)));
        let Ok(Some(Frame::Refused(text))) = decoder.next() else { panic!("a refusal comes back") };
        assert!(text.len() <= TEXT_BYTES_MAX && text.starts_with("ä ä"), "{text}");
    }
}
