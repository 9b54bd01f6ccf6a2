//! Every experiment at its small size: its answers, never its times. A program of its own, because the profile samples the whole process.

use walras_experiments_raft_2021::answers::{Answer, agreed};
use walras_experiments_raft_2021::baseline::Baseline;
use walras_experiments_raft_2021::books::{Book, Contender, Trade};
use walras_experiments_raft_2021::draw::limit_order;
use walras_experiments_raft_2021::large_sell::{self, SELL_LOTS, SIZES_SMALL};
use walras_experiments_raft_2021::matching_pair::{self, Setup};
use walras_experiments_raft_2021::measure::Stopwatch;
use walras_experiments_raft_2021::streaming::{self, Calls};
use walras_experiments_raft_2021::{SEED, peer, profile, record};
use walras_order_book::{Art, Ladder, OrderBook};
use walras_types::Side;

/// Section 2.3.2: 150 at 19.5 meets the bids of figure 2.2. Prices in quarters; the bids of 100 and 10 stand at the same price.
fn worked_example<B: Book>() {
    let mut book = B::with_room(8);
    for (id, price, size) in [(1, 80, 20), (2, 78, 100), (3, 80, 50), (4, 79, 30), (5, 78, 10)] {
        book.add(&limit_order(id, Side::Buy, price, size));
    }
    let mut trades = Vec::new();
    book.submit(&limit_order(6, Side::Sell, 78, 150), &mut trades);
    let answered: Vec<_> = trades.iter().map(|trade: &Trade| (trade.buy_id, trade.price.get(), trade.size.get())).collect();
    assert_eq!(answered, [(1, 80, 20), (3, 80, 50), (4, 79, 30), (2, 78, 50)]);
    let left: Vec<_> = book.listing().iter().map(|order| (order.id, order.size.get())).collect();
    assert_eq!(left, [(2, 50), (5, 10)]);
}

#[test]
fn every_book_gives_the_worked_example() {
    worked_example::<Baseline>();
    worked_example::<OrderBook<Ladder>>();
    worked_example::<OrderBook<Art>>();
}

#[test]
fn one_pair_trades_in_every_book() {
    let outcome = matching_pair::run(&Setup::SMALL, SEED, &Stopwatch::calibrated()).unwrap();
    assert_eq!(outcome.fills, 1);
    for latencies in &outcome.latencies {
        assert_eq!(latencies.first_ns.len() as u64, Setup::SMALL.iterations);
        assert_eq!(latencies.means_ns.len() as u64, Setup::SMALL.iterations);
    }
    let record = record::matching_pair(&Setup::SMALL, &outcome).unwrap();
    assert_eq!(record.iterations_csv.lines().count(), 1 + 4 * Setup::SMALL.iterations as usize);
    assert!(record.plot_svg.contains("8.7 us"));
}

#[test]
fn the_peers_stream_says_what_ours_did() {
    let orders = matching_pair::orders_of(&peer::SMALL, SEED, 0);
    let (latencies, answer) = matching_pair::every_pair(&orders, &Stopwatch::calibrated()).unwrap();
    let (resting, pairs) = (2 * (peer::SMALL.orders_per_side - 1), 1 + peer::SMALL.pairs_per_iteration);
    let records = peer::records(&orders);
    assert_eq!(records.len() as u64, 32 * (resting + 2 * pairs));
    // The last: an immediate-or-cancel ask, user and id the same, at 1,000.
    let last = &records[records.len() - 32..];
    assert_eq!(last[..4], [1, 0, 0, 0]);
    assert_eq!(last[8..16], (resting + 2 * pairs).to_le_bytes());
    assert_eq!(last[16..24], 1_000_i64.to_le_bytes());
    let expectation = peer::expectation(&answer);
    assert!(expectation.starts_with(&format!("trades {pairs} volume {}\n", answer.lots_traded())), "{expectation}");
    let figures = peer::Percentiles { mean: 1.0, p50: 1.0, p90: 1.0, p99: 1.0, p999: 1.0, p9999: 1.0, max: 1.0 };
    let outcome = peer::Outcome { peer: figures, peer_version: "none".into(), peer_timer_ns: 1.0, latencies_ns: latencies };
    assert!(record::peer(&peer::SMALL, &outcome).unwrap().plot_svg.contains("exchange-core none"));
}

