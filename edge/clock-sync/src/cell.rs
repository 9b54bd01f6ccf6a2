//! The cell between the thread that feeds a clock and those that read it.
//!
//! It has two slots, written alternately. A reader reads the newer one and then checks that it has not become the older one. So a
//! reader never waits for a writer, and repeats only if two new segments were published while it read one.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use walras_fair_access::clock::{Clock, ClockReading, ClockSource, ClockStatus, Correction, HostReport, Segment, StampLimits};

use crate::LocalClock;
use crate::local::system_ns;
use crate::view::{ClockView, Details};

const WORDS: usize = 10;

/// Readings of a clock that another thread feeds. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Source {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    local: LocalClock,
    bound_max_ns: u64,
    kind: &'static str,
    /// Number of published segments. The newest is in the slot given by this number's lowest bit.
    published: AtomicU64,
    places: [[AtomicU64; WORDS]; 2],
    /// The latest time returned to any reader.
    latest_ns: AtomicU64,
    details: Mutex<Details>,
}

impl Source {
    /// The venue time with its bound, and whether it is good enough for stamps; no time while the status is unknown. Never blocks.
    #[must_use]
    pub fn reading(&self) -> (Option<ClockReading>, ClockStatus) {
        self.reading_at(self.shared.local.now_ns())
    }

    /// The same for a reading `local_ns` of the host's clock, to compare clocks.
    #[must_use]
    pub fn reading_at(&self, local_ns: u64) -> (Option<ClockReading>, ClockStatus) {
        let (segment, status) = self.shared.read();
        let Some(segment) = segment else { return (None, ClockStatus::Unknown) };
        let shown = segment.read(local_ns);
        let time_ns = self.shared.latest_ns.fetch_max(shown.time_ns, Ordering::Relaxed).max(shown.time_ns);
        // A clock that was set back stands still; its lead is added to the bound.
        let bound_ns = shown.bound_ns.saturating_add(time_ns - shown.time_ns);
        // The feeding thread decides when the clock is good again. That it is no longer good is decided here, at once.
        let is_wide = bound_ns > self.shared.bound_max_ns;
        let status = if is_wide && status == ClockStatus::Good { ClockStatus::Wide } else { status };
        (Some(ClockReading { time_ns, bound_ns }), status)
    }

    /// The time to stamp with: none unless the clock is good enough.
    #[must_use]
    pub fn stamp(&self) -> Option<ClockReading> {
        match self.reading() {
            (reading, ClockStatus::Good) => reading,
            (_, ClockStatus::Wide | ClockStatus::Unknown) => None,
        }
    }

    /// The widest bound that stamps.
    #[must_use]
    pub fn bound_max_ns(&self) -> u64 {
        self.shared.bound_max_ns
    }

    /// Details for the operator. Takes a lock.
    #[must_use]
    pub fn view(&self) -> ClockView {
        let details = self.shared.details.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (reading, status) = self.reading();
        ClockView {
            source: self.shared.kind,
            status,
            reading,
            bound_max_ns: self.shared.bound_max_ns,
            system_ahead_ns: reading.map(|reading| difference_ns(system_ns(), reading.time_ns)),
            trouble: details.trouble,
            mesh: details.mesh,
        }
    }
}

