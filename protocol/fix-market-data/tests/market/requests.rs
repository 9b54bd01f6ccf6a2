//! Requests: what is answered, refused and ended.

use walras_fix_market_data::limits::{OUTPUT_CONFLATES_BYTES, REQUEST_ID_BYTES_MAX, REQUESTS_MAX};
use walras_random::Random;
use walras_types::{BatchPhase, PriceTicks, Side, TradingPhase};

use crate::world::{Client, Received, World, key, symbol};

/// From one close of the batch market to the next.
const INTERVAL_NS: u64 = 500_000_000;

fn ready(version: &str) -> (World, Client) {
    let mut world = World::new(2);
    let mut client = world.connect(1, version);
    let logon = world.hear(&mut client);
    assert_eq!(logon[0].get(35), Some("A"), "{logon:?}");
    (world, client)
}

fn one(world: &mut World, client: &mut Client, msg_type: &str, body: &str) -> Received {
    world.send(client, msg_type, body);
    let mut heard = world.hear(client);
    assert_eq!(heard.len(), 1, "{msg_type} {body}: {heard:?}");
    heard.remove(0)
}

#[test]
fn nobody_is_let_in_before_the_instruments_are_known() {
    let mut world = World::new(0);
    let mut early = world.connect(1, "FIX.4.4");
    let heard = world.hear(&mut early);
    let text = heard[0].get(58).unwrap_or_default();
    assert_eq!((heard.len(), heard[0].get(35)), (1, Some("5")), "{heard:?}");
    assert!(text.contains("VenueNotReady (110)") && text.contains("upgraded first"), "{text}");
    assert!(world.server.is_over(1));
    world.list(0);
    let mut client = world.connect(2, "FIX.4.4");
    assert_eq!(world.hear(&mut client)[0].get(35), Some("A"));
    let listed = one(&mut world, &mut client, "x", "320=all|559=4|");
    assert_eq!((listed.get(35), listed.get(55)), (Some("y"), Some("BTC0/USD")));
}

#[test]
fn a_request_that_asks_once_is_answered_once_and_leaves_nothing() {
    let (mut world, mut client) = ready("FIX.4.4");
    world.order(0, 1, Side::Buy, 100, 5);
    let whole = one(&mut world, &mut client, "V", "262=a|263=0|264=1|267=2|269=0|269=1|146=1|55=BTC0/USD|");
    assert_eq!((whole.get(35), whole.get(262), whole.get(55)), (Some("W"), Some("a"), Some("BTC0/USD")));
    let entries = whole.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0][&270].as_str(), entries[0][&271].as_str(), entries[0][&346].as_str()), ("50.0", "0.005", "1"));
    assert_eq!((world.needed(), world.server.counts()), (0, (1, 0)));
    world.order(0, 2, Side::Buy, 101, 5);
    world.publish(0, false);
    assert!(world.hear(&mut client).is_empty());
}

#[test]
fn every_kind_of_entry_is_there_where_its_version_has_it() {
    let (mut world, mut client) = ready("FIX.5.0SP2");
    let kinds = "267=10|269=0|269=1|269=2|269=4|269=5|269=7|269=8|269=A|269=B|269=Q|";
    let first = one(&mut world, &mut client, "V", &format!("262=a|263=1|264=0|265=1|{kinds}146=1|55=BTC0/USD|"));
    assert!(first.entries().is_empty(), "{first:?}");
    world.order(0, 1, Side::Sell, 100, 5);
    world.order(0, 2, Side::Buy, 100, 2);
    world.publish(0, false);
    let kinds: Vec<String> = world.hear(&mut client).iter().flat_map(Received::entries).map(|entry| entry[&269].clone()).collect();
    assert_eq!(kinds, ["1", "2", "4", "7", "8", "B"]);
    world.previous_close = PriceTicks::new(97);
    world.publish(0, false);
    let heard = world.hear(&mut client);
    let entry = &heard[0].entries()[0];
    assert_eq!((heard.len(), entry[&279].as_str(), entry[&269].as_str(), entry[&270].as_str()), (1, "0", "5", "48.5"));
    world.phase(0, TradingPhase::ClosingAuction);
    world.order(0, 3, Side::Buy, 110, 7);
    world.publish(0, false);
    let heard = world.hear(&mut client);
    let entries: Vec<_> = heard.iter().flat_map(Received::entries).collect();
    let of = |kind: &str| entries.iter().find(|entry| entry[&269] == kind).unwrap_or_else(|| panic!("no {kind} in {heard:?}"));
    assert_eq!((of("Q")[&279].as_str(), of("Q")[&271].as_str()), ("0", "0.003"));
    assert_eq!((of("A")[&277].as_str(), of("A")[&271].as_str()), ("P", "0.004"));
    // Older versions have fewer kinds, and say which.
    let (mut world, mut client) = ready("FIX.4.2");
    let rejected = one(&mut world, &mut client, "V", "262=a|263=1|264=0|265=1|267=1|269=6|146=1|55=BTC0/USD|");
    assert_eq!((rejected.get(35), rejected.get(281)), (Some("Y"), Some("8")));
    assert!(rejected.get(58).unwrap().contains("0, 1, 2, 4, 5, 7, 8"), "{rejected:?}");
}

