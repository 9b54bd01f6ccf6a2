//! Commands of participants on their way, and what came of them: for REST and for the WebSocket, one or several at a time.

use std::time::Instant;

use axum::http::StatusCode;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_engine::Engine;
use walras_ports::{NoOutcome, NumberedOutcome, Outcome, Stage};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, NonceFingerprint, NonceUse, Ordinal, RejectReason};
use walras_wire::Command;

use super::shards::with_address;
use super::{ApiError, App, bound_met};
use crate::json::once::with_number;
use crate::json::outcome::{self, Subject};
use crate::json::views;

/// A command that was queued.
pub(crate) struct Sent {
    account: AccountId,
    ordinal: Option<Ordinal>,
    command: Command,
    /// The one order that it is about.
    subject: Option<Subject>,
    waits: Waits,
}

enum Waits {
    Plain(tokio::sync::oneshot::Receiver<Result<Outcome, NoOutcome>>, Instant),
    Numbered(tokio::sync::oneshot::Receiver<Result<NumberedOutcome, NoOutcome>>),
    Nothing(RejectReason),
}

/// What came of a command.
pub(crate) enum CameOf {
    /// It was carried out.
    Done(Value),
    /// It was rejected, and its number is used up: an `error` with that number.
    Rejected(RejectReason, Value),
    /// It was not taken, or rejected without a number.
    Refused(ApiError),
}

impl CameOf {
    /// As one of several.
    pub(crate) fn of_many(self) -> Value {
        match self {
            Self::Done(answer) => json!({"answer": answer}),
            Self::Rejected(_, body) => body,
            Self::Refused(ApiError { refusal, .. }) => json!({"error": views::error(refusal.reason, refusal.detail.as_deref())}),
        }
    }
}

/// Queues a command: under its number if it has one, else once by its nonce.
pub(crate) fn send(
    app: &App,
    account: AccountId,
    signed: SignedBy,
    ordinal: Option<Ordinal>,
    (command, subject): (Command, Option<Subject>),
) -> Sent {
    let waits = match ordinal {
        None => app.venue.submit_by(signed, command).map(|reply| Waits::Plain(reply, Instant::now())),
        Some(ordinal) => app.venue.submit_numbered(account, ordinal, command).map(Waits::Numbered),
    };
    Sent { account, ordinal, command, subject, waits: waits.unwrap_or_else(Waits::Nothing) }
}

/// The signature of the command at this place of a request. Each has a nonce of its own that follows from the request's: so a copy of the
/// request has no effect, whichever of its commands got through.
pub(crate) fn signed_at(signed: &SignedBy, place: u16) -> SignedBy {
    let nth = |nonce: &NonceUse| {
        let NonceFingerprint(mut bytes) = nonce.fingerprint;
        let [low, high] = place.to_le_bytes();
        bytes[14] ^= low;
        bytes[15] ^= high;
        Box::new(NonceUse { fingerprint: NonceFingerprint(bytes), ..*nonce })
    };
    SignedBy { key: signed.key, nonce: signed.nonce.as_deref().map(nth) }
}

