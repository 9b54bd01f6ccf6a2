//! What clients call their orders: the same in the log as by any other interface, and the same at every replica.

use walras_fix_orders::{client_order, id_before, id_of};
use walras_types::EngineVersion;
use walras_wire::{Command, OrderCommand};

use crate::client::{Client, Received};
use crate::world::{World, password};

const UUID: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

fn one() -> (World, Vec<Client>) {
    let newest = World::new().version;
    under(newest, newest)
}

/// The connection knows of one version of the engine, and another one is in force.
fn under(known: EngineVersion, in_force: EngineVersion) -> (World, Vec<Client>) {
    let mut world = World::new();
    (world.version, world.in_force) = (known, in_force);
    let mut clients = vec![Client::new("ALICE", "WALRAS", &password(0))];
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    assert!(clients[0].is_logged_on, "{:?}", clients[0].logouts);
    (world, clients)
}

fn sell(name: &str) -> String {
    format!("11={name}|55=BTC/USD|54=2|38=0.001|40=2|44=30000|59=1|")
}

fn send(world: &mut World, clients: &mut [Client], msg_type: &str, body: &str) {
    clients[0].send(world.now_ns, msg_type, body);
    world.settle(clients);
    assert!(clients[0].logouts.is_empty(), "{body}: {:?}", clients[0].logouts);
}

/// The client's message comes into the log, and it hears nothing of that.
fn send_unheard(world: &mut World, client: &mut Client, msg_type: &str, body: &str) {
    client.send(world.now_ns, msg_type, body);
    let bytes = std::mem::take(&mut client.output);
    world.receive(0, &bytes);
    while world.decide() {}
}

/// The replica starts again, and the client goes to another one.
fn fail_over(world: &mut World, clients: &mut [Client]) {
    world.wait(1_000_000_000);
    world.restart(0);
    world.connect(0, &mut clients[0], 1, "");
    world.settle(clients);
    assert!(clients[0].is_logged_on, "{:?}", clients[0].logouts);
}

/// ExecType, ClOrdID and OrigClOrdID of what was said last.
fn last(clients: &[Client]) -> [&str; 3] {
    [150, 11, 41].map(|tag| clients[0].last().get(tag).unwrap_or("-"))
}

#[test]
fn an_order_has_the_name_that_it_has_by_rest() {
    let (mut world, mut clients) = one();
    let longest = "x".repeat(36);
    for text in ["bid-7", UUID, &longest, "77", "18446744073709551615"] {
        send(&mut world, &mut clients, "D", &sell(text));
        assert_eq!(last(&clients), ["0", text, "-"]);
        let order = client_order(text);
        let entered = world.commands.last().unwrap();
        assert_eq!((entered.client_order_id(), entered.name()), (Some(order.id), order.name), "{text}");
    }
    // An exit and its entry, each with its name.
    for (body, text) in [("583=in|77=C|40=3|99=29000|", "stop"), ("40=2|44=31000|583=bid-7|", "other")] {
        send(&mut world, &mut clients, "D", &format!("11={text}|55=BTC/USD|54=2|38=0.001|59=1|{body}"));
        let Some(Command::Order(OrderCommand::NewLinked(linked))) = world.commands.last() else { panic!("{text}") };
        assert_eq!((linked.name(), linked.client_order_id()), (client_order(text).name, id_of(text)));
        assert_eq!(linked.other(), id_of(if text == "stop" { "in" } else { "bid-7" }));
    }
    // Texts that are no names have numbers of their own.
    for text in ["order number 7", &"x".repeat(37)] {
        send(&mut world, &mut clients, "D", &sell(text));
        assert_eq!(last(&clients), ["0", text, "-"]);
        assert!(
            matches!(world.commands.last(), Some(Command::Order(OrderCommand::New(order))) if order.client_order_id == id_of(text))
        );
    }
}

#[test]
fn a_name_is_the_same_at_another_replica_and_in_a_drop_copy() {
    let (mut world, mut clients) = one();
    clients.push(Client::new("ALICE", "WALRAS-DROP", &password(0)));
    world.connect(1, &mut clients[1], 2, "");
    world.settle(&mut clients);
    // Of what the client does not hear here the other replica tells it.
    for text in ["bid-7", UUID, "77"] {
        send_unheard(&mut world, &mut clients[0], "D", &sell(text));
    }
    fail_over(&mut world, &mut clients);
    let names: Vec<&str> = clients[0].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["bid-7", UUID, "77"]);
    send(&mut world, &mut clients, "F", &format!("11=c|41={UUID}|55=BTC/USD|54=2|38=0.001|"));
    assert_eq!(last(&clients), ["4", "c", UUID]);
    let names: Vec<&str> = clients[1].executions().map(|message| message.text(11)).collect();
    assert_eq!(names, ["bid-7", UUID, "77", UUID]);
}

