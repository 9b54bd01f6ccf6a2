//! Readers of market history.

use std::io::BufReader;

use walras_market_history::{Format, History, detect_bytes, parse_all, workload_file};

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

/// Workload commands, and the results of a workload.
pub fn workload(bytes: &[u8]) {
    read(Format::Workload, bytes);
    let _ = workload_file::WorkloadResult::parse(&String::from_utf8_lossy(bytes));
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
