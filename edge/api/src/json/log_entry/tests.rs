//! Every kind of command is written, read back by its keys alone, and compared with what it was.

use serde_json::Value;
use walras_sequencer::{Entry, KeyName};
use walras_types::limits::{AMOUNT_MAX, PRICE_TICKS_MAX};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, ClientOrderName, ContentDigest, Display, EngineVersion,
    FeeSchedule, InstrumentId, InstrumentSpec, LogIndex, OrderTerms, OrderType, Ordinal, PostOnly, PriceTicks, RejectReason,
    RiskLimits, SelfTrade, SessionId, SessionSeq, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, Trail, TransferId,
};
use walras_wire::{
    AccessDelays, AccountCommand, AccountStatus, AmendOrder, AssetSpec, BatchCommand, BatchMarketCommand, CancelAfter, CancelOrder,
    Checkpoint, CloseSession, ClusterAction, ClusterRequestNote, CollectFees, Command, InstrumentCommand, InvalidCommand,
    LinkedOrder, MassCancel, NamedAmend, NamedOrder, NewOrder, OpenSession, OrderCommand, SessionCommand, SetAccountStatus,
    SetRiskLimits, SetTradingPhase, ShardCommand, Transfer, VenueCommand,
};

use super::*;

mod batches;
mod shards;

/// An object that is read key by key; what is left unread is an error.
struct Fields(serde_json::Map<String, Value>);

impl Fields {
    fn of(value: Value) -> Self {
        let Value::Object(map) = value else { panic!("{value} is no object") };
        Self(map)
    }

    fn maybe(&mut self, key: &str) -> Option<Value> {
        let value = self.0.remove(key)?;
        assert!(!value.is_null(), "{key} is null; what is not there has no key");
        Some(value)
    }

    fn take(&mut self, key: &str) -> Value {
        self.maybe(key).unwrap_or_else(|| panic!("{key} is missing in {:?}", self.0))
    }

    fn text(&mut self, key: &str) -> String {
        self.take(key).as_str().unwrap().to_owned()
    }

    fn object(&mut self, key: &str) -> Fields {
        Fields::of(self.take(key))
    }

    fn number(&mut self, key: &str) -> u64 {
        number_of(&self.take(key))
    }

    fn maybe_number(&mut self, key: &str) -> Option<u64> {
        self.maybe(key).as_ref().map(number_of)
    }

    fn small(&mut self, key: &str) -> u32 {
        u32::try_from(self.take(key).as_u64().unwrap()).unwrap()
    }

    fn ppm(&mut self, key: &str) -> i32 {
        i32::try_from(self.take(key).as_i64().unwrap()).unwrap()
    }

    fn ticks(&mut self, key: &str) -> PriceTicks {
        ticks_of(self.number(key))
    }

    fn maybe_ticks(&mut self, key: &str) -> Option<PriceTicks> {
        self.maybe_number(key).map(ticks_of)
    }

    fn lots(&mut self, key: &str) -> SizeLots {
        SizeLots::new(self.number(key))
    }

    fn maybe_lots(&mut self, key: &str) -> Option<SizeLots> {
        self.maybe_number(key).map(SizeLots::new)
    }

    fn account(&mut self) -> AccountId {
        AccountId(self.small("account_id"))
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(self.small("instrument_id"))
    }

    fn order(&mut self) -> ClientOrderId {
        ClientOrderId(self.number("client_order_id"))
    }

    fn end(self) {
        assert!(self.0.is_empty(), "nobody reads {:?}", self.0);
    }
}

/// A number is a JSON number below 2^53 and a string of digits from there.
fn number_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => {
            let number = text.parse().unwrap();
            assert!(number >= EXACT_BELOW, "{text} is a string although a number would do");
            number
        }
        value => value.as_u64().filter(|number| *number < EXACT_BELOW).unwrap_or_else(|| panic!("{value} is not exact")),
    }
}

fn ticks_of(number: u64) -> PriceTicks {
    PriceTicks::new(i64::try_from(number).unwrap()).unwrap()
}

