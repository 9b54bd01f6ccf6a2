//! What a light header has by its roots, proven: a price, a trade, what came to a transaction or an offer.

use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair, PairTrade};
use walras_merkle::{ASSET_KEY_BYTES, Claim, Entries, OUTCOME_KEY_BYTES, PAIR_KEY_BYTES, Trie, TrieProof, trie_proof_bytes_max};
use walras_types::{Amount, BatchPrice, OfferName};

use super::{LightBlock, LightError, LightPart, OUTCOME, PRICE, Reader, TRADE, VERSION};
use crate::header::{BlockHeader, TRADE_BYTES};
use crate::outcomes::{BlockOutcome, OUTCOME_BYTES_MAX, Outcomes, outcome_hash, outcome_key};

/// No statement about a price has more bytes.
pub const PRICE_STATEMENT_BYTES_MAX: usize = 3 + 8 + trie_proof_bytes_max(ASSET_KEY_BYTES);
/// No statement about a trade has more bytes.
pub const TRADE_STATEMENT_BYTES_MAX: usize = 3 + TRADE_BYTES + trie_proof_bytes_max(PAIR_KEY_BYTES);
/// No statement about an outcome has more bytes.
pub const OUTCOME_STATEMENT_BYTES_MAX: usize = 3 + OUTCOME_BYTES_MAX + trie_proof_bytes_max(OUTCOME_KEY_BYTES);

impl LightBlock {
    /// The price of an asset in the block; `None` when it has none.
    ///
    /// # Errors
    /// [`LightError::UnknownAsset`], [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`],
    /// [`LightError::Impossible`].
    pub fn price(&self, asset: AssetIndex, statement: &[u8]) -> Result<Option<BatchPrice>, LightError> {
        const PART: LightPart = LightPart::Price;
        if !self.header.pairs.has_asset(asset) {
            return Err(LightError::UnknownAsset(asset));
        }
        let mut reader = Reader::of(statement, PRICE, PRICE_STATEMENT_BYTES_MAX, PART)?;
        let value = read_value::<8>(&mut reader)?;
        let claim = value.as_ref().map_or(Claim::Absent, |value| Claim::Is(value));
        check(reader, &asset.0.to_be_bytes(), claim, &self.header.prices)?;
        let read = |bits| BatchPrice::from_bits(u64::from_le_bytes(bits)).ok().filter(|price| !price.is_zero());
        value.map(|bits| read(bits).ok_or(LightError::Impossible)).transpose()
    }

    /// What a pair traded in the block, and the last offer that did; `None` when nothing was traded.
    ///
    /// # Errors
    /// [`LightError::UnknownPair`], [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`],
    /// [`LightError::Impossible`].
    pub fn trade(&self, pair: Pair, statement: &[u8]) -> Result<Option<(PairTrade, OfferKey)>, LightError> {
        const PART: LightPart = LightPart::Trade;
        let number = self.number(pair)?;
        let mut reader = Reader::of(statement, TRADE, TRADE_STATEMENT_BYTES_MAX, PART)?;
        let value = read_value::<TRADE_BYTES>(&mut reader)?;
        let claim = value.as_ref().map_or(Claim::Absent, |value| Claim::Is(value));
        check(reader, &number.to_be_bytes(), claim, &self.header.trades)?;
        value.map(|value| read_trade(pair, &value).ok_or(LightError::Impossible)).transpose()
    }

    /// What came in the block to a transaction in it, or to an offer that an earlier one created; `None` when the block has no such
    /// transaction, and neither traded nor ended such an offer.
    ///
    /// # Errors
    /// [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`], [`LightError::Impossible`].
    pub fn outcome(&self, name: OfferName, statement: &[u8]) -> Result<Option<BlockOutcome>, LightError> {
        const PART: LightPart = LightPart::Outcome;
        // A name beyond the limits would be taken for another one.
        if !name.is_possible() {
            return Err(LightError::NotProven);
        }
        let mut reader = Reader::of(statement, OUTCOME, OUTCOME_STATEMENT_BYTES_MAX, PART)?;
        let length = usize::from(reader.byte()?);
        let content = reader.take(length)?;
        let hash = outcome_hash(content);
        // No outcome is of no bytes.
        let claim = if content.is_empty() { Claim::Absent } else { Claim::Is(&hash) };
        check(reader, &outcome_key(name), claim, &self.header.outcomes)?;
        match claim {
            Claim::Absent => Ok(None),
            Claim::Is(_) => BlockOutcome::read(name, content).ok_or(LightError::Impossible).map(Some),
        }
    }
}

