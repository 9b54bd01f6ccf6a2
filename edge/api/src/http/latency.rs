//! How long orders and market data take at this node, stage by stage.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use walras_ports::{QUANTILES, RECENT, StageView, TIMED_ONE_OF};

use super::exposition::{Exposition, Kind};
use super::{App, ok};

pub(super) async fn latency(State(app): State<App>) -> Response {
    let stages: Vec<Value> = app.venue.stages().view().iter().map(stage).collect();
    ok(&json!({"timed_one_of": TIMED_ONE_OF, "recent_s": RECENT.as_secs(), "stages": stages}))
}

fn stage(view: &StageView) -> Value {
    let StageView { stage, count, sum_ns: _, recent, percentiles_ns, ns_max } = *view;
    let of_recent = |ns: u64| (recent > 0).then_some(ns);
    let [p50_ns, p90_ns, p99_ns, p999_ns] = percentiles_ns.map(of_recent);
    json!({
        "stage": stage.name(),
        "count": count,
        "recent": recent,
        "p50_ns": p50_ns,
        "p90_ns": p90_ns,
        "p99_ns": p99_ns,
        "p999_ns": p999_ns,
        "ns_max": of_recent(ns_max),
    })
}

/// Appends the metrics of latency: a summary.
pub(super) fn metrics(app: &App, text: &mut Exposition) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let help = "how long a stage of orders or market data takes; quantiles of the last minute at most";
    let mut family = text.family("walras_stage_seconds", Kind::Summary, help);
    for StageView { stage, count, sum_ns, recent, percentiles_ns, .. } in app.venue.stages().view() {
        let stage = stage.name();
        for (quantile, ns) in QUANTILES.into_iter().zip(percentiles_ns) {
            let value = if recent > 0 { seconds(ns) } else { f64::NAN };
            family.sample([("stage", &stage), ("quantile", &quantile)], value);
        }
        family.part("_sum", [("stage", &stage)], seconds(sum_ns));
        family.part("_count", [("stage", &stage)], count);
    }
}
