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
/// Packets to a node after which joining them is tried again: the path may be another one by then.
const JOINING_AGAIN_AFTER: u32 = 1 << 16;

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

/// Whether packets to a node may be joined. The kernel cuts no datagram into parts that the path does not take whole: such packets go one
/// by one, in fragments of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joining {
    /// The size from which on packets are not joined.
    from_bytes: u16,
    /// Packets until this is forgotten.
    left: u32,
}

impl Joining {
    /// Nothing is known against it. No packet is so long.
    const ALL: Self = Self { from_bytes: u16::MAX, left: 0 };

    /// So many packets go to the node.
    fn go(&mut self, packets: usize) {
        if *self == Self::ALL {
            return;
        }
        self.left = self.left.saturating_sub(u32::try_from(packets).unwrap_or(u32::MAX));
        if self.left == 0 {
            *self = Self::ALL;
        }
    }

    /// Packets of this size could not be joined.
    fn refuse(&mut self, bytes: u16) {
        *self = Self { from_bytes: self.from_bytes.min(bytes), left: JOINING_AGAIN_AFTER };
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
    /// By node.
    joining: Vec<Joining>,
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
    taken_apart: u64,
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
            names: addresses.iter().map(|address| Name::of(socket.name_of(*address))).collect(),
            joining: vec![Joining::ALL; addresses.len()],
            packets: vec![Vec::new(); addresses.len()],
            nodes: Vec::new(),
            datagrams: Vec::new(),
            parts: Vec::new(),
            headers: Vec::new(),
            controls: Vec::new(),
            has_segments: socket.offload == Offload::Segments,
            lost: 0,
            taken_apart: 0,
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

    /// Joined datagrams that the system did not take, whose packets went one by one: the path's MTU has no room for a packet.
    #[must_use]
    pub fn taken_apart(&self) -> u64 {
        self.taken_apart
    }

    /// Sends what was added. `bytes` has a packet's bytes. What does not reach one node changes nothing for the others.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn flush<'b>(&mut self, socket: &Socket, bytes: impl Fn(u32) -> &'b [u8]) -> io::Result<()> {
        self.cut_up(&bytes);
        let sent = self.send(socket);
        self.datagrams.clear();
        self.parts.clear();
        self.headers.clear();
        sent
    }

    /// Makes datagrams of what each node gets.
    fn cut_up<'b>(&mut self, bytes: &impl Fn(u32) -> &'b [u8]) {
        let Self { packets, nodes, datagrams, parts, joining, has_segments, .. } = self;
        for node in nodes.drain(..) {
            let joining = &mut joining[node as usize];
            joining.go(packets[node as usize].len());
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
                            && datagram.segment < joining.from_bytes
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
            self.point(at..self.datagrams.len().min(at + DATAGRAMS_MAX));
            at = self.send_pointed(socket, at)?;
        }
        Ok(())
    }

    /// Sends the datagrams whose headers were just made, of which the first has the number `first`. The number of the one to go on with.
    fn send_pointed(&mut self, socket: &Socket, first: usize) -> io::Result<usize> {
        let mut sent = 0;
        while sent < self.headers.len() {
            let headers = &mut self.headers[sent..];
            // SAFETY: the headers were just made to point to names, parts and controls, none of which changes before the last call ends;
            // the parts point to the packets' bytes, which `flush` borrows.
            let count = unsafe { libc::sendmmsg(socket.socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, 0) };
            let error = io::Error::last_os_error();
            let datagram = self.datagrams[first + sent];
            match usize::try_from(count) {
                Ok(count) if count > 0 => sent += count,
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                _ if datagram.count > 1 && is_of_joining(&error) => {
                    self.take_apart(first + sent);
                    break;
                }
                _ if is_of_socket(&error) => return Err(error),
                // The path does not take it, or the system has no room: this datagram is lost, the others are not.
                _ => {
                    self.lost += datagram.count as u64;
                    sent += 1;
                }
            }
        }
        Ok(first + sent)
    }

    /// The packets of a joined datagram go one by one, and later ones to the same node do too.
    fn take_apart(&mut self, at: usize) {
        let Self { datagrams, parts, joining, taken_apart, .. } = self;
        let Datagram { node, first, count, segment } = datagrams[at];
        joining[node as usize].refuse(segment);
        *taken_apart += 1;
        let alone = |part: usize| Datagram { node, first: part, count: 1, segment: parts[part].iov_len as u16 };
        drop(datagrams.splice(at..=at, (first..first + count).map(alone)));
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

/// Whether an error may concern joining alone: the kernel takes no joined datagram whose packets have more bytes than the path's MTU, nor
/// one to a path that cannot cut. Alone it may take the packets.
fn is_of_joining(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [libc::EINVAL, libc::EMSGSIZE, libc::EIO].contains(&code))
}

