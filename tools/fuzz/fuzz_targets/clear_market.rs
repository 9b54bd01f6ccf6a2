//! See `walras_testkit_edge::batches::market_of_any_offers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit_edge::batches::market_of_any_offers(bytes));
