//! The thread behind a source: start, stop, and the loop of those that ask somebody from time to time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tracing::{info, warn};
use walras_fair_access::clock::{ClockSource, HostClock, HostReport, SlewLimits, StampLimits, VirtualClock};

use crate::cell::{Publisher, Source};
use crate::chrony::{Chrony, ChronyOptions};
use crate::local::LocalClock;
use crate::mesh::{Mesh, MeshOptions};
use crate::phc::{Phc, PhcOptions};

/// How a clock is kept.
#[derive(Clone, Debug)]
pub struct ClockOptions {
    /// A clock whose bound is wider does not stamp. It is good again within three quarters of this.
    pub bound_max_ns: u64,
    /// ... for so long.
    pub good_for_ns: u64,
    /// Where the time comes from.
    pub source: SourceOptions,
}

/// Where time comes from.
#[derive(Clone, Debug)]
pub enum SourceOptions {
    /// The system's clock, believed to be within a bound for as long as the node runs.
    System {
        /// That bound, above 0.
        bound_ns: u64,
    },
    /// The system's clock as chronyd disciplines it.
    Chrony(ChronyOptions),
    /// A PTP hardware clock.
    Phc(PhcOptions),
    /// Probes among the nodes.
    Mesh(MeshOptions),
}

/// Why a clock did not start. A source that is silent later is no error: its status says so.
#[derive(Debug, Error)]
pub enum StartError {
    /// No room between stopping and starting again.
    #[error("a bound of {bound_max_ns} ns leaves no room between stopping to stamp and starting again: set at least 4 ns")]
    Bound {
        /// What was given.
        bound_max_ns: u64,
    },
    /// The operator declared nothing.
    #[error("the system's clock has no bound of its own: declare how far it may be off, or take another source")]
    NoBound,
    /// The device can not be opened.
    #[error("{device}: {source}; check that it exists (ls /dev/ptp*) and that this user may read it")]
    Device {
        /// Its path.
        device: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The mesh's socket can not be opened.
    #[error("could not listen on {address} for probes: {source}; choose another address or port")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A mesh that can not be.
    #[error("{0}")]
    Mesh(String),
    /// No thread.
    #[error("could not start the clock's thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

/// A clock with its thread, which ends when this is dropped.
#[derive(Debug)]
pub struct ClockService {
    source: Source,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl ClockService {
    /// Starts a source on the host's own clock.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(options: ClockOptions) -> Result<Self, StartError> {
        let local = match options.source {
            SourceOptions::System { .. } | SourceOptions::Chrony(_) => LocalClock::system(),
            SourceOptions::Phc(_) | SourceOptions::Mesh(_) => LocalClock::raw(),
        };
        Self::start_on(local, options)
    }

    /// The same on any clock.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_on(local: LocalClock, options: ClockOptions) -> Result<Self, StartError> {
        let ClockOptions { bound_max_ns, good_for_ns, source } = options;
        let good_ns = bound_max_ns - bound_max_ns / 4;
        let limits = StampLimits::new(bound_max_ns, good_ns, good_for_ns).map_err(|_| StartError::Bound { bound_max_ns })?;
        let host = |kind| Publisher::new(kind, ClockSource::Host(HostClock::new()), limits, bound_max_ns, local.clone());
        let corrected = |kind| {
            let clock = ClockSource::Mesh(VirtualClock::new(SlewLimits::default()));
            Publisher::new(kind, clock, limits, bound_max_ns, local.clone())
        };
        match source {
            SourceOptions::System { bound_ns: 0 } => Err(StartError::NoBound),
            SourceOptions::System { bound_ns } => Self::spawn(host("system"), move |mut publisher, stop| {
                poll(&mut publisher, stop, LOOK_AGAIN, |publisher| declared(publisher, bound_ns));
            }),
            SourceOptions::Chrony(options) => Self::spawn(host("chrony"), move |mut publisher, stop| {
                let mut chrony = Chrony::new(options);
                poll(&mut publisher, stop, LOOK_AGAIN, |publisher| chrony.step(publisher));
            }),
            SourceOptions::Phc(options) => {
                let mut phc = Phc::open(options)?;
                Self::spawn(corrected("phc"), move |mut publisher, stop| {
                    poll(&mut publisher, stop, phc.interval(), |publisher| phc.step(publisher));
                })
            }
            SourceOptions::Mesh(options) => {
                let mesh = Mesh::open(options, &local)?;
                Self::spawn(corrected("mesh"), move |publisher, stop| mesh.run(publisher, stop))
            }
        }
    }

    fn spawn(publisher: Publisher, run: impl FnOnce(Publisher, &Stop) + Send + 'static) -> Result<Self, StartError> {
        let (source, stop) = (publisher.source(), Arc::new(Stop::default()));
        let until = Arc::clone(&stop);
        let body = move || run(publisher, &until);
        let thread = std::thread::Builder::new().name("walras-clock".into()).spawn(body).map_err(StartError::Thread)?;
        Ok(Self { source, stop, thread: Some(thread) })
    }

    /// Its readings.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source.clone()
    }
}

impl Drop for ClockService {
    fn drop(&mut self) {
        self.stop.ask();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the clock's thread panicked: its readings have aged since; please report what stands above");
        }
    }
}

/// How often the system's clock is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Tells a thread to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_asked: Mutex<bool>,
    bell: Condvar,
}

impl Stop {
    fn ask(&self) {
        *self.is_asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.is_asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; whether to end.
    fn wait(&self, time: Duration) -> bool {
        let guard = self.is_asked.lock().unwrap_or_else(PoisonError::into_inner);
        *self.bell.wait_timeout_while(guard, time, |is_asked| !*is_asked).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Asks again and again. What goes wrong is told once when it begins and once when it is over.
fn poll(publisher: &mut Publisher, stop: &Stop, interval: Duration, mut step: impl FnMut(&mut Publisher) -> Result<(), String>) {
    let mut was_well = true;
    loop {
        let trouble = step(publisher).err();
        match &trouble {
            Some(trouble) if was_well => warn!("the clock: {trouble}"),
            None if !was_well => info!("the clock is well again"),
            _ => {}
        }
        was_well = trouble.is_none();
        publisher.tell(|details| details.trouble = trouble);
        publisher.publish();
        if stop.wait(interval) {
            return;
        }
    }
}

fn declared(publisher: &mut Publisher, bound_ns: u64) -> Result<(), String> {
    let local_ns = publisher.local().now_ns();
    report(publisher, HostReport { local_ns, bound_ns, bound_growth_ppt: 0 })
}

/// Feeds a host's clock. One that was set back since the last report begins anew.
pub(crate) fn report(publisher: &mut Publisher, report: HostReport) -> Result<(), String> {
    let ClockSource::Host(host) = publisher.clock() else { return Ok(()) };
    host.on_report(report).map_err(|e| {
        host.on_lost();
        e.to_string()
    })
}
