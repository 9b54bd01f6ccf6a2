//! Order-entry sessions: both sides over a stream that breaks, a venue that applies each command once, and planted bugs.

mod copied;
mod document;
mod model;
mod one_connection;
mod reports;
mod sealed;
mod setup;
mod world;
