//! Markets as pieces, of packets of the venue's binary feed (`walras_feed`): for a gateway, which has no engine.
//!
//! A copy of a market, by level or by order, is read while somebody needs it, and for a while after that. It begins with a snapshot, which
//! comes in rotation, and begins again with one after a gap. What changes between two of the venue's publications is merged: a replica says
//! at which entries of the log it publishes ([`FromFeed::published`]), so that readers here see the books that readers at replicas see.
//! Where no replica says so, and while none is heard, what changed is given out as often as replicas publish.
//!
//! The feed does not have figures of the day, nor trades from before a reader began. Figures are left out until all trades of a day were
//! seen; the numbers of trades say whether some were missed.
//!
//! *Invariants*
//! - Each book that is given out is one that the venue had, whole entries of the log included.
//! - Figures that are given out are of all trades of the day.
//! - What is held is bounded, whatever comes or does not.

mod batches;
mod instrument;
mod orders;
mod tape;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::BatchCleared;
use walras_market_data::{BookLevel, PublicOrder, PublicTrade};
use walras_relay::packet::Packet;
use walras_relay::reader::ReaderSettings;
use walras_types::limits::BATCH_MARKETS_MAX;
use walras_types::{AssetId, BatchMarketId, BatchPrice, InstrumentId, TimeNs};

use crate::piece::{Auction, BatchTerms, BookPiece, Day, Need, OrdersPiece, Piece};
use batches::Batches;
use instrument::Instrument;
use orders::ByOrder;

/// Messages of one market that are held behind a gap.
const HELD_MAX: usize = 1 << 12;
/// A gap that lasts is not another order of arrival: the copy waits for a snapshot.
const GAP_NS: u64 = 20_000_000;
/// How often gaps, and copies that nobody needs, are looked for.
const LOOK_NS: u64 = 20_000_000;
/// A copy that nobody needs is read for so long: who asks again has an answer at once.
const IDLE_NS: u64 = 60_000_000_000;
/// A publication that nobody announces within so many intervals is not waited for.
const INTERVALS_MAX: u64 = 3;

/// How markets are read of the feed.
#[derive(Clone, Copy, Debug)]
pub struct FromFeedSettings {
    /// From one publication to the next, where no replica says when it publishes.
    pub every_ns: u64,
    /// The parallel trees of the venue.
    pub trees: Trees,
}

/// A [`Piece`] with what it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedPiece {
    /// A book, or its levels that changed.
    Book {
        /// Which.
        instrument: InstrumentId,
        /// Whether all levels are here.
        is_snapshot: bool,
        /// The entry of the log after which the book looked so.
        log_index: u64,
        /// Bids; one that shows nothing is gone.
        bids: Vec<BookLevel>,
        /// Asks, likewise.
        asks: Vec<BookLevel>,
        /// What an auction would trade.
        auction: Option<Auction>,
    },
    /// Trades.
    Trades {
        /// Where.
        instrument: InstrumentId,
        /// Whether these are the last ones, newest first, and not new ones, oldest first.
        is_snapshot: bool,
        /// The trades.
        trades: Vec<PublicTrade>,
    },
    /// Figures of a day.
    Day(Day),
    /// A batch market's block.
    Block(Block),
    /// How a batch market trades now.
    BatchTerms(BatchMarketId, BatchTerms),
    /// A book by order: the first displayed orders of each side.
    Orders {
        /// Which.
        instrument: InstrumentId,
        /// The entry of the log after which the book looked so.
        log_index: u64,
        /// Bids: best price first, at each price the first in the queue first.
        bids: Vec<PublicOrder>,
        /// Asks, likewise.
        asks: Vec<PublicOrder>,
    },
}

/// A batch market, as the feed defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchMarket {
    /// Which.
    pub market: BatchMarketId,
    /// Its name, as the venue's other interfaces have it.
    pub name: String,
    /// Its assets, by place.
    pub assets: Vec<AssetId>,
}

/// A batch market's block, whose prices are still to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Which market.
    pub market: BatchMarketId,
    /// What the feed says of it; `None` before the first one.
    pub cleared: Option<BatchCleared>,
    /// When it was cleared.
    pub time: TimeNs,
    /// By place in the market: each asset, its valuation, and how much of it was sold, in its smallest units.
    pub assets: Vec<(AssetId, Option<BatchPrice>, u64)>,
}

