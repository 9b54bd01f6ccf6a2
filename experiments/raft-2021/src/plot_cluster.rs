//! The figures of clusters, as SVG.

use plotters::prelude::*;
use plotters::style::RelativeSize;
use walras_figures::plot::{Area, FONT, draw, time_label};

use crate::cluster::Point;
use crate::failover::{Conditions, Elections, GIVEN_UP_MS, PreVote, RANGES, Range};
use crate::plot::{PUBLISHED, count_label, dash, legend};
use crate::record_cluster::RealDeaths;
use crate::stats::{quantile_of_sorted, sorted};
use crate::streaming::Outcome;

const OURS: RGBColor = RGBColor(20, 90, 180);
const ETCD_HERE: RGBColor = RGBColor(20, 140, 90);

/// One colour for each range of [`RANGES`].
const COLOURS: [RGBColor; 7] = [
    RGBColor(190, 40, 40),
    RGBColor(214, 132, 0),
    RGBColor(150, 140, 20),
    RGBColor(20, 140, 90),
    RGBColor(20, 160, 180),
    RGBColor(20, 90, 180),
    RGBColor(120, 60, 170),
];

fn colour(range: Range) -> RGBColor {
    RANGES.iter().position(|one| *one == range).map_or(BLACK, |index| COLOURS[index])
}

/// What a curve is of.
struct Curve {
    label: String,
    colour: RGBColor,
    values_ms: Vec<f64>,
}

/// Fig-4.1: which share of the deaths was over after how long. Left as published, right as a venue runs.
pub fn failover(simulated: &[Elections], real: &[RealDeaths]) -> anyhow::Result<String> {
    let of = |pre_vote, conditions| {
        let fits =
            move |one: &&Elections| one.setup.replicas == 3 && one.setup.pre_vote == pre_vote && one.setup.conditions == conditions;
        simulated.iter().filter(fits).map(|one| Curve {
            label: format!("{} ms", one.range.name()),
            colour: colour(one.range),
            values_ms: one.acknowledged_ms.clone(),
        })
    };
    let worst: Vec<Curve> = of(PreVote::Off, Conditions::WorstCase).collect();
    let mut usual: Vec<Curve> = of(PreVote::On, Conditions::Ordinary).collect();
    for curve in &mut usual {
        curve.label.push_str(", simulated");
    }
    let measured: Vec<Curve> = real
        .iter()
        .map(|one| Curve {
            label: format!("{} ms, three processes", one.range.name()),
            colour: colour(one.range),
            values_ms: one.acknowledged_ms(),
        })
        .collect();
    let published =
        [(287.0, "published median of 150-155 ms: 287 ms", PUBLISHED), (35.0, "published mean of 12-24 ms: 35 ms", PUBLISHED)];
    draw((1_280, 600), |area| {
        let area = area.titled(
            "Fig. 4.1: from the leader's death to the first order acknowledged by its successor, three replicas",
            (FONT, 20),
        )?;
        let (left, right) = area.split_horizontally(RelativeSize::Width(0.5));
        curves(&left, "worst case, no pre-vote, as published (simulated)", &worst, &[], &published)?;
        curves(&right, "as a venue runs: pre-vote, death at any moment", &usual, &measured, &[])
    })
}

fn curves(
    area: &Area<'_>,
    caption: &str,
    thin: &[Curve],
    thick: &[Curve],
    marks: &[(f64, &'static str, RGBColor)],
) -> anyhow::Result<()> {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, (FONT, 16))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(56)
        .build_cartesian_2d((5.0..GIVEN_UP_MS * 10.0).log_scale(), 0.0..1.02)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("milliseconds (logarithmic); given up after 10 s")
        .y_desc("share of the deaths")
        .x_label_formatter(&|ms| time_label(ms * 1e6))
        .label_style((FONT, 14))
        .draw()?;
    for (ms, label, colour) in marks.iter().copied() {
        let cross = Cross::new((ms, 0.5), 6, colour.stroke_width(3));
        chart.draw_series([cross])?.label(label).legend(move |(x, y)| Cross::new((x + 10, y), 5, colour.stroke_width(3)));
    }
    for (curves, width) in [(thin, 1), (thick, 3)] {
        for curve in curves {
            let in_order = sorted(&curve.values_ms);
            let steps =
                (0..=500).map(|step| f64::from(step) / 500.0).map(|share| (quantile_of_sorted(&in_order, share).max(5.0), share));
            let colour = curve.colour;
            chart
                .draw_series(LineSeries::new(steps, colour.stroke_width(width)))?
                .label(&curve.label)
                .legend(move |(x, y)| dash(x, y, colour));
        }
    }
    legend(&mut chart, SeriesLabelPosition::LowerRight)
}

/// A figure of somebody else: x, mean microseconds, a second.
pub(crate) type Mark = (f64, f64, f64);

/// etcd's.
pub(crate) struct Etcd<'a> {
    /// In the same run.
    pub(crate) here: &'a [Mark],
    /// On other machines.
    pub(crate) published: &'a [Mark],
}

