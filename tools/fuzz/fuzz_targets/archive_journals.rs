//! See `walras_testkit_edge::archive::journals`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::archive::journals(bytes));
