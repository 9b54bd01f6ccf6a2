//! The figures, as SVG: lines over logarithmic time, and maps of cells.

use std::ops::Range;

use anyhow::ensure;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use walras_figures::plot::{self, Area, FONT, draw};

use crate::ruler::grouped;

const COLOURS: [RGBColor; 8] = [
    RGBColor(20, 90, 180),
    RGBColor(190, 40, 40),
    RGBColor(20, 140, 90),
    RGBColor(214, 132, 0),
    RGBColor(130, 80, 170),
    RGBColor(60, 160, 190),
    RGBColor(120, 120, 120),
    RGBColor(160, 100, 60),
];

/// Room for the names of series, right of the curves.
const LEGEND_WIDTH: u32 = 330;

/// An axis' range, title and labels.
type Labelled<'a, X> = (X, &'a str, &'a dyn Fn(&f64) -> String);

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Dots joined by a line.
    Line,
    /// Dots joined by a thin line: what is compared with.
    Thin,
    /// Dots alone.
    Dots,
}

/// Some points with a name.
#[derive(Clone, Debug)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// x, and y above zero.
    pub points: Vec<(f64, f64)>,
    /// Which of eight colours.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// What the x axis shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Plain numbers.
    Linear,
    /// Millions, with a digit behind the point.
    Millions,
    /// Counts, logarithmic.
    Counts,
}

/// What the y axis shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Height {
    /// Milliseconds, logarithmic.
    Time,
    /// So many a second, from zero.
    Rate,
    /// So many a second, logarithmic.
    RateLogarithmic,
}

/// Curves over a logarithmic axis of milliseconds.
pub fn lines(title: &str, x_title: &str, axis: Axis, y_title: &str, series: &[Series]) -> anyhow::Result<String> {
    chart(title, x_title, axis, (y_title, Height::Time), series)
}

/// Curves over an axis of how many a second, from zero.
pub fn rates(title: &str, x_title: &str, axis: Axis, y_title: &str, series: &[Series]) -> anyhow::Result<String> {
    chart(title, x_title, axis, (y_title, Height::Rate), series)
}

/// Curves over a logarithmic axis of how many a second.
pub fn rates_logarithmic(title: &str, x_title: &str, axis: Axis, y_title: &str, series: &[Series]) -> anyhow::Result<String> {
    chart(title, x_title, axis, (y_title, Height::RateLogarithmic), series)
}

fn chart(title: &str, x_title: &str, axis: Axis, (y_title, height): (&str, Height), series: &[Series]) -> anyhow::Result<String> {
    let points: Vec<(f64, f64)> = series.iter().flat_map(|series| series.points.iter().copied()).collect();
    ensure!(!points.is_empty(), "nothing to draw in `{title}`: did every run fail?");
    let range = |values: &dyn Fn(&(f64, f64)) -> f64| {
        let all = points.iter().map(values);
        all.clone().fold(f64::INFINITY, f64::min)..all.fold(0.0, f64::max)
    };
    let (x, y) = (range(&|point| point.0), range(&|point| point.1));
    let counts = |value: &f64| grouped(value.round() as usize);
    let time = |ms: &f64| time_label(*ms);
    let room = |least: f64| (x.end - x.start).max(least) * 0.03;
    let wide = match axis {
        Axis::Linear => x.start - room(1.0)..x.end + room(1.0),
        Axis::Millions => x.start - room(0.1)..x.end + room(0.1),
        Axis::Counts => x.start * 0.8..x.end * 1.25,
    };
    let high = y.start * 0.7..y.end * 1.5;
    draw((960 + LEGEND_WIDTH, 560), |area| {
        let (area, right) = area.split_horizontally(960);
        legend(&right, series)?;
        match height {
            Height::Time => along(&area, title, (axis, wide, x_title), (high.log_scale(), y_title, &time), series),
            Height::Rate => along(&area, title, (axis, wide, x_title), (0.0..y.end * 1.1, y_title, &counts), series),
            Height::RateLogarithmic => along(&area, title, (axis, wide, x_title), (high.log_scale(), y_title, &counts), series),
        }
    })
}

/// Curves over whichever x axis.
fn along<Y>(
    area: &Area<'_>,
    title: &str,
    (axis, x, x_title): (Axis, Range<f64>, &str),
    y: Labelled<'_, Y>,
    series: &[Series],
) -> anyhow::Result<()>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    match axis {
        Axis::Linear => curves(area, title, (x, x_title, &|value| format!("{value:.0}")), y, series),
        Axis::Millions => curves(area, title, (x, x_title, &|value| format!("{value:.1}")), y, series),
        Axis::Counts => curves(area, title, (x.log_scale(), x_title, &|value| grouped(value.round() as usize)), y, series),
    }
}

fn curves<X, Y>(
    area: &Area<'_>,
    title: &str,
    (x, x_title, x_label): Labelled<'_, X>,
    (y, y_title, y_label): Labelled<'_, Y>,
    series: &[Series],
) -> anyhow::Result<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 20))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(88)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(x_title)
        .y_desc(y_title)
        .x_label_formatter(x_label)
        .y_label_formatter(y_label)
        .label_style((FONT, 14))
        .draw()?;
    for series in series.iter().filter(|series| !series.points.is_empty()) {
        let (width, paint) = brush(series);
        if series.stroke != Stroke::Dots {
            chart.draw_series(LineSeries::new(series.points.iter().copied(), paint.stroke_width(width)))?;
        }
        chart.draw_series(series.points.iter().map(|&point| Circle::new(point, 3, paint.filled())))?;
    }
    Ok(())
}

