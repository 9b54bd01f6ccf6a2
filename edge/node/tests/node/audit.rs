//! `walras log audit`: it finds what `walras log verify` can not, since whoever changed the log made its checksums right.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use walras_access::operator_key_file;
use walras_batch_signatures::SigningKey;
use walras_consensus::{Body, Members, Pack, Packed, ReplicaId, SlotEntry, Ticket, Write};
use walras_log_store::{LogOptions, LogWriter, RealDisk};
use walras_node::node::Node;
use walras_replica_log::{Dump, Identity, Opened, Options, ReplicaLog};
use walras_sequencer::{Content, decode_entry, encode_entry};
use walras_testkit::plain;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchTransaction, LogIndex, Payment, Symbol, TimeNs, TransactionSeq,
};
use walras_wire::batch::SigningDomain;
use walras_wire::{
    AccountCommand, AssetSpec, BatchCommand, BatchMarketSpec, Command, SetAccountKey, SubmitTransaction, Transfer, VenueCommand,
};

use crate::cli::Cli;
use crate::replica::{one, wait_until_it_leads};
use crate::support::{Venue, config, limit, market, operator, replica_dir};

fn cli(dir: &Path) -> Cli {
    Cli { url: "http://127.0.0.1:9".into(), key_file: operator_key_file(dir) }
}

