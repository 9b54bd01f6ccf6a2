//! Which names an account has given to its open orders, so that finding all of them does not mean walking the whole book.
//!
//! Only adding is noted: a name whose order is gone stays until its account's list is full, and is then swept out. So the path of an
//! order costs one append, and a list is at most twice as long as its account ever had orders open at once, or [`SWEEP_FROM`].

use walras_order_book::{OpenOrder, OrderBook, OwnerId, PriceIndex};
use walras_types::{AccountId, ClientOrderId};

/// A list shorter than this is not worth sweeping.
const SWEEP_FROM: usize = 32;

/// By account, the names of its open orders among others.
#[derive(Debug, Default)]
pub(crate) struct Names {
    lists: Vec<Vec<ClientOrderId>>,
}

impl Names {
    /// Notes that an account has an order of that name open in `book`.
    #[inline]
    pub(crate) fn add<I: PriceIndex>(&mut self, book: &OrderBook<I>, account: AccountId, name: ClientOrderId) {
        let index = account.0 as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, Vec::new);
        }
        let list = &mut self.lists[index];
        if list.len() == list.capacity() {
            sweep(list, book, account);
        }
        list.push(name);
    }

    /// An account's open orders, in the order in which they were entered.
    pub(crate) fn open_orders<I: PriceIndex>(&self, book: &OrderBook<I>, account: AccountId) -> Vec<OpenOrder> {
        let names = self.lists.get(account.0 as usize).map_or(&[][..], Vec::as_slice);
        let found = names.iter().filter_map(|&name| book.find(OwnerId(account.0), name));
        let mut orders: Vec<OpenOrder> = found.map(|handle| book.view(handle)).collect();
        orders.sort_unstable_by_key(|order| order.order_id);
        // A name that was used again is listed again.
        orders.dedup_by_key(|order| order.order_id);
        orders
    }
}

#[cold]
#[inline(never)]
fn sweep<I: PriceIndex>(list: &mut Vec<ClientOrderId>, book: &OrderBook<I>, account: AccountId) {
    list.retain(|&name| book.find(OwnerId(account.0), name).is_some());
    list.sort_unstable();
    list.dedup();
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
            names.add(&book, account, name);
            if round % 3 == 0 {
                book.cancel(book.find(OwnerId(3), name).unwrap());
            }
        }
        assert!(names.lists[3].len() <= 2 * 700, "{}", names.lists[3].len());
        let open = names.open_orders(&book, account);
        assert_eq!(open.len(), book.order_count());
        assert!(open.windows(2).all(|pair| pair[0].order_id < pair[1].order_id));
    }
}
