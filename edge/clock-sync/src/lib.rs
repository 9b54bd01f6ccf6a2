//! Where a node's time comes from: sources of clock readings, each in a thread that publishes to a cell which anybody reads without
//! waiting.
//!
//! - *system* ([`SourceOptions::System`]): the system's clock, with the bound that the operator declares.
//! - *chrony* ([`chrony`]): the system's clock, with the bound that chronyd reports.
//! - *phc* ([`phc`]): a PTP hardware clock, with the bound that the operator or the driver declares and what reading it adds.
//! - *mesh* ([`mesh`]): the host's undisciplined clock, corrected by probes among the nodes over UDP, after Huygens.
//!
//! ```no_run
//! # use walras_clock_sync::{ClockOptions, ClockService, SourceOptions};
//! let options = ClockOptions { bound_max_ns: 1_000_000, good_for_ns: 1_000_000_000, source: SourceOptions::System { bound_ns: 500_000 } };
//! let service = ClockService::start(options)?;
//! let source = service.source(); // cheap to clone, one for each thread that stamps
//! let (reading, status) = source.reading(); // less than 100 ns, never waits
//! let stamp = source.stamp(); // none unless the clock is good enough
//! # Ok::<(), walras_clock_sync::StartError>(())
//! ```
//!
//! *Deliberately absent*: what a clock is and when it is good enough to stamp with (`walras_fair_access::clock`), the estimates
//! (`walras_fair_access::mesh`), setting the system's clock, leap seconds, time zones. The venue's time by a mesh is its reference node's
//! clock, which nobody steers: it is not UTC.
//!
//! *Invariants*
//! - A source's time never goes back for anybody, whichever thread reads it.
//! - A clock without a bound is not read, and one wider than the limit does not stamp, from the reading on that shows it.
//! - A reader waits for nobody, not even for a publisher that was interrupted while it wrote.
//! - What comes from a socket is bounded in size and number, authenticated where it comes from other hosts, and cannot make a source panic.
//!
//! *Start reading* at [`ClockService::start`], then `cell.rs` (what readers do), [`mesh`].
//!
//! *Dependencies*: `nix` (MIT) for receive time stamps and clocks of devices, `rustix` for waiting on a socket, `blake3` as the keyed hash of
//! the mesh's datagrams. The crate that speaks chronyd's protocol is under the GPL, so the one request that is needed is written here.
//!
//! *Sources*: Geng et al. (Huygens), NSDI 2018; the reports of `chronyc tracking`; Lamport, Concurrent reading and writing, CACM 1977.

mod cell;
pub mod chrony;
mod error;
mod local;
pub mod mesh;
pub mod phc;
mod service;
mod stop;
mod view;

pub use cell::Source;
pub use error::StartError;
pub use local::LocalClock;
pub use service::{ClockOptions, ClockService, SourceOptions};
pub use view::{ClockView, Excluded, MeshView, PeerView, Refusals};
