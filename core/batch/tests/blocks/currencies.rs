//! Markets of a few currencies, and of stocks that trade with these only.

use std::fmt::Write as _;

use walras_batch::light::{LightBlock, LightError};
use walras_batch::{Batch, BatchSettings, BlockHeader, Cleared, DropReason, Intake, ProposedClearing, RestoreError, SettingsError};
use walras_clearing::{AssetIndex, OfferKey, Pair};
use walras_types::{AccountId, AssetId, BatchOperation, BatchTransaction, CreateOffer, CreatePool, PoolRule, TransactionSeq};

use crate::light::{Served, header_text, hex, offer_text, standing};
use crate::light_parts::{or_absent, trade_text};
use crate::world::{Draw, MARKET, World, amount, price, proposed};

/// The market's assets: the first two are its currencies.
const ASSETS: [u32; 5] = [1, 2, 0, 3, 4];
const CURRENCIES: u16 = 2;

fn world() -> World {
    let mut world = World::new(18, 300);
    let assets = ASSETS.map(AssetId).to_vec();
    let settings = BatchSettings { assets, currencies: Some(CURRENCIES), ..world.batch.settings().clone() };
    world.batch = Batch::new(settings).unwrap();
    world
}

fn is_currency(asset: AssetId) -> bool {
    ASSETS[..usize::from(CURRENCIES)].contains(&asset.0)
}

/// Four offers of each account, some of a stock for a stock.
fn offers(world: &World, draw: &mut Draw) -> Vec<BatchTransaction> {
    let mut sent = Vec::new();
    for account in (0..18).map(AccountId) {
        for at in 1..=4 {
            let sell = draw.below(5) as u32;
            let buy = (sell + 1 + draw.below(4) as u32) % 5;
            let (sell, buy, units) = (AssetId(sell), AssetId(buy), amount(1 + draw.below(50)));
            let offer = CreateOffer { market: MARKET, sell, buy, amount: units, limit: price(80 + draw.below(40), 100) };
            let sequence = TransactionSeq(world.accounts.last(account).0 + at);
            sent.push(BatchTransaction::new(account, sequence, BatchOperation::CreateOffer(offer)));
        }
    }
    sent
}

#[test]
fn an_offer_or_a_pool_of_two_stocks_is_dropped_alone() {
    let draw = &mut Draw(1);
    let mut world = world();
    let mut sent = offers(&world, draw);
    let is_of_stocks = |sent: &BatchTransaction| match sent.operation {
        BatchOperation::CreateOffer(offer) => !is_currency(offer.sell) && !is_currency(offer.buy),
        BatchOperation::CreatePool(pool) => pool.assets.iter().all(|asset| !is_currency(*asset)),
        _ => false,
    };
    for (place, assets) in [(0, [3, 4]), (1, [3, 2])] {
        let account = AccountId(place);
        assets.iter().for_each(|asset| world.ledger.deposit(account, AssetId(*asset), amount(5_000)).unwrap());
        let amounts = [amount(1_000); 2];
        let (assets, rule) = (assets.map(AssetId), PoolRule::ConstantProduct);
        let pool = BatchOperation::CreatePool(CreatePool { market: MARKET, assets, rule, fee_ppm: 0, amounts });
        sent.push(BatchTransaction::new(account, TransactionSeq(9), pool));
    }
    let expected: Vec<(u32, DropReason)> =
        (0..).zip(&sent).filter(|(_, sent)| is_of_stocks(sent)).map(|(place, _)| (place, DropReason::NoSuchPair)).collect();
    assert!(expected.len() > 10 && expected.len() < sent.len() - 10, "some of each: {}", expected.len());
    let closed = world.close(&sent, Intake::Filter, 2);
    assert_eq!(closed.dropped, expected);
    assert_eq!(world.batch.pools().len(), 1);
    world.check();
    let block = proposed(&world, draw);
    let cleared = world.clear(&block, 2).unwrap();
    assert!(!cleared.traded.is_empty());
    world.check();
    assert_eq!(world.restored().bytes(), world.bytes());
}

#[test]
fn rules_say_how_many_assets_are_currencies() {
    let settings = |count: u32, currencies| BatchSettings {
        assets: (0..count).map(AssetId).collect(),
        currencies,
        ..world().batch.settings().clone()
    };
    let hash = |count, currencies| settings(count, currencies).hash();
    assert_eq!(hash(5, None), hash(5, Some(5)));
    assert!(hash(5, None) != hash(5, Some(4)) && hash(5, Some(3)) != hash(5, Some(4)));
    assert_eq!(Batch::new(settings(5, Some(5))).unwrap().settings().currencies, None);
    let made = |count, currencies| Batch::new(settings(count, currencies)).map(|batch| batch.pairs().count());
    assert_eq!(made(256, None), Ok(65_280));
    assert_eq!(made(1_010, Some(10)), Ok(20_090));
    assert_eq!(made(4_096, Some(7)), Ok(57_288));
    for (count, currencies) in [(257, None), (4_096, Some(8)), (5, Some(0)), (5, Some(6))] {
        assert_eq!(made(count, currencies), Err(SettingsError::Pairs), "{count} {currencies:?}");
    }
    assert_eq!(made(4_097, Some(1)), Err(SettingsError::AssetCount(4_097)));
}

