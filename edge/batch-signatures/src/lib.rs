//! Ed25519 signatures of batch transactions: making them, and checking very many of them at once.
//!
//! *Which signatures hold* is part of what replicas agree on, so it is exact here. Of a key `A`, a signature `(R, S)` and a message
//! `M`, all as bytes, with the base point `B`, the group's order `L` and `k = SHA-512(R | A | M) mod L`, it holds if and only if
//! 1. `A` and `R` are the one encoding of a point each: `y < p`, and no sign where `x = 0`;
//! 2. `8 A` is not zero: nobody can sign for the key of a small order without knowing it;
//! 3. `S < L`, so that nobody but its maker can change a signature that holds into another one;
//! 4. `8 (S B - R - k A) = 0`: the *cofactored* equation of RFC 8032, section 5.1.7.
//!
//! The last is why a sum of many signatures and each of them alone get the same answer: without the factor 8, a signature with a
//! part of small order in `R` or `A` holds in some sums and not in others, and its maker chooses which replica accepts it. Every
//! signature made as RFC 8032 says holds. One that holds here and not by the equation without the factor was made so on purpose, by
//! who has the key.
//!
//! *Deliberately absent*: who may sign for what (the keys are the caller's), replay (sequence numbers are the core's), constant
//! time in verification (all of it is public; signing is constant-time, by the library).
//!
//! *Invariants*, each a test
//! - [`Verifier::verify`] says of each item what [`Verifier::verify_one`] says of it alone, for any number of threads and whatever
//!   the other items are; but for a chance of 2^-127 per sum, which nobody can better by choosing signatures: the coefficients come
//!   of a secret and of everything that is summed.
//! - However many signatures are bad, and wherever, at most [`SEARCH_SUMS_MAX`] times as many as there are go through the sums that
//!   look for them, before the rest are checked one by one.
//!
//! *Start reading* at [`Verifier`], then [`KeyCache`]. Sources: Bernstein, Duif, Lange, Schwabe, Yang, "High-speed high-security
//! signatures" (2011), section 5 (batches); Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs" (2020), on the equation; the
//! sums are Pippenger's method, of `curve25519-dalek`.

mod chunk;
mod key;
mod sign;
mod verify;

pub use chunk::{CHUNK_MAX, SEARCH_SUMS_MAX};
pub use key::{KeyCache, KeyError, POINTS_MAX, check_key};
pub use sign::SigningKey;
pub use verify::{SignedItem, Verifier};
