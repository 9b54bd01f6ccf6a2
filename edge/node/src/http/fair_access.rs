//! Fair access: how this replica stamps orders, and where it leads, how it sequences them.

use axum::extract::State;
use serde_json::{Value, json};
use walras_consensus::ReplicaId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::{DelaySettings, Stepped, Tracking};
use walras_fair_access::strays::Standing;
use walras_sequencer::GatewayFigures;
use walras_types::RejectReason;

use super::{Answer, ApiError, App, ok};
use crate::json::Refusal;
use crate::runtime::{FairAccessView, HoldView};

pub(super) async fn status(State(app): State<App>) -> Answer {
    let (view, held) = (of(&app), app.venue.held());
    if view.is_none() && held.is_none() {
        let advice = "orders are taken and market data is given out as they come: set fair_access.sequencing for orders in the order of \
            their stamps, fair_access.release for market data at the same instant";
        return Err(ApiError::from(Refusal::new(RejectReason::NotFound, advice)));
    }
    let mut answer = json!({"is_sequencing": false, "clock": null, "gateway": null, "sequencer": null});
    if let Some((view, is_sequencing)) = &view {
        answer = sequencing(&app, view, *is_sequencing);
    }
    answer["release"] = held.map_or(Value::Null, |held| release(&app, held));
    Ok(ok(&answer))
}

/// The share of unfairness that a delay is steered to, if it is.
fn target_ppm(delay: DelaySettings) -> Option<u32> {
    match delay {
        DelaySettings::Static { .. } => None,
        DelaySettings::Stepped(Stepped { target, .. }) | DelaySettings::Tracking(Tracking { target, .. }) => Some(target.0),
    }
}

fn release(app: &App, held: HoldView) -> Value {
    // The venue started with it: it is one.
    let rules = app.config.release_rules().ok().flatten();
    let HoldView { pieces, late, late_ns_max, refused, overshoot_ns: [overshoot_p50_ns, overshoot_p99_ns, overshoot_p999_ns] } =
        held;
    json!({
        "delay_ns": app.venue.status().release_delay_ns(),
        "target_ppm": rules.and_then(|rules| target_ppm(rules.delay)),
        "pieces": pieces,
        "late": late,
        "late_ns_max": late_ns_max,
        "refused": refused,
        "overshoot_p50_ns": overshoot_p50_ns,
        "overshoot_p99_ns": overshoot_p99_ns,
        "overshoot_p999_ns": overshoot_p999_ns,
    })
}

/// The view, and whether this replica sequences orders now.
fn of(app: &App) -> Option<(FairAccessView, bool)> {
    let view = app.venue.cluster()?.view();
    view.fair_access.map(|fair| (fair, view.is_taking))
}

pub(super) fn status_name(status: ClockStatus) -> &'static str {
    match status {
        ClockStatus::Good => "good",
        ClockStatus::Wide => "wide",
        ClockStatus::Unknown => "unknown",
    }
}

fn sequencing(app: &App, view: &FairAccessView, is_sequencing: bool) -> Value {
    let FairAccessView { clock, leader, unanswered, forwards, intake } = view;
    let options = app.config.fair_access_options().ok().flatten();
    // The section `[clock]` may configure one that stamps no orders.
    let source = app.clock.as_ref().filter(|_| app.config.fair_access.clock == "configured").map(|clock| clock.view().source);
    json!({
        "is_sequencing": is_sequencing,
        "clock": {"status": status_name(clock.status), "bound_ns": clock.bound_ns, "source": source.unwrap_or("system")},
        "gateway": {
            "leader": leader.map(ReplicaId::get),
            "unanswered": unanswered,
            "orders": forwards.orders,
            "unstamped": forwards.unstamped,
            "resent": forwards.resent,
            "differing": forwards.differing,
            "overloaded": forwards.overloaded,
            "refused": forwards.refused,
            "late": forwards.late,
        },
        "sequencer": {
            "delay_ns": intake.delay_ns,
            "target_ppm": options.and_then(|options| target_ppm(options.intake.delay)),
            "judged": intake.judged,
            "unfair": intake.unfair,
            "unfair_recent_ppm": intake.unfair_recent.0,
            "held": intake.held,
            "early": intake.early,
            "queueing_p50_ns": intake.queueing_p50_ns,
            "queueing_p99_ns": intake.queueing_p99_ns,
            "queueing_ns_max": intake.queueing_ns_max,
            "gateways": intake.gateways.iter().map(gateway).collect::<Vec<_>>(),
        },
    })
}

