//! The figures, as SVG.

use std::ops::Range;

use plotters::coord::CoordTranslate;
use plotters::prelude::*;
use plotters::style::RelativeSize;
use walras_figures::plot::{Area, FONT, draw, grouped, time_label};

use crate::books::Contender;
use crate::large_sell;
use crate::matching_pair;
use crate::peer;
use crate::stats::{Summary, density, quantile, quantile_of_sorted, sorted};

pub(crate) const PUBLISHED: RGBColor = RGBColor(120, 120, 120);
const PUBLISHED_PEER: RGBColor = RGBColor(150, 100, 190);
/// Points of a density curve.
const CURVE_POINTS: u32 = 2_000;

/// Fig-4.2: how the means are distributed, over a logarithmic axis of latency.
pub fn matching_pair(outcome: &matching_pair::Outcome) -> anyhow::Result<String> {
    // Densities are of logarithms, so that areas under the curves are equal as drawn.
    let decades = outcome.latencies.each_ref().map(|latencies| logs(&latencies.means_ns));
    let published_ns =
        [(8_700.0, "published baseline: 8.7 us", PUBLISHED), (1_000.0, "published exchange-core: 1 us", PUBLISHED_PEER)];
    let x_range = 20_f64.log10()..20_000_f64.log10();
    let points = spaced(&x_range);
    let curves = decades.each_ref().map(|values| density(values, &points));
    let y_max = curves.iter().flatten().copied().fold(0.0, f64::max) * 1.12;

    draw((960, 540), |area| {
        let title = "Fig. 4.2: checking for trades, 1,000 orders a side, one crossing pair";
        let mut chart = ChartBuilder::on(area)
            .caption(title, (FONT, 20))
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(power(&x_range).log_scale(), 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("latency (logarithmic); a line and a band mark a mean and its 95 % confidence interval")
            .y_desc("density of the iterations' means, per decade")
            .x_labels(20)
            .y_label_formatter(&|density| format!("{density:.0}"))
            .x_label_formatter(&|ns| sparse_label(*ns))
            .label_style((FONT, 14))
            .draw()?;
        for (ns, label, colour) in published_ns {
            let line = PathElement::new(vec![(ns, 0.0), (ns, y_max)], colour.stroke_width(2));
            chart.draw_series([line])?.label(label).legend(move |(x, y)| dash(x, y, colour));
        }
        for ((contender, latencies), curve) in matching_pair::CONTENDERS.iter().zip(&outcome.latencies).zip(&curves) {
            let colour = colour(*contender);
            let summary = Summary::of(&latencies.means_ns);
            let band = [(summary.ci95_low.max(1.0), 0.0), (summary.ci95_high, y_max)];
            chart.draw_series([Rectangle::new(band, colour.mix(0.18).filled())])?;
            let mean = summary.mean;
            chart.draw_series([PathElement::new(vec![(mean, 0.0), (mean, y_max)], colour.mix(0.8).stroke_width(1))])?;
            let line = LineSeries::new(
                points.iter().map(|decade| 10_f64.powf(*decade)).zip(curve.iter().copied()),
                colour.stroke_width(2),
            );
            let label = format!("{}: {}", contender.name(), time_label(summary.mean));
            chart.draw_series(line)?.label(label).legend(move |(x, y)| dash(x, y, colour));
        }
        legend(&mut chart, SeriesLabelPosition::Coordinate(505, 8))
    })
}

/// Fig-4.3: which share of the crossing commands took at most how long.
pub fn peer(outcome: &peer::Outcome) -> anyhow::Result<String> {
    let shares: Vec<f64> = (0..=1_000).map(|thousandth| f64::from(thousandth) / 1_000.0).collect();
    draw((960, 540), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption("Fig. 4.3: the same pair on exchange-core's book and on ours", (FONT, 20))
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d((10.0..10_000.0).log_scale(), 0.0..1.02)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_labels(20)
            .x_desc("latency of the crossing order, timer subtracted (logarithmic)")
            .y_desc("share of the orders")
            .x_label_formatter(&|ns| sparse_label(*ns))
            .label_style((FONT, 14))
            .draw()?;
        let published = PathElement::new(vec![(1_000.0, 0.0), (1_000.0, 1.0)], PUBLISHED.mix(0.6).stroke_width(2));
        chart.draw_series([published])?.label("published mean of exchange-core: 1 us").legend(|(x, y)| dash(x, y, PUBLISHED));
        let theirs = outcome.peer;
        let percentiles = [(theirs.p50, 0.5), (theirs.p90, 0.9), (theirs.p99, 0.99), (theirs.p999, 0.999)];
        let label = format!("exchange-core {} here: median {}", outcome.peer_version, time_label(theirs.p50));
        chart
            .draw_series(LineSeries::new(percentiles, BLACK.stroke_width(2)).point_size(4))?
            .label(label)
            .legend(|(x, y)| dash(x, y, BLACK));
        for (contender, latencies) in &outcome.latencies_ns {
            let colour = colour(*contender);
            let in_order = sorted(latencies);
            let curve = shares.iter().map(|share| (quantile_of_sorted(&in_order, *share).max(1.0), *share));
            let label = format!("{}: median {}", contender.name(), time_label(quantile(latencies, 0.5)));
            chart
                .draw_series(LineSeries::new(curve, colour.stroke_width(2)))?
                .label(label)
                .legend(move |(x, y)| dash(x, y, colour));
        }
        legend(&mut chart, SeriesLabelPosition::LowerRight)
    })
}

