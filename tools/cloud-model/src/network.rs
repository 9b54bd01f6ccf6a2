//! One-way delays between gateways and the engine.
//!
//! A message takes: software at both ends (fixed) + what is injected + the link, which is a shifted log-normal delay of its own,
//! times the link's level of that second, plus a rare spike. Links keep order, as `CloudEx`'s (ZeroMQ over TCP) do.
//!
//! - *Measured*: each link has the quantiles of one of the links between virtual machines of one zone of a cloud (`gcp-links` of
//!   the shared data), drawn without return; levels are the 1-s 90th percentiles of a pair of machines over two hours
//!   (`jasper-figures`), over their median, from a place of each link's own.
//! - *Synthetic*, where the data are absent: links spread log-normally around the middle one's fit; levels log-normal with rare
//!   excursions.
//!
//! Spikes are 0.02 % of messages, Pareto from 60 us to 5 ms with exponent 1.6; the share is fitted to the published static delays
//! of 600 us and more out, which miss up to 2.2 % of pieces on 16 links.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::draw::Draw;

/// Gateways.
pub const GATEWAYS: usize = 16;

const US: f64 = 1_000.0;
const SPIKE_SHARE: f64 = 0.0002;
const SPIKE_FROM_NS: f64 = 60_000.0;
const SPIKE_EXPONENT: f64 = 1.6;
/// No spike is longer.
const SPIKE_MAX_NS: f64 = 5_000_000.0;
/// Of a link's quantiles in its table.
const TABLE: usize = 4_096;

/// Where delays come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The shared data.
    Measured,
    /// The model alone.
    Synthetic,
}

impl Source {
    /// As results name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Synthetic => "synthetic",
        }
    }
}

/// A link between two machines: a shifted log-normal delay.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The shift.
    pub shift_us: f64,
    /// The median beyond it.
    pub median_us: f64,
    /// The standard deviation of the logarithm of what is beyond it.
    pub spread: f64,
}

impl Fit {
    /// Through p25, p50 and p75, with the spread that p50 and p90 ask for.
    fn of(p25: f64, p50: f64, p75: f64, p90: f64) -> Self {
        let skew = p25 + p75 - 2.0 * p50;
        // Quantiles without skew have no shift; a tenth of the median below is as good.
        let shift_us = if skew > 0.5 { ((p25 * p75 - p50 * p50) / skew).clamp(0.0, 0.9 * p25) } else { 0.0 };
        let median_us = p50 - shift_us;
        Self { shift_us, median_us, spread: ((p90 - shift_us) / median_us).ln() / 1.281_551_6 }
    }

    /// The delay at a standard normal deviate.
    #[must_use]
    pub fn at_us(self, deviate: f64) -> f64 {
        self.shift_us + self.median_us * (self.spread * deviate).exp()
    }
}

