//! Runs an experiment and rewrites its folder; `--small` runs it small and writes nothing.

use std::path::Path;

use anyhow::bail;
use walras_experiments_cloudex_2021::figure::{self, CADENCE_DRAWN, Extent, Way};
use walras_experiments_cloudex_2021::network::{Source, data_folder};
use walras_experiments_cloudex_2021::processes::{self, Given, SHARDS};
use walras_experiments_cloudex_2021::record::{Record, direction_name};
use walras_experiments_cloudex_2021::workload::{Disturbance, Workload};
use walras_experiments_cloudex_2021::{engines, record_processes, replicated, sharded};
use walras_figures::origin::Origin;

const USAGE: &str = "usage: cloudex-2021 table-1|fig-4|fig-4-engines|fig-5|fig-5-links|fig-6a|fig-6b|simulated|all [--small]
simulated: all that need no processes
table-1 and fig-6b run processes of walras, from this program's build folder, and need an otherwise idle machine";

const ALL: [&str; 7] = ["fig-4", "fig-4-engines", "fig-5", "fig-5-links", "fig-6a", "table-1", "fig-6b"];
/// Of all, those that are simulated alone.
const SIMULATED: &[&str] = ALL.split_at(5).0;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, workload, extent) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] => (name, Workload::FULL, Extent::Full),
        [name, "--small"] | ["--small", name] => (name, Workload::SMALL, Extent::Small),
        _ => bail!(USAGE),
    };
    let names = match name {
        "simulated" => SIMULATED,
        "all" => &ALL[..],
        _ => &[name],
    };
    for name in names {
        let origin = Origin::begin();
        let (record, source) = match *name {
            "fig-4" => delays(&workload, Disturbance::None, extent)?,
            "fig-5" => delays(&workload, Disturbance::Steps, extent)?,
            "fig-5-links" => delays(&workload, Disturbance::StepsApart, extent)?,
            "fig-4-engines" => {
                let (engines, source) = engines::run(&workload, &data_folder(), extent)?;
                (Record::of_engines(&engines, source, &workload), source)
            }
            "fig-6a" => {
                let outcome = replicated::run(&workload, &data_folder())?;
                (Record::of_replicated(&outcome, &workload)?, outcome.source)
            }
            "table-1" => shards(&workload, extent)?,
            // Nothing of it is simulated.
            "fig-6b" => (record_processes::copies(&processes::copies(&Given::here(extent)?)?)?, Source::Measured),
            other => bail!("there is no experiment {other}; {USAGE}"),
        };
        if source == Source::Synthetic {
            println!("no measured delays at {} (set WALRAS_DATA): the synthetic model is used", data_folder().display());
        }
        println!("{}\n\n{}", record.folder, record.table);
        if extent == Extent::Full {
            record.write(&origin, Path::new(env!("CARGO_MANIFEST_DIR")))?;
            println!("{}: wrote its results", record.folder);
        }
    }
    Ok(())
}

/// Table 1. It needs no more simulated time than this: at each load there are hundreds of thousands of orders.
fn shards(workload: &Workload, extent: Extent) -> anyhow::Result<(Record, Source)> {
    let given = Given::here(extent)?;
    let workload = Workload { duration_ns: workload.duration_ns.min(20_000_000_000), ..*workload };
    let (rows, source) = sharded::run(&workload, &data_folder())?;
    let real = SHARDS.map(|count| processes::shards(&given, count)).into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((record_processes::shards(&rows, source, &real, &workload), source))
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
