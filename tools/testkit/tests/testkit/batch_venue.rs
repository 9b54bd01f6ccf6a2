//! Whole venues beside the naive judge: orders, deposits and statuses between transactions that are collected, closed and cleared, right and
//! wrong. Three engines with 1, 2 and 8 threads, two of which are restored from their snapshots now and then, must not differ; what each event
//! says must add up to what the state is.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use walras_batch::{Certificate, ProposedClearing};
use walras_batch_solver::Settings;
use walras_clearing::{LowerBounds, Proposal};
use walras_engine::versions::NEWEST;
use walras_engine::{Engine, Frozen};
use walras_sequencer::{decode_entry, encode_clearing};
use walras_testkit::Choices;
use walras_testkit::batch::{
    Fault, Holding, Intake as JudgedIntake, Objection, Venue, Verdict, account_fee, lie, proposal, transactions, venue,
};
use walras_types::limits::{KEY_REPLACED_NS, MESSAGE_BYTES_MAX};
use walras_types::{
    AccountFee, AccountId, Allocation, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchTransaction, ClientOrderId,
    DropReason, FeeSchedule, InstrumentId, InstrumentSpec, Intake, LogIndex, Mu, OfferName, OrderTerms, PriceTicks, PublicKey,
    QualityMax, RejectReason, RiskLimits, Side, SizeLots, Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::batch::{BlockProposal, BlockRoots, SignedTransaction};
use walras_wire::{
    AccountCommand, AccountEvent, AccountStatus, AddBatchAsset, AssetSpec, BatchCommand, BatchEvent, BatchMarketCommand,
    BatchMarketEvent, BatchMarketSpec, CloseBatch, Command, Event, InstrumentCommand, MassCancel, NewOrder, OfferOpened,
    OrderCommand, SetAccountFee, SetAccountKey, SetAccountStatus, SetBatchPhase, SetIssuer, SetTradingPhase, StepBlock,
    SubmitTransaction, Transfer, VenueCommand, decode_command, decode_event, encode_command, encode_event,
};

const SEEDS: u64 = 60;
const BLOCKS: usize = 4;
const TRANSACTIONS: usize = 24;
const MARKET: BatchMarketId = BatchMarketId(0);
const INSTRUMENT: InstrumentId = InstrumentId(0);

/// An offer as events tell of it.
type Told = BTreeMap<u64, OfferOpened>;

struct World<'c, 'b> {
    c: &'c mut Choices<'b>,
    judge: Venue,
    engines: [Engine; 3],
    /// What of each balance is reserved for orders.
    in_orders: BTreeMap<(AccountId, AssetId), u128>,
    offers: Told,
    collected: Vec<BatchTransaction>,
    /// Transactions of the collecting batch that the engine called no good when they came: the place, the reason, and how many
    /// accounts the operator had opened by then.
    no_good: Vec<(usize, DropReason, u32)>,
    opened_by_operator: u32,
    /// What accounts cost from the next batch on; the judge knows what they cost in this one.
    next_fee: Option<AccountFee>,
    /// When the operator replaced the keys of accounts.
    replaced: BTreeMap<AccountId, TimeNs>,
    transfers: u64,
    orders: u64,
    time: TimeNs,
    at: String,
    reached: &'c mut BTreeMap<String, u32>,
    /// A state that was kept while the engine went on, its bytes then, and how long ago.
    kept: Option<(Frozen, Vec<u8>)>,
    calls: u32,
    /// How much one step of a block does; `None` where blocks are carried out in one entry.
    step_units: Option<NonZero<usize>>,
}

fn amount(units: u128) -> Amount {
    Amount::from_wide(units).unwrap()
}

/// What of a snapshot does not move with every entry.
fn lasting(engine: &Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.snapshot(&mut bytes);
    bytes[28..bytes.len() - 32].to_vec()
}

impl World<'_, '_> {
    fn count(&mut self, name: &str) {
        *self.reached.entry(name.to_owned()).or_default() += 1;
    }

    /// Applies an entry to all engines; what happened.
    fn all(&mut self, what: &dyn std::fmt::Debug, apply: impl Fn(&mut Engine, LogIndex, TimeNs, &mut Vec<Event>)) -> Vec<Event> {
        self.time.0 += self.c.below(3);
        if (self.calls + 1).is_multiple_of(50) {
            // Longer than a key that was replaced is kept from being set.
            self.time.0 += KEY_REPLACED_NS;
        }
        let (time, mut told) = (self.time, Vec::new());
        for (number, engine) in self.engines.iter_mut().enumerate() {
            let mut events = Vec::new();
            apply(engine, engine.last_applied().next(), time, &mut events);
            if number == 0 {
                told = events;
            } else {
                assert_eq!(told, events, "{}: what {what:?} does depends on threads, or on a restart", self.at);
            }
        }
        let hash = self.engines[0].state_hash();
        assert!(self.engines.iter().all(|engine| engine.state_hash() == hash), "{}: states differ after {what:?}", self.at);
        self.engines[0].check_invariants();
        self.check_kept();
        for (number, threads) in [(1, 2), (2, 8)] {
            if self.c.one_in(4) {
                let engine = &mut self.engines[number];
                let mut bytes = Vec::new();
                engine.snapshot(&mut bytes);
                *engine = Engine::restore_with_hash_seed(&bytes, self.c.any()).unwrap();
                assert_eq!(engine.state_hash(), hash, "{}: it was restored to something else", self.at);
                engine.set_threads(NonZero::new(threads).unwrap());
                if let Some(units) = self.step_units {
                    engine.set_block_steps(0, units);
                }
                if self.c.one_in(2) {
                    engine.prepare_batches();
                }
            }
        }
        self.listen(&told);
        told
    }

    /// What was kept some entries ago is what it was; now and then another state is kept.
    fn check_kept(&mut self) {
        self.calls += 1;
        if !self.calls.is_multiple_of(7) {
            return;
        }
        if let Some((frozen, then)) = self.kept.take() {
            let mut bytes = Vec::new();
            frozen.snapshot(&mut bytes);
            assert!(bytes == then, "{}: a state that was kept is another now", self.at);
            self.count("kept state");
        }
        let mut bytes = Vec::new();
        self.engines[0].snapshot(&mut bytes);
        self.kept = Some((self.engines[0].freeze(), bytes));
    }

    fn command(&mut self, command: Command) -> Vec<Event> {
        let mut bytes = Vec::new();
        encode_command(&command, &mut bytes);
        assert!(bytes.len() <= MESSAGE_BYTES_MAX && decode_command(&bytes) == Ok(command), "{command:?}");
        let before = lasting(&self.engines[0]);
        let events = self.all(&command, |engine, at, time, events| engine.apply(at, time, &command, events));
        if let [Event::Rejected(_)] = events[..] {
            assert!(before == lasting(&self.engines[0]), "{}: {command:?} was rejected and changed something", self.at);
        }
        events
    }

    /// Follows the offers by what is told of them.
    fn listen(&mut self, events: &[Event]) {
        let number = |account, sequence| OfferName { account, sequence }.number();
        for event in events {
            let mut bytes = Vec::new();
            encode_event(event, &mut bytes);
            assert!(bytes.len() <= MESSAGE_BYTES_MAX && decode_event(&bytes) == Ok(*event), "{event:?}");
            match event {
                Event::Batch(BatchEvent::OfferOpened(e)) => {
                    assert!(self.offers.insert(number(e.account, e.sequence), *e).is_none())
                }
                Event::Batch(BatchEvent::OfferTraded(e)) => {
                    let offer = self.offers.get_mut(&number(e.account, e.sequence)).unwrap();
                    assert_eq!(offer.amount.checked_sub(e.sold), Some(e.left), "{}: {e:?}", self.at);
                    offer.amount = e.left;
                    if e.left.is_zero() {
                        self.offers.remove(&number(e.account, e.sequence));
                    }
                }
                Event::Batch(BatchEvent::OfferCancelled(e)) => {
                    let offer = self.offers.remove(&number(e.account, e.sequence)).unwrap();
                    assert_eq!((offer.amount, offer.sell, offer.buy), (e.amount, e.sell, e.buy), "{}", self.at);
                }
                _ => {}
            }
        }
    }

    /// What each account has in all of each asset.
    fn totals(&self) -> BTreeMap<(AccountId, AssetId), i128> {
        let engine = &self.engines[0];
        let each = (0..engine.account_count()).flat_map(|a| (0..self.judge.asset_count).map(move |b| (AccountId(a), AssetId(b))));
        each.map(|(account, asset)| {
            let balance = engine.balance(account, asset);
            ((account, asset), i128::from(balance.available.get()) + i128::from(balance.reserved.get()))
        })
        .collect()
    }

    /// Lets the judge know what happened beside the batches: what is not reserved for them is available or reserved for orders.
    fn sync(&mut self) {
        let engine = &self.engines[0];
        self.judge.account_count = engine.account_count();
        for asset in (0..self.judge.asset_count).map(AssetId) {
            self.judge.supply.insert(asset, u128::from(engine.supply(asset).get()));
            self.judge.fees.insert(asset, u128::from(engine.fees(asset).get()));
            for account in (0..engine.account_count()).map(AccountId) {
                let balance = engine.balance(account, asset);
                let holding = self.judge.holdings.entry((account, asset)).or_default();
                holding.available = u128::from(balance.available.get());
                let in_orders = u128::from(balance.reserved.get()).checked_sub(holding.reserved);
                self.in_orders.insert((account, asset), in_orders.expect("orders took what is reserved for a batch"));
            }
        }
    }

    fn assert_judged(&self) {
        let (engine, at) = (&self.engines[0], &self.at);
        assert_eq!(engine.account_count(), self.judge.account_count, "{at}");
        for asset in (0..self.judge.asset_count).map(AssetId) {
            assert_eq!(engine.supply(asset), amount(self.judge.supply_of(asset)), "{at}: supply of {asset}");
            let fees = self.judge.fees.get(&asset).copied().unwrap_or_default();
            assert_eq!(engine.fees(asset), amount(fees), "{at}: fees of {asset}");
            for account in (0..self.judge.account_count).map(AccountId) {
                let (balance, holding) = (engine.balance(account, asset), self.judge.holding(account, asset));
                let in_orders = self.in_orders.get(&(account, asset)).copied().unwrap_or_default();
                let expected = (amount(holding.available), amount(holding.reserved + in_orders));
                assert_eq!((balance.available, balance.reserved), expected, "{at}: account {account}, asset {asset}");
            }
        }
        for account in (0..self.judge.account_count).map(AccountId) {
            assert_eq!(engine.last_transaction(account).0, self.judge.last.get(&account).copied().unwrap_or(0), "{at}");
            assert_eq!(engine.transaction_key(account), self.judge.keys.get(&account).copied(), "{at}: key of {account}");
        }
        let market = engine.batch_market(MARKET).unwrap().market.unwrap();
        let books = market.books().iter().flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), *offer)));
        let found: Vec<_> = books.map(|(pair, offer)| ((pair, offer.key()), offer.amount(), offer.stated())).collect();
        let expected: Vec<_> = self.judge.offers.iter().map(|(key, offer)| (*key, offer.amount, offer.stated)).collect();
        assert_eq!(found, expected, "{at}: offers");
    }

    /// Those that were told of, but for cancelled ones: these are told of when their block is cleared.
    fn assert_told(&self) {
        let told: BTreeMap<u64, Amount> = self.offers.iter().map(|(name, offer)| (*name, offer.amount)).collect();
        let standing: BTreeMap<u64, Amount> = self.judge.offers.iter().map(|((_, key), offer)| (key.id.0, offer.amount)).collect();
        assert_eq!(told, standing, "{}: events tell of other offers than stand", self.at);
    }

    /// Orders, money, accounts.
    fn meanwhile(&mut self) {
        for _ in 0..self.c.below(8) {
            let account = AccountId(self.c.below(7) as u32);
            let side = self.c.pick(&Side::BOTH);
            match self.c.weighted(&[12, 2, 2, 2, 1, 2, 1]) {
                0 => {
                    self.orders += 1;
                    let price = PriceTicks::new(self.c.within(1, 4) as i64).unwrap();
                    let size = SizeLots::new(self.c.pick(&[1, 2, 7, 1 << 20]));
                    let terms = OrderTerms::limit(side, price, size);
                    let order = NewOrder { account, instrument: INSTRUMENT, client_order_id: ClientOrderId(self.orders), terms };
                    self.command(Command::Order(OrderCommand::New(order)));
                }
                1 => drop(self.command(Command::Order(OrderCommand::MassCancel(MassCancel {
                    account,
                    instrument: None,
                    side: None,
                })))),
                2 | 3 => {
                    self.transfers += 1;
                    let asset = AssetId(self.c.below(5) as u32);
                    let most = self.judge.holding(account, asset).available.max(1);
                    let (amount, transfer_id) = (amount(most / u128::from(self.c.within(1, 4))), TransferId(self.transfers));
                    let transfer = Transfer { account, asset, amount, transfer_id };
                    let command = if self.c.one_in(2) {
                        Command::Account(AccountCommand::Deposit(transfer))
                    } else {
                        Command::Account(AccountCommand::Withdraw(transfer))
                    };
                    self.command(command);
                }
                4 if self.c.one_in(2) => self.replace_key(account),
                4 => {
                    let next = AccountId(self.engines[0].account_count());
                    self.command(Command::Account(AccountCommand::Create(next)));
                    self.opened_by_operator += 1;
                    let key = PublicKey(std::array::from_fn(|_| self.c.byte()));
                    let set = Command::Account(AccountCommand::SetKey(SetAccountKey { account: next, key }));
                    match self.command(set)[..] {
                        [Event::Account(AccountEvent::KeySet(_))] => drop(self.judge.keys.insert(next, key)),
                        [Event::Rejected(rejected)] => assert_eq!(rejected.reason, RejectReason::KeyTaken),
                        ref other => panic!("{other:?}"),
                    }
                }
                5 => self.set_account_fee(),
                _ => {
                    let status = self.c.pick(&[AccountStatus::Active, AccountStatus::Suspended]);
                    let set = Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status }));
                    if let Event::Account(AccountEvent::StatusChanged(_)) = self.command(set)[0] {
                        match status {
                            AccountStatus::Active => drop(self.judge.suspended.remove(&account)),
                            AccountStatus::Suspended => drop(self.judge.suspended.insert(account)),
                        }
                    }
                }
            }
            self.sync();
        }
    }

    /// The operator gives an account another key.
    fn replace_key(&mut self, account: AccountId) {
        let key = PublicKey(std::array::from_fn(|_| self.c.byte()));
        let set = Command::Account(AccountCommand::SetKey(SetAccountKey { account, key }));
        let is_another = self.judge.keys.get(&account).is_some_and(|before| *before != key);
        match self.command(set)[..] {
            [Event::Account(AccountEvent::KeySet(_))] => {
                self.judge.replace_key(account, key, &self.collected);
                if is_another {
                    self.replaced.insert(account, self.time);
                }
            }
            [Event::Rejected(_)] => assert!(account.0 >= self.judge.account_count, "{}: {account} has no other key", self.at),
            ref other => panic!("{other:?}"),
        }
    }

    /// It holds for the batch that collects where nothing is in it yet, else for the next.
    fn set_account_fee(&mut self) {
        let fee = account_fee(self.c);
        let set = |fee| Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee }));
        for (reason, asset, amount) in [
            (RejectReason::UnknownAsset, AssetId(self.judge.asset_count), Amount::MAX),
            (RejectReason::AmountOutOfRange, AssetId(0), Amount::ZERO),
        ] {
            let events = self.command(set(Some(AccountFee { asset, amount })));
            assert!(matches!(events[..], [Event::Rejected(e)] if e.reason == reason), "{}: {events:?}", self.at);
        }
        let [Event::BatchMarket(BatchMarketEvent::AccountFeeChanged(told))] = self.command(set(fee))[..] else {
            panic!("{}: it was refused", self.at)
        };
        let view = self.engines[0].batch_market(MARKET).unwrap();
        let collecting = view.next_block + u64::from(view.closed.is_some());
        self.next_fee = fee;
        if self.collected.is_empty() {
            self.judge.account_fee = fee;
        }
        assert_eq!((told.fee, told.from_block), (fee, collecting + u64::from(!self.collected.is_empty())), "{}", self.at);
        assert_eq!((view.account_fee.now, view.account_fee.next), (self.judge.account_fee, fee), "{}", self.at);
    }

    fn collecting_block(&self) -> u64 {
        self.engines[0].batch_market(MARKET).expect("the market is there").collecting_block()
    }

    /// Why a transaction is not collected, from what it says and the judge knows.
    fn refusal(&self, t: &BatchTransaction) -> Option<RejectReason> {
        let named = match &t.operation {
            BatchOperation::CreateOffer(create) => Some(create.market),
            BatchOperation::CancelOffer(cancel) => Some(cancel.market),
            _ => None,
        };
        let last = self.judge.last.get(&t.account).copied().unwrap_or(0);
        let is_twice = || self.collected.iter().any(|other| (other.account, other.sequence) == (t.account, t.sequence));
        Some(match () {
            () if t.account.0 >= self.judge.account_count => RejectReason::UnknownAccount,
            () if self.judge.suspended.contains(&t.account) => RejectReason::AccountSuspended,
            () if named.is_some_and(|named| named != MARKET) => RejectReason::BatchMarketMismatch,
            () if t.terms.until.is_some_and(|until| until.get() < self.collecting_block()) => RejectReason::AlreadyExpired,
            () if !self.judge.keys.contains_key(&t.account) => RejectReason::NoTransactionKey,
            () if !(last + 1..=last + 64).contains(&t.sequence.0) => RejectReason::TransactionSeqOutOfWindow,
            () if is_twice() => RejectReason::DuplicateTransaction,
            () => return None,
        })
    }

    fn submit(&mut self, transactions: &[BatchTransaction]) {
        for transaction in transactions {
            let signed = SignedTransaction { transaction: *transaction, signature: [self.c.byte(); 64] };
            // Ids and numbers beyond all limits do not come through the door.
            let Ok(submit) = SubmitTransaction::new(MARKET, &signed) else { continue };
            let expected = self.refusal(transaction);
            let waits = self.engines[0].batch_to_clear(MARKET).is_some();
            let early = self.engines[0].check_transaction(MARKET, transaction);
            match (&self.command(Command::Batch(BatchCommand::Submit(submit)))[..], expected) {
                ([Event::Batch(BatchEvent::TransactionCollected(e))], None) => {
                    let next = self.engines[0].batch_market(MARKET).unwrap().next_block;
                    assert_eq!((e.account, e.sequence), (transaction.account, transaction.sequence));
                    assert_eq!(e.block, next + u64::from(waits), "{}", self.at);
                    if let Err(reason) = early {
                        self.no_good.push((self.collected.len(), reason, self.opened_by_operator));
                        self.count(&format!("no good: {}", reason.name()));
                    }
                    self.collected.push(*transaction);
                    self.keep_key(transaction);
                }
                ([Event::Rejected(e)], Some(reason)) => {
                    assert_eq!(e.reason, reason, "{}: {transaction:?}", self.at);
                    self.count(reason.name());
                }
                (events, expected) => panic!("{}: {transaction:?} gave {events:?}, and {expected:?} is right", self.at),
            }
        }
    }

    /// What sets a key that the operator replaced a moment before sets none.
    fn keep_key(&mut self, transaction: &BatchTransaction) {
        let BatchTransaction { account, operation, .. } = transaction;
        if !matches!(operation, BatchOperation::SetKey(_)) {
            return;
        }
        if let Some(replaced) = self.replaced.get(account) {
            let is_late = self.time.0 - replaced.0 > KEY_REPLACED_NS;
            if !is_late {
                self.judge.keep_key(*account);
            }
            self.count(if is_late { "key set a minute after" } else { "key set a moment after" });
        }
    }

    fn close(&mut self, intake: JudgedIntake) {
        let block = self.engines[0].batch_market(MARKET).unwrap().next_block;
        let wrong = self.command(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block: block + 1 })));
        assert!(matches!(wrong[..], [Event::Rejected(e)] if e.reason == RejectReason::BatchNotNext));
        let verdict = self.judge.judge(&self.collected, intake);
        self.assert_no_good(&verdict);
        let mut events = self.command(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block })));
        events.extend(self.steps());
        if self.step_units.is_some() {
            self.told_at_once(&mut events);
        }
        let Event::Batch(BatchEvent::Closed(closed)) = events[0] else { panic!("{}: {events:?}", self.at) };
        assert_eq!((closed.block, closed.kept as usize), (block, verdict.kept.len()), "{}", self.at);
        let name = |place: &usize| (self.collected[*place].account, self.collected[*place].sequence);
        let dropped = events.iter().filter_map(|event| match event {
            Event::Batch(BatchEvent::TransactionDropped(e)) => Some((e.account, e.sequence)),
            _ => None,
        });
        assert!(dropped.eq(verdict.dropped.keys().map(name)), "{}: {events:?}, {verdict:?}", self.at);
        let kept: Vec<_> = verdict.kept.iter().map(|&place| self.collected[place]).collect();
        self.judge.close(&kept, &closed.batch_hash);
        self.collected.clear();
        if self.judge.account_fee.is_some() && kept.iter().any(|kept| matches!(kept.operation, BatchOperation::CreateAccount(_))) {
            self.count("paid for an account");
        }
        self.judge.account_fee = self.next_fee;
        self.count(&format!("kept at least {}", kept.len() / 8 * 8));
        self.assert_judged();
        let again = self.command(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block })));
        assert!(matches!(again[..], [Event::Rejected(e)] if e.reason == RejectReason::BatchNotCleared));
    }

    /// A transaction that was called no good is dropped for that reason, whatever else the batch holds.
    fn assert_no_good(&mut self, verdict: &Verdict) {
        for (place, reason, opened) in std::mem::take(&mut self.no_good) {
            // A payment to an account that did not exist becomes good if the operator opens that account.
            if reason == DropReason::UnknownRecipient && opened < self.opened_by_operator {
                continue;
            }
            let (faults, at) = (verdict.dropped.get(&place), &self.at);
            let said = faults.is_some_and(|faults| faults.contains(&fault_of(reason)));
            assert!(said, "{at}: {:?} was no good ({reason:?}), and the judge finds {faults:?}", self.collected[place]);
        }
    }

    fn clearing(&mut self, block: &BlockProposal) -> Vec<Event> {
        let mut bytes = Vec::new();
        encode_clearing(self.time, block, &mut bytes).unwrap();
        let entry = decode_entry(LogIndex(1), &bytes).unwrap();
        assert_eq!(entry.content, block.clone().into(), "the log holds what was proposed");
        let before = lasting(&self.engines[0]);
        let events = self.all(block, |engine, at, time, events| engine.apply_clearing(at, time, block, events));
        if let [Event::Batch(BatchEvent::ClearingRejected(_))] = events[..] {
            assert!(before == lasting(&self.engines[0]), "{}: a block was rejected and changed something", self.at);
        }
        [events, self.steps()].concat()
    }

    /// Takes the steps of a block, as far as it goes.
    fn steps(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(next) = self.engines[0].next_block_step(MARKET) {
            for engine in &mut self.engines {
                // On another thread, or when the step needs it.
                let jobs = engine.take_block_jobs();
                let is_early = self.c.one_in(2);
                jobs.into_iter().filter(|_| is_early).for_each(|job| {
                    std::thread::scope(|scope| drop(scope.spawn(|| job.run(NonZero::<usize>::MIN))));
                });
            }
            let block = self.engines[0].batch_market(MARKET).unwrap().next_block;
            let step = |step| Command::Batch(BatchCommand::Step(StepBlock { market: MARKET, block, step }));
            let wrong = self.command(step(next.number + 1));
            assert!(matches!(wrong[..], [Event::Rejected(e)] if e.reason == RejectReason::BatchNotNext), "{}: {wrong:?}", self.at);
            events.extend(self.command(step(next.number)));
            self.count("step");
        }
        events
    }

    /// In the order in which one entry tells of it.
    fn told_at_once(&self, events: &mut [Event]) {
        let name = |account: AccountId, sequence| OfferName { account, sequence };
        let place = |name: OfferName| {
            self.collected.iter().position(|t| (t.account, t.sequence) == (name.account, name.sequence)).unwrap_or_default()
        };
        events.sort_by_key(|event| match event {
            Event::Batch(BatchEvent::Closed(_)) => (0, 0),
            Event::Batch(BatchEvent::TransactionDropped(e)) => (1, place(name(e.account, e.sequence))),
            _ => (2, 0),
        });
    }

    fn assert_refused(&mut self, block: &BlockProposal, code: u16) {
        let events = self.clearing(block);
        assert!(
            matches!(events[..], [Event::Batch(BatchEvent::ClearingRejected(e))] if e.code == code),
            "{}: {code} and {events:?}",
            self.at
        );
    }

    /// Proposes until the closed batch is cleared.
    fn clear(&mut self) {
        for attempt in 0.. {
            let (place, market, rules, _) = self.engines[0].batch_to_clear(MARKET).unwrap();
            let nothing = Proposal { prices: vec![None; self.judge.assets.len()], ..Proposal::default() };
            let mut found = if attempt < 3 { proposal(self.c, &self.judge) } else { nothing };
            if attempt < 3 && self.c.one_in(2) {
                let settings = Settings::new(rules.commission, rules.mu);
                found = walras_batch_solver::clear(&market, &settings).map_or(found, |cleared| cleared.proposal);
            }
            let mut marginal = self.judge.marginal(&found).unwrap_or_default();
            if attempt < 3 && self.c.one_in(2) {
                lie(self.c, &mut found, &mut marginal);
            }
            let certificate = Certificate::find(&market, &found, &rules);
            let proposed = ProposedClearing { place: Some(place), proposal: found, marginal, certificate, expected: None };
            let wire = proposed.to_wire(MARKET).unwrap();
            if encode_clearing(self.time, &wire, &mut Vec::new()).is_err() {
                self.count("unwritable");
                continue;
            }
            let proposed = ProposedClearing::from(&wire);
            let judged = self.judge.clone().clear(&proposed.proposal, &proposed.marginal);
            if let Err(objections) = judged {
                let events = self.clearing(&wire);
                let [Event::Batch(BatchEvent::ClearingRejected(rejected))] = events[..] else { panic!("{}: {events:?}", self.at) };
                let objection = match rejected.code {
                    code @ ..100 => Objection::Clearing(code),
                    109 => Objection::Unpriced,
                    _ => Objection::Marginal,
                };
                assert!(objections.contains(&objection), "{}: {rejected:?}, and {objections:?}", self.at);
                self.count(&format!("refused {}", rejected.code));
                continue;
            }
            drop(market);
            self.accept(&proposed);
            return;
        }
    }

    fn accept(&mut self, proposed: &ProposedClearing) {
        let mut wire = proposed.to_wire(MARKET).unwrap();
        self.assert_refused(&BlockProposal { number: wire.number + 1, ..wire.clone() }, 101);
        self.assert_refused(&BlockProposal { parent: [9; 32], ..wire.clone() }, 102);
        self.assert_refused(&BlockProposal { batch_hash: [9; 32], ..wire.clone() }, 103);
        let elsewhere = BlockProposal { market: BatchMarketId(1), ..wire.clone() };
        assert!(matches!(self.clearing(&elsewhere)[..], [Event::Rejected(e)] if e.reason == RejectReason::UnknownBatchMarket));
        // Somebody else with the same state says what it hashes to.
        let mut bytes = Vec::new();
        self.engines[0].snapshot(&mut bytes);
        let mut other = Engine::restore(&bytes).unwrap();
        other.apply_clearing(other.last_applied().next(), self.time, &wire, &mut Vec::new());
        let roots = other.batch_market(MARKET).unwrap().last.unwrap().roots;
        let roots = BlockRoots { accounts: roots.accounts, offers: roots.offers, state: roots.state };
        for (code, wrong) in [
            (106, BlockRoots { accounts: [9; 32], ..roots }),
            (107, BlockRoots { offers: [9; 32], ..roots }),
            (108, BlockRoots { state: [9; 32], ..roots }),
        ] {
            wire.roots = Some(wrong);
            self.assert_refused(&wire, code);
        }
        wire.roots = Some(roots).filter(|_| self.step_units.is_none());

        let (before, known) = (self.totals(), self.engines[0].account_count());
        let events = self.clearing(&wire);
        let given = self.judge.clear(&proposed.proposal, &proposed.marginal).unwrap();
        self.assert_judged();
        self.assert_told();
        let mut expected = before;
        let mut moves = |account, asset, units: i128| *expected.entry((account, asset)).or_default() += units;
        let mut told = Vec::new();
        for event in &events {
            match event {
                Event::Batch(BatchEvent::OfferTraded(e)) => {
                    moves(e.account, e.sell, -i128::from(e.sold.get()));
                    moves(e.account, e.buy, i128::from(e.bought.get()));
                }
                Event::Batch(BatchEvent::Paid(e)) => {
                    moves(e.from, e.asset, -i128::from(e.amount.get()));
                    moves(e.to, e.asset, i128::from(e.amount.get()));
                }
                // It was made when the batch was closed, and reserved.
                Event::Batch(BatchEvent::Issued(_) | BatchEvent::OfferCancelled(_)) | Event::Account(AccountEvent::Created(_)) => {}
                Event::Batch(BatchEvent::Burnt(e)) => moves(e.account, e.asset, -i128::from(e.amount.get())),
                Event::Batch(BatchEvent::AccountFeePaid(e)) => moves(e.account, e.asset, -i128::from(e.amount.get())),
                Event::Account(AccountEvent::KeySet(e)) => told.push((e.account, e.key)),
                Event::Batch(BatchEvent::TransactionDropped(e)) => assert_eq!(e.reason, DropReason::KeyReplaced, "{}", self.at),
                Event::Batch(BatchEvent::Cleared(e)) => {
                    assert_eq!((e.block, e.state_root), (wire.number, roots.state), "{}", self.at);
                    let stated = (wire.certificate.gap_ppb, wire.certificate.unserved_ppb);
                    assert_eq!((e.gap_ppb, e.unserved_ppb), stated, "{}", self.at);
                }
                other => panic!("{}: {other:?}", self.at),
            }
        }
        assert_eq!(told, given, "{}: keys that accounts got", self.at);
        let after = self.totals();
        for account in (known..self.engines[0].account_count()).map(AccountId) {
            (0..self.judge.asset_count).for_each(|asset| {
                expected.insert((account, AssetId(asset)), 0);
            });
        }
        assert_eq!(after, expected, "{}: events do not say what moved", self.at);
        let view = self.engines[0].batch_market(MARKET).unwrap();
        assert_eq!((view.closed, view.next_block), (None, wire.number + 1));
        self.count(&format!("cleared, trades {}", !proposed.proposal.trades.is_empty()));
        self.assert_provable(roots.accounts);
        let again = self.clearing(&wire);
        assert!(matches!(again[..], [Event::Batch(BatchEvent::ClearingRejected(e))] if e.code == 100), "{}: {again:?}", self.at);
    }
}

