//! One instrument by order: its copy, and its first orders as they are to be given out.

use std::collections::{BTreeMap, VecDeque};

use walras_feed::book::{Book, Content, DisplayedOrder};
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::{Message, OrderAdded, OrderExecuted, OrderReduced, OrderReplaced, Place};
use walras_feed::reader::MarketReader;
use walras_market_data::PublicOrder;
use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_relay::packet::Packet;
use walras_relay::reader::ReaderSettings;
use walras_types::{InstrumentId, OrderId, Side, SizeLots};

use super::OwnedPiece;

/// Messages that wait for a publication. A venue publishes long before there are so many.
const WAITING_MAX: usize = 1 << 18;

/// Where an order stands on its side: its price, so that the best one is first, and its turn at that price.
type Standing = (i64, u64);

/// Displayed orders as they stand.
#[derive(Debug, Default)]
struct Queues {
    /// Bids, asks.
    sides: [BTreeMap<Standing, PublicOrder>; 2],
    standing: BTreeMap<OrderId, (Side, Standing)>,
    next_turn: u64,
}

const fn index(side: Side) -> usize {
    match side {
        Side::Buy => 0,
        Side::Sell => 1,
    }
}

impl Queues {
    /// Those of a copy.
    fn of(book: &Book) -> Self {
        let mut queues = Self::default();
        if let Content::Orders(orders) = book.content() {
            for DisplayedOrder { order_id, side, price, shown } in orders.orders() {
                queues.add(PublicOrder { order_id, side, price, shown });
            }
        }
        queues
    }

    /// Behind all others of its price.
    fn add(&mut self, order: PublicOrder) {
        let ticks = order.price.get();
        let standing = (if order.side == Side::Buy { -ticks } else { ticks }, self.next_turn);
        self.next_turn += 1;
        self.standing.insert(order.order_id, (order.side, standing));
        self.sides[index(order.side)].insert(standing, order);
    }

    fn remove(&mut self, order_id: OrderId) -> Option<PublicOrder> {
        let (side, standing) = self.standing.remove(&order_id)?;
        self.sides[index(side)].remove(&standing)
    }

    /// An order shows this, in its place.
    fn show(&mut self, order_id: OrderId, shown: SizeLots) {
        if shown.is_zero() {
            self.remove(order_id);
        } else if let Some((side, standing)) = self.standing.get(&order_id)
            && let Some(order) = self.sides[index(*side)].get_mut(standing)
        {
            order.shown = shown;
        }
    }

    /// Takes a message that the copy took.
    fn take(&mut self, message: &Message) {
        match message {
            Message::OrderAdded(OrderAdded { order_id, side, price, shown }) => {
                self.add(PublicOrder { order_id: *order_id, side: *side, price: *price, shown: *shown });
            }
            Message::OrderExecuted(OrderExecuted { order_id, shown, .. })
            | Message::OrderReduced(OrderReduced { order_id, shown }) => self.show(*order_id, *shown),
            Message::OrderCancelled(cancelled) => {
                self.remove(cancelled.order_id);
            }
            Message::OrderReplaced(OrderReplaced { order_id, price, shown }) => {
                if let Some(order) = self.remove(*order_id) {
                    self.add(PublicOrder { price: *price, shown: *shown, ..order });
                }
            }
            _ => {}
        }
    }

