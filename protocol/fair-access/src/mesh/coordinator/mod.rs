//! The coordinator: takes all edges of a window, returns a verdict on every node's clock.

mod attempt;
mod judge;
mod place;
mod quality;

use std::collections::BTreeMap;

use thiserror::Error;

use super::samples::{EDGE_RATE_PPT_MAX, NOISE_NS_MAX};
use super::{EdgeEstimate, EdgeFault, NodeId, Schedule};
use crate::clock::Correction;
use attempt::{Attempt, Memory, Track};

/// Settings of the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoordinatorConfig {
    /// Which nodes probe each other.
    pub schedule: Schedule,
    /// Length of a window.
    pub window_ns: u64,
    /// A clock that drifts faster than this relative to the median is bad.
    pub rate_ppt_max: u64,
    /// A clock that deviates by more than this from its prediction in one window has jumped.
    pub jump_ns_max: u64,
    /// An edge whose line may have a larger error is ignored.
    pub noise_ns_max: u64,
    /// An edge with a smaller loop error never counts as contradicting the others.
    pub disagreement_ns_min: u64,
    /// Number of windows without a fault after which an excluded node is readmitted.
    pub probation_windows: u32,
    /// How many windows a pair is remembered after it was last probed.
    pub memory_windows: u64,
    /// Assumed speed at which temperature changes a rate, until the mesh has measured it.
    pub wander_ppt_per_s: u64,
}

impl CoordinatorConfig {
    /// The limits of ordinary oscillators: 50 us/s, jumps of 2 us, 20 ns/s of wander each second; edges that may be 3 us off.
    pub fn new(schedule: Schedule, window_ns: u64) -> Self {
        Self {
            schedule,
            window_ns,
            rate_ppt_max: 50_000_000,
            jump_ns_max: 2_000,
            noise_ns_max: NOISE_NS_MAX,
            disagreement_ns_min: 200,
            probation_windows: 10,
            memory_windows: 128,
            wander_ppt_per_s: 20_000,
        }
    }
}

/// An edge's report, by the node that probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeReport {
    /// The window.
    pub window: u64,
    /// The reporting node.
    pub from: NodeId,
    /// The other end.
    pub to: NodeId,
    /// The estimate, or why there is none.
    pub result: Result<EdgeEstimate, EdgeFault>,
}

/// Why a report was refused. It changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReportError {
    /// The report's window is already closed or not yet open: its node's clock is off by whole windows.
    #[error(
        "a report of window {window}, while windows {next} and the one after are open: set the node's clock to within a second"
    )]
    Window {
        /// The window of the report.
        window: u64,
        /// The first one that is open.
        next: u64,
    },
    /// The schedule has no such edge.
    #[error("node {} does not probe node {} in this window: check that all nodes have the same schedule", from.0, to.0)]
    Edge {
        /// The reporting node.
        from: NodeId,
        /// The other end.
        to: NodeId,
    },
}

/// What is wrong with a node's clock or its reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// The clock moved differently from its predicted rate.
    #[error("its clock jumped by {by_ns} ns: find out who sets it")]
    Jumped {
        /// The size of the jump; positive: forward.
        by_ns: i64,
    },
    /// The clock is too fast or too slow.
    #[error("its clock drifts by {rate_ppt} ppt, more than oscillators do: replace it, or find out who steers it")]
    Drifts {
        /// Rate relative to the median of all nodes; positive: fast.
        rate_ppt: i64,
    },
    /// Most of its edges contradict themselves or do not close their loops.
    #[error("{edges_bad} of its {edges} edges contradict the other nodes: its stamps are wrong, or its clock jumps")]
    Contradicts {
        /// Number of contradicting edges.
        edges_bad: u32,
        /// Number of edges to trusted nodes.
        edges: u32,
    },
}

/// A window's verdict on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The line for its clock.
    Synced(Correction),
    /// No edge reached it: it keeps its line, whose bound grows.
    Unreached,
    /// Its clock is bad: it must not stamp.
    Excluded(Fault),
}

/// How well a window's edges agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    /// Edges that were measured.
    pub edges: u32,
    /// Edges, including remembered ones, that were used to close loops.
    pub edges_remembered: u32,
    /// Edges between trusted nodes that were left out because they contradict themselves or the others.
    pub edges_left_out: u32,
    /// Standard deviation of an edge's loop error: mostly path asymmetry.
    pub loop_error_ns: u64,
    /// Standard deviation of its change from window to window: noise.
    pub noise_ns: u64,
}

/// A window's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowOutcome {
    /// The window.
    pub window: u64,
    /// The node whose clock is the venue time (its line, if it took over from another reference).
    pub reference: NodeId,
    /// One verdict per node.
    pub verdicts: Vec<Verdict>,
    /// Nodes that this window excluded.
    pub newly_excluded: Vec<(NodeId, Fault)>,
    /// Nodes whose probation ended: they are synced again from the next window.
    pub readmitted: Vec<NodeId>,
    /// How well the edges agree.
    pub quality: Quality,
    /// The residual of each measured edge: its offset less what the lines of its two nodes predict. Path asymmetry, mostly.
    pub residuals: Vec<Residual>,
}

/// The residual of one edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Residual {
    /// The node that reported the edge.
    pub from: NodeId,
    /// Its other end.
    pub to: NodeId,
    /// Positive if `to` seems ahead of its line.
    pub residual_ns: i64,
}

/// What the coordinator knows about a node.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Nothing: it joined or came back.
    New,
    /// The track of its clock.
    Tracked(Track),
    /// Its clock is bad. `last` is the track that its edges gave last, to see whether it has recovered.
    Excluded { fault: Fault, clean_windows: u32, last: Option<Track> },
}

