//! Blocks of `core/batch` beside the naive judge: random small batches and proposals, right and wrong ones, and all of the state compared
//! after every step.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_batch::{
    Accounts, Batch, BatchSettings, BlockPlace, BlockRejected, Certificate, Cleared, Closed, DropReason, Intake as BatchIntake,
    ProposedClearing, QualityError, QualityMax, Roots,
};
use walras_batch_solver::Settings;
use walras_batch_workload::{Faults, Model, Workload, stands_in};
use walras_clearing::{Edition, LowerBounds, OfferKey, Pair, Proposal, Rules};
use walras_ledger::Ledger;
use walras_testkit::Choices;
use walras_testkit::batch::{Fault, Holding, Intake, Objection, Venue, account_fee, lie, proposal, transactions, venue};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchTransaction, Commission, IssuedAmount, Mu, Payment, PublicKey,
    TransactionSeq,
};

const SEEDS: u64 = 180;
const BLOCKS: usize = 5;
const TRANSACTIONS: usize = 30;

fn amount(units: u128) -> Amount {
    Amount::from_wide(units).unwrap()
}

fn fault_of(reason: DropReason) -> Option<Fault> {
    Some(match reason {
        DropReason::UnknownAccount => Fault::UnknownAccount,
        DropReason::Suspended => Fault::Suspended,
        DropReason::SequenceTwice => Fault::NumberTwice,
        DropReason::SequenceOutOfWindow => Fault::NumberOutOfWindow,
        DropReason::UnknownMarket => Fault::UnknownMarket,
        DropReason::UnknownAsset => Fault::UnknownAsset,
        DropReason::EqualAssets => Fault::EqualAssets,
        DropReason::ZeroAmount => Fault::ZeroAmount,
        DropReason::Unfillable => Fault::Unfillable,
        DropReason::UnknownOffer => Fault::NoSuchOffer,
        DropReason::CancelledTwice => Fault::CancelledTwice,
        DropReason::UnknownRecipient => Fault::UnknownRecipient,
        DropReason::PaysItself => Fault::PaysItself,
        DropReason::NotIssuer => Fault::NotIssuer,
        DropReason::SupplyOverflow => Fault::SupplyExceeded,
        DropReason::KeyTaken => Fault::KeyTaken,
        DropReason::KeyTwice => Fault::KeyTwice,
        DropReason::KeySetTwice => Fault::KeySetTwice,
        DropReason::KeyReplaced => Fault::KeyReplaced,
        DropReason::Overdraft => Fault::Overdraft,
        DropReason::Expired => Fault::Expired,
        DropReason::JoinedMissing => Fault::JoinedMissing,
        DropReason::JoinedDropped => Fault::JoinedDropped,
        // Not among so few.
        DropReason::TooManyAccounts | DropReason::TooManyPools => return None,
        // Nobody asks for pools here.
        DropReason::UnknownPool | DropReason::PoolTerms | DropReason::PoolTooSmall | DropReason::DepositTooSmall => return None,
        DropReason::SharesOverdrawn => return None,
        // All assets are currencies here.
        DropReason::NoSuchPair => return None,
    })
}

/// The same accounts with other last numbers: nothing sets those but bytes.
fn with_last(accounts: &Accounts, venue: &Venue) -> Accounts {
    let mut bytes = Vec::new();
    accounts.snapshot(&mut |more| bytes.extend_from_slice(more));
    let mut at = 4;
    for account in (0..u32::from_le_bytes(bytes[..at].try_into().unwrap())).map(AccountId) {
        let last = venue.last.get(&account).copied().unwrap_or(0);
        bytes[at..at + 8].copy_from_slice(&last.to_le_bytes());
        at += 9 + 32 * usize::from(bytes[at + 8]);
    }
    Accounts::restore(&bytes).unwrap()
}

/// A venue of `core/batch`.
struct Machine {
    ledger: Ledger,
    accounts: Accounts,
    batch: Batch,
    threads: NonZero<usize>,
}

