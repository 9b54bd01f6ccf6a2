//! Requests: how they begin and end, and which parts of markets they need.

use std::collections::{BTreeMap, BTreeSet};

use walras_fix::{Message, Version};

use super::{MarketDataServer, key_of, target_of};
use crate::connection::{Asked, Connection, MarketKey, Part, Request, Sent, Target};
use crate::limits::{MARKETS_MAX, REQUEST_ID_BYTES_MAX, REQUESTS_MAX};
use crate::listing::{Answer, Listing, Securities};
use crate::market::{Market, News};
use crate::piece::Need;
use crate::request::{Entries, Lasting, Wanted, all, lasting, wanted};
use crate::say::{Head, asked, rejected, security_definition, security_list};
use crate::tags;

/// What stands for all instruments.
const ALL: &str = "*";

fn no_such(symbol: &str) -> String {
    format!("Symbol(55) {symbol} is none: SecurityListRequest(x), in FIX 4.2 SecurityDefinitionRequest(c), says which there are")
}

impl MarketDataServer {
    pub(super) fn on_data_request(&mut self, id: u64, message: &Message) {
        let day_ns = self.clock.1;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let name = message.text(tags::MD_REQ_ID).unwrap_or_default();
        let wanted = match wanted(message, connection.version()) {
            Ok(wanted) => wanted,
            Err((reason, text)) => return connection.send(day_ns, "Y", &rejected(name, reason, &text)),
        };
        let symbols: Vec<&str> = all(message, tags::SYMBOL).collect();
        if wanted.lasting == Lasting::Ends {
            return self.end_request(id, message, ("V", name.into()));
        }
        let mut targets = BTreeSet::new();
        for symbol in &symbols {
            if *symbol == ALL {
                targets.extend(self.catalog.iter().map(target_of));
            } else if let Some(target) = self.target(symbol) {
                targets.insert(target);
            } else {
                return self.send(id, "Y", &rejected(name, "0", &no_such(symbol)));
            }
        }
        let request = Request { asked: Asked::Data(wanted), is_of_all: symbols.contains(&ALL), targets: BTreeMap::new() };
        if let Err((reason, text)) = self.begin_request(id, request, targets) {
            self.send(id, "Y", &rejected(name, reason, &text));
        }
    }

    pub(super) fn on_status_request(&mut self, id: u64, message: &Message) {
        let (name, symbol) = (message.text(tags::SECURITY_STATUS_REQ_ID), message.text(tags::SYMBOL).unwrap_or_default());
        let Some((name, lasting)) = self.id_and_lasting(id, message, name) else { return };
        let Some(target) = self.target(symbol) else {
            return self.reject(id, message, 2, &no_such(symbol));
        };
        self.begin_or_end(id, message, Asked::Status(name, lasting), (BTreeSet::from([target]), false));
    }

    pub(super) fn on_phase_request(&mut self, id: u64, message: &Message) {
        let (name, symbol) = (message.text(tags::TRAD_SES_REQ_ID), message.text(tags::TRADING_SESSION_ID));
        let Some((name, lasting)) = self.id_and_lasting(id, message, name) else { return };
        let is_numbered = self.connections.get(&id).is_some_and(|connection| connection.version() >= Version::Fix50Sp1);
        let symbol = symbol.filter(|_| !is_numbered);
        let targets: BTreeSet<Target> = asked(&self.catalog, symbol).into_iter().map(target_of).collect();
        if targets.is_empty() && lasting != Lasting::Ends && symbol.is_some() {
            return self.reject(
                id,
                message,
                2,
                "TradingSessionID(336) is an instrument's symbol here, or left out for all of them",
            );
        }
        self.begin_or_end(id, message, Asked::Phases(name, lasting), (targets, symbol.is_none()));
    }

    fn id_and_lasting(&mut self, id: u64, message: &Message, name: Option<&str>) -> Option<(Box<str>, Lasting)> {
        let name = name.filter(|name| !name.is_empty() && name.len() <= REQUEST_ID_BYTES_MAX);
        let asked = name.zip(lasting(message));
        if asked.is_none() {
            let text = format!(
                "The request needs an id of 1 to {REQUEST_ID_BYTES_MAX} characters, and SubscriptionRequestType(263) 0, 1 or 2"
            );
            self.reject(id, message, 0, &text);
        }
        asked.map(|(name, lasting)| (name.into(), lasting))
    }

