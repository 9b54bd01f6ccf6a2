//! Outliers: gateways whose transit times do not fit the others'.
//!
//! A gateway that stamps too early, because its clock jumped, drifts or lies, makes its orders look slow and would raise the delay
//! for everyone. So would a gateway behind a broken link. Each gateway's recent median is compared with the median of all gateways'
//! medians. A gateway that differs by more than allowed, in either direction, is an outlier until it differs by less than half of
//! that. Meanwhile its samples do not steer the delay, and its orders enter [`crate::resequence`] as
//! [`crate::resequence::Stamp::OnArrival`]. So stamping early gains at most the allowed difference. The samples are counted, and
//! the operator sees which gateway it is.
//!
//! Distance is no lie. A gateway that is far away is compared with allowance for the round trip to it, as the sequencer measures it
//! ([`Outliers::on_round_trip`]): no message can have been under way for longer. A gateway that delays its answers on purpose gains
//! that allowance, and no more than [`OutlierSettings::round_trip_max_ns`].
//!
//! If all gateways become slow together, none is an outlier. Samples older than [`SILENT_NS_MAX`] are ignored.

use std::collections::VecDeque;

use crate::sliding::Sliding;
use crate::{GATEWAYS_MAX, GatewayId};

/// A gateway that was silent for longer is not compared with the others: one minute.
pub const SILENT_NS_MAX: u64 = 60_000_000_000;

/// Round trips of which the shortest counts.
const ROUND_TRIPS: usize = 8;

/// Settings of the outlier detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierSettings {
    /// Number of gateways, at most [`GATEWAYS_MAX`].
    pub gateways: u16,
    /// Largest allowed difference of a gateway's median from the others'.
    pub apart_max_ns: u64,
    /// Longest round trip that counts as distance: what a longer one would need, no allowed delay covers.
    pub round_trip_max_ns: u64,
    /// Number of samples in a gateway's median.
    pub window: usize,
    /// Number of a gateway's samples between two comparisons.
    pub samples_per_look: u32,
}

/// Whether a gateway's samples may steer the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They may.
    Fits,
    /// They may not: the gateway differs too much from the others.
    Outlier,
}

#[derive(Debug)]
struct Watched {
    recent: Sliding,
    samples: u32,
    median_ns: Option<i64>,
    /// Time of its last sample.
    heard_ns: u64,
    standing: Standing,
    outlier_samples: u64,
    /// The last round trips.
    round_trips: VecDeque<u64>,
}

/// Compares all gateways.
#[derive(Debug)]
pub struct Outliers {
    settings: OutlierSettings,
    gateways: Vec<Watched>,
}

impl Outliers {
    /// Initially no gateway is an outlier.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways.
    #[must_use]
    pub fn new(settings: OutlierSettings) -> Self {
        assert!(settings.gateways <= GATEWAYS_MAX, "{} gateways, at most {GATEWAYS_MAX}", settings.gateways);
        let watched = || Watched {
            recent: Sliding::new(settings.window),
            samples: 0,
            median_ns: None,
            heard_ns: 0,
            standing: Standing::Fits,
            outlier_samples: 0,
            round_trips: VecDeque::new(),
        };
        Self { settings, gateways: (0..settings.gateways).map(|_| watched()).collect() }
    }

    /// Takes a gateway's sample; returns whether it may steer the delay. Samples of unknown gateways may not.
    pub fn on_transit(&mut self, now_ns: u64, gateway: GatewayId, transit_ns: i64) -> Standing {
        let Some(watched) = self.gateways.get_mut(gateway.index()) else { return Standing::Outlier };
        if now_ns.saturating_sub(watched.heard_ns) > SILENT_NS_MAX {
            watched.recent.clear();
            watched.median_ns = None;
        }
        watched.heard_ns = now_ns;
        watched.recent.push(transit_ns);
        watched.samples += 1;
        if watched.samples >= self.settings.samples_per_look {
            watched.samples = 0;
            watched.median_ns = watched.recent.median();
            self.look_at(now_ns, gateway);
        }
        let watched = &mut self.gateways[gateway.index()];
        watched.outlier_samples += u64::from(watched.standing == Standing::Outlier);
        watched.standing
    }

