//! Keys and certificates of a cluster.
//!
//! Each cluster has one authority, whose key is in a separate file that no replica needs. Each replica has a private key and a
//! certificate, signed by the authority, that names the replica and its cluster. ECDSA on P-256, by `rcgen`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use time::OffsetDateTime;
use walras_consensus::{MEMBERS_MAX, ReplicaId};

use crate::tls::{PeerName, TlsIdentity, cluster_name};

/// Validity of the certificates that [`make`] issues.
pub const VALID_DAYS: u64 = 3_650;
const DAY_S: u64 = 24 * 60 * 60;

/// Why keys could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file exists already.
    #[error("{} is there already, and keys are not overwritten; choose another folder, or move it away", .0.display())]
    Exists(PathBuf),
    /// A file cannot be read or written.
    #[error("could not {action} {}: {source}", path.display())]
    File {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Too many replicas, or none.
    #[error("a cluster of {0} replicas is impossible; choose between 1 and {MEMBERS_MAX}")]
    ReplicaCount(u64),
    /// No folder with keys of a cluster.
    #[error("{} holds no keys of a cluster ({detail}); give the folder that `walras cluster keys` made, with ca.key in it", path.display())]
    NotACluster {
        /// The path.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
    /// The library failed.
    #[error("could not make a key or certificate: {0}")]
    Library(String),
}

/// The validity of a certificate, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Start.
    pub from_s: u64,
    /// End.
    pub until_s: u64,
}

impl Validity {
    /// From one day ago, because clocks differ, for [`VALID_DAYS`].
    #[must_use]
    pub fn from_now() -> Self {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { from_s: now_s.saturating_sub(DAY_S), until_s: now_s + VALID_DAYS * DAY_S }
    }
}

/// A certificate and its key, in PEM.
pub struct Issued {
    /// The certificate, which is public.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The authority that signs a cluster's certificates.
pub struct Authority {
    cluster_id: u64,
    issuer: Issuer<'static, KeyPair>,
    issued: Issued,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new(cluster_id: u64, validity: Validity) -> Result<Self, KeysError> {
        let key = KeyPair::generate().map_err(library)?;
        let params = authority_params(cluster_id, validity)?;
        let certificate = params.self_signed(&key).map_err(library)?.pem();
        let issued = Issued { certificate, key: key.serialize_pem() };
        Ok(Self { cluster_id, issuer: Issuer::new(params, key), issued })
    }

    /// Its own certificate and key.
    #[must_use]
    pub fn own(&self) -> &Issued {
        &self.issued
    }

    /// A certificate for a replica, with a new key.
    pub fn issue(&self, id: ReplicaId, validity: Validity) -> Result<Issued, KeysError> {
        let key = KeyPair::generate().map_err(library)?;
        let name = PeerName { cluster_id: self.cluster_id, id };
        let mut params = CertificateParams::new(vec![name.to_string()]).map_err(library)?;
        params.distinguished_name = common_name(&format!("Walras replica {id} of cluster {:016x}", self.cluster_id));
        (params.not_before, params.not_after) = times(validity)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).map_err(library)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

fn authority_params(cluster_id: u64, validity: Validity) -> Result<CertificateParams, KeysError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("Walras cluster {cluster_id:016x}"));
    (params.not_before, params.not_after) = times(validity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // Name constraints: the authority can sign only for this cluster.
    let permitted_subtrees = vec![GeneralSubtree::DnsName(cluster_name(cluster_id))];
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    Ok(params)
}

fn common_name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn times(validity: Validity) -> Result<(OffsetDateTime, OffsetDateTime), KeysError> {
    let time = |s: u64| {
        let s = i64::try_from(s).map_err(|e| KeysError::Library(e.to_string()))?;
        OffsetDateTime::from_unix_timestamp(s).map_err(|e| KeysError::Library(e.to_string()))
    };
    Ok((time(validity.from_s)?, time(validity.until_s)?))
}

fn library(error: rcgen::Error) -> KeysError {
    KeysError::Library(error.to_string())
}

/// The files of a replica in a folder of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFiles {
    /// The replica.
    pub id: ReplicaId,
    /// Its certificate.
    pub certificate: PathBuf,
    /// Its private key, mode 0600.
    pub key: PathBuf,
}

/// The files that were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeKeys {
    /// The cluster's id.
    pub cluster_id: u64,
    /// The authority's certificate: every replica needs it.
    pub authority: PathBuf,
    /// The authority's private key: no replica needs it; its holder can make replicas.
    pub authority_key: PathBuf,
    /// The new replicas' files.
    pub replicas: Vec<ReplicaFiles>,
}

fn files(dir: &Path, id: ReplicaId) -> ReplicaFiles {
    ReplicaFiles { id, certificate: dir.join(format!("replica-{id}.crt")), key: dir.join(format!("replica-{id}.key")) }
}

