//! Histories written by hand, small enough to see what must come out.

use walras_market_history::Format;
use walras_replay::venue::{self, UncrossReport, VenueOptions, VenueReport};
use walras_replay::{Cause, Loaded, Options, Report, run_loaded};

fn replay(format: Format, text: &str) -> Report {
    let options = Options { timing_rounds: 1, ..Options::default() };
    let loaded = Loaded::read(text.as_bytes(), format, &options, &mut |_| {}).unwrap();
    let report = run_loaded(&loaded, &options, &mut |_| {}).unwrap();
    // Times are measured; all else follows from the history alone.
    assert!(report.timing.is_some());
    // Whatever the history, a venue takes it: the run itself checks the engine's invariants and that no unit is lost.
    through_venue(&loaded);
    Report { timing: None, ..report }
}

fn through_venue(loaded: &Loaded) -> VenueReport {
    let options = Options { timing_rounds: 2, ..Options::default() };
    let report = venue::run_loaded(loaded, &VenueOptions::new(loaded.format()), &options, None, &mut |_| {}).unwrap();
    let timing = report.timing.unwrap();
    assert_eq!((timing.rounds, timing.commands), (2, report.venue.commands));
    assert_eq!(report.rejects.values().sum::<u64>(), report.venue.rejected);
    assert_eq!(report.conservation.len(), 2);
    assert_eq!(report.state_hash.len(), 64);
    VenueReport { timing: None, state_hash: "(another with every change of the snapshot's format)".into(), ..report }
}

fn venue(format: Format, text: &str) -> VenueReport {
    through_venue(&Loaded::read(text.as_bytes(), format, &Options::default(), &mut |_| {}).unwrap())
}

fn golden(name: &str, report: &Report) {
    hold(name, &format!("{report}\n{}\n", report.to_json()));
}

fn golden_venue(name: &str, report: &VenueReport) {
    hold(name, &format!("{report}\n{}\n", report.to_json()));
}

fn hold(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("WALRAS_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{name} differs; if it should, run the test with WALRAS_UPDATE_GOLDEN=1 and read the difference");
}

/// Bids 11 (100 @ 10.00), 12 (50 @ 10.00), 13 (70 @ 9.99); offers 21 (30 @ 10.02), 22 (40 @ 10.03).
const BOOK: &str = "\
1.000000001,1,11,100,100000,1
1.000000002,1,12,50,100000,1
1.000000003,1,13,70,99900,1
1.000000004,1,21,30,100200,-1
1.000000005,1,22,40,100300,-1
";

fn lobster(messages: &str) -> Report {
    replay(Format::Lobster, &format!("{BOOK}{messages}"))
}

#[test]
fn a_sweep_is_one_order_and_meets_the_recorded_ones() {
    // Sells 180: all of 11 and 12, 30 of 13, a hidden order on the way. Then a buyer of 90 takes 21 and rests.
    let report = lobster(
        "2.000000000,4,11,100,100000,1\n2.000000000,4,12,50,100000,1\n2.000000000,5,0,9,99950,1\n2.000000000,4,13,30,99900,1\n\
         3.000000000,4,21,30,100200,-1\n3.000000000,1,31,60,100200,1\n4.000000000,2,31,20,100200,1\n5.000000000,3,31,40,100200,1\n",
    );
    let executions = report.executions.unwrap();
    assert_eq!((executions.recorded, executions.of_known_orders, executions.at_best, executions.at_head), (4, 4, 4, 4));
    assert_eq!((executions.aggressors, executions.aggressors_matched), (2, 2));
    assert_eq!((executions.sweeps, executions.sweeps_matched, executions.rests, executions.rests_matched), (1, 1, 1, 1));
    assert_eq!((report.book.trades, report.book.volume_lots, report.messages.hidden_executions), (4, 210, 1));
    assert_eq!((report.book.orders_missing, report.book.open_sizes_differing, report.book.resting_orders_end), (0, 0, 2));
    golden("sweep.txt", &report);
}

