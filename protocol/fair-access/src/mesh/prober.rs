//! One node's side of the mesh: sends and answers probes, collects stamps, fits its edges.

use std::collections::{BTreeMap, VecDeque};

use super::{CodedFilter, EdgeReport, Half, NODES_MAX, NodeId, Pair, Probe, Schedule, Stamps, WindowSamples};
use crate::clock::Correction;

/// Settings of a node's prober.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProberConfig {
    /// Which node this is.
    pub node: NodeId,
    /// Which nodes probe each other.
    pub schedule: Schedule,
    /// Length of a window in venue time.
    pub window_ns: u64,
    /// Interval between two exchanges of an edge.
    pub interval_ns: u64,
    /// Delay of a pair's second probe after the first.
    pub spacing_ns: u64,
    /// The filter for pairs.
    pub filter: CodedFilter,
}

/// A probe to be sent. The host reports its send time with [`Prober::on_sent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendProbe {
    /// The receiver.
    pub to: NodeId,
    /// The probe.
    pub probe: Probe,
}

/// An effect of the prober.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProberEffect {
    /// Send a probe.
    Send(SendProbe),
    /// Send a report to the coordinator.
    Report(EdgeReport),
}

/// Maximum number of an edge's exchanges in flight; a further one drops the oldest.
const UNDER_WAY_MAX: usize = 64;

/// Incarnations of a node whose requests are kept apart. More are there only if somebody recorded them all and sends them again.
const INCARNATIONS_MAX: usize = 8;

/// The probing and the answering side of a node. Times are of the host's rawest clock, because steering a clock during the
/// measurement would bend the lines.
#[derive(Clone, Debug)]
pub struct Prober {
    config: ProberConfig,
    /// Host clock minus venue time, to about a millisecond, to determine the window.
    offset_ns: i64,
    window: Option<u64>,
    edges: Vec<Edge>,
    /// The incarnations of each node that asked, the one heard last first.
    peers: BTreeMap<NodeId, VecDeque<Peer>>,
    exchange_next: u32,
}

#[derive(Clone, Debug)]
struct Edge {
    to: NodeId,
    ask_at_ns: u64,
    /// The exchange whose second request is due, and when.
    second_due: Option<(u32, u64)>,
    under_way: VecDeque<Exchange>,
    samples: WindowSamples,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    number: u32,
    ask_tx_ns: [Option<u64>; 2],
    answer_rx_ns: [Option<u64>; 2],
    stamps: Option<Stamps>,
}

/// The state for an incarnation of a node that probes this one.
#[derive(Clone, Copy, Debug)]
struct Peer {
    incarnation: u64,
    /// Its latest exchange.
    exchange: u32,
    ask_rx_ns: [Option<u64>; 2],
    answer_tx_ns: [Option<u64>; 2],
    complete: Option<Stamps>,
}

impl Prober {
    /// Creates a prober that has sent nothing yet.
    pub fn new(config: ProberConfig) -> Self {
        Self { config, offset_ns: 0, window: None, edges: Vec::new(), peers: BTreeMap::new(), exchange_next: 0 }
    }

    /// Takes the coordinator's correction, which also determines the window.
    pub fn on_correction(&mut self, correction: &Correction) {
        self.offset_ns = correction.offset_ns;
    }

