//! The dissertation's book of two priority queues as a second oracle of Walras's: it knows limit orders and price-time priority alone,
//! and keeps them in quite another way than the vector of `core/order-book/tests/naive`, which knows everything else too.

use walras_experiments_raft_2021::baseline::Baseline;
use walras_experiments_raft_2021::books::{Book, LimitOrder, Trade};
use walras_experiments_raft_2021::draw::Draw;
use walras_order_book::{Art, Ladder, OrderBook};
use walras_types::Side;

const ORDERS: u64 = 5_000;

/// Random limit orders, one after the other; after each the trades of both books are the same, and every so often all that stands.
fn agree<B: Book>(experiment: u64, seed: u64, prices: (u64, u64), sizes: (u64, u64)) -> u64 {
    let mut draw = Draw::new(seed, experiment, 0);
    let (mut heap, mut book) = (Baseline::with_room(0), B::with_room(0));
    let (mut expected, mut found) = (Vec::<Trade>::new(), Vec::<Trade>::new());
    let mut trades = 0;
    for id in 1..=ORDERS {
        let side = if draw.between(0, 1) == 0 { Side::Buy } else { Side::Sell };
        let order: LimitOrder = draw.order(id, side, prices, sizes);
        expected.clear();
        found.clear();
        heap.submit(&order, &mut expected);
        book.submit(&order, &mut found);
        assert_eq!(found, expected, "order {id} of seed {seed}: the book (left) and the heaps (right)");
        trades += expected.len() as u64;
        if id.is_multiple_of(97) || id == ORDERS {
            assert_eq!(book.listing(), Baseline::listing(&heap), "after order {id} of seed {seed}");
        }
    }
    trades
}

fn agree_everywhere<B: Book>(experiment: u64) {
    for seed in 0..4 {
        // One price, a crowded band, a wide one; sizes that fill exactly, and sizes that leave rests.
        let narrow = agree::<B>(experiment, seed, (100, 100), (1, 3));
        let crowded = agree::<B>(experiment, seed, (95, 105), (1, 1));
        let wide = agree::<B>(experiment, seed, (1, 1 << 39), (1, 1_000_000));
        assert!(
            [narrow, crowded, wide].iter().all(|trades| *trades > ORDERS / 8),
            "{narrow}, {crowded}, {wide}: too few trades to tell"
        );
    }
}

#[test]
fn the_ladder_trades_as_the_heaps_do() {
    agree_everywhere::<OrderBook<Ladder>>(1);
}

#[test]
fn the_radix_tree_trades_as_the_heaps_do() {
    agree_everywhere::<OrderBook<Art>>(2);
}
