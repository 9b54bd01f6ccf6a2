//! A batch market of ten currencies and two hundred stocks, from outside: created, traded in, refused, proven, restarted.

use serde_json::{Value, json};
use walras_access::operator_key_file;
use walras_log_store::RealDisk;
use walras_types::{AssetId, BatchMarketId, BatchOperation, CreatePool, DropReason, PoolRule, RejectReason};

use crate::batches::{balance, blocks, signers};
use crate::cli::Cli;
use crate::support::{Venue, config, restart, send};

const BTC: u32 = 0;
const USD: u32 = 1;
const CURRENCIES: u32 = 10;
const STOCKS: u32 = 200;

/// The assets in the order in which the venue numbers them: two that every market here has, eight more currencies, the stocks.
fn symbol(asset: u32) -> String {
    match asset {
        BTC => "BTC".to_owned(),
        USD => "USD".to_owned(),
        _ if asset < CURRENCIES => format!("C{asset}"),
        _ => format!("S{}", asset - CURRENCIES),
    }
}

/// A stock has four decimals.
const fn stock(number: u32) -> u32 {
    CURRENCIES + number
}

fn is_refused(result: &Value, reason: RejectReason) {
    assert_eq!(result["error"]["code"], reason.number(), "{result}");
    assert!(result["error"]["detail"].as_str().unwrap().contains("use two offers"), "{result}");
}

#[test]
fn stocks_trade_for_currencies_and_not_for_stocks() {
    let mut venue = Venue::with(&config());
    let market = venue.market();
    let post = |path: &str, body: Value| market.operator.signed("POST", path, Some(&body)).unwrap();
    for asset in USD + 1..CURRENCIES + STOCKS {
        post("/v1/admin/assets", json!({"symbol": symbol(asset), "decimals": 4}));
    }
    // Dollars first: prices are in units of the first currency.
    let currencies: Vec<String> = [USD, BTC].into_iter().chain(USD + 1..CURRENCIES).map(symbol).collect();
    let stocks: Vec<String> = (CURRENCIES..CURRENCIES + STOCKS).map(symbol).collect();
    let main = json!({"name": "main", "currencies": currencies, "assets": stocks, "interval_ms": 5});
    post("/v1/admin/batches", main);
    let shown = market.operator.get("/v1/batches").unwrap()["batches"][0].clone();
    assert_eq!((&shown["currencies"], &shown["numeraire"]), (&json!(currencies), &json!("USD")));
    assert_eq!(shown["assets"], json!([currencies.clone(), stocks].concat()));

    let [alice, bob] = signers(&market);
    let (own, other) = (stock(7), stock(8));
    for asset in [own, other] {
        let transfer = (10 + asset).to_string();
        post("/v1/admin/deposits", json!({"account_id": 0, "asset": symbol(asset), "amount": "1000", "transfer_id": transfer}));
    }
    // Alice sells a hundred shares at 29 dollars or more, Bob buys for 3,000 dollars at 30.12 or less.
    let sent = [alice.offer(1, own, USD, 1_000_000, "2900"), bob.offer(1, USD, own, 3_000_000_000, "0.000332")];
    for result in send(&market.operator, "main", &sent) {
        assert_eq!(result["sequence"], "1", "{result}");
    }
    let all = blocks(&market.operator, 2);
    let traded = all.iter().find(|block| block["offers_traded"] == 2).unwrap_or_else(|| panic!("{all:#?}"));
    let price: f64 = traded["prices"]["S7"].as_str().unwrap().parse().unwrap();
    assert!((29.0..30.13).contains(&price), "{price}");
    assert!(traded["prices"]["S8"].is_null() && traded["prices"].as_object().unwrap().len() == 210, "{traded}");
    assert!(balance(&market.bob, "S7").0.parse::<f64>().unwrap() > 90.0);

    // A stock for a stock: refused before any batch has it, as an offer and as a pool.
    let (market_id, amounts) = (BatchMarketId(0), [20_000_u64; 2].map(|units| walras_types::Amount::new(units).unwrap()));
    let (assets, rule) = ([own, other].map(AssetId), PoolRule::ConstantProduct);
    let pool = BatchOperation::CreatePool(CreatePool { market: market_id, assets, rule, fee_ppm: 0, amounts });
    let wrong = [alice.offer(2, own, other, 10_000, "1"), alice.sign(2, pool)];
    for result in send(&market.operator, "main", &wrong) {
        is_refused(&result, DropReason::NoSuchPair.refusal());
    }
    // A pool of a stock and a currency is one like any other.
    let assets = [USD, other].map(AssetId);
    let pool = BatchOperation::CreatePool(CreatePool { market: market_id, assets, rule, fee_ppm: 0, amounts });
    let taken = send(&market.operator, "main", &[alice.sign(2, pool)]);
    assert_eq!(taken[0]["sequence"], "2", "{taken:?}");
    blocks(&market.operator, 3);

    // The light client of the command line checks what traded by the number of the pair.
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let number = traded["block"].as_str().unwrap();
    let proven = |sell: &str, buy: &str| operator.json(&["batch", "proof", "block", number, "--trade", sell, buy]);
    let sold = |proof: Value| proof["sold_units"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(sold(proven("S7", "USD")) > 900_000 && sold(proven("USD", "S7")) > 2_500_000_000);
    assert_eq!((sold(proven("S8", "USD")), sold(proven("BTC", "S199"))), (0, 0));
    let (status, said) = operator.fails(&["batch", "proof", "block", number, "--trade", "S7", "S8"]);
    assert!(status != 0 && said.contains("currenc"), "{said}");
    let listed = operator.text(&["batch", "list"]);
    assert!(listed.contains("and 190 more"), "{listed}");

    // What is restored has the same pairs.
    let before = market.operator.get("/v1/batches").unwrap()["batches"][0].clone();
    venue.stop();
    venue.node = Some(restart(RealDisk, &venue.dir, &config()));
    let client = walras_client::Client::new(&venue.url(), Some(market.alice_key.clone()));
    let after = client.get("/v1/batches").unwrap()["batches"][0].clone();
    assert_eq!((&after["currencies"], &after["assets"]), (&before["currencies"], &before["assets"]));
    let again = send(&client, "main", &[alice.offer(3, own, other, 10_000, "1"), alice.offer(3, own, USD, 10_000, "2900")]);
    is_refused(&again[0], RejectReason::NoSuchPair);
    assert_eq!(again[1]["sequence"], "3", "{again:?}");
}
