//! The tracked files, read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Every text file of the repository by its path from the root.
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

impl Tree {
    /// The files that git tracks, or would (untracked, not ignored).
    pub(crate) fn read() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let listing = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .context("running git ls-files; install git, and run inside a clone")?;
        anyhow::ensure!(listing.status.success(), "git ls-files failed: run inside a clone of the repository");
        let names = String::from_utf8(listing.stdout)?;
        let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(root.join(name)).ok()?));
        Ok(Self { files: names.lines().filter_map(read).collect() })
    }

    /// A tree for a guard's own test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect() }
    }

    /// Paths with an ending, and their text.
    pub(crate) fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter(move |(name, _)| name.ends_with(ending)).map(|(name, text)| (name.as_str(), text.as_str()))
    }
}