#[test]
fn a_venue_trades_a_sweep_as_recorded() {
    let report = venue(
        Format::Lobster,
        &format!(
            "{BOOK}2.0,4,11,100,100000,1\n2.0,4,12,50,100000,1\n3.0,3,13,70,99900,1\n4.0,3,11,5,100000,1\n5.0,2,22,5,100300,-1\n"
        ),
    );
    assert_eq!((report.venue.trades, report.venue.volume_lots, report.venue.resting_orders_end), (2, 150, 2));
    // 13 is deleted; 11 is gone by the record too, so nobody sends its deletion.
    assert_eq!((report.venue.commands, report.venue.rejected), (8, 0));
    golden_venue("venue_sweep.txt", &report);
}

#[test]
fn what_a_venue_traded_otherwise_is_refused_and_counted() {
    // By the record all of 12 trades although 11 is ahead, then all of 13. The venue trades 50 of 11; then the other 50 of 11 and
    // 20 of
    // 12. So the deletion of 11 comes too late.
    let report = venue(
        Format::Lobster,
        &format!("{BOOK}1.5,1,14,5,99800,1\n2.0,4,12,50,100000,1\n3.0,4,13,70,99900,1\n4.0,3,11,100,100000,1\n"),
    );
    assert_eq!((report.venue.trades, report.venue.volume_lots), (3, 120));
    assert_eq!(report.rejects.get("UnknownOrder"), Some(&1), "{report}");
    assert_eq!(report.venue.rejected, 1);
}

#[test]
fn an_order_passed_over_is_reported_and_the_record_followed() {
    // 12 trades although 11 is ahead; 11 is then deleted whole.
    let report = lobster("2.000000000,4,12,20,100000,1\n3.000000000,3,11,100,100000,1\n4.000000000,4,12,30,100000,1\n");
    let executions = report.executions.unwrap();
    assert_eq!((executions.of_known_orders, executions.at_best, executions.at_head, executions.causes.passed_over), (2, 2, 1, 1));
    let [mismatch] = report.mismatches[..] else { panic!("{:?}", report.mismatches) };
    assert_eq!((mismatch.order_ref, mismatch.instead, mismatch.cause), (12, Some(11), Cause::PassedOver));
    // Had the book's own fill stood, 11 would have 80 left.
    assert_eq!((report.book.corrections, report.book.open_sizes_differing, report.book.resting_orders_end), (1, 0, 3));
    golden("passed_over.txt", &report);
}

#[test]
fn a_sweep_that_differs_in_one_fill_is_asked_for_one_by_one() {
    // 12 before 11, then 13: the middle one is at the head once 12 is gone.
    let report = lobster("2.0,4,12,50,100000,1\n2.0,4,11,100,100000,1\n2.0,4,13,10,99900,1\n");
    let executions = report.executions.unwrap();
    assert_eq!((executions.at_head, executions.at_best, executions.aggressors_matched, executions.sweeps), (2, 3, 0, 1));
    assert_eq!(report.book.resting_orders_end, 3);
}

#[test]
fn an_order_entered_before_and_shown_after_is_distinguished() {
    let report = lobster("1.5,1,5,10,100000,1\n2.0,4,5,10,100000,1\n");
    let causes = report.executions.unwrap().causes;
    assert_eq!((causes.entered_before_shown_after, causes.passed_over), (1, 0));
}

#[test]
fn executions_behind_the_best_price_and_of_orders_gone_are_told() {
    let report = lobster("2.0,4,13,10,99900,1\n3.0,3,21,30,100200,-1\n4.0,4,21,30,100200,-1\n5.0,4,22,50,100300,-1\n");
    let executions = report.executions.unwrap();
    assert_eq!((executions.at_best, executions.at_head), (1, 0));
    assert_eq!((executions.causes.not_at_best, executions.causes.order_gone), (1, 2));
    // 11 and 12, which stood at a better price than 13 and are not named again, are presumed deleted.
    assert_eq!((report.book.orders_presumed_deleted, report.book.resting_orders_end), (2, 1));
}