    fn begin_or_end(&mut self, id: u64, message: &Message, asked: Asked, (targets, is_of_all): (BTreeSet<Target>, bool)) {
        if asked.lasting() == Lasting::Ends {
            return self.end_request(id, message, asked.name());
        }
        if let Err((_, text)) = self.begin_request(id, Request { asked, is_of_all, targets: BTreeMap::new() }, targets) {
            self.reject(id, message, 0, &text);
        }
    }

    pub(super) fn on_list_request(&mut self, id: u64, message: &Message) {
        let Some(name) = self.id_of_list(id, message) else { return };
        let lasting = lasting(message).unwrap_or(Lasting::Once);
        if lasting == Lasting::Ends {
            return self.end_request(id, message, ("x", name));
        }
        let symbol = match (message.get(tags::SECURITY_LIST_REQUEST_TYPE), message.text(tags::SYMBOL)) {
            (Some(b"0"), Some(symbol)) => Some(symbol.into()),
            (Some(b"4"), _) => None,
            // Not supported.
            _ => {
                let head = Head { id: &name, number: 1, result: "1", total: 0, version: self.version(id) };
                return self.send(id, "y", &security_list(&head, &[], true));
            }
        };
        self.begin_list(id, message, Listing::new(name, Answer::Lists, symbol, lasting));
    }

    /// All of them in FIX 4.2, which has no SecurityListRequest(x); single ones in all versions.
    pub(super) fn on_definition_request(&mut self, id: u64, message: &Message) {
        let Some(name) = self.id_of_list(id, message) else { return };
        let version = self.version(id);
        let has_lists = version >= Version::Fix43;
        let symbol: Option<Box<str>> = message.text(tags::SYMBOL).map(Into::into);
        let is_once = matches!(lasting(message), None | Some(Lasting::Once));
        let (answer, symbol) = match (message.get(tags::SECURITY_REQUEST_TYPE), symbol) {
            (Some(b"0"), Some(symbol)) if is_once => (Answer::Definition, Some(symbol)),
            (Some(b"3"), symbol) if !has_lists => (Answer::Definitions, symbol),
            _ => {
                let text = if has_lists {
                    "SecurityRequestType(321) must be 0, with Symbol(55), and is answered once: SecurityListRequest(x) asks for lists"
                } else {
                    "SecurityRequestType(321) must be 0 (one, with Symbol(55)) or 3 (all)"
                };
                let head = Head { id: &name, number: 1, result: "5", total: 0, version };
                return self.send(id, "d", &security_definition(&head, Err(text)));
            }
        };
        self.begin_list(id, message, Listing::new(name, answer, symbol, Lasting::Once));
    }

    fn id_of_list(&mut self, id: u64, message: &Message) -> Option<Box<str>> {
        let name = message.text(tags::SECURITY_REQ_ID);
        let name = name.filter(|name| !name.is_empty() && name.len() <= REQUEST_ID_BYTES_MAX);
        if name.is_none() {
            self.reject(id, message, 0, &format!("SecurityReqID(320) must have 1 to {REQUEST_ID_BYTES_MAX} characters"));
        }
        name.map(Into::into)
    }

    fn version(&self, id: u64) -> Version {
        self.connections.get(&id).map_or(Version::Fix44, Connection::version)
    }

    fn begin_list(&mut self, id: u64, message: &Message, listing: Listing) {
        self.begin_or_end(id, message, Asked::List(listing), (BTreeSet::new(), false));
    }

    /// Goes on with a request for securities: with what waits for the client to read, and what is new.
    pub(super) fn tell_list(&mut self, id: u64, no: u64) {
        let (now_ns, day_ns) = self.clock;
        let all = Securities { catalog: &self.catalog, batches: &self.batches };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.go_on_listing(day_ns, no, all) {
            connection.slow_since_ns.get_or_insert(now_ns);
        }
        if connection.requests.get(&no).is_some_and(Request::is_done) {
            self.forget_request(id, no);
        }
    }

    fn target(&self, symbol: &str) -> Option<Target> {
        if let Some(listed) = self.catalog.find(symbol) {
            return Some(target_of(listed));
        }
        let (asset, market) = symbol.split_once('@')?;
        let batch = self.batches.iter().find(|batch| batch.name == market)?;
        batch.assets.iter().find(|listed| *listed == asset)?;
        Some(Target { key: MarketKey::Batch(batch.market), asset: Some((asset.into(), symbol.into())) })
    }

