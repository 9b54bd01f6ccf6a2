//! `walras clear` as people and scripts use it: what it reads, what it prints, how it fails.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

mod damaged;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use serde_json::Value;
use walras_batch_solver::offers::Decimals;
use walras_batch_solver::{Budget, Settings};
use walras_clear::{Fills, Tables, clear, load_text};
use walras_types::{Commission, Mu};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clear").join(name)
}

fn run(args: &[&str], input: Option<&Path>) -> Output {
    let input = input.map_or_else(Stdio::null, |file| std::fs::File::open(file).unwrap().into());
    let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
    command.arg("clear").args(args).stdin(input).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat(), None);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The exit status, and what was said.
fn fails(args: &[&str]) -> (i32, String) {
    let output = run(args, None);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Without what differs between files that hold the same offers: times and lines.
fn timeless(mut json: Value) -> Value {
    json["report"].as_object_mut().unwrap().remove("ms");
    for fill in json["fills"].as_array_mut().unwrap() {
        fill.as_object_mut().unwrap().remove("line");
    }
    json
}

/// The offers of the fixture as Parquet.
fn write_parquet(file: &Path, properties: WriterProperties) {
    let schema = "message offers { REQUIRED BYTE_ARRAY sell (UTF8); REQUIRED BYTE_ARRAY buy (UTF8); REQUIRED DOUBLE amount; \
                  OPTIONAL DOUBLE limit_price; OPTIONAL BYTE_ARRAY kind (UTF8); OPTIONAL BYTE_ARRAY id (UTF8); \
                  OPTIONAL BYTE_ARRAY account (UTF8); OPTIONAL BYTE_ARRAY sell_max (UTF8); }";
    let out = std::fs::File::create(file).unwrap();
    let mut writer = SerializedFileWriter::new(out, Arc::new(parse_message_type(schema).unwrap()), Arc::new(properties)).unwrap();
    let text = std::fs::read_to_string(fixture("offers.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let mut group = writer.next_row_group().unwrap();
    let mut place = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let cells: Vec<&str> = rows.iter().map(|row| row[place]).filter(|cell| !cell.is_empty()).collect();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(!row[place].is_empty())).collect();
        let levels = (place >= 3).then_some(&levels[..]);
        if place == 2 || place == 3 {
            let values: Vec<f64> = cells.iter().map(|cell| cell.parse().unwrap()).collect();
            column.typed::<DoubleType>().write_batch(&values, levels, None).unwrap();
        } else {
            let values: Vec<_> = cells.iter().map(|&cell| cell.into()).collect();
            column.typed::<ByteArrayType>().write_batch(&values, levels, None).unwrap();
        }
        column.close().unwrap();
        place += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_file_clears_the_same_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let parquet = dir.path().join("offers.parquet");
    write_parquet(&parquet, WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let csv = timeless(json(&[fixture("offers.csv").to_str().unwrap()]));
    assert_eq!(csv["report"]["fills"], 7);
    for file in [fixture("offers.json"), fixture("offers.jsonl"), parquet] {
        assert_eq!(timeless(json(&[file.to_str().unwrap()])), csv, "{}", file.display());
    }
    let piped = run(&["-", "--json"], Some(&fixture("offers.csv")));
    assert_eq!(timeless(serde_json::from_slice(&piped.stdout).unwrap()), csv);
}

/// Files of another writer, which has its own encodings and levels: pyarrow 26 wrote the fixture's offers next to columns of
/// other names, nested ones too, once for each compression. That Hadoop's LZ4 is read is a unit test of `walras-clear`.
#[test]
fn parquet_of_every_compression_and_with_other_columns_clears_the_same() {
    let csv = timeless(json(&[fixture("offers.csv").to_str().unwrap()]));
    for compression in ["none", "snappy", "gzip", "zstd", "lz4"] {
        let file = fixture(&format!("pyarrow-{compression}.parquet"));
        assert_eq!(timeless(json(&[file.to_str().unwrap()])), csv, "{compression}");
    }
}

/// Writes offers as CSV.
fn offers_csv(dir: &Path, rows: &str) -> String {
    let file = dir.join("own.csv");
    std::fs::write(&file, format!("sell,buy,amount,limit_price\n{rows}")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// 0.8 and 1.25 are no binary fractions, and each is exactly the inverse of the other.
#[test]
fn offers_whose_decimal_limits_meet_exactly_trade_in_full() {
    let dir = tempfile::tempdir().unwrap();
    for (rows, sold) in [
        ("A,B,10000,0.8\nB,A,8000,1.25\n", ["10000", "8000"]),
        ("A,B,10000,0.8\nB,A,4000,1.25\n", ["5000", "4000"]),
        // Round a cycle: 0.8 x 0.5 x 2.5 = 1.
        ("A,B,1000,0.8\nB,C,800,0.5\nC,A,400,2.5\n", ["1000", "800"]),
    ] {
        let cleared = json(&[&offers_csv(dir.path(), rows), "--eps", "0", "--decimals", "0"]);
        let fills = cleared["fills"].as_array().unwrap();
        assert_eq!(fills.len(), rows.lines().count(), "{rows}: {cleared}");
        for (fill, sold) in fills.iter().zip(sold) {
            assert_eq!(fill["sold"], sold, "{rows}: {fill}");
        }
    }
    // A hair apart they do not.
    let apart = json(&[&offers_csv(dir.path(), "A,B,10000,0.8\nB,A,8000,1.250001\n"), "--eps", "0", "--decimals", "0"]);
    assert_eq!(apart["fills"], serde_json::json!([]));
}

/// A market that takes long: after a deadline that has passed less is looked at, and what comes out is a clearing all the same.
#[test]
fn a_deadline_ends_the_search_of_a_large_market() {
    let dir = tempfile::tempdir().unwrap();
    let assets = 260_u64;
    let mut rows = String::new();
    for sell in 0..assets {
        for by in 1..=60 {
            // A valuation of (1 + asset), and limits up to 2 % off it on both sides.
            let (buy, off) = ((sell + by * by) % assets, (sell * 7 + by * 13) % 40);
            if buy != sell {
                let limit = (1.0 + sell as f64) / (1.0 + buy as f64) * (0.98 + off as f64 / 1_000.0);
                rows += &format!("S{sell},S{buy},{},{limit:.9}\n", 1_000_000 / (1 + sell));
            }
        }
    }
    let file = offers_csv(dir.path(), &rows);
    let queries = |cleared: &Value| cleared["report"]["queries"].as_u64().unwrap();
    let whole = json(&[&file]);
    // No machine is too fast for it.
    let cut = json(&[&file, "--deadline-ms", "0"]);
    assert!(queries(&cut) < queries(&whole), "{} of {}", queries(&cut), queries(&whole));
    assert!(whole["report"]["fills"].as_u64() > Some(1_000), "{}", whole["report"]);
    assert!(cut["report"]["outcome"] != "cleared" || cut["report"]["fills"].as_u64() < whole["report"]["fills"].as_u64());
    // The venue never keeps less than nothing of an asset.
    let kept = cut["prices"].as_array().unwrap().iter().map(|asset| asset["kept"].as_str().unwrap().to_owned());
    assert!(kept.clone().all(|kept| !kept.starts_with('-')), "{:?}", kept.collect::<Vec<_>>());
    let (status, said) = fails(&[&file, "--deadline-ms", "soon"]);
    assert!(status == 2 && said.contains("--deadline-ms"), "{said}");
}

#[test]
fn what_fills_sell_and_buy_adds_up_to_what_the_venue_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let (fills, plot) = (dir.path().join("fills.csv"), dir.path().join("plot.svg"));
    let printed =
        json(&[fixture("offers.csv").to_str().unwrap(), "--fills", fills.to_str().unwrap(), "--plot", plot.to_str().unwrap()]);
    // Eight decimals, as the prices table says.
    let units = |text: &str| -> i128 {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{fraction:0<8}").parse().unwrap()
    };
    let mut left: BTreeMap<String, i128> = BTreeMap::new();
    let mut reader = csv::Reader::from_path(&fills).unwrap();
    for row in reader.records().map(Result::unwrap) {
        *left.entry(row[4].to_owned()).or_default() += units(&row[6]);
        *left.entry(row[5].to_owned()).or_default() -= units(&row[7]);
    }
    for asset in printed["prices"].as_array().unwrap() {
        assert_eq!(asset["decimals"], 8);
        let kept = units(asset["kept"].as_str().unwrap());
        assert_eq!(left.get(asset["asset"].as_str().unwrap()).copied().unwrap_or(0), kept, "{asset}");
    }
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.contains("BTC for USD at") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
}

#[test]
fn people_see_prices_pairs_fills_and_quality() {
    let output = run(&[fixture("offers.csv").to_str().unwrap(), "--numeraire", "USD"], None);
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "PRICES\nasset",
        "\nPAIRS, those that trade most first\nsell  buy",
        "\nFILLS\nline  id",
        "\nQUALITY\noutcome               cleared",
        "without a price       DOGE, SHIB: nothing that they are offered for comes back to them",
        "lower bounds          kept",
        " USD\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn options_are_checked_and_bounds_can_be_strict() {
    let csv = fixture("offers.csv");
    let csv = csv.to_str().unwrap();
    let (status, said) = fails(&[csv, "--mu", "0.001"]);
    assert!(status == 2 && said.contains("not a power of two: the nearest is 2^-10"), "{said}");
    let (status, said) = fails(&[csv, "--eps", "31"]);
    assert!(status == 2 && said.contains("give 2^-1 to 2^-30, or its bits, 1 to 30; 0 for no commission"), "{said}");
    let (status, said) = fails(&[csv, "--numeraire", "EUR"]);
    assert!(status == 4 && said.contains("--numeraire EUR: no offer names this asset"), "{said}");
    let (status, said) = fails(&[csv, "--decimals", "GBP=2"]);
    assert!(status == 4 && said.contains("decimals are given for GBP, which no offer names"), "{said}");
    let (status, said) = fails(&[csv, "--decimals", "0"]);
    let expected = "offers.csv: line 3, column amount: 1.5 is no whole number of units of BTC, which has 0 decimals: round it, or give BTC 1 decimals";
    assert!(status == 4 && said.contains(expected), "{said}");
    let (status, said) = fails(&[csv, "--fills", "/nowhere/fills.csv"]);
    assert!(status == 4 && said.contains("/nowhere/fills.csv: could not be written"), "{said}");
    let (status, said) = fails(&["/nowhere/offers.csv"]);
    assert!(status == 4 && said.contains("/nowhere/offers.csv: could not be read"), "{said}");
    let note = run(&[csv, "--eps", "10", "--mu", "10"], None);
    assert!(note.status.success() && String::from_utf8(note.stderr).unwrap().contains("give a larger --mu or a smaller --eps"));
    assert!(run(&[csv, "--deadline-ms", "18446744073709551615"], None).status.success());
    for solver in ["portfolio", "newton", "tatonnement"] {
        let cleared = json(&[csv, "--solver", solver, "--eps", "0", "--mu", "2^-5", "--queries", "5000"]);
        assert!(cleared["report"]["fills"].as_u64() > Some(0), "{solver}");
    }
    // A single query finds no prices good enough for 2^-30.
    let (status, said) = fails(&[csv, "--strict", "--queries", "1", "--solver", "tatonnement", "--mu", "30"]);
    assert!(status == 4 && said.contains("offers clearly in the money would not trade in full"), "{said}");
    assert!(["BTC", "ETH", "USD"].iter().any(|asset| said.contains(&format!(" first {asset} for "))), "{said}");
}

#[test]
fn parquet_that_is_not_read_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("offers.parquet");
    std::fs::write(&file, b"PAR1 and nothing else").unwrap();
    let (status, said) = fails(&[file.to_str().unwrap()]);
    assert!(status == 4 && said.contains("as Parquet: ") && said.contains("compression=\"zstd\""), "{said}");
}

fn error(text: &str) -> String {
    load_text(text.as_bytes(), &Decimals::default()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn bad_files_are_named_by_line_and_column() {
    let head = "sell,buy,amount,limit_price\nA,B,1,2\n";
    for (text, expected) in [
        ("", "is empty: give offers with the columns sell, buy, amount, limit_price"),
        (" \r\n ", "is empty: give offers"),
        ("sell,buy,amout\nA,B,1\n", "line 1, column amout: there is no such column (did you mean amount?): use sell, buy, amount"),
        ("sell,buy,zebra crossing\n", "line 1, column zebra crossing: there is no such column: use sell"),
        ("sell,buy,x\n", "line 1, column x: there is no such column: use sell"),
        ("sell,buy,amount,sell\n", "line 1, column sell: comes twice: keep one of them"),
        ("sell,amount\n", "line 1, column buy: is missing: offers need the columns sell, buy and amount"),
        ("sell,buy,amount,limit_price\nA,B,1,1\nA,B\n", "line 3: 2 cells where the first line names 4 columns"),
        ("sell,buy,amount,limit_price\n\nA,B,1,1\n\"A\nA\",B,0,1\n", "line 4, column amount: is zero"),
        ("sell;buy;amount\nA;B;1,5\n", "line 2, column amount: `1,5` is no number: write digits"),
        ("[1]", "line 1: is no object: write each offer as {\"sell\""),
        ("[\n{\"sell\": \"A\"}]", "line 2, column buy: is missing"),
        ("{\"sell\": \"A\"\n,}", "line 2: is no JSON: "),
        (
            "{\"sell\": \"A\", \"buy\": \"B\", \"amount\": 1, \"limit_price\": 1}\n{\"sell\": \"A\", \"buy\": true, \"amount\": 1}",
            "line 2, column buy: is true: write text or a number",
        ),
        (
            "{\"sell\": \"A\", \"buy\": \"B\", \"amount\": 1, \"price\": 2}",
            "line 1, column price: there is no such column (did you mean limit_price?)",
        ),
        (
            "sell,buy,amount\nA,B,1\n",
            "line 2, column limit_price: is empty: write the least that is bought for each sold, or `market`",
        ),
        (
            "{\"sell\": \"A\", \"buy\": \"B\", \"amount\": 1, \"limit_price\": 1, \"amount\": 2}",
            "line 1, column amount: comes twice: keep one of them",
        ),
        ("[{\"sell\": \"A\",\n \"buy\": \"B\", \"amount\": -1}]", "line 1, column amount: `-1` is below zero"),
    ] {
        let said = error(text);
        assert!(said.starts_with(expected), "{text}\n{said}");
    }
    for (row, expected) in [
        ("A,B,0,1", "line 3, column amount: is zero"),
        ("A,A,1,1", "line 3, column buy: A for itself"),
        ("A,B,NaN,1", "line 3, column amount: `NaN` is no number"),
        ("A,B,1,inf", "line 3, column limit_price: `inf` is no number"),
        ("A,B,99999999999999999999,1", "line 3, column amount: `99999999999999999999` has more than 19 significant digits"),
        ("A,B,1e30,1", "line 3, column amount: 1e30 of A with 0 decimals is more than 2^63 - 1 units"),
        ("A,B,9223372036854775807,market", "all offers of A together are more than 2^63 - 1 units"),
        ("A,B,1,1e-39", "line 3, column limit_price: in whole units of A and B: the price is not within 2^-126 and 2^126"),
    ] {
        let said = error(&format!("{head}{row}\n"));
        assert!(said.starts_with(expected), "{row}\n{said}");
    }
    let not_text = load_text(b"sell,buy,amount,limit_price\nA,B,1,1\nA,\xff,1,1\n", &Decimals::default()).map(|_| ()).unwrap_err();
    assert_eq!(not_text.to_string(), "line 3: is not UTF-8 text: save the file as UTF-8");
}

#[test]
fn separators_marks_and_line_ends_do_not_matter() {
    let plain = "sell,buy,amount,limit_price\nA,B,1,2\nB,A,2,0.4\n";
    let count = |text: &str| load_text(text.as_bytes(), &Decimals::default()).unwrap().row_count();
    for text in [
        plain.to_owned(),
        plain.replace(',', ";"),
        plain.replace(',', "\t"),
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}\n\n"),
    ] {
        assert_eq!(count(&text), 2, "{text:?}");
    }
}

fn clears_or_says_why(text: &[u8]) {
    let Ok(named) = load_text(text, &Decimals::default()) else { return };
    let settings = Settings { budget: Budget::queries(300), ..Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap()) };
    let cleared = clear(&named, &settings).unwrap();
    let tables = Tables::new(&named, &cleared, None).unwrap();
    let fills = Fills::new(&named, &cleared);
    assert_eq!(fills.iter().count(), cleared.report.fill_count + cleared.report.pool_count);
    assert!(tables.human(&fills).contains("QUALITY"));
    let dir = tempfile::tempdir().unwrap();
    walras_clear::write_plot(&dir.path().join("plot.svg"), &named, &cleared, 4).unwrap();
}

fn number() -> impl Strategy<Value = String> {
    let edges = ["", "0", "1e-30", "1e30", "9223372036854775807", "0.00000001", "-1", "NaN"].map(String::from);
    prop_oneof![6 => "[1-9][0-9]{0,4}(\\.[0-9]{1,3})?", 1 => "[1-9](e-?[0-9]{1,2})?", 1 => prop::sample::select(edges.to_vec())]
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), head in 0..4_usize) {
        let heads = ["", "sell,buy,amount\n", "[{\"sell\":", "{\"sell\": \"A\", \"buy\": \"B\", \"amount\": 1}\n"];
        clears_or_says_why(&[heads[head].as_bytes(), &bytes].concat());
    }

    #[test]
    fn any_table_clears_or_is_refused(
        rows in prop::collection::vec(("[ABCD]", "[ABCD]", number(), number(), prop::sample::select(vec!["", "sell", "buy"])), 0..12)
    ) {
        let mut text = "sell,buy,amount,limit_price,kind\n".to_owned();
        for (sell, buy, amount, limit, kind) in rows {
            text += &format!("{sell},{buy},{amount},{limit},{kind}\n");
        }
        clears_or_says_why(text.as_bytes());
    }
}
