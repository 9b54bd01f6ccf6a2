//! See `walras_testkit::fuzz::replicas::log_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::replicas::log_entry(bytes));