    /// Begins a request: why not, as a reason for Y.
    fn begin_request(&mut self, id: u64, request: Request, targets: BTreeSet<Target>) -> Result<(), (&'static str, String)> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let name = request.asked.name();
        if connection.names.contains_key(&name) {
            return Err((
                "1",
                format!("{} is the id of a request that lasts: end that one first (263=2), or take another", name.1),
            ));
        }
        if connection.requests.len() >= REQUESTS_MAX {
            return Err(("2", format!("A connection has at most {REQUESTS_MAX} requests: end some (263=2), or open another one")));
        }
        if connection.target_count + targets.len() > MARKETS_MAX {
            return Err(("2", format!("A connection reads at most {MARKETS_MAX} markets: end some requests (263=2)")));
        }
        self.requests += 1;
        let no = self.requests;
        let is_list = matches!(request.asked, Asked::List(_));
        connection.names.insert(name, no);
        connection.requests.insert(no, request);
        if is_list {
            self.tell_list(id, no);
            return Ok(());
        }
        let is_empty = targets.is_empty();
        self.add_targets(id, no, targets);
        if is_empty && self.connections[&id].requests.get(&no).is_some_and(|request| request.asked.lasting() == Lasting::Once) {
            self.forget_request(id, no);
        }
        Ok(())
    }

    /// More markets of a request, which gets what is known of them.
    pub(super) fn add_targets(&mut self, id: u64, no: u64, targets: BTreeSet<Target>) {
        let keys: BTreeSet<MarketKey> = targets.iter().map(|target| target.key).collect();
        for target in targets {
            self.add_target(id, no, target);
        }
        for key in keys {
            for part in Part::ALL {
                self.tell(id, no, key, (part, News::Nothing));
            }
        }
    }

    fn add_target(&mut self, id: u64, no: u64, target: Target) {
        let key = target.key;
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.target_count < MARKETS_MAX) else {
            return;
        };
        let Some(request) = connection.requests.get_mut(&no).filter(|request| !request.targets.contains_key(&target)) else {
            return;
        };
        request.targets.insert(target, Sent::NOTHING);
        connection.target_count += 1;
        let market = self.markets.entry(key).or_default();
        if let Asked::Data(wanted) = &request.asked {
            begin(market, wanted);
        }
        for need in request.asked.needs(key) {
            let readers = self.needs.entry(need).or_insert(0);
            *readers += 1;
            if *readers == 1 {
                self.asks.push_back((need, true));
            }
        }
        self.readers.entry(key).or_default().insert((id, no));
    }

    fn end_request(&mut self, id: u64, message: &Message, name: (&'static str, Box<str>)) {
        match self.connections.get(&id).and_then(|connection| connection.names.get(&name)).copied() {
            Some(no) => self.forget_request(id, no),
            None => self.reject(id, message, 1, &format!("{} is the id of no request that lasts", name.1)),
        }
    }

    pub(super) fn forget_request(&mut self, id: u64, no: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(request) = connection.requests.remove(&no) else { return };
        connection.names.remove(&request.asked.name());
        connection.target_count -= request.targets.len();
        for target in request.targets.keys() {
            let key = target.key;
            if let (Asked::Data(wanted), Some(market)) = (&request.asked, self.markets.get_mut(&key)) {
                end(market, wanted);
            }
            for need in request.asked.needs(key) {
                let Some(readers) = self.needs.get_mut(&need) else { continue };
                *readers -= 1;
                if *readers == 0 {
                    self.needs.remove(&need);
                    self.asks.push_back((need, false));
                    self.forget(need);
                }
            }
            if let Some(readers) = self.readers.get_mut(&key) {
                readers.remove(&(id, no));
                if readers.is_empty() {
                    self.readers.remove(&key);
                    self.markets.remove(&key);
                }
            }
        }
    }

    pub(super) fn forget(&mut self, need: Need) {
        self.spoken.forget(key_of(need));
        let Some(market) = self.markets.get_mut(&key_of(need)) else { return };
        match need {
            Need::Book(_) => market.book.forget(),
            Need::Orders(_) => market.orders.forget(),
            Need::Trades(_) => market.trades.forget(),
            Need::Day(_) => market.day.forget(),
            Need::Batch(_) => market.block.forget(),
        }
    }
}

/// One more reads bids and offers so.
fn begin(market: &mut Market, wanted: &Wanted) {
    match wanted.entries {
        Entries::Levels => market.book.begin(wanted.depth),
        Entries::Orders => market.orders.begin(wanted.depth),
    }
}

/// One less does.
fn end(market: &mut Market, wanted: &Wanted) {
    match wanted.entries {
        Entries::Levels => market.book.end(wanted.depth),
        Entries::Orders => market.orders.end(wanted.depth),
    }
}
