//! The links between the replicas of a cluster: messages and snapshots, over TCP, in mutual TLS.
//!
//! [`Links`] belongs to the one thread that steps consensus, applies and serves its peers: it has no thread of its own (but for
//! names that must be resolved), never blocks, and is driven by the owner's [`mio::Poll`]:
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
//! - *One connection for two replicas*, both ways; the one with the higher id calls, so that a new replica's certificate has to be
//!   known by the others, and its address need not be. Calls are made again with a growing, jittered pause that follows from a
//!   seed.
//! - *Who may speak*: TLS 1.3 alone, by `rustls` and `ring`; certificates of the cluster's own authority ([`keys`]) that name
//!   replica and cluster, checked by both sides. The caller identifies itself first, and is answered only if it is expected.
//!   Without TLS only between addresses of one machine, unless it is asked for in so many words.
//! - *A message* is lost when its link is, or refused when too much waits. Consensus copes. What waits is bounded per peer.
//! - *A snapshot* goes in chunks between the messages, within a window that its receiver opens, with a BLAKE3 hash at its end.
//! - *Signs of life*: a link that has been still for a second is asked for an answer, and given up without one. Consensus has
//!   heartbeats of its own, but between two followers nothing is said for days, and after a partition TCP itself would try again
//!   only after as long as the partition had lasted.
//! - *Fault injection*: [`Links::set_faults`] loses, delays or blocks messages by peer and direction, if the configuration allows
//!   it.
//!
//! *Deliberately absent*: what messages mean, when to send what, who the members are ([`Links::set_peers`] takes them), logging
//! (each [`LinkEvent::Refused`] and [`LinkEvent::Lost`] is worth a line, and a cause is reported once, not for each attempt),
//! revocation of certificates (make new ones with a new authority), compression. Certificates are checked by the system's clock;
//! all else goes by `now_ns`.
//!
//! *Invariants*
//! 1. With TLS, a message or chunk of replica n comes from a process with a certificate of our authority for n and our cluster.
//! 2. On one link messages arrive in order, each at most once, whole.
//! 3. [`LinkEvent::SnapshotEnd`] means that all bytes came and their hash is the sender's.
//! 4. Whatever a peer sends or does not read: no panic, and memory stays within [`LinkLimits`], a window of snapshot and a batch.
//! 5. A process that was replaced by a later one under its id is not linked again.
//!
//! *Start reading* at [`Links`] and [`LinkEvent`], then `frame.rs` (the bytes), `connection.rs` (what leaves when), `tls.rs` (who
//! is who).
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
