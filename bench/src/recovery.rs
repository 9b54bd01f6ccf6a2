//! A venue with a batch market that is killed and started again: how long until it is there, against how much it holds.
//!
//! The venue is a process of its own (this program once more, as [`victim`]), so that `kill -9` is what it is in life: threads end
//! anywhere, and what the process had not written is gone. It says what has been acknowledged, and the hash of each block; after
//! each kill the one that follows must have all of it, and the same blocks. Recovering is reading the newest snapshot, applying the
//! log's entries after it, and hashing all accounts and offers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use walras_access::Clock;
use walras_batch_workload::{Model, Workload};
use walras_config::{Batch, Config};
use walras_engine::Engine;
use walras_log_store::RealDisk;
use walras_node::runtime::ReplicaVenue;
use walras_order_book::Ladder;
use walras_ports::{VenueHandle, View};
use walras_types::{AccountId, AssetId, BatchMarketId, PublicKey, Symbol, TransactionSeq, TransferId};
use walras_wait::within;
use walras_wire::batch::SignedTransaction;
use walras_wire::{AccountCommand, AssetSpec, BatchCommand, Command, SetAccountKey, SubmitTransaction, Transfer, VenueCommand};

use crate::report::{Figure, Report, Unit};

/// A state to be recovered.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Accounts, each with a balance of every asset.
    pub accounts: u32,
    /// Blocks that were cleared before, of 100,000 transactions each.
    pub blocks: u32,
}

