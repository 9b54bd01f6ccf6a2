//! The codecs of commands and events.

use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_wire::{DecodeError, decode_command, decode_event, encode_command, encode_event};

/// A command, or the place where the bytes stop being one.
pub fn command(bytes: &[u8]) {
    round_trip(bytes, decode_command, encode_command);
}

/// An event, or the place where the bytes stop being one.
pub fn event(bytes: &[u8]) {
    round_trip(bytes, decode_event, encode_event);
}

fn round_trip<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    match decode(bytes) {
        Ok(value) => {
            let mut again = Vec::new();
            encode(&value, &mut again);
            assert_eq!(again, bytes, "one value has one encoding: {value:?}");
            assert!(again.len() <= MESSAGE_BYTES_MAX, "{value:?} is longer than any message");
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "the first {end} bytes of {value:?} are a message too");
            }
        }
        Err(error) => assert!(error.at_byte <= bytes.len(), "{error} lies behind the end"),
    }
}