fn read_limits(mut f: Fields) -> RiskLimits {
    let limits = RiskLimits {
        order_lots_max: f.lots("order_lots_max"),
        order_value_max: Amount::new(f.number("order_value_units_max")).unwrap(),
        open_orders_max: f.small("open_orders_max"),
        position_lots_max: f.lots("position_lots_max"),
    };
    f.end();
    limits
}

fn read_allocation(mut f: Fields) -> Allocation {
    let allocation = match f.text("kind").as_str() {
        "price_time" => Allocation::PriceTime,
        "pro_rata" => Allocation::ProRata { min_lots: f.lots("min_lots") },
        "top_pro_rata" => Allocation::TopProRata { top_lots_max: f.lots("top_lots_max"), min_lots: f.lots("min_lots") },
        "split" => Allocation::Split { fifo_percent: u8::try_from(f.small("fifo_percent")).unwrap(), min_lots: f.lots("min_lots") },
        other => panic!("{other}"),
    };
    f.end();
    allocation
}

fn read_transfer(f: &mut Fields) -> Transfer {
    Transfer {
        account: f.account(),
        asset: AssetId(f.small("asset_id")),
        amount: Amount::new(f.number("amount_units")).unwrap(),
        transfer_id: TransferId(f.number("transfer_id")),
    }
}

fn read_trail(f: &mut Fields) -> Trail {
    match f.maybe("trail_ticks") {
        Some(ticks) => Trail::Ticks(u32::try_from(ticks.as_u64().unwrap()).unwrap()),
        None => Trail::Ppm(f.small("trail_ppm")),
    }
}

fn read_terms(f: &mut Fields) -> OrderTerms {
    let post_only = names::parse_post_only(&f.text("post_only")).unwrap();
    OrderTerms {
        side: names::parse_side(&f.text("side")).unwrap(),
        size: f.lots("size_lots"),
        order_type: match f.text("type").as_str() {
            "limit" => OrderType::Limit { price: f.ticks("price_ticks"), post_only },
            "market" => OrderType::Market,
            "stop" => OrderType::Stop { trigger: f.ticks("trigger_ticks") },
            "stop_limit" => OrderType::StopLimit { trigger: f.ticks("trigger_ticks"), price: f.ticks("price_ticks") },
            "take_profit" => OrderType::TakeProfit { trigger: f.ticks("trigger_ticks") },
            "take_profit_limit" => OrderType::TakeProfitLimit { trigger: f.ticks("trigger_ticks"), price: f.ticks("price_ticks") },
            "trailing_stop" => OrderType::TrailingStop { trail: read_trail(f) },
            "trailing_stop_limit" => OrderType::TrailingStopLimit { trail: read_trail(f), price: f.ticks("price_ticks") },
            other => panic!("{other}"),
        },
        time_in_force: match f.text("time_in_force").as_str() {
            "gtc" => TimeInForce::GoodTillCancel,
            "day" => TimeInForce::Day,
            "gtt" => TimeInForce::GoodTill(TimeNs(f.number("expire_time_ns"))),
            "ioc" => TimeInForce::ImmediateOrCancel,
            "fok" => TimeInForce::FillOrKill,
            other => panic!("{other}"),
        },
        display: match f.text("display").as_str() {
            "full" => Display::Full,
            "iceberg" => Display::Iceberg { peak: f.lots("peak_lots") },
            "hidden" => Display::Hidden,
            other => panic!("{other}"),
        },
        min_size: f.maybe_lots("min_size_lots"),
        self_trade: names::parse_self_trade(&f.text("self_trade")).unwrap(),
    }
}

