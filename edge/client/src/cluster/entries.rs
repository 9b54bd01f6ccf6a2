//! Log entries; each may be named once.

use walras_types::LogIndex;

/// A set of entries, as bits: a load is answered by millions.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The first that there is room for.
    from: Option<u64>,
    words: Vec<u64>,
}

/// Sessions are answered independently: an entry may be named at most this many entries after a later one.
const BEHIND_MAX: u64 = 1 << 20;

impl Entries {
    /// Whether it is new.
    pub(super) fn insert(&mut self, entry: LogIndex) -> bool {
        let from = *self.from.get_or_insert(entry.0.saturating_sub(BEHIND_MAX));
        let Some(place) = entry.0.checked_sub(from) else { return false };
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        if self.words.len() <= word {
            self.words.resize(word + word / 2 + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_once() {
        let mut entries = Entries::default();
        for index in [5_000_000, 4_000_001, 5_000_001, 9_000_000] {
            assert!(entries.insert(LogIndex(index)) && !entries.insert(LogIndex(index)), "{index}");
        }
        assert!(!entries.insert(LogIndex(1)), "far behind all that is waited for");
    }
}
