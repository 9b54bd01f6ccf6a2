//! The sender of a tree on a socket: packets of the feed to the first layer.

use std::io;
use std::net::SocketAddr;

use walras_feed::sender::Packets;
use walras_relay::live::Live;
use walras_relay::tree::Tree;

use crate::socket::{Outgoing, Socket};

/// See the module's documentation.
#[derive(Debug)]
pub struct SenderNode {
    socket: Socket,
    live: Live,
    hedge: u32,
    outgoing: Outgoing,
    /// Empty.
    children: Vec<u32>,
}

impl SenderNode {
    /// A sender of a tree whose nodes have these addresses, by number. As long as no relay is out, those of the first layer will do.
    #[must_use]
    pub fn new(socket: Socket, tree: &Tree, hedge: u32, nodes: &[SocketAddr]) -> Self {
        let outgoing = Outgoing::to(nodes, &socket);
        Self { socket, live: Live::all(tree), hedge, outgoing, children: Vec::new() }
    }

    /// Later packets go by this view, and name it.
    pub fn set_live(&mut self, live: Live) {
        self.live = live;
    }

    /// Packets that the system did not take.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.outgoing.lost()
    }

    /// Joined datagrams that the system did not take, whose packets went one by one.
    #[must_use]
    pub fn taken_apart(&self) -> u64 {
        self.outgoing.taken_apart()
    }

    /// Sends packets, each to the nodes of the first layer that its number says.
    pub fn send(&mut self, packets: &Packets) -> io::Result<()> {
        let Self { socket, live, hedge, outgoing, children } = self;
        for (number, (header, _)) in (0..).zip(packets.iter()) {
            live.children(None, header.packet, *hedge, children);
            children.drain(..).for_each(|child| outgoing.add(child, number));
        }
        outgoing.flush(socket, |number| packets.bytes(number as usize))
    }
}
