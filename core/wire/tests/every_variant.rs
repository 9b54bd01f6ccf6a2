//! Every command and every event: its tag, who may ask it, and which accounts it concerns. A new variant has to be listed here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use CommandClass::{CloseSession as Closes, Funds, Invalid, Leader, OpenSession as Opens, Operator, Order, Transaction};
use walras_types::*;
use walras_wire::batch::SignedTransaction;
use walras_wire::order_entry::Role;
use walras_wire::*;

/// The account of all commands and events here, the other party of those that have two, and a stranger.
const OWN: AccountId = AccountId(7);
const OTHER: AccountId = AccountId(8);
const STRANGER: AccountId = AccountId(9);

const IT: InstrumentId = InstrumentId(3);
const NAME: ClientOrderId = ClientOrderId(5);
const ASSET: AssetId = AssetId(2);
const MARKET: BatchMarketId = BatchMarketId(1);
const SESSION: SessionId = SessionId(11);
const AMOUNT: Amount = Amount::ZERO;
const ORDER: OrderId = OrderId(21);
const HERE: ShardId = ShardId(0);
const THERE: ShardId = ShardId(1);
const NUMBER: TransferSeq = TransferSeq(4);
const DELAYS: AccessDelays = AccessDelays { sequencing_ns: 1, release_ns: 2 };

fn lots() -> SizeLots {
    SizeLots::new(6)
}

fn ticks() -> PriceTicks {
    PriceTicks::new(100).unwrap()
}

fn symbol() -> Symbol {
    Symbol::new("BTC").unwrap()
}

fn instrument() -> InstrumentSpec {
    InstrumentSpec {
        instrument: IT,
        symbol: symbol(),
        base: ASSET,
        quote: AssetId(0),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1,
        band_ppm: 1,
        reference_price: ticks(),
        default_limits: RiskLimits::NONE,
    }
}

fn batch_market() -> BatchMarketSpec {
    BatchMarketSpec {
        market: MARKET,
        symbol: symbol(),
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::Required,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 500_000_000,
        transactions_max: 1_000,
        domain: [7; 32],
    }
}

fn asset() -> AssetSpec {
    AssetSpec { asset: ASSET, symbol: symbol(), decimals: 2 }
}

fn transfer() -> Transfer {
    Transfer { account: OWN, asset: ASSET, amount: AMOUNT, transfer_id: TransferId(1) }
}

fn transferred() -> Transferred {
    Transferred { account: OWN, asset: ASSET, amount: AMOUNT, transfer_id: TransferId(1) }
}

fn new_order() -> NewOrder {
    let terms = OrderTerms {
        side: Side::Buy,
        size: lots(),
        order_type: OrderType::Market,
        time_in_force: TimeInForce::ImmediateOrCancel,
        display: Display::Full,
        min_size: None,
        self_trade: SelfTrade::CancelNewest,
    };
    NewOrder { account: OWN, instrument: IT, client_order_id: NAME, terms }
}

fn submit() -> SubmitTransaction {
    let operation = BatchOperation::Issue(IssuedAmount { asset: ASSET, amount: AMOUNT });
    let transaction = BatchTransaction::new(OWN, TransactionSeq(1), operation);
    SubmitTransaction::new(MARKET, &SignedTransaction { transaction, signature: [0; 64] }).unwrap()
}

fn transfer_out() -> TransferOut {
    TransferOut { account: OWN, asset: ASSET, amount: AMOUNT, to_shard: THERE, client_transfer_id: ClientTransferId(1) }
}

fn transfer_in() -> TransferIn {
    TransferIn { from_shard: THERE, to_shard: HERE, transfer_seq: NUMBER, account: OWN, asset: ASSET, amount: AMOUNT }
}

fn invalid() -> InvalidCommand {
    InvalidCommand {
        account: Some(OWN),
        instrument: Some(IT),
        client_order_id: Some(NAME),
        reason: RejectReason::Malformed,
        content: ContentDigest(1),
        name: None,
    }
}

/// What is to be known of a command: its tag, or its shard command's, then who may ask it.
type Row = (Command, u8, CommandClass);

