//! What messages do, and what is answered.

use walras_fix_orders::Secrecy;

use crate::client::{Client, Received};
use crate::world::{World, password, signing_key};

fn two() -> (World, Vec<Client>) {
    let mut world = World::new();
    let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0)), Client::new("BOB", "WALRAS", &password(1))];
    for at in 0..2 {
        world.connect(at, &mut clients[at], 0, "");
    }
    world.settle(&mut clients);
    assert!(clients.iter().all(|client| client.is_logged_on), "{:?}", clients[0].logouts);
    (world, clients)
}

fn send(world: &mut World, clients: &mut [Client], at: usize, msg_type: &str, body: &str) {
    clients[at].send(world.now_ns, msg_type, body);
    world.settle(clients);
    assert!(clients[at].logouts.is_empty(), "{body}: {:?}", clients[at].logouts);
}

fn fields<'m>(message: &'m Received, tags: &[u32]) -> Vec<&'m str> {
    tags.iter().map(|tag| message.get(*tag).unwrap_or("-")).collect()
}

const STATE: &[u32] = &[35, 11, 41, 150, 39, 38, 151, 14, 6];

#[test]
fn an_order_is_accepted_filled_replaced_and_cancelled() {
    let (mut world, mut clients) = two();
    send(&mut world, &mut clients, 0, "D", "11=A1|55=BTC/USD|54=2|38=0.010|40=2|44=30000|59=1|");
    assert_eq!(fields(clients[0].last(), STATE), ["8", "A1", "-", "0", "0", "0.010", "0.010", "0.000", "0"]);
    assert_eq!(fields(clients[0].last(), &[1, 55, 54, 40, 44, 59]), ["0", "BTC/USD", "2", "2", "30000.0", "1"]);
    send(&mut world, &mut clients, 1, "D", "11=order of Bob, number 1|55=BTC/USD|54=1|38=0.004|40=1|");
    let bob: Vec<&Received> = clients[1].executions().collect();
    assert_eq!(fields(bob[1], STATE), ["8", "order of Bob, number 1", "-", "F", "2", "0.004", "0.000", "0.004", "30000.0"]);
    assert_eq!(fields(bob[1], &[32, 31, 12, 13, 479, 851]), ["0.004", "30000.0", "0.012000", "3", "USD", "2"]);
    assert_eq!(fields(clients[0].last(), STATE), ["8", "A1", "-", "F", "1", "0.010", "0.006", "0.004", "30000.0"]);
    send(&mut world, &mut clients, 0, "G", "11=A2|41=A1|55=BTC/USD|54=2|38=0.008|40=2|44=30001.5|");
    assert_eq!(fields(clients[0].last(), STATE), ["8", "A2", "A1", "5", "1", "0.008", "0.004", "0.004", "30000.0"]);
    assert_eq!(clients[0].last().get(44), Some("30001.5"));
    // By its new name, and not by another one.
    send(&mut world, &mut clients, 0, "F", "11=A3|41=NONE|55=BTC/USD|54=2|");
    assert_eq!(fields(clients[0].last(), &[35, 11, 41, 37, 39, 434, 102]), ["9", "A3", "NONE", "NONE", "8", "1", "1"]);
    assert!(clients[0].last().text(58).contains("UnknownOrder (4)"));
    send(&mut world, &mut clients, 0, "H", "11=A2|55=BTC/USD|54=2|");
    assert_eq!(fields(clients[0].last(), STATE), ["8", "A2", "-", "I", "1", "0.008", "0.004", "0.004", "30000.0"]);
    send(&mut world, &mut clients, 0, "F", "11=A4|41=A2|55=BTC/USD|54=2|");
    assert_eq!(fields(clients[0].last(), STATE), ["8", "A4", "A2", "4", "4", "0.008", "0.000", "0.004", "30000.0"]);
    assert_eq!((world.open_orders(0), world.position(0), world.position(1)), (0, -4, 4));
    send(&mut world, &mut clients, 0, "H", "11=nothing|55=BTC/USD|54=2|");
    assert_eq!(fields(clients[0].last(), &[35, 11, 150, 39]), ["8", "nothing", "I", "8"]);
}

