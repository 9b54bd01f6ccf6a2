//! A receiver of a tree on a socket.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use walras_feed::control::{Control, RelayFigures};
use walras_relay::packet::{Header, Packet, TreeKey};
use walras_relay::reader::Request;

use crate::look::{self, Looks, now_ns};
use crate::relay_node::NodeCounts;
use crate::socket::{Received, Socket};

/// Channels whose newest packet is known; of others no time under way is kept.
const CHANNELS_MAX: usize = 30_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct Leaf {
    socket: Socket,
    key: TreeKey,
    received: Received,
    counts: NodeCounts,
    looks: Looks,
    /// By channel: the greatest number of a packet. A packet with a greater one is a first copy.
    newest: HashMap<u32, u64>,
}

impl Leaf {
    /// A receiver on this socket.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey) -> Self {
        let received = Received::by(&socket);
        Self { socket, key, received, counts: NodeCounts::default(), looks: Looks::new(), newest: HashMap::new() }
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

    /// What it says when it is asked: of each packet newer than all before in its channel, the time under way counts.
    #[must_use]
    pub fn figures(&self) -> RelayFigures {
        let NodeCounts { first, forged, malformed, .. } = self.counts;
        let [transit_ns_p50, transit_ns_p99] = self.looks.percentiles();
        RelayFigures { first, forged, malformed, transit_ns_p50, transit_ns_p99, ..RelayFigures::default() }
    }

    /// Waits until something comes, as long as the socket may wait, and gives each sound packet. How many datagrams came.
    pub fn receive(&mut self, mut with: impl FnMut(&Packet<'_>)) -> io::Result<usize> {
        let Self { socket, key, received, counts, looks, newest } = self;
        let count = received.receive(socket)?;
        let now_ns = if count > 0 { now_ns() } else { 0 };
        let mut asked = None;
        for (number, bytes) in received.packets().enumerate() {
            match Packet::decode(bytes, key) {
                Ok(packet) => {
                    if let Some(Control::Look { question }) = Control::decode(&packet) {
                        asked = received.source(number).map(|from| (question, packet.header().tree, from));
                        continue;
                    }
                    counts.first += 1;
                    if is_newest(newest, packet.header()) {
                        looks.add(now_ns.saturating_sub(packet.header().sent_ns));
                    }
                    with(&packet);
                }
                Err(error) => counts.refused(error),
            }
        }
        if let Some((question, tree, to)) = asked
            && self.looks.may_answer(now_ns)
        {
            look::answer(&self.socket, (tree, &self.key), (question, self.figures()), (now_ns, to));
        }
        Ok(count)
    }
}

fn is_newest(newest: &mut HashMap<u32, u64>, header: &Header) -> bool {
    let has_room = newest.len() < CHANNELS_MAX || newest.contains_key(&header.channel);
    if header.packet == 0 || !has_room {
        return false;
    }
    let last = newest.entry(header.channel).or_insert(0);
    let is_newest = header.packet > *last;
    *last = header.packet.max(*last);
    is_newest
}
