//! Runs experiments and rewrites their results; `--small` runs them small and writes nothing.

use std::path::{Path, PathBuf};

use anyhow::bail;
use serde_json::json;
use walras_cloud_model::network::data_folder;
use walras_experiments_jasper_2024::network::Network;
use walras_experiments_jasper_2024::rows::{self, Findings};
use walras_experiments_jasper_2024::{
    Extent, bursts, incast, latency, monte_carlo, pacing, plot, shape, simultaneous, spraying, throughput,
};
use walras_figures::origin::{Origin, write_files};

const USAGE: &str = "usage: jasper-2024 NAME|all|figures [--small]
NAME is one of fig-4 fig-7 fig-8 fig-9 fig-10 fig-11 fig-12 fig-13 fig-14 table-2 table-3 table-4 table-5 table-6 table-7
table-8 deadlines incast profit spot throughput";
const SEED: u64 = 2_024;

const NAMES: [&str; 21] = [
    "fig-4",
    "fig-7",
    "fig-8",
    "fig-9",
    "fig-10",
    "fig-11",
    "fig-12",
    "fig-13",
    "fig-14",
    "table-2",
    "table-3",
    "table-4",
    "table-5",
    "table-6",
    "table-7",
    "table-8",
    "deadlines",
    "incast",
    "profit",
    "spot",
    "throughput",
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, extent) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] => (name, Extent::Full),
        [name, "--small"] | ["--small", name] => (name, Extent::Small),
        _ => bail!(USAGE),
    };
    let network = Network::fitted(SEED);
    let measured = Network::measured(SEED, &data_folder())?;
    if measured.is_none() {
        println!("no measured links at {} (set WALRAS_DATA): only the fitted network is used", data_folder().display());
    }
    if name == "figures" {
        return figures(&network, measured.as_ref(), extent);
    }
    let is_all = name == "all";
    let names = if is_all { &NAMES[..] } else { &[name] };
    let mut all = Vec::new();
    for name in names {
        let origin = Origin::begin();
        let findings = run(name, &network, measured.as_ref(), extent)?;
        println!("{}", findings.markdown());
        if extent == Extent::Full {
            write(&findings, &origin)?;
            all.push(findings);
        }
    }
    if is_all && extent == Extent::Full {
        write_files(&results(), &[("table.md", rows::document(&all).trim_end())])?;
    }
    Ok(())
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}

fn run(name: &str, network: &Network, measured: Option<&Network>, extent: Extent) -> anyhow::Result<Findings> {
    Ok(match name {
        "fig-4" => latency::fig_4(network, extent),
        "fig-7" => latency::fig_7(network, measured, extent),
        "fig-8" => latency::fig_8(network, measured, extent),
        "fig-9" => latency::fig_9(network, extent),
        "fig-10" => latency::fig_10(network, measured, extent),
        "fig-11" => simultaneous::fig_11(network, measured, extent),
        "fig-12" => bursts::fig_12(network, extent),
        "fig-13" => bursts::fig_13(network, extent),
        "fig-14" => monte_carlo::fig_14(extent),
        "table-2" => shape::table_2(),
        "table-3" => spraying::table_3(network, extent),
        "table-4" => simultaneous::table_4(network, extent),
        "table-5" => pacing::table_5(network, extent),
        "table-6" => simultaneous::table_6(network, measured, extent),
        "table-7" => latency::table_7(network, measured, extent),
        "table-8" => shape::table_8(network, extent),
        "deadlines" => incast::deadlines(network, extent),
        "incast" => incast::orders(network, extent),
        "profit" => simultaneous::profit(network, extent),
        "spot" => spraying::spot(network, extent),
        "throughput" => throughput::throughput(),
        other => bail!("there is no experiment {other}; {USAGE}"),
    })
}

/// Writes rows, curves, a plot of them, and where they come from.
fn write(findings: &Findings, origin: &Origin) -> anyhow::Result<()> {
    let name = findings.name;
    let origin = serde_json::to_string_pretty(&json!({ "experiment": name, "seed": SEED, "origin": origin.to_json()? }))? + "\n";
    let mut files = vec![(format!("{name}.csv"), findings.csv()), (format!("{name}.origin.json"), origin)];
    if !findings.curves.is_empty() {
        files.push((format!("{name}-curves.csv"), findings.curves_csv()));
        files.push((format!("{name}.svg"), plot::plot(findings)?));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
    write_files(&results(), &files)
}

/// The figures that the bench takes over, as JSON.
fn figures(network: &Network, measured: Option<&Network>, extent: Extent) -> anyhow::Result<()> {
    let (fig_7, fig_10) = (latency::fig_7(network, measured, extent), latency::fig_10(network, measured, extent));
    let (tree, scale) = latency::ratios(&fig_7, &fig_10);
    let [ours, product] = simultaneous::within_1us_percent(&simultaneous::table_6(network, None, extent));
    let (hedged, hedged_window) = latency::hedging_ratios(network, extent);
    let [over_cloudex, product_over_cloudex] = simultaneous::over_cloudex(network, extent);
    let (rate, wait) = bursts::loq_ratios(&bursts::fig_12(network, extent));
    let figures = [
        ("tree_vs_unicast_n100", tree, "ratio"),
        ("n1000_vs_n100", scale, "ratio"),
        ("window_1us_percent_n100", ours.0, "percent"),
        ("window_1us_percent_n1000", ours.1, "percent"),
        ("window_1us_product_percent_n100", product.0, "percent"),
        ("window_1us_product_percent_n1000", product.1, "percent"),
        ("hedged_p99_ratio_n100", hedged, "ratio"),
        ("hedged_window_p99_ratio_n100", hedged_window, "ratio"),
        ("cloudex_latency_ratio_n100", over_cloudex.0, "ratio"),
        ("cloudex_holding_ratio_n100", over_cloudex.1, "ratio"),
        ("cloudex_product_latency_ratio_n100", product_over_cloudex.0, "ratio"),
        ("cloudex_product_holding_ratio_n100", product_over_cloudex.1, "ratio"),
        ("loq_burst_ratio", rate, "ratio"),
        ("loq_latency_ratio", wait, "ratio"),
    ];
    let figures = figures.map(|(metric, value, unit)| json!({ "metric": metric, "value": value, "unit": unit }));
    println!("{}", serde_json::to_string_pretty(&json!({ "seed": SEED, "figures": figures }))?);
    Ok(())
}
