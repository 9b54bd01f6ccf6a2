//! All connections, the markets that they read, and who reads which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use walras_fix::{Dictionaries, End, Event, Leniency, LogonRequest, Message, Record, Rules, Session, Settings};
use walras_fix_orders::{Catalog, Listed, Proof, Secrecy, proof_of, unlisted};
use walras_gateway::session::LogonRequest as EntryLogon;
use walras_gateway::{Allowance, Permission, Principal, Refusal};
use walras_types::{AccountId, BatchMarketId, RejectReason};
use walras_wire::order_entry::{ByeReason, Copies, LogonTerms, OnDisconnect, ReportsWanted, Role};

use crate::connection::{Asked, Connection, MarketKey, Part, Request, Stage, State, Target, sent_ns};
use crate::limits::THROTTLED_MAX;
use crate::listing::Securities;
use crate::market::{Market, News};
use crate::piece::{Need, Piece};
use crate::say::rejected;
use crate::spoken::Spoken;
use crate::tags;

mod requests;

/// A signed logon is good for so long.
const SIGNED_LOGON_NS_MAX: u64 = 5_000_000_000;

/// Whether a key may ask one more thing now.
pub type Charge<'a> = dyn FnMut(&Principal, Permission, Allowance) -> Result<(), Refusal> + 'a;

/// What all connections share.
#[derive(Clone, Debug)]
pub struct MarketDataSettings {
    /// Of sessions; its name of this end is that of market data.
    pub session: Arc<Settings>,
    /// What messages may hold.
    pub dictionaries: Dictionaries,
}

impl MarketDataSettings {
    /// The venue calls itself so with `-MD` behind it. Nothing is sent again: what is asked for again is stale.
    #[must_use]
    pub fn of(comp_id: &str) -> Self {
        let session = Settings {
            resets_on_logon: true,
            sent_max: (0, 0),
            early_max: (64, 64 << 10),
            ..Settings::of(&format!("{comp_id}-MD"))
        };
        Self { session: Arc::new(session), dictionaries: Dictionaries::new() }
    }
}

/// A batch market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchListed {
    /// Which.
    pub market: BatchMarketId,
    /// Its name.
    pub name: String,
    /// The symbols of its assets. Prices are in units of the first.
    pub assets: Vec<String>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub connection: u64,
    /// Whose it was, from its logon on.
    pub account: Option<AccountId>,
    /// The reason that the client was given; `None` where the connection was lost.
    pub reason: Option<ByeReason>,
}

/// See the crate's documentation. Connections are numbered by their host.
#[derive(Debug)]
pub struct MarketDataServer {
    settings: MarketDataSettings,
    catalog: Arc<Catalog>,
    batches: Vec<BatchListed>,
    /// The instruments are known, if there are any. Nobody is let in before.
    is_listed: bool,
    markets: BTreeMap<MarketKey, Market>,
    /// What was said of them since they changed.
    spoken: Spoken,
    /// How many requests read it.
    needs: BTreeMap<Need, usize>,
    /// What is needed now, or no more.
    asks: VecDeque<(Need, bool)>,
    /// Requests, with their connections.
    readers: BTreeMap<MarketKey, BTreeSet<(u64, u64)>>,
    connections: BTreeMap<u64, Connection>,
    requests: u64,
    dirty: VecDeque<u64>,
    logons: VecDeque<(u64, EntryLogon)>,
    ends: VecDeque<Ended>,
    /// The process's time and the time of day, at the last input.
    clock: (u64, u64),
}

impl MarketDataServer {
    /// Without connections.
    #[must_use]
    pub fn new(settings: MarketDataSettings) -> Self {
        Self {
            settings,
            catalog: Arc::new(Catalog::default()),
            batches: Vec::new(),
            is_listed: false,
            markets: BTreeMap::new(),
            spoken: Spoken::default(),
            needs: BTreeMap::new(),
            asks: VecDeque::new(),
            readers: BTreeMap::new(),
            connections: BTreeMap::new(),
            requests: 0,
            dirty: VecDeque::new(),
            logons: VecDeque::new(),
            ends: VecDeque::new(),
            clock: (0, 0),
        }
    }

    /// Time passes: the process's, and the time of day. Say it before every other input.
    pub fn at(&mut self, now_ns: u64, day_ns: u64) {
        self.clock = (now_ns.max(self.clock.0), day_ns.max(self.clock.1));
    }

