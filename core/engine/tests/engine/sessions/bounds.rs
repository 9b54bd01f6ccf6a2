//! As many sessions as there may be, in all and of one account.

use walras_engine::{Engine, Numbered};
use walras_types::limits::{SESSION_WINDOW, SESSIONS_MAX, SESSIONS_PER_ACCOUNT_MAX};
use walras_types::*;
use walras_wire::*;

use super::{close, open, opened, place, snapshot, venue};

/// A venue with so many accounts that hold all sessions there may be but `spare`, and one account that has none.
fn full(spare: usize) -> Engine {
    let mut engine = Engine::new();
    let accounts = SESSIONS_MAX / SESSIONS_PER_ACCOUNT_MAX;
    let create = (0..=accounts as u32).map(|account| Command::Account(AccountCommand::Create(AccountId(account))));
    let all = (0..SESSIONS_MAX).map(|n| open(Some((n % accounts) as u32), n as u64)).take(SESSIONS_MAX - spare);
    for command in create.chain(all) {
        apply(&mut engine, &command);
    }
    engine
}

fn apply(engine: &mut Engine, command: &Command) -> Vec<Event> {
    let mut events = Vec::new();
    engine.apply(engine.last_applied().next(), TimeNs(1), command, &mut events);
    events
}

fn rejected(account: Option<u32>, reason: RejectReason) -> Vec<Event> {
    let account = account.map(AccountId);
    vec![Event::Rejected(Rejected { account, instrument: None, client_order_id: None, reason })]
}

#[test]
fn a_full_venue_takes_none_but_from_those_who_have_some() {
    let mut engine = full(0);
    engine.check_invariants();
    let late = (SESSIONS_MAX / SESSIONS_PER_ACCOUNT_MAX) as u32;
    assert_eq!(apply(&mut engine, &open(Some(late), 1)), rejected(Some(late), RejectReason::TooManySessions));
    assert_eq!(apply(&mut engine, &open(None, 1)), rejected(None, RejectReason::TooManySessions));
    let unknown = open(Some(late + 1), 1);
    assert_eq!(apply(&mut engine, &unknown), rejected(Some(late + 1), RejectReason::UnknownAccount));
    // Who has some gives up the one used least recently.
    let first = engine.sessions_of(Some(AccountId(0))).next().unwrap();
    let session = SessionId(engine.last_applied().0 + 1);
    let account = Some(AccountId(0));
    assert_eq!(
        apply(&mut engine, &open(Some(0), 99_999)),
        [
            Event::Session(SessionEvent::Closed(SessionClosed { session: first, account })),
            Event::Session(SessionEvent::Opened(SessionOpened { session, account, token: 99_999 }))
        ]
    );
    // And the room of one that is closed is anybody's.
    apply(&mut engine, &close(session));
    assert!(matches!(apply(&mut engine, &open(Some(late), 1))[..], [Event::Session(SessionEvent::Opened(_))]));
    assert_eq!(apply(&mut engine, &open(None, 1)), rejected(None, RejectReason::TooManySessions));
    engine.check_invariants();
    let bytes = snapshot(&engine);
    assert_eq!(snapshot(&Engine::restore(&bytes).unwrap()), bytes);
}

#[test]
fn who_has_one_session_of_a_full_venue_gives_it_up_for_another() {
    let mut engine = full(1);
    apply(&mut engine, &open(None, 1));
    let operator = engine.sessions_of(None).next().unwrap();
    // The operator's session opens another through itself: it is the only one to make room, and may leave its slot to the new one.
    let (index, mut events) = (engine.last_applied().next(), Vec::new());
    let became = engine.apply_numbered(index, TimeNs(1), place(operator, 1), &open(None, 2), &mut events);
    let answer = Answer { log_index: index, rejected: None, content: content_digest(&open(None, 2), &mut Vec::new()) };
    assert_eq!(became, Numbered::Done(answer));
    assert_eq!(engine.answer(place(operator, 1)), None, "who is gone remembers nothing");
    let new = SessionId(index.0);
    assert_eq!(engine.sessions_of(None).collect::<Vec<_>>(), [new]);
    assert_eq!(engine.session(new).unwrap().next, SessionSeq(1), "the answer is not the new session's");
    engine.check_invariants();
    let became = engine.apply_numbered(index.next(), TimeNs(1), place(operator, 1), &open(None, 2), &mut events);
    assert_eq!(became, Numbered::Refused(RejectReason::UnknownSession));
}

#[test]
fn the_least_recently_used_makes_room() {
    let mut venue = venue();
    let ids: Vec<_> = (0..16).map(|token| opened(&mut venue, Some(1), token)).collect();
    let other = opened(&mut venue, Some(2), 0);
    // Used: the first by a command, the second by being opened again. Not used: the third, by a repeat, a gap and a stranger's word.
    venue.apply_numbered(place(ids[2], 1), super::idle(1));
    for used in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0] {
        venue.apply_numbered(place(ids[used], 1), super::idle(1));
    }
    assert_eq!(opened(&mut venue, Some(1), 1), ids[1]);
    assert!(matches!(venue.apply_numbered(place(ids[2], 1), super::idle(1)).0, Numbered::Repeated(_)));
    assert!(matches!(venue.apply_numbered(place(ids[2], 3), super::idle(1)).0, Numbered::Refused(_)));
    for lost in [2, 3, 4] {
        let events = venue.apply(open(Some(1), 100 + lost));
        let account = Some(AccountId(1));
        assert_eq!(events[0], Event::Session(SessionEvent::Closed(SessionClosed { session: ids[lost as usize], account })));
        assert_eq!(events.len(), 2);
    }
    assert_eq!(venue.engine.sessions_of(Some(AccountId(1))).len(), SESSIONS_PER_ACCOUNT_MAX);
    assert!(venue.engine.session(other).is_some());
}

/// The window, to the answer.
#[test]
fn a_window_remembers_the_last_answers_and_no_more() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 0);
    let window = SESSION_WINDOW as u64;
    for seq in 1..=2 * window + 5 {
        assert!(matches!(venue.apply_numbered(place(session, seq), super::idle(0)).0, Numbered::Done(_)));
        let oldest = seq.saturating_sub(window) + 1;
        if seq % 100 == 0 || (window - 2..window + 3).contains(&seq) || seq > 2 * window {
            for back in (oldest - 1).max(1)..=seq {
                let expected = (back >= oldest).then(|| LogIndex(session.0 + back));
                assert_eq!(venue.engine.answer(place(session, back)).map(|answer| answer.log_index), expected);
            }
        }
    }
    let became = venue.apply_numbered(place(session, window + 5), super::idle(0)).0;
    assert_eq!(became, Numbered::Refused(RejectReason::SessionSeqTooOld));
    assert!(matches!(venue.apply_numbered(place(session, window + 6), super::idle(0)).0, Numbered::Repeated(_)));
}
