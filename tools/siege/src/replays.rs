//! Somebody who sees all that participants send, and sends it again: a logon, a whole connection, signed requests, the operator's too; to
//! the same replica and to the others, before the leader dies and after; or writes frames into a session that is not theirs.
//!
//! Everything runs against three replicas with fair access, so that each of them lets participants in. Bytes are taken where they
//! leave the client, as on a line that somebody reads.
//!
//! *What counts as accepted*: any answer other than a refusal, and anything that took effect: accounts, positions and open orders are
//! counted at the end. A replica that does not lead lets a copy of a WebSocket's first message read what its key may read, as
//! `docs/websocket.md` says; that is counted by itself, and an order by such a connection has to be refused. A refusal counts for nothing unless it is for the reason that is there for it: a copy that is refused because
//! it is old shows nothing, and ends the run with an error.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use walras_access::now;
use walras_client::{headers, sign_at};
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, Wish};
use walras_gateway::{AuthFields, ClientKey, Request};
use walras_types::{
    AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, RejectReason, SessionSeq, Side, SizeLots, TimeNs,
};
use walras_wire::order_entry::{
    ByeReason, ClientMessage, FRAME_HEADER_BYTES, ReportsWanted, VenueMessage, decode_venue, encode_client, frame_len, split_frame,
};
use walras_wire::{Command, NewOrder, OrderCommand, encode_command};

use crate::limits::RECOVERY;
use crate::venue::{ACCOUNTS, Participant, Place, Shape, Venue};
use crate::wire::{Answer, Asker};

/// Orders that a recorded connection places, far below the market.
const ORDERS: u64 = 5;
/// What an intruder calls an order.
const FORGED: u64 = 666_666;
/// How long nothing is heard of a frame that no seal follows.
const UNSEALED_WAIT: Duration = Duration::from_millis(200);
const FAR_BELOW_TICKS: i64 = 116_000;
/// How far ahead of its time a recorded request is stamped: as late as a gateway takes it, so that its copies are not refused for their age.
const AHEAD_NS: u64 = 800_000_000;

/// What was sent again, and what of it was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Copies and forged frames that were sent.
    pub sent: u64,
    /// What was accepted, in words.
    pub accepted: Vec<String>,
    /// Copies that were let in to read, by replicas that do not lead.
    pub readers: u64,
}

impl Replayed {
    fn note(&mut self, accepted: Option<String>) {
        self.sent += 1;
        self.accepted.extend(accepted);
    }
}

/// Records and replays everything, against replicas in this folder, which is emptied first.
///
/// # Errors
/// When the venue does not come up, refuses what is sent for the first time, or refuses a copy for its age.
pub fn run(program: &Path, dir: &Path) -> anyhow::Result<Replayed> {
    let mut venue = Venue::start(program, dir, Shape::Fair, None)?;
    let mut replayed = Replayed::default();
    let [trader, maker, taker] = [0, 1, 2].map(|at| venue.participants[at].clone());
    let connection = Connection::recorded(&trader, &venue.places[0].orders)?;
    offer(&venue, &maker)?;
    for place in venue.places.clone() {
        connection.replay(&place, &mut replayed)?;
        write_unsealed(&trader, &place, &mut replayed)?;
    }

    let requests = Requests::recorded(&venue, &taker.key)?;
    requests.replay(&venue, &mut replayed)?;
    let dead = venue.kill_leader()?;
    requests.replay(&venue, &mut replayed)?;
    for place in venue.places.clone() {
        connection.replay(&place, &mut replayed)?;
    }
    let back = venue.start_again(dead)?;
    connection.replay(&back, &mut replayed)?;
    write_unsealed(&trader, &back, &mut replayed)?;

    replayed.accepted.extend(effects(&venue, &trader, &taker)?);
    venue.replicas_agree()?;
    venue.stop()?;
    Ok(replayed)
}

