//! See `walras_testkit::fuzz::wire::batch_transaction`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::wire::batch_transaction(bytes));
