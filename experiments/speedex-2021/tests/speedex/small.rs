//! Every experiment at its small size: its answers and its shape, never its times.

use serde_json::Value;
use walras_experiments_speedex_2021::convex::{self, Python};
use walras_experiments_speedex_2021::record::Record;
use walras_experiments_speedex_2021::{accuracy, buy_offers, cost, fewest, history, variants, warm};

fn ours(record: &Record) -> &[Value] {
    record.result["ours"].as_array().unwrap()
}

/// The plot is finished and the table has a line per value, its header and its rule.
fn assert_whole(record: &Record, rows: usize) {
    assert!(record.plot_svg.as_ref().unwrap().ends_with("</svg>\n"), "the plot");
    assert_eq!(record.table.lines().filter(|line| line.starts_with('|')).count(), rows + 2, "{}", record.table);
}

#[test]
fn every_accuracy_of_figure_1_is_solved() {
    let record = accuracy::run(&accuracy::Setup::small()).unwrap();
    assert_whole(&record, 6);
    for point in ours(&record) {
        assert_eq!(point["unsolved_seeds"].as_array().unwrap().len(), 0, "{point}");
        // The shape: a few queries, where the papers' method takes hundreds of rounds.
        assert!(point["queries_mean"].as_f64().unwrap() < 100.0, "{point}");
    }
}

#[test]
fn few_offers_are_solved_as_well_as_many() {
    let record = fewest::run(&fewest::Setup::small()).unwrap();
    assert_whole(&record, 4);
    for cell in ours(&record) {
        assert_eq!(cell["unsolved"].as_array().unwrap().len(), 0, "{cell}");
    }
}

#[test]
fn every_small_cell_of_figure_6_is_solved() {
    let record = variants::run(&variants::Setup::small()).unwrap();
    assert_whole(&record, 8 * 2 * 4);
    assert_eq!(record.result["unsolved"], 0, "{}", record.table);
    // The paper's stars at 500 offers: outlier prices twice, dispersed once, uneven volumes four times.
    assert_eq!(record.result["starred_cells"], 7);
    assert_eq!(record.result["starred_cells_solved"], 7);
    assert!(record.table.contains("1826 ms"), "the published number is in the table");
}

#[test]
fn cost_grows_with_assets_and_hardly_with_offers() {
    let record = cost::run(&cost::Setup::small()).unwrap();
    assert_whole(&record, 5);
    let queries: Vec<f64> = ours(&record).iter().map(|point| point["queries_median"].as_f64().unwrap()).collect();
    // From 1,000 to 10,000 offers: ten times the offers, no more than three times the work.
    assert!(queries[4] <= 3.0 * queries[3], "{queries:?}");
}

#[test]
fn cold_and_warm_find_the_same_prices() {
    let record = warm::run(&warm::Setup::small()).unwrap();
    assert_whole(&record, 2);
    for row in ours(&record) {
        assert_eq!((&row["cold_unsolved"], &row["warm_unsolved"]), (&0.into(), &0.into()), "{row}");
        assert!(row["price_difference_max"].as_f64().unwrap() < 0.01, "{row}");
    }
}

#[test]
fn the_convex_program_finds_our_prices_or_says_that_it_did_not_run() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = convex::Setup::small(scratch.path());
    let absent = convex::run(&setup, &Err("not run: nothing there".into())).unwrap();
    assert_eq!(absent.result["convex_program"], "not run: nothing there");
    assert_whole(&absent, 3);
    let python = Python::find();
    let record = convex::run(&setup, &python).unwrap();
    match python {
        Err(why) => println!("the convex program was not compared: {why}"),
        Ok(_) => {
            for point in ours(&record).iter().filter(|point| point["offer_count"] == 400) {
                for solver in ["ecos", "clarabel"] {
                    assert!(point[solver]["price_difference_fine_max"].as_f64().unwrap() < 1e-3, "{point}");
                    // The optimum of a market is zero.
                    assert!(point[solver]["objective_max"].as_f64().unwrap().abs() < 1e-4, "{point}");
                }
            }
        }
    }
}

