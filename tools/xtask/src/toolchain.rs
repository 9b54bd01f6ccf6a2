//! Every page and recipe names the toolchain that the manifests ask for, and no dependency needs a newer one.

use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::tree::Tree;

/// Where the version of Rust stands a second time: the file, and what stands before it.
const RUST_NAMED: &[(&str, &str)] =
    &[("README.md", "needs Rust "), ("deploy/Containerfile", "library/rust:"), ("sdk/python/README.md", "You need Rust ")];

/// The same of Node.js.
const NODE_NAMED: &[(&str, &str)] =
    &[("README.md", "Node.js "), ("web/README.md", "Node "), ("sdk/typescript/package.json", "\"node\": \">=")];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = named(tree);
    let rust = version_after(tree, "Cargo.toml", "rust-version = \"");
    match metadata() {
        Ok(metadata) => complaints.extend(newer(&metadata, rust.unwrap_or_default())),
        Err(e) => complaints.push(format!("the dependencies were not checked: {e:#}")),
    }
    complaints
}

fn named(tree: &Tree) -> Vec<String> {
    let versions = [("Cargo.toml", "rust-version = \"", RUST_NAMED), ("web/package.json", "\"node\": \">=", NODE_NAMED)];
    let mut complaints = Vec::new();
    for (manifest, before, places) in versions {
        let Some(wanted) = version_after(tree, manifest, before) else {
            complaints.push(format!("{manifest} has no line with {before}"));
            continue;
        };
        for (path, before) in places {
            match version_after(tree, path, before) {
                Some(said) if said == wanted => {}
                Some(said) => complaints.push(format!("{path} says {before}{said}, and {manifest} {wanted}")),
                None => complaints.push(format!("{path} has no version after {before:?}")),
            }
        }
    }
    complaints
}

/// The digits and points after the first place of a text in a file.
fn version_after<'a>(tree: &'a Tree, path: &str, before: &str) -> Option<&'a str> {
    let (_, after) = tree.files.get(path)?.split_once(before)?;
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    Some(after[..end].trim_end_matches('.')).filter(|version| !version.is_empty())
}

/// What cargo knows of the workspace's dependencies on this kind of machine.
fn metadata() -> anyhow::Result<Value> {
    let rustc = Command::new("rustc").arg("-vV").output().context("running rustc")?;
    let about = String::from_utf8(rustc.stdout)?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    let cargo = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
        .current_dir(Tree::root())
        .output()
        .context("running cargo metadata")?;
    anyhow::ensure!(cargo.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&cargo.stderr).trim());
    Ok(serde_json::from_slice(&cargo.stdout)?)
}

fn newer(metadata: &Value, rust: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let needs = |package: &&Value| package["rust_version"].as_str().is_some_and(|needed| parts(needed) > parts(rust));
    let say = |package: &Value| {
        let [name, version, needed] = ["name", "version", "rust_version"].map(|field| package[field].as_str().unwrap_or_default());
        format!("Cargo.toml says rust-version {rust}, and {name} {version} needs {needed}: raise it, or use an older {name}")
    };
    packages.iter().filter(needs).map(say).collect()
}

fn parts(version: &str) -> Vec<u64> {
    let mut parts: Vec<u64> = version.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    parts.resize(3, 0);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_names_another_version_is_found() {
        let tree = |rust: &str| {
            let readme = format!("The demo needs Rust {rust}, Node.js 20.19, and make.");
            Tree::of(&[
                ("Cargo.toml", "rust-version = \"1.89\"\n"),
                ("web/package.json", "\"node\": \">=20.19\""),
                ("README.md", &readme),
                ("web/README.md", "Node 20.19 or newer."),
                ("sdk/typescript/package.json", "\"node\": \">=20.19\""),
                ("deploy/Containerfile", "FROM docker.io/library/rust:1.89-bookworm AS build"),
                ("sdk/python/README.md", "You need Rust 1.89, and"),
            ])
        };
        assert_eq!(named(&tree("1.89")), Vec::<String>::new());
        assert_eq!(named(&tree("1.88")), ["README.md says needs Rust 1.88, and Cargo.toml 1.89"]);
        assert_eq!(named(&Tree::of(&[])).len(), 2);
    }

    #[test]
    fn a_dependency_that_needs_a_newer_compiler_is_found() {
        let package = |name: &str, rust: Value| serde_json::json!({"name": name, "version": "2.0.0", "rust_version": rust});
        let metadata = serde_json::json!({"packages": [
            package("older", "1.9".into()), package("same", "1.88.0".into()), package("silent", Value::Null),
            package("newer", "1.89".into()), package("patch", "1.88.1".into()),
        ]});
        let found = newer(&metadata, "1.88");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("newer 2.0.0 needs 1.89") && found[1].contains("patch"), "{found:?}");
    }
}
