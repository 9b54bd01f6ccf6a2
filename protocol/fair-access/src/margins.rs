//! Turns the gateways' reports about the arrival of market data into one sample per publication: the transit time to the slowest
//! gateway.
//!
//! A publication is unfair if any gateway received it after its release time. Gateways report the arrival of each publication. The
//! venue collects the reports here, and the samples steer the delay d_h. A silent gateway cannot block this: if there is no room
//! for another publication in flight, the oldest is judged by the reports received so far. A gateway that missed [`MISSES_MAX`]
//! publications in a row, or whose link is lost, is not awaited until its next report.

use crate::{GATEWAYS_MAX, GatewayId};

/// Publications in a row that a gateway may miss.
pub const MISSES_MAX: u32 = 8;

/// One publication, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The publication's number.
    pub publication: u64,
    /// Time from its creation to its arrival at the slowest gateway that reported.
    pub transit_ns_max: i64,
    /// The slowest gateway.
    pub slowest: GatewayId,
    /// Number of gateways that reported.
    pub reported: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// 0 when empty; publications count from 1.
    publication: u64,
    reported: u64,
    transit_ns_max: i64,
    slowest: u16,
}

/// Counts of one gateway's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportCounts {
    /// Reports that counted.
    pub reports: u64,
    /// Reports about a publication that was already judged, already reported by this gateway, or never made.
    pub useless: u64,
    /// Publications judged without this gateway's report.
    pub missed: u64,
    missed_in_a_row: u32,
}

/// Collects reports by publication.
#[derive(Debug)]
pub struct Margins {
    slots: Vec<Slot>,
    gateways: Vec<ReportCounts>,
    /// Bit set of the awaited gateways.
    awaited: u64,
    made: u64,
}

impl Margins {
    /// `gateways` is at most [`GATEWAYS_MAX`]; `publications`, the number in flight, is a power of two.
    ///
    /// # Panics
    /// If either is out of range.
    #[must_use]
    pub fn new(gateways: u16, publications: usize) -> Self {
        assert!((1..=GATEWAYS_MAX).contains(&gateways), "{gateways} gateways: from 1 to {GATEWAYS_MAX}");
        assert!(publications.is_power_of_two(), "{publications} publications in flight: make it a power of two");
        Self {
            slots: vec![Slot::default(); publications],
            gateways: vec![ReportCounts::default(); usize::from(gateways)],
            awaited: u64::MAX >> (64 - u32::from(gateways)),
            made: 0,
        }
    }

    /// Records that a publication was sent to all gateways. Returns its number, from 1, and the judgement of the one that made room
    /// for it.
    pub fn on_made(&mut self) -> (u64, Option<Judged>) {
        self.made += 1;
        let index = self.index(self.made);
        let forced = self.close(index);
        self.slots[index] = Slot { publication: self.made, reported: 0, transit_ns_max: i64::MIN, slowest: 0 };
        (self.made, forced)
    }

    /// Takes a gateway's report that a publication arrived `transit_ns` after its creation, by the gateway's clock. Returns the
    /// judgement once all awaited reports have arrived.
    pub fn on_report(&mut self, gateway: GatewayId, publication: u64, transit_ns: i64) -> Option<Judged> {
        let index = self.index(publication);
        let counts = self.gateways.get_mut(gateway.index())?;
        let slot = &mut self.slots[index];
        let bit = 1_u64 << gateway.0;
        if (1..=self.made).contains(&publication) {
            // Even if the publication is already judged: otherwise a gateway that is always slowest would never be awaited again.
            self.awaited |= bit;
        }
        if publication == 0 || slot.publication != publication || slot.reported & bit != 0 {
            counts.useless += 1;
            return None;
        }
        counts.reports += 1;
        counts.missed_in_a_row = 0;
        slot.reported |= bit;
        if transit_ns > slot.transit_ns_max {
            (slot.transit_ns_max, slot.slowest) = (transit_ns, gateway.0);
        }
        if slot.reported & self.awaited == self.awaited { self.close(index) } else { None }
    }

