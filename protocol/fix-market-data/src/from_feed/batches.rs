//! One batch market: its copy, and blocks that are to be given out.

use std::collections::VecDeque;

use walras_feed::book::{BatchState, Book, Content};
use walras_feed::channel::{ChannelId, Trees};
use walras_feed::message::{AssetCleared, Head, Message, Place};
use walras_feed::reader::MarketReader;
use walras_relay::packet::Packet;
use walras_relay::reader::ReaderSettings;
use walras_types::{AssetId, BatchMarketId, BatchPhase, BatchPrice, TimeNs};

use super::{Block, OwnedPiece};
use crate::piece::BatchTerms;

/// Blocks and changes of terms that wait for a publication. A venue clears a block in a second or so.
const WAITING_MAX: usize = 1 << 8;

/// Something that waits for a publication.
#[derive(Debug)]
enum News {
    Block(Block),
    Phase(BatchPhase),
    Interval(u64),
}

#[derive(Debug)]
pub(super) struct Batches {
    market: BatchMarketId,
    reader: MarketReader,
    is_needed: bool,
    /// What is given out is of the copy as it is since its last snapshot.
    is_known: bool,
    /// A block whose entry, which is this one, has not ended.
    building: Option<(u64, Block)>,
    /// With their entries, in the order of the log.
    waiting: VecDeque<(u64, News)>,
    /// As they were given out last.
    given: BatchTerms,
}

fn row(message: &AssetCleared) -> (AssetId, Option<BatchPrice>, u64) {
    (message.asset, message.price, message.sold)
}

impl Batches {
    pub(super) fn new(market: BatchMarketId, settings: ReaderSettings, trees: Trees) -> Self {
        let reader = MarketReader::joining(ChannelId::batches(market), settings).of_trees(trees);
        let given = BatchTerms { phase: BatchPhase::Closed, interval_ns: 0 };
        Self { market, reader, is_needed: false, is_known: false, building: None, waiting: VecDeque::new(), given }
    }

    fn state(&self) -> Option<&BatchState> {
        match self.reader.book().map(Book::content) {
            Some(Content::Batches(state)) => Some(state.as_ref()),
            Some(Content::Orders(_) | Content::Levels(_) | Content::Top(_)) | None => None,
        }
    }

    /// Its name, as the venue's other interfaces have it, and its assets.
    pub(super) fn defined(&self) -> Option<(String, &[AssetId])> {
        let state = self.state()?;
        state.defined.map(|defined| (defined.symbol.as_str().to_ascii_lowercase(), &state.assets[..]))
    }

    /// Somebody needs it, or nobody does any more.
    pub(super) fn want(&mut self, is_wanted: bool, pieces: &mut VecDeque<OwnedPiece>) {
        self.is_needed = is_wanted;
        // In the middle of an entry, and behind a gap, it is given with what comes next.
        self.is_known &= !is_wanted || self.reader.book().is_some_and(Book::is_whole);
        if is_wanted && self.is_known {
            self.give_last(pieces);
        }
    }

    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn look(&mut self, now_ns: u64) {
        if let Some(request) = self.reader.request(now_ns) {
            self.reader.gone_before(request.channel, u64::MAX);
        }
    }

    pub(super) fn packet(&mut self, now_ns: u64, packet: &Packet<'_>, pieces: &mut VecDeque<OwnedPiece>) {
        let was_joined = self.reader.book().is_some();
        let Self { reader, building, waiting, market, .. } = self;
        reader.packet(now_ns, packet, |head, message| take(*market, head, message, building, waiting));
        if self.reader.book().is_none() {
            return;
        }
        if !was_joined {
            self.is_known = false;
        }
        if !self.is_known && self.reader.book().is_some_and(Book::is_whole) {
            self.is_known = true;
            self.waiting.clear();
            if self.is_needed {
                self.give_last(pieces);
            }
        }
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
    }

    /// The copy as it is, whatever waits: its terms, and its last block, or that there was none.
    fn give_last(&mut self, pieces: &mut VecDeque<OwnedPiece>) {
        let Some((state, book)) = self.state().zip(self.reader.book()) else { return };
        let market = self.market;
        let none = Block { market, cleared: None, time: TimeNs(0), assets: Vec::new() };
        let block = state.cleared.map_or(none, |cleared| Block {
            market,
            cleared: Some(cleared),
            time: TimeNs(book.head().time_ns),
            assets: state.prices.iter().map(row).collect(),
        });
        let phase = state.phase.map_or(BatchPhase::Closed, |phase| phase.phase);
        let interval_ns = state.defined.map_or(0, |defined| defined.interval_ns);
        self.given = BatchTerms { phase, interval_ns };
        pieces.extend([OwnedPiece::BatchTerms(market, self.given), OwnedPiece::Block(block)]);
        self.waiting.clear();
    }

    /// The venue has published what it was after this entry.
    pub(super) fn publish(&mut self, until: u64, pieces: &mut VecDeque<OwnedPiece>) {
        while self.waiting.front().is_some_and(|(log_index, _)| *log_index <= until)
            && let Some((_, news)) = self.waiting.pop_front()
        {
            if self.is_needed && self.is_known {
                match news {
                    News::Block(_) => {}
                    News::Phase(phase) => self.given.phase = phase,
                    News::Interval(interval_ns) => self.given.interval_ns = interval_ns,
                }
                pieces.push_back(match news {
                    News::Block(block) => OwnedPiece::Block(block),
                    News::Phase(_) | News::Interval(_) => OwnedPiece::BatchTerms(self.market, self.given),
                });
            }
        }
    }
}

/// A message that the copy took.
fn take(
    market: BatchMarketId,
    head: &Head,
    message: &Message,
    building: &mut Option<(u64, Block)>,
    waiting: &mut VecDeque<(u64, News)>,
) {
    // The rest of another one is behind a gap.
    *building = building.take().filter(|(log_index, _)| *log_index == head.log_index);
    match message {
        Message::BatchCleared(cleared) => {
            let block = Block { market, cleared: Some(*cleared), time: TimeNs(head.time_ns), assets: Vec::new() };
            *building = Some((head.log_index, block));
        }
        Message::AssetCleared(cleared) => {
            if let Some((_, block)) = building {
                block.assets.push(row(cleared));
            }
        }
        Message::BatchPhaseChanged(changed) => waiting.push_back((head.log_index, News::Phase(changed.phase))),
        Message::BatchIntervalChanged(changed) => waiting.push_back((head.log_index, News::Interval(changed.interval_ns))),
        _ => {}
    }
    if head.place == Place::Last {
        waiting.extend(building.take().map(|(log_index, block)| (log_index, News::Block(block))));
    }
}