/// Fig-4.5: mean latency against the size of the book, both axes logarithmic.
pub fn sizes(outcomes: &[large_sell::Outcome]) -> anyhow::Result<String> {
    let (Some(first), Some(last)) = (outcomes.first(), outcomes.last()) else { anyhow::bail!("no size to plot") };
    let x_range = (first.orders_per_side as f64 * 0.8)..(last.orders_per_side as f64 * 1.25);
    draw((960, 640), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption("Fig. 4.5: a sell of 1,000 lots at 1,000 against N orders a side", (FONT, 20))
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(x_range.clone().log_scale(), (20.0..300_000.0).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("N: orders a side, before those that cross are cleared (logarithmic)")
            .y_desc("latency of the sell (logarithmic): dot and bar mean and 95 % confidence, cross median")
            .x_label_formatter(&|count| count_label(*count))
            .y_label_formatter(&|ns| time_label(*ns))
            .label_style((FONT, 14))
            .draw()?;
        let published = [
            (5_000.0, 50_000.0, "published baseline, 5-50 us", colour(Contender::Baseline)),
            (40.0, 200.0, "published optimised, 40-200 ns", PUBLISHED),
        ];
        for (low, high, label, colour) in published {
            let corners = [(x_range.start, low), (x_range.end, high)];
            let band = Rectangle::new(corners, colour.mix(0.13).filled());
            chart
                .draw_series([band])?
                .label(label)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 20, y + 5)], colour.mix(0.2).filled()));
        }
        for (index, contender) in large_sell::CONTENDERS.iter().enumerate() {
            let colour = colour(*contender);
            let at = |outcome: &large_sell::Outcome| (outcome.orders_per_side as f64, Summary::of(&outcome.latencies_ns[index]));
            let line = LineSeries::new(outcomes.iter().map(at).map(|(x, summary)| (x, summary.mean)), colour.stroke_width(2));
            chart.draw_series(line)?.label(contender.name()).legend(move |(x, y)| dash(x, y, colour));
            for (x, summary) in outcomes.iter().map(at) {
                let low = summary.ci95_low.max(1.0);
                chart.draw_series([ErrorBar::new_vertical(x, low, summary.mean, summary.ci95_high, colour.filled(), 8)])?;
                chart.draw_series([Cross::new((x, summary.median), 5, colour.stroke_width(1))])?;
            }
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// Fig-4.6: one size in detail. Left every book, right ours with mean and density.
pub fn detail(outcome: &large_sell::Outcome) -> anyhow::Result<String> {
    draw((1_200, 560), |area| {
        let area = area.titled("Fig. 4.6: the same sell with about 100,000 orders in the book", (FONT, 20))?;
        let (left, right) = area.split_horizontally(RelativeSize::Width(0.5));
        every_iteration(&left, outcome)?;
        ours_in_detail(&right, outcome)
    })
}

fn every_iteration(area: &Area<'_>, outcome: &large_sell::Outcome) -> anyhow::Result<()> {
    let everything: Vec<f64> = outcome.latencies_ns.iter().flat_map(|latencies| logs(latencies)).collect();
    let y_range = (quantile(&everything, 0.0) - 0.2)..(quantile(&everything, 1.0) + 0.5);
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..outcome.met.len() as f64, power(&y_range).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("iteration")
        .x_label_formatter(&|iteration| format!("{iteration:.0}"))
        .y_labels(8)
        .y_desc("latency (logarithmic)")
        .y_label_formatter(&|ns| time_label(*ns))
        .label_style((FONT, 14))
        .draw()?;
    for (contender, latencies) in large_sell::CONTENDERS.iter().zip(&outcome.latencies_ns) {
        let colour = colour(*contender);
        let dots = latencies.iter().enumerate().map(|(index, ns)| dot((index as f64, *ns), colour));
        chart.draw_series(dots)?.label(contender.name()).legend(move |at| Circle::new((at.0 + 10, at.1), 4, colour.filled()));
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight)
}

fn ours_in_detail(area: &Area<'_>, outcome: &large_sell::Outcome) -> anyhow::Result<()> {
    let ours: Vec<_> =
        large_sell::CONTENDERS.iter().zip(&outcome.latencies_ns).filter(|(c, _)| **c != Contender::Baseline).collect();
    // A few iterations that the machine disturbed would squeeze all the others: the axis ends above the 95th percentile.
    let top = ours.iter().map(|(_, latencies)| quantile(latencies, 0.95)).fold(0.0, f64::max) * 1.25;
    let beyond = ours.iter().flat_map(|(_, latencies)| latencies.iter()).filter(|latency| **latency > top).count();
    let y_range = 0.0..top;
    let points = spaced(&y_range);
    // Dots stand in the left half by iteration, curves in the right half, each to its own peak.
    let x_of = |index: usize| 0.5 * index as f64 / outcome.met.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..1.0, y_range.clone())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .disable_x_mesh()
        .x_labels(0)
        .x_desc(format!("iterations (dots; {beyond} beyond the axis) | density, mean, 95 % confidence"))
        .y_desc("latency")
        .y_label_formatter(&|ns| time_label(*ns))
        .label_style((FONT, 14))
        .draw()?;
    for (contender, latencies) in ours {
        let colour = colour(*contender);
        let seen = latencies.iter().enumerate().filter(|(_, latency)| **latency <= top);
        chart.draw_series(seen.map(|(index, latency)| dot((x_of(index), *latency), colour)))?;
        let curve = density(latencies, &points);
        let peak = curve.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let line = curve.iter().zip(&points).map(|(density, ns)| (0.52 + 0.44 * density / peak, *ns));
        let summary = Summary::of(latencies);
        let label = format!("{}: mean {}, median {}", contender.name(), time_label(summary.mean), time_label(summary.median));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?.label(label).legend(move |(x, y)| dash(x, y, colour));
        let band = [(0.52, summary.ci95_low.clamp(0.0, top)), (1.0, summary.ci95_high.clamp(0.0, top))];
        chart.draw_series([Rectangle::new(band, colour.mix(0.18).filled())])?;
        if summary.mean <= top {
            chart.draw_series([PathElement::new(vec![(0.52, summary.mean), (1.0, summary.mean)], colour.stroke_width(1))])?;
        }
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight)
}