    /// Awaits only these gateways; any other is awaited from its next report on. To be called before the first publication.
    pub fn await_only(&mut self, gateways: impl IntoIterator<Item = GatewayId>) {
        self.awaited = gateways
            .into_iter()
            .filter(|gateway| gateway.index() < self.gateways.len())
            .fold(0, |bits, gateway| bits | 1 << gateway.0);
    }

    /// A gateway's link is up: it is awaited.
    pub fn on_linked(&mut self, gateway: GatewayId) {
        if let Some(counts) = self.gateways.get_mut(gateway.index()) {
            counts.missed_in_a_row = 0;
            self.awaited |= 1 << gateway.0;
        }
    }

    /// A gateway's link is lost: it is not awaited until its next report. Returns the publications that waited for it alone, oldest
    /// first.
    pub fn on_lost(&mut self, gateway: GatewayId) -> Vec<Judged> {
        if gateway.index() >= self.gateways.len() {
            return Vec::new();
        }
        self.awaited &= !(1 << gateway.0);
        let newest = self.made;
        let oldest = (newest + 1).saturating_sub(self.slots.len() as u64).max(1);
        let judge = |publication| {
            let index = self.index(publication);
            let slot = self.slots[index];
            let is_complete = slot.publication == publication && slot.reported != 0 && slot.reported & self.awaited == self.awaited;
            if is_complete { self.close(index) } else { None }
        };
        (oldest..=newest).filter_map(judge).collect()
    }

    /// Counts of a gateway's reports; `None` if it is not configured.
    #[must_use]
    pub fn counts(&self, gateway: GatewayId) -> Option<&ReportCounts> {
        self.gateways.get(gateway.index())
    }

    /// Whether a gateway is awaited.
    #[must_use]
    pub fn is_awaited(&self, gateway: GatewayId) -> bool {
        gateway.0 < 64 && self.awaited & (1 << gateway.0) != 0
    }

    fn index(&self, publication: u64) -> usize {
        usize::try_from(publication & (self.slots.len() as u64 - 1)).expect("below the number of slots")
    }

