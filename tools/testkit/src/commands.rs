//! Commands made of choices.

use walras_engine::Engine;
use walras_types::limits::{AMOUNT_MAX, PRICE_TICKS_MAX, SIZE_LOTS_MAX, TRAIL_PPM_MAX, UNITS_MAX};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, ContentDigest, Display, FeeSchedule, InstrumentId,
    InstrumentSpec, LogIndex, OrderTerms, OrderType, Ordinal, PostOnly, PriceTicks, RejectReason, RiskLimits, SelfTrade, SessionId,
    SessionSeq, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, Trail, TransferId,
};
use walras_wire::{
    AccessDelays, AccountCommand, AccountStatus, AmendOrder, AssetSpec, CancelOrder, Checkpoint, CloseSession, CollectFees,
    Command, InstrumentCommand, InvalidCommand, LinkedOrder, MassCancel, NewOrder, OpenSession, OrderCommand, SessionCommand,
    SetAccountStatus, SetRiskLimits, SetTradingPhase, Transfer, VenueCommand,
};

use crate::Choices;

/// From where numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Few ids, prices near 100, sizes that fit the books: most commands take effect, and meet each other.
    Near,
    /// Everything that the types allow, gathered at the bounds.
    Wild,
}

/// Numbers around every bound that there is.
const EDGES: [u64; 10] =
    [0, 1, SIZE_LOTS_MAX, SIZE_LOTS_MAX + 1, PRICE_TICKS_MAX as u64, UNITS_MAX, AMOUNT_MAX / 2, AMOUNT_MAX, 1 << 62, u64::MAX];

/// Accounts that [`opening`] creates.
pub const ACCOUNTS: u32 = 4;
/// Assets that [`opening`] creates.
pub const ASSETS: u32 = 3;
/// Instruments that [`opening`] creates.
pub const INSTRUMENTS: u32 = 2;

fn number(c: &mut Choices<'_>) -> u64 {
    match c.weighted(&[4, 2, 4, 1]) {
        0 => c.below(12),
        1 => 1 << c.below(64),
        2 => c.pick(&EDGES).saturating_sub(c.below(3)),
        _ => c.any(),
    }
}

fn id(c: &mut Choices<'_>, range: Range, count: u32) -> u32 {
    match c.weighted(&[60, 2, 1]) {
        0 => c.below(u64::from(count)) as u32,
        1 => count + c.below(2) as u32,
        _ => match range {
            Range::Near => 0,
            Range::Wild => number(c) as u32,
        },
    }
}

fn account(c: &mut Choices<'_>, range: Range) -> AccountId {
    AccountId(id(c, range, ACCOUNTS))
}

fn instrument(c: &mut Choices<'_>, range: Range) -> InstrumentId {
    if c.below(4) < 3 { InstrumentId(0) } else { InstrumentId(id(c, range, INSTRUMENTS)) }
}

fn name(c: &mut Choices<'_>, range: Range) -> ClientOrderId {
    match range {
        Range::Near => ClientOrderId(c.below(6)),
        Range::Wild => ClientOrderId(if c.below(2) == 0 { c.below(6) } else { number(c) }),
    }
}

/// A price.
pub fn price(c: &mut Choices<'_>, range: Range) -> PriceTicks {
    let ticks = match (range, c.weighted(&[20, 5, 1])) {
        (Range::Near, 0) => c.within(97, 103),
        (Range::Near, 1) => c.within(85, 119),
        (Range::Near, _) => c.pick(&[1, 2, 200]),
        (Range::Wild, _) => number(c),
    };
    PriceTicks::saturating(i64::try_from(ticks).unwrap_or(i64::MAX))
}

/// A size.
pub fn size(c: &mut Choices<'_>, range: Range) -> SizeLots {
    SizeLots::new(match (range, c.weighted(&[16, 6, 2])) {
        (Range::Near, 0) => c.within(1, 7),
        (Range::Near, 1) => c.within(5, 24),
        (Range::Near, _) => c.pick(&[0, 1_000]),
        (Range::Wild, _) => number(c),
    })
}

fn amount(c: &mut Choices<'_>, range: Range) -> Amount {
    let units = match (range, c.weighted(&[8, 1, 1])) {
        (Range::Near, 0) => c.within(1, 299),
        (Range::Near, _) => c.pick(&[0, AMOUNT_MAX]),
        (Range::Wild, _) => number(c).min(AMOUNT_MAX),
    };
    Amount::new(units).expect("it is at most the largest amount")
}

fn side(c: &mut Choices<'_>) -> Side {
    c.pick(&Side::BOTH)
}

