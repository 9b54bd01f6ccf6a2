//! The replicated venue: three to five replicas, a spare one, clients that retry at any of them, an operator, and somebody who
//! hands leadership over and changes the members.
//!
//! Replicas are the product's (`walras_replica::Replica`), on the product's log and snapshots in a simulated disk each, with
//! order entry, reports and market data. Clients talk the binary session protocol over byte streams that are cut anywhere;
//! replicas talk in messages that are lost, doubled, late and overtaken, and send each other snapshots in pieces.
//!
//! *Start reading* at `world.rs`, then `replica/process.rs` and `checks/mod.rs`.

mod admin;
mod checks;
mod client;
mod damage;
mod deliver;
mod event;
mod faults;
mod fix;
mod forks;
mod frames;
mod keys;
mod leaves;
mod links;
mod losses;
mod machine;
mod mutation;
mod net;
mod overlay;
mod places;
mod planted;
mod replica;
mod report;
mod requester;
mod requests;
pub(crate) mod shard;
pub(crate) mod shard_place;
mod signed_order;
mod signer;
mod strikes;
mod tempo;
mod transfers;
mod under_way;
mod upgrades;
mod world;

pub use mutation::Mutation;
pub use planted::{PLAIN, Planted, planted};
pub(crate) use replica::Disposition;
pub use report::{Report, Settings};
pub use tempo::Tempo;
pub use world::simulate;
pub(crate) use world::{HEALING_NS, World};
