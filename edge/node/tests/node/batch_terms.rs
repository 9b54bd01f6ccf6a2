//! Terms of transactions from the command line: several that count together, and a last block.

use serde_json::Value;
use walras_access::operator_key_file;
use walras_wait::{until, until_some};

use crate::batches::{balance, blocks, micros, open, signers, with_batch};
use crate::cli::Cli;
use crate::support::{Market, Venue};

/// The command line of the operator, and that of Alice with a key for transactions.
fn command_lines(venue: &Venue) -> [Cli; 2] {
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let key_file = venue.dir.join("alice.key");
    let made = operator.json(&["keys", "new", "--out", key_file.to_str().unwrap()]);
    let (id, public) = (made["key_id"].as_str().unwrap(), made["public_key"].as_str().unwrap());
    operator.text(&["admin", "key", "--account", "0", "--key-id", id, "--public-key", public]);
    operator.text(&["admin", "transaction-key", "0", key_file.to_str().unwrap()]);
    [operator, Cli { url: venue.url(), key_file }]
}

/// What came of a transaction of Alice's, once its block is cleared.
fn outcome(alice: &Cli, sequence: &str) -> Value {
    until_some("the transaction has an outcome", || {
        let listed = alice.json(&["batch", "outcome"]);
        let of_all = listed["transactions"].as_array().unwrap();
        let found = of_all.iter().find(|one| one["sequence"] == sequence && one["status"] != "collected").cloned();
        found.filter(|one| one["status"] == "cleared" || one["status"] == "dropped")
    })
}

fn dollars(market: &Market) -> [u64; 2] {
    [&market.alice, &market.bob].map(|client| {
        let (available, reserved) = balance(client, "USD");
        micros(&available) + micros(&reserved)
    })
}

#[test]
fn transactions_sent_together_count_all_or_none() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    let [_, bob] = signers(&market);
    let [_, alice] = command_lines(&venue);
    let before = dollars(&market);
    let sent = alice.json(&["batch", "together", "pay 1 0.5 USD", "walras offer sell 0.1 BTC USD --price 30000"]);
    let sent = sent["transactions"].as_array().unwrap().clone();
    assert_eq!((&sent[0]["sequence"], &sent[1]["sequence"]), (&"1".into(), &"2".into()));
    assert_eq!((&sent[0]["transaction"], &sent[0]["block"]), (&"pay 1 0.5 USD".into(), &sent[1]["block"]));
    for sequence in ["1", "2"] {
        assert_eq!(outcome(&alice, sequence)["status"], "cleared");
    }
    assert_eq!(dollars(&market), [before[0] - 500_000, before[1] + 500_000]);
    // The offer is exchanged for another one, or stays.
    let listed = alice.text(&["batch", "together", "offer cancel 2", "offer sell 0.1 BTC USD --price 31000", "--blocks", "50"]);
    assert!(listed.contains("offer cancel 2"), "{listed}");
    assert_eq!([outcome(&alice, "3")["status"].clone(), outcome(&alice, "4")["status"].clone()], ["cleared", "cleared"]);
    let standing = alice.json(&["offer", "list"])["offers"].clone();
    assert_eq!((standing.as_array().unwrap().len(), &standing[0]["sequence"]), (1, &"4".into()), "{standing}");
    // The operator has just replaced Alice's key, which only the batch looks at; without the second one the payment would count.
    let taken = format!("batch set-key {}", bob.public_key());
    alice.json(&["batch", "together", "pay 1 0.25 USD", &taken]);
    let found = ["5", "6"].map(|sequence| outcome(&alice, sequence));
    assert_eq!([&found[0]["status"], &found[1]["status"]], ["dropped", "dropped"]);
    assert_eq!([&found[0]["reason"]["name"], &found[1]["reason"]["name"]], ["JoinedDropped", "KeyReplaced"]);
    assert_eq!(dollars(&market), [before[0] - 500_000, before[1] + 500_000]);
    // Their numbers are free again.
    assert_eq!(alice.json(&["pay", "1", "0.25", "USD"])["sequence"], "5");
    until("the payment counts", || dollars(&market) == [before[0] - 750_000, before[1] + 750_000]);
}

