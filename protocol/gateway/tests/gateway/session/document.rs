//! The examples of `docs/order-entry.md` are what the code writes.
#![allow(clippy::disallowed_methods, reason = "this test reads the document")]

use std::sync::Arc;

use walras_gateway::session::{ClientAgreement, LogonHash, VenueKeys, signed_logon};
use walras_gateway::{ClientKey, ClientOrder};
use walras_types::{AccountId, Amendment, BatchMarketId, LogIndex, RejectReason, SessionId, SessionSeq, SizeLots, TimeNs};
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, Copies, FRAME_HEADER_BYTES, LoggedOn, Logon, LogonTerms, OnDisconnect, ReportsWanted, Role,
    Sealing, SignedTransactions, TransactionResults, VenueMessage, encode_client, encode_venue, push_result, push_signed_bytes,
};
use walras_wire::{
    AmendOrder, CancelAfter, CancelOrder, CloseSession, Command, LinkedOrder, MassCancel, NamedAmend, NamedOrder, OrderCommand,
    SessionCommand, encode_command,
};

use super::setup::order;

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
    let (on_disconnect, role, copies) = (OnDisconnect::Cancel, Role::Account, Copies::One);
    let stamp_ns = 1_700_000_000_123_456_789;
    let terms = LogonTerms { on_disconnect, role, token: 7, reports: ReportsWanted::After(5), copies, logon_seq: stamp_ns };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    let venue_secret: [u8; VenueKeys::ENTROPY_LEN] = std::array::from_fn(|at| 32 + at as u8);
    let client = ClientAgreement::new(&std::array::from_fn(|at| 64 + at as u8));
    let welcome = Arc::new(VenueKeys::new(&venue_secret)).greeting(1).welcome(Sealing::Required);
    encode_venue(&VenueMessage::Welcome(welcome), &mut bytes);
    assert_eq!(bytes_of("welcome"), hex(&bytes));

    bytes.clear();
    let signed = signed_logon(&welcome.challenge, &welcome.venue_key, &client.client_key(), &terms);
    assert_eq!(shown(&document, "signed").trim_end(), String::from_utf8(signed.clone()).unwrap());
    let signature = key.sign_bytes(&signed);
    assert_eq!(bytes_of("signature"), signature);
    let logon = Logon { terms, client_key: client.client_key(), key_id: "hm_demo", signature: &signature };
    encode_client(&ClientMessage::Logon(logon), &mut bytes);
    assert_eq!(bytes_of("logon"), hex(&bytes));
    let mut seals = client.agree(welcome.venue_key, &LogonHash::of(&bytes[FRAME_HEADER_BYTES..])).unwrap();

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
    let seal = seals.seal(&bytes);
    bytes.clear();
    encode_client(&ClientMessage::Seal(seal), &mut bytes);
    assert_eq!(bytes_of("seal"), hex(&bytes));

    bytes.clear();
    let (session_seq, time) = (SessionSeq(1), Some(TimeNs(stamp_ns)));
    encode_venue(&VenueMessage::Answer(Answer { session_seq, log_index: LogIndex(43), time, rejected: None }), &mut bytes);
    assert_eq!(bytes_of("answer"), hex(&bytes));

    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/batch-transactions.md")).unwrap();
    let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let field =
        |name: &str| page.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim).find(is_hex).unwrap().to_owned();
    let signed = data_encoding::HEXLOWER.decode((field("transaction ") + &field("signature ")).as_bytes()).unwrap();
    let mut items = Vec::new();
    assert!(push_signed_bytes(&signed, &mut items));
    bytes.clear();
    let frame = SignedTransactions::new(1, BatchMarketId(0), &items).unwrap();
    encode_client(&ClientMessage::Transactions(frame), &mut bytes);
    assert_eq!(bytes_of("transactions"), hex(&bytes));
    let mut results = Vec::new();
    push_result(None, &mut results);
    bytes.clear();
    let results = TransactionResults::new(1, Some((17, 17)), None, &results).unwrap();
    encode_venue(&VenueMessage::Transactions(results), &mut bytes);
    assert_eq!(bytes_of("transaction-results"), hex(&bytes));
}

#[test]
fn the_commands_of_an_account_are_in_the_document() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/order-entry.md")).unwrap();
    let named = ClientOrder::parse("abc-1").unwrap();
    let (text, id) = (named.name.unwrap(), named.id);
    let entering = order(AccountId(3), id.0);
    let Command::Order(OrderCommand::New(new)) = entering else { panic!("{entering:?}") };
    let (account, instrument) = (new.account, new.instrument);
    let amendment = Amendment { client_order_id: id, price: None, trigger: None, size: Some(SizeLots::new(1)) };
    let amend = AmendOrder { account, instrument, amendment };
    let orders = [
        (OrderCommand::New(new), "NewOrder"),
        (OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id: id }), "CancelOrder"),
        (OrderCommand::Amend(amend), "AmendOrder"),
        (OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }), "MassCancel"),
        (OrderCommand::NewNamed(NamedOrder::new(&new, text)), "NewNamed"),
        (OrderCommand::CancelAfter(CancelAfter { account, timeout_ms: 0 }), "CancelAfter"),
        (OrderCommand::NewLinked(LinkedOrder::new(&new, id, None)), "NewLinked"),
        (OrderCommand::NewLinked(LinkedOrder::exit(&new, id, Some(text))), "NewLinked"),
        (OrderCommand::AmendNamed(NamedAmend { amend, name: text }), "AmendNamed"),
    ];
    let session = SessionId(42);
    let close = (Command::Session(SessionCommand::Close(CloseSession { session })), "CloseSession");
    for (command, name) in orders.map(|(order, name)| (Command::Order(order), name)).into_iter().chain([close]) {
        assert!(command.may_be_submitted_by(Role::Account) && command.may_come_from(session, account), "{name}");
        let mut bytes = Vec::new();
        encode_command(&command, &mut bytes);
        let row = format!("| {} | {name}", bytes[0]);
        assert!(document.contains(&row), "the document lacks this row: {row}");
        if name == "NewNamed" {
            assert!(bytes.ends_with(b"\x05abc-1"), "its text comes last, behind its length: {}", hex(&bytes));
        }
    }
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
