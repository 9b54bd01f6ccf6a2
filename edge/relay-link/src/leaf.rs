//! A receiver of a tree on a socket.

use std::io;
use std::net::SocketAddr;

use walras_feed::channel::{CHANNELS_MAX, held_until};
use walras_feed::control::{Control, RelayFigures};
use walras_feed::recall::RecallCounts;
use walras_relay::copies::CopiesSettings;
use walras_relay::keeping::Keeping;
use walras_relay::packet::{Packet, TreeKey};
use walras_relay::reader::Request;
use walras_relay::receiver_machine::{Newest, ReceiverMachine};

use crate::layout::Layout;
use crate::look::{self, Looks, now_ns};
use crate::relay_node::NodeCounts;
use crate::socket::{Received, Socket};

/// See the module's documentation.
#[derive(Debug)]
pub struct Leaf {
    socket: Socket,
    key: TreeKey,
    received: Received,
    counts: NodeCounts,
    looks: Looks,
    /// A packet that is newer than all before in its channel is a first copy.
    newest: Newest,
    /// Of a receiver that says how late market data comes, and which relays bring nothing.
    machine: Option<ReceiverMachine<SocketAddr>>,
    /// Empty.
    says: Vec<(SocketAddr, Keeping)>,
    bytes: Vec<u8>,
    /// What a gateway asked the replicas for.
    recalls: RecallCounts,
}

impl Leaf {
    /// A receiver on this socket.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey) -> Self {
        let received = Received::by(&socket);
        Self {
            socket,
            key,
            received,
            counts: NodeCounts::default(),
            looks: Looks::new(),
            newest: Newest::new(CHANNELS_MAX),
            machine: None,
            says: Vec::new(),
            bytes: Vec::new(),
            recalls: RecallCounts::default(),
        }
    }

    /// It stands at this place of the last layer, and reports to the relay above how late market data comes: call [`Leaf::receive_held`]
    /// from now on.
    #[must_use]
    pub fn reporting(mut self, layout: &Layout, place: u32) -> Self {
        let (of_tree, copies) = ((layout.tree_number, layout.hedge), CopiesSettings::default());
        self.machine = Some(ReceiverMachine::new(&layout.tree, of_tree, place, &layout.nodes(), copies));
        self
    }

    /// What the gateway has asked the replicas for, in all its trees. It says so when it is asked for its figures.
    pub fn set_recalls(&mut self, recalls: RecallCounts) {
        self.recalls = recalls;
    }

    /// Its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Asks a rewinder at this address for messages; the answer comes as packets. `now_ns` is the time of day, in ns since the Unix epoch:
    /// what was sent a moment ago is answered in full, once, and all else with a packet at most.
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

    /// Its host had no room for so many of the packets, which were of more channels than a venue has.
    pub fn add_no_room(&mut self, packets: u64) {
        self.counts.no_room += packets;
    }

    /// What it says when it is asked: of each packet newer than all before in its channel, the time under way counts.
    #[must_use]
    pub fn figures(&self) -> RelayFigures {
        let NodeCounts { first, forged, malformed, no_room: others, .. } = self.counts;
        let [transit_ns_p50, transit_ns_p99] = self.looks.percentiles();
        let late = self.machine.as_ref().map_or(0, ReceiverMachine::late);
        let recalls = self.recalls;
        let came = RelayFigures { first, forged, malformed, others, ..RelayFigures::default() };
        RelayFigures { transit_ns_p50, transit_ns_p99, late, recalls, ..came }
    }

    /// Waits until something comes, as long as the socket may wait, and gives each sound packet. How many datagrams came.
    pub fn receive(&mut self, mut with: impl FnMut(&Packet<'_>)) -> io::Result<usize> {
        self.receive_held(
            || None,
            |packet| {
                with(packet);
                false
            },
        )
    }

    /// The same for a receiver that holds packets until their release time by `clock`, and reports how late they come. `with` says whether
    /// a packet is a first copy: further ones are not late.
    pub fn receive_held(
        &mut self,
        clock: impl Fn() -> Option<u64>,
        mut with: impl FnMut(&Packet<'_>) -> bool,
    ) -> io::Result<usize> {
        let Self { socket, key, received, counts, looks, newest, machine, says, bytes, recalls: _ } = self;
        let count = received.receive(socket)?;
        // One look at the clocks for all that came together, once it is there.
        let (now_ns, venue_ns) = (now_ns(), machine.as_ref().and_then(|_| clock()));
        let mut asked = None;
        for (number, datagram) in received.packets().enumerate() {
            let packet = match Packet::decode(datagram, key) {
                Ok(packet) => packet,
                Err(error) => {
                    counts.refused(error);
                    continue;
                }
            };
            let (header, source) = (packet.header(), received.source(number));
            if let Some(Control::Look { question }) = Control::decode(&packet) {
                asked = source.map(|from| (question, header.tree, from));
                continue;
            }
            if let Some(keeping) = Keeping::decode(&packet) {
                machine.iter_mut().for_each(|machine| machine.on_keeping(now_ns, source, header, &keeping));
                continue;
            }
            counts.first += 1;
            let skipped = newest.skips(header);
            if skipped.is_some() {
                looks.add(now_ns.saturating_sub(header.sent_ns));
            }
            let is_first = with(&packet);
            let Some(machine) = machine else { continue };
            if let Some(source) = source {
                machine.on_packet(now_ns, source, header, is_first, skipped.unwrap_or(0));
            }
            if let (true, Some(venue_ns), Some(release_ns)) = (is_first, venue_ns, held_until(header)) {
                machine.on_held(venue_ns, release_ns);
            }
        }
        if let Some(machine) = machine {
            machine.on_timer(now_ns, venue_ns, says);
            for (to, keeping) in says.drain(..) {
                bytes.clear();
                keeping.encode(machine.tree_number(), now_ns, key, bytes);
                // A relay that is gone does not hear it. It is said again, then to another one.
                let _ = socket.send_to(bytes, to);
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
