//! See `walras_testkit::fuzz::clearing::verification`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::clearing::verification(bytes));