pub(crate) fn legend<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
    position: SeriesLabelPosition,
) -> anyhow::Result<()> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 14))
        .draw()?;
    Ok(())
}

fn colour(contender: Contender) -> RGBColor {
    match contender {
        Contender::BaselineCheck => RGBColor(214, 132, 0),
        Contender::Baseline => RGBColor(190, 40, 40),
        Contender::Ladder => RGBColor(20, 90, 180),
        Contender::Art => RGBColor(20, 140, 90),
    }
}

fn dot(at: (f64, f64), colour: RGBColor) -> Circle<(f64, f64), i32> {
    Circle::new(at, 2, colour.mix(0.7).filled())
}

pub(crate) fn dash(x: i32, y: i32, colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new(vec![(x, y), (x + 20, y)], colour.stroke_width(2))
}

/// Decades; less than a nanosecond counts as one.
fn logs(latencies_ns: &[f64]) -> Vec<f64> {
    latencies_ns.iter().map(|ns| ns.max(1.0).log10()).collect()
}

/// Decades back to nanoseconds.
fn power(decades: &Range<f64>) -> Range<f64> {
    10_f64.powf(decades.start)..10_f64.powf(decades.end)
}

fn spaced(range: &Range<f64>) -> Vec<f64> {
    let step = (range.end - range.start) / f64::from(CURVE_POINTS);
    (0..=CURVE_POINTS).map(|index| range.start + step * f64::from(index)).collect()
}

/// A label for a tick at 1, 2 or 5 times a power of ten; nothing for those between, whose labels would overlap.
fn sparse_label(ns: f64) -> String {
    let mantissa = ns / 10_f64.powf(ns.log10().floor());
    if [1.0, 2.0, 5.0, 10.0].iter().any(|kept| (mantissa - kept).abs() < 1e-6) { time_label(ns) } else { String::new() }
}

/// A number with its thousands set off.
pub(crate) fn count_label(count: f64) -> String {
    grouped(count.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap_and_counts_are_whole() {
        assert_eq!([200.0, 1_000.0, 3_000.0].map(sparse_label), ["200 ns", "1 us", ""]);
        assert_eq!([316.0, 1_000.4, 1_234_567.0].map(count_label), ["316", "1,000", "1,234,567"]);
    }
}