#[test]
fn a_large_sell_takes_the_same_bids_from_every_book() {
    let stopwatch = Stopwatch::calibrated();
    let outcomes: Vec<_> =
        SIZES_SMALL.iter().map(|size| large_sell::run(*size, large_sell::ITERATIONS_SMALL, SEED, &stopwatch).unwrap()).collect();
    for outcome in &outcomes {
        for met in &outcome.met {
            // About half of either side is left by clearing.
            let expected = outcome.orders_per_side as usize / 2;
            assert!((expected / 2..expected * 3 / 2).contains(&met.bids), "{met:?}");
            assert!((expected / 2..expected * 3 / 2).contains(&met.asks), "{met:?}");
            if outcome.orders_per_side == 100 {
                assert_eq!(met.fills, met.bids, "too few bids for the sell: it takes them all");
                assert!(met.lots < SELL_LOTS, "{met:?}");
            } else {
                assert_eq!(met.lots, SELL_LOTS, "enough bids for the sell");
                assert!((70..130).contains(&met.fills), "{met:?}");
            }
        }
    }
    let record = record::sizes(&outcomes).unwrap();
    assert_eq!(record.result["ours"].as_array().unwrap().len(), SIZES_SMALL.len());
    assert!(record::detail(&outcomes[0]).unwrap().plot_svg.contains("radix tree"));
}

#[test]
fn the_same_seed_meets_the_same_orders() {
    let stopwatch = Stopwatch::calibrated();
    let met = |seed| large_sell::run(100, 2, seed, &stopwatch).unwrap().met;
    assert_eq!(met(1), met(1));
    assert_ne!(met(1), met(2));
}

#[test]
fn books_that_disagree_fail_the_run() {
    let trade = |size| {
        let order = limit_order(1, Side::Buy, 10, size);
        Trade { buy_id: 1, sell_id: 2, price: order.price, size: order.size }
    };
    let right = Answer { lots_cleared: 3, trades: vec![trade(5)], left: vec![limit_order(4, Side::Buy, 9, 1)] };
    let wrong = [
        Answer { lots_cleared: 4, ..right.clone() },
        Answer { trades: vec![trade(4)], ..right.clone() },
        Answer { left: Vec::new(), ..right.clone() },
    ];
    assert!(agreed(&[(Contender::Baseline, right.clone()), (Contender::Ladder, right.clone())]).is_ok());
    for answer in wrong {
        assert!(agreed(&[(Contender::Baseline, right.clone()), (Contender::Ladder, answer)]).is_err());
    }
    assert!(agreed(&[]).is_err());
}

#[test]
fn the_profile_of_an_order_names_what_it_ran_in() {
    let profiles = profile::run(&profile::Setup::SMALL, SEED, &Stopwatch::calibrated()).unwrap();
    assert_eq!(profiles.len(), profile::CONTENDERS.len());
    for profile in &profiles {
        assert!(profile.order.samples > 0 && !profile.order.busiest().is_empty(), "{profile:?}");
        assert!(profile.trades_per_order > 0.3, "most orders trade: {profile:?}");
    }
    let adding = profiles[0].adding_share.unwrap();
    assert!((0.05..0.95).contains(&adding), "{adding}");
    let record = record::profile(&profile::Setup::SMALL, &profiles).unwrap();
    assert!(record.plot_svg.contains("ns an order") && record.iterations_csv.lines().count() > profiles.len());
    assert_eq!(record.result["books"][0]["parts"]["published_adding_percent"], 65);
}

#[test]
fn calls_of_each_kind_are_set_against_each_other() {
    let outcome = |replicas, calls, per_second: f64| {
        let per_second = vec![per_second, 3.0 * per_second, 2.0 * per_second];
        streaming::Outcome { replicas, calls, per_second }
    };
    let outcomes: Vec<_> = [1, 3]
        .into_iter()
        .flat_map(|replicas| Calls::ALL.into_iter().zip([100.0, 500.0, 40_000.0]).map(move |(calls, rate)| (replicas, calls, rate)))
        .map(|(replicas, calls, rate)| outcome(replicas, calls, rate))
        .collect();
    let record = record::streaming(&streaming::Setup::SMALL, &outcomes).unwrap();
    let venues = record.result["venues"].as_array().unwrap();
    assert_eq!((venues.len(), &venues[1]["binary_one_at_a_time_per_s"]), (2, &1_000.0.into()), "the median of three trials");
    assert_eq!(venues[0]["stream_over_one_at_a_time"], 80.0);
    assert_eq!(record.iterations_csv.lines().count(), 1 + 3 * outcomes.len());
}
