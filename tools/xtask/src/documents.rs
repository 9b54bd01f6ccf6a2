//! The documents name nothing that is not there: links, paths from the root in backticks, targets of make. Their index lists each.

use std::collections::BTreeSet;

use crate::map::named_paths;
use crate::tree::Tree;

/// Which documents there are.
const INDEX: &str = "docs/README.md";

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let targets: Vec<&str> = tree.files.get("Makefile").map(|makefile| make_targets(makefile).collect()).unwrap_or_default();
    let mut complaints = Vec::new();
    for (document, text) in tree.with_ending(".md") {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_there = |path: &str| tree.has(path) || joined(folder, path).is_some_and(|path| tree.has(&path));
        complaints.extend(
            links(text).filter(|link| !is_there(link)).map(|link| format!("{document} links to {link}, which does not exist")),
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
            named_targets(text)
                .filter(|target| !targets.contains(target))
                .map(|target| format!("{document} names `make {target}`, which the Makefile does not have")),
        );
    }
    if let Some(index) = tree.files.get(INDEX) {
        let listed: BTreeSet<&str> = links(index).collect();
        complaints.extend(
            tree.with_ending(".md")
                .filter_map(|(document, _)| {
                    document.strip_prefix("docs/").filter(|name| !name.contains('/') && *name != "README.md")
                })
                .filter(|name| !listed.contains(name))
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

/// Relative targets of links, without the place inside the document.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next());
    targets.filter(|link| !link.contains("://")).filter_map(|link| link.split('#').next()).filter(|link| !link.is_empty())
}

/// A path as seen from a folder; `None` when it leaves the repository.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A name in capitals stands for another, as in `bench/results/NAME.json`.
fn is_placeholder(path: &str) -> bool {
    path.split(['/', '.']).any(|part| part == "NAME")
}

/// What follows `make` at the beginning of a span or a line of code; variables may stand between.
fn named_targets(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2).flat_map(str::lines);
    let words = spans.filter_map(|line| line.trim_start().strip_prefix("make "));
    words.filter_map(|rest| rest.split_whitespace().find(|word| !word.contains('=')))
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
        let there =
            "[a](b.md#place) [up](../README.md) [far](https://example.org/x) `docs/b.md` `make SPEED=2 demo` `bench/NAME.json`";
        let files = [
            makefile,
            ("docs/b.md", ""),
            ("docs/adr/1.md", "`docs/later.md`"),
            ("README.md", "see `a/b` of others"),
            ("bench/x.json", ""),
        ];
        let with = |text: &'static str| check(&Tree::of(&[&files[..], &[("docs/a.md", text)]].concat()));
        assert_eq!(with(there), [""; 0]);
        for wrong in ["[a](c.md)", "[a](../../README.md)", "`docs/c.md`", "`make tea`", "```\nmake tea # green\n```"] {
            assert_eq!(with(wrong).len(), 1, "{wrong}");
        }
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
