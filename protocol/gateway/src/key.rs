//! API keys: the venue's record of a key, and the holder's half.

use std::sync::LazyLock;

use base64ct::{Base64, Base64UrlUnpadded, Encoding};
use curve25519_dalek::constants::EIGHT_TORSION;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use walras_types::{AccountId, TimeNs};
use zeroize::Zeroizing;

use crate::key_id::KeyId;
use crate::limits::{HMAC_SECRET_LEN_MAX, HMAC_SECRET_LEN_MIN};
use crate::rsa::RsaPublicKey;
use crate::signing::{AuthFields, Request, signed_bytes};

/// The signature algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519: the venue holds only the public half.
    Ed25519,
    /// HMAC-SHA256: the venue and the holder share a secret. Every browser supports it.
    HmacSha256,
    /// RSA with PKCS#1 v1.5 and SHA-256: the venue holds only the public half, and makes no such keys.
    RsaSha256,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ed25519, Self::HmacSha256, Self::RsaSha256];

    /// The prefix of such keys' ids.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed_",
            Self::HmacSha256 => "hm_",
            Self::RsaSha256 => "rs_",
        }
    }

    /// Its name in files and APIs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::HmacSha256 => "hmac-sha256",
            Self::RsaSha256 => "rsa-sha256",
        }
    }

    /// The algorithm of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// A permission of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Permission {
    /// See its account's balances, orders and fills.
    Read = 1,
    /// Enter, change and cancel its account's orders.
    Trade = 2,
    /// Use the operator's commands.
    Operator = 4,
    /// Deliver another shard's transfers, and nothing else.
    TransferRelay = 8,
}

impl Permission {
    /// All of them.
    pub const ALL: [Permission; 4] = [Self::Read, Self::Trade, Self::Operator, Self::TransferRelay];

    /// Its name in files and APIs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Trade => "trade",
            Self::Operator => "operator",
            Self::TransferRelay => "transfer_relay",
        }
    }

    /// The permission of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

/// A set of permissions. None implies another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u8);

impl Permissions {
    /// Whether the set contains this permission.
    #[must_use]
    pub const fn allow(self, permission: Permission) -> bool {
        self.0 & permission as u8 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions of the set.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |&permission| self.allow(permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission as u8))
    }
}

/// Why a key is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The id is malformed.
    #[error("a key id is ed_, hm_ or rs_ and 1 to 29 of A-Z a-z 0-9 _ -: correct it, or create another key")]
    IdInvalid,
    /// The id's prefix belongs to another algorithm.
    #[error(
        "the key id does not begin with its algorithm's prefix (ed_ for ed25519, hm_ for hmac-sha256, rs_ for rsa-sha256): \
         correct the one or the other"
    )]
    WrongAlgorithm,
    /// The secret or public part is not base64url, or has the wrong length.
    #[error(
        "an ed25519 key is 32 bytes and an hmac-sha256 secret {HMAC_SECRET_LEN_MIN} to {HMAC_SECRET_LEN_MAX}, in base64url without \
         padding: copy the whole key, or create another"
    )]
    MaterialInvalid,
    /// The public part is not a point of the curve, or a weak one.
    #[error("the ed25519 public key is invalid, or weak, so that anybody could forge its signatures: create another key")]
    PublicKeyInvalid,
    /// The text is no RSA key, or one of another size.
    #[error(
        "an rsa-sha256 key is a public key of 2048 to 4096 bits in PEM (-----BEGIN PUBLIC KEY-----), as `openssl rsa -pubout` writes it"
    )]
    RsaKeyInvalid,
    /// The key has no permission.
    #[error("the key has no permission: give it read, trade, operator or transfer_relay")]
    NoPermission,
    /// The key may trade or read but has no account.
    #[error("a key that may read or trade needs an account: name one, or leave only operator or transfer_relay")]
    NoAccount,
    /// The id is in use.
    #[error("a key with this id exists: choose another id, or remove that key first")]
    DuplicateId,
    /// The venue holds the maximum number of keys.
    #[error("the venue holds the maximum number of API keys ({}): remove some", crate::limits::KEYS_MAX)]
    TooMany,
}

