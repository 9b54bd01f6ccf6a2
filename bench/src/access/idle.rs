//! What FIX sessions that stand idle hold.

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::fix::{Session, keys};
use super::{Config, Open};
use crate::report::{Figure, Report, Unit};

/// An account has no more.
const SESSIONS_PER_ACCOUNT: usize = 16;
/// Descriptors of ours besides those of the sessions.
const DESCRIPTORS: usize = 256;

/// Opens them, and reports what the venue holds for them.
pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    // The venue keeps an eighth for itself, and an eighth of the rest for those who have not logged on.
    let count = config.idle_sessions;
    if allowed / 4 * 3 < count + DESCRIPTORS {
        report.note(format!(
            "the memory of {count} idle FIX sessions was NOT MEASURED: a process may open {allowed} files here (ulimit -Hn)"
        ));
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).context("raising the limit of open files")?;
    let places = count * 2;
    let more = format!("[http]\nconnections_max = {places}\nsource_connections_max = {places}\n");
    let venue = Open::start(config, "idle", &more)?;
    let keys = keys(&venue.running, count.div_ceil(SESSIONS_PER_ACCOUNT))?;
    let before = venue.running.memory_bytes()?;
    let mut sessions = Vec::with_capacity(count);
    for (number, (key, secret)) in (0..count).zip(keys.iter().flat_map(|key| std::iter::repeat_n(key, SESSIONS_PER_ACCOUNT))) {
        sessions.push(Session::log_on(&venue.fix, format!("IDLE{number}"), (key, secret))?);
    }
    let after = venue.running.memory_bytes()?;
    ensure!(sessions.len() == count, "{} of {count} sessions logged on", sessions.len());
    report.check(format!("{count} FIX sessions logged on and stood"));
    let held = after.saturating_sub(before) as f64;
    report.figure(Figure::new("fix_idle_sessions", count as f64, Unit::Count));
    let held_mib = Figure::new("fix_idle_sessions_mib", held / f64::from(1 << 20), Unit::Mib);
    // The goal is stated for 10,000 sessions.
    report.figure(if count == 10_000 { held_mib.bar(100.0) } else { held_mib });
    report.figure(Figure::new("fix_idle_session_bytes", held / count as f64, Unit::Bytes));
    drop(sessions);
    venue.running.stop()
}
