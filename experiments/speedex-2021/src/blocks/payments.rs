//! Payments alone: batches against contention (SPEEDEX 2023, figure 7), and large blocks among many accounts (section 7.1).
//!
//! An account has 64 numbers in a block, here and in the paper's design (appendix K.4). So a batch of 10,000 payments among two
//! accounts is 157 blocks, one after the other. Contention of the other kind, many accounts that pay the same few, has no such
//! bound and is measured too.

use anyhow::ensure;
use serde_json::{Value, json};
use walras_batch_workload::{Model, PaidAssets};
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;

use crate::blocks::batches::Batches;
use crate::blocks::published::{PAYMENTS, reference, reference_payments};
use crate::blocks::{Summary, per_second, states_that_fit, thousands, threads_named};
use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown};
use crate::ruler::{grouped, mean};

/// Of figure 7.
#[derive(Clone, Debug)]
pub struct ContentionSetup {
    /// Accounts that pay each other, or that are paid.
    pub account_counts: Vec<u32>,
    /// Accounts that pay, where few are paid.
    pub payer_count: u32,
    /// Payments in a batch.
    pub batch_lens: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Payments of each cell, in 3 to 100 batches; the mean of these counts.
    pub payments_per_cell: usize,
}

impl ContentionSetup {
    /// The paper's, and Block-STM's.
    #[must_use]
    pub fn full(threads: Vec<usize>) -> Self {
        Self {
            account_counts: vec![2, 10, 100, 1_000, 10_000],
            payer_count: 10_000,
            batch_lens: vec![1_000, 10_000, 100_000],
            threads,
            payments_per_cell: 1_000_000,
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self {
            account_counts: vec![2, 100],
            payer_count: 100,
            batch_lens: vec![200, 1_000],
            payments_per_cell: 500,
            ..Self::full(vec![1, 2])
        }
    }
}

/// Who is few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contended {
    /// These accounts pay each other.
    Both,
    /// Many accounts pay these.
    Payees,
}

/// A cell of figure 7.
struct Cell {
    contended: Contended,
    account_count: u32,
    batch_len: usize,
    threads: usize,
    blocks_per_batch: usize,
    trials: usize,
    propose: f64,
    validate: f64,
}

/// Runs figure 7.
pub fn contention(setup: &ContentionSetup) -> anyhow::Result<Record> {
    let mut cells = Vec::new();
    for contended in [Contended::Both, Contended::Payees] {
        for &account_count in &setup.account_counts {
            for &batch_len in &setup.batch_lens {
                for &threads in &setup.threads {
                    cells.push(cell(setup, contended, account_count, batch_len, threads)?);
                }
            }
            println!("fig-7: {contended:?} {account_count} accounts done");
        }
    }
    contention_record(setup, &cells)
}

fn cell(
    setup: &ContentionSetup,
    contended: Contended,
    account_count: u32,
    batch_len: usize,
    threads: usize,
) -> anyhow::Result<Cell> {
    let senders = if contended == Contended::Both { account_count } else { setup.payer_count.max(account_count) };
    // One account less than there are: the last payment may be to the only one that has numbers left.
    let block_len_max = (senders as usize - 1) * TRANSACTIONS_PER_ACCOUNT_MAX as usize;
    let blocks_per_batch = batch_len.div_ceil(block_len_max);
    let block_len = batch_len.div_ceil(blocks_per_batch);
    let mut model = Model::payments(2, senders, block_len, PaidAssets::First);
    model.payee_count = (contended == Contended::Payees).then_some(account_count);
    let mut batches = Batches::new(model, None, 1, 2)?;
    batches.block(threads)?;
    let trials = (setup.payments_per_cell / batch_len).clamp(3, 100);
    let (mut propose, mut validate) = (Vec::new(), Vec::new());
    for _ in 0..trials {
        let (mut kept, mut propose_ms, mut validate_ms) = (0, 0.0, 0.0);
        for _ in 0..blocks_per_batch {
            let sample = batches.block(threads)?;
            kept += sample.kept;
            propose_ms += sample.times.total();
            validate_ms += sample.validate_ms.unwrap_or(f64::NAN);
        }
        propose.push(per_second(kept, propose_ms));
        validate.push(per_second(kept, validate_ms));
    }
    batches.proposer.batch.check_invariants(&batches.proposer.ledger);
    let (propose, validate) = (mean(&propose), mean(&validate));
    Ok(Cell { contended, account_count, batch_len, threads, blocks_per_batch, trials, propose, validate })
}

