//! Frames that are sealed: only who logged on can have written them.

use proptest::prelude::*;
use walras_gateway::Gateway;
use walras_gateway::session::{ClientEvent, ClientSettings, Ended, ServerSettings, SessionClient, SessionServer, SessionStart};
use walras_types::{AccountId, BatchMarketId, SessionId, SessionSeq};
use walras_wire::encode_command;
use walras_wire::order_entry::{
    ByeReason, ClientMessage, OnDisconnect, RUN_BYTES_MAX, SIGNED_TRANSACTION_BYTES_MAX, Sealing, TRANSACTIONS_PER_FRAME_MAX,
    VenueMessage, decode_client, decode_venue, encode_client, encode_venue, push_signed_bytes, split_frame,
};

use super::setup::{Asked, Notes, Random, START, entropy, gate, greeting, key, order, source};

/// A client and a venue's end, logged on to each other.
struct Pair {
    client: SessionClient,
    server: SessionServer,
    gateway: Gateway,
    submitted: Vec<u64>,
    /// Numbers of frames of transactions, and how many each has.
    frames: Vec<(u64, usize)>,
    /// All that the client has sent.
    sent: Vec<u8>,
    bye: Option<(ByeReason, String)>,
}

impl Pair {
    fn new(number: u64) -> Self {
        let settings = ClientSettings { on_disconnect: OnDisconnect::Cancel, ..ClientSettings::new(vec!["a:1".to_owned()], 7) };
        let mut client = SessionClient::new(settings, key(0), START).unwrap();
        client.on_connected(START, &entropy(number));
        let mut pair = Self {
            client,
            server: SessionServer::new(ServerSettings::default(), greeting(number), START),
            gateway: gate(1),
            submitted: Vec::new(),
            frames: Vec::new(),
            sent: Vec::new(),
            bye: None,
        };
        pair.listen();
        let logon = pair.take_output();
        pair.deliver(&logon);
        pair.listen();
        pair
    }

    /// A pair whose client has logged on.
    fn logged_on(number: u64) -> Self {
        let pair = Self::new(number);
        assert!(pair.client.is_logged_on());
        pair
    }

    fn take_output(&mut self) -> Vec<u8> {
        let bytes = self.client.output().to_vec();
        self.client.consume(bytes.len());
        self.sent.extend_from_slice(&bytes);
        bytes
    }

    fn deliver(&mut self, bytes: &[u8]) {
        let mut host = Notes { gateway: &mut self.gateway, throttled: false, asked: Vec::new() };
        self.server.on_bytes(START, bytes, &mut host);
        let mut asked = host.asked;
        while let Some(one) = (!asked.is_empty()).then(|| asked.remove(0)) {
            match one {
                Asked::Authenticate(logon) => {
                    let verdict = logon.authorize(&mut self.gateway, START, source());
                    let mut host = Notes { gateway: &mut self.gateway, throttled: false, asked: Vec::new() };
                    self.server.authenticated(verdict, &mut host);
                    asked.append(&mut host.asked);
                }
                Asked::Open(..) => {
                    let start = SessionStart { session: SessionId(4), next: SessionSeq(1), report_seq: 0, reports_from: 1 };
                    self.server.opened(START, start);
                }
                Asked::Submit(ordinal, _) => self.submitted.push(ordinal.session_seq.0),
                Asked::Transactions(frame) => self.frames.push((frame.number, frame.transactions.len())),
            }
        }
    }

    /// What the venue says reaches the client.
    fn listen(&mut self) {
        let bytes = self.server.output().to_vec();
        self.server.consume(bytes.len());
        let mut rest = &bytes[..];
        while let Some((frame, after)) = split_frame(rest).unwrap() {
            rest = after;
            if let VenueMessage::Bye { reason, text } = decode_venue(frame).unwrap() {
                self.bye = Some((reason, text.to_owned()));
            }
        }
        self.client.on_bytes(START, &bytes, &mut |_: ClientEvent| ());
    }

    fn submit(&mut self, count: u64) {
        for _ in 0..count {
            let name = START + self.client.unanswered_count() as u64;
            self.client.submit(START, &order(AccountId(0), name)).unwrap();
        }
    }

