//! Random commands, biased to edges: ids collide, prices cross, balances run out, time comes.

use proptest::collection::vec;
use proptest::prelude::*;
use walras_types::*;
use walras_wire::*;

use crate::venue::{opening, phase, spec, ticks, units};

/// A command, and how long after the one before.
pub type Step = (u64, Command);

/// All that happens to a venue: it is set up, phases are entered, then everything happens.
pub fn steps(allocation: impl Strategy<Value = Allocation> + Clone, steps: usize) -> impl Strategy<Value = Vec<Step>> {
    steps_with(2_000..60_000u64, allocation, steps)
}

/// The same where accounts have so much.
pub fn steps_with(
    amounts: impl Strategy<Value = u64>,
    allocation: impl Strategy<Value = Allocation> + Clone,
    steps: usize,
) -> impl Strategy<Value = Vec<Step>> {
    let specs = (instrument(0, allocation.clone()), instrument(1, allocation), any::<bool>());
    let parts = prop_oneof![40 => step().prop_map(|step| vec![step]), 3 => bracket()];
    let steps = vec(parts, steps / 4..steps).prop_map(|parts| parts.concat());
    (specs, amounts, steps).prop_map(|((first, second, auction), amount, steps)| {
        let mut commands = opening(4, amount, &[first, second]);
        commands.push(phase(0, if auction { TradingPhase::PreOpen } else { TradingPhase::Continuous }));
        commands.push(phase(1, TradingPhase::Continuous));
        let day = if auction { trading_day(steps) } else { steps };
        commands.into_iter().map(|command| (0, command)).chain(day).collect()
    })
}

/// The steps through a day of the first instrument, with both auctions.
fn trading_day(mut steps: Vec<Step>) -> Vec<Step> {
    use TradingPhase::{Closed, ClosingAuction, Continuous, OpeningAuction};
    let sixth = steps.len() / 6;
    for (sixths, next) in [(5, Closed), (4, ClosingAuction), (2, Continuous), (1, OpeningAuction)] {
        steps.insert(sixths * sixth, (0, phase(0, next)));
    }
    steps
}

fn instrument(id: u32, allocation: impl Strategy<Value = Allocation>) -> impl Strategy<Value = InstrumentSpec> {
    let fees = prop_oneof![
        Just((0, 0)),
        Just((1_000, 2_500)),
        Just((-2_000, 3_000)),
        Just((-100_000, 100_000)),
        Just((100_000, 0)),
        (-50_000..100_000, 50_000..100_000)
    ];
    let ppm = || prop_oneof![2 => 30_000..200_000u32, 3 => Just(1_000_000)];
    (allocation, fees, (ppm(), ppm()), (1..4u64, 1..8u64), limits()).prop_map(
        move |(allocation, (maker_ppm, taker_ppm), (collar_ppm, band_ppm), (lot_units, tick_value_units), default_limits)| {
            let fees = FeeSchedule { maker_ppm, taker_ppm };
            InstrumentSpec { allocation, fees, collar_ppm, band_ppm, lot_units, tick_value_units, default_limits, ..spec(id) }
        },
    )
}

fn limits() -> impl Strategy<Value = RiskLimits> {
    let narrow = (5..40u64, 500..20_000u64, 1..8u32, 10..80u64).prop_map(|(order, value, open_orders_max, position)| RiskLimits {
        order_lots_max: SizeLots::new(order),
        order_value_max: units(value),
        open_orders_max,
        position_lots_max: SizeLots::new(position),
    });
    prop_oneof![3 => Just(RiskLimits::NONE), 1 => narrow]
}

fn account() -> impl Strategy<Value = AccountId> {
    prop_oneof![40 => 0..4u32, 1 => 4..6u32].prop_map(AccountId)
}

fn instrument_id() -> impl Strategy<Value = InstrumentId> {
    prop_oneof![30 => Just(0), 10 => Just(1), 1 => 2..4u32].prop_map(InstrumentId)
}

fn name() -> impl Strategy<Value = ClientOrderId> {
    (0..6u64).prop_map(ClientOrderId)
}

fn price() -> impl Strategy<Value = PriceTicks> {
    prop_oneof![20 => 97..104i64, 5 => 85..120i64, 1 => prop_oneof![Just(1), Just(2), Just(200)]].prop_map(ticks)
}

fn size() -> impl Strategy<Value = SizeLots> {
    prop_oneof![12 => 1..8u64, 6 => Just(LINKED_LOTS), 6 => 5..25u64, 1 => Just(0), 1 => Just(1_000)].prop_map(SizeLots::new)
}

