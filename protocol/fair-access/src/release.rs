//! A gateway's hold for market data: each publication waits until its release time t_M + d_h.
//!
//! A publication that arrives after its release time leaves at once and counts as unfair. No publication leaves early. If the hold
//! is full, or the release time is implausibly far ahead, the publication is refused, and readers see a gap in their feed's
//! numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Bounds of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSettings {
    /// Maximum number of held publications.
    pub held_max: usize,
    /// Longest plausible wait: the maximum d_h plus both clocks' bounds.
    pub wait_max_ns: u64,
}

/// Whether a publication arrived in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeliness {
    /// It arrived before its release time.
    Early {
        /// Time left until its release; may be 0.
        margin_ns: u64,
    },
    /// It arrived after its release time: unfair.
    Late {
        /// Time since its release time; at least 1.
        late_ns: u64,
    },
}

/// Why a publication was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The hold is full.
    #[error("the hold is full: raise held_max, or lower d_h")]
    Full,
    /// Its release time lies further ahead than any delay allows.
    #[error("the release time is further ahead than wait_max_ns: check both clocks, then d_h")]
    TooFarAhead,
}

/// A released publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due<T> {
    /// Its release time.
    pub release_ns: u64,
    /// When it arrived.
    pub arrived_ns: u64,
    /// The held data.
    pub data: T,
}

/// Counts of publications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldCounts {
    /// Publications accepted.
    pub publications: u64,
    /// Of these, those that arrived after their release time.
    pub late: u64,
    /// The longest time by which one was late.
    pub late_ns_max: u64,
    /// Refused because the hold was full.
    pub refused_full: u64,
    /// Refused because the release time was too far ahead.
    pub refused_far: u64,
}

#[derive(Debug)]
struct Held<T> {
    /// Release time, then number of arrival: a total order.
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

/// Holds each publication until its release time. Publications with equal release times leave in order of arrival.
#[derive(Debug)]
pub struct Hold<T> {
    settings: HoldSettings,
    heap: BinaryHeap<Reverse<Held<T>>>,
    arrivals: u64,
    counts: HoldCounts,
}

impl<T> Hold<T> {
    /// Creates an empty hold.
    #[must_use]
    pub fn new(settings: HoldSettings) -> Self {
        Self { settings, heap: BinaryHeap::new(), arrivals: 0, counts: HoldCounts::default() }
    }

    /// Adds a publication. O(log n).
    ///
    /// # Errors
    /// If the hold is full or the release time is too far ahead.
    pub fn push(&mut self, now_ns: u64, release_ns: u64, data: T) -> Result<Timeliness, Refused> {
        self.push_with(now_ns, release_ns, || data)
    }

    /// The same where the data is made for it: of what is refused none is.
    ///
    /// # Errors
    /// If the hold is full or the release time is too far ahead.
    pub fn push_with(&mut self, now_ns: u64, release_ns: u64, data: impl FnOnce() -> T) -> Result<Timeliness, Refused> {
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
        self.heap.push(Reverse(Held { key: (release_ns, self.arrivals), arrived_ns: now_ns, data: data() }));
        self.arrivals += 1;
        Ok(if late_ns > 0 { Timeliness::Late { late_ns } } else { Timeliness::Early { margin_ns } })
    }

    /// Release time of the next publication; `None` if none is held. It may lie in the past.
    #[must_use]
    pub fn next_release_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| held.key.0)
    }

    /// Releases one publication that is due. O(log n).
    pub fn release_due(&mut self, now_ns: u64) -> Option<Due<T>> {
        let top = self.heap.peek_mut()?;
        if top.0.key.0 > now_ns {
            return None;
        }
        let Reverse(Held { key: (release_ns, _), arrived_ns, data }) = PeekMut::pop(top);
        Some(Due { release_ns, arrived_ns, data })
    }

    /// Number of held publications.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Counts of publications.
    #[must_use]
    pub fn counts(&self) -> &HoldCounts {
        &self.counts
    }
}
