//! `walras log import`: a folder of an earlier version, in which a venue on one machine had another kind of log than a replica,
//! becomes one of a replica that is alone. The state is what the old snapshots and the old log make of it; the old files stay,
//! under another name.

use std::path::{Path, PathBuf};

use serde_json::json;
use walras_config::Config;
use walras_consensus::{HardState, Members, Slot, SnapshotMeta, Term, Ticket, Write};
use walras_engine::Engine;
use walras_gateway::session::{ReportSettings, Reports};
use walras_log_reader::{REPLICA, is_replica};
use walras_log_store::{Disk, LogOptions, RealDisk, SnapshotStore, open_read_only};
use walras_market_data::{Fills, MarketData};
use walras_replica::{Derived, State, split_parts};
use walras_replica_log::{Identity, Options, ReplicaLog};
use walras_sequencer::decode_entry;
use walras_terminal::progress::{Slow, while_waiting};
use walras_types::LogIndex;

use super::{CliError, Output};
use crate::runtime::log_options;

/// What the old folders are called afterwards.
const KEPT: &str = "imported";

pub(super) fn wrong(path: &Path, what: &str) -> CliError {
    CliError::Wrong(format!("{} {what}", path.display()))
}

pub(super) fn system(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    let what = format!("could not {what} {}", path.display());
    move |source| CliError::Io { what, source }
}

fn kept_as(path: &Path) -> PathBuf {
    path.with_extension(KEPT)
}

pub(super) fn run(dir: &Path, config: Option<&Path>) -> Result<Output, CliError> {
    let config = Config::load(config)?;
    let consensus = config.cluster_options()?.consensus;
    let (log, snapshots, target) = (dir.join("log"), dir.join("snapshots"), dir.join(REPLICA));
    if is_replica(dir) {
        return Err(wrong(&target, "is there already: this folder needs no import"));
    }
    if !log.is_dir() {
        return Err(wrong(dir, "holds no log of an earlier version: name a venue's data folder"));
    }
    for path in [&log, &snapshots].map(|path| kept_as(path)) {
        if path.exists() {
            return Err(wrong(&path, "is there already, from an import before: move it away"));
        }
    }
    // Made whole under another name, so that a crash leaves nothing that looks like a replica's folder.
    let made = dir.join("replica.importing");
    if made.exists() {
        std::fs::remove_dir_all(&made).map_err(system("remove what an earlier attempt left in", &made))?;
    }
    let (mut state, replayed) = old_state(&log, &snapshots)?;
    let (log_index, hash) = (state.engine.last_applied(), state.engine.state_hash());
    let identity =
        Identity { cluster_id: consensus.cluster_id, replica: consensus.id, genesis: Members::of_voters([consensus.id]) };
    let options = Options { log: log_options(&config), ..Options::default() };
    while_waiting("writing the snapshot", || write(&made, &mut state, identity, options))?;
    let old: Vec<&Path> = [log.as_path(), &snapshots].into_iter().filter(|path| path.exists()).collect();
    put_in_place(&RealDisk, dir, &made, &old)?;
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let human = format!(
        "the venue in {} goes on after entry {log_index}, state {hash}: start it\n{replayed} entries of the old log were replayed; the old \
         files are in {} and {}, and no start reads them\n",
        dir.display(),
        kept_as(&log).display(),
        kept_as(&snapshots).display()
    );
    Ok(Output { human, json: json!({"log_index": log_index.to_string(), "entries_replayed": replayed, "state_hash": hash}) })
}

/// Gives the new folder its name, and then the old ones theirs. The first rename must be durable before the others: after a power
/// failure that kept only the others, the folder would hold no venue at all, and a start would begin an empty one.
fn put_in_place<D: Disk>(disk: &D, dir: &Path, made: &Path, old: &[&Path]) -> Result<(), CliError> {
    let target = dir.join(REPLICA);
    disk.rename(made, &target).map_err(system("rename the new folder to", &target))?;
    disk.sync_dir(dir).map_err(system("sync", dir))?;
    for path in old {
        disk.rename(path, &kept_as(path)).map_err(system("rename", path))?;
    }
    disk.sync_dir(dir).map_err(system("sync", dir))
}

