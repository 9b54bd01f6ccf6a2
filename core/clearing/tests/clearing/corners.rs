//! Every reason for a rejection, and markets at their ends.

use walras_clearing::{
    AssetIndex, BatchMarket, BuyOffer, Edition, Fill, LowerBounds, MarketError, Offer, OfferId, Pair, PairTrade, Pool, PoolFill,
    PoolIndex, PoolRule, PoolSide, PoolTrade, PoolTraded, Proposal, Rejected, Rules, verify,
};
use walras_types::{Amount, BatchPrice, Commission, Mu, NetRate, Rounding, limits::AMOUNT_MAX};

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(text: &str) -> BatchPrice {
    BatchPrice::from_decimal(text, Rounding::Up).unwrap()
}

fn pair(sell: u16, buy: u16) -> Pair {
    Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }
}

fn offer(of: Pair, limit: &str, id: u64, units: u64) -> (Pair, Offer) {
    let limit = if limit == "market" { BatchPrice::ZERO } else { price(limit) };
    (of, Offer::new(limit, 0, OfferId(id), amount(units)).unwrap())
}

fn trade(of: Pair, sold: u64) -> PairTrade {
    PairTrade { pair: of, sold: amount(sold), bought_by_buy_offers: Amount::ZERO }
}

fn prices(texts: &[&str]) -> Vec<Option<BatchPrice>> {
    texts.iter().map(|text| (!text.is_empty()).then(|| price(text))).collect()
}

fn rules(lower_bounds: LowerBounds) -> Rules {
    Rules { edition: Edition::NEWEST, commission: Commission::NONE, mu: Mu::new(10).unwrap(), lower_bounds }
}

const EXACT: LowerBounds = LowerBounds::Required;

fn fill(id: u64, sold: u64, bought: u64, remaining: u64) -> Fill {
    Fill { id: OfferId(id), sold: amount(sold), bought: amount(bought), remaining: amount(remaining) }
}

/// Two assets, one at twice the other; an offer each way.
fn two() -> BatchMarket {
    BatchMarket::build(2, &[offer(pair(0, 1), "1.9", 1, 100), offer(pair(1, 0), "0.5", 2, 200)], &[], vec![]).unwrap()
}

#[test]
fn two_offers_that_meet_trade_in_full() {
    let (market, rules) = (two(), rules(EXACT));
    let proposal =
        Proposal { prices: prices(&["2", "1"]), trades: vec![trade(pair(0, 1), 100), trade(pair(1, 0), 200)], pools: vec![] };
    let verified = verify(&market, &proposal, &rules).unwrap();
    let fills: Vec<Fill> = verified.pairs().iter().flat_map(|of| verified.fills(of).sells()).collect();
    assert_eq!(fills, [fill(1, 100, 200, 0), fill(2, 200, 100, 0)]);
    assert_eq!(verified.surplus(), [Amount::ZERO; 2]);
    let marginal = verified.fills(&verified.pairs()[0]).marginal_sell().unwrap();
    assert_eq!((marginal.id, verified.fills(&verified.pairs()[0]).marginal_buy()), (OfferId(1), None));
    // A commission of 2^-4: the second gets too little for its limit, and the first then finds nobody.
    let rules = Rules { edition: Edition::NEWEST, commission: Commission::new(4).unwrap(), ..rules };
    let rejected = verify(&market, &proposal, &rules).unwrap_err();
    assert_eq!(rejected, Rejected::SoldTooMuch { pair: pair(0, 1), sold: amount(100), most: Amount::ZERO });
}

#[test]
fn with_mu_above_the_commission_an_offer_may_trade_and_need_not() {
    // Less commission the rate is 15/16, so the offer may trade; less mu it is 7/8, 15/16 or 31/32.
    let market = BatchMarket::build(2, &[offer(pair(0, 1), "0.9", 1, 100)], &[], vec![]).unwrap();
    let nothing = Proposal { prices: prices(&["1", "1"]), trades: vec![], pools: vec![] };
    for (mu, need_not) in [(3, true), (4, false), (5, false)] {
        let rules = Rules {
            edition: Edition::NEWEST,
            commission: Commission::new(4).unwrap(),
            mu: Mu::new(mu).unwrap(),
            lower_bounds: EXACT,
        };
        assert_eq!((rules.leave_freedom(), verify(&market, &nothing, &rules).is_ok()), (need_not, need_not), "{mu}");
    }
    assert!(rules(EXACT).leave_freedom(), "without commission always");
}

