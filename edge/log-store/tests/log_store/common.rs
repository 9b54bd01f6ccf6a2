//! Shared by the tests: small logs, entries that name themselves, and reading a log back.

use std::path::{Path, PathBuf};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
use walras_log_store::{Disk, LogError, LogOptions, LogWriter, Recovery};
use walras_types::LogIndex;

/// Few blocks a segment, few bytes a block.
pub(crate) fn tiny(blocks: u64) -> LogOptions {
    LogOptions { segment_bytes: blocks * 512, block_bytes: 512, group_bytes_max: 2048, ..LogOptions::default() }
}

pub(crate) fn dir() -> PathBuf {
    PathBuf::from("/venue/log")
}

/// A disk whose pages are the blocks of [`tiny`].
pub(crate) fn sim(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() })
}

/// An entry that shows its index and has a length of its own.
pub(crate) fn entry(index: u64) -> Vec<u8> {
    let mut bytes = index.to_le_bytes().to_vec();
    bytes.extend((0..index * 7 % 61).map(|at| (index * 31 + at) as u8 | 1));
    bytes
}

pub(crate) fn open<D: Disk>(disk: &D, options: LogOptions) -> Result<(LogWriter<D>, Recovery), LogError> {
    LogWriter::open(disk.clone(), &dir(), options)
}

/// Appends and syncs one group of entries.
pub(crate) fn write_group<D: Disk>(log: &mut LogWriter<D>, count: u64) {
    for _ in 0..count {
        let index = log.next_index().0;
        assert_eq!(log.append(&entry(index)).unwrap(), LogIndex(index));
    }
    log.sync().unwrap();
}

/// All entries from the first on.
pub(crate) fn contents<D: Disk>(log: &LogWriter<D>) -> Vec<(u64, Vec<u8>)> {
    read_from(log, log.first_index())
}

pub(crate) fn read_from<D: Disk>(log: &LogWriter<D>, from: LogIndex) -> Vec<(u64, Vec<u8>)> {
    let mut reader = log.reader(from).unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        entries.push((entry.index.0, entry.payload.to_vec()));
    }
    entries
}

/// The log holds exactly the self-naming entries of a range.
pub(crate) fn assert_holds<D: Disk>(log: &LogWriter<D>, range: std::ops::Range<u64>) {
    assert_eq!(log.first_index(), LogIndex(range.start));
    assert_eq!(log.durable_end(), LogIndex(range.end));
    let expected: Vec<_> = range.map(|index| (index, entry(index))).collect();
    assert_eq!(contents(log), expected);
}

/// Segment files, in order of their ids.
pub(crate) fn segments(disk: &SimDisk) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "seg")).collect()
}

/// The last segment that holds a group, and the groups in it: (offset, length) each.
pub(crate) fn last_groups(disk: &SimDisk, block: usize) -> (PathBuf, Vec<usize>) {
    let used = |path: &&PathBuf| !group_offsets(&disk.bytes_of(path).unwrap(), block).is_empty();
    let path = segments(disk).iter().rev().find(used).unwrap().clone();
    let offsets = group_offsets(&disk.bytes_of(&path).unwrap(), block);
    (path, offsets)
}

/// Offsets of what looks like a group.
pub(crate) fn group_offsets(bytes: &[u8], block: usize) -> Vec<usize> {
    (block..bytes.len()).step_by(block).filter(|at| bytes[at + 4..at + 8] == *b"WGRP").collect()
}

pub(crate) fn is_corrupt(error: &LogError) -> bool {
    matches!(error, LogError::Corrupt { .. })
}

pub(crate) fn path_of(name: &str) -> PathBuf {
    Path::new("/venue/log").join(name)
}
