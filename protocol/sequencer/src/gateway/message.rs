//! Messages between gateways and the leader. Those between sequencers are in `replicated/peer.rs`.
//!
//! ```text
//! to the leader    stamp | session u64 | session_seq u64 | command | 2        a session's command
//!                  stamp | session u64 | command | 3                          one without a number, behind what was sent of the session
//!                  account, token | logon time u64 | 0 or 1 u8 | 4            a session is to be opened; 1: with copies
//!                  term u64 | stamp | 12                                      all stamped up to then is sent; 0: nothing is stamped
//! to a gateway     term u64 | 5                                               this replica takes orders now
//!                  session u64 | session_seq u64 | reason u16 | 6             not taken
//!                  account, token | reason u16 | 7                            not opened
//!                  session u64 | session_seq u64 | late u64 | 8               taken, and late by so many nanoseconds
//!                  session u64 | logon time u64 | 9                           logons of this session before that time are replaced
//!                  account, token | logon time u64 | session u64 | log index u64 | 10    opened there
//! either way       (bytes u16 | a message of these)... | 11                   several as one
//! ```
//!
//! A stamp is 0 (none that counts), or 1 and nanoseconds u64. All little-endian; the kind stands last, as in the sequencers'
//! messages.
//!
//! A watermark is no part of a pack, and goes to the leader of its term alone. A replica whose program does not know it drops it, and
//! holds orders until their delay is over.

use bytes::Bytes;
use walras_consensus::Term;
use walras_fair_access::resequence::Stamp;
use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_types::{LogIndex, Ordinal, RejectReason, SessionId, SessionSeq};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{DecodeError, OpenSession};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayMessage {
    /// To the leader: a session's command.
    Order {
        /// When it reached the edge.
        stamp: Stamp,
        /// Which.
        ordinal: Ordinal,
        /// The command's bytes.
        content: Bytes,
    },
    /// To the leader: a command without a number, not before what was sent of this session.
    Behind {
        /// When it was made.
        stamp: Stamp,
        /// Behind which session's.
        session: SessionId,
        /// The command's bytes.
        content: Bytes,
    },
    /// To the leader: open a session.
    Open {
        /// Which.
        open: OpenSession,
        /// The number that the client gave its logon: the greatest has the session.
        logon_seq: u64,
        /// What the logon asks of it.
        usage: SessionUse,
    },
    /// To the leader: all orders that the gateway has stamped up to this time went before this message by the same link, and none that it
    /// sends later has an earlier stamp.
    Watermark {
        /// The term in which the receiver leads: what was sent to it before may have been dropped.
        term: Term,
        /// Up to when; or it stamps nothing, and its orders have the time of their arrival.
        until: Stamp,
    },
    /// To gateways: this replica takes orders in this term.
    Leading {
        /// The term.
        term: Term,
    },
    /// To a gateway: this one, and those after it, are not taken.
    Refused {
        /// The first.
        ordinal: Ordinal,
        /// Why.
        reason: RejectReason,
    },
    /// To a gateway: a session could not be opened.
    NotOpened {
        /// Which.
        open: OpenSession,
        /// Why.
        reason: RejectReason,
    },
    /// To a gateway: an order missed d_s.
    Late {
        /// Which.
        ordinal: Ordinal,
        /// By how much.
        late_ns: u64,
    },
    /// To gateways: connections of this session that logged on before have lost it.
    Replaced {
        /// Which session.
        session: SessionId,
        /// The number of the logon that has it.
        logon_seq: u64,
    },
    /// To a gateway: the log has opened a session for a logon there. It begins when the gateway has applied that entry: a state
    /// before it may lack what another replica answered the client.
    Opened {
        /// What was asked for.
        open: OpenSession,
        /// The number that the client gave its logon.
        logon_seq: u64,
        /// Which session.
        session: SessionId,
        /// Where.
        log_index: LogIndex,
    },
}

/// What a logon asks of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// Other connections keep it too.
    Shared,
    /// This connection alone has it.
    Alone,
    /// The same, and the logon is good once, at whichever replica: its number is a nonce of the state ([`super::logon_nonce`]). From
    /// engine version 13 on.
    AloneOnce,
}

impl SessionUse {
    /// Whether other connections keep the session too.
    #[must_use]
    pub const fn has_copies(self) -> bool {
        matches!(self, Self::Shared)
    }
}

const ORDER: u8 = 2;
const BEHIND: u8 = 3;
const OPEN: u8 = 4;
const LEADING: u8 = 5;
const REFUSED: u8 = 6;
const NOT_OPENED: u8 = 7;
const LATE: u8 = 8;
const REPLACED: u8 = 9;
const OPENED: u8 = 10;
const PACK: u8 = 11;
const WATERMARK: u8 = 12;

