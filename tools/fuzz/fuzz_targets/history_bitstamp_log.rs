//! See `walras_testkit::fuzz::history::bitstamp_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::history::bitstamp_log(bytes));