impl World<'_, '_> {
    /// Whoever cleared the block proves each account and offer under its roots, or that there is none.
    fn assert_provable(&self, accounts_root: [u8; 32]) {
        let engine = &self.engines[0];
        for account in (0..=engine.account_count()).map(AccountId) {
            let found = engine.account_statement(account);
            let (last, statement) = found.unwrap_or_else(|| panic!("{}: account {account} of {}", self.at, engine.account_count()));
            assert_eq!(last.roots.accounts, accounts_root);
            let said = self.engines[1].account_statement(account).is_none_or(|(_, other)| other == statement);
            assert!(said, "{}: two replicas prove account {account} otherwise", self.at);
        }
        for (pair, key) in self.judge.offers.keys() {
            let (last, _) = engine.offer_statement(MARKET, *pair, key).unwrap();
            assert_eq!(last.header.market, MARKET);
        }
    }
}

/// The judge's name of a reason.
fn fault_of(reason: DropReason) -> Fault {
    match reason {
        DropReason::UnknownAsset => Fault::UnknownAsset,
        DropReason::EqualAssets => Fault::EqualAssets,
        DropReason::ZeroAmount => Fault::ZeroAmount,
        DropReason::Unfillable => Fault::Unfillable,
        DropReason::UnknownRecipient => Fault::UnknownRecipient,
        DropReason::PaysItself => Fault::PaysItself,
        DropReason::NotIssuer => Fault::NotIssuer,
        DropReason::Expired => Fault::Expired,
        other => panic!("{other:?} depends on what else the batch holds, or is of pools, which the judge does not have"),
    }
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text).unwrap()
}

