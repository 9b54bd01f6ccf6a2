//! Amounts for lanes that trade in any way that the trait allows: nothing is short, nothing is above its bound, and it ends.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use std::cell::Cell;

use proptest::prelude::*;
use walras_clearing::{Edition, LowerBounds, Rules, verify};
use walras_trade_amounts::limits::NODE_COUNT_MAX;
use walras_trade_amounts::synthetic::{bounds_near_equilibrium, market_near_equilibrium};
use walras_trade_amounts::{
    Amounts, AmountsFinder, Answer, CirculationSolver, Fills, Lane, LaneError, LaneFill, LaneMarket, Network, Relaxed, propose,
    propose_until, solve_linear_program,
};
use walras_types::{Amount, BatchPrice, Commission, Mu, NetRate};

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(value: f64) -> Option<BatchPrice> {
    BatchPrice::from_bits(value.to_bits()).ok()
}

/// A lane that sells only multiples of `grain`, or all it has; it buys rounded down, or as pools do up.
#[derive(Clone, Copy, Debug)]
struct Grained {
    lane: Lane,
    grain: u64,
    rounds_up: bool,
}

struct GrainedLanes<'a> {
    lanes: &'a [Grained],
    prices: &'a [Option<BatchPrice>],
    commission: Commission,
}

impl Fills for GrainedLanes<'_> {
    fn at_most(&self, lane: usize, sold_max: Amount) -> LaneFill {
        let Grained { lane, grain, rounds_up } = self.lanes[lane];
        assert!(sold_max <= lane.upper, "{sold_max} of {lane:?}");
        let sold = if sold_max == lane.upper { sold_max } else { amount(sold_max.get() / grain * grain) };
        let price = |asset: u32| self.prices[asset as usize].unwrap();
        let rate = NetRate::new(price(lane.sell), price(lane.buy), self.commission).unwrap();
        let bought = if rounds_up { rate.bought_up(sold) } else { rate.bought_down(sold) };
        bought.map_or_else(LaneFill::default, |bought| LaneFill { sold, bought })
    }
}

fn markets() -> impl Strategy<Value = (Vec<Grained>, Vec<Option<BatchPrice>>, Commission)> {
    (2..=6_u32).prop_flat_map(|asset_count| {
        let units = || prop_oneof![3 => 0..10_u64, 3 => 0..100_000_u64, 1 => 0..1_u64 << 55];
        let grain = prop_oneof![4 => Just(1_u64), 1 => 1..10_u64, 1 => 1..u64::MAX >> 2];
        let lane = (0..asset_count, 1..asset_count, units(), units(), grain, prop::bool::weighted(0.2));
        let exponent = prop_oneof![3 => -1.0..1.0_f64, 2 => -20.0..20.0_f64, 1 => -120.0..120.0_f64];
        let prices = prop::collection::vec(exponent.prop_map(|exponent| price(exponent.exp2())), asset_count as usize);
        let commission = prop_oneof![Just(Commission::NONE), (1..=30_u8).prop_map(|k| Commission::new(k).unwrap())];
        (prop::collection::vec(lane, 0..30), prices, commission).prop_map(move |(lanes, prices, commission)| {
            let mut lanes: Vec<Grained> = lanes
                .into_iter()
                .map(|(sell, step, a, b, grain, rounds_up)| {
                    let buy = (sell + step) % asset_count;
                    let rate = NetRate::new(prices[sell as usize].unwrap(), prices[buy as usize].unwrap(), commission).unwrap();
                    // Bounds whose proceeds are amounts, as the trait's callers see to.
                    let payable = |units: u64| rate.bought_up(amount(units)).map_or(Amount::ZERO, |_| amount(units));
                    let lane = Lane { sell, buy, lower: payable(a).min(payable(b)), upper: payable(a).max(payable(b)) };
                    Grained { lane, grain, rounds_up }
                })
                .collect();
            lanes.sort_by_key(|grained| (grained.lane.sell, grained.lane.buy));
            (lanes, prices, commission)
        })
    })
}

