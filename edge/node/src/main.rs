//! The program `walras`.

use std::process::ExitCode;

/// Large books are visited at random: large pages spare most misses of the address cache.
#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;

fn main() -> ExitCode {
    walras_node::cli::main()
}
