//! Sessions in a snapshot: what contradicts itself is refused. Here the format is written a second time, from its description.

use std::ops::Range;

use proptest::prelude::*;
use walras_engine::versions::OLDEST;
use walras_engine::{Engine, RestoreError};
use walras_types::limits::SESSION_WINDOW;
use walras_types::*;
use walras_wire::*;

use super::{idle, next, open, opened, snapshot, venue};
use crate::venue::Venue;

/// A session's record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    id: u64,
    account: Option<u32>,
    token: u64,
    last_used: u64,
    next: u64,
    answers: Vec<(u64, u16, u64)>,
}

fn records(engine: &Engine) -> Vec<Record> {
    let owners = std::iter::once(None).chain((0..engine.account_count()).map(|account| Some(AccountId(account))));
    let mut all: Vec<Record> = owners
        .flat_map(|owner| engine.sessions_of(owner).collect::<Vec<_>>())
        .map(|session| {
            let view = engine.session(session).unwrap();
            let remembered = (view.remembered_from.0..view.next.0).map(SessionSeq);
            let answers = remembered.map(|session_seq| {
                let answer = engine.answer(Ordinal { session, session_seq }).unwrap();
                (answer.log_index.0, answer.rejected.map_or(0, RejectReason::number), answer.content.0)
            });
            Record {
                id: session.0,
                account: view.account.map(|account| account.0),
                token: view.token,
                last_used: view.last_used.0,
                next: view.next.0,
                answers: answers.collect(),
            }
        })
        .collect();
    all.sort_by_key(|record| record.id);
    all
}

fn encoded(records: &[Record]) -> Vec<u8> {
    let mut bytes = (records.len() as u32).to_le_bytes().to_vec();
    for record in records {
        bytes.extend(record.id.to_le_bytes());
        match record.account {
            None => bytes.push(0),
            Some(account) => {
                bytes.push(1);
                bytes.extend(account.to_le_bytes());
            }
        }
        for number in [record.token, record.last_used, record.next] {
            bytes.extend(number.to_le_bytes());
        }
        for (log_index, reason, content) in &record.answers {
            bytes.extend(log_index.to_le_bytes());
            bytes.extend(reason.to_le_bytes());
            bytes.extend(content.to_le_bytes());
        }
    }
    bytes
}

/// Where the sessions are in a snapshot: before the nonces of signed commands, here none; those before what batch markets know, here only
/// who is suspended; that before the ledger, which is before the hash.
fn section(engine: &Engine, bytes: &[u8]) -> Range<usize> {
    let head = if engine.version() > OLDEST { 48 } else { 40 };
    let ledger = 8 + engine.assets().len() * (head + 16 * engine.account_count() as usize);
    let accounts = (0..engine.account_count()).map(AccountId);
    let suspended = accounts.filter(|account| engine.account_status(*account) == Some(AccountStatus::Suspended)).count();
    let batches = 8 + 16 + 4 * suspended + 4;
    let nonces = 4;
    let end = bytes.len() - 32 - ledger - batches - nonces;
    end - encoded(&records(engine)).len()..end
}

/// The engine's snapshot with these sessions instead of its own, and its hash made to fit.
fn with_sessions(engine: &Engine, sessions: &[u8]) -> Vec<u8> {
    let bytes = snapshot(engine);
    let at = section(engine, &bytes);
    let mut content = [&bytes[..at.start], sessions, &bytes[at.end..bytes.len() - 32]].concat();
    let hash = blake3::hash(&content);
    content.extend_from_slice(hash.as_bytes());
    content
}

/// A snapshot as one would take it who thinks that sessions need no more than their names.
pub fn forgetful(engine: &Engine) -> Vec<u8> {
    let mut records = records(engine);
    for record in &mut records {
        (record.next, record.answers) = (1, Vec::new());
    }
    with_sessions(engine, &encoded(&records))
}

/// Three sessions: one fresh, one in use, one whose window has turned.
fn busy() -> Engine {
    let mut venue = venue();
    let ids = [(None, 9), (Some(1), 10), (Some(1), 11)].map(|(account, token)| opened(&mut venue, account, token));
    venue.apply(Command::Venue(VenueCommand::Tick));
    for (session, count) in [(ids[1], 3), (ids[2], 1_500)] {
        for _ in 0..count {
            let ordinal = next(&venue.engine, session);
            venue.apply_numbered(ordinal, idle(1));
        }
    }
    venue.engine
}

#[test]
fn the_format_is_as_described() {
    let engine = busy();
    let bytes = snapshot(&engine);
    assert_eq!(&bytes[section(&engine, &bytes)], &encoded(&records(&engine)));
    assert_eq!(with_sessions(&engine, &encoded(&records(&engine))), bytes);
    assert_eq!(
        records(&engine).iter().map(|record| (record.next, record.answers.len())).collect::<Vec<_>>(),
        [(1, 0), (4, 3), (1_501, 1_024)]
    );
}

/// What makes a snapshot wrong.
type Change<'a> = &'a dyn Fn(&mut Vec<Record>);

