//! A receiver's end of one channel: messages in order, each once, whatever was lost, doubled or reordered.
//!
//! A reader that begins late, or that fell so far behind that nobody has what it missed, needs a snapshot: what it says is then in
//! what the snapshot says, up to a number, and [`Reader::join`] goes on from there with what was held meanwhile.

use std::collections::VecDeque;

use crate::packet::{Kind, Packet};

/// A message as a reader hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'m> {
    /// Its number in the channel.
    pub number: u64,
    /// When its packet was sent, in ns since the Unix epoch.
    pub sent_ns: u64,
    /// When it may be released, in ns since the Unix epoch.
    pub release_ns: u64,
    /// What it says.
    pub bytes: &'m [u8],
}

/// Messages that a reader misses, asked of a rewinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of this channel.
    pub channel: u32,
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u16,
}

/// A reader's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderSettings {
    /// Messages that are held behind a gap. Further ones are dropped, and asked for again later.
    pub held_max: usize,
    /// How long a gap may be no more than another order of arrival, in ns.
    pub gap_wait_ns: u64,
    /// When a request that brought nothing is repeated, in ns; then after twice as long, up to 64 times.
    pub retry_ns: u64,
    /// Messages in one request.
    pub request_max: u16,
}

/// What a reader has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounts {
    /// Messages that were handed out.
    pub read: u64,
    /// Messages that were there before.
    pub copies: u64,
    /// Messages for which there was no room behind a gap.
    pub dropped: u64,
    /// Requests.
    pub asked: u64,
}

#[derive(Debug)]
struct Held {
    sent_ns: u64,
    release_ns: u64,
    bytes: Box<[u8]>,
}

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Messages are handed out as they come.
    Joined,
    /// Messages are held until a snapshot says from which number on they count.
    Waiting,
}

/// One reader of one channel.
#[derive(Debug)]
pub struct Reader {
    channel: u32,
    settings: ReaderSettings,
    state: State,
    /// Joined: number of the next message. Waiting: of the first one held.
    next: u64,
    /// Number of the message after the last that was handed out, or that a snapshot had.
    after: u64,
    /// The next number of the channel, as far as anything that arrived says.
    known: u64,
    /// From `next` on; `None` is missing.
    held: VecDeque<Option<Held>>,
    ask_at_ns: u64,
    retry_ns: u64,
    has_ended: bool,
    counts: ReaderCounts,
}

impl Reader {
    /// A reader that has all before `next`, 1 for the beginning of the channel.
    #[must_use]
    pub const fn new(channel: u32, next: u64, settings: ReaderSettings) -> Self {
        let counts = ReaderCounts { read: 0, copies: 0, dropped: 0, asked: 0 };
        Self {
            channel,
            settings,
            state: State::Joined,
            next,
            after: next,
            known: next,
            held: VecDeque::new(),
            ask_at_ns: 0,
            retry_ns: settings.retry_ns,
            has_ended: false,
            counts,
        }
    }

    /// A reader that begins in the middle, with a snapshot.
    #[must_use]
    pub const fn joining(channel: u32, settings: ReaderSettings) -> Self {
        let mut reader = Self::new(channel, 1, settings);
        reader.state = State::Waiting;
        reader
    }

    /// Number of the next message to be handed out.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether a snapshot that has all messages before this number is of use: one that is older than what was handed out is not.
    #[must_use]
    pub const fn wants(&self, next: u64) -> bool {
        matches!(self.state, State::Waiting) && next >= self.after || next > self.next
    }

    /// Messages, and places of missing ones before them, that are held: never more than the settings allow.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// What it has seen.
    #[must_use]
    pub const fn counts(&self) -> ReaderCounts {
        self.counts
    }

    /// Whether only a snapshot helps.
    #[must_use]
    pub fn needs_snapshot(&self) -> bool {
        self.state == State::Waiting
    }

