//! One machine and no consensus: gateway, sequencer, keeper of the log, snapshots, engine and market data of a node that stands alone.
//! Commands are signed one by one, and a retry is another command.

pub(crate) mod checks;
mod client;
mod faults;
mod messages;
mod mutation;
mod node;
mod report;
mod traffic;
mod transactions;
mod world;

pub use mutation::Mutation;
pub use report::{Report, Settings};
pub use world::simulate;