fn commands() -> Vec<Row> {
    let amendment = Amendment { client_order_id: NAME, price: Some(ticks()), trigger: None, size: None };
    let numbers = TransferNumbers { oldest_out: NUMBER, next_out: NUMBER, next_in: NUMBER };
    let mut rows: Vec<Row> = [
        (OrderCommand::New(new_order()), 1),
        (OrderCommand::Cancel(CancelOrder { account: OWN, instrument: IT, client_order_id: NAME }), 2),
        (OrderCommand::Amend(AmendOrder { account: OWN, instrument: IT, amendment }), 3),
        (OrderCommand::MassCancel(MassCancel { account: OWN, instrument: Some(IT), side: None }), 4),
        (OrderCommand::NewNamed(NamedOrder::new(&new_order(), ClientOrderName::new("abc-1").unwrap())), 13),
        (OrderCommand::CancelAfter(CancelAfter { account: OWN, timeout_ms: 5_000 }), 14),
    ]
    .map(|(command, tag)| (Command::Order(command), tag, Order))
    .into();
    rows.extend(
        [
            (InstrumentCommand::Create(instrument()), 17),
            (InstrumentCommand::SetPhase(SetTradingPhase { instrument: IT, phase: TradingPhase::Halt }), 23),
        ]
        .map(|(command, tag)| (Command::Instrument(command), tag, Operator)),
    );
    rows.extend(
        [
            (AccountCommand::Create(OWN), 18),
            (AccountCommand::SetStatus(SetAccountStatus { account: OWN, status: AccountStatus::Suspended }), 19),
            (AccountCommand::SetKey(SetAccountKey { account: OWN, key: PublicKey([1; 32]) }), 36),
            (AccountCommand::Deposit(transfer()), 20),
            (AccountCommand::Withdraw(transfer()), 21),
            (AccountCommand::CollectFees(CollectFees { asset: ASSET, account: OWN }), 24),
            (AccountCommand::SetRiskLimits(SetRiskLimits { account: OWN, instrument: IT, limits: RiskLimits::NONE }), 22),
        ]
        .map(|(command, tag)| (Command::Account(command), tag, Operator)),
    );
    rows.extend([
        (Command::Session(SessionCommand::Open(OpenSession { account: Some(OWN), token: 1 })), 6, Opens),
        (Command::Session(SessionCommand::Close(CloseSession { session: SESSION })), 7, Closes(SESSION)),
    ]);
    rows.extend(
        [
            (BatchMarketCommand::Create(batch_market()), 32),
            (BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset: ASSET }), 33),
            (BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open }), 34),
            (BatchMarketCommand::SetInterval(SetBatchInterval { market: MARKET, interval_ns: 1 }), 35),
            (BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee: None }), 38),
        ]
        .map(|(command, tag)| (Command::BatchMarket(command), tag, Operator)),
    );
    rows.extend([
        (Command::Batch(BatchCommand::Submit(submit())), 9, Transaction),
        (Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block: 1 })), 10, Leader),
        (Command::Batch(BatchCommand::Step(StepBlock { market: MARKET, block: 1, step: 2 })), 39, Leader),
    ]);
    rows.extend(
        [
            (ShardCommand::Configure(ShardPlace { own: HERE, count: 2 }), Operator),
            (ShardCommand::AssignInstrument(InstrumentShard { instrument: IT, shard: THERE }), Operator),
            (ShardCommand::TransferOut(transfer_out()), Funds),
            (ShardCommand::TransferIn(transfer_in()), Operator),
            (ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: THERE, first: NUMBER, last: NUMBER }), Operator),
            (ShardCommand::ReturnTransfer(TransferPlace { shard: THERE, transfer_seq: NUMBER }), Operator),
            (ShardCommand::DoubtTransfers, Leader),
            (ShardCommand::CompareTransfers(CompareTransfers { shard: THERE, before: numbers, reported: numbers }), Operator),
        ]
        .map(|(command, class)| (Command::Shard(command), 11, class)),
    );
    rows.extend(
        [
            (VenueCommand::Tick, 5, Leader),
            (VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(1), state_hash: [1; 32] }), 8, Leader),
            (VenueCommand::SetAccessDelays(DELAYS), 25, Leader),
            (VenueCommand::CreateAsset(asset()), 16, Operator),
            (VenueCommand::SetIssuer(SetIssuer { asset: ASSET, account: OWN }), 37, Operator),
            (VenueCommand::NoteClusterRequest(ClusterRequestNote { action: ClusterAction::Remove, replica: 3 }), 26, Operator),
            (VenueCommand::SetEngineVersion(EngineVersion(12)), 27, Operator),
        ]
        .map(|(command, tag, class)| (Command::Venue(command), tag, class)),
    );
    rows.push((Command::Invalid(invalid()), 12, Invalid));
    let linked = LinkedOrder::new(&new_order(), ClientOrderId(9), None);
    rows.push((Command::Order(OrderCommand::NewLinked(linked)), 15, Order));
    let exit = LinkedOrder::exit(&new_order(), ClientOrderId(9), None);
    rows.push((Command::Order(OrderCommand::NewLinked(exit)), 28, Order));
    let currencies = SetBatchCurrencies { market: MARKET, currencies: 1 };
    rows.push((Command::BatchMarket(BatchMarketCommand::SetCurrencies(currencies)), 40, Operator));
    let amend = AmendOrder { account: OWN, instrument: IT, amendment };
    let named = NamedAmend { amend, name: ClientOrderName::new("abc-2").unwrap() };
    rows.push((Command::Order(OrderCommand::AmendNamed(named)), 42, Order));
    rows
}

