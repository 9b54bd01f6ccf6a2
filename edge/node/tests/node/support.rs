//! A venue on loopback with a small market, and clients for it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::RwLock;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use walras_access::{Clock, operator_key_file};
use walras_api::json::batches::{hex, unhex};
use walras_batch_signatures::SigningKey;
use walras_client::{Client, ClientError, headers, read_key, sign};
use walras_config::Config;
use walras_gateway::{ClientKey, Request};
use walras_log_store::{Disk, RealDisk};
use walras_node::node::Node;
use walras_replica_log::Dump;
use walras_sequencer::{Entry, decode_entry};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, LogIndex, Payment,
    Rounding, TransactionSeq,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use crate::schema::kind_of_sent;

/// A new process holds, until it runs its own program, what this one has open: the locks of venues that other tests run in here too.
static FORKING: RwLock<()> = RwLock::new(());

/// Starts a program; returns once it runs.
pub(crate) fn spawn(command: &mut Command) -> Child {
    let _forking = FORKING.write().unwrap();
    command.spawn().unwrap()
}

/// Starts a node where one was stopped, once no new process can hold that one's locks any more.
pub(crate) fn restart<D: Disk>(disk: D, dir: &Path, config: &Config) -> Node {
    restart_by(Clock::system(), disk, dir, config)
}

/// The same by a clock of the test's own.
pub(crate) fn restart_by<D: Disk>(clock: Clock, disk: D, dir: &Path, config: &Config) -> Node {
    drop(FORKING.read().unwrap());
    Node::start_on(disk, clock, dir, config).unwrap()
}

/// Longest that a test waits for something that should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) use walras_wait::until;

/// A configuration for tests: a free port, small segments, no ticks between a test's own entries.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.http.listen = "127.0.0.1:0".into();
    config.order_entry.listen = "127.0.0.1:0".into();
    config.log.segment_bytes = 1 << 20;
    config.log.tick_interval_ms = 86_400_000;
    config.websocket.updates_per_second = 100;
    config
}

/// A running node in a folder of its own.
pub(crate) struct Venue {
    pub(crate) node: Option<Node>,
    pub(crate) dir: PathBuf,
    _temporary: Option<TempDir>,
}

impl Venue {
    pub(crate) fn start() -> Self {
        Self::with(&config())
    }

    pub(crate) fn with(config: &Config) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().to_path_buf();
        let node = Node::start(&dir, config).unwrap();
        Self { node: Some(node), dir, _temporary: Some(temporary) }
    }

    pub(crate) fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.node().address())
    }

    pub(crate) fn operator(&self) -> Client {
        operator(&self.url(), &self.dir)
    }

    /// A BTC/USD market (tick 0.25, lot 0.0001) that is open, and two funded accounts with their clients.
    pub(crate) fn market(&self) -> Market {
        market(&self.operator())
    }

    /// Stops the node; its folder stays.
    pub(crate) fn stop(&mut self) {
        self.node.take().unwrap().stop();
        drop(FORKING.read().unwrap());
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop();
        }
    }
}

pub(crate) fn operator(url: &str, dir: &Path) -> Client {
    Client::new(url, Some(read_key(&operator_key_file(dir)).unwrap()))
}

pub(crate) struct Market {
    pub(crate) operator: Client,
    pub(crate) alice: Client,
    pub(crate) alice_key: ClientKey,
    pub(crate) bob: Client,
    pub(crate) bob_key: ClientKey,
}

/// Creates the market; the accounts are 0 (alice) and 1 (bob).
pub(crate) fn market(operator: &Client) -> Market {
    let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).unwrap();
    post("/v1/admin/assets", json!({"symbol": "BTC", "decimals": 8}));
    post("/v1/admin/assets", json!({"symbol": "USD", "decimals": 6}));
    post(
        "/v1/admin/instruments",
        json!({
            "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001",
            "reference_price": "30000", "maker_fee_ppm": 100, "taker_fee_ppm": 200,
        }),
    );
    post("/v1/admin/phases", json!({"instrument": "BTC-USD", "phase": "continuous"}));
    let keys = [0, 1].map(|account| {
        assert_eq!(post("/v1/admin/accounts", json!({}))["account_id"], account);
        post("/v1/admin/deposits", json!({"account_id": account, "asset": "USD", "amount": "1000000", "transfer_id": "1"}));
        post("/v1/admin/deposits", json!({"account_id": account, "asset": "BTC", "amount": "100", "transfer_id": "2"}));
        key(operator, account, &["read", "trade"])
    });
    let [alice_key, bob_key] = keys;
    let client = |key: &ClientKey| operator.with_key(key.clone());
    Market { alice: client(&alice_key), bob: client(&bob_key), operator: operator.clone(), alice_key, bob_key }
}

