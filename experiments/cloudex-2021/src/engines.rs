//! Why inbound delays of figure 4 lie above the published at targets of 2 to 5 %: what they need with lighter engines than the fitted one,
//! on the same orders.
//!
//! An order waits for the engine even where nothing holds it. That wait is a floor below which no delay policy gets; the fitted engine's
//! floor is above the published delays.

use std::path::Path;

use crate::figure::{Direction, Extent, Panel, Way, run_inbound};
use crate::network::{Network, Source};
use crate::workload::{Disturbance, Workload};

/// Times of the engine for an order: the fitted one first, then lighter ones; our own takes about the last.
pub const SERVICES_NS: [f64; 6] = [38_500.0, 35_000.0, 32_000.0, 28_000.0, 20_000.0, 1_000.0];

/// All delay policies with one engine.
#[derive(Clone, Debug)]
pub struct OfEngine {
    /// Its time for an order.
    pub service_ns: f64,
    /// The policies.
    pub panel: Panel,
}

impl OfEngine {
    /// Unfairness in percent and the mean wait in microseconds where no order is held: the least that any policy can have.
    #[must_use]
    pub fn floor(&self) -> (f64, f64) {
        self.panel.outcome(Way::Static(0)).map_or((f64::NAN, f64::NAN), |outcome| (outcome.unfair_percent(), outcome.delay_us()))
    }
}

/// With each engine.
///
/// # Errors
/// If the shared data are there but cannot be parsed.
pub fn run(workload: &Workload, data: &Path, extent: Extent) -> anyhow::Result<(Vec<OfEngine>, Source)> {
    let network = Network::load(data, workload.seed, 1)?;
    let services = match extent {
        Extent::Full => &SERVICES_NS[..],
        Extent::Small => &SERVICES_NS[..2],
    };
    let of_engine = |service_ns: &f64| {
        let workload = Workload { service_ns: *service_ns, ..*workload };
        let panel = run_inbound(&workload, &network, Disturbance::None, extent).1;
        debug_assert_eq!(panel.direction, Direction::Inbound);
        OfEngine { service_ns: *service_ns, panel }
    };
    Ok((services.iter().map(of_engine).collect(), network.source))
}
