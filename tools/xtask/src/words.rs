//! What must not be committed: paths of somebody's machine, registries' hosts, unfinished marks, shortcuts of tests.

use crate::tree::Tree;

/// Built of pieces, so that this file does not complain about itself.
fn banned() -> Vec<(String, &'static str)> {
    let word = |pieces: &[&str]| pieces.concat();
    vec![
        (word(&["/wor", "k/"]), "a path of one machine"),
        (word(&["/ho", "me/"]), "a path of one machine"),
        (word(&["registry.npm", "js.org"]), "a registry's host"),
        (word(&["index.crates", ".io"]), "a registry's host"),
        (word(&["repo1.maven", ".org"]), "a registry's host"),
        (word(&["FIX", "ME"]), "an unfinished mark: finish it, or open an issue"),
        (word(&["XX", "X"]), "an unfinished mark: finish it, or open an issue"),
        (word(&["#[ign", "ore"]), "an ignored test: mend it, or assert what it does today"),
        (word(&["thread::sl", "eep"]), "a sleep: wait on a condition (edge/ may name a reason with `pause:`)"),
    ]
}

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let banned = banned();
    let mut complaints = Vec::new();
    for (path, text) in &tree.files {
        for (number, line) in text.lines().enumerate() {
            for (word, why) in &banned {
                if line.contains(word.as_str()) && !line.contains("pause:") && !path.ends_with("clippy.toml") {
                    complaints.push(format!("{path}:{}: {why}", number + 1));
                }
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found() {
        for (word, _) in banned() {
            assert_eq!(check(&Tree::of(&[("a.rs", &word)])).len(), 1, "{word}");
        }
    }
}
