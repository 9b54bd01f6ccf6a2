//! The end of the log cut and flipped at every byte: what a crash explains is cut, everything else refuses to open.

use crate::common::*;
use walras_log_store::sim_disk::SimDisk;
use walras_log_store::{LogError, LogOptions, open_read_only, verify};
use walras_types::LogIndex;

/// Entries of each group of the sample log, all in one segment.
const GROUPS: [u64; 6] = [3, 1, 12, 5, 2, 9];

fn sample() -> (SimDisk, LogOptions) {
    let disk = sim(1);
    let options = tiny(40);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    for count in GROUPS {
        write_group(&mut log, count);
    }
    drop(log);
    disk.crash();
    (disk, options)
}

/// Offset of each group with entries, its end, and the position after its last entry.
fn layout(disk: &SimDisk) -> Vec<(usize, usize, u64)> {
    let (path, offsets) = last_groups(disk, 512);
    let bytes = disk.bytes_of(&path).unwrap();
    let mut end_index = 1;
    let with_entries = &offsets[1..];
    assert_eq!(with_entries.len(), GROUPS.len());
    let with_counts = with_entries.iter().zip(GROUPS);
    with_counts
        .map(|(at, count)| {
            end_index += count;
            let body = u32::from_le_bytes(*bytes[at + 36..].first_chunk().unwrap()) as usize;
            (*at, at + 56 + body, end_index)
        })
        .collect()
}

/// After recovery the log goes on: what is added now is there at the next opening, and nothing of the cut part comes back.
fn assert_goes_on(disk: &SimDisk, options: &LogOptions, end: u64) {
    let (mut log, _) = open(disk, options.clone()).unwrap();
    assert_holds(&log, 1..end);
    write_group(&mut log, 1);
    drop(log);
    disk.crash();
    let (log, recovery) = open(disk, options.clone()).unwrap();
    assert_eq!(recovery.torn_tail, None, "the cut is reported once");
    assert_holds(&log, 1..end + 1);
}

#[test]
fn a_file_cut_at_any_byte_gives_every_group_before_the_cut() {
    let (whole, options) = sample();
    let groups = layout(&whole);
    let path = last_groups(&whole, 512).0;
    let file = whole.bytes_of(&path).unwrap();
    for cut in groups[2].0..=groups[5].1 + 1 {
        let expected = groups.iter().filter(|(_, end, _)| *end <= cut).map(|group| group.2).max().unwrap();
        let inside = groups.iter().any(|(start, end, _)| (*start + 56..*end).contains(&cut));
        for shorter in [true, false] {
            let disk = whole.fork();
            disk.edit(&path, |bytes| if shorter { bytes.truncate(cut) } else { bytes[cut..].fill(0) });
            let before = disk.bytes_of(&path).unwrap();
            let report = verify(&disk, &dir()).unwrap();
            assert!(report.is_sound(), "cut at {cut}: {report:#?}");
            assert_eq!(report.last_index, Some(LogIndex(expected - 1)));
            assert_eq!(disk.bytes_of(&path).unwrap(), before);
            let (log, recovery) = open(&disk, options.clone()).unwrap();
            assert_holds(&log, 1..expected);
            assert_eq!(recovery.torn_tail, report.torn_tail);
            if inside && recovery.torn_tail.is_none() {
                // Only where the bytes lost were zeros anyway.
                assert!(file[cut..].iter().take_while(|byte| **byte == 0).count() > 0, "cut at {cut}");
            }
            drop(log);
            assert_goes_on(&disk, &options, expected);
        }
    }
}

