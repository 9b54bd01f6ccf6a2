//! The system clock's status as reported by chronyd: one request of its monitoring protocol, over UDP on this host.
//!
//! The bound is computed from the values of `chronyc tracking`: the remaining offset, the root dispersion, and half of the root
//! delay. The operator's bound for the reference itself is added, because a PTP hardware clock does not report its own error to
//! chronyd. Between two answers the bound grows by the frequency error, at least [`GROWTH_PPT_MIN`].
//!
//! *Sources*: the layout of version 6 of the protocol, as in the source code of chronyd 2.2 and later; there is no other document.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thiserror::Error;
use walras_fair_access::clock::{ClockSource, HostReport};

use crate::cell::Publisher;

/// The address of chronyd, and limits.
#[derive(Clone, Debug)]
pub struct ChronyOptions {
    /// Its port for monitoring, usually 127.0.0.1:323.
    pub address: SocketAddr,
    /// Bound on the error of its reference itself.
    pub reference_bound_ns: u64,
    /// Timeout for an answer.
    pub patience: Duration,
}

/// Bytes of a request, padded to those of the answer.
pub const REQUEST_BYTES: usize = 104;
/// Bytes of an answer.
pub const REPLY_BYTES: usize = 104;
/// A part in a million: what chronyd itself allows a clock (`maxclockerror`).
pub const GROWTH_PPT_MIN: u64 = 1_000_000;

const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const TRACKING: u16 = 33;
const TRACKING_REPLY: u16 = 5;
/// "Not synchronised" among the leap states.
const LEAP_UNKNOWN: u16 = 3;
/// The reference id that chronyd reports for its own local clock.
const OWN_CLOCK: u32 = 0x7f7f_0101;

/// The content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Bound on the clock's error, without the reference's own error.
    pub bound_ns: u64,
    /// How fast that grows.
    pub growth_ppt: u64,
}

/// Why an answer gives no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// Not an answer to this request.
    #[error("what answered is no chronyd that speaks version {VERSION} of its protocol (2.2 and later do): check its address")]
    Strange,
    /// chronyd refused the request.
    #[error("chronyd refused to say (status {status}): allow this host with `cmdallow` in its configuration")]
    Refused {
        /// Its reason.
        status: u16,
    },
    /// It has no reference.
    #[error(
        "chronyd is not synchronised: look at `chronyc sources`, and give it a server that answers or wait until it has chosen one"
    )]
    Unsynchronised,
    /// It follows its own local clock.
    #[error("chronyd follows its own clock (`local` in its configuration), whose error it does not know: give it a server")]
    OwnClock,
    /// The numbers are invalid.
    #[error("chronyd's numbers cannot be right: look at `chronyc tracking`")]
    Absurd,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ChronyError {
    /// Nothing listens there.
    #[error(
        "no chronyd answers at {address} ({detail}): start it, or set clock.chrony to where its `cmdport` is (127.0.0.1:323 unless changed)"
    )]
    Silent {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        detail: String,
    },
    /// The answer gives no bound.
    #[error("{0}")]
    Reply(#[from] ReplyError),
}

/// The request.
#[must_use]
pub fn request(sequence: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    (bytes[0], bytes[1]) = (VERSION, REQUEST);
    bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

/// Reads an answer. `None` for one to another request.
///
/// # Errors
/// See [`ReplyError`].
pub fn read(bytes: &[u8], sequence: u32) -> Result<Option<Tracking>, ReplyError> {
    let short = |at: usize| bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]])).ok_or(ReplyError::Strange);
    let word = |at: usize| {
        bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]])).ok_or(ReplyError::Strange)
    };
    if short(0)? != u16::from_be_bytes([VERSION, REPLY]) || short(4)? != TRACKING {
        return Err(ReplyError::Strange);
    }
    if word(16)? != sequence {
        return Ok(None);
    }
    let status = short(8)?;
    if status != 0 {
        return Err(ReplyError::Refused { status });
    }
    if short(6)? != TRACKING_REPLY || bytes.len() < REPLY_BYTES {
        return Err(ReplyError::Strange);
    }
    let (reference, stratum, leap) = (word(28)?, short(52)?, short(54)?);
    if leap == LEAP_UNKNOWN || reference == 0 {
        return Err(ReplyError::Unsynchronised);
    }
    if reference == OWN_CLOCK && stratum > 0 {
        return Err(ReplyError::OwnClock);
    }
    let correction_s = number(word(68)?);
    let (rest_ppm, skew_ppm) = (number(word(84)?), number(word(88)?));
    let (delay_s, dispersion_s) = (number(word(92)?), number(word(96)?));
    if delay_s < 0.0 || dispersion_s < 0.0 || skew_ppm < 0.0 {
        return Err(ReplyError::Absurd);
    }
    let bound_ns = whole((correction_s.abs() + dispersion_s + delay_s / 2.0) * 1e9, 1e18)?;
    let growth_ppt = whole((rest_ppm.abs() + skew_ppm) * 1e6, 1e12)?.max(GROWTH_PPT_MIN);
    Ok(Some(Tracking { bound_ns, growth_ppt }))
}

