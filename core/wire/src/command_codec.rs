//! Commands to bytes and back: a tag byte, then the command's fields in the order of its struct.

use walras_types::{
    Allocation, Amendment, Display, FeeSchedule, InstrumentSpec, OrderTerms, OrderType, PostOnly, RejectReason, RiskLimits,
    SelfTrade, TimeInForce, TradingPhase, Trail,
};

use crate::batch_command::{BatchCommand, BatchMarketCommand};
use crate::codec::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};
use crate::command::{
    AccessDelays, AccountCommand, AccountStatus, AmendOrder, AssetSpec, CancelAfter, CancelOrder, Checkpoint, CloseSession,
    ClusterAction, ClusterRequestNote, CollectFees, Command, InstrumentCommand, MassCancel, NewOrder, OpenSession, OrderCommand,
    SessionCommand, SetAccountStatus, SetRiskLimits, SetTradingPhase, Transfer, VenueCommand,
};
use crate::invalid::InvalidCommand;
use crate::linked_order::{Link, LinkedOrder};

/// Appends a command to `buffer`.
pub fn encode_command(command: &Command, buffer: &mut Vec<u8>) {
    let w = &mut Writer(buffer);
    match command {
        Command::Order(OrderCommand::New(c)) => tagged(w, 1, c),
        Command::Order(OrderCommand::Cancel(c)) => tagged(w, 2, c),
        Command::Order(OrderCommand::Amend(c)) => tagged(w, 3, c),
        Command::Order(OrderCommand::MassCancel(c)) => tagged(w, 4, c),
        Command::Order(OrderCommand::NewNamed(c)) => tagged(w, 13, c),
        Command::Order(OrderCommand::CancelAfter(c)) => tagged(w, 14, c),
        Command::Order(OrderCommand::AmendNamed(c)) => tagged(w, 42, c),
        Command::Order(OrderCommand::NewLinked(c)) => {
            w.u8(match c.link() {
                Link::Oco => 15,
                Link::Exit => 28,
            });
            c.put(w);
        }
        Command::Instrument(c) => encode_instrument_command(c, w),
        Command::Account(c) => encode_account_command(c, w),
        Command::Session(SessionCommand::Open(c)) => tagged(w, 6, c),
        Command::Session(SessionCommand::Close(c)) => tagged(w, 7, c),
        Command::BatchMarket(c) => encode_batch_market_command(c, w),
        Command::Batch(BatchCommand::Submit(c)) => tagged(w, 9, c),
        Command::Batch(BatchCommand::Close(c)) => tagged(w, 10, c),
        Command::Batch(BatchCommand::Step(c)) => tagged(w, 39, c),
        Command::Shard(c) => tagged(w, 11, c),
        Command::Venue(c) => encode_venue_command(c, w),
        Command::Invalid(c) => {
            w.u8(if c.name.is_some() { 41 } else { 12 });
            c.put(w);
        }
    }
}

// The operator's groups have functions of their own, so that they cost the orders nothing.

#[inline(never)]
fn encode_instrument_command(command: &InstrumentCommand, w: &mut Writer<'_>) {
    match command {
        InstrumentCommand::Create(c) => tagged(w, 17, c),
        InstrumentCommand::SetPhase(c) => tagged(w, 23, c),
    }
}

#[inline(never)]
fn encode_account_command(command: &AccountCommand, w: &mut Writer<'_>) {
    match command {
        AccountCommand::Create(c) => tagged(w, 18, c),
        AccountCommand::SetStatus(c) => tagged(w, 19, c),
        AccountCommand::SetKey(c) => tagged(w, 36, c),
        AccountCommand::Deposit(c) => tagged(w, 20, c),
        AccountCommand::Withdraw(c) => tagged(w, 21, c),
        AccountCommand::CollectFees(c) => tagged(w, 24, c),
        AccountCommand::SetRiskLimits(c) => tagged(w, 22, c),
    }
}

