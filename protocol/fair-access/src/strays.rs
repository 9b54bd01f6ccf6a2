//! Gateways whose transits do not fit the others'.
//!
//! A gateway that stamps too early (its clock jumped, drifts or lies) makes its orders look slow, and would drive the delay of everybody
//! up; so would one behind a broken link. Each gateway's recent median is compared with the median of all gateways' medians. What is further
//! away than allowed, either way, is a stray: its samples steer no delay until it is back within half of that, and whoever feeds
//! [`crate::resequence`] takes its orders as [`crate::resequence::Stamp::OnArrival`], so that they wait from their arrival: nobody
//! gains by stamping early more than what is allowed. They are counted; the operator sees the name. When all become slow together nobody
//! strays; and of whom nothing came for [`SILENT_NS_MAX`], what came before says nothing of the network as it is.

use crate::sliding::Sliding;
use crate::{GATEWAYS_MAX, GatewayId};

/// A gateway that is silent for longer is no measure for the others: a minute.
pub const SILENT_NS_MAX: u64 = 60_000_000_000;

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StraySettings {
    /// Gateways, at most [`GATEWAYS_MAX`].
    pub gateways: u16,
    /// How far a gateway's median may be from the others'.
    pub apart_max_ns: u64,
    /// Samples that a gateway's median is of.
    pub window: usize,
    /// Samples of a gateway between two looks at it.
    pub samples_per_look: u32,
}

/// Whether a sample may steer a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Fits,
    /// It comes from a gateway apart from the others.
    Stray,
}

#[derive(Debug)]
struct Watched {
    recent: Sliding,
    samples: u32,
    median_ns: Option<i64>,
    /// When its last sample came.
    heard_ns: u64,
    standing: Standing,
    strayed: u64,
}

/// Watches all gateways.
#[derive(Debug)]
pub struct Strays {
    settings: StraySettings,
    gateways: Vec<Watched>,
}

impl Strays {
    /// All fit.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways.
    #[must_use]
    pub fn new(settings: StraySettings) -> Self {
        assert!(settings.gateways <= GATEWAYS_MAX, "{} gateways, at most {GATEWAYS_MAX}", settings.gateways);
        let watched = || Watched {
            recent: Sliding::new(settings.window),
            samples: 0,
            median_ns: None,
            heard_ns: 0,
            standing: Standing::Fits,
            strayed: 0,
        };
        Self { settings, gateways: (0..settings.gateways).map(|_| watched()).collect() }
    }

    /// Takes a gateway's sample, and says whether it may steer. Samples of unknown gateways may not.
    pub fn on_transit(&mut self, now_ns: u64, gateway: GatewayId, transit_ns: i64) -> Standing {
        let Some(watched) = self.gateways.get_mut(gateway.index()) else { return Standing::Stray };
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
        watched.strayed += u64::from(watched.standing == Standing::Stray);
        watched.standing
    }

    fn look_at(&mut self, now_ns: u64, gateway: GatewayId) {
        let is_there = |watched: &&Watched| now_ns.saturating_sub(watched.heard_ns) <= SILENT_NS_MAX;
        let mut medians: Vec<i64> = self.gateways.iter().filter(is_there).filter_map(|watched| watched.median_ns).collect();
        medians.sort_unstable();
        let common_ns = medians[medians.len() / 2];
        let watched = &mut self.gateways[gateway.index()];
        // Of two nobody knows who strays.
        let apart_ns = watched.median_ns.filter(|_| medians.len() > 2).map_or(0, |median_ns| median_ns.abs_diff(common_ns));
        watched.standing = match watched.standing {
            Standing::Fits if apart_ns > self.settings.apart_max_ns => Standing::Stray,
            Standing::Stray if apart_ns <= self.settings.apart_max_ns / 2 => Standing::Fits,
            standing => standing,
        };
    }

    /// Whether a gateway fits; `None` for one that is not configured.
    #[must_use]
    pub fn standing(&self, gateway: GatewayId) -> Option<Standing> {
        self.gateways.get(gateway.index()).map(|watched| watched.standing)
    }

    /// Samples of a gateway that steered nothing.
    #[must_use]
    pub fn strayed_count(&self, gateway: GatewayId) -> u64 {
        self.gateways.get(gateway.index()).map_or(0, |watched| watched.strayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: StraySettings = StraySettings { gateways: 5, apart_max_ns: 100, window: 9, samples_per_look: 3 };

    /// Every gateway's samples, a round of each.
    fn feed_at(strays: &mut Strays, now_ns: u64, rounds: u32, transit_ns: impl Fn(u16) -> i64) {
        for round in 0..rounds {
            for gateway in 0..SETTINGS.gateways {
                strays.on_transit(now_ns, GatewayId(gateway), transit_ns(gateway) + i64::from(round % 3));
            }
        }
    }

    fn feed(strays: &mut Strays, rounds: u32, transit_ns: impl Fn(u16) -> i64) {
        feed_at(strays, 1_000, rounds, transit_ns);
    }

    fn named(strays: &Strays) -> Vec<u16> {
        (0..SETTINGS.gateways).filter(|gateway| strays.standing(GatewayId(*gateway)) == Some(Standing::Stray)).collect()
    }

    #[test]
    fn who_lies_either_way_is_named_and_comes_back() {
        let mut strays = Strays::new(SETTINGS);
        feed(&mut strays, 20, |_| 80);
        assert_eq!(named(&strays), []);
        feed(&mut strays, 20, |gateway| if gateway == 3 { 300 } else { 80 });
        assert_eq!(named(&strays), [3]);
        assert!(strays.strayed_count(GatewayId(3)) > 0 && strays.strayed_count(GatewayId(2)) == 0);
        feed(&mut strays, 20, |gateway| if gateway == 3 { 150 } else { 80 });
        assert_eq!(named(&strays), [3], "not within half");
        feed(&mut strays, 20, |_| 80);
        assert_eq!(named(&strays), []);
        feed(&mut strays, 20, |gateway| if gateway == 0 { -300 } else { 80 });
        assert_eq!(named(&strays), [0]);
    }

    /// What gateways were like that nobody sends by any more says nothing of what the network is like now.
    #[test]
    fn who_is_gone_is_no_measure() {
        let mut strays = Strays::new(SETTINGS);
        feed(&mut strays, 20, |_| 80);
        let mut now_ns = 1_000;
        let slow_for = |strays: &mut Strays, now_ns: &mut u64, rounds| {
            for round in 0..rounds {
                *now_ns += SILENT_NS_MAX / 100;
                for gateway in [0, 1] {
                    strays.on_transit(*now_ns, GatewayId(gateway), 5_000 + i64::from(round % 3));
                }
            }
        };
        slow_for(&mut strays, &mut now_ns, 90);
        assert_eq!(named(&strays), [0, 1], "the others may be there and send nothing");
        slow_for(&mut strays, &mut now_ns, 20);
        assert_eq!(named(&strays), [], "the network is slow for all who are there");
        // Who is back is a measure again, and so is measured.
        feed_at(&mut strays, now_ns, 20, |gateway| if gateway == 4 { 5_000 } else { 80 });
        assert_eq!(named(&strays), [4]);
    }

    #[test]
    fn when_all_become_slow_nobody_strays_for_long() {
        let mut strays = Strays::new(SETTINGS);
        feed(&mut strays, 20, |_| 80);
        feed(&mut strays, 20, |_| 5_000);
        assert_eq!(named(&strays), []);
        assert_eq!(strays.on_transit(1_000, GatewayId(9), 80), Standing::Stray, "unknown");
    }
}
