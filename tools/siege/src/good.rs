//! The well-behaved clients, and who makes the market that they trade in. Each service has a thread, which asks one thing at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};
use walras_access::now;
use walras_gateway::ClientKey;
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, Wish};
use walras_random::Random;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, RejectReason, Side, SizeLots};
use walras_wait::{pause, pause_until};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{CancelOrder, Command, NewOrder, OrderCommand};

mod dialects;

use crate::fix::{DATA, ORDERS, Session, be_refused};
use crate::limits::{DEAF_ORDERS_AT_ONCE_MAX, DIALECTS_SOURCE, PATIENCE};
use crate::tree::{Ports, Reader};
use crate::venue::{Participant, Venue};
use crate::watch::{Service, Watch};
use crate::wire::{Asker, auth, dial, request};

/// Orders; one of them stays in the book, to be looked for afterwards.
const KEPT_ONE_OF: u64 = 64;
/// Far below the market, so that none of them trades: ticks of 0.25.
const KEPT_PRICE: &str = "29000";
const KEPT_TICKS: i64 = 116_000;
/// Orders that who makes the market has in it at a time.
const MADE_STANDING: u64 = 100;

/// How often each service is asked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two requests of one service.
    pub every: Duration,
    /// Between two new connections.
    pub connect_every: Duration,
    /// Between two requests of one service of FIX, of the Binance dialect, or of the operator.
    pub dialects_every: Duration,
    /// Orders a second that make the market.
    pub made_per_second: u32,
}

/// All threads; they end when this is dropped.
#[derive(Debug)]
pub struct Good {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    kept: Arc<Mutex<Vec<u64>>>,
    gaps: Arc<AtomicU64>,
}

impl Good {
    /// Begins to ask.
    ///
    /// # Errors
    /// When the venue does not serve.
    pub fn begin(venue: &Venue, watch: &Arc<Watch>, pace: Pace) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut good = Self { stop, threads: Vec::new(), kept: Arc::default(), gaps: Arc::default() };
        let place = &venue.places[0];
        let [maker, taker, rest, entry, fix, facade, _] = &venue.participants[..] else {
            bail!("the venue has other participants")
        };
        for (participant, side) in [(maker, "buy"), (taker, "sell")] {
            let mut made = Made::open(&place.http, &participant.key, side)?;
            let (address, per_second) = (place.http.clone(), pace.made_per_second / 2);
            good.spawn(move |stop| made.run(stop, &address, per_second))?;
        }
        let (mut book, every) = (Asker::new(&place.http)?, pace.every);
        let seen = Arc::clone(watch);
        let asked = request("GET", "/v1/instruments/BTC-USD/book?depth=20", "", None);
        good.spawn(move |stop| each(stop, every, || drop(seen.time(Service::Book, || book.served(&asked)))))?;

        let mut orders =
            Orders { asker: Asker::new(&place.http)?, key: rest.key.clone(), sent: first_order(), kept: Arc::clone(&good.kept) };
        let seen = Arc::clone(watch);
        good.spawn(move |stop| each(stop, every, || orders.next(&seen)))?;

        let (address, key, seen, gaps) = (place.http.clone(), rest.key.clone(), Arc::clone(watch), Arc::clone(&good.gaps));
        let mut feed = Feed { address, key, socket: None, last_seq: 0, gaps };
        good.spawn(move |stop| each(stop, every, || feed.next(&seen)))?;

