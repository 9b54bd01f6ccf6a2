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
        Ok(Self { socket, offload: if is_offloaded { Offload::Segments } else { Offload::None } })
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
