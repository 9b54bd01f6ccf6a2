//! ARCHITECTURE.md is the map: the paths that it names exist, and every crate is on it.

use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(map) = tree.files.get("ARCHITECTURE.md") else { return vec!["ARCHITECTURE.md is missing".to_owned()] };
    let mut complaints: Vec<String> = named_paths(map)
        .filter(|path| !tree.has(path))
        .map(|path| format!("ARCHITECTURE.md names `{path}`, which does not exist"))
        .collect();
    for (manifest, _) in tree.with_ending("/Cargo.toml") {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        if !map.contains(&format!("`{folder}`")) && !map.contains(&format!("`{folder}/`")) {
            complaints.push(format!("ARCHITECTURE.md does not name `{folder}`"));
        }
    }
    complaints
}

/// What stands in backticks, has a slash and looks like a path.
pub(crate) fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| {
        word.contains('/') && !word.starts_with('/') && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    };
    text.split('`').skip(1).step_by(2).filter(is_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_path_and_a_missing_crate_are_found() {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "see `core/gone` and `core/here`"),
            ("core/here/Cargo.toml", ""),
            ("edge/new/Cargo.toml", ""),
        ]);
        assert_eq!(check(&tree).len(), 2, "{:?}", check(&tree));
    }
}
