//! An independent search for prices: whether a clearing exists, by a convex program and the ellipsoid method.
//!
//! Let `z(p)` be the smoothed demand for each asset less its supply, in units, at the prices `p`. The program: find `q >= 0` such that
//! `q z(p) >= 0` for all `p > 0`. Its solutions are the clearing prices. That they are solutions: an offer of `a` units of asset `i` for
//! `j` trades a share `s(r)` at the rate `r = p_i / p_j`, which grows with the rate, so `q z(p)` is the sum of `a q_j s(r) (r - r*)`
//! over all offers, with `r*` the rate at `q`. Since `(s(r) - s(r*)) (r - r*) >= 0`, that is at least the sum of `f (r / r* - 1)` with
//! the values `f = a q_i s(r*)` that trade at `q`; and `r / r* - 1 >= ln r - ln r*`, whose sum over a circulation is zero. Markets of
//! gross substitutes have this property in general (Arrow, Block, Hurwicz 1959; Codenotti, Pemmaraju, Varadarajan 2005).
//!
//! So wherever prices do not clear, `z` there is a cut that keeps all prices that do. The ellipsoid method (Yudin, Nemirovski 1976) needs
//! no more: no slopes, no barrier, no start, no structure of the market. It is slow, and its time grows with the cube of the assets.

use walras_price_solver::families::FamilyMarket;

use super::oracle;

/// After so many cuts the search concludes that there are no prices.
const CUTS_MAX: usize = 40_000;
/// Whether amounts exist at the prices is asked once in so many cuts.
const CUTS_PER_LOOK: usize = 32;

/// Demand less supply at these prices, in units, and the largest share of an asset's demand that its supply does not cover.
pub(crate) fn excess(market: &FamilyMarket, prices: &[f64], mu: f64) -> (Vec<f64>, f64) {
    let (mut bought, mut sold) = (vec![0.0; market.asset_count], vec![0.0; market.asset_count]);
    for offer in &market.offers {
        let rate = prices[offer.sell] / prices[offer.buy];
        let units = offer.amount * ((rate - offer.limit) / (mu * rate)).clamp(0.0, 1.0);
        sold[offer.sell] += units;
        bought[offer.buy] += units * rate;
    }
    let worst = bought.iter().zip(&sold).filter(|(bought, _)| **bought > 0.0).map(|(bought, sold)| 1.0 - sold / bought);
    let worst = worst.fold(0.0, f64::max);
    (bought.iter().zip(&sold).map(|(bought, sold)| bought - sold).collect(), worst)
}

/// Prices at which amounts within the bounds clear the market, if the search finds any.
pub(crate) fn clearing(market: &FamilyMarket, eps: f64, mu: f64) -> Option<Vec<f64>> {
    search(market, mu, |prices, worst, cuts| {
        let is_asked = cuts.is_multiple_of(CUTS_PER_LOOK);
        worst <= eps || is_asked && oracle::is_clearing(market, &prices.iter().copied().map(Some).collect::<Vec<_>>(), eps, mu)
    })
}

/// Prices at which smoothed demand exceeds supply by at most this share, if the search finds any.
pub(crate) fn smoothed_clearing(market: &FamilyMarket, excess_max: f64, mu: f64) -> Option<Vec<f64>> {
    search(market, mu, |_, worst, _| worst <= excess_max)
}

fn search(market: &FamilyMarket, mu: f64, is_enough: impl Fn(&[f64], f64, usize) -> bool) -> Option<Vec<f64>> {
    let mut ellipsoid = Ellipsoid::about_the_unit_box(market.asset_count);
    for cuts in 0..CUTS_MAX {
        let prices = &ellipsoid.centre;
        let beyond = |is_beyond: fn(f64) -> bool| prices.iter().position(|&price| is_beyond(price));
        let (low, high) = (beyond(|price| price <= 0.0), beyond(|price| price > 1.0));
        let cut = match (low, high) {
            (Some(asset), _) => unit(market.asset_count, asset, 1.0),
            (None, Some(asset)) => unit(market.asset_count, asset, -1.0),
            (None, None) => {
                let (excess, worst) = excess(market, prices, mu);
                if is_enough(prices, worst, cuts) {
                    return Some(ellipsoid.centre);
                }
                excess
            }
        };
        ellipsoid.keep(&cut)?;
    }
    None
}

fn unit(asset_count: usize, asset: usize, length: f64) -> Vec<f64> {
    let mut vector = vec![0.0; asset_count];
    vector[asset] = length;
    vector
}

/// All `centre + shape u` with `|u| <= 1`. The shape is kept as a factor, so that prices many powers of ten apart keep their digits.
struct Ellipsoid {
    centre: Vec<f64>,
    shape: Vec<Vec<f64>>,
}

impl Ellipsoid {
    fn about_the_unit_box(n: usize) -> Self {
        Self { centre: vec![0.5; n], shape: (0..n).map(|row| unit(n, row, (n as f64).sqrt() / 2.0)).collect() }
    }

    /// The smallest ellipsoid about that half of this one in which `cut` times the way from the centre is not negative. `None` when the
    /// half has no width in floats.
    fn keep(&mut self, cut: &[f64]) -> Option<()> {
        let n = cut.len() as f64;
        let mut across = vec![0.0; cut.len()];
        for (row, along) in self.shape.iter().zip(cut) {
            across.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry * along);
        }
        let length = across.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
        if !length.is_normal() {
            return None;
        }
        across.iter_mut().for_each(|entry| *entry /= length);
        let (wider, flatter) = (n / (n * n - 1.0).sqrt(), 1.0 - ((n - 1.0) / (n + 1.0)).sqrt());
        for (row, centre) in self.shape.iter_mut().zip(&mut self.centre) {
            let reach: f64 = row.iter().zip(&across).map(|(entry, across)| entry * across).sum();
            *centre += reach / (n + 1.0);
            row.iter_mut().zip(&across).for_each(|(entry, across)| *entry = wider * (*entry - flatter * reach * across));
        }
        Some(())
    }
}