/// What there is more than what was sent for the first time.
fn effects(venue: &Venue, trader: &Participant, taker: &Participant) -> anyhow::Result<Vec<String>> {
    let mut accepted = Vec::new();
    let place = &venue.places[0];
    let open = venue.client(place, &trader.key).signed_pages("/v1/orders", "orders")?;
    let open = open["orders"].as_array().context("a list of orders")?;
    let is_forged = |order: &&Value| order["client_order_id"].as_str() == Some(FORGED.to_string().as_str());
    accepted.extend(open.iter().find(is_forged).map(|_| "an order that was written into a session without its seal".to_owned()));
    if open.len() as u64 != ORDERS {
        accepted.push(format!("{} orders of a recorded connection are open, not {ORDERS}", open.len()));
    }
    let account = venue.client(place, &taker.key).signed("GET", "/v1/account", None)?;
    let position = account["positions"][0]["position"].as_str().unwrap_or("none").to_owned();
    if position != "1.0000" {
        accepted.push(format!("a recorded order traded more than once: the position is {position}, not 1.0000"));
    }
    let open = venue.client(place, &taker.key).signed_pages("/v1/orders", "orders")?;
    if open["orders"].as_array().is_none_or(|open| !open.is_empty()) {
        accepted.push(format!("orders by a copy of a WebSocket's first message are open: {open}"));
    }
    // The first command made the first account behind the others.
    let account = |id: u32| venue.operator().signed("GET", &format!("/v1/admin/accounts/{id}"), None);
    account(ACCOUNTS).context("the account that the operator's command made")?;
    match account(ACCOUNTS + 1) {
        Err(refused) if refused.is(RejectReason::UnknownAccount) => {}
        Err(refused) => return Err(refused).context("asking for an account that nobody made"),
        Ok(_) => accepted.push("a recorded command of the operator made a second account".to_owned()),
    }
    Ok(accepted)
}

/// Something to take.
fn offer(venue: &Venue, maker: &Participant) -> anyhow::Result<()> {
    let asks =
        json!({"instrument": "BTC-USD", "client_order_id": "1", "side": "sell", "type": "limit", "size": "100", "price": "30000"});
    venue.client(&venue.places[0], &maker.key).signed("POST", "/v1/orders", Some(&asks)).context("an offer to take")?;
    Ok(())
}

/// All that a client sent over a connection.
struct Connection {
    sent: Vec<u8>,
    /// Of these the logon.
    logon: usize,
}

impl Connection {
    fn recorded(trader: &Participant, address: &str) -> anyhow::Result<Self> {
        let mut line = Line::new(trader, address, 1)?;
        line.log_on()?;
        for id in 1..=ORDERS {
            line.client.submit(now().0, &bid(trader.account, id))?;
        }
        let begun = Instant::now();
        while line.answered < ORDERS {
            ensure!(begun.elapsed() < RECOVERY, "the orders to be recorded are not answered");
            ensure!(line.turn()?, "the connection to be recorded was lost: {:?}", line.bye);
        }
        ensure!(line.refused.is_none(), "an order to be recorded was refused: {:?}", line.refused);
        let first = line.sent.first_chunk().context("nothing was sent")?;
        let logon = FRAME_HEADER_BYTES + frame_len(*first).map_err(|error| anyhow::anyhow!("{error}"))?;
        ensure!(line.sent.len() > logon, "no orders came after the logon");
        Ok(Self { sent: line.sent, logon })
    }

    /// The logon by itself, and all of it.
    fn replay(&self, place: &Place, replayed: &mut Replayed) -> anyhow::Result<()> {
        let refused = [ByeReason::Rejected(RejectReason::SignatureInvalid)];
        for (what, bytes) in [("a logon", &self.sent[..self.logon]), ("a whole connection", &self.sent[..])] {
            let heard = heard(&place.orders, bytes)?;
            let is_refused = heard == Heard::Closed(refused.into()) || heard == Heard::Closed([ByeReason::LogonExpected].into());
            replayed.note((!is_refused).then(|| format!("{what} at {}: {heard:?}", place.orders)));
        }
        Ok(())
    }
}

/// What a replica says before it closes a connection.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// These reasons alone.
    Closed(Vec<ByeReason>),
    /// Something that no refused client hears.
    More(String),
}

fn heard(address: &str, bytes: &[u8]) -> anyhow::Result<Heard> {
    let mut stream = dial(address)?;
    stream.write_all(bytes)?;
    let (begun, mut buffer, mut heard) = (Instant::now(), vec![0; 64 << 10], Vec::new());
    while let Some(bytes) = read(&mut stream, &mut buffer) {
        heard.extend_from_slice(bytes);
        if begun.elapsed() > RECOVERY {
            return Ok(Heard::More("the connection stays open".to_owned()));
        }
    }
    let (mut rest, mut byes) = (&heard[..], Vec::new());
    while let Some((frame, after)) = split_frame(rest).map_err(|error| anyhow::anyhow!("what a replica says: {error}"))? {
        rest = after;
        match decode_venue(frame).map_err(|error| anyhow::anyhow!("what a replica says: {error}"))? {
            VenueMessage::Welcome(_) => {}
            VenueMessage::Bye { reason, .. } => byes.push(reason),
            other => return Ok(Heard::More(format!("{other:?}"))),
        }
    }
    Ok(Heard::Closed(byes))
}

