//! `walras-sim`: runs seeds until one fails, then shows what led to it.

use std::process::ExitCode;
use std::time::Instant;

use walras_sim::Trace;
use walras_sim::single::{Mutation, Report, Settings, simulate};

const USAGE: &str = "usage: walras-sim [--seeds N] [--seed FIRST] [--steps EVENTS] [--mutation NAME]

Runs a whole venue from each of N seeds (100), beginning with FIRST (1): EVENTS events (4000) with faults, then healing.
Ends at the first violation, with the last things that happened before it.";

struct Arguments {
    seeds: u64,
    first: u64,
    settings: Settings,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { seeds: 100, first: 1, settings: Settings::default() };
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Ok(None);
        }
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value}"));
        match word.as_str() {
            "--seeds" => arguments.seeds = number()?,
            "--seed" => arguments.first = number()?,
            "--steps" => arguments.settings.steps = number()?,
            "--mutation" => arguments.settings.mutation = Some(value.parse::<Mutation>()?),
            _ => return Err(format!("no option {word}")),
        }
    }
    Ok(Some(arguments))
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(complaint) => {
            eprintln!("walras-sim: {complaint}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Arguments { seeds, first, settings } = arguments;
    let begun = Instant::now();
    let (mut sum, mut told) = (Report::default(), begun);
    for (done, seed) in (1..=seeds).zip(first..) {
        match simulate(seed, &settings, &Trace::off()) {
            Ok(report) => sum += report,
            Err(violation) => {
                // The same seed does the same again, this time with somebody who writes it down.
                let trace = Trace::on();
                let _ = simulate(seed, &settings, &trace);
                trace.lines().iter().for_each(|line| println!("{line}"));
                println!("\nseed {seed}: {violation}\nagain: walras-sim --seeds 1 --seed {seed} --steps {}", settings.steps);
                return ExitCode::FAILURE;
            }
        }
        if told.elapsed().as_secs() >= 2 || done == seeds {
            told = Instant::now();
            println!("{}", progress(done, seeds, &sum, begun.elapsed().as_millis()));
        }
    }
    ExitCode::SUCCESS
}

fn progress(done: u64, seeds: u64, sum: &Report, elapsed_ms: u128) -> String {
    let simulated_ms = u128::from(sum.simulated_ns) / 1_000_000;
    format!(
        "{done}/{seeds} seeds, {} simulated s ({} a second), {} requests, {} acknowledged, {} refused, {} in doubt, {} replayed, {} entries, {} crashes, \
         {} failed starts, {} torn tails, {} snapshots",
        simulated_ms / 1_000,
        simulated_ms / elapsed_ms.max(1),
        sum.attempts,
        sum.acknowledged,
        sum.refused,
        sum.in_doubt,
        sum.replayed,
        sum.entries,
        sum.crashes,
        sum.failed_starts,
        sum.torn_tails,
        sum.snapshots
    )
}
