//! Whole ITCH 5.0 files: every message type, many instruments, and damage.

use walras_market_history::Format;
use walras_market_history::itch::{ItchBody, ItchHeader, ItchMessage, ItchReader, ItchWriter, MESSAGE_LENGTHS, lobster_to_itch};
use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_replay::{Loaded, Options, Report, instruments, run_loaded};

const INSTRUMENTS: u16 = 3;

fn one_instrument() -> Vec<u8> {
    let (mut text, mut itch) = (Vec::new(), Vec::new());
    write_lobster(SyntheticConfig { duration_ns: 20_000_000_000, ..SyntheticConfig::default() }, &mut text).unwrap();
    lobster_to_itch(&text[..], &mut itch, *b"ONE     ").unwrap();
    itch
}

/// The same flow for each of three instruments, A1 to A3, order by order in turn, with every type that changes no book in between.
fn day() -> Vec<u8> {
    let others: Vec<u8> = MESSAGE_LENGTHS
        .iter()
        .filter(|(kind, _)| !b"SRHAFECXDUPQ".contains(kind))
        .flat_map(|&(kind, length)| {
            let body = std::iter::once(kind).chain([0, 2]).chain(std::iter::repeat_n(b'Y', usize::from(length) - 3));
            length.to_be_bytes().into_iter().chain(body)
        })
        .chain([0, 3, b'z', 1, 2])
        .collect();
    let mut bytes = Vec::new();
    for (at, message) in ItchReader::new(&one_instrument()[..]).enumerate() {
        let ItchMessage { header, body } = message.unwrap();
        let mut writer = ItchWriter::new(Vec::new());
        let instruments = if header.locate == 0 { 0..=0 } else { 1..=INSTRUMENTS };
        for locate in instruments {
            writer.write(&ItchMessage { header: ItchHeader { locate, ..header }, body: renamed(body, locate) }).unwrap();
        }
        bytes.extend(writer.finish().unwrap());
        // Behind the first messages: a beginning with a type that nobody knows is not recognised as ITCH.
        if at % 50 == 49 {
            bytes.extend(&others);
        }
    }
    bytes.extend([0, 0]);
    bytes
}

fn renamed(mut body: ItchBody, locate: u16) -> ItchBody {
    let number = |order_ref: u64| order_ref * 10 + u64::from(locate);
    match &mut body {
        ItchBody::Directory { symbol, .. } => symbol[..4].copy_from_slice(&[b'A', b'0' + locate as u8, b' ', b' ']),
        ItchBody::Add { order_ref, .. }
        | ItchBody::Execute { order_ref, .. }
        | ItchBody::Cancel { order_ref, .. }
        | ItchBody::Delete { order_ref } => *order_ref = number(*order_ref),
        _ => {}
    }
    body
}

fn options(instrument: Option<&str>) -> Options {
    Options { instrument: instrument.map(str::to_owned), timing_rounds: 1, ..Options::default() }
}

fn replay(bytes: &[u8], instrument: Option<&str>) -> Report {
    let options = options(instrument);
    run_loaded(&Loaded::read(bytes, Format::Itch, &options, &mut |_| {}).unwrap(), &options, &mut |_| {}).unwrap()
}

fn refused(bytes: &[u8], instrument: Option<&str>) -> String {
    Loaded::read(bytes, Format::Itch, &options(instrument), &mut |_| {}).unwrap_err().to_string()
}

#[test]
fn each_instrument_of_a_day_is_replayed_as_if_it_were_alone() {
    let (alone, day) = (replay(&one_instrument(), None), day());
    let executions = alone.executions.unwrap();
    assert!(executions.recorded > 20 && executions.at_head == executions.recorded);
    for (symbol, number) in [("A1", "1"), ("A2", "2"), ("A3", "3")] {
        for wanted in [symbol, number] {
            let report = replay(&day, Some(wanted));
            assert_eq!((report.symbol.as_deref(), report.executions), (Some(symbol), alone.executions), "{wanted}");
            assert_eq!(report.book.level_hash, alone.book.level_hash);
        }
    }
}

#[test]
fn a_file_of_several_instruments_asks_which() {
    let day = day();
    let error = refused(&day, None);
    assert!(error.contains("holds 3 instruments") && error.contains("A1 (") && error.contains("--instrument"), "{error}");
    let error = refused(&day, Some("AAPL"));
    assert!(error.contains("instrument AAPL has no message in the file") && error.contains("A3 ("), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day");
    std::fs::write(&path, &day).unwrap();
    let listed = instruments(&path, &Options { format: Some(Format::Itch), ..Options::default() }, &mut |_| {}).unwrap();
    let names: Vec<_> = listed.iter().map(|one| (one.instrument, one.symbol.as_deref().unwrap())).collect();
    assert_eq!(names, [(1, "A1"), (2, "A2"), (3, "A3")]);
    assert!(listed.iter().all(|one| one.messages == listed[0].messages && one.messages > 100));
}

#[test]
fn damage_is_refused_by_its_place_with_advice() {
    let day = day();
    let cut = &day[..day.len() / 2 - 1];
    let error = refused(cut, Some("A1"));
    assert!(error.contains("byte ") && error.contains("fetch it again"), "{error}");
    let mut wrong = day.clone();
    wrong[1] += 1;
    let error = refused(&wrong, Some("A1"));
    assert!(error.contains("byte 0") && error.contains("not framed as the public day files"), "{error}");
}
