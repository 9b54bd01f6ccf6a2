//! Clocks. Simulated time is what passes; a machine's clock shows something near it, or not.

/// Simulated time begins here, in nanoseconds since the Unix epoch.
pub(crate) const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// How far a clock may be set back. Less than the gateway lets stamps lie ahead, or a restart could take a request again (see
/// `GatewayConfig::stamps_from_ns`): the product's limit, until sessions are part of the replicated state.
pub(crate) const BEHIND_NS_MAX: i64 = 800_000_000;

/// How far a clock may be set forward.
pub(crate) const AHEAD_NS_MAX: i64 = 3_600_000_000_000;

/// A machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    offset_ns: i64,
}

impl Clock {
    pub(crate) fn read(self, now_ns: u64) -> u64 {
        (EPOCH_NS + now_ns).saturating_add_signed(self.offset_ns)
    }

    /// Jumps, forward or back.
    pub(crate) fn jump(&mut self, by_ns: i64) {
        self.offset_ns = (self.offset_ns + by_ns).clamp(-BEHIND_NS_MAX, AHEAD_NS_MAX);
    }

    /// Shows the time again.
    pub(crate) fn set_right(&mut self) {
        self.offset_ns = 0;
    }

    pub(crate) fn offset_ns(self) -> i64 {
        self.offset_ns
    }
}
