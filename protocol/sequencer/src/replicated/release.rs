//! How long market data is held: gateways report how long it was on its way, and d_h, which goes into the log, follows from that.
//!
//! Every replica publishes at the same entries, and reports to the leader how long after its making a publication was there. The
//! slowest counts: a publication is unfair when it came to any gateway after its release time. So the leader steers d_h to the
//! share that the operator named, and has each change logged, since all have to release by the same.
//!
//! Receivers of the relay trees, below the replicas, report too: samples, by their trees ([`ReleaseSteering::on_receivers`]). They have a
//! delay of their own, steered to the same share, and the longer one is in force. Each delay is then judged as if it alone were in force.
//! So the shorter one does not shrink to nothing while the other one covers for it; and the reports of receivers, which are some tenths of
//! a second old, do not make their delay swing.

use std::collections::VecDeque;

use walras_consensus::ReplicaId;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings};
use walras_fair_access::margins::{Judged, Margins};
use walras_fair_access::outliers::{OutlierSettings, Outliers, Standing};
use walras_fair_access::{GATEWAYS_MAX, GatewayId};
use walras_types::LogIndex;
use walras_wire::AccessDelays;

/// Publications that wait for the word of all gateways; a power of two.
const UNDER_WAY_MAX: usize = 64;

/// Reports that a gateway's median is of, and reports between two looks at it: publications are few, and one that lies should be
/// named soon.
const OUTLIER_WINDOW: usize = 31;
const REPORTS_PER_LOOK: u32 = 4;

/// Receivers that were silent for so long do not hold market data up any more.
const RECEIVERS_SILENT_NS: u64 = 5_000_000_000;

/// The transit of a report that does not count: no other is below it.
const NOTHING_NS: i64 = i64::MIN;

/// How d_h is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseRules {
    /// The rule and its bounds.
    pub delay: DelaySettings,
    /// A change smaller than this is not worth an entry.
    pub change_min_ns: u64,
    /// Two changes are at least so far apart.
    pub change_every_ns: u64,
    /// A gateway that has its publications so much sooner or later than the others, in the median, does not count: its clock is
    /// wrong, or its link.
    pub outlier_apart_max_ns: u64,
}

/// When the last receiver of a relay tree had a piece of market data: one sample of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverSample {
    /// From the entry's making to the release time that the piece had.
    pub held_ns: u64,
    /// How long after that time it was there; less than 0 where it came in time.
    pub late_ns: i64,
}

/// What receivers of relay trees reported to this leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Samples.
    pub samples: u64,
    /// Those that came to some receiver after their release time.
    pub late: u64,
    /// The delay that they need; `None` while none of them is heard.
    pub delay_ns: Option<u64>,
}

/// What has come of the publications that this leader saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseCounts {
    /// Judged.
    pub publications: u64,
    /// Of these, came to a gateway after their release time.
    pub unfair: u64,
    /// Of the last window, the share in millionths.
    pub recent_ppm: u32,
    /// Reports that did not count, because their gateway was an outlier.
    pub outlier_samples: u64,
    /// The gateways whose reports do not count now.
    pub outliers: Vec<GatewayId>,
    /// The members that nothing waits for: their link is lost, or they reported none of the latest publications. The others judge.
    pub silent: Vec<GatewayId>,
    /// Of receivers below the replicas.
    pub receivers: ReceiverCounts,
}

/// How a leader steers d_h: by what replicas report of publications, and by samples of receivers below them. The longer delay is in force.
#[derive(Debug)]
pub struct ReleaseSteering {
    rules: ReleaseRules,
    control: DelayControl,
    /// What receivers of the relay trees need, and when they were heard last.
    receivers: DelayControl,
    receivers_heard_ns: Option<u64>,
    /// Verdicts on publications, and on receivers' samples: what was in force counts, whichever delay it was.
    judged: DelayControl,
    judged_receivers: DelayControl,
    margins: Margins,
    outliers: Outliers,
    /// Of the publications under way the entry, the number and how long they are held, oldest first.
    made: VecDeque<(LogIndex, u64, u64)>,
    next_change_ns: u64,
    /// When [`wanted`](Self::wanted) was last called, which happens all the time.
    now_ns: u64,
}