fn trail() -> impl Strategy<Value = Trail> {
    prop_oneof![
        12 => (1..7u32).prop_map(Trail::Ticks),
        6 => (5_000..60_000u32).prop_map(Trail::Ppm),
        1 => prop::sample::select(vec![0, 1, 99, 100, u32::MAX]).prop_map(Trail::Ticks),
        1 => prop::sample::select(vec![0, 1, 999_999, 1_000_000, u32::MAX]).prop_map(Trail::Ppm),
    ]
}

/// The size of most orders that are to be linked, so that most of them find one of their size.
const LINKED_LOTS: u64 = 4;

/// An order that is to be linked: mostly one that waits, or takes nothing.
fn linked() -> impl Strategy<Value = LinkedOrder> {
    let order_type = prop_oneof![
        3 => price().prop_map(|price| OrderType::Limit { price, post_only: PostOnly::Reject }),
        1 => price().prop_map(|price| OrderType::Limit { price, post_only: PostOnly::Reprice }),
        3 => price().prop_map(|trigger| OrderType::Stop { trigger }),
        3 => (price(), price()).prop_map(|(trigger, price)| OrderType::StopLimit { trigger, price }),
        1 => price().prop_map(|trigger| OrderType::TakeProfit { trigger }),
        2 => (price(), price()).prop_map(|(trigger, price)| OrderType::TakeProfitLimit { trigger, price }),
        2 => trail().prop_map(|trail| OrderType::TrailingStop { trail }),
        1 => (trail(), price()).prop_map(|(trail, price)| OrderType::TrailingStopLimit { trail, price }),
    ];
    let size = prop_oneof![8 => Just(SizeLots::new(LINKED_LOTS)), 1 => size()];
    let names = (name(), name());
    (account(), instrument_id(), names, terms(), order_type, size).prop_map(
        |(account, instrument, (client_order_id, other), terms, order_type, size)| {
            let lasting = !matches!(terms.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill);
            let time_in_force = if lasting { terms.time_in_force } else { TimeInForce::GoodTillCancel };
            let terms = OrderTerms { size, order_type, time_in_force, display: Display::Full, min_size: None, ..terms };
            LinkedOrder::new(&NewOrder { account, instrument, client_order_id, terms }, other, None)
        },
    )
}

/// What an exit is: mostly a stop or a take-profit.
fn exit_type() -> impl Strategy<Value = OrderType> {
    prop_oneof![
        6 => price().prop_map(|trigger| OrderType::Stop { trigger }),
        4 => (price(), price()).prop_map(|(trigger, price)| OrderType::StopLimit { trigger, price }),
        5 => price().prop_map(|trigger| OrderType::TakeProfit { trigger }),
        4 => (price(), price()).prop_map(|(trigger, price)| OrderType::TakeProfitLimit { trigger, price }),
        1 => price().prop_map(|price| OrderType::Limit { price, post_only: PostOnly::Reject }),
        1 => trail().prop_map(|trail| OrderType::TrailingStop { trail }),
    ]
}

/// An exit of an order that may never come.
fn exit() -> impl Strategy<Value = LinkedOrder> {
    let size = prop_oneof![8 => Just(SizeLots::new(LINKED_LOTS)), 1 => size()];
    (account(), instrument_id(), (name(), name()), terms(), exit_type(), size).prop_map(
        |(account, instrument, (client_order_id, entry), terms, order_type, size)| {
            let terms = OrderTerms { size, order_type, display: Display::Full, min_size: None, ..terms };
            LinkedOrder::exit(&NewOrder { account, instrument, client_order_id, terms }, entry, None)
        },
    )
}

