//! One instrument: its copy, and what of it is to be given out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_feed::book::{Book, Level, MarketState};
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::{AuctionIndicated, Head, Message, PhaseChanged, Place};
use walras_feed::reader::MarketReader;
use walras_market_data::{BookLevel, PublicTrade};
use walras_relay::packet::Packet;
use walras_relay::reader::ReaderSettings;
use walras_types::{InstrumentId, PriceTicks, Side, TimeNs, TradingPhase};
use walras_wire::PhaseCause;

use super::OwnedPiece;
use super::tape::{Figures, Tape};
use crate::piece::{Auction, Day, Need};

/// Changes that wait for a publication. A venue publishes long before there are so many.
const WAITING_MAX: usize = 1 << 18;

/// The phase of an instrument whose copy says none.
const CLOSED: PhaseChanged = PhaseChanged { phase: TradingPhase::Closed, cause: PhaseCause::Operator };

/// Something that an entry of the log changed.
#[derive(Clone, Copy, Debug)]
enum Change {
    Level(Side, BookLevel),
    Trade(PublicTrade),
    Auction(Option<Auction>),
    Phase(PhaseChanged),
}

impl Change {
    fn of(head: &Head, message: &Message) -> Option<Self> {
        Some(match message {
            Message::LevelChanged(m) => {
                let level = Level { price: m.price, shown: m.shown, order_count: m.order_count };
                Self::Level(m.side, book_level(level))
            }
            Message::Traded(m) => Self::Trade(PublicTrade {
                trade_id: m.trade_id,
                time: TimeNs(head.time_ns),
                price: m.price,
                size: m.size,
                taker_side: m.taker_side,
            }),
            Message::AuctionIndicated(m) => Self::Auction(auction(m)),
            Message::PhaseChanged(m) => Self::Phase(*m),
            _ => return None,
        })
    }
}

fn book_level(level: Level) -> BookLevel {
    BookLevel { price: level.price, shown: level.shown, order_count: level.order_count }
}

/// What an auction would trade, where it would trade something.
fn auction(indicated: &AuctionIndicated) -> Option<Auction> {
    let AuctionIndicated { price, volume, imbalance_lots } = *indicated;
    price.map(|price| Auction { price, volume, imbalance_lots })
}

#[derive(Debug)]
pub(super) struct Instrument {
    id: InstrumentId,
    reader: MarketReader,
    needs: BTreeSet<Need>,
    /// Since when nobody needs it.
    idle_since_ns: Option<u64>,
    /// What is given out is of the copy as it is since its last snapshot.
    is_known: bool,
    /// What no publication has covered, with its entry, in the order of the log.
    waiting: VecDeque<(u64, Change)>,
    /// The last entry all of whose messages came.
    ended: u64,
    tape: Tape,
    /// As given out: the last entry, the phase, the auction, the day.
    log_index: u64,
    phase: PhaseChanged,
    auction: Option<Auction>,
    day: Option<Day>,
}

impl Instrument {
    pub(super) fn new(id: InstrumentId, settings: ReaderSettings, trees: Trees) -> Self {
        let channel = ChannelId::instrument(View::Levels, id);
        Self {
            id,
            reader: MarketReader::joining(channel, settings).of_trees(trees),
            needs: BTreeSet::new(),
            idle_since_ns: None,
            is_known: false,
            waiting: VecDeque::new(),
            ended: 0,
            tape: Tape::default(),
            log_index: 0,
            phase: CLOSED,
            auction: None,
            day: None,
        }
    }

    /// Somebody needs this: it begins with all that is known.
    pub(super) fn want(&mut self, need: Need, log_ns: u64, pieces: &mut VecDeque<OwnedPiece>) {
        self.needs.insert(need);
        self.idle_since_ns = None;
        // In the middle of an entry, and behind a gap, it is given with what comes next.
        let is_whole = self.reader.book().is_some_and(Book::is_whole);
        self.is_known &= is_whole || !matches!(need, Need::Book(_));
        if self.is_known {
            self.give(need, log_ns, pieces);
        }
    }

    /// Nobody does any more.
    pub(super) fn let_go(&mut self, now_ns: u64, need: Need) {
        self.needs.remove(&need);
        if self.needs.is_empty() {
            self.idle_since_ns = Some(now_ns);
        }
    }

    pub(super) fn is_idle(&self, now_ns: u64, for_ns: u64) -> bool {
        self.idle_since_ns.is_some_and(|since_ns| now_ns >= since_ns.saturating_add(for_ns))
    }

    /// Whether something waits for a publication.
    pub(super) fn waits(&self) -> bool {
        self.is_known && !self.waiting.is_empty()
    }

    /// Whether some of it is of entries up to this one.
    pub(super) fn is_due(&self, until: u64) -> bool {
        self.waiting.front().is_some_and(|(log_index, _)| *log_index <= until)
    }

    /// Whether the copy has not begun, or ended behind a gap.
    pub(super) fn needs_snapshot(&self) -> bool {
        self.reader.book().is_none()
    }

    /// A gap that lasts is not waited for.
    pub(super) fn look(&mut self, now_ns: u64) {
        if let Some(request) = self.reader.request(now_ns) {
            self.reader.gone_before(request.channel, u64::MAX);
        }
    }

