//! Requests of several commands run to their end, also where the client hangs up between two of them, or has waited for too long.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tungstenite::Message;
use walras_access::connections::Doors;
use walras_access::{now, operator_key_file};
use walras_api::http::{App, AppParts, Server};
use walras_client::{headers, read_key, sign};
use walras_gateway::{ClientKey, Request};
use walras_ports::{ClusterRequest, CommandOrLook, ConnectionId, Doorbell, Inbound, VenueHandle};
use walras_wire::{Command, VenueCommand};

use crate::support::{Market, PATIENCE, Raw, Venue, config, limit, until};

/// Requests that wait at the ports.
const REQUESTS: usize = 16;

/// Further ports of a venue. Their commands reach it when the test lets them.
struct Ports {
    commands: Receiver<Inbound>,
    onward: Sender<Inbound>,
    /// Transfers of leadership that were asked for.
    transfers: Receiver<()>,
    /// Looks at the state and subscriptions that were asked for, in their order.
    looks: Receiver<Look>,
    /// While the test holds it, no request goes on.
    busy: Arc<Mutex<()>>,
    venue: VenueHandle,
    doorbell: Doorbell,
    http: SocketAddr,
    binance: SocketAddr,
    _stop: watch::Sender<bool>,
    _runtime: Runtime,
    _readers: Runtime,
}

