//! Readers below the relay tree: each gets the messages of its channel in order, none twice, as the venue published them. Its copy
//! of the market is the venue's after the same message, whether it read from the start or joined. What it holds stays within its
//! bound.

use std::collections::BTreeMap;

use walras_feed::book::{Book, Content};
use walras_feed::channel::ChannelId;
use walras_feed::message::{Head, Message, TopChanged};
use walras_feed::reader::MarketReader;

use super::feed::Feed;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "readers";

/// What readers have, by their number and channel.
#[derive(Debug, Default)]
pub(super) struct Readers {
    copies: BTreeMap<(u64, ChannelId), Copy>,
    read: u64,
    joined: u64,
}

/// A copy made of the messages as they were published.
#[derive(Debug)]
struct Copy {
    book: Book,
    /// Number of the first message that is not in it.
    next: u64,
}

/// What a reader did with a packet.
pub(crate) struct Reading<'r> {
    /// Its number; a reader that starts again with nothing gets another one.
    pub(crate) number: u64,
    pub(crate) reader: &'r MarketReader,
    /// Whether it had no copy before the packet.
    pub(crate) was_waiting: bool,
    /// What it handed out, in order.
    pub(crate) seen: &'r [(Head, Message)],
    /// The most that it may hold.
    pub(crate) held_max: usize,
}

impl Readers {
    /// Messages that were handed out, and times that a reader went on from a snapshot.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.read, self.joined]
    }

    pub(super) fn on_read(&mut self, feed: &Feed, reading: &Reading<'_>) -> Checked {
        let Reading { number, reader, was_waiting, seen, held_max } = *reading;
        let channel = reader.channel();
        let says = |what: String| Err(Violation::new(CHECK, format!("reader {number} of {channel:?}: {what}")));
        if let Some(error) = reader.error() {
            return says(format!("gives its copy up: {error}"));
        }
        if reader.held_count() > held_max {
            return says(format!("holds {} messages, {held_max} at most", reader.held_count()));
        }
        let Some(book) = reader.book() else {
            return if seen.is_empty() { Ok(()) } else { says(format!("{} messages without a copy", seen.len())) };
        };
        let copy = self.copies.entry((number, channel)).or_insert_with(|| Copy { book: Book::new(channel), next: 1 });
        let (next, published) = (reader.next(), feed.messages(channel));
        let Some(first) = next.checked_sub(seen.len() as u64) else { return says("more messages than there are".into()) };
        if first < copy.next {
            return says(format!("message {first} again, after {}", copy.next - 1));
        }
        if first > copy.next && !was_waiting {
            return says(format!("message {first} after {}", copy.next - 1));
        }
        if next > published.len() as u64 + 1 {
            return says(format!("message {} of {}", next - 1, published.len()));
        }
        self.read += seen.len() as u64;
        self.joined += u64::from(was_waiting);
        for at in copy.next..next {
            let Ok((head, message)) = Message::decode(&published[at as usize - 1]) else { return says("no message".into()) };
            if at >= first && seen[(at - first) as usize] != (head, message) {
                return says(format!(
                    "message {at} is not the one that was published: {:?}, {message:?}",
                    seen[(at - first) as usize]
                ));
            }
            if let Err(error) = copy.book.apply(&head, &message) {
                return says(format!("message {at}: {error}"));
            }
        }
        copy.next = next;
        if copy.book.is_whole() && !is_same(&copy.book, book) {
            return says(format!("before message {next} its copy is {book:?}, the venue's {:?}", copy.book));
        }
        Ok(())
    }

    /// Whether a reader has all that was published.
    pub(super) fn has_all(feed: &Feed, reader: &MarketReader) -> bool {
        let count = feed.messages(reader.channel()).len() as u64;
        count == 0 || reader.next() == count + 1 && reader.book().is_some_and(Book::is_whole)
    }
}

/// Compares two copies, except the last trade and the last uncross, which a reader knows only since it joined.
fn is_same(a: &Book, b: &Book) -> bool {
    let [of_a, of_b] = [a, b].map(|book| {
        let market = book.market();
        (market.defined, market.phase, market.indicated)
    });
    let content = match (a.content(), b.content()) {
        (Content::Orders(a), Content::Orders(b)) => a.orders() == b.orders() && a.levels() == b.levels(),
        (Content::Levels(a), Content::Levels(b)) => a == b,
        // A snapshot says that there is nothing; one who was there from the beginning has heard nothing.
        (Content::Top(a), Content::Top(b)) => a.unwrap_or(TopChanged::NOTHING) == b.unwrap_or(TopChanged::NOTHING),
        (Content::Batches(a), Content::Batches(b)) => a == b,
        _ => false,
    };
    of_a == of_b && content
}

