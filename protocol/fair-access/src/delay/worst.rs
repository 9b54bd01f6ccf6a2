//! One delay for many gateways, steered so that the target holds for each of them.
//!
//! A share over all orders hides a gateway that is far away: where another one has most of the flow, the share is near 0 although
//! all orders of the far one are unfair. So each gateway has a share of its own, and the delay follows the gateway whose share is
//! the greatest, the *worst*. [`GatewayDelays`] shows all of them.
//!
//! - A gateway is compared once it has *enough* samples: as many as the target needs to be seen (1 / target), at least
//!   [`ENOUGH_MIN`], at most the window. Until any gateway has enough, all samples steer.
//! - A gateway that was silent for [`SILENT_NS_MAX`] begins again: its samples are of another network.
//! - With [`DelaySettings::Tracking`] the level is the worst gateway's median transit. Verdicts of the worst gateway count, and of
//!   those that are over the target. The delay does not move when another gateway becomes the worst. There are two exceptions. An
//!   unfair verdict of a gateway with more than twice the target raises the delay at once to the quantile of its transits that the
//!   target asks for: who joins from afar is not late for a thousand orders. If the worst gateway falls silent, the delay sinks to
//!   the greatest such quantile of the others, and so it does when a first gateway has enough samples.
//! - With [`DelaySettings::Stepped`] the share that is compared with the target is the worst gateway's.

use super::stepped::StepControl;
use super::tracking::Offset;
use super::{DelaySettings, Fairness, Ppm, Share, Stepped};
use crate::outliers::SILENT_NS_MAX;
use crate::sliding::Sliding;
use crate::{GATEWAYS_MAX, GatewayId};

/// Fewest samples by which a gateway's share is compared with others'.
pub const ENOUGH_MIN: usize = 100;

#[derive(Debug)]
enum Rule {
    Static { delay_ns: u64 },
    Stepped(StepControl),
    Tracking(Offset),
}

#[derive(Debug)]
struct Watched {
    transits: Sliding,
    share: Share,
    judged: u64,
    unfair: u64,
    /// Time of its last transit.
    heard_ns: u64,
}

/// The verdicts on one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Verdicts so far.
    pub judged: u64,
    /// Of these unfair.
    pub unfair: u64,
    /// The share over the last window.
    pub recent: Ppm,
}

/// The delay, and the shares of unfairness that it gave.
#[derive(Debug)]
pub struct GatewayDelays {
    rule: Rule,
    target: Ppm,
    window: usize,
    enough: usize,
    gateways: Vec<Watched>,
    worst: Option<usize>,
    all: Share,
    judged: u64,
    unfair: u64,
}

impl GatewayDelays {
    /// At its start, for so many gateways.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways, with bounds that exclude each other, or settings out of their documented range.
    #[must_use]
    pub fn new(settings: DelaySettings, gateways: u16) -> Self {
        assert!(gateways <= GATEWAYS_MAX, "{gateways} gateways, at most {GATEWAYS_MAX}");
        let (rule, target, window, transits) = match settings {
            DelaySettings::Static { delay_ns } => (Rule::Static { delay_ns }, Ppm(0), Stepped::CLOUDEX_WINDOW, 1),
            DelaySettings::Stepped(stepped) => (Rule::Stepped(StepControl::new(stepped)), stepped.target, stepped.window, 1),
            DelaySettings::Tracking(tracking) => {
                let window = Stepped::CLOUDEX_WINDOW;
                (Rule::Tracking(Offset::new(tracking)), tracking.target, window, tracking.level_window)
            }
        };
        let seen = usize::try_from(Ppm::ONE.0 / target.0.max(1)).unwrap_or(usize::MAX);
        let watched = || Watched { transits: Sliding::new(transits), share: Share::new(window), judged: 0, unfair: 0, heard_ns: 0 };
        Self {
            rule,
            target,
            window,
            enough: seen.max(ENOUGH_MIN).min(window),
            gateways: (0..gateways).map(|_| watched()).collect(),
            worst: None,
            all: Share::new(window),
            judged: 0,
            unfair: 0,
        }
    }