#[inline(never)]
fn encode_batch_market_command(command: &BatchMarketCommand, w: &mut Writer<'_>) {
    match command {
        BatchMarketCommand::Create(c) => tagged(w, 32, c),
        BatchMarketCommand::AddAsset(c) => tagged(w, 33, c),
        BatchMarketCommand::SetPhase(c) => tagged(w, 34, c),
        BatchMarketCommand::SetInterval(c) => tagged(w, 35, c),
        BatchMarketCommand::SetAccountFee(c) => tagged(w, 38, c),
        BatchMarketCommand::SetCurrencies(c) => tagged(w, 40, c),
    }
}

#[inline(never)]
fn encode_venue_command(command: &VenueCommand, w: &mut Writer<'_>) {
    match command {
        VenueCommand::Tick => w.u8(5),
        VenueCommand::Checkpoint(c) => tagged(w, 8, c),
        VenueCommand::SetAccessDelays(c) => tagged(w, 25, c),
        VenueCommand::CreateAsset(c) => tagged(w, 16, c),
        VenueCommand::SetIssuer(c) => tagged(w, 37, c),
        VenueCommand::NoteClusterRequest(c) => tagged(w, 26, c),
        VenueCommand::SetEngineVersion(c) => tagged(w, 27, c),
    }
}

/// Reads the one command that `bytes` are.
pub fn decode_command(bytes: &[u8]) -> Result<Command, DecodeError> {
    let r = &mut Reader::new(bytes);
    let command = match r.u8()? {
        1 => Command::Order(OrderCommand::New(Wire::get(r)?)),
        2 => Command::Order(OrderCommand::Cancel(Wire::get(r)?)),
        3 => Command::Order(OrderCommand::Amend(Wire::get(r)?)),
        4 => Command::Order(OrderCommand::MassCancel(Wire::get(r)?)),
        5 => Command::Venue(VenueCommand::Tick),
        6 => Command::Session(SessionCommand::Open(Wire::get(r)?)),
        7 => Command::Session(SessionCommand::Close(Wire::get(r)?)),
        8 => Command::Venue(VenueCommand::Checkpoint(Wire::get(r)?)),
        16 => Command::Venue(VenueCommand::CreateAsset(Wire::get(r)?)),
        17 => Command::Instrument(InstrumentCommand::Create(Wire::get(r)?)),
        18 => Command::Account(AccountCommand::Create(Wire::get(r)?)),
        19 => Command::Account(AccountCommand::SetStatus(Wire::get(r)?)),
        20 => Command::Account(AccountCommand::Deposit(Wire::get(r)?)),
        21 => Command::Account(AccountCommand::Withdraw(Wire::get(r)?)),
        22 => Command::Account(AccountCommand::SetRiskLimits(Wire::get(r)?)),
        23 => Command::Instrument(InstrumentCommand::SetPhase(Wire::get(r)?)),
        24 => Command::Account(AccountCommand::CollectFees(Wire::get(r)?)),
        25 => Command::Venue(VenueCommand::SetAccessDelays(Wire::get(r)?)),
        26 => Command::Venue(VenueCommand::NoteClusterRequest(Wire::get(r)?)),
        27 => Command::Venue(VenueCommand::SetEngineVersion(Wire::get(r)?)),
        32 => Command::BatchMarket(BatchMarketCommand::Create(Wire::get(r)?)),
        33 => Command::BatchMarket(BatchMarketCommand::AddAsset(Wire::get(r)?)),
        34 => Command::BatchMarket(BatchMarketCommand::SetPhase(Wire::get(r)?)),
        35 => Command::BatchMarket(BatchMarketCommand::SetInterval(Wire::get(r)?)),
        36 => Command::Account(AccountCommand::SetKey(Wire::get(r)?)),
        37 => Command::Venue(VenueCommand::SetIssuer(Wire::get(r)?)),
        38 => Command::BatchMarket(BatchMarketCommand::SetAccountFee(Wire::get(r)?)),
        40 => Command::BatchMarket(BatchMarketCommand::SetCurrencies(Wire::get(r)?)),
        9 => Command::Batch(BatchCommand::Submit(Wire::get(r)?)),
        10 => Command::Batch(BatchCommand::Close(Wire::get(r)?)),
        39 => Command::Batch(BatchCommand::Step(Wire::get(r)?)),
        11 => Command::Shard(Wire::get(r)?),
        12 => Command::Invalid(InvalidCommand::get(r)?),
        41 => Command::Invalid(InvalidCommand::get_named(r)?),
        13 => Command::Order(OrderCommand::NewNamed(Wire::get(r)?)),
        14 => Command::Order(OrderCommand::CancelAfter(Wire::get(r)?)),
        15 => Command::Order(OrderCommand::NewLinked(LinkedOrder::get(Link::Oco, r)?)),
        28 => Command::Order(OrderCommand::NewLinked(LinkedOrder::get(Link::Exit, r)?)),
        42 => Command::Order(OrderCommand::AmendNamed(Wire::get(r)?)),
        _ => return Err(DecodeError::layout(0, "a command's tag")),
    };
    r.clone().finish()?;
    Ok(command)
}

