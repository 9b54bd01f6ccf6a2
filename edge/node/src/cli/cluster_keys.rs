//! `walras cluster keys`: the certificates and keys with which replicas know each other.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use walras_consensus::ReplicaId;
use walras_peer_link::keys::{self, MadeKeys, VALID_DAYS};

use super::{CliError, Output};

/// `walras cluster keys`.
#[derive(Debug, Args)]
pub struct ClusterKeysArgs {
    /// Folder for the files; it is made if need be. Nothing in it is overwritten.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// How many replicas, with the ids 1, 2 and so on.
    #[arg(long, value_name = "COUNT", default_value_t = 3, conflicts_with = "add")]
    pub replicas: u64,
    /// The cluster's number, as in the configuration; a random one without it.
    #[arg(long, value_name = "NUMBER", conflicts_with = "add", value_parser = clap::value_parser!(u64).range(1..))]
    pub cluster_id: Option<u64>,
    /// Makes keys of one more replica instead, for the cluster whose keys are in the folder.
    #[arg(long, value_name = "ID", value_parser = replica_id)]
    pub add: Option<ReplicaId>,
}

fn replica_id(text: &str) -> Result<ReplicaId, String> {
    text.parse()
        .ok()
        .and_then(ReplicaId::new)
        .ok_or_else(|| "give a replica's id: a number from 1 that no replica had before".to_owned())
}

pub(super) fn run(args: &ClusterKeysArgs) -> Result<Output, CliError> {
    let made = match args.add {
        Some(id) => keys::add(&args.dir, id)?,
        None => {
            let cluster_id = match args.cluster_id {
                Some(id) => id,
                None => random_cluster_id()?,
            };
            keys::make(&args.dir, cluster_id, args.replicas)?
        }
    };
    Ok(report(&made))
}

/// Below 2^53, so that every JSON parser and TOML file takes it.
fn random_cluster_id() -> Result<u64, CliError> {
    let random = getrandom::u64().map_err(|e| CliError::Io {
        what: "could not draw a random number; give --cluster-id".into(),
        source: std::io::Error::other(e),
    })?;
    Ok((random >> 11).max(1))
}

fn report(made: &MadeKeys) -> Output {
    use std::fmt::Write;
    let MadeKeys { cluster_id, authority, authority_key, replicas } = made;
    let json = json!({
        "cluster_id": cluster_id,
        "authority": authority,
        "authority_key": authority_key,
        "valid_days": VALID_DAYS,
        "replicas": replicas.iter().map(|r| json!({"id": r.id.get(), "certificate": r.certificate, "key": r.key})).collect::<Vec<_>>(),
    });
    let mut human =
        format!("Cluster {cluster_id}: certificates for 10 years, without a way to call one back. For a test cluster.\n\n");
    for replica in replicas {
        let (id, certificate, key) = (replica.id, replica.certificate.display(), replica.key.display());
        let _ = writeln!(human, "Copy to replica {id}:  {}  {certificate}  {key}", authority.display());
    }
    let _ = write!(
        human,
        "\nThen name the three files and the cluster's number {cluster_id} in each replica's configuration.\nKeep {} offline: whoever has it \
         can make replicas. You need it for `walras cluster keys --dir {} --add <id>`.\n",
        authority_key.display(),
        authority.parent().unwrap_or(authority).display()
    );
    Output { json, human }
}
