//! Histories of every format, through order books and through a venue.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod itch_files;
mod level_files;
mod made_histories;
mod real_files;
mod small_histories;
mod venue;
mod venue_run;