impl Machine {
    fn new(venue: &Venue, threads: usize) -> Self {
        let (mut ledger, mut accounts) = (Ledger::new(), Accounts::new());
        for _ in 0..venue.account_count {
            ledger.create_account().unwrap();
        }
        for _ in 0..venue.asset_count {
            ledger.create_asset().unwrap();
        }
        for ((account, asset), holding) in &venue.holdings {
            ledger.deposit(*account, *asset, amount(holding.available)).unwrap();
        }
        for (account, key) in &venue.keys {
            accounts.set_key(*account, *key).unwrap();
        }
        for (asset, account) in &venue.issuers {
            accounts.set_issuer(*asset, *account).unwrap();
        }
        for account in &venue.suspended {
            accounts.suspend(*account);
        }
        let accounts = with_last(&accounts, venue);
        let (market, assets, rules) = (venue.market, venue.assets.clone(), venue.rules);
        let settings =
            BatchSettings { market, assets, currencies: None, rules, quality: QualityMax::NONE, account_fee: venue.account_fee };
        let batch = Batch::new(settings).unwrap();
        Self { ledger, accounts, batch, threads: NonZero::new(threads).unwrap() }
    }

    fn close(&mut self, transactions: &[BatchTransaction], intake: BatchIntake) -> Closed {
        self.batch.close(&mut self.ledger, &mut self.accounts, transactions, intake, self.threads).unwrap()
    }

    fn clear(&mut self, block: &ProposedClearing) -> Result<Cleared, BlockRejected> {
        self.batch.clear(&mut self.ledger, &mut self.accounts, block, self.threads)
    }

    /// All of the state, as bytes.
    fn bytes(&self) -> [Vec<u8>; 3] {
        let mut all = [const { Vec::new() }; 3];
        self.ledger.snapshot(&mut |bytes| all[0].extend_from_slice(bytes));
        self.accounts.snapshot(&mut |bytes| all[1].extend_from_slice(bytes));
        self.batch.snapshot(&mut |bytes| all[2].extend_from_slice(bytes));
        all
    }

    /// From its bytes alone.
    fn restore(&mut self) {
        let [ledger, accounts, batch] = self.bytes();
        self.ledger = Ledger::restore(&ledger).unwrap();
        self.accounts = Accounts::restore(&accounts).unwrap();
        self.batch = Batch::restore(&batch).unwrap();
        assert_eq!(self.bytes(), [ledger, accounts, batch]);
    }

    /// A clearing that is rejected, and leaves no trace.
    fn reject(&mut self, block: &ProposedClearing, at: &str) -> BlockRejected {
        let before = self.bytes();
        let rejected = self.clear(block).err().unwrap_or_else(|| panic!("{at}: accepted {block:?}"));
        assert!(before == self.bytes(), "{at}: a block that was rejected ({rejected}) left a trace");
        rejected
    }

    fn assert_is(&self, venue: &Venue, at: &str) {
        self.ledger.check_invariants();
        assert_eq!(self.ledger.account_count(), venue.account_count, "{at}");
        for asset in (0..venue.asset_count).map(AssetId) {
            assert_eq!(self.ledger.supply(asset), Some(amount(venue.supply_of(asset))), "{at}: supply of asset {asset}");
            let fees = venue.fees.get(&asset).copied().unwrap_or_default();
            assert_eq!(self.ledger.fees(asset), Some(amount(fees)), "{at}: fees of asset {asset}");
            for account in (0..venue.account_count).map(AccountId) {
                let (holding, balance) = (venue.holding(account, asset), self.ledger.balance(account, asset).unwrap());
                let expected = (amount(holding.available), amount(holding.reserved));
                assert_eq!((balance.available, balance.reserved), expected, "{at}: account {account}, asset {asset}");
            }
        }
        for account in (0..venue.account_count).map(AccountId) {
            let last = venue.last.get(&account).copied().unwrap_or(0);
            assert_eq!(self.accounts.last(account).0, last, "{at}: last number of account {account}");
            assert_eq!(self.accounts.key(account), venue.keys.get(&account).copied(), "{at}: key of account {account}");
        }
        assert!(
            venue.keys.iter().all(|(account, key)| self.accounts.account_of(key) == Some(*account)),
            "{at}: an account of a key"
        );
        let books = self.batch.market().books().iter();
        let offers = books.flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), *offer)));
        let found: Vec<_> = offers.map(|(pair, offer)| (pair, offer.key(), offer.amount(), offer.stated())).collect();
        let expected: Vec<_> =
            venue.offers.iter().map(|((pair, key), standing)| (*pair, *key, standing.amount, standing.stated)).collect();
        assert_eq!(found, expected, "{at}: offers");
    }
}