const ASSETS: u16 = 50;
const TRANSACTIONS: usize = 100_000;
const MARKET: BatchMarketId = BatchMarketId(0);
const SEED: u64 = 7;
/// Kills of each state; the figure is the median.
const KILLS: usize = 3;
/// Commands of the next block acknowledged before the next kill.
const ACKNOWLEDGED: u64 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures each size; the last one's figure is required.
pub fn run(sizes: &[Size], scratch: &Path, report: &mut Report) -> anyhow::Result<()> {
    for (at, size) in sizes.iter().enumerate() {
        let folder = scratch.join("recovery");
        let _ = std::fs::remove_dir_all(&folder);
        let result = measure(*size, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        let found = result.with_context(|| format!("recovering {} accounts", size.accounts))?;
        let suffix = if at + 1 == sizes.len() { String::new() } else { format!("_{}_accounts", size.accounts) };
        let seconds = report.samples(format!("recovery{suffix}_s"), found.iter().map(|found| found.seconds).collect());
        report.figure(Figure::new(format!("recovery{suffix}_s"), seconds, Unit::S));
        let last = found.last().context("it was killed once at least")?;
        report.figure(Figure::new(format!("recovery{suffix}_state_bytes"), last.state_bytes, Unit::Bytes));
        report.figure(Figure::new(format!("recovery{suffix}_offers"), last.offers, Unit::Count));
        report.figure(Figure::new(format!("recovery{suffix}_entries_replayed"), last.replayed, Unit::Count));
        for (name, ms) in [
            ("pause", found.iter().map(|found| found.pause_ms).collect::<Vec<_>>()),
            ("encode", found.iter().map(|found| found.encode_ms).collect()),
        ] {
            let metric = format!("snapshot{suffix}_{name}_ms");
            let value = report.samples(metric.clone(), ms);
            report.figure(Figure::new(metric, value, Unit::Ms));
        }
    }
    report.check(
        "after each kill -9 the venue had every entry that it had acknowledged and the same blocks, and its batch market cleared the next one",
    );
    Ok(())
}

/// What a start found.
struct Found {
    seconds: f64,
    state_bytes: f64,
    offers: f64,
    replayed: f64,
    /// How long a snapshot stops the engine's thread.
    pause_ms: f64,
    /// How long its bytes take, which another thread makes.
    encode_ms: f64,
}

fn measure(size: Size, folder: &Path) -> anyhow::Result<Vec<Found>> {
    let mut victim = Victim::start(folder, size)?;
    let mut blocks = BTreeMap::new();
    let mut acknowledged = victim.until_acknowledged(&mut blocks)?;
    let mut all = Vec::new();
    for _ in 0..KILLS {
        victim.kill()?;
        let state_bytes = newest_snapshot_bytes(folder)?;
        victim = Victim::start(folder, size)?;
        let [nanoseconds, log_index, replayed, offers, pause_ns, encode_ns] = victim.recovered;
        ensure!(log_index >= acknowledged, "entry {acknowledged} was acknowledged, and the log ends with {log_index}");
        for (block, hash) in &blocks {
            let held = victim.held.get(block);
            ensure!(held == Some(hash), "block {block} was {hash:?} before the kill and is {held:?} after it");
        }
        eprintln!("  {} accounts: {:.2} s, {replayed} entries replayed, {offers} offers", size.accounts, nanoseconds as f64 / 1e9);
        eprintln!("  a snapshot stops it for {:.1} ms and takes {:.1} ms", pause_ns as f64 / 1e6, encode_ns as f64 / 1e6);
        all.push(Found {
            seconds: nanoseconds as f64 / 1e9,
            state_bytes,
            offers: offers as f64,
            replayed: replayed as f64,
            pause_ms: pause_ns as f64 / 1e6,
            encode_ms: encode_ns as f64 / 1e6,
        });
        acknowledged = victim.until_acknowledged(&mut blocks)?;
    }
    victim.kill()?;
    Ok(all)
}

fn newest_snapshot_bytes(folder: &Path) -> anyhow::Result<f64> {
    let mut newest: Option<(std::time::SystemTime, u64)> = None;
    for file in std::fs::read_dir(folder.join("replica").join("snapshots")).context("looking for snapshots")? {
        let meta = file?.metadata()?;
        let found = (meta.modified()?, meta.len());
        newest = newest.max(Some(found));
    }
    Ok(newest.map_or(0.0, |(_, bytes)| bytes as f64))
}

/// A venue in a process of its own.
struct Victim {
    child: Child,
    says: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// Nanoseconds, last entry, entries replayed, standing offers, nanoseconds of a snapshot's pause and of its bytes.
    recovered: [u64; 6],
    /// Blocks that it knows.
    held: BTreeMap<u64, BlockHash>,
}

/// The hash of the state after a block, which is the block's own, in four numbers.
type BlockHash = [u64; 4];

fn hash_of(state_root: &[u8; 32]) -> BlockHash {
    let (words, _) = state_root.as_chunks::<8>();
    std::array::from_fn(|place| u64::from_le_bytes(words[place]))
}

impl Victim {
    fn start(folder: &Path, size: Size) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("finding this program's file")?;
        let mut command = Process::new(program);
        command.arg("victim").arg(folder).args([size.accounts.to_string(), size.blocks.to_string()]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting the venue")?;
        let says = BufReader::new(child.stdout.take().context("its output")?).lines();
        let mut victim = Self { child, says, recovered: [0; 6], held: BTreeMap::new() };
        victim.recovered = victim.hear("recovered")?;
        Ok(victim)
    }

    /// Numbers behind a word.
    fn hear<const N: usize>(&mut self, word: &str) -> anyhow::Result<[u64; N]> {
        for line in self.says.by_ref() {
            let line = line.context("hearing the venue")?;
            let (said, numbers) = line.split_once(' ').unwrap_or((&line, ""));
            if said != word && said != "held" {
                continue;
            }
            let numbers: Vec<u64> = numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            if let ("held", [block, hash @ ..]) = (said, &numbers[..]) {
                let hash = BlockHash::try_from(hash).map_err(|_| anyhow::anyhow!("the venue said: {line}"))?;
                self.held.insert(*block, hash);
                continue;
            }
            return numbers.try_into().map_err(|_| anyhow::anyhow!("the venue said: {line}"));
        }
        bail!("the venue ended before it said {word:?}: what it wrote is above")
    }

    /// The last entry acknowledged when a block was cleared, and enough of the next one is on its way.
    fn until_acknowledged(&mut self, blocks: &mut BTreeMap<u64, BlockHash>) -> anyhow::Result<u64> {
        let [block, hash @ ..]: [u64; 5] = self.hear("cleared")?;
        blocks.insert(block, hash);
        let (mut last, mut count) = (0, 0);
        while count < ACKNOWLEDGED {
            let [index, more] = self.hear("acknowledged")?;
            (last, count) = (index, count + more);
        }
        Ok(last)
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().context("killing the venue")?;
        self.child.wait().context("waiting for its end")?;
        Ok(())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.kill();
    }
}

/// `walras-bench victim DIR ACCOUNTS BLOCKS`: recovers or makes the venue, says what it found, then takes transactions until it is
/// killed.
pub fn victim(folder: &Path, accounts: u32, blocks: u32) -> anyhow::Result<()> {
    let begun = Instant::now();
    let config = config();
    let venue = ReplicaVenue::start_on(RealDisk, folder, &Clock::system(), &config, config.cluster_options()?)?;
    let nanoseconds = begun.elapsed().as_nanos();
    let handle = venue.handle();
    let recovered = venue.recovered();
    let (is_new, log_index, replayed) = (recovered.log_index.0 == 0, recovered.log_index, recovered.entries_replayed);
    let mut model = Model::standard(ASSETS, accounts, TRANSACTIONS.min(8 * accounts as usize));
    // Then nobody has to know the hashes that decide ties.
    model.cancel_share = 0.0;
    let mut workload = Workload::new(model, SEED ^ log_index.0);
    if is_new {
        make(&handle, &workload)?;
        for _ in 0..blocks {
            block(&handle, &mut workload)?;
        }
        snapshot(&handle)?;
    } else {
        let accounts = workload.model().account_count;
        let used = move |view: &View<'_>| (0..accounts).map(|id| view.engine.next_transaction(AccountId(id)).0 - 1).collect();
        let used: Vec<u64> = handle.read_blocking(used).map_err(|reason| anyhow::anyhow!("{reason}"))?;
        workload.go_on_after(|account| TransactionSeq(used[account.0 as usize]));
    }
    for (block, hash) in held(&handle)? {
        say(&format!("held {}", numbers(block, hash)))?;
    }
    let [pause_ns, encode_ns] = time_snapshot(&handle)?;
    let offers = look(&handle)?.offers;
    say(&format!("recovered {nanoseconds} {log_index} {replayed} {offers} {pause_ns} {encode_ns}"))?;
    loop {
        block(&handle, &mut workload)?;
    }
}

/// How long the engine's thread takes to keep its state for a snapshot, and this one to make bytes of it, in nanoseconds. Measured on the
/// venue's state restored, of which nothing is shared yet: the most that it takes.
fn time_snapshot(handle: &VenueHandle) -> anyhow::Result<[u64; 2]> {
    let kept = handle.read_blocking(|view| {
        let mut bytes = Vec::new();
        view.engine.snapshot(&mut bytes);
        (bytes, view.market.clone())
    });
    let (bytes, mut market) = kept.map_err(|reason| anyhow::anyhow!("{reason}"))?;
    let mut engine =
        Engine::<Ladder>::restore(&bytes).map_err(|e| anyhow::anyhow!("the venue's own snapshot does not restore: {e}"))?;
    let begun = Instant::now();
    let (engine, market) = (engine.freeze(), market.share());
    let pause = begun.elapsed();
    let (begun, mut bytes) = (Instant::now(), Vec::new());
    market.snapshot(&mut bytes);
    engine.snapshot(&mut bytes);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok([nanoseconds(pause), nanoseconds(begun.elapsed())])
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("saying it")
}

fn config() -> Config {
    let mut config = Config::default();
    config.order_entry.listen = String::new();
    config.log.snapshot_every_entries = 5_000_000;
    config.engine.threads = 2;
    let assets = (0..ASSETS).map(symbol).collect();
    config.batch = vec![Batch { name: "MAIN".into(), assets, interval_ms: 250, ..Batch::default() }];
    config
}

fn symbol(asset: u16) -> String {
    format!("A{asset}")
}

/// Assets, accounts with keys and endowments.
fn make(handle: &VenueHandle, workload: &Workload) -> anyhow::Result<()> {
    let send = |command| handle.send_blocking(command).map_err(|reason| anyhow::anyhow!("{reason}"));
    for asset in 0..ASSETS {
        let symbol = Symbol::new(&symbol(asset)).context("a symbol")?;
        send(Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(asset.into()), symbol, decimals: 2 })))?;
    }
    for account in (0..workload.model().account_count).map(AccountId) {
        send(Command::Account(AccountCommand::Create(account)))?;
        let key = PublicKey(std::array::from_fn(|at| if at < 4 { account.0.to_le_bytes()[at] } else { 1 }));
        send(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key })))?;
        for asset in (0..u32::from(ASSETS)).map(AssetId) {
            let transfer_id = TransferId(u64::from(asset.0) + 1);
            send(Command::Account(AccountCommand::Deposit(Transfer {
                account,
                asset,
                amount: workload.endowment(),
                transfer_id,
            })))?;
        }
    }
    wait(|| Ok(look(handle)?.is_open))
}

