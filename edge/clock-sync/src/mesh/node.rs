//! A node's state machine: sans-I/O, so that a test can play any of the other nodes.

use std::collections::BTreeMap;

use tracing::{info, warn};
use walras_fair_access::mesh::{
    CodedFilter, Coordinator, CoordinatorConfig, EdgeReport, Fault, NodeId, Probe, Prober, ProberConfig, ProberEffect, Schedule,
    SendProbe, Verdict, WindowOutcome,
};

use super::frame::{Body, EDGES_MAX, FrameError, Head, NodeResult, decode, encode};
use super::{MeshKey, MeshOptions};
use crate::view::{Excluded, MeshView, PeerView, Refusals};

/// Number of peers that a node probes in a window, and by which it is probed.
const STRIDES: usize = 10;
/// All nodes draw the same graphs.
const SEED: u64 = 0x7761_6c72_6173;
/// Delay of a pair's second probe after the first.
const SPACING_NS: u64 = 30_000;
/// Noise of software time stamps; a pair whose spacing changed by more met a queue.
const SPACING_ERROR_NS_MAX: u64 = 1_000;
/// Number of windows without a result that counts as trouble.
const SILENT_WINDOWS: u64 = 5;

/// An effect.
#[derive(Debug)]
pub(super) enum Effect {
    /// Send a probe, and report its send time.
    Probe(SendProbe),
    /// Send a datagram.
    Datagram(NodeId, Vec<u8>),
    /// A result for this node's clock.
    Clock(Verdict),
}

#[derive(Debug)]
pub(super) struct Node {
    me: NodeId,
    node_count: usize,
    key: MeshKey,
    incarnation: u64,
    window_ns: u64,
    coordinator: NodeId,
    prober: Prober,
    joiner: Option<Joiner>,
    /// This node's clock less the venue's time, as of the last result.
    offset_ns: i64,
    peers: Vec<Peer>,
    result: Option<NodeResult>,
    /// The clock's reading at the last result, or at the start.
    result_at_ns: u64,
    refused: Refusals,
}

/// The state of another node.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    heard_at_ns: Option<u64>,
    /// Incarnation of its last request, to which answers are sent.
    incarnation: u64,
    residual_ns: Option<i64>,
}

/// The coordinator's additional state.
#[derive(Debug)]
struct Joiner {
    coordinator: Coordinator,
    window_next: u64,
    /// Incarnation of each node's last reports, or of its last answer to this node.
    incarnations: Vec<u64>,
    excluded: BTreeMap<NodeId, Fault>,
}

impl Node {
    pub(super) fn new(options: &MeshOptions, incarnation: u64, local_ns: u64) -> Self {
        let MeshOptions { node, window_ns, interval_ns, coordinator, .. } = *options;
        let node_count = options.nodes.len();
        let schedule = Schedule::rotating(node_count, STRIDES, SEED);
        let filter = CodedFilter { spacing_error_ns_max: SPACING_ERROR_NS_MAX, ..CodedFilter::default() };
        let prober = Prober::new(ProberConfig { node, schedule, window_ns, interval_ns, spacing_ns: SPACING_NS, filter });
        let window_next = local_ns / window_ns;
        let joiner = (node == coordinator).then(|| Joiner {
            coordinator: Coordinator::new(CoordinatorConfig::new(schedule, window_ns), window_next),
            window_next,
            incarnations: vec![0; node_count],
            excluded: BTreeMap::new(),
        });
        Self {
            me: node,
            node_count,
            key: options.key.clone(),
            incarnation,
            window_ns,
            coordinator,
            prober,
            joiner,
            offset_ns: 0,
            peers: vec![Peer::default(); node_count],
            result: None,
            result_at_ns: local_ns,
            refused: Refusals::default(),
        }
    }

    /// Handles what is due; returns when to call again at the latest.
    pub(super) fn on_timer(&mut self, local_ns: u64, effects: &mut Vec<Effect>) -> u64 {
        let mut wanted = Vec::new();
        let next_ns = self.prober.on_timer(local_ns, &mut wanted);
        self.carry(wanted, effects);
        self.close_windows(local_ns, effects);
        match &self.joiner {
            Some(joiner) => next_ns.min(self.local_ns(self.closes_at_ns(joiner.window_next))),
            None => next_ns,
        }
    }

