//! A connection to order entry: plain, or TLS 1.3 with a venue that shows a certificate which the client trusts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned};

use crate::error::LoadError;
use crate::http::Trust;

/// Which certificates of order entry a client takes: one of a file, whatever name it has, such as the one that a venue made for
/// itself; or one for the address that is asked, signed by an authority of the file.
#[derive(Clone, Debug)]
pub struct EntryTrust(Arc<ClientConfig>);

impl EntryTrust {
    /// By the certificates of a file.
    ///
    /// # Errors
    /// They are none that can be trusted.
    pub fn new(trust: &Trust) -> Result<Self, LoadError> {
        let fault = |detail: String| LoadError::Cluster(format!("the certificates for order entry cannot be used: {detail}"));
        let pinned: Vec<CertificateDer<'static>> = trust.certificates().collect();
        let mut roots = RootCertStore::empty();
        for certificate in &pinned {
            roots.add(certificate.clone()).map_err(|e| fault(e.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|e| fault(e.to_string()))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| fault(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinnedOrSigned { pinned, signed }))
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

#[derive(Debug)]
struct PinnedOrSigned {
    pinned: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for PinnedOrSigned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pinned.iter().any(|pinned| pinned == shown) {
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// A connection that never blocks.
pub enum EntryStream {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl EntryStream {
    /// Connects. A handshake goes on with reads and writes.
    ///
    /// # Errors
    /// Nobody is there, or the address has no name to be shown a certificate for.
    pub fn connect(address: &str, trust: Option<&EntryTrust>) -> io::Result<Self> {
        let socket: SocketAddr = address.to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&socket, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let Some(EntryTrust(config)) = trust else { return Ok(Self::Plain(stream)) };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        // The first message of the handshake.
        match stream.flush() {
            Err(e) if e.kind() != ErrorKind::WouldBlock => Err(e),
            _ => Ok(Self::Tls(Box::new(stream))),
        }
    }

    /// Whether something that was written has still to be sent: flush it when the socket takes more.
    #[must_use]
    pub fn has_output(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.wants_write(),
        }
    }
}

impl Read for EntryStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for EntryStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for EntryStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }
}