    /// Takes the time from a message to a gateway until its answer. Of the last eight the shortest counts, which is the way's and not
    /// that of a busy machine. Those of unknown gateways are ignored.
    pub fn on_round_trip(&mut self, gateway: GatewayId, round_trip_ns: u64) {
        let Some(watched) = self.gateways.get_mut(gateway.index()) else { return };
        if watched.round_trips.len() == ROUND_TRIPS {
            watched.round_trips.pop_front();
        }
        watched.round_trips.push_back(round_trip_ns);
    }

    fn look_at(&mut self, now_ns: u64, gateway: GatewayId) {
        let is_there = |watched: &&Watched| now_ns.saturating_sub(watched.heard_ns) <= SILENT_NS_MAX;
        let mut medians: Vec<i64> = self.gateways.iter().filter(is_there).filter_map(|watched| watched.median_ns).collect();
        medians.sort_unstable();
        let common_ns = medians[medians.len() / 2];
        let watched = &mut self.gateways[gateway.index()];
        // Of two gateways, either may be the outlier.
        let apart_ns = watched.median_ns.filter(|_| medians.len() > 2).map_or(0, |median_ns| median_ns.abs_diff(common_ns));
        let round_trip_ns = watched.round_trips.iter().min().map_or(0, |ns| *ns).min(self.settings.round_trip_max_ns);
        // Only a longer transit can come of distance.
        let far_ns = if watched.median_ns > Some(common_ns) { round_trip_ns } else { 0 };
        let apart_ns = apart_ns.saturating_sub(far_ns);
        watched.standing = match watched.standing {
            Standing::Fits if apart_ns > self.settings.apart_max_ns => Standing::Outlier,
            Standing::Outlier if apart_ns <= self.settings.apart_max_ns / 2 => Standing::Fits,
            standing => standing,
        };
    }

    /// A gateway's standing; `None` if it is not configured.
    #[must_use]
    pub fn standing(&self, gateway: GatewayId) -> Option<Standing> {
        self.gateways.get(gateway.index()).map(|watched| watched.standing)
    }

