//! `walras cluster recover`: a venue of one replica out of the folder of one that is left, after a majority's disks were lost.

use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use walras_config::Config;
use walras_consensus::{Body, Packed, SnapshotMeta};
use walras_gateway::session::ReportSettings;
use walras_log_reader::REPLICA;
use walras_log_store::{Disk, RealDisk};
use walras_replica::State;
use walras_replica_log::{Dump, Identity, Options};
use walras_sequencer::decode_entry;
use walras_terminal::progress::{Slow, while_waiting};

use super::log_import::{system, write, wrong};
use super::{CliError, Output};
use crate::runtime::log_options;

/// The folder as the survivor left it, afterwards.
const KEPT: &str = "replica.before-recovery";

pub(super) fn run(config: &Path) -> Result<Output, CliError> {
    let config = Config::load(Some(config))?;
    let options = config.cluster_options()?;
    let (me, cluster_id) = (options.consensus.id, options.consensus.cluster_id);
    if options.genesis.voters.iter().ne([&me]) {
        return Err(CliError::Wrong(format!(
            "the configuration still names the replicas that are lost: say cluster.genesis = [{me}] and leave the others out of \
             cluster.peers"
        )));
    }
    let dir = Path::new(&config.venue.data);
    let (folder, made, kept) = (dir.join(REPLICA), dir.join("replica.recovering"), dir.join(KEPT));
    let damaged = |e: &dyn std::fmt::Display| CliError::Damaged(e.to_string());
    let dump = while_waiting("opening the log", || Dump::open(&RealDisk, &folder)).map_err(|e| damaged(&e))?;
    if dump.cluster_id == cluster_id {
        if made.exists() {
            // It was interrupted after the two folders had changed places.
            keep(dir, &made, &kept)?;
        }
        return Err(CliError::Wrong(format!(
            "{} is of cluster {cluster_id} already: to recover it, give the configuration a new cluster.cluster_id, so that no lost replica \
             that comes back links with it; if it was recovered before, start it",
            folder.display()
        )));
    }
    if kept.exists() {
        return Err(wrong(&kept, "is there already, from a recovery before: move it away"));
    }
    if made.exists() {
        std::fs::remove_dir_all(&made).map_err(system("remove what an earlier attempt left in", &made))?;
    }
    let (mut state, from) = newest_state(&dump)?;
    let replayed = replay(&dump, &from, &mut state)?;
    drop(dump);
    let (log_index, hash) = (state.engine.last_applied(), state.engine.state_hash());
    let identity = Identity { cluster_id, replica: me, genesis: options.genesis };
    let options = Options { log: log_options(&config), ..Options::default() };
    while_waiting("writing the snapshot", || write(&made, &mut state, identity, options))?;
    // At no moment is there no folder of that name: a start would begin an empty venue.
    renameat_with(CWD, &made, CWD, &folder, RenameFlags::EXCHANGE)
        .map_err(|e| system("put the new folder in the place of", &folder)(e.into()))?;
    RealDisk.sync_dir(dir).map_err(system("sync", dir))?;
    keep(dir, &made, &kept)?;
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let human = format!(
        "replica {me} is cluster {cluster_id} by itself now, after entry {log_index}, state {hash}: start it, then add others under ids that \
         were never used\n{replayed} entries were replayed; the folder as it was is {}\n",
        kept.display()
    );
    Ok(Output { human, json: json!({"log_index": log_index.to_string(), "entries_replayed": replayed, "state_hash": hash}) })
}

fn keep(dir: &Path, made: &Path, kept: &Path) -> Result<(), CliError> {
    RealDisk.rename(made, kept).map_err(system("rename the former folder to", kept))?;
    RealDisk.sync_dir(dir).map_err(system("sync", dir))
}

/// The newest state that is sound, and where it is from.
fn newest_state(dump: &Dump<RealDisk>) -> Result<(State, SnapshotMeta), CliError> {
    for place in dump.places().into_iter().rev() {
        let Some(info) = dump.snapshots.iter().find(|info| info.meta.slot == place.slot) else {
            if place.log_index.0 == 0 {
                return Ok((State::genesis(ReportSettings::default()), place));
            }
            continue;
        };
        let read = dump.state(info).map_err(|e| e.to_string());
        match read.and_then(|bytes| State::decode(&bytes, ReportSettings::default())) {
            Ok(state) => return Ok((state, place)),
            Err(why) => eprintln!("walras: the snapshot of entry {} is left out: {why}", place.log_index),
        }
    }
    Err(CliError::Damaged(
        "no snapshot is sound, and the log does not reach back to its beginning: restore one from a backup".to_owned(),
    ))
}

/// All that its log holds after that, known to be decided or not: what was acknowledged may be among it.
fn replay(dump: &Dump<RealDisk>, from: &SnapshotMeta, state: &mut State) -> Result<u64, CliError> {
    let mut slots = dump.slots_after(from.slot).map_err(|e| CliError::Damaged(e.to_string()))?;
    let (mut replayed, mut progress) = (0, Slow::new("replaying the log", None));
    while let Some(slot) = slots.next().map_err(|e| CliError::Damaged(e.to_string()))? {
        let Body::Pack(bytes) = slot.body else { continue };
        let damaged = |what: String| CliError::Damaged(format!("slot {}: {what}", slot.slot));
        let pack = Packed::decode(bytes).ok_or_else(|| damaged("it is no pack of entries".to_owned()))?;
        for bytes in pack.entries() {
            let entry = decode_entry(state.engine.last_applied().next(), bytes).map_err(|e| damaged(e.to_string()))?;
            state.apply(&entry).map_err(|e| damaged(e.to_string()))?;
            replayed += 1;
            progress.set(replayed);
        }
    }
    progress.finish();
    Ok(replayed)
}
