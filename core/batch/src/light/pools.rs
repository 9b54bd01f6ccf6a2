//! Pools and their providers, proven.

use walras_clearing::{AssetIndex, Pool, PoolSide};
use walras_merkle::{Claim, OFFER_KEY_BYTES, OfferProof, PAIR_KEY_BYTES, trie_proof_bytes_max};
use walras_types::{AccountId, Amount, OfferName, PoolRule};

use super::{LightBlock, LightError, LightPart, POOL, Reader, VERSION};
use crate::batch::Batch;
use crate::pool_entries::{POOL_BYTES, POOLS_NUMBER, SHARES_BYTES, pool_content, pool_key, provider_key};
use crate::pools::PoolView;

/// No statement about a pool or a provider has more bytes.
pub const POOL_STATEMENT_BYTES_MAX: usize =
    3 + POOL_BYTES + 6 + trie_proof_bytes_max(PAIR_KEY_BYTES) + trie_proof_bytes_max(OFFER_KEY_BYTES);

impl LightBlock {
    /// What a pool was when the block ended; `None` when there was no such pool.
    ///
    /// # Errors
    /// [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`], [`LightError::Impossible`].
    pub fn pool(&self, name: OfferName, statement: &[u8]) -> Result<Option<PoolView>, LightError> {
        let content = self.pool_entry::<POOL_BYTES>(name, &pool_key(name), statement)?;
        content.map(|content| self.read_pool(name, &content).ok_or(LightError::Impossible)).transpose()
    }

    /// An account's shares of a pool when the block ended: none when it had none, or when there was no such pool.
    ///
    /// # Errors
    /// As [`Self::pool`].
    pub fn pool_shares(&self, name: OfferName, account: AccountId, statement: &[u8]) -> Result<Amount, LightError> {
        let content = self.pool_entry::<SHARES_BYTES>(name, &provider_key(name, account), statement)?;
        let Some(content) = content else { return Ok(Amount::ZERO) };
        Amount::new(u64::from_le_bytes(content)).filter(|shares| !shares.is_zero()).ok_or(LightError::Impossible)
    }

    fn pool_entry<const N: usize>(
        &self,
        name: OfferName,
        key: &[u8; OFFER_KEY_BYTES],
        statement: &[u8],
    ) -> Result<Option<[u8; N]>, LightError> {
        const PART: LightPart = LightPart::Pool;
        // A name beyond the limits would be taken for another one.
        if !name.is_possible() {
            return Err(LightError::NotProven);
        }
        let mut reader = Reader::of(statement, POOL, POOL_STATEMENT_BYTES_MAX, PART)?;
        let length = usize::from(reader.byte()?);
        reader.must(length == 0 || length == N)?;
        let content = if length == 0 { None } else { Some(reader.array::<N>()?) };
        let proof = OfferProof::decode(reader.rest()).map_err(|error| LightError::of_proof(error, PART))?;
        let claim = content.as_ref().map_or(Claim::Absent, |content| Claim::Is(content));
        let found = proof.root(POOLS_NUMBER, key, claim).map_err(|error| LightError::of_proof(error, PART))?;
        if found == self.offers { Ok(content) } else { Err(LightError::NotProven) }
    }

    fn read_pool(&self, name: OfferName, content: &[u8; POOL_BYTES]) -> Option<PoolView> {
        let number = |at: usize, bytes: usize| {
            let mut number = [0; 8];
            number[..bytes].copy_from_slice(&content[at..at + bytes]);
            u64::from_le_bytes(number)
        };
        // Each has as many bytes as its type.
        let assets = [0, 2].map(|at| AssetIndex(number(at, 2) as u16));
        let rule = PoolRule::of_parts(content[4], number(5, 4) as u32)?;
        let amount = |at: usize| Amount::new(number(at, 8)).filter(|amount| !amount.is_zero());
        let pool = Pool { assets, rule, reserves: [amount(13)?, amount(21)?], fee_ppm: number(9, 4) as u32 };
        let is_pool = self.header.pairs.has(pool.pair(PoolSide::First));
        (is_pool && pool.fee_ppm < 1_000_000).then_some(PoolView { name, pool, shares: amount(29)? })
    }
}

impl Batch {
    /// A pool since the last block, or one account's shares of it, or that there is no such, with the proof of it: `version u8 | kind u8 |
    /// length u8 | content`, which is empty where there is none, and a [`walras_merkle::OfferProof`]. `None` as [`Self::prove_offer`].
    #[must_use]
    pub fn pool_statement(&self, name: OfferName, provider: Option<AccountId>) -> Option<Vec<u8>> {
        let (key, content) = match provider {
            None => {
                let content = self.pool(name).map(|view| pool_content(&view.pool, view.shares).to_vec());
                (pool_key(name), content)
            }
            Some(account) => {
                let shares = Some(self.pool_shares(name, account)).filter(|shares| !shares.is_zero());
                (provider_key(name, account), shares.map(|shares| shares.get().to_le_bytes().to_vec()))
            }
        };
        let (proof, content) = (self.prove_pool(&key)?.encode(), content.unwrap_or_default());
        const { assert!(POOL_BYTES <= u8::MAX as usize) }
        Some([&[VERSION, POOL, content.len() as u8][..], &content, &proof].concat())
    }
}
