//! Fig-4.4 as a drawing: of each book the functions that an order ran in, as wide as their share of the samples, callers below.

use plotters::prelude::*;
use walras_figures::plot::{Area, FONT, draw};

use crate::profile::{Function, Profile};

const WIDTH: i32 = 960;
const MARGIN: i32 = 16;
const ROW: i32 = 18;
/// Rows of a book: deeper calls are left out.
const DEPTH: i32 = 9;
const TITLE: i32 = 30;
/// About as wide as a letter.
const LETTER: i32 = 7;

/// One drawing with all books.
///
/// # Errors
/// It cannot be drawn.
pub fn profiles(profiles: &[Profile]) -> anyhow::Result<String> {
    let height_of_one = TITLE + ROW * (DEPTH + 1) + MARGIN;
    let height = height_of_one * i32::try_from(profiles.len())? + MARGIN;
    draw((WIDTH.cast_unsigned(), height.cast_unsigned()), |area| {
        for (place, profile) in (0..).zip(profiles) {
            let top = MARGIN + place * height_of_one;
            let title =
                format!("{}: {:.0} ns an order, {} samples", profile.contender.name(), profile.ns_per_order, profile.order.samples);
            area.draw(&Text::new(title, (MARGIN, top), (FONT, 18)))?;
            let bottom = top + TITLE + ROW * (DEPTH + 1);
            let frame = Frame { from: f64::from(MARGIN), per_sample: f64::from(WIDTH - 2 * MARGIN) / profile.order.samples as f64 };
            flame(area, "an order", &profile.order, &frame, bottom, 0)?;
        }
        Ok(())
    })
}

/// Where a function is drawn: its left end, and how wide a sample is.
struct Frame {
    from: f64,
    per_sample: f64,
}

fn flame(area: &Area<'_>, name: &str, function: &Function, frame: &Frame, bottom: i32, depth: i32) -> anyhow::Result<()> {
    let width = function.samples as f64 * frame.per_sample;
    if depth > DEPTH || width < 1.0 {
        return Ok(());
    }
    let (left, right) = (frame.from.round() as i32, (frame.from + width).round() as i32);
    let (low, high) = (bottom - depth * ROW, bottom - (depth + 1) * ROW);
    area.draw(&Rectangle::new([(left, high + 1), (right - 1, low)], warm(name).filled()))?;
    let letters = usize::try_from((right - left - 6) / LETTER).unwrap_or(0);
    if letters >= 4 {
        let label: String = name.chars().take(letters).collect();
        area.draw(&Text::new(label, (left + 3, high + 4), (FONT, 12)))?;
    }
    let mut from = frame.from;
    for (called, samples) in &function.calls {
        flame(area, called, samples, &Frame { from, per_sample: frame.per_sample }, bottom, depth + 1)?;
        from += samples.samples as f64 * frame.per_sample;
    }
    Ok(())
}

/// The same colour for the same name.
fn warm(name: &str) -> RGBColor {
    let sum = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let part = |shift: u32| u8::try_from((sum >> shift) % 60).unwrap_or(0);
    RGBColor(255 - part(3) / 2, 150 + part(9), 90 + part(15))
}