/// The operator's commands that make such a venue.
fn founding(venue: &Venue, intake: Intake) -> Vec<Command> {
    let asset = |asset| AssetSpec { asset: AssetId(asset), symbol: symbol(&format!("A{asset}")), decimals: 2 };
    let mut all: Vec<Command> = (0..venue.asset_count).map(|id| Command::Venue(VenueCommand::CreateAsset(asset(id)))).collect();
    all.extend((0..venue.account_count).map(|account| Command::Account(AccountCommand::Create(AccountId(account)))));
    all.extend(venue.holdings.iter().enumerate().filter(|(_, (_, holding))| holding.available > 0).map(
        |(number, ((account, asset), Holding { available, .. }))| {
            let transfer_id = TransferId(number as u64 + 1);
            Command::Account(AccountCommand::Deposit(Transfer {
                account: *account,
                asset: *asset,
                amount: amount(*available),
                transfer_id,
            }))
        },
    ));
    all.extend(
        venue
            .keys
            .iter()
            .map(|(account, key)| Command::Account(AccountCommand::SetKey(SetAccountKey { account: *account, key: *key }))),
    );
    all.extend(
        venue
            .issuers
            .iter()
            .map(|(asset, account)| Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset: *asset, account: *account }))),
    );
    let suspend =
        |account| Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status: AccountStatus::Suspended }));
    all.extend(venue.suspended.iter().map(|account| suspend(*account)));
    all.push(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
        instrument: INSTRUMENT,
        symbol: symbol("A0/A1"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: -100, taker_ppm: 10_000 },
        collar_ppm: 900_000,
        band_ppm: 900_000,
        reference_price: PriceTicks::new(2).unwrap(),
        default_limits: RiskLimits {
            order_lots_max: SizeLots::new(1 << 30),
            order_value_max: Amount::MAX,
            open_orders_max: 1_000,
            position_lots_max: SizeLots::new(1 << 40),
        },
    })));
    all.push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase {
        instrument: INSTRUMENT,
        phase: TradingPhase::Continuous,
    })));
    let rules = venue.rules;
    all.push(Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
        market: MARKET,
        symbol: symbol("MAIN"),
        commission: rules.commission,
        mu: rules.mu,
        lower_bounds: rules.lower_bounds,
        quality: QualityMax::NONE,
        intake,
        interval_ns: 500_000_000,
        transactions_max: 1_000,
        domain: [7; 32],
    })));
    all.extend(
        venue
            .assets
            .iter()
            .map(|asset| Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset: *asset }))),
    );
    all.push(Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee: venue.account_fee })));
    all.push(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open })));
    all
}

