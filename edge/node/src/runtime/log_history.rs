//! How much of the log's history is kept: by age, by size, and by what is free on the disk. Segments that leave go into the archive first,
//! where there is one.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use tracing::{info, warn};
use walras_config::Log;
use walras_log_store::{LogError, RealDisk, history};
use walras_ports::Status;

use super::recovery::{RecoveryError, spawn};

/// How often the history is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(86_400);

/// What may stay.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limits {
    /// Older segments leave; `None` for no such limit.
    age_max: Option<Duration>,
    bytes_max: u64,
    /// The oldest segments leave while less is free on the disk.
    free_bytes_min: u64,
}

impl Limits {
    fn of(config: &Log) -> Self {
        Self {
            age_max: (config.keep_days > 0).then(|| DAY * config.keep_days),
            bytes_max: config.keep_mib.saturating_mul(MIB),
            free_bytes_min: config.keep_free_mib.saturating_mul(MIB),
        }
    }

    /// How many of the oldest segments must leave. `kept` holds the age and length of each, the oldest first.
    fn leaving(&self, kept: &[(Duration, u64)], free_bytes: Option<u64>) -> usize {
        let total: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        let wanted = free_bytes.map_or(0, |free| self.free_bytes_min.saturating_sub(free));
        let mut gone = 0;
        kept.iter()
            .take_while(|(age, bytes)| {
                let leaves = self.age_max.is_some_and(|max| *age > max) || total - gone > self.bytes_max || gone < wanted;
                gone += bytes;
                leaves
            })
            .count()
    }
}

