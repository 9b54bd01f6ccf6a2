//! A client of the REST API: one request, signed where there is a key.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ureq::http;
use walras_gateway::{ClientKey, Request};

use crate::access::{headers, sign};

/// Why a request has no answer to show.
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
        /// What to do.
        message: String,
        /// What exactly.
        detail: Option<String>,
    },
    /// The venue could not be reached.
    #[error("could not reach {url}: {source}; is the venue running there? name it with --url or WALRAS_URL")]
    Unreachable {
        /// Which address.
        url: String,
        /// What went wrong.
        source: ureq::Error,
    },
    /// What came back is no answer of a venue.
    #[error("{url} answered {status} with something that is no answer of a venue; check --url")]
    NotAVenue {
        /// Which address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// A key is needed.
    #[error("this needs a key: name its file with --key-file or WALRAS_KEY_FILE (the operator's is in the venue's data folder)")]
    NoKey,
    /// The key's file is not one.
    #[error("{path}: {detail}")]
    KeyFile {
        /// Which file.
        path: String,
        /// What is wrong.
        detail: String,
    },
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
        let agent =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30))).build().into();
        Self { agent, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// The same venue with another key.
    #[must_use]
    pub fn with_key(&self, key: ClientKey) -> Self {
        Self { agent: self.agent.clone(), url: self.url.clone(), key: Some(key) }
    }

    /// A public question.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.send("GET", path, None, false)
    }

    /// A signed request.
    pub fn signed(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        self.send(method, path, body, true)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>, is_signed: bool) -> Result<Value, ClientError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let url = format!("{}{path}", self.url);
        let mut request = http::Request::builder().method(method).uri(&url).header("content-type", "application/json");
        if is_signed {
            let key = self.key.as_ref().ok_or(ClientError::NoKey)?;
            let fields = sign(key, &Request { method, path, body: body.as_bytes() });
            for (name, value) in headers(&fields) {
                request = request.header(name, value);
            }
        }
        let unreachable = |source| ClientError::Unreachable { url: self.url.clone(), source };
        let request = request.body(body).map_err(|e| unreachable(e.into()))?;
        let mut response = self.agent.run(request).map_err(unreachable)?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().map_err(unreachable)?;
        let not_a_venue = || ClientError::NotAVenue { url: self.url.clone(), status };
        let answer: Value = serde_json::from_str(&text).map_err(|_| not_a_venue())?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let error = &answer["error"];
        let text = |field: &str| error[field].as_str().map(str::to_owned);
        Err(ClientError::Refused {
            status,
            code: error["code"].as_u64().ok_or_else(not_a_venue)?,
            name: text("name").ok_or_else(not_a_venue)?,
            message: text("message").ok_or_else(not_a_venue)?,
            detail: text("detail"),
        })
    }
}
