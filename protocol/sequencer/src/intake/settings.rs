//! Bounds of the intake.

use walras_fair_access::delay::DelaySettings;
use walras_fair_access::duplicates::DuplicateSettings;
use walras_fair_access::outliers::OutlierSettings;
use walras_fair_access::resequence::ResequencerSettings;
use walras_types::limits::SESSION_WINDOW;

/// How orders are held, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntakeSettings {
    /// Gateways: their numbers are below it.
    pub gateways: u16,
    /// What d_s is, or what steers it.
    pub delay: DelaySettings,
    /// How far a stamp may lie ahead of the sequencer's clock: both clocks' bounds together.
    pub future_max_ns: u64,
    /// How far behind: above any delay that is plausible.
    pub past_max_ns: u64,
    /// Orders held of one gateway; cancels may be an eighth more, amends of a size half of that.
    pub held_per_gateway_max: u32,
    /// Sessions whose places are remembered. One more forgets the one that was used longest ago.
    pub sessions_max: usize,
    /// Makes digests of copies unforeseeable: from the machine's randomness, different at each start.
    pub digest_key: u64,
    /// Orders of a session that may wait for one before them.
    pub early_per_session_max: usize,
    /// How long they wait.
    pub early_max_ns: u64,
    /// How far a gateway's median transit may lie from the others' before its stamps count no more.
    pub outlier_apart_max_ns: u64,
    /// Whether an order leaves before its delay is over once every gateway has shown a watermark that is past its stamp.
    pub merges: bool,
}

/// Places of a session that are remembered: those that may be unanswered, and as many before them, for copies that come late.
const WINDOW: usize = (2 * SESSION_WINDOW).next_power_of_two();

/// Samples that a gateway's median transit is of, and from one look at it to the next.
const OUTLIER_WINDOW: usize = 200;
const SAMPLES_PER_LOOK: u32 = 20;

impl IntakeSettings {
    /// For so many gateways with this delay: stamps up to 1 ms ahead and 100 ms behind, 65,535 orders of a gateway, 4,096 sessions,
    /// orders that wait 200 ms for one before them, gateways 1 ms apart from the others, watermarks that count.
    #[must_use]
    pub fn new(gateways: u16, delay: DelaySettings, digest_key: u64) -> Self {
        Self {
            gateways,
            delay,
            future_max_ns: 1_000_000,
            past_max_ns: 100_000_000,
            held_per_gateway_max: u32::from(u16::MAX),
            sessions_max: 4_096,
            digest_key,
            early_per_session_max: SESSION_WINDOW,
            early_max_ns: 200_000_000,
            outlier_apart_max_ns: 1_000_000,
            merges: true,
        }
    }

    pub(super) fn hold(&self) -> ResequencerSettings {
        let Self { gateways, future_max_ns, past_max_ns, held_per_gateway_max, .. } = *self;
        ResequencerSettings { gateways, future_max_ns, past_max_ns, held_per_gateway_max }
    }

    pub(super) fn duplicates(&self) -> DuplicateSettings {
        DuplicateSettings { sessions_max: self.sessions_max, window: WINDOW, digest_key: self.digest_key }
    }

    pub(super) fn outliers(&self) -> OutlierSettings {
        let (gateways, apart_max_ns, round_trip_max_ns) = (self.gateways, self.outlier_apart_max_ns, self.past_max_ns);
        OutlierSettings { gateways, apart_max_ns, round_trip_max_ns, window: OUTLIER_WINDOW, samples_per_look: SAMPLES_PER_LOOK }
    }
}
