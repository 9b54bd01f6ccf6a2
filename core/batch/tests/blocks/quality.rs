//! What a block says of its own quality: against a naive oracle in fractions, and what a censor can not do.

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use walras_batch::{
    BlockRejected, Certificate, Intake, POTENTIAL_ONE, ProposedClearing, Quality, QualityError, QualityMax, assess, gap_ppb,
};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Pair, PairTrade, Proposal, Rules};
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPrice, BatchTransaction, Commission, CreateOffer, Mu, PPB_ALL, TransactionSeq,
};

use crate::world::{Draw, MARKET, World, amount, price, proposed, transactions, with_marginal};

type Number = Ratio<BigInt>;

fn whole(units: u64) -> Number {
    Number::from_integer(BigInt::from(units))
}

fn two_to(exponent: i32) -> Number {
    let power = BigInt::from(1) << exponent.unsigned_abs();
    if exponent < 0 { Number::new(1.into(), power) } else { Number::from_integer(power) }
}

fn value(price: BatchPrice) -> Number {
    let (m, e) = price.parts();
    whole(m) * two_to(e)
}

/// A share of a whole in parts per billion, rounded up.
fn share_ppb(part: &Number, of: &Number) -> u32 {
    if *of <= whole(0) {
        return 0;
    }
    let ppb = (part / of * whole(PPB_ALL.into())).ceil().to_integer();
    u32::try_from(ppb.max(0.into()).min(PPB_ALL.into())).unwrap()
}

/// A pair as somebody sees it who looks at each offer.
struct Seen {
    sell: usize,
    buy: usize,
    /// Of the asset sold.
    value: Number,
    /// Units, but for what whole units can not tell.
    upper: Number,
    wanted: Number,
    missing: Number,
    sold: Number,
}

/// Which assets lead to which and back.
fn is_in_part(market: &BatchMarket) -> Vec<Vec<bool>> {
    let count = market.asset_count();
    let mut leads = vec![vec![false; count]; count];
    market.books().iter().for_each(|book| leads[book.pair().sell.index()][book.pair().buy.index()] = true);
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                leads[from][to] |= leads[from][via] && leads[via][to];
            }
        }
    }
    (0..count).map(|a| (0..count).map(|b| leads[a][b] && leads[b][a]).collect()).collect()
}

fn kept(rules: &Rules) -> Number {
    whole(1) - rules.commission.exponent().map_or(whole(0), |k| two_to(-i32::from(k)))
}

/// The largest amount of a pair that may be too small to measure in whole units, in units of what is sold.
fn naive_units(rate: &Number, rules: &Rules) -> Number {
    let least = two_to(i32::from(rules.mu.exponent()) + 1);
    (&least / rate).ceil().max(least)
}

