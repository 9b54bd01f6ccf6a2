//! See `walras_testkit::fuzz::wire::block_proposal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::wire::block_proposal(bytes));
