//! A disk whose power fails at each single write and sync while batches are collected, closed and cleared: what was acknowledged is
//! there again, hashes and blocks are those of a run that nothing cut, and it goes on to the same end. So too where a snapshot is
//! written later than its state was kept, as it is in life, where a thread of its own makes and writes it while batches are closed
//! and cleared.

use std::path::Path;

use walras_batch_solver::{Budget, ClosedBatch};
use walras_engine::{Engine, Frozen};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_log_store::{LogError, LogOptions, LogWriter, SnapshotStore};
use walras_sequencer::{Content, Entry, decode_entry};
use walras_testkit::plain;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, LogIndex, Payment,
    PublicKey, Rounding, Symbol, TimeNs, TransactionSeq, TransferId,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{
    AccountCommand, AssetSpec, BatchCommand, BatchEvent, CloseBatch, Command, Event, SetAccountKey, SubmitTransaction, Transfer,
    VenueCommand,
};

const MARKET: BatchMarketId = BatchMarketId(0);
const ASSETS: u32 = 3;
const ACCOUNTS: u32 = 5;
const BLOCKS: u64 = 4;
/// Transactions before a batch is closed, and between that and its clearing.
const COLLECTED: [u64; 2] = [18, 4];
/// Entries that are synced together, but for those of [`is_alone`].
const GROUP: u64 = 6;
const SNAPSHOT_EVERY: u64 = 23;
/// Groups of entries that are written between the moment when a state is kept and the one when the snapshot of it is written.
const LAGS: [u64; 2] = [0, 5];
const OWNER: u64 = 5;

/// What an entry is made of.
enum Step {
    Command(Command),
    /// A clearing of what is closed.
    Clear,
}

/// A block's number and the state's hash after it, as its event says.
type Block = (u64, [u8; 32]);

/// Numbers that follow from a place.
fn number(at: u64, below: u64) -> u64 {
    let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) % below
}

fn setup() -> Vec<Command> {
    let mut steps = Vec::new();
    for asset in (0..ASSETS).map(AssetId) {
        steps.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset,
            symbol: Symbol::new(&format!("A{asset}")).unwrap(),
            decimals: 2,
        })));
    }
    for account in (0..ACCOUNTS).map(AccountId) {
        steps.push(Command::Account(AccountCommand::Create(account)));
        steps.push(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: PublicKey([account.0 as u8 + 1; 32]) })));
        for asset in (0..ASSETS).map(AssetId) {
            let (amount, transfer_id) = (Amount::new(100_000).unwrap(), TransferId(u64::from(asset.0)));
            steps.push(Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount, transfer_id })));
        }
    }
    steps.extend(plain::batch_opening(plain::batch_market(MARKET), (0..ASSETS).map(AssetId)));
    steps
}

fn transaction(at: u64, next: &mut [u64]) -> Command {
    let account = AccountId(number(at, u64::from(ACCOUNTS)) as u32);
    let sequence = TransactionSeq(next[account.0 as usize]);
    next[account.0 as usize] += 1;
    let (sell, amount) = (number(at + 1_000, u64::from(ASSETS)) as u32, Amount::new(50 + number(at + 2_000, 900)).unwrap());
    let buy = AssetId((sell + 1 + number(at + 3_000, u64::from(ASSETS) - 1) as u32) % ASSETS);
    let sell = AssetId(sell);
    let operation = match number(at + 4_000, 8) {
        0 => BatchOperation::CreateAccount(PublicKey(std::array::from_fn(|byte| if byte == 0 { 99 } else { at as u8 }))),
        1 => BatchOperation::Payment(Payment { to: AccountId(0), asset: sell, amount }),
        _ => {
            let limit = BatchPrice::from_ratio(u128::from(90 + number(at + 5_000, 15)), 100, Rounding::Up).unwrap();
            BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount, limit })
        }
    };
    let signed =
        SignedTransaction { transaction: BatchTransaction::new(account, sequence, operation), signature: [0; SIGNATURE_BYTES] };
    Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).unwrap()))
}

fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = setup().into_iter().map(Step::Command).collect();
    let (mut next, mut at) = (vec![1; ACCOUNTS as usize], 0);
    for block in 1..=BLOCKS {
        for (count, then) in COLLECTED
            .into_iter()
            .zip([Step::Command(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block }))), Step::Clear])
        {
            for _ in 0..count {
                steps.push(Step::Command(transaction(at, &mut next)));
                at += 1;
            }
            steps.push(then);
        }
    }
    steps
}

