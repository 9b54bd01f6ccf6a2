//! What runs of clusters leave behind: fig-4.1, fig-4.7 and fig-4.9.

use serde_json::{Value, json};
use walras_client::failover::Death;
use walras_figures::peer::Line;

use crate::cluster::{Loads, Point};
use crate::etcd::{EtcdPoint, EtcdRuns};
use crate::failover::{Elections, GIVEN_UP_MS, Range, Timing};
use crate::plot_cluster;
use crate::record::Record;
use crate::stats::{quantile_of_sorted, sorted, tenths};

/// Deaths of leaders of real processes.
#[derive(Clone, Debug)]
pub struct RealDeaths {
    /// How long replicas waited for signs of life.
    pub range: Range,
    /// All of them.
    pub deaths: Vec<Death>,
}

impl RealDeaths {
    /// Until acknowledged.
    #[must_use]
    pub fn acknowledged_ms(&self) -> Vec<f64> {
        self.deaths.iter().map(|death| death.acknowledged.as_secs_f64() * 1e3).collect()
    }

    fn logged_on_ms(&self) -> Vec<f64> {
        self.deaths.iter().map(|death| death.logged_on.as_secs_f64() * 1e3).collect()
    }
}

/// The numbers that the Raft paper's text gives for its figure, which the dissertation compares with its own. Neither has other
/// numbers.
fn published(range: Range) -> Value {
    match (range.min_ms, range.max_ms) {
        (150, 150) => json!({ "raft_paper": "10 s and more in most elections: votes split again and again" }),
        (150, 155) => json!({ "raft_paper_median_ms": 287 }),
        (150, 200) => json!({ "raft_paper_max_ms": 513 }),
        (12, 24) => {
            json!({ "raft_paper_mean_ms": 35, "raft_paper_max_ms": 152, "dissertation": "left out: its threads were not scheduled in time" })
        }
        _ => Value::Null,
    }
}

/// Hundredths of a millisecond: more would be noise.
fn hundredths(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

fn spread(values_ms: &[f64]) -> Value {
    let in_order = sorted(values_ms);
    let at = |share| hundredths(quantile_of_sorted(&in_order, share));
    let mean = hundredths(values_ms.iter().sum::<f64>() / values_ms.len() as f64);
    json!({ "mean": mean, "p10": at(0.1), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0) })
}

/// Fig-4.1.
pub fn failover(simulated: &[Elections], timing: &Timing, real: &[RealDeaths]) -> anyhow::Result<Record> {
    let mut csv = "way,replicas,pre_vote,conditions,timeout_ms,share,leader_ms,acknowledged_ms\n".to_owned();
    let push = |csv: &mut String, name: &str, leader_ms: &[f64], acknowledged_ms: &[f64], steps: u32| {
        let (leader, acknowledged) = (sorted(leader_ms), sorted(acknowledged_ms));
        for step in 0..=steps {
            let share = f64::from(step) / f64::from(steps);
            let (a, b) = (quantile_of_sorted(&leader, share), quantile_of_sorted(&acknowledged, share));
            csv.push_str(&format!("{name},{share:.2},{a:.2},{b:.2}\n"));
        }
    };
    let mut rows = Vec::new();
    for elections in simulated {
        let setup = elections.setup;
        let name = format!(
            "simulated,{},{},{},{}",
            setup.replicas,
            setup.pre_vote.name(),
            setup.conditions.name().replace(',', " with"),
            elections.range.name()
        );
        push(&mut csv, &name, &elections.elected_ms, &elections.acknowledged_ms, 50);
        rows.push(json!({
            "replicas": setup.replicas,
            "pre_vote": setup.pre_vote.name(),
            "conditions": setup.conditions.name(),
            "timeout_ms": elections.range.name(),
            "elections": elections.acknowledged_ms.len(),
            "given_up": elections.given_up(),
            "ours_until_leader_ms": spread(&elections.elected_ms),
            "ours_until_acknowledged_ms": spread(&elections.acknowledged_ms),
            "published": published(elections.range),
        }));
    }
    let mut processes = Vec::new();
    for one in real {
        let name = format!("processes,3,pre-vote,ordinary,{}", one.range.name());
        push(&mut csv, &name, &one.logged_on_ms(), &one.acknowledged_ms(), 50);
        processes.push(json!({
            "replicas": 3,
            "pre_vote": "pre-vote",
            "conditions": "ordinary",
            "timeout_ms": one.range.name(),
            "deaths": one.deaths.len(),
            "ours_until_session_ms": spread(&one.logged_on_ms()),
            "ours_until_acknowledged_ms": spread(&one.acknowledged_ms()),
            "published": published(one.range),
        }));
    }
    let bar = real.iter().find(|one| (one.range.min_ms, one.range.max_ms) == (150, 300));
    let p50 = bar.map(|one| hundredths(quantile_of_sorted(&sorted(&one.acknowledged_ms()), 0.5)));
    let result = json!({
        "failover_p50_ms_150_300": p50,
        "given_up_after_ms": GIVEN_UP_MS,
        "simulated": rows,
        "simulated_surroundings": {
            "link_us_p50": timing.link_us_p50, "link_spread_of_logarithm": timing.link_spread,
            "sync_us_p50": timing.sync_us_p50, "sync_spread_of_logarithm": timing.sync_spread,
            "wake_us": [timing.wake_us.0, timing.wake_us.1], "client_retries_every_us": timing.retry_us,
        },
        "processes": processes,
    });
    Ok(Record { figure: "fig-4.1", result, iterations_csv: csv, plot_svg: plot_cluster::failover(simulated, real)? })
}

