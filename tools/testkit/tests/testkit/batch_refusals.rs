//! A transaction that no batch could keep is refused when it is sent. Each reason has a case by hand, and a batch that holds the
//! transaction all the same drops it for that reason.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_batch::ProposedClearing;
use walras_engine::Engine;
use walras_engine::versions::NEWEST;
use walras_testkit::plain;
use walras_types::limits::{AMOUNT_MAX, POOL_FEE_PPM_MAX, POOL_RESERVE_MIN};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, CancelOffer, CreateOffer,
    CreatePool, DepositToPool, DropReason, IssuedAmount, Joined, OfferName, Payment, PoolRule, PublicKey, QualityMax, Rounding,
    Symbol, TimeNs, TransactionSeq, TransactionTerms, TransferId, WithdrawFromPool,
};
use walras_wire::batch::SignedTransaction;
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchCommand, BatchEvent, BatchMarketCommand, BatchMarketSpec, CloseBatch, Command,
    Event, SetAccountKey, SetBatchCurrencies, SetBatchPhase, SetIssuer, StepBlock, SubmitTransaction, Transfer, VenueCommand,
};

const MARKET: BatchMarketId = BatchMarketId(0);
/// A and B are the market's currencies, STOCK and SHARE its other assets; OUTSIDE is at the venue and in no market, NOWHERE does not exist.
const A: AssetId = AssetId(0);
const B: AssetId = AssetId(1);
const OUTSIDE: AssetId = AssetId(2);
const STOCK: AssetId = AssetId(3);
const SHARE: AssetId = AssetId(4);
const NOWHERE: AssetId = AssetId(5);
const SENDER: AccountId = AccountId(0);
const OTHER: AccountId = AccountId(1);

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(text: &str) -> BatchPrice {
    BatchPrice::from_decimal(text, Rounding::Up).unwrap()
}

struct Venue(Engine);

impl Venue {
    /// Two accounts with a key and a million of each asset. The first issues the first asset.
    fn new() -> Self {
        let mut venue = Self(Engine::new());
        let symbol = |text: &str| Symbol::new(text).unwrap();
        venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
        for (asset, name) in [(A, "A"), (B, "B"), (OUTSIDE, "C"), (STOCK, "D"), (SHARE, "E")] {
            venue.apply(Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol: symbol(name), decimals: 2 })));
        }
        for account in [SENDER, OTHER] {
            venue.apply(Command::Account(AccountCommand::Create(account)));
            let key = PublicKey([account.0 as u8 + 1; 32]);
            venue.apply(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key })));
            for asset in [A, B, OUTSIDE] {
                let (amount, transfer_id) = (amount(1_000_000), TransferId(u64::from(asset.0) + 1));
                venue.apply(Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount, transfer_id })));
            }
        }
        venue.apply(Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset: A, account: SENDER })));
        let spec = BatchMarketSpec { quality: QualityMax::NONE, transactions_max: 1_000, ..plain::batch_market(MARKET) };
        venue.apply(Command::BatchMarket(BatchMarketCommand::Create(spec)));
        let currencies = SetBatchCurrencies { market: MARKET, currencies: 2 };
        venue.apply(Command::BatchMarket(BatchMarketCommand::SetCurrencies(currencies)));
        for asset in [A, B, STOCK, SHARE] {
            venue.apply(Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset })));
        }
        let phase = SetBatchPhase { market: MARKET, phase: BatchPhase::Open };
        venue.apply(Command::BatchMarket(BatchMarketCommand::SetPhase(phase)));
        venue
    }

    fn apply(&mut self, command: Command) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.apply(self.0.last_applied().next(), TimeNs(1), &command, &mut events);
        assert!(!matches!(events[..], [Event::Rejected(_)]), "{command:?}: {events:?}");
        events
    }

    fn submit(&mut self, transaction: BatchTransaction) {
        let submit = SubmitTransaction::new(MARKET, &SignedTransaction { transaction, signature: [3; 64] }).unwrap();
        self.apply(Command::Batch(BatchCommand::Submit(submit)));
    }

    /// Closes the batch; gives what was dropped, and why.
    fn close(&mut self) -> BTreeMap<(AccountId, u64), DropReason> {
        let block = self.0.batch_market(MARKET).unwrap().next_block;
        let events = self.apply(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block })));
        let dropped = events.iter().filter_map(|event| match event {
            Event::Batch(BatchEvent::TransactionDropped(e)) => Some(((e.account, e.sequence.0), e.reason)),
            _ => None,
        });
        dropped.collect()
    }

    /// Clears it without trades.
    fn clear(&mut self) {
        let (place, market, ..) = self.0.batch_to_clear(MARKET).unwrap();
        let nothing = ProposedClearing { place: Some(place), ..ProposedClearing::of_nothing(&market) };
        drop(market);
        let mut events = Vec::new();
        let next = self.0.last_applied().next();
        self.0.apply_clearing(next, TimeNs(1), &nothing.to_wire(MARKET).unwrap(), &mut events);
        assert!(!events.iter().any(|event| matches!(event, Event::Batch(BatchEvent::ClearingRejected(_)))), "{events:?}");
    }

    fn copy(&self) -> Self {
        let mut bytes = Vec::new();
        self.0.snapshot(&mut bytes);
        Self(Engine::restore(&bytes).unwrap())
    }

    fn next(&self, account: AccountId) -> u64 {
        self.0.next_transaction(account).0
    }

    fn check(&self, account: AccountId, operation: BatchOperation) -> Result<(), DropReason> {
        self.0.check_transaction(MARKET, &BatchTransaction::new(account, TransactionSeq(self.next(account)), operation))
    }

    /// Creates a pool, and clears its block.
    fn with_pool() -> (Self, OfferName) {
        let mut venue = Self::new();
        venue.submit(BatchTransaction::new(SENDER, TransactionSeq(1), create_pool()));
        assert!(venue.close().is_empty());
        venue.clear();
        (venue, OfferName { account: SENDER, sequence: TransactionSeq(1) })
    }
}

