//! Tests: crashes at every operation while files of dropped segments are reused. Their old content looks just like the new. Planted
//! faults show that an old entry would be found.

use crate::format::planted::{self, Fault};
use crate::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use crate::{LogError, LogOptions, LogWriter, verify};
use std::path::Path;
use walras_types::LogIndex;

const BLOCK_BYTES: usize = 512;
/// First entry of the files' first use.
const FIRST_USE: u64 = 1000;
const GROUPS: u64 = 12;

/// Three groups of two blocks a segment, each record a block.
fn options() -> LogOptions {
    let block_bytes = u32::try_from(BLOCK_BYTES).expect("512 fits");
    LogOptions { segment_bytes: 7 * 512, block_bytes, group_bytes_max: 1024, spent_files_max: 4, ..LogOptions::default() }
}

/// Entries of even indexes come first in their group and share its first block with the group's header.
fn payload(use_number: u8, index: u64) -> Vec<u8> {
    let headers = if index.is_multiple_of(2) { 56 + 16 } else { 16 };
    let mut bytes = vec![use_number; BLOCK_BYTES - headers];
    bytes[..8].copy_from_slice(&index.to_le_bytes());
    bytes
}

fn write_group(log: &mut LogWriter<SimDisk>, use_number: u8) -> Result<u64, LogError> {
    for _ in 0..2 {
        log.append(&payload(use_number, log.next_index().0))?;
    }
    let end = log.sync()?;
    log.maintain()?;
    Ok(end.0)
}

/// What is wrong with the log's content; `None` if it holds the entries of one use from `first` on, at least up to `end`.
fn fault_in(log: &LogWriter<SimDisk>, use_number: u8, first: u64, end: u64) -> Option<String> {
    let held = || {
        let mut reader = log.reader(log.first_index())?;
        let mut index = first;
        while let Some(entry) = reader.next()? {
            if entry.index.0 != index || entry.payload != payload(use_number, index) {
                return Ok(Err(format!("entry {} is from an earlier use", entry.index)));
            }
            index += 1;
        }
        Ok::<_, LogError>(Ok(index))
    };
    match held() {
        Ok(Ok(found)) if found < end || found > end + 2 => Some(format!("entries end at {found} instead of {end}")),
        Ok(Ok(_)) => None,
        Ok(Err(wrong)) => Some(wrong),
        Err(error) => Some(error.to_string()),
    }
}

/// Fills segments, starts again from entry `first` so that the files are reused, and crashes. Returns what is wrong then, or
/// whether the crash happened at all.
fn crash_in_second_use(seed: u64, first: u64, crash_in_ops: u64) -> Result<bool, String> {
    let disk = SimDisk::new(seed, SimDiskConfig { page_bytes: BLOCK_BYTES, ..SimDiskConfig::default() });
    let dir = Path::new("/log");
    let text = |error: LogError| error.to_string();
    let (mut log, _) = LogWriter::open(disk.clone(), dir, options()).map_err(text)?;
    log.reset_to(LogIndex(FIRST_USE)).map_err(text)?;
    for _ in 0..GROUPS {
        write_group(&mut log, 1).map_err(text)?;
    }
    log.reset_to(LogIndex(first)).map_err(text)?;
    disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
    let mut end = first;
    let mut crashed = false;
    for _ in 0..GROUPS {
        let begun = log.next_index().0;
        match write_group(&mut log, 2) {
            Ok(acknowledged) => end = acknowledged,
            Err(_) if disk.is_off() => {
                // Maintenance comes after the sync.
                end = log.durable_end().0.max(begun);
                crashed = true;
                break;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    drop(log);
    disk.crash();
    let report = verify(&disk, dir).map_err(text)?;
    if !report.is_sound() {
        return Err(format!("{report:?}"));
    }
    let (mut log, _) = LogWriter::open(disk, dir, options()).map_err(text)?;
    if let Some(wrong) = fault_in(&log, 2, first, end) {
        return Err(wrong);
    }
    for _ in 0..4 {
        end = write_group(&mut log, 2).map_err(text)?;
    }
    fault_in(&log, 2, first, end).map_or(Ok(crashed), Err)
}

/// The faults found by all crashes, and the number of crashes.
fn crash_everywhere(fault: Option<Fault>) -> (Vec<String>, u64) {
    let (mut found, mut crashes) = (Vec::new(), 0);
    planted::with(fault, || {
        // The start of the second use decides which old entry is at which of its places.
        for first in (FIRST_USE - 40..=FIRST_USE).step_by(2) {
            for crash_in_ops in 0..64 {
                match crash_in_second_use(first ^ crash_in_ops, first, crash_in_ops) {
                    Ok(crashed) => crashes += u64::from(crashed),
                    Err(wrong) => found.push(format!("from {first}, crash in {crash_in_ops}: {wrong}")),
                }
            }
        }
    });
    (found, crashes)
}

#[test]
fn nothing_of_a_files_earlier_life_comes_back() {
    let (found, crashes) = crash_everywhere(None);
    assert_eq!(found, Vec::<String>::new());
    assert!(crashes > 800, "{crashes} crashes test little");
}

#[test]
fn a_record_of_an_earlier_life_in_a_torn_group_would_be_found() {
    let (found, _) = crash_everywhere(Some(Fault::OneSeed));
    assert!(found.iter().any(|wrong| wrong.ends_with("is from an earlier use")), "{found:?}");
}

#[test]
fn a_group_of_an_earlier_life_behind_the_last_one_would_be_found() {
    let (found, _) = crash_everywhere(Some(Fault::AnySegment));
    assert!(found.iter().any(|wrong| wrong.ends_with("is from an earlier use")), "{found:?}");
}
