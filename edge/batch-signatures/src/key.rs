//! Public keys, read once.

use std::sync::OnceLock;

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use walras_types::limits::ACCOUNTS_MAX;
use walras_types::{AccountId, PublicKey};

/// Why a public key is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are no point, or not the one encoding of it.
    #[error("the bytes are no Ed25519 public key: send the 32 bytes that RFC 8032 gives, or make a new key")]
    NotAPoint,
    /// Anybody can sign for it.
    #[error("the public key is of small order, and anybody can sign for it: make a new key")]
    SmallOrder,
    /// No account has this id.
    #[error("account {0} is not below {ACCOUNTS_MAX}: no account has this id")]
    NoAccount(AccountId),
}

/// The point that `bytes` are the one encoding of.
pub(crate) fn read_point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    if is_canonical(bytes) { CompressedEdwardsY(*bytes).decompress() } else { None }
}

/// Whether `y` is below `p = 2^255 - 19`, and the sign not set where `x` is zero, at `y = 1` and `y = p - 1`.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [first, middle @ .., last] = bytes;
    let (is_negative, last) = (last & 0x80 != 0, last & 0x7f);
    let is_top = last == 0x7f && middle.iter().all(|&byte| byte == 0xff);
    let is_one = last == 0 && *first == 1 && middle.iter().all(|&byte| byte == 0);
    let is_below_p = !is_top || *first < 0xed;
    let has_no_x = is_one || (is_top && *first == 0xec);
    is_below_p && !(has_no_x && is_negative)
}

/// Whether signatures can be made and checked for a key. Ask this before an account is created with it.
///
/// # Errors
/// [`KeyError::NotAPoint`], [`KeyError::SmallOrder`].
pub fn check_key(key: &PublicKey) -> Result<(), KeyError> {
    CachedKey::new(key).map(drop)
}

/// A key with its point: 192 bytes.
#[derive(Clone, Debug)]
pub(crate) struct CachedKey {
    pub(crate) bytes: [u8; 32],
    pub(crate) point: EdwardsPoint,
}

impl CachedKey {
    pub(crate) fn new(key: &PublicKey) -> Result<Self, KeyError> {
        let point = read_point(&key.0).ok_or(KeyError::NotAPoint)?;
        if point.is_small_order() { Err(KeyError::SmallOrder) } else { Ok(Self { bytes: key.0, point }) }
    }
}

/// The keys of accounts, by their dense ids. Reading a key takes a third of the time of checking a signature, so it is done once, when the
/// first signature of its account is checked: an account takes 64 bytes before and 192 more after.
#[derive(Clone, Debug, Default)]
pub struct KeyCache {
    keys: Vec<Option<Slot>>,
}

#[derive(Clone, Debug)]
struct Slot {
    key: PublicKey,
    /// None where the key is of no use.
    read: OnceLock<Option<Box<CachedKey>>>,
}

impl KeyCache {
    /// Sets an account's key, in place of any other. Where the key is of no use ([`check_key`]), no signature of the account holds.
    ///
    /// # Errors
    /// [`KeyError::NoAccount`].
    pub fn insert(&mut self, account: AccountId, key: PublicKey) -> Result<(), KeyError> {
        if account.0 >= ACCOUNTS_MAX {
            return Err(KeyError::NoAccount(account));
        }
        let place = account.0 as usize;
        if place >= self.keys.len() {
            self.keys.resize_with(place + 1, || None);
        }
        self.keys[place] = Some(Slot { key, read: OnceLock::new() });
        Ok(())
    }

    /// An account's key, if it has one of use.
    pub(crate) fn get(&self, account: AccountId) -> Option<&CachedKey> {
        let slot = self.keys.get(account.0 as usize)?.as_ref()?;
        slot.read.get_or_init(|| CachedKey::new(&slot.key).ok().map(Box::new)).as_deref()
    }
}

const _: () = assert!(size_of::<Option<Slot>>() <= 64 && size_of::<CachedKey>() == 192);

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};

    use super::*;

    #[test]
    fn what_is_read_is_written_back_the_same() {
        // All encodings near the edges of y, with both signs, and some in the middle.
        let mut read_count = 0;
        for sign in [0, 0x80] {
            for (rest, top) in [(0, 0), (0xff, 0x7f), (0xff, 0x7e), (0x31, 0x5a)] {
                for first in 0..=255 {
                    let mut bytes = [rest; 32];
                    (bytes[0], bytes[31]) = (first, top | sign);
                    let point = CompressedEdwardsY(bytes).decompress();
                    let expected = point.filter(|point| point.compress().0 == bytes);
                    assert_eq!(read_point(&bytes), expected, "{bytes:?}");
                    read_count += usize::from(expected.is_some());
                }
            }
        }
        assert!(read_count > 500, "{read_count} points");
    }

    #[test]
    fn keys_of_no_use_are_told_and_hold_nothing() {
        let (account, mut keys) = (AccountId(3), KeyCache::default());
        let good = PublicKey(ED25519_BASEPOINT_POINT.compress().0);
        keys.insert(account, good).unwrap();
        assert!(keys.get(account).is_some() && keys.get(AccountId(2)).is_none() && keys.get(AccountId(4)).is_none());
        let two = [&[2][..], &[0; 31]].concat().try_into().unwrap();
        assert_eq!(check_key(&PublicKey(two)), Err(KeyError::NotAPoint));
        keys.insert(account, PublicKey(two)).unwrap();
        assert!(keys.get(account).is_none(), "the key before is gone");
        for point in EIGHT_TORSION {
            assert_eq!(check_key(&PublicKey(point.compress().0)), Err(KeyError::SmallOrder));
            let mixed = point + ED25519_BASEPOINT_POINT;
            assert_eq!(check_key(&PublicKey(mixed.compress().0)), Ok(()));
        }
        assert_eq!(keys.insert(AccountId(ACCOUNTS_MAX), good), Err(KeyError::NoAccount(AccountId(ACCOUNTS_MAX))));
    }
}
