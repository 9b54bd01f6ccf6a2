//! Fair access: how this replica stamps orders, and where it leads, how it sequences them.

use axum::extract::State;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_consensus::ReplicaId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::{DelaySettings, Stepped, Tracking};
use walras_fair_access::outliers::Standing;
use walras_ports::{FairAccessView, HoldView};
use walras_sequencer::{GatewayFigures, IntakeFigures, ReleaseCounts};
use walras_types::RejectReason;

use super::exposition::{Exposition, Kind};
use super::{Answer, ApiError, App, ok};

pub(super) async fn status(State(app): State<App>) -> Answer {
    of(&app).map(|looks| ok(&json(&app, &looks))).ok_or_else(|| {
        let advice = "orders are taken as they come, and market data is sent as it is made: set fair_access.sequencing or \
        fair_access.release";
        ApiError::from(Refusal::new(RejectReason::NotFound, advice))
    })
}

/// Both halves, each where it is switched on.
struct Looks {
    orders: Option<FairAccessView>,
    data: Option<Released>,
    leads: bool,
}

/// Market data: how long it is held, what was held here, and what the leader makes of what all replicas tell.
struct Released {
    delay_ns: u64,
    /// 0 where releases go by this machine's own clock.
    clock_bound_ns: u64,
    here: HoldView,
    judged: Option<ReleaseCounts>,
}

fn of(app: &App) -> Option<Looks> {
    let view = app.venue.cluster().view();
    let status = app.venue.status();
    let (delay_ns, clock_bound_ns) = (status.release_delay_ns(), status.release_bound_ns());
    let released = |here| Released { delay_ns, clock_bound_ns, here, judged: view.release };
    let looks = Looks { orders: view.fair_access, data: app.venue.held().map(released), leads: view.is_taking };
    (looks.orders.is_some() || looks.data.is_some()).then_some(looks)
}

pub(super) fn status_name(status: ClockStatus) -> &'static str {
    match status {
        ClockStatus::Good => "good",
        ClockStatus::Wide => "wide",
        ClockStatus::Unknown => "unknown",
    }
}

/// The share of unfairness that a delay is steered to, if it is.
fn target_ppm(delay: DelaySettings) -> Option<u32> {
    match delay {
        DelaySettings::Static { .. } => None,
        DelaySettings::Stepped(Stepped { target, .. }) | DelaySettings::Tracking(Tracking { target, .. }) => Some(target.0),
    }
}

fn json(app: &App, looks: &Looks) -> Value {
    let Looks { orders, data, leads } = looks;
    let mut value =
        json!({"is_sequencing": *leads && orders.is_some(), "clock": null, "gateway": null, "sequencer": null, "release": null});
    if let Some(orders) = orders {
        let FairAccessView { clock, .. } = orders;
        // The section `[clock]` may configure one that stamps no orders.
        let source = app.clock.as_ref().filter(|_| app.config.fair_access.clock == "configured").map(|clock| clock.view().source);
        value["clock"] =
            json!({"status": status_name(clock.status), "bound_ns": clock.bound_ns, "source": source.unwrap_or("system")});
        value["gateway"] = as_gateway(orders);
        value["sequencer"] = as_sequencer(&orders.intake);
        let options = app.config.fair_access_options().ok().flatten();
        value["sequencer"]["target_ppm"] = options.and_then(|options| target_ppm(options.intake.delay)).into();
    }
    if let Some(data) = data {
        let rules = app.config.release_rules().ok().flatten();
        value["release"] = released(data);
        value["release"]["target_ppm"] = rules.and_then(|rules| target_ppm(rules.delay)).into();
    }
    value
}

fn released(Released { delay_ns, clock_bound_ns, here, judged }: &Released) -> Value {
    let HoldView { publications, late, late_ns_max, refused, overshoot_ns: [p50, p99, p999] } = here;
    json!({
        "delay_ns": delay_ns,
        "clock_bound_ns": Some(clock_bound_ns).filter(|bound_ns| **bound_ns > 0),
        "publications": publications,
        "late": late,
        "late_ns_max": late_ns_max,
        "refused": refused,
        "overshoot_p50_ns": p50,
        "overshoot_p99_ns": p99,
        "overshoot_p999_ns": p999,
        "judged": judged.as_ref().map(|counts| json!({
            "publications": counts.publications,
            "unfair": counts.unfair,
            "unfair_recent_ppm": counts.recent_ppm,
            "outlier_reports": counts.outlier_samples,
            "outliers": counts.outliers.iter().map(|gateway| gateway.0).collect::<Vec<_>>(),
            "silent": counts.silent.iter().map(|gateway| gateway.0).collect::<Vec<_>>(),
            "receivers": {
                "samples": counts.receivers.samples,
                "late": counts.receivers.late,
                "delay_ns": counts.receivers.delay_ns,
            },
        })),
    })
}

