//! What a measurement records in addition to its numbers: the machine, the load and the commit it was made on, its files, its
//! plots; and the draws from which what is measured is made. Benches and experiments record with it.
//!
//! *Deliberately absent*: what is measured and how it is summarised; each bench and each experiment knows that itself.
//!
//! *Invariants*
//! - What a machine does not tell is recorded as unknown; it never fails a measurement that is made.
//! - No file of figures is written by a debug build.
//!
//! *Start reading* at [`origin`], then [`machine`]; [`peer`], [`plot`] and [`draw`] are of their own.

pub mod draw;
pub mod machine;
pub mod origin;
pub mod peer;
pub mod plot;
