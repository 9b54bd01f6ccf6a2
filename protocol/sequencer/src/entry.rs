//! What a log entry holds: the time it was stamped with, whose command it is in which session, then the command; or a proposed
//! clearing of a batch.
//!
//! ```text
//! time u64 | 0 u8 | command                                  a command outside of sessions
//! time u64 | 1 u8 | session u64 | session_seq u64 | command  all little-endian
//! time u64 | 2 u8 | clearing                                 see walras_wire::batch::encode_block_proposal
//! time u64 | 3 u8 | len u8 | key id | command                an operator's command, and which API key gave it
//! time u64 | 4 u8 | nonce | command                          a signed command that has no number
//! time u64 | 5 u8 | nonce | len u8 | key id | command        the same of an operator
//!
//! nonce: key tag u64 | fingerprint 16 bytes | until u64
//! ```
//!
//! The key id is for those who read the log: no state depends on it. The nonce makes a copy of the command have no effect.

use walras_engine::{Engine, Numbered, PriceIndex};
use walras_types::{KeyTag, LogIndex, NonceFingerprint, NonceUse, Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::batch::{BlockProposal, UnwritableProposal, decode_block_proposal, encode_block_proposal};
use walras_wire::{Command, DecodeError, Event, decode_command, encode_command};

/// What an entry of the log asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A command.
    Command(Command),
    /// A proposed clearing: it may be as long as a market has pairs, so it is elsewhere in memory. Of no session, for it can be
    /// proposed again until one is accepted.
    Clearing(Box<BlockProposal>),
}

impl Content {
    /// The command, if it is one.
    #[must_use]
    pub const fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            Self::Clearing(_) => None,
        }
    }
}

impl From<Command> for Content {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<BlockProposal> for Content {
    fn from(block: BlockProposal) -> Self {
        Self::Clearing(Box::new(block))
    }
}

/// An entry whose index or time does not follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "log entry {found} does not follow {last}: the log and the snapshot do not belong together, or entries are missing; \
     restore both from the same backup"
)]
pub struct LogGap {
    /// Last entry applied.
    pub last: LogIndex,
    /// The one that came.
    pub found: LogIndex,
}

/// The id of an API key: 1 to 32 visible ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyName {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl KeyName {
    /// Longest id.
    pub const BYTES_MAX: usize = 32;

    /// `None` for what is no id.
    #[must_use]
    pub fn new(id: &str) -> Option<Self> {
        Self::of_bytes(id.as_bytes())
    }

    fn of_bytes(id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok().filter(|len| *len > 0)?;
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        id.iter().all(u8::is_ascii_graphic).then_some(Self { bytes, len })
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("its bytes are ASCII")
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a command was signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedBy {
    /// The operator's API key that gave it; `None` for what participants and the venue itself ask.
    pub key: Option<KeyName>,
    /// The nonce of its signature; `None` for what nobody signed, and for what a number or its connection protects from replay.
    pub nonce: Option<Box<NonceUse>>,
}

impl SignedBy {
    /// By nobody: the venue itself asks, or a connection whose key was checked before.
    pub const NOBODY: Self = Self { key: None, nonce: None };

    /// For a further command of the same request: the first one has used the nonce.
    #[must_use]
    pub fn further(&self) -> Self {
        Self { key: self.key, nonce: None }
    }

    /// The same at a time by the clocks. Where the log's time is ahead of them, since a leader's clock was wrong, the command stays
    /// acceptable for as long by the clocks all the same.
    #[must_use]
    pub fn by_the_clocks(mut self, log: TimeNs, now: TimeNs) -> Self {
        if let Some(nonce) = &mut self.nonce {
            nonce.until = TimeNs(nonce.until.0.saturating_add(log.0.saturating_sub(now.0)));
        }
        self
    }
}

/// What is asked, with its place and time in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub log_index: LogIndex,
    /// When the sequencer took it.
    pub time: TimeNs,
    /// Which of a session's commands it is; `None` for one that nobody repeats.
    pub ordinal: Option<Ordinal>,
    /// The operator's API key that gave it; `None` for what participants and the venue itself ask.
    pub key: Option<KeyName>,
    /// The nonce with which it was signed; `None` for one that has an ordinal or was not signed by itself.
    pub nonce: Option<Box<NonceUse>>,
    /// What it asks.
    pub content: Content,
}

