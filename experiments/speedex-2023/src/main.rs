//! Runs the experiments of SPEEDEX 2023; the programs are those of the 2021 paper's folder, with this paper's setups.

use walras_experiments_speedex_2021::command_line;
use walras_huge_pages::HugePages;

/// As in the venue.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

fn main() -> anyhow::Result<()> {
    // Of blocks, then of prices.
    command_line::run(&[
        "2023/fig-7",
        "2023/app-I",
        "2023/sec-7.1",
        "2023/fig-3",
        "2023/fig-8",
        "2023/sec-6.2",
        "2023/app-H",
        "2023/fig-2",
    ])
}
