//! What a venue made of a history, for programs and for people.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};
use std::path::PathBuf;

use walras_types::RejectReason;

use crate::plan::{LeftOut, MessageCounts};
use crate::report::WorkloadReport;
use crate::text::{because, grouped, heard, line, workload};

/// What a venue made of a history. Every count is of things that happened in the run; nothing is estimated.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct VenueReport {
    /// The file.
    pub file: Option<PathBuf>,
    /// Its format.
    pub format: &'static str,
    /// Which of its instruments.
    pub instrument: u32,
    /// Its name, where the file or its name says it.
    pub symbol: Option<String>,
    /// Messages in the file, of all instruments and kinds.
    pub file_messages: u64,
    /// Messages that stood in the file behind one that happened later.
    pub out_of_order: u64,
    /// Messages of the instrument by kind.
    pub messages: MessageCounts,
    /// Messages that make no command, and why.
    pub left_out: LeftOut,
    /// Orders presumed deleted beyond the levels that the file shows; each that stands at the venue is cancelled.
    pub orders_presumed_deleted: u64,
    /// Orders set aside until the file names them next, because two of its lines contradict each other.
    pub orders_set_aside: u64,
    /// Price units of the file in a tick.
    pub units_per_tick: i64,
    /// Price units of the file in one unit of currency.
    pub price_scale: u64,
    /// What the venue did.
    pub venue: VenueCounts,
    /// Auctions, in order.
    pub uncrosses: Vec<UncrossReport>,
    /// Refused commands by the reason's name. A venue that is run without corrections refuses what names an order that it traded
    /// otherwise than the record.
    pub rejects: BTreeMap<&'static str, u64>,
    /// The answer to a file of commands.
    pub workload: Option<WorkloadReport>,
    /// Where every unit of each asset is at the end.
    pub conservation: Vec<AssetReport>,
    /// Hash of the engine's state at the end, in hexadecimal. The same history and build options give the same on every machine.
    pub state_hash: String,
    /// The engine alone, timed; absent when no round was asked for.
    pub timing: Option<VenueTiming>,
    /// The same through a durable log.
    pub log: Option<LogReport>,
}

/// What the venue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct VenueCounts {
    /// Accounts that the history's orders are spread over.
    pub accounts: u32,
    /// Commands that set the venue up.
    pub setup_commands: u64,
    /// Commands of the history.
    pub commands: u64,
    /// Those refused.
    pub rejected: u64,
    /// Orders taken.
    pub orders_accepted: u64,
    /// Trades, those of auctions included.
    pub trades: u64,
    /// Lots traded.
    pub volume_lots: u64,
    /// Orders that stand in the book at the end and are displayed.
    pub resting_orders_end: u64,
}

/// An auction of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UncrossReport {
    /// At what price; `None` when no bid reached an offer.
    pub price_ticks: Option<i64>,
    /// Size in lots.
    pub lots: u64,
}

/// Where every unit of an asset is, in its smallest units. What was issued is what accounts have and what was collected in fees: a
/// run in which that is not so does not end in a report.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct AssetReport {
    /// Its name.
    pub symbol: String,
    /// Issued and not withdrawn.
    pub supply_units: u64,
    /// Free, over all accounts.
    pub available_units: u64,
    /// Set aside for open orders, over all accounts.
    pub reserved_units: u64,
    /// Collected in fees.
    pub fees_units: u64,
}

/// The engine with accounts, risk and ledger, its input in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct VenueTiming {
    /// Rounds run.
    pub rounds: u32,
    /// Messages that the commands stand for: an aggressor counts as the messages that reported it.
    pub messages: u64,
    /// Commands applied in each round.
    pub commands: u64,
    /// Median over the rounds of a round's time.
    pub total_ns: u64,
    /// That per message.
    pub ns_per_message: f64,
    /// That per command.
    pub ns_per_command: f64,
}