        let (mut connect, seen) = (Asker::new(&place.http)?, Arc::clone(watch));
        let asked = request("GET", "/v1/time", "", None);
        good.spawn(move |stop| {
            each(stop, pace.connect_every, || {
                connect.close();
                let _ = seen.time(Service::Connect, || connect.served(&asked));
            });
        })?;
        // If there is a leaf gateway, orders go there.
        let orders = match &venue.tree {
            Some(ports) => vec![ports.leaf_orders.clone()],
            None => venue.places.iter().map(|place| place.orders.clone()).collect(),
        };
        let (mut entry, seen) = (Entry::new(orders, entry, 1)?, Arc::clone(watch));
        good.spawn(move |stop| each(stop, every, || entry.next(&seen)))?;
        if let Some(ports) = &venue.tree {
            good.begin_at_leaf(ports, watch, pace.connect_every)?;
        }
        good.begin_dialects(venue, (fix, facade), watch, pace.dialects_every)?;
        let (mut operator, seen) = (Asker::new(&place.operator)?, Arc::clone(watch));
        let (key, path) = (venue.operator_key().clone(), "/v1/admin/accounts/0");
        good.spawn(move |stop| {
            each(stop, pace.dialects_every, || {
                let asked = request("GET", path, "", Some(&key));
                let _ = seen.time(Service::Operator, || operator.served(&asked));
            });
        })?;
        Ok(good)
    }

    /// Who asks for messages of the feed, and who connects, at a leaf gateway.
    fn begin_at_leaf(&mut self, ports: &Ports, watch: &Arc<Watch>, every: Duration) -> anyhow::Result<()> {
        let (mut reader, seen) = (Reader::new(ports)?, Arc::clone(watch));
        // A leaf does not answer a source that asks more than 200 times a second.
        self.spawn(move |stop| {
            while !stop.load(SeqCst) {
                // A socket that fails does so for the next request, too, which is counted.
                let _ = reader.read_until(Instant::now() + every);
                let _ = seen.time(Service::Again, || reader.ask());
            }
        })?;
        let (fix, seen) = (ports.leaf_fix.clone(), Arc::clone(watch));
        self.spawn(move |stop| each(stop, every, || drop(seen.time(Service::LeafConnect, || be_refused(&fix)))))
    }

    /// The clients of FIX and of the Binance dialect. Those of FIX are at the leaf gateway where there is one.
    fn begin_dialects(
        &mut self,
        venue: &Venue,
        (fix, facade): (&Participant, &Participant),
        watch: &Arc<Watch>,
        every: Duration,
    ) -> anyhow::Result<()> {
        let place = &venue.places[0];
        let (addresses, data) = match &venue.tree {
            Some(ports) => (vec![ports.leaf_fix.clone()], &ports.leaf_fix_data),
            None => (venue.places.iter().map(|place| place.fix.clone()).collect(), &place.fix_data),
        };
        let (mut orders, seen) = (dialects::FixOrders::new(addresses, &fix.key), Arc::clone(watch));
        self.spawn(move |stop| each(stop, every, || orders.next(&seen)))?;
        let (mut data, seen) = (dialects::FixData::new(data, &fix.key), Arc::clone(watch));
        data.begin()?;
        self.spawn(move |stop| each(stop, every, || data.next(&seen)))?;
        let (mut book, seen) = (Asker::new(&place.facade)?.sent_from(DIALECTS_SOURCE), Arc::clone(watch));
        let asked = request("GET", "/api/v3/depth?symbol=BTCUSD&limit=20", "", None);
        self.spawn(move |stop| each(stop, every, || drop(seen.time(Service::Facade, || book.served(&asked)))))?;
        let (mut orders, seen) = (dialects::FacadeOrders::new(&place.facade, &facade.key)?, Arc::clone(watch));
        self.spawn(move |stop| each(stop, every, || orders.next(&seen)))?;
        let (mut socket, seen) = (dialects::FacadeSocket::new(&place.facade, &facade.key)?, Arc::clone(watch));
        self.spawn(move |stop| each(stop, every, || socket.next(&seen)))
    }

    fn spawn(&mut self, run: impl FnOnce(&AtomicBool) + Send + 'static) -> anyhow::Result<()> {
        let stop = Arc::clone(&self.stop);
        self.threads.push(std::thread::Builder::new().name("siege-good".to_owned()).spawn(move || run(&stop))?);
        Ok(())
    }

    /// Asks no more. Orders that were acknowledged and are to be in the book, and how often the feed left numbers out.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u64>, u64) {
        self.join();
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        (kept, self.gaps.load(SeqCst))
    }

    fn join(&mut self) {
        self.stop.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            // One that panicked has printed why.
            let _ = thread.join();
        }
    }
}

