//! The tracked files, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The repository's files by their paths from the root.
pub struct Tree {
    /// All of them.
    pub names: BTreeSet<String>,
    /// Those that are text.
    pub files: BTreeMap<String, String>,
}

impl Tree {
    /// The repository's root.
    pub fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The files that git tracks, or would (untracked, not ignored).
    pub fn read() -> anyhow::Result<Self> {
        let root = Self::root();
        let listing = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .context("running git ls-files; install git, and run inside a clone")?;
        anyhow::ensure!(listing.status.success(), "git ls-files failed: run inside a clone of the repository");
        let names = String::from_utf8(listing.stdout)?;
        let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(root.join(name)).ok()?));
        Ok(Self { names: names.lines().map(str::to_owned).collect(), files: names.lines().filter_map(read).collect() })
    }

    /// A tree for a guard's own test.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let names = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { names, files: files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect() }
    }

    /// Whether there is a file or a folder of this path.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.names.contains(path) || self.names.range(folder.clone()..).next().is_some_and(|name| name.starts_with(&folder))
    }

    /// Paths with an ending, and their text.
    pub fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter(move |(name, _)| name.ends_with(ending)).map(|(name, text)| (name.as_str(), text.as_str()))
    }
}
