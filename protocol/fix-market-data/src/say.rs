//! Markets as messages.

use walras_feed::message::BatchCleared;
use walras_fix::{Body, Version};
use walras_fix_orders::{Catalog, Listed};
use walras_market_data::{OrderChangeKind, PublicOrder};
use walras_types::{Allocation, BatchPhase, FeeSchedule, InstrumentSpec, PriceTicks, Side, SizeLots, TradeId, TradingPhase};
use walras_wire::PhaseCause;

use crate::market::{Action, Block, Book, Market, action_of};
use crate::orders::Orders;
use crate::piece::{Auction, BatchTerms, Day};
use crate::request::{Entries, Kind, Kinds, Wanted};
use crate::tags;

/// One entry of a W or an X.
#[derive(Default)]
struct Line {
    action: Option<Action>,
    kind: Kind,
    /// Of a trade or a block.
    id: Option<u64>,
    /// Of an order.
    order_id: Option<u64>,
    price: Option<String>,
    size: Option<String>,
    time_ns: Option<u64>,
    condition: Option<&'static str>,
    orders: Option<u32>,
    position: Option<usize>,
    text: Option<String>,
    aggressor: Option<Side>,
}

/// Where a message goes, and of what it is. It makes all fields but the id of the request, which [`answer`] adds.
#[derive(Clone, Copy)]
pub(crate) struct Speaker<'a> {
    pub(crate) version: Version,
    pub(crate) wanted: &'a Wanted,
    pub(crate) symbol: &'a str,
}

const fn side_kind(side: Side) -> Kind {
    match side {
        Side::Buy => Kind::Bid,
        Side::Sell => Kind::Offer,
    }
}

/// The message with these fields, to who asked for it.
pub(crate) fn answer(wanted: &Wanted, fields: &Body) -> Body {
    let mut body = Body::new();
    body.text(tags::MD_REQ_ID, &wanted.id).append(fields);
    body
}

