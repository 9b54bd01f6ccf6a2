//! Drives a book with records as a venue does, and writes out what happens.
//!
//! Per command: the price and size are checked, the order is looked up by its owner and the owner's name for it, self-trades are
//! prevented, and every fill and every answer is written as a 48-byte event into a ring of 4,096. Commands come in batches, so the
//! next ones are known: the book gets them ahead ([`OrderBook::expect_name`]).
//!
//! The form matters, and is the fastest of those measured: [`step`] inlined into one loop, events written field by field into the
//! ring rather than made and copied.

use walras_market_history::workload_file::level_hash;
use walras_order_book::{
    Amended, Band, BookEvents, Entry, Fate, Fill, NameHash, OpenOrder, OrderBook, OwnerId, Party, Placed, PriceIndex, RemovalCause,
    Seen,
};
use walras_types::{
    Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, prefetch,
};

use crate::records::{Op, Record};

/// What an [`Event`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// Nothing yet.
    Empty = 0,
    /// A fill.
    Traded = 1,
    /// An order that nobody named left the book.
    Removed = 2,
    /// An order rests.
    Rested = 3,
    /// The rest of an immediate order found no match.
    Unfilled = 4,
    /// An order is done: filled, or stopped by self-trade prevention.
    Done = 5,
    /// An order was refused.
    Refused = 6,
    /// An order was cancelled.
    Cancelled = 7,
    /// An order was moved.
    Moved = 8,
    /// An order was reduced.
    Reduced = 9,
}

/// What a venue would send on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Whom it is for.
    pub owner: u32,
    /// The venue's name for the order: of a fill, for the one that stood.
    pub order_id: u64,
    /// Of a fill the venue's name for the order that came; otherwise the participant's name.
    pub other_id: u64,
    /// In ticks.
    pub price: i64,
    /// In lots.
    pub size: u64,
    /// What is left, in lots.
    pub open: u64,
}

const EMPTY: Event = Event { kind: EventKind::Empty, owner: 0, order_id: 0, other_id: 0, price: 0, size: 0, open: 0 };
const RING_EVENTS: usize = 4_096;

/// Where events go. A reader would be at most a ring behind.
#[derive(Debug)]
pub struct Ring {
    events: Box<[Event; RING_EVENTS]>,
    written: usize,
    /// Fills so far.
    pub trades: u64,
    /// Lots in them.
    pub volume: u64,
}

impl Default for Ring {
    fn default() -> Self {
        Self { events: Box::new([EMPTY; RING_EVENTS]), written: 0, trades: 0, volume: 0 }
    }
}

impl Ring {
    #[inline(always)]
    fn put(&mut self, event: Event) {
        let to = &mut self.events[self.written & (RING_EVENTS - 1)];
        to.kind = event.kind;
        to.owner = event.owner;
        to.order_id = event.order_id;
        to.other_id = event.other_id;
        to.price = event.price;
        to.size = event.size;
        to.open = event.open;
        self.written += 1;
    }

    /// How many events were written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// The fills written since the ring held `written` events, which must be under 4,096 ago.
    pub fn fills_since(&self, written: usize) -> impl Iterator<Item = &Event> {
        assert!(self.written - written <= RING_EVENTS, "the ring has gone round");
        let events = (written..self.written).map(|at| &self.events[at & (RING_EVENTS - 1)]);
        events.filter(|event| event.kind == EventKind::Traded)
    }
}

impl BookEvents for Ring {
    #[inline]
    fn traded(&mut self, fill: &Fill) {
        self.trades += 1;
        self.volume += fill.size.get();
        self.put(Event {
            kind: EventKind::Traded,
            owner: fill.maker.owner.0,
            order_id: fill.maker.order_id.0,
            other_id: fill.taker.order_id.0,
            price: fill.price.get(),
            size: fill.size.get(),
            open: fill.maker.open.get(),
        });
    }

    fn uncrossed(&mut self, _: PriceTicks, _: SizeLots, _: &Party, _: &Party) {}

    fn removed(&mut self, order: &OpenOrder, _: RemovalCause) {
        self.put(Event {
            kind: EventKind::Removed,
            owner: order.owner.0,
            order_id: order.order_id.0,
            other_id: order.client_order_id.0,
            price: order.price.get(),
            size: 0,
            open: order.open.get(),
        });
    }

    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}

    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}

    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

fn name_of<I: PriceIndex>(book: &OrderBook<I>, record: &Record) -> NameHash {
    book.expect_name(OwnerId(record.user), ClientOrderId(record.id as u64))
}

/// Carries out one command, the `number`-th, without any look-ahead. Returns 1 if that was impossible: out of range, no such order,
/// refused.
#[inline(always)]
pub fn step<I: PriceIndex>(book: &mut OrderBook<I>, ring: &mut Ring, number: u64, record: &Record, self_trade: SelfTrade) -> u64 {
    let name = name_of(book, record);
    step_named(book, ring, number, record, self_trade, name)
}

