//! Receiving: as many datagrams as are there, in one call.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Instant;

use walras_relay::packet::PACKET_BYTES_MAX;

use super::{Control, EMPTY, Offload, Socket, is_nothing_there};

/// Datagrams of one call at most.
const SLOTS: usize = 64;
/// The longest datagram that the kernel joins of smaller ones.
const JOINED_BYTES_MAX: usize = 1 << 16;
/// One byte more than a packet, so that a longer one is seen to be longer.
const SINGLE_BYTES_MAX: usize = PACKET_BYTES_MAX + 1;
const NAME_BYTES: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

/// What one call received, and the room for it.
#[derive(Debug)]
pub struct Received {
    buffer: Box<[u8]>,
    slot_bytes: usize,
    packets: Vec<Range<usize>>,
    /// Who sent what lies in each slot.
    names: Box<[libc::sockaddr_storage]>,
    /// Datagrams that were longer than any packet.
    cut: u64,
}

impl Received {
    /// Room for what a socket receives.
    #[must_use]
    pub fn by(socket: &Socket) -> Self {
        let slot_bytes = match socket.offload {
            Offload::Segments => JOINED_BYTES_MAX,
            Offload::None => SINGLE_BYTES_MAX,
        };
        // SAFETY: a plain C structure of integers, for which all zeros are a value.
        let names = vec![unsafe { std::mem::zeroed() }; SLOTS].into();
        Self { buffer: vec![0; slot_bytes * SLOTS].into(), slot_bytes, packets: Vec::with_capacity(SLOTS), names, cut: 0 }
    }

    /// The packets that the last call received, in order.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.packets.iter().map(|range| &self.buffer[range.clone()])
    }

    /// One of them.
    #[must_use]
    pub fn packet(&self, at: usize) -> &[u8] {
        &self.buffer[self.packets[at].clone()]
    }

    /// Who sent one of them.
    #[must_use]
    pub fn source(&self, at: usize) -> Option<SocketAddr> {
        address_of(&self.names[self.packets[at].start / self.slot_bytes])
    }

    /// Datagrams so far that were longer than any packet.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Waits until something comes, as long as the socket may wait, and receives what is there. How many packets. A socket that spins
    /// does not sleep meanwhile.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        self.packets.clear();
        let mut controls = [EMPTY; SLOTS];
        // SAFETY: both are plain C structures of integers and pointers, for which all zeros are a value.
        let (mut parts, mut headers): ([libc::iovec; SLOTS], [libc::mmsghdr; SLOTS]) = unsafe { std::mem::zeroed() };
        let slots = self.buffer.chunks_exact_mut(self.slot_bytes).zip(&mut self.names);
        for ((((slot, name), part), header), control) in slots.zip(&mut parts).zip(&mut headers).zip(&mut controls) {
            (part.iov_base, part.iov_len) = (slot.as_mut_ptr().cast(), slot.len());
            let message = &mut header.msg_hdr;
            (message.msg_name, message.msg_namelen) = ((&raw mut *name).cast(), NAME_BYTES);
            (message.msg_iov, message.msg_iovlen) = (&raw mut *part, 1);
            (message.msg_control, message.msg_controllen) = ((&raw mut control.0).cast(), size_of::<Control>());
        }
        // A socket that spins asks until then.
        let until = socket.spin.map(|wait| Instant::now() + wait);
        let flags = if until.is_some() { libc::MSG_DONTWAIT } else { libc::MSG_WAITFORONE };
        let count = loop {
            // SAFETY: each header points to one part and one control, which live on this stack, and to its own name; each part to its own
            // slot of the buffer, which nothing else uses meanwhile. A call that receives nothing changes none of them.
            let count = unsafe {
                libc::recvmmsg(socket.socket.as_raw_fd(), headers.as_mut_ptr(), SLOTS as u32, flags, std::ptr::null_mut())
            };
            if let Ok(count) = usize::try_from(count) {
                break count;
            }
            let error = io::Error::last_os_error();
            if !is_nothing_there(&error) {
                return Err(error);
            }
            if until.is_none_or(|until| Instant::now() >= until) {
                return Ok(0);
            }
            std::hint::spin_loop();
        };
        for (slot, header) in headers.iter().take(count).enumerate() {
            let (start, length) = (slot * self.slot_bytes, (header.msg_len as usize).min(self.slot_bytes));
            let segment = segment_bytes(&header.msg_hdr).unwrap_or(length);
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || segment > PACKET_BYTES_MAX {
                self.cut += 1;
                continue;
            }
            let mut at = start;
            while at < start + length && segment > 0 {
                let end = (at + segment).min(start + length);
                self.packets.push(at..end);
                at = end;
            }
        }
        Ok(self.packets.len())
    }
}

/// An address as the kernel writes it.
fn address_of(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure it is, and the storage has room and alignment for each.
            let name: &libc::sockaddr_in = unsafe { &*(&raw const *name).cast() };
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(name.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name: &libc::sockaddr_in6 = unsafe { &*(&raw const *name).cast() };
            let ip = IpAddr::V6(Ipv6Addr::from(name.sin6_addr.s6_addr));
            // An address of IPv4 has its own name, not the one that a socket of IPv6 has for it.
            Some(SocketAddr::new(ip.to_canonical(), u16::from_be(name.sin6_port)))
        }
        _ => None,
    }
}

/// The size of the datagrams that the kernel joined to this one, if it did.
fn segment_bytes(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has filled the header's control, to which it points and which lives; the macros stay within its length.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if ((*control).cmsg_level, (*control).cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO) {
                let size: libc::c_int = std::ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                return usize::try_from(size).ok().filter(|size| *size > 0);
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    None
}
