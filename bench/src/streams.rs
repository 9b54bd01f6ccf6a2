//! The streams on which books are compared, each with its answers.
//!
//! | stream | what |
//! | --- | --- |
//! | W1 | exchange-core's own generator: 1,000 resting orders, 3,000,000 commands, mostly moves |
//! | W2 | the same kind with immediate orders that sweep about 26 others |
//! | W3 | 10,000 resting orders that grow to 67,000; random cancels, no trades |
//! | W4 | 1,000,000 resting orders; random cancels, no trades: bound by memory |
//! | AAPL | an hour of NASDAQ as recorded, each order that took put together again: [`walras_replay::book_commands`] |
//!
//! W1 is read from exchange data where that is there, otherwise made by our generator of the same shape, and the report says so.
//! AAPL is left out where its file is not. The others are always made.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use walras_market_history::open_bytes;
use walras_market_history::workload::{Churn, ChurnConfig, Deep, DeepConfig};
use walras_market_history::workload_file::{WorkloadCommand, WorkloadReader, WorkloadResult, write_commands};
use walras_replay::{BookCommands, LOBSTER_FILE, Loaded, Options, book_commands};
use walras_types::SelfTrade;

use crate::driver::{Answer, FillDigest};
use crate::plain;
use crate::records::Record;

/// Commands with their answers.
#[derive(Debug)]
pub struct Stream {
    /// Short name, begins its metrics: `w1`.
    pub label: &'static str,
    /// Where it comes from.
    pub origin: String,
    /// The commands.
    pub records: Vec<Record>,
    /// How many of them fill the book; not timed where that is said.
    pub fill: usize,
    /// The commands on disk, for peers; `FILE.expect` lies next to them.
    pub file: PathBuf,
    /// What a book makes of them that lets orders of one owner trade: from elsewhere.
    pub expected: Answer,
}

/// What the plain book makes of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Solved {
    /// Self-trades allowed.
    pub allow: (Answer, FillDigest),
    /// The newer order of a self-trade ends.
    pub cancel_newest: (Answer, FillDigest),
}

impl Stream {
    /// Runs the plain book. Fails if it does not come to the expected answer.
    pub fn solve(&self) -> anyhow::Result<Solved> {
        let solved = Solved {
            allow: plain::solve(&self.records, SelfTrade::Allow),
            cancel_newest: plain::solve(&self.records, SelfTrade::CancelNewest),
        };
        anyhow::ensure!(
            solved.allow.0 == self.expected,
            "{}: the plain book came to {}, and {} should come to {}; one of the two is wrong, and no figure of it counts",
            self.label,
            solved.allow.0,
            self.origin,
            self.expected
        );
        Ok(solved)
    }
}

fn expected(result: &WorkloadResult) -> Answer {
    Answer {
        trades: result.trades,
        volume: result.volume_lots,
        refused: 0,
        ask_levels: result.ask_levels,
        bid_levels: result.bid_levels,
        orders: result.ask_orders + result.bid_orders,
        level_hash: result.level_hash,
    }
}

/// How large the streams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As published.
    Full,
    /// A thousandth of the commands: for tests.
    Small,
    /// That many, behind those that fill the book.
    Commands(u64),
}

impl Scale {
    fn commands(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Small => full / 1_000,
            Self::Commands(count) => count,
        }
    }
}

const SEED: u64 = 101_572_685;

/// W1 of our own generator.
pub fn churn(scale: Scale, folder: &Path) -> anyhow::Result<Stream> {
    let standard = ChurnConfig::standard(SEED);
    let config = ChurnConfig { commands: scale.commands(standard.commands), ..standard };
    made_churn("w1", config, folder)
}

/// W2.
pub fn sweeps(scale: Scale, folder: &Path) -> anyhow::Result<Stream> {
    let standard = ChurnConfig::sweeps(SEED);
    // Sweeps are rare: a thousandth would hold six.
    let commands = scale.commands(standard.commands) * if scale == Scale::Small { 10 } else { 1 };
    made_churn("w2", ChurnConfig { commands, ..standard }, folder)
}

fn made_churn(label: &'static str, config: ChurnConfig, folder: &Path) -> anyhow::Result<Stream> {
    let mut churn = Churn::new(config);
    let commands: Vec<_> = churn.by_ref().collect();
    let kind = if config.sweeps { "generated, with sweeps" } else { "generated in the manner of exchange-core's" };
    made(label, kind, config.seed, &commands, &churn.result(), folder)
}

/// W3.
pub fn growing(scale: Scale, folder: &Path) -> anyhow::Result<Stream> {
    made_deep("w3", scale, DeepConfig::growing(SEED), folder)
}

/// W4.
pub fn million(scale: Scale, folder: &Path) -> anyhow::Result<Stream> {
    made_deep("w4", scale, DeepConfig::million(SEED), folder)
}

fn made_deep(label: &'static str, scale: Scale, full: DeepConfig, folder: &Path) -> anyhow::Result<Stream> {
    // Even the small ones must reach the size from which the book looks ahead.
    let resting_orders = if scale == Scale::Full { full.resting_orders } else { full.resting_orders.min(10_000) };
    let mut deep = Deep::new(DeepConfig { resting_orders, commands: scale.commands(full.commands), ..full });
    let commands: Vec<_> = deep.by_ref().collect();
    made(label, "generated, random cancels", full.seed, &commands, &deep.result(), folder)
}