fn find(finder: &mut AmountsFinder, lanes: &[Grained], prices: &[Option<BatchPrice>], commission: Commission) -> Amounts {
    let plain: Vec<Lane> = lanes.iter().map(|grained| grained.lane).collect();
    let market = LaneMarket::new(prices, &plain, commission).unwrap();
    finder.find(&market, &GrainedLanes { lanes, prices, commission })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_is_ever_short((lanes, prices, commission) in markets(), (others, other_prices, other_commission) in markets()) {
        let amounts = find(&mut AmountsFinder::new(), &lanes, &prices, commission);
        let mut balance = vec![0_i128; prices.len()];
        for (grained, fill) in lanes.iter().zip(&amounts.fills) {
            prop_assert!(fill.sold <= grained.lane.upper);
            balance[grained.lane.sell as usize] += i128::from(fill.sold.get());
            balance[grained.lane.buy as usize] -= i128::from(fill.bought.get());
        }
        prop_assert!(balance.iter().all(|&balance| balance >= 0), "{balance:?} {amounts:?}");
        let below = lanes.iter().zip(&amounts.fills).filter(|(grained, fill)| fill.sold < grained.lane.lower).count();
        prop_assert_eq!(amounts.below_lower_count, below);
        // The same again, whatever the finder did before.
        let mut used = AmountsFinder::new();
        find(&mut used, &others, &other_prices, other_commission);
        prop_assert_eq!(find(&mut used, &lanes, &prices, commission), amounts);
    }
}

/// Where units are a fine measure, rounding costs next to nothing and no lower bound, with and without commission.
#[test]
fn whole_units_cost_next_to_nothing_near_an_equilibrium() {
    for (node_count, offer_count) in [(5, 2_000), (20, 5_000)] {
        for eps in [0, 15, 20] {
            for seed in 0..10 {
                let (market, prices) = market_near_equilibrium(node_count, offer_count, 10, 0, seed);
                let commission = Commission::new(eps).unwrap_or(Commission::NONE);
                let rules =
                    Rules { edition: Edition::NEWEST, commission, mu: Mu::new(10).unwrap(), lower_bounds: LowerBounds::Required };
                let proposed = propose(&mut AmountsFinder::new(), &market, &prices, &rules);
                let [part] = &proposed.amounts.parts[..] else { panic!("all pairs trade: one part") };
                assert!(part.assets_removed.is_empty() && part.given_up as f64 <= 1e-6 * part.planned as f64, "{part:?}");
                if part.relaxed == Relaxed::No {
                    assert!(verify(&market, &proposed.proposal, &rules).is_ok(), "{part:?}");
                }
                assert!(part.relaxed == Relaxed::No || node_count == 5, "{part:?}");
            }
        }
    }
}

