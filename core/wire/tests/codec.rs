//! Commands and events of sessions, of shards and of account fees as bytes: one encoding each, as written down here by hand, and no others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_types::{
    AccountFee, AccountId, Amendment, Amount, AssetId, BatchMarketId, ClientOrderId, ClientOrderName, ClientTransferId,
    ContentDigest, EngineVersion, InstrumentId, LogIndex, RejectReason, SessionId, ShardId, SizeLots, TransferSeq,
};
use walras_wire::*;

fn command_bytes(command: &Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(command, &mut bytes);
    bytes
}

fn event_bytes(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_event(event, &mut bytes);
    bytes
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, Just(u64::MAX), any::<u64>()]
}

fn owner() -> impl Strategy<Value = Option<AccountId>> {
    prop::option::of(any::<u32>().prop_map(AccountId))
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (owner(), number()).prop_map(|(account, token)| Command::Session(SessionCommand::Open(OpenSession { account, token }))),
        number().prop_map(|session| Command::Session(SessionCommand::Close(CloseSession { session: SessionId(session) }))),
        (number(), 0usize..4).prop_map(|(replica, action)| Command::Venue(VenueCommand::NoteClusterRequest(ClusterRequestNote {
            action: [ClusterAction::TransferLeadership, ClusterAction::AddVoter, ClusterAction::AddLearner, ClusterAction::Remove]
                [action],
            replica,
        }))),
        any::<u16>().prop_map(|version| Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(version)))),
        (number(), any::<[u8; 32]>()).prop_map(|(at, state_hash)| Command::Venue(VenueCommand::Checkpoint(Checkpoint {
            log_index: LogIndex(at),
            state_hash
        }))),
        shard_command().prop_map(Command::Shard),
        (owner(), any::<bool>(), prop::sample::select(RejectReason::ALL), number(), prop::option::of("[a-z-]{1,36}")).prop_map(
            |(account, is_named, reason, content, text)| {
                let (instrument, client_order_id) = is_named.then_some((InstrumentId(3), ClientOrderId(content))).unzip();
                let (content, name) = (ContentDigest(content), text.and_then(|text| ClientOrderName::new(&text)));
                Command::Invalid(InvalidCommand { account, instrument, client_order_id, reason, content, name })
            }
        ),
        ("[0-9a-z-]{1,36}", number(), prop::option::of(number())).prop_map(|(text, id, size)| {
            let amendment =
                Amendment { client_order_id: ClientOrderId(id), price: None, trigger: None, size: size.map(SizeLots::new) };
            let amend = AmendOrder { account: AccountId(1), instrument: InstrumentId(3), amendment };
            let name = ClientOrderName::of_replacement(text.as_bytes()).unwrap();
            Command::Order(OrderCommand::AmendNamed(NamedAmend { amend, name }))
        }),
        (any::<u16>(), fee()).prop_map(|(market, fee)| Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee {
            market: BatchMarketId(market),
            fee
        }))),
    ]
}

fn fee() -> impl Strategy<Value = Option<AccountFee>> {
    let fee = (any::<u32>(), 0..1_u64 << 63);
    prop::option::of(fee.prop_map(|(asset, units)| AccountFee { asset: AssetId(asset), amount: Amount::new(units).unwrap() }))
}

fn transfer_out() -> impl Strategy<Value = TransferOut> {
    (any::<u32>(), any::<u32>(), 0..1_u64 << 63, any::<u8>(), number()).prop_map(|(account, asset, amount, to, name)| TransferOut {
        account: AccountId(account),
        asset: AssetId(asset),
        amount: Amount::new(amount).unwrap(),
        to_shard: ShardId(to),
        client_transfer_id: ClientTransferId(name),
    })
}

fn transfer_in() -> impl Strategy<Value = TransferIn> {
    (any::<u8>(), number(), transfer_out()).prop_map(|(from, seq, TransferOut { account, asset, amount, to_shard, .. })| {
        TransferIn { from_shard: ShardId(from), to_shard, transfer_seq: TransferSeq(seq), account, asset, amount }
    })
}

fn place() -> impl Strategy<Value = ShardPlace> {
    any::<(u8, u8)>().prop_map(|(own, count)| ShardPlace { own: ShardId(own), count })
}

fn instrument_shard() -> impl Strategy<Value = InstrumentShard> {
    any::<(u32, u8)>().prop_map(|(id, shard)| InstrumentShard { instrument: InstrumentId(id), shard: ShardId(shard) })
}

fn transfer_place() -> impl Strategy<Value = TransferPlace> {
    (any::<u8>(), number()).prop_map(|(shard, seq)| TransferPlace { shard: ShardId(shard), transfer_seq: TransferSeq(seq) })
}

