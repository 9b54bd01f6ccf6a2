//! What each command of shards does, and why it is refused.

use walras_engine::{InTransit, Numbered, TransferOutcome};
use walras_types::limits::{AMOUNT_MAX, TRANSFERS_IN_TRANSIT_MAX, TRANSFERS_PER_ACCOUNT_MAX};
use walras_types::*;
use walras_wire::*;

use crate::venue::{BTC, EUR, USD, lots, opening, phase, spec, ticks, units};
use crate::world::{World, shard};

const MINE: AccountId = AccountId(1);

pub fn out(to: usize, asset: AssetId, amount: u64, name: u64) -> TransferOut {
    let client_transfer_id = ClientTransferId(name);
    TransferOut { account: MINE, asset, amount: units(amount), to_shard: shard(to), client_transfer_id }
}

fn send(transfer: TransferOut) -> Command {
    Command::Shard(ShardCommand::TransferOut(transfer))
}

/// What a transfer relay makes of a transfer that it finds.
pub fn carried(from: usize, waits: &InTransit) -> TransferIn {
    let TransferOut { account, asset, amount, to_shard, .. } = waits.transfer;
    TransferIn { from_shard: shard(from), to_shard, transfer_seq: waits.transfer_seq, account, asset, amount }
}

fn receive(transfer: TransferIn) -> Command {
    Command::Shard(ShardCommand::TransferIn(transfer))
}

fn confirm(by: usize, first: u64, last: u64) -> Command {
    let taken = TransfersTaken { by_shard: shard(by), first: TransferSeq(first), last: TransferSeq(last) };
    Command::Shard(ShardCommand::ConfirmTransfers(taken))
}

fn give_back(by: usize, seq: u64) -> Command {
    Command::Shard(ShardCommand::ReturnTransfer(TransferPlace { shard: shard(by), transfer_seq: TransferSeq(seq) }))
}

fn configure(own: u8, count: u8) -> Command {
    Command::Shard(ShardCommand::Configure(ShardPlace { own: ShardId(own), count }))
}

fn assign(instrument: u32, to: usize) -> Command {
    let assign = InstrumentShard { instrument: InstrumentId(instrument), shard: shard(to) };
    Command::Shard(ShardCommand::AssignInstrument(assign))
}

fn bid(instrument: u32, name: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, ticks(100), lots(1));
    Command::Order(OrderCommand::New(NewOrder {
        account: MINE,
        instrument: InstrumentId(instrument),
        client_order_id: ClientOrderId(name),
        terms,
    }))
}

fn available(world: &World, at: usize, asset: AssetId) -> u64 {
    world.shards[at].balance(MINE, asset).available.get()
}

#[test]
fn funds_go_to_another_shard_once() {
    let mut world = World::new(2, 1_000);
    world.now = TimeNs(77);
    let events = world.take(0, send(out(1, USD, 400, 5)));
    let sent = TransferSent { transfer: out(1, USD, 400, 5), transfer_seq: TransferSeq(1) };
    assert_eq!(events, [Event::Shard(ShardEvent::TransferSent(sent))]);
    let waits: Vec<InTransit> = world.shards[0].transfers_in_transit(shard(1)).collect();
    assert_eq!(waits, [InTransit { transfer_seq: TransferSeq(1), sent_at: TimeNs(77), transfer: out(1, USD, 400, 5) }]);
    assert_eq!((available(&world, 0, USD), world.shards[0].in_transit(USD)), (600, units(400)));
    // The same again under its name is none.
    assert_eq!(world.refused(0, send(out(1, USD, 400, 5))), RejectReason::DuplicateTransfer);

    let carried = carried(0, &waits[0]);
    assert_eq!(world.shards[1].transfer_outcome(shard(0), TransferSeq(1)), None);
    assert_eq!(world.take(1, receive(carried)), [Event::Shard(ShardEvent::TransferReceived(carried))]);
    assert_eq!(world.refused(1, receive(carried)), RejectReason::TransferTaken);
    assert_eq!(world.shards[1].transfer_outcome(shard(0), TransferSeq(1)), Some(TransferOutcome::Taken));
    assert_eq!((available(&world, 1, USD), world.shards[1].supply(USD)), (400, units(400)));
    world.check().unwrap();

    world.take(0, confirm(1, 1, 1));
    assert_eq!(world.refused(0, confirm(1, 1, 1)), RejectReason::TransferTaken);
    assert_eq!(world.shards[0].supply(USD), units(4 * 1_000 - 400));
    assert_eq!((world.shards[0].issued_here(USD), world.shards[1].issued_here(USD)), (4_000, 0));
    assert_eq!(world.in_transit_count(), 0);
    world.check().unwrap();
    // Funds leave the venue where they are, not where they came in.
    let transfer = Transfer { account: MINE, asset: USD, amount: units(300), transfer_id: TransferId(9) };
    world.take(1, Command::Account(AccountCommand::Withdraw(transfer)));
    assert_eq!(world.shards[1].issued_here(USD), -300);
    world.check().unwrap();
}

