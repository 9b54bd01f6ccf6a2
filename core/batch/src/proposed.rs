//! A clearing as its proposer sends it, and why it may be rejected.

use walras_clearing::{OfferKey, Pair, Proposal, Rejected};

use crate::certificate::Certificate;
use crate::quality::QualityError;

/// What a proposer says of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposedClearing {
    /// Which block it is meant for; `None` for whichever is next.
    pub place: Option<BlockPlace>,
    /// Prices and amounts.
    pub proposal: Proposal,
    /// Of each pair that trades, in ascending order, the last offer that does.
    pub marginal: Vec<(Pair, OfferKey)>,
    /// How good it is, and a proof that not much more could have traded.
    pub certificate: Certificate,
    /// What the state hashes to afterwards.
    pub expected: Option<Roots>,
}

/// A block's place in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Its number.
    pub number: u64,
    /// The hash of the block before.
    pub parent: [u8; 32],
    /// The hash of its batch.
    pub batch_hash: [u8; 32],
}

/// Hashes of the state after a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roots {
    /// Of the accounts.
    pub accounts: [u8; 32],
    /// Of the offers of the market.
    pub offers: [u8; 32],
    /// Of everything: both, the accounts that the block touched, the block's header. It is the block's hash.
    pub state: [u8; 32],
}

/// Why a block was rejected. Nothing changed; another may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockRejected {
    /// No batch waits to be cleared.
    #[error("no batch is closed: close one before it is cleared")]
    NothingClosed,
    /// It has another number.
    #[error("it is block {found}, and block {expected} is next: propose for that one")]
    Number {
        /// The next block's number.
        expected: u64,
        /// What was proposed.
        found: u64,
    },
    /// It follows another block.
    #[error("it follows another block than the last one here: propose on top of that one")]
    Parent,
    /// It clears another batch.
    #[error("it clears another batch than the one that is closed here: propose for that one")]
    Batch,
    /// The clearing breaks a rule.
    #[error(transparent)]
    Clearing(#[from] Rejected),
    /// A pair's marginal offer is missing, wrong, or named where nothing trades.
    #[error(
        "the last offer that trades in pair {0} is not the one that is named: name it for each pair that trades, in ascending order"
    )]
    Marginal(Pair),
    /// It leaves too much undone, or more than it says.
    #[error(transparent)]
    Quality(#[from] QualityError),
    /// The accounts hash to something else.
    #[error("the accounts do not hash to what is said: proposer and validator do not have one state, or one of them errs")]
    AccountsRoot,
    /// The offers hash to something else.
    #[error("the offers do not hash to what is said: proposer and validator do not have one state, or one of them errs")]
    OffersRoot,
    /// The state hashes to something else.
    #[error("the state does not hash to what is said: proposer and validator do not have one state, or one of them errs")]
    StateRoot,
}

impl BlockRejected {
    /// The stable number of the reason; those of clearings are below 100.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::Clearing(rejected) => rejected.number(),
            Self::NothingClosed => 100,
            Self::Number { .. } => 101,
            Self::Parent => 102,
            Self::Batch => 103,
            Self::Marginal(_) => 104,
            Self::Quality(QualityError::Certificate(_)) => 105,
            Self::AccountsRoot => 106,
            Self::OffersRoot => 107,
            Self::StateRoot => 108,
            Self::Quality(QualityError::Unpriced(_)) => 109,
            Self::Quality(QualityError::Unserved { .. }) => 110,
            Self::Quality(QualityError::GapBeyond { .. }) => 111,
            Self::Quality(QualityError::UnservedBeyond { .. }) => 112,
        }
    }
}
