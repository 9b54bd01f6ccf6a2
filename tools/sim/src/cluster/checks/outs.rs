//! Relays of market data that bring nothing: a keeper that runs leaves none in that has been silent for a second. Nor does it leave one in
//! that answers and forwards nothing, once nothing else has failed in its tree for three seconds.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "relays out";
/// Twice as long as a keeper waits for an answer.
const SILENT_NS: u64 = 1_000_000_000;
/// A receiver hears of a view for certain within 1.1 s. Then it takes 16 packets, of a few in each 40 ms, and a quarter of a second at
/// least, until it says that a relay brings nothing; and two receivers have to.
const MUTE_NS: u64 = 3_000_000_000;
/// Packets in that time at least.
const PACKETS_MIN: u64 = 60;
/// A keeper that was not seen for so long stood still.
const APART_NS: u64 = 5_000_000;

/// A keeper that runs, and the relays of its tree.
#[derive(Debug)]
pub(crate) struct KeeperSeen {
    /// Of its socket. No other keeper has it.
    pub(crate) number: u64,
    /// Relays that are out, or will be by the next view.
    pub(crate) out: BTreeSet<u32>,
    /// Relays that answer nothing.
    pub(crate) silent: BTreeSet<u32>,
    /// A relay by which packets go, beside others, and which forwards nothing.
    pub(crate) mute: Option<u32>,
    /// What has happened so far that keeps nodes from seeing which relays bring nothing; `None` while such a thing lasts.
    pub(crate) disturbed: Option<[u64; 3]>,
    /// Packets that were sent so far.
    pub(crate) packets: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Outs {
    /// By number.
    keepers: BTreeMap<u64, Known>,
    /// How often a relay was looked at that was silent for so long.
    judged: u64,
}

/// What is known of a keeper since it runs without a break.
#[derive(Debug, Default)]
struct Known {
    seen_ns: u64,
    /// Since when relays are silent.
    silent_ns: BTreeMap<u32, u64>,
    /// What had happened when it was quiet first, when that was, and the packets until then.
    quiet: Option<([u64; 3], u64, u64)>,
}

impl Outs {
    /// How often a relay was looked at that was silent for a second.
    pub(super) fn judged(&self) -> u64 {
        self.judged
    }

    /// A keeper does what it is time for, as it does once a millisecond.
    pub(super) fn on_keeper(&mut self, now_ns: u64, keeper: &KeeperSeen) -> Checked {
        let KeeperSeen { number, out, silent, mute, disturbed, packets } = keeper;
        let known = self.keepers.entry(*number).or_default();
        if now_ns - known.seen_ns > APART_NS {
            *known = Known::default();
        }
        known.seen_ns = now_ns;
        known.silent_ns.retain(|relay, _| silent.contains(relay));
        for relay in silent {
            let since_ns = *known.silent_ns.entry(*relay).or_insert(now_ns);
            if now_ns - since_ns < SILENT_NS {
                continue;
            }
            self.judged += 1;
            if !out.contains(relay) {
                return Err(Violation::new(CHECK, format!("keeper {number} leaves relay {relay} in, silent since {since_ns} ns")));
            }
        }
        if known.quiet.map(|(before, ..)| before) != *disturbed {
            known.quiet = disturbed.map(|before| (before, now_ns, *packets));
        }
        match (known.quiet, mute) {
            (Some((_, since_ns, sent)), Some(relay)) if now_ns - since_ns >= MUTE_NS && packets - sent >= PACKETS_MIN => {
                let detail = format!("keeper {number} leaves relay {relay} in, which forwards nothing, quiet since {since_ns} ns");
                Err(Violation::new(CHECK, detail))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn keeper() -> KeeperSeen {
        let (out, silent) = (BTreeSet::new(), BTreeSet::new());
        KeeperSeen { number: 4, out, silent, mute: None, disturbed: Some([0; 3]), packets: 0 }
    }

    /// The millisecond, of so many, in which something is found; `change` sets what is seen in each.
    fn found(ms: u64, mut change: impl FnMut(u64, &mut KeeperSeen)) -> Option<u64> {
        let (mut outs, mut seen) = (Outs::default(), keeper());
        (1..=ms).find(|at| {
            seen.packets = *at;
            change(*at, &mut seen);
            outs.on_keeper(at * MS, &seen).is_err()
        })
    }

    #[test]
    fn a_relay_that_is_silent_for_a_second_has_to_be_out() {
        let silent_from = |from: u64, at: u64, seen: &mut KeeperSeen| seen.silent.extend((at >= from).then_some(2));
        assert_eq!(found(5_000, |at, seen| silent_from(700, at, seen)), Some(1_700));
        let out_in_time = |at: u64, seen: &mut KeeperSeen| {
            silent_from(700, at, seen);
            seen.out.extend((at == 1_600).then_some(2));
        };
        assert_eq!(found(5_000, out_in_time), None);
        let answers_now_and_then = |at: u64, seen: &mut KeeperSeen| {
            silent_from(0, at, seen);
            if at.is_multiple_of(900) {
                seen.silent.clear();
            }
        };
        assert_eq!(found(5_000, answers_now_and_then), None);
        // A keeper that stands still decides nothing.
        let (mut outs, mut seen) = (Outs::default(), keeper());
        seen.silent.insert(2);
        assert!((1..100).all(|at| outs.on_keeper(at * 900 * MS, &seen).is_ok()));
        assert_eq!(outs.judged(), 0);
    }

    #[test]
    fn a_relay_that_forwards_nothing_has_to_be_out_once_it_is_quiet() {
        let mute = |_: u64, seen: &mut KeeperSeen| seen.mute = Some(1);
        assert_eq!(found(9_000, mute), Some(3_001));
        let disturbed_until = |until: u64, at: u64, seen: &mut KeeperSeen| {
            seen.mute = Some(1);
            seen.disturbed = (!at.is_multiple_of(50) || at > until).then_some([at.min(until) / 1_000, 0, 0]);
        };
        assert_eq!(found(9_000, |at, seen| disturbed_until(4_500, at, seen)), Some(7_501));
        let no_data = |at: u64, seen: &mut KeeperSeen| {
            mute(at, seen);
            seen.packets = at / 100;
        };
        assert_eq!(found(5_000, no_data), None, "fewer than 60 packets");
    }
}