#[test]
fn a_transfer_is_refused_before_it_begins() {
    let mut world = World::new(2, 1_000);
    let refusals = [
        (out(0, USD, 1, 1), RejectReason::UnknownShard),
        (out(2, USD, 1, 1), RejectReason::UnknownShard),
        (TransferOut { asset: AssetId(3), ..out(1, USD, 1, 1) }, RejectReason::UnknownAsset),
        (TransferOut { account: AccountId(4), ..out(1, USD, 1, 1) }, RejectReason::UnknownAccount),
        (out(1, USD, 0, 1), RejectReason::AmountOutOfRange),
        (out(1, USD, 1_001, 1), RejectReason::InsufficientFunds),
    ];
    for (transfer, reason) in refusals {
        assert_eq!(world.refused(0, send(transfer)), reason, "{transfer:?}");
    }
    // What an order has reserved stays.
    world.take(0, bid(0, 1));
    assert_eq!(world.refused(0, send(out(1, USD, 901, 1))), RejectReason::InsufficientFunds);
    world.take(0, send(out(1, USD, 900, 1)));
    let status = SetAccountStatus { account: MINE, status: AccountStatus::Suspended };
    world.take(0, Command::Account(AccountCommand::SetStatus(status)));
    assert_eq!(world.refused(0, send(out(1, USD, 1, 2))), RejectReason::AccountSuspended);
    // A venue of one shard sends nothing and takes nothing.
    let mut alone = World::new(1, 1_000);
    assert_eq!(alone.refused(0, send(out(1, USD, 1, 1))), RejectReason::UnknownShard);
    assert_eq!(alone.refused(0, confirm(1, 1, 1)), RejectReason::UnknownShard);
}

#[test]
fn transfers_are_taken_in_order_and_by_whom_they_are_for() {
    let mut world = World::new(3, 1_000);
    for name in 1..=3 {
        world.take(0, send(out(1, USD, name, name)));
    }
    let all: Vec<TransferIn> = world.shards[0].transfers_in_transit(shard(1)).map(|waits| carried(0, &waits)).collect();
    assert_eq!(world.refused(1, receive(all[1])), RejectReason::TransferNotNext);
    assert_eq!(world.refused(2, receive(all[0])), RejectReason::UnknownShard, "it is shard 1's");
    let own = TransferIn { from_shard: shard(1), ..all[0] };
    assert_eq!(world.refused(1, receive(own)), RejectReason::UnknownShard, "a shard sends itself nothing");
    let nothing = TransferIn { amount: Amount::ZERO, ..all[0] };
    assert_eq!(world.refused(1, receive(nothing)), RejectReason::AmountOutOfRange);
    for transfer in &all {
        world.take(1, receive(*transfer));
    }
    for (first, last) in [(2, 2), (2, 3), (1, 4), (1, 0)] {
        assert_eq!(world.refused(0, confirm(1, first, last)), RejectReason::TransferNotNext, "{first} to {last}");
    }
    world.take(0, confirm(1, 1, 2));
    assert_eq!(world.refused(0, confirm(1, 1, 3)), RejectReason::TransferTaken);
    assert_eq!(world.refused(0, give_back(1, 2)), RejectReason::TransferTaken);
    assert_eq!(world.refused(0, give_back(1, 4)), RejectReason::TransferNotNext);
    world.take(0, confirm(1, 3, 3));
    assert_eq!(world.refused(0, confirm(1, 4, 4)), RejectReason::TransferNotNext);
    assert_eq!(world.refused(0, give_back(1, 4)), RejectReason::TransferNotNext);
    world.check().unwrap();
}

