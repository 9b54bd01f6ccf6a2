//! Market data at a replica with fair access: published where the product says that the log's time calls for it, held until its release time by the
//! product's hold.

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_fair_access::publications::Publications;
use walras_fair_access::release::{Hold, HoldSettings};
use walras_sequencer::ReleaseRules;
use walras_types::LogIndex;

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
        stray_apart_max_ns: 50_000_000,
    }
}

/// What waits for its time, by the entry that it shows the state after.
#[derive(Debug)]
pub(super) struct Releases {
    hold: Hold<LogIndex>,
    publications: Publications,
    /// Entries at which it published, for how long that is held, and how long after their making.
    published: Vec<(LogIndex, u64, i64)>,
    /// The delay in force, and the one before it.
    delays_ns: (u64, u64),
}

impl Releases {
    pub(super) fn new() -> Self {
        let hold = Hold::new(HoldSettings { held_max: 64, wait_max_ns: 2_000_000_000 });
        let publications = Publications::new(PUBLISH_EVERY_NS, DELAY_NS_MAX);
        Self { hold, publications, published: Vec::new(), delays_ns: (0, 0) }
    }

    /// Goes on from a state.
    pub(super) fn begin_from(&mut self, me: ReplicaId, engine: &Engine, checks: &mut Checks, mutation: Option<Mutation>) {
        let time_ns = engine.time().0;
        checks.on_begin_from(me, time_ns);
        if mutation != Some(Mutation::ReleaseAfresh) {
            self.publications.begin_from(time_ns, engine.access_delays().release_ns);
        }
    }

    /// An entry was applied.
    pub(super) fn on_applied(
        &mut self,
        me: ReplicaId,
        engine: &Engine,
        clock_ns: u64,
        checks: &mut Checks,
        mutation: Option<Mutation>,
    ) {
        let (time_ns, delay_ns) = (engine.time().0, engine.access_delays().release_ns);
        if delay_ns != self.delays_ns.0 {
            self.delays_ns = (delay_ns, self.delays_ns.0);
        }
        let is_old = mutation == Some(Mutation::ReleaseByOldDelay) && me.get() == 2;
        let counts_ns = if is_old { self.delays_ns.1 } else { delay_ns };
        let Some(held_ns) = self.publications.on_entry(time_ns, counts_ns, None) else { return };
        let release_ns = self.publications.known_from().log_ns;
        let log_index = engine.last_applied();
        checks.on_published(me, log_index, release_ns);
        // What is not taken, since a clock is far off, is lost to all readers here, who connect anew.
        let _ = self.hold.push(clock_ns, release_ns, log_index);
        self.published.push((log_index, held_ns, clock_ns.wrapping_sub(time_ns).cast_signed()));
    }

    /// Lets go of what is due.
    pub(super) fn release(&mut self, me: ReplicaId, clock_ns: u64, checks: &mut Checks, mutation: Option<Mutation>) {
        let by_ns = if mutation == Some(Mutation::ReleaseEarly) { clock_ns + 1_000_000 } else { clock_ns };
        while let Some(due) = self.hold.release_due(by_ns) {
            checks.on_piece_released(me, due.data, clock_ns);
        }
    }

    pub(super) fn take_published(&mut self) -> Vec<(LogIndex, u64, i64)> {
        std::mem::take(&mut self.published)
    }

    /// How long nothing is due.
    pub(super) fn wait_ns(&self, clock_ns: u64) -> Option<u64> {
        self.hold.next_release_ns().map(|at_ns| at_ns.saturating_sub(clock_ns))
    }
}
