//! What is written of the schema for others is the schema; after a change of it, `cargo run -q -p walras-feed --example written` prints
//! what belongs there.

use std::collections::BTreeSet;

use walras_feed::control::Control;
use walras_feed::message::{MESSAGES, Message};
use walras_relay::packet::{Kind, Packet};

use crate::written;

const DOCUMENT: &str = include_str!("../../../../docs/market-data-feed.md");
const VECTORS: &str = include_str!("../../../../docs/market-data-feed.tsv");
const PACKETS: &str = include_str!("../../../../docs/market-data-packets.tsv");
const DISSECTOR: &str = include_str!("../../../../sdk/wireshark/walras.lua");

/// What stands between two marks.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    text.split_once(from).unwrap().1.split_once(to).unwrap().0
}

#[test]
fn the_documents_tables_are_the_schema() {
    assert_eq!(between(DOCUMENT, "<!-- schema -->", "<!-- end of the schema -->"), written::tables());
}

#[test]
fn the_dissectors_table_is_the_schema() {
    assert_eq!(between(DISSECTOR, "-- schema", "-- end of the schema"), written::dissector_table());
}

#[test]
fn the_dissector_knows_the_messages_of_channel_0() {
    assert_eq!(between(DISSECTOR, "-- controls", "-- end of the controls"), written::dissector_controls());
}

/// Their seals were made by another program from the document's words.
#[test]
fn the_sealed_test_vectors_are_packets_and_a_request_with_its_answers() {
    assert_eq!(PACKETS, written::packets());
    let packets: Vec<Vec<u8>> = written::sealed().into_iter().map(|(_, bytes, _)| bytes).collect();
    let read = |at: usize| Packet::decode(&packets[at], &written::key()).unwrap();
    let [data, heartbeat, request, answer, gone] = std::array::from_fn(read);
    let numbers = |packet: &Packet<'_>| packet.messages().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!((numbers(&data), numbers(&answer), answer.header().kind), (vec![41, 42, 43], vec![41, 42, 43], Kind::Again));
    assert_eq!((heartbeat.header().kind, heartbeat.header().first), (Kind::Heartbeat, 44));
    assert_eq!(Control::decode(&request), Some(Control::Ask(written::ASKED)));
    assert_eq!(Control::decode(&gone), Some(Control::GoneBefore { channel: written::ASKED.channel, number: 44 }));
    let requested = request.messages().next().unwrap().1;
    assert_eq!(requested.len(), 15, "as the document says");
}

#[test]
fn the_test_vectors_are_of_every_kind_and_decode() {
    assert_eq!(VECTORS, written::vectors());
    let mut kinds = BTreeSet::new();
    for (line, (head, message)) in VECTORS.lines().skip(1).zip(written::samples()) {
        let hex = line.split('\t').nth(1).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        assert_eq!(Message::decode(&bytes), Ok((head, message)), "{line}");
        kinds.insert(message.kind());
    }
    assert!(kinds.into_iter().eq(MESSAGES.iter().map(|message| message.kind)));
}
