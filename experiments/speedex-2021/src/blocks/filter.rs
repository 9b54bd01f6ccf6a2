//! The deterministic filter over batches with conflicts in them (SPEEDEX 2023, appendix I).
//!
//! What is timed is closing the batch as a whole: the filter, and all that this project does in the same pass: reserving what is
//! kept, hashing the batch, putting new offers into the books. Where nearly every account overdraws hardly anything is kept, and
//! the filter is all there is.
//!
//! What the filter leaves out is worked out again by a plain program of its own ([`naive`]), for every batch; the run fails where
//! they differ.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};
use walras_batch_workload::{Faults, Model};
use walras_ledger::Ledger;
use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchTransaction};

use crate::blocks::batches::Batches;
use crate::blocks::published::{FILTER, FILTER_CONTESTED};
use crate::blocks::{Summary, per_second, states_that_fit, thousands};
use crate::plot::{self, Axis, Series, Stroke, time_label};
use crate::record::{Record, markdown};
use crate::ruler::{grouped, mean, thousandths};

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Accounts where few overdraw.
    pub account_count: u32,
    /// Accounts where nearly all do.
    pub contested_account_count: u32,
    /// Transactions made, and of these how many are sent twice.
    pub batch_len: usize,
    /// Transactions sent a second time.
    pub repeated: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Number of batches filtered by each; the mean counts. 50 in the paper.
    pub trials: usize,
}

impl Setup {
    /// The paper's 400,000 transactions and 100,000 copies.
    #[must_use]
    pub fn full(threads: Vec<usize>) -> Self {
        let (account_count, contested_account_count) = (1_000_000, 10_000);
        Self { account_count, contested_account_count, batch_len: 400_000, repeated: 100_000, threads, trials: 20 }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        let (account_count, contested_account_count) = (1_000, 100);
        Self { account_count, contested_account_count, batch_len: 1_600, repeated: 400, threads: vec![1, 2], trials: 3 }
    }
}

/// Who overdraws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overdraw {
    /// One or two hundred accounts, as in the paper.
    Few,
    /// Nearly every account: each has too little of everything.
    NearlyAll,
}

/// Some batches by one number of threads.
struct Row {
    overdraw: Overdraw,
    threads: usize,
    close_ms: Vec<f64>,
    sent: usize,
    kept: f64,
}

/// Runs it.
pub fn run(setup: &Setup) -> anyhow::Result<Record> {
    let mut rows = rows(setup, Overdraw::Few)?;
    rows.extend(self::rows(setup, Overdraw::NearlyAll)?);
    record(setup, &rows)
}

fn rows(setup: &Setup, overdraw: Overdraw) -> anyhow::Result<Vec<Row>> {
    let account_count = if overdraw == Overdraw::Few { setup.account_count } else { setup.contested_account_count };
    ensure!(states_that_fit(account_count, 50) > 0, "{account_count} accounts do not fit into the memory that is left");
    // A thousand accounts use a number twice, a few hundred overdraw, as in the paper.
    let faults = Faults {
        repeated: setup.repeated,
        reused_numbers: setup.batch_len / 400,
        overdrafts: setup.batch_len / 2_700,
        account_count: Some((account_count / 100).clamp(2, 1_000)),
        ..Faults::default()
    };
    let model = Model { faults, ..Model::standard(50, account_count, setup.batch_len) };
    let endowment = match overdraw {
        Overdraw::Few => None,
        Overdraw::NearlyAll => Amount::new(1_000_000),
    };
    let mut batches = Batches::new(model, endowment, 1, 1)?;
    let row = |&threads: &usize| Row { overdraw, threads, close_ms: Vec::new(), sent: 0, kept: 0.0 };
    let mut rows: Vec<Row> = setup.threads.iter().map(row).collect();
    // The first hashes every account and touches all of the memory.
    for trial in 0..=setup.trials {
        for row in &mut rows {
            let transactions = batches.next();
            let expected = naive(&transactions, &batches.proposer.ledger);
            let (sample, proposed) = batches.apply(&transactions, row.threads)?;
            let dropped: Vec<usize> = proposed.dropped().collect();
            ensure!(
                dropped == expected,
                "the filter leaves out {} of {} transactions, a plain one {}",
                dropped.len(),
                transactions.len(),
                expected.len()
            );
            if trial > 0 {
                row.close_ms.push(sample.times.close_ms);
                row.sent = transactions.len();
                row.kept += sample.kept as f64 / setup.trials as f64;
            }
        }
    }
    println!("app-I: {overdraw:?} done");
    Ok(rows)
}

