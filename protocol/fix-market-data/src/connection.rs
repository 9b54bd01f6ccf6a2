//! One connection: its session, what it has asked for, and what it was sent.

use std::collections::BTreeMap;

use walras_fix::{AppMessage, Body, Message, Session, Version};
use walras_fix_orders::{Catalog, Listed, Secrecy};
use walras_gateway::Principal;
use walras_types::{AccountId, BatchMarketId, InstrumentId, TradeId};

use crate::limits::{OUTPUT_CONFLATES_BYTES, SLOW_NS_MAX, STALLED_NS_MAX};
use crate::listing::{Listing, Securities};
use crate::market::{Market, News};
use crate::piece::{BatchTerms, Need};
use crate::request::{Form, Kind, Lasting, Wanted};
use crate::say::{Speaker, answer, batch_status, security_status, session_status};
use crate::spoken::{Fields, Shape, Spoken};
use crate::tags;

/// A market that somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarketKey {
    Instrument(InstrumentId),
    Batch(BatchMarketId),
}

/// What a symbol stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) key: MarketKey,
    /// Of a batch market, which asset's price; with the whole symbol.
    pub(crate) asset: Option<(Box<str>, Box<str>)>,
}

/// Which part of a market a piece was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Book,
    Orders,
    Trades,
    Day,
    Block,
    BatchTerms,
}

impl Part {
    pub(crate) const ALL: [Self; 6] = [Self::Book, Self::Orders, Self::Trades, Self::Day, Self::Block, Self::BatchTerms];
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// MarketDataRequest(V).
    Data(Wanted),
    /// SecurityStatusRequest(e), TradingSessionStatusRequest(g): the id of the request, and how long it lasts.
    Status(Box<str>, Lasting),
    Phases(Box<str>, Lasting),
    /// SecurityListRequest(x), SecurityDefinitionRequest(c).
    List(Listing),
}

/// Whether what is there may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not all that is asked for is known.
    Waiting,
    /// The client has the market as it is.
    Current,
    /// The client reads slowly: it gets all of the market when it has read what is on its way.
    Behind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) state: State,
    last_trade: Option<TradeId>,
    /// Of its last message that says one.
    update: u64,
}

impl Sent {
    pub(crate) const NOTHING: Self = Self { state: State::Waiting, last_trade: None, update: 0 };

    /// The client has the market as it is now; perhaps a message said of which update that is.
    fn note(&mut self, market: &Market, update: Option<u64>) {
        (self.state, self.last_trade) = (State::Current, market.trades.last());
        self.update = update.unwrap_or(self.update);
    }
}

/// A request that lasts.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: Asked,
    /// Whether it is of all instruments, those to come included.
    pub(crate) is_of_all: bool,
    pub(crate) targets: BTreeMap<Target, Sent>,
}

impl Request {
    /// Whether it wants one answer, and has it.
    pub(crate) fn is_done(&self) -> bool {
        let is_answered = match &self.asked {
            Asked::List(listing) => listing.is_said(),
            Asked::Data(_) | Asked::Status(..) | Asked::Phases(..) => {
                self.targets.values().all(|sent| sent.state == State::Current)
            }
        };
        self.asked.lasting() == Lasting::Once && is_answered
    }
}

impl Asked {
    /// Ids of requests differ within a type of message.
    pub(crate) fn name(&self) -> (&'static str, Box<str>) {
        match self {
            Self::Data(wanted) => ("V", wanted.id.clone()),
            Self::Status(id, _) => ("e", id.clone()),
            Self::Phases(id, _) => ("g", id.clone()),
            Self::List(listing) => listing.name(),
        }
    }

    pub(crate) fn lasting(&self) -> Lasting {
        match self {
            Self::Data(wanted) => wanted.lasting,
            Self::Status(_, lasting) | Self::Phases(_, lasting) => *lasting,
            Self::List(listing) => listing.lasting(),
        }
    }

