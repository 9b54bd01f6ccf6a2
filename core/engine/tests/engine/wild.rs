//! Anything at all: values from the whole range of their types. Every command ends in events; no sum is ever off.

use proptest::collection::vec;
use proptest::prelude::*;
use walras_types::limits::*;
use walras_types::*;
use walras_wire::*;

use crate::generate;
use crate::venue::{MapIndex, Venue, opening, phase, spec};

/// Small numbers, round ones, and those around every bound that there is.
fn number() -> impl Strategy<Value = u64> {
    const EDGES: [u64; 10] =
        [0, 1, SIZE_LOTS_MAX, SIZE_LOTS_MAX + 1, PRICE_TICKS_MAX as u64, UNITS_MAX, AMOUNT_MAX / 2, AMOUNT_MAX, 1 << 62, u64::MAX];
    prop_oneof![
        4 => 0..12u64,
        2 => (0..64u32).prop_map(|bit| 1 << bit),
        4 => (prop::sample::select(EDGES.to_vec()), 0..3u64).prop_map(|(edge, by)| edge.saturating_sub(by)),
        1 => any::<u64>(),
    ]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![30 => 0..3u32, 1 => any::<u32>()]
}

fn price() -> impl Strategy<Value = PriceTicks> {
    number().prop_map(|ticks| PriceTicks::saturating(i64::try_from(ticks).unwrap_or(i64::MAX)))
}

fn size() -> impl Strategy<Value = SizeLots> {
    number().prop_map(SizeLots::new)
}

