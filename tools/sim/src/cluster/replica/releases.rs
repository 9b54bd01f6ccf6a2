//! Market data at a replica with fair access, held until its release time by the product's hold.

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::publications::{Publications, ReleaseTime};
use walras_fair_access::release::{Hold, HoldSettings};
use walras_sequencer::ReleaseRules;
use walras_types::{LogIndex, TimeNs};

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
    hold: Hold<LogIndex>,
    /// The delay in force, and the one before it.
    delays_ns: (u64, u64),
    /// For [`Mutation::ReleaseAfresh`].
    afresh: Publications,
}

impl Releases {
    pub(super) fn new(me: ReplicaId, mutation: Option<Mutation>) -> Self {
        let hold = Hold::new(HoldSettings { held_max: 64, wait_max_ns: 2_000_000_000 });
        Self { me, mutation, hold, delays_ns: (0, 0), afresh: Publications::new(PUBLISH_EVERY_NS, DELAY_NS_MAX) }
    }

    /// An entry was applied.
    pub(super) fn on_applied(&mut self, engine: &Engine, time: TimeNs, clock_ns: u64, checks: &mut Checks) {
        let delay_ns = engine.access_delays().release_ns;
        if delay_ns != self.delays_ns.0 {
            self.delays_ns = (delay_ns, self.delays_ns.0);
        }
        if self.mutation == Some(Mutation::ReleaseAfresh) && self.afresh.on_entry(time.0, delay_ns, None).is_some() {
            self.hold(engine.last_applied(), self.afresh.known_from().log_ns, clock_ns, checks);
        }
    }

    /// The replica publishes the state after an entry; how long after its making.
    pub(super) fn publish(&mut self, engine: &Engine, known_from: ReleaseTime, clock_ns: u64, checks: &mut Checks) -> i64 {
        let is_old = self.mutation == Some(Mutation::ReleaseByOldDelay) && self.me.get() == 2;
        let (now_ns, before_ns) = self.delays_ns;
        let release_ns = if is_old { known_from.log_ns - now_ns + before_ns } else { known_from.log_ns };
        if self.mutation != Some(Mutation::ReleaseAfresh) {
            self.hold(engine.last_applied(), release_ns, clock_ns, checks);
        }
        clock_ns.wrapping_sub(engine.time().0).cast_signed()
    }

    fn hold(&mut self, log_index: LogIndex, release_ns: u64, clock_ns: u64, checks: &mut Checks) {
        checks.on_published(self.me, log_index, release_ns);
        // What is not taken, since a clock is far off, is lost to all readers here, who connect again.
        let _ = self.hold.push(clock_ns, release_ns, log_index);
    }

    /// Lets go of what is due.
    pub(super) fn release(&mut self, clock_ns: u64, checks: &mut Checks) {
        let by_ns = if self.mutation == Some(Mutation::ReleaseEarly) { clock_ns + 1_000_000 } else { clock_ns };
        while let Some(due) = self.hold.release_due(by_ns) {
            checks.on_publication_released(self.me, due.data, clock_ns);
        }
    }

    /// How long nothing is due.
    pub(super) fn wait_ns(&self, clock_ns: u64) -> Option<u64> {
        self.hold.next_release_ns().map(|at_ns| at_ns.saturating_sub(clock_ns))
    }
}