    fn ended_with(&mut self) -> Option<ByeReason> {
        self.listen();
        self.bye.as_ref().map(|(reason, _)| *reason)
    }
}

/// A command that an intruder writes.
fn forged(session_seq: u64) -> Vec<u8> {
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    encode_command(&order(AccountId(0), 666), &mut body);
    encode_client(&ClientMessage::Submit { session_seq: SessionSeq(session_seq), command: &body }, &mut bytes);
    bytes
}

fn kinds(mut bytes: &[u8]) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    while let Some((frame, rest)) = split_frame(bytes).unwrap() {
        bytes = rest;
        kinds.push(match decode_client(frame).unwrap() {
            ClientMessage::Logon(_) => "Logon",
            ClientMessage::Submit { .. } => "Submit",
            ClientMessage::Ping(_) => "Ping",
            ClientMessage::Logout => "Logout",
            ClientMessage::Seal(_) => "Seal",
            ClientMessage::Transactions(_) => "Transactions",
        });
    }
    kinds
}

#[test]
fn one_seal_covers_all_that_is_written_together() {
    let mut pair = Pair::logged_on(1);
    pair.submit(3);
    let run = pair.take_output();
    assert_eq!(kinds(&run), ["Submit", "Submit", "Submit", "Seal"]);
    assert!(pair.take_output().is_empty(), "nothing is sealed twice");
    // Nothing of a run is taken before its seal has come.
    pair.deliver(&run[..run.len() - 1]);
    assert_eq!((pair.submitted.len(), pair.server.unanswered_count()), (0, 0));
    pair.deliver(&run[run.len() - 1..]);
    assert_eq!(pair.submitted, [1, 2, 3]);
    pair.submit(1);
    let run = pair.take_output();
    run.iter().for_each(|&byte| pair.deliver(&[byte]));
    assert_eq!(pair.submitted, [1, 2, 3, 4]);
    assert_eq!(pair.ended_with(), None);
}