/// The largest of the last offers of each asset's pairs, in its units: those that trade in part, or the first that do not trade.
fn naive_last(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Vec<Number> {
    let together = is_in_part(market);
    let mut most = vec![whole(2); market.asset_count()];
    for book in market.books() {
        let Pair { sell, buy } = book.pair();
        let (Some(of_sell), Some(of_buy)) = (proposal.prices[sell.index()], proposal.prices[buy.index()]) else { continue };
        if !together[sell.index()][buy.index()] {
            continue;
        }
        let rate = value(of_sell) / value(of_buy) * kept(rules);
        let mut left = proposal.trades.iter().find(|trade| trade.pair == book.pair()).map_or(0, |trade| trade.sold.get());
        for offer in book.sells().as_slice() {
            let units = offer.amount().get();
            if units <= left {
                left -= units;
                continue;
            }
            if Number::new(offer.asked().get().into(), units.into()) <= rate {
                let last = whole(units).min(naive_units(&rate, rules));
                let bought = (&last * &rate).ceil();
                for (asset, units) in [(sell, last), (buy, bought)] {
                    let most = &mut most[asset.index()];
                    *most = units.max(most.clone());
                }
            }
            break;
        }
    }
    most
}

fn seen(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Vec<Seen> {
    let together = is_in_part(market);
    let last = naive_last(market, proposal, rules);
    let mut all = Vec::new();
    for book in market.books() {
        let Pair { sell, buy } = book.pair();
        let (Some(of_sell), Some(of_buy)) = (proposal.prices[sell.index()], proposal.prices[buy.index()]) else { continue };
        if !together[sell.index()][buy.index()] {
            continue;
        }
        let ratio = value(of_sell) / value(of_buy);
        let rate = &ratio * kept(rules);
        let clearly = (&ratio * (whole(1) - two_to(-i32::from(rules.mu.exponent())))).min(rate.clone());
        let sold = proposal.trades.iter().find(|trade| trade.pair == book.pair()).map_or(0, |trade| trade.sold.get());
        let (mut left, mut upper, mut wanted, mut missing) = (sold, 0, 0, 0);
        let mut is_open = true;
        for offer in book.sells().as_slice() {
            let (limit, units) = (value(offer.key().limit), offer.amount().get());
            let filled = left.min(units);
            left -= filled;
            let exact = Number::new(offer.asked().get().into(), units.into());
            let limit_held = if rules.edition == Edition::First { limit.clone() } else { exact };
            is_open &= limit_held <= rate;
            upper += if is_open { units } else { 0 };
            if limit <= clearly {
                wanted += units;
                missing += units - filled;
            }
        }
        let dust = match rules.edition {
            Edition::First => naive_units(&rate, rules),
            Edition::Second => {
                let in_sold = (&last[buy.index()] / &rate).ceil();
                last[sell.index()].clone().max(in_sold).min(naive_units(&rate, rules))
            }
        };
        let beyond = |units: u64| (whole(units) - &dust).max(whole(0));
        all.push(Seen {
            sell: sell.index(),
            buy: buy.index(),
            value: value(of_sell),
            upper: whole(sold) + beyond(upper.saturating_sub(sold)),
            wanted: whole(wanted),
            missing: beyond(missing),
            sold: whole(sold),
        });
    }
    all
}

fn naive_unserved_ppb(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> u32 {
    let seen = seen(market, proposal, rules);
    let of = |is_of: &dyn Fn(&Seen) -> bool| {
        let sum = |units: fn(&Seen) -> &Number| {
            seen.iter().filter(|pair| is_of(pair)).fold(whole(0), |sum, pair| sum + units(pair) * &pair.value)
        };
        share_ppb(&sum(|pair| &pair.missing), &sum(|pair| &pair.wanted))
    };
    let assets = 0..market.asset_count();
    assets.flat_map(|asset| [of(&|pair| pair.sell == asset), of(&|pair| pair.buy == asset)]).max().unwrap_or(0)
}

/// The largest gap of any part.
fn naive_gap_ppb(potentials: &[i64], market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> u32 {
    let together = is_in_part(market);
    let seen = seen(market, proposal, rules);
    let potential = |asset: usize| Number::new(potentials[asset].into(), POTENTIAL_ONE.into());
    let of_part = |first: usize| {
        let (mut bound, mut traded) = (whole(0), whole(0));
        for pair in seen.iter().filter(|pair| together[first][pair.sell]) {
            let reduced = whole(1) + potential(pair.sell) - kept(rules) * potential(pair.buy);
            let lower = pair.wanted.clone().min(pair.sold.clone());
            let units = if reduced >= whole(0) { &pair.upper } else { &lower };
            bound += reduced * units * &pair.value;
            traded += &pair.sold * &pair.value;
        }
        for trade in &proposal.trades {
            let (sell, buy) = (trade.pair.sell.index(), trade.pair.buy.index());
            if together[sell][buy] {
                continue;
            }
            let worth = whole(trade.sold.get()) * proposal.prices[sell].map_or(whole(0), value);
            if together[first][sell] {
                bound += potential(sell) * &worth;
            }
            if together[first][buy] {
                bound -= kept(rules) * potential(buy) * &worth;
            }
        }
        share_ppb(&(&bound - traded), &bound)
    };
    (0..market.asset_count()).filter(|asset| together[*asset][*asset]).map(of_part).max().unwrap_or(0)
}

/// What both numbers are where nothing is priced.
fn of_nothing(market: &BatchMarket, proposal: &Proposal) -> Option<u32> {
    let together = is_in_part(market);
    let tradable = || (0..market.asset_count()).filter(|asset| together[*asset][*asset]);
    let is_priced = tradable().any(|asset| proposal.prices[asset].is_some());
    (!is_priced).then_some(if tradable().next().is_none() { 0 } else { PPB_ALL })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_block_states_what_the_oracle_counts(seed: u64) {
        let draw = &mut Draw(seed);
        // From units that are all dust to those that are none; with accuracies that ask for more and for less of it.
        let units = [300, 30_000, 3_000_000, 1 << 40][draw.below(4) as usize];
        let commission = [Commission::NONE, Commission::new(8).unwrap(), Commission::new(15).unwrap()][draw.below(3) as usize];
        let mu = Mu::new(1 + draw.below(7) as u8).unwrap();
        let edition = [Edition::First, Edition::Second][draw.below(2) as usize];
        let rules = Rules { edition, commission, mu, lower_bounds: LowerBounds::BestEffort };
        let mut world = World::with_rules(8, units, rules);
        for _ in 0..3 {
            let mut sent = transactions(&world, draw, 60, 1);
            for transaction in &mut sent {
                if let BatchOperation::CreateOffer(offer) = &mut transaction.operation {
                    offer.amount = amount((offer.amount.get().min(300) * (units / 300)).min(units).max(1));
                }
            }
            world.close(&sent, Intake::Reserve, 1);
            let mut block = proposed(&world, draw);
            if draw.chance(40) {
                // Less than could trade: whatever keeps the balance.
                let nothing = Proposal { trades: Vec::new(), ..block.proposal.clone() };
                block = with_marginal(&world, nothing);
            }
            let market = world.batch.market();
            let potentials: Vec<i64> = (0..3).map(|_| draw.below(5) as i64 * POTENTIAL_ONE / 2).collect();
            let stated = gap_ppb(&potentials, market, &block.proposal, &rules).unwrap();
            let of_nothing = of_nothing(market, &block.proposal);
            let naive = |potentials: &[i64]| of_nothing.unwrap_or_else(|| naive_gap_ppb(potentials, market, &block.proposal, &rules));
            for (stated, naive) in [(stated, naive(&potentials)), (block.certificate.gap_ppb, naive(&block.certificate.potentials))] {
                prop_assert!(stated >= naive && stated - naive <= 2, "{stated} and {naive}");
            }
            let naive = of_nothing.unwrap_or_else(|| naive_unserved_ppb(market, &block.proposal, &rules));
            let unserved = block.certificate.unserved_ppb;
            prop_assert!(unserved.abs_diff(naive) <= 1, "{unserved} and {naive}");
            let cleared = world.clear(&block, 2).unwrap();
            let Quality { gap_ppb, unserved_ppb, set_aside } = cleared.header.quality;
            prop_assert_eq!((gap_ppb, unserved_ppb), (block.certificate.gap_ppb, unserved));
            prop_assert!(set_aside == 0 || block.proposal.prices.contains(&None));
        }
    }
}

/// Shows that the property above sees parts set aside, gaps and unserved shares of all sizes.
#[test]
fn blocks_of_all_qualities_are_seen() {
    let (mut aside, mut gaps, mut unserved) = (0, [0; 3], [0; 3]);
    let class = |ppb: u32| match ppb {
        0 => 0,
        1..PPB_ALL => 1,
        _ => 2,
    };
    for seed in 0..60 {
        let draw = &mut Draw(seed);
        let rules = Rules {
            edition: Edition::NEWEST,
            commission: Commission::NONE,
            mu: Mu::new(3).unwrap(),
            lower_bounds: LowerBounds::BestEffort,
        };
        let mut world = World::with_rules(8, 300, rules);
        let sent = transactions(&world, draw, 60, 1);
        world.close(&sent, Intake::Reserve, 1);
        let block = proposed(&world, draw);
        let quality = world.clear(&block, 1).unwrap().header.quality;
        aside += u32::from(quality.set_aside > 0);
        gaps[class(quality.gap_ppb)] += 1;
        unserved[class(quality.unserved_ppb)] += 1;
    }
    assert!(aside > 0 && gaps.iter().chain(&unserved).all(|count| *count > 0), "{aside} {gaps:?} {unserved:?}");
}

const UNITS: u64 = 1_000_000_000;
/// Five percent of each.
const MOST: QualityMax = QualityMax { gap_ppb: 50_000_000, unserved_ppb: 50_000_000 };

fn rules() -> Rules {
    let (commission, mu) = (Commission::new(15).unwrap(), Mu::new(10).unwrap());
    Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort }
}

fn pair(sell: u16, buy: u16) -> Pair {
    Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }
}

/// Offers of the market's assets `(sell, buy, units, limit in percent)`, one of each account, in a closed batch.
fn closed(offers: &[(u16, u16, u64, u64)], most: QualityMax) -> World {
    let mut world = World::with_quality(offers.len() as u32, UNITS, rules(), most);
    // Assets 1, 2, 0 of the ledger are 0, 1, 2 of the market.
    let of_ledger = |asset: u16| AssetId(u32::from((asset + 1) % 3));
    let sent = |(account, &(sell, buy, units, percent)): (u32, &(u16, u16, u64, u64))| {
        BatchTransaction::new(
            AccountId(account),
            TransactionSeq(1),
            BatchOperation::CreateOffer(CreateOffer {
                market: MARKET,
                sell: of_ledger(sell),
                buy: of_ledger(buy),
                amount: amount(units),
                limit: price(percent, 100),
            }),
        )
    };
    let sent: Vec<BatchTransaction> = (0..).zip(offers).map(sent).collect();
    assert_eq!(world.close(&sent, Intake::Filter, 1).kept_count as usize, offers.len());
    world
}

/// A block at these prices in percent, 0 for none.
fn block(world: &World, prices: [u64; 3], trades: &[(Pair, u64)]) -> ProposedClearing {
    let trade = |&(pair, sold): &(Pair, u64)| PairTrade { pair, sold: amount(sold), bought_by_buy_offers: Amount::ZERO };
    let prices = prices.map(|percent| (percent > 0).then(|| price(percent, 100)));
    with_marginal(world, Proposal { prices: prices.to_vec(), trades: trades.iter().map(trade).collect(), pools: Vec::new() })
}

fn quality(rejected: Result<walras_batch::Cleared, BlockRejected>) -> QualityError {
    match rejected {
        Err(BlockRejected::Quality(error)) => error,
        other => panic!("{other:?} is not refused for its quality"),
    }
}

/// A market of few coarse units, such as shares: forty offers of 25 units each way. A pair's 2,048 units would cover all of them.
fn shares(edition: Edition) -> (World, Rules) {
    let rules = Rules { edition, ..rules() };
    let offers: Vec<_> = (0..80).map(|at| (at % 2, 1 - at % 2, 25, 90)).collect();
    let mut world = World::with_quality(offers.len() as u32, UNITS, rules, MOST);
    let sent = |(account, &(sell, _, units, percent)): (u32, &(u16, u16, u64, u64))| {
        let [sell, buy] = if sell == 0 { [AssetId(1), AssetId(2)] } else { [AssetId(2), AssetId(1)] };
        let limit = price(percent, 100);
        let operation = BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(units), limit });
        BatchTransaction::new(AccountId(account), TransactionSeq(1), operation)
    };
    let sent: Vec<BatchTransaction> = (0..).zip(&offers).map(sent).collect();
    assert_eq!(world.close(&sent, Intake::Filter, 1).kept_count, 80);
    (world, rules)
}

