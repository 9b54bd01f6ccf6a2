//! A PTP hardware clock (`/dev/ptpN`): the card's own, or the one that a cloud gives its guests.
//!
//! The device is read several times between two readings of the host's clock. The narrowest such pair counts, and half of its width
//! is the error of the reading. Between two looks the host's clock is extrapolated at the rate of the last looks. The device does
//! not report its own error: the operator declares it, or a file of the driver has it (ENA: `phc_error_bound`, in nanoseconds).

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use walras_fair_access::clock::{ClockSource, Correction};

use crate::cell::{Publisher, difference_ns};
use crate::error::StartError;
use crate::local::as_ns;

/// The device and its error bound.
#[derive(Clone, Debug)]
pub struct PhcOptions {
    /// Its path.
    pub device: PathBuf,
    /// Bound on the device's own error, in addition to the file's.
    pub reference_bound_ns: u64,
    /// A file with its error bound in nanoseconds, read with each look.
    pub bound_file: Option<PathBuf>,
    /// Interval between looks.
    pub interval: Duration,
}

/// Pairs of readings at each look.
const PAIRS: usize = 8;
/// Number of looks from which the rate is computed.
const LOOKS: usize = 16;
/// Maximum width of a pair. In wider ones this thread was interrupted.
const WIDTH_NS_MAX: u64 = 1_000_000;
/// Bound on the difference of the rate between two looks and over all looks, because of temperature and steering of the device.
const GROWTH_PPT: u64 = 10_000_000;
/// The same while there is only one look: the error of ordinary oscillators.
const FIRST_GROWTH_PPT: u64 = 100_000_000;
/// Number of looks without a reading after which the clock has no bound.
const MISSED_MAX: u32 = 10;

type Read = Box<dyn FnMut() -> io::Result<u64> + Send>;

/// Reads a device regularly.
pub(crate) struct Phc {
    options: PhcOptions,
    read: Read,
    looks: VecDeque<Look>,
    missed: u32,
}

/// What the host's clock read, and the device then, within half of the pair's width.
#[derive(Clone, Copy, Debug)]
struct Look {
    local_ns: u64,
    device_ns: u64,
    half_ns: u64,
}

impl fmt::Debug for Phc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phc").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Phc {
    pub(crate) fn open(options: PhcOptions) -> Result<Self, StartError> {
        let wrong = |source| StartError::Device { device: options.device.display().to_string(), source };
        if options.reference_bound_ns == 0 && options.bound_file.is_none() {
            let advice =
                "such a clock does not know its own error: declare it (clock.declared_bound_us), or name the driver's file";
            return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, advice)));
        }
        let file = File::open(&options.device).map_err(wrong)?;
        let mut read: Read = Box::new(move || {
            // How Linux names the clock behind a file.
            let clock = ClockId::from_raw((!file.as_raw_fd() << 3) | 3);
            Ok(as_ns(clock_gettime(clock)?))
        });
        read().map_err(wrong)?;
        Ok(Self::of(options, read))
    }

    fn of(options: PhcOptions, read: Read) -> Self {
        Self { options, read, looks: VecDeque::new(), missed: 0 }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.options.interval
    }

    /// Looks once and feeds the clock.
    pub(crate) fn step(&mut self, publisher: &mut Publisher) -> Result<(), String> {
        let looked = self.look(publisher);
        self.missed = if looked.is_ok() { 0 } else { self.missed + 1 };
        let local_ns = publisher.local().now_ns();
        let ClockSource::Mesh(clock) = publisher.clock() else { return Ok(()) };
        match looked {
            Ok(line) => clock.on_correction(local_ns, line),
            Err(_) if self.missed >= MISSED_MAX => clock.on_excluded(),
            Err(_) => {}
        }
        looked.map(|_| ())
    }

    fn look(&mut self, publisher: &Publisher) -> Result<Correction, String> {
        let look = self.narrowest(publisher)?;
        let bound_ns = self.bound_ns()?;
        if self.looks.back().is_some_and(|last| look.local_ns <= last.local_ns) {
            self.looks.clear();
        }
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        let (rate_ppt, rate_error_ppt) = self.looks.front().map_or((0, FIRST_GROWTH_PPT), |first| rate(first, &look));
        self.looks.push_back(look);
        let Look { local_ns, device_ns, half_ns } = look;
        Ok(Correction {
            anchor_local_ns: local_ns,
            offset_ns: difference_ns(local_ns, device_ns),
            rate_ppt,
            bound_ns: bound_ns.saturating_add(half_ns).saturating_add(1),
            bound_growth_ppt: rate_error_ppt.saturating_add(GROWTH_PPT),
            bound_growth_ppt_per_s: 0,
        })
    }

    fn narrowest(&mut self, publisher: &Publisher) -> Result<Look, String> {
        let mut best: Option<Look> = None;
        for _ in 0..PAIRS {
            let before_ns = publisher.local().now_ns();
            let device_ns = (self.read)().map_err(|e| {
                format!(
                    "{} cannot be read: {e}; check that its driver is loaded and the card is there",
                    self.options.device.display()
                )
            })?;
            let Some(width_ns) = publisher.local().now_ns().checked_sub(before_ns) else { continue };
            let half_ns = width_ns.div_ceil(2);
            if width_ns <= WIDTH_NS_MAX && best.is_none_or(|best| half_ns < best.half_ns) {
                best = Some(Look { local_ns: before_ns + width_ns / 2, device_ns, half_ns });
            }
        }
        best.ok_or_else(|| {
            format!("reading {} always took more than {WIDTH_NS_MAX} ns: this machine is overloaded", self.options.device.display())
        })
    }

    fn bound_ns(&self) -> Result<u64, String> {
        let Some(path) = &self.options.bound_file else { return Ok(self.options.reference_bound_ns) };
        let wrong = |detail: String| {
            format!(
                "{} gives no bound ({detail}): check that it is the driver's file with the clock's error in nanoseconds",
                path.display()
            )
        };
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let file_ns: u64 =
            text.trim().parse().map_err(|_| wrong(format!("{:?}", text.trim().chars().take(40).collect::<String>())))?;
        Ok(file_ns.saturating_add(self.options.reference_bound_ns))
    }
}