/// Of a text that is no name the log has a number, whose digits stand for it elsewhere. The text leads to the order all the same.
#[test]
fn a_text_that_is_no_name_is_a_number_elsewhere() {
    let (mut world, mut clients) = one();
    let text = "order number 7";
    send_unheard(&mut world, &mut clients[0], "D", &sell(text));
    fail_over(&mut world, &mut clients);
    let digits = id_of(text).0.to_string();
    assert_eq!(last(&clients), ["0", digits.as_str(), "-"]);
    send(&mut world, &mut clients, "G", &format!("11=g|41={text}|55=BTC/USD|54=2|38=0.002|40=2|44=30000|"));
    assert_eq!(last(&clients), ["5", "g", digits.as_str()]);
    send(&mut world, &mut clients, "F", &format!("11=c|41={digits}|55=BTC/USD|54=2|38=0.002|"));
    assert_eq!(last(&clients), ["4", "c", "g"]);
}

/// From version 14 of the engine on the log has the name of an order that is rejected, here or by the engine. Before, short texts come back
/// from their numbers.
#[test]
fn a_rejection_has_its_name_at_another_replica() {
    for (version, text, shown) in [(14, UUID, UUID), (13, "bid-7", "bid-7"), (13, UUID, &*id_before(UUID).0.to_string())] {
        let (mut world, mut clients) = under(EngineVersion(version), EngineVersion(version));
        send_unheard(&mut world, &mut clients[0], "D", &sell(text).replace("44=30000", "44=30000.3"));
        fail_over(&mut world, &mut clients);
        assert_eq!(last(&clients), ["8", shown, "-"], "version {version}: {:?}", clients[0].last());
        send_unheard(&mut world, &mut clients[0], "D", &sell(text).replace("38=0.001", "38=20000000"));
        world.wait(1_000_000_000);
        world.connect(0, &mut clients[0], 2, "");
        world.settle(&mut clients);
        assert_eq!(last(&clients), ["8", shown, "-"], "version {version}");
    }
}

/// Orders from before an upgrade stand under other numbers: their texts lead to them. Until the upgrade is finished all orders enter under
/// these, for a program from before it finds them by no others.
#[test]
fn orders_from_before_names_are_reached_by_their_texts() {
    for text in ["bid-7", UUID] {
        let (mut world, mut clients) = under(EngineVersion(13), EngineVersion(13));
        for _ in 0..2 {
            send(&mut world, &mut clients, "D", &sell(text));
        }
        assert!(
            matches!(world.commands.last(), Some(Command::Order(OrderCommand::New(order))) if order.client_order_id == id_before(text))
        );
        assert!(clients[0].last().text(58).contains("DuplicateClientOrderId"), "{:?}", clients[0].last());
        (world.version, world.in_force) = (EngineVersion(14), EngineVersion(14));
        fail_over(&mut world, &mut clients);
        // Another order of that text would have another number in the log, and be taken there.
        send(&mut world, &mut clients, "D", &sell(text));
        assert!(clients[0].last().text(58).contains("DuplicateClientOrderId"), "{:?}", clients[0].last());
        send(&mut world, &mut clients, "H", &format!("11={text}|55=BTC/USD|54=2|"));
        assert_eq!(clients[0].last().text(39), "0");
        send(&mut world, &mut clients, "F", &format!("11=c1|41={text}|55=BTC/USD|54=2|38=0.001|"));
        assert_eq!((last(&clients)[0], world.open_orders(0)), ("4", 0));
        // Now it is free.
        send(&mut world, &mut clients, "D", &sell(text));
        assert_eq!((last(&clients), world.commands.last().unwrap().name()), (["0", text, "-"], client_order(text).name));
        send(&mut world, &mut clients, "F", &format!("11=c2|41={text}|55=BTC/USD|54=2|38=0.001|"));
        assert_eq!((last(&clients), world.open_orders(0)), (["4", "c2", text], 0));
    }
}

