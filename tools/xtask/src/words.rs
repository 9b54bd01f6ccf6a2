//! What must not be committed: paths of somebody's machine, registries' hosts, unfinished marks, shortcuts of tests. And words that
//! make a document hard to read.

use crate::markdown::{Kind, lines};
use crate::tree::Tree;

/// What to write where something waits. A program that waits for what it cannot be notified of names the reason; a test never does.
const WAIT: &str = "a wait: block on a channel or a condition, or use tools/wait (a program may name its reason after `pause:`)";

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
        (word(&["thread::sl", "eep"]), WAIT),
        (word(&["park_ti", "meout"]), WAIT),
        (word(&["thread::yie", "ld_now"]), WAIT),
    ]
}

/// Words of documents that have a plainer one.
const PLAINER: &[(&str, &str)] = &[
    ("told", "reported, sent, configured"),
    ("whoever", "name who: the operator, the sender, a client"),
    ("anew", "again"),
    ("beside", "next to, with, in addition to"),
    ("can not", "cannot"),
    ("for ever", "forever"),
];
/// Documents that are written in the code, whose words are the code's.
const WRITTEN_ELSEWHERE: &[&str] = &["docs/configuration.md", "docs/reject-reasons.md"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let banned = banned();
    let mut complaints: Vec<String> = tree
        .with_ending(".md")
        .filter(|(path, _)| (path.starts_with("docs/") || !path.contains('/')) && !WRITTEN_ELSEWHERE.contains(path))
        .flat_map(|(path, text)| plainer_words(path, text))
        .collect();
    for (path, text) in &tree.files {
        for (number, line) in text.lines().enumerate() {
            for (word, why) in &banned {
                let has_reason = line.contains("pause:") && !path.contains("/tests/") && *why == WAIT;
                if line.contains(word.as_str()) && !has_reason && !path.ends_with("clippy.toml") {
                    complaints.push(format!("{path}:{}: {why}", number + 1));
                }
            }
        }
    }
    complaints
}

/// The plainer word for each that a document's prose should not have.
fn plainer_words(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, (_, line)) in lines(text).enumerate().filter(|(_, (kind, _))| *kind == Kind::Prose) {
        // A span that goes on over the end of a line counts as prose, which is rare and harmless.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let words: Vec<&str> = prose.split(|c: char| !c.is_alphanumeric()).collect();
        for (word, plainer) in PLAINER {
            let parts: Vec<&str> = word.split(' ').collect();
            if words.windows(parts.len()).any(|window| window.iter().zip(&parts).all(|(a, b)| a.eq_ignore_ascii_case(b))) {
                complaints.push(format!("{path}:{}: \"{word}\": write {plainer}", number + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_has_a_plainer_one_is_found_in_documents() {
        let in_file = |path: &str, text: &str| check(&Tree::of(&[(path, text)]));
        for text in ["He was told.", "Whoever", "| it can not |"] {
            assert_eq!(in_file("docs/a.md", text).len(), 1, "{text}");
        }
        for text in ["retold `told` besides", "```\ntold\n```", "can, not"] {
            assert_eq!(in_file("README.md", text), [""; 0], "{text}");
        }
        assert_eq!(in_file("docs/configuration.md", "told"), [""; 0]);
        assert_eq!(in_file("experiments/x/README.md", "told"), [""; 0]);
    }

    #[test]
    fn a_wait_needs_a_reason_and_has_none_in_a_test() {
        let of_wait: Vec<String> = banned().into_iter().filter(|(_, why)| *why == WAIT).map(|(word, _)| word).collect();
        assert_eq!(of_wait.len(), 3);
        for word in of_wait {
            let line = format!("{word}(); // pause: another process starts");
            let found = |path: &str| check(&Tree::of(&[(path, &line)])).len();
            assert_eq!((found("edge/a/src/b.rs"), found("edge/a/tests/b.rs")), (0, 1), "{word}");
        }
    }

    #[test]
    fn each_word_is_found() {
        for (word, _) in banned() {
            assert_eq!(check(&Tree::of(&[("a.rs", &word)])).len(), 1, "{word}");
        }
    }
}