fn as_gateway(FairAccessView { leader, unanswered, forwards, arrivals, .. }: &FairAccessView) -> Value {
    json!({
        "leader": leader.map(ReplicaId::get),
        "unanswered": unanswered,
        "orders": forwards.orders,
        "unstamped": forwards.unstamped,
        "resent": forwards.resent,
        "differing": forwards.differing,
        "overloaded": forwards.overloaded,
        "refused": forwards.refused,
        "late": forwards.late,
        "stamped_by_kernel": arrivals.kernel,
        "stamped_when_read": arrivals.reading,
        "stamps_raised": arrivals.raised,
    })
}

fn as_sequencer(intake: &IntakeFigures) -> Value {
    json!({
        "delay_ns": intake.delay_ns,
        "judged": intake.judged,
        "unfair": intake.unfair,
        "unfair_recent_ppm": intake.unfair_recent.0,
        "matched": intake.matching.matched,
        "unfairly_matched": intake.matching.unfair,
        "unfairly_matched_recent_ppm": intake.matching.recent_ppm,
        "worst_gateway": intake.worst.map(|gateway| gateway.0),
        "merged": intake.merged,
        "held": intake.held,
        "early": intake.early,
        "queueing_p50_ns": intake.queueing_p50_ns,
        "queueing_p99_ns": intake.queueing_p99_ns,
        "queueing_ns_max": intake.queueing_ns_max,
        "gateways": intake.gateways.iter().map(gateway).collect::<Vec<_>>(),
    })
}

fn gateway(figures: &GatewayFigures) -> Value {
    let mut value = json!({
        "gateway": figures.gateway.0,
        "is_outlier": figures.standing == Standing::Outlier,
        "judged": figures.steering.judged,
        "overtaken": figures.steering.unfair,
        "overtaken_recent_ppm": figures.steering.recent.0,
    });
    for (name, _, count) in counts(figures) {
        value[name] = count.into();
    }
    value
}

/// A gateway's counts: name, meaning, figure.
fn counts(figures: &GatewayFigures) -> [(&'static str, &'static str, u64); 18] {
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
        (
            "behind_watermark",
            "orders that came after a watermark of their gateway had passed their stamps",
            copies.behind_watermark,
        ),
        (
            "waited_for",
            "orders held until their delay was over since this gateway's watermark was not past them",
            copies.waited_for,
        ),
        (
            "outlier_stamps",
            "stamps that did not count because the gateway's transits differ from the others'",
            figures.outlier_samples,
        ),
    ]
}

/// Appends the metrics of fair access.
pub(super) fn metrics(app: &App, text: &mut Exposition) {
    let Some(Looks { orders, data, .. }) = of(app) else { return };
    if let Some(data) = data {
        release_metrics(&data, text);
    }
    if let Some(orders) = orders {
        order_metrics(&orders, text);
    }
}

fn release_metrics(Released { delay_ns, clock_bound_ns, here, judged }: &Released, text: &mut Exposition) {
    let [p50, p99, p999] = here.overshoot_ns;
    let held = [
        ("walras_release_delay_ns", Kind::Gauge, "how long market data waits before anybody sees it, d_h", *delay_ns),
        (
            "walras_release_clock_bound_ns",
            Kind::Gauge,
            "how far release times may be from those of other replicas by the venue's clock; 0 where this machine's own counts",
            *clock_bound_ns,
        ),
        (
            "walras_release_publications_total",
            Kind::Counter,
            "publications of market data held here until their time",
            here.publications,
        ),
        ("walras_release_late_total", Kind::Counter, "of them, came after their release time: unfair", here.late),
        ("walras_release_late_max_ns", Kind::Gauge, "the latest of them", here.late_ns_max),
        (
            "walras_release_refused_total",
            Kind::Counter,
            "publications not held, after which all readers had to connect again",
            here.refused,
        ),
        ("walras_release_overshoot_p50_ns", Kind::Gauge, "how long after their time held publications left: the median", p50),
        ("walras_release_overshoot_p99_ns", Kind::Gauge, "the same, percentile 99", p99),
        ("walras_release_overshoot_p999_ns", Kind::Gauge, "the same, percentile 99.9", p999),
    ];
    text.all(held);
    let Some(judged) = judged else { return };
    let judged = [
        (
            "walras_release_judged_total",
            Kind::Counter,
            "publications whose arrival at all replicas this leader knows",
            judged.publications,
        ),
        ("walras_release_unfair_total", Kind::Counter, "of them, came to some replica too late", judged.unfair),
        ("walras_release_unfair_recent_ppm", Kind::Gauge, "of the last window, the share in millionths", judged.recent_ppm.into()),
        (
            "walras_release_outlier_reports_total",
            Kind::Counter,
            "reports that did not count, because their replica's differ from the others'",
            judged.outlier_samples,
        ),
        (
            "walras_release_receiver_samples_total",
            Kind::Counter,
            "pieces of market data whose arrival receivers of the relay trees reported",
            judged.receivers.samples,
        ),
        ("walras_release_receiver_late_total", Kind::Counter, "those that came to some receiver too late", judged.receivers.late),
        (
            "walras_release_receiver_delay_ns",
            Kind::Gauge,
            "how long receivers need market data to be held; 0 while none is heard",
            judged.receivers.delay_ns.unwrap_or(0),
        ),
    ];
    text.all(judged);
}

