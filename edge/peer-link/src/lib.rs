//! The links between the replicas of a cluster: messages and snapshots, over TCP, in mutual TLS.
//!
//! [`Links`] belongs to the one thread that runs the consensus, applies the log and serves the peers. It has no thread of its own
//! (except to resolve names), never blocks, and is driven by the owner's [`mio::Poll`]:
//!
//! ```no_run
//! # use walras_peer_link::{LinkConfig, LinkEvent, Links};
//! # fn example(config: LinkConfig, now_ns: impl Fn() -> u64) -> Result<(), Box<dyn std::error::Error>> {
//! let mut poll = mio::Poll::new()?;
//! let mut links = Links::new(poll.registry(), 0..200, config, now_ns())?;
//! let (mut ready, mut events) = (mio::Events::with_capacity(64), Vec::new());
//! loop {
//!     if now_ns() >= links.next_deadline_ns() {
//!         links.on_timer(now_ns(), &mut events);
//!     }
//!     for event in events.drain(..) {
//!         if let LinkEvent::Message { from, bytes } = event {
//!             links.send(from, bytes)?; // in truth: step consensus, send what it asks for
//!         }
//!     }
//!     links.flush(now_ns(), &mut events); // all of it leaves in as few records and system calls as it fits in
//!     let wait_ns = if events.is_empty() { links.next_deadline_ns().saturating_sub(now_ns()) } else { 0 };
//!     poll.poll(&mut ready, Some(std::time::Duration::from_nanos(wait_ns)))?;
//!     for event in &ready {
//!         links.on_ready(event, now_ns(), &mut events); // of all tokens that it owns
//!     }
//! }
//! # }
//! ```
//!
//! - *One connection per pair of replicas*, used in both directions. The replica with the higher id connects, so the others need
//!   not know a new replica's address. Failed attempts are repeated after a growing, jittered pause that is derived from a seed.
//! - *Authentication*: TLS 1.3 only, by `rustls` and `ring`. Both sides check the other's certificate, which is signed by the
//!   cluster's own authority ([`keys`]) and names replica and cluster. The caller identifies itself first, and is answered only if
//!   it is expected. Links without TLS work only between addresses of one machine, unless the configuration explicitly allows more.
//! - *A message* is lost if its link is lost, and refused if the peer's queue is full. The consensus tolerates both. An owner that
//!   tolerates only the first ends the link with [`Links::cut`]. Queues are bounded per peer.
//! - *A snapshot* is sent in chunks between the messages, within a window that its receiver opens, with a BLAKE3 hash at its end.
//! - *Heartbeats*: a link that was silent for a second is pinged, and given up if there is no answer. The consensus has its own
//!   heartbeats, but two followers may exchange nothing for days, and after a partition TCP would retry only after as long as the
//!   partition had lasted.
//! - *Fault injection*: [`Links::set_faults`] loses, delays or blocks messages by peer and direction, if the configuration allows
//!   it.
//!
//! *Deliberately absent*: the meaning of messages, membership ([`Links::set_peers`] sets it), logging (the host logs each
//! [`LinkEvent::Refused`] and [`LinkEvent::Lost`]; a cause is reported once, not for each attempt), revocation of certificates
//! (make new ones with a new authority), compression. Certificates are checked by the system's clock; everything else uses
//! `now_ns`.
//!
//! *Invariants*
//! 1. With TLS, a message or chunk of replica n comes from a process with a certificate for n of this cluster's authority.
//! 2. On one link, messages arrive in order, complete, and at most once.
//! 3. [`LinkEvent::SnapshotEnd`] means that all bytes came and their hash is the sender's.
//! 4. Whatever a peer sends, and however slowly it reads, nothing panics, and memory stays within [`LinkLimits`], a snapshot window
//!    and a batch.
//! 5. A process that was superseded by a later one under its id is not linked again.
//!
//! *Start reading* at [`Links`] and [`LinkEvent`], then `frame.rs` (encoding), `connection.rs` (order of output), `tls.rs`
//! (identity).
//!
//! *Dependencies*: `mio` 1 (MIT), `rustix` 1 (Apache-2.0 or MIT), `rustls` 0.23 with `ring` and `rustls-webpki` (Apache-2.0, ISC,
//! MIT), `rcgen` 0.14 with `time` (MIT or Apache-2.0), all maintained and the common choice; they build in about 35 s of one core
//! (`rustls` 16, `ring` 8).
//!
//! *Figures* (`examples/link_speed.rs`; two cores at 2.6 GHz over loopback, 2026-11-21). Time on a processor, sender and receiver
//! together, in one thread, which the load of other programs on the machine disturbs little:
//!
//! | | plain | TLS |
//! | --- | --- | --- |
//! | 64 B there and back, one at a time | 5.7 us | 7.2 us |
//! | the same, 64 at once, each | 0.25 us | 0.37 us |
//! | 64 KiB one way | 11.9 us | 35.2 us |
//!
//! Between two threads that block in the poll, on the same machine under a load of 13 (so not more than a bound): 64 B there and
//! back in 8.1 us plain, 9.5 us TLS at the median; 64 KiB one way at 126 and 104 MB/s.

mod channel;
mod config;
mod connection;
mod dial;
mod error;
mod event;
mod faults;
mod frame;
pub mod keys;
mod links;
pub mod listener;
mod peer;
mod snapshot;
mod tls;

pub use config::{BadPeerAddress, LinkConfig, LinkLimits, LinkTiming, PeerAddress, Security};
pub use error::{LinkError, SendError, SetupError};
pub use event::LinkEvent;
pub use faults::{LinkFaults, PathFaults};
pub use frame::{FRAME_BYTES_MAX, FrameError, LINK_VERSION, Versions, frames_again};
pub use links::{Links, PeerStatus};
pub use snapshot::{SNAPSHOT_CHUNK_BYTES, SNAPSHOT_WINDOW_BYTES, SnapshotFailure, SnapshotId};
pub use tls::{IdentityError, TlsIdentity};
