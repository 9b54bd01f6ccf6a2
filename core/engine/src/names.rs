//! The names of each account's open orders, so that finding some or all of them does not mean walking the whole book.
//!
//! A list holds exactly the open orders, by ascending id, in pieces of at most [`PIECE_MAX`]. Orders are added as they enter, hence at
//! the end, and taken out when they leave. So a list can be searched for an id and read on from there, and each of its entries is an
//! open order: what reading some of them costs follows from the state alone, and is the same on every replica.

use walras_order_book::{OpenOrder, OrderBook, OwnerId, PriceIndex};
use walras_types::{AccountId, ClientOrderId, OrderId};

/// The most names in a piece: what taking one out moves at most.
const PIECE_MAX: usize = 256;

/// Neighbouring pieces that have no more together become one.
const JOINED_MAX: usize = PIECE_MAX / 2;

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    order_id: OrderId,
    name: ClientOrderId,
}

/// By account, its open orders by id.
#[derive(Debug, Default)]
pub(crate) struct Names {
    lists: Vec<List>,
}

/// Those of one account.
#[derive(Debug, Default)]
struct List {
    /// The latest.
    tail: Vec<Named>,
    /// Those before, none of them empty.
    pieces: Vec<Vec<Named>>,
}

impl Names {
    /// Notes that an account has an order of that name open. Its id is above those noted before.
    #[inline]
    pub(crate) fn add(&mut self, account: AccountId, order_id: OrderId, name: ClientOrderId) {
        let index = account.0 as usize;
        if index >= self.lists.len() {
            self.grow(index + 1);
        }
        let list = &mut self.lists[index];
        if list.tail.len() == list.tail.capacity() {
            list.make_room();
        }
        debug_assert!(list.tail.last().is_none_or(|last| last.order_id < order_id), "orders are noted as they enter");
        list.tail.push(Named { order_id, name });
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        self.lists.resize_with(len, List::default);
    }

    /// Takes out an order that is open no more. One that was never noted, because nothing of it came to rest, is in no list.
    #[inline]
    pub(crate) fn remove(&mut self, account: AccountId, order_id: OrderId) {
        let Some(list) = self.lists.get_mut(account.0 as usize) else { return };
        match list.tail.last() {
            Some(last) if last.order_id < order_id => {}
            Some(last) if last.order_id == order_id => drop(list.tail.pop()),
            Some(_) if list.tail[0].order_id <= order_id => take_out(&mut list.tail, order_id),
            Some(_) | None if list.pieces.is_empty() => {}
            Some(_) | None => list.remove_older(order_id),
        }
    }

    /// An account's open orders above `after`, by id: their ids and names. Costs O(those that are read).
    pub(crate) fn after(&self, account: AccountId, after: OrderId) -> impl Iterator<Item = (OrderId, ClientOrderId)> {
        let list = self.lists.get(account.0 as usize).into_iter();
        list.flat_map(move |list| {
            let first = list.pieces.partition_point(|piece| piece.last().is_none_or(|last| last.order_id <= after));
            list.pieces[first..].iter().chain([&list.tail])
        })
        .flat_map(move |piece| &piece[piece.partition_point(|named| named.order_id <= after)..])
        .map(|named| (named.order_id, named.name))
    }

    /// An account's open orders above `after`, by id. Looks at `looks` at most, and at one at least, and takes off how many that were. The
    /// id of the last one, if there are more.
    pub(crate) fn open_orders<I: PriceIndex>(
        &self,
        book: &OrderBook<I>,
        account: AccountId,
        after: OrderId,
        looks: &mut usize,
        mut found: impl FnMut(&OpenOrder),
    ) -> Option<OrderId> {
        let mut last = after;
        let mut left = (*looks).max(1);
        for (order_id, name) in self.after(account, after) {
            if left == 0 {
                return Some(last);
            }
            left -= 1;
            *looks = looks.saturating_sub(1);
            last = order_id;
            let handle = book.find(OwnerId(account.0), name).expect("an account's list has its open orders");
            found(&book.view(handle));
        }
        None
    }

    /// By account, the ids of its open orders.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (AccountId, OrderId)> {
        (0..).map(AccountId).zip(&self.lists).flat_map(|(account, list)| {
            list.pieces.iter().chain([&list.tail]).flatten().map(move |named| (account, named.order_id))
        })
    }
}

