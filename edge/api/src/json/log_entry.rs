//! Entries of the log as JSON objects, for `walras log dump --json`; docs/log-dump.md describes them.
//!
//! An entry is shown without the state that it was applied to. So what the API writes as decimal text is here what the log holds:
//! whole numbers of ticks, lots and smallest units, with the unit in the key. Numbers of 2^53 and more, which not every reader of
//! JSON takes exactly, are strings of digits. Every struct is taken apart by name, so that one that gains a field does not compile
//! here until the field is shown.

use serde_json::{Map, Value, json};
use walras_sequencer::{Content, Entry};
use walras_types::{
    Allocation, Amendment, Display, FeeSchedule, InstrumentSpec, OrderTerms, OrderType, PostOnly, PriceTicks, RiskLimits,
    TimeInForce, Trail,
};
use walras_wire::{
    AccessDelays, AccountCommand, AddBatchAsset, AmendOrder, AssetSpec, BatchCommand, BatchMarketCommand, CancelAfter, CancelOrder,
    Checkpoint, CloseBatch, CloseSession, ClusterRequestNote, CollectFees, Command, InstrumentCommand, InvalidCommand, Link,
    MassCancel, NewOrder, OpenSession, OrderCommand, SessionCommand, SetAccountFee, SetAccountKey, SetAccountStatus,
    SetBatchCurrencies, SetBatchInterval, SetBatchPhase, SetIssuer, SetRiskLimits, SetTradingPhase, StepBlock, Transfer,
    VenueCommand,
};

use super::batches::hex;
use super::names;

mod batches;
mod shards;

/// What a reader of JSON that knows only doubles holds exactly: everything below.
const EXACT_BELOW: u64 = 1 << 53;

/// An entry of the log.
#[must_use]
pub fn entry(entry: &Entry) -> Value {
    // The nonce is of use to the state alone.
    let Entry { log_index, time, ordinal, key, nonce: _, content } = entry;
    let mut fields = object([
        ("log_index", Some(number(log_index.0))),
        ("time_ns", Some(number(time.0))),
        ("session", ordinal.map(|ordinal| number(ordinal.session.0))),
        ("session_seq", ordinal.map(|ordinal| number(ordinal.session_seq.0))),
        ("key_id", key.map(|key| key.as_str().into())),
    ]);
    match content {
        Content::Command(says) => fields.insert("command".to_owned(), command(says)),
        Content::Clearing(block) => fields.insert("clearing".to_owned(), batches::clearing(block)),
    };
    fields.into()
}

fn number(value: u64) -> Value {
    if value < EXACT_BELOW { value.into() } else { value.to_string().into() }
}

fn ticks(price: PriceTicks) -> Value {
    price.get().into()
}

