//! What others read: Parquet by the library, DBN by a reader written here from its documentation, and files that are kept so that a
//! reader in another language can be tried on them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use walras_archive::{Book, Day, DbnForm, History, Level, Settings, Trade};
use walras_types::{AssetId, Side, TimeNs, TradeId};
use walras_wire::{Command, InstrumentCommand, VenueCommand};

use super::plain::plain;
use super::world::{BEGIN_NS, Script, archive, contents, settings};

pub(crate) type Row = BTreeMap<String, String>;

pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        Field::TimestampMicros(_) | Field::TimestampMillis(_) => panic!("times are in nanoseconds"),
        // The library writes a decimal without decimals with its point.
        other => other.to_string().trim_end_matches('.').to_owned(),
    };
    let row = |row: parquet::record::Row| row.get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect();
    reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

fn side(side: Option<Side>) -> &'static str {
    match side {
        None => "none",
        Some(Side::Buy) => "buy",
        Some(Side::Sell) => "sell",
    }
}

/// So many of a step, with the step's decimals.
fn decimal(step: &str, count: u64) -> String {
    let (whole, fraction) = step.split_once('.').unwrap_or((step, ""));
    let scaled = format!("{whole}{fraction}").parse::<u128>().unwrap() * u128::from(count);
    let digits = format!("{scaled:0>width$}", width = fraction.len() + 1);
    let (whole, fraction) = digits.split_at(digits.len() - fraction.len());
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

fn facts(path: &Path) -> BTreeMap<String, String> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let facts = reader.metadata().file_metadata().key_value_metadata().unwrap();
    facts.iter().map(|fact| (fact.key.clone(), fact.value.clone().unwrap())).collect()
}

pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    contents(folder).into_keys().filter(|name| name.ends_with(ending)).map(|name| folder.join(name)).collect()
}

pub(crate) fn closed_until(folder: &Path) -> TimeNs {
    History::new(folder).days().unwrap().last().unwrap().day.start()
}

#[test]
fn parquet_holds_what_happened() {
    let script = Script::of_seed(21, 4_000);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let end = closed_until(folder.path());
    let mut found: Vec<Row> = Vec::new();
    for path in files(folder.path(), ".trades.parquet") {
        let facts = facts(&path);
        let rows = rows(&path);
        for row in &rows {
            assert_eq!(row["instrument"], facts["walras.instrument"]);
            let of = |step: &str, count: &str| decimal(&facts[step], row[count].parse().unwrap());
            if let (Some(price), Some(size)) = (row.get("price"), row.get("size")) {
                assert_eq!((price, size), (&of("walras.tick", "price_ticks"), &of("walras.lot", "size_lots")));
            }
        }
        found.extend(rows);
    }
    let key = |row: &Row| (row["log_index"].parse::<u64>().unwrap(), row["trade_id"].parse::<u64>().unwrap());
    found.sort_by_key(key);
    let expected: Vec<&Trade> = script.trades.iter().filter(|t| t.time < end).collect();
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(found.len(), expected.len());
    for (row, trade) in found.iter().zip(&expected) {
        let numbers = ["log_index", "trade_id", "price_ticks", "size_lots"].map(|name| row[name].parse::<u64>().unwrap());
        assert_eq!(numbers, [trade.log_index.0, trade.trade_id.0, trade.price.get() as u64, trade.size.get()]);
        assert_eq!(
            (row["time_ns"].as_str(), row["taker_side"].as_str()),
            (trade.time.0.to_string().as_str(), side(trade.taker_side))
        );
    }
    let mut levels = 0;
    for path in files(folder.path(), ".books.parquet") {
        levels += rows(&path).len();
    }
    let of_books = script.books.iter().filter(|book| book.time < end).map(|book| book.bids.len() + book.asks.len());
    assert_eq!(levels, of_books.sum::<usize>());
}

/// What a DBN file says of itself, and its records.
struct Dbn {
    schema: u16,
    start: u64,
    end: u64,
    symbol: String,
    records: Vec<Vec<u8>>,
}

