//! Receivers' sockets on loopback whose datagrams the kernel stamps when they come, so it does not matter how late they are read.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use walras_entry_port::KernelStamps;
use walras_relay::packet::PACKET_BYTES_MAX;

/// How long [`Stamped::wait`] sleeps at most.
const WAIT: Duration = Duration::from_millis(20);
/// The kernel stamps within this after it was asked.
const PATIENCE: Duration = Duration::from_secs(20);

/// The sockets of all receivers.
pub(super) struct Stamped {
    sockets: Vec<UdpSocket>,
    stamps: KernelStamps,
    buffer: Box<[u8]>,
}

impl Stamped {
    /// So many receivers, at least one. The kernel stamps what comes from now on.
    pub(super) fn open(count: u32) -> anyhow::Result<Self> {
        let bind = |_| -> anyhow::Result<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a receiver's socket on loopback")?;
            socket.set_read_timeout(Some(WAIT)).context("bounding a receiver's sleep")?;
            KernelStamps::ask(&socket).context("asking the kernel for receive stamps")?;
            Ok(socket)
        };
        let sockets = (0..count).map(bind).collect::<anyhow::Result<Vec<_>>>()?;
        let mut opened = Self { sockets, stamps: KernelStamps::new(), buffer: vec![0; PACKET_BYTES_MAX].into() };
        opened.wait_for_stamps()?;
        Ok(opened)
    }

    /// The kernel begins to stamp a moment after it was asked.
    fn wait_for_stamps(&mut self) -> anyhow::Result<()> {
        let Self { sockets, stamps, buffer } = self;
        let first = sockets.first().context("there is a receiver")?;
        let (to, begun, mut is_stamped) = (first.local_addr()?, Instant::now(), false);
        while begun.elapsed() < PATIENCE {
            // No packet is so short, so nobody takes it for one.
            first.send_to(&[0], to).context("sending to a receiver's socket")?;
            while let Some((_, stamp_ns)) = read(stamps, first, buffer)? {
                is_stamped = stamp_ns.is_some();
            }
            if is_stamped {
                return Ok(());
            }
            std::thread::yield_now(); // pause: the kernel begins to stamp
        }
        bail!("the kernel has not stamped any datagram for {} s", PATIENCE.as_secs())
    }

    /// The receivers' addresses, in order.
    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.sockets.iter().map(UdpSocket::local_addr).collect()
    }

    /// Sleeps until the first receiver has something, for some milliseconds at most.
    pub(super) fn wait(&self) -> anyhow::Result<()> {
        let Some(first) = self.sockets.first() else { return Ok(()) };
        match first.peek_from(&mut [0]) {
            Ok(_) => Ok(()),
            Err(error) if is_nothing_there(&error) => Ok(()),
            Err(error) => Err(error).context("waiting at a receiver's socket"),
        }
    }

    /// Gives each datagram that is there: the receiver's place, when it came in ns since the Unix epoch, and its bytes.
    pub(super) fn drain(&mut self, mut with: impl FnMut(usize, u64, &[u8])) -> anyhow::Result<()> {
        let Self { sockets, stamps, buffer } = self;
        for (place, socket) in sockets.iter().enumerate() {
            while let Some((bytes, stamp_ns)) = read(stamps, socket, buffer)? {
                // Only what came before the kernel began to stamp has none.
                if let Some(stamp_ns) = stamp_ns {
                    with(place, stamp_ns, &buffer[..bytes]);
                }
            }
        }
        Ok(())
    }
}

/// One datagram, if one is there.
fn read(stamps: &mut KernelStamps, socket: &UdpSocket, buffer: &mut [u8]) -> anyhow::Result<Option<(usize, Option<u64>)>> {
    match stamps.read(socket, buffer) {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_nothing_there(&error) => Ok(None),
        Err(error) => Err(error).context("reading a receiver's socket"),
    }
}

fn is_nothing_there(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The least value that so many of a hundred do not exceed. `sorted` has one at least.
pub(super) fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_given_with_its_stamp_however_late_it_is_read() {
        let mut receivers = Stamped::open(3).unwrap();
        let (to, from) = (receivers.addresses().unwrap(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let before_ns = walras_access::now().0;
        for (place, to) in to.iter().enumerate() {
            from.send_to(&[7, place as u8], to).unwrap();
        }
        let sent_ns = walras_access::now().0;
        receivers.wait().unwrap();
        let (mut came, begun) = (Vec::new(), Instant::now());
        while came.len() < 3 {
            receivers
                .drain(|place, stamp_ns, bytes| {
                    // Others are of the wait for stamps.
                    if let &[7, at] = bytes {
                        came.push((place, usize::from(at), stamp_ns));
                    }
                })
                .unwrap();
            assert!(begun.elapsed() < PATIENCE, "{came:?}");
        }
        came.sort_unstable();
        for (at, (place, said, stamp_ns)) in came.into_iter().enumerate() {
            assert_eq!((place, said), (at, at));
            assert!((before_ns..=sent_ns).contains(&stamp_ns), "{before_ns} {stamp_ns} {sent_ns}");
        }
    }

    #[test]
    fn quantiles_of_few_values() {
        let of = |count: u32, percent| quantile(&(1..=count).map(f64::from).collect::<Vec<_>>(), percent);
        assert_eq!([of(100, 50), of(100, 90), of(1, 90), of(10, 99)], [50.0, 90.0, 1.0, 10.0]);
    }
}
