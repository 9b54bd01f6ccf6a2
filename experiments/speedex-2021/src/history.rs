//! SPEEDEX 2021 and 2023, section 6.2: batches after the daily prices and volumes of real assets, and what their clearing is worth.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use walras_batch_solver::{Cleared, Settings, clear};
use walras_clearing::{AssetIndex, BatchMarket, Offer as Standing, OfferId, Pair};
use walras_price_solver::real_days::RealDays;
use walras_price_solver::solve::{Accuracy, Budget, Deadline, Outcome, Portfolio, Problem, Tatonnement};
use walras_price_solver::synthetic::Offer;
use walras_types::{Amount, BatchPrice, Commission, Mu};

use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown, repository};
use crate::ruler::{Bits, Spread, grouped, index_of, mean, median, quantile, thousandths, timed};

/// A day's prices are to be found in this time.
const GOAL_MS: f64 = 5.0;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Folder below `experiments/`.
    pub folder: &'static str,
    /// Offers per batch.
    pub offer_count: usize,
    /// Accuracies; the first is the paper's, and clearings are made at it.
    pub bits: Vec<Bits>,
    /// Days, the last ones.
    pub day_count: usize,
    /// Only the assets of the greatest volume on the last day, so many; none for all.
    pub assets_max: Option<usize>,
    /// History ends with this day, `YYYY-MM-DD`; none for the last there is.
    pub last_day: Option<&'static str>,
    /// The papers' method runs on one day of so many.
    pub tatonnement_every: usize,
    /// Its limits: time (2 s in the papers), queries.
    pub tatonnement: (Duration, u64),
    /// Number of solves of each day; the median counts.
    pub repetitions: usize,
    /// What the paper found.
    pub published: &'static str,
}

impl Setup {
    /// The 2023 paper's: 50 assets.
    #[must_use]
    pub fn full_2023() -> Self {
        Self {
            folder: "speedex-2023/sec-6.2",
            offer_count: 30_000,
            bits: vec![(15, 10), (10, 10), (15, 15), (20, 15)],
            day_count: 500,
            assets_max: None,
            last_day: None,
            tatonnement_every: 20,
            tatonnement: (Duration::from_secs(2), u64::MAX),
            repetitions: 3,
            published: "350 of 500 batches solved quickly; unrealised / realised utility 0.71 % on average (at most 4.7 %) in them, 0.42 % (at most 3.8 %) in the others",
        }
    }

    /// The 2021 paper's: 20 assets.
    #[must_use]
    pub fn full_2021() -> Self {
        Self {
            folder: "speedex-2021/sec-6.2",
            offer_count: 50_000,
            bits: vec![(10, 7), (15, 10), (15, 15), (20, 15)],
            assets_max: Some(20),
            last_day: Some("2021-04-29"),
            published: "789 of 820 blocks converge; price asymmetry 0.1 % on average (at most 0.2 %) in them, 0.2 % (at most 1.2 %) in the others",
            ..Self::full_2023()
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        let tatonnement = (Duration::from_secs(60), 200);
        Self { offer_count: 1_000, day_count: 3, tatonnement_every: 2, tatonnement, repetitions: 1, ..Self::full_2023() }
    }
}

/// The folder of histories: one CSV per asset.
pub fn folder() -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("WALRAS_DATA").map_or_else(|| repository().join("../shared/data"), PathBuf::from);
    let folder = data.join("coingecko");
    ensure!(
        folder.is_dir(),
        "there is no {}: set WALRAS_DATA to a folder with a folder `coingecko` of daily histories, one CSV per asset \
         (snapped_at, price, market_cap, total_volume); they may not be redistributed",
        folder.display()
    );
    Ok(folder)
}

/// Reads the histories that a setup wants.
pub fn read(setup: &Setup, folder: &Path) -> anyhow::Result<RealDays> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}: is it readable?", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let text = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let texts: Vec<String> = files.iter().map(text).collect::<Result<_, _>>()?;
    days_of(setup, texts)
}

/// The days of these histories that a setup wants.
pub fn days_of(setup: &Setup, mut texts: Vec<String>) -> anyhow::Result<RealDays> {
    if let Some(last) = setup.last_day {
        for text in &mut texts {
            let kept = text.lines().enumerate().filter(|(row, line)| *row == 0 || line.get(..10).is_some_and(|day| day <= last));
            *text = kept.map(|(_, line)| format!("{line}\n")).collect();
        }
        // An asset that comes later has no line left.
        texts.retain(|text| text.lines().nth(1).is_some());
    }
    if let Some(most) = setup.assets_max {
        let volume = |text: &String| {
            let last = text.lines().rfind(|line| !line.is_empty())?;
            last.split(',').nth(3)?.parse::<f64>().ok()
        };
        texts.sort_by(|a, b| volume(b).unwrap_or(0.0).total_cmp(&volume(a).unwrap_or(0.0)));
        texts.truncate(most);
    }
    Ok(RealDays::parse(texts.iter().map(String::as_str), setup.day_count)?)
}

