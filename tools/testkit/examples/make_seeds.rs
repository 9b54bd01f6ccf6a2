//! Writes the seeds of the fuzz targets, a few small inputs each from which a fuzzer and the smoke tests set out:
//! `cargo run -p walras-testkit --example make_seeds`. Everything in them is made up, by fixed random numbers or by hand.
#![allow(clippy::unwrap_used, reason = "a tool for developers: it stops where it can not write")]

use std::num::NonZero;
use std::path::{Path, PathBuf};

use walras_engine::Engine;
use walras_feed::channel::{ChannelId, View};
use walras_feed::publisher::{Messages, Publisher, Views};
use walras_gateway::session::{ReportSettings, Reports};
use walras_log_store::SnapshotStore;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
use walras_market_history::itch::{ItchBody, ItchHeader, ItchMessage, ItchWriter};
use walras_market_history::workload_file::{WorkloadCommand, WorkloadOp};
use walras_sequencer::{Content, Entry, encode_clearing, encode_entry};
use walras_testkit::commands::{self, Range};
use walras_testkit::{Choices, Listener, Random};
use walras_testkit::{batch_commands, shard_commands};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, CreatePool,
    DepositToPool, InstrumentId, IssuedAmount, Joined, LogIndex, OfferName, Ordinal, Payment, PoolRule, PublicKey, RejectReason,
    SessionId, SessionSeq, Side, TimeNs, TransactionSeq, TransactionTerms, WithdrawFromPool,
};
use walras_wire::batch::{
    BlockProposal, BlockRoots, Certificate, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire, SIGNATURE_BYTES,
    SignedTransaction, encode_block_proposal, encode_signed_transaction, encode_transaction,
};
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, Refused, Report, SignedTransactions, VenueMessage, encode_client, encode_venue,
    push_signed_bytes,
};
use walras_wire::{AccountEvent, BatchEvent, Event, encode_command, encode_event};

const HASH_BYTES: usize = 32;