/// Closes the batch on all machines, on the second in another order, and compares what is kept.
fn close(
    c: &mut Choices<'_>,
    venue: &mut Venue,
    machines: &mut [Machine; 3],
    batch: &[BatchTransaction],
    at: &str,
) -> (Vec<BatchTransaction>, Closed) {
    let is_filter = c.below(3) > 0;
    let (intake, of_batch) =
        if is_filter { (Intake::Filter, BatchIntake::Filter) } else { (Intake::Reserve, BatchIntake::Reserve) };
    let verdict = venue.judge(batch, intake);
    let kept: Vec<_> = verdict.kept.iter().map(|&place| batch[place]).collect();
    let closed = machines[0].close(batch, of_batch);
    let dropped: Vec<usize> = closed.dropped.iter().map(|(place, _)| *place as usize).collect();
    assert_eq!(
        dropped,
        verdict.dropped.keys().copied().collect::<Vec<_>>(),
        "{at}, {intake:?}: {closed:?}, {verdict:?}, {batch:#?}"
    );
    assert_eq!(closed.kept_count as usize, kept.len(), "{at}");
    for (place, reason) in &closed.dropped {
        let faults = &verdict.dropped[&(*place as usize)];
        let is_there = fault_of(*reason).is_some_and(|fault| faults.contains(&fault));
        assert!(is_there, "{at}, {intake:?}: {:?} is dropped for {reason:?}, and has {faults:?}", batch[*place as usize]);
    }
    // In another order, and without what is dropped.
    let mut order: Vec<usize> = (0..batch.len()).collect();
    if is_filter {
        (1..order.len()).rev().for_each(|end| order.swap(end, c.below(end as u64 + 1) as usize));
    }
    let turned: Vec<_> = order.iter().map(|&place| batch[place]).collect();
    let of_turned = machines[1].close(&turned, of_batch);
    assert_eq!(of_turned.batch_hash, closed.batch_hash, "{at}: a batch's hash depends on the order of its transactions");
    let mut places: Vec<_> = of_turned.dropped.iter().map(|(place, reason)| (order[*place as usize] as u32, *reason)).collect();
    places.sort();
    assert_eq!(places, closed.dropped, "{at}: what is dropped, or why, depends on the order of the transactions");
    let of_kept = machines[2].close(&kept, BatchIntake::Filter);
    assert_eq!((of_kept.batch_hash, of_kept.dropped), (closed.batch_hash, Vec::new()), "{at}: the filter drops of what is kept");

    venue.close(&kept, &closed.batch_hash);
    machines.iter().for_each(|machine| machine.assert_is(venue, &format!("{at}, closed")));
    (kept, closed)
}

/// What goes on between a batch's end and its clearing: money comes and goes, and the operator makes accounts and says what they cost.
fn meanwhile(c: &mut Choices<'_>, venue: &mut Venue, machines: &mut [Machine; 3]) {
    if c.one_in(2) {
        venue.account_fee = account_fee(c);
        machines.iter_mut().for_each(|machine| machine.batch.set_account_fee(venue.account_fee));
    }
    if c.one_in(4) {
        venue.account_count += 1;
        machines.iter_mut().for_each(|machine| assert!(machine.ledger.create_account().is_ok()));
    }
    let (account, asset) = (AccountId(c.below(6) as u32), AssetId(c.below(5) as u32));
    let units = venue.holding(account, asset).available / u128::from(c.within(1, 3));
    let holding = venue.holdings.entry((account, asset)).or_default();
    let supply = venue.supply.entry(asset).or_default();
    if c.one_in(2) && *supply + 5 < 1 << 63 {
        holding.available += 5;
        *supply += 5;
        machines.iter_mut().for_each(|machine| machine.ledger.deposit(account, asset, amount(5)).unwrap());
    } else {
        holding.available -= units;
        *supply -= units;
        machines.iter_mut().for_each(|machine| machine.ledger.withdraw(account, asset, amount(units)).unwrap());
    }
}

