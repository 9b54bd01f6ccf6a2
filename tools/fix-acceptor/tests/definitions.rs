//! The acceptance definitions that FIX engines share, in virtual time.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walras_fix_acceptor::Numbering;
use walras_fix_acceptor::definition::{Outcome, run_numbered};

/// Where the definitions are, if this machine has them.
fn definitions() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let next_to_it = ["../shared/data", "../../shared/data"].map(|data| repository.join(data));
    let mut roots = std::env::var_os("WALRAS_DATA").map(PathBuf::from).into_iter().chain(next_to_it);
    roots.find_map(|root| Some(root.join("fix-at/quickfix-cpp/test/definitions/server")).filter(|folder| folder.is_dir()))
}

const VERSIONS: [&str; 9] = ["fix40", "fix41", "fix42", "fix43", "fix44", "fix50", "fix50sp1", "fix50sp2", "validate"];

fn outcomes(folder: &Path, numbering: Numbering) -> BTreeMap<String, Outcome> {
    let run = |path: &Path| run_numbered(&std::fs::read(path).unwrap(), numbering);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = files.filter(|path| path.extension().is_some_and(|extension| extension == "def"));
    named.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), run(&path))).collect()
}

#[test]
fn all_definitions_pass_on_the_wire_and_nearly_all_by_stricter_rules() {
    let Some(folder) = definitions() else {
        eprintln!("SKIPPED: the acceptance definitions (fix-at) are neither in WALRAS_DATA nor in ../shared/data");
        return;
    };
    let mut failures = Vec::new();
    for version in VERSIONS {
        let outcomes = outcomes(&folder.join(version), Numbering::Plain);
        let passed = |rule: usize| outcomes.values().filter(|outcome| outcome[rule].is_none()).count();
        println!("{version}: {} definitions, strict {}, any order {}, wire {}", outcomes.len(), passed(0), passed(1), passed(2));
        assert!(!outcomes.is_empty(), "{version}");
        // FIX 4.0 has no tag 144: engines that take it for a header field reject it before a field that is wrong, too.
        assert!(passed(1) * 100 >= outcomes.len() * 98, "{version}: {outcomes:#?}");
        let wrong = |(name, outcome): (&String, &Outcome)| Some(format!("{version}/{name}: {}", outcome[2].as_ref()?));
        failures.extend(outcomes.iter().filter_map(wrong));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// By the numbers of the venue's sessions of orders. There numbers begin again with a connection, and not within one: the definition in
/// which they do cannot pass.
#[test]
fn with_numbers_that_leap_all_definitions_pass_on_the_wire_but_one() {
    let Some(folder) = definitions() else {
        eprintln!("SKIPPED: the acceptance definitions (fix-at) are neither in WALRAS_DATA nor in ../shared/data");
        return;
    };
    let mut failures = BTreeMap::new();
    for version in VERSIONS {
        for (name, [.., wire]) in outcomes(&folder.join(version), Numbering::Lasting) {
            failures.extend(wire.map(|why| (format!("{version}/{name}"), why)));
        }
    }
    let expected = ["fix44", "fix50", "fix50sp1", "fix50sp2"].map(|version| format!("{version}/SessionReset"));
    assert!(failures.keys().eq(&expected), "{failures:#?}");
}