/// All links of one direction.
#[derive(Clone, Debug)]
pub struct Network {
    /// Where the delays come from.
    pub source: Source,
    links: Vec<Link>,
    levels: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Link {
    fit: Fit,
    /// Quantiles at the middles of `TABLE` equal shares.
    table_ns: Vec<f64>,
    level_from: usize,
}

/// The shared data, by `WALRAS_DATA` or next to the repository.
#[must_use]
pub fn data_folder() -> PathBuf {
    std::env::var_os("WALRAS_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from)
}

impl Network {
    /// Measured where the data are, synthetic elsewhere. Directions have names of their own.
    ///
    /// # Errors
    /// When the data are there, but not as expected.
    pub fn load(folder: &Path, seed: u64, direction: u64) -> anyhow::Result<Self> {
        let links = folder.join("gcp-links/links.csv");
        let levels = folder.join("jasper-figures/fig2_vm_pair_p90_1s_series.csv");
        if !links.exists() || !levels.exists() {
            return Ok(Self::synthetic(seed, direction));
        }
        let text = std::fs::read_to_string(&links).with_context(|| format!("reading {}", links.display()))?;
        let mut fits = measured_fits(&text)?;
        ensure!(fits.len() >= GATEWAYS, "{} has {} links, {GATEWAYS} are needed", links.display(), fits.len());
        let text = std::fs::read_to_string(&levels).with_context(|| format!("reading {}", levels.display()))?;
        let levels = measured_levels(&text)?;
        let mut draw = Draw::new(seed, direction);
        let drawn = (0..GATEWAYS).map(|_| fits.swap_remove(draw.below(fits.len()))).collect();
        Ok(Self::of(Source::Measured, drawn, levels, &mut draw))
    }

    /// The model alone.
    #[must_use]
    pub fn synthetic(seed: u64, direction: u64) -> Self {
        let mut draw = Draw::new(seed, direction);
        let fits = (0..GATEWAYS)
            .map(|_| Fit {
                shift_us: 9.0,
                median_us: 72.0 * (0.15 * draw.normal()).exp(),
                spread: 0.39 * (0.2 * draw.normal()).exp(),
            })
            .collect();
        let mut level = || {
            let usual = (0.13 * draw.normal()).exp();
            if draw.unit() < 0.0067 { usual * (2.0 + draw.exponential(0.7)) } else { usual }
        };
        let levels = (0..7_200).map(|_| level()).collect();
        Self::of(Source::Synthetic, fits, levels, &mut draw)
    }

    fn of(source: Source, fits: Vec<Fit>, levels: Vec<f64>, draw: &mut Draw) -> Self {
        let link = |fit: Fit| {
            let at = |place: usize| fit.at_us(normal_quantile((place as f64 + 0.5) / TABLE as f64)) * US;
            Link { fit, table_ns: (0..TABLE).map(at).collect(), level_from: draw.below(levels.len()) }
        };
        Self { source, links: fits.into_iter().map(link).collect(), levels }
    }

    /// What the link of a gateway takes for a message sent at a time.
    pub fn transit_ns(&self, gateway: usize, sent_ns: u64, draw: &mut Draw) -> f64 {
        let link = &self.links[gateway];
        let second = usize::try_from(sent_ns / 1_000_000_000).expect("seconds of an experiment");
        let level = self.levels[(link.level_from + second) % self.levels.len()];
        level * link.draw_ns(draw) + spike_ns(draw)
    }

    /// The mean over all links of their medians, in microseconds, at the middle level.
    #[must_use]
    pub fn median_mean_us(&self) -> f64 {
        self.links.iter().map(|link| link.fit.at_us(0.0)).sum::<f64>() / self.links.len() as f64
    }
}

impl Link {
    fn draw_ns(&self, draw: &mut Draw) -> f64 {
        let place = draw.unit() * TABLE as f64 - 0.5;
        let low = place.floor();
        if low < 0.0 || low + 1.0 >= TABLE as f64 {
            // The outermost shares are not interpolated: the tail is drawn.
            let share = (place + 0.5) / TABLE as f64;
            return self.fit.at_us(normal_quantile(share.clamp(1e-9, 1.0 - 1e-9))) * US;
        }
        let index = low as usize;
        let (below, above) = (self.table_ns[index], self.table_ns[index + 1]);
        below + (above - below) * (place - low)
    }
}

fn spike_ns(draw: &mut Draw) -> f64 {
    if draw.unit() >= SPIKE_SHARE {
        return 0.0;
    }
    (SPIKE_FROM_NS * (1.0 - draw.unit()).powf(-1.0 / SPIKE_EXPONENT)).min(SPIKE_MAX_NS)
}

/// `context,root,addr,p25,p50,p75,p90,...` in microseconds; one hop where the context says so.
fn measured_fits(text: &str) -> anyhow::Result<Vec<Fit>> {
    let mut fits = Vec::new();
    for line in text.lines().skip(1).filter(|line| line.contains("stages")) {
        let numbers: Vec<f64> = line.split(',').skip(3).take(4).filter_map(|word| word.parse().ok()).collect();
        let [p25, p50, p75, p90] = numbers[..] else { anyhow::bail!("a link without four quantiles: {line}") };
        // Nothing was received: no link.
        if p25 > 0.0 && p90 > p50 {
            fits.push(Fit::of(p25, p50, p75, p90));
        }
    }
    Ok(fits)
}

/// `series,minute,p90` by second, over its median.
fn measured_levels(text: &str) -> anyhow::Result<Vec<f64>> {
    let values: Vec<f64> =
        text.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse().ok()).filter(|p90: &f64| *p90 > 0.0).collect();
    ensure!(values.len() > 1_000, "a series of {} seconds, two hours are expected", values.len());
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    Ok(values.iter().map(|value| value / median).collect())
}

/// All measured links; `None` where the data are absent.
///
/// # Errors
/// When the data are there, but not as expected.
pub fn measured_links(folder: &Path) -> anyhow::Result<Option<Vec<Fit>>> {
    let links = folder.join("gcp-links/links.csv");
    if !links.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&links).with_context(|| format!("reading {}", links.display()))?;
    Ok(Some(measured_fits(&text)?))
}

/// The standard normal's quantile: rational approximations by Acklam, relative error below 1.2e-9.
#[must_use]
pub fn normal_quantile(share: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    let poly = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient);
    let tail = |share: f64| {
        let root = (-2.0 * share.ln()).sqrt();
        poly(&C, root) / (poly(&D, root) * root + 1.0)
    };
    if share < 0.024_25 {
        tail(share)
    } else if share > 1.0 - 0.024_25 {
        -tail(1.0 - share)
    } else {
        let (centred, square) = (share - 0.5, (share - 0.5) * (share - 0.5));
        poly(&A, square) * centred / (poly(&B, square) * square + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal() {
        for (share, deviate) in [(0.5, 0.0), (0.9, 1.281_551_6), (0.999, 3.090_232_3), (0.01, -2.326_347_9)] {
            assert!((normal_quantile(share) - deviate).abs() < 1e-6, "{share}");
        }
    }

    #[test]
    fn a_fit_goes_through_its_quantiles() {
        // The middle link of the measured ones.
        let fit = Fit::of(67.0, 82.0, 101.0, 120.0);
        for (deviate, us) in [(-0.674_49, 67.0), (0.0, 82.0), (0.674_49, 101.0), (1.281_551_6, 120.0)] {
            assert!((fit.at_us(deviate) - us).abs() < 2.0, "{fit:?} at {deviate}: {}", fit.at_us(deviate));
        }
    }

    #[test]
    fn draws_have_the_links_quantiles() {
        let network = Network::synthetic(1, 1);
        let mut draw = Draw::new(1, 2);
        let mut drawn: Vec<f64> = (0..20_001).map(|_| network.links[3].draw_ns(&mut draw)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        for (share, deviate) in [(0.1, -1.281_551_6), (0.5, 0.0), (0.99, 2.326_347_9)] {
            let (seen, meant) = (drawn[(share * 20_000.0) as usize] / US, network.links[3].fit.at_us(deviate));
            assert!((seen / meant - 1.0).abs() < 0.03, "{share}: {seen} {meant}");
        }
    }
}
