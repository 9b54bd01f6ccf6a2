//! Random trading at two to four shards, with a transfer relay on a path that loses, doubles, reorders and delays, and that forgets
//! all it knows whenever it likes. After every step the sum over all shards is what came in; with an honest transfer relay all
//! arrives in the end.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use walras_engine::{Engine, TransferOutcome, TransferStanding, compare_numbers};
use walras_types::*;
use walras_wire::*;

use crate::rules::carried;
use crate::venue::{lots, ticks, units};
use crate::world::{ACCOUNTS, ASSETS, World, shard};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Shard, account, instrument, name, side, price, size.
    Order(usize, u32, u32, u64, bool, i64, u64),
    Cancel(usize, u32),
    /// Shard, account, asset, amount, in or out of the venue.
    Cash(usize, u32, u32, u64, bool),
    CollectFees(usize, u32, u32),
    /// From, to, account, asset, amount. Now and then an account that the others do not have.
    Send(usize, usize, u32, u32, u64),
    /// The relay looks at what is in transit from one to the other, and sends all of it.
    Look(usize, usize),
    /// A message on its way arrives; it stays on its way, too, if it is to come twice.
    Arrive(usize, bool),
    Lose(usize),
    Restart(usize),
    /// A shard begins anew.
    Doubt(usize),
    /// A shard holds another one's numbers against its own.
    Compare(usize, usize),
    Tick(u64),
}

/// What is on its way: a transfer, or the word on what became of some, as the receiver's state said when it was asked.
#[derive(Clone, Copy, Debug)]
enum Message {
    Carried(TransferIn),
    /// From whom, by whom, the first and the last number, and what came of all of them.
    Answered(ShardId, ShardId, TransferSeq, TransferSeq, TransferOutcome),
}

/// Who knows nothing but what is on its way.
struct TransferRelay {
    ways: Vec<Message>,
}

impl TransferRelay {
    /// What a shard sent since it began anew waits until it has compared its numbers.
    fn look(&mut self, world: &World, from: usize, to: usize) {
        if world.shards[from].transfer_standing(shard(to)) != Some(TransferStanding::Agreed) {
            return;
        }
        let found = world.shards[from].transfers_in_transit(shard(to)).map(|waits| Message::Carried(carried(from, &waits)));
        self.ways.extend(found);
    }

    /// Delivers a message to where it goes. What a shard refuses is dropped: the next look finds it again.
    fn arrive(&mut self, world: &mut World, message: Message) {
        match message {
            Message::Carried(transfer) => {
                let (from, by) = (transfer.from_shard, transfer.to_shard);
                world.apply(usize::from(by.0), Command::Shard(ShardCommand::TransferIn(transfer)));
                // Asked afresh, whether it was taken just now or before.
                let receiver = &world.shards[usize::from(by.0)];
                if let Some(outcome) = receiver.transfer_outcome(from, transfer.transfer_seq) {
                    let last = same_outcome(receiver, from, transfer.transfer_seq, outcome);
                    self.ways.push(Message::Answered(from, by, transfer.transfer_seq, last, outcome));
                }
            }
            Message::Answered(from, by, first, last, outcome) => {
                let command = match outcome {
                    TransferOutcome::Taken => ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: by, first, last }),
                    TransferOutcome::Refused => ShardCommand::ReturnTransfer(TransferPlace { shard: by, transfer_seq: first }),
                };
                world.apply(usize::from(from.0), Command::Shard(command));
            }
        }
    }
}

/// The last number from `first` on of which the same came.
fn same_outcome(receiver: &Engine, from: ShardId, first: TransferSeq, outcome: TransferOutcome) -> TransferSeq {
    let mut last = first;
    while receiver.transfer_outcome(from, last.next()) == Some(outcome) {
        last = last.next();
    }
    last
}

