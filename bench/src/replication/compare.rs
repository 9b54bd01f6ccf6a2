//! Which figure of ours is compared with which of a peer's, and what it has to reach.

use std::collections::BTreeMap;

use anyhow::ensure;

use crate::replication::{Line, Load, disk_figures};
use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::statistics::{Percentiles, median};

/// What was measured, round by round.
#[derive(Debug, Default)]
pub struct Measured {
    /// By a peer's load, then by its variant.
    peers: BTreeMap<&'static str, BTreeMap<Option<&'static str>, Vec<Line>>>,
    /// In the order in which they came.
    ours: Vec<(String, Unit, Vec<f64>)>,
    surroundings: BTreeMap<String, Vec<(Percentiles, f64)>>,
}

impl Measured {
    /// Adds a round of a peer's load.
    pub fn peer(&mut self, load: &Load, line: Line) {
        self.peers.entry(load.name).or_default().entry(load.variant).or_default().push(line);
    }

    /// Adds a round of ours.
    pub fn ours(&mut self, figures: Vec<Figure>) -> anyhow::Result<()> {
        for figure in figures {
            match self.ours.iter_mut().find(|(metric, ..)| *metric == figure.metric) {
                Some((metric, unit, values)) => {
                    ensure!(*unit == figure.unit, "{metric} is measured in two units; keep to one");
                    values.push(figure.value);
                }
                None => self.ours.push((figure.metric, figure.unit, vec![figure.value])),
            }
        }
        Ok(())
    }

    /// Adds what the disk's syncs took before a measurement, and the share of the processors that others took during it.
    pub fn surroundings(&mut self, key: &str, sync: Percentiles, others_cpu_percent: f64) {
        self.surroundings.entry(key.to_owned()).or_default().push((sync, others_cpu_percent));
    }

    /// Of all measurements.
    pub fn syncs(&self) -> impl Iterator<Item = Percentiles> {
        self.surroundings.values().flatten().map(|(sync, _)| *sync)
    }

    fn our(&self, metric: &str) -> Option<f64> {
        self.ours.iter().find(|(name, ..)| name == metric).map(|(.., values)| median(values))
    }