    /// Encodes a probe of [`Effect::Probe`].
    pub(super) fn probe_bytes(&self, send: &SendProbe) -> Vec<u8> {
        encode(&self.key, &self.head(send.to, self.peers[send.to.0 as usize].incarnation), &Body::Probe(send.probe))
    }

    /// Takes a probe's send time.
    pub(super) fn on_sent(&mut self, send: &SendProbe, tx_ns: u64) {
        self.prober.on_sent(send, tx_ns);
    }

    /// Takes a datagram that arrived when the clock read `rx_ns`. Anyone may have sent it.
    pub(super) fn on_datagram(&mut self, rx_ns: u64, bytes: &[u8], effects: &mut Vec<Effect>) {
        let (head, body) = match decode(&self.key, bytes) {
            Ok(frame) => frame,
            Err(FrameError::Malformed) => return self.refused.malformed += 1,
            Err(FrameError::Unauthenticated) => return self.refused.unauthenticated += 1,
        };
        let from = head.from.0 as usize;
        let is_between_us = head.to == self.me && head.from != self.me && from < self.node_count;
        // A node that asks may not know this incarnation yet; a node that answers must.
        let is_of_this_incarnation =
            head.receiver_incarnation == self.incarnation || matches!(body, Body::Probe(Probe::Ask { .. }) | Body::Reports(_));
        let is_entitled = match body {
            Body::Probe(_) => true,
            Body::Reports(_) => self.joiner.is_some(),
            Body::Result(_) => head.from == self.coordinator,
        };
        if !(is_between_us && is_of_this_incarnation && is_entitled) {
            self.refused.misplaced += 1;
            return;
        }
        self.peers[from].heard_at_ns = Some(rx_ns);
        match body {
            Body::Probe(probe) => {
                match (probe, &mut self.joiner) {
                    (Probe::Ask { .. }, _) => self.peers[from].incarnation = head.sender_incarnation,
                    // Of two nodes one has no edge of its own, and nothing to report: it is known by its answers.
                    (Probe::Answer { .. }, Some(joiner)) => joiner.incarnations[from] = head.sender_incarnation,
                    (Probe::Answer { .. }, None) => {}
                }
                let mut wanted = Vec::new();
                self.prober.on_probe((head.from, head.sender_incarnation), rx_ns, &probe, &mut wanted);
                self.refused.late += u64::from(wanted.is_empty() && matches!(probe, Probe::Ask { .. }));
                self.carry(wanted, effects);
            }
            Body::Reports(reports) => self.on_reports(&head, &reports),
            Body::Result(result) => self.on_result(rx_ns, result, effects),
        }
    }

    fn on_reports(&mut self, head: &Head, reports: &[EdgeReport]) {
        let Some(joiner) = &mut self.joiner else { return };
        let taken = reports.iter().filter(|report| joiner.coordinator.on_report(report).is_ok()).count();
        if taken > 0 {
            joiner.incarnations[head.from.0 as usize] = head.sender_incarnation;
        }
        self.refused.late += (reports.len() - taken) as u64;
    }

    fn on_result(&mut self, local_ns: u64, result: NodeResult, effects: &mut Vec<Effect>) {
        if self.result.as_ref().is_some_and(|last| result.window <= last.window) {
            self.refused.late += 1;
            return;
        }
        if let Verdict::Synced(line) = result.verdict {
            self.prober.on_correction(&line);
            self.offset_ns = line.offset_ns;
        }
        for (node, residual_ns) in &result.residuals {
            if let Some(peer) = self.peers.get_mut(node.0 as usize) {
                peer.residual_ns = Some(*residual_ns);
            }
        }
        let said = |result: &NodeResult| if let Verdict::Excluded(fault) = result.verdict { Some(fault) } else { None };
        match (self.result.as_ref().and_then(said), said(&result)) {
            (None, Some(fault)) => warn!("the mesh excludes this node's clock: {fault}"),
            (Some(_), None) => info!("the mesh takes this node's clock in again"),
            _ => {}
        }
        effects.push(Effect::Clock(result.verdict));
        (self.result, self.result_at_ns) = (Some(result), local_ns);
    }