fn taken() -> impl Strategy<Value = TransfersTaken> {
    (any::<u8>(), number(), number()).prop_map(|(by, first, last)| TransfersTaken {
        by_shard: ShardId(by),
        first: TransferSeq(first),
        last: TransferSeq(last),
    })
}

fn transfer_numbers() -> impl Strategy<Value = TransferNumbers> {
    (number(), number(), number()).prop_map(|(oldest, out, inward)| TransferNumbers {
        oldest_out: TransferSeq(oldest),
        next_out: TransferSeq(out),
        next_in: TransferSeq(inward),
    })
}

fn compare_transfers() -> impl Strategy<Value = CompareTransfers> {
    let numbers = (any::<u8>(), transfer_numbers(), transfer_numbers());
    numbers.prop_map(|(shard, before, reported)| CompareTransfers { shard: ShardId(shard), before, reported })
}

fn set_back() -> impl Strategy<Value = SetBack> {
    (0..4_u8, number(), number()).prop_map(|(kind, next, known)| {
        let (next, known) = (TransferSeq(next), TransferSeq(known));
        match kind {
            0 => SetBack::OwnTaken { next, known },
            1 => SetBack::OwnSent { next, known },
            2 => SetBack::OtherTaken { next, known },
            _ => SetBack::OtherSent { next, known },
        }
    })
}

fn shard_command() -> impl Strategy<Value = ShardCommand> {
    prop_oneof![
        place().prop_map(ShardCommand::Configure),
        instrument_shard().prop_map(ShardCommand::AssignInstrument),
        transfer_out().prop_map(ShardCommand::TransferOut),
        transfer_in().prop_map(ShardCommand::TransferIn),
        taken().prop_map(ShardCommand::ConfirmTransfers),
        transfer_place().prop_map(ShardCommand::ReturnTransfer),
        Just(ShardCommand::DoubtTransfers),
        compare_transfers().prop_map(ShardCommand::CompareTransfers),
    ]
}

