//! A model of exactly-once: sessions, their windows and the sequencer over Raft, small enough for an exhaustive check.
//!
//! It checks the design in `docs/adr/0006-raft-on-our-log.md`, not the code; the simulator runs the code on random paths. The model
//! checker explores every path within bounds: clients that retry at any time, three replicas, changes of leader, crashes,
//! snapshots, and lost, late and duplicated messages. `docs/model.md` says what is left out and why, and what was found.
//!
//! What it deliberately lacks: time (a timeout is a step that may come at any moment), accounts (a client is a session), opening
//! and closing sessions, changes of members, votes and acknowledgements as messages of their own.
//!
//! Invariants: the properties in [`properties`]. For each, `tests/model/planted.rs` has a planted [`Bug`] that breaks it, or the reason
//! that there is none. Replicas are interchangeable, so a state is stored once for all their permutations.
//!
//! Start reading at [`replica`], then [`venue`] from `Step` on, then [`properties`].
//!
//! Sources: D. Ongaro, "Consensus: Bridging Theory and Practice" (2014), chapters 3 and 6.3; the checker is `stateright`.

pub mod properties;
pub mod replica;
mod settings;
mod trace;
pub mod venue;

pub use settings::{Bug, PACK_MAX, REPLICAS, Settings};
pub use trace::story;
