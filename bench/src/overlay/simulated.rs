//! Figures of the overlay that need a thousand machines: simulated by `experiments/jasper-2024`, whose program prints them. Nothing uses an
//! experiment as a library.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::report::{Figure, Report, Unit};

/// What it has to print, and what each has to reach.
const FIGURES: [(&str, Unit, f64); 14] = [
    ("tree_vs_unicast_n100", Unit::Ratio, 0.51),
    ("n1000_vs_n100", Unit::Ratio, 1.7),
    ("window_1us_percent_n100", Unit::Percent, 95.0),
    ("window_1us_percent_n1000", Unit::Percent, 90.0),
    ("window_1us_product_percent_n100", Unit::Percent, 95.0),
    ("window_1us_product_percent_n1000", Unit::Percent, 90.0),
    ("hedged_p99_ratio_n100", Unit::Ratio, 0.5),
    ("hedged_window_p99_ratio_n100", Unit::Ratio, 0.43),
    ("cloudex_latency_ratio_n100", Unit::Ratio, 0.34),
    ("cloudex_holding_ratio_n100", Unit::Ratio, 0.25),
    ("cloudex_product_latency_ratio_n100", Unit::Ratio, 0.34),
    ("cloudex_product_holding_ratio_n100", Unit::Ratio, 0.25),
    ("loq_burst_ratio", Unit::TimesFaster, 1.8),
    ("loq_latency_ratio", Unit::Ratio, 0.02),
];

/// Runs it.
pub(super) fn run(program: &Path, is_full: bool, report: &mut Report) -> anyhow::Result<()> {
    if !program.is_file() {
        report.note(format!(
            "simulated figures are missing: {} is not built; build it with `cargo build --release -p walras-experiments-jasper-2024`",
            program.display()
        ));
        return Ok(());
    }
    eprintln!("  simulated multicast, by {}", program.display());
    let mut command = Command::new(program);
    command.arg("figures").args((!is_full).then_some("--small")).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("running {}", program.display()))?;
    ensure!(output.status.success(), "{} ended with {}", program.display(), output.status);
    let text = String::from_utf8(output.stdout).context("what the experiment prints")?;
    for figure in figures(&text)? {
        report.figure(figure);
    }
    report.note(
        "tree_vs_unicast_n100, n1000_vs_n100, window_1us_*, hedged_*, cloudex_*, loq_*: simulated by experiments/jasper-2024, of one \
         seed; they do not depend on this machine. window_1us_percent_*: deadlines steered by the greatest delays of sampled packets, \
         next to the published rule; window_1us_product_percent_*: as a venue steers, by reports of lateness (ADR 41), with the \
         product's code",
    );
    report.note(
        "hedged_*: one additional copy over none in the product's tree of 100 receivers, 99th percentiles of the last receiver's latency \
         and of the window; published: 199 us over 401, and 154 over 357. cloudex_*: medians of the last receiver's release and of the \
         time that a message is held, by the tree of 100 receivers with one additional copy over CloudEx's direct unicasts and rule, on \
         the same links and both steered to 8 % late messages: by our rule, and by the product's (cloudex_product_*); published with two \
         additional copies: 139 us over 406, and 53 over 211",
    );
    Ok(())
}

/// Of what the program prints: a JSON document, behind lines that say what it lacks.
fn figures(text: &str) -> anyhow::Result<Vec<Figure>> {
    let begins = text.find('{').context("the experiment printed no figures: are the programs of one build?")?;
    let printed: Value = serde_json::from_str(&text[begins..]).context("the experiment's figures")?;
    let printed = printed["figures"].as_array().context("the experiment's figures")?;
    let of = |(metric, unit, bar): (&str, Unit, f64)| {
        let figure = printed.iter().find(|figure| figure["metric"] == metric);
        let value = figure.and_then(|figure| figure["value"].as_f64()).filter(|value| value.is_finite());
        let value = value.with_context(|| format!("the experiment printed no {metric}: are the programs of one build?"))?;
        Ok(Figure::new(metric, value, unit).bar(bar))
    };
    FIGURES.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_read_and_none_may_be_missing() {
        let printed = |count: usize| {
            let figures: Vec<Value> =
                FIGURES.iter().take(count).map(|(metric, ..)| json!({"metric": metric, "value": 0.5, "unit": "x"})).collect();
            format!("no measured links\n{}\n", json!({"seed": 1, "figures": figures}))
        };
        let all = figures(&printed(FIGURES.len())).unwrap();
        assert!(all.iter().map(|figure| figure.metric.as_str()).eq(FIGURES.map(|(metric, ..)| metric)));
        let missing = figures(&printed(FIGURES.len() - 1)).unwrap_err().to_string();
        assert!(missing.contains("loq_latency_ratio"), "{missing}");
        assert!(figures("nothing").is_err());
    }
}