fn contention_record(setup: &ContentionSetup, cells: &[Cell]) -> anyhow::Result<Record> {
    let threads_max = setup.threads.iter().copied().max().unwrap_or(1);
    let curve = |contended: Contended, batch_len: usize, threads: usize, colour: usize, stroke: Stroke| {
        let is_of = |cell: &&Cell| (cell.contended, cell.batch_len, cell.threads) == (contended, batch_len, threads);
        let who = if contended == Contended::Both { "pay each other" } else { "are paid" };
        Series {
            name: format!("{}, accounts that {who}, {}", grouped(batch_len), threads_named(threads)),
            points: cells.iter().filter(is_of).map(|cell| (f64::from(cell.account_count), cell.propose)).collect(),
            colour,
            stroke,
        }
    };
    let mut series = Vec::new();
    for (contended, stroke) in [(Contended::Both, Stroke::Thin), (Contended::Payees, Stroke::Line)] {
        for (colour, &batch_len) in (0..).zip(&setup.batch_lens) {
            series.push(curve(contended, batch_len, threads_max, colour, stroke));
        }
    }
    if let (Some(&fewest), Some(&largest)) = (setup.threads.iter().min(), setup.batch_lens.iter().max())
        && fewest < threads_max
    {
        series.push(curve(Contended::Both, largest, fewest, 4, Stroke::Thin));
        series.push(curve(Contended::Payees, largest, fewest, 4, Stroke::Line));
    }
    let title = "Batches of payments against contention, proposed";
    let plot_svg = plot::rates(title, "accounts (logarithmic)", Axis::Counts, "payments / s, mean", &series)?;
    let speed_up = |cell: &Cell| {
        let key = |cell: &Cell| (cell.contended as u8, cell.account_count, cell.batch_len);
        let base = cells.iter().find(|base| key(base) == key(cell) && base.threads == setup.threads[0]);
        base.map_or(f64::NAN, |base| cell.propose / base.propose)
    };
    let row = |cell: &Cell| {
        let (payers, payees) = match cell.contended {
            Contended::Both => (cell.account_count, cell.account_count),
            Contended::Payees => (setup.payer_count.max(cell.account_count), cell.account_count),
        };
        vec![
            grouped(payers as usize),
            grouped(payees as usize),
            grouped(cell.batch_len),
            cell.blocks_per_batch.to_string(),
            cell.threads.to_string(),
            thousands(cell.propose),
            thousands(cell.validate),
            format!("{:.2}", speed_up(cell)),
            thousands(cell.propose / cell.threads as f64),
        ]
    };
    let value = |cell: &Cell| {
        json!({
            "contended": if cell.contended == Contended::Both { "payers and payees" } else { "payees" },
            "account_count": cell.account_count,
            "batch_len": cell.batch_len,
            "blocks_per_batch": cell.blocks_per_batch,
            "threads": cell.threads,
            "trials": cell.trials,
            "propose_tx_per_s_mean": cell.propose.round(),
            "validate_tx_per_s_mean": cell.validate.round(),
        })
    };
    let header =
        ["pay", "are paid", "batch", "blocks", "threads", "proposed tx/s", "validated tx/s", "times one", "proposed per thread"];
    let result = json!({
        "published": "large batches: about the same rate from 2 to 10,000 accounts, and near-linear in threads; points not legible in the copy \
                      at hand",
        "published_block_stm": "on the paper's hardware it is fastest at about 16 to 24 threads and uses no more; points not legible in the copy \
                               at hand",
        "ours": cells.iter().map(value).collect::<Vec<Value>>(),
    });
    let table = format!(
        "{}\nPublished of payments alone (section 7.1, 50 assets, ten million accounts), per thread: 10.8 k of one thread, 10.0 k of 6, 7.8 k of 48.\n",
        markdown(&header.map(String::from), &cells.iter().map(row).collect::<Vec<_>>())
    );
    Ok(Record { folder: "speedex-2023/fig-7".into(), result, table, plot_svg: Some(plot_svg) })
}

/// Of section 7.1's payments.
#[derive(Clone, Debug)]
pub struct ManySetup {
    /// Assets; any of them is paid.
    pub asset_count: u16,
    /// Accounts.
    pub account_counts: Vec<u32>,
    /// Payments of a block.
    pub block_len: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Blocks measured by each number of threads.
    pub rounds: usize,
}

impl ManySetup {
    /// The paper's 50 assets and blocks of half a million; up to its ten million accounts, as far as memory goes.
    #[must_use]
    pub fn full(threads: Vec<usize>) -> Self {
        let account_counts = vec![100_000, 1_000_000, 10_000_000];
        Self { asset_count: 50, account_counts, block_len: 500_000, threads, rounds: 5 }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self { asset_count: 5, account_counts: vec![100, 1_000], block_len: 2_000, threads: vec![1, 2], rounds: 2 }
    }
}

/// One number of accounts and of threads.
#[derive(Debug)]
pub(crate) struct Rates {
    pub(crate) account_count: u32,
    pub(crate) threads: usize,
    pub(crate) propose: Summary,
    pub(crate) validate: Option<Summary>,
}

/// What was measured, and which numbers of accounts did not fit into memory.
#[derive(Debug, Default)]
pub struct Many {
    pub(crate) rates: Vec<Rates>,
    pub(crate) left_out: Vec<u32>,
}