/// One or two exits, and then their entry; now and then after bids that leave the account little for exits that buy.
fn bracket() -> impl Strategy<Value = Vec<Step>> {
    let names = Just((0..6).map(ClientOrderId).collect::<Vec<_>>()).prop_shuffle();
    let exits = vec((exit_type(), terms()), 1..3);
    let spends = prop::bool::weighted(0.3);
    (account(), instrument_id(), names, terms(), exits, spends).prop_map(|(account, instrument, names, terms, exits, spends)| {
        let order = |client_order_id, terms| NewOrder { account, instrument, client_order_id, terms };
        let mut commands = Vec::new();
        let bids = [200, 80, 30, 12, 5, 2].map(|lots| OrderTerms::limit(Side::Buy, ticks(86), SizeLots::new(lots)));
        if spends {
            commands.extend((40..).zip(bids).map(|(name, bid)| OrderCommand::New(order(ClientOrderId(name), bid))));
        }
        for (name, (order_type, of_exit)) in names[1..].iter().zip(exits) {
            let (side, size) = (terms.side.opposite(), terms.size);
            let of_exit = OrderTerms { side, size, order_type, display: Display::Full, min_size: None, ..of_exit };
            commands.push(OrderCommand::NewLinked(LinkedOrder::exit(&order(*name, of_exit), names[0], None)));
        }
        commands.push(OrderCommand::New(order(names[0], terms)));
        commands.into_iter().map(|command| (0, Command::Order(command))).collect()
    })
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

/// Terms as programs send them: mostly consistent.
fn terms() -> impl Strategy<Value = OrderTerms> {
    let post_only = prop_oneof![8 => Just(PostOnly::Off), 1 => Just(PostOnly::Reject), 1 => Just(PostOnly::Reprice)];
    let order_type = prop_oneof![
        8 => (price(), post_only).prop_map(|(price, post_only)| OrderType::Limit { price, post_only }),
        1 => Just(OrderType::Market),
        2 => price().prop_map(|trigger| OrderType::Stop { trigger }),
        2 => (price(), price()).prop_map(|(trigger, price)| OrderType::StopLimit { trigger, price }),
        1 => price().prop_map(|trigger| OrderType::TakeProfit { trigger }),
        1 => (price(), price()).prop_map(|(trigger, price)| OrderType::TakeProfitLimit { trigger, price }),
        2 => trail().prop_map(|trail| OrderType::TrailingStop { trail }),
        2 => (trail(), price()).prop_map(|(trail, price)| OrderType::TrailingStopLimit { trail, price }),
    ];
    let time_in_force = prop_oneof![
        8 => Just(TimeInForce::GoodTillCancel),
        2 => Just(TimeInForce::Day),
        2 => (0..120u64).prop_map(|time| TimeInForce::GoodTill(TimeNs(time))),
        2 => Just(TimeInForce::ImmediateOrCancel),
        1 => Just(TimeInForce::FillOrKill),
    ];
    let display = prop_oneof![
        6 => Just(Display::Full),
        2 => (1..6u64).prop_map(|peak| Display::Iceberg { peak: SizeLots::new(peak) }),
        1 => Just(Display::Hidden),
    ];
    let min_size = prop_oneof![9 => Just(None), 1 => (0..10u64).prop_map(|min| Some(SizeLots::new(min)))];
    let self_trade = prop_oneof![
        Just(SelfTrade::CancelNewest),
        Just(SelfTrade::CancelOldest),
        Just(SelfTrade::CancelBoth),
        Just(SelfTrade::Decrement),
        Just(SelfTrade::Allow)
    ];
    (side(), size(), order_type, time_in_force, display, min_size, self_trade).prop_map(
        |(side, size, order_type, time_in_force, display, min_size, self_trade)| {
            let mut terms = OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade };
            if size.get() % 7 == 0 {
                return terms; // However inconsistent.
            }
            let fill_or_kill = time_in_force == TimeInForce::FillOrKill;
            let at_once = fill_or_kill || time_in_force == TimeInForce::ImmediateOrCancel;
            if order_type == OrderType::Market && !at_once {
                terms.time_in_force = TimeInForce::ImmediateOrCancel;
            }
            let post_only = matches!(order_type, OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. });
            if post_only && at_once {
                terms.time_in_force = TimeInForce::GoodTillCancel;
            }
            let rests = !matches!(terms.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill)
                && !matches!(order_type, OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. });
            if !rests || matches!(display, Display::Iceberg { peak } if peak >= size) {
                terms.display = Display::Full;
            }
            terms.min_size = min_size.filter(|min| *min <= size && !fill_or_kill && !post_only);
            terms
        },
    )
}

fn amendment() -> impl Strategy<Value = Amendment> {
    let maybe = |odds| prop::option::weighted(odds, Just(()));
    let trigger = prop::option::weighted(0.15, price());
    (name(), price(), size(), maybe(0.5), maybe(0.6), trigger).prop_map(
        |(client_order_id, price, size, reprice, resize, trigger)| Amendment {
            client_order_id,
            price: reprice.map(|()| price),
            trigger,
            size: resize.map(|()| size),
        },
    )
}

