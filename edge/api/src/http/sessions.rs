//! Sessions of an account, for those who send commands over HTTP and have to be able to send them again.

use axum::extract::State;
use serde_json::json;
use walras_types::RejectReason;
use walras_wire::{Command, Event, OpenSession, SessionCommand, SessionEvent};

use super::signed::{Signed, Trader};
use super::{Answer, App, ok};
use crate::json::once::{SessionRequest, session};
use crate::json::requests::parse;

pub(super) async fn open(State(app): State<App>, signed: Signed) -> Answer {
    let Trader { account, signed: by } = signed.trader()?;
    let request: SessionRequest = parse(&signed.body)?;
    let token = request.token()?;
    // Only who leads takes it; others say who does.
    app.venue.catalog_for_commands()?;
    let outcome =
        app.venue.command_by(by, Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token }))).await?;
    let opened = outcome
        .events
        .iter()
        .find_map(|event| if let Event::Session(SessionEvent::Opened(opened)) = event { Some(opened) } else { None });
    let id = opened.ok_or(outcome.rejected().unwrap_or(RejectReason::VenueNotReady))?.session;
    // Others of the account may have been opened meanwhile, and this one closed for them.
    let view = app.venue.read(move |v| v.engine.session(id)).await?.ok_or(RejectReason::UnknownSession)?;
    Ok(ok(&session(id, &view)))
}

pub(super) async fn list(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let views = app.venue.read(move |v| {
        let ids = v.engine.sessions_of(Some(account));
        ids.filter_map(|id| Some((id, v.engine.session(id)?))).collect::<Vec<_>>()
    });
    let sessions: Vec<_> = views.await?.iter().map(|(id, view)| session(*id, view)).collect();
    Ok(ok(&json!({"sessions": sessions})))
}