impl Speaker<'_> {
    /// A whole market: MarketDataSnapshotFullRefresh(W). `after` is the last trade that the client has.
    pub(crate) fn whole(&self, market: &Market, listed: &Listed, after: Option<TradeId>) -> Body {
        let mut lines = Vec::new();
        let (kinds, scale) = (self.wanted.kinds, &listed.scale);
        for side in [Side::Buy, Side::Sell].into_iter().filter(|side| kinds.has(side_kind(*side))) {
            match self.wanted.entries {
                Entries::Levels => {
                    let levels = market.book.levels(self.wanted.depth, side);
                    lines.extend(levels.iter().zip(1..).map(|(level, position)| Line {
                        kind: side_kind(side),
                        price: Some(scale.price(level.price).to_string()),
                        size: Some(scale.size(level.shown).to_string()),
                        orders: Some(level.order_count),
                        position: Some(position),
                        ..Line::default()
                    }));
                }
                Entries::Orders => {
                    let orders = market.orders.of(self.wanted.depth, side);
                    lines.extend(orders.iter().zip(1..).map(|(order, position)| order_line(order, position, listed)));
                }
            }
        }
        // Where it has the last one, that one again: a whole market has its last trade.
        let after = after.filter(|after| Some(*after) != market.trades.last());
        self.trades(market, listed, after, &mut lines);
        if let Some(day) = &market.day.now {
            lines.extend(day_values(day, listed).into_iter().filter_map(|(kind, price, size)| {
                (kinds.has(kind) && (price.is_some() || size.is_some())).then(|| Line { kind, price, size, ..Line::default() })
            }));
        }
        if let Some(auction) = market.book.auction {
            lines.extend(
                [Kind::Imbalance, Kind::Clearing]
                    .into_iter()
                    .filter(|kind| kinds.has(*kind))
                    .map(|kind| auction_line(kind, Some(auction), listed)),
            );
        }
        self.snapshot(self.update_of(market), &lines)
    }

    /// The update that a whole market is of.
    pub(crate) fn update_of(&self, market: &Market) -> u64 {
        if self.wanted.needs_orders() { market.orders.update } else { market.book.update }
    }

    /// What the last update changed of a book: MarketDataIncrementalRefresh(X), if it did. `before` is the update that the client has.
    pub(crate) fn book_changes(&self, book: &Book, listed: &Listed, before: u64) -> Option<Body> {
        let (kinds, scale) = (self.wanted.kinds, &listed.scale);
        let mut lines = Vec::new();
        let is_of_levels = self.wanted.entries == Entries::Levels;
        let changes = book.changes(self.wanted.depth).iter().filter(|_| is_of_levels);
        for entry in changes.filter(|entry| kinds.has(side_kind(entry.side))) {
            let is_there = entry.action != Action::Delete;
            lines.push(Line {
                action: Some(entry.action),
                kind: side_kind(entry.side),
                price: Some(scale.price(entry.level.price).to_string()),
                size: is_there.then(|| scale.size(entry.level.shown).to_string()),
                orders: is_there.then_some(entry.level.order_count),
                position: Some(entry.position),
                ..Line::default()
            });
        }
        if let Some(action) = action_of(book.auction_before.as_ref(), book.auction.as_ref()) {
            for kind in [Kind::Imbalance, Kind::Clearing].into_iter().filter(|kind| kinds.has(*kind)) {
                lines.push(Line { action: Some(action), ..auction_line(kind, book.auction, listed) });
            }
        }
        self.changes((before, book.update), &lines)
    }

    /// What the last update changed of a book by order, likewise.
    pub(crate) fn order_changes(&self, orders: &Orders, listed: &Listed, before: u64) -> Option<Body> {
        let mut lines = Vec::new();
        for change in orders.changes(self.wanted.depth) {
            let action = match change.kind {
                OrderChangeKind::Removed => Action::Delete,
                OrderChangeKind::Resized => Action::Change,
                OrderChangeKind::Added => Action::New,
            };
            let mut line = Line { action: Some(action), ..order_line(&change.order, change.position, listed) };
            line.size = line.size.filter(|_| action != Action::Delete);
            lines.push(line);
        }
        lines.retain(|line| self.wanted.kinds.has(line.kind));
        self.changes((before, orders.update), &lines)
    }

    /// Trades after the last one before.
    pub(crate) fn new_trades(&self, market: &Market, listed: &Listed) -> Option<Body> {
        let mut lines = Vec::new();
        // Trade numbers begin with 1.
        self.trades(market, listed, Some(market.trades.before.unwrap_or(TradeId(0))), &mut lines);
        lines.iter_mut().for_each(|line| line.action = Some(Action::New));
        self.changes((0, 0), &lines)
    }

    /// Figures of the day that changed.
    pub(crate) fn day_changes(&self, market: &Market, listed: &Listed) -> Option<Body> {
        let values = |day: &Option<Day>| day.as_ref().map(|day| day_values(day, listed)).unwrap_or_default();
        let (before, now) = (values(&market.day.before), values(&market.day.now));
        let mut lines = Vec::new();
        for (was, is) in before.into_iter().zip(now) {
            let value = |(_, price, size): &(Kind, Option<String>, Option<String>)| price.clone().or_else(|| size.clone());
            let Some(action) = action_of(value(&was).as_ref(), value(&is).as_ref()) else { continue };
            let (kind, price, size) = is;
            if self.wanted.kinds.has(kind) {
                lines.push(Line { action: Some(action), kind, price, size, ..Line::default() });
            }
        }
        self.changes((0, 0), &lines)
    }

    fn trades(&self, market: &Market, listed: &Listed, after: Option<TradeId>, lines: &mut Vec<Line>) {
        if !self.wanted.kinds.has(Kind::Trade) {
            return;
        }
        lines.extend(market.trades.after(after).map(|trade| Line {
            kind: Kind::Trade,
            id: Some(trade.trade_id.0),
            price: Some(listed.scale.price(trade.price).to_string()),
            size: Some(listed.scale.size(trade.size).to_string()),
            time_ns: Some(trade.time.0),
            aggressor: trade.taker_side,
            ..Line::default()
        }));
    }

    /// An asset's price in the last block of a batch market.
    fn block_lines(&self, market: &Market, asset: &str) -> Vec<Line> {
        let Some(of) = market.block.prices.iter().find(|price| price.asset == asset) else { return Vec::new() };
        let wanted = [Kind::Trade, Kind::Clearing].into_iter().filter(|kind| self.wanted.kinds.has(*kind));
        let line = |kind| Line {
            kind,
            id: Some(market.block.number()),
            price: Some(of.price.clone()),
            size: Some(of.volume.clone()),
            time_ns: Some(market.block.time_ns),
            text: market.block.cleared.as_ref().map(block_text),
            ..Line::default()
        };
        wanted.map(line).collect()
    }

    /// The same as a W.
    pub(crate) fn whole_block(&self, market: &Market, asset: &str) -> Body {
        self.snapshot(market.block.number(), &self.block_lines(market, asset))
    }

    /// The same as an X.
    pub(crate) fn new_block(&self, market: &Market, asset: &str, before: u64) -> Option<Body> {
        let mut lines = self.block_lines(market, asset);
        lines.iter_mut().for_each(|line| line.action = Some(Action::New));
        self.changes((before, market.block.number()), &lines)
    }

    fn snapshot(&self, update: u64, lines: &[Line]) -> Body {
        let mut body = Body::new();
        if self.wanted.has_numbers {
            body.number(tags::UPDATE, update);
        }
        self.book_type(&mut body);
        body.text(tags::SYMBOL, self.symbol).number(tags::NO_MD_ENTRIES, lines.len() as u64);
        for line in lines {
            body.text(tags::MD_ENTRY_TYPE, line.kind.code());
            self.rest(line, &mut body);
        }
        body
    }

    fn changes(&self, (before, update): (u64, u64), lines: &[Line]) -> Option<Body> {
        if lines.is_empty() {
            return None;
        }
        let mut body = Body::new();
        if self.wanted.has_numbers && update > 0 {
            body.number(tags::UPDATE, update).number(tags::UPDATE_BEFORE, before);
        }
        self.book_type(&mut body);
        body.number(tags::NO_MD_ENTRIES, lines.len() as u64);
        for line in lines {
            let action = match line.action {
                Some(Action::New) | None => "0",
                Some(Action::Change) => "1",
                Some(Action::Delete) => "2",
            };
            body.text(tags::MD_UPDATE_ACTION, action).text(tags::MD_ENTRY_TYPE, line.kind.code());
            if let Some(id) = line.id.or(line.order_id) {
                body.number(tags::MD_ENTRY_ID, id);
            }
            body.text(tags::SYMBOL, self.symbol);
            self.rest(line, &mut body);
        }
        Some(body)
    }

    /// By order, where the version has a field for it.
    fn book_type(&self, body: &mut Body) {
        if self.wanted.entries == Entries::Orders && self.version >= Version::Fix50 {
            body.text(tags::MD_BOOK_TYPE, "3");
        }
    }

    /// In the order that the versions have.
    fn rest(&self, line: &Line, body: &mut Body) {
        if let Some(price) = &line.price {
            body.text(tags::MD_ENTRY_PX, price);
        }
        if let Some(size) = &line.size {
            body.text(tags::MD_ENTRY_SIZE, size);
        }
        if let Some(time_ns) = line.time_ns {
            body.date_and_time((tags::MD_ENTRY_DATE, tags::MD_ENTRY_TIME), time_ns, self.version);
        }
        if let Some(condition) = line.condition {
            body.text(tags::TRADE_CONDITION, condition);
        }
        if let Some(order_id) = line.order_id {
            body.number(tags::ORDER_ID, order_id);
        }
        if let Some(orders) = line.orders {
            body.number(tags::NUMBER_OF_ORDERS, u64::from(orders));
        }
        if let Some(position) = line.position {
            body.number(tags::MD_ENTRY_POSITION_NO, position as u64);
        }
        if let Some(text) = &line.text {
            body.text(tags::TEXT, text);
        }
        // Dictionaries of 5.0 SP2 that are older than this field are in use: a client that has it asks for more than they know.
        if let Some(side) = line.aggressor.filter(|_| self.version >= Version::Fix50Sp2 && self.wanted.has_numbers) {
            body.text(tags::AGGRESSOR_SIDE, if side == Side::Buy { "1" } else { "2" });
        }
    }
}

