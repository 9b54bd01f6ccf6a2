//! The commands of both papers' programs: run experiments and rewrite their folders; small, they write nothing.
//!
//! Figures that are drawn of one chain of blocks are measured together: each of their names runs all of them.

use std::path::Path;

use crate::blocks::{bare_book, chain, chain_record, filter, payments, threads_default, threads_of};
use crate::convex::{self, Python};
use crate::record::{Record, repository};
use crate::{accuracy, buy_offers, cost, fewest, history, variants, warm};
use anyhow::{Context, bail};
use walras_figures::origin::{Origin, ensure_release};

const USAGE: &str = "usage: FIGURE|all|blocks [--small] [--seeds N] [--threads 1,2,...] [--accounts N] [--offers N] [--rounds N]";

/// Those of whole blocks, in the order in which `blocks` runs them.
pub const BLOCKS: [&str; 5] = ["2023/fig-7", "2023/app-I", "2023/sec-7.1", "2023/fig-3", "fig-3"];

#[derive(Debug, Default)]
struct Arguments {
    figure: String,
    is_small: bool,
    seeds: Option<u64>,
    threads: Option<Vec<usize>>,
    accounts: Option<u32>,
    offers: Option<usize>,
    rounds: Option<usize>,
}

/// Does what the command line asks for; `all` are these figures, in this order.
pub fn run(all: &[&str]) -> anyhow::Result<()> {
    let arguments = parse(std::env::args().skip(1))?;
    if !arguments.is_small {
        ensure_release()?;
    }
    let figures = match arguments.figure.as_str() {
        "all" => all.to_vec(),
        "blocks" => BLOCKS.to_vec(),
        figure => vec![known(all, measured_with(figure))?],
    };
    for (number, figure) in (1..).zip(&figures) {
        println!("{figure}: {number} of {}", figures.len());
        let origin = Origin::begin();
        let records = match run_figure(figure, &arguments) {
            // Histories may be absent; everything else may not fail.
            Err(error) if arguments.figure == "all" && needs_histories(figure) && history::folder().is_err() => {
                println!("{figure}: skipped: {error:#}");
                continue;
            }
            records => records?,
        };
        for record in records {
            println!("\n{}\n\n{}", record.folder, record.table);
            if !arguments.is_small {
                record.write(&origin, &repository().join("experiments"))?;
                println!("{}: written", record.folder);
            }
        }
    }
    Ok(())
}

/// Whether a figure is of real days.
fn needs_histories(figure: &str) -> bool {
    figure.ends_with("sec-6.2") || figure.ends_with("app-H")
}

/// The figure that another is measured with.
fn measured_with(figure: &str) -> &str {
    match figure {
        "fig-4" | "fig-5" => "fig-3",
        "2023/fig-4" | "2023/fig-5" | "2023/fig-6" => "2023/fig-3",
        figure => figure,
    }
}

fn known<'a>(all: &[&'a str], figure: &str) -> anyhow::Result<&'a str> {
    let known = all.iter().chain(&BLOCKS).find(|known| **known == figure).copied();
    known.with_context(|| format!("there is no {figure}; {USAGE}; figures: {}", all.join(" ")))
}

fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Arguments> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {}
            "--small" => arguments.is_small = true,
            "--seeds" => arguments.seeds = Some(number(&word, words.next())?),
            "--accounts" => arguments.accounts = Some(number(&word, words.next())?),
            "--offers" => arguments.offers = Some(number(&word, words.next())?),
            "--rounds" => arguments.rounds = Some(number(&word, words.next())?),
            "--threads" => arguments.threads = Some(threads_of(&words.next().unwrap_or_default())?),
            figure if arguments.figure.is_empty() && !figure.starts_with('-') => figure.clone_into(&mut arguments.figure),
            other => bail!("`{other}` is not understood; {USAGE}"),
        }
    }
    if arguments.figure.is_empty() {
        bail!(USAGE);
    }
    Ok(arguments)
}

fn number<N: std::str::FromStr + Default + PartialOrd>(option: &str, word: Option<String>) -> anyhow::Result<N> {
    let number = word.and_then(|number| number.parse().ok()).filter(|number| *number > N::default());
    number.with_context(|| format!("{option} takes a number above zero; {USAGE}"))
}

