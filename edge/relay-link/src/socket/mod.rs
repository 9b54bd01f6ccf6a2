//! Datagrams in batches: many in one system call, and several of one size to one address as one that the kernel cuts.

mod receive;
mod send;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
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

/// Addresses that a socket reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
    /// A socket of IPv6 that has IPv4 too.
    Both,
}

/// A socket of a node.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    family: Family,
    offload: Offload,
    /// For how long [`Received::receive`] asks the kernel again and again; `None`: it sleeps while nothing is there.
    spin: Option<Duration>,
}

impl Socket {
    /// Binds a socket whose receiving waits at most `wait`. With [`Offload::Segments`] it offloads as far as the kernel can.
    pub fn bind(address: SocketAddr, wait: Duration, offload: Offload) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let family = family_of(&socket)?;
        socket.set_read_timeout(Some(wait))?;
        // A smaller buffer is no failure: bursts that it does not hold are lost, and asked for again.
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            let _ = set(&socket, libc::SOL_SOCKET, option, BUFFER_BYTES);
        }
        // Older kernels know neither.
        let is_offloaded = offload == Offload::Segments
            && set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
            && set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        Ok(Self { socket, family, offload: if is_offloaded { Offload::Segments } else { Offload::None }, spin: None })
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

    /// Whether it can send to an address of this kind, IPv4 or IPv6. One that is bound to `[::]` has both.
    #[must_use]
    pub fn reaches(&self, to: SocketAddr) -> bool {
        match (self.family, by_its_own_name(to)) {
            (Family::Both, _) | (Family::V4, SocketAddr::V4(_)) | (Family::V6, SocketAddr::V6(_)) => true,
            (Family::V4, SocketAddr::V6(_)) | (Family::V6, SocketAddr::V4(_)) => false,
        }
    }

    /// What it has to call an address: a socket of IPv6 has other names for addresses of IPv4.
    fn name_of(&self, to: SocketAddr) -> SocketAddr {
        match (self.family, by_its_own_name(to)) {
            (Family::V6 | Family::Both, SocketAddr::V4(to)) => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
            (_, to) => to,
        }
    }

    /// Sends one datagram.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(bytes, self.name_of(to)).map(|_| ())
    }

    /// Receives one datagram with its sender; `None` where none came in time.
    pub fn receive_from<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<(&'b [u8], SocketAddr)>> {
        match self.socket.recv_from(buffer) {
            Ok((bytes, from)) => Ok(Some((&buffer[..bytes], by_its_own_name(from)))),
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

/// An address of IPv4 as itself, where a socket of IPv6 has another name for it.
fn by_its_own_name(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

fn family_of(socket: &UdpSocket) -> io::Result<Family> {
    Ok(match socket.local_addr()? {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(all) if all.ip().is_unspecified() && !has(socket, libc::SOL_IPV6, libc::IPV6_V6ONLY)? => Family::Both,
        SocketAddr::V6(_) => Family::V6,
    })
}

/// Whether an option of a socket is on.
fn has(socket: &UdpSocket, level: libc::c_int, option: libc::c_int) -> io::Result<bool> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value and its length live during the call, and the length is that of the value.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value != 0) } else { Err(io::Error::last_os_error()) }
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

    #[test]
    fn a_socket_says_what_it_reaches() {
        let [v4, v6, mapped]: [SocketAddr; 3] =
            ["10.0.0.1:7", "[fd00::1]:7", "[::ffff:10.0.0.1]:7"].map(|address| address.parse().unwrap());
        let reached = |socket: &Socket| [v4, v6, mapped].map(|to| socket.reaches(to));
        assert_eq!(reached(&bound()), [true, false, true]);
        assert_eq!([v4, mapped].map(|to| bound().name_of(to)), [v4, v4]);
        let Ok(both) = Socket::bind("[::]:0".parse().unwrap(), Duration::from_secs(20), Offload::None) else {
            println!("skipped: this system has no IPv6");
            return;
        };
        if both.family == Family::V6 {
            println!("skipped: sockets of IPv6 have no IPv4 on this system (net.ipv6.bindv6only)");
            return;
        }
        assert_eq!(reached(&both), [true; 3]);
        assert_eq!([v4, v6, mapped].map(|to| both.name_of(to)), [mapped, v6, mapped]);
        // Both ways an address of IPv4 has its own name.
        let (other, mut buffer) = (bound(), [0; 8]);
        other.send_to(b"one", SocketAddr::new([127, 0, 0, 1].into(), both.address().unwrap().port())).unwrap();
        let (bytes, from) = both.receive_from(&mut buffer).unwrap().expect("loopback loses nothing");
        assert_eq!((bytes, from), (&b"one"[..], other.address().unwrap()));
        both.send_to(b"two", from).unwrap();
        let mut received = Received::by(&other);
        assert_eq!(received.receive(&other).unwrap(), 1);
        other.send_to(b"three", SocketAddr::new([127, 0, 0, 1].into(), both.address().unwrap().port())).unwrap();
        let mut received = Received::by(&both);
        assert_eq!((received.receive(&both).unwrap(), received.source(0)), (1, Some(other.address().unwrap())));
    }
}