/// An order, at its place on its side.
fn order_line(order: &PublicOrder, position: usize, listed: &Listed) -> Line {
    Line {
        kind: side_kind(order.side),
        order_id: Some(order.order_id.0),
        price: Some(listed.scale.price(order.price).to_string()),
        size: Some(listed.scale.size(order.shown).to_string()),
        position: Some(position),
        ..Line::default()
    }
}

/// What the binary feed says of a block beyond the prices of assets: FIX has no fields for it.
fn block_text(cleared: &BatchCleared) -> String {
    let BatchCleared { block, transactions, pairs, offers_traded, gap_ppb, unserved_ppb, set_aside, state_root } = cleared;
    let root: String = state_root.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "block {block}: {transactions} transactions, {pairs} pairs, {offers_traded} offers traded, gap {gap_ppb} ppb, \
         unserved {unserved_ppb} ppb, {set_aside} set aside, state root {root}"
    )
}

/// Of each kind a price, or a size.
fn day_values(day: &Day, listed: &Listed) -> [(Kind, Option<String>, Option<String>); 5] {
    let price = |price: Option<PriceTicks>| price.map(|price| listed.scale.price(price).to_string());
    let volume = day.volume.filter(|volume| *volume != SizeLots::ZERO).map(|volume| listed.scale.size(volume).to_string());
    [
        (Kind::Open, price(day.open), None),
        (Kind::Close, price(day.previous_close), None),
        (Kind::High, price(day.high), None),
        (Kind::Low, price(day.low), None),
        (Kind::Volume, None, volume),
    ]
}

