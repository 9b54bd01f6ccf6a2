//! A gateway's hold: market data waits until its release time t_M + d_h.
//!
//! A publication that comes after its release time leaves at once and is counted unfair. A publication never leaves early: the hold
//! refuses it when it is full, or when the publication would wait longer than any delay allows. Readers then see a gap in their
//! feed's numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Bounds of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSettings {
    /// Publications held.
    pub held_max: usize,
    /// How long a publication may have to wait: the greatest d_h and both clocks' bounds.
    pub wait_max_ns: u64,
}

/// Whether a publication came in time.
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

/// Why a publication was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many are held as may be.
    #[error("the hold is full: raise held_max, or lower d_h")]
    Full,
    /// Its release time lies further ahead than any delay allows.
    #[error("the release time lies further ahead than wait_max_ns: look at both clocks, then at d_h")]
    TooFarAhead,
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

/// What came of all publications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldCounts {
    /// Taken.
    pub publications: u64,
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

/// Keeps each publication until its time. What has the same time leaves in the order in which it came.
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

    /// Takes a publication; [`Hold::release_due`] gives it out. O(log n).
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
        self.counts.publications += 1;
        self.counts.late += u64::from(late_ns > 0);
        self.counts.late_ns_max = self.counts.late_ns_max.max(late_ns);
        self.heap.push(Reverse(Held { key: (release_ns, self.arrivals), arrived_ns: now_ns, data }));
        self.arrivals += 1;
        Ok(if late_ns > 0 { Timeliness::Late { late_ns } } else { Timeliness::Early { margin_ns } })
    }

    /// When the next publication is to be released; `None` when none is held. It lies in the past when one came late.
    #[must_use]
    pub fn next_release_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| held.key.0)
    }

    /// One publication whose time has come. O(log n).
    pub fn release_due(&mut self, now_ns: u64) -> Option<Due<T>> {
        let top = self.heap.peek_mut()?;
        if top.0.key.0 > now_ns {
            return None;
        }
        let Reverse(Held { key: (release_ns, _), arrived_ns, data }) = PeekMut::pop(top);
        Some(Due { release_ns, arrived_ns, data })
    }

    /// Publications held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// What came of all publications.
    #[must_use]
    pub fn counts(&self) -> &HoldCounts {
        &self.counts
    }
}
