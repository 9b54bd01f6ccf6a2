//! Blocks that a validator accepts: whatever stands in a market, what is proposed is good enough by the market's rules, or sets parts aside.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use walras_batch::{Assessed, BlockPlace, Certificate, ProposedClearing, QualityMax, assess};
use walras_batch_solver::{Budget, ClosedBatch};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Offer, OfferId, Pair, Rules, verify};
use walras_price_solver::real_days::RealDays;
use walras_price_solver::synthetic::{MadeBatch, Model, Offer as Offered, Shape, Variant};
use walras_types::{Amount, BatchMarketId, BatchPrice, Commission, Mu};
use walras_wire::batch::BlockProposal;

const USUAL: QualityMax = QualityMax::USUAL;

#[path = "made/limits.rs"]
mod limits;
#[path = "made/market.rs"]
mod market;

use limits::{stated, units};
use market::market_of;

fn usual_rules() -> Rules {
    let (commission, mu) = (Commission::new(15).unwrap(), Mu::new(10).unwrap());
    Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort }
}

fn closed(offers: &BatchMarket, rules: Rules, quality: QualityMax) -> ClosedBatch<'_> {
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    ClosedBatch { market: BatchMarketId(0), place, offers, rules, quality }
}

/// What a validator checks of it, but for the hashes.
fn assert_acceptable(market: &BatchMarket, rules: &Rules, quality: &QualityMax, block: &BlockProposal) {
    let proposed = ProposedClearing::from(block);
    verify(market, &proposed.proposal, rules).unwrap();
    let certificate = Certificate::find(market, &proposed.proposal, rules);
    assert_eq!(proposed.certificate, certificate);
    assert_eq!(assess(market, &proposed.proposal, rules, quality), Assessed { certificate, beyond: Vec::new() });
}

