//! Orders in one vector, one cache line each; the place freed last is reused first.

use walras_types::limits::ORDERS_PER_BOOK_MAX;
use walras_types::{ClientOrderId, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, prefetch};

use crate::api::{Entry, OpenOrder, OwnerId, Party, Seniority};
use crate::extras::Extras;
use crate::price_index::Rank;
use crate::slot::{Slot, place_of};

/// Which list an order is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Place {
    /// None: the slot is free, or its order is just entering.
    Nowhere,
    /// None: the slot is free, but the order that a sweep filled here has its name in the index still. It is taken out when the
    /// place is used again, so that a sweep, which others wait for, does not wait for that.
    Swept,
    /// The queue of its price that others see.
    Displayed,
    /// The queue of its price that others do not see.
    Hidden,
    /// The stops that wait for their trigger.
    Parked,
}

/// How long an order stands; the time of a good-till-time order is in its [`crate::extras::Extras`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lifetime {
    GoodTillCancel,
    Day,
    GoodTill,
    ImmediateOrCancel,
    FillOrKill,
}

impl Lifetime {
    #[inline]
    fn of(time_in_force: TimeInForce) -> Self {
        match time_in_force {
            TimeInForce::GoodTillCancel => Self::GoodTillCancel,
            TimeInForce::Day => Self::Day,
            TimeInForce::GoodTill(_) => Self::GoodTill,
            TimeInForce::ImmediateOrCancel => Self::ImmediateOrCancel,
            TimeInForce::FillOrKill => Self::FillOrKill,
        }
    }
}

/// Whether an order has [`crate::extras::Extras`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Plain {
    Yes,
    No,
}

/// One order: what matching needs, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Order {
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
    /// Its price, as a rank of its side.
    pub(crate) rank: Rank,
    /// All that is left of it.
    pub(crate) open: SizeLots,
    /// The part that stands in the queue: all of it, except for an iceberg.
    pub(crate) slice: SizeLots,
    pub(crate) owner: OwnerId,
    /// The hash of its name.
    pub(crate) tag: u32,
    pub(crate) next: Option<Slot>,
    pub(crate) prev: Option<Slot>,
    pub(crate) side: Side,
    pub(crate) place: Place,
    pub(crate) lifetime: Lifetime,
    pub(crate) self_trade: SelfTrade,
    pub(crate) post_only: PostOnly,
    pub(crate) seniority: Seniority,
    pub(crate) plain: Plain,
}

const _: () = assert!(size_of::<Order>() == 64);

impl Order {
    /// A plain order that enters, alone in its queue.
    #[inline(always)]
    pub(crate) fn entering(entry: &Entry, tag: u32, rank: Rank, open: SizeLots) -> Self {
        Self {
            order_id: entry.order_id,
            client_order_id: entry.client_order_id,
            rank,
            open,
            slice: open,
            owner: entry.owner,
            tag,
            next: None,
            prev: None,
            side: entry.side,
            place: Place::Displayed,
            lifetime: Lifetime::of(entry.time_in_force),
            self_trade: entry.self_trade,
            post_only: entry.post_only,
            seniority: Seniority::Joined,
            plain: Plain::Yes,
        }
    }

    /// Its side of a trade, which leaves this of it. A level's price is its orders' limit.
    #[inline(always)]
    pub(crate) fn party(&self, limit: PriceTicks, open: SizeLots) -> Party {
        Party { order_id: self.order_id, client_order_id: self.client_order_id, owner: self.owner, limit, open }
    }

    /// What it hides behind its slice.
    #[inline]
    pub(crate) fn reserve(&self) -> SizeLots {
        self.open - self.slice
    }

    /// What of it others see.
    #[inline]
    pub(crate) fn shown(&self) -> SizeLots {
        match self.place {
            Place::Displayed => self.slice,
            Place::Hidden | Place::Parked | Place::Nowhere | Place::Swept => SizeLots::ZERO,
        }
    }

    /// All of it, with its extras.
    #[inline(always)]
    pub(crate) fn view(&self, extras: Extras) -> OpenOrder {
        OpenOrder {
            order_id: self.order_id,
            client_order_id: self.client_order_id,
            owner: self.owner,
            side: self.side,
            price: self.rank.price(self.side),
            open: self.open,
            shown: self.shown(),
            time_in_force: extras.time_in_force,
            display: extras.display,
            trigger: extras.stop.map(|stop| stop.trigger),
            post_only: self.post_only,
            min_size: extras.min_size,
            self_trade: self.self_trade,
            seniority: self.seniority,
        }
    }
}

/// Places from which a book gets address space for all the orders that it may ever have: until then they are copied as they grow, half a
/// mebibyte at most.
const LARGE_FROM: usize = 1 << 13;

