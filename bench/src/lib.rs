//! Measurements of Walras and its peers, each with a checked answer: `make bench NAME=order-book|...|all`.
//!
//! *Deliberately absent*: assertions on timings. A figure is printed and recorded with the machine, the load and the commit it was
//! measured on; whether it is good is for a person (`docs/performance.md` says what to compare it with).
//!
//! *Invariants*
//! - A wrong answer fails the run, and then no figure is recorded. Answers come from elsewhere than the book under test: from the
//!   stream's own `.expect`, from the plain book in [`plain`], from the peer.
//! - What is compared runs interleaved, on the same commands, in the same call; a figure is the median over the rounds.
//! - Ours runs as in production: commands validated, names looked up as (owner, client order id), self-trades prevented, events
//!   written out.
//!
//! *Start reading* at [`order_book`], then [`driver`]. A new bench makes a [`report::Report`], fills it and writes it.
//!
//! *Sources*: the streams follow exchange-core's own test generator, see [`walras_market_history::workload`].

pub mod access;
pub mod batch;
pub mod batch_peers;
pub mod batch_state;
pub mod beside_blocks;
pub mod blocks;
pub mod clearing;
pub mod clock;
pub mod cold;
pub mod document;
pub mod driver;
pub mod engine;
pub mod fair_access;
pub mod instructions;
pub mod latency;
pub mod memory;
pub mod order_book;
pub mod overlay;
pub mod peer;
pub mod pipeline;
pub mod plain;
pub mod product;
pub mod promises;
pub mod records;
pub mod recovery;
pub mod replay;
pub mod replay_files;
pub mod replication;
pub mod report;
pub mod sharing;
pub mod siege;
pub mod signed_flow;
pub mod simulation;
pub mod standing;
pub mod statistics;
pub mod streams;
pub mod venue;
