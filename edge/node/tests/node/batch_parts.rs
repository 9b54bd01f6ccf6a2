//! Parts of a batch market that cannot trade next to others that can, and offers far larger than all others.

use serde_json::json;
use walras_client::Client;

use crate::batches::{blocks, micros, signers, with_batch};
use crate::recovery::Process;
use crate::support::{Raw, Venue, market, operator, send};

const BTC: u32 = 0;
const USD: u32 = 1;

/// What the market says of blocks in which something was set aside: nothing traded, or something did.
fn aside(client: &Client) -> (u64, u64) {
    let batch = client.get("/v1/batches").unwrap()["batches"][0].clone();
    (batch["idle_blocks"].as_u64().unwrap(), batch["aside_blocks"].as_u64().unwrap())
}

/// Three offers that no way clears in a part of their own, then others that trade next to them. Of eight units, worth two and two thirds of
/// the other asset, a quarter is left over in whole units. They are two offers, so that at prices at which nothing trades half counts.
#[test]
fn a_part_that_is_set_aside_for_ever_is_counted_whether_others_trade_or_not() {
    const EUR: u32 = 2;
    const GBP: u32 = 3;
    let mut config = with_batch();
    config.batch[0].assets = ["USD", "BTC", "EUR", "GBP"].map(str::to_owned).to_vec();
    let venue = Venue::with(&config);
    let market = venue.market();
    for symbol in ["EUR", "GBP"] {
        market.operator.signed("POST", "/v1/admin/assets", Some(&json!({"symbol": symbol, "decimals": 2}))).unwrap();
        for account in [0, 1] {
            let transfer = if symbol == "EUR" { "3" } else { "4" };
            let deposit = json!({"account_id": account, "asset": symbol, "amount": "10000000", "transfer_id": transfer});
            market.operator.signed("POST", "/v1/admin/deposits", Some(&deposit)).unwrap();
        }
    }
    let [alice, bob] = signers(&market);
    let [one, other] = [1, 2].map(|number| bob.offer(number, EUR, GBP, 4, "0.1"));
    send(&market.operator, "main", &[alice.offer(1, GBP, EUR, 181_477_458, "3"), one, other]);
    blocks(&market.operator, 3);
    for number in 2..6 {
        send(&market.operator, "main", &[alice.pay(number, 1, USD, 1)]);
        blocks(&market.operator, number + 2);
    }
    let (idle, of_part) = aside(&market.operator);
    assert!(idle >= 4 && of_part == idle, "{idle} {of_part}");
    let figures = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&venue.url()).text;
    for name in ["idle", "aside"] {
        let figure = format!("walras_batch_{name}_blocks{{market=\"main\"}} {idle}\n");
        assert!(figures.contains(&figure), "{figure}: {figures}");
    }
    send(
        &market.operator,
        "main",
        &[alice.offer(6, BTC, USD, 10_000_000, "290"), bob.offer(3, USD, BTC, 3_000_000_000, "0.00333")],
    );
    let traded = blocks(&market.operator, 9).pop().unwrap();
    assert!(traded["offers_traded"].as_u64().unwrap() >= 2 && traded["set_aside"] == 2, "{traded}");
    let (idle, more) = aside(&market.operator);
    assert!(idle == 0 && more > of_part, "{idle} {more}");
}

/// Ten offers of a million times the others stand in a market, and stop none of its blocks, before and after a kill.
#[test]
fn ten_offers_far_larger_than_all_others_stop_no_block_nor_after_a_kill() {
    const SMALL: u64 = 10_000;
    const GIANT: u64 = 1_000_000 * SMALL;
    let dir = tempfile::tempdir().unwrap();
    let more = "[[batch]]\nname = \"main\"\nassets = [\"USD\", \"BTC\"]\ninterval_ms = 5\n";
    let process = Process::start_with(dir.path(), more);
    let market = market(&operator(&process.url, dir.path()));
    let [alice, bob] = signers(&market);
    let deposit = json!({"account_id": 0, "asset": "BTC", "amount": "2000", "transfer_id": "3"});
    market.operator.signed("POST", "/v1/admin/deposits", Some(&deposit)).unwrap();
    let giants: Vec<String> = (1..=10).map(|number| alice.offer(number, BTC, USD, GIANT, &(289 + number).to_string())).collect();
    send(&market.operator, "main", &giants);
    let mut sent = giants.len() as u64;
    blocks(&market.operator, sent);
    // Each round: others buy from them for a little, and sell next to them.
    let (mut alices, mut bobs) = (11, 1);
    let mut rounds = |client: &Client, bob_client: &Client| {
        for round in 0..4 {
            let before = blocks(client, sent).len();
            let buys = (0..8).map(|at| bob.offer(bobs + at, USD, BTC, (300 + at) * SMALL, "0.0033"));
            let sells = (0..4).map(|at| alice.offer(alices + at, BTC, USD, SMALL + at, "280"));
            let transactions: Vec<String> = buys.chain(sells).collect();
            send(client, "main", &transactions);
            (alices, bobs, sent) = (alices + 4, bobs + 8, sent + transactions.len() as u64);
            let all = blocks(client, sent);
            let new = &all[before..];
            assert!(new.iter().all(|block| block["set_aside"] == 0), "round {round}: {new:#?}");
            assert!(new.iter().any(|block| block["offers_traded"].as_u64().unwrap() >= 2), "round {round}: {new:#?}");
            assert_eq!(aside(client), (0, 0), "round {round}");
            // Of what is clearly in the money, of 24 dollars, no more is left than whole units explain.
            let offers = bob_client.signed("GET", "/v1/offers", None).unwrap();
            let left: u64 =
                offers["offers"].as_array().unwrap().iter().map(|offer| micros(offer["amount"].as_str().unwrap())).sum();
            assert!(left < 1_000_000, "round {round}: {offers}");
        }
    };
    rounds(&market.operator, &market.bob);
    process.kill();
    let process = Process::start_with(dir.path(), more);
    let [client, bob_client] = [&market.alice_key, &market.bob_key].map(|key| Client::new(&process.url, Some(key.clone())));
    rounds(&client, &bob_client);
    let offers = client.signed("GET", "/v1/offers", None).unwrap();
    assert!(offers["offers"].as_array().unwrap().len() >= 10, "the large ones stand: {offers}");
    process.kill();
}
