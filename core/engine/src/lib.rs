//! The replicated state machine: instruments, accounts, risk and trading phases around the books, settling on one ledger.
//!
//! [`Engine::apply`] is the only way state changes. It is a pure function of the state, the log index, the time and the command, so
//! that every replica, and every replay, holds the same bytes ([`Engine::state_hash`]) and emits the same events.
//!
//! [`Engine::apply_numbered`] is the same for a command that came through a session: it takes effect once, however often it comes.
//!
//! [`Engine::apply_signed`] is the same for a command that its sender signed and did not number: a copy of it has no effect.
//!
//! [`Engine::apply_clearing`] is the same for a proposed clearing of a batch market: what is collected by commands and closed by
//! one more is checked, traded and hashed there, or refused, with no effect (`batches.rs`, and `walras_batch` below it).
//!
//! An engine may be one of several shards, each with a log of its own, between which funds are moved by numbered transfers
//! (`shards.rs`).
//!
//! *Deliberately absent*: clocks, the log, connections, market-data framing, JSON; who may open which session (the gateway's);
//! whether the signature of a transaction holds (checked before, and by whoever audits the log), when a batch is closed and what
//! its prices are (whoever leads).
//!
//! *Invariants*, after every command ([`Engine::check_invariants`]):
//! - What an account has reserved of an asset is the sum over its open orders of a pure function of limit and open size
//!   (`market.rs`), what its offers sell and what a closed batch waits to move. So funds never run out while matching or clearing,
//!   and nothing stays reserved for what is gone.
//! - An account's open lots and order count in an instrument are those of its orders in the book.
//! - The ledger's: balances, fees and what is in transit to other shards add up to the supply, which is what was issued here, and
//!   what other shards sent less what they took. What is in transit is the sum of the transfers that were not answered
//!   (`shards.rs`).
//! - Another shard's instrument is closed and has no orders.
//! - A rejected command emits exactly one [`walras_wire::Event::Rejected`] and changes nothing. Good-till-time orders due at the
//!   command's time expire first, whether or not it is rejected. A clearing emits one [`walras_wire::BatchEvent::ClearingRejected`]
//!   then.
//! - The number of threads ([`Engine::set_threads`]), and when hashes are made, change nothing.
//! - A session's commands are applied in the order of their places, each once; of the last [`SESSION_WINDOW`] the state holds the
//!   answers. A command that was not applied, since it was before or is not next, is to the state as
//!   [`walras_wire::VenueCommand::Tick`].
//! - A signed command takes effect once while its stamp is acceptable, and not after that (`nonces.rs`). One that is refused for its
//!   nonce is to the state as [`walras_wire::VenueCommand::Tick`].
//! - No command panics, whatever it holds. A log index out of sequence, or a time that goes back, does: the sequencer guarantees
//!   both, so either means that the log itself is broken.
//!
//! Whoever publishes the books reads them here, and keeps no copy: [`Engine::changed_levels`] says after each entry which levels
//! show something else than before, and [`Engine::level`] what.
//!
//! *Start reading* at [`Engine::apply`], then `orders.rs` (what an order goes through), then `settle.rs` (what a trade moves), then
//! `sessions.rs` (what makes a retry harmless).
//!
//! [`SESSION_WINDOW`]: walras_types::limits::SESSION_WINDOW
#![deny(clippy::float_arithmetic)]

mod batch_checks;
mod batch_queries;
mod batch_snapshot;
mod batches;
mod block_steps;
mod brackets;
mod cancel_after;
mod cancel_steps;
mod cancelling;
mod changing;
mod engine;
mod frozen;
mod links;
mod market;
mod names;
mod nonces;
mod operator;
mod orders;
mod phases;
mod queries;
mod session_index;
mod sessions;
mod settle;
mod shard_link;
mod shards;
mod snapshot;
mod steps;
mod switches;
mod terms;
mod transfer_numbers;
pub mod versions;
mod warm;
mod window;

pub use batch_queries::BatchMarketView;
pub use batches::{FeeInForce, LastBlock};
pub use engine::Engine;
pub use frozen::Frozen;
pub use queries::{ChangedLevel, InstrumentView, OpenOrder, Position};
pub use sessions::{Numbered, SessionView, Standing};
pub use shards::{InTransit, TransferOutcome};
pub use snapshot::{RestoreError, snapshot_hash};
pub use transfer_numbers::{TransferStanding, compare_numbers};
pub use walras_batch::BlockPlace;
pub use walras_ledger::Balance;
pub use walras_order_book::{DepthLevel, DisplayedOrder, PriceIndex, Uncross};
