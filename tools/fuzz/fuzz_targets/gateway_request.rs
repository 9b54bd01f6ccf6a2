//! See `walras_testkit::fuzz::gateway::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::gateway::request(bytes));