/// Terms as programs send them, mostly consistent where `range` is near, anything where it is wild. Good-till times lie a little
/// after `now`.
pub fn terms(c: &mut Choices<'_>, range: Range, now: TimeNs) -> OrderTerms {
    let (side, size) = (side(c), size(c, range));
    // Venues of older rules take no trailing stops, so the traders of whole venues send none.
    let trailing = if range == Range::Wild { 2 } else { 0 };
    let order_type = match c.weighted(&[8, 1, 2, 2, 1, 1, trailing]) {
        0 => {
            let post_only = [PostOnly::Off, PostOnly::Reject, PostOnly::Reprice][c.weighted(&[8, 1, 1])];
            OrderType::Limit { price: price(c, range), post_only }
        }
        1 => OrderType::Market,
        2 => OrderType::Stop { trigger: price(c, range) },
        3 => OrderType::StopLimit { trigger: price(c, range), price: price(c, range) },
        4 => OrderType::TakeProfit { trigger: price(c, range) },
        5 => OrderType::TakeProfitLimit { trigger: price(c, range), price: price(c, range) },
        _ => {
            let distance = u32::try_from(number(c)).unwrap_or(u32::MAX);
            let trail = if c.one_in(2) { Trail::Ticks(distance) } else { Trail::Ppm(distance % (TRAIL_PPM_MAX + 2)) };
            if c.one_in(2) {
                OrderType::TrailingStop { trail }
            } else {
                OrderType::TrailingStopLimit { trail, price: price(c, range) }
            }
        }
    };
    let time_in_force = match c.weighted(&[8, 2, 2, 2, 1]) {
        0 => TimeInForce::GoodTillCancel,
        1 => TimeInForce::Day,
        2 => TimeInForce::GoodTill(match range {
            Range::Near => TimeNs(now.0.saturating_add(c.below(100))),
            Range::Wild => TimeNs(number(c)),
        }),
        3 => TimeInForce::ImmediateOrCancel,
        _ => TimeInForce::FillOrKill,
    };
    let display = match c.weighted(&[6, 2, 1]) {
        0 => Display::Full,
        1 => Display::Iceberg {
            peak: match range {
                Range::Near => SizeLots::new(c.within(1, 5)),
                Range::Wild => self::size(c, range),
            },
        },
        _ => Display::Hidden,
    };
    let min_size = (c.weighted(&[9, 1]) == 1).then(|| match range {
        Range::Near => SizeLots::new(c.below(10)),
        Range::Wild => self::size(c, range),
    });
    let self_trade =
        c.pick(&[SelfTrade::CancelNewest, SelfTrade::CancelOldest, SelfTrade::CancelBoth, SelfTrade::Decrement, SelfTrade::Allow]);
    let terms = OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade };
    // However inconsistent, now and then.
    if range == Range::Wild || c.weighted(&[7, 1]) == 1 { terms } else { consistent(terms) }
}

/// Drops what the engine refuses to combine.
fn consistent(mut terms: OrderTerms) -> OrderTerms {
    let at_once = |terms: &OrderTerms| matches!(terms.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill);
    if terms.order_type == OrderType::Market && !at_once(&terms) {
        terms.time_in_force = TimeInForce::ImmediateOrCancel;
    }
    let post_only = matches!(terms.order_type, OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. });
    if post_only && at_once(&terms) {
        terms.time_in_force = TimeInForce::GoodTillCancel;
    }
    let is_stop =
        matches!(terms.order_type, OrderType::Stop { .. } | OrderType::TakeProfit { .. } | OrderType::TrailingStop { .. });
    if at_once(&terms) || is_stop || matches!(terms.display, Display::Iceberg { peak } if peak >= terms.size) {
        terms.display = Display::Full;
    }
    let fill_or_kill = terms.time_in_force == TimeInForce::FillOrKill;
    terms.min_size = terms.min_size.filter(|min| *min <= terms.size && !min.is_zero() && !fill_or_kill && !post_only);
    terms
}

fn allocation(c: &mut Choices<'_>, range: Range) -> Allocation {
    let lots = |c: &mut Choices<'_>| match range {
        Range::Near => SizeLots::new(c.within(1, 5)),
        Range::Wild => size(c, range),
    };
    match c.weighted(&[4, 1, 1, 1]) {
        0 => Allocation::PriceTime,
        1 => Allocation::ProRata { min_lots: lots(c) },
        2 => Allocation::TopProRata { top_lots_max: lots(c), min_lots: lots(c) },
        _ => {
            let fifo_percent = match range {
                Range::Near => c.within(0, 100) as u8,
                Range::Wild => c.byte(),
            };
            Allocation::Split { fifo_percent, min_lots: lots(c) }
        }
    }
}

