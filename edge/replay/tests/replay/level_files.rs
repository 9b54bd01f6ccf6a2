//! LOBSTER files of few levels, made of days that are known whole: how much of the truth is found again, and what one false line
//! costs.

use walras_market_history::lobster::{LevelCut, LobsterMessage, LobsterReader, LobsterType, LobsterWriter, write_row};
use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_market_history::{Format, open_bytes};
use walras_replay::venue::{VenueOptions, run_loaded as through_venue};
use walras_replay::{ExecutionReport, Loaded, Options, Report, run, run_loaded};

/// Three stocks: a lively one, one whose price runs, and one below a dollar.
fn stocks() -> [(&'static str, SyntheticConfig); 3] {
    let default = SyntheticConfig::default();
    let lively = SyntheticConfig {
        seed: 11,
        duration_ns: 240_000_000_000,
        opening_orders: 60,
        fundamental_step_milliticks: 2_000,
        lean_permille_per_tick: 60,
        marketable_orders_per_ks: 6_000,
        ..default
    };
    let running = SyntheticConfig {
        seed: 12,
        fundamental_step_milliticks: 6_000,
        fundamental_reversion_ppm: 20,
        lean_permille_per_tick: 60,
        ..lively
    };
    let cheap = SyntheticConfig { seed: 13, units_per_tick: 1, start_price_ticks: 4_321, ..lively };
    [("LIVELY", lively), ("RUNS", running), ("CHEAP", cheap)]
}

fn day(config: SyntheticConfig) -> Vec<LobsterMessage> {
    let mut text = Vec::new();
    write_lobster(config, &mut text).unwrap();
    LobsterReader::new(&text[..]).map(Result::unwrap).collect()
}

fn text(messages: &[LobsterMessage]) -> Vec<u8> {
    let mut writer = LobsterWriter::new(Vec::new());
    for message in messages {
        writer.write(message).unwrap();
    }
    writer.finish().unwrap()
}

/// The message file and the orderbook file that LOBSTER would make of a day with so many levels.
fn cut(day: &[LobsterMessage], levels: usize) -> (Vec<LobsterMessage>, Vec<u8>) {
    let mut cut = LevelCut::new(levels);
    let mut rows = Vec::new();
    let mut messages = Vec::new();
    for message in day {
        if cut.take(message) {
            messages.push(*message);
            write_row(&cut.row(), &mut rows).unwrap();
        }
    }
    (messages, rows)
}

fn options() -> Options {
    Options { timing_rounds: 1, ..Options::default() }
}

fn loaded(messages: &[LobsterMessage]) -> Loaded {
    Loaded::read(&text(messages)[..], Format::Lobster, &options(), &mut |_| {}).unwrap()
}

/// A file whose name says its levels.
fn replay_levels(messages: &[LobsterMessage], levels: usize) -> Report {
    let options = Options { levels: u32::try_from(levels).ok(), ..options() };
    let loaded = Loaded::read(&text(messages)[..], Format::Lobster, &options, &mut |_| {}).unwrap();
    run_loaded(&loaded, &options, &mut |_| {}).unwrap()
}

fn replay(messages: &[LobsterMessage]) -> Report {
    run_loaded(&loaded(messages), &options(), &mut |_| {}).unwrap()
}

fn executions(messages: &[LobsterMessage]) -> ExecutionReport {
    replay(messages).executions.unwrap()
}

/// Per cent at the best price that a file of so many levels must reach.
fn bar(levels: usize) -> f64 {
    if levels < 10 { 89.0 } else { 96.0 }
}

#[test]
fn files_of_few_levels_are_nearly_as_good_as_the_whole_day() {
    for (name, config) in stocks() {
        let day = day(config);
        let whole = executions(&day);
        assert_eq!((whole.at_best, whole.at_head), (whole.of_known_orders, whole.of_known_orders), "{name}");
        for levels in [1, 5, 10, 50] {
            let (messages, _) = cut(&day, levels);
            let report = replay_levels(&messages, levels);
            let executions = report.executions.unwrap();
            let percent = executions.at_best_percent();
            eprintln!(
                "{name}, {levels} levels: {} of {} messages, {percent:.2} % of {} at best, {} presumed deleted, {} resting at most",
                messages.len(),
                day.len(),
                executions.of_known_orders,
                report.book.orders_presumed_deleted,
                report.book.resting_orders_max
            );
            assert!(executions.of_known_orders * 10 > whole.of_known_orders, "{name}, {levels} levels");
            assert!(percent >= bar(levels), "{name}, {levels} levels: {percent:.2} %");
            assert!(levels > 1 || report.book.orders_presumed_deleted > 0, "{name}");
            assert_eq!(report.book.adds_that_traded, 0, "{name}, {levels} levels");
        }
    }
}

#[test]
fn an_orderbook_file_is_where_a_replay_starts_and_what_it_is_held_against() {
    let folder = tempfile::tempdir().unwrap();
    for (name, config) in stocks() {
        let day = day(config);
        // Without the first minute's messages, as a file that begins at the opening.
        let opening = day.len() / 4;
        for levels in [1, 10] {
            let mut cut = LevelCut::new(levels);
            let (mut messages, mut rows) = (Vec::new(), Vec::new());
            for (at, message) in day.iter().enumerate() {
                if cut.take(message) && at >= opening {
                    messages.push(*message);
                    write_row(&cut.row(), &mut rows).unwrap();
                }
            }
            let path = folder.path().join(format!("{name}_2012-06-21_34200000_57600000_message_{levels}.csv"));
            std::fs::write(&path, text(&messages)).unwrap();
            let alone = run(&path, &options(), &mut |_| {}).unwrap();
            assert_eq!((alone.symbol.as_deref(), alone.levels, &alone.orderbook), (Some(name), Some(levels as u32), &None));
            let levels_file = path.with_file_name(format!("{name}_2012-06-21_34200000_57600000_orderbook_{levels}.csv"));
            std::fs::write(&levels_file, &rows).unwrap();
            let report = run(&path, &options(), &mut |_| {}).unwrap();
            let orderbook = report.orderbook.as_ref().unwrap();
            eprintln!("{name}, {levels} levels: {orderbook:?}");
            assert_eq!((orderbook.levels, orderbook.rows_astray, &orderbook.file), (levels, 0, &levels_file));
            assert!(orderbook.rows_equal * 100 >= orderbook.rows * 99, "{orderbook:?}");
            assert!(orderbook.levels_learned > 0);
            let percent = report.executions.unwrap().at_best_percent();
            assert!(percent >= 98.0, "{name}, {levels} levels: {percent:.2} %");
            // A row that says otherwise is found, by its line, and costs itself.
            let mut lines: Vec<&[u8]> = rows.split(|&byte| byte == b'\n').collect();
            let at = lines.len() / 2;
            let mut fields: Vec<&[u8]> = lines[at].split(|&byte| byte == b',').collect();
            fields[1] = b"987654";
            let forged = fields.join(&b',');
            lines[at] = &forged;
            let forged = folder.path().join("forged.csv");
            std::fs::write(&forged, lines.join(&b'\n')).unwrap();
            let forged_report =
                run(&path, &Options { orderbook: Some(forged), ..options() }, &mut |_| {}).unwrap().orderbook.unwrap();
            assert!(
                forged_report.rows_equal < orderbook.rows_equal && forged_report.rows_equal * 100 >= forged_report.rows * 95,
                "{forged_report:?}"
            );
        }
    }
}

#[test]
fn an_orderbook_file_of_another_day_or_format_is_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let day = day(SyntheticConfig { duration_ns: 5_000_000_000, ..SyntheticConfig::default() });
    let (messages, rows) = cut(&day, 2);
    let orderbook = folder.path().join("rows.csv");
    std::fs::write(&orderbook, rows.split_inclusive(|&byte| byte == b'\n').take(100).collect::<Vec<_>>().concat()).unwrap();
    let options = Options { orderbook: Some(orderbook.clone()), ..options() };
    let loaded = Loaded::read(&text(&messages)[..], Format::Lobster, &options, &mut |_| {}).unwrap();
    let report = run_loaded(&loaded, &options, &mut |_| {}).unwrap().orderbook.unwrap();
    assert_eq!(report.rows_astray, messages.len() as u64 - 100);
    let error = run(&orderbook, &Options::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("it looks like a LOBSTER orderbook file; give the LOBSTER message file instead"), "{error}");
}