/// The same commands once more, each durable in a log before it is applied.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct LogReport {
    /// The data folder; `walras log` and `walras serve` take it.
    pub folder: PathBuf,
    /// Entries, those that set the venue up included.
    pub entries: u64,
    /// Bytes of commands.
    pub payload_bytes: u64,
    /// Groups, each made durable by one sync.
    pub syncs: u64,
    /// Encoding, writing, syncing and applying, one after the other.
    pub total_ns: u64,
    /// Median time of a sync with its write.
    pub sync_p50_ns: u64,
    /// The 99th percentile.
    pub sync_p99_ns: u64,
}

impl VenueReport {
    /// The report as JSON, indented.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys")
    }
}

impl Display for VenueReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.file {
            Some(path) => writeln!(f, "{} ({}) through a venue", path.display(), self.format)?,
            None => writeln!(f, "{} history through a venue", self.format)?,
        }
        if let Some(symbol) = &self.symbol {
            line(f, "instrument", symbol)?;
        }
        heard(self.file_messages, self.out_of_order, &self.messages, &self.left_out, f)?;
        let why = "beyond the file's levels: they would have met what rested; each that stands at the venue is cancelled";
        because(f, "orders presumed deleted", self.orders_presumed_deleted, why)?;
        let why = "two lines contradict each other: the order is cancelled, and enters again when the file names it next";
        because(f, "orders set aside", self.orders_set_aside, why)?;
        let VenueCounts { accounts, setup_commands, commands, rejected, orders_accepted, trades, volume_lots, resting_orders_end } =
            self.venue;
        writeln!(f, "venue")?;
        line(f, "accounts", accounts)?;
        for (name, count) in [
            ("commands to set it up", setup_commands),
            ("commands", commands),
            ("orders taken", orders_accepted),
            ("trades", trades),
            ("volume, lots", volume_lots),
            ("orders resting, at the end", resting_orders_end),
            ("refused", rejected),
        ] {
            line(f, name, grouped(count))?;
        }
        for (reason, count) in &self.rejects {
            let known = RejectReason::ALL.iter().find(|known| known.name() == *reason);
            because(f, &format!("  {reason}"), *count, known.map_or("", |known| known.advice()))?;
        }
        if rejected > 0 {
            writeln!(
                f,
                "      A venue is not set to the record: where it traded otherwise, what names that order afterwards is refused."
            )?;
        }
        for UncrossReport { price_ticks, lots } in &self.uncrosses {
            let at = price_ticks
                .map_or("no bid reaches an offer".to_owned(), |ticks| format!("{} lots at {ticks} ticks", grouped(*lots)));
            line(f, "auction", at)?;
        }
        if let Some(report) = &self.workload {
            workload(report, f)?;
        }
        writeln!(f, "every unit is accounted for")?;
        for AssetReport { symbol, supply_units, available_units, reserved_units, fees_units } in &self.conservation {
            line(f, &format!("{symbol}, issued"), grouped(*supply_units))?;
            line(f, "  free + reserved + fees", [available_units, reserved_units, fees_units].map(|n| grouped(*n)).join(" + "))?;
        }
        line(f, "state hash", &self.state_hash)?;
        if let Some(timing) = &self.timing {
            writeln!(f, "speed")?;
            let VenueTiming { rounds, messages, commands, ns_per_message, ns_per_command, .. } = timing;
            let ns = format!("{ns_per_message:.1} ns a message ({} messages, median of {rounds})", grouped(*messages));
            line(f, "engine with accounts and ledger", ns)?;
            line(f, "", format!("{ns_per_command:.1} ns a command ({} commands)", grouped(*commands)))?;
        }
        if let Some(log) = &self.log {
            let LogReport { folder, entries, payload_bytes, syncs, total_ns, sync_p50_ns, sync_p99_ns } = log;
            writeln!(f, "durable log in {}", folder.display())?;
            line(f, "entries", format!("{} in {} syncs, {} bytes", grouped(*entries), grouped(*syncs), grouped(*payload_bytes)))?;
            let us = |ns: u64| ns as f64 / 1e3;
            line(f, "a sync", format!("median {:.0} us, 99 % within {:.0} us", us(*sync_p50_ns), us(*sync_p99_ns)))?;
            line(f, "written, then applied", format!("{:.1} ns a command", *total_ns as f64 / (*entries).max(1) as f64))?;
            line(f, "read back", "the same state")?;
        }
        Ok(())
    }
}
