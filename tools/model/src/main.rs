//! `walras-model`: checks every path within the given bounds, and describes one that breaks a property.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use walras_model::{Bug, Settings, story};

const USAGE: &str =
    "usage: walras-model [--clients N] [--commands N] [--window N] [--repeats N] [--elections N] [--crashes N] [--snapshots N]
                    [--altered N] [--threads N] [--bug NAME]

Looks at every path of the model within these bounds (2 clients, 2 commands each, a window of 1 answer, 0 repeats, 1 change of leader, 0
crashes, 0 snapshots, 0 requests with another command under a used number), with as many threads as there are processors. Ends at
the first property that does not hold, with a path to it; with one thread that is short. Each bound raised by one costs about ten
times the states: begin small. `--bug` plants one.";

struct Arguments {
    settings: Settings,
    threads: usize,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let settings =
        Settings { clients: 2, commands: 2, window: 1, repeats: 0, elections: 1, crashes: 0, snapshots: 0, altered: 0, bug: None };
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let mut arguments = Arguments { settings, threads };
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Ok(None);
        }
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = |range: std::ops::RangeInclusive<u8>| {
            let number = value.parse::<u8>().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| format!("{word} wants a number from {} to {}, not {value}", range.start(), range.end()))
        };
        let settings = &mut arguments.settings;
        match word.as_str() {
            "--clients" => settings.clients = number(1..=4)?,
            "--commands" => settings.commands = number(1..=8)?,
            "--window" => settings.window = number(1..=8)?,
            "--repeats" => settings.repeats = number(0..=16)?,
            "--elections" => settings.elections = number(0..=16)?,
            "--crashes" => settings.crashes = number(0..=16)?,
            "--snapshots" => settings.snapshots = number(0..=16)?,
            "--altered" => settings.altered = number(0..=4)?,
            "--threads" => arguments.threads = number(1..=255)?.into(),
            "--bug" => settings.bug = Some(value.parse::<Bug>()?),
            _ => return Err(format!("no option {word}")),
        }
    }
    Ok(Some(arguments))
}

/// Reports the progress of the check every few seconds.
struct Progress;

impl Reporter<Settings> for Progress {
    fn report_checking(&mut self, data: ReportData) {
        let ReportData { total_states, unique_states, max_depth, duration, done } = data;
        let per_second = unique_states as u128 * 1_000 / duration.as_millis().max(1);
        let seconds = duration.as_secs_f64();
        let end = if done { "done" } else { "so far" };
        println!("{end}: {unique_states} states ({total_states} steps), depth {max_depth}, {seconds:.1} s, {per_second} states/s");
        // Flushed, so that the progress is visible. Errors are ignored: the exit status still has the result.
        let _ = std::io::stdout().flush();
    }

    fn report_discoveries(&mut self, _: &Settings, _: std::collections::BTreeMap<&'static str, ReportDiscovery<Settings>>) {}

    fn delay(&self) -> Duration {
        Duration::from_secs(2)
    }
}

fn main() -> ExitCode {
    let Arguments { settings, threads } = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(complaint) => {
            eprintln!("walras-model: {complaint}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("{settings:?}");
    let checker = settings.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join_and_report(&mut Progress);
    let found = checker.discoveries();
    let mut failed = 0;
    for property in checker.model().properties() {
        let (path, name) = (found.get(property.name), property.name);
        match (property.expectation, path) {
            (Expectation::Always | Expectation::Eventually, None) => println!("  holds     {name}"),
            (Expectation::Sometimes, Some(_)) => println!("  happens   {name}"),
            (Expectation::Always | Expectation::Eventually, Some(path)) => {
                failed += 1;
                println!("  BROKEN    {name}\n{}", story(checker.model(), property.name, path.clone()));
            }
            (Expectation::Sometimes, None) => {
                failed += 1;
                println!("  not seen  {name}: within these bounds, or before what is broken was found");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