/// Keeps the history of one log within its limits. Ends when it is dropped.
#[derive(Debug)]
pub struct LogHistory {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LogHistory {
    /// Looks after the log in `dir`.
    pub fn start(dir: &Path, config: &Log, status: Status) -> Result<Self, RecoveryError> {
        let keeper = Keeper {
            dir: dir.to_path_buf(),
            limits: Limits::of(config),
            archive: (!config.archive_dir.is_empty()).then(|| PathBuf::from(&config.archive_dir)),
            status,
            in_trouble: false,
        };
        let (stop, stopped) = bounded(1);
        let thread = spawn("history", move || keeper.run(&stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LogHistory {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panicked and said so; nothing of the log depends on it.
            let _ = thread.join();
        }
    }
}

struct Keeper {
    dir: PathBuf,
    limits: Limits,
    archive: Option<PathBuf>,
    status: Status,
    /// Whether the last look failed, so that it is said once.
    in_trouble: bool,
}

impl Keeper {
    fn run(mut self, stopped: &Receiver<()>) {
        loop {
            match self.look() {
                Ok(()) => self.in_trouble = false,
                Err(why) if !std::mem::replace(&mut self.in_trouble, true) => {
                    warn!("the log's history could not be kept within its limits, and stays as it is: {why}");
                }
                Err(_) => {}
            }
            match stopped.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&self) -> Result<(), String> {
        let listed = history::list(&RealDisk, &self.dir).map_err(|e: LogError| e.to_string())?;
        let kept: Vec<(Duration, u64)> = listed.iter().map(|(path, bytes)| (age(path), *bytes)).collect();
        let free = free_bytes(&self.dir);
        let leaving = self.limits.leaving(&kept, free);
        let mut left: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        let mut gone = 0;
        let outcome = listed.iter().take(leaving).try_for_each(|(path, bytes)| {
            self.let_go(path)?;
            left -= bytes;
            gone += 1;
            Ok(())
        });
        if gone > 0 {
            let to = self.archive.as_ref().map_or("removed".to_owned(), |to| format!("moved to {}", to.display()));
            info!("{gone} segments left the log's history: {to}; {} MiB are kept", left / MIB);
        }
        self.status.set_history(left, (listed.len() - gone) as u64, free);
        outcome
    }

    fn let_go(&self, path: &Path) -> Result<(), String> {
        let said = |action: &str| {
            let action = format!("could not {action} {}", path.display());
            move |e: io::Error| format!("{action}: {e}; check the folder's permissions and the disk")
        };
        match &self.archive {
            None => std::fs::remove_file(path).map_err(said("remove")),
            Some(archive) => archive_file(path, archive).map_err(said("archive")),
        }
    }
}

/// Moves a file, also to another disk: there it is whole under its name, or not at all, and here it goes only after that.
fn archive_file(path: &Path, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let to = folder.join(path.file_name().unwrap_or_default());
    if to.exists() {
        if std::fs::metadata(&to)?.len() == std::fs::metadata(path)?.len() && std::fs::read(&to)? == std::fs::read(path)? {
            // A crash came between the copy and the removal.
            return std::fs::remove_file(path);
        }
        return Err(io::Error::other("another log has a segment of that name there: give each node a log.archive_dir of its own"));
    }
    match std::fs::rename(path, &to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            let temporary = to.with_extension("seg.new");
            std::fs::copy(path, &temporary)?;
            std::fs::File::open(&temporary)?.sync_all()?;
            std::fs::rename(&temporary, &to)?;
            std::fs::File::open(folder)?.sync_all()?;
            std::fs::remove_file(path)
        }
        moved => {
            moved?;
            std::fs::File::open(folder)?.sync_all()
        }
    }
}

/// Since its last entry was written.
fn age(path: &Path) -> Duration {
    let written = std::fs::metadata(path).and_then(|of| of.modified()).unwrap_or_else(|_| SystemTime::now());
    written.elapsed().unwrap_or_default()
}

/// What is free for this process on the disk of a folder.
fn free_bytes(dir: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(dir).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_log_store::HISTORY_FOLDER;
    use walras_types::TimeNs;

    fn limits(days: u32, mib: u64, free_mib: u64) -> Limits {
        Limits::of(&Log { keep_days: days, keep_mib: mib, keep_free_mib: free_mib, ..Log::default() })
    }

    #[test]
    fn the_oldest_leave_by_age_by_size_and_where_the_disk_is_short() {
        let kept: Vec<(Duration, u64)> = (0..10).rev().map(|days| (DAY * days + Duration::from_secs(1), 64 * MIB)).collect();
        let plenty = Some(1 << 40);
        assert_eq!(limits(7, 1 << 20, 0).leaving(&kept, plenty), 3);
        assert_eq!(limits(0, 1 << 20, 0).leaving(&kept, plenty), 0);
        assert_eq!(limits(0, 64 * 4, 0).leaving(&kept, plenty), 6);
        assert_eq!(limits(0, 64 * 4 + 1, 0).leaving(&kept, plenty), 6);
        assert_eq!(limits(0, 64 * 4 - 1, 0).leaving(&kept, plenty), 7);
        // 100 MiB are missing: two segments.
        assert_eq!(limits(0, 1 << 20, 1_100).leaving(&kept, Some(1_000 * MIB)), 2);
        assert_eq!(limits(0, 1 << 20, 1 << 20).leaving(&kept, Some(0)), 10);
        assert_eq!(limits(0, 1 << 20, 1_100).leaving(&kept, None), 0);
        assert_eq!(limits(7, 0, 1_100).leaving(&[], Some(0)), 0);
    }

    #[test]
    fn what_leaves_is_archived_or_removed_and_a_file_of_another_log_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let (history, archive) = (dir.path().join(HISTORY_FOLDER), dir.path().join("archive"));
        std::fs::create_dir_all(&history).unwrap();
        let segment = |id: u64| history.join(format!("{id:016x}.seg"));
        for id in 1..=4 {
            std::fs::write(segment(id), vec![id as u8; 1 << 20]).unwrap();
        }
        let status = Status::new("", TimeNs(0));
        let keeper = |mib| Keeper {
            dir: dir.path().to_path_buf(),
            limits: limits(0, mib, 0),
            archive: Some(archive.clone()),
            status: status.clone(),
            in_trouble: false,
        };
        keeper(2).look().unwrap();
        assert_eq!(std::fs::read(archive.join("0000000000000002.seg")).unwrap(), vec![2; 1 << 20]);
        assert!(!segment(2).exists() && segment(3).exists());
        assert_eq!((status.history_bytes(), status.history_segments()), (2 << 20, 2));
        // A copy that a crash left is taken for what it is; another log's segment stays, and so does ours.
        std::fs::copy(segment(3), archive.join("0000000000000003.seg")).unwrap();
        std::fs::write(archive.join("0000000000000004.seg"), b"another").unwrap();
        let why = keeper(0).look().unwrap_err();
        assert!(why.contains("log.archive_dir of its own"), "{why}");
        assert!(!segment(3).exists() && segment(4).exists());
        assert_eq!(std::fs::read(archive.join("0000000000000004.seg")).unwrap(), b"another");
        Keeper { archive: None, ..keeper(0) }.look().unwrap();
        assert!(!segment(4).exists());
    }
}
