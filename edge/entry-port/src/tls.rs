//! TLS 1.3 for order entry: the venue shows a certificate; who the client is, its logon says.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;

/// Files of the certificate that a venue makes for itself, in its data folder.
const OWN_CERTIFICATE: &str = "order-entry.crt";
const OWN_KEY: &str = "order-entry.key";
const VALID_DAYS: i64 = 3_650;
/// What is kept of a connection whose client does not read, besides what order entry keeps.
const SEALED_BYTES_MAX: usize = 64 << 10;

/// What the venue shows to clients of order entry. Clones show the same, also after [`EntryTls::renew`].
#[derive(Clone, Debug)]
pub struct EntryTls {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    /// Where the certificate is, for people.
    certificate: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EntryTlsError {
    /// A file.
    #[error("could not {action} {}: {source}; see order_entry.certificate and order_entry.private_key", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file that is not what it should be.
    #[error("{} is no {what} in PEM ({detail}); see order_entry.certificate and order_entry.private_key", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Certificate or private key.
        what: &'static str,
        /// Why not.
        detail: String,
    },
    /// The two do not go together, or the library does not take them.
    #[error("the certificate {} cannot be used with its key: {detail}", certificate.display())]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// Why not.
        detail: String,
    },
    /// None could be made.
    #[error("could not make a certificate: {0}")]
    Make(String),
}

impl EntryTls {
    /// Of files that the operator has.
    ///
    /// # Errors
    /// They cannot be read, or do not go together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, EntryTlsError> {
        let file = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| EntryTlsError::File { action, path, source }
        };
        let read = |path: &Path| std::fs::read(path).map_err(file("read", path));
        let pem = |path: &Path, what| {
            let path = path.to_path_buf();
            move |e: rustls_pki_types::pem::Error| EntryTlsError::Pem { path, what, detail: e.to_string() }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
        let chain = chain.map_err(pem(certificate, "certificate"))?;
        if chain.is_empty() {
            let (path, detail) = (certificate.to_path_buf(), "it holds none".to_owned());
            return Err(EntryTlsError::Pem { path, what: "certificate", detail });
        }
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(pem(key, "private key"))?;
        let unusable = |e: rustls::Error| EntryTlsError::Unusable { certificate: certificate.to_path_buf(), detail: e.to_string() };
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(unusable)?;
        // A handshake proves the certificate each time; connections last for a day.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(RwLock::new(Arc::new(config))), certificate: certificate.to_path_buf() })
    }

    /// Of a certificate that the venue makes for itself, once, in this folder: clients are given the file and take no other.
    ///
    /// # Errors
    /// It cannot be made, written or read.
    pub fn own(folder: &Path, address: IpAddr) -> Result<Self, EntryTlsError> {
        let (certificate, key) = (folder.join(OWN_CERTIFICATE), folder.join(OWN_KEY));
        if !certificate.exists() {
            make(&certificate, &key, address)?;
        }
        Self::load(&certificate, &key)
    }

    /// Shows what `later` shows to connections from now on; those that are open stay.
    pub fn renew(&self, later: &Self) {
        let config = later.config();
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file of the certificate.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// A connection's, before its handshake.
    pub(crate) fn answer(&self) -> Option<TlsStream> {
        let mut connection = ServerConnection::new(self.config()).ok()?;
        connection.set_buffer_limit(Some(SEALED_BYTES_MAX));
        Some(TlsStream { connection })
    }
}

/// The key is written first: a certificate that is there has one.
fn make(certificate: &Path, key: &Path, address: IpAddr) -> Result<(), EntryTlsError> {
    let library = |e: rcgen::Error| EntryTlsError::Make(e.to_string());
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let pair = KeyPair::generate().map_err(library)?;
    let mut params = CertificateParams::new(names).map_err(library)?;
    params.distinguished_name.push(DnType::CommonName, "Walras order entry");
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - time::Duration::days(1), now + time::Duration::days(VALID_DAYS));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let made = params.self_signed(&pair).map_err(library)?;
    write(key, 0o600, pair.serialize_pem().as_bytes())?;
    write(certificate, 0o644, made.pem().as_bytes())
}

fn write(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), EntryTlsError> {
    let failed = |source| EntryTlsError::File { action: "write", path: path.to_path_buf(), source };
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}

/// One connection's TLS.
#[derive(Debug)]
pub(crate) struct TlsStream {
    connection: ServerConnection,
}

impl TlsStream {
    /// Takes what came, as far as it goes now; the rest of `sealed` is to come again after [`Self::read`].
    ///
    /// # Errors
    /// It is no TLS, or not for this venue. There may be a last alert to write.
    pub(crate) fn take(&mut self, sealed: &mut &[u8]) -> io::Result<()> {
        if self.connection.read_tls(sealed)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.connection.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        Ok(())
    }

    /// What was inside; 0 when there is nothing more now.
    ///
    /// # Errors
    /// The client has ended the connection.
    pub(crate) fn read(&mut self, plain: &mut [u8]) -> io::Result<usize> {
        match self.connection.reader().read(plain) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            read => read,
        }
    }

    /// Takes what is to be sent, as far as there is room.
    pub(crate) fn put(&mut self, plain: &[u8]) -> io::Result<usize> {
        self.connection.writer().write(plain)
    }

    /// Whether something is to be sent.
    pub(crate) fn has_output(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends it, as far as the socket takes it.
    ///
    /// # Errors
    /// The socket's: [`io::ErrorKind::WouldBlock`] while it takes no more.
    pub(crate) fn send(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_venue_makes_its_certificate_once_and_its_key_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let address = "10.0.0.7".parse().unwrap();
        let tls = EntryTls::own(dir.path(), address).unwrap();
        let read = || std::fs::read(tls.certificate()).unwrap();
        let first = read();
        EntryTls::own(dir.path(), address).unwrap();
        assert_eq!(read(), first);
        let mode = std::fs::metadata(dir.path().join(OWN_KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn files_that_are_none_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let tls = EntryTls::own(dir.path(), "0.0.0.0".parse().unwrap()).unwrap();
        let (certificate, key) = (tls.certificate(), dir.path().join(OWN_KEY));
        let missing = dir.path().join("none.crt");
        for (certificate, key, said) in [
            (missing.as_path(), key.as_path(), "none.crt"),
            (key.as_path(), key.as_path(), "no certificate in PEM"),
            (certificate, certificate, "no private key in PEM"),
        ] {
            let error = EntryTls::load(certificate, key).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("order_entry.certificate"), "{error}");
        }
        let other = tempfile::tempdir().unwrap();
        EntryTls::own(other.path(), "0.0.0.0".parse().unwrap()).unwrap();
        let error = EntryTls::load(certificate, &other.path().join(OWN_KEY)).unwrap_err().to_string();
        assert!(error.contains("cannot be used with its key"), "{error}");
    }
}
