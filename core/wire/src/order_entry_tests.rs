use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use walras_types::BatchMarketId;

use super::*;

fn logon_terms() -> impl Strategy<Value = LogonTerms> {
    let reports = prop_oneof![Just(ReportsWanted::None), Just(ReportsWanted::New), any::<u64>().prop_map(ReportsWanted::After)];
    let copies = select(&[Copies::One, Copies::Several]);
    (any::<bool>(), any::<bool>(), any::<u64>(), reports, copies, any::<u64>()).prop_map(
        |(cancel, operator, token, reports, copies, logon_seq)| LogonTerms {
            on_disconnect: if cancel { OnDisconnect::Cancel } else { OnDisconnect::Keep },
            role: if operator { Role::Operator } else { Role::Account },
            token,
            reports,
            copies,
            logon_seq,
        },
    )
}

fn reasons() -> impl Strategy<Value = RejectReason> {
    select(RejectReason::ALL)
}

fn byes() -> impl Strategy<Value = ByeReason> {
    prop_oneof![select(ByeReason::ALL), reasons().prop_map(ByeReason::Rejected)]
}

/// Checks that a frame is read as what was written, and that its bytes are its only encoding.
fn check<T: PartialEq + std::fmt::Debug>(bytes: &[u8], message: &T, read: Option<T>, again: impl Fn(&T) -> Vec<u8>) {
    let read = read.expect("what was written is read");
    assert_eq!(&read, message);
    assert_eq!(again(&read), bytes);
}

fn check_client(message: &ClientMessage<'_>) {
    let again = |m: &ClientMessage<'_>| {
        let mut bytes = Vec::new();
        encode_client(m, &mut bytes);
        bytes
    };
    let bytes = again(message);
    let split = |bytes| split_frame_of(bytes, FrameSizes::Transactions);
    let (frame, rest) = split(&bytes).unwrap().unwrap();
    assert!(rest.is_empty() && split(&bytes[..bytes.len() - 1]).unwrap().is_none());
    check(&bytes, message, decode_client(frame).ok(), again);
}

fn check_venue(message: &VenueMessage<'_>) {
    let again = |m: &VenueMessage<'_>| {
        let mut bytes = Vec::new();
        encode_venue(m, &mut bytes);
        bytes
    };
    let bytes = again(message);
    let (frame, rest) = split_frame(&bytes).unwrap().unwrap();
    assert!(rest.is_empty());
    check(&bytes, message, decode_venue(frame).ok(), again);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_client_says_is_read_as_written(
        terms in logon_terms(), key_id in "[ -~]{0,40}", client_key: [u8; 32], seal: [u8; 16], signature in "[a-z]{0,90}",
        seq in 1u64.., command in vec(any::<u8>(), 1..=256), number: u64,
    ) {
        check_client(&ClientMessage::Logon(Logon { terms, client_key, key_id: &key_id, signature: &signature }));
        check_client(&ClientMessage::Submit { session_seq: SessionSeq(seq), command: &command });
        check_client(&ClientMessage::Ping(number));
        check_client(&ClientMessage::Logout);
        check_client(&ClientMessage::Seal(seal));
        let mut items = Vec::new();
        let count = 1 + number as usize % TRANSACTIONS_PER_FRAME_MAX;
        for signed in command.chunks(SIGNED_TRANSACTION_BYTES_MAX).cycle().take(count) {
            assert!(push_signed_bytes(signed, &mut items));
        }
        let transactions = SignedTransactions::new(number, BatchMarketId(3), &items).unwrap();
        prop_assert_eq!(transactions.count(), count);
        prop_assert!(transactions.iter().eq(command.chunks(SIGNED_TRANSACTION_BYTES_MAX).cycle().take(count)));
        check_client(&ClientMessage::Transactions(transactions));
    }

    #[test]
    fn what_the_venue_says_is_read_as_written(
        seq in 1u64.., a: u64, b: u64, window: u32, rejected in proptest::option::of(reasons()), reason in reasons(),
        wait in proptest::option::of(any::<u64>()), challenge: [u8; 32], venue_key: [u8; 32], is_sealed: bool, bye in byes(), text in "\\PC{0,80}", event in vec(any::<u8>(), 1..=256),
    ) {
        let (session_seq, log_index, time) = (SessionSeq(seq), LogIndex(a), TimeNs(b));
        let sealing = if is_sealed { Sealing::Required } else { Sealing::Off };
        check_venue(&VenueMessage::Welcome(Welcome { versions: (3, 3), challenge, venue_key, sealing }));
        let session = SessionId(b);
        let on = LoggedOn { session, next: session_seq, report_seq: a, reports_from: b, window, idle_timeout_ns: a ^ b };
        check_venue(&VenueMessage::LoggedOn(on));
        check_venue(&VenueMessage::Answer(Answer { session_seq, log_index, time: wait.map(TimeNs), rejected }));
        check_venue(&VenueMessage::Report(Report { report_seq: seq, log_index, time, event: &event }));
        check_venue(&VenueMessage::NotLeader { leader: cut(&text, 255) });
        check_venue(&VenueMessage::Refused(Refused { session_seq, reason, retry_after_ns: wait }));
        check_venue(&VenueMessage::Late(Late { session_seq, late_ns: a }));
        check_venue(&VenueMessage::Pong(a));
        check_venue(&VenueMessage::Bye { reason: bye, text: &text });
        let mut results = Vec::new();
        let each = [rejected, Some(reason), None];
        let count = 1 + a as usize % TRANSACTIONS_PER_FRAME_MAX;
        each.iter().cycle().take(count).for_each(|result| push_result(*result, &mut results));
        let told = TransactionResults::new(a, wait.map(|first| (first, b)), wait, &results).unwrap();
        prop_assert!(told.count() == count && told.iter().eq(each.into_iter().cycle().take(count)));
        check_venue(&VenueMessage::Transactions(told));
    }

    #[test]
    fn bytes_that_are_read_are_written_the_same_and_the_others_say_where(kind in select(&[1u8, 2, 3, 4, 5, 6, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 9]), body in vec(prop_oneof![0u8..4, any::<u8>()], 0..120)) {
        let frame: Vec<u8> = std::iter::once(kind).chain(body).collect();
        let mut again = Vec::new();
        match decode_client(&frame) {
            Ok(message) => {
                encode_client(&message, &mut again);
                prop_assert_eq!(&again[4..], &frame[..]);
            }
            Err(error) => prop_assert!(error.at_byte <= frame.len()),
        }
        again.clear();
        match decode_venue(&frame) {
            Ok(message) => {
                encode_venue(&message, &mut again);
                prop_assert_eq!(&again[4..], &frame[..]);
            }
            Err(error) => prop_assert!(error.at_byte <= frame.len()),
        }
    }
}