/// The venue's half of a key, which verifies its signatures.
#[derive(Clone)]
pub enum Credential {
    /// The public half.
    Ed25519(VerifyingKey),
    /// The shared secret.
    HmacSha256(HmacSecret),
    /// The public half.
    RsaSha256(RsaPublicKey),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ed25519(_) => write!(f, "Ed25519({})", self.to_text().as_str()),
            Self::HmacSha256(_) => f.write_str("HmacSha256(secret)"),
            Self::RsaSha256(_) => write!(f, "RsaSha256({})", self.to_text().as_str()),
        }
    }
}

/// Encodings of the curve's points of small order. A signature whose `R` is such a point may hold for several messages.
static SMALL_ORDER: LazyLock<[[u8; 32]; 8]> = LazyLock::new(|| EIGHT_TORSION.map(|point| point.compress().to_bytes()));

/// What [`VerifyingKey::verify_strict`] says of a key that is not weak, without decoding `R`: where a signature holds, `R` has the one
/// encoding of its point, so a small order shows in its bytes. Decoding takes a root, some 250 multiplications.
fn verifies_strictly(key: &VerifyingKey, message: &[u8], signature: &Signature) -> bool {
    !SMALL_ORDER.contains(signature.r_bytes()) && key.verify(message, signature).is_ok()
}

/// A secret shared by the venue and a key's holder. Wiped when dropped.
#[derive(Clone)]
pub struct HmacSecret(Zeroizing<Vec<u8>>);

impl HmacSecret {
    /// A secret of 16 to 64 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if !(HMAC_SECRET_LEN_MIN..=HMAC_SECRET_LEN_MAX).contains(&bytes.len()) {
            return Err(KeyError::MaterialInvalid);
        }
        Ok(Self(Zeroizing::new(bytes.to_vec())))
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        hmac_of(&self.0, message)
    }
}

pub(crate) fn hmac_of(secret: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a secret of any length");
    mac.update(message);
    mac
}

impl Credential {
    /// Reads what [`Credential::to_text`] wrote.
    pub fn from_text(algorithm: Algorithm, text: &str) -> Result<Self, KeyError> {
        if algorithm == Algorithm::RsaSha256 {
            return RsaPublicKey::from_text(text).map(Self::RsaSha256);
        }
        let bytes = Zeroizing::new(Base64UrlUnpadded::decode_vec(text).map_err(|_| KeyError::MaterialInvalid)?);
        match algorithm {
            Algorithm::Ed25519 => {
                let bytes = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::MaterialInvalid)?;
                let key = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::PublicKeyInvalid)?;
                if key.is_weak() { Err(KeyError::PublicKeyInvalid) } else { Ok(Self::Ed25519(key)) }
            }
            Algorithm::HmacSha256 => HmacSecret::new(&bytes).map(Self::HmacSha256),
            Algorithm::RsaSha256 => Err(KeyError::RsaKeyInvalid),
        }
    }

    /// The public key or the secret in base64url without padding, for the venue's key file. Anyone who reads an HMAC secret can
    /// sign.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(match self {
            Self::Ed25519(key) => Base64UrlUnpadded::encode_string(key.as_bytes()),
            Self::HmacSha256(secret) => Base64UrlUnpadded::encode_string(&secret.0),
            Self::RsaSha256(key) => key.to_text(),
        })
    }

    /// Bytes of a signature.
    pub(crate) const fn signature_len(&self) -> usize {
        match self {
            Self::Ed25519(_) => 64,
            Self::HmacSha256(_) => 32,
            Self::RsaSha256(key) => key.signature_len(),
        }
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::Ed25519,
            Self::HmacSha256(_) => Algorithm::HmacSha256,
            Self::RsaSha256(_) => Algorithm::RsaSha256,
        }
    }

    /// Whether `signature` is this key's signature of `message`. Runs in constant time. For Ed25519, accepts only one signature per
    /// message and key.
    #[must_use]
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(key) => {
                Signature::from_slice(signature).is_ok_and(|signature| verifies_strictly(key, message, &signature))
            }
            Self::HmacSha256(secret) => secret.mac(message).verify_slice(signature).is_ok(),
            Self::RsaSha256(key) => key.verifies(message, signature),
        }
    }

    /// The same for a signature as [`crate::SignedText`] has it.
    #[must_use]
    pub(crate) fn verifies_text(&self, text: &[u8], signature: &str) -> bool {
        match self {
            // Base64 with padding. The length is checked first, so that an overlong text costs nothing.
            Self::Ed25519(_) | Self::RsaSha256(_) => {
                signature.len() == self.signature_len().div_ceil(3) * 4
                    && Base64::decode_vec(signature).is_ok_and(|signature| self.verifies(text, &signature))
            }
            // Programs of the dialect take a secret for what its characters are.
            Self::HmacSha256(_) => {
                let signature = if signature.len() == 64 { HEXLOWER_PERMISSIVE.decode(signature.as_bytes()).ok() } else { None };
                let mac = hmac_of(self.to_text().as_bytes(), text);
                signature.is_some_and(|signature| mac.verify_slice(&signature).is_ok())
            }
        }
    }
}

