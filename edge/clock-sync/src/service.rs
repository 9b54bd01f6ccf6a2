//! The thread of a source: start, stop, and the polling loop.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{info, warn};
use walras_fair_access::clock::{ClockSource, HostClock, HostReport, SlewLimits, StampLimits, VirtualClock};

use crate::cell::{Publisher, Source};
use crate::chrony::{Chrony, ChronyOptions};
use crate::error::StartError;
use crate::local::LocalClock;
use crate::mesh::{Mesh, MeshOptions};
use crate::phc::{Phc, PhcOptions};
use crate::stop::Stop;

/// Options of a clock.
#[derive(Clone, Debug)]
pub struct ClockOptions {
    /// A clock whose bound is wider does not stamp. It is good again within three quarters of this.
    pub bound_max_ns: u64,
    /// ... for so long.
    pub good_for_ns: u64,
    /// Where the time comes from.
    pub source: SourceOptions,
}

/// The source of time.
#[derive(Clone, Debug)]
pub enum SourceOptions {
    /// The system's clock, assumed to be within a bound as long as the node runs.
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

/// Interval of readings of the system's clock.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Polls. Logs a failure once when it begins and once when it is over.
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
        publisher.set_details(|details| details.trouble = trouble);
        publisher.publish();
        if stop.wait(interval) {
            return;
        }
    }
}

fn declared(publisher: &mut Publisher, bound_ns: u64) -> Result<(), String> {
    let local_ns = publisher.local().now_ns();
    publisher.report_host(HostReport { local_ns, bound_ns, bound_growth_ppt: 0 })
}
