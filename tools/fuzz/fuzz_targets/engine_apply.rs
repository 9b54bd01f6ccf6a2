//! See `walras_testkit::fuzz::engine::apply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::engine::apply(bytes));