/// Makes a key at the venue.
pub(crate) fn key(operator: &Client, account: u32, permissions: &[&str]) -> ClientKey {
    let body = json!({"account_id": account, "permissions": permissions});
    let made = operator.signed("POST", "/v1/admin/keys", Some(&body)).unwrap();
    ClientKey::from_token(made["key"].as_str().unwrap()).unwrap()
}

/// The log and the snapshots in a data folder.
pub(crate) fn replica_dir(data: &Path) -> PathBuf {
    data.join("replica")
}

/// Every entry of the log in a data folder that no venue has open, from its beginning.
pub(crate) fn entries_of_log(data: &Path) -> Vec<Entry> {
    let dump = Dump::open_whole(&RealDisk, &replica_dir(data)).unwrap();
    let mut decided = dump.decided().unwrap().expect("its log indexes are known");
    let mut entries = Vec::new();
    while let Some(committed) = decided.next().unwrap() {
        for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
            entries.push(decode_entry(log_index, bytes).unwrap());
        }
    }
    entries
}

/// A limit order's body.
pub(crate) fn limit(id: u64, side: &str, size: &str, price: &str) -> Value {
    json!({"instrument": "BTC-USD", "client_order_id": id.to_string(), "side": side, "type": "limit", "size": size, "price": price})
}

impl Market {
    pub(crate) fn order(&self, client: &Client, body: &Value) -> Value {
        client.signed("POST", "/v1/orders", Some(body)).unwrap()
    }
}

/// Who signs transactions for an account.
pub(crate) struct Signer {
    pub(crate) account: u32,
    key: SigningKey,
    domain: SigningDomain,
}

impl Signer {
    /// A key that follows from the account; `domain` is the market's.
    pub(crate) fn new(account: u32, domain: &str) -> Self {
        let seed = std::array::from_fn(|place| (account >> (8 * (place % 4))) as u8 ^ 0x5a);
        let domain = <[u8; 32]>::try_from(unhex(domain).unwrap()).unwrap();
        Self { account, key: SigningKey::from_seed(&seed), domain: SigningDomain::new(&domain) }
    }

    pub(crate) fn public_key(&self) -> String {
        hex(&self.key.public_key().0)
    }

    pub(crate) fn public_key_bytes(&self) -> [u8; 32] {
        self.key.public_key().0
    }

    pub(crate) fn sign(&self, sequence: u64, operation: BatchOperation) -> String {
        let transaction = BatchTransaction::new(AccountId(self.account), TransactionSeq(sequence), operation);
        let mut bytes = Vec::new();
        encode_signed_transaction(&self.key.sign(&self.domain, &transaction), &mut bytes);
        hex(&bytes)
    }

    /// Sells units of an asset for those of another, at so many units each at least.
    pub(crate) fn offer(&self, sequence: u64, sell: u32, buy: u32, units: u64, limit: &str) -> String {
        let limit = BatchPrice::from_decimal(limit, Rounding::Up).unwrap();
        let (market, amount) = (BatchMarketId(0), Amount::new(units).unwrap());
        self.sign(
            sequence,
            BatchOperation::CreateOffer(CreateOffer { market, sell: AssetId(sell), buy: AssetId(buy), amount, limit }),
        )
    }

    pub(crate) fn pay(&self, sequence: u64, to: u32, asset: u32, units: u64) -> String {
        let (to, asset, amount) = (AccountId(to), AssetId(asset), Amount::new(units).unwrap());
        self.sign(sequence, BatchOperation::Payment(Payment { to, asset, amount }))
    }
}

/// Sends transactions; what came of each.
pub(crate) fn send(client: &Client, batch: &str, transactions: &[String]) -> Vec<Value> {
    let body = json!({"transactions": transactions}).to_string();
    let url = client.url().to_owned();
    let answer =
        Raw { method: "POST", path: &format!("/v1/batches/{batch}/transactions"), body: body.as_bytes(), key: None }.send(&url);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["results"].as_array().unwrap().clone()
}

/// Asks until a market's blocks hold so many transactions, which they do an interval later; the blocks, newest first.
pub(crate) fn wait_for_transactions(client: &Client, batch: &str, transactions: u64) -> Value {
    walras_wait::until_ok("the transactions are in blocks", || {
        let blocks = client.get(&format!("/v1/batches/{batch}/blocks?limit=1000")).unwrap()["blocks"].clone();
        let sum: u64 = blocks.as_array().unwrap().iter().map(|block| block["transactions"].as_u64().unwrap()).sum();
        if sum >= transactions { Ok(blocks) } else { Err(format!("{sum} of {transactions} in {blocks}")) }
    })
}

