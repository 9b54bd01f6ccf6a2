//! Hold and release: what is public becomes known at its release time, by a thread that does nothing else.
//!
//! Every replica publishes at the same entries of the log, and every entry has a time and a delay in force: so all of them give the same out at
//! the same instant, as far as their clocks agree. What is private, an account's own orders and fills, does not wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use hdrhistogram::Histogram;
use tracing::warn;
use walras_fair_access::release::{Hold, HoldSettings};
use walras_types::limits::ACCESS_DELAY_NS_MAX;

use super::ConnectionId;
use super::outbox::{Item, Outbox};
use crate::runtime::clock::Clock;
use crate::runtime::stages::{Stage, Stages};

/// Items that may wait for the thread, and be held by it.
const ITEMS_MAX: usize = 1 << 16;

/// How long before a release the thread stops sleeping: the kernel wakes it some 50 us late.
const SPIN_NS: u64 = 100_000;

/// What came of the pieces that a gateway held: shared with whoever asks. Clone it freely.
#[derive(Clone, Debug, Default)]
pub struct HoldStatus(Arc<Figures>);

#[derive(Debug)]
struct Figures {
    pieces: AtomicU64,
    late: AtomicU64,
    late_ns_max: AtomicU64,
    refused: AtomicU64,
    overshoot_ns: Mutex<Histogram<u64>>,
    stages: Stages,
}

impl Default for Figures {
    fn default() -> Self {
        let overshoot = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("these bounds are in order");
        Self {
            pieces: AtomicU64::new(0),
            late: AtomicU64::new(0),
            late_ns_max: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            overshoot_ns: Mutex::new(overshoot),
            stages: Stages::default(),
        }
    }
}

/// A look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldView {
    /// Pieces taken.
    pub pieces: u64,
    /// Of these, came after their release time: unfair.
    pub late: u64,
    /// The latest of them.
    pub late_ns_max: u64,
    /// Not taken, since the hold was full or the clock far off: everybody had to connect anew.
    pub refused: u64,
    /// How long after its time a piece that was held left: the median, and percentiles 99 and 99.9.
    pub overshoot_ns: [u64; 3],
}

impl HoldStatus {
    /// Nothing yet. What is held will count among these stages.
    pub(crate) fn timed(stages: Stages) -> Self {
        Self(Arc::new(Figures { stages, ..Figures::default() }))
    }

    /// A look.
    #[must_use]
    pub fn view(&self) -> HoldView {
        let overshoot = self.0.overshoot_ns.lock().unwrap_or_else(PoisonError::into_inner);
        HoldView {
            pieces: self.0.pieces.load(Relaxed),
            late: self.0.late.load(Relaxed),
            late_ns_max: self.0.late_ns_max.load(Relaxed),
            refused: self.0.refused.load(Relaxed),
            overshoot_ns: [0.5, 0.99, 0.999].map(|quantile| overshoot.value_at_quantile(quantile)),
        }
    }
}

struct Timed {
    /// 0 for what need not wait.
    release_ns: u64,
    item: Item,
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Gate {
    items: Sender<Timed>,
    dropped: Receiver<ConnectionId>,
    /// Something could not be sent to the thread: all who are there have missed something.
    is_broken: Arc<AtomicBool>,
    /// What was published later is not released earlier, when the delay shrinks in between.
    last_release_ns: u64,
}

impl std::fmt::Debug for Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timed").field("release_ns", &self.release_ns).finish_non_exhaustive()
    }
}

/// The thread is gone, or so far behind that items were lost.
#[derive(Debug)]
pub(super) struct Lost;

impl Gate {
    pub(super) fn start(clock: Clock, status: HoldStatus, outbox: Outbox) -> std::io::Result<Self> {
        let ((items_in, items), (dropped_in, dropped)) = (bounded(ITEMS_MAX), unbounded());
        let is_broken = Arc::new(AtomicBool::new(false));
        let releaser = Releaser { items, dropped: dropped_in, is_broken: Arc::clone(&is_broken), clock, status, outbox };
        std::thread::Builder::new().name("walras-release".to_owned()).spawn(move || releaser.run())?;
        Ok(Self { items: items_in, dropped, is_broken, last_release_ns: 0 })
    }

    /// To be known once the clock shows this, and not before what was given earlier.
    pub(super) fn publish(&mut self, release_ns: u64, item: Item) -> Result<(), Lost> {
        self.last_release_ns = self.last_release_ns.max(release_ns);
        self.send(self.last_release_ns, item)
    }

    /// Need not wait.
    pub(super) fn pass(&mut self, item: Item) -> Result<(), Lost> {
        self.send(0, item)
    }