#[test]
fn every_reason_is_told_with_its_number_and_place() {
    let market = two();
    let right =
        Proposal { prices: prices(&["2", "1"]), trades: vec![trade(pair(0, 1), 100), trade(pair(1, 0), 200)], pools: vec![] };
    let told = |change: &dyn Fn(&mut Proposal)| {
        let mut proposal = right.clone();
        change(&mut proposal);
        let rejected = verify(&market, &proposal, &rules(EXACT)).unwrap_err();
        (rejected.number(), rejected.to_string())
    };
    let cases: [(&dyn Fn(&mut Proposal), u16, &str); 13] = [
        (&|p| p.prices.truncate(1), 1, "1 prices for 2 assets"),
        (&|p| p.prices[1] = Some(BatchPrice::ZERO), 2, "asset 1 has the price zero"),
        (&|p| p.trades.swap(0, 1), 3, "pair 0->1 is out of order"),
        (&|p| p.trades.push(trade(pair(1, 0), 1)), 3, "pair 1->0 is out of order"),
        (&|p| p.trades.push(trade(pair(2, 0), 1)), 4, "pair 2->0 has an asset"),
        (&|p| p.trades.push(trade(pair(1, 1), 1)), 5, "pair 1->1 trades an asset for itself"),
        (&|p| p.prices[0] = None, 6, "pair 0->1 trades"),
        (&|p| p.trades[0].sold = amount(101), 7, "pair 0->1 sells 101, and offers whose limits hold sell 100: sell 1 less"),
        (&|p| p.trades[0].sold = amount(99), 8, "pair 0->1 sells 99, and offers clearly in the money sell 100: sell 1 more"),
        (&|p| p.trades[1].bought_by_buy_offers = amount(7), 10, "pair 1->0 buys 7, and buy offers whose limits hold want 0"),
        (&|p| p.trades[1].sold = amount(198), 18, "of asset 1 200 are bought and 198 sold: 2 too many"),
        (&|p| p.prices[0] = Some(price("1.89")), 7, "pair 0->1 sells 100, and offers whose limits hold sell 0"),
        (&|p| p.pools.push(PoolTrade { pool: PoolIndex(0), side: PoolSide::First, sold: amount(1) }), 14, "there is no pool 0"),
    ];
    for (change, number, text) in cases {
        let (told_number, told_text) = told(change);
        assert!(told_number == number && told_text.contains(text), "{told_number} {told_text:?}, not {number} {text:?}");
    }
}

#[test]
fn a_part_that_whole_units_can_not_honour_is_refused() {
    // At a rate of exactly 3/2, an offer with the limit 3/2 can sell 2 for 3, 4 for 6, ... of its 10.
    let market =
        BatchMarket::build(2, &[offer(pair(0, 1), "1.5", 1, 10), offer(pair(1, 0), "market", 2, 100)], &[], vec![]).unwrap();
    let sell = |sold: u64, sold_back: u64| {
        let trades = vec![trade(pair(0, 1), sold), trade(pair(1, 0), sold_back)];
        let proposal = Proposal { prices: prices(&["1.5", "1"]), trades, pools: vec![] };
        verify(&market, &proposal, &rules(LowerBounds::BestEffort)).map(|verified| verified.surplus())
    };
    assert_eq!(sell(4, 6), Ok(vec![Amount::ZERO; 2]));
    let part = Rejected::PartBreaksLimit { pair: pair(0, 1), offer: OfferId(1), sold: amount(3), bought: amount(4) };
    assert_eq!(sell(3, 4), Err(part));
    // A market order takes what comes: a unit of the second for two thirds, that is for nothing, and the venue keeps it.
    assert_eq!(sell(4, 7), Ok(vec![amount(0), amount(1)]));
}

