//! The slow work that is kept out of the hot path: removing spent files and preparing the next segment.

use crate::disk::{Disk, DiskFile};
use crate::error::{During, LogError};
use crate::history;
use crate::pace::Pace;
use crate::segment::{Recipe, Spare, SpentFile};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// A sealed file that is longer than what it holds.
#[derive(Debug)]
pub(crate) struct Trim<F> {
    pub(crate) file: Arc<F>,
    pub(crate) path: std::path::PathBuf,
    pub(crate) len: u64,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Chores<F> {
    pub(crate) trims: Vec<Trim<F>>,
    /// Files to be moved into the history.
    pub(crate) leaving: Vec<SpentFile<F>>,
    /// Files to be removed.
    pub(crate) surplus: Vec<SpentFile<F>>,
    /// The next segment, and the file that serves again for it.
    pub(crate) prepare: Option<(Recipe, Option<SpentFile<F>>)>,
}

/// Work to be done off the hot path, on any thread: [`crate::LogWriter::maintenance`] hands it out, [`Maintenance::run`] does it.
/// The writer continues meanwhile, and waits only if it needs the next segment before that is ready. It may be dropped without
/// running it: the writer then prepares the segment itself. While it exists, even after its writer was dropped, the log is
/// [`LogError::Locked`], because it creates and removes files.
#[derive(Debug)]
pub struct Maintenance<D: Disk> {
    pub(crate) disk: D,
    pub(crate) dir: std::path::PathBuf,
    pub(crate) chores: Chores<D::File>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) done: Sender<Spare<D::File>>,
    pub(crate) _lock: Arc<D::Lock>,
}

impl<D: Disk> Maintenance<D> {
    /// Does the work. After a failure the log stays usable, and the writer tries again when it must. [`LogError::DiskFull`] here is
    /// an early warning, one segment before the log would stop.
    pub fn run(self) -> Result<(), LogError> {
        let Self { disk, dir, chores, pace, done, _lock } = self;
        if let Some(spare) = do_chores(&disk, &dir, chores, &pace)? {
            // A writer that is gone needs no spare; the next opening finds it.
            let _ = done.send(spare);
        }
        Ok(())
    }
}

/// Frees space first, then prepares.
fn do_chores<D: Disk>(
    disk: &D,
    dir: &std::path::Path,
    chores: Chores<D::File>,
    pace: &Pace,
) -> Result<Option<Spare<D::File>>, LogError> {
    let Chores { trims, leaving, surplus, prepare } = chores;
    for trim in trims {
        trim.file.set_len(trim.len).during("shorten", &trim.path)?;
    }
    if !leaving.is_empty() {
        history::take(disk, dir, &leaving)?;
    }
    if !surplus.is_empty() {
        for file in surplus {
            disk.remove(&file.path).during("remove", &file.path)?;
        }
        disk.sync_dir(dir).during("sync", dir)?;
    }
    match prepare {
        Some((recipe, Some(file))) => recipe.recycle(disk, file).map(Some),
        Some((recipe, None)) => recipe.create(disk, pace).map(Some),
        None => Ok(None),
    }
}

/// The next segment, being prepared. Dropping this waits for the preparation, without pauses in it, because the log must not be
/// opened before it has ended.
#[derive(Debug)]
pub(crate) struct Coming<F> {
    pub(crate) spare: Receiver<Spare<F>>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) segment_bytes: u64,
}

impl<F> Drop for Coming<F> {
    fn drop(&mut self) {
        self.pace.hurry();
    }
}