fn read_dbn(path: &Path) -> Dbn {
    let bytes = std::fs::read(path).unwrap();
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let text = |at: usize, len: usize| String::from_utf8(bytes[at..at + len].split(|&b| b == 0).next().unwrap().to_vec()).unwrap();
    assert_eq!((&bytes[..4], text(8, 16).as_str()), (&b"DBN\x03"[..], "WALRAS"));
    let begin = 8 + u32_at(4) as usize;
    assert_eq!(begin % 8, 0, "records of version 3 begin at a multiple of 8");
    assert_eq!((bytes[50], bytes[51], bytes[52], u16_at(53)), (1, 0, 0, 71));
    // Behind the part of fixed length: the schema's definition, symbols, partly found, not found, mappings.
    let mut at = 8 + 100;
    assert_eq!((u32_at(at), u32_at(at + 4)), (0, 1));
    let symbol = text(at + 8, 71);
    at += 8 + 71;
    assert_eq!((u32_at(at), u32_at(at + 4), u32_at(at + 8)), (0, 0, 1));
    assert_eq!(text(at + 12, 71), symbol);
    at += 12 + 71;
    assert_eq!(u32_at(at), 1);
    let day = Day::of(TimeNs(u64_at(26)));
    assert_eq!(u32_at(at + 4).to_string(), day.to_string().replace('-', ""));
    assert_eq!(u32_at(at + 8).to_string(), day.next().to_string().replace('-', ""));
    let id = text(at + 12, 71);
    let mut records = Vec::new();
    let mut rest = &bytes[begin..];
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(usize::from(rest[0]) * 4);
        assert_eq!(u32::from_le_bytes(record[4..8].try_into().unwrap()).to_string(), id);
        records.push(record.to_vec());
        rest = behind;
    }
    Dbn { schema: u16_at(24), start: u64_at(26), end: u64_at(34), symbol, records }
}

fn number(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().unwrap())
}

fn short(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().unwrap())
}

#[test]
fn dbn_holds_what_happened() {
    let script = plain();
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let day = Day::of(TimeNs(BEGIN_NS));
    let dir = folder.path().join(day.to_string());
    let trades = read_dbn(&dir.join("BTC-USD.0.trades.dbn"));
    assert_eq!((trades.schema, trades.start, trades.end, trades.symbol.as_str()), (4, day.start().0, day.end().0, "BTC/USD"));
    // 0.5 USD is half of 10^9.
    let expected = [(60_002, 2, b'B'), (59_999, 1, b'A'), (60_002, 3, b'B'), (60_003, 3, b'B')];
    assert_eq!(trades.records.len(), expected.len());
    for ((record, (ticks, lots, side)), trade) in trades.records.iter().zip(expected).zip(&script.trades) {
        assert_eq!((record.len(), record[1], record[28], record[29], record[30]), (48, 0, b'T', side, 128));
        assert_eq!((number(record, 16), short(record, 24)), (ticks * 500_000_000, lots));
        assert_eq!((number(record, 8), number(record, 32)), (trade.time.0, trade.time.0));
        assert_eq!(u64::from(short(record, 44)), trade.trade_id.0);
    }
    assert_eq!(script.trades[2].log_index, script.trades[3].log_index, "two trades of one entry have a number each");
    let books = read_dbn(&dir.join("BTC-USD.0.mbp-10.dbn"));
    let snapshots: Vec<&Book> = script.books.iter().filter(|book| book.time < day.end()).collect();
    assert_eq!((books.schema, books.records.len()), (2, snapshots.len()));
    assert!(snapshots.len() > 3);
    for (record, book) in books.records.iter().zip(snapshots) {
        assert_eq!((record.len(), record[1], record[30]), (368, 10, 128 | 32));
        assert_eq!(u64::from(short(record, 44)), book.log_index.0);
        for at in 0..10 {
            let level = 48 + 32 * at;
            let check = |shown: Option<&Level>, price, size, count| match shown {
                None => assert_eq!((number(record, price), short(record, size), short(record, count)), (i64::MAX as u64, 0, 0)),
                Some(shown) => {
                    assert_eq!(number(record, price), shown.price.get() as u64 * 500_000_000);
                    assert_eq!((u64::from(short(record, size)), short(record, count)), (shown.size.get(), shown.order_count));
                }
            };
            check(book.bids.get(at), level, level + 16, level + 24);
            check(book.asks.get(at), level + 8, level + 20, level + 28);
        }
    }
}