    /// The instruments and batch markets are these now. Before, logons are refused.
    pub fn set_catalog(&mut self, catalog: Arc<Catalog>, batches: Vec<BatchListed>) {
        (self.catalog, self.batches, self.is_listed) = (catalog, batches, true);
        self.spoken.clear();
        // A security is named before its market is.
        for (id, no) in self.requests_that(|request| matches!(request.asked, Asked::List(_))) {
            self.tell_list(id, no);
            self.settle(id);
        }
        let catalog = Arc::clone(&self.catalog);
        for (id, no) in self.requests_that(|request| request.is_of_all) {
            self.add_targets(id, no, catalog.iter().map(target_of).collect());
        }
    }

    /// Such requests of all connections, with these.
    fn requests_that(&self, are_such: impl Fn(&Request) -> bool) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for (id, connection) in &self.connections {
            found.extend(connection.requests.iter().filter(|(_, request)| are_such(request)).map(|(no, _)| (*id, *no)));
        }
        found
    }

    /// A client has connected.
    pub fn connect(&mut self, id: u64, secrecy: Secrecy) {
        let session = Session::new(Arc::clone(&self.settings.session), self.settings.dictionaries.clone(), self.clock.1);
        let connection = Connection {
            session,
            secrecy,
            stage: Stage::Fresh,
            account: None,
            requests: BTreeMap::new(),
            names: BTreeMap::new(),
            target_count: 0,
            slow_since_ns: None,
            written_ns: self.clock.0,
            throttled: 0,
            is_dirty: false,
        };
        self.connections.insert(id, connection);
    }

    /// Takes received bytes, cut anywhere. Afterwards ask for [`Self::next_logon`] and [`Self::next_ask`].
    pub fn on_bytes(&mut self, id: u64, bytes: &[u8], charge: &mut Charge<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.session.on_bytes(bytes);
        self.go_on(id, charge);
    }

    fn go_on(&mut self, id: u64, charge: &mut Charge<'_>) {
        let day_ns = self.clock.1;
        while let Some(event) = self.connections.get_mut(&id).and_then(|connection| connection.session.poll(day_ns)) {
            match event {
                Event::Logon(logon) => self.on_logon(id, &logon),
                Event::App(message) => self.on_app(id, &message, charge),
            }
        }
        self.settle(id);
    }

    fn on_logon(&mut self, id: u64, logon: &LogonRequest) {
        let (now_ns, day_ns) = self.clock;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let refuse = |connection: &mut Connection, text: &str| connection.session.refuse(day_ns, Some(text));
        let Proof { key_id, signed, signature, is_signed } = match proof_of(logon, connection.secrecy) {
            Ok(proof) => proof,
            Err(text) => return refuse(connection, text),
        };
        if is_signed && sent_ns(&logon.message).abs_diff(day_ns) > SIGNED_LOGON_NS_MAX {
            let text =
                "SendingTime(52) of a signed logon must be within 5 s of the venue's clock: synchronise the clock, and sign again";
            return refuse(connection, text);
        }
        if logon.seq != 1 {
            return refuse(
                connection,
                "The numbers of this session begin with 1 at each logon: log on with ResetSeqNumFlag(141)=Y",
            );
        }
        connection.stage = Stage::Judged(now_ns);
        let terms = LogonTerms {
            on_disconnect: OnDisconnect::Keep,
            role: Role::Account,
            token: 0,
            reports: ReportsWanted::None,
            copies: Copies::One,
            logon_seq: 0,
        };
        let logon = EntryLogon { terms, permission: Permission::Read, key_id, signed, signature, is_once: false };
        self.logons.push_back((id, logon));
    }

    /// A logon whose signature is to be checked; then say [`Self::authenticated`].
    pub fn next_logon(&mut self) -> Option<(u64, EntryLogon)> {
        self.logons.pop_front()
    }

    /// The verdict on a logon.
    pub fn authenticated(&mut self, id: u64, verdict: Result<Principal, Refusal>) {
        let day_ns = self.clock.1;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !matches!(connection.stage, Stage::Judged(_)) {
            return;
        }
        match verdict.and_then(|principal| if self.is_listed { Ok(principal) } else { Err(unlisted()) }) {
            Ok(principal) => {
                connection.account = principal.account();
                connection.stage = Stage::Open(Box::new(principal));
                let rules = Rules { user_tags: Leniency::Allowed, empty_values: Leniency::Rejected };
                connection.session.accept(day_ns, Record::default(), rules);
            }
            Err(refusal) => {
                let text = match refusal.detail.filter(|_| refusal.reason != RejectReason::SignatureInvalid) {
                    Some(detail) => format!("{} ({}): {detail}", refusal.reason.name(), refusal.reason.number()),
                    None => refusal.reason.to_string(),
                };
                connection.session.refuse(day_ns, Some(&text));
            }
        }
        self.go_on(id, &mut |_, _, _| Ok(()));
    }

    fn on_app(&mut self, id: u64, message: &Message, charge: &mut Charge<'_>) {
        let day_ns = self.clock.1;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Stage::Open(principal) = &connection.stage else { return };
        match charge(principal, Permission::Read, Allowance::Requests) {
            Ok(()) => connection.throttled = 0,
            Err(refusal) if refusal.reason == RejectReason::Throttled && connection.throttled < THROTTLED_MAX => {
                connection.throttled += 1;
                let text = refusal.reason.to_string();
                return match (message.msg_type(), message.text(tags::MD_REQ_ID)) {
                    (b"V", Some(name)) => connection.send(day_ns, "Y", &rejected(name, "2", &text)),
                    _ => connection.reject(day_ns, message, 0, &text),
                };
            }
            Err(refusal) => return self.bye(id, ByeReason::Rejected(refusal.reason), ""),
        }
        match message.msg_type() {
            b"V" => self.on_data_request(id, message),
            b"e" => self.on_status_request(id, message),
            b"g" => self.on_phase_request(id, message),
            b"x" => self.on_list_request(id, message),
            b"c" => self.on_definition_request(id, message),
            _ => connection.reject(day_ns, message, 3, "The venue takes V, c, e, g and x here: see docs/fix.md"),
        }
    }

    /// What is needed from now on (true), or no more: begin or end its feed.
    pub fn next_ask(&mut self) -> Option<(Need, bool)> {
        self.asks.pop_front()
    }

    /// Feeds have ended by themselves: what comes next of all that is needed, which is this, are snapshots.
    pub fn on_feeds_lost(&mut self) -> Vec<Need> {
        self.asks.clear();
        let needs: Vec<Need> = self.needs.keys().copied().collect();
        for need in &needs {
            self.forget(*need);
        }
        for connection in self.connections.values_mut() {
            for sent in connection.requests.values_mut().flat_map(|request| request.targets.values_mut()) {
                sent.state = State::Waiting;
            }
        }
        needs
    }

    /// Something was released.
    pub fn on_piece(&mut self, piece: &Piece<'_>) {
        let (key, part) = match piece {
            Piece::Book(piece) => (MarketKey::Instrument(piece.instrument), Part::Book),
            Piece::Trades { instrument, .. } => (MarketKey::Instrument(*instrument), Part::Trades),
            Piece::Day(day) => (MarketKey::Instrument(day.instrument), Part::Day),
            Piece::Batch(piece) => (MarketKey::Batch(piece.market), Part::Block),
            Piece::BatchTerms(market, _) => (MarketKey::Batch(*market), Part::BatchTerms),
            Piece::Orders(piece) => (MarketKey::Instrument(piece.instrument), Part::Orders),
        };
        let Some(market) = self.markets.get_mut(&key) else { return };
        self.spoken.forget(key);
        let news = match piece {
            Piece::Book(piece) => market.book.take(piece),
            Piece::Trades { is_snapshot, trades, .. } => market.trades.take(*is_snapshot, trades),
            Piece::Day(day) => market.day.take(*day),
            Piece::Batch(piece) => market.block.take(piece),
            Piece::BatchTerms(_, terms) => market.block.take_terms(*terms),
            Piece::Orders(piece) => market.orders.take(piece),
        };
        if news == News::Nothing {
            return;
        }
        let readers: Vec<(u64, u64)> = self.readers.get(&key).into_iter().flatten().copied().collect();
        for (id, no) in readers {
            self.tell(id, no, key, (part, news));
        }
    }

    fn tell(&mut self, id: u64, no: u64, key: MarketKey, what: (Part, News)) {
        let (clock, catalog) = (self.clock, Arc::clone(&self.catalog));
        let (Some(connection), Some(market)) = (self.connections.get_mut(&id), self.markets.get(&key)) else { return };
        if connection.tell(clock, (no, &catalog), (key, market), what, &mut self.spoken) {
            self.forget_request(id, no);
        }
        self.settle(id);
    }

    /// Follows up on what a connection was sent.
    fn settle(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !matches!(connection.stage, Stage::Over)
            && let Some(end) = connection.session.end()
        {
            let reason = match end {
                End::NoLogon => Some(ByeReason::LogonExpected),
                End::LoggedOut => Some(ByeReason::LoggedOut),
                End::Silent => Some(ByeReason::Idle),
                End::SlowReader => Some(ByeReason::SlowReader),
                End::Refused => Some(ByeReason::Rejected(RejectReason::Unauthenticated)),
                End::RulesBroken | End::TooLong => Some(ByeReason::Malformed),
                End::Lost => None,
            };
            self.finish(id, reason);
        }
        self.mark_dirty(id);
    }

    fn finish(&mut self, id: u64, reason: Option<ByeReason>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.stage = Stage::Over;
        self.ends.push_back(Ended { connection: id, account: connection.account, reason });
        let numbers: Vec<u64> = connection.requests.keys().copied().collect();
        for no in numbers {
            self.forget_request(id, no);
        }
    }

    /// The next connection that ended.
    pub fn next_end(&mut self) -> Option<Ended> {
        self.ends.pop_front()
    }

    fn send(&mut self, id: u64, msg_type: &'static str, body: &walras_fix::Body) {
        let day_ns = self.clock.1;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.send(day_ns, msg_type, body);
        }
    }

    fn reject(&mut self, id: u64, message: &Message, reason: u64, text: &str) {
        let day_ns = self.clock.1;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.reject(day_ns, message, reason, text);
        }
    }

    /// Gives a client the reason why its connection ends.
    pub fn bye(&mut self, id: u64, reason: ByeReason, text: &str) {
        let day_ns = self.clock.1;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if matches!(connection.stage, Stage::Over) {
            return;
        }
        let text = if text.is_empty() { reason.to_string() } else { text.to_owned() };
        connection.session.log_out_now(day_ns, &text);
        self.finish(id, Some(reason));
        self.mark_dirty(id);
    }

    /// The client closed the connection, or it broke.
    pub fn on_disconnected(&mut self, id: u64) {
        if self.connections.get(&id).is_some_and(|connection| !matches!(connection.stage, Stage::Over)) {
            self.finish(id, None);
        }
        self.remove(id);
    }

    /// A connection is gone.
    pub fn remove(&mut self, id: u64) {
        self.connections.remove(&id);
    }

    /// Heartbeats, and the end of who is silent, or does not read.
    pub fn on_timer(&mut self) {
        let (now_ns, day_ns) = self.clock;
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let timeout_ns = self.settings.session.logon_timeout_ns;
            match connection.stage {
                Stage::Judged(since_ns) if now_ns >= since_ns.saturating_add(timeout_ns) => {
                    self.bye(id, ByeReason::Rejected(RejectReason::VenueNotReady), "");
                }
                Stage::Open(_) if connection.is_deaf(now_ns) => {
                    let text = "More market data waits for this connection than it reads: read faster, or ask for less";
                    self.bye(id, ByeReason::SlowReader, text);
                }
                Stage::Fresh | Stage::Open(_) if day_ns >= connection.session.deadline_ns() => {
                    connection.session.on_time(day_ns);
                    self.settle(id);
                }
                Stage::Fresh | Stage::Judged(_) | Stage::Open(_) | Stage::Over => {}
            }
        }
    }

    /// The next connection that has something to write or is over, each once.
    pub fn next_dirty(&mut self) -> Option<u64> {
        while let Some(id) = self.dirty.pop_front() {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.is_dirty = false;
            return Some(id);
        }
        None
    }

    /// It has something to write, or can be written again.
    pub fn mark_dirty(&mut self, id: u64) {
        if let Some(connection) = self.connections.get_mut(&id)
            && !std::mem::replace(&mut connection.is_dirty, true)
        {
            self.dirty.push_back(id);
        }
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self, id: u64) -> &[u8] {
        self.connections.get(&id).map_or(&[], |connection| connection.session.output())
    }

    /// So many of them were written.
    pub fn consume(&mut self, id: u64, len: usize) {
        let (now_ns, day_ns) = self.clock;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.session.consume(len);
        if len > 0 {
            connection.written_ns = now_ns;
        }
        if matches!(connection.stage, Stage::Open(_)) && connection.slow_since_ns.is_some() {
            let all = Securities { catalog: &self.catalog, batches: &self.batches };
            let done = connection.catch_up(day_ns, all, &self.markets, &mut self.spoken);
            done.into_iter().for_each(|no| self.forget_request(id, no));
            self.settle(id);
        }
    }

    /// Whether a connection is over: what is unwritten should still be written.
    #[must_use]
    pub fn is_over(&self, id: u64) -> bool {
        self.connections.get(&id).is_none_or(|connection| matches!(connection.stage, Stage::Over))
    }

    /// Connections, and markets that are kept for them.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.connections.len(), self.markets.len())
    }
}

fn target_of(listed: &Listed) -> Target {
    Target { key: MarketKey::Instrument(listed.spec.instrument), asset: None }
}

const fn key_of(need: Need) -> MarketKey {
    match need {
        Need::Book(instrument) | Need::Orders(instrument) => MarketKey::Instrument(instrument),
        Need::Trades(instrument) | Need::Day(instrument) => MarketKey::Instrument(instrument),
        Need::Batch(market) => MarketKey::Batch(market),
    }
}
