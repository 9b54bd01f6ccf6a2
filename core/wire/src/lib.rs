//! What crosses a boundary: commands into the log, events out of it, and their byte codecs.
//!
//! *Deliberately absent*: JSON (it stops at `edge/`), market-data framing (it comes with its protocol), meaning (that is
//! `engine`'s).
//!
//! *Invariants*
//! - `decode(encode(x)) == x`, and `encode` of what `decode` accepted gives the same bytes: one encoding per value.
//! - `decode` never panics, whatever the bytes; it says at which byte and why it stopped.
//! - No message is longer than [`walras_types::limits::MESSAGE_BYTES_MAX`], but for a batch's block:
//!   [`batch::BLOCK_PROPOSAL_BYTES_MAX`].
//!
//! - No [`Command`] and no [`Event`] takes more than two cache lines of memory.
//!
//! *Start reading* at [`Command`], then [`Event`], then [`CommandClass`] (who may ask a command), then [`codec`]; those of batch
//! markets and of shards are in files of their own; order entry's frames are in [`order_entry`], a batch market's transactions and
//! blocks in [`batch`].
#![deny(clippy::float_arithmetic)]

pub mod batch;
mod batch_command;
mod batch_event;
mod class;
pub mod codec;
mod command;
mod command_codec;
mod content;
mod event;
mod event_codec;
mod invalid;
mod linked_order;
mod named_order;
pub mod order_entry;
mod shards;

pub use batch_command::*;
pub use batch_event::*;
pub use class::*;
pub use codec::DecodeError;
pub use command::*;
pub use command_codec::{decode_command, encode_command};
pub use content::content_digest;
pub use event::*;
pub use event_codec::{decode_event, encode_event};
pub use invalid::{InvalidCommand, decode_submitted};
pub use linked_order::{Link, LinkedOrder};
pub use named_order::{NamedAmend, NamedOrder, get_replacement_name};
pub use shards::*;

/// Version of the byte codecs. A log or a peer with another is refused.
pub const WIRE_VERSION: u16 = 10;

// Both are copied for each entry of the log, and lie in arrays: two cache lines, whatever is added to them.
const _: () = assert!(size_of::<Command>() <= 128 && size_of::<Event>() <= 128);
