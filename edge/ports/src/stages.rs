//! How long orders and market data take, stage by stage: what a venue says of its own speed, with the tails.
//!
//! ```text
//!  receive      transit      hold      log       apply      answer
//! |-------> passed on ----> leader ----> sequencer ----> decided ----> applied ----> sent back     order: all of them, at its gateway
//!
//! publish: from an entry's time to its publication here         release: from there until readers have it
//! ```
//!
//! Each has its own histogram, of two significant digits. Orders of sessions are timed where their number is a multiple of
//! [`TIMED_ONE_OF`], so that it costs a few nanoseconds of each; a sample that meets a reader of its histogram is dropped, so that
//! nobody waits.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
pub use walras_sequencer::TIMED_ONE_OF;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From when this replica saw that a session's order came until it passed it on: decoded, authorised, validated, stamped.
    Receive,
    /// From an order's stamp at its gateway until the leader had it, by the clocks of both.
    Transit,
    /// How long the leader held an order, so that those with earlier stamps could come: d_s, less the transit.
    Hold,
    /// From the sequencer until a majority holds it; on one machine, until it is on disk.
    Log,
    /// From there until it was applied, behind those before it.
    Apply,
    /// From there until the answer was handed to the connection.
    Answer,
    /// All of a session's order, at the replica where it came in.
    Order,
    /// All of a command that came over HTTP or WebSocket, from the queue to its outcome.
    Request,
    /// Market data: from the time of the log's entry until it was published here.
    Publish,
    /// Market data: from there until it was released to readers.
    Release,
}

impl Stage {
    /// All, in the order in which they are passed.
    pub const ALL: [Self; 10] = [
        Self::Receive,
        Self::Transit,
        Self::Hold,
        Self::Log,
        Self::Apply,
        Self::Answer,
        Self::Order,
        Self::Request,
        Self::Publish,
        Self::Release,
    ];

    /// Its name in the API and the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Transit => "transit",
            Self::Hold => "hold",
            Self::Log => "log",
            Self::Apply => "apply",
            Self::Answer => "answer",
            Self::Order => "order",
            Self::Request => "request",
            Self::Publish => "publish",
            Self::Release => "release",
        }
    }
}

/// A minute: longer ones count as one.
const NS_MAX: u64 = 60_000_000_000;

/// Percentiles are of the last one to two of these.
const WINDOW: Duration = Duration::from_secs(30);

/// How far percentiles reach back at most.
pub const RECENT: Duration = Duration::from_secs(2 * WINDOW.as_secs());

/// Histograms of all stages; clone it freely.
#[derive(Clone, Debug)]
pub struct Stages(Arc<[Mutex<Spread>; Stage::ALL.len()]>);

#[derive(Debug)]
struct Spread {
    count: u64,
    sum_ns: u64,
    young: Histogram<u32>,
    old: Histogram<u32>,
    /// Since then samples go into the young one.
    since: Instant,
}

impl Default for Stages {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Stage::ALL.map(|_| Mutex::new(Spread::new(now)))))
    }
}

/// A stage at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageView {
    /// Which.
    pub stage: Stage,
    /// Samples since the start.
    pub count: u64,
    /// How long they took in all.
    pub sum_ns: u64,
    /// Samples in the current window; the percentiles below are over these.
    pub recent: u64,
    /// The median, and percentiles 90, 99 and 99.9.
    pub percentiles_ns: [u64; 4],
    /// The longest.
    pub ns_max: u64,
}

/// What [`StageView::percentiles_ns`] are.
pub const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

