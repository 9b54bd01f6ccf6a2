//! The commands of both papers' programs: run experiments and rewrite their folders; small, they write nothing.

use std::path::Path;

use crate::convex::{self, Python};
use crate::record::{Record, repository};
use crate::{accuracy, cost, fewest, history, variants, warm};
use anyhow::{Context, bail};
use walras_figures::origin::{Origin, ensure_release};

const USAGE: &str = "usage: FIGURE|all [--small] [--seeds N]";
struct Arguments {
    figure: String,
    is_small: bool,
    seeds: Option<u64>,
}

/// Does what the command line asks for; `all` are these figures, in this order.
pub fn run(all: &[&str]) -> anyhow::Result<()> {
    let arguments = parse(std::env::args().skip(1))?;
    if !arguments.is_small {
        ensure_release()?;
    }
    let figures = match arguments.figure.as_str() {
        "all" => all.to_vec(),
        figure => vec![known(all, figure)?],
    };
    for figure in figures {
        let origin = Origin::begin();
        let record = match run_figure(figure, &arguments) {
            // Histories may be absent; everything else may not fail.
            Err(error) if arguments.figure == "all" && figure.ends_with("sec-6.2") && history::folder().is_err() => {
                println!("{figure}: skipped: {error:#}");
                continue;
            }
            record => record?,
        };
        println!("\n{}\n\n{}", record.folder, record.table);
        if !arguments.is_small {
            record.write(&origin, &repository().join("experiments"))?;
            println!("{}: written", record.folder);
        }
    }
    Ok(())
}

fn known<'a>(all: &[&'a str], figure: &str) -> anyhow::Result<&'a str> {
    all.iter()
        .find(|known| **known == figure)
        .copied()
        .with_context(|| format!("there is no {figure}; {USAGE}; figures: {}", all.join(" ")))
}

fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Arguments> {
    let mut arguments = Arguments { figure: String::new(), is_small: false, seeds: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {}
            "--small" => arguments.is_small = true,
            "--seeds" => {
                let seeds = words.next().and_then(|number| number.parse().ok()).filter(|seeds| *seeds > 0);
                arguments.seeds = Some(seeds.with_context(|| format!("--seeds takes a number above zero; {USAGE}"))?);
            }
            figure if arguments.figure.is_empty() && !figure.starts_with('-') => figure.clone_into(&mut arguments.figure),
            other => bail!("`{other}` is not understood; {USAGE}"),
        }
    }
    if arguments.figure.is_empty() {
        bail!(USAGE);
    }
    Ok(arguments)
}

fn run_figure(figure: &str, arguments: &Arguments) -> anyhow::Result<Record> {
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
        other => bail!("there is no {other}; {USAGE}"),
    }
}
