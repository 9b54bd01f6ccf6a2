//! Hold and release: what is public becomes known at its release time, by a thread that does nothing else. Where nothing is held
//! the same thread gives all out as it comes, so that the thread that applies commands spends no time on readers, however many
//! there are.
//!
//! Every replica publishes at the same entries of the log, and every entry has a time and a delay in force: so all of them give the
//! same out at the same instant, as far as their clocks agree ([`walras_fair_access::publications`]). What is private, an account's
//! own orders and fills, does not wait.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use hdrhistogram::Histogram;
use tracing::warn;
use walras_fair_access::publications::{ReleaseClock, ReleaseTime};
use walras_fair_access::release::{Hold, HoldSettings};
use walras_types::TimeNs;
use walras_types::limits::ACCESS_DELAY_NS_MAX;

use super::ConnectionId;
use super::outbox::{Item, Outbox};
use crate::release_source::ReleaseSource;
use crate::stages::{Stage, Stages};

/// Items that may wait for the thread, and be held by it.
const ITEMS_MAX: usize = 1 << 16;

/// How long before a release the thread stops sleeping: the kernel wakes it some 50 us late.
const SPIN_NS: u64 = 100_000;

/// Figures of the publications that a gateway held. Clones share them.
#[derive(Clone, Debug)]
pub struct HoldStatus(Arc<Figures>);

#[derive(Debug)]
struct Figures {
    publications: AtomicU64,
    late: AtomicU64,
    late_ns_max: AtomicU64,
    refused: AtomicU64,
    overshoot_ns: Mutex<Histogram<u64>>,
    stages: Stages,
    source: ReleaseSource,
    /// From when on the state here may be known, and by whose clock; see [`AHEAD_UNKNOWN`].
    known_from_log_ns: AtomicU64,
    known_from_ahead_ns: AtomicI64,
}

/// A clock's lead that is not known.
const AHEAD_UNKNOWN: i64 = i64::MIN;

/// A look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldView {
    /// Publications taken.
    pub publications: u64,
    /// Of these, came after their release time: unfair.
    pub late: u64,
    /// The latest of them.
    pub late_ns_max: u64,
    /// Not taken, since the hold was full or the clock far off: all readers had to connect again.
    pub refused: u64,
    /// How long after its time a publication that was held left: the median, and percentiles 99 and 99.9.
    pub overshoot_ns: [u64; 3],
}

impl HoldStatus {
    /// Nothing yet. What is held waits by these clocks, and will count among these stages.
    pub fn new(source: ReleaseSource, stages: Stages) -> Self {
        let overshoot = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("these bounds are in order");
        Self(Arc::new(Figures {
            publications: AtomicU64::new(0),
            late: AtomicU64::new(0),
            late_ns_max: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            overshoot_ns: Mutex::new(overshoot),
            stages,
            source,
            known_from_log_ns: AtomicU64::new(0),
            known_from_ahead_ns: AtomicI64::new(AHEAD_UNKNOWN),
        }))
    }

    /// From when on the state here may be known.
    pub(super) fn set_known_from(&self, ReleaseTime { log_ns, ahead_ns }: ReleaseTime) {
        self.0.known_from_ahead_ns.store(ahead_ns.unwrap_or(AHEAD_UNKNOWN), Relaxed);
        self.0.known_from_log_ns.store(log_ns, Relaxed);
    }

    /// How long it takes until then.
    pub fn public_in(&self) -> Duration {
        let log_ns = self.0.known_from_log_ns.load(Relaxed);
        let ahead_ns = Some(self.0.known_from_ahead_ns.load(Relaxed)).filter(|ahead_ns| *ahead_ns != AHEAD_UNKNOWN);
        let ago_ns = self.0.source.ago_ns(TimeNs(log_ns), ahead_ns);
        Duration::from_nanos(u64::try_from(ago_ns.saturating_neg()).unwrap_or(0).min(WAIT_NS_MAX))
    }

    /// A look.
    #[must_use]
    pub fn view(&self) -> HoldView {
        let overshoot = self.0.overshoot_ns.lock().unwrap_or_else(PoisonError::into_inner);
        HoldView {
            publications: self.0.publications.load(Relaxed),
            late: self.0.late.load(Relaxed),
            late_ns_max: self.0.late_ns_max.load(Relaxed),
            refused: self.0.refused.load(Relaxed),
            overshoot_ns: [0.5, 0.99, 0.999].map(|quantile| overshoot.value_at_quantile(quantile)),
        }
    }
}

