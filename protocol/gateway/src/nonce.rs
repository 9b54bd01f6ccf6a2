//! Nonces used at this process, in bounded memory. A full cache refuses requests; it never forgets a nonce early.
//!
//! This is the first check, and the only one of reads. Of signed commands the replicated state remembers the nonces too, for copies that
//! reach other replicas (`walras_types::NonceUse`).

use std::collections::{BTreeMap, BTreeSet};

use base64ct::{Base64UrlUnpadded, Encoding};

use crate::key::{hex, sha256};
use crate::key_id::KeyId;

/// Generates a unique nonce from 16 bytes of a cryptographic source.
#[must_use]
pub fn generate_nonce(entropy: &[u8; 16]) -> String {
    Base64UrlUnpadded::encode_string(entropy)
}

/// Half of the SHA-256 of key id and nonce: fixed size, and collisions cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint(pub(crate) [u8; 16]);

impl Fingerprint {
    pub(crate) fn of(key_id: KeyId, nonce: &str) -> Self {
        // A key id contains no line feed, so the text is unique for each pair.
        let digest = sha256(format!("{key_id}\n{nonce}").as_bytes());
        Self(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
    }

    /// Of a text that was signed as a whole. A nonce contains no line feed, so it has no nonce's fingerprint.
    pub(crate) fn of_text(key_id: KeyId, text: &[u8]) -> Self {
        Self::of(key_id, &format!("text\n{}", hex(&sha256(text))))
    }
}

/// Why a nonce was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonceRefusal {
    Used,
    /// The key has the maximum number of remembered nonces.
    KeyFull,
    /// All keys together have the maximum number of remembered nonces.
    Full,
}

/// The nonces of requests whose stamps are still acceptable. They are in ordered trees, so no key can slow down another's lookups.
#[derive(Clone, Debug)]
pub(crate) struct NonceCache {
    per_key_max: usize,
    max: usize,
    used: BTreeSet<Fingerprint>,
    by_expiry: BTreeSet<(u64, Fingerprint, KeyId)>,
    counts: BTreeMap<KeyId, usize>,
}

impl NonceCache {
    pub(crate) fn new(per_key_max: usize, max: usize) -> Self {
        Self { per_key_max, max, used: BTreeSet::new(), by_expiry: BTreeSet::new(), counts: BTreeMap::new() }
    }

    /// Forgets nonces whose stamps are no longer acceptable.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        while let Some(&(last_ns, fingerprint, key_id)) = self.by_expiry.first()
            && last_ns < now_ns
        {
            self.by_expiry.pop_first();
            self.used.remove(&fingerprint);
            let count = self.counts.get_mut(&key_id).expect("a remembered nonce is counted");
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key_id);
            }
        }
    }

    /// Whether [`NonceCache::take`] would succeed.
    pub(crate) fn check(&self, key_id: KeyId, fingerprint: Fingerprint) -> Result<(), NonceRefusal> {
        if self.used.contains(&fingerprint) {
            Err(NonceRefusal::Used)
        } else if self.counts.get(&key_id).is_some_and(|&count| count >= self.per_key_max) {
            Err(NonceRefusal::KeyFull)
        } else if self.used.len() >= self.max {
            Err(NonceRefusal::Full)
        } else {
            Ok(())
        }
    }

    /// Remembers a nonce until `last_ns`, inclusive.
    pub(crate) fn take(&mut self, key_id: KeyId, fingerprint: Fingerprint, last_ns: u64) -> Result<(), NonceRefusal> {
        self.check(key_id, fingerprint)?;
        self.used.insert(fingerprint);
        self.by_expiry.insert((last_ns, fingerprint, key_id));
        *self.counts.entry(key_id).or_default() += 1;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_cache_refuses_until_something_expires() {
        let [a, b] = ["hm_a", "hm_b"].map(|id| KeyId::new(id).unwrap());
        let of = |key, nonce: u64| Fingerprint::of(key, &nonce.to_string());
        let mut cache = NonceCache::new(2, 3);
        for nonce in [1, 2] {
            cache.take(a, of(a, nonce), 10 + nonce).unwrap();
        }
        assert_eq!(cache.take(a, of(a, 1), 99), Err(NonceRefusal::Used));
        assert_eq!(cache.take(a, of(a, 3), 99), Err(NonceRefusal::KeyFull));
        // The same nonce of another key does not count as used.
        cache.take(b, of(b, 1), 5).unwrap();
        assert_eq!(cache.take(b, of(b, 2), 99), Err(NonceRefusal::Full));
        cache.expire(5);
        assert_eq!(cache.check(b, of(b, 1)), Err(NonceRefusal::Used));
        cache.expire(6);
        assert_eq!(cache.check(b, of(b, 1)), Ok(()));
        assert_eq!(cache.take(a, of(a, 3), 99), Err(NonceRefusal::KeyFull));
        cache.expire(12);
        cache.take(a, of(a, 3), 99).unwrap();
        cache.expire(u64::MAX);
        assert_eq!((cache.len(), cache.by_expiry.len(), cache.counts.len()), (0, 0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_is_taken_twice_while_it_lasts(takes in prop::collection::vec((0u8..3, 0u8..8, 0u64..20, 0u64..4), 1..200)) {
            let keys = ["hm_a", "hm_b", "ed_a"].map(|id| KeyId::new(id).unwrap());
            let mut cache = NonceCache::new(5, 9);
            let mut naive: Vec<(usize, u8, u64)> = Vec::new();
            let mut now_ns = 0;
            for (key, nonce, lasts, step) in takes {
                now_ns += step;
                cache.expire(now_ns);
                naive.retain(|&(_, _, last_ns)| last_ns >= now_ns);
                let key = usize::from(key);
                let expected = if naive.iter().any(|&(k, n, _)| (k, n) == (key, nonce)) {
                    Err(NonceRefusal::Used)
                } else if naive.iter().filter(|&&(k, ..)| k == key).count() >= 5 {
                    Err(NonceRefusal::KeyFull)
                } else if naive.len() >= 9 {
                    Err(NonceRefusal::Full)
                } else {
                    naive.push((key, nonce, now_ns + lasts));
                    Ok(())
                };
                let fingerprint = Fingerprint::of(keys[key], &nonce.to_string());
                prop_assert_eq!(cache.take(keys[key], fingerprint, now_ns + lasts), expected);
                prop_assert_eq!(cache.len(), naive.len());
            }
        }
    }
}
