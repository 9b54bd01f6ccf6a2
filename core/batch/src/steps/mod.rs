//! A block in steps: each holds its thread for a moment only, and orders come in between (ADR 24).
//!
//! ```text
//! judging --> sorting --> (closed) --a clearing--> checking --> moving --> hashing --> (the block)
//!                             ^----- refused ---------'
//! ```
//!
//! - *Judging*: the transactions of the next accounts are kept or dropped, and what is kept reserves what it spends.
//! - *Sorting*: new offers come into the market and cancelled ones go, in a [`BlockJob`]. Meanwhile steps tell which offers were opened.
//! - *Checking*: a proposed clearing is checked and traded in a copy of the market, in a job.
//! - *Moving*: steps move balances. All that sells is taken before anything is given, so no sum is ever more than the supply. What
//!   is taken and not given yet is the ledger's [`pooled`](walras_ledger::Ledger::pooled). A move uses reserved funds, so it cannot
//!   fail.
//! - *Hashing*: accounts, offers and outcomes are hashed, in a job, as they are after the last move.
//!
//! A job is a function of shared copies, so its result depends on nothing but the state at the step that began it. Any thread may
//! run it, at any time: the step that needs the result waits for it, or does the work itself. So all replicas are in one state
//! after each step, and a replay needs no threads. What is encoded of a stage follows from the state alone: of hashing it is the
//! result.

mod checking;
mod hashing;
mod job;
mod judging;
mod moving;
mod snapshot;
mod sorting;

use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::{BatchMarket, Offer, Pair};
use walras_ledger::Ledger;
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{AccountId, Amount, AssetId, DropReason, Intake, OfferName, PublicKey};

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::close::CloseError;
use crate::effects::{Effect, Then};
use crate::header::BlockHeader;
use crate::outcomes::Outcomes;
use crate::proposed::{BlockRejected, Roots};

use checking::Checking;
use hashing::Hashing;
pub use job::BlockJob;
pub use judging::Collected;
use judging::Judging;
use moving::Moving;
pub use moving::{FillMove, Moved};
use sorting::Sorting;

/// How far a block has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// How many steps of the block were taken.
    pub(crate) count: u32,
    pub(crate) stage: Stage,
    /// Begun, and not handed out yet. No part of the state.
    begun: Option<BlockJob>,
    /// A market of before, which a job lets go: that takes time. No part of the state.
    spent: Option<Arc<BatchMarket>>,
}

/// What a block is at.
#[derive(Clone, Debug, Default)]
pub(crate) enum Stage {
    /// Nothing: a batch collects, or is closed and waits for a clearing.
    #[default]
    None,
    Judging(Box<Judging>),
    Sorting(Box<Sorting>),
    Checking(Checking),
    Moving(Box<Moving>),
    Hashing(Hashing),
}

/// The step of a block that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Its number: how many came before.
    pub number: u32,
    /// How many steps, with this one, would not have to wait, as far as is known: none where work is under way on another thread.
    /// Depends on how fast this machine is: only for deciding when steps are logged.
    pub ready_count: u32,
}

/// What came of a step.
#[derive(Debug)]
pub enum Stepped {
    /// Some transactions were judged.
    Judged {
        /// Those that are left out, and why.
        dropped: Vec<(OfferName, DropReason)>,
        /// After the last: the hash of the batch, and how many transactions it keeps.
        closed: Option<([u8; 32], u32)>,
    },
    /// These offers will stand when the batch is closed.
    Opened(Vec<(Pair, Offer)>),
    /// The batch is closed: a clearing may be proposed.
    Closed,
    /// The clearing was refused; another may be proposed.
    Refused(BlockRejected),
    /// The clearing holds: what follows are its moves.
    Accepted,
    /// What has moved.
    Moved(Vec<Moved>),
    /// The block is done.
    Block(Box<BlockDone>),
}