fn create_pool() -> BatchOperation {
    BatchOperation::CreatePool(pool([A, B], PoolRule::ConstantProduct, 3_000, [5_000, 7_000]))
}

fn pool(assets: [AssetId; 2], rule: PoolRule, fee_ppm: u32, units: [u64; 2]) -> CreatePool {
    CreatePool { market: MARKET, assets, rule, fee_ppm, amounts: units.map(amount) }
}

fn offer(sell: AssetId, buy: AssetId, units: u64, limit: &str) -> BatchOperation {
    BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(units), limit: price(limit) })
}

fn cancel(sell: AssetId, buy: AssetId) -> BatchOperation {
    BatchOperation::CancelOffer(CancelOffer { market: MARKET, sell, buy, limit: price("1"), tie: 0, sequence: TransactionSeq(9) })
}

fn pay(to: AccountId, asset: AssetId, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to, asset, amount: amount(units) })
}

fn issued(asset: AssetId, units: u64) -> IssuedAmount {
    IssuedAmount { asset, amount: amount(units) }
}

/// Operations of each kind that are wrong whatever else the batch holds, with the reason.
fn no_good(pool_name: OfferName) -> Vec<(BatchOperation, DropReason)> {
    use BatchOperation::{Burn, CreatePool as Pool, DepositToPool as Deposit, Issue, WithdrawFromPool as Withdraw};
    use DropReason as R;
    let unknown = OfferName { account: OTHER, sequence: TransactionSeq(1) };
    let deposit = |pool, units: [u64; 2]| Deposit(DepositToPool { market: MARKET, pool, amounts: units.map(amount) });
    let withdraw = |pool, shares| Withdraw(WithdrawFromPool { market: MARKET, pool, shares: amount(shares) });
    let (product, fee, enough) = (PoolRule::ConstantProduct, 3_000, [POOL_RESERVE_MIN; 2]);
    vec![
        (offer(A, B, 0, "1"), R::ZeroAmount),
        (offer(A, A, 5, "1"), R::EqualAssets),
        (offer(A, OUTSIDE, 5, "1"), R::UnknownAsset),
        (offer(NOWHERE, B, 5, "1"), R::UnknownAsset),
        (offer(A, B, AMOUNT_MAX, "2"), R::Unfillable),
        (cancel(A, A), R::EqualAssets),
        (cancel(OUTSIDE, B), R::UnknownAsset),
        (offer(STOCK, SHARE, 5, "1"), R::NoSuchPair),
        (cancel(SHARE, STOCK), R::NoSuchPair),
        (pay(OTHER, A, 0), R::ZeroAmount),
        (pay(OTHER, NOWHERE, 5), R::UnknownAsset),
        (pay(SENDER, A, 5), R::PaysItself),
        (pay(AccountId(9_999), A, 5), R::UnknownRecipient),
        (Issue(issued(A, 0)), R::ZeroAmount),
        (Issue(issued(B, 5)), R::NotIssuer),
        (Issue(issued(NOWHERE, 5)), R::UnknownAsset),
        (Burn(issued(A, 0)), R::ZeroAmount),
        (Burn(issued(OUTSIDE, 5)), R::NotIssuer),
        (Burn(issued(NOWHERE, 5)), R::UnknownAsset),
        (Pool(pool([A, A], product, fee, enough)), R::EqualAssets),
        (Pool(pool([A, OUTSIDE], product, fee, enough)), R::UnknownAsset),
        (Pool(pool([STOCK, SHARE], product, fee, enough)), R::NoSuchPair),
        (Pool(pool([A, B], product, POOL_FEE_PPM_MAX + 1, enough)), R::PoolTerms),
        (Pool(pool([A, B], product, fee, [POOL_RESERVE_MIN, POOL_RESERVE_MIN - 1])), R::PoolTooSmall),
        (deposit(pool_name, [5, 0]), R::DepositTooSmall),
        (deposit(unknown, [5_000, 5_000]), R::UnknownPool),
        (withdraw(pool_name, 0), R::ZeroAmount),
        (withdraw(unknown, 5), R::UnknownPool),
    ]
}