#[test]
fn a_market_of_few_units_can_not_be_left_without_trades() {
    let block_of = |world: &World, sold: u64| block(world, [100, 100, 0], &[(pair(0, 1), sold), (pair(1, 0), sold)]);
    let (mut world, _) = shares(Edition::First);
    let idle = block_of(&world, 0);
    assert_eq!((idle.certificate.gap_ppb, idle.certificate.unserved_ppb), (0, 0), "nothing of 1,000 units counts");
    world.clear(&idle, 1).unwrap();
    // What counts now is all but what the first offer of the other side offers, with the commission: 26 of 1,000 units.
    let (mut world, rules) = shares(Edition::Second);
    let idle = block_of(&world, 0);
    assert_eq!(idle.certificate.unserved_ppb, 974_000_000);
    assert_eq!(naive_unserved_ppb(world.batch.market(), &idle.proposal, &rules), 974_000_000);
    assert!(matches!(quality(world.clear(&idle, 1)), QualityError::GapBeyond { .. } | QualityError::UnservedBeyond { .. }));
    let all = block_of(&world, 1_000);
    assert_eq!(world.clear(&all, 1).unwrap().header.quality.unserved_ppb, 0);
}

/// Two who would trade all they have at par, and one of each side whom any price up to double suits.
const FITTING: [(u16, u16, u64, u64); 4] = [(0, 1, UNITS, 98), (1, 0, UNITS, 98), (0, 1, UNITS / 100, 49), (1, 0, UNITS / 100, 49)];

