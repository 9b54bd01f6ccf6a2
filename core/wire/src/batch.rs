//! Batch markets on the wire: transactions and what accounts sign of them, and the blocks that a proposer sends.
//!
//! *Transactions* are of fixed width, like commands: `account u32 | sequence u64 | tag u8 | fields`, [`TRANSACTION_BYTES_MAX`] at
//! most. The four high bits of the tag are its terms: the last block that may have it, five bytes before the fields, and with which
//! others it is joined. A signed one is those bytes and the 64 of an Ed25519 signature over [`SigningDomain`] and them.
//! `docs/batch-transactions.md` describes them for programs in any language.
//!
//! *Blocks* name only the pairs that traded, so their bytes grow with those and not with the square of the assets. Counts, amounts and
//! steps from pair to pair are varints (seven bits a byte, lowest first, the top bit set on all but the last byte; the shortest form is
//! the only one). The layout is at [`encode_block_proposal`].
//!
//! *Invariants*: one byte string per value, and what does not read as one is refused with the byte at which it stops; no bytes make a
//! reader panic, or allocate more than in proportion to them. Nothing else is checked here: whether a transaction can be done and a
//! block holds is up to those who keep the state.

mod proposal;
mod signing;
mod transaction;
mod varint;

pub use proposal::*;
pub use signing::*;
pub use transaction::*;
pub(crate) use transaction::{HEAD_BYTES, OF_CHAIN, SET_KEY, TERMS, transaction_bytes_of};
