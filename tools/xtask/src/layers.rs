//! Dependencies point down only: edge -> protocol -> core; inside core, the three blind ones do not know each other.

use std::collections::BTreeMap;

use crate::tree::Tree;

/// Folders from the top down; a crate may depend on crates of its own folder and of those after it.
const LAYERS: &[&str] = &["experiments", "bench", "tools", "sdk", "edge", "protocol", "core"];

/// What a crate of `core/` may depend on, workspace crates and others. `core/` stays nearly free of dependencies.
const CORE_ALLOWED: &[(&str, &[&str])] = &[
    ("walras-types", &[]),
    ("walras-wire", &["walras-types"]),
    ("walras-order-book", &["walras-types"]),
    ("walras-clearing", &["walras-types"]),
    ("walras-merkle", &["blake3"]),
    ("walras-ledger", &["walras-types", "walras-wire"]),
    ("walras-batch", &["walras-types", "walras-wire", "walras-ledger", "walras-clearing", "walras-merkle", "blake3", "thiserror"]),
    (
        "walras-engine",
        &["walras-types", "walras-wire", "walras-ledger", "walras-order-book", "walras-clearing", "walras-batch", "blake3"],
    ),
];

/// Crates that stop at `edge/`.
const EDGE_ONLY: &[&str] = &["tokio", "axum", "serde", "serde_json", "rustix"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let manifests: Vec<(&str, &str)> = tree.with_ending("Cargo.toml").filter(|(path, _)| path.contains('/')).collect();
    let layer_of = |path: &str| LAYERS.iter().position(|layer| path.starts_with(&format!("{layer}/")));
    let layers: BTreeMap<&str, usize> =
        manifests.iter().filter_map(|(path, text)| Some((crate_name(text)?, layer_of(path)?))).collect();
    let mut complaints = Vec::new();
    for (path, text) in &manifests {
        let (Some(name), Some(layer)) = (crate_name(text), layer_of(path)) else { continue };
        for dependency in dependencies(text) {
            if layers.get(dependency).is_some_and(|&below| below < layer) {
                complaints.push(format!("{path}: {name} depends on {dependency}, which lies above it"));
            }
            if LAYERS[layer] == "core" {
                let allowed = CORE_ALLOWED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, allowed)| allowed);
                if !allowed.contains(&dependency) {
                    complaints.push(format!("{path}: {name} may not depend on {dependency} (see CORE_ALLOWED in xtask)"));
                }
            }
            if LAYERS[layer] == "protocol" && EDGE_ONLY.contains(&dependency) {
                complaints.push(format!("{path}: {dependency} stops at edge/"));
            }
        }
    }
    complaints
}

fn crate_name(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("name = \""))?.strip_suffix('"')
}

/// The names under `[dependencies]`, not those for tests and builds.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()))
        .filter_map(|line| line.split([' ', '.', '=']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_upward_is_found() {
        let tree = Tree::of(&[
            ("core/types/Cargo.toml", "name = \"walras-types\"\n[dependencies]\nwalras-node.workspace = true\n"),
            ("edge/node/Cargo.toml", "name = \"walras-node\"\n[dependencies]\nwalras-types.workspace = true\n"),
            ("protocol/x/Cargo.toml", "name = \"walras-x\"\n[dependencies]\ntokio = \"1\"\n[dev-dependencies]\nserde = \"1\"\n"),
        ]);
        let complaints = check(&tree);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
    }
}