/// As [`step`], where `name` is the hash of the name in the command.
#[inline(always)]
fn step_named<I: PriceIndex>(
    book: &mut OrderBook<I>,
    ring: &mut Ring,
    number: u64,
    record: &Record,
    self_trade: SelfTrade,
    name: NameHash,
) -> u64 {
    let owner = OwnerId(record.user);
    let client_order_id = ClientOrderId(record.id as u64);
    match record.op {
        Op::Gtc | Op::Ioc => {
            let (Some(price), Some(size)) = (PriceTicks::new(record.price), SizeLots::order_size(record.size as u64)) else {
                return 1;
            };
            let entry = Entry {
                order_id: OrderId(number),
                client_order_id,
                owner,
                side: record.side(),
                price,
                size,
                time_in_force: if record.op == Op::Gtc { TimeInForce::GoodTillCancel } else { TimeInForce::ImmediateOrCancel },
                post_only: PostOnly::Off,
                display: Display::Full,
                min_size: None,
                self_trade,
                trigger: None,
            };
            let (kind, open) = match book.submit_named(name, &entry, Band::OPEN, ring) {
                Ok(placed) => match placed.fate {
                    Fate::Rested { open, .. } => (EventKind::Rested, open.get()),
                    Fate::Unfilled { open } => (EventKind::Unfilled, open.get()),
                    Fate::Filled | Fate::SelfTraded { .. } | Fate::Banded { .. } | Fate::Paused { .. } | Fate::Parked => {
                        (EventKind::Done, 0)
                    }
                },
                Err(_) => (EventKind::Refused, 0),
            };
            ring.put(Event {
                kind,
                owner: record.user,
                order_id: number,
                other_id: client_order_id.0,
                price: record.price,
                size: record.size as u64,
                open,
            });
            u64::from(kind == EventKind::Refused)
        }
        Op::Cancel => {
            let Some(handle) = book.find_named(name, owner, client_order_id) else { return 1 };
            let order = book.cancel(handle);
            ring.put(Event {
                kind: EventKind::Cancelled,
                owner: record.user,
                order_id: order.order_id.0,
                other_id: client_order_id.0,
                price: 0,
                size: 0,
                open: order.open.get(),
            });
            0
        }
        Op::Move => {
            let Some(price) = PriceTicks::new(record.price) else { return 1 };
            let Some(handle) = book.find_named(name, owner, client_order_id) else { return 1 };
            let open = match book.amend(handle, Some(price), None, Band::OPEN, ring) {
                Ok(Amended::Requeued { placed: Placed { fate: Fate::Rested { open, .. }, .. } }) => open.get(),
                _ => 0,
            };
            ring.put(Event {
                kind: EventKind::Moved,
                owner: record.user,
                order_id: 0,
                other_id: client_order_id.0,
                price: record.price,
                size: 0,
                open,
            });
            0
        }
        Op::Reduce => {
            let Some(handle) = book.find_named(name, owner, client_order_id) else { return 1 };
            let open = book.view(handle).open.saturating_sub(SizeLots::new(record.size as u64));
            if open.is_zero() {
                book.cancel(handle);
            } else {
                let _ = book.amend(handle, None, Some(open), Band::OPEN, ring);
            }
            ring.put(Event {
                kind: EventKind::Reduced,
                owner: record.user,
                order_id: 0,
                other_id: client_order_id.0,
                price: 0,
                size: record.size as u64,
                open: open.get(),
            });
            0
        }
    }
}

/// Commands between asking memory for one and carrying it out.
const FETCH_AHEAD: usize = 48;
/// Commands between telling a large book of one and carrying it out, for the three steps of telling.
const NAME_AHEAD: usize = 10;
const ORDER_AHEAD: usize = 6;
const NEIGHBOURS_AHEAD: usize = 3;
const NAMES: usize = 16;

/// Carries out `records` from the `first` on, looking ahead. How many could not be.
pub fn drive<I: PriceIndex>(
    book: &mut OrderBook<I>,
    ring: &mut Ring,
    records: &[Record],
    first: usize,
    self_trade: SelfTrade,
) -> u64 {
    let (mut at, mut refused) = (first, 0);
    while at < records.len() {
        let drive = if book.is_large() { drive_large } else { drive_small };
        refused += drive(book, ring, records, &mut at, self_trade);
    }
    refused
}

/// While the book is small: it gets a command's name two commands ahead, its order one.
#[inline(never)]
fn drive_small<I: PriceIndex>(
    book: &mut OrderBook<I>,
    ring: &mut Ring,
    records: &[Record],
    at: &mut usize,
    self_trade: SelfTrade,
) -> u64 {
    let name_at = |book: &OrderBook<I>, at: usize| records.get(at).map_or(NameHash::default(), |record| name_of(book, record));
    let (mut here, mut refused) = (*at, 0);
    let (mut name, mut next) = (name_at(book, here), name_at(book, here + 1));
    while here < records.len() && !book.is_large() {
        if let Some(coming) = records.get(here + FETCH_AHEAD) {
            prefetch(coming);
        }
        let after = name_at(book, here + 2);
        book.expect_order(next);
        refused += step_named(book, ring, here as u64 + 1, &records[here], self_trade, name);
        (name, next) = (next, after);
        here += 1;
    }
    *at = here;
    refused
}