/// Neither lost, nor in the way of what comes behind it.
#[test]
fn what_can_not_be_credited_goes_back() {
    let mut world = World::new(2, 1_000);
    let new_account = AccountId(4);
    world.take(0, Command::Account(AccountCommand::Create(new_account)));
    let new_asset = AssetSpec { asset: AssetId(3), symbol: Symbol::new("SEK").unwrap(), decimals: 2 };
    world.take(0, Command::Venue(VenueCommand::CreateAsset(new_asset)));
    let id = TransferId(99);
    world.take(
        0,
        Command::Account(AccountCommand::Deposit(Transfer {
            account: new_account,
            asset: USD,
            amount: units(10),
            transfer_id: id,
        })),
    );
    // More than there may be of an asset in one shard.
    let room = AMOUNT_MAX - world.shards[0].supply(EUR).get();
    world.take(
        0,
        Command::Account(AccountCommand::Deposit(Transfer { account: MINE, asset: EUR, amount: units(room), transfer_id: id })),
    );
    world.take(
        1,
        Command::Account(AccountCommand::Deposit(Transfer {
            account: MINE,
            asset: EUR,
            amount: units(AMOUNT_MAX),
            transfer_id: id,
        })),
    );

    world.take(0, send(TransferOut { account: new_account, ..out(1, USD, 10, 1) }));
    world.take(0, send(out(1, EUR, 5, 1)));
    world.take(0, send(out(1, USD, 7, 2)));
    let all: Vec<TransferIn> = world.shards[0].transfers_in_transit(shard(1)).map(|waits| carried(0, &waits)).collect();
    for (transfer, reason) in all.iter().zip([RejectReason::UnknownAccount, RejectReason::SupplyOverflow]) {
        let refused = TransferRefused { transfer: *transfer, reason };
        assert_eq!(world.take(1, receive(*transfer)), [Event::Shard(ShardEvent::TransferRefused(refused))]);
        assert_eq!(world.refused(1, receive(*transfer)), RejectReason::TransferTaken);
    }
    world.take(1, receive(all[2]));
    world.restart(1);
    let outcomes: Vec<_> = (1..=4).map(|seq| world.shards[1].transfer_outcome(shard(0), TransferSeq(seq))).collect();
    let (taken, refused) = (Some(TransferOutcome::Taken), Some(TransferOutcome::Refused));
    assert_eq!(outcomes, [refused, refused, taken, None]);
    // Who saw only that the third was taken can not confirm the first two with it.
    assert_eq!(world.refused(0, confirm(1, 3, 3)), RejectReason::TransferNotNext);
    world.take(0, give_back(1, 1));
    world.take(0, give_back(1, 2));
    world.take(0, confirm(1, 3, 3));
    assert_eq!(world.shards[0].balance(new_account, USD).available, units(10));
    assert_eq!(world.in_transit_count(), 0);
    // An asset that the other does not know.
    world.take(
        0,
        Command::Account(AccountCommand::Deposit(Transfer {
            account: MINE,
            asset: AssetId(3),
            amount: units(8),
            transfer_id: TransferId(100),
        })),
    );
    world.take(0, send(out(1, AssetId(3), 8, 3)));
    let last = carried(0, &world.shards[0].transfers_in_transit(shard(1)).next().unwrap());
    let unknown = TransferRefused { transfer: last, reason: RejectReason::UnknownAsset };
    assert_eq!(world.take(1, receive(last)), [Event::Shard(ShardEvent::TransferRefused(unknown))]);
    world.take(0, give_back(1, 4));
    assert_eq!(world.shards[0].balance(MINE, AssetId(3)).available, units(8));
}