/// Where [`commands`] lists a command. A new variant does not compile until it has a place, and the test fails until it is listed
/// there.
fn place_of_command(command: &Command) -> usize {
    match command {
        Command::Order(OrderCommand::New(_)) => 0,
        Command::Order(OrderCommand::Cancel(_)) => 1,
        Command::Order(OrderCommand::Amend(_)) => 2,
        Command::Order(OrderCommand::MassCancel(_)) => 3,
        Command::Order(OrderCommand::NewNamed(_)) => 4,
        Command::Order(OrderCommand::CancelAfter(_)) => 5,
        Command::Instrument(InstrumentCommand::Create(_)) => 6,
        Command::Instrument(InstrumentCommand::SetPhase(_)) => 7,
        Command::Account(AccountCommand::Create(_)) => 8,
        Command::Account(AccountCommand::SetStatus(_)) => 9,
        Command::Account(AccountCommand::SetKey(_)) => 10,
        Command::Account(AccountCommand::Deposit(_)) => 11,
        Command::Account(AccountCommand::Withdraw(_)) => 12,
        Command::Account(AccountCommand::CollectFees(_)) => 13,
        Command::Account(AccountCommand::SetRiskLimits(_)) => 14,
        Command::Session(SessionCommand::Open(_)) => 15,
        Command::Session(SessionCommand::Close(_)) => 16,
        Command::BatchMarket(BatchMarketCommand::Create(_)) => 17,
        Command::BatchMarket(BatchMarketCommand::AddAsset(_)) => 18,
        Command::BatchMarket(BatchMarketCommand::SetPhase(_)) => 19,
        Command::BatchMarket(BatchMarketCommand::SetInterval(_)) => 20,
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(_)) => 21,
        Command::Batch(BatchCommand::Submit(_)) => 22,
        Command::Batch(BatchCommand::Close(_)) => 23,
        Command::Batch(BatchCommand::Step(_)) => 24,
        Command::Shard(ShardCommand::Configure(_)) => 25,
        Command::Shard(ShardCommand::AssignInstrument(_)) => 26,
        Command::Shard(ShardCommand::TransferOut(_)) => 27,
        Command::Shard(ShardCommand::TransferIn(_)) => 28,
        Command::Shard(ShardCommand::ConfirmTransfers(_)) => 29,
        Command::Shard(ShardCommand::ReturnTransfer(_)) => 30,
        Command::Shard(ShardCommand::DoubtTransfers) => 31,
        Command::Shard(ShardCommand::CompareTransfers(_)) => 32,
        Command::Venue(VenueCommand::Tick) => 33,
        Command::Venue(VenueCommand::Checkpoint(_)) => 34,
        Command::Venue(VenueCommand::SetAccessDelays(_)) => 35,
        Command::Venue(VenueCommand::CreateAsset(_)) => 36,
        Command::Venue(VenueCommand::SetIssuer(_)) => 37,
        Command::Venue(VenueCommand::NoteClusterRequest(_)) => 38,
        Command::Venue(VenueCommand::SetEngineVersion(_)) => 39,
        Command::Invalid(_) => 40,
        Command::Order(OrderCommand::NewLinked(linked)) => match linked.link() {
            Link::Oco => 41,
            Link::Exit => 42,
        },
        Command::BatchMarket(BatchMarketCommand::SetCurrencies(_)) => 43,
        Command::Order(OrderCommand::AmendNamed(_)) => 44,
    }
}

