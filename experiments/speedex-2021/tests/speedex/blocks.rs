//! Every experiment on blocks at its small size: its answers and its shape, never its times.

use serde_json::Value;
use walras_experiments_speedex_2021::blocks::chain::{self, Paper};
use walras_experiments_speedex_2021::blocks::{bare_book, chain_record, filter, payments};
use walras_experiments_speedex_2021::record::Record;

fn ours(record: &Record) -> &[Value] {
    record.result["ours"].as_array().unwrap()
}

/// The plot is finished and the table has a line per value, its header and its rule.
fn assert_whole(record: &Record, rows: usize) {
    assert!(record.plot_svg.as_ref().unwrap().ends_with("</svg>\n"), "the plot");
    assert_eq!(record.table.lines().filter(|line| line.starts_with('|')).count(), rows + 2, "{}", record.table);
}

fn records_of(paper: Paper) -> Vec<Record> {
    let setup = chain::Setup::small(paper);
    let measured = chain::run(&setup).unwrap();
    chain_record::records(&setup, &measured).unwrap()
}

#[test]
fn a_chain_of_2023_is_measured_at_each_stop_and_by_block_size() {
    let records = records_of(Paper::Speedex2023);
    let folders: Vec<&str> = records.iter().map(|record| record.folder.as_str()).collect();
    assert_eq!(folders, ["speedex-2023/fig-3", "speedex-2023/fig-4", "speedex-2023/fig-5", "speedex-2023/fig-6"]);
    for record in &records[..3] {
        // Two stops, two numbers of threads.
        assert_whole(record, 4);
        assert_eq!(record.result["stops_not_reached"].as_array().unwrap().len(), 0);
        for point in ours(record) {
            assert_eq!(point["kept"], 1_000.0, "{point}");
            assert!(point["check_signatures_ms"].as_f64().unwrap() > 0.0 && point["validate_ms"]["count"] == 2, "{point}");
        }
        assert!(ours(record)[2]["open_offers"].as_f64().unwrap() >= 300.0, "{}", record.table);
    }
    assert!(records[0].table.contains("4.17 k tx/s for each of 48 cores"), "the published number is in the table");
    // Two sizes of block, at every other stop.
    assert_whole(&records[3], 2);
}

#[test]
fn a_chain_of_2021_has_wrong_transactions_and_no_signatures() {
    let records = records_of(Paper::Speedex2021);
    let folders: Vec<&str> = records.iter().map(|record| record.folder.as_str()).collect();
    assert_eq!(folders, ["speedex-2021/fig-3", "speedex-2021/fig-4", "speedex-2021/fig-5"]);
    for point in ours(&records[0]) {
        // Those of a few accounts are left out, good and bad.
        assert!((500.0..=1_000.0).contains(&point["kept"].as_f64().unwrap()), "{point}");
        assert_eq!(point["check_signatures_ms"], Value::Null);
    }
}

#[test]
fn a_stop_out_of_reach_is_reported() {
    let setup = chain::Setup {
        open_offers: vec![0, 1_000_000],
        growth_blocks_max: 2,
        block_lens: Vec::new(),
        ..chain::Setup::small(Paper::Speedex2023)
    };
    let measured = chain::run(&setup).unwrap();
    let records = chain_record::records(&setup, &measured).unwrap();
    assert_eq!(records[0].result["stops_not_reached"], serde_json::json!([1_000_000]));
}

#[test]
fn batches_of_payments_are_cut_where_accounts_run_out_of_numbers() {
    let record = payments::contention(&payments::ContentionSetup::small()).unwrap();
    assert_whole(&record, 2 * 2 * 2 * 2);
    let blocks: Vec<u64> = ours(&record).iter().map(|cell| cell["blocks_per_batch"].as_u64().unwrap()).collect();
    // An account sends at most 64 payments in a block.
    assert_eq!(blocks, [4, 4, 16, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    for cell in ours(&record) {
        assert!(cell["propose_tx_per_s_mean"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

#[test]
fn books_and_payments_among_few_and_many() {
    let (books, paid) = (bare_book::Setup::small(), payments::ManySetup::small());
    let many = payments::many(&paid).unwrap();
    let record = bare_book::run(&books, &paid, &many).unwrap();
    let serial = record.result["order_book"]["ours"].as_array().unwrap();
    assert_eq!(serial.len(), 2);
    assert_eq!(serial[0]["trades"], serial[1]["trades"]);
    // Nine offers in ten are good, and meet one another.
    assert!(serial[0]["trades"].as_u64().unwrap() > 1_000 && serial[0]["open_orders"].as_u64().unwrap() > 0, "{serial:?}");
    assert_eq!(record.result["payments"]["ours"].as_array().unwrap().len(), 4);
    assert_eq!(record.result["order_book"]["in_blocks"]["ours"].as_array().unwrap().len(), 2);
    assert!(record.plot_svg.unwrap().contains("bare order book, published"));
}

#[test]
fn the_filter_leaves_out_what_a_plain_one_does() {
    let record = filter::run(&filter::Setup::small()).unwrap();
    assert_whole(&record, 4);
    let kept: Vec<f64> = ours(&record).iter().map(|row| row["kept_mean"].as_f64().unwrap()).collect();
    assert!(kept[0] > 500.0 && kept[1] > 500.0, "most accounts are in order: {kept:?}");
    assert!(kept[2] < 50.0 && kept[3] < 50.0, "nearly all accounts overdraw: {kept:?}");
}
