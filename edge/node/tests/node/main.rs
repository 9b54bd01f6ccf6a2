//! The node from outside: a real server on loopback, spoken to as its clients do.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

mod api;
mod auctions;
mod audit;
mod bad_input;
mod batches;
mod bench;
mod bots;
mod cli;
mod clock;
mod crowds;
mod demo;
mod demo_process;
mod descriptors;
mod examples;
mod feed;
mod history;
mod history_kill;
mod instruments;
mod log_history;
mod log_import;
mod once;
mod operator_keys;
mod page;
mod reads;
mod recovery;
mod refill;
mod relay_process;
mod replica;
mod replica_clocks;
mod schema;
mod shards;
mod signed_once;
mod storage;
mod support;
mod websocket;