/// The connection knows of a later version than the log: what that does not take is rejected, and the session goes on.
#[test]
fn what_needs_a_later_version_is_rejected() {
    for in_force in [12, 13] {
        let (mut world, mut clients) = under(EngineVersion(14), EngineVersion(in_force));
        let wrong = if in_force == 13 { sell(UUID).replace("44=30000", "44=30000.3") } else { sell(UUID) };
        clients[0].send(world.now_ns, "D", &wrong);
        clients[0].send(world.now_ns, "D", &sell("77"));
        world.settle(&mut clients);
        for _ in 0..3 {
            world.wait(50_000_000);
            world.settle(&mut clients);
        }
        let said: Vec<(&str, &str)> = clients[0].executions().map(|message| (message.text(150), message.text(11))).collect();
        assert_eq!(said, [("8", UUID), ("0", "77")], "{in_force}: {:?}", clients[0].logouts);
        let says = if in_force == 13 { "whole multiple of 0.5" } else { "NeedsLaterVersion" };
        assert!(clients[0].executions().next().unwrap().text(58).contains(says), "{:?}", clients[0].received);
    }
}

fn replace(from: &str, to: &str, price: u32) -> String {
    format!("11={to}|41={from}|55=BTC/USD|54=2|38=0.001|40=2|44={price}|")
}

/// From version 14 of the engine on the log has what a replace calls an order, digits too.
#[test]
fn a_replaced_order_is_called_the_same_at_another_replica_and_in_a_drop_copy() {
    for [second, third] in [["bid-8", UUID], ["1001", "0077"]] {
        let (mut world, mut clients) = one();
        clients.push(Client::new("ALICE", "WALRAS-DROP", &password(0)));
        world.connect(1, &mut clients[1], 2, "");
        world.settle(&mut clients);
        send(&mut world, &mut clients, "D", &sell("bid-7"));
        send(&mut world, &mut clients, "G", &replace("bid-7", second, 30_001));
        send_unheard(&mut world, &mut clients[0], "G", &replace(second, third, 30_002));
        fail_over(&mut world, &mut clients);
        assert_eq!(last(&clients), ["5", third, second]);
        send(&mut world, &mut clients, "H", &format!("11={third}|55=BTC/USD|54=2|"));
        assert_eq!(last(&clients), ["I", third, "-"]);
        // Its ClOrdID is in use, and its earlier one leads to it.
        send(&mut world, &mut clients, "D", &sell(third));
        assert!(clients[0].last().text(58).contains("DuplicateClientOrderId"), "{:?}", clients[0].last());
        send(&mut world, &mut clients, "G", &replace(third, "bid-10", 30_003));
        assert_eq!(last(&clients), ["5", "bid-10", third]);
        send(&mut world, &mut clients, "G", &replace(second, "bid-11", 30_004));
        assert_eq!(last(&clients), ["5", "bid-11", "bid-10"]);
        // To all others it is the order that entered.
        let replaced = world.commands.last().unwrap();
        assert_eq!((replaced.client_order_id(), replaced.name()), (Some(id_of("bid-7")), None));
        send(&mut world, &mut clients, "F", "11=c|41=bid-11|55=BTC/USD|54=2|38=0.001|");
        assert_eq!((last(&clients), world.open_orders(0)), (["4", "c", "bid-11"], 0));
        let copies = clients[1].executions().filter(|message| message.text(150) != "8");
        let copies: Vec<[&str; 2]> = copies.map(|message| [11, 41].map(|tag| message.get(tag).unwrap_or("-"))).collect();
        let replaces = [["bid-7", "-"], [second, "bid-7"], [third, second], ["bid-10", third], ["bid-11", "bid-10"]];
        assert_eq!(copies, [&replaces[..], &[["bid-11", "-"]]].concat());
    }
}

/// A program begins its ClOrdIDs again each day. The day before, an order was replaced.
#[test]
fn a_name_that_is_used_again_leads_to_its_last_order() {
    for fails_over in [false, true] {
        let (mut world, mut clients) = one();
        let cancel = "11=c|41=2|55=BTC/USD|54=2|38=0.001|";
        send(&mut world, &mut clients, "D", &sell("1"));
        send(&mut world, &mut clients, "G", &replace("1", "2", 30_001));
        send(&mut world, &mut clients, "F", cancel);
        assert_eq!((last(&clients), world.open_orders(0)), (["4", "c", "2"], 0));
        for name in ["1", "2"] {
            send(&mut world, &mut clients, "D", &sell(name));
        }
        if fails_over {
            fail_over(&mut world, &mut clients);
        }
        send(&mut world, &mut clients, "F", cancel);
        assert_eq!((last(&clients), world.open_orders(0)), (["4", "c", "2"], 1));
        send(&mut world, &mut clients, "H", "11=1|55=BTC/USD|54=2|");
        assert_eq!((last(&clients), clients[0].last().get(39)), (["I", "1", "-"], Some("0")));
    }
}