/// More buyers, more sellers, as many of both: as changes and in whole markets, until nothing would trade any more.
#[test]
fn an_imbalance_has_its_size_and_its_side() {
    for version in ["FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"] {
        let (mut world, mut client) = ready(version);
        let kind = "267=1|269=A|146=1|55=BTC0/USD|";
        let (lasting, once) = (format!("262=a|263=1|264=1|265=1|{kind}"), format!("262=b|263=0|264=1|{kind}"));
        assert!(one(&mut world, &mut client, "V", &lasting).entries().is_empty());
        world.phase(0, TradingPhase::ClosingAuction);
        world.order(0, 1, Side::Buy, 100, 7);
        for (id, side, size, action, expected) in [
            (2, Side::Sell, 3, "0", ["A", "50.0", "0.004", "P"]),
            (3, Side::Sell, 9, "1", ["A", "50.0", "0.005", "Q"]),
            (4, Side::Buy, 5, "1", ["A", "50.0", "0.000", "-"]),
        ] {
            world.order(0, id, side, 100, size);
            world.publish(0, false);
            let heard = world.hear(&mut client);
            assert_eq!((heard.len(), heard[0].entries()[0][&279].as_str()), (1, action), "{version}: {heard:?}");
            for message in [&heard[0], &one(&mut world, &mut client, "V", &once)] {
                let entries = message.entries();
                let said = [269, 270, 271, 277].map(|tag| entries[0].get(&tag).map_or("-", String::as_str));
                assert_eq!((entries.len(), said), (1, expected), "{version}: {message:?}");
            }
        }
        for id in [1, 4] {
            world.cancel(0, id, Side::Buy);
        }
        world.publish(0, false);
        let heard = world.hear(&mut client);
        let gone = [269, 279, 270, 271].map(|tag| heard[0].entries()[0].get(&tag).cloned().unwrap_or_default());
        assert_eq!((heard.len(), gone), (1, ["A", "2", "", ""].map(str::to_owned)), "{version}: {heard:?}");
        assert!(one(&mut world, &mut client, "V", &once).entries().is_empty());
    }
}

/// Dictionaries of 5.0 SP2 that are older than AggressorSide(2446) are in use, and engines reject what theirs does not have.
#[test]
fn which_side_came_in_is_said_to_those_who_ask_for_more() {
    for (asked, aggressor) in [("", None), ("5083=Y|", Some("1"))] {
        let (mut world, mut client) = ready("FIX.5.0SP2");
        let body = format!("262=a|263=1|264=0|265=1|267=1|269=2|146=1|55=BTC0/USD|{asked}");
        assert!(one(&mut world, &mut client, "V", &body).entries().is_empty());
        world.order(0, 1, Side::Sell, 100, 5);
        world.order(0, 2, Side::Buy, 100, 2);
        world.publish(0, false);
        let heard = world.hear(&mut client);
        let entries: Vec<_> = heard.iter().flat_map(Received::entries).collect();
        assert_eq!(entries.len(), 1, "{heard:?}");
        assert_eq!(entries[0].get(&2446).map(String::as_str), aggressor, "{asked}");
    }
}

