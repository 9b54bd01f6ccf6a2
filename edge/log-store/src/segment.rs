//! A segment in memory, and preparing one on disk.

use crate::cursor::Layout;
use crate::disk::{Disk, DiskFile};
use crate::error::{During, LogError};
use crate::format::SegmentHeader;
use crate::identity::Identity;
use crate::options::LogOptions;
use crate::pace::Pace;
use crate::plan::Kept;
use crate::scan::{Mark, SegmentScan, segment_name};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walras_types::LogIndex;

/// A segment that holds entries of the log.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<F>,
    pub(crate) file_bytes: u64,
    pub(crate) layout: Layout,
    pub(crate) first_index: LogIndex,
    /// The position after its last durable entry that counts.
    pub(crate) end_index: LogIndex,
    /// The offset after its last durable group.
    pub(crate) end_offset: u64,
    pub(crate) ends_with_seal: bool,
    pub(crate) marks: Vec<Mark>,
}

impl<F> Segment<F> {
    pub(crate) fn from_kept(kept: Kept<F>) -> Self {
        let Kept { scan, first_index, end_index } = kept;
        Self {
            path: scan.path,
            file: scan.file,
            file_bytes: scan.file_bytes,
            layout: scan.layout,
            first_index,
            end_index,
            end_offset: scan.end_offset,
            ends_with_seal: scan.ends_with_seal,
            marks: scan.marks,
        }
    }

    pub(crate) fn into_spent(self) -> SpentFile<F> {
        SpentFile { path: self.path, file: self.file, file_bytes: self.file_bytes }
    }
}

/// A prepared segment: on disk in full length under its name, without a group.
#[derive(Debug)]
pub(crate) struct Spare<F> {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<F>,
    pub(crate) header: SegmentHeader,
}

impl<F> Spare<F> {
    /// Puts the spare to use.
    pub(crate) fn into_segment(self, first_index: LogIndex) -> Segment<F> {
        let SegmentHeader { block_bytes, segment_bytes, log_id, segment_id, .. } = self.header;
        Segment {
            path: self.path,
            file: self.file,
            file_bytes: segment_bytes,
            layout: Layout::new(log_id, segment_id, block_bytes, segment_bytes),
            first_index,
            end_index: first_index,
            end_offset: u64::from(block_bytes),
            ends_with_seal: false,
            marks: Vec::new(),
        }
    }
}

/// A file whose segment no longer counts.
#[derive(Debug)]
pub(crate) struct SpentFile<F> {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<F>,
    /// 0 if it is not known to be filled.
    pub(crate) file_bytes: u64,
}

impl<F> SpentFile<F> {
    pub(crate) fn of(scan: SegmentScan<F>) -> Self {
        // Its header is written last.
        let file_bytes = if scan.header.is_some() { scan.file_bytes } else { 0 };
        Self { path: scan.path, file: scan.file, file_bytes }
    }
}

/// What it takes to prepare a segment.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) segment_id: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) block_bytes: u32,
}

impl Recipe {
    pub(crate) fn new(dir: &Path, identity: Identity, segment_id: u64, options: &LogOptions) -> Self {
        let (segment_bytes, block_bytes) = (options.segment_bytes_of(segment_id), options.block_bytes);
        Self { dir: dir.to_path_buf(), identity, segment_id, segment_bytes, block_bytes }
    }

    fn header(&self, recycled: bool) -> SegmentHeader {
        SegmentHeader {
            block_bytes: self.block_bytes,
            segment_bytes: self.segment_bytes,
            log_id: self.identity.log_id,
            owner_id: self.identity.owner_id,
            segment_id: self.segment_id,
            recycled,
        }
    }

    /// Makes a new file. When it returns, name, length and header are durable.
    pub(crate) fn create<D: Disk>(&self, disk: &D, pace: &Pace) -> Result<Spare<D::File>, LogError> {
        let path = self.dir.join(segment_name(self.segment_id));
        let file = match disk.create(&path) {
            // Left by an attempt that failed; it holds no group, because this id was never put to use.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => disk.remove(&path).and_then(|()| disk.create(&path)),
            other => other,
        }
        .during("create", &path)?;
        let written = self.fill(disk, &path, file, pace);
        if written.is_err() {
            // Frees the space. If that fails too, the next opening does it; the first failure is the one to report.
            let _ = disk.remove(&path);
        }
        written
    }

    fn fill<D: Disk>(&self, disk: &D, path: &Path, file: D::File, pace: &Pace) -> Result<Spare<D::File>, LogError> {
        let header = self.header(false);
        file.allocate(self.segment_bytes, pace).during("reserve space for", path)?;
        file.write_all_at(&header.encode(), 0).during("write", path)?;
        file.sync_data().during("sync", path)?;
        disk.sync_dir(&self.dir).during("sync", &self.dir)?;
        Ok(Spare { path: path.to_path_buf(), file: Arc::new(file), header })
    }

    /// Takes a spent file that can be reused, if there is one.
    pub(crate) fn take_spent<F>(&self, spent: &mut Vec<SpentFile<F>>) -> Option<SpentFile<F>> {
        let at = spent.iter().position(|file| self.can_recycle(file))?;
        Some(spent.remove(at))
    }

    /// Whether a spent file can be reused: it has the right length, and no reader has it open.
    fn can_recycle<F>(&self, spent: &SpentFile<F>) -> bool {
        spent.file_bytes == self.segment_bytes && Arc::strong_count(&spent.file) == 1
    }

    /// Makes a spent file the new segment. Its name changes durably before its bytes do: after a crash the file is either the spent
    /// segment as it was, or one without a valid header, which holds nothing.
    pub(crate) fn recycle<D: Disk>(&self, disk: &D, spent: SpentFile<D::File>) -> Result<Spare<D::File>, LogError> {
        let path = self.dir.join(segment_name(self.segment_id));
        disk.rename(&spent.path, &path).during("rename a spent segment to", &path)?;
        disk.sync_dir(&self.dir).during("sync", &self.dir)?;
        let header = self.header(true);
        spent.file.write_all_at(&header.encode(), 0).during("write", &path)?;
        spent.file.sync_data().during("sync", &path)?;
        Ok(Spare { path, file: spent.file, header })
    }
}
