//! A relay on a socket: what comes is checked, and the first copy of each packet goes on to its children as it is.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use walras_feed::channel::held_until;
use walras_feed::control::{Control, RelayFigures};
use walras_relay::copies::{Copies, CopiesSettings};
use walras_relay::deadline::ReportSettings;
use walras_relay::keeping::Keeping;
use walras_relay::lateness::{Pieces, Reports};
use walras_relay::live::{Views, split};
use walras_relay::packet::{Header, Packet, PacketError, TreeKey};
use walras_relay::relay::{Arrival, Relay};
use walras_relay::watch::{Watch, WatchEffect, WatchSettings};

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
    relay: Relay,
    /// Its number.
    me: u32,
    key: TreeKey,
    /// All nodes of the tree, by number.
    nodes: Vec<SocketAddr>,
    received: Received,
    outgoing: Outgoing,
    children: Vec<u32>,
    counts: NodeCounts,
    looks: Looks,
    views: Views,
    watch: Watch,
    /// Which relays above bring packets.
    copies: Copies,
    /// Who sent the newest view, with its version.
    sender: Option<(SocketAddr, u64)>,
    /// The version of the view that receivers below heard last, and when.
    passed_view: (u64, u64),
    begun: Instant,
    effects: Vec<WatchEffect>,
    /// What receivers below say, and the pieces about which they may.
    reports: Reports,
    pieces: Pieces,
}

/// What is to be done once the packets of a step are passed on.
#[derive(Debug, Default)]
struct Asked {
    look: Option<(u64, SocketAddr)>,
    keeping: Vec<(Keeping, SocketAddr)>,
}

/// Messages about the tree that one step answers, of all that came together.
const KEEPING_MAX: usize = 64;
/// How often receivers hear a view again, some of whom may not have got it.
const VIEW_AGAIN_NS: u64 = 1_000_000_000;

