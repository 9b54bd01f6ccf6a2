//! Programs of the documents are short: each is one file of at most 30 lines that are not blank, comments and imports counted. These are
//! the programs in docs/, those that a page there links to in a crate's examples/, and the code in the text of the pages.

use std::collections::BTreeSet;

use crate::markdown::{Kind, folder, joined, lines, links};
use crate::tree::Tree;

const LINES_MAX: usize = 30;

/// A whole bot, which a page explains piece by piece.
const LONGER: &[&str] = &["docs/first-bot.py"];

const ENDINGS: &[&str] = &["py", "mjs", "js", "ts", "go", "java", "rs"];

/// What a block of code in a page says it is.
const LANGUAGES: &[&str] = &["python", "javascript", "js", "typescript", "ts", "go", "java", "rust"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut programs: BTreeSet<String> =
        tree.names.iter().filter(|path| path.starts_with("docs/") && is_program(path)).cloned().collect();
    for (page, text) in tree.with_ending(".md").filter(|(path, _)| path.starts_with("docs/")) {
        let linked = links(text).into_iter().filter_map(|(path, _)| joined(folder(page), &path));
        programs.extend(linked.filter(|path| path.contains("/examples/") && is_program(path)));
        let blocks = blocks(text).into_iter().filter(|(_, language, _)| LANGUAGES.contains(language));
        complaints.extend(blocks.filter_map(|(number, _, count)| too_long(&format!("{page}:{number}"), count)));
    }
    for path in &programs {
        let Some(text) = tree.files.get(path) else { continue };
        if !LONGER.contains(&path.as_str()) {
            complaints.extend(too_long(path, text.lines().filter(|line| !is_blank(line)).count()));
        }
        let others = programs.iter().filter(|other| *other != path && text.contains(file_name(other)));
        complaints.extend(others.map(|other| format!("{path} needs {other}: a program of the documents is one file")));
    }
    complaints
}

fn is_program(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn too_long(place: &str, count: usize) -> Option<String> {
    (count > LINES_MAX).then(|| format!("{place}: a program of {count} lines that are not blank, {LINES_MAX} at most"))
}

/// The fenced blocks of a page: the line of each, from 1, its language, and how many of its lines are not blank.
fn blocks(text: &str) -> Vec<(usize, &str, usize)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, usize)> = None;
    for (index, (kind, line)) in lines(text).enumerate() {
        if kind == Kind::Fence {
            match open.take() {
                None => open = Some((index + 1, line.trim().trim_start_matches('`'), 0)),
                Some(block) => blocks.push(block),
            }
        } else if let Some((_, _, count)) = &mut open {
            *count += usize::from(!is_blank(line));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(line_count: usize) -> String {
        "x\n\n".repeat(line_count)
    }

    #[test]
    fn a_long_program_is_found_in_every_language() {
        let page = ("docs/a.md", "[b](../edge/b/examples/b.rs)");
        let with = |path: &str, line_count: usize| check(&Tree::of(&[(path, &text_of(line_count)), page]));
        for path in ["docs/a.py", "docs/a.mjs", "docs/a.go", "docs/A.java", "docs/a.rs", "edge/b/examples/b.rs"] {
            assert_eq!(with(path, LINES_MAX), [""; 0], "{path}");
            assert_eq!(with(path, LINES_MAX + 1).len(), 1, "{path}");
        }
        for path in ["docs/a.tsv", "docs/first-bot.py", "edge/b/examples/c.rs", "edge/b/src/b.rs"] {
            assert_eq!(with(path, LINES_MAX + 1), [""; 0], "{path}");
        }
    }

    #[test]
    fn a_long_program_in_the_text_of_a_page_is_found() {
        let with = |path: &str, language: &str, line_count: usize| {
            check(&Tree::of(&[(path, &format!("a\n\n```{language}\n{}```\n", text_of(line_count)))]))
        };
        assert_eq!(with("docs/a.md", "python", LINES_MAX), [""; 0]);
        assert_eq!(with("docs/a.md", "rust", LINES_MAX + 1), ["docs/a.md:3: a program of 31 lines that are not blank, 30 at most"]);
        assert_eq!(with("docs/a.md", "toml", LINES_MAX + 1), [""; 0]);
        assert_eq!(with("README.md", "python", LINES_MAX + 1), [""; 0]);
    }

    #[test]
    fn a_program_of_two_files_is_found() {
        let of = |text: &str| check(&Tree::of(&[("docs/a.mjs", text), ("docs/b.mjs", "")]));
        assert_eq!(of("import \"./c.mjs\";\n"), [""; 0]);
        assert_eq!(of("import \"./b.mjs\";\n").len(), 1);
    }
}
