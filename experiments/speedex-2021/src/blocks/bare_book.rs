//! A bare order book of two assets, serial, among few accounts and among millions (SPEEDEX 2023, section 7.1), compared with the
//! same offers in blocks.
//!
//! Only the continuous market's book and the ledger: an order's funds are reserved, it is matched, and its trades are settled. No
//! hashes, no fees, no log. Offers come from the papers' model. The owners are drawn separately, so the same trades happen for any
//! number of accounts; otherwise the run fails.

use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use serde_json::json;
use walras_batch_workload::Model;
use walras_ledger::{Ledger, Settlement};
use walras_order_book::{Band, BookEvents, Entry, Fill, OpenOrder, OrderBook, OwnerId, Party, RemovalCause};
use walras_price_solver::random::Random;
use walras_price_solver::synthetic::{MadeBatch, Model as OfferModel, Offer, Shape, Variant};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{AccountId, Allocation, Amount, AssetId, ClientOrderId, OrderId, PriceTicks, SelfTrade, Side, SizeLots};

use crate::blocks::payments::{Many, ManySetup, many_parts, rates_of};
use crate::blocks::published::BARE_BOOK;
use crate::blocks::{Summary, per_second, thousands, threads_named};
use crate::plot::{self, Axis, Series, Stroke};
use crate::record::{Record, markdown};
use crate::ruler::grouped;

/// What a lot is worth, in ticks, about: a tick is a hundred-thousandth of the price.
const TICKS_OF_PRICE: f64 = 1e5;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Numbers of accounts of the serial book.
    pub account_counts: Vec<u32>,
    /// Orders that each of them meets.
    pub order_count: usize,
    /// Orders between two moves of the valuations.
    pub set_len: usize,
    /// How often, on a new book each time.
    pub rounds: usize,
    /// Numbers of accounts in blocks.
    pub block_account_counts: Vec<u32>,
    /// Offers of a block.
    pub block_len: usize,
    /// Numbers of threads that blocks are applied by.
    pub threads: Vec<usize>,
}

impl Setup {
    /// From the paper's 100 accounts to its ten million.
    #[must_use]
    pub fn full(threads: Vec<usize>) -> Self {
        Self {
            account_counts: vec![100, 10_000, 1_000_000, 10_000_000],
            order_count: 1_000_000,
            set_len: 100_000,
            rounds: 5,
            block_account_counts: vec![100_000, 1_000_000, 10_000_000],
            block_len: 500_000,
            threads,
        }
    }

    /// Some seconds in a debug build.
    #[must_use]
    pub fn small() -> Self {
        Self {
            account_counts: vec![10, 1_000],
            order_count: 3_000,
            set_len: 500,
            rounds: 2,
            block_account_counts: vec![500],
            block_len: 1_000,
            threads: vec![1, 2],
        }
    }
}

/// An order before it is somebody's.
#[derive(Clone, Copy, Debug)]
struct Order {
    side: Side,
    price: PriceTicks,
    size: SizeLots,
}

/// Orders, and how many units of base a lot has.
struct Orders {
    orders: Vec<Order>,
    lot_units: u64,
}

impl Orders {
    /// Offers of the first asset become sells, those of the second buys, at the nearest prices within their limits.
    fn made(setup: &Setup) -> anyhow::Result<Self> {
        let model = OfferModel { asset_count: 2, offer_count: setup.set_len, variant: Variant::Default, shape: Shape::Cycles };
        let mut made = MadeBatch::new(model, 1);
        let mut random = Random::new(1);
        let lot_units = (TICKS_OF_PRICE * made.valuations[1] / made.valuations[0]).ceil().max(1.0);
        let mut orders: Vec<Order> = Vec::with_capacity(setup.order_count + setup.set_len);
        while orders.len() < setup.order_count {
            let mut set: Vec<Order> = made
                .offers
                .iter()
                .map(|offer| order_of(offer, lot_units))
                .collect::<Option<_>>()
                .context("a price out of range")?;
            for end in (1..set.len()).rev() {
                set.swap(end, random.below(end + 1));
            }
            orders.extend(set);
            made.next();
        }
        orders.truncate(setup.order_count);
        Ok(Self { orders, lot_units: lot_units as u64 })
    }
}

/// A tick is a unit of quote for a lot.
fn order_of(offer: &Offer, lot_units: f64) -> Option<Order> {
    let (side, ticks, lots) = if offer.sell == 0 {
        (Side::Sell, (offer.limit * lot_units).ceil(), offer.amount / lot_units)
    } else {
        let ticks = (lot_units / offer.limit).floor();
        (Side::Buy, ticks, offer.amount / ticks)
    };
    Some(Order { side, price: PriceTicks::new(ticks as i64)?, size: SizeLots::order_size((lots as u64).max(1))? })
}

