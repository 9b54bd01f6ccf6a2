//! What gateways tell of how early market data came, made into one sample per piece: the transit to the slowest gateway.
//!
//! A piece is unfair if any gateway had it after its release time. Gateways report each piece they got; the venue gathers the reports here
//! and feeds the samples to the delay d_h. A gateway that is silent is not waited for: a piece is judged when as many later ones are
//! under way as there is room for, by those that told, and who missed [`MISSES_MAX`] in a row is not waited for until it tells again.

use crate::{GATEWAYS_MAX, GatewayId};

/// Pieces in a row that a gateway may miss.
pub const MISSES_MAX: u32 = 8;

/// One piece, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Which.
    pub piece: u64,
    /// From its making to its arrival at the slowest gateway that told.
    pub transit_ns_max: i64,
    /// Which that was.
    pub slowest: GatewayId,
    /// Of the gateways that told, how many.
    pub told: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// 0 when empty; pieces count from 1.
    piece: u64,
    told: u64,
    transit_ns_max: i64,
    slowest: u16,
}

/// What came of one gateway's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportCounts {
    /// Taken.
    pub reports: u64,
    /// About a piece that was judged already, was told of before, or was never made.
    pub useless: u64,
    /// Pieces judged without it.
    pub missed: u64,
    missed_in_a_row: u32,
}

/// Reports by piece.
#[derive(Debug)]
pub struct Margins {
    slots: Vec<Slot>,
    gateways: Vec<ReportCounts>,
    /// Bits of gateways that are waited for.
    awaited: u64,
    made: u64,
}

impl Margins {
    /// For so many gateways, at most [`GATEWAYS_MAX`], and pieces under way, a power of two.
    ///
    /// # Panics
    /// Outside these.
    #[must_use]
    pub fn new(gateways: u16, pieces: usize) -> Self {
        assert!((1..=GATEWAYS_MAX).contains(&gateways), "{gateways} gateways: from 1 to {GATEWAYS_MAX}");
        assert!(pieces.is_power_of_two(), "{pieces} pieces under way: make it a power of two");
        Self {
            slots: vec![Slot::default(); pieces],
            gateways: vec![ReportCounts::default(); usize::from(gateways)],
            awaited: u64::MAX >> (64 - u32::from(gateways)),
            made: 0,
        }
    }

    /// A piece was sent to all gateways: its number, from 1, and the judgement of the one that had to make room.
    pub fn on_made(&mut self) -> (u64, Option<Judged>) {
        self.made += 1;
        let index = self.index(self.made);
        let forced = self.close(index);
        self.slots[index] = Slot { piece: self.made, told: 0, transit_ns_max: i64::MIN, slowest: 0 };
        (self.made, forced)
    }

    /// A gateway got a piece so long after it was made, by its clock. The judgement, once all that are waited for told.
    pub fn on_report(&mut self, gateway: GatewayId, piece: u64, transit_ns: i64) -> Option<Judged> {
        let index = self.index(piece);
        let counts = self.gateways.get_mut(gateway.index())?;
        let slot = &mut self.slots[index];
        let bit = 1_u64 << gateway.0;
        if piece == 0 || slot.piece != piece || slot.told & bit != 0 {
            counts.useless += 1;
            return None;
        }
        counts.reports += 1;
        counts.missed_in_a_row = 0;
        self.awaited |= bit;
        slot.told |= bit;
        if transit_ns > slot.transit_ns_max {
            (slot.transit_ns_max, slot.slowest) = (transit_ns, gateway.0);
        }
        if slot.told & self.awaited == self.awaited { self.close(index) } else { None }
    }

    /// What came of a gateway's reports; `None` for one that is not configured.
    #[must_use]
    pub fn counts(&self, gateway: GatewayId) -> Option<&ReportCounts> {
        self.gateways.get(gateway.index())
    }

    /// Whether pieces wait for a gateway's report.
    #[must_use]
    pub fn is_awaited(&self, gateway: GatewayId) -> bool {
        gateway.0 < 64 && self.awaited & (1 << gateway.0) != 0
    }

    fn index(&self, piece: u64) -> usize {
        usize::try_from(piece & (self.slots.len() as u64 - 1)).expect("below the number of slots")
    }

    /// Judges what is in a slot and empties it; `None` when it is empty, or nobody told.
    fn close(&mut self, index: usize) -> Option<Judged> {
        let slot = std::mem::take(&mut self.slots[index]);
        if slot.piece == 0 {
            return None;
        }
        for (gateway, counts) in self.gateways.iter_mut().enumerate() {
            if slot.told & (1 << gateway) == 0 {
                counts.missed += 1;
                counts.missed_in_a_row += 1;
                if counts.missed_in_a_row >= MISSES_MAX {
                    self.awaited &= !(1 << gateway);
                }
            }
        }
        let Slot { piece, transit_ns_max, slowest, told } = slot;
        (told != 0).then_some(Judged { piece, transit_ns_max, slowest: GatewayId(slowest), told: told.count_ones() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_judged_when_all_told() {
        let mut margins = Margins::new(3, 4);
        let (piece, forced) = margins.on_made();
        assert_eq!((piece, forced), (1, None));
        assert_eq!(margins.on_report(GatewayId(2), 1, 70), None);
        assert_eq!(margins.on_report(GatewayId(0), 1, 90), None);
        assert_eq!(margins.on_report(GatewayId(0), 1, 990), None, "told before");
        let judged = Judged { piece: 1, transit_ns_max: 90, slowest: GatewayId(0), told: 3 };
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
            let (piece, forced) = margins.on_made();
            judged_late += u32::from(forced.is_some());
            assert_eq!(margins.on_report(GatewayId(0), piece, 10), None);
        }
        assert_eq!((judged_late, margins.is_awaited(GatewayId(1))), (MISSES_MAX - 1, true));
        let (piece, _) = margins.on_made();
        assert!(margins.on_report(GatewayId(0), piece, 10).is_some(), "nobody else is waited for");
        let (piece, _) = margins.on_made();
        assert_eq!(margins.on_report(GatewayId(1), piece, 20), None, "it is back");
        assert_eq!(margins.on_report(GatewayId(0), piece, 10).unwrap().slowest, GatewayId(1));
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