/// Takes an order out of a piece, if it is there.
#[inline]
fn take_out(piece: &mut Vec<Named>, order_id: OrderId) {
    if let Ok(at) = piece.binary_search_by_key(&order_id, |named| named.order_id) {
        piece.remove(at);
    }
}

impl List {
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let len = self.tail.len();
        if len < PIECE_MAX {
            let room = (2 * len).clamp(4, PIECE_MAX);
            self.tail.reserve_exact(room - len);
        } else {
            let next = Vec::with_capacity(PIECE_MAX);
            self.pieces.push(std::mem::replace(&mut self.tail, next));
        }
    }

    /// Takes out an order of an older piece, and joins pieces that became small.
    #[cold]
    #[inline(never)]
    fn remove_older(&mut self, order_id: OrderId) {
        let at = self.pieces.partition_point(|piece| piece.last().is_none_or(|last| last.order_id < order_id));
        let Some(piece) = self.pieces.get_mut(at) else { return };
        take_out(piece, order_id);
        let len = piece.len();
        let joins = |other: Option<&Vec<Named>>| other.is_some_and(|other| other.len() + len <= JOINED_MAX);
        if len == 0 {
            self.pieces.remove(at);
        } else if at > 0 && joins(self.pieces.get(at - 1)) {
            let piece = self.pieces.remove(at);
            self.pieces[at - 1].extend(piece);
        } else if joins(self.pieces.get(at + 1)) {
            let next = self.pieces.remove(at + 1);
            self.pieces[at].extend(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const ACCOUNT: AccountId = AccountId(3);

    fn check(names: &Names, model: &BTreeMap<OrderId, ClientOrderId>) {
        let all: Vec<_> = model.iter().map(|(id, name)| (*id, *name)).collect();
        assert_eq!(names.after(ACCOUNT, OrderId(0)).collect::<Vec<_>>(), all);
        let list = &names.lists[ACCOUNT.0 as usize];
        assert!(list.pieces.iter().all(|piece| (1..=PIECE_MAX).contains(&piece.len())) && list.tail.len() <= PIECE_MAX);
        let are_joined = list.pieces.windows(2).all(|pair| pair[0].len() + pair[1].len() > JOINED_MAX);
        assert!(are_joined, "small pieces stay apart: {:?}", list.pieces.iter().map(Vec::len).collect::<Vec<_>>());
    }

    /// Orders enter at the end and leave anywhere: what is left is what was not taken out, in order, and small pieces are joined.
    #[test]
    fn a_list_is_what_is_open() {
        let (mut names, mut model) = (Names::default(), BTreeMap::new());
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        // It grows, stays, shrinks, and grows again.
        for (leave_percent, rounds) in [(20, 8_000), (50, 8_000), (80, 7_000), (30, 4_000), (100, 6_000)] {
            for _ in 0..rounds {
                let next = OrderId(names.after(ACCOUNT, OrderId(0)).last().map_or(1, |(id, _)| id.0 + 1 + draw(3)));
                if draw(100) < leave_percent {
                    let from = OrderId(draw(next.0 + 1));
                    let Some((&order_id, _)) = model.range(from..).next().or_else(|| model.iter().next()) else { continue };
                    model.remove(&order_id);
                    names.remove(ACCOUNT, order_id);
                } else {
                    let name = ClientOrderId(draw(1 << 40));
                    names.add(ACCOUNT, next, name);
                    model.insert(next, name);
                }
                // What is in no list, or of an account without one, changes nothing.
                names.remove(ACCOUNT, OrderId(next.0 + 5));
                names.remove(AccountId(9), next);
            }
            check(&names, &model);
        }
        assert!(model.is_empty());
        for after in [0, 1, 300] {
            assert_eq!(names.after(ACCOUNT, OrderId(after)).next(), None);
        }
    }

    #[test]
    fn a_list_is_read_on_from_any_id() {
        let mut names = Names::default();
        (1..=2_000).for_each(|id| names.add(ACCOUNT, OrderId(2 * id), ClientOrderId(id)));
        for after in [0, 1, 2, 511, 512, 513, 3_999, 4_000] {
            let first = names.after(ACCOUNT, OrderId(after)).next();
            let expected = (after / 2 < 2_000).then_some((OrderId(after / 2 * 2 + 2), ClientOrderId(after / 2 + 1)));
            assert_eq!(first, expected, "after {after}");
        }
    }
}