fn copy_snapshots(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// A log with one deposit of a unit more than was asked.
#[derive(Default)]
struct Forger {
    is_done: bool,
}

impl Forger {
    fn entry(&mut self, log_index: LogIndex, bytes: &[u8]) -> Vec<u8> {
        let entry = decode_entry(log_index, bytes).unwrap();
        let Content::Command(Command::Account(AccountCommand::Deposit(transfer))) = entry.content else { return bytes.to_vec() };
        if std::mem::replace(&mut self.is_done, true) {
            return bytes.to_vec();
        }
        let command = Command::Account(AccountCommand::Deposit(Transfer {
            amount: Amount::new(transfer.amount.get() + 1).unwrap(),
            ..transfer
        }));
        let mut forged = Vec::new();
        encode_entry(entry.time, entry.ordinal, &command, &mut forged);
        forged
    }
}

#[test]
fn the_log_makes_the_states_in_its_snapshots_or_was_changed() {
    let mut venue = Venue::start();
    let market = venue.market();
    market.operator.signed("POST", "/v1/admin/snapshots", None).unwrap();
    market.order(&market.alice, &limit(1, "buy", "1", "30000"));
    let (dir, cli) = (venue.dir.clone(), cli(&venue.dir));
    let dir_name = dir.to_str().unwrap();
    // While it runs, too: up to what was in the log then.
    let found = cli.json(&["log", "audit", dir_name]);
    assert_eq!((&found["sound"], &found["from_snapshot"], &found["states_compared"]), (&true.into(), &"0".into(), &1.into()));
    venue.stop();
    let found = cli.json(&["log", "audit", dir_name]);
    assert_eq!((&found["sound"], &found["from_snapshot"], &found["states_compared"]), (&true.into(), &"0".into(), &2.into()));
    assert_eq!(found["agreed_index"], found["last_index"], "a stop ends with a snapshot");
    let said = cli.text(&["log", "audit", dir_name]);
    assert!(said.starts_with("sound: ") && said.contains("2 states compared and equal"), "{said}");

    let forged = tempfile::tempdir().unwrap();
    forge_replica(&replica_dir(&dir), &replica_dir(forged.path()));
    let forged_name = forged.path().to_str().unwrap();
    assert!(cli.text(&["log", "verify", forged_name]).starts_with("sound: "), "every checksum is right");
    let (status, said) = cli.fails(&["log", "audit", forged_name]);
    assert_eq!(status, 5, "{said}");
    assert!(said.contains("was another than the log makes of it, and it was the same after entry 0"), "{said}");
}

#[test]
fn a_log_that_was_let_go_of_is_audited_from_a_snapshot_on() {
    let mut config = config();
    config.log.segment_bytes = 64 << 10;
    config.log.keep_mib = 0;
    let mut venue = Venue::with(&config);
    let market = venue.market();
    for round in 0..5 {
        for id in 0..20 {
            market.order(&market.alice, &limit(1 + round * 20 + id, "buy", "0.0001", "29000"));
        }
        market.operator.signed("POST", "/v1/admin/snapshots", None).unwrap();
    }
    venue.stop();
    let (cli, dir) = (cli(&venue.dir), venue.dir.to_str().unwrap());
    let first: u64 = cli.json(&["log", "verify", dir])["first_index"].as_str().unwrap().parse().unwrap();
    let found = cli.json(&["log", "audit", dir]);
    let from: u64 = found["from_snapshot"].as_str().unwrap().parse().unwrap();
    assert!(first > 1 && from >= first - 1, "{first}: {found}");
    assert_eq!((&found["states_compared"], &found["agreed_index"]), (&1.into(), &found["last_index"]));

    for file in std::fs::read_dir(replica_dir(&venue.dir).join("snapshots")).unwrap().map(|file| file.unwrap()) {
        if file.file_name().to_string_lossy().ends_with(".snap") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let (status, said) = cli.fails(&["log", "audit", dir]);
    assert_eq!(status, 5);
    assert!(said.contains("a snapshot is missing"), "{said}");
}

/// A replica's folder with another log, whose checksums are right.
fn forge_replica(from: &Path, to: &Path) {
    let me = ReplicaId::new(1).unwrap();
    let cluster_id = Dump::open(&RealDisk, from).unwrap().cluster_id;
    let identity = Identity { cluster_id, replica: me, genesis: Members::of_voters([me]) };
    let log = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
    let options = Options { log, ..Options::default() };
    let Opened { log, recovered, .. } = ReplicaLog::open(RealDisk, from, identity.clone(), options.clone()).unwrap();
    let mut slots = log.read_slots(log.slots()).unwrap();
    let (mut forger, mut log_index, mut entries) = (Forger::default(), LogIndex(0), Vec::new());
    while let Some(SlotEntry { slot, term, body }) = slots.next().unwrap() {
        let body = match body {
            Body::Pack(bytes) => {
                let mut pack = Pack::new();
                for bytes in Packed::decode(bytes).unwrap().entries() {
                    log_index = log_index.next();
                    pack.push(&forger.entry(log_index, bytes));
                }
                Body::Pack(pack.into_bytes())
            }
            body => body,
        };
        entries.push(SlotEntry { slot, term, body });
    }
    assert!(forger.is_done);
    let Opened { mut log, .. } = ReplicaLog::open(RealDisk, to, identity, options).unwrap();
    log.write(&Write { ticket: Ticket(1), hard_state: recovered.hard_state, installed: None, entries }).unwrap();
    log.close().unwrap();
    copy_snapshots(&from.join("snapshots"), &to.join("snapshots"));
}

#[test]
fn the_log_of_a_replica_is_dumped_verified_and_audited() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let mut config = one();
    config.log.snapshot_every_entries = 5;
    let node = Node::start(dir, &config).unwrap();
    wait_until_it_leads(&node);
    let market = market(&operator(&format!("http://{}", node.address()), dir));
    // By the third snapshot the hash of the first state is in the log.
    let mut id = 0;
    while node.venue().status().snapshots_total() < 3 {
        id += 1;
        assert!(id < 2_000, "no three snapshots");
        market.order(&market.bob, &limit(id, "sell", "0.01", "30000"));
    }
    node.stop();
    let (cli, dir_name) = (cli(dir), dir.to_str().unwrap());
    let verified = cli.json(&["log", "verify", dir_name]);
    assert_eq!((&verified["sound"], &verified["first_index"]), (&true.into(), &"1".into()));
    let dumped = cli.text(&["log", "dump", dir_name]);
    assert_eq!(dumped.lines().count() as u64, verified["entries"].as_u64().unwrap());
    assert!(dumped.contains("checkpoint") && dumped.contains("create_asset"), "{dumped}");
    assert_eq!(cli.text(&["log", "dump", dir_name, "--from", "3", "--limit", "2"]).lines().count(), 2);
    let found = cli.json(&["log", "audit", dir_name]);
    assert_eq!((&found["entries"], &found["from_snapshot"]), (&verified["entries"], &"0".into()));
    let checkpoints = dumped.lines().filter(|line| line.contains("checkpoint")).count() as u64;
    assert!(checkpoints >= 1, "{dumped}");
    // The snapshots are of the same entries, and of one more where the venue stopped before the hash was in the log.
    assert!(found["states_compared"].as_u64() >= Some(checkpoints), "{found} {dumped}");

    let forged = tempfile::tempdir().unwrap();
    forge_replica(&dir.join("replica"), &forged.path().join("replica"));
    let forged_name = forged.path().to_str().unwrap();
    assert_eq!(cli.json(&["log", "verify", forged_name])["entries"], verified["entries"]);
    let (status, said) = cli.fails(&["log", "audit", forged_name]);
    assert_eq!(status, 5, "{said}");
    // Its first deposit is entry 6.
    assert!(said.contains("was another than the log makes of it, and it was the same after entry 5"), "{said}");
}

/// Entries of a venue with a batch market, written as nobody checks them.
struct Written {
    entries: Vec<Command>,
    domain: SigningDomain,
}

const BATCH: BatchMarketId = BatchMarketId(0);

impl Written {
    /// Two assets, three accounts with keys and a unit of each, a market that is open.
    fn new() -> Self {
        let domain = [7; 32];
        let mut entries: Vec<Command> = Vec::new();
        for (asset, name) in [(AssetId(0), "BTC"), (AssetId(1), "USD")] {
            entries.push(Command::Venue(VenueCommand::CreateAsset(AssetSpec {
                asset,
                symbol: Symbol::new(name).unwrap(),
                decimals: 2,
            })));
        }
        for account in (0..3).map(AccountId) {
            entries.push(Command::Account(AccountCommand::Create(account)));
            entries.push(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: key(account.0).public_key() })));
        }
        let spec = BatchMarketSpec { transactions_max: 1_000, domain, ..plain::batch_market(BATCH) };
        entries.extend(plain::batch_opening(spec, [0, 1].map(AssetId)));
        Self { entries, domain: SigningDomain::new(&domain) }
    }

    /// A payment of an account by whoever has a key; the entry's index.
    fn pay(&mut self, account: u32, sequence: u64, by: &SigningKey) -> u64 {
        let payment = Payment { to: AccountId(0), asset: AssetId(1), amount: Amount::new(5).unwrap() };
        let transaction = BatchTransaction::new(AccountId(account), TransactionSeq(sequence), BatchOperation::Payment(payment));
        let signed = by.sign(&self.domain, &transaction);
        self.entries.push(Command::Batch(BatchCommand::Submit(SubmitTransaction::new(BATCH, &signed).unwrap())));
        self.entries.len() as u64
    }

    /// Writes the log, one entry in so many nanoseconds.
    fn write(&self, ns_each: u64) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
        let (mut log, _) = LogWriter::open(RealDisk, &dir.path().join("log"), options).unwrap();
        for (place, command) in (1..).zip(&self.entries) {
            let mut bytes = Vec::new();
            encode_entry(TimeNs(place * ns_each), None, command, &mut bytes);
            log.append(&bytes).unwrap();
        }
        log.sync().unwrap();
        log.close().unwrap();
        let verified = cli(dir.path()).text(&["log", "verify", dir.path().to_str().unwrap()]);
        assert!(verified.starts_with("sound: "), "every checksum is right");
        dir
    }

    /// How many signatures an audit of the log checks.
    fn checked(&self, ns_each: u64) -> Value {
        let dir = self.write(ns_each);
        cli(dir.path()).json(&["log", "audit", dir.path().to_str().unwrap()])["signatures_checked"].clone()
    }

    /// What an audit of the log says that finds damage.
    fn damage(&self, ns_each: u64) -> String {
        let dir = self.write(ns_each);
        let (status, said) = cli(dir.path()).fails(&["log", "audit", dir.path().to_str().unwrap()]);
        assert_eq!(status, 5, "{said}");
        said
    }
}