fn any_proposal(c: &mut Choices<'_>, venue: &Venue, machine: &Machine) -> Proposal {
    let proposed = proposal(c, venue);
    if c.one_in(4) {
        return proposed;
    }
    let settings = Settings::new(venue.rules.commission, venue.rules.mu);
    walras_batch_solver::clear(machine.batch.market(), &settings).map_or(proposed, |cleared| cleared.proposal)
}

/// Everything that a proposer can say of a block's place and hashes and that is not so.
fn wrong_places(machine: &Machine) -> Vec<(BlockPlace, BlockRejected)> {
    let right = BlockPlace {
        number: machine.batch.number(),
        parent: *machine.batch.parent(),
        batch_hash: *machine.batch.closed().expect("a batch is closed"),
    };
    let turned = |mut hash: [u8; 32]| {
        hash[31] ^= 1;
        hash
    };
    let found = right.number + 1;
    vec![
        (BlockPlace { number: found, ..right }, BlockRejected::Number { expected: right.number, found }),
        (BlockPlace { parent: turned(right.parent), ..right }, BlockRejected::Parent),
        (BlockPlace { batch_hash: turned(right.batch_hash), ..right }, BlockRejected::Batch),
    ]
}

/// Proposes until the closed batch is cleared.
fn clear(c: &mut Choices<'_>, venue: &mut Venue, machines: &mut [Machine; 3], at: &str, count: &mut impl FnMut(String)) {
    for attempt in 0.. {
        let nothing = Proposal { prices: vec![None; venue.assets.len()], ..Proposal::default() };
        let mut proposed = if attempt < 3 { any_proposal(c, venue, &machines[0]) } else { nothing };
        let mut marginal = venue.marginal(&proposed).unwrap_or_default();
        if attempt < 3 && c.one_in(2) {
            lie(c, &mut proposed, &mut marginal);
        }
        let certificate = Certificate::find(machines[0].batch.market(), &proposed, &venue.rules);
        let block = ProposedClearing { proposal: proposed, marginal, certificate, ..ProposedClearing::default() };
        match venue.clear(&block.proposal, &block.marginal) {
            Err(objections) => {
                for machine in machines.iter_mut() {
                    let rejected = machine.reject(&block, at);
                    let objection = match rejected {
                        BlockRejected::Clearing(rejected) => Objection::Clearing(rejected.number()),
                        BlockRejected::Marginal(_) => Objection::Marginal,
                        BlockRejected::Quality(QualityError::Unpriced(_)) => Objection::Unpriced,
                        other => panic!("{at}: {other}, and {objections:?}"),
                    };
                    assert!(objections.contains(&objection), "{at}: {rejected}, and {objections:?}");
                    count(format!("rejected {}", rejected.code()));
                }
            }
            Ok(given) => {
                count(format!("cleared, trades {}", !block.proposal.trades.is_empty()));
                accept(c, venue, machines, block, &given, at);
                return;
            }
        }
    }
}

