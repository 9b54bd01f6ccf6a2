//! The number under which a command takes effect once, however often it is sent: asked for in the query, which is signed with the path.

use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_engine::SessionView;
use walras_ports::Kept;
use walras_types::{ClientOrderId, Ordinal, RejectReason, SessionId, SessionSeq};

use super::requests::{MassCancelRequest, number};

/// `?session=42&session_seq=7`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberRequest {
    session: Option<String>,
    session_seq: Option<String>,
}

impl NumberRequest {
    /// The number, if there is one.
    pub fn ordinal(&self) -> Result<Option<Ordinal>, Refusal> {
        let malformed = |why: &str| Refusal::new(RejectReason::Malformed, why);
        match (&self.session, &self.session_seq) {
            (None, None) => Ok(None),
            (Some(session), Some(seq)) => {
                let session_seq = SessionSeq(number("session_seq", seq)?);
                if session_seq.0 == 0 {
                    return Err(malformed("session_seq: commands of a session are numbered from 1"));
                }
                Ok(Some(Ordinal { session: SessionId(number("session", session)?), session_seq }))
            }
            (Some(_), None) => Err(malformed("session_seq is missing: the command's number in its session")),
            (None, Some(_)) => Err(malformed("session is missing: open one with POST /v1/sessions")),
        }
    }
}

/// The query of `DELETE /v1/orders`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MassCancelQuery {
    instrument: Option<String>,
    side: Option<String>,
    session: Option<String>,
    session_seq: Option<String>,
}

impl MassCancelQuery {
    /// What is asked for, and under which number.
    #[must_use]
    pub fn parts(self) -> (MassCancelRequest, NumberRequest) {
        let Self { instrument, side, session, session_seq } = self;
        (MassCancelRequest { instrument, side }, NumberRequest { session, session_seq })
    }
}

/// `POST /v1/sessions`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    token: String,
}

impl SessionRequest {
    /// The participant's name for the session.
    pub fn token(&self) -> Result<u64, Refusal> {
        number("token", &self.token)
    }
}

/// The name of an order that its owner did not name. It follows from the command's number, so that a command that is sent again means the same order;
/// numbers below 2^32 give names that differ.
#[must_use]
pub fn name_of(ordinal: Ordinal) -> ClientOrderId {
    // A bijection: each number gives another name.
    ClientOrderId(walras_random::mix(ordinal.session.0.rotate_left(32) ^ ordinal.session_seq.0))
}

/// What stands in the log for good about a command: in each of its answers.
#[must_use]
pub fn with_number(mut answer: Value, ordinal: Ordinal, kept: Kept) -> Value {
    answer["session"] = ordinal.session.0.to_string().into();
    answer["session_seq"] = ordinal.session_seq.0.to_string().into();
    answer["log_index"] = kept.log_index.0.to_string().into();
    answer
}

/// A session of an account.
#[must_use]
pub fn session(session: SessionId, view: &SessionView) -> Value {
    json!({
        "session": session.0.to_string(),
        "token": view.token.to_string(),
        "next_seq": view.next.0.to_string(),
        "remembered_from": view.remembered_from.0.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn asked(session: Option<&str>, session_seq: Option<&str>) -> Result<Option<Ordinal>, Refusal> {
        NumberRequest { session: session.map(str::to_owned), session_seq: session_seq.map(str::to_owned) }.ordinal()
    }

    #[test]
    fn a_number_is_whole_or_absent() {
        assert_eq!(asked(None, None), Ok(None));
        let ordinal = Ordinal { session: SessionId(42), session_seq: SessionSeq(7) };
        assert_eq!(asked(Some("42"), Some("7")), Ok(Some(ordinal)));
        for (session, session_seq, why) in [
            (Some("42"), None, "session_seq is missing"),
            (None, Some("7"), "POST /v1/sessions"),
            (Some("42"), Some("0"), "numbered from 1"),
            (Some("x"), Some("1"), "session"),
            (Some("1"), Some("-1"), "session_seq"),
        ] {
            let said = asked(session, session_seq).unwrap_err();
            assert!(said.reason == RejectReason::Malformed && said.detail.unwrap().contains(why), "{session:?} {session_seq:?}");
        }
    }

    #[test]
    fn names_follow_from_numbers_and_differ() {
        let name = |session, seq| name_of(Ordinal { session: SessionId(session), session_seq: SessionSeq(seq) });
        assert_eq!(name(3, 9), name(3, 9));
        let names: BTreeSet<u64> = (1..50).flat_map(|session| (1..200).map(move |seq| name(session, seq).0)).collect();
        assert_eq!(names.len(), 49 * 199);
    }
}
