//! The mesh's socket: datagrams with the time at which the kernel got them.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::FRAME_BYTES_MAX;
use crate::LocalClock;
use crate::local::as_ns;

#[derive(Debug)]
pub(super) struct ProbeSocket {
    socket: UdpSocket,
    /// Room for one byte more than a datagram has: a longer one shows.
    bytes: [u8; FRAME_BYTES_MAX + 1],
    control: Vec<u8>,
}

impl ProbeSocket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(Self { socket, bytes: [0; FRAME_BYTES_MAX + 1], control: cmsg_space!(TimeSpec) })
    }

    /// Sends if there is room; whether it did. What is lost here is lost as on any network.
    pub(super) fn send(&self, bytes: &[u8], to: SocketAddr) -> bool {
        self.socket.send_to(bytes, to).is_ok()
    }

    /// A datagram that is there, and the clock's reading when it came. Without the kernel's stamp the clock is read now: too late,
    /// as if the datagram had waited in a queue.
    pub(super) fn receive(&mut self, clock: &LocalClock) -> Option<(&[u8], u64)> {
        let (length, stamp) = {
            let mut parts = [IoSliceMut::new(&mut self.bytes)];
            let message =
                recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut self.control), MsgFlags::MSG_DONTWAIT).ok()?;
            let stamp = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(at) => Some(as_ns(at)),
                    _ => None,
                })
            });
            (message.bytes, stamp)
        };
        let rx_ns = stamp.and_then(|stamp_ns| clock.at_system_ns(stamp_ns)).unwrap_or_else(|| clock.now_ns());
        Some((&self.bytes[..length], rx_ns))
    }

    /// Waits until a datagram is there, or for so long.
    pub(super) fn wait(&self, time: Duration) {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        // An interrupted wait is one that was shorter.
        let _ = poll(&mut ready, Some(&time));
    }
}
