//! Machine instructions per command, counted by valgrind: the same in every run and on a busy machine, so that a change of one in a
//! hundred shows. No time: instructions overlap, and wait for memory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use walras_order_book::{Art, Ladder, PriceIndex};
use walras_types::SelfTrade;

use crate::driver::{answer_of, drive, filled};
use crate::report::{Figure, Report, Unit};
use crate::streams::{self, Scale, Stream};

/// What is counted: W1 of our own generator and W2, both indexes.
const COUNTED: [(&str, &str, &str); 3] =
    [("w1", "ladder", "w1_instructions"), ("w1", "art", "w1_art_instructions"), ("w2", "ladder", "w2_instructions")];

/// Under valgrind everything takes fifty times as long.
const COMMANDS: u64 = 100_000;

fn stream(label: &str, folder: &Path) -> anyhow::Result<Stream> {
    match label {
        "w1" => streams::churn(Scale::Commands(COMMANDS), folder),
        "w2" => streams::sweeps(Scale::Commands(COMMANDS), folder),
        _ => bail!("there is no counted stream '{label}'; take w1 or w2"),
    }
}

/// The program that is counted: fills the book, then runs the commands.
pub fn counted(label: &str, index: &str, folder: &Path) -> anyhow::Result<()> {
    let stream = stream(label, folder)?;
    match index {
        "ladder" => run_counted::<Ladder>(&stream),
        "art" => run_counted::<Art>(&stream),
        _ => bail!("there is no index '{index}'; take ladder or art"),
    }
}

fn run_counted<I: PriceIndex>(stream: &Stream) -> anyhow::Result<()> {
    let (mut book, mut ring, mut refused) = filled::<I>(&stream.records, stream.fill, SelfTrade::CancelNewest);
    refused += counted_commands(&mut book, &mut ring, &stream.records, stream.fill);
    let answer = answer_of(&book, &ring, refused);
    let right = crate::plain::solve(&stream.records, SelfTrade::CancelNewest).0;
    ensure!(answer == right, "{}: a wrong answer: {answer}; right is {right}", stream.label);
    println!("{answer}");
    Ok(())
}

/// Found by valgrind by its name.
#[inline(never)]
fn counted_commands<I: PriceIndex>(
    book: &mut walras_order_book::OrderBook<I>,
    ring: &mut crate::driver::Ring,
    records: &[crate::records::Record],
    first: usize,
) -> u64 {
    drive(book, ring, records, first, SelfTrade::CancelNewest)
}

/// Counts. A note in the report if valgrind is not there.
pub fn run(folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(1);
    if Command::new("valgrind").arg("--version").output().is_err() {
        report
            .note("valgrind is missing, so nothing was counted; install it (Debian: apt-get install valgrind) and run this again");
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (label, index, metric) in COUNTED {
        let counts = folder.join(format!("{metric}.callgrind"));
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=*counted_commands*"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .arg(std::env::current_exe().context("finding this program")?)
            .args(["counted", label, index])
            .arg(folder)
            .output()
            .context("starting valgrind")?;
        ensure!(
            output.status.success(),
            "valgrind or what it counts failed, see its words: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = std::fs::read_to_string(&counts).with_context(|| format!("reading {}", counts.display()))?;
        let total = text.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse::<u64>().ok());
        let total = total.with_context(|| format!("{} has no summary line; is this valgrind very old?", counts.display()))?;
        ensure!(total > 0, "valgrind found no counted_commands; build with debug = \"line-tables-only\" or more");
        report.check(format!("{label}, {index}: {}", String::from_utf8_lossy(&output.stdout).trim()));
        report.figure(Figure::new(metric, total as f64 / COMMANDS as f64, Unit::Instructions));
    }
    Ok(())
}