/// What is to be known of an event: its tag, and the accounts that it concerns.
type EventRow = (Event, u8, Accounts);

const NOBODY: Accounts = [None, None];
const MINE: Accounts = [Some(OWN), None];
const BOTH: Accounts = [Some(OWN), Some(OTHER)];

fn order_events() -> [EventRow; 7] {
    let (account, client_order_id, order_id, side) = (OWN, NAME, ORDER, Side::Buy);
    let (size, open, resting) = (lots(), lots(), Resting::default());
    let party = |account| TradeParty { account, client_order_id, order_id, open, fee: 0 };
    let accepted = OrderAccepted { instrument: IT, account, client_order_id, order_id, side, size, price: None, resting };
    let priority = Priority::Kept;
    let amended = OrderAmended { instrument: IT, account, client_order_id, order_id, side, price: None, priority, resting };
    let traded = Traded {
        instrument: IT,
        trade_id: TradeId(1),
        price: ticks(),
        size,
        taker_side: side,
        maker: party(OWN),
        taker: party(OTHER),
    };
    let reason = CancelReason::Requested;
    let cancelled = OrderCancelled { instrument: IT, account, client_order_id, order_id, open, reason };
    let reduced = OrderReduced { instrument: IT, account, client_order_id, order_id, by: size, resting };
    let triggered = StopTriggered { instrument: IT, account, client_order_id, order_id, side, price: ticks(), resting };
    [
        (OrderEvent::Accepted(accepted), 2, MINE),
        (OrderEvent::Amended(amended), 3, MINE),
        (OrderEvent::Traded(traded), 4, BOTH),
        (OrderEvent::Cancelled(cancelled), 5, MINE),
        (OrderEvent::Reduced(reduced), 6, MINE),
        (OrderEvent::Replenished(OrderReplenished { instrument: IT, order_id, shown: size }), 7, NOBODY),
        (OrderEvent::Triggered(triggered), 8, MINE),
    ]
    .map(|(event, tag, accounts)| (Event::Order(event), tag, accounts))
}

