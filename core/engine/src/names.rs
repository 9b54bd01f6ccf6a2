//! Which names an account has given to its open orders, so that finding some or all of them does not mean walking the whole book.
//!
//! Only adding is noted: a name whose order is gone stays until it is swept out. So the path of an order costs one append. Sweeping goes
//! on piece by piece, so that nobody who has very many orders waits for all of them to be looked up: a list is at most about three
//! times as long as its account ever had orders open at once, or [`PIECE_MIN`].
//!
//! Orders are added as they enter, hence by ascending id: a list can be searched for an id, and read on from there.

use walras_order_book::{Handle, OpenOrder, OrderBook, OwnerId, PriceIndex};
use walras_types::{AccountId, ClientOrderId, OrderId};

/// Names that a list has room for at first.
const PIECE_MIN: usize = 32;

/// Names that are looked up in one go when they are swept, and how many older pieces are swept when the latest one is full.
const PIECE_MAX: usize = 512;
const PIECES_SWEPT: usize = 2;

/// An order that was entered, and may be open still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    order_id: OrderId,
    name: ClientOrderId,
}

impl Named {
    /// The order, unless it is gone: its name may lead to a later one.
    fn find<I: PriceIndex>(self, book: &OrderBook<I>, account: AccountId) -> Option<Handle> {
        book.find(OwnerId(account.0), self.name).filter(|handle| book.order_id(*handle) == self.order_id)
    }
}

/// By account, its open orders among others, by id.
#[derive(Debug, Default)]
pub(crate) struct Names {
    lists: Vec<List>,
}

/// Those of one account.
#[derive(Debug, Default)]
struct List {
    /// The latest. Once it has [`PIECE_MAX`] that are mostly open, it joins the others.
    tail: Vec<Named>,
    /// Those before, none of them empty.
    pieces: Vec<Vec<Named>>,
    /// Which of them is swept next.
    turn: usize,
}

impl Names {
    /// Notes that an account has an order of that name open in `book`. Its id is above those noted before.
    #[inline]
    pub(crate) fn add<I: PriceIndex>(&mut self, book: &OrderBook<I>, account: AccountId, order_id: OrderId, name: ClientOrderId) {
        let index = account.0 as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, List::default);
        }
        let list = &mut self.lists[index];
        if list.tail.len() == list.tail.capacity() {
            list.make_room(book, account);
        }
        debug_assert!(list.tail.last().is_none_or(|last| last.order_id < order_id), "orders are noted as they enter");
        list.tail.push(Named { order_id, name });
    }

    /// An account's open orders above `after`, by id. Looks at `looks` entries at most, and at one at least, and takes off how many
    /// that were. The id of the last one, if there are more.
    pub(crate) fn open_orders<I: PriceIndex>(
        &self,
        book: &OrderBook<I>,
        account: AccountId,
        after: OrderId,
        looks: &mut usize,
        mut found: impl FnMut(&OpenOrder),
    ) -> Option<OrderId> {
        let list = self.lists.get(account.0 as usize)?;
        let first = list.pieces.partition_point(|piece| piece.last().is_none_or(|last| last.order_id <= after));
        let mut left = (*looks).max(1);
        let mut last = None;
        for piece in list.pieces[first..].iter().chain([&list.tail]) {
            let rest = &piece[piece.partition_point(|named| named.order_id <= after)..];
            let seen = &rest[..rest.len().min(left)];
            left -= seen.len();
            *looks = looks.saturating_sub(seen.len());
            seen.iter().filter_map(|named| named.find(book, account)).for_each(|handle| found(&book.view(handle)));
            last = seen.last().map(|named| named.order_id).or(last);
            if seen.len() < rest.len() {
                return last;
            }
        }
        None
    }
}