fn step() -> impl Strategy<Value = Step> {
    let (at, account, asset) = (|| 0..4_usize, || prop_oneof![12 => 0..ACCOUNTS, 1 => Just(ACCOUNTS)], || 0..3_u32);
    // Account 4 is at shard 0 alone.
    let sender = || prop_oneof![4 => 0..ACCOUNTS, 1 => Just(ACCOUNTS)];
    prop_oneof![
        10 => (at(), 0..ACCOUNTS, 0..3_u32, 0..5_u64, any::<bool>(), 97..104_i64, 1..6_u64)
            .prop_map(|(at, account, i, name, buys, price, size)| Step::Order(at, account, i, name, buys, price, size)),
        1 => (at(), 0..ACCOUNTS).prop_map(|(at, account)| Step::Cancel(at, account)),
        2 => (at(), account(), asset(), 0..400_u64, any::<bool>()).prop_map(|(at, a, s, n, into)| Step::Cash(at, a, s, n, into)),
        1 => (at(), asset(), 0..ACCOUNTS).prop_map(|(at, asset, account)| Step::CollectFees(at, asset, account)),
        8 => (at(), at(), sender(), asset(), prop_oneof![8 => 1..300_u64, 1 => Just(0)]).prop_map(|(from, to, a, s, n)| Step::Send(from, to, a, s, n)),
        6 => (at(), at()).prop_map(|(from, to)| Step::Look(from, to)),
        14 => (any::<usize>(), prop::bool::weighted(0.3)).prop_map(|(which, twice)| Step::Arrive(which, twice)),
        2 => any::<usize>().prop_map(Step::Lose),
        2 => at().prop_map(Step::Restart),
        1 => at().prop_map(Step::Doubt),
        6 => (at(), at()).prop_map(|(own, other)| Step::Compare(own, other)),
        1 => (0..50_u64).prop_map(Step::Tick),
    ]
}

/// What happened, and a name for the next deposit or transfer.
struct Run {
    world: World,
    relay: TransferRelay,
    names: u64,
}

impl Run {
    /// Shard 0 has an account more than the others, with funds.
    fn new(count: usize) -> Self {
        let mut world = World::new(count, 2_000);
        let stranger = AccountId(ACCOUNTS);
        world.take(0, Command::Account(AccountCommand::Create(stranger)));
        for asset in ASSETS {
            let transfer_id = TransferId(u64::from(asset.0));
            world.take(
                0,
                Command::Account(AccountCommand::Deposit(Transfer { account: stranger, asset, amount: units(5_000), transfer_id })),
            );
        }
        let mut run = Self { world, relay: TransferRelay { ways: Vec::new() }, names: 100 };
        run.compare_all();
        run
    }

    /// Every shard asks every other one.
    fn compare_all(&mut self) {
        for (own, other) in pairs(self.world.shards.len()) {
            let compared = comparison(&self.world, own, other);
            self.world.take(own, compared);
        }
    }

    fn step(&mut self, step: Step) {
        let Self { world, relay, names } = self;
        let count = world.shards.len();
        *names += 1;
        match step {
            Step::Order(at, account, instrument, name, buys, price, size) => {
                let terms = OrderTerms::limit(if buys { Side::Buy } else { Side::Sell }, ticks(price), lots(size));
                let (account, client_order_id) = (AccountId(account), ClientOrderId(name));
                // Mostly where the instrument is: else it is refused.
                let at = if at == 0 { 0 } else { instrument as usize };
                let instrument = InstrumentId(instrument);
                world
                    .apply(at % count, Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })));
            }
            Step::Cancel(at, account) => {
                let cancel = MassCancel { account: AccountId(account), instrument: None, side: None };
                world.apply(at % count, Command::Order(OrderCommand::MassCancel(cancel)));
            }
            Step::Cash(at, account, asset, amount, into) => {
                let transfer_id = TransferId(*names);
                let transfer = Transfer { account: AccountId(account), asset: AssetId(asset), amount: units(amount), transfer_id };
                world.apply(
                    at % count,
                    if into {
                        Command::Account(AccountCommand::Deposit(transfer))
                    } else {
                        Command::Account(AccountCommand::Withdraw(transfer))
                    },
                );
            }
            Step::CollectFees(at, asset, account) => {
                let collect = CollectFees { asset: AssetId(asset), account: AccountId(account) };
                world.apply(at % count, Command::Account(AccountCommand::CollectFees(collect)));
            }
            Step::Send(from, to, account, asset, amount) => {
                let transfer = TransferOut {
                    account: AccountId(account),
                    asset: AssetId(asset),
                    amount: units(amount),
                    to_shard: shard(to),
                    client_transfer_id: ClientTransferId(*names),
                };
                world.apply(from % count, Command::Shard(ShardCommand::TransferOut(transfer)));
            }
            Step::Look(from, to) => relay.look(world, from % count, to % count),
            Step::Arrive(..) | Step::Lose(_) if relay.ways.is_empty() => {}
            Step::Arrive(which, twice) => {
                let at = which % relay.ways.len();
                let message = relay.ways[at];
                if !twice {
                    relay.ways.swap_remove(at);
                }
                relay.arrive(world, message);
            }
            Step::Lose(which) => {
                let at = which % relay.ways.len();
                relay.ways.swap_remove(at);
            }
            Step::Restart(at) => world.restart(at % count),
            Step::Doubt(at) => drop(world.take(at % count, Command::Shard(ShardCommand::DoubtTransfers))),
            Step::Compare(own, other) if own % count == other % count => {}
            Step::Compare(own, other) => drop(world.take(own % count, comparison(world, own % count, other % count))),
            Step::Tick(by) => world.now = TimeNs(world.now.0 + by),
        }
    }

    /// An honest relay, which knows the two states only, delivers everything.
    fn finish(&mut self) {
        self.relay.ways.clear();
        self.compare_all();
        let count = self.world.shards.len();
        for from in 0..count {
            for to in 0..count {
                let most = self.world.shards[from].transfers_in_transit_count(shard(to));
                for _ in 0..most {
                    let Some(oldest) = self.world.shards[from].transfers_in_transit(shard(to)).next() else { break };
                    self.relay.arrive(&mut self.world, Message::Carried(carried(from, &oldest)));
                    let answered = self.relay.ways.pop().expect("what is next is taken or refused");
                    self.relay.arrive(&mut self.world, answered);
                }
            }
        }
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |own| (0..count).filter(move |other| *other != own).map(move |other| (own, other)))
}