fn batch_events() -> [EventRow; 17] {
    let (market, account, asset, amount, block) = (MARKET, OWN, ASSET, AMOUNT, 1);
    let (sequence, sell, buy, price) = (TransactionSeq(1), ASSET, AssetId(0), BatchPrice::MIN);
    let opened = OfferOpened { market, account, sequence, sell, buy, amount, stated: price, limit: price, tie: 0 };
    let traded = OfferTraded { market, account, sequence, sell, buy, sold: amount, bought: amount, left: amount };
    let supply = SupplyChanged { account, asset, amount };
    let pool = OfferName { account, sequence };
    let (rule, amounts) = (PoolRule::ConstantProduct, [amount; 2]);
    let created = PoolCreated { market, pool, first: sell, second: buy, rule, fee_ppm: 1, amounts, shares: amount };
    let pool_of_other = OfferName { account: OTHER, sequence };
    let moved = PoolMoved { market, pool: pool_of_other, account, sequence, first: sell, second: buy, amounts, shares: amount };
    let cleared = BlockCleared {
        market,
        block,
        transactions: 1,
        pairs: 1,
        offers_traded: 1,
        gap_ppb: 0,
        unserved_ppb: 0,
        set_aside: 0,
        state_root: [1; 32],
    };
    [
        (BatchEvent::TransactionCollected(TransactionCollected { market, account, sequence, block }), 32, MINE),
        (BatchEvent::Closed(BatchClosed { market, block, batch_hash: [1; 32], kept: 1, dropped: 0 }), 39, NOBODY),
        (BatchEvent::TransactionDropped(TransactionDropped { market, account, sequence, reason: DropReason::ALL[0] }), 40, MINE),
        (BatchEvent::OfferOpened(opened), 41, MINE),
        (BatchEvent::OfferCancelled(OfferCancelled { market, account, sequence, sell, buy, amount }), 42, MINE),
        (BatchEvent::OfferTraded(traded), 43, MINE),
        (BatchEvent::Paid(Paid { market, from: OWN, to: OTHER, asset, amount }), 44, BOTH),
        (BatchEvent::AccountFeePaid(AccountFeePaid { market, account, asset, amount }), 51, MINE),
        (BatchEvent::Issued(supply), 45, MINE),
        (BatchEvent::Burnt(supply), 46, MINE),
        (BatchEvent::Cleared(cleared), 47, NOBODY),
        (BatchEvent::ClearingRejected(BlockRejected { market, block, code: 1 }), 48, NOBODY),
        (BatchEvent::PoolCreated(created), 52, MINE),
        (BatchEvent::PoolDeposited(moved), 53, MINE),
        (BatchEvent::PoolWithdrawn(moved), 54, MINE),
        (BatchEvent::PoolTraded(PoolTraded { market, pool, sell, buy, sold: amount, bought: amount }), 55, NOBODY),
        (BatchEvent::PoolClosed(PoolClosed { market, pool, first: sell, second: buy, amounts: [amount; 2] }), 56, NOBODY),
    ]
    .map(|(event, tag, accounts)| (Event::Batch(event), tag, accounts))
}

fn shard_events() -> [EventRow; 9] {
    let place = TransferPlace { shard: THERE, transfer_seq: NUMBER };
    let returned = TransferReturned { place, account: OWN, asset: ASSET, amount: AMOUNT };
    [
        (ShardEvent::Configured(ShardPlace { own: HERE, count: 2 }), NOBODY),
        (ShardEvent::InstrumentAssigned(InstrumentShard { instrument: IT, shard: THERE }), NOBODY),
        (ShardEvent::TransferSent(TransferSent { transfer: transfer_out(), transfer_seq: NUMBER }), MINE),
        (ShardEvent::TransferReceived(transfer_in()), MINE),
        // The account is the other shard's: nothing moved here.
        (ShardEvent::TransferRefused(TransferRefused { transfer: transfer_in(), reason: RejectReason::UnknownAccount }), NOBODY),
        (ShardEvent::TransfersConfirmed(TransfersTaken { by_shard: THERE, first: NUMBER, last: NUMBER }), NOBODY),
        (ShardEvent::TransferReturned(returned), MINE),
        (ShardEvent::TransfersDoubted, NOBODY),
        (ShardEvent::TransfersCompared(TransfersCompared { shard: THERE, set_back: None }), NOBODY),
    ]
    .map(|(event, accounts)| (Event::Shard(event), 49, accounts))
}

