//! The data that an account gets about its offers is enough to cancel them, also after a partial trade.

use walras_market_data::{AccountDelta, MarketData, OfferChange};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchPrice, Commission, Intake, LogIndex, LowerBounds, Mu, QualityMax, Rounding,
    Symbol, TimeNs, TransactionSeq, effective_limit,
};
use walras_wire::{BatchClosed, BatchEvent, BatchMarketEvent, BatchMarketSpec, Event, OfferOpened, OfferTraded};

#[test]
fn a_trade_reports_the_limit_of_the_rest() {
    let (market, account, sequence) = (BatchMarketId(0), AccountId(3), TransactionSeq(8));
    let (sell, buy) = (AssetId(0), AssetId(1));
    let amount = |units| Amount::new(units).unwrap();
    let stated = BatchPrice::from_decimal("0.3", Rounding::Down).unwrap();
    let limit = |units| effective_limit(stated, amount(units)).unwrap();
    let spec = BatchMarketSpec {
        market,
        symbol: Symbol::new("MAIN").unwrap(),
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::USUAL,
        intake: Intake::Filter,
        interval_ns: 1_000_000,
        transactions_max: 10,
        domain: [0; 32],
    };
    let traded = |sold, left| {
        let (sold, bought, left) = (amount(sold), amount(sold), amount(left));
        Event::Batch(BatchEvent::OfferTraded(OfferTraded { market, account, sequence, sell, buy, sold, bought, left }))
    };
    let opened = OfferOpened { market, account, sequence, sell, buy, amount: amount(10), stated, limit: limit(10), tie: 5 };
    let events = [
        Event::BatchMarket(BatchMarketEvent::Created(spec)),
        Event::Batch(BatchEvent::Closed(BatchClosed { market, block: 1, batch_hash: [0; 32], kept: 1, dropped: 0 })),
        Event::Batch(BatchEvent::OfferOpened(opened)),
        traded(7, 3),
        traded(1, 2),
        traded(2, 0),
    ];
    let (mut data, mut keys) = (MarketData::new(), Vec::new());
    for (at, event) in (1..).zip(&events) {
        data.on_event(LogIndex(at), TimeNs(at), event).unwrap();
        let mut deltas = Vec::new();
        data.private_deltas(event, &mut deltas);
        for (of, delta) in deltas {
            assert_eq!(of, account);
            let AccountDelta::Offer(change) = delta else { panic!("{delta:?}") };
            // What the venue's own list says at that moment is what a cancel has to name.
            let stands = data.offers().of(account).next().map(|offer| offer.limit);
            keys.push(match change {
                OfferChange::Opened(offer) => (Some(offer.limit), stands),
                OfferChange::Traded { limit, .. } => (limit, stands),
                OfferChange::Cancelled { .. } | OfferChange::Dropped { .. } => panic!("{change:?}"),
            });
        }
    }
    let limits = [Some(limit(10)), Some(limit(3)), Some(limit(2)), None];
    assert_eq!(keys, limits.map(|limit| (limit, limit)));
    assert!(limit(10) < limit(3) && limit(3) < limit(2), "each is another");
}
