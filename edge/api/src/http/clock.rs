//! The node's clock: how far off it may be, and whether it stamps.

use axum::extract::State;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_clock_sync::{ClockView, MeshView};
use walras_fair_access::clock::ClockStatus;
use walras_types::RejectReason;

use super::exposition::{Exposition, Kind};
use super::{Answer, App, ok};

pub(super) async fn clock(State(app): State<App>) -> Answer {
    let none =
        || Refusal::new(RejectReason::NotFound, "this node keeps no clock: set clock.source in its configuration (docs/clocks.md)");
    Ok(ok(&view(&app.clock.as_ref().ok_or_else(none)?.view())))
}

fn name(status: ClockStatus) -> &'static str {
    match status {
        ClockStatus::Good => "good",
        ClockStatus::Wide => "wide",
        ClockStatus::Unknown => "unknown",
    }
}

fn view(view: &ClockView) -> Value {
    json!({
        "source": view.source,
        "status": name(view.status),
        "time_ns": view.reading.map(|reading| reading.time_ns.to_string()),
        "bound_ns": view.reading.map(|reading| reading.bound_ns.to_string()),
        "bound_max_ns": view.bound_max_ns.to_string(),
        "system_ahead_ns": view.system_ahead_ns.map(|ahead_ns| ahead_ns.to_string()),
        "trouble": view.trouble,
        "mesh": view.mesh.as_ref().map(mesh),
    })
}

fn mesh(mesh: &MeshView) -> Value {
    let peers = mesh.peers.iter().map(|peer| {
        json!({
            "node": peer.node.0,
            "heard_ago_ns": peer.heard_ago_ns.map(|ago_ns| ago_ns.to_string()),
            "residual_ns": peer.residual_ns.map(|residual_ns| residual_ns.to_string()),
        })
    });
    let excluded = mesh.excluded.iter().map(|excluded| json!({"node": excluded.node.0, "why": excluded.why}));
    json!({
        "node": mesh.node.0,
        "coordinator": mesh.coordinator.0,
        "reference": mesh.reference.map(|node| node.0),
        "window": mesh.window.map(|window| window.to_string()),
        "loop_error_ns": mesh.loop_error_ns.to_string(),
        "noise_ns": mesh.noise_ns.to_string(),
        "peers": peers.collect::<Vec<_>>(),
        "excluded": excluded.collect::<Vec<_>>(),
        "refused": {
            "malformed": mesh.refused.malformed.to_string(),
            "unauthenticated": mesh.refused.unauthenticated.to_string(),
            "misplaced": mesh.refused.misplaced.to_string(),
            "late": mesh.refused.late.to_string(),
        },
    })
}

/// Appends the metrics of the clock. What is not known is left out.
pub(super) fn metrics(view: &ClockView, text: &mut Exposition) {
    let seconds = |ns: f64| ns / 1e9;
    let status = match view.status {
        ClockStatus::Unknown => 0,
        ClockStatus::Wide => 1,
        ClockStatus::Good => 2,
    };
    let help = "2 when the clock is good enough to stamp, 1 when its bound is too wide, 0 without one";
    text.one(("walras_clock_status", Kind::Gauge, help), status);
    let bound_max = seconds(view.bound_max_ns as f64);
    text.one(("walras_clock_bound_max_seconds", Kind::Gauge, "the widest bound that stamps"), bound_max);
    if let Some(reading) = view.reading {
        let bound = seconds(reading.bound_ns as f64);
        text.one(("walras_clock_bound_seconds", Kind::Gauge, "how far the clock may be off"), bound);
    }
    if let Some(ahead_ns) = view.system_ahead_ns {
        let help = "the system's clock less the venue's time";
        text.one(("walras_clock_system_ahead_seconds", Kind::Gauge, help), seconds(ahead_ns as f64));
    }
    let Some(mesh) = &view.mesh else { return };
    let help = "what the edge to a peer left open in the last window";
    let mut residuals = text.family("walras_clock_mesh_residual_seconds", Kind::Gauge, help);
    for peer in &mesh.peers {
        if let Some(residual_ns) = peer.residual_ns {
            residuals.sample([("peer", &peer.node.0)], seconds(residual_ns as f64));
        }
    }
    let help = "what edges leave open in their loops, as a deviation";
    text.one(("walras_clock_mesh_loop_error_seconds", Kind::Gauge, help), seconds(mesh.loop_error_ns as f64));
    let help = "the same of the change from window to window";
    text.one(("walras_clock_mesh_noise_seconds", Kind::Gauge, help), seconds(mesh.noise_ns as f64));
    let help = "nodes whose clocks are excluded, as far as this node knows";
    text.one(("walras_clock_mesh_excluded", Kind::Gauge, help), mesh.excluded.len());
    let refused = &mesh.refused;
    let help = "datagrams and reports that were not taken, by cause";
    let mut causes = text.family("walras_clock_mesh_refused_total", Kind::Counter, help);
    for (cause, count) in [
        ("malformed", refused.malformed),
        ("unauthenticated", refused.unauthenticated),
        ("misplaced", refused.misplaced),
        ("late", refused.late),
    ] {
        causes.sample([("cause", &cause)], count);
    }
}
