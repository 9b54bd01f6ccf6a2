//! See `walras_testkit_edge::settings::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::settings::config(bytes));
