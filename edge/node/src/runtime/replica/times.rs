//! What time it is for a replica, by all the clocks of its machine.

use walras_access::Clock;
use walras_entry_port::EntryClock;
use walras_fair_access::clock::ClockStatus;
use walras_ports::FairTime;
use walras_sequencer::GatewayTime;

use crate::runtime::fair_clock::FairClock;

/// The clocks.
pub(in crate::runtime) struct Times {
    /// The time of day, for the log.
    pub(in crate::runtime) host: Clock,
    /// What stamps orders, with fair access.
    pub(in crate::runtime) fair: Option<FairClock>,
}

impl EntryClock for Times {
    fn at(&mut self, now_ns: u64) -> GatewayTime {
        let now = self.host.now();
        match &mut self.fair {
            Some(clock) => {
                let FairTime { time_ns, status, .. } = clock.now();
                GatewayTime { now_ns, now, time_ns, status }
            }
            None => GatewayTime { now_ns, now, time_ns: now.0, status: ClockStatus::Good },
        }
    }
}