#[test]
fn buy_offers_pay_what_the_rate_asks_and_no_more_than_their_limit() {
    let buy = |id: u64, bought: u64, sold_max: u64| {
        (pair(0, 1), BuyOffer::new(BatchPrice::ZERO, id, OfferId(id), amount(bought), amount(sold_max)).unwrap())
    };
    let sells = [offer(pair(1, 0), "0.3", 9, 1_000)];
    let market = BatchMarket::build(2, &sells, &[buy(1, 10, 4), buy(2, 10, 5)], vec![]).unwrap();
    let clear = |bought: u64, sold: u64| {
        let trades =
            vec![PairTrade { pair: pair(0, 1), sold: Amount::ZERO, bought_by_buy_offers: amount(bought) }, trade(pair(1, 0), sold)];
        let proposal = Proposal { prices: prices(&["2.5", "1"]), trades, pools: vec![] };
        verify(&market, &proposal, &rules(LowerBounds::BestEffort)).map(|verified| {
            let fills: Vec<Fill> = verified.fills(&verified.pairs()[0]).buys().collect();
            (fills, verified.surplus())
        })
    };
    assert_eq!(clear(20, 20), Ok((vec![fill(2, 4, 10, 0), fill(1, 4, 10, 0)], vec![Amount::ZERO; 2])));
    // The limit of the second is 2: 9 cost ceil(9 / 2.5) = 4. That of the first is 2.5: 9 would cost 4 too, past it.
    assert_eq!(clear(9, 9).map(|(fills, _)| fills), Ok(vec![fill(2, 4, 9, 1)]));
    let part = Rejected::BuyPartBreaksLimit { pair: pair(0, 1), offer: OfferId(1), sold: amount(4), bought: amount(9) };
    assert_eq!(clear(19, 19), Err(part));
    assert_eq!(clear(21, 21), Err(Rejected::BoughtTooMuch { pair: pair(0, 1), bought: amount(21), most: amount(20) }));
    assert!(matches!(clear(20, 19), Err(Rejected::Deficit { asset: AssetIndex(1), sold: 19, bought: 20 })));
}

#[test]
fn a_pool_trades_up_to_its_own_price() {
    // 1000 and 1000, so a price of one; at a rate of 4 the best is to sell half: (1000 + 2000) / (1000 - 250) = 4.
    let pool = pool(PoolRule::ConstantProduct, 1_000);
    let market = BatchMarket::build(2, &[offer(pair(1, 0), "market", 1, 5_000)], &[], vec![pool, pool]).unwrap();
    let clear = |pools: &[(u32, PoolSide, u64)], sold: u64| {
        let pools = pools.iter().map(|&(pool, side, sold)| PoolTrade { pool: PoolIndex(pool), side, sold: amount(sold) }).collect();
        let proposal = Proposal { prices: prices(&["4", "1"]), trades: vec![trade(pair(1, 0), sold)], pools };
        verify(&market, &proposal, &rules(LowerBounds::BestEffort)).map(|verified| verified.pools().to_vec())
    };
    // (1000 + 4 s) <= 4 (1000 - s), so s <= 375.
    let fills = clear(&[(0, PoolSide::First, 375), (1, PoolSide::First, 1)], 1_504).unwrap();
    assert_eq!((fills[0].bought, fills[1].bought), (amount(1_500), amount(4)));
    let past = Rejected::PoolSoldTooMuch { pool: PoolIndex(0), sold: amount(376), most: amount(375) };
    assert_eq!(clear(&[(0, PoolSide::First, 376)], 1_504), Err(past));
    let wrong_way = Rejected::PoolSoldTooMuch { pool: PoolIndex(1), sold: amount(1), most: amount(0) };
    assert_eq!(clear(&[(1, PoolSide::Second, 1)], 0), Err(wrong_way));
    let twice = clear(&[(1, PoolSide::First, 1), (1, PoolSide::First, 1)], 8);
    assert_eq!(twice, Err(Rejected::PoolsOutOfOrder(PoolIndex(1))));
    assert!(matches!(clear(&[(0, PoolSide::First, 100)], 399), Err(Rejected::Deficit { asset: AssetIndex(1), .. })));
    let worded = clear(&[(0, PoolSide::First, 376)], 1_504).unwrap_err().to_string();
    assert_eq!(worded, "clearing rejected (16): pool 0 sells 376, and at this rate it sells at most 375: sell 1 less");
}