fn any_phase() -> impl Strategy<Value = TradingPhase> {
    prop_oneof![
        1 => Just(TradingPhase::Closed),
        1 => Just(TradingPhase::PreOpen),
        2 => Just(TradingPhase::OpeningAuction),
        8 => Just(TradingPhase::Continuous),
        1 => Just(TradingPhase::Halt),
        1 => Just(TradingPhase::ClosingAuction),
    ]
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let amount = prop_oneof![8 => 1..300u64, 1 => Just(0), 1 => Just(Amount::MAX.get())];
    (account(), 0..4u32, amount, 0..12u64).prop_map(|(account, asset, amount, id)| Transfer {
        account,
        asset: AssetId(asset),
        amount: units(amount),
        transfer_id: TransferId(id),
    })
}

pub fn command() -> impl Strategy<Value = Command> {
    let order = (account(), instrument_id(), name(), terms());
    let status = prop_oneof![1 => Just(AccountStatus::Suspended), 3 => Just(AccountStatus::Active)];
    prop_oneof![
        100 => order.prop_map(|(account, instrument, client_order_id, terms)| {
            Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
        }),
        80 => linked().prop_map(|linked| Command::Order(OrderCommand::NewLinked(linked))),
        8 => exit().prop_map(|linked| Command::Order(OrderCommand::NewLinked(linked))),
        24 => (account(), instrument_id(), amendment()).prop_map(|(account, instrument, amendment)| {
            let amend = AmendOrder { account, instrument, amendment };
            // Of some numbers, so that nothing more is drawn.
            Command::Order(if amendment.client_order_id.0 % 4 == 3 {
                OrderCommand::AmendNamed(NamedAmend { amend, name: ClientOrderName::new("abc-2").unwrap() })
            } else {
                OrderCommand::Amend(amend)
            })
        }),
        6 => (account(), instrument_id(), name()).prop_map(|(account, instrument, client_order_id)| {
            Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
        }),
        1 => (account(), prop::option::of(instrument_id()), prop::option::of(side()))
            .prop_map(|(account, instrument, side)| Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument, side }))),
        1 => (account(), 0..4u64)
            .prop_map(|(account, timeout_ms)| Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }))),
        1 => Just(Command::Venue(VenueCommand::Tick)),
        1 => (0..400u64, any::<[u8; 32]>())
            .prop_map(|(at, state_hash)| Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(at), state_hash }))),
        2 => (prop::option::weighted(0.8, account()), 0..3u64)
            .prop_map(|(account, token)| Command::Session(SessionCommand::Open(OpenSession { account, token }))),
        1 => (0..100u64).prop_map(|id| Command::Session(SessionCommand::Close(CloseSession { session: SessionId(id) }))),
        3 => (instrument_id(), any_phase())
            .prop_map(|(instrument, phase)| Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }))),
        2 => transfer().prop_map(|c| Command::Account(AccountCommand::Deposit(c))),
        2 => transfer().prop_map(|c| Command::Account(AccountCommand::Withdraw(c))),
        3 => (account(), status).prop_map(|(account, status)| Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status }))),
        2 => (account(), instrument_id(), limits())
            .prop_map(|(account, instrument, limits)| Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits { account, instrument, limits }))),
        1 => (prop::sample::select(vec![0, 1, 300_000, 10_000_000_000, 10_000_000_001, u64::MAX]), 0..11_000_000_000_u64)
            .prop_map(|(sequencing_ns, release_ns)| Command::Venue(VenueCommand::SetAccessDelays(AccessDelays { sequencing_ns, release_ns }))),
        1 => (0..4u32, account()).prop_map(|(asset, account)| Command::Account(AccountCommand::CollectFees(CollectFees { asset: AssetId(asset), account }))),
        1 => (prop::option::weighted(0.9, account()), prop::option::of(instrument_id()), prop::sample::select(RejectReason::ALL))
            .prop_map(|(account, instrument, reason)| {
                let (client_order_id, content, name) = (None, ContentDigest(7), None);
                Command::Invalid(InvalidCommand { account, instrument, client_order_id, reason, content, name })
            }),
        1 => prop::sample::select(vec![0, 11, 12, 13, 13, 14, 15, u16::MAX - 1, u16::MAX, u16::MAX])
            .prop_map(|version| Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(version)))),
        1 => Just(Command::Account(AccountCommand::Create(AccountId(4)))),
        1 => instrument(2, Just(Allocation::PriceTime)).prop_map(|c| Command::Instrument(InstrumentCommand::Create(c))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    // Seldom so long that a dead man's switch fires: then good-till times are past.
    (prop_oneof![120 => Just(0), 40 => 1..4u64, 1 => 1_000_000..4_000_000u64], command())
}
