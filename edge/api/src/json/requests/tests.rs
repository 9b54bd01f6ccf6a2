//! Whatever a client sends ends in a refusal or in a command that the log takes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_wire::{decode_command, encode_command};

use super::*;
use crate::json::brackets::BracketCommands;

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for (id, symbol, decimals) in [(0, "BTC", 8), (1, "USD", 6), (2, "WEI", 18)] {
        catalog.add_asset(AssetSpec { asset: AssetId(id), symbol: Symbol::new(symbol).unwrap(), decimals });
    }
    for (id, symbol) in [(0, "BTC/USD"), (1, "A/B")] {
        catalog.add_instrument(InstrumentSpec {
            instrument: InstrumentId(id),
            symbol: Symbol::new(symbol).unwrap(),
            base: AssetId(id * 2),
            quote: AssetId(1),
            lot_units: 10_000,
            tick_value_units: 25,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
            collar_ppm: 0,
            band_ppm: 0,
            reference_price: walras_types::PriceTicks::MIN,
            default_limits: RiskLimits::NONE,
        });
    }
    catalog
}

const EDGY: &[&str] = &[
    "",
    "0",
    "1",
    "0.25",
    "0.0001",
    "30000",
    "-1",
    "1e9",
    "1.",
    "00",
    "18446744073709551615",
    "18446744073709551616",
    "BTC/USD",
    "BTC-USD",
    "A/B",
    "BTC",
    "USD",
    "WEI",
    "buy",
    "sell",
    "limit",
    "market",
    "stop",
    "stop_limit",
    "take_profit",
    "take_profit_limit",
    "trailing_stop",
    "trailing_stop_limit",
    "gtc",
    "gtt",
    "fok",
    "reject",
    "iceberg",
    "hidden",
    "decrement",
    "halt",
    "active",
    "pro_rata",
    "top_pro_rata",
    "split",
    "99999999999999999999999999999999999999999",
    "0.000000000000000001",
    "109951162777500",
    "\u{0}",
    "1\u{661}",
];

/// Values at and beyond the edges of what fields hold.
fn edgy() -> impl Strategy<Value = Value> {
    let text = prop_oneof![8 => prop::sample::select(EDGY).prop_map(Value::from), 1 => ".{0,40}".prop_map(Value::from)];
    let number = prop_oneof![Just(0_i64), Just(-1), Just(100), Just(i64::MAX), Just(i64::MIN), any::<i64>()].prop_map(Value::from);
    prop_oneof![12 => text, 2 => number, 1 => Just(Value::Null), 1 => Just(Value::from(1.5)), 1 => Just(Value::Array(vec![]))]
}

fn body(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(names), edgy()), 0..names.len() + 1)
        .prop_map(|fields| Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()))
}

/// Whatever was sent, what comes out is a refusal or a command that goes into the log and comes out the same.
fn check(command: Result<Command, Refusal>) {
    match command {
        Ok(command) => {
            let mut bytes = Vec::new();
            encode_command(&command, &mut bytes);
            assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            assert_eq!(decode_command(&bytes), Ok(command));
        }
        Err(refusal) => assert!(refusal.detail.is_some(), "{refusal:?} says what was wrong"),
    }
}

const ORDER: &[&str] = &[
    "instrument",
    "client_order_id",
    "side",
    "size",
    "type",
    "price",
    "trigger",
    "time_in_force",
    "expire_time_ns",
    "post_only",
    "display",
    "peak",
    "min_size",
    "self_trade",
];
const INSTRUMENT: &[&str] = &[
    "symbol",
    "base",
    "quote",
    "tick_size",
    "lot_size",
    "reference_price",
    "maker_fee_ppm",
    "taker_fee_ppm",
    "collar_ppm",
    "band_ppm",
    "allocation",
    "default_limits",
];
const ALLOCATION: &[&str] = &["kind", "min_size", "top_size_max", "fifo_percent"];
const LIMITS: &[&str] = &["order_size_max", "order_value_max", "open_orders_max", "position_max"];
const TRANSFER: &[&str] = &["account_id", "asset", "amount", "transfer_id"];

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("{value} is no object") };
    object
}