#[test]
fn what_can_not_be_answered_is_refused_with_its_reason() {
    let (mut world, mut client) = ready("FIX.4.4");
    let good = "267=1|269=0|146=1|55=BTC0/USD|";
    for (body, reason) in [
        ("262=x|263=1|264=0|265=1|267=1|269=0|146=1|55=ETH/USD|".to_owned(), "0"),
        (format!("262=x|263=1|264=5001|265=1|{good}"), "5"),
        (format!("262=x|263=1|264=0|{good}"), "6"),
        (format!("262=x|263=1|264=501|265=1|266=N|{good}"), "5"),
        ("262=x|263=1|264=0|265=1|267=1|269=6|146=1|55=BTC0/USD|".to_owned(), "8"),
        (format!("262=x|263=1|264=0|265=1|547=Y|{good}"), "C"),
        (format!("262={}|263=1|264=0|265=1|{good}", "x".repeat(65)), "1"),
    ] {
        let rejected = one(&mut world, &mut client, "V", &body);
        assert_eq!((rejected.get(35), rejected.get(281)), (Some("Y"), Some(reason)), "{body}: {rejected:?}");
    }
    let lasting = format!("262=x|263=1|264=0|265=1|{good}");
    assert_eq!(one(&mut world, &mut client, "V", &lasting).get(35), Some("W"));
    assert_eq!(one(&mut world, &mut client, "V", &lasting).get(281), Some("1"), "the id is taken");
    world.send(&mut client, "V", &format!("262=x|263=2|264=0|{good}"));
    assert!(world.hear(&mut client).is_empty());
    assert_eq!(world.needed(), 0);
    let unknown = one(&mut world, &mut client, "V", &format!("262=x|263=2|264=0|{good}"));
    assert_eq!((unknown.get(35), unknown.get(380)), (Some("j"), Some("1")));
    for at in 0..REQUESTS_MAX {
        assert_eq!(one(&mut world, &mut client, "V", &format!("262={at}|263=1|264=0|265=1|{good}")).get(35), Some("W"));
    }
    let rejected = one(&mut world, &mut client, "V", &lasting);
    assert_eq!((rejected.get(35), rejected.get(281)), (Some("Y"), Some("2")));
    assert!(rejected.get(58).unwrap().contains("256"), "the limit is said: {rejected:?}");
    assert_eq!(one(&mut world, &mut client, "D", "11=1|55=BTC0/USD|54=1|60=20260101-01:00:00|38=1|40=1|").get(35), Some("j"));
    // The connection goes, and with it all that it read.
    world.server.on_disconnected(1);
    world.feed_new();
    assert_eq!((world.needed(), world.server.counts()), (0, (0, 0)));
}

#[test]
fn all_markets_include_those_to_come() {
    let (mut world, mut client) = ready("FIX.4.4");
    world.send(&mut client, "V", "262=all|263=1|264=1|265=1|267=2|269=0|269=1|146=1|55=*|");
    let heard = world.hear(&mut client);
    assert_eq!(heard.iter().map(|message| message.get(55).unwrap()).collect::<Vec<_>>(), [symbol(0), symbol(1)]);
    world.list(2);
    assert_eq!(world.hear(&mut client)[0].get(55), Some(symbol(2).as_str()));
}

#[test]
fn a_batch_markets_prices_come_after_each_block() {
    let (mut world, mut client) = ready("FIX.4.4");
    world.has_batch_market();
    for none in ["BTC@other", "XYZ@main"] {
        let refused = one(&mut world, &mut client, "V", &format!("262=b|263=1|264=1|265=1|267=1|269=2|146=1|55={none}|"));
        assert_eq!((refused.get(35), refused.get(281)), (Some("Y"), Some("0")), "{none}");
    }
    world.send(&mut client, "V", "262=b|263=1|264=1|265=1|267=1|269=2|146=2|55=BTC@main|55=ETH@main|5083=Y|");
    assert!(world.hear(&mut client).is_empty(), "nothing is known yet");
    world.block(0, &[]);
    let first = world.hear(&mut client);
    assert!(first.len() == 2 && first.iter().all(|message| message.get(35) == Some("W") && message.entries().is_empty()));
    world.block(1, &[("BTC", "30000.5", "0.25"), ("USD", "1", "7500")]);
    let heard = world.hear(&mut client);
    assert_eq!(heard.len(), 1, "an asset that did not trade has no entry: {heard:?}");
    let entry = &heard[0].entries()[0];
    assert_eq!((heard[0].get(35), heard[0].get(5083), heard[0].get(5084)), (Some("X"), Some("1"), Some("0")));
    let found = [269, 278, 55, 270, 271].map(|tag| entry[&tag].as_str());
    assert_eq!(found, ["2", "1", "BTC@main", "30000.5", "0.25"]);
    let root = "1f".repeat(32);
    let text = format!(
        "block 1: 11 transactions, 12 pairs, 13 offers traded, gap 14 ppb, unserved 15 ppb, 16 set aside, state root {root}"
    );
    assert_eq!(entry[&58], text);
    world.block(1, &[("BTC", "30000.5", "0.25")]);
    world.batch_terms(BatchPhase::Open, INTERVAL_NS);
    assert!(world.hear(&mut client).is_empty(), "it is known");
}