impl ReleaseSteering {
    /// Goes on from the delay that is in force. Publications wait for the word of `linked`, and of each other replica from its
    /// first word on.
    #[must_use]
    pub fn new(rules: ReleaseRules, in_force_ns: u64, linked: impl Iterator<Item = ReplicaId>) -> Self {
        let from = |mut bounds: DelayBounds| {
            if in_force_ns > 0 {
                bounds.start_ns = in_force_ns.clamp(bounds.min_ns, bounds.max_ns);
            }
            bounds
        };
        let settings = match rules.delay {
            DelaySettings::Static { delay_ns } => DelaySettings::Static { delay_ns },
            DelaySettings::Stepped(mut stepped) => {
                stepped.bounds = from(stepped.bounds);
                DelaySettings::Stepped(stepped)
            }
            DelaySettings::Tracking(mut tracking) => {
                tracking.bounds = from(tracking.bounds);
                DelaySettings::Tracking(tracking)
            }
        };
        let verdicts = || DelayControl::new(DelaySettings::Static { delay_ns: 0 });
        let mut margins = Margins::new(GATEWAYS_MAX, UNDER_WAY_MAX);
        margins.await_only(linked.filter_map(gateway_of));
        Self {
            rules,
            control: DelayControl::new(settings),
            receivers: DelayControl::new(settings),
            receivers_heard_ns: None,
            judged: verdicts(),
            judged_receivers: verdicts(),
            margins,
            outliers: Outliers::new(OutlierSettings {
                gateways: GATEWAYS_MAX,
                apart_max_ns: rules.outlier_apart_max_ns,
                round_trip_max_ns: 0,
                window: OUTLIER_WINDOW,
                samples_per_look: REPORTS_PER_LOOK,
            }),
            made: VecDeque::with_capacity(UNDER_WAY_MAX),
            next_change_ns: 0,
            now_ns: 0,
        }
    }

    /// A publication was made at an entry, and is held for so long.
    pub fn on_made(&mut self, at: LogIndex, delay_ns: u64) {
        let (number, forced) = self.margins.on_made();
        if let Some(judged) = forced {
            self.judge(judged);
        }
        if self.made.len() == UNDER_WAY_MAX {
            self.made.pop_front();
        }
        self.made.push_back((at, number, delay_ns));
    }

    /// A gateway had the publication of an entry so long after it was made.
    pub fn on_arrival(&mut self, gateway: ReplicaId, at: LogIndex, transit_ns: i64) {
        let Some(gateway) = gateway_of(gateway) else { return };
        let Ok(place) = self.made.binary_search_by_key(&at, |made| made.0) else { return };
        // That it told is noted all the same, so that nothing waits for it.
        let counted_ns = match self.outliers.on_transit(self.now_ns, gateway, transit_ns) {
            Standing::Fits => transit_ns,
            Standing::Outlier => NOTHING_NS,
        };
        if let Some(judged) = self.margins.on_report(gateway, self.made[place].1, counted_ns) {
            self.judge(judged);
        }
    }

    /// A replica can report again.
    pub(super) fn on_linked(&mut self, replica: ReplicaId) {
        if let Some(gateway) = gateway_of(replica) {
            self.margins.on_linked(gateway);
        }
    }

    /// A replica cannot report: what waits only for its report is judged without it.
    pub(super) fn on_link_lost(&mut self, replica: ReplicaId) {
        if let Some(gateway) = gateway_of(replica) {
            self.margins.on_lost(gateway).into_iter().for_each(|judged| self.judge(judged));
        }
    }

    fn judge(&mut self, judged: Judged) {
        if judged.transit_ns_max == NOTHING_NS {
            return;
        }
        let Some(&(_, _, delay_ns)) = self.made.iter().find(|made| made.1 == judged.publication) else { return };
        let is_late = judged.transit_ns_max > i64::try_from(delay_ns).unwrap_or(i64::MAX);
        self.judged.on_verdict(is_late.into());
        if self.receivers_ns().is_some() {
            steer(&mut self.control, judged.transit_ns_max);
        } else {
            self.control.on_transit(judged.transit_ns_max);
            self.control.on_verdict(is_late.into());
        }
    }

    /// Receivers of the relay trees reported; without samples they say that they are there.
    pub fn on_receivers(&mut self, now_ns: u64, samples: &[ReceiverSample]) {
        self.receivers_heard_ns = Some(now_ns);
        for ReceiverSample { held_ns, late_ns } in samples {
            self.judged_receivers.on_verdict((*late_ns > 0).into());
            steer(&mut self.receivers, late_ns.saturating_add_unsigned(*held_ns));
        }
    }