    /// Sends due probes, and closes the window at its end. Returns when to call again at the latest.
    pub fn on_timer(&mut self, local_ns: u64, effects: &mut Vec<ProberEffect>) -> u64 {
        let window = self.venue_ns(local_ns) / self.config.window_ns;
        // A correction may move venue time back over a window's end: the window stays closed.
        if self.window.is_none_or(|current| window > current || window + 1 < current) {
            self.close(effects);
            self.open(window, local_ns);
        }
        let mut next_ns = self.local_ns((self.window.unwrap_or(window) + 1) * self.config.window_ns).max(local_ns + 1);
        for edge in &mut self.edges {
            if let Some((exchange, due_ns)) = edge.second_due {
                if due_ns <= local_ns {
                    edge.second_due = None;
                    let probe = Probe::Ask { exchange, half: Half::Second };
                    effects.push(ProberEffect::Send(SendProbe { to: edge.to, probe }));
                }
            } else if edge.ask_at_ns <= local_ns {
                let exchange = self.exchange_next;
                self.exchange_next = self.exchange_next.wrapping_add(1);
                edge.begin(exchange);
                // Exchanges that a late timer missed are skipped.
                edge.ask_at_ns = edge.ask_at_ns.max(local_ns.saturating_sub(self.config.interval_ns)) + self.config.interval_ns;
                edge.second_due = Some((exchange, local_ns + self.config.spacing_ns));
                let probe = Probe::Ask { exchange, half: Half::First };
                effects.push(ProberEffect::Send(SendProbe { to: edge.to, probe }));
            }
            next_ns = next_ns.min(edge.second_due.map_or(edge.ask_at_ns, |(_, due_ns)| due_ns));
        }
        next_ns
    }

    /// A probe left when the host's clock read `tx_ns`.
    pub fn on_sent(&mut self, sent: &SendProbe, tx_ns: u64) {
        match sent.probe {
            Probe::Ask { exchange, half } => {
                self.update(sent.to, exchange, |under_way| under_way.ask_tx_ns[half.index()] = Some(tx_ns));
            }
            Probe::Answer { exchange, half, .. } => {
                // The one that was answered was heard last.
                let peer = self.peers.get_mut(&sent.to).and_then(VecDeque::front_mut);
                if let Some(peer) = peer.filter(|peer| peer.exchange == exchange) {
                    peer.answer_tx_ns[half.index()] = Some(tx_ns);
                }
            }
        }
    }

    /// A probe came from an incarnation of a node when the host's clock read `rx_ns`. What does not fit is ignored: a peer can spoil its
    /// own edge only, and somebody who heard its probes and sends them again spoils nothing. The first copy of a probe counts, and a
    /// request of an exchange before the latest is not answered.
    pub fn on_probe(&mut self, (from, incarnation): (NodeId, u64), rx_ns: u64, probe: &Probe, effects: &mut Vec<ProberEffect>) {
        match *probe {
            Probe::Ask { exchange, half } => {
                if from == self.config.node || from.index() >= self.config.schedule.node_count().min(NODES_MAX) {
                    return;
                }
                let asked = self.peers.entry(from).or_default();
                let place = asked.iter().position(|peer| peer.incarnation == incarnation);
                let known = place.and_then(|place| asked.remove(place));
                let mut peer = known.unwrap_or_else(|| Peer::new(incarnation, exchange));
                let answer = peer.on_ask(exchange, half, rx_ns);
                asked.truncate(INCARNATIONS_MAX - 1);
                asked.push_front(peer);
                if let Some(Answered { stamps }) = answer {
                    effects.push(ProberEffect::Send(SendProbe { to: from, probe: Probe::Answer { exchange, half, stamps } }));
                }
            }
            Probe::Answer { exchange, half, stamps } => {
                self.update(from, exchange, |under_way| _ = under_way.answer_rx_ns[half.index()].get_or_insert(rx_ns));
                if let Some(stamps) = stamps {
                    self.update(from, stamps.exchange, |under_way| _ = under_way.stamps.get_or_insert(stamps));
                }
            }
        }
    }

    fn venue_ns(&self, local_ns: u64) -> u64 {
        u64::try_from(i128::from(local_ns) - i128::from(self.offset_ns)).unwrap_or(0)
    }

    fn local_ns(&self, venue_ns: u64) -> u64 {
        u64::try_from(i128::from(venue_ns) + i128::from(self.offset_ns)).unwrap_or(0)
    }