/// Whether an entry is written and synced by itself.
fn is_alone(step: &Step) -> bool {
    matches!(step, Step::Clear | Step::Command(Command::Batch(BatchCommand::Close(_))))
}

fn content(step: &Step, engine: &Engine) -> Content {
    match step {
        Step::Command(command) => (*command).into(),
        Step::Clear => {
            let (place, offers, rules, quality) = engine.batch_to_clear(MARKET).expect("a batch is closed");
            let closed = ClosedBatch { market: MARKET, place, offers: &offers, rules, quality };
            Content::Clearing(Box::new(closed.propose(None, Budget::queries(500)).expect("so few offers clear")))
        }
    }
}

fn log_options(durable_floor: Option<LogIndex>) -> LogOptions {
    let (segment_bytes, block_bytes) = (24 * 512, 512);
    LogOptions {
        segment_bytes,
        first_segment_bytes: 10 * 512,
        block_bytes,
        owner_id: OWNER,
        durable_floor,
        ..LogOptions::default()
    }
}

/// A venue on a disk.
struct Venue {
    engine: Engine,
    log: LogWriter<SimDisk>,
    snapshots: SnapshotStore<SimDisk>,
    blocks: Vec<Block>,
    /// The last entry that was acknowledged.
    acknowledged: LogIndex,
    lag: u64,
    /// A state that is kept for a snapshot, and how many groups come before it is written.
    kept: Option<(LogIndex, Frozen, u64)>,
    /// Snapshots that were written of a state before a block that was cleared since.
    overtaken: u32,
}

impl Venue {
    fn open(disk: &SimDisk, lag: u64) -> Result<Self, LogError> {
        let snapshots = SnapshotStore::open(disk.clone(), Path::new("/venue/snapshots"), OWNER)?;
        let (engine, from) = match snapshots.load_newest()?.0 {
            None => (Engine::new(), LogIndex(0)),
            Some(found) => (Engine::restore(&found.bytes).expect("a whole snapshot restores"), found.log_index),
        };
        let (log, _) = LogWriter::open(disk.clone(), Path::new("/venue/log"), log_options((from.0 > 0).then_some(from)))?;
        let (blocks, acknowledged) = (Vec::new(), LogIndex(0));
        let mut venue = Self { engine, snapshots, blocks, acknowledged, lag, kept: None, overtaken: 0, log };
        let mut entries = Vec::new();
        if venue.log.next_index() > from.next() {
            let mut reader = venue.log.reader(from.next())?;
            while let Some(stored) = reader.next()? {
                entries.push(decode_entry(stored.index, stored.payload).expect("what is in the log is an entry"));
            }
        }
        entries.iter().for_each(|entry| venue.apply(entry));
        Ok(venue)
    }

    fn apply(&mut self, entry: &Entry) {
        let mut events = Vec::new();
        entry.apply(&mut self.engine, &mut events);
        for event in &events {
            match event {
                Event::Batch(BatchEvent::Cleared(cleared)) => self.blocks.push((cleared.block, cleared.state_root)),
                Event::Batch(BatchEvent::ClearingRejected(rejected)) => {
                    panic!("block {} was rejected: code {}", rejected.block, rejected.code)
                }
                _ => {}
            }
        }
    }

    /// Goes on with the script to its end; `each` hears of every entry that was applied.
    fn run(&mut self, steps: &[Step], mut each: impl FnMut(&Engine)) -> Result<(), LogError> {
        let mut at = self.engine.last_applied().0;
        while let Some(first) = steps.get(at as usize) {
            let rest = &steps[at as usize..];
            let count =
                if is_alone(first) { 1 } else { rest.iter().take(GROUP as usize).take_while(|step| !is_alone(step)).count() };
            let mut entries = Vec::new();
            for (log_index, step) in (at + 1..).map(LogIndex).zip(&rest[..count]) {
                let entry = Entry {
                    log_index,
                    time: TimeNs(log_index.0),
                    ordinal: None,
                    key: None,
                    nonce: None,
                    content: content(step, &self.engine),
                };
                let mut bytes = Vec::new();
                entry.encode(&mut bytes).expect("a clearing that was found has a form");
                self.log.append(&bytes)?;
                entries.push(entry);
            }
            self.acknowledged = LogIndex(self.log.sync()?.0 - 1);
            for entry in &entries {
                self.apply(entry);
                each(&self.engine);
            }
            let before = at / SNAPSHOT_EVERY;
            at += count as u64;
            if at / SNAPSHOT_EVERY > before && self.kept.is_none() {
                self.kept = Some((LogIndex(at), self.engine.freeze(), self.lag));
            }
            match &mut self.kept {
                Some((.., groups_left)) if *groups_left > 0 => *groups_left -= 1,
                _ => self.write_kept()?,
            }
            self.log.maintain()?;
        }
        Ok(())
    }