/// What an auction would trade: its price and size, or what is wanted beyond it.
fn auction_line(kind: Kind, auction: Option<Auction>, listed: &Listed) -> Line {
    let Some(Auction { price, volume, imbalance_lots }) = auction else { return Line { kind, ..Line::default() } };
    let is_imbalance = kind == Kind::Imbalance;
    let beyond = SizeLots::new(imbalance_lots.unsigned_abs());
    Line {
        kind,
        price: Some(listed.scale.price(price).to_string()),
        size: Some(listed.scale.size(if is_imbalance { beyond } else { volume }).to_string()),
        // More buyers, more sellers.
        condition: (is_imbalance && imbalance_lots != 0).then_some(if imbalance_lots > 0 { "P" } else { "Q" }),
        ..Line::default()
    }
}

/// MarketDataRequestReject(Y).
pub(crate) fn rejected(id: &str, reason: &str, text: &str) -> Body {
    let mut body = Body::new();
    body.text(tags::MD_REQ_ID, id).text(tags::MD_REQ_REJ_REASON, reason).text(tags::TEXT, text);
    body
}

/// SecurityTradingStatus(326) of a phase.
fn trading_status(phase: TradingPhase, version: Version) -> &'static str {
    let is_old = version < Version::Fix44;
    match phase {
        TradingPhase::Continuous => "17",
        TradingPhase::Halt => "2",
        TradingPhase::Closed => "18",
        // An opening delay.
        TradingPhase::PreOpen | TradingPhase::OpeningAuction | TradingPhase::ClosingAuction if is_old => "1",
        TradingPhase::PreOpen => "21",
        TradingPhase::OpeningAuction => "22",
        // Pre-cross.
        TradingPhase::ClosingAuction if version >= Version::Fix50Sp2 => "24",
        TradingPhase::ClosingAuction => "20",
    }
}

/// TradingSessionSubID(625) of a phase: what part of the day it is.
const fn part_of_day(phase: TradingPhase) -> &'static str {
    match phase {
        TradingPhase::PreOpen => "1",
        TradingPhase::OpeningAuction => "2",
        TradingPhase::Continuous => "3",
        TradingPhase::ClosingAuction => "4",
        TradingPhase::Closed => "5",
        // Quiescent.
        TradingPhase::Halt => "7",
    }
}