/// The code of a refusal.
pub(crate) fn code(result: Result<Value, ClientError>) -> u64 {
    match result {
        Err(ClientError::Refused { code, .. }) => code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A request as it is, signed or not.
pub(crate) struct Raw<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) key: Option<&'a ClientKey>,
}

pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) text: String,
}

impl RawAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(crate) fn code(&self) -> u64 {
        self.json()["error"]["code"].as_u64().unwrap_or_else(|| panic!("no error: {}", self.text))
    }
}

impl Raw<'_> {
    pub(crate) fn send(&self, url: &str) -> RawAnswer {
        let signed = self.key.map(|key| sign(key, &Request { method: self.method, path: self.path, body: self.body }));
        let headers = signed.as_ref().map(headers).unwrap_or_default();
        self.send_with(url, headers)
    }

    pub(crate) fn send_with<'h>(&self, url: &str, headers: impl IntoIterator<Item = (&'static str, &'h str)>) -> RawAnswer {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
        let mut request = ureq::http::Request::builder().method(self.method).uri(format!("{url}{}", self.path));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let mut response = agent.run(request.body(self.body.to_vec()).unwrap()).unwrap();
        let headers = response.headers().clone();
        let content_type = headers.get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        RawAnswer { status: response.status().as_u16(), content_type, text: response.body_mut().read_to_string().unwrap(), headers }
    }
}

/// A WebSocket client that blocks.
pub(crate) struct Socket {
    runtime: tokio::runtime::Runtime,
    stream: WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>,
}

impl Socket {
    pub(crate) fn connect(url: &str) -> Self {
        Self::connect_with(url, None)
    }

    /// With a small receive buffer in the operating system, so that not reading shows soon.
    pub(crate) fn connect_with(url: &str, receive_buffer: Option<u32>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let address: std::net::SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            if let Some(bytes) = receive_buffer {
                socket.set_recv_buffer_size(bytes).unwrap();
            }
            let tcp = socket.connect(address).await.unwrap();
            let url = format!("ws://{address}/v1/ws");
            tokio_tungstenite::client_async(url, MaybeTlsStream::Plain(tcp)).await.unwrap().0
        });
        Self { runtime, stream }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(Message::Text(message.to_string().into()));
    }

    pub(crate) fn send_raw(&mut self, message: Message) {
        self.runtime.block_on(self.stream.send(message)).unwrap();
    }

    /// The next message, or the close code. Pings do not count: a venue that has nothing to say goes on sending them.
    pub(crate) fn next(&mut self) -> Result<Value, Option<u16>> {
        self.next_by(Instant::now() + PATIENCE)
    }

    fn next_by(&mut self, deadline: Instant) -> Result<Value, Option<u16>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let next = self.runtime.block_on(async { tokio::time::timeout(left, self.stream.next()).await });
            return match next.expect("a message comes in time") {
                Some(Ok(Message::Text(text))) => {
                    let message = serde_json::from_str(text.as_str()).unwrap();
                    // Whatever a test makes the venue send is described.
                    kind_of_sent(&message).unwrap_or_else(|e| panic!("{e}"));
                    Ok(message)
                }
                Some(Ok(Message::Close(frame))) => Err(frame.map(|f| f.code.into())),
                Some(Err(_)) | None => Err(None),
                // The library answers it with the next read.
                Some(Ok(Message::Ping(_))) => continue,
                Some(Ok(other)) => panic!("unexpected {other:?}"),
            };
        }
    }

    /// The next message of a type; others are passed over.
    pub(crate) fn next_of(&mut self, kind: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.next_by(deadline).unwrap();
            if message["type"] == kind {
                return message;
            }
            assert!(kind == "error" || message["type"] != "error", "{message}");
        }
    }

    pub(crate) fn ask(&mut self, message: &Value, kind: &str) -> Value {
        self.send(message);
        self.next_of(kind)
    }

    pub(crate) fn authenticate(&mut self, key: &ClientKey) -> Value {
        let fields = sign(key, &Request::WEB_SOCKET);
        let (key, timestamp, nonce, signature) = (fields.key, fields.timestamp, fields.nonce, fields.signature);
        self.ask(
            &json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature}),
            "authenticated",
        )
    }
}