fn accept(
    c: &mut Choices<'_>,
    venue: &Venue,
    machines: &mut [Machine; 3],
    mut block: ProposedClearing,
    given: &[(AccountId, PublicKey)],
    at: &str,
) {
    let places = wrong_places(&machines[0]);
    for (place, expected) in places {
        let elsewhere = ProposedClearing { place: Some(place), ..block.clone() };
        assert_eq!(machines[0].reject(&elsewhere, at), expected, "{at}");
    }
    let [first, others @ ..] = machines;
    let cleared = first.clear(&block).unwrap_or_else(|rejected| panic!("{at}: {rejected}; the judge clears {block:?}"));
    first.assert_is(venue, &format!("{at}, cleared"));
    assert_eq!([&cleared.created[..], &cleared.new_keys].concat(), given, "{at}");
    let marginal: Vec<(Pair, OfferKey)> = cleared.header.trades.iter().map(|(trade, key)| (trade.pair, *key)).collect();
    assert_eq!(marginal, block.marginal, "{at}");
    for machine in others {
        if c.one_in(3) {
            machine.restore();
        }
        // A validator that is told other hashes than there are rejects the block, and accepts it when it is told the right ones.
        let turned = |hash: fn(&mut Roots) -> &mut [u8; 32]| {
            let mut roots = cleared.roots;
            hash(&mut roots)[0] ^= 1;
            roots
        };
        let wrong: [(Roots, BlockRejected); 3] = [
            (turned(|roots| &mut roots.accounts), BlockRejected::AccountsRoot),
            (turned(|roots| &mut roots.offers), BlockRejected::OffersRoot),
            (turned(|roots| &mut roots.state), BlockRejected::StateRoot),
        ];
        for (roots, expected) in wrong {
            block.expected = Some(roots);
            assert_eq!(machine.reject(&block, at), expected, "{at}");
        }
        block.expected = Some(cleared.roots);
        let again = machine.clear(&block).unwrap_or_else(|rejected| panic!("{at}: {rejected}; another machine clears {block:?}"));
        machine.assert_is(venue, &format!("{at}, cleared again"));
        assert_eq!((&again.header, again.roots, again.touched), (&cleared.header, cleared.roots, cleared.touched), "{at}");
        assert_eq!((&again.created, &again.traded), (&cleared.created, &cleared.traded), "{at}");
    }
    assert!(machines.iter().all(|machine| machine.bytes() == machines[0].bytes()), "{at}: machines differ");
}

#[test]
fn blocks_are_what_the_judge_says() {
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    let mut count = |name: String| *reached.entry(name).or_default() += 1;
    for seed in 0..SEEDS {
        let mut c = Choices::of_seed(seed);
        let lower_bounds = if c.one_in(4) { LowerBounds::Required } else { LowerBounds::BestEffort };
        let mut venue = venue(&mut c, lower_bounds);
        let mut machines = [1, 2, 8].map(|threads| Machine::new(&venue, threads));
        for number in 0..BLOCKS {
            let at = format!("seed {seed}, block {number}");
            let batch = transactions(&mut c, &venue, TRANSACTIONS);
            let (kept, _) = close(&mut c, &mut venue, &mut machines, &batch, &at);
            count(format!("kept at least {}", kept.len() / 10 * 10));
            if venue.account_fee.is_some() && kept.iter().any(|kept| matches!(kept.operation, BatchOperation::CreateAccount(_))) {
                count("paid for an account".to_owned());
            }
            meanwhile(&mut c, &mut venue, &mut machines);
            clear(&mut c, &mut venue, &mut machines, &at, &mut count);
            venue.check_invariants();
        }
    }
    println!("{reached:#?}");
    for name in [
        "kept at least 30",
        "paid for an account",
        "cleared, trades true",
        "rejected 104",
        "rejected 7",
        "rejected 8",
        "rejected 9",
        "rejected 18",
    ] {
        assert!(reached.contains_key(name), "no random block has come to {name}");
    }
}

/// A venue of a workload's accounts, each with its endowment.
fn endowed(workload: &Workload) -> Venue {
    let (commission, mu) = (Commission::new(15).unwrap(), Mu::new(10).unwrap());
    let rules = Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort };
    let Model { assets, account_count, .. } = workload.model();
    let mut venue = Venue::new(BatchMarketId(0), assets.len() as u32, assets.clone(), rules);
    venue.account_count = *account_count;
    let units = u128::from(workload.endowment().get());
    for asset in assets {
        venue.supply.insert(*asset, units * u128::from(*account_count));
        for account in (0..*account_count).map(AccountId) {
            venue.holdings.insert((account, *asset), Holding { available: units, reserved: 0 });
        }
    }
    venue
}