/// What came of all orders: the same for any number of accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    trades: u64,
    lots: u64,
    open_orders: usize,
}

/// Settles what trades.
struct Settler<'l> {
    ledger: &'l mut Ledger,
    lot_units: u64,
    trades: u64,
    lots: u64,
    failed: bool,
}

const BASE: AssetId = AssetId(0);
const QUOTE: AssetId = AssetId(1);

fn amount(per_lot: u64, lots: u64) -> Option<Amount> {
    per_lot.checked_mul(lots).and_then(Amount::new)
}

impl Settler<'_> {
    fn settle(&mut self, fill: &Fill) -> Option<()> {
        let (buy, sell) = match fill.taker_side {
            Side::Buy => (&fill.taker, &fill.maker),
            Side::Sell => (&fill.maker, &fill.taker),
        };
        let lots = fill.size.get();
        let trade = Settlement {
            base: BASE,
            quote: QUOTE,
            buyer: AccountId(buy.owner.0),
            seller: AccountId(sell.owner.0),
            base_amount: amount(self.lot_units, lots)?,
            value: amount(fill.price.get() as u64, lots)?,
            buyer_reserved: amount(buy.limit.get() as u64, lots)?,
            buyer_fee: 0,
            seller_fee: 0,
        };
        self.trades += 1;
        self.lots += lots;
        self.ledger.settle(&trade).ok()
    }
}

impl BookEvents for Settler<'_> {
    fn traded(&mut self, fill: &Fill) {
        self.failed |= self.settle(fill).is_none();
    }

    fn uncrossed(&mut self, _: PriceTicks, _: SizeLots, _: &Party, _: &Party) {}

    fn removed(&mut self, _: &OpenOrder, _: RemovalCause) {}

    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}

    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}

    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

/// All orders through a new book on a ledger; in how many milliseconds.
fn trade_all(orders: &Orders, owners: &[u32], ledger: &mut Ledger) -> anyhow::Result<(f64, Outcome)> {
    let mut book = OrderBook::<walras_order_book::Ladder>::new(Allocation::PriceTime);
    book.reserve(orders.orders.len());
    let mut settler = Settler { ledger, lot_units: orders.lot_units, trades: 0, lots: 0, failed: false };
    let begun = Instant::now();
    for ((order, owner), number) in orders.orders.iter().zip(owners).zip(1_u64..) {
        let (asset, per_lot) = match order.side {
            Side::Sell => (BASE, orders.lot_units),
            Side::Buy => (QUOTE, order.price.get() as u64),
        };
        let reserved = amount(per_lot, order.size.get()).context("an order of more than an amount")?;
        settler.ledger.reserve(AccountId(*owner), asset, reserved)?;
        let name = (OwnerId(*owner), ClientOrderId(number));
        let entry = Entry::limit(OrderId(number), name, order.side, order.price, order.size);
        let entry = Entry { self_trade: SelfTrade::Allow, ..entry };
        book.submit(&entry, Band::OPEN, &mut settler).map_err(|refusal| anyhow!("the book refuses an order: {refusal:?}"))?;
    }
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(!settler.failed, "a trade did not settle: what was reserved and what traded disagree");
    Ok((ms, Outcome { trades: settler.trades, lots: settler.lots, open_orders: book.order_count() }))
}

fn ledger_of(account_count: u32) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new();
    for _ in 0..account_count {
        ledger.create_account()?;
    }
    let share = (AMOUNT_MAX / u64::from(account_count) / 2).min(1 << 55);
    let endowment = Amount::new(share).context("a part of the largest amount")?;
    for asset in [ledger.create_asset()?, ledger.create_asset()?] {
        for account in 0..account_count {
            ledger.deposit(AccountId(account), asset, endowment)?;
        }
    }
    Ok(ledger)
}

/// A serial book among so many accounts.
struct Serial {
    account_count: u32,
    rate: Summary,
    outcome: Outcome,
}

fn serial(setup: &Setup, orders: &Orders, account_count: u32) -> anyhow::Result<Serial> {
    let mut random = Random::new(u64::from(account_count));
    let owners: Vec<u32> = orders.orders.iter().map(|_| random.below(account_count as usize) as u32).collect();
    let fresh = ledger_of(account_count)?;
    let (mut rates, mut outcomes) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        let mut ledger = fresh.clone();
        let (ms, outcome) = trade_all(orders, &owners, &mut ledger)?;
        ledger.check_invariants();
        ensure!([BASE, QUOTE].iter().all(|&asset| ledger.supply(asset) == fresh.supply(asset)), "units came or went");
        rates.push(per_second(orders.orders.len(), ms));
        outcomes.push(outcome);
    }
    let outcome = *outcomes.first().context("nothing was measured: ask for at least one round")?;
    ensure!(outcomes.iter().all(|other| *other == outcome), "rounds came to different trades: {outcomes:?}");
    println!("sec-7.1: bare book, {} accounts done", grouped(account_count as usize));
    Ok(Serial { account_count, rate: Summary::of(&rates)?, outcome })
}