fn run_figure(figure: &str, arguments: &Arguments) -> anyhow::Result<Vec<Record>> {
    match figure {
        "fig-3" => chain_figures(chain::Paper::Speedex2021, arguments),
        "2023/fig-3" => chain_figures(chain::Paper::Speedex2023, arguments),
        "2023/fig-7" | "2023/sec-7.1" | "2023/app-I" => Ok(vec![block_figure(figure, arguments)?]),
        figure => Ok(vec![price_figure(figure, arguments)?]),
    }
}

fn chain_figures(paper: chain::Paper, arguments: &Arguments) -> anyhow::Result<Vec<Record>> {
    let mut setup = if arguments.is_small { chain::Setup::small(paper) } else { chain::Setup::full(paper, arguments.threads()) };
    setup.account_count = arguments.accounts.unwrap_or(setup.account_count);
    setup.rounds = arguments.rounds.unwrap_or(setup.rounds);
    if let Some(most) = arguments.offers {
        setup.open_offers.retain(|stop| *stop < most);
        setup.open_offers.push(most);
    }
    chain_record::records(&setup, &chain::run(&setup)?)
}

fn block_figure(figure: &str, arguments: &Arguments) -> anyhow::Result<Record> {
    let (is_small, threads) = (arguments.is_small, arguments.threads());
    match figure {
        "2023/fig-7" => {
            let full = payments::ContentionSetup::full(threads);
            payments::contention(&if is_small { payments::ContentionSetup::small() } else { full })
        }
        "2023/app-I" => {
            let mut setup = if is_small { filter::Setup::small() } else { filter::Setup::full(threads) };
            setup.account_count = arguments.accounts.unwrap_or(setup.account_count);
            setup.trials = arguments.rounds.unwrap_or(setup.trials);
            filter::run(&setup)
        }
        "2023/sec-7.1" => {
            let mut paid = if is_small { payments::ManySetup::small() } else { payments::ManySetup::full(threads.clone()) };
            let mut books = if is_small { bare_book::Setup::small() } else { bare_book::Setup::full(threads) };
            if let Some(rounds) = arguments.rounds {
                (paid.rounds, books.rounds) = (rounds, rounds);
            }
            if let Some(most) = arguments.accounts {
                for counts in [&mut paid.account_counts, &mut books.account_counts, &mut books.block_account_counts] {
                    counts.retain(|count| *count < most);
                    counts.push(most);
                }
            }
            let many = payments::many(&paid)?;
            bare_book::run(&books, &paid, &many)
        }
        other => bail!("there is no {other}; {USAGE}"),
    }
}

impl Arguments {
    fn threads(&self) -> Vec<usize> {
        self.threads.clone().unwrap_or_else(threads_default)
    }
}

fn price_figure(figure: &str, arguments: &Arguments) -> anyhow::Result<Record> {
    let Arguments { is_small, seeds, .. } = *arguments;
    // The papers average over five batches.
    let few = seeds.unwrap_or(5);
    let pick = |full, small| if is_small { small } else { full };
    match figure {
        "fig-1" => accuracy::run(&if is_small { accuracy::Setup::small() } else { accuracy::Setup::full(few) }),
        "fig-2" | "2023/fig-2" => {
            let full = if figure == "fig-2" { fewest::Setup::full_2021(few) } else { fewest::Setup::full_2023(few) };
            fewest::run(&if is_small { fewest::Setup::small() } else { full })
        }
        "fig-6" => variants::run(&if is_small { variants::Setup::small() } else { variants::Setup::full(seeds.unwrap_or(100)) }),
        "fig-7" | "2023/fig-8" => {
            let full = if figure == "fig-7" { convex::Setup::full_2021(few) } else { convex::Setup::full_2023(few) };
            let small = convex::Setup::small(&full.scratch);
            convex::run(&pick(full, small), &Python::find())
        }
        "cost" => cost::run(&if is_small { cost::Setup::small() } else { cost::Setup::full(few) }),
        "cold-warm" => warm::run(&if is_small { warm::Setup::small() } else { warm::Setup::full(few) }),
        "sec-6.2" | "2023/sec-6.2" => {
            let full = if figure == "sec-6.2" { history::Setup::full_2021() } else { history::Setup::full_2023() };
            let setup = if is_small { history::Setup::small() } else { full };
            history::run(&setup, &history::read(&setup, Path::new(&history::folder()?))?)
        }
        "2023/app-H" => {
            let setup = if is_small { buy_offers::Setup::small() } else { buy_offers::Setup::full() };
            buy_offers::run(&setup, &history::read(&setup.history, Path::new(&history::folder()?))?)
        }
        other => bail!("there is no {other}; {USAGE}"),
    }
}
