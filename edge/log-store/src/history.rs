//! The folder of dropped segments that are retained for reading.
//!
//! A segment is moved here by renaming its file and never written again. The log itself never looks here, so opening it does not
//! take longer. The operator decides how much is retained, and for how long: see [`list`].

use crate::disk::{Disk, DiskFile};
use crate::error::{During, LogError};
use crate::scan::{segment_id, segment_name};
use crate::segment::SpentFile;
use std::path::{Path, PathBuf};

/// What happens to the files of dropped segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetGo {
    /// They are reused or removed.
    #[default]
    Reuse,
    /// They are moved into the folder [`HISTORY_FOLDER`], for [`crate::open_whole`] to read.
    Keep,
}

/// Name of the folder within the log's folder.
pub const HISTORY_FOLDER: &str = "history";

/// Paths and lengths of the retained segments, oldest first.
pub fn list<D: Disk>(disk: &D, dir: &Path) -> Result<Vec<(PathBuf, u64)>, LogError> {
    let folder = dir.join(HISTORY_FOLDER);
    let mut kept = Vec::new();
    for id in ids(disk, dir)? {
        let path = folder.join(segment_name(id));
        match disk.open_read_only(&path) {
            Ok(file) => kept.push((path.clone(), file.len().during("read the length of", &path)?)),
            // Removed meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::io("open", &path, error)),
        }
    }
    Ok(kept)
}

/// Ids of the retained segments, ascending.
pub(crate) fn ids<D: Disk>(disk: &D, dir: &Path) -> Result<Vec<u64>, LogError> {
    let folder = dir.join(HISTORY_FOLDER);
    let names = match disk.list(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        listed => listed.during("list", &folder)?,
    };
    let mut ids: Vec<u64> = names.iter().filter_map(|name| segment_id(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Moves files here. After a crash each file is in one of the two folders. The next opening of the log moves the rest, also after a
/// failure.
pub(crate) fn take<D: Disk>(disk: &D, dir: &Path, leaving: &[SpentFile<D::File>]) -> Result<(), LogError> {
    let folder = dir.join(HISTORY_FOLDER);
    disk.create_dir_all(&folder).during("create", &folder)?;
    for file in leaving {
        let Some(name) = file.path.file_name() else { continue };
        let to = folder.join(name);
        disk.rename(&file.path, &to).during("move a segment to", &to)?;
    }
    disk.sync_dir(&folder).during("sync", &folder)?;
    disk.sync_dir(dir).during("sync", dir)
}