    /// What receivers need, while any are heard.
    fn receivers_ns(&self) -> Option<u64> {
        let heard_ns = self.receivers_heard_ns?;
        let (samples, _) = self.judged_receivers.totals();
        let counts = samples > 0 && self.now_ns.saturating_sub(heard_ns) <= RECEIVERS_SILENT_NS;
        counts.then(|| self.receivers.delay_ns())
    }

    /// What is to be in force from now on, if that is worth an entry. The entry also has how long orders wait.
    pub fn wanted(&mut self, now_ns: u64, in_force: AccessDelays, sequencing_ns: u64) -> Option<AccessDelays> {
        self.now_ns = now_ns;
        let release_ns = self.control.delay_ns().max(self.receivers_ns().unwrap_or(0));
        if now_ns < self.next_change_ns || release_ns.abs_diff(in_force.release_ns) < self.rules.change_min_ns.max(1) {
            return None;
        }
        self.next_change_ns = now_ns.saturating_add(self.rules.change_every_ns);
        Some(AccessDelays { sequencing_ns, release_ns })
    }

    /// What came of the publications so far, of these members.
    #[must_use]
    pub fn counts(&self, members: impl Iterator<Item = ReplicaId>) -> ReleaseCounts {
        let (publications, unfair) = self.judged.totals();
        let (samples, late) = self.judged_receivers.totals();
        let gateways = (0..GATEWAYS_MAX).map(GatewayId);
        let is_outlier = |gateway: &GatewayId| self.outliers.standing(*gateway) == Some(Standing::Outlier);
        ReleaseCounts {
            publications,
            unfair,
            recent_ppm: self.judged.recent().0,
            outlier_samples: gateways.clone().map(|gateway| self.outliers.outlier_samples(gateway)).sum(),
            outliers: gateways.filter(is_outlier).collect(),
            silent: members.filter_map(gateway_of).filter(|gateway| !self.margins.is_awaited(*gateway)).collect(),
            receivers: ReceiverCounts { samples, late, delay_ns: self.receivers_ns() },
        }
    }
}

/// Gives a delay a sample, and the verdict that would have come of it now.
fn steer(control: &mut DelayControl, transit_ns: i64) {
    let is_late = transit_ns > i64::try_from(control.delay_ns()).unwrap_or(i64::MAX);
    control.on_transit(transit_ns);
    control.on_verdict(is_late.into());
}