fn order_metrics(view: &FairAccessView, text: &mut Exposition) {
    let FairAccessView { clock, unanswered, forwards, arrivals, intake, .. } = view;
    let figures = [
        ("walras_clock_good", Kind::Gauge, "1 when the clock stamps orders", u64::from(clock.status == ClockStatus::Good)),
        ("walras_clock_bound_ns", Kind::Gauge, "how far it is off at most; 0 when nobody knows", clock.bound_ns.unwrap_or(0)),
        ("walras_gateway_unanswered", Kind::Gauge, "commands passed on and unanswered", *unanswered as u64),
        ("walras_gateway_orders_total", Kind::Counter, "commands passed on", forwards.orders),
        ("walras_gateway_unstamped_total", Kind::Counter, "of them, orders without a stamp that counts", forwards.unstamped),
        ("walras_gateway_resent_total", Kind::Counter, "commands sent once more", forwards.resent),
        ("walras_gateway_differing_total", Kind::Counter, "commands not passed on since their number was used", forwards.differing),
        (
            "walras_gateway_overloaded_total",
            Kind::Counter,
            "commands refused because too many were unanswered",
            forwards.overloaded,
        ),
        ("walras_gateway_refused_total", Kind::Counter, "commands that the leader refused", forwards.refused),
        ("walras_gateway_late_total", Kind::Counter, "commands that the leader had too late", forwards.late),
        (
            "walras_gateway_stamped_by_kernel_total",
            Kind::Counter,
            "reads of order entry stamped by when the kernel received the bytes",
            arrivals.kernel,
        ),
        (
            "walras_gateway_stamped_when_read_total",
            Kind::Counter,
            "reads of order entry stamped by when they were read, because the kernel gave no stamp",
            arrivals.reading,
        ),
        (
            "walras_gateway_stamps_raised_total",
            Kind::Counter,
            "of those stamped by the kernel, reads whose bytes had waited for longer than 50 ms: stamped as if for that",
            arrivals.raised,
        ),
        ("walras_sequencing_delay_ns", Kind::Gauge, "how long orders are held after their stamps, d_s", intake.delay_ns),
        (
            "walras_sequencing_merged_total",
            Kind::Counter,
            "orders that left before their delay was over, since every gateway's watermark was past them",
            intake.merged,
        ),
        ("walras_sequencing_held", Kind::Gauge, "orders held", intake.held as u64),
        ("walras_sequencing_early", Kind::Gauge, "orders that wait for one before them", intake.early as u64),
        ("walras_sequencing_queueing_p50_ns", Kind::Gauge, "how long orders were held, median", intake.queueing_p50_ns),
        ("walras_sequencing_queueing_p99_ns", Kind::Gauge, "the same, 99th percentile", intake.queueing_p99_ns),
        ("walras_sequencing_queueing_ns_max", Kind::Gauge, "the same, the longest", intake.queueing_ns_max),
        ("walras_sequencing_judged_total", Kind::Counter, "orders whose sequence was judged", intake.judged),
        ("walras_sequencing_unfair_total", Kind::Counter, "of them, orders out of sequence", intake.unfair),
        (
            "walras_sequencing_unfair_recent_ppm",
            Kind::Gauge,
            "of the last window, the share in millionths",
            intake.unfair_recent.0.into(),
        ),
        ("walras_sequencing_matched_total", Kind::Counter, "orders that matched, two for each trade", intake.matching.matched),
        (
            "walras_sequencing_unfairly_matched_total",
            Kind::Counter,
            "orders that came when one of the same price with a later stamp had matched: order-matching unfairness",
            intake.matching.unfair,
        ),
        (
            "walras_sequencing_unfairly_matched_recent_ppm",
            Kind::Gauge,
            "of the last 1,000 to 2,000 orders that matched, the share of these in millionths",
            intake.matching.recent_ppm,
        ),
        (
            "walras_sequencing_worst_gateway",
            Kind::Gauge,
            "the gateway that the delay follows; 0 until one had enough orders",
            intake.worst.map_or(0, |gateway| gateway.0.into()),
        ),
    ];
    text.all(figures);
    if !intake.gateways.is_empty() {
        let help = "of the last window, the share of this gateway's orders that left after one with a later stamp, in millionths";
        let mut family = text.family("walras_sequencing_gateway_overtaken_recent_ppm", Kind::Gauge, help);
        for figures in &intake.gateways {
            family.sample([("gateway", &figures.gateway)], figures.steering.recent.0);
        }
    }
    let gateways: Vec<_> = intake.gateways.iter().map(|gateway| (gateway.gateway, counts(gateway))).collect();
    let Some((_, names)) = gateways.first() else { return };
    for (place, (name, help, _)) in names.iter().enumerate() {
        let (suffix, kind) = if *name == "late_ns_max" { ("", Kind::Gauge) } else { ("_total", Kind::Counter) };
        let metric = format!("walras_sequencing_gateway_{name}{suffix}");
        let mut family = text.family(&metric, kind, help);
        for (gateway, counts) in &gateways {
            family.sample([("gateway", gateway)], counts[place].2);
        }
    }
}
