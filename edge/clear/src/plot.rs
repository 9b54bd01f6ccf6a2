//! Supply and demand of pairs around their rates, as SVG.
//!
//! In a market of many assets the two curves of a pair need not meet at its rate: what is sold for one asset pays for a third.

use std::collections::BTreeMap;

use plotters::prelude::*;
use walras_batch_solver::Cleared;
use walras_batch_solver::offers::NamedMarket;
use walras_clearing::{AssetIndex, BatchMarket, Pair};
use walras_types::BatchPrice;

const FONT: &str = "sans-serif";
const SUPPLY: RGBColor = RGBColor(0, 114, 178);
const DEMAND: RGBColor = RGBColor(213, 94, 0);
const PANEL: (u32, u32) = (560, 380);
const POINTS: u32 = 600;
/// A panel shows rates within one of these factors of the clearing's: the first within which half of the limits are.
const SPREADS: [f64; 9] = [1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0, 100.0];

struct Panel {
    caption: String,
    x_label: String,
    y_label: String,
    rate: f64,
    spread: f64,
    supply: Vec<(f64, f64)>,
    demand: Vec<(f64, f64)>,
}

/// An SVG of the pairs that trade most, in both directions together.
pub(super) fn draw(named: &NamedMarket, cleared: &Cleared<'_>, pair_count_max: usize) -> Result<String, String> {
    let panels: Vec<Panel> =
        most_traded(cleared, pair_count_max).into_iter().filter_map(|pair| panel(named, cleared, pair)).collect();
    let columns = panels.len().clamp(1, 2);
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        if panels.is_empty() {
            let style = (FONT, 18).into_font().color(&BLACK);
            area.draw(&Text::new("nothing trades", (24, 24), style)).map_err(|error| error.to_string())?;
        }
        for (cell, panel) in area.split_evenly((rows, columns)).iter().zip(&panels) {
            draw_panel(cell, panel).map_err(|error| error.to_string())?;
        }
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

/// Pairs by the value that they trade in both directions, each in the direction that trades more.
fn most_traded(cleared: &Cleared<'_>, count_max: usize) -> Vec<Pair> {
    let mut value: BTreeMap<[AssetIndex; 2], [f64; 2]> = BTreeMap::new();
    for clearing in cleared.verified.pairs() {
        let Pair { sell, buy } = clearing.pair;
        let price = |asset: AssetIndex| cleared.proposal.prices[asset.index()].map_or(0.0, |price| f64::from_bits(price.bits()));
        let traded = clearing.sold.get() as f64 * price(sell) + clearing.bought_by_buy_offers.get() as f64 * price(buy);
        value.entry([sell.min(buy), sell.max(buy)]).or_default()[usize::from(sell > buy)] += traded;
    }
    let mut pairs: Vec<_> = value.into_iter().collect();
    pairs.sort_by(|(_, a), (_, b)| (b[0] + b[1]).total_cmp(&(a[0] + a[1])));
    let direction = |([low, high], [up, down]): ([AssetIndex; 2], [f64; 2])| {
        if up >= down { Pair { sell: low, buy: high } } else { Pair { sell: high, buy: low } }
    };
    pairs.into_iter().take(count_max).map(direction).collect()
}

fn panel(named: &NamedMarket, cleared: &Cleared<'_>, pair: Pair) -> Option<Panel> {
    let price = |asset: AssetIndex| Some(f64::from_bits(cleared.proposal.prices[asset.index()]?.bits()));
    let [sell, buy] = [pair.sell, pair.buy].map(|asset| &named.assets[asset.index()]);
    // Units bought for a unit sold; wholes for a whole; wholes sold per unit.
    let rate = price(pair.sell)? / price(pair.buy)?;
    let whole = 10_f64.powi(i32::from(sell.decimals) - i32::from(buy.decimals));
    let per_unit = 10_f64.powi(-i32::from(sell.decimals));
    let back = Pair { sell: pair.buy, buy: pair.sell };
    let spread = spread(&named.market, pair, back, rate);
    let (low, high) = ((rate / spread).ln(), (rate * spread).ln());
    let at = |point: u32| (low + (high - low) * f64::from(point) / f64::from(POINTS)).exp();
    let supply = |rate: f64| {
        let (sells, buys) = offered(&named.market, pair, rate);
        (rate * whole, (sells + buys / rate) * per_unit)
    };
    let demand = |rate: f64| {
        let (sells, buys) = offered(&named.market, back, 1.0 / rate);
        (rate * whole, (sells / rate + buys) * per_unit)
    };
    Some(Panel {
        caption: format!("{} for {} at {}", sell.name, buy.name, crate::tables::short(rate * whole)),
        x_label: format!("rate: {} for one {}", buy.name, sell.name),
        y_label: sell.name.clone(),
        rate: rate * whole,
        spread,
        supply: (0..=POINTS).map(|point| supply(at(point))).collect(),
        demand: (0..=POINTS).map(|point| demand(at(point))).collect(),
    })
}

/// What a pair's sell offers sell and its buy offers buy at a rate, in units, before commission.
fn offered(market: &BatchMarket, pair: Pair, rate: f64) -> (f64, f64) {
    let Some(book) = market.book(pair) else { return (0.0, 0.0) };
    let rate = rate.clamp(f64::from_bits(BatchPrice::MIN.bits()), f64::from_bits(BatchPrice::MAX.bits()));
    let limit = BatchPrice::from_bits(rate.to_bits()).expect("within the range of prices");
    (book.sells().units_at_or_below(limit).get() as f64, book.buys().units_at_or_below(limit).get() as f64)
}

fn spread(market: &BatchMarket, pair: Pair, back: Pair, rate: f64) -> f64 {
    let mut distances = Vec::new();
    for (pair, rate) in [(pair, rate), (back, 1.0 / rate)] {
        let Some(book) = market.book(pair) else { continue };
        let limits =
            book.sells().as_slice().iter().map(|offer| offer.key()).chain(book.buys().as_slice().iter().map(|offer| offer.key()));
        let limits = limits.filter(|key| !key.limit.is_zero());
        distances.extend(limits.map(|key| (f64::from_bits(key.limit.bits()) / rate).ln().abs().exp()));
    }
    distances.sort_by(f64::total_cmp);
    let half = distances.get(distances.len() / 2).copied().unwrap_or(1.0);
    SPREADS.into_iter().find(|&spread| half <= spread).unwrap_or(SPREADS[SPREADS.len() - 1])
}

/// Four significant digits: the axis is logarithmic, so its marks are at no round numbers.
fn rounded(rate: f64) -> String {
    crate::tables::short(format!("{rate:.3e}").parse().unwrap_or(rate))
}

type Cell<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(cell: &Cell<'_>, panel: &Panel) -> Result<(), Box<dyn std::error::Error>> {
    let top = panel.supply.iter().chain(&panel.demand).map(|&(_, amount)| amount).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.3 } else { 1.0 };
    let mut chart = ChartBuilder::on(cell)
        .caption(&panel.caption, (FONT, 18))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((panel.rate / panel.spread).ln()..(panel.rate * panel.spread).ln(), 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&panel.x_label)
        .y_desc(&panel.y_label)
        .x_labels(6)
        .x_label_formatter(&|log_rate| rounded(log_rate.exp()))
        .y_label_formatter(&|amount| crate::tables::short(*amount))
        .label_style((FONT, 12))
        .draw()?;
    for (points, name, colour) in [(&panel.supply, "offered", SUPPLY), (&panel.demand, "wanted", DEMAND)] {
        let line = LineSeries::new(points.iter().map(|&(rate, amount)| (rate.ln(), amount)), colour.stroke_width(2));
        let dash = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2));
        chart.draw_series(line)?.label(name).legend(dash);
    }
    chart.draw_series([PathElement::new(vec![(panel.rate.ln(), 0.0), (panel.rate.ln(), top)], BLACK.mix(0.6).stroke_width(1))])?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperMiddle)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 12))
        .draw()?;
    Ok(())
}