/// The fields that are there.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn command(command: &Command) -> Value {
    let (kind, fields) = match command {
        Command::Order(OrderCommand::New(c)) => ("new_order", new_order(c)),
        Command::Order(OrderCommand::NewNamed(c)) => {
            let mut fields = new_order(&c.order());
            fields.insert("client_order_name".to_owned(), c.name().as_str().into());
            ("new_order", fields)
        }
        Command::Order(OrderCommand::NewLinked(c)) => {
            let mut fields = new_order(&c.order());
            fields.extend(c.name().map(|name| ("client_order_name".to_owned(), name.as_str().into())));
            let how = match c.link() {
                Link::Oco => "oco_with",
                Link::Exit => "exit_of",
            };
            fields.insert(how.to_owned(), number(c.other().0));
            ("new_order", fields)
        }
        Command::Order(OrderCommand::CancelAfter(c)) => {
            let CancelAfter { account, timeout_ms } = c;
            let fields = [("account_id", Some(account.0.into())), ("timeout_ms", Some(number(*timeout_ms)))];
            ("cancel_after", object(fields))
        }
        Command::Order(OrderCommand::Cancel(c)) => {
            let CancelOrder { account, instrument, client_order_id } = c;
            let fields = [
                ("account_id", Some(account.0.into())),
                ("instrument_id", Some(instrument.0.into())),
                ("client_order_id", Some(number(client_order_id.0))),
            ];
            ("cancel_order", object(fields))
        }
        Command::Order(OrderCommand::Amend(c)) => ("amend_order", amend_order(c)),
        Command::Order(OrderCommand::AmendNamed(c)) => {
            let mut fields = amend_order(&c.amend);
            fields.insert("client_order_name".to_owned(), c.name.as_str().into());
            ("amend_order", fields)
        }
        Command::Order(OrderCommand::MassCancel(c)) => {
            let MassCancel { account, instrument, side } = c;
            let fields = [
                ("account_id", Some(account.0.into())),
                ("instrument_id", instrument.map(|id| id.0.into())),
                ("side", side.map(|side| names::side(side).into())),
            ];
            ("mass_cancel", object(fields))
        }
        Command::Venue(VenueCommand::Tick) => ("tick", Map::new()),
        Command::Session(SessionCommand::Open(c)) => {
            let OpenSession { account, token } = c;
            ("open_session", object([("account_id", account.map(|id| id.0.into())), ("token", Some(number(*token)))]))
        }
        Command::Session(SessionCommand::Close(c)) => {
            let CloseSession { session } = c;
            ("close_session", object([("session_id", Some(number(session.0)))]))
        }
        Command::Venue(VenueCommand::Checkpoint(c)) => {
            let Checkpoint { log_index, state_hash } = c;
            let fields = [("log_index", Some(number(log_index.0))), ("state_hash", Some(hex(state_hash).into()))];
            ("checkpoint", object(fields))
        }
        Command::Venue(VenueCommand::CreateAsset(c)) => {
            let AssetSpec { asset, symbol, decimals } = c;
            let fields = [
                ("asset_id", Some(asset.0.into())),
                ("symbol", Some(symbol.as_str().into())),
                ("decimals", Some((*decimals).into())),
            ];
            ("create_asset", object(fields))
        }
        Command::Instrument(InstrumentCommand::Create(c)) => ("create_instrument", instrument(c)),
        Command::Account(AccountCommand::Create(account)) => ("create_account", object([("account_id", Some(account.0.into()))])),
        Command::Account(AccountCommand::SetStatus(c)) => {
            let SetAccountStatus { account, status } = c;
            let status = names::account_status(*status);
            ("set_account_status", object([("account_id", Some(account.0.into())), ("status", Some(status.into()))]))
        }
        Command::Account(AccountCommand::Deposit(c)) => ("deposit", transfer(c)),
        Command::Account(AccountCommand::Withdraw(c)) => ("withdraw", transfer(c)),
        Command::Account(AccountCommand::CollectFees(c)) => {
            let CollectFees { asset, account } = c;
            ("collect_fees", object([("asset_id", Some(asset.0.into())), ("account_id", Some(account.0.into()))]))
        }
        Command::Account(AccountCommand::SetRiskLimits(c)) => {
            let SetRiskLimits { account, instrument, limits } = c;
            let fields = [
                ("account_id", Some(account.0.into())),
                ("instrument_id", Some(instrument.0.into())),
                ("limits", Some(self::limits(limits))),
            ];
            ("set_risk_limits", object(fields))
        }
        Command::Instrument(InstrumentCommand::SetPhase(c)) => {
            let SetTradingPhase { instrument, phase } = c;
            let phase = names::phase(*phase);
            ("set_trading_phase", object([("instrument_id", Some(instrument.0.into())), ("phase", Some(phase.into()))]))
        }
        Command::Venue(VenueCommand::SetAccessDelays(c)) => {
            let AccessDelays { sequencing_ns, release_ns } = c;
            let fields = [("sequencing_ns", Some(number(*sequencing_ns))), ("release_ns", Some(number(*release_ns)))];
            ("set_access_delays", object(fields))
        }
        Command::Venue(VenueCommand::NoteClusterRequest(c)) => {
            let ClusterRequestNote { action, replica } = c;
            let fields = [("action", Some(names::cluster_action(*action).into())), ("replica", Some(number(*replica)))];
            ("note_cluster_request", object(fields))
        }
        Command::Venue(VenueCommand::SetEngineVersion(version)) => {
            ("set_engine_version", object([("engine_version", Some(version.0.into()))]))
        }
        Command::Invalid(c) => {
            let InvalidCommand { account, instrument, client_order_id, reason, content, name } = c;
            let fields = [
                ("account_id", account.map(|id| id.0.into())),
                ("instrument_id", instrument.map(|id| id.0.into())),
                ("client_order_id", client_order_id.map(|id| number(id.0))),
                ("client_order_name", name.as_ref().map(|name| name.as_str().into())),
                ("reason", Some(reason.number().into())),
                ("content", Some(number(content.0))),
            ];
            ("invalid", object(fields))
        }
        Command::BatchMarket(BatchMarketCommand::Create(c)) => ("create_batch_market", batches::market(c)),
        Command::BatchMarket(BatchMarketCommand::AddAsset(c)) => {
            let AddBatchAsset { market, asset } = c;
            ("add_batch_asset", object([("batch_market_id", Some(market.0.into())), ("asset_id", Some(asset.0.into()))]))
        }
        Command::BatchMarket(BatchMarketCommand::SetPhase(c)) => {
            let SetBatchPhase { market, phase } = c;
            let phase = names::batch_phase(*phase);
            ("set_batch_phase", object([("batch_market_id", Some(market.0.into())), ("phase", Some(phase.into()))]))
        }
        Command::BatchMarket(BatchMarketCommand::SetInterval(c)) => {
            let SetBatchInterval { market, interval_ns } = c;
            let fields = [("batch_market_id", Some(market.0.into())), ("interval_ns", Some(number(*interval_ns)))];
            ("set_batch_interval", object(fields))
        }
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(c)) => {
            let SetAccountFee { market, fee } = c;
            let fields = [
                ("batch_market_id", Some(market.0.into())),
                ("asset_id", fee.map(|fee| fee.asset.0.into())),
                ("amount_units", fee.map(|fee| number(fee.amount.get()))),
            ];
            ("set_account_fee", object(fields))
        }
        Command::BatchMarket(BatchMarketCommand::SetCurrencies(c)) => {
            let SetBatchCurrencies { market, currencies } = c;
            let fields = [("batch_market_id", Some(market.0.into())), ("currencies", Some((*currencies).into()))];
            ("set_batch_currencies", object(fields))
        }
        Command::Account(AccountCommand::SetKey(c)) => {
            let SetAccountKey { account, key } = c;
            ("set_account_key", object([("account_id", Some(account.0.into())), ("key", Some(hex(&key.0).into()))]))
        }
        Command::Venue(VenueCommand::SetIssuer(c)) => {
            let SetIssuer { asset, account } = c;
            ("set_issuer", object([("asset_id", Some(asset.0.into())), ("account_id", Some(account.0.into()))]))
        }
        Command::Batch(BatchCommand::Submit(c)) => ("submit_transaction", batches::submit(c)),
        Command::Batch(BatchCommand::Close(c)) => {
            let CloseBatch { market, block } = c;
            ("close_batch", object([("batch_market_id", Some(market.0.into())), ("block", Some(number(*block)))]))
        }
        Command::Batch(BatchCommand::Step(c)) => {
            let StepBlock { market, block, step } = c;
            let (market, block) = (Some(market.0.into()), Some(number(*block)));
            ("step_block", object([("batch_market_id", market), ("block", block), ("step", Some((*step).into()))]))
        }
        Command::Shard(c) => shards::command(c),
    };
    let mut fields = fields;
    fields.insert("kind".to_owned(), kind.into());
    Value::Object(fields)
}