/// Frames of orders that somebody writes into a connection without having logged on: by themselves, and before what the client seals.
fn write_unsealed(trader: &Participant, place: &Place, replayed: &mut Replayed) -> anyhow::Result<()> {
    for is_followed in [false, true] {
        // A session of its own, in which no command was taken: the next number is 1.
        let mut line = Line::new(trader, &place.orders, 2)?;
        line.log_on()?;
        let stream = line.stream.as_mut().context("a client that is logged on has a connection")?;
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        encode_command(&bid(trader.account, FORGED), &mut body);
        encode_client(&ClientMessage::Submit { session_seq: SessionSeq(1), command: &body }, &mut bytes);
        stream.write_all(&bytes)?;
        if is_followed {
            line.client.submit(now().0, &bid(trader.account, FORGED))?;
        }
        // By itself it waits for a seal, and nothing is said.
        let (begun, wait) = (Instant::now(), if is_followed { RECOVERY } else { UNSEALED_WAIT });
        while line.turn()? && line.answered == 0 && begun.elapsed() < wait {}
        let is_refused = line.answered == 0 && (!is_followed || line.bye == Some(ByeReason::SealInvalid));
        let accepted = || format!("a frame without a seal at {}: {} answers, {:?}", place.orders, line.answered, line.bye);
        replayed.note((!is_refused).then(accepted));
    }
    Ok(())
}

fn bid(account: AccountId, id: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::saturating(FAR_BELOW_TICKS), SizeLots::new(1));
    let (instrument, client_order_id) = (InstrumentId(0), ClientOrderId(id));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
}

/// A client on one connection, whose bytes are written down.
struct Line {
    client: SessionClient,
    address: String,
    stream: Option<TcpStream>,
    sent: Vec<u8>,
    answered: u64,
    refused: Option<RejectReason>,
    bye: Option<ByeReason>,
}

impl Line {
    fn new(participant: &Participant, address: &str, token: u64) -> anyhow::Result<Self> {
        let settings = ClientSettings { reports: ReportsWanted::None, ..ClientSettings::new(vec![address.to_owned()], token) };
        let client = SessionClient::new(settings, participant.key.clone(), now().0).context("a client needs an address")?;
        Ok(Self { client, address: address.to_owned(), stream: None, sent: Vec::new(), answered: 0, refused: None, bye: None })
    }

    fn log_on(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.client.is_logged_on() {
            ensure!(begun.elapsed() < RECOVERY, "a participant cannot log on at {}", self.address);
            self.turn()?;
        }
        Ok(())
    }

    /// Connects, writes, reads; whether the connection is there.
    fn turn(&mut self) -> anyhow::Result<bool> {
        let Self { client, stream, address, sent, answered, refused, bye } = self;
        let mut ended = None;
        let mut note = |event: ClientEvent| match event {
            ClientEvent::Answer { rejected, .. } => {
                *answered += 1;
                *refused = rejected.or(*refused);
            }
            ClientEvent::Disconnected { reason } => *bye = reason,
            ClientEvent::Ended(why) => ended = Some(why),
            _ => {}
        };
        client.on_timer(now().0, &mut note);
        match client.wish(now().0) {
            Wish::Wait => {}
            Wish::Close => *stream = None,
            Wish::Connect(_) => {
                sent.clear();
                client.on_connecting();
                client.on_connected(now().0, &walras_access::random_bytes());
                *stream = Some(dial(address)?);
            }
        }
        let mut buffer = [0; 16 << 10];
        let heard = stream.as_mut().and_then(|stream| {
            let bytes = client.output().to_vec();
            client.consume(bytes.len());
            sent.extend_from_slice(&bytes);
            stream.write_all(&bytes).ok()?;
            read(stream, &mut buffer)
        });
        match heard {
            Some(bytes) => client.on_bytes(now().0, bytes, &mut note),
            None => {
                *stream = None;
                client.on_disconnected(now().0);
            }
        }
        match ended {
            Some(why) => bail!("the session ended: {why}"),
            None => Ok(stream.is_some()),
        }
    }
}

fn dial(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.parse()?, RECOVERY).with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(5)))?;
    stream.set_write_timeout(Some(RECOVERY))?;
    Ok(stream)
}

/// What has come, which may be nothing; `None` when no more will.
fn read<'b>(stream: &mut TcpStream, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    match stream.read(buffer) {
        Ok(0) => None,
        Ok(len) => Some(&buffer[..len]),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Some(&[]),
        Err(_) => None,
    }
}