/// Makes the keys of a new cluster with replicas 1, 2, ... in `dir`. Writes nothing if one of the files exists already.
pub fn make(dir: &Path, cluster_id: u64, replica_count: u64) -> Result<MadeKeys, KeysError> {
    if replica_count == 0 || replica_count > MEMBERS_MAX as u64 {
        return Err(KeysError::ReplicaCount(replica_count));
    }
    let replicas: Vec<ReplicaFiles> = (1..=replica_count).filter_map(ReplicaId::new).map(|id| files(dir, id)).collect();
    let made = MadeKeys { cluster_id, authority: dir.join("ca.crt"), authority_key: dir.join("ca.key"), replicas };
    let all = made.replicas.iter().flat_map(|r| [&r.certificate, &r.key]).chain([&made.authority, &made.authority_key]);
    refuse_existing(all)?;
    std::fs::create_dir_all(dir).map_err(file("create", dir))?;
    let authority = Authority::new(cluster_id, Validity::from_now())?;
    write(&made.authority_key, &authority.own().key, 0o600)?;
    write(&made.authority, &authority.own().certificate, 0o644)?;
    for replica in &made.replicas {
        write_replica(&authority, replica)?;
    }
    Ok(made)
}

/// Makes the keys of one more replica of the cluster whose keys are in `dir`.
pub fn add(dir: &Path, id: ReplicaId) -> Result<MadeKeys, KeysError> {
    let not = |detail: String| KeysError::NotACluster { path: dir.to_path_buf(), detail };
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| not(format!("{}: {e}", path.display())));
    let (authority_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
    let (certificate, key) = (read(&authority_path)?, read(&key_path)?);
    let cluster_id = cluster_of(dir).ok_or_else(|| not("no certificate of a replica names the cluster".to_owned()))?;
    let pair = KeyPair::from_pem(&key).map_err(|e| not(format!("ca.key: {e}")))?;
    let issuer = Issuer::new(authority_params(cluster_id, Validity::from_now())?, pair);
    let authority = Authority { cluster_id, issuer, issued: Issued { certificate, key } };
    let replica = files(dir, id);
    refuse_existing([&replica.certificate, &replica.key])?;
    let issued = authority.issue(id, Validity::from_now())?;
    let own = &authority.issued.certificate;
    // Checks that the key belongs to this authority.
    TlsIdentity::from_pem(own.as_bytes(), issued.certificate.as_bytes(), issued.key.as_bytes())
        .and_then(|identity| identity.checked())
        .map_err(|_| not("ca.key, ca.crt and the certificates there do not belong together".to_owned()))?;
    write(&replica.key, &issued.key, 0o600)?;
    write(&replica.certificate, &issued.certificate, 0o644)?;
    Ok(MadeKeys { cluster_id, authority: authority_path, authority_key: key_path, replicas: vec![replica] })
}

/// The cluster that the certificates of replicas in a folder name.
fn cluster_of(dir: &Path) -> Option<u64> {
    let paths = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let of_replicas = paths.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("replica-") && name.ends_with(".crt")
    });
    of_replicas.into_iter().find_map(|path| {
        let der = CertificateDer::from_pem_slice(&std::fs::read(path).ok()?).ok()?;
        PeerName::of_certificate(&der).map(|name| name.cluster_id)
    })
}

fn write_replica(authority: &Authority, replica: &ReplicaFiles) -> Result<(), KeysError> {
    let issued = authority.issue(replica.id, Validity::from_now())?;
    write(&replica.key, &issued.key, 0o600)?;
    write(&replica.certificate, &issued.certificate, 0o644)
}

fn refuse_existing<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), KeysError> {
    match paths.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(KeysError::Exists(path.clone())),
        None => Ok(()),
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), KeysError> {
    let mut options = std::fs::OpenOptions::new();
    let mut out = match options.write(true).create_new(true).mode(mode).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(KeysError::Exists(path.to_path_buf())),
        opened => opened.map_err(file("create", path))?,
    };
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(file("write", path))
}

fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.to_path_buf();
    move |source| KeysError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_made_once_private_and_for_each_replica() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("keys");
        let made = make(&dir, 0xab, 3).unwrap();
        assert_eq!(made.replicas.len(), 3);
        for replica in &made.replicas {
            let identity = TlsIdentity::load(&made.authority, &replica.certificate, &replica.key).unwrap();
            assert_eq!(identity.name(), Some(PeerName { cluster_id: 0xab, id: replica.id }));
            assert_eq!(replica.key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(made.authority_key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let before = std::fs::read(&made.authority_key).unwrap();
        assert!(matches!(make(&dir, 0xab, 3), Err(KeysError::Exists(_))));
        assert_eq!(std::fs::read(&made.authority_key).unwrap(), before);
    }

    #[test]
    fn one_more_replica_gets_keys_of_the_same_authority() {
        let dir = tempfile::tempdir().unwrap();
        let made = make(dir.path(), 7, 1).unwrap();
        let id = ReplicaId::new(4).unwrap();
        let added = add(dir.path(), id).unwrap();
        let files = &added.replicas[0];
        assert_eq!((added.cluster_id, files.id), (7, id));
        TlsIdentity::load(&made.authority, &files.certificate, &files.key).unwrap();
        assert!(matches!(add(dir.path(), id), Err(KeysError::Exists(_))));

        let other = tempfile::tempdir().unwrap();
        let other = make(other.path(), 7, 1).unwrap();
        std::fs::copy(&other.authority_key, &made.authority_key).unwrap();
        assert!(matches!(add(dir.path(), ReplicaId::new(5).unwrap()), Err(KeysError::NotACluster { .. })), "another's key");
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(add(empty.path(), id), Err(KeysError::NotACluster { .. })));
    }

    #[test]
    fn a_cluster_of_none_or_of_too_many_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for count in [0, MEMBERS_MAX as u64 + 1, u64::MAX] {
            assert!(matches!(make(dir.path(), 1, count), Err(KeysError::ReplicaCount(_))));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
