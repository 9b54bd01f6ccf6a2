//! See `walras_testkit::fuzz::history::archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::history::archive(bytes));
