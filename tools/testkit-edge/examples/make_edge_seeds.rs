//! Writes the seeds that follow from others: snapshots of a node, of the parts that `make_seeds` of `walras-testkit` wrote. Run that first,
//! then `cargo run -p walras-testkit-edge --example make_edge_seeds`. The other seeds of the edge are texts and short messages, written by
//! hand.
#![allow(clippy::unwrap_used, reason = "a tool for developers: it stops where it can not write")]

use walras_market_data::{Fill, FillRole};
use walras_node::runtime::Fills;
use walras_testkit::smoke::seed_folder;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};

fn fill(number: u64, side: Side, role: FillRole) -> Fill {
    Fill {
        instrument: InstrumentId(0),
        trade_id: TradeId(number),
        order_id: OrderId(number + 7),
        client_order_id: ClientOrderId(3),
        time: TimeNs(number * 2),
        side,
        price: PriceTicks::saturating(30_000),
        size: SizeLots::new(5),
        fee: -4,
        open: SizeLots::ZERO,
        role,
    }
}

fn main() {
    let mut fills = Fills::default();
    fills.push(AccountId(0), fill(1, Side::Buy, FillRole::Maker));
    fills.push(AccountId(0), fill(2, Side::Sell, FillRole::Taker));
    fills.push(AccountId(4), fill(3, Side::Buy, FillRole::Auction));
    for (name, fills) in [("after-0", Fills::default()), ("after-40", fills.clone()), ("after-90", fills)] {
        let part = |target: &str| std::fs::read(seed_folder(target).join(name)).unwrap();
        let mut of_fills = Vec::new();
        fills.snapshot(&mut of_fills);
        let mut bytes = Vec::new();
        for part in [part("engine_restore"), part("market_data_restore"), of_fills] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        std::fs::write(seed_folder("node_snapshot").join(name), bytes).unwrap();
    }
}
