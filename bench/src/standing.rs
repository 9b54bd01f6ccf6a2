//! Blocks among millions of standing offers, as the papers run them: a fifth to a third of the transactions cancel offers of any age.
//!
//! A market is filled and grows from one size to the next, and blocks are measured at each. Only one state is held at a time, so
//! that twice as much fits into memory. First a proposer goes through all blocks and keeps what it proposed. Then its state is
//! dropped, and a validator goes through the same history from the beginning, with the workload of the same seed. It checks every
//! proposal and all roots. Offers that fill the market ask a few percent more than those of the model, so that they stand.
//!
//! *Bare* blocks are neither signed nor written. *Signed and durable* blocks come as signed bytes: they are decoded, their
//! signatures are checked, and they are on disk before they are used. This is done and timed once, by the proposer, and its time is
//! part of the validator's rate, too. All roots are made for both.

use std::path::{Path, PathBuf};

use anyhow::Context;
use walras_batch_workload::Model;

use crate::memory;
use crate::report::{Figure, Report, Unit};

mod history;

use history::{Log, propose, validate};

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Measured blocks of each kind at each size; figures are medians over them.
    pub rounds: usize,
    /// Transactions of a block.
    pub transactions: usize,
    /// Standing offers at which blocks are measured, ascending, with the name of each in the metrics.
    pub sizes: Vec<(usize, String)>,
    /// Accounts that send.
    pub accounts: u32,
    /// Where signed blocks are written, in addition to the bare ones; without, all blocks are bare.
    pub log: Option<PathBuf>,
    /// What follows a metric's name: nothing, or `_10k_accounts`.
    pub suffix: String,
    /// Goals of proposing and validating at the last size, in thousands of transactions a second.
    pub bars: Option<(f64, f64)>,
}

/// What a run held at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Standing offers.
    pub offers: usize,
    /// Accounts, including those that the blocks created.
    pub accounts: u32,
    /// The most that the process had resident, in MiB.
    pub memory_mib: f64,
}

/// What the metrics' names mean.
pub const NAMES: &str = "rates are bare unless their name has _signed_: transactions come unsigned, and nothing is written. With \
     _signed_durable_ they are decoded, their signatures are checked, and they are written to a file and synced, before anything is done \
     with them. Roots are made in all";

const ASSETS: u16 = 50;
/// The share of a block that cancels.
const CANCELS: f64 = 0.27;
/// Standing offers of the goal.
const GOAL: usize = 3_000_000;
/// The share of the rate at [`GOAL`] that the largest size has to keep.
const LEFT: f64 = 0.85;

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

/// Approximate bytes of a state, as measured: of an account with balances of 50 assets, a key, and its share of the workload and
/// signatures; and of a standing offer with its hash tree, and its share of what a block copies and searches.
const ACCOUNT_BYTES: f64 = 1_300.0;
const OFFER_BYTES: f64 = 250.0;
/// What any state needs in addition.
const BASE_MIB: f64 = 256.0;

/// Approximately what a run needs, in MiB.
fn needed_mib(accounts: u32, offers: usize) -> f64 {
    BASE_MIB + (f64::from(accounts) * ACCOUNT_BYTES + offers as f64 * OFFER_BYTES) / f64::from(1 << 20)
}

impl Config {
    /// Three million standing offers of 100,000 accounts, both divided by `scale`, and the goals at that size.
    #[must_use]
    pub fn at_three_million(rounds: usize, scale: usize, log: PathBuf) -> Self {
        Self {
            rounds,
            transactions: 100_000 / scale,
            sizes: vec![(GOAL / scale, "3m_standing".to_owned())],
            accounts: 100_000 / scale as u32,
            log: Some(log),
            suffix: "_3m_standing".to_owned(),
            bars: Some((430.0, 760.0)),
        }
    }

    fn model(&self) -> Model {
        Model { cancel_share: 0.0, ..Model::standard(ASSETS, self.accounts, self.transactions) }
    }

    /// The sizes for which there is memory. A note names each other one.
    fn fitting(&self, report: &mut Report) -> Vec<(usize, String)> {
        let Some(available) = memory::available_mib() else { return self.sizes.clone() };
        let (fitting, others): (Vec<_>, Vec<_>) =
            self.sizes.iter().cloned().partition(|(size, _)| needed_mib(self.accounts, *size) <= available);
        for (size, name) in others {
            let needed = needed_mib(self.accounts, size) / 1_024.0;
            let (accounts, available) = (self.accounts, available / 1_024.0);
            report.note(format!(
                "{name}{} was NOT RUN: {size} offers of {accounts} accounts take about {needed:.1} GiB, and {available:.1} are available",
                if self.suffix.is_empty() { String::new() } else { format!(" of {}", &self.suffix[1..]) }
            ));
        }
        fitting
    }
}

