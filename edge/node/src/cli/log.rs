//! Looking into a log.

use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::json;
use walras_api::json::log_entry;
use walras_log_reader::{REPLICA, decided_entries, is_replica};
use walras_log_store::{LogError, RealDisk, open_whole, verify};
use walras_sequencer::decode_entry;
use walras_terminal::progress::{Slow, while_waiting};
use walras_types::LogIndex;

use super::args::LogCommand;
use super::log_text::LogText;
use super::{CliError, Output, audit, log_import, print};

pub(super) fn run(command: &LogCommand, is_json: bool) -> Result<(), CliError> {
    match command {
        LogCommand::Dump { dir, from, limit } => dump(dir, from.map(LogIndex), limit.unwrap_or(u64::MAX), is_json),
        LogCommand::Verify { dir } if is_replica(dir) => check_replica(&dir.join(REPLICA), is_json),
        LogCommand::Verify { dir } => check(&dir.join("log"), is_json),
        LogCommand::Audit { dir } => show(audit::run(dir)?, is_json),
        LogCommand::Import { dir, config } => show(log_import::run(dir, config.as_deref())?, is_json),
    }
}

fn show(Output { human, json }: Output, is_json: bool) -> Result<(), CliError> {
    print(&if is_json { format!("{json}\n") } else { human })
}

fn dump(dir: &Path, from: Option<LogIndex>, limit: u64, is_json: bool) -> Result<(), CliError> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut left = limit;
    let mut text = LogText::default();
    let mut print = |log_index: LogIndex, bytes: &[u8]| {
        let is_shown = from.is_none_or(|from| log_index >= from);
        let line = match decode_entry(log_index, bytes) {
            // What is asked for may need the definitions before it.
            Ok(entry) if !is_shown => {
                text.pass(&entry);
                return Ok(true);
            }
            Ok(entry) if is_json => log_entry::entry(&entry).to_string(),
            Ok(entry) => text.line(&entry),
            Err(e) => return Err(CliError::Damaged(format!("entry {log_index}: {e}"))),
        };
        left = left.saturating_sub(1);
        match writeln!(out, "{line}") {
            // The reader has seen enough.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| left > 0).map_err(|source| CliError::Io { what: "could not print".into(), source }),
        }
    };
    if limit > 0 && is_replica(dir) {
        decided_entries(&dir.join(REPLICA), print)?;
    } else if limit > 0 {
        let begin = from.filter(|_| is_json);
        let (mut reader, _lock) = while_waiting("opening the log", || open_whole(&RealDisk, &dir.join("log"), begin))?;
        while let Some(stored) = reader.next()? {
            if !print(stored.index, stored.payload)? {
                break;
            }
        }
    }
    out.flush().map_err(|source| CliError::Io { what: "could not print".into(), source })
}

/// Checks every byte of a replica's log, and that what it knew to be decided are commands whose times never go back.
fn check_replica(dir: &Path, is_json: bool) -> Result<(), CliError> {
    let report = verify(&RealDisk, &dir.join("log"))?;
    if let Some(damage) = &report.damage {
        return Err(CliError::Damaged(format!("the log in {} is damaged: {damage}", dir.display())));
    }
    let (mut first, mut last, mut count, mut time) = (0, 0, 0_u64, walras_types::TimeNs(0));
    decided_entries(dir, |log_index, bytes| {
        let damaged = |what: String| CliError::Damaged(format!("entry {log_index}: {what}"));
        let entry = decode_entry(log_index, bytes).map_err(|e| damaged(e.to_string()))?;
        if entry.time < time {
            return Err(damaged(format!("its time, {}, is before {time}", entry.time)));
        }
        time = entry.time;
        if count == 0 {
            first = log_index.0;
        }
        (last, count) = (log_index.0, count + 1);
        Ok(true)
    })?;
    let torn = report.torn_tail.as_ref().map(ToString::to_string);
    if is_json {
        let json = json!({
            "sound": true, "first_index": first.to_string(), "last_index": last.to_string(), "entries": count,
            "payload_bytes": report.payload_bytes, "segments": report.segments.len(), "torn_tail": torn,
        });
        return print(&format!("{json}\n"));
    }
    let torn = torn.map_or(String::new(), |torn| {
        format!("it ends in {torn}; the next start cuts it, if the venue is not writing it just now\n")
    });
    print(&format!(
        "sound: {count} decided entries ({first} to {last}), {} bytes of records in {} segments\n{torn}",
        report.payload_bytes,
        report.segments.len()
    ))
}

/// Checks every byte, then that every entry is a command and that times never go back.
fn check(dir: &Path, is_json: bool) -> Result<(), CliError> {
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
        text += &format!("it ends in {torn}; the next start cuts it, if the venue is not writing it just now\n");
    }
    print(&text)
}

fn decode_all(dir: &Path, count: u64) -> Result<(), CliError> {
    let damaged = |index: LogIndex, what: String| CliError::Damaged(format!("entry {index}: {what}"));
    let (mut reader, _lock) = open_whole(&RealDisk, dir, None)?;
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
