//! The book from outside: against a naive model, and as tables that a trader can read.
#![allow(missing_docs, reason = "tests")]

mod differential;
mod driver;
mod fill_check;
mod generate;
mod naive;
mod scenarios;
mod script;
mod tape;
