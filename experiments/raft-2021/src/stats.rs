//! Mean, confidence interval, density.

use serde::Serialize;

/// Latencies in nanoseconds, summed up.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end of the 95 % confidence interval of the mean (Student's t).
    pub ci95_low: f64,
    /// Upper end of it.
    pub ci95_high: f64,
    /// Half are below.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Summary {
    /// Of at least two values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        assert!(values.len() >= 2, "an interval needs at least two values");
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let margin = t_95(count - 1.0) * (variance / count).sqrt();
        Self {
            mean,
            ci95_low: mean - margin,
            ci95_high: mean + margin,
            median: quantile(values, 0.5),
            min: quantile(values, 0.0),
            max: quantile(values, 1.0),
        }
    }

    /// The same with a tenth of a nanosecond as the last digit: more would be noise.
    #[must_use]
    pub fn rounded(self) -> Self {
        let Self { mean, ci95_low, ci95_high, median, min, max } = self;
        let [mean, ci95_low, ci95_high, median, min, max] = [mean, ci95_low, ci95_high, median, min, max].map(tenths);
        Self { mean, ci95_low, ci95_high, median, min, max }
    }
}

/// Rounded to a tenth.
#[must_use]
pub fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// From the least to the greatest.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value below which a share of the values lies; interpolated between neighbours.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    quantile_of_sorted(&sorted(values), share)
}

/// The same of values that are sorted.
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The 97.5 % quantile of Student's t, by the first terms of its expansion around the normal's; right to 0.03 from 5 degrees on.
fn t_95(degrees: f64) -> f64 {
    let z = 1.959_964_f64;
    z + (z.powi(3) + z) / (4.0 * degrees) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees.powi(2))
}

/// A smooth density of the values at each of the points: a Gaussian kernel, its width by Silverman's rule on the quartiles, so that a
/// few outliers do not blur it, and no narrower than a thousandth.
#[must_use]
pub fn density(values: &[f64], points: &[f64]) -> Vec<f64> {
    let count = values.len() as f64;
    let spread = (quantile(values, 0.75) - quantile(values, 0.25)) / 1.349;
    let width = (0.9 * spread * count.powf(-0.2)).max(1e-3);
    let scale = 1.0 / (count * width * (2.0 * std::f64::consts::PI).sqrt());
    let at = |point: &f64| scale * values.iter().map(|value| (-0.5 * ((point - value) / width).powi(2)).exp()).sum::<f64>();
    points.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_worked_out_by_hand() {
        // Variance 2.5, standard error sqrt(0.5), t(4) = 2.776.
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (3.0, 3.0, 1.0, 5.0));
        assert!((summary.ci95_high - 3.0 - 2.776 * 0.5_f64.sqrt()).abs() < 0.04, "{summary:?}");
        assert!((summary.ci95_high + summary.ci95_low - 6.0).abs() < 1e-12);
    }

    #[test]
    fn student_at_99_degrees_as_in_tables() {
        assert!((t_95(99.0) - 1.9842).abs() < 1e-4);
    }

    #[test]
    fn a_density_has_area_one() {
        let points: Vec<f64> = (0..=4_000).map(|step| f64::from(step) * 0.01 - 10.0).collect();
        let density = density(&[1.0, 2.0, 4.0, 8.0, 9.0], &points);
        assert!((density.iter().sum::<f64>() * 0.01 - 1.0).abs() < 1e-3);
    }
}