/// The places of the transactions that the rules leave out: all of an account that uses a number twice, cancels an offer twice, or
/// spends more than it had. For transactions that are otherwise in order.
#[must_use]
pub fn naive(transactions: &[BatchTransaction], ledger: &Ledger) -> Vec<usize> {
    let mut of_account: BTreeMap<AccountId, Vec<&BatchTransaction>> = BTreeMap::new();
    for transaction in transactions {
        of_account.entry(transaction.account).or_default().push(transaction);
    }
    let is_refused = |account: AccountId, sent: &[&BatchTransaction]| {
        let (mut numbers, mut cancels, mut spent) = (Vec::new(), Vec::new(), BTreeMap::new());
        for transaction in sent {
            numbers.push(transaction.sequence.0);
            let spends = match transaction.operation {
                BatchOperation::CreateOffer(create) => Some((create.sell, create.amount)),
                BatchOperation::Payment(payment) => Some((payment.asset, payment.amount)),
                BatchOperation::CancelOffer(cancel) => {
                    cancels.push(cancel.sequence.0);
                    None
                }
                _ => None,
            };
            if let Some((asset, amount)) = spends {
                *spent.entry(asset).or_insert(0_u128) += u128::from(amount.get());
            }
        }
        let overdraws = |(asset, sum): (&AssetId, &u128)| {
            ledger.balance(account, *asset).is_none_or(|balance| *sum > u128::from(balance.available.get()))
        };
        has_twice(&mut numbers) || has_twice(&mut cancels) || spent.iter().any(overdraws)
    };
    let refused: Vec<AccountId> =
        of_account.iter().filter(|(account, sent)| is_refused(**account, sent)).map(|(account, _)| *account).collect();
    let is_out = |transaction: &BatchTransaction| refused.binary_search(&transaction.account).is_ok();
    (0..).zip(transactions).filter(|(_, transaction)| is_out(transaction)).map(|(place, _)| place).collect()
}

fn has_twice(numbers: &mut [u64]) -> bool {
    numbers.sort_unstable();
    numbers.windows(2).any(|two| two[0] == two[1])
}

