//! Commitments to a venue's state: 16-ary hash trees over accounts, offers and whatever else others keep, and proofs that need no venue.
//!
//! [`Trie`] stands for entries that are sorted by a key of fixed length (the offers of a pair, the pairs of a market, the accounts that a block
//! touched); [`AccountTree`] for dense indexes. Both keep hashes of inner nodes; entries and accounts are read from their keeper when a node
//! above them is hashed. [`StateRoots`] joins them.
//!
//! *Deliberately absent*: the data itself, history, storage, and any knowledge of offers, ledgers or blocks beyond the keys' layout; threads
//! inside a trie (a market has many tries: fork over those).
//!
//! *Invariants*, each a property test against the definition
//! - A root is a function of the entries alone: neither the order of changes nor the number of threads shows in it.
//! - No two different states have one root, short of a collision of BLAKE3: each kind of input is hashed in a domain of its own, and each
//!   input can be read in one way only.
//! - A proof verifies for what is so and for nothing else; decoding never panics.
//!
//! *Start reading* at [`Trie`], then [`AccountTree`], then [`verify_entry`], [`verify_account`], [`verify_offer`]. Sources: SPEEDEX (NSDI 2023),
//! section 9.3 (fan-out, one hashing per block, counts in nodes, the trie of touched accounts); D. R. Morrison, PATRICIA (1968): a node says
//! at which digit its keys part, and only the entries say what the digits before are, which suffices to prove absence.
#![deny(clippy::float_arithmetic)]

mod account_proof;
mod account_tree;
mod arena;
mod digest;
mod later;
mod many;
mod nibble;
mod proof;
mod state;
mod trie;
mod trie_proof;

pub use account_proof::{AccountProof, verify_account};
pub use account_tree::{AccountTree, GROUP_ACCOUNTS};
pub use digest::{Content, DIGEST_BYTES, Digest};
pub use proof::{Claim, ProofError};
pub use state::{
    ACCOUNT_KEY_BYTES, ASSET_KEY_BYTES, OFFER_KEY_BYTES, OUTCOME_KEY_BYTES, OfferProof, PAIR_KEY_BYTES, PairRoot, StateRoots,
    offer_key, verify_offer,
};
pub use trie::{Entries, Trie, Update, VALUE_BYTES_MAX, update_all};
pub use trie_proof::{TrieProof, trie_proof_bytes_max, verify_entry};
