//! See `walras_testkit::fuzz::batch::validation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::batch::validation(bytes));