fn numbers(world: &World, at: usize, of: usize) -> TransferNumbers {
    world.shards[at].transfer_numbers(shard(of)).unwrap()
}

/// What a shard finds that asks another one.
fn compare(world: &World, own: usize, other: usize) -> Result<(), SetBack> {
    let sent_before = world.shards[own].transfers_sent_before(shard(other)).unwrap();
    let own_numbers = numbers(world, own, other);
    compare_numbers(own_numbers, numbers(world, other, own), own_numbers, sent_before)
}

/// The same, for its log.
fn comparison(world: &World, own: usize, other: usize) -> Command {
    let (before, reported) = (numbers(world, own, other), numbers(world, other, own));
    Command::Shard(ShardCommand::CompareTransfers(CompareTransfers { shard: shard(other), before, reported }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_made(count in 2..5_usize, steps in vec(step(), 40..240)) {
        let mut run = Run::new(count);
        for step in steps {
            run.step(step);
            if let Err(difference) = run.world.check() {
                prop_assert!(false, "after {step:?}: {difference}");
            }
            for (own, other) in pairs(count) {
                prop_assert_eq!(compare(&run.world, own, other), Ok(()), "{} and {} after {:?}", own, other, step);
            }
        }
        run.finish();
        prop_assert_eq!(run.world.in_transit_count(), 0);
        run.world.check().unwrap();
        // With nothing in transit every shard answers for what it has.
        for asset in ASSETS {
            let supply: i128 = run.world.shards.iter().map(|engine| i128::from(engine.supply(asset).get())).sum();
            let issued: i128 = run.world.shards.iter().map(|engine| engine.issued_here(asset)).sum();
            prop_assert_eq!(supply, issued);
        }
    }
}

/// The property is worth what the runs reach.
#[test]
fn the_runs_reach_everything() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeMap::<String, u32>::new();
    for count in (2..5).cycle().take(30) {
        let mut run = Run::new(count);
        for step in vec(step(), 150..240).new_tree(&mut runner).unwrap().current() {
            run.step(step);
        }
        run.world.check().unwrap();
        for (name, times) in run.world.reached {
            *reached.entry(name).or_default() += times;
        }
    }
    let expected = "TransferSent TransferReceived TransferRefused TransfersConfirmed TransferReturned TransferTaken TransferNotNext \
                    TransfersDoubted TransfersCompared UnknownShard UnknownAccount InsufficientFunds InstrumentElsewhere AmountOutOfRange Traded";
    let missed: Vec<_> = expected.split_whitespace().filter(|name| reached.get(*name).is_none_or(|times| *times < 10)).collect();
    assert!(missed.is_empty(), "seldom or never: {missed:?}; {reached:#?}");
}

/// Behind a mark, numbers that are given again hide nothing, however many they are; and where two shards were found to contradict each other nothing
/// moves until they agree.
#[test]
fn what_is_sent_before_the_first_comparison_hides_nothing() {
    let mut run = Run::new(2);
    let old = run.world.snapshot(0);
    for name in 1..=3 {
        sent(&mut run, name, 0);
        let answered = carry_oldest(&mut run);
        run.relay.arrive(&mut run.world, answered);
    }
    let new = run.world.snapshot(0);
    run.world.restore(0, &old);
    run.world.take(0, Command::Shard(ShardCommand::DoubtTransfers));
    for name in 1..=5 {
        sent(&mut run, name, 0);
    }
    // Another leader, who knows nothing of the first.
    run.world.take(0, Command::Shard(ShardCommand::DoubtTransfers));
    let (next, known) = (TransferSeq(1), TransferSeq(4));
    let found = |run: &mut Run, own: usize, set_back: Option<SetBack>| {
        let compared = comparison(&run.world, own, 1 - own);
        let told = ShardEvent::TransfersCompared(TransfersCompared { shard: shard(1 - own), set_back });
        assert_eq!(run.world.take(own, compared), [Event::Shard(told)]);
    };
    found(&mut run, 0, Some(SetBack::OwnSent { next, known }));
    run.world.restart(0);
    let oldest = run.world.shards[0].transfers_in_transit(shard(1)).next().unwrap();
    let out = Command::Shard(ShardCommand::TransferOut(TransferOut { client_transfer_id: ClientTransferId(9), ..oldest.transfer }));
    assert_eq!(run.world.refused(0, out), RejectReason::TransfersStopped);
    for settled in [
        ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: shard(1), first: next, last: next }),
        ShardCommand::ReturnTransfer(TransferPlace { shard: shard(1), transfer_seq: next }),
        ShardCommand::TransferIn(TransferIn { from_shard: shard(1), to_shard: shard(0), ..carried(0, &oldest) }),
    ] {
        assert_eq!(run.world.refused(0, Command::Shard(settled)), RejectReason::TransfersStopped, "{settled:?}");
    }
    // A mark does not let it go on, nor does another comparison.
    run.world.take(0, Command::Shard(ShardCommand::DoubtTransfers));
    found(&mut run, 0, Some(SetBack::OwnSent { next, known }));
    // With the state that it acknowledged it does.
    run.world.restore(0, &new);
    run.world.take(0, Command::Shard(ShardCommand::DoubtTransfers));
    found(&mut run, 0, None);
    sent(&mut run, 9, 0);
    run.world.check().unwrap();
}

