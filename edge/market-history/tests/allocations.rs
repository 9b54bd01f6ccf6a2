//! Reading allocates at the start, and nothing per message. What the thread that reads allocates is counted: the threads of the test
//! runner allocate when they like. A program of its own, because it has another allocator.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use walras_allocations::{Counting, allocations};
use walras_market_history::itch::lobster_to_itch;
use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_market_history::workload::{Churn, ChurnConfig};
use walras_market_history::workload_file::write_commands;
use walras_market_history::*;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn sse_lines() -> Vec<u8> {
    let start = "//SecurityIDSource=101 MsgType=";
    let middle = "SecurityID=600000   ChannelNo=6 ApplSeqNum=12  TradingPhase=2 ";
    let mut text = format!(
        "{start}192 MsgLen=64 {middle}OrderNo=370  Price=1800320 OrderQty=100000  OrdType=65 Side=66 TransactTime=9242431 resv=  BizIndex=567\r\n\
         {start}191 MsgLen=72 {middle}BidApplSeqNum=1 OfferApplSeqNum=2 LastPx=5 LastQty=6 ExecType=83 TransactTime=9242431 resv=  BizIndex=568\r\n\
         {start}111 MsgLen=336 {middle}NumTrades=3 TotalVolumeTrade=300 TotalValueTrade=9 PrevClosePx=10 LastPx=0 OpenPx=0 HighPx=0 LowPx=0 \
         BidWeightPx=1 BidWeightSize=2 AskWeightPx=3 AskWeightSize=4 DataTimeStamp=91532"
    );
    for side in ["Bid", "Ask"] {
        for at in 0..10 {
            text += &format!(" {side}Level[{at}].Price={} {side}Level[{at}].Qty=5 ", 100 + at);
        }
    }
    text += " TradingPhaseCodePack=69 resv=\r\n";
    text.repeat(100).into_bytes()
}

fn bitstamp_lines() -> Vec<u8> {
    let levels = "[\"236.47\", \"1.78855669\"], ".repeat(20);
    let levels = levels.trim_end_matches(", ");
    let text = format!(
        "1430438404518 order_created {{\"price\": \"236.47\", \"amount\": \"2.0\", \"datetime\": \"1430438404\", \"id\": 1, \"order_type\": 0}}\n\
         1430438404518 trade {{\"price\": 236.28999999999999, \"amount\": 9.9999999999999995e-07, \"id\": 1}}\n\
         1430438404518 order_book {{\"bids\": [{levels}], \"asks\": [{levels}]}}\n"
    );
    text.repeat(100).into_bytes()
}

#[test]
fn no_reader_allocates_per_message() {
    let mut lobster = Vec::new();
    write_lobster(SyntheticConfig { duration_ns: 10_000_000_000, ..SyntheticConfig::default() }, &mut lobster).unwrap();
    let mut itch = Vec::new();
    lobster_to_itch(&lobster[..], &mut itch, *b"MADE    ").unwrap();
    let mut workload = Vec::new();
    write_commands(Churn::new(ChurnConfig { commands: 1_000, ..ChurnConfig::standard(1) }), &mut workload).unwrap();
    let orders = "id,timestamp,exchange.timestamp,price,volume,action,direction\n".to_owned()
        + &"65595247,1430438404518,1430438404000,236.47,200000000,created,bid\n".repeat(300);
    let files = [
        (Format::Lobster, lobster),
        (Format::Itch, itch),
        (Format::Sse, sse_lines()),
        (Format::BitstampLog, bitstamp_lines()),
        (Format::BitstampOrders, orders.into_bytes()),
        (Format::Workload, workload),
    ];
    for (format, bytes) in files {
        let mut history = History::new(&bytes[..], format);
        for event in history.by_ref().take(10) {
            event.unwrap();
        }
        let before = allocations();
        assert!(before > 0, "the allocations that made the files were not counted");
        let events = history.by_ref().map(Result::unwrap).count();
        let allocations = allocations() - before;
        assert!(events > 200, "{format}: {events} events");
        assert_eq!(allocations, 0, "{format}: {allocations} allocations in {events} events");
    }
}
