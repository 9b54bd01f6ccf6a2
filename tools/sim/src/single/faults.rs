//! What goes wrong in the safety phase.

use walras_log_store::sim_disk::SimFaults;
use walras_testkit::Choices;

use crate::common::clock::{AHEAD_NS_MAX, BEHIND_NS_MAX};
use crate::common::faults;
use crate::common::network::NetworkQuality;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Power fails, comes back after a while.
    PowerFailure,
    /// The process is killed; the machine stays up.
    Kill,
    /// Operations of the disk fail from now on: power fails in one, a write, a sync.
    Disk(SimFaults),
    /// The disk is gone after so many operations, for so long. Perhaps the machine has to be switched off and on to get it back.
    DiskGone { in_ops: u64, for_ns: u64 },
    /// Only so many bytes more fit on the disk, for so long.
    DiskFull { room_bytes: u64, for_ns: u64 },
    /// The clock jumps.
    ClockJump { by_ns: i64 },
    /// The clock is set right.
    ClockSetRight,
    /// The network changes.
    Network(NetworkQuality),
    /// The disk gets so many times slower.
    Slow { times: u64 },
}

pub(crate) fn draw(c: &mut Choices<'_>) -> Fault {
    match c.weighted(&[3, 3, 12, 3, 4, 1, 3, 2, 3]) {
        0 => Fault::PowerFailure,
        1 => Fault::Kill,
        2 => Fault::Disk(faults::draw_for_disk(c)),
        3 => Fault::DiskFull { room_bytes: c.below(30_000), for_ns: c.within(50_000_000, 2_000_000_000) },
        4 => {
            let most = c.pick(&[1_000, 100_000_000, BEHIND_NS_MAX as u64, 3_000_000_000, AHEAD_NS_MAX as u64]);
            let by_ns = c.below(most) as i64;
            Fault::ClockJump { by_ns: if c.below(2) == 0 { by_ns } else { -by_ns } }
        }
        5 => Fault::ClockSetRight,
        6 => Fault::Network(NetworkQuality::bad(c)),
        7 => Fault::Slow { times: c.pick(&[1, 1, 10, 100, 1_000]) },
        _ => Fault::DiskGone { in_ops: c.below(30), for_ns: c.within(50_000_000, 1_000_000_000) },
    }
}
