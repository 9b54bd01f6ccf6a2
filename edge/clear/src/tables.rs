//! What a clearing says, in the names and decimals of its file: as JSON, as tables, as fills.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use walras_batch_solver::offers::{Asset, Kind, NamedMarket};
use walras_batch_solver::{Cleared, Outcome, Report};
use walras_clearing::{AssetIndex, Fill, Pair, PoolSide};
use walras_gateway::Decimal;
use walras_terminal::table;
use walras_types::{Amount, BatchPrice};

use super::ClearFileError;

/// Rows of the longer tables that are printed for people; files and JSON have them all.
const ROWS_SHOWN_MAX: usize = 20;

/// All that is printed of a clearing but its fills.
#[derive(Clone, Debug)]
pub struct Tables {
    /// As `--json` prints it, without fills.
    pub json: Value,
}

fn float(price: BatchPrice) -> f64 {
    f64::from_bits(price.bits())
}

fn text(amount: u128, asset: &Asset) -> String {
    Decimal::new(amount, asset.decimals.into()).minimal().to_string()
}

/// Eight significant digits, or all of a whole number.
pub(super) fn short(value: f64) -> String {
    const DIGITS: i32 = 8;
    let exponent = value.abs().log10().floor();
    if value == 0.0 {
        "0".to_owned()
    } else if !(-7.0..16.0).contains(&exponent) {
        format!("{value:.7e}")
    } else {
        let decimals = (DIGITS - 1 - exponent as i32).max(0) as usize;
        let text = format!("{value:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// Units sold and bought of each asset.
fn turnover(named: &NamedMarket, cleared: &Cleared<'_>) -> Vec<(u128, u128)> {
    let mut turnover = vec![(0, 0); named.assets.len()];
    let mut add = |pair: Pair, sold: Amount, bought: Amount| {
        turnover[pair.sell.index()].0 += u128::from(sold.get());
        turnover[pair.buy.index()].1 += u128::from(bought.get());
    };
    for clearing in cleared.verified.pairs() {
        let fills = cleared.verified.fills(clearing);
        fills.sells().chain(fills.buys()).for_each(|fill| add(clearing.pair, fill.sold, fill.bought));
    }
    for fill in cleared.verified.pools() {
        add(named.market.pools()[fill.pool.0 as usize].pair(fill.side), fill.sold, fill.bought);
    }
    turnover
}

/// The asset in which each component's prices are given: the one asked for in its own, elsewhere the one traded most.
fn numeraires(named: &NamedMarket, cleared: &Cleared<'_>, turnover: &[(u128, u128)], asked: Option<usize>) -> Vec<Option<usize>> {
    let groups = &cleared.report.components;
    let value = |asset: usize| cleared.proposal.prices[asset].map_or(0.0, |price| turnover[asset].0 as f64 * float(price));
    let mut best: Vec<Option<usize>> = vec![None; named.assets.len()];
    for (asset, group) in groups.iter().enumerate() {
        let Some(group) = *group else { continue };
        if best[group].is_none_or(|best| value(asset) > value(best)) {
            best[group] = Some(asset);
        }
    }
    if let Some((asked, group)) = asked.and_then(|asked| Some((asked, groups[asked]?))) {
        best[group] = Some(asked);
    }
    groups.iter().map(|group| best[(*group)?]).collect()
}

impl Tables {
    /// Prices are given in `numeraire`, if it has one, and in each part of the market that it does not trade with in the asset traded most.
    ///
    /// # Errors
    /// [`ClearFileError::Numeraire`].
    pub fn new(named: &NamedMarket, cleared: &Cleared<'_>, numeraire: Option<&str>) -> Result<Self, ClearFileError> {
        let asked = numeraire.map(|name| {
            let place = named.assets.iter().position(|asset| asset.name == name);
            place.ok_or_else(|| ClearFileError::Numeraire(name.to_owned()))
        });
        let asked = asked.transpose()?;
        let turnover = turnover(named, cleared);
        let numeraires = numeraires(named, cleared, &turnover, asked);
        // Worth of a whole, in units of value.
        let worth = |asset: usize| Some(float(cleared.proposal.prices[asset]?) * 10_f64.powi(named.assets[asset].decimals.into()));
        let name = |asset: AssetIndex| named.assets[asset.index()].name.as_str();
        let prices: Vec<Value> = named
            .assets
            .iter()
            .enumerate()
            .map(|(index, asset)| {
                let unit = numeraires[index];
                let (sold, bought) = turnover[index];
                json!({
                    "asset": asset.name,
                    "decimals": asset.decimals,
                    "price": unit.and_then(|unit| Some(worth(index)? / worth(unit)?)),
                    "price_in": unit.map(|unit| named.assets[unit].name.as_str()),
                    "valuation": cleared.proposal.prices[index].map(float),
                    "sold": text(sold, asset),
                    "bought": text(bought, asset),
                    "kept": text(cleared.report.kept[index].get().into(), asset),
                })
            })
            .collect();
        let rate = |pair: Pair| Some(worth(pair.sell.index())? / worth(pair.buy.index())?);
        let pairs: Vec<Value> = cleared
            .verified
            .pairs()
            .iter()
            .map(|clearing| {
                let pair = clearing.pair;
                let fills = cleared.verified.fills(clearing);
                let (mut sold, mut bought, mut count) = (0, 0, 0_u64);
                fills.sells().chain(fills.buys()).for_each(|fill| {
                    sold += u128::from(fill.sold.get());
                    bought += u128::from(fill.bought.get());
                    count += 1;
                });
                json!({
                    "sell": name(pair.sell),
                    "buy": name(pair.buy),
                    "rate": rate(pair),
                    "sold": text(sold, &named.assets[pair.sell.index()]),
                    "bought": text(bought, &named.assets[pair.buy.index()]),
                    "fills": count,
                    "value": cleared.proposal.prices[pair.sell.index()].map(|price| sold as f64 * float(price)),
                })
            })
            .collect();
        // Values in the numeraire asked for, or in that of the part that trades most.
        let unit = asked
            .filter(|&asked| cleared.proposal.prices[asked].is_some())
            .or_else(|| largest_numeraire(cleared, &turnover, &numeraires));
        let unit_worth = unit.and_then(worth).unwrap_or(1.0);
        let report = report(named, &cleared.report, unit.map(|unit| named.assets[unit].name.as_str()), unit_worth);
        let mut json = json!({"prices": prices, "pairs": pairs, "report": report});
        for pair in json["pairs"].as_array_mut().into_iter().flatten() {
            if let Some(value) = pair["value"].as_f64() {
                pair["value"] = json!(value / unit_worth);
            }
        }
        Ok(Self { json })
    }

    /// The tables for people.
    #[must_use]
    pub fn human(&self, fills: &Fills<'_>) -> String {
        let rows = |name: &str| self.json[name].as_array().cloned().unwrap_or_default();
        let shorten = |mut row: Value, fields: &[&str]| {
            for field in fields {
                if let Some(value) = row[*field].as_f64() {
                    row[*field] = json!(short(value));
                }
            }
            row
        };
        let prices: Vec<Value> = rows("prices").into_iter().map(|row| shorten(row, &["price"])).collect();
        let mut out = "PRICES\n".to_owned();
        let columns =
            [("asset", "asset"), ("price", "price"), ("in", "price_in"), ("sold", "sold"), ("bought", "bought"), ("kept", "kept")];
        out += &table::table(&prices, &columns);
        let mut pairs = rows("pairs");
        pairs.sort_by(|a, b| b["value"].as_f64().unwrap_or(0.0).total_cmp(&a["value"].as_f64().unwrap_or(0.0)));
        let pair_count = pairs.len();
        let pairs: Vec<Value> = pairs.into_iter().take(ROWS_SHOWN_MAX).map(|row| shorten(row, &["rate", "value"])).collect();
        out += "\nPAIRS, those that trade most first\n";
        let columns =
            [("sell", "sell"), ("buy", "buy"), ("rate", "rate"), ("sold", "sold"), ("bought", "bought"), ("fills", "fills")];
        out += &table::table(&pairs, &columns);
        out += &more(pair_count, "pairs: --json");
        out += "\nFILLS\n";
        let shown: Vec<Value> = fills.iter().take(ROWS_SHOWN_MAX).map(|fill| fill.to_json()).collect();
        let columns = [
            ("line", "line"),
            ("id", "id"),
            ("kind", "kind"),
            ("sell", "sell"),
            ("buy", "buy"),
            ("sold", "sold"),
            ("bought", "bought"),
            ("remaining", "remaining"),
        ];
        out += &table::table(&shown, &columns);
        out += &more(fills.iter().count(), "fills: --fills out.csv");
        out += "\nQUALITY\n";
        out + &quality(&self.json["report"])
    }
}

fn more(count: usize, what: &str) -> String {
    if count > ROWS_SHOWN_MAX { format!("and {} more {what} has them\n", count - ROWS_SHOWN_MAX) } else { String::new() }
}

fn largest_numeraire(cleared: &Cleared<'_>, turnover: &[(u128, u128)], numeraires: &[Option<usize>]) -> Option<usize> {
    let value = |asset: &usize| cleared.proposal.prices[*asset].map_or(0.0, |price| turnover[*asset].0 as f64 * float(price));
    numeraires.iter().flatten().copied().max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)))
}