/// Cold or warm, at one accuracy, over all days.
#[derive(Default)]
struct Column {
    days: Vec<usize>,
    ms: Vec<f64>,
    queries: Vec<f64>,
    by_bounds: usize,
    /// `(day, worst excess)`.
    unsolved: Vec<(usize, f64)>,
}

/// What a day's clearing is worth.
struct Worth {
    day: usize,
    unrealised_per_realised: f64,
    asymmetry: f64,
    mu_achieved: f64,
    /// Lower bounds lowered or dropped.
    bounds_missed: bool,
    total_ms: f64,
}

#[derive(Default)]
struct Runs {
    /// Per accuracy, cold and warm.
    columns: Vec<[Column; 2]>,
    worth: Vec<Worth>,
    rejected: Vec<(usize, String)>,
    tatonnement_ms: Vec<f64>,
    tatonnement_days: usize,
    empty_days: usize,
}

/// Runs it.
pub fn run(setup: &Setup, days: &RealDays) -> anyhow::Result<Record> {
    let mut runs = Runs { columns: setup.bits.iter().map(|_| Default::default()).collect(), ..Runs::default() };
    for day in 0..days.len() {
        let offers = days.offers(day, setup.offer_count, 1);
        if offers.is_empty() {
            runs.empty_days += 1;
            continue;
        }
        run_day(setup, days, day, &offers, &mut runs)?;
        if (day + 1).is_multiple_of(100) {
            println!("{}: {} days done", setup.folder, day + 1);
        }
    }
    record(setup, days, &runs)
}

fn run_day(setup: &Setup, days: &RealDays, day: usize, offers: &[Offer], runs: &mut Runs) -> anyhow::Result<()> {
    let index = index_of(days.asset_count(), offers)?;
    let start = days.prices(day.saturating_sub(1));
    for (&(eps, mu), columns) in setup.bits.iter().zip(&mut runs.columns) {
        for (column, start) in columns.iter_mut().zip([None, Some(&start[..])]) {
            let problem = Problem { start, ..Problem::cold(&index, Accuracy::bits(eps, mu)) };
            let timed = timed(&Portfolio, &problem, setup.repetitions);
            column.days.push(day);
            column.ms.push(timed.ms);
            column.queries.push(timed.solution.queries as f64);
            match timed.solution.outcome {
                Outcome::Cleared => {}
                Outcome::ClearedWithinBounds => column.by_bounds += 1,
                Outcome::Approximate => column.unsolved.push((day, timed.solution.worst_excess)),
            }
        }
    }
    if day.is_multiple_of(setup.tatonnement_every) {
        let (limit, queries) = setup.tatonnement;
        let (eps, mu) = setup.bits[0];
        let budget = Budget { queries, deadline: Some(Deadline::At(std::time::Instant::now() + limit)), cancel: None };
        let problem = Problem { budget, start: Some(&start), ..Problem::cold(&index, Accuracy::bits(eps, mu)) };
        let timed = timed(&Tatonnement::default(), &problem, 1);
        runs.tatonnement_days += 1;
        runs.tatonnement_ms.extend(timed.is_solved().then_some(timed.ms));
    }
    let prices = days.prices(day);
    let market = BatchMarket::build(prices.len(), &standing(offers, &prices)?, &[], Vec::new())?;
    match clear(&market, &settings(setup.bits[0])?) {
        Ok(cleared) => runs.worth.push(worth(day, &market, &cleared)),
        Err(error) => runs.rejected.push((day, error.to_string())),
    }
    Ok(())
}

/// How a batch is cleared at this accuracy.
pub(crate) fn settings((eps, mu): Bits) -> anyhow::Result<Settings<'static>> {
    let commission = u8::try_from(eps).ok().and_then(Commission::new).context("a commission is 2^-1 to 2^-30")?;
    let mu = u8::try_from(mu).ok().and_then(Mu::new).context("mu is 2^-1 to 2^-30")?;
    Ok(Settings::new(commission, mu))
}