fn limits(c: &mut Choices<'_>, range: Range) -> RiskLimits {
    match (c.weighted(&[3, 1]), range) {
        (0, _) => RiskLimits::NONE,
        (_, Range::Near) => RiskLimits {
            order_lots_max: SizeLots::new(c.within(5, 39)),
            order_value_max: Amount::new(c.within(500, 19_999)).expect("it is small"),
            open_orders_max: c.within(1, 7) as u32,
            position_lots_max: SizeLots::new(c.within(10, 79)),
        },
        (_, Range::Wild) => RiskLimits {
            order_lots_max: size(c, range),
            order_value_max: amount(c, range),
            open_orders_max: c.any() as u32,
            position_lots_max: size(c, range),
        },
    }
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text).expect("the symbols here are of allowed characters")
}

/// An instrument of this id. Of the first three the base and quote differ.
pub fn spec(c: &mut Choices<'_>, range: Range, id: u32) -> InstrumentSpec {
    let known = (id as usize).min(3);
    let ppm = |c: &mut Choices<'_>| match (range, c.weighted(&[3, 2])) {
        (_, 0) => 1_000_000,
        (Range::Near, _) => c.within(30_000, 199_999) as u32,
        (Range::Wild, _) => c.any() as u32,
    };
    let fee = |c: &mut Choices<'_>| match (range, c.weighted(&[3, 1])) {
        (Range::Wild, 1) => c.any() as i32,
        _ => c.pick(&[0, 1_000, -2_000, 3_000, 100_000, -100_000]),
    };
    let units = |c: &mut Choices<'_>| match (range, c.weighted(&[3, 1])) {
        (_, 0) => 1,
        (Range::Near, _) => c.within(1, 7),
        (Range::Wild, _) => number(c),
    };
    let asset = |c: &mut Choices<'_>, known| match range {
        Range::Near => AssetId(known),
        Range::Wild if c.weighted(&[3, 1]) == 0 => AssetId(known),
        Range::Wild => AssetId(self::id(c, range, ASSETS)),
    };
    let (maker_ppm, taker_ppm) = (fee(c), fee(c));
    InstrumentSpec {
        instrument: InstrumentId(id),
        symbol: symbol(["BTC/USD", "BTC/EUR", "EUR/USD", "ETC/USD"][known]),
        base: asset(c, [0, 0, 2, 0][known]),
        quote: asset(c, [1, 2, 1, 1][known]),
        lot_units: units(c),
        tick_value_units: units(c),
        allocation: allocation(c, range),
        fees: FeeSchedule {
            maker_ppm: if range == Range::Near { maker_ppm.max(-taker_ppm.max(0)) } else { maker_ppm },
            taker_ppm: if range == Range::Near { taker_ppm.max(0) } else { taker_ppm },
        },
        collar_ppm: ppm(c),
        band_ppm: ppm(c),
        reference_price: match range {
            Range::Near => PriceTicks::saturating(100),
            Range::Wild => price(c, range),
        },
        default_limits: limits(c, range),
    }
}

/// Commands that set a venue up: assets, accounts with funds (of the first asset a fiftieth), instruments, the first in pre-open or
/// continuous, the second continuous.
pub fn opening(c: &mut Choices<'_>, range: Range) -> Vec<Command> {
    let mut commands = Vec::new();
    for (asset, name) in (0..).map(AssetId).zip(["BTC", "USD", "EUR"]) {
        commands.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol: symbol(name), decimals: 2 })));
    }
    let most = match range {
        Range::Near => c.within(2_000, 59_999),
        Range::Wild => AMOUNT_MAX / u64::from(ACCOUNTS),
    };
    for account in (0..ACCOUNTS).map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for asset in (0..ASSETS).map(AssetId) {
            let units = if range == Range::Near && asset.0 == 0 { most / 50 } else { most };
            let amount = Amount::new(units).expect("it is below the largest amount");
            commands.push(Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset,
                amount,
                transfer_id: TransferId(u64::from(asset.0)),
            })));
        }
    }
    commands.extend((0..INSTRUMENTS).map(|id| Command::Instrument(InstrumentCommand::Create(spec(c, range, id)))));
    let first = c.pick(&[TradingPhase::Continuous, TradingPhase::PreOpen]);
    for (id, phase) in [(0, first), (1, TradingPhase::Continuous)] {
        commands.push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: InstrumentId(id), phase })));
    }
    commands
}

fn transfer(c: &mut Choices<'_>, range: Range) -> Transfer {
    let transfer_id = match range {
        Range::Near => c.below(12),
        Range::Wild => number(c),
    };
    Transfer {
        account: account(c, range),
        asset: AssetId(id(c, range, ASSETS)),
        amount: amount(c, range),
        transfer_id: TransferId(transfer_id),
    }
}