    /// The rounds of a load under the variant that did best: the most commands, and among those that keep up with an offered rate
    /// the quickest.
    fn best(&self, load: &str) -> Option<(Option<&'static str>, &[Line])> {
        let offered = if load.ends_with("_320k") { OFFERED_PER_S * KEEPS_UP } else { f64::INFINITY };
        let of = |lines: &[Line], what: What| median(&lines.iter().map(|line| what.of(line)).collect::<Vec<_>>());
        let variants = self.peers.get(load)?.iter();
        let best = variants.max_by(|(_, one), (_, other)| {
            let rank = |lines: &[Line]| (of(lines, What::PerS).min(offered), -of(lines, What::MeanUs));
            let (one, other) = (rank(one), rank(other));
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        best.map(|(variant, lines)| (*variant, lines.as_slice()))
    }

    /// The peer that does best at what is comparable.
    fn best_peer(&self, loads: &[&str], what: What) -> Option<PeerFigure> {
        let compared = loads.iter().filter_map(|load| self.compared(load, what));
        match what {
            What::PerS => compared.max_by(|one, other| one.value.total_cmp(&other.value)),
            What::MeanUs | What::P50Us | What::P99Us => compared.min_by(|one, other| one.value.total_cmp(&other.value)),
        }
    }

    fn compared(&self, load: &str, what: What) -> Option<PeerFigure> {
        let (variant, lines) = self.best(load)?;
        let value = median(&lines.iter().map(|line| what.of(line)).collect::<Vec<_>>());
        let variant = variant.map_or(String::new(), |variant| format!(", {variant}, the best of those tried"));
        let how = format!("{load}{variant}; rounds in turn with ours, same folder, median");
        Some(PeerFigure::new(lines.first()?.peer.clone(), value, what.unit(), how))
    }
}

const OFFERED_PER_S: f64 = 320_000.0;
/// Of an offered rate.
const KEEPS_UP: f64 = 0.99;

/// What of a peer's line.
#[derive(Clone, Copy, Debug)]
enum What {
    PerS,
    MeanUs,
    P50Us,
    P99Us,
}

impl What {
    const ALL: [(&'static str, Self); 4] =
        [("per_s", Self::PerS), ("mean_us", Self::MeanUs), ("p50_us", Self::P50Us), ("p99_us", Self::P99Us)];

    const fn of(self, line: &Line) -> f64 {
        match self {
            Self::PerS => line.per_s,
            Self::MeanUs => line.mean_us,
            Self::P50Us => line.p50_us,
            Self::P99Us => line.p99_us,
        }
    }

    const fn unit(self) -> Unit {
        match self {
            Self::PerS => Unit::PerS,
            Self::MeanUs | Self::P50Us | Self::P99Us => Unit::Us,
        }
    }
}

/// What a figure of ours has to reach.
#[derive(Clone, Copy, Debug)]
enum Goal {
    Open,
    Value(f64),
    /// So many times the peer's.
    OfPeer(f64),
}

/// Peers' loads that are the same to them, and what of the best of them.
type Compared = (&'static [&'static str], What);

/// Our metrics, their goals, and the peers' figures to compare with.
const KNOWN: [(&str, Goal, Option<Compared>); 12] = [
    ("orders_per_s_durable", Goal::Value(OFFERED_PER_S), Some((&["aeron_durable_1000", "etcd_1000"], What::PerS))),
    ("orders_per_s_memory", Goal::Open, Some((&["aeron_memory_1000"], What::PerS))),
    ("mean_ack_us_at_320k_durable", Goal::Value(1_000.0), Some((&["aeron_durable_320k"], What::MeanUs))),
    ("mean_ack_us_at_320k_memory", Goal::Value(400.0), Some((&["aeron_memory_320k"], What::MeanUs))),
    ("p99_ack_us_at_320k_durable", Goal::OfPeer(0.4), Some((&["aeron_durable_320k"], What::P99Us))),
    ("p99_ack_us_at_320k_memory", Goal::OfPeer(0.4), Some((&["aeron_memory_320k"], What::P99Us))),
    ("mean_ack_us_one_durable", Goal::Open, Some((&["aeron_durable_1", "etcd_1"], What::MeanUs))),
    ("mean_ack_us_one_memory", Goal::Open, Some((&["aeron_memory_1"], What::MeanUs))),
    ("orders_per_s_1000_outstanding_durable", Goal::Open, Some((&["aeron_durable_1000", "etcd_1000"], What::PerS))),
    ("orders_per_s_1000_outstanding_memory", Goal::Open, Some((&["aeron_memory_1000"], What::PerS))),
    ("failover_p50_ms_150_300", Goal::Value(200.0), None),
    ("failover_silent_p50_ms", Goal::Value(200.0), None),
];

/// How many times our throughput is the best of some loads: the figure, our metric, the loads, what it has to reach. First with as
/// many commands unanswered as each does best with, then with 1,000 for both.
const TIMES: [(&str, &str, &[&str], f64); 6] = [
    ("vs_etcd_throughput", "orders_per_s_durable", &["etcd_1", "etcd_100", "etcd_1000"], 30.0),
    ("vs_aeron_throughput_durable", "orders_per_s_durable", &["aeron_durable_1000"], 1.0),
    ("vs_aeron_throughput_memory", "orders_per_s_memory", &["aeron_memory_1000"], 1.0),
    ("vs_etcd_throughput_1000_outstanding", "orders_per_s_1000_outstanding_durable", &["etcd_1000"], 30.0),
    ("vs_aeron_throughput_1000_outstanding_durable", "orders_per_s_1000_outstanding_durable", &["aeron_durable_1000"], 1.0),
    ("vs_aeron_throughput_1000_outstanding_memory", "orders_per_s_1000_outstanding_memory", &["aeron_memory_1000"], 1.0),
];

/// Puts all figures into the report.
pub fn compare(measured: &Measured, report: &mut Report) -> anyhow::Result<()> {
    times(measured, report);
    own(measured, report)?;
    peers(measured, report);
    disk_figures(measured, report);
    for (key, surroundings) in &measured.surroundings {
        report.samples(format!("{key}_disk_sync_p50_us"), surroundings.iter().map(|(sync, _)| sync.p50).collect());
        report.samples(format!("{key}_others_cpu_percent"), surroundings.iter().map(|(_, others)| *others).collect());
    }
    Ok(())
}

fn times(measured: &Measured, report: &mut Report) {
    for (metric, our_metric, loads, bar) in TIMES {
        if let (Some(ours), Some(theirs)) = (measured.our(our_metric), measured.best_peer(loads, What::PerS)) {
            let how = format!("once its {} commands a second under {}", theirs.value, theirs.how);
            let figure = Figure::new(metric, ours / theirs.value, Unit::TimesFaster);
            report.figure(figure.against(PeerFigure::new(theirs.name, 1.0, Unit::TimesFaster, how)).bar(bar));
        }
    }
}

fn own(measured: &Measured, report: &mut Report) -> anyhow::Result<()> {
    for (metric, unit, values) in &measured.ours {
        let value = report.samples(metric.clone(), values.clone());
        let figure = Figure::new(metric.clone(), value, *unit);
        let known = KNOWN.iter().find(|(name, ..)| name == metric);
        let Some((_, goal, compared)) = known else {
            report.figure(figure);
            continue;
        };
        let peer = compared.and_then(|(loads, what)| measured.best_peer(loads, what));
        ensure!(peer.as_ref().is_none_or(|peer| peer.unit == *unit), "{metric} is not in its peer's unit; measure it in that");
        let bar = match goal {
            Goal::Open => None,
            Goal::Value(value) => Some(*value),
            Goal::OfPeer(times) => peer.as_ref().map(|peer| peer.value * times),
        };
        let figure = figure.against_any(peer);
        report.figure(match bar {
            Some(bar) => figure.bar(bar),
            None => figure,
        });
    }
    Ok(())
}

/// The peers' own figures, each load under its best variant; the samples have all variants.
fn peers(measured: &Measured, report: &mut Report) {
    for (load, variants) in &measured.peers {
        for (variant, lines) in variants {
            let key = variant.map_or_else(|| (*load).to_owned(), |variant| format!("{load}_{variant}"));
            for (name, what) in What::ALL {
                report.samples(format!("{key}_{name}"), lines.iter().map(|line| what.of(line)).collect());
            }
        }
        if let Some((Some(variant), _)) = measured.best(load) {
            report.note(format!("{load}_...: {variant} did best"));
        }
        for (name, what) in What::ALL {
            if let Some(peer) = measured.compared(load, what) {
                report.figure(Figure::new(format!("{load}_{name}"), peer.value, peer.unit));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::REQUIRED;
    use crate::replication::peers::{aeron_loads, etcd_loads};

    fn line(peer: &str, per_s: f64, mean_us: f64) -> Line {
        Line { peer: peer.to_owned(), per_s, mean_us, p50_us: mean_us / 2.0, p99_us: mean_us * 3.0 }
    }

    /// Three rounds in which the variants of a peer's loads differ.
    fn peers_measured() -> Measured {
        let mut measured = Measured::default();
        for round in [1.0, 3.0, 2.0] {
            for (at, load) in etcd_loads().iter().enumerate() {
                measured.peer(load, line("etcd 3", 1_000.0 * (at + 1) as f64 + round, 500.0));
            }
            for load in aeron_loads() {
                let (per_s, mean_us) = match load.variant {
                    // In memory both keep up with what is offered, the second more quickly; without an offered rate the first does
                    // more.
                    Some("yielding") => (322_000.0, 900.0),
                    _ => (319_000.0, 600.0),
                };
                measured.peer(&load, line("Aeron Cluster 1", per_s + round, mean_us));
            }
            let sync = Percentiles { mean: 130.0, p50: 120.0 + round, p99: 300.0, p999: 400.0, max: 500.0 };
            measured.surroundings("ours", sync, round);
        }
        measured
    }

    fn figures(measured: &Measured) -> Vec<Figure> {
        let mut report = Report::begin("replication");
        compare(measured, &mut report).unwrap();
        report.figures().to_vec()
    }

    #[test]
    fn without_ours_nothing_required_is_claimed() {
        let figures = figures(&peers_measured());
        assert!(figures.iter().all(|figure| !REQUIRED.contains(&figure.metric.as_str())), "{figures:?}");
        assert!(figures.iter().all(|figure| figure.ratio.is_none()), "{figures:?}");
        let value = |metric: &str| figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value);
        assert_eq!(value("etcd_1000_per_s"), Some(3_002.0));
        assert_eq!(value("aeron_durable_1000_per_s"), Some(319_002.0));
        assert_eq!(value("aeron_memory_1000_per_s"), Some(322_002.0), "the better of two");
        assert_eq!(value("aeron_durable_320k_mean_us"), Some(600.0));
        assert_eq!(value("disk_sync_p50_us"), Some(122.0));
    }

    #[test]
    fn ours_stand_beside_their_peers() {
        let mut measured = peers_measured();
        for round in [1.0, 3.0, 2.0] {
            let own = [
                ("orders_per_s_durable", 640_000.0 + round, Unit::PerS),
                ("mean_ack_us_at_320k_durable", 300.0 * round, Unit::Us),
                ("mean_ack_us_at_320k_memory", 300.0, Unit::Us),
                ("p99_ack_us_at_320k_durable", 700.0, Unit::Us),
                ("failover_p50_ms_150_300", 150.0, Unit::Ms),
                ("failover_silent_p50_ms", 250.0, Unit::Ms),
                ("something_else_us", 1.0, Unit::Us),
            ];
            measured.ours(own.into_iter().map(|(metric, value, unit)| Figure::new(metric, value, unit)).collect()).unwrap();
        }
        let figures = figures(&measured);
        let figure = |metric: &str| figures.iter().find(|figure| figure.metric == metric).unwrap_or_else(|| panic!("no {metric}"));
        assert!(REQUIRED.into_iter().all(|metric| figure(metric).value > 0.0));
        // The median of the rounds over the best of etcd's loads.
        let vs_etcd = figure("vs_etcd_throughput");
        assert_eq!(vs_etcd.value, (640_002.0_f64 / 3_002.0 * 1e3).round() / 1e3);
        let peer = vs_etcd.peer.as_ref().unwrap();
        assert_eq!((peer.name.as_str(), peer.value, vs_etcd.ratio), ("etcd 3", 1.0, Some(vs_etcd.value)));
        assert!(peer.how.contains("3002") && peer.how.contains("etcd_1000"), "{}", peer.how);
        assert_eq!(figure("orders_per_s_durable").peer.as_ref().unwrap().name, "Aeron Cluster 1");
        assert_eq!(figure("mean_ack_us_at_320k_durable").ratio, Some(1.0));
        assert_eq!(figure("p99_ack_us_at_320k_durable").ratio, Some(2.571));
        assert_eq!(figure("something_else_us").peer, None);
        assert!(figures.iter().all(|figure| figure.metric != "vs_aeron_throughput_memory"));
    }

    #[test]
    fn where_one_peer_did_not_run_the_other_stands_there() {
        let mut measured = Measured::default();
        for load in etcd_loads() {
            measured.peer(&load, line("etcd 3", 2_000.0, 500.0));
        }
        let own = [("orders_per_s_durable", 640_000.0, Unit::PerS), ("mean_ack_us_one_durable", 250.0, Unit::Us)];
        measured.ours(own.into_iter().map(|(metric, value, unit)| Figure::new(metric, value, unit)).collect()).unwrap();
        let sync = Percentiles { mean: 130.0, p50: 120.0, p99: 300.0, p999: 400.0, max: 500.0 };
        measured.surroundings("ours", sync, 0.0);
        let figures = figures(&measured);
        let ratio = |metric: &str| figures.iter().find(|figure| figure.metric == metric).and_then(|figure| figure.ratio);
        assert_eq!((ratio("orders_per_s_durable"), ratio("mean_ack_us_one_durable")), (Some(320.0), Some(2.0)));
    }

    #[test]
    fn units_that_do_not_fit_are_refused() {
        let mut measured = peers_measured();
        measured.ours(vec![Figure::new("orders_per_s_durable", 1.0, Unit::PerS)]).unwrap();
        assert!(measured.ours(vec![Figure::new("orders_per_s_durable", 1.0, Unit::Mops)]).is_err());
        let mut other = peers_measured();
        other.ours(vec![Figure::new("orders_per_s_durable", 1.0, Unit::Mops)]).unwrap();
        assert!(compare(&other, &mut Report::begin("replication")).is_err());
    }
}