/// The venue's record of a key.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    key_id: KeyId,
    account: Option<AccountId>,
    permissions: Permissions,
    credential: Credential,
    expires: Option<TimeNs>,
}

impl KeyRecord {
    /// A key of this name that acts for `account` and may do `permissions`.
    pub fn new(
        key_id: KeyId,
        account: Option<AccountId>,
        permissions: Permissions,
        credential: Credential,
    ) -> Result<Self, KeyError> {
        if key_id.algorithm() != credential.algorithm() {
            return Err(KeyError::WrongAlgorithm);
        }
        if permissions.is_empty() {
            return Err(KeyError::NoPermission);
        }
        let needs_account = permissions.allow(Permission::Read) || permissions.allow(Permission::Trade);
        if needs_account && account.is_none() {
            return Err(KeyError::NoAccount);
        }
        Ok(Self { key_id, account, permissions, credential, expires: None })
    }

    /// The same that expires then: from that time of day on it is refused. `None` for never.
    #[must_use]
    pub fn expiring(self, expires: Option<TimeNs>) -> Self {
        Self { expires, ..self }
    }

    /// When it expires.
    #[must_use]
    pub const fn expire_time(&self) -> Option<TimeNs> {
        self.expires
    }

    /// Whether it has expired at this time of day.
    #[must_use]
    pub fn has_expired(&self, now_ns: u64) -> bool {
        self.expires.is_some_and(|expires| expires.0 <= now_ns)
    }

    /// Its name.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The account that it acts for; `None` for an operator or a transfer relay.
    #[must_use]
    pub const fn account(&self) -> Option<AccountId> {
        self.account
    }

    /// What it may do.
    #[must_use]
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// The half that verifies its signatures.
    #[must_use]
    pub const fn credential(&self) -> &Credential {
        &self.credential
    }
}

/// The holder's half of a key.
#[derive(Clone)]
pub struct ClientKey {
    key_id: KeyId,
    secret: Secret,
}

#[derive(Clone)]
enum Secret {
    Ed25519(SigningKey),
    HmacSha256(HmacSecret),
}

impl std::fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientKey({}, secret)", self.key_id)
    }
}

impl ClientKey {
    /// Bytes of entropy that a new key takes.
    pub const ENTROPY_LEN: usize = 44;

    /// Creates a key. `entropy` must come from a cryptographic source and be used for nothing else: 32 bytes become the secret, 12
    /// the name.
    ///
    /// # Panics
    /// For RSA: such keys are made by their holders.
    #[must_use]
    pub fn generate(algorithm: Algorithm, entropy: &[u8; Self::ENTROPY_LEN]) -> Self {
        let (secret, name) = entropy.split_first_chunk::<32>().expect("44 bytes begin with 32");
        let text = format!("{}{}", algorithm.prefix(), hex(name));
        let key_id = KeyId::new(&text).expect("a prefix and 24 hexadecimal digits are a key id");
        let secret = match algorithm {
            Algorithm::Ed25519 => Secret::Ed25519(SigningKey::from_bytes(secret)),
            Algorithm::HmacSha256 => Secret::HmacSha256(HmacSecret::new(secret).expect("32 bytes are within 16 and 64")),
            Algorithm::RsaSha256 => panic!("RSA keys are made by their holders"),
        };
        Self { key_id, secret }
    }

