//! Two assets: one ratio, found exactly.
//!
//! The value that one asset's sellers offer grows with the ratio of the prices, that of the other's falls: one root, between two
//! ratios at which the balance has different signs. Newton's step is exact as soon as no limit lies between it and the root; where it would
//! leave the bracket, the bracket is halved by the bits of the ratio, so that the end comes after 2 x 64 queries at the latest.
//! Where nothing trades over a whole range of ratios, its middle is taken.

use super::{Found, Task};
use crate::demand::Window;

/// Ratios are looked for between these.
const RATIO_MIN: f64 = f64::MIN_POSITIVE;
const RATIO_MAX: f64 = f64::MAX / 4.0;
/// Newton steps before halving alone.
const NEWTON_STEPS: usize = 40;

pub(super) fn solve(task: &mut Task<'_, '_>, start: f64) -> Found {
    let high = root(task, start, true);
    let low = root(task, high, false);
    // The middle by logarithm; roots by bits may be an ulp apart.
    let ratio = if low < high { low.sqrt() * high.sqrt() } else { high };
    [ratio, high, low].iter().map(|&ratio| task.judge(&prices(ratio))).reduce(Found::or_better).expect("three candidates")
}

/// Two prices of this ratio, whose product is near one.
fn prices(ratio: f64) -> [f64; 2] {
    let root = ratio.sqrt();
    [root, root / ratio]
}

/// The largest ratio with a balance of at most zero, or the smallest with one of at least zero.
fn root(task: &mut Task<'_, '_>, start: f64, largest: bool) -> f64 {
    let window = Window::of_mu(task.accuracy.mu);
    let (mut low, mut high) = (RATIO_MIN, RATIO_MAX);
    let mut ratio = if start > low && start < high { start } else { 1.0 };
    for step in 0.. {
        task.query(&prices(ratio), window);
        let balance = task.answer.sold[0] - task.answer.bought[0];
        let too_low = if largest { balance <= 0.0 } else { balance < 0.0 };
        if too_low {
            low = ratio
        } else {
            high = ratio
        }
        if low.to_bits() + 1 >= high.to_bits() || task.is_spent() {
            break;
        }
        // Row 0 of the linearised market: what leaves asset 0 per unit of it against what comes per unit of asset 1.
        let newton = ratio * (task.answer.slopes[1] / task.answer.slopes[2]);
        let inside = newton > low && newton < high;
        ratio = if inside && step < NEWTON_STEPS && step % 4 != 3 {
            newton
        } else {
            f64::from_bits(low.to_bits().midpoint(high.to_bits()))
        };
    }
    if largest { low.max(RATIO_MIN) } else { high }
}