/// The rate by accounts with 1,000,000 standing offers, from 1,000 accounts on, then by standing offers among 100,000 accounts. The
/// run that needs most memory comes last, since memory that was freed may be in pieces.
///
/// # Errors
/// As [`run`].
pub fn run_all(
    rounds: usize,
    standing: usize,
    accounts: u32,
    transactions: usize,
    scratch: &Path,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.rounds(rounds);
    report.note(NAMES);
    let of_offers = Config {
        rounds,
        transactions,
        sizes: sizes_up_to(standing),
        accounts: transactions as u32,
        log: Some(scratch.to_owned()),
        suffix: String::new(),
        bars: None,
    };
    let mut all = Vec::new();
    let steps = (3..8).map(|power| 10_u32.pow(power)).filter(|count| *count < accounts).chain([accounts]);
    for accounts in steps {
        // Accounts may send so many in a block.
        let transactions = transactions.min(accounts as usize * 32);
        let sizes = vec![(10 * of_offers.transactions, format!("{}_standing", short(10 * of_offers.transactions)))];
        let suffix = format!("_{}_accounts", short(accounts as usize));
        all.push(run(&Config { transactions, sizes, accounts, suffix, ..of_offers.clone() }, report)?);
    }
    all.push(run(&of_offers, report)?);
    let most_offers = all.iter().copied().max_by_key(|held| held.offers).unwrap_or_default();
    let most_accounts = all.iter().copied().max_by_key(|held| held.accounts).unwrap_or_default();
    report.note(format!(
        "offers_held with {} accounts in {:.1} GiB; accounts_held with {} offers in {:.1} GiB: the most that the process had resident, the \
         making of blocks and their signatures included",
        most_offers.accounts,
        most_offers.memory_mib / 1_024.0,
        most_accounts.offers,
        most_accounts.memory_mib / 1_024.0
    ));
    report.figure(Figure::new("offers_held", most_offers.offers as f64, Unit::Count));
    report.figure(Figure::new("offers_held_memory_mib", most_offers.memory_mib, Unit::Mib));
    report.figure(Figure::new("accounts_held", f64::from(most_accounts.accounts), Unit::Count));
    report.figure(Figure::new("accounts_held_memory_mib", most_accounts.memory_mib, Unit::Mib));
    Ok(())
}

/// Runs all of it. Fails at the first wrong answer.
///
/// # Errors
/// When a block is not what it should be, or the log cannot be written.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<Held> {
    walras_huge_pages::give_back_what_is_free();
    let config = Config { sizes: config.fitting(report), ..config.clone() };
    if config.sizes.is_empty() {
        return Ok(Held::default());
    }
    memory::forget_peak();
    let mut rates = vec![[Rates::default(), Rates::default()]; config.sizes.len()];
    let log = config.log.as_ref().map(|folder| Log::create(folder, config.accounts)).transpose()?;
    let (proposed, held) = propose(&config, log.as_ref(), &mut rates)?;
    drop(log);
    validate(&config, proposed, &mut rates)?;
    let memory_mib = memory::peak_mib().context("/proc/self/status has no VmHWM, so the memory of this run is unknown")?;
    for (number, (name, rates)) in config.sizes.iter().map(|(_, name)| name).zip(&rates).enumerate() {
        let bars = config.bars.filter(|_| number + 1 == config.sizes.len());
        let suffix = format!("ktps_{name}{}", config.suffix_of(name));
        let bars = bars.or_else(|| config.left_of_goal(number, report));
        let [bare, signed] = rates;
        bare.tell(report, &suffix, bars);
        if config.log.is_some() {
            signed.tell(report, &format!("signed_durable_{suffix}"), None);
        }
    }
    report.figure(Figure::new(format!("memory_mib{}", config.suffix), memory_mib, Unit::Mib));
    report.check(format!(
        "standing offers of {} accounts: every block of {:.0} % cancels, and every one that filled the market, was validated from the \
         beginning on another state, all roots equal; nothing valid was dropped",
        config.accounts,
        100.0 * CANCELS
    ));
    Ok(Held { memory_mib, ..held })
}

impl Config {
    /// The suffix, unless the size's name says it.
    fn suffix_of(&self, name: &str) -> &str {
        if self.suffix.strip_prefix('_') == Some(name) { "" } else { &self.suffix }
    }