/// What buys itself `units` of the other asset, after commission.
fn paid(units: u64) -> u64 {
    units - units / 40_000
}

#[test]
fn all_that_fits_trades_and_both_numbers_are_small() {
    let mut world = closed(&FITTING, MOST);
    let all = UNITS + UNITS / 100;
    let block = block(&world, [100, 100, 0], &[(pair(0, 1), all), (pair(1, 0), all)]);
    assert!(assess(world.batch.market(), &block.proposal, &rules(), &MOST).beyond.is_empty());
    let Quality { gap_ppb, unserved_ppb, set_aside } = world.clear(&block, 1).unwrap().header.quality;
    assert!(gap_ppb <= 1 && unserved_ppb == 0 && set_aside == 0, "{gap_ppb} {unserved_ppb} {set_aside}");
}

#[test]
fn half_of_somebodys_offer_can_not_be_withheld_at_good_prices() {
    let mut world = closed(&FITTING, MOST);
    let half = block(&world, [100, 100, 0], &[(pair(0, 1), UNITS / 2), (pair(1, 0), UNITS / 2)]);
    assert_eq!(assess(world.batch.market(), &half.proposal, &rules(), &MOST).beyond, [0]);
    let QualityError::GapBeyond { found, most } = quality(world.clear(&half, 1)) else { panic!("the gap is what is wrong") };
    assert!((500_000_000..520_000_000).contains(&found) && most == MOST.gap_ppb, "{found}");
    // What is left of it counts whatever is left of the other side: the evidence can not make it look less.
    let stated = Certificate { gap_ppb: 0, ..half.certificate.clone() };
    let understated = ProposedClearing { certificate: stated, ..half };
    assert!(matches!(quality(world.clear(&understated, 1)), QualityError::Certificate(_)));
}