#[test]
fn frames_of_transactions_are_sealed_however_many_are_written_together() {
    let mut pair = Pair::logged_on(1);
    let mut items = Vec::new();
    for _ in 0..TRANSACTIONS_PER_FRAME_MAX {
        assert!(push_signed_bytes(&[7; SIGNED_TRANSACTION_BYTES_MAX], &mut items));
    }
    let one = 1 + SIGNED_TRANSACTION_BYTES_MAX;
    for len in [items.len(), 9 * one, items.len(), items.len(), one, items.len(), items.len()] {
        pair.client.submit_transactions(START, BatchMarketId(0), items[..len].to_vec()).unwrap();
        pair.submit(1);
    }
    let run = pair.take_output();
    assert!(run.len() > 2 * RUN_BYTES_MAX);
    run.chunks(1_000).for_each(|piece| pair.deliver(piece));
    assert_eq!(pair.ended_with(), None);
    assert_eq!(pair.frames, [(1, 256), (2, 9), (3, 256), (4, 256), (5, 1), (6, 256), (7, 256)]);
    assert_eq!(pair.submitted, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_run_without_a_seal_has_no_effect_whatever_follows() {
    // The connection is lost, or the client's own later seal covers what somebody else has written.
    let mut pair = Pair::logged_on(1);
    pair.deliver(&forged(1));
    assert_eq!((pair.submitted.len(), pair.server.unanswered_count()), (0, 0));
    pair.submit(1);
    let run = pair.take_output();
    pair.deliver(&run);
    assert_eq!((pair.submitted.len(), pair.ended_with()), (0, Some(ByeReason::SealInvalid)));
    let Some(Ended { cancel, .. }) = pair.server.take_ended() else { panic!("it is over") };
    assert_eq!(cancel, Some(AccountId(0)), "as when the connection is lost");
    // Even a logout and a ping wait for a seal.
    let mut pair = Pair::logged_on(1);
    for message in [ClientMessage::Ping(1), ClientMessage::Logout] {
        let mut bytes = Vec::new();
        encode_client(&message, &mut bytes);
        pair.deliver(&bytes);
    }
    assert!(pair.server.output().is_empty() && !pair.server.is_over());
}

#[test]
fn a_seal_is_good_once_and_in_its_place() {
    let runs = |pair: &mut Pair| {
        let mut one = || {
            pair.submit(1);
            pair.take_output()
        };
        [one(), one()]
    };
    let mut pair = Pair::logged_on(1);
    let [first, second] = runs(&mut pair);
    pair.deliver(&first);
    pair.deliver(&first);
    assert_eq!((pair.submitted.clone(), pair.ended_with()), (vec![1], Some(ByeReason::SealInvalid)), "twice");
    let mut pair = Pair::logged_on(1);
    let [_, _] = runs(&mut pair);
    pair.deliver(&second);
    assert_eq!((pair.submitted.clone(), pair.ended_with()), (vec![], Some(ByeReason::SealInvalid)), "out of order");
    // That of another connection of the same client, and none at all.
    for other in [runs(&mut Pair::logged_on(2))[0].clone(), [forged(1), vec![17, 0, 0, 0, 5], vec![0; 16]].concat()] {
        let mut pair = Pair::logged_on(1);
        pair.deliver(&other);
        assert_eq!((pair.submitted.clone(), pair.ended_with()), (vec![], Some(ByeReason::SealInvalid)));
    }
}

#[test]
fn a_whole_connection_that_is_sent_again_is_refused() {
    let mut pair = Pair::logged_on(1);
    pair.submit(5);
    let run = pair.take_output();
    pair.deliver(&run);
    assert_eq!(pair.submitted.len(), 5);
    // To the same venue, at once.
    let mut again = Pair::logged_on(1);
    (again.submitted, again.bye) = (Vec::new(), None);
    again.server = SessionServer::new(ServerSettings::default(), greeting(2), START);
    let len = 4 + usize::try_from(u32::from_le_bytes(*pair.sent.first_chunk().unwrap())).unwrap();
    again.deliver(&pair.sent[..len]);
    again.listen();
    let (reason, text) = again.bye.clone().unwrap();
    assert_eq!(reason.number(), 104, "SignatureInvalid");
    assert!(text.contains("walras-v1; LOGON; /v1/entry; ") && text.len() < 512, "{text}");
    again.deliver(&pair.sent[len..]);
    assert_eq!(again.submitted, [] as [u64; 0]);
    // All in one piece.
    let mut again = Pair::new(3);
    again.server = SessionServer::new(ServerSettings::default(), greeting(2), START);
    again.deliver(&pair.sent);
    assert_eq!((again.submitted.clone(), again.ended_with()), (vec![], Some(ByeReason::LogonExpected)));
}

#[test]
fn a_run_is_bounded() {
    let mut pair = Pair::logged_on(1);
    let (mut frame, mut bytes) = (Vec::new(), Vec::new());
    encode_client(&ClientMessage::Ping(1), &mut frame);
    while bytes.len() + frame.len() <= RUN_BYTES_MAX {
        bytes.extend_from_slice(&frame);
    }
    pair.deliver(&bytes);
    assert!(!pair.server.is_over());
    pair.deliver(&frame);
    assert_eq!(pair.ended_with(), Some(ByeReason::SealInvalid));
    // A client seals before its run is too long, even if its host writes nothing meanwhile.
    let mut pair = Pair::logged_on(1);
    for _ in 0..2 * RUN_BYTES_MAX / frame.len() {
        pair.client.on_timer(START + 5_000_000_000, &mut |_| ());
        let mut pong = Vec::new();
        encode_venue(&VenueMessage::Pong(1), &mut pong);
        pair.client.on_bytes(START, &pong, &mut |_| ());
    }
    pair.submit(1_024);
    let run = pair.take_output();
    assert!(kinds(&run).iter().filter(|kind| **kind == "Seal").count() >= run.len() / RUN_BYTES_MAX);
    pair.deliver(&run);
    assert_eq!((pair.submitted.len(), pair.ended_with()), (1_024, None));
}

#[test]
fn bytes_before_the_logon_is_answered_are_not_sealed_by_what_follows() {
    let settings = ClientSettings::new(vec!["a:1".to_owned()], 7);
    let mut client = SessionClient::new(settings, key(0), START).unwrap();
    client.on_connected(START, &entropy(1));
    let mut server = SessionServer::new(ServerSettings::default(), greeting(1), START);
    client.on_bytes(START, server.output(), &mut |_| ());
    let mut gateway = gate(1);
    let mut host = Notes { gateway: &mut gateway, throttled: false, asked: Vec::new() };
    server.on_bytes(START, client.output(), &mut host);
    let intruder = forged(1);
    // The begin of a frame, before the venue answers; its end comes afterwards.
    server.on_bytes(START, &intruder[..7], &mut host);
    let Some(Asked::Authenticate(logon)) = host.asked.pop() else { panic!("a logon") };
    let verdict = logon.authorize(host.gateway, START, source());
    server.authenticated(verdict, &mut host);
    host.asked.clear();
    server.opened(START, SessionStart { session: SessionId(4), next: SessionSeq(1), report_seq: 0, reports_from: 1 });
    server.on_bytes(START, &intruder[7..], &mut host);
    assert!(host.asked.is_empty() && server.unanswered_count() == 0);
}

#[test]
fn a_key_of_low_order_is_refused_by_both() {
    // With these every shared secret is zero, so that anybody knows the connection's key.
    for low in [[0; 32], std::array::from_fn(|at| u8::from(at == 0))] {
        let client = walras_gateway::session::ClientAgreement::new(&entropy(1));
        assert!(client.agree(low, &walras_gateway::session::LogonHash::of(b"x")).is_none());
        let mut welcome = greeting(1).welcome(Sealing::Required);
        welcome.venue_key = low;
        let mut client = SessionClient::new(ClientSettings::new(vec!["a:1".to_owned()], 7), key(0), START).unwrap();
        client.on_connected(START, &entropy(1));
        let mut bytes = Vec::new();
        encode_venue(&VenueMessage::Welcome(welcome), &mut bytes);
        client.on_bytes(START, &bytes, &mut |_| ());
        assert!(client.output().is_empty());
        assert_eq!(client.wish(START), walras_gateway::session::Wish::Close);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// An intruder adds a frame at any byte, changes bytes, or leaves some out: nothing of that run, or after it, is carried out.
    #[test]
    fn what_an_intruder_does_to_a_stream_is_never_carried_out(
        place in any::<prop::sample::Index>(), what in 0..4u8, seed: u64, sizes in proptest::collection::vec(1..20u64, 1..6),
    ) {
        let mut pair = Pair::logged_on(1);
        let (mut stream, mut ends, mut number) = (Vec::new(), vec![(0, 0)], 0);
        for size in sizes {
            pair.submit(size);
            number += size;
            stream.extend(pair.take_output());
            ends.push((stream.len(), number));
        }
        let (at, mut random) = (place.index(stream.len()), Random::new(seed));
        let mut spoiled = stream.clone();
        match what {
            0 => drop(spoiled.splice(at..at, forged(1 + random.below(number)))),
            1 => spoiled[at] ^= 1 << random.below(8),
            2 => drop(spoiled.drain(at..(at + 1 + random.below(60) as usize).min(stream.len()))),
            _ => drop(spoiled.splice(at..at, (0..1 + random.below(60)).map(|_| random.below(256) as u8).collect::<Vec<_>>())),
        }
        prop_assume!(spoiled != stream);
        let mut rest = &spoiled[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((1 + random.below(200) as usize).min(rest.len()));
            pair.deliver(now);
            rest = later;
        }
        // What was sealed before the place is carried out, as it was meant; nothing else.
        let same = spoiled.iter().zip(&stream).take_while(|(a, b)| a == b).count();
        let sealed = ends.iter().filter(|(end, _)| *end <= same).map(|(_, number)| *number).max().unwrap_or(0);
        prop_assert_eq!(&pair.submitted, &(1..=sealed).collect::<Vec<_>>());
    }

    /// Random bytes after a logon do nothing.
    #[test]
    fn random_bytes_do_nothing(bytes in proptest::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..400)) {
        let mut pair = Pair::logged_on(1);
        pair.deliver(&bytes);
        prop_assert!(pair.submitted.is_empty());
    }
}
