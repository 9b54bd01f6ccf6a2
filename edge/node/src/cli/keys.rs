//! `walras keys`: keys that are made without a venue.

use std::path::Path;

use serde_json::json;
use walras_access::{Access, Clock, Rates, Start, generate, now, write_secret};
use walras_gateway::{Algorithm, Permission};
use walras_log_store::{Disk, LockKind, LogError, RealDisk};
use walras_terminal::table::fields;
use walras_types::TimeNs;

use super::args::KeysCommand;
use super::{CliError, Output};
use crate::node::NodeError;
use walras_log_reader::{REPLICA, is_replica};

pub(super) fn run(command: &KeysCommand) -> Result<Output, CliError> {
    match command {
        KeysCommand::New { out } => new(out),
        KeysCommand::Recover { dir } => recover(dir),
    }
}

fn new(out: &Path) -> Result<Output, CliError> {
    let key = generate(Algorithm::Ed25519);
    write_secret(out, format!("{}\n", key.to_token().as_str()).as_bytes())?;
    let no_account = [Permission::Operator].into_iter().collect();
    let record = key.record(None, no_account).map_err(NodeError::from)?;
    let json = json!({"key_id": key.key_id().as_str(), "public_key": record.credential().to_text().as_str()});
    Ok(Output { human: fields(&json), json })
}

/// Makes a further operator's key in the data folder of a venue that does not run: the venue would not see what is written here, and would
/// write over it.
fn recover(dir: &Path) -> Result<Output, CliError> {
    let log = if is_replica(dir) { dir.join(REPLICA).join("log") } else { dir.join("log") };
    let _alone = RealDisk.lock_dir(&log, LockKind::Exclusive).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => CliError::Log(LogError::Locked { dir: dir.to_path_buf() }),
        std::io::ErrorKind::NotFound => CliError::Wrong(format!("{} is no venue's data folder: it has no log", dir.display())),
        _ => CliError::Io { what: format!("could not lock {}", log.display()), source: e },
    })?;
    let start = Start { started: now(), log_time: TimeNs(0) };
    let access = Access::open(dir, Rates::OFFLINE, Clock::system(), start)?;
    let others = access.operators();
    let made = access.create_operator(dir).map_err(NodeError::from)?;
    let json = json!({"key_id": made.key_id, "file": made.file.display().to_string(), "other_operators": others});
    let mut human =
        format!("{} is a new operator's key, in {}. All other keys stay as they are.\n", made.key_id, made.file.display());
    if !others.is_empty() {
        human += &format!("Revoke what was lost once the venue runs (walras admin revoke KEY_ID): {}\n", others.join(", "));
    }
    Ok(Output { human, json })
}