fn shard_event() -> impl Strategy<Value = ShardEvent> {
    let sent = (transfer_out(), number());
    let returned = (transfer_place(), transfer_out());
    prop_oneof![
        place().prop_map(ShardEvent::Configured),
        instrument_shard().prop_map(ShardEvent::InstrumentAssigned),
        sent.prop_map(|(transfer, seq)| ShardEvent::TransferSent(TransferSent { transfer, transfer_seq: TransferSeq(seq) })),
        transfer_in().prop_map(ShardEvent::TransferReceived),
        transfer_in().prop_map(|transfer| {
            ShardEvent::TransferRefused(TransferRefused { transfer, reason: RejectReason::SupplyOverflow })
        }),
        taken().prop_map(ShardEvent::TransfersConfirmed),
        returned.prop_map(|(place, TransferOut { account, asset, amount, .. })| {
            ShardEvent::TransferReturned(TransferReturned { place, account, asset, amount })
        }),
        Just(ShardEvent::TransfersDoubted),
        (any::<u8>(), prop::option::of(set_back()))
            .prop_map(|(shard, set_back)| { ShardEvent::TransfersCompared(TransfersCompared { shard: ShardId(shard), set_back }) }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (number(), owner(), number()).prop_map(|(session, account, token)| Event::Session(SessionEvent::Opened(SessionOpened {
            session: SessionId(session),
            account,
            token
        }))),
        (number(), owner()).prop_map(|(session, account)| Event::Session(SessionEvent::Closed(SessionClosed {
            session: SessionId(session),
            account
        }))),
        shard_event().prop_map(Event::Shard),
        (any::<u16>(), number(), fee()).prop_map(|(market, from_block, fee)| {
            Event::BatchMarket(BatchMarketEvent::AccountFeeChanged(AccountFeeChanged {
                market: BatchMarketId(market),
                from_block,
                fee,
            }))
        }),
        (any::<u16>(), any::<u32>(), any::<u32>(), 0..1_u64 << 63).prop_map(|(market, account, asset, units)| {
            let (market, amount) = (BatchMarketId(market), Amount::new(units).unwrap());
            Event::Batch(BatchEvent::AccountFeePaid(AccountFeePaid {
                market,
                account: AccountId(account),
                asset: AssetId(asset),
                amount,
            }))
        }),
    ]
}

/// One encoding a value; no part of it, nothing after it, and no other bytes mean the same.
fn is_the_one<T: PartialEq + std::fmt::Debug>(
    value: &T,
    bytes: &[u8],
    at: usize,
    flip: u8,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    assert_eq!(decode(bytes).as_ref(), Ok(value));
    assert!(bytes.len() <= MESSAGE_BYTES_MAX);
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).unwrap_err().at_byte <= end);
    }
    assert_eq!(decode(&[bytes, &[0]].concat()).unwrap_err().at_byte, bytes.len());
    let mut other = bytes.to_vec();
    let at = at % bytes.len();
    other[at] ^= flip;
    match decode(&other) {
        Ok(changed) => assert!(changed != *value && encode(&changed) == other, "{changed:?}"),
        Err(error) => assert!(error.at_byte <= other.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_command_has_one_encoding(command in command(), at in any::<usize>(), flip in 1..=u8::MAX) {
        is_the_one(&command, &command_bytes(&command), at, flip, command_bytes, decode_command);
    }

    #[test]
    fn an_event_has_one_encoding(event in event(), at in any::<usize>(), flip in 1..=u8::MAX) {
        is_the_one(&event, &event_bytes(&event), at, flip, event_bytes, decode_event);
    }

    /// Any bytes behind a tag of theirs.
    #[test]
    fn any_bytes_are_read_or_refused(tag in prop_oneof![6..9_u8, Just(11), 24..26_u8, Just(38), 49..52_u8], rest in prop::collection::vec(any::<u8>(), 0..60)) {
        let bytes = [&[tag], &rest[..]].concat();
        if let Ok(command) = decode_command(&bytes) {
            prop_assert_eq!(command_bytes(&command), bytes.clone());
        }
        if let Ok(event) = decode_event(&bytes) {
            prop_assert_eq!(event_bytes(&event), bytes);
        }
    }
}

#[test]
fn the_bytes_are_as_they_ever_were() {
    let account = Some(AccountId(0x0403_0201));
    let (session, token) = (SessionId(0x0807_0605_0403_0201), 9);
    let number = [1, 2, 3, 4, 5, 6, 7, 8];
    let nine = [9, 0, 0, 0, 0, 0, 0, 0];
    let owner = [1, 1, 2, 3, 4];
    assert_eq!(
        command_bytes(&Command::Session(SessionCommand::Open(OpenSession { account, token }))),
        [&[6], &owner[..], &nine].concat()
    );
    assert_eq!(
        command_bytes(&Command::Session(SessionCommand::Open(OpenSession { account: None, token }))),
        [&[6, 0], &nine[..]].concat()
    );
    assert_eq!(command_bytes(&Command::Session(SessionCommand::Close(CloseSession { session }))), [&[7], &number[..]].concat());
    let state_hash = std::array::from_fn(|at| at as u8);
    let checkpoint = Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(9), state_hash }));
    assert_eq!(command_bytes(&checkpoint), [&[8], &nine[..], &state_hash].concat());
    let opened = Event::Session(SessionEvent::Opened(SessionOpened { session, account, token }));
    assert_eq!(event_bytes(&opened), [&[24], &number[..], &owner, &nine].concat());
    assert_eq!(
        event_bytes(&Event::Session(SessionEvent::Closed(SessionClosed { session, account: None }))),
        [&[25], &number[..], &[0]].concat()
    );
}

/// A text goes with a tag of its own, which programs before version 14 of the engine do not know.
#[test]
fn the_bytes_of_an_invalid_command_are_as_they_ever_were_without_a_text() {
    let (account, instrument, client_order_id) = (Some(AccountId(0x0403_0201)), Some(InstrumentId(7)), Some(ClientOrderId(9)));
    let nine = [9_u8, 0, 0, 0, 0, 0, 0, 0];
    let (reason, content) = (RejectReason::Malformed, ContentDigest(9));
    let unnamed = InvalidCommand { account, instrument, client_order_id, reason, content, name: None };
    let rest = [&[1_u8, 1, 2, 3, 4, 1, 7, 0, 0, 0, 1][..], &nine, &reason.number().to_le_bytes(), &nine].concat();
    assert_eq!(command_bytes(&Command::Invalid(unnamed)), [&[12], &rest[..]].concat());
    let named = InvalidCommand { name: ClientOrderName::new("abc-1"), ..unnamed };
    let bytes = [&[41], &rest[..], &[5], b"abc-1"].concat();
    assert_eq!(command_bytes(&Command::Invalid(named)), bytes);
    assert_eq!(decode_command(&bytes), Ok(Command::Invalid(named)));
    let since = [unnamed, named].map(|invalid| Command::Invalid(invalid).since());
    assert_eq!(since, [EngineVersion(0), EngineVersion(14)]);
}