/// `a - b`, saturated to 64 bits.
pub(crate) fn difference_ns(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// Feeds a clock and publishes its segments.
#[derive(Debug)]
pub(crate) struct Publisher {
    clock: Clock,
    shared: Arc<Shared>,
}

impl Publisher {
    pub(crate) fn new(kind: &'static str, source: ClockSource, limits: StampLimits, bound_max_ns: u64, local: LocalClock) -> Self {
        let place = || std::array::from_fn(|_| AtomicU64::new(0));
        let shared = Shared {
            local,
            bound_max_ns,
            kind,
            published: AtomicU64::new(0),
            places: [place(), place()],
            latest_ns: AtomicU64::new(0),
            details: Mutex::default(),
        };
        Self { clock: Clock::new(source, limits), shared: Arc::new(shared) }
    }

    pub(crate) fn source(&self) -> Source {
        Source { shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn local(&self) -> &LocalClock {
        &self.shared.local
    }

    pub(crate) fn clock(&mut self) -> &mut ClockSource {
        self.clock.source_mut()
    }

    /// Passes a report to the host's clock. If the clock was set back since the last report, it starts again.
    pub(crate) fn report_host(&mut self, report: HostReport) -> Result<(), String> {
        let ClockSource::Host(host) = self.clock() else { return Ok(()) };
        host.on_report(report).map_err(|e| {
            host.on_lost();
            e.to_string()
        })
    }

    /// Publishes the clock's current segment. To be called after the clock was fed, and regularly, because this decides when it is
    /// good again.
    pub(crate) fn publish(&mut self) {
        let (_, status) = self.clock.read(self.shared.local.now_ns());
        self.shared.write(self.clock.segment(), status);
    }

    pub(crate) fn set_details(&self, change: impl FnOnce(&mut Details)) {
        change(&mut self.shared.details.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

const UNKNOWN: u64 = 0;
const WIDE: u64 = 1;
const GOOD: u64 = 2;

impl Shared {
    fn read(&self) -> (Option<Segment>, ClockStatus) {
        loop {
            let before = self.published.load(Ordering::Acquire);
            let place = &self.places[usize::from(before % 2 == 1)];
            let words: [u64; WORDS] = std::array::from_fn(|at| place[at].load(Ordering::Relaxed));
            // What was read before the fence came before what is read after it: a word of a later segment means a later count.
            fence(Ordering::Acquire);
            if self.published.load(Ordering::Relaxed) == before {
                return decode(&words);
            }
        }
    }

    /// Called by one thread at a time, because the publisher is not shared.
    fn write(&self, segment: Option<Segment>, status: ClockStatus) {
        let count = self.published.load(Ordering::Relaxed).wrapping_add(1);
        let place = &self.places[usize::from(count % 2 == 1)];
        // A reader that sees a word written below also sees the count stored above, and reads again.
        fence(Ordering::Release);
        for (word, value) in place.iter().zip(encode(segment, status)) {
            word.store(value, Ordering::Relaxed);
        }
        self.published.store(count, Ordering::Release);
    }
}

fn encode(segment: Option<Segment>, status: ClockStatus) -> [u64; WORDS] {
    let Some(Segment { line, behind_ns, slew_from_local_ns, slew_for_ns }) = segment else { return [UNKNOWN; WORDS] };
    let status = match status {
        ClockStatus::Good => GOOD,
        ClockStatus::Wide => WIDE,
        ClockStatus::Unknown => UNKNOWN,
    };
    [
        status,
        line.anchor_local_ns,
        line.offset_ns.cast_unsigned(),
        line.rate_ppt.cast_unsigned(),
        line.bound_ns,
        line.bound_growth_ppt,
        line.bound_growth_ppt_per_s,
        behind_ns.cast_unsigned(),
        slew_from_local_ns,
        slew_for_ns,
    ]
}

fn decode(words: &[u64; WORDS]) -> (Option<Segment>, ClockStatus) {
    let [
        status,
        anchor_local_ns,
        offset_ns,
        rate_ppt,
        bound_ns,
        bound_growth_ppt,
        bound_growth_ppt_per_s,
        behind_ns,
        slew_from_local_ns,
        slew_for_ns,
    ] = *words;
    let status = match status {
        GOOD => ClockStatus::Good,
        WIDE => ClockStatus::Wide,
        _ => return (None, ClockStatus::Unknown),
    };
    let line = Correction {
        anchor_local_ns,
        offset_ns: offset_ns.cast_signed(),
        rate_ppt: rate_ppt.cast_signed(),
        bound_ns,
        bound_growth_ppt,
        bound_growth_ppt_per_s,
    };
    (Some(Segment { line, behind_ns: behind_ns.cast_signed(), slew_from_local_ns, slew_for_ns }), status)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use walras_fair_access::clock::HostClock;

    use super::*;

    /// A clock of the test's own, its time, and who feeds it.
    fn clock(bound_max_ns: u64) -> (Arc<AtomicU64>, Publisher) {
        let now_ns = Arc::new(AtomicU64::new(1_000_000));
        let shown = Arc::clone(&now_ns);
        let local = LocalClock::made(move |_| shown.load(Ordering::Relaxed));
        let limits = StampLimits::new(bound_max_ns, bound_max_ns / 2, 1_000).unwrap();
        (now_ns, Publisher::new("test", ClockSource::Host(HostClock::new()), limits, bound_max_ns, local))
    }

    fn report(publisher: &mut Publisher, local_ns: u64, bound_ns: u64, bound_growth_ppt: u64) {
        let ClockSource::Host(host) = publisher.clock() else { unreachable!() };
        host.on_report(HostReport { local_ns, bound_ns, bound_growth_ppt }).unwrap();
    }

    #[test]
    fn a_clock_is_unknown_then_wide_then_good_and_wide_at_once() {
        let (now_ns, mut publisher) = clock(1_000);
        let source = publisher.source();
        assert_eq!(source.reading(), (None, ClockStatus::Unknown));
        assert_eq!((source.stamp(), source.view().system_ahead_ns), (None, None));
        // A ns a us: wide after another 601 us.
        report(&mut publisher, 1_000_000, 399, 1_000_000_000);
        publisher.publish();
        assert_eq!(source.reading(), (Some(ClockReading { time_ns: 1_000_000, bound_ns: 400 }), ClockStatus::Wide), "not for long");
        now_ns.store(1_001_000, Ordering::Relaxed);
        publisher.publish();
        assert_eq!(source.stamp(), Some(ClockReading { time_ns: 1_001_000, bound_ns: 401 }));
        now_ns.store(1_600_000, Ordering::Relaxed);
        assert_eq!(source.stamp().unwrap().bound_ns, 1_000);
        now_ns.store(1_600_001, Ordering::Relaxed);
        assert_eq!(source.stamp(), None, "without anybody publishing");
        assert_eq!(source.reading(), (Some(ClockReading { time_ns: 1_600_001, bound_ns: 1_001 }), ClockStatus::Wide));
    }

    #[test]
    fn a_clock_that_is_set_back_stands_for_everybody() {
        let (now_ns, mut publisher) = clock(1_000_000);
        report(&mut publisher, 1_000_000, 100, 0);
        publisher.publish();
        let (one, other) = (publisher.source(), publisher.source());
        now_ns.store(1_000_500, Ordering::Relaxed);
        assert_eq!(one.reading().0.unwrap().time_ns, 1_000_500);
        now_ns.store(1_000_200, Ordering::Relaxed);
        assert_eq!(other.reading().0.unwrap(), ClockReading { time_ns: 1_000_500, bound_ns: 401 });
    }

    /// One thread publishes segments whose words all follow from one number, others check that they never see a mixture.
    #[test]
    fn readers_see_whole_segments() {
        let (_, publisher) = clock(1_000);
        let is_over = AtomicBool::new(false);
        let made = |number: u64| Segment {
            line: Correction {
                anchor_local_ns: number,
                offset_ns: number.cast_signed() * 3,
                rate_ppt: -number.cast_signed(),
                bound_ns: number * 5,
                bound_growth_ppt: number * 7,
                bound_growth_ppt_per_s: number * 11,
            },
            behind_ns: number.cast_signed() * 13,
            slew_from_local_ns: number * 17,
            slew_for_ns: number * 19,
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut last = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            let Some(segment) = publisher.shared.read().0 else { continue };
                            let number = segment.line.anchor_local_ns;
                            assert_eq!(segment, made(number));
                            assert!(number >= last, "segments never go back");
                            last = number;
                        }
                    })
                })
                .collect();
            for number in 1..=200_000 {
                publisher.shared.write(Some(made(number)), ClockStatus::Good);
            }
            is_over.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert_eq!(publisher.shared.read(), (Some(made(200_000)), ClockStatus::Good));
    }
}
