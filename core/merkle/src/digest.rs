//! Hashes, and the one place where bytes are hashed.

/// A BLAKE3 hash.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Digest(pub [u8; DIGEST_BYTES]);

/// Bytes of a [`Digest`].
pub const DIGEST_BYTES: usize = 32;

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// What is hashed. Each has a key of its own (BLAKE3's keyed mode, with public keys), so that the bytes of one never pass for those of
/// another, at no cost in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Domain {
    AccountLeaf,
    AccountNode,
    AccountRoot,
    TrieNode,
    TrieRoot,
    State,
}

impl Domain {
    pub(crate) const fn key(self) -> &'static [u8; 32] {
        match self {
            Self::AccountLeaf => b"walras merkle 1 account leaf    ",
            Self::AccountNode => b"walras merkle 1 account node    ",
            Self::AccountRoot => b"walras merkle 1 account root    ",
            Self::TrieNode => b"walras merkle 1 trie node       ",
            Self::TrieRoot => b"walras merkle 1 trie root       ",
            Self::State => b"walras merkle 1 state root      ",
        }
    }

    #[inline]
    pub(crate) fn hash(self, bytes: &[u8]) -> [u8; DIGEST_BYTES] {
        *blake3::keyed_hash(self.key(), bytes).as_bytes()
    }
}

/// Takes the bytes that stand for an account or for the value of an entry. Whoever writes them sees to it that different contents have
/// different bytes.
#[derive(Debug)]
pub struct Content<'a>(pub(crate) &'a mut Vec<u8>);

impl Content<'_> {
    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
