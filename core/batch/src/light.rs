//! What a client checks that keeps no state: blocks against a hash that it trusts, accounts and offers against a block.
//!
//! [`LightBlock::open`] is the door: from then on everything is checked against that block. [`open_chain`] goes back from a block to an earlier one.
//! Whoever keeps the state writes what they read ([`Cleared::light_roots`], [`Accounts::statement`], [`Batch::offer_statement`]); anybody may
//! hand it over. `docs/light-client.md` describes the bytes for programs in any language.
//!
//! Reading never panics, allocates in proportion to the bytes, and takes one encoding of everything.
//!
//! ```
//! # use std::num::NonZero;
//! # use walras_batch::{Accounts, Batch, BatchSettings, Intake, ProposedClearing, QualityMax};
//! # use walras_clearing::{Edition, LowerBounds, Rules};
//! # use walras_ledger::Ledger;
//! # use walras_types::{AccountId, Amount, AssetId, BatchMarketId, Commission, Mu};
//! # let (mut ledger, mut accounts, one) = (Ledger::new(), Accounts::new(), NonZero::<usize>::MIN);
//! # let assets = vec![ledger.create_asset()?, ledger.create_asset()?];
//! # let (anna, units) = (ledger.create_account()?, Amount::new(70).ok_or("too much")?);
//! # ledger.deposit(anna, AssetId(1), units)?;
//! # let (edition, commission, lower_bounds) = (Edition::NEWEST, Commission::NONE, LowerBounds::BestEffort);
//! # let rules = Rules { edition, commission, mu: Mu::new(10).ok_or("no mu")?, lower_bounds };
//! # let (market, quality, currencies, account_fee) = (BatchMarketId(0), QualityMax::NONE, None, None);
//! # let mut batch = Batch::new(BatchSettings { market, assets, currencies, rules, quality, account_fee })?;
//! # batch.close(&mut ledger, &mut accounts, &[], Intake::Filter, one)?;
//! # let block = ProposedClearing::of_nothing(batch.market());
//! use walras_batch::light::{LightBlock, LightError};
//!
//! // Whoever keeps the state: `anna` has 70 units of asset 1.
//! let cleared = batch.clear(&mut ledger, &mut accounts, &block, one)?;
//! let (trusted, header, roots) = (cleared.roots.state, cleared.header.light().bytes(), cleared.light_roots());
//! let statement = accounts.statement(&ledger, anna, &cleared.roots).ok_or("something moved since the block")?;
//! let nobody = accounts.statement(&ledger, AccountId(9), &cleared.roots).ok_or("something moved since the block")?;
//!
//! // Whoever does not, and trusts those 32 bytes alone:
//! let block = LightBlock::open(&trusted, &header, &roots)?;
//! let account = block.account(anna, &statement)?.ok_or("no such account")?;
//! assert_eq!(account.balance(AssetId(1)).available, units);
//! assert_eq!(block.account(AccountId(9), &nobody)?, None);
//! assert_eq!(block.account(anna, &nobody), Err(LightError::NotProven));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod header;
mod parts;
mod pools;

use std::fmt;

use walras_clearing::{AssetIndex, Offer, OfferKey, Pair};
use walras_ledger::Ledger;
use walras_merkle::{
    AccountProof, Claim, Digest, OFFER_KEY_BYTES, OfferProof, PAIR_KEY_BYTES, ProofError, StateRoots, trie_proof_bytes_max,
};
use walras_types::limits::{ASSETS_MAX, BATCH_ASSETS_MAX, BATCH_PAIRS_MAX};
use walras_types::{AccountId, Amount, BatchMarketId, BatchPrice};

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::clear::Cleared;
use crate::header::{BlockHeader, FULL_HEADER, HEADER_BYTES_LEAST, LightHeader, VERSION};
use crate::proposed::Roots;
use crate::trees::trie_key;

pub use account::AccountState;
pub use parts::{OUTCOME_STATEMENT_BYTES_MAX, PRICE_STATEMENT_BYTES_MAX, TRADE_STATEMENT_BYTES_MAX};
pub use pools::POOL_STATEMENT_BYTES_MAX;