/// The other one says so too, and takes no less when the numbers were read long before they are compared.
#[test]
fn the_other_finds_it_too_and_late_numbers_find_nothing() {
    let mut run = Run::new(2);
    let early = comparison(&run.world, 1, 0);
    let old = run.world.snapshot(0);
    sent(&mut run, 1, 0);
    let answered = carry_oldest(&mut run);
    run.relay.arrive(&mut run.world, answered);
    run.world.take(1, early);
    assert_eq!(run.world.shards[1].transfer_standing(shard(0)), Some(TransferStanding::Agreed));
    run.world.restore(0, &old);
    let compared = comparison(&run.world, 1, 0);
    run.world.take(1, compared);
    let set_back = SetBack::OtherSent { next: TransferSeq(1), known: TransferSeq(2) };
    assert_eq!(run.world.shards[1].transfer_standing(shard(0)), Some(TransferStanding::Stopped(set_back)));
    // What was never so is no evidence.
    let never = TransferNumbers { oldest_out: TransferSeq(9), next_out: TransferSeq(9), next_in: TransferSeq(9) };
    let lie = CompareTransfers { shard: shard(0), before: never, reported: never };
    assert_eq!(run.world.refused(1, Command::Shard(ShardCommand::CompareTransfers(lie))), RejectReason::TransferNotNext);
    let unknown = CompareTransfers { shard: shard(7), ..lie };
    assert_eq!(run.world.refused(1, Command::Shard(ShardCommand::CompareTransfers(unknown))), RejectReason::UnknownShard);
}

fn sent(run: &mut Run, name: u64, account: u32) {
    let transfer = TransferOut {
        account: AccountId(account),
        asset: ASSETS[1],
        amount: units(10),
        to_shard: shard(1),
        client_transfer_id: ClientTransferId(name),
    };
    run.world.take(0, Command::Shard(ShardCommand::TransferOut(transfer)));
}