#[test]
fn made_blocks_are_what_the_judge_says() {
    let faults = Faults {
        repeated: 3,
        reused_numbers: 3,
        overdrafts: 3,
        double_cancels: 3,
        empty_cancels: 3,
        twin_keys: 3,
        account_count: Some(10),
    };
    let model = Model { cancel_after_blocks: (1, 3), ..Model::standard(6, 150, 500) };
    for (faults, kept_least) in [(Faults::default(), 500), (faults, 400)] {
        let mut workload = Workload::new(Model { faults, ..model.clone() }, 1);
        let mut venue = endowed(&workload);
        let mut machines = [1, 2, 8].map(|threads| Machine::new(&venue, threads));
        let mut c = Choices::of_seed(1);
        for number in 0..6 {
            let at = format!("made block {number}");
            let batch = workload.block(stands_in(machines[0].batch.market())).to_vec();
            let (kept, closed) = close(&mut c, &mut venue, &mut machines, &batch, &at);
            assert!(kept.len() >= kept_least, "{at}: only {} of {} are kept", kept.len(), batch.len());
            workload.closed(&closed.batch_hash, closed.dropped.iter().map(|(place, _)| *place as usize));
            clear(&mut c, &mut venue, &mut machines, &at, &mut |_| {});
            venue.check_invariants();
        }
    }
}

#[test]
fn the_bounds_of_a_batch_are_what_the_judge_says() {
    let workload = Workload::new(Model::standard(2, 3, 1), 1);
    let endowment = workload.endowment().get();
    let issuer = AccountId(0);
    let gold = AssetId(0);
    let sent = |account, sequence, operation| BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation);
    let of = |units| IssuedAmount { asset: gold, amount: Amount::new(units).unwrap() };
    let issue = |units| BatchOperation::Issue(of(units));
    let burn = |units| BatchOperation::Burn(of(units));
    let pay = |to, units| BatchOperation::Payment(Payment { to: AccountId(to), asset: gold, amount: Amount::new(units).unwrap() });
    let key = |name| BatchOperation::CreateAccount(PublicKey([name; 32]));
    let room = AMOUNT_MAX - 3 * endowment;
    let batches = [
        vec![sent(0, 1, issue(room))],
        vec![sent(0, 1, issue(room + 1))],
        vec![sent(0, 1, issue(room)), sent(0, 2, issue(1)), sent(1, 1, pay(2, 1))],
        // What is burnt makes no room before the block ends, and what is issued cannot be burnt.
        vec![sent(0, 1, burn(1)), sent(0, 2, issue(room + 1))],
        vec![sent(0, 1, issue(1)), sent(0, 2, burn(endowment + 1))],
        vec![sent(0, 1, burn(endowment)), sent(1, 1, issue(room))],
        vec![sent(0, 1, key(1)), sent(0, 2, key(1)), sent(1, 1, key(2))],
        vec![sent(0, 1, key(1)), sent(1, 1, key(1)), sent(1, 2, key(2)), sent(2, 1, key(2)), sent(2, 2, pay(0, 1))],
        vec![sent(0, 64, key(1)), sent(1, 65, key(2)), sent(2, 0, key(3))],
        vec![sent(0, 1, pay(1, endowment)), sent(1, 1, pay(2, endowment)), sent(1, 2, pay(0, 1))],
        (1..=64).map(|sequence| sent(0, sequence, pay(1, endowment / 64))).collect(),
        (1..=64).map(|sequence| sent(0, sequence, pay(1, endowment / 64 + 1))).collect(),
        Vec::new(),
    ];
    // Each a few times: which intake is taken is drawn.
    for (number, seed) in (0..batches.len()).flat_map(|number| (0..6).map(move |seed| (number, seed))) {
        let mut venue = endowed(&workload);
        venue.issuers.insert(gold, issuer);
        let mut machines = [1, 2, 8].map(|threads| Machine::new(&venue, threads));
        let (mut c, at) = (Choices::of_seed(seed), format!("batch {number}"));
        close(&mut c, &mut venue, &mut machines, &batches[number], &at);
        clear(&mut c, &mut venue, &mut machines, &at, &mut |_| {});
        venue.check_invariants();
    }
}