impl RelayNode {
    /// A relay of a tree whose nodes have these addresses, by number. Its socket should wait for some milliseconds at most: between its
    /// waits the relay watches its sibling. `seed` is random, so that no answer to an earlier process counts.
    #[must_use]
    pub fn new(socket: Socket, relay: Relay, key: TreeKey, nodes: &[SocketAddr], seed: u64) -> Self {
        let (received, outgoing) = (Received::by(&socket), Outgoing::to(nodes, &socket));
        let (me, views) = (relay.number(), Views::new(relay.tree()));
        let copies = Copies::new(me, relay.tree().relays(), CopiesSettings::default());
        Self {
            socket,
            relay,
            me,
            key,
            nodes: nodes.to_vec(),
            received,
            outgoing,
            children: Vec::new(),
            counts: NodeCounts::default(),
            looks: Looks::new(),
            views,
            watch: Watch::new(me, WatchSettings::default(), seed),
            copies,
            sender: None,
            passed_view: (0, 0),
            begun: Instant::now(),
            effects: Vec::new(),
            reports: Reports::new(ReportSettings::ROBUST, nodes.len()),
            pieces: Pieces::default(),
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
        let (lost, not_taken) = (self.relay.lost(), self.outgoing.lost());
        // It neither holds market data nor asks replicas for any.
        let came = RelayFigures { first, hedged, copies, others, forged, malformed, ..RelayFigures::default() };
        RelayFigures { lost, not_taken, transit_ns_p50, transit_ns_p99, ..came }
    }

    /// Waits until something comes, as long as the socket may wait, passes it on, and watches its sibling. How many packets came.
    pub fn step(&mut self) -> io::Result<usize> {
        let count = self.received.receive(&self.socket)?;
        // One look at the clock for all that came together.
        let (now_ns, elapsed_ns) = if count > 0 { (now_ns(), self.elapsed_ns()) } else { (0, 0) };
        let mut asked = Asked::default();
        self.pass_on((now_ns, elapsed_ns), &mut asked);
        let Self { socket, outgoing, received, .. } = self;
        outgoing.flush(socket, |number| received.packet(number as usize))?;
        if let Some((question, to)) = asked.look
            && self.looks.may_answer(now_ns)
        {
            look::answer(&self.socket, (self.relay.tree_number(), &self.key), (question, self.figures()), (now_ns, to));
        }
        self.keep(asked.keeping);
        Ok(count)
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Gives the first copy of each packet to those below. The time of day, and that since the relay began.
    fn pass_on(&mut self, (now_ns, elapsed_ns): (u64, u64), asked: &mut Asked) {
        let Self { relay, me, key, nodes, received, outgoing, children, counts, looks, views, copies, pieces, .. } = self;
        let hedge = relay.hedge();
        for (number, bytes) in (0..).zip(received.packets()) {
            let packet = match Packet::decode(bytes, key) {
                Ok(packet) => packet,
                Err(error) => {
                    counts.refused(error);
                    continue;
                }
            };
            let header = packet.header();
            let (tree, epoch) = split(header.tree);
            let arrival = relay.arrives(&Header { tree, ..*header });
            if let (Arrival::First | Arrival::Copy | Arrival::TooOld, Some(live)) = (arrival, views.known(epoch)) {
                let (source, packet) = (received.source(number as usize), (header.packet, hedge));
                let is_from = |parent: u32| nodes.get(parent as usize) == source.as_ref();
                copies.arrives(elapsed_ns, live, packet, arrival == Arrival::First, is_from);
                copies.skipped(elapsed_ns, live, packet, relay.skipped());
            }
            match arrival {
                Arrival::First => {
                    counts.first += 1;
                    looks.add(now_ns.saturating_sub(header.sent_ns));
                    if let Some(release_ns) = held_until(header) {
                        pieces.passed(release_ns, 0);
                    }
                    let live = views.of(epoch);
                    let own = live.own_parent(*me, header.packet, hedge).and_then(|parent| nodes.get(parent as usize));
                    counts.hedged += u64::from(own.is_some() && own != received.source(number as usize).as_ref());
                    live.children(Some(*me), header.packet, hedge, children);
                    children.drain(..).for_each(|child| outgoing.add(child, number));
                }
                Arrival::Copy | Arrival::TooOld => counts.copies += 1,
                Arrival::NoRoom => counts.no_room += 1,
                Arrival::NotOurs => match (received.source(number as usize), Control::decode(&packet), Keeping::decode(&packet)) {
                    (from, Some(Control::Look { question }), _) => asked.look = from.map(|from| (question, from)),
                    (Some(from), _, Some(keeping)) if asked.keeping.len() < KEEPING_MAX => asked.keeping.push((keeping, from)),
                    _ => counts.others += 1,
                },
            }
        }
    }

    /// Answers what concerns the tree, and watches.
    fn keep(&mut self, came: Vec<(Keeping, SocketAddr)>) {
        let elapsed_ns = self.elapsed_ns();
        for (keeping, from) in came {
            match keeping {
                Keeping::Ping { question } => self.say(&Keeping::Pong { question }, from),
                Keeping::Pong { question } => self.watch.on_pong(elapsed_ns, question),
                Keeping::View { version, epoch, out } => {
                    if self.views.take(version, epoch, &out) {
                        if self.sender.is_none_or(|(_, newest)| version >= newest) {
                            self.sender = Some((from, version));
                        }
                        self.watch.set_view(elapsed_ns, self.views.newest());
                        self.copies.set_view(self.views.newest());
                        self.say(&Keeping::Taken { node: self.me, version }, from);
                        self.pass_view(elapsed_ns, &Keeping::View { version, epoch, out }, version);
                    }
                }
                Keeping::Mute { .. } => {
                    // A receiver, which knows no sender.
                    if let Some((to, _)) = self.sender {
                        self.say(&keeping, to);
                    }
                }
                Keeping::Late { node, samples } => self.reports.on_late(elapsed_ns, node, samples, &self.pieces),
                Keeping::Taken { .. } | Keeping::Silent { .. } => self.counts.others += 1,
            }
        }
        self.report(elapsed_ns);
        self.report_mute(elapsed_ns);
        if elapsed_ns < self.watch.wake_ns() {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        self.watch.on_timer(elapsed_ns, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                WatchEffect::Ping { node, question } => {
                    if let Some(to) = self.nodes.get(node as usize) {
                        self.say(&Keeping::Ping { question }, *to);
                    }
                }
                WatchEffect::Report { node } => {
                    if let Some((to, version)) = self.sender {
                        self.say(&Keeping::Silent { node, version }, to);
                    }
                }
            }
        }
        self.effects = effects;
    }

    /// Passes on what receivers below say.
    fn report(&mut self, elapsed_ns: u64) {
        let Some(samples) = self.reports.on_timer(elapsed_ns) else { return };
        let parent = self.views.newest().reports_to(self.me).and_then(|parent| self.nodes.get(parent as usize).copied());
        if let Some(to) = parent.or_else(|| self.sender.map(|(sender, _)| sender)) {
            self.say(&Keeping::Late { node: self.me, samples }, to);
        }
    }

    /// Says to the receivers of its block which view there is, now and then.
    fn pass_view(&mut self, elapsed_ns: u64, view: &Keeping, version: u64) {
        let (last, said_ns) = self.passed_view;
        let is_said = version == last && elapsed_ns.saturating_sub(said_ns) < VIEW_AGAIN_NS;
        if is_said || version != self.views.version() {
            return;
        }
        let live = self.views.newest();
        for receiver in live.reporters(self.me).iter().filter(|node| live.is_receiver(**node)) {
            if let Some(to) = self.nodes.get(*receiver as usize) {
                self.say(view, *to);
            }
        }
        self.passed_view = (version, elapsed_ns);
    }

    /// Says to the sender which relays above bring nothing.
    fn report_mute(&mut self, elapsed_ns: u64) {
        let (mut mute, by) = (Vec::new(), self.me);
        self.copies.on_timer(elapsed_ns, &mut mute);
        if let Some((to, version)) = self.sender {
            mute.iter().for_each(|node| self.say(&Keeping::Mute { node: *node, by, version }, to));
        }
    }

    fn say(&self, keeping: &Keeping, to: SocketAddr) {
        let mut bytes = Vec::new();
        keeping.encode(self.relay.tree_number(), now_ns(), &self.key, &mut bytes);
        // Who is gone is not there: that is what is asked.
        let _ = self.socket.send_to(&bytes, to);
    }
}