/// Whether an error concerns the socket and not one datagram. All errors of addresses, paths and room concern one: another node's kind of
/// address, an interface that is down, a firewall.
fn is_of_socket(error: &io::Error) -> bool {
    let of_socket = [libc::EBADF, libc::ENOTSOCK, libc::EFAULT, libc::ENOSYS, libc::EOPNOTSUPP, libc::EPIPE];
    error.raw_os_error().is_none_or(|code| of_socket.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Received;
    use super::*;

    fn bound(offload: Offload) -> Socket {
        Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(20), offload).unwrap()
    }

    /// What comes, as many packets.
    fn received(socket: &Socket, packets: usize) -> Vec<Vec<u8>> {
        let (mut received, mut came) = (Received::by(socket), Vec::new());
        while came.len() < packets {
            assert!(received.receive(socket).unwrap() > 0, "{} of {packets} came", came.len());
            came.extend(received.packets().map(<[u8]>::to_vec));
        }
        came
    }

    /// A socket of IPv4 has no way to an address of IPv6, and nothing may be sent to a broadcast address.
    #[test]
    fn nodes_that_cannot_be_reached_lose_their_packets_and_the_others_get_theirs() {
        for offload in [Offload::Segments, Offload::None] {
            let (sender, receivers) = (bound(offload), [bound(offload), bound(offload)]);
            let [one, other] = receivers.each_ref().map(|socket| socket.address().unwrap());
            let far = ["[fd00::1]:7400", "255.255.255.255:7400", "[::1]:7400"].map(|address| address.parse().unwrap());
            let mut outgoing = Outgoing::to(&[far[0], one, far[1], far[2], other], &sender);
            let packets = [vec![1; 100], vec![2; 100], vec![3; 90]];
            for round in 1..=3 {
                for (number, _) in (0..).zip(&packets) {
                    (0..5).for_each(|node| outgoing.add(node, number));
                }
                outgoing.flush(&sender, |number| &packets[number as usize][..]).unwrap();
                assert_eq!(outgoing.lost(), round * 3 * 3);
            }
            for receiver in &receivers {
                assert_eq!(received(receiver, 9), vec![packets.to_vec(); 3].concat());
            }
        }
    }

    #[test]
    fn packets_that_a_path_does_not_take_joined_go_alone_for_a_while() {
        let mut joining = Joining::ALL;
        joining.go(1 << 20);
        assert_eq!(joining, Joining::ALL);
        joining.refuse(1_400);
        joining.refuse(1_450);
        assert_eq!(joining.from_bytes, 1_400, "the least one");
        joining.go(JOINING_AGAIN_AFTER as usize - 1);
        assert_eq!((joining.from_bytes, joining.left), (1_400, 1));
        joining.go(7);
        assert_eq!(joining, Joining::ALL, "the path may be another one");
    }

    #[test]
    fn what_was_joined_is_taken_apart_in_its_place() {
        let sender = bound(Offload::Segments);
        let mut outgoing = Outgoing::to(&[sender.address().unwrap(); 2], &sender);
        let packets = [vec![1; 60], vec![2; 60], vec![3; 50]];
        for (node, number) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
            outgoing.add(node, number);
        }
        outgoing.has_segments = true;
        outgoing.cut_up(&|number: u32| &packets[number as usize][..]);
        let shape = |outgoing: &Outgoing| -> Vec<_> {
            let datagrams = outgoing.datagrams.iter();
            datagrams.map(|datagram| (datagram.node, datagram.first, datagram.count, datagram.segment)).collect()
        };
        assert_eq!(shape(&outgoing), [(0, 0, 3, 60), (1, 3, 1, 60)]);
        outgoing.take_apart(0);
        assert_eq!(shape(&outgoing), [(0, 0, 1, 60), (0, 1, 1, 60), (0, 2, 1, 50), (1, 3, 1, 60)]);
        assert_eq!((outgoing.taken_apart(), outgoing.joining[0].from_bytes, outgoing.joining[1]), (1, 60, Joining::ALL));
    }
}