fn events() -> Vec<EventRow> {
    let (account, market, instrument) = (OWN, MARKET, IT);
    let limits = RiskLimits::NONE;
    let collected = FeesCollected { account, asset: ASSET, amount: AMOUNT };
    let (cause, phase) = (PhaseCause::Operator, TradingPhase::Halt);
    let uncrossed = Uncrossed { instrument, price: None, volume: lots(), imbalance_lots: 0 };
    let rejected = Rejected::of(&Command::Invalid(invalid()), RejectReason::Malformed);
    let mut rows = vec![(Event::Rejected(rejected), 1, MINE)];
    rows.extend(order_events());
    rows.extend(
        [
            (InstrumentEvent::Created(self::instrument()), 17),
            (InstrumentEvent::PhaseChanged(PhaseChanged { instrument, phase, cause }), 9),
            (InstrumentEvent::Uncrossed(uncrossed), 10),
        ]
        .map(|(event, tag)| (Event::Instrument(event), tag, NOBODY)),
    );
    rows.extend(
        [
            (AccountEvent::Created(account), 18),
            (AccountEvent::StatusChanged(AccountStatusChanged { account, status: AccountStatus::Active }), 19),
            (AccountEvent::KeySet(AccountKeySet { account, key: PublicKey([1; 32]) }), 37),
            (AccountEvent::Deposited(transferred()), 20),
            (AccountEvent::Withdrawn(transferred()), 21),
            (AccountEvent::FeesCollected(collected), 23),
            (AccountEvent::RiskLimitsChanged(RiskLimitsChanged { account, instrument, limits }), 22),
        ]
        .map(|(event, tag)| (Event::Account(event), tag, MINE)),
    );
    let opened = SessionOpened { session: SESSION, account: Some(account), token: 1 };
    rows.push((Event::Session(SessionEvent::Opened(opened)), 24, MINE));
    rows.push((Event::Session(SessionEvent::Closed(SessionClosed { session: SESSION, account: Some(account) })), 25, MINE));
    rows.extend(
        [
            (BatchMarketEvent::Created(batch_market()), 33),
            (BatchMarketEvent::AssetAdded(BatchAssetAdded { market, asset: ASSET }), 34),
            (BatchMarketEvent::PhaseChanged(BatchPhaseChanged { market, phase: BatchPhase::Open }), 35),
            (BatchMarketEvent::IntervalChanged(BatchIntervalChanged { market, interval_ns: 1 }), 36),
            (BatchMarketEvent::AccountFeeChanged(AccountFeeChanged { market, from_block: 1, fee: None }), 50),
        ]
        .map(|(event, tag)| (Event::BatchMarket(event), tag, NOBODY)),
    );
    rows.extend(batch_events());
    rows.extend(shard_events());
    rows.extend(
        [
            (VenueEvent::AssetCreated(asset()), 16),
            // The issuer gets no report: its rights are the operator's business.
            (VenueEvent::IssuerSet(IssuerSet { asset: ASSET, account }), 38),
            (VenueEvent::AccessDelaysChanged(DELAYS), 26),
            (VenueEvent::EngineVersionSet(EngineVersion(12)), 27),
        ]
        .map(|(event, tag)| (Event::Venue(event), tag, NOBODY)),
    );
    let currencies = BatchCurrenciesSet { market, currencies: 1 };
    rows.push((Event::BatchMarket(BatchMarketEvent::CurrenciesSet(currencies)), 57, NOBODY));
    rows
}