fn put(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// An engine and who listens to it after some commands, and every command and event on the way.
fn play(seed: u64, range: Range, count: usize, mut see: impl FnMut(&walras_wire::Command, &[Event])) -> (Engine, Listener) {
    let c = &mut Choices::of_seed(seed);
    let (mut engine, mut listener, mut time) = (Engine::new(), Listener::default(), TimeNs(1_000));
    let mut queue = commands::opening(c, range);
    for _ in 0..count {
        queue.push(commands::command(c, range, time));
    }
    for command in queue {
        time = TimeNs(time.0 + c.below(4));
        let (log_index, mut events) = (engine.last_applied().next(), Vec::new());
        match if c.below(3) == 0 { commands::ordinal(c, &engine) } else { None } {
            Some(ordinal) => {
                engine.apply_numbered(log_index, time, ordinal, &command, &mut events);
            }
            None => engine.apply(log_index, time, &command, &mut events),
        }
        listener.on_applied(&engine, log_index, time, &events).unwrap();
        see(&command, &events);
    }
    (engine, listener)
}

/// An engine after some commands of batch markets and clearings of them.
fn play_batches(seed: u64, count: usize, mut see: impl FnMut(&Content, &[Event])) -> Engine {
    let c = &mut Choices::of_seed(seed);
    let mut engine = Engine::new();
    let mut queue = commands::opening(c, Range::Near);
    queue.extend(batch_commands::opening(c));
    let opening = queue.len();
    for number in 0..opening + count {
        let clearing = if number >= opening && c.below(6) == 0 { batch_commands::clearing(c, &engine) } else { None };
        let content = match (queue.get(number), clearing) {
            (Some(command), _) => Content::Command(*command),
            (None, Some(block)) => Content::from(block),
            (None, None) => Content::Command(batch_commands::command(c, &engine)),
        };
        let (log_index, mut events) = (engine.last_applied().next(), Vec::new());
        let entry = Entry { log_index, time: TimeNs(number as u64), ordinal: None, key: None, nonce: None, content };
        entry.apply(&mut engine, &mut events);
        see(&entry.content, &events);
    }
    engine
}

/// An engine that is one of several shards, after some commands of them among others.
fn play_shards(seed: u64, count: usize, mut see: impl FnMut(&walras_wire::Command, &[Event])) -> Engine {
    let c = &mut Choices::of_seed(seed);
    let (mut engine, mut time) = (Engine::new(), TimeNs(1_000));
    let mut queue = vec![shard_commands::opening(c)];
    queue.extend(commands::opening(c, Range::Near));
    let opening = queue.len();
    for number in 0..opening + count {
        time = TimeNs(time.0 + c.below(4));
        let command = match queue.get(number) {
            Some(command) => *command,
            None if c.below(3) > 0 => shard_commands::command(c, &engine),
            None => commands::command(c, Range::Near, time),
        };
        let (log_index, mut events) = (engine.last_applied().next(), Vec::new());
        engine.apply(log_index, time, &command, &mut events);
        see(&command, &events);
    }
    engine
}

fn wire() {
    let (mut kinds, mut event_kinds) = (Vec::new(), Vec::new());
    for seed in 0..40 {
        let range = if seed % 4 == 0 { Range::Wild } else { Range::Near };
        let mut see = |command: &walras_wire::Command, events: &[Event]| {
            let mut bytes = Vec::new();
            encode_command(command, &mut bytes);
            // One of each tag and length: every optional field is once there and once not.
            if !kinds.contains(&(bytes[0], bytes.len())) {
                kinds.push((bytes[0], bytes.len()));
                put("wire_command", &format!("{:02}-{}", bytes[0], bytes.len()), &bytes);
            }
            for event in events {
                let mut bytes = Vec::new();
                encode_event(event, &mut bytes);
                if !event_kinds.contains(&(bytes[0], bytes.len())) {
                    event_kinds.push((bytes[0], bytes.len()));
                    put("wire_event", &format!("{:02}-{}", bytes[0], bytes.len()), &bytes);
                }
            }
        };
        let _ = play(seed, range, 150, &mut see);
        let _ = play_shards(seed, 80, &mut see);
        let _ = play_batches(seed, 200, |content, events| {
            see(content.command().unwrap_or(&walras_wire::Command::Venue(walras_wire::VenueCommand::Tick)), events)
        });
    }
}

fn states() {
    for (seed, count) in [(1, 0), (2, 40), (3, 90)] {
        let (engine, listener) = play(seed, Range::Near, count, |_, _| ());
        let mut bytes = Vec::new();
        engine.snapshot(&mut bytes);
        put("engine_restore", &format!("after-{count}"), &bytes[..bytes.len() - HASH_BYTES]);
        bytes.clear();
        listener.market.snapshot(&mut bytes);
        put("market_data_restore", &format!("after-{count}"), &bytes);
        bytes.clear();
        listener.readers.books.snapshot(&mut bytes);
        put("market_data_restore", &format!("books-after-{count}"), &bytes);
    }
    for (seed, count) in [(1, 30), (2, 80)] {
        let engine = play_batches(seed, count, |_, _| ());
        let mut bytes = Vec::new();
        engine.snapshot(&mut bytes);
        put("engine_restore", &format!("with-batches-{count}"), &bytes[..bytes.len() - HASH_BYTES]);
    }
}

fn states_of_shards() {
    for (seed, count) in [(1, 60), (2, 200)] {
        let engine = play_shards(seed, count, |_, _| ());
        let mut bytes = Vec::new();
        engine.snapshot(&mut bytes);
        put("engine_restore", &format!("of-shards-{count}"), &bytes[..bytes.len() - HASH_BYTES]);
    }
}

fn random_bytes() {
    let lens = [("engine_apply", [120, 400, 900]), ("order_book", [80, 300, 900]), ("clearing_verify", [80, 300, 900])];
    for (target, lens) in lens {
        for (seed, len) in (0..).zip(lens) {
            let mut bytes = vec![0; len];
            Random::new(seed).fill(&mut bytes);
            put(target, &format!("random-{len}"), &bytes);
        }
    }
}

fn histories() {
    put(
        "history_lobster",
        "lines",
        b"34200.004241176,1,16113575,18,5853300,1\n34200.1,4,16113575,8,5853300,1\n34201,3,16113575,10,5853300,1\n\
        34202.5,5,0,100,5853400,-1\n34203,7,0,0,-1,-1\n",
    );
    let mut itch = ItchWriter::new(Vec::new());
    let symbol = *b"TEST    ";
    let bodies = [
        ItchBody::System { code: b'O' },
        ItchBody::TradingAction { symbol, state: b'T', reserved: b' ', reason: *b"    " },
        ItchBody::Add { order_ref: 7, side: Side::Buy, shares: 100, symbol, price: 1_000_000, attribution: None },
        ItchBody::Add { order_ref: 8, side: Side::Sell, shares: 50, symbol, price: 1_000_100, attribution: Some(*b"ABCD") },
        ItchBody::Execute { order_ref: 7, shares: 10, match_number: 1 },
        ItchBody::ExecuteAtPrice { order_ref: 8, shares: 5, match_number: 2, printable: true, price: 1_000_050 },
        ItchBody::Cancel { order_ref: 7, shares: 20 },
        ItchBody::Replace { old_ref: 7, new_ref: 9, shares: 30, price: 999_900 },
        ItchBody::Delete { order_ref: 9 },
        ItchBody::Trade { order_ref: 0, side: Side::Buy, shares: 5, symbol, price: 1_000_000, match_number: 3 },
        ItchBody::Cross { shares: 900, symbol, price: 1_000_000, match_number: 4, cross_type: b'O' },
    ];
    for (time_ns, body) in (1_000..).zip(bodies) {
        itch.write(&ItchMessage { header: ItchHeader { locate: 1, tracking: 0, time_ns }, body }).unwrap();
    }
    put("history_itch", "one-of-each", &itch.finish().unwrap());
    let mut sse = String::from(
        "//SecurityIDSource=101 MsgType=192 MsgLen=64 SecurityID=600000 ChannelNo=6 ApplSeqNum=12 TradingPhase=0 OrderNo=370 \
         Price=1800320 OrderQty=100000 OrdType=65 Side=66 TransactTime=9242431 resv= BizIndex=567\r\n",
    );
    sse += "//SecurityIDSource=101 MsgType=111 MsgLen=336 SecurityID=600000 ChannelNo=0 ApplSeqNum=0 TradingPhase=2 NumTrades=3 \
            TotalVolumeTrade=300 TotalValueTrade=9 PrevClosePx=10 LastPx=0 OpenPx=0 HighPx=0 LowPx=0 BidWeightPx=1 BidWeightSize=2 \
            AskWeightPx=3 AskWeightSize=4 DataTimeStamp=91532";
    for side in ["Bid", "Ask"] {
        for level in 0..10 {
            sse += &format!(" {side}Level[{level}].Price={} {side}Level[{level}].Qty=5", 100 + level);
        }
    }
    sse += " TradingPhaseCodePack=69 resv=\n";
    put("history_sse", "order-and-snapshot", sse.as_bytes());
    let log = "1430438404518 order_created {\"price\": \"236.47\", \"amount\": \"2.00000000\", \"datetime\": \"1430438404\", \"id\": 1, \
               \"order_type\": 0}\n1430442721068 trade {\"price\": 236.28999999999999, \"amount\": 9.9999999999999995e-07, \"id\": 8}\n\
               1430438405885 order_book {\"bids\": [[\"236.47\", \"1.78855669\"]], \"asks\": []}\n";
    put("history_bitstamp_log", "order-trade-book", log.as_bytes());
    let orders = "id,timestamp,exchange.timestamp,price,volume,action,direction\n7,1430438404637,1430438340000,236.47,0,deleted,ask\n\
                  8,1430438404637,1430438340000,1.5,100000000,created,bid\n";
    put("history_bitstamp_orders", "two", orders.as_bytes());
    let ops = [
        WorkloadOp::Limit { side: Side::Buy, price_ticks: 100, size_lots: 5 },
        WorkloadOp::Immediate { side: Side::Sell, price_ticks: 99, size_lots: 2 },
        WorkloadOp::Move { price_ticks: 101 },
        WorkloadOp::Reduce { size_lots: 1 },
        WorkloadOp::Cancel,
    ];
    let commands = ops.map(|op| WorkloadCommand { user: 3, order_id: 1, op }.encode());
    put("history_workload", "one-of-each", &commands.concat());
}

fn files() {
    // Which file, how it is changed, where, to what: see the target.
    for (name, bytes) in [
        ("untouched", &[0, 0, 0][..]),
        ("identity", &[0, 0, 1, 12, 0, 0, 0, 0, 0, 0, 0, 255, 0]),
        ("first-segment", &[1, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0]),
        ("second-segment", &[2, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0]),
        ("cut", &[2, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 1, 8]),
        ("longer", &[2, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 9]),
        ("another-file", &[1, 2, b'W', b'A', b'L', b'R', b'A', b'S']),
    ] {
        put("log_recovery", name, bytes);
    }
    let disk = SimDisk::new(2, SimDiskConfig::default());
    let mut store = SnapshotStore::open(disk.clone(), &PathBuf::from("/snapshots"), 7).unwrap();
    store.write(LogIndex(9), b"the state after nine").unwrap();
    put("snapshot_store", "sound", &disk.bytes_of(&disk.paths()[0]).unwrap());
    put("snapshot_store", "header-only", &disk.bytes_of(&disk.paths()[0]).unwrap()[..48]);
}

fn requests() {
    put("gateway_request", "good-hmac", &[0, 0, 0, 1]);
    put("gateway_request", "good-ed25519", &[1, 0, 0, 1]);
    put("gateway_request", "other-key", b"\x00\x01\x00\x05hm_ab\x00\x01");
    put("gateway_request", "other-stamp", b"\x00\x01\x01\x0d1000000000000\x00\x01");
    put("gateway_request", "token", b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x16hm_ab.AAECAwQFBgcICQoLDA0ODw");
    for text in ["30711.25", "0.00000001", "1e3", "340282366920938463463374607431768211455", "007", "."] {
        let mut bytes = vec![1, 2, 1, 8, 8, 2, 8];
        bytes.extend_from_slice(&[9; 16]);
        bytes.extend_from_slice(text.as_bytes());
        put("gateway_decimal", &text.replace('.', "-"), &bytes);
    }
}

fn order_entry() {
    let (mut body, mut stream) = (Vec::new(), vec![5]);
    encode_command(&commands::command(&mut Choices::of_seed(4), Range::Near, TimeNs(9)), &mut body);
    for number in 1..=4 {
        encode_client(&ClientMessage::Submit { session_seq: SessionSeq(number), command: &body }, &mut stream);
    }
    encode_client(&ClientMessage::Ping(7), &mut stream);
    encode_client(&ClientMessage::Logout, &mut stream);
    put("order_entry", "client", &stream);
    let (mut items, payment) = (Vec::new(), Payment { to: AccountId(7), asset: AssetId(1), amount: Amount::new(5).unwrap() });
    for sequence in (1..=3).map(TransactionSeq) {
        let transaction = BatchTransaction::new(AccountId(6), sequence, BatchOperation::Payment(payment));
        let mut signed = Vec::new();
        encode_signed_transaction(&SignedTransaction { transaction, signature: [3; SIGNATURE_BYTES] }, &mut signed);
        assert!(push_signed_bytes(&signed, &mut items));
    }
    // What reads as no transaction spoils none of the others.
    assert!(push_signed_bytes(&[0; 90], &mut items));
    let mut stream = vec![5];
    for number in 1..=2 {
        let frame = SignedTransactions::new(number, BatchMarketId(1), &items).unwrap();
        encode_client(&ClientMessage::Transactions(frame), &mut stream);
    }
    put("order_entry", "transactions", &stream);
    let mut stream = vec![9];
    let (session_seq, log_index) = (SessionSeq(1), LogIndex(4));
    body.clear();
    encode_event(&Event::Account(AccountEvent::Created(AccountId(3))), &mut body);
    for message in [
        VenueMessage::Refused(Refused { session_seq, reason: RejectReason::Overloaded, retry_after_ns: Some(9) }),
        VenueMessage::Answer(Answer { session_seq, log_index, time: Some(TimeNs(9)), rejected: None }),
        VenueMessage::Report(Report { report_seq: 1, log_index, time: TimeNs(9), event: &body }),
        VenueMessage::Pong(7),
        VenueMessage::NotLeader { leader: "b:1" },
        VenueMessage::Bye { reason: ByeReason::Idle, text: "too long" },
    ] {
        encode_venue(&message, &mut stream);
    }
    put("order_entry", "venue", &stream);
    for (seed, len) in [(11, 200), (12, 700), (13, 2_000)] {
        let mut bytes = vec![0; len];
        Random::new(seed).fill(&mut bytes);
        put("reports", &format!("random-{len}"), &bytes);
    }
    let mut reports = Reports::new(ReportSettings::default());
    let mut time = 0;
    let _ = play(5, Range::Near, 60, |_, events| {
        time += 1;
        events.iter().for_each(|event| reports.on_event(LogIndex(time), TimeNs(time), event, |_, _| ()));
    });
    let mut bytes = Vec::new();
    reports.snapshot(&mut bytes);
    put("reports_restore", "after-60", &bytes);
}

fn replicas() {
    for (seed, len) in [(21, 400), (22, 1_500), (23, 4_000)] {
        let mut bytes = vec![0; len];
        Random::new(seed).fill(&mut bytes);
        put("replica_messages", &format!("random-{len}"), &bytes);
    }
    let command = commands::command(&mut Choices::of_seed(4), Range::Near, TimeNs(9));
    let ordinal = Ordinal { session: SessionId(3), session_seq: SessionSeq(7) };
    for (name, ordinal) in [("alone", None), ("of-a-session", Some(ordinal))] {
        let mut bytes = Vec::new();
        encode_entry(TimeNs(9), ordinal, &command, &mut bytes);
        put("log_entry", name, &bytes);
    }
    let mut clearing = None;
    let _ = play_batches(6, 200, |content, events| {
        if let (Content::Clearing(block), [.., Event::Batch(BatchEvent::Cleared(_))]) = (content, events) {
            clearing = Some(block.clone());
        }
    });
    let mut bytes = Vec::new();
    encode_clearing(TimeNs(9), &clearing.unwrap(), &mut bytes).unwrap();
    put("log_entry", "clearing", &bytes);
}

fn batches() {
    let (market, sell, buy, limit) = (BatchMarketId(1), AssetId(2), AssetId(3), BatchPrice::ONE);
    let amount = Amount::new(1_000_000).unwrap();
    let issued = IssuedAmount { asset: sell, amount };
    let (rule, amounts) = (PoolRule::Weighted { weights: [80, 20] }, [amount; 2]);
    let pool = OfferName { account: AccountId(6), sequence: TransactionSeq(3) };
    for (name, operation) in [
        ("create-account", BatchOperation::CreateAccount(PublicKey([8; 32]))),
        ("set-key", BatchOperation::SetKey(PublicKey([7; 32]))),
        ("create-offer", BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit })),
        (
            "cancel-offer",
            BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit, tie: 9, sequence: TransactionSeq(4) }),
        ),
        ("payment", BatchOperation::Payment(Payment { to: AccountId(7), asset: buy, amount })),
        ("issue", BatchOperation::Issue(issued)),
        ("burn", BatchOperation::Burn(issued)),
        ("create-pool", BatchOperation::CreatePool(CreatePool { market, assets: [sell, buy], rule, fee_ppm: 3_000, amounts })),
        ("deposit-to-pool", BatchOperation::DepositToPool(DepositToPool { market, pool, amounts })),
        ("withdraw-from-pool", BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares: amount })),
    ] {
        let transaction = BatchTransaction::new(AccountId(6), TransactionSeq(5), operation);
        let (mut bytes, mut signed_bytes) = (Vec::new(), Vec::new());
        encode_transaction(&transaction, &mut bytes);
        put("batch_transaction", name, &bytes);
        encode_signed_transaction(&SignedTransaction { transaction, signature: [3; SIGNATURE_BYTES] }, &mut signed_bytes);
        put("batch_transaction", &format!("{name}-signed"), &signed_bytes);
    }
    let payment = BatchOperation::Payment(Payment { to: AccountId(7), asset: buy, amount });
    let terms = TransactionTerms { until: NonZero::new(4_112), joined: Joined::Middle };
    let transaction = BatchTransaction::new(AccountId(6), TransactionSeq(5), payment).with_terms(terms);
    let mut bytes = Vec::new();
    encode_transaction(&transaction, &mut bytes);
    put("batch_transaction", "payment-with-terms", &bytes);
    let marginal = Some(OfferKeyWire { limit, tie: 9, id: 10 });
    let trade = |sell, buy| PairTradeWire { sell, buy, sold: amount, bought_by_buy_offers: Amount::ZERO, marginal };
    let certificate = |asset_count| Certificate { potentials: vec![0; asset_count], ..Certificate::default() };
    let prices = vec![None; 3];
    let quiet = BlockProposal { market, number: 1, prices, certificate: certificate(3), ..BlockProposal::default() };
    let busy = BlockProposal {
        prices: vec![Some(limit), None, Some(BatchPrice::MIN), Some(BatchPrice::MAX)],
        trades: vec![
            trade(0, 2),
            trade(2, 3),
            PairTradeWire { sold: Amount::ZERO, bought_by_buy_offers: amount, marginal: None, ..trade(3, 0) },
        ],
        pools: vec![PoolTradeWire { pool: 300, side: PoolSideWire::Second, sold: amount }],
        certificate: certificate(4),
        ..quiet.clone()
    };
    let proven = BlockProposal {
        certificate: Certificate { gap_ppb: 50_000, unserved_ppb: 7, potentials: vec![0, -1, 1_000_000, i64::MIN] },
        roots: Some(BlockRoots { accounts: [1; 32], offers: [2; 32], state: [3; 32] }),
        ..busy.clone()
    };
    for (name, block) in [("empty", BlockProposal::default()), ("quiet", quiet), ("busy", busy), ("proven", proven)] {
        let mut bytes = Vec::new();
        encode_block_proposal(&block, &mut bytes).unwrap();
        put("block_proposal", name, &bytes);
    }
}

