//! See `walras_testkit::fuzz::replicas::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| walras_testkit::fuzz::replicas::messages(bytes));
