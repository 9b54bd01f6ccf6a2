//! What happened to an account is found again, page by page, and nobody else finds it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use walras_archive::{AccountCursor, AccountQuery, Files, ForwardQuery, History, RecordKind, Service, Wanted, verify_day};
use walras_market_data::{AccountRecord, RecordId, Recorded};
use walras_types::{AccountId, TimeNs};

use super::world::{Script, Venue, archive, settings};

fn time_of(recorded: &Recorded) -> TimeNs {
    match recorded.record {
        AccountRecord::Fill(fill) => fill.time,
        AccountRecord::Ended(order) => order.ended,
    }
}

fn is_of(recorded: &Recorded, account: AccountId, kind: RecordKind) -> bool {
    let is_fill = matches!(recorded.record, AccountRecord::Fill(_));
    recorded.account == account && is_fill == (kind == RecordKind::Fill)
}

fn query(account: AccountId, kind: RecordKind, limit: usize) -> AccountQuery {
    AccountQuery { account, kind, since: TimeNs(0), until: TimeNs(u64::MAX), before: AccountCursor::MAX, limit }
}

/// All pages of a query, one after the other.
fn all(history: &History, mut query: AccountQuery) -> Vec<Recorded> {
    let mut found: Vec<Recorded> = Vec::new();
    loop {
        let page = history.account_records(&query, |_| true).unwrap();
        assert!(page.records.len() <= query.limit);
        found.extend(page.records);
        let Some(next) = page.next else { return found };
        assert!(next.id < query.before.id || query.before == AccountCursor::MAX, "a page goes on");
        assert_eq!(next.to_string().parse(), Ok(next));
        query.before = next;
    }
}

/// The same, oldest first.
fn all_forward(history: &History, of: AccountQuery) -> Vec<Recorded> {
    let AccountQuery { account, kind, since, until, limit, .. } = of;
    let mut query = ForwardQuery { account, kind, since, until, after: None, before: RecordId::MAX, limit };
    let mut found: Vec<Recorded> = Vec::new();
    loop {
        let page = history.account_records_forward(&query, |_| Wanted::Yes).unwrap();
        assert!(page.records.len() <= limit);
        found.extend(page.records);
        let Some(next) = page.next else { return found };
        assert_ne!(query.after.replace(next), Some(next), "a page goes on");
    }
}

fn expected(script: &Script, account: AccountId, kind: RecordKind) -> Vec<Recorded> {
    script.accounts.iter().rev().filter(|recorded| is_of(recorded, account, kind)).copied().collect()
}

fn is_whole(history: &History, script: &Script) {
    for account in (0..6).map(AccountId) {
        for kind in [RecordKind::Fill, RecordKind::Ended] {
            let expected = expected(script, account, kind);
            for limit in [1_000, 7] {
                assert_eq!(all(history, query(account, kind, limit)), expected, "{account} {kind:?}");
                let mut forward = all_forward(history, query(account, kind, limit));
                forward.reverse();
                assert_eq!(forward, expected, "{account} {kind:?}, oldest first");
            }
        }
    }
}

#[test]
fn all_that_happened_to_an_account_is_found_newest_first() {
    for seed in 0..3 {
        let script = Script::of_seed(seed, 3_000);
        let folder = tempfile::tempdir().unwrap();
        archive(&settings(folder.path()), &script);
        let history = History::new(folder.path());
        is_whole(&history, &script);
        let (first, last) = (script.entries[0].1.0, script.entries.last().unwrap().1.0);
        let (since, until) = (TimeNs(first + (last - first) / 3), TimeNs(first + (last - first) / 2));
        let mut counts = [0; 2];
        for account in (0..6).map(AccountId) {
            for kind in [RecordKind::Fill, RecordKind::Ended] {
                let expected = expected(&script, account, kind);
                counts[usize::from(kind == RecordKind::Ended)] += expected.len();
                let within: Vec<_> = expected.iter().filter(|r| (since..until).contains(&time_of(r))).copied().collect();
                assert_eq!(all(&history, AccountQuery { since, until, ..query(account, kind, 5) }), within);
                let mut forward = all_forward(&history, AccountQuery { since, until, ..query(account, kind, 5) });
                forward.reverse();
                assert_eq!(forward, within);
                // From a place that another list said, without its record's number.
                if let Some(from) = expected.get(expected.len() / 2) {
                    let before = AccountCursor { id: from.id, number: None };
                    let rest: Vec<_> = expected.iter().filter(|r| r.id < from.id).copied().collect();
                    assert_eq!(all(&history, AccountQuery { before, ..query(account, kind, 4) }), rest);
                    // A number that is another record's is not believed.
                    let before = AccountCursor { id: from.id, number: Some(1) };
                    assert_eq!(all(&history, AccountQuery { before, ..query(account, kind, 4) }), rest);
                }
            }
        }
        assert!(counts[0] > 100 && counts[1] > 100, "seed {seed}: {counts:?}");
    }
}

#[test]
fn a_running_archive_shows_what_is_durable() {
    let script = Script::of_seed(5, 1_500);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    // Twice, with an end between: where the chains begin is read again from the journal.
    for end in [700, script.entries.len()] {
        let service = Service::start(settings.clone(), Files::default(), None).unwrap();
        let mut venue = Venue::new(&settings, service.durable(), walras_engine::Engine::new());
        let mut recorder = service.recorder(&venue.engine);
        for entry in &script.entries[..end] {
            venue.apply_to(entry, &mut recorder);
        }
        recorder.go_live();
        let (status, last) = (service.status(), script.entries[end - 1].0);
        walras_wait::until("it is durable", || status.view().durable == last);
        let history = status.history();
        let until_now = Script {
            accounts: script.accounts.iter().filter(|r| r.id.log_index <= last).copied().collect(),
            ..Script::of(Vec::new())
        };
        is_whole(&history, &until_now);
        drop(recorder);
        service.stop();
    }
}

fn folder_of(root: &Path) -> std::path::PathBuf {
    let closed = History::new(root).days().unwrap();
    root.join(closed.iter().find(|day| day.manifest.is_some()).unwrap().day.to_string())
}

#[test]
fn the_private_files_are_not_given_out_and_their_damage_is_found() {
    let script = Script::of_seed(7, 3_000);
    let folder = tempfile::tempdir().unwrap();
    archive(&settings(folder.path()), &script);
    let history = History::new(folder.path());
    let dir = folder_of(folder.path());
    let day = dir.file_name().unwrap().to_string_lossy().into_owned();
    let manifest = verify_day(&dir).unwrap().manifest;
    assert!(!manifest.private.is_empty());
    for file in &manifest.private {
        assert!(history.file(&day, &file.name).is_err(), "{}", file.name);
        let mode = std::fs::metadata(dir.join(&file.name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} is its owner's", file.name);
    }
    let path = dir.join("accounts.journal");
    let whole = std::fs::read(&path).unwrap();
    for at in [70, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(verify_day(&dir).is_err());
        let asked = (0..6).flat_map(|n| [(AccountId(n), RecordKind::Fill), (AccountId(n), RecordKind::Ended)]);
        let refused = asked.filter(|(account, kind)| {
            let until = TimeNs(manifest.last_time_ns + 1);
            history.account_records(&AccountQuery { until, ..query(*account, *kind, 1_000) }, |_| true).is_err()
        });
        assert_eq!(refused.count(), 1, "the chain that the damaged record is in");
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(verify_day(&dir).is_ok());
}