fn load_csv(points: &[Point], etcd: &EtcdRuns) -> String {
    let mut csv = "who,replicas,clients,connections,outstanding,trial,mean_us,p50_us,p99_us,commands_per_s,acknowledged,rejected\n"
        .to_owned();
    for point in points {
        for (index, trial) in point.trials.iter().enumerate() {
            csv.push_str(&format!(
                "ours,{},{},{},{},{index},{:.1},{:.1},{:.1},{:.0},{},{}\n",
                point.replicas,
                point.clients,
                trial.sessions,
                point.outstanding,
                trial.mean_ns / 1e3,
                trial.latency.p50_ns as f64 / 1e3,
                trial.latency.p99_ns as f64 / 1e3,
                trial.acknowledged_per_second,
                trial.acknowledged,
                trial.rejected,
            ));
        }
    }
    for EtcdPoint { members, clients, outstanding, runs } in etcd.points() {
        for (index, run) in runs.iter().enumerate() {
            let Line { mean_us, p50_us, p99_us, per_s, .. } = run;
            csv.push_str(&format!(
                "etcd,{members},{clients},{clients},{outstanding},{index},{mean_us:.1},{p50_us:.1},{p99_us:.1},{per_s:.0},,\n"
            ));
        }
    }
    csv
}

/// Its trials' P10, P50 and P90, as published.
fn point(point: &Point) -> Value {
    let three = |values: &[f64]| {
        let in_order = sorted(values);
        let at = |share| tenths(quantile_of_sorted(&in_order, share));
        json!({ "p10": at(0.1), "p50": at(0.5), "p90": at(0.9) })
    };
    let is_busy = point.trials.iter().map(|trial| trial.reconnects).sum::<u64>();
    json!({
        "replicas": point.replicas,
        "clients": point.clients,
        "connections": point.trials.first().map(|trial| trial.sessions),
        "outstanding": point.outstanding,
        "ours_mean_us": three(&point.means_us()),
        "ours_commands_per_s": three(&point.throughputs()),
        "connections_lost": is_busy,
    })
}

/// The median over its trials.
pub(crate) fn middle(values: &[f64]) -> f64 {
    quantile_of_sorted(&sorted(values), 0.5)
}

/// etcd here, and how often ours: medians.
fn etcd_rows(points: &[Point], etcd: &EtcdRuns) -> Value {
    let rows: Vec<Value> = etcd
        .points()
        .iter()
        .map(|at| {
            let (per_s, mean_us) = (at.median(|run| run.per_s), at.median(|run| run.mean_us));
            let is_its =
                |point: &&Point| (point.replicas, point.clients, point.outstanding) == (at.members, at.clients, at.outstanding);
            let ratios = points.iter().find(is_its).map(|point| {
                json!({
                    "throughput_ours_to_etcd": tenths(middle(&point.throughputs()) / per_s),
                    "latency_etcd_to_ours": tenths(mean_us / middle(&point.means_us())),
                })
            });
            json!({
                "peer": at.runs.first().map(|run| run.peer.as_str()),
                "members": at.members,
                "connections": at.clients,
                "outstanding": at.outstanding,
                "runs": at.runs.len(),
                "writes_per_s": tenths(per_s),
                "mean_us": tenths(mean_us),
                "ratios": ratios,
            })
        })
        .collect();
    match etcd {
        EtcdRuns::Ran(_) => rows.into(),
        EtcdRuns::NotRun(why) => json!({ "not_run": why }),
    }
}

