//! etcd, measured for comparison with our clusters of processes, on the same machine in the same run. It uses the program and
//! driver of `make bench NAME=replication` (`bench/peers/etcd`), which checks its own answers.

use std::path::Path;

use walras_figures::peer::{Line, Load, Peer};

use crate::cluster::{Loads, scratch};
use crate::stats::{quantile_of_sorted, sorted};

/// A point of the figure, measured with etcd.
#[derive(Clone, Debug)]
pub struct EtcdPoint {
    /// Members.
    pub members: u16,
    /// Connections.
    pub clients: u32,
    /// Number of unanswered puts, each from a separate client.
    pub outstanding: usize,
    /// One for each run.
    pub runs: Vec<Line>,
}

impl EtcdPoint {
    /// The median of its runs.
    #[must_use]
    pub fn median(&self, of: impl Fn(&Line) -> f64) -> f64 {
        quantile_of_sorted(&sorted(&self.runs.iter().map(of).collect::<Vec<_>>()), 0.5)
    }
}

/// The measurements of etcd, or why there are none.
#[derive(Clone, Debug)]
pub enum EtcdRuns {
    /// All points.
    Ran(Vec<EtcdPoint>),
    /// What is missing, in a sentence.
    NotRun(String),
}

impl EtcdRuns {
    /// All points that there are.
    #[must_use]
    pub fn points(&self) -> &[EtcdPoint] {
        match self {
            Self::Ran(points) => points,
            Self::NotRun(_) => &[],
        }
    }
}

/// Runs of each point, and seconds of each run. Warming up takes as many seconds again.
const RUNS: u32 = 3;
const SECONDS: u32 = 2;

/// Measures etcd under our loads, with these numbers of members. If a point fails, the run fails, because the figure would be
/// incomplete.
pub fn measure(members: &[u16], loads: &Loads) -> anyhow::Result<EtcdRuns> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers");
    let etcd = match Peer::build(&peers, "etcd", "etcd") {
        Ok(etcd) => etcd,
        Err(why) => return Ok(EtcdRuns::NotRun(why)),
    };
    let scratch = scratch()?;
    let (runs, seconds) = if loads.is_small { (1, 1) } else { (RUNS, SECONDS) };
    let mut points = Vec::new();
    for &members in members {
        for &(clients, outstanding) in &loads.points {
            let load = of_point(members, clients, outstanding);
            let runs = (0..runs).map(|_| etcd.run(&load, seconds, scratch.path())).collect::<anyhow::Result<Vec<_>>>()?;
            points.push(EtcdPoint { members, clients, outstanding, runs });
        }
    }
    Ok(EtcdRuns::Ran(points))
}

/// As many unanswered puts as we have orders, on the same number of connections.
fn of_point(members: u16, clients: u32, outstanding: usize) -> Load {
    let mut load = Load::of_etcd("etcd", members, u32::try_from(outstanding).unwrap_or(u32::MAX));
    load.arguments.extend(["--conns".to_owned(), clients.to_string()]);
    load
}