/// The gateway that a replica is; `None` for one with a number that no gateway can have.
fn gateway_of(replica: ReplicaId) -> Option<GatewayId> {
    u16::try_from(replica.get()).ok().filter(|id| *id < GATEWAYS_MAX).map(GatewayId)
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::{Ppm, Stepped, Tracking};

    use super::*;

    fn id(id: u64) -> ReplicaId {
        ReplicaId::new(id).unwrap()
    }

    fn ids(ids: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = ReplicaId> {
        ids.map(id)
    }

    fn stepped(target: u32) -> ReleaseRules {
        let bounds = DelayBounds { min_ns: 0, max_ns: 1_000_000, start_ns: 100_000 };
        let stepped = Stepped { bounds, target: Ppm(target), window: 20, step_ns: 5_000, samples_per_step: 1 };
        rules(DelaySettings::Stepped(stepped), 5_000)
    }

    fn rules(delay: DelaySettings, change_min_ns: u64) -> ReleaseRules {
        ReleaseRules { delay, change_min_ns, change_every_ns: 100, outlier_apart_max_ns: 500_000 }
    }

    /// Replicas have publications after 100 us, receivers below them after 400 us: d_h covers the receivers while they are there, and
    /// comes back to what replicas need when nothing is heard of them, without a time in which these are late.
    #[test]
    fn receivers_raise_the_delay_while_they_are_there() {
        let bounds = DelayBounds { min_ns: 0, max_ns: 1_000_000, start_ns: 200_000 };
        let tracking = Tracking { bounds, target: Ppm(50_000), step_ns: 4_000, level_window: 31 };
        let mut steering = ReleaseSteering::new(rules(DelaySettings::Tracking(tracking), 0), 0, ids(1..=3));
        let mut in_force = AccessDelays { sequencing_ns: 0, release_ns: 200_000 };
        let mut publication = 0;
        let mut run = |steering: &mut ReleaseSteering, count: u64, receivers_ns: Option<i64>| {
            for _ in 0..count {
                publication += 1;
                let (now_ns, held_ns) = (publication * 10_000_000, in_force.release_ns);
                let jitter_ns = (publication * 7_919 % 100) as i64 * 200;
                steering.on_made(LogIndex(publication), held_ns);
                (1..=3).for_each(|gateway| steering.on_arrival(id(gateway), LogIndex(publication), 100_000 + jitter_ns));
                if let Some(transit_ns) = receivers_ns {
                    let late_ns = transit_ns + jitter_ns - held_ns as i64;
                    steering.on_receivers(now_ns, &[ReceiverSample { held_ns, late_ns }]);
                }
                in_force = steering.wanted(now_ns, in_force, 0).unwrap_or(in_force);
            }
            (in_force.release_ns, steering.counts(ids(1..=3)))
        };
        let (alone_ns, counts) = run(&mut steering, 2_000, None);
        assert!((110_000..130_000).contains(&alone_ns) && counts.receivers == ReceiverCounts::default(), "{alone_ns}: {counts:?}");
        let (with_ns, counts) = run(&mut steering, 3_000, Some(400_000));
        let ReceiverCounts { samples, late, delay_ns } = counts.receivers;
        assert!(
            (410_000..430_000).contains(&with_ns) && delay_ns.is_some_and(|ns| ns.abs_diff(with_ns) < 5_000),
            "{with_ns}: {counts:?}"
        );
        assert!(samples == 3_000 && (100..300).contains(&late), "{counts:?}");
        let unfair = counts.unfair;
        let (after_ns, counts) = run(&mut steering, 2_000, None);
        assert!(after_ns.abs_diff(alone_ns) < 15_000 && counts.receivers.delay_ns.is_none(), "{after_ns}: {counts:?}");
        assert!(counts.unfair - unfair < 160, "{counts:?}: 5 % of the 1,500 that were held for replicas alone, and no more");
        // Receivers that are nearer than the replicas change nothing.
        let (near_ns, _) = run(&mut steering, 2_000, Some(20_000));
        assert!(near_ns.abs_diff(alone_ns) < 15_000, "{near_ns}");
        // Nor does what no allowed delay covers.
        let (far_ns, _) = run(&mut steering, 500, Some(i64::MAX / 2));
        assert!(far_ns <= 1_000_000, "{far_ns}");
    }

    /// Publications each of which the slowest of three gateways has after 300 us: d_h finds its way there, however it began.
    #[test]
    fn the_delay_comes_to_what_the_slowest_gateway_needs() {
        for start_ns in [0, 600_000] {
            let mut steering = ReleaseSteering::new(stepped(50_000), start_ns, ids(1..=3));
            let mut in_force = AccessDelays { sequencing_ns: 7, release_ns: start_ns };
            let mut changes = 0;
            for publication in 1..1_000_u64 {
                steering.on_made(LogIndex(10 * publication), in_force.release_ns);
                for (gateway, transit_ns) in [(1, 80_000), (2, 300_000), (3, 120_000)] {
                    steering.on_arrival(id(gateway), LogIndex(10 * publication), transit_ns);
                    steering.on_arrival(id(gateway), LogIndex(10 * publication + 1), 900_000);
                }
                steering.on_arrival(id(99), LogIndex(10 * publication), 900_000);
                if let Some(wanted) = steering.wanted(1_000 * publication, in_force, 7) {
                    assert_eq!(wanted.sequencing_ns, 7, "the other delay is told with it");
                    in_force = wanted;
                    changes += 1;
                }
            }
            let counts = steering.counts(ids(1..=3));
            assert!((250_000..=420_000).contains(&in_force.release_ns), "{in_force:?} after a start at {start_ns}");
            assert!(counts.publications > 900 && counts.unfair > 0 && changes > 10, "{counts:?}, {changes} changes");
        }
    }

    #[test]
    fn changes_are_few() {
        let mut steering = ReleaseSteering::new(rules(DelaySettings::Static { delay_ns: 300_000 }, 0), 0, ids(1..=3));
        let nothing = AccessDelays::default();
        let wanted = steering.wanted(50, nothing, 0).unwrap();
        assert_eq!(wanted.release_ns, 300_000);
        assert_eq!(steering.wanted(149, nothing, 0), None, "the first may still be on its way");
        assert_eq!(steering.wanted(150, nothing, 0), Some(wanted), "it was lost");
        assert_eq!(steering.wanted(1_000, wanted, 0), None);
    }

    /// A replica's clock jumps ahead, so that all it reports looks late: others' market data does not wait for it.
    #[test]
    fn a_clock_that_is_wrong_delays_nobody() {
        let settled_ns = |wrong_ns: i64| {
            let mut steering = ReleaseSteering::new(stepped(50_000), 300_000, ids(1..=4));
            let mut in_force = AccessDelays { sequencing_ns: 0, release_ns: 300_000 };
            let mut highest_ns = 0;
            for publication in 1..1_000_u64 {
                steering.on_made(LogIndex(publication), in_force.release_ns);
                for (gateway, transit_ns) in [(1, 80_000), (2, 250_000), (3, 120_000), (4, 200_000 + wrong_ns)] {
                    steering.on_arrival(id(gateway), LogIndex(publication), transit_ns);
                }
                in_force = steering.wanted(1_000 * publication, in_force, 0).unwrap_or(in_force);
                highest_ns = highest_ns.max(in_force.release_ns);
            }
            (in_force.release_ns, highest_ns, steering.counts(ids(1..=4)))
        };
        let (right_ns, ..) = settled_ns(0);
        for wrong_ns in [700_000, 60_000_000_000, -60_000_000_000] {
            let (with_ns, highest_ns, counts) = settled_ns(wrong_ns);
            assert!(with_ns.abs_diff(right_ns) <= 50_000, "{wrong_ns}: {with_ns} instead of {right_ns}");
            assert!(highest_ns <= 500_000, "{wrong_ns}: {highest_ns} before it was named");
            assert!(
                counts.outliers == [GatewayId(4)] && counts.outlier_samples > 900 && counts.publications > 900,
                "{wrong_ns}: {counts:?}"
            );
        }
        // When all are slow, none is an outlier.
        let mut steering = ReleaseSteering::new(stepped(50_000), 300_000, ids(1..=4));
        for publication in 1..100 {
            steering.on_made(LogIndex(publication), 300_000);
            (1..=3).for_each(|gateway| steering.on_arrival(id(gateway), LogIndex(publication), 9_000_000));
        }
        let counts = steering.counts(ids(1..=4));
        assert!(counts.outliers.is_empty() && counts.unfair == counts.publications && counts.publications > 50, "{counts:?}");
    }

    /// Gateways that are configured and not there are not waited for after a while.
    #[test]
    fn the_silent_are_not_waited_for() {
        let mut steering = ReleaseSteering::new(stepped(50_000), 0, ids(1..=3));
        for publication in 1..=200 {
            steering.on_made(LogIndex(publication), 100_000);
            steering.on_arrival(id(1), LogIndex(publication), 80_000);
        }
        let counts = steering.counts(ids(1..=3));
        assert!(counts.publications > 190 && counts.silent == [GatewayId(2), GatewayId(3)], "{counts:?}");
    }

    /// A replica ends: from then on publications are judged by the others as they come, and the leader names it.
    #[test]
    fn a_lost_replica_is_not_waited_for_at_all() {
        let mut steering = ReleaseSteering::new(stepped(50_000), 100_000, ids(1..=3));
        let publish = |steering: &mut ReleaseSteering, publication: u64, tell: std::ops::RangeInclusive<u64>, transit_ns: i64| {
            steering.on_made(LogIndex(publication), 100_000);
            tell.for_each(|gateway| steering.on_arrival(id(gateway), LogIndex(publication), transit_ns));
        };
        (1..=10).for_each(|publication| publish(&mut steering, publication, 1..=3, 80_000));
        // Five more come while nobody knows yet that replica 3 is gone: late, since the cluster was busy with that.
        (11..=15).for_each(|publication| publish(&mut steering, publication, 1..=2, 900_000));
        let before = steering.counts(ids(1..=3));
        assert_eq!((before.publications, before.unfair, before.silent), (10, 0, vec![]));
        steering.on_link_lost(id(3));
        let after = steering.counts(ids(1..=3));
        assert_eq!((after.publications, after.unfair, after.silent), (15, 5, vec![GatewayId(3)]));
        publish(&mut steering, 16, 1..=2, 80_000);
        assert_eq!(steering.counts(ids(1..=3)).publications, 16);
        steering.on_linked(id(3));
        publish(&mut steering, 17, 1..=2, 80_000);
        let back = steering.counts(ids(1..=3));
        assert_eq!((back.publications, back.silent), (16, vec![]));
        steering.on_link_lost(id(99));
    }
}
