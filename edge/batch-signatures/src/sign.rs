//! Signing, for clients and tools.

use ed25519_dalek::Signer;
use walras_types::{BatchTransaction, PublicKey};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction, SigningDomain, encode_transaction};

/// An account's secret, from which its key comes and with which it signs. Overwritten when dropped.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of 32 secret bytes, as RFC 8032 makes it.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// A new one.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self::from_seed(&seed))
    }

    /// What others check its signatures with.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs a transaction for one venue.
    #[must_use]
    pub fn sign(&self, domain: &SigningDomain, transaction: &BatchTransaction) -> SignedTransaction {
        let mut bytes = Vec::new();
        encode_transaction(transaction, &mut bytes);
        SignedTransaction { transaction: *transaction, signature: self.sign_bytes(domain, &bytes) }
    }

    /// Signs the bytes of a transaction for one venue.
    #[must_use]
    pub fn sign_bytes(&self, domain: &SigningDomain, transaction_bytes: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(&domain.message(transaction_bytes)).to_bytes()
    }
}

/// Shows the public key alone.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public_key()).finish()
    }
}
