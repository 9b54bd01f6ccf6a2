//! Datagrams in batches: many in one system call, and several of one size to one address as one that the kernel cuts.

mod receive;
mod send;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

pub use receive::Received;
pub use send::Outgoing;

/// Bytes of a socket's buffers that are asked for; the system may allow less.
const BUFFER_BYTES: libc::c_int = 8 << 20;

/// What the kernel does for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// It cuts large datagrams when it sends, and joins small ones when it receives.
    Segments,
    /// Nothing: each datagram is one.
    None,
}

/// A socket of a node.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    offload: Offload,
    /// For how long [`Received::receive`] asks the kernel again and again; `None`: it sleeps while nothing is there.
    spin: Option<Duration>,
}

impl Socket {
    /// Binds a socket whose receiving waits at most `wait`. With [`Offload::Segments`] it offloads as far as the kernel can.
    pub fn bind(address: SocketAddr, wait: Duration, offload: Offload) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(wait))?;
        // A smaller buffer is no failure: bursts that it does not hold are lost, and asked for again.
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            let _ = set(&socket, libc::SOL_SOCKET, option, BUFFER_BYTES);
        }
        // Older kernels know neither.
        let is_offloaded = offload == Offload::Segments
            && set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
            && set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        Ok(Self { socket, offload: if is_offloaded { Offload::Segments } else { Offload::None }, spin: None })
    }

    /// The same socket, which does not sleep: while nothing is there, [`Received::receive`] asks the kernel again and again, once at
    /// least and for `wait` at most. That takes a whole core, and saves the time in which the kernel wakes a thread.
    #[must_use]
    pub fn spinning(self, wait: Duration) -> Self {
        Self { spin: Some(wait), ..self }
    }

    /// Its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the kernel does for it.
    #[must_use]
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Sends one datagram.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(bytes, to).map(|_| ())
    }

    /// Receives one datagram with its sender; `None` where none came in time.
    pub fn receive_from<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<(&'b [u8], SocketAddr)>> {
        match self.socket.recv_from(buffer) {
            Ok((bytes, from)) => Ok(Some((&buffer[..bytes], from))),
            Err(error) if is_nothing_there(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether a call ended because nothing came, or by a signal, or by an answer that nobody listens at an address that was sent to.
fn is_nothing_there(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives during the call, and its length is given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for one control message, aligned as its header must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 32]);

const EMPTY: Control = Control([0; 32]);

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A socket that would sleep for an hour.
    fn bound() -> Socket {
        Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(3_600), Offload::None).unwrap()
    }

    #[test]
    fn a_socket_that_spins_asks_as_long_as_it_may_and_takes_what_comes() {
        let wait = Duration::from_millis(20);
        let (sender, spins) = (bound(), bound().spinning(wait));
        let (mut received, begun) = (Received::by(&spins), Instant::now());
        assert_eq!(received.receive(&spins).unwrap(), 0);
        assert!(begun.elapsed() >= wait, "not before its time");

        let spins = spins.spinning(Duration::from_secs(3_600));
        let mut came = Vec::new();
        for bytes in [&b"one"[..], b"two"] {
            sender.send_to(bytes, spins.address().unwrap()).unwrap();
        }
        while came.len() < 2 {
            received.receive(&spins).unwrap();
            came.extend(received.packets().map(<[u8]>::to_vec));
        }
        assert_eq!(came, [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(received.source(0), Some(sender.address().unwrap()));

        let once = spins.spinning(Duration::ZERO);
        assert_eq!(received.receive(&once).unwrap(), 0, "it asks once");
    }
}