    fn write_kept(&mut self) -> Result<(), LogError> {
        let Some((at, frozen, _)) = self.kept.take() else { return Ok(()) };
        let mut bytes = Vec::new();
        frozen.snapshot(&mut bytes);
        self.snapshots.write(at, &bytes)?;
        let cleared = self.engine.batch_market(MARKET).and_then(|market| market.last);
        self.overtaken += u32::from(cleared.is_some_and(|last| last.log_index > at));
        if let Some(up_to) = self.snapshots.spare_up_to() {
            self.log.truncate_prefix(up_to)?;
        }
        Ok(())
    }
}

fn disk(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() })
}

#[test]
fn a_power_cut_at_any_write_leaves_the_blocks_that_there_were() {
    LAGS.into_iter().for_each(cut_at_any_write);
}

fn cut_at_any_write(lag: u64) {
    let steps = steps();
    // What there is where nothing is cut: the state after each entry, and the blocks.
    let whole = disk(0);
    let mut venue = Venue::open(&whole, lag).unwrap();
    let begin = whole.op_count();
    let mut hashes = vec![[0; 32]];
    venue.run(&steps, |engine| hashes.push(engine.state_hash())).unwrap();
    let (blocks, op_count) = (std::mem::take(&mut venue.blocks), whole.op_count() - begin);
    assert_eq!(blocks.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=BLOCKS).collect::<Vec<_>>());
    assert!(venue.engine.batch_market(MARKET).unwrap().last.unwrap().offers_traded > 0, "nothing traded");
    assert_eq!(venue.overtaken > 0, lag > 0, "a lag of {lag} groups, and {} snapshots overtaken by a block", venue.overtaken);
    let (mut from_snapshot, mut while_closed, mut more_than_acknowledged) = (0, 0, 0);
    for op in 0..op_count {
        let cut = disk(op + 1);
        let mut venue = Venue::open(&cut, lag).unwrap();
        cut.set_faults(SimFaults { crash_in_ops: Some(op), ..SimFaults::default() });
        // The operation may have had its effect, so the run need not hear of it at once.
        let _ = venue.run(&steps, |_| ());
        assert!(cut.is_off(), "operation {op} was not cut");
        let acknowledged = venue.acknowledged;
        drop(venue);
        cut.crash();
        cut.set_faults(SimFaults::default());

        let mut venue =
            Venue::open(&cut, lag).unwrap_or_else(|e| panic!("lag {lag}, cut at operation {op}, it does not open: {e}"));
        let last = venue.engine.last_applied();
        assert!(
            last >= acknowledged,
            "lag {lag}, cut at operation {op}: {acknowledged} was acknowledged, the log ends with {last}"
        );
        if last.0 > 0 {
            assert_eq!(
                venue.engine.state_hash(),
                hashes[last.0 as usize],
                "lag {lag}, cut at operation {op}: the state after {last}"
            );
        }
        from_snapshot += u32::from(venue.snapshots.indices().last().is_some());
        while_closed += u32::from(venue.engine.batch_to_clear(MARKET).is_some());
        more_than_acknowledged += u32::from(last > acknowledged);
        venue.engine.check_invariants();
        venue.run(&steps, |_| ()).unwrap();
        assert_eq!(venue.engine.state_hash(), *hashes.last().unwrap(), "lag {lag}, cut at operation {op}: another end");
        // Those that the newest snapshot held do not come again.
        assert!(
            blocks.ends_with(&venue.blocks),
            "lag {lag}, cut at operation {op}: blocks {:?} are not the last of {blocks:?}",
            venue.blocks
        );
    }
    println!("lag {lag}, {op_count} operations: {from_snapshot} from a snapshot, {while_closed} while a batch was closed");
    assert!(op_count > 60 && from_snapshot > 20 && while_closed > 10 && more_than_acknowledged > 3, "this tests little");
}
