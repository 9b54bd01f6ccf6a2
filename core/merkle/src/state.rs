//! Roots of roots: one for all pairs of a market, one for the state.

use crate::digest::{Content, Digest, Domain};
use crate::proof::{Claim, ProofError, Reader, VERSION, must};
use crate::trie::{Entries, Trie};
use crate::trie_proof::TrieProof;

/// Bytes of an offer's key: effective limit (8) | tie-break (8) | id (8), each with its highest byte first.
pub const OFFER_KEY_BYTES: usize = 24;

/// Bytes of a pair's key in the trie over a market's pairs: its index, highest byte first.
pub const PAIR_KEY_BYTES: usize = 4;

/// Bytes of an account's key in a trie: its number, highest byte first.
pub const ACCOUNT_KEY_BYTES: usize = 4;

/// Bytes of a key in the trie over what came to transactions and offers in a block: account * 2^38 + number, highest byte first.
pub const OUTCOME_KEY_BYTES: usize = 8;

/// Bytes of an asset's key in the trie over a block's prices: its number in the market, highest byte first.
pub const ASSET_KEY_BYTES: usize = 2;

/// The key of an offer in the trie over a pair's offers; keys order as (limit, tie, id) do.
#[must_use]
#[inline]
pub fn offer_key(limit_bits: u64, tie: u64, id: u64) -> [u8; OFFER_KEY_BYTES] {
    let mut key = [0; OFFER_KEY_BYTES];
    for (place, number) in key.chunks_exact_mut(8).zip([limit_bits, tie, id]) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    key
}

/// A pair of a market that has offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRoot {
    /// Its index among the market's pairs, whatever numbers those.
    pub pair: u32,
    /// The root of the trie over its offers.
    pub root: Digest,
}

/// Pairs in ascending order, only those that have offers. `Trie::<PAIR_KEY_BYTES>` over them gives the root of a market's offers.
impl Entries<PAIR_KEY_BYTES> for [PairRoot] {
    fn count(&self) -> usize {
        self.len()
    }

    fn key(&self, place: usize) -> [u8; PAIR_KEY_BYTES] {
        self[place].pair.to_be_bytes()
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        value.put(&self[place].root.0);
    }
}

/// All that the state after a block consists of. Its root is H(state root, accounts | touched | header | for each market: id (2) | its root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRoots<'a> {
    /// Of [`crate::AccountTree`].
    pub accounts: Digest,
    /// Of the trie over the accounts that the block touched.
    pub touched: Digest,
    /// The hash of the block's header.
    pub header: Digest,
    /// Of the trie over the pairs of each market, by the market's id, ascending.
    pub markets: &'a [(u16, Digest)],
}

impl StateRoots<'_> {
    /// The root of the state.
    #[must_use]
    pub fn root(&self) -> Digest {
        let mut input = Vec::with_capacity(96 + self.markets.len() * 34);
        for part in [self.accounts, self.touched, self.header] {
            input.extend_from_slice(&part.0);
        }
        for (market, root) in self.markets {
            input.extend_from_slice(&market.to_le_bytes());
            input.extend_from_slice(&root.0);
        }
        Digest(Domain::State.hash(&input))
    }
}

/// The kind of proof, after the version.
const KIND: u8 = 3;

/// A proof of what a market has under a pair and an offer's key: the pair in the market, the offer in the pair.
///
/// Bytes: version (1) | kind (1) | length of the pair's proof (4) | the pair's proof | the offer's proof, which is left out where the market has
/// no offers of the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferProof {
    pair: TrieProof<PAIR_KEY_BYTES>,
    offer: Option<TrieProof<OFFER_KEY_BYTES>>,
}

impl OfferProof {
    /// A proof about an offer: `pairs` is the trie over `roots`, `offers` that over the offers of the pair and those offers, `None` where it
    /// has none.
    #[must_use]
    pub fn new<E: Entries<OFFER_KEY_BYTES> + ?Sized>(
        (pairs, roots): (&Trie<PAIR_KEY_BYTES>, &[PairRoot]),
        pair: u32,
        offers: Option<(&Trie<OFFER_KEY_BYTES>, &E)>,
        key: &[u8; OFFER_KEY_BYTES],
    ) -> Self {
        let offer = offers.filter(|(trie, _)| trie.entry_count() > 0).map(|(trie, entries)| trie.prove(entries, key));
        Self { pair: pairs.prove(roots, &pair.to_be_bytes()), offer }
    }

    /// The root of the market's pairs in which a claim about an offer holds, by this proof.
    ///
    /// # Errors
    /// [`ProofError::Mismatch`] when it is no proof of such a claim about this offer.
    pub fn root(&self, pair: u32, key: &[u8; OFFER_KEY_BYTES], claim: Claim<'_>) -> Result<Digest, ProofError> {
        match (&self.offer, claim) {
            (Some(offer), claim) => self.pair.root(&pair.to_be_bytes(), Claim::Is(&offer.root(key, claim)?.0)),
            (None, Claim::Absent) => self.pair.root(&pair.to_be_bytes(), Claim::Absent),
            (None, Claim::Is(_)) => Err(ProofError::Mismatch),
        }
    }

    /// As bytes, see [`OfferProof`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let pair = self.pair.encode();
        let mut bytes = vec![VERSION, KIND];
        bytes.extend_from_slice(&u32::try_from(pair.len()).expect("a proof is short").to_le_bytes());
        bytes.extend_from_slice(&pair);
        bytes.extend(self.offer.iter().flat_map(TrieProof::encode));
        bytes
    }

    /// Of bytes. What it returns need not be true: see [`verify_offer`].
    ///
    /// # Errors
    /// [`ProofError::UnknownVersion`], [`ProofError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut reader = Reader::of(bytes, KIND)?;
        let length = reader.u32()? as usize;
        let pair = TrieProof::decode(reader.take(length)?)?;
        let rest = reader.rest();
        let offer = if rest.is_empty() { None } else { Some(TrieProof::decode(rest)?) };
        // Pairs without offers are not in the trie of pairs.
        must(offer.as_ref().is_none_or(|offer| offer.entry_count() > 0))?;
        Ok(Self { pair, offer })
    }
}

/// Checks an encoded proof of a claim about an offer, against the root of a market's pairs. An offer's content is the value of its entry.
///
/// # Errors
/// See [`ProofError`].
pub fn verify_offer(
    root: &Digest,
    pair: u32,
    key: &[u8; OFFER_KEY_BYTES],
    claim: Claim<'_>,
    proof: &[u8],
) -> Result<(), ProofError> {
    let found = OfferProof::decode(proof)?.root(pair, key, claim)?;
    if found == *root { Ok(()) } else { Err(ProofError::Mismatch) }
}
