//! Plots as SVG: the canvas and the labels that all of them share.

use anyhow::{Context, ensure};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Of all text.
pub const FONT: &str = "sans-serif";

/// What is drawn on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An SVG on white.
///
/// # Errors
/// What `paint` returns, and when the plot cannot be drawn.
pub fn draw(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> anyhow::Result<()>) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        paint(&area).context("drawing a plot; a value that is no number would do this")?;
        area.present()?;
    }
    ensure!(svg.contains("</svg>"), "the plot came out unfinished");
    Ok(svg)
}

/// A time with two digits or three, and its unit.
#[must_use]
pub fn time_label(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A count with its thousands set off.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_three_digits_and_a_unit() {
        let labels = [0.0, 31.62, 316.2, 999.9, 1_000.0, 8_704.0, 31_622.0, 1e6, 316.2e6, 2e9].map(time_label);
        assert_eq!(labels, ["0 ns", "31.6 ns", "316 ns", "1 us", "1 us", "8.7 us", "31.6 us", "1 ms", "316 ms", "2 s"]);
        assert_eq!([7, 1_000, 500_000, 10_000_000].map(grouped), ["7", "1,000", "500,000", "10,000,000"]);
    }

    #[test]
    fn what_is_painted_is_in_the_drawing() {
        let svg = draw((60, 20), |area| Ok(area.draw(&Text::new("words", (4, 4), (FONT, 12)))?)).unwrap();
        assert!(svg.contains("words"));
        assert!(draw((60, 20), |_| anyhow::bail!("no number")).is_err());
    }
}