#[test]
fn texts_are_cut_where_a_character_ends_and_addresses_are_left_out() {
    let long = "é".repeat(400);
    let mut bytes = Vec::new();
    encode_venue(&VenueMessage::Bye { reason: ByeReason::Idle, text: &long }, &mut bytes);
    let (frame, _) = split_frame(&bytes).unwrap().unwrap();
    assert_eq!(decode_venue(frame), Ok(VenueMessage::Bye { reason: ByeReason::Idle, text: &long[..512] }));
    bytes.clear();
    encode_venue(&VenueMessage::NotLeader { leader: &long }, &mut bytes);
    assert_eq!(decode_venue(split_frame(&bytes).unwrap().unwrap().0), Ok(VenueMessage::NotLeader { leader: "" }));
}

#[test]
fn lengths_out_of_bounds_and_other_versions_are_refused_with_what_was_expected() {
    for len in [0u32, 1_025, u32::MAX] {
        assert!(split_frame(&len.to_le_bytes()).is_err(), "{len}");
    }
    let mut bytes = Vec::new();
    let (role, copies) = (Role::Account, Copies::One);
    let terms = LogonTerms { on_disconnect: OnDisconnect::Keep, role, token: 1, reports: ReportsWanted::New, copies, logon_seq: 1 };
    encode_client(&ClientMessage::Logon(Logon { terms, client_key: [1; 32], key_id: "k", signature: "s" }), &mut bytes);
    for version in [1, 2, 4] {
        bytes[5] = version;
        let error = decode_client(&bytes[4..]).unwrap_err();
        assert_eq!((error.at_byte, error.expected), (1, VERSION_EXPECTED));
    }
}

#[test]
fn reasons_to_end_a_connection_have_numbers_of_their_own() {
    for pair in ByeReason::ALL.windows(2) {
        assert!(pair[0].number() < pair[1].number());
    }
    for &reason in ByeReason::ALL {
        assert!(reason.number() >= 1_000 && ByeReason::from_number(reason.number()) == Some(reason));
    }
    assert!(RejectReason::ALL.iter().all(|reason| reason.number() < 1_000));
}

#[test]
fn a_report_never_names_the_other_party() {
    use walras_types::AccountId;

    use crate::event::{TradeParty, Traded};
    let party = TradeParty {
        account: AccountId(1),
        client_order_id: ClientOrderId(2),
        order_id: OrderId(3),
        open: SizeLots::new(4),
        fee: 5,
    };
    let traded = Traded {
        instrument: InstrumentId(0),
        trade_id: TradeId(1),
        price: PriceTicks::saturating(7),
        size: SizeLots::new(1),
        taker_side: Side::Buy,
        maker: party,
        taker: party,
    };
    let mut bytes = Vec::new();
    encode_event(&Event::Order(OrderEvent::Traded(traded)), &mut bytes);
    assert!(decode_report_event(&bytes).is_err());
}

#[test]
fn a_frame_of_transactions_has_the_shape_that_it_announces() {
    let mut items = Vec::new();
    assert!(!push_signed_bytes(&[], &mut items) && !push_signed_bytes(&[0; SIGNED_TRANSACTION_BYTES_MAX + 1], &mut items));
    assert!(SignedTransactions::new(1, BatchMarketId(0), &items).is_err(), "none");
    for _ in 0..TRANSACTIONS_PER_FRAME_MAX {
        assert!(push_signed_bytes(&[7; SIGNED_TRANSACTION_BYTES_MAX], &mut items));
    }
    let full = SignedTransactions::new(1, BatchMarketId(0), &items).unwrap();
    let mut bytes = Vec::new();
    encode_client(&ClientMessage::Transactions(full), &mut bytes);
    assert_eq!(bytes.len(), FRAME_HEADER_BYTES + TRANSACTIONS_FRAME_LEN_MAX);
    assert!(split_frame(&bytes).is_err(), "too long for any other frame");
    assert!(push_signed_bytes(&[7], &mut items));
    assert!(SignedTransactions::new(1, BatchMarketId(0), &items).is_err(), "one too many");

    let frame = &bytes[FRAME_HEADER_BYTES..];
    for cut in [0, 1, 12, 13, 14, 130, frame.len() - 1] {
        assert!(decode_client(&frame[..cut]).is_err(), "cut at {cut}");
    }
    for (at, wrong) in [(11, 1), (11, 255), (12, 0), (12, 2), (13, 0), (13, 118), (13, 255), (131, 1)] {
        let mut other = frame.to_vec();
        other[at] = wrong;
        assert!(decode_client(&other).is_err(), "byte {at} is {wrong}");
    }
    assert!(decode_client(&[frame, &[0]].concat()).is_err(), "one byte more");
}