/// Its order may be on its way yet.
#[test]
fn a_name_that_a_replace_gave_to_an_order_that_is_gone_can_be_used_at_once() {
    let (mut world, mut clients) = one();
    send(&mut world, &mut clients, "D", &sell("1"));
    send(&mut world, &mut clients, "G", &replace("1", "2", 30_001));
    send(&mut world, &mut clients, "F", "11=c|41=2|55=BTC/USD|54=2|38=0.001|");
    clients[0].send(world.now_ns, "D", &sell("2"));
    send(&mut world, &mut clients, "F", "11=d|41=2|55=BTC/USD|54=2|38=0.001|");
    assert_eq!((last(&clients), world.open_orders(0)), (["4", "d", "2"], 0));
}

/// Reports that are told again have the ClOrdIDs of their time, although the replica knows later ones.
#[test]
fn reports_of_replaces_that_were_lost_come_again_as_they_were() {
    let (mut world, mut clients) = one();
    send(&mut world, &mut clients, "D", &sell("a"));
    for (from, to, price) in [("a", "b", 30_001), ("b", "c", 30_002)] {
        send_unheard(&mut world, &mut clients[0], "G", &replace(from, to, price));
    }
    world.wait(1_000_000_000);
    world.connect(0, &mut clients[0], 0, "");
    world.settle(&mut clients);
    let said: Vec<[&str; 3]> =
        clients[0].executions().map(|message| [150, 11, 41].map(|tag| message.get(tag).unwrap_or("-"))).collect();
    assert_eq!(said, [["0", "a", "-"], ["5", "b", "a"], ["5", "c", "b"]]);
    send(&mut world, &mut clients, "F", "11=d|41=c|55=BTC/USD|54=2|38=0.001|");
    assert_eq!(last(&clients), ["4", "d", "c"]);
}

/// Before version 14, and of a text that is no name, the log has nothing of it: elsewhere the order has the ClOrdID with which it entered.
#[test]
fn a_text_that_the_log_has_not_is_known_where_it_was_given() {
    for (version, text) in [(13, "bid-8"), (14, "bid 8")] {
        let (mut world, mut clients) = under(EngineVersion(version), EngineVersion(version));
        send(&mut world, &mut clients, "D", &sell("bid-7"));
        send(&mut world, &mut clients, "G", &replace("bid-7", text, 30_001));
        assert_eq!(last(&clients), ["5", text, "bid-7"]);
        assert!(matches!(world.commands.last(), Some(Command::Order(OrderCommand::Amend(_)))), "{:?}", world.commands.last());
        fail_over(&mut world, &mut clients);
        send(&mut world, &mut clients, "H", &format!("11={text}|55=BTC/USD|54=2|"));
        assert_eq!(clients[0].last().text(39), "8", "version {version}");
        send(&mut world, &mut clients, "F", "11=c|41=bid-7|55=BTC/USD|54=2|38=0.001|");
        assert_eq!((last(&clients), world.open_orders(0)), (["4", "c", "bid-7"], 0));
    }
}

/// The connection knows of a later version than the log, which does not take a replace with a name.
#[test]
fn a_replace_that_needs_a_later_version_is_refused() {
    let (mut world, mut clients) = under(EngineVersion(14), EngineVersion(13));
    send(&mut world, &mut clients, "D", &sell("77"));
    clients[0].send(world.now_ns, "G", &replace("77", "78", 30_001));
    for _ in 0..3 {
        world.settle(&mut clients);
        world.wait(50_000_000);
    }
    let refused = clients[0].last();
    assert_eq!([35, 11, 41].map(|tag| refused.text(tag)), ["9", "78", "77"], "{refused:?}");
    assert!(refused.text(58).contains("NeedsLaterVersion"), "{refused:?}");
    send(&mut world, &mut clients, "F", "11=c|41=77|55=BTC/USD|54=2|38=0.001|");
    assert_eq!((last(&clients), world.open_orders(0)), (["4", "c", "77"], 0));
}

