//! JSON: what is read from requests and what is answered. Quantities are decimal text, exact; it stops here.

pub mod account_fee;
pub mod batches;
pub mod book_orders;
pub mod brackets;
pub mod commands;
pub mod log_entry;
pub mod names;
pub mod once;
pub mod outcome;
pub mod pools;
pub mod reports;
pub mod requests;
pub mod strict;
pub mod views;
