//! See `walras_testkit_edge::disk::snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::disk::snapshot(bytes));