/// Three assets over four days; the third is listed on the third day.
fn histories() -> Vec<String> {
    let lines = |rows: &[(u32, f64, f64)]| {
        let rows = rows.iter().map(|(day, price, volume)| format!("2021-03-{day:02} 00:00:00 UTC,{price},0,{volume}\n"));
        format!("snapped_at,price,market_cap,total_volume\n{}", rows.collect::<String>())
    };
    vec![
        lines(&[(1, 50_000.0, 3e9), (2, 51_000.0, 2e9), (3, 49_000.0, 4e9), (4, 52_000.0, 1e9)]),
        lines(&[(1, 1.0, 9e9), (2, 1.01, 8e9), (3, 0.99, 9e9), (4, 1.0, 9e9)]),
        lines(&[(3, 1e-8, 5e8), (4, 2e-8, 6e8)]),
    ]
}

#[test]
fn days_of_a_history_clear_in_whole_units() {
    let setup = history::Setup::small();
    let days = history::days_of(&setup, histories()).unwrap();
    assert_eq!((days.asset_count(), days.len()), (3, 3));
    let record = history::run(&setup, &days).unwrap();
    assert_whole(&record, 8);
    for row in record.result["prices"].as_array().unwrap() {
        assert_eq!(row["solved"], 3, "{row}");
    }
    let clearing = &record.result["clearing"];
    assert_eq!(clearing["cleared_and_verified"], 3, "{clearing}");
    assert_eq!(clearing["days_with_lower_bounds_missed"].as_array().unwrap().len(), 0, "{clearing}");
    let unrealised = clearing["unrealised_per_realised_utility"]["max"].as_f64().unwrap();
    assert!((0.0..0.05).contains(&unrealised), "{clearing}");
    assert!(clearing["mu_achieved"]["max"].as_f64().unwrap() <= 1.0 / 1_024.0, "{clearing}");
}

#[test]
fn who_wants_an_amount_is_served_by_a_sell_offer_whatever_a_buy_offer_gets() {
    let setup = buy_offers::Setup::small();
    let days = history::days_of(&setup.history, histories()).unwrap();
    let record = buy_offers::run(&setup, &days).unwrap();
    // Two tables, with a row for each way.
    let lines = record.table.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(lines, 2 * (3 * setup.shares.len() + 2), "{}", record.table);
    let mut before = 0;
    for row in record.result["shares"].as_array().unwrap() {
        let (bought, made, sold) = (&row["as_buy_offers"], &row["as_price_makers"], &row["as_sell_offers"]);
        // All of these trade, as `days_of_a_history_clear_in_whole_units` finds on the same days.
        assert_eq!(sold["buyers"]["value_left_out_share"], 0.0, "{row}");
        assert_eq!(sold["buyers"]["filled_in_full_share"], 1.0, "{row}");
        assert_eq!(sold["other_offers"]["value_left_out_share"], 0.0, "{row}");
        assert_eq!(sold["days_with_value_left_out"], 0, "{row}");
        assert_eq!(bought["buyers"]["value_beyond_share"], 0.0, "{row}");
        assert_eq!(made["buyers"]["value_beyond_share"], 0.0, "{row}");
        // Buy offers make prices on every day, or it has none.
        let search = &made["search"];
        assert_eq!(search["days_priced_by_buy_offers"], search["days"], "{row}");
        let days = search["days"].as_u64().unwrap() + search["days_failed"].as_u64().unwrap();
        assert_eq!(record.result["days"], days, "{row}");
        assert!(days == 0 || search["buy_rounds"]["max"].as_u64().unwrap() >= 1, "{row}");
        for share in [
            &bought["buyers"]["value_left_out_share"],
            &bought["worst_day_value_left_out_share"],
            &made["buyers"]["value_left_out_share"],
        ] {
            assert!((0.0..=1.0).contains(&share.as_f64().unwrap()), "{row}");
        }
        // A larger share has more of the same offers in it.
        let count = sold["buyers"]["clearly_in_the_money"].as_u64().unwrap();
        assert!(count > before && row["volume_ratio"].as_f64().unwrap() > 0.0, "{row}");
        before = count;
    }
}

#[test]
fn a_history_can_end_earlier_and_keep_the_largest_assets() {
    let setup = history::Setup { last_day: Some("2021-03-02"), day_count: 2, ..history::Setup::small() };
    assert_eq!(history::days_of(&setup, histories()).unwrap().asset_count(), 2);
    let setup = history::Setup { assets_max: Some(1), day_count: 2, ..history::Setup::small() };
    let largest = history::days_of(&setup, histories()).unwrap();
    assert_eq!((largest.asset_count(), largest.prices(1)), (1, vec![1.0]));
    // One asset trades with nobody.
    assert!(history::run(&setup, &largest).is_err());
}
