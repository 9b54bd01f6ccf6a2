//! Market data of the replica in this process: what its feeds release.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use tokio::sync::mpsc;
use walras_feed::message::BatchCleared;
use walras_fix_market_data::{Auction, BatchPiece, BatchTerms, BookPiece, Day, MarketDataServer, Need, OrdersPiece, Piece};
use walras_ports::{Catalog, ConnectionId, Doorbell, Push, Shared, Subscription, VenueHandle};
use walras_types::{AssetId, TimeNs};

use super::{TELL, prices};
use crate::runtime::recovery::spawn;

/// Publications that wait for the thread: beyond them the feeds' own queue fills, and beyond that they begin again.
const QUEUE_MAX: usize = 1_024;
/// Publications that a round takes.
const ROUND_MAX: usize = 64;
/// Feeds that ended begin again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// What the feeds said.
enum Heard {
    /// Something was released.
    Released(Shared),
    /// The feeds of this connection have ended.
    Lost(ConnectionId),
}

/// The way to the replica's feeds: one connection for all readers here.
pub(super) struct FromReplica {
    venue: VenueHandle,
    queue_max: usize,
    connection: Option<ConnectionId>,
    /// Without a connection, when to connect again.
    again_at: Option<Instant>,
    /// What to subscribe to (true), or no more.
    asks: VecDeque<(Subscription, bool)>,
    heard_in: Sender<Heard>,
    heard: Receiver<Heard>,
    doorbell: Doorbell,
}

const fn subscription(need: Need) -> Subscription {
    match need {
        Need::Book(instrument) => Subscription::Book(instrument),
        Need::Trades(instrument) => Subscription::Trades(instrument),
        Need::Day(instrument) => Subscription::Ticker(instrument),
        Need::Batch(market) => Subscription::Batch(market),
        Need::Orders(instrument) => Subscription::Orders(instrument),
    }
}

impl FromReplica {
    pub(super) fn new(venue: VenueHandle, queue_max: usize, doorbell: Doorbell) -> Self {
        let (heard_in, heard) = bounded(QUEUE_MAX);
        Self { venue, queue_max, connection: None, again_at: None, asks: VecDeque::new(), heard_in, heard, doorbell }
    }

    pub(super) fn has_more(&self) -> bool {
        !self.heard.is_empty()
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.venue.catalog()
    }

    pub(super) fn ask(&mut self, need: Need, is_wanted: bool) {
        self.asks.push_back((subscription(need), is_wanted));
    }

    /// Gives the server what was released.
    pub(super) fn hear(&mut self, server: &mut MarketDataServer, catalog: &Catalog) {
        let begun = Instant::now();
        for _ in 0..ROUND_MAX {
            if begun.elapsed() >= TELL {
                return;
            }
            let Ok(heard) = self.heard.try_recv() else { return };
            match heard {
                Heard::Lost(connection) if self.connection == Some(connection) => {
                    // The state is another one, or this thread was too slow: what comes first is all of it again.
                    self.connection = None;
                    self.again_at = Some(Instant::now() + AGAIN);
                    self.asks = server.on_feeds_lost().into_iter().map(|need| (subscription(need), true)).collect();
                }
                Heard::Lost(_) => {}
                Heard::Released(published) => release(server, catalog, published.push()),
            }
        }
    }

    pub(super) fn stop(self) {
        if let Some(connection) = self.connection {
            self.venue.disconnect(connection);
        }
    }

    /// Passes on what is asked for, as far as the replica takes it.
    pub(super) fn pass_on(&mut self) {
        if self.connection.is_none() && self.again_at.is_none_or(|at| Instant::now() >= at) && !self.connect() {
            self.again_at = Some(Instant::now() + AGAIN);
        }
        let Some(connection) = self.connection else { return };
        while let Some((subscription, is_wanted)) = self.asks.front().copied() {
            let asked = if is_wanted {
                self.venue.subscribe(connection, subscription)
            } else {
                self.venue.unsubscribe(connection, subscription)
            };
            // A full queue: again in the next round.
            if asked.is_err() {
                return;
            }
            self.asks.pop_front();
        }
    }