#[test]
fn a_transaction_that_no_batch_keeps_is_refused_and_a_batch_that_holds_it_drops_it_for_that_reason() {
    let (_, name) = Venue::with_pool();
    for (operation, reason) in no_good(name) {
        let (mut venue, _) = Venue::with_pool();
        assert_eq!(venue.check(SENDER, operation), Err(reason), "{operation:?}");
        // The reason is the same if it is alone in the batch, and if its account and another one send more.
        let sequence = venue.next(SENDER);
        venue.submit(BatchTransaction::new(SENDER, TransactionSeq(sequence), operation));
        let (mut alone, mut with_others) = (venue.copy(), venue);
        with_others.submit(BatchTransaction::new(SENDER, TransactionSeq(sequence + 1), pay(OTHER, B, 5)));
        with_others.submit(BatchTransaction::new(OTHER, TransactionSeq(1), create_pool()));
        let expected = BTreeMap::from([((SENDER, sequence), reason)]);
        assert_eq!(alone.close(), expected, "{operation:?}");
        assert_eq!(with_others.close(), expected, "{operation:?}, with others");
    }
}

/// No bytes encode an impossible rule of a pool. The engine refuses it all the same.
#[test]
fn a_pool_of_an_impossible_rule_is_refused() {
    let venue = Venue::new();
    for rule in [PoolRule::Weighted { weights: [0, 1] }, PoolRule::StableSwap { amplification: 0 }] {
        let operation = BatchOperation::CreatePool(pool([A, B], rule, 3_000, [5_000; 2]));
        assert_eq!(venue.check(SENDER, operation), Err(DropReason::PoolTerms), "{rule:?}");
        let transaction = BatchTransaction::new(SENDER, TransactionSeq(1), operation);
        assert!(SubmitTransaction::new(MARKET, &SignedTransaction { transaction, signature: [3; 64] }).is_err(), "{rule:?}");
    }
}

