//! A client of the REST API. Requests are signed if there is a key, and signed again if the venue had just started.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use serde_json::Value;
use ureq::http;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use walras_access::{STAMP_AGE_NS_MAX, STAMP_AHEAD_NS_MAX, now};
use walras_gateway::{ClientKey, Request};
use walras_types::{RejectReason, TimeNs};

use crate::signing::{headers, sign_at};

/// Longest wait until the venue accepts a request's stamp.
const WAIT_NS_MAX: u64 = 2_000_000_000;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The venue refused it.
    #[error("refused: {name} ({code}): {message}{}", detail.as_deref().map(|d| format!(" [{d}]")).unwrap_or_default())]
    Refused {
        /// HTTP status.
        status: u16,
        /// The reason's number.
        code: u64,
        /// The reason's name.
        name: String,
        /// Advice.
        message: String,
        /// Details.
        detail: Option<String>,
        /// The leading replica, if this one does not lead.
        leader: Option<String>,
    },
    /// The venue could not be reached.
    #[error("could not reach {url}: {source}; is the venue running there? name it with --url or WALRAS_URL")]
    Unreachable {
        /// Which address.
        url: String,
        /// What went wrong.
        source: ureq::Error,
    },
    /// The response is not one of a venue.
    #[error("{url} answered {status} with something that is no answer of a venue; check --url")]
    NotAVenue {
        /// Which address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// A key is needed.
    #[error(
        "this needs a key: name its file with --key or WALRAS_KEY_FILE. Orders, offers and balances need a trading key: a demo has one in trader.key in its \
         data folder, and an operator makes others with `walras admin key --account ID --out FILE`. Operator commands need operator.key in the venue's \
         data folder"
    )]
    NoKey,
    /// The key's file is not one.
    #[error("{path}: {detail}")]
    KeyFile {
        /// The file.
        path: String,
        /// The fault.
        detail: String,
    },
    /// The file with the certificate authority is invalid.
    #[error("{path}: {detail}; name a file with the certificates, in PEM, of the authority that signs that of the address")]
    TrustFile {
        /// The file.
        path: String,
        /// The fault.
        detail: String,
    },
}

impl ClientError {
    /// Whether the venue refused for this reason.
    #[must_use]
    pub fn is(&self, reason: RejectReason) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == u64::from(reason.number()))
    }

    /// Whether the same request may succeed a moment later, here or elsewhere: the venue was not reached, or was not able to
    /// answer.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NotAVenue { status, .. } => *status >= 500,
            Self::Refused { status, .. } => matches!(status, 421 | 429 | 503),
            Self::NoKey | Self::KeyFile { .. } | Self::TrustFile { .. } => false,
        }
    }

    /// Parses a body as a refusal.
    #[must_use]
    pub fn of_body(status: u16, body: &Value) -> Option<Self> {
        let error = &body["error"];
        let text = |field: &str| error[field].as_str().map(str::to_owned);
        let leader = error["leader"]["url"].as_str().map(str::to_owned);
        let code = error["code"].as_u64()?;
        Some(Self::Refused { status, code, name: text("name")?, message: text("message")?, detail: text("detail"), leader })
    }

    fn with_detail(mut self, more: &str) -> Self {
        if let Self::Refused { detail, .. } = &mut self {
            let said = detail.take().map(|said| said + " ").unwrap_or_default();
            *detail = Some(said + more);
        }
        self
    }
}

/// Data about a refused stamp: the two clocks at one moment, and the first stamp that the venue accepts since its start.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    own: TimeNs,
    venue: TimeNs,
    takes_from: TimeNs,
}

impl Clocks {
    /// How long until the venue accepts the later of its first stamp and this computer's time; or why waiting does not help.
    fn wait_ns(&self) -> Result<u64, String> {
        let Self { own: TimeNs(own), venue: TimeNs(venue), takes_from: TimeNs(takes_from) } = *self;
        let (ahead_ns, behind_ns) = (own.saturating_sub(venue), venue.saturating_sub(own));
        if ahead_ns > STAMP_AHEAD_NS_MAX || behind_ns > STAMP_AGE_NS_MAX {
            let (off_ns, side) = if ahead_ns > 0 { (ahead_ns, "ahead of") } else { (behind_ns, "behind") };
            return Err(format!("This computer's clock is {} ms {side} the venue's: set it.", off_ns / 1_000_000));
        }
        let wait_ns = takes_from.saturating_sub(STAMP_AHEAD_NS_MAX).saturating_sub(venue);
        if wait_ns > WAIT_NS_MAX {
            let seconds = wait_ns.div_ceil(1_000_000_000);
            return Err(format!("The venue's clock was set back and it takes nothing for {seconds} s: ask its operator, or wait."));
        }
        Ok(wait_ns)
    }
}

