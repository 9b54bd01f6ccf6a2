//! The figures, as SVG: unfairness against mean delay, a panel for each direction.

use plotters::prelude::*;
use walras_figures::plot::{Area, FONT, draw};

use crate::figure::{CADENCE_DRAWN, Direction, Figure, Panel, TARGETS, Way};
use crate::processes::COPIES_MAX;
use crate::published::published;
use crate::record::direction_name;
use crate::replicated::{PUBLISHED as PUBLISHED_LATENCIES, Replicated, Submission};
use crate::workload::Disturbance;

const STATIC: RGBColor = RGBColor(40, 90, 180);
const RULE: RGBColor = RGBColor(200, 60, 50);
const OURS: RGBColor = RGBColor(20, 140, 80);
const PUBLISHED: RGBColor = RGBColor(140, 140, 140);

/// One of three curves by the number of copies of an order, from one copy on.
pub(crate) struct ByCopies {
    pub(crate) name: &'static str,
    pub(crate) ours: Vec<f64>,
    pub(crate) published: Vec<f64>,
}

/// Both panels.
///
/// # Errors
/// When a value is no number.
pub fn figure(figure: &Figure) -> anyhow::Result<String> {
    draw((1_120, 520), |area| {
        let title = match figure.disturbance {
            Disturbance::None => "Fig. 4: unfairness against delay, nothing injected",
            Disturbance::Steps => "Fig. 5: unfairness against delay, 0, 400 and 200 us injected in turn every 6 s",
            Disturbance::StepsApart => "Unfairness against delay, 0, 200 or 400 us injected on each link by itself",
        };
        let area = area.titled(title, (FONT, 20))?;
        let halves = area.split_evenly((1, 2));
        for (panel, half) in figure.panels.iter().zip(&halves) {
            draw_panel(half, panel, figure.disturbance)?;
        }
        Ok(())
    })
}