    /// The key of this name and this secret in base64url without padding (Ed25519: the 32-byte seed).
    pub fn from_parts(key_id: &str, secret: &str) -> Result<Self, KeyError> {
        let key_id = KeyId::new(key_id).ok_or(KeyError::IdInvalid)?;
        let bytes = Zeroizing::new(Base64UrlUnpadded::decode_vec(secret).map_err(|_| KeyError::MaterialInvalid)?);
        let secret = match key_id.algorithm() {
            Algorithm::Ed25519 => {
                let seed = Zeroizing::new(<[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::MaterialInvalid)?);
                Secret::Ed25519(SigningKey::from_bytes(&seed))
            }
            Algorithm::HmacSha256 => Secret::HmacSha256(HmacSecret::new(&bytes)?),
            // Their holders sign by programs of their own.
            Algorithm::RsaSha256 => return Err(KeyError::MaterialInvalid),
        };
        Ok(Self { key_id, secret })
    }

    /// Reads what [`ClientKey::to_token`] wrote.
    pub fn from_token(token: &str) -> Result<Self, KeyError> {
        let (key_id, secret) = token.split_once('.').ok_or(KeyError::MaterialInvalid)?;
        Self::from_parts(key_id, secret)
    }

    /// Name and secret in one line, `<key id>.<secret base64url>`, for copying. Anyone who reads it can sign.
    #[must_use]
    pub fn to_token(&self) -> Zeroizing<String> {
        let secret = match &self.secret {
            Secret::Ed25519(key) => Zeroizing::new(Base64UrlUnpadded::encode_string(key.as_bytes())),
            Secret::HmacSha256(secret) => Zeroizing::new(Base64UrlUnpadded::encode_string(&secret.0)),
        };
        Zeroizing::new(format!("{}.{}", self.key_id, secret.as_str()))
    }

    /// Its name.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The 32 secret bytes of an Ed25519 key. The key may also sign its account's transactions: their signed bytes have another
    /// prefix than those of a request.
    #[must_use]
    pub fn ed25519_seed(&self) -> Option<Zeroizing<[u8; 32]>> {
        match &self.secret {
            Secret::Ed25519(key) => Some(Zeroizing::new(*key.as_bytes())),
            Secret::HmacSha256(_) => None,
        }
    }

    /// The 32 bytes of an Ed25519 key's public half, which may be its account's transaction key.
    #[must_use]
    pub fn ed25519_public(&self) -> Option<[u8; 32]> {
        match &self.secret {
            Secret::Ed25519(key) => Some(key.verifying_key().to_bytes()),
            Secret::HmacSha256(_) => None,
        }
    }

    /// An Ed25519 key's signature of exactly these bytes.
    #[must_use]
    pub fn ed25519_signature(&self, message: &[u8]) -> Option<[u8; 64]> {
        match &self.secret {
            Secret::Ed25519(key) => Some(key.sign(message).to_bytes()),
            Secret::HmacSha256(_) => None,
        }
    }

    /// The venue's record of this key.
    pub fn record(&self, account: Option<AccountId>, permissions: Permissions) -> Result<KeyRecord, KeyError> {
        let credential = match &self.secret {
            Secret::Ed25519(key) => Credential::Ed25519(key.verifying_key()),
            Secret::HmacSha256(secret) => Credential::HmacSha256(secret.clone()),
        };
        KeyRecord::new(self.key_id, account, permissions, credential)
    }

    /// Signs a request. `nonce` must be new (see [`crate::generate_nonce`]) and `timestamp_ns` the time now.
    #[must_use]
    pub fn sign(&self, request: &Request<'_>, timestamp_ns: u64, nonce: &str) -> AuthFields {
        let (key, timestamp, nonce) = (self.key_id.to_string(), timestamp_ns.to_string(), nonce.to_owned());
        let message = signed_bytes(request, &timestamp, &nonce);
        AuthFields { key, timestamp, nonce, signature: self.sign_bytes(&message) }
    }

