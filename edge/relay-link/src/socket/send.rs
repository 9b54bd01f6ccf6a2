//! Sending: packets to many addresses in one call. Packets of one size to one address are one datagram for the kernel, which cuts it.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use super::{Control, EMPTY, Offload, Socket};

/// Datagrams of one call at most: what the kernel takes.
const DATAGRAMS_MAX: usize = 1_024;
/// Segments of one datagram at most: what every kernel that cuts takes.
const SEGMENTS_MAX: usize = 64;
/// Bytes of one datagram at most, beneath IPv6 and UDP.
const DATAGRAM_BYTES_MAX: usize = 65_000;

/// An address as system calls have it.
#[derive(Clone, Copy)]
struct Name {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Name {
    fn of(address: SocketAddr) -> Self {
        // SAFETY: a plain C structure of integers, for which all zeros are a value.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let length = match address {
            SocketAddr::V4(address) => put(&mut storage, name_of_v4(address)),
            SocketAddr::V6(address) => put(&mut storage, name_of_v6(address)),
        };
        Self { storage, length }
    }
}

fn put<T>(storage: &mut libc::sockaddr_storage, name: T) -> libc::socklen_t {
    assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>() && align_of::<T>() <= align_of::<libc::sockaddr_storage>());
    // SAFETY: the storage is large enough and aligned for any kind of address, which was just checked.
    unsafe { std::ptr::write((&raw mut *storage).cast(), name) };
    size_of::<T>() as libc::socklen_t
}

fn name_of_v4(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

fn name_of_v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: address.flowinfo(),
        sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
        sin6_scope_id: address.scope_id(),
    }
}

/// A datagram that is to be sent.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    node: u32,
    /// Its packets: the first, and how many, in the list of parts.
    first: usize,
    count: usize,
    /// The size of all its packets but the last, which may be shorter.
    segment: u16,
}

/// Packets on their way to the nodes of one layer. Each call of [`Outgoing::flush`] sends what was added since the one before.
pub struct Outgoing {
    names: Vec<Name>,
    /// By node: the numbers of packets that it gets.
    packets: Vec<Vec<u32>>,
    /// Nodes that get any, in the order in which they were first named.
    nodes: Vec<u32>,
    datagrams: Vec<Datagram>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    controls: Vec<Control>,
    has_segments: bool,
    lost: u64,
}