#[test]
fn a_queue_is_bounded_and_so_is_what_is_remembered_of_refusals() {
    let mut world = World::new(2, 1 << 30);
    let full_accounts = u32::try_from(TRANSFERS_IN_TRANSIT_MAX / TRANSFERS_PER_ACCOUNT_MAX).unwrap();
    for stranger in (4..4 + full_accounts).map(AccountId) {
        world.take(0, Command::Account(AccountCommand::Create(stranger)));
        let transfer = Transfer { account: stranger, asset: USD, amount: units(1 << 20), transfer_id: TransferId(1) };
        world.take(0, Command::Account(AccountCommand::Deposit(transfer)));
        for name in 1..=TRANSFERS_PER_ACCOUNT_MAX as u64 {
            let next = world.shards[0].last_applied().next();
            let transfer = TransferOut { account: stranger, ..out(1, USD, 1, name) };
            world.shards[0].apply(next, world.now, &send(transfer), &mut Vec::new());
        }
        // One account leaves room for others.
        let more = TransferOut { account: stranger, ..out(1, USD, 1, 1 << 20) };
        assert_eq!(world.refused(0, send(more)), RejectReason::TransfersFull);
    }
    assert_eq!(world.refused(0, send(out(1, USD, 1, 1))), RejectReason::TransfersFull);
    assert_eq!(world.in_transit_count(), TRANSFERS_IN_TRANSIT_MAX);
    world.restart(0);
    let all: Vec<TransferIn> = world.shards[0].transfers_in_transit(shard(1)).map(|waits| carried(0, &waits)).collect();
    let full = world.snapshot(1).len();
    for transfer in &all {
        let next = world.shards[1].last_applied().next();
        world.shards[1].apply(next, world.now, &receive(*transfer), &mut Vec::new());
    }
    let told = |world: &World, seq| world.shards[1].transfer_outcome(shard(0), TransferSeq(seq));
    assert_eq!((told(&world, 1), told(&world, all.len() as u64)), (Some(TransferOutcome::Refused), Some(TransferOutcome::Refused)));
    assert_eq!(world.snapshot(1).len(), full + 8 * TRANSFERS_IN_TRANSIT_MAX);
    world.restart(1);
    // The first goes back; as soon as another takes its room in the queue and is taken, it may be forgotten.
    world.take(0, give_back(1, 1));
    world.take(0, send(out(1, USD, 1, 1)));
    let last = world.shards[0].transfers_in_transit(shard(1)).last().unwrap();
    world.take(1, receive(carried(0, &last)));
    assert_eq!(world.snapshot(1).len(), full + 8 * (TRANSFERS_IN_TRANSIT_MAX - 1));
    assert_eq!(told(&world, 2), Some(TransferOutcome::Refused));
    world.restart(1);
    world.check().unwrap();
}

#[test]
fn an_instrument_is_one_shards() {
    let mut world = World::new(2, 1_000);
    assert_eq!(world.shards[0].shard_of(InstrumentId(1)), Some(shard(1)));
    world.take(0, bid(0, 1));
    let elsewhere = [
        bid(1, 1),
        Command::Order(OrderCommand::Cancel(CancelOrder {
            account: MINE,
            instrument: InstrumentId(1),
            client_order_id: ClientOrderId(1),
        })),
        Command::Order(OrderCommand::MassCancel(MassCancel { account: MINE, instrument: Some(InstrumentId(1)), side: None })),
        phase(1, TradingPhase::Continuous),
    ];
    for command in elsewhere {
        assert_eq!(world.refused(0, command), RejectReason::InstrumentElsewhere, "{command:?}");
    }
    assert_eq!(world.refused(1, bid(0, 1)), RejectReason::InstrumentElsewhere);
    assert_eq!(world.refused(0, bid(3, 1)), RejectReason::UnknownInstrument);
    // It moves when nothing is open in it.
    assert_eq!(world.refused(0, assign(0, 1)), RejectReason::InstrumentInUse);
    world.take(0, phase(0, TradingPhase::Closed));
    assert_eq!(world.refused(0, assign(0, 1)), RejectReason::InstrumentInUse, "an order is open");
    world.take(0, Command::Order(OrderCommand::MassCancel(MassCancel { account: MINE, instrument: None, side: None })));
    assert_eq!(world.refused(0, assign(0, 2)), RejectReason::UnknownShard);
    assert_eq!(world.refused(0, assign(3, 1)), RejectReason::UnknownInstrument);
    world.take(0, assign(0, 1));
    assert_eq!(world.refused(0, bid(0, 2)), RejectReason::InstrumentElsewhere);
    world.take(1, assign(0, 1));
    world.take(1, phase(0, TradingPhase::Continuous));
    world.take(0, send(out(1, USD, 500, 1)));
    let transfer = carried(0, &world.shards[0].transfers_in_transit(shard(1)).next().unwrap());
    world.take(1, receive(transfer));
    world.take(1, bid(0, 2));
    world.restart(0);
    world.restart(1);
}