    /// The signature of a text as [`crate::SignedText`] has it.
    #[must_use]
    pub fn sign_text(&self, text: &[u8]) -> String {
        match &self.secret {
            Secret::Ed25519(key) => Base64::encode_string(&key.sign(text).to_bytes()),
            Secret::HmacSha256(secret) => {
                let as_text = Zeroizing::new(Base64UrlUnpadded::encode_string(&secret.0));
                hex(&hmac_of(as_text.as_bytes(), text).finalize().into_bytes())
            }
        }
    }

    /// The signature of these bytes, in base64url without padding.
    #[must_use]
    pub fn sign_bytes(&self, message: &[u8]) -> String {
        match &self.secret {
            Secret::Ed25519(key) => Base64UrlUnpadded::encode_string(&key.sign(message).to_bytes()),
            Secret::HmacSha256(secret) => Base64UrlUnpadded::encode_string(&secret.mac(message).finalize().into_bytes()),
        }
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::edwards::EdwardsPoint;
    use curve25519_dalek::scalar::Scalar;
    use sha2::Sha512;

    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        HEXLOWER.decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn ed25519_signs_and_verifies_the_vectors_of_rfc_8032() {
        // Section 7.1: tests 1, 2, 3 and SHA(abc), as secret, message, signature.
        let vectors = [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
            (
                "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
                "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
            ),
        ];
        for (secret, message, signature) in vectors {
            let (message, signature) = (unhex(message), unhex(signature));
            let key = SigningKey::from_bytes(&unhex(secret).try_into().unwrap());
            assert_eq!(key.sign(&message).to_bytes().as_slice(), signature);
            let credential = Credential::Ed25519(key.verifying_key());
            assert!(credential.verifies(&message, &signature));
            let mut altered = signature.clone();
            altered[40] ^= 1;
            assert!(!credential.verifies(&message, &altered) && !credential.verifies(&message, &signature[..63]));
        }
        let public = SigningKey::from_bytes(&unhex(vectors[0].0).try_into().unwrap()).verifying_key();
        assert_eq!(hex(public.as_bytes()), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    }

    #[test]
    fn a_signature_of_small_order_is_none() {
        // The holder of a key that has a part of small order can make such signatures.
        let secret = Scalar::from(7_u64);
        let point = EdwardsPoint::mul_base(&secret) + EIGHT_TORSION[1];
        let key = VerifyingKey::from_bytes(&point.compress().to_bytes()).unwrap();
        for r in *SMALL_ORDER {
            let signed = |message: u8| {
                let hash = Sha512::new().chain_update(r).chain_update(key.as_bytes()).chain_update([message]).finalize();
                Signature::from_components(r, (Scalar::from_bytes_mod_order_wide(&hash.into()) * secret).to_bytes())
            };
            let message = (0..=u8::MAX).find(|message| key.verify(&[*message], &signed(*message)).is_ok()).unwrap();
            let signature = signed(message);
            assert!(key.verify_strict(&[message], &signature).is_err());
            assert!(!Credential::Ed25519(key).verifies(&[message], &signature.to_bytes()));
        }
    }

    #[test]
    fn hmac_gives_the_vectors_of_rfc_4231() {
        let long_text: &[u8] = b"This is a test using a larger than block-size key and a larger than block-size data. \
            The key needs to be hashed before being used by the HMAC algorithm.";
        let vectors: [(Vec<u8>, &[u8], &str); 6] = [
            (vec![0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (b"Jefe".to_vec(), b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (vec![0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            ((1..=25).collect(), &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (vec![0xaa; 131], long_text, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
        ];
        for (secret, message, mac) in vectors {
            assert_eq!(hex(&hmac_of(&secret, message).finalize().into_bytes()), mac);
            if let Ok(secret) = HmacSecret::new(&secret) {
                let credential = Credential::HmacSha256(secret);
                assert!(credential.verifies(message, &unhex(mac)));
                assert!(!credential.verifies(message, &unhex(mac)[..31]) && !credential.verifies(message, &[]));
                assert!(!credential.verifies(b"other", &unhex(mac)));
            }
        }
    }

    fn any_key(algorithm: Algorithm) -> ClientKey {
        ClientKey::generate(algorithm, &std::array::from_fn(|k| k as u8))
    }

    #[test]
    fn keys_go_to_text_and_back_and_hide_their_secrets() {
        let read: Permissions = [Permission::Read].into_iter().collect();
        for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
            let key = any_key(algorithm);
            let token = key.to_token();
            assert!(token.starts_with(&format!("{}202122232425262728292a2b.", algorithm.prefix())), "{}", token.as_str());
            assert_eq!(*ClientKey::from_token(&token).unwrap().to_token(), *token);
            let record = key.record(Some(AccountId(1)), read).unwrap();
            let text = record.credential().to_text();
            assert_eq!(*Credential::from_text(algorithm, &text).unwrap().to_text(), *text);
            // What an Ed25519 key signs as bytes it signs as text, by the half that others have.
            let signature = key.ed25519_signature(b"message");
            let is_ed25519 = algorithm == Algorithm::Ed25519;
            let signature = signature.map(|bytes| Base64UrlUnpadded::encode_string(&bytes));
            assert_eq!(signature, is_ed25519.then(|| key.sign_bytes(b"message")));
            let public = key.ed25519_public().map(|bytes| Base64UrlUnpadded::encode_string(&bytes));
            assert_eq!(public.as_deref(), is_ed25519.then_some(text.as_str()));
            let secret = token.split_once('.').unwrap().1;
            assert!(!format!("{key:?} {record:?}").contains(secret));
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let error = |token: &str| ClientKey::from_token(token).unwrap_err();
        assert_eq!(error("hm_a"), KeyError::MaterialInvalid);
        assert_eq!(error("xx_a.AAAA"), KeyError::IdInvalid);
        assert_eq!(error("hm_a.AAAA"), KeyError::MaterialInvalid);
        // Padded, not url-safe, cut short, with bits set beyond the last byte.
        for secret in
            ["AAAAAAAAAAAAAAAAAAAAAA==", "+/AAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "A A"]
        {
            assert_eq!(error(&format!("hm_a.{secret}")), KeyError::MaterialInvalid, "{secret}");
        }
        assert!(ClientKey::from_token("hm_a.AAAAAAAAAAAAAAAAAAAAAA").is_ok());
        assert_eq!(error("ed_a.AAAAAAAAAAAAAAAAAAAAAA"), KeyError::MaterialInvalid);
        assert_eq!(HmacSecret::new(&[0; 65]).err(), Some(KeyError::MaterialInvalid));
        let public = |bytes: [u8; 32]| Credential::from_text(Algorithm::Ed25519, &Base64UrlUnpadded::encode_string(&bytes)).err();
        // The neutral element (a weak key), and a y that is on no point.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        assert_eq!(public(neutral), Some(KeyError::PublicKeyInvalid));
        let mut none = [0; 32];
        none[0] = 2;
        assert_eq!(public(none), Some(KeyError::PublicKeyInvalid));

        let ed = any_key(Algorithm::Ed25519);
        let credential = ed.record(None, [Permission::Operator].into_iter().collect()).unwrap().credential().clone();
        let hm_id = KeyId::new("hm_a").unwrap();
        let all: Permissions = Permission::ALL.into_iter().collect();
        assert_eq!(KeyRecord::new(hm_id, Some(AccountId(0)), all, credential).unwrap_err(), KeyError::WrongAlgorithm);
        assert_eq!(ed.record(None, all).unwrap_err(), KeyError::NoAccount);
        assert_eq!(ed.record(Some(AccountId(0)), Permissions::default()).unwrap_err(), KeyError::NoPermission);
        assert!(ed.record(None, [Permission::TransferRelay].into_iter().collect()).is_ok());
    }

    #[test]
    fn permissions_are_a_set() {
        let some: Permissions = ["trade", "read"].into_iter().filter_map(Permission::from_name).collect();
        assert_eq!(some.iter().map(Permission::name).collect::<Vec<_>>(), ["read", "trade"]);
        assert!(!some.allow(Permission::Operator) && !some.is_empty());
        assert_eq!(Permission::from_name("admin"), None);
        // No permission's bit is part of another's.
        for one in Permission::ALL {
            let alone: Permissions = [one].into_iter().collect();
            assert_eq!(alone.iter().collect::<Vec<_>>(), [one]);
            assert_eq!(Permission::from_name(one.name()), Some(one));
        }
    }
}
