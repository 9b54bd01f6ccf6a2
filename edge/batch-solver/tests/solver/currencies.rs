//! A market of ten currencies and a thousand stocks, from transactions to a block that the core accepts.

use std::num::NonZero;

use walras_batch::light::{LightBlock, LightError};
use walras_batch::{Accounts, Batch, BatchSettings, DropReason, Intake, ProposedClearing};
use walras_batch_solver::ClosedBatch;
use walras_clearing::{AssetIndex, Edition, LowerBounds, Pair, Rules};
use walras_ledger::Ledger;
use walras_price_solver::solve::Budget;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, Commission, CreateOffer, Mu,
    QualityMax, Rounding, TransactionSeq,
};
use walras_wire::batch::{VENUE_BLOCK_PROPOSAL_BYTES_MAX, decode_block_proposal, encode_block_proposal};

const MARKET: BatchMarketId = BatchMarketId(0);
const CURRENCIES: u64 = 10;
const ASSETS: u64 = 1_010;
const ACCOUNTS: u32 = 320;
const OFFERS_EACH: u64 = 64;

/// A multiplicative generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a unit of an asset is worth: from 1 to 1,000, as prices of stocks are.
fn value(asset: u64) -> u64 {
    1 + asset * asset * 7 % 1_000
}

fn rules() -> Rules {
    Rules {
        edition: Edition::NEWEST,
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    }
}

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

/// Offers within two percent of fair: of a stock for a currency, a currency for a stock, sometimes of two currencies.
fn offers(draw: &mut Draw) -> Vec<BatchTransaction> {
    let mut sent = Vec::new();
    for account in (0..ACCOUNTS).map(AccountId) {
        for sequence in (1..=OFFERS_EACH).map(TransactionSeq) {
            let currency = draw.below(CURRENCIES);
            let other = loop {
                let other = if draw.below(20) == 0 { draw.below(CURRENCIES) } else { CURRENCIES + draw.below(ASSETS - CURRENCIES) };
                if other != currency {
                    break other;
                }
            };
            let (sell, buy) = if draw.below(2) == 0 { (currency, other) } else { (other, currency) };
            let percent = u128::from(98 + draw.below(5));
            let (worth, cost) = (u128::from(value(sell)) * percent, u128::from(value(buy)) * 100);
            let limit = BatchPrice::from_ratio(worth, cost, Rounding::Down).unwrap();
            let units = amount((1_000_000 + draw.below(1_000_000_000)) / value(sell));
            let [sell, buy] = [sell, buy].map(|asset| AssetId(asset as u32));
            let offer = CreateOffer { market: MARKET, sell, buy, amount: units, limit };
            sent.push(BatchTransaction::new(account, sequence, BatchOperation::CreateOffer(offer)));
        }
    }
    sent
}

#[test]
fn ten_currencies_and_a_thousand_stocks_clear() {
    let one = NonZero::<usize>::MIN;
    let mut ledger = Ledger::new();
    (0..ACCOUNTS).for_each(|_| _ = ledger.create_account().unwrap());
    for asset in (0..ASSETS as u32).map(AssetId) {
        ledger.create_asset().unwrap();
        (0..ACCOUNTS).for_each(|account| ledger.deposit(AccountId(account), asset, amount(1 << 40)).unwrap());
    }
    let mut accounts = Accounts::new();
    let (rules, quality) = (rules(), QualityMax::USUAL);
    let assets = (0..ASSETS as u32).map(AssetId).collect();
    let settings = BatchSettings { market: MARKET, assets, currencies: Some(10), rules, quality, account_fee: None };
    let mut batch = Batch::new(settings).unwrap();
    let mut sent = offers(&mut Draw(5));
    // Two stocks are no pair.
    let BatchOperation::CreateOffer(first) = sent[0].operation else { unreachable!("all are offers") };
    sent[0].operation = BatchOperation::CreateOffer(CreateOffer { sell: AssetId(900), buy: AssetId(901), ..first });
    let closed = batch.close(&mut ledger, &mut accounts, &sent, Intake::Filter, one).unwrap();
    assert_eq!(closed.dropped, [(0, DropReason::NoSuchPair)]);
    assert!(batch.market().books().len() > 10_000, "{} pairs have offers", batch.market().books().len());

    let (place, offers) = (batch.place_to_clear().unwrap(), batch.shared_market());
    let to_clear = ClosedBatch { market: MARKET, place, offers: &offers, rules, quality };
    let block = to_clear.propose(None, Budget::queries(10_000)).unwrap();
    assert_eq!(to_clear.set_aside(&block), 0);
    assert!(block.trades.len() > 1_000, "{} pairs trade", block.trades.len());
    let mut bytes = Vec::new();
    encode_block_proposal(&block, &mut bytes).unwrap();
    assert!(bytes.len() < VENUE_BLOCK_PROPOSAL_BYTES_MAX, "{} bytes", bytes.len());
    assert_eq!(decode_block_proposal(&bytes), Ok(block.clone()));

    let cleared = batch.clear(&mut ledger, &mut accounts, &ProposedClearing::from(&block), one).unwrap();
    ledger.check_invariants();
    batch.check_invariants(&ledger);
    let header = &cleared.header;
    let light = LightBlock::open(&cleared.roots.state, &header.light().bytes(), &cleared.light_roots()).unwrap();
    for (trade, key) in header.trades.iter().step_by(97) {
        let statement = header.trade_statement(trade.pair).unwrap();
        assert_eq!(light.trade(trade.pair, &statement).unwrap().map(|(trade, key)| (trade.sold, key)), Some((trade.sold, *key)));
    }
    for book in batch.market().books().iter().step_by(101) {
        let offer = &book.sells().as_slice()[0];
        let statement = batch.offer_statement(book.pair(), &offer.key()).unwrap();
        assert_eq!(light.offer(book.pair(), &offer.key(), &statement), Ok(Some(*offer)));
    }
    let stocks = Pair { sell: AssetIndex(900), buy: AssetIndex(901) };
    assert_eq!((header.trade_statement(stocks), light.trade(stocks, &[])), (None, Err(LightError::UnknownPair(stocks))));
}
