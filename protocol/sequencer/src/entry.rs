//! What a log entry holds: the time it was stamped with, whose command it is in which session, then the command; or a proposed clearing
//! of a batch.
//!
//! ```text
//! time u64 | 0 u8 | command                                  a command outside of sessions
//! time u64 | 1 u8 | session u64 | session_seq u64 | command  all little-endian
//! time u64 | 2 u8 | clearing                                 see walras_wire::batch::encode_block_proposal
//! ```

use walras_engine::{Engine, Numbered, PriceIndex};
use walras_types::{LogIndex, Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::batch::{BlockProposal, UnwritableProposal, decode_block_proposal, encode_block_proposal};
use walras_wire::{Command, DecodeError, Event, decode_command, encode_command};

/// What an entry of the log asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A command.
    Command(Command),
    /// A proposed clearing: it may be as long as a market has pairs, so it is elsewhere in memory. Of no session, for it can be proposed
    /// again until one is accepted.
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

/// What is asked, with its place and time in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub log_index: LogIndex,
    /// When the sequencer took it.
    pub time: TimeNs,
    /// Which of a session's commands it is; `None` for one that nobody repeats.
    pub ordinal: Option<Ordinal>,
    /// What it asks.
    pub content: Content,
}

impl Entry {
    /// Applies it to the state that it follows, and appends what happened to `events`. For a session's command it says what it was to its
    /// session: done, repeated or refused.
    pub fn apply<I: PriceIndex>(&self, engine: &mut Engine<I>, events: &mut Vec<Event>) -> Option<Numbered> {
        let Self { log_index, time, ordinal, content } = self;
        match (content, ordinal) {
            (Content::Command(command), None) => engine.apply(*log_index, *time, command, events),
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
                encode_entry(self.time, self.ordinal, command, buffer);
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
        "an entry says {found} where 0 (a command), 1 (a session's command) or 2 (a clearing) stands; the log was not written by this \
         program: read it with the version that wrote it"
    )]
    Kind {
        /// What stands there.
        found: u8,
    },
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
    let ordinal = match flag {
        0 => None,
        1 => {
            let (session, after) = u64_at_head(rest).ok_or(short)?;
            let (session_seq, after) = u64_at_head(after).ok_or(short)?;
            rest = after;
            Some(Ordinal { session: SessionId(session), session_seq: SessionSeq(session_seq) })
        }
        2 => {
            let content = Content::from(decode_block_proposal(rest)?);
            return Ok(Entry { log_index, time: TimeNs(time), ordinal: None, content });
        }
        found => return Err(EntryError::Kind { found }),
    };
    Ok(Entry { log_index, time: TimeNs(time), ordinal, content: Content::Command(decode_command(rest)?) })
}

fn u64_at_head(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(head, rest)| (u64::from_le_bytes(*head), rest))
}
