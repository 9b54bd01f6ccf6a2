//! Wakes a poll to the microsecond, which by itself counts in milliseconds: orders are held for less.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};

/// A timer of the operating system.
#[derive(Debug)]
pub(in crate::runtime) struct Alarm(OwnedFd);

impl Alarm {
    pub(in crate::runtime) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self(timer))
    }

    /// Rings once after that time, and not for what was asked before. The poll tells of edges, and setting it makes it silent again, so nobody
    /// has to read from it.
    pub(in crate::runtime) fn set(&self, after: Duration) -> io::Result<()> {
        let timespec = |time: Duration| Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        // Nothing at all would turn it off.
        let it_value = timespec(after.max(Duration::from_nanos(1)));
        let spec = Itimerspec { it_interval: timespec(Duration::ZERO), it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_poll_that_would_wait_for_long_is_woken() {
        let mut poll = mio::Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), Token(7)).unwrap();
        let mut events = mio::Events::with_capacity(4);
        let begun = Instant::now();
        for _ in 0..3 {
            alarm.set(Duration::from_micros(300)).unwrap();
            poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(events.iter().any(|event| event.token() == Token(7)));
        }
        assert!(begun.elapsed() >= Duration::from_micros(900), "not before its time");
    }
}