#[test]
fn venues_are_what_the_judge_says() {
    judge_venues(SEEDS, |_| None);
}

/// The same venues, where blocks go on in steps: each engine restarts between any two, and does the work of blocks on another thread or
/// when it needs it. What a block in one entry hashes to, a block in steps does.
#[test]
fn venues_in_steps_are_what_the_judge_says() {
    judge_venues(SEEDS / 2, |c| NonZero::new(1 + c.below(12) as usize));
}

fn judge_venues(seeds: u64, step_units: impl Fn(&mut Choices<'_>) -> Option<NonZero<usize>>) {
    let mut reached = BTreeMap::new();
    for seed in 0..seeds {
        let mut c = Choices::of_seed(seed);
        let lower_bounds = if c.one_in(4) { LowerBounds::Required } else { LowerBounds::BestEffort };
        let mut judge = venue(&mut c, lower_bounds);
        judge.market = MARKET;
        judge.rules.mu = Mu::new(1).unwrap();
        judge.last.clear();
        let (judged, intake) = c.pick(&[
            (JudgedIntake::Filter, Intake::Filter),
            (JudgedIntake::Filter, Intake::Filter),
            (JudgedIntake::Reserve, Intake::Reserve),
        ]);
        let step_units = step_units(&mut c);
        // Who gets a key that several ask for is decided by account, in steps.
        let (judged, intake) = if step_units.is_some() { (JudgedIntake::Filter, Intake::Filter) } else { (judged, intake) };
        let engines = [1, 2, 8].map(|threads| {
            let mut engine = Engine::new();
            if let Some(units) = step_units {
                engine.set_block_steps(0, units);
            }
            engine.set_threads(NonZero::new(threads).unwrap());
            engine
        });
        let (mut commands, next_fee) = (founding(&judge, intake), judge.account_fee);
        commands.insert(0, Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
        let mut world = World {
            c: &mut c,
            judge,
            engines,
            in_orders: BTreeMap::new(),
            replaced: BTreeMap::new(),
            offers: Told::new(),
            collected: Vec::new(),
            no_good: Vec::new(),
            opened_by_operator: 0,
            next_fee,
            transfers: 1_000,
            orders: 0,
            time: TimeNs(1),
            at: format!("seed {seed}"),
            reached: &mut reached,
            kept: None,
            calls: 0,
            step_units,
        };
        for command in commands {
            let events = world.command(command);
            assert!(!matches!(events[..], [Event::Rejected(_)]), "{command:?}: {events:?}");
        }
        world.sync();
        for block in 0..BLOCKS {
            world.at = format!("seed {seed}, block {block}");
            world.meanwhile();
            let batch = transactions(world.c, &world.judge, TRANSACTIONS);
            world.submit(&batch);
            world.meanwhile();
            world.close(judged);
            world.meanwhile();
            let early = world.c.below(TRANSACTIONS as u64 / 2) as usize;
            let next = transactions(world.c, &world.judge, early);
            world.submit(&next);
            world.clear();
        }
    }
    println!("{reached:#?}");
    for name in [
        "kept at least 16",
        "paid for an account",
        "cleared, trades true",
        "refused 7",
        "DuplicateTransaction",
        "AccountSuspended",
        "no good: UnknownAsset",
        "no good: EqualAssets",
        "no good: ZeroAmount",
        "no good: UnknownRecipient",
        "no good: NotIssuer",
    ] {
        // Fewer venues do not come to everything.
        assert!(seeds < SEEDS || reached.contains_key(name), "no random venue has come to {name}");
    }
}

/// A venue in the middle of everything: something stands, a batch is closed, another collects; accounts cost something else in each, and in the next.
fn busy(seed: u64) -> Engine {
    let mut c = Choices::of_seed(seed);
    let mut judge = venue(&mut c, LowerBounds::BestEffort);
    judge.market = MARKET;
    judge.rules.mu = Mu::new(1).unwrap();
    judge.last.clear();
    let (mut engine, mut events) = (Engine::new(), Vec::new());
    let mut apply = |engine: &mut Engine, command: Command| {
        events.clear();
        engine.apply(engine.last_applied().next(), TimeNs(1), &command, &mut events);
    };
    let fee = |units| {
        let fee = Some(AccountFee { asset: AssetId(0), amount: amount(units) });
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee }))
    };
    founding(&judge, Intake::Filter).into_iter().for_each(|command| apply(&mut engine, command));
    apply(&mut engine, fee(1));
    for block in 1..=2 {
        for transaction in transactions(&mut c, &judge, TRANSACTIONS) {
            let signed = SignedTransaction { transaction, signature: [3; 64] };
            if let Ok(submit) = SubmitTransaction::new(MARKET, &signed) {
                apply(&mut engine, Command::Batch(BatchCommand::Submit(submit)));
            }
        }
        if block == 1 {
            apply(&mut engine, Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block })));
            let (place, market, ..) = engine.batch_to_clear(MARKET).unwrap();
            let nothing = ProposedClearing { place: Some(place), ..ProposedClearing::of_nothing(&market) };
            let wire = nothing.to_wire(MARKET).unwrap();
            engine.apply_clearing(engine.last_applied().next(), TimeNs(1), &wire, &mut Vec::new());
        }
    }
    apply(&mut engine, Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block: 2 })));
    apply(&mut engine, fee(2));
    for account in 0..6 {
        let first = engine.next_transaction(AccountId(account));
        let operation = BatchOperation::CreateAccount(PublicKey([account as u8 + 1; 32]));
        let transaction = BatchTransaction::new(AccountId(account), first, operation);
        let submit = SubmitTransaction::new(MARKET, &SignedTransaction { transaction, signature: [3; 64] }).unwrap();
        apply(&mut engine, Command::Batch(BatchCommand::Submit(submit)));
    }
    apply(&mut engine, fee(3));
    engine
}