/// The name of a phase, as other interfaces have it.
const fn name(phase: TradingPhase) -> &'static str {
    match phase {
        TradingPhase::Closed => "closed",
        TradingPhase::PreOpen => "pre-open",
        TradingPhase::OpeningAuction => "opening auction",
        TradingPhase::Continuous => "continuous",
        TradingPhase::Halt => "halt",
        TradingPhase::ClosingAuction => "closing auction",
    }
}

/// A phase and its cause, in words.
fn phase_text(day: &Day) -> String {
    let name = name(day.phase);
    match day.phase_cause {
        Some(PhaseCause::Operator) => format!("{name}, by the operator"),
        Some(PhaseCause::PriceBand) => format!("{name}, by the price band"),
        None => name.to_owned(),
    }
}

/// SecurityTradingEvent(1174) of a phase's cause, where FIX has a value for it.
const fn trading_event(cause: PhaseCause) -> Option<&'static str> {
    match cause {
        // Price volatility interruption.
        PhaseCause::PriceBand => Some("3"),
        PhaseCause::Operator => None,
    }
}

/// SecurityStatus(f).
pub(crate) fn security_status(id: &str, day: &Day, listed: &Listed, version: Version, now_ns: u64) -> Body {
    let price = |price: PriceTicks| listed.scale.price(price).to_string();
    let mut body = Body::new();
    body.text(tags::SECURITY_STATUS_REQ_ID, id).text(tags::SYMBOL, listed.spec.symbol.as_str());
    if version >= Version::Fix43 {
        body.text(tags::TRADING_SESSION_SUB_ID, part_of_day(day.phase));
    }
    body.text(tags::SECURITY_TRADING_STATUS, trading_status(day.phase, version));
    if let Some(event) = day.phase_cause.and_then(trading_event).filter(|_| version >= Version::Fix50Sp1) {
        body.text(tags::SECURITY_TRADING_EVENT, event);
    }
    if let (Some(high), Some(low)) = (day.high, day.low) {
        body.text(tags::HIGH_PX, &price(high)).text(tags::LOW_PX, &price(low));
    }
    if let Some(last) = day.last {
        body.text(tags::LAST_PX, &price(last));
    }
    body.time(tags::TRANSACT_TIME, now_ns, version);
    if version >= Version::Fix43 {
        body.text(tags::TEXT, &phase_text(day));
    }
    body
}

/// The same of an asset of a batch market.
pub(crate) fn batch_status(
    (id, symbol, asset): (&str, &str, &str),
    (terms, block): (BatchTerms, &Block),
    version: Version,
    now_ns: u64,
) -> Body {
    let (status, name) = match terms.phase {
        BatchPhase::Open => ("17", "open"),
        BatchPhase::Closed => ("18", "closed"),
    };
    let mut body = Body::new();
    body.text(tags::SECURITY_STATUS_REQ_ID, id).text(tags::SYMBOL, symbol).text(tags::SECURITY_TRADING_STATUS, status);
    if let Some(of) = block.prices.iter().find(|price| price.asset == asset) {
        body.text(tags::LAST_PX, &of.price);
    }
    body.time(tags::TRANSACT_TIME, now_ns, version);
    if version >= Version::Fix43 {
        body.text(tags::TEXT, &format!("{name}, interval {}", milliseconds(terms.interval_ns)));
    }
    body
}

/// A time with its unit, exact.
fn milliseconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000, ns % 1_000_000);
    if rest == 0 {
        return format!("{whole} ms");
    }
    let digits = format!("{rest:06}");
    format!("{whole}.{} ms", digits.trim_end_matches('0'))
}