/// Figure 6a: latency by copies.
///
/// # Errors
/// When a value is no number.
pub fn replicated(outcome: &Replicated) -> anyhow::Result<String> {
    type Of = (&'static str, fn(&Submission) -> f64, fn(&(f64, f64, f64)) -> f64);
    let quantiles: [Of; 3] =
        [("p99.9", |of| of.p999_us, |of| of.2), ("p99", |of| of.p99_us, |of| of.1), ("p50", |of| of.p50_us, |of| of.0)];
    let curves = quantiles.map(|(name, ours, published)| ByCopies {
        name,
        ours: outcome.by_copies.iter().map(ours).collect(),
        published: PUBLISHED_LATENCIES.iter().map(published).collect(),
    });
    let title = "Fig. 6a: submission latency by number of copies";
    by_copies(title, ("submission latency, us", 1_400.0, 0), SeriesLabelPosition::UpperMiddle, &curves)
}

/// Ours as lines, the published ones as circles. The y axis has a title, an end, and so many digits behind the point.
pub(crate) fn by_copies(
    title: &str,
    (y_title, y_max, decimals): (&str, f64, usize),
    legend: SeriesLabelPosition,
    curves: &[ByCopies; 3],
) -> anyhow::Result<String> {
    draw((760, 500), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(title, (FONT, 20))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d(0.7..COPIES_MAX as f64 + 0.3, 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_labels(COPIES_MAX)
            .x_desc("copies of an order, each through another gateway")
            .y_desc(y_title)
            .label_style((FONT, 13))
            .x_label_formatter(&|copies| format!("{copies:.0}"))
            .y_label_formatter(&|value| format!("{value:.decimals$}"))
            .draw()?;
        for (ByCopies { name, ours, published }, colour) in curves.iter().zip([RULE, STATIC, OURS]) {
            let points = |values: &[f64]| -> Vec<(f64, f64)> {
                (1_u32..).zip(values).map(|(copies, value)| (f64::from(copies), *value)).collect()
            };
            chart
                .draw_series(LineSeries::new(points(ours), colour.stroke_width(2)).point_size(4))?
                .label(*name)
                .legend(move |at| Circle::new((at.0 + 8, at.1), 4, colour.filled()));
            chart
                .draw_series(points(published).into_iter().map(|point| Circle::new(point, 5, colour.stroke_width(1))))?
                .label(format!("{name}, published"))
                .legend(move |at| Circle::new((at.0 + 8, at.1), 5, colour.stroke_width(1)));
        }
        chart.configure_series_labels().position(legend).background_style(WHITE.mix(0.8)).label_font((FONT, 13)).draw()?;
        Ok(())
    })
}

fn draw_panel(area: &Area<'_>, panel: &Panel, disturbance: Disturbance) -> anyhow::Result<()> {
    let (unfair_max, delay_max) = match (panel.direction, disturbance) {
        (_, Disturbance::StepsApart) => (8.0, 1_000.0),
        (Direction::Inbound, _) => (8.0, 500.0),
        (Direction::Outbound, _) => (8.0, 750.0),
    };
    let mut chart = ChartBuilder::on(area)
        .caption(direction_name(panel.direction), (FONT, 16))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..unfair_max, 0.0..delay_max)?;
    let held = match panel.direction {
        Direction::Inbound => "mean queueing delay, us",
        Direction::Outbound => "mean releasing delay, us",
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("unfair, percent")
        .y_desc(held)
        .label_style((FONT, 13))
        .y_label_formatter(&|us| format!("{us:.0}"))
        .x_label_formatter(&|percent| format!("{percent:.0}"))
        .draw()?;
    let seen = |point: &(f64, f64)| point.0 <= unfair_max && point.1 <= delay_max;
    let of = |way: Way| panel.outcome(way).map(|outcome| (outcome.unfair_percent(), outcome.delay_us()));
    let statics = panel.ways.iter().filter(|(way, _)| matches!(way, Way::Static(_)));
    let statics: Vec<(f64, f64)> =
        statics.map(|(_, outcome)| (outcome.unfair_percent(), outcome.delay_us())).filter(seen).collect();
    chart
        .draw_series(LineSeries::new(statics.iter().copied(), STATIC.stroke_width(2)).point_size(2))?
        .label("static")
        .legend(|at| Circle::new((at.0 + 8, at.1), 3, STATIC.filled()));
    let rule = TARGETS.iter().filter_map(|target| of(Way::Stepped(*target, CADENCE_DRAWN))).filter(seen);
    chart
        .draw_series(rule.map(|point| TriangleMarker::new(point, 5, RULE.filled())))?
        .label("CloudEx's rule, run here")
        .legend(|at| TriangleMarker::new((at.0 + 8, at.1), 5, RULE.filled()));
    let ours = TARGETS.iter().filter_map(|target| of(Way::Tracking(*target))).filter(seen);
    chart
        .draw_series(LineSeries::new(ours, OURS.stroke_width(2)).point_size(4))?
        .label("ours, tracking")
        .legend(|at| Circle::new((at.0 + 8, at.1), 4, OURS.filled()));
    let from = published(panel.direction, disturbance);
    let dynamic = from.dynamic.iter().map(|point| (point.1, point.2)).filter(seen);
    chart
        .draw_series(dynamic.map(|point| TriangleMarker::new(point, 5, PUBLISHED.stroke_width(1))))?
        .label("published, dynamic")
        .legend(|at| TriangleMarker::new((at.0 + 8, at.1), 5, PUBLISHED.stroke_width(1)));
    let fixed = from.statics.iter().map(|point| (point.1, point.2)).filter(seen);
    chart
        .draw_series(fixed.map(|point| Circle::new(point, 4, PUBLISHED.stroke_width(1))))?
        .label("published, static")
        .legend(|at| Circle::new((at.0 + 8, at.1), 4, PUBLISHED.stroke_width(1)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}
