//! All of a publisher as bytes, so that a venue that starts again goes on with the same numbers. One encoding for each state.

use walras_types::LogIndex;
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Writer};

use crate::message::{Head, Message, Place};
use crate::publisher::batches::BatchMarket;
use crate::publisher::instrument::Instrument;
use crate::publisher::{Publisher, Views};

/// First bytes: the kind, then the version.
const MAGIC: [u8; 8] = *b"WLRSFD\0\x01";

/// Why bytes are no saved publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Another kind of bytes, or another version's.
    #[error("this is not the state of a feed of this version: let the venue publish from the beginning of its log")]
    NotAPublisher,
    /// It does not parse.
    #[error("the saved state of the feed is damaged ({0}): let the venue publish from the beginning of its log")]
    Damaged(DecodeError),
}

impl From<DecodeError> for RestoreError {
    fn from(error: DecodeError) -> Self {
        Self::Damaged(error)
    }
}

impl Publisher {
    /// Appends all of it to `out`, between two entries. What was not taken yet is not in it: readers ask for it in vain, and go on
    /// from a snapshot.
    pub fn save(&self, out: &mut Vec<u8>) {
        assert!(self.touched.is_empty(), "the entry has ended");
        out.extend_from_slice(&MAGIC);
        let w = &mut Writer(out);
        w.u8(self.views.0);
        put_head(w, &self.head);
        w.u32(self.instruments.len() as u32);
        self.instruments.iter().for_each(|instrument| instrument.save(w));
        w.u32(self.batches.len() as u32);
        self.batches.iter().for_each(|market| market.save(w));
    }

    /// What [`Publisher::save`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        let r = &mut Reader::new(bytes.strip_prefix(&MAGIC).ok_or(RestoreError::NotAPublisher)?);
        let views = Views(r.u8()?);
        let views = r.checked((views.0 <= Views::ALL.0).then_some(views), "a set of views")?;
        let mut publisher = Self::new(views);
        publisher.head = get_head(r)?;
        for number in 0..r.u32()? {
            publisher.instruments.push(Instrument::restore(r, views, number)?);
        }
        for number in 0..r.u32()? {
            publisher.batches.push(BatchMarket::restore(r, views, number)?);
        }
        r.clone().finish()?;
        Ok(publisher)
    }

    /// Whether it can take the entry after this one: it has seen all before.
    #[must_use]
    pub fn is_at(&self, log_index: LogIndex) -> bool {
        self.log_index() == log_index
    }
}

pub(super) fn put_head(w: &mut Writer<'_>, head: &Head) {
    w.u64(head.log_index);
    w.u64(head.time_ns);
}

pub(super) fn get_head(r: &mut Reader<'_>) -> Result<Head, DecodeError> {
    Ok(Head { place: Place::Inner, log_index: r.u64()?, time_ns: r.u64()? })
}

const HEAD: Head = Head { place: Place::Inner, log_index: 0, time_ns: 0 };

pub(super) fn put_message(w: &mut Writer<'_>, message: Message) {
    let at = w.0.len();
    w.u16(0);
    message.encode(&HEAD, w.0);
    let length = (w.0.len() - at - 2) as u16;
    w.0[at..at + 2].copy_from_slice(&length.to_le_bytes());
}

/// A message of this kind.
pub(super) fn get_message<T>(
    r: &mut Reader<'_>,
    expected: &'static str,
    is_it: impl FnOnce(Message) -> Option<T>,
) -> Result<T, DecodeError> {
    let length = r.u16()?;
    let bytes = r.slice(length.into(), expected)?;
    let message = Message::decode(bytes).ok().filter(|(head, _)| *head == HEAD).and_then(|(_, message)| is_it(message));
    r.checked(message, expected)
}