/// What of the market matters here.
struct Look {
    is_open: bool,
    next_block: u64,
    idle: bool,
    offers: u64,
}

fn look(handle: &VenueHandle) -> anyhow::Result<Look> {
    let seen = handle.read_blocking(|view| {
        view.engine.batch_market(MARKET).map_or(Look { is_open: false, next_block: 0, idle: true, offers: 0 }, |found| Look {
            is_open: found.market.is_some(),
            next_block: found.next_block,
            idle: found.collected == 0 && found.closed.is_none(),
            offers: found.market.map_or(0, |market| market.books().iter().map(|book| book.sells().as_slice().len() as u64).sum()),
        })
    });
    seen.map_err(|reason| anyhow::anyhow!("{reason}"))
}

fn wait(mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    within(PATIENCE, || match is_so() {
        Ok(true) => Ok(Ok(())),
        Ok(false) => Err(anyhow!("the venue does not come on within {PATIENCE:?}")),
        Err(why) => Ok(Err(why)),
    })?
}

/// Sends a block's transactions, says what was acknowledged, waits until they are cleared, and says that too.
fn block(handle: &VenueHandle, workload: &mut Workload) -> anyhow::Result<()> {
    let before = look(handle)?.next_block;
    let transactions = workload.block(|_, _| false).to_vec();
    for part in transactions.chunks(2_000) {
        let mut answers = Vec::with_capacity(part.len());
        for transaction in part {
            let signed = SignedTransaction { transaction: *transaction, signature: [0; 64] };
            let command = Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed)?));
            answers.push(handle.submit(command).map_err(|reason| anyhow::anyhow!("{reason}"))?);
        }
        let mut last = 0;
        for answer in answers {
            last = answer.blocking_recv()??.log_index.0;
        }
        say(&format!("acknowledged {last} {}", part.len()))?;
    }
    workload.closed(&[0; 32], []);
    wait(|| {
        let now = look(handle)?;
        Ok(now.next_block > before && now.idle)
    })?;
    let hash = held(handle)?.remove(&before).context("the block that was cleared is known")?;
    say(&format!("cleared {}", numbers(before, hash)))
}

/// The blocks that the venue remembers.
fn held(handle: &VenueHandle) -> anyhow::Result<BTreeMap<u64, BlockHash>> {
    let blocks = handle.read_blocking(|view| {
        let feed = view.market.batch(MARKET);
        feed.map_or_else(BTreeMap::new, |feed| feed.blocks().map(|block| (block.block, hash_of(&block.state_root))).collect())
    });
    blocks.map_err(|reason| anyhow::anyhow!("{reason}"))
}

fn numbers(block: u64, [a, b, c, d]: BlockHash) -> String {
    format!("{block} {a} {b} {c} {d}")
}

/// So that the newest snapshot holds the whole state, and the log what came after it.
fn snapshot(handle: &VenueHandle) -> anyhow::Result<()> {
    let taken = handle.snapshot_blocking();
    taken.map(|_| ()).map_err(|reason| anyhow::anyhow!("{reason}"))
}