impl Ports {
    /// Requests are answered within `patience_ms`.
    fn open(venue: &Venue, patience_ms: u64) -> Self {
        let mut config = config();
        config.binance.listen = "127.0.0.1:0".into();
        config.http.request_timeout_ms = patience_ms;
        // A read to which nothing comes fails.
        config.websocket.ping_interval_ms = 3_600_000;
        let mut parts = venue.node().venue().parts();
        let (onward, doorbell) = (parts.commands.clone(), parts.doorbell.clone());
        let (commands_in, commands) = bounded(16);
        parts.commands = commands_in;
        let busy: Arc<Mutex<()>> = Arc::default();
        let (transfers, looks, requests_in) = pass_requests(parts.requests.clone(), doorbell.clone(), Arc::clone(&busy));
        parts.requests = requests_in;
        let (handle, access, config) = (VenueHandle::new(parts), Arc::clone(venue.node().access()), Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        // Whose sessions never go on: no request waits for them.
        let readers = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (stop, stopping) = watch::channel(false);
        let (server, facade) = {
            let _context = runtime.enter();
            (Server::bind(&config).unwrap(), walras_binance::bind(&config).unwrap().unwrap())
        };
        let (http, binance) = (server.address(), facade.address());
        let threads = runtime.handle().clone();
        let app = App::from(AppParts {
            venue: handle.clone(),
            access: Arc::clone(&access),
            config: Arc::clone(&config),
            clock: None,
            shards: None,
            requests: threads.clone(),
            readers: readers.handle().clone(),
            lists: threads.clone(),
            stopping: stopping.clone(),
        });
        let venue = handle.clone();
        let facade_app = walras_binance::App::new(handle.clone(), access, Arc::clone(&config), threads, stopping.clone());
        let (places, status) = (config.places(), handle.status().clone());
        let doors = Doors::new(places);
        runtime.spawn(walras_binance::serve(Some(facade), facade_app, status.clone(), (doors.clone(), places)));
        runtime.spawn(server.serve(walras_api::router(app), config, status, (doors, places), stopping));
        let (_stop, _runtime, _readers) = (stop, runtime, readers);
        Self { commands, onward, transfers, looks, busy, venue, doorbell, http, binance, _stop, _runtime, _readers }
    }

    /// The next command. Its sender waits.
    fn next(&self) -> Inbound {
        self.commands.recv_timeout(PATIENCE).expect("a command comes")
    }

    fn pass(&self, command: Inbound) {
        self.onward.send(command).unwrap();
        self.doorbell.ring();
    }

    /// Sends a request. Its first command, and the connection that waits for the answer.
    fn begin(&self, to: SocketAddr, path: &str, heads: &str, body: &str) -> (Inbound, TcpStream) {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let request = format!("POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Length: {length}\r\n{heads}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        (self.next(), stream)
    }

    /// Hangs up.
    fn end(mut stream: TcpStream) {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty(), "the server has closed the connection without an answer");
    }

    /// Sends a request and hangs up once its first command is on its way. Its further commands come all the same.
    fn hang_up(&self, to: SocketAddr, path: &str, heads: &str, body: &str, commands: usize) {
        let (first, stream) = self.begin(to, path, heads, body);
        Self::end(stream);
        self.pass(first);
        for _ in 1..commands {
            self.pass(self.next());
        }
    }

    /// A request of the dialect, signed.
    fn hang_up_binance(&self, key: &ClientKey, path: &str, text: &str, commands: usize) {
        let text = format!("{text}&timestamp={}", now().0 / 1_000_000);
        let text = format!("{text}&signature={}", key.sign_text(text.as_bytes()));
        self.hang_up(self.binance, path, &format!("X-MBX-APIKEY: {}\r\n", key.key_id()), &text, commands);
    }

    /// A request of the venue's own API, signed.
    fn hang_up_own(&self, key: &ClientKey, path: &str, body: &Value, commands: usize) {
        let body = body.to_string();
        let fields = sign(key, &Request { method: "POST", path, body: body.as_bytes() });
        let heads: String = headers(&fields).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.hang_up(self.http, path, &heads, &body, commands);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Look {
    Read,
    Subscribe,
}

/// A queue of requests that go on to the venue at once, with notes of transfers of leadership among them, and of looks.
fn pass_requests(
    onward: Sender<walras_ports::Request>,
    doorbell: Doorbell,
    busy: Arc<Mutex<()>>,
) -> (Receiver<()>, Receiver<Look>, Sender<walras_ports::Request>) {
    let ((noted_in, noted), (looks_in, looks), (requests_in, requests)) = (unbounded(), unbounded(), bounded(REQUESTS));
    std::thread::spawn(move || {
        for request in requests {
            if matches!(request, walras_ports::Request::Cluster(ClusterRequest::Transfer(_), _)) {
                let _ = noted_in.send(());
            }
            let look = match &request {
                walras_ports::Request::Read(_) => Some(Look::Read),
                walras_ports::Request::Subscribe { .. } => Some(Look::Subscribe),
                _ => None,
            };
            if let Some(look) = look {
                let _ = looks_in.send(look);
            }
            drop(busy.lock().unwrap());
            // The venue may have stopped.
            let _ = onward.send(request);
            doorbell.ring();
        }
    });
    (noted, looks, requests_in)
}

fn open(market: &Market) -> Vec<Value> {
    let orders = market.alice.signed("GET", "/v1/orders", None).unwrap();
    orders["orders"].as_array().unwrap().clone()
}

fn names(market: &Market) -> Vec<String> {
    open(market).iter().map(|order| order["client_order_id"].as_str().unwrap().to_owned()).collect()
}

fn cancel_all(market: &Market) {
    market.alice.signed("DELETE", "/v1/orders", None).unwrap();
    assert_eq!(open(market), Vec::<Value>::new());
}

const OCO: [(&str, &str); 7] = [
    ("symbol", "BTCUSD"),
    ("side", "BUY"),
    ("quantity", "0.1"),
    ("aboveType", "STOP_LOSS"),
    ("aboveStopPrice", "31000"),
    ("belowType", "LIMIT_MAKER"),
    ("belowPrice", "28000"),
];
const OTOCO: &str = "symbol=BTCUSD&workingType=LIMIT&workingTimeInForce=GTC&workingSide=BUY&workingQuantity=0.1&workingPrice=29000\
                     &pendingSide=SELL&pendingQuantity=0.1&pendingAboveType=TAKE_PROFIT&pendingAboveStopPrice=31000\
                     &pendingBelowType=STOP_LOSS&pendingBelowStopPrice=28000";
const REPLACE: &str = "symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.1&price=28000&newClientOrderId=8\
                       &cancelReplaceMode=STOP_ON_FAILURE&cancelOrigClientOrderId=7";

/// The two orders of a list are linked.
fn are_linked(orders: &[Value]) -> bool {
    orders.len() == 2
        && orders[0]["linked_order_id"] == orders[1]["order_id"]
        && orders[1]["linked_order_id"] == orders[0]["order_id"]
}

#[test]
fn a_client_that_hangs_up_between_two_commands_leaves_no_half() {
    let venue = Venue::start();
    let market = venue.market();
    let ports = Ports::open(&venue, 60_000);
    let key = &market.alice_key;

    let oco = OCO.map(|(name, value)| format!("{name}={value}")).join("&");
    ports.hang_up_binance(key, "/api/v3/orderList/oco", &oco, 2);
    until("both orders of the list stand", || are_linked(&open(&market)));
    cancel_all(&market);

    ports.hang_up_binance(key, "/api/v3/orderList/otoco", OTOCO, 3);
    until("the working order and its two pending ones stand", || open(&market).len() == 3);
    cancel_all(&market);

    market.order(&market.alice, &limit(7, "buy", "0.1", "29000"));
    ports.hang_up_binance(key, "/api/v3/order/cancelReplace", REPLACE, 2);
    until("the order is replaced", || names(&market) == ["8"]);
    cancel_all(&market);

    let mut bracket = limit(9, "buy", "1", "29900");
    bracket["take_profit"] = json!({"trigger": "31000"});
    bracket["stop_loss"] = json!({"trigger": "29000"});
    ports.hang_up_own(key, "/v1/orders", &bracket, 3);
    until("the order and its two exits stand", || open(&market).len() == 3);
    cancel_all(&market);

    // Among several commands too, with what stands behind it.
    (bracket["op"], bracket["client_order_id"]) = ("order".into(), "10".into());
    let mut last = limit(11, "buy", "0.1", "29000");
    last["op"] = "order".into();
    ports.hang_up_own(key, "/v1/orders/batch", &json!({"commands": [bracket, last]}), 4);
    until("the order, its two exits and the last order stand", || open(&market).len() == 4);
    cancel_all(&market);
    bracket.as_object_mut().unwrap().remove("op");

    // What is refused behind the first command is undone: here the entry costs more than there is.
    bracket["size"] = "90".into();
    ports.hang_up_own(key, "/v1/orders", &bracket, 5);
    until("nothing is left", || open(&market).is_empty());

    let operator = read_key(&operator_key_file(&venue.dir)).unwrap();
    ports.hang_up_own(&operator, "/v1/admin/batches", &json!({"name": "main", "assets": ["BTC", "USD"]}), 4);
    until("the batch market is open", || market.operator.get("/v1/batches").unwrap()["batches"][0]["phase"] == "open");
}

/// Sessions of readers, here ones that never go on, keep nobody waiting who asks for a list.
#[test]
fn lists_are_made_while_readers_get_nothing() {
    let venue = Venue::start();
    let ports = Ports::open(&venue, 60_000);
    let mut stream = TcpStream::connect(ports.http).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /v1/instruments HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", ports.http);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// What the log says was asked of the cluster is asked, also where the client has hung up in between.
#[test]
fn what_the_log_notes_of_the_cluster_is_tried() {
    let venue = Venue::start();
    let ports = Ports::open(&venue, 60_000);
    let operator = read_key(&operator_key_file(&venue.dir)).unwrap();
    let (path, body) = ("/v1/admin/cluster/transfer", json!({"replica": 1}).to_string());
    let fields = sign(&operator, &Request { method: "POST", path, body: body.as_bytes() });
    let heads: String = headers(&fields).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (note, stream) = ports.begin(ports.http, path, &heads, &body);
    assert!(matches!(note.command, CommandOrLook::Command(Command::Venue(VenueCommand::NoteClusterRequest(_)))));
    Ports::end(stream);
    assert!(ports.transfers.is_empty(), "nothing is asked of the cluster before the log has the note");
    ports.pass(note);
    ports.transfers.recv_timeout(PATIENCE).expect("the cluster is asked");
}

/// Parameters with a signature, as the WebSocket API takes it: over all of them by name.
fn signed_params(key: &ClientKey, params: &[(&str, &str)]) -> Value {
    let (id, stamp) = (key.key_id().to_string(), (now().0 / 1_000_000).to_string());
    let mut all = params.to_vec();
    all.extend([("apiKey", id.as_str()), ("timestamp", stamp.as_str())]);
    all.sort_unstable();
    let text = all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let signature = key.sign_text(text.as_bytes());
    all.push(("signature", signature.as_str()));
    all.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<Map<_, _>>().into()
}

type Socket = tungstenite::WebSocket<tungstenite::stream::MaybeTlsStream<TcpStream>>;

/// A connection of the WebSocket API on which something was asked.
fn ask(ports: &Ports, method: &str, params: &Value) -> Socket {
    let (mut socket, _) = tungstenite::connect(format!("ws://{}/ws-api/v3", ports.binance)).unwrap();
    let asked = json!({"id": 1, "method": method, "params": params});
    socket.send(Message::text(asked.to_string())).unwrap();
    socket
}

fn answer(mut socket: Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

#[test]
fn a_client_that_has_waited_for_too_long_leaves_no_half() {
    let venue = Venue::start();
    let market = venue.market();
    let ports = Ports::open(&venue, 50);
    let socket = ask(&ports, "orderList.place.oco", &signed_params(&market.alice_key, &OCO));
    let first = ports.next();
    let answer = answer(socket);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(504), &json!(-1007)), "{answer}");
    assert_eq!(open(&market), Vec::<Value>::new(), "its first command was held back");
    ports.pass(first);
    ports.pass(ports.next());
    until("both orders of the list stand", || are_linked(&open(&market)));
}

/// Commands do not wait behind requests, of which the venue takes a few at a time. A stream is answered once the venue has it: what it is
/// asked behind that is answered then.
#[test]
fn a_stream_is_answered_once_the_venue_has_it() {
    let venue = Venue::start();
    let market = venue.market();
    let ports = Ports::open(&venue, 60_000);
    let socket = ask(&ports, "userDataStream.subscribe.signature", &signed_params(&market.alice_key, &[]));
    let mut looks = std::iter::from_fn(|| ports.looks.recv_timeout(PATIENCE).ok());
    assert!(looks.any(|look| look == Look::Subscribe));
    assert_eq!(looks.next(), Some(Look::Read));
    assert_eq!(answer(socket)["status"], 200);
}

/// A connection of streams.
fn streams(ports: &Ports) -> tungstenite::WebSocket<TcpStream> {
    let stream = TcpStream::connect(ports.binance).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    tungstenite::client(format!("ws://{}/ws", ports.binance), stream).unwrap().0
}

/// The next message with a field.
fn heard(socket: &mut tungstenite::WebSocket<TcpStream>, field: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            if message.get(field).is_some() {
                return message;
            }
        }
    }
}

fn subscribe(socket: &mut tungstenite::WebSocket<TcpStream>, names: &[&str]) {
    socket.send(Message::text(json!({"method": "SUBSCRIBE", "params": names, "id": 1}).to_string())).unwrap();
    assert_eq!(heard(socket, "result")["result"], Value::Null);
}

/// Streams are shared: who comes to one later would wait forever, too.
#[test]
fn a_stream_that_the_venue_was_too_busy_to_begin_begins_when_it_is_not() {
    let venue = Venue::start();
    let _market = venue.market();
    let ports = Ports::open(&venue, 60_000);
    let mut socket = streams(&ports);
    subscribe(&mut socket, &["btcusd@trade"]);
    assert_eq!(ports.looks.recv_timeout(PATIENCE), Ok(Look::Subscribe));
    // Once this is answered, all that was asked before has gone on.
    ports.venue.read_blocking(|_| ()).unwrap();
    let busy = ports.busy.lock().unwrap();
    // One more is on its way.
    let mut waiting = 0;
    until("no request has room any more", || {
        let asked = walras_ports::Request::GoOn { connection: ConnectionId::fresh() };
        waiting += usize::from(ports.venue.request(asked).is_ok());
        waiting > REQUESTS
    });
    subscribe(&mut socket, &["btcusd@bookTicker"]);
    drop(busy);
    assert_eq!(heard(&mut socket, "b")["s"], "BTCUSD");
}

#[test]
fn an_accounts_stream_that_is_named_many_times_is_begun_once() {
    let venue = Venue::start();
    let market = venue.market();
    let ports = Ports::open(&venue, 60_000);
    let id = market.alice_key.key_id().to_string();
    let opens = Raw { method: "POST", path: "/api/v3/userDataStream", body: b"", key: None };
    let opened = opens.send_with(&format!("http://{}", ports.binance), [("x-mbx-apikey", id.as_str())]).json();
    let listen_key = opened["listenKey"].as_str().unwrap();
    let mut socket = streams(&ports);
    subscribe(&mut socket, &[listen_key; 100]);
    assert_eq!(ports.looks.try_iter().filter(|look| *look == Look::Subscribe).count(), 1);
}
