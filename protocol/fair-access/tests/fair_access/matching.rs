//! Order-matching fairness, next to a model that forgets nothing.

use proptest::prelude::*;
use walras_fair_access::matching::{MatchingFairness, ORDERS_MAX};
use walras_types::{InstrumentId, OrderId, PriceTicks, Side};

const HORIZON_NS: u64 = 300;

/// All orders that came and all that matched, in lists.
#[derive(Default)]
struct Model {
    came: Vec<(InstrumentId, OrderId, Side, i64, u64)>,
    matched: Vec<(InstrumentId, Side, i64, u64)>,
    unfair: u64,
}

impl Model {
    fn arrives(&mut self, order: (InstrumentId, OrderId, Side, i64, u64)) -> bool {
        let (instrument, _, side, price, stamp_ns) = order;
        let is_unfair =
            self.matched.iter().any(|other| (other.0, other.1, other.2) == (instrument, side, price) && other.3 > stamp_ns);
        self.came.push(order);
        self.unfair += u64::from(is_unfair);
        is_unfair
    }

    fn trades(&mut self, instrument: InstrumentId, orders: [OrderId; 2]) {
        for id in orders {
            let order = self.came.iter().rfind(|order| (order.0, order.1) == (instrument, id));
            self.matched.extend(order.map(|&(instrument, _, side, price, stamp_ns)| (instrument, side, price, stamp_ns)));
        }
    }
}

fn price(ticks: i64) -> PriceTicks {
    PriceTicks::new(ticks).expect("a price of the test")
}

#[test]
fn only_an_order_of_its_price_that_matched_before_it_makes_one_unfair() {
    let mut fairness = MatchingFairness::new(HORIZON_NS);
    let at = |number| (InstrumentId(0), OrderId(number));
    assert!(!fairness.arrives(at(1), (Side::Sell, price(100)), 50));
    assert!(!fairness.arrives(at(2), (Side::Buy, price(100)), 60));
    fairness.trades(InstrumentId(0), [OrderId(1), OrderId(2)]);
    assert!(fairness.arrives(at(3), (Side::Buy, price(100)), 55), "a later buy at 100 has matched");
    assert!(!fairness.arrives(at(4), (Side::Buy, price(101)), 40), "out of sequence, and nothing at its price was taken");
    assert!(!fairness.arrives(at(5), (Side::Sell, price(100)), 55), "the sell that matched was earlier");
    assert!(fairness.arrives(at(6), (Side::Sell, price(100)), 49));
    assert!(!fairness.arrives((InstrumentId(1), OrderId(1)), (Side::Buy, price(100)), 1));
    assert!(!fairness.arrives(at(7), (Side::Buy, price(100)), 60), "as late as the one that matched");
    let counts = fairness.counts();
    assert_eq!((counts.matched, counts.unfair, counts.recent_ppm), (2, 2, 1_000_000));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut fairness = MatchingFairness::new(u64::MAX);
    for number in 0..2 * ORDERS_MAX as u64 {
        fairness.arrives((InstrumentId(0), OrderId(number)), (Side::Buy, price(5)), 1_000 + number);
    }
    assert_eq!(fairness.len(), ORDERS_MAX);
    let mut fairness = MatchingFairness::new(HORIZON_NS);
    for number in 0..10_000 {
        fairness.arrives((InstrumentId(0), OrderId(number)), (Side::Buy, price(5)), number * 10);
    }
    assert_eq!(fairness.len() as u64, HORIZON_NS / 10 + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Orders come by stamps that are up to a horizon late, some again with another price, and trade with any that came, however old.
    #[test]
    fn it_judges_as_a_model_that_forgets_nothing(
        steps in prop::collection::vec((0_u64..40, 0_u64..HORIZON_NS, 0_u32..2, 0_i64..3, any::<bool>(), 0_usize..60, 0_u8..4), 1..400),
    ) {
        let (mut fairness, mut model, mut now_ns, mut latest_ns, mut next) = (MatchingFairness::new(HORIZON_NS), Model::default(), 0, 0, 0);
        for (later_ns, late_ns, instrument, ticks, is_buy, back, kind) in steps {
            now_ns += later_ns;
            let came = model.came.len();
            let earlier = came.checked_sub(back + 1).map(|at| model.came[at]);
            match (kind, earlier) {
                (0, Some((instrument, id, ..))) if came > 1 => {
                    let with = model.came.iter().rev().skip(back / 2).find(|order| order.0 == instrument && order.1 != id);
                    let Some(orders) = with.map(|with| [id, with.1]) else { continue };
                    fairness.trades(instrument, orders);
                    model.trades(instrument, orders);
                }
                (kind, earlier) => {
                    // None comes whose stamp is further than the horizon before the latest.
                    let stamp_ns = (now_ns + HORIZON_NS - late_ns).max(u64::saturating_sub(latest_ns, HORIZON_NS));
                    latest_ns = stamp_ns.max(latest_ns);
                    let side = if is_buy { Side::Buy } else { Side::Sell };
                    let (instrument, id) = match earlier.filter(|_| kind == 1) {
                        Some((instrument, id, ..)) => (instrument, id),
                        None => { next += 1; (InstrumentId(instrument), OrderId(next)) }
                    };
                    let is_unfair = fairness.arrives((instrument, id), (side, price(ticks + 1)), stamp_ns);
                    prop_assert_eq!(is_unfair, model.arrives((instrument, id, side, ticks + 1, stamp_ns)));
                }
            }
        }
        prop_assert_eq!(fairness.counts().unfair, model.unfair);
        prop_assert_eq!(fairness.counts().matched, 2 * (fairness.counts().matched / 2));
    }
}