impl Entry {
    /// Applies it to the state that it follows, and appends what happened to `events`. For a session's command it says what it was
    /// to its session: done, repeated or refused. For another one it says so where the state refused it for its nonce.
    pub fn apply<I: PriceIndex>(&self, engine: &mut Engine<I>, events: &mut Vec<Event>) -> Option<Numbered> {
        let Self { log_index, time, ordinal, key: _, nonce, content } = self;
        match (content, ordinal) {
            (Content::Command(command), None) => match nonce {
                None => engine.apply(*log_index, *time, command, events),
                Some(nonce) => {
                    return engine.apply_signed(*log_index, *time, nonce, command, events).err().map(Numbered::Refused);
                }
            },
            (Content::Command(command), Some(ordinal)) => {
                return Some(engine.apply_numbered(*log_index, *time, *ordinal, command, events));
            }
            // `decode_entry` gives a clearing no ordinal.
            (Content::Clearing(block), _) => engine.apply_clearing(*log_index, *time, block, events),
        }
        None
    }
}

impl Entry {
    /// Appends its bytes, or leaves `buffer` as it is.
    ///
    /// # Errors
    /// As [`encode_clearing`]; none of a command, nor of what was read from a log.
    pub fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), UnwritableProposal> {
        match &self.content {
            Content::Command(command) => {
                match (self.key, &self.nonce) {
                    (None, None) => encode_entry(self.time, self.ordinal, command, buffer),
                    (key, nonce) => encode_signed(self.time, key, nonce.as_deref(), command, buffer),
                }
                Ok(())
            }
            Content::Clearing(block) => encode_clearing(self.time, block, buffer),
        }
    }
}

/// Bytes in the log that are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Shorter than what every entry begins with.
    #[error("an entry of {bytes} bytes is too short to hold a time and a command; the log was not written by this program")]
    Short {
        /// Its length.
        bytes: usize,
    },
    /// Of no kind that there is.
    #[error(
        "an entry says {found} where 0 (a command), 1 (a session's command), 2 (a clearing), 3 (an operator's command), 4 or 5 (a signed \
         command) stands; the log was not written by this program: read it with the version that wrote it"
    )]
    Kind {
        /// What stands there.
        found: u8,
    },
    /// What stands for a key's id is none.
    #[error("an entry names no API key where it says that one gave it; the log was not written by this program")]
    KeyName,
    /// The command or the clearing does not decode.
    #[error("the entry's content does not decode: {0}")]
    Content(#[from] DecodeError),
}

/// Appends the bytes of an entry. The log keeps the index itself.
pub fn encode_entry(time: TimeNs, ordinal: Option<Ordinal>, command: &Command, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&time.0.to_le_bytes());
    match ordinal {
        None => buffer.push(0),
        Some(Ordinal { session, session_seq }) => {
            buffer.push(1);
            buffer.extend_from_slice(&session.0.to_le_bytes());
            buffer.extend_from_slice(&session_seq.0.to_le_bytes());
        }
    }
    encode_command(command, buffer);
}

/// Appends the bytes of an entry whose command an operator's key gave, or which has the nonce of its signature.
pub fn encode_signed(time: TimeNs, key: Option<KeyName>, nonce: Option<&NonceUse>, command: &Command, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&time.0.to_le_bytes());
    buffer.push(match (key, nonce) {
        (None, None) => 0,
        (Some(_), None) => 3,
        (None, Some(_)) => 4,
        (Some(_), Some(_)) => 5,
    });
    if let Some(NonceUse { key, fingerprint, until }) = nonce {
        buffer.extend_from_slice(&key.0.to_le_bytes());
        buffer.extend_from_slice(&fingerprint.0);
        buffer.extend_from_slice(&until.0.to_le_bytes());
    }
    if let Some(key) = key {
        buffer.push(key.len);
        buffer.extend_from_slice(key.as_bytes());
    }
    encode_command(command, buffer);
}