/// Any phase, continuous trading more likely than the others.
pub fn phase(c: &mut Choices<'_>) -> TradingPhase {
    use TradingPhase::{Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
    [Closed, PreOpen, OpeningAuction, Continuous, Halt, ClosingAuction][c.weighted(&[1, 1, 2, 8, 1, 1])]
}

/// An ordinal of an open session of the engine: most often its next one, or one not far from it. `None` when no session is open that
/// the choices find.
pub fn ordinal(c: &mut Choices<'_>, engine: &Engine) -> Option<Ordinal> {
    let owner = (c.below(5) > 0).then(|| AccountId(c.below(u64::from(ACCOUNTS)) as u32));
    let open = engine.sessions_of(owner).len();
    let session = engine.sessions_of(owner).nth(c.below(open.max(1) as u64) as usize)?;
    let next = engine.session(session)?.next.0;
    let session_seq = match c.weighted(&[8, 3, 1, 1]) {
        0 => next,
        1 => next.saturating_sub(c.within(0, 4)),
        2 => next + c.below(3),
        _ => c.any(),
    };
    Some(Ordinal { session, session_seq: SessionSeq(session_seq) })
}

/// Any command.
pub fn command(c: &mut Choices<'_>, range: Range, now: TimeNs) -> Command {
    match c.weighted(&[100, 12, 8, 2, 1, 4, 2, 2, 2, 2, 1, 1, 1, 6, 1, 1, 1, 1, 1, 10]) {
        0 => Command::Order(OrderCommand::New(NewOrder {
            account: account(c, range),
            instrument: instrument(c, range),
            client_order_id: name(c, range),
            terms: terms(c, range, now),
        })),
        1 => Command::Order(OrderCommand::Amend(AmendOrder {
            account: account(c, range),
            instrument: instrument(c, range),
            amendment: Amendment {
                client_order_id: name(c, range),
                price: (c.below(2) == 1).then(|| price(c, range)),
                size: (c.below(2) == 1).then(|| size(c, range)),
                trigger: (c.below(6) == 1).then(|| price(c, range)),
            },
        })),
        2 => Command::Order(OrderCommand::Cancel(CancelOrder {
            account: account(c, range),
            instrument: instrument(c, range),
            client_order_id: name(c, range),
        })),
        3 => Command::Order(OrderCommand::MassCancel(MassCancel {
            account: account(c, range),
            instrument: (c.below(2) == 1).then(|| instrument(c, range)),
            side: (c.below(2) == 1).then(|| side(c)),
        })),
        4 => Command::Venue(VenueCommand::Tick),
        5 => {
            Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: instrument(c, range), phase: phase(c) }))
        }
        6 => Command::Account(AccountCommand::Deposit(transfer(c, range))),
        7 => Command::Account(AccountCommand::Withdraw(transfer(c, range))),
        8 => Command::Account(AccountCommand::SetStatus(SetAccountStatus {
            account: account(c, range),
            status: [AccountStatus::Active, AccountStatus::Suspended][c.weighted(&[3, 1])],
        })),
        9 => Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits {
            account: account(c, range),
            instrument: instrument(c, range),
            limits: limits(c, range),
        })),
        10 => Command::Account(AccountCommand::CollectFees(CollectFees {
            asset: AssetId(id(c, range, ASSETS)),
            account: account(c, range),
        })),
        11 => Command::Account(AccountCommand::Create(AccountId(id(c, range, ACCOUNTS + 1)))),
        12 => {
            let id = id(c, range, INSTRUMENTS + 1);
            Command::Instrument(InstrumentCommand::Create(spec(c, range, id)))
        }
        13 => Command::Session(SessionCommand::Open(OpenSession {
            account: (c.below(8) > 0).then(|| account(c, range)),
            token: c.below(20),
        })),
        14 => Command::Session(SessionCommand::Close(CloseSession { session: SessionId(c.below(400)) })),
        15 => {
            Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(c.below(400)), state_hash: [c.byte(); 32] }))
        }
        16 => Command::Venue(VenueCommand::SetAccessDelays(AccessDelays {
            sequencing_ns: c.pick(&[0, 1, 10_000_000_000, 10_000_000_001]),
            release_ns: c.below(11_000_000_000),
        })),
        17 => Command::Invalid(InvalidCommand {
            account: (c.below(8) > 0).then(|| account(c, range)),
            instrument: (c.below(2) == 1).then(|| instrument(c, range)),
            client_order_id: (c.below(2) == 1).then(|| name(c, range)),
            reason: c.pick(&[RejectReason::PriceOutOfRange, RejectReason::Malformed, RejectReason::Forbidden]),
            content: ContentDigest(c.below(4)),
            name: None,
        }),
        18 => Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(id(c, range, ASSETS + 1)),
            symbol: symbol(c.pick(&["BTC", "SEK", "X"])),
            decimals: c.pick(&[0, 18, 19, 255]),
        })),
        _ => {
            let (account, instrument, client_order_id) = (account(c, range), instrument(c, range), name(c, range));
            let order = NewOrder { account, instrument, client_order_id, terms: terms(c, range, now) };
            Command::Order(OrderCommand::NewLinked(LinkedOrder::new(&order, name(c, range), None)))
        }
    }
}