/// The trusted certificate authorities for `https://` addresses; none by default.
#[derive(Clone, Debug, Default)]
pub struct Trust(Vec<Certificate<'static>>);

impl Trust {
    /// Reads a file of certificates in PEM.
    pub fn read(path: &Path) -> Result<Self, ClientError> {
        let fail = |detail: String| ClientError::TrustFile { path: path.display().to_string(), detail };
        let text = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
        let mut certificates = Vec::new();
        for item in parse_pem(&text) {
            if let PemItem::Certificate(certificate) = item.map_err(|e| fail(e.to_string()))? {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() { Err(fail("it holds no certificate".to_owned())) } else { Ok(Self(certificates)) }
    }

    pub(crate) fn certificates(&self) -> impl Iterator<Item = CertificateDer<'static>> {
        self.0.iter().map(|certificate| CertificateDer::from(certificate.der().to_vec()))
    }
}

/// A venue and, perhaps, a key to sign with.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
    key: Option<ClientKey>,
}

/// Reads a key file: one line, `<key id>.<secret>`.
pub fn read_key(path: &Path) -> Result<ClientKey, ClientError> {
    let fail = |detail: String| ClientError::KeyFile { path: path.display().to_string(), detail };
    let text = std::fs::read_to_string(path).map_err(|e| fail(format!("{e}; check the path given with --key-file")))?;
    ClientKey::from_token(text.trim()).map_err(|e| fail(e.to_string()))
}

impl Client {
    /// For the venue at `url`, such as `http://127.0.0.1:7070`.
    #[must_use]
    pub fn new(url: &str, key: Option<ClientKey>) -> Self {
        Self::with_patience(url, key, Duration::from_secs(30))
    }

    /// The same with another longest wait for an answer.
    #[must_use]
    pub fn with_patience(url: &str, key: Option<ClientKey>, patience: Duration) -> Self {
        Self::trusting(url, key, patience, &Trust::default())
    }

    /// The same for an address that may begin with `https://`.
    #[must_use]
    pub fn trusting(url: &str, key: Option<ClientKey>, patience: Duration, trust: &Trust) -> Self {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&trust.0))
            .build();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(patience)).tls_config(tls);
        Self { agent: agent.build().into(), url: url.trim_end_matches('/').to_owned(), key }
    }

    /// The venue's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same venue with another key.
    #[must_use]
    pub fn with_key(&self, key: ClientKey) -> Self {
        Self { agent: self.agent.clone(), url: self.url.clone(), key: Some(key) }
    }

    /// The same key at another address.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        Self { agent: self.agent.clone(), url: url.trim_end_matches('/').to_owned(), key: self.key.clone() }
    }

    /// A public query.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.send("GET", path, "", None)
    }

    /// A public query with a further header.
    pub fn get_with(&self, path: &str, header: Option<(&str, &str)>) -> Result<Value, ClientError> {
        self.send_with("GET", path, "", None, header)
    }

    /// Sends a body that authenticates itself. If the replica does not lead, the request goes to the leader that it names.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        match self.send("POST", path, &body.to_string(), None) {
            Err(ClientError::Refused { leader: Some(leader), .. }) => {
                Self { agent: self.agent.clone(), url: leader, key: None }.send("POST", path, &body.to_string(), None)
            }
            answered => answered,
        }
    }

    /// A signed request. If the replica does not lead, it has not executed the request, which is sent once to the leader that it
    /// names.
    pub fn signed(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        match self.signed_here(method, path, body) {
            Err(ClientError::Refused { leader: Some(leader), .. }) => self.at(&leader).signed_here(method, path, body),
            answered => answered,
        }
    }

    /// A signed question whose answer comes in pages: the first one's, with what all of them have under `list`.
    pub fn signed_pages(&self, path: &str, list: &str) -> Result<Value, ClientError> {
        let mut all = self.signed("GET", path, None)?;
        let separator = if path.contains('?') { '&' } else { '?' };
        while let Some(next) = all["next"].as_str() {
            let mut page = self.signed("GET", &format!("{path}{separator}cursor={next}"), None)?;
            all["next"] = page["next"].take();
            if let (Value::Array(all), Value::Array(more)) = (&mut all[list], page[list].take()) {
                all.extend(more);
            }
        }
        Ok(all)
    }

    /// A signed question whose answer has all that was acknowledged before it, by whichever replica.
    pub fn signed_latest(&self, path: &str) -> Result<Value, ClientError> {
        self.signed_with("GET", path, None, Some(("walras-consistency", "linearizable")))
    }

    /// A signed request to this replica only. If another one leads, the refusal is returned.
    pub fn signed_here(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        self.signed_with(method, path, body, None)
    }

    fn signed_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        header: Option<(&str, &str)>,
    ) -> Result<Value, ClientError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let refused = match self.send_with(method, path, &body, Some(now()), header) {
            Err(refused) if refused.is(RejectReason::TimestampStale) => refused,
            answered => return answered,
        };
        // It was refused, so it may be sent again. Most likely the venue has just started.
        let clocks = self.clocks()?;
        let wait_ns = clocks.wait_ns().map_err(|why| refused.with_detail(&why))?;
        std::thread::sleep(Duration::from_nanos(wait_ns)); // pause: the passing of time is what it waits for
        self.send_with(method, path, &body, Some(now().max(clocks.takes_from)), header)
    }

    fn clocks(&self) -> Result<Clocks, ClientError> {
        let nanoseconds = |answer: &Value, field: &str| answer[field].as_str().and_then(|text| text.parse().ok()).map(TimeNs);
        let status = self.get("/v1/status")?;
        let asked = now();
        let venue = nanoseconds(&self.get("/v1/time")?, "time_ns");
        let own = TimeNs(asked.0.midpoint(now().0));
        // A venue of another version may not report the first stamp that it accepts; then only the clocks count.
        let takes_from = nanoseconds(&status, "accepts_timestamps_from_ns").unwrap_or(TimeNs(0));
        Ok(Clocks { own, venue: venue.unwrap_or(own), takes_from })
    }

    /// Sends a request, signed where there is a stamp to sign with.
    fn send(&self, method: &str, path: &str, body: &str, stamp: Option<TimeNs>) -> Result<Value, ClientError> {
        self.send_with(method, path, body, stamp, None)
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        body: &str,
        stamp: Option<TimeNs>,
        header: Option<(&str, &str)>,
    ) -> Result<Value, ClientError> {
        let url = format!("{}{path}", self.url);
        let mut request = http::Request::builder().method(method).uri(&url).header("content-type", "application/json");
        if let Some(stamp) = stamp {
            let key = self.key.as_ref().ok_or(ClientError::NoKey)?;
            let fields = sign_at(stamp, key, &Request { method, path, body: body.as_bytes() });
            for (name, value) in headers(&fields) {
                request = request.header(name, value);
            }
        }
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let unreachable = |source| ClientError::Unreachable { url: self.url.clone(), source };
        let request = request.body(body.to_owned()).map_err(|e| unreachable(e.into()))?;
        let mut response = self.agent.run(request).map_err(unreachable)?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().map_err(unreachable)?;
        let not_a_venue = || ClientError::NotAVenue { url: self.url.clone(), status };
        let answer: Value = serde_json::from_str(&text).map_err(|_| not_a_venue())?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        Err(ClientError::of_body(status, &answer).unwrap_or_else(not_a_venue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_stale_stamp_is_waited_for_or_explained() {
        let venue = 1_000 * SECOND;
        let wait = |own, takes_from| {
            let clocks = Clocks { own: TimeNs(own), venue: TimeNs(venue), takes_from: TimeNs(takes_from) };
            clocks.wait_ns()
        };
        // The venue started a moment ago: its first stamp is taken at once. Or it was the network that took too long.
        assert_eq!(wait(venue, venue + SECOND), Ok(0));
        assert_eq!(wait(venue, venue - 60 * SECOND), Ok(0));
        assert_eq!(wait(venue + SECOND, venue + 3 * SECOND), Ok(2 * SECOND));
        assert_eq!(wait(venue - 5 * SECOND, venue + SECOND + 1), Ok(1));
        for (own, takes_from, why) in [
            (venue, venue + 3 * SECOND + 1, "takes nothing for 3 s"),
            (venue + SECOND + 1, 0, "clock is 1000 ms ahead of the venue's"),
            (venue - 7 * SECOND, venue + SECOND, "clock is 7000 ms behind the venue's"),
        ] {
            let said = wait(own, takes_from).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    /// An address with TLS that answers everything with `{}`: its certificate in PEM, and where it is.
    fn tls_venue(requests: usize) -> (String, String, std::thread::JoinHandle<usize>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = std::net::TcpListener::bind("localhost:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let config = Arc::new(config);
        let serve = move || {
            let mut answered = 0;
            for _ in 0..requests {
                let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(connection, listener.accept().unwrap().0);
                let (mut read, mut piece) = (Vec::new(), [0; 512]);
                while !read.ends_with(b"\r\n\r\n") {
                    match std::io::Read::read(&mut stream, &mut piece) {
                        Ok(count) if count > 0 => read.extend_from_slice(&piece[..count]),
                        _ => break,
                    }
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                answered += usize::from(!read.is_empty() && std::io::Write::write_all(&mut stream, answer).is_ok());
            }
            answered
        };
        (made.cert.pem(), url, std::thread::spawn(serve))
    }

    #[test]
    fn an_address_with_tls_is_who_it_was_signed_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (certificate, url, served) = tls_venue(3);
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
        let ask = |trust: &Trust| Client::trusting(&url, None, Duration::from_secs(20), trust).get("/v1/status");
        assert_eq!(ask(&Trust::read(&file("own.pem", &certificate)).unwrap()).unwrap(), serde_json::json!({}));
        for stranger in [Trust::default(), Trust::read(&file("other.pem", &other)).unwrap()] {
            assert!(matches!(ask(&stranger), Err(ClientError::Unreachable { .. })), "{stranger:?}");
        }
        assert_eq!(served.join().unwrap(), 1);
        for wrong in [file("empty.pem", ""), file("text.pem", "no certificate"), folder.path().join("none.pem")] {
            let said = Trust::read(&wrong).unwrap_err().to_string();
            assert!(said.contains(".pem") && said.contains("in PEM"), "{said}");
        }
    }
}
