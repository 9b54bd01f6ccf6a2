//! Blocks among millions of standing offers, as the papers run them: a fifth to a third of the transactions cancel offers of any age.
//!
//! One state is filled and grows from one size to the next; then it is copied, and blocks are proposed on one copy and validated on the
//! other, which change roles after each. Offers to fill it ask a few percent more than those of the model, so that they stand.

use std::fs::File;
use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use walras_batch_venue::{Proposed, Signatures, Venue};
use walras_batch_workload::{Model, Workload};
use walras_types::{BatchOperation, BatchPrice, BatchTransaction};

use crate::report::{Figure, Report, Unit};

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Measured blocks at each size; figures are medians over them.
    pub rounds: usize,
    /// Transactions of a block.
    pub transactions: usize,
    /// Standing offers at which blocks are measured, ascending, with the name of each in the metrics.
    pub sizes: Vec<(usize, String)>,
    /// Accounts that send.
    pub accounts: u32,
    /// Where signed blocks are written; without, blocks are bare.
    pub log: Option<PathBuf>,
    /// What follows a metric's name: nothing, or `_10k_accounts`.
    pub suffix: String,
    /// Goals of proposing and validating at the last size, in thousands of transactions a second.
    pub bars: Option<(f64, f64)>,
}

const ASSETS: u16 = 50;
const THREADS: NonZero<usize> = NonZero::new(2).expect("two is not zero");
const SEED: u64 = 1;
/// The share of a block that cancels.
const CANCELS: f64 = 0.27;
/// Blocks at each size before the first that counts.
const WARM_UP: usize = 2;
/// Transactions of a block that fills: less is lost to what each block costs.
const FILLING: usize = 400_000;
/// How much more than in the model an offer asks that fills: at least, and up to.
const MORE: (f64, f64) = (0.02, 0.3);

/// 1, 3, 10, .. times 100,000 up to this many, and this many.
#[must_use]
pub fn sizes_up_to(most: usize) -> Vec<(usize, String)> {
    let steps = (5..9).flat_map(|power| [1, 3].map(|digit| digit * 10_usize.pow(power)));
    let sizes = steps.filter(|size| *size < most).chain([most]);
    sizes.map(|size| (size, format!("{}_standing", short(size)))).collect()
}

/// `300k`, `3m`.
#[must_use]
pub fn short(count: usize) -> String {
    match count {
        ..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}m", count / 1_000_000),
    }
}

/// Two states of one history.
struct Chain {
    workload: Workload,
    start: Option<Vec<Option<BatchPrice>>>,
    proposer: Venue,
    validator: Option<Venue>,
}

impl Chain {
    fn propose(&mut self, transactions: &[BatchTransaction]) -> anyhow::Result<Proposed> {
        let proposed = self.proposer.propose(transactions, self.start.as_deref())?;
        let dropped = proposed.dropped().count();
        ensure!(dropped == 0, "{dropped} of {} valid transactions were dropped", transactions.len());
        self.workload.closed(&proposed.closed.batch_hash, []);
        self.start = Some(proposed.block.proposal.prices.clone());
        Ok(proposed)
    }

    /// Until so many offers stand.
    fn fill(&mut self, size: usize, filling: usize) -> anyhow::Result<()> {
        self.validator = None;
        let mut random = walras_price_solver::random::Random::new(SEED);
        while self.proposer.open_offer_count() < size {
            let missing = size - self.proposer.open_offer_count();
            self.workload.set_transaction_count(filling.min(missing + missing / 4 + 100));
            let mut transactions = self.workload.block(|_, _| false).to_vec();
            for transaction in &mut transactions {
                if let BatchOperation::CreateOffer(create) = &mut transaction.operation {
                    let more = 1.0 + random.uniform(MORE.0, MORE.1);
                    create.limit = BatchPrice::from_bits((f64::from_bits(create.limit.bits()) * more).to_bits())?;
                }
            }
            self.propose(&transactions)?;
        }
        Ok(())
    }
}

/// Thousands of transactions a second, of each block.
#[derive(Default)]
struct Rates {
    propose: Vec<f64>,
    validate: Vec<f64>,
}

/// The rate by standing offers among 100,000 accounts, then by accounts with 1,000,000 standing offers, from 1,000 accounts on.
///
/// # Errors
/// As [`run`].
pub fn run_all(rounds: usize, standing: usize, accounts: u32, transactions: usize, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(rounds);
    let of_offers = Config {
        rounds,
        transactions,
        sizes: sizes_up_to(standing),
        accounts: transactions as u32,
        log: None,
        suffix: String::new(),
        bars: None,
    };
    run(&of_offers, report)?;
    let steps = (3..8).map(|power| 10_u32.pow(power)).filter(|count| *count < accounts).chain([accounts]);
    for accounts in steps {
        // Accounts may send so many in a block.
        let transactions = transactions.min(accounts as usize * 32);
        let sizes = vec![(10 * of_offers.transactions, format!("{}_standing", short(10 * of_offers.transactions)))];
        let suffix = format!("_{}_accounts", short(accounts as usize));
        run(&Config { transactions, sizes, accounts, suffix, ..of_offers.clone() }, report)?;
    }
    Ok(())
}

