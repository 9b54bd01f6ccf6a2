//! Listen keys: names under which an account's stream is opened, good for an hour after they were last used.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use walras_types::AccountId;

/// How long one is good for.
const GOOD_FOR_MS: u64 = 3_600_000;
/// Listen keys at a time.
const LISTEN_KEYS_MAX: usize = 1 << 14;

#[derive(Clone, Debug)]
struct Entry {
    account: AccountId,
    api_key: String,
    until_ms: u64,
}

/// The listen keys of this node. Another one does not know them.
#[derive(Debug, Default)]
pub(crate) struct ListenKeys(Mutex<HashMap<String, Entry>>);

impl ListenKeys {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listen key of an API key: the one that it has, which is good for another hour, or a new one. `None` where there are too many.
    pub(crate) fn open(&self, now_ms: u64, account: AccountId, api_key: &str) -> Option<String> {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.until_ms > now_ms);
        let until_ms = now_ms + GOOD_FOR_MS;
        if let Some((listen_key, entry)) = entries.iter_mut().find(|(_, entry)| entry.api_key == api_key) {
            entry.until_ms = until_ms;
            return Some(listen_key.clone());
        }
        if entries.len() >= LISTEN_KEYS_MAX {
            return None;
        }
        let bytes: [u8; 32] = walras_access::random_bytes();
        let listen_key: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.insert(listen_key.clone(), Entry { account, api_key: api_key.to_owned(), until_ms });
        Some(listen_key)
    }

    /// Makes it good for another hour, if it is one of that API key.
    pub(crate) fn keep(&self, now_ms: u64, listen_key: &str, api_key: &str) -> bool {
        let mut entries = self.entries();
        let known = entries.get_mut(listen_key).filter(|entry| entry.until_ms > now_ms && entry.api_key == api_key);
        known.map(|entry| entry.until_ms = now_ms + GOOD_FOR_MS).is_some()
    }

    /// Ends it, if it is one of that API key.
    pub(crate) fn close(&self, listen_key: &str, api_key: &str) -> bool {
        let mut entries = self.entries();
        let is_own = entries.get(listen_key).is_some_and(|entry| entry.api_key == api_key);
        is_own && entries.remove(listen_key).is_some()
    }

    /// The account and the API key of one that is good.
    pub(crate) fn of(&self, now_ms: u64, listen_key: &str) -> Option<(AccountId, String)> {
        let entries = self.entries();
        let entry = entries.get(listen_key).filter(|entry| entry.until_ms > now_ms)?;
        Some((entry.account, entry.api_key.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_good_for_an_hour_and_its_own_key_only() {
        let keys = ListenKeys::default();
        let one = keys.open(0, AccountId(1), "hm_a").unwrap();
        assert_eq!(keys.open(5, AccountId(1), "hm_a").unwrap(), one);
        assert!(keys.keep(10, &one, "hm_a") && !keys.keep(10, &one, "hm_b") && !keys.close(&one, "hm_b"));
        assert_eq!(keys.of(9 + GOOD_FOR_MS, &one), Some((AccountId(1), "hm_a".to_owned())));
        assert_eq!(keys.of(10 + GOOD_FOR_MS, &one), None);
        assert_ne!(keys.open(10 + GOOD_FOR_MS, AccountId(1), "hm_a").unwrap(), one);
        assert!(keys.open(0, AccountId(1), "hm_c").is_some_and(|other| keys.close(&other, "hm_c")));
    }
}