/// The text that an amendment gives is behind the rest, which is as without it. Unlike an order that enters it may have digits alone.
#[test]
fn an_amendment_with_a_text_has_it_behind_the_rest() {
    let amendment = Amendment { client_order_id: ClientOrderId(9), price: None, trigger: None, size: Some(SizeLots::new(9)) };
    let amend = AmendOrder { account: AccountId(0x0403_0201), instrument: InstrumentId(7), amendment };
    let rest = command_bytes(&Command::Order(OrderCommand::Amend(amend))).split_off(1);
    for text in ["abc-2", "00770"] {
        let name = ClientOrderName::of_replacement(text.as_bytes()).unwrap();
        let command = Command::Order(OrderCommand::AmendNamed(NamedAmend { amend, name }));
        let bytes = [&[42], &rest[..], &[5], text.as_bytes()].concat();
        assert_eq!(command_bytes(&command), bytes);
        assert_eq!(decode_command(&bytes), Ok(command));
        assert_eq!((command.since(), command.name()), (EngineVersion(14), None));
    }
    // Whatever is wrong with the text, the rejection says which order was meant.
    let too_long = [37_u8; 38];
    for text in [&[0_u8][..], &[1], &[1, b' '], &[37], &too_long[..], &[1, b'x', 0]] {
        let bytes = [&[42], &rest[..], text].concat();
        assert!(decode_command(&bytes).is_err(), "{text:?}");
        let Command::Invalid(invalid) = decode_submitted(&bytes, Some(amend.account)) else { panic!("{text:?}") };
        assert_eq!((invalid.instrument, invalid.client_order_id), (Some(InstrumentId(7)), Some(ClientOrderId(9))), "{text:?}");
    }
}

#[test]
fn the_bytes_of_transfers_are_as_they_ever_were() {
    let (account, asset, amount) = (AccountId(0x0403_0201), AssetId(7), Amount::new(9).unwrap());
    let (whose, nine) = ([1, 2, 3, 4, 7, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0, 0]);
    let out = TransferOut { account, asset, amount, to_shard: ShardId(5), client_transfer_id: ClientTransferId(9) };
    let bytes = [&[11, 3], &whose[..], &nine, &[5], &nine].concat();
    assert_eq!(command_bytes(&Command::Shard(ShardCommand::TransferOut(out))), bytes);
    let (from_shard, to_shard, transfer_seq) = (ShardId(2), ShardId(5), TransferSeq(9));
    let inward = TransferIn { from_shard, to_shard, transfer_seq, account, asset, amount };
    let bytes = [&[11, 4, 2, 5], &nine[..], &whose, &nine].concat();
    assert_eq!(command_bytes(&Command::Shard(ShardCommand::TransferIn(inward))), bytes);
    let sent = ShardEvent::TransferSent(TransferSent { transfer: out, transfer_seq });
    assert_eq!(event_bytes(&Event::Shard(sent)), [&[49, 3], &whose[..], &nine, &[5], &nine, &nine].concat());
}

#[test]
fn the_bytes_of_account_fees_are_as_they_ever_were() {
    let (market, asset, amount) = (BatchMarketId(0x0201), AssetId(7), Amount::new(9).unwrap());
    let (nine, of_asset) = ([9, 0, 0, 0, 0, 0, 0, 0], [7, 0, 0, 0]);
    let fee = Some(AccountFee { asset, amount });
    assert_eq!(
        command_bytes(&Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee: None }))),
        [38, 1, 2, 0]
    );
    let bytes = [&[38, 1, 2, 1], &of_asset[..], &nine].concat();
    assert_eq!(command_bytes(&Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee }))), bytes);
    let currencies = 0x0403;
    let set = Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market, currencies }));
    assert_eq!(command_bytes(&set), [40, 1, 2, 3, 4]);
    let set = Event::BatchMarket(BatchMarketEvent::CurrenciesSet(BatchCurrenciesSet { market, currencies }));
    assert_eq!(event_bytes(&set), [57, 1, 2, 3, 4]);
    let changed = Event::BatchMarket(BatchMarketEvent::AccountFeeChanged(AccountFeeChanged { market, from_block: 9, fee }));
    assert_eq!(event_bytes(&changed), [&[50, 1, 2], &nine[..], &[1], &of_asset, &nine].concat());
    let paid = Event::Batch(BatchEvent::AccountFeePaid(AccountFeePaid { market, account: AccountId(0x0403_0201), asset, amount }));
    assert_eq!(event_bytes(&paid), [&[51, 1, 2, 1, 2, 3, 4], &of_asset[..], &nine].concat());
}
