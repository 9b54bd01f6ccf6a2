//! Guards of the house, run by `make test`: `make guards`. `site` writes the sources of the documents' site,
//! which `make site` builds.
//!
//! Each guard is a function from the tree to a list of complaints; each has a test that shows it can fail. What a compiler or
//! linter checks already is not repeated here.

mod arms;
mod circles;
mod documents;
mod examples;
mod imports;
mod layers;
mod map;
mod programs;
mod site;
mod sizes;
mod toolchain;
mod words;

use std::process::ExitCode;

use walras_xtask::{markdown, tree};

use tree::Tree;

/// A guard's name and itself.
type Guard = (&'static str, fn(&Tree) -> Vec<String>);

const GUARDS: &[Guard] = &[
    ("arms: no pattern lists many events or commands", arms::check),
    ("circles: few files import each other in a circle, and no folders of the node", circles::check),
    ("documents: links, paths and targets of make that they name exist", documents::check),
    ("examples: programs of the documents have one file and few lines", examples::check),
    ("layers: dependencies point down only", layers::check),
    ("map: ARCHITECTURE.md names paths that exist, and every crate", map::check),
    ("programs: none of tests without tests, and one for a crate's tests/", programs::check),
    ("site: its pages link to each other and to files", site::check),
    ("sizes: no source file outgrows its idea", sizes::check),
    ("toolchain: pages name the one of the manifests, and no dependency needs a newer one", toolchain::check),
    ("words: nothing that must not be committed", words::check),
];

/// Where the sources of the site go; `book.toml` names it.
const SITE_SOURCES: &str = "target/site-src";

fn main() -> anyhow::Result<ExitCode> {
    let tree = Tree::read()?;
    match std::env::args().nth(1).as_deref() {
        Some("check") => Ok(check(&tree)),
        Some("site") => {
            site::write(&tree, &Tree::root(), &Tree::root().join(SITE_SOURCES))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => anyhow::bail!("usage: cargo run -p walras-xtask -- check|site"),
    }
}

fn check(tree: &Tree) -> ExitCode {
    let mut complaint_count = 0;
    for (name, guard) in GUARDS {
        let complaints = guard(tree);
        println!("{} {name}", if complaints.is_empty() { "ok  " } else { "FAIL" });
        for complaint in &complaints {
            println!("     {complaint}");
        }
        complaint_count += complaints.len();
    }
    if complaint_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
