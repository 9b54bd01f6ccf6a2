//! A reader's copy of one market, made of the messages of one channel.

mod levels;
mod orders;
mod snapshot;

use walras_types::limits::ORDERS_PER_BOOK_MAX;
use walras_types::{BatchPhase, OrderId, TradingPhase};
use walras_wire::PhaseCause;

use crate::channel::{ChannelId, View};
use crate::message::{
    AssetCleared, AuctionIndicated, AuctionUncrossed, BatchAssetAdded, BatchCleared, BatchMarketDefined, BatchPhaseChanged, Head,
    InstrumentDefined, LevelChanged, Message, PhaseChanged, Place, TopChanged, Traded,
};

pub(crate) use levels::Sum;
pub use levels::{Level, Levels};
pub use orders::{DisplayedOrder, OrderBook};

/// A message that does not follow from those before it. The copy is wrong from here on: it needs a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// A message of another view.
    #[error("a message of kind {0} does not belong into this channel")]
    OtherView(u8),
    /// An order that is not displayed.
    #[error("order {0} is not displayed")]
    UnknownOrder(OrderId),
    /// An order that is displayed already.
    #[error("order {0} is displayed already")]
    KnownOrder(OrderId),
    /// An order that is to show nothing.
    #[error("order {0} shows nothing")]
    ShowsNothing(OrderId),
    /// More lots than numbers have room for, or less than nothing.
    #[error("the level of order {0} shows more lots than there can be, or less than none")]
    OutOfBounds(OrderId),
    /// A level that shows orders without lots, or lots without orders.
    #[error("a level shows lots without orders, or orders without lots")]
    WrongLevel,
    /// More orders or levels than a book has.
    #[error("the book has more orders or levels than a book may have")]
    TooManyOrders,
    /// An asset out of turn.
    #[error("the asset at place {0} comes out of turn")]
    WrongAsset(u16),
}

/// What is known of a market in every view of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketState {
    /// Its definition.
    pub defined: Option<InstrumentDefined>,
    /// Its phase.
    pub phase: Option<PhaseChanged>,
    /// What its auction would trade; `None` where nothing would, and when it is over.
    pub indicated: Option<AuctionIndicated>,
    /// Its last auction since the reader joined.
    pub uncrossed: Option<AuctionUncrossed>,
    /// Its last trade since the reader joined.
    pub last_trade: Option<Traded>,
}

/// A batch market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchState {
    /// Its definition.
    pub defined: Option<BatchMarketDefined>,
    /// Its phase.
    pub phase: Option<BatchPhaseChanged>,
    /// Its assets, by place.
    pub assets: Vec<walras_types::AssetId>,
    /// Its last block.
    pub cleared: Option<BatchCleared>,
    /// What came to each asset in it.
    pub prices: Vec<AssetCleared>,
}

/// What a channel shows.
#[derive(Clone, Debug)]
pub enum Content {
    /// Every displayed order.
    Orders(OrderBook),
    /// Levels.
    Levels(Levels),
    /// The best bid and ask.
    Top(Option<TopChanged>),
    /// Blocks.
    Batches(Box<BatchState>),
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Book {
    content: Content,
    market: MarketState,
    /// The head of the last message.
    head: Head,
}

impl Book {
    /// An empty one, before the channel's first message.
    #[must_use]
    pub fn new(channel: ChannelId) -> Self {
        let content = match channel.view() {
            View::Orders => Content::Orders(OrderBook::default()),
            View::Levels => Content::Levels(Levels::default()),
            View::Top => Content::Top(None),
            View::Batches => Content::Batches(Box::default()),
        };
        Self { content, market: MarketState::default(), head: Head { place: Place::Last, log_index: 0, time_ns: 0 } }
    }

    /// What it shows.
    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// What every view shows.
    #[must_use]
    pub fn market(&self) -> &MarketState {
        &self.market
    }

    /// The levels, where the view has them.
    #[must_use]
    pub fn levels(&self) -> Option<&Levels> {
        match &self.content {
            Content::Orders(orders) => Some(orders.levels()),
            Content::Levels(levels) => Some(levels),
            Content::Top(_) | Content::Batches(_) => None,
        }
    }

    /// The head of the last message that it took.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether the venue was in this state: no further message of the same entry is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.head.place == Place::Last
    }

    /// A snapshot of it is whole.
    pub(crate) fn ends_with(&mut self, head: &Head) {
        self.head = *head;
    }

