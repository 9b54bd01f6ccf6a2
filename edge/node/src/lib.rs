//! The one binary: a replica of a venue, which may be its only one, served over HTTP, WebSocket and binary order entry, with its command
//! line.
//!
//! *Deliberately absent*: TLS for participants (a proxy in front of it does that), API keys in the log (each node keeps its own), anything
//! that decides what a command means (that is `core/engine`'s) or in which order commands come (`protocol/sequencer`'s).
//!
//! *Invariants*
//! - A command is answered, and anything that came of it seen by anybody, only once it is decided: durable in the log
//!   of a majority of the replicas.
//! - Every queue is bounded. A full one refuses or drops the slow reader; it never grows and never stops the market.
//! - Whatever a client sends ends in an answer with a number and an advice.
//!
//! *Start reading* at [`runtime`], then [`cli`]. HTTP and WebSocket are in `edge/api`.

pub mod cli;
pub mod node;
mod places;
pub mod program;
pub mod runtime;