impl Drop for Good {
    fn drop(&mut self) {
        self.join();
    }
}

/// Logs on with the key of a participant other than the attackers', at both ports of FIX: those of the leaf gateway where there is one.
///
/// # Errors
/// When the venue does not let it in.
pub fn others_log_on(venue: &Venue) -> anyhow::Result<()> {
    let [.., other, _, _] = &venue.participants[..] else { bail!("the venue has other participants") };
    let (orders, data) = match &venue.tree {
        Some(ports) => (&ports.leaf_fix, &ports.leaf_fix_data),
        None => (&venue.places[0].fix, &venue.places[0].fix_data),
    };
    for (address, target) in [(orders, ORDERS), (data, DATA)] {
        Session::log_on(address, &other.key, target, "OTHER").with_context(|| format!("another key's session of {target}"))?;
    }
    Ok(())
}

fn each(stop: &AtomicBool, every: Duration, mut ask: impl FnMut()) {
    let mut due = Instant::now();
    while !stop.load(SeqCst) {
        ask();
        due = (due + every).max(Instant::now());
        pause_until(due);
    }
}

/// An even number that no client has used before: orders of the attack before still rest.
fn first_order() -> u64 {
    now().0 / 1_000_000 * 100
}

/// Signed orders over REST: one that rests far from the market, then its cancel.
struct Orders {
    asker: Asker,
    key: ClientKey,
    sent: u64,
    kept: Arc<Mutex<Vec<u64>>>,
}

impl Orders {
    fn next(&mut self, watch: &Watch) {
        let (id, cancels) = (self.sent / 2 + 1, self.sent % 2 == 1);
        self.sent += 1;
        let is_kept = id.is_multiple_of(KEPT_ONE_OF);
        if cancels && is_kept {
            return;
        }
        let signed = if cancels {
            request("DELETE", &format!("/v1/orders/BTC-USD/{id}"), "", Some(&self.key))
        } else {
            let body = json!({
                "instrument": "BTC-USD", "client_order_id": id.to_string(), "side": "buy", "type": "limit", "size": "0.001",
                "price": KEPT_PRICE,
            });
            request("POST", "/v1/orders", &body.to_string(), Some(&self.key))
        };
        let answered = watch.time(Service::Order, || self.asker.served(&signed));
        if answered.is_ok() && is_kept {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
        if answered.is_err() && !cancels {
            // It is not there to be cancelled, perhaps.
            self.sent += 1;
        }
    }
}

type Socket = WebSocket<TcpStream>;

fn socket(address: &str) -> anyhow::Result<Socket> {
    socket_at(address, "/v1/ws", None)
}

fn socket_at(address: &str, path: &str, source: Option<Ipv4Addr>) -> anyhow::Result<Socket> {
    let opened = tungstenite::client(format!("ws://{address}{path}"), dial(&address.parse()?, source)?);
    Ok(opened.map_err(|e| anyhow::anyhow!("the WebSocket was not opened: {e}"))?.0)
}

fn say(socket: &mut Socket, message: &Value) -> anyhow::Result<()> {
    Ok(socket.send(Message::text(message.to_string()))?)
}

fn hear(socket: &mut Socket) -> anyhow::Result<Value> {
    loop {
        match socket.read()? {
            Message::Text(text) => return Ok(serde_json::from_str(text.as_str())?),
            Message::Close(why) => bail!("the venue closed the WebSocket: {why:?}"),
            Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
        }
    }
}

fn hear_of(socket: &mut Socket, kind: &str) -> anyhow::Result<Value> {
    loop {
        let message = hear(socket)?;
        if message["type"] == kind {
            return Ok(message);
        }
        ensure!(message["type"] != "error", "the venue refused: {message}");
    }
}

fn log_on(socket: &mut Socket, key: &ClientKey) -> anyhow::Result<()> {
    say(socket, &auth(key))?;
    hear_of(socket, "authenticated").map(drop)
}

/// A subscriber that reads.
struct Feed {
    address: String,
    key: ClientKey,
    socket: Option<Socket>,
    last_seq: u64,
    gaps: Arc<AtomicU64>,
}

impl Feed {
    fn next(&mut self, watch: &Watch) {
        if watch.time(Service::Feed, || self.ping()).is_err() {
            self.socket = None;
        }
    }