    /// Whether the channel has ended and all of it was handed out.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended && self.state == State::Joined && self.next >= self.known
    }

    /// A packet arrives. `read` gets the messages that are next, in order.
    pub fn packet(&mut self, now_ns: u64, packet: &Packet<'_>, mut read: impl FnMut(Message<'_>)) {
        let header = *packet.header();
        if header.channel != self.channel {
            return;
        }
        self.has_ended |= header.kind == Kind::End;
        if self.state == State::Waiting && self.held.is_empty() {
            self.next = self.next.max(header.first);
        }
        if header.count > 0 && header.next() <= self.next {
            self.counts.copies += u64::from(header.count);
            return;
        }
        let before = self.next;
        self.known = self.known.max(header.next());
        for (number, bytes) in packet.messages() {
            let message = Message { number, sent_ns: header.sent_ns, release_ns: header.release_ns, bytes };
            if number < self.next {
                self.counts.copies += 1;
            } else if self.state == State::Joined && number == self.next {
                self.hand_out(&message, &mut read);
            } else {
                self.hold(&message);
            }
        }
        self.hand_out_held(&mut read);
        self.look_at_gap(now_ns, before);
    }

    /// What to ask a rewinder now, if anything.
    pub fn request(&mut self, now_ns: u64) -> Option<Request> {
        if self.wake_ns().is_none_or(|at_ns| now_ns < at_ns) {
            return None;
        }
        self.ask_at_ns = now_ns.saturating_add(self.retry_ns);
        self.retry_ns = self.retry_ns.saturating_mul(2).min(self.settings.retry_ns.saturating_mul(64));
        self.counts.asked += 1;
        let missing = self.held.iter().position(Option::is_some).map_or(self.known - self.next, |held| held as u64);
        let count = missing.min(self.settings.request_max.into()) as u16;
        Some(Request { channel: self.channel, first: self.next, count })
    }

    /// When [`Reader::request`] may have something to ask.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        (self.state == State::Joined && self.next < self.known).then_some(self.ask_at_ns)
    }

    /// A rewinder has nothing before this number. If the reader misses some of that, it needs a snapshot.
    pub fn gone_before(&mut self, number: u64) {
        if number > self.next {
            self.state = State::Waiting;
        }
    }

    /// A snapshot has what was said in all messages before `next`. One that is older than what was handed out changes nothing.
    /// `read` gets what was held and is next.
    pub fn join(&mut self, now_ns: u64, next: u64, mut read: impl FnMut(Message<'_>)) {
        if !self.wants(next) {
            return;
        }
        if next >= self.next {
            let gone = (next - self.next).min(self.held.len() as u64) as usize;
            self.held.drain(..gone);
        } else if self.next - next + self.held.len() as u64 <= self.settings.held_max as u64 {
            (next..self.next).for_each(|_| self.held.push_front(None));
        } else {
            self.counts.dropped += self.held.iter().flatten().count() as u64;
            self.held.clear();
        }
        (self.state, self.next, self.after, self.known) = (State::Joined, next, next, self.known.max(next));
        self.hand_out_held(&mut read);
        self.retry_ns = self.settings.retry_ns;
        self.ask_at_ns = now_ns.saturating_add(self.settings.gap_wait_ns);
    }

    fn hand_out(&mut self, message: &Message<'_>, read: &mut impl FnMut(Message<'_>)) {
        read(*message);
        self.counts.read += 1;
        self.next += 1;
        self.after = self.next;
        self.held.pop_front();
    }

    fn hand_out_held(&mut self, read: &mut impl FnMut(Message<'_>)) {
        while self.state == State::Joined
            && let Some(held) = self.held.front_mut().and_then(Option::take)
        {
            let Held { sent_ns, release_ns, bytes } = held;
            self.hand_out(&Message { number: self.next, sent_ns, release_ns, bytes: &bytes }, read);
        }
    }

    fn hold(&mut self, message: &Message<'_>) {
        let Message { sent_ns, release_ns, bytes, .. } = *message;
        let ahead = message.number - self.next;
        if self.state == State::Waiting && ahead >= self.settings.held_max as u64 {
            // The snapshot that comes will have what is oldest.
            let over = (ahead - self.settings.held_max as u64 + 1).min(self.held.len() as u64);
            self.counts.dropped += self.held.drain(..over as usize).flatten().count() as u64;
            self.next = if self.held.is_empty() { message.number } else { self.next + over };
        }
        let at = usize::try_from(message.number - self.next).unwrap_or(usize::MAX);
        if at >= self.settings.held_max {
            self.counts.dropped += 1;
            return;
        }
        if self.held.len() <= at {
            self.held.resize_with(at + 1, || None);
        }
        if self.held[at].is_some() {
            self.counts.copies += 1;
        } else {
            self.held[at] = Some(Held { sent_ns, release_ns, bytes: bytes.into() });
        }
    }

    /// A gap that is new is given the time of another order of arrival.
    fn look_at_gap(&mut self, now_ns: u64, before: u64) {
        if self.next >= self.known {
            self.ask_at_ns = 0;
        } else if self.ask_at_ns == 0 || self.next > before {
            self.ask_at_ns = now_ns.saturating_add(self.settings.gap_wait_ns).max(1);
            self.retry_ns = self.settings.retry_ns;
        }
    }
}
