//! Public keys, read once.

use std::sync::{Mutex, PoisonError};

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

/// Keys whose points are kept, at most: 24 MB of them.
pub const POINTS_MAX: usize = 1 << 17;

/// The keys of accounts, by their dense ids: 33 bytes for each.
///
/// Reading a key takes a third of the time of checking a signature, so the points of keys that were used last are kept, 184 bytes
/// for each: of accounts whose ids are equal modulo [`POINTS_MAX`] the one that was used last.
#[derive(Debug, Default)]
pub struct KeyCache {
    keys: Vec<Option<PublicKey>>,
    /// By account, as many as there are accounts at most. Each is locked only to be copied.
    points: Vec<Mutex<Option<Point>>>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    account: AccountId,
    /// None where the key is of no use.
    point: Option<EdwardsPoint>,
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
            make_room(&mut self.keys, place + 1);
            self.keys.resize(place + 1, None);
        }
        self.keys[place] = Some(key);
        if let Some(point) = self.points.get_mut(place % POINTS_MAX) {
            *point.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let wanted = self.keys.len().min(POINTS_MAX);
        make_room(&mut self.points, wanted);
        self.points.resize_with(wanted, Mutex::default);
        Ok(())
    }

    /// The key that an account was given last, of use or not.
    #[must_use]
    pub fn key(&self, account: AccountId) -> Option<PublicKey> {
        self.keys.get(account.0 as usize).copied().flatten()
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Option<PublicKey>>() + self.points.capacity() * size_of::<Mutex<Option<Point>>>()
    }

    /// An account's key, if it has one of use.
    pub(crate) fn get(&self, account: AccountId) -> Option<CachedKey> {
        let key = self.key(account)?;
        let with = |point: Option<EdwardsPoint>| point.map(|point| CachedKey { bytes: key.0, point });
        let kept = self.points.get(account.0 as usize % POINTS_MAX)?;
        // A thread that panicked with the lock has copied or set a whole point.
        let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().filter(|found| found.account == account) {
            return with(found.point);
        }
        let point = CachedKey::new(&key).ok().map(|key| key.point);
        *lock() = Some(Point { account, point });
        with(point)
    }
}

/// Makes room for so many; an eighth beyond, for doubling would waste half of the memory.
fn make_room<T>(all: &mut Vec<T>, count: usize) {
    if count > all.capacity() {
        all.reserve_exact(count - all.len() + count / 8);
    }
}

const _: () = assert!(size_of::<Mutex<Option<Point>>>() <= 184 && size_of::<CachedKey>() == 192);

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

    #[test]
    fn accounts_that_share_a_place_have_their_own_keys() {
        let mut keys = KeyCache::default();
        let key = |seed| crate::SigningKey::from_seed(&[seed; 32]).public_key();
        let accounts = [AccountId(5), AccountId(5 + POINTS_MAX as u32)];
        for (seed, account) in (1..).zip(accounts) {
            keys.insert(account, key(seed)).unwrap();
        }
        for _ in 0..2 {
            for (seed, account) in (1..).zip(accounts) {
                assert_eq!(keys.get(account).map(|key| key.bytes), Some(key(seed).0));
                assert_eq!(keys.get(account).unwrap().point.compress().0, key(seed).0);
            }
        }
        keys.insert(accounts[1], key(9)).unwrap();
        assert_eq!(keys.get(accounts[1]).unwrap().point.compress().0, key(9).0, "the point before is gone");
        assert!(keys.get(AccountId(6)).is_none() && keys.key(AccountId(6)).is_none());
        assert!(keys.points.len() <= POINTS_MAX && keys.bytes() < 34 * 160_000 + 184 * 150_000);
    }
}
