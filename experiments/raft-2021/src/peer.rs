//! Fig-4.3: the operation of fig-4.2 on exchange-core's own order book, and on ours in the same stream.
//!
//! One stream of commands: 999 orders a side that never trade, then many pairs of a bid and an immediate-or-cancel offer of the
//! same size that takes it. exchange-core's driver (`bench/peers/exchange-core`) times every command separately and reports the
//! percentiles of the immediate-or-cancel ones. Its answers must equal ours. Our book is timed in the same way, pair by pair.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use walras_types::Side;

use crate::answers::Answer;
use crate::books::{Contender, LimitOrder};
use crate::matching_pair::{self, Orders, Setup};
use crate::measure::Stopwatch;

/// Enough for a 99.99th percentile of ten commands.
pub const FULL: Setup = Setup { orders_per_side: 1_000, iterations: 1, pairs_per_iteration: 100_000 };
/// For tests.
pub const SMALL: Setup = Setup { orders_per_side: 20, iterations: 1, pairs_per_iteration: 30 };

const PEER: &str = "bench/peers/exchange-core/run.sh";
const PEER_WARMUPS: &str = "3";

/// Latencies of the peer's crossing command, in nanoseconds, as its driver reports them.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Percentiles {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// 99.99 %.
    pub p9999: f64,
    /// The greatest.
    pub max: f64,
}

/// The result.
#[derive(Debug)]
pub struct Outcome {
    /// The peer's.
    pub peer: Percentiles,
    /// Its version.
    pub peer_version: String,
    /// Cost of its timer, which is subtracted.
    pub peer_timer_ns: f64,
    /// Ours, pair by pair, by contender of [`matching_pair::CONTENDERS`].
    pub latencies_ns: Vec<(Contender, Vec<f64>)>,
}

/// The last line that the peer's driver prints.
#[derive(Deserialize)]
struct DriverReport {
    version: String,
    check: String,
    timer_ns: f64,
    lowest_of_rounds_less_timer: ByOperation,
}

#[derive(Deserialize)]
struct ByOperation {
    ioc: Percentiles,
}

/// Runs ours, then the peer on the same stream, whose file is kept in `folder`.
pub fn run(setup: &Setup, seed: u64, stopwatch: &Stopwatch, repository: &Path, folder: &Path) -> anyhow::Result<Outcome> {
    let orders = matching_pair::orders_of(setup, seed, 0);
    let (latencies_ns, answer) = matching_pair::every_pair(&orders, stopwatch)?;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let stream = folder.join("fig-4.3.bin");
    std::fs::write(&stream, records(&orders)).with_context(|| format!("writing {}: is there room?", stream.display()))?;
    let expected = folder.join("fig-4.3.bin.expect");
    std::fs::write(&expected, expectation(&answer)).with_context(|| format!("writing {}: is there room?", expected.display()))?;
    let report = ask_peer(repository, &stream)?;
    Ok(Outcome {
        peer: report.lowest_of_rounds_less_timer.ioc,
        peer_version: report.version,
        peer_timer_ns: report.timer_ns,
        latencies_ns,
    })
}

fn ask_peer(repository: &Path, stream: &Path) -> anyhow::Result<DriverReport> {
    let output = Command::new(repository.join(PEER))
        .arg("book-latency")
        .arg(stream)
        .args(["--rounds", "1", "--warmup", PEER_WARMUPS])
        .output()
        .with_context(|| format!("starting {PEER}: is it there and executable?"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{PEER} failed: {}{printed}", String::from_utf8_lossy(&output.stderr));
    let last = printed.lines().last().unwrap_or_default();
    let report: DriverReport =
        serde_json::from_str(last).with_context(|| format!("{PEER} ended with a line of an unknown shape: {last}"))?;
    ensure!(report.check == "equal", "exchange-core's answers were not compared with ours ({}): no time counts", report.check);
    Ok(report)
}

/// The stream in the driver's format: 32 bytes a command, little endian.
#[must_use]
pub fn records(orders: &Orders) -> Vec<u8> {
    const GOOD_TILL_CANCEL: u8 = 0;
    const IMMEDIATE_OR_CANCEL: u8 = 1;
    let mut bytes = Vec::new();
    let mut push = |op: u8, order: &LimitOrder| {
        let side = match order.side {
            Side::Sell => 0,
            Side::Buy => 1,
        };
        bytes.extend([op, side, 0, 0]);
        bytes.extend(u32::try_from(order.id).expect("an experiment has far fewer orders").to_le_bytes());
        bytes.extend(order.id.to_le_bytes());
        bytes.extend(order.price.get().to_le_bytes());
        bytes.extend(order.size.get().to_le_bytes());
    };
    for order in &orders.resting {
        push(GOOD_TILL_CANCEL, order);
    }
    for [bid, ask] in &orders.pairs {
        push(GOOD_TILL_CANCEL, bid);
        push(IMMEDIATE_OR_CANCEL, ask);
    }
    bytes
}

/// What the peer must answer, in the driver's format.
#[must_use]
pub fn expectation(answer: &Answer) -> String {
    // The driver's own start and step: see its README.
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x100_0000_01b3);
    let levels = |side: Side| {
        let mut levels: Vec<(u64, u64)> = Vec::new();
        for order in answer.left.iter().filter(|order| order.side == side) {
            let price = order.price.get().unsigned_abs();
            match levels.last_mut() {
                Some((last, lots)) if *last == price => *lots += order.size.get(),
                _ => levels.push((price, order.size.get())),
            }
        }
        levels
    };
    let (asks, bids) = (levels(Side::Sell), levels(Side::Buy));
    let words = asks.iter().chain(&bids).flat_map(|(price, lots)| [*price, *lots]);
    let hash = words.fold(1_469_598_103_934_665_603, fold);
    let (trades, volume) = (answer.trades.len(), answer.lots_traded());
    format!("trades {trades} volume {volume}\nlevels ask {} bid {}\nl2hash {hash}\n", asks.len(), bids.len())
}