fn amount() -> impl Strategy<Value = Amount> {
    number().prop_map(|units| Amount::new(units.min(AMOUNT_MAX)).unwrap())
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn trail() -> impl Strategy<Value = Trail> {
    let distance = || number().prop_map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    prop_oneof![distance().prop_map(Trail::Ticks), distance().prop_map(Trail::Ppm), (1..1_000_000u32).prop_map(Trail::Ppm)]
}

fn terms() -> impl Strategy<Value = OrderTerms> {
    let post_only = prop_oneof![4 => Just(PostOnly::Off), 1 => Just(PostOnly::Reject), 1 => Just(PostOnly::Reprice)];
    let order_type = prop_oneof![
        5 => (price(), post_only).prop_map(|(price, post_only)| OrderType::Limit { price, post_only }),
        1 => Just(OrderType::Market),
        1 => price().prop_map(|trigger| OrderType::Stop { trigger }),
        1 => (price(), price()).prop_map(|(trigger, price)| OrderType::StopLimit { trigger, price }),
        1 => price().prop_map(|trigger| OrderType::TakeProfit { trigger }),
        1 => (price(), price()).prop_map(|(trigger, price)| OrderType::TakeProfitLimit { trigger, price }),
        1 => trail().prop_map(|trail| OrderType::TrailingStop { trail }),
        1 => (trail(), price()).prop_map(|(trail, price)| OrderType::TrailingStopLimit { trail, price }),
    ];
    let time_in_force = prop_oneof![
        4 => Just(TimeInForce::GoodTillCancel),
        1 => Just(TimeInForce::Day),
        1 => number().prop_map(|time| TimeInForce::GoodTill(TimeNs(time))),
        2 => Just(TimeInForce::ImmediateOrCancel),
        1 => Just(TimeInForce::FillOrKill),
    ];
    let display =
        prop_oneof![4 => Just(Display::Full), 1 => size().prop_map(|peak| Display::Iceberg { peak }), 1 => Just(Display::Hidden)];
    let self_trade = prop::sample::select(vec![
        SelfTrade::CancelNewest,
        SelfTrade::CancelOldest,
        SelfTrade::CancelBoth,
        SelfTrade::Decrement,
        SelfTrade::Allow,
    ]);
    (side(), size(), order_type, time_in_force, display, prop::option::weighted(0.1, size()), self_trade).prop_map(
        |(side, size, order_type, time_in_force, display, min_size, self_trade)| OrderTerms {
            side,
            size,
            order_type,
            time_in_force,
            display,
            min_size,
            self_trade,
        },
    )
}

fn limits() -> impl Strategy<Value = RiskLimits> {
    let any = (size(), amount(), any::<u32>(), size()).prop_map(
        |(order_lots_max, order_value_max, open_orders_max, position_lots_max)| RiskLimits {
            order_lots_max,
            order_value_max,
            open_orders_max,
            position_lots_max,
        },
    );
    prop_oneof![3 => Just(RiskLimits::NONE), 1 => any]
}

fn instrument() -> impl Strategy<Value = InstrumentSpec> {
    let allocation = prop_oneof![
        4 => Just(Allocation::PriceTime),
        1 => size().prop_map(|min_lots| Allocation::ProRata { min_lots }),
        1 => (size(), size()).prop_map(|(top_lots_max, min_lots)| Allocation::TopProRata { top_lots_max, min_lots }),
        1 => (any::<u8>(), size()).prop_map(|(fifo_percent, min_lots)| Allocation::Split { fifo_percent, min_lots }),
    ];
    let ppm = || prop_oneof![3 => -100_000..100_001i32, 1 => any::<i32>()];
    let width = || prop_oneof![4 => Just(1_000_000), 1 => any::<u32>()];
    let units = || prop_oneof![3 => Just(1), 1 => number()];
    (small(), small(), small(), units(), units(), allocation, (ppm(), ppm()), (width(), width(), price()), limits()).prop_map(
        |(
            id,
            base,
            quote,
            lot_units,
            tick_value_units,
            allocation,
            fees,
            (collar_ppm, band_ppm, reference_price),
            default_limits,
        )| {
            InstrumentSpec {
                instrument: InstrumentId(id),
                base: AssetId(base),
                quote: AssetId(quote),
                lot_units,
                tick_value_units,
                allocation,
                fees: FeeSchedule { maker_ppm: fees.0, taker_ppm: fees.1 },
                collar_ppm,
                band_ppm,
                reference_price,
                default_limits,
                ..spec(id.min(2))
            }
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    (small(), small(), amount(), number()).prop_map(|(account, asset, amount, id)| Transfer {
        account: AccountId(account),
        asset: AssetId(asset),
        amount,
        transfer_id: TransferId(id),
    })
}

fn command() -> impl Strategy<Value = Command> {
    let order = (small(), small(), number(), terms());
    let trigger = prop::option::weighted(0.2, price());
    let amendment = (small(), small(), number(), prop::option::of(price()), trigger, prop::option::of(size()));
    prop_oneof![
        12 => order.prop_map(|(account, instrument, name, terms)| Command::Order(OrderCommand::New(NewOrder {
            account: AccountId(account),
            instrument: InstrumentId(instrument),
            client_order_id: ClientOrderId(name),
            terms,
        }))),
        3 => amendment.prop_map(|(account, instrument, name, price, trigger, size)| Command::Order(OrderCommand::Amend(AmendOrder {
            account: AccountId(account),
            instrument: InstrumentId(instrument),
            amendment: Amendment { client_order_id: ClientOrderId(name), price, trigger, size },
        }))),
        6 => generate::command(),
        1 => transfer().prop_map(|c| Command::Account(AccountCommand::Deposit(c))),
        1 => transfer().prop_map(|c| Command::Account(AccountCommand::Withdraw(c))),
        1 => instrument().prop_map(|c| Command::Instrument(InstrumentCommand::Create(c))),
        1 => (small(), small(), limits()).prop_map(|(account, instrument, limits)| Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits {
            account: AccountId(account),
            instrument: InstrumentId(instrument),
            limits,
        }))),
        1 => (small(), any::<u8>()).prop_map(|(asset, decimals)| Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(asset),
            symbol: Symbol::new("BTC").unwrap(),
            decimals,
        }))),
        1 => small().prop_map(|account| Command::Account(AccountCommand::Create(AccountId(account)))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_can_be_sent_breaks_anything(
        first in instrument(),
        amount in amount(),
        steps in vec((number(), command()), 1..80),
    ) {
        let mut venue = Venue::<MapIndex>::new();
        // Whatever is random about the first instrument, it is one if it can be; three accounts share the supply.
        let first = InstrumentSpec { instrument: InstrumentId(0), base: AssetId(0), quote: AssetId(1), ..first };
        for command in opening(3, amount.get() / 3, &[first, spec(1)]).into_iter().chain([0, 1].map(|id| phase(id, TradingPhase::Continuous))) {
            venue.apply(command);
        }
        for (time, command) in steps {
            // Time mostly creeps, and sometimes ends.
            venue.now = TimeNs(venue.now.0.saturating_add(if time < 1 << 20 { time } else { 0 }));
            let before = venue.engine.state_hash();
            let events = venue.apply(command);
            let rejections = events.iter().filter(|event| matches!(event, Event::Rejected(_))).count();
            prop_assert!(rejections <= 1, "{:?}", events);
            for event in &events {
                let mut bytes = Vec::new();
                encode_event(event, &mut bytes);
                prop_assert_eq!(decode_event(&bytes), Ok(*event));
                prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            }
            prop_assert_ne!(venue.engine.state_hash(), before, "the log index is part of the state");
        }
        let mut bytes = Vec::new();
        venue.engine.snapshot(&mut bytes);
        prop_assert!(walras_engine::Engine::restore(&bytes).is_ok());
    }
}

#[test]
#[should_panic(expected = "log entries are applied in order")]
fn a_gap_in_the_log_is_a_broken_log() {
    let mut venue = Venue::<MapIndex>::new();
    venue.engine.apply(LogIndex(2), TimeNs(0), &Command::Venue(VenueCommand::Tick), &mut Vec::new());
}

#[test]
#[should_panic(expected = "time never goes back")]
fn time_that_goes_back_is_a_broken_log() {
    let mut venue = Venue::<MapIndex>::new();
    venue.engine.apply(LogIndex(1), TimeNs(2), &Command::Venue(VenueCommand::Tick), &mut Vec::new());
    venue.engine.apply(LogIndex(2), TimeNs(1), &Command::Venue(VenueCommand::Tick), &mut Vec::new());
}
