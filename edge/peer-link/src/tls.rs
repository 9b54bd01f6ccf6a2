//! A replica's identity in its certificate, and its verification with rustls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use walras_consensus::ReplicaId;

use crate::error::{LinkError, SetupError};

/// The identity in a certificate: `replica-3.cluster-00000000000000ab.walras`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerName {
    pub(crate) cluster_id: u64,
    pub(crate) id: ReplicaId,
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica-{}.{}", self.id, cluster_name(self.cluster_id))
    }
}

/// The common suffix of a cluster's names.
pub(crate) fn cluster_name(cluster_id: u64) -> String {
    format!("cluster-{cluster_id:016x}.walras")
}

impl PeerName {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (id, cluster) = name.strip_prefix("replica-")?.split_once('.')?;
        let cluster = cluster.strip_prefix("cluster-")?.strip_suffix(".walras")?;
        let parsed = Self { cluster_id: u64::from_str_radix(cluster, 16).ok()?, id: ReplicaId::new(id.parse().ok()?)? };
        (parsed.to_string() == name).then_some(parsed)
    }

    /// The one name of a certificate.
    pub(crate) fn of_certificate(der: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(der).ok()?;
        let mut names = certificate.valid_dns_names();
        let name = Self::parse(names.next()?)?;
        names.next().is_none().then_some(name)
    }

    fn server_name(self) -> ServerName<'static> {
        ServerName::try_from(self.to_string()).expect("letters, digits and points, in pieces that are short")
    }
}

/// A certificate, its key, and the authority that signs for the whole cluster.
pub struct TlsIdentity {
    authority: CertificateDer<'static>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Why files are not a usable identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("could not read {}: {detail}; `walras cluster keys` makes the files", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
    /// A text is not the expected PEM.
    #[error("the {what} is not PEM of the right kind ({detail}); use the files that `walras cluster keys` made")]
    Pem {
        /// Certificate, key or authority.
        what: &'static str,
        /// The fault.
        detail: String,
    },
    /// Certificate, key and authority do not belong together, or are not valid today.
    #[error(
        "this replica's own certificate does not do ({0}); use ca.crt and the certificate that `walras cluster keys` made together, and \
         look at this machine's clock"
    )]
    Certificate(String),
    /// The TLS library rejected them.
    #[error("certificate and key cannot be used ({0}); use the two files that `walras cluster keys` made together")]
    Unusable(String),
}

impl TlsIdentity {
    /// Loads the files that `walras cluster keys` makes. Checks that they belong together and are valid today.
    pub fn load(authority: &Path, certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let read =
            |path: &Path| std::fs::read(path).map_err(|e| IdentityError::File { path: path.to_path_buf(), detail: e.to_string() });
        Self::from_pem(&read(authority)?, &read(certificate)?, &read(key)?)?.checked()
    }

    /// Parses three PEM texts.
    pub fn from_pem(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let pem = |what: &'static str| move |e: rustls_pki_types::pem::Error| IdentityError::Pem { what, detail: e.to_string() };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(pem("certificate"))?;
        if chain.is_empty() {
            return Err(IdentityError::Pem { what: "certificate", detail: "it is empty".to_owned() });
        }
        Ok(Self {
            authority: CertificateDer::from_pem_slice(authority).map_err(pem("authority's certificate"))?,
            chain,
            key: PrivateKeyDer::from_pem_slice(key).map_err(pem("private key"))?,
        })
    }

    /// The identity in the certificate.
    pub(crate) fn name(&self) -> Option<PeerName> {
        PeerName::of_certificate(&self.chain[0])
    }

    pub(crate) fn certificates(&self) -> Vec<u8> {
        std::iter::once(&self.authority).chain(&self.chain).flat_map(|der| der.as_ref().iter().copied()).collect()
    }

    pub(crate) fn checked(self) -> Result<Self, IdentityError> {
        self.check().map_err(|e| IdentityError::Certificate(e.to_string()))?;
        Ok(self)
    }

    /// Makes the checks that a peer would make.
    fn check(&self) -> Result<(), webpki::Error> {
        let certificate = webpki::EndEntityCert::try_from(&self.chain[0])?;
        let anchors = [webpki::anchor_from_trusted_cert(&self.authority)?];
        let algorithms = provider().signature_verification_algorithms;
        let usage = webpki::KeyUsage::client_auth();
        certificate.verify_for_usage(algorithms.all, &anchors, &self.chain[1..], UnixTime::now(), usage, None, None)?;
        Ok(())
    }
}

/// The rustls configurations for both sides of a connection.
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    pub(crate) me: PeerName,
}

