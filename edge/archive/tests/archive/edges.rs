//! Days' edges, days without trades, entries that are missing, and what is done to a folder from outside.

use crossbeam_channel::bounded;
use walras_archive::{Day, Files, History, Keeper, Missing, Recorder, TradesQuery, verify_day};
use walras_engine::Engine;
use walras_testkit::Choices;
use walras_testkit::plain::{opening, order};
use walras_types::{InstrumentId, LogIndex, Side, TimeNs};
use walras_wire::{Command, VenueCommand};

use super::world::{BEGIN_NS, DEPTH, Entry, Script, Venue, archive, contents, settings};

/// The entries of a script, and behind them ticks at these times.
fn with_ticks(seed: u64, times: &[u64]) -> Script {
    let mut entries = Script::of_seed(seed, 120).entries;
    let ticks: Vec<Entry> = (121..)
        .map(LogIndex)
        .zip(times)
        .map(|(log_index, &time)| (log_index, TimeNs(time), Command::Venue(VenueCommand::Tick)))
        .collect();
    entries.extend(ticks);
    Script::of(entries)
}

#[test]
fn a_day_ends_at_its_last_nanosecond() {
    let first = Day::of(TimeNs(BEGIN_NS));
    let end = first.end().0;
    // The first half of the trades, and every entry up to there, lies on the first day.
    let mut script = Script::of_seed(3, 2_000);
    let last = script.trades[script.trades.len() / 2].log_index.0;
    for (index, entry) in (1..).zip(&mut script.entries) {
        entry.1 = TimeNs(if index <= last { end - 1 } else { end });
    }
    let script = Script::of(script.entries);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let days = History::new(folder.path()).days().unwrap();
    assert_eq!(days.iter().map(|day| day.day).collect::<Vec<_>>(), [first, first.next()]);
    let manifest = days[0].manifest.as_ref().unwrap();
    let before = script.trades.iter().filter(|t| t.log_index.0 <= last).count();
    assert!(before > 0 && before < script.trades.len());
    assert_eq!((manifest.last_log_index, manifest.last_time_ns, manifest.trades), (last, end - 1, before as u64));
    assert!(days[1].manifest.is_none());
}

#[test]
fn a_day_without_trades_is_a_day_and_one_without_entries_is_none() {
    let day = Day::of(TimeNs(BEGIN_NS)).next().next();
    let script = with_ticks(5, &[day.start().0 + 5, day.start().0 + 6, day.next().next().start().0]);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let dir = folder.path().join(day.to_string());
    let manifest = verify_day(&dir).unwrap().manifest;
    assert_eq!((manifest.complete, manifest.trades, manifest.first_log_index, manifest.last_log_index), (true, 0, 121, 122));
    assert_eq!(manifest.books, 2, "one snapshot of each instrument");
    assert!(!folder.path().join(day.next().to_string()).exists());
}

#[test]
fn missing_entries_are_named() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
    let mut venue = Venue::new(&settings, LogIndex(0), Engine::new());
    for (at, some) in script.entries.chunks(100).enumerate() {
        some.iter().for_each(|entry| venue.apply(entry));
        venue.recorder.flush();
        for batch in venue.batches.try_iter() {
            // Not the third and the fourth hundred.
            if at != 2 && at != 3 {
                keeper.take(batch);
            }
        }
        keeper.commit().unwrap();
        while keeper.close_one().unwrap().is_some() {}
    }
    assert_eq!(keeper.missing(), 200);
    let gap = Missing { first: 201, last: 400 };
    let (mut named, mut next, mut complete) = (0, 1, 0);
    for day in History::new(folder.path()).days().unwrap() {
        let Some(manifest) = day.manifest else { continue };
        verify_day(&folder.path().join(day.day.to_string())).unwrap();
        assert_eq!(manifest.complete, manifest.missing.is_empty());
        named += manifest.missing.iter().filter(|found| **found == gap).count();
        complete += usize::from(manifest.complete);
        if manifest.complete {
            assert_eq!(manifest.first_log_index, next);
        }
        next = manifest.last_log_index + 1;
    }
    // In the day before them, and the one after them, if that is another.
    assert!((1..=2).contains(&named) && complete >= 1, "{named} {complete}");
}

#[test]
fn an_archive_that_begins_late_says_so() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let mut keeper = Keeper::open(settings.clone(), Files::default()).unwrap();
    let mut engine = Engine::new();
    for (log_index, time, command) in &script.entries[..500] {
        engine.apply(*log_index, *time, command, &mut Vec::new());
    }
    let mut venue = Venue::new(&settings, LogIndex(0), engine);
    script.entries[500..].iter().for_each(|entry| venue.apply(entry));
    venue.hand_over(&mut keeper);
    keeper.commit().unwrap();
    let manifest = keeper.close_one().unwrap().unwrap();
    assert_eq!((manifest.missing, manifest.first_log_index), (vec![Missing { first: 1, last: 500 }], 501));
}