#[test]
fn a_batch_markets_assets_are_securities_with_its_phase() {
    for version in ["FIX.4.2", "FIX.4.4", "FIX.5.0SP2"] {
        let (mut world, mut client) = ready(version);
        world.has_batch_market();
        if version != "FIX.4.2" {
            let list = one(&mut world, &mut client, "x", "320=l|559=4|");
            assert_eq!((list.get(560), list.get(146)), (Some("0"), Some("5")), "two instruments, three assets: {list:?}");
            let one_of = one(&mut world, &mut client, "x", "320=l|559=0|55=BTC@main|");
            assert_eq!((one_of.get(146), one_of.get(55), one_of.get(15)), (Some("1"), Some("BTC@main"), Some("USD")));
            assert_eq!(one_of.get(58), Some("batch market main: BTC in USD"));
        }
        world.send(&mut client, "e", "324=s|55=BTC@main|263=1|");
        world.batch_terms(BatchPhase::Closed, INTERVAL_NS);
        assert!(world.hear(&mut client).is_empty(), "its last price is not known");
        world.block(1, &[("BTC", "30000.5", "0.25")]);
        let heard = world.hear(&mut client);
        assert_eq!((heard.len(), heard[0].get(35), heard[0].get(55)), (1, Some("f"), Some("BTC@main")));
        assert_eq!((heard[0].get(326), heard[0].get(31)), (Some("18"), Some("30000.5")));
        world.block(2, &[("BTC", "30001", "0.5")]);
        world.batch_terms(BatchPhase::Closed, INTERVAL_NS);
        assert!(world.hear(&mut client).is_empty(), "that is no news of the phase");
        world.batch_terms(BatchPhase::Open, INTERVAL_NS);
        let heard = world.hear(&mut client);
        assert_eq!((heard.len(), heard[0].get(326), heard[0].get(31)), (1, Some("17"), Some("30001")));
        // FIX 4.2 has no Text in f.
        assert_eq!(heard[0].get(58), (version != "FIX.4.2").then_some("open, interval 500 ms"));
        world.batch_terms(BatchPhase::Open, 2_500_000);
        let heard = world.hear(&mut client);
        let texts: Vec<_> = heard.iter().map(|message| (message.get(326), message.get(58))).collect();
        let expected = [(Some("17"), Some("open, interval 2.5 ms"))];
        assert_eq!(texts, expected[usize::from(version == "FIX.4.2")..], "{version}");
        world.batch_terms(BatchPhase::Closed, 2_500_000);
        assert_eq!(world.hear(&mut client)[0].get(326), Some("18"), "{version}");
        // The feeds begin again.
        world.lose_feeds();
        world.batch_terms(BatchPhase::Open, INTERVAL_NS);
        world.block(2, &[("BTC", "30001", "0.5")]);
        assert_eq!(world.hear(&mut client).len(), 1);
        world.send(&mut client, "e", "324=s|55=BTC@main|263=2|");
        assert_eq!(world.needed(), 0);
        let none = one(&mut world, &mut client, "e", "324=s|55=XYZ@main|263=0|");
        assert_eq!((none.get(35), none.get(380)), (Some("j"), Some("2")));
    }
}

#[test]
fn securities_and_their_phases_are_told() {
    for version in ["FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"] {
        let (mut world, mut client) = ready(version);
        let list = one(&mut world, &mut client, "x", "320=l|559=4|");
        assert_eq!((list.get(35), list.get(560), list.get(146)), (Some("y"), Some("0"), Some("2")));
        let text = list.get(58).unwrap();
        let (first, last) = ("tick 0.5, lot 0.001, base BTC, price-time, ", ", reference price 50.0");
        assert!(text.starts_with(first) && text.ends_with(last), "{text}");
        assert_eq!(one(&mut world, &mut client, "x", "320=l|559=0|55=ETH/USD|").get(560), Some("2"));
        let status = one(&mut world, &mut client, "e", "324=s|55=BTC1/USD|263=1|");
        assert_eq!((status.get(35), status.get(326), status.get(625)), (Some("f"), Some("17"), Some("3")));
        world.send(&mut client, "g", "335=g|263=1|");
        let phases = world.hear(&mut client);
        assert_eq!(phases.iter().filter(|message| message.get(35) == Some("h") && message.get(340) == Some("2")).count(), 2);
        world.phase(1, TradingPhase::Halt);
        world.publish(1, false);
        let heard = world.hear(&mut client);
        let found: Vec<_> = heard.iter().map(|message| (message.get(35), message.get(326).or(message.get(340)))).collect();
        assert_eq!(found, [(Some("f"), Some("2")), (Some("h"), Some("1"))]);
        // What else happens that day is no news of the phase.
        world.publish(1, false);
        assert!(world.hear(&mut client).is_empty());
        world.send(&mut client, "e", "324=s|55=BTC1/USD|263=2|");
        world.send(&mut client, "g", "335=g|263=2|");
        assert_eq!((world.hear(&mut client).len(), world.needed()), (0, 0));
    }
}

