//! See `walras_testkit::fuzz::fix::orders`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::fix::orders(bytes));