impl Stages {
    /// So many samples of a stage took so long, and ended now.
    pub fn record(&self, stage: Stage, now: Instant, took: Duration, count: u32) {
        let mut spread = match self.0[stage as usize].try_lock() {
            Ok(spread) => spread,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(NS_MAX).min(NS_MAX);
        spread.turn(now);
        spread.count += u64::from(count);
        spread.sum_ns = spread.sum_ns.saturating_add(took_ns.saturating_mul(u64::from(count)));
        spread.young.saturating_record_n(took_ns, count);
    }

    /// One sample of a stage that began then and ends now.
    pub fn ended(&self, stage: Stage, began: Instant) {
        let now = Instant::now();
        self.record(stage, now, now.saturating_duration_since(began), 1);
    }

    /// All stages that anything has passed here.
    #[must_use]
    pub fn view(&self) -> Vec<StageView> {
        self.view_at(Instant::now())
    }

    fn view_at(&self, now: Instant) -> Vec<StageView> {
        Stage::ALL.into_iter().filter_map(|stage| self.view_of(stage, now)).collect()
    }

    fn view_of(&self, stage: Stage, now: Instant) -> Option<StageView> {
        let (mut recent, old, count, sum_ns) = {
            let mut spread = self.0[stage as usize].lock().unwrap_or_else(PoisonError::into_inner);
            spread.turn(now);
            (spread.young.clone(), spread.old.clone(), spread.count, spread.sum_ns)
        };
        recent.add(&old).expect("both have the same bounds");
        let percentiles_ns = QUANTILES.map(|quantile| recent.value_at_quantile(quantile));
        (count > 0).then(|| StageView { stage, count, sum_ns, recent: recent.len(), percentiles_ns, ns_max: recent.max() })
    }
}

impl Spread {
    fn new(since: Instant) -> Self {
        let empty = || Histogram::new_with_bounds(1, NS_MAX, 2).expect("these bounds are in order");
        Self { count: 0, sum_ns: 0, young: empty(), old: empty(), since }
    }

    /// Forgets what is too old.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.since);
        if age < WINDOW {
            return;
        }
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.reset();
        if age >= RECENT {
            self.old.reset();
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn view(stages: &Stages, now: Instant) -> StageView {
        let [view] = stages.view_at(now)[..] else { panic!("one stage was passed") };
        view
    }

    #[test]
    fn percentiles_are_of_the_last_minute_and_counts_of_all() {
        let stages = Stages::default();
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        assert_eq!(stages.view_at(begun), [], "stages without a sample are not shown");
        for micros in 1..=1_000 {
            stages.record(Stage::Hold, at(1), Duration::from_micros(micros), 1);
        }
        let StageView { stage, count, recent, percentiles_ns, .. } = view(&stages, at(2));
        assert_eq!((stage, count, recent), (Stage::Hold, 1_000, 1_000));
        for (shown_ns, exact_us) in percentiles_ns.into_iter().zip([500, 900, 990, 999]) {
            // Two significant digits: to one of 100.
            assert!((exact_us * US..=exact_us * US * 101 / 100).contains(&shown_ns), "{shown_ns} for {exact_us} us");
        }
        // Half a minute later they still count beside what came since.
        stages.record(Stage::Hold, at(32), Duration::from_secs(5), 1_000);
        let later = view(&stages, at(33));
        assert_eq!((later.count, later.recent), (2_000, 2_000));
        assert!(later.percentiles_ns[1] >= 4_900_000_000, "{later:?}");
        assert_eq!(later.sum_ns, (1..=1_000).sum::<u64>() * US + 5_000_000_000 * 1_000);
        // Then they do not, and after silence nothing does.
        assert_eq!(view(&stages, at(63)).recent, 1_000);
        let end = view(&stages, at(300));
        assert_eq!((end.count, end.recent, end.percentiles_ns), (2_000, 0, [0; 4]));
    }

    #[test]
    fn what_is_beyond_the_bounds_counts_at_the_bound() {
        let stages = Stages::default();
        let now = Instant::now();
        stages.record(Stage::Log, now, Duration::ZERO, 1);
        stages.record(Stage::Log, now, Duration::from_secs(7_200), 1);
        let seen = view(&stages, now);
        assert_eq!((seen.count, seen.recent), (2, 2));
        assert!((59_000_000_000..=61_000_000_000).contains(&seen.ns_max), "{seen:?}");
    }

    #[test]
    fn nobody_waits_for_who_reads() {
        let stages = Stages::default();
        let reading = stages.0[Stage::Log as usize].lock().unwrap();
        stages.record(Stage::Log, Instant::now(), Duration::from_micros(1), 1);
        drop(reading);
        assert_eq!(stages.view(), [], "the sample is dropped");
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place, "{} has its own histogram", stage.name());
        }
    }
}