/// Reads a body, and says why not.
type Reads = fn(&[u8]) -> Option<Refusal>;

/// A sound body of every request, as far as its fields go.
const BODIES: [(&str, Reads); 14] = [
    (r#"{"instrument":"BTC/USD","client_order_id":"1","side":"buy","size":"1","type":"limit","price":"1"}"#, reads::<OrderRequest>),
    (
        r#"{"instrument":"BTC/USD","side":"buy","size":"1","type":"market","take_profit":{"trigger":"3"},"stop_loss":
        {"trigger":"1","price":"1","client_order_id":"1"}}"#,
        reads::<OrderRequest>,
    ),
    (r#"{"instrument":"BTC/USD","client_order_id":"1"}"#, reads::<CancelRequest>),
    (r#"{"price":"1","trigger":"1","size":"1"}"#, reads::<AmendRequest>),
    (r#"{"instrument":"BTC/USD","side":"buy"}"#, reads::<MassCancelRequest>),
    (r#"{"symbol":"X","decimals":2}"#, reads::<AssetRequest>),
    (
        r#"{"symbol":"X","base":"BTC","quote":"USD","tick_size":"1","lot_size":"1","reference_price":"1","allocation":
        {"kind":"split","fifo_percent":5},"default_limits":{"order_size_max":"1"}}"#,
        reads::<InstrumentRequest>,
    ),
    (r#"{"account_id":1,"asset":"USD","amount":"1","transfer_id":"1"}"#, reads::<TransferRequest>),
    (r#"{"account_id":1,"asset":"USD"}"#, reads::<FeesRequest>),
    (r#"{"account_id":1,"instrument":"BTC/USD","limits":{"position_max":"1"}}"#, reads::<LimitsRequest>),
    (r#"{"instrument":"BTC/USD","phase":"halt"}"#, reads::<PhaseRequest>),
    (r#"{"account_id":1,"status":"active"}"#, reads::<AccountStatusRequest>),
    (r#"{"token":"1"}"#, reads::<crate::json::once::SessionRequest>),
    (r#"{"asset":"USD","amount":"1","to_shard":1,"client_transfer_id":"1"}"#, reads::<TransferOutRequest>),
];

fn reads<T: DeserializeOwned>(bytes: &[u8]) -> Option<Refusal> {
    parse::<T>(bytes).err()
}

/// Each field twice, with the same value and with another one, and a field that is none, at every depth.
#[test]
fn a_field_twice_or_unknown_is_refused_by_its_name() {
    for (body, reads) in BODIES {
        assert_eq!(reads(body.as_bytes()), None, "{body}");
        let says = |text: &str, expected: &str| {
            let refusal = reads(text.as_bytes()).unwrap_or_else(|| panic!("{text} is taken"));
            assert_eq!(refusal.reason, RejectReason::Malformed);
            assert!(refusal.detail.as_ref().is_some_and(|detail| detail.contains(expected)), "{text}: {refusal:?}");
        };
        for (at, _) in body.match_indices('{') {
            let (before, after) = body.split_at(at + 1);
            says(&format!(r#"{before}"surprise":1,{after}"#), "unknown field `surprise`");
            let name = after.split('"').nth(1).expect("an object has a field");
            for value in ["1", r#""other""#, "null"] {
                says(&format!(r#"{before}"{name}":{value},{after}"#), &format!("duplicate field `{name}`"));
            }
        }
    }
}

/// Exits come before the order. They have its size and the other side, and name it.
#[test]
fn an_order_with_exits_is_as_many_commands() {
    let body = json!({
        "instrument": "BTC-USD", "client_order_id": "7", "side": "buy", "type": "limit", "size": "1", "price": "30000",
        "time_in_force": "day", "take_profit": {"trigger": "31000", "client_order_id": "8"},
        "stop_loss": {"trigger": "29000", "price": "28990"},
    });
    let (account, catalog) = (AccountId(3), catalog());
    let request: OrderRequest = parse_object(object(body.clone())).unwrap();
    assert!(request.has_exits());
    let BracketCommands { exits, entry: (entry, _) } = request.bracket(account, &catalog, || ClientOrderId(9)).unwrap();
    let Command::Order(OrderCommand::New(entry)) = entry else { panic!("{entry:?} is no order") };
    let scale = instrument(&catalog, "BTC-USD").unwrap();
    let [profit, loss, limit] = ["31000", "29000", "28990"].map(|text| scale.parse_price(text).unwrap());
    let expected = [
        ("take_profit", 8, OrderType::TakeProfit { trigger: profit }),
        ("stop_loss", 9, OrderType::StopLimit { trigger: loss, price: limit }),
    ];
    assert_eq!(exits.len(), expected.len());
    for ((what, command, subject), (name, number, order_type)) in exits.into_iter().zip(expected) {
        let id = ClientOrderId(number);
        let terms = OrderTerms { side: Side::Sell, order_type, time_in_force: TimeInForce::GoodTillCancel, ..entry.terms };
        let exit = LinkedOrder::exit(&NewOrder { client_order_id: id, terms, ..entry }, ClientOrderId(7), None);
        assert_eq!((what, command, subject.called.id), (name, Command::Order(OrderCommand::NewLinked(exit)), id));
    }
    // Where an order is one command, it has none.
    let refused = request.command(account, &catalog, || ClientOrderId(9)).unwrap_err();
    assert!(refused.detail.unwrap().starts_with("take_profit does not go here"));
    for (field, value) in [("trigger", "31000.1"), ("price", "x"), ("client_order_id", "")] {
        let mut wrong = body.clone();
        wrong["take_profit"][field] = value.into();
        let request: OrderRequest = parse_object(object(wrong)).unwrap();
        assert!(request.bracket(account, &catalog, || ClientOrderId(9)).unwrap_err().detail.unwrap().contains(field), "{field}");
    }
}

#[test]
fn a_list_in_the_order_of_the_fields_is_no_body() {
    assert!(parse::<AssetRequest>(br#"["X",2]"#).is_err());
    assert!(parse::<CancelRequest>(br#"["BTC/USD","1"]"#).is_err());
}

proptest! {
    #[test]
    fn no_order_body_does_harm(values in body(ORDER), known in any::<bool>()) {
        let mut values = values;
        if known {
            // Often enough a body that is nearly right.
            for (name, value) in [("instrument", "BTC-USD"), ("side", "buy"), ("size", "1"), ("type", "limit"), ("price", "30000")] {
                values.as_object_mut().unwrap().entry(name).or_insert(value.into());
            }
        }
        let (account, catalog) = (AccountId(1), catalog());
        check(parse_object::<OrderRequest>(object(values.clone())).and_then(|r| r.command(account, &catalog, || ClientOrderId(1)).map(|c| c.0)));
        let of = CancelRequest { instrument: "A/B".into(), client_order_id: "7".into() };
        check(parse_object::<AmendRequest>(object(values)).and_then(|r| r.command(&of, account, &catalog).map(|c| c.0)));
    }

    #[test]
    fn no_operators_body_does_harm(
        instrument in body(INSTRUMENT),
        allocation in body(ALLOCATION),
        limits in body(LIMITS),
        transfer in body(TRANSFER),
        known in any::<bool>(),
    ) {
        let catalog = catalog();
        let mut instrument = instrument;
        if known {
            // Often enough a body that is nearly right, with what stands within it.
            let fields = [("symbol", "X"), ("base", "BTC"), ("quote", "USD"), ("tick_size", "0.25"), ("lot_size", "0.0001")];
            let values = instrument.as_object_mut().unwrap();
            for (name, value) in fields.into_iter().chain([("reference_price", "30000")]) {
                values.insert(name.to_owned(), value.into());
            }
            values.extend([("allocation".to_owned(), allocation), ("default_limits".to_owned(), limits)]);
        }
        check(parse_object::<InstrumentRequest>(object(instrument)).and_then(|r| r.command(InstrumentId(2), &catalog)));
        check(parse_object::<TransferRequest>(object(transfer)).and_then(|r| r.transfer(&catalog).map(|c| Command::Account(AccountCommand::Deposit(c)))));
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse::<OrderRequest>(&bytes).is_err());
    }
}