fn pool(rule: PoolRule, reserve: u64) -> Pool {
    Pool { assets: [AssetIndex(0), AssetIndex(1)], rule, reserves: [amount(reserve); 2], fee_ppm: 0 }
}

#[test]
fn rules_differ_in_what_they_sell() {
    let at = |text: &str| NetRate::new(prices(&[text])[0].unwrap(), BatchPrice::ONE, Commission::NONE).unwrap();
    let sold = |rule: PoolRule, rate: &str| pool(rule, 1_000_000).sold_most(PoolSide::First, &at(rate)).get();
    // With a quarter of its value in what it sells, its price begins at a third: (1/4) (10^6 + s) <= (3/4) (10^6 - s).
    let quarter = PoolRule::Weighted { weights: [1, 3] };
    assert_eq!((sold(quarter, "1"), sold(quarter, "0.3")), (500_000, 0));
    assert_eq!(sold(PoolRule::Weighted { weights: [7, 7] }, "4"), sold(PoolRule::ConstantProduct, "4"));
    // The larger the amplification, the more it sells near its price, and the less farther away it has left to sell.
    let flat = |amplification: u32| sold(PoolRule::StableSwap { amplification }, "1.01");
    assert!(sold(PoolRule::ConstantProduct, "1.01") < flat(1) && flat(1) < flat(10) && flat(10) < flat(1_000), "{}", flat(10));
    assert_eq!(sold(PoolRule::StableSwap { amplification: 100 }, "0.99"), 0);
}

#[test]
fn a_pool_of_extreme_reserves_is_judged_as_any_other() {
    let all = AMOUNT_MAX - 1;
    for rule in [
        PoolRule::ConstantProduct,
        PoolRule::Weighted { weights: [1_000, 1] },
        PoolRule::StableSwap { amplification: 1 },
        PoolRule::StableSwap { amplification: 1_000_000 },
    ] {
        for reserves in [[1, 1], [1, all], [all, 1], [all, all], [1 << 40, 3]] {
            let pool = Pool { reserves: reserves.map(amount), ..pool(rule, 1) };
            for rate in [BatchPrice::MIN, BatchPrice::ONE, BatchPrice::MAX] {
                let rate = NetRate::new(rate, BatchPrice::ONE, Commission::NONE).unwrap();
                for side in [PoolSide::First, PoolSide::Second] {
                    let most = pool.sold_most(side, &rate);
                    let bought = rate.bought_up(most).unwrap();
                    assert!(pool.accepts(side, &rate, most, bought), "{pool:?} {rate:?}");
                    // Of a stable swap, rounding of its price may hide a unit.
                    let is_exact = !matches!(rule, PoolRule::StableSwap { .. });
                    let more = rate.bought_up(amount(most.get() + 1)).filter(|_| is_exact);
                    assert!(more.is_none_or(|more| !pool.accepts(side, &rate, amount(most.get() + 1), more)), "{pool:?} {rate:?}");
                }
            }
        }
    }
}

#[test]
fn pools_trade_and_are_put_back() {
    let market = BatchMarket::build(2, &[offer(pair(1, 0), "market", 1, 5_000)], &[], vec![pool(PoolRule::ConstantProduct, 1_000)]);
    let mut market = market.unwrap();
    let before = market.clone();
    let fill = PoolFill { pool: PoolIndex(0), side: PoolSide::First, sold: amount(375), bought: amount(1_500) };
    let traded = market.trade_pools(&[fill]);
    assert_eq!(traded, [PoolTraded { pool: PoolIndex(0), pair: pair(0, 1), sold: amount(375), bought: amount(1_500) }]);
    assert_eq!(market.pools()[0].reserves, [amount(625), amount(2_500)]);
    assert_eq!((market.for_sale(AssetIndex(0)), market.for_sale(AssetIndex(1))), (amount(625), amount(7_500)));
    market.set_pools(before.pools().to_vec()).unwrap();
    assert_eq!(market, before);
    let wrong = Pool { rule: PoolRule::StableSwap { amplification: 0 }, ..before.pools()[0] };
    assert_eq!(market.set_pools(vec![wrong]), Err(MarketError::InvalidPool(PoolIndex(0))));
    assert_eq!(market, before);
}

