//! What comes on the links between replicas, behind TLS.

use walras_peer_link::frames_again;

/// Longest frame, in bytes: small enough for a fuzzer to reach.
const FRAME_BYTES_MAX: usize = 1 << 10;

/// Frames, however they are cut: what is understood are the bytes that came, up to where they stop being frames.
pub fn frames(bytes: &[u8]) {
    let (whole, why) = frames_again([bytes], FRAME_BYTES_MAX);
    assert!(bytes.starts_with(&whole), "one frame has one encoding");
    for piece_bytes in [1, 7, 64] {
        let (in_pieces, same) = frames_again(bytes.chunks(piece_bytes), FRAME_BYTES_MAX);
        assert_eq!((in_pieces.len(), same), (whole.len(), why), "in pieces of {piece_bytes} bytes");
        assert!(in_pieces == whole, "what is understood depends on how the bytes arrive");
    }
    match why {
        Some(error) => assert!(error.to_string().contains("; "), "an error without advice: {error}"),
        // What is left is the beginning of a frame.
        None => assert!(bytes.len() - whole.len() < 4 + FRAME_BYTES_MAX, "whole frames were left"),
    }
}
