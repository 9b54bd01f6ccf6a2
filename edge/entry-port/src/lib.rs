//! The ports of order entry, binary and FIX: their sockets, on the replica's own thread, with TLS where it is on.
//!
//! - [`EntrySockets`]: accepts, reads in turns, stamps, writes.
//! - [`EntryTls`]: the certificate, and a connection's TLS 1.3.
//! - [`KernelStamps`]: when the kernel received what is read.
//!
//! *Deliberately absent*: what the bytes mean (`walras_replica`), the poll (its host's).
//!
//! *Invariants*
//! - Nobody is read again before all others who wait, and one round reads a bounded number of bytes and makes a bounded number of
//!   handshakes.
//! - An order is stamped by when the kernel had its last byte, encrypted or not.
//! - What a connection holds in memory is bounded, whatever its client sends or does not read.
//!
//! *Start reading* at [`EntrySockets`].

mod kernel_stamps;
mod sockets;
mod tls;
mod turns;

pub use kernel_stamps::KernelStamps;
pub use sockets::{EntryClock, EntryPort, EntrySockets, PortKind, SharedAccess};
pub use tls::{EntryTls, EntryTlsError};