#[test]
fn orders_never_added_are_made_up_by_their_number() {
    // 7 entered before all others, 15 between 13 and 21: both stood ahead of nobody of their price but 16.
    let report = replay(
        Format::Lobster,
        "1.0,1,11,100,100000,1\n1.1,1,16,50,99800,1\n2.0,4,7,5,100100,1\n2.5,4,7,6,100100,1\n3.0,4,11,100,100000,1\n\
         4.0,4,15,30,99800,1\n5.0,4,16,50,99800,1\n",
    );
    let executions = report.executions.unwrap();
    assert_eq!((report.book.orders_made_up, executions.of_made_up_orders, executions.made_up_at_head), (2, 3, 3));
    assert_eq!((executions.of_known_orders, executions.at_head), (2, 2));
    assert_eq!(report.book.resting_orders_end, 0);
}

#[test]
fn an_add_sets_the_one_order_aside_that_the_file_names_once_more() {
    // 31 rests at the price of 21, and both are deleted later: 21 waits outside the book.
    let report = lobster("2.0,1,31,10,100200,1\n3.0,3,31,10,100200,1\n4.0,3,21,30,100200,-1\n");
    assert_eq!((report.book.orders_set_aside, report.book.orders_missing, report.book.adds_that_traded), (1, 0, 0));
    assert_eq!((report.book.open_sizes_differing, report.book.resting_orders_end), (0, 4));
    let [mismatch] = report.mismatches[..] else { panic!("{:?}", report.mismatches) };
    assert_eq!((mismatch.order_ref, mismatch.instead, mismatch.cause), (21, Some(31), Cause::Contradiction));
    // It stands again once the file names it: the execution finds it.
    let report = lobster("2.0,1,31,10,100200,1\n3.0,3,31,10,100200,1\n4.0,4,21,30,100200,-1\n");
    assert_eq!(report.executions.unwrap().at_head, 1);
}

#[test]
fn orders_that_the_file_does_not_name_again_give_way() {
    // 21 and 22 were deleted where a file of few levels does not say so: 31 rests above both, and 11 where 12 trades.
    let report = lobster("2.0,1,31,10,100300,1\n3.0,4,12,50,100000,1\n4.0,1,32,5,100200,-1\n");
    assert_eq!((report.book.orders_presumed_deleted, report.book.orders_set_aside), (4, 0));
    let executions = report.executions.unwrap();
    assert_eq!((executions.at_best, executions.at_head, executions.causes.not_at_best), (0, 0, 1));
    assert_eq!((report.book.resting_orders_end, report.book.orders_missing), (2, 0));
    golden("presumed_deleted.txt", &report);
}

#[test]
fn one_line_that_several_contradict_is_set_aside_itself() {
    // 31 would have met 21 and 22, which the file names once more.
    let report = lobster("2.0,1,31,90,100300,1\n3.0,4,21,30,100200,-1\n4.0,4,22,40,100300,-1\n5.0,4,11,100,100000,1\n");
    let executions = report.executions.unwrap();
    assert_eq!((executions.at_head, executions.of_known_orders), (3, 3));
    assert_eq!((report.book.orders_set_aside, report.book.orders_presumed_deleted), (1, 0));
}

#[test]
fn an_order_that_waits_and_is_added_once_more_stands_once() {
    // 6 is set aside for 1, added at another price, and found there by its reduction. Found by random lines.
    let report = replay(
        Format::Lobster,
        "0.0,1,6,1,100,-1\n0.0,1,1,1,100,1\n0.0,1,6,1,200,1\n0.0,2,6,1,100,1\n0.0,1,2,1,100,-1\n0.0,1,1,1,100,1\n",
    );
    assert!(report.book.orders_set_aside > 0 && report.book.resting_orders_end <= 2, "{report}");
}

#[test]
fn prices_that_improve_are_another_aggressor() {
    // A book whose bids were filled from 9.99 up would not be price-time: two orders in one nanosecond.
    let report =
        lobster("2.0,4,11,100,100000,1\n2.0,4,12,50,100000,1\n2.0,1,14,5,100100,1\n2.0,4,13,5,99900,1\n2.0,4,14,5,100100,1\n");
    let executions = report.executions.unwrap();
    assert_eq!((executions.aggressors, executions.causes.not_at_best), (3, 1));
}

