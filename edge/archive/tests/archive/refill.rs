//! What the queue had no room for is read from the log again, while the venue runs.

use std::sync::Arc;

use walras_archive::{Again, Faults, Files, History, Missing, Refill, Service, Settings, StatusView};
use walras_engine::Engine;
use walras_market_data::OrderHistories;
use walras_testkit::plain::{opening, order};
use walras_types::{LogIndex, Side, TimeNs};
use walras_wait::until;
use walras_wire::{Command, VenueCommand};

use super::cuts::without_progress;
use super::world::{BEGIN_NS, Entry, Script, archive, settings};

/// Trades in a market with a book snapshot after each entry, and the next day's first entry.
fn entries() -> Vec<Entry> {
    let mut commands = opening();
    for id in 0..9_000 {
        commands.push(order(0, id, Side::Buy, 60_000, 1 + id % 7));
        commands.push(order(1, id, Side::Sell, 60_000, 1 + id % 5));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for (at, command) in (0..).zip(commands) {
        entries.push((LogIndex(at + 1), TimeNs(BEGIN_NS + at), command));
    }
    let tomorrow = walras_archive::Day::of(TimeNs(BEGIN_NS)).end();
    entries.push((LogIndex(entries.len() as u64 + 1), tomorrow, Command::Venue(VenueCommand::Tick)));
    entries
}

fn every_entry(folder: &std::path::Path) -> Settings {
    Settings { snapshot_every_ns: 1, parquet: false, dbn: false, ..settings(folder) }
}

#[derive(Default)]
struct State {
    engine: Engine,
    histories: OrderHistories,
}

impl State {
    fn apply(&mut self, (log_index, time, command): &Entry, recorder: Option<&mut walras_archive::Recorder>) {
        let (mut events, mut records) = (Vec::new(), Vec::new());
        self.engine.apply(*log_index, *time, command, &mut events);
        self.histories.on_entry(*log_index, *time, Some(command), &events, &mut records);
        if let Some(recorder) = recorder {
            recorder.on_entry(*log_index, *time, &events, &records, &self.engine);
        }
    }
}

/// A log that has the entries after this one, and the state there.
fn log_after(has: LogIndex, entries: &Arc<Vec<Entry>>) -> Refill {
    let entries = Arc::clone(entries);
    Box::new(move |again: &mut Again<'_>| {
        let (gone, held) = entries.split_at(has.0 as usize);
        let mut state = State::default();
        gone.iter().for_each(|entry| state.apply(entry, None));
        let Some(mut recorder) = again.recorder(&state.engine) else { return Err("all of it is gone".to_owned()) };
        for entry in held {
            state.apply(entry, Some(&mut recorder));
            if !again.take() {
                return Ok(());
            }
        }
        recorder.flush();
        again.take();
        Ok(())
    })
}

/// A venue whose archive's disk is full from its first entry to its last but one, and has room then. What it says once all is
/// durable.
fn run(settings: &Settings, entries: &[Entry], refill: Option<Refill>) -> StatusView {
    let faults = Faults::after(u64::MAX);
    let service = Service::start(settings.clone(), Files::failing(faults.clone()), refill).unwrap();
    faults.allow(0);
    let status = service.status();
    let mut state = State::default();
    let mut recorder = service.recorder(&state.engine);
    recorder.go_live();
    let (last, before) = entries.split_last().unwrap();
    for (at, entry) in before.iter().enumerate() {
        state.apply(entry, Some(&mut recorder));
        recorder.flush();
        // From here on the archive takes nothing: a few batches wait in the queue, then some at the recorder, then they are given
        // up.
        if at == 0 {
            until("the archive has trouble", || status.view().trouble.is_some());
        }
    }
    faults.allow(u64::MAX);
    until("the archive has no trouble", || status.view().trouble.is_none());
    state.apply(last, Some(&mut recorder));
    until("the last entry is durable and the day closed", || {
        recorder.flush();
        status.view().durable >= last.0 && status.view().closed > 0
    });
    drop(recorder);
    let view = status.view();
    service.stop();
    view
}

#[test]
fn what_the_queue_had_no_room_for_is_read_again_from_the_log() {
    let entries = Arc::new(entries());
    // The numbers of records in DBN are those that they would have had.
    let settings = |folder: &std::path::Path| Settings { dbn: true, ..every_entry(folder) };
    let whole = tempfile::tempdir().unwrap();
    archive(&settings(whole.path()), &Script::of(entries.to_vec()));
    let folder = tempfile::tempdir().unwrap();
    let view = run(&settings(folder.path()), &entries, Some(log_after(LogIndex(0), &entries)));
    assert_eq!((view.missing, view.trouble), (0, None));
    assert!(view.refilled > 1_000, "{}", view.refilled);
    assert!(without_progress(folder.path()) == without_progress(whole.path()), "as if there had been room");
    let manifest = History::new(folder.path()).days().unwrap()[0].manifest.clone().unwrap();
    assert!(manifest.complete, "{:?}", manifest.missing);
}

#[test]
fn what_the_log_has_not_any_more_stays_missing() {
    let entries = Arc::new(entries());
    let (begin, end) = (5_000, entries.len() as u64);
    let held_from = |has: u64| Some(log_after(LogIndex(has), &entries));
    for (refill, refilled) in [(held_from(begin), end - begin), (held_from(end - 1), 0), (None, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let view = run(&every_entry(folder.path()), &entries, refill);
        let manifest = History::new(folder.path()).days().unwrap()[0].manifest.clone().unwrap();
        let [Missing { first, last }] = manifest.missing[..] else { panic!("{:?}", manifest.missing) };
        assert_eq!((manifest.complete, view.missing), (false, last - first + 1));
        assert_eq!(view.refilled, refilled);
        assert!(refilled == 0 || last == begin, "{last}");
    }
}
