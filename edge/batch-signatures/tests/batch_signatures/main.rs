//! Signatures of transactions, and the vectors with which clients in other languages are tested.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod python_vector;
mod typescript_vector;
mod vectors;
mod verify;