    /// The rates that the largest size has to reach, from those at the goal's size, if both are measured.
    fn left_of_goal(&self, number: usize, report: &Report) -> Option<(f64, f64)> {
        let (size, _) = self.sizes[number];
        let goal = self.sizes.iter().find(|(size, _)| *size == GOAL).filter(|_| size > GOAL && number + 1 == self.sizes.len())?;
        let at_goal = |name: &str| {
            let metric = format!("{name}_ktps_{}{}", goal.1, self.suffix);
            report.figures().iter().find(|figure| figure.metric == metric).map(|figure| LEFT * figure.value)
        };
        Some((at_goal("propose")?, at_goal("validate")?))
    }
}

/// Thousands of transactions a second, of each block.
#[derive(Clone, Default)]
struct Rates {
    propose: Vec<f64>,
    validate: Vec<f64>,
}

impl Rates {
    fn tell(&self, report: &mut Report, suffix: &str, bars: Option<(f64, f64)>) {
        let rows = [("propose", &self.propose, bars.map(|bars| bars.0)), ("validate", &self.validate, bars.map(|bars| bars.1))];
        for (name, samples, bar) in rows {
            let metric = format!("{name}_{suffix}");
            let value = report.samples(metric.clone(), samples.clone());
            let figure = Figure::new(metric, value, Unit::Ktps);
            report.figure(match bar {
                Some(bar) => figure.bar(bar),
                None => figure,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(folder: &Path) -> Config {
        Config {
            rounds: 2,
            transactions: 1_000,
            sizes: vec![(2_000, "2k_standing".to_owned()), (5_000, "5k_standing".to_owned())],
            accounts: 1_000,
            log: Some(folder.to_owned()),
            suffix: String::new(),
            bars: Some((430.0, 760.0)),
        }
    }

    #[test]
    fn a_small_run_has_every_figure() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("blocks");
        let held = run(&small(folder.path()), &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        for size in ["2k", "5k"] {
            for name in ["propose", "validate", "propose_signed_durable", "validate_signed_durable"] {
                assert!(value(&format!("{name}_ktps_{size}_standing")) > 0.0);
            }
        }
        assert!(value("memory_mib") > 1.0);
        assert!(held.offers > 3_000 && held.accounts >= 1_000);
    }

    #[test]
    fn all_runs_together_say_what_they_held() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("standing");
        run_all(2, 1_000, 2_000, 100, folder.path(), &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        assert!(value("offers_held") > 500.0 && value("accounts_held") >= 2_000.0);
        assert!(value("offers_held_memory_mib") > 1.0 && value("accounts_held_memory_mib") > 1.0);
        assert!(value("propose_ktps_1k_standing_2k_accounts") > 0.0);
    }

    #[test]
    fn a_validator_of_another_history_refuses_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { log: None, ..small(folder.path()) };
        let mut rates = vec![[Rates::default(), Rates::default()]; 2];
        let (proposed, _) = propose(&config, None, &mut rates).unwrap();
        let other = Config { accounts: 1_001, ..config };
        assert!(validate(&other, proposed, &mut rates).is_err());
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let sizes = vec![(2_000, "2k_standing".to_owned()), (usize::MAX >> 16, "too_many_standing".to_owned())];
        let mut report = Report::begin("standing");
        let config = Config { sizes, ..small(Path::new("unused")) };
        if memory::available_mib().is_some_and(|mib| mib > 2.0 * BASE_MIB) {
            assert_eq!(config.fitting(&mut report), [(2_000, "2k_standing".to_owned())]);
        }
    }

    #[test]
    fn the_largest_size_is_held_against_three_million() {
        let mut report = Report::begin("standing");
        let config = Config { sizes: sizes_up_to(70_000_000), ..small(Path::new("unused")) };
        report.figure(Figure::new("propose_ktps_3m_standing", 400.0, Unit::Ktps));
        report.figure(Figure::new("validate_ktps_3m_standing", 800.0, Unit::Ktps));
        assert_eq!(config.left_of_goal(config.sizes.len() - 1, &report), Some((340.0, 680.0)));
        assert_eq!(config.left_of_goal(config.sizes.len() - 2, &report), None);
    }

    #[test]
    fn sizes_have_short_names() {
        let names = |most| sizes_up_to(most).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(3_000_000), ["100k_standing", "300k_standing", "1m_standing", "3m_standing"]);
        assert_eq!(names(70_000_000)[5..], ["30m_standing", "70m_standing"]);
    }
}