#[test]
fn one_false_line_costs_its_own_order_and_no_more() {
    let day = day(SyntheticConfig { seed: 21, duration_ns: 40_000_000_000, ..SyntheticConfig::default() });
    for levels in [10, usize::MAX] {
        let messages = if levels == usize::MAX { day.clone() } else { cut(&day, levels).0 };
        let honest = executions(&messages);
        let executions_of = |order_id| {
            let is_one = |message: &&LobsterMessage| message.order_id == order_id && message.message_type == LobsterType::Execute;
            messages.iter().filter(is_one).count() as u64
        };
        let spread = [-600, -200, -100, 100, 200, 600];
        for position in (0..messages.len()).step_by(messages.len() / 23) {
            let line = messages[position];
            let forgeries = spread
                .map(|by| LobsterMessage { price: line.price + by, ..line })
                .into_iter()
                .chain(
                    [LobsterType::Add, LobsterType::Reduce, LobsterType::Delete, LobsterType::Execute]
                        .map(|message_type| LobsterMessage { message_type, ..line }),
                )
                .chain([LobsterMessage { size: line.size * 7, ..line }, LobsterMessage { order_id: 999_999_999, ..line }])
                .chain(spread.map(|by| LobsterMessage {
                    message_type: LobsterType::Add,
                    order_id: 999_999_999,
                    price: line.price + by,
                    ..line
                }));
            for forged in forgeries {
                for inserted in [false, true] {
                    let mut lines = messages.clone();
                    match inserted {
                        true => lines.insert(position, forged),
                        false => lines[position] = forged,
                    }
                    let after = executions(&lines);
                    // What the line is worth: the executions of the order that it names, of the one that it replaces, and one that
                    // it is in the way of.
                    let worth = executions_of(line.order_id) + executions_of(forged.order_id) + 2;
                    let lost =
                        |honest: u64, honest_all: u64, after: u64, all: u64| (all - after).saturating_sub(honest_all - honest);
                    let lost = lost(honest.at_best, honest.of_known_orders, after.at_best, after.of_known_orders);
                    assert!(lost <= worth, "line {position} of {levels} levels: {forged:?} for {line:?} costs {lost} of {worth}");
                }
            }
        }
    }
}

