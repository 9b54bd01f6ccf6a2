//! Attacks on binary order entry, and connections that are closed again.

use super::{Attack, Group, Needs, garbage, noise};
use crate::crowd::Plan;

pub(super) const IDLE_ENTRY: Attack = Attack {
    name: "idle_entry",
    group: Group::Idle,
    about: "1,500 connections to order entry that send nothing",
    needs: Needs::Nothing,
    plans: |field| vec![Plan::standing(field.orders, field.of(1_500), Vec::new())],
    shots: |_| Vec::new(),
};

pub(super) const SLOW_ENTRY: Attack = Attack {
    name: "slow_entry",
    group: Group::Idle,
    about: "500 logons to order entry that come a byte a second",
    needs: Needs::Nothing,
    plans: |field| vec![Plan { drip: vec![0; 1_000], ..Plan::standing(field.orders, field.of(500), vec![200, 0]) }],
    shots: |_| Vec::new(),
};

pub(super) const MALFORMED_ENTRY: Attack = Attack {
    name: "malformed_entry",
    group: Group::Malformed,
    about: "200 connections a second to order entry with bytes that are no message",
    needs: Needs::Nothing,
    plans: |field| vec![garbage(field.orders, field.rate(200), of_entry())],
    shots: |_| Vec::new(),
};

pub(super) const FLOOD_CONNECT: Attack = Attack {
    name: "flood_connect",
    group: Group::Flood,
    about: "500 connections a second to each port, closed again",
    needs: Needs::Nothing,
    plans: |field| {
        let ports = [field.http, field.orders, field.peers];
        ports.map(|port| Plan { replaced_per_second: field.rate(500), ..Plan::standing(port, 16, Vec::new()) }).into()
    },
    shots: |_| Vec::new(),
};

pub(super) const FLOOD_LOGON: Attack = Attack {
    name: "flood_logon",
    group: Group::Flood,
    about: "200 logons a second to order entry with a key that is none",
    needs: Needs::Nothing,
    plans: |field| vec![garbage(field.orders, field.rate(200), vec![logon()])],
    shots: |_| Vec::new(),
};

fn of_entry() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..8_u64).map(|seed| noise(1 << seed, seed)).collect();
    for length in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
        all.push([length.to_le_bytes().to_vec(), noise(64, u64::from(length) | 1)].concat());
        all.push([length.to_be_bytes().to_vec(), noise(64, u64::from(length) | 1)].concat());
    }
    let logon = logon();
    all.push(logon[..logon.len() / 2].to_vec());
    all.push([logon.clone(), logon].concat());
    all.extend(of_transactions());
    all
}

/// Frames of transactions for a batch market, from somebody who did not log on: full of noise, one that announces more than it has, one
/// that never ends, and one of a length that no frame has.
fn of_transactions() -> Vec<Vec<u8>> {
    use walras_types::BatchMarketId;
    use walras_wire::order_entry::{
        ClientMessage, SIGNED_TRANSACTION_BYTES_MAX, SignedTransactions, TRANSACTIONS_PER_FRAME_MAX, encode_client,
        push_signed_bytes,
    };
    let mut items = Vec::new();
    for seed in 0..TRANSACTIONS_PER_FRAME_MAX as u64 {
        push_signed_bytes(&noise(SIGNED_TRANSACTION_BYTES_MAX, seed), &mut items);
    }
    let Ok(frame) = SignedTransactions::new(1, BatchMarketId(0), &items) else { return Vec::new() };
    let mut whole = Vec::new();
    encode_client(&ClientMessage::Transactions(frame), &mut whole);
    let cut = whole[..whole.len() / 2].to_vec();
    // Its length, its kind, its number and its market are before the count.
    let count_at = 4 + 1 + 8 + 2;
    let (mut more, mut longer) = (whole.clone(), whole.clone());
    more[count_at..count_at + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    longer[..4].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
    vec![whole.repeat(4), cut, more, longer]
}

/// A logon as a program sends it, to the challenge of another venue, with a key that no venue has.
pub(crate) fn logon() -> Vec<u8> {
    use std::sync::Arc;

    use walras_gateway::session::{ClientSettings, SessionClient, VenueKeys};
    use walras_wire::order_entry::{Sealing, VenueMessage, encode_venue};
    let key = walras_access::generate(walras_gateway::Algorithm::Ed25519);
    let now_ns = walras_access::now().0;
    let client = SessionClient::new(ClientSettings::new(vec!["127.0.0.1:1".to_owned()], 1), key, now_ns);
    client.map_or_else(Vec::new, |mut client| {
        let _ = client.wish(now_ns);
        client.on_connecting();
        client.on_connected(now_ns, &[7; 32]);
        let (keys, mut welcome) = (Arc::new(VenueKeys::new(&[7; VenueKeys::ENTROPY_LEN])), Vec::new());
        encode_venue(&VenueMessage::Welcome(keys.greeting(1).welcome(Sealing::Required)), &mut welcome);
        client.on_bytes(now_ns, &welcome, &mut |_| ());
        client.output().to_vec()
    })
}