/// The second byte of roots and statements; kinds below 4 are those of `walras_merkle`, 10 and 11 those of headers.
const ROOTS: u8 = 4;
const ACCOUNT: u8 = 5;
const OFFER: u8 = 6;
const OUTCOME: u8 = 7;
const PRICE: u8 = 8;
const TRADE: u8 = 9;
const POOL: u8 = 12;

/// Bytes of a hash.
const HASH: usize = 32;

/// No header has more bytes.
pub const HEADER_BYTES_MAX: usize = HEADER_BYTES_LEAST + 8 * BATCH_ASSETS_MAX + 36 * BATCH_PAIRS_MAX;
/// No roots have more bytes.
pub const ROOTS_BYTES_MAX: usize = 2 + 2 * HASH + (2 + HASH) * (1 << 16);
/// No statement about an account has more bytes: all that it can have, and the siblings on its way.
pub const ACCOUNT_STATEMENT_BYTES_MAX: usize = 6 + 45 + 19 * ASSETS_MAX as usize + 6 + 8 * 15 * HASH;
/// No statement about an offer has more bytes.
pub const OFFER_STATEMENT_BYTES_MAX: usize =
    3 + 16 + 6 + trie_proof_bytes_max(PAIR_KEY_BYTES) + trie_proof_bytes_max(OFFER_KEY_BYTES);

/// What was to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LightPart {
    /// A block's header.
    Header,
    /// A block's roots.
    Roots,
    /// A statement about an account.
    Account,
    /// A statement about an offer.
    Offer,
    /// A statement about a transaction's or an offer's outcome.
    Outcome,
    /// A statement about a price.
    Price,
    /// A statement about a trade.
    Trade,
    /// A statement about a pool or a provider's shares of it.
    Pool,
}

impl fmt::Display for LightPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "a header",
            Self::Roots => "a block's roots",
            Self::Account => "a statement about an account",
            Self::Offer => "a statement about an offer",
            Self::Outcome => "a statement about an outcome",
            Self::Price => "a statement about a price",
            Self::Trade => "a statement about a trade",
            Self::Pool => "a statement about a pool",
        })
    }
}

/// Why nothing is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LightError {
    /// The bytes are of a version that this code does not know.
    #[error("the bytes of {0} have version {1}, unknown here: update this program")]
    UnknownVersion(LightPart, u8),
    /// The bytes are nothing of the kind.
    #[error("the bytes are not {0}: ask for it again, or elsewhere")]
    Malformed(LightPart),
    /// Header and roots are those of another block.
    #[error("header and roots do not hash to the block that is trusted: ask for those of that block, or elsewhere")]
    OtherBlock,
    /// A statement about another account or offer, of another block, or untrue.
    #[error("the statement is not proven in this block: compare what is asked and which block, then ask elsewhere")]
    NotProven,
    /// It is proven, and no state can hold it.
    #[error("what is proven cannot be so: the block's proposer errs, so do not trust it")]
    Impossible,
    /// The market has fewer assets, or neither of the two is one of its currencies.
    #[error(
        "the market has no pair {0}: its assets are numbered from 0, as its configuration names them, and one of a pair is a currency"
    )]
    UnknownPair(Pair),
    /// Its number or its market is not that of the block before.
    #[error("the block is not the one right before: hand over each block from the newest back to the oldest")]
    NotBefore,
    /// The last block is another than the one asked for.
    #[error("the blocks go back to another block than the oldest asked for: hand over all of them, and none beyond")]
    OtherEnd,
    /// The market has fewer assets.
    #[error("the market has no asset {0}: its assets are numbered from 0, as its configuration names them")]
    UnknownAsset(AssetIndex),
}