/// TradingSessionStatus(h): each instrument has phases of its own, and is a trading session of its own here.
pub(crate) fn session_status(id: &str, day: &Day, listed: &Listed, version: Version) -> Body {
    let mut body = Body::new();
    body.text(tags::TRAD_SES_REQ_ID, id);
    // 5.0 SP1 and later number sessions, and have the instrument besides: 1 is the day.
    let is_numbered = version >= Version::Fix50Sp1;
    body.text(tags::TRADING_SESSION_ID, if is_numbered { "1" } else { listed.spec.symbol.as_str() });
    if version >= Version::Fix43 {
        body.text(tags::TRADING_SESSION_SUB_ID, part_of_day(day.phase));
    }
    let status = match day.phase {
        TradingPhase::Halt => "1",
        TradingPhase::Continuous => "2",
        TradingPhase::Closed => "3",
        TradingPhase::PreOpen | TradingPhase::OpeningAuction => "4",
        TradingPhase::ClosingAuction => "5",
    };
    body.text(tags::TRAD_SES_STATUS, status).text(tags::TEXT, &phase_text(day));
    if is_numbered {
        body.text(tags::SYMBOL, listed.spec.symbol.as_str());
    }
    body
}

/// What SecurityList(y) and SecurityDefinition(d) say of a security.
pub(crate) struct Security {
    symbol: String,
    currency: String,
    /// Of an instrument: its tick and its lot.
    steps: Option<(String, String)>,
    text: String,
}

impl Security {
    pub(crate) fn of(listed: &Listed) -> Self {
        let (tick, lot) = (listed.scale.tick_size().to_string(), listed.scale.lot_size().to_string());
        Self {
            symbol: listed.spec.symbol.as_str().to_owned(),
            currency: listed.currency.as_str().to_owned(),
            text: format!("tick {tick}, lot {lot}, {}", terms(listed)),
            steps: Some((tick, lot)),
        }
    }

    /// The price of an asset in a batch market, in units of another.
    pub(crate) fn of_batch(market: &str, asset: &str, per: &str) -> Self {
        let (symbol, text) = (format!("{asset}@{market}"), format!("batch market {market}: {asset} in {per}"));
        Self { symbol, currency: per.to_owned(), steps: None, text }
    }

    /// Adds its fields, which SecurityList(y) and SecurityDefinition(d) have alike.
    fn write(&self, version: Version, body: &mut Body) {
        let Self { symbol, currency, steps, text } = self;
        body.text(tags::SYMBOL, symbol);
        if let Some((tick, _)) = steps.as_ref().filter(|_| version >= Version::Fix50Sp2) {
            body.text(tags::MIN_PRICE_INCREMENT, tick);
        }
        body.text(tags::CURRENCY, currency);
        if let (Some((_, lot)), Version::Fix43 | Version::Fix44 | Version::Fix50) = (steps, version) {
            body.text(tags::ROUND_LOT, lot).text(tags::MIN_TRADE_VOL, lot);
        }
        body.text(tags::TEXT, text);
    }
}

/// What else the definition of an instrument says: FIX has no fields for it.
fn terms(Listed { spec, base, scale, .. }: &Listed) -> String {
    let InstrumentSpec { allocation, fees: FeeSchedule { maker_ppm, taker_ppm }, collar_ppm, band_ppm, reference_price, .. } = spec;
    let size = |lots: SizeLots| scale.size(lots);
    let allocation = match *allocation {
        Allocation::PriceTime => "price-time".to_owned(),
        Allocation::ProRata { min_lots } => format!("pro rata from {}", size(min_lots)),
        Allocation::TopProRata { top_lots_max, min_lots } => {
            format!("top order up to {}, then pro rata from {}", size(top_lots_max), size(min_lots))
        }
        Allocation::Split { fifo_percent, min_lots } => {
            format!("{fifo_percent} % price-time, then pro rata from {}", size(min_lots))
        }
    };
    let (base, reference) = (base.as_str(), scale.price(*reference_price));
    format!(
        "base {base}, {allocation}, maker fee {maker_ppm} ppm, taker fee {taker_ppm} ppm, collar {collar_ppm} ppm, \
         band {band_ppm} ppm, reference price {reference}"
    )
}

/// How an answer to a request for securities begins.
pub(crate) struct Head<'a> {
    pub(crate) id: &'a str,
    /// Of the messages that answer the request, from 1.
    pub(crate) number: u64,
    /// SecurityRequestResult(560), SecurityResponseType(323).
    pub(crate) result: &'static str,
    /// Securities of the whole list.
    pub(crate) total: usize,
    pub(crate) version: Version,
}