fn markets() -> impl Strategy<Value = BatchMarket> {
    (2..=8_u16).prop_flat_map(|asset_count| {
        let assets = (0..asset_count, 1..asset_count);
        prop::collection::vec((assets, stated(), units()), 0..40).prop_map(move |sells| {
            let pair = |(sell, step): (u16, u16)| Pair { sell: AssetIndex(sell), buy: AssetIndex((sell + step) % asset_count) };
            let offer = |(id, (at, limit, units)): (u64, ((u16, u16), BatchPrice, u64))| {
                Some((pair(at), Offer::new(limit, 0, OfferId(id), Amount::new(units)?).ok()?))
            };
            let sells: Vec<_> = (0..).zip(sells).filter_map(offer).collect();
            BatchMarket::build(usize::from(asset_count), &sells, &[], Vec::new()).unwrap()
        })
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let commission = prop_oneof![2 => Just(Commission::new(15).unwrap()), 1 => Just(Commission::NONE), 1 => (1..=30_u8).prop_map(|k| Commission::new(k).unwrap())];
    let mu = prop_oneof![2 => Just(10_u8), 1 => 1..=30_u8];
    (commission, mu).prop_map(|(commission, mu)| Rules {
        edition: Edition::NEWEST,
        commission,
        mu: Mu::new(mu).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_stands_a_block_of_it_is_accepted(
        market in markets(),
        rules in rules(),
        percents in prop::sample::select(vec![(0, 0), (1, 1), (1, 1), (100, 0), (0, 100), (100, 100)]),
        queries in 0..400_u64,
    ) {
        let quality = QualityMax { gap_ppb: percents.0 * 10_000_000, unserved_ppb: percents.1 * 10_000_000 };
        let batch = closed(&market, rules, quality);
        let block = batch.propose(None, Budget::queries(queries)).unwrap();
        assert_acceptable(&market, &rules, &quality, &block);
        let next = batch.propose(Some(&block.prices), Budget::queries(queries)).unwrap();
        assert_acceptable(&market, &rules, &quality, &next);
        assert_acceptable(&market, &rules, &quality, &batch.propose_nothing());
    }
}

/// The worst of some markets of a kind: gap, unserved, assets set aside, and how many markets there were.
#[derive(Debug, Default)]
struct Worst {
    gap_ppb: u32,
    unserved_ppb: u32,
    set_aside: usize,
    count: usize,
}

impl Worst {
    /// Without limits, so that what is left undone shows.
    fn see(&mut self, market: &BatchMarket) {
        let rules = usual_rules();
        let batch = closed(market, rules, QualityMax::NONE);
        let block = batch.propose(None, Budget::queries(10_000)).unwrap();
        self.gap_ppb = self.gap_ppb.max(block.certificate.gap_ppb);
        self.unserved_ppb = self.unserved_ppb.max(block.certificate.unserved_ppb);
        self.set_aside = self.set_aside.max(batch.set_aside(&block));
        self.count += 1;
        assert_acceptable(market, &rules, &QualityMax::NONE, &block);
    }

    /// A fiftieth of what the usual rules allow is left undone at most.
    fn assert_far_from_usual(&self, kind: &str) {
        println!("{kind}: {self:?}");
        assert!(self.count > 0 && self.set_aside == 0, "{kind}: {self:?}");
        assert!(self.gap_ppb <= USUAL.gap_ppb / 50 && self.unserved_ppb <= USUAL.unserved_ppb / 50, "{kind}: {self:?}");
    }
}

#[test]
fn made_batches_are_far_within_the_usual_rules() {
    for variant in Variant::ALL {
        for (asset_count, offer_count) in [(2, 200), (10, 100), (10, 2_000), (50, 5_000)] {
            let mut worst = Worst::default();
            for seed in 0..3 {
                let made = MadeBatch::new(Model { asset_count, offer_count, variant, shape: Shape::EvenCycles }, seed);
                worst.see(&market_of(asset_count, &made.offers));
            }
            worst.assert_far_from_usual(&format!("{variant:?}, {asset_count} assets, {offer_count} offers"));
        }
    }
}

/// Six assets that nobody else trades, each worth 2^62 of the next by offers of a unit: prices further apart than the format has, linked to a market
/// in which everything fits. That trades all the same.
#[test]
fn odd_offers_hold_up_nobody() {
    let pair = |sell, buy| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    let offer = |id, units, limit: f64| {
        let limit = if limit == 0.0 { BatchPrice::ZERO } else { BatchPrice::from_bits(limit.to_bits()).unwrap() };
        Offer::new(limit, 0, OfferId(id), Amount::new(units).unwrap()).unwrap()
    };
    let fitting = (0..10).flat_map(|id| [(pair(0, 1), offer(id, 1_000_000, 0.98)), (pair(1, 0), offer(id, 1_000_000, 0.98))]);
    let odd = (1..7)
        .flat_map(|asset| [(pair(asset, asset + 1), offer(100, 1, 62_f64.exp2())), (pair(asset + 1, asset), offer(101, 1, 0.0))]);
    let market = BatchMarket::build(8, &fitting.chain(odd).collect::<Vec<_>>(), &[], Vec::new()).unwrap();
    assert_eq!(market.parts().count(), 1);
    let batch = closed(&market, usual_rules(), USUAL);
    let block = batch.propose(None, Budget::queries(10_000)).unwrap();
    assert_acceptable(&market, &usual_rules(), &USUAL, &block);
    assert_eq!(batch.set_aside(&block), 0, "{:?}", block.prices);
    let sold: u64 = block.trades.iter().filter(|trade| trade.sell.max(trade.buy) == 1).map(|trade| trade.sold.get()).sum();
    assert!(sold > 19_000_000, "{sold}");
}

/// The daily prices and volumes of real assets, if they are there.
fn histories() -> Option<Vec<String>> {
    let data = std::env::var_os("WALRAS_DATA").map(PathBuf::from);
    let data = data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(data.join("coingecko")).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "csv"));
    files.sort();
    Some(files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect())
}

#[test]
fn real_days_are_far_within_the_usual_rules() {
    let Some(texts) = histories() else {
        println!("no daily prices of real assets: set WALRAS_DATA to the folder that has coingecko/*.csv; nothing is tested");
        return;
    };
    let days = RealDays::parse(texts.iter().map(String::as_str), 500).unwrap();
    let mut worst = Worst::default();
    for day in (0..days.len()).step_by(25) {
        let offers = days.offers(day, 20_000, 7);
        let market = market_of(days.asset_count(), &offers);
        if market.parts().count() > 0 {
            worst.see(&market);
        }
    }
    worst.assert_far_from_usual("real days");
}

/// Made batches, and one offer between their first two assets that is so many times what all others are together. Prices that nearly clear such a
/// market are a hair above its limit, where hardly any part of it can be honoured in whole units.
#[test]
fn an_offer_far_larger_than_all_others_holds_up_nobody() {
    // The offers of a made batch are finer than this by so much.
    const FINENESS: f64 = 1e4;
    for (asset_count, offer_count) in [(2, 20), (3, 30), (5, 100), (10, 300)] {
        for times in [1e3, 1e5, 1e7, 1e9, 1e12] {
            for nearness in [-0.5, -0.03, -0.001, 0.001, 0.03] {
                let mut worst = Worst::default();
                for seed in 0..3 {
                    let model = Model { asset_count, offer_count, variant: Variant::Default, shape: Shape::EvenCycles };
                    let MadeBatch { mut offers, valuations, .. } = MadeBatch::new(model, seed);
                    offers.iter_mut().for_each(|offer| offer.amount = (offer.amount / FINENESS).max(1.0));
                    let all: f64 = offers.iter().map(|offer| offer.amount * valuations[offer.sell]).sum();
                    let limit = valuations[0] / valuations[1] * (1.0 + nearness);
                    offers.push(Offered { sell: 0, buy: 1, limit, amount: all / valuations[0] * times });
                    worst.see(&market_of(asset_count, &offers));
                }
                let kind = format!("{asset_count} assets, {times:e} times the others, limit {nearness} from the rate: {worst:?}");
                assert!(
                    worst.set_aside == 0 && worst.gap_ppb <= USUAL.gap_ppb && worst.unserved_ppb <= USUAL.unserved_ppb,
                    "{kind}"
                );
            }
        }
    }
}
