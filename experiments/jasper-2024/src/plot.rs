//! A plot of an experiment's curves, as SVG: ours drawn through, the published ones grey.

use plotters::prelude::*;
use walras_figures::plot::{FONT, draw};

use crate::rows::Findings;

const OURS: [RGBColor; 6] = [
    RGBColor(20, 140, 80),
    RGBColor(40, 90, 180),
    RGBColor(200, 60, 50),
    RGBColor(150, 80, 170),
    RGBColor(200, 140, 20),
    RGBColor(20, 150, 170),
];
const PUBLISHED: [RGBColor; 3] = [RGBColor(110, 110, 110), RGBColor(150, 150, 150), RGBColor(190, 190, 190)];

/// All curves in one chart.
///
/// # Errors
/// When a value is no number.
pub fn plot(findings: &Findings) -> anyhow::Result<String> {
    let points = || findings.curves.iter().flat_map(|curve| &curve.points);
    let x = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, _)| (x.min(low), x.max(high)));
    let y_max = points().map(|(_, y)| *y).fold(1e-9, f64::max);
    draw((900, 520), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(format!("{}: {}", findings.name, findings.title), (FONT, 18))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(x.0..x.1.max(x.0 + 1e-9), 0.0..y_max * 1.04)?;
        let (across, up) = findings.axes;
        chart.configure_mesh().light_line_style(WHITE).x_desc(across).y_desc(up).label_style((FONT, 13)).draw()?;
        let (mut ours, mut published) = (OURS.iter().cycle(), PUBLISHED.iter().cycle());
        for curve in &findings.curves {
            let (colour, name) = match curve.is_published {
                true => (published.next(), format!("{}, published", curve.name)),
                false => (ours.next(), curve.name.clone()),
            };
            let colour = *colour.expect("a cycle has no end");
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(line)?
                .label(name)
                .legend(move |at| PathElement::new([at, (at.0 + 18, at.1)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .label_font((FONT, 13))
            .draw()?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Curve;

    #[test]
    fn a_plot_names_its_curves() {
        let mut findings = Findings::table("fig-0", "a title", Vec::new());
        findings.curves = vec![
            Curve::ours("one", vec![(1.0, 2.0), (3.0, 4.0)]),
            Curve { is_published: true, ..Curve::ours("two", vec![(1.0, 2.0)]) },
        ];
        let svg = plot(&findings).unwrap();
        assert!(svg.contains("a title") && svg.contains("one") && svg.contains("two, published"));
    }
}
