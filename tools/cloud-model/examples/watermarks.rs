//! How long orders are held with watermarks and without, and how many are overtaken. It uses the recorded links if they are there:
//! `cargo run --release -p walras-cloud-model --example watermarks [SECONDS]`.

use walras_cloud_model::merged::{messages, processed};
use walras_cloud_model::network::{Network, data_folder};
use walras_cloud_model::policy::tracking;
use walras_cloud_model::workload::{Disturbance, Workload};
use walras_fair_access::delay::{DelaySettings, Ppm};

fn main() -> anyhow::Result<()> {
    // The engine is so fast that orders never wait for it.
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(18), |word| word.parse())?;
    let workload = Workload { service_ns: 1_000.0, duration_ns: seconds * 1_000_000_000, ..Workload::FULL };
    let network = Network::load(&data_folder(), workload.seed, 1)?;
    println!("links: {}", network.source.name());
    println!("disturbance, d_s, watermarks every us: overtaken percent, mean time in the hold us");
    let target = |ppm| tracking(Ppm(ppm), 2_000, 1_000);
    let ways = [("1 %", target(10_000)), ("0.1 %", target(1_000)), ("2 ms", DelaySettings::Static { delay_ns: 2_000_000 })];
    for disturbance in [Disturbance::None, Disturbance::StepsApart] {
        for every_us in [100, 250, 1_000] {
            let messages = messages(&workload, &network, disturbance, every_us * 1_000);
            for (name, settings) in ways {
                for (kind, counts) in [("held", false), ("merged", true)] {
                    let outcome = processed(&messages, settings, &workload, counts);
                    println!(
                        "{disturbance:?}, {name}, {every_us}: {kind} {:.3} {:.1}",
                        outcome.unfair_percent(),
                        outcome.delay_us()
                    );
                }
            }
        }
    }
    Ok(())
}
