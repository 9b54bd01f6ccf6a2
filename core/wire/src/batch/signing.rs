//! What an account signs: never the transaction's bytes alone.

/// Names what is signed, so that no signature over something else is one over a transaction.
const PURPOSE: &[u8; 24] = b"walras batch transaction";

/// Version of the transactions' bytes. A signature over one version is none over another.
pub const TRANSACTION_VERSION: u16 = 1;

/// Bytes of a market's domain.
pub const DOMAIN_BYTES: usize = 32;

/// Bytes that precede a transaction's in what is signed.
pub const SIGNING_PREFIX_BYTES: usize = PURPOSE.len() + 2 + DOMAIN_BYTES;

/// A batch market, as far as signatures go: what is signed is `"walras batch transaction" | version u16 | domain | transaction`. All parts but
/// the last have a fixed width and the last has one encoding, so two messages differ whenever the market, the version or anything in
/// the transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningDomain {
    prefix: [u8; SIGNING_PREFIX_BYTES],
}

impl SigningDomain {
    /// Of the market with this domain: 32 random bytes, drawn when it was made.
    #[must_use]
    pub fn new(domain: &[u8; DOMAIN_BYTES]) -> Self {
        let mut prefix = [0; SIGNING_PREFIX_BYTES];
        let (purpose, rest) = prefix.split_at_mut(PURPOSE.len());
        let (version, place) = rest.split_at_mut(2);
        purpose.copy_from_slice(PURPOSE);
        version.copy_from_slice(&TRANSACTION_VERSION.to_le_bytes());
        place.copy_from_slice(domain);
        Self { prefix }
    }

    /// The bytes that precede a transaction's in what is signed.
    #[must_use]
    pub const fn prefix(&self) -> &[u8; SIGNING_PREFIX_BYTES] {
        &self.prefix
    }

    /// What is signed of a transaction of these bytes.
    #[must_use]
    pub fn message(&self, transaction_bytes: &[u8]) -> Vec<u8> {
        [&self.prefix[..], transaction_bytes].concat()
    }
}