    fn close(&mut self, effects: &mut Vec<ProberEffect>) {
        let Some(window) = self.window else { return };
        let anchor_local_ns = self.local_ns(window * self.config.window_ns + self.config.window_ns / 2);
        for edge in self.edges.drain(..) {
            let result = edge.samples.fit(&self.config.filter, anchor_local_ns);
            effects.push(ProberEffect::Report(EdgeReport { window, from: self.config.node, to: edge.to, result }));
        }
    }

    fn open(&mut self, window: u64, local_ns: u64) {
        self.window = Some(window);
        let mine = self.config.schedule.edges(window).into_iter().filter(|&(from, _)| from == self.config.node);
        self.edges = mine.map(|(_, to)| Edge::new(to, local_ns)).collect();
        // Spread over the interval, so that a node's own probes do not queue behind each other.
        let step_ns = self.config.interval_ns / (self.edges.len() as u64).max(1);
        for (index, edge) in self.edges.iter_mut().enumerate() {
            edge.ask_at_ns += index as u64 * step_ns;
        }
    }

    /// Updates an exchange in flight, and records its pairs once it is complete.
    fn update(&mut self, to: NodeId, exchange: u32, fill: impl FnOnce(&mut Exchange)) {
        let Some(edge) = self.edges.iter_mut().find(|edge| edge.to == to) else { return };
        let Some(index) = edge.under_way.iter().position(|under_way| under_way.number == exchange) else { return };
        fill(&mut edge.under_way[index]);
        if let Some((forward, backward)) = edge.under_way[index].pairs() {
            edge.under_way.remove(index);
            edge.samples.forward.push(forward);
            edge.samples.backward.push(backward);
        }
    }
}

impl Edge {
    fn new(to: NodeId, ask_at_ns: u64) -> Self {
        Self { to, ask_at_ns, second_due: None, under_way: VecDeque::new(), samples: WindowSamples::default() }
    }

    fn begin(&mut self, number: u32) {
        if self.under_way.len() == UNDER_WAY_MAX {
            self.under_way.pop_front();
        }
        self.under_way.push_back(Exchange { number, ask_tx_ns: [None; 2], answer_rx_ns: [None; 2], stamps: None });
    }
}

impl Exchange {
    fn pairs(&self) -> Option<(Pair, Pair)> {
        let stamps = self.stamps?;
        let forward = Pair { tx_ns: both(self.ask_tx_ns)?, rx_ns: stamps.ask_rx_ns };
        let backward = Pair { tx_ns: stamps.answer_tx_ns, rx_ns: both(self.answer_rx_ns)? };
        Some((forward, backward))
    }
}

/// What a request is answered: the stamps of the last complete exchange before it.
struct Answered {
    stamps: Option<Stamps>,
}

impl Peer {
    fn new(incarnation: u64, exchange: u32) -> Self {
        Self { incarnation, exchange, ask_rx_ns: [None; 2], answer_tx_ns: [None; 2], complete: None }
    }

    /// The answer to a request; none to one that came before, or that is older.
    fn on_ask(&mut self, exchange: u32, half: Half, rx_ns: u64) -> Option<Answered> {
        // Numbers begin again with 0 after the highest one.
        if exchange.wrapping_sub(self.exchange) > u32::MAX / 2 {
            return None;
        }
        if self.exchange != exchange {
            if let (Some(ask_rx_ns), Some(answer_tx_ns)) = (both(self.ask_rx_ns), both(self.answer_tx_ns)) {
                self.complete = Some(Stamps { exchange: self.exchange, ask_rx_ns, answer_tx_ns });
            }
            *self = Self { complete: self.complete, ..Self::new(self.incarnation, exchange) };
        }
        let stamp = &mut self.ask_rx_ns[half.index()];
        if stamp.is_some() {
            return None;
        }
        *stamp = Some(rx_ns);
        Some(Answered { stamps: self.complete })
    }
}

fn both(stamps: [Option<u64>; 2]) -> Option<[u64; 2]> {
    Some([stamps[0]?, stamps[1]?])
}