/// SecurityList(y): some securities of a list, perhaps its last ones.
pub(crate) fn security_list(head: &Head<'_>, part: &[Security], is_last: bool) -> Body {
    let Head { id, number, result, total, version } = *head;
    let mut body = Body::new();
    body.text(tags::SECURITY_REQ_ID, id).text(tags::SECURITY_RESPONSE_ID, &format!("{id}-{number}"));
    body.text(tags::SECURITY_REQUEST_RESULT, result);
    if version >= Version::Fix44 {
        body.number(tags::TOT_NO_RELATED_SYM, total as u64).flag(tags::LAST_FRAGMENT, is_last);
    }
    if !part.is_empty() {
        body.number(tags::NO_RELATED_SYM, part.len() as u64);
    }
    for security in part {
        security.write(version, &mut body);
    }
    body
}

/// SecurityDefinition(d): a security, or why there is none.
pub(crate) fn security_definition(head: &Head<'_>, security: Result<&Security, &str>) -> Body {
    let Head { id, number, result, total, version } = *head;
    let mut body = Body::new();
    body.text(tags::SECURITY_REQ_ID, id).text(tags::SECURITY_RESPONSE_ID, &format!("{id}-{number}"));
    body.text(tags::SECURITY_RESPONSE_TYPE, result);
    // TotalNumSecurities, which later versions do not have here.
    if version < Version::Fix43 {
        body.number(tags::TOT_NO_RELATED_SYM, total as u64);
    }
    match security {
        Ok(security) => security.write(version, &mut body),
        Err(text) => {
            body.text(tags::TEXT, text);
        }
    }
    body
}

/// The instruments that a request names, all of them where it names none.
pub(crate) fn asked<'c>(catalog: &'c Catalog, symbol: Option<&str>) -> Vec<&'c Listed> {
    catalog.iter().filter(|listed| symbol.is_none_or(|symbol| listed.spec.symbol.as_str() == symbol)).collect()
}

/// For the checks of kinds.
pub(crate) fn kinds_of(version: Version) -> Kinds {
    Kind::ALL.into_iter().filter(|kind| kind.since() <= version).collect()
}

#[cfg(test)]
mod tests {
    use walras_types::{AssetId, InstrumentId, RiskLimits, Symbol};
    use walras_wire::AssetSpec;

    use super::*;

    #[test]
    fn a_security_says_how_it_trades() {
        let asset = |id, name, decimals| AssetSpec { asset: AssetId(id), symbol: Symbol::new(name).unwrap(), decimals };
        let (assets, lots) = ([asset(0, "BTC", 8), asset(1, "USD", 6)], SizeLots::new);
        for (allocation, words) in [
            (Allocation::PriceTime, "price-time"),
            (Allocation::ProRata { min_lots: lots(2) }, "pro rata from 0.002"),
            (
                Allocation::TopProRata { top_lots_max: lots(50), min_lots: lots(3) },
                "top order up to 0.050, then pro rata from 0.003",
            ),
            (Allocation::Split { fifo_percent: 40, min_lots: lots(1) }, "40 % price-time, then pro rata from 0.001"),
        ] {
            let spec = InstrumentSpec {
                instrument: InstrumentId(0),
                symbol: Symbol::new("BTC/USD").unwrap(),
                base: AssetId(0),
                quote: AssetId(1),
                lot_units: 100_000,
                tick_value_units: 500,
                allocation,
                fees: FeeSchedule { maker_ppm: -20, taker_ppm: 100 },
                collar_ppm: 200_000,
                band_ppm: 300_000,
                reference_price: PriceTicks::new(101).unwrap(),
                default_limits: RiskLimits::NONE,
            };
            let catalog = Catalog::of(std::iter::once(spec), &assets);
            let expected = format!(
                "tick 0.5, lot 0.001, base BTC, {words}, maker fee -20 ppm, taker fee 100 ppm, collar 200000 ppm, band 300000 ppm, \
                 reference price 50.5"
            );
            assert_eq!(catalog.iter().map(|listed| Security::of(listed).text).collect::<Vec<_>>(), [expected]);
        }
    }
}