#[test]
fn a_flip_in_the_last_group_is_a_torn_tail_and_anywhere_before_it_refuses() {
    let (whole, options) = sample();
    let groups = layout(&whole);
    let path = last_groups(&whole, 512).0;
    for (number, (start, end, _)) in groups.iter().enumerate().skip(2) {
        for offset in *start..*end {
            for mask in [1, 0x80, 0xFF] {
                let disk = whole.fork();
                disk.flip(&path, offset, mask);
                let report = verify(&disk, &dir()).unwrap();
                if number + 1 == groups.len() {
                    let torn = report.torn_tail.clone().expect("a torn tail is reported");
                    assert_eq!((torn.offset, torn.first_index), (*start as u64, Some(LogIndex(groups[number - 1].2))));
                    if mask == 1 {
                        assert_eq!(open(&disk, options.clone()).unwrap().1.torn_tail, Some(torn));
                        assert_goes_on(&disk, &options, groups[number - 1].2);
                    }
                } else {
                    assert!(!report.is_sound(), "byte {offset} mask {mask}");
                    if mask == 1 {
                        let before = disk.bytes_of(&path);
                        let error = open(&disk, options.clone()).unwrap_err();
                        assert!(is_corrupt(&error) && error.to_string().contains("restore it from a backup"), "{error}");
                        assert!(open_read_only(&disk, &dir(), None).is_err());
                        assert_eq!(disk.bytes_of(&path), before, "nothing is changed");
                    }
                }
            }
        }
    }
}

#[test]
fn after_a_seal_a_flip_in_the_last_group_refuses_too() {
    for closes in [true, false] {
        let (disk, options) = sample();
        let (mut log, _) = open(&disk, options.clone()).unwrap();
        if closes {
            log.close().unwrap();
        } else {
            log.seal().unwrap();
            log.seal().unwrap();
            drop(log);
        }
        let (path, offsets) = last_groups(&disk, 512);
        assert_eq!(offsets.len(), GROUPS.len() + 2, "sealing twice writes one seal");
        let (start, end) = (offsets[GROUPS.len()], offsets[GROUPS.len() + 1]);
        let used = disk.bytes_of(&path).unwrap()[start..end].iter().rposition(|byte| *byte != 0).unwrap();
        for offset in start..=start + used {
            let disk = disk.fork();
            disk.flip(&path, offset, 4);
            assert!(is_corrupt(&open(&disk, options.clone()).unwrap_err()), "byte {offset}");
        }
    }
}

#[test]
fn pages_of_the_last_group_may_reach_the_disk_in_any_order() {
    let (whole, options) = sample();
    let groups = layout(&whole);
    let path = last_groups(&whole, 512).0;
    let (start, end, _) = groups[2];
    let pages = (end - start).div_ceil(512);
    assert!(pages >= 2);
    for present in 0..1_u32 << pages {
        let disk = whole.fork();
        disk.edit(&path, |bytes| {
            bytes[groups[3].0..].fill(0);
            for page in (0..pages).filter(|page| present & (1 << page) == 0) {
                bytes[start + page * 512..start + (page + 1) * 512].fill(0);
            }
        });
        let all = present == (1 << pages) - 1;
        let (log, recovery) = open(&disk, options.clone()).unwrap();
        assert_eq!(recovery.torn_tail.is_some(), present != 0 && !all, "pages {present:b}");
        let expected = if all { groups[2].2 } else { groups[1].2 };
        assert_holds(&log, 1..expected);
        drop(log);
        assert_goes_on(&disk, &options, expected);
    }
}

/// A log of several segments, the last of them rolled into in the ordinary way.
fn many_segments() -> (SimDisk, LogOptions, u64) {
    let disk = sim(2);
    let options = tiny(6);
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    for _ in 0..25 {
        write_group(&mut log, 3);
        log.maintain().unwrap();
    }
    let end = log.durable_end().0;
    drop(log);
    disk.crash();
    (disk, options, end)
}

#[test]
fn a_flip_in_an_earlier_segment_refuses() {
    let (whole, options, end) = many_segments();
    let paths = segments(&whole);
    assert!(paths.len() > 4);
    for path in &paths[..3] {
        let bytes = whole.bytes_of(path).unwrap();
        let offsets = group_offsets(&bytes, 512);
        // What belongs to a header or a record: everything but the padding.
        let covered = |offset: usize| {
            offset < 56
                || offsets.iter().any(|at| {
                    let body = u32::from_le_bytes(*bytes[at + 36..].first_chunk().unwrap()) as usize;
                    (*at..at + 56 + body).contains(&offset)
                })
        };
        for offset in 0..bytes.len() {
            let disk = whole.fork();
            disk.flip(path, offset, 0x10);
            match open(&disk, options.clone()) {
                Ok((log, _)) => {
                    assert!(!covered(offset), "{} byte {offset}", path.display());
                    assert_holds(&log, 1..end);
                }
                Err(error) => assert!(is_corrupt(&error) && covered(offset), "{} byte {offset}: {error}", path.display()),
            }
        }
    }
}

