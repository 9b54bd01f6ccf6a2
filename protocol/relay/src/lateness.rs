//! How late pieces of market data come to a receiver that holds them: against the release time that each packet names.
//!
//! A receiver reports a sample up the tree ([`Lateness::report`]). Relays pass on the greatest of each ([`Reports`]), and the venue steers
//! the time for which it holds market data by what arrives at the sender.
//!
//! All nodes have to sample the same pieces, though they do not agree on any and some miss packets. A piece is named by its release time.
//! Of each slot of [`SLOT_NS`] of release times the piece with the least hash counts. So a report is bounded at any rate, and at a low one
//! every piece counts.
//!
//! *Invariants*
//! - What is remembered is bounded, and costs the same for each packet.
//! - A report counts only if the node above passed the piece on itself, and the piece is that of its slot. So a node that lies makes nobody
//!   wait for pieces that never were, and pushes out none that others report.

use crate::deadline::{Gather, Maximum, Report, ReportSettings, SAMPLES_MAX};

/// The length of a slot of release times, in which one piece counts: some 48 in an interval of 100 ms, fewer than a report has room for.
pub const SLOT_NS: u64 = 1 << 21;
/// How long after its end a slot is reported: stragglers until then count.
pub const SETTLE_NS: u64 = 25_000_000;
/// Slots that are remembered: half a second.
const SLOTS: usize = 256;

/// The piece of a slot that counts, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece<T> {
    /// Its release time; 0 where there is none.
    release_ns: u64,
    value: T,
}

/// By slot, modulo their number.
#[derive(Clone, Debug)]
struct Ring<T>(Box<[Piece<T>]>);

impl<T: Copy + Default> Ring<T> {
    fn new() -> Self {
        Self(vec![Piece::default(); SLOTS].into())
    }

    /// The piece in whose place one with this release time belongs.
    fn place(&mut self, release_ns: u64) -> &mut Piece<T> {
        &mut self.0[place(release_ns / SLOT_NS)]
    }

    /// Of this slot.
    fn of_slot(&self, slot: u64) -> Option<&Piece<T>> {
        let piece = &self.0[place(slot)];
        (piece.release_ns > 0 && piece.release_ns / SLOT_NS == slot).then_some(piece)
    }
}

fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

/// Whether a piece takes the place of another one: it is of a later slot, or counts in the same one.
fn replaces(release_ns: u64, known_ns: u64) -> bool {
    let (slot, known) = (release_ns / SLOT_NS, known_ns / SLOT_NS);
    known_ns == 0 || slot > known || (slot == known && hash(release_ns) < hash(known_ns))
}