fn gateway(figures: &GatewayFigures) -> Value {
    let mut value = json!({"gateway": figures.gateway.0, "strays": figures.standing == Standing::Stray});
    for (name, _, count) in counts(figures) {
        value[name] = count.into();
    }
    value
}

/// A gateway's counts: name, meaning, figure.
fn counts(figures: &GatewayFigures) -> [(&'static str, &'static str, u64); 16] {
    let GatewayFigures { copies, hold, .. } = figures;
    [
        ("copies", "commands that came by this gateway", copies.copies),
        ("duplicates", "copies dropped because the same came before", copies.duplicates),
        ("differing", "copies dropped because something else came under their number: a breach", copies.differing),
        ("early", "orders that waited for one before them", copies.early),
        ("refused", "commands handed back", copies.refused),
        ("malformed", "messages dropped because they were none", copies.malformed),
        ("held", "orders taken into the hold", hold.orders),
        ("late", "orders that came when their delay was over", hold.late),
        ("late_ns_max", "by how many nanoseconds the latest of them was late", hold.late_ns_max),
        ("out_of_sequence", "orders that left after one with a later stamp", hold.out_of_sequence),
        ("unfair", "orders whose stamp was earlier than that of the order just before", hold.unfair),
        ("future_stamps", "stamps from the future, clamped", hold.future_stamps),
        ("stale_stamps", "stamps from too long ago, raised", hold.stale_stamps),
        ("stepped_back", "stamps earlier than the gateway's own last", hold.stepped_back),
        ("unstamped", "orders without a stamp that counts", hold.unstamped),
        ("strayed", "stamps that did not count because the gateway's transits differ from the others'", figures.strayed),
    ]
}

/// What Prometheus is told, appended.
pub(super) fn metrics(app: &App, text: &mut String) {
    let Some((view, _)) = of(app) else { return };
    let FairAccessView { clock, unanswered, forwards, intake, .. } = &view;
    let figures = [
        ("walras_clock_good", "gauge", "1 when the clock stamps orders", u64::from(clock.status == ClockStatus::Good)),
        ("walras_clock_bound_ns", "gauge", "how far it is off at most; 0 when nobody knows", clock.bound_ns.unwrap_or(0)),
        ("walras_gateway_unanswered", "gauge", "commands passed on and unanswered", *unanswered as u64),
        ("walras_gateway_orders_total", "counter", "commands passed on", forwards.orders),
        ("walras_gateway_resent_total", "counter", "commands sent once more", forwards.resent),
        ("walras_gateway_late_total", "counter", "commands that the leader had too late", forwards.late),
        ("walras_sequencing_delay_ns", "gauge", "how long orders are held after their stamps, d_s", intake.delay_ns),
        ("walras_sequencing_held", "gauge", "orders held", intake.held as u64),
        ("walras_sequencing_queueing_p50_ns", "gauge", "how long orders were held, median", intake.queueing_p50_ns),
        ("walras_sequencing_queueing_p99_ns", "gauge", "the same, 99th percentile", intake.queueing_p99_ns),
        ("walras_sequencing_judged_total", "counter", "orders whose sequence was judged", intake.judged),
        ("walras_sequencing_unfair_total", "counter", "of them, orders out of sequence", intake.unfair),
    ];
    for (name, kind, help, value) in figures {
        *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    let gateways: Vec<_> = intake.gateways.iter().map(|gateway| (gateway.gateway, counts(gateway))).collect();
    let Some((_, names)) = gateways.first() else { return };
    for (place, (name, help, _)) in names.iter().enumerate() {
        let (suffix, kind) = if *name == "late_ns_max" { ("", "gauge") } else { ("_total", "counter") };
        let metric = format!("walras_sequencing_gateway_{name}{suffix}");
        *text += &format!("# HELP {metric} {help}\n# TYPE {metric} {kind}\n");
        for (gateway, counts) in &gateways {
            *text += &format!("{metric}{{gateway=\"{gateway}\"}} {}\n", counts[place].2);
        }
    }
}
