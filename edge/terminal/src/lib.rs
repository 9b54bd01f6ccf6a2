//! What a person at a terminal sees: tables of JSON answers, and signs of life from work that takes long.
//!
//! *Deliberately absent*: arguments and commands, which are `edge/node`'s.
//!
//! *Invariant*: what takes less than two seconds shows nothing.

mod printable;
pub mod progress;
pub mod table;

pub use printable::{escaped, printable};
