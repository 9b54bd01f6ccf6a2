//! See `walras_testkit_edge::requests::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::requests::messages(bytes));
