//! A reader of one channel: from packets to a copy of the market, whatever was lost, doubled or reordered on the way. One that begins
//! late, or missed more than anybody has, goes on from a snapshot.

use walras_relay::packet::Packet;
use walras_relay::reader::{Message as Numbered, Reader, ReaderCounts, ReaderSettings, Request};

use crate::book::{Book, BookError};
use crate::channel::{ChannelId, Trees};
use crate::message::{DecodeError, Head, Message};

/// Why a copy had to be given up: its sender errs, or runs another version. A snapshot follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Bytes that are no message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message that does not follow from those before it.
    #[error(transparent)]
    Book(#[from] BookError),
}

/// A snapshot of which the first messages came.
#[derive(Debug)]
struct Building {
    book: Book,
    next: u64,
    /// Messages before the one that ends it.
    left: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct MarketReader {
    channel: ChannelId,
    /// The channel of its snapshots.
    snapshot_channel: ChannelId,
    settings: ReaderSettings,
    messages: Reader,
    snapshots: Reader,
    building: Option<Building>,
    book: Book,
    error: Option<ReadError>,
}

impl MarketReader {
    /// One that begins with a snapshot.
    #[must_use]
    pub fn joining(channel: ChannelId, settings: ReaderSettings) -> Self {
        Self::over(channel, settings, Reader::joining(channel.get(), settings))
    }

    /// One that begins with the channel's first message.
    #[must_use]
    pub fn from_the_start(channel: ChannelId, settings: ReaderSettings) -> Self {
        Self::over(channel, settings, Reader::new(channel.get(), 1, settings))
    }

    fn over(channel: ChannelId, settings: ReaderSettings, messages: Reader) -> Self {
        let snapshot_channel = channel.snapshots_of(Trees::ONE);
        let (snapshots, book) = (snapshot_reader(snapshot_channel, settings), Book::new(channel));
        Self { channel, snapshot_channel, settings, messages, snapshots, building: None, book, error: None }
    }

    /// The same, of a venue that has so many parallel trees: the reader is a receiver of the channel's tree.
    #[must_use]
    pub fn of_trees(mut self, trees: Trees) -> Self {
        self.snapshot_channel = self.channel.snapshots_of(trees);
        self.await_next_snapshot();
        self
    }

    /// The channel.
    #[must_use]
    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The market, as far as the messages go; `None` while it waits for a snapshot.
    #[must_use]
    pub fn book(&self) -> Option<&Book> {
        (!self.messages.needs_snapshot()).then_some(&self.book)
    }

    /// Number of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.messages.next()
    }