/// Runs all of it. Fails at the first wrong answer.
///
/// # Errors
/// When a block is not what it should be, or the log cannot be written.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let model = Model { cancel_share: 0.0, ..Model::standard(ASSETS, config.accounts, config.transactions) };
    let workload = Workload::new(model.clone(), SEED);
    let proposer = Venue::new(&model, workload.endowment(), THREADS)?;
    let mut chain = Chain { workload, start: None, proposer, validator: None };
    let log = config.log.as_ref().map(|folder| Log::create(folder, config.accounts)).transpose()?;
    // Accounts may send so many at most.
    let filling = (FILLING / 100_000 * config.transactions).min(config.accounts as usize * 32);
    for (number, (size, name)) in config.sizes.iter().enumerate() {
        eprintln!("{size} standing offers of {} accounts", config.accounts);
        chain.fill(*size, filling)?;
        chain.workload.set_transaction_count(config.transactions);
        chain.validator = Some(chain.proposer.clone());
        let bars = config.bars.filter(|_| number + 1 == config.sizes.len());
        let suffix = format!("ktps_{name}{}", config.suffix);
        tell(report, &suffix, measure(config, &mut chain, None)?, bars);
        if let Some(log) = &log {
            tell(report, &format!("signed_durable_{suffix}"), measure(config, &mut chain, Some(log))?, None);
        }
    }
    let (offers, accounts) = (chain.proposer.open_offer_count() as f64, f64::from(chain.proposer.ledger.account_count()));
    report.figure(Figure::new(format!("offers_held{}", config.suffix), offers, Unit::Count));
    report.figure(Figure::new(format!("accounts_held{}", config.suffix), accounts, Unit::Count));
    report.check(format!(
        "standing offers: every block of {:.0} % cancels was validated on another state, all roots equal; nothing valid was dropped",
        100.0 * CANCELS
    ));
    Ok(())
}

fn measure(config: &Config, chain: &mut Chain, log: Option<&Log>) -> anyhow::Result<Rates> {
    let mut rates = Rates::default();
    for round in 0..WARM_UP + config.rounds {
        let transactions = chain.workload.block_cancelling(CANCELS, chain.proposer.batch.market()).to_vec();
        let logged_ms = log.map_or(Ok(0.0), |log| log.take(&transactions))?;
        let proposed = chain.propose(&transactions)?;
        let validator = chain.validator.as_mut().context("a state to validate on")?;
        let validate_ms = validator.validate(&transactions, &proposed.block)?;
        std::mem::swap(&mut chain.proposer, validator);
        if round >= WARM_UP {
            let count = transactions.len() as f64;
            rates.propose.push(count / (logged_ms + proposed.times.total()));
            rates.validate.push(count / (logged_ms + validate_ms));
        }
    }
    Ok(rates)
}

fn tell(report: &mut Report, suffix: &str, rates: Rates, bars: Option<(f64, f64)>) {
    let rows = [("propose", rates.propose, bars.map(|bars| bars.0)), ("validate", rates.validate, bars.map(|bars| bars.1))];
    for (name, samples, bar) in rows {
        let metric = format!("{name}_{suffix}");
        let value = report.samples(metric.clone(), samples);
        let figure = Figure::new(metric, value, Unit::Ktps);
        report.figure(match bar {
            Some(bar) => figure.bar(bar),
            None => figure,
        });
    }
}

/// Where blocks come from when they are signed: they are decoded and checked, and on disk before anything is done with them.
struct Log {
    signatures: Signatures,
    file: File,
}

impl Log {
    fn create(folder: &std::path::Path, accounts: u32) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("blocks-standing.log");
        let file = File::create(&path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { signatures: Signatures::new(accounts)?, file })
    }

    /// In how many milliseconds.
    fn take(&self, transactions: &[BatchTransaction]) -> anyhow::Result<f64> {
        let signed = self.signatures.sign(transactions, THREADS);
        let (checked, check_ms) = self.signatures.check(&signed, THREADS)?;
        ensure!(checked == transactions, "what was signed is not what was read");
        let begun = Instant::now();
        (&self.file).write_all(signed.bytes())?;
        self.file.sync_data()?;
        Ok(check_ms + begun.elapsed().as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            rounds: 2,
            transactions: 1_000,
            sizes: vec![(2_000, "2k_standing".to_owned()), (5_000, "5k_standing".to_owned())],
            accounts: 1_000,
            log: Some(folder.path().into()),
            suffix: String::new(),
            bars: Some((430.0, 760.0)),
        };
        let mut report = Report::begin("blocks");
        run(&config, &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        for size in ["2k", "5k"] {
            for name in ["propose", "validate", "propose_signed_durable", "validate_signed_durable"] {
                assert!(value(&format!("{name}_ktps_{size}_standing")) > 0.0);
            }
        }
        assert!(value("offers_held") > 3_000.0 && value("accounts_held") >= 1_000.0);
    }

    #[test]
    fn sizes_have_short_names() {
        let names = |most| sizes_up_to(most).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(3_000_000), ["100k_standing", "300k_standing", "1m_standing", "3m_standing"]);
        assert_eq!(names(70_000_000)[5..], ["30m_standing", "70m_standing"]);
    }
}
