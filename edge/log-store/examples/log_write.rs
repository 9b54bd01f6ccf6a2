//! Measures the log: sync time and records per second for groups of 1, 64 and 1,024 records of 64 bytes, and appending alone.
//!
//! `cargo run --release -p walras-log-store --example log_write -- DIR [GROUPS]`: DIR must be empty or absent and is left empty;
//! GROUPS (default 2,000) is the number of groups per size. Run it on an idle machine: a sync competes with all else on the disk.
//! What it leaves out: handing entries between threads, and the meaning of entries.

use std::path::Path;
use std::time::{Duration, Instant};
use walras_log_store::{LogOptions, LogWriter, Maintenance, RealDisk, verify};

const RECORD: [u8; 64] = [0x5A; 64];
const GROUP_SIZES: [u64; 3] = [1, 64, 1024];

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("say where to write: log_write DIR [GROUPS]")?;
    let groups: u64 = arguments.next().map_or(Ok(2_000), |count| count.parse())?;
    let dir = Path::new(&dir);
    if dir.exists() && std::fs::read_dir(dir)?.next().is_some() {
        return Err("DIR is not empty: give one that is, or that does not exist".into());
    }
    println!("{:>8} {:>10} {:>10} {:>10} {:>14}", "group", "p50 us", "p99 us", "max us", "records/s");
    for group_size in GROUP_SIZES {
        measure(&dir.join(format!("group-{group_size}")), group_size, groups)?;
    }
    append_alone(&dir.join("append"))?;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn measure(dir: &Path, group_size: u64, groups: u64) -> Result<(), AnyError> {
    let (mut log, _) = LogWriter::open(RealDisk, dir, LogOptions::default())?;
    log.maintain()?;
    let mut sync_times = Vec::with_capacity(usize::try_from(groups)?);
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<(), AnyError> {
        for _ in 0..groups {
            for _ in 0..group_size {
                log.append(&RECORD)?;
            }
            let sync_begun = Instant::now();
            log.sync()?;
            sync_times.push(sync_begun.elapsed());
            if let Some(work) = log.maintenance() {
                scope.spawn(|| Maintenance::run(work).expect("the disk has room for the next segment"));
            }
        }
        Ok(())
    })?;
    let elapsed = begun.elapsed();
    log.close()?;
    let report = verify(&RealDisk, dir)?;
    if !report.is_sound() || report.entry_count != group_size * groups {
        return Err(format!("the log does not hold what was written: {report:?}").into());
    }
    sync_times.sort_unstable();
    let us = |time: Duration| format!("{}.{}", time.as_micros(), time.subsec_nanos() / 100 % 10);
    let at = |per_mille: usize| us(sync_times[(sync_times.len() - 1) * per_mille / 1000]);
    println!("{group_size:>8} {:>10} {:>10} {:>10} {:>14}", at(500), at(990), at(1000), per_second(group_size * groups, elapsed));
    Ok(())
}

/// The writer's cost without the disk: encoding and checksums only.
fn append_alone(dir: &Path) -> Result<(), AnyError> {
    const RECORDS: u64 = 30_000;
    const ROUNDS: u64 = 100;
    let (mut log, _) = LogWriter::open(RealDisk, dir, LogOptions::default())?;
    let mut elapsed = Duration::ZERO;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..RECORDS {
            log.append(&RECORD)?;
        }
        elapsed += begun.elapsed();
        log.sync()?;
    }
    println!("appending alone, between syncs: {} records/s", per_second(RECORDS * ROUNDS, elapsed));
    Ok(())
}

fn per_second(count: u64, elapsed: Duration) -> u128 {
    u128::from(count) * 1_000_000_000 / elapsed.as_nanos().max(1)
}
