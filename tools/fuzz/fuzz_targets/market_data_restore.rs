//! See `walras_testkit::fuzz::engine::market_data_restore`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::engine::market_data_restore(bytes));