/// While it is large: ten, six and three commands ahead.
#[inline(never)]
fn drive_large<I: PriceIndex>(
    book: &mut OrderBook<I>,
    ring: &mut Ring,
    records: &[Record],
    at: &mut usize,
    self_trade: SelfTrade,
) -> u64 {
    let (mut names, mut seen) = ([NameHash::default(); NAMES], [Seen::default(); NAMES]);
    for coming in *at..records.len().min(*at + NAME_AHEAD) {
        names[coming % NAMES] = name_of(book, &records[coming]);
    }
    let (mut here, mut refused) = (*at, 0);
    while here < records.len() && book.is_large() {
        if let Some(coming) = records.get(here + FETCH_AHEAD) {
            prefetch(coming);
        }
        if let Some(coming) = records.get(here + NAME_AHEAD) {
            names[(here + NAME_AHEAD) % NAMES] = name_of(book, coming);
            book.expect_level(coming.side(), coming.price);
        }
        seen[(here + ORDER_AHEAD) % NAMES] = book.expect_order(names[(here + ORDER_AHEAD) % NAMES]);
        book.expect_neighbours(seen[(here + NEIGHBOURS_AHEAD) % NAMES]);
        refused += step_named(book, ring, here as u64 + 1, &records[here], self_trade, names[here % NAMES]);
        here += 1;
    }
    *at = here;
    refused
}

/// As [`drive`], of a driver that knows no command before it is due.
#[inline(never)]
pub fn drive_blind<I: PriceIndex>(
    book: &mut OrderBook<I>,
    ring: &mut Ring,
    records: &[Record],
    first: usize,
    self_trade: SelfTrade,
) -> u64 {
    (first..records.len()).map(|at| step(book, ring, at as u64 + 1, &records[at], self_trade)).sum()
}

/// What a stream came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Fills.
    pub trades: u64,
    /// Lots in them.
    pub volume: u64,
    /// Commands that could not be carried out.
    pub refused: u64,
    /// Ask levels left.
    pub ask_levels: u64,
    /// Bid levels left.
    pub bid_levels: u64,
    /// Orders left.
    pub orders: u64,
    /// [`level_hash`] of the levels left.
    pub level_hash: u64,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trades, volume, refused, ask_levels, bid_levels, orders, level_hash } = self;
        write!(
            f,
            "{trades} trades, {volume} lots, {refused} refused, {orders} orders left in {ask_levels}+{bid_levels} levels, \
             level hash {level_hash}"
        )
    }
}

/// What a driven book came to.
#[must_use]
pub fn answer_of<I: PriceIndex>(book: &OrderBook<I>, ring: &Ring, refused: u64) -> Answer {
    let levels = |side| {
        let mut levels = Vec::new();
        book.depth(side, usize::MAX, &mut levels);
        levels
    };
    let (asks, bids) = (levels(Side::Sell), levels(Side::Buy));
    let words = |levels: &[walras_order_book::DepthLevel]| {
        levels.iter().map(|level| (level.price.get(), level.shown.get())).collect::<Vec<_>>().into_iter()
    };
    Answer {
        trades: ring.trades,
        volume: ring.volume,
        refused,
        ask_levels: asks.len() as u64,
        bid_levels: bids.len() as u64,
        orders: book.order_count() as u64,
        level_hash: level_hash(words(&asks), words(&bids)),
    }
}

/// A book ready for a stream: the commands that only fill it are carried out, and room is made for as many orders and an eighth
/// more.
pub fn filled<I: PriceIndex>(records: &[Record], fill: usize, self_trade: SelfTrade) -> (OrderBook<I>, Ring, u64) {
    let mut book = OrderBook::<I>::new(Allocation::PriceTime);
    let mut ring = Ring::default();
    book.reserve(fill + fill / 8);
    let refused = drive(&mut book, &mut ring, &records[..fill], 0, self_trade);
    (book, ring, refused)
}

/// Digest of fills in order: who stood, who came, price, size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillDigest(u64);

impl Default for FillDigest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FillDigest {
    /// Takes in a fill between two orders by their venue's names.
    pub fn add(&mut self, maker: u64, taker: u64, price: i64, size: u64) {
        for word in [maker, taker, price.cast_unsigned(), size] {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Runs a stream untimed, a command at a time, and digests every fill.
#[must_use]
pub fn digest<I: PriceIndex>(records: &[Record], self_trade: SelfTrade) -> (Answer, FillDigest) {
    let (mut book, mut ring, mut refused) = filled::<I>(records, 0, self_trade);
    let mut digest = FillDigest::default();
    for (at, record) in records.iter().enumerate() {
        let before = ring.written();
        refused += step(&mut book, &mut ring, at as u64 + 1, record, self_trade);
        for fill in ring.fills_since(before) {
            digest.add(fill.order_id, fill.other_id, fill.price, fill.size);
        }
    }
    book.check_invariants();
    (answer_of(&book, &ring, refused), digest)
}