/// What a batch may keep is not refused: operations at the edge of each rule.
#[test]
fn what_a_batch_may_keep_is_collected() {
    let (mut venue, name) = Venue::with_pool();
    let good = [
        offer(A, B, 1, "1"),
        cancel(A, B),
        pay(OTHER, OUTSIDE, 1),
        BatchOperation::Issue(issued(A, 1)),
        BatchOperation::Burn(issued(A, 1)),
        BatchOperation::CreateAccount(PublicKey([1; 32])),
        BatchOperation::CreatePool(pool([A, B], PoolRule::ConstantProduct, POOL_FEE_PPM_MAX, [POOL_RESERVE_MIN; 2])),
        BatchOperation::DepositToPool(DepositToPool { market: MARKET, pool: name, amounts: [amount(1), amount(1)] }),
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market: MARKET, pool: name, shares: amount(1) }),
        // More than the account has, which may change until the batch is closed.
        pay(OTHER, A, 5_000_000),
    ];
    for operation in good {
        assert_eq!(venue.check(SENDER, operation), Ok(()), "{operation:?}");
    }
    // A waiting transaction that may open an account makes one more recipient possible.
    let next = AccountId(2);
    assert_eq!(venue.check(SENDER, pay(next, A, 5)), Err(DropReason::UnknownRecipient));
    venue.submit(BatchTransaction::new(OTHER, TransactionSeq(1), BatchOperation::CreateAccount(PublicKey([9; 32]))));
    assert_eq!(venue.check(SENDER, pay(next, A, 5)), Ok(()));
    assert_eq!(venue.check(SENDER, pay(AccountId(3), A, 5)), Err(DropReason::UnknownRecipient));
}

/// However many transactions wait: of these only new accounts make recipients possible.
#[test]
fn a_recipient_that_no_transaction_opens_is_refused_while_a_block_is_under_way() {
    for in_steps in [false, true] {
        let mut venue = Venue::new();
        if in_steps {
            venue.0.set_block_steps(0, NonZero::<usize>::MIN);
        }
        let (next, mistyped) = (AccountId(2), AccountId(3));
        // As it is, and after a start from its snapshot.
        let check = |venue: &Venue| {
            for venue in [&venue.copy(), venue] {
                assert_eq!(venue.check(SENDER, pay(next, A, 5)), Ok(()));
                assert_eq!(venue.check(SENDER, pay(mistyped, A, 5)), Err(DropReason::UnknownRecipient));
            }
        };
        for sequence in 1..=9 {
            venue.submit(BatchTransaction::new(SENDER, TransactionSeq(sequence), pay(OTHER, A, 5)));
        }
        venue.submit(BatchTransaction::new(OTHER, TransactionSeq(1), BatchOperation::CreateAccount(PublicKey([9; 32]))));
        check(&venue);
        assert!(venue.close().is_empty());
        let mut steps = 0;
        loop {
            check(&venue);
            if let Some(next) = venue.0.next_block_step(MARKET) {
                let step = StepBlock { market: MARKET, block: 1, step: next.number };
                venue.apply(Command::Batch(BatchCommand::Step(step)));
                steps += 1;
            } else if venue.0.batch_to_clear(MARKET).is_some() {
                venue.clear();
            } else {
                break;
            }
        }
        assert_eq!((venue.0.account_count(), steps > 0), (3, in_steps));
    }
}

