//! Runs an experiment and rewrites its folder; `--small` runs it small and writes nothing.

use std::path::Path;

use anyhow::bail;
use walras_experiments_cloudex_2021::figure::{self, Extent};
use walras_experiments_cloudex_2021::network::{Source, data_folder};
use walras_experiments_cloudex_2021::record::Record;
use walras_experiments_cloudex_2021::workload::{Disturbance, Workload};
use walras_figures::origin::Origin;

const USAGE: &str = "usage: cloudex-2021 fig-4|fig-5|all [--small]";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, workload, extent) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] => (name, Workload::FULL, Extent::Full),
        [name, "--small"] | ["--small", name] => (name, Workload::SMALL, Extent::Small),
        _ => bail!(USAGE),
    };
    let disturbances = match name {
        "fig-4" => &[Disturbance::None][..],
        "fig-5" => &[Disturbance::Steps][..],
        "all" => &[Disturbance::None, Disturbance::Steps][..],
        other => bail!("there is no experiment {other}; {USAGE}"),
    };
    for disturbance in disturbances {
        let origin = Origin::begin();
        let figure = figure::run(&workload, &data_folder(), *disturbance, extent)?;
        if figure.source == Source::Synthetic {
            println!("no measured delays at {} (set WALRAS_DATA): the synthetic model is used", data_folder().display());
        }
        let record = Record::of(&figure, &workload, extent)?;
        println!("{}\n\n{}", record.folder, record.table);
        for panel in &record.result["panels"].as_array().cloned().unwrap_or_default() {
            let of = |key: &str| panel[key].to_string();
            println!(
                "{}: worst relative error {}, worst ratio to static {}; CloudEx's rule {}",
                of("direction"),
                of("ours_worst_relative_error"),
                of("ours_worst_ratio_to_static"),
                of("cloudex_rule_by_samples_per_step")
            );
        }
        if extent == Extent::Full {
            record.write(&origin, Path::new(env!("CARGO_MANIFEST_DIR")))?;
            println!("{}: wrote result.json, table.md and plot.svg", record.folder);
        }
    }
    Ok(())
}