/// A line of the Shanghai log.
fn sse_order(biz_index: u64, time: u64, order_no: u64, side: char, price: u64, shares: u64, kind: char) -> String {
    let (kind, side, size) = (u32::from(kind), u32::from(side), shares * 1000);
    format!(
        "//SecurityIDSource=101 MsgType=192 MsgLen=64 SecurityID=600519 ChannelNo=6 ApplSeqNum={biz_index} TradingPhase=0 \
         OrderNo={order_no} Price={price} OrderQty={size} OrdType={kind} Side={side} TransactTime={time} resv= BizIndex={biz_index}\n"
    )
}

fn sse_trade(biz_index: u64, time: u64, buy: u64, sell: u64, price: u64, shares: u64, kind: char) -> String {
    let (kind, size) = (u32::from(kind), shares * 1000);
    format!(
        "//SecurityIDSource=101 MsgType=191 MsgLen=72 SecurityID=600519 ChannelNo=6 ApplSeqNum={biz_index} TradingPhase=0 \
         BidApplSeqNum={buy} OfferApplSeqNum={sell} LastPx={price} LastQty={size} ExecType={kind} TransactTime={time} resv= BizIndex={biz_index}\n"
    )
}

/// What a snapshot says of the day: trades, shares traded, last price, shares bid, shares offered.
type Day = (u64, u64, u64, u64, u64);

/// Price and shares of a side's levels.
type Levels<'a> = &'a [(u64, u64)];

fn sse_snapshot(phase: u64, time: u64, day: Day, bids: Levels<'_>, asks: Levels<'_>) -> String {
    use std::fmt::Write;
    let (trades, traded, last, bid_size, ask_size) = day;
    let mut line = format!(
        "//SecurityIDSource=101 MsgType=111 MsgLen=336 SecurityID=600519 ChannelNo=0 ApplSeqNum=0 TradingPhase={phase} NumTrades={trades} \
         TotalVolumeTrade={} TotalValueTrade=0 PrevClosePx=10000 LastPx={last} OpenPx=0 HighPx=0 LowPx=0 BidWeightPx=0 BidWeightSize={} \
         AskWeightPx=0 AskWeightSize={} DataTimeStamp={time}",
        traded * 1000,
        bid_size * 1000,
        ask_size * 1000
    );
    for (name, levels) in [("Bid", bids), ("Ask", asks)] {
        for level in 0..10 {
            let (price, shares) = levels.get(level).copied().unwrap_or_default();
            write!(line, " {name}Level[{level}].Price={price} {name}Level[{level}].Qty={}", shares * 1000).unwrap();
        }
    }
    line + " TradingPhaseCodePack=0 resv=\n"
}

/// A day in small: bids 300 @ 10.10 and 100 @ 10.00, an offer of 200 @ 9.90; 200 uncross at the highest price, for bids are left.
/// Then a seller of 250 takes the 100 left at 10.10 and rests 150 at 10.05; a buyer takes 50 of that. In the closing call a bid of
/// 40 @ 10.05 meets it.
fn day() -> Vec<String> {
    vec![
        sse_order(1, 9_15_00_00, 101, 'B', 10_100, 300, 'A'),
        sse_order(2, 9_15_10_00, 102, 'B', 10_000, 100, 'A'),
        sse_snapshot(1, 9_15_12, (0, 0, 0, 0, 0), &[], &[]),
        sse_order(3, 9_15_20_00, 103, 'S', 9_900, 200, 'A'),
        sse_snapshot(1, 9_15_21, (0, 0, 0, 0, 0), &[(10_100, 200), (0, 100)], &[(10_100, 200), (0, 0)]),
        sse_trade(4, 9_25_00_08, 101, 103, 10_100, 200, 'N'),
        sse_snapshot(1, 9_25_01, (1, 200, 10_100, 200, 0), &[(10_100, 100), (10_000, 100)], &[]),
        // Out of order in the file.
        sse_order(6, 9_30_00_00, 201, 'S', 10_050, 150, 'A'),
        sse_trade(5, 9_30_00_00, 101, 201, 10_100, 100, 'S'),
        sse_trade(7, 9_30_05_00, 202, 201, 10_050, 50, 'B'),
        sse_snapshot(2, 9_30_06, (3, 350, 10_050, 100, 100), &[(10_000, 100)], &[(10_050, 100)]),
        sse_order(8, 9_31_00_00, 102, 'B', 10_000, 100, 'D'),
        sse_snapshot(2, 14_57_00, (3, 350, 10_050, 0, 100), &[], &[]),
        sse_order(9, 14_58_00_00, 301, 'B', 10_050, 40, 'A'),
        sse_snapshot(4, 14_58_03, (3, 350, 10_050, 0, 100), &[(10_050, 40), (0, 0)], &[(10_050, 40), (0, 60)]),
        sse_trade(10, 15_00_00_05, 301, 201, 10_050, 40, 'N'),
        sse_snapshot(5, 15_00_01, (4, 390, 10_050, 0, 60), &[], &[(10_050, 60)]),
    ]
}

