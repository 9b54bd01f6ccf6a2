//! Market data at a gateway: packets of the binary feed whose time has come, and the entries at which the venue publishes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use walras_feed::sender::Packets;
use walras_fix_market_data::{
    BatchMarket, BatchPiece, FromFeed, FromFeedSettings, MarketDataServer, Need, OwnedPiece, Piece, is_read,
};
use walras_ports::{AssetScale, BatchName, Catalog, Doorbell, SharedCatalog};
use walras_relay::packet::Packet;
use walras_replica::{Listing, PublicationMark};
use walras_types::Amount;

use super::{TELL, prices};

/// Packets that wait for the thread. Beyond them some are lost: markets have a gap, and wait for a snapshot.
const ITEMS_MAX: usize = 1 << 13;
/// Packets that a round takes.
const ROUND_MAX: usize = 512;

/// What the thread is given.
#[derive(Debug)]
enum Item {
    /// A packet whose time has come.
    Packet(Box<[u8]>),
    /// The venue has published at this entry, and that may be known.
    Published(PublicationMark),
}

/// Channels of which packets are needed.
type Channels = Arc<Mutex<BTreeSet<u32>>>;

fn lock(channels: &Channels) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
    channels.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where what is released is put. Never blocks.
#[derive(Debug)]
pub(in crate::runtime) struct FeedSink {
    items: Sender<Item>,
    channels: Channels,
    doorbell: Doorbell,
}

impl FeedSink {
    /// Gives packets whose time has come, and then publications.
    pub(in crate::runtime) fn give(&self, released: &Packets, published: Vec<PublicationMark>) {
        let channels = lock(&self.channels);
        let wanted = released.iter().filter(|(header, _)| is_read(&channels, header.channel));
        let packets = wanted.map(|(_, bytes)| Item::Packet(bytes.into()));
        let mut has_news = false;
        for item in packets.chain(published.into_iter().map(Item::Published)) {
            // Where the queue is full, or the thread gone, nobody waits.
            has_news |= self.items.try_send(item).is_ok();
        }
        drop(channels);
        if has_news {
            self.doorbell.ring();
        }
    }
}

/// The thread's end.
pub(super) struct FromTree {
    feed: FromFeed,
    items: Receiver<Item>,
    channels: Channels,
    catalog: SharedCatalog,
    /// What it is before anything is known of the venue.
    unlisted: Arc<Catalog>,
    batches: Vec<BatchName>,
}

impl FromTree {
    pub(super) fn new(settings: FromFeedSettings, catalog: SharedCatalog, doorbell: Doorbell) -> (Self, FeedSink) {
        let (items_in, items) = bounded(ITEMS_MAX);
        let channels = Channels::default();
        let sink = FeedSink { items: items_in, channels: Arc::clone(&channels), doorbell };
        let (unlisted, batches) = (catalog.get(), Vec::new());
        (Self { feed: FromFeed::new(settings), items, channels, catalog, unlisted, batches }, sink)
    }

    pub(super) fn has_more(&self) -> bool {
        !self.items.is_empty() || self.feed.has_pieces()
    }

    /// How long nothing is due.
    pub(super) fn wait(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.feed.wake_ns().saturating_sub(now_ns))
    }

    /// What the venue lists; `None` before the replica above has named all of it.
    pub(super) fn catalog(&self) -> Option<Arc<Catalog>> {
        let catalog = self.catalog.get();
        (!Arc::ptr_eq(&catalog, &self.unlisted)).then_some(catalog)
    }

    /// Batch markets, as far as the feed has said.
    pub(super) fn batches(&self) -> &[BatchName] {
        &self.batches
    }

    /// Takes over which there are; whether they are others than before.
    pub(super) fn has_new_batches(&mut self) -> bool {
        let Some(markets) = self.feed.new_batches() else { return false };
        let named = |BatchMarket { market, name, assets }| BatchName { market, name, assets };
        self.batches = markets.into_iter().map(named).collect();
        true
    }

    pub(super) fn ask(&mut self, now_ns: u64, need: Need, is_wanted: bool) {
        self.feed.want(now_ns, need, is_wanted);
    }

    /// Gives the server what came.
    pub(super) fn hear(&mut self, (now_ns, day_ns): (u64, u64), server: &mut MarketDataServer, catalog: &Catalog) {
        // What waits already goes out first.
        let most = if self.feed.has_pieces() { 0 } else { ROUND_MAX };
        for _ in 0..most {
            let Ok(item) = self.items.try_recv() else { break };
            match item {
                Item::Packet(bytes) => {
                    if let Some(packet) = Packet::of_own(&bytes) {
                        self.feed.packet(now_ns, &packet);
                    }
                }
                Item::Published(mark) => self.feed.published(now_ns, mark.log_index.0, mark.time.0),
            }
        }
        self.feed.on_time(now_ns, day_ns);
        self.settle(server, catalog);
    }

    /// What follows from what came, and from what was asked for.
    pub(super) fn settle(&mut self, server: &mut MarketDataServer, catalog: &Catalog) {
        if let Some(channels) = self.feed.channels() {
            *lock(&self.channels) = channels;
        }
        let begun = Instant::now();
        while begun.elapsed() < TELL
            && let Some(piece) = self.feed.next_piece()
        {
            match &piece {
                OwnedPiece::Block(block) => {
                    let amount = |sold| Amount::new(sold).unwrap_or(Amount::MAX);
                    let assets: Vec<_> = block.assets.iter().map(|(asset, price, sold)| (*asset, *price, amount(*sold))).collect();
                    let prices = prices(catalog, &assets);
                    let (market, cleared, time) = (block.market, block.cleared, block.time);
                    server.on_piece(&Piece::Batch(BatchPiece { market, cleared, time, prices: &prices }));
                }
                OwnedPiece::Book { .. }
                | OwnedPiece::Orders { .. }
                | OwnedPiece::Trades { .. }
                | OwnedPiece::Day(_)
                | OwnedPiece::BatchTerms(..) => {
                    if let Some(piece) = piece.as_piece() {
                        server.on_piece(&piece);
                    }
                }
            }
        }
    }
}

/// What a venue lists, as its replicas say it. What does not hold together is left out.
pub(in crate::runtime) fn catalog_of(listing: &Listing) -> Catalog {
    let mut catalog = Catalog::default();
    let dense = (0..).zip(&listing.assets).take_while(|(at, asset)| asset.asset.0 == *at && AssetScale::new(**asset).is_ok());
    dense.for_each(|(_, asset)| catalog.add_asset(*asset));
    for listed in listing.catalog.iter() {
        let spec = listed.spec;
        if catalog.asset(spec.base).is_some() && catalog.asset(spec.quote).is_some() {
            catalog.add_instrument(spec);
        }
    }
    catalog
}

#[cfg(test)]
mod tests {
    use mio::{Poll, Token};
    use walras_feed::channel::Trees;

    use super::*;

    #[test]
    fn what_the_venue_lists_is_not_known_before_it_is_named() {
        let poll = Poll::new().unwrap();
        let doorbell = Doorbell::new(poll.registry(), Token(0)).unwrap();
        let catalog = SharedCatalog::default();
        let (source, _sink) = FromTree::new(FromFeedSettings { every_ns: 1, trees: Trees::ONE }, catalog.clone(), doorbell);
        assert!(source.catalog().is_none());
        // A venue may have no instrument yet.
        catalog.set(catalog_of(&Listing::default()));
        assert!(source.catalog().is_some_and(|catalog| catalog.instruments().is_empty()));
    }
}
