//! Wherever a disk is cut off, what is archived in the end is what would have been archived without, byte for byte.

use std::path::Path;

use walras_archive::{ArchiveError, Faults, Files, Keeper, Settings};
use walras_engine::Engine;
use walras_market_data::OrderHistories;

use super::world::{COMMIT_ENTRIES, Script, Venue, archive, contents, settings, try_archive};

/// Progress is written when the archive is made durable: where that is done at other entries, the journals differ in it alone.
pub(crate) fn without_progress(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = contents(folder);
    for (name, bytes) in &mut found {
        if name.ends_with("trades.journal") {
            let (header, lines) = bytes.split_at(64);
            let kept = lines.chunks(64).filter(|line| line[0] != 2).flatten();
            *bytes = header.iter().chain(kept).copied().collect();
        }
    }
    // Which names the journal's hash.
    found.retain(|name, _| !name.ends_with("manifest.json"));
    found
}

fn script() -> Script {
    let mut script = Script::of_seed(11, 900);
    script.entries.truncate(900);
    script
}

fn reference(script: &Script) -> (tempfile::TempDir, u64) {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::after(u64::MAX);
    try_archive(&settings(folder.path()), Files::failing(faults.clone()), script).unwrap();
    let closed = contents(folder.path()).keys().filter(|name| name.ends_with("manifest.json")).count();
    assert!(closed >= 1, "a day is closed in it");
    (folder, faults.done())
}

#[test]
fn a_crash_at_any_step_costs_nothing() {
    let script = script();
    let (whole, steps) = reference(&script);
    let expected = without_progress(whole.path());
    assert!(steps > 60, "{steps}");
    for step in 0..steps {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let Err(ArchiveError::Io { .. } | ArchiveError::Parquet { .. }) =
            try_archive(&settings, Files::failing(Faults::after(step)), &script)
        else {
            panic!("the disk fails at step {step}")
        };
        archive(&settings, &script);
        assert!(without_progress(folder.path()) == expected, "cut at step {step} of {steps}");
    }
}

/// What was not synced when the power failed may be gone in part, and so may, on a disk that lies, what was.
#[test]
fn journals_that_lost_their_ends_are_made_again() {
    let script = script();
    let (whole, steps) = reference(&script);
    let expected = without_progress(whole.path());
    let [trades, books, orders] = ["trades.journal", "books.journal", "orders.journal"];
    let cuts = [(trades, 1), (trades, 63), (books, 64), (books, 200), (books, 5_000), (orders, 1), (orders, 200), (orders, 5_000)];
    for step in (0..steps).step_by(5) {
        for (name, lost) in cuts {
            let folder = tempfile::tempdir().unwrap();
            let settings = settings(folder.path());
            assert!(try_archive(&settings, Files::failing(Faults::after(step)), &script).is_err());
            for day in std::fs::read_dir(folder.path()).unwrap() {
                let path = day.unwrap().path().join(name);
                if path.parent().is_some_and(|dir| dir.to_string_lossy().ends_with(".partial")) && path.exists() {
                    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                    let len = file.metadata().unwrap().len();
                    file.set_len(len.saturating_sub(lost)).unwrap();
                }
            }
            archive(&settings, &script);
            assert!(without_progress(folder.path()) == expected, "cut at step {step}, {lost} bytes of {name} lost");
        }
    }
}

#[test]
fn a_full_disk_is_waited_for() {
    let script = script();
    let (whole, steps) = reference(&script);
    for room in (10..steps).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let faults = Faults::after(room);
        let mut keeper = Keeper::open(settings.clone(), Files::failing(faults.clone())).unwrap();
        let mut venue = Venue::new(&settings, keeper.durable(), Engine::new());
        let mut failed = 0;
        for some in script.entries.chunks(COMMIT_ENTRIES) {
            some.iter().for_each(|entry| venue.apply(entry));
            venue.hand_over(&mut keeper);
            // Room comes in small pieces.
            while keeper.commit().is_err() || !matches!(keeper.close_one(), Ok(None)) {
                failed += 1;
                faults.allow(if failed < 10 { 1 } else { u64::MAX });
            }
        }
        assert!(failed > 0);
        assert!(contents(folder.path()) == contents(whole.path()), "the disk was full after {room} steps");
    }
}

/// The archive's thread as a venue has it, ended and begun again, on a replay that goes back before what it holds.
#[test]
fn a_venue_that_starts_again_goes_on() {
    use walras_archive::Service;
    let script = script();
    let whole = tempfile::tempdir().unwrap();
    archive(&settings(whole.path()), &script);
    let folder = tempfile::tempdir().unwrap();
    let settings: Settings = settings(folder.path());
    for end in [300, 301, 600, script.entries.len()] {
        let service = Service::start(settings.clone(), Files::default(), None).unwrap();
        let (mut engine, mut histories) = (Engine::new(), OrderHistories::default());
        let mut recorder = service.recorder(&engine);
        for (log_index, time, command) in &script.entries[..end] {
            let mut events = Vec::new();
            engine.apply(*log_index, *time, command, &mut events);
            let mut records = Vec::new();
            histories.on_entry(*log_index, *time, Some(command), &events, &mut records);
            recorder.on_entry(*log_index, *time, &events, &records, &engine);
        }
        recorder.go_live();
        drop(recorder);
        let status = service.status();
        service.stop();
        assert_eq!((status.view().durable.0, status.view().trouble), (end as u64, None));
    }
    assert!(without_progress(folder.path()) == without_progress(whole.path()));
}