#[test]
fn a_shanghai_day_is_reproduced() {
    let report = replay(Format::Sse, &day().concat());
    assert_eq!(report.out_of_order, 1);
    let executions = report.executions.unwrap();
    assert_eq!((executions.aggressors, executions.aggressors_matched, executions.rests_matched), (2, 2, 1));
    let prices: Vec<_> = report.auctions.iter().map(|auction| (auction.price_ticks, auction.lots, auction.matches())).collect();
    assert_eq!(prices, [(Some(1010), 200, true), (Some(1005), 40, true)]);
    let snapshots = report.snapshots.as_ref().unwrap();
    assert_eq!((snapshots.reproduced, snapshots.total, snapshots.empty, snapshots.with_indicative), (7, 7, 2, 2));
    assert_eq!((snapshots.in_own_second, snapshots.missed.len()), (7, 0));
    golden("shanghai_day.txt", &report);
}

#[test]
fn a_venue_uncrosses_a_shanghai_day_as_recorded() {
    let report = venue(Format::Sse, &day().concat());
    let uncrosses = [(1010, 200), (1005, 40)].map(|(ticks, lots)| UncrossReport { price_ticks: Some(ticks), lots });
    assert_eq!((&report.uncrosses[..], report.venue.rejected), (&uncrosses[..], 0), "{report}");
    assert_eq!((report.venue.trades, report.venue.volume_lots), (4, 390));
    golden_venue("venue_shanghai_day.txt", &report);
}

#[test]
fn a_snapshot_that_differs_in_anything_is_missed() {
    // Price, size, a level more, a level less, trades, volume, last price, all offers.
    let wrong: [(Day, Levels<'_>, Levels<'_>); 8] = [
        ((3, 350, 10_050, 100, 100), &[(10_010, 100)], &[(10_050, 100)]),
        ((3, 350, 10_050, 100, 100), &[(10_000, 99)], &[(10_050, 100)]),
        ((3, 350, 10_050, 100, 100), &[(10_000, 100), (9_990, 1)], &[(10_050, 100)]),
        ((3, 350, 10_050, 100, 100), &[(10_000, 100)], &[]),
        ((2, 350, 10_050, 100, 100), &[(10_000, 100)], &[(10_050, 100)]),
        ((3, 351, 10_050, 100, 100), &[(10_000, 100)], &[(10_050, 100)]),
        ((3, 350, 10_060, 100, 100), &[(10_000, 100)], &[(10_050, 100)]),
        ((3, 350, 10_050, 100, 101), &[(10_000, 100)], &[(10_050, 100)]),
    ];
    for (stated, bids, asks) in wrong {
        let mut lines = day();
        lines[10] = sse_snapshot(2, 9_30_06, stated, bids, asks);
        let snapshots = replay(Format::Sse, &lines.concat()).snapshots.unwrap();
        assert_eq!((snapshots.reproduced, snapshots.missed.len()), (6, 1), "{stated:?} {bids:?} {asks:?}");
        assert_eq!(snapshots.missed[0].index, 11);
    }
}