fn read_command(mut f: Fields) -> Command {
    let kind = f.text("kind");
    let command = match kind.as_str() {
        "new_order" => {
            let name = f.maybe("client_order_name").map(|name| ClientOrderName::new(name.as_str().unwrap()).unwrap());
            let (account, instrument, client_order_id) = (f.account(), f.instrument(), f.order());
            let order = NewOrder { account, instrument, client_order_id, terms: read_terms(&mut f) };
            let [other, entry] = ["oco_with", "exit_of"].map(|how| f.maybe_number(how).map(ClientOrderId));
            Command::Order(match (other, entry, name) {
                (Some(other), _, name) => OrderCommand::NewLinked(LinkedOrder::new(&order, other, name)),
                (None, Some(entry), name) => OrderCommand::NewLinked(LinkedOrder::exit(&order, entry, name)),
                (None, None, Some(name)) => OrderCommand::NewNamed(NamedOrder::new(&order, name)),
                (None, None, None) => OrderCommand::New(order),
            })
        }
        "cancel_after" => {
            let (account, timeout_ms) = (f.account(), f.number("timeout_ms"));
            Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }))
        }
        "cancel_order" => Command::Order(OrderCommand::Cancel(CancelOrder {
            account: f.account(),
            instrument: f.instrument(),
            client_order_id: f.order(),
        })),
        "amend_order" => {
            let amend = AmendOrder {
                account: f.account(),
                instrument: f.instrument(),
                amendment: Amendment {
                    client_order_id: f.order(),
                    price: f.maybe_ticks("price_ticks"),
                    trigger: f.maybe_ticks("trigger_ticks"),
                    size: f.maybe_lots("open_lots"),
                },
            };
            let name = f.maybe("client_order_name");
            let name = name.map(|name| ClientOrderName::of_replacement(name.as_str().unwrap().as_bytes()).unwrap());
            Command::Order(match name {
                Some(name) => OrderCommand::AmendNamed(NamedAmend { amend, name }),
                None => OrderCommand::Amend(amend),
            })
        }
        "mass_cancel" => Command::Order(OrderCommand::MassCancel(MassCancel {
            account: f.account(),
            instrument: f.maybe_number("instrument_id").map(|id| InstrumentId(u32::try_from(id).unwrap())),
            side: f.maybe("side").map(|side| names::parse_side(side.as_str().unwrap()).unwrap()),
        })),
        "tick" => Command::Venue(VenueCommand::Tick),
        "open_session" => Command::Session(SessionCommand::Open(OpenSession {
            account: f.maybe_number("account_id").map(|id| AccountId(u32::try_from(id).unwrap())),
            token: f.number("token"),
        })),
        "close_session" => Command::Session(SessionCommand::Close(CloseSession { session: SessionId(f.number("session_id")) })),
        "checkpoint" => Command::Venue(VenueCommand::Checkpoint(Checkpoint {
            log_index: LogIndex(f.number("log_index")),
            state_hash: read_hash(&f.text("state_hash")),
        })),
        "create_asset" => Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(f.small("asset_id")),
            symbol: Symbol::new(&f.text("symbol")).unwrap(),
            decimals: u8::try_from(f.small("decimals")).unwrap(),
        })),
        "create_instrument" => Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
            instrument: f.instrument(),
            symbol: Symbol::new(&f.text("symbol")).unwrap(),
            base: AssetId(f.small("base_asset_id")),
            quote: AssetId(f.small("quote_asset_id")),
            lot_units: f.number("lot_units"),
            tick_value_units: f.number("tick_value_units"),
            allocation: read_allocation(f.object("allocation")),
            fees: FeeSchedule { maker_ppm: f.ppm("maker_fee_ppm"), taker_ppm: f.ppm("taker_fee_ppm") },
            collar_ppm: f.small("collar_ppm"),
            band_ppm: f.small("band_ppm"),
            reference_price: f.ticks("reference_price_ticks"),
            default_limits: read_limits(f.object("default_limits")),
        })),
        "create_account" => Command::Account(AccountCommand::Create(f.account())),
        "set_account_status" => Command::Account(AccountCommand::SetStatus(SetAccountStatus {
            account: f.account(),
            status: names::parse_account_status(&f.text("status")).unwrap(),
        })),
        "deposit" => Command::Account(AccountCommand::Deposit(read_transfer(&mut f))),
        "withdraw" => Command::Account(AccountCommand::Withdraw(read_transfer(&mut f))),
        "collect_fees" => {
            Command::Account(AccountCommand::CollectFees(CollectFees { asset: AssetId(f.small("asset_id")), account: f.account() }))
        }
        "set_risk_limits" => Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits {
            account: f.account(),
            instrument: f.instrument(),
            limits: read_limits(f.object("limits")),
        })),
        "set_trading_phase" => Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase {
            instrument: f.instrument(),
            phase: names::parse_phase(&f.text("phase")).unwrap(),
        })),
        "set_access_delays" => Command::Venue(VenueCommand::SetAccessDelays(AccessDelays {
            sequencing_ns: f.number("sequencing_ns"),
            release_ns: f.number("release_ns"),
        })),
        "note_cluster_request" => Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote {
            action: names::parse_cluster_action(&f.text("action")).unwrap(),
            replica: f.number("replica"),
        })),
        "set_engine_version" => {
            Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(u16::try_from(f.small("engine_version")).unwrap())))
        }
        "invalid" => Command::Invalid(InvalidCommand {
            account: f.maybe_number("account_id").map(|id| AccountId(u32::try_from(id).unwrap())),
            instrument: f.maybe_number("instrument_id").map(|id| InstrumentId(u32::try_from(id).unwrap())),
            client_order_id: f.maybe_number("client_order_id").map(ClientOrderId),
            name: f.maybe("client_order_name").map(|name| ClientOrderName::new(name.as_str().unwrap()).unwrap()),
            reason: RejectReason::from_number(u16::try_from(f.small("reason")).unwrap()).unwrap(),
            content: ContentDigest(f.number("content")),
        }),
        other => {
            let of_shards = shards::read_command(other, &mut f);
            let found = of_shards.or_else(|| batches::read_command(other, &mut f));
            found.unwrap_or_else(|| panic!("{other}"))
        }
    };
    f.end();
    command
}