    /// The delay from now on.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        match &self.rule {
            Rule::Static { delay_ns } => *delay_ns,
            Rule::Stepped(stepped) => stepped.delay_ns(),
            Rule::Tracking(offset) => offset.delay_ns(self.level_ns(self.worst)),
        }
    }

    /// Takes the transit time from a gateway's stamp to the arrival. It is negative if the clocks disagree by more than the transit.
    /// Transits of gateways that are not configured are ignored.
    pub fn on_transit(&mut self, now_ns: u64, gateway: GatewayId, transit_ns: i64) {
        let at = gateway.index();
        if at >= self.gateways.len() {
            return;
        }
        if self.is_silent(at, now_ns) {
            if self.worst == Some(at) {
                self.choose(now_ns);
            }
            self.gateways[at].transits.clear();
            self.gateways[at].share = Share::new(self.window);
        }
        let watched = &mut self.gateways[at];
        watched.heard_ns = now_ns;
        if let Rule::Tracking(offset) = &self.rule {
            watched.transits.push(offset.countable(transit_ns));
        }
    }

    /// Takes the verdict on a gateway's order, when it leaves the hold.
    pub fn on_verdict(&mut self, now_ns: u64, gateway: GatewayId, fairness: Fairness) {
        let is_unfair = fairness == Fairness::Unfair;
        self.judged += 1;
        self.unfair += u64::from(is_unfair);
        self.all.push(fairness);
        let Some(watched) = self.gateways.get_mut(gateway.index()) else { return };
        watched.judged += 1;
        watched.unfair += u64::from(is_unfair);
        let before = watched.share.ppm();
        watched.share.push(fairness);
        let (after, at) = (watched.share.ppm(), gateway.index());
        // Otherwise the worst one is the same as before.
        if self.worst.is_none_or(|worst| self.is_silent(worst, now_ns) || if worst == at { after < before } else { after > before })
        {
            self.choose(now_ns);
        }
        let share = self.worst.map_or_else(|| self.all.ppm(), |worst| self.gateways[worst].share.ppm());
        let level_ns = self.level_ns(self.worst);
        let counts = self.worst.is_none_or(|worst| worst == at) || self.has_enough(at, now_ns) && after > self.target;
        match &mut self.rule {
            Rule::Static { .. } => {}
            // A share over other orders than those that the delay moves by would answer too late.
            Rule::Stepped(stepped) if self.worst.is_none_or(|worst| worst == at) => stepped.on_verdict(share),
            Rule::Tracking(offset) if counts => {
                offset.learn(level_ns, fairness);
                if is_unfair {
                    self.catch_up(at, now_ns);
                }
            }
            Rule::Stepped(_) | Rule::Tracking(_) => {}
        }
    }

    /// The share over the last window of all orders, to be shown.
    #[must_use]
    pub fn recent(&self) -> Ppm {
        self.all.ppm()
    }

    /// Verdicts so far, and how many of them were unfair.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        (self.judged, self.unfair)
    }

    /// The gateway that the delay follows; `None` until one has enough samples.
    #[must_use]
    pub fn worst(&self) -> Option<GatewayId> {
        self.worst.and_then(|worst| u16::try_from(worst).ok()).map(GatewayId)
    }

    /// The verdicts on a gateway; `None` if it is not configured.
    #[must_use]
    pub fn of(&self, gateway: GatewayId) -> Option<Judged> {
        let Watched { share, judged, unfair, .. } = self.gateways.get(gateway.index())?;
        Some(Judged { judged: *judged, unfair: *unfair, recent: share.ppm() })
    }

    /// The start stands for the level until there is a worst gateway.
    fn level_ns(&self, of: Option<usize>) -> i64 {
        let Rule::Tracking(offset) = &self.rule else { return 0 };
        of.and_then(|of| self.gateways[of].transits.median()).unwrap_or_else(|| offset.start_ns())
    }

    fn is_silent(&self, at: usize, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.gateways[at].heard_ns) > SILENT_NS_MAX
    }

    fn has_enough(&self, at: usize, now_ns: u64) -> bool {
        let Watched { transits, share, .. } = &self.gateways[at];
        share.len() >= self.enough && (transits.is_full() || transits.len() >= self.enough) && !self.is_silent(at, now_ns)
    }

    /// Finds the worst gateway. Of equals the one before stays, so that the level does not alternate.
    fn choose(&mut self, now_ns: u64) {
        let is_worst_gone = self.worst.is_some_and(|worst| !self.has_enough(worst, now_ns));
        let mut found: Option<(usize, Ppm)> = self.worst.filter(|_| !is_worst_gone).map(|at| (at, self.gateways[at].share.ppm()));
        for at in (0..self.gateways.len()).filter(|at| self.has_enough(*at, now_ns)) {
            let share = self.gateways[at].share.ppm();
            if found.is_none_or(|(_, most)| share > most) {
                found = Some((at, share));
            }
        }
        let chosen = found.map(|(at, _)| at);
        if chosen == self.worst {
            return;
        }
        let (before_ns, after_ns) = (self.level_ns(self.worst), self.level_ns(chosen));
        let is_first = self.worst.is_none();
        self.worst = chosen;
        self.keep(before_ns, after_ns);
        if is_worst_gone || is_first {
            let needs = (0..self.gateways.len()).filter(|at| self.has_enough(*at, now_ns)).filter_map(|at| self.needs_ns(at)).max();
            if let Some(needs_ns) = needs.filter(|needs_ns| u64::try_from(*needs_ns).unwrap_or(0) < self.delay_ns()) {
                self.set(needs_ns);
            }
        }
    }

    /// The delay by which a gateway's last transits would have met the target.
    fn needs_ns(&self, at: usize) -> Option<i64> {
        self.gateways[at].transits.quantile_ppm(Ppm::ONE.0 - self.target.0)
    }

    /// If a gateway's share is more than twice the target, the delay goes to what that gateway needs. Where little comes by it, the
    /// offset would take an hour.
    fn catch_up(&mut self, at: usize, now_ns: u64) {
        let delay_ns = i64::try_from(self.delay_ns()).unwrap_or(i64::MAX);
        let is_far_over = self.gateways[at].share.ppm().0 / 2 > self.target.0;
        let needs_ns = self.needs_ns(at).filter(|needs_ns| *needs_ns > delay_ns);
        if is_far_over
            && self.has_enough(at, now_ns)
            && let Some(needs_ns) = needs_ns
        {
            self.set(needs_ns);
        }
    }

    fn keep(&mut self, before_ns: i64, after_ns: i64) {
        if let Rule::Tracking(offset) = &mut self.rule {
            offset.keep(before_ns, after_ns);
        }
    }

    fn set(&mut self, delay_ns: i64) {
        let level_ns = self.level_ns(self.worst);
        if let Rule::Tracking(offset) = &mut self.rule {
            offset.set(level_ns, delay_ns);
        }
    }
}