/// Where [`events`] lists an event, as [`place_of_command`] says it of commands.
fn place_of_event(event: &Event) -> usize {
    match event {
        Event::Rejected(_) => 0,
        Event::Order(OrderEvent::Accepted(_)) => 1,
        Event::Order(OrderEvent::Amended(_)) => 2,
        Event::Order(OrderEvent::Traded(_)) => 3,
        Event::Order(OrderEvent::Cancelled(_)) => 4,
        Event::Order(OrderEvent::Reduced(_)) => 5,
        Event::Order(OrderEvent::Replenished(_)) => 6,
        Event::Order(OrderEvent::Triggered(_)) => 7,
        Event::Instrument(InstrumentEvent::Created(_)) => 8,
        Event::Instrument(InstrumentEvent::PhaseChanged(_)) => 9,
        Event::Instrument(InstrumentEvent::Uncrossed(_)) => 10,
        Event::Account(AccountEvent::Created(_)) => 11,
        Event::Account(AccountEvent::StatusChanged(_)) => 12,
        Event::Account(AccountEvent::KeySet(_)) => 13,
        Event::Account(AccountEvent::Deposited(_)) => 14,
        Event::Account(AccountEvent::Withdrawn(_)) => 15,
        Event::Account(AccountEvent::FeesCollected(_)) => 16,
        Event::Account(AccountEvent::RiskLimitsChanged(_)) => 17,
        Event::Session(SessionEvent::Opened(_)) => 18,
        Event::Session(SessionEvent::Closed(_)) => 19,
        Event::BatchMarket(BatchMarketEvent::Created(_)) => 20,
        Event::BatchMarket(BatchMarketEvent::AssetAdded(_)) => 21,
        Event::BatchMarket(BatchMarketEvent::PhaseChanged(_)) => 22,
        Event::BatchMarket(BatchMarketEvent::IntervalChanged(_)) => 23,
        Event::BatchMarket(BatchMarketEvent::AccountFeeChanged(_)) => 24,
        Event::Batch(BatchEvent::TransactionCollected(_)) => 25,
        Event::Batch(BatchEvent::Closed(_)) => 26,
        Event::Batch(BatchEvent::TransactionDropped(_)) => 27,
        Event::Batch(BatchEvent::OfferOpened(_)) => 28,
        Event::Batch(BatchEvent::OfferCancelled(_)) => 29,
        Event::Batch(BatchEvent::OfferTraded(_)) => 30,
        Event::Batch(BatchEvent::Paid(_)) => 31,
        Event::Batch(BatchEvent::AccountFeePaid(_)) => 32,
        Event::Batch(BatchEvent::Issued(_)) => 33,
        Event::Batch(BatchEvent::Burnt(_)) => 34,
        Event::Batch(BatchEvent::Cleared(_)) => 35,
        Event::Batch(BatchEvent::ClearingRejected(_)) => 36,
        Event::Batch(BatchEvent::PoolCreated(_)) => 37,
        Event::Batch(BatchEvent::PoolDeposited(_)) => 38,
        Event::Batch(BatchEvent::PoolWithdrawn(_)) => 39,
        Event::Batch(BatchEvent::PoolTraded(_)) => 40,
        Event::Batch(BatchEvent::PoolClosed(_)) => 41,
        Event::Shard(ShardEvent::Configured(_)) => 42,
        Event::Shard(ShardEvent::InstrumentAssigned(_)) => 43,
        Event::Shard(ShardEvent::TransferSent(_)) => 44,
        Event::Shard(ShardEvent::TransferReceived(_)) => 45,
        Event::Shard(ShardEvent::TransferRefused(_)) => 46,
        Event::Shard(ShardEvent::TransfersConfirmed(_)) => 47,
        Event::Shard(ShardEvent::TransferReturned(_)) => 48,
        Event::Shard(ShardEvent::TransfersDoubted) => 49,
        Event::Shard(ShardEvent::TransfersCompared(_)) => 50,
        Event::Venue(VenueEvent::AssetCreated(_)) => 51,
        Event::Venue(VenueEvent::IssuerSet(_)) => 52,
        Event::Venue(VenueEvent::AccessDelaysChanged(_)) => 53,
        Event::Venue(VenueEvent::EngineVersionSet(_)) => 54,
        Event::BatchMarket(BatchMarketEvent::CurrenciesSet(_)) => 55,
    }
}

#[test]
fn every_variant_is_listed_and_keeps_its_tag() {
    let commands = commands();
    assert!(commands.iter().map(|(command, ..)| place_of_command(command)).eq(0..45), "a command is not listed");
    for (command, tag, _) in commands {
        let mut bytes = Vec::new();
        encode_command(&command, &mut bytes);
        assert_eq!((bytes[0], decode_command(&bytes)), (tag, Ok(command)));
    }
    let events = events();
    assert!(events.iter().map(|(event, ..)| place_of_event(event)).eq(0..56), "an event is not listed");
    for (event, tag, _) in events {
        let mut bytes = Vec::new();
        encode_event(&event, &mut bytes);
        assert_eq!((bytes[0], decode_event(&bytes)), (tag, Ok(event)));
    }
}