#[test]
fn a_halt_says_whether_the_price_band_or_the_operator_caused_it() {
    for version in ["FIX.4.2", "FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"] {
        let mut world = World::new(1);
        let mut client = world.connect(1, version);
        assert_eq!(world.hear(&mut client)[0].get(35), Some("A"));
        let said = |message: &Received| [35, 326, 340, 1174, 58].map(|tag| message.get(tag).map(str::to_owned));
        let expected = |status, session, event: Option<&str>, text| {
            let event = event.filter(|_| ["FIX.5.0SP1", "FIX.5.0SP2"].contains(&version));
            // FIX 4.2 has no Text in f.
            let text_of_status = Some(text).filter(|_| version != "FIX.4.2");
            let of_status = [Some("f"), Some(status), None, event, text_of_status];
            let of_session = [Some("h"), None, Some(session), None, Some(text)];
            [of_status, of_session].map(|fields| fields.map(|field| field.map(str::to_owned)))
        };
        let first = ["e", "g"].map(|kind| {
            let body = if kind == "e" { "324=s|55=BTC0/USD|263=1|" } else { "335=g|263=1|" };
            said(&one(&mut world, &mut client, kind, body))
        });
        assert_eq!(first, expected("17", "2", None, "continuous, by the operator"), "{version}");
        for (id, side, price) in [(1, Side::Sell, 190), (2, Side::Buy, 190), (3, Side::Sell, 300), (4, Side::Buy, 300)] {
            world.order(0, id, side, price, 1);
        }
        world.publish(0, false);
        let halted = expected("2", "1", Some("3"), "halt, by the price band");
        assert_eq!(world.hear(&mut client).iter().map(said).collect::<Vec<_>>(), halted, "{version}");
        let later = one(&mut world, &mut client, "e", "324=later|55=BTC0/USD|263=0|");
        assert_eq!(said(&later), halted[0], "{version}: as long as the halt lasts");
        // Both changes are in one publication.
        world.phase(0, TradingPhase::Continuous);
        world.phase(0, TradingPhase::Halt);
        world.publish(0, false);
        let halted = expected("2", "1", None, "halt, by the operator");
        assert_eq!(world.hear(&mut client).iter().map(said).collect::<Vec<_>>(), halted, "{version}");
    }
}

/// FIX 4.2 has no SecurityListRequest(x).
#[test]
fn securities_of_fix_4_2_come_as_definitions() {
    let (mut world, mut client) = ready("FIX.4.2");
    world.has_batch_market();
    world.send(&mut client, "c", "320=l|321=3|");
    let heard = world.hear(&mut client);
    let found: Vec<_> = heard.iter().map(|message| [35, 320, 322, 323, 393, 15, 55].map(|tag| message.get(tag).unwrap())).collect();
    let answers = [("l-1", "BTC0/USD"), ("l-2", "BTC1/USD"), ("l-3", "USD@main"), ("l-4", "BTC@main"), ("l-5", "ETH@main")];
    assert_eq!(found, answers.map(|(answer, symbol)| ["d", "l", answer, "4", "5", "USD", symbol]));
    let text = heard[0].get(58).unwrap();
    assert!(text.starts_with("tick 0.5, lot 0.001, base BTC, price-time, "), "{text}");
    assert_eq!(heard[3].get(58), Some("batch market main: BTC in USD"));
    for (body, kind, symbol) in [
        ("320=o|321=3|55=BTC1/USD|", "4", Some("BTC1/USD")),
        ("320=o|321=0|55=BTC1/USD|", "1", Some("BTC1/USD")),
        ("320=o|321=0|55=ETH@main|", "1", Some("ETH@main")),
        ("320=o|321=0|55=ETH/USD|", "6", None),
        ("320=o|321=3|55=XYZ@main|", "6", None),
        ("320=o|321=0|", "5", None),
        ("320=o|321=1|55=BTC1/USD|", "5", None),
        ("320=o|321=2|", "5", None),
    ] {
        let answer = one(&mut world, &mut client, "c", body);
        let total = if symbol.is_some() { "1" } else { "0" };
        let found = [35, 322, 323, 393].map(|tag| answer.get(tag).unwrap());
        assert_eq!((found, answer.get(55)), (["d", "o-1", kind, total], symbol), "{body}");
        let text = answer.get(58).unwrap();
        let says = ["no such instrument", "SecurityRequestType(321) must be"][usize::from(kind == "5")];
        assert!(symbol.is_some() || text.contains(says), "{body}: {text}");
    }
    // What its version does not have.
    for body in ["320=o|", "321=3|", "320=o|321=4|", "320=o|321=3|263=1|"] {
        assert_eq!(one(&mut world, &mut client, "c", body).get(35), Some("3"), "{body}");
    }
    let long = format!("320={}|321=3|", "x".repeat(REQUEST_ID_BYTES_MAX + 1));
    let refused = one(&mut world, &mut client, "c", &long);
    assert!(refused.get(35) == Some("j") && refused.get(58).unwrap().contains("SecurityReqID(320)"), "{refused:?}");
}

