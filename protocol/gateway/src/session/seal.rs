//! Keys and seals of a connection: what keeps a logon from being used twice, and frames from being written by somebody else.
//!
//! The venue's key pair and the client's give a shared secret (X25519, RFC 7748). With the logon's hash it gives the connection's key
//! (BLAKE3's key derivation). A seal is keyed BLAKE3 over a counter and all bytes since the seal before.

use std::fmt;
use std::sync::Arc;

use curve25519_dalek::montgomery::MontgomeryPoint;
use walras_wire::order_entry::{
    AGREEMENT_KEY_BYTES, CHALLENGE_BYTES, ClientMessage, LOGON_METHOD, LOGON_PATH, LogonTerms, ORDER_ENTRY_VERSION, RUN_BYTES_MAX,
    SEAL_BYTES, Sealing, Welcome, encode_client,
};
use zeroize::Zeroizing;

use super::stream::Output;
use crate::key::{hex, sha256};

/// The use of a key that is derived here, as BLAKE3's key derivation has it.
const SEAL_CONTEXT: &str = "walras order entry version 3, seals of a connection";

/// A venue's keys for order entry: of one process, or of one start of it.
pub struct VenueKeys {
    secret: Zeroizing<[u8; AGREEMENT_KEY_BYTES]>,
    public: [u8; AGREEMENT_KEY_BYTES],
    /// Of which challenges are made.
    challenges: Zeroizing<[u8; CHALLENGE_BYTES]>,
}

impl VenueKeys {
    /// Random bytes that [`VenueKeys::new`] takes.
    pub const ENTROPY_LEN: usize = 64;

    /// Makes them of bytes of a cryptographic source, new for each start.
    #[must_use]
    pub fn new(entropy: &[u8; Self::ENTROPY_LEN]) -> Self {
        let (secret, challenges) = entropy.split_at(AGREEMENT_KEY_BYTES);
        let secret = Zeroizing::new(*secret.first_chunk().expect("the first half has 32 bytes"));
        let challenges = Zeroizing::new(*challenges.first_chunk().expect("the second half has 32 bytes"));
        Self { public: MontgomeryPoint::mul_base_clamped(*secret).0, secret, challenges }
    }

    /// What the `number`th connection is told first. No number may be used twice: the challenge would be the same.
    #[must_use]
    pub fn greeting(self: &Arc<Self>, number: u64) -> Greeting {
        let challenge = *blake3::keyed_hash(&self.challenges, &number.to_le_bytes()).as_bytes();
        Greeting { keys: Arc::clone(self), challenge }
    }
}

impl fmt::Debug for VenueKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VenueKeys").field("public", &hex(&self.public)).finish_non_exhaustive()
    }
}

/// What one connection's client is told first.
#[derive(Clone, Debug)]
pub struct Greeting {
    keys: Arc<VenueKeys>,
    challenge: [u8; CHALLENGE_BYTES],
}

impl Greeting {
    /// The message.
    #[must_use]
    pub fn welcome(&self, sealing: Sealing) -> Welcome {
        let versions = (ORDER_ENTRY_VERSION, ORDER_ENTRY_VERSION);
        Welcome { versions, challenge: self.challenge, venue_key: self.keys.public, sealing }
    }

    /// The seals that a client makes which has logged on with this public key and these bytes. `None` for a key with which every
    /// secret would be the same.
    pub(super) fn agree(&self, client_key: [u8; AGREEMENT_KEY_BYTES], logon: &LogonHash) -> Option<Seals> {
        agree(&self.keys.secret, client_key, logon)
    }
}

/// The hash of a logon's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogonHash([u8; 32]);

impl LogonHash {
    /// Of the frame of a logon without its length.
    #[must_use]
    pub fn of(frame: &[u8]) -> Self {
        Self(*blake3::hash(frame).as_bytes())
    }
}

/// A client's key pair for one connection.
pub struct ClientAgreement {
    secret: Zeroizing<[u8; AGREEMENT_KEY_BYTES]>,
}

impl ClientAgreement {
    /// Random bytes that [`ClientAgreement::new`] takes.
    pub const ENTROPY_LEN: usize = AGREEMENT_KEY_BYTES;

    /// Makes it of bytes of a cryptographic source, new for each connection.
    #[must_use]
    pub fn new(entropy: &[u8; Self::ENTROPY_LEN]) -> Self {
        Self { secret: Zeroizing::new(*entropy) }
    }

    /// The public key.
    #[must_use]
    pub fn client_key(&self) -> [u8; AGREEMENT_KEY_BYTES] {
        MontgomeryPoint::mul_base_clamped(*self.secret).0
    }

