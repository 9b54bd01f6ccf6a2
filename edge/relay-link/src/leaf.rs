//! A receiver of a tree on a socket.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use walras_feed::channel::CHANNELS_MAX;
use walras_feed::control::{Control, RelayFigures};
use walras_feed::recall::RecallCounts;
use walras_relay::keeping::Keeping;
use walras_relay::packet::{Header, Packet, TreeKey};
use walras_relay::reader::Request;
use walras_relay::relay::TAKE_OVER;

use crate::late::LateReports;
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
    /// By channel: the greatest number of a packet. A packet with a greater one is a first copy.
    newest: HashMap<u32, u64>,
    /// Of a receiver that says how late market data comes.
    late: Option<LateReports>,
    /// What a gateway asked the replicas for.
    recalls: RecallCounts,
}

impl Leaf {
    /// A receiver on this socket.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey) -> Self {
        let received = Received::by(&socket);
        let (counts, recalls) = (NodeCounts::default(), RecallCounts::default());
        Self { socket, key, received, counts, looks: Looks::new(), newest: HashMap::new(), late: None, recalls }
    }

    /// It stands at this place of the last layer, and reports to the relay above how late market data comes: call [`Leaf::receive_held`]
    /// from now on.
    #[must_use]
    pub fn reporting(mut self, layout: &Layout, place: u32) -> Self {
        self.late = Some(LateReports::of(layout, place));
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
        let late = self.late.as_ref().map_or(0, LateReports::late);
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
        let Self { socket, key, received, counts, looks, newest, late, recalls: _ } = self;
        let count = received.receive(socket)?;
        // One look at the clocks for all that came together, once it is there.
        let (now_ns, venue_ns) = (now_ns(), late.as_ref().and_then(|_| clock()));
        let mut asked = None;
        for (number, bytes) in received.packets().enumerate() {
            match Packet::decode(bytes, key) {
                Ok(packet) => {
                    if let Some(Control::Look { question }) = Control::decode(&packet) {
                        asked = received.source(number).map(|from| (question, packet.header().tree, from));
                        continue;
                    }
                    let keeping = Keeping::decode(&packet);
                    let source = received.source(number);
                    if let Some(keeping) = keeping {
                        match (late.as_mut(), source, keeping) {
                            (Some(late), Some(source), Keeping::Ping { .. }) => late.asked(now_ns, source),
                            (Some(late), _, Keeping::View { version, epoch, out }) => late.above.view(version, epoch, &out),
                            _ => {}
                        }
                        continue;
                    }
                    if let (Some(late), Some(source)) = (late.as_mut(), source) {
                        late.from(now_ns, source);
                    }
                    counts.first += 1;
                    let skipped = newest_skips(newest, packet.header());
                    if skipped.is_some() {
                        looks.add(now_ns.saturating_sub(packet.header().sent_ns));
                    }
                    let is_first = with(&packet);
                    if let (Some(late), Some(source)) = (late.as_mut(), source) {
                        late.above.copy(now_ns, packet.header(), is_first, skipped.unwrap_or(0), source);
                    }
                    if let (true, Some(late), Some(venue_ns)) = (is_first, late.as_mut(), venue_ns) {
                        late.first(venue_ns, packet.header());
                    }
                }
                Err(error) => counts.refused(error),
            }
        }
        if let Some((keeping, tree, to)) = late.as_mut().and_then(|late| late.due(now_ns, venue_ns)) {
            let mut bytes = Vec::new();
            keeping.encode(tree, now_ns, key, &mut bytes);
            // A relay that is gone does not hear it; the next report goes to another one.
            let _ = socket.send_to(&bytes, to);
        }
        if let Some((says, tree, to)) = late.as_mut().and_then(|late| late.mute(now_ns)) {
            for keeping in says {
                let mut bytes = Vec::new();
                keeping.encode(tree, now_ns, key, &mut bytes);
                // It is said again.
                let _ = socket.send_to(&bytes, to);
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

/// Where a packet is newer than all before in its channel: how many numbers it leaves out.
fn newest_skips(newest: &mut HashMap<u32, u64>, header: &Header) -> Option<u64> {
    let has_room = newest.len() < CHANNELS_MAX || newest.contains_key(&header.channel);
    if header.packet == 0 || !has_room {
        return None;
    }
    let last = newest.entry(header.channel).or_insert(0);
    let before = *last;
    *last = before.max(header.packet);
    let ahead = header.packet.checked_sub(before).filter(|ahead| *ahead > 0)?;
    // The first one of a channel, and of a sender that takes over, leave nothing out.
    Some(if before == 0 || ahead >= TAKE_OVER { 0 } else { ahead - 1 })
}

#[cfg(test)]
mod tests {
    use walras_relay::packet::Kind;

    use super::*;

    #[test]
    fn the_newest_packet_of_a_channel_says_what_it_leaves_out() {
        let mut newest = HashMap::new();
        let mut skips = |channel, packet| {
            let (kind, count, tree, first, sent_ns, release_ns) = (Kind::Data, 1, 1, 1, 1, 1);
            newest_skips(&mut newest, &Header { kind, count, channel, tree, packet, first, sent_ns, release_ns })
        };
        assert_eq!([5, 6, 9, 8, 9, 0].map(|packet| skips(1, packet)), [Some(0), Some(0), Some(2), None, None, None]);
        assert_eq!((skips(2, 7), skips(1, 1 << 40), skips(1, (1 << 40) + 2)), (Some(0), Some(0), Some(1)));
    }
}
