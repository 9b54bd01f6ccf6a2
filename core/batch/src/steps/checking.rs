//! A proposed clearing, checked and traded in a copy of the market.

use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::{BatchMarket, PairTraded, PoolTraded, verify};
use walras_ledger::{AccountSet, Ledger};
use walras_types::{AccountId, AssetId, OfferName};

use super::job::{BlockJob, Job};
use super::moving::{FillMove, Moving};
use super::{Stage, Stepped};
use crate::batch::Batch;
use crate::clear::check_marginal;
use crate::closed::ClosedBatch;
use crate::effects::Then;
use crate::header::{BlockHeader, ChainPlace};
use crate::pools::{PoolChangeKind, Pools};
use crate::proposed::{BlockRejected, ProposedClearing};
use crate::quality;
use crate::settings::BatchSettings;

#[derive(Clone, Debug)]
pub(crate) struct Checking {
    /// The clearing as it is sent.
    pub(super) proposal: Arc<Vec<u8>>,
    job: Arc<Job<Result<Arc<Checked>, BlockRejected>>>,
}

/// A clearing that holds, and what it comes to.
#[derive(Debug)]
pub(super) struct Checked {
    /// But for the outcomes.
    pub(super) header: BlockHeader,
    /// After the trades.
    pub(super) market: Arc<BatchMarket>,
    pub(super) traded: Vec<PairTraded>,
    pub(super) pools_traded: Vec<(OfferName, PoolTraded)>,
    /// What each offer trades, by pair and in the order of their keys.
    pub(super) fills: Vec<FillMove>,
    /// How much more each asset's pools have afterwards.
    pub(super) flows: Vec<(AssetId, i128)>,
    /// Whose transactions or funds are a part of it, but for accounts that it creates.
    pub(super) touched: AccountSet,
}

/// What a clearing is checked against.
struct Against {
    settings: BatchSettings,
    number: u64,
    parent: [u8; 32],
    market: Arc<BatchMarket>,
    pools: Arc<Pools>,
    closed: Arc<ClosedBatch>,
}

impl Checking {
    /// Whether the next step does not wait.
    pub(super) fn is_ready(&self) -> bool {
        self.job.is_done()
    }

    pub(super) fn job(&self) -> BlockJob {
        BlockJob::new(&self.job)
    }
}

impl Against {
    fn check(&self, block: &ProposedClearing, threads: NonZero<usize>) -> Result<Arc<Checked>, BlockRejected> {
        let Self { settings, number, parent, closed, .. } = self;
        let verified = verify(&self.market, &block.proposal, &settings.rules)?;
        check_marginal(&verified, &block.marginal)?;
        let quality = quality::check(&block.certificate, &self.market, &block.proposal, &settings.rules, &settings.quality)?;
        let (plans, pool_fills) = verified.into_plans();
        let header = BlockHeader::new(&ChainPlace { settings, number: *number, parent: *parent }, closed, block, quality);
        let mut market = BatchMarket::clone(&self.market);
        let (traded, pools_traded) = (market.trade(plans, threads), market.trade_pools(&pool_fills));
        let fills = traded.iter().flat_map(FillMove::all_of).collect();
        let flows = self.flows(&pools_traded);
        let pools_traded = pools_traded.iter().map(|traded| (self.pools.name(traded.pool), *traded)).collect();
        let touched = touched(&traded, closed);
        Ok(Arc::new(Checked { header, market: Arc::new(market), traded, pools_traded, fills, flows, touched }))
    }

    fn flows(&self, traded: &[PoolTraded]) -> Vec<(AssetId, i128)> {
        let assets = &self.settings.assets;
        let mut flows: Vec<(AssetId, i128)> = assets.iter().map(|asset| (*asset, 0)).collect();
        for PoolTraded { pair, sold, bought, .. } in traded {
            flows[pair.sell.index()].1 -= i128::from(sold.get());
            flows[pair.buy.index()].1 += i128::from(bought.get());
        }
        for change in &self.closed.pool_changes {
            let of_pool = flows.iter_mut().filter(|(asset, _)| change.assets.contains(asset));
            of_pool.for_each(|(asset, flow)| *flow += change.flow(*asset));
        }
        flows.retain(|(_, flow)| *flow != 0);
        flows
    }
}

fn touched(traded: &[PairTraded], closed: &ClosedBatch) -> AccountSet {
    let mut touched = AccountSet::default();
    let mut add = |account: AccountId| touched.insert_anew(account);
    for pair in traded {
        pair.offers.iter().for_each(|offer| add(OfferName::of_number(offer.key().id.0).account));
    }
    for effect in &closed.effects {
        add(effect.account);
        if let Then::Paid(to) = effect.then {
            add(to);
        }
    }
    for change in closed.pool_changes.iter().filter(|change| change.kind != PoolChangeKind::Closed) {
        add(change.by.account);
    }
    closed.senders.iter().for_each(|(account, _)| add(*account));
    touched
}

impl Batch {
    /// Begins to check a proposed clearing of the closed batch, which is given as it is sent too. A clearing that states the roots
    /// of the state after it is for [`Batch::clear`].
    ///
    /// # Errors
    /// Where it is for another block. Nothing changed.
    pub fn begin_to_clear(&mut self, block: ProposedClearing, bytes: Vec<u8>) -> Result<(), BlockRejected> {
        let closed = self.closed.as_ref().filter(|_| self.steps.are_done()).ok_or(BlockRejected::NothingClosed)?;
        self.check_place(closed, block.place.as_ref())?;
        let spent = self.steps.spent.take();
        let checking = self.checking(block, Arc::new(bytes), spent).ok_or(BlockRejected::NothingClosed)?;
        let job = checking.job();
        self.steps.begin(Stage::Checking(checking), Some(job));
        Ok(())
    }

    /// A check that has not begun, and lets a market of before go; `None` without a closed batch.
    pub(super) fn checking(
        &self,
        block: ProposedClearing,
        proposal: Arc<Vec<u8>>,
        spent: Option<Arc<BatchMarket>>,
    ) -> Option<Checking> {
        let against = Against {
            settings: self.settings.clone(),
            number: self.number,
            parent: self.parent,
            market: Arc::clone(&self.market),
            pools: Arc::clone(&self.pools),
            closed: Arc::clone(self.closed.as_ref()?),
        };
        let check = move |threads| {
            drop(spent);
            against.check(&block, threads)
        };
        Some(Checking { proposal, job: Job::new(check) })
    }

    pub(super) fn take_check(&mut self, checking: &Checking, ledger: &Ledger, threads: NonZero<usize>) -> Stepped {
        match checking.job.result(threads) {
            Err(rejected) => Stepped::Refused(*rejected),
            Ok(checked) => {
                let moving = Moving::new(Arc::clone(&checking.proposal), Arc::clone(checked), ledger.asset_count());
                self.steps.stage = Stage::Moving(Box::new(moving));
                Stepped::Accepted
            }
        }
    }

    /// What a check comes to, now.
    pub(super) fn checked(&self, checking: &Checking) -> Option<Arc<Checked>> {
        checking.job.result(NonZero::<usize>::MIN).as_ref().ok().map(Arc::clone)
    }
}
