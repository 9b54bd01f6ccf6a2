//! Many entries in one slot: replication pays per slot, so commands that wait together travel together.
//!
//! ```text
//! count u32, then for each entry: length u32, bytes          all little-endian
//! ```

use bytes::Bytes;

const COUNT_BYTES: usize = 4;

/// Entries that are proposed, logged and committed together. It is its own encoding, so packing copies each entry once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for Pack {
    fn default() -> Self {
        Self::new()
    }
}

impl Pack {
    /// Without entries.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: vec![0; COUNT_BYTES], count: 0 }
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        let len = u32::try_from(entry.len()).expect("an entry is far shorter than 4 GiB: a pack has a size limit");
        self.count += 1;
        self.bytes[..COUNT_BYTES].copy_from_slice(&self.count.to_le_bytes());
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(entry);
    }

    /// Entries in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that it takes in the log.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Its encoding, as [`crate::Body::Pack`] holds it.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// A [`Pack`] that came out of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    bytes: Bytes,
    count: u32,
}

impl Packed {
    /// Checks the whole of it; `None` when it is not exactly the encoding of a pack with at least one entry.
    #[must_use]
    pub fn decode(bytes: Bytes) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count);
        for _ in 0..count {
            let (len, entry_on) = rest.split_first_chunk::<4>()?;
            rest = entry_on.get(u32::from_le_bytes(*len) as usize..)?;
        }
        (count > 0 && rest.is_empty()).then_some(Self { bytes, count })
    }

    /// Entries in it, at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// The entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[COUNT_BYTES..];
        std::iter::from_fn(move || {
            let (len, entry_on) = rest.split_first_chunk::<4>()?;
            let (entry, after) = entry_on.split_at(u32::from_le_bytes(*len) as usize);
            rest = after;
            Some(entry)
        })
    }

    /// The encoding.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 1..9), cut in 1_usize..9) {
            let mut pack = Pack::new();
            for entry in &entries {
                pack.push(entry);
            }
            let bytes = pack.into_bytes();
            let packed = Packed::decode(bytes.clone()).unwrap();
            prop_assert_eq!(packed.entries().collect::<Vec<_>>(), entries);
            prop_assert_eq!(Packed::decode(bytes.slice(..bytes.len() - cut.min(bytes.len()))), None);
            let mut longer = bytes.to_vec();
            longer.push(0);
            prop_assert_eq!(Packed::decode(longer.into()), None);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..40)) {
            if let Some(packed) = Packed::decode(bytes.clone().into()) {
                let mut again = Pack::new();
                packed.entries().for_each(|entry| again.push(entry));
                prop_assert_eq!(again.into_bytes(), bytes);
            }
        }
    }
}