fn key(number: u32) -> SigningKey {
    SigningKey::from_seed(&[number as u8 + 1; 32])
}

#[test]
fn a_transaction_that_its_account_did_not_sign_is_named_at_its_entry() {
    let mut written = Written::new();
    for sequence in 1..=40 {
        for account in 0..3 {
            written.pay(account, sequence, &key(account));
        }
    }
    assert_eq!(written.checked(1), 120);
    // Refused, so it changed nothing: its number was used.
    written.pay(1, 1, &key(2));
    assert_eq!(written.checked(1), 120);
    let forged = written.pay(1, 41, &key(2));
    written.pay(2, 41, &key(2));
    written.pay(1, 42, &key(0));
    let said = written.damage(1);
    let named = format!("entry {forged}: transaction 41 of account 1 does not bear that account's signature");
    assert!(said.contains(&named), "{said}");
}

#[test]
fn a_key_that_was_replaced_counts_for_what_was_on_its_way_only() {
    let mut written = Written::new();
    written.pay(1, 1, &key(1));
    let new = SetAccountKey { account: AccountId(1), key: key(9).public_key() };
    written.entries.push(Command::Account(AccountCommand::SetKey(new)));
    let late = written.pay(1, 2, &key(1));
    written.pay(1, 3, &key(9));
    assert_eq!(written.checked(1_000), 3, "it may have been checked before the key was replaced");
    let said = written.damage(61_000_000_000);
    assert!(said.contains(&format!("entry {late}: transaction 2 of account 1")), "{said}");
}

#[test]
fn each_of_several_keys_that_were_replaced_counts_as_long() {
    let mut written = Written::new();
    for number in [9, 10] {
        written
            .entries
            .push(Command::Account(AccountCommand::SetKey(SetAccountKey { account: AccountId(1), key: key(number).public_key() })));
    }
    let first = written.pay(1, 1, &key(1));
    for (sequence, by) in [(2, 9), (3, 10), (4, 1)] {
        written.pay(1, sequence, &key(by));
    }
    assert_eq!(written.checked(1_000), 4);
    let said = written.damage(61_000_000_000);
    assert!(said.contains(&format!("entry {first}: transaction 1 of account 1")), "{said}");
}