/// All orders of a book.
pub(crate) struct Arena {
    orders: Vec<Order>,
    /// Free places, linked by `next`; none only when the book is full.
    free: Option<Slot>,
    /// How many of the free places hold a swept order.
    swept_count: usize,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let nobody = Order {
            order_id: OrderId(0),
            client_order_id: ClientOrderId(0),
            rank: Rank::BOTTOM,
            open: SizeLots::ZERO,
            slice: SizeLots::ZERO,
            owner: OwnerId(0),
            tag: 0,
            next: None,
            prev: None,
            side: Side::Buy,
            place: Place::Nowhere,
            lifetime: Lifetime::GoodTillCancel,
            self_trade: SelfTrade::CancelNewest,
            post_only: PostOnly::Off,
            seniority: Seniority::Joined,
            plain: Plain::Yes,
        };
        let mut arena = Self { orders: vec![nobody], free: None, swept_count: 0 };
        arena.grow();
        arena
    }

    /// Makes room for `orders` in all, so that none of them waits for memory.
    pub(crate) fn reserve(&mut self, orders: usize) {
        self.orders.reserve((orders + 1).saturating_sub(self.orders.len()));
    }

    /// Makes room for more. A large book gets all the address space that it will ever need, which takes memory only where it is
    /// used: the orders that are there never move again, so no command waits for them to be copied. Where the system refuses that
    /// much, it gets as much as there is.
    fn make_room(&mut self) {
        let len = self.orders.len();
        if len < LARGE_FROM {
            return self.orders.reserve(len);
        }
        let mut more = (ORDERS_PER_BOOK_MAX + 1).saturating_sub(len);
        while more > len && self.orders.try_reserve_exact(more).is_err() {
            more /= 2;
        }
        self.orders.reserve(1);
    }

    /// Places that there are, a free one more than were ever used at once.
    #[inline]
    pub(crate) fn place_count(&self) -> usize {
        self.orders.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_none()
    }

    /// Takes a place, whose order the caller replaces. The caller has checked [`Arena::is_full`].
    #[inline]
    pub(crate) fn take_place(&mut self) -> Slot {
        let slot = self.free.expect("the book is not full");
        self.free = self.orders[slot.index()].next;
        if self.free.is_none() {
            self.grow();
        }
        slot
    }

    /// Adds a place, unless the maximum is reached.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        if self.place_count() < ORDERS_PER_BOOK_MAX {
            if self.orders.len() == self.orders.capacity() {
                self.make_room();
            }
            self.free = Some(u32::try_from(self.orders.len()).ok().and_then(Slot::new).expect("ORDERS_PER_BOOK_MAX fits 32 bits"));
            self.orders.push(Order { next: None, ..self.orders[0] });
        }
    }

    /// Gives a place back. Its order is in no list any more.
    #[inline]
    pub(crate) fn remove(&mut self, slot: Slot) {
        let free = self.free;
        let order = &mut self.orders[slot.index()];
        order.place = Place::Nowhere;
        order.next = free;
        self.free = Some(slot);
    }

    /// Gives back the places of `count` orders that hang together by `next`, from `first` to `last`, each marked as swept.
    #[inline]
    pub(crate) fn remove_chain(&mut self, first: Slot, last: Slot, count: usize) {
        self.orders[last.index()].next = self.free;
        self.free = Some(first);
        self.swept_count += count;
    }

    /// How many free places hold a swept order, whose name is in the index still.
    pub(crate) fn swept_count(&self) -> usize {
        self.swept_count
    }

    /// Says that a swept order's name was taken out of the index.
    #[inline]
    pub(crate) fn forget_swept(&mut self) {
        self.swept_count -= 1;
    }

    /// All places as they lie, used or free.
    pub(crate) fn places(&self) -> &[Order] {
        &self.orders
    }

    /// Live orders in no particular order, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Order)> {
        self.orders
            .iter()
            .enumerate()
            .filter(|(_, order)| !matches!(order.place, Place::Nowhere | Place::Swept))
            .filter_map(|(index, order)| Some((Slot::new(u32::try_from(index).ok()?)?, order)))
    }

    /// Panics if the free places and the others are not all there are, or swept orders are miscounted.
    pub(crate) fn check_invariants(&self) {
        let (mut free_count, mut next) = (0, self.free);
        while let Some(slot) = next {
            assert!(matches!(self[slot].place, Place::Nowhere | Place::Swept), "a free place holds an order");
            free_count += 1;
            next = self[slot].next;
        }
        assert_eq!(free_count + self.iter().count(), self.place_count(), "a place is lost");
        let swept_count = self.orders.iter().filter(|order| order.place == Place::Swept).count();
        assert_eq!(swept_count, self.swept_count, "swept orders are miscounted");
    }

    /// Whether an order is at `slot` that has that name.
    #[inline]
    pub(crate) fn is_named(&self, slot: Slot, owner: OwnerId, client_order_id: ClientOrderId) -> bool {
        let order = &self.orders[slot.index()];
        (order.client_order_id == client_order_id) & (order.owner == owner) & (order.place != Place::Swept)
    }

    /// All places, to index by [`place_of`].
    #[inline]
    pub(crate) fn with_scratch(&mut self) -> &mut [Order] {
        &mut self.orders
    }

    /// Where an order that will be needed soon stands, and between whom; of none, nonsense that is safe to prefetch.
    #[inline]
    pub(crate) fn guess_links(&self, slot: Option<Slot>) -> (Side, Rank, Option<Slot>, Option<Slot>) {
        let Some(order) = self.orders.get(place_of(slot)) else { return (Side::Buy, Rank::BOTTOM, None, None) };
        (order.side, order.rank, order.prev, order.next)
    }

    /// Asks the processor for an order that will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Option<Slot>) {
        prefetch(&self.orders[place_of(slot)]);
    }
}

impl std::ops::Index<Slot> for Arena {
    type Output = Order;
    #[inline]
    fn index(&self, slot: Slot) -> &Order {
        &self.orders[slot.index()]
    }
}

impl std::ops::IndexMut<Slot> for Arena {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Order {
        &mut self.orders[slot.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book grows to a million orders, and beyond a small size none of them is copied.
    #[test]
    fn the_orders_of_a_large_book_stay_where_they_are() {
        let mut arena = Arena::new();
        let (mut address, mut copied_max) = (arena.orders.as_ptr().addr(), 0);
        for _ in 0..1 << 20 {
            let before = arena.orders.len();
            arena.take_place();
            if arena.orders.as_ptr().addr() != address {
                address = arena.orders.as_ptr().addr();
                copied_max = before;
            }
        }
        assert!(copied_max <= LARGE_FROM, "{copied_max} orders were copied at once");
    }
}
