//! Where an experiment's figures come from, and the files that they are written to.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::machine::{Commit, LoadWatch, Machine, now_utc};

/// Where figures come from.
#[derive(Debug)]
pub struct Origin {
    date: String,
    commit: Commit,
    machine: Machine,
    watch: LoadWatch,
}

impl Origin {
    /// Asks the machine and the repository. Load counts from now on.
    #[must_use]
    pub fn begin() -> Self {
        Self { date: now_utc(), commit: Commit::current(), machine: Machine::current(), watch: LoadWatch::begin() }
    }

    /// As JSON, with the load of the machine since it began.
    ///
    /// # Errors
    /// When a value has no form in JSON, which none of these is.
    pub fn to_json(&self) -> anyhow::Result<Value> {
        let load = self.watch.end();
        Ok(json!({
            "date": self.date,
            "commit": serde_json::to_value(&self.commit)?,
            "machine": serde_json::to_value(&self.machine)?,
            "load": serde_json::to_value(load)?,
            "machine_was_shared": load.others_cpu_percent > 5.0,
        }))
    }
}

/// Refuses figures of a slow build.
///
/// # Errors
/// In a debug build.
pub fn ensure_release() -> anyhow::Result<()> {
    ensure!(!cfg!(debug_assertions), "figures of a debug build are worth nothing: run with --release, or with --small");
    Ok(())
}

/// Writes an experiment's files, by name and content, into its folder.
///
/// # Errors
/// In a debug build, and when the folder cannot be written.
pub fn write_files(folder: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    ensure_release()?;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}: is its parent writable?", folder.display()))?;
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::write(&path, content)
            .with_context(|| format!("writing {}: is it writable, and is there room?", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_tells_date_commit_machine_and_load() {
        let json = Origin::begin().to_json().unwrap();
        assert!(json["date"].as_str().unwrap().starts_with("20"));
        assert!(json["commit"]["id"].as_str().is_some_and(|id| !id.is_empty()));
        assert!(json["machine"]["cores"].as_u64().is_some_and(|cores| cores > 0));
        assert!(json["load"]["others_cpu_percent"].as_f64().is_some() && json["machine_was_shared"].is_boolean());
    }
}