#[test]
fn what_cannot_be_an_order_is_rejected_with_its_reason() {
    let (mut world, mut clients) = two();
    for (body, reason, says) in [
        ("55=ETH/USD|54=1|38=1|40=2|44=1|", "1", "UnknownInstrument (2)"),
        ("55=BTC/USD|54=1|38=0.0005|40=2|44=1|", "13", "whole multiple of 0.001"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1.3|", "99", "whole multiple of 0.5"),
        ("55=BTC/USD|54=1|38=1|40=2|", "99", "Price(44) is missing"),
        ("55=BTC/USD|54=5|38=1|40=2|44=1|", "99", "Side(54) must be"),
        ("55=BTC/USD|54=1|38=1|40=P|44=1|", "99", "OrdType(40) must be"),
        ("55=BTC/USD|54=1|38=1|40=J|44=1|", "99", "StopPx(99) is missing"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1|583=nothing|", "11", "LinkInvalid"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1|59=2|", "99", "TimeInForce(59) must be"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1|59=6|", "99", "ExpireTime(126)"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1|18=1|", "99", "ExecInst(18)"),
        ("55=BTC/USD|54=1|38=100000|40=2|44=30000|", "3", "InsufficientFunds (60)"),
        ("55=BTC/USD|54=1|38=1|40=2|44=1|59=4|", "99", "FillOrKillUnfillable"),
        ("55=BTC/USD|54=1|38=1|40=2|44=30000|111=2|18=6|59=3|", "11", "PostOnlyInvalid"),
    ] {
        send(&mut world, &mut clients, 0, "D", &format!("11=x|{body}"));
        let last = clients[0].last();
        assert_eq!(fields(last, &[35, 11, 150, 39, 103]), ["8", "x", "8", "8", reason], "{body}: {last:?}");
        assert!(last.text(58).contains(says), "{body}: {last:?}");
    }
    assert_eq!(world.open_orders(0), 0);
}

#[test]
fn every_order_type_and_duration_of_the_engine_can_be_asked() {
    let (mut world, mut clients) = two();
    send(&mut world, &mut clients, 1, "D", "11=b|55=BTC/USD|54=2|38=0.001|40=2|44=30000|59=1|");
    send(&mut world, &mut clients, 0, "D", "11=t|55=BTC/USD|54=1|38=0.001|40=2|44=30000|59=3|");
    for (body, tags, values) in [
        ("40=2|44=29000|18=6|", &[40, 44, 59][..], &["2", "29000.0", "0"][..]),
        ("40=2|44=29000|111=0.002|", &[40, 44], &["2", "29000.0"]),
        ("40=2|44=29000|111=0|59=1|", &[40, 59], &["2", "1"]),
        ("40=3|99=31000|59=1|", &[40, 99, 44], &["3", "31000.0", "-"]),
        ("40=4|99=31000|44=31001|59=1|", &[40, 99, 44], &["4", "31000.0", "31001.0"]),
        ("40=J|99=29500|59=1|", &[40, 99, 44], &["J", "29500.0", "-"]),
        ("40=2|44=29000|59=6|126=20260102-00:00:00|", &[40, 59], &["2", "6"]),
    ] {
        send(&mut world, &mut clients, 0, "D", &format!("11=o{}|55=BTC/USD|54=1|38=0.01|{body}", values.join("")));
        let last = clients[0].last();
        assert_eq!(fields(last, &[150, 39]), ["0", "0"], "{body}: {last:?}");
        assert_eq!(fields(last, tags), values, "{body}");
    }
    for (body, tags, values) in [
        ("40=3|18=a|211=150|59=1|", &[40, 18, 211, 836, 99, 44][..], &["3", "a", "300", "2", "-", "-"][..]),
        ("40=3|18=a|211=25|836=2|59=1|", &[40, 18, 211, 836], &["3", "a", "25", "2"]),
        ("40=4|18=a|211=12.5|836=1|44=30900|59=1|", &[40, 211, 836, 44], &["4", "12.50", "1", "30900.0"]),
    ] {
        send(&mut world, &mut clients, 0, "D", &format!("11=o{}|55=BTC/USD|54=1|38=0.01|{body}", values.join("")));
        let last = clients[0].last();
        assert_eq!(fields(last, &[150, 39]), ["0", "0"], "{body}: {last:?}");
        assert_eq!(fields(last, tags), values, "{body}");
    }
    for (body, says) in [
        ("40=3|18=a|59=1|", "PegOffsetValue(211) is missing"),
        ("40=3|18=a|211=1|99=31000|59=1|", "StopPx(99) does not go with"),
        ("40=2|18=a|211=1|44=29000|59=1|", "goes with OrdType(40) 3"),
        ("40=3|18=a|211=1|836=3|59=1|", "PegOffsetType(836) must be"),
        ("40=3|18=a|211=1.234|836=1|59=1|", "TrailInvalid"),
        ("40=3|18=a|211=0|836=2|59=1|", "TrailInvalid"),
    ] {
        send(&mut world, &mut clients, 0, "D", &format!("11=x|55=BTC/USD|54=1|38=0.01|{body}"));
        let last = clients[0].last();
        assert_eq!(fields(last, &[35, 11, 150, 39]), ["8", "x", "8", "8"], "{body}: {last:?}");
        assert!(last.text(58).contains(says), "{body}: {last:?}");
    }
    assert_eq!(world.open_orders(0), 10);
    let before = clients[0].received.len();
    send(&mut world, &mut clients, 0, "q", "11=m1|530=1|55=BTC/USD|54=1|");
    // Then the reports of the orders.
    let said = &clients[0].received[before..];
    assert_eq!((fields(&said[0], &[35, 11, 530, 531]), said.len()), (vec!["r", "m1", "1", "1"], 11));
    assert_eq!(world.open_orders(0), 0);
    send(&mut world, &mut clients, 0, "q", "11=m2|530=7|");
    assert_eq!(fields(clients[0].last(), &[35, 11, 530, 531]), ["r", "m2", "7", "7"]);
    send(&mut world, &mut clients, 0, "q", "11=m3|530=3|");
    assert_eq!(fields(clients[0].last(), &[35, 11, 530, 531, 532]), ["r", "m3", "3", "0", "99"]);
}

#[test]
fn an_order_that_is_linked_cancels_the_other() {
    let (mut world, mut clients) = two();
    send(&mut world, &mut clients, 0, "D", "11=tp|55=BTC/USD|54=1|38=0.01|40=2|44=29000|59=1|");
    send(&mut world, &mut clients, 0, "D", "11=no|55=BTC/USD|54=1|38=0.02|40=3|99=31000|59=1|583=tp|");
    assert_eq!(fields(clients[0].last(), &[35, 150, 39, 103]), ["8", "8", "8", "11"]);
    assert!(clients[0].last().text(58).contains("LinkInvalid"));
    send(&mut world, &mut clients, 0, "D", "11=sl|55=BTC/USD|54=1|38=0.01|40=3|99=31000|59=1|583=tp|");
    assert_eq!(fields(clients[0].last(), &[11, 150, 39]), ["sl", "0", "0"]);
    send(&mut world, &mut clients, 0, "G", "11=tp2|41=tp|55=BTC/USD|54=1|38=0.01|40=2|44=29001|");
    assert!(clients[0].last().text(58).contains("LinkedOrderFixed"), "{:?}", clients[0].last());
    send(&mut world, &mut clients, 1, "D", "11=b|55=BTC/USD|54=2|38=0.004|40=2|44=29000|59=3|");
    let last = clients[0].last();
    assert_eq!(fields(last, &[11, 150, 39, 151]), ["sl", "4", "4", "0.000"], "a part of one cancels the other");
    assert!(last.text(58).contains("linked"), "{last:?}");
    assert_eq!(world.open_orders(0), 1);
}

#[test]
fn exits_stand_for_what_their_entry_has_filled() {
    let (mut world, mut clients) = two();
    for body in ["11=tp|40=J|99=29500|", "11=sl|40=3|99=28000|"] {
        send(&mut world, &mut clients, 0, "D", &format!("55=BTC/USD|54=2|38=0.01|59=1|583=in|77=C|{body}"));
        assert_eq!(fields(clients[0].last(), &[150, 39, 151]), ["0", "0", "0.010"], "{body}");
    }
    send(&mut world, &mut clients, 0, "D", "11=in|55=BTC/USD|54=1|38=0.01|40=2|44=29000|59=1|");
    assert_eq!(fields(clients[0].last(), &[11, 150, 39]), ["in", "0", "0"]);
    let before = clients[0].received.len();
    send(&mut world, &mut clients, 1, "D", "11=b|55=BTC/USD|54=2|38=0.004|40=2|44=29000|59=3|");
    let said: Vec<_> = clients[0].received[before..].iter().map(|one| fields(one, &[11, 150, 151])).collect();
    assert_eq!(said, [["in", "F", "0.006"], ["tp", "5", "0.004"], ["sl", "5", "0.004"]]);
    send(&mut world, &mut clients, 0, "F", "11=c|41=sl|55=BTC/USD|54=2|");
    assert_eq!(world.open_orders(0), 0, "an entry never stands without its exits");
    send(&mut world, &mut clients, 0, "D", "11=x|55=BTC/USD|54=2|38=0.01|40=2|44=31000|59=1|583=next|77=C|");
    assert!(clients[0].last().text(58).contains("LinkInvalid"), "{:?}", clients[0].last());
}

/// The client checks each message against the dictionary of its version.
#[test]
fn other_versions_have_their_own_words() {
    let fixt = ["7", "8", "9"].map(|appl_ver_id| ("FIXT.1.1", appl_ver_id));
    let before = ["FIX.4.2", "FIX.4.3", "FIX.4.4"].map(|begin_string| (begin_string, ""));
    for (begin_string, appl_ver_id) in before.into_iter().chain(fixt) {
        let is_42 = begin_string == "FIX.4.2";
        let mut world = World::new();
        let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0)), Client::new("BOB", "WALRAS", &password(1))];
        clients[0].begin_string = begin_string.to_owned();
        // NextExpectedMsgSeqNum came with 4.4.
        clients[0].says_next = !matches!(begin_string, "FIX.4.2" | "FIX.4.3");
        if is_42 {
            // It has no Username.
            let key = crate::world::key(0);
            let text =
                format!("walras-v1\nLOGON\n/fix\nFIX.4.2\nALICE\nWALRAS\n1\n{}\n30\nN\n", crate::client::stamp(world.now_ns));
            let raw = format!("{}:{}", key.key_id(), key.sign_bytes(text.as_bytes()));
            clients[0].credentials = format!("95={}|96={raw}|", raw.len());
        }
        let extra = if appl_ver_id.is_empty() { String::new() } else { format!("1137={appl_ver_id}|") };
        world.connect(0, &mut clients[0], 0, &extra);
        world.connect(1, &mut clients[1], 1, "");
        world.settle(&mut clients);
        assert!(clients[0].is_logged_on, "{begin_string}: {:?}", clients[0].logouts);
        send(&mut world, &mut clients, 1, "D", "11=b|55=BTC/USD|54=2|38=0.001|40=2|44=30000|");
        let handling = if matches!(begin_string, "FIX.4.2" | "FIX.4.3") { "21=1|" } else { "" };
        send(&mut world, &mut clients, 0, "D", &format!("11=1|{handling}55=BTC/USD|54=1|38=0.001|40=2|44=30000|"));
        send(&mut world, &mut clients, 0, "D", &format!("11=2|{handling}55=BTC/USD|54=1|38=0.001|40=2|44=30000|59=1|"));
        send(&mut world, &mut clients, 0, "F", "11=3|41=2|55=BTC/USD|54=1|38=0.001|");
        let found: Vec<&str> = clients[0].executions().map(|message| message.text(150)).collect();
        let kinds = if is_42 { ["0", "2", "0", "4"] } else { ["0", "F", "0", "4"] };
        assert_eq!(found, kinds, "{begin_string}: {:?}", clients[0].received);
        assert!(clients[0].executions().all(|message| message.get(20).is_some() == is_42));
        // What is refused: a price, a size and an instrument that there are not, and a cancel of nothing.
        for terms in ["55=BTC/USD|38=0.001|44=30000.1|", "55=BTC/USD|38=0.0001|44=30000|", "55=ETH/USD|38=1|44=1|"] {
            send(&mut world, &mut clients, 0, "D", &format!("11=x|{handling}54=1|40=2|{terms}"));
            assert_eq!(fields(clients[0].last(), &[35, 150, 39]), ["8", "8", "8"], "{begin_string}: {terms}");
        }
        send(&mut world, &mut clients, 0, "F", "11=4|41=none|55=BTC/USD|54=1|38=0.001|");
        assert_eq!(fields(clients[0].last(), &[35, 434]), ["9", "1"], "{begin_string}");
        if !is_42 {
            send(&mut world, &mut clients, 0, "q", "11=5|530=7|");
            assert_eq!(fields(clients[0].last(), &[35, 531]), ["r", "7"], "{begin_string}");
            send(&mut world, &mut clients, 0, "q", "11=6|530=3|");
            assert_eq!(fields(clients[0].last(), &[35, 531]), ["r", "0"], "{begin_string}");
        }
    }
}