#[test]
fn a_missing_segment_refuses_unless_it_is_unused() {
    let (whole, options, end) = many_segments();
    let active = last_groups(&whole, 512).0;
    for path in segments(&whole) {
        let disk = whole.fork();
        disk.lose(&path);
        let opened = open(&disk, options.clone());
        match path.cmp(&active) {
            std::cmp::Ordering::Less => assert!(is_corrupt(&opened.unwrap_err()), "{}", path.display()),
            std::cmp::Ordering::Greater => assert_holds(&opened.unwrap().0, 1..end),
            std::cmp::Ordering::Equal => {
                // No log can know that its newest file existed; someone else can.
                assert!(opened.is_ok());
                let disk = whole.fork();
                disk.lose(&path);
                let floored = LogOptions { durable_floor: Some(LogIndex(end - 1)), ..options.clone() };
                assert!(matches!(open(&disk, floored.clone()), Err(LogError::BelowFloor { .. })));
                assert_holds(&open(&whole.fork(), floored).unwrap().0, 1..end);
            }
        }
    }
}

#[test]
fn an_only_segment_that_is_damaged_is_not_taken_for_an_empty_log() {
    let (disk, options) = sample();
    let path = last_groups(&disk, 512).0;
    for offset in [0, 8, 40, 512, 512 + 30] {
        let disk = disk.fork();
        disk.flip(&path, offset, 1);
        assert!(is_corrupt(&open(&disk, options.clone()).unwrap_err()), "byte {offset}");
    }
    disk.lose(&path);
    assert!(is_corrupt(&open(&disk, options).unwrap_err()));
}

#[test]
fn the_identity_is_guarded() {
    let (whole, options) = sample();
    let disk = whole.fork();
    disk.lose(&path_of("log.id"));
    assert!(matches!(open(&disk, options.clone()), Err(LogError::IdentityMissing { .. })));
    for offset in 0..32 {
        let disk = whole.fork();
        disk.flip(&path_of("log.id"), offset, 1);
        assert!(is_corrupt(&open(&disk, options.clone()).unwrap_err()), "byte {offset}");
    }
    let stranger = LogOptions { owner_id: 7, ..options.clone() };
    assert!(matches!(open(&whole, stranger), Err(LogError::WrongOwner { found: 0, expected: 7, .. })));
    // A segment of another log in place of one of ours.
    let other = sim(99);
    drop(open(&other, options.clone()).unwrap());
    let path = last_groups(&whole, 512).0;
    let foreign = other.bytes_of(&segments(&other)[0]).unwrap();
    whole.edit(&path, |bytes| *bytes = foreign);
    assert!(matches!(open(&whole, options), Err(LogError::WrongOwner { .. })));
}

#[test]
fn payloads_that_look_like_groups_are_only_payloads() {
    let (disk, options) = sample();
    let (path, offsets) = last_groups(&disk, 512);
    let real_group = disk.bytes_of(&path).unwrap()[offsets[1]..offsets[1] + 512].to_vec();
    let (mut log, _) = open(&disk, options.clone()).unwrap();
    let before = log.durable_end().0;
    // A stolen group at every block boundary inside one entry.
    let mut payload = vec![1; 512 - 56 - 16];
    payload.extend_from_slice(&real_group);
    payload.extend_from_slice(&real_group);
    log.append(&payload).unwrap();
    log.sync().unwrap();
    drop(log);
    disk.flip(&path, last_groups(&disk, 512).1[GROUPS.len() + 1] + 60, 1);
    let (log, recovery) = open(&disk, options).unwrap();
    assert!(recovery.torn_tail.is_some());
    assert_holds(&log, 1..before);
}