/// Runs section 7.1: the order books, then the payments that `many` measured.
pub fn run(setup: &Setup, payments: &ManySetup, many: &Many) -> anyhow::Result<Record> {
    let orders = Orders::made(setup)?;
    let books: Vec<Serial> = setup.account_counts.iter().map(|&count| serial(setup, &orders, count)).collect::<Result<_, _>>()?;
    let first = books.first().context("a number of accounts")?.outcome;
    ensure!(books.iter().all(|book| book.outcome == first), "the trades depend on the number of accounts");
    let bare = |accounts| Model { offers_per_valuation: Some(setup.set_len), ..Model::bare_book(accounts, setup.block_len) };
    let blocks = rates_of(&setup.block_account_counts, &setup.threads, setup.rounds, 2, &bare)?;
    record(setup, &books, &blocks, payments, many)
}

fn record(setup: &Setup, books: &[Serial], blocks: &Many, payments: &ManySetup, many: &Many) -> anyhow::Result<Record> {
    let (payments_table, payments_series, payments_value) = many_parts(payments, many);
    let points = |book: &Serial| (f64::from(book.account_count), book.rate.median);
    let mut series = vec![
        Series {
            name: "bare order book, serial".into(),
            points: books.iter().map(points).collect(),
            colour: 4,
            stroke: Stroke::Line,
        },
        Series {
            name: "bare order book, published".into(),
            points: BARE_BOOK.iter().map(|(accounts, rate)| (f64::from(*accounts), *rate)).collect(),
            colour: 4,
            stroke: Stroke::Dots,
        },
    ];
    for (colour, threads) in (2..).zip(&setup.threads) {
        let (name, points) = (format!("the same offers in blocks, {}", threads_named(*threads)), blocks.points(*threads));
        series.push(Series { name, points, colour, stroke: Stroke::Thin });
    }
    series.extend(payments_series);
    let title = "A bare order book, and payments, among few and many accounts";
    let plot_svg =
        plot::rates_logarithmic(title, "accounts (logarithmic)", Axis::Counts, "transactions / s (logarithmic)", &series)?;
    let published = |accounts: u32| BARE_BOOK.iter().find(|(of, _)| *of == accounts).map(|(_, rate)| *rate);
    let book_rows: Vec<Vec<String>> = books
        .iter()
        .map(|book| {
            vec![
                grouped(book.account_count as usize),
                thousands(book.rate.median),
                published(book.account_count).map_or("-".into(), thousands),
                grouped(book.outcome.trades as usize),
                grouped(book.outcome.open_orders),
            ]
        })
        .collect();
    let block_rows: Vec<Vec<String>> = blocks
        .rates
        .iter()
        .map(|rates| {
            vec![
                grouped(rates.account_count as usize),
                rates.threads.to_string(),
                thousands(rates.propose.median),
                rates.validate.map_or("no room for a second state".into(), |rate| thousands(rate.median)),
            ]
        })
        .collect();
    let table = format!(
        "## Bare order book, serial\n\n{}\n## The same offers in blocks of {}, every root computed\n\n{}\n## Payments alone, {} assets, blocks \
         of {}\n\n{payments_table}",
        markdown(&["accounts", "tx/s", "published", "trades", "open in the end"].map(String::from), &book_rows),
        grouped(setup.block_len),
        markdown(&["accounts", "threads", "proposed tx/s", "validated tx/s"].map(String::from), &block_rows),
        payments.asset_count,
        grouped(payments.block_len),
    );
    let value = |book: &Serial| {
        json!({
            "account_count": book.account_count,
            "tx_per_s": book.rate.to_json(),
            "trades": book.outcome.trades,
            "lots": book.outcome.lots,
            "open_orders": book.outcome.open_orders,
            "published_tx_per_s": published(book.account_count),
        })
    };
    let result = json!({
        "order_book": {
            "order_count": setup.order_count,
            "set_len": setup.set_len,
            "rounds": setup.rounds,
            "published": { "100 accounts": BARE_BOOK[0].1, "10 million accounts": BARE_BOOK[1].1 },
            "ours": books.iter().map(value).collect::<Vec<_>>(),
            "in_blocks": { "block_len": setup.block_len, "account_counts_left_out_for_memory": blocks.left_out, "ours": blocks.to_json() },
        },
        "payments": payments_value,
    });
    Ok(Record { folder: "speedex-2023/sec-7.1".into(), result, table, plot_svg: Some(plot_svg) })
}