    /// Takes the channel's next message.
    pub fn apply(&mut self, head: &Head, message: &Message) -> Result<(), BookError> {
        self.head = *head;
        match message {
            Message::InstrumentDefined(m) => {
                self.market.defined = Some(*m);
                self.market.phase.get_or_insert(PhaseChanged { phase: TradingPhase::Closed, cause: PhaseCause::Operator });
            }
            Message::PhaseChanged(m) => self.market.phase = Some(*m),
            Message::Traded(m) => self.market.last_trade = Some(*m),
            // A snapshot does not say that nothing is indicated, so who joins and who was there have the same copy.
            Message::AuctionIndicated(m) => self.market.indicated = Some(*m).filter(|m| *m != AuctionIndicated::NOTHING),
            Message::AuctionUncrossed(m) => self.market.uncrossed = Some(*m),
            Message::OrderAdded(_)
            | Message::OrderExecuted(_)
            | Message::OrderReduced(_)
            | Message::OrderCancelled(_)
            | Message::OrderReplaced(_) => return self.apply_order(message),
            Message::LevelChanged(m) => return self.apply_level(m),
            Message::TopChanged(m) => match &mut self.content {
                Content::Top(top) => *top = Some(*m),
                Content::Orders(_) | Content::Levels(_) | Content::Batches(_) => return Err(BookError::OtherView(message.kind())),
            },
            Message::BatchMarketDefined(_)
            | Message::BatchAssetAdded(_)
            | Message::BatchPhaseChanged(_)
            | Message::BatchIntervalChanged(_)
            | Message::BatchClosed(_)
            | Message::AssetCleared(_)
            | Message::BatchCleared(_) => return self.apply_batch(message),
            Message::SnapshotBegan(_) | Message::SnapshotEnded(_) => return Err(BookError::OtherView(message.kind())),
        }
        Ok(())
    }

    fn apply_order(&mut self, message: &Message) -> Result<(), BookError> {
        let Content::Orders(book) = &mut self.content else { return Err(BookError::OtherView(message.kind())) };
        match message {
            Message::OrderAdded(m) => book.added(m),
            Message::OrderExecuted(m) => book.executed(m),
            Message::OrderReduced(m) => book.reduced(m),
            Message::OrderCancelled(m) => book.cancelled(m.order_id),
            Message::OrderReplaced(m) => book.replaced(m),
            _ => Err(BookError::OtherView(message.kind())),
        }
    }

    fn apply_level(&mut self, message: &LevelChanged) -> Result<(), BookError> {
        let LevelChanged { side, price, shown, order_count } = *message;
        let Content::Levels(levels) = &mut self.content else {
            return Err(BookError::OtherView(Message::from(*message).kind()));
        };
        if shown.is_zero() != (order_count == 0) {
            return Err(BookError::WrongLevel);
        }
        if levels.count() >= ORDERS_PER_BOOK_MAX && levels.level(side, price).is_none() {
            return Err(BookError::TooManyOrders);
        }
        levels.set(side, price, Sum { shown, order_count });
        Ok(())
    }

    fn apply_batch(&mut self, message: &Message) -> Result<(), BookError> {
        let Content::Batches(state) = &mut self.content else { return Err(BookError::OtherView(message.kind())) };
        match message {
            Message::BatchMarketDefined(m) => {
                state.defined = Some(*m);
                state.phase.get_or_insert(BatchPhaseChanged { phase: BatchPhase::Closed });
            }
            Message::BatchAssetAdded(BatchAssetAdded { place, asset }) => {
                if usize::from(*place) != state.assets.len() {
                    return Err(BookError::WrongAsset(*place));
                }
                state.assets.push(*asset);
            }
            Message::BatchPhaseChanged(m) => state.phase = Some(*m),
            Message::BatchIntervalChanged(m) => {
                if let Some(defined) = &mut state.defined {
                    defined.interval_ns = m.interval_ns;
                }
            }
            Message::BatchCleared(m) => {
                state.cleared = Some(*m);
                state.prices.clear();
            }
            Message::AssetCleared(m) if state.prices.len() < state.assets.len() => state.prices.push(*m),
            Message::AssetCleared(_) => return Err(BookError::WrongAsset(state.prices.len() as u16)),
            Message::BatchClosed(_) => {}
            _ => return Err(BookError::OtherView(message.kind())),
        }
        Ok(())
    }
}
