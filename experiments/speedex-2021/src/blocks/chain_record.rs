//! The figures that are drawn of one chain.

use serde_json::{Value, json};

use crate::blocks::chain::{Measured, Paper, Point, Setup, described};
use crate::blocks::published::{RATE_PER_CORE_2021, RATE_PER_CORE_2023, reference, reference_mixed};
use crate::blocks::{Summary, per_second, thousands, threads_named};
use crate::plot::{self, Axis, Series, Stroke, time_label};
use crate::record::{Record, markdown};
use crate::ruler::{grouped, mean, median, thousandths};

/// The records of a paper's figures, in their order.
pub fn records(setup: &Setup, measured: &Measured) -> anyhow::Result<Vec<Record>> {
    let shown = match setup.paper {
        Paper::Speedex2021 => vec![Shown::Propose("fig-3"), Shown::Validate("fig-4"), Shown::Rate("fig-5")],
        Paper::Speedex2023 => vec![Shown::SignedRate("fig-3"), Shown::Propose("fig-4"), Shown::Validate("fig-5")],
    };
    let mut records: Vec<Record> = shown.into_iter().map(|shown| by_threads(setup, measured, shown)).collect::<Result<_, _>>()?;
    if !measured.by_block_len.is_empty() {
        records.push(by_block_len(setup, measured)?);
    }
    Ok(records)
}