#[test]
fn contradictions_are_refused() {
    let engine = busy();
    let good = records(&engine);
    let try_it = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut changed = good.clone();
        change(&mut changed);
        assert_ne!(changed, good);
        Engine::restore(&with_sessions(&engine, &encoded(&changed))).err()
    };
    let last = engine.last_applied().0;
    let contradictions: [(&str, Change<'_>); 22] = [
        ("a session's id or last use", &|r| r.swap(0, 1)),
        ("a session's id or last use", &|r| r[1].id = r[0].id),
        ("a session's id or last use", &|r| r[0].id = 0),
        ("a session's id or last use", &|r| r[0].last_used = last + 1),
        ("when a session was last used", &|r| r[0].last_used = r[0].id - 1),
        ("when a session was last used", &|r| r[1].last_used -= 1),
        ("when a session was last used", &|r| (r[0].id, r[0].last_used) = (r[0].id, 0)),
        ("a session's account", &|r| r[0].account = Some(4)),
        ("a session's account", &|r| r[0].account = Some(u32::MAX)),
        ("two sessions of one account and token", &|r| r[2].token = r[1].token),
        ("two sessions of one account and token", &|r| (r[0].account, r[0].token) = (r[1].account, r[1].token)),
        ("a session's window", &|r| r[0].next = 0),
        ("where a session's answers are in the log", &|r| r[1].answers[0].0 = r[1].id),
        ("where a session's answers are in the log", &|r| r[1].answers[2].0 = r[1].answers[1].0),
        ("where a session's answers are in the log", &|r| r[1].answers.swap(0, 1)),
        ("where a session's answers are in the log", &|r| r[2].answers.swap(1_022, 1_023)),
        ("where a session's answers are in the log", &|r| r[2].next = r[2].answers[0].0 - r[2].id + 1_026),
        ("where a session's answers are in the log", &|r| r[2].next = u64::MAX),
        ("where a session's answers are in the log", &|r| r[2].answers[0].0 = 0),
        ("when a session was last used", &|r| r[2].answers[1_023].0 = u64::MAX),
        ("more sessions than there may be", &|r| {
            let more: Vec<Record> =
                (0..14).map(|n| Record { id: 0, token: n + 1_000_000, next: 1, answers: vec![], ..r[1].clone() }).collect();
            let base = r[2].id;
            r.extend(more.into_iter().zip(1..).map(|(record, n)| Record { id: base + n, last_used: base + n, ..record }));
            r.push(Record { id: base + 15, account: Some(1), token: 7_777_777, last_used: base + 15, next: 1, answers: vec![] });
        }),
        ("where a session's answers are in the log", &|r| r[2].id = u64::MAX),
    ];
    for (number, (what, change)) in contradictions.iter().enumerate() {
        assert_eq!(try_it(change), Some(RestoreError::Contradiction(what)), "number {number}");
    }
    // The earliest that its answers could have come is no contradiction.
    assert_eq!(try_it(&|r| r[2].next = r[2].answers[0].0 - r[2].id + 1_024), None);
    // More or fewer answers than the places imply move all that follows; a reason must be one.
    assert!(try_it(&|r| r[1].answers.truncate(2)).is_some());
    assert!(try_it(&|r| r[0].next = 2).is_some());
    assert!(try_it(&|r| r[1].next = 5).is_some());
    assert!(matches!(try_it(&|r| r[1].answers[1].1 = 99), Some(RestoreError::Decode(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes that an honest hash vouches for and that still are wrong give an error or a sound venue of that very encoding.
    #[test]
    fn wrong_bytes_never_panic(at in any::<prop::sample::Index>(), new in any::<[u8; 2]>(), early in any::<bool>()) {
        thread_local!(static BUSY: Engine = busy());
        BUSY.with(|engine| {
            let mut sessions = encoded(&records(engine));
            // Most of the bytes are answers: as often as not before them.
            let at = at.index(if early { 200 } else { sessions.len() - 1 });
            sessions[at..at + 2].copy_from_slice(&new);
            let bytes = with_sessions(engine, &sessions);
            if let Ok(restored) = Engine::restore(&bytes) {
                restored.check_invariants();
                prop_assert_eq!(snapshot(&restored), bytes);
            }
            Ok(())
        })?;
    }
}

/// Not how a state was reached, but what it is: the same sessions in other slots have the same bytes.
#[test]
fn slots_do_not_show() {
    let mut venue = venue();
    let ids: Vec<_> = (0..6).map(|token| opened(&mut venue, Some(2), token)).collect();
    for at in [4, 1, 2] {
        venue.apply(super::close(ids[at]));
    }
    venue.apply(open(Some(0), 1));
    venue.apply(open(None, 1));
    let bytes = snapshot(&venue.engine);
    let mut restored = Engine::restore(&bytes).unwrap();
    assert_eq!(snapshot(&restored), bytes);
    // And they go on alike.
    for token in 0..20 {
        let (index, mut events) = (restored.last_applied().next(), Vec::new());
        restored.apply(index, TimeNs(1), &open(Some(2), token), &mut events);
        assert_eq!(venue.apply(open(Some(2), token)), events);
    }
    assert_eq!(restored.state_hash(), venue.engine.state_hash());
}

/// A state that is kept has the answers of then, in windows that have turned and in others, whatever the sessions do next.
#[test]
fn kept_states_have_the_answers_of_then() {
    let mut venue = venue();
    let [long, short, gone] = [(0, 1), (1, 1), (1, 2)].map(|(account, token)| opened(&mut venue, Some(account), token));
    let answer = |venue: &mut Venue, session, account, times: usize| {
        for _ in 0..times {
            let ordinal = next(&venue.engine, session);
            venue.apply_numbered(ordinal, idle(account));
        }
    };
    answer(&mut venue, long, 0, SESSION_WINDOW + 3);
    answer(&mut venue, short, 1, 2);
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push((venue.engine.freeze(), snapshot(&venue.engine)));
        answer(&mut venue, long, 0, 2);
        answer(&mut venue, short, 1, 1);
    }
    venue.apply(super::close(gone));
    opened(&mut venue, Some(2), 1);
    for (frozen, then) in kept {
        let mut bytes = Vec::new();
        frozen.snapshot(&mut bytes);
        assert!(bytes == then);
    }
    let bytes = snapshot(&venue.engine);
    assert_eq!(snapshot(&Engine::restore(&bytes).unwrap()), bytes);
}