fn amend_order(c: &AmendOrder) -> Map<String, Value> {
    let AmendOrder { account, instrument, amendment } = c;
    let Amendment { client_order_id, price, trigger, size } = amendment;
    object([
        ("account_id", Some(account.0.into())),
        ("instrument_id", Some(instrument.0.into())),
        ("client_order_id", Some(number(client_order_id.0))),
        ("price_ticks", price.map(ticks)),
        ("trigger_ticks", trigger.map(ticks)),
        ("open_lots", size.map(|lots| number(lots.get()))),
    ])
}

fn new_order(order: &NewOrder) -> Map<String, Value> {
    let NewOrder { account, instrument, client_order_id, terms } = order;
    let OrderTerms { side, size, order_type, time_in_force, display, min_size, self_trade } = terms;
    let (price, trigger) = (order_type.limit(), order_type.trigger());
    let (trail_ticks, trail_ppm) = match order_type.trail() {
        Some(Trail::Ticks(ticks)) => (Some(ticks), None),
        Some(Trail::Ppm(ppm)) => (None, Some(ppm)),
        None => (None, None),
    };
    let post_only = if let OrderType::Limit { post_only, .. } = order_type { *post_only } else { PostOnly::Off };
    let expires = match time_in_force {
        TimeInForce::GoodTill(time) => Some(number(time.0)),
        TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => None,
    };
    let peak = match display {
        Display::Iceberg { peak } => Some(number(peak.get())),
        Display::Full | Display::Hidden => None,
    };
    object([
        ("account_id", Some(account.0.into())),
        ("instrument_id", Some(instrument.0.into())),
        ("client_order_id", Some(number(client_order_id.0))),
        ("side", Some(names::side(*side).into())),
        ("size_lots", Some(number(size.get()))),
        ("type", Some(names::order_type(order_type).into())),
        ("price_ticks", price.map(ticks)),
        ("trigger_ticks", trigger.map(ticks)),
        ("trail_ticks", trail_ticks.map(Value::from)),
        ("trail_ppm", trail_ppm.map(Value::from)),
        ("post_only", Some(names::post_only(post_only).into())),
        ("time_in_force", Some(names::time_in_force(time_in_force).into())),
        ("expire_time_ns", expires),
        ("display", Some(names::display(display).into())),
        ("peak_lots", peak),
        ("min_size_lots", min_size.map(|lots| number(lots.get()))),
        ("self_trade", Some(names::self_trade(*self_trade).into())),
    ])
}