fn read_hash(hex: &str) -> [u8; 32] {
    crate::json::batches::unhex(hex).unwrap().try_into().unwrap()
}

/// Kinds of commands. One more does not compile in [`kind`]; then this number grows, and `commands` has to have it.
const KINDS: usize = 44;

fn kind(command: &Command) -> usize {
    match command {
        Command::Order(OrderCommand::New(_)) => 0,
        Command::Order(OrderCommand::Cancel(_)) => 1,
        Command::Order(OrderCommand::Amend(_)) => 2,
        Command::Order(OrderCommand::MassCancel(_)) => 3,
        Command::Order(OrderCommand::NewNamed(_)) => 38,
        Command::Order(OrderCommand::NewLinked(_)) => 40,
        Command::Order(OrderCommand::CancelAfter(_)) => 39,
        Command::Order(OrderCommand::AmendNamed(_)) => 43,
        Command::Venue(VenueCommand::Tick) => 4,
        Command::Venue(VenueCommand::CreateAsset(_)) => 5,
        Command::Instrument(InstrumentCommand::Create(_)) => 6,
        Command::Account(AccountCommand::Create(_)) => 7,
        Command::Account(AccountCommand::SetStatus(_)) => 8,
        Command::Account(AccountCommand::Deposit(_)) => 9,
        Command::Account(AccountCommand::Withdraw(_)) => 10,
        Command::Account(AccountCommand::CollectFees(_)) => 11,
        Command::Account(AccountCommand::SetRiskLimits(_)) => 12,
        Command::Instrument(InstrumentCommand::SetPhase(_)) => 13,
        Command::Session(SessionCommand::Open(_)) => 14,
        Command::Session(SessionCommand::Close(_)) => 15,
        Command::Venue(VenueCommand::Checkpoint(_)) => 16,
        Command::BatchMarket(BatchMarketCommand::Create(_)) => 17,
        Command::BatchMarket(BatchMarketCommand::AddAsset(_)) => 18,
        Command::BatchMarket(BatchMarketCommand::SetPhase(_)) => 19,
        Command::BatchMarket(BatchMarketCommand::SetInterval(_)) => 20,
        Command::Account(AccountCommand::SetKey(_)) => 21,
        Command::Venue(VenueCommand::SetIssuer(_)) => 22,
        Command::Batch(BatchCommand::Submit(_)) => 23,
        Command::Batch(BatchCommand::Close(_)) => 24,
        Command::Batch(BatchCommand::Step(_)) => 41,
        Command::Venue(VenueCommand::SetAccessDelays(_)) => 25,
        Command::Shard(ShardCommand::Configure(_)) => 26,
        Command::Shard(ShardCommand::AssignInstrument(_)) => 27,
        Command::Shard(ShardCommand::TransferOut(_)) => 28,
        Command::Shard(ShardCommand::TransferIn(_)) => 29,
        Command::Shard(ShardCommand::ConfirmTransfers(_)) => 30,
        Command::Shard(ShardCommand::ReturnTransfer(_)) => 31,
        Command::Shard(ShardCommand::DoubtTransfers) => 32,
        Command::Shard(ShardCommand::CompareTransfers(_)) => 33,
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(_)) => 34,
        Command::Invalid(_) => 35,
        Command::Venue(VenueCommand::NoteClusterRequest(_)) => 36,
        Command::Venue(VenueCommand::SetEngineVersion(_)) => 37,
        Command::BatchMarket(BatchMarketCommand::SetCurrencies(_)) => 42,
    }
}