/// Fig-4.7 and fig-4.9: mean time to an answer, and answers a second. Medians of the trials, bars from P10 to P90. Crosses are etcd's.
pub(crate) fn load(
    title: &str,
    x_name: &str,
    points: &[Point],
    x_of: impl Fn(&Point) -> f64,
    etcd: &Etcd<'_>,
) -> anyhow::Result<String> {
    draw((1_200, 520), |area| {
        let area = area.titled(title, (FONT, 20))?;
        let (left, right) = area.split_horizontally(RelativeSize::Width(0.5));
        let panel = |ours: fn(&Point) -> Vec<f64>, theirs: fn(&Mark) -> f64| Panel {
            ours: points.iter().map(|point| (x_of(point), ours(point))).collect(),
            here: etcd.here.iter().map(|one| (one.0, theirs(one))).collect(),
            published: etcd.published.iter().map(|one| (one.0, theirs(one))).collect(),
        };
        let latencies = panel(Point::means_us, |one| one.1);
        let throughputs = panel(Point::throughputs, |one| one.2);
        trials(&left, x_name, "mean time to the answer (logarithmic)", &latencies, &|us| time_label(us * 1e3))?;
        trials(&right, x_name, "commands acknowledged a second (logarithmic)", &throughputs, &|count| count_label(count))
    })
}

struct Panel {
    ours: Vec<(f64, Vec<f64>)>,
    here: Vec<(f64, f64)>,
    published: Vec<(f64, f64)>,
}

fn trials(area: &Area<'_>, x_name: &str, y_name: &str, panel: &Panel, label: &dyn Fn(f64) -> String) -> anyhow::Result<()> {
    let Panel { ours, here, published } = panel;
    let values = ours.iter().flat_map(|(_, values)| values.iter().copied());
    let all = sorted(&values.chain(here.iter().chain(published).map(|(_, y)| *y)).collect::<Vec<_>>());
    let (Some(least), Some(most)) = (all.first(), all.last()) else { anyhow::bail!("no trial to plot") };
    let least_x = ours.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let most_x = ours.iter().map(|(x, _)| *x).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(80)
        .build_cartesian_2d((least_x * 0.85..most_x * 1.2).log_scale(), (least * 0.7..most * 1.4).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(x_name)
        .y_desc(y_name)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| label(*y))
        .label_style((FONT, 14))
        .draw()?;
    let three = |(x, values): &(f64, Vec<f64>)| {
        let in_order = sorted(values);
        let at = |share| quantile_of_sorted(&in_order, share);
        (*x, at(0.1), at(0.5), at(0.9))
    };
    let three: Vec<_> = ours.iter().map(three).collect();
    chart
        .draw_series(LineSeries::new(three.iter().map(|(x, _, middle, _)| (*x, *middle)), OURS.stroke_width(2)))?
        .label("ours, here")
        .legend(|(x, y)| dash(x, y, OURS));
    chart.draw_series(
        three.iter().map(|(x, low, middle, high)| ErrorBar::new_vertical(*x, *low, *middle, *high, OURS.filled(), 8)),
    )?;
    for (marks, label, colour) in
        [(here, "etcd, here, median", ETCD_HERE), (published, "etcd as published, on 40 processors", PUBLISHED)]
    {
        if !marks.is_empty() {
            chart
                .draw_series(marks.iter().map(|at| Cross::new(*at, 6, colour.stroke_width(3))))?
                .label(label)
                .legend(move |(x, y)| Cross::new((x + 10, y), 5, colour.stroke_width(3)));
        }
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft)
}

/// Section 3.4: answers a second, one dot a trial, and the published rates.
pub fn streaming(outcomes: &[Outcome]) -> anyhow::Result<String> {
    let rows = outcomes.len() as f64;
    draw((960, 420), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption("Sec. 3.4: calls one at a time and in a stream, one connection", (FONT, 20))
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(210)
            .build_cartesian_2d((100.0..2e6).log_scale(), 0.0..rows)?;
        let name = |row: &f64| {
            let outcome = outcomes.get((rows - row).floor() as usize);
            outcome.map_or_else(String::new, |it| format!("{}, {} replica(s)", it.calls.name(), it.replicas))
        };
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("answers a second (logarithmic)")
            .x_label_formatter(&|rate| count_label(*rate))
            .y_labels(0)
            .label_style((FONT, 14))
            .draw()?;
        for (place, outcome) in outcomes.iter().enumerate() {
            let row = rows - place as f64 - 0.5;
            chart.draw_series(outcome.per_second.iter().map(|rate| Circle::new((*rate, row), 4, OURS.mix(0.5).filled())))?;
            let label = Text::new(name(&row), (110.0, row), (FONT, 14));
            chart.draw_series([label])?;
        }
        for (rate, label) in
            [(289.0, "published, unary gRPC: 289 a second"), (14_925.0, "published, a gRPC stream: 14,925 a second")]
        {
            let line = PathElement::new(vec![(rate, 0.0), (rate, rows)], PUBLISHED.stroke_width(2));
            chart.draw_series([line])?.label(label).legend(move |(x, y)| dash(x, y, PUBLISHED));
        }
        legend(&mut chart, SeriesLabelPosition::LowerRight)
    })
}