/// Signed requests as they were recorded, and the first message of a WebSocket.
struct Requests {
    http: Vec<(&'static str, Vec<u8>)>,
    web_socket: String,
}

impl Requests {
    /// Sends each for the first time.
    fn recorded(venue: &Venue, key: &ClientKey) -> anyhow::Result<Self> {
        // It trades at once and is gone, so that a second one would not be refused for its name.
        let take = json!({"instrument": "BTC-USD", "client_order_id": "5", "side": "buy", "type": "market", "size": "1"});
        let stamp = TimeNs(now().0 + AHEAD_NS);
        let http = vec![
            ("an order", signed(stamp, key, "/v1/orders", &take)),
            ("a command of the operator", signed(stamp, venue.operator_key(), "/v1/admin/accounts", &json!({}))),
        ];
        let AuthFields { key, timestamp, nonce, signature } = sign_at(stamp, key, &Request::WEB_SOCKET);
        let auth = json!({"op": "auth", "key": key, "timestamp": timestamp, "nonce": nonce, "signature": signature});
        let all = Self { http, web_socket: auth.to_string() };
        let leader = &venue.places[0];
        for (what, bytes) in &all.http {
            let Answer { status, body } = Asker::new(&leader.http)?.ask(bytes)?;
            ensure!(status == 200, "{what} was refused when it came first: {}", String::from_utf8_lossy(&body));
        }
        let (_, said) = authenticate(leader, &all.web_socket)?;
        ensure!(said["type"] == "authenticated", "a WebSocket was refused when it came first: {said}");
        Ok(all)
    }

    /// To every replica that runs; the first one leads.
    fn replay(&self, venue: &Venue, replayed: &mut Replayed) -> anyhow::Result<()> {
        for (at, place) in venue.places.iter().enumerate() {
            for (what, bytes) in &self.http {
                let Answer { status, body } = Asker::new(&place.http)?.ask(bytes)?;
                let said: Value = serde_json::from_slice(&body).unwrap_or_default();
                let is_refused = is_refused(what, at == 0, &said)? && status >= 300;
                replayed.note((!is_refused).then(|| format!("{what} at {}: {status} {said}", place.http)));
            }
            let (mut socket, said) = authenticate(place, &self.web_socket)?;
            let what = "the first message of a WebSocket";
            if at > 0 && said["type"] == "authenticated" {
                replayed.readers += 1;
                let said = order_by(&mut socket)?;
                replayed
                    .note((said["type"] != "error").then(|| format!("an order after a copy of {what} at {}: {said}", place.http)));
                continue;
            }
            let is_refused = is_refused(what, at == 0, &said)?;
            replayed.note((!is_refused).then(|| format!("{what} at {}: {said}", place.http)));
        }
        Ok(())
    }
}

/// Whether a replica refused a copy; one that leads has to do so because it was used, the others may say who leads.
fn is_refused(what: &str, leads: bool, said: &Value) -> anyhow::Result<bool> {
    let Some(code) = said["error"]["code"].as_u64() else { return Ok(false) };
    let stale = u64::from(RejectReason::TimestampStale.number());
    ensure!(code != stale, "a copy of {what} was refused for its age, which shows nothing: {said}");
    let reused = u64::from(RejectReason::NonceReused.number());
    ensure!(!leads || code == reused, "the leader refused a copy of {what} for another reason than that it was used: {said}");
    Ok(true)
}

fn signed(stamp: TimeNs, key: &ClientKey, path: &'static str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let fields = sign_at(stamp, key, &Request { method: "POST", path, body: body.as_bytes() });
    let signed: String = headers(&fields).into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: venue\r\n{signed}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

type Socket = tungstenite::WebSocket<tungstenite::stream::MaybeTlsStream<TcpStream>>;

/// Sends a recorded message over a WebSocket of its own; what the venue says to it.
fn authenticate(place: &Place, message: &str) -> anyhow::Result<(Socket, Value)> {
    let (mut socket, _) = tungstenite::connect(format!("ws://{}/v1/ws", place.http)).context("opening a WebSocket")?;
    let answer = ask(&mut socket, message, &["authenticated", "error"])?;
    Ok((socket, answer))
}

/// Sends an order that would rest; what the venue says to it.
fn order_by(socket: &mut Socket) -> anyhow::Result<Value> {
    let order = json!({
        "op": "order", "instrument": "BTC-USD", "client_order_id": FORGED.to_string(), "side": "buy", "type": "limit", "size": "1",
        "price": "29000",
    });
    ask(socket, &order.to_string(), &["reply", "error"])
}

/// Sends a message and waits for one of these types of answers.
fn ask(socket: &mut Socket, message: &str, types: &[&str]) -> anyhow::Result<Value> {
    socket.send(tungstenite::Message::text(message))?;
    let begun = Instant::now();
    loop {
        ensure!(begun.elapsed() < RECOVERY, "no answer over a WebSocket to {message}");
        if let tungstenite::Message::Text(text) = socket.read().context("no answer over a WebSocket")? {
            let answer: Value = serde_json::from_str(text.as_str())?;
            if answer["type"].as_str().is_some_and(|kind| types.contains(&kind)) {
                return Ok(answer);
            }
        }
    }
}
