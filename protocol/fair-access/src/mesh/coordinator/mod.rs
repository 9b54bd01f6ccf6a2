//! All edges of a window in, a verdict on every node's clock out.

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

/// How the coordinator judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoordinatorConfig {
    /// Who probes whom.
    pub schedule: Schedule,
    /// How long a window is.
    pub window_ns: u64,
    /// A clock that drifts faster than this against the middle of all is bad.
    pub rate_ppt_max: u64,
    /// A clock that moves more than this in one window beyond what its rate foretold has jumped.
    pub jump_ns_max: u64,
    /// An edge whose line may be farther off than this says nothing.
    pub noise_ns_max: u64,
    /// An edge that does not close its loops by less than this is no lie, whatever the others do.
    pub disagreement_ns_min: u64,
    /// Windows without a fault after which an excluded node is taken in again.
    pub probation_windows: u32,
    /// How long pairs that are no longer probed are remembered.
    pub memory_windows: u64,
    /// How fast temperature may change a rate, until the mesh has seen how fast it does.
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

/// What the node that an edge belongs to says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeReport {
    /// Which window.
    pub window: u64,
    /// Who says it.
    pub from: NodeId,
    /// The other end.
    pub to: NodeId,
    /// What was found.
    pub result: Result<EdgeEstimate, EdgeFault>,
}

/// A report that is not taken. Nothing of it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReportError {
    /// Too late, or of a window that has not come: its node's clock is off by windows.
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
        /// Who reported.
        from: NodeId,
        /// About whom.
        to: NodeId,
    },
}

/// What is wrong with a node's clock, or with what it says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// The clock moved otherwise than its rate foretold.
    #[error("its clock jumped by {by_ns} ns: find out who sets it")]
    Jumped {
        /// How far; positive: forward.
        by_ns: i64,
    },
    /// The clock is too fast or too slow.
    #[error("its clock drifts by {rate_ppt} ppt, more than oscillators do: replace it, or find out who steers it")]
    Drifts {
        /// How fast against the middle of all nodes; positive: fast.
        rate_ppt: i64,
    },
    /// Most of its edges contradict themselves or do not close their loops.
    #[error("{edges_bad} of its {edges} edges contradict the other nodes: its stamps are wrong, or its clock jumps")]
    Contradicts {
        /// How many of them.
        edges_bad: u32,
        /// How many edges it had to nodes in good standing.
        edges: u32,
    },
}

/// What a window says of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The line of its clock.
    Synced(Correction),
    /// No edge reached it: it goes on with the line that it has, whose bound grows.
    Unreached,
    /// Its clock is bad: it must not stamp.
    Excluded(Fault),
}

/// How well a window's edges agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    /// Edges that were measured.
    pub edges: u32,
    /// Edges, remembered ones included, that loops are closed with.
    pub edges_remembered: u32,
    /// Edges between nodes in good standing that contradicted themselves or the others and were left out.
    pub edges_left_out: u32,
    /// The standard deviation of what an edge leaves open in its loops: path asymmetry, mostly.
    pub loop_error_ns: u64,
    /// The same of the change from window to window: noise.
    pub noise_ns: u64,
}

/// A window's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowOutcome {
    /// Which window.
    pub window: u64,
    /// Whose clock is the venue's time (as its line is, when it took over).
    pub reference: NodeId,
    /// For each node.
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

/// What one edge leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Residual {
    /// Who reported the edge.
    pub from: NodeId,
    /// Its other end.
    pub to: NodeId,
    /// Nanoseconds; positive where `to` seems ahead of its line.
    pub residual_ns: i64,
}

/// What the coordinator knows of a node.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Nothing: it joined, or came back.
    New,
    /// Where its clock is.
    Tracked(Track),
    /// Its clock is bad. What its edges said last, to see whether it behaves.
    Excluded { fault: Fault, clean_windows: u32, last: Option<Track> },
}

/// A window's edges with what was reported of each.
type Reports = BTreeMap<(NodeId, NodeId), Option<Result<EdgeEstimate, EdgeFault>>>;

/// Follows all clocks from window to window. One per mesh; it may run anywhere, and a restart does no harm (virtual clocks slew).
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    standings: Vec<Standing>,
    reference: usize,
    memory: Memory,
    /// The middle of the last window closed.
    middle_ns_last: Option<u64>,
    /// From there to the middle of the one being closed.
    elapsed_ns: u64,
    window_next: u64,
    open: BTreeMap<u64, Reports>,
    spread: quality::Spread,
}

/// Windows that are open for reports at one time.
const WINDOWS_OPEN: u64 = 2;

impl Coordinator {
    /// A coordinator that begins with `window_first`. The venue's time is node 0's clock; should that fail, the next good node
    /// carries on at the rate that it has.
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

    /// Takes a report in; the last one of an edge counts.
    pub fn on_report(&mut self, report: &EdgeReport) -> Result<(), ReportError> {
        let EdgeReport { window, from, to, result } = *report;
        // A node fits its edges itself, so it can say anything: what no fit finds is a fault.
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

    /// Ends a window: all reports that came by now count. Windows before it that were not closed are skipped. None where the window
    /// was closed before or there are no nodes.
    ///
    /// Edges that contradict themselves are put aside; rates are solved for; every clock is moved to where its rate foretold and
    /// then by what the edges known from before say (clocks move, paths do not); then all edges, remembered ones included, are made
    /// to agree. Whenever that shows a bad node, it is put out and the window is solved again without it.
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

    /// Where a node's clock is believed to be.
    fn track(&self, node: usize) -> Option<Track> {
        match self.standings[node] {
            Standing::Tracked(track) => Some(track),
            Standing::New | Standing::Excluded { .. } => None,
        }
    }
}