impl Tls {
    pub(crate) fn new(identity: TlsIdentity, me: PeerName) -> Result<Self, SetupError> {
        if identity.name() != Some(me) {
            let found = identity.name().map_or_else(|| "no replica of a cluster".to_owned(), |name| name.to_string());
            return Err(SetupError::NotOurCertificate { me: me.id, cluster_id: me.cluster_id, found });
        }
        let unusable = |e: &dyn fmt::Display| IdentityError::Unusable(e.to_string());
        let TlsIdentity { authority, chain, key } = identity;
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|e| unusable(&e))?;
        let roots = Arc::new(roots);
        let provider = Arc::new(provider());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| unusable(&e))?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|e| unusable(&e))?;
        // Links last for days, so resumption gains nothing, and a full handshake proves the identity each time.
        client.resumption = rustls::client::Resumption::disabled();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build().map_err(|e| unusable(&e))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| unusable(&e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|e| unusable(&e))?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server), me })
    }

    pub(crate) fn dial(&self, id: ReplicaId) -> Result<rustls::Connection, LinkError> {
        let name = PeerName { id, ..self.me }.server_name();
        let mut connection =
            rustls::ClientConnection::new(Arc::clone(&self.client), name).map_err(|e| self.explain(id.into(), &e))?;
        connection.set_buffer_limit(None);
        Ok(connection.into())
    }

    pub(crate) fn answer(&self) -> Result<rustls::Connection, LinkError> {
        let mut connection = rustls::ServerConnection::new(Arc::clone(&self.server)).map_err(|e| self.explain(None, &e))?;
        connection.set_buffer_limit(None);
        Ok(connection.into())
    }

    /// Translates an error of rustls for the operator.
    pub(crate) fn explain(&self, dialled: Option<ReplicaId>, error: &rustls::Error) -> LinkError {
        use CertificateError as Bad;
        match error {
            rustls::Error::InvalidMessage(_) => LinkError::NotTls,
            rustls::Error::NoCertificatesPresented => LinkError::NoCertificate,
            rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => LinkError::ForeignCertificate,
            rustls::Error::InvalidCertificate(
                Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
            ) => LinkError::ExpiredCertificate,
            rustls::Error::InvalidCertificate(Bad::NotValidForNameContext { presented, .. }) => {
                // The library writes them as `DnsName("...")`.
                let found = presented.iter().find_map(|name| PeerName::parse(name.split('"').nth(1).unwrap_or(name)));
                match found {
                    Some(found) => self.misfit(dialled, found),
                    None => LinkError::BadCertificate(format!("it names {}", presented.join(", "))),
                }
            }
            rustls::Error::InvalidCertificate(bad) => LinkError::BadCertificate(bad.to_string()),
            rustls::Error::AlertReceived(alert) => {
                use rustls::AlertDescription as Alert;
                match alert {
                    Alert::CertificateExpired => LinkError::OurCertificateRejected("expired, or not valid yet".to_owned()),
                    Alert::UnknownCA | Alert::DecryptError => {
                        LinkError::OurCertificateRejected("signed by an authority that it does not know".to_owned())
                    }
                    Alert::BadCertificate | Alert::CertificateUnknown | Alert::AccessDenied | Alert::UnsupportedCertificate => {
                        LinkError::OurCertificateRejected("it names another replica or cluster than expected".to_owned())
                    }
                    other => LinkError::Tls(format!("the other side says {other:?}")),
                }
            }
            other => LinkError::Tls(other.to_string()),
        }
    }

    /// The error for a valid certificate that names an unexpected replica or cluster.
    pub(crate) fn misfit(&self, expected: Option<ReplicaId>, found: PeerName) -> LinkError {
        if found.cluster_id != self.me.cluster_id {
            LinkError::WrongCluster { expected: self.me.cluster_id, found: found.cluster_id }
        } else if found.id == self.me.id {
            LinkError::OwnId { id: found.id }
        } else {
            match expected {
                Some(expected) if expected != found.id => LinkError::WrongReplica { expected, found: found.id },
                _ => LinkError::BadCertificate(format!("it names {found}")),
            }
        }
    }
}

/// Of the two providers of rustls, the one that is small and needs only a C compiler.
fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_others_are_none() {
        let name = PeerName { cluster_id: 0xab, id: ReplicaId::new(3).unwrap() };
        assert_eq!(name.to_string(), "replica-3.cluster-00000000000000ab.walras");
        assert_eq!(PeerName::parse(&name.to_string()), Some(name));
        for other in [
            "",
            "replica-0.cluster-00000000000000ab.walras",
            "replica-03.cluster-00000000000000ab.walras",
            "replica-3.cluster-ab.walras",
            "replica-3.cluster-00000000000000AB.walras",
            "replica-3.cluster-00000000000000ab.walras.example",
            "*.cluster-00000000000000ab.walras",
        ] {
            assert_eq!(PeerName::parse(other), None, "{other}");
        }
    }
}
