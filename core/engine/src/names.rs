//! Which names an account has given to its open orders, so that finding some or all of them does not mean walking the whole book.
//!
//! Only adding is noted: a name whose order is gone stays until its account's list is full, and is then swept out. So the path of an
//! order costs one append, and a list is at most twice as long as its account ever had orders open at once, or [`SWEEP_FROM`].
//!
//! Orders are added as they enter, hence by ascending id: a list can be searched for an id, and read on from there.

use walras_order_book::{Handle, OpenOrder, OrderBook, OwnerId, PriceIndex};
use walras_types::{AccountId, ClientOrderId, OrderId};

/// A list shorter than this is not worth sweeping.
const SWEEP_FROM: usize = 32;

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
    lists: Vec<Vec<Named>>,
}

impl Names {
    /// Notes that an account has an order of that name open in `book`. Its id is above those noted before.
    #[inline]
    pub(crate) fn add<I: PriceIndex>(&mut self, book: &OrderBook<I>, account: AccountId, order_id: OrderId, name: ClientOrderId) {
        let index = account.0 as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, Vec::new);
        }
        let list = &mut self.lists[index];
        if list.len() == list.capacity() {
            sweep(list, book, account);
        }
        debug_assert!(list.last().is_none_or(|last| last.order_id < order_id), "orders are noted as they enter");
        list.push(Named { order_id, name });
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
        let list = self.lists.get(account.0 as usize).map_or(&[][..], Vec::as_slice);
        let rest = &list[list.partition_point(|named| named.order_id <= after)..];
        let seen = &rest[..rest.len().min((*looks).max(1))];
        *looks = looks.saturating_sub(seen.len());
        seen.iter().filter_map(|named| named.find(book, account)).for_each(|handle| found(&book.view(handle)));
        seen.last().map(|named| named.order_id).filter(|_| seen.len() < rest.len())
    }
}

#[cold]
#[inline(never)]
fn sweep<I: PriceIndex>(list: &mut Vec<Named>, book: &OrderBook<I>, account: AccountId) {
    list.retain(|named| named.find(book, account).is_some());
    list.reserve(list.len().max(SWEEP_FROM));
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
        assert!(names.lists[3].len() <= 2 * 700, "{}", names.lists[3].len());
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