/// Units of the core are whole: an asset is counted in a power of two of its price, so that a unit of every asset is worth about
/// the same and the smallest offer has a billion. So many units are one of each asset.
pub(crate) fn scales(prices: &[f64]) -> Vec<f64> {
    prices.iter().map(|price| (price.log2().round() + 3.0).exp2()).collect()
}

/// The offers in these units, in the same order, with their places as ids.
pub(crate) fn standing(offers: &[Offer], prices: &[f64]) -> anyhow::Result<Vec<(Pair, Standing)>> {
    let scales = scales(prices);
    let standing = |(id, offer): (u64, &Offer)| {
        let name = |asset: usize| u16::try_from(asset).map(AssetIndex).context("fewer than 65,536 assets");
        let pair = Pair { sell: name(offer.sell)?, buy: name(offer.buy)? };
        let limit = BatchPrice::from_bits((offer.limit * scales[offer.buy] / scales[offer.sell]).to_bits());
        let limit = limit.map_err(|error| anyhow!("a limit near a price's ratio: {error}"))?;
        let amount = Amount::new((offer.amount * scales[offer.sell]) as u64).context("an amount below 2^63")?;
        let offer = Standing::new(limit, id, OfferId(id), amount).map_err(|error| anyhow!("offer {id}: {error}"))?;
        anyhow::Ok((pair, offer))
    };
    (0..).zip(offers).map(standing).collect()
}

fn worth(day: usize, market: &BatchMarket, cleared: &Cleared<'_>) -> Worth {
    let report = &cleared.report;
    Worth {
        day,
        unrealised_per_realised: report.unrealised_utility / report.realised_utility.max(f64::MIN_POSITIVE),
        asymmetry: asymmetry(market, cleared),
        mu_achieved: report.mu_achieved,
        bounds_missed: report.bounds.pairs_below > 0,
        total_ms: (report.times.index + report.times.prices + report.times.amounts + report.times.verify).as_secs_f64() * 1e3,
    }
}

/// The 2021 paper's measure: per pair, the least mu for which all offers whose limit is more than it below the rate trade in full;
/// averaged with the pairs' volumes as weights.
fn asymmetry(market: &BatchMarket, cleared: &Cleared<'_>) -> f64 {
    let price = |asset: AssetIndex| cleared.proposal.prices[asset.index()].map(|price| f64::from_bits(price.bits()));
    let (mut sum, mut weight) = (0.0, 0.0);
    for clearing in cleared.verified.pairs() {
        let (Some(sell), Some(buy)) = (price(clearing.pair.sell), price(clearing.pair.buy)) else { continue };
        let Some(book) = market.book(clearing.pair) else { continue };
        let value = clearing.sold.get() as f64 * sell;
        let first_left = book.sells().split(clearing.sold).and_then(|split| book.sells().as_slice().get(split.full_count));
        let limit = first_left.map_or(f64::INFINITY, |offer| f64::from_bits(offer.key().limit.bits()));
        sum += value * (1.0 - limit * buy / sell).max(0.0);
        weight += value;
    }
    if weight > 0.0 { sum / weight } else { 0.0 }
}

fn record(setup: &Setup, days: &RealDays, runs: &Runs) -> anyhow::Result<Record> {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    let solved_days = days.len() - runs.empty_days;
    ensure!(solved_days > 0, "no day on which two assets traded: are these the right histories?");
    for ((eps, mu), columns) in setup.bits.iter().zip(&runs.columns) {
        for (column, start) in columns.iter().zip(["cold", "warm"]) {
            let time = Spread::of(&column.ms);
            let runs = column.days.iter().zip(&column.ms).zip(&column.queries).filter(|((_, ms), _)| **ms > GOAL_MS);
            let late: Vec<Value> =
                runs.map(|((day, ms), queries)| json!({ "day": day, "ms": thousandths(*ms), "queries": queries })).collect();
            let (solved, queries) = (solved_days - column.unsolved.len(), median(&column.queries));
            rows.push(vec![
                format!("({eps}, {mu})"),
                start.into(),
                format!("{solved} of {solved_days}"),
                column.by_bounds.to_string(),
                plot::time_label(time.median_ms),
                plot::time_label(time.p99_ms),
                plot::time_label(time.max_ms),
                late.len().to_string(),
                format!("{queries:.0}"),
            ]);
            values.push(json!({
                "eps_bits": eps,
                "mu_bits": mu,
                "start": start,
                "solved": solved,
                "by_bounds_only": column.by_bounds,
                "time": time,
                "over_goal": late,
                "queries_median": queries,
                "unsolved": column.unsolved.iter().map(|(day, excess)| json!({ "day": day, "worst_excess": excess })).collect::<Vec<_>>(),
            }));
        }
    }
    let clearing = clearing(runs);
    let result = json!({
        "asset_count": days.asset_count(),
        "days": days.len(),
        "days_without_trade": runs.empty_days,
        "offer_count": setup.offer_count,
        "goal_ms": GOAL_MS,
        "published": setup.published,
        "prices": values,
        "clearing": clearing,
        "tatonnement": {
            "days": runs.tatonnement_days,
            "solved": runs.tatonnement_ms.len(),
            "median_ms": if runs.tatonnement_ms.is_empty() { Value::Null } else { json!(thousandths(median(&runs.tatonnement_ms))) },
        },
    });
    let header =
        ["(eps, mu)", "start", "solved", "by bounds only", "median", "99 %", "max", "over 5 ms", "queries"].map(String::from);
    let table = format!(
        "{} assets, {} days, {} offers a day. Published: {}.\n\n{}\n{}\n\nTatonnement here, one core, from the day before's prices, one day of {}: {} of {} solved within {} s.\n",
        days.asset_count(),
        days.len(),
        grouped(setup.offer_count),
        setup.published,
        markdown(&header, &rows),
        summary(setup, runs),
        setup.tatonnement_every,
        runs.tatonnement_ms.len(),
        runs.tatonnement_days,
        setup.tatonnement.0.as_secs()
    );
    Ok(Record { folder: setup.folder.into(), result, table, plot_svg: Some(plot(setup, days, runs)?) })
}