#[test]
fn skewed_prices_with_little_volume_leave_much_unserved() {
    let mut world = closed(&FITTING, MOST);
    // At double the price the offers at par of the one side want to trade with nobody: all that can trade does.
    let little = block(&world, [200, 100, 0], &[(pair(0, 1), paid(UNITS / 200)), (pair(1, 0), UNITS / 100)]);
    let Certificate { gap_ppb, unserved_ppb, .. } = little.certificate;
    assert!(gap_ppb < 1_000_000, "nothing more can trade at these prices: {gap_ppb}");
    assert!(unserved_ppb > 990_000_000, "{unserved_ppb}");
    let error = quality(world.clear(&little, 1));
    assert_eq!(error, QualityError::UnservedBeyond { found: unserved_ppb, most: MOST.unserved_ppb });
    for wrong in [unserved_ppb - 1, unserved_ppb + 1, 0, MOST.unserved_ppb] {
        let certificate = Certificate { unserved_ppb: wrong, ..little.certificate.clone() };
        let misstated = ProposedClearing { certificate, ..little.clone() };
        assert_eq!(quality(world.clear(&misstated, 1)), QualityError::Unserved { stated: wrong, found: unserved_ppb });
    }
    let omitted = ProposedClearing { certificate: Certificate::default(), ..little };
    assert!(matches!(quality(world.clear(&omitted, 1)), QualityError::Certificate(_)));
}