/// Runs section 7.1's payments.
pub fn many(setup: &ManySetup) -> anyhow::Result<Many> {
    let model = |accounts| Model::payments(setup.asset_count, accounts, setup.block_len, PaidAssets::All);
    rates_of(&setup.account_counts, &setup.threads, setup.rounds, setup.asset_count, &model)
}

/// Blocks of models of growing numbers of accounts, the numbers of threads taking turns.
pub(crate) fn rates_of(
    account_counts: &[u32],
    threads: &[usize],
    rounds: usize,
    asset_count: u16,
    model: &dyn Fn(u32) -> Model,
) -> anyhow::Result<Many> {
    let mut many = Many::default();
    for &account_count in account_counts {
        let states = states_that_fit(account_count, asset_count);
        if states == 0 {
            println!(
                "{} accounts of {asset_count} assets do not fit into the memory that is left",
                grouped(account_count as usize)
            );
            many.left_out.push(account_count);
            continue;
        }
        let mut batches = Batches::new(model(account_count), None, 1, states)?;
        for _ in 0..2 {
            batches.block(threads.last().copied().unwrap_or(1))?;
        }
        let mut samples = vec![Vec::new(); threads.len()];
        for _ in 0..rounds {
            for (&threads, samples) in threads.iter().zip(&mut samples) {
                samples.push(batches.block(threads)?);
            }
        }
        for (&threads, samples) in threads.iter().zip(&samples) {
            ensure!(!samples.is_empty(), "nothing was measured: ask for at least one round");
            let propose = Summary::of(&samples.iter().map(|sample| sample.propose_rate()).collect::<Vec<_>>())?;
            let validated: Vec<f64> = samples.iter().filter_map(|sample| sample.validate_rate()).collect();
            let validate = (!validated.is_empty()).then(|| Summary::of(&validated)).transpose()?;
            println!(
                "{} accounts, {}: {} tx/s proposed",
                grouped(account_count as usize),
                threads_named(threads),
                thousands(propose.median)
            );
            many.rates.push(Rates { account_count, threads, propose, validate });
        }
    }
    Ok(many)
}

/// Section 7.1's payments: a table, the curves, and the values.
pub(crate) fn many_parts(setup: &ManySetup, many: &Many) -> (String, Vec<Series>, Value) {
    let mut series: Vec<Series> = (0..)
        .zip(&setup.threads)
        .map(|(colour, threads)| Series {
            name: format!("payments, {}, proposed", threads_named(*threads)),
            points: many.points(*threads),
            colour,
            stroke: Stroke::Line,
        })
        .collect();
    let (threads, rate) = PAYMENTS[0];
    let name = format!("payments, published, {}", threads_named(threads));
    series.push(Series { name, points: vec![(1e7, rate)], colour: 6, stroke: Stroke::Dots });
    let row = |rates: &Rates| {
        let published = PAYMENTS.iter().find(|(threads, _)| *threads == rates.threads);
        let reference = reference_payments(rates.threads);
        vec![
            grouped(rates.account_count as usize),
            rates.threads.to_string(),
            thousands(rates.propose.median),
            rates.validate.map_or("no room for a second state".into(), |rate| thousands(rate.median)),
            thousands(rates.propose.median / rates.threads as f64),
            published.map_or("-".into(), |(_, rate)| thousands(*rate)),
            reference.map_or("-".into(), |(propose, validate)| format!("{}, {}", thousands(propose), thousands(validate))),
        ]
    };
    let header =
        ["accounts", "threads", "proposed tx/s", "validated tx/s", "proposed per thread", "published (10 M)", "reference (100 k)"];
    let table = format!(
        "{}\nPublished per thread: 10.8 k of one thread, 10.0 k of 6, 7.8 k of 48.\n",
        markdown(&header.map(String::from), &many.rates.iter().map(row).collect::<Vec<_>>())
    );
    let published: Vec<Value> = PAYMENTS
        .iter()
        .map(|(threads, rate)| json!({ "threads": threads, "tx_per_s": rate, "tx_per_s_and_thread": (rate / *threads as f64).round() }))
        .collect();
    let value = json!({
        "asset_count": setup.asset_count,
        "block_len": setup.block_len,
        "rounds": setup.rounds,
        "published": { "accounts": 10_000_000, "rates": published },
        "reference_implementation": reference(),
        "account_counts_left_out_for_memory": many.left_out,
        "ours": many.to_json(),
    });
    (table, series, value)
}

impl Many {
    pub(crate) fn points(&self, threads: usize) -> Vec<(f64, f64)> {
        let of_threads = self.rates.iter().filter(|rates| rates.threads == threads);
        of_threads.map(|rates| (f64::from(rates.account_count), rates.propose.median)).collect()
    }

    pub(crate) fn to_json(&self) -> Vec<Value> {
        let value = |rates: &Rates| {
            json!({
                "account_count": rates.account_count,
                "threads": rates.threads,
                "propose_tx_per_s": rates.propose.to_json(),
                "validate_tx_per_s": rates.validate.map(Summary::to_json),
            })
        };
        self.rates.iter().map(value).collect()
    }
}
