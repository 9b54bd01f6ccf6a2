//! The codecs of commands, events, and of a batch's transactions and blocks.

use walras_types::limits::MESSAGE_BYTES_MAX;
use walras_wire::batch::{
    BLOCK_PROPOSAL_BYTES_MAX, SIGNATURE_BYTES, decode_block_proposal, decode_signed_transaction, decode_transaction,
    encode_block_proposal, encode_signed_transaction, encode_transaction,
};
use walras_wire::{DecodeError, decode_command, decode_event, encode_command, encode_event};

/// A command, or the place where the bytes stop being one.
pub fn command(bytes: &[u8]) {
    round_trip(bytes, MESSAGE_BYTES_MAX, decode_command, encode_command);
}

/// An event, or the place where the bytes stop being one.
pub fn event(bytes: &[u8]) {
    round_trip(bytes, MESSAGE_BYTES_MAX, decode_event, encode_event);
}

/// A transaction of a batch market, signed or not, or the place where the bytes stop being one.
pub fn batch_transaction(bytes: &[u8]) {
    round_trip(bytes, MESSAGE_BYTES_MAX, decode_transaction, encode_transaction);
    round_trip(bytes, MESSAGE_BYTES_MAX, decode_signed_transaction, encode_signed_transaction);
    // With a signature behind it, the same transaction.
    let signed = decode_signed_transaction(&[bytes, &[7; SIGNATURE_BYTES]].concat());
    assert_eq!(signed.map(|signed| signed.transaction).ok(), decode_transaction(bytes).ok());
}

/// A block of a batch market, or the place where the bytes stop being one.
pub fn block_proposal(bytes: &[u8]) {
    round_trip(bytes, BLOCK_PROPOSAL_BYTES_MAX, decode_block_proposal, |proposal, buffer| {
        encode_block_proposal(proposal, buffer).expect("what was read can be written");
    });
}

fn round_trip<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    bytes_max: usize,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    match decode(bytes) {
        Ok(value) => {
            let mut again = Vec::new();
            encode(&value, &mut again);
            assert_eq!(again, bytes, "one value has one encoding: {value:?}");
            assert!(again.len() <= bytes_max, "{value:?} is longer than any message");
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "the first {end} bytes of {value:?} are a message too");
            }
        }
        Err(error) => assert!(error.at_byte <= bytes.len(), "{error} lies behind the end"),
    }
}
