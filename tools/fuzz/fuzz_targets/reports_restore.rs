//! See `walras_testkit::fuzz::order_entry::reports_restore`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::order_entry::reports_restore(bytes));
