//! What a block leaves, hashed beside the engine.

use std::num::NonZero;
use std::sync::Arc;

#[expect(clippy::disallowed_types, reason = "what a job gives back is taken once; what it is does not depend on by whom")]
use std::sync::Mutex;

use walras_ledger::Ledger;
use walras_merkle::{AccountTree, Digest, StateRoots};
use walras_types::{AccountId, BatchMarketId};

use super::checking::Checked;
use super::job::{BlockJob, Job};
use super::{BlockDone, Stage, Stepped};
use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::clear::touched_entries;
use crate::closed::ClosedBatch;
use crate::outcomes::Outcomes;
use crate::proposed::Roots;
use crate::settings::AssetTable;
use crate::trees::{Followed, MarketChange, OfferTrees, hash_accounts};

#[derive(Clone, Debug)]
pub(crate) struct Hashing {
    job: Arc<Job<Hashed>>,
}

struct Hashed {
    block: BlockDone,
    #[expect(clippy::disallowed_types, reason = "as above")]
    trees: Mutex<Option<(AccountTree, OfferTrees)>>,
}

/// What is hashed: copies of the state after the last move, and the trees over the state before.
struct Unhashed {
    ledger: Ledger,
    /// With the tree.
    accounts: Accounts,
    changed: walras_ledger::AccountSet,
    trees: OfferTrees,
    table: AssetTable,
    assets: Vec<walras_types::AssetId>,
    market: BatchMarketId,
    pools: Arc<crate::pools::Pools>,
    closed: Arc<ClosedBatch>,
    checked: Arc<Checked>,
    created: Vec<AccountId>,
}

impl Hashing {
    #[expect(clippy::disallowed_types, reason = "as above")]
    pub(super) fn of(block: BlockDone) -> Self {
        Self { job: Job::of(Hashed { block, trees: Mutex::new(None) }) }
    }

    /// Whether the next step does not wait.
    pub(super) fn is_ready(&self) -> bool {
        self.job.is_done()
    }

    /// What comes of it.
    pub(super) fn block(&self, threads: NonZero<usize>) -> &BlockDone {
        &self.job.result(threads).block
    }

    pub(super) fn take_trees(&self, threads: NonZero<usize>) -> Option<(AccountTree, OfferTrees)> {
        self.job.result(threads).trees.lock().ok().and_then(|mut trees| trees.take())
    }
}

impl Unhashed {
    #[expect(clippy::disallowed_types, reason = "as above")]
    fn hash(self, threads: NonZero<usize>) -> Hashed {
        let Self { ledger, mut accounts, changed, mut trees, table, assets, market, pools, closed, checked, created } = self;
        let accounts_root = hash_accounts(&ledger, &mut accounts, &changed, threads);
        let Checked { traded, pools_traded, .. } = &*checked;
        let change = MarketChange { table: &table, market: &checked.market, pools: &pools, closed: &closed, traded, pools_traded };
        let mut touched = checked.touched.clone();
        created.iter().for_each(|account| touched.insert_anew(*account));
        let outcomes = || Outcomes::of(&change, &assets, created.iter().copied());
        let touched = touched_entries(&touched, &closed.senders);
        let Followed { offers, touched, outcomes } = trees.follow(&change, &touched, outcomes, threads);
        let mut header = checked.header.clone();
        header.outcomes = outcomes.root();
        let state = StateRoots { accounts: accounts_root, touched, header: Digest(header.hash()), markets: &[(market.0, offers)] };
        let roots = Roots { accounts: accounts_root.0, offers: offers.0, state: state.root().0 };
        // A market has fewer than 2^64 offers.
        let offers_traded = checked.fills.len() as u64;
        let block = BlockDone { header, roots, touched: touched.0, outcomes: Some(Arc::new(outcomes)), offers_traded };
        Hashed { block, trees: Mutex::new(Some((accounts.tree, trees))) }
    }
}

impl Batch {
    pub(super) fn begin_to_hash(
        &mut self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        closed: Arc<ClosedBatch>,
        checked: Arc<Checked>,
        created: Vec<AccountId>,
    ) {
        if !ledger.tracks_changes() {
            ledger.track_changes();
        }
        let spent = std::mem::replace(&mut self.market, Arc::clone(&checked.market));
        self.closed = None;
        let unhashed = Unhashed {
            changed: ledger.take_changed(),
            ledger: ledger.share(),
            accounts: accounts.for_hashing(),
            trees: std::mem::take(&mut self.trees),
            table: self.table.clone(),
            assets: self.settings.assets.clone(),
            market: self.settings.market,
            pools: Arc::clone(&self.pools),
            closed,
            checked,
            created,
        };
        let job = Job::new(move |threads| {
            drop(spent);
            unhashed.hash(threads)
        });
        let begun = BlockJob::new(&job);
        self.steps.begin(Stage::Hashing(Hashing { job }), Some(begun));
    }

    pub(super) fn take_hashes(&mut self, hashing: &Hashing, accounts: &mut Accounts, threads: NonZero<usize>) -> Stepped {
        if let Some((tree, trees)) = hashing.take_trees(threads) {
            (accounts.tree, self.trees) = (tree, trees);
        }
        accounts.is_hashing = false;
        let block = hashing.block(threads).clone();
        self.number += 1;
        self.parent = block.roots.state;
        self.keys_kept.clear();
        Stepped::Block(Box::new(block))
    }
}

impl Accounts {
    /// A copy to be hashed, with the tree, which comes back with the hashes.
    fn for_hashing(&mut self) -> Self {
        self.is_hashing = true;
        let tree = std::mem::take(&mut self.tree);
        Self { tree, ..self.for_snapshot() }
    }

    /// A restored market's block is being hashed.
    pub fn resume_hashing(&mut self) {
        self.is_hashing = true;
    }
}
