//! The formats of histories: what was written is read back, made and real files, and bytes that are no history.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arbitrary_bytes;
mod compressed_files;
mod made_markets;
mod real_files;
