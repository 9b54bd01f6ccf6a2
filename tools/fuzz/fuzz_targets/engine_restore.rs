//! See `walras_testkit::fuzz::engine::restore`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::engine::restore(bytes));