    fn ping(&mut self) -> anyhow::Result<()> {
        let Self { address, key, socket: open, last_seq, gaps } = self;
        let socket = match open {
            Some(socket) => socket,
            none => {
                let mut fresh = socket(address)?;
                log_on(&mut fresh, key)?;
                for channel in ["book", "trades", "ticker"] {
                    say(&mut fresh, &json!({"op": "subscribe", "channel": channel, "instrument": "BTC-USD"}))?;
                }
                *last_seq = 0;
                none.insert(fresh)
            }
        };
        say(socket, &json!({"op": "ping"}))?;
        loop {
            let message = hear(socket)?;
            match message["type"].as_str() {
                Some("pong") => return Ok(()),
                Some("book") => {
                    let seq = message["feed_seq"].as_str().and_then(|seq| seq.parse().ok()).context("a book without its number")?;
                    gaps.fetch_add(u64::from(seq != *last_seq + 1), SeqCst);
                    *last_seq = seq;
                }
                _ => {}
            }
        }
    }
}

/// The market maker: orders around one price; some trade, and each is cancelled a while later.
struct Made {
    key: ClientKey,
    side: &'static str,
    socket: Socket,
    first: u64,
    next: u64,
    random: Random,
}

impl Made {
    fn open(address: &str, key: &ClientKey, side: &'static str) -> anyhow::Result<Self> {
        let (mut socket, first) = (socket(address)?, first_order());
        log_on(&mut socket, key)?;
        Ok(Self { key: key.clone(), side, socket, next: first, first, random: Random::new(1) })
    }

    fn run(&mut self, stop: &AtomicBool, address: &str, per_second: u32) {
        const ROUND: Duration = Duration::from_millis(20);
        let per_round = (per_second / 50).max(1);
        each(stop, ROUND, || {
            if self.round(per_round).is_err()
                && let Ok(mut fresh) = socket(address)
                && log_on(&mut fresh, &self.key).is_ok()
            {
                self.socket = fresh;
            }
        });
    }

    fn round(&mut self, orders: u32) -> anyhow::Result<()> {
        let mut unanswered = 0;
        for _ in 0..orders {
            let away = self.random.below(60);
            // A few of them reach across.
            let ticks = if self.side == "buy" { 120_002 - away } else { 119_998 + away };
            let price = format!("{}.{:02}", ticks / 4, ticks % 4 * 25);
            let id = self.next;
            self.next += 1;
            say(
                &mut self.socket,
                &json!({
                    "op": "order", "id": "o", "instrument": "BTC-USD", "client_order_id": id.to_string(), "side": self.side,
                    "type": "limit", "size": "0.01", "price": price,
                }),
            )?;
            unanswered += 1;
            if id > self.first + MADE_STANDING {
                let old = (id - MADE_STANDING).to_string();
                say(&mut self.socket, &json!({"op": "cancel", "id": "c", "instrument": "BTC-USD", "client_order_id": old}))?;
                unanswered += 1;
            }
        }
        while unanswered > 0 {
            // Of those that are gone the cancel is refused: an answer like any other.
            let message = hear(&mut self.socket)?;
            unanswered -= i32::from(message["id"].is_string());
        }
        Ok(())
    }
}

/// Orders over binary order entry, one at a time.
pub(crate) struct Entry {
    client: SessionClient,
    stream: Option<TcpStream>,
    account: AccountId,
    sent: u64,
}

impl Entry {
    pub(crate) fn new(orders: Vec<String>, participant: &Participant, token: u64) -> anyhow::Result<Self> {
        let settings = ClientSettings {
            reports: ReportsWanted::None,
            retry_delay_ns: 5_000_000,
            logon_timeout_ns: 1_000_000_000,
            answer_timeout_ns: 2_000_000_000,
            // The same session under each attack: an account has few.
            ..ClientSettings::new(orders, token)
        };
        let client = SessionClient::new(settings, participant.key.clone(), now().0).context("no replica takes orders")?;
        Ok(Self { client, stream: None, account: participant.account, sent: first_order() })
    }

