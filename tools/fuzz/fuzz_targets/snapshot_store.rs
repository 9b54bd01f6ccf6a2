//! See `walras_testkit::fuzz::log::snapshot_store`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::log::snapshot_store(bytes));