fn record(setup: &Setup, rows: &[Row]) -> anyhow::Result<Record> {
    let name = |overdraw| match overdraw {
        Overdraw::Few => format!("{} accounts, few overdraw", grouped(setup.account_count as usize)),
        Overdraw::NearlyAll => format!("{} accounts, nearly all overdraw", grouped(setup.contested_account_count as usize)),
    };
    let of = |overdraw| rows.iter().filter(move |row| row.overdraw == overdraw);
    let points = |overdraw| of(overdraw).map(|row| (row.threads as f64, mean(&row.close_ms))).collect();
    let published = FILTER.iter().map(|(threads, seconds)| (*threads as f64, seconds * 1e3)).collect();
    let mut series: Vec<Series> = (0..)
        .zip([Overdraw::Few, Overdraw::NearlyAll])
        .map(|(colour, overdraw)| Series { name: name(overdraw), points: points(overdraw), colour, stroke: Stroke::Line })
        .collect();
    series.push(Series { name: "published: 10 M accounts, few".into(), points: published, colour: 6, stroke: Stroke::Thin });
    let title = format!("Closing a batch of {} transactions", grouped(setup.batch_len + setup.repeated));
    let plot_svg = plot::lines(&title, "threads (logarithmic)", Axis::Counts, "mean time (logarithmic)", &series)?;
    let speed_up = |row: &Row| of(row.overdraw).next().map_or(f64::NAN, |first| mean(&first.close_ms) / mean(&row.close_ms));
    let seconds_published = |row: &Row| {
        let found = FILTER.iter().find(|(threads, _)| row.overdraw == Overdraw::Few && *threads == row.threads);
        found.map_or("-".into(), |(_, seconds)| time_label(seconds * 1e3))
    };
    let of_threads = |sent: usize, threads: usize, ms: f64| thousands(per_second(sent, ms) / threads as f64);
    let cells = |row: &Row| {
        vec![
            name(row.overdraw),
            row.threads.to_string(),
            time_label(mean(&row.close_ms)),
            format!("{:.2}", speed_up(row)),
            format!("{} of {}", grouped(row.kept as usize), grouped(row.sent)),
            seconds_published(row),
            of_threads(row.sent, row.threads, mean(&row.close_ms)),
        ]
    };
    let value = |row: &Row| -> anyhow::Result<Value> {
        Ok(json!({
            "overdraw": format!("{:?}", row.overdraw),
            "threads": row.threads,
            "close_ms_mean": thousandths(mean(&row.close_ms)),
            "close_ms": Summary::of(&row.close_ms)?.to_json(),
            "sent": row.sent,
            "kept_mean": row.kept.round(),
        }))
    };
    let result = json!({
        "account_count": setup.account_count,
        "contested_account_count": setup.contested_account_count,
        "batch_len": setup.batch_len,
        "repeated": setup.repeated,
        "trials": setup.trials,
        "published": {
            "seconds_by_threads": FILTER.iter().map(|(threads, seconds)| json!([threads, seconds])).collect::<Vec<_>>(),
            "contested": { "seconds": FILTER_CONTESTED.0, "speed_up_max": FILTER_CONTESTED.1 },
            "accounts": 10_000_000,
        },
        "ours": rows.iter().map(value).collect::<Result<Vec<_>, _>>()?,
    });
    let header = ["batch", "threads", "closed in", "times one", "kept", "published", "tx/s per thread"];
    let published_per_thread = FILTER.map(|(threads, seconds)| of_threads(500_000, threads, seconds * 1e3));
    let table = format!(
        "{}\nPublished: 0.13 s on 24 threads and 0.07 s on 48, 21.0 and 38.4 times the speed of one, which makes 2.73 s on one; contested \
         0.10 s, 5.3 times. Per thread that is {} tx/s of one, {} of 24 and {} of 48.\n",
        markdown(&header.map(String::from), &rows.iter().map(cells).collect::<Vec<_>>()),
        published_per_thread[0],
        published_per_thread[1],
        published_per_thread[2],
    );
    Ok(Record { folder: "speedex-2023/app-I".into(), result, table, plot_svg: Some(plot_svg) })
}

#[cfg(test)]
mod tests {
    use walras_types::{Payment, TransactionSeq};

    use super::*;

    #[test]
    fn the_plain_filter_drops_whole_accounts() {
        let mut ledger = Ledger::new();
        let accounts: Vec<AccountId> = (0..4).map(|_| ledger.create_account().unwrap()).collect();
        let asset = ledger.create_asset().unwrap();
        for account in &accounts {
            ledger.deposit(*account, asset, Amount::new(10).unwrap()).unwrap();
        }
        let pays = |account: u32, sequence, amount| {
            let payment = Payment { to: AccountId(3), asset: AssetId(0), amount: Amount::new(amount).unwrap() };
            BatchTransaction::new(AccountId(account), TransactionSeq(sequence), BatchOperation::Payment(payment))
        };
        // The first is in order, the second spends eleven, the third uses a number twice.
        let sent = [pays(0, 1, 5), pays(1, 1, 6), pays(0, 2, 5), pays(2, 1, 1), pays(1, 2, 5), pays(2, 1, 2)];
        assert_eq!(naive(&sent, &ledger), [1, 3, 4, 5]);
    }
}