fn made(
    label: &'static str,
    kind: &str,
    seed: u64,
    commands: &[WorkloadCommand],
    result: &WorkloadResult,
    folder: &Path,
) -> anyhow::Result<Stream> {
    let file = folder.join(format!("{label}.bin"));
    write(commands, &result.to_string(), &file)?;
    Ok(Stream {
        label,
        origin: format!("{label}: {} commands, {kind}, seed {seed}", commands.len()),
        records: commands.iter().map(Record::from).collect(),
        fill: usize::try_from(result.fill_commands).expect("a fill is smaller than memory"),
        file,
        expected: expected(result),
    })
}

fn write(commands: &[WorkloadCommand], expect: &str, file: &Path) -> anyhow::Result<()> {
    let said = || format!("writing {}; check that the folder is yours and its disk has 500 MB", file.display());
    let folder = file.parent().expect("a file lies in a folder");
    std::fs::create_dir_all(folder).with_context(said)?;
    let mut sink = BufWriter::new(File::create(file).with_context(said)?);
    write_commands(commands.iter().copied(), &mut sink).with_context(said)?;
    std::fs::write(expect_of(file), expect).with_context(said)
}

fn expect_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".expect");
    path.into()
}

/// Where W1 lies in a folder of exchange data.
const RECORDED: &str = "ec-workload/ec_1k_3m.bin";

/// W1 as exchange-core's own generator made it, if `data` has it.
pub fn recorded(data: &Path, folder: &Path) -> anyhow::Result<Option<Stream>> {
    let packed = data.join(format!("{RECORDED}.xz"));
    let source = if packed.is_file() { packed } else { data.join(RECORDED) };
    if !source.is_file() {
        return Ok(None);
    }
    let expect_path = expect_of(&data.join(RECORDED));
    let expect = std::fs::read_to_string(&expect_path)
        .with_context(|| format!("reading {}; fetch it again with the workload that it belongs to", expect_path.display()))?;
    let result = WorkloadResult::parse(&expect)?;
    let commands = WorkloadReader::new(open_bytes(&source)?).collect::<Result<Vec<_>, _>>()?;
    let file = folder.join("w1.bin");
    write(&commands, &expect, &file)?;
    Ok(Some(Stream {
        label: "w1",
        origin: format!("w1: {} commands of exchange-core's own generator", commands.len()),
        records: commands.iter().map(Record::from).collect(),
        fill: usize::try_from(result.fill_commands).context("the .expect file fills more than memory holds")?,
        file,
        expected: expected(&result),
    }))
}

/// The AAPL hour as commands, if `data` has it.
pub fn recorded_hour(data: &Path, folder: &Path) -> anyhow::Result<Option<Stream>> {
    let source = data.join(LOBSTER_FILE);
    if !source.is_file() {
        return Ok(None);
    }
    let loaded = Loaded::open(&source, &Options::default(), &mut |_| {})?;
    let BookCommands { commands, result, left_out } =
        book_commands(&loaded)?.with_context(|| format!("{} has auctions, which no file of commands holds", source.display()))?;
    let file = folder.join("aapl.bin");
    write(&commands, &result.to_string(), &file)?;
    Ok(Some(Stream {
        label: "aapl",
        origin: format!(
            "aapl: {} commands of an hour of NASDAQ, {left_out} messages left out whose order the book had traded away by then",
            commands.len()
        ),
        records: commands.iter().map(Record::from).collect(),
        fill: 0,
        file,
        expected: expected(&result),
    }))
}

/// Where exchange data lies: what `WALRAS_DATA` names, else `../shared/data`.
#[must_use]
pub fn data_folder() -> PathBuf {
    std::env::var_os("WALRAS_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use walras_market_history::synthetic::{SyntheticConfig, write_lobster};

    use super::*;

    #[test]
    fn a_recorded_hour_becomes_a_stream_that_the_plain_book_agrees_with() {
        let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(recorded_hour(data.path(), folder.path()).unwrap().is_none(), "there is no data");
        let source = data.path().join(LOBSTER_FILE);
        std::fs::create_dir_all(source.parent().unwrap()).unwrap();
        let minute = SyntheticConfig { duration_ns: 60_000_000_000, ..SyntheticConfig::default() };
        write_lobster(minute, File::create(&source).unwrap()).unwrap();
        let stream = recorded_hour(data.path(), folder.path()).unwrap().unwrap();
        let solved = stream.solve().unwrap();
        assert!(solved.allow.0.trades > 20, "too few trades to tell: {}", solved.allow.0);
        // Each order has an owner of its own, so preventing self-trades changes nothing: both books may be timed on it alike.
        assert_eq!(solved.allow, solved.cancel_newest);
        assert_eq!(crate::records::read(&stream.file).unwrap(), stream.records);
        let expectation = std::fs::read_to_string(expect_of(&stream.file)).unwrap();
        assert_eq!(expected(&WorkloadResult::parse(&expectation).unwrap()), stream.expected);
    }
}
