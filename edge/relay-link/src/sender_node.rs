//! The sender of a tree on a socket: packets of the feed to the first layer.

use std::io;
use std::net::SocketAddr;

use walras_feed::sender::Packets;
use walras_relay::tree::Tree;

use crate::socket::{Outgoing, Socket};

/// See the module's documentation.
#[derive(Debug)]
pub struct SenderNode {
    socket: Socket,
    tree: Tree,
    hedge: u32,
    outgoing: Outgoing,
}

impl SenderNode {
    /// A sender whose first layer has these addresses, by place.
    #[must_use]
    pub fn new(socket: Socket, tree: Tree, hedge: u32, first_layer: &[SocketAddr]) -> Self {
        let outgoing = Outgoing::to(first_layer, &socket);
        Self { socket, tree, hedge, outgoing }
    }

    /// Packets that the system did not take.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.outgoing.lost()
    }

    /// Sends packets, each to the nodes of the first layer that its number says.
    pub fn send(&mut self, packets: &Packets) -> io::Result<()> {
        let Self { socket, tree, hedge, outgoing } = self;
        for (number, (header, _)) in (0..).zip(packets.iter()) {
            tree.children(0, 0, header.packet, *hedge).for_each(|child| outgoing.add(child, number));
        }
        outgoing.flush(socket, |number| packets.bytes(number as usize))
    }
}
