//! See `walras_testkit::fuzz::feed::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::feed::messages(bytes));