// SAFETY: its pointers are set in the call that uses them, and are forgotten in it.
unsafe impl Send for Outgoing {}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").field("nodes", &self.names.len()).field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Outgoing {
    /// To the nodes at these addresses, by a socket.
    #[must_use]
    pub fn to(addresses: &[SocketAddr], socket: &Socket) -> Self {
        Self {
            names: addresses.iter().map(|address| Name::of(*address)).collect(),
            packets: vec![Vec::new(); addresses.len()],
            nodes: Vec::new(),
            datagrams: Vec::new(),
            parts: Vec::new(),
            headers: Vec::new(),
            controls: Vec::new(),
            has_segments: socket.offload == Offload::Segments,
            lost: 0,
        }
    }

    /// A node gets a packet. A node without an address gets none.
    pub fn add(&mut self, node: u32, packet: u32) {
        let Some(packets) = self.packets.get_mut(node as usize) else { return };
        if packets.is_empty() {
            self.nodes.push(node);
        }
        packets.push(packet);
    }

    /// Datagrams that the system did not take.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends what was added. `bytes` has a packet's bytes.
    pub fn flush<'b>(&mut self, socket: &Socket, bytes: impl Fn(u32) -> &'b [u8]) -> io::Result<()> {
        self.cut_up(&bytes);
        let sent = self.send(socket);
        self.datagrams.clear();
        self.parts.clear();
        sent
    }

    /// Makes datagrams of what each node gets.
    fn cut_up<'b>(&mut self, bytes: &impl Fn(u32) -> &'b [u8]) {
        let Self { packets, nodes, datagrams, parts, has_segments, .. } = self;
        for node in nodes.drain(..) {
            let mut open: Option<(Datagram, usize)> = None;
            for packet in packets[node as usize].drain(..) {
                let packet = bytes(packet);
                let part = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
                let last_bytes = parts.last().map_or(0, |last: &libc::iovec| last.iov_len);
                parts.push(part);
                open = match open.take() {
                    // A shorter packet may only be the last.
                    Some((datagram, total))
                        if *has_segments
                            && last_bytes == usize::from(datagram.segment)
                            && packet.len() <= last_bytes
                            && datagram.count < SEGMENTS_MAX
                            && total + packet.len() <= DATAGRAM_BYTES_MAX =>
                    {
                        Some((Datagram { count: datagram.count + 1, ..datagram }, total + packet.len()))
                    }
                    whole => {
                        datagrams.extend(whole.map(|(datagram, _)| datagram));
                        let (first, segment) = (parts.len() - 1, packet.len() as u16);
                        Some((Datagram { node, first, count: 1, segment }, packet.len()))
                    }
                };
            }
            datagrams.extend(open.map(|(datagram, _)| datagram));
        }
    }

    fn send(&mut self, socket: &Socket) -> io::Result<()> {
        let mut at = 0;
        while at < self.datagrams.len() {
            let end = self.datagrams.len().min(at + DATAGRAMS_MAX);
            self.point(at..end);
            // SAFETY: the headers were just made to point to names, parts and controls, none of which changes before the call ends; the
            // parts point to the packets' bytes, which `flush` borrows.
            let count =
                unsafe { libc::sendmmsg(socket.socket.as_raw_fd(), self.headers.as_mut_ptr(), self.headers.len() as u32, 0) };
            let error = io::Error::last_os_error();
            match usize::try_from(count) {
                Ok(count) if count > 0 => at += count,
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                // The path does not take it, or the system has no room: this datagram is lost, the others are not.
                _ if is_of_one_datagram(&error) => {
                    self.lost += self.datagrams[at].count as u64;
                    at += 1;
                }
                _ => return Err(error),
            }
        }
        self.headers.clear();
        Ok(())
    }

    /// Makes the headers of these datagrams.
    fn point(&mut self, range: std::ops::Range<usize>) {
        let Self { names, datagrams, parts, headers, controls, .. } = self;
        let datagrams = &datagrams[range];
        headers.clear();
        controls.clear();
        controls.resize(datagrams.len(), EMPTY);
        for (datagram, control) in datagrams.iter().zip(controls.iter_mut()) {
            let name = &mut names[datagram.node as usize];
            // SAFETY: a plain C structure of integers and pointers, for which all zeros are a value.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            let message = &mut header.msg_hdr;
            (message.msg_name, message.msg_namelen) = ((&raw mut name.storage).cast(), name.length);
            let own = &mut parts[datagram.first..datagram.first + datagram.count];
            (message.msg_iov, message.msg_iovlen) = (own.as_mut_ptr(), datagram.count);
            if datagram.count > 1 {
                put_segment(message, control, datagram.segment);
            }
            headers.push(header);
        }
    }
}

/// Says of what size the datagrams are that this one is cut into.
fn put_segment(message: &mut libc::msghdr, control: &mut Control, bytes: u16) {
    let size = size_of::<u16>() as u32;
    // SAFETY: the control is aligned for a header and has room for it and two bytes; it lives as long as the message, whose control it
    // becomes.
    unsafe {
        message.msg_control = (&raw mut control.0).cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as usize;
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
        std::ptr::write_unaligned(libc::CMSG_DATA(header).cast(), bytes);
    }
}

/// Whether an error concerns the datagram and not the socket.
fn is_of_one_datagram(error: &io::Error) -> bool {
    let of_path = [libc::EMSGSIZE, libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ECONNREFUSED, libc::EPERM, libc::EIO, libc::EINVAL];
    let of_room = [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN];
    error.raw_os_error().is_some_and(|code| of_path.contains(&code) || of_room.contains(&code))
}
