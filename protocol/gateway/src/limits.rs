//! Every bound of this crate in one place.

/// API keys of a venue (under 1,200 bytes each).
pub const KEYS_MAX: usize = 1 << 16;

/// Longest key id, in bytes.
pub const KEY_ID_LEN_MAX: usize = 32;

/// Shortest HMAC secret, in bytes: 128 bits of entropy.
pub const HMAC_SECRET_LEN_MIN: usize = 16;

/// Longest HMAC secret, in bytes: beyond a SHA-256 block it would only be hashed.
pub const HMAC_SECRET_LEN_MAX: usize = 64;

/// Shortest and longest modulus of an RSA key, in bytes: 2,048 and 4,096 bits.
pub const RSA_MODULUS_LEN_MIN: usize = 256;
/// See [`RSA_MODULUS_LEN_MIN`].
pub const RSA_MODULUS_LEN_MAX: usize = 512;

/// Longest nonce, in bytes.
pub const NONCE_LEN_MAX: usize = 64;

/// Nonces remembered per key unless configured otherwise: 1,600 requests a second for the ten seconds that a stamp may be acceptable.
pub const NONCES_PER_KEY_MAX: usize = 1 << 14;

/// Nonces remembered in all unless configured otherwise (under 150 bytes each, held only while their stamps are acceptable: 150 MB).
pub const NONCES_MAX: usize = 1 << 20;

/// Sources (addresses) whose rate is remembered unless configured otherwise (under 100 bytes each: 6 MB).
pub const SOURCES_MAX: usize = 1 << 16;

/// Longest decimal that is read, in bytes.
pub const DECIMAL_LEN_MAX: usize = 80;

/// Most decimals that a tick may have.
pub const TICK_DECIMALS_MAX: u32 = 36;

/// Largest tick, in units of its last decimal: times the highest price it stays below 2^128.
pub const TICK_MANTISSA_MAX: u128 = 1 << 87;

const _: () = assert!((walras_types::limits::PRICE_TICKS_MAX as u128) < u128::MAX / TICK_MANTISSA_MAX);
