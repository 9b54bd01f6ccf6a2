//! A receiver of a tree on a socket.

use std::io;
use std::net::SocketAddr;

use walras_feed::control::Control;
use walras_relay::packet::{Packet, TreeKey};
use walras_relay::reader::Request;

use crate::relay_node::NodeCounts;
use crate::socket::{Received, Socket};

/// See the module's documentation.
#[derive(Debug)]
pub struct Leaf {
    socket: Socket,
    key: TreeKey,
    received: Received,
    counts: NodeCounts,
}

impl Leaf {
    /// A receiver on this socket.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey) -> Self {
        let received = Received::by(&socket);
        Self { socket, key, received, counts: NodeCounts::default() }
    }

    /// Its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Asks a rewinder at this address for messages; the answer comes as packets.
    pub fn ask(&self, request: &Request, tree: u32, now_ns: u64, to: SocketAddr) -> io::Result<()> {
        let mut bytes = Vec::new();
        Control::Ask(*request).encode(tree, now_ns, &self.key, &mut bytes);
        self.socket.send_to(&bytes, to)
    }

    /// What came so far. Copies count as first ones: the reader of each channel tells them apart.
    #[must_use]
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// Waits until something comes, as long as the socket may wait, and gives each sound packet. How many datagrams came.
    pub fn receive(&mut self, mut with: impl FnMut(&Packet<'_>)) -> io::Result<usize> {
        let Self { socket, key, received, counts } = self;
        let count = received.receive(socket)?;
        for bytes in received.packets() {
            match Packet::decode(bytes, key) {
                Ok(packet) => {
                    counts.first += 1;
                    with(&packet);
                }
                Err(error) => counts.refused(error),
            }
        }
        Ok(count)
    }
}