    fn send(&self, release_ns: u64, item: Item) -> Result<(), Lost> {
        self.items.try_send(Timed { release_ns, item }).map_err(|_| {
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
    clock: Clock,
    status: HoldStatus,
    outbox: Outbox,
}

impl Releaser {
    /// Until nobody publishes any more.
    fn run(mut self) {
        let wait_max_ns = 2 * ACCESS_DELAY_NS_MAX;
        let mut hold = Hold::new(HoldSettings { held_max: ITEMS_MAX, wait_max_ns });
        loop {
            let now_ns = self.clock.now().0;
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
            let now_ns = self.clock.now().0;
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

    fn admit(&mut self, hold: &mut Hold<Item>, Timed { release_ns, item }: Timed) {
        if release_ns == 0 {
            return self.give(item);
        }
        let (figures, now_ns) = (&self.status.0, self.clock.now().0);
        match hold.push(now_ns, release_ns, item) {
            Ok(_) => {
                figures.pieces.store(hold.counts().pieces, Relaxed);
                figures.late.store(hold.counts().late, Relaxed);
                figures.late_ns_max.store(hold.counts().late_ns_max, Relaxed);
            }
            Err(why) => {
                warn!(
                    "market data was not held ({why}), so all who read it have to connect anew; compare this machine's clock with the leader's"
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
    // Whoever publishes may be gone when the venue stops.
    let _ = dropped.send(id);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

    use tokio::sync::mpsc;
    use walras_types::{InstrumentId, TimeNs};

    use super::*;
    use crate::runtime::feed::{Push, Subscription};
    use crate::runtime::status::Status;

    const TRADES: Subscription = Subscription::Trades(InstrumentId(0));

    fn trades() -> Push {
        Push::Trades { instrument: InstrumentId(0), snapshot: false, trades: Arc::from([]) }
    }

    fn updates() -> Item {
        Item::Updates(BTreeMap::from([(TRADES, trades())]))
    }

    /// A gate by a clock that the test sets, and a reader of trades.
    fn gate() -> (Gate, HoldStatus, Arc<AtomicU64>, mpsc::Receiver<Push>) {
        let shown = Arc::new(AtomicU64::new(1_000));
        let clock = Clock::new({
            let shown = Arc::clone(&shown);
            move || TimeNs(shown.load(Relaxed))
        });
        let status = HoldStatus::default();
        let outbox = Outbox::new(Status::new("test", TimeNs(0)));
        let mut gate = Gate::start(clock, status.clone(), outbox).unwrap();
        let (queue, pushes) = mpsc::channel(4);
        gate.pass(Item::Connect { id: ConnectionId(1), queue }).unwrap();
        gate.pass(Item::Start { id: ConnectionId(1), subscription: TRADES, snapshot: trades() }).unwrap();
        (gate, status, shown, pushes)
    }

    /// Waits for something that the thread does by itself.
    fn until(mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it did not happen");
            std::thread::yield_now();
        }
    }

    #[test]
    fn nothing_is_known_before_its_time() {
        let (mut gate, status, shown, mut pushes) = gate();
        until(|| pushes.try_recv().is_ok());
        gate.publish(1_500, updates()).unwrap();
        // Published later, with a shorter delay: it waits for the one before.
        gate.publish(1_400, updates()).unwrap();
        until(|| status.view().pieces == 2);
        shown.store(1_499, Relaxed);
        gate.pass(updates()).unwrap();
        until(|| pushes.try_recv().is_ok());
        assert!(pushes.try_recv().is_err(), "what need not wait came, what must did not");
        shown.store(1_500, Relaxed);
        until(|| pushes.try_recv().is_ok());
        until(|| pushes.try_recv().is_ok());
        assert_eq!((status.view().pieces, status.view().late), (2, 0));
    }

    #[test]
    fn what_comes_late_is_given_at_once_and_counted() {
        let (mut gate, status, _, mut pushes) = gate();
        until(|| pushes.try_recv().is_ok());
        gate.publish(990, updates()).unwrap();
        until(|| pushes.try_recv().is_ok());
        assert_eq!((status.view().late, status.view().late_ns_max), (1, 10));
    }

    #[test]
    fn a_reader_that_does_not_read_is_told_of() {
        let (mut gate, _, _, _pushes) = gate();
        for _ in 0..4 {
            gate.pass(updates()).unwrap();
        }
        let mut dropped = Vec::new();
        until(|| {
            dropped.extend(gate.dropped());
            dropped == [ConnectionId(1)]
        });
    }

    #[test]
    fn a_clock_far_off_ends_all_feeds() {
        let (mut gate, status, _, _pushes) = gate();
        gate.publish(1_000 + 2 * ACCESS_DELAY_NS_MAX + 1, updates()).unwrap();
        until(|| status.view().refused == 1);
        let mut dropped = Vec::new();
        until(|| {
            dropped.extend(gate.dropped());
            dropped == [ConnectionId(1)]
        });
    }
}