impl Sent {
    /// Waits until it is durable, or it is known that nobody can say.
    pub(crate) async fn came_of(self, app: &App) -> CameOf {
        let Self { account, ordinal, command, subject, waits } = self;
        let describe = |outcome: &Outcome| {
            let catalog = app.venue.catalog();
            match &subject {
                Some(subject) => {
                    let scale = catalog.instrument(subject.instrument).ok_or(RejectReason::UnknownInstrument)?;
                    outcome::order(outcome, subject, scale)
                }
                None => outcome::mass_cancel(outcome, account, &catalog),
            }
        };
        match (waits, ordinal) {
            (Waits::Plain(reply, began), _) => {
                let outcome = reply.await.unwrap_or(Err(NoOutcome::GONE));
                app.venue.stages().ended(Stage::Request, began);
                match outcome.map(|outcome| describe(&outcome)) {
                    Ok(Ok(answer)) => CameOf::Done(answer),
                    Ok(Err(reason)) => CameOf::Refused(refusal(app, reason, &command, subject.as_ref()).await),
                    Err(why) => CameOf::Refused(why.into()),
                }
            }
            (Waits::Numbered(reply), Some(ordinal)) => {
                let came = match reply.await.unwrap_or(Err(NoOutcome::GONE)) {
                    Ok(came) => came,
                    Err(why) => return CameOf::Refused(unknown(app, ordinal, why).await),
                };
                let kept = came.answer();
                if let Some(reason) = kept.rejected {
                    // It used its number up: the answer says so, which a refusal that is not in the log does not.
                    let refusal = refusal(app, reason, &command, subject.as_ref()).await.refusal;
                    let body = json!({"error": views::error(reason, refusal.detail.as_deref())});
                    return CameOf::Rejected(reason, with_number(body, ordinal, kept));
                }
                let mut body = match &came {
                    NumberedOutcome::Done(outcome) => match describe(outcome) {
                        Ok(body) => body,
                        Err(reason) => return CameOf::Refused(reason.into()),
                    },
                    NumberedOutcome::Repeated(_) => json!({}),
                };
                body["repeated"] = matches!(came, NumberedOutcome::Repeated(_)).into();
                if let Some(of) = &subject {
                    body["client_order_id"] = of.called.to_string().into();
                }
                CameOf::Done(with_number(body, ordinal, kept))
            }
            (Waits::Nothing(reason), Some(ordinal)) => CameOf::Refused(unknown(app, ordinal, reason.into()).await),
            (Waits::Nothing(reason), None) => CameOf::Refused(reason.into()),
            (Waits::Numbered(_), None) => unreachable!("it was queued under its number"),
        }
    }
}

async fn refusal(app: &App, reason: RejectReason, command: &Command, of: Option<&Subject>) -> ApiError {
    match (bound_met(app, reason, command).await, of) {
        (Some(bound), _) => Refusal::new(reason, bound).into(),
        (None, Some(of)) => with_address(app, reason, of.instrument).await,
        (None, None) => reason.into(),
    }
}

/// The answer to a numbered command whose outcome is unknown: the client can send it again.
async fn unknown(app: &App, ordinal: Ordinal, why: NoOutcome) -> ApiError {
    match why {
        NoOutcome::InDoubt(reason) => {
            ApiError::with_status(Refusal::new(reason, NoOutcome::IN_DOUBT_NUMBERED), StatusCode::SERVICE_UNAVAILABLE)
        }
        NoOutcome::Refused(reason) => match place_known(app, ordinal, reason).await {
            Some(detail) => Refusal::new(reason, detail).into(),
            None => why.into(),
        },
    }
}

/// What the session says of a number that is not its next one.
async fn place_known(app: &App, ordinal: Ordinal, reason: RejectReason) -> Option<String> {
    if !matches!(reason, RejectReason::SessionSeqGap | RejectReason::SessionSeqTooOld | RejectReason::SessionSeqReused) {
        return None;
    }
    let look = move |engine: &Engine| Some((engine.session(ordinal.session)?, engine.answer(ordinal)));
    let (session, answer) = app.venue.read(move |v| look(v.engine)).await.ok().flatten()?;
    Some(match answer {
        Some(answer) => {
            format!("log entry {} holds the command of this number; the next number is {}", answer.log_index, session.next)
        }
        None => format!("the next number is {}, and answers are kept from {} on", session.next, session.remembered_from),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use walras_types::{KeyTag, TimeNs};

    use super::*;

    #[test]
    fn each_command_of_a_request_has_a_nonce_of_its_own() {
        let nonce = NonceUse { key: KeyTag(3), fingerprint: NonceFingerprint([9; 16]), until: TimeNs(4) };
        let signed = SignedBy { key: None, nonce: Some(Box::new(nonce)) };
        assert_eq!(signed_at(&signed, 0), signed);
        let fingerprints: BTreeSet<_> = (0..1_000).map(|place| signed_at(&signed, place).nonce.unwrap().fingerprint).collect();
        assert_eq!(fingerprints.len(), 1_000);
    }
}
