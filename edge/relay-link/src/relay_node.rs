//! A relay on a socket: what comes is checked, and the first copy of each packet goes on to its children as it is.

use std::io;
use std::net::SocketAddr;

use walras_relay::packet::{Packet, PacketError, TreeKey};
use walras_relay::relay::{Arrival, Relay};

use crate::socket::{Outgoing, Received, Socket};

/// What came to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// First copies of packets.
    pub first: u64,
    /// Further copies, and packets that are older than any that is remembered.
    pub copies: u64,
    /// Packets of other trees, and such as no relay passes on.
    pub others: u64,
    /// Datagrams without the tree's seal.
    pub forged: u64,
    /// Datagrams that are no packet of this version.
    pub malformed: u64,
}

impl NodeCounts {
    pub(crate) fn refused(&mut self, error: PacketError) {
        match error {
            PacketError::Seal => self.forged += 1,
            PacketError::Length(_) | PacketError::Version(_) | PacketError::Malformed => self.malformed += 1,
        }
    }
}

/// One relay of a tree.
#[derive(Debug)]
pub struct RelayNode {
    socket: Socket,
    relay: Relay,
    key: TreeKey,
    received: Received,
    outgoing: Outgoing,
    children: Vec<u32>,
    counts: NodeCounts,
}

impl RelayNode {
    /// A relay whose next layer has these addresses, by place.
    #[must_use]
    pub fn new(socket: Socket, relay: Relay, key: TreeKey, next_layer: &[SocketAddr]) -> Self {
        let (received, outgoing) = (Received::by(&socket), Outgoing::to(next_layer, &socket));
        Self { socket, relay, key, received, outgoing, children: Vec::new(), counts: NodeCounts::default() }
    }

    /// What came so far.
    #[must_use]
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// Packets that the system did not take when they were to go on.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.outgoing.lost()
    }

    /// Waits until something comes, as long as the socket may wait, and passes it on. How many packets came.
    pub fn step(&mut self) -> io::Result<usize> {
        let Self { socket, relay, key, received, outgoing, children, counts } = self;
        let count = received.receive(socket)?;
        for (number, bytes) in (0..).zip(received.packets()) {
            match Packet::decode(bytes, key) {
                Ok(packet) => match relay.packet(packet.header(), children) {
                    Arrival::First => {
                        counts.first += 1;
                        children.drain(..).for_each(|child| outgoing.add(child, number));
                    }
                    Arrival::Copy | Arrival::TooOld => counts.copies += 1,
                    Arrival::NotOurs => counts.others += 1,
                },
                Err(error) => counts.refused(error),
            }
        }
        outgoing.flush(socket, |number| received.packet(number as usize))?;
        Ok(count)
    }
}