/// A window's edges with their reports.
type Reports = BTreeMap<(NodeId, NodeId), Option<Result<EdgeEstimate, EdgeFault>>>;

/// Follows all clocks from window to window. There is one per mesh. It may run anywhere, and it may be restarted: virtual clocks
/// slew.
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    standings: Vec<Standing>,
    reference: usize,
    memory: Memory,
    /// Middle of the last closed window.
    middle_ns_last: Option<u64>,
    /// Time from there to the middle of the window being closed.
    elapsed_ns: u64,
    window_next: u64,
    open: BTreeMap<u64, Reports>,
    spread: quality::Spread,
}

/// Number of windows open for reports at a time.
const WINDOWS_OPEN: u64 = 2;

impl Coordinator {
    /// Creates a coordinator whose first window is `window_first`. The venue time is node 0's clock. If that node fails, the next
    /// good node takes over at its current rate.
    pub fn new(config: CoordinatorConfig, window_first: u64) -> Self {
        let node_count = config.schedule.node_count();
        Self {
            config,
            standings: vec![Standing::New; node_count],
            reference: 0,
            memory: Memory::default(),
            middle_ns_last: None,
            elapsed_ns: 0,
            window_next: window_first,
            open: BTreeMap::new(),
            spread: quality::Spread::new(node_count),
        }
    }

    /// Takes a report. If an edge has several, the last one counts.
    pub fn on_report(&mut self, report: &EdgeReport) -> Result<(), ReportError> {
        let EdgeReport { window, from, to, result } = *report;
        // A node fits its own edges, so it can report anything. A rate that no honest fit returns is a fault.
        let is_steep = |estimate: &EdgeEstimate| estimate.rate_ppt.unsigned_abs() > EDGE_RATE_PPT_MAX.unsigned_abs();
        let result = match result {
            Ok(estimate) if is_steep(&estimate) => Err(EdgeFault::Steep { rate_ppt: estimate.rate_ppt }),
            Ok(estimate) if estimate.noise_ns > self.config.noise_ns_max => Err(EdgeFault::Silent),
            Ok(_) | Err(_) => result,
        };
        let next = self.window_next;
        if window < next || window - next >= WINDOWS_OPEN {
            return Err(ReportError::Window { window, next });
        }
        let schedule = self.config.schedule;
        let edges =
            self.open.entry(window).or_insert_with(|| schedule.edges(window).into_iter().map(|edge| (edge, None)).collect());
        let place = edges.get_mut(&(from, to)).ok_or(ReportError::Edge { from, to })?;
        *place = Some(result);
        Ok(())
    }

    /// Closes a window; only reports received so far count. Earlier open windows are skipped. `None` if the window was already
    /// closed or there are no nodes.
    ///
    /// Edges that contradict themselves are set aside. Rates are solved for. Every track is moved to its prediction, then by the
    /// changes of the remembered edges (clocks move, paths do not). Finally all edges, including remembered ones, are made to
    /// agree. If any step shows a bad node, it is excluded and the window is solved again without it.
    pub fn close_window(&mut self, window: u64) -> Option<WindowOutcome> {
        if window < self.window_next || self.standings.is_empty() {
            return None;
        }
        let middle_ns = window.checked_mul(self.config.window_ns)?.checked_add(self.config.window_ns / 2)?;
        self.elapsed_ns = middle_ns - self.middle_ns_last.unwrap_or(middle_ns);
        let reports = self.open.remove(&window).unwrap_or_default();
        self.open.retain(|&open, _| open > window);
        self.window_next = window + 1;
        self.middle_ns_last = Some(middle_ns);
        for standing in &mut self.standings {
            match standing {
                Standing::Tracked(track) | Standing::Excluded { last: Some(track), .. } => track.foretell(self.elapsed_ns),
                Standing::New | Standing::Excluded { last: None, .. } => {}
            }
        }
        let edges: Vec<_> = reports.iter().filter_map(|(&(from, to), &result)| Some((from.index(), to.index(), result?))).collect();

        let mut newly_excluded = Vec::new();
        let attempt = loop {
            let attempt = Attempt::solve(self, window, middle_ns, &edges);
            match attempt.culprit {
                Some((node, fault)) => {
                    self.exclude(node, fault);
                    newly_excluded.push((NodeId::of(node), fault));
                }
                None => break attempt,
            }
        };
        let outcome = self.commit(window, middle_ns, attempt);
        let readmitted = self.judge_excluded(middle_ns, &edges);
        Some(WindowOutcome { newly_excluded, readmitted, ..outcome })
    }

    fn exclude(&mut self, node: usize, fault: Fault) {
        self.standings[node] = Standing::Excluded { fault, clean_windows: 0, last: None };
        self.memory.forget_node(node);
        self.spread.forget_node(node);
        if node == self.reference {
            let tracked = |standing: &Standing| matches!(standing, Standing::Tracked(_));
            let new = |standing: &Standing| matches!(standing, Standing::New);
            let next = self.standings.iter().position(tracked).or_else(|| self.standings.iter().position(new));
            self.reference = next.unwrap_or(node);
        }
    }

    fn is_excluded(&self, node: usize) -> bool {
        matches!(self.standings[node], Standing::Excluded { .. })
    }

    /// The current track of a node.
    fn track(&self, node: usize) -> Option<Track> {
        match self.standings[node] {
            Standing::Tracked(track) => Some(track),
            Standing::New | Standing::Excluded { .. } => None,
        }
    }
}