fn orders() -> Vec<OrderTerms> {
    let (price, trigger) = (PriceTicks::new(101).unwrap(), PriceTicks::new(PRICE_TICKS_MAX).unwrap());
    let plain = OrderTerms::limit(Side::Buy, price, SizeLots::new(7));
    let stops = [OrderType::Stop { trigger }, OrderType::StopLimit { trigger, price }];
    let profits = [OrderType::TakeProfit { trigger }, OrderType::TakeProfitLimit { trigger, price }];
    let trails = [
        OrderType::TrailingStop { trail: Trail::Ticks(1) },
        OrderType::TrailingStop { trail: Trail::Ppm(u32::MAX) },
        OrderType::TrailingStopLimit { trail: Trail::Ticks(u32::MAX), price },
        OrderType::TrailingStopLimit { trail: Trail::Ppm(5), price },
    ];
    let types = [OrderType::Market]
        .into_iter()
        .chain(stops)
        .chain(profits)
        .chain(trails)
        .chain([PostOnly::Off, PostOnly::Reject, PostOnly::Reprice].map(|post_only| OrderType::Limit { price, post_only }));
    let mut orders: Vec<OrderTerms> = types.map(|order_type| OrderTerms { order_type, ..plain }).collect();
    let lasting = [TimeInForce::Day, TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill];
    let until = [0, EXACT_BELOW - 1, EXACT_BELOW, 1_700_000_000_000_000_000, u64::MAX].map(|ns| TimeInForce::GoodTill(TimeNs(ns)));
    orders.extend(lasting.into_iter().chain(until).map(|time_in_force| OrderTerms { time_in_force, ..plain }));
    let displays = [Display::Iceberg { peak: SizeLots::new(2) }, Display::Hidden];
    orders.extend(displays.map(|display| OrderTerms { display, ..plain }));
    let modes = [SelfTrade::CancelOldest, SelfTrade::CancelBoth, SelfTrade::Decrement, SelfTrade::Allow];
    orders.extend(modes.map(|self_trade| OrderTerms { self_trade, side: Side::Sell, ..plain }));
    orders.push(OrderTerms { min_size: Some(SizeLots::new(3)), size: SizeLots::new(u64::MAX), ..plain });
    orders
}

