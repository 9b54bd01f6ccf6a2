//! The folder of segments that the log has let go of and that are kept for reading, beside the log's own files.
//!
//! A segment comes here by its name alone: its bytes stay where they are, and nothing writes them again. The log itself never looks here,
//! so its opening takes no longer however much is kept. How long, and how much, is for the venue to decide: see [`list`].

use crate::disk::{Disk, DiskFile};
use crate::error::{During, LogError};
use crate::scan::{segment_id, segment_name};
use crate::segment::SpentFile;
use std::path::{Path, PathBuf};

/// What becomes of the files of segments that are let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetGo {
    /// They serve again, or are removed.
    #[default]
    Reuse,
    /// They are moved into the folder [`HISTORY_FOLDER`], for [`crate::open_whole`] to read.
    Keep,
}

/// Name of the folder in the log's own.
pub const HISTORY_FOLDER: &str = "history";

/// Paths and lengths of the segments that are kept, oldest first.
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

/// Ids of the segments that are kept, ascending.
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

/// Moves files here. A crash leaves each in one of the two folders; the next opening of the log moves what is left. After a failure that
/// opening does, too.
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