#[test]
fn what_is_sent_together_is_checked_before_it_is_signed() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let [_, alice] = command_lines(&venue);
    let before = dollars(&market);
    for (lines, expected) in [
        (vec!["pay 1 0.5 USD", "offer list"], "\"offer list\" is no transaction"),
        (vec!["pay 1 0.5 USD", "pay 1 0.5 USD --blocks 3"], "--blocks holds for all of them"),
        (vec!["pay 1 0.5 USD", "pay 1 0.5 EUR"], "the venue has no asset \"EUR\""),
        (vec!["pay 1 0.5 USD", "order buy BTC/USD 1"], "unrecognized subcommand"),
        (vec!["pay 1 0.5 USD"; 65], "give 2 to 64 transactions"),
    ] {
        let (status, said) = alice.fails(&[&["batch", "together"], &lines[..]].concat());
        assert!(status != 0 && said.contains(expected), "{lines:?}: {said}");
    }
    assert_eq!(alice.fails(&["batch", "together", "pay 1 0.5 USD"]).0, 2, "one alone is not together with anything");
    // The venue refuses one, and takes none of them.
    for lines in [["pay 1 0.5 USD", "batch issue 5 USD"], ["batch issue 5 USD", "pay 1 0.5 USD"]] {
        let (status, said) = alice.fails(&[&["batch", "together"], &lines[..]].concat());
        let is_said =
            ["\"batch issue 5 USD\"", "not the asset's issuer", "none of them counts"].iter().all(|part| said.contains(part));
        assert!(status == 1 && is_said, "{said}");
    }
    assert_eq!(alice.json(&["pay", "1", "0.25", "USD"])["sequence"], "1", "they used no number");
    assert_eq!(outcome(&alice, "1")["status"], "cleared");
    assert_eq!(dollars(&market), [before[0] - 250_000, before[1] + 250_000]);
}

#[test]
fn a_transaction_has_the_last_block_that_was_asked_for_or_counts_for_two_minutes() {
    let venue = Venue::with(&with_batch());
    let market = venue.market();
    open(&market.operator);
    let [operator, alice] = command_lines(&venue);
    let without = alice.json(&["pay", "1", "0.5", "USD", "--blocks", "none"]);
    blocks(&market.operator, 1);
    let one = alice.json(&["pay", "1", "0.5", "USD", "--blocks", "1"]);
    blocks(&market.operator, 2);
    let many = alice.json(&["batch", "together", "pay 1 0.5 USD", "pay 1 0.75 USD", "--blocks", "4294967295"]);
    blocks(&market.operator, 4);
    let unsaid = alice.json(&["pay", "1", "0.5", "USD"]);
    blocks(&market.operator, 5);
    let text = operator.text(&["log", "dump", venue.dir.to_str().unwrap(), "--json"]);
    let paid: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|entry| find(&entry, "until_block").or_else(|| find(&entry, "sequence")))
        .collect();
    let number = |value: &Value| value.as_str().map_or_else(|| value.as_u64().unwrap(), |text| text.parse().unwrap());
    let of = |sequence: u64| paid.iter().find(|one| number(&one["sequence"]) == sequence && one["kind"] == "payment").unwrap();
    assert_eq!((of(1).get("until_block"), number(&without["sequence"])), (None, 1));
    assert!(without["until_block"].is_null() && without.get("until_block").is_some(), "{without}");
    assert_eq!(number(&of(2)["until_block"]), number(&one["block"]), "this block or none");
    // The market may close 24,000 more in two minutes.
    assert_eq!(number(&of(5)["until_block"]), number(&unsaid["block"]) + 24_000);
    assert_eq!(number(&unsaid["until_block"]), number(&of(5)["until_block"]));
    for (sequence, place) in [(3, 0), (4, 1)] {
        assert_eq!(number(&of(sequence)["until_block"]), number(&many["transactions"][place]["block"]) + 4_294_967_294);
        assert_eq!(of(sequence)["chain"], ["first", "last"][place]);
    }
    let (status, said) = alice.fails(&["pay", "1", "0.5", "USD", "--blocks", "0"]);
    assert!(status == 2 && said.contains("--blocks"), "{said}");
}

/// The object that has a field, however deep.
fn find(value: &Value, field: &str) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(field) => Some(value.clone()),
        Value::Object(fields) => fields.values().find_map(|inner| find(inner, field)),
        Value::Array(items) => items.iter().find_map(|inner| find(inner, field)),
        _ => None,
    }
}