/// What the newest snapshot and the entries after it make; how many those are.
fn old_state(log: &Path, snapshots: &Path) -> Result<(State, u64), CliError> {
    let mut state = State::genesis(ReportSettings::default());
    if snapshots.is_dir() {
        let store = SnapshotStore::open_live(RealDisk, snapshots, LogOptions::default().owner_id)?;
        store.damaged().iter().for_each(|damaged| eprintln!("walras: {damaged}"));
        if let Some(newest) = store.indices().last() {
            let found = while_waiting("reading the newest snapshot", || store.load(*newest))?;
            let bytes = found.map_err(|damaged| CliError::Damaged(damaged.to_string()))?.bytes;
            let damaged = |detail| CliError::Damaged(format!("the snapshot of entry {newest} does not restore: {detail}"));
            state = old_snapshot(&bytes).map_err(damaged)?;
        }
    }
    let from = state.engine.last_applied();
    // Exclusively: a venue of the earlier version must not run meanwhile.
    let (mut reader, _lock) = while_waiting("opening the log", || open_read_only(&RealDisk, log, None))?;
    if reader.first_index() > from.next() {
        return Err(CliError::Damaged(format!(
            "the log begins with entry {}, and the newest snapshot holds those up to {from}: restore the snapshots from a backup",
            reader.first_index()
        )));
    }
    let (mut events, mut deltas, mut replayed) = (Vec::new(), Vec::new(), 0);
    let mut progress = Slow::new("replaying the log", None);
    while let Some(stored) = reader.next()?.map(|stored| (stored.index, decode_entry(stored.index, stored.payload))) {
        let (index, entry) = stored;
        let damaged = |what: String| CliError::Damaged(format!("entry {index}: {what}"));
        let entry = entry.map_err(|e| damaged(e.to_string()))?;
        if index <= from {
            continue;
        }
        let State { engine, derived, .. } = &mut state;
        events.clear();
        entry.apply(engine, &mut events);
        derived.on_entry(engine, &entry, &events, &mut deltas).map_err(|e| damaged(e.to_string()))?;
        replayed += 1;
        progress.set(replayed);
    }
    progress.finish();
    Ok((state, replayed))
}

/// It had no reports: those of a replica's sessions begin with the import. Of its open orders nothing more is known than how they stand.
fn old_snapshot(bytes: &[u8]) -> Result<State, String> {
    let [engine, market, fills] = split_parts(bytes)?;
    let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
    let market = MarketData::restore(market).map_err(|e| e.to_string())?;
    let fills = Fills::restore_without_places(fills).map_err(|e| e.to_string())?;
    Ok(State { engine, derived: Derived { market, fills, ..Derived::default() }, reports: Reports::new(ReportSettings::default()) })
}

/// A replica's folder whose log goes on from this state.
pub(super) fn write(dir: &Path, state: &mut State, identity: Identity, options: Options) -> Result<(), CliError> {
    let failed = |e: &dyn std::fmt::Display| CliError::Wrong(format!("the new folder {} was not made: {e}", dir.display()));
    let (members, term) = (identity.genesis.clone(), Term(1));
    let mut opened = ReplicaLog::open(RealDisk, dir, identity, options).map_err(|e| failed(&e))?;
    let LogIndex(last) = state.engine.last_applied();
    let meta = SnapshotMeta { slot: Slot(last.max(1)), term, log_index: LogIndex(last), members };
    let bytes = State::freeze(&mut state.engine, &mut state.derived, &mut state.reports).encode();
    let written = opened.snapshots.begin(meta.clone()).and_then(|mut writer| {
        writer.append(&bytes)?;
        writer.finish()
    });
    written.map_err(|e| failed(&e))?;
    let hard_state = HardState { term, vote: None, commit: meta.slot };
    let goes_on = Write { ticket: Ticket(1), hard_state, installed: Some(meta), entries: Vec::new() };
    opened.log.write(&goes_on).and_then(|()| opened.log.close()).map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};

    use super::*;

    /// A folder counts as a file here: only its name matters.
    fn before_the_renames(seed: u64) -> SimDisk {
        let disk = SimDisk::new(seed, SimDiskConfig::default());
        for name in ["log", "snapshots", "replica.importing"] {
            disk.create(&Path::new("venue").join(name)).unwrap();
        }
        disk.sync_dir(Path::new("venue")).unwrap();
        disk
    }

    #[test]
    fn a_power_failure_at_any_rename_leaves_the_old_log_or_the_new_folder() {
        let dir = Path::new("venue");
        let old = [dir.join("log"), dir.join("snapshots")];
        let old: Vec<&Path> = old.iter().map(PathBuf::as_path).collect();
        let mut left = BTreeSet::new();
        for seed in 0..64 {
            // The last of them comes after all is done.
            for crash_in_ops in 0..6 {
                let disk = before_the_renames(seed);
                disk.set_faults(SimFaults { crash_in_ops: Some(crash_in_ops), ..SimFaults::default() });
                let done = put_in_place(&disk, dir, &dir.join("replica.importing"), &old).is_ok();
                disk.crash();
                let names: BTreeSet<PathBuf> = disk.paths().into_iter().collect();
                let (is_old, is_new) = (old.iter().all(|path| names.contains(*path)), names.contains(&dir.join(REPLICA)));
                assert!(is_old || is_new, "seed {seed}, operation {crash_in_ops}: {names:?}");
                if done {
                    let kept = old.iter().all(|path| names.contains(&kept_as(path)));
                    assert!(is_new && kept, "seed {seed}: it was done, and is not: {names:?}");
                }
                left.insert((is_old, is_new, done));
            }
        }
        let all = [(true, false, false), (true, true, false), (false, true, false), (false, true, true)];
        assert_eq!(left, all.into_iter().collect(), "the power fails before, between and after the renames");
    }
}