#[test]
fn a_snapshot_with_an_offer_of_two_stocks_is_refused() {
    let mut world = World::new(3, 300);
    // The market's second asset for its third.
    let offer = CreateOffer { market: MARKET, sell: AssetId(2), buy: AssetId(0), amount: amount(9), limit: price(1, 1) };
    let offer = BatchTransaction::new(AccountId(2), TransactionSeq(1), BatchOperation::CreateOffer(offer));
    let [_, _, empty] = world.bytes();
    world.close(&[offer], Intake::Filter, 1);
    world.clear(&ProposedClearing::of_nothing(world.batch.market()), 1).unwrap();
    let [_, _, stands] = world.bytes();
    // The count of currencies is behind that of assets.
    let with = |bytes: &[u8], currencies: u8| {
        let mut bytes = bytes.to_vec();
        assert_eq!(bytes[13..17], [3, 0, 0, 0]);
        bytes[15] = currencies;
        Batch::restore(&bytes).map(|batch| batch.settings().currencies)
    };
    assert_eq!(with(&empty, 1), Ok(Some(1)));
    assert_eq!((with(&stands, 0), with(&stands, 2)), (Ok(None), Ok(Some(2))));
    assert_eq!(with(&stands, 1), Err(RestoreError::OutOfRange));
    assert_eq!(with(&empty, 3), Err(RestoreError::OutOfRange), "all are, and that has another form");
}

fn all_pairs() -> impl Iterator<Item = Pair> {
    let pair = |sell, buy| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    (0..5).flat_map(move |sell| (0..5).map(move |buy| pair(sell, buy)))
}

fn fourth_block() -> (World, Cleared) {
    let draw = &mut Draw(4);
    let mut world = world();
    let mut last = None;
    for number in 1..=4 {
        let sent = if number < 3 { Vec::new() } else { offers(&world, draw) };
        world.close(&sent, Intake::Reserve, 1);
        let block = proposed(&world, draw);
        last = Some(world.clear(&block, 1).unwrap());
    }
    (world, last.unwrap())
}

/// The vectors of a market of two currencies and three stocks, see `light.rs`: the block is one of another chain, its number is 4.
pub(crate) fn vectors() -> String {
    let (world, cleared) = fourth_block();
    let served = Served::of(&cleared);
    let mut text = String::new();
    let header = header_text(&BlockHeader::decode(&served.header).unwrap());
    writeln!(text, "block 4 {} {} {} {header}", hex(&served.hash), hex(&served.header), hex(&served.roots)).unwrap();
    writeln!(text, "light 4 {} ok", hex(&served.light)).unwrap();
    let light = LightBlock::open(&served.hash, &served.light, &served.roots).unwrap();
    let header = &cleared.header;
    let some = header.trade_statement(header.trades[0].0.pair).unwrap();
    let stands = standing(&world);
    let (pair, offer) = stands.last().unwrap();
    let (of_last, OfferKey { limit, tie, id }) = (world.batch.offer_statement(*pair, &offer.key()).unwrap(), offer.key());
    for pair in all_pairs() {
        let Pair { sell, buy } = pair;
        let Some(statement) = header.trade_statement(pair) else {
            assert_eq!(light.trade(pair, &some), Err(LightError::UnknownPair(pair)));
            writeln!(text, "trade 4 {sell} {buy} {} error 6", hex(&some)).unwrap();
            writeln!(text, "offer 4 {sell} {buy} {} {tie} {} {} error 6", limit.bits(), id.0, hex(&of_last)).unwrap();
            continue;
        };
        let traded = header.trades.iter().find(|(trade, _)| trade.pair == pair);
        writeln!(text, "trade 4 {sell} {buy} {} {}", hex(&statement), or_absent(traded, trade_text)).unwrap();
        for offer in stands.iter().filter(|(of, _)| *of == pair).map(|(_, offer)| offer).take(1) {
            let OfferKey { limit, tie, id } = offer.key();
            let statement = hex(&world.batch.offer_statement(pair, &offer.key()).unwrap());
            let says = offer_text(Some(offer));
            writeln!(text, "offer 4 {sell} {buy} {} {tie} {} {statement} {says}", limit.bits(), id.0).unwrap();
        }
    }
    text
}