    /// What it reads of a market.
    pub(crate) fn needs(&self, key: MarketKey) -> Vec<Need> {
        match (self, key) {
            (Self::Data(_), MarketKey::Batch(market)) => vec![Need::Batch(market)],
            (Self::Data(wanted), MarketKey::Instrument(instrument)) => {
                let kinds = wanted.kinds;
                let needs = [
                    (wanted.needs_book(), Need::Book(instrument)),
                    (wanted.needs_orders(), Need::Orders(instrument)),
                    (kinds.has(Kind::Trade), Need::Trades(instrument)),
                    (kinds.needs_day(), Need::Day(instrument)),
                ];
                needs.into_iter().filter(|(is_read, _)| *is_read).map(|(_, need)| need).collect()
            }
            (Self::Status(..) | Self::Phases(..), MarketKey::Instrument(instrument)) => vec![Need::Day(instrument)],
            (Self::Status(..) | Self::Phases(..), MarketKey::Batch(market)) => vec![Need::Batch(market)],
            (Self::List(_), _) => Vec::new(),
        }
    }

    /// Whether all that it reads is known.
    fn is_ready(&self, key: MarketKey, market: &Market) -> bool {
        self.needs(key).iter().all(|need| match need {
            Need::Book(_) => market.book.is_known(),
            Need::Orders(_) => market.orders.is_known(),
            Need::Trades(_) => market.trades.is_known(),
            Need::Day(_) => market.day.is_known(),
            Need::Batch(_) => {
                let are_terms_known = matches!(self, Self::Data(_)) || market.block.terms.is_some();
                are_terms_known && market.block.is_known()
            }
        })
    }

