//! Bytes of requests, as attackers send them, and a connection on which a well-behaved client asks.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use anyhow::{Context, bail, ensure};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use serde_json::{Value, json};
use walras_client::{headers, sign};
use walras_gateway::{ClientKey, Request};

use crate::limits::PATIENCE;

/// Bytes without a pattern, the same in each run.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    walras_random::Random::new(seed).fill(&mut bytes);
    bytes
}

/// A request, signed where there is a key.
#[must_use]
pub fn request(method: &str, path: &str, body: &str, key: Option<&ClientKey>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: venue\r\n");
    if let Some(key) = key {
        let fields = sign(key, &Request { method, path, body: body.as_bytes() });
        for (name, value) in headers(&fields) {
            text += &format!("{name}: {value}\r\n");
        }
    }
    if !body.is_empty() {
        text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    (text + "\r\n" + body).into_bytes()
}

/// What opens a WebSocket.
#[must_use]
pub fn upgrade() -> Vec<u8> {
    upgrade_to("/v1/ws")
}

/// The same at another path.
#[must_use]
pub fn upgrade_to(path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nhost: venue\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .into_bytes()
}

/// What a WebSocket says first to act for a key.
pub(crate) fn auth(key: &ClientKey) -> Value {
    let fields = sign(key, &Request::WEB_SOCKET);
    let (key, timestamp, nonce, signature) = (fields.key, fields.timestamp, fields.nonce, fields.signature);
    json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature})
}

/// A client's frame with a mask of zeros; `opcode` 1 is text.
#[must_use]
pub fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | opcode];
    match payload.len() {
        len @ 0..126 => bytes.push(0x80 | len as u8),
        len => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// A WebSocket that subscribes to all that there is of the market.
#[must_use]
pub fn subscriber() -> Vec<u8> {
    let mut bytes = upgrade();
    for channel in ["book", "book_orders", "trades", "ticker"] {
        let text = format!(r#"{{"op":"subscribe","channel":"{channel}","instrument":"BTC-USD"}}"#);
        bytes.extend(frame(1, text.as_bytes()));
    }
    for interval in ["1s", "10s", "1m", "5m", "1h"] {
        let text = format!(r#"{{"op":"subscribe","channel":"candles","instrument":"BTC-USD","interval":"{interval}"}}"#);
        bytes.extend(frame(1, text.as_bytes()));
    }
    bytes.extend(frame(1, br#"{"op":"subscribe","channel":"status"}"#));
    bytes
}

/// Connects, from this address of loopback if one is given. Whatever is waited for then is waited for patiently, and not for good.
///
/// # Errors
/// When nobody takes the connection.
pub fn dial(address: &SocketAddr, source: Option<Ipv4Addr>) -> anyhow::Result<TcpStream> {
    let stream = match source {
        None => TcpStream::connect_timeout(address, PATIENCE)?,
        Some(source) => {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            // For so long a connection is waited for, too.
            set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
            bind(&socket, &SocketAddrV4::new(source, 0))?;
            connect(&socket, address)?;
            TcpStream::from(socket)
        }
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A connection that is kept open from one request to the next.
#[derive(Debug)]
pub struct Asker {
    address: SocketAddr,
    source: Option<Ipv4Addr>,
    stream: Option<TcpStream>,
    read: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body.
    ///
    /// # Errors
    /// When it is a refusal.
    pub fn good(self) -> anyhow::Result<Vec<u8>> {
        let Self { status, body } = self;
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}

impl Asker {
    /// One that connects when it asks first.
    ///
    /// # Errors
    /// When that is no address.
    pub fn new(address: &str) -> anyhow::Result<Self> {
        let address: SocketAddr = address.parse().with_context(|| format!("{address} is no address"))?;
        Ok(Self { address, source: None, stream: None, read: Vec::new() })
    }

    /// The same from another address of loopback.
    #[must_use]
    pub fn sent_from(self, source: Ipv4Addr) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Asks, and waits for the answer. A connection that fails is closed, and made again by the next request.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.send(request)?;
        self.hear()
    }

    /// The first half of [`Self::ask`], for those who wait for several connections. Where it goes is a connection that can be waited for.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn send(&mut self, request: &[u8]) -> anyhow::Result<&TcpStream> {
        self.close_unless(|asker| {
            let stream = match &mut asker.stream {
                Some(stream) => stream,
                none => none.insert(dial(&asker.address, asker.source)?),
            };
            Ok(stream.write_all(request)?)
        })?;
        self.stream.as_ref().context("it was sent somewhere")
    }

    /// The second half.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn hear(&mut self) -> anyhow::Result<Answer> {
        self.close_unless(Self::hear_once)
    }

    fn close_unless<T>(&mut self, act: impl FnOnce(&mut Self) -> anyhow::Result<T>) -> anyhow::Result<T> {
        act(self).inspect_err(|_| self.close())
    }

    fn hear_once(&mut self) -> anyhow::Result<Answer> {
        let stream = self.stream.as_mut().context("nothing was asked")?;
        let head = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            more(stream, &mut self.read)?;
        };
        let text = std::str::from_utf8(&self.read[..head])?.to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).context("an answer without a status")?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).map_or(Ok(0), |len| len.trim().parse())?;
        let closes = text.contains("connection: close");
        while self.read.len() < head + length {
            more(stream, &mut self.read)?;
        }
        let body = self.read[head..head + length].to_vec();
        self.read.drain(..head + length);
        if closes {
            self.stream = None;
        }
        Ok(Answer { status, body })
    }

    /// The same; any other status than 200 is an error.
    ///
    /// # Errors
    /// When there is no answer, or a refusal.
    pub fn served(&mut self, request: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.ask(request)?.good()
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.stream = None;
        self.read.clear();
    }
}

fn more(stream: &mut TcpStream, read: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut piece = [0; 16 << 10];
    match stream.read(&mut piece) {
        Ok(0) => bail!("the venue closed the connection"),
        Ok(len) => read.extend_from_slice(&piece[..len]),
        Err(e) if e.kind() == ErrorKind::Interrupted => {}
        Err(e) => return Err(e).context("no answer"),
    }
    Ok(())
}