#[test]
fn an_indicative_price_that_differs_in_anything_is_missed() {
    let nothing = (0, 0, 0, 0, 0);
    let wrong: [(u64, Levels<'_>, Levels<'_>); 6] = [
        // Nothing uncrosses yet, and then: price, size, surplus of buyers, of sellers, and nothing although something would.
        (9_15_12, &[(10_100, 200), (0, 100)], &[(10_100, 200), (0, 0)]),
        (9_15_21, &[(10_090, 200), (0, 100)], &[(10_090, 200), (0, 0)]),
        (9_15_21, &[(10_100, 201), (0, 100)], &[(10_100, 201), (0, 0)]),
        (9_15_21, &[(10_100, 200), (0, 99)], &[(10_100, 200), (0, 0)]),
        (9_15_21, &[(10_100, 200), (0, 100)], &[(10_100, 200), (0, 1)]),
        (9_15_25, &[], &[]),
    ];
    for (time, bids, asks) in wrong {
        let mut lines = day();
        let at = if time == 9_15_12 { 2 } else { 4 };
        lines[at] = sse_snapshot(1, time, nothing, bids, asks);
        let snapshots = replay(Format::Sse, &lines.concat()).snapshots.unwrap();
        assert_eq!((snapshots.reproduced, snapshots.missed.len()), (6, 1), "{time} {bids:?} {asks:?}");
    }
}

#[test]
fn a_snapshot_out_of_its_window_is_missed() {
    let with_levels_at = |time| {
        let mut lines = day();
        lines[10] = sse_snapshot(2, time, (3, 350, 10_050, 100, 100), &[(10_000, 100)], &[(10_050, 100)]);
        replay(Format::Sse, &lines.concat()).snapshots.unwrap()
    };
    // The state lasts from 09:30:05.00 to 09:31:00.00.
    assert_eq!(with_levels_at(9_30_04).reproduced, 6);
    assert_eq!(with_levels_at(9_30_05).in_own_second, 7);
    assert_eq!(with_levels_at(9_31_00).in_own_second, 7);
    assert_eq!(with_levels_at(9_31_01).reproduced, 6);
    let in_call_at = |time| {
        let mut lines = day();
        lines.insert(10, sse_order(80, 14_59_10_00, 302, 'B', 10_000, 1, 'A').replace("BizIndex=80", "BizIndex=9"));
        lines[15] = sse_snapshot(4, time, (3, 350, 10_050, 0, 100), &[(10_050, 40), (0, 0)], &[(10_050, 40), (0, 60)]);
        replay(Format::Sse, &lines.concat()).snapshots.unwrap()
    };
    // In a call phase an interval of three seconds late is late; this state lasts to 15:00:00.05.
    assert_eq!((in_call_at(15_00_02).an_interval_late, in_call_at(15_00_04).an_interval_late), (1, 0));
}

#[test]
fn snapshots_count_only_in_the_order_of_the_states_they_show() {
    let two_snapshots = |first: Levels<'_>, second: Levels<'_>| {
        let mut lines = day();
        let offer = [(10_050, 100)];
        let bid = |levels: Levels<'_>| levels.iter().map(|(_, shares)| shares).sum();
        let snapshot = |levels| sse_snapshot(2, 9_30_20, (3, 350, 10_050, bid(levels), 100), levels, &offer);
        lines[11] = [
            sse_order(8, 9_30_20_00, 104, 'B', 9_900, 10, 'A'),
            sse_order(9, 9_30_20_50, 105, 'B', 9_800, 20, 'A'),
            snapshot(first),
            snapshot(second),
        ]
        .concat();
        let snapshots = replay(Format::Sse, &lines[..12].concat()).snapshots.unwrap();
        (snapshots.reproduced, snapshots.total)
    };
    let (before, after): (Levels<'_>, Levels<'_>) = (&[(10_000, 100), (9_900, 10)], &[(10_000, 100), (9_900, 10), (9_800, 20)]);
    assert_eq!(two_snapshots(before, after), (6, 6));
    assert_eq!(two_snapshots(after, before), (5, 6));
    assert_eq!(two_snapshots(after, after), (6, 6));
}

