//! When bytes of a socket reached this machine: the receive stamps of the kernel (`SO_TIMESTAMPING`, software).
//!
//! Each datagram has its own. Of bytes of a connection that are read at once the kernel gives the stamp of the last segment. So an
//! order that lay in the socket together with later bytes of the same connection counts as having come with them: never earlier than
//! it came.
//!
//! The kernel begins to stamp a moment after the first socket of the machine asked for it. What comes in that moment has no stamp.
//!
//! Hardware stamps are not asked for: they are by the network card's own clock, which nothing here compares with the system's.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

/// Room for what the kernel says of a read.
#[derive(Debug)]
pub struct KernelStamps {
    control: Vec<u8>,
}

impl Default for KernelStamps {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelStamps {
    /// For any number of sockets, one after the other.
    #[must_use]
    pub fn new() -> Self {
        Self { control: cmsg_space!(Timestamps) }
    }

    /// Has the kernel stamp what this socket receives.
    ///
    /// # Errors
    /// The kernel has no such stamps.
    pub fn ask(socket: &impl AsFd) -> io::Result<()> {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        Ok(setsockopt(socket, sockopt::Timestamping, &flags)?)
    }

    /// Reads what is there: how many bytes, and when the last of them came, by the system's clock.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where nothing is there, whether the socket blocks or not; others as the system has them.
    pub fn read(&mut self, socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut self.control), MsgFlags::MSG_DONTWAIT)?;
        let stamp = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampsns(stamps) => Some(as_ns(stamps.system)).filter(|ns| *ns > 0),
                _ => None,
            })
        });
        Ok((message.bytes, stamp))
    }
}

fn as_ns(time: TimeSpec) -> u64 {
    let (seconds, ns) = (u64::try_from(time.tv_sec()).unwrap_or(0), u64::try_from(time.tv_nsec()).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;

    /// The kernel begins to stamp long before.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Reads as soon as something is there.
    fn receive(stamps: &mut KernelStamps, socket: &impl AsRawFd, buffer: &mut [u8]) -> (usize, Option<u64>) {
        loop {
            match stamps.read(socket, buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(), // pause: until the kernel has carried it over
                read => return read.unwrap(),
            }
        }
    }

    #[test]
    fn datagrams_that_are_read_together_have_their_own_stamps() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (to, mut stamps, begun) = (socket.local_addr().unwrap(), KernelStamps::new(), Instant::now());
        KernelStamps::ask(&socket).unwrap();
        loop {
            socket.send_to(b"one", to).unwrap();
            let between_ns = walras_access::now().0;
            socket.send_to(b"two", to).unwrap();
            let [one, two] = [(); 2].map(|()| receive(&mut stamps, &socket, &mut [0; 8]));
            assert_eq!([one.0, two.0], [3, 3]);
            if let (Some(one_ns), Some(two_ns)) = (one.1, two.1) {
                assert!(one_ns <= between_ns && between_ns <= two_ns, "{one_ns} {between_ns} {two_ns}");
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the kernel never stamps what comes");
        }
    }

    /// The stamp lies between sending and reading, whenever it is read; without asking there is none.
    #[test]
    fn bytes_on_loopback_are_stamped_when_they_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let mut stamps = KernelStamps::new();
        let mut receive = |buffer: &mut [u8]| receive(&mut stamps, &server, buffer);
        client.write_all(b"unasked").unwrap();
        assert_eq!(receive(&mut [0; 64]), (7, None));
        KernelStamps::ask(&server).unwrap();
        let mut buffer = [0; 64];
        let begun = Instant::now();
        loop {
            let before_ns = walras_access::now().0;
            client.write_all(b"order").unwrap();
            let (len, stamp_ns) = receive(&mut buffer);
            let after_ns = walras_access::now().0;
            assert_eq!(&buffer[..len], b"order");
            if let Some(stamp_ns) = stamp_ns {
                assert!((before_ns..=after_ns).contains(&stamp_ns), "{before_ns} {stamp_ns} {after_ns}");
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "the kernel never stamps what comes");
        }
        drop(client);
        assert_eq!(receive(&mut buffer).0, 0, "the end");
    }
}
