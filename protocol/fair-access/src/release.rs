//! A gateway's hold: market data waits until its release time t_M + d_h, and is then given to all who subscribed.
//!
//! [`Hold`] keeps and counts; [`HoldRelease`] gives what leaves it to subscribers with queues of their own.
//!
//! A piece that comes after its release time is given out at once, and counted unfair. A piece never leaves early: what finds the hold
//! full, or would have to wait longer than any delay allows, is refused, and readers see the gap in their feed's numbers. Every subscriber
//! has a queue of its own; one that does not read loses what is in it, is told how much, and costs nobody else anything.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use walras_types::InstrumentId;

use crate::SubscriberId;

/// Bounds of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSettings {
    /// Pieces held.
    pub held_max: usize,
    /// How long a piece may have to wait: the greatest d_h and both clocks' bounds.
    pub wait_max_ns: u64,
}

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseSettings {
    /// Of what is held.
    pub hold: HoldSettings,
    /// Pieces in a subscriber's queue.
    pub queue_max: usize,
    /// Subscribers.
    pub subscribers_max: usize,
    /// Instruments of one subscriber.
    pub instruments_per_subscriber_max: usize,
}

/// Market data of one instrument. Copies of it are made: let `T` be cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<T> {
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// Its place in the feed.
    pub feed_seq: u64,
    /// When it may be known: t_M + d_h.
    pub release_ns: u64,
    /// What is held.
    pub data: T,
}

/// Whether a piece came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeliness {
    /// It came so long before its release time.
    Early {
        /// Nanoseconds, 0 at the very moment.
        margin_ns: u64,
    },
    /// So long after: unfair.
    Late {
        /// Nanoseconds, from 1.
        late_ns: u64,
    },
}

/// Why a piece was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many are held as may be.
    #[error("the hold is full: raise held_max, or lower d_h")]
    Full,
    /// Its release time lies further ahead than any delay allows.
    #[error("the release time lies further ahead than wait_max_ns: look at both clocks, then at d_h")]
    TooFarAhead,
}

/// Why somebody could not subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// Too many subscribers.
    #[error("as many subscribers are connected as may be: use another gateway, or raise subscribers_max")]
    Subscribers,
    /// Too many instruments.
    #[error("the subscriber has as many instruments as it may: unsubscribe from some")]
    Instruments,
}

/// What a subscriber reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery<T> {
    /// A piece, and when it was released.
    Piece {
        /// Of which instrument.
        instrument: InstrumentId,
        /// Its place in the feed.
        feed_seq: u64,
        /// What was held.
        data: T,
    },
    /// It did not read: so many pieces are lost to it, and it needs a snapshot.
    Missed {
        /// Pieces.
        count: u64,
    },
}

/// What a released piece was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// Its place in the feed.
    pub feed_seq: u64,
    /// When it should have been given out.
    pub release_ns: u64,
    /// When it came.
    pub arrived_ns: u64,
    /// To how many it was given.
    pub subscribers: u32,
}

/// What a hold gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due<T> {
    /// When it should be given out.
    pub release_ns: u64,
    /// When it came.
    pub arrived_ns: u64,
    /// What was held.
    pub data: T,
}

/// What came of all pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldCounts {
    /// Taken.
    pub pieces: u64,
    /// Of these, came after their release time.
    pub late: u64,
    /// The latest of them.
    pub late_ns_max: u64,
    /// Refused: the hold was full.
    pub refused_full: u64,
    /// Refused: too far ahead.
    pub refused_far: u64,
}

#[derive(Debug)]
struct Held<T> {
    /// Release time, then arrival's number: total.
    key: (u64, u64),
    arrived_ns: u64,
    data: T,
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Debug)]
struct Subscriber<T> {
    instruments: BTreeSet<InstrumentId>,
    queue: VecDeque<Delivery<T>>,
    missed: u64,
}

/// Keeps each piece until its time. What has the same time leaves in the order in which it came.
#[derive(Debug)]
pub struct Hold<T> {
    settings: HoldSettings,
    heap: BinaryHeap<Reverse<Held<T>>>,
    arrivals: u64,
    counts: HoldCounts,
}

impl<T> Hold<T> {
    /// Holds nothing.
    #[must_use]
    pub fn new(settings: HoldSettings) -> Self {
        Self { settings, heap: BinaryHeap::new(), arrivals: 0, counts: HoldCounts::default() }
    }

    /// Takes a piece; [`Hold::release_due`] gives it out. O(log n).
    ///
    /// # Errors
    /// When the hold is full, or the release time too far ahead.
    pub fn push(&mut self, now_ns: u64, release_ns: u64, data: T) -> Result<Timeliness, Refused> {
        if release_ns > now_ns.saturating_add(self.settings.wait_max_ns) {
            self.counts.refused_far += 1;
            return Err(Refused::TooFarAhead);
        }
        if self.heap.len() >= self.settings.held_max {
            self.counts.refused_full += 1;
            return Err(Refused::Full);
        }
        let late_ns = now_ns.saturating_sub(release_ns);
        let margin_ns = release_ns.saturating_sub(now_ns);
        self.counts.pieces += 1;
        self.counts.late += u64::from(late_ns > 0);
        self.counts.late_ns_max = self.counts.late_ns_max.max(late_ns);
        self.heap.push(Reverse(Held { key: (release_ns, self.arrivals), arrived_ns: now_ns, data }));
        self.arrivals += 1;
        Ok(if late_ns > 0 { Timeliness::Late { late_ns } } else { Timeliness::Early { margin_ns } })
    }

