//! See `walras_testkit::fuzz::log::recovery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::log::recovery(bytes));