impl LightError {
    /// The stable number of the reason.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::UnknownVersion(..) => 1,
            Self::Malformed(_) => 2,
            Self::OtherBlock => 3,
            Self::NotProven => 4,
            Self::Impossible => 5,
            Self::UnknownPair(_) => 6,
            Self::NotBefore => 7,
            Self::OtherEnd => 8,
            Self::UnknownAsset(_) => 9,
        }
    }

    fn of_proof(error: ProofError, part: LightPart) -> Self {
        match error {
            ProofError::UnknownVersion(version) => Self::UnknownVersion(part, version),
            ProofError::Malformed => Self::Malformed(part),
            ProofError::Mismatch => Self::NotProven,
        }
    }
}

/// A block whose header and roots hash to what its reader trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightBlock {
    hash: [u8; HASH],
    header: LightHeader,
    full: Option<BlockHeader>,
    accounts: Digest,
    offers: Digest,
}

impl LightBlock {
    /// The block of a hash that the caller trusts: the state root that a clearing gave ([`crate::Roots::state`]). The header is a
    /// light one ([`LightHeader::bytes`]) or a full one ([`BlockHeader::bytes`]).
    ///
    /// # Errors
    /// [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::OtherBlock`].
    pub fn open(trusted: &[u8; HASH], header: &[u8], roots: &[u8]) -> Result<Self, LightError> {
        let (header, full) = match header.get(1) {
            Some(&FULL_HEADER) => {
                let full = BlockHeader::decode(header)?;
                (full.light(), Some(full))
            }
            _ => (LightHeader::decode(header)?, None),
        };
        let RootsRead { accounts, touched, markets } = read_roots(roots)?;
        let state = StateRoots { accounts, touched, header: Digest(header.hash()), markets: &markets };
        if state.root().0 != *trusted {
            return Err(LightError::OtherBlock);
        }
        // Whoever hashes a block hashes the market that it is of.
        let of_market = markets.binary_search_by_key(&header.market.0, |(market, _)| *market);
        let offers = of_market.map(|at| markets[at].1).map_err(|_| LightError::Impossible)?;
        Ok(Self { hash: *trusted, header, full, accounts, offers })
    }

    /// Its hash.
    #[must_use]
    pub const fn hash(&self) -> &[u8; HASH] {
        &self.hash
    }

    /// What its hash is of: its place, its quality, and roots.
    #[must_use]
    pub const fn header(&self) -> &LightHeader {
        &self.header
    }

    /// All prices and trades, if it was opened from a full header.
    #[must_use]
    pub const fn full(&self) -> Option<&BlockHeader> {
        self.full.as_ref()
    }

    fn number(&self, pair: Pair) -> Result<u32, LightError> {
        self.header.pairs.number(pair).ok_or(LightError::UnknownPair(pair))
    }

    /// The block right before, whose hash this one names.
    ///
    /// # Errors
    /// As [`Self::open`], and [`LightError::NotBefore`].
    pub fn open_before(&self, header: &[u8], roots: &[u8]) -> Result<Self, LightError> {
        let before = Self::open(&self.header.parent, header, roots)?;
        let is_before =
            before.header.market == self.header.market && Some(before.header.number) == self.header.number.checked_sub(1);
        if is_before { Ok(before) } else { Err(LightError::NotBefore) }
    }

    /// What an account was when the block ended; `None` when there was no such account.
    ///
    /// # Errors
    /// [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`], [`LightError::Impossible`].
    pub fn account(&self, account: AccountId, statement: &[u8]) -> Result<Option<AccountState>, LightError> {
        const PART: LightPart = LightPart::Account;
        let mut reader = Reader::of(statement, ACCOUNT, ACCOUNT_STATEMENT_BYTES_MAX, PART)?;
        let length = reader.u32()? as usize;
        let content = reader.take(length)?;
        let proof = AccountProof::decode(reader.rest()).map_err(|error| LightError::of_proof(error, PART))?;
        // No account has an empty content.
        let claim = if content.is_empty() { Claim::Absent } else { Claim::Is(content) };
        let found = proof.root(account.0, claim).map_err(|error| LightError::of_proof(error, PART))?;
        if found != self.accounts {
            return Err(LightError::NotProven);
        }
        match claim {
            Claim::Absent => Ok(None),
            Claim::Is(content) => AccountState::read(account, content).ok_or(LightError::Impossible).map(Some),
        }
    }

