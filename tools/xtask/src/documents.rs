//! The documents name nothing that is not there: links with their anchors, paths from the root in backticks, targets of make. Their
//! index lists each. Their lines fit a screen.

use std::collections::{BTreeMap, BTreeSet};

use crate::map::named_paths;
use crate::markdown::{Kind, anchors, code, folder, joined, lines, links};
use crate::site::INDEX;
use crate::tree::Tree;

/// Prose is wrapped at 132; a word more is no defect. Tables and code are left as they are.
const COLUMNS_MAX: usize = 140;

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let targets: Vec<&str> = tree.files.get("Makefile").map(|makefile| make_targets(makefile).collect()).unwrap_or_default();
    let mut complaints = Vec::new();
    let headings: BTreeMap<&str, BTreeSet<String>> = tree.with_ending(".md").map(|(name, text)| (name, anchors(text))).collect();
    for (document, text) in tree.with_ending(".md") {
        let folder = folder(document);
        let is_there = |path: &str| tree.has(path) || joined(folder, path).is_some_and(|path| tree.has(&path));
        for (path, anchor) in links(text) {
            let target = if path.is_empty() { Some(document.to_owned()) } else { joined(folder, &path) };
            let Some(target) = target.filter(|target| tree.has(target)) else {
                complaints.push(format!("{document} links to {path}, which does not exist"));
                continue;
            };
            let Some(anchor) = anchor else { continue };
            if headings.get(target.as_str()).is_some_and(|headings| !headings.contains(&anchor)) {
                complaints.push(format!("{document} links to #{anchor} of {target}, which has no such heading"));
            }
        }
        // An experiment writes its own table.
        let long_lines = long_lines(text).filter(|_| !document.ends_with("/table.md"));
        complaints.extend(
            long_lines.map(|(number, columns)| {
                format!("{document}:{number} has {columns} columns, {COLUMNS_MAX} at most: wrap it at 132")
            }),
        );
        // A choice names what it wants built, and stays when that is gone.
        let is_choice = document.starts_with("docs/adr/");
        let is_ours =
            |path: &&str| !is_choice && path.split_once('/').is_some_and(|(first, _)| tree.has(first)) && !is_placeholder(path);
        complaints.extend(
            named_paths(text)
                .filter(|path| is_ours(path) && !is_there(path))
                .map(|path| format!("{document} names `{path}`, which does not exist")),
        );
        complaints.extend(
            code(text)
                .iter()
                .filter_map(|line| named_target(line))
                .filter(|target| !targets.contains(target))
                .map(|target| format!("{document} names `make {target}`, which the Makefile does not have")),
        );
    }
    if let Some(index) = tree.files.get(INDEX) {
        let listed: BTreeSet<String> = links(index).into_iter().map(|(path, _)| path).collect();
        complaints.extend(
            tree.with_ending(".md")
                .filter_map(|(document, _)| {
                    document.strip_prefix("docs/").filter(|name| !name.contains('/') && *name != "README.md")
                })
                .filter(|name| !listed.contains(*name))
                .map(|name| format!("{INDEX} does not list {name}")),
        );
    }
    if let Some(glossary) = tree.files.get("docs/glossary.md") {
        complaints.extend(
            named_twice(glossary).map(|word| format!("docs/glossary.md has two rows for `{word}`: one word for one thing")),
        );
    }
    complaints
}

/// Words of a glossary that head more than one row; a row may head several, with commas between.
fn named_twice(glossary: &str) -> impl Iterator<Item = &str> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let mut seen = BTreeSet::new();
    // A place of use in brackets, and kinds behind a colon, do not make it another word.
    let words = rows.flat_map(|row| row.split(", ")).map(|word| word.split([':', '(']).next().unwrap_or(word).trim());
    words.filter(move |word| *word != "---" && !seen.insert(*word))
}

/// Lines of prose that are too long, from 1, with their columns. What a program writes stays as it is.
fn long_lines(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let columns = lines(text).enumerate().filter(|(_, (kind, line))| *kind == Kind::Prose && !line.trim_start().starts_with('|'));
    columns.map(|(index, (_, line))| (index + 1, line.chars().count())).filter(|(_, columns)| *columns > COLUMNS_MAX)
}

/// A name in capitals stands for another, as in `bench/results/NAME.json`.
fn is_placeholder(path: &str) -> bool {
    path.split(['/', '.']).any(|part| part == "NAME")
}

/// What follows `make` at the beginning of code; variables may stand between.
fn named_target(code: &str) -> Option<&str> {
    code.trim_start().strip_prefix("make ")?.split_whitespace().find(|word| !word.contains('='))
}

fn make_targets(makefile: &str) -> impl Iterator<Item = &str> {
    makefile.lines().filter(|line| !line.starts_with(['\t', '#'])).filter_map(|line| Some(line.split_once(':')?.0.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_found() {
        let makefile = ("Makefile", "demo: web ## starts\n\ttouch x\nweb: ## builds\n");
        let there = "# Here\n[a](b.md#place) [h](#here) [up](../README.md) [far](https://example.org/x) `docs/b.md` `make SPEED=2 demo` `bench/NAME.json`";
        let files = [
            makefile,
            ("docs/b.md", "## Place"),
            ("docs/adr/1.md", "`docs/later.md`"),
            ("README.md", "see `a/b` of others"),
            ("bench/x.json", ""),
        ];
        let with = |text: &'static str| check(&Tree::of(&[&files[..], &[("docs/a.md", text)]].concat()));
        assert_eq!(with(there), [""; 0]);
        for wrong in [
            "[a](c.md)",
            "[a](../../README.md)",
            "[a](b.md#elsewhere)",
            "[a](#nowhere)",
            "`docs/c.md`",
            "`make tea`",
            "```\nmake tea # green\n```",
            "\n    make tea\n",
        ] {
            assert_eq!(with(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_found() {
        let with = |text: &str| check(&Tree::of(&[("docs/adr/1.md", text)]));
        let long = "x".repeat(COLUMNS_MAX + 1);
        assert_eq!(with(&format!("{}\n| {long} |\n", &long[1..])), [""; 0]);
        assert_eq!(with(&format!("a\n{long}\n")), ["docs/adr/1.md:2 has 141 columns, 140 at most: wrap it at 132"]);
        assert_eq!(with(&format!("```\n{long}\n```\n")), [""; 0]);
    }

    #[test]
    fn a_document_that_the_index_leaves_out_is_found() {
        let with = |index: &'static str| check(&Tree::of(&[("docs/a.md", ""), ("docs/adr/1.md", ""), ("docs/README.md", index)]));
        assert_eq!(with("[a](a.md)"), [""; 0]);
        assert_eq!(with("a.md"), ["docs/README.md does not list a.md"]);
    }

    #[test]
    fn a_word_with_two_rows_is_found() {
        let glossary =
            |rows: &str| check(&Tree::of(&[("docs/glossary.md", &format!("| word | meaning |\n| --- | --- |\n{rows}"))]));
        assert_eq!(glossary("| batch, block | a |\n| batch market | b |\n| close (a batch) | c, block |\n"), [""; 0]);
        for twice in ["| a | x |\n| b, a | y |\n", "| a (of b) | x |\n| a | y |\n", "| a: c, d | x |\n| a | y |\n"] {
            assert_eq!(glossary(twice).len(), 1, "{twice}");
        }
    }
}