/// Upwards to a whole number below a limit.
fn whole(value: f64, limit: f64) -> Result<u64, ReplyError> {
    if value < limit { Ok(value.ceil() as u64) } else { Err(ReplyError::Absurd) }
}

/// A number of the protocol: seven bits of exponent above 25 of coefficient, both signed.
fn number(word: u32) -> f64 {
    let exponent = (word.cast_signed() >> 25) - 25;
    let coefficient = (word << 7).cast_signed() >> 7;
    f64::from(coefficient) * f64::from(exponent).exp2()
}

/// Number of missed polls after which the last answer is too old: chronyd may have stopped, and then the clock is not disciplined.
const MISSED_MAX: u32 = 3;
/// Maximum number of answers to other requests that are skipped.
const STRAY_MAX: usize = 16;

/// Polls chronyd.
#[derive(Debug)]
pub(crate) struct Chrony {
    options: ChronyOptions,
    sequence: u32,
    missed: u32,
}

impl Chrony {
    pub(crate) fn new(options: ChronyOptions) -> Self {
        Self { options, sequence: 0, missed: 0 }
    }

    /// Asks once and feeds the clock.
    pub(crate) fn step(&mut self, publisher: &mut Publisher) -> Result<(), String> {
        // The answer was true at some time after this, and its bound grows from here.
        let local_ns = publisher.local().now_ns();
        let lost = match self.ask() {
            Ok(Tracking { bound_ns, growth_ppt }) => {
                self.missed = 0;
                let bound_ns = bound_ns.saturating_add(self.options.reference_bound_ns);
                return publisher.report_host(HostReport { local_ns, bound_ns, bound_growth_ppt: growth_ppt });
            }
            Err(lost) => lost,
        };
        self.missed += 1;
        // One that says that it has no reference knows it at once.
        let is_over = matches!(lost, ChronyError::Reply(_)) || self.missed >= MISSED_MAX;
        if let ClockSource::Host(host) = publisher.clock()
            && is_over
        {
            host.on_lost();
        }
        Err(lost.to_string())
    }

    fn ask(&mut self) -> Result<Tracking, ChronyError> {
        let ChronyOptions { address, patience, .. } = self.options;
        self.sequence = self.sequence.wrapping_add(1);
        let silent = |e: std::io::Error| {
            let detail = match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_owned(),
                _ => e.to_string(),
            };
            ChronyError::Silent { address, detail }
        };
        let any: SocketAddr = if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(any).map_err(silent)?;
        // Connected, so that the system says when nobody listens, and others' datagrams are not read.
        socket.connect(address).map_err(silent)?;
        socket.send(&request(self.sequence)).map_err(silent)?;
        let until = Instant::now() + patience;
        let mut bytes = [0; 512];
        for _ in 0..STRAY_MAX {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            socket.set_read_timeout(Some(left)).map_err(silent)?;
            let length = socket.recv(&mut bytes).map_err(silent)?;
            if let Some(tracking) = read(&bytes[..length], self.sequence)? {
                return Ok(tracking);
            }
        }
        Err(ReplyError::Strange.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_the_protocol() {
        // A coefficient of 2^23 and an exponent of 2: 2^23 * 2^(2 - 25) = 1.
        assert_eq!(number((2 << 25) | (1 << 23)), 1.0);
        assert_eq!(number(0), 0.0);
        // -1 * 2^(25 - 25), and the same with a negative exponent.
        assert_eq!(number((25 << 25) | 0x01ff_ffff), -1.0);
        assert_eq!(number(((-5_i32 << 25).cast_unsigned()) | (1 << 20)), (-10_f64).exp2());
    }

    proptest! {
        /// Whatever answers, nothing panics.
        #[test]
        fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..160), sequence: u32, plausible: bool) {
            if plausible && bytes.len() >= 28 {
                bytes[..2].copy_from_slice(&[VERSION, REPLY]);
                bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
                bytes[6..8].copy_from_slice(&TRACKING_REPLY.to_be_bytes());
                bytes[8..10].fill(0);
                bytes[16..20].copy_from_slice(&sequence.to_be_bytes());
            }
            let read = read(&bytes, sequence);
            prop_assert!(bytes.len() >= REPLY_BYTES || !matches!(read, Ok(Some(_))));
        }
    }
}
