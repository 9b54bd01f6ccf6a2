//! The exits of an order grow as it trades. That changes nothing of whose trades those are: in the binary feed, on the tape, in the books,
//! fills and execution reports.

use walras_engine::Engine;
use walras_feed::channel::View;
use walras_feed::message::Message;
use walras_feed::publisher::{Publisher, Views};
use walras_gateway::session::{ReportSettings, Reports};
use walras_market_data::{AccountRecord, FillRole, MarketData, OrderHistories, PublicBooks};
use walras_testkit::plain::{bracket, opening, with_exits_in_between};
use walras_types::{LogIndex, Side, TimeNs};
use walras_wire::Event;
use walras_wire::order_entry::{ReportEvent, TradeRole, decode_report_event};

/// What those who hear of a venue's events say of its trades.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    feed: Vec<Option<Side>>,
    tape: Vec<Option<Side>>,
    fills: Vec<FillRole>,
    reports: Vec<TradeRole>,
}

/// The events of a market's entries.
fn run() -> Vec<Vec<Event>> {
    let mut engine = Engine::new();
    let apply = |(at, command)| {
        let mut events = Vec::new();
        engine.apply(LogIndex(at), TimeNs(at), &command, &mut events);
        assert!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{command:?}: {events:?}");
        events
    };
    (1..).zip(opening().into_iter().chain(bracket())).map(apply).collect()
}

fn said_of(entries: &[Vec<Event>]) -> Said {
    let mut said = Said::default();
    let (mut publisher, mut market) = (Publisher::new(Views::of(&[View::Orders])), MarketData::new());
    let (mut books, mut histories) = (PublicBooks::new(), OrderHistories::default());
    let mut reports = Reports::new(ReportSettings::default());
    for (at, events) in (1..).zip(entries) {
        let (log_index, time) = (LogIndex(at), TimeNs(at));
        publisher.begin(log_index, time).unwrap();
        for event in events {
            publisher.on_event(event).unwrap();
            market.on_event(log_index, time, event).unwrap();
            books.on_event(log_index, event).unwrap();
            reports.on_event(log_index, time, event, |_, report| {
                if let ReportEvent::Filled(filled) = decode_report_event(report.event).unwrap() {
                    said.reports.push(filled.role);
                }
            });
        }
        publisher.end();
        publisher.take(|run| {
            for bytes in run.messages() {
                if let (_, Message::Traded(traded)) = Message::decode(bytes).unwrap() {
                    said.feed.push(traded.taker_side);
                }
            }
        });
        books.check_invariants();
        let mut records = Vec::new();
        histories.on_entry(log_index, time, None, events, &mut records);
        said.fills.extend(records.iter().filter_map(|recorded| match &recorded.record {
            AccountRecord::Fill(fill) => Some(fill.role),
            AccountRecord::Ended(_) => None,
        }));
    }
    said.tape = market.instruments()[0].tape().iter().map(|trade| trade.taker_side).collect();
    said
}

#[test]
fn an_exit_that_grows_makes_no_auction_of_its_entrys_trades() {
    let mut entries = run();
    let (maker_taker, reported) = ([FillRole::Maker, FillRole::Taker], [TradeRole::Maker, TradeRole::Taker]);
    let expected = Said {
        feed: vec![Some(Side::Buy); 2],
        tape: vec![Some(Side::Buy); 2],
        fills: maker_taker.repeat(2),
        reports: reported.repeat(2),
    };
    assert_eq!(said_of(&entries), expected);
    let last = entries.last_mut().unwrap();
    let moved = with_exits_in_between(last);
    assert_ne!(*last, moved);
    *last = moved;
    assert_eq!(said_of(&entries), expected);
}
