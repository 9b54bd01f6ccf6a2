//! See `walras_testkit::fuzz::wire::event`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::wire::event(bytes));