/// For a plot: where, mean microseconds, a second.
fn marks_of(etcd: &EtcdRuns, x_of: impl Fn(&EtcdPoint) -> f64) -> Vec<plot_cluster::Mark> {
    let mark = |at: &EtcdPoint| (x_of(at), at.median(|run| run.mean_us), at.median(|run| run.per_s));
    etcd.points().iter().map(mark).collect()
}

/// Fig-4.7, with the table of fig-4.8.
pub fn clients(points: &[Point], etcd_runs: &EtcdRuns, loads: &Loads) -> anyhow::Result<Record> {
    let ours = |clients: u32| points.iter().find(|point| point.clients == clients);
    // Of the dissertation's fig-4.8, which takes it from etcd's documentation: machines of eight processors each, of its own for
    // the clients.
    let published = [(1, 583.0, 1_600.0), (100, 44_341.0, 22_000.0)];
    let etcd = published.map(|(connections, per_second, mean_us)| {
        let ratios = ours(connections).map(|point| {
            json!({
                "throughput_ours_to_etcd": tenths(middle(&point.throughputs()) / per_second),
                "latency_etcd_to_ours": tenths(mean_us / middle(&point.means_us())),
            })
        });
        json!({ "connections": connections, "writes_per_s": per_second, "mean_us": mean_us, "ratios": ratios })
    });
    let result = json!({
        "trials": loads.trials,
        "trial_ms": loads.trial.as_millis() as u64,
        "durability": "disk",
        "points": points.iter().map(point).collect::<Vec<_>>(),
        "etcd_here": etcd_rows(points, etcd_runs),
        "published_etcd": etcd,
        "published_here": "throughput grows with the clients up to about 7 of them, then falls; latency like etcd's and higher",
    });
    let marks = |(connections, per_second, mean_us): (u32, f64, f64)| (f64::from(connections), mean_us, per_second);
    let title = "Fig. 4.7: three processes on this machine, against the number of clients";
    let etcd = plot_cluster::Etcd { here: &marks_of(etcd_runs, |at| f64::from(at.clients)), published: &published.map(marks) };
    let plot_svg = plot_cluster::load(title, "clients (logarithmic)", points, |point| f64::from(point.clients), &etcd)?;
    let iterations_csv = load_csv(points, etcd_runs);
    Ok(Record { figure: "fig-4.7", result, iterations_csv, plot_svg })
}

/// Fig-4.9.
pub fn sizes(points: &[Point], etcd_runs: &EtcdRuns, loads: &Loads) -> anyhow::Result<Record> {
    let of = |replicas: u16| points.iter().find(|point| point.replicas == replicas);
    let against_three = |replicas: u16| {
        let (three, more) = (of(3)?, of(replicas)?);
        let percent = |ours: f64, theirs: f64| tenths(100.0 * (ours / theirs - 1.0));
        Some(json!({
            "replicas": replicas,
            "latency_percent": percent(middle(&more.means_us()), middle(&three.means_us())),
            "throughput_percent": percent(middle(&more.throughputs()), middle(&three.throughputs())),
        }))
    };
    let result = json!({
        "trials": loads.trials,
        "trial_ms": loads.trial.as_millis() as u64,
        "durability": "disk",
        "points": points.iter().map(point).collect::<Vec<_>>(),
        "ours_against_three_replicas": [against_three(5), against_three(7)],
        "etcd_here": etcd_rows(points, etcd_runs),
        "published_against_three_replicas": [{ "replicas": 5, "latency_percent": 10, "throughput_percent": -30 }],
    });
    let title = "Fig. 4.9: 3, 5 and 7 processes on this machine, four clients that burst";
    let etcd = plot_cluster::Etcd { here: &marks_of(etcd_runs, |at| f64::from(at.members)), published: &[] };
    let plot_svg = plot_cluster::load(title, "replicas (logarithmic)", points, |point| f64::from(point.replicas), &etcd)?;
    let iterations_csv = load_csv(points, etcd_runs);
    Ok(Record { figure: "fig-4.9", result, iterations_csv, plot_svg })
}