#[test]
fn an_asset_can_not_be_left_out_nor_hidden_behind_others() {
    // Asset 2 trades a thousandth of what the others do.
    let small = UNITS / 1_000;
    let offers = [(0, 1, UNITS, 98), (1, 0, UNITS, 98), (0, 2, small, 98), (2, 0, small, 98)];
    let mut world = closed(&offers, MOST);
    let both = [(pair(0, 1), UNITS), (pair(1, 0), UNITS)];
    let unpriced = block(&world, [100, 100, 0], &both);
    assert_eq!(quality(world.clear(&unpriced, 1)), QualityError::Unpriced(AssetIndex(2)));
    // Priced at half and at double nobody trades it: of all that is clearly in the money that is little, of those who want it all.
    for (skewed, side) in [(50, "buy"), (200, "sell")] {
        let skewed = block(&world, [100, 100, skewed], &both);
        // But for what whole units can not tell.
        let QualityError::UnservedBeyond { found, .. } = quality(world.clear(&skewed, 1)) else { panic!("those who {side} it") };
        assert!(found > 990_000_000, "those who {side} it: {found}");
    }
    // At a good price and without trades, nothing of it is served either. The gap of all is small.
    let idle = block(&world, [100, 100, 100], &both);
    assert!(idle.certificate.gap_ppb < MOST.gap_ppb, "{:?}", idle.certificate);
    assert!(matches!(quality(world.clear(&idle, 1)), QualityError::UnservedBeyond { found: 990_000_000.., .. }));
    let (go, back) = ((pair(0, 2), small), (pair(2, 0), small));
    let full = block(&world, [100, 100, 100], &[both[0], go, both[1], back]);
    assert_eq!(world.clear(&full, 1).unwrap().header.quality.unserved_ppb, 0);
}

/// A leader in league with a holder of an asset: what all buyers of it could take is less than 2^-10 of the one offer that sells it, so
/// the holder loses next to nothing when the asset is left out. The buyers would lose all, so it may not be.
#[test]
fn an_asset_can_not_be_left_out_for_the_sake_of_a_giant() {
    let small = UNITS / 4_096;
    let offers = [(0, 1, UNITS, 98), (1, 0, UNITS, 98), (2, 0, UNITS, 2_000), (0, 2, small, 4)];
    let mut world = closed(&offers, MOST);
    let both = [(pair(0, 1), UNITS), (pair(1, 0), UNITS)];
    let without = block(&world, [100, 100, 0], &both);
    assert_eq!(assess(world.batch.market(), &without.proposal, &rules(), &MOST).beyond, [0]);
    assert_eq!(quality(world.clear(&without, 1)), QualityError::Unpriced(AssetIndex(2)));
    // A little above the giant's limit they are served, and the giant, whose limit is nearly met, counts as served.
    let price = 2_001;
    let [go, back] = [(pair(0, 2), small), (pair(2, 0), small * 100 / price + 1)];
    let with = block(&world, [100, 100, price], &[both[0], go, both[1], back]);
    let Quality { unserved_ppb, set_aside, .. } = world.clear(&with, 1).unwrap().header.quality;
    assert_eq!((unserved_ppb, set_aside), (0, 0));
}

#[test]
fn nothing_is_always_valid_and_says_so() {
    let mut world = closed(&FITTING, QualityMax { gap_ppb: 0, unserved_ppb: 0 });
    let nothing = ProposedClearing::of_nothing(world.batch.market());
    assert_eq!(nothing.certificate, Certificate::find(world.batch.market(), &nothing.proposal, &rules()));
    let little = Certificate { gap_ppb: 0, unserved_ppb: 0, ..nothing.certificate.clone() };
    let untrue = ProposedClearing { certificate: little, ..nothing.clone() };
    assert!(matches!(quality(world.clear(&untrue, 1)), QualityError::Certificate(_)));
    // Prices without trades are no empty clearing.
    let idle = block(&world, [100, 100, 0], &[]);
    assert!(matches!(quality(world.clear(&idle, 1)), QualityError::GapBeyond { .. }));
    let cleared = world.clear(&nothing, 1).unwrap();
    assert_eq!(cleared.header.quality, Quality { gap_ppb: PPB_ALL, unserved_ppb: PPB_ALL, set_aside: 2 });
    world.check();
    // Where no two offers fit, nothing is missing.
    let mut world = closed(&[(0, 1, UNITS, 98), (1, 2, UNITS, 98)], QualityMax { gap_ppb: 0, unserved_ppb: 0 });
    let nothing = ProposedClearing::of_nothing(world.batch.market());
    assert_eq!(world.clear(&nothing, 1).unwrap().header.quality, Quality::default());
}
