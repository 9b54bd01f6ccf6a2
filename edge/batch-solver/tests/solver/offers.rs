//! Rows of text into markets, and what is refused with which words.

use proptest::prelude::*;
use walras_batch_solver::offers::{Asset, Column, Decimals, NamedMarket, Offers, OffersError, Row};
use walras_clearing::{AssetIndex, Pair};
use walras_types::{BatchPrice, Rounding};

/// Cells in the order of the columns, separated by commas.
fn read(lines: &[&str], decimals: &Decimals) -> Result<NamedMarket, OffersError> {
    let mut offers = Offers::new();
    for (line, text) in (2..).zip(lines) {
        let mut row = Row::default();
        Column::ALL.into_iter().zip(text.split(',')).for_each(|(column, cell)| row.set(column, cell));
        offers.push(line, &row)?;
    }
    offers.build(decimals)
}

fn error(line: &str) -> String {
    read(&["A,B,1,market", line], &Decimals::default()).unwrap_err().to_string()
}

#[test]
fn names_are_sorted_and_whole_numbers_count_units() {
    let named =
        read(&["USD,BTC,60000,0.000015,,first,alice", "BTC,USD,2,30000", "BTC,ETH,3,market"], &Decimals::default()).unwrap();
    let names: Vec<&str> = named.assets.iter().map(|asset| asset.name.as_str()).collect();
    assert_eq!(names, ["BTC", "ETH", "USD"]);
    assert!(named.assets.iter().all(|asset| asset.decimals == 0));
    assert_eq!((named.id(0), named.account(0), named.id(1), named.line(2)), ("first", "alice", "", Some(4)));
    let book = named.market.book(Pair { sell: AssetIndex(0), buy: AssetIndex(2) }).unwrap();
    let key = book.sells().as_slice()[0].key();
    assert_eq!((key.limit, key.id.0), (BatchPrice::from_decimal("30000", Rounding::Up).unwrap(), 1));
}

#[test]
fn decimals_are_chosen_or_given() {
    let lines = ["USD,BTC,60000.25,0.000015", "BTC,USD,2,30000"];
    let named = read(&lines, &Decimals::default()).unwrap();
    assert_eq!(named.assets, [("BTC", 8), ("USD", 8)].map(|(name, decimals)| Asset { name: name.into(), decimals }));
    let of_asset = [("USD".to_owned(), 2)].into();
    let named = read(&lines, &Decimals { default: Some(6), of_asset }).unwrap();
    assert_eq!(named.assets, [("BTC", 6), ("USD", 2)].map(|(name, decimals)| Asset { name: name.into(), decimals }));
    let book = &named.market.books()[0];
    // 30000 dollars of a hundred cents for a coin of a million units.
    let limit = BatchPrice::from_decimal("3", Rounding::Up).unwrap();
    assert_eq!((book.sells().as_slice()[0].amount().get(), book.sells().as_slice()[0].key().limit), (2_000_000, limit));
    // Fewer where units for sale would not fit.
    let named = read(&["A,B,1000000000000,1", "B,A,0.5,1"], &Decimals::default()).unwrap();
    assert_eq!(named.assets.iter().map(|asset| asset.decimals).collect::<Vec<_>>(), [6, 6]);
}