    /// The seals of the connection: `logon` is the hash of the frame that was sent. `None` for a venue's key with which every secret
    /// would be the same.
    #[must_use]
    pub fn agree(&self, venue_key: [u8; AGREEMENT_KEY_BYTES], logon: &LogonHash) -> Option<Seals> {
        agree(&self.secret, venue_key, logon)
    }
}

impl fmt::Debug for ClientAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAgreement").finish_non_exhaustive()
    }
}

fn agree(secret: &[u8; AGREEMENT_KEY_BYTES], public: [u8; AGREEMENT_KEY_BYTES], logon: &LogonHash) -> Option<Seals> {
    let shared = Zeroizing::new(MontgomeryPoint(public).mul_clamped(*secret).0);
    // A point of low order gives zeros whatever the secret is.
    if shared.iter().fold(0, |all, byte| all | byte) == 0 {
        return None;
    }
    let mut hasher = blake3::Hasher::new_derive_key(SEAL_CONTEXT);
    hasher.update(&*shared);
    hasher.update(&logon.0);
    Some(Seals { key: Zeroizing::new(*hasher.finalize().as_bytes()), counter: 0 })
}

/// The seals of one connection, one after the other.
pub struct Seals {
    key: Zeroizing<[u8; 32]>,
    counter: u64,
}

impl Seals {
    /// The next seal, over the frames since the one before.
    pub fn seal(&mut self, run: &[u8]) -> [u8; SEAL_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.counter.to_le_bytes());
        hasher.update(run);
        self.counter += 1;
        *hasher.finalize().as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
    }

    /// Whether that is the next seal over these frames.
    pub(super) fn checks(&mut self, run: &[u8], seal: &[u8; SEAL_BYTES]) -> bool {
        let padded = |seal: &[u8; SEAL_BYTES]| {
            let mut bytes = [0; 32];
            bytes[..SEAL_BYTES].copy_from_slice(seal);
            blake3::Hash::from_bytes(bytes)
        };
        // Hashes are compared in constant time.
        padded(&self.seal(run)) == padded(seal)
    }
}

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seals").field("counter", &self.counter).finish_non_exhaustive()
    }
}

/// The bytes that a logon's signature covers: seven lines.
#[must_use]
pub fn signed_logon(
    challenge: &[u8; CHALLENGE_BYTES],
    venue_key: &[u8; AGREEMENT_KEY_BYTES],
    client_key: &[u8; AGREEMENT_KEY_BYTES],
    terms: &LogonTerms,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    terms.encode(&mut bytes);
    let terms_hash = hex(&sha256(&bytes));
    ["walras-v1", LOGON_METHOD, LOGON_PATH, &hex(challenge), &hex(venue_key), &hex(client_key), &terms_hash].join("\n").into_bytes()
}

/// What a client has to send. What it says once there are seals is sealed when the host asks for the bytes.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    output: Output,
    seals: Option<Seals>,
    /// So many of the last bytes are not sealed yet.
    unsealed: usize,
}

/// A run is sealed before its next frame might make it too long.
const RUN_BYTES_FULL: usize =
    RUN_BYTES_MAX - walras_wire::order_entry::TRANSACTIONS_FRAME_LEN_MAX - walras_wire::order_entry::FRAME_HEADER_BYTES;

impl Outbox {
    pub(super) fn put(&mut self, message: &ClientMessage<'_>) {
        let bytes = self.output.end();
        let before = bytes.len();
        encode_client(message, bytes);
        if self.seals.is_some() {
            self.unsealed += bytes.len() - before;
            if self.unsealed > RUN_BYTES_FULL {
                self.seal();
            }
        }
    }

    /// From now on all is sealed.
    pub(super) fn set_seals(&mut self, seals: Option<Seals>) {
        self.seals = seals;
    }

    fn seal(&mut self) {
        let Some(seals) = self.seals.as_mut().filter(|_| self.unsealed > 0) else { return };
        let bytes = self.output.end();
        let seal = seals.seal(&bytes[bytes.len() - self.unsealed..]);
        encode_client(&ClientMessage::Seal(seal), bytes);
        self.unsealed = 0;
    }

    /// Bytes to write, sealed.
    pub(super) fn unwritten(&mut self) -> &[u8] {
        self.seal();
        self.output.unwritten()
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.output.consume(len);
    }

    /// The connection is gone.
    pub(super) fn clear(&mut self) {
        self.output.clear();
        (self.seals, self.unsealed) = (None, 0);
    }
}