#[inline]
fn tagged<T: Wire>(w: &mut Writer<'_>, tag: u8, value: &T) {
    w.u8(tag);
    value.put(w);
}

wire_struct!(NewOrder { account, instrument, client_order_id, terms });
wire_struct!(CancelOrder { account, instrument, client_order_id });
wire_struct!(AmendOrder { account, instrument, amendment });
wire_struct!(MassCancel { account, instrument, side });
wire_struct!(CancelAfter { account, timeout_ms });
wire_struct!(OpenSession { account, token });
wire_struct!(CloseSession { session });
wire_struct!(Checkpoint { log_index, state_hash });
wire_struct!(ClusterRequestNote { action, replica });
wire_struct!(AssetSpec { asset, symbol, decimals });
wire_struct!(SetAccountStatus { account, status });
wire_struct!(Transfer { account, asset, amount, transfer_id });
wire_struct!(SetRiskLimits { account, instrument, limits });
wire_struct!(CollectFees { asset, account });
wire_struct!(SetTradingPhase { instrument, phase });
wire_struct!(AccessDelays { sequencing_ns, release_ns });
wire_struct!(Amendment { client_order_id, price, trigger, size });
wire_struct!(OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade });
wire_struct!(FeeSchedule { maker_ppm, taker_ppm });
wire_struct!(RiskLimits { order_lots_max, order_value_max, open_orders_max, position_lots_max });
wire_struct!(InstrumentSpec {
    instrument,
    symbol,
    base,
    quote,
    lot_units,
    tick_value_units,
    allocation,
    fees,
    collar_ppm,
    band_ppm,
    reference_price,
    default_limits,
});

wire_enum!(AccountStatus, "account status 0 (active) or 1 (suspended)" { Active = 0, Suspended = 1 });
wire_enum!(ClusterAction, "cluster action 0 (transfer leadership), 1 (add voter), 2 (add learner) or 3 (remove)" {
    TransferLeadership = 0,
    AddVoter = 1,
    AddLearner = 2,
    Remove = 3,
});
wire_enum!(PostOnly, "post-only 0 (off), 1 (reject) or 2 (reprice)" { Off = 0, Reject = 1, Reprice = 2 });
wire_enum!(SelfTrade, "self-trade mode 0 to 4" { CancelNewest = 0, CancelOldest = 1, CancelBoth = 2, Decrement = 3, Allow = 4 });
wire_enum!(TradingPhase, "trading phase 0 to 5" { Closed = 0, PreOpen = 1, OpeningAuction = 2, Continuous = 3, Halt = 4, ClosingAuction = 5 });

/// Appends a trailing stop's distance behind the number of its order type: the one for ticks, or the one for millionths.
fn put_trail(w: &mut Writer<'_>, [of_ticks, of_ppm]: [u8; 2], trail: Trail) {
    let (kind, distance) = match trail {
        Trail::Ticks(ticks) => (of_ticks, ticks),
        Trail::Ppm(ppm) => (of_ppm, ppm),
    };
    w.u8(kind);
    w.u32(distance);
}

