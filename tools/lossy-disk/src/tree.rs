//! Numbers of files and folders, as the kernel knows them, and what they stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The kernel's number of the mounted folder.
pub(crate) const ROOT: u64 = 1;

/// Which path each number stands for. A number is never given again.
#[derive(Debug)]
pub(crate) struct Tree {
    paths: BTreeMap<u64, PathBuf>,
    numbers: BTreeMap<PathBuf, u64>,
    pub(crate) folders: BTreeSet<PathBuf>,
    modes: BTreeMap<PathBuf, u16>,
    next: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = PathBuf::from("/");
        Self {
            paths: BTreeMap::from([(ROOT, root.clone())]),
            numbers: BTreeMap::from([(root.clone(), ROOT)]),
            folders: BTreeSet::from([root]),
            modes: BTreeMap::new(),
            next: ROOT + 1,
        }
    }

    /// What a number stands for; `None` for what is gone.
    pub(crate) fn path(&self, number: u64) -> Option<&Path> {
        self.paths.get(&number).map(PathBuf::as_path)
    }

    pub(crate) fn number(&mut self, path: &Path) -> u64 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(path.to_path_buf(), number);
        self.paths.insert(number, path.to_path_buf());
        number
    }

    pub(crate) fn mode(&self, path: &Path, otherwise: u16) -> u16 {
        self.modes.get(path).copied().unwrap_or(otherwise)
    }

    pub(crate) fn set_mode(&mut self, path: &Path, mode: u16) {
        self.modes.insert(path.to_path_buf(), mode & 0o7777);
    }

    /// A file has another name, and what had that one is gone.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) {
        self.forget(to);
        if let Some(number) = self.numbers.remove(from) {
            self.numbers.insert(to.to_path_buf(), number);
            self.paths.insert(number, to.to_path_buf());
        }
        if let Some(mode) = self.modes.remove(from) {
            self.modes.insert(to.to_path_buf(), mode);
        }
    }

    /// What has this name is gone.
    pub(crate) fn forget(&mut self, path: &Path) {
        if let Some(number) = self.numbers.remove(path) {
            self.paths.remove(&number);
        }
        self.modes.remove(path);
        self.folders.remove(path);
    }

    /// Power fails: files may have other names now, so all are looked up again.
    pub(crate) fn forget_files(&mut self) {
        let Self { paths, numbers, folders, .. } = self;
        numbers.retain(|path, _| folders.contains(path));
        paths.retain(|_, path| folders.contains(path));
    }
}
