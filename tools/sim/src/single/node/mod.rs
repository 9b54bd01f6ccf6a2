//! The node: the product's state machines, and in place of its threads and sockets a few timers.

mod keeper;
mod process;
mod start;

pub(crate) use process::{Effect, Moment, NodeTimer, Process, Released};
pub(crate) use start::{StartFrom, Started, log_dir, log_options};
