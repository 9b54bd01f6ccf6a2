//! A relay on a socket: what comes is checked, and the first copy of each packet goes on to its children as it is.

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use walras_feed::control::{Control, RelayFigures};
use walras_relay::packet::{Packet, PacketError, TreeKey};
use walras_relay::relay::{Arrival, Relay};

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
}

impl NodeCounts {
    pub(crate) fn refused(&mut self, error: PacketError) {
        match error {
            PacketError::Seal => self.forged += 1,
            PacketError::Length(_) | PacketError::Version(_) | PacketError::Malformed => self.malformed += 1,
        }
    }
}

/// Packets whose time under way is kept.
const TRANSITS: usize = 1_024;
/// Answers in a second at most. Who has no key cannot ask, but can send a question again that he has seen.
const ANSWERS_PER_S: u32 = 100;
const SECOND_NS: u64 = 1_000_000_000;

/// How long the last packets were under way, and how often somebody asked.
#[derive(Debug)]
struct Looks {
    /// In turn.
    transits_ns: Box<[u64]>,
    count: usize,
    /// The second that is counted, and answers in it.
    second: u64,
    answers: u32,
}

impl Looks {
    fn new() -> Self {
        Self { transits_ns: vec![0; TRANSITS].into(), count: 0, second: 0, answers: 0 }
    }

    fn add(&mut self, transit_ns: u64) {
        self.transits_ns[self.count % TRANSITS] = transit_ns;
        self.count += 1;
    }

    fn may_answer(&mut self, now_ns: u64) -> bool {
        let second = now_ns / SECOND_NS;
        if second != self.second {
            (self.second, self.answers) = (second, 0);
        }
        self.answers += 1;
        self.answers <= ANSWERS_PER_S
    }

    /// The median and percentile 99.
    fn percentiles(&self) -> [u64; 2] {
        let mut sorted = self.transits_ns[..self.count.min(TRANSITS)].to_vec();
        sorted.sort_unstable();
        [50, 99].map(|percent| sorted.get(sorted.len() * percent / 100).copied().unwrap_or(0))
    }
}

/// One relay of a tree.
#[derive(Debug)]
pub struct RelayNode {
    socket: Socket,
    relay: Relay,
    tree: u32,
    key: TreeKey,
    /// The layer above, by place; empty where it is not known, or is the sender.
    above: Vec<SocketAddr>,
    received: Received,
    outgoing: Outgoing,
    children: Vec<u32>,
    counts: NodeCounts,
    looks: Looks,
}

impl RelayNode {
    /// A relay whose next layer has these addresses, by place.
    #[must_use]
    pub fn new(socket: Socket, relay: Relay, key: TreeKey, next_layer: &[SocketAddr]) -> Self {
        let (received, outgoing) = (Received::by(&socket), Outgoing::to(next_layer, &socket));
        let (above, children, counts, tree) = (Vec::new(), Vec::new(), NodeCounts::default(), relay.tree_number());
        Self { socket, relay, tree, key, above, received, outgoing, children, counts, looks: Looks::new() }
    }

    /// The same, which tells hedges apart by the addresses of the layer above, by place.
    #[must_use]
    pub fn below(self, above: &[SocketAddr]) -> Self {
        Self { above: above.to_vec(), ..self }
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

    /// What it says when it is asked.
    #[must_use]
    pub fn figures(&self) -> RelayFigures {
        let NodeCounts { first, hedged, copies, others, forged, malformed } = self.counts;
        let [transit_ns_p50, transit_ns_p99] = self.looks.percentiles();
        let (lost, not_taken) = (self.relay.lost(), self.outgoing.lost());
        RelayFigures { first, hedged, copies, lost, others, forged, malformed, not_taken, transit_ns_p50, transit_ns_p99 }
    }

    /// Waits until something comes, as long as the socket may wait, and passes it on. How many packets came.
    pub fn step(&mut self) -> io::Result<usize> {
        let Self { socket, relay, key, above, received, outgoing, children, counts, looks, .. } = self;
        let count = received.receive(socket)?;
        // One look at the clock for all that came together.
        let now_ns = if count > 0 { now_ns() } else { 0 };
        let mut asked = None;
        for (number, bytes) in (0..).zip(received.packets()) {
            match Packet::decode(bytes, key) {
                Ok(packet) => match relay.packet(packet.header(), children) {
                    Arrival::First => {
                        counts.first += 1;
                        looks.add(now_ns.saturating_sub(packet.header().sent_ns));
                        let own = relay.own_parent(packet.header().packet).and_then(|parent| above.get(parent as usize));
                        counts.hedged += u64::from(own.is_some() && own != received.source(number as usize).as_ref());
                        children.drain(..).for_each(|child| outgoing.add(child, number));
                    }
                    Arrival::Copy | Arrival::TooOld => counts.copies += 1,
                    Arrival::NotOurs => match Control::decode(&packet) {
                        Some(Control::Look { question }) => asked = received.source(number as usize).map(|from| (question, from)),
                        Some(Control::Ask(_) | Control::GoneBefore { .. } | Control::Figures { .. }) | None => counts.others += 1,
                    },
                },
                Err(error) => counts.refused(error),
            }
        }
        outgoing.flush(socket, |number| received.packet(number as usize))?;
        if let Some((question, to)) = asked
            && self.looks.may_answer(now_ns)
        {
            self.answer(question, now_ns, to);
        }
        Ok(count)
    }

    fn answer(&self, question: u64, now_ns: u64, to: SocketAddr) {
        let mut bytes = Vec::new();
        Control::Figures { question, figures: self.figures() }.encode(self.tree, now_ns, &self.key, &mut bytes);
        // Who asked and is gone asks again.
        let _ = self.socket.send_to(&bytes, to);
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Asks a relay for its figures; `None` where it does not answer in the time that the socket may wait.
pub fn ask_relay(
    socket: &Socket,
    layout_tree: u32,
    key: &TreeKey,
    relay: SocketAddr,
    question: u64,
) -> io::Result<Option<RelayFigures>> {
    let mut bytes = Vec::new();
    Control::Look { question }.encode(layout_tree, now_ns(), key, &mut bytes);
    socket.send_to(&bytes, relay)?;
    let mut buffer = [0; walras_relay::packet::PACKET_BYTES_MAX];
    // What came late to an earlier question is passed over.
    while let Some((bytes, from)) = socket.receive_from(&mut buffer)? {
        let said = Packet::decode(bytes, key).ok().and_then(|packet| Control::decode(&packet));
        if let (Some(Control::Figures { question: of, figures }), true) = (said, from == relay)
            && of == question
        {
            return Ok(Some(figures));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_is_not_answered() {
        let mut looks = Looks::new();
        let answered = |looks: &mut Looks, now_ns| (0..300).filter(|_| looks.may_answer(now_ns)).count();
        assert_eq!((answered(&mut looks, 5), answered(&mut looks, SECOND_NS)), (100, 100));
        (1..=2_000).for_each(|ns| looks.add(ns));
        assert_eq!(looks.percentiles(), [977 + 512, 977 + 1_013], "of the last 1,024");
    }
}
