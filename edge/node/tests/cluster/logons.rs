//! The bytes of a whole connection, sent again by somebody who saw them: to the same replica and to the others.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use walras_access::now;
use walras_gateway::ClientKey;
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, Wish};
use walras_types::{AccountId, RejectReason};
use walras_wire::order_entry::{ByeReason, FRAME_HEADER_BYTES, VenueMessage, decode_venue, frame_len, split_frame};

use super::client::{Flow, dial, read};
use super::{Cluster, PATIENCE, Shape};

const ORDERS: usize = 5;

/// All that a client sends of a session with a few orders.
fn recorded(account: AccountId, key: ClientKey, address: &str) -> Vec<u8> {
    let mut client = SessionClient::new(ClientSettings::new(vec![address.to_owned()], 1), key, now().0).unwrap();
    let mut stream: Option<TcpStream> = None;
    let (mut flow, mut sent, mut asked, mut answered) = (Flow::new(account, 0x10605), Vec::new(), 0, 0);
    let (begun, mut buffer) = (Instant::now(), vec![0; 64 << 10]);
    while answered < ORDERS {
        assert!(begun.elapsed() < PATIENCE, "the orders are not answered");
        let mut note = |event: ClientEvent| match event {
            ClientEvent::Answer { .. } => answered += 1,
            ClientEvent::Ended(error) => panic!("{error}"),
            _ => {}
        };
        client.on_timer(now().0, &mut note);
        match client.wish(now().0) {
            Wish::Wait => {}
            Wish::Close => {
                stream = None;
                client.on_disconnected(now().0);
            }
            Wish::Connect(_) => {
                sent.clear();
                client.on_connecting();
                client.on_connected(now().0, &flow.entropy());
                stream = Some(dial(address, Duration::from_millis(5)).unwrap());
            }
        }
        while asked < ORDERS && client.is_logged_on() {
            client.submit(now().0, &flow.next()).unwrap();
            asked += 1;
        }
        let Some(stream) = &mut stream else { continue };
        let bytes = client.output().to_vec();
        client.consume(bytes.len());
        stream.write_all(&bytes).unwrap();
        sent.extend_from_slice(&bytes);
        let bytes = read(stream, &mut buffer).unwrap();
        client.on_bytes(now().0, bytes, &mut note);
    }
    sent
}

/// What a replica says to these bytes, until it closes the connection.
fn answer_to(address: &str, bytes: &[u8]) -> Vec<ByeReason> {
    let mut stream = dial(address, Duration::from_millis(50)).unwrap();
    stream.write_all(bytes).unwrap();
    let (begun, mut buffer, mut heard) = (Instant::now(), vec![0; 64 << 10], Vec::new());
    while let Ok(bytes) = read(&mut stream, &mut buffer) {
        heard.extend_from_slice(bytes);
        assert!(begun.elapsed() < PATIENCE, "the connection stays open");
    }
    let (mut rest, mut byes) = (&heard[..], Vec::new());
    while let Some((frame, after)) = split_frame(rest).unwrap() {
        rest = after;
        match decode_venue(frame).unwrap() {
            VenueMessage::Welcome(_) => {}
            VenueMessage::Bye { reason, .. } => byes.push(reason),
            other => panic!("{other:?} answers bytes that were sent before"),
        }
    }
    byes
}

#[test]
fn a_connection_that_is_sent_again_is_refused_by_every_replica() {
    let settings = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    let cluster = Cluster::of(Shape { more: settings, ..Shape::default() });
    cluster.local.wait_for_leader(PATIENCE).unwrap();
    let (account, key) = cluster.market(1).remove(0);
    let addresses: Vec<&str> = cluster.local.replicas.iter().map(|replica| replica.orders.as_str()).collect();
    let sent = recorded(account, key, addresses[0]);
    let logon = FRAME_HEADER_BYTES + frame_len(*sent.first_chunk().unwrap()).unwrap();
    assert!(sent.len() > logon, "there are orders after the logon");
    for address in addresses {
        let refused = [ByeReason::Rejected(RejectReason::SignatureInvalid)];
        assert_eq!(answer_to(address, &sent[..logon]), refused, "the logon by itself, to {address}");
        let byes = answer_to(address, &sent);
        assert!(byes == [ByeReason::LogonExpected] || byes == refused, "all of it, to {address}: {byes:?}");
    }
}
