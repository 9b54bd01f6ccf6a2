//! Market data at a replica with fair access, held until its release time by the product's hold.

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::publications::{Publications, ReleaseClock, ReleaseTime};
use walras_fair_access::release::{Hold, HoldSettings};
use walras_sequencer::ReleaseRules;
use walras_types::{LogIndex, TimeNs};

use super::moment::Moment;
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;

/// From one publication to the next, by the log.
pub(crate) const PUBLISH_EVERY_NS: u64 = 40_000_000;
/// The longest d_h.
pub(crate) const DELAY_NS_MAX: u64 = 50_000_000;

/// How the leader steers d_h: it moves often.
pub(super) fn rules() -> ReleaseRules {
    let bounds = DelayBounds { min_ns: 100_000, max_ns: DELAY_NS_MAX, start_ns: 5_000_000 };
    let tracking = Tracking { bounds, target: Ppm(50_000), step_ns: 200_000, level_window: 15 };
    ReleaseRules {
        delay: DelaySettings::Tracking(tracking),
        change_min_ns: 100_000,
        change_every_ns: 400_000_000,
        outlier_apart_max_ns: 50_000_000,
    }
}

/// What waits for its time, by the entry that it shows the state after.
#[derive(Debug)]
pub(super) struct Releases {
    me: ReplicaId,
    mutation: Option<Mutation>,
    hold: Hold<Held>,
    clock: ReleaseClock,
    /// The delay in force, and the one before it.
    delays_ns: (u64, u64),
    /// For [`Mutation::ReleaseAfresh`].
    afresh: Publications,
}

/// A publication.
#[derive(Clone, Copy, Debug)]
struct Held {
    log_index: LogIndex,
    /// The leader's clock was known here when it was published.
    knows_leader_clock: bool,
}

impl Releases {
    pub(super) fn new(me: ReplicaId, mutation: Option<Mutation>) -> Self {
        let hold = Hold::new(HoldSettings { held_max: 64, wait_max_ns: 2_000_000_000 });
        let (clock, afresh) = (ReleaseClock::default(), Publications::new(PUBLISH_EVERY_NS, DELAY_NS_MAX));
        Self { me, mutation, hold, clock, delays_ns: (0, 0), afresh }
    }

    /// An entry was applied.
    pub(super) fn on_applied(&mut self, engine: &Engine, time: TimeNs, at: Moment, checks: &mut Checks) {
        let delay_ns = engine.access_delays().release_ns;
        if delay_ns != self.delays_ns.0 {
            self.delays_ns = (delay_ns, self.delays_ns.0);
        }
        if self.mutation == Some(Mutation::ReleaseAfresh) && self.afresh.on_entry(time.0, delay_ns, None).is_some() {
            self.hold(engine.last_applied(), self.afresh.known_from(), at, checks);
        }
    }

    /// The replica publishes the state after an entry, which may be known from then on; `ahead_ns` of the clock that stamped the
    /// entry. How long after its making.
    pub(super) fn publish(
        &mut self,
        engine: &Engine,
        (known_from, ahead_ns): (ReleaseTime, Option<i64>),
        at: Moment,
        checks: &mut Checks,
    ) -> i64 {
        let is_old = self.mutation == Some(Mutation::ReleaseByOldDelay) && self.me.get() == 2;
        let (now_ns, before_ns) = self.delays_ns;
        let log_ns = if is_old { known_from.log_ns - now_ns + before_ns } else { known_from.log_ns };
        if self.mutation != Some(Mutation::ReleaseAfresh) {
            self.hold(engine.last_applied(), ReleaseTime { log_ns, ..known_from }, at, checks);
        }
        ReleaseTime { log_ns: engine.time().0, ahead_ns }.ago_ns(at.clock_ns, at.venue_ns)
    }

    fn hold(&mut self, log_index: LogIndex, known_from: ReleaseTime, at: Moment, checks: &mut Checks) {
        // By its own clock: the log says when.
        let release_ns = at.venue_ns.is_none().then_some(known_from.log_ns);
        checks.on_published(self.me, log_index, release_ns);
        let now_ns = self.clock.now_ns(at.clock_ns, at.venue_ns);
        let held = Held { log_index, knows_leader_clock: known_from.ahead_ns.is_some() };
        // What is not taken, since a clock is far off, is lost to all readers here, who connect again.
        let _ = self.hold.push(now_ns, self.clock.at_ns(known_from), held);
    }

    /// Lets go of what is due.
    pub(super) fn release(&mut self, at: Moment, checks: &mut Checks) {
        let now_ns = self.clock.now_ns(at.clock_ns, at.venue_ns);
        let by_ns = if self.mutation == Some(Mutation::ReleaseEarly) { now_ns + 1_000_000 } else { now_ns };
        while let Some(due) = self.hold.release_due(by_ns) {
            let Held { log_index, knows_leader_clock } = due.data;
            match at.venue_ns {
                None => checks.on_publication_released(self.me, log_index, at.clock_ns),
                Some(_) => checks.on_released_by_mesh(self.me, log_index, at.true_ns, knows_leader_clock),
            }
        }
    }

    /// How long nothing is due.
    pub(super) fn wait_ns(&self, at: Moment) -> Option<u64> {
        let mut clock = self.clock;
        let now_ns = clock.now_ns(at.clock_ns, at.venue_ns);
        self.hold.next_release_ns().map(|at_ns| at_ns.saturating_sub(now_ns))
    }
}