/// Growth of the difference between the host's clock and the device, per unit of the host's time, with its error bound.
fn rate(first: &Look, last: &Look) -> (i64, u64) {
    let between_ns = i128::from(last.local_ns) - i128::from(first.local_ns);
    let per_time = |ns: i128| ns.saturating_mul(1_000_000_000_000) / between_ns.max(1);
    let grown_ns = between_ns - (i128::from(last.device_ns) - i128::from(first.device_ns));
    let error_ns = i128::from(first.half_ns) + i128::from(last.half_ns);
    // Beyond what clocks do is for the clock to refuse.
    (i64::try_from(per_time(grown_ns)).unwrap_or(i64::MAX), u64::try_from(per_time(error_ns)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use walras_fair_access::clock::{ClockStatus, SlewLimits, StampLimits, VirtualClock};

    use super::*;
    use crate::LocalClock;

    const S: u64 = 1_000_000_000;

    fn options() -> PhcOptions {
        PhcOptions { device: "/dev/ptp9".into(), reference_bound_ns: 500, bound_file: None, interval: Duration::from_millis(250) }
    }

    /// A host's clock that runs 20 us/s fast of a device which takes 2 us to read.
    #[test]
    fn the_host_follows_the_device_within_its_bound() {
        let true_ns = Arc::new(AtomicU64::new(100 * S));
        let is_broken = Arc::new(AtomicBool::new(false));
        let host = |true_ns: u64| true_ns + true_ns / 50_000 + 7 * S;
        let local = LocalClock::made({
            let true_ns = Arc::clone(&true_ns);
            move |_| host(true_ns.load(Relaxed))
        });
        let read: Read = Box::new({
            let (true_ns, is_broken) = (Arc::clone(&true_ns), Arc::clone(&is_broken));
            move || {
                if is_broken.load(Relaxed) {
                    return Err(io::Error::other("gone"));
                }
                // Not in the middle of the two.
                let at_ns = true_ns.fetch_add(2_000, Relaxed) + 1_600;
                Ok(at_ns)
            }
        });
        let limits = StampLimits::new(100_000, 50_000, 0).unwrap();
        let clock = ClockSource::Mesh(VirtualClock::new(SlewLimits::default()));
        let mut publisher = Publisher::new("phc", clock, limits, 100_000, local);
        let source = publisher.source();
        let mut phc = Phc::of(options(), read);
        for look in 0..40 {
            phc.step(&mut publisher).unwrap();
            publisher.publish();
            // Looked at just before the next step, when the last is oldest.
            true_ns.fetch_add(S / 4, Relaxed);
            let now_ns = true_ns.load(Relaxed);
            let (reading, status) = source.reading();
            let reading = reading.unwrap();
            assert_eq!(status, ClockStatus::Good);
            assert!(reading.time_ns.abs_diff(now_ns) <= reading.bound_ns, "{reading:?} {now_ns}");
            assert!(look == 0 || reading.bound_ns < 10_000, "{reading:?}");
        }
        is_broken.store(true, Relaxed);
        for missed in 1..=MISSED_MAX {
            assert!(phc.step(&mut publisher).unwrap_err().contains("/dev/ptp9"));
            publisher.publish();
            assert_eq!(source.reading().0.is_some(), missed < MISSED_MAX);
        }
    }

    #[test]
    fn a_device_that_is_not_there_and_one_without_a_bound_are_refused() {
        let said = Phc::open(PhcOptions { device: "/dev/no-such-ptp".into(), ..options() }).unwrap_err().to_string();
        assert!(said.contains("/dev/no-such-ptp") && said.contains("ls /dev/ptp*"), "{said}");
        let said = Phc::open(PhcOptions { reference_bound_ns: 0, ..options() }).unwrap_err().to_string();
        assert!(said.contains("declared_bound_us"), "{said}");
        let said = Phc::open(PhcOptions { device: "/dev/null".into(), ..options() }).unwrap_err().to_string();
        assert!(said.contains("/dev/null"), "no clock is behind it: {said}");
    }
}
