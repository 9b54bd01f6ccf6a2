//! No bytes make a reader panic or run on; what was written is read back the same.

use std::io::BufReader;

use proptest::prelude::*;
use walras_market_history::itch::{ItchBody, ItchHeader, ItchMessage, ItchReader, ItchWriter, MESSAGE_LENGTHS};
use walras_market_history::lobster::{LobsterMessage, LobsterReader, LobsterType, LobsterWriter};
use walras_market_history::workload_file::{WorkloadCommand, WorkloadOp, WorkloadResult};
use walras_market_history::*;
use walras_types::Side;

/// Pieces of the lines of all text formats, so that random text gets deep into the readers.
fn text_piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 24] = [
        b"34200.004241176,1,16113575,18,5853300,1\n",
        b"34200.1,7,0,0,-1,-1\n",
        b"\n",
        b"\r\n",
        b",",
        b"-1",
        b"1e999",
        b"18446744073709551615",
        b"99999999999999999999",
        b"//SecurityIDSource=101 MsgType=192 MsgLen=64 SecurityID=600519 ChannelNo=6 ApplSeqNum=12 TradingPhase=0 ",
        b"OrderNo=370 Price=1800320 OrderQty=100000 OrdType=65 Side=66 TransactTime=9242431 resv= BizIndex=567 \r\n",
        b"MsgType=111 ",
        b"BidLevel[0].Price=",
        b"1430438404518 order_created ",
        b"{\"price\": \"236.47\", \"amount\": \"2.0\", \"datetime\": \"1430438404\", \"id\": 1, \"order_type\": 0}\n",
        b"1430438404518 trade {\"price\": 236.28999999999999, \"amount\": 9.9999999999999995e-07, \"id\": 1}\n",
        b"1430438404518 order_book {\"bids\": [[\"236.47\", \"1.78855669\"]], \"asks\": [",
        b"id,timestamp,exchange.timestamp,price,volume,action,direction\n",
        b"65595247,1430438404518,1430438404000,236.47,200000000,created,bid\n",
        b"[[[[[[[[[[[[[[[[",
        b"\"\\u0000\"",
        b" ",
        b".",
        b"\xff\xfe",
    ];
    prop_oneof![
        4 => prop::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// Frames of known types with their right length more often than not.
fn itch_piece() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(MESSAGE_LENGTHS.to_vec()), -1i32..=1, prop::collection::vec(any::<u8>(), 50), any::<bool>()).prop_map(
        |((message_type, length), off, mut body, is_bid)| {
            let length = if off == -1 { length - 1 } else { length };
            body[0] = message_type;
            body[19] = if is_bid { b'B' } else { b'S' };
            [&length.to_be_bytes()[..], &body[..usize::from(length).min(50)]].concat()
        },
    )
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(text_piece(), 0..12).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(itch_piece(), 0..12).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(0u8..6, 0..200),
    ]
}

/// Goes on behind errors, as a driver that counts and skips them would; every error says where and what to do.
fn read_to_the_end(format: Format, bytes: &[u8], buffer_bytes: usize) -> (u64, u64) {
    let mut history = History::new(BufReader::with_capacity(buffer_bytes, bytes), format);
    let (mut events, mut errors) = (0, 0);
    for event in history.by_ref() {
        match event {
            Ok(event) => {
                events += 1;
                assert!(event.index > 0);
            }
            Err(error) => {
                errors += 1;
                let text = error.to_string();
                assert!((text.contains("line ") || text.contains("byte ")) && text.contains("; "), "{text}");
            }
        }
        assert!(events + errors <= bytes.len() as u64, "more messages than bytes");
    }
    assert!(history.next().is_none());
    (events, errors)
}

fn side() -> impl Strategy<Value = Side> {
    prop::sample::select(Side::BOTH.to_vec())
}