fn report(named: &NamedMarket, report: &Report, unit: Option<&str>, worth: f64) -> Value {
    let name = |asset: &AssetIndex| named.assets[asset.index()].name.clone();
    let value = |value: f64| value / worth;
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let bounds = &report.bounds;
    json!({
        "outcome": match report.outcome {
            Outcome::Cleared => "cleared",
            Outcome::ClearedWithinBounds => "cleared_within_bounds",
            Outcome::Approximate => "approximate",
        },
        "value_in": unit,
        "volume": value(report.volume),
        "realised_utility": value(report.realised_utility),
        "unrealised_utility": value(report.unrealised_utility),
        "unrealised_share": report.unrealised_share(),
        "buy_realised_utility": value(report.buy_realised_utility),
        "buy_unrealised_utility": value(report.buy_unrealised_utility),
        "mu_achieved": report.mu_achieved,
        "worst_excess": report.worst_excess,
        "kept_value": value(report.kept_value),
        "offers": report.offer_count,
        "in_the_money": report.in_the_money_count,
        "fills": report.fill_count,
        "partial_fills": report.partial_count,
        "pairs": report.pair_count,
        "pools": report.pool_count,
        "components": report.component_count,
        "blocks": report.block_count,
        "queries": report.queries,
        "unpriced_assets": report.unpriced.iter().map(name).collect::<Vec<_>>(),
        "pairs_priced_by_buy_offers": report.buying_pair_count,
        "lower_bounds": {
            "pairs_below": bounds.pairs_below,
            "parts_lowered": bounds.parts_lowered,
            "lowered_value": value(bounds.lowered_value),
            "parts_dropped": bounds.parts_dropped,
            "assets_removed": bounds.assets_removed.iter().map(name).collect::<Vec<_>>(),
            "unpriced_pairs": bounds.unpriced_pair_count,
        },
        "ms": {
            "index": ms(report.times.index),
            "prices": ms(report.times.prices),
            "amounts": ms(report.times.amounts),
            "verify": ms(report.times.verify),
            "report": ms(report.times.report),
            "total": ms(report.times.total()),
        },
    })
}