    pub(super) fn packet(&mut self, now_ns: u64, packet: &Packet<'_>, log_ns: &mut u64, pieces: &mut VecDeque<OwnedPiece>) {
        let (was_joined, before) = (self.reader.book().is_some(), self.waiting.len());
        let Self { reader, waiting, ended, .. } = self;
        let mut first_ns = None;
        reader.packet(now_ns, packet, |head, message| {
            first_ns.get_or_insert(head.time_ns);
            waiting.extend(Change::of(head, message).map(|change| (head.log_index, change)));
            if head.place == Place::Last {
                *ended = head.log_index;
            }
        });
        if waiting.len() > WAITING_MAX {
            waiting.clear();
            reader.await_snapshot();
        }
        let Some(book) = reader.book() else { return };
        *log_ns = (*log_ns).max(book.head().time_ns);
        if !was_joined {
            let began_ns = first_ns.unwrap_or(book.head().time_ns);
            self.begin(before, began_ns);
        }
        if !self.is_known && self.reader.book().is_some_and(Book::is_whole) {
            self.give_all(*log_ns, pieces);
        }
    }

    /// The copy begins (again) with a snapshot. So many of the changes that wait are from before that.
    fn begin(&mut self, before: usize, began_ns: u64) {
        for (_, change) in self.waiting.drain(..before) {
            if let Change::Trade(trade) = change {
                self.tape.take(trade);
            }
        }
        self.tape.begin(began_ns);
        self.is_known = false;
    }

    /// The copy as it is, whatever waits.
    fn give_all(&mut self, log_ns: u64, pieces: &mut VecDeque<OwnedPiece>) {
        self.is_known = true;
        let market = self.reader.book().map(Book::market);
        self.phase = market.and_then(|market| market.phase).unwrap_or(CLOSED);
        // What the copy has is given with it; trades it has not.
        self.waiting.retain(|(_, change)| !matches!(change, Change::Phase(_)));
        for need in self.needs.clone() {
            self.give(need, log_ns, pieces);
        }
        if !self.needs.contains(&Need::Book(self.id)) {
            self.follow_book();
        }
    }

    fn give(&mut self, need: Need, log_ns: u64, pieces: &mut VecDeque<OwnedPiece>) {
        let instrument = self.id;
        match need {
            Need::Book(_) => {
                self.follow_book();
                let levels = |side| {
                    let levels = self.reader.book().and_then(Book::levels).map(|levels| levels.levels(side).map(book_level));
                    levels.into_iter().flatten().collect()
                };
                let (bids, asks) = (levels(Side::Buy), levels(Side::Sell));
                let (log_index, auction) = (self.log_index, self.auction);
                pieces.push_back(OwnedPiece::Book { instrument, is_snapshot: true, log_index, bids, asks, auction });
            }
            Need::Trades(_) => {
                let trades = self.tape.newest_first();
                pieces.push_back(OwnedPiece::Trades { instrument, is_snapshot: true, trades });
            }
            Need::Day(_) => {
                let day = self.day_at(log_ns);
                self.day = Some(day);
                pieces.push_back(OwnedPiece::Day(day));
            }
            // Somebody else's.
            Need::Orders(_) | Need::Batch(_) => {}
        }
    }

    /// What is given out is the copy's book.
    fn follow_book(&mut self) {
        let Some(book) = self.reader.book() else { return };
        let MarketState { indicated, .. } = book.market();
        (self.log_index, self.auction) = (book.head().log_index, indicated.as_ref().and_then(auction));
        self.waiting.retain(|(_, change)| !matches!(change, Change::Level(..) | Change::Auction(_)));
    }

    /// The venue has published what it was after this entry. `log_ns` is the log's time.
    pub(super) fn publish(&mut self, until: u64, log_ns: u64, pieces: &mut VecDeque<OwnedPiece>) {
        if !self.is_known {
            return;
        }
        let (before, until) = (self.auction, until.min(self.ended));
        let mut levels: [BTreeMap<PriceTicks, BookLevel>; 2] = Default::default();
        while self.waiting.front().is_some_and(|(log_index, _)| *log_index <= until)
            && let Some((log_index, change)) = self.waiting.pop_front()
        {
            self.log_index = self.log_index.max(log_index);
            match change {
                Change::Level(side, level) => {
                    levels[usize::from(side == Side::Sell)].insert(level.price, level);
                }
                Change::Trade(trade) => self.tape.take(trade),
                Change::Auction(auction) => self.auction = auction,
                Change::Phase(phase) => self.phase = phase,
            }
        }
        let (instrument, is_snapshot) = (self.id, false);
        let has_book_news = levels.iter().any(|side| !side.is_empty()) || before != self.auction;
        if has_book_news && self.needs.contains(&Need::Book(instrument)) {
            let [bids, asks] = levels.map(|side| side.into_values().collect());
            let (log_index, auction) = (self.log_index, self.auction);
            pieces.push_back(OwnedPiece::Book { instrument, is_snapshot, log_index, bids, asks, auction });
        }
        let trades = self.tape.take_fresh();
        if !trades.is_empty() && self.needs.contains(&Need::Trades(instrument)) {
            pieces.push_back(OwnedPiece::Trades { instrument, is_snapshot, trades });
        }
        let day = self.day_at(log_ns);
        if self.needs.contains(&Need::Day(instrument)) && self.day.replace(day) != Some(day) {
            pieces.push_back(OwnedPiece::Day(day));
        }
    }

    fn day_at(&self, log_ns: u64) -> Day {
        let (instrument, last, PhaseChanged { phase, cause }) = (self.id, self.tape.price(), self.phase);
        let phase_cause = Some(cause);
        match self.tape.figures(log_ns) {
            Some(Figures { open, high, low, previous_close, volume }) => {
                Day { instrument, phase, phase_cause, last, open, high, low, previous_close, volume: Some(volume) }
            }
            None => {
                Day { instrument, phase, phase_cause, last, open: None, high: None, low: None, previous_close: None, volume: None }
            }
        }
    }
}