#[test]
fn buy_offers_and_pools_have_columns_of_their_own() {
    let lines = ["A,B,300,3,buy", "A,B,300,,buy,,,90", "A,B,1000,,pool,,,,2000,3000"];
    let named = read(&lines, &Decimals::default()).unwrap();
    let buys = named.market.books()[0].buys().as_slice();
    assert_eq!(buys.iter().map(|offer| (offer.key().id.0, offer.sold_max().get())).collect::<Vec<_>>(), [(0, 100), (1, 90)]);
    assert_eq!((named.market.pools()[0].fee_ppm, named.market.pools()[0].reserves[1].get()), (3_000, 2_000));
    assert_eq!(named.pool_rows, [2]);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_column() {
    for (line, expected) in [
        (",B,1,1", "line 3, column sell: is empty: every row needs one"),
        ("A,,1,1", "line 3, column buy: is empty: every row needs one"),
        ("A,B,", "line 3, column amount: is empty: every row needs one"),
        ("A,B,0", "line 3, column amount: is zero: offer at least one unit, or leave the row out"),
        ("A,B,-5", "line 3, column amount: `-5` is below zero: to trade the other way, exchange `sell` and `buy`"),
        ("A,B,NaN", "line 3, column amount: `NaN` is no number: write digits with at most one point, such as 12.5 or 1e-7"),
        ("A,B,1,inf", "line 3, column limit_price: `inf` is no number: write digits with at most one point, such as 12.5 or 1e-7"),
        ("A,B,1,-2", "line 3, column limit_price: `-2` is below zero: to trade the other way, exchange `sell` and `buy`"),
        ("A,A,1,1", "line 3, column buy: A for itself: an offer trades two different assets"),
        ("A,B,1,2,short", "line 3, column kind: `short` is no kind of offer: write sell, buy or pool; empty means sell"),
        ("A,B,1,2,sell,,,9", "line 3, column sell_max: means nothing for the kind sell: leave it empty, or change the kind to buy"),
        (
            "A,B,1,2,pool,,,,1",
            "line 3, column limit_price: means nothing for the kind pool: leave it empty, or change the kind to sell or buy",
        ),
        ("A,B,1,,pool", "line 3, column buy_reserve: is empty: every row needs one"),
        ("A,B,1,,pool,,,,1,2000000", "line 3, column fee_ppm: `2000000` is no fee: write whole parts per million from 0 to 999999"),
        (
            "A,B,1,market,buy",
            "line 3, column limit_price: is no limit, and sell_max is empty: a buy offer needs one of them, to know what to \
             reserve",
        ),
        (
            "A,B,1,,buy",
            "line 3, column limit_price: is no limit, and sell_max is empty: a buy offer needs one of them, to know what to \
             reserve",
        ),
        (
            "A,B,1",
            "line 3, column limit_price: is empty: write the least that is bought for each sold, or `market` to trade at any rate",
        ),
        (
            "A,B,1,0.00",
            "line 3, column limit_price: is zero: write the least that is bought for each sold, or `market` to trade at any rate",
        ),
        ("A\u{1b}[2J,B,1,1", "line 3, column sell: `A\u{fffd}[2J` holds a control character or an invisible one: remove it"),
        ("A,B\u{202e},1,1", "line 3, column buy: `B\u{fffd}` holds a control character or an invisible one: remove it"),
        ("A,B\u{200b},1,1", "line 3, column buy: `B\u{fffd}` holds a control character or an invisible one: remove it"),
        ("A,B,1,1,,a\u{9b}b", "line 3, column id: `a\u{fffd}b` holds a control character or an invisible one: remove it"),
        ("A,B,1,1,,a,c\nd", "line 3, column account: `c\u{fffd}d` holds a control character or an invisible one: remove it"),
        (
            "A,B,+10000000000000000001.0,1",
            "line 3, column amount: +10000000000000000001.0 of A with 0 decimals is more than 2^63 - 1 units: give A fewer \
             decimals, or offer less",
        ),
        (
            "A,B,9.3E18,1",
            "line 3, column amount: 9.3E18 of A with 0 decimals is more than 2^63 - 1 units: give A fewer decimals, or offer less",
        ),
        (
            "A,B,10000000000000000000,market",
            "line 3, column amount: 10000000000000000000 of A with 0 decimals is more than 2^63 - 1 units: give A fewer \
             decimals, or offer less",
        ),
        (
            "A,B,1e999,market",
            "line 3, column amount: 1e999 of A with 0 decimals is more than 2^63 - 1 units: give A fewer decimals, or offer less",
        ),
        (
            "A,B,1,1e39",
            "line 3, column limit_price: in whole units of A and B: the price is not within 2^-126 and 2^126 (about 1.2e-38 and \
             8.5e37): use other units",
        ),
        (
            "A,B,5,1e19",
            "line 3, column limit_price: the limit times the amount is more than an amount can be, or less than one unit: lower \
             the limit, or give the two assets other decimals",
        ),
        (
            "A,B,9223372036854775807,market",
            "all offers of A together are more than 2^63 - 1 units at 0 decimals: give it fewer, or offer less",
        ),
    ] {
        assert_eq!(error(line), expected, "{line}");
    }
    let cents = Decimals { default: Some(2), ..Decimals::default() };
    for (amount, expected) in [
        ("1.234", "1.234 is no whole number of units of A, which has 2 decimals: round it, or give A 3 decimals"),
        ("1.2340", "1.2340 is no whole number of units of A, which has 2 decimals: round it, or give A 3 decimals"),
        ("1e-18", "1e-18 is no whole number of units of A, which has 2 decimals: round it, or give A 18 decimals"),
        (
            "1e-19",
            "1e-19 is no whole number of units of A, which has 2 decimals: round it to 18 decimals or fewer, the most that an \
             asset has",
        ),
    ] {
        let fine = read(&[&format!("A,B,{amount},market")], &cents).unwrap_err().to_string();
        assert_eq!(fine, format!("line 2, column amount: {expected}"));
    }
    let of_asset = [("C".to_owned(), 2)].into();
    let unknown = read(&["A,B,1,1"], &Decimals { default: None, of_asset }).unwrap_err();
    assert_eq!(unknown, OffersError::UnknownAsset("C".into()));
    let many = Decimals { default: Some(19), ..Decimals::default() };
    assert!(matches!(read(&["A,B,1,1"], &many), Err(OffersError::TooManyDecimals(19, _))));
}

/// A decimal limit is met by what it comes to in whole units, not by a unit more.
#[test]
fn limits_in_decimals_ask_for_no_unit_more() {
    let named = read(&["A,B,10000,0.8", "A,B,10000,0.92", "A,B,8000,0.8,buy"], &Decimals::default()).unwrap();
    let book = &named.market.books()[0];
    let asked: Vec<_> =
        book.sells().as_slice().iter().map(|offer| offer.stated().bought_at_least(offer.amount()).unwrap().get()).collect();
    assert_eq!((asked, book.buys().as_slice()[0].sold_max().get()), (vec![8_000, 9_200], 10_000));
}

#[test]
fn a_market_has_only_so_many_assets() {
    let lines: Vec<String> = (0..5_000).map(|asset| format!("A{asset},USD,1,1")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(read(&lines, &Decimals::default()).unwrap_err(), OffersError::TooManyAssets { line: 2 + 4_095 });
}

fn cell() -> impl Strategy<Value = String> {
    let number = "[0-9]{1,6}(\\.[0-9]{1,4})?(e-?[0-9]{1,2})?";
    let edges = ["", "0", "A", "B", "buy", "pool", "9223372036854775807", "1e-38", "1e38", "-1", "NaN", "\u{0}"].map(String::from);
    prop_oneof![4 => number, 4 => prop::sample::select(edges.to_vec()), 1 => ".{0,8}"]
}

proptest! {
    #[test]
    fn any_rows_make_a_market_or_an_error(
        rows in prop::collection::vec(("[ABC]", "[ABC]", "[1-9][0-9]{0,18}", prop::collection::vec(cell(), 7)), 1..6),
        default in prop::option::of(0..20_u8),
    ) {
        let mut offers = Offers::new();
        for (line, (sell, buy, amount, rest)) in (1..).zip(&rows) {
            let mut row = Row::default();
            let cells = [sell, buy, amount].into_iter().chain(rest);
            Column::ALL.into_iter().zip(cells).for_each(|(column, cell)| row.set(column, cell));
            let _ = offers.push(line, &row);
        }
        let count = offers.row_count();
        if let Ok(named) = offers.build(&Decimals { default, ..Decimals::default() }) {
            prop_assert_eq!(named.row_count(), count);
        }
    }
}