impl Wire for OrderType {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            OrderType::Limit { price, post_only } => {
                w.u8(0);
                price.put(w);
                post_only.put(w);
            }
            OrderType::Market => w.u8(1),
            OrderType::Stop { trigger } => tagged(w, 2, trigger),
            OrderType::StopLimit { trigger, price } => {
                w.u8(3);
                trigger.put(w);
                price.put(w);
            }
            OrderType::TakeProfit { trigger } => tagged(w, 4, trigger),
            OrderType::TakeProfitLimit { trigger, price } => {
                w.u8(5);
                trigger.put(w);
                price.put(w);
            }
            OrderType::TrailingStop { trail } => put_trail(w, [6, 8], *trail),
            OrderType::TrailingStopLimit { trail, price } => {
                put_trail(w, [7, 9], *trail);
                price.put(w);
            }
        }
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(OrderType::Limit { price: Wire::get(r)?, post_only: Wire::get(r)? }),
            1 => Ok(OrderType::Market),
            2 => Ok(OrderType::Stop { trigger: Wire::get(r)? }),
            3 => Ok(OrderType::StopLimit { trigger: Wire::get(r)?, price: Wire::get(r)? }),
            4 => Ok(OrderType::TakeProfit { trigger: Wire::get(r)? }),
            5 => Ok(OrderType::TakeProfitLimit { trigger: Wire::get(r)?, price: Wire::get(r)? }),
            6 => Ok(OrderType::TrailingStop { trail: Trail::Ticks(r.u32()?) }),
            7 => Ok(OrderType::TrailingStopLimit { trail: Trail::Ticks(r.u32()?), price: Wire::get(r)? }),
            8 => Ok(OrderType::TrailingStop { trail: Trail::Ppm(r.u32()?) }),
            9 => Ok(OrderType::TrailingStopLimit { trail: Trail::Ppm(r.u32()?), price: Wire::get(r)? }),
            _ => Err(r.expected("order type 0 to 9")),
        }
    }
}

impl Wire for TimeInForce {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            TimeInForce::GoodTillCancel => w.u8(0),
            TimeInForce::Day => w.u8(1),
            TimeInForce::GoodTill(time) => tagged(w, 2, time),
            TimeInForce::ImmediateOrCancel => w.u8(3),
            TimeInForce::FillOrKill => w.u8(4),
        }
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(TimeInForce::GoodTillCancel),
            1 => Ok(TimeInForce::Day),
            2 => Ok(TimeInForce::GoodTill(Wire::get(r)?)),
            3 => Ok(TimeInForce::ImmediateOrCancel),
            4 => Ok(TimeInForce::FillOrKill),
            _ => r.in_range(None, RejectReason::TimeInForceInvalid, "time in force 0 to 4"),
        }
    }
}

impl Wire for Display {
    #[inline]
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Display::Full => w.u8(0),
            Display::Iceberg { peak } => tagged(w, 1, peak),
            Display::Hidden => w.u8(2),
        }
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Display::Full),
            1 => Ok(Display::Iceberg { peak: Wire::get(r)? }),
            2 => Ok(Display::Hidden),
            _ => r.in_range(None, RejectReason::DisplayInvalid, "display 0 to 2"),
        }
    }
}

impl Wire for Allocation {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Allocation::PriceTime => w.u8(0),
            Allocation::ProRata { min_lots } => tagged(w, 1, min_lots),
            Allocation::TopProRata { top_lots_max, min_lots } => {
                w.u8(2);
                top_lots_max.put(w);
                min_lots.put(w);
            }
            Allocation::Split { fifo_percent, min_lots } => {
                w.u8(3);
                fifo_percent.put(w);
                min_lots.put(w);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Allocation::PriceTime),
            1 => Ok(Allocation::ProRata { min_lots: Wire::get(r)? }),
            2 => Ok(Allocation::TopProRata { top_lots_max: Wire::get(r)?, min_lots: Wire::get(r)? }),
            3 => Ok(Allocation::Split { fifo_percent: Wire::get(r)?, min_lots: Wire::get(r)? }),
            _ => Err(r.expected("allocation 0 to 3")),
        }
    }
}