    /// Whether a part of a market concerns it.
    fn concerns(&self, part: Part) -> bool {
        match (self, part) {
            (Self::Data(wanted), Part::Book) => wanted.needs_book(),
            (Self::Data(wanted), Part::Orders) => wanted.needs_orders(),
            (Self::Data(wanted), Part::Trades) => wanted.kinds.has(Kind::Trade),
            (Self::Data(wanted), Part::Day) => wanted.kinds.needs_day(),
            (Self::Data(_), Part::Block) => true,
            (Self::Data(_), Part::BatchTerms) => false,
            (Self::Status(..) | Self::Phases(..), part) => matches!(part, Part::Day | Part::Block | Part::BatchTerms),
            (Self::List(_), _) => false,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Stage {
    Fresh,
    /// Its logon is judged since then.
    Judged(u64),
    Open(Box<Principal>),
    Over,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Session,
    pub(crate) secrecy: Secrecy,
    pub(crate) stage: Stage,
    pub(crate) account: Option<AccountId>,
    pub(crate) requests: BTreeMap<u64, Request>,
    /// By type and id.
    pub(crate) names: BTreeMap<(&'static str, Box<str>), u64>,
    pub(crate) target_count: usize,
    /// Since when more waits for the client than it may without losing changes.
    pub(crate) slow_since_ns: Option<u64>,
    /// When some of its output was last written.
    pub(crate) written_ns: u64,
    pub(crate) throttled: u32,
    pub(crate) is_dirty: bool,
}

impl Connection {
    pub(crate) fn version(&self) -> Version {
        self.session.version().unwrap_or(Version::Fix44)
    }

    pub(crate) fn send(&mut self, day_ns: u64, msg_type: &'static str, body: &Body) {
        self.session.send(day_ns, AppMessage { msg_type, header: &[], body });
    }

    /// BusinessMessageReject(j).
    pub(crate) fn reject(&mut self, day_ns: u64, message: &Message, reason: u64, text: &str) {
        let body = walras_fix_orders::business_reject(message.seq().unwrap_or(0), message.msg_type(), reason, None, text);
        self.send(day_ns, "j", &body);
    }

    /// Whether it does not read what it is sent.
    pub(crate) fn is_deaf(&self, now_ns: u64) -> bool {
        let Some(since) = self.slow_since_ns else { return false };
        let stalled = since.max(self.written_ns);
        now_ns >= since.saturating_add(SLOW_NS_MAX) || now_ns >= stalled.saturating_add(STALLED_NS_MAX)
    }

    fn is_slow(&self) -> bool {
        self.session.output().len() > OUTPUT_CONFLATES_BYTES
    }

    /// Tells a request what is new of a market; whether the request is done.
    pub(crate) fn tell(
        &mut self,
        (now_ns, day_ns): (u64, u64),
        (no, catalog): (u64, &Catalog),
        (key, market): (MarketKey, &Market),
        (part, news): (Part, News),
        spoken: &mut Spoken,
    ) -> bool {
        let (is_slow, version) = (self.is_slow(), self.version());
        let Some(request) = self.requests.get_mut(&no) else { return false };
        if !request.asked.concerns(part) {
            return false;
        }
        let is_ready = request.asked.is_ready(key, market);
        let mut said = Vec::new();
        for (target, sent) in request.targets.iter_mut().filter(|(target, _)| target.key == key) {
            match sent.state {
                State::Behind => continue,
                State::Waiting | State::Current if !is_ready => continue,
                State::Current if news == News::Nothing => continue,
                // However much a client asks for at once, it comes as it is read.
                State::Waiting | State::Current if is_slow => {
                    sent.state = State::Behind;
                    self.slow_since_ns.get_or_insert(now_ns);
                    continue;
                }
                State::Waiting | State::Current => {}
            }
            let is_whole = sent.state == State::Waiting || news == News::Whole;
            let said_now = say(&request.asked, (target, sent), (catalog, version, day_ns), market, (part, is_whole), spoken);
            sent.note(market, said_now.as_ref().and_then(|said| said.update));
            said.extend(said_now);
        }
        let is_done = request.is_done();
        for Said { msg_type, body, .. } in said {
            self.send(day_ns, msg_type, &body);
        }
        is_done
    }

    /// Sends what a request for securities has to say, as far as there is room; whether that is all.
    pub(crate) fn go_on_listing(&mut self, day_ns: u64, no: u64, all: Securities<'_>) -> bool {
        let version = self.version();
        loop {
            let is_slow = self.is_slow();
            let Some(Request { asked: Asked::List(listing), .. }) = self.requests.get_mut(&no) else { return true };
            if is_slow {
                return false;
            }
            let Some((msg_type, body)) = listing.next(all, version) else { return true };
            self.send(day_ns, msg_type, &body);
        }
    }

    /// Tells what waited for the client to read, as far as there is room; returns the requests that are done.
    pub(crate) fn catch_up(
        &mut self,
        day_ns: u64,
        all: Securities<'_>,
        markets: &BTreeMap<MarketKey, Market>,
        spoken: &mut Spoken,
    ) -> Vec<u64> {
        let mut done = Vec::new();
        if self.slow_since_ns.is_none() || self.session.output().len() > OUTPUT_CONFLATES_BYTES / 4 {
            return done;
        }
        let version = self.version();
        let numbers: Vec<u64> = self.requests.keys().copied().collect();
        for no in numbers {
            if !self.go_on_listing(day_ns, no, all) {
                return done;
            }
            let targets: Vec<Target> = match self.requests.get(&no) {
                Some(request) => {
                    let behind = request.targets.iter().filter(|(_, sent)| sent.state == State::Behind);
                    behind.map(|(target, _)| target.clone()).collect()
                }
                None => continue,
            };
            for target in targets {
                if self.is_slow() {
                    return done;
                }
                let Some(market) = markets.get(&target.key) else { continue };
                let Some(request) = self.requests.get_mut(&no) else { continue };
                let Request { asked, targets, .. } = request;
                let Some(sent) = targets.get_mut(&target) else { continue };
                let part = if matches!(target.key, MarketKey::Batch(_)) { Part::Block } else { Part::Book };
                let said = say(asked, (&target, sent), (all.catalog, version, day_ns), market, (part, true), spoken);
                sent.note(market, said.as_ref().and_then(|said| said.update));
                if let Some(Said { msg_type, body, .. }) = said {
                    self.send(day_ns, msg_type, &body);
                }
            }
            if self.requests.get(&no).is_some_and(Request::is_done) {
                done.push(no);
            }
        }
        self.slow_since_ns = None;
        done
    }
}

/// A message about a market.
struct Said {
    msg_type: &'static str,
    body: Body,
    /// The update that it says it is of.
    update: Option<u64>,
}

impl Said {
    fn of(msg_type: &'static str, body: Body) -> Self {
        Self { msg_type, body, update: None }
    }
}

/// A message about a market: all of it, or what changed of a part.
fn say(
    asked: &Asked,
    (target, sent): (&Target, &Sent),
    (catalog, version, day_ns): (&Catalog, Version, u64),
    market: &Market,
    (part, is_whole): (Part, bool),
    spoken: &mut Spoken,
) -> Option<Said> {
    let listed = match target.key {
        MarketKey::Instrument(instrument) => catalog.get(instrument),
        MarketKey::Batch(_) => None,
    };
    match (asked, listed, &target.asset) {
        (Asked::Data(wanted), Some(listed), _) => {
            let changed = (!is_whole).then_some(part);
            let shape = shape_of(wanted, version, (target.key, sent), changed);
            let Fields { msg_type, body, update } = spoken.get(shape, || {
                let speaker = Speaker { version, wanted, symbol: listed.spec.symbol.as_str() };
                of_instrument(&speaker, market, listed, (sent, changed))
            })?;
            Some(Said { msg_type, body: answer(wanted, body), update: *update })
        }
        (Asked::Data(wanted), None, Some((asset, symbol))) => {
            let (speaker, update) = (Speaker { version, wanted, symbol }, Some(market.block.number()));
            if is_whole || wanted.form == Form::Full {
                return Some(Said { msg_type: "W", body: answer(wanted, &speaker.whole_block(market, asset)), update });
            }
            let changes = speaker.new_block(market, asset, sent.update);
            changes.map(|body| Said { msg_type: "X", body: answer(wanted, &body), update })
        }
        (Asked::Status(id, _), Some(listed), _) => {
            let day = market.day.now.as_ref()?;
            let is_news = is_whole || market.day.has_new_phase();
            is_news.then(|| Said::of("f", security_status(id, day, listed, version, day_ns)))
        }
        (Asked::Status(id, _), None, Some((asset, symbol))) => {
            let terms = market.block.terms?;
            // FIX 4.2 has no field in f that says the interval.
            let is_said = |before: BatchTerms| before.phase != terms.phase || version >= Version::Fix43;
            let is_news = is_whole || (part == Part::BatchTerms && market.block.terms_before.is_none_or(is_said));
            is_news.then(|| Said::of("f", batch_status((id, symbol, asset), (terms, &market.block), version, day_ns)))
        }
        (Asked::Phases(id, _), Some(listed), _) => {
            let day = market.day.now.as_ref()?;
            let is_news = is_whole || market.day.has_new_phase();
            is_news.then(|| Said::of("h", session_status(id, day, listed, version)))
        }
        (Asked::Phases(..), None, Some(_)) | (Asked::Data(_) | Asked::Status(..) | Asked::Phases(..), None, None) => None,
        (Asked::List(_), ..) => None,
    }
}

/// What a message about an instrument depends on.
fn shape_of(wanted: &Wanted, version: Version, (key, sent): (MarketKey, &Sent), part: Option<Part>) -> Shape {
    let Wanted { entries, depth, kinds, form, has_numbers, .. } = *wanted;
    let is_whole = part.is_none() || form == Form::Full;
    let before = if is_whole { 0 } else { sent.update };
    let last_trade = sent.last_trade.filter(|_| is_whole && kinds.has(Kind::Trade));
    Shape { key, version, kinds, entries, depth, has_numbers, form, part, before, last_trade }
}

/// A message about an instrument: all of it, or what changed of a part.
fn of_instrument(
    speaker: &Speaker<'_>,
    market: &Market,
    listed: &Listed,
    (sent, changed): (&Sent, Option<Part>),
) -> Option<Fields> {
    let whole = || {
        let body = speaker.whole(market, listed, sent.last_trade);
        Fields { msg_type: "W", body, update: Some(speaker.update_of(market)) }
    };
    let Some(part) = changed else { return Some(whole()) };
    let (changes, update) = match part {
        Part::Book => (speaker.book_changes(&market.book, listed, sent.update), Some(market.book.update)),
        Part::Orders => (speaker.order_changes(&market.orders, listed, sent.update), Some(market.orders.update)),
        Part::Trades => (speaker.new_trades(market, listed), None),
        Part::Day => (speaker.day_changes(market, listed), None),
        Part::Block | Part::BatchTerms => (None, None),
    };
    changes.map(|body| if speaker.wanted.form == Form::Full { whole() } else { Fields { msg_type: "X", body, update } })
}

/// The logon's time, for those who sign it.
pub(crate) fn sent_ns(message: &Message) -> u64 {
    message.time_ns(tags::SENDING_TIME).unwrap_or(0)
}