fn commands() -> Vec<Command> {
    let (account, instrument, client_order_id) = (AccountId(u32::MAX), InstrumentId(2), ClientOrderId(u64::MAX));
    let limits = RiskLimits {
        order_lots_max: SizeLots::new(1),
        order_value_max: Amount::new(AMOUNT_MAX).unwrap(),
        open_orders_max: 3,
        position_lots_max: SizeLots::new(4),
    };
    let min_lots = SizeLots::new(5);
    let allocations = [
        Allocation::PriceTime,
        Allocation::ProRata { min_lots },
        Allocation::TopProRata { top_lots_max: SizeLots::new(6), min_lots },
        Allocation::Split { fifo_percent: 40, min_lots },
    ];
    let spec = |allocation| InstrumentSpec {
        instrument,
        symbol: Symbol::new("BTC/USD").unwrap(),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: EXACT_BELOW,
        tick_value_units: 25,
        allocation,
        fees: FeeSchedule { maker_ppm: -10, taker_ppm: 20 },
        collar_ppm: 200_000,
        band_ppm: 100_000,
        reference_price: PriceTicks::new(30_000).unwrap(),
        default_limits: RiskLimits::NONE,
    };
    let transfer = Transfer {
        account,
        asset: AssetId(1),
        amount: Amount::new(EXACT_BELOW - 1).unwrap(),
        transfer_id: TransferId(EXACT_BELOW),
    };
    let amend =
        |price, trigger, size| AmendOrder { account, instrument, amendment: Amendment { client_order_id, price, trigger, size } };
    let (price, size) = (Some(PriceTicks::MIN), Some(SizeLots::new(9)));
    let phases = [
        TradingPhase::Closed,
        TradingPhase::PreOpen,
        TradingPhase::OpeningAuction,
        TradingPhase::Continuous,
        TradingPhase::Halt,
        TradingPhase::ClosingAuction,
    ];
    let mut all = vec![
        Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id })),
        Command::Order(OrderCommand::Amend(amend(price, None, None))),
        Command::Order(OrderCommand::Amend(amend(None, None, size))),
        Command::Order(OrderCommand::Amend(amend(None, price, None))),
        Command::Order(OrderCommand::Amend(amend(price, Some(PriceTicks::MAX), size))),
        Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None })),
        Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: Some(instrument), side: Some(Side::Sell) })),
        Command::Venue(VenueCommand::Tick),
        Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token: u64::MAX })),
        Command::Session(SessionCommand::Open(OpenSession { account: None, token: 0 })),
        Command::Session(SessionCommand::Close(CloseSession { session: SessionId(EXACT_BELOW) })),
        Command::Venue(VenueCommand::Checkpoint(Checkpoint {
            log_index: LogIndex(7),
            state_hash: std::array::from_fn(|at| at as u8 * 8),
        })),
        Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: AssetId(0),
            symbol: Symbol::new("BTC").unwrap(),
            decimals: 8,
        })),
        Command::Account(AccountCommand::Create(account)),
        Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status: AccountStatus::Active })),
        Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status: AccountStatus::Suspended })),
        Command::Account(AccountCommand::Deposit(transfer)),
        Command::Account(AccountCommand::Withdraw(transfer)),
        Command::Account(AccountCommand::CollectFees(CollectFees { asset: AssetId(1), account })),
        Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits { account, instrument, limits })),
        Command::Venue(VenueCommand::SetAccessDelays(AccessDelays { sequencing_ns: EXACT_BELOW, release_ns: 0 })),
        Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote {
            action: ClusterAction::TransferLeadership,
            replica: 3,
        })),
        Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote { action: ClusterAction::AddVoter, replica: 1 })),
        Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote {
            action: ClusterAction::AddLearner,
            replica: u64::MAX,
        })),
        Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote { action: ClusterAction::Remove, replica: 2 })),
        Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(u16::MAX))),
        Command::Invalid(InvalidCommand {
            account: Some(account),
            instrument: Some(instrument),
            client_order_id: Some(client_order_id),
            reason: RejectReason::PriceOutOfRange,
            content: ContentDigest(EXACT_BELOW),
            name: ClientOrderName::new("abc-1"),
        }),
        Command::Invalid(InvalidCommand {
            account: None,
            instrument: None,
            client_order_id: None,
            reason: RejectReason::Malformed,
            content: ContentDigest(0),
            name: None,
        }),
    ];
    all.extend(allocations.map(|allocation| Command::Instrument(InstrumentCommand::Create(spec(allocation)))));
    all.extend(batches::commands());
    all.extend(shards::commands());
    all.extend(phases.map(|phase| Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }))));
    all.extend(
        orders()
            .into_iter()
            .map(|terms| Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))),
    );
    all.push(Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms: 5_000 })));
    let name = ClientOrderName::new("abc-1").unwrap();
    let named = |terms| NamedOrder::new(&NewOrder { account, instrument, client_order_id, terms }, name);
    all.extend(orders().into_iter().map(|terms| Command::Order(OrderCommand::NewNamed(named(terms)))));
    let linked = |name| {
        let terms = OrderTerms::limit(Side::Buy, PriceTicks::MIN, SizeLots::new(1));
        LinkedOrder::new(&NewOrder { account, instrument, client_order_id, terms }, ClientOrderId(u64::MAX), name)
    };
    all.extend([None, Some(name)].map(|name| Command::Order(OrderCommand::NewLinked(linked(name)))));
    let given = [b"abc-2".as_slice(), b"0077"].map(|text| ClientOrderName::of_replacement(text).unwrap());
    let replaced = given.map(|name| NamedAmend { amend: amend(price, None, size), name });
    all.extend(replaced.map(|named| Command::Order(OrderCommand::AmendNamed(named))));
    let exit = LinkedOrder::exit(&linked(None).order(), ClientOrderId(u64::MAX), None);
    all.push(Command::Order(OrderCommand::NewLinked(exit)));
    all
}