/// A block that is done.
#[derive(Clone, Debug)]
pub struct BlockDone {
    /// What it says.
    pub header: BlockHeader,
    /// What the state hashed to after its last move.
    pub roots: Roots,
    /// The root of the trie over the accounts that it touched.
    pub touched: [u8; 32],
    /// What its transactions and offers came to; `None` where a snapshot was read meanwhile.
    pub outcomes: Option<Arc<Outcomes>>,
    /// How many offers traded.
    pub offers_traded: u64,
}

impl Steps {
    /// Whether no step is next.
    pub(crate) const fn are_done(&self) -> bool {
        matches!(self.stage, Stage::None)
    }

    /// For a copy of the market that goes on by itself.
    ///
    /// # Panics
    /// While it hashes: there is one tree of accounts.
    pub(crate) fn unshared(&self) -> Self {
        assert!(!matches!(self.stage, Stage::Hashing(_)), "a market is copied before its block is hashed, or after");
        self.clone()
    }

    /// What a block took and has not given yet.
    pub(crate) fn for_each_held(&self, mut held: impl FnMut(AssetId, i128)) {
        if let Stage::Moving(moving) = &self.stage {
            moving.held().for_each(|(asset, units)| held(asset, units));
        }
    }

    fn begin(&mut self, stage: Stage, job: Option<BlockJob>) {
        self.stage = stage;
        self.begun = job;
    }
}

