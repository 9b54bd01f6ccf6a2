//! A process of the venue as the system sees it.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A process, and the file that its log lines go to.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its log lines.
    pub log: PathBuf,
}

/// What it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Holdings {
    /// Open descriptors.
    pub descriptors: usize,
    /// Resident memory.
    pub resident_mib: u64,
    /// Lines that it has written.
    pub log_lines: usize,
}

impl Process {
    /// Whether it runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let state = std::fs::read_to_string(self.file("stat"));
        state.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with(['Z', 'X'])))
    }

    /// What it holds now.
    ///
    /// # Errors
    /// When it has ended.
    pub fn holdings(&self) -> anyhow::Result<Holdings> {
        let gone = || format!("process {} has ended: see {}", self.id, self.log.display());
        let descriptors = std::fs::read_dir(self.file("fd")).with_context(gone)?.count();
        let status = std::fs::read_to_string(self.file("status")).with_context(gone)?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let resident_mib = resident.with_context(gone)? / 1024;
        Ok(Holdings { descriptors, resident_mib, log_lines: lines(&self.log) })
    }

    /// How many of its log lines say this.
    #[must_use]
    pub fn says(&self, text: &str) -> usize {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.id.to_string()).join(name)
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}