fn blocks() {
    for (target, name, bytes) in walras_testkit::fuzz::batch::seeds() {
        put(target, &name, &bytes);
    }
}

/// Packets of a venue's feed, each after its channel, the number of its first message and how many it has.
fn feed() {
    let (mut publisher, mut entry) = (Publisher::new(Views::ALL), 0);
    play(12, Range::Near, 60, |_, events| {
        entry += 1;
        publisher.begin(LogIndex(entry), TimeNs(entry)).unwrap();
        events.iter().for_each(|event| publisher.on_event(event).unwrap());
        publisher.end();
    });
    let mut saved = Vec::new();
    publisher.save(&mut saved);
    put("feed_restore", "after-60", &saved);
    for (number, view) in (0..).zip(View::BOOKS) {
        let channel = ChannelId::instrument(view, InstrumentId(0));
        let (mut live, mut snapshot) = (Vec::new(), Vec::new());
        publisher.clone().take(|run| {
            if run.channel == channel {
                packets(number, run.messages(), &mut live);
            }
        });
        put("feed_messages", &format!("live-{number}"), &live[..live.len().min(2_000)]);
        let mut bytes = Vec::new();
        publisher.snapshot(channel, &mut bytes).unwrap();
        packets(128 + number, Messages::of(&bytes), &mut snapshot);
        put("feed_messages", &format!("snapshot-{number}"), &snapshot[..snapshot.len().min(2_000)]);
    }
}

fn packets<'m>(channel: u8, messages: impl Iterator<Item = &'m [u8]>, out: &mut Vec<u8>) {
    let messages: Vec<&[u8]> = messages.collect();
    for (place, messages) in messages.chunks(7).enumerate().take(36) {
        out.extend_from_slice(&[channel, (place * 7) as u8, messages.len() as u8]);
        for message in messages {
            out.push(message.len() as u8);
            out.extend_from_slice(message);
        }
    }
}

fn main() {
    batches();
    blocks();
    wire();
    states();
    states_of_shards();
    random_bytes();
    histories();
    files();
    requests();
    order_entry();
    replicas();
    feed();
}