    /// Messages that are held behind gaps, and places of missing ones among them, of the channel and of snapshots.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.messages.held_count().max(self.snapshots.held_count())
    }

    /// What came of the channel, without snapshots.
    #[must_use]
    pub fn counts(&self) -> ReaderCounts {
        self.messages.counts()
    }

    /// Why it had to give its copy up last.
    #[must_use]
    pub fn error(&self) -> Option<ReadError> {
        self.error
    }

    /// A packet arrives, of this channel or of the snapshots in its view; others change nothing. `seen` gets the messages that the
    /// copy took, in order.
    pub fn packet(&mut self, now_ns: u64, packet: &Packet<'_>, mut seen: impl FnMut(&Head, &Message)) {
        let number = packet.header().channel;
        if number == self.channel.get() {
            let Self { messages, book, .. } = self;
            let mut taken = Taken { book, error: None };
            messages.packet(now_ns, packet, |message| taken.take(&message, &mut seen));
            let error = taken.error;
            self.give_up(error);
        } else if number == self.snapshot_channel.get() && self.messages.needs_snapshot() {
            self.snapshot_packet(now_ns, packet, &mut seen);
        }
    }

    /// What to ask a rewinder now, if anything.
    pub fn request(&mut self, now_ns: u64) -> Option<Request> {
        let request = self.messages.request(now_ns);
        request.or_else(|| self.building.as_ref().and_then(|_| self.snapshots.request(now_ns)))
    }

    /// When [`MarketReader::request`] may have something to ask.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        let snapshots = self.building.as_ref().and_then(|_| self.snapshots.wake_ns());
        [self.messages.wake_ns(), snapshots].into_iter().flatten().min()
    }

    /// A rewinder has nothing before this number of the channel of a request.
    pub fn gone_before(&mut self, channel: u32, number: u64) {
        if channel == self.channel.get() {
            self.messages.gone_before(number);
        } else {
            self.await_next_snapshot();
        }
    }

    /// Goes on from the next snapshot: for a host without a rewinder, after a gap.
    pub fn await_snapshot(&mut self) {
        self.messages.gone_before(u64::MAX);
    }

    fn snapshot_packet(&mut self, now_ns: u64, packet: &Packet<'_>, seen: &mut impl FnMut(&Head, &Message)) {
        let mut done = None;
        let Self { channel, snapshots, building, .. } = self;
        let mut error = None;
        let mut take = |message: Numbered<'_>| match Message::decode(message.bytes) {
            Ok((head, message)) => {
                if done.is_none() {
                    done = build(*channel, building, &head, &message, &mut error);
                }
            }
            Err(decode) => (*building, error) = (None, Some(decode.into())),
        };
        snapshots.packet(now_ns, packet, &mut take);
        if snapshots.needs_snapshot() {
            // It begins with whatever came first.
            let next = snapshots.next();
            snapshots.join(now_ns, next, take);
        }
        self.error = error.or(self.error);
        // One that is older than the copy was would take it back to what was handed out before.
        let done = done.filter(|building| self.messages.wants(building.next));
        if let Some(Building { book, next, .. }) = done {
            self.await_next_snapshot();
            self.book = book;
            let Self { messages, book, .. } = self;
            let mut taken = Taken { book, error: None };
            messages.join(now_ns, next, |message| taken.take(&message, seen));
            let error = taken.error;
            self.give_up(error);
        } else if self.building.is_none() && self.snapshots.wake_ns().is_some() {
            // What is missing belongs to a snapshot that is not needed.
            self.await_next_snapshot();
        }
    }

    fn await_next_snapshot(&mut self) {
        (self.building, self.snapshots) = (None, snapshot_reader(self.snapshot_channel, self.settings));
    }

    fn give_up(&mut self, error: Option<ReadError>) {
        if error.is_some() {
            self.error = error;
            self.await_snapshot();
        }
    }
}

fn snapshot_reader(snapshot_channel: ChannelId, settings: ReaderSettings) -> Reader {
    Reader::joining(snapshot_channel.get(), settings)
}

/// A snapshot's next message, or that of another channel's snapshot. The snapshot, once it is whole.
fn build(
    channel: ChannelId,
    building: &mut Option<Building>,
    head: &Head,
    message: &Message,
    error: &mut Option<ReadError>,
) -> Option<Building> {
    match (message, building.as_mut()) {
        (Message::SnapshotBegan(began), _) => {
            let is_ours = began.channel == channel.get();
            *building = is_ours.then(|| Building { book: Book::new(channel), next: began.next, left: began.messages });
        }
        (_, None) => {}
        (Message::SnapshotEnded(ended), Some(whole)) => {
            let is_whole = (ended.channel, ended.next, whole.left) == (channel.get(), whole.next, 0);
            let mut whole = building.take()?;
            if is_whole {
                whole.book.ends_with(head);
                return Some(whole);
            }
        }
        (_, Some(part)) => match (part.left.checked_sub(1), part.book.apply(head, message)) {
            (Some(left), Ok(())) => part.left = left,
            (_, applied) => {
                *error = applied.err().map(ReadError::from).or(*error);
                *building = None;
            }
        },
    }
    None
}

/// A copy that takes messages up to the first that is wrong.
struct Taken<'t> {
    book: &'t mut Book,
    error: Option<ReadError>,
}

impl Taken<'_> {
    fn take(&mut self, message: &Numbered<'_>, seen: &mut impl FnMut(&Head, &Message)) {
        if self.error.is_some() {
            return;
        }
        match Message::decode(message.bytes) {
            Ok((head, message)) => match self.book.apply(&head, &message) {
                Ok(()) => seen(&head, &message),
                Err(error) => self.error = Some(error.into()),
            },
            Err(error) => self.error = Some(error.into()),
        }
    }
}