fn quality(report: &Value) -> String {
    let unit = report["value_in"].as_str().unwrap_or("");
    let number = |value: &Value| value.as_f64().map_or_else(String::new, short);
    let field = |name: &str| number(&report[name]);
    let outcome = match report["outcome"].as_str() {
        Some("cleared") => "cleared: smoothed supply and demand agree",
        Some("cleared_within_bounds") => "cleared: amounts within the bounds conserve every asset",
        _ => "approximate: the best prices found; more --queries, or a larger --mu or --eps, may find better ones",
    };
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<22}{text}");
    };
    line("outcome", outcome.to_owned());
    line("volume", format!("{} {unit}", field("volume")));
    line("utility realised", format!("{} {unit}", field("realised_utility")));
    let share = report["unrealised_share"].as_f64().unwrap_or(0.0) * 100.0;
    line("utility not realised", format!("{} {unit} ({} %)", field("unrealised_utility"), short(share)));
    if [&report["buy_realised_utility"], &report["buy_unrealised_utility"]].iter().any(|value| value.as_f64() > Some(0.0)) {
        let text = format!("{} {unit} realised, {} {unit} not", field("buy_realised_utility"), field("buy_unrealised_utility"));
        line("utility of buy offers", text);
    }
    let mu = report["mu_achieved"].as_f64().unwrap_or(0.0);
    line("mu achieved", if mu > 0.0 { format!("{} (2^{:.1})", short(mu), mu.log2()) } else { "0".to_owned() });
    line("kept by the venue", format!("{} {unit}", field("kept_value")));
    line(
        "offers",
        format!(
            "{}; in the money {}; filled {}, of them in part {}",
            field("offers"),
            field("in_the_money"),
            field("fills"),
            field("partial_fills")
        ),
    );
    line("pairs, pools trading", format!("{}, {}", field("pairs"), field("pools")));
    line("components, blocks", format!("{}, {}", field("components"), field("blocks")));
    line("queries", field("queries"));
    let bounds = &report["lower_bounds"];
    line(
        "lower bounds",
        match (bounds["pairs_below"].as_u64(), bounds["parts_dropped"].as_u64()) {
            (Some(0), Some(0)) => "kept".to_owned(),
            (pairs, dropped) => format!(
                "not kept in {} pairs; lowered by {} {unit}; dropped in {} parts",
                pairs.unwrap_or(0),
                number(&bounds["lowered_value"]),
                dropped.unwrap_or(0)
            ),
        },
    );
    let names = |value: &Value| {
        let names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rest = names.len().saturating_sub(ROWS_SHOWN_MAX);
        let shown = names[..names.len() - rest].join(", ");
        if rest > 0 { format!("{shown} and {rest} more") } else { shown }
    };
    let unpriced = names(&report["unpriced_assets"]);
    if !unpriced.is_empty() {
        line("without a price", format!("{unpriced}: nothing that they are offered for comes back to them"));
    }
    let removed = names(&bounds["assets_removed"]);
    if !removed.is_empty() {
        line("left out", format!("{removed}: could not be balanced in whole units; more decimals may help"));
    }
    let ms = &report["ms"];
    line(
        "time",
        format!(
            "{:.2} ms: index {:.2}, prices {:.2}, amounts {:.2}, check {:.2}, report {:.2}",
            ms["total"].as_f64().unwrap_or(0.0),
            ms["index"].as_f64().unwrap_or(0.0),
            ms["prices"].as_f64().unwrap_or(0.0),
            ms["amounts"].as_f64().unwrap_or(0.0),
            ms["verify"].as_f64().unwrap_or(0.0),
            ms["report"].as_f64().unwrap_or(0.0)
        ),
    );
    if report["components"].as_u64().unwrap_or(0) > 1 {
        line(
            "note",
            "parts of the market that do not trade with each other have unrelated prices; values add them all the same".into(),
        );
    }
    out
}