    /// Number of a gateway's samples that were ignored.
    #[must_use]
    pub fn outlier_samples(&self, gateway: GatewayId) -> u64 {
        self.gateways.get(gateway.index()).map_or(0, |watched| watched.outlier_samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: OutlierSettings =
        OutlierSettings { gateways: 5, apart_max_ns: 100, round_trip_max_ns: 10_000, window: 9, samples_per_look: 3 };

    /// Feeds rounds of one sample per gateway.
    fn feed_at(outliers: &mut Outliers, now_ns: u64, rounds: u32, transit_ns: impl Fn(u16) -> i64) {
        for round in 0..rounds {
            for gateway in 0..SETTINGS.gateways {
                outliers.on_transit(now_ns, GatewayId(gateway), transit_ns(gateway) + i64::from(round % 3));
            }
        }
    }

    fn feed(outliers: &mut Outliers, rounds: u32, transit_ns: impl Fn(u16) -> i64) {
        feed_at(outliers, 1_000, rounds, transit_ns);
    }

    fn named(outliers: &Outliers) -> Vec<u16> {
        (0..SETTINGS.gateways).filter(|gateway| outliers.standing(GatewayId(*gateway)) == Some(Standing::Outlier)).collect()
    }

    #[test]
    fn who_lies_either_way_is_named_and_comes_back() {
        let mut outliers = Outliers::new(SETTINGS);
        feed(&mut outliers, 20, |_| 80);
        assert_eq!(named(&outliers), []);
        feed(&mut outliers, 20, |gateway| if gateway == 3 { 300 } else { 80 });
        assert_eq!(named(&outliers), [3]);
        assert!(outliers.outlier_samples(GatewayId(3)) > 0 && outliers.outlier_samples(GatewayId(2)) == 0);
        feed(&mut outliers, 20, |gateway| if gateway == 3 { 150 } else { 80 });
        assert_eq!(named(&outliers), [3], "not within half");
        feed(&mut outliers, 20, |_| 80);
        assert_eq!(named(&outliers), []);
        feed(&mut outliers, 20, |gateway| if gateway == 0 { -300 } else { 80 });
        assert_eq!(named(&outliers), [0]);
    }

    /// 5 us away, where 100 ns apart are allowed: the round trip tells distance from a lie.
    #[test]
    fn a_gateway_that_is_far_away_is_none_and_one_that_only_says_so_is() {
        let mut outliers = Outliers::new(SETTINGS);
        let far = |gateway| if gateway == 3 { 5_000 } else { 80 };
        feed(&mut outliers, 20, far);
        assert_eq!(named(&outliers), [3], "nobody knows how far it is");
        for round_trip_ns in [90_000, 10_000, 11_000] {
            outliers.on_round_trip(GatewayId(3), round_trip_ns);
        }
        feed(&mut outliers, 20, far);
        assert_eq!(named(&outliers), []);
        feed(&mut outliers, 20, |gateway| if gateway == 3 { 10_300 } else { 80 });
        assert_eq!(named(&outliers), [3], "longer than there and back");
        feed(&mut outliers, 20, |gateway| if gateway == 3 { -300 } else { 80 });
        assert_eq!(named(&outliers), [3], "no distance makes a transit shorter");
        for _ in 0..ROUND_TRIPS {
            outliers.on_round_trip(GatewayId(3), 200);
        }
        feed(&mut outliers, 20, far);
        assert_eq!(named(&outliers), [3], "it is near now");
        for gateway in [3, 9] {
            (0..ROUND_TRIPS).for_each(|_| outliers.on_round_trip(GatewayId(gateway), u64::MAX));
        }
        feed(&mut outliers, 20, |gateway| if gateway == 3 { 10_300 } else { 80 });
        assert_eq!(named(&outliers), [3], "beyond what counts as distance");
    }

    /// Old samples of gateways that carry no orders any more say nothing about the present network.
    #[test]
    fn who_is_gone_is_no_measure() {
        let mut outliers = Outliers::new(SETTINGS);
        feed(&mut outliers, 20, |_| 80);
        let mut now_ns = 1_000;
        let slow_for = |outliers: &mut Outliers, now_ns: &mut u64, rounds| {
            for round in 0..rounds {
                *now_ns += SILENT_NS_MAX / 100;
                for gateway in [0, 1] {
                    outliers.on_transit(*now_ns, GatewayId(gateway), 5_000 + i64::from(round % 3));
                }
            }
        };
        slow_for(&mut outliers, &mut now_ns, 90);
        assert_eq!(named(&outliers), [0, 1], "the others may be there and send nothing");
        slow_for(&mut outliers, &mut now_ns, 20);
        assert_eq!(named(&outliers), [], "the network is slow for all who are there");
        // A gateway that carries orders again is compared again.
        feed_at(&mut outliers, now_ns, 20, |gateway| if gateway == 4 { 5_000 } else { 80 });
        assert_eq!(named(&outliers), [4]);
    }

    #[test]
    fn when_all_become_slow_none_is_an_outlier_for_long() {
        let mut outliers = Outliers::new(SETTINGS);
        feed(&mut outliers, 20, |_| 80);
        feed(&mut outliers, 20, |_| 5_000);
        assert_eq!(named(&outliers), []);
        assert_eq!(outliers.on_transit(1_000, GatewayId(9), 80), Standing::Outlier, "unknown");
    }
}