    /// When the next piece is to be released; `None` when none is held. It lies in the past when one came late.
    #[must_use]
    pub fn next_release_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| held.key.0)
    }

    /// One piece whose time has come. O(log n).
    pub fn release_due(&mut self, now_ns: u64) -> Option<Due<T>> {
        let top = self.heap.peek_mut()?;
        if top.0.key.0 > now_ns {
            return None;
        }
        let Reverse(Held { key: (release_ns, _), arrived_ns, data }) = PeekMut::pop(top);
        Some(Due { release_ns, arrived_ns, data })
    }

    /// Pieces held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// What came of all pieces.
    #[must_use]
    pub fn counts(&self) -> &HoldCounts {
        &self.counts
    }
}

/// A hold and its readers.
#[derive(Debug)]
pub struct HoldRelease<T> {
    settings: ReleaseSettings,
    hold: Hold<Piece<T>>,
    subscribers: BTreeMap<SubscriberId, Subscriber<T>>,
    readers: BTreeMap<InstrumentId, BTreeSet<SubscriberId>>,
    /// Pieces lost to subscribers that did not read.
    missed: u64,
}

impl<T: Clone> HoldRelease<T> {
    /// Holds nothing, for nobody.
    #[must_use]
    pub fn new(settings: ReleaseSettings) -> Self {
        let hold = Hold::new(settings.hold);
        Self { settings, hold, subscribers: BTreeMap::new(), readers: BTreeMap::new(), missed: 0 }
    }

    /// Gives a subscriber what is released of an instrument from now on. Again is the same.
    ///
    /// # Errors
    /// When a bound is reached.
    pub fn subscribe(&mut self, subscriber: SubscriberId, instrument: InstrumentId) -> Result<(), SubscribeError> {
        if self.settings.instruments_per_subscriber_max == 0 {
            return Err(SubscribeError::Instruments);
        }
        if !self.subscribers.contains_key(&subscriber) && self.subscribers.len() >= self.settings.subscribers_max {
            return Err(SubscribeError::Subscribers);
        }
        let entry = self.subscribers.entry(subscriber).or_insert_with(|| Subscriber {
            instruments: BTreeSet::new(),
            queue: VecDeque::new(),
            missed: 0,
        });
        if !entry.instruments.contains(&instrument) && entry.instruments.len() >= self.settings.instruments_per_subscriber_max {
            return Err(SubscribeError::Instruments);
        }
        entry.instruments.insert(instrument);
        self.readers.entry(instrument).or_default().insert(subscriber);
        Ok(())
    }

    /// Gives it no more of an instrument; what is in its queue stays.
    pub fn unsubscribe(&mut self, subscriber: SubscriberId, instrument: InstrumentId) {
        if let Some(entry) = self.subscribers.get_mut(&subscriber) {
            entry.instruments.remove(&instrument);
        }
        self.forget_reader(subscriber, instrument);
    }

    /// Forgets a subscriber and its queue.
    pub fn disconnect(&mut self, subscriber: SubscriberId) {
        let Some(gone) = self.subscribers.remove(&subscriber) else { return };
        for instrument in gone.instruments {
            self.forget_reader(subscriber, instrument);
        }
    }

    fn forget_reader(&mut self, subscriber: SubscriberId, instrument: InstrumentId) {
        if let Some(readers) = self.readers.get_mut(&instrument) {
            readers.remove(&subscriber);
            if readers.is_empty() {
                self.readers.remove(&instrument);
            }
        }
    }

    /// Takes a piece; [`HoldRelease::release_due`] gives it out. O(log n).
    ///
    /// # Errors
    /// When the hold is full, or the release time too far ahead.
    pub fn push(&mut self, now_ns: u64, piece: Piece<T>) -> Result<Timeliness, Refused> {
        self.hold.push(now_ns, piece.release_ns, piece)
    }

    /// Releases one piece whose time has come into the queues of its instrument's subscribers. O(log n + subscribers).
    pub fn release_due(&mut self, now_ns: u64) -> Option<Released> {
        let Due { arrived_ns, data: Piece { instrument, feed_seq, release_ns, data }, .. } = self.hold.release_due(now_ns)?;
        let mut given: u32 = 0;
        for subscriber in self.readers.get(&instrument).into_iter().flatten() {
            let Some(entry) = self.subscribers.get_mut(subscriber) else { continue };
            self.missed += entry.give(self.settings.queue_max, Delivery::Piece { instrument, feed_seq, data: data.clone() });
            given += 1;
        }
        Some(Released { instrument, feed_seq, release_ns, arrived_ns, subscribers: given })
    }

    /// The next in a subscriber's queue.
    pub fn take(&mut self, subscriber: SubscriberId) -> Option<Delivery<T>> {
        let entry = self.subscribers.get_mut(&subscriber)?;
        let missed = std::mem::take(&mut entry.missed);
        if missed > 0 { Some(Delivery::Missed { count: missed }) } else { entry.queue.pop_front() }
    }

    /// What is held.
    #[must_use]
    pub fn hold(&self) -> &Hold<Piece<T>> {
        &self.hold
    }

    /// Pieces lost to subscribers that did not read.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl<T> Subscriber<T> {
    /// Puts a piece into the queue; how many were lost for it. A full queue is emptied whole: after a gap its rest is worth nothing, and a
    /// reader that comes back meets the newest.
    fn give(&mut self, queue_max: usize, delivery: Delivery<T>) -> u64 {
        let lost = if self.queue.len() < queue_max { 0 } else { self.queue.len() as u64 };
        if lost > 0 {
            self.queue.clear();
            self.missed += lost;
        }
        if queue_max == 0 {
            self.missed += 1;
            return 1;
        }
        self.queue.push_back(delivery);
        lost
    }
}
