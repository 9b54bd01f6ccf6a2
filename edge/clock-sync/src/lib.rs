//! The sources of a node's time: each runs in a thread that publishes to a cell, which other threads read without waiting.
//!
//! - *system* ([`SourceOptions::System`]): the system's clock, with the bound that the operator declares.
//! - *chrony* ([`chrony`]): the system's clock, with the bound that chronyd reports.
//! - *phc* ([`phc`]): a PTP hardware clock, with the bound that the operator or the driver declares, plus the error of reading it.
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
//! *Deliberately absent*: the clock itself and the rule for stamps (`walras_fair_access::clock`), the estimates
//! (`walras_fair_access::mesh`), setting the system's clock, leap seconds, time zones. With a mesh, venue time is the reference
//! node's undisciplined clock, not UTC.
//!
//! *Invariants*
//! - A source's time never goes back, even across threads.
//! - A clock without a bound cannot be read, and a clock with too wide a bound does not stamp, starting with the reading that shows
//!   it.
//! - A reader never waits, not even for a publisher that was interrupted while writing.
//! - What comes from a socket is bounded in size and number, authenticated where it comes from other hosts, and cannot make a
//!   source panic.
//!
//! *Start reading* at [`ClockService::start`], then `cell.rs` (what readers do), [`mesh`].
//!
//! *Dependencies*: `nix` (MIT) for receive time stamps and clocks of devices, `rustix` for waiting on a socket, `blake3` as the
//! keyed hash of the mesh's datagrams. The crate that speaks chronyd's protocol is under the GPL, so the one request that is needed
//! is written here.
//!
//! *Sources*: Geng et al. (Huygens), NSDI 2018; the reports of `chronyc tracking`; Lamport, Concurrent reading and writing, CACM
//! 1977.

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
