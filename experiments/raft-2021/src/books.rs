//! What the experiments ask of a book, and the books that answer.

use walras_order_book::{Band, BookEvents, Entry, Fill, OpenOrder, OrderBook, OwnerId, Party, PriceIndex, RemovalCause};
use walras_types::{Allocation, ClientOrderId, OrderId, PriceTicks, Side, SizeLots};

use crate::baseline::Baseline;

/// A good-till-cancel limit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOrder {
    /// Its name, unique in the book.
    pub id: u64,
    /// Buy or sell.
    pub side: Side,
    /// Worst price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
}

/// Two orders traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The buy order.
    pub buy_id: u64,
    /// The sell order.
    pub sell_id: u64,
    /// The price of the order that stood in the book.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
}

/// A book and what is timed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contender {
    /// The baseline's check for trades; the order was added before.
    BaselineCheck,
    /// The baseline adds the order and checks for trades.
    Baseline,
    /// Walras's book, its levels in a ladder: the order enters.
    Ladder,
    /// Walras's book, its levels in an adaptive radix tree: the order enters.
    Art,
}

impl Contender {
    /// As plots and results name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Contender::BaselineCheck => "baseline, check alone",
            Contender::Baseline => "baseline",
            Contender::Ladder => "walras, ladder",
            Contender::Art => "walras, radix tree",
        }
    }
}

/// A book under experiment.
pub trait Book {
    /// An empty book with room for `orders`.
    fn with_room(orders: usize) -> Self;
    /// Adds an order that trades with nothing yet, even if it crosses.
    fn add(&mut self, order: &LimitOrder);
    /// Trades everything that crosses, best prices and earliest orders first. Says how many lots traded.
    fn clear(&mut self) -> u64;
    /// Adds an order and trades what it can. The operation that is timed.
    fn submit(&mut self, order: &LimitOrder, trades: &mut Vec<Trade>);
    /// Every order, bids first, each side from the next to trade to the last.
    fn listing(&self) -> Vec<LimitOrder>;
}

impl Book for Baseline {
    fn with_room(orders: usize) -> Self {
        Self::with_capacity(orders)
    }

    fn add(&mut self, order: &LimitOrder) {
        self.apply(order);
    }

    fn clear(&mut self) -> u64 {
        let mut trades = Vec::new();
        self.check_for_trades(&mut trades);
        trades.iter().map(|trade| trade.size.get()).sum()
    }

    fn submit(&mut self, order: &LimitOrder, trades: &mut Vec<Trade>) {
        self.apply(order);
        self.check_for_trades(trades);
    }

    fn listing(&self) -> Vec<LimitOrder> {
        Baseline::listing(self)
    }
}

impl<I: PriceIndex> Book for OrderBook<I> {
    fn with_room(orders: usize) -> Self {
        let mut book = OrderBook::new(Allocation::PriceTime);
        book.reserve(orders);
        book
    }

    fn add(&mut self, order: &LimitOrder) {
        self.collect(&entry(order)).expect("the draw names no order twice and fits the book");
    }

    /// By an uncross. At one price or at many, merging two queues from their best ends until they no longer cross takes the same
    /// lots out of both, so that what is left is what the baseline leaves.
    fn clear(&mut self) -> u64 {
        let reference = self.last_price().unwrap_or(PriceTicks::MIN);
        let Some(uncross) = self.auction(reference) else { return 0 };
        OrderBook::uncross(self, &uncross, &mut TradeLog(&mut Vec::new()));
        uncross.volume.get()
    }

    fn submit(&mut self, order: &LimitOrder, trades: &mut Vec<Trade>) {
        OrderBook::submit(self, &entry(order), Band::OPEN, &mut TradeLog(trades))
            .expect("the draw names no order twice and fits the book");
    }

    fn listing(&self) -> Vec<LimitOrder> {
        let mut orders = Vec::new();
        self.for_each_order(|order| {
            orders.push(LimitOrder { id: order.order_id.0, side: order.side, price: order.price, size: order.open });
        });
        orders
    }
}

/// Self-trades are prevented, so that looking for them is timed; no two orders have one owner, so that none is found.
fn entry(order: &LimitOrder) -> Entry {
    let owner = OwnerId(u32::try_from(order.id).expect("an experiment has far fewer orders"));
    Entry::limit(OrderId(order.id), (owner, ClientOrderId(order.id)), order.side, order.price, order.size)
}

/// Writes each trade down.
struct TradeLog<'a>(&'a mut Vec<Trade>);

impl BookEvents for TradeLog<'_> {
    #[inline]
    fn traded(&mut self, fill: &Fill) {
        let (buy, sell) = match fill.taker_side {
            Side::Buy => (&fill.taker, &fill.maker),
            Side::Sell => (&fill.maker, &fill.taker),
        };
        self.0.push(Trade { buy_id: buy.order_id.0, sell_id: sell.order_id.0, price: fill.price, size: fill.size });
    }

    fn uncrossed(&mut self, price: PriceTicks, size: SizeLots, buy: &Party, sell: &Party) {
        self.0.push(Trade { buy_id: buy.order_id.0, sell_id: sell.order_id.0, price, size });
    }

    fn removed(&mut self, order: &OpenOrder, cause: RemovalCause) {
        unreachable!("the experiments remove nothing, but {order:?} was: {cause:?}");
    }

    fn reduced(&mut self, order: &OpenOrder, _by: SizeLots) {
        unreachable!("no two orders have one owner, but {order:?} was reduced");
    }

    fn taker_reduced(&mut self, _by: SizeLots, _open: SizeLots) {
        unreachable!("no two orders have one owner");
    }

    fn replenished(&mut self, order_id: OrderId, _shown: SizeLots) {
        unreachable!("no order is an iceberg, but {order_id:?} was replenished");
    }
}