impl OwnedPiece {
    /// As the server takes it; `None` for a block, whose prices its host writes.
    #[must_use]
    pub fn as_piece(&self) -> Option<Piece<'_>> {
        match self {
            Self::Book { instrument, is_snapshot, log_index, bids, asks, auction } => Some(Piece::Book(BookPiece {
                instrument: *instrument,
                is_snapshot: *is_snapshot,
                log_index: *log_index,
                bids,
                asks,
                auction: *auction,
            })),
            Self::Trades { instrument, is_snapshot, trades } => {
                Some(Piece::Trades { instrument: *instrument, is_snapshot: *is_snapshot, trades })
            }
            Self::Day(day) => Some(Piece::Day(*day)),
            Self::Block(_) => None,
            Self::BatchTerms(market, terms) => Some(Piece::BatchTerms(*market, *terms)),
            Self::Orders { instrument, log_index, bids, asks } => {
                Some(Piece::Orders(OrdersPiece { instrument: *instrument, log_index: *log_index, bids, asks }))
            }
        }
    }
}

/// Whether a channel's packets are of use where those of these channels are ([`FromFeed::channels`]).
#[must_use]
pub fn is_read(channels: &BTreeSet<u32>, channel: u32) -> bool {
    match ChannelId::new(channel) {
        // Their names are needed before anybody asks for one.
        Some(channel) if channel.view() == View::Batches => true,
        // They have the snapshots of all markets in the view.
        Some(of_view) if of_view.is_of_snapshots() => {
            let first = ChannelId::instrument(of_view.view(), InstrumentId(0)).get();
            channels.range(first..channel).next().is_some()
        }
        Some(_) | None => channels.contains(&channel),
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct FromFeed {
    settings: FromFeedSettings,
    instruments: BTreeMap<InstrumentId, Instrument>,
    by_order: BTreeMap<InstrumentId, ByOrder>,
    batches: BTreeMap<BatchMarketId, Batches>,
    /// Batch markets as they are defined, and whether there is one more, or an asset more.
    markets: Vec<BatchMarket>,
    has_new_markets: bool,
    /// Another market is read, or one less.
    has_new_channels: bool,
    /// Whether a replica says when it publishes.
    is_announced: bool,
    /// The last entry of which one said so.
    announced: u64,
    /// Since when something waits that no publication has covered.
    waits_since_ns: Option<u64>,
    publish_at_ns: u64,
    look_at_ns: u64,
    /// The latest time of the log that is known.
    log_ns: u64,
    pieces: VecDeque<OwnedPiece>,
}

impl FromFeed {
    /// One that reads nothing but the definitions of batch markets.
    #[must_use]
    pub fn new(settings: FromFeedSettings) -> Self {
        Self {
            settings,
            instruments: BTreeMap::new(),
            by_order: BTreeMap::new(),
            batches: BTreeMap::new(),
            markets: Vec::new(),
            has_new_markets: false,
            has_new_channels: false,
            is_announced: false,
            announced: 0,
            waits_since_ns: None,
            publish_at_ns: 0,
            look_at_ns: 0,
            log_ns: 0,
            pieces: VecDeque::new(),
        }
    }

    /// Somebody needs this from now on, or nobody does any more.
    pub fn want(&mut self, now_ns: u64, need: Need, is_wanted: bool) {
        let Self { settings, instruments, by_order, batches, has_new_channels, pieces, log_ns, .. } = self;
        match need {
            Need::Book(id) | Need::Trades(id) | Need::Day(id) if is_wanted => {
                let instrument = instruments.entry(id).or_insert_with(|| {
                    *has_new_channels = true;
                    Instrument::new(id, reader_settings(), settings.trees)
                });
                instrument.want(need, *log_ns, pieces);
            }
            Need::Book(id) | Need::Trades(id) | Need::Day(id) => {
                if let Some(instrument) = instruments.get_mut(&id) {
                    instrument.let_go(now_ns, need);
                }
            }
            Need::Orders(id) if is_wanted => {
                let book = by_order.entry(id).or_insert_with(|| {
                    *has_new_channels = true;
                    ByOrder::new(id, reader_settings(), settings.trees)
                });
                book.want(pieces);
            }
            Need::Orders(id) => {
                if let Some(book) = by_order.get_mut(&id) {
                    book.let_go(now_ns);
                }
            }
            Need::Batch(market) => {
                if let Some(batch) = batches.get_mut(&market) {
                    batch.want(is_wanted, pieces);
                }
            }
        }
    }

    /// A packet whose time has come, of any channel.
    pub fn packet(&mut self, now_ns: u64, packet: &Packet<'_>) {
        let Some(channel) = ChannelId::new(packet.header().channel) else { return };
        let waits = match channel.view() {
            View::Levels => self.level_packet(now_ns, packet, channel),
            View::Orders => self.order_packet(now_ns, packet, channel),
            View::Batches => self.batch_packet(now_ns, packet, channel),
            View::Top => false,
        };
        if waits {
            self.waits_since_ns.get_or_insert(now_ns);
        }
    }

    /// Whether something waits then for a publication.
    fn level_packet(&mut self, now_ns: u64, packet: &Packet<'_>, channel: ChannelId) -> bool {
        let until = self.published_until();
        let Self { instruments, pieces, log_ns, .. } = self;
        let mut waits = false;
        let mut take = |instrument: &mut Instrument| {
            instrument.packet(now_ns, packet, log_ns, pieces);
            // What comes late is given at once.
            if instrument.is_due(until) {
                instrument.publish(until, *log_ns, pieces);
            }
            waits |= instrument.waits();
        };
        if channel.is_of_snapshots() {
            instruments.values_mut().filter(|instrument| instrument.needs_snapshot()).for_each(take);
        } else if let Some(instrument) = instruments.get_mut(&InstrumentId(channel.market())) {
            take(instrument);
        }
        waits
    }

    /// The same of books by order.
    fn order_packet(&mut self, now_ns: u64, packet: &Packet<'_>, channel: ChannelId) -> bool {
        let until = self.published_until();
        let Self { by_order, pieces, log_ns, .. } = self;
        let mut waits = false;
        let mut take = |book: &mut ByOrder| {
            book.packet(now_ns, packet, log_ns, pieces);
            book.publish(until, pieces);
            waits |= book.waits();
        };
        if channel.is_of_snapshots() {
            by_order.values_mut().filter(|book| book.needs_snapshot()).for_each(take);
        } else if let Some(book) = by_order.get_mut(&InstrumentId(channel.market())) {
            take(book);
        }
        waits
    }

    /// The same of batch markets.
    fn batch_packet(&mut self, now_ns: u64, packet: &Packet<'_>, channel: ChannelId) -> bool {
        let until = self.published_until();
        let Self { batches, pieces, settings, .. } = self;
        if !channel.is_of_snapshots()
            && let Ok(market) = u16::try_from(channel.market())
            && usize::from(market) < BATCH_MARKETS_MAX
        {
            let market = BatchMarketId(market);
            batches.entry(market).or_insert_with(|| Batches::new(market, reader_settings(), settings.trees));
        }
        // Each takes what is its own.
        for batch in batches.values_mut() {
            batch.packet(now_ns, packet, pieces);
            batch.publish(until, pieces);
        }
        self.follow_markets();
        self.batches.values().any(Batches::waits)
    }

    /// The last entry that the venue is known to have published, as long as its replicas say so.
    fn published_until(&self) -> u64 {
        if self.is_announced { self.announced } else { 0 }
    }

    fn follow_markets(&mut self) {
        let Self { batches, markets, has_new_markets, .. } = self;
        for (market, batch) in batches {
            let known = markets.iter_mut().find(|known| known.market == *market);
            match (batch.defined(), known) {
                (Some((_, assets)), Some(known)) if known.assets != assets => known.assets = assets.to_vec(),
                (Some((name, assets)), None) => markets.push(BatchMarket { market: *market, name, assets: assets.to_vec() }),
                (Some(_), Some(_)) | (None, _) => continue,
            }
            *has_new_markets = true;
        }
    }

    /// Whether something waits for a publication.
    fn waits(&self) -> bool {
        let of_books = self.instruments.values().any(Instrument::waits) || self.by_order.values().any(ByOrder::waits);
        of_books || self.batches.values().any(Batches::waits)
    }

    /// The venue has published the state after this entry, which has this time. All packets of the entries up to it that came are here.
    pub fn published(&mut self, now_ns: u64, log_index: u64, time_ns: u64) {
        self.is_announced = true;
        self.announced = self.announced.max(log_index);
        self.log_ns = self.log_ns.max(time_ns);
        self.publish(log_index);
        self.waits_since_ns = self.waits().then_some(now_ns);
    }

    fn publish(&mut self, until: u64) {
        let Self { instruments, by_order, batches, pieces, log_ns, .. } = self;
        instruments.values_mut().for_each(|instrument| instrument.publish(until, *log_ns, pieces));
        by_order.values_mut().for_each(|book| book.publish(until, pieces));
        batches.values_mut().for_each(|batch| batch.publish(until, pieces));
    }

    /// Time passes: the process's, and the time of day. Call it at [`FromFeed::wake_ns`], and now and then.
    pub fn on_time(&mut self, now_ns: u64, day_ns: u64) {
        if now_ns >= self.look_at_ns {
            self.look_at_ns = now_ns.saturating_add(LOOK_NS);
            self.look(now_ns);
        }
        if now_ns < self.publish_due_ns() {
            return;
        }
        if !std::mem::take(&mut self.is_announced) {
            // Where nobody publishes, no entry says that a day has begun.
            self.log_ns = self.log_ns.max(day_ns);
        }
        self.publish_at_ns = now_ns.saturating_add(self.settings.every_ns);
        self.publish(u64::MAX);
        self.waits_since_ns = None;
    }

    /// Looks for gaps that last, and for copies that nobody needs.
    fn look(&mut self, now_ns: u64) {
        let Self { instruments, by_order, batches, has_new_channels, .. } = self;
        instruments.values_mut().for_each(|instrument| instrument.look(now_ns));
        by_order.values_mut().for_each(|book| book.look(now_ns));
        batches.values_mut().for_each(|batch| batch.look(now_ns));
        let before = instruments.len() + by_order.len();
        instruments.retain(|_, instrument| !instrument.is_idle(now_ns, IDLE_NS));
        by_order.retain(|_, book| !book.is_idle(now_ns, IDLE_NS));
        *has_new_channels |= instruments.len() + by_order.len() < before;
    }

    fn publish_due_ns(&self) -> u64 {
        let patience_ns = self.settings.every_ns.saturating_mul(INTERVALS_MAX);
        match (self.is_announced, self.waits_since_ns) {
            (true, None) => u64::MAX,
            (true, Some(since_ns)) => since_ns.saturating_add(patience_ns),
            (false, _) => self.publish_at_ns,
        }
    }

    /// When [`FromFeed::on_time`] has something to do.
    #[must_use]
    pub fn wake_ns(&self) -> u64 {
        if self.waits_since_ns.is_some() { self.publish_due_ns() } else { u64::MAX }
    }

    /// Whether there is a next piece.
    #[must_use]
    pub fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The next piece, if there is one.
    pub fn next_piece(&mut self) -> Option<OwnedPiece> {
        self.pieces.pop_front()
    }

    /// The channels of which packets are needed, for [`is_read`], where these are others than at the last call.
    pub fn channels(&mut self) -> Option<BTreeSet<u32>> {
        let of = |view, id: &InstrumentId| ChannelId::instrument(view, *id).get();
        std::mem::take(&mut self.has_new_channels).then(|| {
            let by_level = self.instruments.keys().map(|id| of(View::Levels, id));
            by_level.chain(self.by_order.keys().map(|id| of(View::Orders, id))).collect()
        })
    }

    /// Batch markets as they are defined, where one is other than at the last call.
    pub fn new_batches(&mut self) -> Option<Vec<BatchMarket>> {
        std::mem::take(&mut self.has_new_markets).then(|| self.markets.clone())
    }
}

const fn reader_settings() -> ReaderSettings {
    // Nobody is asked: what does not come is waited for, and then a snapshot.
    ReaderSettings { held_max: HELD_MAX, gap_wait_ns: GAP_NS, retry_ns: GAP_NS, request_max: 1 }
}
