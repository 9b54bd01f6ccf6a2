//! etcd beside our clusters of processes, on the same machine in the same run: the program and the driver that `make bench NAME=replication` has too
//! (`bench/peers/etcd`), which checks its own answers.

use std::path::Path;

use walras_figures::peer::{Line, Load, Peer};

use crate::cluster::{Loads, scratch};
use crate::stats::{quantile_of_sorted, sorted};

/// A point of ours, asked of etcd.
#[derive(Clone, Debug)]
pub struct EtcdPoint {
    /// Members.
    pub members: u16,
    /// Connections.
    pub clients: u32,
    /// Puts unanswered, each of a client of its own.
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

/// What etcd did, or why it did nothing.
#[derive(Clone, Debug)]
pub enum Beside {
    /// All points.
    Ran(Vec<EtcdPoint>),
    /// A sentence on what is missing.
    NotRun(String),
}

impl Beside {
    /// All points that there are.
    #[must_use]
    pub fn points(&self) -> &[EtcdPoint] {
        match self {
            Self::Ran(points) => points,
            Self::NotRun(_) => &[],
        }
    }
}

/// Runs of each point, and seconds of each run, as many of which warm it up.
const RUNS: u32 = 3;
const SECONDS: u32 = 2;

/// etcd under our loads, with so many members. A point that fails is a failure of the run: a figure without it would claim too much.
pub fn measure(members: &[u16], loads: &Loads) -> anyhow::Result<Beside> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers");
    let etcd = match Peer::build(&peers, "etcd", "etcd") {
        Ok(etcd) => etcd,
        Err(why) => return Ok(Beside::NotRun(why)),
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
    Ok(Beside::Ran(points))
}

/// As many puts unanswered as we have orders, on as many connections.
fn of_point(members: u16, clients: u32, outstanding: usize) -> Load {
    let mut load = Load::of_etcd("etcd", members, u32::try_from(outstanding).unwrap_or(u32::MAX));
    load.arguments.extend(["--conns".to_owned(), clients.to_string()]);
    load
}