struct Timed {
    /// `None` for what need not wait.
    known_from: Option<ReleaseTime>,
    item: Item,
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Gate {
    items: Sender<Timed>,
    dropped: Receiver<ConnectionId>,
    /// Something could not be sent to the thread: all who are there have missed something.
    is_broken: Arc<AtomicBool>,
}

impl std::fmt::Debug for Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timed").field("known_from", &self.known_from).finish_non_exhaustive()
    }
}

/// The thread is gone, or so far behind that items were lost.
#[derive(Debug)]
pub(super) struct Lost;

impl Gate {
    pub(super) fn start(status: HoldStatus, outbox: Outbox) -> std::io::Result<Self> {
        let ((items_in, items), (dropped_in, dropped)) = (bounded(ITEMS_MAX), unbounded());
        let is_broken = Arc::new(AtomicBool::new(false));
        let (is_broken_too, clock) = (Arc::clone(&is_broken), ReleaseClock::default());
        let releaser = Releaser { items, dropped: dropped_in, is_broken: is_broken_too, clock, latest_ns: 0, status, outbox };
        std::thread::Builder::new().name("walras-feeds".to_owned()).spawn(move || releaser.run())?;
        Ok(Self { items: items_in, dropped, is_broken })
    }

    /// To be known from then on, and not before what was given earlier.
    pub(super) fn publish(&self, known_from: ReleaseTime, item: Item) -> Result<(), Lost> {
        self.send(Some(known_from), item)
    }

    /// Need not wait.
    pub(super) fn pass(&self, item: Item) -> Result<(), Lost> {
        self.send(None, item)
    }

    fn send(&self, known_from: Option<ReleaseTime>, item: Item) -> Result<(), Lost> {
        self.items.try_send(Timed { known_from, item }).map_err(|_| {
            self.is_broken.store(true, Relaxed);
            Lost
        })
    }

    /// Who did not read, and was forgotten.
    pub(super) fn dropped(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.dropped.try_iter()
    }
}

struct Releaser {
    items: Receiver<Timed>,
    dropped: Sender<ConnectionId>,
    is_broken: Arc<AtomicBool>,
    clock: ReleaseClock,
    /// When that releases what was admitted last.
    latest_ns: u64,
    status: HoldStatus,
    outbox: Outbox,
}

/// What is to be held for longer was made by a clock that is far off.
const WAIT_NS_MAX: u64 = 2 * ACCESS_DELAY_NS_MAX;

impl Releaser {
    fn now_ns(&mut self) -> u64 {
        let (system_ns, venue_ns) = self.status.0.source.read();
        self.clock.now_ns(system_ns, venue_ns)
    }

