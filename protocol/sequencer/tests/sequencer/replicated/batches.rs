//! A batch market in a cluster: its leader dies after a batch was closed and before it was cleared, and the next one clears it.

use walras_sequencer::{SolveJob, Solved};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, Commission, CreateOffer,
    Intake, LowerBounds, Mu, PublicKey, QualityMax, Symbol, TimeNs, TransactionSeq, TransferId,
};
use walras_wire::batch::{BlockProposal, Certificate, OfferKeyWire, PairTradeWire, SignedTransaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchCommand, BatchMarketCommand, BatchMarketSpec, Command, SetAccountKey,
    SetBatchPhase, SubmitTransaction, Transfer, VenueCommand,
};

use super::{MS, REPLICAS, World};

const MARKET: BatchMarketId = BatchMarketId(0);

fn setup() -> Vec<Command> {
    let amount = |units| Amount::new(units).unwrap();
    let mut commands = Vec::new();
    for id in 0..2 {
        let symbol = Symbol::new(&format!("A{id}")).unwrap();
        commands.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(id), symbol, decimals: 0 })));
    }
    for id in 0..2 {
        let account = AccountId(id);
        commands.push(Command::Account(AccountCommand::Create(account)));
        commands.push(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: PublicKey([id as u8 + 1; 32]) })));
        let transfer = Transfer { account, asset: AssetId(id), amount: amount(1_000), transfer_id: TransferId(1) };
        commands.push(Command::Account(AccountCommand::Deposit(transfer)));
    }
    commands.push(Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
        market: MARKET,
        symbol: Symbol::new("MAIN").unwrap(),
        commission: Commission::new(15).unwrap(),
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::NONE,
        intake: Intake::Filter,
        interval_ns: 100 * MS,
        transactions_max: 10,
        domain: [3; 32],
    })));
    commands.extend(
        [0, 1].map(|id| Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset: AssetId(id) }))),
    );
    commands.push(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open })));
    for id in 0..2 {
        let (sell, buy) = (AssetId(id), AssetId(1 - id));
        let offer = CreateOffer { market: MARKET, sell, buy, amount: amount(100), limit: BatchPrice::ZERO };
        let operation = BatchOperation::CreateOffer(offer);
        let transaction = BatchTransaction::new(AccountId(id), TransactionSeq(1), operation);
        let signed = SignedTransaction { transaction, signature: [0; 64] };
        commands.push(Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).unwrap())));
    }
    commands
}

/// A block of these trades; nothing else of it is found out.
fn block(job: &SolveJob, trades: Vec<PairTradeWire>) -> Solved {
    let (number, parent, batch_hash) = (job.place.number, job.place.parent, job.place.batch_hash);
    let prices = vec![Some(BatchPrice::ONE); 2];
    let (market, pools, roots) = (job.market, Vec::new(), None);
    // So few units that nothing is missing beyond what whole units can tell.
    let certificate = Certificate { gap_ppb: 0, unserved_ppb: 0, potentials: vec![0; 2] };
    let proposal = BlockProposal { market, number, parent, batch_hash, prices, trades, pools, certificate, roots };
    Solved { market, block: number, proposal: Some(Box::new(proposal)) }
}

impl World {
    /// Time passes and everything arrives, until something is so.
    pub(super) fn run_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..4_000 {
            if is_so(self) {
                return;
            }
            self.now_ns += MS;
            let now_ns = self.now_ns;
            for n in 0..REPLICAS {
                self.with(n, |sequencer, around| {
                    sequencer.on_timer(now_ns, around)?;
                    sequencer.drive_batches(now_ns, TimeNs(now_ns), around);
                    sequencer.propose(now_ns, around)
                });
                self.sync(n);
            }
            for message in std::mem::take(&mut self.network) {
                self.deliver(message);
            }
        }
        panic!("it did not come to this: {what}");
    }

    pub(super) fn leader(&self) -> Option<usize> {
        (0..REPLICAS).find(|n| self.nodes[*n].sequencer.as_ref().is_some_and(|sequencer| sequencer.is_leading()))
    }

    /// The job that the leader has a solver for.
    fn job(&self, but: &[usize]) -> Option<(usize, SolveJob)> {
        let leader = self.leader().filter(|n| !but.contains(n))?;
        Some((leader, self.nodes[leader].around.jobs.last()?.clone()))
    }

    fn solved(&mut self, n: usize, solved: Solved) {
        let now_ns = self.now_ns;
        self.with(n, |sequencer, _| {
            sequencer.on_solved(now_ns, TimeNs(now_ns), solved);
            Ok(())
        });
    }
}

#[test]
fn the_next_leader_clears_what_the_one_before_it_closed() {
    let mut world = World::new(11, None);
    (0..REPLICAS).for_each(|n| world.start(n));
    world.run_until("somebody leads", |world| world.leader().is_some());
    let first = world.leader().unwrap();
    for command in setup() {
        world.with(first, |sequencer, _| {
            assert!(sequencer.submit(TimeNs(5), None, &command, None).is_ok());
            Ok(())
        });
    }
    world.run_until("the batch is closed", |world| world.job(&[]).is_some());
    let (leader, closed) = world.job(&[]).unwrap();
    assert_eq!((leader, closed.place.number, closed.attempt), (first, 1, 0));
    world.crash(first);
    world.run_until("another leader has it solved", |world| world.job(&[first]).is_some());
    let (second, job) = world.job(&[first]).unwrap();
    assert_eq!(job.place, closed.place, "the same batch");
    assert_eq!(world.nodes[second].around.jobs.len(), 1, "once");

    // A clearing that does not hold is refused by everybody, and the solver is asked again.
    let lie = OfferKeyWire { limit: BatchPrice::ONE, tie: 0, id: 0 };
    let (sold, none) = (Amount::new(5_000).unwrap(), Amount::ZERO);
    let trade = PairTradeWire { sell: 0, buy: 1, sold, bought_by_buy_offers: none, marginal: Some(lie) };
    world.solved(second, block(&job, vec![trade]));
    world.run_until("it is asked again", |world| world.job(&[first]).is_some_and(|(_, job)| job.attempt == 1));
    let (_, again) = world.job(&[first]).unwrap();
    assert_eq!(again.place, closed.place);
    world.start(first);
    world.solved(second, block(&again, Vec::new()));
    world.run_until("all have the block", |world| {
        let next = |n: usize| {
            let engine = world.nodes[n].sequencer.as_ref()?.engine();
            let view = engine.batch_market(MARKET)?;
            view.closed.is_none().then_some((view.next_block, engine.last_applied(), engine.state_hash()))
        };
        let states: Vec<_> = (0..REPLICAS).map(next).collect();
        states.iter().all(|state| state.as_ref().is_some_and(|(block, ..)| *block == 2))
            && states.windows(2).all(|two| two[0] == two[1])
    });
    // What was asked for before is of no use any more.
    world.solved(second, block(&closed, Vec::new()));
    assert!(world.nodes[second].sequencer.as_ref().is_some_and(|sequencer| sequencer.waiting() == 0));
}
