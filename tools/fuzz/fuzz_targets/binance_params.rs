//! See `walras_testkit_edge::dialect::parameters`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::dialect::parameters(bytes));