#[test]
fn an_empty_market_clears_with_nothing() {
    for asset_count in [0, 1, 3] {
        let market = BatchMarket::build(asset_count, &[], &[], vec![]).unwrap();
        let nothing = Proposal { prices: vec![None; asset_count], ..Proposal::default() };
        let verified = verify(&market, &nothing, &rules(EXACT)).unwrap();
        assert_eq!((verified.pairs().len(), verified.surplus().len()), (0, asset_count));
    }
    // A pair in which nothing stands may be named, if it does not trade.
    let market = BatchMarket::build(2, &[], &[], vec![]).unwrap();
    let named = |sold: u64| Proposal { prices: prices(&["1", "1"]), trades: vec![trade(pair(0, 1), sold)], pools: vec![] };
    assert!(verify(&market, &named(0), &rules(EXACT)).is_ok());
    assert_eq!(verify(&market, &named(1), &rules(EXACT)).unwrap_err().number(), 7);
}

#[test]
fn what_has_no_price_is_counted_and_what_is_short_is_told() {
    let market = two();
    let nothing = |texts: &[&str]| Proposal { prices: prices(texts), ..Proposal::default() };
    let shortfall = verify(&market, &nothing(&["2", ""]), &rules(EXACT)).unwrap().shortfall();
    assert_eq!((shortfall.pair_count, shortfall.unpriced_pair_count), (0, 2));
    // At these prices the second is at its limit, so only the first is clearly in the money.
    let shortfall = verify(&market, &nothing(&["2", "1"]), &rules(LowerBounds::BestEffort)).unwrap().shortfall();
    assert_eq!((shortfall.pair_count, shortfall.first, shortfall.unpriced_pair_count), (1, Some((pair(0, 1), amount(100))), 0));
    let rejected = verify(&market, &nothing(&["2", "1"]), &rules(EXACT)).unwrap_err();
    assert_eq!(rejected, Rejected::SoldTooLittle { pair: pair(0, 1), sold: Amount::ZERO, least: amount(100) });
}

#[test]
fn amounts_at_their_end_clear_and_do_not_overflow() {
    let all = |of: Pair, limit: &str, id: u64| offer(of, limit, id, AMOUNT_MAX);
    let market = BatchMarket::build(2, &[all(pair(0, 1), "1", 1), all(pair(1, 0), "1", 2)], &[], vec![]).unwrap();
    let proposal = |sold: u64, texts: &[&str]| Proposal {
        prices: prices(texts),
        trades: vec![trade(pair(0, 1), sold), trade(pair(1, 0), sold)],
        pools: vec![],
    };
    let verified = verify(&market, &proposal(AMOUNT_MAX, &["1", "1"]), &rules(EXACT)).unwrap();
    assert_eq!(verified.surplus(), [Amount::ZERO; 2]);
    assert_eq!(verify(&market, &proposal(AMOUNT_MAX, &["2", "1"]), &rules(EXACT)).unwrap_err().number(), 12);

    // Market orders at the furthest rates: one buys too much for an amount, the other nothing.
    let orders = [all(pair(0, 1), "market", 1), all(pair(1, 0), "market", 2)];
    let market = BatchMarket::build(2, &orders, &[], vec![]).unwrap();
    let ends = |first: BatchPrice, second: BatchPrice, trades: Vec<PairTrade>| {
        let proposal = Proposal { prices: vec![Some(first), Some(second)], trades, pools: vec![] };
        verify(&market, &proposal, &rules(LowerBounds::BestEffort)).map(|verified| verified.surplus())
    };
    let (low, high) = (BatchPrice::MIN, BatchPrice::MAX);
    assert_eq!(ends(high, low, vec![trade(pair(0, 1), 1)]), Err(Rejected::AmountOverflow(pair(0, 1))));
    assert_eq!(ends(low, high, vec![trade(pair(0, 1), AMOUNT_MAX)]), Ok(vec![Amount::MAX, Amount::ZERO]));
    let both = vec![trade(pair(0, 1), 1), trade(pair(1, 0), AMOUNT_MAX)];
    assert_eq!(
        ends(BatchPrice::ONE, BatchPrice::ONE, both),
        Err(Rejected::Deficit { asset: AssetIndex(0), sold: 1, bought: AMOUNT_MAX.into() })
    );
}