#[test]
fn an_auction_of_another_price_is_reported_and_followed() {
    let mut lines = day();
    lines[5] = sse_trade(4, 9_25_00_08, 101, 103, 10_000, 200, 'N');
    let report = replay(Format::Sse, &lines.concat());
    assert!(!report.auctions[0].matches());
    assert_eq!((report.auctions[0].recorded_price_ticks, report.auctions[0].price_ticks), (1000, Some(1010)));
    assert_eq!(report.book.resting_orders_end, 1);
}

#[test]
fn without_imbalance_shanghai_takes_the_middle() {
    // 100 bid at 10.20, 100 offered at 10.00: any price between trades all of it.
    let report = replay(
        Format::Sse,
        &[
            sse_order(1, 9_15_00_00, 101, 'B', 10_200, 100, 'A'),
            sse_order(2, 9_15_10_00, 102, 'S', 10_000, 100, 'A'),
            sse_snapshot(1, 9_15_12, (0, 0, 0, 0, 0), &[(10_100, 100), (0, 0)], &[(10_100, 100), (0, 0)]),
            sse_trade(3, 9_25_00_08, 101, 102, 10_100, 100, 'N'),
        ]
        .concat(),
    );
    let auction = report.auctions[0];
    assert_eq!((auction.price_ticks, auction.price_near_close_ticks, auction.pairs_matched), (Some(1010), Some(1000), 1));
    assert_eq!(report.snapshots.unwrap().reproduced, 1);
}

#[test]
fn a_feed_without_executions_is_compared_by_trade_and_statement() {
    let order = |ms: u64, event: &str, id: u64, side: u8, price: &str, amount: &str| {
        format!(
            "{ms} order_{event} {{\"price\": \"{price}\", \"amount\": \"{amount}\", \"datetime\": \"1\", \"id\": {id}, \"order_type\": {side}}}\n"
        )
    };
    let trade =
        |ms: u64, price: &str, amount: &str| format!("{ms} trade {{\"price\": {price}, \"amount\": {amount}, \"id\": 1}}\n");
    let text = [
        order(1000, "created", 1, 1, "236.00", "2.0"),
        order(1100, "created", 2, 1, "236.00", "3.0"),
        // Buys 4: all of 1 and two of 2.
        order(1200, "created", 3, 0, "236.50", "4.0"),
        order(1210, "changed", 3, 0, "236.50", "2.0"),
        order(1220, "deleted", 1, 1, "236.00", "0.0"),
        order(1230, "deleted", 3, 0, "236.50", "0.0"),
        order(1240, "changed", 2, 1, "236.00", "1.0"),
        trade(1250, "236.0", "2.0"),
        trade(1251, "236.0", "2.0"),
        // Nobody saw who took this.
        order(1300, "changed", 2, 1, "236.00", "0.5"),
        trade(1310, "236.0", "0.5"),
        order(1400, "deleted", 2, 1, "236.00", "0.5"),
    ]
    .concat();
    let report = replay(Format::BitstampLog, &text);
    let tape = report.tape.unwrap();
    assert_eq!((tape.trades, tape.trades_matched, tape.trades_unreported), (3, 2, 0));
    assert_eq!((tape.statements, tape.statements_matched, tape.statements_outrun, tape.statements_corrected), (5, 3, 1, 1));
    assert_eq!((report.book.resting_orders_end, report.book.orders_missing, report.book.open_sizes_differing), (0, 0, 0));
    golden("bitstamp.txt", &report);
}

#[test]
fn a_file_of_another_instrument_is_refused_with_advice() {
    for wanted in ["7", "AAPL"] {
        let options = Options { instrument: Some(wanted.into()), ..Options::default() };
        let error = Loaded::read(BOOK.as_bytes(), Format::Lobster, &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(&format!("instrument {wanted} has no message in the file")), "{error}");
        assert!(error.contains("It has 0 (5 messages)"), "{error}");
    }
}
