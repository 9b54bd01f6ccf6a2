//! A blocking WebSocket connection to the venue, so that a sending thread wakes up on time.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Error, Message, WebSocket};
use ureq::http::Uri;
use walras_gateway::{ClientKey, Request};

use crate::error::LoadError;
use crate::http::ClientError;
use crate::signing::sign;

/// Longest wait of a receiver before it checks for other work.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// Timeout for the venue to read output and to answer a logon.
const STUCK: Duration = Duration::from_secs(10);

/// The relevant content of a venue's message.
#[derive(Debug, Deserialize)]
pub(super) struct Received {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) error: Option<ReceivedError>,
}

/// A refusal.
#[derive(Debug, Deserialize)]
pub(super) struct ReceivedError {
    pub(super) code: u64,
    pub(super) name: String,
    pub(super) message: String,
    pub(super) detail: Option<String>,
}

#[derive(Debug)]
pub(super) struct Connection {
    url: String,
    socket: WebSocket<TcpStream>,
}

impl Connection {
    /// Connects and logs on.
    pub(super) fn open(url: &str, key: &ClientKey) -> Result<Self, LoadError> {
        let not_one = || LoadError::Url { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| not_one())?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(not_one)?;
        let failed = |detail: String| LoadError::Socket { url: url.to_owned(), detail };
        let stream =
            TcpStream::connect((host.trim_matches(['[', ']']), uri.port_u16().unwrap_or(80))).map_err(|e| failed(e.to_string()))?;
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(STUCK)));
        prepared.and_then(|()| stream.set_write_timeout(Some(STUCK))).map_err(|e| failed(e.to_string()))?;
        let authority = uri.authority().ok_or_else(not_one)?;
        let (socket, _) = tungstenite::client(format!("ws://{authority}/v1/ws"), stream).map_err(|e| failed(e.to_string()))?;
        let mut connection = Self { url: url.to_owned(), socket };
        let fields = sign(key, &Request::WEB_SOCKET);
        let (key, timestamp, nonce, signature) = (fields.key, fields.timestamp, fields.nonce, fields.signature);
        let logon: Value = json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature});
        connection.send(logon.to_string())?;
        loop {
            let Some(Received { kind, error, .. }) = connection.receive()? else {
                return Err(connection.failed("no answer to the logon in time"));
            };
            if let Some(error) = error {
                let ReceivedError { code, name, message, detail } = error;
                return Err(ClientError::Refused { status: 200, code, name, message, detail, leader: None }.into());
            }
            if kind == "authenticated" {
                return Ok(connection);
            }
        }
    }

    /// One to send with, one to receive with. The venue's pings, if it sent any, would be answered by the latter.
    pub(super) fn split(self) -> Result<(Self, Self), LoadError> {
        let failed = |e: std::io::Error| LoadError::Socket { url: self.url.clone(), detail: e.to_string() };
        let stream = self.socket.get_ref().try_clone().map_err(failed)?;
        stream.set_read_timeout(Some(LOOK_AROUND)).map_err(failed)?;
        let sender = Self { url: self.url.clone(), socket: WebSocket::from_raw_socket(stream, Role::Client, None) };
        Ok((sender, self))
    }

    pub(super) fn send(&mut self, message: String) -> Result<(), LoadError> {
        self.socket.send(Message::text(message)).map_err(|e| self.failed(&e.to_string()))
    }

    /// The next message; `None` when none came for a while.
    pub(super) fn receive(&mut self) -> Result<Option<Received>, LoadError> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let read = serde_json::from_str(text.as_str());
                    return read.map(Some).map_err(|e| self.failed(&format!("a message that is none of a venue ({e})")));
                }
                Ok(Message::Close(frame)) => {
                    let why = frame.map_or("it closed".to_owned(), |frame| format!("it closed: {} ({})", frame.reason, frame.code));
                    return Err(self.failed(&why));
                }
                Ok(_) => {}
                Err(Error::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(e) => return Err(self.failed(&e.to_string())),
            }
        }
    }

    /// Closes the connection, and ends a send that blocks.
    pub(super) fn close(&mut self) {
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
        // Further messages of the venue are not needed.
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Both);
    }

    fn failed(&self, detail: &str) -> LoadError {
        LoadError::Socket { url: self.url.clone(), detail: detail.to_owned() }
    }
}