    /// Judges the publication in a slot and empties the slot; `None` if there is none or it has no report.
    fn close(&mut self, index: usize) -> Option<Judged> {
        let slot = std::mem::take(&mut self.slots[index]);
        if slot.publication == 0 {
            return None;
        }
        for (gateway, counts) in self.gateways.iter_mut().enumerate() {
            if slot.reported & (1 << gateway) == 0 {
                counts.missed += 1;
                counts.missed_in_a_row += 1;
                if counts.missed_in_a_row >= MISSES_MAX {
                    self.awaited &= !(1 << gateway);
                }
            }
        }
        let Slot { publication, transit_ns_max, slowest, reported } = slot;
        (reported != 0).then_some(Judged {
            publication,
            transit_ns_max,
            slowest: GatewayId(slowest),
            reported: reported.count_ones(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_judged_when_all_have_reported() {
        let mut margins = Margins::new(3, 4);
        let (publication, forced) = margins.on_made();
        assert_eq!((publication, forced), (1, None));
        assert_eq!(margins.on_report(GatewayId(2), 1, 70), None);
        assert_eq!(margins.on_report(GatewayId(0), 1, 90), None);
        assert_eq!(margins.on_report(GatewayId(0), 1, 990), None, "reported before");
        let judged = Judged { publication: 1, transit_ns_max: 90, slowest: GatewayId(0), reported: 3 };
        assert_eq!(margins.on_report(GatewayId(1), 1, -5), Some(judged));
        assert_eq!(margins.on_report(GatewayId(1), 1, 5), None, "judged before");
        assert_eq!(margins.on_report(GatewayId(1), 9, 5), None, "never made");
        assert_eq!(margins.on_report(GatewayId(7), 1, 5), None, "unknown");
        assert_eq!(margins.counts(GatewayId(0)).unwrap().useless, 1);
        assert_eq!(margins.counts(GatewayId(1)).unwrap().useless, 2);
    }

    #[test]
    fn a_silent_gateway_is_not_waited_for_and_comes_back() {
        let mut margins = Margins::new(2, 4);
        let mut judged_late = 0;
        for _ in 1..4 + u64::from(MISSES_MAX) {
            let (publication, forced) = margins.on_made();
            judged_late += u32::from(forced.is_some());
            assert_eq!(margins.on_report(GatewayId(0), publication, 10), None);
        }
        assert_eq!((judged_late, margins.is_awaited(GatewayId(1))), (MISSES_MAX - 1, true));
        let (publication, _) = margins.on_made();
        assert!(margins.on_report(GatewayId(0), publication, 10).is_some(), "nobody else is waited for");
        let (publication, _) = margins.on_made();
        assert_eq!(margins.on_report(GatewayId(1), publication, 20), None, "it is back");
        assert_eq!(margins.on_report(GatewayId(0), publication, 10).unwrap().slowest, GatewayId(1));
    }

    #[test]
    fn a_lost_gateway_is_not_waited_for_from_that_moment_on() {
        let mut margins = Margins::new(8, 4);
        margins.await_only([GatewayId(0), GatewayId(1), GatewayId(2), GatewayId(99)]);
        let awaited: Vec<_> = (0..8).map(GatewayId).filter(|gateway| margins.is_awaited(*gateway)).collect();
        assert_eq!(awaited, [0, 1, 2].map(GatewayId), "gateways that are absent are not awaited");
        // All report the first publication, all but gateway 2 the second and the third, gateway 0 alone the fourth.
        for (publication, reported) in [(1, 3), (2, 2), (3, 2), (4, 1)] {
            assert_eq!(margins.on_made(), (publication, None));
            for gateway in 0..reported {
                let transit_ns = 10 * i64::from(gateway);
                let judged = margins.on_report(GatewayId(gateway), publication, transit_ns);
                assert_eq!(judged.is_some(), gateway == 2, "publication {publication}, gateway {gateway}");
            }
        }
        let judged = |publication| Judged { publication, transit_ns_max: 10, slowest: GatewayId(1), reported: 2 };
        assert_eq!(
            margins.on_lost(GatewayId(2)),
            [judged(2), judged(3)],
            "oldest first; gateway 1 has not reported the fourth yet"
        );
        assert_eq!(margins.on_report(GatewayId(1), 4, 10), Some(judged(4)));
        assert_eq!(margins.on_lost(GatewayId(99)), []);
        // It is awaited again from its next report on, even if that comes last, or once it is linked.
        let report_last_slowest = |margins: &mut Margins| {
            let (publication, _) = margins.on_made();
            let [first, second, slowest] =
                [(0, 10), (1, 10), (2, 70)].map(|(gateway, ns)| margins.on_report(GatewayId(gateway), publication, ns));
            (first.is_some() || second.is_some(), slowest.map(|judged| judged.slowest))
        };
        assert_eq!(report_last_slowest(&mut margins), (true, None), "judged before its report came");
        assert_eq!(report_last_slowest(&mut margins), (false, Some(GatewayId(2))));
        margins.on_lost(GatewayId(2));
        margins.on_linked(GatewayId(2));
        margins.on_linked(GatewayId(99));
        assert_eq!(report_last_slowest(&mut margins), (false, Some(GatewayId(2))));
    }

    #[test]
    fn with_nobody_left_nothing_is_judged() {
        let mut margins = Margins::new(1, 2);
        for _ in 0..100 {
            assert_eq!(margins.on_made().1, None);
        }
        assert!(!margins.is_awaited(GatewayId(0)));
    }
}