/// The names of the series, from the top down.
fn legend(area: &Area<'_>, series: &[Series]) -> anyhow::Result<()> {
    let mut y = 64;
    for series in series.iter().filter(|series| !series.points.is_empty()) {
        let (width, paint) = brush(series);
        area.draw(&PathElement::new(vec![(4, y), (24, y)], paint.stroke_width(width)))?;
        area.draw(&Circle::new((14, y), 3, paint.filled()))?;
        let style = (FONT, 12).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(series.name.clone(), (30, y), style))?;
        y += 20;
    }
    Ok(())
}

fn brush(series: &Series) -> (u32, RGBAColor) {
    let colour = COLOURS[series.colour % COLOURS.len()];
    if series.stroke == Stroke::Thin { (1, colour.mix(0.6)) } else { (2, colour.mix(1.0)) }
}

/// A cell of a map.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What stands in it.
    pub text: String,
    /// From 0 (good) to 1 (bad).
    pub shade: f64,
}

/// A map of cells with names of its rows and columns.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// From left to right.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<String>,
    /// Row by row.
    pub cells: Vec<Vec<Cell>>,
}

/// Maps side by side.
pub fn maps(title: &str, panels: &[Panel], row_label_width: i32, cell: (i32, i32)) -> anyhow::Result<String> {
    const TOP: i32 = 96;
    let (width, height) = cell;
    let panel_width = |panel: &Panel| row_label_width + width * panel.columns.len() as i32 + 24;
    let all_width: i32 = panels.iter().map(panel_width).sum();
    let rows = panels.iter().map(|panel| panel.rows.len()).max().unwrap_or(0) as i32;
    draw((all_width.max(1) as u32 + 16, (TOP + rows * height + 24) as u32), |area| {
        let text = |at: (i32, i32), words: &str, size: i32, horizontal: HPos| -> anyhow::Result<()> {
            let style = (FONT, size).into_font().color(&BLACK).pos(Pos::new(horizontal, VPos::Center));
            Ok(area.draw(&Text::new(words.to_owned(), at, style))?)
        };
        text((all_width / 2, 20), title, 18, HPos::Center)?;
        let mut left = 8;
        for panel in panels {
            let x_of = |column: usize| left + row_label_width + width * column as i32;
            text((x_of(0) + width * panel.columns.len() as i32 / 2, 50), &panel.title, 14, HPos::Center)?;
            for (column, name) in panel.columns.iter().enumerate() {
                text((x_of(column) + width / 2, 78), name, 12, HPos::Center)?;
            }
            for (row, (name, cells)) in panel.rows.iter().zip(&panel.cells).enumerate() {
                let y = TOP + height * row as i32;
                text((left + row_label_width - 6, y + height / 2), name, 12, HPos::Right)?;
                for (column, cell) in cells.iter().enumerate() {
                    let (x, shade) = (x_of(column), cell.shade.clamp(0.0, 1.0));
                    let corners = [(x, y), (x + width - 1, y + height - 1)];
                    area.draw(&Rectangle::new(corners, shaded(shade).filled()))?;
                    text((x + width / 2, y + height / 2), &cell.text, 12, HPos::Center)?;
                }
            }
            left += panel_width(panel);
        }
        Ok(())
    })
}

/// From pale green over yellow to red.
fn shaded(shade: f64) -> RGBColor {
    let mix = |from: f64, to: f64, share: f64| (from + (to - from) * share) as u8;
    if shade < 0.5 {
        let share = shade * 2.0;
        RGBColor(mix(205.0, 255.0, share), mix(235.0, 236.0, share), mix(205.0, 170.0, share))
    } else {
        let share = shade * 2.0 - 1.0;
        RGBColor(mix(255.0, 236.0, share), mix(236.0, 120.0, share), mix(170.0, 105.0, share))
    }
}

/// A time with two digits or three, and its unit.
#[must_use]
pub fn time_label(ms: f64) -> String {
    plot::time_label(ms * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_a_unit() {
        assert_eq!(
            [0.0123, 0.5, 1.0, 8.704, 316.2, 2_000.0].map(time_label),
            ["12.3 us", "500 us", "1 ms", "8.7 ms", "316 ms", "2 s"]
        );
    }

    #[test]
    fn a_map_shows_its_cells() {
        let cells = vec![vec![Cell { text: "first".into(), shade: 0.0 }, Cell { text: "second".into(), shade: 1.0 }]];
        let panel = Panel { title: "a panel".into(), columns: vec!["1".into(), "2".into()], rows: vec!["row".into()], cells };
        let svg = maps("a map", &[panel], 80, (60, 20)).unwrap();
        assert!(["a map", "a panel", "first", "second", "row"].iter().all(|text| svg.contains(text)));
        assert!(lines("empty", "x", Axis::Linear, "y", &[]).is_err());
    }
}
