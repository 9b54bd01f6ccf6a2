//! The digest of a command's content.

use walras_types::ContentDigest;

use crate::command::Command;
use crate::command_codec::encode_command;

/// The digest of a command's bytes. `scratch` is cleared, and left with those bytes.
#[must_use]
#[inline]
pub fn content_digest(command: &Command, scratch: &mut Vec<u8>) -> ContentDigest {
    scratch.clear();
    encode_command(command, scratch);
    ContentDigest::of_bytes(scratch)
}
