//! A source file holds one idea: aim at 500 lines, stop at 1,000. The exceptions may only shrink.

use crate::tree::Tree;

const LINES_MAX: usize = 1_000;

/// Files over the limit, with the size they may not exceed. Empty, and meant to stay so.
const EXCEPTIONS: &[(&str, usize)] = &[];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let sources = [".rs", ".ts", ".css", ".java", ".py"];
    let mut complaints = Vec::new();
    for (path, text) in sources.into_iter().flat_map(|ending| tree.with_ending(ending)) {
        let lines_max = EXCEPTIONS.iter().find(|(file, _)| *file == path).map_or(LINES_MAX, |(_, lines_max)| *lines_max);
        let line_count = text.lines().count();
        if line_count > lines_max {
            complaints.push(format!("{path}: {line_count} lines, {lines_max} at most: split it by idea"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found() {
        let tree = Tree::of(&[("a.rs", &"line\n".repeat(LINES_MAX + 1)), ("b.rs", &"line\n".repeat(LINES_MAX))]);
        assert_eq!(check(&tree).len(), 1);
    }
}