/// They ask for lists by SecurityListRequest(x).
#[test]
fn later_versions_get_single_definitions() {
    for version in ["FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"] {
        let (mut world, mut client) = ready(version);
        let found = one(&mut world, &mut client, "c", "320=o|321=0|55=BTC1/USD|263=0|");
        assert_eq!([35, 323, 55, 15].map(|tag| found.get(tag).unwrap()), ["d", "1", "BTC1/USD", "USD"], "{version}");
        assert!(found.get(58).unwrap().starts_with("tick 0.5, lot 0.001, "), "{version}: {found:?}");
        assert_eq!(one(&mut world, &mut client, "c", "320=o|321=0|55=ETH/USD|").get(323), Some("6"), "{version}");
        for body in ["320=o|321=3|", "320=o|321=0|", "320=o|321=0|55=BTC1/USD|263=1|"] {
            let refused = one(&mut world, &mut client, "c", body);
            let text = refused.get(58).unwrap();
            assert!(refused.get(323) == Some("5") && text.contains("SecurityListRequest(x)"), "{version} {body}: {text}");
        }
    }
}

/// More than a client may leave unread.
#[test]
fn long_lists_come_as_they_are_read() {
    const ASKED: usize = 20;
    for (version, msg_type, body, each) in [("FIX.4.2", "c", "321=3", 100), ("FIX.4.4", "x", "559=4", 1)] {
        let mut world = World::new(100);
        let mut client = world.connect(1, version);
        world.hear(&mut client);
        for id in 0..ASKED {
            world.send(&mut client, msg_type, &format!("320={id}|{body}|"));
        }
        let waits = world.server.output(1).len();
        assert!((OUTPUT_CONFLATES_BYTES..OUTPUT_CONFLATES_BYTES + (32 << 10)).contains(&waits), "{version}: {waits}");
        let heard = world.hear(&mut client);
        let ids: Vec<_> = heard.iter().map(|message| message.get(320).unwrap().to_owned()).collect();
        let expected: Vec<_> = (0..ASKED).flat_map(|id| std::iter::repeat_n(id.to_string(), each)).collect();
        assert_eq!(ids, expected, "{version}");
        // A client that asks for more than may wait is refused, and gets what is on its way.
        for id in 0..2 * REQUESTS_MAX {
            world.send(&mut client, msg_type, &format!("320={id}|{body}|"));
        }
        let (refused, lists): (Vec<_>, Vec<_>) =
            world.hear(&mut client).into_iter().partition(|message| message.get(35) == Some("j"));
        assert!(!refused.is_empty() && refused.iter().all(|message| message.get(58).unwrap().contains("256")), "{version}");
        assert_eq!(lists.len(), (2 * REQUESTS_MAX - refused.len()) * each, "{version}");
        assert_eq!(one(&mut world, &mut client, msg_type, &format!("320=x|{}55=BTC7/USD|", single(msg_type))).get(320), Some("x"));
    }
}

fn list_fields(message: &Received) -> [Option<&str>; 6] {
    [35, 320, 322, 560, 146, 55].map(|tag| message.get(tag))
}

