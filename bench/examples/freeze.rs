//! How long an engine stands still so that its state can be kept, against encoding it at once: `freeze ORDERS`, so many open in one book.

use std::time::Instant;

use anyhow::Context;
use walras_bench::venue;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, Side, SizeLots};
use walras_wire::{CancelOrder, Command, Event, NewOrder, OrderCommand};

const ACCOUNTS: u32 = 48;
const INSTRUMENT: InstrumentId = InstrumentId(0);
const MIDDLE: i64 = 30_711;
/// Prices of one side.
const PRICES: u64 = 4_000;
const TIMES: usize = 11;

fn order(id: u64, random: u64) -> Command {
    let away = 1 + (random % PRICES) as i64;
    let (side, price) = if random >> 40 & 1 == 0 { (Side::Buy, MIDDLE - away) } else { (Side::Sell, MIDDLE + away) };
    let terms = OrderTerms::limit(side, PriceTicks::saturating(price), SizeLots::new(1 + random % 9));
    let account = AccountId((id % u64::from(ACCOUNTS)) as u32);
    Command::Order(OrderCommand::New(NewOrder { account, instrument: INSTRUMENT, client_order_id: ClientOrderId(id), terms }))
}

fn main() -> anyhow::Result<()> {
    let orders: u64 = std::env::args().nth(1).context("say how many ORDERS are open")?.parse().context("ORDERS is a number")?;
    let mut engine = venue::open(ACCOUNTS);
    let (mut state, mut events) = (88_172_645_463_325_252_u64, Vec::new());
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut apply = |command: &Command| {
        events.clear();
        engine.apply(engine.last_applied().next(), venue::STREAM_TIME, command, &mut events);
        anyhow::ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{command:?}: {events:?}");
        anyhow::Ok(())
    };
    let mut open: Vec<u64> = (0..orders).collect();
    for id in 0..orders {
        apply(&order(id, random()))?;
    }
    // Orders come and go until they lie anywhere in memory.
    for id in orders..3 * orders {
        let gone = (random() % orders) as usize;
        let client_order_id = ClientOrderId(open[gone]);
        let account = AccountId((open[gone] % u64::from(ACCOUNTS)) as u32);
        apply(&Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument: INSTRUMENT, client_order_id })))?;
        open[gone] = id;
        apply(&order(id, random()))?;
    }
    let (mut kept, mut encoded) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let begun = Instant::now();
        let frozen = engine.freeze();
        kept.push(begun.elapsed());
        let (mut then, mut now) = (Vec::new(), Vec::new());
        frozen.snapshot(&mut then);
        let begun = Instant::now();
        engine.state_bytes(&mut now);
        encoded.push(begun.elapsed());
        anyhow::ensure!(then.starts_with(&now), "what was kept is another state");
    }
    kept.sort_unstable();
    encoded.sort_unstable();
    println!("{orders} open orders: kept in {:?}, encoded in {:?} (medians of {TIMES})", kept[TIMES / 2], encoded[TIMES / 2]);
    Ok(())
}