#[test]
fn a_shard_is_told_its_place_once() {
    let mut world = World::new(2, 1_000);
    for (own, count) in [(1, 2), (0, 1), (0, 0), (0, 65), (65, 65)] {
        assert_eq!(world.refused(0, configure(own, count)), RejectReason::ShardsInvalid, "{own} of {count}");
    }
    world.take(0, send(out(1, BTC, 1, 1)));
    world.take(0, configure(0, 2));
    world.take(0, configure(0, 64));
    assert_eq!((world.shards[0].shard_place().count, world.in_transit_count()), (64, 1));
    world.restart(0);
    // What has instruments already is shard 0 of its venue, since they are shard 0's.
    let mut grown = World::alone();
    for command in opening(2, 1_000, &[spec(0)]) {
        grown.take(0, command);
    }
    grown.take(0, phase(0, TradingPhase::Continuous));
    grown.take(0, bid(0, 1));
    assert_eq!(grown.shards[0].shard_place(), ShardPlace { own: ShardId(0), count: 1 });
    assert_eq!(grown.refused(0, configure(1, 2)), RejectReason::ShardsInvalid);
    grown.take(0, configure(0, 2));
    grown.take(0, bid(0, 2));
}

#[test]
fn a_session_moves_its_own_accounts_funds_only() {
    let mut world = World::new(2, 1_000);
    world.take(0, Command::Session(SessionCommand::Open(OpenSession { account: Some(MINE), token: 1 })));
    let session = world.shards[0].sessions_of(Some(MINE)).next().unwrap();
    let other = TransferOut { account: AccountId(2), ..out(1, USD, 1, 1) };
    let inward = TransferIn {
        from_shard: shard(1),
        to_shard: shard(0),
        transfer_seq: TransferSeq(1),
        account: MINE,
        asset: USD,
        amount: units(1_000_000),
    };
    let commands =
        [send(out(1, USD, 1, 1)), send(other), receive(inward), confirm(1, 1, 1), give_back(1, 1), configure(0, 3), assign(1, 0)];
    for (command, seq) in commands.into_iter().zip(1..) {
        let (engine, mut events) = (&mut world.shards[0], Vec::new());
        let ordinal = Ordinal { session, session_seq: SessionSeq(seq) };
        let became = engine.apply_numbered(engine.last_applied().next(), world.now, ordinal, &command, &mut events);
        let expected = (seq > 1).then_some(RejectReason::Forbidden);
        assert!(matches!(became, Numbered::Done(answer) if answer.rejected == expected), "{command:?}: {became:?}");
    }
    assert_eq!(world.in_transit_count(), 1);
}

/// What is damaged in a way that its hash does not show is refused.
#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let mut world = World::new(2, 1_000);
    world.take(0, send(out(1, USD, 400, 5)));
    let good = world.snapshot(0);
    let body = &good[..good.len() - 32];
    // The amount in transit is in the queue and in the ledger.
    let amount = 400_u64.to_le_bytes();
    let places: Vec<usize> = (0..body.len() - 8).filter(|at| body[*at..at + 8] == amount).collect();
    assert_eq!(places.len(), 2, "in the queue and in the ledger");
    for at in places {
        let mut bytes = body.to_vec();
        bytes[at] += 1;
        let hash = *blake3::hash(&bytes).as_bytes();
        bytes.extend_from_slice(&hash);
        assert!(walras_engine::Engine::restore(&bytes).is_err(), "at {at}");
    }
}