#[test]
fn a_venue_takes_a_file_of_one_level() {
    for (name, config) in stocks() {
        let messages = cut(&day(config), 1).0;
        let history = loaded(&messages);
        let venue = VenueOptions::new(Format::Lobster);
        let report = through_venue(&history, &venue, &Options { timing_rounds: 0, ..options() }, None, &mut |_| {}).unwrap();
        // Those presumed deleted are cancelled, so few more stand than in the book, though a venue is not set to the record.
        let book = replay(&messages).book;
        assert!(report.venue.resting_orders_end <= 2 * book.resting_orders_max, "{name}: {report}");
        assert_eq!(report.orders_presumed_deleted, book.orders_presumed_deleted);
    }
}

#[test]
fn a_stock_below_a_dollar_has_its_finer_tick() {
    let cheap = stocks()[2].1;
    let messages = day(cheap);
    let report = replay(&messages);
    assert_eq!((report.units_per_tick, report.left_out.off_scale), (1, 0));
    // By hand, and wrong.
    for (tick, left_out) in [("0.0001", false), ("0.01", true)] {
        let options = Options { tick: Some(tick.into()), ..options() };
        let history = Loaded::read(&text(&messages)[..], Format::Lobster, &options, &mut |_| {}).unwrap();
        let report = run_loaded(&history, &options, &mut |_| {}).unwrap();
        assert_eq!(report.left_out.off_scale > 0, left_out, "{tick}");
    }
    for tick in ["0", "-1", "0.00001", "a cent"] {
        let options = Options { tick: Some(tick.into()), ..options() };
        let error = Loaded::read(&text(&messages)[..], Format::Lobster, &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("is no price of this file") && error.contains("at most 4 decimals"), "{error}");
    }
}

#[test]
fn files_of_few_levels_of_the_real_hour_reach_the_bar() {
    let file = "lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv";
    let Some(path) = crate::find(file) else { return };
    let day: Vec<_> = LobsterReader::new(open_bytes(&path).unwrap()).map(Result::unwrap).collect();
    for levels in [1, 2, 5, 10] {
        let report = replay_levels(&cut(&day, levels).0, levels);
        let executions = report.executions.unwrap();
        let percent = executions.at_best_percent();
        eprintln!("AAPL, {levels} levels: {percent:.2} % of {} at best", executions.of_known_orders);
        assert!(percent >= bar(levels), "{levels} levels: {percent:.2} %\n{report}");
    }
}
