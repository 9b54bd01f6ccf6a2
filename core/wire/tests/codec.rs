//! Sessions' commands and events as bytes: one encoding each, as written down here by hand, and no others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_types::{AccountId, LogIndex, SessionId};
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
        (owner(), number()).prop_map(|(account, token)| Command::OpenSession(OpenSession { account, token })),
        number().prop_map(|session| Command::CloseSession(CloseSession { session: SessionId(session) })),
        (number(), any::<[u8; 32]>())
            .prop_map(|(at, state_hash)| Command::Checkpoint(Checkpoint { log_index: LogIndex(at), state_hash })),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (number(), owner(), number()).prop_map(|(session, account, token)| Event::SessionOpened(SessionOpened {
            session: SessionId(session),
            account,
            token
        })),
        (number(), owner())
            .prop_map(|(session, account)| Event::SessionClosed(SessionClosed { session: SessionId(session), account })),
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
    fn any_bytes_are_read_or_refused(tag in prop_oneof![6..9_u8, 24..26_u8], rest in prop::collection::vec(any::<u8>(), 0..60)) {
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
    assert_eq!(command_bytes(&Command::OpenSession(OpenSession { account, token })), [&[6], &owner[..], &nine].concat());
    assert_eq!(command_bytes(&Command::OpenSession(OpenSession { account: None, token })), [&[6, 0], &nine[..]].concat());
    assert_eq!(command_bytes(&Command::CloseSession(CloseSession { session })), [&[7], &number[..]].concat());
    let state_hash = std::array::from_fn(|at| at as u8);
    let checkpoint = Command::Checkpoint(Checkpoint { log_index: LogIndex(9), state_hash });
    assert_eq!(command_bytes(&checkpoint), [&[8], &nine[..], &state_hash].concat());
    let opened = Event::SessionOpened(SessionOpened { session, account, token });
    assert_eq!(event_bytes(&opened), [&[24], &number[..], &owner, &nine].concat());
    assert_eq!(event_bytes(&Event::SessionClosed(SessionClosed { session, account: None })), [&[25], &number[..], &[0]].concat());
}