    /// The offer that stood under a key when the block ended; `None` when none did.
    ///
    /// # Errors
    /// [`LightError::UnknownPair`], [`LightError::UnknownVersion`], [`LightError::Malformed`], [`LightError::NotProven`],
    /// [`LightError::Impossible`].
    pub fn offer(&self, pair: Pair, key: &OfferKey, statement: &[u8]) -> Result<Option<Offer>, LightError> {
        const PART: LightPart = LightPart::Offer;
        let number = self.number(pair)?;
        let mut reader = Reader::of(statement, OFFER, OFFER_STATEMENT_BYTES_MAX, PART)?;
        let content = match reader.byte()? {
            0 => None,
            1 => Some(reader.array::<16>()?),
            _ => return Err(LightError::Malformed(PART)),
        };
        let proof = OfferProof::decode(reader.rest()).map_err(|error| LightError::of_proof(error, PART))?;
        let claim = content.as_ref().map_or(Claim::Absent, |content| Claim::Is(content));
        let found = proof.root(number, &trie_key(key), claim).map_err(|error| LightError::of_proof(error, PART))?;
        if found != self.offers {
            return Err(LightError::NotProven);
        }
        content.map(|content| read_offer(key, &content).ok_or(LightError::Impossible)).transpose()
    }
}

/// The blocks from the newest back to the oldest, of both of which the caller knows the hash, and trusts the newest: header and roots of each.
/// Trust goes back only: anybody can put a block on top of another.
///
/// # Errors
/// Of the first block that is wrong, as [`LightBlock::open`]; [`LightError::NotBefore`], [`LightError::OtherEnd`].
pub fn open_chain(newest: &[u8; HASH], oldest: &[u8; HASH], blocks: &[(&[u8], &[u8])]) -> Result<Vec<LightBlock>, LightError> {
    let mut chain: Vec<LightBlock> = Vec::with_capacity(blocks.len());
    for (header, roots) in blocks {
        chain.push(match chain.last() {
            None => LightBlock::open(newest, header, roots)?,
            Some(after) => after.open_before(header, roots)?,
        });
    }
    if chain.last().is_some_and(|last| last.hash == *oldest) { Ok(chain) } else { Err(LightError::OtherEnd) }
}

fn read_offer(key: &OfferKey, content: &[u8; 16]) -> Option<Offer> {
    let numbers = content.as_chunks::<8>().0;
    let (amount, stated) =
        (Amount::new(u64::from_le_bytes(numbers[0]))?, BatchPrice::from_bits(u64::from_le_bytes(numbers[1])).ok()?);
    Offer::new(stated, key.tie, key.id, amount).ok().filter(|offer| offer.key() == *key)
}

/// What roots say, as in [`StateRoots`].
struct RootsRead {
    accounts: Digest,
    touched: Digest,
    markets: Vec<(u16, Digest)>,
}

/// `version u8 | kind u8 | accounts 32 | touched 32`, then for each market in ascending order `id u16 | root of its offers 32`.
fn read_roots(bytes: &[u8]) -> Result<RootsRead, LightError> {
    let mut reader = Reader::of(bytes, ROOTS, ROOTS_BYTES_MAX, LightPart::Roots)?;
    let (accounts, touched) = (Digest(reader.array()?), Digest(reader.array()?));
    let mut markets = Vec::with_capacity(reader.bytes.len() / (2 + HASH));
    while !reader.bytes.is_empty() {
        markets.push((u16::from_le_bytes(reader.array()?), Digest(reader.array()?)));
    }
    reader.must(markets.is_sorted_by(|(a, _), (b, _)| a < b))?;
    Ok(RootsRead { accounts, touched, markets })
}

impl Cleared {
    /// The bytes of the block's roots, which with [`LightHeader::bytes`] hash to [`crate::Roots::state`].
    #[must_use]
    pub fn light_roots(&self) -> Vec<u8> {
        roots_bytes(self.header.market, &self.roots, &self.touched)
    }
}