/// A quote that is replaced again and again has few names, and the newest ones lead to it.
#[test]
fn a_quote_that_is_replaced_often_is_reached_by_its_last_names() {
    let (mut world, mut clients) = one();
    // Each has a price of its own, for the venue refuses what changes nothing.
    let replace = |from: &str, to: &str| {
        let number: u32 = to.trim_start_matches('q').parse().unwrap();
        replace(from, to, 30_000 + number)
    };
    send(&mut world, &mut clients, "D", &sell("q0"));
    // As many at once as a client cares to send, each naming the one before, and a hundred one by one.
    for number in 0..200 {
        clients[0].send(world.now_ns, "G", &replace(&format!("q{number}"), &format!("q{}", number + 1)));
    }
    world.settle(&mut clients);
    assert_eq!(last(&clients), ["5", "q200", "q199"], "{:?}", clients[0].last());
    for number in 200..300 {
        send(&mut world, &mut clients, "G", &replace(&format!("q{number}"), &format!("q{}", number + 1)));
    }
    assert_eq!(clients[0].executions().filter(|message| message.text(150) == "5").count(), 300);
    // One that is refused leaves the others.
    send(&mut world, &mut clients, "G", &replace("q300", "q301").replace("44=30301", "44=30301.3"));
    assert_eq!((clients[0].last().text(35), clients[0].last().text(41)), ("9", "q300"));
    send(&mut world, &mut clients, "G", &replace("q290", "q303"));
    assert_eq!(last(&clients), ["5", "q303", "q300"]);
    let order_id = clients[0].last().text(37).to_owned();
    // An older one leads nowhere, but for the first, which the log has. The venue's own name always does.
    send(&mut world, &mut clients, "F", "11=c1|41=q200|55=BTC/USD|54=2|38=0.001|");
    assert_eq!((clients[0].last().text(35), clients[0].last().text(102)), ("9", "1"));
    assert!(clients[0].last().text(58).contains("OrderID(37)"), "{:?}", clients[0].last());
    send(&mut world, &mut clients, "H", "11=q0|55=BTC/USD|54=2|");
    assert_eq!(last(&clients), ["I", "q303", "-"]);
    send(&mut world, &mut clients, "F", &format!("11=c2|41=q200|37={order_id}|55=BTC/USD|54=2|38=0.001|"));
    assert_eq!((last(&clients), world.open_orders(0)), (["4", "c2", "q303"], 0));
}

/// A quote goes to another price and back before the client hears of either.
#[test]
fn a_replace_that_takes_back_one_on_its_way_is_carried_out() {
    let (mut world, mut clients) = one();
    send(&mut world, &mut clients, "D", &sell("a"));
    for (from, to, size, price) in [("a", "b", "0.002", "30001"), ("b", "c", "0.001", "30000"), ("c", "d", "0.001", "30002")] {
        let body = format!("11={to}|41={from}|55=BTC/USD|54=2|38={size}|40=2|44={price}|");
        clients[0].send(world.now_ns, "G", &body);
    }
    world.settle(&mut clients);
    let said = |message: &Received| [150, 11, 41, 44, 38].map(|tag| message.text(tag).to_owned());
    let said: Vec<[String; 5]> = clients[0].executions().skip(1).map(said).collect();
    let expected = [["5", "b", "a", "30001.0", "0.002"], ["5", "c", "b", "30000.0", "0.001"], ["5", "d", "c", "30002.0", "0.001"]];
    assert_eq!(said, expected);
}

/// A client that names the order by the text that it last heard of, twice, gets what each of the two asks for.
#[test]
fn replaces_that_name_the_same_text_are_both_carried_out() {
    let (mut world, mut clients) = one();
    send(&mut world, &mut clients, "D", &sell("a"));
    for (to, size, price) in [("b", "0.002", "30001"), ("c", "0.001", "30002"), ("d", "0.001", "30000")] {
        let body = format!("11={to}|41=a|55=BTC/USD|54=2|38={size}|40=2|44={price}|");
        clients[0].send(world.now_ns, "G", &body);
    }
    world.settle(&mut clients);
    let said = |message: &Received| [150, 11, 41, 44, 38].map(|tag| message.text(tag).to_owned());
    let said: Vec<[String; 5]> = clients[0].executions().skip(1).map(said).collect();
    let expected = [["5", "b", "a", "30001.0", "0.002"], ["5", "c", "b", "30002.0", "0.001"], ["5", "d", "c", "30000.0", "0.001"]];
    assert_eq!(said, expected);
}

/// An order that is linked with another is held to the key's rate as any other is.
#[test]
fn a_linked_order_beyond_the_rate_is_rejected() {
    let (mut world, mut clients) = one();
    send(&mut world, &mut clients, "D", &sell("one"));
    world.is_throttled = true;
    for body in [sell("two") + "583=one|", sell("three")] {
        send(&mut world, &mut clients, "D", &body);
        assert_eq!(last(&clients)[0], "8", "{body}");
        assert!(clients[0].last().text(58).contains("Throttled (107)"), "{:?}", clients[0].last());
    }
    assert_eq!(world.open_orders(0), 1);
}
