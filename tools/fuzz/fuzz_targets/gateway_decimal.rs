//! See `walras_testkit::fuzz::gateway::decimal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::gateway::decimal(bytes));
