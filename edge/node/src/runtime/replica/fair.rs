//! What is to be seen of fair access at a replica.

use walras_ports::FairAccessView;
use walras_replica::Origin;
use walras_sequencer::{ArrivalCounts, FairAccess};

use crate::runtime::fair_clock::FairClock;

/// A look at it.
pub(super) fn view(access: &FairAccess<Origin>, clock: &mut FairClock, arrivals: ArrivalCounts) -> FairAccessView {
    FairAccessView {
        clock: clock.now(),
        leader: access.leader(),
        unanswered: access.unanswered(),
        forwards: access.forwarded(),
        arrivals,
        intake: access.sequenced(),
    }
}
