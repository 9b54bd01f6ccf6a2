//! What the papers say, and what the reference implementation was measured at.

use walras_price_solver::synthetic::Variant;

/// A cell of SPEEDEX 2021, Figure 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// Mean of five runs, in seconds.
    Seconds(f64),
    /// A star: not all five runs ended within five seconds.
    Star,
    /// Not legible in the copy at hand.
    Illegible,
}

use Published::{Illegible as N, Seconds as S, Star as X};

/// The accuracies of Figure 6's columns.
pub const ACCURACIES: [(i32, i32); 4] = [(10, 10), (15, 10), (15, 15), (20, 15)];

/// Figure 6: rows of 500,000, 50,000, 5,000 and 500 offers per variant; columns as in [`ACCURACIES`]. The number of assets is not
/// given.
const FIGURE_6: [(Variant, [[Published; 4]; 4]); 7] = [
    (
        Variant::SomeLarge,
        [
            [S(0.005), N, N, S(0.037)],
            [S(0.008), S(0.009), N, S(0.038)],
            [S(0.006), S(0.007), S(0.048), S(0.106)],
            [S(0.060), S(0.066), S(1.826), S(1.877)],
        ],
    ),
    (
        Variant::OutlierPrices,
        [
            [S(0.008), S(0.012), S(0.017), S(0.036)],
            [S(0.012), S(0.014), N, S(0.053)],
            [S(0.015), S(0.020), X, X],
            [S(0.033), S(0.037), X, X],
        ],
    ),
    (
        Variant::TenPercentGood,
        [
            [S(0.005), S(0.006), S(0.006), S(0.039)],
            [S(0.008), S(0.009), S(0.009), S(0.037)],
            [S(0.008), S(0.008), N, S(0.053)],
            [S(0.024), S(0.034), N, S(1.277)],
        ],
    ),
    (
        Variant::NoneNear,
        [
            [S(0.002), S(0.002), S(0.001), S(0.002)],
            [S(0.004), S(0.006), N, S(0.028)],
            [S(0.006), S(0.009), S(0.105), S(0.188)],
            [S(0.024), S(0.066), N, S(2.487)],
        ],
    ),
    (
        Variant::Close,
        [
            [S(0.008), N, N, S(0.044)],
            [S(0.011), S(0.044), N, S(0.040)],
            [S(0.013), S(0.039), N, S(0.031)],
            [S(0.030), S(0.037), N, S(0.073)],
        ],
    ),
    (
        Variant::Dispersed,
        [
            [S(0.002), S(0.003), N, S(0.005)],
            [S(0.005), N, N, S(0.042)],
            [S(0.005), S(0.009), S(0.099), S(0.279)],
            [S(0.022), N, N, X],
        ],
    ),
    (
        Variant::UnevenVolumes,
        [
            [S(0.180), S(0.180), S(0.133), S(0.145)],
            [S(0.169), N, S(0.129), S(0.152)],
            [S(0.257), S(0.280), S(0.976), S(1.045)],
            [X, X, X, X],
        ],
    ),
];

/// Figure 6's cell, where there is one.
#[must_use]
pub fn figure_6(variant: Variant, offer_count: usize, column: usize) -> Option<Published> {
    let row = [500_000, 50_000, 5_000, 500].iter().position(|&count| count == offer_count)?;
    FIGURE_6.iter().find(|(of, _)| *of == variant).map(|(_, rows)| rows[row][column])
}

impl Published {
    /// As in the paper.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            S(seconds) => format!("{:.0} ms", seconds * 1e3),
            X => "* (over 5 s)".to_owned(),
            N => "?".to_owned(),
        }
    }
}

/// The reference implementation on a machine like ours, one core, its best step scale of three, cold, milliseconds (low, high), for
/// 20 assets in cycles and 500,000 offers at [`ACCURACIES`].
pub const REFERENCE_20_500K_MS: [(f64, f64); 4] = [(6.9, 7.7), (7.5, 8.1), (6.6, 9.2), (23.8, 27.9)];

/// The same for 50 assets.
pub const REFERENCE_50_500K_MS: [(f64, f64); 4] = [(73.0, 95.0), (84.0, 99.0), (89.0, 107.0), (366.0, 415.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_where_the_paper_has_them() {
        assert_eq!(figure_6(Variant::SomeLarge, 500, 2), Some(S(1.826)));
        assert_eq!(figure_6(Variant::OutlierPrices, 5_000, 3), Some(X));
        assert_eq!(figure_6(Variant::UnevenVolumes, 500_000, 0), Some(S(0.180)));
        assert_eq!(figure_6(Variant::Default, 500, 0), None);
        assert_eq!(figure_6(Variant::Close, 60, 0), None);
    }
}
