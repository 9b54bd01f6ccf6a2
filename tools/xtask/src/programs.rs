//! Programs of tests, each of which links all that its crate depends on: one for the tests in a library's or program's sources, where there
//! are any, and one for all of a crate's `tests/`.

use crate::tree::Tree;

/// Crates whose `tests/` are more than one program, and how many at most. Meant to shrink.
const EXCEPTIONS: &[(&str, usize)] = &[
    ("core/engine", 3),
    ("core/ledger", 2),
    ("core/wire", 3),
    ("edge/batch-solver", 5),
    ("edge/node", 7),
    ("edge/price-solver", 3),
    ("edge/trade-amounts", 3),
];

/// What the first lines of a file say whose tests cannot share a process with others.
const APART: [&str; 2] = ["program of its own", "process of its own"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, manifest) in tree.with_ending("/Cargo.toml") {
        // It is no member of the workspace.
        if manifest.lines().any(|line| line == "[workspace]") {
            continue;
        }
        let folder = path.trim_end_matches("/Cargo.toml");
        complaints.extend(of_sources(tree, folder, manifest));
        complaints.extend(of_tests(tree, folder));
    }
    complaints
}

/// A library or program has a program of tests if and only if it has tests.
fn of_sources(tree: &Tree, folder: &str, manifest: &str) -> Vec<String> {
    let [sources, library, main] = ["src/", "src/lib.rs", "src/main.rs"].map(|path| format!("{folder}/{path}"));
    let library_has_tests =
        tree.with_ending(".rs").any(|(path, text)| path.starts_with(&sources) && path != main && has_tests(text));
    // Modules of a program may have some: who keeps them there keeps its program of tests.
    let main_has_tests =
        tree.files.get(&main).is_some_and(|text| has_tests(text) || text.lines().any(|line| line.starts_with("mod ")));
    let mut complaints = Vec::new();
    for (root, section, is_tested) in [(library, "[lib]", library_has_tests), (main, "[[bin]]", main_has_tests)] {
        if !tree.names.contains(&root) {
            continue;
        }
        match (is_tested, builds_tests(manifest, section)) {
            (false, true) => complaints.push(format!(
                "{root} has no tests, and a program is linked for them: write `test = false` under {section} of {folder}/Cargo.toml"
            )),
            (true, false) => {
                complaints.push(format!("tests of {root} never run: remove `test = false` under {section} of {folder}/Cargo.toml"));
            }
            (true, true) | (false, false) => {}
        }
    }
    complaints
}

fn has_tests(source: &str) -> bool {
    source.contains("#[test]") || source.contains("#[cfg(test)]")
}

/// Whether the first section of this name leaves tests on.
fn builds_tests(manifest: &str, section: &str) -> bool {
    let mut lines = manifest.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('['));
    !lines.any(|line| line == "test = false")
}

/// The `tests/` of a crate are one program, apart from files that say why not.
fn of_tests(tree: &Tree, folder: &str) -> Option<String> {
    let tests = format!("{folder}/tests/");
    let is_program = |path: &str| {
        path.strip_prefix(&tests).is_some_and(|rest| match rest.split_once('/') {
            None => true,
            Some((_, file)) => file == "main.rs",
        })
    };
    let count = tree.with_ending(".rs").filter(|&(path, text)| is_program(path) && !is_apart(text)).count();
    let most = EXCEPTIONS.iter().find(|(of, _)| *of == folder).map_or(1, |(_, most)| *most);
    (count > most).then(|| {
        format!(
            "{folder}/tests: {count} programs, {most} at most: make them modules of one, or say in a file's first lines why it is a \
             program of its own"
        )
    })
}

fn is_apart(source: &str) -> bool {
    let mut head = source.lines().take_while(|line| line.starts_with("//!"));
    head.any(|line| APART.iter().any(|apart| line.contains(apart)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_no_test_needs_is_found_and_so_are_tests_that_never_run() {
        let complaints = |manifest: &str, library: &str, main: &str| {
            check(&Tree::of(&[("core/a/Cargo.toml", manifest), ("core/a/src/lib.rs", library), ("core/a/src/main.rs", main)]))
        };
        let off = "[package]\n\n[lib]\ntest = false\n\n[[bin]]\nname = \"a\"\ntest = false\n\n[dependencies]\n";
        assert_eq!(complaints(off, "", "fn main() {}"), Vec::<String>::new());
        let found = complaints("[package]\n\n[dependencies]\n", "", "fn main() {}");
        assert!(found.len() == 2 && found.iter().all(|complaint| complaint.contains("has no tests")), "{found:?}");
        let found = complaints(off, "#[test]\nfn it_holds() {}\n", "mod arms;\n");
        assert!(found.len() == 2 && found.iter().all(|complaint| complaint.contains("never run")), "{found:?}");
        assert_eq!(complaints("[workspace]\n", "", "fn main() {}"), Vec::<String>::new(), "no member");
    }

    #[test]
    fn a_second_program_in_tests_is_found() {
        let second = |text: &str| {
            check(&Tree::of(&[
                ("core/a/Cargo.toml", ""),
                ("core/a/tests/a/main.rs", "mod rules;\n"),
                ("core/a/tests/a/rules.rs", ""),
                ("core/a/tests/limits.rs", text),
            ]))
        };
        assert_eq!(second("//! Limits.\n").len(), 1, "{:?}", second("//! Limits.\n"));
        assert_eq!(second("//! Limits.\n//! A program of its own, because it has none left.\n"), Vec::<String>::new());
    }
}