#[test]
fn a_full_queue_never_stops_the_engine() {
    let (sender, batches) = bounded(1);
    let mut engine = Engine::new();
    // A snapshot of every change.
    let mut recorder = Recorder::new(sender, DEPTH, 1, LogIndex(1), &engine);
    recorder.go_live();
    let mut last = LogIndex(0);
    let mut apply = |command: Command, recorder: &mut Recorder| {
        last = last.next();
        let (time, mut events) = (TimeNs(BEGIN_NS + last.0), Vec::new());
        engine.apply(last, time, &command, &mut events);
        recorder.on_entry(last, time, &events, &[], &engine);
        last
    };
    for command in opening() {
        apply(command, &mut recorder);
    }
    for id in 0..15_000 {
        apply(order(0, id, Side::Buy, 60_000, 1), &mut recorder);
        apply(order(1, id, Side::Sell, 60_000, 1), &mut recorder);
    }
    // Nobody took anything; now there is room again.
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = Keeper::open(settings(folder.path()), Files::default()).unwrap();
    keeper.take(batches.try_recv().unwrap());
    let kept = keeper.seen();
    let last = apply(Command::Venue(VenueCommand::Tick), &mut recorder);
    recorder.flush();
    let next = batches.try_recv().unwrap();
    assert!(next.spans[0].first > kept.next(), "some were given up");
    assert_eq!(next.listings.len(), 1, "the instruments are listed again after a missed batch");
    let missing = next.spans[0].first.0 - kept.0 - 1;
    keeper.take(next);
    assert_eq!((keeper.seen(), keeper.missing()), (last, missing));
    keeper.commit().unwrap();
}

#[test]
fn old_days_go() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    let all = tempfile::tempdir().unwrap();
    archive(&settings(all.path()), &script);
    archive(&walras_archive::Settings { keep_days: 1, ..settings(folder.path()) }, &script);
    let closed = |folder: &std::path::Path| {
        let days = History::new(folder).days().unwrap();
        days.into_iter().filter(|day| day.manifest.is_some()).map(|day| day.day).collect::<Vec<_>>()
    };
    let (kept, all) = (closed(folder.path()), closed(all.path()));
    assert!(all.len() > 1);
    assert_eq!(kept, all[all.len() - 1..]);
}

#[test]
fn no_byte_of_a_closed_day_changes_unseen() {
    let script = Script::of_seed(9, 700);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let day = History::new(folder.path()).days().unwrap()[0].day.to_string();
    let dir = folder.path().join(&day);
    verify_day(&dir).unwrap();
    for (name, bytes) in
        contents(folder.path()).iter().filter(|(name, _)| name.starts_with(&day) && !name.ends_with("manifest.json"))
    {
        for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            std::fs::write(folder.path().join(name), &changed).unwrap();
            let said = verify_day(&dir).unwrap_err().to_string();
            assert!(said.contains("damaged"), "{said}");
        }
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    verify_day(&dir).unwrap();
    // A reader is notified too.
    let journal = dir.join("books.journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[64..].fill(0x55);
    std::fs::write(&journal, bytes).unwrap();
    let asked = History::new(folder.path()).book_at(InstrumentId(0), TimeNs(BEGIN_NS + 3_600_000_000_000));
    assert!(asked.unwrap_err().to_string().contains("checksum"));
}

/// Whatever a disk made of the files, nobody panics over them.
#[test]
fn any_bytes_are_an_answer_or_an_error() {
    let script = Script::of_seed(9, 700);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let whole = contents(folder.path());
    let names: Vec<&String> = whole.keys().filter(|name| name.ends_with(".journal") || name.ends_with(".json")).collect();
    let c = &mut Choices::of_seed(4);
    let mut refused = 0;
    for _ in 0..400 {
        let name = names[c.below(names.len() as u64) as usize];
        let mut bytes = whole[name].clone();
        match c.below(3) {
            0 => bytes.truncate(c.below(bytes.len() as u64 + 1) as usize),
            1 => bytes.extend(c.bytes(200)),
            _ => {
                for _ in 0..=c.below(20) {
                    let at = c.below(bytes.len() as u64) as usize;
                    bytes[at] = c.byte();
                }
            }
        }
        std::fs::write(folder.path().join(name), &bytes).unwrap();
        let history = History::new(folder.path());
        let (instrument, at) = (InstrumentId(c.below(3) as u32), TimeNs(BEGIN_NS + c.below(1 << 48)));
        let query = TradesQuery { instrument, from: at, to: TimeNs(u64::MAX), limit: 50, after: None };
        let answers = [history.trades(&query).is_err(), history.book_at(instrument, at).is_err(), history.days().is_err()];
        let dir = folder.path().join(name).parent().unwrap().to_path_buf();
        refused += usize::from(answers.contains(&true) || verify_day(&dir).is_err());
        std::fs::write(folder.path().join(name), &whole[name]).unwrap();
    }
    assert!(refused > 100, "{refused}");
}