fn carry_oldest(run: &mut Run) -> Message {
    let oldest = run.world.shards[0].transfers_in_transit(shard(1)).next().unwrap();
    run.relay.arrive(&mut run.world, Message::Carried(carried(0, &oldest)));
    run.relay.ways.pop().unwrap()
}

/// The sums detect a relay that reports to the sender what the receiver never answered.
#[test]
fn a_transfer_that_is_confirmed_too_early_is_missed() {
    let mut run = Run::new(2);
    sent(&mut run, 1, 0);
    run.world.check().unwrap();
    let one = TransferSeq(1);
    run.relay.arrive(&mut run.world, Message::Answered(shard(0), shard(1), one, one, TransferOutcome::Taken));
    assert!(run.world.check().is_err());
}

#[test]
fn a_refused_transfer_that_is_confirmed_is_missed() {
    let mut run = Run::new(2);
    sent(&mut run, 1, ACCOUNTS);
    let Message::Answered(from, by, first, last, TransferOutcome::Refused) = carry_oldest(&mut run) else { panic!("refused") };
    run.world.check().unwrap();
    run.relay.arrive(&mut run.world, Message::Answered(from, by, first, last, TransferOutcome::Taken));
    assert!(run.world.check().is_err());
}

#[test]
fn a_taken_transfer_that_comes_back_is_found() {
    let mut run = Run::new(2);
    sent(&mut run, 1, 0);
    let Message::Answered(from, by, first, last, TransferOutcome::Taken) = carry_oldest(&mut run) else { panic!("taken") };
    run.relay.arrive(&mut run.world, Message::Answered(from, by, first, last, TransferOutcome::Refused));
    assert!(run.world.check().is_err());
}

/// The count finds a receiver that forgot a number which it had taken: the transfer is confirmed, and gone.
#[test]
fn a_receiver_that_forgets_is_found() {
    let mut run = Run::new(2);
    sent(&mut run, 1, 0);
    let before = run.world.snapshot(1);
    let answered = carry_oldest(&mut run);
    run.world.restore(1, &before);
    run.world.check().unwrap();
    run.relay.arrive(&mut run.world, answered);
    assert!(run.world.check().is_err(), "confirmed by a state that is no more");
    // And one that forgot what it sent sends it twice.
    let mut run = Run::new(2);
    let before = run.world.snapshot(0);
    sent(&mut run, 1, 0);
    carry_oldest(&mut run);
    run.world.restore(0, &before);
    assert!(run.world.check().is_err(), "the funds are at both");
}

/// Whoever was set back behind what the other knows is found by both of them, whichever direction it forgot; what nobody else knows of may be
/// forgotten.
#[test]
fn a_shard_that_was_set_back_is_found_by_both() {
    let seqs = |next: u64, known: u64| (TransferSeq(next), TransferSeq(known));
    // The sender, which had sent one before.
    let mut run = Run::new(2);
    sent(&mut run, 1, 0);
    let before = run.world.snapshot(0);
    sent(&mut run, 2, 0);
    let answered = carry_oldest(&mut run);
    run.relay.arrive(&mut run.world, answered);
    let unanswered = run.world.snapshot(0);
    let _lost = carry_oldest(&mut run);
    run.world.restore(0, &unanswered);
    assert_eq!([compare(&run.world, 0, 1), compare(&run.world, 1, 0)], [Ok(()); 2], "it sends the second again, which was taken");
    run.world.restore(0, &before);
    let (next, known) = seqs(2, 3);
    assert_eq!(compare(&run.world, 0, 1), Err(SetBack::OwnSent { next, known }));
    assert_eq!(compare(&run.world, 1, 0), Err(SetBack::OtherSent { next, known }));
    // The receiver.
    let mut run = Run::new(2);
    let before = run.world.snapshot(1);
    sent(&mut run, 1, 0);
    let answered = carry_oldest(&mut run);
    let taken = run.world.snapshot(1);
    run.world.restore(1, &before);
    assert_eq!([compare(&run.world, 0, 1), compare(&run.world, 1, 0)], [Ok(()); 2], "it is delivered again");
    run.world.restore(1, &taken);
    run.relay.arrive(&mut run.world, answered);
    run.world.restore(1, &before);
    let (next, known) = seqs(1, 2);
    assert_eq!(compare(&run.world, 0, 1), Err(SetBack::OtherTaken { next, known }));
    assert_eq!(compare(&run.world, 1, 0), Err(SetBack::OwnTaken { next, known }));
}
