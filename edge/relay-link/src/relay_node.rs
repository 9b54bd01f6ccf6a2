//! A relay on a socket: what comes is checked, and the first copy of each packet goes on to its children as it is.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use walras_feed::channel::held_until;
use walras_feed::control::{Control, RelayFigures};
use walras_relay::copies::CopiesSettings;
use walras_relay::packet::{Packet, PacketError, TreeKey};
use walras_relay::relay::Relay;
use walras_relay::relay_machine::{Came, MachineSettings, RelayMachine};

use crate::look::{self, Looks, now_ns};
use crate::socket::{Outgoing, Received, Socket};

/// What came to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// First copies of packets.
    pub first: u64,
    /// Of these, those that came by a hedge before the copy of the relay's own parent.
    pub hedged: u64,
    /// Further copies, and packets that are older than any that is remembered.
    pub copies: u64,
    /// Packets of other trees, and such as no relay passes on.
    pub others: u64,
    /// Datagrams without the tree's seal.
    pub forged: u64,
    /// Datagrams that are no packet of this version.
    pub malformed: u64,
    /// Packets of more channels than a venue has.
    pub no_room: u64,
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
    /// All that is decided is decided by it.
    machine: RelayMachine<SocketAddr>,
    key: TreeKey,
    received: Received,
    outgoing: Outgoing,
    counts: NodeCounts,
    looks: Looks,
    begun: Instant,
    /// Of the last message.
    bytes: Vec<u8>,
}

impl RelayNode {
    /// A relay of a tree whose nodes have these addresses, by number. Its socket should wait for some milliseconds at most: between its
    /// waits the relay watches its sibling. `seed` is random, so that no answer to an earlier process counts.
    #[must_use]
    pub fn new(socket: Socket, relay: Relay, key: TreeKey, nodes: &[SocketAddr], seed: u64) -> Self {
        let (received, outgoing) = (Received::by(&socket), Outgoing::to(nodes, &socket));
        let settings = MachineSettings { copies: CopiesSettings::default(), held_until, seed };
        Self {
            socket,
            machine: RelayMachine::new(relay, nodes.to_vec(), settings),
            key,
            received,
            outgoing,
            counts: NodeCounts::default(),
            looks: Looks::new(),
            begun: Instant::now(),
            bytes: Vec::new(),
        }
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

    /// Joined datagrams that the system did not take, whose packets went one by one.
    #[must_use]
    pub fn taken_apart(&self) -> u64 {
        self.outgoing.taken_apart()
    }

    /// What it says when it is asked.
    #[must_use]
    pub fn figures(&self) -> RelayFigures {
        let NodeCounts { first, hedged, copies, others, forged, malformed, no_room } = self.counts;
        let others = others + no_room;
        let [transit_ns_p50, transit_ns_p99] = self.looks.percentiles();
        let (lost, not_taken) = (self.machine.relay().lost(), self.outgoing.lost());
        // It neither holds market data nor asks replicas for any.
        let came = RelayFigures { first, hedged, copies, others, forged, malformed, ..RelayFigures::default() };
        RelayFigures { lost, not_taken, transit_ns_p50, transit_ns_p99, ..came }
    }

    /// Waits until something comes, as long as the socket may wait, passes it on, and watches its sibling. How many packets came.
    pub fn step(&mut self) -> io::Result<usize> {
        let count = self.received.receive(&self.socket)?;
        // One look at the clock for all that came together.
        let (now_ns, elapsed_ns) = if count > 0 { (now_ns(), self.elapsed_ns()) } else { (0, 0) };
        let asked = self.pass_on(now_ns, elapsed_ns);
        let Self { socket, outgoing, received, .. } = self;
        outgoing.flush(socket, |number| received.packet(number as usize))?;
        if let Some((question, to)) = asked
            && self.looks.may_answer(now_ns)
        {
            let tree = self.machine.relay().tree_number();
            look::answer(&self.socket, (tree, &self.key), (question, self.figures()), (now_ns, to));
        }
        self.machine.on_timer(self.elapsed_ns());
        self.say();
        Ok(count)
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Gives what came to the machine, and the first copy of each packet to those below. The time of day, and that since the relay began.
    /// Who asks for figures, and the question.
    fn pass_on(&mut self, now_ns: u64, elapsed_ns: u64) -> Option<(u64, SocketAddr)> {
        let Self { machine, key, received, outgoing, counts, looks, .. } = self;
        let mut asked = None;
        for (number, bytes) in (0..).zip(received.packets()) {
            let packet = match Packet::decode(bytes, key) {
                Ok(packet) => packet,
                Err(error) => {
                    counts.refused(error);
                    continue;
                }
            };
            let source = received.source(number as usize);
            match machine.on_packet(elapsed_ns, source, &packet) {
                Came::First { to, is_hedged, .. } => {
                    counts.first += 1;
                    counts.hedged += u64::from(is_hedged);
                    looks.add(now_ns.saturating_sub(packet.header().sent_ns));
                    to.iter().for_each(|child| outgoing.add(*child, number));
                }
                Came::Copy | Came::TooOld => counts.copies += 1,
                Came::NoRoom => counts.no_room += 1,
                Came::Kept => {}
                Came::Other => match (source, Control::decode(&packet)) {
                    (Some(from), Some(Control::Look { question })) => asked = Some((question, from)),
                    _ => counts.others += 1,
                },
            }
        }
        asked
    }

    /// Sends what the machine has to say.
    fn say(&mut self) {
        let Self { socket, machine, key, bytes, .. } = self;
        let tree = machine.relay().tree_number();
        for (to, keeping) in machine.says() {
            bytes.clear();
            keeping.encode(tree, now_ns(), key, bytes);
            // Who is gone is not there: that is what is asked.
            let _ = socket.send_to(bytes, to);
        }
    }
}