/// A pool of the closed batch exists before the batch that collects is closed.
#[test]
fn a_deposit_to_a_pool_of_the_block_under_way_is_not_refused() {
    let mut venue = Venue::new();
    let name = OfferName { account: SENDER, sequence: TransactionSeq(1) };
    let deposit =
        BatchOperation::DepositToPool(DepositToPool { market: MARKET, pool: name, amounts: [amount(5_000), amount(7_000)] });
    venue.submit(BatchTransaction::new(SENDER, TransactionSeq(1), create_pool()));
    // In the same batch as the pool it would be dropped.
    assert_eq!(venue.check(OTHER, deposit), Err(DropReason::UnknownPool));
    assert!(venue.close().is_empty());
    assert_eq!(venue.check(OTHER, deposit), Ok(()));
    venue.submit(BatchTransaction::new(OTHER, TransactionSeq(1), deposit));
    venue.clear();
    assert_eq!(venue.close(), BTreeMap::new(), "it is kept");
    venue.clear();
    assert!(!venue.0.pool_shares(MARKET, name, OTHER).is_zero());
    // No block is under way, so all pools are known.
    let unknown = BatchOperation::WithdrawFromPool(WithdrawFromPool {
        market: MARKET,
        pool: OfferName { account: OTHER, sequence: TransactionSeq(7) },
        shares: amount(5),
    });
    assert_eq!(venue.check(OTHER, unknown), Err(DropReason::UnknownPool));
}

#[test]
fn a_last_block_that_has_passed_is_refused() {
    let mut venue = Venue::new();
    let until = |block| TransactionTerms { until: NonZero::new(block), ..TransactionTerms::NONE };
    let of = |block| BatchTransaction::new(SENDER, TransactionSeq(1), pay(OTHER, A, 5)).with_terms(until(block));
    assert_eq!(venue.0.check_transaction(MARKET, &of(1)), Ok(()));
    venue.submit(BatchTransaction::new(OTHER, TransactionSeq(1), pay(SENDER, A, 5)));
    venue.close();
    // Block 1 is closed, so the next transactions go into block 2.
    assert_eq!(venue.0.check_transaction(MARKET, &of(1)), Err(DropReason::Expired));
    assert_eq!(venue.0.check_transaction(MARKET, &of(2)), Ok(()));
    venue.clear();
    assert_eq!(venue.0.check_transaction(MARKET, &of(1)), Err(DropReason::Expired));
}

/// A chain of three of which a batch is closed before all of them have come, whatever order they come in.
#[test]
fn no_block_has_a_part_of_a_chain() {
    use DropReason::{JoinedDropped, JoinedMissing};
    let sent = |place: usize, joined| {
        let transaction = BatchTransaction::new(SENDER, TransactionSeq(place as u64 + 1), pay(OTHER, B, 5));
        transaction.with_terms(TransactionTerms { until: None, joined })
    };
    let chain = |place| sent(place, Joined::of_chain(place, 3));
    let older = |place| sent(place, if place < 2 { Joined::Next } else { Joined::No });
    // Which numbers each of two blocks drops.
    let dropped = |of: &dyn Fn(usize) -> BatchTransaction, parts: [&[usize]; 2]| {
        let mut venue = Venue::new();
        parts.map(|places| {
            places.iter().for_each(|place| venue.submit(of(*place)));
            let dropped = venue.close();
            venue.clear();
            dropped.into_iter().map(|((_, sequence), reason)| (sequence, reason)).collect::<Vec<_>>()
        })
    };
    let missing = |sequence: u64| (sequence, JoinedMissing);
    assert_eq!(dropped(&chain, [&[0], &[1, 2]]), [vec![missing(1)], vec![missing(2), (3, JoinedDropped)]]);
    assert_eq!(dropped(&chain, [&[0, 1], &[2]]), [vec![(1, JoinedDropped), missing(2)], vec![missing(3)]]);
    assert_eq!(dropped(&chain, [&[2, 1], &[0]]), [vec![missing(2), (3, JoinedDropped)], vec![missing(1)]]);
    assert_eq!(dropped(&chain, [&[2, 0], &[1]]), [vec![missing(1), missing(3)], vec![missing(2)]]);
    assert_eq!(dropped(&chain, [&[2, 0, 1], &[]]), [vec![], vec![]]);
    // What does not say that it is joined with the one before counts without it.
    assert_eq!(dropped(&older, [&[0, 1], &[2]]), [vec![(1, JoinedDropped), missing(2)], vec![]]);
    assert_eq!(dropped(&older, [&[0], &[1, 2]]), [vec![missing(1)], vec![]]);
}