#[test]
fn dbn_is_read_by_its_own_library() {
    use dbn::decode::dbn::Decoder;
    use dbn::decode::{DbnMetadata, DecodeRecord};
    let script = plain();
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let dir = folder.path().join(Day::of(TimeNs(BEGIN_NS)).to_string());
    let open = |name: &str| Decoder::from_file(dir.join(name)).unwrap();
    let mut trades = open("BTC-USD.0.trades.dbn");
    let metadata = trades.metadata();
    assert_eq!((metadata.version, metadata.dataset.as_str(), metadata.schema), (3, "WALRAS", Some(dbn::Schema::Trades)));
    assert_eq!((metadata.stype_in, metadata.stype_out), (Some(dbn::SType::RawSymbol), dbn::SType::InstrumentId));
    assert_eq!(
        (metadata.symbols.as_slice(), metadata.mappings[0].intervals[0].symbol.as_str()),
        (&["BTC/USD".to_owned()][..], "0")
    );
    let mut found = Vec::new();
    while let Some(trade) = trades.decode_record::<dbn::TradeMsg>().unwrap() {
        assert_eq!((trade.action().unwrap(), trade.hd.instrument_id), (dbn::Action::Trade, 0));
        found.push((trade.hd.ts_event, trade.price, trade.size, trade.side().unwrap()));
    }
    let expected = script.trades.iter().map(|t| {
        let side = if t.taker_side == Some(Side::Buy) { dbn::Side::Bid } else { dbn::Side::Ask };
        (t.time.0, t.price.get() * 500_000_000, t.size.get() as u32, side)
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
    let mut books = open("BTC-USD.0.mbp-10.dbn");
    assert_eq!(books.metadata().schema, Some(dbn::Schema::Mbp10));
    let mut count = 0;
    while let Some(book) = books.decode_record::<dbn::Mbp10Msg>().unwrap() {
        let snapshot = &script.books[count];
        let best = snapshot.bids.first().map_or(dbn::UNDEF_PRICE, |level| level.price.get() * 500_000_000);
        assert_eq!((book.levels[0].bid_px, book.flags.is_snapshot()), (best, true));
        count += 1;
    }
    assert!(count > 3);
}

/// A tick of half a dollar and a lot of a thousandth, as Databento's own library reads them.
#[test]
fn definitions_say_what_a_tick_and_a_lot_are() {
    use dbn::decode::dbn::Decoder;
    use dbn::decode::{DbnMetadata, DecodeRecord};
    let folder = tempfile::tempdir().unwrap();
    let dbn_form = DbnForm { publisher: 7, ..DbnForm::default() };
    archive(&Settings { dbn_form, ..settings(folder.path()) }, &plain());
    let day = Day::of(TimeNs(BEGIN_NS));
    let dir = folder.path().join(day.to_string());
    let mut definitions = Decoder::from_file(dir.join("BTC-USD.0.definition.dbn")).unwrap();
    assert_eq!(definitions.metadata().schema, Some(dbn::Schema::Definition));
    let definition = definitions.decode_record::<dbn::InstrumentDefMsg>().unwrap().unwrap();
    assert_eq!((definition.hd.publisher_id, definition.hd.instrument_id, definition.hd.ts_event), (7, 0, day.start().0));
    let (symbol, currency, asset) = (definition.raw_symbol(), definition.currency(), definition.asset());
    assert_eq!((symbol.unwrap(), currency.unwrap(), asset.unwrap()), ("BTC/USD", "USD", "BTC"));
    assert_eq!(definition.unit_of_measure().unwrap(), "BTC");
    assert_eq!((definition.min_price_increment, definition.unit_of_measure_qty), (500_000_000, 1_000_000));
    assert_eq!((definition.display_factor, definition.min_lot_size, definition.min_lot_size_round_lot), (1_000_000_000, 1, 1));
    assert_eq!(definition.instrument_class().unwrap(), dbn::InstrumentClass::FxSpot);
    assert_eq!(definition.security_update_action().unwrap(), dbn::SecurityUpdateAction::Add);
    // All else is what the library has for what is not known.
    let known = dbn::InstrumentDefMsg {
        hd: definition.hd,
        ts_recv: day.start().0,
        min_price_increment: definition.min_price_increment,
        display_factor: definition.display_factor,
        unit_of_measure_qty: definition.unit_of_measure_qty,
        min_lot_size: definition.min_lot_size,
        min_lot_size_round_lot: definition.min_lot_size_round_lot,
        currency: definition.currency,
        raw_symbol: definition.raw_symbol,
        asset: definition.asset,
        unit_of_measure: definition.unit_of_measure,
        instrument_class: definition.instrument_class,
        ..dbn::InstrumentDefMsg::default()
    };
    assert!(*definition == known, "a field has another default");
    assert!(definitions.decode_record::<dbn::InstrumentDefMsg>().unwrap().is_none());
    for name in ["BTC-USD.0.trades.dbn", "BTC-USD.0.mbp-10.dbn", "BTC-USD.0.mbo.dbn"] {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        let begin = 8 + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(bytes[begin + 2..begin + 4], 7_u16.to_le_bytes(), "{name}");
    }
}

/// What is compressed is what is not, in frames of zstd.
#[test]
fn compressed_files_hold_the_same_bytes() {
    use std::io::Read;
    let (mut count, mut bytes) = (0, [0, 0]);
    for script in [plain(), Script::of_seed(21, 4_000)] {
        let [plainly, compressed] = [false, true].map(|is_compressed| {
            let folder = tempfile::tempdir().unwrap();
            let dbn_form = DbnForm { is_compressed, ..DbnForm::default() };
            archive(&Settings { parquet: false, dbn_form, ..settings(folder.path()) }, &script);
            folder
        });
        assert!(files(compressed.path(), ".dbn").is_empty());
        for path in files(compressed.path(), ".dbn.zst") {
            let packed = std::fs::read(&path).unwrap();
            let (mut rest, mut unpacked) = (packed.as_slice(), Vec::new());
            while !rest.is_empty() {
                ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap().read_to_end(&mut unpacked).unwrap();
            }
            let name = path.strip_prefix(compressed.path()).unwrap().with_extension("");
            assert!(unpacked == std::fs::read(plainly.path().join(&name)).unwrap(), "{}", name.display());
            (count, bytes) = (count + 1, [bytes[0] + packed.len(), bytes[1] + unpacked.len()]);
        }
    }
    assert!(count >= 4 && bytes[0] < bytes[1], "{count} files, {bytes:?}");
}

#[test]
fn days_that_dbn_cannot_represent_exactly_have_no_dbn_file() {
    // One tick is 10^-10 of quote per base.
    let mut script = plain();
    for (_, _, command) in &mut script.entries {
        match command {
            Command::Venue(VenueCommand::CreateAsset(spec)) => spec.decimals = if spec.asset == AssetId(0) { 0 } else { 12 },
            Command::Instrument(InstrumentCommand::Create(spec)) => (spec.lot_units, spec.tick_value_units) = (1, 100),
            _ => {}
        }
    }
    let script = Script::of(script.entries);
    assert_eq!(script.trades.len(), 4);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let days = History::new(folder.path()).days().unwrap();
    let manifest = days[0].manifest.as_ref().unwrap();
    assert!(manifest.complete && manifest.notes.len() == 1 && manifest.notes[0].contains("9 decimals"), "{:?}", manifest.notes);
    assert!(files(folder.path(), ".dbn").is_empty());
    assert_eq!(rows(&files(folder.path(), ".trades.parquet")[0])[0]["price"], "0.0000060002");
}

#[test]
fn formats_are_made_where_they_are_asked_for() {
    for (parquet, dbn) in [(false, true), (true, false), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        archive(&Settings { parquet, dbn, ..settings(folder.path()) }, &plain());
        assert_eq!((!files(folder.path(), ".parquet").is_empty(), !files(folder.path(), ".dbn").is_empty()), (parquet, dbn));
    }
}

/// `tests/golden/2026-11-20` is read by a test of the Python package too, and so is `tests/golden-zstd`. Where the format changes with
/// intent, run this with `WALRAS_WRITE_GOLDEN` set, and say so in the change.
#[test]
fn the_files_are_those_that_were_kept() {
    for (name, is_compressed) in [("golden", false), ("golden-zstd", true)] {
        let folder = tempfile::tempdir().unwrap();
        let dbn_form = DbnForm { is_compressed, ..DbnForm::default() };
        archive(&Settings { parquet: !is_compressed, dbn_form, ..settings(folder.path()) }, &plain());
        let day = Day::of(TimeNs(BEGIN_NS)).to_string();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
        let made: BTreeMap<_, _> =
            contents(folder.path()).into_iter().filter(|(name, _)| name.starts_with(&format!("{day}/"))).collect();
        if std::env::var_os("WALRAS_WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(golden.join(&day)).unwrap();
            made.iter().for_each(|(name, bytes)| std::fs::write(golden.join(name), bytes).unwrap());
        }
        let kept = contents(&golden);
        assert_eq!(made.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
        for (name, bytes) in &made {
            assert!(kept[name] == *bytes, "{name} is not as it was");
        }
    }
}

#[test]
fn the_first_trade_is_what_was_ordered() {
    let trade = plain().trades[0];
    let (time, trade_id) = (trade.time, trade.trade_id);
    assert!(trade_id > TradeId(0) && time > TimeNs(BEGIN_NS));
    assert_eq!((trade.price.get(), trade.size.get(), trade.taker_side), (60_002, 2, Some(Side::Buy)));
}

/// What does not fit a DBN record costs the DBN file and nothing else, on whichever side it stands and however deep the other one
/// is.
#[test]
fn a_size_that_dbn_has_no_room_for_is_noted_on_either_side() {
    use walras_testkit::plain::{opening, order};
    for (large, many) in [(Side::Sell, Side::Buy), (Side::Buy, Side::Sell)] {
        let price = |side: Side, at: i64| if side == Side::Buy { 59_999 - at } else { 60_001 + at };
        let mut commands = opening();
        for command in &mut commands {
            // So small a lot that either account can pay for so many.
            if let Command::Instrument(InstrumentCommand::Create(spec)) = command {
                (spec.lot_units, spec.tick_value_units) = (1, 1);
            }
        }
        commands.extend((0..25).map(|at| order(0, at as u64, many, price(many, at), 1)));
        commands.push(order(1, 0, large, price(large, 0), 1 << 33));
        let mut entries: Vec<_> =
            (1..).map(walras_types::LogIndex).zip(commands).map(|(at, command)| (at, TimeNs(BEGIN_NS + at.0), command)).collect();
        let end = Day::of(TimeNs(BEGIN_NS)).end();
        entries.push((walras_types::LogIndex(entries.len() as u64 + 1), end, Command::Venue(VenueCommand::Tick)));
        let folder = tempfile::tempdir().unwrap();
        archive(
            &Settings { depth: 30, snapshot_every_ns: 1, ..settings(folder.path()) },
            &Script { entries, trades: Vec::new(), books: Vec::new(), accounts: Vec::new() },
        );
        let manifest = History::new(folder.path()).days().unwrap()[0].manifest.clone().unwrap();
        assert_eq!(manifest.notes, ["BTC/USD: no DBN files: a size of the day is above 4294967294 lots"]);
        assert!(files(folder.path(), ".dbn").is_empty() && !files(folder.path(), ".books.parquet").is_empty());
    }
}