impl Batch {
    /// Whether a batch is closed or being closed, or its block is not done.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.closed.is_some() || !self.steps.are_done()
    }

    /// The step that is next, if a block is carried out in steps and does not wait for a clearing; each does about so many units.
    /// `accounts` are those of the venue.
    #[must_use]
    pub fn next_step(&self, accounts: &Accounts, units: NonZero<usize>) -> Option<NextStep> {
        let ready_count = match &self.steps.stage {
            Stage::None => return None,
            // One more step has to be taken for the last unit.
            Stage::Judging(judging) => 1 + judging.left_count() / (units.get() + TRANSACTIONS_PER_ACCOUNT_MAX as usize),
            Stage::Sorting(sorting) => sorting.ready_count(units),
            Stage::Checking(checking) => usize::from(checking.is_ready()),
            Stage::Moving(moving) if self.waits_for_hashing(moving, accounts) => 0,
            Stage::Moving(moving) => 1 + self.left_to_move(moving) / (units.get() + 1),
            Stage::Hashing(hashing) => usize::from(hashing.is_ready()),
        };
        Some(NextStep { number: self.steps.count, ready_count: u32::try_from(ready_count).unwrap_or(u32::MAX) })
    }

    /// Work that was begun and that nobody has taken: for another thread. Where nobody runs it, the step that needs it does.
    pub fn take_job(&mut self) -> Option<BlockJob> {
        self.steps.begun.take()
    }

    /// Begins to close a batch in steps.
    ///
    /// # Errors
    /// [`CloseError::NotCleared`].
    pub fn begin_to_close(&mut self, collected: Collected) -> Result<(), CloseError> {
        if self.is_under_way() {
            return Err(CloseError::NotCleared);
        }
        let judging = Judging::new(collected, self.parent, self.settings.account_fee);
        self.steps = Steps { count: 0, stage: Stage::Judging(Box::new(judging)), begun: None, spent: None };
        Ok(())
    }

    /// Takes the next step: about `units` transactions or moves of it, or a job's result. `None` where there is none, or where it
    /// has to wait for the hashes of another market's block; nothing changed then.
    pub fn step(
        &mut self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        intake: Intake,
        units: NonZero<usize>,
        threads: NonZero<usize>,
    ) -> Option<Stepped> {
        if matches!(&self.steps.stage, Stage::Moving(moving) if self.waits_for_hashing(moving, accounts)) {
            return None;
        }
        let stepped = match std::mem::take(&mut self.steps.stage) {
            Stage::None => return None,
            Stage::Judging(judging) => self.judge_some(judging, ledger, accounts, intake, units),
            Stage::Sorting(sorting) => self.sort_some(sorting, units, threads),
            Stage::Checking(checking) => self.take_check(&checking, ledger, threads),
            Stage::Moving(moving) => self.move_some(moving, ledger, accounts, units),
            Stage::Hashing(hashing) => self.take_hashes(&hashing, accounts, threads),
        };
        self.steps.count = if matches!(stepped, Stepped::Block(_)) { 0 } else { self.steps.count + 1 };
        Some(stepped)
    }

    /// Gives the hash trees back that a job has, when it is done with them: for who needs them before the step that ends the block.
    pub fn settle_trees(&mut self, accounts: &mut Accounts, threads: NonZero<usize>) {
        if let Stage::Hashing(hashing) = &self.steps.stage
            && let Some((tree, trees)) = hashing.take_trees(threads)
        {
            (accounts.tree, self.trees) = (tree, trees);
        }
    }

    /// Whether a batch is closed and it is known which of its transactions are kept.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.is_under_way() && !matches!(self.steps.stage, Stage::Judging(_))
    }

    /// Whether steps move funds now.
    #[must_use]
    pub fn moves_funds(&self) -> bool {
        matches!(self.steps.stage, Stage::Moving(_))
    }

    /// Says whether this market's block is being hashed, after a restore.
    #[must_use]
    pub fn is_hashing(&self) -> bool {
        matches!(self.steps.stage, Stage::Hashing(_))
    }

    /// The most accounts that the block under way opens from now on: O(1).
    #[must_use]
    pub fn accounts_to_come(&self) -> usize {
        let closed = self.closed.as_ref().map_or(0, |closed| closed.keys.len());
        match &self.steps.stage {
            Stage::Judging(judging) => judging.batch.accounts,
            Stage::Sorting(sorting) => sorting.accounts,
            Stage::None | Stage::Checking(_) => closed,
            Stage::Moving(moving) => closed - moving.created.len(),
            Stage::Hashing(_) => 0,
        }
    }

    /// Keys that accounts are to have.
    pub(crate) fn keys_to_come(&self) -> Vec<PublicKey> {
        match (&self.steps.stage, &self.closed) {
            (Stage::Judging(_) | Stage::Sorting(_), _) => {
                self.kept_in_steps().map_or(Vec::new(), |outcome| outcome.all_keys().copied().collect())
            }
            (Stage::Moving(moving), Some(closed)) => closed.all_keys().skip(moving.keys_done(closed)).copied().collect(),
            (_, Some(closed)) => closed.all_keys().copied().collect(),
            (_, None) => Vec::new(),
        }
    }

    /// As [`Self::for_each_reserved`], where the offers that stand and the closed batch do not say it: whether that is so.
    pub(crate) fn for_each_reserved_in_steps(&self, mut reserved: &mut impl FnMut(AccountId, AssetId, Amount)) -> bool {
        match &self.steps.stage {
            Stage::None | Stage::Checking(_) | Stage::Hashing(_) => false,
            Stage::Judging(_) | Stage::Sorting(_) => {
                self.for_each_offered(&self.market, &mut reserved);
                let Some(outcome) = self.kept_in_steps() else { return true };
                for (offer, pair) in outcome.offers.iter().zip(&outcome.offer_pairs) {
                    let asset = self.settings.assets[self.table.pair(*pair).sell.index()];
                    reserved(OfferName::of_number(offer.key().id.0).account, asset, offer.amount());
                }
                // What is cancelled stands still.
                let effects = outcome.effects.iter().filter(|effect| !matches!(effect.then, Then::Cancelled { .. }));
                effects.for_each(|Effect { account, asset, amount, .. }| reserved(*account, *asset, *amount));
                for change in &outcome.pool_changes {
                    change.reserved().for_each(|(asset, amount)| reserved(change.by.account, asset, amount));
                }
                true
            }
            Stage::Moving(moving) => {
                self.for_each_offered(moving.market(), &mut reserved);
                self.for_each_to_move(moving, &mut reserved);
                true
            }
        }
    }
}