    fn connect(&mut self) -> bool {
        let connection = ConnectionId::fresh();
        let (queue_in, mut queue) = mpsc::channel::<Shared>(self.queue_max);
        if self.venue.connect(connection, queue_in).is_err() {
            return false;
        }
        let (heard, doorbell) = (self.heard_in.clone(), self.doorbell.clone());
        // Its queue has no bell for a poll.
        let pass_on = move || {
            while let Some(push) = queue.blocking_recv() {
                if heard.send(Heard::Released(push)).is_err() {
                    return;
                }
                doorbell.ring();
            }
            let _ = heard.send(Heard::Lost(connection));
            doorbell.ring();
        };
        let is_begun = spawn("fix-market-feed", pass_on).is_ok();
        if is_begun {
            self.connection = Some(connection);
        } else {
            self.venue.disconnect(connection);
        }
        is_begun
    }
}

/// Gives the server what was released.
fn release(server: &mut MarketDataServer, catalog: &Catalog, push: &Push) {
    match push {
        Push::Book(book) => server.on_piece(&Piece::Book(BookPiece {
            instrument: book.instrument,
            is_snapshot: book.snapshot,
            log_index: book.log_index.0,
            bids: &book.bids,
            asks: &book.asks,
            auction: book.indicative.map(|uncross| Auction {
                price: uncross.price,
                volume: uncross.volume,
                imbalance_lots: uncross.imbalance_lots,
            }),
        })),
        Push::Trades { instrument, snapshot, trades } => {
            server.on_piece(&Piece::Trades { instrument: *instrument, is_snapshot: *snapshot, trades });
        }
        Push::Ticker(ticker) => server.on_piece(&Piece::Day(Day {
            instrument: ticker.instrument,
            phase: ticker.phase,
            phase_cause: ticker.phase_cause,
            last: ticker.last,
            open: ticker.open,
            high: ticker.high,
            low: ticker.low,
            previous_close: ticker.previous_close,
            volume: Some(ticker.volume),
        })),
        Push::Orders(orders) => server.on_piece(&Piece::Orders(OrdersPiece {
            instrument: orders.instrument,
            log_index: orders.now.log_index.0,
            bids: &orders.now.bids,
            asks: &orders.now.asks,
        })),
        Push::Batch(batch) => {
            let terms = BatchTerms { phase: batch.phase, interval_ns: batch.interval_ns };
            server.on_piece(&Piece::BatchTerms(batch.market, terms));
            // Of what came before, the last block.
            let before = if batch.snapshot { batch.blocks.len().saturating_sub(1) } else { 0 };
            let last = &batch.blocks[before..];
            if batch.snapshot && last.is_empty() {
                let none = BatchPiece { market: batch.market, cleared: None, time: TimeNs(0), prices: &[] };
                server.on_piece(&Piece::Batch(none));
            }
            for block in last {
                let of = |(place, asset): (usize, &AssetId)| {
                    let sold = block.sold.get(place).copied().unwrap_or_default();
                    (*asset, block.prices.get(place).copied().flatten(), sold)
                };
                let assets: Vec<_> = batch.assets.iter().enumerate().map(of).collect();
                let prices = prices(catalog, &assets);
                let cleared = Some(BatchCleared {
                    block: block.block,
                    transactions: block.transactions,
                    pairs: block.pairs_traded,
                    offers_traded: block.offers_traded,
                    gap_ppb: block.gap_ppb,
                    unserved_ppb: block.unserved_ppb,
                    set_aside: block.set_aside,
                    state_root: block.state_root,
                });
                server.on_piece(&Piece::Batch(BatchPiece { market: batch.market, cleared, time: block.time, prices: &prices }));
            }
        }
        Push::Candles { .. } | Push::Account(_) | Push::Demand(..) | Push::Instruments(_) => {}
    }
}