fn itch_message() -> impl Strategy<Value = ItchMessage> {
    let ids = || any::<u64>();
    let header = (any::<u16>(), any::<u16>(), 0u64..1 << 48).prop_map(|(locate, tracking, time_ns)| ItchHeader {
        locate,
        tracking,
        time_ns,
    });
    let body = prop_oneof![
        any::<u8>().prop_map(|code| ItchBody::System { code }),
        (any::<[u8; 8]>(), any::<[u8; 11]>(), any::<u32>(), any::<u32>()).prop_map(|(symbol, b, round_lot_size, etp_leverage)| {
            ItchBody::Directory {
                symbol,
                market_category: b[0],
                financial_status: b[1],
                round_lot_size,
                round_lots_only: b[2],
                issue_classification: b[3],
                issue_subtype: [b[4], b[5]],
                authenticity: b[6],
                short_sale_threshold: b[7],
                ipo_flag: b[8],
                luld_tier: b[9],
                etp_flag: b[10],
                etp_leverage,
                inverse: b[0],
            }
        }),
        (any::<[u8; 8]>(), any::<u8>(), any::<u8>(), any::<[u8; 4]>())
            .prop_map(|(symbol, state, reserved, reason)| ItchBody::TradingAction { symbol, state, reserved, reason }),
        (ids(), side(), any::<u32>(), any::<[u8; 8]>(), any::<u32>(), any::<Option<[u8; 4]>>()).prop_map(
            |(order_ref, side, shares, symbol, price, attribution)| ItchBody::Add {
                order_ref,
                side,
                shares,
                symbol,
                price,
                attribution,
            }
        ),
        (ids(), any::<u32>(), ids()).prop_map(|(order_ref, shares, match_number)| ItchBody::Execute {
            order_ref,
            shares,
            match_number,
        }),
        (ids(), any::<u32>(), ids(), any::<bool>(), any::<u32>()).prop_map(
            |(order_ref, shares, match_number, printable, price)| ItchBody::ExecuteAtPrice {
                order_ref,
                shares,
                match_number,
                printable,
                price,
            }
        ),
        (ids(), any::<u32>()).prop_map(|(order_ref, shares)| ItchBody::Cancel { order_ref, shares }),
        ids().prop_map(|order_ref| ItchBody::Delete { order_ref }),
        (ids(), ids(), any::<u32>(), any::<u32>()).prop_map(|(old_ref, new_ref, shares, price)| ItchBody::Replace {
            old_ref,
            new_ref,
            shares,
            price,
        }),
        (ids(), side(), any::<u32>(), any::<[u8; 8]>(), any::<u32>(), ids()).prop_map(
            |(order_ref, side, shares, symbol, price, match_number)| ItchBody::Trade {
                order_ref,
                side,
                shares,
                symbol,
                price,
                match_number,
            }
        ),
        (ids(), any::<[u8; 8]>(), any::<u32>(), ids(), any::<u8>()).prop_map(
            |(shares, symbol, price, match_number, cross_type)| ItchBody::Cross { shares, symbol, price, match_number, cross_type }
        ),
    ];
    (header, body).prop_map(|(header, body)| ItchMessage { header, body })
}

fn lobster_message() -> impl Strategy<Value = LobsterMessage> {
    use LobsterType::{Add, Cross, Delete, Execute, ExecuteHidden, Halt, Reduce};
    let types = prop::sample::select(vec![Add, Reduce, Delete, Execute, ExecuteHidden, Cross, Halt]);
    (types, 0..=18_446_744_073u64 * 1_000_000_000, 0..=i64::MAX, any::<u64>(), any::<i64>(), side()).prop_map(
        |(message_type, time_ns, order_id, size, price, side)| {
            let price = if message_type == Halt { price.rem_euclid(3) - 1 } else { price };
            LobsterMessage { time_ns, message_type, order_id, size, price, side }
        },
    )
}

fn workload_command() -> impl Strategy<Value = WorkloadCommand> {
    let positive = || prop_oneof![1i64..10, 1..=i64::MAX];
    let op = prop_oneof![
        (side(), positive(), positive()).prop_map(|(side, price_ticks, size_lots)| WorkloadOp::Limit {
            side,
            price_ticks,
            size_lots
        }),
        (side(), positive(), positive()).prop_map(|(side, price_ticks, size_lots)| WorkloadOp::Immediate {
            side,
            price_ticks,
            size_lots
        }),
        Just(WorkloadOp::Cancel),
        positive().prop_map(|price_ticks| WorkloadOp::Move { price_ticks }),
        positive().prop_map(|size_lots| WorkloadOp::Reduce { size_lots }),
    ];
    (any::<u32>(), positive(), op).prop_map(|(user, order_id, op)| WorkloadCommand { user, order_id: order_id.unsigned_abs(), op })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in bytes(), buffer_bytes in 1usize..100) {
        for format in Format::ALL {
            let whole = read_to_the_end(format, &bytes, 1 << 16);
            // How the bytes arrive does not matter.
            prop_assert_eq!(read_to_the_end(format, &bytes, buffer_bytes), whole);
            let _ = parse_all(format, &bytes);
        }
        let _ = detect_bytes(&bytes);
        let _ = WorkloadResult::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn itch_round_trips(messages in prop::collection::vec(itch_message(), 0..20)) {
        let mut writer = ItchWriter::new(Vec::new());
        for message in &messages {
            writer.write(message).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let read: Vec<_> = ItchReader::new(&bytes[..]).map(Result::unwrap).collect();
        prop_assert_eq!(read, messages);
    }

    #[test]
    fn lobster_round_trips(messages in prop::collection::vec(lobster_message(), 0..20)) {
        let mut writer = LobsterWriter::new(Vec::new());
        for message in &messages {
            writer.write(message).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let read: Vec<_> = LobsterReader::new(&bytes[..]).map(Result::unwrap).collect();
        prop_assert_eq!(&read, &messages);
        for message in &messages {
            let event = message.event(1);
            // What survives the vocabulary: everything but the order id of messages that name no order, and what a halt ignores.
            prop_assert_eq!(LobsterMessage::from_event(&event).unwrap().event(1), event);
        }
    }

    #[test]
    fn workload_commands_round_trip(command in workload_command()) {
        prop_assert_eq!(WorkloadCommand::decode(&command.encode()), Ok(command));
    }
}