#[test]
fn every_command_is_read_back_from_its_line() {
    let mut seen = [false; KINDS];
    for command in commands() {
        seen[kind(&command)] = true;
        let ordinal = Ordinal { session: SessionId(7), session_seq: SessionSeq(EXACT_BELOW) };
        let key = KeyName::new("ed_operator");
        let now = 1_700_000_000_000_000_000;
        for (index, time, ordinal, key) in [(1, 0, None, None), (EXACT_BELOW, now, Some(ordinal), None), (2, now, None, key)] {
            let line = entry(&Entry {
                log_index: LogIndex(index),
                time: TimeNs(time),
                ordinal,
                key,
                nonce: None,
                content: command.into(),
            })
            .to_string();
            assert!(!line.contains('\n'));
            let mut read = Fields::of(serde_json::from_str(&line).unwrap());
            assert_eq!((read.number("log_index"), read.number("time_ns")), (index, time), "{line}");
            if let Some(Ordinal { session, session_seq }) = ordinal {
                assert_eq!((read.number("session"), read.number("session_seq")), (session.0, session_seq.0), "{line}");
            }
            if let Some(key) = key {
                assert_eq!(read.text("key_id"), key.as_str(), "{line}");
            }
            assert_eq!(read_command(read.object("command")), command, "{line}");
            read.end();
        }
    }
    assert_eq!(seen, [true; KINDS], "a kind of command has no line here");
}

#[test]
fn an_entry_looks_as_the_documents_say() {
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(120_000).unwrap(), SizeLots::new(5_000));
    let order = NewOrder { account: AccountId(1), instrument: InstrumentId(0), client_order_id: ClientOrderId(7), terms };
    let entry = entry(&Entry {
        log_index: LogIndex(42),
        time: TimeNs(1_700_000_000_000_000_000),
        ordinal: None,
        key: None,
        nonce: None,
        content: Command::Order(OrderCommand::New(order)).into(),
    });
    let document = include_str!("../../../../../docs/log-dump.md");
    let example = document.lines().find(|line| line.starts_with("{\"log_index\"") || line.starts_with("{\"command\"")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(example).unwrap(), entry, "docs/log-dump.md");
    let mut kinds: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for command in commands() {
        let kind = super::command(&command)["kind"].as_str().unwrap().to_owned();
        assert!(kinds.contains(&kind.as_str()), "docs/log-dump.md does not say what {kind} holds");
        let Value::Object(fields) = super::command(&command) else { panic!("no object") };
        for key in fields.keys() {
            assert!(document.contains(&format!("`{key}`")), "docs/log-dump.md does not mention {key}");
        }
    }
}
