//! Names of API keys.

use crate::key::Algorithm;
use crate::limits::KEY_ID_LEN_MAX;

/// The public name of an API key: `ed_`, `hm_` or `rs_` for its algorithm, then 1 to 29 characters of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId {
    bytes: [u8; KEY_ID_LEN_MAX],
    len: u8,
}

impl KeyId {
    /// Parses a name; `None` when its prefix, length or characters are not as documented.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let name = Algorithm::ALL.into_iter().find_map(|algorithm| text.strip_prefix(algorithm.prefix()))?;
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if name.is_empty() || text.len() > KEY_ID_LEN_MAX || !name.bytes().all(allowed) {
            return None;
        }
        let mut bytes = [0; KEY_ID_LEN_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes, len: u8::try_from(text.len()).ok()? })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("a key id holds only ASCII")
    }

    /// The algorithm that its prefix names.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        let named = Algorithm::ALL.into_iter().find(|algorithm| self.as_str().starts_with(algorithm.prefix()));
        named.expect("a key id begins with a prefix")
    }
}

impl std::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyId({})", self.as_str())
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_their_algorithm_and_hold_only_what_they_may() {
        assert_eq!(KeyId::new("ed_a-B_9").map(|id| id.algorithm()), Some(Algorithm::Ed25519));
        assert_eq!(KeyId::new("hm_demo").map(|id| id.to_string()), Some("hm_demo".into()));
        assert!(KeyId::new(&format!("hm_{}", "x".repeat(29))).is_some());
        for bad in ["", "hm_", "ed_", "demo", "HM_demo", "hm_a.b", "hm_a b", "hm_ä", "hm_a\n", &format!("hm_{}", "x".repeat(30))] {
            assert_eq!(KeyId::new(bad), None, "{bad:?}");
        }
    }
}
