//! Sessions: random streams of numbered commands compared with the naive model, and the cases that have a name.

mod against_model;
mod bounds;
mod restored;
mod scenarios;

use walras_engine::{Engine, SessionView};
use walras_types::*;
use walras_wire::*;

use crate::model::Model;
use crate::venue::{Venue, opening, phase, spec};

/// Four accounts and one instrument in continuous trading.
fn venue() -> Venue {
    let mut venue = Venue::new();
    for command in start() {
        venue.apply(command);
    }
    venue
}

fn start() -> Vec<Command> {
    let mut commands = opening(4, 100_000, &[spec(0)]);
    commands.push(phase(0, TradingPhase::Continuous));
    commands
}

fn open(account: Option<u32>, token: u64) -> Command {
    Command::Session(SessionCommand::Open(OpenSession { account: account.map(AccountId), token }))
}

fn close(session: SessionId) -> Command {
    Command::Session(SessionCommand::Close(CloseSession { session }))
}

/// Opens a session, and gives its id.
fn opened(venue: &mut Venue, account: Option<u32>, token: u64) -> SessionId {
    match venue.apply(open(account, token))[..] {
        [.., Event::Session(SessionEvent::Opened(SessionOpened { session, .. }))] => session,
        ref other => panic!("no session was opened: {other:?}"),
    }
}

fn place(session: SessionId, session_seq: u64) -> Ordinal {
    Ordinal { session, session_seq: SessionSeq(session_seq) }
}

fn next(engine: &Engine, session: SessionId) -> Ordinal {
    Ordinal { session, session_seq: engine.session(session).unwrap().next }
}

/// A cancel of an order that is not there: rejected, and changes nothing but the session.
fn idle(account: u32) -> Command {
    let client_order_id = ClientOrderId(u64::MAX);
    Command::Order(OrderCommand::Cancel(CancelOrder { account: AccountId(account), instrument: InstrumentId(0), client_order_id }))
}

fn snapshot(engine: &Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.snapshot(&mut bytes);
    bytes
}

/// Whether the engine's sessions are the model's: owners, places, uses, and every answer that was ever given.
fn same_sessions(engine: &Engine, model: &Model) -> Result<(), String> {
    let owners = std::iter::once(None).chain((0..6).map(|account| Some(AccountId(account))));
    for owner in owners {
        let expected: Vec<_> = model.sessions.iter().filter(|session| session.account == owner).map(|session| session.id).collect();
        let open: Vec<_> = engine.sessions_of(owner).collect();
        if open != expected {
            return Err(format!("open sessions of {owner:?}: {open:?}, and in the model {expected:?}"));
        }
    }
    for session in &model.sessions {
        let answered = session.history.len() as u64;
        let expected = SessionView {
            account: session.account,
            token: session.token,
            next: SessionSeq(answered + 1),
            remembered_from: SessionSeq(answered.saturating_sub(1_024) + 1),
            last_used: session.used,
        };
        if engine.session(session.id) != Some(expected) {
            return Err(format!("session {}: {:?}, and in the model {expected:?}", session.id, engine.session(session.id)));
        }
        for session_seq in (0..answered + 3).chain([u64::MAX]).map(SessionSeq) {
            let (ordinal, expected) =
                (Ordinal { session: session.id, session_seq }, session.answer(session_seq).map(|(answer, _)| answer));
            if engine.answer(ordinal) != expected {
                return Err(format!("{ordinal:?}: {:?}, and in the model {expected:?}", engine.answer(ordinal)));
            }
        }
    }
    Ok(())
}