    /// Converts the prober's effects.
    fn carry(&mut self, wanted: Vec<ProberEffect>, effects: &mut Vec<Effect>) {
        let mut reports = Vec::new();
        for effect in wanted {
            match effect {
                ProberEffect::Send(send) => effects.push(Effect::Probe(send)),
                ProberEffect::Report(report) => reports.push(report),
            }
        }
        match &mut self.joiner {
            Some(joiner) => {
                let refused = reports.iter().filter(|report| joiner.coordinator.on_report(report).is_err()).count();
                self.refused.late += refused as u64;
            }
            None => {
                for some in reports.chunks(EDGES_MAX) {
                    let bytes = encode(&self.key, &self.head(self.coordinator, 0), &Body::Reports(some.to_vec()));
                    effects.push(Effect::Datagram(self.coordinator, bytes));
                }
            }
        }
    }

    /// Reports may arrive for a quarter of a window.
    fn closes_at_ns(&self, window: u64) -> u64 {
        (window + 1).saturating_mul(self.window_ns).saturating_add(self.window_ns / 4)
    }

    fn close_windows(&mut self, local_ns: u64, effects: &mut Vec<Effect>) {
        let venue_ns = self.venue_ns(local_ns);
        // Windows that a late timer missed are skipped: only the last ended one has reports.
        let Some(window) = (venue_ns.saturating_sub(self.window_ns / 4) / self.window_ns).checked_sub(1) else { return };
        let Some(joiner) = self.joiner.as_mut().filter(|joiner| window >= joiner.window_next) else { return };
        joiner.window_next = window + 1;
        let Some(outcome) = joiner.coordinator.close_window(window) else { return };
        joiner.note(&outcome);
        let incarnations = joiner.incarnations.clone();
        for (index, incarnation) in incarnations.into_iter().enumerate() {
            let node = NodeId(index as u32);
            let result = result_of(&outcome, node);
            if node == self.me {
                self.on_result(local_ns, result, effects);
            } else if incarnation != 0 {
                let bytes = encode(&self.key, &self.head(node, incarnation), &Body::Result(result));
                effects.push(Effect::Datagram(node, bytes));
            }
        }
    }

    fn head(&self, to: NodeId, receiver_incarnation: u64) -> Head {
        Head { from: self.me, to, sender_incarnation: self.incarnation, receiver_incarnation }
    }

