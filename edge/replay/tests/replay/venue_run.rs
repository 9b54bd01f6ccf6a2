//! Histories run through a venue in this process: files of every format, the answer of a file of commands, and the durable log.

use std::path::{Path, PathBuf};

use walras_log_store::{RealDisk, verify};
use walras_market_history::Format;
use walras_market_history::itch::lobster_to_itch;
use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_market_history::workload::{Churn, ChurnConfig};
use walras_market_history::workload_file::write_commands;
use walras_replay::Options;
use walras_replay::venue::{VenueReport, run};

use crate::find;

/// The report of a run, without what is measured.
fn through_venue(path: &Path, format: Option<Format>) -> VenueReport {
    let options = Options { format, timing_rounds: 0, ..Options::default() };
    let report = run(path, &options, None, &mut |_| {}).unwrap();
    assert_eq!(report.timing, None);
    report
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Ten seconds of a made market, as a LOBSTER file.
fn lobster() -> Vec<u8> {
    let mut text = Vec::new();
    write_lobster(SyntheticConfig { duration_ns: 10_000_000_000, ..SyntheticConfig::default() }, &mut text).unwrap();
    text
}

#[test]
fn a_made_market_trades_at_a_venue_as_lobster_and_as_itch() {
    let dir = tempfile::tempdir().unwrap();
    let text = lobster();
    let mut itch = Vec::new();
    lobster_to_itch(&text[..], &mut itch, *b"MADE    ").unwrap();
    let of_lobster = through_venue(&write(dir.path(), "made_message_1.csv", &text), None);
    let of_itch = through_venue(&write(dir.path(), "made.itch", &itch), Some(Format::Itch));
    assert!(of_lobster.venue.trades > 10 && of_lobster.venue.orders_accepted > 600, "{of_lobster}");
    assert_eq!((of_lobster.venue.rejected, &of_lobster.rejects), (0, &of_itch.rejects), "{of_lobster}");
    assert_eq!(of_lobster.venue, of_itch.venue);
    assert_eq!(of_lobster.conservation, of_itch.conservation);
}

#[test]
fn a_file_of_commands_has_the_expected_answer_at_a_venue() {
    let dir = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(ChurnConfig { target_orders: 100, commands: 20_000, ..ChurnConfig::sweeps(7) });
    let mut file = Vec::new();
    write_commands(&mut churn, &mut file).unwrap();
    let path = write(dir.path(), "churn.bin", &file);
    assert_eq!(through_venue(&path, Some(Format::Workload)).workload.unwrap().as_expected, None);
    let expected = churn.result();
    write(dir.path(), "churn.bin.expect", expected.to_string().as_bytes());
    let report = through_venue(&path, Some(Format::Workload));
    assert_eq!((report.venue.trades, report.venue.rejected), (expected.trades, 0), "{report}");
    assert_eq!(report.workload.unwrap().as_expected, Some(true), "{report}");
    let other = expected.to_string().replacen("trades ", "trades 1", 1);
    write(dir.path(), "churn.bin.expect", other.as_bytes());
    assert_eq!(through_venue(&path, Some(Format::Workload)).workload.unwrap().as_expected, Some(false));
}

#[test]
fn through_a_durable_log_the_state_is_the_same_and_the_log_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "made_message_1.csv", &lobster());
    let (options, folder) = (Options { timing_rounds: 1, ..Options::default() }, dir.path().join("data"));
    let report = run(&path, &options, Some(&folder), &mut |_| {}).unwrap();
    let log = report.log.as_ref().unwrap();
    assert_eq!(log.entries, report.venue.setup_commands + report.venue.commands);
    let found = verify(&RealDisk, &folder.join("log")).unwrap();
    assert!(found.damage.is_none());
    assert_eq!((found.entry_count, found.payload_bytes), (log.entries, log.payload_bytes));
    let again = run(&path, &options, Some(&folder), &mut |_| {}).unwrap_err();
    assert!(again.to_string().contains("name a folder that has none"), "{again}");
    let without = run(&path, &options, None, &mut |_| {}).unwrap();
    assert_eq!((without.state_hash, without.log), (report.state_hash.clone(), None));
    let human = report.to_string();
    assert!(human.contains("durable log") && human.contains("the same state") && human.contains(&report.state_hash), "{human}");
}

#[test]
fn exchange_cores_commands_have_the_expected_answer_at_a_venue() {
    let Some(path) = find("ec-workload/ec_1k_3m.bin.xz") else { return };
    let report = through_venue(&path, None);
    assert_eq!(report.workload.unwrap().as_expected, Some(true), "{report}");
    assert_eq!((report.venue.trades, report.venue.rejected), (123_249, 0), "{report}");
}

#[test]
fn the_bitstamp_orders_go_through_a_venue() {
    let Some(path) = find("bitstamp/orders.csv.xz") else { return };
    let report = through_venue(&path, None);
    assert!(report.venue.orders_accepted > 20_000, "{report}");
}