#[cfg(test)]
mod tests {
    use walras_consensus::{ReplicaId, Term};
    use walras_feed::channel::View;
    use walras_feed::message::{LevelChanged, Place};
    use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
    use walras_relay::reader::ReaderSettings;
    use walras_replica::{FeedPart, FeedPiece, FeedRun};
    use walras_types::{InstrumentId, LogIndex, PriceTicks, Side, SizeLots};

    use super::*;

    const SETTINGS: ReaderSettings = ReaderSettings { held_max: 4, gap_wait_ns: 0, retry_ns: 1, request_max: 8 };

    fn channel() -> ChannelId {
        ChannelId::instrument(View::Levels, InstrumentId(0))
    }

    fn message(number: u64) -> Vec<u8> {
        let shown = SizeLots::new(number);
        let changed = LevelChanged { side: Side::Buy, price: PriceTicks::MIN, shown, order_count: 1 };
        let mut message = Vec::new();
        Message::from(changed).encode(&Head { place: Place::Last, log_index: number, time_ns: 1 }, &mut message);
        message
    }

    fn feed(count: u64) -> Feed {
        let mut feed = Feed::default();
        for number in 1..=count {
            let message = message(number);
            let bytes = [&(message.len() as u16).to_le_bytes()[..], &message].concat();
            let runs = vec![FeedRun { channel: channel(), first: number, bytes }];
            let piece =
                FeedPiece { log_index: LogIndex(number), term: Term(1), release: None, held_ns: 0, part: FeedPart::Sends, runs };
            feed.on_piece(ReplicaId::new(1).unwrap(), &piece, None, None).unwrap();
        }
        feed
    }

    /// Gives a reader the message of this number, with the content of message `says`.
    fn give(reader: &mut MarketReader, number: u64, says: u64) -> Vec<(Head, Message)> {
        let (key, mut writer, mut bytes, mut seen) = (TreeKey::new([1; 32]), PacketWriter::default(), Vec::new(), Vec::new());
        assert!(writer.push(&message(says)));
        let header = Header {
            kind: Kind::Data,
            count: 1,
            channel: channel().get(),
            tree: 1,
            packet: number,
            first: number,
            sent_ns: 0,
            release_ns: 0,
        };
        writer.finish(&header, &key, &mut bytes);
        reader.packet(1, &Packet::decode(&bytes, &key).unwrap(), |head, message| seen.push((*head, *message)));
        seen
    }

    #[test]
    fn repeats_gaps_and_other_messages_are_found() {
        let (feed, mut readers) = (feed(4), Readers::default());
        let mut reader = MarketReader::from_the_start(channel(), SETTINGS);
        let judge = |readers: &mut Readers, reader: &MarketReader, seen: &[_], was_waiting| {
            let judged = readers.on_read(&feed, &Reading { number: 1, reader, was_waiting, seen, held_max: 4 });
            judged.err().map_or_else(String::new, |violation| violation.detail)
        };
        for number in 1..=2 {
            let seen = give(&mut reader, number, number);
            assert_eq!(judge(&mut readers, &reader, &seen, false), "");
        }
        assert_eq!((readers.counts(), Readers::has_all(&feed, &reader)), ([2, 0], false));
        let mut behind = MarketReader::from_the_start(channel(), SETTINGS);
        let seen = give(&mut behind, 1, 1);
        assert!(judge(&mut readers, &behind, &seen, false).contains("message 1 again"));
        let seen = give(&mut reader, 3, 2);
        assert!(judge(&mut readers, &reader, &seen, false).contains("is not the one"));
        let seen = give(&mut reader, 4, 4);
        assert!(judge(&mut Readers::default(), &reader, &seen, false).contains("message 4 after 0"));
        assert!(Readers::has_all(&feed, &reader));
        let seen = give(&mut reader, 5, 5);
        assert!(judge(&mut Readers::default(), &reader, &seen, true).contains("message 5 of 4"));
    }
}
