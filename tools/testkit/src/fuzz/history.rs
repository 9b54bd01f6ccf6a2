//! Readers of market history.

use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use walras_market_history::workload_file::WorkloadResult;
use walras_market_history::{Format, History, decompressed, detect_bytes, parse_all};

/// LOBSTER message files.
pub fn lobster(bytes: &[u8]) {
    read(Format::Lobster, bytes);
}

/// NASDAQ ITCH 5.0.
pub fn itch(bytes: &[u8]) {
    read(Format::Itch, bytes);
}

/// The Shanghai exchange's text log.
pub fn sse(bytes: &[u8]) {
    read(Format::Sse, bytes);
}

/// Bitstamp's websocket log.
pub fn bitstamp_log(bytes: &[u8]) {
    read(Format::BitstampLog, bytes);
}

/// Bitstamp's order list.
pub fn bitstamp_orders(bytes: &[u8]) {
    read(Format::BitstampOrders, bytes);
}

/// Workload commands.
pub fn workload(bytes: &[u8]) {
    read(Format::Workload, bytes);
}

/// What a right book makes of a workload, as text.
pub fn expect(bytes: &[u8]) {
    match WorkloadResult::parse(&String::from_utf8_lossy(bytes)) {
        Ok(result) => assert_eq!(WorkloadResult::parse(&result.to_string()).ok(), Some(result), "what is written is read"),
        Err(error) => check_advice(&error.to_string()),
    }
}

/// Most bytes that are taken out of an archive: a small one can hold gigabytes.
const UNPACKED_BYTES_MAX: u64 = 1 << 20;

/// Files as they are, xz, gzip and zip: however they are read they hold the same, or end in an error that says what to do.
pub fn archive(bytes: &[u8]) {
    let whole = unpack(bytes, 1 << 16);
    let in_pieces = unpack(bytes, 13);
    match (&whole, &in_pieces) {
        (Ok(whole), Ok(in_pieces)) => assert!(whole == in_pieces, "what is unpacked depends on how it is read"),
        (Err(whole), Err(in_pieces)) => assert_eq!(whole, in_pieces),
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("unpacked once and once not: {error}"),
    }
}

/// What is in the bytes, taken out so many at a time, or how the error begins that somebody is told.
fn unpack(bytes: &[u8], piece_bytes: usize) -> Result<Vec<u8>, String> {
    let source = match decompressed(Path::new("FILE"), Cursor::new(bytes.to_vec())) {
        Ok(source) => source,
        Err(error) => {
            check_advice(&error.to_string());
            return Err(error.to_string());
        }
    };
    let (mut source, mut unpacked, mut piece) = (source.take(UNPACKED_BYTES_MAX), Vec::new(), vec![0; piece_bytes]);
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(unpacked),
            Ok(count) => unpacked.extend_from_slice(&piece[..count]),
            // A driver that reads it meets the error where its next message would be.
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn check_advice(text: &str) {
    assert!(text.contains("; "), "an error without advice: {text}");
}

/// Goes on behind errors, as a driver that counts and skips them would. How the bytes arrive does not matter.
fn read(format: Format, bytes: &[u8]) {
    let whole = read_to_the_end(format, bytes, 1 << 16);
    assert_eq!(read_to_the_end(format, bytes, 7), whole, "what is read depends on how the bytes arrive");
    let parsed = parse_all(format, bytes);
    assert_eq!(parsed.is_ok(), whole.1 == 0, "the two ways to read disagree: {parsed:?}, then {whole:?} events and errors");
    let _ = detect_bytes(bytes);
}

fn read_to_the_end(format: Format, bytes: &[u8], buffer_bytes: usize) -> (u64, u64) {
    let mut history = History::new(BufReader::with_capacity(buffer_bytes, bytes), format);
    let (mut events, mut errors) = (0, 0);
    for event in history.by_ref() {
        match event {
            Ok(event) => {
                events += 1;
                assert!(event.index > 0, "events are numbered from one");
            }
            Err(error) => {
                errors += 1;
                let text = error.to_string();
                assert!(
                    (text.contains("line ") || text.contains("byte ")) && text.contains("; "),
                    "an error without advice: {text}"
                );
            }
        }
        assert!(events + errors <= bytes.len() as u64, "more messages than bytes");
    }
    assert!(history.next().is_none(), "the end is not the end");
    (events, errors)
}