/// Which piece of a slot counts does not depend on when it is in the slot: release times have a grain of the publishing interval.
fn hash(release_ns: u64) -> u64 {
    let mixed = (release_ns ^ (release_ns >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// What a receiver notes until its next report.
#[derive(Debug)]
pub struct Lateness {
    /// How late the last packet of the piece came; less than 0 where it came in time.
    slots: Ring<i64>,
    /// Slots before this one were reported.
    reported: u64,
    pieces: u64,
    late: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { slots: Ring::new(), reported: 0, pieces: 0, late: 0 }
    }
}

impl Lateness {
    /// The first copy of a packet arrives, by the clock by which the receiver releases. Packets without a release time do not count.
    pub fn packet(&mut self, now_ns: u64, release_ns: u64) {
        if release_ns == 0 {
            return;
        }
        let late_ns = signed(now_ns, release_ns);
        self.pieces += 1;
        self.late += u64::from(late_ns > 0);
        if release_ns / SLOT_NS < self.reported {
            return;
        }
        let known = self.slots.place(release_ns);
        if known.release_ns == release_ns {
            known.value = known.value.max(late_ns);
        } else if replaces(release_ns, known.release_ns) {
            *known = Piece { release_ns, value: late_ns };
        }
    }

    /// The samples of the slots that are over by now, in order: at most [`SAMPLES_MAX`], the latest.
    pub fn report(&mut self, now_ns: u64) -> Vec<Maximum> {
        let over = now_ns.saturating_sub(SETTLE_NS) / SLOT_NS;
        // A clock that was set back has slots reported twice, which counts once.
        let from = std::mem::replace(&mut self.reported, over).max(over.saturating_sub(SAMPLES_MAX as u64));
        let of = |slot| self.slots.of_slot(slot).map(|piece| Maximum { packet: piece.release_ns, delay_ns: piece.value });
        (from..over).filter_map(of).collect()
    }

    /// Packets with a release time so far.
    #[must_use]
    pub const fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Those of them that came after it.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }
}

fn signed(later_ns: u64, earlier_ns: u64) -> i64 {
    let apart_ns = i64::try_from(later_ns.abs_diff(earlier_ns)).unwrap_or(i64::MAX);
    if later_ns >= earlier_ns { apart_ns } else { -apart_ns }
}

/// Pieces that a node passed on lately.
#[derive(Clone, Debug)]
pub struct Pieces(Ring<u64>);

impl Default for Pieces {
    fn default() -> Self {
        Self(Ring::new())
    }
}

impl Pieces {
    /// A packet is passed on. The sender knows for how long the piece is held; others say 0.
    pub fn passed(&mut self, release_ns: u64, held_ns: u64) {
        let known = self.0.place(release_ns);
        if release_ns > 0 && replaces(release_ns, known.release_ns) {
            *known = Piece { release_ns, value: held_ns };
        }
    }

    /// How long a piece is held; `None` where it is not the piece of its slot, or where the slot is forgotten.
    #[must_use]
    pub fn held_ns(&self, release_ns: u64) -> Option<u64> {
        self.0.of_slot(release_ns / SLOT_NS).filter(|piece| piece.release_ns == release_ns).map(|piece| piece.value)
    }
}

/// What nodes below report, at a relay or at the sender.
#[derive(Debug)]
pub struct Reports {
    gather: Gather,
    interval_ns: u64,
    next_ns: u64,
}

impl Reports {
    /// For reports of this number of nodes, which are numbered from 0.
    #[must_use]
    pub fn new(settings: ReportSettings, nodes: usize) -> Self {
        Self { gather: Gather::new(settings, nodes), interval_ns: settings.interval_ns, next_ns: 0 }
    }

    /// A node below reports. Samples of pieces that this node does not know do not count.
    pub fn on_late(&mut self, now_ns: u64, node: u32, mut samples: Vec<Maximum>, pieces: &Pieces) {
        samples.retain(|sample| pieces.held_ns(sample.packet).is_some());
        let report = Report { quantile_ns: None, maxima: samples };
        // What no node of the tree could have sent does not count.
        let _ = self.gather.report(now_ns, node as usize, &report);
    }

    /// This node's own report, where one is due and any node below is there. Without samples it says that there is one.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Vec<Maximum>> {
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns.saturating_add(self.interval_ns);
        let samples = self.gather.take(now_ns).maxima;
        (!samples.is_empty() || self.gather.hears_any(now_ns)).then_some(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SLOT_NS * 500;

    #[test]
    fn a_slow_feed_is_reported_whole_once_its_slots_are_over() {
        let mut lateness = Lateness::default();
        lateness.packet(7, 0);
        for (release_ns, late_ns) in [(S, -400), (S + 5 * SLOT_NS, 90), (S + 9 * SLOT_NS, 0)] {
            lateness.packet(release_ns.saturating_add_signed(late_ns), release_ns);
        }
        // The second packet of a piece is later than the first.
        lateness.packet(S + 200, S);
        assert_eq!(lateness.report(S + 2 * SLOT_NS), [], "stragglers may come");
        let samples = lateness.report(S + 7 * SLOT_NS + SETTLE_NS);
        let expected = [Maximum { packet: S, delay_ns: 200 }, Maximum { packet: S + 5 * SLOT_NS, delay_ns: 90 }];
        assert_eq!((samples.as_slice(), lateness.pieces(), lateness.late()), (&expected[..], 4, 2));
        lateness.packet(S + SETTLE_NS * 2, S);
        assert_eq!(
            (lateness.report(S + 8 * SLOT_NS + SETTLE_NS), lateness.late()),
            (vec![], 3),
            "too late for a report, and counted"
        );
        assert_eq!(lateness.report(S + 11 * SLOT_NS + SETTLE_NS), [Maximum { packet: S + 9 * SLOT_NS, delay_ns: 0 }]);
    }

    #[test]
    fn a_fast_feed_and_clocks_that_jump_make_no_long_report_and_no_end_of_them() {
        let mut lateness = Lateness::default();
        for piece in 0..200_000 {
            let release_ns = S + piece * 10_000;
            lateness.packet(release_ns + 1, release_ns);
        }
        let end_ns = S + 2_000_000_000;
        assert_eq!(lateness.report(end_ns).len(), SAMPLES_MAX);
        assert_eq!(lateness.report(u64::MAX), [], "the clock is years ahead");
        lateness.packet(end_ns, end_ns + 1);
        assert_eq!(lateness.report(end_ns + 1), [], "and right again");
        let next_ns = end_ns + 40 * SLOT_NS;
        lateness.packet(next_ns + 3, next_ns);
        let samples = lateness.report(next_ns + SETTLE_NS + SLOT_NS);
        assert_eq!(samples.last(), Some(&Maximum { packet: next_ns, delay_ns: 3 }));
        lateness.packet(0, u64::MAX);
        lateness.packet(u64::MAX, 1);
    }

    /// Receivers and the relay above them see pieces in different orders, and miss some. They sample the same pieces, except in slots in
    /// which one of them missed the piece that counts.
    #[test]
    fn all_nodes_sample_the_same_pieces() {
        let pieces: Vec<u64> = (0..4_000_u64).map(|at| S + at * 50_000 + at * at % 977).collect();
        let (mut one, mut other, mut relay) = (Lateness::default(), Lateness::default(), Pieces::default());
        for (at, piece) in pieces.iter().enumerate() {
            if at % 100 != 0 {
                one.packet(piece + 10, *piece);
            }
            relay.passed(*piece, at as u64);
        }
        for (at, piece) in pieces.iter().rev().enumerate() {
            if at % 83 != 0 {
                other.packet(piece + 90, *piece);
            }
        }
        for receiver in [&mut one, &mut other] {
            let mut said = Vec::new();
            (1..8).for_each(|part| said.extend(receiver.report(S + SETTLE_NS + part * 30_000_000)));
            let known = said.iter().filter(|sample| relay.held_ns(sample.packet).is_some()).count();
            assert!(said.len() > 90 && known * 10 >= said.len() * 9, "{known} of {}", said.len());
        }
        let held = pieces.iter().filter(|piece| relay.held_ns(**piece).is_some()).count() as u64;
        assert_eq!(held, 200_000_000_u64.div_ceil(SLOT_NS), "one of each slot");
    }
}
