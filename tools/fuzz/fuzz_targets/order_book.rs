//! See `walras_testkit::fuzz::books::order_book`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::books::order_book(bytes));