    fn next(&mut self, watch: &Watch) {
        let Some(command) = self.command() else { return };
        let _ = watch.time(Service::Entry, || self.enter(&command));
    }

    /// Logs on, and from then on sends what the window takes and reads nothing. Gives the number of orders.
    pub(crate) fn say_only(&mut self) -> anyhow::Result<u64> {
        if !self.client.is_logged_on() {
            self.turn()?;
            return Ok(0);
        }
        let mut said = 0;
        while said < DEAF_ORDERS_AT_ONCE_MAX
            && let Some(command) = self.command()
            && self.client.submit(now().0, &command).is_ok()
        {
            said += 1;
        }
        let Self { client, stream: Some(stream), .. } = self else { return Ok(said) };
        while !client.output().is_empty() {
            match stream.write(client.output()) {
                Ok(len) => client.consume(len),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => break,
                Err(_) => {
                    self.lose();
                    break;
                }
            }
        }
        Ok(said)
    }

    /// An order that rests far from the market, or its cancel.
    fn command(&mut self) -> Option<Command> {
        let (id, cancels) = (self.sent / 2 + 1, self.sent % 2 == 1);
        self.sent += 1;
        let (account, instrument, client_order_id) = (self.account, InstrumentId(0), ClientOrderId(id));
        Some(if cancels {
            Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
        } else {
            let price = PriceTicks::new(KEPT_TICKS)?;
            let terms = OrderTerms::limit(Side::Buy, price, SizeLots::new(10));
            Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
        })
    }

    fn enter(&mut self, command: &Command) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.client.is_logged_on() {
            ensure!(begun.elapsed() < PATIENCE, "not logged on");
            self.turn()?;
        }
        self.client.submit(now().0, command)?;
        while self.client.unanswered_count() > 0 {
            ensure!(begun.elapsed() < PATIENCE, "no answer");
            if self.turn()?.is_some_and(|rejected| rejected == RejectReason::Overloaded) {
                bail!("overloaded");
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> anyhow::Result<Option<RejectReason>> {
        let mut rejected = None;
        let mut ended = None;
        let mut note = |event: ClientEvent| match event {
            ClientEvent::Answer { rejected: why, .. } => rejected = why,
            ClientEvent::Ended(why) => ended = Some(why.to_string()),
            _ => {}
        };
        self.client.on_timer(now().0, &mut note);
        match self.client.wish(now().0) {
            Wish::Wait if self.stream.is_some() => {}
            Wish::Wait => pause(Duration::from_millis(1)),
            Wish::Close => self.lose(),
            Wish::Connect(address) => {
                let address = address.to_owned();
                self.client.on_connecting();
                match knock(&address) {
                    Ok(stream) => {
                        self.client.on_connected(now().0, &walras_access::random_bytes());
                        self.stream = Some(stream);
                    }
                    Err(_) => self.client.on_disconnected(now().0),
                }
            }
        }
        if self.exchange(&mut note).is_err() {
            self.lose();
        }
        match ended {
            Some(why) => bail!("the session ended: {why}"),
            None => Ok(rejected),
        }
    }

    fn exchange(&mut self, note: &mut impl FnMut(ClientEvent)) -> std::io::Result<()> {
        let Self { client, stream: Some(stream), .. } = self else { return Ok(()) };
        while !client.output().is_empty() {
            let len = stream.write(client.output())?;
            client.consume(len);
        }
        let mut buffer = [0; 16 << 10];
        match stream.read(&mut buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                client.on_bytes(now().0, &buffer[..len], note);
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn lose(&mut self) {
        self.stream = None;
        self.client.on_disconnected(now().0);
    }
}

fn knock(address: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.parse()?, Duration::from_millis(500))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
