//! See `walras_testkit::fuzz::batch::proofs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::batch::proofs(bytes));