/// A pack is sent when it has so many bytes.
const PACK_BYTES: usize = 16 << 10;

/// Messages for one replica that leave together: at a high rate what each costs on its way is most of what it costs at all.
#[derive(Debug, Default)]
pub struct Pack {
    bytes: Vec<u8>,
    count: usize,
}

impl Pack {
    /// Adds a message: what to send now, if it is full.
    #[must_use]
    pub fn push(&mut self, message: &GatewayMessage) -> Option<Vec<u8>> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        message.encode_into(&mut self.bytes);
        let len = u16::try_from(self.bytes.len() - at - 2).expect("a message is a command and a little more");
        self.bytes[at..at + 2].copy_from_slice(&len.to_le_bytes());
        self.count += 1;
        if self.bytes.len() >= PACK_BYTES { self.take() } else { None }
    }

    /// What to send, if anything. One message goes as it is.
    #[must_use]
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.bytes);
        match std::mem::take(&mut self.count) {
            0 => None,
            1 => Some(bytes.split_off(2)),
            _ => {
                bytes.push(PACK);
                Some(bytes)
            }
        }
    }
}

impl GatewayMessage {
    /// Whether bytes are such a message, by their kind: else they are the sequencers'.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.last().is_some_and(|kind| (ORDER..=WATERMARK).contains(kind))
    }

    /// Reads a message, or each of a [`Pack`]. After an error there is nothing more.
    pub fn all_of(bytes: &Bytes) -> impl Iterator<Item = Result<Self, DecodeError>> + '_ {
        let is_pack = bytes.last() == Some(&PACK);
        // Where the next of a pack begins.
        let mut at = Some(0);
        std::iter::from_fn(move || {
            let begin = at.take()?;
            if !is_pack {
                return Some(Self::decode(bytes));
            }
            let end = bytes.len() - 1;
            if begin == end && begin > 0 {
                return None;
            }
            let none = DecodeError::layout(begin, "a message behind its number of bytes, of several");
            let message = bytes.get(begin..begin + 2).filter(|_| begin + 2 <= end).ok_or(none).and_then(|len| {
                let from = begin + 2;
                let to = from + usize::from(u16::from_le_bytes([len[0], len[1]]));
                let message = if to <= end { Self::decode(&bytes.slice(from..to))? } else { return Err(none) };
                at = Some(to);
                Ok(message)
            });
            Some(message)
        })
    }

    /// Reads one message.
    ///
    /// # Errors
    /// For bytes that are none.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let none = DecodeError::layout(bytes.len(), "a message between gateways and leader: its kind, 2 to 10 or 12, at the end");
        let (&kind, body) = bytes.split_last().ok_or(none)?;
        let r = &mut Reader::new(body);
        let message = match kind {
            ORDER => {
                let (stamp, ordinal) = (stamp(r)?, ordinal(r)?);
                return Ok(Self::Order { stamp, ordinal, content: content(bytes, r)? });
            }
            BEHIND => {
                let (stamp, session) = (stamp(r)?, SessionId(r.u64()?));
                return Ok(Self::Behind { stamp, session, content: content(bytes, r)? });
            }
            OPEN => {
                let (open, logon_seq) = (OpenSession::get(r)?, r.u64()?);
                let usage = match r.u8()? {
                    0 => SessionUse::Alone,
                    1 => SessionUse::Shared,
                    2 => SessionUse::AloneOnce,
                    _ => return Err(r.expected("0 (alone), 1 (shared) or 2 (alone, by a logon that is good once)")),
                };
                Self::Open { open, logon_seq, usage }
            }
            WATERMARK => Self::Watermark { term: Term(r.u64()?), until: stamp(r)? },
            LEADING => Self::Leading { term: Term(r.u64()?) },
            REFUSED => Self::Refused { ordinal: ordinal(r)?, reason: Wire::get(r)? },
            NOT_OPENED => Self::NotOpened { open: OpenSession::get(r)?, reason: Wire::get(r)? },
            LATE => Self::Late { ordinal: ordinal(r)?, late_ns: r.u64()? },
            REPLACED => Self::Replaced { session: SessionId(r.u64()?), logon_seq: r.u64()? },
            OPENED => Self::Opened {
                open: OpenSession::get(r)?,
                logon_seq: r.u64()?,
                session: SessionId(r.u64()?),
                log_index: LogIndex(r.u64()?),
            },
            _ => return Err(none),
        };
        r.clone().finish()?;
        Ok(message)
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        self.encode_into(&mut bytes);
        bytes
    }

    fn encode_into(&self, bytes: &mut Vec<u8>) {
        let w = &mut Writer(bytes);
        let kind = match self {
            Self::Order { stamp, ordinal, content } => {
                put_stamp(*stamp, w);
                put_ordinal(*ordinal, w);
                w.0.extend_from_slice(content);
                ORDER
            }
            Self::Behind { stamp, session, content } => {
                put_stamp(*stamp, w);
                w.u64(session.0);
                w.0.extend_from_slice(content);
                BEHIND
            }
            Self::Open { open, logon_seq, usage } => {
                open.put(w);
                w.u64(*logon_seq);
                w.u8(match usage {
                    SessionUse::Alone => 0,
                    SessionUse::Shared => 1,
                    SessionUse::AloneOnce => 2,
                });
                OPEN
            }
            Self::Watermark { term, until } => {
                w.u64(term.0);
                put_stamp(*until, w);
                WATERMARK
            }
            Self::Leading { term } => {
                w.u64(term.0);
                LEADING
            }
            Self::Refused { ordinal, reason } => {
                put_ordinal(*ordinal, w);
                reason.put(w);
                REFUSED
            }
            Self::NotOpened { open, reason } => {
                open.put(w);
                reason.put(w);
                NOT_OPENED
            }
            Self::Late { ordinal, late_ns } => {
                put_ordinal(*ordinal, w);
                w.u64(*late_ns);
                LATE
            }
            Self::Replaced { session, logon_seq } => {
                w.u64(session.0);
                w.u64(*logon_seq);
                REPLACED
            }
            Self::Opened { open, logon_seq, session, log_index } => {
                open.put(w);
                w.u64(*logon_seq);
                w.u64(session.0);
                w.u64(log_index.0);
                OPENED
            }
        };
        w.u8(kind);
    }
}

