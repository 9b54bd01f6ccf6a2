//! The archive of a made market, held against the events that made it, and cut off wherever a disk can be.
#![allow(clippy::unwrap_used, reason = "a test panics to fail")]

mod accounts;
mod cuts;
mod edges;
mod formats;
mod orders;
mod plain;
mod refill;
mod world;

use walras_archive::{History, Trade, TradesQuery, verify_day};
use walras_types::{InstrumentId, TimeNs};
use world::{Script, archive, settings};

fn all(history: &History, instrument: u32, from: u64, to: u64, limit: usize) -> Vec<Trade> {
    let instrument = InstrumentId(instrument);
    let mut query = TradesQuery { instrument, from: TimeNs(from), to: TimeNs(to), limit, after: None };
    let mut trades = Vec::new();
    loop {
        let page = history.trades(&query).unwrap();
        assert!(page.trades.len() <= limit);
        trades.extend(page.trades);
        let Some(next) = page.next else { return trades };
        assert!(Some(next) > query.after, "a page goes on");
        assert_eq!(next.to_string().parse(), Ok(next));
        query.after = Some(next);
    }
}

#[test]
fn what_is_queried_is_what_happened() {
    for seed in 0..3 {
        let script = Script::of_seed(seed, 3_000);
        let folder = tempfile::tempdir().unwrap();
        archive(&settings(folder.path()), &script);
        let history = History::new(folder.path());
        let (first, last) = (script.entries[0].1.0, script.entries.last().unwrap().1.0);
        let mut count = 0;
        for instrument in 0..2 {
            let expected: Vec<Trade> = script.trades.iter().filter(|t| t.instrument.0 == instrument).copied().collect();
            count += expected.len();
            for limit in [1_000, 7] {
                assert_eq!(all(&history, instrument, 0, u64::MAX, limit), expected, "seed {seed}");
            }
            let (from, to) = (first + (last - first) / 3, first + (last - first) / 2);
            let within: Vec<Trade> = expected.into_iter().filter(|t| (from..to).contains(&t.time.0)).collect();
            assert_eq!(all(&history, instrument, from, to, 10), within);
            // Between any two snapshots, at one, and before the first.
            let snapshots: Vec<_> = script.books.iter().filter(|book| book.instrument.0 == instrument).collect();
            for at in snapshots.windows(2) {
                let found = |time: u64| history.book_at(InstrumentId(instrument), TimeNs(time)).unwrap();
                assert_eq!(found(at[0].time.0).as_ref(), Some(at[0]));
                assert_eq!(found(at[1].time.0 - 1).as_ref(), Some(at[0]));
            }
            assert_eq!(history.book_at(InstrumentId(instrument), TimeNs(snapshots[0].time.0 - 1)).unwrap(), None);
        }
        assert!(count > 100, "seed {seed}: {count} trades");
        assert!(script.books.len() > 100, "seed {seed}: {} snapshots", script.books.len());
    }
}

#[test]
fn closed_days_are_whole_and_follow_each_other() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let days = History::new(folder.path()).days().unwrap();
    let (open, closed) = days.split_last().unwrap();
    assert!(open.manifest.is_none() && closed.len() >= 2, "{}", closed.len());
    let mut next = 1;
    let mut trades = 0;
    for day in closed {
        let verified = verify_day(&folder.path().join(day.day.to_string())).unwrap();
        let manifest = day.manifest.as_ref().unwrap();
        assert_eq!((&verified.manifest, manifest.complete, manifest.first_log_index), (manifest, true, next));
        next = manifest.last_log_index + 1;
        trades += manifest.trades;
    }
    let of_closed = script.trades.iter().filter(|t| t.time < open.day.start()).count();
    assert_eq!(usize::try_from(trades).unwrap(), of_closed);
}