impl List {
    #[cold]
    #[inline(never)]
    fn make_room<I: PriceIndex>(&mut self, book: &OrderBook<I>, account: AccountId) {
        self.tail.retain(|named| named.find(book, account).is_some());
        let len = self.tail.len();
        if len <= PIECE_MAX / 2 {
            let room = (2 * len).clamp(PIECE_MIN, PIECE_MAX);
            self.tail.reserve_exact(room - len);
        } else {
            let next = Vec::with_capacity(PIECE_MAX);
            self.pieces.push(std::mem::replace(&mut self.tail, next));
        }
        for _ in 0..PIECES_SWEPT.min(self.pieces.len()) {
            self.sweep_next(book, account);
        }
    }

    /// Sweeps one of the older pieces, and joins what is left of it to the one before if there is room.
    fn sweep_next<I: PriceIndex>(&mut self, book: &OrderBook<I>, account: AccountId) {
        let at = if self.turn < self.pieces.len() { self.turn } else { 0 };
        let Some(piece) = self.pieces.get_mut(at) else { return };
        piece.retain(|named| named.find(book, account).is_some());
        let len = piece.len();
        let joins = at > 0 && self.pieces[at - 1].len() + len <= PIECE_MAX;
        self.turn = at + 1;
        if len == 0 || joins {
            let piece = self.pieces.remove(at);
            if joins {
                self.pieces[at - 1].extend(piece);
            }
            self.turn = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_order_book::{Band, BookEvents, Entry, Fill, Ladder, Party, RemovalCause};
    use walras_types::{Allocation, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

    struct Deaf;

    impl BookEvents for Deaf {
        fn traded(&mut self, _: &Fill) {}
        fn uncrossed(&mut self, _: PriceTicks, _: SizeLots, _: &Party, _: &Party) {}
        fn removed(&mut self, _: &OpenOrder, _: RemovalCause) {}
        fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}
        fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}
        fn replenished(&mut self, _: OrderId, _: SizeLots) {}
    }

    #[test]
    fn a_list_stays_short_and_finds_what_is_open() {
        let mut book = OrderBook::<Ladder>::new(Allocation::PriceTime);
        let mut names = Names::default();
        let account = AccountId(3);
        for round in 0..10_000u64 {
            let name = ClientOrderId(round % 700);
            if let Some(handle) = book.find(OwnerId(3), name) {
                book.cancel(handle);
            }
            let entry = Entry {
                order_id: OrderId(round + 1),
                client_order_id: name,
                owner: OwnerId(3),
                side: Side::Buy,
                price: PriceTicks::MIN,
                size: SizeLots::new(1),
                time_in_force: TimeInForce::GoodTillCancel,
                post_only: PostOnly::Off,
                display: Display::Full,
                min_size: None,
                self_trade: SelfTrade::Allow,
                trigger: None,
            };
            book.submit(&entry, Band::OPEN, &mut Deaf).unwrap();
            names.add(&book, account, OrderId(round + 1), name);
            if round % 3 == 0 {
                book.cancel(book.find(OwnerId(3), name).unwrap());
            }
        }
        let list = &names.lists[3];
        let noted = list.tail.len() + list.pieces.iter().map(Vec::len).sum::<usize>();
        assert!(noted <= 3 * 700 && list.pieces.iter().all(|piece| piece.len() <= PIECE_MAX), "{noted}");
        let (mut open, mut looks) = (Vec::new(), usize::MAX);
        assert_eq!(names.open_orders(&book, account, OrderId(0), &mut looks, |order| open.push(*order)), None);
        assert_eq!(open.len(), book.order_count());
        assert!(open.windows(2).all(|pair| pair[0].order_id < pair[1].order_id));
        for looks in [1, 7, 100, 10_000] {
            let (mut joined, mut next) = (Vec::new(), Some(OrderId(0)));
            while let Some(after) = next {
                let (before, mut left) = (joined.len(), looks);
                next = names.open_orders(&book, account, after, &mut left, |order| joined.push(*order));
                assert!(joined.len() - before <= looks - left && (next.is_none() || left == 0));
            }
            assert_eq!(joined, open, "pages of {looks} joined are the whole");
        }
    }
}
