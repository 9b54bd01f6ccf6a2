//! The examples of `docs/order-entry.md` are what the code writes.
#![allow(clippy::disallowed_methods, reason = "this test reads the document")]

use walras_gateway::{ClientKey, Request, signed_bytes};
use walras_types::{AccountId, LogIndex, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::encode_command;
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, EntryVersion, LOGON_METHOD, LOGON_PATH, LoggedOn, Logon, LogonTerms, OnDisconnect,
    ReportsWanted, Role, VenueMessage, encode_client, encode_venue,
};

use crate::setup::order;

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// What the document shows under a name: the lines of a fenced block, joined.
fn shown(document: &str, name: &str) -> String {
    let (_, rest) =
        document.split_once(&format!("```text {name}\n")).unwrap_or_else(|| panic!("the document does not show \"{name}\""));
    let (block, _) = rest.split_once("```").expect("a fence ends");
    block.to_owned()
}

#[test]
fn the_examples_are_what_the_code_writes() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/order-entry.md")).unwrap();
    let bytes_of = |name: &str| shown(&document, name).split_whitespace().collect::<String>();
    let key = ClientKey::from_parts("hm_demo", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").unwrap();
    let (on_disconnect, role, version) = (OnDisconnect::Cancel, Role::Account, EntryVersion::One);
    let terms = LogonTerms { on_disconnect, role, token: 7, reports: ReportsWanted::After(5), version };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    terms.encode(&mut body);
    let request = Request { method: LOGON_METHOD, path: LOGON_PATH, body: &body };
    let stamp_ns = 1_700_000_000_123_456_789;
    assert_eq!(shown(&document, "signed").trim_end().as_bytes(), signed_bytes(&request, &stamp_ns.to_string(), "n-1"));
    let fields = key.sign(&request, stamp_ns, "n-1");
    assert_eq!(bytes_of("signature"), fields.signature);
    let logon = Logon { terms, key_id: "hm_demo", stamp_ns, nonce: "n-1", signature: &fields.signature };
    encode_client(&ClientMessage::Logon(logon), &mut bytes);
    assert_eq!(bytes_of("logon"), hex(&bytes));

    bytes.clear();
    let on = LoggedOn {
        session: SessionId(42),
        next: SessionSeq(1),
        report_seq: 5,
        reports_from: 6,
        window: 1_024,
        idle_timeout_ns: 15_000_000_000,
    };
    encode_venue(&VenueMessage::LoggedOn(on), &mut bytes);
    assert_eq!(bytes_of("logged-on"), hex(&bytes));

    body.clear();
    bytes.clear();
    encode_command(&order(AccountId(3), 77), &mut body);
    encode_client(&ClientMessage::Submit { session_seq: SessionSeq(1), command: &body }, &mut bytes);
    assert_eq!(bytes_of("order"), hex(&bytes));

    bytes.clear();
    let (session_seq, time) = (SessionSeq(1), Some(TimeNs(stamp_ns)));
    encode_venue(&VenueMessage::Answer(Answer { session_seq, log_index: LogIndex(43), time, rejected: None }), &mut bytes);
    assert_eq!(bytes_of("answer"), hex(&bytes));
}

#[test]
fn every_reason_to_end_a_connection_is_in_the_document() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/order-entry.md")).unwrap();
    for reason in ByeReason::ALL {
        let row = format!("| {} | {reason:?} | {} |", reason.number(), reason.advice());
        assert!(document.contains(&row), "the document lacks this row: {row}");
    }
    for reason in [RejectReason::Throttled, RejectReason::Overloaded, RejectReason::VenueNotReady, RejectReason::StorageFull] {
        assert!(document.contains(&format!("{} {}", reason.number(), reason.name())), "{reason:?}");
    }
}