/// What a figure shows, and its name.
#[derive(Clone, Copy)]
enum Shown {
    Propose(&'static str),
    Validate(&'static str),
    Rate(&'static str),
    SignedRate(&'static str),
}

/// A point summed up.
struct Summed<'p> {
    point: &'p Point,
    open_offers: f64,
    kept: f64,
    close: Summary,
    solve: Summary,
    clear: Summary,
    propose: Summary,
    validate: Summary,
    /// Transactions a second: of the slower of the two, which is what a venue comes to.
    rate: f64,
    validate_rate: f64,
    signed_rate: Option<f64>,
}

impl<'p> Summed<'p> {
    fn of(point: &'p Point) -> anyhow::Result<Self> {
        let of = |part: &dyn Fn(&super::batches::Sample) -> f64| -> anyhow::Result<Summary> {
            Summary::of(&point.samples.iter().map(part).collect::<Vec<f64>>())
        };
        let kept = median(&point.samples.iter().map(|sample| sample.kept as f64).collect::<Vec<f64>>());
        let propose = of(&|sample| sample.times.total())?;
        let validate = of(&|sample| sample.validate_ms.unwrap_or(f64::NAN))?;
        let rate = |more_ms: f64| per_second(kept as usize, propose.median.max(validate.median) + more_ms);
        Ok(Self {
            point,
            open_offers: mean(&point.samples.iter().map(|sample| sample.open_offers as f64).collect::<Vec<f64>>()),
            kept,
            close: of(&|sample| sample.times.close_ms)?,
            solve: of(&|sample| sample.times.solve_ms)?,
            clear: of(&|sample| sample.times.clear_ms)?,
            rate: rate(0.0),
            validate_rate: per_second(kept as usize, validate.median),
            signed_rate: point.check_ms.map(rate),
            propose,
            validate,
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "threads": self.point.threads,
            "block_len": self.point.block_len,
            "open_offers": self.open_offers.round(),
            "kept": self.kept,
            "close_ms": self.close.to_json(),
            "solve_ms": self.solve.to_json(),
            "clear_ms": self.clear.to_json(),
            "propose_ms": self.propose.to_json(),
            "validate_ms": self.validate.to_json(),
            "check_signatures_ms": self.point.check_ms.map(thousandths),
            "tx_per_s": self.rate,
            "signed_tx_per_s": self.signed_rate,
            "validate_tx_per_s": self.validate_rate,
        })
    }
}

fn by_threads(setup: &Setup, measured: &Measured, shown: Shown) -> anyhow::Result<Record> {
    let points: Vec<Summed<'_>> = measured.by_threads.iter().map(Summed::of).collect::<Result<_, _>>()?;
    let value = |summed: &Summed<'_>| match shown {
        Shown::Propose(_) => summed.propose.median,
        Shown::Validate(_) => summed.validate.median,
        Shown::Rate(_) => summed.rate,
        Shown::SignedRate(_) => summed.signed_rate.unwrap_or(summed.rate),
    };
    let series: Vec<Series> = (0..)
        .zip(&setup.threads)
        .map(|(colour, threads)| Series {
            name: threads_named(*threads),
            points: points
                .iter()
                .filter(|summed| summed.point.threads == *threads)
                .map(|summed| (summed.open_offers / 1e6, value(summed)))
                .collect(),
            colour,
            stroke: Stroke::Line,
        })
        .collect();
    let (figure, title, y_title) = match shown {
        Shown::Propose(figure) => (figure, "Time to propose and execute a block", "median time (logarithmic)"),
        Shown::Validate(figure) => (figure, "Time to validate and execute a proposal", "median time (logarithmic)"),
        Shown::Rate(figure) => (figure, "Transactions a second, no signatures", "transactions / s"),
        Shown::SignedRate(figure) => (figure, "Transactions a second, signatures checked", "transactions / s"),
    };
    let title = format!("{title}: blocks of {}, {} accounts", grouped(setup.block_len), grouped(setup.account_count as usize));
    let x_title = "open offers, millions";
    let plot_svg = match shown {
        Shown::Propose(_) | Shown::Validate(_) => plot::lines(&title, x_title, Axis::Millions, y_title, &series)?,
        Shown::Rate(_) | Shown::SignedRate(_) => plot::rates(&title, x_title, Axis::Millions, y_title, &series)?,
    };
    let fewest = setup.threads.first().copied().unwrap_or(1);
    let speed_up = |summed: &Summed<'_>| {
        let base = points.iter().find(|other| other.point.threads == fewest && other.point.stop == summed.point.stop);
        base.map_or(f64::NAN, |base| match shown {
            Shown::Propose(_) | Shown::Validate(_) => value(base) / value(summed),
            Shown::Rate(_) | Shown::SignedRate(_) => value(summed) / value(base),
        })
    };
    let row = |summed: &Summed<'_>| {
        let mut cells = vec![
            summed.point.threads.to_string(),
            grouped(summed.open_offers as usize),
            time_label(summed.close.median),
            time_label(summed.solve.median),
            time_label(summed.clear.median),
            time_label(summed.propose.median),
            time_label(summed.validate.median),
            thousands(summed.rate),
            format!("{:.2}", speed_up(summed)),
        ];
        if let (Shown::SignedRate(_), Some(check_ms), Some(rate)) = (shown, summed.point.check_ms, summed.signed_rate) {
            cells.extend([time_label(check_ms), thousands(rate)]);
        }
        let of_threads = |rate: f64| thousands(rate / summed.point.threads as f64);
        let reference = reference_mixed(summed.point.threads).filter(|_| setup.paper == Paper::Speedex2023);
        let (rate, reference) = match shown {
            Shown::Propose(_) => (per_second(summed.kept as usize, summed.propose.median), reference.map(|(propose, _)| propose)),
            Shown::Validate(_) => (summed.validate_rate, reference.map(|(_, validate)| validate)),
            Shown::Rate(_) | Shown::SignedRate(_) => (summed.signed_rate.unwrap_or(summed.rate), None),
        };
        cells.extend([of_threads(rate), reference.map_or("-".into(), of_threads), thousands(published_per_core(setup.paper).0)]);
        cells
    };
    let mut header = vec!["threads", "open offers", "close", "solve", "clear", "propose", "validate", "tx/s", "times one"];
    if let Shown::SignedRate(_) = shown {
        header.extend(["signatures", "tx/s signed"]);
    }
    header.extend(match shown {
        Shown::Propose(_) => ["proposed per thread", "reference per thread", "published per core"],
        Shown::Validate(_) => ["validated per thread", "reference per thread", "published per core"],
        Shown::Rate(_) | Shown::SignedRate(_) => ["per thread", "reference per thread", "published per core"],
    });
    let header: Vec<String> = header.into_iter().map(String::from).collect();
    let rows: Vec<Vec<String>> = points.iter().map(row).collect();
    let result = json!({
        "setup": described(setup),
        "blocks_in_chain": measured.block_count,
        "transactions_in_chain": measured.transaction_count,
        "stops_not_reached": measured.missed,
        "published": published(setup.paper),
        "reference_implementation": reference(),
        "ours": points.iter().map(Summed::to_json).collect::<Vec<_>>(),
    });
    let table = format!("{}\n{}", markdown(&header, &rows), published_lines(setup.paper, &points));
    Ok(Record { folder: format!("{}/{figure}", folder(setup.paper)), result, table, plot_svg: Some(plot_svg) })
}

const fn folder(paper: Paper) -> &'static str {
    match paper {
        Paper::Speedex2021 => "speedex-2021",
        Paper::Speedex2023 => "speedex-2023",
    }
}

