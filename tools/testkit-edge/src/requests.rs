//! What clients send: bodies of requests and messages on a WebSocket.

use walras_access::Refusal;
use walras_api::json::requests::{
    AccountRequest, AccountStatusRequest, AmendRequest, AssetRequest, CancelRequest, FeesRequest, InstrumentRequest,
    InstrumentShardRequest, LimitsRequest, MassCancelRequest, OrderRequest, PhaseRequest, TransferOutRequest, TransferRequest,
    TransfersInRequest, parse,
};
use walras_api::ws::understand;
use walras_ports::Catalog;
use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_types::{
    AccountId, Allocation, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, PriceTicks, RejectReason, RiskLimits,
    Symbol, TimeNs,
};
use walras_wire::{AccountCommand, AssetSpec, Command, ShardCommand, decode_command, encode_command};

fn symbol(text: &str) -> Symbol {
    Symbol::new(text).expect("a symbol by its own rules")
}

/// Assets of few and of many decimals, and instruments between them.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for (id, name, decimals) in [(0, "BTC", 8), (1, "USD", 6), (2, "WEI", 18), (3, "INT", 0)] {
        catalog.add_asset(AssetSpec { asset: AssetId(id), symbol: symbol(name), decimals });
    }
    for (id, name, base, quote, lot_units, tick_value_units) in
        [(0, "BTC/USD", 0, 1, 10_000, 25), (1, "WEI/BTC", 2, 0, 1_000_000_000_000, 1), (2, "INT/USD", 3, 1, 1, 10_000)]
    {
        catalog.add_instrument(InstrumentSpec {
            instrument: InstrumentId(id),
            symbol: symbol(name),
            base: AssetId(base),
            quote: AssetId(quote),
            lot_units,
            tick_value_units,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
            collar_ppm: 0,
            band_ppm: 0,
            reference_price: PriceTicks::MIN,
            default_limits: RiskLimits::NONE,
        });
    }
    catalog
}

/// A body as each request that there is: a refusal that says what was wrong, or a command that goes into the log and comes out the same.
pub fn bodies(bytes: &[u8]) {
    let (catalog, account) = (catalog(), AccountId(7));
    let of = CancelRequest { instrument: "WEI-BTC".to_owned(), client_order_id: "7".to_owned() };
    check(parse::<OrderRequest>(bytes).and_then(|r| r.command(account, &catalog, || ClientOrderId(1)).map(|made| made.0)));
    check(parse::<CancelRequest>(bytes).and_then(|r| r.command(account, &catalog).map(|made| made.0)));
    check(parse::<AmendRequest>(bytes).and_then(|r| r.command(&of, account, &catalog).map(|made| made.0)));
    check(parse::<MassCancelRequest>(bytes).and_then(|r| r.command(account, &catalog)));
    check(parse::<AssetRequest>(bytes).and_then(|r| r.command(AssetId(4))));
    check(parse::<InstrumentRequest>(bytes).and_then(|r| r.command(InstrumentId(3), &catalog)));
    check(parse::<AccountRequest>(bytes).map(|AccountRequest {}| Command::Account(AccountCommand::Create(account))));
    check(parse::<TransferRequest>(bytes).and_then(|r| r.transfer(&catalog)).map(|c| Command::Account(AccountCommand::Deposit(c))));
    check(parse::<FeesRequest>(bytes).and_then(|r| r.command(&catalog)));
    check(parse::<LimitsRequest>(bytes).and_then(|r| r.command(&catalog)));
    check(parse::<PhaseRequest>(bytes).and_then(|r| r.command(&catalog)));
    check(parse::<AccountStatusRequest>(bytes).and_then(|r| r.command()));
    let now = TimeNs(1_700_000_000_000_000_000);
    let of_shards = Command::Shard;
    let out = parse::<TransferOutRequest>(bytes).and_then(|r| r.transfer(account, &catalog, now));
    check(out.map(|transfer| of_shards(ShardCommand::TransferOut(transfer))));
    let assigned = parse::<InstrumentShardRequest>(bytes).and_then(|r| r.assignment(&catalog));
    check(assigned.map(|assigned| of_shards(ShardCommand::AssignInstrument(assigned))));
    match parse::<TransfersInRequest>(bytes).and_then(|r| r.transfers(64)) {
        Ok(brought) => brought.into_iter().for_each(|one| check(Ok(of_shards(ShardCommand::TransferIn(one))))),
        Err(refusal) => check_refusal(&refusal),
    }
}

fn check(made: Result<Command, Refusal>) {
    match made {
        Ok(command) => {
            let mut bytes = Vec::new();
            encode_command(&command, &mut bytes);
            assert!(bytes.len() <= MESSAGE_BYTES_MAX, "{command:?} is longer than any message");
            assert_eq!(decode_command(&bytes), Ok(command), "what the log is given it gives back");
        }
        Err(refusal) => check_refusal(&refusal),
    }
}

fn check_refusal(refusal: &Refusal) {
    assert!(refusal.detail.as_ref().is_some_and(|detail| !detail.is_empty()), "{refusal:?} does not say what was wrong");
}

/// A message: refused with what was wrong, or understood; its id is the one that was sent.
pub fn messages(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (id, understood) = understand(&text, &catalog());
    assert!(id.is_none_or(|id| id.len() <= 64), "an id longer than is taken");
    if let Err(refusal) = understood {
        check_refusal(&refusal);
        assert_ne!(refusal.reason, RejectReason::NotFound, "a message has no address");
    }
}
