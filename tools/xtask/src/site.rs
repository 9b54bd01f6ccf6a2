//! The documents as a book: which pages it has, and its sources for mdBook.
//!
//! The index of the documents is the only list of pages. A document that a listed page outside `docs/` leads to is a page below it:
//! the figures of an experiment. The book keeps the paths of the repository, so that links need no change.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::markdown::{folder, joined, links};
use crate::tree::Tree;

/// The list of all pages, by section.
pub(crate) const INDEX: &str = "docs/README.md";
/// The first page.
const FRONT: &str = "README.md";

/// The files that a page links to, as paths from the root.
fn linked(page: &str, text: &str) -> Vec<String> {
    let paths = links(text).into_iter().map(|(path, _)| path).filter(|path| !path.is_empty());
    paths.filter_map(|path| joined(folder(page), &path)).collect()
}

/// The pages that the index lists.
fn listed(tree: &Tree) -> BTreeSet<String> {
    let listed = tree.files.get(INDEX).map(|index| linked(INDEX, index)).unwrap_or_default();
    let fixed = [FRONT, INDEX].map(str::to_owned);
    fixed.into_iter().chain(listed).filter(|path| path.ends_with(".md") && tree.files.contains_key(path)).collect()
}

/// The pages below a listed one: all that links lead to from there.
fn below(tree: &Tree, page: &str) -> BTreeSet<String> {
    let mut below = BTreeSet::new();
    if folder(page).is_empty() || folder(page) == folder(INDEX) {
        return below;
    }
    let listed = listed(tree);
    let mut unread = vec![page.to_owned()];
    while let Some(page) = unread.pop() {
        for path in linked(&page, &tree.files[&page]) {
            if path.ends_with(".md") && tree.files.contains_key(&path) && !listed.contains(&path) && below.insert(path.clone()) {
                unread.push(path);
            }
        }
    }
    below
}

/// All pages.
fn pages(tree: &Tree) -> BTreeSet<String> {
    let listed = listed(tree);
    let below: BTreeSet<String> = listed.iter().flat_map(|page| below(tree, page)).collect();
    &listed | &below
}

/// A page links to pages of the book or to files, not to folders or to documents that the book lacks.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let pages = pages(tree);
    let mut complaints = Vec::new();
    for page in &pages {
        for path in linked(page, &tree.files[page]) {
            if path.ends_with(".md") && tree.has(&path) && !pages.contains(&path) {
                complaints.push(format!("{page} links to {path}, which the site lacks: list it in {INDEX}"));
            } else if !tree.names.contains(&path) && tree.has(&path) {
                complaints.push(format!("{page} links to the folder {path}: link to a file, the site has no folders"));
            }
        }
    }
    complaints
}

/// The book's table of contents: the sections of the index, with the title of each page.
fn summary(tree: &Tree) -> String {
    let mut summary = format!("# Summary\n\n[Walras]({FRONT})\n\n[The documents]({INDEX})\n");
    let mut written = BTreeSet::new();
    for line in tree.files.get(INDEX).into_iter().flat_map(|index| index.lines()) {
        if let Some(section) = line.strip_prefix("## ") {
            summary += &format!("\n# {section}\n\n");
        }
        if !line.starts_with("| [") {
            continue;
        }
        for page in linked(INDEX, line).into_iter().take(1).filter(|page| page.ends_with(".md")) {
            let title_of = |page: &str| {
                let title = tree.files.get(page).and_then(|text| text.lines().find_map(|line| line.strip_prefix("# ")));
                title.unwrap_or(page).to_owned()
            };
            if tree.files.contains_key(&page) && written.insert(page.clone()) {
                summary += &format!("- [{}]({page})\n", title_of(&page));
                for page in below(tree, &page).into_iter().filter(|page| written.insert(page.clone())) {
                    summary += &format!("  - [{}]({page})\n", title_of(&page));
                }
            }
        }
    }
    summary
}

/// Writes the book's sources into an empty folder.
pub(crate) fn write(tree: &Tree, root: &Path, out: &Path) -> anyhow::Result<()> {
    let complaints = check(tree);
    anyhow::ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    let pages = pages(tree);
    let files = pages.iter().flat_map(|page| linked(page, &tree.files[page])).filter(|path| tree.names.contains(path));
    let all: BTreeSet<String> = files.chain(pages.iter().cloned()).collect();
    for path in all {
        let to = out.join(&path);
        let to_folder = to.parent().unwrap_or(out);
        fs::create_dir_all(to_folder).with_context(|| format!("making {}", to_folder.display()))?;
        fs::copy(root.join(&path), &to).with_context(|| format!("copying {path}"))?;
    }
    fs::write(out.join("SUMMARY.md"), summary(tree)).context("writing SUMMARY.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("README.md", "[all](docs/README.md) ![a](docs/a.png)"),
        (
            "docs/README.md",
            "# Documents\n## Run\n| page | what |\n| [a](a.md) | see [b](b.md) |\n## Trust\n| [b](b.md) | b |\n| [x](../x/y/z.md) | x |",
        ),
        ("docs/a.md", "# The `a`\n[b](b.md#b)"),
        ("docs/b.md", "# B"),
        ("docs/c.md", "# C"),
        ("docs/a.png", ""),
        ("x/y/z.md", "# Z\n[one](../one.md) [a](../../docs/a.md)"),
        ("x/one.md", "# One\n[two](two.md)"),
        ("x/two.md", "two"),
    ];

    #[test]
    fn the_summary_is_the_index() {
        let expected = "# Summary\n\n[Walras](README.md)\n\n[The documents](docs/README.md)\n\n# Run\n\n- [The `a`](docs/a.md)\n\n\
                        # Trust\n\n- [B](docs/b.md)\n- [Z](x/y/z.md)\n  - [One](x/one.md)\n  - [x/two.md](x/two.md)\n";
        assert_eq!(summary(&Tree::of(FILES)), expected);
        assert_eq!(check(&Tree::of(FILES)), [""; 0]);
    }

    #[test]
    fn links_out_of_the_site_are_found() {
        for text in ["[c](c.md)", "[docs](../docs)"] {
            let files: Vec<_> = FILES.iter().map(|(name, old)| (*name, if *name == "docs/b.md" { text } else { *old })).collect();
            assert_eq!(check(&Tree::of(&files)).len(), 1, "{text}");
        }
    }
}
