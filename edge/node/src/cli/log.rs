//! Looking into a log.

use std::io::{BufWriter, Write};

use serde_json::json;
use walras_log_store::{LogError, RealDisk, open_read_only, verify};
use walras_sequencer::decode_entry;
use walras_types::LogIndex;

use super::args::LogCommand;
use super::{CliError, print};
use crate::json::log_entry;
use crate::progress::Slow;

pub(super) fn run(command: &LogCommand, is_json: bool) -> Result<(), CliError> {
    match command {
        LogCommand::Dump { dir, from, limit } => dump(&dir.join("log"), from.map(LogIndex), limit.unwrap_or(u64::MAX), is_json),
        LogCommand::Verify { dir } => check(&dir.join("log"), is_json),
    }
}

fn dump(dir: &std::path::Path, from: Option<LogIndex>, limit: u64, is_json: bool) -> Result<(), CliError> {
    let (mut reader, _lock) = open_read_only(&RealDisk, dir, from)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut left = limit;
    while left > 0 {
        let Some(stored) = reader.next()? else { break };
        left -= 1;
        let line = match decode_entry(stored.index, stored.payload) {
            Ok(entry) if is_json => log_entry::entry(&entry).to_string(),
            Ok(entry) => format!("{} {} {:?}", entry.log_index, entry.time, entry.command),
            Err(e) => return Err(CliError::Damaged(format!("entry {}: {e}", stored.index))),
        };
        match writeln!(out, "{line}") {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(|source| CliError::Io { what: "could not print".into(), source })?,
        }
    }
    out.flush().map_err(|source| CliError::Io { what: "could not print".into(), source })
}

/// Checks every byte, then that every entry is a command and that times never go back.
fn check(dir: &std::path::Path, is_json: bool) -> Result<(), CliError> {
    let report = verify(&RealDisk, dir)?;
    if let Some(damage) = &report.damage {
        return Err(CliError::Damaged(format!("the log in {} is damaged: {damage}", dir.display())));
    }
    if report.entry_count > 0 {
        decode_all(dir, report.entry_count)?;
    }
    let (first, last) = (report.first_index.map_or(0, |i| i.0), report.last_index.map_or(0, |i| i.0));
    let torn = report.torn_tail.as_ref().map(ToString::to_string);
    if is_json {
        let json = json!({
            "sound": true,
            "first_index": first.to_string(),
            "last_index": last.to_string(),
            "entries": report.entry_count,
            "payload_bytes": report.payload_bytes,
            "segments": report.segments.len(),
            "torn_tail": torn,
        });
        return print(&format!("{json}\n"));
    }
    let mut text = format!(
        "sound: {} entries ({first} to {last}), {} bytes of commands in {} segments\n",
        report.entry_count,
        report.payload_bytes,
        report.segments.len()
    );
    if let Some(torn) = torn {
        text += &format!("it ends in {torn}; the next start cuts it\n");
    }
    print(&text)
}

fn decode_all(dir: &std::path::Path, count: u64) -> Result<(), CliError> {
    let damaged = |index: LogIndex, what: String| CliError::Damaged(format!("entry {index}: {what}"));
    let (mut reader, _lock) = open_read_only(&RealDisk, dir, None)?;
    let mut progress = Slow::new("checking the log", Some(count));
    let (mut done, mut time) = (0, walras_types::TimeNs(0));
    while let Some(stored) = reader.next().map_err(|e: LogError| e)? {
        let entry = decode_entry(stored.index, stored.payload).map_err(|e| damaged(stored.index, e.to_string()))?;
        if entry.time < time {
            return Err(damaged(stored.index, format!("its time, {}, is before {time}", entry.time)));
        }
        time = entry.time;
        done += 1;
        progress.set(done);
    }
    progress.finish();
    Ok(())
}
