//! Guards of the house, run by `make test`: `cargo run -p walras-xtask -- check`.
//!
//! Each guard is a function from the tree to a list of complaints; each has a test that shows it can fail. What a compiler or linter
//! checks already is not repeated here.

mod arms;
mod documents;
mod layers;
mod map;
mod sizes;
mod tree;
mod words;

use std::process::ExitCode;

use tree::Tree;

/// A guard's name and itself.
type Guard = (&'static str, fn(&Tree) -> Vec<String>);

const GUARDS: &[Guard] = &[
    ("arms: no pattern lists many events or commands", arms::check),
    ("documents: links, paths and targets of make that they name exist", documents::check),
    ("layers: dependencies point down only", layers::check),
    ("map: ARCHITECTURE.md names paths that exist, and every crate", map::check),
    ("sizes: no source file outgrows its idea", sizes::check),
    ("words: nothing that must not be committed", words::check),
];

fn main() -> anyhow::Result<ExitCode> {
    let command = std::env::args().nth(1);
    anyhow::ensure!(command.as_deref() == Some("check"), "usage: cargo run -p walras-xtask -- check");
    let tree = Tree::read()?;
    let mut complaint_count = 0;
    for (name, guard) in GUARDS {
        let complaints = guard(&tree);
        println!("{} {name}", if complaints.is_empty() { "ok  " } else { "FAIL" });
        for complaint in &complaints {
            println!("     {complaint}");
        }
        complaint_count += complaints.len();
    }
    Ok(if complaint_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