fn transfer(transfer: &Transfer) -> Map<String, Value> {
    let Transfer { account, asset, amount, transfer_id } = transfer;
    object([
        ("account_id", Some(account.0.into())),
        ("asset_id", Some(asset.0.into())),
        ("amount_units", Some(number(amount.get()))),
        ("transfer_id", Some(number(transfer_id.0))),
    ])
}

fn instrument(spec: &InstrumentSpec) -> Map<String, Value> {
    let InstrumentSpec {
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
    } = spec;
    let FeeSchedule { maker_ppm, taker_ppm } = fees;
    object([
        ("instrument_id", Some(instrument.0.into())),
        ("symbol", Some(symbol.as_str().into())),
        ("base_asset_id", Some(base.0.into())),
        ("quote_asset_id", Some(quote.0.into())),
        ("lot_units", Some(number(*lot_units))),
        ("tick_value_units", Some(number(*tick_value_units))),
        ("allocation", Some(self::allocation(allocation))),
        ("maker_fee_ppm", Some((*maker_ppm).into())),
        ("taker_fee_ppm", Some((*taker_ppm).into())),
        ("collar_ppm", Some((*collar_ppm).into())),
        ("band_ppm", Some((*band_ppm).into())),
        ("reference_price_ticks", Some(ticks(*reference_price))),
        ("default_limits", Some(limits(default_limits))),
    ])
}

fn allocation(allocation: &Allocation) -> Value {
    let (top, percent, least) = match allocation {
        Allocation::PriceTime => (None, None, None),
        Allocation::ProRata { min_lots } => (None, None, Some(*min_lots)),
        Allocation::TopProRata { top_lots_max, min_lots } => (Some(*top_lots_max), None, Some(*min_lots)),
        Allocation::Split { fifo_percent, min_lots } => (None, Some(*fifo_percent), Some(*min_lots)),
    };
    Value::Object(object([
        ("kind", Some(names::allocation(allocation).into())),
        ("top_lots_max", top.map(|lots| number(lots.get()))),
        ("fifo_percent", percent.map(Value::from)),
        ("min_lots", least.map(|lots| number(lots.get()))),
    ]))
}

fn limits(limits: &RiskLimits) -> Value {
    let RiskLimits { order_lots_max, order_value_max, open_orders_max, position_lots_max } = limits;
    json!({
        "order_lots_max": number(order_lots_max.get()),
        "order_value_units_max": number(order_value_max.get()),
        "open_orders_max": open_orders_max,
        "position_lots_max": number(position_lots_max.get()),
    })
}

#[cfg(test)]
mod tests;
