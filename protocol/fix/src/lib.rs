//! FIX sessions: 4.0 to 4.4, and 5.0 to 5.0 SP2 over FIXT 1.1, at the acceptor's end.
//!
//! Time and bytes in, bytes and events out. [`Session`] frames and checks messages, answers logons, heartbeats, test requests and
//! resend requests, asks for what it misses, and rejects what the dictionaries do not allow. What an order means is the host's
//! matter: it gets application messages in their order, each once, and sends its own.
//!
//! *Deliberately absent*: sockets, clocks, files; the initiator's end; encryption by FIX itself (TLS is the host's); what
//! application messages mean.
//!
//! *Invariants*
//! - No bytes make a session panic. What waits in it is bounded by its [`Settings`].
//! - The host gets each application message once, in the order of MsgSeqNum, checked against its dictionary.
//! - Every number that was sent can be asked for again: the message comes again with the same content, or a gap fill covers it.
//!
//! *Start reading* at [`Session::poll`].
//!
//! *Sources*: FIX 4.0 to 5.0 SP2 and FIXT 1.1 (FIX Trading Community); `dictionaries/README.md`.
#![deny(clippy::float_arithmetic)]

mod dictionary;
mod encode;
mod frame;
mod message;
mod reject;
mod session;
mod tags;
mod validate;
mod values;
mod version;

pub use dictionary::{Dictionaries, Dictionary, DictionaryError};
pub use encode::{Body, HeaderField};
pub use message::Message;
pub use reject::{Fault, RejectReason};
pub use session::{
    AppMessage, End, Event, Lasting, LastingStart, LogonRequest, NUMBERS_FROM, Record, Session, Settings, Unknown, Unplaced,
    next_lasting,
};
pub use validate::{Leniency, Rules};
pub use values::parse_timestamp;
pub use version::Version;
