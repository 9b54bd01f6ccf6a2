//! Files of a crate that import each other in a circle can only be understood together, so a circle has few files; and the folders
//! of the node know each other in one direction.
//!
//! An import counts for the file that defines what is imported: `pub use` of a module's parts passes a name on and is no import of
//! its own. Tests may import what they like.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Crate, Imports, crates};
use crate::tree::Tree;

/// Most files in one circle.
const FILES_MAX: usize = 5;

/// Circles that are larger: a file of each, and the size that it may not exceed. The list may only shrink.
const EXCEPTIONS: &[(&str, usize)] = &[("core/engine/src/engine.rs", 7), ("core/batch/src/batch.rs", 9)];

/// Crates whose folders import in one direction only.
const FOLDERS_IN_ORDER: &[&str] = &["edge/api", "edge/client", "edge/node"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for Crate { folder, imports } in crates(tree) {
        for circle in circles(&imports) {
            let files_max = EXCEPTIONS.iter().find(|(file, _)| circle.contains(*file)).map_or(FILES_MAX, |(_, files)| *files);
            if circle.len() > files_max {
                let (count, files) = (circle.len(), list(&circle));
                complaints.push(format!("{count} files import each other in a circle, {files_max} at most: cut it: {files}"));
            }
        }
        if FOLDERS_IN_ORDER.contains(&folder) {
            for circle in circles(&between_folders(folder, &imports)) {
                complaints.push(format!("{folder}/src: folders import each other in a circle: {}", list(&circle)));
            }
        }
    }
    complaints
}

fn list(circle: &BTreeSet<String>) -> String {
    circle.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The same between the folders right under `src`, where a file there is a folder of its own.
fn between_folders(folder: &str, imports: &Imports) -> Imports {
    let source = format!("{folder}/src/");
    let top = |path: &str| {
        let inside = path.strip_prefix(&source)?;
        let top = inside.split('/').next()?.trim_end_matches(".rs");
        (!matches!(top, "lib" | "main")).then(|| top.to_owned())
    };
    let mut folders = Imports::new();
    for (from, to) in imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        if let (Some(from), Some(to)) = (top(from), top(to))
            && from != to
        {
            folders.entry(from).or_default().insert(to);
        }
    }
    folders
}

/// Each circle of two and more: those that reach each other.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|from| (from.as_str(), reach(imports, from))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (from, all) in &reached {
        let is_mutual = |to: &&&str| reached.get(**to).is_some_and(|back| back.contains(from));
        let circle: BTreeSet<String> = all.iter().filter(is_mutual).map(|to| (*to).to_owned()).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// All that is imported, directly or not.
fn reach<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        for to in imports.get(file).into_iter().flatten() {
            if reached.insert(to.as_str()) {
                waiting.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("edge/node/Cargo.toml", "name = \"walras-node\"\n");

    #[test]
    fn a_circle_of_six_files_is_found_and_one_of_five_is_not() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let circle = |count: usize| {
            let file =
                |at: usize| (format!("core/x/src/{}.rs", names[at]), format!("use crate::{}::X;\n", names[(at + 1) % count]));
            let files: Vec<(String, String)> = (0..count).map(file).collect();
            let mut all: Vec<(&str, &str)> = vec![("core/x/Cargo.toml", ""), ("core/x/src/lib.rs", "mod a;\nmod b;\n")];
            all.extend(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
            check(&Tree::of(&all)).len()
        };
        assert_eq!((circle(5), circle(6)), (0, 1));
    }

    #[test]
    fn folders_of_the_node_that_know_each_other_are_found() {
        let there = ("edge/node/src/cli/mod.rs", "use crate::config::Config;\n");
        let lib = ("edge/node/src/lib.rs", "pub mod cli;\npub mod config;\n");
        let inline = "fn print() {\n    crate::cli::print();\n}\n";
        let in_a_test = format!("#[cfg(test)]\nmod tests {{\n    {inline}}}\n");
        let found = |text| check(&Tree::of(&[MANIFEST, lib, there, ("edge/node/src/config.rs", text)])).len();
        assert_eq!((found(inline), found("use super::cli;\n"), found(in_a_test.as_str())), (1, 1, 0));
    }
}