fn clearing(runs: &Runs) -> Value {
    let of = |value: fn(&Worth) -> f64| runs.worth.iter().map(value).collect::<Vec<f64>>();
    let spread = |values: &[f64]| json!({ "mean": mean(values), "median": median(values), "max": quantile(values, 1.0) });
    json!({
        "cleared_and_verified": runs.worth.len(),
        "rejected": runs.rejected.iter().map(|(day, error)| json!({ "day": day, "error": error })).collect::<Vec<_>>(),
        "days_with_lower_bounds_missed": runs.worth.iter().filter(|worth| worth.bounds_missed).map(|worth| worth.day).collect::<Vec<_>>(),
        "unrealised_per_realised_utility": spread(&of(|worth| worth.unrealised_per_realised)),
        "price_asymmetry": spread(&of(|worth| worth.asymmetry)),
        "mu_achieved": spread(&of(|worth| worth.mu_achieved)),
        "index_prices_amounts_check_ms": spread(&of(|worth| worth.total_ms)),
    })
}

fn summary(setup: &Setup, runs: &Runs) -> String {
    let percent = |value: fn(&Worth) -> f64| {
        let values: Vec<f64> = runs.worth.iter().map(value).collect();
        format!("{:.4} % (at most {:.4} %)", mean(&values) * 100.0, quantile(&values, 1.0) * 100.0)
    };
    let missed = runs.worth.iter().filter(|worth| worth.bounds_missed).count();
    let total: Vec<f64> = runs.worth.iter().map(|worth| worth.total_ms).collect();
    format!(
        "Cleared in whole units at ({}, {}) and accepted by the core's check: {} batches, {} rejected. On average unrealised / realised utility {}, \
         price asymmetry {}, mu achieved {}; {missed} batches where an offer more than mu in the money did not trade in full. Index, prices, amounts and check \
         together: median {}.",
        setup.bits[0].0,
        setup.bits[0].1,
        runs.worth.len(),
        runs.rejected.len(),
        percent(|worth| worth.unrealised_per_realised),
        percent(|worth| worth.asymmetry),
        percent(|worth| worth.mu_achieved),
        plot::time_label(median(&total)),
    )
}

fn plot(setup: &Setup, days: &RealDays, runs: &Runs) -> anyhow::Result<String> {
    let [cold, warm] = &runs.columns[0];
    let dots = |name: &str, column: &Column, colour| Series {
        name: format!("{name}: {} unsolved", column.unsolved.len()),
        points: column.ms.iter().enumerate().map(|(day, &ms)| (day as f64, ms)).collect(),
        colour,
        stroke: Stroke::Dots,
    };
    let (eps, mu) = setup.bits[0];
    let title = format!(
        "Real prices and volumes: {} assets, {} offers a day at ({eps}, {mu})",
        days.asset_count(),
        grouped(setup.offer_count)
    );
    let series = [dots("cold", cold, 0), dots("from the day before's prices", warm, 1)];
    plot::lines(&title, "day", Axis::Linear, "time (logarithmic)", &series)
}
