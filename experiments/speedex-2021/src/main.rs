//! Runs the experiments of both SPEEDEX papers.

use walras_experiments_speedex_2021::command_line;
use walras_huge_pages::HugePages;

/// As in the venue.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

fn main() -> anyhow::Result<()> {
    // Of prices, then of blocks; the longest of each come last.
    command_line::run(&[
        "cost",
        "cold-warm",
        "fig-1",
        "fig-7",
        "2023/fig-8",
        "2023/sec-6.2",
        "sec-6.2",
        "fig-2",
        "2023/fig-2",
        "fig-6",
        "2023/fig-7",
        "2023/app-I",
        "2023/sec-7.1",
        "2023/fig-3",
        "fig-3",
    ])
}