/// Appends the bytes of an entry that holds a clearing, or leaves `buffer` as it is.
///
/// # Errors
/// As [`encode_block_proposal`].
pub fn encode_clearing(time: TimeNs, block: &BlockProposal, buffer: &mut Vec<u8>) -> Result<(), UnwritableProposal> {
    let before = buffer.len();
    buffer.extend_from_slice(&time.0.to_le_bytes());
    buffer.push(2);
    encode_block_proposal(block, buffer).inspect_err(|_| buffer.truncate(before))
}

/// Reads the entry that stands at `log_index`.
pub fn decode_entry(log_index: LogIndex, bytes: &[u8]) -> Result<Entry, EntryError> {
    let short = EntryError::Short { bytes: bytes.len() };
    let (time, rest) = u64_at_head(bytes).ok_or(short)?;
    let (&flag, mut rest) = rest.split_first().ok_or(short)?;
    let (mut ordinal, mut key, mut nonce) = (None, None, None);
    match flag {
        0 => {}
        1 => {
            let (session, after) = u64_at_head(rest).ok_or(short)?;
            let (session_seq, after) = u64_at_head(after).ok_or(short)?;
            rest = after;
            ordinal = Some(Ordinal { session: SessionId(session), session_seq: SessionSeq(session_seq) });
        }
        2 => {
            let content = Content::from(decode_block_proposal(rest)?);
            return Ok(Entry { log_index, time: TimeNs(time), ordinal, key, nonce, content });
        }
        3..=5 => {
            if flag >= 4 {
                nonce = Some(Box::new(nonce_at_head(&mut rest).ok_or(short)?));
            }
            if flag != 4 {
                key = Some(key_at_head(&mut rest).ok_or(short)?.ok_or(EntryError::KeyName)?);
            }
        }
        found => return Err(EntryError::Kind { found }),
    }
    let content = Content::Command(decode_command(rest)?);
    Ok(Entry { log_index, time: TimeNs(time), ordinal, key, nonce, content })
}

fn nonce_at_head(bytes: &mut &[u8]) -> Option<NonceUse> {
    let (key, rest) = u64_at_head(bytes)?;
    let (fingerprint, rest) = rest.split_first_chunk::<16>()?;
    let (until, rest) = u64_at_head(rest)?;
    *bytes = rest;
    Some(NonceUse { key: KeyTag(key), fingerprint: NonceFingerprint(*fingerprint), until: TimeNs(until) })
}

/// The id of a key, if it is one; `None` where the bytes end.
fn key_at_head(bytes: &mut &[u8]) -> Option<Option<KeyName>> {
    let (&len, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(usize::from(len))?;
    *bytes = rest;
    Some(KeyName::of_bytes(id))
}

fn u64_at_head(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(head, rest)| (u64::from_le_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use walras_types::AccountId;
    use walras_wire::AccountCommand;

    use super::*;

    #[test]
    fn a_signed_command_is_read_back_with_its_key_and_nonce() {
        let command = Command::Account(AccountCommand::Create(AccountId(3)));
        for id in ["a", "ed_operator-1", &"k".repeat(KeyName::BYTES_MAX)] {
            let key = KeyName::new(id).unwrap();
            let fingerprint = NonceFingerprint(*b"0123456789abcdef");
            let nonce = NonceUse { key: KeyTag(u64::MAX - 1), fingerprint, until: TimeNs(1 << 63) };
            for (key, nonce) in [(Some(key), None), (Some(key), Some(nonce)), (None, Some(nonce))] {
                let nonce = nonce.map(Box::new);
                let entry = Entry { log_index: LogIndex(4), time: TimeNs(5), ordinal: None, key, nonce, content: command.into() };
                let mut bytes = Vec::new();
                entry.encode(&mut bytes).unwrap();
                assert_eq!(decode_entry(LogIndex(4), &bytes), Ok(entry));
                // Cut anywhere it is none.
                assert!((0..bytes.len()).all(|len| decode_entry(LogIndex(4), &bytes[..len]).is_err()));
            }
            assert_eq!(key.as_str(), id);
        }
        assert!(["", &"k".repeat(KeyName::BYTES_MAX + 1), "two words", "\u{e9}"].iter().all(|id| KeyName::new(id).is_none()));
        let nameless = [&5_u64.to_le_bytes()[..], &[3, 1, b' ']].concat();
        assert_eq!(decode_entry(LogIndex(4), &nameless), Err(EntryError::KeyName));
    }
}
