//! Runs an experiment and rewrites its folder; `--small` runs it small and writes nothing.

use std::path::Path;

use anyhow::bail;
use walras_experiments_cloudex_2021::figure::{self, CADENCE_DRAWN, Extent, Way};
use walras_experiments_cloudex_2021::network::{Source, data_folder};
use walras_experiments_cloudex_2021::record::{Record, direction_name};
use walras_experiments_cloudex_2021::replicated;
use walras_experiments_cloudex_2021::workload::{Disturbance, Workload};
use walras_figures::origin::Origin;

const USAGE: &str = "usage: cloudex-2021 fig-4|fig-5|fig-6a|all [--small]";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, workload, extent) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] => (name, Workload::FULL, Extent::Full),
        [name, "--small"] | ["--small", name] => (name, Workload::SMALL, Extent::Small),
        _ => bail!(USAGE),
    };
    let names = match name {
        "all" => &["fig-4", "fig-5", "fig-6a"][..],
        _ => &[name],
    };
    for name in names {
        let origin = Origin::begin();
        let (record, source) = match *name {
            "fig-4" => delays(&workload, Disturbance::None, extent)?,
            "fig-5" => delays(&workload, Disturbance::Steps, extent)?,
            "fig-6a" => {
                let outcome = replicated::run(&workload, &data_folder())?;
                (Record::of_replicated(&outcome, &workload)?, outcome.source)
            }
            other => bail!("there is no experiment {other}; {USAGE}"),
        };
        if source == Source::Synthetic {
            println!("no measured delays at {} (set WALRAS_DATA): the synthetic model is used", data_folder().display());
        }
        println!("{}\n\n{}", record.folder, record.table);
        if extent == Extent::Full {
            record.write(&origin, Path::new(env!("CARGO_MANIFEST_DIR")))?;
            println!("{}: wrote result.json, table.md and plot.svg", record.folder);
        }
    }
    Ok(())
}

/// Figures 4 and 5.
fn delays(workload: &Workload, disturbance: Disturbance, extent: Extent) -> anyhow::Result<(Record, Source)> {
    let figure = figure::run(workload, &data_folder(), disturbance, extent)?;
    for panel in &figure.panels {
        println!(
            "{}: ours off its target by at most {:.1} %, delay at most {:.2} of the static frontier's; CloudEx's rule {:.1} % and {:.2}",
            direction_name(panel.direction),
            100.0 * panel.worst_relative_error(Way::Tracking),
            panel.worst_ratio_to_static(Way::Tracking),
            100.0 * panel.worst_relative_error(|target| Way::Stepped(target, CADENCE_DRAWN)),
            panel.worst_ratio_to_static(|target| Way::Stepped(target, CADENCE_DRAWN)),
        );
    }
    Ok((Record::of(&figure, workload, extent)?, figure.source))
}