#[test]
fn who_logs_on_proves_it() {
    let signed = |world: &World, seq: u64| {
        let key = signing_key();
        let text =
            format!("walras-v1\nLOGON\n/fix\nFIX.4.4\nALICE\nWALRAS\n{seq}\n{}\n30\nN\n1", crate::client::stamp(world.now_ns));
        let signature = key.sign_bytes(text.as_bytes());
        format!("553={}|95={}|96={signature}|", key.key_id(), signature.len())
    };
    let log_on = |secrecy, credentials: &dyn Fn(&World) -> String| {
        let mut world = World::new();
        world.secrecy = secrecy;
        let mut clients = vec![Client::new("ALICE", "WALRAS", &credentials(&world))];
        world.connect(0, &mut clients[0], 0, "");
        world.settle(&mut clients);
        clients.remove(0)
    };
    assert!(log_on(Secrecy::Open, &|world| signed(world, 1)).is_logged_on);
    assert!(log_on(Secrecy::Private, &|_| password(0)).is_logged_on);
    for (secrecy, credentials, says) in [
        (Secrecy::Open, password(0), "use TLS"),
        (Secrecy::Private, String::new(), "Username(553)"),
        (Secrecy::Private, "553=hm_nobody|".to_owned(), "Password(554)"),
        (Secrecy::Private, password(0).replace("554=", "554=!"), "no key of this venue"),
        (Secrecy::Private, password(7), "UnknownKey"),
        (Secrecy::Private, format!("553={}|554=x|", signing_key().key_id()), "stays with its holder"),
    ] {
        let client = log_on(secrecy, &|_| credentials.clone());
        assert!(!client.is_logged_on && client.logouts.len() == 1, "{credentials}");
        assert!(client.logouts[0].contains(says), "{credentials}: {:?}", client.logouts);
    }
    // Of another message: its number is another one.
    let client = log_on(Secrecy::Open, &|world| signed(world, 2));
    assert!(client.logouts[0].contains("SignatureInvalid"), "{:?}", client.logouts);
}

#[test]
fn a_drop_copy_hears_of_all_orders_and_sends_none() {
    let (mut world, mut clients) = two();
    clients.push(Client::new("ALICE", "WALRAS-DROP", &password(0)));
    world.connect(2, &mut clients[2], 0, "");
    world.settle(&mut clients);
    send(&mut world, &mut clients, 0, "D", "11=A1|55=BTC/USD|54=2|38=0.010|40=2|44=30000|59=1|");
    assert_eq!(fields(clients[2].last(), STATE), ["8", "A1", "-", "0", "0", "0.010", "0.010", "0.000", "0"]);
    send(&mut world, &mut clients, 2, "D", "11=A2|55=BTC/USD|54=2|38=0.010|40=2|44=30000|59=1|");
    assert_eq!(fields(clients[2].last(), &[35, 372, 380, 379]), ["j", "D", "6", "A2"]);
    assert_eq!(world.open_orders(0), 1);
}