    /// Until nobody publishes any more.
    fn run(mut self) {
        let mut hold = Hold::new(HoldSettings { held_max: ITEMS_MAX, wait_max_ns: WAIT_NS_MAX });
        loop {
            let now_ns = self.now_ns();
            let until_ns = hold.next_release_ns().map(|at| at.saturating_sub(now_ns));
            let next = match until_ns {
                None => match self.items.recv() {
                    Ok(timed) => Some(timed),
                    Err(_) => return,
                },
                Some(0) => None,
                Some(left_ns) if left_ns > SPIN_NS => match self.items.recv_timeout(Duration::from_nanos(left_ns - SPIN_NS)) {
                    Ok(timed) => Some(timed),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                Some(_) => {
                    std::hint::spin_loop();
                    self.items.try_recv().ok()
                }
            };
            if let Some(timed) = next {
                self.admit(&mut hold, timed);
            }
            let now_ns = self.now_ns();
            while let Some(due) = hold.release_due(now_ns) {
                if due.release_ns > due.arrived_ns {
                    self.status
                        .0
                        .overshoot_ns
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .saturating_record(now_ns - due.release_ns);
                }
                let held = Duration::from_nanos(now_ns.saturating_sub(due.arrived_ns));
                self.status.0.stages.record(Stage::Release, Instant::now(), held, 1);
                self.give(due.data);
            }
        }
    }

    fn admit(&mut self, hold: &mut Hold<Item>, Timed { known_from, item }: Timed) {
        let Some(known_from) = known_from else { return self.give(item) };
        let now_ns = self.now_ns();
        // Whatever the clocks do, in the order in which it was published.
        let release_ns = self.clock.at_ns(known_from).max(self.latest_ns);
        let figures = &self.status.0;
        match hold.push(now_ns, release_ns, item) {
            Ok(_) => {
                self.latest_ns = release_ns;
                figures.publications.store(hold.counts().publications, Relaxed);
                figures.late.store(hold.counts().late, Relaxed);
                figures.late_ns_max.store(hold.counts().late_ns_max, Relaxed);
            }
            Err(why) => {
                warn!(
                    "market data was not held ({why}), so all its readers have to connect again; compare this machine's clock \
                     with the leader's"
                );
                figures.refused.fetch_add(1, Relaxed);
                let dropped = &self.dropped;
                self.outbox.clear(|id| tell(dropped, id));
            }
        }
    }

    fn give(&mut self, item: Item) {
        let dropped = &self.dropped;
        if self.is_broken.swap(false, Relaxed) {
            self.outbox.clear(|id| tell(dropped, id));
        }
        self.outbox.take(item, |id| tell(dropped, id));
    }
}

fn tell(dropped: &Sender<ConnectionId>, id: ConnectionId) {
    // The publishing thread may be gone when the venue stops.
    let _ = dropped.send(id);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

    use tokio::sync::mpsc;
    use walras_types::InstrumentId;

    use super::*;
    use walras_access::Clock;

    use crate::feed::books::KnownBooks;
    use crate::feed::publication::{Publication, Shared};
    use crate::feed::{Push, Subscription};
    use crate::status::Status;
    use walras_wait::until;

    const TRADES: Subscription = Subscription::Trades(InstrumentId(0));

    fn trades() -> Push {
        Push::Trades { instrument: InstrumentId(0), snapshot: false, trades: Arc::from([]) }
    }

    fn updates() -> Item {
        Item::Updates(BTreeMap::from([(TRADES, Publication::new(trades()))]))
    }

    /// A gate by a clock that the test sets, and a reader of trades.
    fn gate() -> (Gate, HoldStatus, Arc<AtomicU64>, mpsc::Receiver<Shared>) {
        let shown = Arc::new(AtomicU64::new(1_000));
        let clock = Clock::new({
            let shown = Arc::clone(&shown);
            move || TimeNs(shown.load(Relaxed))
        });
        let status = HoldStatus::new(ReleaseSource::new(clock, None), Stages::default());
        let outbox = Outbox::new(Status::new("test", TimeNs(0)), KnownBooks::default());
        let gate = Gate::start(status.clone(), outbox).unwrap();
        let (queue, pushes) = mpsc::channel(4);
        gate.pass(Item::Connect { id: ConnectionId(1), queue }).unwrap();
        gate.pass(Item::Start { id: ConnectionId(1), subscription: TRADES, snapshot: Publication::new(trades()) }).unwrap();
        (gate, status, shown, pushes)
    }

    fn at(log_ns: u64) -> ReleaseTime {
        ReleaseTime { log_ns, ahead_ns: None }
    }

    #[test]
    fn nothing_is_known_before_its_time() {
        let (gate, status, shown, mut pushes) = gate();
        until("something is given out", || pushes.try_recv().is_ok());
        gate.publish(at(1_500), updates()).unwrap();
        // Published later, with a shorter delay: it waits for the one before.
        gate.publish(at(1_400), updates()).unwrap();
        until("both are given out", || status.view().publications == 2);
        shown.store(1_499, Relaxed);
        gate.pass(updates()).unwrap();
        until("something is given out", || pushes.try_recv().is_ok());
        assert!(pushes.try_recv().is_err(), "what need not wait came, what must did not");
        shown.store(1_500, Relaxed);
        until("something is given out", || pushes.try_recv().is_ok());
        until("something is given out", || pushes.try_recv().is_ok());
        assert_eq!((status.view().publications, status.view().late), (2, 0));
    }

    #[test]
    fn what_comes_late_is_given_at_once_and_counted() {
        let (gate, status, _, mut pushes) = gate();
        until("something is given out", || pushes.try_recv().is_ok());
        gate.publish(at(990), updates()).unwrap();
        until("something is given out", || pushes.try_recv().is_ok());
        assert_eq!((status.view().late, status.view().late_ns_max), (1, 10));
    }

    #[test]
    fn a_reader_that_does_not_read_is_told_of() {
        let (gate, _, _, _pushes) = gate();
        for _ in 0..4 {
            gate.pass(updates()).unwrap();
        }
        let mut dropped = Vec::new();
        until("a reader is dropped", || {
            dropped.extend(gate.dropped());
            dropped == [ConnectionId(1)]
        });
    }

    #[test]
    fn a_clock_far_off_ends_all_feeds() {
        let (gate, status, _, _pushes) = gate();
        gate.publish(at(1_000 + WAIT_NS_MAX + 1), updates()).unwrap();
        until("one is refused", || status.view().refused == 1);
        let mut dropped = Vec::new();
        until("a reader is dropped", || {
            dropped.extend(gate.dropped());
            dropped == [ConnectionId(1)]
        });
    }
}
