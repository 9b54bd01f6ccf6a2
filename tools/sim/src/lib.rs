//! Whole venues in one thread, each from one seed: [`cluster`], of one to five replicas, and [`shards`], several of those with
//! transfers between them. A venue on one machine is a cluster of one.
//!
//! State machines, logs and snapshots are the product's, unchanged; the disks are [`walras_log_store::sim_disk::SimDisk`]s; what
//! stands in for threads, sockets and links is as thin as it can be. First a *safety phase*: power failures and kills at any
//! operation of a disk, also during recovery and while a snapshot is received, failed writes and syncs, full disks and disks that
//! are gone, slow disks and processes that stand still, clocks that jump and drift, networks that lose, delay, double, overtake
//! and part, one way or both, connections and transfers that are cut, bytes that lie in sockets; in the cluster also handovers,
//! changes of members, bits of files that turn while a replica is down, second processes on copies of a replica's folder, relays
//! of market data that die, stand still, lie and begin with nothing, and replicas that are lost for good, with another one in
//! their place under a new id: with their disks, or, where a majority's memory counts, because they did not stop in good order.
//! Then a *healing phase*: no more faults, and everything that was asked must be answered within a bounded simulated time. How
//! dense all this is differs from seed to seed of a cluster: a *storm*, in which several faults strike each second, or *calm*, in
//! which one strikes every few seconds and leaders last (`cluster/tempo.rs`).
//!
//! Whatever happens, the checkers hold after every step (`cluster/checks/mod.rs` and `shards/checks.rs` list them;
//! `docs/invariants.md` says which of them holds the venue to which of its promises). That they can fail is shown by planted faults
//! ([`cluster::Mutation`], [`shards::Mutation`]), each of which has to be found within some seeds by the checkers that are there
//! for it ([`cluster::planted`], [`shards::planted`]).
//!
//! *What a simulated replica shares with the node*: the replica itself (`walras-replica`) with all below it: order entry, fair
//! access, the sequencer with its consensus and batches, the engine, market data, reports, requests that wait, the order of steps;
//! FIX, with a client of its own (`cluster/fix`); the replica's log, its snapshots and what opens them after a crash
//! (`walras-replica-log` on `walras-log-store`); the client's end of order entry and authorisation (`walras-gateway`); the sender,
//! relays, leaf gateways' outlets and readers of the binary feed (`walras-feed`, `walras-relay`). *What it does not*: the node's
//! driver of these, `edge/node/src/runtime/replica`, in whose place `cluster/replica` carries out the same effects with timers and
//! queues; the links of `edge/peer-link`, in whose place messages and snapshots are passed on; sockets, of which the kernel's
//! stamps and what lies in them are modelled; those of the relay tree (`edge/relay-link`), in whose place datagrams are lost,
//! doubled, late and overtaken; HTTP and WebSocket (a program that sends commands under numbers stands for the former); the probe
//! mesh, in whose place machines know the venue's time within a bound; the messages and files of API keys; the solver of batches
//! and the check of their signatures. A gateway is part of each replica. What is not shared is tested on real processes:
//! `edge/node/tests/cluster`. Between shards the transfer relays are `walras-transfer-relay`, as in the node; their threads,
//! clients and the handlers that answer them are done again (`edge/node/tests/node/shards.rs` has the real ones).
//!
//! *Deliberately absent*: HTTP, JSON and TLS (they are `edge/node`'s and `edge/peer-link`'s); threads, and with them all that
//! depends on how the product's threads share their work; damage to bytes at rest while a replica runs; the loss of a majority,
//! which nothing is promised for.
//!
//! *Invariants*
//! - The same seed and settings give the same run, to the byte: no clock, no thread, no hash order.
//! - A checker learns from outside the product (what clients asked and were answered, what replicas hand out, what disks hold),
//!   never from the product's own books.
//!
//! *Start reading* at [`cluster::simulate`], then `cluster/world.rs`, `cluster/replica/process.rs` and `cluster/checks/mod.rs`;
//! `common` is what both worlds share.
//!
//! *Sources*: FoundationDB's and TigerBeetle's accounts of testing by deterministic simulation; Ongaro, "Consensus: Bridging Theory
//! and Practice", 2014 (what the cluster's checkers hold it to).

pub mod cluster;
mod common;
pub mod shards;

pub use common::checks::Violation;
pub use common::planted::{Found, Missed};
pub use common::trace::Trace;