/// Where an offer is one unit and units are worth up to a million times each other, hardly anything balances. It ends, and in order.
#[test]
fn coarse_units_end_in_an_accepted_proposal() {
    let rules = Rules {
        // By exact limits all of these balance.
        edition: Edition::First,
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let mut removed_count = 0;
    for seed in 0..60 {
        let (market, prices) = market_near_equilibrium(20, 2_000, 10, 20, seed);
        let proposed = propose(&mut AmountsFinder::new(), &market, &prices, &rules);
        assert!(verify(&market, &proposed.proposal, &rules).is_ok());
        removed_count += proposed.amounts.parts.iter().map(|part| part.assets_removed.len()).sum::<usize>();
    }
    assert!(removed_count > 0, "no market of this test loses an asset: make its units coarser, or it tests nothing");
}

/// The allowance of what must be bought is between no commission and the linear program with all of it, and near the latter.
#[test]
fn the_allowance_finds_most_of_what_the_commission_is_worth() {
    for mu_exponent in [10, 15] {
        let arcs = bounds_near_equilibrium(12, 50_000, mu_exponent, 3);
        let mut allowance = vec![0_i64; 12];
        arcs.iter().for_each(|arc| allowance[arc.to as usize] -= arc.lower);
        allowance.iter_mut().for_each(|value| *value = -(-*value >> 15));
        let value = |surplus_min: &[i64]| match CirculationSolver::new().solve(&Network::new(&arcs, surplus_min).unwrap()) {
            Answer::Best(best) => best.value as f64,
            Answer::Infeasible(cut) => panic!("{cut:?}"),
        };
        let (without, with) = (value(&[0; 12]), value(&allowance));
        let linear = solve_linear_program(&Network::new(&arcs, &[0; 12]).unwrap(), 0.5_f64.powi(15)).unwrap().value;
        assert!(without < with && with <= linear + 1.0, "{without} {with} {linear}");
        assert!(with - without >= 0.9 * (linear - without), "{without} {with} {linear}");
    }
}

#[test]
fn what_is_no_market_is_refused() {
    let lane = |sell, buy, lower, upper| Lane { sell, buy, lower: amount(lower), upper: amount(upper) };
    let prices = [price(1.0), price(2.0), None];
    let new = |lanes: &[Lane]| LaneMarket::new(&prices, lanes, Commission::NONE).map(|_| ()).unwrap_err();
    assert_eq!(new(&[lane(0, 3, 0, 1)]), LaneError::Assets { lane: 0 });
    assert_eq!(new(&[lane(1, 1, 0, 1)]), LaneError::Assets { lane: 0 });
    assert_eq!(new(&[lane(0, 1, 0, 1), lane(0, 2, 0, 1)]), LaneError::Unpriced { lane: 1 });
    assert_eq!(new(&[lane(0, 1, 2, 1)]), LaneError::Bounds { lane: 0 });
    assert_eq!(new(&[lane(1, 0, 0, 1), lane(0, 1, 0, 1)]), LaneError::Order { lane: 1 });
    // What cannot trade needs no price.
    assert!(LaneMarket::new(&prices, &[lane(0, 2, 0, 0)], Commission::NONE).is_ok());
}

/// More assets than a network holds, all in one part: nothing trades, and the report says why.
#[test]
fn too_many_assets_in_one_part() {
    let asset_count = NODE_COUNT_MAX as u32 + 1;
    let ring = |sell: u32| Lane { sell, buy: (sell + 1) % asset_count, lower: Amount::ZERO, upper: amount(5) };
    let lanes: Vec<Grained> = (0..asset_count).map(|sell| Grained { lane: ring(sell), grain: 1, rounds_up: false }).collect();
    let prices = vec![price(1.0); asset_count as usize];
    let amounts = find(&mut AmountsFinder::new(), &lanes, &prices, Commission::NONE);
    assert_eq!(amounts.parts[0].relaxed, Relaxed::TooManyAssets);
    assert!(amounts.fills.iter().all(|fill| fill.sold.is_zero()));
}

/// At any look at the clock: what is found by then conserves every asset, other parts trade nothing, and the clock is hardly asked
/// again.
#[test]
fn the_search_ends_when_the_clock_says_so() {
    let (market, prices) = market_near_equilibrium(12, 2_000, 10, 0, 1);
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let looks = Cell::new(0_u32);
    let clock = |strikes_at: u32| {
        looks.set(0);
        let looks = &looks;
        move || {
            looks.set(looks.get() + 1);
            looks.get() > strikes_at
        }
    };
    let all = propose_until(&mut AmountsFinder::new(), &market, &prices, &rules, &clock(u32::MAX));
    let looks_in_all = looks.get();
    assert!(looks_in_all > 0 && !all.proposal.trades.is_empty());
    for strikes_at in 0..looks_in_all {
        let some = propose_until(&mut AmountsFinder::new(), &market, &prices, &rules, &clock(strikes_at));
        assert!(looks.get() <= strikes_at + 20, "{} looks, the deadline was at {strikes_at}", looks.get());
        verify(&market, &some.proposal, &rules).unwrap();
        assert!(some.amounts.parts.iter().any(|part| part.relaxed == Relaxed::OutOfTime || !part.assets_removed.is_empty()));
    }
}
