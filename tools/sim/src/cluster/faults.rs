//! What goes wrong in the safety phase, and what an operator does meanwhile.

use walras_log_store::sim_disk::SimFaults;
use walras_testkit::Choices;

use crate::common::clock::FAR_NS_MAX;
use crate::common::faults;
use crate::common::network::NetworkQuality;

/// One thing that goes wrong, at some replica where it is one replica's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Power fails, comes back after a while.
    PowerFailure,
    /// The process is killed; the machine stays up.
    Kill,
    /// The leader's process is killed.
    KillLeader,
    /// Power fails everywhere at once.
    PowerFailsEverywhere,
    /// Operations of the disk fail from now on.
    Disk(SimFaults),
    /// The disk is gone after so many operations, for so long.
    DiskGone { in_ops: u64, for_ns: u64 },
    /// Only so many bytes more fit on the disk, for so long.
    DiskFull { room_bytes: u64, for_ns: u64 },
    /// The time of day jumps.
    ClockJump { by_ns: i64 },
    /// The clock counts too fast or too slow.
    ClockDrift { fast_ppm: i64 },
    /// The time of day is set right, and the operator starts the process again if it was far off.
    ClockSetRight,
    /// The network gets worse or better.
    Network(NetworkQuality),
    /// The replicas whose bit in the mask is set do not reach the others, in one direction or both, until the network heals.
    Partition { mask: u64, cuts_out: bool, cuts_in: bool, for_ns: u64 },
    /// A client's connection is cut.
    CutStream,
    /// The disk gets so many times slower.
    SlowDisk { times: u64 },
    /// The process does nothing for so long, and does not know it.
    Pause { for_ns: u64 },
    /// The process is asked to stop, and starts again.
    Stop,
    /// All are.
    StopEverywhere,
    /// Nothing, since it would be more than the venue promises to survive.
    None,
    /// Leadership is handed over.
    Handover,
    /// Somebody joins, votes, or leaves.
    ChangeMembers,
}

/// What a fault leaves behind, and passes again where faults are rare.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lasting {
    BadNetwork,
    SlowDisk(usize),
    WrongClock(usize),
}

/// How likely each kind of fault is, in the order in which [`draw`] has them.
pub(super) type FaultWeights = [u8; 17];

/// All kinds.
pub(super) const WEIGHTS: FaultWeights = [10, 10, 10, 2, 26, 6, 8, 8, 8, 4, 20, 30, 16, 8, 12, 8, 14];

/// Each kind in one of two venues; if that leaves none, all.
pub(super) fn some(c: &mut Choices<'_>) -> FaultWeights {
    let weights = WEIGHTS.map(|weight| if c.one_in(2) { weight } else { 0 });
    if weights.iter().all(|weight| *weight == 0) { WEIGHTS } else { weights }
}

pub(super) fn draw(c: &mut Choices<'_>, weights: &FaultWeights) -> Fault {
    match c.weighted(weights) {
        0 => Fault::PowerFailure,
        1 => Fault::Kill,
        2 => Fault::KillLeader,
        3 => Fault::PowerFailsEverywhere,
        4 => Fault::Disk(faults::draw_for_disk(c)),
        5 => Fault::DiskGone { in_ops: c.below(30), for_ns: c.within(50_000_000, 1_000_000_000) },
        6 => Fault::DiskFull { room_bytes: c.below(60_000), for_ns: c.within(50_000_000, 2_000_000_000) },
        7 => {
            let most = c.pick(&[1_000_000, 100_000_000, 800_000_000, 4_000_000_000, FAR_NS_MAX as u64]);
            let by_ns = c.below(most) as i64;
            Fault::ClockJump { by_ns: if c.one_in(2) { by_ns } else { -by_ns } }
        }
        8 => {
            let fast_ppm = c.below(c_drift_ppm_max()) as i64;
            Fault::ClockDrift { fast_ppm: if c.one_in(2) { fast_ppm } else { -fast_ppm } }
        }
        9 => Fault::ClockSetRight,
        10 => Fault::Network(NetworkQuality::bad(c)),
        11 => {
            let both = c.one_in(2);
            let (mask, out) = (c.any(), c.one_in(2));
            let for_ns = c.within(20_000_000, 2_500_000_000);
            Fault::Partition { mask, cuts_out: both || out, cuts_in: both || !out, for_ns }
        }
        12 => Fault::CutStream,
        13 => Fault::SlowDisk { times: c.pick(&[1, 1, 10, 100, 1_000]) },
        14 => Fault::Pause { for_ns: c.within(1_000_000, 900_000_000) },
        15 => Fault::Handover,
        _ => Fault::ChangeMembers,
    }
}

/// A twentieth too fast or too slow: far worse than any quartz.
const fn c_drift_ppm_max() -> u64 {
    50_000
}