/// The fills of a clearing, pair by pair, then those of pools.
#[derive(Clone, Copy, Debug)]
pub struct Fills<'a> {
    named: &'a NamedMarket,
    cleared: &'a Cleared<'a>,
}

/// One fill in the words of its file.
#[derive(Clone, Copy, Debug)]
pub struct NamedFill<'a> {
    named: &'a NamedMarket,
    row: u64,
    kind: Kind,
    pair: Pair,
    fill: Fill,
}

const FILL_COLUMNS: [&str; 9] = ["line", "id", "account", "kind", "sell", "buy", "sold", "bought", "remaining"];

impl<'a> Fills<'a> {
    /// Those of a clearing.
    #[must_use]
    pub fn new(named: &'a NamedMarket, cleared: &'a Cleared<'a>) -> Self {
        Self { named, cleared }
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = NamedFill<'a>> + use<'a> {
        let Self { named, cleared } = *self;
        let offers = cleared.verified.pairs().iter().flat_map(move |clearing| {
            let fills = cleared.verified.fills(clearing);
            let of_kind = move |kind| move |fill: Fill| NamedFill { named, row: fill.id.0, kind, pair: clearing.pair, fill };
            fills.sells().map(of_kind(Kind::Sell)).chain(fills.buys().map(of_kind(Kind::Buy))).collect::<Vec<_>>()
        });
        let pools = cleared.verified.pools().iter().map(move |fill| {
            let pool = &named.market.pools()[fill.pool.0 as usize];
            let has = match fill.side {
                PoolSide::First => pool.reserves[0],
                PoolSide::Second => pool.reserves[1],
            };
            let row = named.pool_rows[fill.pool.0 as usize];
            // A pool sells at most what it has.
            let remaining = has.checked_sub(fill.sold).unwrap_or(Amount::ZERO);
            let fill = (Fill { id: walras_clearing::OfferId(row), sold: fill.sold, bought: fill.bought, remaining }, fill.side);
            NamedFill { named, row, kind: Kind::Pool, pair: pool.pair(fill.1), fill: fill.0 }
        });
        offers.chain(pools)
    }

    /// All as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.iter().map(|fill| fill.to_json()).collect()
    }

    pub(super) fn write_csv(&self, file: &Path) -> std::io::Result<()> {
        let mut writer = csv::Writer::from_writer(BufWriter::new(std::fs::File::create(file)?));
        writer.write_record(FILL_COLUMNS)?;
        for fill in self.iter() {
            writer.write_record(fill.cells())?;
        }
        writer.into_inner().map_err(|error| error.into_error())?.flush()
    }
}

impl NamedFill<'_> {
    fn cells(&self) -> [String; 9] {
        let [sell, buy] = [self.pair.sell, self.pair.buy].map(|asset| &self.named.assets[asset.index()]);
        // What is left is to be sold, but of a buy offer to be bought.
        let of_remaining = if self.kind == Kind::Buy { buy } else { sell };
        let units = |amount: Amount, asset: &Asset| text(amount.get().into(), asset);
        [
            self.named.line(self.row).unwrap_or_default().to_string(),
            self.named.id(self.row).to_owned(),
            self.named.account(self.row).to_owned(),
            self.kind.name().to_owned(),
            sell.name.clone(),
            buy.name.clone(),
            units(self.fill.sold, sell),
            units(self.fill.bought, buy),
            units(self.fill.remaining, of_remaining),
        ]
    }

    fn to_json(self) -> Value {
        let cells = FILL_COLUMNS.into_iter().zip(self.cells()).map(|(name, cell)| (name.to_owned(), json!(cell)));
        let mut object: serde_json::Map<_, _> = cells.collect();
        object.insert("line".to_owned(), json!(self.named.line(self.row)));
        object.into()
    }
}