fn published(paper: Paper) -> Value {
    match paper {
        Paper::Speedex2021 => json!({
            "text": "over 120,000 transactions a second on 32 cores, blocks of 500,000 to 600,000, 10 million accounts, offers to 70 million",
            "tx_per_s_and_core": RATE_PER_CORE_2021,
            "points": "not legible in the copy at hand",
        }),
        Paper::Speedex2023 => json!({
            "text": "over 200,000 transactions a second on 48 cores, blocks of 500,000, 10 million accounts; 1.9 times from 6 to 12 threads, \
                     1.8 from 12 to 24, 1.4 from 24 to 48; falls by 10 % from none to tens of millions of offers",
            "tx_per_s_and_core": RATE_PER_CORE_2023,
            "points": "not legible in the copy at hand",
        }),
    }
}

/// Transactions a second of a core of the paper's machine, whole system, and how many it has.
const fn published_per_core(paper: Paper) -> (f64, usize) {
    match paper {
        Paper::Speedex2021 => (RATE_PER_CORE_2021, 32),
        Paper::Speedex2023 => (RATE_PER_CORE_2023, 48),
    }
}

/// The published figures, as a few lines below our table.
fn published_lines(paper: Paper, points: &[Summed<'_>]) -> String {
    let (per_core, cores) = published_per_core(paper);
    let mut lines = format!("Published: {} tx/s for each of {cores} cores.\n", thousands(per_core));
    if paper == Paper::Speedex2023 {
        for summed in points.iter().take_while(|summed| summed.point.stop == points[0].point.stop) {
            if let Some((propose, validate)) = reference_mixed(summed.point.threads) {
                lines += &format!(
                    "Reference implementation on such a machine (blocks of 100,000, no signatures), {}: proposes {}, validates {} tx/s;\n\
                     here {} and {}.\n",
                    threads_named(summed.point.threads),
                    thousands(propose),
                    thousands(validate),
                    thousands(per_second(summed.kept as usize, summed.propose.median)),
                    thousands(summed.validate_rate),
                );
            }
        }
    }
    lines
}

/// 2023, figure 6.
fn by_block_len(setup: &Setup, measured: &Measured) -> anyhow::Result<Record> {
    let (mut series, mut rows, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    let stops = setup.open_offers.iter().filter(|stop| measured.by_block_len.iter().any(|point| point.stop == **stop));
    for (colour, stop) in (0..).zip(stops) {
        let (mut proposed, mut validated) = (Vec::new(), Vec::new());
        let mut open_offers = Vec::new();
        for point in measured.by_block_len.iter().filter(|point| point.stop == *stop) {
            // The first follows a block of another size.
            let samples = point.samples.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&point.samples);
            let propose = Summary::of(&samples.iter().map(|sample| sample.propose_rate()).collect::<Vec<_>>())?;
            let validate = Summary::of(&samples.iter().filter_map(|sample| sample.validate_rate()).collect::<Vec<_>>())?;
            let offers = mean(&samples.iter().map(|sample| sample.open_offers as f64).collect::<Vec<_>>());
            open_offers.push(offers);
            proposed.push((point.block_len as f64, propose.median));
            validated.push((point.block_len as f64, validate.median));
            let range = |rate: &Summary| format!("{} ({} to {})", thousands(rate.median), thousands(rate.p10), thousands(rate.p90));
            rows.push(vec![
                grouped(offers as usize),
                grouped(point.block_len),
                range(&propose),
                range(&validate),
                thousands(propose.median / point.threads as f64),
                thousands(RATE_PER_CORE_2023),
                time_label(point.block_len as f64 / propose.median * 1e3),
            ]);
            ours.push(json!({
                "threads": point.threads,
                "open_offers": offers.round(),
                "block_len": point.block_len,
                "propose_tx_per_s": propose.to_json(),
                "validate_tx_per_s": validate.to_json(),
            }));
        }
        let name = |what: &str| format!("{what}, about {:.1} M offers", mean(&open_offers) / 1e6);
        series.push(Series { name: name("propose"), points: proposed, colour, stroke: Stroke::Line });
        series.push(Series { name: name("validate"), points: validated, colour, stroke: Stroke::Thin });
    }
    let threads = measured.by_block_len.first().map_or(0, |point| point.threads);
    let title = format!("Rate against block size, {}, no signatures", threads_named(threads));
    let plot_svg = plot::rates(&title, "transactions in a block (logarithmic)", Axis::Counts, "transactions / s", &series)?;
    let header = [
        "open offers",
        "block",
        "proposed tx/s (10th to 90th)",
        "validated tx/s (10th to 90th)",
        "proposed per thread",
        "published per core",
        "a block takes",
    ];
    let result = json!({
        "setup": described(setup),
        "published": "the larger the block, the higher the rate; points not legible in the copy at hand",
        "ours": ours,
    });
    let table = markdown(&header.map(String::from), &rows);
    Ok(Record { folder: "speedex-2023/fig-6".into(), result, table, plot_svg: Some(plot_svg) })
}