/// `units` for `bought` of the other asset at least, as somebody types it.
fn for_at_least(of: Pair, id: u64, units: u64, bought: u64) -> (Pair, Offer) {
    let limit = BatchPrice::limit_of_sale(bought.into(), units.into(), amount(units)).unwrap();
    (of, Offer::new(limit, 0, OfferId(id), amount(units)).unwrap())
}

#[test]
fn decimal_limits_that_meet_trade_at_the_rate_between_them() {
    // No price is 0.8, but the ratio of two is.
    let (there, back) = (pair(0, 1), pair(1, 0));
    let offers = [for_at_least(there, 1, 10_000, 8_000), for_at_least(back, 2, 8_000, 10_000)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    let at = |sell: &str, sold, paid| Proposal {
        prices: prices(&[sell, "5"]),
        trades: vec![trade(there, sold), trade(back, paid)],
        pools: vec![],
    };
    let second = rules(EXACT);
    let verified = verify(&market, &at("4", 10_000, 8_000), &second).unwrap();
    let fills: Vec<Fill> = verified.pairs().iter().flat_map(|of| verified.fills(of).sells()).collect();
    assert_eq!(fills, [fill(1, 10_000, 8_000, 0), fill(2, 8_000, 10_000, 0)]);
    // A part keeps the limit in whole units, or does not trade.
    let part = verify(&market, &at("4", 5_000, 4_000), &second).unwrap();
    assert_eq!(part.fills(&part.pairs()[0]).sells().collect::<Vec<_>>(), [fill(1, 5_000, 4_000, 5_000)]);
    let broken = verify(&market, &at("4", 5_001, 4_000), &second).unwrap_err();
    assert_eq!(broken, Rejected::PartBreaksLimit { pair: there, offer: OfferId(1), sold: amount(5_001), bought: amount(4_000) });
    // The least below that rate is too little, the least above it too much for the other.
    let price = |units: u64| BatchPrice::from_bits(self::price("4").bits() + units).unwrap();
    let lower = Proposal {
        prices: vec![Some(BatchPrice::from_bits(price(0).bits() - 1).unwrap()), Some(self::price("5"))],
        ..at("4", 10_000, 8_000)
    };
    let most = Amount::ZERO;
    assert_eq!(verify(&market, &lower, &second).unwrap_err(), Rejected::SoldTooMuch { pair: there, sold: amount(10_000), most });
    let higher = Proposal { prices: vec![Some(price(1)), Some(self::price("5"))], ..at("4", 10_000, 8_000) };
    assert_eq!(verify(&market, &higher, &second).unwrap_err(), Rejected::SoldTooMuch { pair: back, sold: amount(8_000), most });
    // Logs of the first edition are read as they were.
    let first = Rules { edition: Edition::First, ..second };
    let refused = verify(&market, &at("4", 10_000, 8_000), &first).unwrap_err();
    assert_eq!(refused, Rejected::SoldTooMuch { pair: there, sold: amount(10_000), most });
}

#[test]
fn of_limits_that_round_to_one_price_those_hold_that_whole_units_keep() {
    // All ask for 1.4, which rounds to the price above it.
    let there = pair(0, 1);
    let exact = for_at_least(there, 2, 10, 14);
    let offers = [for_at_least(there, 1, 30, 42), exact, for_at_least(there, 3, 5, 7), for_at_least(pair(1, 0), 4, 100, 70)];
    let market = BatchMarket::build(2, &offers, &[], vec![]).unwrap();
    let rate = NetRate::new(price("7"), price("5"), Commission::NONE).unwrap();
    let sells = market.book(there).unwrap().sells();
    assert_eq!(sells.units_at_or_below(rate.highest_limit()), Amount::ZERO);
    assert_eq!(sells.units_holding(&rate, Edition::First, Amount::MAX), Amount::ZERO);
    assert_eq!(sells.units_holding(&rate, Edition::Second, Amount::MAX), amount(45));
    assert_eq!(sells.units_holding(&rate, Edition::Second, amount(1)).get().min(1), 1, "the search ends where it is enough");
}
