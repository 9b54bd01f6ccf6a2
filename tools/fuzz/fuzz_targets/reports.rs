//! See `walras_testkit::fuzz::order_entry::reports`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::order_entry::reports(bytes));
