//! What one relay passes on (section 8.6): no simulation, but what the bench measured on the machine that it names, with ten receivers and
//! messages of 466 bytes.

use serde_json::Value;

use crate::latency::{figure, recorded};
use crate::rows::{Check, Findings, Row};

/// Messages a second of the published relays, not hedged and hedged once.
const PUBLISHED: [f64; 2] = [350_000.0, 175_000.0];
/// What one core is to pass on, where the kernel cuts in software, and where nothing is cut as with a device that segments.
const ASKED: [f64; 2] = [250_000.0, 500_000.0];
/// With one further copy half as many, or up to a tenth less than that.
const HEDGED_LEAST: f64 = 0.45;

/// Claim J16. There is no row for what the bench has not recorded.
#[must_use]
pub fn throughput() -> Findings {
    Findings::table("throughput", "messages that one relay on one core passes on, measured", rows(&recorded()))
}

fn rows(bench: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((metric, how), asked) in [("relay", "cut in software"), ("relay_joined", "nothing cut")].into_iter().zip(ASKED) {
        let [unhedged, hedged] = [format!("{metric}_per_s"), format!("{metric}_hedged_per_s")].map(|metric| figure(bench, &metric));
        let row = |hedge: &str, published: f64, rate: f64, check: Check| {
            Row::new("J16", format!("{how}, {hedge}: messages a second"), published, rate, "1/s", check)
        };
        rows.extend(unhedged.map(|rate| row("H = 0", PUBLISHED[0], rate, Check::AtLeast(asked))));
        rows.extend(hedged.map(|rate| row("H = 1", PUBLISHED[1], rate, Check::Shown)));
        if let (Some(unhedged), Some(hedged)) = (unhedged, hedged) {
            let what = format!("{how}, H = 1 over H = 0: messages a second");
            rows.push(Row::new("J16", what, 0.5, hedged / unhedged, "ratio", Check::AtLeast(HEDGED_LEAST)));
        }
    }
    let lost = figure(bench, "relay_lost_at_80_percent");
    rows.extend(lost.map(|lost| Row::own("J16", "lost at 80 % of the rate", lost, "percent", Check::AtMost(0.0))));
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_relay_that_passes_on_too_little_is_missed() {
        let figure = |metric: &str, value: f64| json!({"metric": metric, "value": value});
        let bench = json!({"figures": [
            figure("relay_per_s", 217_000.0), figure("relay_hedged_per_s", 115_000.0), figure("relay_joined_per_s", 583_000.0),
            figure("relay_lost_at_80_percent", 0.0),
        ]});
        let rows = rows(&bench);
        let of = |what: &str| rows.iter().find(|row| row.what == what).and_then(Row::is_met);
        assert_eq!(of("cut in software, H = 0: messages a second"), Some(false));
        assert_eq!(of("nothing cut, H = 0: messages a second"), Some(true));
        assert_eq!(of("cut in software, H = 1 over H = 0: messages a second"), Some(true));
        assert_eq!(of("lost at 80 % of the rate"), Some(true));
        assert_eq!(rows.len(), 5, "what was not measured has no row");
        assert!(super::rows(&Value::Null).is_empty());
    }
}