/// Under the id of the request, until it ends.
#[test]
fn what_is_added_to_a_list_comes_to_those_who_asked_for_updates() {
    for version in ["FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"] {
        let (mut world, mut client) = ready(version);
        let all = "320=l|559=4|263=1|";
        let first = one(&mut world, &mut client, "x", all);
        assert_eq!(list_fields(&first), ["y", "l", "l-1", "0", "2", "BTC0/USD"].map(Some), "{version}");
        assert_eq!(world.needed(), 0, "no market is read for it");
        let taken = one(&mut world, &mut client, "x", all);
        assert!(taken.get(35) == Some("j") && taken.get(58).unwrap().contains("lasts"), "{taken:?}");
        // One that is not there yet.
        let none = one(&mut world, &mut client, "x", "320=o|559=0|55=BTC3/USD|263=1|");
        assert_eq!((none.get(560), none.get(146)), (Some("2"), None), "{version}");
        world.list(2);
        let heard = world.hear(&mut client);
        assert_eq!(heard.len(), 1, "{version}: {heard:?}");
        assert_eq!(list_fields(&heard[0]), ["y", "l", "l-2", "0", "1", "BTC2/USD"].map(Some), "{version}");
        let fragments = if version == "FIX.4.3" { (None, None) } else { (Some("1"), Some("Y")) };
        assert_eq!((heard[0].get(393), heard[0].get(893)), fragments, "{version}");
        world.list(3);
        let heard = world.hear(&mut client);
        let found: Vec<_> = heard.iter().map(list_fields).collect();
        let of = |id, answer| ["y", id, answer, "0", "1", "BTC3/USD"].map(Some);
        assert_eq!(found, [of("l", "l-3"), of("o", "o-2")], "{version}");
        world.has_batch_market();
        let heard = world.hear(&mut client);
        assert_eq!(heard.len(), 1, "{version}: {heard:?}");
        assert_eq!(list_fields(&heard[0]), ["y", "l", "l-4", "0", "3", "USD@main"].map(Some), "{version}");
        world.has_batch_market();
        assert!(world.hear(&mut client).is_empty(), "nothing is new");
        for end in ["320=l|559=4|263=2|", "320=o|559=0|263=2|"] {
            world.send(&mut client, "x", end);
            assert!(world.hear(&mut client).is_empty(), "{version}");
            let unknown = one(&mut world, &mut client, "x", end);
            assert_eq!((unknown.get(35), unknown.get(380)), (Some("j"), Some("1")), "{version}");
        }
        world.list(4);
        assert!(world.hear(&mut client).is_empty(), "{version}: it has ended");
        for at in 0..REQUESTS_MAX {
            assert_eq!(one(&mut world, &mut client, "x", &format!("320={at}|559=4|263=1|")).get(35), Some("y"));
        }
        let refused = one(&mut world, &mut client, "x", all);
        assert!(refused.get(35) == Some("j") && refused.get(58).unwrap().contains("256"), "the limit is said: {refused:?}");
    }
}

/// In one list, once it has read what waits.
#[test]
fn a_slow_reader_of_a_list_gets_what_was_added_meanwhile() {
    let mut world = World::new(100);
    let mut client = world.connect(1, "FIX.4.4");
    world.hear(&mut client);
    world.send(&mut client, "x", "320=s|559=4|263=1|");
    for id in 0..20 {
        world.send(&mut client, "x", &format!("320={id}|559=4|"));
    }
    let waits = world.server.output(1).len();
    world.list(100);
    world.list(101);
    assert_eq!(world.server.output(1).len(), waits);
    let heard = world.hear(&mut client);
    let found: Vec<_> = heard.iter().filter(|message| message.get(320) == Some("s")).map(list_fields).collect();
    let of = |answer, count, symbol| ["y", "s", answer, "0", count, symbol].map(Some);
    assert_eq!(found, [of("s-1", "100", "BTC0/USD"), of("s-2", "2", "BTC100/USD")]);
}

/// How one security is asked for.
fn single(msg_type: &str) -> &'static str {
    if msg_type == "c" { "321=0|" } else { "559=0|" }
}

