//! The nonce of a signed request, as the replicated state remembers it.

use crate::TimeNs;

/// Identifies the API key that signed a request: the first 8 bytes of the SHA-256 of its id. Keys that share one share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyTag(pub u64);

/// Identifies the key and the nonce of a request: half of a SHA-256, so collisions cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonceFingerprint(pub [u8; 16]);

/// The use of a nonce by a signed command. A command with the same fingerprint is not carried out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceUse {
    /// The key that signed the command.
    pub key: KeyTag,
    /// The key and the nonce.
    pub fingerprint: NonceFingerprint,
    /// Last moment at which the command's stamp is acceptable. The fingerprint is remembered until then.
    pub until: TimeNs,
}