/// Changed bytes with a hash that makes them whole: they are refused, or restore to a state that holds together and goes on.
#[test]
fn no_change_of_a_snapshot_makes_a_venue_fail() {
    let (mut restored, mut refused) = (0_u32, BTreeSet::new());
    for seed in 0..6 {
        let mut bytes = Vec::new();
        busy(seed).snapshot(&mut bytes);
        let content = bytes.len() - 32;
        let mut c = Choices::of_seed(seed);
        for at in 0..content {
            let mut changed = bytes[..content].to_vec();
            changed[at] = c.pick(&[changed[at] ^ 1, changed[at] ^ 0x80, changed[at].wrapping_add(1), 0, 0xff]);
            let hash = blake3::hash(&changed);
            changed.extend_from_slice(hash.as_bytes());
            match Engine::restore(&changed) {
                Err(error) => drop(refused.insert(error.to_string())),
                Ok(mut engine) => {
                    restored += 1;
                    engine.check_invariants();
                    let mut events = Vec::new();
                    // The block that waits, and one more after it.
                    for _ in 0..2 {
                        let market = engine.batch_market(MARKET).unwrap();
                        let block = market.next_block;
                        let close = Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block }));
                        let time = engine.time();
                        engine.apply(engine.last_applied().next(), time, &close, &mut events);
                        let Some((place, market, ..)) = engine.batch_to_clear(MARKET) else { continue };
                        let nothing = ProposedClearing { place: Some(place), ..ProposedClearing::of_nothing(&market) };
                        drop(market);
                        let wire = nothing.to_wire(MARKET).unwrap();
                        engine.apply_clearing(engine.last_applied().next(), time, &wire, &mut events);
                        engine.check_invariants();
                    }
                }
            }
        }
    }
    println!("{restored} restored; refused: {refused:#?}");
    assert!(restored > 0 && refused.len() > 10);
}