    fn venue_ns(&self, local_ns: u64) -> u64 {
        local_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    fn local_ns(&self, venue_ns: u64) -> u64 {
        venue_ns.saturating_add_signed(self.offset_ns)
    }

    /// The current trouble, with advice.
    pub(super) fn trouble(&self, local_ns: u64) -> Option<String> {
        let silent_ns = local_ns.saturating_sub(self.result_at_ns);
        if silent_ns > SILENT_WINDOWS * self.window_ns {
            return Some(format!(
                "no result of the mesh for {} s: check that node {}, its coordinator, runs and is reached by UDP, that all nodes have the same key \
                 and list of nodes, and that their system clocks were within a second of each other when they started",
                silent_ns / 1_000_000_000,
                self.coordinator.0
            ));
        }
        match self.result.as_ref()?.verdict {
            Verdict::Synced(_) => None,
            Verdict::Unreached => Some(
                "no probes join this node to the reference: check that UDP passes between the nodes in both directions".to_owned(),
            ),
            Verdict::Excluded(fault) => Some(format!("this node's clock is excluded from the mesh: {fault}")),
        }
    }

    pub(super) fn view(&self, local_ns: u64) -> MeshView {
        let peer = |(index, peer): (usize, &Peer)| PeerView {
            node: NodeId(index as u32),
            heard_ago_ns: peer.heard_at_ns.map(|at_ns| local_ns.saturating_sub(at_ns)),
            residual_ns: peer.residual_ns,
        };
        let others = self.peers.iter().enumerate().filter(|(index, _)| *index != self.me.0 as usize);
        let own = |result: &NodeResult| if let Verdict::Excluded(fault) = result.verdict { Some((self.me, fault)) } else { None };
        let excluded: BTreeMap<NodeId, Fault> = match &self.joiner {
            Some(joiner) => joiner.excluded.clone(),
            None => self.result.as_ref().and_then(own).into_iter().collect(),
        };
        MeshView {
            node: self.me,
            coordinator: self.coordinator,
            reference: self.result.as_ref().map(|result| result.reference),
            window: self.result.as_ref().map(|result| result.window),
            loop_error_ns: self.result.as_ref().map_or(0, |result| result.loop_error_ns),
            noise_ns: self.result.as_ref().map_or(0, |result| result.noise_ns),
            peers: others.map(peer).collect(),
            excluded: excluded.into_iter().map(|(node, fault)| Excluded { node, why: fault.to_string() }).collect(),
            refused: self.refused,
        }
    }
}

impl Joiner {
    /// Logs excluded and readmitted clocks.
    fn note(&mut self, outcome: &WindowOutcome) {
        for (node, fault) in &outcome.newly_excluded {
            warn!("node {} is excluded from the mesh: {fault}", node.0);
            self.excluded.insert(*node, *fault);
        }
        for node in &outcome.readmitted {
            info!("node {} is in the mesh again", node.0);
            self.excluded.remove(node);
        }
    }
}

/// What a window says of one node, and of its edges.
fn result_of(outcome: &WindowOutcome, node: NodeId) -> NodeResult {
    let seen_from = |residual: &walras_fair_access::mesh::Residual| match node {
        _ if residual.from == node => Some((residual.to, residual.residual_ns)),
        _ if residual.to == node => Some((residual.from, residual.residual_ns.saturating_neg())),
        _ => None,
    };
    NodeResult {
        window: outcome.window,
        reference: outcome.reference,
        verdict: outcome.verdicts.get(node.0 as usize).copied().unwrap_or(Verdict::Unreached),
        loop_error_ns: outcome.quality.loop_error_ns,
        noise_ns: outcome.quality.noise_ns,
        residuals: outcome.residuals.iter().filter_map(seen_from).take(EDGES_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::clock::Correction;
    use walras_fair_access::mesh::EdgeFault;

    use super::*;

    const START_NS: u64 = 1_800_000_000_000_000_000;
    const WINDOW_NS: u64 = 200_000_000;

    fn key() -> MeshKey {
        MeshKey::of_secret(b"sixteen bytes and more").unwrap()
    }

    /// Of three nodes; node 0 joins the reports.
    fn node(me: u32, incarnation: u64) -> Node {
        let options = MeshOptions {
            node: NodeId(me),
            nodes: vec![String::new(); 3],
            listen: ([127, 0, 0, 1], 1).into(),
            socket: None,
            key: key(),
            coordinator: NodeId(0),
            window_ns: WINDOW_NS,
            interval_ns: 8_000_000,
        };
        Node::new(&options, incarnation, START_NS)
    }

    /// The probes that a node sends now, as bytes.
    fn probes(node: &Node, effects: &[Effect]) -> Vec<(NodeId, Vec<u8>)> {
        let probe = |effect: &Effect| match effect {
            Effect::Probe(send) => Some((send.to, node.probe_bytes(send))),
            Effect::Datagram(..) | Effect::Clock(_) => None,
        };
        effects.iter().filter_map(probe).collect()
    }

    fn head(from: u32, to: u32, receiver_incarnation: u64) -> Head {
        Head { from: NodeId(from), to: NodeId(to), sender_incarnation: 70 + u64::from(from), receiver_incarnation }
    }

    fn result(window: u64) -> NodeResult {
        let line = Correction {
            anchor_local_ns: START_NS,
            offset_ns: 5,
            rate_ppt: 0,
            bound_ns: 100,
            bound_growth_ppt: 0,
            bound_growth_ppt_per_s: 0,
        };
        let residuals = vec![(NodeId(0), 12), (NodeId(9), 1)];
        NodeResult { window, reference: NodeId(0), verdict: Verdict::Synced(line), loop_error_ns: 1, noise_ns: 2, residuals }
    }

    #[test]
    fn an_answer_counts_for_the_incarnation_that_asked_and_for_nobody_else() {
        let (mut first, mut second) = (node(0, 7), node(1, 8));
        let mut effects = Vec::new();
        // Which of the two asks is drawn.
        first.on_timer(START_NS, &mut effects);
        let asked = probes(&first, &effects).into_iter().find(|(to, _)| *to == NodeId(1));
        let (mut asker, mut answerer, asked) = match asked {
            Some((_, bytes)) => (first, second, bytes),
            None => {
                effects.clear();
                second.on_timer(START_NS, &mut effects);
                let (_, bytes) = probes(&second, &effects).into_iter().find(|(to, _)| *to == NodeId(0)).unwrap();
                (second, first, bytes)
            }
        };
        let mut effects = Vec::new();
        answerer.on_datagram(START_NS, &asked, &mut effects);
        let (to, answer) = probes(&answerer, &effects).remove(0);
        assert_eq!(to, asker.me);
        asker.on_datagram(START_NS, &answer, &mut Vec::new());
        assert_eq!(asker.refused, Refusals::default());
        assert!(asker.peers[answerer.me.0 as usize].heard_at_ns.is_some());
        // Started again, and another node.
        let mut again = node(asker.me.0, 9);
        again.on_datagram(START_NS, &answer, &mut Vec::new());
        let mut third = node(2, 6);
        third.on_datagram(START_NS, &answer, &mut Vec::new());
        assert_eq!((again.refused.misplaced, third.refused.misplaced), (1, 1));
    }

    #[test]
    fn only_the_coordinator_gives_results_and_only_it_takes_reports() {
        let report = EdgeReport { window: START_NS / WINDOW_NS, from: NodeId(2), to: NodeId(1), result: Err(EdgeFault::Silent) };
        let reports = |from, to| encode(&key(), &head(from, to, 0), &Body::Reports(vec![report]));
        let results = |from, window| encode(&key(), &head(from, 1, 8), &Body::Result(result(window)));
        let mut node = node(1, 8);
        let mut effects = Vec::new();
        node.on_datagram(START_NS, &reports(2, 1), &mut effects);
        node.on_datagram(START_NS, &results(2, 5), &mut effects);
        assert_eq!((node.refused.misplaced, effects.len()), (2, 0));
        node.on_datagram(START_NS, &results(0, 5), &mut effects);
        assert!(matches!(effects[..], [Effect::Clock(Verdict::Synced(_))]), "{effects:?}");
        assert_eq!((node.offset_ns, node.peers[0].residual_ns), (5, Some(12)));
        // The same again, and an older one.
        node.on_datagram(START_NS, &results(0, 5), &mut effects);
        node.on_datagram(START_NS, &results(0, 4), &mut effects);
        assert_eq!((node.refused.late, effects.len()), (2, 1));
        let said = node.trouble(START_NS + 6 * WINDOW_NS).unwrap();
        assert!(said.contains("node 0, its coordinator"), "{said}");
    }

    #[test]
    fn reports_of_another_day_are_late() {
        let mut node = node(0, 7);
        let report = EdgeReport { window: 3, from: NodeId(2), to: NodeId(1), result: Err(EdgeFault::Silent) };
        node.on_datagram(START_NS, &encode(&key(), &head(2, 0, 0), &Body::Reports(vec![report])), &mut Vec::new());
        assert_eq!(node.refused, Refusals { late: 1, ..Refusals::default() });
        assert_eq!(node.joiner.unwrap().incarnations[2], 0, "a recording does not say which incarnation runs");
    }

    /// A coordinator that was interrupted for windows goes on with the last one that is over.
    #[test]
    fn windows_are_closed_a_quarter_later_and_skipped_when_it_is_too_late() {
        let mut node = node(0, 7);
        let mut effects = Vec::new();
        let closed = |effects: &mut Vec<Effect>| {
            let count = effects.iter().filter(|effect| matches!(effect, Effect::Clock(_))).count();
            effects.clear();
            count
        };
        node.on_timer(START_NS, &mut effects);
        assert_eq!(closed(&mut effects), 0);
        node.on_timer(START_NS + WINDOW_NS + WINDOW_NS / 4 - 1, &mut effects);
        assert_eq!(closed(&mut effects), 0);
        node.on_timer(START_NS + WINDOW_NS + WINDOW_NS / 4, &mut effects);
        assert_eq!((closed(&mut effects), node.result.as_ref().unwrap().window), (1, START_NS / WINDOW_NS));
        node.on_timer(START_NS + 9 * WINDOW_NS, &mut effects);
        assert_eq!((closed(&mut effects), node.result.as_ref().unwrap().window), (1, START_NS / WINDOW_NS + 7));
    }
}