    /// The first orders of each side, as they stand.
    fn first(&self, count: usize) -> [Vec<PublicOrder>; 2] {
        Side::BOTH.map(|side| self.sides[index(side)].values().take(count).copied().collect())
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ByOrder {
    id: InstrumentId,
    reader: MarketReader,
    is_needed: bool,
    /// Since when nobody needs it.
    idle_since_ns: Option<u64>,
    /// What is given out is of the copy as it is since its last snapshot.
    is_known: bool,
    /// What no publication has covered, with its entry, in the order of the log.
    waiting: VecDeque<(u64, Message)>,
    /// The last entry all of whose messages came.
    ended: u64,
    /// As published: the orders, and the last entry.
    queues: Queues,
    log_index: u64,
    /// As given out.
    given: [Vec<PublicOrder>; 2],
}

impl ByOrder {
    pub(super) fn new(id: InstrumentId, settings: ReaderSettings, trees: Trees) -> Self {
        let channel = ChannelId::instrument(View::Orders, id);
        Self {
            id,
            reader: MarketReader::joining(channel, settings).of_trees(trees),
            is_needed: false,
            idle_since_ns: None,
            is_known: false,
            waiting: VecDeque::new(),
            ended: 0,
            queues: Queues::default(),
            log_index: 0,
            given: Default::default(),
        }
    }

    /// Somebody needs it: it begins with what was published last. Behind a gap that is what the next snapshot has.
    pub(super) fn want(&mut self, pieces: &mut VecDeque<OwnedPiece>) {
        (self.is_needed, self.idle_since_ns) = (true, None);
        self.is_known &= self.reader.book().is_some();
        if self.is_known {
            self.give(self.queues.first(BOOK_ORDERS_MAX), pieces);
        }
    }

    /// Nobody does any more.
    pub(super) fn let_go(&mut self, now_ns: u64) {
        (self.is_needed, self.idle_since_ns) = (false, Some(now_ns));
    }

    pub(super) fn is_idle(&self, now_ns: u64, for_ns: u64) -> bool {
        self.idle_since_ns.is_some_and(|since_ns| now_ns >= since_ns.saturating_add(for_ns))
    }

    /// Whether something waits for a publication.
    pub(super) fn waits(&self) -> bool {
        self.is_known && !self.waiting.is_empty()
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
        let was_joined = self.reader.book().is_some();
        let Self { reader, waiting, ended, .. } = self;
        reader.packet(now_ns, packet, |head, message| {
            waiting.push_back((head.log_index, *message));
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
        self.is_known &= was_joined;
        if !self.is_known && book.is_whole() {
            // The copy as it is, whatever waits.
            (self.is_known, self.queues, self.log_index) = (true, Queues::of(book), book.head().log_index);
            self.waiting.clear();
            let now = self.queues.first(BOOK_ORDERS_MAX);
            if self.is_needed {
                self.give(now, pieces);
            }
        }
    }

    /// The venue has published what it was after this entry.
    pub(super) fn publish(&mut self, until: u64, pieces: &mut VecDeque<OwnedPiece>) {
        if !self.is_known {
            return;
        }
        let (until, before) = (until.min(self.ended), self.waiting.len());
        while self.waiting.front().is_some_and(|(log_index, _)| *log_index <= until)
            && let Some((log_index, message)) = self.waiting.pop_front()
        {
            self.log_index = self.log_index.max(log_index);
            self.queues.take(&message);
        }
        if !self.is_needed || self.waiting.len() == before {
            return;
        }
        let now = self.queues.first(BOOK_ORDERS_MAX);
        if now != self.given {
            self.give(now, pieces);
        }
    }

    fn give(&mut self, now: [Vec<PublicOrder>; 2], pieces: &mut VecDeque<OwnedPiece>) {
        self.given = now;
        let [bids, asks] = self.given.clone();
        pieces.push_back(OwnedPiece::Orders { instrument: self.id, log_index: self.log_index, bids, asks });
    }
}

#[cfg(test)]
mod tests {
    use walras_feed::message::OrderCancelled;
    use walras_types::PriceTicks;

    use super::*;

    fn shown(queues: &Queues, count: usize) -> [Vec<(u64, i64, u64)>; 2] {
        queues.first(count).map(|side| side.iter().map(|order| (order.order_id.0, order.price.get(), order.shown.get())).collect())
    }

    #[test]
    fn orders_stand_by_price_and_then_by_turn() {
        let mut queues = Queues::default();
        let price = |ticks| PriceTicks::new(ticks).unwrap();
        for (id, side, ticks) in
            [(1, Side::Buy, 10), (2, Side::Buy, 11), (3, Side::Buy, 10), (4, Side::Sell, 13), (5, Side::Sell, 12)]
        {
            let shown = SizeLots::new(5);
            queues.take(&OrderAdded { order_id: OrderId(id), side, price: price(ticks), shown }.into());
        }
        assert_eq!(shown(&queues, 9), [vec![(2, 11, 5), (1, 10, 5), (3, 10, 5)], vec![(5, 12, 5), (4, 13, 5)]]);
        assert_eq!(shown(&queues, 1), [vec![(2, 11, 5)], vec![(5, 12, 5)]]);
        // In its place with another size; behind the others with another price, or its next slice.
        queues.take(&OrderReduced { order_id: OrderId(1), shown: SizeLots::new(2) }.into());
        assert_eq!(shown(&queues, 9)[0], [(2, 11, 5), (1, 10, 2), (3, 10, 5)]);
        queues.take(&OrderReplaced { order_id: OrderId(2), price: price(10), shown: SizeLots::new(7) }.into());
        queues.take(&OrderReplaced { order_id: OrderId(1), price: price(10), shown: SizeLots::new(1) }.into());
        assert_eq!(shown(&queues, 9)[0], [(3, 10, 5), (2, 10, 7), (1, 10, 1)]);
        queues.take(&OrderReduced { order_id: OrderId(3), shown: SizeLots::ZERO }.into());
        queues.take(&OrderCancelled { order_id: OrderId(4) }.into());
        // One that is not there changes nothing.
        queues.take(&OrderCancelled { order_id: OrderId(4) }.into());
        assert_eq!(shown(&queues, 9), [vec![(2, 10, 7), (1, 10, 1)], vec![(5, 12, 5)]]);
        assert_eq!(queues.standing.len(), 3);
    }
}