#[test]
fn whatever_is_asked_nothing_is_left_when_the_connections_are_gone() {
    const VALUES: [&str; 16] =
        ["0", "1", "2", "3", "A", "B", "Q", "N", "Y", "", "*", "BTC0/USD", "BTC1/USD", "BTC@main", "-1", "99999999999999999999"];
    const VERSIONS: [&str; 6] = ["FIX.4.2", "FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"];
    const TAGS: [i32; 19] = [262, 263, 264, 265, 266, 267, 269, 269, 146, 55, 55, 320, 321, 559, 324, 335, 336, 547, 5083];
    let mut random = Random::new(3);
    let mut world = World::new(2);
    world.has_batch_market();
    for round in 0..60_u64 {
        let version = VERSIONS[usize::try_from(random.below(6)).unwrap()];
        let mut client = world.connect(round, version);
        world.hear(&mut client);
        let mut draw = |from: usize| usize::try_from(random.below(from as u64)).unwrap();
        for step in 0..60 {
            let kind = ["V", "V", "V", "e", "g", "x", "c", "D"][draw(8)];
            let body: String = if draw(3) == 0 {
                (0..draw(12)).map(|_| format!("{}={}|", TAGS[draw(19)], VALUES[draw(16)])).collect()
            } else {
                // Nearly right.
                let (id, lasting, symbol) = (draw(6), draw(3), VALUES[10 + draw(4)]);
                let market = format!("264={}|265={}|267=2|269={}|269=2|146=1|55={symbol}|", draw(4), draw(2), VALUES[draw(7)]);
                match kind {
                    "V" => format!("262={id}|263={lasting}|{market}"),
                    "e" => format!("324={id}|55={symbol}|263={lasting}|"),
                    "g" => format!("335={id}|263={lasting}|"),
                    "c" => format!("320={id}|321={}|55={symbol}|", draw(4)),
                    _ => format!("320={id}|559={}|263={lasting}|", draw(6)),
                }
            };
            let mut bytes = client.message(world.now_ns, kind, &body);
            if draw(40) == 0 {
                let at = draw(bytes.len());
                bytes[at] = bytes[at].wrapping_add(1);
            }
            world.send_bytes(&client, &bytes);
            world.order(0, round * 1_000 + step, Side::Buy, 90 + i64::try_from(draw(9)).unwrap(), 1);
            world.publish(u32::try_from(draw(2)).unwrap(), draw(9) == 0);
            world.block(round * 1_000 + step, &[("BTC", "30000", "1")]);
            if draw(30) == 0 {
                world.lose_feeds();
            }
            if draw(2) == 0 {
                world.server.consume(round, 1_000_000);
            }
        }
        world.server.on_disconnected(round);
        world.feed_new();
        assert_eq!((world.needed(), world.server.counts()), (0, (0, 0)), "round {round}");
    }
}

#[test]
fn who_asks_too_often_is_refused_and_then_logged_out() {
    let (mut world, mut client) = ready("FIX.4.4");
    world.is_throttled = true;
    let rejected = one(&mut world, &mut client, "V", "262=a|263=0|264=1|267=1|269=0|146=1|55=BTC0/USD|");
    assert_eq!((rejected.get(35), rejected.get(281)), (Some("Y"), Some("2")));
    for _ in 0..300 {
        world.send(&mut client, "x", "320=l|559=4|");
    }
    assert_eq!(world.hear(&mut client).pop().unwrap().get(35), Some("5"));
    assert!(world.server.is_over(1));
}

#[test]
fn logons_without_a_key_or_with_old_numbers_are_refused() {
    let mut world = World::new(1);
    let token = key().to_token().to_string();
    let (name, secret) = token.split_once('.').unwrap();
    for (id, body, says) in [
        (1, "98=0|108=30|141=Y|".to_owned(), "Username(553)"),
        (2, format!("98=0|108=30|141=Y|553={name}|554=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA|"), "104"),
        (3, format!("98=0|108=30|553={name}|554={secret}|"), "ResetSeqNumFlag"),
    ] {
        world.server.connect(id, walras_fix_orders::Secrecy::Private);
        let mut client = Client::of(id, if id == 3 { 7 } else { 1 });
        world.send(&mut client, "A", &body);
        let last = world.hear(&mut client).pop().unwrap();
        assert!(last.get(35) == Some("5") && last.get(58).unwrap().contains(says), "{id}: {last:?}");
        assert!(world.server.is_over(id));
    }
    // What is none of FIX.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 100_000], &b"8=FIX.4.4\x019=99999999\x01"[..]] {
        world.server.connect(9, walras_fix_orders::Secrecy::Private);
        let client = Client::of(9, 1);
        world.send_bytes(&client, bytes);
        world.now_ns += 11_000_000_000;
        world.server.at(world.now_ns - crate::world::DAY_NS, world.now_ns);
        world.server.on_timer();
        assert!(world.server.is_over(9));
        world.server.remove(9);
    }
}
