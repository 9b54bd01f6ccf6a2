//! The delays d_s and d_h: fixed, or steered so that the share of unfair orders (or publications) meets the operator's target.
//!
//! A longer delay is fairer but slower. The relation depends on the network and changes with it.
//! - [`DelaySettings::Static`] is fixed.
//! - [`DelaySettings::Stepped`] is `CloudEx`'s dynamic delay parameter (section 3): the share over the last 1,000 samples is above
//!   the target, 5 us more; else 5 us less. How often it looks is not published: see [`Stepped::samples_per_step`].
//! - [`DelaySettings::Tracking`] is ours, see [`Tracking`]: less delay for the same share wherever the network moves.
//!
//! A delay stays between the bounds, whatever the samples. Samples that no allowed delay could have made fair are recognised
//! ([`DelayControl::on_transit`]) and steer nothing; [`crate::outliers`] keeps out gateways that lie by less.

mod stepped;
mod tracking;
mod worst;

pub use stepped::Stepped;
pub use tracking::Tracking;
pub use worst::{ENOUGH_MIN, GatewayDelays, Judged};

use stepped::StepControl;
use tracking::TrackControl;

use crate::sliding::Sliding;

/// A share in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ppm(pub u32);

impl Ppm {
    /// All.
    pub const ONE: Self = Self(1_000_000);
}

/// Range and start of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayBounds {
    /// Minimum.
    pub min_ns: u64,
    /// Maximum, which applies when the network is at its worst.
    pub max_ns: u64,
    /// Start value.
    pub start_ns: u64,
}

/// How a delay is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySettings {
    /// A fixed delay.
    Static {
        /// The delay.
        delay_ns: u64,
    },
    /// Moves up or down in steps.
    Stepped(Stepped),
    /// Follows the network's level, plus an offset.
    Tracking(Tracking),
}

/// Whether an order or a publication was treated fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Sequenced in the order of stamps, or released at the release time.
    Fair,
    /// Out of order, or released late.
    Unfair,
}

impl From<bool> for Fairness {
    fn from(is_unfair: bool) -> Self {
        if is_unfair { Self::Unfair } else { Self::Fair }
    }
}

#[derive(Debug)]
enum Control {
    Static { delay_ns: u64 },
    Stepped(StepControl),
    Tracking(TrackControl),
}

/// A delay, and the share of unfairness that it gave.
#[derive(Debug)]
pub struct DelayControl {
    control: Control,
    recent: Share,
    samples: u64,
    unfair: u64,
}

impl DelayControl {
    /// At its start.
    ///
    /// # Panics
    /// With bounds that exclude each other, or settings out of their documented range.
    #[must_use]
    pub fn new(settings: DelaySettings) -> Self {
        let (control, window) = match settings {
            DelaySettings::Static { delay_ns } => (Control::Static { delay_ns }, Stepped::CLOUDEX_WINDOW),
            DelaySettings::Stepped(stepped) => (Control::Stepped(StepControl::new(stepped)), stepped.window),
            DelaySettings::Tracking(tracking) => (Control::Tracking(TrackControl::new(tracking)), Stepped::CLOUDEX_WINDOW),
        };
        Self { control, recent: Share::new(window), samples: 0, unfair: 0 }
    }

    /// The delay from now on.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        match &self.control {
            Control::Static { delay_ns } => *delay_ns,
            Control::Stepped(stepped) => stepped.delay_ns(),
            Control::Tracking(tracking) => tracking.delay_ns(),
        }
    }

    /// Takes the transit time from stamp to arrival, when a message arrives. It is negative if the clocks disagree by more than the
    /// transit.
    pub fn on_transit(&mut self, transit_ns: i64) {
        match &mut self.control {
            Control::Static { .. } | Control::Stepped(_) => {}
            Control::Tracking(tracking) => tracking.on_transit(transit_ns),
        }
    }

    /// Takes a message's verdict, when it leaves the hold.
    pub fn on_verdict(&mut self, fairness: Fairness) {
        self.samples += 1;
        self.unfair += u64::from(fairness == Fairness::Unfair);
        self.recent.push(fairness);
        match &mut self.control {
            Control::Static { .. } => {}
            Control::Stepped(stepped) => stepped.on_verdict(self.recent.ppm()),
            Control::Tracking(tracking) => tracking.on_verdict(fairness),
        }
    }

    /// The share over the last window (1,000 samples where nothing else is set), to be shown.
    #[must_use]
    pub fn recent(&self) -> Ppm {
        self.recent.ppm()
    }

    /// Verdicts so far, and how many of them were unfair.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        (self.samples, self.unfair)
    }
}

/// A rolling share.
#[derive(Debug)]
struct Share {
    is_unfair: Vec<bool>,
    next: usize,
    filled: usize,
    unfair: usize,
}

impl Share {
    fn new(window: usize) -> Self {
        assert!(window > 0, "a window without room has no share");
        Self { is_unfair: vec![false; window], next: 0, filled: 0, unfair: 0 }
    }

    fn push(&mut self, fairness: Fairness) {
        let is_unfair = fairness == Fairness::Unfair;
        // Places that were never filled are fair, so that nothing is taken off for them.
        self.unfair -= usize::from(self.is_unfair[self.next]);
        self.unfair += usize::from(is_unfair);
        self.is_unfair[self.next] = is_unfair;
        self.next = (self.next + 1) % self.is_unfair.len();
        self.filled = (self.filled + 1).min(self.is_unfair.len());
    }

    /// Samples in the window.
    fn len(&self) -> usize {
        self.filled
    }

    fn ppm(&self) -> Ppm {
        let ppm = self.unfair * 1_000_000 / self.filled.max(1);
        Ppm(u32::try_from(ppm).expect("a share is at most one"))
    }
}

fn checked(bounds: DelayBounds) -> DelayBounds {
    assert!(bounds.min_ns <= bounds.max_ns, "the least delay is above the greatest: swap them");
    DelayBounds { start_ns: bounds.start_ns.clamp(bounds.min_ns, bounds.max_ns), ..bounds }
}
