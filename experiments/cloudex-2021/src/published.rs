//! The published points of figures 4 and 5, read off the page: about 10 us and 0.1 percentage points.

use walras_fair_access::delay::Ppm;

use crate::figure::Direction;
use crate::workload::Disturbance;

/// One panel: unfairness in percent and mean delay in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// By target in parts per million.
    pub dynamic: &'static [(u32, f64, f64)],
    /// By delay in microseconds.
    pub statics: &'static [(u64, f64, f64)],
}

impl Published {
    /// Of a target.
    #[must_use]
    pub fn dynamic_at(&self, target: Ppm) -> Option<(f64, f64)> {
        self.dynamic.iter().find(|point| point.0 == target.0).map(|point| (point.1, point.2))
    }

    /// Of a static delay.
    #[must_use]
    pub fn static_at(&self, delay_us: u64) -> Option<(f64, f64)> {
        self.statics.iter().find(|point| point.0 == delay_us).map(|point| (point.1, point.2))
    }
}

/// A panel's points. Of some of figure 5 only the ends could be read.
#[must_use]
pub fn published(direction: Direction, disturbance: Disturbance) -> Published {
    match (direction, disturbance) {
        (Direction::Inbound, Disturbance::None) => Published {
            dynamic: &[
                (5_000, 0.5, 270.0),
                (10_000, 1.05, 185.0),
                (20_000, 2.1, 115.0),
                (30_000, 3.1, 95.0),
                (40_000, 4.1, 85.0),
                (50_000, 5.1, 75.0),
            ],
            statics: &[
                (200, 4.6, 85.0),
                (400, 0.1, 265.0),
                (500, 0.05, 375.0),
                (600, 0.0, 470.0),
                (800, 0.0, 670.0),
                (900, 0.0, 770.0),
                (1_000, 0.0, 870.0),
            ],
        },
        (Direction::Outbound, Disturbance::None) => Published {
            dynamic: &[
                (5_000, 0.5, 515.0),
                (10_000, 1.0, 400.0),
                (20_000, 2.0, 385.0),
                (30_000, 2.9, 295.0),
                (40_000, 3.7, 280.0),
                (50_000, 4.6, 265.0),
            ],
            statics: &[(500, 10.6, 225.0), (600, 2.2, 345.0), (1_000, 0.1, 730.0), (1_200, 0.0, 925.0)],
        },
        (Direction::Inbound, Disturbance::Steps) => Published {
            dynamic: &[(5_000, 0.8, 200.0), (50_000, 5.0, 85.0)],
            statics: &[(200, 7.4, 70.0), (400, 4.6, 130.0), (500, 3.1, 200.0), (600, 1.6, 290.0), (800, 0.0, 470.0)],
        },
        (Direction::Inbound | Direction::Outbound, Disturbance::StepsApart) => Published { dynamic: &[], statics: &[] },
        (Direction::Outbound, Disturbance::Steps) => {
            Published { dynamic: &[(5_000, 0.6, 475.0)], statics: &[(800, 15.0, 345.0), (900, 3.2, 440.0), (1_000, 1.1, 535.0)] }
        }
    }
}