/// [`Cleared::light_roots`] of a block that somebody kept: of which market, its roots, and the root of the accounts that it touched.
#[must_use]
pub fn roots_bytes(market: BatchMarketId, roots: &Roots, touched: &[u8; 32]) -> Vec<u8> {
    [&[VERSION, ROOTS][..], &roots.accounts, touched, &market.0.to_le_bytes(), &roots.offers].concat()
}

impl Accounts {
    /// What an account was when the last block ended, whose roots these are, or that there was none, with the proof of it: `version u8 | kind u8 |
    /// length u32 | content`, which is empty where there is no account, and a [`walras_merkle::AccountProof`].
    ///
    /// `None` when the account is another since that block, for content is read from the state of now, or when a block was rejected since because of
    /// its hashes: ask after the next block.
    #[must_use]
    pub fn statement(&self, ledger: &Ledger, account: AccountId, roots: &Roots) -> Option<Vec<u8>> {
        let proof = self.prove(account);
        let is_there = account.0 < proof.account_count();
        let content = if is_there { self.content(ledger, account) } else { Vec::new() };
        let claim = if is_there { Claim::Is(&content) } else { Claim::Absent };
        let holds = proof.root(account.0, claim) == Ok(Digest(roots.accounts));
        let length = (content.len() as u32).to_le_bytes();
        holds.then(|| [&[VERSION, ACCOUNT][..], &length, &content, &proof.encode()].concat())
    }
}

impl Batch {
    /// The offer that stands under a key since the last block, or that none does, with the proof of it: `version u8 | kind u8 | 0, or 1 and
    /// amount u64, stated limit u64`, and a [`walras_merkle::OfferProof`]. `None` as [`Self::prove_offer`], and of a pair that the market has not.
    #[must_use]
    pub fn offer_statement(&self, pair: Pair, key: &OfferKey) -> Option<Vec<u8>> {
        let proof = self.prove_offer(pair, key)?.encode();
        let mut bytes = vec![VERSION, OFFER];
        match self.market.book(pair).and_then(|book| book.sells().get(key)) {
            None => bytes.push(0),
            Some(offer) => {
                bytes.push(1);
                bytes.extend_from_slice(&Self::offer_content(offer));
            }
        }
        bytes.extend_from_slice(&proof);
        Some(bytes)
    }
}

/// What is left to be read of a part.
struct Reader<'b> {
    bytes: &'b [u8],
    part: LightPart,
}

impl<'b> Reader<'b> {
    /// Of all bytes, unless there are too many.
    fn new(bytes: &'b [u8], bytes_max: usize, part: LightPart) -> Result<Self, LightError> {
        let reader = Self { bytes, part };
        reader.must(bytes.len() <= bytes_max)?;
        Ok(reader)
    }

    /// Of what follows version and kind.
    fn of(bytes: &'b [u8], kind: u8, bytes_max: usize, part: LightPart) -> Result<Self, LightError> {
        let mut reader = Self::new(bytes, bytes_max, part)?;
        match reader.byte()? {
            VERSION => {}
            version => return Err(LightError::UnknownVersion(part, version)),
        }
        let found = reader.byte()?;
        reader.must(found == kind)?;
        Ok(reader)
    }

    fn must(&self, holds: bool) -> Result<(), LightError> {
        if holds { Ok(()) } else { Err(LightError::Malformed(self.part)) }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], LightError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(LightError::Malformed(self.part))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LightError> {
        self.take(N).map(|taken| taken.try_into().expect("as many were taken"))
    }

    fn byte(&mut self) -> Result<u8, LightError> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, LightError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, LightError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, LightError> {
        self.array().map(u64::from_le_bytes)
    }

    /// How many follow, of so many bytes each.
    fn count(&mut self, most: usize, bytes_each: usize) -> Result<usize, LightError> {
        let count = self.u32()? as usize;
        self.must(count <= most && count <= self.bytes.len() / bytes_each)?;
        Ok(count)
    }

    const fn rest(self) -> &'b [u8] {
        self.bytes
    }

    fn end(self) -> Result<(), LightError> {
        self.must(self.bytes.is_empty())
    }
}