/// What a statement says is there: `0`, or `1` and the bytes.
fn read_value<const N: usize>(reader: &mut Reader<'_>) -> Result<Option<[u8; N]>, LightError> {
    match reader.byte()? {
        0 => Ok(None),
        1 => reader.array().map(Some),
        _ => Err(LightError::Malformed(reader.part)),
    }
}

/// Whether the rest of a statement is the proof of a claim under a root.
fn check<const KEY: usize>(reader: Reader<'_>, key: &[u8; KEY], claim: Claim<'_>, root: &[u8; 32]) -> Result<(), LightError> {
    let part = reader.part;
    let proof = TrieProof::<KEY>::decode(reader.rest()).map_err(|error| LightError::of_proof(error, part))?;
    let found = proof.root(key, claim).map_err(|error| LightError::of_proof(error, part))?;
    if found.0 == *root { Ok(()) } else { Err(LightError::NotProven) }
}

fn read_trade(pair: Pair, value: &[u8; TRADE_BYTES]) -> Option<(PairTrade, OfferKey)> {
    let (numbers, _) = value.as_chunks::<8>();
    let number = |at: usize| u64::from_le_bytes(numbers[at]);
    let sold = Amount::new(number(0)).filter(|sold| !sold.is_zero())?;
    let key = OfferKey { limit: BatchPrice::from_bits(number(1)).ok()?, tie: number(2), id: OfferId(number(3)) };
    Some((PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO }, key))
}

impl BlockHeader {
    /// The price of an asset, or that it has none, with the proof of it: `version u8 | kind u8 | 0, or 1 and the price u64`, and a
    /// [`TrieProof`]. `None` when the market has no such asset.
    #[must_use]
    pub fn price_statement(&self, asset: AssetIndex) -> Option<Vec<u8>> {
        self.prices.get(asset.index())?;
        Some(statement(PRICE, &self.price_entries(), &asset.0.to_be_bytes()))
    }

    /// What a pair traded, or that it did not, with the proof of it: `version u8 | kind u8 | 0, or 1 and sold u64, limit u64, tie
    /// u64, id u64`, and a [`TrieProof`]. `None` when the market has no such pair.
    #[must_use]
    pub fn trade_statement(&self, pair: Pair) -> Option<Vec<u8>> {
        let key = self.pairs.number(pair)?.to_be_bytes();
        Some(statement(TRADE, &self.trade_entries(), &key))
    }
}

fn statement<const KEY: usize, const VALUE: usize>(kind: u8, entries: &[([u8; KEY], [u8; VALUE])], key: &[u8; KEY]) -> Vec<u8>
where
    [([u8; KEY], [u8; VALUE])]: Entries<KEY>,
{
    let mut bytes = vec![VERSION, kind];
    match entries.binary_search_by_key(key, |(key, _)| *key) {
        Err(_) => bytes.push(0),
        Ok(at) => {
            bytes.push(1);
            bytes.extend_from_slice(&entries[at].1);
        }
    }
    bytes.extend_from_slice(&Trie::build(entries).prove(entries, key).encode());
    bytes
}

impl Outcomes {
    /// What came under a name, or that nothing did, with the proof of it: `version u8 | kind u8 | length u8 | bytes`, which are
    /// none where there is nothing, and a [`TrieProof`].
    #[must_use]
    pub fn statement(&self, name: OfferName) -> Vec<u8> {
        let content = self.content_of(name).unwrap_or_default();
        const { assert!(OUTCOME_BYTES_MAX <= u8::MAX as usize) }
        [&[VERSION, OUTCOME, content.len() as u8][..], content, &self.prove(name).encode()].concat()
    }
}