#[test]
fn each_class_of_commands_has_its_rules() {
    for (command, _, class) in commands() {
        assert_eq!(command.class(), class, "{command:?}");
        assert_eq!(command.is_order(), class == Order, "{command:?}");
        // Account, operator: what a session of that role may submit. Then what the account's own session may have applied.
        let (by_account, by_operator, applied) = match class {
            Order | Funds | Closes(_) | Invalid => (true, true, true),
            Operator => (false, true, false),
            Transaction => (false, false, true),
            Opens | Leader => (false, false, false),
        };
        let may_submit = [Role::Account, Role::Operator].map(|role| command.may_be_submitted_by(role));
        assert_eq!(may_submit, [by_account, by_operator], "{command:?}");
        assert_eq!(command.may_come_from(SESSION, OWN), applied, "{command:?}");
        assert!(!command.may_come_from(SessionId(12), STRANGER), "{command:?}");
        let asks = matches!(class, Order | Funds | Transaction | Opens | Invalid).then_some(OWN);
        assert_eq!(command.account(), asks, "{command:?}");
    }
}

#[test]
fn an_amend_of_the_size_alone_is_known_by_its_bytes() {
    let (none, price, size) = (None, Some(ticks()), Some(lots()));
    let rows = [
        ((none, none, size), true),
        ((none, none, None), false),
        ((price, none, size), false),
        ((none, price, size), false),
        ((price, none, None), false),
    ];
    for ((price, trigger, size), expected) in rows {
        let amendment = Amendment { client_order_id: NAME, price, trigger, size };
        let amend = AmendOrder { account: OWN, instrument: IT, amendment };
        let named = NamedAmend { amend, name: ClientOrderName::new("abc-2").unwrap() };
        for command in [OrderCommand::Amend(amend), OrderCommand::AmendNamed(named)].map(Command::Order) {
            assert_eq!((command.is_size_amend(), command.is_cancel()), (expected, false), "{command:?}");
        }
    }
}

#[test]
fn a_session_closes_itself_and_no_other() {
    let close = Command::Session(SessionCommand::Close(CloseSession { session: SESSION }));
    assert!(close.may_come_from(SESSION, STRANGER));
    assert!(!close.may_come_from(SessionId(12), OWN));
}

#[test]
fn a_rejection_names_what_its_command_names() {
    for (command, ..) in commands() {
        let (instrument, client_order_id) = match command {
            Command::Order(OrderCommand::New(_) | OrderCommand::NewNamed(_) | OrderCommand::NewLinked(_)) => (Some(IT), Some(NAME)),
            Command::Order(OrderCommand::Cancel(_) | OrderCommand::Amend(_) | OrderCommand::AmendNamed(_)) => {
                (Some(IT), Some(NAME))
            }
            Command::Invalid(_) => (Some(IT), Some(NAME)),
            Command::Order(OrderCommand::MassCancel(_)) | Command::Instrument(_) => (Some(IT), None),
            Command::Order(OrderCommand::CancelAfter(_)) => (None, None),
            Command::Account(AccountCommand::SetRiskLimits(_)) => (Some(IT), None),
            Command::Shard(ShardCommand::AssignInstrument(_)) => (Some(IT), None),
            Command::Account(_) | Command::Session(_) | Command::BatchMarket(_) | Command::Batch(_) => (None, None),
            Command::Shard(_) | Command::Venue(_) => (None, None),
        };
        let reason = RejectReason::Malformed;
        let expected = Rejected { account: command.account(), instrument, client_order_id, reason };
        assert_eq!(Rejected::of(&command, reason), expected, "{command:?}");
    }
}

#[test]
fn each_event_concerns_its_accounts() {
    for (event, _, accounts) in events() {
        assert_eq!(event.accounts(), accounts, "{event:?}");
    }
    let [_, _, (Event::Order(OrderEvent::Traded(traded)), ..), ..] = order_events() else { panic!("the third is a trade") };
    let with_itself = Traded { taker: traded.maker, ..traded };
    assert_eq!(Event::Order(OrderEvent::Traded(with_itself)).accounts(), MINE);
}