fn stamp(r: &mut Reader<'_>) -> Result<Stamp, DecodeError> {
    match r.u8()? {
        0 => Ok(Stamp::OnArrival),
        1 => Ok(Stamp::Gateway(r.u64()?)),
        _ => Err(r.expected("a stamp: 0 (none), or 1 and a time")),
    }
}

fn put_stamp(stamp: Stamp, w: &mut Writer<'_>) {
    match stamp {
        Stamp::OnArrival => w.u8(0),
        Stamp::Gateway(time_ns) => {
            w.u8(1);
            w.u64(time_ns);
        }
    }
}

fn ordinal(r: &mut Reader<'_>) -> Result<Ordinal, DecodeError> {
    let (session, session_seq) = (SessionId(r.u64()?), SessionSeq(r.u64()?));
    r.checked((session_seq.0 > 0).then_some(Ordinal { session, session_seq }), "a session_seq from 1 on")
}

fn put_ordinal(ordinal: Ordinal, w: &mut Writer<'_>) {
    w.u64(ordinal.session.0);
    w.u64(ordinal.session_seq.0);
}

/// What follows, without the kind.
fn content(bytes: &Bytes, r: &Reader<'_>) -> Result<Bytes, DecodeError> {
    let content = bytes.slice(r.position()..bytes.len() - 1);
    let is_sound = (1..=MESSAGE_BYTES_MAX).contains(&content.len());
    r.checked(is_sound.then_some(content), "a command of 1 to 256 bytes from here on")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::AccountId;

    use super::*;

    fn messages() -> Vec<GatewayMessage> {
        let ordinal = Ordinal { session: SessionId(7), session_seq: SessionSeq(9) };
        let open = OpenSession { account: Some(AccountId(3)), token: 5 };
        let content = Bytes::from_static(&[4, 2]);
        vec![
            GatewayMessage::Order { stamp: Stamp::Gateway(1 << 60), ordinal, content: content.clone() },
            GatewayMessage::Order { stamp: Stamp::OnArrival, ordinal, content: content.clone() },
            GatewayMessage::Behind { stamp: Stamp::Gateway(1), session: SessionId(7), content },
            GatewayMessage::Open { open, logon_seq: 11, usage: SessionUse::Shared },
            GatewayMessage::Open { open, logon_seq: 12, usage: SessionUse::AloneOnce },
            GatewayMessage::Open { open: OpenSession { account: None, token: 5 }, logon_seq: 11, usage: SessionUse::Alone },
            GatewayMessage::Watermark { term: Term(6), until: Stamp::Gateway(1 << 60) },
            GatewayMessage::Watermark { term: Term(6), until: Stamp::OnArrival },
            GatewayMessage::Leading { term: Term(6) },
            GatewayMessage::Refused { ordinal, reason: RejectReason::Overloaded },
            GatewayMessage::NotOpened { open, reason: RejectReason::TooManySessions },
            GatewayMessage::Late { ordinal, late_ns: 12 },
            GatewayMessage::Replaced { session: SessionId(7), logon_seq: 13 },
            GatewayMessage::Opened { open, logon_seq: 14, session: SessionId(7), log_index: LogIndex(15) },
        ]
    }

    #[test]
    fn what_is_said_is_understood_and_what_is_cut_is_not() {
        for message in messages() {
            let bytes = Bytes::from(message.encode());
            assert!(GatewayMessage::is_one(&bytes));
            assert_eq!(GatewayMessage::decode(&bytes), Ok(message.clone()));
            // An account begins with whether there is one, so that what is cut may be of another kind of account.
            let fixed = !matches!(
                message,
                GatewayMessage::Order { .. }
                    | GatewayMessage::Behind { .. }
                    | GatewayMessage::Open { .. }
                    | GatewayMessage::NotOpened { .. }
                    | GatewayMessage::Opened { .. }
            );
            for cut in 1..bytes.len() {
                // Without some of its first bytes; the kind stands last.
                let decoded = GatewayMessage::decode(&bytes.slice(cut..));
                assert!(decoded.as_ref() != Ok(&message) && (!fixed || decoded.is_err()), "{message:?} cut at {cut}: {decoded:?}");
            }
        }
        let long = GatewayMessage::Order {
            stamp: Stamp::OnArrival,
            ordinal: Ordinal { session: SessionId(1), session_seq: SessionSeq(1) },
            content: vec![1; MESSAGE_BYTES_MAX + 1].into(),
        };
        assert!(GatewayMessage::decode(&long.encode().into()).is_err());
    }

    fn unpacked(bytes: &Bytes) -> Result<Vec<GatewayMessage>, DecodeError> {
        GatewayMessage::all_of(bytes).collect()
    }

    #[test]
    fn a_pack_is_its_messages_and_a_cut_one_ends_with_an_error() {
        let mut pack = Pack::default();
        assert_eq!(pack.take(), None);
        for message in messages() {
            assert_eq!(pack.push(&message), None);
            assert_eq!(pack.take(), Some(message.encode()), "one goes as it is");
        }
        assert!(messages().iter().all(|message| pack.push(message).is_none()));
        let bytes = Bytes::from(pack.take().unwrap());
        assert!(GatewayMessage::is_one(&bytes));
        assert_eq!(unpacked(&bytes), Ok(messages()));
        assert!(GatewayMessage::decode(&bytes).is_err(), "it is not one message");
        for cut in 1..bytes.len() {
            // Behind some of its first messages the rest is a pack, of fewer.
            let left = unpacked(&bytes.slice(cut..));
            assert!(left.is_err() || left.is_ok_and(|left| left.len() < messages().len()), "cut at {cut}");
            let mut short = bytes[..cut].to_vec();
            short.push(PACK);
            let kept = unpacked(&short.into());
            assert!(kept.is_err() || kept.is_ok_and(|kept| messages().starts_with(&kept)), "cut at {cut}");
        }
        // One of several that is none: those before it count.
        let sound = messages().remove(4);
        let mut bytes = (u16::try_from(sound.encode().len()).unwrap()).to_le_bytes().to_vec();
        bytes.extend(sound.encode());
        bytes.extend([1, 0, PACK, PACK]);
        let bytes = bytes.into();
        let read: Vec<_> = GatewayMessage::all_of(&bytes).collect();
        assert!(matches!(&read[..], [Ok(first), Err(_)] if *first == sound), "{read:?}");
    }

    #[test]
    fn a_full_pack_leaves() {
        let (mut pack, mut sent, message) = (Pack::default(), Vec::new(), messages().remove(0));
        for _ in 0..2_000 {
            sent.extend(pack.push(&message));
        }
        sent.extend(pack.take());
        assert!(sent.len() > 1 && sent.iter().all(|bytes| bytes.len() <= PACK_BYTES + MESSAGE_BYTES_MAX));
        let read: usize = sent.into_iter().map(|bytes| unpacked(&bytes.into()).unwrap().len()).sum();
        assert_eq!(read, 2_000);
    }

    proptest! {
        #[test]
        fn nothing_that_comes_panics_and_each_message_has_one_encoding(bytes in prop::collection::vec(0_u8..13, 0..60)) {
            let bytes = Bytes::from(bytes);
            if let Ok(message) = GatewayMessage::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes.to_vec());
            }
            // It ends.
            let read = GatewayMessage::all_of(&bytes).count();
            prop_assert!(read <= bytes.len().max(1));
        }
    }
}
